"""Bounds from a forest; both branches are followed where a label is open.

Memory layout: the nodes of all trees of a forest are stored one after the other; a node is a row in
each of a few flat arrays. ``feature`` is a column of X, or -1 - k for label k, or LEAF. A row of
data goes through one tree after the other, so it stays in the first-level cache.
"""

import math

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.compiler import kernel
from credalchain.chains.forest import LEAF, Trees


@kernel
def forest_bounds(
    X: NDArray[np.float32],
    rows: NDArray[np.intp],
    history: NDArray[np.int8],
    trees: Trees,
    counts: NDArray[np.float64],
    s: float,
    weighted: bool,
    bounds: NDArray[np.float64],
) -> None:
    """Fill ``bounds`` (rows, 2): the mean over the trees of lower and upper P(1).

    A leaf with counts (n0, n1) gives [n1 / (n0 + n1 + s), (n1 + s) / (n0 + n1 + s)]. Of several
    leaves that open labels can lead to, a tree takes the least lower and the greatest upper
    bound, or with ``weighted`` the mean of each, weighted by the training rows in the branches.
    An open label takes one value for the whole of a path, however often the path splits on it.
    """
    n_trees, n_labels = trees.roots.shape[0], history.shape[1]
    labels = np.empty(n_labels, np.int8)  # of a row; open ones as fixed on the current path
    fixed = np.empty(n_labels, np.int32)  # labels fixed on the current path, in order
    # branches still to visit, where a label is 1: at most one per label
    nodes = np.empty(n_labels, np.int32)
    label_of = np.empty(n_labels, np.int32)
    depth_of = np.empty(n_labels, np.int32)  # how many labels were fixed above it
    weights = np.empty(n_labels, np.float64)
    for i in range(rows.shape[0]):
        row = rows[i]
        for k in range(n_labels):
            labels[k] = history[row, k]
        total_lower, total_upper = 0.0, 0.0
        for tree in range(n_trees):
            node, weight, n_fixed, waiting = trees.roots[tree], 1.0, 0, 0
            lower, upper = (0.0, 0.0) if weighted else (1.0, 0.0)
            while True:
                while trees.feature[node] != LEAF:
                    column = trees.feature[node]
                    if column >= 0:
                        value = X[row, column]
                        if math.isnan(value):
                            to_left = trees.missing_left[node]
                        else:
                            to_left = value <= trees.threshold[node]
                    elif labels[-1 - column] >= 0:
                        to_left = labels[-1 - column] <= trees.threshold[node]
                    elif trees.threshold[node] >= 1.0 or trees.threshold[node] < 0.0:
                        to_left = trees.threshold[node] >= 1.0  # 0 and 1 go the same way
                    else:
                        a, b = trees.left[node], trees.right[node]
                        share = 1.0
                        if weighted:
                            n_left = counts[a, 0] + counts[a, 1]
                            share = n_left / (n_left + counts[b, 0] + counts[b, 1])
                        nodes[waiting], label_of[waiting] = b, -1 - column
                        depth_of[waiting] = n_fixed
                        weights[waiting] = weight * (1.0 - share) if weighted else weight
                        waiting += 1
                        labels[-1 - column] = 0
                        fixed[n_fixed] = -1 - column
                        n_fixed += 1
                        weight *= share
                        to_left = True
                    node = trees.left[node] if to_left else trees.right[node]
                n0, n1 = counts[node, 0], counts[node, 1]
                low, high = n1 / (n0 + n1 + s), (n1 + s) / (n0 + n1 + s)
                if weighted:
                    lower += weight * low
                    upper += weight * high
                else:
                    lower, upper = min(lower, low), max(upper, high)
                depth = depth_of[waiting - 1] if waiting > 0 else 0
                while n_fixed > depth:
                    n_fixed -= 1
                    labels[fixed[n_fixed]] = history[row, fixed[n_fixed]]
                if waiting == 0:
                    break
                waiting -= 1
                node, weight = nodes[waiting], weights[waiting]
                labels[label_of[waiting]] = 1
                fixed[n_fixed] = label_of[waiting]
                n_fixed += 1
            total_lower += lower
            total_upper += upper
        bounds[i, 0], bounds[i, 1] = total_lower / n_trees, total_upper / n_trees


@kernel
def count_rows(
    X: NDArray[np.float32],
    rows: NDArray[np.intp],
    labels: NDArray[np.int8],
    j: int,
    trees: Trees,
    counts: NDArray[np.float64],
) -> None:
    """Add ``rows`` to ``counts`` (nodes, 2) of all nodes they come through, by their label j."""
    for i in range(rows.shape[0]):
        row = rows[i]
        y = labels[row, j]
        for root in trees.roots:
            node = root
            counts[node, y] += 1.0
            while trees.feature[node] != LEAF:
                column = trees.feature[node]
                value = X[row, column] if column >= 0 else np.float32(labels[row, -1 - column])
                if math.isnan(value) or (column < 0 and value < 0):
                    to_left = trees.missing_left[node]
                else:
                    to_left = value <= trees.threshold[node]
                node = trees.left[node] if to_left else trees.right[node]
                counts[node, y] += 1.0


@kernel
def find_fault(
    trees: Trees, first_feature: int, n_features: int, has_parent: NDArray[np.bool_]
) -> int:
    """Return 0 for valid trees, or which of ``forest._FAULTS`` they have.

    ``has_parent`` (nodes,) is False, and filled.
    """
    n = trees.feature.shape[0]
    for root in trees.roots:
        if has_parent[root]:
            return 2
        has_parent[root] = True
    for node in range(n):
        if trees.feature[node] == LEAF:
            continue
        for child in (trees.left[node], trees.right[node]):
            if child <= node or child >= n:
                return 1
            if has_parent[child]:
                return 2
            has_parent[child] = True
        if trees.feature[node] < first_feature or trees.feature[node] >= n_features:
            return 3
        if math.isnan(trees.threshold[node]):
            return 4
    return 0
