"""Folds: shuffled rows, or labels spread evenly."""

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]


def shuffled_folds(n_rows: int, n_folds: int, rng: np.random.Generator) -> list[Rows]:
    """Rows in random order, cut into folds of almost equal size."""
    return [np.sort(part) for part in np.array_split(rng.permutation(n_rows), n_folds)]


def iterative_folds(Y: NDArray[np.int8], n_folds: int, rng: np.random.Generator) -> list[Rows]:
    """Folds in which every label is about as frequent as in the whole.

    References
    ----------
    K. Sechidis, G. Tsoumakas and I. Vlahavas, On the Stratification of Multi-label Data,
    ECML PKDD 2011.
    """
    n, _ = Y.shape
    positive = Y == 1
    wanted_rows = np.full(n_folds, n / n_folds)
    wanted = np.outer(np.full(n_folds, 1 / n_folds), positive.sum(axis=0))
    fold_of = np.full(n, -1)
    left = rng.permutation(n)
    while len(left):
        counts = positive[left].sum(axis=0)
        if counts.max(initial=0) == 0:
            rows = left  # no labels any more: fill up
        else:
            rarest = int(np.where(counts > 0, counts, n + 1).argmin())
            rows = left[positive[left, rarest]]
        for row in rows:
            need = wanted_rows if counts.max(initial=0) == 0 else wanted[:, rarest]
            best = np.flatnonzero(need == need.max())
            best = best[wanted_rows[best] == wanted_rows[best].max()]
            fold = int(rng.choice(best))
            fold_of[row] = fold
            wanted_rows[fold] -= 1
            wanted[fold] -= positive[row]
        left = left[fold_of[left] == -1]
    return [np.flatnonzero(fold_of == fold) for fold in range(n_folds)]
