"""Kinds of columns, detected chunk by chunk, and bins of all chunks together."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from credalchain import preprocessing
from credalchain.chunks.sampling import MAX_HASH, row_hashes, smallest


class Column(NamedTuple):
    """Kind of a column in some chunks, as in ``column_kind``, and where it was seen first."""

    kind: str
    keys: NDArray[Any]
    chunk: str


@dataclass(frozen=True)
class Summary:
    """Summary of some chunks: kinds of columns, and sampled rows.

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
        return replace(
            self,
            n_rows=self.n_rows + other.n_rows,
            columns=columns,
            hashes=np.concatenate([self.hashes, other.hashes]),
            sample=stack([self.sample, other.sample]),
            is_plain=self.is_plain and other.is_plain,
        )

    def name(self, column: int) -> str:
        """Return the name of a column by its index, for messages."""
        return str(column) if self.names is None else self.names[column]

    def check_size(self) -> None:
        """Raise if there is no row or no column."""
        if self.n_rows == 0 or self.n_columns == 0:
            shape = (self.n_rows, self.n_columns)
            raise ValueError(f"X must have at least one row and one column, got shape {shape}.")

    def trimmed(self, size: int) -> "Summary":
        """Return the same, with the ``size`` rows of the smallest hashes as the sample."""
        kept = smallest(self.hashes, size)
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
    """Return what one chunk holds, whose rows are first, first + 1, ... of all."""
    n, p = X.shape
    hashes = row_hashes(first, n)
    chosen = np.flatnonzero(hashes <= limit)
    if sparse.issparse(X):
        rows = sparse.csr_array(X)[chosen].astype(np.float64)
        return Summary(n, p, None, None, hashes[chosen], rows, chunk, True)
    named = hasattr(X, "columns") and all(isinstance(name, str) for name in X.columns)
    names = tuple(X.columns) if named else None
    is_plain = isinstance(X, np.ndarray) and X.dtype.kind in "biuf"
    columns, sample = [], np.full((len(chosen), p), np.nan)
    for i, (name, values) in enumerate(preprocessing.named_columns(X)):
        if n == 0:
            kind, keys = "objects" if np.asarray(values).dtype == object else "nothing", np.empty(0)
        else:
            kind, keys = preprocessing.column_kind(name, values)
        columns.append(Column(kind, keys, chunk))
        if kind == "numbers" and len(chosen):
            some = np.asarray(values)[chosen]
            sample[:, i] = preprocessing.values_and_missing(some, name)[0]
    return Summary(n, p, names, tuple(columns), hashes[chosen], sample, chunk, is_plain)


def _merged(name: str, first: Column, other: Column) -> Column:
    for column, another in ((other, first), (first, other)):
        if column.kind == "nothing" or (column.kind == "objects" and another.kind != "nothing"):
            return another
    are_texts = [part.keys.dtype.kind != "f" for part in (first, other) if len(part.keys)]
    if first.kind != other.kind or len(set(are_texts)) > 1:
        raise ValueError(
            f"column {name!r} of X holds {first.kind} in {first.chunk} and {other.kind} in "
            f"{other.chunk}."
        )
    if np.array_equal(first.keys, other.keys):  # categories keep the order that is declared
        return first
    return first._replace(keys=np.union1d(first.keys, other.keys))


def learn_bins(summary: Summary, n_bins: int) -> preprocessing.Discretizer:
    """Learn the bins that :class:`Discretizer` would learn, numbers from the sampled rows."""
    discretizer = preprocessing.Discretizer(n_bins=n_bins)
    summary.check_size()
    if summary.columns is None:
        columns = summary.sample.tocsc()
        columns.eliminate_zeros()
        binnings = preprocessing.bin_sparse(columns, n_bins)
    else:
        binnings = [
            preprocessing.binning_of(kind, keys, summary.sample[:, i], n_bins)
            for i, (kind, keys, _) in enumerate(summary.columns)
        ]
    discretizer.set_binnings(binnings)
    discretizer.n_features_in_ = summary.n_columns
    if summary.names is not None:
        discretizer.feature_names_in_ = np.array(summary.names, dtype=object)
    return discretizer


def learn_encoder(summary: Summary) -> preprocessing.TableEncoder:
    """Learn the encoder that :class:`TableEncoder` would learn from all rows."""
    columns = () if summary.is_plain else summary.columns or ()
    kinds = [(column.kind, column.keys) for column in columns]
    return preprocessing.TableEncoder.of_kinds(summary.n_columns, kinds)
