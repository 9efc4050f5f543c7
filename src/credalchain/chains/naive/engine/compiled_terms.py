"""Large tables, and tables for many values of s, built by compiled code.

A bound of P(v | a) depends on n(v, a), D and K alone, and a table has ten times as many cells as
there are different triples of these. So triples are numbered first, their logarithms are taken for
all values of s at once, and tables are filled by looking up and subtracting. Tables for many values
are not kept: they are built a few labels at a time, added up while they are in the cache, and
discarded.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.array_types import FloatArray, IntArray
from credalchain._utils.parallel import for_each_range
from credalchain.chains.naive.codes import aligned
from credalchain.chains.naive.engine import term_kernels as kernels
from credalchain.chains.naive.engine.layout import (
    LANES,
    ZERO_IN_DENOMINATOR,
    ZERO_IN_NUMERATOR,
    FixedPoint,
    FixedTable,
    Layout,
    Observations,
    SValues,
    TableSlice,
    WholeTable,
)

_CELLS_AT_ONCE = 2**18
_CELLS_WORTH_A_THREAD = 2**16
_FEW_TRIPLES = 2**9
_MAX_SLOTS = 2**16  # counts that are looked up directly; larger ones share a slot
_LABEL_MULTIPLE = LANES // 2  # labels: every layout has tiles of this many, or of a divisor of it
_NUMBERS_IN_CACHE = 2**17  # 64-bit numbers: half of a second-level cache


class LogBounds(NamedTuple):
    """Logarithms of the bounds of every triple, (triples, 2 * values of s).

    A cell of a table is ``one[i] - zero[k]``, with the triples i of class 1 and k of class 0.
    """

    one: IntArray
    zero: IntArray


class Triples(NamedTuple):
    """The different triples (n, D, K) that a group of labels needs, from position ``first`` on.

    ``numbers`` (labels, 2 classes, observations) are positions in ``triples`` (triples, 3); 0 is
    an observation that adds nothing.
    """

    first: int
    numbers: NDArray[np.int32]
    triples: IntArray

    def logarithms(self, s_values: SValues, scale: FixedPoint) -> LogBounds:
        """Of the bounds, as integers; 0 for a bound of 0, which is a zero factor."""
        bounds = self._bounds(s_values)
        may_be_zero = bounds[:, : s_values.n_without_epsilon]
        may_be_zero[may_be_zero == 0] = 1.0
        np.log(bounds, out=bounds)
        bounds *= scale.unit
        logs = np.rint(bounds, out=bounds).astype(np.int64).reshape(len(self.triples), -1)
        logs[0] = 0
        return LogBounds(logs, logs)

    def zero_factors(self, s_values: SValues) -> LogBounds | None:
        """Bounds of 0, which only values without epsilon have; None if there is none."""
        n = s_values.n_without_epsilon
        zeros = (
            self._bounds(SValues(s_values.values[:n], s_values.epsilons[:n], n)).reshape(
                len(self.triples), -1
            )
            == 0
        )
        zeros[0] = False
        return (
            LogBounds(zeros * ZERO_IN_NUMERATOR, zeros * -ZERO_IN_DENOMINATOR)
            if zeros.any()
            else None
        )

    def _bounds(self, s_values: SValues) -> FloatArray:
        bounds = np.empty((len(self.triples), len(s_values.values), 2))
        kernels.bound_triples(self.triples, s_values.values, s_values.epsilons, bounds)
        return bounds


class CompiledTerms:
    """What observations add to every label: ``n_cells`` for both classes.

    With ``reuse`` the triples of each group are cached.
    """

    def __init__(
        self,
        observations: Observations,
        scale: FixedPoint,
        n_cells: int,
        *,
        reuse: bool,
        n_jobs: int,
    ) -> None:
        self.observations, self.scale = observations, scale
        self._reuse = reuse
        self._n_jobs = n_jobs if n_cells >= _CELLS_WORTH_A_THREAD else 1
        cells_per_label = n_cells // len(observations.order)
        self._group_size = _LABEL_MULTIPLE * max(
            1, _CELLS_AT_ONCE // (_LABEL_MULTIPLE * cells_per_label)
        )
        self._triples_cache: dict[tuple[int, int], Triples] = {}

    def streamed(self, s_values: SValues, layout: Layout) -> "StreamedTable":
        """A table of features that is never built whole."""
        return StreamedTable(self, s_values, layout, has_zeros=s_values.n_without_epsilon > 0)

    def whole(self, s_values: SValues, layout: Layout) -> WholeTable:
        """A table for values of s that all have an epsilon, or all have none."""
        values, zeros = TileRows(self.observations, layout), None
        shape = (layout.n_tiles, values.n_rows, layout.tile_lanes)
        tables = [aligned(shape, zeros=False)]
        if s_values.n_without_epsilon:
            zeros = TileRows(self.observations, layout)
            tables.append(aligned(shape, zeros=False))
        for table in tables:  # lanes of padding may take part in computations
            n_lanes = (
                layout.n_labels * layout.label_lanes - (layout.n_tiles - 1) * layout.tile_lanes
            )
            table[-1:, :, n_lanes:] = 0
        any_zeros: list[bool] = []

        def run(first: int, stop: int) -> None:
            group = self._group_triples(first, stop)
            values.fill(group, group.logarithms(s_values, self.scale), tables[0])
            if zeros is not None:
                factors = group.zero_factors(s_values)
                any_zeros.append(factors is not None)
                zeros.fill(group, factors, tables[1])

        n_labels = len(self.observations.order)
        for_each_range(n_labels, self._group_size, self._n_jobs, run, multiple_of=_LABEL_MULTIPLE)
        if zeros is None or not any(any_zeros):
            return WholeTable(FixedTable(values.start), FixedTable(tables[0]), has_zeros=False)
        start, rows = FixedTable(values.start, zeros.start), FixedTable(tables[0], tables[1])
        return WholeTable(start, rows, has_zeros=True)

    def forward_pairs(
        self, s_values: SValues, shape: tuple[int, ...], widest: int, *, filled: bool
    ) -> FixedTable:
        """Log-odds that each label adds to every later one: as 0, as 1, and left open.

        The last goes to column ``widest``, for branching; -1 for none. ``filled``: cells that are
        not written are never read, so memory need not be 0 at first.
        """
        values = aligned(shape, zeros=not filled)
        zeros = aligned((s_values.n_without_epsilon, *shape[1:]))
        any_zeros: list[bool] = []

        def run(first: int, stop: int) -> None:
            group = self._group_triples(first, stop)
            logs = group.logarithms(s_values, self.scale)
            kernels.fill_pairs(group.numbers, first, *logs, widest, values)
            factors = group.zero_factors(s_values) if s_values.n_without_epsilon else None
            if factors is not None:
                kernels.fill_pairs(group.numbers, first, *factors, -1, zeros)
                any_zeros.append(True)

        n_labels = len(self.observations.order)
        for_each_range(n_labels, self._group_size, self._n_jobs, run, multiple_of=_LABEL_MULTIPLE)
        if not any_zeros:
            return FixedTable(values)
        if widest >= 0:
            kernels.widest_with_zeros(values[: s_values.n_without_epsilon], zeros, widest)
        return FixedTable(values, zeros)

    def groups(self) -> Iterator[Triples]:
        """All labels, some at a time, in whole tiles of any layout."""
        for first in range(0, len(self.observations.order), self._group_size):
            yield self._group_triples(first, first + self._group_size)

    def _group_triples(self, first: int, stop: int) -> Triples:
        """The triples of some labels, from position ``first`` of the order on."""
        observed, labels = self.observations, self.observations.order[first:stop]
        cached = self._triples_cache.get((first, len(labels)))
        if cached is not None:
            return cached
        numbers = np.empty((len(labels), 2, len(observed.sources)), dtype=np.int32)
        largest, n_triples = int(observed.totals.max(initial=0)), -1
        capacity = max(_FEW_TRIPLES, numbers.size // 16)
        while n_triples < 0:  # the capacity was too small
            capacity *= 4
            triples = np.empty((capacity, 3), dtype=np.int64)
            triples[0] = 1  # adds nothing: any numbers will do
            n_triples = kernels.number_triples(
                observed.counts,
                observed.totals,
                observed.denominators,
                observed.n_categories,
                observed.variables,
                observed.sources,
                labels,
                observed.limits[first : first + len(labels)],
                numbers,
                triples,
                np.full((2, min(_MAX_SLOTS, 2 ** (largest + 1).bit_length())), -1, dtype=np.int32),
                np.full(2 ** (2 * capacity).bit_length(), -1, dtype=np.int32),
            )
        group = Triples(first, numbers, triples[:n_triples])
        if self._reuse:
            self._triples_cache[first, len(labels)] = group
        return group


class StreamedTable(NamedTuple):
    """A feature table a few labels at a time: built anew for each use, never kept.

    So a part is still in the cache when its rows are added up.
    """

    terms: CompiledTerms
    s_values: SValues
    layout: Layout
    has_zeros: bool

    def parts(self, *, zeros: bool) -> Iterator[TableSlice]:
        """Log-odds, or zero factors."""
        s_values, layout = self.s_values, self.layout
        if zeros and not self.has_zeros:
            return
        if zeros:
            layout = Layout.of(s_values.n_without_epsilon, layout.n_labels)
        tiles = TileRows(self.terms.observations, layout)
        size = max(1, _NUMBERS_IN_CACHE // max(1, tiles.n_rows * layout.tile_lanes))
        buffer = aligned((min(size, layout.n_tiles), tiles.n_rows, layout.tile_lanes), zeros=False)
        for group in self.terms.groups():
            logs = (
                group.zero_factors(s_values)
                if zeros
                else group.logarithms(s_values, self.terms.scale)
            )
            tiles.fill_start(group, logs)
            first = group.first // layout.tile_labels
            stop = first - (-len(group.numbers) // layout.tile_labels)
            for tile in range(first, stop, size):
                table = buffer[: stop - tile]
                tiles.fill_rows(group, logs, table, tile)
                yield TableSlice(tiles.start, table, tile)


class TileRows:
    """Fills tiles of a table and the start of each sum; ``logs=None`` fills them with 0."""

    def __init__(self, observations: Observations, layout: Layout) -> None:
        self._observations, self._layout = observations, layout
        self.n_rows = len(observations.sources) - observations.n_zero_codes
        self.start = aligned((layout.n_tiles, layout.tile_lanes))

    def fill(self, group: Triples, logs: LogBounds | None, table: IntArray) -> None:
        """Fill the rows and starts of the labels of ``group``, in a table of all tiles."""
        tile_labels = self._layout.tile_labels
        first = group.first // tile_labels
        self.fill_start(group, logs)
        self.fill_rows(
            group, logs, table[first : first - (-len(group.numbers) // tile_labels)], first
        )

    def fill_start(self, group: Triples, logs: LogBounds | None) -> None:
        """Fill the start of the sums of these labels."""
        n_zero_codes = self._observations.n_zero_codes
        if n_zero_codes == 0 or logs is None:
            return
        hits = np.zeros(len(group.triples), dtype=np.int64)
        start = self.start.reshape(-1, self._layout.label_lanes)
        kernels.add_zero_codes(group.numbers, group.first, *logs, n_zero_codes, hits, start)

    def fill_rows(
        self, group: Triples, logs: LogBounds | None, table: IntArray, first: int
    ) -> None:
        """Fill ``table``, which begins with tile ``first``."""
        if logs is None:
            table.fill(0)
            return
        layout, observations = self._layout, self._observations
        kernels.fill_table(
            group.numbers,
            first * layout.tile_labels - group.first,
            *logs,
            observations.variables,
            observations.n_zero_codes,
            table.reshape(*table.shape[:2], layout.tile_labels, layout.label_lanes),
        )
