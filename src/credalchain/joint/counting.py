"""Count rows that trees were not grown on in the leaves, over data of any size."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.array_types import Labels
from credalchain.chains.forest import Trees
from credalchain.joint.arrays import Leaves
from credalchain.joint.growing import MIN_PROBABILITY, find_leaves, no_member_weights
from credalchain.labels import MISSING

BUDGET = 2**24  # entries: some hundred megabytes
_ENTRIES_AT_ONCE = 2**19
_ROWS_AT_ONCE = 2**14
_MAX_ZERO_BITS = 48


class Entries(NamedTuple):
    """Number of rows in a leaf, by label vector and trailing zero bits of their hashes."""

    node: NDArray[np.int32]
    vector: NDArray[np.int32]
    zero_bits: NDArray[np.uint8]
    times: NDArray[np.uint32]

    def take(self, index: Any) -> "Entries":
        """Some of them."""
        return Entries(*(column[index] for column in self))

    @staticmethod
    def concatenated(parts: Sequence["Entries"]) -> "Entries":
        """One after the other."""
        return Entries(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def summed(self) -> "Entries":
        """Sorted by leaf, vector and zero bits, equal ones added up."""
        n_vectors = int(self.vector.max(initial=0)) + 1
        keys = (
            self.node.astype(np.int64) * n_vectors + self.vector
        ) * _MAX_ZERO_BITS + self.zero_bits
        order = np.argsort(keys, kind="stable")  # sums of parts are two sorted runs: a merge
        starts = _first_of_equal(keys[order])
        if len(starts) == len(order):
            return self.take(order)
        times = np.add.reduceat(self.times[order], starts, dtype=np.int64)
        return self.take(order[starts])._replace(times=_as_times(times))


@dataclass(frozen=True, eq=False)
class LeafCounts:
    """How many rows with each label vector are in each leaf.

    ``vectors`` (K, m) are sorted and distinct; labels may be missing. ``entries`` are sorted, and
    distinct. So sums do not depend on the order of the chunks.

    With many labels nearly every row has a distinct vector, and entries would grow with the
    rows. So there are at most ``budget`` of them, and of cells of ``vectors``: half of the rows
    have a hash that ends with one zero bit or more, a quarter with two or more, and so on, and only
    rows with ``min_zero_bits`` or more are counted, the least number that keeps to the budget. It
    depends on the rows alone, not on how they are cut into chunks (P. B. Gibbons, Distinct sampling
    for highly-accurate answers to distinct values queries, VLDB 2001).
    """

    vectors: Labels
    entries: Entries
    min_zero_bits: int = 0
    budget: int = BUDGET

    @classmethod
    def of_rows(
        cls,
        nodes: NDArray[np.int32],
        labels: Labels,
        zero_bits: NDArray[np.uint8],
        *,
        budget: int = BUDGET,
    ) -> "LeafCounts":
        """From the leaves of rows (n, trees), their labels (n, m) and zero_bits (n,)."""
        vectors, vector_index = np.unique(labels, axis=0, return_inverse=True)
        vector, once = vector_index.reshape(-1).astype(np.int32), np.ones(len(labels), np.uint32)
        by_tree = [  # the nodes of a tree come after those of the tree before
            Entries(nodes[:, tree], vector, zero_bits, once).summed()
            for tree in range(nodes.shape[1])
        ]
        return cls(vectors, Entries.concatenated(by_tree), 0, budget)._within_budget()

    def __add__(self, other: "LeafCounts") -> "LeafCounts":
        min_zero_bits = max(self.min_zero_bits, other.min_zero_bits)
        left, right = self.with_zero_bits(min_zero_bits), other.with_zero_bits(min_zero_bits)
        vectors, vector_index = np.unique(
            np.concatenate([left.vectors, right.vectors]), axis=0, return_inverse=True
        )
        vector_indices = np.split(vector_index.reshape(-1).astype(np.int32), [len(left.vectors)])
        parts = [
            counts.entries._replace(vector=new_index[counts.entries.vector])
            for counts, new_index in zip((left, right), vector_indices, strict=True)
        ]
        summed = [Entries.concatenated(pair).summed() for pair in _by_nodes(*parts)]
        entries = Entries.concatenated(summed)
        return LeafCounts(vectors, entries, min_zero_bits, self.budget)._within_budget()

    def with_zero_bits(self, min_zero_bits: int) -> "LeafCounts":
        """The same of the rows whose hashes end with so many zero bits, or more."""
        if min_zero_bits == self.min_zero_bits:
            return self
        entries = self.entries.take(self.entries.zero_bits >= min_zero_bits)
        used, vector = np.unique(entries.vector, return_inverse=True)
        entries = entries._replace(vector=vector.reshape(-1).astype(np.int32))
        return replace(
            self, vectors=self.vectors[used], entries=entries, min_zero_bits=min_zero_bits
        )

    @property
    def size(self) -> int:
        """How many entries there are."""
        return len(self.entries.node)

    def _within_budget(self) -> "LeafCounts":
        counts = self
        while max(counts.size, counts.vectors.size) > counts.budget:
            if counts.min_zero_bits == _MAX_ZERO_BITS - 1:
                break
            counts = counts.with_zero_bits(counts.min_zero_bits + 1)
        return counts

    def of_all_rows(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint32]]:
        """Leaf, vector and how many rows: each that was counted stands for 2**min_zero_bits."""
        node, vector, _, times = self.entries
        starts = _first_of_equal(node, vector)
        total = np.add.reduceat(times, starts, dtype=np.int64) if len(starts) else times
        return node[starts], vector[starts], _as_times(total << self.min_zero_bits)


def _by_nodes(left: Entries, right: Entries) -> Iterator[tuple[Entries, Entries]]:
    """Entries of the same leaves, some at a time, which limits the memory for their sums."""
    cuts = left.node[_ENTRIES_AT_ONCE::_ENTRIES_AT_ONCE]
    ends = [np.append(np.searchsorted(part.node, cuts), len(part.node)) for part in (left, right)]
    first = [0, 0]
    for stop in zip(*(end.tolist() for end in ends), strict=True):
        yield left.take(slice(first[0], stop[0])), right.take(slice(first[1], stop[1]))
        first = list(stop)


def _first_of_equal(*columns: NDArray[Any]) -> NDArray[np.intp]:
    """Positions at which sorted entries differ from those before them."""
    differs = np.zeros(len(columns[0]), dtype=bool)
    differs[:1] = True
    for column in columns:
        differs[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(differs)


def _as_times(times: NDArray[Any]) -> NDArray[np.uint32]:
    if len(times) and times.max() >= 2**32:
        raise ValueError("a leaf cannot hold 2**32 rows or more with the same labels.")
    return times.astype(np.uint32)


def trailing_zero_bits(hashes: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """How many of the last bits of a hash are 0: half of the rows have none, a quarter one, ..."""
    last_bit = hashes & (~hashes + np.uint64(1))
    zero_bits = np.log2(np.maximum(last_bit, 1).astype(np.float64))  # powers of 2: exact
    zero_bits[last_bit == 0] = _MAX_ZERO_BITS
    return np.minimum(zero_bits, _MAX_ZERO_BITS - 1).astype(np.uint8)


@dataclass(frozen=True, eq=False)
class LeafCounter:
    """Counts rows in the leaves of trees that were grown on other rows.

    With ``leaves`` of all rows, a missing label is drawn from its probability given x and the
    row's other labels, so that a row counts as one label vector; without (None), it stays
    missing.
    """

    trees: Trees
    leaves: Leaves | None = None
    budget: int = BUDGET

    def count(
        self,
        X: NDArray[np.float32],
        labels: Labels,
        hashes: NDArray[np.uint64],
        uniform: NDArray[np.float64],
    ) -> LeafCounts:
        """Of encoded rows; ``uniform`` (n, m) are the numbers from 0 to 1 that draws use."""
        zero_bits, min_zero_bits = trailing_zero_bits(hashes), 0
        waiting = [self._count(X[:0], labels[:0], zero_bits[:0], uniform[:0])]
        for first in range(0, len(X), _ROWS_AT_ONCE):
            # rows with fewer zero bits would be dropped later anyway
            rows = first + np.flatnonzero(zero_bits[first : first + _ROWS_AT_ONCE] >= min_zero_bits)
            waiting.append(self._count(X[rows], labels[rows], zero_bits[rows], uniform[rows]))
            # sums of similar size are added: fewer passes over the large ones
            while len(waiting) > 1 and waiting[-2].size <= 2 * waiting[-1].size:
                waiting[-2:] = [waiting[-2] + waiting[-1]]
            min_zero_bits = max(counts.min_zero_bits for counts in waiting)
        return reduce(add, reversed(waiting))

    def _count(
        self,
        X: NDArray[np.float32],
        labels: Labels,
        zero_bits: NDArray[np.uint8],
        uniform: NDArray[np.float64],
    ) -> LeafCounts:
        nodes = find_leaves(X, self.trees)
        if self.leaves is not None:
            labels = _draw_missing(self.leaves, nodes, labels, uniform)
        return LeafCounts.of_rows(nodes, labels, zero_bits, budget=self.budget)


def _draw_missing(
    leaves: Leaves, nodes: NDArray[np.int32], labels: Labels, uniform: NDArray[np.float64]
) -> Labels:
    """Draw label by label, each given those before: a draw from their joint distribution."""
    drawn = labels.copy()
    for j in np.flatnonzero((labels == MISSING).any(axis=0)).tolist():
        rows = np.flatnonzero(labels[:, j] == MISSING)
        p = _probability(leaves, nodes[rows], drawn[rows], j)
        value = np.where(np.isnan(p), MISSING, uniform[rows, j] < p)
        drawn[rows, j] = value.astype(np.int8)
    return drawn


def _probability(
    leaves: Leaves, nodes: NDArray[np.int32], known: Labels, j: int
) -> NDArray[np.float64]:
    """P(Y_j = 1) given known labels, or without them if no row has those; NaN: not observed."""
    from credalchain.joint import kernels  # imports numba

    p = np.full(len(known), np.nan)
    for condition in (known, np.full_like(known, MISSING)):
        rows = np.flatnonzero(np.isnan(p))
        lower = np.empty((len(rows), known.shape[1], 2))
        weights, workspace = no_member_weights(len(rows)), kernels.Workspace.allocate(nodes, leaves)
        kernels.bound_labels(nodes[rows], condition[rows], weights, leaves, 0.0, workspace, lower)
        zero, one = lower[:, j, 0], lower[:, j, 1]
        total = zero + one
        p[rows] = np.where(total > 0, one / np.where(total > 0, total, 1.0), np.nan)
    return p


def fill_missing_from_counts(
    leaves: Leaves, observed: Leaves, nodes: NDArray[np.int32], labels: Labels
) -> Leaves:
    """Leaves in which missing labels of the training rows have the probability by all rows.

    ``observed`` hold all rows, and nothing but what was observed; ``nodes`` (n, trees) are those
    that the training rows come to.
    """
    label_mass = leaves.label_mass.copy()
    for j in np.flatnonzero((labels == MISSING).any(axis=0)).tolist():
        rows = np.flatnonzero(labels[:, j] == MISSING)
        p = _probability(observed, nodes[rows], labels[rows], j)
        rows, p = rows[~np.isnan(p)], np.clip(p[~np.isnan(p)], MIN_PROBABILITY, 1 - MIN_PROBABILITY)
        label_mass[:, leaves.vector_of[rows], j] = 1 - p, p
    return leaves._replace(label_mass=label_mass)


def with_counts(leaves: Leaves, counts: LeafCounts) -> Leaves:
    """The same leaves with counted rows added.

    These are not stored one by one: after the training rows, there is a row for each of their
    label vectors, which stands for all rows that have it.
    """
    vector_of, label_mass = _extended(leaves.label_mass, counts.vectors)
    n_rows, n_nodes = len(leaves.vector_of), len(leaves.indptr) - 1
    counted_nodes, counted_vectors, counted_times = counts.of_all_rows()
    node = np.concatenate([np.repeat(np.arange(n_nodes), np.diff(leaves.indptr)), counted_nodes])
    order = np.argsort(node, kind="stable")
    sizes = np.bincount(node, minlength=n_nodes)
    return leaves._replace(
        indptr=np.append(0, np.cumsum(sizes)).astype(np.int64),
        row=np.concatenate([leaves.row, n_rows + counted_vectors])[order].astype(np.int32),
        times=np.concatenate([leaves.times.astype(np.uint32), counted_times])[order],
        vector_of=np.concatenate([leaves.vector_of, vector_of]).astype(np.int32),
        label_mass=label_mass,
    )


def _extended(
    label_mass: NDArray[np.float64], vectors: Labels
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Indices of ``vectors`` in ``label_mass`` (2, K, m), and that array with new ones appended."""
    complete = np.flatnonzero((label_mass.max(axis=0) == 1).all(axis=1))
    index_of_vector = {label_mass[1, u].astype(np.int8).tobytes(): u for u in complete.tolist()}
    indices = [
        index_of_vector.get(vector.tobytes(), -1) for vector in np.ascontiguousarray(vectors)
    ]
    vector_index = np.array(indices, dtype=np.int32).reshape(-1)
    new = np.flatnonzero(vector_index < 0)
    vector_index[new] = label_mass.shape[1] + np.arange(len(new))
    new_mass = np.stack([vectors[new] == 0, vectors[new] == 1]).astype(np.float64)
    return vector_index, np.concatenate([label_mass, new_mass], axis=1)
