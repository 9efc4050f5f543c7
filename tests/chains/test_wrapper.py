"""Any scikit-learn classifier as a base, against literal enumeration and the definitions."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from credalchain import CredalBinaryRelevanceClassifier, CredalChainClassifier, CredalWrapper
from credalchain.chains.wrapper import WrappedWalk
from profiles import examples

VALUES = [0.0, 0.1, 0.3, 1.0, 3.0]
SOURCES = ["contamination", "bag"]


def problem(seed=0, n=80, m=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Y = (X @ rng.normal(size=(3, m)) + 0.7 * rng.normal(size=(n, m)) > 0).astype(int)
    return X, Y


def chain(source="contamination", estimator=None, **params):
    base = CredalWrapper(estimator or GaussianNB(), source, n_members=4)
    return CredalChainClassifier(base, order="given", random_state=0, **params)


# -- the search -------------------------------------------------------------------------------


class MadeUpModel:
    """Bounds that depend on every label of the history in no orderly way."""

    n_labels = 7
    before = (np.arange(6),) * 7

    def __init__(self, seed, budget):
        self.table = np.random.default_rng(seed).random((5, *(3,) * 6, 2))
        self.table.sort(axis=-1)
        self.max_filled = budget.bit_length() - 1

    def bounds(self, X, j, history, *, s):
        earlier = history[:, self.before[j]]  # a star, -1, is the last of three
        found = self.table[(X[:, 0], *earlier.T)]
        return found[:, 0], found[:, 1]


@given(st.integers(0, 10**6), st.integers(2, 80))
@examples(60)
def test_bounds_against_every_completion(seed, budget):
    rng, model = np.random.default_rng(seed), MadeUpModel(seed, budget)
    X, history = np.arange(5)[:, None], rng.choice([-1, -1, 0, 1], size=(5, 7)).astype(np.int8)
    walk = WrappedWalk(model, X, 1.0, searches=True)
    for j in range(6):
        walk.set_label(j, history[:, j], np.arange(5))
    bounds, ranks = walk.find_bounds(6, np.arange(5)), walk.exactness(6, np.arange(5))
    for row, told in enumerate(history[:, :6]):
        filled_in = np.flatnonzero(told == -1)[: model.max_filled]
        choices = [(0, 1) if k in filled_in else (y,) for k, y in enumerate(told)]
        rows = [np.array([filled]) for filled in product(*choices)]
        found = [model.bounds(X[[row]], 6, filled, s=1.0) for filled in rows]
        assert bounds[row, 0] == min(low[0] for low, _ in found)
        assert bounds[row, 1] == max(high[0] for _, high in found)
        assert (ranks[row] == 0) == (2 ** (told == -1).sum() <= budget)


# -- the credal sets --------------------------------------------------------------------------


def one_label(source, s, **params):
    X, Y = problem()
    base = CredalWrapper(GaussianNB(), source, n_members=5, **params)
    fitted = CredalBinaryRelevanceClassifier(base, s=s, random_state=0).fit(X, Y[:, :1])
    return X, Y[:, 0], fitted, fitted.predict_interval(X)[:, 0]


def test_contamination_is_its_formula():
    X, y, _, interval = one_label("contamination", 0.25)
    p = GaussianNB().fit(X, y).predict_proba(X)[:, 1]
    np.testing.assert_allclose(interval[:, 0], 0.8 * p, rtol=1e-9)
    np.testing.assert_allclose(interval[:, 1], 0.8 * p + 0.2, rtol=1e-9)


@pytest.mark.parametrize("quantiles", [(0.0, 1.0), (0.25, 0.75)])
def test_a_bag_reaches_its_quantiles_at_one(quantiles):
    X, _, fitted, interval = one_label("bag", 1.0, quantiles=quantiles)
    members = fitted.model_.models[0].members
    assert len(members) == 5
    inputs = X
    p = np.array([one.predict_proba(inputs)[:, 1] for one in members])
    centre = fitted.predict_proba(X)[:, 0]
    low, high = np.quantile(p, quantiles, axis=0)
    np.testing.assert_allclose(interval[:, 0], np.minimum(low, centre), rtol=1e-9)
    np.testing.assert_allclose(interval[:, 1], np.maximum(high, centre), rtol=1e-9)
    assert len({tuple(row) for row in p.round(12)}) > 1  # bootstrap samples differ


@pytest.mark.parametrize("source", SOURCES)
def test_zero_is_precise_and_more_is_wider(source):
    X, Y = problem()
    fitted = chain(source).fit(X, Y)
    assert fitted.nested_
    at_zero = fitted.infer(X, s=0)
    no_ties = (at_zero.labels != -1).all(axis=1)
    assert no_ties.mean() > 0.5
    assert (at_zero.lower == at_zero.upper)[no_ties].all()
    narrow = fitted.infer(X, s=0.2)
    for s in VALUES[2:]:
        wide = fitted.infer(X, s=s)
        answered = wide.labels != -1
        assert (wide.labels[answered] == narrow.labels[answered]).all()
        first = fitted.order_[0]
        assert (wide.lower[:, first] <= narrow.lower[:, first]).all()
        assert (wide.upper[:, first] >= narrow.upper[:, first]).all()
        narrow = wide


def test_precise_chain_is_the_classifier_in_a_chain():
    X, Y = problem()
    fitted = chain("contamination", LogisticRegression()).fit(X, Y)
    told = np.empty((len(X), 0))
    for j in range(Y.shape[1]):
        before = np.stack([Y[:, :j] == 0, Y[:, :j] == 1], axis=-1).reshape(len(X), -1)
        model = LogisticRegression().fit(np.hstack([X, before]), Y[:, j])
        p = model.predict_proba(np.hstack([X, told]))[:, 1]
        np.testing.assert_allclose(fitted.predict_proba(X)[:, j], p, rtol=1e-9)
        said = (p >= 0.5).astype(float)
        told = np.hstack([told, 1 - said[:, None], said[:, None]])


# -- along the chain --------------------------------------------------------------------------


@pytest.mark.parametrize("source", SOURCES)
def test_branching_is_the_worst_completion(source):
    """A literal twin: every way to answer the open labels, through ``known``."""
    X, Y = problem(n=60)
    fitted = chain(source, DecisionTreeClassifier(max_depth=3), s=0.6).fit(X, Y)
    prediction = fitted.infer(X[:15])
    assert set(prediction.exactness) == {"exact"}
    last = fitted.order_[-1]
    for row in range(15):
        before = prediction.labels[row].copy()
        before[last] = -1
        choices = [(0, 1) if y == -1 and j != last else (y,) for j, y in enumerate(before)]
        every = [
            fitted.infer(X[row : row + 1], known=np.array([filled])).interval[0, last]
            for filled in product(*choices)
        ]
        assert prediction.lower[row, last] == pytest.approx(min(low for low, _ in every))
        assert prediction.upper[row, last] == pytest.approx(max(high for _, high in every))


def test_a_small_budget_is_reported():
    X, Y = problem(m=7)
    params = {"order": "given", "s": 4.0, "random_state": 0}
    small, large = (
        CredalChainClassifier(
            CredalWrapper(DecisionTreeClassifier(max_depth=4), "contamination", budget=budget),
            **params,
        ).fit(X, Y)
        for budget in (4, 64)
    )
    few, all_of_them = small.infer(X), large.infer(X)
    assert (few.labels == -1).all()  # so the histories are the same
    assert few.exactness[-1] == "approximate"
    assert all_of_them.exactness[-1] == "exact"
    assert not small.nested_
    assert large.nested_
    assert few.exactness[:3] == ("exact",) * 3


def test_marginalization_tells_nothing_and_says_so():
    X, Y = problem()
    fitted = chain(s=4.0, strategy="marginalization").fit(X, Y)
    prediction = fitted.infer(X)
    assert (prediction.labels == -1).all()
    assert prediction.exactness == ("exact", *["approximate"] * 3)
    assert not fitted.nested_


@pytest.mark.parametrize("source", SOURCES)
def test_missing_and_known_labels_and_paths(source):
    X, Y = problem(n=120)
    rng = np.random.default_rng(1)
    Y = np.where(rng.random(Y.shape) < 0.2, np.nan, Y)
    fitted = chain(source, s=0.3).fit(X, Y)
    path = fitted.predict_path(X, VALUES)
    for s, labels in zip(VALUES, path, strict=True):
        np.testing.assert_array_equal(labels, fitted.infer(X, s=s).labels)
    known = np.full(Y.shape, -1)
    told = []
    for known[:, 0] in (0, 1):
        told.append(fitted.infer(X, known=known))
        assert (told[-1].labels[:, 0] == known[:, 0]).all()
    assert not np.allclose(told[0].interval[:, 1:], told[1].interval[:, 1:])


def test_sparse_gaps_and_one_class():
    X, Y = problem()
    dense = chain(estimator=LogisticRegression(), s=0.5).fit(X, Y)
    thin = chain(estimator=LogisticRegression(), s=0.5).fit(sparse.csr_array(X), Y)
    np.testing.assert_allclose(
        dense.predict_interval(X), thin.predict_interval(sparse.csr_array(X)), rtol=1e-3
    )
    gaps = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    boosted = chain(estimator=HistGradientBoostingClassifier(max_iter=5)).fit(gaps, Y)
    assert boosted.predict_partial(gaps).shape == Y.shape
    Y[:, 1] = 0
    p = chain().fit(X, Y).predict_proba(X)[:, 1]
    np.testing.assert_allclose(p, 1 / (len(X) + 2))


def test_never_observed_stays_open():
    X, Y = problem()
    gone = Y.astype(float)
    gone[:, 2] = np.nan
    with pytest.warns(UserWarning, match="never observed"):
        fitted = chain(s=0.0).fit(X, gone)
    assert (fitted.predict_partial(X)[:, 2] == -1).all()


def test_the_same_seed_gives_the_same_answers():
    X, Y = problem()
    tree = DecisionTreeClassifier(max_features=1)
    one, two = (chain("bag", tree).fit(X, Y).infer(X, s=1).interval for _ in range(2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"source": "magic"}, "source must be one of .*'magic'"),
        ({"n_members": 0}, "n_members must be a whole number, at least 1, got 0"),
        ({"budget": 1}, "budget must be a whole number, at least 2, got 1"),
        ({"quantiles": (0.9, 0.1)}, "quantiles must be two numbers"),
        ({"quantiles": 0.5}, "quantiles must be two numbers"),
        ({"estimator": LinearSVC()}, "predict_proba.*CalibratedClassifierCV"),
        ({"estimator": FrozenEstimator(GaussianNB())}, "estimator must be unfitted.*Frozen"),
        ({"estimator": 3}, "estimator must be a classifier"),
    ],
)
def test_what_is_wrong_is_said(params, message):
    X, Y = problem()
    base = CredalWrapper().set_params(**params)
    with pytest.raises(ValueError, match=message):
        CredalChainClassifier(base).fit(X, Y)


class Broken(GaussianNB):
    def predict_proba(self, X):
        return np.full((len(X), 2), np.nan)


def test_probabilities_that_are_none():
    X, Y = problem()
    fitted = CredalChainClassifier(CredalWrapper(Broken(), "contamination")).fit(X, Y)
    with pytest.raises(ValueError, match=r"Broken\(\) gave nan as a probability"):
        fitted.predict(X)


def test_a_label_with_one_class_is_open_to_doubt():
    X, Y = problem()
    Y[:, 0] = 1
    fitted = CredalChainClassifier(CredalWrapper(GaussianNB()), order="given").fit(X[:10], Y[:10])
    widths = [np.ptp(fitted.infer(X[:1], s=s).interval[0, 0]) for s in (0, 1, 3)]
    assert widths[0] == 0
    assert 0.05 < widths[1] < widths[2]
    assert fitted.nested_


def test_whole_numbers_of_numpy():
    X, Y = problem()
    fitted = CredalChainClassifier(CredalWrapper(budget=np.int64(4)), s=9.0).fit(X, Y)
    assert fitted.predict_partial(X).shape == Y.shape
    assert not fitted.nested_


def test_other_errors():
    X, Y = problem()
    with pytest.raises(ValueError, match="CredalWrapper learns for one order"):
        CredalChainClassifier(CredalWrapper(), order="dynamic").fit(X, Y)
