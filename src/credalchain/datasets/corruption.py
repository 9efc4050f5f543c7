"""Corruption of labels, as pure functions of a seed: missing values and noise.

Levels are nested: what is removed (or flipped) at a smaller fraction is also removed at every
larger one with the same seed, so that curves over levels are paired.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.array_types import Labels
from credalchain._utils.validation import check_number
from credalchain.labels import MISSING, as_labels


def remove_uniformly(Y: Any, fraction: float, seed: Any) -> Labels:
    """Remove a fraction of all label cells, drawn uniformly over the matrix.

    Parameters
    ----------
    Y : array-like of shape (n_samples, n_labels)
        Labels.
    fraction : float
        Share of cells between 0 and 1: ``int(fraction * n_samples * n_labels)`` are removed.
    seed : int or numpy SeedSequence
        Seed of the draw. With the same seed, a larger fraction removes all that a smaller one does.

    Returns
    -------
    ndarray of int8, shape (n_samples, n_labels)
        Labels, with -1 for the cells removed.

    Examples
    --------
    >>> import numpy as np
    >>> from credalchain.datasets.corruption import remove_uniformly
    >>> Y = np.eye(4, dtype=int)
    >>> (remove_uniformly(Y, 0.25, seed=0) == -1).sum()
    np.int64(4)
    """
    labels = as_labels(Y, require_zero=False)
    return np.where(_drawn(labels, fraction, seed), np.int8(MISSING), labels)


def remove_per_label(Y: Any, fraction: float, seed: Any) -> Labels:
    """Remove a fraction of the values of every label.

    Parameters
    ----------
    Y : array-like of shape (n_samples, n_labels)
        Labels.
    fraction : float
        Share between 0 and 1: exactly ``int(fraction * n_samples)`` values of every label are
        removed.
    seed : int or numpy SeedSequence
        Seed of the draw. With the same seed, a larger fraction removes all that a smaller one does.

    Returns
    -------
    ndarray of int8, shape (n_samples, n_labels)
        Labels, with -1 for the cells removed.

    Examples
    --------
    >>> import numpy as np
    >>> from credalchain.datasets.corruption import remove_per_label
    >>> Y = np.eye(4, dtype=int)
    >>> (remove_per_label(Y, 0.25, seed=0) == -1).sum(axis=0)
    array([1, 1, 1, 1])
    """
    labels = as_labels(Y, require_zero=False).copy()
    n, m = labels.shape
    rng = np.random.default_rng(seed)
    removed = int(_checked(fraction) * n)
    for j in range(m):
        labels[rng.permutation(n)[:removed], j] = MISSING
    return labels


def flip(Y: Any, fraction: float, seed: Any) -> Labels:
    """Flip a fraction of all label cells, drawn uniformly.

    Parameters
    ----------
    Y : array-like of shape (n_samples, n_labels)
        Labels.
    fraction : float
        Share of cells between 0 and 1.
    seed : int or numpy SeedSequence
        Seed of the draw. With the same seed, a larger fraction flips all that a smaller one does.

    Returns
    -------
    ndarray of int8, shape (n_samples, n_labels)
        Labels; missing ones stay missing.

    Examples
    --------
    >>> import numpy as np
    >>> from credalchain.datasets.corruption import flip
    >>> Y = np.eye(4, dtype=int)
    >>> (flip(Y, 0.25, seed=0) != Y).sum()
    np.int64(4)
    """
    labels = as_labels(Y, require_zero=False)
    chosen = _drawn(labels, fraction, seed) & (labels != MISSING)
    return np.where(chosen, 1 - labels, labels).astype(np.int8)


def _drawn(labels: Labels, fraction: float, seed: Any) -> NDArray[np.bool_]:
    """Draw a fraction of all cells."""
    places = np.random.default_rng(seed).permutation(labels.size).argsort()
    return (places < int(_checked(fraction) * labels.size)).reshape(labels.shape)


def _checked(fraction: Any) -> float:
    return check_number("fraction", fraction, 0, 1, "a number between 0 and 1")


CORRUPTIONS = {
    "uniform": remove_uniformly,
    "per-label": remove_per_label,
    "flip": flip,
}
"""All of them by name."""
