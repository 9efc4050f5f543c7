"""The scikit-learn interface shared by all cautious multi-label classifiers of this package."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, check_is_fitted

from credalchain._utils.array_types import Labels
from credalchain._utils.progress import show_progress, track
from credalchain._utils.text import plural, visible
from credalchain._utils.validation import (
    check_array,
    check_instance,
    check_int,
    check_n_jobs,
    check_order,
    check_s,
    check_s_values,
    check_thresholds,
)
from credalchain.chains.protocol import ChainModel, Request, Rows
from credalchain.chains.strategies import Strategy, get_strategy
from credalchain.chunks.dask_collections import as_chunks, predict_lazily
from credalchain.chunks.trees import SAMPLE_SIZE, TrainingSample, sample_chunks
from credalchain.exceptions import data_warnings_ignored, warn_about_data
from credalchain.labels import MISSING, Targets, and_more
from credalchain.metrics import utility_65
from credalchain.prediction import CredalPrediction, Order
from credalchain.preprocessing import is_dask, validate_table
from credalchain.typing import ChunksLike, LabelsLike, MatrixLike


class FittedFold(NamedTuple):
    """Rows that were held out, by number and by content, and an estimator fitted on the others."""

    rows: Rows
    X: Any
    estimator: Any


def fitted_folds(
    estimators: Iterable[Any], X: Any, Y: Any, splits: Iterable[tuple[Rows, Rows]]
) -> Iterator[FittedFold]:
    """Fit fold by fold, as in cross-validation: a clone of the next estimator per (train, test)."""
    pairs = list(zip(splits, estimators, strict=False))
    for (train, test), estimator in track(pairs, "folds", len(pairs)):
        with data_warnings_ignored():
            fitted = clone(estimator).fit(take_rows(X, train), take_rows(Y, train))
        yield FittedFold(test, take_rows(X, test), fitted)


_MAX_NAMES = 10  # in a warning
_LAZY = {"predict", "predict_partial", "predict_proba", "predict_interval", "infer"}


def _lazy_for_dask(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def predict(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        if is_dask(X) and not args:
            return predict_lazily(self, method.__name__, X, options)
        return method(self, X, *args, **options)

    return predict


class CautiousTagsMixin:
    """Mixin for the tags of all classifiers here, and lazy predictions of dask collections."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in vars(cls).keys() & _LAZY:
            setattr(cls, name, _lazy_for_dask(vars(cls)[name]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        return tags


class CredalClassifier(CautiousTagsMixin, ClassifierMixin, BaseEstimator):
    """Base class of classifiers with bounds; subclasses implement ``_fit_model``."""

    caution_parameter = "s"  # name of the parameter that sets the caution
    larger_is_more_cautious = True
    _model_types: tuple[type, ...] = (ChainModel,)  # of ``model_``
    chained = True  # whether later labels are conditioned on earlier ones

    s: float
    strategy: Any = "branching"
    threshold: Any
    n_jobs: int | None
    verbose: int
    random_state: Any
    order_: Order | None
    model_: Any
    targets_: Targets

    # -- fitting -----------------------------------------------------------------------

    def fit(self, X: MatrixLike, Y: LabelsLike) -> Self:
        """Fit the model to rows with labels, some of which may be missing.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Training rows. NaN is a missing value. A dask array or data frame is counted partition
            by partition (as in ``fit_chunks``), where what is learned can be counted.
        Y : array-like, data frame, masked array or scipy sparse of shape (n_samples, n_labels)
            Labels 0 and 1, or missing as NaN, None, ``pd.NA``, -1 or masked. A vector with two
            distinct values works as a single label. A dask collection if X is one. Or a list
            of lists of label names, such as ``[["rock", "pop"], []]``.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        if is_dask(X):
            return self.fit_chunks((X, Y))  # type: ignore[arg-type]  # Y is validated there
        self._warn_about_labels(self._fit_in_memory(X, Y))
        return self

    def _warn_about_labels(self, labels: Labels) -> None:
        """Warn about labels that are never observed, or constant in all rows."""
        self._warn_about_never_observed()
        any_yes, any_no = (labels == 1).any(axis=0), (labels == 0).any(axis=0)
        constant = np.flatnonzero(any_yes ^ any_no)
        if len(constant) and not self.targets_.is_vector:  # as scikit-learn, which has no warning
            shown = constant[:_MAX_NAMES]
            names = [f"{visible(self.label_names_[j])} (always {int(any_yes[j])})" for j in shown]
            names += filter(None, [and_more(len(shown), len(constant))])
            warn_about_data(
                "labels that are the same in all training rows, of which the other answer cannot "
                "be learned; choose_caution and promises leave them out of the share answered, "
                f"completeness does not: {', '.join(names)}"
            )

    def fit_chunks(self, chunks: ChunksLike, *, sample_size: int | None = None) -> Self:
        """Fit the model out of core, one chunk after the other.

        Counts and categories are those of all rows. Bins of numeric columns, or trees, are learned
        from a sample of rows, drawn by a hash of their numbers, so the sample does not depend on
        the chunks. If it contains all rows, the model is bitwise identical to that of ``fit``. The
        attribute ``learned_from_`` describes what was learned from.

        Parameters
        ----------
        chunks : iterable of (X, Y), callable that returns one, or pair of dask collections
            Iterated over two or three times (once if bins are given), so pass an iterator as a
            callable that returns it. Or any object with the methods of
            ``credalchain.typing.Chunks``.
        sample_size : int, default=None
            Number of rows to draw. None means 100000 for bins and 20000 for trees.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        if sample_size is not None:
            check_int("sample_size", sample_size)
        with show_progress(self.verbose):
            self._fit_model_from_chunks(as_chunks(chunks), sample_size)
        self._warn_about_never_observed()
        return self

    @property
    def can_fit_chunks(self) -> bool:
        """True if ``fit_chunks`` works, False if all rows are needed in memory."""
        return True

    def _fit_model_from_chunks(self, chunks: Any, sample_size: int | None) -> None:
        raise TypeError(f"{type(self).__name__} needs all rows in memory.")

    def _draw_training_sample(self, chunks: Any, sample_size: int | None) -> TrainingSample:
        """Draw the rows that trees are grown on; set the attributes for columns and labels."""
        sampled = sample_chunks(chunks, sample_size or SAMPLE_SIZE)
        names = sampled.feature_names and np.array(sampled.feature_names, dtype=object)
        self._set_names(sampled.X.shape[1], names, sampled.labels.shape[1], sampled.label_names)
        self.learned_from_ = sampled.source
        unseen = (sampled.labels == MISSING).all(axis=0)
        if unseen.any() and not sampled.is_everything:
            label_names = ", ".join(map(visible, self.label_names_[unseen]))
            warn_about_data(
                f"in the {plural(len(sampled.labels), 'row')} that trees are grown on nobody "
                f"observed {label_names}: no tree looks for it. A larger sample_size helps."
            )
        return sampled

    def _set_names(
        self, n_features: int, feature_names: Any, n_labels: int, label_names: Any
    ) -> None:
        self.targets_ = Targets.of_labels(
            n_labels, None if label_names is None else list(label_names)
        )
        self.n_features_in_ = n_features
        if feature_names is not None:
            self.feature_names_in_ = feature_names
        elif hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_
        self.check_parameters()

    def _warn_about_never_observed(self) -> None:
        never = self.model_.never_observed()
        if never.any():
            names = ", ".join(map(visible, self.label_names_[never]))
            warn_about_data(
                f"never observed in training, so left open in every prediction: {names}"
            )

    def _fit_in_memory(
        self, X: Any, Y: Any, *, classes: Any = None, sample_weight: Any = None
    ) -> Labels:
        """Fit, and return the encoded labels."""
        if is_dask(Y) and not is_dask(X):
            raise TypeError(
                "X must be a dask collection if Y is one, got "
                f"{type(X).__name__}; otherwise pass Y.compute()."
            )
        X = validate_table(self, X, reset=True)
        if Y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        self.__dict__.pop("learned_from_", None)  # of an earlier fit
        self.targets_, labels = Targets.learn(Y, classes)
        check_consistent_length(X, labels)
        self.check_parameters()
        if sample_weight is not None:
            X, labels = repeat_rows(X, labels, sample_weight)
        with show_progress(self.verbose):
            self.model_ = self._fit_model(X, labels)
        return labels

    @abstractmethod
    def _fit_model(self, X: Any, labels: Labels) -> Any:
        """Return a model fitted to validated rows; also sets ``order_``."""

    def check_parameters(self) -> None:
        """Validate the parameters."""
        check_s_values((self.s,))
        check_n_jobs(self.n_jobs)
        check_int("verbose", self.verbose, at_least=0)
        get_strategy(self.strategy)
        if hasattr(self, "targets_"):  # before a fit, labels are not known
            check_thresholds(self.threshold, len(self.targets_.names))

    def check_state(self) -> None:
        """Validate the fitted attributes of a model that was loaded from a file."""
        check_instance("model_", self.model_, self._model_types)
        check_instance("targets_", self.targets_, Targets)
        m = self.model_.n_labels
        self.targets_.check_state(m)
        self.model_.check_state(self._n_encoded_columns())
        p = getattr(self, "n_features_in_", None)
        names = getattr(self, "feature_names_in_", None)
        if names is not None:
            check_array("feature_names_in_", names, np.dtype(object), (p,))
            if not all(isinstance(name, str) for name in names):
                raise ValueError("feature_names_in_ must hold strings.")
        self.check_parameters()
        strategy = get_strategy(self.strategy)
        for function in (strategy.merge, strategy.merge_exact, strategy.from_tree):
            if not (function is None or callable(function)):
                raise ValueError("strategy must hold functions.")
        check_random_state(self.random_state)
        if self.order_ is not None:
            check_order(check_array("order_", self.order_, np.int64, (m,)), [""] * m)
        elif not self.model_.serves_any_order:
            raise ValueError("a dynamic order needs a base that serves every order of the labels.")

    def _n_encoded_columns(self) -> int:
        """Return how many columns the model was fitted on."""
        return check_int("n_features_in_", self.n_features_in_)

    @classmethod
    def from_model(
        cls,
        model: ChainModel,
        *,
        n_features: int,
        label_names: Iterable[str] | None = None,
        **params: Any,
    ) -> Self:
        """Return a fitted classifier around an existing model.

        Parameters
        ----------
        model : ChainModel
            For instance a ``LocalChainModel`` around a custom local model.
        n_features : int
            Number of columns of X.
        label_names : iterable of str, default=None
            Names of the labels. None numbers them.
        **params
            Parameters of the classifier.

        Returns
        -------
        CredalClassifier
            Fitted classifier, of the class that the method is called on.
        """
        self = cls(**params)
        names = [*map(str, label_names)] if label_names is not None else None
        if names is not None and len(names) != model.n_labels:
            raise ValueError(f"label_names must have {model.n_labels} names, got {len(names)}.")
        self.model_ = model
        self.n_features_in_ = n_features
        self.targets_ = Targets.of_labels(model.n_labels, names)
        self.order_ = self._choose_order(model.n_labels, check_random_state(self.random_state))
        return self

    @abstractmethod
    def _choose_order(self, n_labels: int, rng: np.random.RandomState) -> Order | None:
        """Choose the order of the labels; None if it is chosen row by row, or if there is none."""

    # -- fitted attributes ---------------------------------------------------------------

    @property
    def classes_(self) -> NDArray[Any]:
        """Classes of each label, (n_labels, 2); those of the vector if fitted on one."""
        return self.targets_.classes

    @property
    def label_names_(self) -> NDArray[np.str_]:
        """Names of the labels, (n_labels,)."""
        return self.targets_.names

    @property
    def n_labels_(self) -> int:
        """Number of labels."""
        return self.targets_.n_labels

    @property
    def caution_(self) -> float:
        """Value of s in use."""
        return check_s(self.s)

    @property
    def nested_(self) -> bool:
        """True if a label answered at a larger s is answered alike at every smaller one."""
        check_is_fitted(self, "model_")
        nested = get_strategy(self.strategy).nested and self.model_.nested
        return bool(nested and self.order_ is not None)

    # -- prediction ----------------------------------------------------------------------

    def encode(self, X: MatrixLike) -> Any:
        """Encode rows in the form that ``model_.infer`` takes.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        object
            Encoded rows, with ``shape[0] == n_samples``.
        """
        check_is_fitted(self, "model_")
        return self.model_.encode(validate_table(self, X, reset=False))

    def request(
        self,
        encoded: Any,
        *,
        s: Any = None,
        strategy: str | Strategy | tuple[str | Strategy, ...] | None = None,
        known: LabelsLike | None = None,
        precise: bool = False,
        wants_bounds: bool = True,
    ) -> Request:
        """Return the validated parameters of a prediction, for ``model_.infer``.

        Parameters
        ----------
        encoded : object
            Rows, as :meth:`encode` returns them.
        s : float or sequence of float, default=None
            Overrides the parameter ``s``, with one value or several.
        strategy : str, Strategy or tuple of them, default=None
            Overrides the parameter ``strategy``.
        known : array-like of shape (n_samples, n_labels), default=None
            Labels that are known already, 0 or 1; -1 elsewhere.
        precise : bool, default=False
            If True, predict with the precise chain, which answers every label.
        wants_bounds : bool, default=True
            If True, also return bounds.

        Returns
        -------
        Request
            Validated parameters.
        """
        given = (self.s if s is None else s, self.strategy if strategy is None else strategy)
        values, strategies = (
            value if isinstance(value, (tuple, list)) else (value,) for value in given
        )
        return Request(
            s_values=check_s_values(values),
            strategies=tuple(get_strategy(strategy) for strategy in strategies),
            order=self.order_,
            thresholds=check_thresholds(self.threshold, len(self.targets_.names)),
            never_observed=self.model_.never_observed(),
            known=None if known is None else self.targets_.encode_known(known, encoded.shape[0]),
            chained=self.chained,
            precise=precise,
            wants_bounds=wants_bounds,
            n_jobs=effective_n_jobs(check_n_jobs(self.n_jobs)),
        )

    def infer(
        self,
        X: MatrixLike,
        *,
        s: float | None = None,
        strategy: str | Strategy | None = None,
        known: LabelsLike | None = None,
    ) -> CredalPrediction:
        """Infer the labels and bounds of every row.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows to predict.
        s : float, default=None
            Overrides the parameter ``s``.
        strategy : str or Strategy, default=None
            Overrides the parameter ``strategy``.
        known : array-like of shape (n_samples, n_labels), default=None
            Labels that are known already, 0 or 1; -1 (or NaN, ...) elsewhere. They are used at any
            position of the chain; a dynamic order starts with them.

        Returns
        -------
        CredalPrediction
            Labels and bounds. For a dask data frame, a dask data frame of
            ``to_frame(intervals=True)``.
        """
        encoded = self.encode(X)
        value = self.s if s is None else s
        single = None if strategy is None else (strategy,)
        request = self.request(encoded, s=(value,), strategy=single, known=known)
        answer = self.model_.infer(encoded, request)
        return CredalPrediction.from_answer(answer, 0, self.label_names_.tolist(), X)

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """Predict 0 or 1 for every label, with the precise chain (s = 0).

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            Labels; of shape (n_samples,) if fitted on a vector.
        """
        encoded = self.encode(X)
        request = self.request(encoded, s=0.0, precise=True, wants_bounds=False)
        return self.targets_.decode(self.model_.infer(encoded, request).labels[0, 0])

    def predict_partial(self, X: MatrixLike) -> Labels:
        """Predict 1, 0, or -1 where the bounds do not settle the label.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of int8, shape (n_samples, n_labels)
            Partial predictions.
        """
        return np.asarray(self.predict_path(X, [self.s])[0])

    def predict_interval(self, X: MatrixLike) -> NDArray[np.float64]:
        """Predict the lower and upper probability of each label.

        The bounds are conditional on the labels predicted before it in the chain.

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

    def predict_proba(self, X: MatrixLike) -> NDArray[np.float64]:
        """Predict P(1) of each label with the precise chain, conditional on its own greedy path.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            Probabilities; of shape (n_samples, n_classes) if fitted on a vector.
        """
        p = self.label_proba(X)  # first: it raises NotFittedError
        return self.targets_.decode_proba(p)

    def label_proba(self, X: MatrixLike, *, known: LabelsLike | None = None) -> NDArray[np.float64]:
        """Predict P(1) of each label with the precise chain.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows to predict.
        known : array-like of shape (n_samples, n_labels), default=None
            As in :meth:`infer`.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            Probabilities, also if fitted on a vector.
        """
        encoded = self.encode(X)
        answer = self.model_.infer(encoded, self.request(encoded, s=0.0, precise=True, known=known))
        log_odds, interval = answer.log_odds, answer.interval
        bounds = expit(log_odds[..., 0]) if interval is None else interval[..., 0]
        p: NDArray[np.float64] = bounds[0, 0]
        p[:, self.model_.never_observed()] = 0.0  # consistent with predict
        return p

    def predict_path(
        self, X: MatrixLike, values: Iterable[float], *, strategy: str | Strategy | None = None
    ) -> Labels:
        """Predict partially for many values of s.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows to predict.
        values : iterable of float
            Values of s.
        strategy : str or Strategy, default=None
            Overrides the parameter ``strategy``.

        Returns
        -------
        ndarray of int8, shape (n_values, n_samples, n_labels)
            Partial predictions for each value.
        """
        if not np.iterable(values):
            raise ValueError(f"values must be several values of s, got {values!r}.")
        encoded = self.encode(X)
        single = None if strategy is None else (strategy,)
        request = self.request(encoded, s=tuple(values), strategy=single, wants_bounds=False)
        if not request.s_values:
            return np.empty((0, encoded.shape[0], self.n_labels_), dtype=np.int8)
        return np.asarray(self.model_.infer(encoded, request).labels[0])

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
        check_is_fitted(self, "model_")
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
        return self.targets_.encode(Y)


def repeat_rows(X: Any, labels: Labels, sample_weight: Any) -> tuple[Any, Labels]:
    """Repeat every row by its weight: whole numbers, since models are made of counts."""
    weights = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
    fractions = np.flatnonzero(weights != np.floor(weights))
    if len(fractions):
        row = int(fractions[0])
        raise ValueError(
            "sample_weight must be whole numbers, how often each row counts, got "
            f"{weights[row]:g} for row {row}."
        )
    if not weights.any():  # older scikit-learn lets it pass
        raise ValueError("sample_weight must have at least one non-zero number, got only 0.")
    rows = np.repeat(np.arange(len(labels)), weights.astype(np.int64))
    return take_rows(X, rows), labels[rows]
