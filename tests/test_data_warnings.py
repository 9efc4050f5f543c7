"""Data from which less can be learned, or about which less can be said, is told of once."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.pipeline import make_pipeline

from credalchain import (
    CredalChainClassifier,
    CredalForest,
    CredalJointForest,
    JointDecision,
    NaiveCredal,
    PromisedClassifier,
    choose_caution,
    cross_val_partial,
)
from credalchain.exceptions import DataWarning

N = 60
DECISION = JointDecision(CredalJointForest(ExtraTreesRegressor(5, bootstrap=True), random_state=0))


@pytest.fixture
def data():
    """A city for every two rows, and labels of which all occur both ways."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=N), "city": [f"town {i // 2}" for i in range(N)]})
    return X, pd.DataFrame(rng.integers(0, 2, (N, 2)), columns=["a", "b"])


@pytest.mark.parametrize("classifier", [CredalChainClassifier(), DECISION])
def test_labels_that_are_the_same_in_all_rows_are_named(classifier, data):
    X, Y = data[0][["x"]], data[1]
    constant = Y.assign(yes=1, no=[np.nan, *[0] * (N - 1)])
    with pytest.warns(DataWarning, match=r"does not: yes \(always 1\), no \(always 0\)$"):
        clone(classifier).fit(X, constant)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        clone(classifier).fit(X, Y)
        clone(classifier).fit(X, np.ones(N))


@pytest.mark.parametrize("base", [NaiveCredal(), CredalForest()])
def test_values_that_were_never_seen_are_told_with_their_column(base, data):
    X, Y = data
    X = X.assign(city=["Oslo", "Rome", None, "Bern"] * (N // 4))
    chain = CredalChainClassifier(base, order="given").fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        chain.infer(X)
    with pytest.warns(DataWarning, match="column 'city' of X .* never seen in fit, such as 'Wien'"):
        chain.infer(X.assign(city=["Oslo", None, "Wien", "Oslo"] * (N // 4)))


def test_the_line_that_is_shown_is_the_users(data):
    X, Y = data[0].assign(city="Oslo"), data[1]
    model = make_pipeline(DECISION).fit(X, Y)
    with pytest.warns(DataWarning) as told:
        model.predict(X.assign(city="Wien"))
    assert {warning.filename for warning in told} == {__file__}


def test_rows_that_are_held_out_are_not_warned_of(data):
    """By us, in folds that users do not see."""
    X, Y = data
    Y = Y.assign(b=[1, *[0] * (N - 1)])  # constant in most folds
    chain = CredalChainClassifier(order="given")
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        JointDecision(chain, calibration_folds=3).fit(X, Y)
        PromisedClassifier(
            chain, {"row_error": 0.5}, calibration=5, method="cross_fit", random_state=0
        ).fit(X, Y)
        choose_caution(chain, X, Y, random_state=0)
        cross_val_partial(chain, X, Y, cv=3)
