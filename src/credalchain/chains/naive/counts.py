"""The counts that are the whole model, and their arithmetic."""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from credalchain._utils.array_types import IntArray
from credalchain._utils.text import plural
from credalchain._utils.validation import check_int
from credalchain.chains.naive.codes import (
    Codes,
    DenseCodes,
    SparseCodes,
    aligned,
    as_codes,
    infer_n_categories,
    table_rows,
    validate_codes,
)
from credalchain.chunks.columns import Summary, learn_bins, summarize
from credalchain.chunks.sources import check_same_labels, label_names
from credalchain.labels import as_labels, holds_minus_one, minus_one_message
from credalchain.preprocessing import Discretizer, as_indexable
from credalchain.typing import Chunks, MatrixLike

SAMPLE_SIZE = 100_000  # rows that bins are learned from, in data in chunks
_LIMIT = 2**53  # beyond this a count is not exact as a float
_ROWS_AT_ONCE = 2**14


def _count_dtype(n_rows: int) -> Any:
    """The type of counts of so many rows: half the memory, for all but the largest data."""
    return np.int32 if n_rows < 2**31 else np.int64


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

    @classmethod
    def from_rows(
        cls, X: MatrixLike, Y: NDArray[np.int8], discretizer: Discretizer | None = None
    ) -> "ChainCounts":
        """Count rows; counts of several tables with the same discretizer add up.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n, p)
            Codes, or whatever the discretizer takes.
        Y : label matrix of shape (n, m), as :func:`credalchain.as_labels` reads it
        discretizer : fitted discretizer with ``n_categories_``, optional
            Without one, X holds codes, and each feature has as many categories as its largest
            code says: make counts of several tables equal with ``widened``.

        Examples
        --------
        >>> from credalchain import ChainCounts, CredalChainClassifier, Discretizer
        >>> X, Y = [[0.1], [0.9], [0.4], [0.8]], [[0, 1], [1, 0], [0, 1], [1, None]]
        >>> bins = Discretizer(n_bins=2).fit(X)
        >>> parts = [ChainCounts.from_rows(X[i : i + 2], Y[i : i + 2], bins) for i in (0, 2)]
        >>> chain = CredalChainClassifier.from_counts(sum(parts), discretizer=bins, s=0.1)
        >>> chain.predict([[0.2]])
        array([[0, 1]])
        """
        codes = validate_codes(X) if discretizer is None else discretizer.transform(X)
        labels = as_labels(Y, require_zero=False)
        if codes.ndim != 2 or codes.shape[0] != len(labels):
            raise ValueError(
                f"X and Y must have the same rows, got shapes {codes.shape} and {labels.shape}."
            )
        if discretizer is None:
            n_categories = infer_n_categories(codes)
            return count(as_codes(codes, n_categories, in_range=True), labels, n_categories)
        n_categories = np.asarray(discretizer.n_categories_, dtype=np.int64)
        return count(as_codes(codes, n_categories), labels, n_categories)

    @classmethod
    def unchecked(cls, n_rows: int, *arrays: NDArray[Any]) -> "ChainCounts":
        """Counts from trusted arrays, without validation; ``arrays`` in the order above."""
        self = object.__new__(cls)
        vars(self).update({"n_rows": n_rows, **dict(zip(_ARRAYS, arrays, strict=True))})
        return self

    @property
    def n_features(self) -> int:
        return len(self.n_categories)

    @property
    def n_labels(self) -> int:
        return len(self.label)

    def offsets(self) -> IntArray:
        """The first row of each feature in ``feature``."""
        return np.cumsum(self.n_categories) - self.n_categories

    @cached_property
    def feature_totals(self) -> NDArray[Any]:
        """D: (p, m, 2), the sum of the counts over the categories of each feature."""
        if not self.n_features:
            return self.feature
        return np.add.reduceat(self.feature, self.offsets(), axis=0, dtype=self.feature.dtype)

    def widened(self, n_categories: IntArray) -> "ChainCounts":
        """The same counts with at least ``n_categories`` categories per feature."""
        wide = np.maximum(self.n_categories, n_categories)
        if np.array_equal(wide, self.n_categories):
            return self
        feature = np.zeros((int(wide.sum()), self.n_labels, 2), dtype=self.feature.dtype)
        feature[_category_rows(self.n_categories, np.cumsum(wide) - wide)] = self.feature
        return ChainCounts(self.n_rows, wide, self.label, feature, self.pair)

    def __add__(self, other: "ChainCounts") -> "ChainCounts":
        if not isinstance(other, ChainCounts):
            return NotImplemented
        _check_same_shape(self, other, "added to")
        n_rows = self.n_rows + other.n_rows
        large = _count_dtype(n_rows)
        return ChainCounts.unchecked(
            n_rows,
            self.n_categories,
            self.label + other.label,
            np.add(self.feature, other.feature, dtype=large),
            np.add(self.pair, other.pair, dtype=large),
        )

    def __radd__(self, other: object) -> "ChainCounts":
        """So that ``sum`` works, which starts from 0."""
        return self if other == 0 else NotImplemented

    def __sub__(self, other: "ChainCounts") -> "ChainCounts":
        if not isinstance(other, ChainCounts):
            return NotImplemented
        _check_same_shape(self, other, "subtracted from")
        differences = [getattr(self, name) - getattr(other, name) for name in _ARRAYS[1:]]
        return ChainCounts(self.n_rows - other.n_rows, self.n_categories, *differences)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ChainCounts):
            return NotImplemented
        return self.n_rows == other.n_rows and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in _ARRAYS
        )

    __hash__ = None  # type: ignore[assignment]


_ARRAYS = ("n_categories", "label", "feature", "pair")


def count(codes: Codes, Y: NDArray[np.int8], n_categories: IntArray) -> ChainCounts:
    """Count table codes with labels ``Y`` (-1 = missing)."""
    n_rows, n_labels = Y.shape
    n_lanes = 2 * n_labels
    label = np.stack([np.sum(a == Y, axis=0) for a in (0, 1)], axis=1)
    n_table_rows, offsets = table_rows(n_categories, codes.has_unseen)
    feature = np.zeros((int(n_table_rows.sum()), n_lanes), dtype=_count_dtype(n_rows))
    _count_features(codes, Y, offsets, feature)
    if isinstance(codes, SparseCodes):  # code 0: all rows less those counted for another code
        others = np.add.reduceat(feature, offsets, axis=0, dtype=feature.dtype)
        feature[offsets] += label.ravel().astype(feature.dtype) - others
    if codes.has_unseen:  # rows of codes that are in no category
        feature = feature[_category_rows(n_categories, offsets)]
    return ChainCounts.unchecked(
        n_rows,
        n_categories,
        label,
        feature.reshape(-1, n_labels, 2),
        _count_pairs(Y, feature.dtype),
    )


def _count_features(
    codes: Codes, Y: NDArray[np.int8], offsets: IntArray, feature: NDArray[Any]
) -> None:
    """Count codes into ``feature`` in place, some rows at a time.

    16-bit counters for sparse codes or few lanes, else 8-bit.
    """
    from credalchain.chains.naive import kernels  # imports numba

    few_lanes = feature.shape[1] <= 16
    counter: Any = np.uint16 if isinstance(codes, SparseCodes) or few_lanes else np.uint8
    per_block = 4 * 8 // np.dtype(counter).itemsize
    n_blocks = -(-feature.shape[1] // per_block)
    packed = aligned((n_blocks, len(feature), 4), np.uint64)
    lanes = packed.view(counter)
    limit = int(np.iinfo(counter).max)
    for first in range(0, len(Y), _ROWS_AT_ONCE):
        words = _words(Y[first : first + _ROWS_AT_ONCE], counter, n_blocks * per_block)
        if isinstance(codes, DenseCodes):
            kernels.count_codes(codes.values, first, offsets, words, limit, packed, lanes, feature)
        else:
            kernels.count_sparse_codes(
                codes.indptr, codes.entries, first, words, limit, packed, lanes, feature
            )


def _words(Y: NDArray[np.int8], counter: Any, n_lanes: int) -> NDArray[np.uint64]:
    """(rows, blocks, 4): 1 in the lane of each label's class, viewed as 64-bit words."""
    lanes = np.zeros((len(Y), n_lanes), dtype=counter)
    for a in (0, 1):
        np.equal(Y, a, out=lanes[:, a : 2 * Y.shape[1] : 2], casting="unsafe")
    return lanes.view(np.uint64).reshape(len(Y), -1, 4)


def _category_rows(n_categories: IntArray, offsets: IntArray) -> IntArray:
    """The rows of categories, where unseen and missing rows follow each feature."""
    starts = np.cumsum(n_categories) - n_categories
    return np.repeat(offsets - starts, n_categories) + np.arange(int(n_categories.sum()))


def _count_pairs(Y: NDArray[np.int8], dtype: Any) -> NDArray[Any]:
    """(m, 2, m, 2), from products of 0/1 matrices: exact in single precision below 2**24."""
    m = Y.shape[1]
    pair = np.zeros((2 * m, 2 * m), dtype=dtype)
    for start in range(0, len(Y), _ROWS_AT_ONCE):
        is_class = Y[start : start + _ROWS_AT_ONCE, :, None] == np.array([0, 1], np.int8)
        lanes = is_class.reshape(-1, 2 * m).astype(np.float32)
        pair += (lanes.T @ lanes).astype(dtype)
    return pair.reshape(m, 2, m, 2)


def _check_same_shape(left: ChainCounts, right: ChainCounts, verb: str) -> None:
    if left.n_labels != right.n_labels:
        raise ValueError(
            f"counts of {plural(right.n_labels, 'label')} cannot be {verb} counts of "
            f"{left.n_labels}."
        )
    if not np.array_equal(left.n_categories, right.n_categories):
        raise ValueError(
            f"counts with n_categories {right.n_categories.tolist()} cannot be {verb} counts "
            f"with n_categories {left.n_categories.tolist()}; make them equal with widened()."
        )


def _check(counts: ChainCounts) -> None:
    """Raise for arrays that cannot be the counts of any data set, before a kernel sees them."""
    vars(counts).pop("feature_totals", None)  # of arrays that may have been changed since
    for name in _ARRAYS:
        array = getattr(counts, name)
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "iu":
            got = getattr(array, "dtype", type(array).__name__)
            raise ValueError(f"counts.{name} must be an integer array, got {got}.")
        object.__setattr__(counts, name, np.ascontiguousarray(array, dtype=np.int64))
    check_int("counts.n_rows", counts.n_rows, 0, _LIMIT)
    object.__setattr__(counts, "n_rows", int(counts.n_rows))
    if counts.n_categories.ndim != 1 or (counts.n_categories < 1).any():
        raise ValueError("counts.n_categories must be one number, at least 1, per feature.")
    if counts.label.ndim != 2 or counts.label.shape[1] != 2 or len(counts.label) == 0:
        raise ValueError(f"counts.label must have shape (m, 2), got {counts.label.shape}.")
    m = counts.n_labels
    shapes = ((m, 2), (int(counts.n_categories.sum()), m, 2), (m, 2, m, 2))
    for name, shape in zip(_ARRAYS[1:], shapes, strict=True):
        array = getattr(counts, name)
        if array.shape != shape:
            raise ValueError(f"counts.{name} must have shape {shape}, got {array.shape}.")
        if array.size and array.min() < 0:
            raise ValueError(f"counts.{name} holds the negative count {array.min()}.")
        if array.size and array.max() > counts.n_rows:
            raise ValueError(
                f"counts.{name} holds {array.max()}, more than the "
                f"{plural(counts.n_rows, 'row')} counted."
            )
    _check_sums(counts)
    for name in ("feature", "pair"):
        object.__setattr__(counts, name, getattr(counts, name).astype(_count_dtype(counts.n_rows)))


def _check_sums(counts: ChainCounts) -> None:
    most = max(int(getattr(counts, name).max(initial=0)) for name in _ARRAYS[1:])
    if most * max(2, int(counts.n_categories.max(initial=0))) >= 2**62:  # sums would wrap around
        raise ValueError("counts are too large for so many categories.")
    diagonal = counts.pair[np.arange(counts.n_labels), :, np.arange(counts.n_labels), :]
    expected = counts.label[:, :, None] * np.eye(2, dtype=np.int64)
    contradictions = {
        "label has a label with more values than rows counted": counts.label.sum(axis=1)
        > counts.n_rows,
        "feature has a feature with more values than its label has rows": counts.feature_totals
        > counts.label,
        "pair must be symmetric: pair[k, b, j, a] == pair[j, a, k, b]": counts.pair
        != counts.pair.transpose(2, 3, 0, 1),
        "pair has a pair with more values than its label has rows": counts.pair.sum(axis=1)
        > counts.label,
        "pair[j, :, j, :] must hold counts.label[j] on its diagonal": diagonal != expected,
    }
    for message, found in contradictions.items():
        if found.any():
            raise ValueError(f"counts.{message}.")


def as_counts(counts: Any) -> ChainCounts:
    """Counts, checked again: a frozen dataclass can hold arrays that were changed."""
    if not isinstance(counts, ChainCounts):
        raise TypeError(f"counts must be ChainCounts, got {type(counts).__name__}.")
    _check(counts)
    return counts


# -- rows in chunks: bins first, then a sum -------------------------------------------------


@dataclass(frozen=True)
class ChunkCounts:
    """Counts of some chunks, and the names of their labels.

    ``holds_minus_one``: whether missing labels are written as -1.
    """

    names: tuple[str, ...] | None
    counts: ChainCounts
    chunk: str
    holds_minus_one: bool = False

    @property
    def n_labels(self) -> int:
        return self.counts.n_labels

    def __add__(self, other: "ChunkCounts") -> "ChunkCounts":
        check_same_labels(self, other)
        wide = np.maximum(self.counts.n_categories, other.counts.n_categories)
        total = self.counts.widened(wide) + other.counts.widened(wide)
        return ChunkCounts(
            self.names, total, self.chunk, self.holds_minus_one or other.holds_minus_one
        )


def count_chunks(
    chunks: Chunks, discretizer: Any, sample_size: int = SAMPLE_SIZE
) -> tuple[ChunkCounts, Any, str]:
    """Learn bins where that is asked for, then count all rows.

    Parameters
    ----------
    chunks : Chunks
    discretizer : Discretizer, any fitted discretizer, or None
        An unfitted Discretizer is learned from a sample of rows; None: X holds codes.
    sample_size : int
        Rows from which the bins of numeric columns are learned: those with the smallest hashes
        of their numbers, all if there are not more. Categories are those of all rows.

    Returns
    -------
    counts : ChunkCounts of all chunks
    discretizer : the fitted one, or None
    source : str
        Where bins come from, in words.
    """
    source = "X holds codes" if discretizer is None else "bins were given"
    if isinstance(discretizer, Discretizer) and not hasattr(discretizer, "binnings_"):
        limit = chunks.hash_limit(sample_size)
        summary: Summary = chunks.reduce(
            _summary, limit, trim=partial(Summary.trimmed, size=sample_size)
        )
        discretizer = learn_bins(summary, discretizer.n_bins)
        n_rows, n_sampled = summary.n_rows, len(summary.hashes)
        used = "all" if n_sampled == n_rows else f"{n_sampled} of"
        source = f"bins learned from {used} {plural(n_rows, 'row')}"
    elif discretizer is not None:
        check_is_fitted(discretizer)
    total: ChunkCounts = chunks.reduce(_counts, discretizer, numbered=False)
    if total.counts.n_rows == 0:
        raise ValueError("X must have at least one row, got none in all chunks.")
    any_no, any_yes = (bool(column.any()) for column in total.counts.label.T)
    if total.holds_minus_one and any_yes and not any_no:
        raise ValueError(minus_one_message())
    return total, discretizer, source


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
