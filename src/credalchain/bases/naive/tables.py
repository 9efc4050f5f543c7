"""Fixed-point tables: what every observation adds to the log-odds of every label."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from credalchain import _kernels
from credalchain._kernels.states import LANES
from credalchain.bases.naive.codes import rows_of
from credalchain.bases.naive.counts import ChainCounts
from credalchain.bases.naive.evidence import At, Counted, Evidence, Observations
from credalchain.bases.naive.grid import FixedTable, FloatArray, IntArray, Layout, Scale
from credalchain.bases.naive.memory import aligned, aligned_zeros
from credalchain.bases.naive.settings import DENOMINATORS, PRIORS, NaiveSettings
from credalchain.strategies import Strategy, greatest_log_odds, least_log_odds

_LARGEST = 2.0**8  # see fixed_point: no term may be larger
_MANY_NUMBERS = 2**14  # in a table: below, compiling a short cut costs more than it saves


@dataclass(frozen=True)
class FeatureTable:
    """What features add: where sums start, and a row for every (feature, category).

    ``start`` is (blocks, 16), ``rows`` (blocks, rows, 16). For sparse codes, code 0 of every
    feature is in ``start``, and rows hold differences from it.
    """

    start: FixedTable
    rows: FixedTable

    @property
    def has_zeros(self) -> bool:
        return self.start.has_zeros or self.rows.has_zeros


@dataclass(frozen=True)
class ChainTables:
    """All tables for some values of s, some strategies and one order of the labels.

    ``prior`` is (values of s, width). ``pairs`` is (values of s, m, 2 + strategies, width): what a
    label says as 0, as 1 and, for each strategy, left open; its m is 0 where labels do not speak
    to each other.
    """

    order: IntArray
    scale: Scale
    layout: Layout
    prior: FixedTable
    features: FeatureTable
    pairs: FixedTable

    @property
    def has_zeros(self) -> bool:
        return any(part.has_zeros for part in (self.prior, self.features, self.pairs))


@dataclass(frozen=True)
class Wanted:
    """What tables are for.

    ``exceptional``: some codes are missing or were never seen. ``forward``: labels speak only to
    those after them.
    """

    strategies: tuple[Strategy, ...]
    order: tuple[int, ...]
    chained: bool
    forward: bool
    exceptional: bool
    conservative: bool


class TableMaker:
    """Makes tables for any values of s.

    ``rows`` are the rows of the feature table that sparse codes ask for, None for dense codes.
    ``reuse`` if there will be more than one.
    """

    def __init__(
        self,
        counts: ChainCounts,
        settings: NaiveSettings,
        wanted: Wanted,
        rows: IntArray | None,
        *,
        reuse: bool,
        n_jobs: int,
    ) -> None:
        self._counts, self._settings, self._wanted, self._rows = counts, settings, wanted, rows
        self._order = np.array(wanted.order, dtype=np.int64)
        self._scale = Scale.for_terms(counts.n_features, counts.n_labels)
        self._options: dict[str, Any] = {
            "scale": self._scale,
            "reuse": reuse,
            "n_jobs": n_jobs,
        }
        self._worst = wanted.exceptional and wanted.conservative
        self._features = self._feature_evidence()
        self._pairs = self._pair_evidence() if wanted.chained else None

    def tables(self, values: tuple[float, ...]) -> ChainTables:
        """For values that share an epsilon."""
        layout = Layout(len(values), len(self._order))
        at = At(np.array(values), self._settings.epsilon_for(values[0]))
        return ChainTables(
            order=self._order,
            scale=self._scale,
            layout=layout,
            prior=self._prior_table(at.values, layout),
            features=self._feature_table(at, layout),
            pairs=self._pair_table(at, layout),
        )

    # -- prior -------------------------------------------------------------------------

    def _prior_table(self, values: FloatArray, layout: Layout) -> FixedTable:
        """(values of s, width): where the lower and the upper log-odds of each label start."""
        n0, n1 = self._counts.label[self._order].T
        odds = PRIORS[self._settings.prior](n0, n1, values[:, None])
        log_odds = np.zeros((layout.n_values, layout.width))
        for bound, (above, below) in enumerate(odds):
            with np.errstate(divide="ignore", invalid="ignore"):  # log 0, and its differences
                log_odds[:, bound : 2 * layout.n_labels : 2] = np.log(above) - np.log(below)
        return FixedTable.from_log_odds(log_odds, self._scale)

    # -- features ----------------------------------------------------------------------

    def _feature_evidence(self) -> Evidence:
        counts, k = self._counts, self._counts.n_categories
        totals = counts.feature_totals()
        counted = Counted(counts.feature, totals, totals, k)
        about = Observations.of_features(k, self._wanted.exceptional)
        if self._rows is None or self._worst:  # the worst looks at all categories of a feature
            return Evidence(counted, about, self._order, **self._options)
        zero = Observations.of_zero_codes(k)
        return Evidence(counted, about.some(self._rows), self._order, zero=zero, **self._options)

    def _feature_table(self, at: At, layout: Layout) -> FeatureTable:
        if self._rows is not None and not self._worst:
            return FeatureTable(*self._features.relative_table(at, layout))
        n_rows, offsets = rows_of(self._counts.n_categories, self._wanted.exceptional)
        shape = (layout.n_blocks, int(n_rows.sum()), LANES)
        rows = aligned(shape)
        zeros = self._features.fill(at, layout, np.arange(shape[1]), rows)
        table = FixedTable(rows, zeros)
        if self._worst:
            _fill_missing(table, self._scale, n_rows, offsets)
        if self._rows is None:
            return FeatureTable(FixedTable.finite(aligned_zeros((layout.n_blocks, LANES))), table)
        return _made_relative(table, np.repeat(offsets, n_rows), offsets, self._rows)

    # -- pairs of labels ---------------------------------------------------------------

    def _pair_evidence(self) -> Evidence:
        counts, order, m = self._counts, self._order, len(self._order)
        pair = np.ascontiguousarray(counts.pair[order])
        denominators = DENOMINATORS[self._settings.denominator](counts)[order]
        counted = Counted(
            pair.reshape(2 * m, m, 2),
            pair.sum(axis=1, dtype=pair.dtype),
            np.ascontiguousarray(denominators, dtype=pair.dtype),
            np.full(m, 2, dtype=np.int64),
        )
        limits = 2 * np.arange(m) if self._wanted.forward else None
        return Evidence(counted, Observations.of_labels(m), order, limits=limits, **self._options)

    def _pair_table(self, at: At, layout: Layout) -> FixedTable:
        """(values of s, m, 2 + strategies, width): columns 0, 1, and * of each strategy."""
        n, m, width = layout.n_values, layout.n_labels, layout.width
        strategies = self._wanted.strategies
        n_columns = 2 + len(strategies)
        if self._pairs is None:
            return FixedTable.finite(np.zeros((n, 0, n_columns, width), dtype=np.int64))
        columns = aligned_zeros((n, m * n_columns, width))
        targets = n_columns * np.repeat(np.arange(m), 2) + np.tile([0, 1], m)
        zeros = self._pairs.fill(at, layout, targets, columns)
        table = FixedTable(columns, zeros).reshaped((n, m, n_columns, width))
        never = self._counts.label[self._order].sum(axis=1) == 0
        table.values[:, never] = 0  # says nothing
        if table.has_zeros:
            table.zeros[:, never] = 0
        return _with_stars(table, self._scale, strategies, forward=self._wanted.forward)


def _fill_missing(table: FixedTable, scale: Scale, n_rows: IntArray, offsets: IntArray) -> None:
    """The last row of each feature: the worst over its categories, for each bound."""
    for first, last in zip(offsets.tolist(), (offsets + n_rows - 1).tolist(), strict=True):
        log_odds = np.moveaxis(table[:, first : last - 1].log_odds(scale), 1, 0)
        worst = np.empty(log_odds.shape[1:])
        worst[:, 0::2] = least_log_odds(log_odds[:, :, 0::2])
        worst[:, 1::2] = greatest_log_odds(log_odds[:, :, 1::2])
        made = FixedTable.from_log_odds(worst, scale)
        table.values[:, last] = made.values
        if made.has_zeros:
            table.zeros[:, last] = made.zeros


def _made_relative(
    table: FixedTable, zero_of: IntArray, zeros: IntArray, rows: IntArray
) -> FeatureTable:
    """``zeros`` all together, and ``rows`` less the row ``zero_of`` each."""
    starts, differences = table[:, zeros], table[:, zero_of[rows]]
    some = table[:, rows]
    if not table.has_zeros:
        return FeatureTable(
            FixedTable.finite(starts.values.sum(axis=1)),
            FixedTable.finite(some.values - differences.values),
        )
    return FeatureTable(
        FixedTable(starts.values.sum(axis=1), starts.zeros.sum(axis=1)),
        FixedTable(some.values - differences.values, some.zeros - differences.zeros),
    )


def _with_stars(
    table: FixedTable, scale: Scale, strategies: tuple[Strategy, ...], *, forward: bool
) -> FixedTable:
    """Fill in each strategy's column for a star, which is 0 so far, from columns 0 and 1."""
    worth_compiling = table.values.size >= _MANY_NUMBERS
    for which, strategy in enumerate(strategies):
        column = 2 + which
        if strategy.shortcut == "widest" and worth_compiling and table.has_zeros:
            _kernels.widest_stars_with_zeros(table.values, table.zeros, column, forward)
        elif strategy.shortcut == "widest" and worth_compiling:
            _kernels.widest_stars(table.values, column, forward)
        elif strategy.shortcut != "nothing":  # nothing is what stands there
            table = _with_computed_stars(table, scale, strategy, column)
    return table


def _with_computed_stars(
    table: FixedTable, scale: Scale, strategy: Strategy, column: int
) -> FixedTable:
    """By the strategy's own function, in floating point."""
    assert strategy.star is not None
    m = table.values.shape[1]
    told = np.moveaxis(table[:, :, :2, : 2 * m].log_odds(scale), 2, 0)
    lower, upper = told[..., 0::2].copy(), told[..., 1::2].copy()
    star = _checked_star(strategy.star(lower, upper), strategy, lower.shape[1:])
    zeros = table.zeros
    for bound, part in enumerate(star):
        made = FixedTable.from_log_odds(part, scale)
        place = (slice(None), slice(None), column, slice(bound, 2 * m, 2))
        table.values[place] = made.values
        if made.has_zeros:
            zeros = np.zeros_like(table.values) if zeros.size == 0 else zeros
            zeros[place] = made.zeros
    return FixedTable(table.values, zeros)


def _checked_star(
    star: Any, strategy: Strategy, shape: tuple[int, ...]
) -> tuple[FloatArray, FloatArray]:
    try:
        lower, upper = (np.broadcast_to(np.asarray(part, float), shape) for part in star)
    except (TypeError, ValueError):
        raise ValueError(
            f"star of strategy {strategy.name!r} must give (lower, upper), two arrays of the "
            f"shape of w_lower[0]; got {star!r}."
        ) from None
    for bound in (lower, upper):
        finite = bound[np.isfinite(bound)]
        if finite.size and np.abs(finite).max() >= _LARGEST:
            raise ValueError(
                f"star of strategy {strategy.name!r} must give log-odds below {_LARGEST:g} in "
                f"size (or infinite), got {finite[np.abs(finite).argmax()]}."
            )
    return lower, upper
