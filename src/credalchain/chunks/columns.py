"""What columns hold, found chunk by chunk, and bins for all chunks together."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from credalchain.chunks.sampling import MAX_HASH, row_hashes
from credalchain.preprocessing import (
    Binning,
    Categories,
    Discretizer,
    NumericBins,
    TableEncoder,
    ZeroAndBins,
    cut_points,
    declared_categories,
    named_columns,
    values_and_missing,
)

_WORDS = {
    "numbers": "numbers",
    "booleans": "true and false",
    "texts": "texts",
    "categories": "categories",
}


class ColumnConflictError(ValueError):
    """A column holds different things in two chunks."""

    def __init__(self, message: str, column: str = "") -> None:
        super().__init__(message)
        self.column = column


@dataclass(frozen=True)
class Column:
    """What a column holds in some chunks.

    Attributes
    ----------
    kind : {"numbers", "booleans", "texts", "categories", "nothing"}
        "nothing": all values are missing.
    keys : ndarray
        The categories, if there are any: sorted, or in the order that all chunks declare.
    chunk : str
        Where that was seen first.
    was_object : bool
        For "nothing": whether the values were Python objects, and not floats.
    """

    kind: str
    keys: NDArray[Any]
    chunk: str
    was_object: bool = False


@dataclass(frozen=True)
class Summary:
    """What some chunks hold together: kinds of columns, and sampled rows.

    ``chunk`` is the first of them; ``is_plain`` says that all were arrays of numbers.
    ``columns`` is None for sparse input. ``hashes`` (k,) are those of the sampled rows, and
    ``sample`` what they hold: arrays of numbers (k, p), or CSR.
    """

    n_rows: int
    n_columns: int
    names: tuple[str, ...] | None
    columns: tuple[Column, ...] | None
    hashes: NDArray[np.uint64]
    sample: Any
    chunk: str
    is_plain: bool

    def __add__(self, other: "Summary") -> "Summary":
        if self.n_columns != other.n_columns or self.names != other.names:
            raise ValueError(_other_columns(self, other))
        if (self.columns is None) != (other.columns is None):
            raise ValueError(
                f"all chunks of X must be sparse, or none: {self.chunk} and {other.chunk} differ."
            )
        columns = None
        if self.columns is not None and other.columns is not None:
            pairs = zip(self.columns, other.columns, strict=True)
            columns = tuple(_merged(self.name(column), *pair) for column, pair in enumerate(pairs))
        stack = sparse.vstack if columns is None else np.concatenate
        return Summary(
            self.n_rows + other.n_rows,
            self.n_columns,
            self.names,
            columns,
            np.concatenate([self.hashes, other.hashes]),
            stack([self.sample, other.sample]),
            self.chunk,
            self.is_plain and other.is_plain,
        )

    def name(self, column: int) -> str:
        """The name of a column by its index, for messages."""
        return str(column) if self.names is None else self.names[column]

    def trimmed(self, size: int) -> "Summary":
        """The same, with the ``size`` rows of the smallest hashes as the sample."""
        if len(self.hashes) <= size:
            return self
        kept = np.sort(np.argpartition(self.hashes, size - 1)[:size])
        return replace(self, hashes=self.hashes[kept], sample=self.sample[kept])


def _other_columns(first: Summary, other: Summary) -> str:
    head = "all chunks of X must have the same columns in the same order"
    if first.names is None or other.names is None:
        if first.n_columns != other.n_columns:
            numbers = f"{first.n_columns} and {other.n_columns}"
            return f"{head}: {first.chunk} and {other.chunk} have {numbers}."
        named, nameless = (first, other) if other.names is None else (other, first)
        return (
            f"{head}: those of {named.chunk} have names, and those of {nameless.chunk} have none."
        )
    differ = sorted(set(first.names) ^ set(other.names))
    if differ:
        lacking = other if differ[0] in first.names else first
        return f"{head}: {differ[0]!r} is not in all of them, {lacking.chunk} lacks it."
    pairs = zip(first.names, other.names, strict=True)
    column, (left, right) = next((i, pair) for i, pair in enumerate(pairs) if pair[0] != pair[1])
    return f"{head}: column {column} is {left!r} in {first.chunk} and {right!r} in {other.chunk}."


def summarize(chunk: str, X: Any, first: int, limit: np.uint64 = MAX_HASH) -> Summary:
    """What one chunk holds, whose rows are first, first + 1, ... of all."""
    n, p = X.shape
    hashes = row_hashes(first, n)
    chosen = np.flatnonzero(hashes <= limit)
    if sparse.issparse(X):
        rows = sparse.csr_array(X)[chosen].astype(np.float64)
        return Summary(n, p, None, None, hashes[chosen], rows, chunk, True)
    named = hasattr(X, "columns") and all(isinstance(name, str) for name in X.columns)
    names = tuple(X.columns) if named else None
    is_plain = isinstance(X, np.ndarray) and X.dtype.kind in "biuf"
    if isinstance(X, np.ndarray) and X.dtype.kind in "iuf":
        kinds = [_kind_of_numbers(chunk, X[:, i], str(i)) for i in range(p)]
        sample = X[chosen].astype(np.float64)
    else:
        kinds, sample = [], np.full((len(chosen), p), np.nan)
        for i, (name, values) in enumerate(named_columns(X)):
            kinds.append(_kind(chunk, name, values))
            if kinds[-1].kind == "numbers":
                keys, missing = values_and_missing(np.asarray(values)[chosen], name)
                sample[:, i] = np.where(missing, np.nan, keys) if len(chosen) else keys
    return Summary(n, p, names, tuple(kinds), hashes[chosen], sample, chunk, is_plain)


def _kind_of_numbers(chunk: str, values: NDArray[Any], name: str) -> Column:
    if values.dtype.kind == "f":
        if np.isinf(values).any():
            raise ValueError(f"Input X contains infinity in column {name!r}.")
        if len(values) and np.isnan(values).all():
            return Column("nothing", np.empty(0), chunk)
    return Column("numbers", np.empty(0), chunk)


def _kind(chunk: str, name: str, column: Any) -> Column:
    values = np.asarray(column)
    if len(values) == 0:
        return Column("nothing", np.empty(0), chunk, values.dtype == object)
    declared = declared_categories(column, name)
    if declared is not None:
        return Column("categories", declared, chunk)
    if values.dtype == bool:
        return Column("booleans", np.empty(0), chunk)
    if values.dtype.kind in "iuf":
        return _kind_of_numbers(chunk, values, name)
    keys, missing = values_and_missing(values, name)
    if missing.all():
        return Column("nothing", np.empty(0), chunk, values.dtype == object)
    if keys.dtype.kind != "f":
        return Column("texts", np.unique(keys[~missing]), chunk)
    if all(isinstance(value, (bool, np.bool_)) for value in values[~missing]):
        return Column("booleans", np.empty(0), chunk)
    return Column("numbers", np.empty(0), chunk)


def _merged(name: str, first: Column, other: Column) -> Column:
    if first.kind == other.kind == "nothing":
        return first if first.was_object else other
    if other.kind == "nothing":
        return first
    if first.kind == "nothing":
        return other
    are_texts = [_are_texts(part.keys) for part in (first, other) if len(part.keys)]
    if first.kind != other.kind or len(set(are_texts)) > 1:
        raise ColumnConflictError(
            f"column {name!r} of X holds {_WORDS[first.kind]} in {first.chunk} and "
            f"{_WORDS[other.kind]} in {other.chunk}.",
            name,
        )
    if first.kind == "texts":
        return Column("texts", np.union1d(first.keys, other.keys), first.chunk)
    if first.kind == "categories" and not np.array_equal(first.keys, other.keys):
        return Column("categories", np.union1d(first.keys, other.keys), first.chunk)
    return first


def learn_bins(summary: Summary, n_bins: int) -> Discretizer:
    """The bins that :class:`Discretizer` would learn, numbers from the sampled rows."""
    discretizer = Discretizer(n_bins=n_bins)
    if summary.n_rows == 0 or summary.n_columns == 0:
        raise ValueError(
            f"X must have at least one row and one column, got shape "
            f"{(summary.n_rows, summary.n_columns)}."
        )
    if summary.columns is None:
        columns = summary.sample.tocsc()
        columns.eliminate_zeros()
        pairs = zip(columns.indptr[:-1], columns.indptr[1:], strict=True)
        binnings: list[Binning] = [
            ZeroAndBins(cut_points(columns.data[start:stop], n_bins)) for start, stop in pairs
        ]
    else:
        binnings = [
            _binning(column, summary.sample[:, i], n_bins)
            for i, column in enumerate(summary.columns)
        ]
    discretizer.binnings_ = binnings
    discretizer.n_categories_ = np.array(
        [binning.n_categories for binning in binnings], dtype=np.int64
    )
    discretizer.n_features_in_ = summary.n_columns
    if summary.names is not None:
        discretizer.feature_names_in_ = np.array(summary.names, dtype=object)
    return discretizer


def learn_encoder(summary: Summary) -> TableEncoder:
    """The encoder that :class:`TableEncoder` would learn from all rows."""
    columns = summary.columns or ()
    categories = {
        i: Categories(column.keys)
        for i, column in enumerate(columns)
        if column.kind in ("texts", "categories") and len(column.keys) and _are_texts(column.keys)
    }
    empty = [
        i for i, column in enumerate(columns) if column.kind == "nothing" and not summary.is_plain
    ]
    return TableEncoder(summary.n_columns, categories, False, tuple(empty))


def _are_texts(keys: NDArray[Any]) -> bool:
    return keys.dtype.kind != "f"


def _binning(column: Column, sample: NDArray[np.float64], n_bins: int) -> Binning:
    if column.kind in ("texts", "categories"):
        return Categories(column.keys)
    if column.kind == "booleans":
        return Categories(np.array([0.0, 1.0]))
    if column.kind == "nothing" and column.was_object:
        return Categories(np.empty(0))
    return NumericBins(cut_points(sample, n_bins))
