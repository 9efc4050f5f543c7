"""Which open label to ask a person about next."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import check_is_fitted

from credalchain._utils.array_types import BoolArray, FloatArray, Labels
from credalchain._utils.validation import check_choice, check_int
from credalchain.labels import ABSTAIN, MISSING
from credalchain.model_selection import unwrap
from credalchain.typing import LabelsLike, MatrixLike, RandomStateLike

ORDERS = ("settles most", "least sure", "in order", "random")
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class OpenQuestion:
    """Open label of a row, and the expected number of labels that its answer settles.

    Parameters
    ----------
    row : int
        Number of the row.
    label : str
        Name of the label.
    settles : tuple of (float, float)
        Lower and upper expectation of the number of labels of the row that its answer settles,
        itself included; NaN where they were not needed.

    See Also
    --------
    next_questions : Find the open labels to ask about next.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier, next_questions
    >>> X = [["sun"], ["sun"], ["sun"], ["rain"], ["rain"], ["fog"]]
    >>> Y = [[1, 0], [1, 0], [1, None], [0, 1], [0, 1], [None, 1]]
    >>> chain = CredalChainClassifier(s=0.5, order="given").fit(X, Y)
    >>> (question,) = next_questions(chain, [["sun"], ["fog"]])
    >>> tuple(round(float(n), 2) for n in question.settles)
    (1.0, 2.0)
    """

    row: int
    label: str
    settles: tuple[float, float]


def next_questions(
    classifier: BaseEstimator,
    X: MatrixLike,
    budget: int = 10,
    *,
    known: LabelsLike | None = None,
    order: str = "settles most",
    random_state: RandomStateLike = None,
) -> list[OpenQuestion]:
    """Return the most informative open labels to ask about next, at most one per row.

    At most one per row, because the best next question in a row depends on the answer: ask, put the
    answer into ``known``, and call again.

    Parameters
    ----------
    classifier : fitted classifier of this package, or a pipeline that ends in one
        Predicts with its own parameters.
    X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
        Rows to ask about.
    budget : int, default=10
        Maximum number of questions.
    known : array-like of shape (n_samples, n_labels), default=None
        Labels that are known already, 0 or 1; -1 elsewhere.
    order : {"settles most", "least sure", "in order", "random"}, default="settles most"
        "settles most": by the expected number of open labels of the row that an answer settles,
        computed by trying both answers to every open label; the expectation is an interval, as the
        probability of the answer is, and its lower bound counts. "least sure": the interval whose
        middle is nearest to one half. "in order": rows, and labels in them, as they stand.
    random_state : int, RandomState or None, default=None
        Seed of the order "random".

    Returns
    -------
    list of OpenQuestion
        Questions, the best first.

    See Also
    --------
    explain : Explain the answers of one row.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier, next_questions
    >>> X = [["sun"], ["sun"], ["sun"], ["rain"], ["rain"], ["fog"]]
    >>> Y = [[1, 0], [1, 0], [1, None], [0, 1], [0, 1], [None, 1]]
    >>> chain = CredalChainClassifier(s=0.5, order="given").fit(X, Y)
    >>> (question,) = next_questions(chain, [["sun"], ["fog"]])
    >>> question.row, question.label
    (1, 'label0')
    """
    check_int("budget", budget)
    check_choice("order", order, ORDERS)
    classifier, X = unwrap(classifier, X)
    check_is_fitted(classifier)
    X = X if hasattr(X, "shape") else np.asarray(X, dtype=object)
    names = classifier.label_names_.tolist()
    known_labels = read_known(classifier, known, X.shape[0])
    prediction = classifier.infer(X, known=known_labels)
    is_open = prediction.labels == ABSTAIN
    rows = np.flatnonzero(is_open.any(axis=1))
    is_open, interval = is_open[rows], prediction.interval[rows]
    ranks, settles = rank_questions(
        order, classifier, _safe_indexing(X, rows), known_labels[rows], is_open, interval
    )
    rng = check_random_state(random_state)
    if order == "random":
        ranks = rng.random_sample(is_open.shape)
    best = np.where(is_open, ranks, np.inf).argmin(axis=1)
    of_best = (np.arange(len(rows)), best)
    gains = settles[of_best]
    ranking = np.lexsort((-gains[:, 1], ranks[of_best]))
    if order in ("in order", "random"):
        ranking = rng.permutation(len(rows)) if order == "random" else np.arange(len(rows))
    return [
        OpenQuestion(int(rows[i]), names[best[i]], (float(gains[i, 0]), float(gains[i, 1])))
        for i in ranking[:budget].tolist()
    ]


def distance_from_half(interval: FloatArray) -> FloatArray:
    """Compute how far the middles of intervals are from one half, (n, m)."""
    return np.asarray(np.abs(interval.mean(axis=-1) - 0.5))


def rank_questions(
    order: str, classifier: Any, X: Any, known: Labels, is_open: BoolArray, interval: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Rank the labels of every row, (n, m), and bound what they settle, (n, m, 2).

    The label of the least rank is asked first. The bounds are NaN where the order needs none.
    """
    if order == "settles most":
        settles = expected_settled_labels(classifier, X, known, is_open, interval)
        return -settles[..., 0], settles
    nothing = np.full(interval.shape, np.nan)
    if order == "least sure":
        return distance_from_half(interval), nothing
    return np.tile(np.arange(is_open.shape[1], dtype=float), (len(is_open), 1)), nothing


def read_known(classifier: Any, known: Any, n_rows: int) -> Labels:
    """Return known labels as numbers, (n, m), -1 where nothing is known."""
    if known is None:
        return np.full((n_rows, len(classifier.label_names_)), MISSING, dtype=np.int8)
    if n_rows == 1 and not hasattr(known, "columns"):
        known = np.reshape(np.asarray(known, dtype=object), (1, -1))
    return np.array(classifier.targets_.encode_known(known, n_rows))


def expected_settled_labels(
    classifier: Any, X: Any, known: Labels, is_open: BoolArray, interval: FloatArray
) -> FloatArray:
    """Bound the expected number of labels that an answer settles, (n, m, 2).

    For every open label of X; 0 for others.
    """
    row, label = np.nonzero(is_open)
    settled = np.empty((2, len(row)))
    for value in (0, 1):
        for first in range(0, len(row), _ROWS_AT_ONCE):
            part = slice(first, first + _ROWS_AT_ONCE)
            known_if = known[row[part]]
            known_if[np.arange(len(known_if)), label[part]] = value
            after = classifier.infer(_safe_indexing(X, row[part]), known=known_if).labels
            settled[value, part] = (is_open[row[part]] & (after != ABSTAIN)).sum(axis=1)
    ends = interval[row, label].T  # lower and upper P(1)
    bounds = np.zeros(interval.shape)
    bounds[row, label] = np.sort(settled[0] + ends * (settled[1] - settled[0]), axis=0).T
    return bounds
