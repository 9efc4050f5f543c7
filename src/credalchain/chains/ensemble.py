"""CredalChainEnsemble: chains in several orders as one model, by the mean of their bounds."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from operator import add
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from credalchain._utils.array_types import Labels
from credalchain._utils.progress import track
from credalchain._utils.validation import check_array, check_instance, check_int
from credalchain.chains.classifier import CredalMetaClassifier
from credalchain.chains.protocol import (
    ChainModel,
    CredalBase,
    Request,
    Walk,
    combine_answers,
    labels_from_signs,
)
from credalchain.chains.strategies import Strategy
from credalchain.labels import UNDECIDED
from credalchain.prediction import RANKS, Answer, Exactness, Order, log_odds, probabilities
from credalchain.preprocessing import Categories
from credalchain.typing import RandomStateLike, VectorLike


class EnsembleRows(list[Any]):
    """Rows as each of the models encodes them."""

    @property
    def shape(self) -> Any:
        return self[0].shape


class EnsembleModel(ChainModel):
    """Fitted chains over the same labels, each with an order of its own.

    A model that serves every order may occur in ``models`` several times: it encodes its input
    once.
    """

    unexplained_because = "the mean of several chains is not a sum of what each feature adds"

    def __init__(self, models: Sequence[ChainModel], orders: Order) -> None:
        """Combine models; ``orders`` is (models, labels)."""
        self.models, self.orders = list(models), orders
        self.n_labels = self.models[0].n_labels

    def check_state(self, n_features: int) -> None:
        """Validate a stored model for rows with ``n_features`` columns."""
        check_instance("models", self.models, list)
        shape = (len(self.models), self.n_labels)
        check_array("orders", self.orders, np.int64, shape)
        if not (np.sort(self.orders, axis=1) == np.arange(self.n_labels)).all():
            raise ValueError("the orders must be permutations of the labels.")
        for model in {id(model): model for model in self.models}.values():
            check_instance("a chain", model, ChainModel)
            check_int("n_labels", model.n_labels, self.n_labels, self.n_labels)
            model.check_state(n_features)

    @property
    def nested(self) -> bool:
        """True if the chains' models are: the mean of nested bounds is nested."""
        return all(model.nested for model in self.models)

    def encode(self, X: Any) -> EnsembleRows:
        if self.models[0].shares_encoding:
            return EnsembleRows([self.models[0].encode(X)] * len(self.models))
        distinct = {id(model): model for model in self.models}
        encoded = {key: model.encode(X) for key, model in distinct.items()}
        return EnsembleRows(encoded[id(model)] for model in self.models)

    def text_categories(self) -> Mapping[int, Categories]:
        return self.models[0].text_categories()

    def never_observed(self) -> NDArray[np.bool_]:
        return self.models[0].never_observed()

    def begin(self, encoded: Any, *, s: float, strategy: Strategy, precise: bool) -> Walk:
        raise TypeError(
            "an EnsembleModel has no single chain to walk along; call begin of one of its models."
        )

    def update(self, X: Any, Y: Labels) -> "EnsembleModel":
        """Return an ensemble that has also seen these rows, if its models can learn more."""
        if not all(hasattr(model, "update") for model in self.models):
            raise AttributeError("the base of this ensemble cannot learn from more rows.")
        distinct = {id(model): model for model in self.models}
        updated = {key: model.update(X, Y) for key, model in distinct.items()}  # type: ignore[attr-defined]
        return EnsembleModel([updated[id(model)] for model in self.models], self.orders)

    def count_rows(self, encoded: Any, labels: Labels) -> list[Any]:
        """Return the counts of all chains, in their order; see :class:`ForestChainModel`."""
        return [counts for model in self.models for counts in model.count_rows(encoded, labels)]  # type: ignore[attr-defined]

    def with_counts(self, counts: Sequence[Any]) -> "EnsembleModel":
        """Return the same chains, with these counts added."""
        m = self.n_labels
        parts = [counts[first : first + m] for first in range(0, len(counts), m)]
        models = [
            model.with_counts(part)  # type: ignore[attr-defined]
            for model, part in zip(self.models, parts, strict=True)
        ]
        return EnsembleModel(models, self.orders)

    def infer(self, encoded: EnsembleRows, request: Request) -> Answer:
        """Infer each chain in sequence, on the threads that the request allows.

        One value of s at a time: the bounds of all chains are in memory together.
        """
        each = [
            self._infer_single_s(encoded, replace(request, s_values=(s,))) for s in request.s_values
        ]
        return combine_answers(each, lambda arrays: np.concatenate(arrays, axis=1))

    def _infer_single_s(self, encoded: EnsembleRows, request: Request) -> Answer:
        """Average over the chains; where rounding could decide, in fractions if all have them."""
        answers = [
            model.infer(rows, replace(request, order=order, wants_bounds=True))
            for model, rows, order in zip(self.models, encoded, self.orders, strict=True)
        ]
        interval = np.zeros((*answers[0].labels.shape, 2))
        for answer in answers:
            assert answer.log_odds is not None
            own = answer.interval
            interval += probabilities(answer.log_odds) if own is None else own
        interval /= len(answers)
        distance = interval - request.thresholds[:, None]
        signs = np.sign(distance).astype(np.int8)
        exactness = np.maximum.reduce([answer.exactness for answer in answers])
        rounding = 8 * len(self.models) * np.finfo(float).eps
        error = max(model.log_odds_error for model in self.models) + rounding
        near = (np.abs(distance) <= error).any(axis=-1) & ~request.never_observed
        for index in np.flatnonzero(near.any(axis=(1, 2, 3))).tolist():
            s, strategy = request.s_values[0], request.strategies[index]
            exact = [
                model.exact_bounds(rows, s=s, strategy=strategy, precise=request.precise)
                for model, rows in zip(self.models, encoded, strict=True)
            ]
            if None in exact:  # a chain computes in floating point
                exactness[index][near[index]] = RANKS[Exactness.APPROXIMATE]
                continue
            for row, j in np.argwhere(near[index, 0]).tolist():
                t = len(answers) * Fraction(float(request.thresholds[j]))
                totals = [Fraction(0), Fraction(0)]
                for bounds, order, answer in zip(exact, self.orders, answers, strict=True):
                    assert bounds is not None
                    history = np.full(len(order), UNDECIDED, dtype=np.int8)
                    earlier = order[: order.tolist().index(j) if request.chained else 0]
                    history[earlier] = answer.labels[index, 0, row][earlier]
                    totals = [*map(add, totals, bounds(row, j, history))]
                signs[index, 0, row, j] = [(total > t) - (total < t) for total in totals]
        labels = labels_from_signs(signs[..., 0], signs[..., 1], precise=request.precise)
        forced = request.forced_labels()
        labels = np.where(forced == UNDECIDED, labels, forced)
        if not request.wants_bounds:
            return Answer(labels, None, exactness)
        return Answer(labels, log_odds(interval), exactness, interval)


class CredalChainEnsemble(CredalMetaClassifier):
    """Ensemble of chains over the same base in random orders of the labels, averaged.

    A label's lower probability is the mean of the chains' lower ones, its upper probability the
    mean of the upper ones; ``predict`` and ``predict_proba`` average the precise chains. The mean
    does not depend on a single order, and its log-loss is at most the mean log-loss of the chains.

    Parameters
    ----------
    base : credal base, default=None
        Where the bounds come from, as in :class:`CredalChainClassifier`. ``NaiveCredal`` counts
        once for all chains; other bases are fitted once per chain.
    n_chains : int, default=10
        Number of chains.
    s : float, default=2.0
        Imprecision: 0 is precise; larger values are more cautious. Used at prediction time only.
    strategy : {"branching", "marginalization"} or Strategy, default="branching"
        How a label left open affects the labels after it. Used at prediction time only.
    threshold : float or array-like of shape (n_labels,), default=0.5
        Answer 1 if lower > threshold, 0 if upper < threshold. Used at prediction time only.
    n_jobs : int, default=None
        Number of processes used when fitting and of threads when predicting, as in joblib.
    verbose : int, default=0
        If 1, show the progress of fitting on stderr.
    random_state : int, RandomState or None, default=None
        Seed of the orders and of the base.

    Attributes
    ----------
    orders_ : ndarray of shape (n_chains, n_labels)
        The chains' orders.
    model_, classes_, label_names_, n_labels_, n_features_in_, feature_names_in_, nested_
        As in :class:`CredalChainClassifier`.

    See Also
    --------
    CredalChainClassifier : A single chain.

    References
    ----------
    J. Read, B. Pfahringer, G. Holmes and E. Frank, Classifier chains for multi-label
    classification, Machine Learning 85, 2011.

    Examples
    --------
    >>> from credalchain import CredalChainEnsemble
    >>> X = [["sun"], ["sun"], ["sun"], ["rain"], ["rain"], ["fog"]]
    >>> Y = [[1, 0], [1, 0], [1, None], [0, 1], [0, 1], [None, 1]]
    >>> ensemble = CredalChainEnsemble(n_chains=4, s=0.5, random_state=0).fit(X, Y)
    >>> ensemble.predict_partial([["sun"], ["rain"], ["fog"]])
    array([[ 1,  0],
           [ 0,  1],
           [-1, -1]], dtype=int8)
    """

    _model_types = (EnsembleModel,)

    def __init__(
        self,
        base: CredalBase | None = None,
        *,
        n_chains: int = 10,
        s: float = 2.0,
        strategy: str | Strategy = "branching",
        threshold: float | VectorLike = 0.5,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: RandomStateLike = None,
    ) -> None:
        self.base = base
        self.n_chains = n_chains
        self.s = s
        self.strategy = strategy
        self.threshold = threshold
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @classmethod
    def from_model(cls, model: ChainModel | EnsembleModel, **params: Any) -> Self:
        """Return a fitted ensemble around an existing model that serves every order.

        Parameters
        ----------
        model : ChainModel or EnsembleModel
            Used in every order; an ``EnsembleModel`` is taken as it is.
        **params
            As in :meth:`CredalChainClassifier.from_model`.

        Returns
        -------
        CredalChainEnsemble
            Fitted ensemble.
        """
        if not (isinstance(model, EnsembleModel) or model.serves_any_order):
            raise TypeError(
                "an ensemble asks its model for several orders of the labels; this one, "
                f"{type(model).__name__}, was fitted for one."
            )
        self = super().from_model(model, **params)
        if isinstance(model, EnsembleModel):
            self.orders_, self.order_ = model.orders, model.orders[0]
        else:
            self._set_model_from_counts(model)
        return self

    def _set_model_from_counts(self, model: Any) -> None:
        self._draw_orders(model.n_labels, check_random_state(self.random_state))
        self.model_ = EnsembleModel([model] * len(self.orders_), self.orders_)

    def _fit_model(self, X: Any, labels: Labels) -> EnsembleModel:
        base = self.unfitted_base()
        rng = check_random_state(self.random_state)
        self._draw_orders(labels.shape[1], rng)
        if getattr(base, "serves_any_order", False):
            model = base.fit_chain(X, labels, None, chained=True, rng=rng)
            return EnsembleModel([model] * len(self.orders_), self.orders_)
        seeds = rng.randint(2**31 - 1, size=len(self.orders_))  # the same for any n_jobs
        # processes, since warning filters are not thread-safe when fitting forests
        fitted = Parallel(n_jobs=self.n_jobs, return_as="generator")(
            delayed(base.fit_chain)(X, labels, order, chained=True, rng=np.random.RandomState(seed))
            for order, seed in zip(self.orders_, seeds, strict=True)
        )
        models = list(track(fitted, "chains", len(self.orders_)))
        return EnsembleModel(models, self.orders_)

    def check_parameters(self) -> None:
        super().check_parameters()
        check_int("n_chains", self.n_chains)

    def _draw_orders(self, n_labels: int, rng: np.random.RandomState) -> None:
        self.orders_ = np.array([self._choose_order(n_labels, rng) for _ in range(self.n_chains)])
        self.order_ = self.orders_[0]

    def _choose_order(self, n_labels: int, rng: np.random.RandomState) -> Order:
        return rng.permutation(n_labels).astype(np.int64)
