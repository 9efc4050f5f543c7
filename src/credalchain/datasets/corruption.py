"""Damage to labels, as pure functions of a seed: missing values and noise.

Levels are nested: what is removed (or flipped) at a smaller fraction is also removed at every
larger one with the same seed, so that curves over levels are paired.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.array_types import Labels
from credalchain.labels import MISSING, as_labels


def remove_uniformly(Y: Any, fraction: float, seed: Any) -> Labels:
    """Remove a fraction of all label cells, drawn uniformly over the matrix.

    Parameters
    ----------
    Y : labels of shape (n, m)
    fraction : float in [0, 1]
        ``int(fraction * n * m)`` cells are removed.
    seed : int or numpy SeedSequence

    Returns
    -------
    ndarray of int8 with -1 for the cells removed
    """
    labels = as_labels(Y, require_zero=False)
    return np.where(_drawn(labels, fraction, seed), np.int8(MISSING), labels)


def remove_per_label(Y: Any, fraction: float, seed: Any) -> Labels:
    """Remove exactly ``int(fraction * n)`` values of every label. Parameters as above."""
    labels = as_labels(Y, require_zero=False).copy()
    n, m = labels.shape
    rng = np.random.default_rng(seed)
    removed = int(_checked(fraction) * n)
    for j in range(m):
        labels[rng.permutation(n)[:removed], j] = MISSING
    return labels


def flip(Y: Any, fraction: float, seed: Any) -> Labels:
    """Turn a fraction of all label cells into their opposites, drawn uniformly."""
    labels = as_labels(Y, require_zero=False)
    return _flipped(labels, _drawn(labels, fraction, seed))


def flip_bernoulli(Y: Any, probability: float, seed: Any) -> Labels:
    """Turn every label cell into its opposite with a probability, independently."""
    labels = as_labels(Y, require_zero=False)
    draws = np.random.default_rng(seed).random(labels.shape)
    return _flipped(labels, draws < _checked(probability))


def redraw_uniformly(Y: Any, probability: float, seed: Any) -> Labels:
    """Replace every cell, with a probability, by a fair coin: a uniform draw against one half."""
    labels = as_labels(Y, require_zero=False)
    rng = np.random.default_rng(seed)
    chosen = rng.random(labels.shape) < _checked(probability)
    coins = (rng.random(labels.shape) > 0.5).astype(np.int8)
    return np.where(chosen & (labels != MISSING), coins, labels)


def _drawn(labels: Labels, fraction: float, seed: Any) -> NDArray[np.bool_]:
    """Draw a fraction of all cells."""
    places = np.random.default_rng(seed).permutation(labels.size).argsort()
    return (places < int(_checked(fraction) * labels.size)).reshape(labels.shape)


def _flipped(labels: Labels, chosen: NDArray[np.bool_]) -> Labels:
    return np.where(chosen & (labels != MISSING), 1 - labels, labels).astype(np.int8)


def _checked(fraction: Any) -> float:
    is_number = isinstance(fraction, (int, float, np.number)) and not isinstance(fraction, bool)
    if not is_number or not 0 <= fraction <= 1:
        raise ValueError(f"fraction must be a number between 0 and 1, got {fraction!r}.")
    return float(fraction)


CORRUPTIONS = {
    "uniform": remove_uniformly,
    "per-label": remove_per_label,
    "flip": flip,
    "flip-bernoulli": flip_bernoulli,
    "redraw": redraw_uniformly,
}
"""All of them by name."""
