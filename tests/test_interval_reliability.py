"""Intervals against what was observed: made-up predictions, right and not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalchain import CredalChainClassifier, CredalPrediction, Exactness
from credalchain.metrics import (
    interval_calibration_error,
    interval_reliability,
    overconfidence_note,
    sure_error,
)
from credalchain.metrics.reliability import wilson_interval
from credalchain.prediction import log_odds


def predicted(lower, upper):
    bounds = np.stack([lower, upper], axis=-1)
    odds = log_odds(bounds)
    labels = np.where(bounds[..., 0] > 0.5, 1, np.where(bounds[..., 1] < 0.5, 0, -1))
    m = labels.shape[1]
    names = tuple(f"label{j}" for j in range(m))
    return CredalPrediction(
        labels.astype(np.int8), odds, (Exactness.EXACT,) * m, names, model_interval=bounds
    )


def truth_and_probability(seed, n, m):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0, 1, (n, m)).round(3)
    return (rng.uniform(size=(n, m)) < p).astype(np.int8), p


def slow_error(truth, lower, upper, n_bins):
    total, n = 0.0, 0
    for bound in (lower, upper):
        for b in range(n_bins):
            cells = [
                (y, low, high)
                for y, low, high, at in zip(
                    truth.ravel(), lower.ravel(), upper.ravel(), bound.ravel(), strict=True
                )
                if y != -1
                and (b / n_bins <= at < (b + 1) / n_bins or (at == 1 and b == n_bins - 1))
            ]
            if cells:
                share, low, high = np.mean(cells, axis=0)
                total += len(cells) * max(low - share, share - high, 0)
                n += len(cells)
    return total / n if n else np.nan


@given(
    seed=st.integers(0, 10**6), n=st.integers(1, 30), m=st.integers(1, 3), bins=st.integers(1, 6)
)
def test_calibration_error_by_its_definition(seed, n, m, bins):
    rng = np.random.default_rng(seed)
    truth = rng.integers(-1, 2, (n, m)).astype(np.int8)
    lower, upper = np.sort(rng.integers(0, 65, (2, n, m)) / 64, axis=0)
    found = interval_calibration_error(truth, predicted(lower, upper), n_bins=bins)
    assert found == pytest.approx(slow_error(truth, lower, upper, bins), nan_ok=True)


def test_precise_probabilities_that_hold_and_some_that_do_not():
    truth, p = truth_and_probability(0, 20_000, 2)
    assert interval_calibration_error(truth, predicted(p, p)) < 0.01
    bolder = np.clip(1.6 * (p - 0.5) + 0.5, 0, 1)
    assert interval_calibration_error(truth, predicted(bolder, bolder)) > 0.08


def test_wide_intervals_around_the_truth_are_reliable():
    truth, p = truth_and_probability(1, 20_000, 1)
    prediction = predicted(np.maximum(p - 0.1, 0), np.minimum(p + 0.1, 1))
    counted = interval_reliability(truth, prediction)
    assert counted.calibration_error == 0
    assert (counted.distance == 0).all()
    assert counted.overconfidence_note() is None
    inside = (counted.lower <= counted.share) & (counted.share <= counted.upper)
    assert inside[counted.cells > 0].all()


def test_sure_error_counts_the_wrong_among_the_sure():
    lower = np.array([[0.995, 0.995, 0.0, 0.0, 0.99, 0.5]])
    upper = np.array([[1.0, 1.0, 0.005, 0.005, 1.0, 1.0]])
    prediction = predicted(lower, upper)
    assert sure_error([[1, 0, 0, 1, 0, 0]], prediction) == 2 / 4
    assert sure_error([[1, -1, 0, 1, 0, 0]], prediction) == 1 / 3
    assert np.isnan(sure_error([[-1, -1, -1, -1, 0, 0]], prediction))
    assert sure_error([[1, 0, 0, 1, 0, 0]], prediction, level=0.9) == 3 / 5


def test_a_note_only_if_intervals_are_too_sure():
    truth, p = truth_and_probability(2, 5000, 2)
    assert overconfidence_note(truth, predicted(p, p)) is None
    bolder = np.clip(1.6 * (p - 0.5) + 0.5, 0, 1)
    note = overconfidence_note(truth, predicted(bolder, bolder))
    assert note.startswith("intervals are too sure: of ")
    assert "should be at most 1%." in note
    less_sure = np.where(p > 0.5, 0.95, 0.05)  # none beyond 0.99
    note = overconfidence_note(truth, predicted(less_sure, less_sure))
    distance = float(note.partition("yes is ")[2].split()[0])
    assert 0.15 < distance <= 0.2  # the share is 0.75, less what chance explains
    timid = 0.5 + (p - 0.5) / 2  # nearer to one half than the truth: not too sure
    assert overconfidence_note(truth, predicted(timid, timid)) is None
    few = overconfidence_note(truth[:3], predicted(less_sure[:3], less_sure[:3]))
    assert few is None  # chance explains it


def test_a_naive_chain_is_told_that_it_is_too_sure():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 1))
    X = np.repeat(x, 20, axis=1)  # the same feature twenty times: far from independent
    Y = (x + rng.normal(size=(600, 2)) > 0).astype(int)
    chain = CredalChainClassifier(random_state=0).fit(X[:300], Y[:300])
    assert overconfidence_note(Y[300:], chain.infer(X[300:])) is not None


@given(seed=st.integers(0, 10**6), n=st.integers(1, 30), cut=st.integers(0, 30))
def test_counts_add_up_over_rows(seed, n, cut):
    truth, p = truth_and_probability(seed, n, 2)
    truth = np.where(np.random.default_rng(seed).uniform(size=truth.shape) < 0.2, -1, truth)
    parts = [
        interval_reliability(truth[rows], predicted(p[rows], p[rows]))
        for rows in (slice(cut), slice(cut, n))
    ]
    whole, summed = interval_reliability(truth, predicted(p, p)), parts[0] + parts[1]
    np.testing.assert_array_equal(whole.cells, summed.cells)
    np.testing.assert_allclose(whole.distance, summed.distance, atol=1e-12)
    assert (whole.sure, whole.sure_wrong) == (summed.sure, summed.sure_wrong)


def test_nothing_observed():
    prediction = predicted(np.full((2, 1), 0.2), np.full((2, 1), 0.4))
    counted = interval_reliability([[-1], [np.nan]], prediction)
    assert np.isnan(counted.calibration_error)
    assert np.isnan(counted.sure_error)
    assert np.isnan(counted.share).all()
    assert counted.overconfidence_note() is None


def test_what_is_refused():
    prediction = predicted(np.full((2, 1), 0.2), np.full((2, 1), 0.4))
    with pytest.raises(TypeError, match="CredalPrediction"):
        sure_error([[1], [0]], [[1], [0]])
    with pytest.raises(ValueError, match="n_bins must be a whole number, at least 1, got 0"):
        interval_reliability([[1], [0]], prediction, n_bins=0)
    with pytest.raises(ValueError, match="level must be a number from 0.5 to below 1, got 1"):
        sure_error([[1], [0]], prediction, level=1)
    with pytest.raises(ValueError, match="same level"):
        interval_reliability([[1], [0]], prediction) + interval_reliability(
            [[1], [0]], prediction, level=0.9
        )


def test_wilson_interval():
    """10 of 20: the textbook's 0.299 to 0.701."""
    assert wilson_interval(10, 20, 1.96).round(3).tolist() == [0.299, 0.701]
    assert wilson_interval([0, 5], [0, 5], 1.96)[:, 0].tolist() == [0, 1]
    assert wilson_interval([0, 5], [0, 5], 1.96)[1, 1] == pytest.approx(1)
