"""Choosing a threshold so that recall is kept, against MAPIE on the same probabilities."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from timing import fastest

from credalchain import PromisedClassifier
from credalchain.labels import as_labels

THRESHOLDS = np.arange(0, 1, 0.01)


class Threshold(BaseEstimator):
    """Yes where a probability is above the threshold, else no; X holds the probabilities."""

    caution_parameter = "threshold"
    larger_is_more_cautious = False
    nested_ = False
    threshold = 0.5

    def __init__(self, n_labels: int = 2) -> None:
        self.n_labels = n_labels

    @property
    def label_names_(self) -> NDArray[np.str_]:
        return np.array([f"label{j}" for j in range(self.n_labels)])

    def fit(self, X: Any, Y: Any) -> "Threshold":
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict_path(self, X: Any, values: Any) -> NDArray[np.int8]:
        return (np.asarray(values)[:, None, None] < X).astype(np.int8)

    def read_labels(self, Y: Any) -> NDArray[np.int8]:
        return as_labels(Y, require_zero=False)


def compare(n_rows: int, n_labels: int) -> dict[str, Any]:
    """Seconds, and the thresholds that both choose."""
    from mapie.risk_control import MultiLabelClassificationController

    rng = np.random.default_rng(0)
    p = rng.beta(0.6, 0.9, (n_rows, n_labels))
    Y = (rng.random(p.shape) < 0.1 + 0.8 * p).astype(int)
    Y[np.arange(n_rows), rng.integers(0, n_labels, n_rows)] = 1
    chosen = {}

    def ours() -> None:
        promised = PromisedClassifier(
            Threshold(n_labels), {"missed_positives": 0.1}, calibration="prefit", values=THRESHOLDS
        )
        chosen["ours"] = float(promised.fit(p, Y).values_[0])

    def theirs() -> None:
        controller = MultiLabelClassificationController(
            lambda X: X, risk="recall", target_level=0.9, predict_params=THRESHOLDS
        )
        controller.calibrate(p, Y)
        chosen["theirs"] = float(np.ravel(controller.best_predict_param)[0])

    seconds = {"ours": fastest(ours), "theirs": fastest(theirs)}
    return {**seconds, "ratio": seconds["theirs"] / seconds["ours"], "thresholds": chosen}
