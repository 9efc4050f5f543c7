"""Precision, recall and F1 of partial predictions, micro and macro.

A label left open is neither a yes nor a no. A positive (a true label that is 1) that was left open
can be counted in two ways:

- ``recall_*`` and ``f1_*`` count **all observed positives**: one that was left open was missed,
  like one that was answered with no. Caution costs recall.
- ``selective_recall_*`` and ``selective_f1_*`` count **the answered cells only**, as
  ``selective_error`` does: a positive that was left open does not count. They measure how good
  the answers are, not how many there are.

Precision is about cells answered with yes, so both are the same.

Micro pools the cells of all labels. Macro is the mean over labels; a label for which the measure is
0/0 (no positive and no yes, say) is left out of it, as with ``zero_division=np.nan`` in
scikit-learn. Where that leaves no label, the result is NaN. Cells with missing truth are left out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
from scipy.special import log_expit

from credalchain._utils.array_types import FloatArray
from credalchain.labels import MISSING
from credalchain.metrics.rows import rows_or_mean
from credalchain.metrics.tally import (
    LabelCounts,
    Measure,
    Tally,
    read_pair,
    require_bounds,
    tally_of,
)
from credalchain.typing import LabelsLike, Prediction, PredictionLike

Ratio = Callable[[LabelCounts], tuple[Any, Any]]


def _precision(c: LabelCounts) -> tuple[Any, Any]:
    return c.right_yes, c.said_yes


def _recall(c: LabelCounts) -> tuple[Any, Any]:
    return c.right_yes, c.positive


def _selective_recall(c: LabelCounts) -> tuple[Any, Any]:
    return c.right_yes, c.answered_positive


def _f1(c: LabelCounts) -> tuple[Any, Any]:
    return 2 * c.right_yes, c.said_yes + c.positive


def _selective_f1(c: LabelCounts) -> tuple[Any, Any]:
    return 2 * c.right_yes, c.said_yes + c.answered_positive


@dataclass(frozen=True)
class CellShare:
    """A share of cells: pooled over labels (micro), or the mean of all labels' shares (macro).

    An object rather than a closure, so that a scorer with it can be pickled.
    """

    ratio: Ratio
    is_macro: bool

    def __call__(self, t: Tally) -> FloatArray:
        numerator, denominator = np.broadcast_arrays(*self.ratio(t.by_label))
        with np.errstate(invalid="ignore"):  # 0/0: not defined
            if not self.is_macro:
                return np.asarray(numerator.sum(axis=-1) / denominator.sum(axis=-1))
            counted = denominator > 0
            shares = np.where(counted, numerator / np.maximum(denominator, 1), 0.0)
            return np.asarray(shares.sum(axis=-1) / counted.sum(axis=-1))


_OF_TALLY = {
    f"{name}_{'macro' if is_macro else 'micro'}": CellShare(ratio, is_macro)
    for name, ratio in (
        ("precision", _precision),
        ("recall", _recall),
        ("f1", _f1),
        ("selective_recall", _selective_recall),
        ("selective_f1", _selective_f1),
    )
    for is_macro in (False, True)
}


# -- the measures ----------------------------------------------------------------------------


def precision_micro(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Of all cells answered with yes, the share that is right; NaN if there are none.

    Examples
    --------
    >>> precision_micro([[1, 1], [0, 1]], [[1, -1], [1, 1]])
    0.6666666666666666
    """
    return float(_OF_TALLY["precision_micro"](tally_of(Y_true, prediction)))


def precision_macro(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Of a label's cells answered with yes, the share that is right; the mean over labels.

    A label that is never answered with yes leaves the mean.

    Examples
    --------
    >>> precision_macro([[1, 1], [0, 1]], [[1, -1], [1, 1]])
    0.75
    """
    return float(_OF_TALLY["precision_macro"](tally_of(Y_true, prediction)))


def recall_micro(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Of all positives, the share answered with yes: one that was left open is not found.

    Examples
    --------
    >>> recall_micro([[1, 1], [0, 1]], [[1, -1], [1, 1]])
    0.6666666666666666
    """
    return float(_OF_TALLY["recall_micro"](tally_of(Y_true, prediction)))


def recall_macro(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Of a label's positives, the share answered with yes; the mean over labels.

    A positive that was left open is not found. A label without positives leaves the mean.

    Examples
    --------
    >>> recall_macro([[1, 1], [0, 1]], [[1, -1], [1, 1]])
    0.75
    """
    return float(_OF_TALLY["recall_macro"](tally_of(Y_true, prediction)))


def selective_recall_micro(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Of all positives that were answered, the share answered with yes.

    A positive that was left open does not count.

    Examples
    --------
    >>> selective_recall_micro([[1, 1], [0, 1]], [[1, -1], [1, 1]])
    1.0
    """
    return float(_OF_TALLY["selective_recall_micro"](tally_of(Y_true, prediction)))


def selective_recall_macro(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Of a label's positives that were answered, the share answered with yes; the mean over labels.

    A label without such positives leaves the mean.

    Examples
    --------
    >>> selective_recall_macro([[1, 1], [0, 1]], [[1, 0], [1, 1]])
    0.75
    """
    return float(_OF_TALLY["selective_recall_macro"](tally_of(Y_true, prediction)))


def f1_micro(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Harmonic mean of ``precision_micro`` and ``recall_micro``: open positives are not found.

    Examples
    --------
    >>> f1_micro([[1, 1], [0, 1]], [[1, -1], [1, 1]])
    0.6666666666666666
    """
    return float(_OF_TALLY["f1_micro"](tally_of(Y_true, prediction)))


def f1_macro(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """F1 of each label, in which open positives are not found; the mean over labels.

    A label without positives that is never answered with yes leaves the mean.

    Examples
    --------
    >>> f1_macro([[1, 1], [1, 1]], [[1, -1], [1, 1]])
    0.8333333333333333
    """
    return float(_OF_TALLY["f1_macro"](tally_of(Y_true, prediction)))


def selective_f1_micro(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Harmonic mean of ``precision_micro`` and ``selective_recall_micro``: answered cells only.

    Examples
    --------
    >>> selective_f1_micro([[1, 1], [0, 1]], [[1, -1], [1, 1]])
    0.8
    """
    return float(_OF_TALLY["selective_f1_micro"](tally_of(Y_true, prediction)))


def selective_f1_macro(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """F1 of each label among its answered cells; the mean over labels.

    Examples
    --------
    >>> selective_f1_macro([[1, 1], [1, 1]], [[1, -1], [1, 1]])
    1.0
    """
    return float(_OF_TALLY["selective_f1_macro"](tally_of(Y_true, prediction)))


CELL_MEASURES = {
    function.__name__: Measure(function, True, of_tally=_OF_TALLY[function.__name__])
    for function in (
        f1_micro,
        f1_macro,
        precision_micro,
        precision_macro,
        recall_micro,
        recall_macro,
        selective_f1_micro,
        selective_f1_macro,
        selective_recall_micro,
        selective_recall_macro,
    )
}


@overload
def ranking_loss(
    Y_true: LabelsLike, prediction: Prediction, *, per_row: Literal[False] = ...
) -> float: ...
@overload
def ranking_loss(
    Y_true: LabelsLike, prediction: Prediction, *, per_row: Literal[True]
) -> FloatArray: ...
def ranking_loss(
    Y_true: LabelsLike, prediction: Prediction, *, per_row: bool = False
) -> float | FloatArray:
    """The share of pairs, a label that is 1 and one that is 0, in the wrong order; mean over rows.

    Labels of a row are ordered by the middle of their intervals, open ones too; a tie is wrong, and
    a row without such a pair counts 0, as in scikit-learn's ``label_ranking_loss``. Only labels
    whose truth is observed form pairs; a row without any leaves the mean. ``prediction`` is a
    :class:`credalchain.CredalPrediction`, because the bounds are needed.
    """
    require_bounds(prediction, "whose bounds put labels into an order")
    truth, _ = read_pair(Y_true, prediction)
    scores = middle_log_odds(prediction.log_odds)
    # the highest score first, and among equal ones the negatives: ties are wrong
    order = np.lexsort((truth, -scores), axis=-1)
    ranked = np.take_along_axis(truth, order, axis=-1)
    negatives_above = np.cumsum(ranked == 0, axis=-1)
    n_wrong = np.where(ranked == 1, negatives_above, 0).sum(axis=-1)
    n_pairs = (truth == 1).sum(axis=-1) * (truth == 0).sum(axis=-1)
    observed = (truth != MISSING).any(axis=-1)
    return rows_or_mean(n_wrong / np.maximum(n_pairs, 1), observed, per_row)


def middle_log_odds(log_odds: FloatArray) -> FloatArray:
    """Log-odds of the middle of each interval, from lower and upper log-odds (..., 2).

    From logarithms, because intervals of a sure model are 0 or 1 as floats, so in no order.
    """
    yes = np.logaddexp.reduce(log_expit(log_odds), axis=-1)
    no = np.logaddexp.reduce(log_expit(-log_odds), axis=-1)
    return np.asarray(yes - no)
