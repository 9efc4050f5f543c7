"""How much each way to weigh label vectors counts: shares learned from rows held out."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from credalchain.bases.protocol import Labels
from credalchain.labels import MISSING

FloatArray = NDArray[np.float64]

_BACKGROUND = 0.02  # share of independent labels, so that no row's score is zero
_MOST_OTHERS = 0.5  # share of all models other than the forest
_AT_ONCE = 2**16
_LEAST = 1e-3  # a smaller share is none


def independent_likelihood(labels: Labels) -> FloatArray:
    """The probability of each row's observed labels if labels were independent of all, (n,)."""
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
    for first in range(0, len(row), _AT_ONCE):
        part = slice(first, first + _AT_ONCE)
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
        Probability that each of C ways gives to the labels of each row, held out; rows with NaN
        are left out.
    labels : ndarray of shape (n, m)
    n_forest : int
        The first so many ways are the forest's own; together they keep at least one half, since
        held-out rows see only a third of its trees, which makes it look worse than it is.
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

    found = minimize(  # it is convex, with a few unknowns
        loss,
        shares,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(shares),
        constraints=[
            {"type": "eq", "fun": lambda shares: shares.sum() - 1.0},
            {"type": "ineq", "fun": lambda shares: _MOST_OTHERS - shares[n_forest:].sum()},
        ],
        options={"ftol": 1e-9, "maxiter": 200},
    )
    shares = np.asarray(found.x)
    shares = np.where(shares < _LEAST, 0.0, shares)
    return np.asarray(shares / shares.sum())


def _forest_only(n_ways: int, n_forest: int) -> FloatArray:
    return np.where(np.arange(n_ways) < n_forest, 1 / n_forest, 0.0)
