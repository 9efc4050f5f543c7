"""JointDecision: which labels of a row to answer, decided together."""

from collections.abc import Iterable
from itertools import repeat
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted

from credalchain._utils.array_types import FloatArray, Labels
from credalchain._utils.progress import show_progress
from credalchain._utils.text import plural, visible
from credalchain._utils.validation import (
    check_array,
    check_choice,
    check_instance,
    check_int,
    check_n_jobs,
    check_s,
)
from credalchain.chains.interface import CautiousTagsMixin, CredalClassifier, fitted_folds
from credalchain.exceptions import data_warnings_ignored, warn_about_data
from credalchain.joint.constraints import Constraint, check_constraints, read_constraints
from credalchain.joint.forest import CredalJointForest
from credalchain.joint.listed import decide_listed
from credalchain.joint.model import (
    JointModel,
    PricedAnswers,
    check_reward,
    precise_probabilities,
)
from credalchain.joint.rules import EQUAL_COSTS, RULES, Rule, check_costs, price_cells
from credalchain.joint.stacked import (
    StackedJointForest,
    check_scored_estimator,
    is_wide,
    linear_classifier,
)
from credalchain.labels import MISSING, Targets, as_indexable_labels
from credalchain.metrics import utility_65
from credalchain.prediction import (
    Answer,
    CredalPrediction,
    Exactness,
    Ranks,
    log_odds,
    probabilities,
    uniform_exactness,
)
from credalchain.preprocessing import as_indexable, is_dask
from credalchain.typing import ChunksLike, LabelsLike, MatrixLike, RandomStateLike, VectorLike

_MIN_PROBABILITY = 1e-6  # probabilities are clipped to [1e-6, 1 - 1e-6]
_RANGE = 3.0  # of the logarithm of the exponent


def scale_log_odds(p: FloatArray, exponent: float) -> FloatArray:
    """Return probabilities with their odds raised to a power."""
    return p if exponent == 1 else probabilities(exponent * log_odds(p))


def fit_exponent(p: FloatArray, labels: NDArray[Any]) -> float:
    """Fit the power of the odds with the least mean log-loss; 1 where there is nothing to learn.

    This is temperature scaling, and the exponent is the inverse temperature: above 1 for
    underconfident models, such as averages, below 1 for overconfident ones.

    Parameters
    ----------
    p : P(Y = 1), any shape, of rows that the model has not seen
    labels : 0, 1, or -1 for missing, the same shape

    References
    ----------
    C. Guo, G. Pleiss, Y. Sun and K. Q. Weinberger, On calibration of modern neural networks,
    ICML 2017.
    """
    observed = labels != MISSING
    if not observed.any():
        return 1.0
    p = np.clip(p[observed], _MIN_PROBABILITY, 1 - _MIN_PROBABILITY)
    towards_truth = np.where(labels[observed] == 1, 1.0, -1.0) * log_odds(p)

    def loss(log_exponent: float) -> float:
        return float(np.logaddexp(0.0, -np.exp(log_exponent) * towards_truth).mean())

    result = minimize_scalar(loss, bounds=(-_RANGE, _RANGE), method="bounded")
    return float(np.exp(result.x))


class JointDecision(CautiousTagsMixin, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Classifier that answers those labels of a row whose answers are worth the risk of an error.

    The rule ``loss="row"`` decides the labels of a row together: answering k of the m labels is
    worth P(all answers are right) + reward * k / m. Over a joint model, the answers are those of
    the likeliest label vector, and labels are withdrawn one at a time, the least certain first; the
    reward determines where to stop. A smaller reward only withdraws answers. A label that was never
    observed in training, or whose bounds are 0 and 1, stays open (the classifier abstains). The
    likeliest vector is searched for until it is certain; rows with so many labels that this would
    take too long are "approximate" in the prediction's ``exactness_by_row``. Ties between equally
    likely vectors go to the vector of the likelier single answers, then to the heaviest vector of
    the training rows, then to the first that is found.

    Over a classifier that gives probabilities of single labels only, labels are treated as
    independent: every label gets its likelier answer, and the best of all sets is a prefix of the
    labels, sorted by the probability of their answers. That is the Bayes rule for the generalised
    subset 0/1 loss.

    Parameters
    ----------
    estimator : classifier or "precomputed", default=None
        None (recommended) means ``CredalJointForest()``; on sparse data, or on more columns than
        trees can use, logistic regression for each label. Any classifier of scikit-learn's
        interface, multi-label or binary (each label gets a clone), that has ``predict_proba`` or
        ``decision_function``: a joint model learns, from scores of rows that the classifier was not
        fitted on, how the labels go together. Wrap a fitted one in
        ``sklearn.frozen.FrozenEstimator``: it is not fitted again, and must not have been fitted on
        the rows passed to ``fit``. "precomputed": X holds the scores themselves, one column for
        each label, probabilities or log-odds. Or a classifier of this package, whose own bounds are
        used.
    reward : float, default=None
        Reward for answers, relative to the loss of wrong ones. With ``loss="row"``, the reward for
        answering all labels, relative to P(all answers are right): 0 answers only labels that do
        not lower this probability; a large reward answers everything, from ``1 - 2**-m`` on even m
        labels with P = 0.5, and None means nine tenths of that. With "cell" and "bands", a label is
        answered if the expected cost of a wrong answer is at most the reward; None means 0.2. The
        share of labels answered depends on the data: :func:`choose_caution` finds the reward that
        answers a certain share, :class:`PromisedClassifier` the one that keeps a promise. Used at
        prediction time only.
    loss : {"row", "cell", "bands", "f1", "jaccard"}, default="row"
        Loss of wrong answers. "row": a row is right or wrong as a whole, so its labels are
        decided together; best for rows without a wrong answer. "cell": each wrong answer costs 1,
        so each label is decided by its own probability; best for few wrong answers among all.
        "bands": wrong answers yes and no have different ``costs``, for tags: tags that are set,
        tags that are ruled out, and questions. "f1", "jaccard": the reward is weighed against the
        expected measure of the row's answered labels; answers to all labels maximize it, and labels
        are withdrawn one at a time, which is rarely not the best choice. One row takes up to twice
        as long as with "row", many rows five to ten times. Used at prediction time only.
    costs : tuple of two floats, default=None
        Costs of a wrong no and of a wrong yes, with ``loss="bands"``. Labels are answered yes, if
        at all, where P(1) is at least the second cost divided by the sum of both. None: both cost
        1, and a :class:`PromisedClassifier` learns them. Used at prediction time only.
    constraints : list of str, default=None
        Constraints that label vectors must satisfy: ``"rock -> music"``,
        ``"at most one of a, b, c"``, ``"exactly one of a, not b"``, ``"at least one of a, b"``. All
        probabilities are conditional on them, and answers never contradict them, unless known
        labels do. Takes as long as "f1". Used at prediction time only.
    calibration_folds : int or None, default=3
        Not used by a joint forest, whose shares are learned out of bag. For other classifiers all
        odds are raised to one power, learned by cross-validation with this number of folds on the
        training rows: averages of models are underconfident, other models overconfident. None uses
        the probabilities as they are.
    bounds : {"precise", "credal"}, default="precise"
        "precise": probabilities at s = 0. "credal": lower probabilities at the estimator's s.
    joint : {"auto", "independent"}, default="auto"
        Source of the probability that several answers are right: the model if it is a joint one,
        else the product over labels. "independent" uses single labels in any case.
    features : {"auto", "scores", "both"}, default="auto"
        Features of the joint model over another classifier: its scores, or also X. "auto"
        takes both if X is a table of numbers with at most 500 columns.
    cv : int, cross-validation splitter or iterable, default=None
        Folds that give out-of-fold scores of the training rows, over another classifier. None means
        5, or 3 if Y has more than 500000 cells. Folds are skipped once the joint model has 5000
        rows to learn from.
    n_jobs : int, default=None
        Workers of the default estimator and of the joint model, as in joblib; other estimators
        have their own ``n_jobs``.
    verbose : int, default=0
        If 1, show the progress of fitting on stderr.
    random_state : int, RandomState or None, default=None
        Seed of the default estimator.

    Attributes
    ----------
    estimator_ : the fitted estimator
    exponent_ : float
        The power of the odds; above 1 if the estimator was underconfident, 1 for a joint model.
    nested_ : bool
        True: what is answered at a reward is answered alike at every larger one.
    contradictions_ : ndarray of shape (n_constraints,)
        Number of training rows that contradict each constraint. Not counted by ``fit_chunks``.

    See Also
    --------
    CredalJointForest : The default estimator.
    PromisedClassifier : Choose the reward that keeps a promise (risk control).
    choose_caution : Choose the reward that answers a given share of the labels.

    References
    ----------
    V.-L. Nguyen and E. Huellermeier, Multilabel classification with partial abstention:
    Bayes-optimal prediction under label independence, Journal of Artificial Intelligence
    Research 72, 2021.

    Examples
    --------
    >>> from credalchain import JointDecision
    >>> X = [["sun"], ["sun"], ["sun"], ["rain"], ["rain"], ["fog"]] * 5
    >>> Y = [[1, 0], [1, 0], [1, None], [0, 1], [0, 1], [None, 1]] * 5
    >>> decision = JointDecision(random_state=0).fit(X, Y)
    >>> decision.predict_partial([["sun"], ["rain"]])
    array([[1, 0],
           [0, 1]], dtype=int8)
    """

    caution_parameter = "reward"
    larger_is_more_cautious = False

    def __init__(
        self,
        estimator: BaseEstimator | str | None = None,
        reward: float | None = None,
        *,
        loss: str = "row",
        costs: tuple[float, float] | None = None,
        constraints: list[str] | None = None,
        calibration_folds: int | None = 3,
        bounds: str = "precise",
        joint: str = "auto",
        features: str = "auto",
        cv: int | object | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: RandomStateLike = None,
    ) -> None:
        self.estimator = estimator
        self.reward = reward
        self.loss = loss
        self.costs = costs
        self.constraints = constraints
        self.calibration_folds = calibration_folds
        self.bounds = bounds
        self.joint = joint
        self.features = features
        self.cv = cv
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Return the parameters; and, once fitted to wide data, the model that was chosen."""
        text: str = super().__repr__(N_CHAR_MAX)
        chosen = getattr(self, "estimator_", None)
        if self.estimator is None and isinstance(chosen, StackedJointForest):
            return f"{text}, over {chosen.estimator!r} of each label"
        return text

    def fit(self, X: MatrixLike, Y: LabelsLike, *, groups: VectorLike | None = None) -> Self:
        """Fit the estimator, and calibrate its probabilities.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Training rows. NaN is a missing value. A dask collection is fitted by
            :meth:`fit_chunks`.
        Y : array-like, data frame, masked array or scipy sparse of shape (n_samples, n_labels)
            Labels 0 and 1, or missing as NaN, None, ``pd.NA``, -1 or masked.
        groups : array-like of shape (n_samples,), default=None
            For classifiers of other packages: rows of a group are held out together, and the joint
            model learns from one row of each.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        if is_dask(X):
            return self.fit_chunks((X, Y))  # type: ignore[arg-type]  # what Y is, is checked there
        self.check_parameters()
        unfitted = self._clone_estimator(X)
        if self._needs_label_vectors():
            self._check_joint_model(isinstance(unfitted, (StackedJointForest, CredalJointForest)))
        if self.constraints:
            Y = as_indexable_labels(Y)
            targets, labels = Targets.learn(Y)
            self._count_contradictions(self._read_constraints(targets), labels)
        if isinstance(unfitted, StackedJointForest):
            self._set_fitted_estimator(unfitted.fit(X, Y, groups=groups))
            return self
        X = as_indexable(X)
        with show_progress(self.verbose):
            self._set_fitted_estimator(unfitted.fit(X, Y))
            if self.calibration_folds is not None and not self._has_joint_model():
                labels = self.estimator_.read_labels(Y)
                self.exponent_ = self._learn_exponent(X, labels, self.calibration_folds)
        return self

    def _count_contradictions(self, constraints: list[Constraint], labels: Labels) -> None:
        counts = [int((~c.check_vectors(labels)[0]).sum()) for c in constraints]
        self.contradictions_ = np.array(counts, dtype=np.int64)
        for constraint, count in zip(constraints, counts, strict=True):
            if count:
                warn_about_data(
                    f"the constraint {visible(constraint.text)} is contradicted by "
                    f"{count} of {plural(len(labels), 'training row')}."
                )

    @property
    def can_fit_chunks(self) -> bool:
        """True if ``fit_chunks`` works, False if all rows are needed in memory."""
        unfitted = self._clone_estimator()
        if not isinstance(unfitted, CredalJointForest) and self.calibration_folds is not None:
            return False  # folds need all rows
        return bool(unfitted.can_fit_chunks)

    def fit_chunks(self, chunks: ChunksLike, *, sample_size: int | None = None) -> Self:
        """Fit the estimator on data that does not fit into memory.

        For the default estimator, or with ``calibration_folds=None``.

        Parameters
        ----------
        chunks : iterable of (X, Y), callable that returns one, or pair of dask collections
            As in ``fit_chunks`` of the estimator.
        sample_size : int, default=None
            Rows to draw. None means 20000 rows for trees, 100000 for bins.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        self.check_parameters()
        unfitted = self._clone_estimator()
        if self.calibration_folds is not None and not isinstance(unfitted, CredalJointForest):
            raise ValueError(
                "calibration_folds must be None for data in chunks, because folds need all rows in "
                f"memory, got {self.calibration_folds!r}."
            )
        self._set_fitted_estimator(unfitted.fit_chunks(chunks, sample_size=sample_size))
        return self

    @property
    def learned_from_(self) -> str:
        """Description of the rows that the estimator learned from, if not all rows in memory."""
        learned_from: str = self.estimator_.learned_from_
        return learned_from

    @classmethod
    def from_fitted(cls, estimator: BaseEstimator, **params: Any) -> Self:
        """Return a fitted decision over a fitted classifier.

        Probabilities are not calibrated: ``exponent_`` is 1.

        Parameters
        ----------
        estimator : classifier of this package
            Fitted. For another one use ``JointDecision(FrozenEstimator(estimator)).fit(X, Y)``.
        **params
            Parameters of the decision, such as ``reward``.

        Returns
        -------
        JointDecision
            Fitted decision.

        Raises
        ------
        TypeError
            If ``estimator`` is not a fitted classifier of this package.
        """
        self = cls(estimator, **params)
        self.check_parameters()
        if not hasattr(estimator, "model_"):
            raise TypeError(
                "estimator must be a fitted classifier of this package, got "
                f"{estimator!r}. Others: JointDecision(FrozenEstimator(estimator)).fit(X, Y)."
            )
        self._set_fitted_estimator(estimator)
        return self

    def _learn_exponent(self, X: Any, labels: Labels, n_folds: int) -> float:
        """Learn the exponent from out-of-fold predictions."""
        from sklearn.model_selection import KFold  # slow to import

        n = len(labels)
        if n < 2:
            return 1.0
        missing = labels == MISSING
        targets = np.where(missing, np.nan, labels) if missing.any() else labels
        p, usable = np.empty(labels.shape), labels.copy()
        folds = KFold(min(n, n_folds), shuffle=True, random_state=0)
        with data_warnings_ignored():
            splits = folds.split(targets)
            for test, X_test, fitted in fitted_folds(
                repeat(self._clone_estimator()), X, targets, splits
            ):
                p[test] = fitted.label_proba(X_test)
                usable[np.ix_(test, fitted.model_.never_observed())] = MISSING
        return fit_exponent(p, usable)

    def _clone_estimator(self, X: Any = None) -> Any:
        """Return the unfitted estimator; a forest over its scores if it is of another package."""
        options: dict[str, Any] = {
            "n_jobs": self.n_jobs,
            "verbose": self.verbose,
            "random_state": self.random_state,
        }
        if isinstance(self.estimator, CredalClassifier):
            return clone(self.estimator)
        if self.estimator is not None:
            check_scored_estimator(self.estimator)
            return StackedJointForest(self.estimator, features=self.features, cv=self.cv, **options)
        if is_wide(X):
            return StackedJointForest(linear_classifier(), features="scores", cv=self.cv, **options)
        return CredalJointForest(**options)

    def _set_fitted_estimator(self, fitted: Any) -> None:
        self.estimator_, self.exponent_ = fitted, 1.0
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(fitted, name):
                setattr(self, name, getattr(fitted, name))

    def _has_joint_model(self) -> bool:
        return isinstance(getattr(self.estimator_, "model_", None), JointModel)

    @property
    def nested_(self) -> bool:
        """True: an answer given at a reward is given at every larger one."""
        check_is_fitted(self, "estimator_")
        return True

    @property
    def classes_(self) -> NDArray[Any]:
        """Classes of each label, as in the estimator."""
        return np.asarray(self.estimator_.classes_)

    @property
    def label_names_(self) -> NDArray[np.str_]:
        """Names of the labels, (n_labels,)."""
        return np.asarray(self.estimator_.label_names_)

    @property
    def caution_(self) -> float:
        """The reward in use."""
        if self.reward is None:
            return RULES[self.loss].default_reward(len(self.label_names_))
        return check_reward(self.reward)

    @property
    def caution_grid(self) -> FloatArray:
        """Rewards to choose from, from least to most cautious."""
        return RULES[self.loss].grid(self.costs or EQUAL_COSTS)

    @property
    def targets_(self) -> Targets:
        """Encoding of the labels, as in the estimator."""
        targets: Targets = self.estimator_.targets_
        return targets

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """Predict 0 or 1 for every label.

        Over a joint model, this is the likeliest label vector; otherwise the estimator's
        ``predict``.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            Labels; of shape (n_samples,) if fitted on a vector.
        """
        check_is_fitted(self, "estimator_")
        if not self._has_joint_model():
            return np.asarray(self.estimator_.predict(X))
        answers = self.decide(X).answers
        if not self.constraints:  # which answers meet already
            answers = np.where(self.estimator_.model_.never_observed(), 0, answers)
        return np.asarray(self.estimator_.targets_.decode(answers))

    def predict_proba(self, X: MatrixLike) -> FloatArray:
        """Predict probabilities with the estimator, not calibrated, given the constraints.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            P(1) of each label; of shape (n_samples, 2) if fitted on a vector.
        """
        check_is_fitted(self, "estimator_")
        if self.constraints:
            return precise_probabilities(self.decide(X).lower)[..., 1]
        return np.asarray(self.estimator_.predict_proba(X))

    def infer(
        self,
        X: MatrixLike,
        *,
        reward: float | None = None,
        known: LabelsLike | None = None,
    ) -> CredalPrediction:
        """Decide the labels of every row; return them with the probabilities behind them.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows to predict.
        reward : float, default=None
            Overrides the parameter ``reward``.
        known : array-like of shape (n_samples, n_labels), default=None
            Labels that are known already, 0 or 1; -1 elsewhere.

        Returns
        -------
        CredalPrediction
            Labels and bounds. For a dask data frame, a dask data frame of
            ``to_frame(intervals=True)``.
        """
        decided = self.decide(X, known=known)
        labels = decided.labels([self.caution_ if reward is None else reward])
        shape = (1, 1, *decided.answers.shape)
        bounds = np.stack([log_odds(decided.lower[..., 1]), -log_odds(decided.lower[..., 0])], -1)
        exactness = np.broadcast_to(decided.exactness, shape)
        interval = decided.interval[None, None]
        answer = Answer(labels[None], bounds[None, None], exactness, interval)
        return CredalPrediction.from_answer(answer, 0, self.label_names_.tolist(), X)

    def predict_partial(self, X: MatrixLike, *, known: LabelsLike | None = None) -> Labels:
        """Predict 1, 0, or -1 where an answer is not worth the risk of an error.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows to predict.
        known : array-like of shape (n_samples, n_labels), default=None
            Labels that are known already, 0 or 1; -1 elsewhere.

        Returns
        -------
        ndarray of int8, shape (n_samples, n_labels)
            Partial predictions.
        """
        check_is_fitted(self, "estimator_")
        return np.asarray(self.decide(X, known=known).labels([self.caution_])[0])

    def predict_interval(self, X: MatrixLike) -> FloatArray:
        """Predict the lower and upper probability of each label.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples, n_labels, 2)
            Bounds; lower and upper ones are equal with ``bounds="precise"``.
        """
        return np.asarray(self.infer(X).interval)

    def predict_path(
        self, X: MatrixLike, values: Iterable[float], *, known: LabelsLike | None = None
    ) -> Labels:
        """Predict partially for many rewards.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows to predict.
        values : iterable of float
            Rewards.
        known : array-like of shape (n_samples, n_labels), default=None
            Labels that are known already, 0 or 1; -1 elsewhere.

        Returns
        -------
        ndarray of int8, shape (n_values, n_samples, n_labels)
            Partial predictions for each reward.
        """
        if not np.iterable(values):
            raise ValueError(f"values must be several rewards, got {values!r}.")
        return self.decide(X, known=known).labels(values)

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
        check_is_fitted(self, "estimator_")
        return utility_65(self.estimator_.read_labels(y), self.predict_partial(X))

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
        return np.asarray(self.estimator_.read_labels(Y))

    def decide(self, X: MatrixLike, *, known: LabelsLike | None = None) -> PricedAnswers:
        """Decide what to answer for every reward: the answer to each label, and its price.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows to predict.
        known : array-like of shape (n_samples, n_labels), default=None
            Labels that are known already, 0 or 1; -1 elsewhere.

        Returns
        -------
        PricedAnswers
            Answers and prices. ``labels(rewards)`` gives the partial predictions.
        """
        check_is_fitted(self, "estimator_")
        self.check_parameters()
        estimator = self.estimator_
        rule = RULES[self.loss]
        constraints = self._read_constraints()
        needs_vectors = self._needs_label_vectors()
        if needs_vectors:
            self._check_joint_model(self._has_joint_model())
        elif rule.expected_costs is not None:
            return self._decide_by_cells(X, known, rule)
        if self.joint != "auto" or not self._has_joint_model():
            return self._decide_by_labels(X, known)
        encoded = estimator.encode(X)
        options = {
            "s": check_s(estimator.s) if self.bounds == "credal" else 0.0,
            "known": estimator.targets_.encode_known(known, encoded.shape[0]),
            "n_jobs": effective_n_jobs(estimator.n_jobs),
        }
        if needs_vectors:
            costs = self.costs or EQUAL_COSTS
            return decide_listed(estimator.model_, encoded, rule, costs, constraints, **options)
        decided: PricedAnswers = estimator.model_.decide(encoded, **options)
        return decided

    def _read_constraints(self, targets: Targets | None = None) -> list[Constraint]:
        if not self.constraints:
            return []
        names = self.label_names_ if targets is None else targets.names
        return read_constraints(self.constraints, names.tolist())

    def _needs_label_vectors(self) -> bool:
        return bool(self.constraints) or RULES[self.loss].measure is not None

    def _check_joint_model(self, has_joint_model: bool) -> None:
        if self.joint != "auto" or not has_joint_model:
            needs = "constraints need" if self.constraints else f"loss={self.loss!r} needs"
            raise ValueError(
                f"{needs} a joint model: estimator must be None, 'precomputed', CredalJointForest "
                f"or another package's classifier, with joint='auto', got {self.estimator!r} with "
                f"joint={self.joint!r}."
            )

    def _decide_by_cells(self, X: Any, known: Any, rule: Rule) -> PricedAnswers:
        """Decide each label by its own probability."""
        interval, lower, exactness, known_labels = self._known_bounds(X, known)
        answers, prices = price_cells(rule, lower, self.costs or EQUAL_COSTS)
        is_known = known_labels != MISSING
        answers, prices = np.where(is_known, known_labels, answers), np.where(is_known, 0.0, prices)
        return PricedAnswers(interval, lower, answers, prices, exactness)

    def _known_bounds(self, X: Any, known: Any) -> tuple[FloatArray, FloatArray, Ranks, Labels]:
        """Return ``_label_bounds``, with known labels as they are, and these labels (n, m)."""
        interval, lower, exactness = self._label_bounds(X, known)
        never = self.estimator_.model_.never_observed()
        interval[:, never], lower[:, never] = (0.0, 1.0), 0.0  # vacuous: no information
        known_labels = self.estimator_.targets_.encode_known(known, len(lower))
        if known_labels is None:
            known_labels = np.full(lower.shape[:2], MISSING, dtype=np.int8)
        is_known = known_labels != MISSING
        lower = np.where(
            is_known[..., None], np.stack([1 - known_labels, known_labels], axis=-1), lower
        )
        interval = np.where(is_known[..., None], known_labels[..., None], interval)
        return interval, lower, exactness, known_labels

    def _decide_by_labels(self, X: Any, known: Any) -> PricedAnswers:
        """Decide from the probabilities of single labels."""
        from credalchain.joint.kernels import price_prefixes  # imports numba

        interval, lower, exactness, known_labels = self._known_bounds(X, known)
        is_known = known_labels != MISSING
        answers = (lower[..., 1] >= lower[..., 0]).astype(np.int8)
        certainty = np.take_along_axis(lower, answers[..., None], axis=-1)[..., 0]
        answerable = lower.max(axis=-1) > 0
        order = np.lexsort((-certainty, ~answerable, ~is_known)).astype(np.int64)
        right: NDArray[Any] = np.cumprod(np.take_along_axis(certainty, order, axis=1), axis=1)
        right = np.hstack([np.ones((len(right), 1)), right])
        prices = np.empty(answers.shape)
        price_prefixes(right, order, answerable.sum(axis=1), True, prices)
        return PricedAnswers(interval, lower, answers, prices, exactness)

    def _label_bounds(self, X: Any, known: Any) -> tuple[FloatArray, FloatArray, Ranks]:
        """Return bounds of P(1), lower P(0) and P(1), (n, m, 2), calibrated; exactness.

        Near 1, an upper bound is too coarse to compute its complement from.
        """
        if self.bounds == "credal":
            prediction = self.estimator_.infer(X, known=known)
            interval = scale_log_odds(prediction.interval, self.exponent_)
            zero = probabilities(-self.exponent_ * prediction.log_odds[..., 1])
            lower = np.stack([zero, interval[..., 0]], axis=-1)
            return interval, lower, prediction.exactness_ranks
        p = scale_log_odds(self.estimator_.label_proba(X, known=known), self.exponent_)
        ranks = uniform_exactness(Exactness.EXACT, p.shape)
        return np.stack([p, p], axis=-1), np.stack([1 - p, p], axis=-1), ranks

    def check_state(self) -> None:
        """Validate the fitted attributes of a model that was loaded from a file."""
        check_instance("estimator_", self.estimator_, CredalClassifier)
        check_array("exponent_", np.array([self.exponent_]), np.float64, (1,), 1e-9, 1e9)
        self.check_parameters()
        check_n_jobs(self.n_jobs)

    def check_parameters(self) -> None:
        """Validate the parameters."""
        check_choice("bounds", self.bounds, ("precise", "credal"))
        check_choice("joint", self.joint, ("auto", "independent"))
        check_choice("loss", self.loss, tuple(RULES))
        if self.costs is not None:
            check_costs(self.costs)
        check_constraints(self.constraints)
        check_choice("features", self.features, ("auto", "scores", "both"))
        if self.reward is not None:
            check_reward(self.reward)
        if self.calibration_folds is not None:
            check_int("calibration_folds", self.calibration_folds, at_least=2)
        check_int("verbose", self.verbose, at_least=0)
