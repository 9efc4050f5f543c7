"""Decision rules equal the best of all partial answers, one by one."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalchain import CredalChainClassifier, CredalJointForest, JointDecision
from credalchain.joint.rules import RULES
from profiles import examples

M = 3


def small_data(seed=0, n=60):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    Y = (X[:, [0, 1, 0]] + rng.normal(size=(n, M)) > 0.5).astype(int)
    return X, Y


@pytest.fixture(scope="module")
def forest():
    return CredalJointForest(random_state=0).fit(*small_data())


def expected_costs(forest, x, costs, reward):
    """Of all 3**m partial answers, from the probabilities of all 2**m label vectors."""
    vectors = list(itertools.product([0, 1], repeat=M))
    p = [forest.event_interval(x, v, s=0.0)[0, 0] for v in vectors]
    assert sum(p) == pytest.approx(1)
    found = {}
    for answers in itertools.product([-1, 0, 1], repeat=M):
        total = 0.0
        for vector, probability in zip(vectors, p, strict=True):
            cost = sum(
                reward if a == -1 else costs[a] * (a != y)
                for a, y in zip(answers, vector, strict=True)
            )
            total += probability * cost
        found[answers] = total
    return found


@pytest.mark.parametrize(
    ("loss", "costs"), [("cell", (1.0, 1.0)), ("bands", (1.0, 1.0)), ("bands", (3.0, 0.5))]
)
@examples(20)
@given(seed=st.integers(0, 10**6), reward=st.floats(0, 1.2))
def test_answers_are_the_cheapest_of_all_partial_answers(forest, loss, costs, seed, reward):
    x = np.random.default_rng(seed).normal(size=(1, 2))
    decision = JointDecision.from_fitted(forest, loss=loss, costs=costs, reward=reward)
    (answers,) = decision.predict_partial(x).tolist()
    found = expected_costs(forest, x, costs, reward)
    assert found[tuple(answers)] == pytest.approx(min(found.values()), abs=1e-9)


@pytest.mark.parametrize("loss", RULES)
@pytest.mark.parametrize("bounds", ["precise", "credal"])
@examples(20)
@given(seed=st.integers(0, 10**6))
def test_answers_are_nested_in_the_reward(forest, loss, bounds, seed):
    X = np.random.default_rng(seed).normal(size=(5, 2))
    costs = tuple(np.random.default_rng(seed).uniform(0.2, 5, 2))
    decision = JointDecision.from_fitted(forest, loss=loss, costs=costs, bounds=bounds)
    grid = decision.caution_grid
    assert (np.diff(grid) < 0).all()
    assert grid[-1] == 0
    path = decision.predict_path(X, grid)
    for bold, cautious in itertools.pairwise(path):
        given = cautious != -1
        np.testing.assert_array_equal(cautious[given], bold[given])
    if loss != "row":
        dearer = JointDecision.from_fitted(
            forest, loss="bands", costs=(costs[0], 2 * costs[1]), bounds=bounds, reward=0.3
        )
        before = dearer.set_params(costs=costs).predict_partial(X)
        after = dearer.set_params(costs=(costs[0], 2 * costs[1])).predict_partial(X)
        assert (before[after == 1] == 1).all()  # a dearer yes is given more rarely


def test_bounds_of_caution_and_known_labels():
    """Lower probabilities decide; a label that was never observed is never answered."""
    X, Y = small_data()
    Y = Y.astype(float)
    Y[:, 1] = np.nan
    decision = JointDecision(loss="bands", costs=(1, 2), reward=100, random_state=0).fit(X, Y)
    labels = decision.predict_partial(X)
    assert (labels[:, 1] == -1).all()
    assert (labels[:, [0, 2]] != -1).all()
    known = np.full(Y.shape, -1)
    known[:, 1] = 1
    decision.set_params(reward=0.0)
    assert (decision.predict_partial(X, known=known)[:, 1] == 1).all()
    careful = JointDecision(loss="cell", bounds="credal", reward=0.3, random_state=0).fit(X, Y)
    lower = careful.predict_interval(X)
    expected = np.where(1 - lower[..., 0] <= 0.3, 1, np.where(lower[..., 1] <= 0.3, 0, -1))
    expected[:, 1] = -1
    np.testing.assert_array_equal(careful.predict_partial(X), expected)


def test_over_chains():
    X, Y = small_data()
    chain = CredalChainClassifier(random_state=0)
    decision = JointDecision(chain, loss="cell", reward=0.3, calibration_folds=None).fit(X, Y)
    p = decision.estimator_.label_proba(X)
    expected = np.where(1 - p <= 0.3, 1, np.where(p <= 0.3, 0, -1))
    np.testing.assert_array_equal(decision.predict_partial(X), expected)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"loss": "rows"}, "loss must be one of 'row', 'cell', 'bands', 'f1', 'jaccard', got"),
        ({"costs": 2}, "costs must be two positive numbers, of a wrong no and a wrong yes, got 2"),
        ({"costs": (0, 1)}, "costs must be two positive numbers"),
        ({"costs": ("a", 1)}, "costs must be two positive numbers"),
    ],
)
def test_wrong_parameters(params, message):
    with pytest.raises(ValueError, match=message):
        JointDecision(**params).fit(*small_data())
