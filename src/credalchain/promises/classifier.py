"""PromisedClassifier: caution chosen so that a promise about errors is kept."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from credalchain.estimators.base import CautiousTagsMixin
from credalchain.estimators.decision import JointDecision
from credalchain.labels import ABSTAIN, MISSING
from credalchain.metrics import utility_65
from credalchain.promises.risks import RISKS, Risk, own_risk
from credalchain.promises.statistics import (
    binomial_p_value,
    conformal_bound,
    evidence_against,
    fewest_rows,
    p_value,
)
from credalchain.validation import check_choice

FloatArray = NDArray[np.float64]
Labels = NDArray[np.int8]

_S = np.append(0.0, np.geomspace(1e-3, 1e3, 240))  # fixed before any row is seen, as are
_REWARDS = np.append(np.geomspace(100.0, 0.01, 2000), 0.0)
_MOST_LOOKED_AT = 500  # training rows, to see which values differ
_N_TESTS = 25  # of values, for risks that may rise with caution
_MOST_CELLS = 2**26  # of a path of predictions
_ROUNDING = 1e-12


@dataclass(frozen=True)
class PromiseReport:
    """What was promised, what was found, and what holds.

    Attributes
    ----------
    risk : str
    level : float
        The risk promised at most.
    confidence : float or None
        None: the promise holds on average over calibration rows.
    method : str
        "conformal" or "learn then test".
    value : float or None
        Of the caution parameter; None: nothing is answered.
    parameter : str
    n_rows : int
        Calibration rows.
    estimate : float
        The risk in the calibration rows, at this value.
    interval : tuple of float
        In which the risk lies with 95 % confidence (Clopper and Pearson, or Hoeffding).
    completeness : float
        Share of labels answered in the calibration rows.
    """

    risk: str
    level: float
    confidence: float | None
    method: str
    value: float | None
    parameter: str
    n_rows: int
    estimate: float
    interval: tuple[float, float]
    completeness: float

    def __str__(self) -> str:
        words = RISKS[self.risk].words if self.risk in RISKS else self.risk
        lines = [f"promised: {words} at most {self.level:.3g}"]
        if self.confidence is None:
            lines.append("  on average over calibration rows, if rows are exchangeable (conformal)")
        else:
            lines.append(
                f"  with confidence {self.confidence:.3g}, if rows are exchangeable ({self.method})"
            )
        if self.value is None:
            lines.append(
                f"no {self.parameter} keeps it with {self.n_rows} rows: nothing is answered"
            )
            return "\n".join(lines)
        low, high = self.interval
        lines.append(
            f"chosen: {self.parameter} = {self.value:.4g}, which answers "
            f"{self.completeness:.1%} of the labels"
        )
        lines.append(
            f"in {self.n_rows} calibration rows: {self.estimate:.3f} "
            f"(between {low:.3f} and {high:.3f} with 95 % confidence)"
        )
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class PromiseCheck:
    """Whether a promise still holds.

    Attributes
    ----------
    risk : str
    level : float
    confidence : float
    estimate : float
        The risk in the rows looked at.
    evidence : ndarray of shape (n,)
        Against the promise, after every row: what a gambler who bets on errors would have made of
        1. If the promise holds, it ever reaches 1 / a with probability a at most.
    """

    risk: str
    level: float
    confidence: float
    estimate: float
    evidence: FloatArray

    @property
    def broken_at(self) -> int | None:
        """The row after which the promise counts as broken, from 1; None if it does not."""
        over = np.flatnonzero(self.evidence >= 1 / (1 - self.confidence))
        return int(over[0]) + 1 if len(over) else None

    @property
    def verdict(self) -> str:
        """One of "broken", "holds so far", "too few rows to say"."""
        if self.broken_at is not None:
            return "broken"
        n = len(self.evidence)
        all_wrong = evidence_against(np.ones(n), self.level)
        could_tell = n > 0 and all_wrong[-1] >= 1 / (1 - self.confidence)
        return "holds so far" if could_tell else "too few rows to say"

    def __str__(self) -> str:
        words = RISKS[self.risk].words if self.risk in RISKS else self.risk
        after = "" if self.broken_at is None else f" (seen after row {self.broken_at})"
        return (
            f"{self.verdict}{after}: {words} {self.estimate:.3f} in {len(self.evidence)} rows, "
            f"{self.level:.3g} promised; judged with confidence {self.confidence:g}"
        )


class PromisedClassifier(CautiousTagsMixin, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Answer as many labels as a promise about errors allows.

    Rows that the estimator was not fitted on say how often it errs at each degree of caution; the
    boldest that keeps the promise is taken. If none does, nothing is answered.

    Parameters
    ----------
    estimator : classifier of this package, default=None
        Anything with ``predict_path`` and ``caution_parameter``. None means ``JointDecision()``.
    promise : dict with one entry, default=None
        A risk and the most it may be: "row_error" (rows with a wrong answer), "selective_error"
        (wrong answers among the answers), "positive_error" (wrong among the answers yes) or
        "missed_positives" (the share of a row's labels that is answered no); or a function of
        (truth, answers) that gives each row a loss from 0 to 1. None means {"row_error": 0.1}.
    confidence : float, default=None
        None: the risk is at most the level in expectation over calibration rows and new rows,
        which is known for risks that more caution can only lower (conformal risk control). A
        number: with this probability over the calibration rows, the risk is at most the level
        (learn then test).
    calibration : float or "prefit", default=0.3
        The share of the rows that is kept for calibration; or all of them, and the estimator
        is fitted already.
    random_state : int, RandomState or None, default=None
        Chooses the calibration rows.

    Attributes
    ----------
    estimator_ : the fitted estimator
    report_ : PromiseReport
    value_ : float or None
        The value of the estimator's caution parameter; None if nothing is answered.

    References
    ----------
    A. N. Angelopoulos, S. Bates, A. Fisch, L. Lei and T. Schuster, Conformal risk control,
    ICLR 2024.

    A. N. Angelopoulos, S. Bates, E. J. Candes, M. I. Jordan and L. Lei, Learn then test:
    calibrating predictive algorithms to achieve risk control, Annals of Applied Statistics, 2025.

    Examples
    --------
    >>> import numpy as np
    >>> from credalchain import CredalChainClassifier, PromisedClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 3))
    >>> Y = (X + 0.5 * rng.normal(size=X.shape) > 0).astype(int)
    >>> chain = CredalChainClassifier(random_state=0)
    >>> promised = PromisedClassifier(chain, {"row_error": 0.2}, random_state=0).fit(X, Y)
    >>> promised.report_.estimate <= 0.2
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        promise: Any = None,
        *,
        confidence: float | None = None,
        calibration: Any = 0.3,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.promise = promise
        self.confidence = confidence
        self.calibration = calibration
        self.random_state = random_state

    def fit(self, X: Any, Y: Any) -> "PromisedClassifier":
        """Fit the estimator to some of the rows, and choose its caution on the others."""
        risk, level = self._promised()
        if sparse.issparse(X):
            X = X.tocsr()  # rows are taken out of it
        if isinstance(self.calibration, str):
            check_choice("calibration", self.calibration, ("prefit",))
            self._check_rows(X.shape[0] if hasattr(X, "shape") else len(X), risk, level)
            self.estimator_, seen = self.estimator, None
            check_is_fitted(self.estimator_)
        else:
            train, held_out = self._split(X.shape[0] if hasattr(X, "shape") else len(X))
            self._check_rows(len(held_out), risk, level)
            unfitted = JointDecision() if self.estimator is None else clone(self.estimator)
            self.estimator_ = unfitted.fit(take_rows(X, train), take_rows(Y, train))
            seen = take_rows(X, train[:_MOST_LOOKED_AT])
            X, Y = take_rows(X, held_out), take_rows(Y, held_out)
        for name in ("predict_path", "caution_parameter", "larger_is_more_cautious", "nested_"):
            if not hasattr(self.estimator_, name):
                raise TypeError(
                    f"estimator must have {name}, like JointDecision(), got {self.estimator!r}."
                )
        tested = self._spread_values(seen)
        self._calibrate(X, self.estimator_.read_labels(Y), risk, level, tested)
        return self

    def _spread_values(self, seen: Any) -> NDArray[np.int64]:
        """A few places among the values that answer different shares of labels.

        Seen in training rows, so that the calibration rows have no part in it; without such rows,
        evenly spread.
        """
        values = self._values()
        if seen is None:
            return np.arange(0, len(values), -(-len(values) // _N_TESTS))
        answered = np.array(
            [(one != ABSTAIN).mean() for one in self.estimator_.predict_path(seen, values)]
        )
        wanted = np.linspace(1, 0, _N_TESTS, endpoint=False)
        return np.unique([np.abs(answered - share).argmin() for share in wanted])

    def _promised(self) -> tuple[Risk, float]:
        promise = {"row_error": 0.1} if self.promise is None else self.promise
        if not isinstance(promise, Mapping) or len(promise) != 1:
            raise ValueError(
                f"promise must be a dict with one risk and its level, like {{'row_error': 0.1}}, "
                f"got {promise!r}."
            )
        ((name, level),) = promise.items()
        if not _is_share(level):
            raise ValueError(f"the level of a promise must lie between 0 and 1, got {level!r}.")
        if self.confidence is not None and not _is_share(self.confidence):
            raise ValueError(
                f"confidence must be None or between 0 and 1, got {self.confidence!r}."
            )
        if callable(name):
            return own_risk(name), float(level)
        check_choice("promise", name, tuple(RISKS))
        if self.confidence is None and not RISKS[name].falls:
            raise ValueError(_needs_confidence(name))
        return RISKS[name], float(level)

    def _split(self, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        if not _is_share(self.calibration):
            raise ValueError(
                "calibration must be a share of the rows between 0 and 1, or 'prefit', "
                f"got {self.calibration!r}."
            )
        shuffled = check_random_state(self.random_state).permutation(n)
        n_held_out = int(np.ceil(self.calibration * n))
        return np.sort(shuffled[n_held_out:]), np.sort(shuffled[:n_held_out])

    def _check_rows(self, n: int, risk: Risk, level: float) -> None:
        needed = fewest_rows(level, self.confidence)
        if n < needed:
            how = "" if self.confidence is None else f" with confidence {self.confidence:g}"
            raise ValueError(
                f"the promise {risk.name} at most {level:g}{how} needs at least {needed} rows for "
                f"calibration, got {n}: even without an error, fewer could not show it."
            )

    def _calibrate(self, X: Any, truth: Labels, risk: Risk, level: float, tested: Any) -> None:
        """``tested`` are the values that are tried if the risk may rise with caution."""
        complete = (truth != MISSING).all(axis=1)
        if not complete.all():
            X, truth = take_rows(X, np.flatnonzero(complete)), truth[complete]
            self._check_rows(len(truth), risk, level)
        values = self._values()
        losses, estimates, answered = self._along(X, truth, risk, level, values)
        falls = risk.falls and self.estimator_.nested_
        if not falls and risk.name not in RISKS:  # a function: does caution only lower its losses?
            falls = bool((np.diff(losses, axis=0) <= 0).all())
        if self.confidence is None:
            if not falls:
                raise ValueError(_needs_confidence(risk.name))
            kept = conformal_bound(losses.mean(axis=1), len(truth)) <= level + _ROUNDING
        else:
            kept = self._tested(losses, risk, level, falls, tested)
        bold = np.flatnonzero(kept)
        chosen = int(bold[0]) if len(bold) else None
        self.value_ = None if chosen is None else float(values[chosen])
        estimate = 0.0 if chosen is None else float(estimates[chosen])
        self.report_ = PromiseReport(
            risk.name,
            level,
            self.confidence,
            "conformal" if self.confidence is None else "learn then test",
            self.value_,
            self.estimator_.caution_parameter,
            len(truth),
            estimate,
            _interval(estimate, len(truth), risk),
            0.0 if chosen is None else float(answered[chosen]),
        )

    def _values(self) -> FloatArray:
        """From bold to cautious."""
        return _S if self.estimator_.larger_is_more_cautious else _REWARDS

    def _along(
        self, X: Any, truth: Labels, risk: Risk, level: float, values: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Losses (values, n), the risk and the share of labels answered at each value."""
        n, m = truth.shape
        losses = np.empty((len(values), n))
        bad, every, answered = (np.zeros(len(values)) for _ in range(3))
        at_once = max(1, _MOST_CELLS // (len(values) * m))
        for first in range(0, n, at_once):
            rows = np.arange(first, min(first + at_once, n))
            path = np.asarray(self.estimator_.predict_path(take_rows(X, rows), values))
            losses[:, rows] = risk.losses(truth[rows], path, level)
            part, total = risk.counts(truth[rows], path)
            bad += np.sum(part, axis=-1)
            every += len(rows) if total is None else np.sum(total, axis=-1)
            answered += (path != ABSTAIN).mean(axis=2).sum(axis=1)
        return losses, bad / np.where(every > 0, every, 1.0), answered / n

    def _tested(
        self, losses: FloatArray, risk: Risk, level: float, falls: bool, tested: Any
    ) -> Any:
        """Which values keep the promise, with all tests together right with the confidence."""
        assert self.confidence is not None
        n, doubt = losses.shape[1], 1 - self.confidence
        if risk.is_yes_or_no:
            p = binomial_p_value(np.rint(losses.sum(axis=1)).astype(np.int64), n, level)
        else:
            p = p_value(losses, level)
        if falls:  # from the cautious end, until one fails
            return np.logical_and.accumulate((p <= doubt)[::-1])[::-1]
        kept = np.zeros(len(p), dtype=bool)
        ordered = tested[np.argsort(p[tested], kind="stable")]
        limits = doubt / np.arange(len(ordered), 0, -1)  # Holm
        kept[ordered] = np.logical_and.accumulate(p[ordered] <= limits)
        return kept

    def predict_partial(self, X: Any) -> Labels:
        """Labels 1, 0, or -1 where the promise does not allow an answer: int8, (n, m)."""
        check_is_fitted(self, "report_")
        value = self._values()[-1] if self.value_ is None else self.value_
        labels = np.asarray(self.estimator_.predict_path(X, [value])[0])
        return np.full_like(labels, ABSTAIN) if self.value_ is None else labels

    def infer(self, X: Any, *, known: Any = None) -> Any:
        """Labels and bounds, a :class:`CredalPrediction`.

        ``known`` are labels that were answered already; the promise is about rows without them.
        """
        check_is_fitted(self, "report_")
        value = self._values()[-1] if self.value_ is None else self.value_
        parameter = {self.estimator_.caution_parameter: value}
        prediction = self.estimator_.infer(X, known=known, **parameter)
        if self.value_ is not None:
            return prediction
        return replace(prediction, labels=np.full_like(prediction.labels, ABSTAIN))

    def predict(self, X: Any) -> NDArray[Any]:
        """The estimator's own: every label answered, nothing promised."""
        check_is_fitted(self, "report_")
        return np.asarray(self.estimator_.predict(X))

    def predict_proba(self, X: Any) -> FloatArray:
        """The estimator's own."""
        check_is_fitted(self, "report_")
        return np.asarray(self.estimator_.predict_proba(X))

    def read_labels(self, Y: Any) -> Labels:
        """True labels of new rows, in the form of ``predict_partial``."""
        check_is_fitted(self, "report_")
        return np.asarray(self.estimator_.read_labels(Y))

    def score(self, X: Any, y: Any) -> float:
        """Mean u65 of ``predict_partial``: right 1, wrong 0, left open 0.65, per label."""
        return utility_65(self.read_labels(y), self.predict_partial(X))

    def check(self, X: Any, Y: Any, *, confidence: float = 0.95) -> PromiseCheck:
        """Whether the promise still holds, on newly labelled rows in the order they came.

        The test may be repeated after every row: the chance that it ever calls a promise broken
        that holds is at most 1 - ``confidence``.
        """
        check_is_fitted(self, "report_")
        risk, level = self._promised()
        truth, answers = self.read_labels(Y), self.predict_partial(X)
        complete = (truth != MISSING).all(axis=1)
        truth, answers = truth[complete], answers[complete]
        evidence = evidence_against(risk.losses(truth, answers, level), level)
        estimate = float(risk.estimate(truth, answers)) if len(truth) else 0.0
        return PromiseCheck(risk.name, level, confidence, estimate, evidence)

    @property
    def classes_(self) -> NDArray[Any]:
        """The estimator's own."""
        return np.asarray(self.estimator_.classes_)

    @property
    def label_names_(self) -> NDArray[np.str_]:
        return np.asarray(self.estimator_.label_names_)


def _needs_confidence(risk: str) -> str:
    return (
        f"{risk} may rise with caution, so nothing is known of it on average: pass a confidence, "
        "such as 0.9."
    )


def _is_share(value: Any) -> bool:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return is_number and bool(0 < value < 1)


def _interval(estimate: float, n: int, risk: Risk) -> tuple[float, float]:
    """95 % confidence, without the choice of the value taken into account."""
    if risk.is_yes_or_no:
        found = stats.binomtest(round(estimate * n), n).proportion_ci(0.95)
        return float(found.low), float(found.high)
    width = float(np.sqrt(np.log(2 / 0.05) / (2 * n)))
    return max(0.0, estimate - width), min(1.0, estimate + width)
