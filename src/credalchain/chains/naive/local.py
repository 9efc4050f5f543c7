"""The naive model as a local model: its bounds under complete histories, for the tree."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.array_types import Labels
from credalchain.chains.naive.codes import Codes
from credalchain.chains.naive.fixed_point import resolve_zero_factors
from credalchain.chains.naive.tables import ChainTables
from credalchain.chains.naive.walk import LabelSums
from credalchain.chains.protocol import ExactBounds
from credalchain.chains.tree import Bounds, Ends
from credalchain.labels import MISSING, UNDECIDED


class NaiveLocal:
    """Bounds for the rows of one batch, one s; "X" holds the indices of rows in the batch."""

    def __init__(
        self,
        codes: Codes,
        tables: ChainTables,
        exact: ExactBounds,
        never_observed: NDArray[np.bool_],
    ) -> None:
        self._sums, self._exact, self._never = LabelSums(codes, tables), exact, never_observed
        self.log_odds_error = tables.scale.error

    def bounds(self, X: NDArray[Any], j: int, history: Labels, *, s: float) -> Bounds:
        (lower, _), (upper, _) = self.ends(X, j, history, s=s)
        return lower, upper

    def exact_bounds(self, X: NDArray[Any], j: int, history: Labels, *, s: float) -> Bounds:
        """The same as fractions."""
        if self._never[j]:
            return np.zeros(len(X), dtype=object), np.ones(len(X), dtype=object)
        decided = np.where(history == MISSING, UNDECIDED, history).astype(np.int8)
        rows = X[:, 0].tolist()
        bounds = [
            self._exact(row, j, row_history) for row, row_history in zip(rows, decided, strict=True)
        ]
        lower, upper = np.array(bounds, dtype=object).reshape(-1, 2).T
        return lower, upper

    def ends(self, X: NDArray[Any], j: int, history: Labels, *, s: float) -> Ends:
        """Bounds with complements, in the widest floats: log-odds of hundreds are common."""
        if self._never[j]:  # anything is possible
            zeros, ones = np.zeros(len(X)), np.ones(len(X))
            return (zeros, ones), (ones, zeros)
        values, factors = self._sums.of(X[:, 0], j)
        for k in np.flatnonzero((history != MISSING).any(axis=0)).tolist():
            values = values + self._sums.pairs[k, history[:, k], j]
            if self._sums.pair_zeros is not None:
                assert factors is not None
                factors = factors + self._sums.pair_zeros[k, history[:, k], j]
        log_odds = values.astype(np.longdouble) / self._sums.scale.unit
        log_odds = resolve_zero_factors(log_odds, factors, -np.inf, np.inf)
        with np.errstate(over="ignore"):
            one, zero = 1 / (1 + np.exp(-log_odds)), 1 / (1 + np.exp(log_odds))
        return (one[:, 0], zero[:, 0]), (one[:, 1], zero[:, 1])
