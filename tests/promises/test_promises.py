"""Promises are kept: by theory where it is exact, by simulation where the truth is known."""

import itertools
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats
from sklearn.base import BaseEstimator
from sklearn.model_selection import KFold, LeaveOneOut, RepeatedKFold, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from credalchain import (
    CredalChainClassifier,
    CredalJointForest,
    JointDecision,
    PromisedClassifier,
    explain,
    load_model,
    partial_labels,
    promise_curve,
    save_model,
)
from credalchain.chains.naive.model import NaiveChainModel
from credalchain.labels import as_labels
from credalchain.plotting import plot_promise_curve
from credalchain.promises.calibration import CalibrationRows, evaluate_promises
from credalchain.promises.risks import RISKS, Promise
from credalchain.promises.statistics import (
    STAKES,
    LossSums,
    bets_below,
    conformal_bound,
    evidence_against,
    fewest_rows,
    hoeffding_bentkus_p_value,
    normal_p_value,
    rows_to_show,
    sum_losses,
)
from promise_simulation import estimate

M = 4


class Score(BaseEstimator):
    """Answers a label if its score is far enough from 0; wrong as often as scores are small."""

    caution_parameter = "s"
    larger_is_more_cautious = True
    nested_ = True
    s = 0.0
    classes_ = np.tile([0, 1], (M, 1))
    label_names_ = np.array([f"label{j}" for j in range(M)])

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


VALUES = np.linspace(0, 4, 81)  # of caution
POPULATION = draw(np.random.default_rng(99), 100_000)


def true_risk(name, promised):
    """In very many rows; a promise that answers nothing has no risk."""
    if np.isnan(promised.values_).all():
        return 0.0
    X, Y = POPULATION
    answers = promised.estimator_.predict_path(X, promised.values_[:1])[0]
    return float(estimate(name, Y, answers))


def simulate(name, level, confidence, turns, n=100):
    """The true risk, and completeness, of the value chosen in each of many calibrations."""
    found, cache = [], {}
    for seed in range(turns):
        X, Y = draw(np.random.default_rng(seed), n)
        promised = PromisedClassifier(
            Score(), {name: level}, confidence=confidence, calibration="prefit", values=VALUES
        ).fit(X, Y)
        value = promised.values_[0]
        if value not in cache:
            cache[value] = true_risk(name, promised)
        found.append((cache[value], promised.report_.completeness))
    return np.array(found).T


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.1, 0.3])
@pytest.mark.parametrize("name", ["row_error", "missed_positives"])
def test_conformal_promises_hold_on_average(name, level):
    turns = 150
    risks, completeness = simulate(name, level, None, turns)
    error = risks.std() / np.sqrt(turns)
    assert risks.mean() <= level + 2 * error
    assert risks.mean() >= 0.5 * level  # not for nothing
    assert completeness.mean() > 0.05


@pytest.mark.slow
@pytest.mark.parametrize("name", list(RISKS))
def test_promises_with_confidence_hold_almost_always(name):
    turns, level, confidence = 150, 0.2, 0.8
    risks, _ = simulate(name, level, confidence, turns, n=400)
    broken = (risks > level).mean()
    error = np.sqrt(confidence * (1 - confidence) / turns)
    assert broken <= 1 - confidence + 2 * error
    assert (risks > 0).mean() > 0.5


@pytest.mark.slow
def test_caution_tuned_on_the_rows_themselves_breaks_the_promise():
    """The boldest value whose risk in few rows is at most the level: too bold on average."""
    turns, level = 200, 0.1
    naive = []
    for seed in range(turns):
        X, Y = draw(np.random.default_rng(seed), 25)
        values = np.linspace(0, 4, 400)
        risks = estimate("row_error", Y, Score().predict_path(X, values))
        value = values[np.flatnonzero(risks <= level)[0]]
        naive.append(
            true_risk("row_error", SimpleNamespace(values_=np.array([value]), estimator_=Score()))
        )
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


def test_how_many_rows_would_show_a_promise_at_a_rate():
    assert rows_to_show(0.1, None, 0.1) is None
    assert rows_to_show(0.05, None, 0.0) == 19
    assert rows_to_show(0.05, 0.9, 0.0) == 45
    n = rows_to_show(0.1, 0.9, 0.05)
    assert stats.binom.cdf(np.ceil(0.05 * n), n, 0.1) <= 0.1
    assert stats.binom.cdf(np.ceil(0.05 * n / 1.2), int(n / 1.2), 0.1) > 0.1
    assert rows_to_show(0.1, 0.9, 0.05, growth=0.023) == 101
    assert rows_to_show(0.1, 0.9, 0.05, growth=-0.1) is None


def test_too_few_rows_are_said_before_fitting():
    class Untouched(CredalChainClassifier):
        def fit(self, X, Y):
            raise AssertionError("fitted")

    X, Y = draw(np.random.default_rng(0), 50)
    promised = PromisedClassifier(Untouched(), {"row_error": 0.05}, confidence=0.9)
    with pytest.raises(
        ValueError, match="needs at least 45 rows for calibration, got 15: .* more rows, or"
    ):
        promised.fit(X, Y)


def test_nothing_is_answered_if_nothing_keeps_the_promise():
    rng = np.random.default_rng(0)
    X, _ = draw(rng, 60)
    Y = rng.integers(0, 2, X.shape)  # unrelated
    promised = PromisedClassifier(
        Score(), {"selective_error": 0.05}, confidence=0.9, calibration="prefit"
    ).fit(X, Y)
    assert promised.report_.promises[0].value is None
    assert np.isnan(promised.values_).all()
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


def test_bets_against_a_risk_above_the_level_are_rarely_won():
    """With a risk of just the level, every gambler wins as rarely as the p-value says."""
    rng = np.random.default_rng(0)
    for make in (
        lambda shape: (rng.random(shape) < 0.3).astype(float),
        lambda shape: rng.beta(3, 7, shape),
        lambda shape: rng.choice([0.2, 0.25, 0.45], shape),
    ):
        growth = bets_below(make((4000, 80)), 0.3)
        for limit in (0.05, 0.2):
            won = (np.exp(-growth) <= limit).mean(axis=1)
            assert (won <= limit + 3 * np.sqrt(limit * (1 - limit) / 4000)).all()


def test_tests_are_planned_by_other_rows_and_literally_so():
    rng = np.random.default_rng(4)
    values, level = np.linspace(0, 3, 31), 0.2
    X, Y = draw(rng, 300)
    promise = Promise(RISKS["selective_error"], level, 0.9)
    held = CalibrationRows(Score(), X, Y, values, np.arange(300) < 60)
    judged = evaluate_promises([held], [promise])
    path = Score().predict_path(X, values)
    n_answers = (path != -1).sum(axis=2)
    most = np.maximum(n_answers[:, :60].max(axis=1, keepdims=True), 1)  # as planned
    wrong = ((path != -1) & (path != Y)).sum(axis=2)
    gain = np.where(n_answers <= most, (level * n_answers - wrong) / most, 0.0)  # of a bet of 1
    growth = np.array([np.log1p(stake / (1 - level) * gain) for stake in STAKES])
    pilot, rest = growth[:, :, :60].sum(axis=2), growth[:, :, 60:].sum(axis=2)
    wealth = np.exp(pilot)  # of gamblers who began with the same and go on
    (evaluated,) = judged.evaluated
    np.testing.assert_allclose(evaluated.plan.weights, wealth / wealth.sum(axis=0))
    p = np.minimum(wealth.sum(axis=0) / (wealth * np.exp(rest)).sum(axis=0), 1.0)
    bound = hoeffding_bentkus_p_value((level - gain[:, 60:]).mean(axis=1), 240, level)
    p = np.where(evaluated.plan.bets, p, bound)
    assert evaluated.plan.bets.any()
    won = np.log((wealth**2).sum(axis=0) / wealth.sum(axis=0))
    at = max(at for at in range(31) if won[at] >= 0.7 * won.max() and gain[at, :60].any())
    kept = set()
    while at >= 0 and p[at] <= 0.1:
        kept.add(at)
        at -= 1
    assert set(np.flatnonzero(judged.kept[None, None])) == kept != set()
    np.testing.assert_array_equal(judged.limits[0], most[:, 0])


@given(seed=st.integers(0, 10**6), level=st.floats(0.05, 0.9), n=st.sampled_from([6, 49, 50, 130]))
def test_bets_on_errors_are_fair(seed, level, n):
    """The mean over both outcomes of the next row is what the gamblers had before."""
    losses = np.random.default_rng(seed).integers(0, 2, n).astype(float)
    before = evidence_against(losses, level)[-1]
    after = [evidence_against(np.append(losses, one), level)[-1] for one in (0.0, 1.0)]
    assert (1 - level) * after[0] + level * after[1] == pytest.approx(before)


def test_too_few_rows_to_say():
    promised = PromisedClassifier(Score(), {"row_error": 0.2}, calibration="prefit")
    promised.fit(*draw(np.random.default_rng(1), 100))
    X, Y = draw(np.random.default_rng(2), 1)
    assert promised.check(X, Y).verdict == "too few rows to say"
    assert promised.check(X[:0], Y[:0]).verdict == "too few rows to say"
    assert "too few" in str(promised.check(*draw(np.random.default_rng(3), 20)))
    assert "holds so far" in str(promised.check(*draw(np.random.default_rng(3), 150)))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        promised.check(*draw(np.random.default_rng(3), 50)[:1], Y)


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
    assert report.promises[0].estimate <= 0.2
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
    assert promised.values_[0] < rows.values_[0]

    def rising(truth, answers):
        return (answers == -1).mean(axis=1)

    with pytest.raises(ValueError, match="rising must give 0 for a row where nothing is answered"):
        PromisedClassifier(Score(), {rising: 0.1}, calibration="prefit").fit(X, Y)
    with pytest.raises(ValueError, match="must give a number from 0 to 1 for each"):
        PromisedClassifier(Score(), {lambda t, a: 2.0: 0.1}, calibration="prefit").fit(X, Y)
    twice = {lambda t, a: 2.0 * (a != -1).any(axis=1): 0.1}
    with pytest.raises(ValueError, match=r"must give numbers from 0 to 1, got .*2\.0"):
        PromisedClassifier(Score(), twice, calibration="prefit").fit(X, Y)


def test_rows_with_missing_labels_do_not_calibrate():
    X, Y = draw(np.random.default_rng(0), 200)
    gaps = Y.astype(float)
    gaps[::2, 0] = np.nan
    promised = PromisedClassifier(Score(), {"row_error": 0.2}, calibration="prefit").fit(X, gaps)
    same = PromisedClassifier(Score(), {"row_error": 0.2}, calibration="prefit")
    np.testing.assert_array_equal(promised.values_, same.fit(X[1::2], Y[1::2]).values_)
    assert promised.report_.promises[0].n_rows == 100
    assert promised.report_.n_incomplete == 100
    assert "100 rows with missing labels" in str(promised.report_)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"promise": 0.1}, "promise must be a dict with risks"),
        ({"promise": {}}, "promise must be a dict"),
        ({"promise": {"row_error": {"nose": 0.1}}}, "'nose' is not one of the labels label0"),
        (
            {"promise": {"selective_error": 0.1, "missed_positives": {0: 0.1}}, "confidence": 0.9},
            "selective_error of all rows does not go with promises about single labels",
        ),
        ({"promise": {len: {0: 0.1}}}, "levels for single labels are for row_error"),
        ({"method": "best"}, "method must be one of 'auto'"),
        ({"method": "cross_fit"}, "does not go with calibration=0.3"),
        ({"calibration": 20, "confidence": 0.9}, "method 'auto' does not go with calibration=20"),
        ({"calibration": 20}, "'cross_fit', which guarantees nothing, takes a number of folds"),
        ({"calibration": 1}, "calibration must be a share of the rows"),
        ({"calibration": KFold}, "calibration must be a share of the rows"),
        ({"calibration": StratifiedKFold(10), "method": "cross_fit"}, "cannot split 100 rows"),
        (
            {"calibration": RepeatedKFold(n_splits=10), "method": "cross_fit"},
            "folds must hold every row once, as those of KFold, got RepeatedKFold",
        ),
        ({"promise": {"row_error": {"label1": 0.1, 1: 0.2}}}, "'label1' is promised twice"),
        ({"promise": {"row_error": {True: 0.1}}}, "True is not one of the labels"),
        ({"values": "abc"}, "values must be a list of numbers, got 'abc'"),
        ({"values": [[1.0], [2.0]]}, "values must be a list of numbers"),
        ({"values": [-1.0]}, "values must be a number, 0 or positive"),
        ({"values": [float("nan")]}, "values must be a list of numbers"),
        ({"promise": {"errors": 0.1}}, "promise must be one of 'row_error'"),
        (
            {"promise": {"row_error": 1.5}},
            "level of a promise must be more than 0 and less than 1, got 1.5",
        ),
        ({"confidence": 90}, "confidence must be between 0 and 1, or None, got 90"),
        ({"calibration": 0}, "calibration must be a share of the rows"),
        ({"calibration": "cv"}, "calibration must be a share of the rows"),
        ({"promise": {"selective_error": 0.1}}, "give a confidence"),
    ],
)
def test_wrong_parameters(params, message):
    X, Y = real_data(100)
    with pytest.raises(ValueError, match=message):
        PromisedClassifier(CredalChainClassifier(random_state=0), **params).fit(X, Y)


# -- promises about single labels ----------------------------------------------------------------


def label_risk(name, X, Y, value, j):
    """Literally: of the rows that count, the share that is bad."""
    answers = Score().predict_path(X, [value])[0][:, j]
    truth = Y[:, j]
    counts = {
        "row_error": np.ones(len(X), bool),
        "selective_error": answers != -1,
        "positive_error": answers == 1,
        "missed_positives": truth == 1,
    }[name]
    wrong = (answers == 0) if name == "missed_positives" else (answers != -1) & (answers != truth)
    return wrong[counts].sum(), counts.sum()


@pytest.mark.parametrize("name", list(RISKS))
def test_a_label_gets_the_boldest_value_that_its_own_rows_allow(name):
    X, Y = draw(np.random.default_rng(3), 500)
    levels = {"label1": 0.15, "label3": 0.25}
    promised = PromisedClassifier(
        Score(),
        {name: levels},
        confidence=0.8,
        calibration="prefit",
        values=np.arange(41) / 10,
        random_state=0,
    ).fit(X, Y)
    np.testing.assert_array_equal(promised.values_[[0, 2]], 0.0)  # as the estimator is set
    assert promised.report_.not_promised == ("label0", "label2")
    is_ratio = name in ("selective_error", "positive_error")
    rows = np.random.RandomState(0).permutation(500)  # as random_state=0 draws them
    pilot, rest = (rows[:75], rows[75:]) if is_ratio else ([], rows)
    for result, (label, level) in zip(promised.report_.promises, levels.items(), strict=True):
        j = int(label[-1])
        assert (result.label, result.level, result.confidence) == (label, level, 0.9)
        start = 40
        if is_ratio:  # where the pilot rows have most evidence
            p = [
                stats.binom.cdf(*label_risk(name, X[pilot], Y[pilot], at / 10, j), level)
                for at in range(41)
            ]
            answers = Score().predict_path(X[pilot], np.arange(41) / 10)[:, :, j]
            answering = [at for at in range(41) if (answers[at] != -1).any()]
            evidence = {
                at: -np.log(p[at])
                for at in answering
                if label_risk(name, X[pilot], Y[pilot], at / 10, j)[1]
            }
            start = max(at for at in evidence if evidence[at] >= 0.7 * max(evidence.values()))
        kept = []
        for at in range(start, -1, -1):
            bad, n = label_risk(name, X[rest], Y[rest], at / 10, j)
            if stats.binom.cdf(bad, n, level) > 1 - 0.9:
                break
            kept.append(at)
        assert result.value == pytest.approx(kept[-1] / 10)
        bad, n = label_risk(name, X[rest], Y[rest], result.value, j)
        assert (result.n_rows, result.estimate) == (n, pytest.approx(bad / n))
        assert promised.values_[j] == result.value
    answers = promised.predict_partial(X)
    for j, value in enumerate(promised.values_):
        np.testing.assert_array_equal(answers[:, j], Score().predict_path(X, [value])[0][:, j])
    assert "nothing is promised about: label0, label2" in str(promised.report_)
    assert "split evenly over 2 cautions" in str(promised.report_)


@pytest.mark.slow
def test_labels_keep_their_promises_together():
    turns, level, confidence = 200, 0.1, 0.8
    broken = 0
    X_all, Y_all = POPULATION
    risk = {}
    for seed in range(turns):
        X, Y = draw(np.random.default_rng(seed), 300)
        promised = PromisedClassifier(
            Score(),
            {"selective_error": dict.fromkeys(range(M), level)},
            confidence=confidence,
            calibration="prefit",
            values=VALUES,
        ).fit(X, Y)
        for j, value in enumerate(promised.values_):
            if np.isfinite(value) and (j, value) not in risk:
                bad, n = label_risk("selective_error", X_all, Y_all, value, j)
                risk[j, value] = bad / max(n, 1)
        broken += any(risk.get(pair, 0) > level for pair in enumerate(promised.values_))
    assert broken / turns <= 1 - confidence + 2 * np.sqrt(confidence * (1 - confidence) / turns)
    assert np.isfinite(promised.values_).any()


def test_a_label_without_evidence_stays_open():
    X, Y = draw(np.random.default_rng(0), 200)
    Y[:, 2] = np.random.default_rng(1).integers(0, 2, 200)
    promised = PromisedClassifier(
        Score(), {"selective_error": {2: 0.02, 0: 0.3}}, confidence=0.9, calibration="prefit"
    ).fit(X, Y)
    assert np.isnan(promised.values_[2])
    answers = promised.predict_partial(X)
    assert (answers[:, 2] == -1).all()
    assert (answers[:, 0] != -1).any()
    assert "nothing is answered: the nearest is s =" in str(promised.report_)
    check = promised.check(X, Y)
    assert [test.verdict for test in check.tests] == ["nothing is answered", "holds so far"]
    assert check.tests[0].n_rows == 0
    assert check.verdict == "holds so far"


def test_several_promises_are_all_kept():
    X, Y = draw(np.random.default_rng(0), 400)
    values = {}
    for promise in ({"row_error": 0.1}, {"missed_positives": 0.02}):
        one = PromisedClassifier(Score(), promise, calibration="prefit").fit(X, Y)
        values[tuple(promise)] = one.values_[0]
    both = PromisedClassifier(
        Score(), {"row_error": 0.1, "missed_positives": 0.02}, calibration="prefit"
    ).fit(X, Y)
    assert both.values_[0] == max(values.values())
    assert len(both.check(X, Y).tests) == 2


# -- estimators that are not nested, and functions of one's own -----------------------------------


class Wobbling(Score):
    """Answers most at s = 0.5: not nested."""

    nested_ = False

    def predict_path(self, X, values):
        return super().predict_path(X, [abs(s - 0.5) for s in values])


def test_promises_on_average_hold_for_predictions_that_are_not_nested():
    """By the largest loss of all more cautious values."""
    values = np.linspace(0, 4, 81)
    X, Y = draw(np.random.default_rng(5), 200)
    promised = PromisedClassifier(
        Wobbling(), {"row_error": 0.2}, calibration="prefit", values=values
    ).fit(X, Y)
    path = Wobbling().predict_path(X, values)
    wrong = ((path != -1) & (path != Y)).any(axis=2)
    largest = np.array([wrong[at:].max(axis=0) for at in range(len(values))])
    kept = (largest.sum(axis=1) + 1) / 201 <= 0.2
    assert promised.values_[0] == values[np.flatnonzero(kept)[0]]
    assert promised.values_[0] > 0.5


# -- cross-validation ----------------------------------------------------------------------------


def test_cross_fitting_says_that_it_guarantees_nothing():
    X, Y = real_data(200)
    promised = PromisedClassifier(
        CredalChainClassifier(random_state=0),
        {"selective_error": 0.2},
        confidence=0.9,
        method="cross_fit",
        calibration=KFold(4),
    ).fit(X, Y)
    assert "no guarantee" in str(promised.report_)
    assert promised.report_.n_rows == 200
    assert isinstance(promised.estimator_, CredalChainClassifier)
    with pytest.raises(ValueError, match="folds must hold every row once"):
        PromisedClassifier(
            CredalChainClassifier(),
            {"row_error": 0.4},
            method="cross_fit",
            calibration=ShuffleSplit(4),
        ).fit(X, Y)


def test_pipelines_and_data_frames():
    X, Y = real_data(200)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    labels = pd.DataFrame(Y, columns=["x", "y", "z"])
    chain = CredalChainClassifier(random_state=0)
    inside = PromisedClassifier(
        make_pipeline(StandardScaler(), chain), {"row_error": {"y": 0.2}}, random_state=0
    ).fit(frame, labels)
    outside = make_pipeline(
        StandardScaler(), PromisedClassifier(chain, {"row_error": {"y": 0.2}}, random_state=0)
    ).fit(frame, labels)
    np.testing.assert_array_equal(inside.predict_partial(frame), partial_labels(outside, frame))
    assert inside.infer(frame).label_names == ("x", "y", "z")
    assert "for y" in str(inside.report_)


@pytest.fixture
def passes(monkeypatch):
    """Requests that the models of chains were asked."""
    asked, infer = [], NaiveChainModel.infer

    def counting(self, encoded, request):
        asked.append(request)
        return infer(self, encoded, request)

    monkeypatch.setattr(NaiveChainModel, "infer", counting)
    return asked


def test_a_chain_is_asked_once(passes):
    """But for pilot rows, where there are such; for the values of all labels together."""
    X, Y = real_data(200)
    for promise, most in (
        ({"missed_positives": 0.3}, 2),
        ({"row_error": {0: 0.1, 1: 0.2, 2: 0.3}}, 1),
    ):
        promised = PromisedClassifier(
            CredalChainClassifier(random_state=0), promise, confidence=0.8, random_state=0
        )
        passes.clear()
        promised.fit(X, Y)
        assert len(passes) == most
        chain = promised.estimator_
        known = np.full(Y.shape, -1)
        known[:, 1] = Y[:, 1]
        for answered in (None, known):
            passes.clear()
            prediction = promised.infer(X, known=answered)
            assert len(passes) == 1
            for j, value in enumerate(promised.values_):
                one = chain.infer(X, s=value, known=answered)
                np.testing.assert_array_equal(prediction.labels[:, j], one.labels[:, j])
                np.testing.assert_array_equal(prediction.interval[:, j], one.interval[:, j])
    assert len(promised.values_in_use()) == 3


def test_a_joint_decision_is_asked_once_more_for_several_rewards(monkeypatch):
    X, Y = real_data(200)
    decision = JointDecision(CredalChainClassifier(random_state=0), calibration_folds=None)
    promised = PromisedClassifier(
        decision, {"row_error": {0: 0.05, 1: 0.08, 2: 0.11}}, random_state=0
    ).fit(X, Y)
    assert len(promised.values_in_use()) == 3
    asked, decide = [], JointDecision.decide
    monkeypatch.setattr(
        JointDecision, "decide", lambda self, *a, **k: (asked.append(1), decide(self, *a, **k))[1]
    )
    prediction = promised.infer(X)
    assert len(asked) == 2
    for j, value in enumerate(promised.values_):
        one = promised.estimator_.infer(X, reward=value)
        np.testing.assert_array_equal(prediction.labels[:, j], one.labels[:, j])
        np.testing.assert_array_equal(prediction.interval[:, j], one.interval[:, j])


def test_known_labels_are_answered():
    X, Y = real_data(200)
    promised = PromisedClassifier(
        CredalChainClassifier(random_state=0), {"row_error": 0.3}, random_state=0
    ).fit(X, Y)
    known = np.full(Y.shape, -1)
    known[:, 1] = Y[:, 1]
    np.testing.assert_array_equal(promised.infer(X, known=known).labels[:, 1], Y[:, 1])
    np.testing.assert_array_equal(
        promised.predict_partial(X, known=known), promised.infer(X, known=known).labels
    )


def test_how_many_rows_half_the_level_would_need():
    promised = PromisedClassifier(Score(), {"row_error": 0.2}, calibration="prefit")
    promised.fit(*draw(np.random.default_rng(1), 100))


@given(st.integers(0, 10**6))
def test_chunks_of_rows_add_up(seed):
    rng = np.random.default_rng(seed)
    truth = rng.integers(-1, 2, (30, 3)).astype(np.int8)
    path = rng.integers(-1, 2, (5, 30, 3)).astype(np.int8)
    risk = RISKS[rng.choice(list(RISKS))]
    promise = Promise(risk, 0.2, rng.choice([None, 0.9]), rng.choice([None, 1]))
    whole = sum_losses(promise, truth, path, False)
    parts = [
        sum_losses(promise, truth[rows], path[:, rows], False)
        for rows in np.split(np.arange(30), [7, 8, 20])
    ]
    for one, other in zip(
        vars(whole).values(), vars(sum(parts[1:], parts[0])).values(), strict=True
    ):
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_allclose(one, other)


# -- curves, pictures, explanations, files -------------------------------------------------------


def test_a_curve_buys_what_promises_buy():
    X, Y = real_data(400)
    chain = CredalChainClassifier(random_state=0)
    levels = (0.005, 0.1, 0.2, 0.4)
    curve = promise_curve(chain, X, Y, levels=levels, random_state=0)
    frame = curve.to_frame().set_index("level")
    for level in levels:
        if level == 0.005:
            assert np.isnan(frame.s[level])  # 120 rows are too few
            continue
        one = PromisedClassifier(chain, {"row_error": level}, random_state=0).fit(X, Y)
        (result,) = one.report_.promises
        assert frame.s[level] == result.value
        assert frame.completeness[level] == pytest.approx(result.completeness)
        assert frame.risk[level] == pytest.approx(result.estimate)
    assert list(frame["rows needed"]) == [199, 9, 4, 2]
    fitted = CredalChainClassifier(random_state=0).fit(X[:200], Y[:200])
    again = promise_curve(fitted, X[200:], Y[200:], "missed_positives", calibration="prefit")
    assert again.n_rows == Y[200:].any(axis=1).sum()
    with pytest.raises(ValueError, match="levels must be a list"):
        promise_curve(chain, X, Y, levels=[])
    with pytest.raises(ValueError, match="give a confidence"):
        promise_curve(chain, X, Y, "selective_error")


def test_a_curve_is_drawn_with_its_promise():
    plt = pytest.importorskip("matplotlib.pyplot")
    X, Y = real_data(400)
    levels = (0.005, 0.1, 0.2)
    chain = CredalChainClassifier(random_state=0)
    curve = promise_curve(chain, X, Y, levels=levels, random_state=0)
    ax = plot_promise_curve(curve)
    assert "at most 0.1 on average" in ax.get_title()
    assert "cannot be promised" in plot_promise_curve(curve, level=0.005).get_title()
    assert "at most 0.2" in plot_promise_curve(curve, level=0.2).get_title()
    _, given = plt.subplots()
    assert plot_promise_curve(curve, ax=given) is given
    plt.close("all")


@pytest.mark.parametrize(
    "options",
    [
        {"promise": {"row_error": 0.3}},
        {"promise": {"row_error": {0: 0.1, 2: 0.3}}},
        {"promise": {"row_error": 0.3}, "calibration": 5, "method": "cross_fit"},
        {"promise": {"row_error": 0.02}},
    ],
    ids=["rows", "labels", "folds", "nothing"],
)
@pytest.mark.parametrize(
    "estimator",
    [CredalChainClassifier(random_state=0), JointDecision(CredalJointForest(random_state=0))],
    ids=["chain", "decision"],
)
@pytest.mark.slow
def test_explanations_and_files_of_promised_answers(options, estimator, tmp_path):
    X, Y = real_data(200)
    promised = PromisedClassifier(estimator, random_state=0, **options).fit(X, Y)
    prediction = promised.infer(X[:5])
    for i in range(5):
        explanation = explain(promised, X[i])
        by_label = {step.label: step for step in explanation.steps}
        assert [by_label[f"label{j}"].answer for j in range(3)] == prediction.labels[i].tolist()
        bounds = [(by_label[f"label{j}"].lower, by_label[f"label{j}"].upper) for j in range(3)]
        np.testing.assert_allclose(bounds, prediction.interval[i], atol=1e-6)
        assert "promised" in explanation.setting
    save_model(promised, tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict_partial(X), promised.predict_partial(X))
    assert loaded.report_ == promised.report_
    assert str(loaded.check(X, Y)) == str(promised.check(X, Y))
    with pytest.raises(ValueError, match="must be None for a PromisedClassifier"):
        explain(promised, X[0], s=1)


# -- what a reviewer found ------------------------------------------------------------------------


def test_rows_without_positives_say_nothing_about_missed_positives():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    Y = (rng.random((400, 3)) < 0.012).astype(int)
    fitted = CredalChainClassifier(random_state=0).fit(X, Y)
    promised = PromisedClassifier(fitted, {"missed_positives": 0.4}, calibration="prefit").fit(X, Y)
    assert promised.report_.promises[0].n_rows == Y.any(axis=1).sum()
    missed = (promised.predict_partial(X)[Y == 1] == 0).mean()
    assert missed <= 0.4


def test_two_promises_on_rows_are_tested_in_one_sequence():
    """A value passes if both do; the level of confidence is not shared out between them."""
    X, Y = draw(np.random.default_rng(1), 600)
    both = PromisedClassifier(
        Score(),
        {"row_error": 0.3, "selective_error": 0.3},
        confidence=0.9,
        calibration="prefit",
        random_state=0,
    ).fit(X, Y)
    assert {one.confidence for one in both.report_.promises} == {0.9}
    values = {one.value for one in both.report_.promises}
    assert len(values) == 1
    assert values != {None}
    one = PromisedClassifier(Score(), {"row_error": 0.3}, confidence=0.9, calibration="prefit")
    assert both.values_[0] >= one.fit(X, Y).values_[0]


def test_a_promise_that_no_row_speaks_of():
    X, Y = real_data(200)
    Y[:, 2] = 0
    chain = CredalChainClassifier(random_state=0)
    promised = PromisedClassifier(
        chain, {"positive_error": {2: 0.3}}, confidence=0.9, random_state=0
    ).fit(X, Y)
    assert "no calibration row says anything about it" in str(promised.report_)
    with pytest.raises(ValueError, match="rows for calibration that count, got 0"):
        PromisedClassifier(chain, {"missed_positives": {2: 0.1}}).fit(X, Y)


def test_labels_with_numbers_as_names():
    X, Y = real_data(200)
    frame = pd.DataFrame(Y, columns=[1, 2, 3])
    promised = PromisedClassifier(
        CredalChainClassifier(random_state=0), {"row_error": {3: 0.2}}, random_state=0
    ).fit(X, frame)
    assert promised.report_.promises[0].label == "3"


def test_a_fitted_estimator_knows_the_names_of_its_labels():
    X, Y = real_data(200)
    fitted = CredalChainClassifier(random_state=0).fit(X, pd.DataFrame(Y, columns=list("xyz")))
    promised = PromisedClassifier(fitted, {"row_error": {"x": 0.2}}, calibration="prefit")
    assert promised.fit(X, Y).check(X, Y).tests[0].promise.label == "x"


@pytest.mark.slow
def test_a_generator_gives_the_same_again():
    X, Y = real_data(150)
    for options in ({"calibration": 5, "method": "cross_fit"}, {"estimator": None}):
        found = [
            PromisedClassifier(
                **{
                    "estimator": CredalChainClassifier(order="given"),
                    "promise": {"row_error": 0.4},
                    **options,
                },
                random_state=np.random.RandomState(0),
            ).fit(X, Y)
            for _ in range(2)
        ]
        if "calibration" in options:
            assert found[0].values_.tolist() == found[1].values_.tolist()
        else:
            np.testing.assert_array_equal(found[0].predict_proba(X), found[1].predict_proba(X))


def test_estimators_without_degrees_of_caution_are_refused_before_fitting():
    X, Y = real_data(100)
    with pytest.raises(TypeError, match="estimator must have predict_path"):
        PromisedClassifier(StandardScaler()).fit(X, Y)
    with pytest.raises(TypeError, match="estimator must have predict_path"):
        PromisedClassifier(3, calibration="prefit").fit(X, Y)


def test_a_pipeline_that_ends_in_a_promise_is_explained():
    X, Y = real_data(200)
    model = make_pipeline(
        StandardScaler(), PromisedClassifier(CredalChainClassifier(random_state=0), random_state=0)
    ).fit(X, Y)
    assert "promised" in explain(model, X[0]).setting


def test_a_saved_promise_stays_with_its_label(tmp_path):
    X, Y = real_data(200)
    for names, label in (([1, 2, 3], 1), ([10, 20, 30], 10)):
        promised = PromisedClassifier(
            CredalChainClassifier(random_state=0), {"row_error": {label: 0.3}}, random_state=0
        ).fit(X, pd.DataFrame(Y, columns=names))
        save_model(promised, tmp_path / "m")
        loaded = load_model(tmp_path / "m")
        assert loaded.promise == {"row_error": {label: 0.3}}
        assert str(loaded.check(X, Y)) == str(promised.check(X, Y))


def test_few_rows_leave_everything_open():
    X, Y = real_data(200)
    chain = CredalChainClassifier(random_state=0)
    promised = PromisedClassifier(chain, {"missed_positives": 0.5}, random_state=0)
    check = promised.fit(X[:14], Y[:14]).check(X, Y)
    assert promised.report_.promises[0].level_to_check > 0.95
    assert check.verdict == "too few rows to say"
    assert str(check).startswith("too few rows to say")


def test_functions_of_no_rows():
    def wrong(truth, answers):
        return ((answers != -1) & (answers != truth)).mean(axis=1)

    X, Y = draw(np.random.default_rng(0), 60)
    promised = PromisedClassifier(Score(), {wrong: 0.3}, calibration="prefit").fit(X, Y)
    assert promised.check(X[:0], Y[:0]).verdict == "too few rows to say"


def test_answering_nothing_is_not_called_a_choice():
    X, Y = real_data(300)
    promised = PromisedClassifier(
        CredalChainClassifier(random_state=0), {"row_error": 0.05}, values=[0, 1, 1e6]
    ).fit(X, Y)
    assert np.isnan(promised.values_).all()
    assert "the nearest is s = " in str(promised.report_)
    assert promised.check(X, Y).verdict == "nothing is answered"


def test_the_pilot_is_taken_off_before_fitting():
    X, Y = real_data(350)
    fitted = CredalChainClassifier(random_state=0).fit(X[:300], Y[:300])
    promised = PromisedClassifier(
        fitted,
        {"row_error": 0.05, "selective_error": 0.3},
        confidence=0.9,
        calibration="prefit",
    )
    with pytest.raises(ValueError, match="needs at least 45 rows for calibration"):
        promised.fit(X[300:], Y[300:])


def test_splitters_that_need_rows_and_sparse_labels(tmp_path):
    X, Y = real_data(40)
    promised = PromisedClassifier(
        CredalChainClassifier(random_state=0),
        {"row_error": 0.3},
        method="cross_fit",
        calibration=LeaveOneOut(),
        values=[0, 1, 10, 100],
    ).fit(X, Y)
    save_model(promised, tmp_path / "m")
    chain = CredalChainClassifier(random_state=0)
    assert promise_curve(chain, X, sparse.coo_matrix(Y), levels=[0.4]).n_rows == 12


def test_curves_with_wrong_arguments():
    X, Y = real_data(100)
    chain = CredalChainClassifier(random_state=0)
    for options, message in (
        ({"levels": 0.1}, "levels must be a list of numbers"),
        ({"levels": [{0: 0.1}]}, "levels must be more than 0 and less than 1"),
        ({"risk": {"row_error": 0.1}}, "risk must be a name or a function"),
        ({"calibration": 5}, "calibration must be a share of the rows between 0 and 1, or"),
    ):
        with pytest.raises(ValueError, match=message):
            promise_curve(chain, X, Y, **options)
    curve = promise_curve(chain, X, Y, levels=[0.05, 0.3], values=[0, 1e6], random_state=0)
    assert curve.value_indices[0] is None  # at s = 1e6 nothing is wrong, and nothing answered
    with pytest.raises(ValueError, match="level must be one of the curve's"):
        plot_promise_curve(curve, level=0.2)


@pytest.mark.parametrize("promise", [{"row_error": 0.3}, {"row_error": {0: 0.3, 1: 0.01}}])
def test_the_report_says_how_much_is_answered_and_how_much_of_that_is_yes(promise):
    X, Y = draw(np.random.default_rng(0), 400)
    promised = PromisedClassifier(Score(), promise, calibration="prefit").fit(X, Y)
    answers = promised.predict_partial(X)
    answered = answers != -1
    assert promised.report_.completeness == pytest.approx(answered.mean())
    assert promised.report_.yes == pytest.approx((answers[answered] == 1).mean())
    assert 0 < promised.report_.yes < 1
    assert f"; {promised.report_.yes:.1%} of these answers are yes" in str(promised.report_)


# -- cautions of their own -----------------------------------------------------------------------


def tagged(rng, n, m=8):
    """Calibrated scores of rare labels that go together a little."""
    p = 1 / (1 + np.exp(1.5 - 1.2 * rng.normal(size=(n, 1)) - 2 * rng.normal(size=(n, m))))
    return p, (rng.random(p.shape) < p).astype(int)


def taggers_promise(**options):
    return PromisedClassifier(
        JointDecision("precomputed", loss="cell", random_state=0),
        {"positive_error": 0.2, "missed_positives": 0.1},
        confidence=0.9,
        random_state=0,
        **options,
    )


def test_yes_and_no_have_cautions_of_their_own(tmp_path):
    """Each is the boldest that keeps its promise by itself; the file keeps both."""
    X, Y = tagged(np.random.default_rng(0), 3000)
    promised = taggers_promise().fit(X, Y)
    new, truth = tagged(np.random.default_rng(1), 5000)
    answers = promised.predict_partial(new)
    assert promised.values_[0] != promised.yes_values_[0]
    prices = promised.estimator_.decide(new)
    lower = prices.lower
    yes = 1 - lower[..., 1] <= promised.yes_values_[0]
    no = 1 - lower[..., 0] <= promised.values_[0]
    limit = promised.report_.promises[0].limit
    yes &= (yes.sum(axis=1) <= limit)[:, None]
    np.testing.assert_array_equal(answers, np.where(yes, 1, np.where(no, 0, -1)))
    assert (truth[answers == 1] == 0).mean() <= 0.2
    assert (answers[truth == 1] == 0).mean() <= 0.1
    assert {result.confidence for result in promised.report_.promises} == {0.95}
    assert "of the true labels" in str(promised.report_)
    save_model(promised, tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict_partial(new), answers)
    alone = taggers_promise().set_params(promise={"positive_error": 0.2}).fit(X, Y)
    np.testing.assert_array_equal(alone.values_, alone.yes_values_)


def test_what_a_report_says_of_true_labels_is_so():
    X, Y = tagged(np.random.default_rng(0), 2000)
    promised = taggers_promise(calibration="prefit")
    fitted = JointDecision("precomputed", loss="cell", random_state=0).fit(X, Y)
    new, truth = tagged(np.random.default_rng(1), 2000)
    promised.set_params(estimator=fitted).fit(new, truth)
    answers, report = promised.predict_partial(new), promised.report_
    is_true = truth == 1
    assert report.found == pytest.approx((answers[is_true] == 1).mean())
    assert report.missed == pytest.approx((answers[is_true] == 0).mean())
    assert report.questions == pytest.approx((answers == -1).sum(axis=1).mean())
    assert report.completeness == pytest.approx((answers != -1).mean())
    assert report.yes == pytest.approx((answers == 1).sum() / (answers != -1).sum())


def test_promises_about_rows_and_about_single_labels(tmp_path):
    """The label is at least as cautious as all are; both promises hold on new rows."""
    X, Y = tagged(np.random.default_rng(0), 4000, m=4)
    promised = PromisedClassifier(
        JointDecision("precomputed", random_state=0),
        {"row_error": {None: 0.3, 2: 0.02}},
        random_state=0,
    ).fit(X, Y)
    assert promised.report_.not_promised == ()
    rows, label = promised.report_.promises
    assert (rows.label, label.label) == (None, "label2")
    assert promised.values_[2] < promised.values_[0]  # rewards: smaller is more cautious
    new, truth = tagged(np.random.default_rng(1), 4000, m=4)
    wrong = (promised.predict_partial(new) != truth) & (promised.predict_partial(new) != -1)
    assert wrong.any(axis=1).mean() <= 0.32
    assert wrong[:, 2].mean() <= 0.03
    save_model(promised, tmp_path / "model")
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_partial(new), promised.predict_partial(new))
    easy = promised.set_params(promise={"row_error": {None: 0.05, 2: 0.9}}).fit(X, Y)
    assert easy.values_[2] == easy.values_[0]  # not bolder than all labels are


def test_labels_without_a_promise_are_named_in_a_warning():
    X, Y = tagged(np.random.default_rng(0), 500, m=3)
    promised = PromisedClassifier(
        JointDecision("precomputed"), {"row_error": {1: 0.2}}, random_state=0
    )
    with pytest.warns(UserWarning, match="nothing is promised about label0, label2: answered at"):
        promised.fit(X, Y)


def test_the_normal_approximation_answers_more_and_says_so():
    X, Y = tagged(np.random.default_rng(0), 900)
    options = {"promise": {"positive_error": 0.2}}
    exact = taggers_promise().set_params(**options).fit(X, Y)
    normal = taggers_promise(guarantee="asymptotic").set_params(**options).fit(X, Y)
    assert (normal.predict_partial(X) == 1).sum() > (exact.predict_partial(X) == 1).sum()
    assert "approximate" in normal.report_.guarantee
    assert "approximate" not in exact.report_.guarantee
    with pytest.raises(ValueError, match="guarantee must be one of 'exact', 'asymptotic'"):
        taggers_promise(guarantee="sure").fit(X, Y)


def test_the_normal_p_value_is_that_of_a_t_test_and_knows_its_limits():
    losses = np.array([0.1, 0.3, 0.0, 0.2, 0.1, 0.0, 0.25])
    one = np.ones(1)
    sums = LossSums(
        7 * one, losses.sum() * one, one, 7 * one, (losses**2).sum() * one, one, 500 * one, None
    )
    z = (losses.mean() - 0.2) / np.sqrt(losses.var(ddof=1) / 7)
    assert normal_p_value(sums, 0.2)[0] == pytest.approx(stats.norm.cdf(z))
    never_wrong = LossSums(*(value * one for value in (7, 0.0, 0, 1, 0.0, 1, 4)), None)
    assert normal_p_value(never_wrong, 0.2)[0] == pytest.approx(0.8**4)
