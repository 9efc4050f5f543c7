"""Shares of the mixture components, learned from held-out rows."""

from typing import Any

import numpy as np
from scipy.optimize import minimize

from credalchain.array_types import FloatArray, Labels
from credalchain.labels import MISSING

_BACKGROUND = 0.02  # share of independent labels, so that no row's score is zero
_MAX_MEMBER_SHARE = 0.5  # of all members together
_ENTRIES_AT_ONCE = 2**16
_MIN_SHARE = 1e-3  # smaller shares are set to 0


def independent_likelihood(labels: Labels) -> FloatArray:
    """The probability of each row's observed labels by the marginal frequencies, (n,)."""
    observed = labels != MISSING
    ones = (labels == 1).sum(axis=0)
    p = (ones + 1) / (observed.sum(axis=0) + 2)
    factors = np.where(labels == 1, p, 1 - p)
    return np.asarray(np.where(observed, factors, 1.0).prod(axis=1))


def score_weights(weights: Any, label_mass: FloatArray, labels: Labels) -> FloatArray:
    """Probability of each row's observed labels (n, 1) by sparse weights on vectors, (n, K)."""
    weights = weights.tocoo()
    row, vector = weights.row, weights.col
    scores = np.zeros((len(labels), 1))
    for first in range(0, len(row), _ENTRIES_AT_ONCE):
        part = slice(first, first + _ENTRIES_AT_ONCE)
        truth = labels[row[part]]
        p = np.where(truth == 1, label_mass[1, vector[part]], label_mass[0, vector[part]])
        p = np.where(truth == MISSING, 1.0, p).prod(axis=1) * weights.data[part]
        np.add.at(scores[:, 0], row[part], p)
    return scores


def learn_mixture_shares(scores: FloatArray, labels: Labels, n_forest: int) -> FloatArray:
    """Shares (C,) with the greatest mean logarithm of the mixed probability.

    Parameters
    ----------
    scores : ndarray of shape (n, C)
        Held-out probability of the labels of each row by each of C mixture components; rows with
        NaN are left out.
    labels : ndarray of shape (n, m)
    n_forest : int
        The first components are those of the forest; together they keep at least one half, since
        only a third of its trees are out of bag for a row, so its score is too pessimistic.
    """
    usable = np.isfinite(scores).all(axis=1)
    shares = _forest_only(scores.shape[1], n_forest)
    if not usable.any():
        return shares
    floor = _BACKGROUND * independent_likelihood(labels[usable])[:, None]
    mixed = (1 - _BACKGROUND) * scores[usable] + np.maximum(floor, np.finfo(float).tiny)
    mixed /= mixed.max(axis=1, keepdims=True)

    def loss(shares: FloatArray) -> tuple[float, FloatArray]:
        total = np.maximum(mixed @ shares, np.finfo(float).tiny)
        return -float(np.log(total).mean()), -(mixed / total[:, None]).mean(axis=0)

    result = minimize(  # convex, with few variables
        loss,
        shares,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(shares),
        constraints=[
            {"type": "eq", "fun": lambda shares: shares.sum() - 1.0},
            {"type": "ineq", "fun": lambda shares: _MAX_MEMBER_SHARE - shares[n_forest:].sum()},
        ],
        options={"ftol": 1e-9, "maxiter": 200},
    )
    shares = np.asarray(result.x)
    shares = np.where(shares < _MIN_SHARE, 0.0, shares)
    return np.asarray(shares / shares.sum())


def _forest_only(n_components: int, n_forest: int) -> FloatArray:
    return np.where(np.arange(n_components) < n_forest, 1 / n_forest, 0.0)
