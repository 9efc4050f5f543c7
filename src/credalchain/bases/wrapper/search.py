"""The widest bounds over all ways to fill in the labels left open, of a model that is a black box.

All completions are looked at while they are few. Beyond that a beam fills in one label after the
other and keeps the most promising: it can miss the worst case but never invent one, so its
bounds lie inside the true ones.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from credalchain.bases.protocol import Labels, Rows
from credalchain.labels import ABSTAIN

FloatArray = NDArray[np.float64]
Evaluate = Callable[[Rows, Labels], tuple[FloatArray, FloatArray]]
"""Lower and upper probability of some rows under given histories; an open label says nothing."""


def widest_bounds(
    evaluate: Evaluate, history: Labels, budget: int
) -> tuple[FloatArray, FloatArray]:
    """The least lower and greatest upper bound of each row.

    Parameters
    ----------
    evaluate : callable
    history : int8, (n, earlier labels)
        0, 1, or -1 for a label left open.
    budget : int
        Completions looked at for each row and bound, at most (but two for each open label).
    """
    lower, upper = np.empty((2, len(history)))
    n_open = (history == ABSTAIN).sum(axis=1)
    enumerable = is_enumerable(n_open, budget)
    for count in np.unique(n_open).tolist():
        rows = np.flatnonzero(n_open == count)
        open_labels = np.argsort(history[rows] != ABSTAIN, axis=1, kind="stable")[:, :count]
        if enumerable[rows[0]]:
            lower[rows], upper[rows] = _enumerate(evaluate, rows, history[rows], open_labels)
        else:
            width = max(1, budget // (2 * count))
            where = rows, history[rows], open_labels, width
            lower[rows] = _beam(lambda *told: evaluate(*told)[0], *where)
            upper[rows] = -_beam(lambda *told: -evaluate(*told)[1], *where)
    return lower, upper


def is_enumerable(n_open: NDArray[np.int64], budget: int) -> NDArray[np.bool_]:
    """Whether so many open labels are filled in in all ways."""
    return np.asarray(n_open <= budget.bit_length() - 1)  # 2 ** n_open <= budget


def _enumerate(
    evaluate: Evaluate, rows: Rows, history: Labels, open_labels: NDArray[np.int64]
) -> tuple[FloatArray, FloatArray]:
    lower, upper = np.full(len(rows), np.inf), np.full(len(rows), -np.inf)
    bits = np.arange(open_labels.shape[1])
    for completion in range(2 ** open_labels.shape[1]):
        filled = history.copy()
        np.put_along_axis(
            filled, open_labels, (completion >> bits & 1).astype(np.int8)[None], axis=1
        )
        low, high = evaluate(rows, filled)
        lower, upper = np.minimum(lower, low), np.maximum(upper, high)
    return lower, upper


def _beam(
    badness: Callable[[Rows, Labels], FloatArray],
    rows: Rows,
    history: Labels,
    open_labels: NDArray[np.int64],
    width: int,
) -> FloatArray:
    """The least value that a beam of so many partial completions finds, for each row."""
    beam = history[:, None, :]  # (rows, kept, earlier labels)
    found = np.empty((len(rows), 1))
    for place in range(open_labels.shape[1]):
        grown = np.repeat(beam, 2, axis=1)
        where = np.broadcast_to(open_labels[:, None, place, None], (*grown.shape[:2], 1))
        values = np.tile(np.array([0, 1], dtype=np.int8), beam.shape[1])
        np.put_along_axis(grown, where, values[None, :, None], axis=2)
        flat = badness(np.repeat(rows, grown.shape[1]), grown.reshape(-1, grown.shape[2]))
        found = flat.reshape(len(rows), -1)
        best = np.argsort(found, axis=1, kind="stable")[:, :width]
        beam = np.take_along_axis(grown, best[:, :, None], axis=1)
    return np.asarray(found.min(axis=1))


__all__ = ["is_enumerable", "widest_bounds"]
