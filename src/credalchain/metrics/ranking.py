"""How well the order of labels by their bounds agrees with the truth."""

from typing import Literal, overload

import numpy as np
from scipy.special import log_expit

from credalchain.array_types import FloatArray
from credalchain.labels import MISSING
from credalchain.metrics.rows import rows_or_mean
from credalchain.metrics.tally import read_pair, require_bounds
from credalchain.typing import LabelsLike, Prediction


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
