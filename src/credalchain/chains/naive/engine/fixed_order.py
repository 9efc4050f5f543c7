"""The walk along a chain of fixed order, compiled: all strategies and values of s in one pass.

First the sums over prior and features of a chunk of rows, then the chain. It equals the plain walk
bit for bit.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from credalchain._utils.array_types import IntArray, Labels
from credalchain._utils.parallel import for_each_range
from credalchain.chains.naive.codes import Codes, DenseCodes, aligned
from credalchain.chains.naive.engine.layout import INFINITE, LANES, STEP, resolve_zero_factors
from credalchain.chains.naive.engine.tables import ChainTables
from credalchain.chains.naive.exact import ExactComparator
from credalchain.chains.protocol import Request, labels_from_signs
from credalchain.chains.strategies import Strategy
from credalchain.labels import ABSTAIN, UNDECIDED

_SUMS_PER_CHUNK = 2**18  # 64-bit sums of one chunk of rows, for one s: two megabytes
_MAX_PROBES, _ROWS_PER_PROBE = 64, 16
_MANY_LABELS = 8  # from here on, guessing what most rows answer saves more than it costs
_NO_LIMITS = np.empty((0, 0, 0), dtype=np.int64)
_NO_PAIRS = np.empty((0, 0, 0, 0), dtype=np.int64)


def start_sums(codes: Codes, tables: ChainTables, first: int, stop: int) -> tuple[IntArray, Any]:
    """Prior plus features of some rows, and the zero factors in them: (values, rows, lanes) each.

    Only the first values have zero factors; None if there are none.
    """
    from credalchain.chains.naive.engine import sum_kernels as kernels  # imports numba

    results: list[Any] = []
    for layout, prior in zip((tables.layout, tables.zero_layout), tables.prior, strict=True):
        if layout.n_values == 0:
            return results[0], None
        blocks = (layout.n_tiles, layout.tile_lanes // LANES, LANES)
        sums = aligned((stop - first, *blocks), zeros=False)
        start = np.zeros(blocks, dtype=np.int64) if prior is None else prior.reshape(blocks)
        added = False
        for part in tables.features.parts(zeros=len(results) == 1):
            begin, added = start + part.start.reshape(blocks), True
            rows = part.rows.reshape(*part.rows.shape[:2], *blocks[1:])
            arguments = first, begin, rows, part.first_tile, sums
            if isinstance(codes, DenseCodes):
                kernels.add_rows(codes.values, codes.offsets, *arguments)
            else:
                kernels.add_sparse_rows(codes.indptr, codes.entries, *arguments)
        if not added:
            sums[:] = start
        results.append(layout.for_walk(sums))
    return results[0], results[1]


class FixedOrderPass:
    """One pass over the features of a batch, then a walk for every strategy and value of s.

    ``make_comparator`` gives what settles ties, for a value of s and a strategy.
    ``labels`` is (strategies, values of s, n, m); ``log_odds`` (strategies, n, m, 2) is for a
    single value, with no rows if bounds are not wanted.
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
            [tables.scale.band if strategy.merge_exact else 0 for strategy in strategies],
            dtype=np.int64,
        )
        n, m, n_values = codes.shape[0], len(tables.order), tables.layout.n_values
        self._columns = np.full((n_values, len(strategies), m), -1, dtype=np.int8)
        no_guess = np.zeros((n_values, len(strategies), tables.layout.width), dtype=np.int64)
        self._added, self._added_zeros = no_guess, no_guess
        self._guess_limits = _NO_LIMITS, _NO_LIMITS
        self.labels = np.empty((len(strategies), n_values, n, m), dtype=np.int8)
        self.log_odds = np.empty((len(strategies), n if request.wants_bounds else 0, m, 2))

    def run(self) -> None:
        """Walk all rows, in chunks whose sums fit a cache."""
        n_rows = self.labels.shape[2]
        n_probes = min(_MAX_PROBES, n_rows // _ROWS_PER_PROBE)
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
        use_limits = self._request.known is None  # else forced labels differ from row to row
        stuck = self._walk_rows(first, stop - first, sums, zeros, forced, use_limits=use_limits)
        if stuck is None:
            return
        for v, strategy_index, row in np.argwhere(stuck < len(self._order)).tolist():
            row_slice = slice(row, row + 1)
            has_zeros = zeros is not None and v < len(zeros)
            self._settle_row(
                v,
                strategy_index,
                first + row,
                sums[v : v + 1, row_slice],
                zeros[v : v + 1, row_slice] if has_zeros else None,
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
        use_limits: bool = False,
    ) -> NDArray[np.int32] | None:
        """Walk rows from ``first`` on; where they got stuck (values, strategies, rows), if any did.

        Values with zero factors and those without are walked separately.
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
                    part,
                    first,
                    sums[values],
                    part_zeros,
                    forced,
                    stuck[values],
                    use_limits=use_limits,
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
        use_limits: bool = False,
    ) -> bool:
        """Walk for some values of s and strategies; whether any row got stuck."""
        from credalchain.chains.naive.engine import walk_kernels as kernels  # imports numba

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
        use_limits &= zeros is None
        flip, least = self._guess_limits if use_limits else (_NO_LIMITS, _NO_LIMITS)
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

    # -- what most rows answer ---------------------------------------------------------

    def _guess_from(self, n_probes: int, sums: IntArray, zeros: Any) -> None:
        """Guess each label's most common answer in the first rows; stuck rows do not vote."""
        probe_forced = self._request.forced_labels(slice(n_probes)).take(self._order, axis=1)
        stuck = self._walk_rows(0, n_probes, sums, zeros, probe_forced)
        answers = self.labels[:, :, :n_probes, self._order].swapaxes(0, 1)
        if stuck is not None:
            answers = np.where(stuck[..., None] < len(self._order), UNDECIDED, answers)
        # probe rows are few enough for the smallest counters
        votes = [(answers == y).view(np.int8).sum(axis=2, dtype=np.int8) for y in (0, 1, ABSTAIN)]
        most_common = np.argmax(np.stack(votes), axis=0)
        forced = probe_forced[0]
        if self._request.known is None:  # then they hold for all rows, and are not checked
            is_forced = forced != UNDECIDED
            most_common[..., is_forced] = np.where(forced == ABSTAIN, 2, forced)[is_forced]
        open_columns = self._tables.open_columns[:, None]
        self._columns = np.where(most_common == 2, open_columns, most_common).astype(np.int8)
        self._added, self._added_zeros = self._add_guesses()
        n_with_zeros = 0 if zeros is None else len(zeros)
        if n_with_zeros < len(self._columns) and self._request.known is None:
            self._guess_limits = self._limits_for_guess(forced == UNDECIDED)

    def _limits_for_guess(self, undecided: NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
        """Limits of sums within which each label is certainly decided as guessed.

        They are (sum ^ flip) >= least, where flip is 0, or -1 for an upper limit, since ~x >= ~y is
        x <= y. Both are (values, strategies, width).
        """
        columns, n_lanes = self._columns, 2 * len(self._order)
        shape = (*columns.shape[:2], self._layout.width + STEP)
        flip, least = np.zeros(shape, np.int64), np.full(shape, -INFINITE)
        upper_cut, lower_cut = self._cuts + self._bands[:, None], self._cuts - self._bands[:, None]
        zero, one = undecided & (columns == 0), undecided & (columns == 1)
        is_open = undecided & ~(zero | one)
        lower, upper = slice(0, n_lanes, 2), slice(1, n_lanes, 2)
        flip[..., lower], flip[..., upper] = np.where(zero | is_open, -1, 0), np.where(zero, -1, 0)
        least[..., lower] = np.select(
            [one, zero, is_open], [upper_cut + 1, ~upper_cut, ~(lower_cut - 1)], -INFINITE
        )
        least[..., upper] = np.select([zero, is_open], [~(lower_cut - 1), upper_cut + 1], -INFINITE)
        return flip, least

    def _add_guesses(self) -> tuple[IntArray, IntArray]:
        """Sums and zero factors that guesses add to later labels: (values, strategies, width)."""
        from credalchain.chains.naive.engine import walk_kernels as kernels  # imports numba

        pairs = self._tables.pairs
        shape = (*self._columns.shape[:2], self._layout.width)
        added, added_zeros = (np.zeros(shape, dtype=np.int64) for _ in range(2))
        for table, total in ((pairs.values, added), (pairs.zeros, added_zeros)):
            if table is not None and table.size:
                kernels.add_guesses(table, self._columns[: len(table)], total)
        return added, added_zeros

    # -- what rounding cannot decide ----------------------------------------------------

    def _settle_row(
        self, v: int, strategy_index: int, row: int, sums: IntArray, zeros: Any, forced: Labels
    ) -> None:
        """Walk one row, for one strategy and s, again until no sum is too close to a threshold."""
        part = (slice(v, v + 1), slice(strategy_index, strategy_index + 1))
        stuck = np.empty((1, 1, 1), dtype=np.int32)
        while self._walk_part(part, row, sums, zeros, forced, stuck):
            t = int(stuck[0, 0, 0])
            comparator = self._comparator(strategy_index, v)
            if comparator.is_available:
                signs = self._exact_signs(comparator, self.labels[strategy_index, v, row], row, t)
            else:
                signs = self._rounded_signs(v, strategy_index, row, sums, zeros, t)
            lower, upper = (np.array([sign], dtype=np.int8) for sign in signs)
            forced[0, t] = labels_from_signs(lower, upper, precise=self._request.precise)[0]

    def _comparator(self, strategy_index: int, v: int) -> ExactComparator:
        if (strategy_index, v) not in self._comparators:
            request = self._request
            self._comparators[strategy_index, v] = self._make_comparator(
                self._codes, request.s_values[v], request.strategies[strategy_index]
            )
        return self._comparators[strategy_index, v]

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
        self, v: int, strategy_index: int, row: int, sums: IntArray, zeros: Any, t: int
    ) -> tuple[int, int]:
        """Signs from the rounded sums, for a strategy without exact odds."""
        lanes = slice(2 * t, 2 * t + 2)
        earlier = np.arange(t if self._request.chained else 0)
        labels = self.labels[strategy_index, v, row, self._order[earlier]]
        columns = np.where(labels == ABSTAIN, self._tables.open_columns[strategy_index], labels)
        earlier, columns = earlier[columns >= 0], columns[columns >= 0]
        pairs = self._tables.pairs
        values = sums[0, 0, lanes] + pairs.values[v, earlier, columns, lanes].sum(axis=0)
        factors = None if zeros is None else zeros[0, 0, lanes]
        if factors is not None and pairs.zeros is not None:
            factors = factors + pairs.zeros[v, earlier, columns, lanes].sum(axis=0)
        signs = resolve_zero_factors(np.sign(values - self._cuts[t]), factors, -1, 1)
        lower, upper = signs.tolist()
        return lower, upper
