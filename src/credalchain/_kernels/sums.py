"""What the features of a row add up to, for all labels and both bounds at once.

Memory layout: ``table`` has one contiguous row for each (feature, category), with
lanes (label, bound). A row of data is the sum of one table row per feature: row
adds, no gathers.
"""

import numpy as np
from numpy.typing import NDArray

from credalchain._kernels.compiler import kernel


@kernel
def add_rows(
    codes: NDArray[np.integer],
    offsets: NDArray[np.int64],
    table: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """out[r] += the sum over features i of table[offsets[i] + codes[r, i]]."""
    n_rows, n_features = codes.shape
    n_lanes = table.shape[1]
    for row in range(n_rows):
        for feature in range(n_features):
            source = offsets[feature] + codes[row, feature]
            for lane in range(n_lanes):
                out[row, lane] += table[source, lane]


@kernel
def add_sparse_rows(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int64],
    codes: NDArray[np.integer],
    offsets: NDArray[np.int64],
    table: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """The same for CSR codes: ``out`` starts with every feature at code 0."""
    n_lanes = table.shape[1]
    for row in range(indptr.shape[0] - 1):
        for entry in range(indptr[row], indptr[row + 1]):
            zero = offsets[indices[entry]]
            source = zero + codes[entry]
            for lane in range(n_lanes):
                out[row, lane] += table[source, lane] - table[zero, lane]
