"""Forests with the imprecise Dirichlet model in their leaves."""

import itertools

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)

from credalchain import (
    CredalBinaryRelevanceClassifier,
    CredalChainClassifier,
    CredalChainEnsemble,
    CredalForest,
    Exactness,
    branching,
    marginalization,
    tree_marginalization,
)
from credalchain.chains.local import LocalWalk
from credalchain.chains.strategies import STRATEGIES
from credalchain.prediction import RANKS
from problems import infer_all

FORESTS = [
    ExtraTreesClassifier(n_estimators=15, min_samples_leaf=2),
    RandomForestClassifier(n_estimators=15, max_depth=5),
]


def data(n=160, p=5, m=5, *, missing=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    noise = rng.normal(size=(n, m))
    Y = np.zeros((n, m), dtype=np.int8)
    for j in range(m):
        before = Y[:, :j].sum(axis=1) - j / 2
        Y[:, j] = X[:, j % p] + 0.8 * before + 0.7 * noise[:, j] > 0
    Y[rng.random(Y.shape) < missing] = -1
    return X, Y


def chain(forest, **params):
    params = {"order": "given", "random_state": 0, "s": 1.0, **params}
    return CredalChainClassifier(CredalForest(forest), **params)


@pytest.fixture(scope="module", params=FORESTS, ids=["extra trees", "random forest"])
def fitted(request):
    X, Y = data()
    return chain(request.param).fit(X[:120], Y[:120]), X[120:], Y[120:]


def test_s_0_is_scikit_learn(fitted):
    """The first label's forest looks at nothing but X."""
    model, X, _ = fitted
    seed = np.random.RandomState(0).randint(2**31 - 1)
    whole, Y = data()
    forest = clone(model.base.forest).set_params(random_state=seed).fit(whole[:120], Y[:120, 0])
    expected = forest.predict_proba(X)[:, 1]
    np.testing.assert_allclose(model.predict_proba(X)[:, 0], expected, atol=1e-12)
    interval = model.infer(X, s=0.0).interval[:, 0]
    np.testing.assert_allclose(interval, np.stack([expected] * 2, axis=1), atol=1e-12)


def test_leaves_are_imprecise_dirichlet(fitted):
    """Bounds of the first label from the leaves that scikit-learn's trees send the rows to."""
    model, X, _ = fitted
    seed = np.random.RandomState(0).randint(2**31 - 1)
    whole, Y = data()
    forest = clone(model.base.forest).set_params(random_state=seed).fit(whole[:120], Y[:120, 0])
    s = 1.7
    lower, upper = np.zeros(len(X)), np.zeros(len(X))
    for tree in forest.estimators_:
        leaf = tree.apply(X)
        n = tree.tree_.weighted_n_node_samples[leaf]
        n1 = n * tree.tree_.value[leaf, 0, 1]
        lower += n1 / (n + s) / len(forest.estimators_)
        upper += (n1 + s) / (n + s) / len(forest.estimators_)
    found = model.infer(X, s=s).interval[:, 0]
    np.testing.assert_allclose(found, np.stack([lower, upper], axis=1), atol=1e-12)


@pytest.mark.parametrize("s", [0.5, 2.0, 6.0])
def test_branching_contains_every_completion(fitted, s):
    """Enumerated with the same stars; equal as long as nothing was left open."""
    model, X, _ = fitted
    fast = model.infer(X, s=s)
    stars = fast.labels
    encoded = model.model_.encode(X)
    walk = model.model_.begin(encoded, s=s, strategy=tree_marginalization, precise=False)
    slow = LocalWalk(walk._local, encoded, 5, s, branching)
    rows = np.arange(len(X))
    opened = np.zeros(len(X), dtype=bool)
    for j in range(5):
        lower, upper = slow.probabilities(j, rows)
        got = fast.interval[:, j]
        assert (got[:, 0] <= lower + 1e-9).all()
        assert (got[:, 1] >= upper - 1e-9).all()
        closed = ~opened
        np.testing.assert_allclose(got[closed, 0], lower[closed].astype(float), atol=1e-9)
        slow.set_label(j, stars[:, j], rows)
        opened |= stars[:, j] == -1
    assert opened.any()


def test_exactness_is_reported(fitted):
    model, X, _ = fitted
    outer, approximate = infer_all(model, X, s=3.0, strategy=("branching", "marginalization"))
    assert outer.exactness[0] == approximate.exactness[0] == Exactness.EXACT
    assert outer.exactness[-1] == Exactness.OUTER
    assert approximate.exactness[-1] == Exactness.APPROXIMATE
    precise = model.infer(X, s=0.0)
    assert set(precise.exactness) == {Exactness.EXACT}


def test_a_larger_s_only_opens_labels(fitted):
    model, X, _ = fitted
    assert model.nested_
    path = model.predict_path(X, [0.0, 0.3, 1.0, 2.0, 5.0, 20.0])
    for bolder, more_cautious in itertools.pairwise(path):
        answered = more_cautious != -1
        assert (bolder[answered] == more_cautious[answered]).all()
    assert (path[-1] == -1).mean() > (path[1] == -1).mean()


def test_marginalization_stays_within_branching(fitted):
    """With the same history a mean over branches lies between their least and greatest."""
    model, X, _ = fitted
    stars = model.infer(X, s=4.0).labels
    one, two = (
        model.model_.begin(model.model_.encode(X), s=4.0, strategy=strategy, precise=False)
        for strategy in (branching, marginalization)
    )
    rows = np.arange(len(X))
    for j in range(5):
        (lower, upper), (mean_lower, mean_upper) = one.log_odds(j, rows), two.log_odds(j, rows)
        assert (lower <= mean_lower + 1e-9).all()
        assert (mean_upper <= upper + 1e-9).all()
        one.set_label(j, stars[:, j], rows)
        two.set_label(j, stars[:, j], rows)


def test_missing_labels_and_features(fitted):
    X, Y = data(missing=0.3, seed=1)
    X[::7, 2] = np.nan
    model = chain(clone(fitted[0].base.forest)).fit(X[:120], Y[:120])
    prediction = model.infer(X[120:])
    assert (prediction.interval[..., 0] <= prediction.interval[..., 1]).all()
    Y[:, 3] = -1
    with pytest.warns(UserWarning, match="label3"):
        model = chain(clone(fitted[0].base.forest)).fit(X, Y)
    assert (model.predict_partial(X)[:, 3] == -1).all()
    assert (model.predict(X)[:, 3] == 0).all()


@pytest.mark.parametrize("kind", [ExtraTreesClassifier, RandomForestClassifier])
def test_one_tree_is_exact(kind):
    """Bounds of a single tree are those of enumerating the open labels.

    With labels missing in training a path can split on a label more than once (0 and missing
    against 1, then 0 against missing), so what it fixed higher up has to be remembered.
    """
    rng = np.random.default_rng(3)
    X, Y = data(n=300, m=6, missing=0.4, seed=2)
    model = chain(kind(n_estimators=1, max_features=None)).fit(0.2 * X[:200], Y[:200])
    new, rows = 0.2 * X[200:], np.arange(100)
    encoded = model.model_.encode(new)
    fast = model.model_.begin(encoded, s=1.0, strategy=branching, precise=False)
    local = model.model_.begin(encoded, s=1.0, strategy=tree_marginalization, precise=False)._local
    slow = LocalWalk(local, encoded, 6, 1.0, branching)
    for j in range(6):
        found, expected = fast.find_bounds(j, rows), slow.probabilities(j, rows)
        np.testing.assert_allclose(found, np.transpose(expected).astype(float), atol=1e-12)
        assert (fast.exactness(j, rows) == RANKS[Exactness.EXACT]).all()
        answers = rng.choice(np.array([-1, -1, 0, 1], dtype=np.int8), size=100)
        fast.set_label(j, answers, rows)
        slow.set_label(j, answers, rows)


def test_known_labels_are_used(fitted):
    model, X, Y = fitted
    known = np.full(Y.shape, -1)
    known[:, 1] = Y[:, 1]
    told, free = model.infer(X, known=known), model.infer(X)
    np.testing.assert_array_equal(told.labels[:, 1], Y[:, 1])
    np.testing.assert_array_equal(told.interval[:, 0], free.interval[:, 0])
    assert (told.interval[:, 2:] != free.interval[:, 2:]).any()


def test_threads_and_sparse_input_change_nothing(fitted):
    model, X, _ = fitted
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    X = np.tile(X, (30, 1))
    one = model.infer(X)
    model.set_params(n_jobs=2)
    two, thin = model.infer(X), model.infer(sparse.csr_array(X))
    model.set_params(n_jobs=None)
    for other in (two, thin):
        np.testing.assert_array_equal(one.labels, other.labels)
        np.testing.assert_array_equal(one.log_odds, other.log_odds)


def test_without_a_chain():
    X, Y = data()
    base = CredalForest(FORESTS[0])
    model = CredalBinaryRelevanceClassifier(base, s=1.0, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.predict_partial(X).shape, Y.shape)
    assert set(model.infer(X).exactness) == {Exactness.EXACT}


def test_what_cannot_be_done_is_said():
    X, Y = data()
    with pytest.raises(ValueError, match="forest must be None, an ExtraTreesClassifier"):
        chain(GradientBoostingClassifier()).fit(X, Y)
    with pytest.raises(ValueError, match="order='dynamic'"):
        chain(FORESTS[0], order="dynamic").fit(X, Y)


def test_data_frames():
    pd = pytest.importorskip("pandas")
    X, Y = data()
    frame = pd.DataFrame(X.round(), columns=list("abcde"))
    model = chain(FORESTS[0]).fit(frame, Y)
    nullable = frame.astype("Int64")
    np.testing.assert_array_equal(model.infer(frame).log_odds, model.infer(nullable).log_odds)
    nullable.loc[0, "a"] = pd.NA
    model.predict_partial(nullable)
    for wrong in (np.inf, 1e300):
        with pytest.raises(ValueError, match="infinity"):
            model.predict_partial(frame.assign(a=wrong))
    with pytest.raises(ValueError, match="column 'a' of X held numbers in fit and holds text now"):
        model.predict_partial(frame.assign(a="1"))


@pytest.mark.parametrize(("n", "ones", "s"), [(25, 14, 3.0), (29, 15, 1.0), (35, 29, 23.0)])
@pytest.mark.parametrize("n_trees", [1, 3])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_ties_are_settled_exactly(n, ones, s, n_trees, strategy):
    """ones / (n + s) is one half, and shares of rows times rows are not whole in floating point."""
    Y = np.r_[np.ones(ones), np.zeros(n - ones)][:, None]
    X = np.zeros((n, 1))
    forest = ExtraTreesClassifier(n_estimators=n_trees)
    found = chain(forest, s=s, strategy=strategy).fit(X, Y).infer(X[:1])
    assert found.labels.tolist() == [[-1]]
    assert set(found.exactness) == {Exactness.EXACT}
    assert found.interval[0, 0, 0] == 0.5


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_bound_next_to_the_threshold(strategy):
    """3 of 9 rows and s = 1: the lower bound is 3/10, and the float 0.3 is less."""
    X, Y = np.zeros((9, 1)), np.array([[1]] * 3 + [[0]] * 6)
    model = chain(ExtraTreesClassifier(n_estimators=1), s=1.0, strategy=strategy, threshold=0.3)
    assert model.fit(X, Y).predict_partial(X[:1]).tolist() == [[1]]


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["branching", "marginalization"])
def test_ties_of_many_trees_are_settled_in_ensembles_too(strategy):
    """The mean of 500 trees of 7/10 each is not the float 0.7."""
    X, Y = np.zeros((20, 1)), np.tile([[0]] * 3 + [[1]] * 7, (2, 1))
    base = CredalForest(ExtraTreesClassifier(n_estimators=500))
    params = {"s": 0.0, "threshold": 0.7, "strategy": strategy, "random_state": 0}
    for model in (
        CredalChainClassifier(base, **params),
        CredalChainEnsemble(base, n_chains=2, **params),
    ):
        found = model.fit(X, Y).infer(X[:1])
        assert found.labels.tolist() == [[1]]  # 7/10 is more than the float
        assert set(found.exactness) == {Exactness.EXACT}


def test_class_weights_that_are_not_whole():
    """Nodes of whole weight with parts that are not: leaves must not come out empty."""
    X, Y = np.array([[0.0], [0], [1], [1]]), np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    forest = ExtraTreesClassifier(3, class_weight={0: 0.5, 1: 0.5})
    model = chain(forest, s=1.0).fit(X, Y)
    interval = model.infer(X).interval
    assert ((interval >= 0) & (interval <= 1)).all()
    for fitted in model.model_.forests:
        assert (fitted.counts.sum(axis=1) > 0).all()


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("strategy", [branching, marginalization])
def test_fractions_are_the_bounds(missing, strategy):
    rng = np.random.default_rng(5)
    X, Y = data(n=150, m=4, missing=missing, seed=4)
    model = chain(ExtraTreesClassifier(n_estimators=3)).fit(X, Y)
    encoded = model.encode(X[:20])
    walk = model.model_.begin(encoded, s=1.5, strategy=strategy, precise=False)
    exact = model.model_.exact_bounds(encoded, s=1.5, strategy=strategy, precise=False)
    history = np.full((20, 4), -2, dtype=np.int8)
    for j in range(4):
        expected = [[float(end) for end in exact(row, j, history[row])] for row in range(20)]
        np.testing.assert_allclose(walk.find_bounds(j, np.arange(20)), expected, atol=1e-12)
        history[:, j] = rng.integers(-1, 2, 20)
        walk.set_label(j, history[:, j], np.arange(20))
