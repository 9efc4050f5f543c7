"""CredalChainEnsemble: several chains in random orders, averaged."""

from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from credalchain.array_types import Labels
from credalchain.bases.ensemble import EnsembleModel
from credalchain.bases.model import ChainModel
from credalchain.bases.protocol import CredalBase, Order
from credalchain.estimators.meta import CredalMetaClassifier
from credalchain.progress import track
from credalchain.strategies import Strategy
from credalchain.typing import RandomStateLike, VectorLike
from credalchain.validation import check_int


class CredalChainEnsemble(CredalMetaClassifier):
    """Chains over the same base in random orders of the labels, averaged.

    A label's lower probability is the mean of the chains' lower ones, its upper probability the
    mean of the upper ones; ``predict`` and ``predict_proba`` average the precise chains. No
    single order decides, and the mean is a better probability than any of its parts.

    Parameters
    ----------
    base : credal base, default=None
        Where the bounds come from, as in :class:`CredalChainClassifier`. ``NaiveCredal`` counts
        once for all chains; other bases are fitted once per chain.
    n_chains : int, default=10
    s : float, default=2.0
        Imprecision: 0 is precise, larger is more cautious. Read when predicting.
    strategy : {"branching", "marginalization"} or Strategy, default="branching"
        How a label left open affects the labels after it. Read when predicting.
    threshold : float or array-like of shape (n_labels,), default=0.5
        Answer 1 if lower > threshold, 0 if upper < threshold. Read when predicting.
    n_jobs : int, default=None
        Processes used when fitting and threads when predicting, as in joblib.
    verbose : int, default=0
        1 shows how far fitting has come, on stderr.
    random_state : int, RandomState or None, default=None
        Seeds the orders and the base.

    Attributes
    ----------
    orders_ : ndarray of shape (n_chains, n_labels)
        The chains' orders.
    model_, classes_, label_names_, n_labels_, n_features_in_, feature_names_in_, nested_
        As in :class:`CredalChainClassifier`.

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
        """A fitted ensemble around a model made elsewhere that serves every order of the labels.

        See :meth:`CredalChainClassifier.from_model`. An ``EnsembleModel`` is taken as it is.
        """
        if isinstance(model, EnsembleModel):
            self = super().from_model(model, **params)
            self.orders_, self.order_ = model.orders, model.orders[0]
            return self
        if not model.serves_any_order:
            raise TypeError(
                "an ensemble asks its model for several orders of the labels; this one, "
                f"{type(model).__name__}, was fitted for one."
            )
        self = super().from_model(model, **params)
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
