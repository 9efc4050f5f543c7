"""Sampling of rows, independent of the division into chunks.

A row is chosen by a hash of its number, so the same rows are chosen for all chunks and all readers.
"""

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

MAX_HASH = np.uint64(2**64 - 1)
_HASHES_AT_ONCE = 2**22


def row_hashes(first: int, n: int) -> Hashes:
    """Return a number for each row first, first + 1, ...: they look random, no two alike.

    References
    ----------
    G. L. Steele, D. Lea and C. H. Flood, Fast splittable pseudorandom number generators,
    OOPSLA 2014.
    """
    return mixed(
        np.arange(first + 1, first + n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    )


def mixed(z: Hashes) -> Hashes:
    """Return a hash of each number; different numbers have different ones."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def hash_limit(n_rows: int, size: int) -> np.uint64:
    """Return the largest hash of a sample of ``size`` out of ``n_rows`` rows."""
    if n_rows <= size:
        return MAX_HASH
    share = min(1.0, 1.1 * size / n_rows + 10 / np.sqrt(n_rows))
    bound = np.uint64(min(share * 2.0**64, 2.0**64 - 2**12))
    while True:  # once, but for very bad luck
        starts = range(0, n_rows, _HASHES_AT_ONCE)
        parts = (row_hashes(first, min(_HASHES_AT_ONCE, n_rows - first)) for first in starts)
        hashes = np.concatenate([part[part <= bound] for part in parts])
        if len(hashes) >= size:
            return np.uint64(np.partition(hashes, size - 1)[size - 1])
        bound = MAX_HASH


def smallest(hashes: Hashes, size: int) -> NDArray[np.intp]:
    """Return the positions of the ``size`` smallest hashes, in their order; all if not more."""
    if len(hashes) <= size:
        return np.arange(len(hashes))
    return np.sort(np.argpartition(hashes, size - 1)[:size])
