"""The training rows with the greatest weights in a prediction, and what they have in common."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.array_types import Labels
from credalchain.chains.forest import LEAF, Trees
from credalchain.joint.model import JointModel
from credalchain.labels import MISSING


class Condition(NamedTuple):
    """lower < feature <= upper, or it is missing: true of both rows, tested by ``n_trees``."""

    feature: int
    lower: float
    upper: float
    is_missing: bool
    n_trees: int


class TrainingRow(NamedTuple):
    """A training row by number, its share of all weight, its labels, what it has in common."""

    number: int
    weight: float
    labels: Labels
    in_common: list[Condition]


def similar_rows(
    model: JointModel,
    x: NDArray[np.float32],
    *,
    known: Labels,
    at_most: int,
    labels: Sequence[int] | None = None,
) -> list[TrainingRow]:
    """Find the similar rows of one encoded row (1, p), the heaviest first.

    Rows that contradict ``known`` are left out, and those in which all ``labels`` (by default all
    there are) were missing. There are none if trees have no weight.
    """
    leaves = model.leaves
    if leaves.joint + leaves.product == 0:  # over scores, the other members may have all weight
        return []
    weights, _ = model.row_weights(x, s=0.0)
    numbers, shares = weights.indices, weights.data
    vectors = leaves.label_mass[:, leaves.vector_of[numbers]]  # (2, rows, m)
    for j in np.flatnonzero(known != MISSING).tolist():
        shares = shares * vectors[known[j], :, j]
    total = shares.sum()
    observed = vectors.max(axis=0) == 1
    is_evidence = observed[:, slice(None) if labels is None else labels].any(axis=1)
    is_stored = numbers < model.n_training_rows  # merged rows cannot be shown
    shares = np.where(is_stored & is_evidence, shares, 0.0)
    heaviest = np.lexsort((numbers, -shares))[:at_most]
    nodes = model.leaves_of(x)[0]
    rows = []
    for index in heaviest.tolist():
        if shares[index] <= 0:
            break
        number = int(numbers[index])
        row_labels = np.where(observed[index], vectors[1, index] == 1, MISSING).astype(np.int8)
        shared = [
            tree
            for tree, node in enumerate(nodes.tolist())
            if number in leaves.row[leaves.indptr[node] : leaves.indptr[node + 1]]
        ]
        first, stop = np.searchsorted(model.missing_features[0], [number, number + 1])
        was_missing = set(model.missing_features[1, first:stop].tolist())
        conditions = [
            condition
            for condition in _conditions(model.trees, x[0], shared)
            if condition.is_missing == (condition.feature in was_missing)
        ]
        weight = (leaves.joint + leaves.product) * float(shares[index] / total)
        in_data = number if model.row_numbers is None else int(model.row_numbers[number])
        rows.append(TrainingRow(in_data, weight, row_labels, conditions))
    return rows


def _conditions(trees: Trees, x: NDArray[np.float32], shared: list[int]) -> list[Condition]:
    """Return the splits on the paths of some trees, a condition per column, most frequent first."""
    bounds: dict[int, list[float]] = defaultdict(lambda: [-np.inf, np.inf])
    asked_by: dict[int, set[int]] = defaultdict(set)
    for tree in shared:
        node = int(trees.roots[tree])
        while trees.feature[node] != LEAF:
            column, threshold = int(trees.feature[node]), float(trees.threshold[node])
            asked_by[column].add(tree)
            value = float(x[column])  # NumPy would round the threshold to the value's 32 bits
            is_missing = np.isnan(value)
            to_left = trees.missing_left[node] if is_missing else value <= threshold
            if not is_missing:
                nearer = min if to_left else max
                bounds[column][int(to_left)] = nearer(bounds[column][int(to_left)], threshold)
            node = int(trees.left[node] if to_left else trees.right[node])
    columns = sorted(asked_by, key=lambda column: (-len(asked_by[column]), column))
    return [
        Condition(column, low, high, bool(np.isnan(x[column])), len(asked_by[column]))
        for column, (low, high) in ((column, bounds[column]) for column in columns)
    ]
