"""Several fitted models that answer where all of them agree."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain.labels import ABSTAIN
from credalchain.model_selection import unwrap

Labels = NDArray[np.int8]


class AgreeingClassifiers:
    """The models of a cross-validation: a label is answered where all of them answer it alike.

    Parameters
    ----------
    estimators : sequence of fitted classifiers or pipelines
        With the same labels and columns.
    """

    def __init__(self, estimators: Sequence[Any]) -> None:
        self.estimators = estimators
        first, _ = unwrap(estimators[0])
        self.caution_parameter = first.caution_parameter
        self.larger_is_more_cautious = first.larger_is_more_cautious
        self.classes_, self.label_names_ = first.classes_, first.label_names_
        self.targets_, self.n_features_in_ = first.targets_, first.n_features_in_
        if hasattr(first, "feature_names_in_"):
            self.feature_names_in_ = first.feature_names_in_

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
