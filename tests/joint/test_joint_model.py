"""Weights on label vectors: bounds, decisions and shares, against enumeration in fractions."""

import itertools
import pickle
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestRegressor

from credalchain import CredalJointForest, JointDecision, KernelPowerset
from credalchain.chains.forest import LEAF, Trees, nodes_of
from credalchain.joint.arrays import Leaves
from credalchain.joint.exact import exact_lower
from credalchain.joint.growing import (
    default_forest_regressor,
    fill_missing,
    find_leaves,
    find_out_of_bag_leaves,
    grow,
    learn_mixture_shares,
    out_of_bag_means,
    out_of_bag_scores,
    score_weights,
)
from credalchain.joint.kernels import _sort_by, price_prefixes
from credalchain.joint.model import JointModel
from credalchain.joint.similar import similar_rows
from credalchain.prediction import Exactness
from credalchain.preprocessing import TableEncoder
from joint_twin import S_VALUES, Case, matches, random_case
from profiles import examples

SEEDS = st.integers(0, 2**32 - 1)


def random_known(rng, case):
    """Nothing, or some labels; of one that was never observed nothing follows (tested apart)."""
    if rng.random() < 0.4:
        return np.full(case.m, -1, dtype=np.int8)
    known = rng.choice([-1, -1, 0, 1], size=case.m).astype(np.int8)
    return np.where([case.never(j) for j in range(case.m)], np.int8(-1), known)


def ask(case, known, **params):
    """The bounds of all labels of one row, (m, 2)."""
    return case.forest(**params).infer([[0.0]], known=known[None])


# -- bounds ------------------------------------------------------------------------------------


@examples(250)
@given(SEEDS)
def test_bounds_of_labels_are_those_of_the_extreme_points(seed):
    rng = np.random.default_rng(seed)
    case = random_case(rng)
    known = random_known(rng, case)
    found = ask(case, known).interval[0]
    for j in range(case.m):
        if known[j] != -1:
            assert found[j].tolist() == [known[j], known[j]]
            continue
        expected = case.bounds(lambda v, j=j: v[j] == 1, matches(known))
        np.testing.assert_allclose(found[j], np.array(expected, float), atol=1e-12)


@examples(250)
@given(SEEDS)
def test_bounds_of_conjunctions_are_those_of_the_extreme_points(seed):
    rng = np.random.default_rng(seed)
    case = random_case(rng)
    known = random_known(rng, case)
    event = rng.integers(-1, 2, size=case.m)
    event[rng.integers(case.m)] = rng.integers(2)
    event[known != -1] = -1
    found = case.forest().event_interval([[0.0]], event, known=known[None])[0]
    if (event == -1).all():
        assert found.tolist() == [1, 1]
    else:
        expected = case.given(event, known)
        np.testing.assert_allclose(found, np.array(expected, float), atol=1e-12)


@examples(60)
@given(SEEDS)
def test_a_larger_s_only_widens_bounds(seed):
    rng = np.random.default_rng(seed)
    case = random_case(rng)
    known, model = random_known(rng, case), case.forest()
    event = np.where(known == -1, rng.integers(0, 2, size=case.m), -1)
    values = sorted({*S_VALUES, 0.01, 7.5})
    for ask in (
        lambda s: model.infer([[0.0]], s=s, known=known[None]).interval[0],
        lambda s: model.event_interval([[0.0]], event, s=s, known=known[None]),
    ):
        bounds = [ask(s) for s in values]
        if replace(case, s=0.0).bounds(lambda v: True, matches(known)) == (0, 1):
            bounds = bounds[1:]  # what is known is impossible at s = 0, which gives [0, 1]
        for narrow, wide in itertools.pairwise(bounds):
            assert (wide[:, 0] <= narrow[:, 0] + 1e-12).all()
            assert (wide[:, 1] >= narrow[:, 1] - 1e-12).all()


@examples(60)
@given(SEEDS)
def test_an_event_and_its_contrary(seed):
    """Upper P(Y_j = 1) = 1 - lower P(Y_j = 0); and s = 0 is precise without gaps."""
    rng = np.random.default_rng(seed)
    case = random_case(rng, missing=False)
    model = case.forest()
    for j in range(case.m):
        one, zero = (np.where(np.arange(case.m) == j, y, -1) for y in (1, 0))
        a, b = model.event_interval([[0.0]], one)[0], model.event_interval([[0.0]], zero)[0]
        np.testing.assert_allclose(a, 1 - b[::-1], atol=1e-12)
        np.testing.assert_allclose(a, model.infer([[0.0]]).interval[0, j], atol=1e-12)
        lower, upper = model.event_interval([[0.0]], one, s=0.0)[0]
        assert lower == pytest.approx(upper, abs=1e-12)


def test_what_is_known_may_be_absent_from_all_leaves():
    """Products have P(known) from 0 to 1/3: the other label does not depend on it."""
    case = Case([[0, 1]], [{0: 1}], 0.5, 0.0, 1.0)
    found = ask(case, np.array([1, -1], np.int8)).interval[0, 1]
    np.testing.assert_allclose(found, [2 / 3, 1], atol=1e-12)


@pytest.mark.parametrize(("joint", "product"), [(0.0, 1.0), (0.5, 0.5), (1.0, 0.0)])
def test_what_is_known_may_be_impossible(joint, product):
    """Ten times a tenth is not 1 in floating point."""
    case = Case([[0, 1]] * 7 + [[0, 0]] * 3, [dict.fromkeys(range(10), 1)], 0.0, joint, product)
    prediction = ask(case, np.array([1, -1], np.int8))
    assert prediction.interval[0].tolist() == [[1, 1], [0, 1]]
    assert prediction.labels[0].tolist() == [1, -1]
    found = case.forest().event_interval([[0.0]], [-1, 1], known=[[1, -1]])
    assert found.tolist() == [[0, 1]]


def test_what_is_known_may_be_possible_only_together_with_an_event():
    """The row may have the known label or not; if it has, the other label is 1."""
    case = Case([[None, 1]], [{0: 3}], 0.0, conservative=True)
    assert ask(case, np.array([0, -1], np.int8)).interval[0, 1].tolist() == [1, 1]


@pytest.mark.parametrize("threshold", [0.4, 0.5, 0.6])
def test_nothing_is_said_about_a_label_that_is_observed_elsewhere(threshold):
    case = Case([[None, 1], [1, 0]], [{0: 1}], 0.0, conservative=True)
    model = case.forest(threshold=threshold)
    assert model.predict_proba([[0.0]])[0, 0] == 0.5
    assert model.predict([[0.0]])[0, 0] == (threshold <= 0.5)


def test_events_that_are_decided_by_what_is_known():
    case = random_case(np.random.default_rng(3), m=2)
    model = replace(case, s=1.0).forest()
    ask = lambda event, known: model.event_interval([[0.0]], event, known=[known])[0]  # noqa: E731
    assert ask([1, -1], [1, -1]).tolist() == [1, 1]
    assert ask([1, -1], [0, -1]).tolist() == [0, 0]
    assert ask([1, 0], [0, -1]).tolist() == [0, 0]
    assert ask([-1, -1], [-1, -1]).tolist() == [1, 1]
    np.testing.assert_array_equal(ask([1, 0], [1, -1]), ask([-1, 0], [1, -1]))


# -- exact fractions -----------------------------------------------------------------------------


@examples(200)
@given(SEEDS)
def test_exact_lower_is_exact(seed):
    rng = np.random.default_rng(seed)
    case = random_case(rng)
    known = random_known(rng, case)
    event = {int(j): int(rng.integers(2)) for j in range(case.m) if rng.random() < 0.6}
    event = {j: y for j, y in event.items() if known[j] in (-1, y)}
    model = case.model()
    leaves, others = model._all_vectors(np.zeros((1, 1), np.float32), model.leaves)
    found = exact_lower(
        np.arange(len(case.trees), dtype=np.int32),
        dict(zip(others.indices.tolist(), others.data.tolist(), strict=True)),
        leaves,
        s=case.s,
        event=event,
        known=known,
    )
    asked = [-1 if known[j] != -1 else event.get(j, -1) for j in range(case.m)]
    expected = case.given(asked, known)[0] if max(asked) >= 0 else 1
    assert found == expected


@examples(400)
@given(SEEDS)
def test_ties_are_decided_as_fractions_say(seed):
    rng = np.random.default_rng(seed)
    case = random_case(rng)
    known = random_known(rng, case)
    t = float(rng.choice([0.5, 0.5, 0.25, 0.75, 1 / 3, 0.3]))
    labels = ask(case, known, threshold=t).labels[0]
    for j in range(case.m):
        if known[j] != -1:
            assert labels[j] == known[j]
            continue
        lower, upper = case.bounds(lambda v, j=j: v[j] == 1, matches(known))
        expected = 1 if lower > t else 0 if upper < t else -1
        assert labels[j] == expected


@pytest.mark.parametrize("s", [0, 1, 3])
def test_bounds_of_exactly_one_half_that_floating_point_misses(s):
    """Two trees: a and n + s - a of the n rows in their leaves have the label."""
    found = []
    for n in range(4, 14):
        for a in range(s, n + 1):
            ones = (a, n + s - a)
            trees = [
                {**dict.fromkeys(range(k), 1), **dict.fromkeys(range(n, 2 * n - k), 1)}
                for k in ones
            ]
            case = Case([[1]] * n + [[0]] * n, trees, float(s))
            assert case.given([1])[0] == Fraction(1, 2)
            model = case.forest()
            prediction = model.infer([[0.0]])
            assert prediction.labels.tolist() == [[-1]]
            found.append(prediction.interval[0, 0, 0])
            contrary = replace(case, Y=case.Y[::-1]).forest()  # the upper bound is one half
            assert contrary.infer([[0.0]]).labels.tolist() == [[-1]]
            if s == 0:
                assert model.predict([[0.0]]).tolist() == [[1]]
    assert (np.array(found) != 0.5).any()


@examples(150)
@given(SEEDS)
def test_precise_labels_answer_1_at_the_threshold(seed):
    """What may be either counts for neither side; one half where nothing is left."""
    rng = np.random.default_rng(seed)
    case = replace(random_case(rng), s=0.0)
    t = float(rng.choice([0.5, 0.5, 0.25, 0.75, 1 / 3]))
    model = case.forest(threshold=t)
    found, p = model.predict([[0.0]])[0], model.predict_proba([[0.0]])[0]
    for j in range(case.m):
        lower, upper = case.bounds(lambda v, j=j: v[j] == 1)
        total = lower + 1 - upper
        expected = lower / total if total else Fraction(1, 2)
        assert found[j] == (0 if case.never(j) else expected >= t)
        assert p[j] == pytest.approx(0 if case.never(j) else float(expected), abs=1e-12)


# -- the decision --------------------------------------------------------------------------------


REWARDS = [0.0, 0.01, 0.1, 0.25, 0.5, 0.6, 0.75, 1.0, 1.5, 2.0, 3.0, 8.0, 1e9]


def decided(case, known, *, bounds="credal", rewards=REWARDS):
    """What the model decides, and the labels for every reward (rewards, m)."""
    forest = case.forest()
    decision = JointDecision.from_fitted(forest, bounds=bounds)
    assert decision.nested_
    path = decision.predict_path([[0.0]], rewards, known=known[None])[:, 0]
    s = case.s if bounds == "credal" else 0.0
    found = forest.model_.decide(np.zeros((1, 1), np.float32), s=s, known=known[None])
    return found.lower[0], found.answers[0], path


@examples(200)
@given(SEEDS)
def test_the_answers_are_those_of_the_likeliest_vector(seed):
    """Of all vectors that agree with what is known, on the labels that can be answered."""
    rng = np.random.default_rng(seed)
    case = random_case(rng)
    known = random_known(rng, case)
    lower, answers, path = decided(case, known)
    answerable = lower.max(axis=1) > 0
    np.testing.assert_array_equal(path[-1], np.where(answerable, answers, -1))
    agree = [v for v in case.vectors() if matches(known)(v)]
    assert tuple(answers.tolist()) in agree
    best, chosen = (
        max(case.given(np.where(answerable, v, -1))[0] for v in some) for some in (agree, [answers])
    )
    assert chosen >= best * (1 - Fraction(1, 2**39))


def large_case(rng):
    """More labels and trees, and most of the weight on products."""
    case = random_case(rng, m=int(rng.integers(4, 7)), scores=False)
    n_trees = int(rng.integers(2, 9))
    Y = rng.integers(0, 2, size=(12, case.m)).tolist()
    fill = {(i, j): 0.25 for i in range(12) for j in range(case.m) if rng.random() < 0.1}
    for i, j in fill if rng.random() < 0.5 else ():
        Y[i][j] = None
    trees = [
        {int(i): int(rng.integers(1, 4)) for i in rng.choice(12, rng.integers(1, 8), replace=False)}
        for _ in range(n_trees)
    ]
    product = float(rng.choice([0.5, 0.75, 0.9375, 1.0]))
    return replace(case, Y=Y, trees=trees, fill=fill, others={}, joint=1 - product, product=product)


@examples(100)
@given(SEEDS)
def test_the_likeliest_vector_is_found_where_products_weigh_most(seed):
    rng = np.random.default_rng(seed)
    case = large_case(rng)
    known = random_known(rng, case)
    model = case.model()
    found = model.decide(np.zeros((1, 1), np.float32), s=case.s, known=known[None])
    labels = np.flatnonzero(found.lower[0].max(axis=1) > 0).tolist()
    best = max(case.lower_of(filter(matches(known), case.vectors()), labels))
    answers = found.answers[0]
    (chosen,) = case.lower_of([answers], labels)
    assert chosen >= best * (1 - Fraction(1, 2**39))
    event = {j: int(answers[j]) for j in labels}
    nodes, nothing = np.arange(len(case.trees), dtype=np.int32), np.full(case.m, -1)
    assert chosen == exact_lower(nodes, {}, model.leaves, s=case.s, event=event, known=nothing)
    assert (found.exactness == 0).all()


def test_of_equally_likely_vectors_the_first_is_taken():
    """The likelier single answers, then the heaviest vector of training rows."""
    none = np.array([-1, -1], np.int8)
    corners = [[0, 0], [0, 1], [1, 0], [1, 1]]
    alike = Case(corners, [{0: 1, 1: 1, 2: 1, 3: 1}], 0.0)
    assert decided(alike, none)[1].tolist() == [1, 1]
    opposite = Case([[0, 1], [1, 0], [1, 1]], [{0: 2, 1: 2, 2: 1}], 0.0)
    assert decided(opposite, none)[1].tolist() == [0, 1]
    # 1/4 for every vector, by the products of both trees
    product = Case(corners, [{0: 1, 3: 1}, {1: 1, 2: 1}], 0.0, 0.0, 1.0)
    assert decided(product, none)[1].tolist() == [1, 1]


def test_a_search_that_is_cut_short_is_called_approximate():
    """Labels by chance, which only products weigh; with most of them known it is short."""
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, size=(40, 40))
    trees = [{int(i): 1 for i in rng.choice(40, 12, replace=False)} for _ in range(20)]
    case = Case(Y.tolist(), trees, 0.0, 0.0, 1.0)
    decision = JointDecision.from_fitted(case.forest(), reward=1e9)
    known = np.full((2, 40), -1)
    known[1, :36] = Y[0, :36]
    prediction = decision.infer([[0.0], [0.0]], known=known)
    assert (prediction.exactness_by_row[0] == Exactness.APPROXIMATE).all()
    assert (prediction.exactness_by_row[1] == Exactness.EXACT).all()
    assert set(prediction.exactness) == {Exactness.APPROXIMATE}
    likelier = decision.estimator_.predict([[0.0]])[0]
    chosen, *others = case.lower_of([prediction.labels[0], likelier, *Y], range(40))
    assert chosen >= max(others)


@examples(200)
@given(SEEDS)
def test_a_reward_answers_the_prefix_that_is_worth_most(seed):
    """Known labels first, then those whose answer has the greatest lower probability."""
    rng = np.random.default_rng(seed)
    case = random_case(rng)
    known = random_known(rng, case)
    bounds = str(rng.choice(["credal", "precise"]))
    lower, answers, path = decided(case, known, bounds=bounds)
    if bounds == "precise":
        case = replace(case, s=0.0)
    certainty = np.where(known != -1, 2.0, lower[np.arange(case.m), answers])
    order = np.argsort(-certainty, kind="stable")
    n_answerable = int((lower.max(axis=1) > 0).sum())
    n_known = int((known != -1).sum())
    right = [Fraction(1)] * (n_known + 1)
    for k in range(n_known + 1, n_answerable + 1):
        some = np.full(case.m, -1)
        some[order[:k]] = answers[order[:k]]
        right.append(case.given(np.where(known == -1, some, -1), known)[0])
    for reward, labels in zip(REWARDS, path, strict=True):
        worth = [p + Fraction(reward) * k / case.m for k, p in enumerate(right)]
        n_answered = int((labels != -1).sum())
        expected = np.full(case.m, -1)
        expected[order[:n_answered]] = answers[order[:n_answered]]
        np.testing.assert_array_equal(labels, expected)
        assert n_answered >= n_known
        assert worth[n_answered] >= max(worth) - Fraction(1, 10**9) * (1 + int(reward))


@examples(60)
@given(SEEDS)
def test_a_smaller_reward_only_withdraws_answers(seed):
    rng = np.random.default_rng(seed)
    case = random_case(rng)
    known = random_known(rng, case)
    rewards = np.sort(rng.choice([0, 1 / 3, 1, 2], 8) * rng.choice([0.5, 1, rng.random()], 8))
    for bounds in ("credal", "precise"):
        _, _, path = decided(case, known, bounds=bounds, rewards=rewards.tolist())
        assert (path[:, known != -1] == known[known != -1]).all()
        for fewer, more in itertools.pairwise(path):
            assert ((fewer == -1) | (fewer == more)).all()


def test_the_likeliest_vector_is_not_the_likelier_labels():
    """Single labels say (1, 1) with 3/5 each, which no row has; (0, 1) and (1, 0) are likelier."""
    case = Case([[1, 0], [0, 1], [1, 1]], [{0: 2, 1: 2, 2: 1}], 0.0)
    for _, answers, path in [decided(case, np.array([-1, -1], np.int8))]:
        assert answers.tolist() in ([1, 0], [0, 1])
        assert sorted(path[-1].tolist()) == [0, 1]


def test_a_tie_answers_more():
    """One label is certain, the other right with 1/2: worth 1 + r/2 against 1/2 + r."""
    case = Case([[1, 0], [1, 1]], [{0: 1, 1: 1}], 0.0)
    rewards = [0.0, float(np.nextafter(1, 0)), 1.0]
    path = decided(case, np.array([-1, -1], np.int8), rewards=rewards)[2]
    assert path.tolist() == [[1, -1], [1, -1], [1, 1]]


@examples(300)
@given(SEEDS)
def test_prices_are_where_the_best_prefix_grows(seed):
    """Sequences with plateaus, in 64ths, so that ties are exact."""
    rng = np.random.default_rng(seed)
    m = int(rng.choice([1, 2, 4, 8]))
    steps = rng.choice([0, 0, 1, 2, 3, 8, 16], size=m)
    right = np.maximum(64 - np.concatenate([[0], np.cumsum(steps)]), 0) / 64
    order, stop = rng.permutation(m), int(rng.integers(0, m + 1))
    prices = np.empty((1, m))
    order_of_rows = order[None].astype(np.int64)
    price_prefixes(right[None].copy(), order_of_rows, np.array([stop], np.int64), True, prices)
    rewards = {0.0, 1e9, *(float(r) for r in rng.integers(0, 256, size=20) / 64)}
    rewards |= {float(price) for price in prices[0] if price < np.inf}
    for reward in rewards:
        worth = [Fraction(right[k]) + Fraction(reward) * k / m for k in range(stop + 1)]
        tied = [k for k, w in enumerate(worth) if w >= max(worth) - Fraction(1, 2**50)]
        answered = set(np.flatnonzero(prices[0] <= reward).tolist())
        assert answered == set(order[: max(tied)].tolist())


# -- trees and leaves ----------------------------------------------------------------------------


def random_trees(rng, n_columns):
    """Packed trees, and the same as nested tuples; a leaf is its number."""
    nodes, literal, roots = [], [], []

    def add(depth):
        at = len(nodes)
        nodes.append((LEAF, 0.0, 0, 0, False))
        if depth == 0 or rng.random() < 0.2:
            return at, at
        column, missing_left = int(rng.integers(n_columns)), bool(rng.integers(2))
        threshold = rounded_down(rng.choice([-0.5, 0.0, 0.5, 0.1]))
        (left, as_left), (right, as_right) = add(depth - 1), add(depth - 1)
        nodes[at] = (column, threshold, left, right, missing_left)
        return at, (column, threshold, missing_left, as_left, as_right)

    for _ in range(int(rng.integers(1, 4))):
        root, tree = add(3)
        roots.append(root)
        literal.append(tree)
    feature, threshold, left, right, missing_left = zip(*nodes, strict=True)
    trees = Trees(
        np.array(feature, np.int32),
        np.array(threshold, np.float32),
        np.array(left, np.int32),
        np.array(right, np.int32),
        np.array(missing_left, bool),
        np.array(roots, np.int32),
    )
    return trees, literal


def leaf_of(tree, x):
    if isinstance(tree, int):
        return tree
    column, threshold, missing_left, left, right = tree
    value = float(x[column])
    to_left = missing_left if np.isnan(value) else value <= threshold
    return leaf_of(left if to_left else right, x)


@examples(50)
@given(SEEDS)
def test_rows_reach_their_leaves(seed):
    rng = np.random.default_rng(seed)
    trees, literal = random_trees(rng, 3)
    X = rng.choice([-1, -0.5, 0, 0.1, 0.5, 1, np.nan], size=(9, 3)).astype(np.float32)
    expected = [[leaf_of(tree, x) for tree in literal] for x in X]
    np.testing.assert_array_equal(find_leaves(X, trees), expected)


def test_conditions_are_those_of_the_path():
    """A tenth in 32 bits is more than a tenth, so thresholds are rounded down."""
    one = np.array([[0.1]], np.float32)
    nodes = np.zeros(1, [("feature", "i8"), ("threshold", "f8"), ("missing_go_to_left", "u1"),
                         ("left_child", "i8"), ("right_child", "i8")])  # fmt: skip
    nodes["threshold"] = 0.1
    ((node,),) = nodes_of([SimpleNamespace(__getstate__=lambda: {"nodes": nodes})])
    tenth = node["threshold"]
    assert np.nextafter(tenth, np.float32(1)) == one[0, 0]
    trees = Trees(
        np.array([0, LEAF, LEAF], np.int32),
        np.array([tenth, 0.0, 0.0], np.float32),
        np.array([1, 0, 0], np.int32),
        np.array([2, 0, 0], np.int32),
        np.zeros(3, bool),
        np.zeros(1, np.int32),
    )
    leaves = Leaves(
        np.array([0, 0, 1, 2]),
        np.array([0, 1], np.int32),
        np.ones(2, np.uint16),
        np.array([0, 1], np.int32),
        np.array([[[1.0], [0.0]], [[0.0], [1.0]]]),
        1.0,
        0.0,
    )
    model = JointModel(trees, leaves, TableEncoder(1, {}))
    (row,) = similar_rows(model, one, known=np.array([-1]), at_most=5)
    assert row.number == 1
    assert row.in_common == [(0, float(tenth), np.inf, False, 1)]
    (row,) = similar_rows(model, one / 2, known=np.array([-1]), at_most=5)
    assert row.number == 0
    assert row.in_common == [(0, -np.inf, float(tenth), False, 1)]


def small_data(n=60, m=3, *, seed=0, nan=0.0, missing=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).astype(np.float32)
    Y = (X[:, np.arange(m) % 4] + 0.7 * rng.normal(size=(n, m)) > 0).astype(np.int8)
    X[rng.random(X.shape) < nan] = np.nan
    Y[rng.random(Y.shape) < missing] = -1
    return X, Y


def grown_and_plain(forest, X, Y, targets=None, seed=3):
    """Our trees and scikit-learn's, which are the same."""
    targets = Y.astype(float) if targets is None else targets
    grown = grow(forest, X, Y, targets, n_jobs=1, seed=seed)
    return grown, clone(forest).set_params(random_state=seed).fit(X, targets)


FORESTS = [
    ExtraTreesRegressor(n_estimators=7, min_samples_leaf=2, bootstrap=True),
    RandomForestRegressor(n_estimators=25, max_depth=4),
]


@pytest.mark.parametrize("forest", FORESTS)
@pytest.mark.parametrize("nan", [0.0, 0.2])
def test_leaves_hold_the_rows_that_scikit_learns_trees_were_grown_on(forest, nan):
    """Also when trees are grown a few at a time."""
    X, Y = small_data(nan=nan)
    grown, plain = grown_and_plain(forest, X, Y)
    trees, leaves = grown.trees, grown.leaves
    nodes = plain.apply(X) + trees.roots
    np.testing.assert_array_equal(find_leaves(X, trees), nodes)
    some = np.arange(0, len(X), 3)
    out_of_bag = find_out_of_bag_leaves(X, grown, np.arange(len(X)), 1)
    np.testing.assert_array_equal(find_out_of_bag_leaves(X, grown, some, 1), out_of_bag[some])
    for t, drawn in enumerate(plain.estimators_samples_):
        times = np.bincount(drawn, minlength=len(X))
        np.testing.assert_array_equal(out_of_bag[:, t], np.where(times > 0, -1, nodes[:, t]))
        for node in np.unique(nodes[:, t]):
            at = slice(leaves.indptr[node], leaves.indptr[node + 1])
            held = dict(zip(leaves.row[at].tolist(), leaves.times[at].tolist(), strict=True))
            rows = np.flatnonzero((nodes[:, t] == node) & (times > 0))
            assert held == {int(i): int(times[i]) for i in rows}
    np.testing.assert_array_equal(leaves.label_mass[1, leaves.vector_of], Y)


def rounded_down(number):
    """The largest 32-bit number that is not above another."""
    rounded = np.float32(number)
    return float(
        rounded if float(rounded) <= number else np.nextafter(rounded, np.float32(-np.inf))
    )


def test_conditions_are_the_narrowest_that_shared_trees_ask_for():
    X, Y = small_data()
    forest = RandomForestRegressor(n_estimators=6, max_depth=4)
    grown, plain = grown_and_plain(forest, X, Y)
    model = JointModel(grown.trees, grown.leaves, TableEncoder(4, {}))
    x = X[:1] + np.float32(0.01)
    found = similar_rows(model, x, known=np.full(3, -1), at_most=8)
    assert len(found) == 8
    for row in found:
        asked, by = {}, {}
        for t, tree in enumerate(plain.estimators_):
            shared = tree.apply(x)[0] == tree.apply(X)[row.number]
            if row.number not in plain.estimators_samples_[t] or not shared:
                continue
            inner = tree.tree_
            for node in tree.decision_path(x).indices:
                if inner.children_left[node] >= 0:
                    column, at = int(inner.feature[node]), float(inner.threshold[node])
                    by.setdefault(column, set()).add(t)
                    asked.setdefault(column, ([-np.inf], [np.inf]))
                    asked[column][int(x[0, column].item() <= at)].append(rounded_down(at))
        expected = [
            (column, max(above), min(below), False, len(by[column]))
            for column, (above, below) in asked.items()
        ]
        assert row.in_common == sorted(expected, key=lambda one: (-one[4], one[0]))


def out_of_bag_literally(plain, X, targets, labels, i):
    """P(the row's observed labels) by vectors and by products, from trees without the row."""
    joint, product = [], []
    observed = labels[i] != -1
    agrees = np.where(labels[i] == 1, targets, 1 - targets)[:, observed]
    for tree, drawn in zip(plain.estimators_, plain.estimators_samples_, strict=True):
        if i in drawn:
            continue
        leaf = tree.apply(X)
        mates = [k for k in drawn if leaf[k] == leaf[i]]  # as often as drawn
        joint.append(agrees[mates].prod(axis=1).mean())
        product.append(agrees[mates].mean(axis=0).prod())
    return [np.mean(joint), np.mean(product)] if joint else [np.nan, np.nan]


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_scores_of_training_rows_come_from_trees_that_have_not_seen_them(missing):
    X, Y = small_data(missing=missing)
    forest = ExtraTreesRegressor(n_estimators=4, min_samples_leaf=3, bootstrap=True)
    targets = np.where(Y == -1, 0.3, Y)
    grown, plain = grown_and_plain(forest, X, Y, targets)
    expected = [out_of_bag_literally(plain, X, targets, Y, i) for i in range(len(X))]
    assert np.isnan(expected).any()  # a row that all trees have seen
    rows = np.arange(len(X))
    found = out_of_bag_scores(grown, X, Y, rows, 1)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_array_equal(out_of_bag_scores(grown, X, Y, rows[5:9], 1), found[5:9])


def test_missing_labels_are_filled_from_rows_that_are_alike():
    """The first column is the first label; a missing one gets its probability out of bag."""
    X, Y = small_data(200, 2)
    X[:, 0] = np.where(np.arange(200) % 2, 5, -5)
    truth = (X[:, 0] > 0).astype(np.int8)
    Y[:, 0] = truth
    gone = np.random.default_rng(0).random(200) < 0.3
    Y[gone, 0] = -1
    filled = fill_missing(default_forest_regressor(), X, Y, n_jobs=1, seed=0)
    np.testing.assert_array_equal(filled[~gone], Y[~gone])
    np.testing.assert_array_equal(filled[:, 1], Y[:, 1])
    assert (filled[gone, 0].round() == truth[gone]).all()


# -- shares --------------------------------------------------------------------------------------


def mean_log(scores, labels, shares):
    """What learning maximises: independent labels have a fiftieth, so that nothing is 0."""
    p = (labels == 1).sum(axis=0) + 1
    p = p / ((labels != -1).sum(axis=0) + 2)
    alone = np.where(labels == -1, 1, np.where(labels == 1, p, 1 - p)).prod(axis=1)
    return np.log(0.98 * scores @ shares + 0.02 * alone).mean()


@pytest.mark.parametrize("seed", range(4))
def test_shares_are_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(-1, 2, size=(50, 3)).astype(np.int8)
    scores = rng.beta([1, 2, 1], [2, 3, 4], size=(50, 3))
    scores[0, 1] = np.nan  # says nothing
    found = learn_mixture_shares(scores, labels, n_forest=2)
    assert found.sum() == pytest.approx(1)
    assert (found >= 0).all()
    assert found[2] < 0.5  # the bound on others is not in force here
    ticks = np.linspace(0, 1, 41)
    grid = [(a, b, 1 - a - b) for a in ticks for b in ticks if a + b <= 1 + 1e-9]
    best = max(mean_log(scores[1:], labels[1:], np.array(one)) for one in grid)
    assert mean_log(scores[1:], labels[1:], found) >= best - 1e-6


def test_a_useless_member_gets_nothing_and_a_good_one_at_most_one_half():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, size=(80, 2)).astype(np.int8)
    forest = rng.uniform(0.3, 0.6, size=(80, 2))
    useless = np.hstack([forest, np.full((80, 1), 1e-3)])
    assert learn_mixture_shares(useless, labels, n_forest=2)[2] == 0
    two = np.hstack([forest, np.full((80, 1), 0.99), np.full((80, 1), 0.95)])
    shares = learn_mixture_shares(two, labels, n_forest=2)
    assert shares[2:].sum() == pytest.approx(0.5)
    assert shares.sum() == pytest.approx(1)
    one = learn_mixture_shares(np.c_[forest[:, :1], np.full(80, 0.99)], labels, n_forest=1)
    np.testing.assert_allclose(one, [0.5, 0.5])


def test_shares_under_the_bound_on_others_are_the_best_of_those_allowed():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, size=(80, 2)).astype(np.int8)
    good, bad = rng.uniform(0.3, 0.6, size=80), rng.uniform(0.01, 0.1, size=80)
    scores = np.c_[good, bad, np.full(80, 0.99)]
    found = learn_mixture_shares(scores, labels, n_forest=2)
    best = max(
        mean_log(scores, labels, np.array([a, 0.5 - a, 0.5])) for a in np.linspace(0, 0.5, 51)
    )
    assert mean_log(scores, labels, found) >= best - 1e-6


def test_shares_without_any_row_held_out():
    labels = np.zeros((5, 2), np.int8)
    assert learn_mixture_shares(np.full((5, 3), np.nan), labels, n_forest=2).tolist() == [
        0.5,
        0.5,
        0,
    ]


def test_scores_of_weights():
    """The probability of a row's observed labels is the weight of the vectors that have them."""
    label_mass = np.array([[[1, 0], [0, 1], [0.25, 0]]])
    label_mass = np.concatenate([1 - label_mass, label_mass])
    weights = sparse.csr_array([[0.5, 0.3, 0.2], [0.0, 1.0, 0.0]])
    labels = np.array([[1, -1], [1, 0]], np.int8)
    found = score_weights(weights, label_mass, labels)
    np.testing.assert_allclose(found, [[0.5 + 0.2 * 0.25], [0.0]])


# -- members -------------------------------------------------------------------------------------


def vectors_of(Y):
    """The number of each row's vector, and the vectors."""
    distinct, which = np.unique(Y, axis=0, return_inverse=True)
    return which.reshape(-1).astype(np.int32), distinct.astype(np.int8)


def any_vectors(n):
    """n different label vectors."""
    return np.eye(n, dtype=np.int8)


MEMBERS = [
    KernelPowerset(),
    KernelPowerset(max_centres=20),
    KernelPowerset(max_vectors=2),
]


@pytest.mark.parametrize("member", MEMBERS)
def test_weights_of_members_are_probabilities(member):
    X, Y = small_data(nan=0.1)
    which, vectors = vectors_of(Y)
    n_vectors = len(vectors)
    fitted, held_out = member.fit_vectors(X, which, vectors, np.random.RandomState(0))
    for weights in (held_out, fitted.weights(X[:7]), fitted.weights(100 * X[:7])):
        dense = weights.toarray()
        assert dense.shape[1] == n_vectors
        assert (dense >= 0).all()
        np.testing.assert_allclose(dense.sum(axis=1), 1, atol=1e-9)
    learned = np.flatnonzero(held_out.toarray().any(axis=0))
    assert (np.bincount(which)[learned] > 1).all()
    assert len(learned) <= member.max_vectors
    right = fitted.weights(X).toarray()[np.arange(len(X)), which].mean()
    assert right > 1.2 * (np.bincount(which) / len(X)).max()


def test_members_have_nothing_to_learn_from_vectors_that_occur_once():
    member = KernelPowerset()
    X = np.zeros((6, 2), np.float32)
    rng = np.random.RandomState(0)
    assert member.fit_vectors(X, np.arange(6, dtype=np.int32), any_vectors(6), rng) is None
    assert member.fit_vectors(X, np.zeros(6, np.int32), any_vectors(1), rng) is None  # one vector


def gaussian(A, B, gamma):
    return np.exp(-gamma * ((A[:, None].astype(float) - B[None]) ** 2).sum(axis=2))


def left_out_literally(Z, centres, gamma, targets, ridge, jitter):
    """Refit without each row; with ``centres`` None it is no centre either."""
    found = np.empty(targets.shape)
    for i in range(len(Z)):
        rest = np.arange(len(Z)) != i
        on = Z[rest] if centres is None else centres
        K = gaussian(Z[rest], on, gamma)
        if centres is None:
            coefficients = np.linalg.solve(K + ridge * np.eye(len(K)), targets[rest])
        else:
            normal = K.T @ K + ridge * gaussian(on, on, gamma) + jitter * np.eye(len(on))
            coefficients = np.linalg.solve(normal, K.T @ targets[rest])
        found[i] = gaussian(Z[i : i + 1], on, gamma) @ coefficients
    return found


@pytest.mark.parametrize("max_centres", [2000, 15])
def test_rows_left_out_by_formula_are_rows_left_out(max_centres):
    X, Y = small_data(50, 2)
    which, vectors = vectors_of(Y)
    n_vectors = len(vectors)
    member = KernelPowerset(max_centres=max_centres, ridge=0.7)
    fitted, held_out = member.fit_vectors(X, which, vectors, np.random.RandomState(0))
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    targets = (which[:, None] == np.arange(n_vectors)).astype(float)
    centres = None if max_centres > len(X) else fitted.centres
    jitter = 0.0
    if centres is not None:
        assert len(centres) == max_centres
        assert all(np.isclose(Z, one, atol=1e-5).all(axis=1).any() for one in centres)
        K = gaussian(Z, centres, fitted.gamma)  # the formula keeps what makes it invertible
        normal = K.T @ K + 0.7 * gaussian(centres, centres, fitted.gamma)
        jitter = 1e-4 * np.trace(normal) / len(normal)
    scores = left_out_literally(Z, centres, fitted.gamma, targets, 0.7, jitter)
    p = np.maximum(scores, 0) ** fitted.power
    p /= p.sum(axis=1, keepdims=True)
    p[p < 0.002] = 0  # too little to be kept
    p /= p.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(held_out.toarray(), p, atol=2e-3 if centres is None else 5e-3)


@pytest.mark.parametrize("n_columns", [37, 9000])
def test_kernel_weights_of_a_row_do_not_depend_on_the_rows_beside_it(n_columns):
    """With more columns and centres than BLAS takes at a time: it treats the last apart."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, n_columns)).astype(np.float32)
    which = (X[:, :3] @ [4, 2, 1] > 0).astype(np.int32)
    fitted, _ = KernelPowerset().fit_vectors(X, which, any_vectors(2), np.random.RandomState(0))
    together = fitted.weights(X).toarray()
    for first, stop in ((0, 1), (1, 4), (4, 71), (71, 300)):
        np.testing.assert_array_equal(fitted.weights(X[first:stop]).toarray(), together[first:stop])


@pytest.mark.parametrize("n", [0, 1, 2, 3, 14, 64, 65, 200])
def test_labels_are_sorted_as_numpy_sorts_them(n):
    """From the largest to the smallest, equal ones in the order that they had."""
    values = np.random.default_rng(n).integers(0, 6, n) / 4
    order, merged = np.full(n, -1), np.full(n, -1)
    _sort_by.py_func(values, order, merged)
    np.testing.assert_array_equal(order, np.argsort(-values, kind="stable"))


def test_a_kernel_is_pickled_alike_before_and_after_predicting():
    rng = np.random.default_rng(0)
    X, which = rng.normal(size=(60, 3)).astype(np.float32), np.arange(60, dtype=np.int32) % 2
    fitted, _ = KernelPowerset().fit_vectors(X, which, any_vectors(2), np.random.RandomState(0))
    before = pickle.dumps(fitted)
    expected = fitted.weights(X).toarray()
    assert pickle.dumps(fitted) == before
    np.testing.assert_array_equal(pickle.loads(before).weights(X).toarray(), expected)


def test_kernels_on_rows_that_are_all_alike():
    X, which = np.ones((12, 3), np.float32), np.array([0, 1, 1] * 4, np.int32)
    fitted, _ = KernelPowerset().fit_vectors(X, which, any_vectors(2), np.random.RandomState(0))
    weights = fitted.weights(X[:1]).toarray()[0]
    assert weights[1] > weights[0] > 0


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (KernelPowerset(max_centres=1), "max_centres must be a whole number"),
        (KernelPowerset(max_vectors=1.5), "max_vectors must be a whole number"),
        (KernelPowerset(ridge=0), "ridge must be None or a positive number, got 0"),
        (KernelPowerset(ridge=True), "ridge must be None or a positive number"),
    ],
)
def test_wrong_parameters_of_members(member, message):
    X, Y = small_data()
    with pytest.raises(ValueError, match=message):
        CredalJointForest(members=[member]).fit(X, Y)


def test_first_estimates_of_missing_labels_are_means_of_observed_ones_out_of_bag(monkeypatch):
    """Row by row and tree by tree."""
    monkeypatch.setattr("credalchain.joint.growing._LABELS_AT_ONCE", 1)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)).astype(np.float32)
    labels = np.where(rng.random((60, 2)) < 0.5, -1, X[:, :2] > 0).astype(np.int8)
    means = np.array([0.3, 0.6])
    trees = ExtraTreesRegressor(4, min_samples_leaf=2, bootstrap=True)
    targets = np.maximum(labels, 0).astype(float)
    grown = grow(trees, X, labels, targets, n_jobs=1, seed=0)
    rows = np.flatnonzero((labels == -1).any(axis=1))
    found = out_of_bag_means(grown, X, labels, rows, means, 1)
    nodes = find_leaves(X, grown.trees)
    for position, i in enumerate(rows):
        positive, observed = means.copy(), np.ones(2)
        for tree in range(4):
            leaf = slice(*grown.leaves.indptr[nodes[i, tree] : nodes[i, tree] + 2])
            in_leaf = dict(zip(grown.leaves.row[leaf], grown.leaves.times[leaf], strict=True))
            if i in in_leaf:
                continue
            for k, times in in_leaf.items():
                positive += times * (labels[k] == 1)
                observed += times * (labels[k] != -1)
        np.testing.assert_allclose(found[position], positive / observed)


def test_labels_that_are_mostly_missing_are_still_learned():
    """Estimates that count what was filled in as observed stay near the means: about 0.54."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 6)).astype(np.float32)
    Y = (X[:, :4] + 0.3 * rng.normal(size=(700, 4)) > 0.8).astype(np.int8)
    observed = np.where(rng.random((400, 4)) < 0.8, -1, Y[:400])
    forest = CredalJointForest(s=0.0, members=(), random_state=0).fit(X[:400], observed)
    found = forest.predict_interval(X[400:]).mean(axis=-1)[Y[400:] == 1].mean()
    per_label = np.mean(
        [
            ExtraTreesClassifier(100, min_samples_leaf=2, max_features=0.5, random_state=0)
            .fit(X[:400][y != -1], y[y != -1])
            .predict_proba(X[400:])[Y[400:, j] == 1, 1]
            .mean()
            for j, y in enumerate(observed.T)
        ]
    )
    assert found > 0.6 * per_label
