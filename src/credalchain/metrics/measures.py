"""Measures of partial predictions: means over rows, shares of cells, order of labels.

Missing true labels (see ``as_labels``) are left out: a measure uses the observed cells of a
row, and a row without any is left out of the mean. Completeness and set size do not look at the
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
from credalchain._utils.validation import check_number
from credalchain.labels import ABSTAIN, MISSING, as_labels, check_names
from credalchain.typing import LabelsLike, Prediction, PredictionLike

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class LabelCounts:
    """Number of rows of each label whose truth is observed; counts add up over rows.

    Parameters
    ----------
    observed : ndarray of int, shape (n_labels,)
        Number of rows whose truth is observed.
    answered : ndarray of int, shape (..., n_labels)
        Those that are answered; the first axes are those of a stack of predictions, if any.
    positive : ndarray of int, shape (n_labels,)
        Those in which the label is 1.
    said_yes : ndarray of int, shape (..., n_labels)
        Those answered with 1.
    answered_positive : ndarray of int, shape (..., n_labels)
        Those with a 1 that are answered at all.
    right_yes : ndarray of int, shape (..., n_labels)
        Those with a 1 that are answered with 1.

    Examples
    --------
    >>> from credalchain import as_labels
    >>> from credalchain.metrics import tally
    >>> counts = tally(as_labels([[1, 0], [1, 1]]), as_labels([[1, -1], [0, 1]])).by_label
    >>> counts.positive.tolist(), counts.right_yes.tolist()
    ([2, 1], [1, 1])
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
    """Number of labels in each row, from which most measures are computed.

    ``by_label`` is counted on first access: most measures do not need it, and paths are long.

    Parameters
    ----------
    n_labels : int
        Number of labels.
    observed : ndarray of int, shape (n_samples,)
        Labels whose truth is observed.
    answered : ndarray of int, shape (..., n_samples)
        Labels answered; the first axes are those of a stack of predictions, if any.
    judged : ndarray of int, shape (..., n_samples)
        Labels answered whose truth is observed.
    wrong : ndarray of int, shape (..., n_samples)
        Labels answered wrongly.
    make_label_counts : callable
        Returns the :class:`LabelCounts`.
    times : ndarray of int, shape (n_samples,), default=None
        Number of rows that each entry stands for. None for one each.

    See Also
    --------
    tally : Count labels against the truth.

    Examples
    --------
    >>> from credalchain import as_labels
    >>> from credalchain.metrics import tally
    >>> counted = tally(as_labels([[1, 0], [1, 1]]), as_labels([[1, -1], [0, 1]]))
    >>> counted.answered.tolist(), counted.wrong.tolist()
    ([1, 2], [0, 1])
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
        """Same cells, counted label by label."""
        return self.make_label_counts()


def tally(truth: Labels, labels: Labels) -> Tally:
    """Count partial predictions against the truth, row by row.

    Parameters
    ----------
    truth : ndarray of int8, shape (n_samples, n_labels)
        True labels, as :func:`credalchain.as_labels` returns them.
    labels : ndarray of int8, shape (..., n_samples, n_labels)
        Partial predictions, or a stack of them.

    Returns
    -------
    Tally
        The counts.

    See Also
    --------
    pooled : Merge several tallies.

    Examples
    --------
    >>> from credalchain import as_labels
    >>> from credalchain.metrics import tally
    >>> tally(as_labels([[1, 0], [1, 1]]), as_labels([[1, -1], [0, 1]])).judged.tolist()
    [1, 2]
    """
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
    """Merge tallies of one prediction each; rows with equal counts become one entry.

    Parameters
    ----------
    tallies : iterable of Tally
        At least one.

    Returns
    -------
    Tally
        The counts of all rows.

    See Also
    --------
    tally : Count partial predictions against the truth.

    Examples
    --------
    >>> from credalchain import as_labels
    >>> from credalchain.metrics import pooled, tally
    >>> counted = tally(as_labels([[1, 0], [1, 1]]), as_labels([[1, -1], [0, 1]]))
    >>> pooled([counted, counted]).times.tolist()
    [2, 2]
    """
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
    """Measure, with its input: partial labels, precise ones, or bounds.

    Parameters
    ----------
    function : callable
        ``function(Y_true, prediction)`` returns a number.
    greater_is_better : bool
        False for losses.
    needs : {"partial", "precise", "bounds"}, default="partial"
        Input: partial predictions, complete ones, or a ``CredalPrediction``.
    of_tally : callable, default=None
        Computes it from the :class:`Tally` of a whole stack of labels: the partial ones, the
        precise ones, or those that bounds are resolved to (:func:`resolved_labels`), as ``needs``
        says. A measure that ``credalchain evaluate`` shows must have it, for data in chunks.

    See Also
    --------
    credalchain.partial_scorer : Return a scorer for scikit-learn.

    Examples
    --------
    >>> from credalchain import partial_scorer
    >>> from credalchain.metrics import Measure, selective_error
    >>> error = Measure(selective_error, greater_is_better=False)
    >>> scorer = partial_scorer(error)
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
    """Compute the share of rows without a wrong answer.

    A row without any answer counts 1, so report completeness as well.

    Parameters
    ----------
    Y_true : array-like of shape (n_samples, n_labels)
        True labels; missing ones are left out.
    prediction : array-like of shape (n_samples, n_labels), or CredalPrediction
        Partial predictions: 0, 1, and -1 for an open label.

    Returns
    -------
    float
        Share of rows.

    See Also
    --------
    completeness : Share of labels answered.
    precise_accuracy : Exact match of complete predictions.

    Examples
    --------
    >>> from credalchain.metrics import set_accuracy
    >>> set_accuracy([[1, 0, 1], [0, 0, 1]], [[1, -1, 1], [1, -1, -1]])
    0.5
    """
    return float(_right(tally_of(Y_true, prediction)))


def completeness(Y_true: LabelsLike | None, prediction: PredictionLike) -> float:
    """Compute the share of labels that are answered (the coverage, in selective classification).

    Parameters
    ----------
    Y_true : array-like of shape (n_samples, n_labels), or None
        Not used.
    prediction : array-like of shape (n_samples, n_labels), or CredalPrediction
        Partial predictions: 0, 1, and -1 for an open label.

    Returns
    -------
    float
        Share between 0 and 1.

    See Also
    --------
    set_accuracy : Share of rows without a wrong answer.

    References
    ----------
    Y. C. Carranza Alarcon and S. Destercke, Multi-label Chaining with Imprecise
    Probabilities, ECSQARU 2021.

    Examples
    --------
    >>> from credalchain.metrics import completeness
    >>> completeness(None, [[1, -1], [-1, -1]])
    0.25
    """
    labels = partial_labels_of(prediction)
    return float(_complete(tally(np.zeros_like(labels), labels)))


def incorrectness(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute the share of wrong answers among the answers of a row; mean over rows.

    A row without answers counts 0.

    Parameters
    ----------
    Y_true : array-like of shape (n_samples, n_labels)
        True labels; missing ones are left out.
    prediction : array-like of shape (n_samples, n_labels), or CredalPrediction
        Partial predictions: 0, 1, and -1 for an open label.

    Returns
    -------
    float
        Mean over rows.

    See Also
    --------
    selective_error : The same, pooled over rows.

    References
    ----------
    Y. C. Carranza Alarcon and S. Destercke, Multi-label Chaining with Imprecise
    Probabilities, ECSQARU 2021.

    Examples
    --------
    >>> from credalchain.metrics import incorrectness
    >>> incorrectness([[1, 0], [1, 1]], [[1, 1], [-1, -1]])
    0.25
    """
    return float(_incorrect(tally_of(Y_true, prediction)))


def selective_error(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute the share of wrong answers among all answers, pooled over rows.

    In selective classification, this is the selective risk of single labels.

    Parameters
    ----------
    Y_true : array-like of shape (n_samples, n_labels)
        True labels; missing ones are left out.
    prediction : array-like of shape (n_samples, n_labels), or CredalPrediction
        Partial predictions: 0, 1, and -1 for an open label.

    Returns
    -------
    float
        Share of answers; NaN if nothing is answered.

    See Also
    --------
    incorrectness : Mean over rows of the same share.

    References
    ----------
    R. El-Yaniv and Y. Wiener, On the foundations of noise-free selective classification, Journal
    of Machine Learning Research 11, 2010.

    Examples
    --------
    >>> from credalchain.metrics import selective_error
    >>> round(selective_error([[1, 0], [1, 1]], [[1, 1], [-1, 1]]), 4)
    0.3333
    """
    return float(_selective_error(tally_of(Y_true, prediction)))


def precise_accuracy(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute the share of rows in which every label is answered correctly (exact match).

    Parameters
    ----------
    Y_true : array-like of shape (n_samples, n_labels)
        True labels; missing ones are left out.
    prediction : array-like of shape (n_samples, n_labels), or CredalPrediction
        Partial predictions: 0, 1, and -1 for an open label.

    Returns
    -------
    float
        Share of rows.

    Raises
    ------
    ValueError
        If a label is left open.

    See Also
    --------
    set_accuracy : The same for partial predictions.

    Examples
    --------
    >>> from credalchain.metrics import precise_accuracy
    >>> precise_accuracy([[1, 0], [1, 1]], [[1, 0], [1, 0]])
    0.5
    """
    t = tally_of(Y_true, prediction)
    if (t.answered < t.n_labels).any():
        raise ValueError(
            "prediction must leave no label open here, got some: use the output of predict, "
            "or set_accuracy for partial predictions."
        )
    return float(_right(t))


def maximin_accuracy(Y_true: LabelsLike, prediction: Prediction) -> float:
    """Compute the exact match after each open label is resolved by the maximin rule.

    An open label becomes 1 if lower > 1 - upper, else 0 (also where the two differ by no more than
    the rounding of their sums, 1e-9 in log-odds).

    Parameters
    ----------
    Y_true : array-like of shape (n_samples, n_labels)
        True labels; missing ones are left out.
    prediction : CredalPrediction
        Partial predictions with their bounds.

    Returns
    -------
    float
        Share of rows.

    See Also
    --------
    resolved_labels : The labels after open ones are resolved.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier
    >>> from credalchain.metrics import maximin_accuracy
    >>> X, Y = [["a"], ["a"], ["b"], ["b"]], [[1, 0], [1, 1], [0, 0], [0, 1]]
    >>> prediction = CredalChainClassifier(s=0.5, order="given").fit(X, Y).infer(X)
    >>> maximin_accuracy(Y, prediction)
    0.5
    """
    require_bounds(prediction, "whose bounds resolve what is open")
    return float(_right(tally_of(Y_true, resolved_labels(prediction))))


def resolved_labels(prediction: Prediction) -> NDArray[np.int8]:
    """Resolve open labels by the maximin rule, as for :func:`maximin_accuracy`.

    Parameters
    ----------
    prediction : CredalPrediction
        Partial predictions with their bounds.

    Returns
    -------
    ndarray of int8, shape (n_samples, n_labels)
        Labels 0 and 1.

    See Also
    --------
    maximin_accuracy : Exact match of these labels.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier
    >>> from credalchain.metrics import resolved_labels
    >>> X, Y = [["a"], ["a"], ["b"], ["b"]], [[1, 0], [1, 1], [0, 0], [0, 0]]
    >>> prediction = CredalChainClassifier(s=0.5, order="given").fit(X, Y).infer([["a"], ["b"]])
    >>> resolved_labels(prediction)[:, 0]
    array([1, 0], dtype=int8)
    """
    labels = partial_labels_of(prediction)
    with np.errstate(invalid="ignore"):  # vacuous bounds: inf - inf is NaN, so not above 0
        resolved = (prediction.log_odds.sum(axis=-1) > 1e-9).astype(np.int8)
    return np.where(labels == ABSTAIN, resolved, labels)


def mean_set_size(Y_true: LabelsLike | None, prediction: PredictionLike) -> float:
    """Compute the share of all label vectors that a prediction allows; mean over rows.

    Parameters
    ----------
    Y_true : array-like of shape (n_samples, n_labels), or None
        Not used.
    prediction : array-like of shape (n_samples, n_labels), or CredalPrediction
        Partial predictions: 0, 1, and -1 for an open label.

    Returns
    -------
    float
        Mean over rows.

    Examples
    --------
    >>> from credalchain.metrics import mean_set_size
    >>> mean_set_size(None, [[1, -1], [0, 0]])
    0.375
    """
    labels = partial_labels_of(prediction)
    return float(_size(tally(np.zeros_like(labels), labels)))


def discounted_utility(
    Y_true: LabelsLike, prediction: PredictionLike, *, abstention: float
) -> float:
    """Compute the mean utility of labels: right 1, wrong 0, open ``abstention``.

    Parameters
    ----------
    Y_true : array-like of shape (n_samples, n_labels)
        True labels; missing ones are left out.
    prediction : array-like of shape (n_samples, n_labels), or CredalPrediction
        Partial predictions: 0, 1, and -1 for an open label.
    abstention : float
        Utility of an open label. At 0.5 abstaining is worth as much as a random guess; u65 and u80
        use 0.65 and 0.80.

    Returns
    -------
    float
        Mean over labels and rows.

    References
    ----------
    M. Zaffalon, G. Corani and D. Maua, Evaluating credal classifiers by utility-discounted
    predictive accuracy, International Journal of Approximate Reasoning 53, 2012.

    Examples
    --------
    >>> from credalchain.metrics import discounted_utility
    >>> discounted_utility([[1, 0], [1, 1]], [[1, -1], [0, 1]], abstention=0.5)
    0.625
    """
    check_number("abstention", abstention, 0, 1, "a number between 0 and 1")
    return float(_utility(tally_of(Y_true, prediction), abstention))


def utility_65(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute u65: :func:`discounted_utility` with an open label worth 0.65.

    Parameters
    ----------
    Y_true : array-like of shape (n_samples, n_labels)
        True labels; missing ones are left out.
    prediction : array-like of shape (n_samples, n_labels), or CredalPrediction
        Partial predictions: 0, 1, and -1 for an open label.

    Returns
    -------
    float
        Mean over labels and rows.

    See Also
    --------
    discounted_utility : Any utility of an open label.

    References
    ----------
    M. Zaffalon, G. Corani and D. Maua, Evaluating credal classifiers by utility-discounted
    predictive accuracy, International Journal of Approximate Reasoning 53, 2012.

    Examples
    --------
    >>> from credalchain.metrics import utility_65
    >>> utility_65([[1, 0], [1, 1]], [[1, -1], [0, 1]])
    0.6625
    """
    return discounted_utility(Y_true, prediction, abstention=_WORTH_65)


def utility_80(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute u80: :func:`discounted_utility` with an open label worth 0.80.

    Parameters
    ----------
    Y_true : array-like of shape (n_samples, n_labels)
        True labels; missing ones are left out.
    prediction : array-like of shape (n_samples, n_labels), or CredalPrediction
        Partial predictions: 0, 1, and -1 for an open label.

    Returns
    -------
    float
        Mean over labels and rows.

    See Also
    --------
    discounted_utility : Any utility of an open label.

    References
    ----------
    M. Zaffalon, G. Corani and D. Maua, Evaluating credal classifiers by utility-discounted
    predictive accuracy, International Journal of Approximate Reasoning 53, 2012.

    Examples
    --------
    >>> from credalchain.metrics import utility_80
    >>> utility_80([[1, 0], [1, 1]], [[1, -1], [0, 1]])
    0.7
    """
    return discounted_utility(Y_true, prediction, abstention=_WORTH_80)


def abstention_loss(
    Y_true: LabelsLike, prediction: PredictionLike, *, cost: float = _COST
) -> float:
    """Compute the Hamming loss with abstention: (wrong + cost * open) over labels.

    Parameters
    ----------
    Y_true : array-like of shape (n_samples, n_labels)
        True labels; missing ones are left out.
    prediction : array-like of shape (n_samples, n_labels), or CredalPrediction
        Partial predictions: 0, 1, and -1 for an open label.
    cost : float, default=0.25
        Cost of an open label, in wrong labels.

    Returns
    -------
    float
        Mean over rows.

    See Also
    --------
    hamming_loss : Open labels cost nothing.

    Examples
    --------
    >>> from credalchain.metrics import abstention_loss
    >>> abstention_loss([[1, 0], [1, 1]], [[1, -1], [0, 1]], cost=0.2)
    0.3
    """
    check_number("cost", cost, 0, 1, "a number between 0 and 1")
    return float(_loss(tally_of(Y_true, prediction), cost))


def hamming_loss(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute the share of wrong answers among all labels; an open label costs nothing.

    Where everything is answered, this is scikit-learn's measure of the same name.

    Parameters
    ----------
    Y_true : array-like of shape (n_samples, n_labels)
        True labels; missing ones are left out.
    prediction : array-like of shape (n_samples, n_labels), or CredalPrediction
        Partial predictions: 0, 1, and -1 for an open label.

    Returns
    -------
    float
        Mean over rows.

    See Also
    --------
    abstention_loss : Open labels have a cost.

    Examples
    --------
    >>> from credalchain.metrics import hamming_loss
    >>> hamming_loss([[1, 0], [1, 1]], [[1, -1], [0, 1]])
    0.25
    """
    return abstention_loss(Y_true, prediction, cost=0.0)


def precision_micro(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute the share of cells answered with yes that are right.

    Parameters
    ----------
    Y_true : array-like of shape (n_samples, n_labels)
        True labels; missing ones are left out.
    prediction : array-like of shape (n_samples, n_labels), or CredalPrediction
        Partial predictions: 0, 1, and -1 for an open label.

    Returns
    -------
    float
        Share of cells; NaN if none is answered with yes.

    Examples
    --------
    >>> from credalchain.metrics import precision_micro
    >>> round(precision_micro([[1, 1], [0, 1]], [[1, -1], [1, 1]]), 4)
    0.6667
    """
    return float(_cell_share("precision_micro", tally_of(Y_true, prediction)))


def precision_macro(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute the share of a label's cells answered with yes that are right; mean over labels.

    A label that is never answered with yes is left out of the mean.

    Parameters
    ----------
    Y_true : array-like of shape (n_samples, n_labels)
        True labels; missing ones are left out.
    prediction : array-like of shape (n_samples, n_labels), or CredalPrediction
        Partial predictions: 0, 1, and -1 for an open label.

    Returns
    -------
    float
        Mean over labels.

    Examples
    --------
    >>> from credalchain.metrics import precision_macro
    >>> precision_macro([[1, 1], [0, 1]], [[1, -1], [1, 1]])
    0.75
    """
    return float(_cell_share("precision_macro", tally_of(Y_true, prediction)))


def recall_micro(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute the share of all positives answered with yes; open ones count as not found.

    Parameters
    ----------
    Y_true : array-like of shape (n_samples, n_labels)
        True labels; missing ones are left out.
    prediction : array-like of shape (n_samples, n_labels), or CredalPrediction
        Partial predictions: 0, 1, and -1 for an open label.

    Returns
    -------
    float
        Share of positives.

    See Also
    --------
    selective_recall_micro : Open positives do not count.

    Examples
    --------
    >>> from credalchain.metrics import recall_micro
    >>> round(recall_micro([[1, 1], [0, 1]], [[1, -1], [1, 1]]), 4)
    0.6667
    """
    return float(_cell_share("recall_micro", tally_of(Y_true, prediction)))


def missed_micro(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute the share of all positives answered with no; open ones do not count as missed.

    Parameters
    ----------
    Y_true : array-like of shape (n_samples, n_labels)
        True labels; missing ones are left out.
    prediction : array-like of shape (n_samples, n_labels), or CredalPrediction
        Partial predictions: 0, 1, and -1 for an open label.

    Returns
    -------
    float
        Share of positives.

    See Also
    --------
    recall_micro : Share of all positives answered with yes.

    Examples
    --------
    >>> from credalchain.metrics import missed_micro
    >>> round(missed_micro([[1, 1], [0, 1]], [[0, -1], [1, 1]]), 4)
    0.3333
    """
    return float(_cell_share("missed_micro", tally_of(Y_true, prediction)))


def recall_macro(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute the share of a label's positives answered with yes; mean over labels.

    A positive that was left open is not found. A label without positives is left out of the mean.

    Parameters
    ----------
    Y_true : array-like of shape (n_samples, n_labels)
        True labels; missing ones are left out.
    prediction : array-like of shape (n_samples, n_labels), or CredalPrediction
        Partial predictions: 0, 1, and -1 for an open label.

    Returns
    -------
    float
        Mean over labels.

    See Also
    --------
    selective_recall_macro : Open positives do not count.

    Examples
    --------
    >>> from credalchain.metrics import recall_macro
    >>> recall_macro([[1, 1], [0, 1]], [[1, -1], [1, 1]])
    0.75
    """
    return float(_cell_share("recall_macro", tally_of(Y_true, prediction)))


def selective_recall_micro(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute the share of answered positives that are answered with yes.

    A positive that was left open does not count.

    Parameters
    ----------
    Y_true : array-like of shape (n_samples, n_labels)
        True labels; missing ones are left out.
    prediction : array-like of shape (n_samples, n_labels), or CredalPrediction
        Partial predictions: 0, 1, and -1 for an open label.

    Returns
    -------
    float
        Share of positives.

    See Also
    --------
    recall_micro : Open positives count as not found.

    Examples
    --------
    >>> from credalchain.metrics import selective_recall_micro
    >>> selective_recall_micro([[1, 1], [0, 1]], [[1, -1], [1, 1]])
    1.0
    """
    return float(_cell_share("selective_recall_micro", tally_of(Y_true, prediction)))


def selective_recall_macro(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute the share of a label's answered positives answered with yes; mean over labels.

    A label without such positives is left out of the mean.

    Parameters
    ----------
    Y_true : array-like of shape (n_samples, n_labels)
        True labels; missing ones are left out.
    prediction : array-like of shape (n_samples, n_labels), or CredalPrediction
        Partial predictions: 0, 1, and -1 for an open label.

    Returns
    -------
    float
        Mean over labels.

    See Also
    --------
    recall_macro : Open positives count as not found.

    Examples
    --------
    >>> from credalchain.metrics import selective_recall_macro
    >>> selective_recall_macro([[1, 1], [0, 1]], [[1, 0], [1, 1]])
    0.75
    """
    return float(_cell_share("selective_recall_macro", tally_of(Y_true, prediction)))


def f1_micro(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute the harmonic mean of micro precision and recall: open positives are not found.

    Parameters
    ----------
    Y_true : array-like of shape (n_samples, n_labels)
        True labels; missing ones are left out.
    prediction : array-like of shape (n_samples, n_labels), or CredalPrediction
        Partial predictions: 0, 1, and -1 for an open label.

    Returns
    -------
    float
        F1 of all cells.

    See Also
    --------
    selective_f1_micro : Open positives do not count.

    Examples
    --------
    >>> from credalchain.metrics import f1_micro
    >>> round(f1_micro([[1, 1], [0, 1]], [[1, -1], [1, 1]]), 4)
    0.6667
    """
    return float(_cell_share("f1_micro", tally_of(Y_true, prediction)))


def f1_macro(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute F1 of each label, in which open positives are not found; mean over labels.

    A label without positives that is never answered with yes is left out of the mean.

    Parameters
    ----------
    Y_true : array-like of shape (n_samples, n_labels)
        True labels; missing ones are left out.
    prediction : array-like of shape (n_samples, n_labels), or CredalPrediction
        Partial predictions: 0, 1, and -1 for an open label.

    Returns
    -------
    float
        Mean over labels.

    See Also
    --------
    selective_f1_macro : Open positives do not count.

    Examples
    --------
    >>> from credalchain.metrics import f1_macro
    >>> round(f1_macro([[1, 1], [1, 1]], [[1, -1], [1, 1]]), 4)
    0.8333
    """
    return float(_cell_share("f1_macro", tally_of(Y_true, prediction)))


def selective_f1_micro(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute the harmonic mean of micro precision and selective recall: answered cells only.

    Parameters
    ----------
    Y_true : array-like of shape (n_samples, n_labels)
        True labels; missing ones are left out.
    prediction : array-like of shape (n_samples, n_labels), or CredalPrediction
        Partial predictions: 0, 1, and -1 for an open label.

    Returns
    -------
    float
        F1 of answered cells.

    See Also
    --------
    f1_micro : Open positives count as not found.

    Examples
    --------
    >>> from credalchain.metrics import selective_f1_micro
    >>> selective_f1_micro([[1, 1], [0, 1]], [[1, -1], [1, 1]])
    0.8
    """
    return float(_cell_share("selective_f1_micro", tally_of(Y_true, prediction)))


def selective_f1_macro(Y_true: LabelsLike, prediction: PredictionLike) -> float:
    """Compute F1 of each label among its answered cells; mean over labels.

    Parameters
    ----------
    Y_true : array-like of shape (n_samples, n_labels)
        True labels; missing ones are left out.
    prediction : array-like of shape (n_samples, n_labels), or CredalPrediction
        Partial predictions: 0, 1, and -1 for an open label.

    Returns
    -------
    float
        Mean over labels.

    See Also
    --------
    f1_macro : Open positives count as not found.

    Examples
    --------
    >>> from credalchain.metrics import selective_f1_macro
    >>> selective_f1_macro([[1, 1], [1, 1]], [[1, -1], [1, 1]])
    1.0
    """
    return float(_cell_share("selective_f1_macro", tally_of(Y_true, prediction)))


def ranking_loss(Y_true: LabelsLike, prediction: Prediction) -> float:
    """Compute the share of pairs of a label 1 and a label 0 in the wrong order; mean over rows.

    Labels of a row are ordered by the middle of their intervals, open ones too; a tie is wrong, and
    a row without such a pair counts 0, as in scikit-learn's ``label_ranking_loss``. Only labels
    whose truth is observed form pairs; a row without any is left out of the mean.

    Parameters
    ----------
    Y_true : array-like of shape (n_samples, n_labels)
        True labels; missing ones are left out.
    prediction : CredalPrediction
        Partial predictions with their bounds.

    Returns
    -------
    float
        Mean over rows.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier
    >>> from credalchain.metrics import ranking_loss
    >>> X, Y = [["a"], ["a"], ["b"], ["b"]], [[1, 0], [1, 1], [0, 0], [0, 1]]
    >>> prediction = CredalChainClassifier(s=0.5, order="given").fit(X, Y).infer(X)
    >>> ranking_loss([[0, 1]] * 4, prediction)
    0.5
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
    Y_true : array-like of shape (n_samples, n_labels)
        True labels; missing ones are left out.
    path : array-like of shape (n_values, n_samples, n_labels)
        Partial predictions from least to most cautious, for instance from ``predict_path``.

    Returns
    -------
    completeness : ndarray of shape (n_values,)
        Share of labels answered.
    set_accuracy : ndarray of shape (n_values,)
        Share of rows without a wrong answer.

    See Also
    --------
    credalchain.plotting.CompletenessCurveDisplay : Plot the curve.

    Examples
    --------
    >>> from credalchain.metrics import completeness_curve
    >>> path = [[[1, 1], [0, 1]], [[1, -1], [0, 1]], [[1, -1], [-1, -1]]]
    >>> completeness_curve([[1, 0], [0, 1]], path)
    (array([1.  , 0.75, 0.25]), array([0.5, 1. , 1. ]))
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
