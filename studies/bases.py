"""Multi-label models of the literature, as bases of rivals: probabilities of single labels.

Where labels are missing in training, rivals fit a base to each label by itself; all of these are
then a plain classifier.
"""

from math import comb

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler


class Numbers(TransformerMixin, BaseEstimator):
    """Encode categories as columns of 0 and 1, and sparse tables as dense ones."""

    def fit(self, X, Y=None):
        """Learn which columns there are."""
        self.columns_ = self._dummies(X).columns
        return self

    def transform(self, X):
        """Return an array of these columns."""
        columns = self._dummies(X).reindex(columns=self.columns_, fill_value=0)
        return columns.to_numpy(dtype=np.float32)

    def _dummies(self, X):
        return pd.get_dummies(pd.DataFrame(X.toarray() if hasattr(X, "toarray") else X))


class _Base(ClassifierMixin, BaseEstimator):
    """Sets up what is common: several labels or one, a seed, and ``classes_`` of each label."""

    def fit(self, X, Y):
        """Fit to labels 0 and 1, (n, m) or (n,)."""
        Y = np.asarray(Y).astype(int)
        self.is_vector_ = Y.ndim == 1
        self.classes_ = np.array([0, 1])
        self.rng_ = np.random.RandomState(self.random_state)
        self._fit(np.asarray(X), Y.reshape(len(Y), -1))
        return self

    def predict_proba(self, X):
        """Return P(Y_j = 1), (n, m); of a single label (n,)."""
        p = self._proba(np.asarray(X))
        return p[:, 0] if self.is_vector_ else p

    def predict(self, X):
        """Answer every label."""
        return (self.predict_proba(X) >= 0.5).astype(int)

    def _forest(self):
        return RandomForestClassifier(self.n_trees, random_state=self.rng_.randint(2**31 - 1))

    def __sklearn_tags__(self):
        """Say that there may be several labels."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags


class EnsembleOfChains(_Base):
    """Chains in random orders on bootstrap samples (Read et al. 2011).

    Probabilities are averaged, where the paper counts votes.
    """

    def __init__(self, n_chains=10, n_trees=10, random_state=None):
        self.n_chains = n_chains
        self.n_trees = n_trees
        self.random_state = random_state

    def _fit(self, X, Y):
        self.chains_ = []
        for _ in range(self.n_chains):
            rows, order = self.rng_.randint(len(X), size=len(X)), self.rng_.permutation(Y.shape[1])
            models = [
                self._forest().fit(np.hstack([X, Y[:, order[:k]]])[rows], Y[rows, j])
                for k, j in enumerate(order)
            ]
            self.chains_.append((order, models))

    def _proba(self, X):
        p = np.zeros((len(X), len(self.chains_[0][0])))
        for order, models in self.chains_:
            earlier = np.empty((len(X), 0))
            for j, model in zip(order, models, strict=True):
                q = model.predict_proba(np.hstack([X, earlier])) @ model.classes_
                p[:, j] += q / len(self.chains_)
                earlier = np.hstack([earlier, q[:, None] >= 0.5])
        return p


class LabelPowerset(_Base):
    """Label vectors as classes; the probability of a label is that of its vectors.

    ``predict`` gives the likeliest vector.
    """

    def __init__(self, n_trees=100, random_state=None):
        self.n_trees = n_trees
        self.random_state = random_state

    def _fit(self, X, Y):
        self.vectors_, classes = np.unique(Y, axis=0, return_inverse=True)
        self.model_ = self._forest().fit(X, classes.ravel())

    def _proba(self, X):
        return self.model_.predict_proba(X) @ self.vectors_[self.model_.classes_]

    def predict(self, X):
        """Return the likeliest label vector of each row."""
        Y = self.vectors_[self.model_.predict(np.asarray(X))]
        return Y[:, 0] if self.is_vector_ else Y


class RandomLabelsets(_Base):
    """RAkEL: label powersets of 2 m different random sets of k labels (Tsoumakas et al. 2011).

    Every label is in one of them at least. Probabilities are averaged, where the paper counts
    votes.
    """

    def __init__(self, k=3, n_trees=20, random_state=None):
        self.k = k
        self.n_trees = n_trees
        self.random_state = random_state

    def _fit(self, X, Y):
        m = Y.shape[1]
        k, order = min(self.k, m), self.rng_.permutation(m)
        drawn = {tuple(sorted(np.roll(order, -i)[:k].tolist())) for i in range(0, m, k)}
        while len(drawn) < min(2 * m, comb(m, k)):
            drawn.add(tuple(sorted(self.rng_.permutation(m)[:k].tolist())))
        self.sets_ = [list(labels) for labels in sorted(drawn)]
        seeds = self.rng_.randint(2**31 - 1, size=len(self.sets_))
        self.models_ = [
            LabelPowerset(self.n_trees, seed).fit(X, Y[:, labels])
            for labels, seed in zip(self.sets_, seeds.tolist(), strict=True)
        ]
        self.n_labels_ = m

    def _proba(self, X):
        p, counts = np.zeros((len(X), self.n_labels_)), np.zeros(self.n_labels_)
        for labels, model in zip(self.sets_, self.models_, strict=True):
            p[:, labels] += model.predict_proba(X)
            counts[labels] += 1
        return p / counts


class MLkNN(_Base):
    """Bayes' rule on how many neighbours have a label (Zhang and Zhou 2007); X is standardised."""

    def __init__(self, k=10, smooth=1.0, random_state=None):
        self.k = k
        self.smooth = smooth
        self.random_state = random_state

    def _fit(self, X, Y):
        n, k, s = len(X), min(self.k, len(X) - 1), self.smooth
        self.scaler_ = StandardScaler().fit(X)
        self.neighbours_ = NearestNeighbors(n_neighbors=k).fit(self.scaler_.transform(X))
        self.Y_ = Y
        counts = Y[self.neighbours_.kneighbors(return_distance=False)].sum(axis=1)
        prior = (s + Y.sum(axis=0)) / (2 * s + n)
        of_count = np.arange(k + 1)[:, None, None] == counts
        like = [
            (s + (of_count & (y == Y)).sum(axis=1)) / (s * (k + 1) + (y == Y).sum(axis=0))
            for y in (0, 1)
        ]
        joint = like[0] * (1 - prior), like[1] * prior
        self.p_of_count_ = joint[1] / (joint[0] + joint[1])  # (k + 1, m)

    def _proba(self, X):
        rows = self.neighbours_.kneighbors(self.scaler_.transform(X), return_distance=False)
        counts = self.Y_[rows].sum(axis=1)
        return np.take_along_axis(self.p_of_count_, counts, axis=0)
