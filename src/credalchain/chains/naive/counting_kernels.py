"""From codes and labels to counts.

Memory layout: several counters share a 64-bit word, eight of 8 bits or four of 16, so one
addition counts for many labels and classes. ``words`` (rows, blocks, 4) holds the 0/1 lanes
(label, class) of each training row, ``packed`` (blocks, categories, 4) their sums. Before a
counter could overflow into its neighbour, after ``limit`` rows, all are flushed into
``counts``; ``lanes`` is the memory of ``packed``, seen as single counters.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.compiler import kernel, kernel_helper, lane_kernel


@kernel_helper
def _add_words(row: Any, a: Any, b: Any, c: Any, d: Any) -> None:
    a, b, c, d = row[0] + a, row[1] + b, row[2] + c, row[3] + d
    row[0], row[1], row[2], row[3] = a, b, c, d


@kernel_helper
def _flush(lanes: NDArray[np.unsignedinteger], counts: NDArray[np.signedinteger]) -> None:
    """Add counters (blocks, categories, lanes of a block) to ``counts`` and reset them."""
    n_blocks, n_rows, width = lanes.shape
    for row in range(n_rows):
        for block in range(n_blocks):
            first = block * width
            for lane in range(width):
                if first + lane < counts.shape[1]:
                    counts[row, first + lane] += lanes[block, row, lane]
                lanes[block, row, lane] = 0


@lane_kernel
def count_codes(
    codes: NDArray[np.integer],
    first: int,
    offsets: NDArray[np.int64],
    words: NDArray[np.uint64],
    limit: int,
    packed: NDArray[np.uint64],
    lanes: NDArray[np.unsignedinteger],
    counts: NDArray[np.signedinteger],
) -> None:
    """Count rows first.. of dense codes into ``counts`` (categories, lanes)."""
    n_rows = words.shape[0]
    for begin in range(0, n_rows, limit):
        for block in range(words.shape[1]):
            counters = packed[block]
            for row in range(begin, min(begin + limit, n_rows)):
                added = words[row, block]
                a, b, c, d = added[0], added[1], added[2], added[3]
                for feature in range(codes.shape[1]):
                    table_row = np.uint64(offsets[feature] + codes[first + row, feature])
                    _add_words(counters[table_row], a, b, c, d)
        _flush(lanes, counts)


@lane_kernel
def count_sparse_codes(
    indptr: NDArray[np.integer],
    entries: NDArray[np.integer],
    first: int,
    words: NDArray[np.uint64],
    limit: int,
    packed: NDArray[np.uint64],
    lanes: NDArray[np.unsignedinteger],
    counts: NDArray[np.signedinteger],
) -> None:
    """The same for CSR; ``entries`` are rows of ``counts``. What is not stored is not counted."""
    n_rows = words.shape[0]
    for begin in range(0, n_rows, limit):
        for block in range(words.shape[1]):
            counters = packed[block]
            for row in range(begin, min(begin + limit, n_rows)):
                added = words[row, block]
                a, b, c, d = added[0], added[1], added[2], added[3]
                stored = entries[indptr[first + row] : indptr[first + row + 1]]
                for entry in range(stored.shape[0]):
                    _add_words(counters[np.uint64(stored[entry])], a, b, c, d)
        _flush(lanes, counts)


@kernel
def count_zeros(
    offsets: NDArray[np.int64],
    n_rows: NDArray[np.int64],
    label: NDArray[np.signedinteger],
    counts: NDArray[np.signedinteger],
) -> None:
    """Code 0 of every feature: all rows less those counted for another code."""
    for feature in range(offsets.shape[0]):
        zero = counts[offsets[feature]]
        for lane in range(zero.shape[0]):
            zero[lane] += label[lane]
        for v in range(1, n_rows[feature]):
            for lane in range(zero.shape[0]):
                zero[lane] -= counts[offsets[feature] + v, lane]


@kernel
def sum_categories(
    n_categories: NDArray[np.int64],
    counts: NDArray[np.signedinteger],
    totals: NDArray[np.signedinteger],
) -> None:
    """Add up the rows of each feature: ``counts`` (rows, lanes), ``totals`` (features, lanes)."""
    row = 0
    for feature in range(n_categories.shape[0]):
        for _ in range(n_categories[feature]):
            for lane in range(counts.shape[1]):
                totals[feature, lane] += counts[row, lane]
            row += 1
