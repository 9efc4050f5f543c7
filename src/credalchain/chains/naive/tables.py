"""Tables of what every observation adds to the log-odds of every label, for one s.

An observation is a category of a feature, or another label as 0 or as 1. With n(v, a), D and K from
the counts, ``idm_bounds`` gives lower and upper P(v | a), and seeing v adds

    log lower(v | 1) - log upper(v | 0)    to the lower log-odds,
    log upper(v | 1) - log lower(v | 0)    to the upper log-odds.

A bound depends on n, D and K alone, and a table has ten times as many cells as there are different
triples of these. So triples are numbered once, for all values of s; numpy takes the logarithms of
their bounds; and a table is filled by looking up and subtracting. ``kernels`` says how it is laid
out.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.array_types import FloatArray, IntArray
from credalchain.chains.naive.counts import (
    NEVER_SEEN,
    NO_DATA,
    SAYS_NOTHING,
    ChainCounts,
    aligned,
    table_rows,
)
from credalchain.chains.naive.formulas import (
    LARGEST_TERM,
    ZERO_IN_DENOMINATOR,
    ZERO_IN_NUMERATOR,
    FixedPoint,
    FixedTable,
    NaiveSettings,
    alike,
    idm_bounds,
    total,
)
from credalchain.chains.strategies import Strategy, greatest_log_odds, least_log_odds

LANES = 16  # of a block of eight labels
_MAX_SLOTS = 2**14


class ChainTables(NamedTuple):
    """All tables for one s, some strategies and one order of the labels.

    ``start`` (blocks, 16) is the prior, and what code 0 of sparse features adds; ``features`` is
    (blocks, rows, 16). Either all tables have zero factors or none has.

    For walks in any order, ``pairs`` is (m, 3, m, 2): a label as 0, as 1, and left open. For walks
    along the order, ``start`` has all labels as 0, and row ``told_rows[strategy, answer, t]`` of
    ``pairs`` (blocks, rows, 16) what another answer adds to that. There are no pairs where labels
    are not conditioned on each other.
    """

    order: IntArray
    scale: FixedPoint
    start: FixedTable
    features: FixedTable
    pairs: FixedTable
    told_rows: IntArray

    def relative_to(self, answers: IntArray) -> "ChainTables":
        """Put each label into ``start`` as the first strategy's ``answers`` (m,), not as 0.

        Rows of ``pairs`` hold differences from that, and the row of such an answer is now for 0.
        """
        m = len(self.order)
        told = self.told_rows[0, answers, np.arange(m)]
        changed = np.flatnonzero(told >= 0)
        rows = told[changed]
        if not len(rows):
            return self
        told_rows = np.where(self.told_rows == told, -1, self.told_rows)
        told_rows[:, 0, changed] = rows

        def shift(pairs: IntArray) -> IntArray:
            added = np.zeros((len(pairs), m, LANES), dtype=np.int64)
            added[:, changed] = pairs[:, rows]
            shifted = (pairs.reshape(len(pairs), -1, m, LANES) - added[:, None]).reshape(
                pairs.shape
            )
            shifted[:, rows] = -added[:, changed]
            return shifted

        start = total([self.start, self.pairs.map(lambda pairs: pairs[:, rows].sum(axis=1))])
        return self._replace(start=start, pairs=self.pairs.map(shift), told_rows=told_rows)


class TableSpec(NamedTuple):
    """Purpose of a set of tables.

    ``forward``: for walks along ``order``. ``has_unseen``: some codes are missing or were never
    seen. ``conservative``: a missing feature may have been any of its categories.
    """

    strategies: tuple[Strategy, ...]
    order: tuple[int, ...]
    chained: bool
    forward: bool
    has_unseen: bool
    conservative: bool


class TableSource:
    """Builds tables for any s.

    ``rows`` are the rows of the feature table that sparse codes refer to, None for dense codes.
    """

    def __init__(
        self, counts: ChainCounts, settings: NaiveSettings, spec: TableSpec, rows: IntArray | None
    ) -> None:
        self._counts, self._settings, self._spec, self._rows = counts, settings, spec, rows
        self._order = np.array(spec.order, dtype=np.int64)
        self._scale = FixedPoint.for_terms(len(counts.n_categories), len(spec.order))
        self._needs_worst_case = spec.has_unseen and spec.conservative
        self._merges = {strategy.merge: strategy for strategy in spec.strategies}
        self._told_rows = np.full((len(spec.strategies), 3, len(spec.order)), -1)
        if spec.chained:
            columns = [(0, 1 + list(self._merges).index(each.merge)) for each in spec.strategies]
            self._told_rows[:, 1:] = np.array(columns)[..., None] * len(spec.order)
            self._told_rows[:, 1:] += np.arange(len(spec.order))
        # of sparse features, rows hold the difference from code 0; the worst case needs all codes
        has_zero_codes = rows is not None and not self._needs_worst_case
        self._n_zero_codes = len(counts.n_categories) if has_zero_codes else 0

    def tables(self, values: tuple[float, ...]) -> Iterator[ChainTables]:
        """Yield tables for one value of s after the other."""
        epsilons = self._settings.epsilon_for(values).tolist()
        return map(self._tables, values, epsilons, self._priors(values))

    def _tables(self, s: float, epsilon: float, prior: FixedTable) -> ChainTables:
        from credalchain.chains.naive import kernels  # imports numba

        numbers, first_labels, bases, triples = self.evidence
        n_blocks, tables = len(prior.values), []
        n_pairs = 2 * len(self._order) if self._spec.chained else 0
        shape = (n_blocks, numbers.shape[1] - self._n_zero_codes, LANES)
        starts: list[Any] = list(prior)
        for at, logs in enumerate(_logarithms(triples, s, epsilon, self._scale)):
            if at == len(starts):
                starts.append(np.zeros_like(starts[0]))
            begin, table = starts[at].reshape(-1), aligned(shape)
            zero, one = numbers[:, : self._n_zero_codes].transpose(2, 0, 1)
            begin[: 2 * len(one) : 2] += (logs[0][one, 0] - logs[1][zero, 1]).sum(axis=1)
            begin[1 : 2 * len(one) : 2] += (logs[0][one, 1] - logs[1][zero, 0]).sum(axis=1)
            table[:, shape[1] - n_pairs :] = 0  # all of it will be read
            kernels.fill_table(numbers, first_labels, bases, *logs, table)
            tables.append(table)
        start, features = FixedTable(starts), FixedTable(tables)
        pairs = FixedTable([np.empty((n_blocks, 0, LANES), dtype=np.int64)])
        if self._spec.chained:
            start, pairs = self._pairs(start, features)
        if self._needs_worst_case:
            start, features = self._worst_case(start, features)
        start, features, pairs = alike([start, features, pairs])
        return ChainTables(self._order, self._scale, start, features, pairs, self._told_rows)

    def _priors(self, values: tuple[float, ...]) -> Iterator[FixedTable]:
        """Compute (blocks, 16) for each s: where lower and upper log-odds of each label start."""
        n0, n1 = self._counts.label[self._order].T
        log_odds = np.zeros((len(values), -(-2 * len(n0) // LANES), LANES))
        by_label = log_odds.reshape(len(values), -1)[:, : 2 * len(n0)]
        odds = self._settings.prior.odds(n0, n1, np.array(values)[:, None])
        for bound, (numerator, denominator) in enumerate(odds):
            with np.errstate(divide="ignore", invalid="ignore"):  # log 0, and its differences
                by_label[:, bound::2] = np.log(numerator) - np.log(denominator)
        _check_size(by_label, f"prior {self._settings.prior.name!r}")
        table = FixedTable.from_log_odds(log_odds, self._scale)
        return map(FixedTable, zip(*table, strict=True))

    # -- observations ------------------------------------------------------------------

    @cached_property
    def evidence(self) -> tuple[NDArray[np.int32], IntArray, IntArray, FloatArray]:
        """Number all observations: code 0 of sparse features, then what has a row in the table.

        Numbers (m, observations, 2) are of triples (3, triples), the last value; the others are
        ``starts`` and ``bases`` as in ``fill_table``. Nothing of it depends on s.
        """
        from credalchain.chains.naive import kernels  # imports numba

        observed = [self._feature_observations()]
        if self._spec.chained:
            observed.append(self._pair_observations())
        m, n_zero_codes = len(self._order), self._n_zero_codes
        starts = np.concatenate([part[-1] for part in observed])
        numbers = np.zeros((m, len(starts), 2), dtype=np.int32)
        triples = np.empty((1 + numbers.size, 3), dtype=np.int64)  # unused memory is not taken
        triples[0] = 1  # K = 1: what has one category says nothing
        cache = np.zeros((2, min(_MAX_SLOTS, 2 ** numbers.size.bit_length())), dtype=np.int32)
        n_triples, first = 1, 0
        for part in observed:
            arguments = *part, self._order, first, cache, n_triples, triples, numbers
            n_triples, first = kernels.number_triples(*arguments), first + len(part[-1])
        bases = np.full(len(starts), -1)
        if n_zero_codes:
            variables = observed[0][4][n_zero_codes:]
            bases[n_zero_codes : n_zero_codes + len(variables)] = variables
        columns = triples[:n_triples].T.astype(np.float64, order="C")
        return numbers, starts, bases, columns

    def _feature_observations(self) -> tuple[Any, ...]:
        """List every category of every feature, and unseen and missing codes where they occur.

        The first arguments of ``number_triples``: counts, and what observations are about.
        """
        counts, n_categories = self._counts, self._counts.n_categories
        n_rows, offsets = table_rows(n_categories, self._spec.has_unseen)
        variables = np.repeat(np.arange(len(n_categories)), n_rows)
        code = np.arange(len(variables)) - offsets[variables]
        first, limits = np.cumsum(n_categories) - n_categories, n_categories[variables]
        sources = np.where(code < limits, first[variables] + code, NEVER_SEEN)
        sources[(limits < 2) | (code > limits)] = SAYS_NOTHING
        if self._n_zero_codes:
            zero_codes = np.where(n_categories < 2, SAYS_NOTHING, first)
            variables = np.concatenate([np.arange(len(n_categories)), variables[self._rows]])
            sources = np.concatenate([zero_codes, sources[self._rows]])
        totals, starts = counts.feature_totals, np.zeros_like(sources)
        return counts.feature, totals, totals, n_categories, variables, sources, starts

    def _pair_observations(self) -> tuple[Any, ...]:
        """List every label as 0, then every label as 1; one never observed says nothing."""
        counts, order, m = self._counts, self._order, len(self._order)
        pair = np.ascontiguousarray(counts.pair[order])
        denominators = self._settings.denominator.totals(counts)[order]
        variables = np.tile(np.arange(m), 2)
        never_observed = counts.label[order].sum(axis=1) == 0
        sources = 2 * variables + np.repeat([0, 1], m)
        return (
            pair.reshape(2 * m, m, 2),
            pair.sum(axis=1, dtype=pair.dtype),
            np.ascontiguousarray(denominators, dtype=pair.dtype),
            np.full(m, 2, dtype=np.int64),
            variables,
            np.where(never_observed[variables], SAYS_NOTHING, sources),
            variables + 1 if self._spec.forward else np.zeros_like(variables),
        )

    # -- what is made of a table -------------------------------------------------------

    def _pairs(self, start: FixedTable, table: FixedTable) -> tuple[FixedTable, FixedTable]:
        """Return ``start`` and ``pairs`` as :class:`ChainTables` has them."""
        m = len(self._order)
        zero, one = table.take(np.s_[:, -2 * m : -m]), table.take(np.s_[:, -m:])
        if_zero, if_one = (
            (lanes[..., 0::2], lanes[..., 1::2])
            for lanes in (zero.log_odds(self._scale), one.log_odds(self._scale))
        )
        nothing, answers = np.zeros_like(if_zero[0]), [zero, one]
        for strategy in self._merges.values():
            assert strategy.merge is not None
            merged = strategy.merge(if_zero, if_one, (nothing, nothing))
            open_terms, name = np.empty(zero.values.shape), f"merge of strategy {strategy.name!r}"
            try:
                open_terms[..., 0::2], open_terms[..., 1::2] = merged
            except (TypeError, ValueError):
                raise ValueError(
                    f"{name} must give (lower, upper), two arrays of the shape of if_zero[0]; "
                    f"got {merged!r}."
                ) from None
            _check_size(open_terms, name)
            answers.append(FixedTable.from_log_odds(open_terms, self._scale))
        starts: list[IntArray] = []
        pairs: list[IntArray] = []
        for first, *parts in zip(*alike([start, *answers]), strict=True):
            if self._spec.forward:
                starts.append(first + parts[0].sum(axis=1))
                added = np.empty((len(first), len(parts) - 1, m, LANES), dtype=np.int64)
                for at, part in enumerate(parts[1:]):
                    np.subtract(part, parts[0], out=added[:, at])
                pairs.append(added.reshape(len(first), -1, LANES))
            else:  # (m, answers, m, 2) of (blocks, m, 16) each
                by_label = np.stack(parts).transpose(2, 0, 1, 3).reshape(m, len(parts), -1)
                starts.append(first)
                pairs.append(by_label[..., : 2 * m].reshape(m, len(parts), m, 2))
        return FixedTable(starts), FixedTable(pairs)

    def _worst_case(self, start: FixedTable, table: FixedTable) -> tuple[FixedTable, FixedTable]:
        """Fill the last row of each feature, for a missing one: the worst over its categories.

        For sparse codes, ``start`` with all codes 0, and differences from these.
        """
        n_rows, offsets = table_rows(self._counts.n_categories, self._spec.has_unseen)
        log_odds = table.take(np.s_[:, : n_rows.sum()]).log_odds(self._scale)
        for begin, last in zip(offsets.tolist(), (offsets + n_rows - 1).tolist(), strict=True):
            categories = log_odds[:, begin : last - 1].swapaxes(0, 1)
            log_odds[:, last, 0::2] = least_log_odds(categories[..., 0::2])
            log_odds[:, last, 1::2] = greatest_log_odds(categories[..., 1::2])
        table, rows = FixedTable.from_log_odds(log_odds, self._scale), self._rows
        if rows is None:
            return start, table
        start = total([start, table.map(lambda lanes: lanes[:, offsets].sum(axis=1))])
        bases = np.repeat(offsets, n_rows)[rows]
        return start, table.map(lambda lanes: lanes[:, rows] - lanes[:, bases])


def _logarithms(
    triples: FloatArray, s: float, epsilon: float, scale: FixedPoint
) -> list[tuple[IntArray, IntArray]]:
    """Compute logarithms of bounds as integers (triples, 2), and their zeros if there are any.

    A cell of a table is ``one[i] - zero[k]`` of a pair, with the triples i of class 1 and k of
    class 0, whose bounds are swapped. The logarithm of a zero is 0, and it is counted as a zero
    factor.
    """
    n, denominator, n_categories = triples
    bounds = np.empty((len(n), 2))
    with np.errstate(divide="ignore", invalid="ignore"):  # 0/0, replaced at once
        bounds[:, 0], bounds[:, 1] = idm_bounds(
            np.maximum(n, 0), denominator, n_categories, s, epsilon
        )
    if s == 0:  # a conditional without data: uniform
        bounds[n == NO_DATA] = 1.0 / n_categories[n == NO_DATA, None]
    zeros = None
    if epsilon == 0 and not bounds.all():
        zeros = bounds == 0
        bounds[zeros] = 1.0
    np.log(bounds, out=bounds)
    bounds *= scale.unit
    logs = np.rint(bounds, out=bounds).astype(np.int64)
    logs[0] = 0
    if zeros is None:
        return [(logs, logs)]
    return [(logs, logs), (zeros * ZERO_IN_NUMERATOR, zeros * -ZERO_IN_DENOMINATOR)]


def _check_size(log_odds: FloatArray, name: str) -> None:
    if -LARGEST_TERM < log_odds.min(initial=0) <= log_odds.max(initial=0) < LARGEST_TERM:
        return  # nor is any NaN
    finite = log_odds[np.isfinite(log_odds)]
    if finite.size and np.abs(finite).max() >= LARGEST_TERM:
        raise ValueError(
            f"{name} must give log-odds below {LARGEST_TERM:g} in size (or infinite), "
            f"got {finite[np.abs(finite).argmax()]}."
        )
