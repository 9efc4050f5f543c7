"""The joint model in exact fractions: its formulas for one row."""

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.array_types import Labels
from credalchain.joint.arrays import Leaves

Event = Mapping[int, int]  # label: value


def exact_lower(
    nodes: NDArray[np.int32],
    member_weights: Mapping[int, float],
    leaves: Leaves,
    *,
    s: float,
    event: Event,
    known: Labels,
) -> Fraction:
    """Compute the lower probability of an event (some labels have some values), given known labels.

    ``nodes`` are the leaves of the row, ``member_weights`` the weights of members on vectors.
    """
    given = {j: value for j, value in enumerate(known.tolist()) if value >= 0}
    if any(given.get(j, value) != value for j, value in event.items()):
        return Fraction(0)
    asked = {j: value for j, value in event.items() if j not in given}
    if not asked:
        return Fraction(1)
    imprecision, trees = Fraction(s), [node for node in nodes.tolist() if node >= 0]
    rest, products = Fraction(0), []
    leaf_weights: dict[int, Fraction] = {}
    for node in trees:
        rows = range(int(leaves.indptr[node]), int(leaves.indptr[node + 1]))
        n_rows = Fraction(sum(int(leaves.times[entry]) for entry in rows))
        rest += imprecision / (n_rows + imprecision) / len(trees)
        tree_weights: dict[int, Fraction] = {}
        for entry in rows:
            u = int(leaves.vector_of[leaves.row[entry]])
            weight = Fraction(int(leaves.times[entry])) / (n_rows + imprecision)
            tree_weights[u] = tree_weights.get(u, Fraction(0)) + weight
        for u, weight in tree_weights.items():
            leaf_weights[u] = leaf_weights.get(u, Fraction(0)) + weight / len(trees)
        products.append(_bounds_in_tree(tree_weights, asked, given, leaves))
    joint, product = Fraction(leaves.joint), Fraction(leaves.product)
    weights = {u: joint * weight for u, weight in leaf_weights.items()}
    certain = 1 if leaves.precise_members else 1 - rest
    rest *= joint if leaves.precise_members else 1 - product
    for u, member_weight in member_weights.items():
        weights[u] = weights.get(u, Fraction(0)) + Fraction(member_weight) * certain
    both = only_known = Fraction(0)
    possible = rest > 0
    for u, weight in weights.items():
        p = _lower(u, asked, leaves)
        both += weight * _lower(u, given, leaves) * p
        only_known += weight * _upper(u, given, leaves) * (1 - p)
        possible |= weight * _upper(u, given, leaves) > 0
    if not given:
        return both + product * sum((p for p, _, _ in products), Fraction(0)) / max(len(trees), 1)
    only_known += rest
    return _least_ratio(both, only_known, product / max(len(trees), 1), products, possible)


def _lower(u: int, event: Event, leaves: Leaves) -> Fraction:
    p = Fraction(1)
    for j, value in event.items():
        p *= Fraction(float(leaves.label_mass[value, u, j]))
    return p


def _upper(u: int, event: Event, leaves: Leaves) -> Fraction:
    p = Fraction(1)
    for j, value in event.items():
        p *= 1 - Fraction(float(leaves.label_mass[1 - value, u, j]))
    return p


def _bounds_in_tree(
    weights: Mapping[int, Fraction], asked: Event, given: Event, leaves: Leaves
) -> tuple[Fraction, Fraction, Fraction]:
    """Bound events in one leaf, labels independent: lower P(asked), lower and upper P(given)."""

    def lower(j: int, value: int) -> Fraction:
        label_mass = leaves.label_mass[value, :, j]
        return sum((w * Fraction(float(label_mass[u])) for u, w in weights.items()), Fraction(0))

    p, low, high = Fraction(1), Fraction(1), Fraction(1)
    for j, value in asked.items():
        p *= lower(j, value)
    for j, value in given.items():
        low, high = low * lower(j, value), high * (1 - lower(j, 1 - value))
    return p, low, high


def _least_ratio(
    both: Fraction,
    only_known: Fraction,
    share: Fraction,
    trees: list[tuple[Fraction, Fraction, Fraction]],
    possible: bool,
) -> Fraction:
    """Compute the least P(asked | given) as in the kernel of this name."""
    least: Fraction | None = None
    while True:
        top, bottom = both, both + only_known
        for p, low, high in trees:
            p_known = high if least is None or p < least else low
            top += share * p * p_known
            bottom += share * p_known
        if bottom == 0:
            return Fraction(possible) if least is None else least
        if least is not None and top / bottom >= least:
            return least
        least = top / bottom
