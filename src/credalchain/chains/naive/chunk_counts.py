"""Counts of rows in chunks: bins first, then a sum."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from credalchain._utils.text import plural
from credalchain.chains.naive.counts import ChainCounts
from credalchain.chunks.columns import Summary, learn_bins, summarize
from credalchain.chunks.sources import label_names
from credalchain.labels import as_labels, holds_minus_one, minus_one_message
from credalchain.preprocessing import Discretizer, as_indexable
from credalchain.typing import Chunks

SAMPLE_SIZE = 100_000


@dataclass(frozen=True)
class ChunkCounts:
    """Counts of some chunks, and the names of their labels.

    ``holds_minus_one``: whether missing labels are written as -1.
    """

    names: tuple[str, ...] | None
    counts: ChainCounts
    chunk: str
    holds_minus_one: bool = False

    def __add__(self, other: "ChunkCounts") -> "ChunkCounts":
        if self.names != other.names or self.counts.n_labels != other.counts.n_labels:
            raise ValueError(
                "all chunks of Y must have the same labels in the same order: "
                f"{self.names or self.counts.n_labels} in {self.chunk} and "
                f"{other.names or other.counts.n_labels} in {other.chunk}."
            )
        wide = np.maximum(self.counts.n_categories, other.counts.n_categories)
        total = self.counts.widened(wide) + other.counts.widened(wide)
        return ChunkCounts(
            self.names, total, self.chunk, self.holds_minus_one or other.holds_minus_one
        )


@dataclass(frozen=True)
class CountResult:
    """What was learned from all chunks, and how.

    Attributes
    ----------
    counts : ChainCounts
    label_names : tuple of str or None
    discretizer : fitted Discretizer, or None for codes
    bins : str
        Where bins come from, in words.
    """

    counts: ChainCounts
    label_names: tuple[str, ...] | None
    discretizer: Any
    bins: str


def count_chunks(chunks: Chunks, discretizer: Any, sample_size: int = SAMPLE_SIZE) -> CountResult:
    """Learn bins where that is asked for, then count all rows.

    Parameters
    ----------
    chunks : Chunks
    discretizer : Discretizer, any fitted discretizer, or None
        An unfitted Discretizer is learned from a sample of rows; None: X holds codes.
    sample_size : int
        Rows from which the bins of numeric columns are learned: those with the smallest hashes
        of their numbers, all if there are not more. Categories are those of all rows.
    """
    bins = "X holds codes" if discretizer is None else "bins were given"
    if isinstance(discretizer, Discretizer) and not hasattr(discretizer, "binnings_"):
        limit = chunks.hash_limit(sample_size)
        summary: Summary = chunks.reduce(
            _summary, limit, trim=partial(Summary.trimmed, size=sample_size)
        )
        discretizer = learn_bins(summary, discretizer.n_bins)
        n_rows, n_sampled = summary.n_rows, len(summary.hashes)
        used = "all" if n_sampled == n_rows else f"{n_sampled} of"
        bins = f"bins learned from {used} {plural(n_rows, 'row')}"
    elif discretizer is not None:
        check_is_fitted(discretizer)
    chunk_counts: ChunkCounts = chunks.reduce(_counts, discretizer, numbered=False)
    if chunk_counts.counts.n_rows == 0:
        raise ValueError("X must have at least one row, got none in all chunks.")
    any_no, any_yes = (bool(column.any()) for column in chunk_counts.counts.label.T)
    if chunk_counts.holds_minus_one and any_yes and not any_no:
        raise ValueError(minus_one_message())
    return CountResult(chunk_counts.counts, chunk_counts.names, discretizer, bins)


def _summary(chunk: str, X: Any, Y: Any, first: int, limit: Any) -> Summary:
    return summarize(chunk, as_indexable(X), first, limit)


def _counts(chunk: str, X: Any, Y: Any, first: int, discretizer: Any) -> ChunkCounts:
    """Counts of one chunk; a chunk without rows has nothing but a shape."""
    X, labels = as_indexable(X), as_labels(Y, require_zero=False)
    if X.shape[0] > 0:
        counts = ChainCounts.from_rows(X, labels, discretizer)
        return ChunkCounts(label_names(Y), counts, chunk, holds_minus_one(Y))
    m = labels.shape[1]
    k = np.ones(X.shape[1], np.int64) if discretizer is None else discretizer.n_categories_
    empty = [np.zeros(shape, np.int64) for shape in ((m, 2), (int(k.sum()), m, 2), (m, 2, m, 2))]
    return ChunkCounts(label_names(Y), ChainCounts(0, k, *empty), chunk)
