"""Promises for tags: answers yes and no with cautions of their own, single labels or pooled."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from credalchain import JointDecision, PromisedClassifier, load_model, save_model
from credalchain.labels import as_labels
from credalchain.promises.calibration import learn_costs
from credalchain.promises.risks import RISKS, Promise
from credalchain.promises.statistics import interval_of_ratio, sum_losses

RATES = np.array([0.5, 0.4, 0.3, 0.02, 0.02])
TAGS = {"positive_error": 0.1, "missed_positives": 0.1}


class Bands(BaseEstimator):
    """Yes at large probabilities, no at small ones: X holds the probabilities themselves."""

    caution_parameter = "margin"
    larger_is_more_cautious = True
    nested_ = True
    margin = 0.0
    label_names_ = np.array([f"tag{j}" for j in range(len(RATES))])

    def fit(self, X, Y):
        raise AssertionError("nothing to fit")

    def predict_interval(self, X):
        return np.stack([X, X], axis=-1)

    def predict_path(self, X, values):
        margin = np.asarray(values)[:, None, None]
        return np.where(0.5 + margin <= X, 1, np.where(0.5 - margin >= X, 0, -1)).astype(np.int8)

    def read_labels(self, Y):
        return as_labels(Y, require_zero=False)

    def __sklearn_is_fitted__(self):
        return True


def draw(rng, n):
    p = rng.beta(RATES * 1.5, (1 - RATES) * 1.5, (n, len(RATES)))
    return p, (rng.random(p.shape) < p).astype(int)


def fit(rng, n, **params):
    promised = PromisedClassifier(
        Bands(), TAGS, calibration="prefit", values=np.linspace(0, 0.5, 51), random_state=0
    ).set_params(**{"confidence": 0.9, "per_label": True, **params})
    X, Y = draw(rng, n)
    return promised.fit(X, Y, groups=np.arange(n))


def test_labels_that_rows_can_show_have_promises_of_their_own():
    promised = fit(np.random.default_rng(0), 2000)
    results = promised.report_.promises
    assert [r.label for r in results[::2]] == ["tag0", "tag1", "tag2", None]
    assert [r.pooled for r in results[-2:]] == [("tag3", "tag4")] * 2
    assert {r.confidence for r in results} == {1 - 0.1 / 8}  # four cautions for yes, four for no
    assert "2 labels together (tag3, tag4)" in str(promised.report_)
    X, Y = draw(np.random.default_rng(1), 50)
    assert str(promised.check(X, Y)).count("together (tag3, tag4)") == 2
    assert promised.values_[3] == promised.values_[4] or np.isnan(promised.values_[3:]).all()


def test_a_label_that_would_be_pooled_alone_has_a_promise_of_its_own():
    class FewerBands(Bands):
        label_names_ = Bands.label_names_[:4]

    X, Y = draw(np.random.default_rng(0), 2000)
    promised = PromisedClassifier(
        FewerBands(), TAGS, confidence=0.9, per_label=True, calibration="prefit", random_state=0
    ).fit(X[:, :4], Y[:, :4], groups=np.arange(2000))
    results = promised.report_.promises
    assert [r.label for r in results[::2]] == ["tag0", "tag1", "tag2", "tag3"]
    assert {r.confidence for r in results} == {1 - 0.1 / 8}
    assert not any(r.pooled for r in results)


@pytest.mark.parametrize("n", [60, 300])
def test_few_rows_are_pooled_over_labels(n):
    results = fit(np.random.default_rng(0), n, guarantee="asymptotic").report_.promises
    own = [r.label for r in results if r.label is not None]
    assert not own if n == 60 else "tag4" not in own


def test_labels_and_those_pooled_keep_their_promises():
    X_new, Y_new = draw(np.random.default_rng(1), 20000)
    broken = 0
    for seed in range(150):
        promised = fit(np.random.default_rng(seed + 2), 800)
        answers = promised.predict_partial(X_new)
        for promise in promised._promises():
            _, bad, every = promise.losses(Y_new, answers)
            total = len(bad) if every is None else every.sum()
            if bad.sum() > promise.level * max(total, 1) + 1e-9:
                broken += 1
                break
    assert broken <= 150 * 0.1 + 2 * np.sqrt(150 * 0.09)


def test_each_label_is_checked_and_a_model_file_keeps_them(tmp_path):
    rng = np.random.default_rng(0)
    X, Y = draw(rng, 1500)
    model = JointDecision("precomputed", loss="bands", random_state=0)
    promised = PromisedClassifier(
        model, TAGS, confidence=0.9, per_label=True, calibration=0.6, random_state=0
    ).fit(X, Y)
    path = tmp_path / "tags.model"
    save_model(promised, path)
    loaded = load_model(path)
    X_new, Y_new = draw(rng, 300)
    np.testing.assert_array_equal(loaded.predict_partial(X_new), promised.predict_partial(X_new))
    assert str(loaded.check(X_new, Y_new)) == str(promised.check(X_new, Y_new))
    assert len(promised.check(X_new, Y_new).tests) == len(promised.report_.promises) > 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"promise": {"row_error": {"tag0": 0.1}}},
        {"promise": {lambda truth, answers: np.zeros(len(truth)): 0.1}},
        {"calibration": 3, "method": "cross_fit"},
    ],
)
def test_what_cannot_be_promised_of_each_label(wrong):
    with pytest.raises(ValueError, match="per_label=True is for row_error"):
        fit(np.random.default_rng(0), 200, **wrong)


# -- costs ---------------------------------------------------------------------------------------


def test_costs_lie_between_what_yes_and_no_need():
    """Thresholds by trying all of them."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        X, Y = draw(rng, 40)
        X = X.round(2) + 1e-6 * rng.random(X.shape)  # no ties
        candidates = np.sort(X.ravel())
        is_yes = candidates[:, None, None] <= X
        wrong = (is_yes & (Y == 0)).sum(axis=(1, 2)) / is_yes.sum(axis=(1, 2))
        lowest = candidates[wrong <= 0.1 + 1e-12].min(initial=np.inf)
        with_any = Y.any(axis=1)
        missed = (~is_yes & (Y == 1)).sum(axis=2)[:, with_any] / Y.sum(axis=1)[with_any]
        highest = candidates[missed.mean(axis=1) <= 0.1 + 1e-12].max()
        for names, expected in (
            (["positive_error"], lowest),
            (["missed_positives"], highest),
        ):
            promises = [Promise(RISKS[name], 0.1, 0.9) for name in names]
            of_no, of_yes = learn_costs(Bands(), X, Y, promises)
            if np.isfinite(expected):
                assert of_yes / (of_no + of_yes) == pytest.approx(np.clip(expected, 0.01, 0.99))


def test_rare_tags_are_found_by_costs_that_are_learned():
    rng = np.random.default_rng(0)
    X = rng.beta(0.3, 1.7, (3000, 4))  # seldom above 0.5
    X = np.where(X > 0.25, 0.45, X / 10)
    Y = (rng.random(X.shape) < np.where(X > 0.25, 0.97, X / 10)).astype(int)  # and underconfident
    model = JointDecision("precomputed", loss="bands", features="scores", random_state=0)
    found = {}
    for costs in ((1.0, 1.0), None):
        fitted = model.set_params(costs=costs).fit(X[:300], Y[:300])
        promised = PromisedClassifier(
            fitted, TAGS, confidence=0.9, calibration="prefit", random_state=0
        ).fit(X[300:2000], Y[300:2000])
        assert fitted.costs == costs  # the user's, which stays as it is
        found[costs] = ((promised.predict_partial(X[2000:]) == 1) & (Y[2000:] == 1)).sum()
        assert "a wrong yes 1" in str(promised.report_)
    assert found[None] >= found[1.0, 1.0]


def test_a_loss_that_does_not_suit_the_promise_is_said():
    rng = np.random.default_rng(0)
    X, Y = draw(rng, 600)
    model = JointDecision("precomputed", random_state=0)
    report = PromisedClassifier(model, TAGS, confidence=0.9, random_state=0).fit(X, Y).report_
    assert "loss='row': with loss='bands' more may be answered" in report.notes


def test_the_interval_of_a_ratio_holds_about_as_often_as_it_says():
    rng = np.random.default_rng(0)
    rate = rng.beta(0.2, 1.8, 20)  # of yes, among 20 labels
    promise, covered = Promise(RISKS["positive_error"], 0.3, 0.9), 0
    for _ in range(400):
        answers = (rng.random((1, 300, 20)) < rate).astype(np.int8)
        hard = rng.random((300, 1)) < 0.3  # labels of a row are wrong together
        truth = np.where(rng.random((300, 20)) < np.where(hard, 0.6, 0.1), 0, 1).astype(np.int8)
        low, high = interval_of_ratio(sum_losses(promise, truth, answers, True), 0)
        covered += low <= 0.3 * 0.6 + 0.7 * 0.1 <= high
        assert high - low < 0.2
    assert 0.92 <= covered / 400 <= 0.98
