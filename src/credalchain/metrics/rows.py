"""Measures that are a mean over rows (or a share of all cells).

Missing true labels (see ``as_labels``) are left out: a measure uses the observed cells of a
row, and a row without any leaves the mean. Completeness and set size do not look at the
truth at all.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.array_types import FloatArray
from credalchain.labels import ABSTAIN
from credalchain.metrics.tally import (
    Counts,
    Measure,
    Tally,
    partial_labels_of,
    require_bounds,
    tally,
    tally_of,
)
from credalchain.typing import LabelsLike, Prediction, PredictionLike

_WORTH_65, _WORTH_80, _COST = 0.65, 0.80, 0.25


def _without_truth(prediction: Any) -> Tally:
    """For measures that do not look at the truth."""
    labels = partial_labels_of(prediction)
    return tally(np.zeros_like(labels), labels)


def mean_over_rows(rows: Any, counted: NDArray[np.bool_], row_weight: Counts | None = None) -> Any:
    """The mean over the rows that count, of each prediction; NaN if none does."""
    if not counted.any():
        return np.full(np.shape(rows)[:-1], np.nan)
    if row_weight is not None:
        return np.average(rows, axis=-1, weights=row_weight * counted)
    return np.mean(rows if counted.all() else rows[..., counted], axis=-1, dtype=np.float64)


def rows_or_mean(rows: Any, counted: NDArray[np.bool_], per_row: bool) -> float | FloatArray:
    """Values of all rows (NaN where the row does not count), or their mean."""
    return np.where(counted, rows, np.nan) if per_row else float(mean_over_rows(rows, counted))


# -- each measure's value in every row, from a tally ---------------------------------------------


def _right_rows(t: Tally) -> Any:
    return t.wrong == 0


def _complete_rows(t: Tally) -> Any:
    return t.answered / t.n_labels


def _incorrect_rows(t: Tally) -> Any:
    return t.wrong / np.maximum(t.judged, 1)


def _size_rows(t: Tally) -> Any:
    return 0.5**t.answered


def _utility_rows(t: Tally, abstention: float) -> Any:
    worth = t.judged - t.wrong + abstention * (t.observed - t.judged)
    return worth / np.maximum(t.observed, 1)


def _loss_rows(t: Tally, cost: float) -> Any:
    return (t.wrong + cost * (t.observed - t.judged)) / np.maximum(t.observed, 1)


def _selective_error_of(t: Tally) -> Any:
    """Pooled over the rows, so not a mean of them."""
    row_weight = 1 if t.times is None else t.times
    answers = np.asarray((row_weight * t.judged).sum(axis=-1))
    with np.errstate(invalid="ignore"):  # 0/0: nothing answered
        return (row_weight * t.wrong).sum(axis=-1) / answers


# -- the measures ----------------------------------------------------------------------------


@overload
def set_accuracy(
    Y_true: LabelsLike, prediction: PredictionLike, *, per_row: Literal[False] = ...
) -> float: ...
@overload
def set_accuracy(
    Y_true: LabelsLike, prediction: PredictionLike, *, per_row: Literal[True]
) -> FloatArray: ...
def set_accuracy(
    Y_true: LabelsLike, prediction: PredictionLike, *, per_row: bool = False
) -> float | FloatArray:
    """1 for a row in which no answered label is wrong, else 0; 1 if nothing is answered.

    Examples
    --------
    >>> set_accuracy([[1, 0, 1], [0, 0, 1]], [[1, -1, 1], [1, -1, -1]])
    0.5
    """
    t = tally_of(Y_true, prediction)
    return rows_or_mean(_right_rows(t), t.observed > 0, per_row)


@overload
def completeness(
    Y_true: LabelsLike | None, prediction: PredictionLike, *, per_row: Literal[False] = ...
) -> float: ...
@overload
def completeness(
    Y_true: LabelsLike | None, prediction: PredictionLike, *, per_row: Literal[True]
) -> FloatArray: ...
def completeness(
    Y_true: LabelsLike | None, prediction: PredictionLike, *, per_row: bool = False
) -> float | FloatArray:
    """The share of labels that are answered. ``Y_true`` may be None.

    Examples
    --------
    >>> completeness(None, [[1, -1], [-1, -1]])
    0.25
    """
    t = _without_truth(prediction)
    return rows_or_mean(_complete_rows(t), t.observed > 0, per_row)


@overload
def incorrectness(
    Y_true: LabelsLike, prediction: PredictionLike, *, per_row: Literal[False] = ...
) -> float: ...
@overload
def incorrectness(
    Y_true: LabelsLike, prediction: PredictionLike, *, per_row: Literal[True]
) -> FloatArray: ...
def incorrectness(
    Y_true: LabelsLike, prediction: PredictionLike, *, per_row: bool = False
) -> float | FloatArray:
    """Wrong answers over answers, row by row; 0 for a row with no answer.

    Examples
    --------
    >>> incorrectness([[1, 0], [1, 1]], [[1, 1], [-1, -1]])
    0.25
    """
    t = tally_of(Y_true, prediction)
    return rows_or_mean(_incorrect_rows(t), t.observed > 0, per_row)


def selective_error(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """All wrong answers over all answers, pooled; NaN if nothing was answered.

    Examples
    --------
    >>> selective_error([[1, 0], [1, 1]], [[1, 1], [-1, 1]])
    0.3333333333333333
    """
    return float(_selective_error_of(tally_of(Y_true, prediction)))


@overload
def precise_accuracy(
    Y_true: LabelsLike, prediction: PredictionLike, *, per_row: Literal[False] = ...
) -> float: ...
@overload
def precise_accuracy(
    Y_true: LabelsLike, prediction: PredictionLike, *, per_row: Literal[True]
) -> FloatArray: ...
def precise_accuracy(
    Y_true: LabelsLike, prediction: PredictionLike, *, per_row: bool = False
) -> float | FloatArray:
    """The share of rows in which a complete prediction is right everywhere."""
    t = tally_of(Y_true, prediction)
    if (t.answered < t.n_labels).any():
        raise ValueError(
            "prediction must leave no label open here, got some: use the output of predict, "
            "or set_accuracy for partial predictions."
        )
    return rows_or_mean(_right_rows(t), t.observed > 0, per_row)


@overload
def maximin_accuracy(
    Y_true: LabelsLike, prediction: Prediction, *, per_row: Literal[False] = ...
) -> float: ...
@overload
def maximin_accuracy(
    Y_true: LabelsLike, prediction: Prediction, *, per_row: Literal[True]
) -> FloatArray: ...
def maximin_accuracy(
    Y_true: LabelsLike, prediction: Prediction, *, per_row: bool = False
) -> float | FloatArray:
    """Exact match after each open label is resolved to the side that is better at worst.

    An open label becomes 1 if lower > 1 - upper, else 0 (also where the two differ by no more than
    the rounding of their sums, 1e-9 in log-odds). ``prediction`` is a
    :class:`credalchain.CredalPrediction`, because the bounds are needed.
    """
    require_bounds(prediction, "whose bounds resolve what is open")
    t = tally_of(Y_true, resolved_labels(prediction))
    return rows_or_mean(_right_rows(t), t.observed > 0, per_row)


def resolved_labels(prediction: Prediction) -> NDArray[np.int8]:
    """A CredalPrediction's labels (n, m), the open ones resolved as for ``maximin_accuracy``."""
    labels = partial_labels_of(prediction)
    with np.errstate(invalid="ignore"):  # vacuous bounds: inf - inf is NaN, so not above 0
        resolved = (prediction.log_odds.sum(axis=-1) > 1e-9).astype(np.int8)
    return np.where(labels == ABSTAIN, resolved, labels)


@overload
def mean_set_size(
    Y_true: LabelsLike | None, prediction: PredictionLike, *, per_row: Literal[False] = ...
) -> float: ...
@overload
def mean_set_size(
    Y_true: LabelsLike | None, prediction: PredictionLike, *, per_row: Literal[True]
) -> FloatArray: ...
def mean_set_size(
    Y_true: LabelsLike | None, prediction: PredictionLike, *, per_row: bool = False
) -> float | FloatArray:
    """Label vectors a prediction allows, over all label vectors. ``Y_true`` may be None.

    Examples
    --------
    >>> mean_set_size(None, [[1, -1], [0, 0]])
    0.375
    """
    t = _without_truth(prediction)
    return rows_or_mean(_size_rows(t), t.observed > 0, per_row)


@overload
def discounted_utility(
    Y_true: LabelsLike,
    prediction: PredictionLike,
    *,
    abstention: float,
    per_row: Literal[False] = ...,
) -> float: ...
@overload
def discounted_utility(
    Y_true: LabelsLike, prediction: PredictionLike, *, abstention: float, per_row: Literal[True]
) -> FloatArray: ...
def discounted_utility(
    Y_true: LabelsLike, prediction: PredictionLike, *, abstention: float, per_row: bool = False
) -> float | FloatArray:
    """Per label: right 1, wrong 0, left open ``abstention``; the mean over labels.

    Parameters
    ----------
    abstention : float
        What an open label is worth. At 0.5 abstaining is worth a coin toss; 0.65 and 0.80
        are the values in use for u65 and u80.
    """
    _check_worth("abstention", abstention)
    t = tally_of(Y_true, prediction)
    return rows_or_mean(_utility_rows(t, abstention), t.observed > 0, per_row)


def utility_65(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """u65: :func:`discounted_utility` with an open label worth 0.65."""
    return discounted_utility(Y_true, prediction, abstention=_WORTH_65)


def utility_80(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """u80: :func:`discounted_utility` with an open label worth 0.80."""
    return discounted_utility(Y_true, prediction, abstention=_WORTH_80)


@overload
def abstention_loss(
    Y_true: LabelsLike,
    prediction: PredictionLike,
    *,
    cost: float = ...,
    per_row: Literal[False] = ...,
) -> float: ...
@overload
def abstention_loss(
    Y_true: LabelsLike, prediction: PredictionLike, *, cost: float = ..., per_row: Literal[True]
) -> FloatArray: ...
def abstention_loss(
    Y_true: LabelsLike, prediction: PredictionLike, *, cost: float = _COST, per_row: bool = False
) -> float | FloatArray:
    """Hamming loss with abstention: (wrong + cost * open) over labels.

    Parameters
    ----------
    cost : float, default=0.25
        What an open label costs, in wrong labels.
    """
    _check_worth("cost", cost)
    t = tally_of(Y_true, prediction)
    return rows_or_mean(_loss_rows(t, cost), t.observed > 0, per_row)


def hamming_loss(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Wrong answers over all labels; one that was left open costs nothing.

    scikit-learn's measure of the same name where everything is answered.
    """
    return abstention_loss(Y_true, prediction, cost=0.0)


def _check_worth(name: str, value: Any) -> None:
    if not (np.ndim(value) == 0 and np.isreal(value) and 0 <= value <= 1):
        raise ValueError(f"{name} must be a number between 0 and 1, got {value!r}.")


def completeness_curve(
    Y_true: LabelsLike, path: Iterable[PredictionLike]
) -> tuple[FloatArray, FloatArray]:
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
class RowMean:
    """The mean over rows of what ``per_row(tally, **options)`` gives.

    Rows without an observed label are left out of it if ``needs_truth``. An object rather than a
    closure, so that a scorer with it can be pickled.
    """

    per_row: Callable[..., Any]
    options: tuple[tuple[str, float], ...] = ()
    needs_truth: bool = True

    def __call__(self, t: Tally) -> Any:
        counted = t.observed > 0 if self.needs_truth else np.ones(len(t.observed), bool)
        return mean_over_rows(self.per_row(t, **dict(self.options)), counted, t.times)


ROW_MEASURES = {
    "set_accuracy": Measure(set_accuracy, True, of_tally=RowMean(_right_rows)),
    "completeness": Measure(
        completeness, True, of_tally=RowMean(_complete_rows, needs_truth=False)
    ),
    "incorrectness": Measure(incorrectness, False, of_tally=RowMean(_incorrect_rows)),
    "selective_error": Measure(selective_error, False, of_tally=_selective_error_of),
    "precise_accuracy": Measure(precise_accuracy, True, "precise", RowMean(_right_rows)),
    "maximin_accuracy": Measure(maximin_accuracy, True, "bounds", RowMean(_right_rows)),
    "mean_set_size": Measure(mean_set_size, False, of_tally=RowMean(_size_rows, needs_truth=False)),
    "utility_65": Measure(
        utility_65, True, of_tally=RowMean(_utility_rows, (("abstention", _WORTH_65),))
    ),
    "utility_80": Measure(
        utility_80, True, of_tally=RowMean(_utility_rows, (("abstention", _WORTH_80),))
    ),
    "abstention_loss": Measure(
        abstention_loss, False, of_tally=RowMean(_loss_rows, (("cost", _COST),))
    ),
    "hamming_loss": Measure(hamming_loss, False, of_tally=RowMean(_loss_rows, (("cost", 0.0),))),
}
