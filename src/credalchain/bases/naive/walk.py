"""The plain walk: one label at a time over a batch, in any order."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from credalchain import _kernels
from credalchain._kernels.fixed_point import ABOVE_MASK
from credalchain._kernels.states import FREE, LANES, STAR
from credalchain.bases.naive.codes import Codes, DenseCodes, IntArray
from credalchain.bases.naive.feature_tables import Part
from credalchain.bases.naive.grid import Layout, Scale
from credalchain.bases.naive.memory import aligned
from credalchain.bases.naive.settler import Settler, rounded_sides
from credalchain.bases.naive.tables import ChainTables
from credalchain.bases.protocol import Exactness, Labels, LogOdds, Ranks, Rows, Signs, Walk

_INFINITE = 2**62  # larger than any fixed-point sum


class StartSums:
    """Prior plus features, and the zero factors in them, of any rows of a batch."""

    def __init__(self, codes: Codes, tables: ChainTables) -> None:
        self._codes, self._tables = codes, tables

    def of(self, first: int, stop: int) -> tuple[IntArray, IntArray]:
        """(values of s, rows, lanes) each; of zero factors only for values that may have any."""
        prior, features = self._tables.prior, self._tables.features
        layout, zero_layout = self._tables.layout, self._tables.zero_layout
        sums = self._added(layout, prior.values, features.parts(), first, stop)
        if zero_layout.n_values == 0:
            return sums, np.empty((0, *sums.shape[1:]), dtype=np.int64)
        return sums, self._added(zero_layout, prior.zeros, features.zero_parts(), first, stop)

    def _added(
        self, layout: Layout, prior: IntArray, parts: Iterator[Part], first: int, stop: int
    ) -> IntArray:
        """The prior and all parts."""
        blocks = (layout.n_tiles, layout.tile_lanes // LANES, LANES)
        sums = aligned((stop - first, *blocks))
        start = prior.reshape(blocks) if prior.size else np.zeros(blocks, dtype=np.int64)
        added = False
        for part in parts:
            begin = start + part.start.reshape(blocks)
            self._add(first, begin, part.rows, part.first_tile, sums)
            added = True
        if not added:
            sums[:] = start
        return layout.for_walk(sums)

    def _add(
        self, first: int, start: IntArray, rows: IntArray, first_tile: int, sums: IntArray
    ) -> None:
        codes, table = self._codes, rows.reshape(*rows.shape[:2], *sums.shape[2:])
        if isinstance(codes, DenseCodes):
            _kernels.add_rows(codes.values, first, codes.offsets, start, table, first_tile, sums)
        else:
            _kernels.add_sparse_rows(
                codes.indptr, codes.entries, first, start, table, first_tile, sums
            )


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
        sums, zeros = StartSums(codes, tables).of(0, codes.n_rows)
        self._sums = by_label(sums[0], m)
        self._zeros = by_label(zeros[0], m) if len(zeros) else None
        self._pairs = by_label(tables.pairs.values[0], m)
        self._pair_zeros = by_label(tables.pairs.zeros[0], m) if tables.pairs.has_zeros else None
        self._history = np.full((self.n_rows, self.n_labels), FREE, dtype=np.int8)

    def exactness(self, j: int, rows: Rows) -> Ranks:
        rank = (Exactness.EXACT if self._settler.exact else Exactness.APPROXIMATE).rank
        return np.full(len(rows), rank, dtype=np.int8)

    def log_odds(self, j: int, rows: Rows) -> tuple[LogOdds, LogOdds]:
        lower, upper = (self._sums[rows, j, side] / self._tables.scale.unit for side in (0, 1))
        if self._zeros is not None:
            for side, bound in enumerate((lower, upper)):
                zeros = self._zeros[rows, j, side]
                bound[zeros != 0] = np.inf
                bound[zeros & ABOVE_MASK != 0] = -np.inf
        return lower, upper

    def tell(self, j: int, y: Labels, rows: Rows) -> None:
        column = np.where(y == STAR, 2, y).astype(np.intp)
        self._history[rows, j] = y
        self._sums[rows] += self._pairs[j, column]
        if self._zeros is not None and self._pair_zeros is not None:
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
        if self._zeros is not None:
            zeros = self._zeros[:, :, side]
            values[zeros != 0] = _INFINITE
            values[zeros & ABOVE_MASK != 0] = -_INFINITE
        return values

    def _zeros_of(self, rows: Rows, j: int, side: int) -> IntArray | None:
        return None if self._zeros is None else self._zeros[rows, j, side]
