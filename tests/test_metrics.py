"""Measures: values by hand, and laws that hold for the whole closed list."""

import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalchain import CredalChainClassifier, CredalPrediction, Exactness, metrics, partial_report
from credalchain.labels import as_labels
from credalchain.metrics import MEASURES, pooled, tally
from credalchain.metrics.measures import CELL_MEASURES

TRUTH = np.array([[1, 0, 1], [0, 0, 1], [1, 1, 1], [0, 1, 0]])
GUESS = np.array([[1, 0, 1], [0, 1, -1], [-1, -1, -1], [1, 0, -1]])

BY_HAND = {
    "set_accuracy": 2 / 4,
    "completeness": (3 + 2 + 0 + 2) / 12,
    "incorrectness": (0 + 1 / 2 + 0 + 1) / 4,
    "selective_error": 3 / 7,
    "mean_set_size": (1 + 2 + 8 + 2) / 8 / 4,
    "utility_65": (3 + 1 + 0.65 + 3 * 0.65 + 0.65) / 12,
    "utility_80": (3 + 1 + 0.80 + 3 * 0.80 + 0.80) / 12,
    "abstention_loss": (0 + 1.25 + 0.75 + 2.25) / 12,
    "precision_micro": 2 / 4,
    "precision_macro": (1 / 2 + 0 / 1 + 1 / 1) / 3,
    "missed_micro": 1 / 7,
    "recall_micro": 2 / 7,
    "recall_macro": (1 / 2 + 0 / 2 + 1 / 3) / 3,
    "selective_recall_micro": 2 / 3,
    "selective_recall_macro": (1 / 1 + 0 / 1 + 1 / 1) / 3,
    "f1_micro": 4 / (4 + 7),
    "f1_macro": (2 / 4 + 0 + 2 / 4) / 3,
    "selective_f1_micro": 4 / (4 + 3),
    "selective_f1_macro": (2 / 3 + 0 + 2 / 2) / 3,
}


@pytest.mark.parametrize("name", BY_HAND)
def test_values_by_hand(name):
    assert metrics.MEASURES[name].function(TRUTH, GUESS) == pytest.approx(BY_HAND[name])


def with_bounds(labels, lower, upper):
    log_odds = np.stack([np.asarray(lower, float), np.asarray(upper, float)], axis=-1)
    names = tuple("abc"[: log_odds.shape[1]])
    return CredalPrediction(
        np.asarray(labels, dtype=np.int8), log_odds, (Exactness.EXACT,) * len(names), names
    )


def test_maximin_resolves_stars_by_the_better_side():
    inf = np.inf
    prediction = with_bounds([[-1, -1, -1]], [[-1, -3, -inf]], [[2, 2, inf]])
    assert metrics.maximin_accuracy([[1, 0, 0]], prediction) == 1
    assert metrics.maximin_accuracy([[1, 1, 0]], prediction) == 0
    assert metrics.maximin_accuracy([[1, 0, 1]], prediction) == 0
    with pytest.raises(TypeError, match="CredalPrediction"):
        metrics.maximin_accuracy(TRUTH, GUESS)


def test_precise_accuracy():
    assert metrics.precise_accuracy(TRUTH, np.abs(GUESS)) == 0.5
    with pytest.raises(ValueError, match="leave no label open"):
        metrics.precise_accuracy(TRUTH, GUESS)


def predictions(m=3):
    cell = st.sampled_from([-1, 0, 1])
    return st.lists(st.lists(cell, min_size=m, max_size=m), min_size=1, max_size=6).map(np.array)


def value(name, truth, labels):
    labels = np.asarray(labels, dtype=np.int8)
    measure = metrics.MEASURES[name]
    if measure.needs == "precise":
        labels = np.abs(labels)
    if measure.needs == "bounds":
        answered = np.where(labels == -1, 0.0, 40.0 * (2 * labels - 1))
        labels = with_bounds(labels, answered - 0.5, answered + 0.5)
    return measure.function(truth, labels)


@pytest.mark.parametrize("name", metrics.MEASURES)
class TestLawsOfAllMeasures:
    @given(labels=predictions(), seed=st.integers(0, 99))
    def test_between_zero_and_one(self, name, labels, seed):
        truth = np.random.default_rng(seed).integers(0, 2, labels.shape)
        result = value(name, truth, labels)
        assert np.isnan(result) or 0 <= result <= 1

    @given(labels=predictions(), seed=st.integers(0, 99))
    def test_order_of_rows_and_labels_does_not_matter(self, name, labels, seed):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 2, labels.shape)
        rows, columns = rng.permutation(len(labels)), rng.permutation(labels.shape[1])
        moved = value(name, truth[rows][:, columns], labels[rows][:, columns])
        np.testing.assert_allclose(value(name, truth, labels), moved)

    @given(labels=predictions())
    def test_perfect_complete_prediction_is_best(self, name, labels):
        truth = np.abs(labels)
        best = value(name, truth, truth)
        # set size is 2**-m at its best, and "better" has no meaning for it alone
        if name == "mean_set_size":
            assert best == 0.5 ** truth.shape[1]
        elif name in CELL_MEASURES and not truth.any():
            assert np.isnan(best)  # there is nothing to find
        else:
            expected = 1 if metrics.MEASURES[name].greater_is_better else 0
            assert best == pytest.approx(expected, abs=1e-12)

    @given(labels=predictions(), seed=st.integers(0, 99))
    def test_missing_truth_is_left_out(self, name, labels, seed):
        """A row without truth changes nothing but completeness and set size."""
        truth = np.random.default_rng(seed).integers(0, 2, labels.shape).astype(float)
        more = np.vstack([truth, np.full((1, 3), np.nan)])
        extended = np.vstack([labels, labels[:1]])
        if name not in ("completeness", "mean_set_size"):
            np.testing.assert_allclose(value(name, truth, labels), value(name, more, extended))

    def test_nothing_observed_gives_nan(self, name):
        result = value(name, np.full((2, 3), -1), GUESS[:2])
        assert np.isnan(result) != (name in ("completeness", "mean_set_size"))

    def test_shapes_must_agree(self, name):
        if name not in ("completeness", "mean_set_size"):
            with pytest.raises(ValueError, match=r"same shape, got \(4, 2\) and \(4, 3\)"):
                value(name, TRUTH[:, :2], GUESS)

    def test_strange_values_are_refused(self, name):
        if metrics.MEASURES[name].needs == "partial":
            with pytest.raises(ValueError, match="prediction must hold"):
                value(name, TRUTH, GUESS + 5)


def test_a_curve_reads_the_truth_once(monkeypatch):
    seen = []

    def reading(values, *, name, **options):
        seen.append(name)
        return as_labels(values, name=name, **options)

    monkeypatch.setattr(sys.modules["credalchain.metrics.measures"], "as_labels", reading)
    path = np.stack([GUESS] * 50)
    share, right = metrics.completeness_curve(TRUTH, path)
    assert seen.count("Y_true") == 1
    np.testing.assert_array_equal(share, [metrics.completeness(TRUTH, GUESS)] * 50)
    np.testing.assert_array_equal(right, [metrics.set_accuracy(TRUTH, GUESS)] * 50)


def test_partly_missing_truth_uses_the_observed_cells():
    assert metrics.set_accuracy([[np.nan, 1]], [[0, 1]]) == 1
    assert metrics.incorrectness([[np.nan, 1, 0]], [[0, 1, 1]]) == 0.5
    assert metrics.discounted_utility([[np.nan, 1]], [[-1, -1]], abstention=0.3) == pytest.approx(
        0.3
    )
    assert metrics.abstention_loss([[np.nan, 1]], [[-1, -1]], cost=0.1) == pytest.approx(0.1)


@pytest.mark.parametrize("bad", [-0.1, 1.5, "cheap", [0.5]])
def test_worth_of_a_star(bad):
    with pytest.raises((ValueError, TypeError), match=r"cost must be|star must be|not supported"):
        metrics.abstention_loss(TRUTH, GUESS, cost=bad)


def test_curve():
    path = np.stack([np.abs(GUESS), GUESS, np.full_like(GUESS, -1)])
    completeness, set_accuracy = metrics.completeness_curve(TRUTH, path)
    assert completeness == pytest.approx([1, 7 / 12, 0])
    assert set_accuracy.tolist() == [0.5, 0.5, 1]


def test_report():
    frame = pd.DataFrame(TRUTH, columns=["rock", "pop", "folk"])
    report = partial_report(frame, GUESS, output_dict=True)
    assert report["rock"] == {
        "support": 4,
        "answered": 3,
        "abstained": 1,
        "precision": 0.5,
        "selective_recall": 1.0,
    }
    assert report["pop"]["selective_recall"] == 0
    assert report["all labels"]["answered"] == 7
    text = partial_report(frame, GUESS)
    assert "rock" in text
    assert "all labels" in text
    assert "-" in partial_report([[0]], [[-1]])
    with pytest.raises(ValueError, match="label_names must have 3 names"):
        partial_report(TRUTH, GUESS, label_names=["a"])
    with pytest.raises(ValueError, match="same shape"):
        partial_report(TRUTH[:2], GUESS)


def test_report_takes_names_from_the_prediction():
    X = np.arange(8.0).reshape(4, 2)
    chain = CredalChainClassifier().fit(X, pd.DataFrame(TRUTH, columns=["x", "y", "z"]))
    assert set(partial_report(TRUTH, chain.infer(X), output_dict=True)) == {
        "x",
        "y",
        "z",
        "all labels",
    }


@pytest.mark.parametrize("m", [255, 256, 300])
def test_many_labels(m):
    """Counted in bytes only where a byte can hold it."""
    truth, labels = np.zeros((3, m), dtype=np.int8), np.ones((3, m), dtype=np.int8)
    labels[0] = 0
    labels[1, 0] = -1
    counted = metrics.tally(truth, labels)
    by_label = metrics.tally(truth.T, labels.T).by_label  # as many rows as labels before
    assert by_label.said_yes.tolist() == [0, m - 1, m]
    assert counted.answered.tolist() == [m, m - 1, m]
    assert counted.wrong.tolist() == [0, m - 1, m]


@given(seed=st.integers(0, 10**6), n=st.integers(1, 60), cut=st.integers(0, 60))
def test_pooled_tallies_give_the_same_measures(seed, n, cut):
    rng = np.random.default_rng(seed)
    truth, labels = (rng.integers(-1, 2, (n, 3)).astype(np.int8) for _ in range(2))
    parts = [tally(truth[rows], labels[rows]) for rows in (slice(cut), slice(cut, n))]
    found = pooled([pooled(parts[:1]), parts[1]])
    for measure in MEASURES.values():
        if measure.of_tally is not None:
            expected = measure.of_tally(tally(truth, labels))
            np.testing.assert_allclose(measure.of_tally(found), expected, rtol=1e-12)
