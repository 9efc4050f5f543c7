"""What every level of a promise would buy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_consistent_length

from credalchain.estimators.decision import JointDecision
from credalchain.estimators.targets import Targets
from credalchain.model_selection import unwrap
from credalchain.preprocessing import as_rows
from credalchain.promises.calibration import all_held_out, hold_out, judge
from credalchain.promises.reading import read_method, read_promises
from credalchain.promises.statistics import fewest_rows

FloatArray = NDArray[np.float64]

LEVELS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5)


@dataclass(frozen=True, eq=False)
class PromiseCurve:
    """Risk and completeness along the caution parameter, and what every level would buy.

    Attributes
    ----------
    risk : str
    confidence : float or None
    parameter : str
        The name of the caution parameter.
    n_rows : int
        Calibration rows without missing labels.
    values, risks, completeness : ndarray of shape (V,)
        From bold to cautious, in the calibration rows.
    levels : tuple of float
    bought : tuple of int or None
        The place in ``values`` that each level allows; None: it cannot be promised.
    """

    risk: str
    confidence: float | None
    parameter: str
    n_rows: int
    values: FloatArray
    risks: FloatArray
    completeness: FloatArray
    levels: tuple[float, ...]
    bought: tuple[int | None, ...]

    def to_frame(self) -> Any:
        """A row for each level: the value, what it answers and how often it errs; NaN: nothing."""
        import pandas as pd

        rows = []
        for level, at in zip(self.levels, self.bought, strict=True):
            found: tuple[float, ...] = (np.nan, 0.0, np.nan)
            if at is not None:
                found = (
                    float(self.values[at]),
                    float(self.completeness[at]),
                    float(self.risks[at]),
                )
            rows.append((level, *found, fewest_rows(level, self.confidence)))
        columns = ["level", self.parameter, "completeness", "risk", "rows needed"]
        return pd.DataFrame(rows, columns=columns)


def promise_curve(
    estimator: Any,
    X: Any,
    Y: Any,
    risk: Any = "row_error",
    levels: Sequence[float] = LEVELS,
    *,
    confidence: float | None = None,
    calibration: Any = 0.3,
    values: Any = None,
    random_state: Any = None,
) -> PromiseCurve:
    """What promises at several levels would buy, from one fit.

    A guarantee is for one level that is chosen beforehand, by :class:`PromisedClassifier`; to
    choose a level, look at what all of them buy in rows that are not used again.

    Parameters
    ----------
    estimator : as in :class:`PromisedClassifier`
    X : array-like, data frame or scipy sparse of shape (n, n_features)
    Y : array-like of shape (n, n_labels)
    risk : str or callable, default="row_error"
    levels : sequence of float
        Those for which there are too few rows are shown as "nothing".
    confidence, calibration, values, random_state
        As in :class:`PromisedClassifier`; ``calibration`` is a share of the rows or "prefit".

    Returns
    -------
    PromiseCurve
    """
    X = as_rows(X)
    targets, labels = Targets.learn(Y)
    check_consistent_length(X, labels)
    names = targets.names.tolist()
    promises = [read_promises({risk: level}, confidence, names)[0] for level in levels]
    if not promises:
        raise ValueError("levels must be several numbers between 0 and 1, got none.")
    read_method("learn_then_test" if confidence else "conformal", calibration, confidence, promises)
    easiest = [max(promises, key=lambda promise: promise.level)]
    if calibration == "prefit":
        held = all_held_out(
            estimator, X, Y, labels, easiest, values=values, random_state=random_state
        )
    else:
        unfitted = JointDecision(random_state=0) if estimator is None else clone(estimator)
        held = hold_out(
            unfitted,
            X,
            Y,
            labels,
            easiest,
            share=calibration,
            values=values,
            random_state=random_state,
        )
    judged = judge(held, promises)
    places = [np.flatnonzero(one) for one in judged.kept]
    found = judged.tallies[0]
    return PromiseCurve(
        promises[0].risk.name,
        confidence,
        unwrap(held.estimator)[0].caution_parameter,
        int(found.n[0]),
        held.values,
        found.risk,
        judged.answered.mean(axis=1),
        tuple(float(level) for level in levels),
        tuple(int(one[0]) if len(one) else None for one in places),
    )
