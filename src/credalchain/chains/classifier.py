"""CredalChainClassifier and CredalBinaryRelevanceClassifier: labels over any base."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length

from credalchain._utils.array_types import Labels
from credalchain._utils.validation import check_order
from credalchain.chains.interface import CredalClassifier, repeat_rows
from credalchain.chains.naive.counts import SAMPLE_SIZE, ChainCounts, count_chunks
from credalchain.chains.naive.estimator import NaiveCredal
from credalchain.chains.protocol import CredalBase
from credalchain.chains.strategies import Strategy
from credalchain.chunks.trees import count_unsampled_rows
from credalchain.prediction import Order
from credalchain.preprocessing import Discretizer, is_dask, validate_table
from credalchain.typing import LabelsLike, MatrixLike, RandomStateLike, VectorLike


class CredalMetaClassifier(CredalClassifier):
    """Fitting of a base; subclasses choose the order of the labels."""

    base: Any

    def fit(self, X: MatrixLike, Y: LabelsLike, sample_weight: VectorLike | None = None) -> Self:
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
        sample_weight : array-like of shape (n_samples,), default=None
            Integer weights. A weight of k is equivalent to repeating the row k times.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        if sample_weight is None:
            return super().fit(X, Y)
        if is_dask(X):
            raise ValueError(
                "sample_weight must be None for a dask collection; repeat its rows instead."
            )
        self._warn_about_labels(self._fit_in_memory(X, Y, sample_weight=sample_weight))
        return self

    @available_if(lambda self: getattr(self.base, "supports_partial_fit", True))  # type: ignore[untyped-decorator]
    def partial_fit(
        self,
        X: MatrixLike,
        Y: LabelsLike,
        classes: VectorLike | None = None,
        sample_weight: VectorLike | None = None,
    ) -> Self:
        """Learn from more rows; the first call also learns the bins.

        Equivalent to ``fit`` on all rows together if the bins are the same (always with codes or a
        frozen discretizer). A label may be first observed in a later call.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            More training rows.
        Y : array-like, data frame, masked array or scipy sparse of shape (n_samples, n_labels)
            Their labels, as in ``fit``.
        classes : array-like of two values, default=None
            All values of a vector ``Y``. Only needed at the first call, if its rows may not contain
            both values.
        sample_weight : array-like of shape (n_samples,), default=None
            As in ``fit``.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        if not hasattr(self, "model_"):
            self._fit_in_memory(X, Y, classes=classes, sample_weight=sample_weight)
            return self
        X = validate_table(self, X, reset=False)
        labels = self.targets_.encode(Y)
        check_consistent_length(X, labels)
        if sample_weight is not None:
            X, labels = repeat_rows(X, labels, sample_weight)
        if not hasattr(self.model_, "update"):
            raise AttributeError(f"base must support partial_fit, got {self.base!r}.")
        self.model_ = self.model_.update(X, labels)
        self.__dict__.pop("learned_from_", None)
        return self

    @property
    def can_fit_chunks(self) -> bool:
        """True if the base learns from counts, or counts more rows than it was grown on."""
        base = self.unfitted_base()
        return bool(
            getattr(base, "learns_from_counts", False) or getattr(base, "can_count_rows", False)
        )

    def _fit_model_from_chunks(self, chunks: Any, sample_size: int | None) -> None:
        base = self.unfitted_base()
        if getattr(base, "learns_from_counts", False):
            total, discretizer, source = count_chunks(
                chunks, base.unfitted_discretizer(), sample_size or SAMPLE_SIZE
            )
            names = getattr(discretizer, "feature_names_in_", None)
            counts = total.counts
            self._set_names(counts.n_features, names, counts.n_labels, total.names)
            self._set_model_from_counts(base.from_counts(counts, discretizer))
            self.learned_from_ = source
        elif getattr(base, "can_count_rows", False):
            sampled = self._draw_training_sample(chunks, sample_size)
            model = self._fit_model(sampled.X, sampled.labels)
            unsampled = count_unsampled_rows(chunks, sampled, model)
            self.model_ = model if unsampled is None else model.with_counts(unsampled.counts)
        else:
            raise TypeError(
                "base must learn from counts or from a sample of rows, got one that needs all "
                f"rows in memory: {base!r}."
            )

    def _set_model_from_counts(self, model: Any) -> None:
        """Set a model that serves every order; subclasses with several chains override this."""
        self.order_ = self._choose_order(self.n_labels_, check_random_state(self.random_state))
        self.model_ = model

    def _fit_model(self, X: Any, labels: Labels) -> Any:
        """Return a fitted model; subclasses with more than one chain override this."""
        rng = check_random_state(self.random_state)
        self.order_ = self._choose_order(labels.shape[1], rng)
        return self.unfitted_base().fit_chain(X, labels, self.order_, chained=self.chained, rng=rng)

    @classmethod
    def from_counts(
        cls,
        counts: ChainCounts,
        *,
        discretizer: Discretizer | None = None,
        label_names: Iterable[str] | None = None,
        **params: Any,
    ) -> Self:
        """Return a fitted classifier from counts.

        Parameters
        ----------
        counts : ChainCounts
            Counts of the training rows, for instance those of all rows minus those of a fold.
        discretizer : fitted Discretizer, default=None
            Turns input into the codes that were counted; None if the input is codes.
        label_names : iterable of str, default=None
            Names of the labels. None numbers them.
        **params
            Parameters of the classifier.

        Returns
        -------
        CredalChainClassifier
            Fitted classifier, of the class that the method is called on.
        """
        base = cls(**params).unfitted_base()
        if not hasattr(base, "from_counts"):
            raise TypeError(f"base must have from_counts, like NaiveCredal(), got {base!r}.")
        model = base.from_counts(counts, discretizer)
        self = cls.from_model(
            model, n_features=model.counts.n_features, label_names=label_names, **params
        )
        if discretizer is not None and hasattr(discretizer, "feature_names_in_"):
            self.feature_names_in_ = discretizer.feature_names_in_
        return self

    def unfitted_base(self) -> Any:
        """Return a clone of the base, or the default one.

        Returns
        -------
        CredalBase
            Unfitted base.

        Raises
        ------
        TypeError
            If ``base`` has no method ``fit_chain``.
        """
        if self.base is None:
            return NaiveCredal()
        if not hasattr(self.base, "fit_chain"):
            raise TypeError(
                f"base must be None or have fit_chain, like NaiveCredal(), got {self.base!r}."
            )
        return clone(self.base)


class CredalChainClassifier(CredalMetaClassifier):
    """Classifier chain that abstains from labels that the evidence does not settle.

    Each label gets a lower and an upper probability and is answered only when both are on the same
    side of the threshold. Answered labels are used to predict the later ones; the strategy
    determines what an open label contributes.

    Parameters
    ----------
    base : credal base, default=None
        Where the bounds come from. None means :class:`NaiveCredal`, whose parameters
        (bins, prior, epsilon, ...) can then be set through ``base__...`` after passing
        ``NaiveCredal()`` explicitly.
    s : float, default=2.0
        Imprecision: 0 is the precise model; larger values are more cautious. Used at prediction
        time only.
    strategy : {"branching", "marginalization"} or Strategy, default="branching"
        How a label left open affects the labels after it. "branching": all completions are
        possible. "marginalization": the open label is ignored. Used at prediction time only.
    order : {"random", "given", "dynamic"} or permutation, default="random"
        Order of the labels; a permutation holds numbers or names. "given": the order of the
        columns. "dynamic": each row continues with its most certain label.
    threshold : float or array-like of shape (n_labels,), default=0.5
        Answer 1 if lower > threshold, 0 if upper < threshold. Used at prediction time only.
    n_jobs : int, default=None
        Number of threads used when predicting, as in joblib.
    verbose : int, default=0
        If 1, show the progress of fitting on stderr.
    random_state : int, RandomState or None, default=None
        Seed of the random order.

    Attributes
    ----------
    order_ : ndarray of shape (n_labels,), or None if dynamic
        ``order_[t]`` is the label at position t. Outputs stay in the columns' order.
    model_ : ChainModel
        The fitted base; for NaiveCredal, ``model_.counts`` are the public counts.
    classes_ : ndarray of shape (n_labels, 2)
        Classes of each label; of shape (2,) if fitted on a vector.
    label_names_ : ndarray of str, shape (n_labels,)
        Names of the labels.
    n_labels_ : int
        Number of labels.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of str
        Names of the features seen during ``fit``, if X has column names that are all strings.
    nested_ : bool
        True if a larger s can only leave more labels open.

    See Also
    --------
    CredalChainEnsemble : Average over chains in random orders.
    CredalBinaryRelevanceClassifier : The same without the chain.
    JointDecision : Decide the labels of a row together.

    References
    ----------
    Y. C. Carranza Alarcon and S. Destercke, Multi-label Chaining with Imprecise
    Probabilities, ECSQARU 2021.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier
    >>> X = [["sun"], ["sun"], ["sun"], ["rain"], ["rain"], ["fog"]]
    >>> Y = [[1, 0], [1, 0], [1, None], [0, 1], [0, 1], [None, 1]]
    >>> chain = CredalChainClassifier(s=0.5, order="given").fit(X, Y)
    >>> chain.predict_partial([["sun"], ["rain"], ["fog"]])
    array([[ 1,  0],
           [ 0,  1],
           [-1, -1]], dtype=int8)
    """

    def __init__(
        self,
        base: CredalBase | None = None,
        *,
        s: float = 2.0,
        strategy: str | Strategy = "branching",
        order: str | VectorLike = "random",
        threshold: float | VectorLike = 0.5,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: RandomStateLike = None,
    ) -> None:
        self.base = base
        self.s = s
        self.strategy = strategy
        self.order = order
        self.threshold = threshold
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def _choose_order(self, n_labels: int, rng: np.random.RandomState) -> Order | None:
        name = self.order if isinstance(self.order, str) else None
        if name == "random":
            return rng.permutation(n_labels).astype(np.int64)
        if name == "given":
            return np.arange(n_labels, dtype=np.int64)
        return None if name == "dynamic" else check_order(self.order, self.label_names_.tolist())


class CredalBinaryRelevanceClassifier(CredalMetaClassifier):
    """Binary relevance classifier: one independent cautious classifier per label.

    Like :class:`CredalChainClassifier`, but no label is conditioned on another: useful as
    a baseline, and where labels are unrelated.

    Parameters
    ----------
    base : credal base, default=None
        None means :class:`NaiveCredal`.
    s : float, default=2.0
        Imprecision: 0 is the precise model; larger values are more cautious. Used at prediction
        time only.
    threshold : float or array-like of shape (n_labels,), default=0.5
        Answer 1 if lower > threshold, 0 if upper < threshold. Used at prediction time only.
    n_jobs : int, default=None
        Number of threads used when predicting, as in joblib.
    verbose : int, default=0
        If 1, show the progress of fitting on stderr.
    random_state : int, RandomState or None, default=None
        Seed of bases that are randomized.

    See Also
    --------
    CredalChainClassifier : A chain over the same bases.

    Notes
    -----
    Attributes are those of :class:`CredalChainClassifier`.

    Examples
    --------
    >>> from credalchain import CredalBinaryRelevanceClassifier
    >>> X, Y = [["a"], ["a"], ["b"], ["b"]], [[1, 0], [1, 1], [0, 0], [0, 1]]
    >>> CredalBinaryRelevanceClassifier(s=0.5).fit(X, Y).predict_partial([["a"]])
    array([[ 1, -1]], dtype=int8)
    """

    chained = False

    def __init__(
        self,
        base: CredalBase | None = None,
        *,
        s: float = 2.0,
        threshold: float | VectorLike = 0.5,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: RandomStateLike = None,
    ) -> None:
        self.base = base
        self.s = s
        self.threshold = threshold
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def _choose_order(self, n_labels: int, rng: np.random.RandomState) -> Order:
        return np.arange(n_labels, dtype=np.int64)
