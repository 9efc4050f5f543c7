"""PromisedClassifier: caution chosen so that a promise about errors is kept."""

from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from credalchain._utils.array_types import FloatArray, Labels
from credalchain._utils.validation import check_array, check_instance, check_s_values
from credalchain.chains.base import CautiousTagsMixin
from credalchain.joint.decision import JointDecision
from credalchain.labels import ABSTAIN, MISSING, Targets, as_indexable_labels, both_answers_seen
from credalchain.metrics import utility_65
from credalchain.model_selection import unwrap
from credalchain.prediction import CredalPrediction
from credalchain.preprocessing import as_indexable
from credalchain.promises.calibration import (
    answers_along,
    caution_values,
    check_estimator,
    evaluate_promises,
    hold_out,
)
from credalchain.promises.folds import evaluate_promises_by_folds
from credalchain.promises.reading import is_share, read_method, read_promises
from credalchain.promises.report import PromiseCheck, PromiseReport, PromiseTest, choose
from credalchain.promises.risks import evaluable_rows
from credalchain.promises.selection import Promise
from credalchain.promises.statistics import evidence_against
from credalchain.typing import LabelsLike, MatrixLike, PromiseLike, RandomStateLike, VectorLike

if TYPE_CHECKING:
    from sklearn.model_selection import BaseCrossValidator  # slow to import


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
        number: with this probability over the calibration rows, all promises are kept; promises
        about several labels share what may go wrong.
    method : {"auto", "conformal", "learn_then_test", "cross_conformal", "cross_fit"}, \
default="auto"
        How the promise is kept. "conformal" is for promises without confidence,
        "learn_then_test" for those with one. With a cross-validation, "cross_conformal" answers
        where all fold models agree, which is known to keep promises on average; it needs at
        least 1 / level - 1 folds. "cross_fit" chooses by cross-validation and
        fits again to all rows, without any guarantee. "auto" takes the one that has a guarantee.
    calibration : float, "prefit", int or cross-validation splitter, default=0.3
        The share of the rows (of the groups, if rows are in groups) that is kept for
        calibration; "prefit" if all rows are for calibration, since the estimator is fitted
        already, to other rows; or the folds of a cross-validation.
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
        estimator: BaseEstimator | None = None,
        promise: PromiseLike | None = None,
        *,
        confidence: float | None = None,
        method: str = "auto",
        calibration: "float | str | BaseCrossValidator" = 0.3,
        values: VectorLike | None = None,
        random_state: RandomStateLike = None,
    ) -> None:
        self.estimator = estimator
        self.promise = promise
        self.confidence = confidence
        self.method = method
        self.calibration = calibration
        self.values = values
        self.random_state = random_state

    # -- fitting ---------------------------------------------------------------------------

    def fit(self, X: MatrixLike, Y: LabelsLike, groups: VectorLike | None = None) -> Self:
        """Fit the estimator to some of the rows, and choose its caution on the others.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n, n_features)
        Y : array-like of shape (n, n_labels)
        groups : array-like of shape (n,), default=None
            What each row belongs to, such as a patient, a song or a document. Rows of a group are
            either learned from or kept for calibration, where one of them, drawn at random,
            counts: they depend on each other. None: equal rows of X with the same labels are a
            group, as if they were copies (unless fewer than 20 rows are different). If they are
            not, because columns have so few values that new rows repeat old ones, pass
            ``np.arange(n)``: each row then counts.

        Returns
        -------
        self

        References
        ----------
        R. Dunn, L. Wasserman and A. Ramdas, Distribution-free prediction sets for two-layer
        hierarchical models, Journal of the American Statistical Association 118, 2023.
        """
        if Y is None:
            raise ValueError(
                "PromisedClassifier requires y to be passed, but the target y is None."
            )
        X, Y = as_indexable(X), as_indexable_labels(Y)
        targets, labels = Targets.learn(Y)
        check_consistent_length(X, labels)
        prefit = isinstance(self.calibration, str)
        if self.estimator is not None or prefit:
            check_estimator(self.estimator)
        names = targets.names
        if prefit:
            names = getattr(unwrap(self.estimator)[0], "label_names_", names)
        promises = read_promises(self.promise, self.confidence, [str(name) for name in names])
        method = read_method(self.method, self.calibration, self.confidence, promises)
        rng = check_random_state(self.random_state)
        estimator = (
            self.estimator if prefit else clone_or_default(self.estimator, self.random_state, rng)
        )
        caution_values(estimator, self.values)  # refused before anything is fitted
        if method in ("cross_conformal", "cross_fit"):
            self.estimator_, calibration, truth, notes = evaluate_promises_by_folds(
                estimator,
                X,
                Y,
                labels,
                promises,
                method=method,
                calibration=self.calibration,
                values=self.values,
                rng=rng,
                groups=groups,
            )
        else:
            held = hold_out(
                estimator,
                X,
                Y,
                labels,
                promises,
                calibration=self.calibration,
                values=self.values,
                random_state=rng,
                groups=groups,
            )
            self.estimator_, truth, notes = held.estimator, held.truth, held.notes
            calibration = evaluate_promises(held, promises)
        self.values_, self.report_ = choose(
            self.estimator_,
            calibration,
            truth,
            values=self.values,
            method=method,
            confidence=self.confidence,
            notes=notes,
            counted=None if prefit else both_answers_seen(labels),
        )
        return self

    def check_state(self) -> None:
        """Validate the fitted attributes, as those of a model that was stored."""
        final, names = unwrap(self.estimator_)[0], self.label_names_.tolist()
        check_instance("report_", self.report_, PromiseReport)
        promises = read_promises(self.promise, self.confidence, names)
        labels = [None if promise.label is None else names[promise.label] for promise in promises]
        self.report_.check_state(
            [(p.risk.name, p.level, label) for p, label in zip(promises, labels, strict=True)]
        )
        if self.report_.parameter != final.caution_parameter:
            raise ValueError("report_ is not about this estimator.")
        check_array("values_", self.values_, np.float64, (len(names),))
        used = self.values_[np.isfinite(self.values_)]
        check_array("values_", used, np.float64, (None,), 0)
        if final.caution_parameter == "s":
            check_s_values(used.tolist(), "values_")

    # -- predicting ------------------------------------------------------------------------

    def predict_partial(self, X: MatrixLike, *, known: LabelsLike | None = None) -> Labels:
        """Labels 1, 0, or -1 where the promise does not allow an answer: int8, (n, m).

        ``known`` (n, m) are labels that were answered already, -1 elsewhere; the promise is about
        rows without them.
        """
        check_is_fitted(self, "report_")
        if known is not None:
            return np.asarray(self.infer(X, known=known).labels)
        return self._by_label(answers_along(self.estimator_, X, self.values_in_use()))

    def values_in_use(self) -> FloatArray:
        """The distinct values of all labels; the most cautious if no label is answered."""
        used = np.unique(self.values_[np.isfinite(self.values_)])
        return used if len(used) else caution_values(self.estimator_, self.values)[-1:]

    def _by_label(self, path: NDArray[Any]) -> NDArray[Any]:
        """Each label's column from answers (values, n, m) at the value it has; open without one."""
        labels = np.stack([path[i, :, j] for j, i in enumerate(self._value_indices())], axis=1)
        labels[:, ~np.isfinite(self.values_)] = ABSTAIN
        return labels

    def _value_indices(self) -> list[int]:
        """Index of each label's value in ``values_in_use()``; 0 for a label without one."""
        used = self.values_in_use()
        values = np.nan_to_num(self.values_, nan=used[0])
        return [int(i) for i in np.searchsorted(used, values)]

    def infer(self, X: MatrixLike, *, known: LabelsLike | None = None) -> CredalPrediction:
        """Labels and bounds, a :class:`CredalPrediction`.

        ``known`` are labels that were answered already; the promise is about rows without them.
        """
        check_is_fitted(self, "report_")
        final, Z = unwrap(self.estimator_, X)
        predictions: list[CredalPrediction] = [
            final.infer(Z, known=known, **{final.caution_parameter: value})
            for value in self.values_in_use().tolist()
        ]
        labels = self._by_label(np.stack([prediction.labels for prediction in predictions]))
        if known is not None:  # what is known is answered in any case
            known_labels = np.asarray(final.targets_.encode_known(known, len(labels)))
            labels = np.where(known_labels != MISSING, known_labels, labels)
        if len(predictions) == 1:
            return replace(predictions[0], labels=labels)
        columns = list(enumerate(self._value_indices()))
        return replace(
            predictions[0],
            labels=labels,
            log_odds=np.stack([predictions[i].log_odds[:, j] for j, i in columns], axis=1),
            model_interval=np.stack([predictions[i].interval[:, j] for j, i in columns], axis=1),
        )

    def predict_interval(self, X: MatrixLike) -> FloatArray:
        """Lower and upper probability of each label: (n, m, 2)."""
        return np.asarray(self.infer(X).interval)

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """The estimator's own: every label answered, nothing promised."""
        check_is_fitted(self, "report_")
        return np.asarray(self.estimator_.predict(X))

    def predict_proba(self, X: MatrixLike) -> FloatArray:
        """The estimator's own."""
        check_is_fitted(self, "report_")
        return np.asarray(self.estimator_.predict_proba(X))

    def read_labels(self, Y: LabelsLike) -> Labels:
        """True labels of new rows, in the form of ``predict_partial``."""
        check_is_fitted(self, "estimator_")
        return np.asarray(unwrap(self.estimator_)[0].read_labels(Y))

    def score(self, X: MatrixLike, y: LabelsLike) -> float:
        """Mean u65 of ``predict_partial``: right 1, wrong 0, left open 0.65, per label."""
        check_is_fitted(self, "report_")
        return utility_65(self.read_labels(y), self.predict_partial(X))

    def check(self, X: MatrixLike, Y: LabelsLike, *, confidence: float = 0.95) -> PromiseCheck:
        """Whether the promise still holds: pass all rows labelled since, the oldest first.

        The test may be repeated whenever rows are added: the chance that it ever calls a promise
        broken that holds is at most 1 - ``confidence``. (Checks of separate batches, each by
        itself, add their chances up.) Of rows that depend on each other, such as those of one
        patient, pass one.

        A promise with confidence is tested at its level. A promise on average says nothing about
        one model, whose risk may well be somewhat above the level; it is tested at the most that
        the calibration rows leave open, the upper end of the interval in the report.
        """
        check_is_fitted(self, "report_")
        if not is_share(confidence):
            raise ValueError(f"confidence must be between 0 and 1, got {confidence!r}.")
        X, Y = as_indexable(X), as_indexable_labels(Y, self.label_names_.tolist())
        truth = self.read_labels(Y)
        check_consistent_length(X, truth)
        answers = np.empty(truth.shape, np.int8) if len(truth) == 0 else self.predict_partial(X)
        promises = read_promises(self.promise, self.confidence, self.label_names_.tolist())
        confidence_each = 1 - (1 - confidence) / len(promises)
        tests = []
        for promise, result in zip(promises, self.report_.promises, strict=True):
            level = result.level_to_check
            losses, rows, estimate = _losses_of_evaluable_rows(promise, truth, answers, level)
            evidence = evidence_against(losses, level)
            tests.append(PromiseTest(result, confidence_each, estimate, evidence, rows))
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

    @property
    def targets_(self) -> Targets:
        """How labels are read: the estimator's own."""
        targets: Targets = unwrap(self.estimator_)[0].targets_
        return targets


def _losses_of_evaluable_rows(
    promise: Promise, truth: Labels, answers: Labels, level: float
) -> tuple[FloatArray, NDArray[np.int64], float]:
    """Losses of the rows that count, which rows these are, and the risk in them."""
    if promise.label is None:
        rows = evaluable_rows(promise.risk, truth)
        estimate = float(promise.risk.estimate(truth, answers))
        return promise.risk.losses(truth[rows], answers[rows], level), rows, estimate
    assert promise.risk.label_losses is not None
    bad, every = promise.risk.label_losses(truth, answers)
    rows = np.flatnonzero(every[:, promise.label])
    losses = bad[rows, promise.label].astype(np.float64)
    return losses, rows, float(losses.mean()) if len(rows) else 0.0


def clone_or_default(estimator: Any, random_state: Any, rng: np.random.RandomState) -> Any:
    """A copy of the estimator, the default one if there is none."""
    if estimator is not None:
        return clone(estimator)
    is_seed = isinstance(random_state, Integral)
    return JointDecision(random_state=random_state if is_seed else rng.randint(2**31 - 1))
