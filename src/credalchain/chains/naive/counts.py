"""The counts that are the whole model, and their arithmetic."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.array_types import IntArray
from credalchain._utils.text import plural
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
from credalchain.labels import MISSING, as_labels
from credalchain.preprocessing import Discretizer
from credalchain.typing import MatrixLike

_LIMIT = 2**53  # beyond this a count is not exact as a float
_ROWS_AT_ONCE = 2**14
_MANY_PAIRS = 2**26  # of labels, over all rows


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
    def unchecked(
        cls, n_rows: int, *arrays: NDArray[Any], totals: NDArray[Any] | None = None
    ) -> "ChainCounts":
        """Counts from trusted arrays, without validation; ``arrays`` in the order above.

        ``totals`` is ``feature_totals``, if it is known already.
        """
        self = object.__new__(cls)
        vars(self).update({"n_rows": n_rows, **dict(zip(_ARRAYS, arrays, strict=True))})
        if totals is not None:
            vars(self)["feature_totals"] = totals
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
        from credalchain.chains.naive import counting_kernels as kernels  # imports numba

        lanes = 2 * self.n_labels
        totals = np.zeros((self.n_features, lanes), dtype=self.feature.dtype)
        kernels.sum_categories(self.n_categories, self.feature.reshape(-1, lanes), totals)
        return totals.reshape(-1, self.n_labels, 2)

    @staticmethod
    def sum_unchecked(parts: "list[ChainCounts]") -> "ChainCounts":
        """The sum of counts of the same categories and labels, without validation."""
        n_rows = sum(part.n_rows for part in parts)
        label, feature, pair = (
            _total([getattr(part, name) for part in parts], dtype)
            for name, dtype in zip(
                _ARRAYS[1:], (np.int64, _count_dtype(n_rows), _count_dtype(n_rows)), strict=True
            )
        )
        totals = _total([part.feature_totals for part in parts], _count_dtype(n_rows))
        return ChainCounts.unchecked(
            n_rows, parts[0].n_categories, label, feature, pair, totals=totals
        )

    def subtract_unchecked(self, part: "ChainCounts") -> "ChainCounts":
        """These counts minus those of a subset of their rows, without validation."""
        return ChainCounts.unchecked(
            self.n_rows - part.n_rows,
            self.n_categories,
            *(getattr(self, name) - getattr(part, name) for name in _ARRAYS[1:]),
            totals=self.feature_totals - part.feature_totals,
        )

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
        return ChainCounts(
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


def _total(arrays: list[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    """The sum of arrays, without stacking copies."""
    total = arrays[0].astype(dtype)
    for array in arrays[1:]:
        total += array
    return total


def count(codes: Codes, Y: NDArray[np.int8], n_categories: IntArray) -> ChainCounts:
    """Count table codes with labels ``Y`` (-1 = missing)."""
    n_rows, n_labels = Y.shape
    n_lanes = 2 * n_labels
    label = np.stack([np.sum(a == Y, axis=0) for a in (0, 1)], axis=1)
    n_table_rows, offsets = table_rows(n_categories, codes.has_unseen)
    feature = np.zeros((int(n_table_rows.sum()), n_lanes), dtype=_count_dtype(n_rows))
    _count_features(codes, Y, offsets, feature)
    if isinstance(codes, SparseCodes):
        from credalchain.chains.naive import counting_kernels as kernels  # imports numba

        kernels.count_zeros(offsets, n_table_rows, label.astype(feature.dtype).ravel(), feature)
    if codes.has_unseen:  # rows of codes that are in no category
        feature = feature[_category_rows(n_categories, offsets)]
    totals = None
    if not codes.has_unseen:  # every row is in some category of every feature
        totals = np.repeat(label[None].astype(feature.dtype), len(n_categories), axis=0)
    return ChainCounts.unchecked(
        n_rows,
        n_categories,
        label,
        feature.reshape(-1, n_labels, 2),
        _count_pairs(Y, label, feature.dtype),
        totals=totals,
    )


def _count_features(
    codes: Codes, Y: NDArray[np.int8], offsets: IntArray, feature: NDArray[Any]
) -> None:
    """Count codes into ``feature`` in place, some rows at a time.

    16-bit counters for sparse codes or few lanes, else 8-bit.
    """
    from credalchain.chains.naive import counting_kernels as kernels  # imports numba

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


def _count_pairs(Y: NDArray[np.int8], label: IntArray, dtype: Any) -> NDArray[Any]:
    """(m, 2, m, 2): as if labels were features, unless there is much to count."""
    n_rows, m = Y.shape
    if n_rows * m * m >= _MANY_PAIRS:
        return _multiply_pairs(Y, label).astype(dtype)
    values = np.where(Y == MISSING, 2, Y).astype(np.uint8)  # a third category for missing labels
    offsets = 3 * np.arange(m)
    pair = np.zeros((3 * m, 2 * m), dtype=dtype)
    _count_features(DenseCodes(values, offsets, has_unseen=True), Y, offsets, pair)
    return np.ascontiguousarray(pair.reshape(m, 3, m, 2)[:, :2])


def _multiply_pairs(Y: NDArray[np.int8], label: IntArray) -> IntArray:
    """The same from products of 0/1 matrices, which are exact in single precision below 2**24.

    Faster for many labels; for few, the overhead of BLAS threads outweighs the gain.
    """
    m = Y.shape[1]
    pair = np.zeros((m, 2, m, 2), dtype=np.int64)
    ones = _products(Y == 1, Y == 1)
    pair[:, 1, :, 1] = ones
    if label.sum() == Y.size:  # nothing missing: the other counts follow
        pair[:, 1, :, 0] = label[:, 1, None] - ones
        pair[:, 0, :, 1] = label[:, 1] - ones
        pair[:, 0, :, 0] = label[:, 0] - pair[:, 1, :, 0]
        return pair
    zeros_with_ones = _products(Y == 0, Y == 1)
    pair[:, 0, :, 1] = zeros_with_ones
    pair[:, 1, :, 0] = zeros_with_ones.T
    pair[:, 0, :, 0] = _products(Y == 0, Y == 0)
    return pair


def _products(left: NDArray[np.bool_], right: NDArray[np.bool_]) -> IntArray:
    total = np.zeros((left.shape[1], right.shape[1]), dtype=np.int64)
    for start in range(0, len(left), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        total += (left[rows].T.astype(np.float32) @ right[rows].astype(np.float32)).astype(np.int64)
    return total


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
    """Refuse arrays that cannot be the counts of any data set, before a kernel sees them."""
    vars(counts).pop("feature_totals", None)  # of arrays that may have been changed since
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
    for name in ("feature", "pair"):
        object.__setattr__(counts, name, getattr(counts, name).astype(_count_dtype(counts.n_rows)))


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
                f"counts.{name} holds {array.max()}, more than the "
                f"{plural(counts.n_rows, 'row')} counted."
            )


def _check_sums(counts: ChainCounts) -> None:
    m = counts.n_labels
    most = max(int(a.max()) for a in (counts.feature, counts.pair, counts.label) if a.size)
    if most * max(2, int(counts.n_categories.max(initial=0))) >= 2**62:  # sums would wrap around
        raise ValueError("counts are too large for so many categories.")
    if (counts.label.sum(axis=1) > counts.n_rows).any():
        raise ValueError("counts.label has a label with more values than rows counted.")
    if (counts.feature_totals > counts.label).any():
        raise ValueError("counts.feature has a feature with more values than its label has rows.")
    if not np.array_equal(counts.pair, counts.pair.transpose(2, 3, 0, 1)):
        raise ValueError("counts.pair must be symmetric: pair[k, b, j, a] == pair[j, a, k, b].")
    if (counts.pair.sum(axis=1) > counts.label).any():
        raise ValueError("counts.pair has a pair with more values than its label has rows.")
    diagonal = counts.pair[np.arange(m), :, np.arange(m), :]
    if not np.array_equal(diagonal, counts.label[:, :, None] * np.eye(2, dtype=np.int64)):
        raise ValueError("counts.pair[j, :, j, :] must hold counts.label[j] on its diagonal.")


def as_counts(counts: Any) -> ChainCounts:
    """Counts, checked again: a frozen dataclass can hold arrays that were changed."""
    if not isinstance(counts, ChainCounts):
        raise TypeError(f"counts must be ChainCounts, got {type(counts).__name__}.")
    _check(counts)
    return counts
