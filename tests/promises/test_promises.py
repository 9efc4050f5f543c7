"""Promises are kept: by theory where it is exact, by simulation where the truth is known."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import BaseEstimator

from credalchain import CredalChainClassifier, CredalJointForest, JointDecision, PromisedClassifier
from credalchain.labels import as_labels
from credalchain.promises.risks import RISKS
from credalchain.promises.statistics import (
    conformal_bound,
    evidence_against,
    fewest_rows,
    hoeffding_bentkus_p_value,
    p_value,
)

M = 4


class Score(BaseEstimator):
    """Answers a label if its score is far enough from 0; wrong as often as scores are small."""

    caution_parameter = "s"
    larger_is_more_cautious = True
    nested_ = True
    classes_ = np.tile([0, 1], (M, 1))

    def fit(self, X, Y):
        raise AssertionError("nothing to fit")

    def predict_path(self, X, values):
        return np.array([np.where(np.abs(X) > s, X > 0, -1) for s in values], dtype=np.int8)

    def read_labels(self, Y):
        return as_labels(Y, require_zero=False)

    def __sklearn_is_fitted__(self):
        return True


def draw(rng, n):
    """Scores, and labels that agree with them the more the larger they are."""
    X = rng.normal(size=(n, M))
    right = rng.random(X.shape) < 1 / (1 + np.exp(-2.5 * np.abs(X)))
    return X, np.where(right, X > 0, X <= 0).astype(np.int8)


POPULATION = draw(np.random.default_rng(99), 100_000)


def true_risk(name, promised):
    """In very many rows; a promise that answers nothing has no risk."""
    if promised.value_ is None:
        return 0.0
    X, Y = POPULATION
    answers = promised.estimator_.predict_path(X, [promised.value_])[0]
    return float(RISKS[name].estimate(Y, answers))


def simulate(name, level, confidence, turns, n=100):
    """The true risk, and completeness, of the value chosen in each of many calibrations."""
    found, cache = [], {}
    for seed in range(turns):
        X, Y = draw(np.random.default_rng(seed), n)
        promised = PromisedClassifier(
            Score(), {name: level}, confidence=confidence, calibration="prefit"
        ).fit(X, Y)
        if promised.value_ not in cache:
            cache[promised.value_] = true_risk(name, promised)
        found.append((cache[promised.value_], promised.report_.completeness))
    return np.array(found).T


@pytest.mark.parametrize("level", [0.1, 0.3])
@pytest.mark.parametrize("name", ["row_error", "missed_positives"])
def test_conformal_promises_hold_on_average(name, level):
    turns = 150
    risks, completeness = simulate(name, level, None, turns)
    error = risks.std() / np.sqrt(turns)
    assert risks.mean() <= level + 2 * error
    assert risks.mean() >= 0.5 * level  # not for nothing
    assert completeness.mean() > 0.05


@pytest.mark.parametrize("name", list(RISKS))
def test_promises_with_confidence_hold_almost_always(name):
    turns, level, confidence = 150, 0.2, 0.8
    risks, _ = simulate(name, level, confidence, turns, n=400)
    broken = (risks > level).mean()
    error = np.sqrt(confidence * (1 - confidence) / turns)
    assert broken <= 1 - confidence + 2 * error
    assert (risks > 0).mean() > 0.5


def test_caution_tuned_on_the_rows_themselves_breaks_the_promise():
    """The boldest value whose risk in few rows is at most the level: too bold on average."""
    turns, level = 200, 0.1
    naive = []
    for seed in range(turns):
        X, Y = draw(np.random.default_rng(seed), 25)
        values = np.linspace(0, 4, 400)
        risks = RISKS["row_error"].estimate(Y, Score().predict_path(X, values))
        value = values[np.flatnonzero(risks <= level)[0]]
        naive.append(true_risk("row_error", SimpleNamespace(value_=value, estimator_=Score())))
    kept, _ = simulate("row_error", level, None, turns, n=25)
    assert np.mean(naive) > level + 2 * np.std(naive) / np.sqrt(turns)
    assert kept.mean() <= level + 2 * kept.std() / np.sqrt(turns)


@given(n=st.integers(1, 60), wrong=st.integers(0, 60), level=st.floats(0.01, 0.99))
def test_hoeffding_bentkus_is_no_bolder_than_e_times_the_exact_tail_and_valid(n, wrong, level):
    wrong = min(wrong, n)
    p = float(hoeffding_bentkus_p_value(np.array(wrong / n), n, level))
    assert 0 <= p <= 1
    assert p <= np.e * stats.binom.cdf(wrong, n, level) + 1e-9
    # valid for yes and no: P(p-value <= d) <= d if the risk is the level itself
    counts = np.arange(n + 1)
    values = hoeffding_bentkus_p_value(counts / n, n, level)
    chances = stats.binom.pmf(counts, n, level)
    for limit in (0.01, 0.05, 0.1, 0.3):
        assert chances[values <= limit].sum() <= limit + 1e-9


def test_the_conformal_bound_is_exact_for_rows_in_random_order():
    """Over all ways to leave one of n + 1 rows out, the loss of that row is at most the level."""
    thresholds = np.array([0.1, 0.3, 0.35, 0.8, 0.9, 1.2, 1.5])  # a row errs below its own
    values = np.linspace(0, 2, 201)
    for level in (0.2, 0.4, 0.6):
        losses = []
        for out in range(len(thresholds)):
            others = np.delete(thresholds, out)
            risk = (values[:, None] < others).mean(axis=1)
            chosen = np.flatnonzero(conformal_bound(risk, len(others)) <= level)[0]
            losses.append(values[chosen] < thresholds[out])
        assert np.mean(losses) <= level


def test_how_many_rows_a_promise_needs():
    assert fewest_rows(0.05, None) == 19
    assert fewest_rows(0.05, 0.9) == 45
    for level, confidence in itertools.product((0.02, 0.1, 0.3), (None, 0.8, 0.95)):
        n = fewest_rows(level, confidence)
        for rows, kept in ((n, True), (n - 1, False)):
            if confidence is None:
                assert (conformal_bound(np.array(0.0), rows) <= level + 1e-12) == kept
            else:
                assert (stats.binom.cdf(0, rows, level) <= 1 - confidence + 1e-12) == kept


def test_too_few_rows_are_said_before_fitting():
    class Untouched(CredalChainClassifier):
        def fit(self, X, Y):
            raise AssertionError("fitted")

    X, Y = draw(np.random.default_rng(0), 50)
    promised = PromisedClassifier(Untouched(), {"row_error": 0.05}, confidence=0.9)
    with pytest.raises(ValueError, match="needs at least 45 rows for calibration, got 15"):
        promised.fit(X, Y)


def test_nothing_is_answered_if_nothing_keeps_the_promise():
    rng = np.random.default_rng(0)
    X, _ = draw(rng, 60)
    Y = rng.integers(0, 2, X.shape)  # unrelated
    promised = PromisedClassifier(
        Score(), {"selective_error": 0.05}, confidence=0.9, calibration="prefit"
    ).fit(X, Y)
    assert promised.value_ is None
    assert (promised.predict_partial(X) == -1).all()
    assert "nothing is answered" in str(promised.report_)


def test_checks_find_drift_and_rarely_cry_wolf():
    level, alarms, delays = 0.2, 0, []
    promised = PromisedClassifier(Score(), {"row_error": level}, calibration="prefit")
    promised.fit(*draw(np.random.default_rng(1), 400))
    assert true_risk("row_error", promised) <= level  # so an alarm would be false
    for seed in range(100):
        X, Y = draw(np.random.default_rng(1000 + seed), 300)
        alarms += promised.check(X, Y).verdict == "broken"
        drifted = np.where(np.random.default_rng(seed).random(Y.shape) < 0.25, 1 - Y, Y)
        delays.append(promised.check(X, drifted).broken_at or 301)
    assert alarms <= 5 + 2 * np.sqrt(100 * 0.05 * 0.95)
    assert np.median(delays) < 100


def test_p_values_of_losses_are_valid():
    """With a risk of just the level, small ones are as rare as they say."""
    rng = np.random.default_rng(0)
    for make in (
        lambda shape: (rng.random(shape) < 0.3).astype(float),
        lambda shape: rng.beta(3, 7, shape),
        lambda shape: rng.choice([0.2, 0.25, 0.45], shape),
    ):
        p = p_value(make((2000, 80)), 0.3)
        for limit in (0.05, 0.2):
            assert (p <= limit).mean() <= limit + 2 * np.sqrt(limit * (1 - limit) / 2000)


@given(seed=st.integers(0, 10**6), level=st.floats(0.05, 0.9))
def test_evidence_is_what_gamblers_made(seed, level):
    """Fair bets: the mean over all outcomes of the next row is what they had."""
    losses = np.random.default_rng(seed).integers(0, 2, 6).astype(float)
    before = evidence_against(losses, level)[-1]
    after = [evidence_against(np.append(losses, one), level)[-1] for one in (0.0, 1.0)]
    assert (1 - level) * after[0] + level * after[1] == pytest.approx(before)


def test_too_few_rows_to_say():
    promised = PromisedClassifier(Score(), {"row_error": 0.2}, calibration="prefit")
    promised.fit(*draw(np.random.default_rng(1), 100))
    X, Y = draw(np.random.default_rng(2), 1)
    assert promised.check(X, Y).verdict == "too few rows to say"
    assert promised.check(X[:0], Y[:0]).verdict == "too few rows to say"
    assert "holds so far" in str(promised.check(*draw(np.random.default_rng(3), 50)))


def real_data(n=300):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, (X + 0.6 * rng.normal(size=X.shape) > 0).astype(int)


@pytest.mark.parametrize(
    "estimator",
    [
        CredalChainClassifier(random_state=0),
        JointDecision(CredalJointForest(members=(), random_state=0)),
    ],
    ids=["chain", "joint decision"],
)
def test_chains_and_joint_decisions(estimator):
    X, Y = real_data()
    promised = PromisedClassifier(estimator, {"row_error": 0.2}, random_state=0).fit(X, Y)
    report = promised.report_
    assert report.n_rows == 90
    assert report.estimate <= 0.2
    assert report.parameter == estimator.caution_parameter
    assert 0 < report.completeness < 1
    labels = promised.predict_partial(X)
    np.testing.assert_array_equal(promised.infer(X).labels, labels)
    assert set(np.unique(labels)) == {-1, 0, 1}
    assert promised.predict(X).shape == Y.shape
    assert "row" in str(report)
    assert 0 < promised.score(X, Y) < 1


def test_a_larger_level_answers_more():
    X, Y = real_data()
    complete = [
        PromisedClassifier(CredalChainClassifier(random_state=0), {"row_error": a}, random_state=0)
        .fit(X, Y)
        .report_.completeness
        for a in (0.05, 0.1, 0.2, 0.4)
    ]
    assert complete == sorted(complete)
    assert complete[0] < complete[-1]


def test_a_risk_of_your_own():
    def many_wrong(truth, answers):
        return ((answers != -1) & (answers != truth)).sum(axis=1) >= 2

    X, Y = draw(np.random.default_rng(0), 200)
    promised = PromisedClassifier(Score(), {many_wrong: 0.1}, calibration="prefit").fit(X, Y)
    rows = PromisedClassifier(Score(), {"row_error": 0.1}, calibration="prefit").fit(X, Y)
    assert promised.value_ < rows.value_

    def rising(truth, answers):
        return (answers == -1).mean(axis=1)

    with pytest.raises(ValueError, match="may rise with caution"):
        PromisedClassifier(Score(), {rising: 0.1}, calibration="prefit").fit(X, Y)
    with pytest.raises(ValueError, match="must give a number from 0 to 1"):
        PromisedClassifier(Score(), {lambda t, a: 2.0: 0.1}, calibration="prefit").fit(X, Y)


def test_rows_with_missing_labels_do_not_calibrate():
    X, Y = draw(np.random.default_rng(0), 200)
    gaps = Y.astype(float)
    gaps[::2, 0] = np.nan
    promised = PromisedClassifier(Score(), {"row_error": 0.2}, calibration="prefit").fit(X, gaps)
    same = PromisedClassifier(Score(), {"row_error": 0.2}, calibration="prefit")
    assert promised.value_ == same.fit(X[1::2], Y[1::2]).value_
    assert promised.report_.n_rows == 100


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"promise": 0.1}, "promise must be a dict with one risk"),
        ({"promise": {"row_error": 0.1, "selective_error": 0.1}}, "promise must be a dict"),
        ({"promise": {"errors": 0.1}}, "promise must be one of 'row_error'"),
        ({"promise": {"row_error": 1.5}}, "level of a promise must lie between 0 and 1, got 1.5"),
        ({"confidence": 90}, "confidence must be None or between 0 and 1, got 90"),
        ({"calibration": 0}, "calibration must be a share of the rows"),
        ({"calibration": "cv"}, "calibration must be one of 'prefit'"),
        ({"promise": {"selective_error": 0.1}}, "pass a confidence"),
    ],
)
def test_wrong_parameters(params, message):
    X, Y = real_data(100)
    with pytest.raises(ValueError, match=message):
        PromisedClassifier(CredalChainClassifier(random_state=0), **params).fit(X, Y)
