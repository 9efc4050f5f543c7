"""Several fitted models that answer where all of them agree."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from credalchain.labels import ABSTAIN
from credalchain.model_selection import unwrap

Labels = NDArray[np.int8]


class AgreeingClassifiers(BaseEstimator):
    """The models of a cross-validation: a label is answered where all of them answer it alike.

    Parameters
    ----------
    estimators : sequence of fitted classifiers or pipelines
        With the same labels and columns.
    """

    def __init__(self, estimators: Sequence[Any]) -> None:
        self.estimators = estimators

    def __sklearn_is_fitted__(self) -> bool:
        return len(self.estimators) > 0

    def __getattr__(self, name: str) -> Any:
        """What all of them have alike: names and classes of labels, columns, the parameter."""
        shared = ("classes_", "label_names_", "targets_", "n_features_in_", "feature_names_in_")
        if name in (*shared, "caution_parameter", "larger_is_more_cautious"):
            return getattr(unwrap(self.estimators[0])[0], name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    @property
    def nested_(self) -> bool:
        """Whether they all are: what all answer alike is then nested, too."""
        return all(unwrap(one)[0].nested_ for one in self.estimators)

    def read_labels(self, Y: Any) -> Labels:
        """True labels of new rows, in the form of ``predict_partial``."""
        return np.asarray(unwrap(self.estimators[0])[0].read_labels(Y))

    def predict_path(self, X: Any, values: Any) -> Labels:
        """Labels on which all agree, for many values of caution: int8, (n_values, n, m)."""
        agreed: Any = None
        for estimator in self.estimators:
            final, Z = unwrap(estimator, X)
            path = np.asarray(final.predict_path(Z, values))
            agreed = path if agreed is None else np.where(agreed == path, agreed, ABSTAIN)
        return np.asarray(agreed, dtype=np.int8)

    def infer(self, X: Any, **options: Any) -> Any:
        """Labels on which all agree, and bounds that hold all of theirs."""
        pairs = [unwrap(estimator, X) for estimator in self.estimators]
        found = [final.infer(Z, **options) for final, Z in pairs]
        labels = found[0].labels
        for other in found[1:]:
            labels = np.where(labels == other.labels, labels, ABSTAIN)
        return replace(
            found[0],
            labels=labels,
            log_odds=_envelope([one.log_odds for one in found]),
            given_interval=_envelope([one.interval for one in found]),
        )

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The mean of theirs."""
        found = [estimator.predict_proba(X) for estimator in self.estimators]
        return np.asarray(np.mean(found, axis=0))

    def predict(self, X: Any) -> NDArray[Any]:
        """Every label answered, by most of them; a tie is 0."""
        found = [np.asarray(estimator.predict(X)) for estimator in self.estimators]
        classes = self.classes_
        if classes.ndim > 1:
            return np.asarray(2 * np.sum(found, axis=0) > len(found), dtype=np.int64)
        last = 2 * np.sum([one == classes[-1] for one in found], axis=0) > len(found)
        return np.asarray(np.where(last, classes[-1], classes[0]))


def _envelope(bounds: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Lower and upper bounds (n, m, 2) that hold all of these."""
    lower = np.min([one[..., 0] for one in bounds], axis=0)
    upper = np.max([one[..., 1] for one in bounds], axis=0)
    return np.stack([lower, upper], axis=-1)
