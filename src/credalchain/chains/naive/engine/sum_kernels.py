"""What the features of a row add up to, for all labels, bounds and values of s at once.

Memory layout: ``table`` (tiles, rows, blocks, 16) has one row for each (feature, category), cut
into tiles of a few labels and these into blocks of 16 lanes that start at a cache line. A row of
data is the sum of one table row per feature, so the work is row adds, no gathers; the sum of a
block stays in registers until all features are added, and a block of the table stays in the
second-level cache until all rows of data are done.
"""

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.compiler import lane_kernel
from credalchain._utils.lanes import load, plus, store


@lane_kernel
def add_rows(
    codes: NDArray[np.integer],
    offsets: NDArray[np.int64],
    first: int,
    start: NDArray[np.int64],
    table: NDArray[np.int64],
    first_tile: int,
    out: NDArray[np.int64],
) -> None:
    """out[r] = start + the sum over features i of table[:, offsets[i] + codes[first + r, i]].

    ``start`` is (all tiles, blocks, 16), ``out`` (rows, all tiles, blocks, 16), ``table`` may hold
    only the tiles from ``first_tile`` on.
    """
    for tile in range(table.shape[0]):
        rows = table[tile]
        for block in range(table.shape[2]):
            for row in range(out.shape[0]):
                lanes = load(start[first_tile + tile, block])
                for feature in range(codes.shape[1]):
                    table_row = np.uint64(offsets[feature] + codes[first + row, feature])
                    lanes = plus(lanes, rows[table_row, block])
                store(lanes, out[row, first_tile + tile, block])


@lane_kernel
def add_sparse_rows(
    indptr: NDArray[np.integer],
    entries: NDArray[np.integer],
    first: int,
    start: NDArray[np.int64],
    table: NDArray[np.int64],
    first_tile: int,
    out: NDArray[np.int64],
) -> None:
    """The same for CSR: ``entries`` are rows of ``table``, ``start`` is with all codes 0."""
    for tile in range(table.shape[0]):
        rows = table[tile]
        for block in range(table.shape[2]):
            for row in range(out.shape[0]):
                lanes = load(start[first_tile + tile, block])
                stored = entries[indptr[first + row] : indptr[first + row + 1]]
                for entry in range(stored.shape[0]):
                    lanes = plus(lanes, rows[np.uint64(stored[entry]), block])
                store(lanes, out[row, first_tile + tile, block])
