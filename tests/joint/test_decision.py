"""Which labels of a row to answer, decided together."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold

from credalchain import (
    CredalChainClassifier,
    CredalChainEnsemble,
    CredalForest,
    CredalJointForest,
    JointDecision,
    LocalChainModel,
    NaiveCredal,
    next_questions,
    partial_labels,
)
from credalchain.joint.decision import fit_exponent, scale_log_odds
from credalchain.joint.rules import default_row_reward as default_reward
from credalchain.labels import Targets


def data(n=200, m=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Y = (X[:, np.arange(m) % 3] + 0.9 * rng.normal(size=(n, m)) > 0).astype(np.int8)
    return X, Y


@pytest.fixture(scope="module")
def fitted():
    X, Y = data()
    ensemble = CredalChainEnsemble(n_chains=3, s=1.0, random_state=0)
    return JointDecision(ensemble, calibration_folds=None).fit(X[:150], Y[:150]), X[150:], Y[150:]


class Told:
    """Probabilities that are given, in place of a fitted classifier."""

    def __init__(self, p, n_labels=4):
        self.p = np.asarray(p, dtype=float)
        self.model_ = self
        self.targets_ = Targets.of_labels(n_labels)
        self.classes_ = self.targets_.classes

    def never_observed(self):
        return np.zeros(self.targets_.n_labels, dtype=bool)

    def label_proba(self, X, known):
        assert known is None
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
    decision = JointDecision.from_fitted(Told([p]))
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
    credal = JointDecision.from_fitted(model.estimator_, bounds="credal")
    interval = model.estimator_.infer(X).interval
    np.testing.assert_array_equal(credal.infer(X).interval, interval)
    more_cautious = (credal.predict_path(X, [0.5])[0] == -1).mean()
    assert more_cautious >= (model.predict_path(X, [0.5])[0] == -1).mean()


class Wide:
    """Bounds [.01, .95] for a single label."""

    def bounds(self, X, j, history, *, s):
        return np.full(len(X), 0.01), np.full(len(X), 0.95)


@pytest.mark.parametrize("exponent", [1.0, 5.0, 15.0, 20.0])
def test_a_large_exponent_keeps_the_likelier_answer(exponent):
    """1 - upper = .05 is more than lower = .01, however both are scale_log_odds."""
    chain = CredalChainClassifier.from_model(LocalChainModel(Wide(), 1), n_features=1)
    decision = JointDecision.from_fitted(chain, reward=5.0, bounds="credal")
    decision.exponent_ = exponent
    prediction = decision.infer([[0.0]])
    assert prediction.labels.tolist() == [[0]]
    assert prediction.interval[0, 0, 0] <= prediction.interval[0, 0, 1]


def worth(interval, labels, reward):
    """P(all answers are right), at least and with independent labels, plus the reward."""
    answered = labels != -1
    sure = np.where(labels == 1, interval[:, 0], 1 - interval[:, 1])[answered]
    return np.prod(sure) + reward * answered.sum() / len(labels)


def most_worth(interval, known, reward):
    """Over all sets of labels and all answers; a label without any evidence is no choice."""
    vacuous = (interval[:, 0] == 0) & (interval[:, 1] == 1)
    options = [
        [k] if k != -1 else [-1] if empty else [-1, 0, 1]
        for k, empty in zip(known, vacuous, strict=True)
    ]
    return max(worth(interval, np.array(labels), reward) for labels in itertools.product(*options))


NAIVE = CredalChainClassifier(NaiveCredal(epsilon=0.0), s=2.0, random_state=0)
FORESTS = CredalChainEnsemble(
    CredalForest(ExtraTreesClassifier(n_estimators=5)), n_chains=3, random_state=0
)


@pytest.mark.parametrize(
    ("estimator", "bounds"),
    [
        pytest.param(FORESTS, "precise", id="forests"),
        pytest.param(FORESTS, "credal", id="credal forests"),
        pytest.param(NAIVE, "credal", id="naive without epsilon"),
    ],
)
def test_the_whole_way_against_all_sets_of_answers(estimator, bounds):
    """With labels that are known, were never observed, or have vacuous bounds."""
    rng = np.random.default_rng(0)
    X, Y = data(n=60, m=5)
    Y = Y.astype(float)
    Y[:, 2] = np.nan
    new = X[40:]
    known = np.where(rng.random((20, 5)) < 0.15, rng.integers(0, 2, (20, 5)), -1)
    decision = JointDecision(estimator, bounds=bounds, calibration_folds=2, random_state=0)
    with pytest.warns(UserWarning, match="never observed"):
        decision.fit(X[:40], Y[:40])
    rewards = [0.0, 0.4, 1.0, 1.2, 3.0]
    path = decision.predict_path(new, rewards, known=known)
    for reward, labels in zip(rewards, path, strict=True):
        prediction = decision.infer(new, reward=reward, known=known)
        np.testing.assert_array_equal(prediction.labels, labels)
        for row in range(len(new)):
            interval = prediction.interval[row]
            best = most_worth(interval, known[row], reward)
            assert worth(interval, labels[row], reward) == pytest.approx(best, abs=1e-12)
        assert (labels[known != -1] == known[known != -1]).all()
        assert (labels[:, 2][known[:, 2] == -1] == -1).all()


def test_labels_left_open_are_not_paid_for():
    """One label of probability one half, and two that nobody has seen."""
    Y = np.c_[[1.0] * 10 + [0.0] * 10, [np.nan] * 20, [np.nan] * 20]
    decision = JointDecision(CredalChainClassifier(), reward=1.2, calibration_folds=None)
    with pytest.warns(UserWarning, match="never observed"):
        decision.fit(np.zeros((20, 1)), Y)
    assert decision.predict_partial([[0.0]]).tolist() == [[-1, -1, -1]]


# -- how far probabilities can be believed -----------------------------------------------------


def log_loss(p, y, exponent):
    """Literally: odds to a power, then the mean of minus the logarithm of the truth's share."""
    odds = (p / (1 - p)) ** exponent
    q = odds / (1 + odds)
    return -np.mean(np.where(y == 1, np.log(q), np.log(1 - q)))


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_exponent_has_the_least_log_loss(power):
    rng = np.random.default_rng(0)
    true = rng.uniform(0.1, 0.9, size=(4000, 2))
    y = (rng.random(true.shape) < true).astype(np.int8)
    told = scale_log_odds(true, 1 / power)
    found = fit_exponent(told, y)
    grid = np.exp(np.linspace(-2, 2, 401))
    literal = grid[np.argmin([log_loss(told, y, exponent) for exponent in grid])]
    assert found == pytest.approx(literal, rel=0.02)
    assert found == pytest.approx(power, rel=0.1)
    y[:, 1] = -1  # missing: says nothing
    alone = fit_exponent(told[:, :1], y[:, :1])
    assert fit_exponent(told, y) == pytest.approx(alone, rel=1e-9)


def test_nothing_to_learn_an_exponent_from():
    assert fit_exponent(np.array([0.3]), np.array([-1])) == 1
    assert 0 < fit_exponent(np.array([0.0, 1.0]), np.array([1, 0])) < 1  # sure and wrong
    assert fit_exponent(np.array([0.4, 0.6]), np.array([0, 1])) > 1


def test_the_exponent_comes_from_rows_not_trained_on():
    X, Y = data()
    chain = CredalChainClassifier(order="given")
    decision = JointDecision(chain, calibration_folds=4).fit(X, Y)
    p = np.empty(Y.shape)
    for train, test in KFold(4, shuffle=True, random_state=0).split(X):
        p[test] = clone(chain).fit(X[train], Y[train]).predict_proba(X[test])
    assert decision.exponent_ == fit_exponent(p, Y)
    np.testing.assert_array_equal(
        decision.predict_path(X, [1e9])[0], decision.estimator_.predict(X)
    )


def test_labels_that_are_rare_or_missing_do_not_stop_it():
    X, Y = data()
    gaps = Y.astype(float)
    gaps[5:, 3] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        decision = JointDecision(CredalChainClassifier(order="given")).fit(X, gaps)
    assert decision.exponent_ > 0
    tiny = JointDecision(CredalChainClassifier()).fit(X[:1], Y[:1])
    assert tiny.exponent_ == 1


def test_known_labels(fitted):
    model, X, _ = fitted
    known = np.full((len(X), 4), -1)
    known[:, 2] = 1
    labels = model.predict_path(X, [0.0, 0.5], known=known)
    assert (labels[:, :, 2] == 1).all()  # answered even where nothing else is
    bounds = JointDecision.from_fitted(model.estimator_, bounds="credal")
    assert (bounds.predict_partial(X, known=known)[:, 2] == 1).all()
    with pytest.raises(ValueError, match="known must have shape"):
        model.predict_partial(X, known=known[:, :2])


@pytest.mark.parametrize("options", [{}, {"bounds": "credal"}])
def test_labels_never_observed_stay_open_unless_known(options):
    X, Y = data()
    gone = Y.astype(float)
    gone[:, 2] = np.nan
    with pytest.warns(UserWarning, match="never observed"):
        ensemble = CredalChainEnsemble(n_chains=2, random_state=0).fit(X, gone)
    decision = JointDecision.from_fitted(ensemble, random_state=0, **options)
    prediction = decision.infer(X, reward=1e9)
    assert (prediction.labels[:, 2] == -1).all()
    assert (prediction.interval[:, 2] == [0, 1]).all()
    known = np.full(Y.shape, -1)
    known[:, 2] = 1
    assert (decision.predict_path(X, [0.0], known=known)[0][:, 2] == 1).all()


def test_sparse_input_of_any_format():
    X, Y = data()
    decision = JointDecision(CredalChainClassifier(), random_state=0)
    thin = decision.fit(sparse.coo_matrix(np.maximum(X, 0)), Y)
    assert thin.predict_partial(sparse.coo_matrix(X)).shape == Y.shape


def test_what_is_no_classifier_of_ours():
    X, Y = data()
    for wrong in (ExtraTreesClassifier, ExtraTreesRegressor(), "scores", 3):
        with pytest.raises(TypeError, match="estimator must be None, an instance of a classifier"):
            JointDecision(wrong).fit(X, Y)
    with pytest.raises(NotFittedError):
        JointDecision().predict_partial([[0.0]])
    with pytest.raises(NotFittedError):
        next_questions(JointDecision(), [[0.0]])
    with pytest.raises(NotFittedError):
        JointDecision().read_labels(Y)
    with pytest.raises(ValueError, match="values must be several rewards, got 0.3"):
        JointDecision(CredalChainClassifier()).fit(X, Y).predict_path(X, 0.3)


def test_the_default_is_a_joint_forest():
    X, Y = data(60, 2)
    model = JointDecision(random_state=0).fit(X, Y)
    assert isinstance(model.estimator_, CredalJointForest)
    assert model.exponent_ == 1  # it learns out of bag how far it can be believed
    again = JointDecision(random_state=0, n_jobs=2).fit(X, Y)
    np.testing.assert_array_equal(again.predict_partial(X), model.predict_partial(X))
    assert clone(model).get_params()["estimator"] is None


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
        ({"joint": "exact"}, "joint must be one of 'auto', 'independent'"),
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


@pytest.mark.parametrize("n_labels", [1, 2, 3, 6, 14])
def test_the_default_reward_leaves_coin_tosses_open(n_labels):
    """Answering k tosses is worth 2**-k + reward k / m: most at one of the ends."""
    m, right = n_labels, 0.5 ** np.arange(n_labels + 1)
    worth = right + default_reward(m) * np.arange(m + 1) / m
    assert worth.argmax() == 0
    assert (right + (1 - 0.5**m) * np.arange(m + 1) / m).max() == pytest.approx(1.0)


def test_the_default_reward_is_that_of_the_number_of_labels():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    decision = JointDecision(CredalChainClassifier()).fit(X, (X > 0).astype(int))
    assert decision.reward is None
    assert decision.caution_ == default_reward(2) == pytest.approx(0.675)
    expected = decision.predict_path(X, [default_reward(2)])[0]
    np.testing.assert_array_equal(decision.predict_partial(X), expected)
    np.testing.assert_array_equal(decision.infer(X).labels, expected)
    assert decision.set_params(reward=0.1).caution_ == 0.1
