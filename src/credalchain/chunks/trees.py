"""Trees for rows in chunks: grown on a sample of rows; chains count all rows in their nodes."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.array_types import Labels
from credalchain._utils.text import plural
from credalchain.chunks.columns import Summary, learn_encoder, summarize
from credalchain.chunks.sampling import MAX_HASH, row_hashes, smallest
from credalchain.chunks.sources import check_same_labels, label_names
from credalchain.labels import as_labels, holds_minus_one, minus_one_message
from credalchain.preprocessing import EncodedRows, TableEncoder, as_indexable
from credalchain.typing import Chunks

SAMPLE_SIZE = 20_000
_MIN_HASH = np.uint64(0)  # a hash below all but one
_OF_ROWS = ("hashes", "row_numbers", "numbers", "labels")  # arrays of SampledRows


@dataclass(frozen=True)
class SampledRows:
    """Rows chosen from some chunks by their hashes (k,): numbers (k, p) and labels (k, m).

    ``row_numbers`` (k,) are their numbers among all rows. ``seen`` are the labels in any row: 0, 1,
    and -1 if missing labels are written so.
    """

    n_rows: int
    hashes: NDArray[np.uint64]
    row_numbers: NDArray[np.int64]
    numbers: NDArray[np.float32]
    labels: Labels
    names: tuple[str, ...] | None
    seen: frozenset[int]
    chunk: str

    @property
    def n_labels(self) -> int:
        return int(self.labels.shape[1])

    def __add__(self, other: "SampledRows") -> "SampledRows":
        check_same_labels(self, other)
        mine, others = vars(self), vars(other)
        both: dict[str, Any] = {n: np.concatenate([mine[n], others[n]]) for n in _OF_ROWS}
        n_rows, seen = self.n_rows + other.n_rows, self.seen | other.seen
        return replace(self, n_rows=n_rows, seen=seen, **both)

    def trimmed(self, size: int) -> "SampledRows":
        """Return the same, with the ``size`` rows of the smallest hashes."""
        kept = smallest(self.hashes, size)
        return replace(self, **{name: getattr(self, name)[kept] for name in _OF_ROWS})


@dataclass(frozen=True)
class TrainingSample:
    """Rows that trees are grown on, and which rows these are.

    Attributes
    ----------
    X : EncodedRows
    labels : ndarray of int8, shape (k, m)
    row_numbers : ndarray of shape (k,)
        Numbers of the rows, sorted; all of them if the sample is everything.
    limit : uint64
        The largest hash in the sample.
    feature_names, label_names : tuple of str or None
    source : str
        In words.
    """

    X: EncodedRows
    labels: Labels
    row_numbers: NDArray[np.int64]
    n_rows: int
    limit: np.uint64
    feature_names: tuple[str, ...] | None
    label_names: tuple[str, ...] | None

    @property
    def is_everything(self) -> bool:
        return len(self.row_numbers) == self.n_rows

    @property
    def source(self) -> str:
        if self.is_everything:
            return f"trees grown on all {plural(self.n_rows, 'row')}"
        n_sampled = len(self.row_numbers)
        return f"trees grown on {n_sampled} of {self.n_rows} rows, all rows counted in their nodes"


def sample_chunks(chunks: Chunks, size: int) -> TrainingSample:
    """Learn what columns hold in all chunks, then take the rows with the smallest hashes."""
    columns: Summary = chunks.reduce(_columns, numbered=False)
    columns.check_size()
    encoder = learn_encoder(columns)
    limit = chunks.hash_limit(size)
    sampled_rows: SampledRows = chunks.reduce(
        _sample, encoder, limit, trim=partial(SampledRows.trimmed, size=size)
    )
    if sampled_rows.seen == {-1, 1}:
        raise ValueError(minus_one_message())
    everything = len(sampled_rows.hashes) == sampled_rows.n_rows
    return TrainingSample(
        EncodedRows(encoder, sampled_rows.numbers),
        sampled_rows.labels,
        sampled_rows.row_numbers,
        sampled_rows.n_rows,
        MAX_HASH if everything else np.uint64(sampled_rows.hashes.max()),
        columns.names,
        sampled_rows.names,
    )


@dataclass(frozen=True, eq=False)
class NodeCounts:
    """Rows of each class in the nodes of several forests."""

    counts: list[NDArray[np.float64]]

    def __add__(self, other: "NodeCounts") -> "NodeCounts":
        return NodeCounts([a + b for a, b in zip(self.counts, other.counts, strict=True)])


def count_unsampled_rows(chunks: Chunks, sampled: TrainingSample, model: Any) -> NodeCounts | None:
    """Count the rows that are not in the sample in the forests of a chain or of several chains.

    None if there are no such rows.
    """
    if sampled.is_everything:
        return None
    counts: NodeCounts = chunks.reduce(_counts, model, sampled.X.encoder, sampled.limit)
    return counts


def _columns(chunk: str, X: Any, Y: Any, first: int) -> Summary:
    return summarize(chunk, as_indexable(X), first, _MIN_HASH)


def _sample(
    chunk: str, X: Any, Y: Any, first: int, encoder: TableEncoder, limit: Any
) -> SampledRows:
    encoded, labels = _read(X, Y, encoder)
    hashes = row_hashes(first, len(labels))
    chosen = np.flatnonzero(hashes <= limit)
    return SampledRows(
        len(labels),
        hashes[chosen],
        first + chosen,
        encoded[chosen],
        labels[chosen],
        label_names(Y),
        frozenset({*np.unique(labels).tolist()} - ({-1} if not holds_minus_one(Y) else set())),
        chunk,
    )


def _counts(
    chunk: str, X: Any, Y: Any, first: int, model: Any, encoder: TableEncoder, limit: Any
) -> NodeCounts:
    encoded, labels = _read(X, Y, encoder)
    unsampled = np.flatnonzero(row_hashes(first, len(labels)) > limit)
    return NodeCounts(model.count_rows(encoded[unsampled], labels[unsampled]))


def _read(X: Any, Y: Any, encoder: TableEncoder) -> tuple[NDArray[np.float32], Labels]:
    X, labels = as_indexable(X), as_labels(Y, require_zero=False)
    if X.shape[0] != len(labels):
        raise ValueError(f"X and Y must have the same rows, got {X.shape[0]} and {len(labels)}.")
    if len(labels) == 0:
        return np.empty((0, encoder.n_columns), np.float32), labels
    return encoder.encode(X, np.float32), labels
