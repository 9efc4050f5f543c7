"""Weights on label vectors: bounds, decisions and shares, against enumeration in fractions."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalchain import JointDecision
from credalchain.bases.joint.exact import exact_lower
from credalchain.bases.joint.kernels import price_prefixes
from joint_twin import S_VALUES, Case, matches, random_case
from profiles import examples

SEEDS = st.integers(0, 2**32 - 1)


def random_known(rng, m):
    """Nothing, or some labels."""
    if rng.random() < 0.4:
        return np.full(m, -1, dtype=np.int8)
    return rng.choice([-1, -1, 0, 1], size=m).astype(np.int8)


def ask(case, known, **params):
    """The bounds of all labels of one row, (m, 2)."""
    return case.forest(**params).infer([[0.0]], known=known[None])


# -- bounds ------------------------------------------------------------------------------------


@examples(250)
@given(SEEDS)
def test_bounds_of_labels_are_those_of_the_extreme_points(seed):
    rng = np.random.default_rng(seed)
    case = random_case(rng)
    known = random_known(rng, case.m)
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
    known = random_known(rng, case.m)
    event = rng.integers(-1, 2, size=case.m)
    event[rng.integers(case.m)] = rng.integers(2)
    event[known != -1] = -1
    found = case.forest().event_interval([[0.0]], event, known=known[None])[0]
    if (event == -1).all():
        assert found.tolist() == [1, 1]
    else:
        expected = case.given(event, known)
        np.testing.assert_allclose(found, np.array(expected, float), atol=1e-12)


@examples(150)
@given(SEEDS)
def test_bounds_of_callables_are_those_of_the_extreme_points(seed):
    """Of the leaves' own vectors, whatever the share of the products."""
    rng = np.random.default_rng(seed)
    case = random_case(rng, missing=False)
    known = random_known(rng, case.m)
    possible = [v for v in case.vectors() if matches(known)(v)]
    if len(possible) < 2:
        return
    size = int(rng.integers(1, len(possible)))
    chosen = [possible[i] for i in rng.choice(len(possible), size=size, replace=False)]
    model = case.forest()
    found = model.event_interval(
        [[0.0]],
        lambda vectors: np.array([tuple(v) in chosen for v in vectors.tolist()], dtype=bool),
        known=known[None] if (known != -1).any() else None,
    )[0]
    whole = replace(case, joint=case.joint + case.product, product=0.0)
    expected = whole.bounds(lambda v: v in chosen, matches(known))
    np.testing.assert_allclose(found, np.array(expected, float), atol=1e-12)


@examples(60)
@given(SEEDS)
def test_a_larger_s_only_widens_bounds(seed):
    rng = np.random.default_rng(seed)
    case = random_case(rng)
    known, model = random_known(rng, case.m), case.forest()
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
    some = rng.integers(0, 2, size=case.m)
    is_true = lambda vectors: (vectors == some).all(axis=1)  # noqa: E731
    yes = model.event_interval([[0.0]], is_true)[0]
    no = model.event_interval([[0.0]], lambda vectors: ~is_true(vectors))[0]
    np.testing.assert_allclose(yes, 1 - no[::-1], atol=1e-12)


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
    known = random_known(rng, case.m)
    event = {int(j): int(rng.integers(2)) for j in range(case.m) if rng.random() < 0.6}
    event = {j: y for j, y in event.items() if known[j] in (-1, y)}
    model = case.model()
    others = model.other_weights(np.zeros((1, 1), np.float32))
    found = exact_lower(
        np.arange(len(case.trees), dtype=np.int32),
        dict(zip(others.vector.tolist(), others.weight.tolist(), strict=True)),
        model.leaves,
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
    known = random_known(rng, case.m)
    t = float(rng.choice([0.5, 0.5, 0.25, 0.75, 1 / 3, 0.3]))
    labels = ask(case, known, threshold=t).labels[0]
    for j in range(case.m):
        if known[j] != -1:
            assert labels[j] == known[j]
            continue
        lower, upper = case.bounds(lambda v, j=j: v[j] == 1, matches(known))
        expected = 1 if lower > t else 0 if upper < t else -1
        assert labels[j] == expected


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
def test_the_answers_are_those_of_the_likeliest_candidate(seed):
    """The candidates are the vectors of all rows that weigh, and the likelier single answers."""
    rng = np.random.default_rng(seed)
    case = random_case(rng)
    known = random_known(rng, case.m)
    lower, answers, path = decided(case, known)
    answerable = lower.max(axis=1) > 0
    np.testing.assert_array_equal(path[-1], np.where(answerable, answers, -1))
    likelier = np.where(known != -1, known, lower[:, 1] >= lower[:, 0])
    candidates = [likelier]
    for i, y in enumerate(case.Y):
        weighs = case.row_weight(i) or any(i in tree for tree in case.trees)
        told = [a if v is None else v for a, v in zip(likelier, y, strict=True)]
        if weighs and matches(known)(told):
            candidates.append(told)
    best, chosen = (
        max(case.given(np.where(answerable, v, -1))[0] for v in some)
        for some in (candidates, [answers])
    )
    assert chosen >= best - Fraction(1, 10**12)
    assert any((np.array(v) == answers)[answerable].all() for v in candidates)


@examples(200)
@given(SEEDS)
def test_a_reward_answers_the_prefix_that_is_worth_most(seed):
    """Known labels first, then those whose answer has the greatest lower probability."""
    rng = np.random.default_rng(seed)
    case = random_case(rng)
    known = random_known(rng, case.m)
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
    known = random_known(rng, case.m)
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
    price_prefixes(
        right[None].copy(), order[None].astype(np.int64), np.array([stop], np.int64), prices
    )
    rewards = {0.0, 1e9, *(float(r) for r in rng.integers(0, 256, size=20) / 64)}
    rewards |= {float(price) for price in prices[0] if price < np.inf}
    for reward in rewards:
        worth = [Fraction(right[k]) + Fraction(reward) * k / m for k in range(stop + 1)]
        tied = [k for k, w in enumerate(worth) if w >= max(worth) - Fraction(1, 2**50)]
        answered = set(np.flatnonzero(prices[0] <= reward).tolist())
        assert answered == set(order[: max(tied)].tolist())
