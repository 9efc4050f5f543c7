"""Measures of partial predictions: means over rows, shares of cells, order of labels.

Missing true labels (see ``as_labels``) are left out: a measure uses the observed cells of a
row, and a row without any leaves the mean. Completeness and set size do not look at the
truth at all.

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

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal, TypeGuard

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit

from credalchain._utils.array_types import FloatArray, Labels
from credalchain.labels import ABSTAIN, MISSING, as_labels, check_names
from credalchain.typing import LabelsLike, Prediction, PredictionLike

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class LabelCounts:
    """Numbers of rows for each label, of those where its truth is observed; they add up over rows.

    ``observed`` and ``positive`` (m,): these rows, and those in which the label is 1. The others
    are (..., m), for one prediction or a stack of them: rows that are answered, answered with 1,
    rows with a 1 that are answered at all, and those answered with 1.
    """

    observed: Counts
    answered: Counts
    positive: Counts
    said_yes: Counts
    answered_positive: Counts
    right_yes: Counts

    def __add__(self, other: "LabelCounts") -> "LabelCounts":
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return LabelCounts(*(mine + others for mine, others in pairs))


def count_by_label(truth: Labels, labels: Labels) -> LabelCounts:
    """Count ``labels`` (..., n, m) against ``truth`` (n, m), label by label."""
    observed, positive, yes = truth != MISSING, truth == 1, labels == 1
    answered = observed & (labels != ABSTAIN)
    cells = (observed, answered, positive, answered & yes, answered & positive, positive & yes)
    return LabelCounts(*map(_count_per_column, cells))


@dataclass(frozen=True)
class Tally:
    """Numbers of labels in each row, from which most measures are computed.

    ``observed`` is (n,), since true labels may be missing. The others are (..., n), for one
    prediction or a stack of them: labels answered, answered where the truth is known, and
    answered wrongly. ``times`` (n,): how many rows an entry stands for, None for one each.
    ``by_label`` is counted on first access: most measures do not need it, and paths are long.
    """

    n_labels: int
    observed: Counts
    answered: Counts
    judged: Counts
    wrong: Counts
    make_label_counts: Callable[[], LabelCounts] = field(repr=False)
    times: Counts | None = None

    @cached_property
    def by_label(self) -> LabelCounts:
        """The same cells counted label by label."""
        return self.make_label_counts()


def tally(truth: Labels, labels: Labels) -> Tally:
    """Count ``labels`` (..., n, m) against ``truth`` (n, m); both as ``as_labels`` gives them."""
    observed, answered = truth != MISSING, labels != ABSTAIN
    judged = answered if observed.all() else answered & observed
    n_answered = _count_per_row(answered)
    return Tally(
        truth.shape[1],
        _count_per_row(observed),
        n_answered,
        n_answered if judged is answered else _count_per_row(judged),
        _count_per_row(judged & (labels != truth)),
        partial(count_by_label, truth, labels),
    )


def pooled(tallies: Iterable[Tally]) -> Tally:
    """Merge tallies of one prediction each; rows with equal counts become one entry."""
    columns, times, by_label = [], [], None
    for t in tallies:
        columns.append(np.stack([t.observed, t.answered, t.judged, t.wrong]))
        times.append(np.ones(len(t.observed), np.int64) if t.times is None else t.times)
        by_label = t.by_label if by_label is None else by_label + t.by_label
    distinct, inverse = np.unique(np.concatenate(columns, axis=1), axis=1, return_inverse=True)
    n = np.bincount(inverse.reshape(-1), np.concatenate(times), minlength=distinct.shape[1])
    observed, answered, judged, wrong = distinct
    assert by_label is not None
    label_counts = by_label
    return Tally(
        t.n_labels, observed, answered, judged, wrong, lambda: label_counts, n.astype(np.int64)
    )


def _count_per_row(cells: NDArray[np.bool_]) -> Counts:
    """Count per row; in bytes where these do not overflow, which is several times faster."""
    if cells.shape[-1] > 255:
        return np.asarray(np.count_nonzero(cells, axis=-1))
    return np.asarray(np.einsum("...m->...", cells.view(np.uint8)), dtype=np.int64)


def _count_per_column(cells: NDArray[np.bool_]) -> Counts:
    """Count per column; in bytes, as many rows at a time as do not overflow."""
    ones = cells.view(np.uint8)
    total = np.zeros((*cells.shape[:-2], cells.shape[-1]), dtype=np.int64)
    for first in range(0, cells.shape[-2], 255):
        total += np.einsum("...nm->...m", ones[..., first : first + 255, :])
    return total


# -- reading user input --------------------------------------------------------------------------


def is_prediction(value: Any) -> TypeGuard[Prediction]:
    """Return whether this is a CredalPrediction, not a data frame with columns of those names."""
    return hasattr(value, "log_odds") and not hasattr(value, "columns")


def partial_labels_of(prediction: Any) -> Labels:
    """Return the labels (n, m) of a CredalPrediction, or of an array."""
    labels = prediction.labels if is_prediction(prediction) else prediction
    return as_labels(labels, name="prediction", require_zero=False)


def read_pair(Y_true: Any, prediction: Any) -> tuple[Labels, Labels]:
    """Return true and predicted labels, both (n, m)."""
    if is_prediction(Y_true):
        raise TypeError("Y_true must be the true labels, got a prediction: the truth comes first.")
    if is_prediction(prediction):
        check_names(Y_true, prediction.label_names, "Y_true")
    truth = as_labels(Y_true, name="Y_true", require_zero=False)
    labels = partial_labels_of(prediction)
    if truth.shape != labels.shape:
        raise ValueError(
            f"Y_true and prediction must have the same shape, got {truth.shape} and {labels.shape}."
        )
    return truth, labels


def tally_of(Y_true: Any, prediction: Any) -> Tally:
    """Return the tally of true labels and a prediction in any form."""
    return tally(*read_pair(Y_true, prediction))


def require_bounds(prediction: Any, why: str) -> None:
    """Raise a TypeError for anything but a CredalPrediction."""
    if not is_prediction(prediction):
        raise TypeError(
            f"prediction must be a CredalPrediction (from infer), {why}, "
            f"got {type(prediction).__name__}."
        )


@dataclass(frozen=True)
class Measure:
    """A measure and what it needs: the partial labels, the precise ones, or the bounds.

    ``of_tally`` gives it from the tally of a whole stack of labels: the partial ones, the precise
    ones, or those that bounds are resolved to (``resolved_labels``), as ``needs`` says. A measure
    that ``credalchain evaluate`` shows must have it, for data in chunks.
    """

    function: Callable[..., float]
    greater_is_better: bool
    needs: Literal["partial", "precise", "bounds"] = "partial"
    of_tally: Callable[[Tally], FloatArray] | None = field(default=None, compare=False)


_WORTH_65, _WORTH_80, _COST = 0.65, 0.80, 0.25


# -- each measure from a tally -------------------------------------------------------------------


def _mean(t: Tally, rows: Any, *, needs_truth: bool = True) -> Any:
    """Return the mean over the rows that count, of each prediction; NaN if none does."""
    counted = t.observed > 0 if needs_truth else np.ones(len(t.observed), bool)
    if not counted.any():
        return np.full(np.shape(rows)[:-1], np.nan)
    if t.times is not None:
        return np.average(rows, axis=-1, weights=t.times * counted)
    return np.mean(rows if counted.all() else rows[..., counted], axis=-1, dtype=np.float64)


def _right(t: Tally) -> Any:
    return _mean(t, t.wrong == 0)


def _complete(t: Tally) -> Any:
    return _mean(t, t.answered / t.n_labels, needs_truth=False)


def _incorrect(t: Tally) -> Any:
    return _mean(t, t.wrong / np.maximum(t.judged, 1))


def _size(t: Tally) -> Any:
    return _mean(t, 0.5**t.answered, needs_truth=False)


def _utility(t: Tally, abstention: float) -> Any:
    worth = t.judged - t.wrong + abstention * (t.observed - t.judged)
    return _mean(t, worth / np.maximum(t.observed, 1))


def _loss(t: Tally, cost: float) -> Any:
    return _mean(t, (t.wrong + cost * (t.observed - t.judged)) / np.maximum(t.observed, 1))


def _selective_error(t: Tally) -> Any:
    """Compute the error pooled over the rows, so not a mean of them."""
    times = 1 if t.times is None else t.times
    answers = np.asarray((times * t.judged).sum(axis=-1))
    with np.errstate(invalid="ignore"):  # 0/0: nothing answered
        return (times * t.wrong).sum(axis=-1) / answers


_RATIOS: dict[str, Callable[[LabelCounts], tuple[Any, Any]]] = {
    "precision": lambda c: (c.right_yes, c.said_yes),
    "recall": lambda c: (c.right_yes, c.positive),
    "f1": lambda c: (2 * c.right_yes, c.said_yes + c.positive),
    "missed": lambda c: (c.answered_positive - c.right_yes, c.positive),
    "selective_recall": lambda c: (c.right_yes, c.answered_positive),
    "selective_f1": lambda c: (2 * c.right_yes, c.said_yes + c.answered_positive),
}


def _cell_share(name: str, t: Tally) -> FloatArray:
    """Return a share of cells: pooled over labels (micro), or the mean of theirs (macro)."""
    ratio, _, kind = name.rpartition("_")
    numerator, denominator = np.broadcast_arrays(*_RATIOS[ratio](t.by_label))
    with np.errstate(invalid="ignore"):  # 0/0: not defined
        if kind == "micro":
            return np.asarray(numerator.sum(axis=-1) / denominator.sum(axis=-1))
        counted = denominator > 0
        shares = np.where(counted, numerator / np.maximum(denominator, 1), 0.0)
        return np.asarray(shares.sum(axis=-1) / counted.sum(axis=-1))


# -- the measures ----------------------------------------------------------------------------


def set_accuracy(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Return 1 for a row in which no answered label is wrong, else 0; 1 if nothing is answered.

    Examples
    --------
    >>> set_accuracy([[1, 0, 1], [0, 0, 1]], [[1, -1, 1], [1, -1, -1]])
    0.5
    """
    return float(_right(tally_of(Y_true, prediction)))


def completeness(Y_true: LabelsLike | None, prediction: PredictionLike) -> float:
    """Compute the share of labels that are answered. ``Y_true`` may be None.

    Examples
    --------
    >>> completeness(None, [[1, -1], [-1, -1]])
    0.25
    """
    labels = partial_labels_of(prediction)
    return float(_complete(tally(np.zeros_like(labels), labels)))


def incorrectness(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute wrong answers over answers, row by row; 0 for a row with no answer.

    Examples
    --------
    >>> incorrectness([[1, 0], [1, 1]], [[1, 1], [-1, -1]])
    0.25
    """
    return float(_incorrect(tally_of(Y_true, prediction)))


def selective_error(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute wrong answers over answers, pooled over rows; NaN if nothing was answered.

    Examples
    --------
    >>> selective_error([[1, 0], [1, 1]], [[1, 1], [-1, 1]])
    0.3333333333333333
    """
    return float(_selective_error(tally_of(Y_true, prediction)))


def precise_accuracy(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute the share of rows in which a complete prediction is right everywhere."""
    t = tally_of(Y_true, prediction)
    if (t.answered < t.n_labels).any():
        raise ValueError(
            "prediction must leave no label open here, got some: use the output of predict, "
            "or set_accuracy for partial predictions."
        )
    return float(_right(t))


def maximin_accuracy(Y_true: LabelsLike, prediction: Prediction) -> float:
    """Compute the exact match after each open label is resolved to the side better at worst.

    An open label becomes 1 if lower > 1 - upper, else 0 (also where the two differ by no more than
    the rounding of their sums, 1e-9 in log-odds). ``prediction`` is a
    :class:`credalchain.CredalPrediction`, because the bounds are needed.
    """
    require_bounds(prediction, "whose bounds resolve what is open")
    return float(_right(tally_of(Y_true, resolved_labels(prediction))))


def resolved_labels(prediction: Prediction) -> NDArray[np.int8]:
    """Return labels (n, m) of a prediction, open ones resolved as for ``maximin_accuracy``."""
    labels = partial_labels_of(prediction)
    with np.errstate(invalid="ignore"):  # vacuous bounds: inf - inf is NaN, so not above 0
        resolved = (prediction.log_odds.sum(axis=-1) > 1e-9).astype(np.int8)
    return np.where(labels == ABSTAIN, resolved, labels)


def mean_set_size(Y_true: LabelsLike | None, prediction: PredictionLike) -> float:
    """Compute the share of all label vectors that a prediction allows. ``Y_true`` may be None.

    Examples
    --------
    >>> mean_set_size(None, [[1, -1], [0, 0]])
    0.375
    """
    labels = partial_labels_of(prediction)
    return float(_size(tally(np.zeros_like(labels), labels)))


def discounted_utility(
    Y_true: LabelsLike, prediction: PredictionLike, *, abstention: float
) -> float:
    """Compute the mean worth of labels: right 1, wrong 0, left open ``abstention``.

    Parameters
    ----------
    abstention : float
        What an open label is worth. At 0.5 abstaining is worth a coin toss; 0.65 and 0.80
        are the values in use for u65 and u80.
    """
    _check_worth("abstention", abstention)
    return float(_utility(tally_of(Y_true, prediction), abstention))


def utility_65(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute u65: :func:`discounted_utility` with an open label worth 0.65."""
    return discounted_utility(Y_true, prediction, abstention=_WORTH_65)


def utility_80(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute u80: :func:`discounted_utility` with an open label worth 0.80."""
    return discounted_utility(Y_true, prediction, abstention=_WORTH_80)


def abstention_loss(
    Y_true: LabelsLike, prediction: PredictionLike, *, cost: float = _COST
) -> float:
    """Compute the Hamming loss with abstention: (wrong + cost * open) over labels.

    Parameters
    ----------
    cost : float, default=0.25
        What an open label costs, in wrong labels.
    """
    _check_worth("cost", cost)
    return float(_loss(tally_of(Y_true, prediction), cost))


def hamming_loss(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute wrong answers over all labels; one that was left open costs nothing.

    scikit-learn's measure of the same name where everything is answered.
    """
    return abstention_loss(Y_true, prediction, cost=0.0)


def _check_worth(name: str, value: Any) -> None:
    if not (np.ndim(value) == 0 and np.isreal(value) and 0 <= value <= 1):
        raise ValueError(f"{name} must be a number between 0 and 1, got {value!r}.")


def precision_micro(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute the share of cells answered with yes that are right; NaN if there are none.

    Examples
    --------
    >>> precision_micro([[1, 1], [0, 1]], [[1, -1], [1, 1]])
    0.6666666666666666
    """
    return float(_cell_share("precision_micro", tally_of(Y_true, prediction)))


def precision_macro(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute the share of a label's cells answered with yes that are right; mean over labels.

    A label that is never answered with yes leaves the mean.

    Examples
    --------
    >>> precision_macro([[1, 1], [0, 1]], [[1, -1], [1, 1]])
    0.75
    """
    return float(_cell_share("precision_macro", tally_of(Y_true, prediction)))


def recall_micro(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute the share of all positives answered with yes: one left open is not found.

    Examples
    --------
    >>> recall_micro([[1, 1], [0, 1]], [[1, -1], [1, 1]])
    0.6666666666666666
    """
    return float(_cell_share("recall_micro", tally_of(Y_true, prediction)))


def missed_micro(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute the share of all positives answered with no: one left open is not missed.

    Examples
    --------
    >>> missed_micro([[1, 1], [0, 1]], [[0, -1], [1, 1]])
    0.3333333333333333
    """
    return float(_cell_share("missed_micro", tally_of(Y_true, prediction)))


def recall_macro(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute the share of a label's positives answered with yes; the mean over labels.

    A positive that was left open is not found. A label without positives leaves the mean.

    Examples
    --------
    >>> recall_macro([[1, 1], [0, 1]], [[1, -1], [1, 1]])
    0.75
    """
    return float(_cell_share("recall_macro", tally_of(Y_true, prediction)))


def selective_recall_micro(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute the share of answered positives that are answered with yes.

    A positive that was left open does not count.

    Examples
    --------
    >>> selective_recall_micro([[1, 1], [0, 1]], [[1, -1], [1, 1]])
    1.0
    """
    return float(_cell_share("selective_recall_micro", tally_of(Y_true, prediction)))


def selective_recall_macro(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute the share of a label's answered positives answered with yes; the mean over labels.

    A label without such positives leaves the mean.

    Examples
    --------
    >>> selective_recall_macro([[1, 1], [0, 1]], [[1, 0], [1, 1]])
    0.75
    """
    return float(_cell_share("selective_recall_macro", tally_of(Y_true, prediction)))


def f1_micro(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute the harmonic mean of micro precision and recall: open positives are not found.

    Examples
    --------
    >>> f1_micro([[1, 1], [0, 1]], [[1, -1], [1, 1]])
    0.6666666666666666
    """
    return float(_cell_share("f1_micro", tally_of(Y_true, prediction)))


def f1_macro(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute F1 of each label, in which open positives are not found; the mean over labels.

    A label without positives that is never answered with yes leaves the mean.

    Examples
    --------
    >>> f1_macro([[1, 1], [1, 1]], [[1, -1], [1, 1]])
    0.8333333333333333
    """
    return float(_cell_share("f1_macro", tally_of(Y_true, prediction)))


def selective_f1_micro(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute the harmonic mean of micro precision and selective recall: answered cells only.

    Examples
    --------
    >>> selective_f1_micro([[1, 1], [0, 1]], [[1, -1], [1, 1]])
    0.8
    """
    return float(_cell_share("selective_f1_micro", tally_of(Y_true, prediction)))


def selective_f1_macro(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute F1 of each label among its answered cells; the mean over labels.

    Examples
    --------
    >>> selective_f1_macro([[1, 1], [1, 1]], [[1, -1], [1, 1]])
    1.0
    """
    return float(_cell_share("selective_f1_macro", tally_of(Y_true, prediction)))


def ranking_loss(Y_true: LabelsLike, prediction: Prediction) -> float:
    """Compute the share of pairs of a label 1 and a label 0 in the wrong order; mean over rows.

    Labels of a row are ordered by the middle of their intervals, open ones too; a tie is wrong, and
    a row without such a pair counts 0, as in scikit-learn's ``label_ranking_loss``. Only labels
    whose truth is observed form pairs; a row without any leaves the mean. ``prediction`` is a
    :class:`credalchain.CredalPrediction`, because the bounds are needed.
    """
    require_bounds(prediction, "whose bounds put labels into an order")
    truth, labels = read_pair(Y_true, prediction)
    scores = middle_log_odds(prediction.log_odds)
    # the highest score first, and among equal ones the negatives: ties are wrong
    order = np.lexsort((truth, -scores), axis=-1)
    ranked = np.take_along_axis(truth, order, axis=-1)
    negatives_above = np.cumsum(ranked == 0, axis=-1)
    n_wrong = np.where(ranked == 1, negatives_above, 0).sum(axis=-1)
    n_pairs = (truth == 1).sum(axis=-1) * (truth == 0).sum(axis=-1)
    return float(_mean(tally(truth, labels), n_wrong / np.maximum(n_pairs, 1)))


def middle_log_odds(log_odds: FloatArray) -> FloatArray:
    """Compute log-odds of the middle of each interval, from lower and upper log-odds (..., 2).

    From logarithms, because intervals of a sure model are 0 or 1 as floats, so in no order.
    """
    yes = np.logaddexp.reduce(log_expit(log_odds), axis=-1)
    no = np.logaddexp.reduce(log_expit(-log_odds), axis=-1)
    return np.asarray(yes - no)


def completeness_curve(
    Y_true: LabelsLike, path: Iterable[PredictionLike]
) -> tuple[FloatArray, FloatArray]:
    """Compute completeness and set-accuracy along a path of predictions.

    Parameters
    ----------
    Y_true : array-like of shape (n, m)
    path : array-like of shape (n_values, n, m)
        Partial predictions from bold to cautious, for instance from ``predict_path``.

    Returns
    -------
    completeness, set_accuracy : ndarrays of shape (n_values,)
    """
    predictions = [partial_labels_of(prediction) for prediction in path]
    if not predictions:
        return np.empty(0), np.empty(0)
    truth, _ = read_pair(Y_true, predictions[0])
    t = tally(truth, np.stack(predictions))
    return _complete(t), _right(t)


ROW_MEASURES = {
    "set_accuracy": Measure(set_accuracy, True, of_tally=_right),
    "completeness": Measure(completeness, True, of_tally=_complete),
    "incorrectness": Measure(incorrectness, False, of_tally=_incorrect),
    "selective_error": Measure(selective_error, False, of_tally=_selective_error),
    "precise_accuracy": Measure(precise_accuracy, True, "precise", _right),
    "maximin_accuracy": Measure(maximin_accuracy, True, "bounds", _right),
    "mean_set_size": Measure(mean_set_size, False, of_tally=_size),
    "utility_65": Measure(utility_65, True, of_tally=partial(_utility, abstention=_WORTH_65)),
    "utility_80": Measure(utility_80, True, of_tally=partial(_utility, abstention=_WORTH_80)),
    "abstention_loss": Measure(abstention_loss, False, of_tally=partial(_loss, cost=_COST)),
    "hamming_loss": Measure(hamming_loss, False, of_tally=partial(_loss, cost=0.0)),
}

CELL_MEASURES = {
    function.__name__: Measure(
        function, function is not missed_micro, of_tally=partial(_cell_share, function.__name__)
    )
    for function in (
        missed_micro,
        *(f1_micro, f1_macro, precision_micro, precision_macro, recall_micro, recall_macro),
        *(selective_f1_micro, selective_f1_macro, selective_recall_micro, selective_recall_macro),
    )
}
