"""Trees on a sample of rows, which chains count all rows in: the same however rows are cut."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier

from credalchain import (
    CredalBinaryRelevanceClassifier,
    CredalChainClassifier,
    CredalChainEnsemble,
    CredalForest,
    CredalJointForest,
    CredalWrapper,
    JointDecision,
    explain,
    load_model,
    save_model,
)
from credalchain.chains.forest import LEAF
from credalchain.chunks.sampling import hash_limit
from problems import sampled_rows
from profiles import examples

N, SIZE = 60, 25

TREES = ExtraTreesRegressor(n_estimators=5, min_samples_leaf=2, bootstrap=True)
FOREST = CredalForest(ExtraTreesClassifier(n_estimators=4, min_samples_leaf=2))
BAGGED = CredalForest(RandomForestClassifier(n_estimators=4, max_depth=3))
CLASSIFIERS = {
    "joint": CredalJointForest(TREES, random_state=0),
    "conservative": CredalJointForest(TREES, missing="conservative", random_state=0),
    "chain": CredalChainClassifier(FOREST, random_state=0),
    "bagged": CredalChainClassifier(BAGGED, random_state=0),
    "relevance": CredalBinaryRelevanceClassifier(FOREST, random_state=0),
    "ensemble": CredalChainEnsemble(FOREST, n_chains=2, random_state=0),
    "decision": JointDecision(CredalJointForest(TREES, random_state=0)),
}


def frame(seed, gaps=0.15):
    """Texts, gaps everywhere, and a category that only the last row has."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "size": rng.normal(size=N).round(1),
            "city": rng.choice(["Oslo", "Rome", "Bern"], N).astype(object),
            "old": rng.random(N) < 0.5,
            "empty": np.nan,
        }
    )
    X.loc[rng.random(N) < 0.1, "size"] = np.nan
    X.loc[rng.random(N) < 0.1, "city"] = None
    X.loc[N - 1, "city"] = "Zürich"
    Y = pd.DataFrame(rng.integers(0, 2, (N, 3)).astype(float), columns=["x", "y", "z"])
    return X, Y.mask(rng.random((N, 3)) < gaps)


def in_chunks(X, Y, cuts):
    return [(X[a:b], Y[a:b]) for a, b in itertools.pairwise([0, *cuts, N])]


def arrays_of(classifier):
    """All that was learned."""
    model = getattr(classifier, "estimator_", classifier).model_
    if hasattr(model, "leaves"):
        return [*model.trees, *model.leaves[:5], np.array(model.shares), model.missing_features]
    models = getattr(model, "models", [model])
    forests = [forest for one in models for forest in one.forests if forest is not None]
    return [array for forest in forests for array in (*forest.trees, forest.counts)]


def same(one, other, X):
    for left, right in zip(arrays_of(one), arrays_of(other), strict=True):
        np.testing.assert_array_equal(left, right)
    left, right = one.infer(X), other.infer(X)
    np.testing.assert_array_equal(left.interval, right.interval)
    np.testing.assert_array_equal(left.labels, right.labels)
    assert left.label_names == right.label_names


cuts = st.lists(st.integers(0, N), max_size=6).map(sorted)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CLASSIFIERS)
@examples(15)
@given(seed=st.integers(0, 10**6), cuts=cuts)
def test_a_sample_of_all_rows_is_the_fit_in_memory(kind, seed, cuts):
    X, Y = frame(seed)
    whole = clone(CLASSIFIERS[kind]).fit(X, Y)
    found = clone(CLASSIFIERS[kind]).fit_chunks(in_chunks(X, Y, cuts))
    assert found.learned_from_ == f"trees grown on all {N} rows"
    same(found, whole, X)
    assert found.feature_names_in_.tolist() == whole.feature_names_in_.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("kind", CLASSIFIERS)
@examples(15)
@given(seed=st.integers(0, 10**6), cuts=cuts)
def test_the_same_however_rows_are_cut(kind, seed, cuts):
    X, Y = frame(seed)
    whole = clone(CLASSIFIERS[kind]).fit_chunks([(X, Y)], sample_size=SIZE)
    found = clone(CLASSIFIERS[kind]).fit_chunks(in_chunks(X, Y, cuts), sample_size=SIZE)
    assert f"grown on {SIZE} of {N} rows" in found.learned_from_
    same(found, whole, X)


@pytest.mark.parametrize("kind", ["joint", "chain"])
@examples(15)
@given(seed=st.integers(0, 10**6), cuts=cuts, data=st.data())
def test_categories_declared_in_another_order_in_each_chunk(kind, seed, cuts, data):
    """As dictionaries of Parquet files are: they are sorted. An order that all declare is kept."""
    X, Y = frame(seed)
    grades = ["poor", "fair", "good"]
    X["grade"] = pd.Categorical(np.random.default_rng(seed).choice(grades, N), categories=grades)
    cities = ["Bern", "Oslo", "Rome", "Zürich"]
    chunks = [
        (x.astype({"city": pd.CategoricalDtype(data.draw(st.permutations(cities)))}), y)
        for x, y in in_chunks(X, Y, cuts)
    ]
    orders = {tuple(x["city"].cat.categories) for x, _ in chunks if len(x)}
    expected = orders.pop() if len(orders) == 1 else cities
    whole = clone(CLASSIFIERS[kind]).fit(X.astype({"city": pd.CategoricalDtype(expected)}), Y)
    same(clone(CLASSIFIERS[kind]).fit_chunks(chunks), whole, X)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["joint", "decision", "chain"])
@pytest.mark.parametrize("size", [SIZE, N])
def test_dask(kind, size, monkeypatch):
    dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    for module in ("chains.interface", "joint.forest"):
        monkeypatch.setattr(f"credalchain.{module}.SAMPLE_SIZE", size)
    X, Y = frame(3)
    X.index = Y.index = np.random.default_rng(0).integers(0, 9, N)
    lazy_X, lazy_Y = (
        dd.concat([dd.from_pandas(one[a:b], npartitions=1, sort=False) for a, b in parts])
        for one, parts in ((X, [(0, 1), (1, 40), (40, N)]), (Y, [(0, 1), (1, 40), (40, N)]))
    )
    found = clone(CLASSIFIERS[kind]).fit(lazy_X, lazy_Y)
    same(found, clone(CLASSIFIERS[kind]).fit_chunks([(X, Y)]), X)
    table = found.infer(lazy_X).compute()
    pd.testing.assert_frame_equal(table, found.infer(X).to_frame(intervals=True))
    partial = found.predict_partial(lazy_X).compute()
    np.testing.assert_array_equal(partial.to_numpy(), found.predict_partial(X))
    np.testing.assert_array_equal(found.predict(lazy_X).compute(), found.predict(X))


# -- against literal counting -----------------------------------------------------------------


def path(nodes, root, value_of):
    """The nodes that a row comes through."""
    node = int(root)
    while True:
        yield node
        if nodes.feature[node] == LEAF:
            return
        value = value_of(int(nodes.feature[node]))
        missing = np.isnan(value)
        to_left = nodes.missing_left[node] if missing else value <= nodes.threshold[node]
        node = int((nodes.left if to_left else nodes.right)[node])


def numbers(X):
    X = X.assign(city=X.city.map({"Bern": 0, "Oslo": 1, "Rome": 2, "Zürich": 3}), empty=np.nan)
    return X.to_numpy(dtype=np.float32)


def split(seed, **options):
    """Rows of the sample, and the others."""
    X, Y = frame(seed, **options)
    chosen = sampled_rows(0, N, hash_limit(N, SIZE))
    return X, Y, chosen, np.setdiff1d(np.arange(N), chosen)


@pytest.mark.parametrize("kind", ["chain", "bagged", "relevance"])
def test_nodes_of_a_chain_hold_the_rows_that_come_through(kind):
    X, Y, chosen, others = split(1)
    in_order = X.city.astype(pd.CategoricalDtype(["Bern", "Oslo", "Rome", "Zürich"]))
    alone = clone(CLASSIFIERS[kind]).fit(X.assign(city=in_order).iloc[chosen], Y.iloc[chosen])
    found = clone(CLASSIFIERS[kind]).fit_chunks([(X, Y)], sample_size=SIZE)
    features, labels = numbers(X), Y.to_numpy()
    for j, (before, after) in enumerate(
        zip(alone.model_.forests, found.model_.forests, strict=True)
    ):
        np.testing.assert_array_equal(before.trees.threshold, after.trees.threshold)
        expected = before.counts.copy()
        for row in others.tolist():
            if np.isnan(labels[row, j]):
                continue
            for root in after.trees.roots:
                for node in path(
                    after.trees,
                    root,
                    lambda i, r=row: features[r, i] if i >= 0 else labels[r, -1 - i],
                ):
                    expected[node, int(labels[row, j])] += 1
        np.testing.assert_array_equal(after.counts, expected)


@pytest.mark.parametrize("kind", ["joint", "conservative"])
def test_a_joint_forest_is_that_of_its_sample(kind):
    X, Y, chosen, _ = split(2)
    in_order = X.city.astype(pd.CategoricalDtype(["Bern", "Oslo", "Rome", "Zürich"]))
    X = X.assign(city=in_order)
    found = clone(CLASSIFIERS[kind]).fit_chunks([(X, Y)], sample_size=SIZE)
    same(found, clone(CLASSIFIERS[kind]).fit(X.iloc[chosen], Y.iloc[chosen]), X)
    assert found.model_.row_numbers.tolist() == chosen.tolist()
    assert found.model_.n_training_rows == SIZE


def test_a_label_that_only_other_rows_have():
    X, Y, chosen, _ = split(4, gaps=0.0)
    Y.iloc[chosen, 2] = np.nan
    for kind in ("joint", "chain"):
        with pytest.warns(UserWarning, match="nobody observed z"):
            found = clone(CLASSIFIERS[kind]).fit_chunks([(X, Y)], sample_size=SIZE)
    assert not found.model_.never_observed().any()  # of the chain, which counts all rows
    assert (found.predict_interval(X)[:, 2] != [0, 1]).any()
    Y["z"] = np.nan
    with pytest.warns(UserWarning, match="observed") as told:
        found = clone(CLASSIFIERS["chain"]).fit_chunks([(X, Y)], sample_size=SIZE)
    assert any("never observed in training" in str(one.message) for one in told)


# -- around it ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["joint", "chain", "decision"])
def test_model_files(kind, tmp_path):
    X, Y = frame(5)
    found = clone(CLASSIFIERS[kind]).fit_chunks([(X, Y)], sample_size=SIZE)
    save_model(found, tmp_path / "model")
    same(load_model(tmp_path / "model"), found, X)


def test_explanations_name_rows_by_their_numbers_in_the_data(tmp_path):
    X, Y, chosen, _ = split(6, gaps=0.0)
    found = clone(CLASSIFIERS["decision"]).fit_chunks([(X, Y)], sample_size=SIZE)
    save_model(found, tmp_path / "model")
    for model in (found, load_model(tmp_path / "model")):
        for row in explain(model, X.iloc[:1]).similar:
            assert row.row in chosen
            assert dict(row.labels) == Y.iloc[row.row].to_dict()


def test_sparse_rows_and_arrays():
    X = sparse.random_array((N, 4), density=0.4, random_state=0, format="csr")
    Y = np.random.default_rng(0).integers(0, 2, (N, 2))
    for rows in (X, X.toarray()):
        whole = clone(CLASSIFIERS["joint"]).fit(rows, Y)
        found = clone(CLASSIFIERS["joint"]).fit_chunks([(rows[:9], Y[:9]), (rows[9:], Y[9:])])
        same(found, whole, rows)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda X, Y: (X.drop(columns="old"), Y),
            "'old' is not in all of them, chunk 1 lacks it",
        ),
        (lambda X, Y: (X, Y.assign(x=7)), "chunk 1: Y must hold 0, 1 or missing"),
        (
            lambda X, Y: (X, Y.drop(columns="z")),
            "all chunks of Y must have the same labels .* in chunk 1",
        ),
        (lambda X, Y: (X[:5], Y), "chunk 1: X and Y must have the same rows"),
        (lambda X, Y: (X.assign(size="large"), Y), "holds numbers in chunk 0 and texts in chunk 1"),
    ],
)
def test_a_part_that_does_not_fit_is_named(change, message):
    X, Y = frame(0)
    chunks = [(X[:30], Y[:30]), change(X[30:].copy(), Y[30:].copy())]
    with pytest.raises(ValueError, match=message):
        clone(CLASSIFIERS["joint"]).fit_chunks(chunks)


def test_what_needs_all_rows_says_so():
    X, Y = frame(0)
    with pytest.raises(TypeError, match="needs all rows in memory"):
        CredalChainClassifier(CredalWrapper()).fit_chunks([(X, Y)])
    with pytest.raises(ValueError, match="calibration_folds must be None"):
        JointDecision(CredalChainClassifier()).fit_chunks([(X, Y)])
    chain = CredalChainClassifier(random_state=0)
    JointDecision(chain, calibration_folds=None).fit_chunks([(X, Y)]).predict(X)
    with pytest.raises(ValueError, match="at least one row"):
        CredalJointForest().fit_chunks([(X[:0], Y[:0])])
    with pytest.raises(ValueError, match="sample_size"):
        CredalJointForest().fit_chunks([(X, Y)], sample_size=0)
    signed = Y.fillna(0).astype(int).mul(2).sub(1)
    with pytest.raises(ValueError, match=r"holds -1 and \+1 but no 0"):
        CredalJointForest().fit_chunks([(X, signed)])


def test_an_earlier_sample_is_forgotten():
    X, Y = frame(0)
    forest = clone(CLASSIFIERS["joint"]).fit_chunks([(X, Y)])
    assert not hasattr(forest.fit(X, Y), "learned_from_")
