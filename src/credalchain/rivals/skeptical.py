"""Skeptical inference: the values on which all optimal label vectors agree."""

from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from credalchain._utils.array_types import FloatArray, Labels
from credalchain._utils.validation import check_s_values
from credalchain.chains.classifier import CredalBinaryRelevanceClassifier, CredalChainClassifier
from credalchain.chains.search import ChainTree
from credalchain.labels import ABSTAIN
from credalchain.rivals.base import RejectMixin
from credalchain.typing import MatrixLike

_MAX_LABELS = 8


class SkepticalInference(RejectMixin):
    """Skeptical inference: answer the labels on which all possibly optimal vectors agree.

    A label vector may be optimal for the Hamming loss if no other has a smaller expected loss under
    every joint distribution that the base allows (maximality). Over a binary relevance classifier
    these are all distributions whose marginals are within the bounds of the labels, and a label is
    answered if its bounds are on one side of one half. Over a chain they are the distributions of
    its tree, whose nodes each have an interval; bounds of a label are those of its marginal
    probability over the tree. This takes all 2^m paths, so chains have at most 8 labels.

    Parameters
    ----------
    estimator : CredalBinaryRelevanceClassifier or CredalChainClassifier
        Over any base; a chain needs a fixed order of its labels.
    s : float, default=1.0
        Imprecision, which overrides that of the estimator; a larger value answers less.

    See Also
    --------
    credalchain.tree_marginalization : The strategy whose bounds are used over a chain.

    Notes
    -----
    A label is answered exactly if all maximal vectors agree on it: if some distribution gives it
    the other value with probability one half or more, a vector with that value has the least
    expected loss there, and no vector can be better than it everywhere.

    References
    ----------
    S. Destercke, Multilabel prediction with probability sets: the Hamming loss case, IPMU 2014
    (binary relevance).

    Y. C. Carranza Alarcon and S. Destercke, Distributionally robust, skeptical binary inferences
    in multi-label problems, ISIPTA 2021 (exact).

    Examples
    --------
    >>> from credalchain import CredalChainClassifier
    >>> from credalchain.rivals import SkepticalInference
    >>> X = [["sun"], ["sun"], ["sun"], ["rain"], ["rain"], ["fog"]] * 5
    >>> Y = [[1, 0], [1, 0], [1, 1], [0, 1], [0, 1], [1, 1]] * 5
    >>> skeptical = SkepticalInference(CredalChainClassifier(order="given")).fit(X, Y)
    >>> skeptical.predict_partial([["sun"], ["rain"], ["fog"]])
    array([[1, 0],
           [0, 1],
           [1, 1]], dtype=int8)
    """

    caution_parameter = "s"
    larger_is_more_cautious = True

    def __init__(
        self,
        estimator: CredalBinaryRelevanceClassifier | CredalChainClassifier,
        s: float = 1.0,
    ) -> None:
        self.estimator = estimator
        self.s = s

    def check_parameters(self) -> None:
        classifiers = CredalBinaryRelevanceClassifier, CredalChainClassifier
        if not isinstance(self.estimator, classifiers):
            raise TypeError(
                "estimator must be a CredalBinaryRelevanceClassifier or a CredalChainClassifier, "
                f"got {self.estimator!r}."
            )
        if getattr(self.estimator, "order", None) == "dynamic":
            raise ValueError("order of the estimator must be fixed, got 'dynamic'.")
        threshold = getattr(self.estimator, "threshold", 0.5)
        if (np.asarray(threshold) != 0.5).any():
            raise ValueError(f"threshold of the estimator must be 0.5, got {threshold!r}.")
        check_s_values((self.s,))

    def _fit_scores(self, X: Any, labels: Labels) -> None:
        m = labels.shape[1]
        if isinstance(self.estimator, CredalChainClassifier) and m > _MAX_LABELS:
            raise ValueError(
                f"Y must have at most {_MAX_LABELS} labels for a chain, all of whose 2^m paths are "
                f"needed, got {m}: take CredalBinaryRelevanceClassifier."
            )
        super()._fit_scores(X, labels)

    @property
    def nested_(self) -> bool:  # type: ignore[override]
        """True if a label answered at a larger s is answered alike at every smaller one."""
        check_is_fitted(self, "scores_")
        return bool(self.scores_.model_.nested)

    def predict_path(self, X: MatrixLike, values: Iterable[float]) -> Labels:
        check_is_fitted(self, "scores_")
        if isinstance(self.scores_, CredalBinaryRelevanceClassifier):
            return np.asarray(self.scores_.predict_path(X, values))
        if not np.iterable(values):
            raise ValueError(f"values must be several values of s, got {values!r}.")
        bounds = [self.marginal_bounds(X, s) for s in check_s_values(values)]
        if not bounds:
            return np.asarray(self.scores_.predict_path(X, []))
        lower, upper = np.moveaxis(np.array(bounds), -1, 0)
        return np.where(lower > 0.5, 1, np.where(upper < 0.5, 0, ABSTAIN)).astype(np.int8)

    def marginal_bounds(self, X: MatrixLike, s: float) -> FloatArray:
        """Compute lower and upper P(1) of each label over all distributions of the chain's tree.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows to predict.
        s : float
            Imprecision.

        Returns
        -------
        ndarray of shape (n_samples, n_labels, 2)
            Bounds of the marginal probabilities.
        """
        y = self._vectors()
        gains = np.concatenate([y, 1.0 - y], axis=1)  # of each vector: Y_j = 1, and Y_j = 0
        lower_one, lower_zero = np.split(self._lower_expectations(X, gains, s), 2, axis=1)
        return np.stack([lower_one, np.maximum(1 - lower_zero, lower_one)], axis=-1)

    def maximal_vectors(self, X: MatrixLike, s: float | None = None) -> list[Labels]:
        """Find, for each row of a chain, the label vectors that may be optimal.

        A vector is not among them if, for some set of labels, changing its values there lowers the
        expected Hamming loss under every distribution: more than half of these labels are expected
        to have the new values.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows to predict.
        s : float, default=None
            Overrides the parameter ``s``.

        Returns
        -------
        list of ndarray of int8, shape (n_vectors, n_labels)
            Maximal vectors of each row.
        """
        y = self._vectors()
        m = y.shape[1]
        changes = np.array(list(product((ABSTAIN, 0, 1), repeat=m))[1:])
        gains = (y[:, None, :] == changes).sum(axis=2) - 0.5 * (changes != ABSTAIN).sum(axis=1)
        improves = self._lower_expectations(X, gains, self.s if s is None else s) > 0
        applies = ((y[:, None, :] != changes) | (changes == ABSTAIN)).all(axis=2)
        return [y[~(applies & better).any(axis=1)] for better in improves]

    def _vectors(self) -> NDArray[np.int8]:
        """Return all label vectors."""
        check_is_fitted(self, "scores_")
        m = self.scores_.n_labels_
        if m > _MAX_LABELS:
            raise ValueError(f"Y must have at most {_MAX_LABELS} labels for this, got {m}.")
        return _all_vectors(m)

    def _lower_expectations(self, X: MatrixLike, gains: FloatArray, s: float) -> FloatArray:
        """Return the least expectation of each column of ``gains`` (2^m, k) in the tree: (n, k)."""
        chain, (s,) = self.scores_, check_s_values((s,))
        encoded, order = chain.encode(X), chain.order_
        m, n = len(order), encoded.shape[0]
        sorted_gains = gains[np.lexsort(_all_vectors(m)[:, order[::-1]].T)]
        lower = np.empty((n, gains.shape[1]))
        for i in range(n):
            tree, values = ChainTree(chain, encoded[i : i + 1], s), sorted_gains
            for depth in range(m - 1, -1, -1):
                nodes = list(product((0, 1), repeat=depth))
                tree.explore(nodes)
                local = np.array([tree.explored[node] for node in nodes])[:, :, None]
                if_zero, if_one = values[0::2], values[1::2]
                p = np.where(if_one >= if_zero, local[:, 0], local[:, 1])
                values = p * if_one + (1 - p) * if_zero
            lower[i] = values[0]
        return lower


def _all_vectors(m: int) -> NDArray[np.int8]:
    return np.array(list(product((0, 1), repeat=m)), dtype=np.int8)
