"""Rows that trees were not grown on, counted in the leaves: as many as there are."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from credalchain.bases.joint.arrays import Leaves, Trees
from credalchain.bases.joint.growing import LEAST_DOUBT, find_leaves, no_weights
from credalchain.bases.protocol import Labels
from credalchain.labels import MISSING

_ROWS_AT_ONCE = 2**14


@dataclass(frozen=True, eq=False)
class LeafCounts:
    """How many rows with each label vector came to each leaf.

    ``vectors`` (K, m) are sorted and all different; they may have gaps. Entry i says that
    ``times[i]`` rows with the vector ``vector[i]`` came to the leaf ``node[i]``; entries are sorted
    by leaf, then vector. So sums do not depend on who counted first.
    """

    vectors: Labels
    node: NDArray[np.int32]
    vector: NDArray[np.int32]
    times: NDArray[np.uint32]

    @classmethod
    def of_rows(cls, nodes: NDArray[np.int32], labels: Labels) -> "LeafCounts":
        """From the leaves of rows (n, trees) and their labels (n, m)."""
        vectors, place = np.unique(labels, axis=0, return_inverse=True)
        place, n_vectors = place.reshape(-1), max(1, len(vectors))
        trees = [
            np.unique(nodes[:, tree].astype(np.int64) * n_vectors + place, return_counts=True)
            for tree in range(nodes.shape[1])
        ]
        return cls._of_keys(
            vectors,
            np.concatenate([key for key, _ in trees]),
            np.concatenate([n for _, n in trees]),
        )

    @classmethod
    def _of_keys(
        cls, vectors: Labels, keys: NDArray[np.int64], times: NDArray[np.int64]
    ) -> "LeafCounts":
        n_vectors = max(1, len(vectors))
        if len(times) and times.max() >= 2**32:
            raise ValueError("a leaf cannot hold 2**32 rows or more with the same labels.")
        return cls(
            vectors,
            (keys // n_vectors).astype(np.int32),
            (keys % n_vectors).astype(np.int32),
            times.astype(np.uint32),
        )

    def __add__(self, other: "LeafCounts") -> "LeafCounts":
        both = np.concatenate([self.vectors, other.vectors])
        vectors, place = np.unique(both, axis=0, return_inverse=True)
        place, n_vectors = place.reshape(-1), max(1, len(vectors))
        first = len(self.vectors)
        keys = np.concatenate(
            [
                self.node.astype(np.int64) * n_vectors + place[:first][self.vector],
                other.node.astype(np.int64) * n_vectors + place[first:][other.vector],
            ]
        )
        times = np.concatenate([self.times, other.times]).astype(np.int64)
        order = np.argsort(keys, kind="stable")  # two sorted runs: a merge
        keys, times = keys[order], times[order]
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        total = np.add.reduceat(times, starts) if len(starts) else times
        return self._of_keys(vectors, keys[starts], total)


@dataclass(frozen=True, eq=False)
class LeafCounter:
    """Counts rows in the leaves of trees that were grown on others.

    With ``leaves`` of all rows, a missing label is drawn from its probability given x and the
    row's other labels, so that a row counts as one label vector; without (None), it stays
    missing.
    """

    trees: Trees
    leaves: Leaves | None = None

    def count(
        self, X: NDArray[np.float32], labels: Labels, uniform: NDArray[np.float64]
    ) -> LeafCounts:
        """Of encoded rows; ``uniform`` (n, m) are the numbers from 0 to 1 that draws use."""
        total = LeafCounts.of_rows(find_leaves(X[:0], self.trees), labels[:0])
        for first in range(0, len(X), _ROWS_AT_ONCE):
            rows = slice(first, first + _ROWS_AT_ONCE)
            nodes, its_labels = find_leaves(X[rows], self.trees), labels[rows]
            if self.leaves is not None:
                its_labels = _drawn(self.leaves, nodes, its_labels, uniform[rows])
            total = total + LeafCounts.of_rows(nodes, its_labels)
        return total


def _drawn(
    leaves: Leaves, nodes: NDArray[np.int32], labels: Labels, uniform: NDArray[np.float64]
) -> Labels:
    """Label by label, each given those before: so a draw of all that are missing together."""
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
    """P(Y_j = 1) given known labels, or without them if no row has those; NaN: nobody knows."""
    from credalchain.bases.joint import kernels  # imports numba

    p = np.full(len(known), np.nan)
    for told in (known, np.full_like(known, MISSING)):
        rows = np.flatnonzero(np.isnan(p))
        lower = np.empty((len(rows), known.shape[1], 2))
        kernels.bound_labels(nodes[rows], told[rows], no_weights(len(rows)), leaves, 0.0, lower)
        zero, one = lower[:, j, 0], lower[:, j, 1]
        total = zero + one
        p[rows] = np.where(total > 0, one / np.where(total > 0, total, 1.0), np.nan)
    return p


def fill_from_all(
    leaves: Leaves, observed: Leaves, nodes: NDArray[np.int32], labels: Labels
) -> Leaves:
    """Leaves in which missing labels of the training rows have the probability by all rows.

    ``observed`` hold all rows, and nothing but what was observed; ``nodes`` (n, trees) are those
    that the training rows come to.
    """
    says = leaves.says.copy()
    for j in np.flatnonzero((labels == MISSING).any(axis=0)).tolist():
        rows = np.flatnonzero(labels[:, j] == MISSING)
        p = _probability(observed, nodes[rows], labels[rows], j)
        rows, p = rows[~np.isnan(p)], np.clip(p[~np.isnan(p)], LEAST_DOUBT, 1 - LEAST_DOUBT)
        says[0, leaves.vector_of[rows], j], says[1, leaves.vector_of[rows], j] = 1 - p, p
    return leaves._replace(says=says)


def with_counts(leaves: Leaves, more: LeafCounts) -> Leaves:
    """The same leaves with rows counted besides.

    They are no single rows any more: after the training rows, a row for each of their label
    vectors stands for all that have it.
    """
    vector_of, says = _extended(leaves.says, more.vectors)
    n_rows, n_nodes = len(leaves.vector_of), len(leaves.first) - 1
    node = np.concatenate([np.repeat(np.arange(n_nodes), np.diff(leaves.first)), more.node])
    order = np.argsort(node, kind="stable")
    sizes = np.bincount(node, minlength=n_nodes)
    return leaves._replace(
        first=np.append(0, np.cumsum(sizes)).astype(np.int64),
        row=np.concatenate([leaves.row, n_rows + more.vector])[order].astype(np.int32),
        times=np.concatenate([leaves.times.astype(np.uint32), more.times])[order],
        vector_of=np.concatenate([leaves.vector_of, vector_of]).astype(np.int32),
        says=says,
    )


def _extended(
    says: NDArray[np.float64], vectors: Labels
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """The places of ``vectors`` in ``says`` (2, K, m), to which those not there are added."""
    complete = np.flatnonzero((says.max(axis=0) == 1).all(axis=1))
    places = {says[1, at].astype(np.int8).tobytes(): at for at in complete.tolist()}
    found = [places.get(vector.tobytes(), -1) for vector in np.ascontiguousarray(vectors)]
    place = np.array(found, dtype=np.int32).reshape(-1)
    new = np.flatnonzero(place < 0)
    place[new] = says.shape[1] + np.arange(len(new))
    new_says = np.stack([vectors[new] == 0, vectors[new] == 1]).astype(np.float64)
    return place, np.concatenate([says, new_says], axis=1)
