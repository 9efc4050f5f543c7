"""Whole sample weights are rows that come again, exactly."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from credalchain import (
    CredalBinaryRelevanceClassifier,
    CredalChainClassifier,
    CredalChainEnsemble,
    CredalForest,
    CredalWrapper,
    JointDecision,
)

CLASSIFIERS = [
    CredalChainClassifier(random_state=0),
    CredalBinaryRelevanceClassifier(random_state=0),
    CredalChainEnsemble(n_chains=3, random_state=0),
    CredalChainClassifier(CredalForest(), random_state=0),
    CredalChainClassifier(CredalWrapper(GaussianNB()), random_state=0),
]


def weighted(seed, n=24):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(n, 3)), rng.integers(-1, 2, (n, 2))
    Y[:2] = [[0, 1], [1, 0]]
    weights = rng.integers(0, 4, n)
    weights[:2] = 1
    return X, Y, weights


@given(seed=st.integers(0, 10**6))
def test_weights_of_the_naive_chain_are_repeated_rows(seed):
    X, Y, weights = weighted(seed)
    for classifier in CLASSIFIERS[:3]:
        found = classifier.fit(X, Y, sample_weight=weights).infer(X)
        repeated = classifier.fit(X.repeat(weights, axis=0), Y.repeat(weights, axis=0)).infer(X)
        np.testing.assert_array_equal(found.log_odds, repeated.log_odds)
        np.testing.assert_array_equal(found.labels, repeated.labels)


@pytest.mark.parametrize("classifier", CLASSIFIERS[3:], ids=lambda one: type(one.base).__name__)
def test_weights_are_repeated_rows_with_every_base(classifier):
    X, Y, weights = weighted(1)
    found = classifier.fit(X, Y, sample_weight=weights).infer(X)
    repeated = classifier.fit(X.repeat(weights, axis=0), Y.repeat(weights, axis=0)).infer(X)
    np.testing.assert_array_equal(found.interval, repeated.interval)


def test_weights_with_frames_sparse_rows_and_partial_fit():
    X, Y, weights = weighted(2)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    chain = CredalChainClassifier(order="given")
    expected = chain.fit(X, Y, sample_weight=weights).predict_interval(X)
    by_name = chain.fit(frame, Y, sample_weight=pd.Series(weights)).predict_interval(frame)
    np.testing.assert_array_equal(by_name, expected)
    codes = sparse.csr_array(np.abs(np.round(X)))
    whole = chain.fit(codes, Y, sample_weight=weights).predict_interval(codes)
    again = chain.fit(codes[np.repeat(np.arange(24), weights)], Y.repeat(weights, axis=0))
    np.testing.assert_array_equal(again.predict_interval(codes), whole)
    first = CredalChainClassifier(order="given").partial_fit(X, Y, sample_weight=weights)
    first.partial_fit(X, Y, sample_weight=weights)
    twice = CredalChainClassifier(order="given").fit(X, Y, sample_weight=2 * weights)
    np.testing.assert_array_equal(first.model_.counts.label, twice.model_.counts.label)


def test_weights_pass_through_a_pipeline():
    X, Y, weights = weighted(3)
    pipeline = make_pipeline(StandardScaler(), CredalChainClassifier(order="given"))
    pipeline.fit(X, Y, credalchainclassifier__sample_weight=weights)
    assert pipeline[-1].model_.counts.label.sum(axis=1).max() <= weights.sum()


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (np.full(24, 0.5), r"whole numbers.* got 0\.5 for row 0"),
        (np.full(24, -1), "[Nn]egative"),
        (np.zeros(24), "at least one non-zero"),
        (np.ones(23), "23|shape"),
    ],
)
def test_other_weights_are_refused(weights, words):
    X, Y, _ = weighted(4)
    with pytest.raises(ValueError, match=words):
        CredalChainClassifier().fit(X, Y, sample_weight=weights)


def test_where_weights_cannot_be_used_it_is_said():
    X, Y, weights = weighted(5)
    with pytest.raises(TypeError, match="sample_weight"):
        JointDecision().fit(X, Y, sample_weight=weights)
