"""Caution chosen by the share of labels answered, and the levels of a promise compared."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing as take_rows

from credalchain._utils.array_types import FloatArray
from credalchain.exceptions import data_warnings_ignored
from credalchain.labels import ABSTAIN, Targets, as_indexable_labels, both_answers_seen
from credalchain.metrics import selective_error, set_accuracy
from credalchain.model_selection import row_groups, rows_of_groups, unwrap
from credalchain.preprocessing import as_indexable
from credalchain.promises.calibration import (
    answers_along,
    caution_values,
    check_estimator,
    evaluate_promises,
    hold_out,
)
from credalchain.promises.classifier import PromisedClassifier
from credalchain.promises.risks import is_share
from credalchain.promises.statistics import fewest_rows
from credalchain.typing import LabelsLike, MatrixLike, RandomStateLike, RowLoss, VectorLike

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.model_selection import BaseCrossValidator  # slow to import

LEVELS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5)
_MAX_HELD_OUT = 2000
MIN_ROWS = 20


@dataclass(frozen=True)
class CautionChoice:
    """Value of the caution parameter, and its results on held-out rows.

    Parameters
    ----------
    parameter : str
        Name of the caution parameter, "s" or "reward".
    value : float
        Its value.
    completeness : float
        Share of labels answered, without those that are constant in training.
    set_accuracy : float
        Share of rows without a wrong answer.
    selective_error : float
        Share of answers that were wrong.
    n_rows : int
        Number of rows held out.

    See Also
    --------
    choose_caution : Choose the value.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier, choose_caution
    >>> from credalchain.datasets import load_embedded_yeast
    >>> X, Y, *_ = load_embedded_yeast()
    >>> chain = CredalChainClassifier(order="given")
    >>> chosen = choose_caution(chain, X[:400], Y[:400], random_state=0)
    >>> chain = chain.set_params(**{chosen.parameter: chosen.value}).fit(X[:400], Y[:400])
    """

    parameter: str
    value: float
    completeness: float
    set_accuracy: float
    selective_error: float
    n_rows: int

    def __str__(self) -> str:
        return (
            f"{self.parameter} = {self.value:.4g} answers {self.completeness:.0%} of the labels of "
            f"{self.n_rows} rows held out: {self.selective_error:.1%} of the answers wrong, "
            f"{self.set_accuracy:.0%} of the rows without a wrong one"
        )


def choose_caution(
    estimator: BaseEstimator,
    X: MatrixLike,
    Y: LabelsLike,
    *,
    completeness: float = 0.8,
    n_rows: int | None = None,
    random_state: RandomStateLike = None,
    groups: VectorLike | None = None,
) -> CautionChoice:
    """Choose the least cautious value that answers at most a given share of the labels.

    The meaning of s or of a reward depends on the data; that of a share of labels answered does
    not. A quarter of the rows (at most 2000) is held out to find the value. The effect of s is
    relative to the number of training rows, so the value found is scaled for a fit on all of X.
    Labels that are constant do not count. There is no guarantee; for one, see
    :class:`PromisedClassifier`.

    Parameters
    ----------
    estimator : unfitted classifier of this package, or a pipeline that ends in one
        A clone is fitted.
    X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
        Training rows.
    Y : array-like of shape (n_samples, n_labels)
        Labels, some of which may be missing.
    completeness : float, default=0.8
        Share of labels to be answered.
    n_rows : int, default=None
        Number of rows that the classifier will be fitted to, if X is a sample of them.
    random_state : int, RandomState or None, default=None
        Seed of the random choice of the held-out rows.
    groups : array-like of shape (n_samples,), default=None
        Group of each row, such as a patient; rows of a group are held out together. If None, equal
        rows form a group, as in :meth:`PromisedClassifier.fit`.

    Returns
    -------
    CautionChoice
        The value, and its results on the held-out rows.

    See Also
    --------
    PromisedClassifier : Choose the caution by a promise about errors (risk control).

    Examples
    --------
    >>> import numpy as np
    >>> from credalchain import CredalChainClassifier, choose_caution
    >>> X = np.random.default_rng(0).normal(size=(400, 3))
    >>> Y = (X[:, :2] + np.random.default_rng(1).normal(size=(400, 2)) > 0).astype(int)
    >>> chosen = choose_caution(CredalChainClassifier(order="given"), X, Y, random_state=0)
    >>> 0.6 < chosen.completeness <= 0.8
    True
    """
    (choice,) = choose_cautions(
        estimator, X, Y, [completeness], n_rows=n_rows, random_state=random_state, groups=groups
    )
    return choice


def choose_cautions(
    estimator: Any, X: Any, Y: Any, shares: Any, *, n_rows: Any, random_state: Any, groups: Any
) -> list[CautionChoice]:
    """Choose as :func:`choose_caution`, for several shares."""
    from sklearn.model_selection import train_test_split  # slow to import

    check_estimator(estimator)
    for share in shares:
        if not (isinstance(share, (int, float)) and 0 < share <= 1):
            raise ValueError(f"completeness must be between 0 and 1, got {share!r}.")
    table, labels = as_indexable(X), as_indexable_labels(Y)
    n = table.shape[0]
    if n < MIN_ROWS:
        raise ValueError(f"X must have at least {MIN_ROWS} rows to hold some out, got {n}.")
    group_of = row_groups(table, Targets.learn(labels)[1], groups)
    n_groups = int(group_of.max(initial=-1)) + 1
    n_held_out = min(n_groups // 4, _MAX_HELD_OUT)
    if n_held_out == 0:
        raise ValueError(
            f"groups must have at least 4 different values to hold some out, got {n_groups}."
        )
    parts = train_test_split(np.arange(n_groups), test_size=n_held_out, random_state=random_state)
    train, test = (rows_of_groups(group_of, part) for part in parts)
    with data_warnings_ignored():
        fitted = clone(estimator).fit(take_rows(table, train), take_rows(labels, train))
        final, _ = unwrap(fitted)
        truth, values = final.read_labels(take_rows(labels, test)), caution_values(fitted, None)
        path = answers_along(fitted, take_rows(table, test), values)
    learned = both_answers_seen(final.read_labels(take_rows(labels, train)))
    answered = (path[:, :, learned] != ABSTAIN).mean(axis=(1, 2))
    scale = (n_rows or n) / len(train) if final.caution_parameter == "s" else 1.0
    chosen = []
    for share in shares:
        fitting = np.flatnonzero(answered <= share + 1e-9)
        value_index = int(fitting[0]) if len(fitting) else int(answered.argmin())
        value, found = float(values[value_index]) * scale, float(answered[value_index])
        rates = set_accuracy(truth, path[value_index]), selective_error(truth, path[value_index])
        chosen.append(CautionChoice(final.caution_parameter, value, found, *rates, len(test)))
    return chosen


@dataclass(frozen=True, eq=False)
class PromiseCurve:
    """Curve of risk and completeness along the caution parameter, and the value for each level.

    Parameters
    ----------
    risk : str
        Name of the risk.
    confidence : float or None
        Probability with which a promise is kept; None means in expectation.
    parameter : str
        Name of the caution parameter.
    n_rows : int
        Number of calibration rows that count and are tested.
    values, risks, completeness : ndarray of shape (n_values,)
        Values from least to most cautious, with the risk and the share answered in the calibration
        rows. Labels that are constant in Y do not count in completeness, unless ``calibration`` is
        "prefit".
    found : ndarray of shape (n_values,)
        Share of the true labels that are answered yes; NaN if there are none.
    levels : tuple of float
        Levels of the risk.
    value_indices : tuple of int or None
        Index in ``values`` of the value for each level; None if the level cannot be promised.
    notes : tuple of str, default=()
        Notes on the choice of calibration rows.

    See Also
    --------
    promise_curve : Compute the curve.
    credalchain.plotting.plot_promise_curve : Plot the curve.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier, promise_curve
    >>> from credalchain.datasets import load_embedded_yeast
    >>> X, Y, *_ = load_embedded_yeast()
    >>> chain = CredalChainClassifier(order="given")
    >>> curve = promise_curve(chain, X[:400], Y[:400], risk="selective_error", confidence=0.9)
    >>> curve.to_frame().shape[0] == len(curve.levels)
    True
    """

    risk: str
    confidence: float | None
    parameter: str
    n_rows: int
    values: FloatArray
    risks: FloatArray
    completeness: FloatArray
    found: FloatArray
    levels: tuple[float, ...]
    value_indices: tuple[int | None, ...]
    notes: tuple[str, ...] = ()

    def to_frame(self) -> "pd.DataFrame":
        """Return the value, the share of labels answered, the recall and the risk at each level.

        Returns
        -------
        DataFrame
            A row for each level.
        """
        import pandas as pd

        columns = np.vstack([self.values, self.completeness, self.found, self.risks])
        cells = [
            (np.nan, 0.0, 0.0, np.nan) if index is None else columns[:, index]
            for index in self.value_indices
        ]
        frame = pd.DataFrame(cells, columns=[self.parameter, "completeness", "found", "risk"])
        frame.insert(0, "level", self.levels)
        return frame.assign(
            **{"rows needed": [fewest_rows(level, self.confidence) for level in self.levels]}
        )


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
    """Compute the share of labels answered at several levels of a promised risk, from one fit.

    A guarantee of :class:`PromisedClassifier` holds for a level that is fixed in advance. To choose
    a level, compute the curve on rows that are not used again.

    Parameters
    ----------
    estimator : classifier of this package or a pipeline that ends in one
        As in :class:`PromisedClassifier`.
    X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
        Rows to fit and to calibrate on.
    Y : array-like of shape (n_samples, n_labels)
        Labels, some of which may be missing.
    risk : str or callable, default="row_error"
        As in :class:`PromisedClassifier`.
    levels : sequence of float, default=(0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5)
        Levels of the risk. Those for which there are too few rows have no value.
    confidence : float, default=None
        As in :class:`PromisedClassifier`.
    calibration : float, "prefit" or cross-validation splitter, default=0.3
        As in :class:`PromisedClassifier`.
    values : array-like, default=None
        As in :class:`PromisedClassifier`.
    random_state : int, RandomState or None, default=None
        Determines the calibration rows.
    groups : array-like of shape (n_samples,), default=None
        As in :meth:`PromisedClassifier.fit`.

    Returns
    -------
    PromiseCurve
        Risk and completeness of each value, and the value that each level allows.

    Raises
    ------
    ValueError
        If a level is not between 0 and 1, or ``risk`` or ``calibration`` is invalid.

    See Also
    --------
    PromisedClassifier : Keep a promise at one level.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier, promise_curve
    >>> from credalchain.datasets import load_embedded_yeast
    >>> X, Y, *_ = load_embedded_yeast()
    >>> chain = CredalChainClassifier(order="given")
    >>> curve = promise_curve(
    ...     chain, X[:400], Y[:400], "selective_error", levels=(0.1, 0.2), confidence=0.9
    ... )
    >>> curve.levels, len(curve.value_indices)
    ((0.1, 0.2), 2)
    """
    if not np.iterable(levels) or isinstance(levels, (str, dict)) or len(levels) == 0:
        raise ValueError(f"levels must be a list of numbers between 0 and 1, got {levels!r}.")
    for level in levels:
        if not is_share(level):
            raise ValueError(f"levels must be more than 0 and less than 1, got {level!r}.")
    if not (callable(risk) or isinstance(risk, str)):
        raise ValueError(f"risk must be a name or a function, got {risk!r}.")
    if not (calibration == "prefit" or is_share(calibration)):
        raise ValueError(
            "calibration must be a share of the rows between 0 and 1, or 'prefit', got "
            f"{calibration!r}."
        )
    easiest = PromisedClassifier(
        estimator,
        {risk: max(levels)},
        confidence=confidence,
        calibration=calibration,
        values=values,
        random_state=random_state,
    )
    held = hold_out(easiest, X, Y, groups)
    promises = [replace(held.promises[0], level=float(level)) for level in levels]
    result = evaluate_promises(held.parts, promises, together=False)
    answers = result.answered.any(axis=1)
    allowed = [np.flatnonzero(result.kept[i] & answers) for i in range(len(promises))]
    sums = result.evaluated[0].sums
    return PromiseCurve(
        promises[0].risk.name,
        confidence,
        unwrap(held.estimator)[0].caution_parameter,
        int(sums.n[0]),
        result.values,
        sums.risk,
        result.answered[:, held.counted].mean(axis=1),
        result.found.sum(axis=1) / (result.positives.sum() or np.nan),
        tuple(promise.level for promise in promises),
        tuple(int(indices[0]) if len(indices) else None for indices in allowed),
        held.notes,
    )
