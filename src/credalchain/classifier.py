"""What every cautious multi-label classifier here has in common: the scikit-learn side."""

import warnings
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from credalchain.bases.naive import NaiveCredal
from credalchain.bases.protocol import Answer, Labels, Request
from credalchain.labels import MISSING, as_labels, check_names, column_names
from credalchain.metrics import utility_65
from credalchain.prediction import CredalPrediction
from credalchain.preprocessing import as_plain_table
from credalchain.strategies import Strategy, branching, get_strategy
from credalchain.targets import is_label_vector, is_vector, two_classes
from credalchain.validation import check_n_jobs, check_s, check_thresholds


def _can_learn_more(classifier: Any) -> bool:
    """Whether there is a ``partial_fit``: a base may say that there is not."""
    return bool(getattr(classifier.base, "learns_more", True))


def cautious_tags(tags: Any) -> Any:
    """What scikit-learn is told about every classifier here."""
    tags.input_tags.allow_nan = True
    tags.input_tags.sparse = True
    tags.input_tags.categorical = True
    tags.input_tags.string = True
    tags.target_tags.multi_output = True
    tags.classifier_tags.multi_class = False
    tags.classifier_tags.multi_label = True
    return tags


class CredalClassifier(ClassifierMixin, BaseEstimator):
    """Fitting, checking and the predict methods; subclasses say how labels are chained."""

    knob = "s"  # the parameter that goes from bold to cautious

    base: Any
    s: float
    threshold: Any
    n_jobs: int | None
    random_state: Any
    order_: NDArray[np.int64] | None
    model_: Any

    # -- fitting -----------------------------------------------------------------------

    def fit(self, X: Any, Y: Any) -> Any:
        """Learn from rows with labels, some of which may be missing.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            NaN is a missing value.
        Y : array-like, data frame, masked array or scipy sparse of shape (n_samples, n_labels)
            0, 1, or missing as NaN, None, ``pd.NA``, -1 or masked. A vector with two
            distinct values works as a single label.

        Returns
        -------
        self

        Notes
        -----
        ``sample_weight`` is not supported: the model is made of whole counts. Repeat rows
        instead.
        """
        X = self._read_X(X, reset=True)
        labels = self._start_labels(Y)
        check_consistent_length(X, labels)
        self._fit_model(X, labels)
        never = self.model_.never_observed()
        if never.any():
            names = ", ".join(self.label_names_[never])
            warnings.warn(
                f"never observed in training, so left open in every prediction: {names}",
                UserWarning,
                stacklevel=2,
            )
        return self

    @available_if(_can_learn_more)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, Y: Any, classes: Any = None) -> Any:
        """Add rows to what was learned; the first call also learns the bins.

        Equals ``fit`` on all rows together where the bins would be the same (always with
        bare codes or a frozen discretizer). A label may be observed only in later calls.

        Parameters
        ----------
        X, Y : as in ``fit``
        classes : array-like of two values, optional
            Only for a vector ``Y``, at the first call: all its values, if that call may not
            show both.
        """
        first = not hasattr(self, "model_")
        X = self._read_X(X, reset=first)
        labels = self._start_labels(Y, classes) if first else self._more_labels(Y)
        check_consistent_length(X, labels)
        if first:
            self._fit_model(X, labels)
        elif hasattr(self.model_, "update"):
            self.model_ = self.model_.update(X, labels)
        else:
            raise AttributeError(f"the base {self.base!r} cannot learn from more rows.")
        return self

    @classmethod
    def from_counts(
        cls,
        counts: Any,
        *,
        discretizer: Any = None,
        label_names: Iterable[str] | None = None,
        **params: Any,
    ) -> Any:
        """A fitted classifier from counts made elsewhere.

        Parameters
        ----------
        counts : ChainCounts
            For instance the counts of all rows minus those of a fold.
        discretizer : fitted Discretizer, optional
            Turns input into the codes that were counted; None if the input is codes.
        label_names : iterable of str, optional
        **params
            Parameters of the classifier.
        """
        base = cls(**params)._fresh_base()
        if not hasattr(base, "from_counts"):
            raise TypeError(f"base {base!r} does not learn from counts.")
        model = base.from_counts(counts, discretizer)
        self = cls.from_model(
            model, n_features=model.counts.n_features, label_names=label_names, **params
        )
        if hasattr(discretizer, "feature_names_in_"):
            self.feature_names_in_ = discretizer.feature_names_in_
        return self

    @classmethod
    def from_model(
        cls,
        model: Any,
        *,
        n_features: int,
        label_names: Iterable[str] | None = None,
        **params: Any,
    ) -> Any:
        """A fitted classifier around a model made elsewhere.

        Parameters
        ----------
        model : ChainModel
            For instance ``LocalChainModel`` around bounds of your own.
        n_features : int
            Columns that X has.
        label_names : iterable of str, optional
        **params
            Parameters of the classifier.
        """
        self = cls(**params)
        names = None if label_names is None else [str(name) for name in label_names]
        if names is not None and len(names) != model.n_labels:
            raise ValueError(f"label_names must have {model.n_labels} names, got {len(names)}.")
        self.model_ = model
        self.n_features_in_ = n_features
        self._set_multilabel(model.n_labels, names)
        self.order_ = self._choose_order(model.n_labels, check_random_state(self.random_state))
        return self

    def _fit_model(self, X: Any, labels: Labels) -> None:
        check_s(self.s)
        check_n_jobs(self.n_jobs)
        self._strategy()
        check_thresholds(self.threshold, labels.shape[1])
        self.model_ = self._learn(self._fresh_base(), X, labels)

    def _learn(self, base: Any, X: Any, labels: Labels) -> Any:
        """A fitted model; subclasses with more than one chain override this."""
        rng = check_random_state(self.random_state)
        self.order_ = self._choose_order(labels.shape[1], rng)
        return base.fit_chain(X, labels, self.order_, chained=self._chained(), rng=rng)

    def _fresh_base(self) -> Any:
        if self.base is None:
            return NaiveCredal()
        if not hasattr(self.base, "fit_chain"):
            raise TypeError(
                f"base must be None or have fit_chain, like NaiveCredal(), got {self.base!r}."
            )
        return clone(self.base)

    @abstractmethod
    def _choose_order(self, n_labels: int, rng: np.random.RandomState) -> NDArray[np.int64] | None:
        """The order of the labels, None for one that each row chooses itself."""

    def _chained(self) -> bool:
        return True

    def _strategy(self) -> Strategy:
        return branching

    # -- reading input -----------------------------------------------------------------

    def _read_X(self, X: Any, *, reset: bool) -> Any:
        X = as_plain_table(X)
        if hasattr(X, "columns"):
            validate_data(self, X, reset=reset, skip_check_array=True)
            if 0 in X.shape:
                raise ValueError(
                    f"X must have at least one row and one column, got shape {X.shape}."
                )
            return X
        return validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=None,
            ensure_all_finite="allow-nan",
        )

    def _start_labels(self, Y: Any, classes: Any = None) -> Labels:
        """Read Y of the first rows, and set what describes the labels."""
        if Y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        if classes is not None and np.array_equal(np.unique(np.asarray(classes)), [0, 1]):
            classes = None
        if is_vector(Y) and (classes is not None or not is_label_vector(Y)):
            self.classes_ = two_classes(Y if classes is None else classes)
            self.label_names_ = np.array([str(getattr(Y, "name", None) or "y")])
            self.n_labels_ = 1
            return self._encode_vector(Y)
        labels = as_labels(Y)
        if 0 in labels.shape:
            raise ValueError(f"Y must have at least one row and one label, got {labels.shape}.")
        if is_vector(Y):
            self.classes_ = np.array([0, 1])
            self.label_names_ = np.array([str(getattr(Y, "name", None) or "y")])
            self.n_labels_ = 1
        else:
            self._set_multilabel(labels.shape[1], column_names(Y))
        return labels

    def _more_labels(self, Y: Any) -> Labels:
        """Read Y of further rows."""
        if self._is_single() and is_vector(Y) and self.classes_.tolist() != [0, 1]:
            return self._encode_vector(Y)
        check_names(Y, self.label_names_.tolist(), "Y")
        labels = as_labels(Y, require_zero=False)
        if labels.shape[1] != self.n_labels_:
            raise ValueError(
                f"Y must have {self.n_labels_} labels as in the first call, got {labels.shape[1]}."
            )
        return labels

    def _encode_vector(self, y: Any) -> Labels:
        values = np.asarray(y)
        strange = ~np.isin(values, self.classes_)
        if strange.any():
            raise ValueError(
                f"Y must hold {self.classes_.tolist()}, the classes seen first; "
                f"got {values[strange][0]!r}."
            )
        is_one = (values == self.classes_[-1]) & (len(self.classes_) > 1)
        return np.asarray(is_one[:, None], dtype=np.int8)

    def _set_multilabel(self, n_labels: int, names: list[str] | None) -> None:
        if names is not None and len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"label names must be different from each other, got {twice!r} twice.")
        self.classes_ = np.tile([0, 1], (n_labels, 1))
        self.label_names_ = np.array(
            [f"label{j}" for j in range(n_labels)] if names is None else names
        )
        self.n_labels_ = n_labels

    def _is_single(self) -> bool:
        """Whether the labels came as a vector, so that predictions are vectors too."""
        return bool(self.classes_.ndim == 1)

    # -- predicting --------------------------------------------------------------------

    def infer(
        self, X: Any, *, s: float | None = None, strategy: Any = None, known: Any = None
    ) -> Any:
        """Labels and bounds: the primitive from which the predict methods derive.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
        s : float, optional
            In place of the parameter ``s``.
        strategy : str, Strategy or a tuple of them, optional
            In place of the parameter ``strategy``. A tuple gives a tuple of predictions
            from one pass over the features.
        known : array-like of shape (n_samples, n_labels), optional
            Labels that were answered already, 0 or 1, and -1 (or NaN, ...) for the others.
            They are used as given wherever they stand in the chain; a dynamic order starts
            with them.

        Returns
        -------
        CredalPrediction, or a tuple of them
        """
        check_is_fitted(self)
        strategies = self._strategies(strategy)
        encoded, n_rows = self._encode(X)
        request = self._request(
            self.s if s is None else s, known=self._read_known(known, n_rows), wants_log_odds=True
        )
        answers = self.model_.infer(encoded, strategies, request)
        predictions = tuple(
            CredalPrediction.from_answer(answer, self.label_names_.tolist(), X)
            for answer in answers
        )
        return predictions if isinstance(strategy, (tuple, list)) else predictions[0]

    def predict(self, X: Any) -> NDArray[Any]:
        """The precise chain (s = 0): always 0 or 1, never a star.

        Returns
        -------
        ndarray of shape (n_samples, n_labels), or (n_samples,) if fitted on a vector
        """
        labels = self._precise(X, wants_log_odds=False).labels.astype(np.int64)
        return np.asarray(self.classes_[labels[:, 0]]) if self._is_single() else labels

    def predict_partial(self, X: Any) -> Labels:
        """Labels 1, 0, or -1 where the bounds do not settle it: int8, (n_samples, n_labels)."""
        return np.asarray(self.predict_path(X, [self.s])[0])

    def predict_interval(self, X: Any) -> NDArray[np.float64]:
        """Lower and upper probability of each label: (n_samples, n_labels, 2).

        Conditional on the labels predicted before it in the chain.
        """
        return np.asarray(self.infer(X).interval)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """P(Y_j = 1) of the precise chain, conditional on its own greedy path.

        Returns
        -------
        ndarray of shape (n_samples, n_labels); (n_samples, n_classes) if fitted on a vector
        """
        answer = self._precise(X, wants_log_odds=True)
        probability = answer.lower_probability()
        probability[:, self.model_.never_observed()] = 0.0  # as predict says
        if not self._is_single():
            return probability
        if len(self.classes_) == 1:
            return np.ones((len(probability), 1))
        return np.hstack([1 - probability, probability])

    def predict_path(self, X: Any, values: Iterable[float], *, strategy: Any = None) -> Any:
        """Partial predictions for many values of s: int8, (n_values, n_samples, n_labels).

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
        values : iterable of float
            Values of s.
        strategy : str, Strategy or a tuple of them, optional
            A tuple gives a tuple of such arrays.
        """
        check_is_fitted(self)
        encoded, n_rows = self._encode(X)
        return self.path_of_encoded(encoded, n_rows, values, strategy=strategy)

    def path_of_encoded(
        self, encoded: Any, n_rows: int, values: Iterable[float], *, strategy: Any = None
    ) -> Any:
        """``predict_path`` of rows as ``model_.encode`` gives them, for who asks often."""
        strategies = self._strategies(strategy)
        if not np.iterable(values):
            raise ValueError(f"values must be several values of s, got {values!r}.")
        checked = tuple(check_s(s) for s in values)
        if not checked:
            paths = [np.empty((0, n_rows, self.n_labels_), dtype=np.int8) for _ in strategies]
        else:
            request = self._request(checked[0], wants_log_odds=False)
            paths = self.model_.infer_path(encoded, strategies, checked, request)
        return tuple(paths) if isinstance(strategy, (tuple, list)) else paths[0]

    def score(self, X: Any, y: Any) -> float:
        """Mean u65 of ``predict_partial``: right 1, wrong 0, left open 0.65, per label."""
        check_is_fitted(self)
        return utility_65(self.read_labels(y), self.predict_partial(X))

    @property
    def nested_(self) -> bool:
        """Whether a label answered at a larger s was answered alike at every smaller one."""
        check_is_fitted(self)
        return bool(self._strategy().nested and self.model_.nested and self.order_ is not None)

    def read_labels(self, Y: Any) -> Labels:
        """True labels of new rows, in the form of ``predict_partial``: int8, -1 for missing."""
        if self._is_single() and is_vector(Y) and self.classes_.tolist() != [0, 1]:
            return self._encode_vector(Y)
        check_names(Y, self.label_names_.tolist(), "Y")
        return as_labels(Y, require_zero=False)

    def _precise(self, X: Any, *, wants_log_odds: bool, known: Any = None) -> Answer:
        check_is_fitted(self)
        encoded, n_rows = self._encode(X)
        request = self._request(
            0.0,
            precise=True,
            wants_log_odds=wants_log_odds,
            known=self._read_known(known, n_rows),
        )
        answer: Answer = self.model_.infer(encoded, (self._strategy(),), request)[0]
        return answer

    def _encode(self, X: Any) -> tuple[Any, int]:
        X = self._read_X(X, reset=False)
        return self.model_.encode(X), int(X.shape[0])

    def _request(self, s: Any, **options: Any) -> Request:
        return Request(
            s=check_s(s),
            order=self.order_,
            thresholds=check_thresholds(self.threshold, self.n_labels_),
            chained=self._chained(),
            n_jobs=effective_n_jobs(check_n_jobs(self.n_jobs)),
            **options,
        )

    def _strategies(self, strategy: Any) -> tuple[Strategy, ...]:
        if strategy is None:
            return (self._strategy(),)
        if isinstance(strategy, (tuple, list)):
            if not strategy:
                raise ValueError("strategy must name at least one strategy, got ().")
            return tuple(get_strategy(one) for one in strategy)
        return (get_strategy(strategy),)

    def _read_known(self, known: Any, n_rows: int) -> Labels | None:
        if known is None:
            return None
        columns = column_names(known)
        if columns is not None:
            return self._known_by_name(known, columns, n_rows)
        labels = as_labels(known, name="known", require_zero=False)
        if labels.shape != (n_rows, self.n_labels_):
            raise ValueError(
                f"known must have shape {(n_rows, self.n_labels_)}, one row per row of X and one "
                f"column per label, got {labels.shape}."
            )
        return labels

    def _known_by_name(self, known: Any, columns: list[str], n_rows: int) -> Labels:
        """A data frame may hold some of the labels, in any order."""
        places = {name: j for j, name in enumerate(self.label_names_.tolist())}
        strange = [name for name in columns if name not in places]
        if strange or len(known) != n_rows:
            raise ValueError(
                f"known must have one row per row of X ({n_rows}) and labels as columns "
                f"({', '.join(places)}), got {len(known)} rows and columns {columns}."
            )
        labels = np.full((n_rows, self.n_labels_), MISSING, dtype=np.int8)
        given = as_labels(known, name="known", require_zero=False)
        labels[:, [places[name] for name in columns]] = given
        return labels

    def __sklearn_tags__(self) -> Any:
        return cautious_tags(super().__sklearn_tags__())
