"""Category codes in the form the kernels read: small unsigned numbers, checked.

Input codes are 0..K-1, -1 for missing, anything else for a category never seen. Table codes are
0..K-1, K for never seen, K + 1 for missing, so that a code is always a valid table row.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from credalchain._utils.array_types import IntArray
from credalchain.labels import is_missing
from credalchain.preprocessing import MISSING_CODE, Discretizer

NEVER_SEEN, SAYS_NOTHING = -1, -2  # in place of the row in which an observation was counted
NO_DATA = -1  # in place of a count of 0, where the counts of all categories are 0
_CACHE_LINE = 64  # bytes


def aligned(shape: tuple[int, ...], dtype: Any = np.int64, *, zeros: bool = True) -> NDArray[Any]:
    """An array that starts at a cache line, filled with 0 or uninitialised.

    A table row that straddles lines costs one load in three.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    buffer = np.empty(size + _CACHE_LINE, dtype=np.uint8)
    start = -buffer.__array_interface__["data"][0] % _CACHE_LINE
    array: NDArray[Any] = buffer[start : start + size].view(dtype).reshape(shape)
    if zeros:
        array.fill(0)
    return array


def table_rows(n_categories: IntArray, has_unseen: bool) -> tuple[IntArray, IntArray]:
    """How many table rows each feature has, and its first one.

    Unseen and missing codes have rows only if any code is unseen or missing.
    """
    n_rows = n_categories + (2 if has_unseen else 0)
    return n_rows, np.cumsum(n_rows) - n_rows


def rows_of_other_codes(n_categories: IntArray, has_unseen: bool) -> IntArray:
    """The table rows of all codes but 0."""
    n_rows, offsets = table_rows(n_categories, has_unseen)
    return np.delete(np.arange(int(n_rows.sum())), offsets)


@dataclass(frozen=True)
class DenseCodes:
    """Codes (n, p). ``offsets[i]`` is the table row of code 0 of feature i."""

    values: NDArray[Any]
    offsets: IntArray
    has_unseen: bool  # whether any code is unseen or missing
    is_sparse: ClassVar = False

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def __getitem__(self, rows: slice) -> "DenseCodes":
        return DenseCodes(self.values[rows], self.offsets, self.has_unseen)

    def without_zeros(self) -> "DenseCodes":
        return self

    def compacted(self, n_categories: IntArray) -> tuple["DenseCodes", None]:
        return self, None

    def single_row_dense(self, n_categories: IntArray) -> "DenseCodes":
        return self

    def row(self, index: int) -> IntArray:
        return np.asarray(self.values[index], dtype=np.int64)


@dataclass(frozen=True)
class SparseCodes:
    """Codes in CSR form; what is not stored has code 0.

    ``entries`` are the table rows of the codes stored.
    """

    indptr: IntArray
    indices: NDArray[Any]
    values: NDArray[Any]
    entries: NDArray[Any]
    n_features: int
    has_unseen: bool
    is_sparse: ClassVar = True

    @property
    def shape(self) -> tuple[int, ...]:
        return len(self.indptr) - 1, self.n_features

    def __getitem__(self, rows: slice) -> "SparseCodes":
        start, stop, _ = rows.indices(self.shape[0])
        first, last = self.indptr[start], self.indptr[stop]
        return SparseCodes(
            self.indptr[start : stop + 1] - first,
            self.indices[first:last],
            self.values[first:last],
            self.entries[first:last],
            self.n_features,
            self.has_unseen,
        )

    def without_zeros(self) -> "SparseCodes":
        """These codes for a table without the rows of code 0, see ``rows_of_other_codes``."""
        dtype = self.entries.dtype
        entries = np.subtract(self.entries, self.indices + 1, dtype=dtype, casting="same_kind")
        return replace(self, entries=entries)

    def compacted(self, n_categories: IntArray) -> tuple["SparseCodes", IntArray]:
        """These codes for a table of the rows that occur here, and these rows."""
        n_rows, _ = table_rows(n_categories, self.has_unseen)
        needed = np.zeros(int(n_rows.sum()), dtype=bool)
        needed[self.entries] = True
        new_row = (np.cumsum(needed) - 1).astype(self.entries.dtype)
        return replace(self, entries=new_row[self.entries]), np.flatnonzero(needed)

    def single_row_dense(self, n_categories: IntArray) -> "DenseCodes":
        """The first row, as dense codes."""
        _, offsets = table_rows(n_categories, self.has_unseen)
        return DenseCodes(self.row(0)[None], offsets, self.has_unseen)

    def row(self, index: int) -> IntArray:
        codes = np.zeros(self.n_features, dtype=np.int64)
        stored = slice(self.indptr[index], self.indptr[index + 1])
        codes[self.indices[stored]] = self.values[stored]
        return codes


Codes = DenseCodes | SparseCodes


def as_codes(codes: Any, n_categories: IntArray, *, in_range: bool = False) -> Codes:
    """Input codes (dense array or scipy sparse) as table codes.

    ``in_range``: all codes are known to be below their number of categories.
    """
    if sparse.issparse(codes):
        return _as_sparse_codes(codes.tocsr(), n_categories)
    raw = np.asarray(codes)
    any_beyond = not in_range and bool((raw.max(axis=0, initial=0) >= n_categories).any())
    limits = np.broadcast_to(n_categories, raw.shape)
    out_of_range = raw >= limits if any_beyond else None
    values, has_unseen = _translate(raw, limits, out_of_range, n_categories)
    _, offsets = table_rows(n_categories, has_unseen)
    return DenseCodes(np.ascontiguousarray(values), offsets, has_unseen)


def _as_sparse_codes(matrix: Any, n_categories: IntArray) -> SparseCodes:
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if matrix.data.min(initial=1) <= 0 and (matrix.data == 0).any():
        matrix = matrix.copy()  # stored or not, code 0 is code 0
        matrix.eliminate_zeros()
    limits = n_categories.astype(np.int32)[matrix.indices]
    beyond = matrix.data >= limits
    out_of_range = beyond if beyond.any() else None
    values, has_unseen = _translate(matrix.data, limits, out_of_range, n_categories)
    n_rows, offsets = table_rows(n_categories, has_unseen)
    small = np.int32 if n_rows.sum() < 2**31 else np.int64
    entries = offsets.astype(small)[matrix.indices]
    entries += values  # in place: the type of the codes is smaller
    return SparseCodes(
        matrix.indptr.astype(np.int64),
        matrix.indices,
        values,
        entries,
        matrix.shape[1],
        has_unseen,
    )


def _translate(
    codes: NDArray[Any],
    limits: NDArray[Any],
    out_of_range: NDArray[np.bool_] | None,
    n_categories: IntArray,
) -> tuple[NDArray[Any], bool]:
    """Codes in the smallest type, and whether any is never seen or missing.

    ``limits`` is K of each code's feature; ``out_of_range`` marks codes from K on (None: no such
    code).
    """
    dtype: Any = np.uint8 if n_categories.max(initial=0) + 1 <= 255 else np.int32
    negative = codes.dtype.kind != "u" and codes.size > 0 and codes.min() < 0
    if out_of_range is None and not negative:
        if codes.dtype == np.int8:
            return codes.view(np.uint8), False
        return codes.astype(dtype, copy=False), False
    replaced = np.zeros(codes.shape, dtype=bool) if out_of_range is None else out_of_range
    if negative:
        replaced |= codes < 0
    values = codes.astype(dtype)  # always a copy
    values[replaced] = limits[replaced] + (codes[replaced] == MISSING_CODE)
    return values, True


_MAX_CATEGORIES = 1_000_000


def encode_input(X: Any, discretizer: Any) -> Any:
    """Input codes of checked input, from a fitted discretizer or, if None, X itself."""
    if discretizer is None:
        return validate_codes(X)
    if isinstance(discretizer, Discretizer):
        return discretizer.encode(X)  # X was checked when the classifier read it
    return discretizer.transform(X)


def validate_codes(X: Any) -> Any:
    """Input that is codes already: integers, or whole floats with NaN for missing."""
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
    """Numbers with None or pd.NA among them; unchanged if there is anything else."""
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
    """1 + the largest code seen, at least 1, of each feature."""
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
