"""Tables of what every observation adds to the log-odds of every label.

An observation is a category of a feature, or another label as 0 or as 1. With n(v, a), D and K from
the counts, ``idm_bounds`` gives lower and upper P(v | a), and seeing v adds

    log lower(v | 1) - log upper(v | 0)    to the lower log-odds,
    log upper(v | 1) - log lower(v | 0)    to the upper log-odds.

Small tables for a single s are built here with numpy, so that a first answer has little to compile,
and cached. Large ones, and those for many values of s, are built by ``compiled_terms.py``.
"""

from typing import Any, NamedTuple

import numpy as np

from credalchain._utils.array_types import FloatArray, IntArray
from credalchain.chains.naive.codes import aligned, table_rows
from credalchain.chains.naive.counts import ChainCounts
from credalchain.chains.naive.engine.layout import (
    LARGEST_TERM,
    NEVER_SEEN,
    SAYS_NOTHING,
    ZERO_IN_DENOMINATOR,
    ZERO_IN_NUMERATOR,
    FixedPoint,
    FixedTable,
    Layout,
    Observations,
    SValues,
    WholeTable,
)
from credalchain.chains.naive.formulas import NaiveSettings, idm_bounds
from credalchain.chains.strategies import (
    Strategy,
    greatest_log_odds,
    least_log_odds,
    merge_dropped,
    merge_widest,
)

_WORTH_COMPILING = 2**16  # cells: some milliseconds without kernels


class ChainTables(NamedTuple):
    """All tables for some values of s, some strategies and one order of the labels.

    Only the first values, those without epsilon, have zero factors; or all of them if the prior has
    some (or none).
    ``prior`` is (tiles, lanes). ``features`` has parts, see :class:`WholeTable`. ``pairs`` is
    (values of s, m, columns, width): what a label adds as 0, as 1 and left open; m is 0 where
    labels are not conditioned on each other. ``open_columns`` are the columns of an open label in
    each strategy, -1 where it adds nothing.
    """

    order: IntArray
    scale: FixedPoint
    layout: Layout
    zero_layout: Layout
    prior: FixedTable
    features: Any
    pairs: FixedTable
    open_columns: IntArray


class TableSpec(NamedTuple):
    """What tables are for.

    ``has_unseen``: some codes are missing or were never seen. ``forward``: each label
    conditions only those after it. ``conservative``: a missing feature may have been any of its
    categories.
    """

    strategies: tuple[Strategy, ...]
    order: tuple[int, ...]
    chained: bool
    forward: bool
    has_unseen: bool
    conservative: bool


class TableSource:
    """Builds tables for any values of s.

    ``rows`` are the rows of the feature table that sparse codes refer to, None for dense codes.
    ``cached`` tables are for one s and built whole; others are for many values, built a few labels
    at a time while they are used, and not kept.
    """

    def __init__(
        self,
        counts: ChainCounts,
        settings: NaiveSettings,
        spec: TableSpec,
        rows: IntArray | None,
        *,
        cached: bool,
        n_jobs: int,
    ) -> None:
        self._counts, self._settings, self._spec, self._rows = counts, settings, spec, rows
        self._order = np.array(spec.order, dtype=np.int64)
        self._scale = FixedPoint.for_terms(len(counts.n_categories), len(spec.order))
        self._cached, self._n_jobs = cached, n_jobs
        self._needs_worst_case = spec.has_unseen and spec.conservative
        self._open_columns = _open_columns(spec.strategies, forward=spec.forward)
        # whether compiled code implements the merge of every strategy
        self._all_compiled = all(
            strategy.merge in (merge_widest, merge_dropped) for strategy in spec.strategies
        )
        self._feature_terms = self._terms_for(self._feature_observations())
        self._pair_terms = self._terms_for(self._pair_observations()) if spec.chained else None

    def _terms_for(self, observations: Observations) -> Any:
        """Decides how a table is built: in numpy or by compiled code."""
        n_cells = len(self._order) * 2 * max(1, len(observations.sources))
        if self._cached and n_cells < _WORTH_COMPILING:
            return NumpyTerms(observations, self._scale)
        from credalchain.chains.naive.engine.compiled_terms import CompiledTerms  # imports numba

        return CompiledTerms(
            observations, self._scale, n_cells, reuse=not self._cached, n_jobs=self._n_jobs
        )

    def tables(self, values: tuple[float, ...]) -> ChainTables:
        """Tables for ``values`` in the order that ``groups`` returns."""
        epsilons = self._settings.epsilon_for(values)
        s_values = SValues(np.array(values), epsilons, int((epsilons == 0).sum()))
        layout = Layout.of(len(values), len(self._order))
        prior, features = (
            self._prior_table(s_values.values, layout),
            self._feature_table(s_values, layout),
        )
        pairs = self._pair_table(s_values, layout)
        any_zeros = features.has_zeros or prior.zeros is not None or pairs.zeros is not None
        # zero factors of a prior may occur with epsilon too
        n_with_zeros = (
            0
            if not any_zeros
            else s_values.n_without_epsilon
            if prior.zeros is None
            else len(values)
        )
        return ChainTables(
            order=self._order,
            scale=self._scale,
            layout=layout,
            zero_layout=Layout.of(n_with_zeros, len(self._order)),
            prior=prior,
            features=features,
            pairs=pairs,
            open_columns=self._open_columns,
        )

    def groups(self, values: tuple[float, ...], size: int) -> list[list[int]]:
        """Indices of values, at most ``size`` together, that can share tables.

        Values without epsilon come first, or stay among themselves where zero factors do not come
        from their counts alone.
        """
        epsilons = self._settings.epsilon_for(values)
        without_epsilon, with_epsilon = (
            np.flatnonzero(epsilons == 0).tolist(),
            np.flatnonzero(epsilons).tolist(),
        )
        n0, n1 = self._counts.label.T[:, :, None]
        odds = self._settings.prior.odds(n0, n1, np.array(values))
        finite = all(np.all((part > 0) & (part < np.inf)) for bound in odds for part in bound)
        mixes = self._all_compiled and not self._needs_worst_case and finite
        return [
            indices[first : first + size]
            for indices in (
                [without_epsilon + with_epsilon] if mixes else [without_epsilon, with_epsilon]
            )
            for first in range(0, len(indices), size)
        ]

    # -- prior -------------------------------------------------------------------------

    def _prior_table(self, values: FloatArray, layout: Layout) -> FixedTable:
        """(tiles, lanes): where the lower and the upper log-odds of each label start."""
        n0, n1 = self._counts.label[self._order].T[:, :, None]
        log_odds = np.zeros((layout.n_tiles, layout.tile_labels, layout.n_values, 2))
        by_label = log_odds.reshape(-1, layout.n_values, 2)[: len(self._order)]
        for bound, (numerator, denominator) in enumerate(self._settings.prior.odds(n0, n1, values)):
            with np.errstate(divide="ignore", invalid="ignore"):  # log 0, and its differences
                by_label[:, :, bound] = np.log(numerator) - np.log(denominator)
        finite = by_label[np.isfinite(by_label)]
        if finite.size and np.abs(finite).max() >= LARGEST_TERM:
            raise ValueError(
                f"prior {self._settings.prior.name!r} must give log-odds below {LARGEST_TERM:g} in "
                f"size (or infinite), got {finite[np.abs(finite).argmax()]}."
            )
        return FixedTable.from_log_odds(log_odds.reshape(layout.n_tiles, -1), self._scale)

    # -- features ----------------------------------------------------------------------

    def _feature_observations(self) -> Observations:
        """Every category of every feature, and unseen and missing codes where they occur."""
        counts, n_categories = self._counts, self._counts.n_categories
        n_rows, offsets = table_rows(n_categories, self._spec.has_unseen)
        variables = np.repeat(np.arange(len(n_categories)), n_rows)
        code = np.arange(len(variables)) - offsets[variables]
        first, limits = np.cumsum(n_categories) - n_categories, n_categories[variables]
        sources = np.where(code < limits, first[variables] + code, NEVER_SEEN)
        sources[(limits < 2) | (code > limits)] = SAYS_NOTHING
        n_zero_codes = 0
        # the worst case needs all categories
        if self._rows is not None and not self._needs_worst_case:
            n_zero_codes = len(n_categories)
            zero_codes = np.where(n_categories < 2, SAYS_NOTHING, first)
            variables = np.concatenate([np.arange(n_zero_codes), variables[self._rows]])
            sources = np.concatenate([zero_codes, sources[self._rows]])
        totals = counts.feature_totals
        return Observations(
            variables,
            sources,
            counts.feature,
            totals,
            totals,
            n_categories,
            self._order,
            np.full(len(self._order), len(sources)),
            n_zero_codes,
        )

    def _feature_table(self, s_values: SValues, layout: Layout) -> Any:
        if not self._cached and not self._needs_worst_case:
            return self._feature_terms.streamed(s_values, layout)
        table = self._feature_terms.whole(s_values, layout)
        if not self._needs_worst_case:
            return table
        n_rows, offsets = table_rows(self._counts.n_categories, self._spec.has_unseen)
        _fill_missing(table.rows, self._scale, n_rows, offsets)
        if self._rows is None:
            return table
        return _relative_to_zero_codes(table.rows, np.repeat(offsets, n_rows), offsets, self._rows)

    # -- pairs of labels ---------------------------------------------------------------

    def _pair_observations(self) -> Observations:
        """Every label as 0 and as 1; one that was never observed says nothing."""
        counts, order, m = self._counts, self._order, len(self._order)
        pair = np.ascontiguousarray(counts.pair[order])
        variables = np.repeat(np.arange(m), 2)
        never_observed = counts.label[order].sum(axis=1) == 0
        return Observations(
            variables,
            np.where(never_observed[variables], SAYS_NOTHING, np.arange(2 * m)),
            pair.reshape(2 * m, m, 2),
            pair.sum(axis=1, dtype=pair.dtype),
            np.ascontiguousarray(
                self._settings.denominator.totals(counts)[order], dtype=pair.dtype
            ),
            np.full(m, 2, dtype=np.int64),
            order,
            np.full(m, 2 * m) if self._cached else 2 * np.arange(m),
        )

    def _pair_table(self, s_values: SValues, layout: Layout) -> FixedTable:
        """(values of s, m, columns, width): columns 0, 1, and those of open labels."""
        n_columns = 1 + max(1, int(self._open_columns.max()))
        shape = (layout.n_values, layout.n_labels, n_columns, layout.width)
        if self._pair_terms is None:
            return FixedTable(np.zeros((shape[0], 0, *shape[2:]), dtype=np.int64))
        if self._cached:
            table = _pairs_for_walk(self._pair_terms.whole(s_values, layout).rows, layout, shape)
        else:
            column = dict(
                zip(
                    (strategy.merge for strategy in self._spec.strategies),
                    self._open_columns,
                    strict=True,
                )
            )
            widest = int(column.get(merge_widest, -1))
            table = self._pair_terms.forward_pairs(
                s_values, shape, widest, filled=self._all_compiled
            )
            if self._all_compiled:
                return table  # type: ignore[no-any-return]
        for strategy, column in zip(
            self._spec.strategies, self._open_columns.tolist(), strict=True
        ):
            if strategy.merge is not merge_dropped:
                table = _with_open_column(table, self._scale, strategy, column)
        return table


class NumpyTerms(NamedTuple):
    """What observations add to every label, cell by cell."""

    observations: Observations
    scale: FixedPoint

    def whole(self, s_values: SValues, layout: Layout) -> WholeTable:
        """A table for values of s that all have an epsilon, or all have none."""
        starts, tables, n_zero_codes = [], [], self.observations.n_zero_codes
        for terms in self._terms(s_values):
            by_row = terms.reshape(len(terms), -1)
            start = np.zeros((layout.n_tiles, layout.tile_lanes), dtype=np.int64)
            if n_zero_codes:
                start.reshape(-1)[: by_row.shape[1]] = by_row[:n_zero_codes].sum(axis=0)
                zero_codes = by_row[self.observations.variables[n_zero_codes:]]
                by_row = by_row[n_zero_codes:] - zero_codes
            table = aligned((layout.n_tiles, len(by_row), layout.tile_lanes))
            for tile in range(layout.n_tiles):
                lanes = by_row[:, tile * layout.tile_lanes : (tile + 1) * layout.tile_lanes]
                table[tile, :, : lanes.shape[1]] = lanes
            starts.append(start)
            tables.append(table)
        return WholeTable(FixedTable(*starts), FixedTable(*tables), has_zeros=len(tables) > 1)

    def _terms(self, s_values: SValues) -> list[IntArray]:
        """(observations, labels, values of s, bounds), and the zero factors if there are any."""
        observations = self.observations
        variables, sources = observations.variables[:, None], observations.sources
        n = observations.counts[np.maximum(sources, 0)[:, None], observations.order].astype(
            np.float64
        )
        n[sources < 0] = 0.0
        denominator = observations.denominators[variables, observations.order].astype(np.float64)
        no_data = observations.totals[variables, observations.order] == 0
        n_categories = observations.n_categories[variables][..., None]
        values = np.empty((*n.shape[:2], len(s_values.values), 2), dtype=np.int64)
        zeros = np.zeros_like(values)
        for v, (s, epsilon) in enumerate(zip(s_values.values, s_values.epsilons, strict=True)):
            with np.errstate(divide="ignore", invalid="ignore"):  # 0/0, replaced at once
                lower, upper = idm_bounds(n, denominator, n_categories, s, epsilon)
            if s == 0:  # a conditional without data: uniform
                uniform = 1.0 / n_categories
                lower, upper = (np.where(no_data, uniform, bound) for bound in (lower, upper))
            if epsilon == 0:
                zero_lower, zero_upper = lower == 0, upper == 0
                lower[zero_lower] = upper[zero_upper] = 1.0
                ends = (
                    (zero_lower[..., 1], zero_upper[..., 0]),
                    (zero_upper[..., 1], zero_lower[..., 0]),
                )
                for bound, (in_numerator, in_denominator) in enumerate(ends):
                    zeros[:, :, v, bound] = (
                        in_numerator * ZERO_IN_NUMERATOR + in_denominator * ZERO_IN_DENOMINATOR
                    )
            low, high = self.scale.fixed(np.log([lower, upper]))
            np.subtract(low[..., 1], high[..., 0], out=values[:, :, v, 0])
            np.subtract(high[..., 1], low[..., 0], out=values[:, :, v, 1])
        values[sources == SAYS_NOTHING] = zeros[sources == SAYS_NOTHING] = 0
        return [values, zeros] if zeros.any() else [values]


def _pairs_for_walk(rows: FixedTable, layout: Layout, shape: tuple[int, ...]) -> FixedTable:
    """What labels add as 0 and as 1, rearranged from feature layout to the order of the walk."""
    lanes, tables = slice(2 * layout.n_labels), []
    for table in rows:
        if table is not None:
            by_row = layout.for_walk(np.ascontiguousarray(table.swapaxes(0, 1)))
            pairs = aligned(shape)
            pairs[:, :, :2, lanes] = by_row.reshape(*shape[:2], 2, -1)[..., lanes]
            tables.append(pairs)
    return FixedTable(*tables)


def _open_columns(strategies: tuple[Strategy, ...], *, forward: bool) -> IntArray:
    """Columns of an open label, after those of 0 and 1.

    Strategies with the same ``merge`` share one; with ``forward``, -1 for those that add nothing.
    """
    columns: list[int] = []
    shared: dict[Any, int] = {merge_dropped: -1} if forward else {}
    for strategy in strategies:
        free = 1 + max([1, *columns])
        columns.append(shared.setdefault(strategy.merge, free))
    return np.array(columns, dtype=np.int64)


def _fill_missing(
    table: FixedTable, scale: FixedPoint, n_rows: IntArray, offsets: IntArray
) -> None:
    """The last row of each feature: the worst over its categories, for each bound."""
    for first, last in zip(offsets.tolist(), (offsets + n_rows - 1).tolist(), strict=True):
        log_odds = np.moveaxis(table.log_odds(scale, np.s_[:, first : last - 1]), 1, 0)
        worst = np.empty(log_odds.shape[1:])
        worst[:, 0::2] = least_log_odds(log_odds[:, :, 0::2])
        worst[:, 1::2] = greatest_log_odds(log_odds[:, :, 1::2])
        missing = FixedTable.from_log_odds(worst, scale)
        table.values[:, last] = missing.values
        if missing.zeros is not None and table.zeros is not None:
            table.zeros[:, last] = missing.zeros


def _relative_to_zero_codes(
    table: FixedTable, zero_of: IntArray, zero_codes: IntArray, rows: IntArray
) -> WholeTable:
    """The sum of rows ``zero_codes``, and each of ``rows`` minus its row in ``zero_of``."""
    arrays = [array for array in table if array is not None]
    start = FixedTable(*(array[:, zero_codes].sum(axis=1) for array in arrays))
    differences = FixedTable(*(array[:, rows] - array[:, zero_of[rows]] for array in arrays))
    return WholeTable(start, differences, has_zeros=len(arrays) > 1)


def _with_open_column(
    table: FixedTable, scale: FixedPoint, strategy: Strategy, column: int
) -> FixedTable:
    """What open labels add, by the strategy's ``merge`` in floating point."""
    assert strategy.merge is not None
    m = table.values.shape[1]
    terms_by_value = np.moveaxis(table.log_odds(scale, np.s_[:, :, :2, : 2 * m]), 2, 0)
    if_zero, if_one = (
        (bounds[..., 0::2].copy(), bounds[..., 1::2].copy()) for bounds in terms_by_value
    )
    nothing = np.zeros_like(if_zero[0])
    merged = strategy.merge(if_zero, if_one, (nothing, nothing))
    bounds = np.stack(_checked_merge(merged, strategy, nothing.shape), axis=-1)
    open_terms = FixedTable.from_log_odds(bounds.reshape(*nothing.shape[:-1], 2 * m), scale)
    values, zeros = table
    values[:, :, column, : 2 * m] = open_terms.values
    if open_terms.zeros is not None:
        zeros = np.zeros_like(values) if zeros is None else zeros
        zeros[:, :, column, : 2 * m] = open_terms.zeros
    return FixedTable(values, zeros)


def _checked_merge(
    merged: Any, strategy: Strategy, shape: tuple[int, ...]
) -> tuple[FloatArray, FloatArray]:
    try:
        lower, upper = (np.broadcast_to(np.asarray(part, float), shape) for part in merged)
    except (TypeError, ValueError):
        raise ValueError(
            f"merge of strategy {strategy.name!r} must give (lower, upper), two arrays of the "
            f"shape of if_zero[0]; got {merged!r}."
        ) from None
    for bound in (lower, upper):
        finite = bound[np.isfinite(bound)]
        if finite.size and np.abs(finite).max() >= LARGEST_TERM:
            raise ValueError(
                f"merge of strategy {strategy.name!r} must give log-odds below {LARGEST_TERM:g} in "
                f"size (or infinite), got {finite[np.abs(finite).argmax()]}."
            )
    return lower, upper
