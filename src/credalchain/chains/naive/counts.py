"""From codes to counts, which are the whole model, and their arithmetic.

Input codes are 0..K-1, -1 for missing, anything else for a category never seen. Table codes are
0..K-1, K for never seen, K + 1 for missing, so that a code is always a valid table row.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from credalchain._utils.array_types import IntArray
from credalchain._utils.text import plural
from credalchain._utils.validation import check_int
from credalchain.chunks.columns import Summary, learn_bins, summarize
from credalchain.chunks.sources import check_same_labels, label_names
from credalchain.labels import as_labels, holds_minus_one, is_missing, minus_one_message
from credalchain.preprocessing import MISSING_CODE, Discretizer, as_indexable
from credalchain.typing import Chunks, MatrixLike

NEVER_SEEN, SAYS_NOTHING = -1, -2  # in place of the row in which an observation was counted
NO_DATA = -1  # in place of a count of 0, where the counts of all categories are 0
_CACHE_LINE = 64  # bytes
_MAX_CATEGORIES = 1_000_000
SAMPLE_SIZE = 100_000  # rows that bins are learned from, in data in chunks
_LIMIT = 2**53  # beyond this a count is not exact as a float
_ROWS_AT_ONCE = 2**14


def aligned(shape: tuple[int, ...], dtype: Any = np.int64) -> NDArray[Any]:
    """Return an uninitialised array that starts at a cache line.

    A table row that straddles lines costs one load in three.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    buffer = np.empty(size + _CACHE_LINE, dtype=np.uint8)
    start = -buffer.__array_interface__["data"][0] % _CACHE_LINE
    return np.asarray(buffer[start : start + size].view(dtype).reshape(shape))


def table_rows(n_categories: IntArray, has_unseen: bool) -> tuple[IntArray, IntArray]:
    """Count the table rows of each feature, and find its first one.

    Unseen and missing codes have rows only if any code is unseen or missing.
    """
    n_rows = n_categories + (2 if has_unseen else 0)
    return n_rows, np.cumsum(n_rows) - n_rows


def rows_of_other_codes(n_categories: IntArray, has_unseen: bool) -> IntArray:
    """Return the table rows of all codes but 0."""
    n_rows, offsets = table_rows(n_categories, has_unseen)
    return np.delete(np.arange(int(n_rows.sum())), offsets)


@dataclass(frozen=True)
class Codes:
    """Codes of n rows; ``offsets[i]`` is the table row of code 0 of feature i.

    ``entries`` (n, p) are table codes. If they are sparse, a CSR array stores codes other than 0,
    as rows of a table without the rows of code 0, see ``rows_of_other_codes``. ``has_unseen``:
    whether any code is unseen or missing.
    """

    entries: Any
    offsets: IntArray
    has_unseen: bool
    is_sparse: bool

    @property
    def shape(self) -> Any:
        return self.entries.shape

    def __getitem__(self, rows: slice) -> "Codes":
        return replace(self, entries=self.entries[rows])

    def compacted(self, n_categories: IntArray) -> tuple["Codes", IntArray | None]:
        """Return sparse codes for a table of the rows that occur here, and these rows."""
        if not self.is_sparse:
            return self, None
        rows, entries = rows_of_other_codes(n_categories, self.has_unseen), self.entries.copy()
        needed = np.zeros(len(rows), dtype=bool)
        needed[entries.data] = True
        entries.data = (np.cumsum(needed) - 1).astype(entries.dtype)[entries.data]
        return replace(self, entries=entries), rows[needed]

    def row(self, index: int) -> IntArray:
        """Return the table codes of one row, (p,)."""
        if not self.is_sparse:
            return np.asarray(self.entries[index], dtype=np.int64)
        codes, stored = np.zeros(len(self.offsets), dtype=np.int64), self.entries[[index]]
        features = stored.indices
        codes[features] = stored.data + features + 1 - self.offsets[features]
        return codes


def as_codes(codes: Any, n_categories: IntArray) -> Codes:
    """Return input codes (dense array or scipy sparse) as table codes."""
    limits, is_sparse = n_categories.astype(np.int32), sparse.issparse(codes)
    if is_sparse:
        matrix = codes.tocsr()
        if not matrix.has_canonical_format or (matrix.data == 0).any():
            matrix = matrix.copy()
            matrix.sum_duplicates()
            matrix.eliminate_zeros()  # stored or not, code 0 is code 0
        codes, limits = matrix.data, limits[matrix.indices]
    raw = np.asarray(codes)
    is_outside = raw >= limits
    if raw.min(initial=0) < 0:
        is_outside |= raw < 0
    has_unseen = bool(is_outside.any())
    if has_unseen:
        raw = np.where(is_outside, limits + (raw == MISSING_CODE), raw)
    sizes, offsets = table_rows(n_categories, has_unseen)
    if not is_sparse:
        small: Any = np.uint8 if n_categories.max(initial=0) + 1 <= 255 else np.int32
        return Codes(np.ascontiguousarray(raw, dtype=small), offsets, has_unseen, False)
    small = np.int32 if sizes.sum() < 2**31 else np.int64
    first = (offsets - np.arange(1, len(offsets) + 1)).astype(small)  # of code 0, which has no row
    entries = np.add(raw, first[matrix.indices], dtype=small, casting="unsafe")
    stored = entries, matrix.indices, matrix.indptr
    return Codes(sparse.csr_array(stored, shape=matrix.shape), offsets, has_unseen, True)


def encode_input(X: Any, discretizer: Any) -> Any:
    """Encode checked input with a fitted discretizer or, if None, take X itself as codes."""
    if discretizer is None:
        return validate_codes(X)
    if isinstance(discretizer, Discretizer):
        return discretizer.encode(X)  # X was checked when the classifier read it
    return discretizer.transform(X)


def validate_codes(X: Any) -> Any:
    """Validate input that is codes already: integers, or whole floats with NaN for missing."""
    stored = X.data if sparse.issparse(X) else np.asarray(X)
    if stored.dtype.kind in "iu":
        return X.tocsr() if sparse.issparse(X) else stored
    message = "X must hold whole category codes where the base has discretizer=None, got "
    if stored.dtype == object:
        stored = _objects_as_floats(stored)
    if stored.dtype.kind not in "bf":
        raise ValueError(f"{message}values of dtype {stored.dtype}.")
    whole = np.where(np.isnan(stored), float(MISSING_CODE), stored)
    invalid = (np.abs(whole) > 2**53) | (whole != np.rint(whole))
    if invalid.any():
        raise ValueError(f"{message}{whole[invalid][0]}.")
    codes = whole.astype(np.int64)
    if not sparse.issparse(X):
        return codes
    matrix = X.tocsr()
    return type(matrix)((codes, matrix.indices, matrix.indptr), shape=matrix.shape)


def _objects_as_floats(values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers with None or pd.NA among them as floats; anything else unchanged."""
    try:
        cells = [
            np.nan if is_missing(cell) else float(cell)
            for cell in values.ravel().tolist()
            if not isinstance(cell, str)
        ]
        return np.array(cells).reshape(values.shape)
    except (TypeError, ValueError):
        return values


def infer_n_categories(codes: Any) -> IntArray:
    """Return 1 + the largest code seen, at least 1, of each feature."""
    if sparse.issparse(codes):
        matrix = codes.tocsr()
        largest = np.zeros(matrix.shape[1], dtype=matrix.dtype)
        np.maximum.at(largest, matrix.indices, matrix.data)
    else:
        largest = codes.max(axis=0, initial=0)
    n_categories: IntArray = np.maximum(largest.astype(np.int64), 0) + 1
    if (n_categories > _MAX_CATEGORIES).any():
        feature = int(n_categories.argmax())
        raise ValueError(
            f"X holds the code {n_categories[feature] - 1} in column {feature}; with "
            f"discretizer=None codes must be below {_MAX_CATEGORIES}."
        )
    return n_categories


def _count_dtype(n_rows: int) -> Any:
    """Return the type of counts of so many rows: half the memory, for all but the largest data."""
    return np.int32 if n_rows < 2**31 else np.int64


@dataclass(frozen=True, eq=False)
class ChainCounts:
    """Counts from which a naive credal chain is computed.

    Counts of two data sets can be added and those of a fold subtracted, and the same counts serve
    any s, label order and strategy.

    Parameters
    ----------
    n_rows : int
        Number of rows counted.
    n_categories : ndarray of int, shape (n_features,)
        Declared number of categories K_i of each feature.
    label : ndarray of int, shape (n_labels, 2)
        Number of rows with y_j = a, in ``label[j, a]``.
    feature : ndarray of int, shape (sum of K, n_labels, 2)
        Number of rows with y_j = a and the feature and category that row r stands for, in
        ``feature[r, j, a]``; the K_0 categories of feature 0 come first.
    pair : ndarray of int, shape (n_labels, 2, n_labels, 2)
        Number of rows with y_k = b and y_j = a, in ``pair[k, b, j, a]``.

    See Also
    --------
    CredalChainClassifier.from_counts : A classifier from counts.

    Examples
    --------
    >>> from credalchain import ChainCounts
    >>> first = ChainCounts.from_rows([[0], [1]], [[0, 1], [1, 1]])
    >>> second = ChainCounts.from_rows([[1], [1]], [[1, 0], [1, None]])
    >>> both = first + second
    >>> both.n_rows, both.label.tolist()
    (4, [[1, 3], [1, 2]])
    >>> (both - second).label.tolist() == first.label.tolist()
    True
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
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Codes, or whatever the discretizer takes.
        Y : array-like of shape (n_samples, n_labels)
            Labels, as :func:`credalchain.as_labels` reads them.
        discretizer : fitted discretizer with ``n_categories_``, default=None
            Transforms X into codes. None if X holds codes; each feature then has one more category
            than its largest code, so use ``widened`` before adding counts of several tables.

        Returns
        -------
        ChainCounts
            Counts of the rows.

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
        declared = infer_n_categories(codes) if discretizer is None else discretizer.n_categories_
        n_categories = np.asarray(declared, dtype=np.int64)
        return count(as_codes(codes, n_categories), labels, n_categories)

    @classmethod
    def unchecked(cls, n_rows: int, *arrays: NDArray[Any]) -> "ChainCounts":
        """Return counts from trusted arrays, without validation.

        Parameters
        ----------
        n_rows : int
            Number of rows counted.
        *arrays : ndarray
            The other parameters of the class, in its order.

        Returns
        -------
        ChainCounts
            Counts that share the arrays.
        """
        self = object.__new__(cls)
        vars(self).update({"n_rows": n_rows, **dict(zip(_ARRAYS, arrays, strict=True))})
        return self

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.n_categories)

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.label)

    def offsets(self) -> IntArray:
        """Return the first row of each feature in ``feature``.

        Returns
        -------
        ndarray of int, shape (n_features,)
            Row numbers.
        """
        return np.cumsum(self.n_categories) - self.n_categories

    @cached_property
    def feature_totals(self) -> NDArray[Any]:
        """D: (p, m, 2), the sum of the counts over the categories of each feature."""
        if len(self.n_categories) == 0:
            return self.feature
        first = np.cumsum(self.n_categories) - self.n_categories
        return np.add.reduceat(self.feature, first, axis=0, dtype=self.feature.dtype)

    def widened(self, n_categories: IntArray) -> "ChainCounts":
        """Return the same counts with at least ``n_categories`` categories per feature.

        Parameters
        ----------
        n_categories : ndarray of int, shape (n_features,)
            Least number of categories of each feature.

        Returns
        -------
        ChainCounts
            Counts with zeros for the categories that are new.
        """
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
        """Add to 0, from which ``sum`` starts."""
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
    from credalchain.chains.naive.packed_counts import add_counts  # imports numba

    n_rows, n_labels = Y.shape
    n_lanes = 2 * n_labels
    label = np.stack([np.sum(a == Y, axis=0) for a in (0, 1)], axis=1)
    n_table_rows, offsets = table_rows(n_categories, codes.has_unseen)
    feature = np.zeros((int(n_table_rows.sum()), n_lanes), dtype=_count_dtype(n_rows))
    classes = [1] if label.sum() == Y.size else [0, 1]  # if all are known, the rest follows
    pair = np.zeros((len(classes) * n_labels,) * 2, dtype=feature.dtype)
    for start in range(0, n_rows, _ROWS_AT_ONCE):
        some = slice(start, start + _ROWS_AT_ONCE)
        is_class = np.concatenate([Y[some] == a for a in classes], axis=1, dtype=np.float32)
        pair += (is_class.T @ is_class).astype(pair.dtype)  # exact below 2**24
        part = codes[some]
        if codes.is_sparse:
            indptr = part.entries.indptr
            entries = part.entries.data + part.entries.indices + 1
        else:
            indptr = np.arange(len(part.entries) + 1) * len(offsets)
            entries = (part.entries + offsets).ravel()
        add_counts(indptr, entries, Y[some], feature, wide=codes.is_sparse or n_lanes <= 16)
    if codes.is_sparse:  # code 0: all rows less those counted for another code
        others = np.add.reduceat(feature, offsets, axis=0, dtype=feature.dtype)
        feature[offsets] += label.ravel().astype(feature.dtype) - others
    if codes.has_unseen:  # rows of codes that are in no category
        feature = feature[_category_rows(n_categories, offsets)]
    if classes == [1]:
        ones, total = pair, label[:, 1].astype(pair.dtype)
        zeros = total[:, None] - ones
        pair = np.block([[n_rows - total - zeros, zeros.T], [zeros, ones]])
    pair = np.ascontiguousarray(pair.reshape(2, n_labels, 2, n_labels).transpose(1, 0, 3, 2))
    return ChainCounts.unchecked(
        n_rows, n_categories, label, feature.reshape(-1, n_labels, 2), pair
    )


def _category_rows(n_categories: IntArray, offsets: IntArray) -> IntArray:
    """Return the rows of categories, where unseen and missing rows follow each feature."""
    starts = np.cumsum(n_categories) - n_categories
    return np.repeat(offsets - starts, n_categories) + np.arange(int(n_categories.sum()))


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
    most = max(int(getattr(counts, name).max(initial=0)) for name in _ARRAYS[1:])
    if most * max(2, int(counts.n_categories.max(initial=0))) >= 2**62:  # sums would wrap around
        raise ValueError("counts are too large for so many categories.")
    diagonal = counts.pair[np.arange(m), :, np.arange(m), :]
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
    for name in ("feature", "pair"):
        object.__setattr__(counts, name, getattr(counts, name).astype(_count_dtype(counts.n_rows)))


def as_counts(counts: Any) -> ChainCounts:
    """Validate counts again: a frozen dataclass can hold arrays that were changed."""
    if not isinstance(counts, ChainCounts):
        raise TypeError(f"counts must be ChainCounts, got {type(counts).__name__}.")
    _check(counts)
    return counts


# -- rows in chunks: bins first, then a sum -------------------------------------------------


@dataclass(frozen=True)
class ChunkCounts:
    """Counts of some chunks, with the names of their labels.

    Parameters
    ----------
    names : tuple of str or None
        Names of the labels.
    counts : ChainCounts
        Counts of all rows.
    chunk : str
        Name of the first chunk, for messages.
    holds_minus_one : bool, default=False
        True if missing labels are written as -1.

    See Also
    --------
    count_chunks : Count all rows of data in chunks.

    Examples
    --------
    >>> from credalchain import ChainCounts
    >>> from credalchain.chains.naive.counts import ChunkCounts
    >>> counts = ChainCounts.from_rows([[0], [1]], [[0, 1], [1, 1]])
    >>> total = ChunkCounts(None, counts, "chunk 0") + ChunkCounts(None, counts, "chunk 1")
    >>> total.counts.n_rows
    4
    """

    names: tuple[str, ...] | None
    counts: ChainCounts
    chunk: str
    holds_minus_one: bool = False

    @property
    def n_labels(self) -> int:
        """Number of labels."""
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
    """Learn bins if necessary, then count all rows.

    Parameters
    ----------
    chunks : Chunks
        Rows in chunks.
    discretizer : Discretizer, any fitted discretizer, or None
        An unfitted Discretizer is fitted to a sample of rows. None if X holds codes.
    sample_size : int, default=100000
        Rows from which the bins of numeric columns are learned: those with the smallest hashes
        of their numbers, all if there are not more. Categories are those of all rows.

    Returns
    -------
    counts : ChunkCounts
        Counts of all chunks.
    discretizer : Discretizer or None
        The fitted one.
    source : str
        Description of the rows from which bins were learned.

    Examples
    --------
    >>> from credalchain import Discretizer
    >>> from credalchain.chains.naive.counts import count_chunks
    >>> from credalchain.chunks.sources import IterableChunks
    >>> chunks = IterableChunks([([[0.1], [0.2]], [[0], [0]]), ([[0.8], [0.9]], [[1], [1]])])
    >>> counts, discretizer, source = count_chunks(chunks, Discretizer(n_bins=2))
    >>> counts.counts.label.tolist(), source
    ([[2, 2]], 'bins learned from all 4 rows')
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
    """Count one chunk; a chunk without rows has nothing but a shape."""
    X, labels = as_indexable(X), as_labels(Y, require_zero=False)
    if X.shape[0] > 0:
        counts = ChainCounts.from_rows(X, labels, discretizer)
        return ChunkCounts(label_names(Y), counts, chunk, holds_minus_one(Y))
    m = labels.shape[1]
    k = np.ones(X.shape[1], np.int64) if discretizer is None else discretizer.n_categories_
    empty = [np.zeros(shape, np.int64) for shape in ((m, 2), (int(k.sum()), m, 2), (m, 2, m, 2))]
    return ChunkCounts(label_names(Y), ChainCounts(0, k, *empty), chunk)
