"""Binary relevance: a classifier for each label, without a chain."""

import numpy as np

from credalchain.bases.protocol import CredalBase, Order
from credalchain.estimators.meta import CredalMetaClassifier
from credalchain.typing import RandomStateLike, VectorLike


class CredalBinaryRelevanceClassifier(CredalMetaClassifier):
    """One cautious classifier per label, each on its own.

    Like :class:`CredalChainClassifier`, but no label is conditioned on another: useful as
    a baseline, and where labels are unrelated.

    Parameters
    ----------
    base : credal base, default=None
        None means :class:`NaiveCredal`.
    s : float, default=2.0
        Imprecision: 0 is the precise model, larger is more cautious. Read when predicting.
    threshold : float or array-like of shape (n_labels,), default=0.5
        Answer 1 if lower > threshold, 0 if upper < threshold. Read when predicting.
    n_jobs : int, default=None
        Threads used when predicting, as in joblib.
    verbose : int, default=0
        1 shows how far fitting has come, on stderr.
    random_state : int, RandomState or None, default=None
        For bases that need randomness.

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
