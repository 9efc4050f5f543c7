"""Partial abstention: the Bayes-optimal partial answer for a loss, under label independence."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from credalchain._utils.array_types import FloatArray, IntArray, Labels
from credalchain._utils.validation import check_choice
from credalchain.labels import ABSTAIN
from credalchain.rivals.base import TIE, RejectMixin


class Answered(NamedTuple):
    """Best way to answer k labels of a row, for k = 0..m.

    Labels are sorted, the likeliest first. The first ``n_yes`` are answered yes, the last k - n_yes
    no; ``loss`` is their expected loss. Both (n, m + 1).
    """

    loss: FloatArray
    n_yes: IntArray


def _by_certainty(p: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the probabilities of the likelier answers, sorted, and how many are yes."""
    certainty = np.maximum(p, 1 - p)
    order = np.argsort(-certainty, axis=1, kind="stable")
    is_yes = np.take_along_axis(p >= 0.5, order, axis=1)
    return np.take_along_axis(certainty, order, axis=1), _prefix_sums(is_yes)


def _hamming(p: FloatArray) -> Answered:
    """Count wrong answers."""
    certainty, n_yes = _by_certainty(p)
    return Answered(_prefix_sums(1 - certainty), n_yes)


def _subset(p: FloatArray) -> Answered:
    """Return 1 if any answer is wrong."""
    certainty, n_yes = _by_certainty(p)
    return Answered(np.pad(1 - np.cumprod(certainty, axis=1), ((0, 0), (1, 0))), n_yes)


def _rank(p: FloatArray) -> Answered:
    """Count pairs of answered labels in the wrong order, the likelier one first."""
    reverse = p[:, ::-1]
    false_first, true_last = _prefix_sums(1 - p), _prefix_sums(reverse)
    first = _prefix_sums(p * false_first[:, :-1])  # pairs among the first a, and the last b
    last = _prefix_sums((1 - reverse) * true_last[:, :-1])
    across = false_first[:, :, None] * true_last[:, None, :]
    return _best_split(first[:, :, None] + last[:, None, :] + across)


def _f1(p: FloatArray) -> Answered:
    """Compute 1 - F1 of the answers; F1 is 1 if there is no yes, neither answered nor true."""
    found, missed = _counts_of_ones(p), _counts_of_ones(p[:, ::-1])
    m = p.shape[1]
    t, n_missed = np.arange(m + 1)[:, None], np.arange(m + 1)
    f1 = np.empty((len(p), m + 1, m + 1))
    for n_yes in range(m + 1):
        of_counts = 2 * t / np.maximum(n_yes + t + n_missed, 1)
        if n_yes == 0:
            of_counts[0, 0] = 1.0
        f1[:, n_yes] = np.einsum("it,tu,iku->ik", found[:, n_yes], of_counts, missed, optimize=True)
    return _best_split(1 - f1)


def _prefix_sums(values: Any) -> Any:
    """Compute sums of the first k columns, for k = 0..m."""
    return np.pad(np.cumsum(values, axis=1), ((0, 0), (1, 0)))


def _counts_of_ones(p: FloatArray) -> FloatArray:
    """Compute P(t of the first k labels are 1), (n, k, t)."""
    n, m = p.shape
    counts = np.zeros((n, m + 1, m + 1))
    counts[:, 0, 0] = 1.0
    for k in range(m):
        counts[:, k + 1] = counts[:, k] * (1 - p[:, [k]])
        counts[:, k + 1, 1:] += counts[:, k, :-1] * p[:, [k]]
    return counts


def _best_split(loss: FloatArray) -> Answered:
    """Return the best of all ways to answer the first a labels yes and the last b no: (n, a, b)."""
    m = loss.shape[1] - 1
    best, n_yes = np.empty(loss.shape[:2]), np.empty(loss.shape[:2], dtype=np.int64)
    for k in range(m + 1):
        a = np.arange(k + 1)
        each = loss[:, a, k - a]
        n_yes[:, k] = each.argmin(axis=1)
        best[:, k] = each.min(axis=1)
    return Answered(best, n_yes)


LOSSES: dict[str, Callable[[FloatArray], Answered]] = {
    "hamming": _hamming,
    "rank": _rank,
    "subset": _subset,
    "f1": _f1,
}
_CELLS = 2**22  # of a table (rows, m + 1, m + 1)


class PartialAbstention(RejectMixin):
    """Partial abstention: the least expected loss plus the cost of open labels.

    Labels are treated as independent. Leaving k of the m labels open costs ``cost * f(k)``. For
    Hamming loss with linear costs, a label is left open if its cost is below the probability of an
    error, as by Chow's rule.

    Parameters
    ----------
    estimator : classifier or "precomputed"
        As in :class:`RejectOption`.
    cost : float, default=0.2
        Cost of an open label, where a wrong answer costs 1. The larger, the more is answered.
    loss : {"hamming", "rank", "subset", "f1"}, default="hamming"
        Loss of answers: the number of wrong ones; the number of pairs of answered labels, one true
        and one not, in the wrong order; 1 if any is wrong; 1 - F1. For "rank", the labels answered
        are ranked by their probabilities, and their answers, which no loss depends on, are the
        likelier ones.
    penalty : {"linear", "concave"}, default="linear"
        Cost of k open labels: f(k) = k (SEP) or f(k) = k m / (m + k) (PAR).
    n_jobs : int, default=None
        Number of labels fitted in parallel.

    See Also
    --------
    RejectOption : Chow's rule for each label or each row.
    credalchain.JointDecision : The same trade-off under a joint distribution of the labels.

    Notes
    -----
    Hamming and subset loss answer the most certain labels, so answers are nested in the cost. Rank
    loss and F1 answer the likeliest and the least likely labels; a larger cost answers more labels,
    but not always the same.

    References
    ----------
    V.-L. Nguyen and E. Huellermeier, Reliable multilabel classification: prediction with partial
    abstention, AAAI 2020; Multilabel classification with partial abstention: Bayes-optimal
    prediction under label independence, Journal of Artificial Intelligence Research 72, 2021.

    Examples
    --------
    >>> from credalchain.rivals import PartialAbstention
    >>> p = [[0.9, 0.4, 0.1]]
    >>> for loss in ("hamming", "f1"):
    ...     abstention = PartialAbstention("precomputed", cost=0.2, loss=loss)
    ...     print(abstention.fit(p, [[1, 0, 0]]).predict_partial(p))
    [[ 1 -1  0]]
    [[1 0 0]]
    """

    caution_parameter = "cost"

    def __init__(
        self,
        estimator: BaseEstimator | str,
        cost: float = 0.2,
        *,
        loss: str = "hamming",
        penalty: str = "linear",
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.cost = cost
        self.loss = loss
        self.penalty = penalty
        self.n_jobs = n_jobs

    @property
    def nested_(self) -> bool:  # type: ignore[override]
        """True if an answer given at a cost is given at every larger one."""
        return self.loss in ("hamming", "subset")

    def check_parameters(self) -> None:
        super().check_parameters()
        check_choice("loss", self.loss, tuple(LOSSES))
        check_choice("penalty", self.penalty, ("linear", "concave"))

    def _answers_along(self, p: FloatArray, values: FloatArray) -> Labels:
        at_once = max(1, _CELLS // (p.shape[1] + 1) ** 2)
        parts = [
            self._answer_rows(p[first : first + at_once], values)
            for first in range(0, max(len(p), 1), at_once)
        ]
        return np.concatenate(parts, axis=1)

    def _answer_rows(self, p: FloatArray, values: FloatArray) -> Labels:
        m = p.shape[1]
        order = np.argsort(-p, axis=1, kind="stable")
        best = LOSSES[self.loss](np.take_along_axis(p, order, axis=1))
        position = np.argsort(order, axis=1)
        n_open = np.arange(m, -1.0, -1.0)
        penalty = n_open if self.penalty == "linear" else n_open * m / (m + n_open)
        path = np.empty((len(values), *p.shape), dtype=np.int8)
        for answers, cost in zip(path, values, strict=True):
            total = (best.loss + cost * penalty)[:, ::-1]
            is_least = total <= total.min(axis=1, keepdims=True) + TIE
            k = m - is_least.argmax(axis=1)[:, None]  # of equal ones, the most answers
            n_yes = np.take_along_axis(best.n_yes, k, axis=1)
            is_no = position >= m - k + n_yes
            answers[:] = np.where(position < n_yes, 1, np.where(is_no, 0, ABSTAIN))
            if self.loss == "rank":
                answers[:] = np.where(answers == ABSTAIN, ABSTAIN, p >= 0.5)
        return path
