"""Which labels of a row to answer, decided together."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from credalchain import (
    CredalChainClassifier,
    CredalChainEnsemble,
    JointDecision,
    partial_labels,
    sample_labels,
)


def data(n=200, m=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Y = (X[:, np.arange(m) % 3] + 0.9 * rng.normal(size=(n, m)) > 0).astype(np.int8)
    return X, Y


@pytest.fixture(scope="module")
def fitted():
    X, Y = data()
    ensemble = CredalChainEnsemble(n_chains=3, s=1.0, random_state=0)
    return JointDecision(ensemble).fit(X[:150], Y[:150]), X[150:], Y[150:]


class Told:
    """Probabilities that are given, in place of a fitted classifier."""

    classes_ = np.tile([0, 1], (4, 1))

    def __init__(self, p):
        self.p = np.asarray(p, dtype=float)
        self.model_ = self

    def never_observed(self):
        return np.zeros(4, dtype=bool)

    def predict_proba(self, X):
        return self.p


def best_by_enumeration(p, reward):
    """The most that any set of answers to any labels is worth, labels independent."""
    m = len(p)
    worths = [
        np.prod([max(p[j], 1 - p[j]) for j in some]) + reward * len(some) / m
        for size in range(m + 1)
        for some in itertools.combinations(range(m), size)
    ]
    return max(worths)


@given(
    p=st.lists(st.floats(0, 1), min_size=4, max_size=4),
    reward=st.floats(0, 5),
)
def test_no_set_of_answers_is_worth_more(p, reward):
    decision = JointDecision(None)
    decision.estimator_ = Told([p])
    labels = decision.predict_path([[0]], [reward])[0][0]
    answered = labels != -1
    certain = np.where(labels == 1, p, 1 - np.array(p))[answered]
    worth = np.prod(certain) + reward * answered.sum() / 4
    assert worth >= best_by_enumeration(p, reward) - 1e-9
    assert (certain >= 0.5).all()


def test_a_larger_reward_answers_more(fitted):
    model, X, _ = fitted
    path = model.predict_path(X, [0.0, 0.1, 0.5, 1.0, 2.0, 100.0])
    for fewer, more in itertools.pairwise(path):
        answered = fewer != -1
        assert (more[answered] == fewer[answered]).all()
    np.testing.assert_array_equal(path[-1], model.predict(X))


def test_credal_certainty_is_the_lower_probability(fitted):
    model, X, _ = fitted
    credal = clone(model).set_params(bounds="credal")
    credal.estimator_ = model.estimator_
    interval = model.estimator_.infer(X).interval
    certainty = np.maximum(interval[..., 0], 1 - interval[..., 1])
    found = credal._worths(X)[1]
    np.testing.assert_array_equal(found, certainty)
    more_cautious = (credal.predict_path(X, [0.5])[0] == -1).mean()
    assert more_cautious >= (model.predict_path(X, [0.5])[0] == -1).mean()


def test_draws_have_the_chains_probabilities():
    """P(first label) directly; P(both labels are 1) from the precise chain's two steps."""
    X, Y = data(m=2)
    chain = CredalChainClassifier(order="given").fit(X, Y)
    n = 4000
    drawn = sample_labels(chain, X[:5], n, 0)
    first = chain.predict_proba(X[:5])[:, 0]
    error = 4 * 0.5 / np.sqrt(n)
    np.testing.assert_allclose(drawn[:, :, 0].mean(axis=0), first, atol=error)
    given_one = chain.infer(X[:5], s=0.0, known=[[1, -1]] * 5).interval[:, 1, 0]
    both = (drawn == 1).all(axis=2).mean(axis=0)
    np.testing.assert_allclose(both, first * given_one, atol=error)


def test_a_sampled_joint(fitted):
    model, X, _ = fitted
    sampled = clone(model).set_params(joint="sampled", n_samples=50, random_state=1)
    sampled.estimator_ = model.estimator_
    one, two = sampled.predict_partial(X), sampled.predict_partial(X)
    np.testing.assert_array_equal(one, two)
    worth = sampled._worths(X)[2]
    assert (np.diff(worth, axis=1) <= 0).all()
    assert (worth[:, 0] == 1).all()


def test_it_is_at_home(fitted):
    model, X, Y = fitted
    assert 0 < model.score(X, Y) <= 1
    np.testing.assert_array_equal(partial_labels(model, X), model.predict_partial(X))
    assert clone(model).get_params()["estimator__n_chains"] == 3


def test_a_single_label():
    X, Y = data()
    model = JointDecision(CredalChainClassifier(), reward=0.3).fit(X, Y[:, 0])
    assert model.predict_partial(X).shape == (200, 1)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"reward": -1}, "reward must be a number, 0 or positive and finite, got -1"),
        ({"reward": np.inf}, "positive and finite, got inf"),
        ({"reward": "much"}, "reward must be a number"),
        ({"bounds": "wide"}, "bounds must be one of 'precise', 'credal'"),
        ({"joint": "exact"}, "joint must be one of 'independent', 'sampled'"),
        ({"joint": "sampled", "bounds": "credal"}, "draws from precise chains"),
        ({"n_samples": 0}, "n_samples must be a whole number"),
        ({"n_samples": 1.5}, "n_samples must be a whole number"),
    ],
)
def test_what_cannot_be_done_is_said(params, message):
    X, Y = data()
    with pytest.raises(ValueError, match=message):
        JointDecision(CredalChainClassifier(), **params).fit(X, Y)


def test_a_vector_with_one_class():
    X, _ = data()
    y = np.array(["a"] * len(X))
    model = JointDecision(CredalChainClassifier()).fit(X, y)
    assert (model.predict_partial(X)[model.predict_partial(X) != -1] == 0).all()
    assert model.score(X, y) >= 0.65


@pytest.mark.parametrize("bounds", ["precise", "credal"])
def test_labels_never_observed_stay_open(bounds):
    X, Y = data()
    Y[:, 1] = -1
    with pytest.warns(UserWarning, match="label1"):
        model = JointDecision(CredalChainClassifier(), reward=50, bounds=bounds).fit(X, Y)
    labels = model.predict_partial(X)
    assert (labels[:, 1] == -1).all()
    assert (labels[:, [0, 2, 3]] != -1).all()
