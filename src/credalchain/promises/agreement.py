"""Several fitted models that answer where all of them agree."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain.array_types import Labels
from credalchain.labels import ABSTAIN
from credalchain.model_selection import unwrap
from credalchain.validation import check_instance


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
        self.targets_ = first.targets_
        for name in ("n_features_in_", "feature_names_in_"):  # of what comes into a pipeline
            if hasattr(estimators[0], name):
                setattr(self, name, getattr(estimators[0], name))

    def check_state(self) -> None:
        """Validate the fitted attributes, as those of a model that was stored."""
        check_instance("estimators", self.estimators, list)
        shapes = {
            (type(final), tuple(final.label_names_), final.n_features_in_)
            for final in (unwrap(estimator)[0] for estimator in self.estimators)
        }
        if len(shapes) != 1:
            raise ValueError("the models that must agree have different labels or columns.")

    @property
    def nested_(self) -> bool:
        """Whether they all are: what all answer alike is then nested, too."""
        return all(unwrap(estimator)[0].nested_ for estimator in self.estimators)

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
        predictions = [final.infer(Z, **options) for final, Z in pairs]
        labels = predictions[0].labels
        for other in predictions[1:]:
            labels = np.where(labels == other.labels, labels, ABSTAIN)
        return replace(
            predictions[0],
            labels=labels,
            log_odds=_envelope([prediction.log_odds for prediction in predictions]),
            model_interval=_envelope([prediction.interval for prediction in predictions]),
        )

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The mean of theirs."""
        probabilities = [estimator.predict_proba(X) for estimator in self.estimators]
        return np.asarray(np.mean(probabilities, axis=0))

    def predict(self, X: Any) -> NDArray[Any]:
        """Every label answered, by most of them; a tie is 0."""
        predictions = [np.asarray(estimator.predict(X)) for estimator in self.estimators]
        classes = self.classes_
        if classes.ndim > 1:
            return np.asarray(2 * np.sum(predictions, axis=0) > len(predictions), dtype=np.int64)
        n_last = np.sum([labels == classes[-1] for labels in predictions], axis=0)
        return np.asarray(np.where(2 * n_last > len(predictions), classes[-1], classes[0]))


def _envelope(bounds: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Lower and upper bounds (n, m, 2) that hold all of these."""
    lower = np.min([bound[..., 0] for bound in bounds], axis=0)
    upper = np.max([bound[..., 1] for bound in bounds], axis=0)
    return np.stack([lower, upper], axis=-1)
