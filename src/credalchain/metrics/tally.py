"""Counts of truth and prediction, from which measures are computed."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal, TypeGuard

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.array_types import FloatArray, Labels
from credalchain.labels import ABSTAIN, MISSING, as_labels, check_names
from credalchain.typing import Prediction

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class LabelCounts:
    """Numbers of rows for each label, of those where its truth is observed; they add up over rows.

    ``positive`` (m,): rows in which the label is 1. The others are (..., m), for one prediction or
    a stack of them: rows answered with 1, rows with a 1 that are answered at all, both at once.
    """

    positive: Counts
    said_yes: Counts
    answered_positive: Counts
    right_yes: Counts

    def __add__(self, other: "LabelCounts") -> "LabelCounts":
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return LabelCounts(*(mine + others for mine, others in pairs))


def count_by_label(truth: Labels, labels: Labels) -> LabelCounts:
    """Count ``labels`` (..., n, m) against ``truth`` (n, m), label by label."""
    positive, yes = truth == 1, labels == 1
    return LabelCounts(
        _count_per_column(positive),
        _count_per_column(yes if (truth != MISSING).all() else yes & (truth != MISSING)),
        _count_per_column(positive & (labels != ABSTAIN)),
        _count_per_column(positive & yes),
    )


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
    """How many of each row; in bytes where these do not overflow, which is several times faster."""
    if cells.shape[-1] > 255:
        return np.asarray(np.count_nonzero(cells, axis=-1))
    return np.asarray(np.einsum("...m->...", cells.view(np.uint8)), dtype=np.int64)


def _count_per_column(cells: NDArray[np.bool_]) -> Counts:
    """How many of each column; in bytes, as many rows at a time as do not overflow."""
    ones = cells.view(np.uint8)
    total = np.zeros((*cells.shape[:-2], cells.shape[-1]), dtype=np.int64)
    for first in range(0, cells.shape[-2], 255):
        total += np.einsum("...nm->...m", ones[..., first : first + 255, :])
    return total


# -- reading user input --------------------------------------------------------------------------


def is_prediction(value: Any) -> TypeGuard[Prediction]:
    """A CredalPrediction, and not a data frame with columns of those names."""
    return hasattr(value, "log_odds") and not hasattr(value, "columns")


def partial_labels_of(prediction: Any) -> Labels:
    """Labels (n, m) of a CredalPrediction, or of an array."""
    labels = prediction.labels if is_prediction(prediction) else prediction
    return as_labels(labels, name="prediction", require_zero=False)


def read_pair(Y_true: Any, prediction: Any) -> tuple[Labels, Labels]:
    """True and predicted labels, both (n, m)."""
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
    """The tally of true labels and a prediction in any form."""
    return tally(*read_pair(Y_true, prediction))


def require_bounds(prediction: Any, why: str) -> None:
    """Refuse anything but a CredalPrediction."""
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
