"""Category codes in the form the kernels read: small unsigned numbers, checked.

Input codes are 0..K-1, -1 for missing, anything else for a category never seen. Table codes are
0..K-1, K for never seen, K + 1 for missing, so that a code is always a valid table row.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from credalchain.labels import is_missing
from credalchain.preprocessing import Discretizer

IntArray = NDArray[np.int64]

MISSING_CODE = -1
_CACHE_LINE = 64  # bytes


def aligned(shape: tuple[int, ...], dtype: Any = np.int64, *, zeros: bool = True) -> NDArray[Any]:
    """Memory that starts at a cache line, all 0 or as it is found.

    A table row that straddles lines costs one load in three.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    buffer = np.empty(size + _CACHE_LINE, dtype=np.uint8)
    start = -buffer.ctypes.data % _CACHE_LINE
    array: NDArray[Any] = buffer[start : start + size].view(dtype).reshape(shape)
    if zeros:
        array.fill(0)
    return array


def table_rows(n_categories: IntArray, has_unseen: bool) -> tuple[IntArray, IntArray]:
    """How many table rows each feature has, and its first one.

    Unseen and missing codes have rows of their own only where there are any.
    """
    n_rows = n_categories + (2 if has_unseen else 0)
    return n_rows, np.cumsum(n_rows) - n_rows


@dataclass(frozen=True)
class DenseCodes:
    """Codes (n, p). ``offsets[i]`` is the table row of code 0 of feature i."""

    values: NDArray[Any]
    offsets: IntArray
    has_unseen: bool  # whether any code is unseen or missing

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def __getitem__(self, rows: slice) -> "DenseCodes":
        return DenseCodes(self.values[rows], self.offsets, self.has_unseen)

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

    def compacted(
        self, n_categories: IntArray, *, all_rows: bool
    ) -> tuple["SparseCodes", IntArray]:
        """The same for a table of some rows only, and which those are.

        All but the codes 0, or only what is stored here.
        """
        n_rows, offsets = table_rows(n_categories, self.has_unseen)
        needed = np.full(int(n_rows.sum()), all_rows)
        if all_rows:  # one code 0 fewer for every feature up to the entry's
            needed[offsets] = False
            kept = self.entries.dtype
            entries = np.subtract(self.entries, self.indices + 1, dtype=kept, casting="same_kind")
            return replace(self, entries=entries), np.flatnonzero(needed)
        needed[self.entries] = True
        place = (np.cumsum(needed) - 1).astype(self.entries.dtype)
        return replace(self, entries=place[self.entries]), np.flatnonzero(needed)

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


def as_codes(codes: Any, n_categories: IntArray, *, within: bool = False) -> Codes:
    """Input codes (dense array or scipy sparse) as table codes.

    ``within`` says that no code is beyond its categories.
    """
    if sparse.issparse(codes):
        return _as_sparse_codes(codes.tocsr(), n_categories)
    given = np.asarray(codes)
    beyond = not within and bool((given.max(axis=0, initial=0) >= n_categories).any())
    limits = np.broadcast_to(n_categories, given.shape)
    strange = given >= limits if beyond else None
    values, has_unseen = _translate(given, limits, strange, n_categories)
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
    strange = matrix.data >= limits
    reached = strange if strange.any() else None
    values, has_unseen = _translate(matrix.data, limits, reached, n_categories)
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
    strange: NDArray[np.bool_] | None,
    n_categories: IntArray,
) -> tuple[NDArray[Any], bool]:
    """Codes in the smallest type, and whether any is never seen or missing.

    ``limits`` is K of each code's feature; ``strange`` codes reach it (None: there is none).
    """
    dtype: Any = np.uint8 if n_categories.max(initial=0) + 1 <= 255 else np.int32
    negative = codes.dtype.kind != "u" and codes.size > 0 and codes.min() < 0
    if strange is None and not negative:
        if codes.dtype == np.int8:
            return codes.view(np.uint8), False
        return codes.astype(dtype, copy=False), False
    strange = np.zeros(codes.shape, dtype=bool) if strange is None else strange
    if negative:
        strange |= codes < 0
    values = codes.astype(dtype)  # always a copy
    values[strange] = limits[strange] + (codes[strange] == MISSING_CODE)
    return values, True


_MOST_CATEGORIES = 1_000_000


def input_codes(X: Any, discretizer: Any) -> Any:
    """Input codes of checked input, by a fitted discretizer or, if None, as they are."""
    if discretizer is None:
        return given_codes(X)
    if isinstance(discretizer, Discretizer):
        return discretizer.encode(X)  # X was checked when the classifier read it
    return discretizer.transform(X)


def given_codes(X: Any) -> Any:
    """Input that is codes already: integers, or floats that are whole with NaN for missing."""
    stored = X.data if sparse.issparse(X) else np.asarray(X)
    if stored.dtype.kind in "iu":
        return X.tocsr() if sparse.issparse(X) else stored
    if stored.dtype == bool:
        stored = stored.astype(np.uint8)
    if stored.dtype == object:
        stored = _objects_as_floats(stored)
    if stored.dtype.kind == "f":
        huge = np.abs(stored) > 2**53
        if huge.any():
            raise ValueError(
                "X must hold whole category codes where the base has discretizer=None, "
                f"got {stored[huge][0]}."
            )
        whole = np.where(np.isnan(stored), float(MISSING_CODE), stored)
        fractional = whole != np.rint(whole)
        if fractional.any():
            raise ValueError(
                "X must hold whole category codes where the base has discretizer=None, "
                f"got {whole[fractional][0]}."
            )
        stored = whole.astype(np.int64)
    if stored.dtype.kind not in "iu":
        raise ValueError(
            "X must hold whole category codes where the base has discretizer=None, "
            f"got values of dtype {stored.dtype}."
        )
    if not sparse.issparse(X):
        return stored
    matrix = X.tocsr()
    return type(matrix)((stored, matrix.indices, matrix.indptr), shape=matrix.shape)


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


def categories_of_codes(codes: Any) -> IntArray:
    """1 + the largest code seen, at least 1, of each feature."""
    if sparse.issparse(codes):
        matrix = codes.tocsr()
        largest = np.zeros(matrix.shape[1], dtype=matrix.dtype)
        np.maximum.at(largest, matrix.indices, matrix.data)
    else:
        largest = codes.max(axis=0, initial=0)
    n_categories: IntArray = np.maximum(largest.astype(np.int64), 0) + 1
    if (n_categories > _MOST_CATEGORIES).any():
        feature = int(n_categories.argmax())
        raise ValueError(
            f"X holds the code {n_categories[feature] - 1} in column {feature}; with "
            f"discretizer=None codes must be below {_MOST_CATEGORIES}."
        )
    return n_categories
