"""The counts that are the whole model, and their arithmetic."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain import _kernels
from credalchain.bases.naive.codes import Codes, DenseCodes

IntArray = NDArray[np.int64]

_LIMIT = 2**53  # beyond this a count is not exact as a float


@dataclass(frozen=True, eq=False)
class ChainCounts:
    """All that a naive credal chain learns from its rows.

    Counts of two data sets add, counts of a fold subtract, and any s, label order and
    strategy can be asked of the same counts.

    Parameters
    ----------
    n_rows : int
        Rows counted.
    n_categories : int array (p,)
        K_i, the declared number of categories of each feature.
    label : int array (m, 2)
        ``label[j, a]``: rows with y_j = a.
    feature : int array (sum of K, m, 2)
        ``feature[r, j, a]``: rows with y_j = a and the feature and category that row r
        stands for; the K_0 categories of feature 0 come first.
    pair : int array (m, 2, m, 2)
        ``pair[k, b, j, a]``: rows with y_k = b and y_j = a.
    """

    n_rows: int
    n_categories: IntArray
    label: IntArray
    feature: IntArray
    pair: IntArray

    def __post_init__(self) -> None:
        _check(self)

    @property
    def n_features(self) -> int:
        return len(self.n_categories)

    @property
    def n_labels(self) -> int:
        return len(self.label)

    def offsets(self) -> IntArray:
        """The first row of each feature in ``feature``."""
        return np.cumsum(self.n_categories) - self.n_categories

    def feature_totals(self) -> IntArray:
        """D: (p, m, 2), the sum of the counts over the categories of each feature."""
        if self.n_features == 0:
            return np.zeros((0, self.n_labels, 2), dtype=np.int64)
        return np.add.reduceat(self.feature, self.offsets(), axis=0)

    def widened(self, n_categories: IntArray) -> "ChainCounts":
        """The same counts with at least ``n_categories`` categories per feature."""
        wide = np.maximum(self.n_categories, n_categories)
        if np.array_equal(wide, self.n_categories):
            return self
        starts = np.cumsum(wide) - wide
        rows = np.repeat(starts - self.offsets(), self.n_categories) + np.arange(len(self.feature))
        feature = np.zeros((int(wide.sum()), self.n_labels, 2), dtype=np.int64)
        feature[rows] = self.feature
        return ChainCounts(self.n_rows, wide, self.label, feature, self.pair)

    def __add__(self, other: "ChainCounts") -> "ChainCounts":
        if not isinstance(other, ChainCounts):
            return NotImplemented
        _check_same_shape(self, other, "added to")
        return ChainCounts(
            self.n_rows + other.n_rows,
            self.n_categories,
            self.label + other.label,
            self.feature + other.feature,
            self.pair + other.pair,
        )

    def __radd__(self, other: object) -> "ChainCounts":
        """So that ``sum`` works, which starts from 0."""
        return self if other == 0 else NotImplemented

    def __sub__(self, other: "ChainCounts") -> "ChainCounts":
        if not isinstance(other, ChainCounts):
            return NotImplemented
        _check_same_shape(self, other, "subtracted from")
        return ChainCounts(
            self.n_rows - other.n_rows,
            self.n_categories,
            self.label - other.label,
            self.feature - other.feature,
            self.pair - other.pair,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ChainCounts):
            return NotImplemented
        return self.n_rows == other.n_rows and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in _ARRAYS
        )

    __hash__ = None  # type: ignore[assignment]


_ARRAYS = ("n_categories", "label", "feature", "pair")


def count(codes: Codes, Y: NDArray[np.int8], n_categories: IntArray) -> ChainCounts:
    """Count ``codes`` (inside convention) with labels ``Y`` (-1 = missing)."""
    n_rows, n_labels = Y.shape
    lanes = np.stack([Y == 0, Y == 1], axis=-1).reshape(n_rows, 2 * n_labels).astype(np.int64)
    label = lanes.sum(axis=0)
    offsets = np.cumsum(n_categories) - n_categories
    feature = np.zeros((int(n_categories.sum()), 2 * n_labels), dtype=np.int64)
    if isinstance(codes, DenseCodes):
        _kernels.count_codes(codes.values, n_categories, offsets, lanes, feature)
    else:
        feature[offsets] = label
        _kernels.count_sparse_codes(
            codes.indptr, codes.indices, codes.values, n_categories, offsets, lanes, feature
        )
    return ChainCounts(
        n_rows,
        n_categories,
        label.reshape(n_labels, 2),
        feature.reshape(-1, n_labels, 2),
        _count_pairs(lanes).reshape(n_labels, 2, n_labels, 2),
    )


def _count_pairs(lanes: IntArray) -> IntArray:
    """Lanes times lanes. Whole numbers below 2**53 add exactly in floating point."""
    pairs = np.zeros((lanes.shape[1], lanes.shape[1]))
    for start in range(0, len(lanes), 65536):
        block = lanes[start : start + 65536].astype(np.float64)
        pairs += block.T @ block
    return pairs.astype(np.int64)


def _check_same_shape(left: ChainCounts, right: ChainCounts, verb: str) -> None:
    if left.n_labels != right.n_labels:
        raise ValueError(
            f"counts of {right.n_labels} labels cannot be {verb} counts of {left.n_labels}."
        )
    if not np.array_equal(left.n_categories, right.n_categories):
        raise ValueError(
            f"counts with n_categories {right.n_categories.tolist()} cannot be {verb} counts "
            f"with n_categories {left.n_categories.tolist()}; make them equal with widened()."
        )


def _check(counts: ChainCounts) -> None:
    """Refuse what cannot be the counts of any data set, before a kernel sees it."""
    for name in _ARRAYS:
        array = getattr(counts, name)
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "iu":
            got = getattr(array, "dtype", type(array).__name__)
            raise ValueError(f"counts.{name} must be an integer array, got {got}.")
        object.__setattr__(counts, name, np.ascontiguousarray(array, dtype=np.int64))
    if isinstance(counts.n_rows, bool) or not isinstance(counts.n_rows, (int, np.integer)):
        raise ValueError(f"counts.n_rows must be a whole number, got {counts.n_rows!r}.")
    object.__setattr__(counts, "n_rows", int(counts.n_rows))
    _check_shapes(counts)
    _check_ranges(counts)
    _check_sums(counts)


def _check_shapes(counts: ChainCounts) -> None:
    if counts.n_categories.ndim != 1 or (counts.n_categories < 1).any():
        raise ValueError("counts.n_categories must be one number, at least 1, per feature.")
    if counts.label.ndim != 2 or counts.label.shape[1] != 2 or len(counts.label) == 0:
        raise ValueError(f"counts.label must have shape (m, 2), got {counts.label.shape}.")
    m = len(counts.label)
    expected = {"feature": (int(counts.n_categories.sum()), m, 2), "pair": (m, 2, m, 2)}
    for name, shape in expected.items():
        got = getattr(counts, name).shape
        if got != shape:
            raise ValueError(f"counts.{name} must have shape {shape}, got {got}.")


def _check_ranges(counts: ChainCounts) -> None:
    if not 0 <= counts.n_rows < _LIMIT:
        raise ValueError(f"counts.n_rows must be between 0 and 2**53, got {counts.n_rows}.")
    for name in ("label", "feature", "pair"):
        array = getattr(counts, name)
        if array.size and array.min() < 0:
            raise ValueError(f"counts.{name} holds the negative count {array.min()}.")
        if array.size and array.max() > counts.n_rows:
            raise ValueError(
                f"counts.{name} holds {array.max()}, more than the {counts.n_rows} rows counted."
            )


def _check_sums(counts: ChainCounts) -> None:
    m = counts.n_labels
    most = max(int(a.max()) for a in (counts.feature, counts.pair, counts.label) if a.size)
    if most * max(2, int(counts.n_categories.max(initial=0))) >= 2**62:  # sums would wrap around
        raise ValueError("counts are too large for so many categories.")
    if (counts.label.sum(axis=1) > counts.n_rows).any():
        raise ValueError("counts.label has a label with more values than rows counted.")
    if (counts.feature_totals() > counts.label).any():
        raise ValueError("counts.feature has a feature with more values than its label has rows.")
    if not np.array_equal(counts.pair, counts.pair.transpose(2, 3, 0, 1)):
        raise ValueError("counts.pair must be symmetric: pair[k, b, j, a] == pair[j, a, k, b].")
    if (counts.pair.sum(axis=1) > counts.label).any():
        raise ValueError("counts.pair has a pair with more values than its label has rows.")
    own = counts.pair[np.arange(m), :, np.arange(m), :]
    if not np.array_equal(own, counts.label[:, :, None] * np.eye(2, dtype=np.int64)):
        raise ValueError("counts.pair[j, :, j, :] must hold counts.label[j] on its diagonal.")


def as_counts(counts: Any) -> ChainCounts:
    """Counts, checked again: a frozen dataclass can hold arrays that were changed."""
    if not isinstance(counts, ChainCounts):
        raise TypeError(f"counts must be ChainCounts, got {type(counts).__name__}.")
    _check(counts)
    return counts
