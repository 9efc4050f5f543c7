"""A walk one label at a time over a batch, in any order."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from credalchain._utils.array_types import IntArray, Labels
from credalchain.chains.naive.codes import Codes
from credalchain.chains.naive.engine.fixed_order import start_sums
from credalchain.chains.naive.engine.layout import INFINITE, by_label, resolve_zero_factors
from credalchain.chains.naive.engine.tables import ChainTables
from credalchain.chains.naive.exact import ExactComparator
from credalchain.chains.protocol import Rows, Signs, Walk
from credalchain.labels import ABSTAIN, UNDECIDED
from credalchain.prediction import Exactness, LogOdds, Ranks, uniform_exactness


class LabelSums:
    """Sums of a batch (n, m, 2) and what labels add to them (m, columns, m, 2), for a single s.

    Labels are in the order of the columns. Zero factors are None if there are none.
    """

    def __init__(self, codes: Codes, tables: ChainTables) -> None:
        m = len(tables.order)
        sums, zeros = start_sums(codes, tables, 0, codes.shape[0])
        self.scale = tables.scale
        self.sums = by_label(sums[0], m)
        self.zeros = None if zeros is None else by_label(zeros[0], m)
        self.pairs = by_label(tables.pairs.values[0], m)
        pair_zeros = tables.pairs.zeros
        self.pair_zeros = None if pair_zeros is None else by_label(pair_zeros[0], m)

    def of(self, rows: Rows, j: int) -> tuple[IntArray, IntArray | None]:
        """Sums and zero factors of a label, (rows, 2) each."""
        return self.sums[rows, j], None if self.zeros is None else self.zeros[rows, j]


class NaiveWalk(Walk):
    """A batch on its way along a naive credal chain."""

    def __init__(self, codes: Codes, tables: ChainTables, comparator: ExactComparator) -> None:
        self.n_rows, self.n_labels = codes.shape[0], len(tables.order)
        self._sums, self._comparator = LabelSums(codes, tables), comparator
        self._scale = tables.scale
        self._band = tables.scale.band if comparator.is_available else 0
        self._history = np.full((self.n_rows, self.n_labels), UNDECIDED, dtype=np.int8)

    def exactness(self, j: int, rows: Rows) -> Ranks:
        exactness = Exactness.EXACT if self._comparator.is_available else Exactness.APPROXIMATE
        return uniform_exactness(exactness, (len(rows),))

    def log_odds(self, j: int, rows: Rows) -> tuple[LogOdds, LogOdds]:
        sums, zeros = self._sums.of(rows, j)
        bounds = resolve_zero_factors(sums / self._scale.unit, zeros, -np.inf, np.inf)
        return bounds[:, 0], bounds[:, 1]

    def set_label(self, j: int, y: Labels, rows: Rows) -> None:
        column = np.where(y == ABSTAIN, 2, y).astype(np.intp)
        self._history[rows, j] = y
        self._sums.sums[rows] += self._sums.pairs[j, column]
        if self._sums.zeros is not None and self._sums.pair_zeros is not None:
            self._sums.zeros[rows] += self._sums.pair_zeros[j, column]

    def compare(self, j: int, threshold: float, rows: Rows) -> tuple[Signs, Signs]:
        cut = self._scale.fixed(logit(np.array([threshold])))[0]
        sums, zeros = self._sums.of(rows, j)
        distance = sums - cut
        signs = np.where(np.abs(distance) <= self._band, 0, np.sign(distance))
        signs = resolve_zero_factors(signs, zeros, -1, 1).astype(np.int8)
        if self._comparator.is_available:
            for i in np.flatnonzero((signs == 0).any(axis=1)).tolist():
                history = self._history[rows[i]]
                signs[i] = self._comparator.signs(int(rows[i]), j, history, threshold)
        return signs[:, 0], signs[:, 1]

    def most_certain(self, candidates: NDArray[np.bool_]) -> NDArray[np.int64]:
        bounds = resolve_zero_factors(self._sums.sums, self._sums.zeros, -INFINITE, INFINITE)
        certainty = np.maximum(bounds[..., 0], -bounds[..., 1])
        certainty[~candidates] = -INFINITE
        best = certainty.max(axis=1, keepdims=True)
        slack = np.where(np.abs(best) == INFINITE, 0, 2 * self._band)
        near = candidates & (certainty >= best - slack)
        chosen: IntArray = np.argmax(near, axis=1)
        if self._comparator.is_available:
            contested = (near.sum(axis=1) > 1) & (np.abs(best[:, 0]) != INFINITE)
            for row in np.flatnonzero(contested).tolist():
                labels = np.flatnonzero(near[row]).tolist()
                chosen[row] = self._comparator.most_certain(row, labels, self._history[row])
        return chosen
