"""Matrix products whose rows do not depend on each other: in BLAS the bits of a row do."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain.bases.compiler import kernel

_COLUMNS_AT_ONCE = 256  # of the second matrix: so much of it stays in the cache


def product_by_rows(A: NDArray[Any], B: NDArray[Any]) -> NDArray[Any]:
    """``A @ B`` of floats, the same bits for a row whatever the other rows are."""
    product = np.zeros((len(A), B.shape[1]), dtype=B.dtype)
    add_product(np.ascontiguousarray(A, dtype=B.dtype), np.ascontiguousarray(B), product)
    return product


@kernel
def add_product(A: NDArray[Any], B: NDArray[Any], out: NDArray[Any]) -> None:
    """Add ``A @ B`` to ``out``; every sum is made in the order of its terms."""
    n_columns = B.shape[1]
    for first in range(0, n_columns, _COLUMNS_AT_ONCE):
        stop = min(first + _COLUMNS_AT_ONCE, n_columns)
        for i in range(A.shape[0]):
            sums = out[i, first:stop]
            for k in range(A.shape[1]):
                factor, terms = A[i, k], B[k, first:stop]
                for j in range(stop - first):
                    sums[j] += factor * terms[j]
