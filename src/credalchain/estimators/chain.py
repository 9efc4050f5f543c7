"""The credal classifier chain."""

import numpy as np

from credalchain.bases.protocol import CredalBase, Order
from credalchain.estimators.meta import CredalMetaClassifier
from credalchain.strategies import Strategy
from credalchain.typing import RandomStateLike, VectorLike
from credalchain.validation import check_order


class CredalChainClassifier(CredalMetaClassifier):
    """A classifier chain that abstains from labels that its evidence does not settle.

    Each label gets a lower and an upper probability and is answered only when both are on
    the same side of the threshold. Labels answered are used to predict the labels after
    them; what a label left open contributes is the strategy's choice.

    Parameters
    ----------
    base : credal base, default=None
        Where the bounds come from. None means :class:`NaiveCredal`, whose parameters
        (bins, prior, epsilon, ...) can then be set through ``base__...`` after passing
        ``NaiveCredal()`` explicitly.
    s : float, default=2.0
        Imprecision: 0 is the precise model, larger is more cautious. Read when predicting.
    strategy : {"branching", "marginalization"} or Strategy, default="branching"
        How a label left open affects the labels after it. "branching": every completion is
        possible. "marginalization": it is left out. Read when predicting.
    order : {"random", "given", "dynamic"} or permutation, default="random"
        Order of the labels; a permutation holds numbers or names. "given": that of the
        columns. "dynamic": each row goes on with the label it is surest about.
    threshold : float or array-like of shape (n_labels,), default=0.5
        Answer 1 if lower > threshold, 0 if upper < threshold. Read when predicting.
    n_jobs : int, default=None
        Threads used when predicting, as in joblib.
    verbose : int, default=0
        1 shows how far fitting has come, on stderr.
    random_state : int, RandomState or None, default=None
        Seeds the random order.

    Attributes
    ----------
    order_ : ndarray of shape (n_labels,), or None if dynamic
        ``order_[t]`` is the label at position t. Outputs stay in the columns' order.
    model_ : the fitted base; for NaiveCredal, ``model_.counts`` are the public counts
    classes_ : ndarray of shape (n_labels, 2); (2,) if fitted on a vector
    label_names_ : ndarray of str, shape (n_labels,)
    n_labels_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X had column names that are all strings.
    nested_ : bool
        Whether a larger s can only leave more labels open.

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
        if not isinstance(self.order, str):
            return check_order(self.order, self.label_names_.tolist())
        if self.order == "random":
            return rng.permutation(n_labels).astype(np.int64)
        if self.order == "given":
            return np.arange(n_labels, dtype=np.int64)
        if self.order == "dynamic":
            return None
        return check_order(self.order, self.label_names_.tolist())  # raises an error
