"""Reject options: per label, per row, and with two thresholds for each label."""

import numpy as np
from sklearn.base import BaseEstimator

from credalchain._utils.array_types import FloatArray, Labels
from credalchain._utils.validation import check_choice
from credalchain.joint.rules import EQUAL_COSTS, RULES, price_cells
from credalchain.labels import ABSTAIN, MISSING
from credalchain.rivals.base import CalibratedMixin, RejectMixin, check_value
from credalchain.typing import RandomStateLike


class RejectOption(RejectMixin):
    """Chow's rule: answer if the probability of being wrong is at most the cost of rejection.

    Parameters
    ----------
    estimator : classifier or "precomputed"
        Any classifier with ``predict_proba`` or ``decision_function``, multi-label or binary (each
        label gets a clone); ``FrozenEstimator`` of a fitted one. "precomputed": X holds the
        probabilities.
    cost : float, default=0.2
        Cost of rejection, where a wrong answer costs 1. At 0.5 or more (per label) or 1 or more
        (whole rows), nothing is rejected.
    unit : {"label", "row"}, default="label"
        Unit of rejection: a single label, or a row with all its labels. A row is wrong if any of
        its labels is; labels are treated as independent.
    n_jobs : int, default=None
        Number of labels fitted in parallel.

    See Also
    --------
    RejectThresholds : Two thresholds for each label, learned from rows held out.

    References
    ----------
    C. K. Chow, On optimum recognition error and reject tradeoff, IEEE Transactions on Information
    Theory 16(1), 1970.

    Examples
    --------
    >>> from credalchain.rivals import RejectOption
    >>> p = [[0.9, 0.4], [0.95, 0.1]]
    >>> RejectOption("precomputed", cost=0.2).fit(p, [[1, 0], [1, 0]]).predict_partial(p)
    array([[ 1, -1],
           [ 1,  0]], dtype=int8)
    >>> RejectOption("precomputed", 0.2, unit="row").fit(p, [[1, 0], [1, 0]]).predict_partial(p)
    array([[-1, -1],
           [ 1,  0]], dtype=int8)
    """

    caution_parameter = "cost"

    def __init__(
        self,
        estimator: BaseEstimator | str,
        cost: float = 0.2,
        *,
        unit: str = "label",
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.cost = cost
        self.unit = unit
        self.n_jobs = n_jobs

    def check_parameters(self) -> None:
        super().check_parameters()
        check_choice("unit", self.unit, ("label", "row"))

    def _answers_and_prices(self, p: FloatArray) -> tuple[Labels, FloatArray]:
        answers, prices = price_cells(RULES["cell"], np.stack([1 - p, p], axis=-1), EQUAL_COSTS)
        if self.unit == "row":
            right = np.maximum(p, 1 - p).prod(axis=1, keepdims=True)
            prices = np.broadcast_to(1 - right, p.shape)
        return answers, prices


class RejectThresholds(CalibratedMixin):
    """Reject option with two thresholds for each label, between which it is left open.

    They maximise the F1 of the label's answers in rows held out, where a share ``coverage`` of them
    is answered: no below the lower one, yes from the upper one on. This is in the manner of Pillai,
    Fumera and Roli, and not their algorithm.

    Parameters
    ----------
    estimator : classifier or "precomputed"
        As in :class:`RejectOption`.
    coverage : float, default=0.8
        Share of the held-out rows in which a label is answered; 1 or more answers all.
    thresholds : {"label", "common"}, default="label"
        "label": two for each label. "common": the same two for all labels, with the greatest F1 of
        all cells together.
    calibration : float, default=0.25
        Share of rows held out; all rows over a ``FrozenEstimator`` or "precomputed".
    n_jobs : int, default=None
        Number of labels fitted in parallel.
    random_state : int, RandomState or None, default=None
        Seed of the random choice of the held-out rows.

    See Also
    --------
    RejectOption : Chow's rule, which needs no rows held out.

    References
    ----------
    I. Pillai, G. Fumera and F. Roli, Multi-label classification with a reject option, Pattern
    Recognition 46(8), 2013.

    Examples
    --------
    >>> from credalchain.rivals import RejectThresholds
    >>> p, Y = [[0.1], [0.2], [0.3], [0.4]], [[0], [0], [1], [1]]
    >>> reject = RejectThresholds("precomputed", coverage=0.75).fit(p, Y)
    >>> reject.predict_partial([[0.15], [0.25], [0.35]])[:, 0]
    array([ 0, -1,  1], dtype=int8)
    """

    caution_parameter = "coverage"
    nested_ = False

    def __init__(
        self,
        estimator: BaseEstimator | str,
        coverage: float = 0.8,
        *,
        thresholds: str = "label",
        calibration: float = 0.25,
        n_jobs: int | None = None,
        random_state: RandomStateLike = None,
    ) -> None:
        self.estimator = estimator
        self.coverage = coverage
        self.thresholds = thresholds
        self.calibration = calibration
        self.n_jobs = n_jobs
        self.random_state = random_state

    def check_parameters(self) -> None:
        super().check_parameters()
        check_choice("thresholds", self.thresholds, ("label", "common"))
        check_value("coverage", self.coverage)

    def _calibrate(self, p: FloatArray, labels: Labels) -> None:
        is_common = self.thresholds == "common"
        columns = [(p.ravel(), labels.ravel())] if is_common else zip(p.T, labels.T, strict=True)
        self.held_out_ = []  # sorted probabilities and their labels, of each label or of all
        for q, y in columns:
            q, y = q[y != MISSING], y[y != MISSING]
            order = np.argsort(q, kind="stable")
            self.held_out_.append((q[order], y[order]))

    def _answers_along(self, p: FloatArray, values: FloatArray) -> Labels:
        bands = np.array([[reject_band(q, y, v) for q, y in self.held_out_] for v in values])
        lower, upper = bands[:, None, :, 0], bands[:, None, :, 1]
        zero_or_open = np.where(p < lower, np.int8(0), np.int8(ABSTAIN))
        return np.where(p >= upper, np.int8(1), zero_or_open)


def reject_band(p: FloatArray, labels: Labels, coverage: float) -> tuple[float, float]:
    """Return the thresholds with the greatest F1 of the answers.

    Of equal ones, those that leave the most open, then the nearest to 1/2.

    Answers are yes from the upper threshold on and no below the lower one. Of ``p``, sorted, a
    share ``coverage`` is answered, rounded up. Equal probabilities are not separated, so it may be
    more; then neither threshold can be moved without answering less than that share.
    """
    n = len(p)
    if n == 0:
        return (0.5, 0.5) if coverage >= 1 else (-np.inf, np.inf)
    n_open = int((1 - min(coverage, 1.0)) * n + 1e-9)
    cuts = np.concatenate([[0], np.flatnonzero(np.diff(p)) + 1, [n]])
    widest = cuts[np.searchsorted(cuts, cuts + n_open, side="right") - 1]  # from each lower cut
    narrowest = cuts[np.searchsorted(cuts, cuts - n_open, side="left")]  # to each upper cut
    full = cuts + n_open <= n, cuts >= n_open
    n_no = np.concatenate([cuts[full[0]], narrowest[full[1]]])
    first_yes = np.concatenate([widest[full[0]], cuts[full[1]]])
    positives = np.append(0, np.cumsum(labels))
    missed, found = positives[n_no], positives[-1] - positives[first_yes]
    wrong = missed + n - first_yes - found
    f1 = np.where(found + wrong > 0, 2 * found / np.maximum(2 * found + wrong, 1), 1.0)
    ends = np.concatenate([[-np.inf], (p[1:] + p[:-1]) / 2, [np.inf]])
    lower, upper = ends[n_no], ends[first_yes]
    if n_open == 0:  # a single threshold
        lower = upper = np.clip(ends[n_no], 0.0, np.nextafter(1.0, 2.0))
    is_best = f1 >= f1.max() - 1e-12
    from_half = np.abs(np.clip(lower, 0, 1) + np.clip(upper, 0, 1) - 1)
    best = np.lexsort((from_half, n_no - first_yes, ~is_best))[0]
    return float(lower[best]), float(upper[best])
