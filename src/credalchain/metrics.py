"""Measures for partial predictions: functions of the truth and a prediction in {0, 1, *}.

Missing true labels (see ``as_labels``) are left out: a measure uses the observed cells of a
row, and a row without any leaves the mean. Completeness and set size do not look at the
truth at all.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from credalchain.labels import ABSTAIN, MISSING, as_labels, check_names

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class _Cells:
    """Which cells are observed, answered and wrong, each (n, m)."""

    observed: NDArray[np.bool_]
    answered: NDArray[np.bool_]
    wrong: NDArray[np.bool_]

    @property
    def n_observed(self) -> NDArray[np.int64]:
        return np.asarray(self.observed.sum(axis=1))

    @property
    def n_answered(self) -> NDArray[np.int64]:
        """Answered where the truth is known."""
        return np.asarray((self.answered & self.observed).sum(axis=1))

    @property
    def n_wrong(self) -> NDArray[np.int64]:
        return np.asarray(self.wrong.sum(axis=1))


def _partial(prediction: Any) -> NDArray[np.int8]:
    labels = prediction.labels if _is_prediction(prediction) else prediction
    return as_labels(labels, name="prediction", require_zero=False)


def _is_prediction(value: Any) -> bool:
    """A CredalPrediction, and not a data frame with columns of those names."""
    return hasattr(value, "log_odds") and not hasattr(value, "columns")


def _cells(Y_true: Any, prediction: Any) -> _Cells:
    if _is_prediction(Y_true):
        raise TypeError("Y_true must be the true labels, got a prediction: the truth comes first.")
    if _is_prediction(prediction):
        check_names(Y_true, prediction.label_names, "Y_true")
    truth = as_labels(Y_true, name="Y_true", require_zero=False)
    labels = _partial(prediction)
    if truth.shape != labels.shape:
        raise ValueError(
            f"Y_true and prediction must have the same shape, got {truth.shape} and {labels.shape}."
        )
    observed, answered = truth != MISSING, labels != ABSTAIN
    return _Cells(observed, answered, observed & answered & (truth != labels))


def _rows_or_mean(values: Any, counted: NDArray[np.bool_], per_row: bool) -> Any:
    """Values of all rows (NaN where the row does not count), or their mean."""
    rows = np.where(counted, values, np.nan)
    if per_row:
        return rows
    return float(rows[counted].mean()) if counted.any() else float("nan")


@overload
def set_accuracy(Y_true: Any, prediction: Any, *, per_row: Literal[False] = ...) -> float: ...
@overload
def set_accuracy(Y_true: Any, prediction: Any, *, per_row: Literal[True]) -> FloatArray: ...
def set_accuracy(Y_true: Any, prediction: Any, *, per_row: bool = False) -> Any:
    """1 for a row in which no answered label is wrong, else 0; 1 if nothing is answered.

    Examples
    --------
    >>> set_accuracy([[1, 0, 1], [0, 0, 1]], [[1, -1, 1], [1, -1, -1]])
    0.5
    """
    cells = _cells(Y_true, prediction)
    return _rows_or_mean(cells.n_wrong == 0, cells.n_observed > 0, per_row)


@overload
def completeness(Y_true: Any, prediction: Any, *, per_row: Literal[False] = ...) -> float: ...
@overload
def completeness(Y_true: Any, prediction: Any, *, per_row: Literal[True]) -> FloatArray: ...
def completeness(Y_true: Any, prediction: Any, *, per_row: bool = False) -> Any:
    """The share of labels that are answered. ``Y_true`` may be None.

    Examples
    --------
    >>> completeness(None, [[1, -1], [-1, -1]])
    0.25
    """
    answered = _partial(prediction) != ABSTAIN
    everyone = np.ones(len(answered), dtype=bool)
    return _rows_or_mean(answered.mean(axis=1), everyone, per_row)


@overload
def incorrectness(Y_true: Any, prediction: Any, *, per_row: Literal[False] = ...) -> float: ...
@overload
def incorrectness(Y_true: Any, prediction: Any, *, per_row: Literal[True]) -> FloatArray: ...
def incorrectness(Y_true: Any, prediction: Any, *, per_row: bool = False) -> Any:
    """Wrong answers over answers, row by row; 0 for a row with no answer.

    Examples
    --------
    >>> incorrectness([[1, 0], [1, 1]], [[1, 1], [-1, -1]])
    0.25
    """
    cells = _cells(Y_true, prediction)
    rate = cells.n_wrong / np.maximum(cells.n_answered, 1)
    return _rows_or_mean(rate, cells.n_observed > 0, per_row)


def selective_error(Y_true: Any, prediction: Any) -> float:
    """All wrong answers over all answers, pooled; NaN if nothing was answered.

    Examples
    --------
    >>> selective_error([[1, 0], [1, 1]], [[1, 1], [-1, 1]])
    0.3333333333333333
    """
    cells = _cells(Y_true, prediction)
    answers = int(cells.n_answered.sum())
    return int(cells.n_wrong.sum()) / answers if answers else float("nan")


@overload
def precise_accuracy(Y_true: Any, prediction: Any, *, per_row: Literal[False] = ...) -> float: ...
@overload
def precise_accuracy(Y_true: Any, prediction: Any, *, per_row: Literal[True]) -> FloatArray: ...
def precise_accuracy(Y_true: Any, prediction: Any, *, per_row: bool = False) -> Any:
    """The share of rows in which a prediction without stars is right everywhere."""
    cells = _cells(Y_true, prediction)
    if not cells.answered.all():
        raise ValueError(
            "prediction must have no stars here, got some: use the output of predict, "
            "or set_accuracy for partial predictions."
        )
    return _rows_or_mean(cells.n_wrong == 0, cells.n_observed > 0, per_row)


@overload
def maximin_accuracy(Y_true: Any, prediction: Any, *, per_row: Literal[False] = ...) -> float: ...
@overload
def maximin_accuracy(Y_true: Any, prediction: Any, *, per_row: Literal[True]) -> FloatArray: ...
def maximin_accuracy(Y_true: Any, prediction: Any, *, per_row: bool = False) -> Any:
    """Exact match after each star is resolved to the side that is better at worst.

    A star becomes 1 if lower > 1 - upper, else 0 (also where the two differ by no more than
    the rounding of their sums, 1e-9 in log-odds). ``prediction`` is a
    :class:`CredalPrediction`, because the bounds are needed.
    """
    if not _is_prediction(prediction):
        raise TypeError(
            "prediction must be a CredalPrediction (from infer), whose bounds resolve the "
            f"stars, got {type(prediction).__name__}."
        )
    labels = _partial(prediction)
    with np.errstate(invalid="ignore"):  # vacuous bounds: inf - inf is NaN, so not above 0
        resolved = (prediction.log_odds.sum(axis=-1) > 1e-9).astype(np.int8)
    cells = _cells(Y_true, np.where(labels == ABSTAIN, resolved, labels))
    return _rows_or_mean(cells.n_wrong == 0, cells.n_observed > 0, per_row)


@overload
def mean_set_size(Y_true: Any, prediction: Any, *, per_row: Literal[False] = ...) -> float: ...
@overload
def mean_set_size(Y_true: Any, prediction: Any, *, per_row: Literal[True]) -> FloatArray: ...
def mean_set_size(Y_true: Any, prediction: Any, *, per_row: bool = False) -> Any:
    """Label vectors a prediction allows, over all label vectors. ``Y_true`` may be None.

    Examples
    --------
    >>> mean_set_size(None, [[1, -1], [0, 0]])
    0.375
    """
    answered = _partial(prediction) != ABSTAIN
    everyone = np.ones(len(answered), dtype=bool)
    return _rows_or_mean(0.5 ** answered.sum(axis=1), everyone, per_row)


@overload
def discounted_utility(
    Y_true: Any, prediction: Any, *, star: float, per_row: Literal[False] = ...
) -> float: ...
@overload
def discounted_utility(
    Y_true: Any, prediction: Any, *, star: float, per_row: Literal[True]
) -> FloatArray: ...
def discounted_utility(Y_true: Any, prediction: Any, *, star: float, per_row: bool = False) -> Any:
    """Per label: right 1, wrong 0, left open ``star``; the mean over labels.

    Parameters
    ----------
    star : float
        What an open label is worth. At 0.5 abstaining is worth a coin toss; 0.65 and 0.80
        are the values in use for u65 and u80.
    """
    _check_worth("star", star)
    cells = _cells(Y_true, prediction)
    open_cells = cells.n_observed - cells.n_answered
    worth = cells.n_answered - cells.n_wrong + star * open_cells
    return _rows_or_mean(worth / np.maximum(cells.n_observed, 1), cells.n_observed > 0, per_row)


def utility_65(Y_true: Any, prediction: Any) -> float:
    """u65: :func:`discounted_utility` with an open label worth 0.65."""
    return discounted_utility(Y_true, prediction, star=0.65)


def utility_80(Y_true: Any, prediction: Any) -> float:
    """u80: :func:`discounted_utility` with an open label worth 0.80."""
    return discounted_utility(Y_true, prediction, star=0.80)


@overload
def abstention_loss(
    Y_true: Any, prediction: Any, *, cost: float = ..., per_row: Literal[False] = ...
) -> float: ...
@overload
def abstention_loss(
    Y_true: Any, prediction: Any, *, cost: float = ..., per_row: Literal[True]
) -> FloatArray: ...
def abstention_loss(
    Y_true: Any, prediction: Any, *, cost: float = 0.25, per_row: bool = False
) -> Any:
    """Hamming loss with abstention: (wrong + cost * stars) over labels.

    Parameters
    ----------
    cost : float, default=0.25
        What an open label costs, in wrong labels.
    """
    _check_worth("cost", cost)
    cells = _cells(Y_true, prediction)
    loss = cells.n_wrong + cost * (cells.n_observed - cells.n_answered)
    return _rows_or_mean(loss / np.maximum(cells.n_observed, 1), cells.n_observed > 0, per_row)


def _check_worth(name: str, value: Any) -> None:
    if not (np.ndim(value) == 0 and np.isreal(value) and 0 <= value <= 1):
        raise ValueError(f"{name} must be a number between 0 and 1, got {value!r}.")


def completeness_curve(Y_true: Any, path: Any) -> tuple[FloatArray, FloatArray]:
    """Completeness and set-accuracy along a path of predictions.

    Parameters
    ----------
    Y_true : array-like of shape (n, m)
    path : array-like of shape (n_values, n, m)
        Partial predictions from bold to cautious, for instance from ``predict_path``.

    Returns
    -------
    completeness, set_accuracy : ndarrays of shape (n_values,)
    """
    predictions = list(path)
    return (
        np.array([completeness(Y_true, prediction) for prediction in predictions]),
        np.array([set_accuracy(Y_true, prediction) for prediction in predictions]),
    )


@dataclass(frozen=True)
class Measure:
    """A measure and what it needs: the partial labels, the precise ones, or the bounds."""

    function: Callable[..., float]
    greater_is_better: bool
    needs: Literal["partial", "precise", "bounds"] = "partial"


MEASURES = {
    "set_accuracy": Measure(set_accuracy, True),
    "completeness": Measure(completeness, True),
    "incorrectness": Measure(incorrectness, False),
    "selective_error": Measure(selective_error, False),
    "precise_accuracy": Measure(precise_accuracy, True, "precise"),
    "maximin_accuracy": Measure(maximin_accuracy, True, "bounds"),
    "mean_set_size": Measure(mean_set_size, False),
    "utility_65": Measure(utility_65, True),
    "utility_80": Measure(utility_80, True),
    "abstention_loss": Measure(abstention_loss, False),
}
"""All measures by name."""
