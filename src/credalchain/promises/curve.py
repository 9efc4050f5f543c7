"""What every level of a promise would buy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length

from credalchain._utils.array_types import FloatArray
from credalchain.labels import Targets, as_indexable_labels, both_answers_seen
from credalchain.model_selection import unwrap
from credalchain.preprocessing import as_indexable
from credalchain.promises.calibration import check_estimator, evaluate_promises, hold_out
from credalchain.promises.classifier import clone_or_default
from credalchain.promises.reading import is_share, read_method, read_promises
from credalchain.promises.statistics import fewest_rows
from credalchain.typing import LabelsLike, MatrixLike, RandomStateLike, RowLoss, VectorLike

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.model_selection import BaseCrossValidator  # slow to import


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
        Calibration rows that count and are tested.
    values, risks, completeness : ndarray of shape (V,)
        From bold to cautious, in the calibration rows. Labels that are constant in Y do not count
        in completeness, unless ``calibration`` is "prefit".
    levels : tuple of float
    value_indices : tuple of int or None
        The index in ``values`` that each level allows; None: it cannot be promised.
    notes : tuple of str
        About the choice of calibration rows.
    """

    risk: str
    confidence: float | None
    parameter: str
    n_rows: int
    values: FloatArray
    risks: FloatArray
    completeness: FloatArray
    levels: tuple[float, ...]
    value_indices: tuple[int | None, ...]
    notes: tuple[str, ...] = ()

    def to_frame(self) -> "pd.DataFrame":
        """A row for each level: the value, what it answers and how often it errs; NaN: nothing."""
        import pandas as pd

        rows = []
        for level, value_index in zip(self.levels, self.value_indices, strict=True):
            cells: tuple[float, ...] = (np.nan, 0.0, np.nan)
            if value_index is not None:
                cells = (
                    float(self.values[value_index]),
                    float(self.completeness[value_index]),
                    float(self.risks[value_index]),
                )
            rows.append((level, *cells, fewest_rows(level, self.confidence)))
        columns = ["level", self.parameter, "completeness", "risk", "rows needed"]
        return pd.DataFrame(rows, columns=columns)


def promise_curve(
    estimator: BaseEstimator,
    X: MatrixLike,
    Y: LabelsLike,
    risk: str | RowLoss = "row_error",
    levels: Sequence[float] = LEVELS,
    *,
    confidence: float | None = None,
    calibration: "float | str | BaseCrossValidator" = 0.3,
    values: VectorLike | None = None,
    random_state: RandomStateLike = None,
    groups: VectorLike | None = None,
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
    groups : array-like of shape (n,), default=None
        As in :meth:`PromisedClassifier.fit`.

    Returns
    -------
    PromiseCurve
    """
    X, Y = as_indexable(X), as_indexable_labels(Y)
    targets, labels = Targets.learn(Y)
    check_consistent_length(X, labels)
    if not np.iterable(levels) or isinstance(levels, (str, dict)) or len(levels) == 0:
        raise ValueError(f"levels must be a list of numbers between 0 and 1, got {levels!r}.")
    if not (callable(risk) or isinstance(risk, str)):
        raise ValueError(f"risk must be a name or a function, got {risk!r}.")
    prefit = isinstance(calibration, str) and calibration == "prefit"
    if not (prefit or is_share(calibration)):
        raise ValueError(
            "calibration must be a share of the rows between 0 and 1, or 'prefit', got "
            f"{calibration!r}."
        )
    names = targets.names.tolist()
    promises = []
    for level in levels:
        if not is_share(level):
            raise ValueError(f"levels must be more than 0 and less than 1, got {level!r}.")
        promises += read_promises({risk: level}, confidence, names)
    method = "conformal" if confidence is None else "learn_then_test"
    read_method(method, calibration, confidence, promises)
    rng = check_random_state(random_state)
    used = estimator if prefit else clone_or_default(estimator, random_state, rng)
    check_estimator(used)
    held = hold_out(
        used,
        X,
        Y,
        labels,
        [max(promises, key=lambda promise: promise.level)],
        calibration=calibration,
        values=values,
        random_state=rng,
        groups=groups,
    )
    result = evaluate_promises(held, promises, together=False)
    answers = result.answered.any(axis=1)
    allowed = [np.flatnonzero(result.kept[i] & answers) for i in range(len(promises))]
    counted = slice(None) if prefit else both_answers_seen(labels)
    sums = result.evaluated[0].sums
    return PromiseCurve(
        promises[0].risk.name,
        confidence,
        unwrap(held.estimator)[0].caution_parameter,
        int(sums.n[0]),
        held.values,
        sums.risk,
        result.answered[:, counted].mean(axis=1),
        tuple(float(level) for level in levels),
        tuple(int(indices[0]) if len(indices) else None for indices in allowed),
        held.notes,
    )
