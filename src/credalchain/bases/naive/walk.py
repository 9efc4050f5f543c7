"""The plain walk: one label at a time over a batch, in any order."""

import numpy as np
from numpy.typing import NDArray

from credalchain import _kernels
from credalchain._kernels.fixed_point import ABOVE_MASK
from credalchain._kernels.states import FREE, LANES, STAR
from credalchain.bases.naive.codes import Codes, DenseCodes, IntArray
from credalchain.bases.naive.grid import Scale
from credalchain.bases.naive.memory import aligned, aligned_zeros
from credalchain.bases.naive.settler import Settler, rounded_sides
from credalchain.bases.naive.tables import ChainTables
from credalchain.bases.protocol import Exactness, Labels, LogOdds, Rows, Signs, Walk

_INFINITE = 2**62  # larger than any fixed-point sum


class StartSums:
    """Prior plus features, and the zero factors in them, of any rows of a batch."""

    def __init__(self, codes: Codes, tables: ChainTables) -> None:
        self._codes, self._tables = codes, tables
        prior, features = tables.prior, tables.features
        shape = (tables.layout.n_blocks, LANES)
        self._start = _filled_up(prior.values, shape) + features.start.values
        self._start_zeros = aligned_zeros(shape)
        for part in (prior.zeros, features.start.zeros):
            if part.size:
                self._start_zeros += _filled_up(part, shape)

    def of(self, first: int, stop: int) -> tuple[IntArray, IntArray]:
        """(rows, lanes) each; no rows of zero factors if nothing in the tables has any."""
        shape = (stop - first, *self._start.shape)
        features = self._tables.features.rows
        sums = aligned(shape)
        self._add(first, self._start, features.values, sums)
        zeros = aligned(shape if self._tables.has_zeros else (0, *shape[1:]))
        if features.has_zeros:
            self._add(first, self._start_zeros, features.zeros, zeros)
        else:
            zeros[:] = self._start_zeros
        n_lanes = self._start.size
        return sums.reshape(-1, n_lanes), zeros.reshape(-1, n_lanes)

    def _add(self, first: int, start: IntArray, table: IntArray, sums: IntArray) -> None:
        codes = self._codes
        if isinstance(codes, DenseCodes):
            _kernels.add_rows(codes.values, first, codes.offsets, start, table, sums)
        else:
            _kernels.add_sparse_rows(codes.indptr, codes.entries, first, start, table, sums)


def _filled_up(lanes: IntArray, shape: tuple[int, int]) -> IntArray:
    """Lanes of any shape as whole blocks."""
    blocks = aligned_zeros(shape)
    blocks.reshape(-1)[: lanes.size] = lanes.ravel()
    return blocks


def by_label(lanes: IntArray, n_labels: int) -> IntArray:
    """(..., label, bound) of lanes for a single s."""
    return lanes[..., : 2 * n_labels].reshape(*lanes.shape[:-1], n_labels, 2)


def fixed_thresholds(thresholds: NDArray[np.float64], scale: Scale) -> IntArray:
    """Thresholds as fixed-point log-odds."""
    log_odds = np.log(thresholds) - np.log1p(-thresholds)
    return np.rint(log_odds * scale.unit).astype(np.int64)


class NaiveWalk(Walk):
    """A batch on its way along a naive credal chain. Tables are in the columns' order."""

    def __init__(self, codes: Codes, tables: ChainTables, settler: Settler) -> None:
        self.n_rows, self.n_labels = codes.n_rows, len(tables.order)
        self._tables = tables
        self._settler = settler
        self._band = tables.scale.band if settler.exact else 0
        m = self.n_labels
        self._sums, self._zeros = (
            by_label(part, m) for part in StartSums(codes, tables).of(0, codes.n_rows)
        )
        self._pairs = by_label(tables.pairs.values[0], m)
        self._pair_zeros = by_label(tables.pairs.zeros[0], m) if tables.pairs.has_zeros else None
        self._history = np.full((self.n_rows, self.n_labels), FREE, dtype=np.int8)

    def exactness(self, j: int) -> Exactness:
        return self._settler.exactness

    def log_odds(self, j: int, rows: Rows) -> tuple[LogOdds, LogOdds]:
        lower, upper = (self._sums[rows, j, side] / self._tables.scale.unit for side in (0, 1))
        if self._tables.has_zeros:
            for side, bound in enumerate((lower, upper)):
                zeros = self._zeros[rows, j, side]
                bound[zeros != 0] = np.inf
                bound[zeros & ABOVE_MASK != 0] = -np.inf
        return lower, upper

    def tell(self, j: int, y: Labels, rows: Rows) -> None:
        column = np.where(y == STAR, 2, y).astype(np.intp)
        self._history[rows, j] = y
        self._sums[rows] += self._pairs[j, column]
        if self._pair_zeros is not None:
            self._zeros[rows] += self._pair_zeros[j, column]

    def sides(self, j: int, threshold: float, rows: Rows) -> tuple[Signs, Signs]:
        cut = int(fixed_thresholds(np.array([threshold]), self._tables.scale)[0])
        low, high = (
            rounded_sides(self._sums[rows, j, side], self._zeros_of(rows, j, side), cut, self._band)
            for side in (0, 1)
        )
        if self._settler.exact:
            for at in np.flatnonzero((low == 0) | (high == 0)).tolist():
                history = self._history[rows[at]]
                low[at], high[at] = self._settler.sides(int(rows[at]), j, history, threshold)
        return low, high

    def surest(self, open_labels: NDArray[np.bool_]) -> NDArray[np.int64]:
        certainty = self._rounded_certainty()
        certainty[~open_labels] = -_INFINITE
        best = certainty.max(axis=1, keepdims=True)
        slack = np.where(np.abs(best) == _INFINITE, 0, 2 * self._band)
        near = open_labels & (certainty >= best - slack)
        chosen: IntArray = np.argmax(near, axis=1)
        if self._settler.exact:
            contested = (near.sum(axis=1) > 1) & (np.abs(best[:, 0]) != _INFINITE)
            for row in np.flatnonzero(contested).tolist():
                chosen[row] = self._settle_surest(row, np.flatnonzero(near[row]).tolist())
        return chosen

    def _settle_surest(self, row: int, candidates: list[int]) -> int:
        history = self._history[row]
        best = candidates[0]
        certainty = self._settler.certainty(row, best, history)
        for j in candidates[1:]:
            other = self._settler.certainty(row, j, history)
            if other.compared_with(certainty) > 0:
                best, certainty = j, other
        return best

    def _rounded_certainty(self) -> IntArray:
        lower, upper = (self._with_infinities(side) for side in (0, 1))
        return np.maximum(lower, -upper)

    def _with_infinities(self, side: int) -> IntArray:
        values = self._sums[:, :, side].copy()
        if self._tables.has_zeros:
            zeros = self._zeros[:, :, side]
            values[zeros != 0] = _INFINITE
            values[zeros & ABOVE_MASK != 0] = -_INFINITE
        return values

    def _zeros_of(self, rows: Rows, j: int, side: int) -> IntArray | None:
        return self._zeros[rows, j, side] if self._tables.has_zeros else None
