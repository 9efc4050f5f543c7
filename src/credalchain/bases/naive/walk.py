"""The plain walk: one label at a time over a batch, in any order."""

import numpy as np
from numpy.typing import NDArray

from credalchain import _kernels
from credalchain._kernels.fixed_point import ABOVE_MASK
from credalchain._kernels.states import FREE, STAR
from credalchain.bases.naive.codes import Codes, DenseCodes, IntArray
from credalchain.bases.naive.settler import Settler, rounded_sides
from credalchain.bases.naive.tables import ChainTables, Scale
from credalchain.bases.protocol import Exactness, Labels, LogOdds, Rows, Signs, Walk

_INFINITE = 2**62  # larger than any fixed-point sum


def start_sums(codes: Codes, tables: ChainTables, *, with_zeros: bool) -> tuple[IntArray, IntArray]:
    """Prior plus features, and the zero factors in them: (n, m, 2) each, or none."""
    m = len(tables.order)
    shape = (codes.n_rows, m, 2)
    sums = np.empty(shape, dtype=np.int64)
    sums[:] = tables.prior.values
    _add_features(codes, tables.features.values, tables.offsets, sums)
    if not with_zeros:
        return sums, np.zeros((0, m, 2), dtype=np.int64)
    zeros = np.zeros(shape, dtype=np.int64)
    if tables.prior.has_zeros:
        zeros[:] = tables.prior.zeros
    if tables.features.has_zeros:
        _add_features(codes, tables.features.zeros, tables.offsets, zeros)
    return sums, zeros


def _add_features(codes: Codes, table: IntArray, offsets: IntArray, sums: IntArray) -> None:
    flat_table = table.reshape(len(table), -1)
    flat = sums.reshape(len(sums), -1)
    if isinstance(codes, DenseCodes):
        _kernels.add_rows(codes.values, offsets, flat_table, flat)
    else:
        flat += flat_table[offsets].sum(axis=0)
        _kernels.add_sparse_rows(
            codes.indptr, codes.indices, codes.values, offsets, flat_table, flat
        )


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
        self._sums, self._zeros = start_sums(codes, tables, with_zeros=tables.has_zeros)
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
        self._sums[rows] += self._tables.pairs.values[j, column]
        if self._tables.pairs.has_zeros:
            self._zeros[rows] += self._tables.pairs.zeros[j, column]

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
