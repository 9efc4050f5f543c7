"""Counts of rows in parts: bins first, then a sum."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from credalchain.bases.naive.counts import ChainCounts
from credalchain.chunks.columns import Summary, learn_bins, summarize
from credalchain.chunks.parts import Parts, label_names, why_refused
from credalchain.labels import as_labels
from credalchain.preprocessing import Discretizer, as_rows

SAMPLE_SIZE = 100_000


@dataclass(frozen=True)
class PartCounts:
    """Counts of some parts, and the names of their labels.

    ``doubt`` says what would be wrong with labels if no part had a 0.
    """

    names: tuple[str, ...] | None
    counts: ChainCounts
    part: str
    doubt: str = ""

    def __add__(self, other: "PartCounts") -> "PartCounts":
        if self.names != other.names or self.counts.n_labels != other.counts.n_labels:
            raise ValueError(
                "all parts of Y must have the same labels in the same order: "
                f"{self.names or self.counts.n_labels} in {self.part} and "
                f"{other.names or other.counts.n_labels} in {other.part}."
            )
        wide = np.maximum(self.counts.n_categories, other.counts.n_categories)
        total = self.counts.widened(wide) + other.counts.widened(wide)
        return PartCounts(self.names, total, self.part, self.doubt or other.doubt)


@dataclass(frozen=True)
class Counted:
    """What was learned from all parts, and how.

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


def count_parts(parts: Parts, discretizer: Any, sample_size: int = SAMPLE_SIZE) -> Counted:
    """Learn bins where that is asked for, then count all rows.

    Parameters
    ----------
    parts : Parts
    discretizer : Discretizer, any fitted discretizer, or None
        An unfitted Discretizer is learned from a sample of rows; None: X holds codes.
    sample_size : int
        Rows from which the bins of numeric columns are learned: those with the smallest hashes
        of their numbers, all if there are not more. Categories are those of all rows.
    """
    bins = "X holds codes" if discretizer is None else "bins were given"
    if isinstance(discretizer, Discretizer) and not hasattr(discretizer, "binnings_"):
        limit = parts.hash_limit(sample_size)
        summary: Summary = parts.reduce(
            _summary, limit, trim=partial(Summary.trimmed, size=sample_size)
        )
        discretizer = learn_bins(summary, discretizer.n_bins)
        n, k = summary.n_rows, len(summary.hashes)
        bins = f"bins learned from all {n} rows" if k == n else f"bins learned from {k} of {n} rows"
    elif discretizer is not None:
        check_is_fitted(discretizer)
    found: PartCounts = parts.reduce(_counts, discretizer, numbered=False)
    if found.counts.n_rows == 0:
        raise ValueError("X must have at least one row, got none in all parts.")
    if found.doubt and not found.counts.label[:, 0].any():
        raise ValueError(found.doubt)
    return Counted(found.counts, found.names, discretizer, bins)


def _summary(part: str, X: Any, Y: Any, first: int, limit: Any) -> Summary:
    return summarize(part, as_rows(X), first, limit)


def _counts(part: str, X: Any, Y: Any, first: int, discretizer: Any) -> PartCounts:
    """Of one part; of a part without rows, nothing but its shape."""
    X, labels = as_rows(X), as_labels(Y, require_zero=False)
    if X.shape[0] > 0:
        counts = ChainCounts.from_rows(X, labels, discretizer)
        return PartCounts(label_names(Y), counts, part, why_refused(Y))
    m = labels.shape[1]
    k = np.ones(X.shape[1], np.int64) if discretizer is None else discretizer.n_categories_
    empty = [np.zeros(shape, np.int64) for shape in ((m, 2), (int(k.sum()), m, 2), (m, 2, m, 2))]
    return PartCounts(label_names(Y), ChainCounts(0, k, *empty), part)
