"""Conformal prediction of label sets, as answers that may be left open."""

from collections.abc import Callable

import numpy as np
from sklearn.base import BaseEstimator

from credalchain._utils.array_types import FloatArray, IntArray, Labels
from credalchain._utils.validation import check_choice
from credalchain.labels import MISSING
from credalchain.rivals.base import TIE, CalibratedMixin
from credalchain.typing import RandomStateLike


def p_values(calibration: FloatArray, scores: FloatArray) -> FloatArray:
    """Return the share of calibration scores, with the new one, that are at least as large."""
    below: IntArray = np.searchsorted(np.sort(calibration), scores - TIE, side="left")
    return (len(calibration) - below + 1) / (len(calibration) + 1)


Calibrated = list[tuple[FloatArray, FloatArray]]  # scores that say no and yes is wrong, per label


def _mondrian(p: FloatArray, labels: Labels) -> Calibrated:
    """Score how unlikely each true label was, in rows where it is yes, and no."""
    columns = zip(p.T, labels.T, strict=True)
    return [(q[y == 0], 1 - q[y == 1]) for q, y in columns]


def _inner_outer(p: FloatArray, labels: Labels) -> Calibrated:
    """Score, of complete rows, the least likely true label and the likeliest other one."""
    complete = (labels != MISSING).all(axis=1)
    p, is_yes = p[complete], labels[complete] == 1
    greatest_no = np.where(is_yes, 0.0, p).max(axis=1, initial=0.0)
    least_yes = np.where(is_yes, p, 1.0).min(axis=1, initial=1.0)
    return [(greatest_no, 1 - least_yes)]


def _powerset(p: FloatArray, labels: Labels) -> Calibrated:
    """Compute the squared distance of probabilities from the true vector, of complete rows."""
    complete = (labels != MISSING).all(axis=1)
    distance = ((p[complete] - labels[complete]) ** 2).sum(axis=1)
    return [(distance, distance)]


KINDS: dict[str, Callable[[FloatArray, Labels], Calibrated]] = {
    "label": _mondrian,
    "inner_outer": _inner_outer,
    "powerset": _powerset,
}


class ConformalAbstention(CalibratedMixin):
    """Conformal label sets with guaranteed coverage; a label is answered if the sets agree on it.

    Rows held out give p-values to what would be wrong; an answer is given if the p-value of its
    opposite is at most ``alpha``. For exchangeable rows, marginally over the calibration set:

    - "label": each label has the set {0}, {1} or both, which lacks the true value with probability
      at most alpha, for rows with 0 and for rows with 1 (Mondrian by label and class).
    - "inner_outer": an inner set (answered yes) and an outer set (all but those answered no). With
      probability at least 1 - alpha, the row's true labels include the inner set and lie in the
      outer one: no answer of the row is wrong. Each side gets alpha / 2.
    - "powerset": the set of label vectors whose squared distance from the probabilities is not
      unusual holds the row's true one with probability at least 1 - alpha; what is common to all of
      them is answered.

    Where a set would be empty, which a large alpha allows, the answer with the larger p-value
    stands; the guarantee holds for it, too.

    Parameters
    ----------
    estimator : classifier or "precomputed"
        As in :class:`RejectOption`.
    alpha : float, default=0.1
        Error level; the larger, the more is answered.
    kind : {"label", "inner_outer", "powerset"}, default="label"
        Kind of the guarantee, see above. Used by ``fit``.
    calibration : float, default=0.25
        Share of rows held out; all rows over a ``FrozenEstimator`` or "precomputed". For the last
        two kinds, only rows without missing labels count.
    n_jobs : int, default=None
        Number of labels fitted in parallel.
    random_state : int, RandomState or None, default=None
        Seed of the random choice of the held-out rows.

    See Also
    --------
    credalchain.PromisedClassifier : Risk control for many risks, over any cautious classifier.

    References
    ----------
    V. Vovk, A. Gammerman and G. Shafer, Algorithmic Learning in a Random World, 2005 ("label").

    M. Cauchois, S. Gupta and J. C. Duchi, Knowing what you know: valid and validated confidence
    sets in multiclass and multilabel prediction, Journal of Machine Learning Research 22, 2021
    ("inner_outer", with the finite-sample correction).

    H. Papadopoulos, A cross-conformal predictor for multi-label classification, AIAI 2014
    ("powerset", here split-conformal).

    Examples
    --------
    >>> import numpy as np
    >>> from credalchain.rivals import ConformalAbstention
    >>> p = np.array([[0.05], [0.1], [0.2], [0.6], [0.4], [0.8], [0.9], [0.95]])
    >>> Y = [[0], [0], [0], [0], [1], [1], [1], [1]]
    >>> conformal = ConformalAbstention("precomputed", alpha=0.2).fit(p, Y)
    >>> conformal.predict_partial([[0.1], [0.5], [0.9]])[:, 0]
    array([ 0, -1,  1], dtype=int8)
    """

    caution_parameter = "alpha"

    def __init__(
        self,
        estimator: BaseEstimator | str,
        alpha: float = 0.1,
        *,
        kind: str = "label",
        calibration: float = 0.25,
        n_jobs: int | None = None,
        random_state: RandomStateLike = None,
    ) -> None:
        self.estimator = estimator
        self.alpha = alpha
        self.kind = kind
        self.calibration = calibration
        self.n_jobs = n_jobs
        self.random_state = random_state

    def check_parameters(self) -> None:
        super().check_parameters()
        check_choice("kind", self.kind, tuple(KINDS))

    def _calibrate(self, p: FloatArray, labels: Labels) -> None:
        self.scores_of_wrong_, self.kind_ = KINDS[self.kind](p, labels), self.kind

    def _answers_and_prices(self, p: FloatArray) -> tuple[Labels, FloatArray]:
        """Price an answer by the p-value of its opposite; the cheaper one is the answer."""
        if self.kind_ == "powerset":  # the nearest vector, and the nearest that differs in a label
            nearest = (np.minimum(p, 1 - p) ** 2).sum(axis=1, keepdims=True)
            prices = p_values(self.scores_of_wrong_[0][0], nearest + np.abs(1 - 2 * p))
            return (p >= 0.5).astype(np.int8), prices
        columns = np.broadcast_to(np.arange(len(self.scores_of_wrong_)), p.shape[1])
        of_yes, of_no = np.empty(p.shape), np.empty(p.shape)
        for j, column in enumerate(columns.tolist()):
            if_no, if_yes = self.scores_of_wrong_[column]
            of_no[:, j] = p_values(if_yes, 1 - p[:, j])
            of_yes[:, j] = p_values(if_no, p[:, j])
        sides = 2 if self.kind_ == "inner_outer" else 1
        is_yes = (of_yes < of_no) | ((of_yes == of_no) & (p >= 0.5))
        return is_yes.astype(np.int8), sides * np.where(is_yes, of_yes, of_no)
