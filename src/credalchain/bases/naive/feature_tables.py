"""Tables of what features say: made whole and kept, or a few labels at a time and forgotten."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from credalchain import _kernels
from credalchain.bases.naive.evidence import At, Evidence, Found, Weights
from credalchain.bases.naive.grid import FixedTable, IntArray, Layout, Scale
from credalchain.bases.naive.memory import aligned, aligned_zeros

_NUMBERS_IN_CACHE = 2**17  # 64-bit numbers: half of a second-level cache
_WORTH_COMPILING = 2**16  # pieces of evidence: some milliseconds without kernels


class Part(NamedTuple):
    """What features add: where sums start, and a row for every (feature, category).

    ``start`` is (all tiles, lanes), ``rows`` (tiles from ``first_tile`` on, rows, lanes). For
    sparse codes, code 0 of every feature is in ``start``, and rows hold differences from it.
    """

    start: IntArray
    rows: IntArray
    first_tile: int


@dataclass(frozen=True)
class FeatureTable:
    """All parts in one."""

    start: FixedTable
    rows: FixedTable

    @property
    def has_zeros(self) -> bool:
        return self.rows.has_zeros

    def parts(self) -> Iterator[Part]:
        yield Part(self.start.values, self.rows.values, 0)

    def zero_parts(self) -> Iterator[Part]:
        """The same for zero factors."""
        if self.has_zeros:
            yield Part(self.start.zeros, self.rows.zeros, 0)


class FeatureStream:
    """The same a few labels at a time: made anew whenever it is asked for, and never kept.

    So a part is still in the cache when its rows are added up.
    """

    def __init__(self, evidence: Evidence, at: At, scale: Scale, n_labels: int) -> None:
        self._evidence, self._at, self._scale, self._n_labels = evidence, at, scale, n_labels
        self.has_zeros = at.n_bare > 0

    def parts(self) -> Iterator[Part]:
        layout = Layout(len(self._at.values), self._n_labels)
        return self._parts(layout, lambda found: found.logarithms(self._at, self._scale))

    def zero_parts(self) -> Iterator[Part]:
        if not self.has_zeros:
            return iter(())
        layout = Layout(self._at.n_bare, self._n_labels)
        return self._parts(layout, lambda found: found.zero_factors(self._at))

    def _parts(self, layout: Layout, weigh: Callable[[Found], Weights | None]) -> Iterator[Part]:
        rows = _FeatureRows(self._evidence, layout)
        unit = layout.tile_labels
        size = max(1, _NUMBERS_IN_CACHE // max(1, self._evidence.n_rows * layout.tile_lanes))
        room = rows.room(min(size, layout.n_tiles))
        for found in self._evidence.groups():
            first, weights = found.first // unit, weigh(found)
            rows.begin(found, weights)
            stop = first - (-len(found.numbers) // unit)
            for tile in range(first, stop, size):
                table = room[: stop - tile]
                rows.fill(found, weights, table, tile)
                yield Part(rows.start, table, tile)


class _FeatureRows:
    """Fills tables of features; without weights there is nothing in them."""

    def __init__(self, evidence: Evidence, layout: Layout) -> None:
        self._evidence, self._layout = evidence, layout
        self.start = aligned_zeros((layout.n_tiles, layout.tile_lanes))

    def room(self, n_tiles: int) -> IntArray:
        """For the rows of so many tiles, not filled yet."""
        return aligned((n_tiles, self._evidence.n_rows, self._layout.tile_lanes))

    def begin(self, found: Found, weights: Weights | None) -> None:
        """Fill in where the sums of these labels start."""
        n_zeros = self._evidence.n_zeros
        if n_zeros == 0 or weights is None:
            return
        hits = np.zeros(len(found.pieces), dtype=np.int64)
        start = self.start.reshape(-1, self._layout.run)
        _kernels.add_zero_codes(found.numbers, found.first, *weights, n_zeros, hits, start)

    def fill(self, found: Found, weights: Weights | None, table: IntArray, first: int) -> None:
        """Fill ``table``, which begins with tile ``first``."""
        if weights is None:
            table.fill(0)
            return
        layout, evidence = self._layout, self._evidence
        _kernels.fill_table(
            found.numbers,
            first * layout.tile_labels - found.first,
            *weights,
            evidence.variables,
            evidence.n_zeros,
            table.reshape(*table.shape[:2], layout.tile_labels, layout.run),
        )


class _WholeTable(_FeatureRows):
    """All rows of a table, as labels come in."""

    def __init__(self, evidence: Evidence, layout: Layout) -> None:
        super().__init__(evidence, layout)
        self.rows = self.room(layout.n_tiles)
        n_lanes = layout.n_labels * layout.run - (layout.n_tiles - 1) * layout.tile_lanes
        self.rows[-1:, :, n_lanes:] = 0  # padding, which may be computed with

    def put(self, terms: IntArray, first: int) -> None:
        """``terms`` (observations, labels, lanes of a label) of the labels from ``first`` on."""
        layout, n_zeros = self._layout, self._evidence.n_zeros
        labels = slice(first, first + terms.shape[1])
        if n_zeros:
            self.start.reshape(-1, layout.run)[labels] = terms[:n_zeros].sum(axis=0)
            terms = terms[n_zeros:] - terms[self._evidence.variables[n_zeros:]]
        for tile in range(first // layout.tile_labels, -(-labels.stop // layout.tile_labels)):
            begin = tile * layout.tile_labels - first
            some = terms[:, begin : begin + layout.tile_labels]
            n_lanes = some.shape[1] * layout.run
            self.rows[tile, :, :n_lanes] = some.reshape(len(terms), n_lanes)

    def put_found(self, found: Found, weights: Weights | None) -> None:
        """The same from evidence."""
        first, unit = found.first // self._layout.tile_labels, self._layout.tile_labels
        self.begin(found, weights)
        tiles = self.rows[first : first - (-len(found.numbers) // unit)]
        self.fill(found, weights, tiles, first)


def whole_table(evidence: Evidence, at: At, layout: Layout, scale: Scale) -> FeatureTable:
    """For values that are all with epsilon or all without.

    A small table is made without kernels, so that a first answer need not wait for them.
    """
    values = _WholeTable(evidence, layout)
    zeros = _WholeTable(evidence, layout) if at.n_bare else None
    any_zeros: list[bool] = []

    def run(first: int, stop: int) -> None:
        terms = evidence.terms(first, stop, at, scale)
        values.put(terms.values, first)
        if zeros is not None:
            any_zeros.append(terms.zeros is not None)
            zeros.put(np.zeros_like(terms.values) if terms.zeros is None else terms.zeros, first)

    def run_compiled(first: int, stop: int) -> None:
        found = evidence.find(first, stop)
        values.put_found(found, found.logarithms(at, scale))
        if zeros is not None:
            factors = found.zero_factors(at)
            any_zeros.append(factors is not None)
            zeros.put_found(found, factors)

    evidence.for_each_group(run_compiled if evidence.n_pieces >= _WORTH_COMPILING else run)
    if zeros is None or not any(any_zeros):
        return FeatureTable(FixedTable.finite(values.start), FixedTable.finite(values.rows))
    return FeatureTable(FixedTable(values.start, zeros.start), FixedTable(values.rows, zeros.rows))
