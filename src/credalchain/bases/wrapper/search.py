"""The widest bounds over all ways to fill in the labels left open, of a model that is a black box.

All completions are evaluated if they are few. Otherwise beam search fills in one label after the
other and keeps the best completions: it can miss the worst case but never exceed it, so its
bounds lie inside the true ones.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from credalchain.array_types import FloatArray, Labels
from credalchain.bases.protocol import Rows
from credalchain.labels import ABSTAIN

Evaluate = Callable[[Rows, Labels], tuple[FloatArray, FloatArray]]
"""Lower and upper probability of some rows for these histories; open labels are left out."""


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
        Most completions evaluated for each row and bound (but at least two per open label).
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
            beam_args = rows, history[rows], open_labels, width
            lower[rows] = _beam(lambda *args: evaluate(*args)[0], *beam_args)
            upper[rows] = -_beam(lambda *args: -evaluate(*args)[1], *beam_args)
    return lower, upper


def is_enumerable(n_open: NDArray[np.int64], budget: int) -> NDArray[np.bool_]:
    """Whether all completions of so many open labels are within the budget."""
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
    objective: Callable[[Rows, Labels], FloatArray],
    rows: Rows,
    history: Labels,
    open_labels: NDArray[np.int64],
    width: int,
) -> FloatArray:
    """The least value found by beam search of this width, for each row."""
    beam = history[:, None, :]  # (rows, kept, earlier labels)
    objective_values = np.empty((len(rows), 1))
    for position in range(open_labels.shape[1]):
        grown = np.repeat(beam, 2, axis=1)
        columns = np.broadcast_to(open_labels[:, None, position, None], (*grown.shape[:2], 1))
        values = np.tile(np.array([0, 1], dtype=np.int8), beam.shape[1])
        np.put_along_axis(grown, columns, values[None, :, None], axis=2)
        flat = objective(np.repeat(rows, grown.shape[1]), grown.reshape(-1, grown.shape[2]))
        objective_values = flat.reshape(len(rows), -1)
        best = np.argsort(objective_values, axis=1, kind="stable")[:, :width]
        beam = np.take_along_axis(grown, best[:, :, None], axis=1)
    return np.asarray(objective_values.min(axis=1))


__all__ = ["is_enumerable", "widest_bounds"]
