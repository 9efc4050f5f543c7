"""PromisedClassifier: caution chosen by risk control."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from credalchain._utils.array_types import FloatArray, Labels
from credalchain._utils.text import visible
from credalchain._utils.validation import check_array, check_instance, check_s_values
from credalchain.chains.interface import CautiousTagsMixin, CredalClassifier
from credalchain.exceptions import warn_about_data
from credalchain.labels import ABSTAIN, MISSING, Targets, as_indexable_labels
from credalchain.metrics import utility_65
from credalchain.model_selection import caution_in_use, unwrap
from credalchain.prediction import Answer, CredalPrediction
from credalchain.preprocessing import as_indexable
from credalchain.promises.calibration import (
    caution_values,
    evaluate_promises,
    hold_out,
    within_limit,
)
from credalchain.promises.report import PromiseCheck, PromiseReport, PromiseTest, choose
from credalchain.promises.risks import Promise, is_share, mean_loss, read_promises, shifted
from credalchain.promises.statistics import evidence_against
from credalchain.typing import LabelsLike, MatrixLike, PromiseLike, RandomStateLike, VectorLike

if TYPE_CHECKING:
    from sklearn.model_selection import BaseCrossValidator  # slow to import


class PromisedClassifier(CautiousTagsMixin, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Classifier that answers as many labels as a promise about errors allows (risk control).

    The risk at each degree of caution is estimated on a calibration set, rows that the estimator
    was not fitted on. The least cautious value that keeps the promise is chosen; if none does,
    every label is left open.

    Parameters
    ----------
    estimator : classifier of this package or a pipeline that ends in one, default=None
        Anything with ``predict_path``, ``caution_parameter``, ``larger_is_more_cautious`` and
        ``nested_``. None means ``JointDecision()``, with the ``loss`` that suits
        the promise: "row" for row error, "bands" for wrong answers yes, else "cell". The ``costs``
        of "bands", if None, are learned from a pilot of the calibration rows.
    promise : dict, default=None
        Risks and their maximum levels: "row_error" (rows with a wrong answer), "selective_error"
        (wrong answers among the answers), "positive_error" (wrong among the answers yes) or
        "missed_positives" (a row's positive labels that are answered no); or a function of (truth,
        answers) that gives each row a loss from 0 to 1. Instead of a number, a dict of labels and
        numbers: each of these labels then has a caution of its own; None stands for all rows, whose
        caution is the least of all labels. Several risks are all kept. With "positive_error" and
        "missed_positives", answers yes and no have cautions of their own. None means a row error of
        at most 0.1.
    confidence : float, default=None
        If None, the risk is at most the level in expectation over calibration rows and new rows. A
        number is the probability, over the calibration rows, that all promises are kept; with
        several cautions, the error probability is split over them.
    guarantee : {"exact", "asymptotic"}, default="exact"
        Test of risks that are means or ratios, with a confidence. "exact" holds for any number of
        rows; "asymptotic" uses the normal approximation, which answers more with few rows, but
        breaks the promise somewhat more often than 1 - ``confidence``.
    missing : {"ignorable", "conservative"}, default="ignorable"
        Treatment of missing labels of calibration rows. "ignorable": a row error is judged by the
        rows that have all labels, other risks by the labels that are there, which assumes that
        labels are missing completely at random. "conservative": the promise holds whatever the
        missing labels are, since answers to them count as wrong; for "row_error", "selective_error"
        and "positive_error". It assumes only that new rows are like the calibration rows, and that
        the known labels are right.
    per_label : bool, default=False
        If True, make the promise about each label separately, where there are enough calibration
        rows to test it, and about the other labels together. A pilot of the calibration rows
        decides which; each of these labels has a caution of its own, and all share the confidence.
    method : {"auto", "cross_fit"}, default="auto"
        "auto": conformal risk control without a confidence, learn then test with one. "cross_fit"
        chooses by cross-validation and fits again to all rows, without any guarantee.
    calibration : float, "prefit", int or cross-validation splitter, default=0.3
        The share of the rows (of the groups, if rows are in groups) that is kept for
        calibration; "prefit" if all rows are for calibration, since the estimator is fitted
        already, to other rows; or the folds of a cross-validation, for "cross_fit".
    values : array-like, default=None
        Values of the caution parameter to choose from. They must not depend on the calibration
        rows. None means s from 0 to 1e6, or rewards from 100 to 0.
    random_state : int, RandomState or None, default=None
        Seed of the random choice of the calibration rows.

    Attributes
    ----------
    estimator_ : the fitted estimator
    report_ : PromiseReport
        Chosen values, estimated risks, and the guarantee.
    values_, yes_values_ : ndarray of shape (n_labels,)
        The value of the estimator's caution parameter for each label, for answers no and for
        answers yes; they differ where both "positive_error" and "missed_positives" are promised.
        NaN: such answers are never given.

    See Also
    --------
    promise_curve : Share of labels answered at several levels of a risk.
    choose_caution : Choose the caution by the share of labels to be answered.
    PromiseReport : The attribute ``report_``.

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
    >>> promised.report_.promises[0].estimate <= 0.2
    True
    """

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        promise: PromiseLike | None = None,
        *,
        confidence: float | None = None,
        guarantee: str = "exact",
        missing: str = "ignorable",
        per_label: bool = False,
        method: str = "auto",
        calibration: "float | str | BaseCrossValidator" = 0.3,
        values: VectorLike | None = None,
        random_state: RandomStateLike = None,
    ) -> None:
        self.estimator = estimator
        self.promise = promise
        self.confidence = confidence
        self.guarantee = guarantee
        self.missing = missing
        self.per_label = per_label
        self.method = method
        self.calibration = calibration
        self.values = values
        self.random_state = random_state

    def __getstate__(self) -> dict[str, Any]:
        """Return the state with the labels of a promise in lists: files take no key None."""
        state: dict[str, Any] = dict(super().__getstate__())
        if isinstance(self.promise, dict):
            state["promise"] = {
                risk: [*level.items()] if isinstance(level, dict) else level
                for risk, level in self.promise.items()
            }
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        promise = state["promise"]
        if isinstance(promise, dict):
            promise = {
                risk: dict(level) if isinstance(level, list) else level
                for risk, level in promise.items()
            }
        super().__setstate__({**state, "promise": promise})

    # -- fitting ---------------------------------------------------------------------------

    def fit(
        self,
        X: MatrixLike,
        Y: LabelsLike,
        groups: VectorLike | None = None,
        *,
        original_labels: LabelsLike | None = None,
    ) -> Self:
        """Fit the estimator to some of the rows, and choose its caution on the others.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows to fit and to calibrate on.
        Y : array-like of shape (n_samples, n_labels)
            Labels, some of which may be missing.
        groups : array-like of shape (n_samples,), default=None
            Group of each row, such as a patient, a song or a document. Rows of a group are
            either learned from or kept for calibration, where one of them, drawn at random,
            counts: they depend on each other. None: equal rows of X with the same labels are a
            group, as if they were copies (unless fewer than 20 rows are different). If they are
            not, because columns have so few values that new rows repeat old ones, pass
            ``np.arange(n)``: each row then counts.
        original_labels : array-like of shape (k, n_labels), default=None
            Labels of the first k rows as they were before people answered what was left open.
            Calibration rows are drawn from these rows and judged by these labels; answers, in Y and
            in rows after the first k, are only learned from: rows were chosen for review because
            the model was unsure, so they cannot show that a promise is kept.

        Returns
        -------
        self : object
            Fitted classifier.

        References
        ----------
        R. Dunn, L. Wasserman and A. Ramdas, Distribution-free prediction sets for two-layer
        hierarchical models, Journal of the American Statistical Association 118, 2023.
        """
        held = hold_out(self, X, Y, groups, original_labels)
        calibration = evaluate_promises(held.parts, held.promises)
        self.estimator_ = held.estimator
        (self.values_, self.yes_values_), self.report_ = choose(held, calibration, self.confidence)
        self._warn_about_labels()
        return self

    def _warn_about_labels(self) -> None:
        names = self.report_.not_promised
        if names:
            value = f"{self.report_.parameter} = {caution_in_use(unwrap(self.estimator_)[0]):.4g}"
            warn_about_data(
                f"nothing is promised about {', '.join(map(visible, names))}: answered at {value}, "
                "as without a promise. A promise for None is about all labels, such as "
                "{'row_error': {None: 0.1, label: 0.01}}."
            )

    def check_state(self) -> None:
        """Validate the fitted attributes of a model that was loaded from a file."""
        final, names = unwrap(self.estimator_)[0], self.label_names_.tolist()
        check_instance("report_", self.report_, PromiseReport)
        self.report_.check_state(
            [
                (p.risk.name, p.level, None if p.label is None else names[p.label])
                for p in self._promises()
            ]
        )
        if self.report_.parameter != final.caution_parameter:
            raise ValueError("report_ is not about this estimator.")
        for name in ("values_", "yes_values_"):
            values = check_array(name, getattr(self, name), np.float64, (len(names),))
            used = check_array(name, values[np.isfinite(values)], np.float64, (None,), 0)
            if final.caution_parameter == "s":
                check_s_values(used.tolist(), name)

    def _promises(self) -> list[Promise]:
        """Return what is promised, in the order of the report."""
        names, results = self.label_names_.tolist(), self.report_.promises
        promises = read_promises(self.promise, self.confidence, names, self.guarantee, self.missing)
        if not self.per_label:
            return promises
        of_risk = {(promise.risk.name, promise.level): promise for promise in promises}
        if {(result.risk, result.level) for result in results} != {*of_risk}:
            raise ValueError("report_ is not about what is promised.")
        return [
            replace(
                of_risk[result.risk, result.level],
                label=None if result.label is None else names.index(result.label),
                pooled=tuple(map(names.index, result.pooled)) or None,
            )
            for result in results
        ]

    # -- predicting ------------------------------------------------------------------------

    def predict_partial(self, X: MatrixLike, *, known: LabelsLike | None = None) -> Labels:
        """Predict 1, 0, or -1 where the promise does not allow an answer.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows to predict.
        known : array-like of shape (n_samples, n_labels), default=None
            Labels that are known already, 0 or 1; -1 elsewhere. The promise is about rows without
            them.

        Returns
        -------
        ndarray of int8, shape (n_samples, n_labels)
            Partial predictions.
        """
        check_is_fitted(self, "report_")
        if known is not None:
            return np.asarray(self.infer(X, known=known).labels)
        final, Z = unwrap(self.estimator_, X)
        return self._promised(np.asarray(final.predict_path(Z, self.values_in_use())))

    def values_in_use(self) -> FloatArray:
        """Return the distinct values of all labels.

        Returns
        -------
        ndarray
            Values of the caution parameter; the most cautious if no label is answered.
        """
        values = np.concatenate([self.values_, self.yes_values_])
        used = np.unique(values[np.isfinite(values)])
        return used if len(used) else caution_values(self.estimator_, self.values)[-1:]

    def _by_label(self, path: NDArray[Any], values: FloatArray) -> NDArray[Any]:
        """Return each label's column of (values, n, m, ...) at one of the ``values`` (m,)."""
        used = self.values_in_use()
        indices = np.searchsorted(used, np.nan_to_num(values, nan=used[0]))
        return np.stack([path[i, :, j] for j, i in enumerate(indices)], axis=1)

    def _promised(self, path: Labels, known: Labels | None = None) -> Labels:
        """Return answers no and yes at their values: open without one, and known in any case."""
        yes = (self._by_label(path, self.yes_values_) == 1) & np.isfinite(self.yes_values_)
        no = (self._by_label(path, self.values_) == 0) & np.isfinite(self.values_)
        labels = np.where(yes, np.int8(1), np.where(no, np.int8(0), np.int8(ABSTAIN)))
        for promise, result in zip(self._promises(), self.report_.promises, strict=True):
            if result.limit is not None:
                labels = within_limit(labels, promise, result.limit)
        return labels if known is None else np.where(known != MISSING, known, labels)

    def infer(self, X: MatrixLike, *, known: LabelsLike | None = None) -> CredalPrediction:
        """Infer labels and bounds of every row.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows to predict.
        known : array-like of shape (n_samples, n_labels), default=None
            Labels that are known already, 0 or 1; -1 elsewhere. The promise is about rows without
            them.

        Returns
        -------
        CredalPrediction
            Labels and bounds.
        """
        check_is_fitted(self, "report_")
        final, Z = unwrap(self.estimator_, X)
        values = self.values_in_use().tolist()
        if isinstance(final, CredalClassifier):  # in one pass
            encoded = final.encode(Z)
            request = final.request(encoded, s=values, known=known)
            answer = final.model_.infer(encoded, request)
            path, interval = answer.labels[0], answer.interval
            by_label = Answer(
                path[None],
                self._by_label(answer.log_odds[0], self.values_)[None, None],
                self._by_label(answer.exactness[0], self.values_)[None, None],
                None if interval is None else self._by_label(interval[0], self.values_)[None, None],
            )
            prediction = CredalPrediction.from_answer(by_label, 0, final.label_names_.tolist(), Z)
        else:  # the bounds of a joint decision are the same for all rewards
            prediction = final.infer(Z, known=known, **{final.caution_parameter: values[0]})
            path = prediction.labels[None]
            if len(values) > 1:
                path = final.predict_path(Z, values, known=known)
        known_labels = final.targets_.encode_known(known, path.shape[1])
        return replace(prediction, labels=self._promised(path, known_labels))

    def predict_interval(self, X: MatrixLike) -> FloatArray:
        """Predict the lower and upper probability of each label.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples, n_labels, 2)
            Lower and upper bound of P(1).
        """
        return np.asarray(self.infer(X).interval)

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """Predict every label with the estimator itself, without a guarantee.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            Labels; of shape (n_samples,) if fitted on a vector.
        """
        check_is_fitted(self, "report_")
        return np.asarray(self.estimator_.predict(X))

    def predict_proba(self, X: MatrixLike) -> FloatArray:
        """Predict P(1) of each label with the estimator itself.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            Probabilities; of shape (n_samples, 2) if fitted on a vector.
        """
        check_is_fitted(self, "report_")
        return np.asarray(self.estimator_.predict_proba(X))

    def read_labels(self, Y: LabelsLike) -> Labels:
        """Return true labels of new rows, in the form of ``predict_partial``.

        Parameters
        ----------
        Y : array-like of shape (n_samples, n_labels)
            True labels, as in ``fit``.

        Returns
        -------
        ndarray of int8, shape (n_samples, n_labels)
            Labels 0 and 1, and -1 for missing.
        """
        check_is_fitted(self, "estimator_")
        return np.asarray(unwrap(self.estimator_)[0].read_labels(Y))

    def score(self, X: MatrixLike, y: LabelsLike) -> float:
        """Return the mean u65 of the partial predictions.

        A right answer counts 1, a wrong one 0, an open label 0.65; see
        :func:`~credalchain.metrics.utility_65`.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows to predict.
        y : array-like of shape (n_samples, n_labels)
            True labels, some of which may be missing.

        Returns
        -------
        float
            Mean over rows.
        """
        check_is_fitted(self, "report_")
        return utility_65(self.read_labels(y), self.predict_partial(X))

    def check(self, X: MatrixLike, Y: LabelsLike, *, confidence: float = 0.95) -> PromiseCheck:
        """Test whether the promise still holds on the rows labelled since the fit, oldest first.

        The test is sequential (anytime-valid) and may be repeated whenever rows are added: the
        probability that a promise that holds is ever called broken is at most 1 - ``confidence``.
        (Separate checks of several batches add up their error probabilities.) If rows depend on
        each other, such as those of one patient, pass one row of each group.

        A promise with confidence is tested at its level. A promise on average is no statement about
        a single model, whose risk may be somewhat above the level; it is tested at the largest risk
        that the calibration rows do not exclude, ``upper_bound`` of the promise in the report. With
        ``missing="conservative"``, only known labels count against a promise.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            All rows labelled since the fit, the oldest first.
        Y : array-like of shape (n_samples, n_labels)
            Their true labels.
        confidence : float, default=0.95
            Probability that no promise is called broken if all of them hold.

        Returns
        -------
        PromiseCheck
            A verdict for each promise.

        References
        ----------
        I. Waudby-Smith and A. Ramdas, Estimating means of bounded random variables by betting,
        Journal of the Royal Statistical Society B 86, 2024.
        """
        check_is_fitted(self, "report_")
        if not is_share(confidence):
            raise ValueError(f"confidence must be between 0 and 1, got {confidence!r}.")
        X, Y = as_indexable(X), as_indexable_labels(Y, self.label_names_.tolist())
        truth = self.read_labels(Y)
        check_consistent_length(X, truth)
        answers = np.empty(truth.shape, np.int8) if len(truth) == 0 else self.predict_partial(X)
        promises = self._promises()
        confidence_each = 1 - (1 - confidence) / len(promises)
        tests = []
        for promise, result in zip(promises, self.report_.promises, strict=True):
            level = result.level_to_check
            some, judged = np.arange(len(truth)), truth
            if promise.conservative:  # missing labels must not make a promise look broken
                some = np.flatnonzero((truth[:, promise.columns] != MISSING).any(axis=1))
                judged = np.where(truth == MISSING, np.maximum(answers, 0), truth)
            rows, bad, every = promise.losses(judged[some], answers[some])
            rows = some[rows]
            estimate = float(mean_loss(bad, every))
            if promise.label is None:
                losses = shifted(bad, every, level)
            else:
                rows, losses = rows[every], bad[every].astype(np.float64)
            evidence = evidence_against(losses, level)
            tests.append(PromiseTest(result, confidence_each, estimate, evidence, rows))
        return PromiseCheck(confidence, tuple(tests))

    @property
    def n_features_in_(self) -> int:
        """Number of features, as in the estimator."""
        return int(self.estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the features, as in the estimator."""
        return np.asarray(self.estimator_.feature_names_in_)

    @property
    def classes_(self) -> NDArray[Any]:
        """Classes of each label, as in the estimator."""
        return np.asarray(unwrap(self.estimator_)[0].classes_)

    @property
    def label_names_(self) -> NDArray[np.str_]:
        """Names of the labels, (n_labels,)."""
        return np.asarray(unwrap(self.estimator_)[0].label_names_)

    @property
    def targets_(self) -> Targets:
        """Encoding of the labels, as in the estimator."""
        targets: Targets = unwrap(self.estimator_)[0].targets_
        return targets
