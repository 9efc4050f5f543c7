"""Matrix products whose rows do not depend on each other: in BLAS the bits of a row do.

Every sum is made in the order of its terms. Memory layout: the second matrix is cut into tiles of
16 columns, in which the numbers of a row stand side by side, so that 16 sums each of four rows stay
in registers.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.compiler import BLOCK, lane_kernel, plus_product, repeat, store


def tiled(B: NDArray[Any]) -> NDArray[Any]:
    """Cut a matrix (p, m) into tiles (m / 16 rounded up, p, 16), filled up with 0."""
    p, m = B.shape
    filled = np.zeros((p, -(-m // BLOCK) * BLOCK), dtype=B.dtype)
    filled[:, :m] = B
    return np.ascontiguousarray(filled.reshape(p, -1, BLOCK).swapaxes(0, 1))


def product_by_rows(A: NDArray[Any], tiles: NDArray[Any], n_columns: int) -> NDArray[Any]:
    """Compute ``A @ B`` of floats, B tiled, with the same bits for a row whatever others are."""
    fours = np.zeros((-(-len(A) // 4) * 4, A.shape[1]), dtype=tiles.dtype)
    fours[: len(A)] = A
    sums = np.empty((len(fours), len(tiles), BLOCK), dtype=tiles.dtype)
    multiply(fours, tiles, sums)
    return sums.reshape(len(fours), len(tiles) * BLOCK)[: len(A), :n_columns]


@lane_kernel
def multiply(A: NDArray[Any], tiles: NDArray[Any], sums: NDArray[Any]) -> None:
    """Fill ``sums`` (n, tiles, 16): ``A`` (n, p) times ``tiles`` (tiles, p, 16); n = 4k."""
    zeros = repeat(A.dtype.type(0))
    for t in range(tiles.shape[0]):
        tile = tiles[t]
        for first in range(0, A.shape[0], 4):
            i = np.uint64(first)  # unsigned: an index that may be negative is not vectorised
            i_1, i_2, i_3 = i + np.uint64(1), i + np.uint64(2), i + np.uint64(3)
            a, b, c, d = zeros, zeros, zeros, zeros
            for number in range(A.shape[1]):
                k = np.uint64(number)
                row = tile[k]
                a, b = plus_product(a, A[i, k], row), plus_product(b, A[i_1, k], row)
                c, d = plus_product(c, A[i_2, k], row), plus_product(d, A[i_3, k], row)
            store(a, sums[i, t])
            store(b, sums[i_1, t])
            store(c, sums[i_2, t])
            store(d, sums[i_3, t])
