"""Base classes of the rivals: fitting a probabilistic base, and answers with a price."""

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from credalchain._utils.array_types import FloatArray, Labels
from credalchain._utils.text import plural
from credalchain._utils.validation import check_n_jobs, check_number
from credalchain.chains.interface import CautiousTagsMixin, CredalClassifier
from credalchain.joint.scores import PrecomputedScores, fit_scores, frozen_scores
from credalchain.joint.stacked import check_scored_estimator
from credalchain.labels import ABSTAIN, Targets
from credalchain.metrics import utility_65
from credalchain.model_selection import training_targets
from credalchain.preprocessing import as_indexable
from credalchain.typing import LabelsLike, MatrixLike, RandomStateLike

_MAX = np.finfo(float).max
_MIN_PROBABILITY = 1e-12
TIE = 1e-11  # above the rounding errors of prices, costs and scores


def check_value(name: str, value: Any) -> float:
    """Validate a value of a caution parameter: 0, or a positive and finite number."""
    return check_number(name, value, 0, _MAX, "a number, at least 0 and finite")


class RejectMixin(CautiousTagsMixin, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Mixin of classifiers that abstain, given a base's probabilities of single labels.

    A subclass has a caution parameter and says what is answered at each of its values: by
    ``_answers_along``, or, where every answer has a price, by ``_answers_and_prices``. The larger
    the parameter, the more is answered, unless the subclass says otherwise.
    """

    caution_parameter: str
    larger_is_more_cautious = False
    caution_grid = np.append(np.geomspace(100.0, 1e-3, 1500), 0.0)  # from least to most cautious
    nested_ = True
    estimator: Any
    n_jobs: int | None = None

    # -- fitting ---------------------------------------------------------------------------------

    def fit(self, X: MatrixLike, Y: LabelsLike) -> Self:
        """Fit the estimator to rows with labels, some of which may be missing.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Training rows; for "precomputed", the probabilities themselves, of shape (n_samples,
            n_labels).
        Y : array-like of shape (n_samples, n_labels)
            Labels 0 and 1, or missing as NaN, None, ``pd.NA``, -1 or masked. An estimator of
            another package is fitted to each label by itself if some are missing.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        X = self._start_fit(X)
        self.targets_, labels = Targets.learn(Y)
        check_consistent_length(X, labels)
        self._fit_scores(X, labels)
        return self

    def _start_fit(self, X: Any) -> Any:
        self.check_parameters()
        X = as_indexable(X)
        validate_data(self, X, reset=True, skip_check_array=True)
        return X

    def _fit_scores(self, X: Any, labels: Labels) -> None:
        """Set ``scores_``, which gives log-odds of rows, or a fitted classifier of this package."""
        estimator = self.estimator
        if isinstance(estimator, CredalClassifier):
            self.scores_: Any = clone(estimator).fit(X, training_targets(labels))
        elif isinstance(estimator, str):
            self.scores_ = PrecomputedScores(X, labels.shape[1])
        elif isinstance(estimator, FrozenEstimator):
            classes = self.targets_.classes
            self.scores_ = frozen_scores(estimator, X, labels.shape[1], classes)
        else:
            self.scores_ = fit_scores(estimator, X, labels, effective_n_jobs(self.n_jobs))

    def check_parameters(self) -> None:
        """Validate the parameters."""
        check_scored_estimator(self.estimator, or_none=False)
        check_n_jobs(self.n_jobs)
        check_value(self.caution_parameter, getattr(self, self.caution_parameter))

    # -- prediction ------------------------------------------------------------------------------

    def label_proba(self, X: MatrixLike) -> FloatArray:
        """Predict P(1) of each label.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            Probabilities, also if fitted on a vector.
        """
        check_is_fitted(self, "scores_")
        if isinstance(self.scores_, CredalClassifier):
            return self.scores_.label_proba(X)
        X = as_indexable(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return np.asarray(expit(self.scores_.log_odds(X, _MIN_PROBABILITY)))

    def predict_proba(self, X: MatrixLike) -> FloatArray:
        """Predict P(1) of each label.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            Probabilities; of shape (n_samples, 2) if fitted on a vector.
        """
        p = self.label_proba(X)
        return self.targets_.decode_proba(p)

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """Predict the likelier value of every label.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            Labels; of shape (n_samples,) if fitted on a vector.
        """
        p = self.label_proba(X)
        return self.targets_.decode((p >= 0.5).astype(np.int8))

    def predict_partial(self, X: MatrixLike) -> Labels:
        """Predict 1, 0, or -1 where the classifier abstains.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of int8, shape (n_samples, n_labels)
            Partial predictions.
        """
        return np.asarray(self.predict_path(X, [getattr(self, self.caution_parameter)])[0])

    def predict_path(self, X: MatrixLike, values: Iterable[float]) -> Labels:
        """Predict partially at many values of the caution parameter.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows to predict.
        values : iterable of float
            Values of the caution parameter.

        Returns
        -------
        ndarray of int8, shape (n_values, n_samples, n_labels)
            Partial predictions at each value.
        """
        if not np.iterable(values):
            raise ValueError(
                f"values must be several values of {self.caution_parameter}, got {values!r}."
            )
        values = [check_value(self.caution_parameter, value) for value in values]
        self.check_parameters()
        p = self.label_proba(X)
        if not values:
            return np.empty((0, *p.shape), dtype=np.int8)
        return self._answers_along(p, np.array(values))

    def _answers_along(self, p: FloatArray, values: FloatArray) -> Labels:
        """Return what is answered, from the probabilities (n, m), at each value."""
        answers, prices = self._answers_and_prices(p)
        is_given = prices <= values[:, None, None] + TIE
        return np.where(is_given, answers, np.int8(ABSTAIN))

    @abstractmethod
    def _answers_and_prices(self, p: FloatArray) -> tuple[Labels, FloatArray]:
        """Return the answer to each label, and the least value at which it is given: (n, m)."""

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
        check_is_fitted(self, "targets_")
        return utility_65(self.read_labels(y), self.predict_partial(X))

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
        check_is_fitted(self, "targets_")
        return self.targets_.encode(Y)

    @property
    def classes_(self) -> NDArray[Any]:
        """Classes of each label, (n_labels, 2); those of the vector if fitted on one."""
        return self.targets_.classes

    @property
    def label_names_(self) -> NDArray[np.str_]:
        """Names of the labels, (n_labels,)."""
        return self.targets_.names


class CalibratedMixin(RejectMixin):
    """Mixin of rivals that learn from rows which the base was not fitted on.

    Such rows are a random share of the training rows; all of them over a ``FrozenEstimator`` or
    "precomputed" probabilities, where nothing is fitted.
    """

    calibration: float
    random_state: RandomStateLike

    def fit(self, X: MatrixLike, Y: LabelsLike) -> Self:
        """Fit the estimator to some of the rows, and calibrate on the others.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Training rows; for "precomputed", the probabilities themselves, of shape (n_samples,
            n_labels).
        Y : array-like of shape (n_samples, n_labels)
            Labels 0 and 1, or missing as NaN, None, ``pd.NA``, -1 or masked.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        X = self._start_fit(X)
        self.targets_, labels = Targets.learn(Y)
        check_consistent_length(X, labels)
        rows = check_random_state(self.random_state).permutation(len(labels))
        n_held_out = int(np.ceil(self.calibration * len(rows)))
        training, held_out = np.sort(rows[n_held_out:]), np.sort(rows[:n_held_out])
        if isinstance(self.estimator, (str, FrozenEstimator)):
            training = held_out = np.sort(rows)
        if len(training) == 0:
            raise ValueError(
                "calibration must leave rows to fit the estimator to, got "
                f"{self.calibration} of {plural(len(rows), 'row')}."
            )
        self._fit_scores(take_rows(X, training), labels[training])
        self._calibrate(self.label_proba(take_rows(X, held_out)), labels[held_out])
        return self

    @abstractmethod
    def _calibrate(self, p: FloatArray, labels: Labels) -> None:
        """Learn from probabilities of rows held out, and their labels: (n, m)."""

    def check_parameters(self) -> None:
        super().check_parameters()
        ends = np.nextafter(0, 1), np.nextafter(1, 0)
        check_number("calibration", self.calibration, *ends, "a share between 0 and 1")
