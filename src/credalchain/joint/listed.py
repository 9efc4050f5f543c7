"""Decisions from label vectors that are listed one by one, with their weights.

Other decisions add up products of probabilities and need no list. Measures of a row such as F1 do,
because they are no sums over labels, and so do constraints between labels.
"""

from collections.abc import Sequence
from functools import cache, reduce
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.array_types import FloatArray, Labels
from credalchain.joint.arrays import Leaves
from credalchain.joint.constraints import Constraint, complete_labels, infer_known
from credalchain.joint.model import JointModel, PricedAnswers
from credalchain.joint.rules import Costs, Measure, Rule, price_cells
from credalchain.labels import MISSING

_MAX_ENUMERATED = 8  # labels: 256 vectors
_N_DRAWS = 256
_ROUNDING = 2.0**-40


class ListedVectors(NamedTuple):
    """The label vectors that a row may have.

    ``vectors`` (S, m) hold 0, 1, or -1 for labels that may be either; ``weights`` (S,) and ``rest``
    add up to at most 1. ``is_exact``: none of them was drawn at random.
    """

    vectors: Labels
    weights: FloatArray
    rest: float
    is_exact: bool


@cache
def _all_vectors(n_labels: int) -> Labels:
    vectors = np.array(list(product((0, 1), repeat=n_labels)), dtype=np.int8)
    return vectors.reshape(2**n_labels, n_labels)


@cache
def _uniforms(n_labels: int) -> FloatArray:
    """Return numbers between 0 and 1 (draws, m), evenly spaced in every column."""
    even = (np.arange(_N_DRAWS) + 0.5) / _N_DRAWS
    return np.random.default_rng(0).permuted(np.tile(even[:, None], n_labels), axis=0)


@cache
def _hash_factors(n_labels: int) -> NDArray[np.int64]:
    return np.random.default_rng(1).integers(-(2**60), 2**60, n_labels)


def list_vectors(
    weights: FloatArray, zero: FloatArray, one: FloatArray, rest: float, known: Labels
) -> ListedVectors:
    """List the label vectors of a row.

    A component has a weight (C,), and lower probabilities ``zero`` and ``one`` (C, m) of the values
    of labels that are independent given the component. Few labels: all vectors are listed. Else
    components that are one vector are listed, and the others, products, are drawn from.
    """
    is_known = known != MISSING
    if is_known.any():
        of_known = np.where(known[is_known] == 1, one[:, is_known], zero[:, is_known])
        of_other = np.where(known[is_known] == 1, zero[:, is_known], one[:, is_known])
        low, high = of_known.prod(axis=1), (1 - of_other).prod(axis=1)
        rest += float((weights * (high - low)).sum())
        weights = weights * low
        zero = np.where(is_known, known == 0, zero)
        one = np.where(is_known, known == 1, one)
    kept = weights > 0
    weights, zero, one = weights[kept], zero[kept], one[kept]
    listed = ~is_known & ((zero > 0) | (one > 0)).any(axis=0)
    columns = np.flatnonzero(listed)
    if len(columns) <= _MAX_ENUMERATED and (zero + one > 1 - _ROUNDING)[:, columns].all():
        halves = []
        for half in np.array_split(columns, 2):  # P(values of these labels | component)
            parts = (np.stack([zero[:, j], one[:, j]], axis=1) for j in half)
            ones = np.ones((len(weights), 1))
            halves.append(
                reduce(lambda a, b: (a[:, :, None] * b[:, None]).reshape(len(a), -1), parts, ones)
            )
        vectors = np.tile(known, (2 ** len(columns), 1))
        vectors[:, columns] = _all_vectors(len(columns))
        total = ((halves[0] * weights[:, None]).T @ halves[1]).ravel()
        return ListedVectors(vectors[total > 0], total[total > 0], rest, True)
    is_vector = ((zero == 1) | (one == 1) | ((zero == 0) & (one == 0))).all(axis=1)
    vectors = np.where(one == 1, np.int8(1), np.where(zero == 1, np.int8(0), np.int8(MISSING)))
    vectors, total = vectors[is_vector], weights[is_vector]
    drawn_mass = weights[~is_vector]
    if len(drawn_mass):
        ends = drawn_mass.cumsum()
        source = np.searchsorted(ends, (np.arange(_N_DRAWS) + 0.5) / _N_DRAWS * ends[-1])
        at = _uniforms(zero.shape[1])
        is_one, is_zero = at < one[~is_vector][source], at > 1 - zero[~is_vector][source]
        draws = np.where(is_one, np.int8(1), np.where(is_zero, np.int8(0), np.int8(MISSING)))
        vectors = np.concatenate([vectors, draws])
        total = np.append(total, np.full(_N_DRAWS, ends[-1] / _N_DRAWS))
    hashes = vectors.astype(np.int64) @ _hash_factors(vectors.shape[1])
    _, first, which = np.unique(hashes, return_index=True, return_inverse=True)
    merged: FloatArray = np.bincount(which, total, len(first)).astype(np.float64)
    return ListedVectors(vectors[first], merged, rest, not len(drawn_mass))


def decide_listed(
    model: JointModel,
    encoded: NDArray[np.float32],
    rule: Rule,
    costs: Costs,
    constraints: Sequence[Constraint],
    *,
    s: float,
    known: Labels | None,
    n_jobs: int = 1,
) -> PricedAnswers:
    """Decide which labels to answer, given that the label vector meets all constraints."""
    from credalchain.joint import kernels  # imports numba

    n, m = len(encoded), model.n_labels
    never, given = model.never_observed(), np.full((n, m), MISSING, dtype=np.int8)
    if known is not None:
        given[:] = known
    if constraints:
        given = np.array([infer_known(constraints, row) for row in given]).reshape(n, m)
    usable = np.where(never, np.int8(MISSING), given)  # nothing follows from a label never observed
    lower, answers = np.zeros((n, m, 2)), np.zeros((n, m), dtype=np.int8)
    order, stop = np.tile(np.arange(m), (n, 1)), np.zeros(n, dtype=np.int64)
    worth, prices = np.ones((n, m + 1)), np.full((n, m), np.inf)
    is_exact = np.ones(n, dtype=bool)

    def run(rows: slice, nodes: Any, leaves: Leaves, weights: Any, workspace: Any) -> None:
        k, n_trees = len(nodes), nodes.shape[1] if leaves.product > 0 else 0
        on_vectors = np.zeros((k, leaves.label_mass.shape[1]))
        tree_lower, rest = np.empty((k, 2, m, n_trees)), np.empty(k)
        kernels.weigh_vectors(nodes, weights, leaves, s, workspace, on_vectors, tree_lower, rest)
        for i, row in enumerate(range(*rows.indices(n))):
            used = np.flatnonzero(on_vectors[i])
            mass = np.concatenate([leaves.label_mass[:, used], tree_lower[i].swapaxes(1, 2)], 1)
            component = np.append(
                on_vectors[i, used], np.full(n_trees, leaves.product / max(n_trees, 1))
            )
            listed = list_vectors(component, mass[0], mass[1], rest[i], usable[row])
            decided = _decide_row(listed, rule, costs, constraints, given[row], never)
            lower[row], answers[row], order[row], stop[row], worth[row], prices[row] = decided
            is_enumerated = (usable[row] == MISSING).sum() <= _MAX_ENUMERATED
            is_exact[row] = listed.is_exact and (rule.measure is None or is_enumerated)

    model.for_chunks(encoded, model.prepared.merged, n_jobs, run)
    if rule.expected_costs is None:
        kernels.price_prefixes(worth, order, stop, rule.measure is None, prices)
    return PricedAnswers.of_rows(lower, answers, prices, is_exact, known)


def _weighted(p: FloatArray, is_in: NDArray[np.bool_]) -> FloatArray:
    """Sum weights (S,) where (S, m) holds; the threads of a matrix product cost more."""
    return np.asarray(np.einsum("i,ij->j", p, is_in))


def _decide_row(
    listed: ListedVectors,
    rule: Rule,
    costs: Costs,
    constraints: Sequence[Constraint],
    known: Labels,
    never: NDArray[np.bool_],
) -> tuple[Any, ...]:
    """Return bounds, answers, the order of labels, how many may be answered, worth, prices.

    The answers to all labels meet the constraints, unless known labels contradict them.
    """
    vectors, weights, rest, _ = listed
    m, is_known = len(known), known != MISSING
    vectors[:, is_known] = known[is_known]  # also labels never observed
    may, surely = np.ones((2, len(vectors)), dtype=bool)
    for constraint in constraints:
        possible, sure = constraint.check_vectors(vectors)
        may, surely = may & possible, surely & sure
    total = weights[may].sum() + rest
    vectors, surely = vectors[may], surely[may]
    p = weights[may] * surely / (total if total > 0 else 1.0)
    lower = np.stack([_weighted(p, vectors == value) for value in (0, 1)], axis=-1)
    lower[lower > 1 - _ROUNDING] = 1.0
    lower[is_known] = np.stack([known == 0, known == 1], axis=-1)[is_known]
    answers = ((lower[:, 1] >= lower[:, 0]) & ~never).astype(np.int8)
    prices = np.full(m, np.inf)
    worth, is_open = np.ones(m + 1), ~is_known & (lower.max(axis=-1) > 0)
    if not is_open.any():
        prices[is_known] = 0.0
        completed = complete_labels(constraints, known, answers)
        answers = answers if completed is None else completed
        return lower, answers, np.argsort(~is_known), is_known.sum(), worth, prices
    if rule.expected_costs is not None:
        answers, prices = price_cells(rule, lower, costs)
    else:
        best = vectors[p.argmax()]
        if rule.measure is not None:
            best = best.copy()
            best[is_open] = _best_answers(rule.measure, vectors[:, is_open], p)
        answers = np.where(is_open & (best != MISSING), best, answers)
    certainty = np.where(answers == 1, lower[:, 1], lower[:, 0])
    if rule.expected_costs is not None:
        certainty = -prices
    order = np.lexsort((-certainty, ~is_open, ~is_known))
    first, stop = is_known.sum(), is_known.sum() + is_open.sum()
    if constraints:
        # an answer that no vector has, together with the surer ones, cannot be given
        kept: list[Any] = []
        dropped: list[Any] = []
        alive, given = np.ones(len(vectors), dtype=bool), known.copy()
        for j in order[first:stop]:
            agrees, given[j] = alive & (vectors[:, j] == answers[j]), answers[j]
            is_possible = (agrees & surely).any() or (  # vectors with -1 meet them one by one only
                agrees.any() and complete_labels(constraints, given, answers) is not None
            )
            (kept if is_possible else dropped).append(j)
            alive, given[j] = (agrees, answers[j]) if is_possible else (alive, MISSING)
        likeliest = vectors[alive][p[alive].argmax()]
        completed = complete_labels(
            constraints, np.where(likeliest == MISSING, given, likeliest), answers
        )
        if completed is None:
            completed = complete_labels(constraints, given, answers)
        answers = answers if completed is None else completed
        prices[dropped] = np.inf
        order = np.concatenate([order[:first], kept, dropped, order[stop:]]).astype(np.int64)
        stop -= len(dropped)
    prices[is_known] = 0.0
    asked = order[first:stop]
    if rule.measure is not None:
        withdrawn, worth[first : stop + 1] = _withdraw(
            rule.measure, vectors[:, asked], answers[asked], p
        )
        order[first:stop] = asked[withdrawn]
    elif rule.expected_costs is None:
        right = np.logical_and.accumulate(vectors[:, asked] == answers[asked], axis=1)
        worth[first + 1 : stop + 1] = _weighted(p, right)
    return lower, answers, order, stop, worth, prices


# -- measures of a row -----------------------------------------------------------------------------


def _best_answers(measure: Measure, vectors: Labels, p: FloatArray) -> Labels:
    """Return answers to all labels with the greatest expected measure; for Jaccard nearly."""
    from credalchain.joint import kernels  # imports numba

    m = vectors.shape[1]
    proposed, answers = np.zeros((2, m), dtype=np.int8)
    arrays = kernels.MeasureArrays.of_vectors(vectors)
    kernels.choose_by_measure(p, measure, m <= _MAX_ENUMERATED, arrays, proposed, answers)
    return answers


def _withdraw(
    measure: Measure, vectors: Labels, answers: Labels, p: FloatArray
) -> tuple[NDArray[np.int64], FloatArray]:
    """Withdraw answers one by one, each time that without which the measure is greatest.

    Return the positions of the answers, the last to be withdrawn first, and the expected measure
    (m + 1,) of the first k of them.
    """
    from credalchain.joint import kernels  # imports numba

    m = len(answers)
    order, worth = np.empty(m, dtype=np.int64), np.empty(m + 1)
    kernels.withdraw_answers(
        *(np.ascontiguousarray(vectors), p, measure, answers),
        *(kernels.MeasureArrays.of_vectors(vectors), np.ones(m, dtype=bool), np.empty(2)),
        *(order, worth),
    )
    return order, worth
