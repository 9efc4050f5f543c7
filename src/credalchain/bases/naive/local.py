"""The naive model as a local model: its bounds under complete histories, for the tree."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain._kernels.fixed_point import ABOVE_MASK
from credalchain._kernels.states import FREE
from credalchain.bases.naive.codes import Codes
from credalchain.bases.naive.tables import ChainTables
from credalchain.bases.naive.walk import StartSums, by_label
from credalchain.bases.protocol import ExactBounds, Labels
from credalchain.labels import MISSING
from credalchain.tree import Bounds, Ends


class NaiveLocal:
    """Bounds for the rows of one batch, one s; "X" is the rows' numbers in the batch."""

    def __init__(self, codes: Codes, tables: ChainTables, exact: ExactBounds) -> None:
        m = len(tables.order)
        self._tables, self._exact = tables, exact
        self.log_odds_error = tables.scale.error
        sums, zeros = StartSums(codes, tables).of(0, codes.n_rows)
        self._sums = by_label(sums[0], m)
        self._zeros = by_label(zeros[0], m) if len(zeros) else None
        self._pairs = by_label(tables.pairs.values[0], m)
        self._pair_zeros = by_label(tables.pairs.zeros[0], m) if tables.pairs.has_zeros else None

    def bounds(self, X: NDArray[Any], j: int, history: Labels, *, s: float) -> Bounds:
        (lower, _), (upper, _) = self.ends(X, j, history, s=s)
        return lower, upper

    def exact_bounds(self, X: NDArray[Any], j: int, history: Labels, *, s: float) -> Bounds:
        """The same as fractions."""
        told = np.where(history == MISSING, FREE, history).astype(np.int8)
        bounds = [self._exact(row, j, one) for row, one in zip(X[:, 0].tolist(), told, strict=True)]
        lower, upper = np.array(bounds, dtype=object).reshape(-1, 2).T
        return lower, upper

    def ends(self, X: NDArray[Any], j: int, history: Labels, *, s: float) -> Ends:
        """Bounds with complements, in the widest floats: log-odds of hundreds are common."""
        rows = X[:, 0]
        sums = self._sums[rows, j]
        zeros = np.zeros_like(sums) if self._zeros is None else self._zeros[rows, j]
        for k in np.flatnonzero((history != MISSING).any(axis=0)).tolist():
            sums = sums + self._pairs[k, history[:, k], j]
            if self._pair_zeros is not None:
                zeros = zeros + self._pair_zeros[k, history[:, k], j]
        log_odds = sums.astype(np.longdouble) / self._tables.scale.unit
        log_odds = np.where(zeros & ABOVE_MASK, -np.inf, np.where(zeros, np.inf, log_odds))
        with np.errstate(over="ignore"):
            one, zero = 1 / (1 + np.exp(-log_odds)), 1 / (1 + np.exp(log_odds))
        return (one[:, 0], zero[:, 0]), (one[:, 1], zero[:, 1])
