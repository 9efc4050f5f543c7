"""A fitted forest as a few flat arrays."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain.array_types import Labels
from credalchain.bases.protocol import Rows
from credalchain.labels import MISSING
from credalchain.validation import check_array

LEAF = 2**31 - 1  # value of ``feature`` in a leaf
_MAX_ROWS = 2**53  # larger integers are not exact as floats
_NODES: dict[str, Any] = {
    "feature": np.int32,
    "threshold": np.float64,
    "left": np.int32,
    "right": np.int32,
    "missing_left": np.bool_,
}


def check_nodes(nodes: Any, n_features: int, first_feature: int = 0) -> None:
    """Validate stored trees: no cycles, and splits on columns that exist."""
    n = len(nodes.feature)
    for name, dtype in _NODES.items():
        check_array(name, getattr(nodes, name), dtype, (n,))
    check_array("roots", nodes.roots, np.int32, (None,), 0, n - 1)
    splits = nodes.feature != LEAF
    children = np.stack([nodes.left, nodes.right])[:, splits]
    if len(nodes.roots) == 0 or not ((children > np.flatnonzero(splits)) & (children < n)).all():
        raise ValueError("the branches of a node must come after it.")
    if len(np.unique(np.append(children, nodes.roots))) < children.size + len(nodes.roots):
        raise ValueError("a node must have one parent.")
    columns = nodes.feature[splits]
    if not ((columns >= first_feature) & (columns < n_features)).all():
        raise ValueError("the trees split on a column that does not exist.")
    if np.isnan(nodes.threshold[splits]).any():
        raise ValueError("a split needs a number.")


@dataclass(frozen=True, eq=False)
class PackedForest:
    """All nodes of all trees, one after the other; see ``forest_bounds``."""

    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    missing_left: NDArray[np.bool_]
    counts: NDArray[np.float64]
    roots: NDArray[np.int32]

    @classmethod
    def of(cls, forest: Any, n_features: int, earlier: NDArray[np.int64]) -> "PackedForest":
        """From scikit-learn's forest over the features and then the labels ``earlier``."""
        trees = [tree.tree_ for tree in forest.estimators_]
        column, threshold, left, right, missing_left, roots = packed_nodes(
            [nodes_of(tree) for tree in trees]
        )
        label = np.append(earlier, 0)[np.clip(column - n_features, 0, len(earlier))]
        feature = np.where((column < n_features) | (column == LEAF), column, -1 - label)
        counts = _counts(trees, forest.classes_)
        return cls(feature.astype(np.int32), threshold, left, right, missing_left, counts, roots)

    def check_state(self, n_features: int, n_labels: int) -> None:
        """Validate stored trees over these features and labels."""
        check_nodes(self, n_features, -n_labels)
        check_array("counts", self.counts, np.float64, (len(self.feature), 2), 0, _MAX_ROWS)
        if not self.counts.any(axis=1).all():
            raise ValueError("a node must hold training rows.")

    def bounds(
        self, X: NDArray[np.float32], rows: Rows, history: Labels, *, s: float, weighted: bool
    ) -> NDArray[np.float64]:
        """Lower and upper probability, (rows, 2)."""
        from credalchain.bases.forest import kernels  # imports numba

        bounds = np.empty((len(rows), 2))
        kernels.forest_bounds(
            X,
            rows,
            history,
            self.feature,
            self.threshold,
            self.left,
            self.right,
            self.missing_left,
            self.counts,
            self.roots,
            s,
            weighted,
            bounds,
        )
        return bounds

    @classmethod
    def single_leaf(cls) -> "PackedForest":
        """A single empty leaf, for a label observed only in unsampled rows."""
        return cls(
            np.array([LEAF], np.int32),
            np.full(1, -2.0),
            np.zeros(1, np.int32),
            np.zeros(1, np.int32),
            np.zeros(1, bool),
            np.zeros((1, 2)),
            np.zeros(1, np.int32),
        )

    def count(self, X: NDArray[np.float32], labels: Labels, j: int) -> NDArray[np.float64]:
        """Rows of each class of label j in every node (nodes, 2), of rows that have the label."""
        from credalchain.bases.forest import kernels  # imports numba

        counts = np.zeros_like(self.counts)
        kernels.count_rows(
            X,
            np.flatnonzero(labels[:, j] != MISSING),
            labels,
            j,
            self.feature,
            self.threshold,
            self.left,
            self.right,
            self.missing_left,
            self.roots,
            counts,
        )
        return counts

    def exact_bounds(
        self, x: NDArray[np.float32], history: Labels, *, s: float, weighted: bool
    ) -> tuple[Fraction, Fraction]:
        """The bounds of one row as fractions: the literal form of ``forest_bounds``."""
        totals = [Fraction(0), Fraction(0)]
        for root in self.roots.tolist():
            weight = Fraction(1) if weighted else None
            leaves = list(self._leaves(root, x, history.tolist(), weight))
            bounds = [self._exact_leaf(leaf, Fraction(s)) for leaf, _ in leaves]
            if weighted:
                tree = [
                    sum(w * b[i] for (_, w), b in zip(leaves, bounds, strict=True)) for i in (0, 1)
                ]
            else:
                tree = [min(low for low, _ in bounds), max(high for _, high in bounds)]
            totals = [total + bound for total, bound in zip(totals, tree, strict=True)]
        return totals[0] / len(self.roots), totals[1] / len(self.roots)

    def _exact_leaf(self, leaf: int, s: Fraction) -> tuple[Fraction, Fraction]:
        n0, n1 = (Fraction(float(count)) for count in self.counts[leaf])
        return n1 / (n0 + n1 + s), (n1 + s) / (n0 + n1 + s)

    def _leaves(
        self, node: int, x: NDArray[np.float32], history: list[int], weight: Fraction | None
    ) -> Iterator[tuple[int, Any]]:
        """The leaves that a row can reach, each with its share of ``weight`` unless that is None.

        Branches share by their training rows. An open label has one value on the whole path.
        """
        while self.feature[node] != LEAF:
            column, threshold = int(self.feature[node]), self.threshold[node]
            if column < 0 and history[-1 - column] < 0 and 0 <= threshold < 1:
                children = int(self.left[node]), int(self.right[node])
                weights: list[Fraction | None] = [None, None]
                if weight is not None:
                    sizes = [Fraction(float(self.counts[child].sum())) for child in children]
                    weights = [weight * size / sum(sizes) for size in sizes]
                for value, child in enumerate(children):
                    fixed_history = list(history)
                    fixed_history[-1 - column] = value
                    yield from self._leaves(child, x, fixed_history, weights[value])
                return
            value = x[column] if column >= 0 else max(history[-1 - column], 0)
            to_left = self.missing_left[node] if np.isnan(value) else value <= threshold
            node = int(self.left[node] if to_left else self.right[node])
        yield node, weight


def nodes_of(tree: Any) -> NDArray[Any]:
    """The nodes of scikit-learn's tree, one record each."""
    return np.array(tree.__getstate__()["nodes"])


def packed_nodes(trees: list[NDArray[Any]]) -> tuple[Any, Any, Any, Any, Any, Any]:
    """Nodes of several trees one after the other.

    Column (or LEAF), threshold, left, right and missing-left of every node; the trees' roots.
    """
    sizes = np.array([len(nodes) for nodes in trees])
    roots = np.cumsum(sizes) - sizes
    nodes = np.concatenate(trees)
    shift = np.repeat(roots, sizes)
    is_leaf = nodes["left_child"] < 0
    return (
        np.where(is_leaf, LEAF, nodes["feature"]).astype(np.int32),
        nodes["threshold"].copy(),
        np.where(is_leaf, 0, nodes["left_child"] + shift).astype(np.int32),
        np.where(is_leaf, 0, nodes["right_child"] + shift).astype(np.int32),
        nodes["missing_go_to_left"].astype(bool),
        roots.astype(np.int32),
    )


def _counts(trees: list[Any], classes: NDArray[Any]) -> NDArray[np.float64]:
    """Training rows of each class in every node, (nodes, 2), as the bootstrap weighs them."""
    shares = np.concatenate([tree.value[:, 0, :] for tree in trees])
    weights = np.concatenate([tree.weighted_n_node_samples for tree in trees])
    rows = shares * weights[:, None]
    if (np.abs(rows - np.rint(rows)) < 1e-6).all():  # whole rows, which shares have rounded
        rows = np.rint(rows)
    counts = np.zeros((len(weights), 2))
    counts[:, np.asarray(classes, dtype=np.int64)] = rows
    return counts
