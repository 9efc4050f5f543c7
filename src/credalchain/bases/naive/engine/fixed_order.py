"""The walk along a chain of fixed order, compiled: all strategies and values of s in one pass.

First the sums over prior and features of a chunk of rows, then the chain. It equals the plain walk
bit for bit.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from credalchain.bases.naive.codes import Codes, DenseCodes, aligned
from credalchain.bases.naive.engine.layout import (
    INFINITE,
    LANES,
    STEP,
    IntArray,
    resolve_zero_factors,
)
from credalchain.bases.naive.engine.tables import ChainTables
from credalchain.bases.naive.exact import ExactComparator
from credalchain.bases.protocol import Labels, Request, labels_from_signs
from credalchain.bases.threads import for_each_range
from credalchain.labels import ABSTAIN, UNDECIDED
from credalchain.strategies import Strategy

_SUMS_PER_CHUNK = 2**18  # 64-bit sums of one chunk of rows, for one s: two megabytes
_MOST_PROBES, _ROWS_PER_PROBE = 64, 16
_MANY_LABELS = 8  # from here on, guessing what most rows say saves more than it costs
_NO_EXPECTATION = np.empty((0, 0, 0), dtype=np.int64)
_NO_PAIRS = np.empty((0, 0, 0, 0), dtype=np.int64)


def start_sums(codes: Codes, tables: ChainTables, first: int, stop: int) -> tuple[IntArray, Any]:
    """Prior plus features of some rows, and the zero factors in them: (values, rows, lanes) each.

    Zero factors are there for the first values only, None if there are none.
    """
    from credalchain.bases.naive.engine import sum_kernels as kernels  # imports numba

    found: list[Any] = []
    for layout, prior in zip((tables.layout, tables.zero_layout), tables.prior, strict=True):
        if layout.n_values == 0:
            return found[0], None
        blocks = (layout.n_tiles, layout.tile_lanes // LANES, LANES)
        sums = aligned((stop - first, *blocks), zeros=False)
        start = np.zeros(blocks, dtype=np.int64) if prior is None else prior.reshape(blocks)
        added = False
        for part in tables.features.parts(zeros=len(found) == 1):
            begin, added = start + part.start.reshape(blocks), True
            rows = part.rows.reshape(*part.rows.shape[:2], *blocks[1:])
            where = first, begin, rows, part.first_tile, sums
            if isinstance(codes, DenseCodes):
                kernels.add_rows(codes.values, codes.offsets, *where)
            else:
                kernels.add_sparse_rows(codes.indptr, codes.entries, *where)
        if not added:
            sums[:] = start
        found.append(layout.for_walk(sums))
    return found[0], found[1]


class FixedOrderPass:
    """One pass over the features of a batch, then a walk for every strategy and value of s.

    ``make_comparator`` gives what settles ties, for a value of s and a strategy.
    ``labels`` is (strategies, values of s, n, m); ``log_odds`` (strategies, n, m, 2) is for a
    single value, without rows where nobody asked.
    """

    def __init__(
        self,
        codes: Codes,
        tables: ChainTables,
        request: Request,
        make_comparator: Callable[[Codes, float, Strategy], ExactComparator],
    ) -> None:
        self._codes, self._tables, self._request = codes, tables, request
        self._comparators: dict[tuple[int, int], ExactComparator] = {}
        self._make_comparator = make_comparator
        self._order, self._layout = tables.order, tables.layout
        self._cuts = tables.scale.fixed(logit(request.thresholds))[tables.order]
        strategies = request.strategies
        self._bands = np.array(
            [tables.scale.band if one.merge_exact else 0 for one in strategies], dtype=np.int64
        )
        n, m, n_values = codes.shape[0], len(tables.order), tables.layout.n_values
        self._columns = np.full((n_values, len(strategies), m), -1, dtype=np.int8)
        nothing = np.zeros((n_values, len(strategies), tables.layout.width), dtype=np.int64)
        self._added, self._added_zeros = nothing, nothing
        self._expectation = _NO_EXPECTATION, _NO_EXPECTATION
        self.labels = np.empty((len(strategies), n_values, n, m), dtype=np.int8)
        self.log_odds = np.empty((len(strategies), n if request.wants_bounds else 0, m, 2))

    def run(self) -> None:
        """All rows, in chunks whose sums fit a cache."""
        n_rows = self.labels.shape[2]
        n_probes = min(_MOST_PROBES, n_rows // _ROWS_PER_PROBE)
        probes_help = n_probes > 1 and len(self._order) >= _MANY_LABELS
        size = max(16, _SUMS_PER_CHUNK // self._layout.width)
        if n_rows <= size and self._request.n_jobs == 1:  # probe rows are among the rows
            sums = start_sums(self._codes, self._tables, 0, n_rows)
            if probes_help:
                self._guess_from(n_probes, *sums)
            self._walk(0, n_rows, *sums)
        else:
            if probes_help:
                probes = start_sums(self._codes, self._tables, 0, n_probes)
                self._guess_from(n_probes, *probes)

            def walk(first: int, stop: int) -> None:
                self._walk(first, stop, *start_sums(self._codes, self._tables, first, stop))

            for_each_range(n_rows, size, self._request.n_jobs, walk)
        if self.log_odds.shape[1] and self._request.never_observed.any():
            self._request.make_vacuous(self.log_odds)

    def _walk(self, first: int, stop: int, sums: IntArray, zeros: Any) -> None:
        forced = self._request.forced_labels(slice(first, stop)).take(self._order, axis=1)
        expects = self._request.known is None  # else the rules differ from row to row
        stuck = self._walk_rows(first, stop - first, sums, zeros, forced, expects=expects)
        if stuck is None:
            return
        for v, strategy, row in np.argwhere(stuck < len(self._order)).tolist():
            some = slice(row, row + 1)
            has_zeros = zeros is not None and v < len(zeros)
            self._settle_row(
                v,
                strategy,
                first + row,
                sums[v : v + 1, some],
                zeros[v : v + 1, some] if has_zeros else None,
                forced[row % len(forced)][None].copy(),
            )

    def _walk_rows(
        self,
        first: int,
        n_rows: int,
        sums: IntArray,
        zeros: Any,
        forced: Labels,
        *,
        expects: bool = False,
    ) -> NDArray[np.int32] | None:
        """Walk rows from ``first`` on; where they got stuck (values, strategies, rows), if any did.

        Values with zero factors and those without go apart.
        """
        n_values, n_strategies, _ = self._columns.shape
        stuck = np.empty((n_values, n_strategies, n_rows), dtype=np.int32)
        n_with_zeros = 0 if zeros is None else len(zeros)
        any_stuck = False
        for values in (slice(0, n_with_zeros), slice(n_with_zeros, n_values)):
            if values.start < values.stop:
                part_zeros = zeros if values.stop == n_with_zeros and n_with_zeros else None
                part = (values, slice(None))
                any_stuck |= self._walk_part(
                    part, first, sums[values], part_zeros, forced, stuck[values], expects=expects
                )
        return stuck if any_stuck else None

    def _walk_part(
        self,
        part: tuple[slice, slice],
        first: int,
        sums: IntArray,
        zeros: Any,
        forced: Labels,
        stuck: NDArray[np.int32],
        *,
        expects: bool = False,
    ) -> bool:
        """The same for some values of s and strategies; whether any row got stuck."""
        from credalchain.bases.naive.engine import walk_kernels as kernels  # imports numba

        tables, (values, strategies), width = self._tables, part, self._layout.width
        zero_factors = None
        if zeros is not None:
            pair_zeros = tables.pairs.zeros
            zero_factors = kernels.Zeros(
                zeros,
                _NO_PAIRS if pair_zeros is None else pair_zeros[values],
                self._added_zeros[part],
                np.empty(width, dtype=np.int64),
            )
        expects &= zeros is None
        flip, least = self._expectation if expects else (_NO_EXPECTATION, _NO_EXPECTATION)
        return kernels.walk_chain(
            kernels.Sums(sums, first),
            kernels.PairTables(tables.pairs.values[values], tables.open_columns[strategies]),
            zero_factors,
            kernels.Guess(self._columns[part], self._added[part], flip[values], least[values]),
            kernels.Rule(self._order, self._cuts, self._bands[strategies], forced),
            kernels.Workspace(
                np.empty(width + STEP, dtype=np.int64),
                np.empty(stuck.shape[2], dtype=np.bool_),
            ),
            kernels.Output(
                self.labels[strategies, values],
                self.log_odds[strategies],
                stuck,
                1.0 / tables.scale.unit,  # a power of two, so exact
            ),
        )

    # -- what most rows say ------------------------------------------------------------

    def _guess_from(self, n_probes: int, sums: IntArray, zeros: Any) -> None:
        """Each label's commonest answer among the first rows; those that got stuck do not vote."""
        every = self._request.forced_labels(slice(n_probes)).take(self._order, axis=1)
        stuck = self._walk_rows(0, n_probes, sums, zeros, every)
        answers = self.labels[:, :, :n_probes, self._order].swapaxes(0, 1)
        if stuck is not None:
            answers = np.where(stuck[..., None] < len(self._order), UNDECIDED, answers)
        # probe rows are few enough for the smallest counters
        votes = [(answers == y).view(np.int8).sum(axis=2, dtype=np.int8) for y in (0, 1, ABSTAIN)]
        commonest = np.argmax(np.stack(votes), axis=0)
        forced = every[0]
        if self._request.known is None:  # then they hold for all rows, and nobody checks them
            is_forced = forced != UNDECIDED
            commonest[..., is_forced] = np.where(forced == ABSTAIN, 2, forced)[is_forced]
        open_columns = self._tables.open_columns[:, None]
        self._columns = np.where(commonest == 2, open_columns, commonest).astype(np.int8)
        self._added, self._added_zeros = self._add_guesses()
        n_with_zeros = 0 if zeros is None else len(zeros)
        if n_with_zeros < len(self._columns) and self._request.known is None:
            self._expectation = self._expect(forced == UNDECIDED)

    def _expect(self, undecided: NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
        """Where sums must lie for each label to be decided as guessed, beyond doubt.

        That is (sum ^ flip) >= least, where flip is 0, or -1 to turn the least into the greatest:
        ~x >= ~y is x <= y. Both are (values, strategies, width).
        """
        columns, n_lanes = self._columns, 2 * len(self._order)
        shape = (*columns.shape[:2], self._layout.width + STEP)
        flip, least = np.zeros(shape, np.int64), np.full(shape, -INFINITE)
        above, below = self._cuts + self._bands[:, None], self._cuts - self._bands[:, None]
        no, yes = undecided & (columns == 0), undecided & (columns == 1)
        is_open = undecided & ~(no | yes)
        lower, upper = slice(0, n_lanes, 2), slice(1, n_lanes, 2)
        flip[..., lower], flip[..., upper] = np.where(no | is_open, -1, 0), np.where(no, -1, 0)
        least[..., lower] = np.select(
            [yes, no, is_open], [above + 1, ~above, ~(below - 1)], -INFINITE
        )
        least[..., upper] = np.select([no, is_open], [~(below - 1), above + 1], -INFINITE)
        return flip, least

    def _add_guesses(self) -> tuple[IntArray, IntArray]:
        """What all guesses add to the labels after them: (values, strategies, width) twice."""
        from credalchain.bases.naive.engine import walk_kernels as kernels  # imports numba

        pairs = self._tables.pairs
        shape = (*self._columns.shape[:2], self._layout.width)
        added, added_zeros = (np.zeros(shape, dtype=np.int64) for _ in range(2))
        for table, total in ((pairs.values, added), (pairs.zeros, added_zeros)):
            if table is not None and table.size:
                kernels.add_guesses(table, self._columns[: len(table)], total)
        return added, added_zeros

    # -- what rounding cannot decide ----------------------------------------------------

    def _settle_row(
        self, v: int, strategy: int, row: int, sums: IntArray, zeros: Any, forced: Labels
    ) -> None:
        """Walk one row, for one strategy and s, again and again until nothing is too close."""
        part = (slice(v, v + 1), slice(strategy, strategy + 1))
        stuck = np.empty((1, 1, 1), dtype=np.int32)
        while self._walk_part(part, row, sums, zeros, forced, stuck):
            t = int(stuck[0, 0, 0])
            comparator = self._comparator(strategy, v)
            if comparator.is_available:
                signs = self._exact_signs(comparator, self.labels[strategy, v, row], row, t)
            else:
                signs = self._rounded_signs(v, strategy, row, sums, zeros, t)
            lower, upper = (np.array([sign], dtype=np.int8) for sign in signs)
            forced[0, t] = labels_from_signs(lower, upper, precise=self._request.precise)[0]

    def _comparator(self, strategy: int, v: int) -> ExactComparator:
        if (strategy, v) not in self._comparators:
            request = self._request
            self._comparators[strategy, v] = self._make_comparator(
                self._codes, request.values[v], request.strategies[strategy]
            )
        return self._comparators[strategy, v]

    def _exact_signs(
        self, comparator: ExactComparator, labels: Labels, row: int, t: int
    ) -> tuple[int, int]:
        j = int(self._order[t])
        history = np.full(len(self._order), UNDECIDED, dtype=np.int8)
        if self._request.chained:
            earlier = self._order[:t]
            history[earlier] = labels[earlier]
        return comparator.signs(row, j, history, float(self._request.thresholds[j]))

    def _rounded_signs(
        self, v: int, strategy: int, row: int, sums: IntArray, zeros: Any, t: int
    ) -> tuple[int, int]:
        """Where the strategy has no exact odds, the rounded sums are all there is."""
        lanes = slice(2 * t, 2 * t + 2)
        earlier = np.arange(t if self._request.chained else 0)
        labels = self.labels[strategy, v, row, self._order[earlier]]
        columns = np.where(labels == ABSTAIN, self._tables.open_columns[strategy], labels)
        earlier, columns = earlier[columns >= 0], columns[columns >= 0]
        pairs = self._tables.pairs
        values = sums[0, 0, lanes] + pairs.values[v, earlier, columns, lanes].sum(axis=0)
        factors = None if zeros is None else zeros[0, 0, lanes]
        if factors is not None and pairs.zeros is not None:
            factors = factors + pairs.zeros[v, earlier, columns, lanes].sum(axis=0)
        signs = resolve_zero_factors(np.sign(values - self._cuts[t]), factors, -1, 1)
        lower, upper = signs.tolist()
        return lower, upper
