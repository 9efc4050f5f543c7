"""Logistic regressions with sets of coefficients."""

import itertools

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from credalchain import CredalChainClassifier, CredalLogistic, Exactness
from credalchain.bases.local import LocalWalk
from credalchain.strategies import branching, tree_marginalization


def data(n=140, m=5, *, missing=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Y = np.zeros((n, m), dtype=np.int8)
    for j in range(m):
        before = Y[:, :j].sum(axis=1) - j / 2
        Y[:, j] = X[:, j % 3] + before + rng.normal(size=n) > 0
    Y[rng.random(Y.shape) < missing] = -1
    return X, Y


@pytest.fixture(scope="module", params=["bag", "posterior"])
def fitted(request):
    X, Y = data(missing=0.1)
    base = CredalLogistic(request.param, n_members=6)
    chain = CredalChainClassifier(base, s=1.0, order="given", random_state=0)
    return chain.fit(X[:110], Y[:110]), X[110:], Y[110:]


def test_s_0_is_scikit_learn(fitted):
    model, X, _ = fitted
    whole, Y = data(missing=0.1)
    rows = np.flatnonzero(Y[:110, 0] != -1)
    plain = LogisticRegression(C=1.0, max_iter=1000).fit(whole[rows], Y[rows, 0])
    expected = plain.predict_proba(X)[:, 1]
    np.testing.assert_allclose(model.predict_proba(X)[:, 0], expected, atol=1e-6)
    interval = model.infer(X, s=0.0).interval[:, 0]
    np.testing.assert_allclose(interval, np.stack([expected] * 2, axis=1), atol=1e-6)


@pytest.mark.parametrize("s", [0.5, 1.0, 3.0])
def test_branching_equals_enumeration(fitted, s):
    model, X, _ = fitted
    fast = model.infer(X, s=s)
    encoded = model.model_.encode(X)
    local = model.model_.begin(encoded, s=s, strategy=tree_marginalization, precise=False)._local
    slow = LocalWalk(local, encoded, 5, s, branching)
    rows = np.arange(len(X))
    for j in range(5):
        lower, upper = slow.probabilities(j, rows)
        found = fast.interval[:, j]
        np.testing.assert_allclose(found[:, 0], lower.astype(float), atol=1e-12)
        np.testing.assert_allclose(found[:, 1], upper.astype(float), atol=1e-12)
        slow.set_label(j, fast.labels[:, j], rows)
    assert set(fast.exactness) == {Exactness.EXACT}
    assert (fast.labels[:, :-1] == -1).any()


def test_the_first_label_does_not_depend_on_the_strategy(fitted):
    """Later ones do, and neither contains the other: saying nothing is no mean of 0 and 1."""
    model, X, _ = fitted
    precise = model.infer(X, s=0.0)
    both = model.infer(X, s=1.0, strategy=("branching", "marginalization"))
    for prediction in both:
        first = prediction.interval[:, 0]
        assert (first[:, 0] <= precise.interval[:, 0, 0] + 1e-12).all()
        assert (first[:, 1] >= precise.interval[:, 0, 0] - 1e-12).all()
    np.testing.assert_array_equal(both[0].interval[:, 0], both[1].interval[:, 0])


def test_a_larger_s_only_opens_labels(fitted):
    model, X, _ = fitted
    assert model.nested_
    for bolder, careful in itertools.pairwise(model.predict_path(X, [0.0, 0.2, 1.0, 2.0, 6.0])):
        answered = careful != -1
        assert (bolder[answered] == careful[answered]).all()


def test_sparse_input(fitted):
    model, X, _ = fitted
    X = np.where(np.abs(X) < 0.7, 0.0, X)
    dense, thin = model.infer(X), model.infer(sparse.csr_array(X))
    np.testing.assert_allclose(dense.log_odds, thin.log_odds, atol=1e-12)


def test_one_class_and_no_class():
    X, Y = data()
    Y[:, 1], Y[:, 2] = 1, -1
    with pytest.warns(UserWarning, match="label2"):
        model = CredalChainClassifier(CredalLogistic(), order="given").fit(X, Y)
    assert (model.predict(X)[:, 1] == 1).all()
    assert (model.predict_partial(X)[:, 2] == -1).all()


def test_what_cannot_be_done_is_said():
    X, Y = data()
    chain = CredalChainClassifier(CredalLogistic("guess"))
    with pytest.raises(ValueError, match="source must be one of 'bag', 'posterior'"):
        chain.fit(X, Y)
    with pytest.raises(ValueError, match="n_members must be a whole number"):
        CredalChainClassifier(CredalLogistic(n_members=0)).fit(X, Y)
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="fill in missing ones first"):
        CredalChainClassifier(CredalLogistic()).fit(X, Y)


def test_a_penalty_that_cannot_be():
    X, Y = data()
    for wrong in (0, -1, np.inf, "strong"):
        with pytest.raises(ValueError, match="C must be a positive number"):
            CredalChainClassifier(CredalLogistic(C=wrong)).fit(X, Y)
