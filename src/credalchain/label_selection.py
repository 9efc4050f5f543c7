"""Which labels people are shown where there are too many to show them all."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain.labels import ABSTAIN
from credalchain.text import plural


def select_labels(labels: Any, interval: Any, at_most: int | None) -> NDArray[np.int64]:
    """The labels worth looking at first, as numbers; all of them in their order if they fit.

    First those that are open in most rows, among equals the likeliest; then those that are yes in
    most rows, among equals the most certain; then what is no everywhere, the most certain first.
    A quarter of the places is kept for labels that are nowhere open.

    Parameters
    ----------
    labels : array-like of shape (n, m)
        Values 1, 0 and -1 (left open).
    interval : array-like of shape (n, m, 2)
        Lower and upper probability of each label.
    at_most : int, optional
        How many; None for all.
    """
    labels, interval = np.asarray(labels), np.asarray(interval)
    n_labels = labels.shape[1]
    if at_most is not None and not (isinstance(at_most, (int, np.integer)) and at_most >= 1):
        raise ValueError(
            f"max_labels must be a whole number of at least 1, or None, got {at_most!r}."
        )
    if at_most is None or n_labels <= at_most:
        return np.arange(n_labels)
    n_open, n_yes = (labels == ABSTAIN).sum(axis=0), (labels == 1).sum(axis=0)
    likely = interval.sum(axis=(0, 2))
    certain = np.maximum(interval[..., 0], 1 - interval[..., 1]).sum(axis=0)
    opened, others = np.flatnonzero(n_open > 0), np.flatnonzero(n_open == 0)
    opened = opened[np.lexsort((-likely[opened], -n_open[opened]))]
    others = others[np.lexsort((-certain[others], -n_yes[others]))]
    opened = opened[: at_most - min(len(others), at_most // 4)]
    return np.concatenate([opened, others[: at_most - len(opened)]])


def and_more(n_shown: int, n_all: int, noun: str = "") -> str:
    """In words, such as "and 149 more" or "and 1 more label"; nothing if all are shown."""
    n = n_all - n_shown
    return "" if n <= 0 else f"and {plural(n, f'more {noun}') if noun else f'{n} more'}"
