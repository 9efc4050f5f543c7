"""PromisedClassifier: caution chosen so that a promise about errors is kept."""

import operator
from dataclasses import replace
from functools import reduce
from itertools import repeat
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import KFold
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from credalchain.estimators.base import CautiousTagsMixin
from credalchain.estimators.decision import JointDecision
from credalchain.estimators.folds import fitted_folds
from credalchain.estimators.targets import Targets
from credalchain.labels import ABSTAIN, MISSING
from credalchain.metrics import utility_65
from credalchain.model_selection import unwrap
from credalchain.preprocessing import as_rows
from credalchain.promises.agreement import AgreeingClassifiers
from credalchain.promises.calibration import (
    HeldOut,
    Judged,
    all_held_out,
    answers_along,
    caution_values,
    columns_of,
    hold_out,
    judge,
    tallies_along,
)
from credalchain.promises.reading import is_share, read_method, read_promises
from credalchain.promises.report import (
    PromiseCheck,
    PromiseReport,
    PromiseResult,
    PromiseTest,
)
from credalchain.promises.risks import Labels
from credalchain.promises.selection import (
    Plan,
    Promise,
    Tally,
    interval,
    kept_by_agreement,
    kept_values,
    nearest_to_kept,
    plan_test,
)
from credalchain.promises.statistics import evidence_against, fewest_rows, rows_to_show

FloatArray = NDArray[np.float64]


class PromisedClassifier(CautiousTagsMixin, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Answer as many labels as a promise about errors allows.

    Rows that the estimator was not fitted on say how often it errs at each degree of caution; the
    boldest that keeps the promise is taken. If none does, nothing is answered.

    Parameters
    ----------
    estimator : classifier of this package or a pipeline that ends in one, default=None
        Anything with ``predict_path``, ``caution_parameter``, ``larger_is_more_cautious`` and
        ``nested_``. None means ``JointDecision()``.
    promise : dict, default=None
        A risk and the most it may be: "row_error" (rows with a wrong answer), "selective_error"
        (wrong answers among the answers), "positive_error" (wrong among the answers yes) or
        "missed_positives" (a row's positive labels that are answered no); or a function of
        (truth, answers) that gives each row a loss from 0 to 1. In place of a number, a dict of
        labels and numbers: each of these labels then has a caution of its own. Several
        risks are all kept. None means {"row_error": 0.1}.
    confidence : float, default=None
        None: the risk is at most the level in expectation over calibration rows and new rows. A
        number: with this probability over the calibration rows, all promises are kept;
        several promises share what may go wrong.
    method : {"auto", "conformal", "learn_then_test", "cross_conformal", "cross_fit"}, \
default="auto"
        How the promise is kept. "conformal" is for promises without confidence,
        "learn_then_test" for those with one. With a cross-validation, "cross_conformal" answers
        where all fold models agree, which is known to keep promises on average; it needs at
        least 1 / level - 1 folds. "cross_fit" chooses by cross-validation and
        fits again to all rows, without any guarantee. "auto" takes the one that has a guarantee.
    calibration : float, "prefit", int or cross-validation splitter, default=0.3
        The share of the rows that is kept for calibration; "prefit" if all rows are for
        calibration, since the estimator is fitted already; or the folds of a cross-validation.
    values : array-like, default=None
        Of the caution parameter, to choose from. They must not depend on the calibration rows.
        None means s from 0 to 1e6, or rewards from 100 to 0.
    random_state : int, RandomState or None, default=None
        Chooses the calibration rows.

    Attributes
    ----------
    estimator_ : the fitted estimator
    report_ : PromiseReport
        What was chosen, what was found, and what holds.
    values_ : ndarray of shape (n_labels,)
        The value of the estimator's caution parameter for each label; NaN: it is never answered.

    References
    ----------
    A. N. Angelopoulos, S. Bates, A. Fisch, L. Lei and T. Schuster, Conformal risk control,
    ICLR 2024.

    A. N. Angelopoulos, S. Bates, E. J. Candes, M. I. Jordan and L. Lei, Learn then test:
    calibrating predictive algorithms to achieve risk control, Annals of Applied Statistics, 2025.

    K. M. Cohen, S. Park, O. Simeone and S. Shamai, Cross-validation conformal risk control,
    IEEE International Symposium on Information Theory, 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from credalchain import CredalChainClassifier, PromisedClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 3))
    >>> Y = (X + 0.5 * rng.normal(size=X.shape) > 0).astype(int)
    >>> chain = CredalChainClassifier(random_state=0)
    >>> promised = PromisedClassifier(chain, {"row_error": 0.2}, random_state=0).fit(X, Y)
    >>> promised.report_.promises[0].estimate <= 0.2
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        promise: Any = None,
        *,
        confidence: float | None = None,
        method: str = "auto",
        calibration: Any = 0.3,
        values: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.promise = promise
        self.confidence = confidence
        self.method = method
        self.calibration = calibration
        self.values = values
        self.random_state = random_state

    # -- fitting ---------------------------------------------------------------------------

    def fit(self, X: Any, Y: Any) -> "PromisedClassifier":
        """Fit the estimator to some of the rows, and choose its caution on the others."""
        if Y is None:
            raise ValueError(
                "PromisedClassifier requires y to be passed, but the target y is None."
            )
        X, Y = as_rows(X), Y if hasattr(Y, "__getitem__") else np.asarray(Y)
        targets, labels = Targets.learn(Y)
        check_consistent_length(X, labels)
        promises = read_promises(self.promise, self.confidence, targets.names.tolist())
        method = read_method(self.method, self.calibration, self.confidence, promises)
        if method in ("cross_conformal", "cross_fit"):
            return self._fit_folds(X, Y, labels, promises, method)
        if isinstance(self.calibration, str):
            held = all_held_out(
                self.estimator,
                X,
                Y,
                labels,
                promises,
                values=self.values,
                random_state=self.random_state,
            )
        else:
            held = hold_out(
                self._unfitted(),
                X,
                Y,
                labels,
                promises,
                share=self.calibration,
                values=self.values,
                random_state=self.random_state,
            )
        self._choose(held.estimator, promises, judge(held, promises), held.truth, method)
        return self

    def _fit_folds(
        self, X: Any, Y: Any, labels: Labels, promises: list[Promise], method: str
    ) -> "PromisedClassifier":
        """Choose by cross-validation."""
        splits, n = self._folds(len(labels), promises, method)
        rows = np.sort(check_random_state(self.random_state).permutation(len(labels))[:n])
        X, Y, truth = take_rows(X, rows), take_rows(Y, rows), labels[rows]
        fitted, by_fold, answered = [], [], []
        for fold in fitted_folds(repeat(self._unfitted()), X, Y, splits):
            values = caution_values(fold.estimator, self.values)
            everyone = np.arange(len(fold.rows))
            held = HeldOut(fold.estimator, fold.X, truth[fold.rows], values, everyone < 0)
            found, its_answered = tallies_along(held, everyone, promises)
            fitted.append(fold.estimator)
            by_fold.append(found)
            answered.append(its_answered)
        share = np.sum(answered, axis=0) / n
        kept, plans, total = [], [], []
        for at, promise in enumerate(promises):
            folds = [one[at] for one in by_fold]
            total.append(reduce(operator.add, folds))
            completeness = share[:, columns_of(promise.label)].sum(axis=1)
            plans.append(plan_test(promise, total[at], completeness, n))
            if method == "cross_conformal":
                kept.append(kept_by_agreement(promise, folds))
            else:
                kept.append(kept_values(promise, total[at], plans[at]))
        estimator: Any = AgreeingClassifiers(fitted)
        if method == "cross_fit":
            estimator = self._unfitted().fit(X, Y)
        self._choose(estimator, promises, Judged(total, plans, kept, share), truth, method)
        return self

    def _folds(
        self, n: int, promises: list[Promise], method: str
    ) -> tuple[list[tuple[Any, Any]], int]:
        """Splits, and how many rows they are of: for agreement, folds are of the same size."""
        splitter = self.calibration
        if isinstance(splitter, Integral):
            splitter = KFold(int(splitter), shuffle=True, random_state=_seed(self.random_state))
        n_folds = splitter.get_n_splits()
        if method == "cross_fit":
            return list(splitter.split(np.zeros((n, 1)))), n
        needed = max(fewest_rows(promise.level, None) for promise in promises)
        if n_folds < needed or n < n_folds:
            raise ValueError(
                f"calibration: answers by agreement of fold models need at least {needed} folds "
                f"for a level of {min(promise.level for promise in promises):g}, and as many rows, "
                f"got {n_folds} folds and {n} rows."
            )
        n -= n % n_folds
        splits = list(splitter.split(np.zeros((n, 1))))
        tested = np.concatenate([test for _, test in splits])
        if {len(test) for _, test in splits} != {n // n_folds} or len(np.unique(tested)) < n:
            raise ValueError(
                "calibration: answers by agreement of fold models need folds of the same size "
                f"that hold every row once, as KFold gives them, got {self.calibration!r}."
            )
        return splits, n

    def _unfitted(self) -> Any:
        if self.estimator is None:
            return JointDecision(random_state=_seed(self.random_state))
        return clone(self.estimator)

    # -- choosing --------------------------------------------------------------------------

    def _choose(
        self,
        estimator: Any,
        promises: list[Promise],
        judged: Judged,
        truth: Labels,
        method: str,
    ) -> None:
        """Take the boldest value that keeps all promises, about rows or about each label."""
        self.estimator_ = estimator
        values, names = caution_values(estimator, self.values), self.label_names_.tolist()
        final, _ = unwrap(estimator)
        own = float(getattr(final, final.caution_parameter, np.nan))
        places = np.full(len(names), np.abs(values - own).argmin())
        self.values_ = np.full(len(names), own)  # where nothing is promised
        for label in {promise.label for promise in promises}:
            its = [
                one
                for promise, one in zip(promises, judged.kept, strict=True)
                if promise.label == label
            ]
            bold = np.flatnonzero(np.logical_and.reduce(its))
            columns = columns_of(label)
            places[columns] = bold[0] if len(bold) else -1
            self.values_[columns] = values[bold[0]] if len(bold) else np.nan
        results = [
            self._result(promise, found, plan, values, places, judged.answered)
            for promise, found, plan in zip(promises, judged.tallies, judged.plans, strict=True)
        ]
        about = {result.label for result in results}
        bought = np.where(places < 0, 0.0, judged.answered[places, np.arange(len(names))])
        self.report_ = PromiseReport(
            method,
            self.confidence,
            final.caution_parameter,
            len(truth),
            int((truth == MISSING).any(axis=1).sum()),
            float(bought.mean()),
            tuple(results),
            () if None in about else tuple(name for name in names if name not in about),
        )

    def _result(
        self,
        promise: Promise,
        found: Tally,
        plan: Plan,
        values: FloatArray,
        places: NDArray[np.int64],
        answered: FloatArray,
    ) -> PromiseResult:
        columns = columns_of(promise.label)
        name = None if promise.label is None else str(self.label_names_[promise.label])
        about = (promise.risk.name, promise.level, name, promise.confidence)
        completeness = answered[:, columns].mean(axis=1)
        at = int(places[columns][0])
        if at >= 0:
            return PromiseResult(
                *about,
                float(values[at]),
                int(found.n[at]),
                float(found.risk[at]),
                interval(promise, found, at),
                float(completeness[at]),
            )
        parameter = unwrap(self.estimator_)[0].caution_parameter
        nearest = nearest_to_kept(promise, found, completeness, plan)
        if nearest is None:
            reason = f"no {parameter} answers anything in the calibration rows"
            return PromiseResult(*about, None, 0, 0.0, (0.0, 0.0), 0.0, reason)
        n, risk = int(found.n[nearest]), float(found.risk[nearest])
        share = None if promise.counts_rows else float(found.every[nearest]) / n
        more = rows_to_show(promise.level, promise.confidence, risk, share)
        reason = (
            f"the nearest is {parameter} = {values[nearest]:.4g}, which answers "
            f"{completeness[nearest]:.1%} with a risk of {risk:.3f} in {n} calibration rows; "
        )
        if more is None:
            reason += "more rows would not help, a better model might"
        else:
            reason += f"if that is the rate, about {max(more, n + 1)} such rows would show it"
        return PromiseResult(*about, None, n, 0.0, (0.0, 0.0), 0.0, reason)

    # -- predicting ------------------------------------------------------------------------

    def predict_partial(self, X: Any, *, known: Any = None) -> Labels:
        """Labels 1, 0, or -1 where the promise does not allow an answer: int8, (n, m).

        ``known`` (n, m) are labels that were answered already, -1 elsewhere; the promise is about
        rows without them.
        """
        check_is_fitted(self, "report_")
        if known is not None:
            return np.asarray(self.infer(X, known=known).labels)
        return self._by_label(answers_along(self.estimator_, X, self._used()))

    def _used(self) -> FloatArray:
        """The distinct values of all labels; any one if no label is answered."""
        used = np.unique(self.values_[np.isfinite(self.values_)])
        return used if len(used) else caution_values(self.estimator_, self.values)[-1:]

    def _by_label(self, path: NDArray[Any]) -> NDArray[Any]:
        """Each label's column from answers (values, n, m) at the value it has; open without one."""
        never = ~np.isfinite(self.values_)
        places = np.where(never, 0, np.searchsorted(self._used(), np.where(never, 0, self.values_)))
        labels = np.stack([path[at, :, j] for j, at in enumerate(places)], axis=1)
        labels[:, never] = ABSTAIN
        return labels

    def infer(self, X: Any, *, known: Any = None) -> Any:
        """Labels and bounds, a :class:`CredalPrediction`.

        ``known`` are labels that were answered already; the promise is about rows without them.
        """
        check_is_fitted(self, "report_")
        final, Z = unwrap(self.estimator_, X)
        found = [
            final.infer(Z, known=known, **{final.caution_parameter: value})
            for value in self._used().tolist()
        ]
        labels = self._by_label(np.stack([one.labels for one in found]))
        if known is not None:  # what is known is answered in any case
            given = np.asarray(final.targets_.encode_known(known, len(labels)))
            labels = np.where(given != MISSING, given, labels)
        if len(found) == 1:
            return replace(found[0], labels=labels)
        places = np.searchsorted(self._used(), np.nan_to_num(self.values_, nan=self._used()[0]))
        columns = list(enumerate(places.tolist()))
        return replace(
            found[0],
            labels=labels,
            log_odds=np.stack([found[at].log_odds[:, j] for j, at in columns], axis=1),
            given_interval=np.stack([found[at].interval[:, j] for j, at in columns], axis=1),
        )

    def predict_interval(self, X: Any) -> FloatArray:
        """Lower and upper probability of each label: (n, m, 2)."""
        return np.asarray(self.infer(X).interval)

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
        check_is_fitted(self, "estimator_")
        return np.asarray(unwrap(self.estimator_)[0].read_labels(Y))

    def score(self, X: Any, y: Any) -> float:
        """Mean u65 of ``predict_partial``: right 1, wrong 0, left open 0.65, per label."""
        check_is_fitted(self, "report_")
        return utility_65(self.read_labels(y), self.predict_partial(X))

    def check(self, X: Any, Y: Any, *, confidence: float = 0.95) -> PromiseCheck:
        """Whether the promise still holds, on newly labelled rows in the order they came.

        The test may be repeated after every row: the chance that it ever calls a promise broken
        that holds is at most 1 - ``confidence``.
        """
        check_is_fitted(self, "report_")
        if not is_share(confidence):
            raise ValueError(f"confidence must be between 0 and 1, got {confidence!r}.")
        truth, answers = self.read_labels(Y), self.predict_partial(X)
        promises = read_promises(self.promise, self.confidence, self.label_names_.tolist())
        share = 1 - (1 - confidence) / len(promises)
        tests = []
        for promise in promises:
            losses, rows, estimate = _counting_losses(promise, truth, answers)
            evidence = evidence_against(losses, promise.level)
            name = None if promise.label is None else str(self.label_names_[promise.label])
            tests.append(
                PromiseTest(promise.risk.name, promise.level, name, share, estimate, evidence, rows)
            )
        return PromiseCheck(confidence, tuple(tests))

    @property
    def n_features_in_(self) -> int:
        """The estimator's own."""
        return int(self.estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The estimator's own, where columns had names."""
        return np.asarray(self.estimator_.feature_names_in_)

    @property
    def classes_(self) -> NDArray[Any]:
        """The estimator's own."""
        return np.asarray(unwrap(self.estimator_)[0].classes_)

    @property
    def label_names_(self) -> NDArray[np.str_]:
        return np.asarray(unwrap(self.estimator_)[0].label_names_)


def _counting_losses(
    promise: Promise, truth: Labels, answers: Labels
) -> tuple[FloatArray, NDArray[np.int64], float]:
    """Losses of the rows that count, which rows these are, and the risk in them."""
    if promise.label is None:
        rows = np.flatnonzero((truth != MISSING).all(axis=1))
        truth, answers = truth[rows], answers[rows]
        estimate = float(promise.risk.estimate(truth, answers)) if len(rows) else 0.0
        return promise.risk.losses(truth, answers, promise.level), rows, estimate
    assert promise.risk.count_labels is not None
    bad, every = promise.risk.count_labels(truth, answers)
    rows = np.flatnonzero(every[:, promise.label])
    losses = bad[rows, promise.label].astype(np.float64)
    return losses, rows, float(losses.mean()) if len(rows) else 0.0


def _seed(random_state: Any) -> Any:
    """A seed is passed on; a generator is left to what it was given for."""
    return random_state if isinstance(random_state, Integral) else None
