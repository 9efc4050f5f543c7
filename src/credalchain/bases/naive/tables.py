"""Fixed-point tables: what every observation adds to the log-odds of every label."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from credalchain import _kernels
from credalchain.bases.naive.codes import rows_of
from credalchain.bases.naive.counts import ChainCounts
from credalchain.bases.naive.evidence import At, Counted, Evidence, Observations
from credalchain.bases.naive.feature_tables import FeatureStream, FeatureTable, whole_table
from credalchain.bases.naive.grid import FixedTable, FloatArray, IntArray, Layout, Scale, no_zeros
from credalchain.bases.naive.memory import aligned, aligned_zeros
from credalchain.bases.naive.settings import DENOMINATORS, PRIORS, NaiveSettings
from credalchain.strategies import Strategy, greatest_log_odds, least_log_odds

_LARGEST = 2.0**8  # see fixed_point: no term may be larger


@dataclass(frozen=True)
class ChainTables:
    """All tables for some values of s, some strategies and one order of the labels.

    Zero factors are only there for the first values, those without epsilon (or for none).
    ``prior`` is (tiles, lanes). ``pairs`` is (values of s, m, columns, width): what a label says as
    0, as 1 and left open; its m is 0 where labels do not speak to each other. ``star_columns`` are
    the columns of an open label in each strategy, -1 where it says nothing.
    """

    order: IntArray
    scale: Scale
    layout: Layout
    prior: FixedTable
    features: FeatureTable | FeatureStream
    pairs: FixedTable
    star_columns: IntArray
    n_bare: int

    @property
    def zero_layout(self) -> Layout:
        """Of zero factors; those of a prior may come with epsilon too."""
        n_values = self.layout.n_values if self.prior.has_zeros else self.n_bare
        any_zeros = any(part.has_zeros for part in (self.prior, self.features, self.pairs))
        return Layout(n_values if any_zeros else 0, self.layout.n_labels)


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
    Tables that are ``kept`` are for one s and made whole, with as few kernels to compile as
    possible; others are for many values, as fast as possible, and used once.
    """

    def __init__(
        self,
        counts: ChainCounts,
        settings: NaiveSettings,
        wanted: Wanted,
        rows: IntArray | None,
        *,
        kept: bool,
        n_jobs: int,
    ) -> None:
        self._counts, self._settings, self._wanted, self._rows = counts, settings, wanted, rows
        self._order = np.array(wanted.order, dtype=np.int64)
        self._scale = Scale.for_terms(counts.n_features, counts.n_labels)
        self._kept = kept
        self._options: dict[str, Any] = {"reuse": not kept, "n_jobs": n_jobs}
        self._worst = wanted.exceptional and wanted.conservative
        self._features = self._feature_evidence()
        self._pairs = self._pair_evidence() if wanted.chained else None
        self._star_columns = _star_columns(wanted.strategies, forward=wanted.forward)

    def tables(self, values: tuple[float, ...]) -> ChainTables:
        """``values`` as ``groups`` gives them."""
        layout = Layout(len(values), len(self._order))
        at = At(np.array(values), np.array([self._settings.epsilon_for(s) for s in values]))
        return ChainTables(
            order=self._order,
            scale=self._scale,
            layout=layout,
            prior=self._prior_table(at.values, layout),
            features=self._feature_table(at, layout),
            pairs=self._pair_table(at, layout),
            star_columns=self._star_columns,
            n_bare=at.n_bare,
        )

    def groups(self, values: tuple[float, ...], size: int) -> list[list[int]]:
        """Places of values, at most ``size`` together, that tables can be made for at once.

        Values without epsilon come first, or stay among themselves where zero factors do not come
        from their counts alone.
        """
        epsilons = [self._settings.epsilon_for(s) for s in values]
        bare = [at for at, epsilon in enumerate(epsilons) if epsilon == 0]
        others = [at for at, epsilon in enumerate(epsilons) if epsilon > 0]
        mixes = self._has_shortcuts() and not self._worst and self._settings.prior != "credal"
        return [
            places[first : first + size]
            for places in ([bare + others] if mixes else [bare, others])
            for first in range(0, len(places), size)
        ]

    def _has_shortcuts(self) -> bool:
        return None not in (strategy.shortcut for strategy in self._wanted.strategies)

    # -- prior -------------------------------------------------------------------------

    def _prior_table(self, values: FloatArray, layout: Layout) -> FixedTable:
        """(tiles, lanes): where the lower and the upper log-odds of each label start."""
        n0, n1 = self._counts.label[self._order].T[:, :, None]
        odds = PRIORS[self._settings.prior](n0, n1, values)
        log_odds = np.empty((layout.n_labels, layout.n_values, 2))
        for bound, (above, below) in enumerate(odds):
            with np.errstate(divide="ignore", invalid="ignore"):  # log 0, and its differences
                log_odds[:, :, bound] = np.log(above) - np.log(below)
        prior = FixedTable.from_log_odds(log_odds, self._scale)
        zeros = layout.tiled(prior.zeros) if prior.has_zeros else no_zeros(2)
        return FixedTable(layout.tiled(prior.values), zeros)

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

    def _feature_table(self, at: At, layout: Layout) -> FeatureTable | FeatureStream:
        if not self._kept and not self._worst:
            return FeatureStream(self._features, at, self._scale, layout.n_labels)
        made = whole_table(self._features, at, layout, self._scale)
        if not self._worst:
            return made
        n_rows, offsets = rows_of(self._counts.n_categories, self._wanted.exceptional)
        _fill_missing(made.rows, self._scale, n_rows, offsets)
        if self._rows is None:
            return made
        return _made_relative(made.rows, np.repeat(offsets, n_rows), offsets, self._rows)

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
        limits = None if self._kept else 2 * np.arange(m)
        about = Observations.of_labels(counts.label[order].sum(axis=1) == 0)
        return Evidence(counted, about, order, limits=limits, **self._options)

    def _pair_table(self, at: At, layout: Layout) -> FixedTable:
        """(values of s, m, columns, width): columns 0, 1, and * of strategies where it speaks."""
        n_columns = 1 + max(1, int(self._star_columns.max()))
        shape = (layout.n_values, layout.n_labels, n_columns, layout.width)
        if self._pairs is None:
            return FixedTable.finite(np.zeros((shape[0], 0, *shape[2:]), dtype=np.int64))
        if self._kept:
            table = self._whole_pairs(self._pairs, at, layout, shape)
        else:
            table = self._forward_pairs(self._pairs, at, shape)
            if self._has_shortcuts():
                return table
        for strategy, column in zip(
            self._wanted.strategies, self._star_columns.tolist(), strict=True
        ):
            if strategy.shortcut != "nothing":
                table = _with_computed_stars(table, self._scale, strategy, column)
        return table

    def _whole_pairs(
        self, evidence: Evidence, at: At, layout: Layout, shape: tuple[int, ...]
    ) -> FixedTable:
        """What every label says to every other as 0 and as 1: as if it were a feature."""
        rows = whole_table(evidence, at, layout, self._scale).rows
        lanes = slice(2 * layout.n_labels)

        def turned(table: IntArray) -> IntArray:
            by_row = layout.for_walk(np.ascontiguousarray(table.swapaxes(0, 1)))
            pairs = aligned_zeros(shape)
            pairs[:, :, :2, lanes] = by_row.reshape(*shape[:2], 2, -1)[..., lanes]
            return pairs

        zeros = turned(rows.zeros) if rows.has_zeros else no_zeros(4)
        return FixedTable(turned(rows.values), zeros)

    def _forward_pairs(self, evidence: Evidence, at: At, shape: tuple[int, ...]) -> FixedTable:
        """The same for the labels after it, and what it says open where there is a short cut.

        Nothing else is filled in; it is 0 where a strategy's own function will look at it.
        """
        values = aligned(shape) if self._has_shortcuts() else aligned_zeros(shape)
        zeros = aligned_zeros((at.n_bare, *shape[1:]))
        widest = _column_of_widest(self._wanted.strategies, self._star_columns)
        any_zeros: list[bool] = []

        def run(first: int, stop: int) -> None:
            found = evidence.find(first, stop)
            numbers = found.numbers
            weights = found.logarithms(at, self._scale)
            _kernels.fill_pairs(numbers, first, *weights, widest, values)
            factors = found.zero_factors(at) if at.n_bare else None
            if factors is not None:
                _kernels.fill_pairs(numbers, first, *factors, -1, zeros)
                any_zeros.append(True)

        evidence.for_each_group(run)
        if not any_zeros:
            return FixedTable.finite(values)
        if widest >= 0:
            _kernels.widest_stars_with_zeros(values[: at.n_bare], zeros, widest)
        return FixedTable(values, zeros)


def _star_columns(strategies: tuple[Strategy, ...], *, forward: bool) -> IntArray:
    """Columns of an open label, after those of 0 and 1.

    Strategies that say alike share one, and going forward none is kept for saying nothing.
    """
    columns: list[int] = []
    shared: dict[str, int] = {"nothing": -1} if forward else {}
    for strategy in strategies:
        free, key = 1 + max([1, *columns]), strategy.shortcut
        columns.append(free if key is None else shared.setdefault(key, free))
    return np.array(columns, dtype=np.int64)


def _column_of_widest(strategies: tuple[Strategy, ...], columns: IntArray) -> int:
    for strategy, column in zip(strategies, columns.tolist(), strict=True):
        if strategy.shortcut == "widest":
            return int(column)
    return -1


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
