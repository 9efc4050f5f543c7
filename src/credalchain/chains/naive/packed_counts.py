"""Counting rows by category, label and class, many counters at a time.

Several counters share a 64-bit word, eight of 8 bits or four of 16, so one addition counts for many
labels and classes. Before a counter could overflow into its neighbour, all are flushed.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.array_types import Labels
from credalchain._utils.compiler import kernel_helper, lane_kernel


def add_counts(
    indptr: NDArray[Any], entries: NDArray[Any], labels: Labels, counts: NDArray[Any], wide: bool
) -> None:
    """Add rows of categories, in CSR form, to ``counts`` (categories, 2 m).

    ``wide`` counters have 16 bits, which is faster where categories are sparse or labels few.
    """
    counter: Any = np.uint16 if wide else np.uint8
    per_block = 4 * 8 // np.dtype(counter).itemsize
    n_blocks = -(-counts.shape[1] // per_block)
    lanes = np.zeros((len(labels), n_blocks * per_block), dtype=counter)
    for a in (0, 1):
        np.equal(labels, a, out=lanes[:, a : counts.shape[1] : 2], casting="unsafe")
    words = lanes.view(np.uint64).reshape(len(labels), n_blocks, 4)
    packed = np.zeros((n_blocks, len(counts), 4), np.uint64)
    limit = int(np.iinfo(counter).max)
    _count(indptr, entries, words, limit, packed, packed.view(counter), counts)


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
def _count(
    indptr: NDArray[np.integer],
    entries: NDArray[np.integer],
    words: NDArray[np.uint64],
    limit: int,
    packed: NDArray[np.uint64],
    lanes: NDArray[np.unsignedinteger],
    counts: NDArray[np.signedinteger],
) -> None:
    """Add up ``words`` (rows, blocks, 4), the 0/1 lanes of rows, in ``packed`` by category."""
    n_rows = words.shape[0]
    for begin in range(0, n_rows, limit):
        for block in range(words.shape[1]):
            counters = packed[block]
            for row in range(begin, min(begin + limit, n_rows)):
                added = words[row, block]
                a, b, c, d = added[0], added[1], added[2], added[3]
                for entry in range(indptr[row], indptr[row + 1]):
                    sums = counters[np.uint64(entries[entry])]
                    e, f, g, h = sums[0] + a, sums[1] + b, sums[2] + c, sums[3] + d
                    sums[0], sums[1], sums[2], sums[3] = e, f, g, h
        _flush(lanes, counts)
