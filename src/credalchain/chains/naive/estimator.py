"""NaiveCredal, the base of a chain that users configure."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone

from credalchain._utils.array_types import IntArray, Labels
from credalchain._utils.validation import check_choice, check_epsilon
from credalchain.chains.naive.counts import ChainCounts, as_codes, as_counts, count
from credalchain.chains.naive.formulas import (
    DENOMINATORS,
    MISSING_FEATURES,
    PRIORS,
    Denominator,
    NaiveSettings,
    Prior,
)
from credalchain.chains.naive.model import NaiveChainModel
from credalchain.preprocessing import Discretizer


class NaiveCredal(BaseEstimator):
    """Base with the naive credal classifier: naive Bayes with the imprecise Dirichlet model.

    Parameters
    ----------
    epsilon : float in [0, 1), default=0.001
        Smoothing: every conditional bound q becomes (1 - epsilon) q + epsilon / K, so that a single
        zero count does not make the bounds of a label vacuous. 0 reproduces the paper. Must be 0 or
        at least 1e-60.
    prior : {"laplace", "paper", "credal"} or Prior, default="laplace"
        P(Y_j = 1). "laplace": (n(1) + 1) / (n + 2). "paper": n(1) / n, Laplace only where a
        class was never seen. "credal": an interval from the same s.
    denominator : {"pairwise", "class"} or Denominator, default="pairwise"
        Denominator of the counts of a pair of labels: the rows where both were observed, or all
        rows of the class. They differ only where labels are missing.
    discretizer : "quantile", None or transformer, default="quantile"
        "quantile": six equal-frequency bins. None: X holds category codes 0, 1, ... (-1 or
        NaN for missing). Or a :class:`Discretizer`, or scikit-learn's ``FrozenEstimator``
        around a fitted one.
    missing_features : {"ignore", "conservative"}, default="ignore"
        Contribution of a feature that is missing at prediction time: none, or the worst over its
        categories for each bound. ``predict`` always ignores it.

    See Also
    --------
    CredalForest : A base of trees.
    CredalWrapper : A base around any classifier.

    References
    ----------
    Y. C. Carranza Alarcon and S. Destercke, Multi-label Chaining with Imprecise
    Probabilities, ECSQARU 2021.

    M. Zaffalon, The naive credal classifier, Journal of Statistical Planning and Inference 105,
    2002.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier, NaiveCredal
    >>> X = [["sun"], ["sun"], ["sun"], ["rain"], ["rain"], ["fog"]]
    >>> Y = [[1, 0], [1, 0], [1, None], [0, 1], [0, 1], [None, 1]]
    >>> chain = CredalChainClassifier(NaiveCredal(epsilon=0.0), s=0.5, order="given")
    >>> chain.fit(X, Y).predict_partial([["sun"], ["rain"], ["fog"]])
    array([[ 1,  0],
           [ 0,  1],
           [-1, -1]], dtype=int8)
    """

    learns_from_counts = True  # has unfitted_discretizer and from_counts
    serves_any_order = True  # one set of counts serves every order of the labels

    def __init__(
        self,
        *,
        epsilon: float = 1e-3,
        prior: str | Prior = "laplace",
        denominator: str | Denominator = "pairwise",
        discretizer: str | TransformerMixin | None = "quantile",
        missing_features: str = "ignore",
    ) -> None:
        self.epsilon = epsilon
        self.prior = prior
        self.denominator = denominator
        self.discretizer = discretizer
        self.missing_features = missing_features

    def fit_chain(
        self,
        X: Any,
        Y: Labels,
        order: NDArray[np.int64] | None = None,
        *,
        chained: bool = True,
        rng: np.random.RandomState | None = None,
    ) -> NaiveChainModel:
        """Count the rows.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Validated training rows.
        Y : ndarray of int8, shape (n_samples, n_labels)
            Labels 0 and 1, and -1 for missing.
        order : ndarray of int, shape (n_labels,), default=None
            Not used: one set of counts serves every order.
        chained : bool, default=True
            Not used.
        rng : RandomState, default=None
            Not used.

        Returns
        -------
        NaiveChainModel
            Fitted model.
        """
        settings = self.settings()
        discretizer = self.unfitted_discretizer()
        if isinstance(discretizer, Discretizer):
            codes = discretizer.fit_encode(X)  # X was checked when the classifier read it
            n_categories = discretizer.n_categories_
            counts = count(as_codes(codes, n_categories), Y, n_categories)
            return NaiveChainModel(counts, settings, discretizer)
        if discretizer is not None:
            discretizer.fit(X, Y)
            _n_categories_of(discretizer)  # raises if there is none
        return NaiveChainModel(ChainCounts.from_rows(X, Y, discretizer), settings, discretizer)

    def from_counts(
        self, counts: ChainCounts, discretizer: Discretizer | None = None
    ) -> NaiveChainModel:
        """Return a model from counts.

        Parameters
        ----------
        counts : ChainCounts
            Counts of the training rows.
        discretizer : fitted Discretizer, default=None
            Transforms X into codes; None if X already holds codes.

        Returns
        -------
        NaiveChainModel
            Fitted model.
        """
        counts = as_counts(counts)
        if discretizer is not None:
            n_categories = _n_categories_of(discretizer)
            if not np.array_equal(n_categories, counts.n_categories):
                raise ValueError(
                    f"counts.n_categories is {counts.n_categories.tolist()}, but the "
                    f"discretizer gives {n_categories.tolist()} categories."
                )
        return NaiveChainModel(counts, self.settings(), discretizer)

    def check_parameters(self) -> None:
        """Validate the parameters."""
        self.settings()
        self.unfitted_discretizer()

    def settings(self) -> NaiveSettings:
        """Return the parameters that matter at prediction time, validated.

        Returns
        -------
        NaiveSettings
            Parameters of the formulas.
        """
        missing = check_choice("missing_features", self.missing_features, MISSING_FEATURES)
        return NaiveSettings(
            check_epsilon(self.epsilon),
            _named("prior", self.prior, PRIORS, Prior),
            _named("denominator", self.denominator, DENOMINATORS, Denominator),
            missing,  # type: ignore[arg-type]
        )

    def unfitted_discretizer(self) -> Any:
        """Return a copy of the discretizer.

        Returns
        -------
        Discretizer or None
            The default one if none was given; None if X holds codes.
        """
        if self.discretizer is None:
            return None
        if isinstance(self.discretizer, str) and self.discretizer == "quantile":
            return Discretizer()
        if not (hasattr(self.discretizer, "fit") and hasattr(self.discretizer, "transform")):
            raise ValueError(
                "discretizer must be 'quantile', None, a Discretizer or a FrozenEstimator around "
                f"a fitted one, got {self.discretizer!r}."
            )
        return clone(self.discretizer)


def _named(name: str, value: Any, known: dict[str, Any], kind: type) -> Any:
    """Return one of the values known by name, or a custom value."""
    return value if isinstance(value, kind) else known[check_choice(name, value, tuple(known))]


def _n_categories_of(discretizer: Any) -> IntArray:
    try:
        return np.asarray(discretizer.n_categories_, dtype=np.int64)
    except AttributeError:
        raise ValueError(
            "discretizer must be fitted and have n_categories_, like credalchain.Discretizer, "
            f"got {discretizer!r}."
        ) from None
