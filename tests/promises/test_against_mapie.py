"""Where our procedures overlap with MAPIE's, they agree on the same input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator

from credalchain import PromisedClassifier
from credalchain.labels import as_labels
from credalchain.promises.risks import RISKS, Promise
from credalchain.promises.statistics import (
    EvaluatedPromise,
    LossSums,
    Plan,
    hoeffding_bentkus_p_value,
    kept_values,
)
from profiles import scaled

risk_control = pytest.importorskip("mapie.risk_control", reason="MAPIE is not installed")
methods = pytest.importorskip("mapie.risk_control.methods")

M = 5
THRESHOLDS = np.arange(0, 1, 0.01)


class Threshold(BaseEstimator):
    """Yes where a probability is above the threshold, else no: MAPIE's prediction sets.

    ``X`` holds the probabilities themselves.
    """

    caution_parameter = "threshold"
    larger_is_more_cautious = False  # a small one misses fewer positives
    nested_ = False
    threshold = 0.5
    classes_ = np.tile([0, 1], (M, 1))
    label_names_ = np.array([f"label{j}" for j in range(M)])

    def fit(self, X, Y):
        raise AssertionError("nothing to fit")

    def predict_path(self, X, values):
        return (np.asarray(X) > np.asarray(values)[:, None, None]).astype(np.int8)

    def predict_proba(self, X):
        return X

    def read_labels(self, Y):
        return as_labels(Y, require_zero=False)

    def __sklearn_is_fitted__(self):
        return True


def draw(seed, n):
    """Probabilities that are a little too sure; every row has a positive label."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.6, 0.9, (n, M))
    Y = (rng.random((n, M)) < 0.1 + 0.8 * p).astype(int)
    Y[np.arange(n), rng.integers(0, M, n)] = 1
    return p, Y


@pytest.mark.slow
@pytest.mark.parametrize("recall", [0.7, 0.9])
@pytest.mark.parametrize("seed", range(scaled(10)))
def test_the_same_threshold_for_missed_positives(recall, seed):
    """Conformal risk control of recall, from the probabilities of any multi-label classifier."""
    p, Y = draw(seed, 300)
    theirs = risk_control.MultiLabelClassificationController(
        predict_function=lambda X: X,
        risk="recall",
        method="crc",
        target_level=recall,
        predict_params=THRESHOLDS,
    )
    theirs.calibrate(p, Y)
    ours = PromisedClassifier(
        Threshold(), {"missed_positives": 1 - recall}, calibration="prefit", values=THRESHOLDS
    ).fit(p, Y)
    assert ours.values_[0] == pytest.approx(float(np.ravel(theirs.best_predict_param)[0]))
    estimate = theirs.r_hat[np.searchsorted(THRESHOLDS, ours.values_[0] - 1e-9)]
    assert ours.report_.promises[0].estimate == pytest.approx(estimate)


@given(
    n=st.integers(5, 2000),
    level=st.floats(0.01, 0.9),
    means=st.lists(st.floats(0, 1), min_size=1, max_size=10),
)
def test_the_same_p_values_of_hoeffding_and_bentkus(n, level, means):
    means = np.round(np.array(means) * n) / n  # else the ceiling is a matter of rounding
    theirs = methods.compute_hoeffding_bentkus_p_value(means, n, level)[:, 0]
    ours = hoeffding_bentkus_p_value(means, n, level)
    differ = ~np.isclose(ours, np.minimum(theirs, 1.0), rtol=1e-6, atol=1e-12)
    exact = np.isclose(np.ceil(n * means), np.rint(n * means))  # in floating point
    assert not differ[exact].any()


@pytest.mark.parametrize("seed", range(5))
def test_the_same_values_by_a_fixed_sequence(seed):
    """Of p-values from the cautious end, until one fails."""
    rng = np.random.default_rng(seed)
    n, level, confidence = 400, 0.2, 0.9
    means = np.clip(np.linspace(0.3, 0.05, 30) + 0.02 * rng.normal(size=30), 0, 1)
    p = hoeffding_bentkus_p_value(means, n, level)
    theirs = risk_control.control_fwer(
        p[::-1], 1 - confidence, risk_control.FWERFixedSequenceTesting(n_starts=1)
    )
    counts = np.full(30, float(n))
    bound_only = Plan(np.ones((11, 30)), np.zeros(30, bool))
    zeros = np.zeros(30)
    found = LossSums(counts, n * means, n * means, counts, zeros, zeros, counts, np.zeros((11, 30)))
    promise = Promise(RISKS["missed_positives"], level, confidence)
    ours = np.flatnonzero(kept_values([EvaluatedPromise(promise, found, bound_only)])[::-1])
    np.testing.assert_array_equal(np.ravel(theirs), ours)
