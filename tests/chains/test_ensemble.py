"""Several chains, averaged."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.tree import DecisionTreeClassifier

import oracle
from credalchain import (
    CredalChainClassifier,
    CredalChainEnsemble,
    CredalForest,
    CredalWrapper,
    Exactness,
    NaiveCredal,
)
from problems import cases
from profiles import examples

FOREST = CredalForest(ExtraTreesClassifier(n_estimators=8, min_samples_leaf=3))


def data(n=150, m=5, seed=0, missing=0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    Y = (X[:, np.arange(m) % 4] + 0.8 * rng.normal(size=(n, m)) > 0).astype(np.int8)
    Y[rng.random(Y.shape) < missing] = -1
    return X, Y


@pytest.fixture(params=[NaiveCredal(), FOREST], ids=["naive", "forest"], scope="module")
def fitted(request):
    X, Y = data()
    model = CredalChainEnsemble(request.param, n_chains=4, s=1.0, random_state=3)
    return model.fit(X[:120], Y[:120]), X[120:], Y[120:]


def members(model):
    """The chains of an ensemble, one by one."""
    for one, order in zip(model.model_.models, model.orders_, strict=True):
        yield CredalChainClassifier.from_model(
            one, n_features=model.n_features_in_, order=order, s=model.s
        )


@pytest.mark.parametrize("strategy", ["branching", "marginalization"])
def test_it_is_the_mean_of_its_chains(fitted, strategy):
    model, X, _ = fitted
    both = [chain.infer(X, strategy=strategy).interval for chain in members(model)]
    mean = np.mean(both, axis=0)
    prediction = model.infer(X, strategy=strategy)
    np.testing.assert_allclose(prediction.interval, mean, atol=1e-12)
    expected = np.where(mean[..., 0] > 0.5, 1, np.where(mean[..., 1] < 0.5, 0, -1))
    np.testing.assert_array_equal(prediction.labels, expected)


def test_the_precise_chains_are_averaged(fitted):
    model, X, _ = fitted
    mean = np.mean([chain.predict_proba(X) for chain in members(model)], axis=0)
    np.testing.assert_allclose(model.predict_proba(X), mean, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), (mean >= 0.5).astype(int))


def test_naive_credal_counts_once():
    X, Y = data()
    model = CredalChainEnsemble(n_chains=7, random_state=0).fit(X, Y)
    assert len({id(one) for one in model.model_.models}) == 1
    assert len(model.orders_) == 7
    assert (np.sort(model.orders_, axis=1) == np.arange(5)).all()


def test_partial_fit_adds_to_the_counts():
    X, Y = data()
    codes = (X > 0).astype(int)
    base = NaiveCredal(discretizer=None)
    whole = CredalChainEnsemble(base, n_chains=3, random_state=0).fit(codes, Y)
    parts = CredalChainEnsemble(base, n_chains=3, random_state=0)
    parts.partial_fit(codes[:50], Y[:50]).partial_fit(codes[50:], Y[50:])
    np.testing.assert_array_equal(whole.infer(codes).log_odds, parts.infer(codes).log_odds)
    with pytest.raises(AttributeError, match="has no attribute 'partial_fit'"):
        CredalChainEnsemble(FOREST, n_chains=2).fit(X, Y).partial_fit(X, Y)


def test_a_larger_s_only_opens_labels(fitted):
    model, X, _ = fitted
    assert model.nested_
    for bolder, careful in itertools.pairwise(model.predict_path(X, [0.01, 0.5, 2.0, 8.0])):
        answered = careful != -1
        assert (bolder[answered] == careful[answered]).all()


def test_known_labels_and_labels_never_observed(fitted):
    model, X, Y = fitted
    known = np.full(Y.shape, -1)
    known[:, 2] = 1
    assert (model.infer(X, known=known).labels[:, 2] == 1).all()
    X, Y = data()
    Y[:, 1] = -1
    with pytest.warns(UserWarning, match="label1"):
        other = clone(model).fit(X, Y)
    assert (other.predict_partial(X)[:, 1] == -1).all()
    assert (other.predict(X)[:, 1] == 0).all()


def test_exactness_is_that_of_the_worst_chain(fitted):
    model, X, _ = fitted
    exactness = model.infer(X, s=4.0).exactness
    expected = Exactness.EXACT if model.base.__class__ is NaiveCredal else Exactness.OUTER
    assert expected in exactness


def expected_of(case, orders):
    """The mean of the literal twin's bounds over the orders, decided in fractions."""
    problem = case.problem()
    labels = []
    for x in case.oracle_rows():
        each = [oracle.predict_row(problem, x, order)[1] for order in orders.tolist()]
        sums = [
            [sum(ends) for ends in zip(*bounds, strict=True)] for bounds in zip(*each, strict=True)
        ]
        means = [[Fraction(total, len(orders)) for total in pair] for pair in sums]
        answers = [oracle.decide(problem, j, *pair) for j, pair in enumerate(means)]
        labels.append([-1 if answer == oracle.STAR else answer for answer in answers])
    return np.array(labels)


@examples(150)
@given(cases(dynamic=False, with_known=False), st.integers(1, 4))
def test_ties_of_naive_chains_are_settled_exactly(case, n_chains):
    params = {"s": case.s, "strategy": case.strategy, "threshold": case.thresholds}
    base = NaiveCredal(discretizer=None, **case.base)
    model = CredalChainEnsemble.from_counts(
        case.counts(), base=base, n_chains=n_chains, random_state=0, **params
    )
    prediction = model.infer(case.rows)
    np.testing.assert_array_equal(prediction.labels, expected_of(case, model.orders_))
    assert set(prediction.exactness) == {Exactness.EXACT}


def test_what_cannot_be_settled_is_reported():
    """Wrapped classifiers give floats: a mean of exactly one half is a matter of rounding."""
    X = np.zeros((20, 1))
    Y = np.tile([[0, 0], [0, 1], [1, 0], [1, 1]], (5, 1))
    base = CredalWrapper(DecisionTreeClassifier())
    prediction = CredalChainEnsemble(base, n_chains=2, s=0.0, random_state=0).fit(X, Y).infer(X)
    near = (np.abs(prediction.interval - 0.5) < 1e-12).any(axis=-1)
    assert near.any()
    assert (prediction.exactness_by_row[near] == Exactness.APPROXIMATE).all()


def test_ties_of_forests_are_settled_in_fractions():
    X = np.zeros((20, 1))
    Y = np.tile([[0, 0], [0, 1], [1, 0], [1, 1]], (5, 1))
    base = CredalForest(ExtraTreesClassifier(n_estimators=3))
    ensemble = CredalChainEnsemble(base, n_chains=3, s=0.0, random_state=0).fit(X, Y)
    assert (ensemble.predict_partial(X) == -1).all()
    assert (ensemble.predict(X) == 1).all()
    assert Exactness.APPROXIMATE not in ensemble.infer(X).exactness


def test_the_number_of_chains_is_checked():
    X, Y = data()
    for wrong in (0, 2.5, True, "many"):
        with pytest.raises(ValueError, match="n_chains must be a whole number"):
            CredalChainEnsemble(n_chains=wrong).fit(X, Y)


def test_from_counts_draws_its_orders():
    X, Y = data()
    codes = (X > 0).astype(int)
    base = NaiveCredal(discretizer=None)
    fitted = CredalChainEnsemble(base, n_chains=7, random_state=0).fit(codes, Y)
    counts = fitted.model_.models[0].counts
    made = CredalChainEnsemble.from_counts(counts, base=base, n_chains=7, random_state=0)
    np.testing.assert_array_equal(made.orders_, fitted.orders_)
    np.testing.assert_array_equal(made.infer(codes).log_odds, fitted.infer(codes).log_odds)
    forest = CredalChainClassifier(FOREST).fit(X, Y).model_
    with pytest.raises(TypeError, match="was fitted for one"):
        CredalChainEnsemble.from_model(forest, n_features=4)


@pytest.mark.slow
def test_forests_are_the_same_on_any_number_of_workers():
    X, Y = data()
    base = CredalForest(ExtraTreesClassifier(n_estimators=4))
    alone, together = (
        CredalChainEnsemble(base, n_chains=3, n_jobs=n_jobs, random_state=0).fit(X, Y)
        for n_jobs in (None, 2)
    )
    np.testing.assert_array_equal(alone.infer(X).log_odds, together.infer(X).log_odds)
    np.testing.assert_array_equal(alone.orders_, together.orders_)
    assert len({model.forests[0].trees.threshold.sum() for model in alone.model_.models}) == 3
