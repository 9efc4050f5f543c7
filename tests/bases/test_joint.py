"""Weights on label vectors: bounds, decisions and shares, against enumeration in fractions."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalchain.bases.joint.exact import exact_lower
from joint_twin import S_VALUES, matches, random_case
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


@examples(100)
@given(SEEDS)
def test_precise_labels_answer_1_at_the_threshold(seed):
    rng = np.random.default_rng(seed)
    case = replace(random_case(rng, missing=False), s=0.0)
    t = float(rng.choice([0.5, 0.5, 0.25, 0.75, 1 / 3]))
    model = case.forest(threshold=t)
    for j, found in enumerate(model.predict([[0.0]])[0]):
        p, _ = case.bounds(lambda v, j=j: v[j] == 1)
        assert found == (p >= t)
