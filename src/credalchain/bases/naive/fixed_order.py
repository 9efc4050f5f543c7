"""The compiled walk along a chain of fixed order; equals the plain walk bit for bit."""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from credalchain import _kernels
from credalchain._kernels.states import FREE, INFINITE, STAR, STEP
from credalchain.bases.naive.codes import Codes, IntArray
from credalchain.bases.naive.settler import Settler, rounded_sides
from credalchain.bases.naive.tables import ChainTables
from credalchain.bases.naive.walk import StartSums, fixed_thresholds
from credalchain.bases.protocol import Labels, Request, decide
from credalchain.bases.threads import for_each_chunk
from credalchain.labels import MISSING
from credalchain.strategies import Strategy

if TYPE_CHECKING:
    from credalchain.bases.naive.model import NaiveChainModel

_SUMS_PER_CHUNK = 2**18  # 64-bit sums of one chunk of rows, for one s: two megabytes
_PILOTS, _ROWS_A_PILOT = 64, 16
_NOT_EXPECTED = np.empty((0, 0, 0), dtype=np.int64)
_MANY_LABELS = 8  # from here on, guessing what most rows say saves more than it costs


class FixedOrderPass:
    """One pass over the features of a batch, then a walk for every strategy and value of s.

    ``settler`` makes what settles ties, given the numbers of a strategy and a value of s.
    ``labels`` is (values of s, strategies, n, m), ``log_odds`` (strategies, n, m, 2), or
    without rows where nobody asked.
    """

    def __init__(
        self,
        model: "NaiveChainModel",
        codes: Codes,
        tables: ChainTables,
        strategies: tuple[Strategy, ...],
        settler: Callable[[int, int], Settler],
        request: Request,
    ) -> None:
        self._tables, self._request = tables, request
        self._settler = cache(settler)
        self._order = tables.order
        self._start = StartSums(codes, tables)
        self._never = model.never_observed()
        self._cuts = fixed_thresholds(request.thresholds, tables.scale)[tables.order]
        self._bands = np.array(
            [tables.scale.band if one.star_exact else 0 for one in strategies], dtype=np.int64
        )
        self._star_columns = tables.star_columns
        n, m = codes.n_rows, len(self._order)
        n_strategies, n_values = len(strategies), tables.layout.n_values
        self._guess = np.full((n_values, n_strategies, m), -1, dtype=np.int8)
        nothing = np.zeros((n_values, n_strategies, tables.layout.width), dtype=np.int64)
        self._told = nothing, nothing
        self._expected = _NOT_EXPECTED, _NOT_EXPECTED
        self.labels = np.empty((n_values, n_strategies, n, m), dtype=np.int8)
        self.log_odds = np.empty((n_strategies, n if request.wants_log_odds else 0, m, 2))
        self._run(n)

    def _run(self, n_rows: int) -> None:
        n_pilots = min(_PILOTS, n_rows // _ROWS_A_PILOT)
        pilots_help = n_pilots > 1 and len(self._order) >= _MANY_LABELS
        size = max(16, _SUMS_PER_CHUNK // self._tables.layout.width)
        if n_rows <= size and self._request.n_jobs == 1:  # pilots are among the rows
            sums = self._start.of(0, n_rows)
            if pilots_help:
                self._guess_from(n_pilots, *sums)
            self._walk(0, n_rows, *sums)
        else:
            if pilots_help:
                self._guess_from(n_pilots, *self._start.of(0, n_pilots))
            for_each_chunk(
                n_rows,
                size,
                self._request.n_jobs,
                lambda first, stop: self._walk(first, stop, *self._start.of(first, stop)),
            )
        if len(self.log_odds[0]):
            self.log_odds[:, :, self._never] = (-np.inf, np.inf)

    def _walk(self, first: int, stop: int, sums: IntArray, zeros: IntArray) -> None:
        forced = self._forced(first, stop)
        expected = self._request.known is None  # else the rules differ from row to row
        stuck = self._walk_rows(first, stop - first, sums, zeros, forced, expected=expected)
        if stuck is None:
            return
        for q, which, row in np.argwhere(stuck < len(self._order)).tolist():
            place = (slice(q, q + 1), slice(row, row + 1))
            rules = forced[row % len(forced)][None].copy()
            self._settle_row(which, q, first + row, sums[place], zeros[place], rules)

    def _walk_rows(
        self,
        first: int,
        n_rows: int,
        sums: IntArray,
        zeros: IntArray,
        forced: Labels,
        *,
        expected: bool = False,
    ) -> NDArray[np.int32] | None:
        """Labels, and log-odds if wanted, of ``n_rows`` rows; where rows got stuck, if any did.

        ``sums`` begin with row ``first``; zero factors are there for the first values only.
        """
        n_values, n_strategies, _ = self._guess.shape
        stuck = np.empty((n_values, n_strategies, n_rows), dtype=np.int32)
        any_stuck = False
        for values in (slice(0, len(zeros)), slice(len(zeros), n_values)):
            if values.start == values.stop:
                continue
            some_zeros = zeros[values] if values.start == 0 and len(zeros) else None
            any_stuck |= self._walk_part(
                (values, slice(None)),
                first,
                sums[values],
                some_zeros,
                forced,
                stuck[values],
                expected=expected,
            )
        return stuck if any_stuck else None

    def _walk_part(
        self,
        part: tuple[slice, slice],
        first: int,
        sums: IntArray,
        zeros: IntArray | None,
        forced: Labels,
        stuck: NDArray[np.int32],
        *,
        expected: bool = False,
    ) -> bool:
        """The same for some values of s and strategies; whether any row got stuck."""
        tables, (values, strategies) = self._tables, part
        told, told_zeros = self._told
        width, pair_zeros = tables.layout.width, tables.pairs.zeros
        flip, least = self._expected if expected and zeros is None else (_NOT_EXPECTED,) * 2
        return _kernels.walk_chain(
            sums,
            zeros,
            tables.pairs.values[values],
            pair_zeros[values] if zeros is not None and len(pair_zeros) else None,
            self._guess[part],
            told[part],
            told_zeros[part] if zeros is not None else None,
            self._cuts,
            self._bands[strategies],
            self._star_columns[strategies],
            forced,
            flip[values],
            least[values],
            1.0 / tables.scale.unit,  # a power of two, so exact
            self._order,
            first,
            np.empty(width + STEP, dtype=np.int64),
            np.empty(width, dtype=np.int64) if zeros is not None else None,
            np.empty(stuck.shape[2], dtype=np.bool_),
            self.labels[part],
            self.log_odds[strategies],
            stuck,
        )

    def _forced(self, first: int, stop: int) -> Labels:
        """(1 or rows, m) in chain order: labels that are known, or that nobody ever observed."""
        forced = np.full((1, len(self._order)), FREE, dtype=np.int8)
        forced[:, self._never] = 0 if self._request.precise else STAR
        if self._request.known is not None:
            known = self._request.known[first:stop]
            forced = np.where(known == MISSING, forced, known)
        return np.ascontiguousarray(forced[:, self._order])

    # -- what most rows say ------------------------------------------------------------

    def _guess_from(self, n_pilots: int, sums: IntArray, zeros: IntArray) -> None:
        """Each label's commonest answer among the first rows; those that got stuck do not vote."""
        stuck = self._walk_rows(0, n_pilots, sums, zeros, self._forced(0, n_pilots))
        answers = self.labels[:, :, :n_pilots, self._order]
        if stuck is not None:
            answers = np.where(stuck[..., None] < len(self._order), FREE, answers)
        # pilots are few enough for the smallest counters
        votes = [(answers == y).view(np.int8).sum(axis=2, dtype=np.int8) for y in (0, 1, STAR)]
        commonest = np.argmax(np.stack(votes), axis=0)
        rules = self._forced(0, 1)[0]
        if self._request.known is None:  # then rules hold for all rows, and nobody checks them
            commonest[..., rules != FREE] = np.where(rules == STAR, 2, rules)[rules != FREE]
        columns = np.where(commonest == 2, self._star_columns[:, None], commonest)
        self._guess = columns.astype(np.int8)
        self._told = self._tell_guesses()
        if len(zeros) < len(self._guess) and self._request.known is None:
            self._expected = self._expect()

    def _expect(self) -> tuple[IntArray, IntArray]:
        """Where sums must lie for each label to be decided as guessed, beyond doubt.

        That is (sum ^ flip) >= least, where flip is 0, or -1 to turn the least into the greatest:
        ~x >= ~y is x <= y. Both are (values, strategies, width).
        """
        guess, n_lanes = self._guess, 2 * len(self._order)
        shape = (*guess.shape[:2], self._tables.layout.width + STEP)
        flip, least = np.zeros(shape, np.int64), np.full(shape, -INFINITE)
        above, below = self._cuts + self._bands[:, None], self._cuts - self._bands[:, None]
        free = self._forced(0, 1)[0] == FREE
        no, yes = free & (guess == 0), free & (guess == 1)
        star = free & ~(no | yes)
        lower, upper = slice(0, n_lanes, 2), slice(1, n_lanes, 2)
        flip[..., lower], flip[..., upper] = np.where(no | star, -1, 0), np.where(no, -1, 0)
        least[..., lower] = np.select([yes, no, star], [above + 1, ~above, ~(below - 1)], -INFINITE)
        least[..., upper] = np.select([no, star], [~(below - 1), above + 1], -INFINITE)
        return flip, least

    def _tell_guesses(self) -> tuple[IntArray, IntArray]:
        """What all guesses tell the labels after them: (values, strategies, width) twice."""
        layout, pairs = self._tables.layout, self._tables.pairs
        shape = (*self._guess.shape[:2], layout.width)
        told, told_zeros = (np.zeros(shape, dtype=np.int64) for _ in range(2))
        for table, total in ((pairs.values, told), (pairs.zeros, told_zeros)):
            if table.size:
                _kernels.tell_guesses(table, self._guess[: len(table)], total)
        return told, told_zeros

    # -- what rounding cannot decide ----------------------------------------------------

    def _settle_row(
        self, which: int, q: int, row: int, sums: IntArray, zeros: IntArray, rules: Labels
    ) -> None:
        """Walk one row, for one strategy and s, again and again until nothing is too close."""
        part = (slice(q, q + 1), slice(which, which + 1))
        stuck = np.empty((1, 1, 1), dtype=np.int32)
        own = zeros if len(zeros) else None
        while self._walk_part(part, row, sums, own, rules, stuck):
            at = int(stuck[0, 0, 0])
            settler = self._settler(which, q)
            if settler.exact:
                sides = self._exact_sides(settler, self.labels[q, which, row], row, at)
            else:
                sides = self._rounded_sides(which, q, row, sums, zeros, at)
            low, high = (np.array([side], dtype=np.int8) for side in sides)
            rules[0, at] = decide(low, high, precise=self._request.precise)[0]

    def _exact_sides(self, settler: Settler, answers: Labels, row: int, at: int) -> tuple[int, int]:
        j = int(self._order[at])
        history = np.full(len(self._order), FREE, dtype=np.int8)
        if self._request.chained:
            told = self._order[:at]
            history[told] = answers[told]
        return settler.sides(row, j, history, float(self._request.thresholds[j]))

    def _rounded_sides(
        self, which: int, q: int, row: int, sums: IntArray, zeros: IntArray, at: int
    ) -> tuple[int, int]:
        """Where the strategy has no exact odds, the rounded sums are all there is."""
        lanes = slice(2 * at, 2 * at + 2)
        told = np.arange(at if self._request.chained else 0)
        answers = self.labels[q, which, row, self._order[told]]
        columns = np.where(answers == STAR, self._star_columns[which], answers)
        told, columns = told[columns >= 0], columns[columns >= 0]
        pairs = self._tables.pairs
        values = sums[0, 0, lanes] + pairs.values[q, told, columns, lanes].sum(axis=0)
        noughts = zeros[0, 0, lanes] if len(zeros) else None
        if noughts is not None and pairs.has_zeros:
            noughts = noughts + pairs.zeros[q, told, columns, lanes].sum(axis=0)
        low, high = rounded_sides(values, noughts, int(self._cuts[at]), 0).tolist()
        return low, high
