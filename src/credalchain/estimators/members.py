"""Chains as members of a joint forest, by drawing label vectors."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from credalchain.array_types import Labels
from credalchain.bases.joint.members import on_vectors
from credalchain.estimators.chain import CredalChainClassifier
from credalchain.estimators.ensemble import CredalChainEnsemble
from credalchain.estimators.sampling import sample_labels
from credalchain.exceptions import data_warnings_ignored
from credalchain.validation import check_int


class SampledChains(BaseEstimator):
    """Label vectors drawn from the precise chains of a classifier.

    The weight of a training label vector is the share of draws that equal it.

    Parameters
    ----------
    estimator : CredalChainClassifier or CredalChainEnsemble, default=None
        With a fixed order. None means ``CredalChainEnsemble()``.
    n_samples : int, default=100
        Vectors drawn for each row.
    n_folds : int, default=3
        Cross-validation folds used to estimate its mixture share.
    """

    def __init__(
        self, estimator: BaseEstimator | None = None, *, n_samples: int = 100, n_folds: int = 3
    ) -> None:
        self.estimator = estimator
        self.n_samples = n_samples
        self.n_folds = n_folds

    def check_parameters(self) -> None:
        """Refuse values that cannot be used, before anything is fitted."""
        check_int("n_samples", self.n_samples)
        check_int("n_folds", self.n_folds, at_least=2)
        chains = (CredalChainClassifier, CredalChainEnsemble, type(None))
        if not isinstance(self.estimator, chains):
            raise TypeError(
                "estimator of SampledChains must be None, a CredalChainClassifier or a "
                f"CredalChainEnsemble, got {self.estimator!r}."
            )

    def fit_vectors(
        self,
        X: NDArray[np.float32],
        vector_of: NDArray[np.int32],
        vectors: Labels,
        rng: np.random.RandomState,
    ) -> tuple["DrawnVectors", Any] | None:
        """None where there are too few rows to hold some out."""
        from sklearn.model_selection import KFold  # slow to import

        if len(X) < 2 * self.n_folds:
            return None
        seed = rng.randint(2**31 - 1)
        labels = vectors[vector_of]
        held_out = np.zeros((len(X), len(vectors)))
        with data_warnings_ignored():
            for train, test in KFold(self.n_folds, shuffle=True, random_state=seed).split(X):
                fold = self._fit(X[train], labels[train], vectors, seed)
                held_out[test] = fold.probabilities(X[test])
        all_vectors = np.arange(len(vectors))
        return self._fit(X, labels, vectors, seed), on_vectors(held_out, all_vectors, len(vectors))

    def _fit(
        self, X: NDArray[np.float32], labels: Labels, vectors: Labels, seed: int
    ) -> "DrawnVectors":
        chains = CredalChainEnsemble() if self.estimator is None else clone(self.estimator)
        fitted = chains.set_params(random_state=seed).fit(X, labels)
        return DrawnVectors(fitted, vectors, self.n_samples, seed)


class DrawnVectors:
    """A fitted classifier, and the vectors that its draws are compared with."""

    name = "chains"
    is_exact = False  # weights are estimated from draws

    def __init__(
        self, classifier: BaseEstimator, vectors: Labels, n_samples: int, seed: int
    ) -> None:
        self.classifier, self.vectors = classifier, vectors
        self.n_samples, self.seed = n_samples, seed

    def weights(self, X: NDArray[np.float32]) -> Any:
        all_vectors = np.arange(len(self.vectors))
        return on_vectors(self.probabilities(X), all_vectors, len(self.vectors))

    def probabilities(self, X: NDArray[np.float32]) -> NDArray[np.float64]:
        """Of the vectors, (n, K); uniform where none of them was drawn."""
        draws = sample_labels(self.classifier, X, self.n_samples, self.seed, alike=True)
        vector_index = {vector.tobytes(): index for index, vector in enumerate(self.vectors)}
        times = np.zeros((len(X), len(self.vectors)))
        for sample in np.ascontiguousarray(draws):
            for row, vector in enumerate(sample):
                index = vector_index.get(vector.tobytes())
                if index is not None:
                    times[row, index] += 1
        total = times.sum(axis=1, keepdims=True)
        return np.where(total > 0, times / np.maximum(total, 1), 1 / len(self.vectors))
