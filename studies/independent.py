"""A model's own probabilities with labels left open: what a joint layer is compared with."""

import tempfile
from pathlib import Path

import joblib
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone


class Cached(ClassifierMixin, BaseEstimator):
    """Fit a binary classifier once for all methods of a study that use it on the same rows."""

    def __init__(self, estimator):
        self.estimator = estimator

    def fit(self, X, y):
        """Fit the classifier, or load it from the cache."""
        self.classes_, self.estimator_ = np.unique(y), _fitted(self.estimator, X, y)
        return self

    def predict_proba(self, X):
        """Return the probabilities of the classes, (n, 2)."""
        return self.estimator_.predict_proba(X)


@joblib.Memory(Path(tempfile.gettempdir()) / "credalchain-studies", verbose=0, compress=True).cache
def _fitted(estimator, X, y):
    return clone(estimator).fit(X, y)


class IndependentLabels(ClassifierMixin, BaseEstimator):
    """Answer labels by the probabilities that a binary classifier gives to each of them.

    With ``rule="label"``, an answer is given if its probability is at least ``1 - reward / 2``
    (Chow 1970). With ``rule="row"``, the likeliest answers of a row are given as long as
    P(all are right) + reward * (share answered) grows, labels independent (Nguyen and
    Hüllermeier 2021: generalised subset 0/1 loss).
    """

    caution_parameter = "reward"
    larger_is_more_cautious = False

    def __init__(self, estimator, rule="row", reward=0.9):
        self.estimator = estimator
        self.rule = rule
        self.reward = reward

    def fit(self, X, Y):
        """Fit a clone of the estimator to each label."""
        Y = np.asarray(Y)
        self.models_ = [clone(self.estimator).fit(X, y) if 0 < y.mean() < 1 else y[0] for y in Y.T]
        return self

    def predict_proba(self, X):
        """Return P(Y_j = 1), (n, m)."""
        columns = [
            model.predict_proba(X)[:, 1] if hasattr(model, "predict_proba") else model
            for model in self.models_
        ]
        return np.stack([np.broadcast_to(column, X.shape[0]) for column in columns], axis=1)

    def predict(self, X):
        """Answer every label."""
        return (self.predict_proba(X) > 0.5).astype(int)

    def predict_path(self, X, values):
        """Return labels at each reward, -1 where they are left open: (values, n, m)."""
        p = self.predict_proba(X)
        answers, certainty = p > 0.5, np.maximum(p, 1 - p)
        if self.rule == "label":
            given = [certainty >= 1 - value / 2 for value in values]
            return np.where(given, answers, -1)
        order = np.argsort(-certainty, axis=1, kind="stable")
        right = np.cumprod(np.take_along_axis(certainty, order, axis=1), axis=1)
        share = np.arange(1, p.shape[1] + 1) / p.shape[1]
        rank = np.argsort(order, axis=1)
        path = []
        for value in values:
            worth = np.hstack([np.ones((len(p), 1)), right + value * share])
            n_given = p.shape[1] - np.argmax(worth[:, ::-1], axis=1)  # ties answer
            path.append(np.where(rank < n_given[:, None], answers, -1))
        return np.stack(path)
