"""CredalJointForest: fitting, scikit-learn's tools, errors, and why a row got its answers."""

import io
import itertools
import pickle
import re

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from credalchain import (
    CredalChainClassifier,
    CredalJointForest,
    JointDecision,
    KernelPowerset,
    explain,
)
from credalchain.joint.growing import forecast_fit
from joint_twin import Case


def small(n_estimators=8, **params):
    return ExtraTreesRegressor(n_estimators, **{"min_samples_leaf": 2, "bootstrap": True, **params})


def joint_forest(**params):
    return CredalJointForest(**{"forest": small(), "random_state": 0, **params})


def data(n=90, m=3, *, seed=0, missing=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    Y = (X[:, np.arange(m) % 4] + 0.7 * rng.normal(size=(n, m)) > 0).astype(float)
    Y[rng.random(Y.shape) < missing] = np.nan
    return X, Y


def same_answers(left, right, X):
    a, b = left.infer(X), right.infer(X)
    np.testing.assert_array_equal(a.labels, b.labels)
    np.testing.assert_array_equal(a.interval, b.interval)


# -- scikit-learn ------------------------------------------------------------------------------


CHECKED = ExtraTreesRegressor(10, min_samples_leaf=5, bootstrap=True)


def expected_failures(estimator):
    expected = {
        "check_supervised_y_no_nan": "a missing label is legal, and NaN is how people write it"
    }
    if isinstance(estimator, JointDecision):
        expected["check_classifier_multioutput"] = (
            "the likeliest vector need not have the likelier labels"
        )
    return expected


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:never observed")
@parametrize_with_checks(
    [CredalJointForest(CHECKED), JointDecision(joint_forest(forest=CHECKED))],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def fitted():
    X, Y = data()
    return joint_forest().fit(X[:60], Y[:60]), X[60:], Y[60:]


def test_clone_keeps_parameters_and_forgets_the_fit(fitted):
    copy = clone(fitted[0].set_params(forest__max_depth=7))
    assert copy.forest.max_depth == 7
    assert not hasattr(copy, "model_")
    with pytest.raises(NotFittedError):
        copy.predict_partial(fitted[1])


def test_pickle_and_joblib_round_trips(fitted):
    model, X, _ = fitted
    same_answers(model, pickle.loads(pickle.dumps(model)), X)
    blob = io.BytesIO()
    joblib.dump(model, blob)
    same_answers(model, joblib.load(blob), X)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_any_number_of_threads_gives_the_same(missing):
    X, Y = data(300, missing=missing)
    one, two = (joint_forest(n_jobs=n).fit(X, Y) for n in (1, 2))
    assert one.shares_ == two.shares_
    same_answers(one, two, X)
    known = np.where(np.arange(3) == 1, 1, np.full((300, 3), -1))
    np.testing.assert_array_equal(
        one.event_interval(X, [1, -1, 0], known=known),
        two.event_interval(X, [1, -1, 0], known=known),
    )
    a, b = (JointDecision.from_fitted(model).predict_path(X, [0.1, 1]) for model in (one, two))
    np.testing.assert_array_equal(a, b)


def test_fitting_again_with_the_same_seed_gives_the_same():
    X, Y = data()
    same_answers(joint_forest().fit(X, Y), joint_forest().fit(X, Y), X)
    other = joint_forest(random_state=1).fit(X, Y)
    assert (other.infer(X).interval != joint_forest().fit(X, Y).infer(X).interval).any()


@pytest.mark.parametrize("forest", [small(), RandomForestRegressor(8, min_samples_leaf=2)])
def test_bounds_are_the_imprecise_dirichlet_model_in_scikit_learns_leaves(forest):
    X, Y = data()
    model = CredalJointForest(forest, members=(), random_state=5, s=1.7).fit(X, Y)
    seed = np.random.RandomState(5).randint(2**31 - 1)
    plain = clone(forest).set_params(random_state=seed).fit(X.astype(np.float32), Y)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict(X), atol=1e-12)
    lower, upper = np.zeros(Y.shape), np.zeros(Y.shape)
    for tree, drawn in zip(plain.estimators_, plain.estimators_samples_, strict=True):
        leaf = tree.apply(X.astype(np.float32))
        for i in range(len(X)):
            mates = drawn[leaf[drawn] == leaf[i]]
            lower[i] += Y[mates].sum(axis=0) / (len(mates) + 1.7) / 8
            upper[i] += (Y[mates].sum(axis=0) + 1.7) / (len(mates) + 1.7) / 8
    np.testing.assert_allclose(model.infer(X).interval, np.stack([lower, upper], -1), atol=1e-12)


def test_s_is_read_when_predicting_and_opens_labels_only(fitted):
    model, X, _ = fitted
    assert model.nested_
    path = model.predict_path(X, [0.0, 0.3, 2.0, 20.0])
    for more, fewer in itertools.pairwise(path):
        assert ((fewer == -1) | (fewer == more)).all()
    assert (path[0] != -1).mean() > (path[-1] != -1).mean()
    np.testing.assert_array_equal(model.infer(X, s=2.0).labels, path[2])


def test_shares_are_shares(fitted):
    shares = fitted[0].shares_
    assert sum(shares.values()) == pytest.approx(1)
    assert min(shares.values()) >= 0
    assert shares.get("kernel", 0) <= 0.5 + 1e-9
    alone = joint_forest(members=()).fit(*data())
    assert set(alone.shares_) == {"joint", "product"}


class Useless:
    """Weights that are wrong for every row."""

    def fit_vectors(self, X, vector_of, vectors, rng):
        n_vectors = len(vectors)
        wrong = sparse.csr_array(
            (np.ones(len(X)), (np.arange(len(X)), (vector_of + 1) % n_vectors)),
            shape=(len(X), n_vectors),
        )
        return object(), wrong


def test_a_useless_member_is_dropped():
    model = joint_forest(members=[Useless()]).fit(*data())
    assert model.model_.members == []
    assert set(model.shares_) == {"joint", "product"}


def test_members_are_not_used_where_most_rows_have_gaps():
    X, Y = data(missing=0.4)
    assert (np.isnan(Y).any(axis=1)).mean() > 0.5
    assert joint_forest().fit(X, Y).model_.members == []


# -- input of all kinds --------------------------------------------------------------------------


def test_data_frames_text_and_missing_values():
    X, Y = data()
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["colour"] = np.where(X[:, 0] > 0, "red", "blue")
    frame.loc[::7, "colour"] = None
    frame.loc[::5, "b"] = np.nan
    targets = pd.DataFrame(Y, columns=["x", "y", "z"])
    model = joint_forest().fit(frame, targets)
    assert model.feature_names_in_.tolist() == [*"abcd", "colour"]
    assert model.label_names_.tolist() == ["x", "y", "z"]
    new = frame.iloc[:4].copy()
    new["colour"] = ["red", "green", None, "blue"]  # green is unknown
    interval = model.infer(new).interval
    assert ((interval >= 0) & (interval <= 1)).all()
    np.testing.assert_array_equal(interval[1], model.infer(new.assign(colour=None)).interval[1])
    known = pd.DataFrame({"z": [1, 1, 0, 0]})
    assert model.infer(new, known=known).labels[:, 2].tolist() == [1, 1, 0, 0]


def test_sparse_input_is_dense_input():
    X, Y = data()
    X = np.maximum(X, 0)
    thin = joint_forest().fit(sparse.csr_array(X), Y)
    same_answers(thin, joint_forest().fit(X, Y), X)
    np.testing.assert_array_equal(thin.predict(sparse.coo_array(X)), thin.predict(X))


def test_a_vector_with_two_class_names():
    X, Y = data()
    y = np.where(Y[:, 0] == 1, "yes", "no")
    model = joint_forest().fit(X, y)
    assert model.classes_.tolist() == ["no", "yes"]
    assert set(model.predict(X)) == {"no", "yes"}
    assert model.predict_proba(X).shape == (90, 2)
    assert model.predict_partial(X).shape == (90, 1)
    assert 0.65 < model.score(X, y) <= 1


def test_one_label():
    X, Y = data(m=1)
    model = joint_forest().fit(X, Y)
    interval = model.infer(X).interval[:, 0]
    np.testing.assert_allclose(model.event_interval(X, [1]), interval, atol=1e-12)
    assert JointDecision.from_fitted(model, reward=9).predict_partial(X).shape == (90, 1)


def test_many_labels_and_no_vector_twice():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 3)), rng.integers(0, 2, size=(40, 200))
    model = joint_forest().fit(X, Y)
    assert set(model.shares_) == {"joint", "product"}  # nothing to learn for a kernel
    labels = JointDecision.from_fitted(model).predict_path(X, [0.0, 1.0, 1e9])
    assert (labels[-1] != -1).all()
    interval = model.event_interval(X, Y)
    assert (interval[:, 0] > 0).any()
    assert (interval[:, 0] <= interval[:, 1]).all()


def test_rows_that_are_all_alike():
    Y = np.tile([[1, 0], [1, 1]], (10, 1))
    model = joint_forest(s=1.0).fit(np.zeros((20, 2)), Y)
    lower, upper = model.infer(np.zeros((1, 2))).interval[0].T
    np.testing.assert_allclose([lower[0], upper[0]], [20 / 21, 1], atol=1e-12)
    assert lower[1] < 0.5 < upper[1] + 0.2
    assert JointDecision.from_fitted(model, reward=0.0).predict_partial([[0, 0]])[0, 0] == 1


@pytest.mark.parametrize("m", [1, 3])
def test_two_rows(m):
    X, Y = np.array([[0.0], [1.0]]), np.array([[0] * m, [1] * m])
    model = joint_forest(forest=small(min_samples_leaf=1)).fit(X, Y)
    interval = model.infer(X).interval
    assert (interval[0, :, 0] < interval[1, :, 0]).all()
    assert JointDecision.from_fitted(model, reward=0.5).predict(X).tolist() == Y.tolist()


# -- missing labels ------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [False, True])
def test_conservative_contains_ignorable(known):
    X, Y = data(missing=0.2)
    rng = np.random.default_rng(0)
    told = rng.integers(-1, 2, size=Y.shape) if known else None
    either, filled = (
        joint_forest(missing=reading).fit(X, Y) for reading in ("conservative", "ignorable")
    )
    for s in (0.1, 1.0, 4.0):
        wide = either.infer(X, s=s, known=told).interval
        narrow = filled.infer(X, s=s, known=told).interval
        assert (wide[..., 0] <= narrow[..., 0] + 1e-12).all()
        assert (wide[..., 1] >= narrow[..., 1] - 1e-12).all()
        assert (wide[..., 1] > wide[..., 0]).any()
        events = np.where(np.isnan(Y), -1, Y)
        wide = either.event_interval(X, events, s=s, known=told)
        narrow = filled.event_interval(X, events, s=s, known=told)
        assert (wide[:, 0] <= narrow[:, 0] + 1e-12).all()
        assert (wide[:, 1] >= narrow[:, 1] - 1e-12).all()


def test_without_gaps_both_readings_are_the_same():
    X, Y = data()
    one, two = (joint_forest(missing=how).fit(X, Y) for how in ("conservative", "ignorable"))
    same_answers(one, two, X)


@pytest.mark.parametrize("reading", ["conservative", "ignorable"])
def test_labels_never_observed_stay_open(reading):
    X, Y = data()
    Y[:, 1] = np.nan
    with pytest.warns(UserWarning, match="never observed in training.*: label1"):
        model = joint_forest(missing=reading, s=0.1).fit(X, Y)
    prediction = model.infer(X)
    assert (prediction.interval[:, 1] == [0, 1]).all()
    assert (prediction.labels[:, 1] == -1).all()
    assert (prediction.labels[:, [0, 2]] != -1).any()
    assert (model.predict(X)[:, 1] == 0).all()
    for bounds in ("precise", "credal"):
        decision = JointDecision.from_fitted(model, bounds=bounds)
        labels = decision.predict_path(X, [0.0, 1e9])
        assert (labels[:, :, 1] == -1).all()
        assert (labels[1][:, [0, 2]] != -1).all()
        assert (decision.predict(X)[:, 1] == 0).all()
        known = np.where(np.arange(3) == 1, 1, np.full(Y.shape, -1))
        assert (decision.predict_path(X, [0.0], known=known)[0][:, 1] == 1).all()


def test_labels_left_open_are_not_paid_for():
    """A label of probability one half, and two that nobody has seen: .5 + 1.2 / 3 is below 1."""
    Y = np.c_[[1.0, 0.0] * 10, [np.nan] * 20, [np.nan] * 20]
    leaf = RandomForestRegressor(200, max_depth=1)
    decision = JointDecision(CredalJointForest(leaf, random_state=0), reward=1.2)
    with pytest.warns(UserWarning, match="never observed"):
        decision.fit(np.zeros((20, 1)), Y)
    assert decision.predict_path([[0.0]], [1.2, 2.0])[:, 0].tolist() in (
        [[-1, -1, -1], [0, -1, -1]],
        [[-1, -1, -1], [1, -1, -1]],
    )


# -- a fitted forest against literal twins -------------------------------------------------------


def case_of(model, x, Y, s):
    """The twin of what a fitted forest of a few trees says about one row."""
    inner = model.model_
    encoded = inner.encode(x[None])
    held, trees = inner.leaves, []
    for node in inner.leaves_of(encoded)[0]:
        at = slice(held.indptr[node], held.indptr[node + 1])
        trees.append(dict(zip(held.row[at].tolist(), held.times[at].tolist(), strict=True)))
    rows = [[None if np.isnan(y) else int(y) for y in row] for row in Y]
    fill = {
        (int(i), int(j)): held.label_mass[1, held.vector_of[i], j]
        for i, j in np.argwhere(np.isnan(Y))
    }
    others = {}
    for share, member in zip(inner.shares, inner.members, strict=True):
        for u, weight in enumerate(member.weights(encoded).toarray()[0].tolist()):
            if weight:
                others[int(np.flatnonzero(held.vector_of == u)[0])] = share * weight
    conservative = model.missing == "conservative"
    return Case(rows, trees, s, held.joint, held.product, others, fill, conservative)


@pytest.mark.parametrize("reading", ["ignorable", "conservative"])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_bounds_of_a_fitted_forest_are_those_of_the_extreme_points(reading, missing):
    """With values and labels that are missing, known labels, and a kernel beside the forest.

    The kernel's weights are in 32 bits, and not the same for one row and for several.
    """
    rng = np.random.default_rng(1)
    X, Y = data(40, missing=missing)
    X[rng.random(X.shape) < 0.2] = np.nan
    model = joint_forest(forest=small(2, min_samples_leaf=3), missing=reading).fit(X[:32], Y[:32])
    leaves = model.model_.leaves._replace(joint=0.25, product=0.25)
    model.model_.leaves, model.model_.shares = leaves, [0.5] * len(model.model_.members)
    if not model.model_.members:
        model.model_.leaves = leaves._replace(joint=0.75)
    new = X[32:]
    known = rng.choice([-1, -1, 0, 1], size=(8, 3))
    known[rng.random(8) < 0.3] = -1
    for s in (0.0, 0.7):
        found = model.infer(new, s=s, known=known).interval
        events = np.where(known == -1, rng.integers(0, 2, size=(8, 3)), -1)
        bounds = model.event_interval(new, events, s=s, known=known)
        for i, x in enumerate(new):
            case = case_of(model, x, Y[:32], s)
            for j in np.flatnonzero(known[i] == -1):
                one = np.where(np.arange(3) == j, 1, -1)
                expected = np.array(case.given(one, known[i]), float)
                np.testing.assert_allclose(found[i, j], expected, atol=1e-6)
            if (known[i] == -1).any():
                expected = np.array(case.given(events[i], known[i]), float)
                np.testing.assert_allclose(bounds[i], expected, atol=1e-6)


class Weights:
    """What a fitted forest says about one row at s, in plain loops: for complete labels."""

    def __init__(self, model, x, Y, s):
        inner = model.model_
        held, encoded = inner.leaves, inner.encode(x[None])
        self.joint, self.product = held.joint, held.product
        self.by_vector, self.other, self.trees = {}, {}, []
        nodes, rest = inner.leaves_of(encoded)[0], 0.0
        for node in nodes:
            at = range(held.indptr[node], held.indptr[node + 1])
            n = sum(int(held.times[k]) for k in at) + s
            rest += s / n / len(nodes)
            ones = np.zeros((2, Y.shape[1]))
            for k in at:
                y, weight = Y[held.row[k]], held.times[k] / n
                ones += weight * np.array([y == 0, y == 1])
                v = tuple(y.tolist())
                self.by_vector[v] = self.by_vector.get(v, 0) + weight / len(nodes)
            self.trees.append(ones)
        for share, member in zip(inner.shares, inner.members, strict=True):
            for u, weight in enumerate(member.weights(encoded).toarray()[0]):
                v = tuple(held.label_mass[1, u].tolist())
                self.other[v] = self.other.get(v, 0) + share * weight * (1 - rest)

    def right(self, answers, labels):
        """Lower probability that these answers to these labels are all right."""
        agree = lambda v: all(v[j] == answers[j] for j in labels)  # noqa: E731
        p = self.joint * sum(w for v, w in self.by_vector.items() if agree(v))
        p += sum(w for v, w in self.other.items() if agree(v))
        products = [np.prod([tree[answers[j], j] for j in labels]) for tree in self.trees]
        return p + self.product * np.mean(products)


@pytest.mark.parametrize("bounds", ["precise", "credal"])
def test_decisions_of_a_fitted_forest_against_plain_loops(bounds):
    """The likeliest of all vectors of six labels, and its best prefix."""
    rng = np.random.default_rng(0)
    X, Y = data(120, 6)
    X[rng.random(X.shape) < 0.1] = np.nan
    model = joint_forest(forest=small(10, min_samples_leaf=4)).fit(X[:100], Y[:100])
    model.model_.leaves = model.model_.leaves._replace(joint=0.25, product=0.25)
    model.model_.shares = [0.5]
    decision = JointDecision.from_fitted(model, bounds=bounds)
    rewards = [0.0, 0.2, 0.5, 1.0, 2.0, 1e9]
    path = decision.predict_path(X[100:], rewards)
    for i, x in enumerate(X[100:]):
        weights = Weights(model, x, Y[:100], model.s if bounds == "credal" else 0.0)
        single = np.array([[weights.right({j: y}, [j]) for y in (0, 1)] for j in range(6)])
        answers = path[-1, i]
        best = max(weights.right(v, range(6)) for v in itertools.product((0, 1), repeat=6))
        assert weights.right(answers, range(6)) >= best - 1e-12
        order = np.argsort(-single[np.arange(6), answers], kind="stable")
        right = [1.0] + [weights.right(answers, order[:k]) for k in range(1, 7)]
        for reward, labels in zip(rewards, path[:, i], strict=True):
            answered = np.flatnonzero(labels != -1)
            assert (labels[answered] == answers[answered]).all()
            found = weights.right(answers, answered) if len(answered) else 1.0
            worth = found + reward * len(answered) / 6
            best = max(p + reward * k / 6 for k, p in enumerate(right))
            assert worth == pytest.approx(best, rel=1e-12, abs=1e-12)


# -- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"forest": small(bootstrap=False)}, ValueError, "forest must have bootstrap=True"),
        ({"forest": ExtraTreesClassifier()}, ValueError, "forest must be None, an ExtraTreesReg"),
        ({"forest": "trees"}, ValueError, "forest must be None"),
        ({"missing": "ignore"}, ValueError, "missing must be one of 'ignorable', 'conservative'"),
        ({"members": 3}, TypeError, "members must be None, a list or a tuple, got 3"),
        ({"members": [ExtraTreesClassifier()]}, TypeError, "members must have fit_vectors"),
        (
            {"members": [KernelPowerset(ridge=-1)]},
            ValueError,
            "ridge must be None or a positive number",
        ),
        ({"s": -1}, ValueError, "s must be a number"),
        ({"threshold": 1.0}, ValueError, "threshold"),
        ({"verbose": -1}, ValueError, "verbose must be a whole number"),
        ({"n_jobs": "two"}, (ValueError, TypeError), "n_jobs"),
    ],
)
def test_wrong_parameters_are_named(params, error, message):
    with pytest.raises(error, match=message):
        joint_forest(**params).fit(*data(20))


def test_wrong_events_and_strategies_are_named(fitted):
    model, X, _ = fitted
    for event, message in [
        ([1, 0], r"event must have shape \(3,\) or \(30, 3\)"),
        (np.zeros((2, 3)), r"event must .* got \(2, 3\)"),
        ([1, 2, 0], "event"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.event_interval(X, event)
    with pytest.raises(ValueError, match="strategy must be None"):
        model.infer(X, strategy="branching")
    with pytest.raises(ValueError, match="known must have shape"):
        model.event_interval(X, [1, 0, -1], known=[[1, 0, 0]])


# -- why -----------------------------------------------------------------------------------------


def model_share(model):
    """Of the forest, members left out."""
    return model.shares_["joint"] + model.shares_["product"]


def is_true(words, row):
    """Whether a condition such as "0.3 < feature2 <= 0.5" holds of a row of numbers."""
    found = re.fullmatch(r"(?:(\S+) < )?feature(\d+)(?: <= (\S+))?", words)
    low, column, high = found.groups()
    value, near = row[int(column)], 1e-3 * (1 + abs(row[int(column)]))  # four digits are shown
    return (low is None or float(low) - near < value) and (
        high is None or value <= float(high) + near
    )


@pytest.mark.parametrize("decide", [False, True])
def test_similar_rows_share_leaves_and_conditions(decide):
    X, Y = data()
    model = joint_forest().fit(X[:60], Y[:60])
    leaves = model.model_.leaves_of(X.astype(np.float32))
    rows, new = leaves[:60], leaves[60:]
    held = model.model_.leaves
    classifier = JointDecision.from_fitted(model) if decide else model
    for i in range(3):
        weights = np.zeros(60)  # literally: how often each row is in the leaf, as a share
        for t, node in enumerate(new[i]):
            at = slice(held.indptr[node], held.indptr[node + 1])
            assert (rows[held.row[at], t] == node).all()
            weights[held.row[at]] += held.times[at] / held.times[at].sum() / len(new[i])
        weights *= model_share(model)
        similar = explain(classifier, X[60 + i]).similar
        assert len(similar) == min(10, np.count_nonzero(weights))
        found = [one.weight for one in similar]
        np.testing.assert_allclose(found, np.sort(weights)[::-1][: len(found)], atol=1e-12)
        for one in similar:
            assert one.weight == pytest.approx(weights[one.row])
            assert (rows[one.row] == new[i]).any()
            assert one.labels == tuple((f"label{j}", int(y)) for j, y in enumerate(Y[one.row]))
            assert one.in_common
            for words in one.in_common:
                assert is_true(words, X[one.row]), words
                assert is_true(words, X[60 + i]), words
            assert str(one).startswith(f"training row {one.row}, weight {one.weight:.3f}: ")


def test_known_labels_exclude_rows_that_contradict_them():
    X, Y = data()
    model = joint_forest().fit(X, Y)
    for y in (0, 1):
        similar = explain(model, X[0], known=[-1, y, -1]).similar
        assert similar
        assert all(dict(one.labels)["label1"] == y for one in similar)
        shares = model.model_.row_weights(X[:1].astype(np.float32), s=0.0)[0].toarray()[0]
        agrees = Y[:, 1] == y
        for one in similar:
            share = shares[one.row] / shares[agrees].sum()
            assert one.weight == pytest.approx(model_share(model) * share)


@pytest.mark.parametrize("reading", ["conservative", "ignorable"])
def test_missing_labels_are_not_shown_as_observed(reading):
    X, Y = data(missing=0.2)
    model = joint_forest(missing=reading).fit(X, Y)
    for i in range(20):
        for one in explain(model, X[i]).similar:
            observed = {f"label{j}": y for j, y in enumerate(Y[one.row]) if not np.isnan(y)}
            assert dict(one.labels) == observed


def table_with_words():
    """The label is the colour, and nothing else can be split on."""
    colour = np.array(["blue", "green", "red", "yellow"] * 10)
    Y = np.c_[np.isin(colour, ["blue", "green"]), np.isin(colour, ["blue", "green"])].astype(int)
    return pd.DataFrame({"colour": colour}), Y


def test_conditions_on_text_are_in_words():
    frame, Y = table_with_words()
    forest = small(5, max_depth=1, max_features=None)
    model = joint_forest(forest=forest).fit(frame, Y)
    shown = {words for one in explain(model, frame.iloc[:1]).similar for words in one.in_common}
    assert shown
    for words in shown:
        assert words.startswith("colour is ")
        assert "blue" in words.removeprefix("colour is ").split(" or ")
    for one in explain(model, frame.iloc[:1]).similar:
        for words in one.in_common:
            assert frame.colour[one.row] in words.removeprefix("colour is ").split(" or ")


def test_values_missing_in_both_rows_are_called_so():
    # scikit-learn 1.6 does not split a column in which all that is observed is one value
    X = np.array([[np.nan]] * 10 + [[float(value)] for value in range(10)])
    Y = np.repeat([[1, 1], [0, 0]], 10, axis=0)
    model = joint_forest(forest=RandomForestRegressor(5)).fit(X, Y)
    similar = explain(model, [[np.nan]]).similar
    assert similar
    for one in similar:
        assert one.row < 10
        assert set(one.in_common) <= {"feature0 is missing"}
    assert any(one.in_common for one in similar)


def test_what_is_missing_in_one_row_only_is_not_said_of_both():
    rng = np.random.default_rng(0)
    X, Y = data()
    X[rng.random(X.shape) < 0.3] = np.nan
    model = joint_forest().fit(X, Y)
    for i in range(10):
        for one in explain(model, X[i]).similar:
            for words in one.in_common:
                column = int(re.search(r"feature(\d+)", words)[1])
                assert np.isnan(X[one.row, column]) == np.isnan(X[i, column]), words


def test_a_decision_is_explained_in_the_order_in_which_labels_were_taken():
    """P(1) is .6, .55 and .15, the likeliest vector 0, 1, 0: its answers have .4, .55 and .85."""
    rows = [[0, 1, 0], [1, 0, 0], [1, 0, 1], [1, 1, 0]]
    model = Case(rows, [{0: 8, 1: 6, 2: 3, 3: 3}], 0.0).forest()
    decision = JointDecision.from_fitted(model, reward=9.0)
    assert decision.predict_partial([[0.0]]).tolist() == [[0, 1, 0]]
    steps = explain(decision, [0.0]).steps
    assert [step.label for step in steps] == ["label2", "label1", "label0"]


def test_chains_have_no_similar_rows():
    X, Y = data()
    assert explain(CredalChainClassifier().fit(X, Y), X[0]).similar == ()


def test_an_answer_to_a_label_that_was_never_observed_says_nothing_about_others():
    X, Y = data()
    Y = Y.astype(float)
    Y[:, 1] = np.nan
    with pytest.warns(UserWarning, match="never observed"):
        model = joint_forest().fit(X, Y)
    known = np.full((len(X), Y.shape[1]), -1)
    known[:, 1] = 1
    others = [j for j in range(Y.shape[1]) if j != 1]
    told, untold = model.infer(X, known=known), model.infer(X)
    np.testing.assert_array_equal(told.interval[:, others], untold.interval[:, others])
    assert (told.labels[:, 1] == 1).all()
    decision = JointDecision.from_fitted(model)
    labels = decision.predict_path(X, [0.0, 5.0], known=known)
    assert (labels[:, :, 1] == 1).all()
    assert (labels[1][:, others] != -1).all()


class Wrong(KernelPowerset):
    """A member with something wrong about its weights."""

    def __init__(self, damage=None):
        super().__init__()
        self.damage = damage

    def fit_vectors(self, X, vector_of, vectors, rng):
        fitted, held_out = super().fit_vectors(X, vector_of, vectors, rng)
        return fitted, self.damage(held_out.toarray())


@pytest.mark.parametrize(
    "damage",
    [lambda w: w[:3], lambda w: 50 * w, lambda w: w - 0.5, lambda w: w * np.nan],
    ids=["few rows", "too much", "negative", "no numbers"],
)
def test_members_that_give_no_probabilities_are_refused(damage):
    X, Y = data()
    with pytest.raises(ValueError, match="Wrong gave an array of shape"):
        joint_forest(members=[Wrong(damage)]).fit(X, Y)
    joint_forest(members=[Wrong(np.asarray)]).fit(X, Y)  # dense is fine


def test_events_and_known_labels_of_data_frames_go_by_name():
    X, Y = data()
    frame = pd.DataFrame(Y, columns=["p", "q", "r"])
    model = joint_forest().fit(X, frame)
    named = pd.DataFrame({"r": [1], "p": [0]})
    np.testing.assert_array_equal(
        model.event_interval(X, named), model.event_interval(X, [0, -1, 1])
    )
    steps = {step.label: step for step in explain(model, X[0], known=named).steps}
    assert steps["r"].known
    assert steps["p"].answer == 0
    assert not steps["q"].known


def test_names_of_rows_are_nothing_to_members():
    """A text column with a value for every row does not become a column for every row."""
    X, Y = data(n=150)
    table = pd.DataFrame(X, columns=list("abcd")).assign(id=[f"row {i}" for i in range(len(X))])
    with pytest.warns(UserWarning, match="column 'id' of X"):
        model = joint_forest().fit(table, Y)
    assert model.model_.members[0].centres.shape[1] <= X.shape[1] + 1


def test_large_tables_are_learned_from_drawn_rows(monkeypatch):
    """Limits lowered: what is said, what is kept, and that the answers are still good."""
    monkeypatch.setattr("credalchain.joint.growing.ROWS_OF_A_TREE", 150)
    monkeypatch.setattr("credalchain.joint.forest.ROWS_OF_A_TREE", 150)
    monkeypatch.setattr("credalchain.joint.forest.MAX_KEPT_ROWS", 100)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    Y = (X + 0.1 * rng.normal(size=X.shape) > 0).astype(int)
    forest = CredalJointForest(random_state=0).fit(X, Y)
    assert forest.learned_from_ == (
        "each tree grown on 150 rows, drawn from 600; 100 rows kept for explanations"
    )
    model = forest.model_
    first, stop = model.leaves.indptr[:-1], model.leaves.indptr[1:]
    rows = np.add.reduceat(np.append(model.leaves.times, 0), first)[stop > first]
    assert rows.sum() == 150 * len(model.trees.roots)
    assert model.n_training_rows == 100
    assert (forest.predict(X) == Y).mean() > 0.9
    for similar in explain(JointDecision.from_fitted(forest), X[:1]).similar:
        assert list(dict(similar.labels).values()) == Y[similar.row].tolist()
    few = CredalJointForest(random_state=0).fit(X[:90], Y[:90])
    assert not hasattr(few, "learned_from_")


def test_forecasts_grow_with_the_table():
    small, large = forecast_fit(5000, 20, 8, 2), forecast_fit(100_000, 20, 8, 2)
    assert all(a < b for a, b in zip(small, large, strict=True))
    assert forecast_fit(5000, 20, 8, 1).seconds == 2 * small.seconds
    most = forecast_fit(10**7, 20, 8, 2)
    assert most.file < 5e7
    assert most.seconds < 2 * large.seconds
