"""Fixed-point tables: what every observation adds to the log-odds of every label."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain import _kernels
from credalchain._kernels.fixed_point import ABOVE_MASK, ZERO_ABOVE, ZERO_BELOW, fraction_bits
from credalchain._kernels.states import LANES, STEP
from credalchain.bases.naive.counts import ChainCounts
from credalchain.bases.naive.memory import aligned, aligned_zeros
from credalchain.bases.naive.settings import DENOMINATORS, PRIORS, NaiveSettings
from credalchain.strategies import Strategy, greatest_log_odds, least_log_odds

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

_LARGEST = 2.0**8  # see fixed_point: no term may be larger
_UNITS_PER_TERM = 4


@dataclass(frozen=True)
class Scale:
    """The grid of the fixed-point numbers, and how far a sum on it can be off."""

    unit: float
    band: int

    @classmethod
    def for_terms(cls, n_features: int, n_labels: int) -> "Scale":
        """Prior, threshold, every feature and every other label: one term each."""
        terms = n_features + n_labels + 2
        return cls(unit=float(2 ** fraction_bits(terms)), band=_UNITS_PER_TERM * terms)


@dataclass(frozen=True)
class Layout:
    """Which lane is what: for every value of s a run of ``width`` lanes, (label, bound) in it.

    Widths are padded so that the walk can add a few lanes at a time, and all lanes together
    to whole blocks.
    """

    n_values: int
    n_labels: int

    @property
    def width(self) -> int:
        return -(-2 * self.n_labels // STEP) * STEP

    @property
    def n_blocks(self) -> int:
        return -(-self.n_values * self.width // LANES)


@dataclass(frozen=True)
class FixedTable:
    """Fixed-point log-odds, and zero factors where there are any (else an empty array)."""

    values: IntArray
    zeros: IntArray

    @classmethod
    def from_log_odds(cls, log_odds: FloatArray, scale: Scale) -> "FixedTable":
        """Infinite and undefined log-odds become zero factors."""
        finite = np.isfinite(log_odds)
        if finite.all():
            return cls(np.rint(log_odds * scale.unit).astype(np.int64), _none_like(log_odds))
        values = np.rint(np.where(finite, log_odds, 0.0) * scale.unit).astype(np.int64)
        undefined = np.isnan(log_odds)  # 0/0: a zero above makes it 0, whatever is below
        above = np.where(undefined | (log_odds == -np.inf), ZERO_ABOVE, 0)
        below = np.where(undefined | (log_odds == np.inf), ZERO_BELOW, 0)
        return cls(values, above + below)

    def log_odds(self, scale: Scale) -> FloatArray:
        """The inverse: a single term has few enough bits to be a float without rounding."""
        log_odds = self.values / scale.unit
        if not self.has_zeros:
            return log_odds
        above, below = (self.zeros & ABOVE_MASK) > 0, self.zeros > ABOVE_MASK
        log_odds[above & ~below] = -np.inf
        log_odds[below & ~above] = np.inf
        log_odds[above & below] = np.nan
        return log_odds

    @property
    def has_zeros(self) -> bool:
        return self.zeros.size > 0


def _none_like(array: NDArray[Any]) -> IntArray:
    return np.zeros((0,) * array.ndim, dtype=np.int64)


@dataclass(frozen=True)
class FeatureTable:
    """What features add: where sums start, and a row for every (feature, category).

    ``start`` is (blocks, 16), ``rows`` (blocks, rows, 16). ``relative`` tables are for sparse
    codes: code 0 of every feature is in ``start``, and rows hold differences from it.
    """

    start: FixedTable
    rows: FixedTable
    offsets: IntArray
    relative: bool

    @property
    def has_zeros(self) -> bool:
        return self.start.has_zeros or self.rows.has_zeros


@dataclass(frozen=True)
class ChainTables:
    """All tables for some values of s, some strategies and one order of the labels.

    ``prior`` is (values of s, width), ``pairs`` (strategies, values of s, m, 3, width); its m
    is 0 where labels do not speak to each other.
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


def prior_table(
    counts: ChainCounts,
    settings: NaiveSettings,
    scale: Scale,
    *,
    values: tuple[float, ...],
    order: IntArray,
) -> FixedTable:
    """(values of s, width): where the lower and the upper log-odds of each label start."""
    layout = Layout(len(values), len(order))
    n0, n1 = counts.label[order].astype(np.int64).T
    odds = PRIORS[settings.prior](n0, n1, np.array(values)[:, None])
    log_odds = np.zeros((layout.n_values, layout.width))
    for bound, (above, below) in enumerate(odds):
        with np.errstate(divide="ignore", invalid="ignore"):  # log 0, and its differences
            log_odds[:, bound : 2 * len(order) : 2] = np.log(above) - np.log(below)
    return FixedTable.from_log_odds(log_odds, scale)


def feature_table(
    counts: ChainCounts,
    settings: NaiveSettings,
    scale: Scale,
    *,
    values: tuple[float, ...],
    order: IntArray,
    exceptional: bool,
    conservative: bool,
    relative: bool,
) -> FeatureTable:
    """The table of all features, labels in ``order``.

    With ``exceptional``, each feature has two rows more: never seen, and missing.
    """
    n_rows = counts.n_categories + (2 if exceptional else 0)
    offsets = np.cumsum(n_rows) - n_rows
    layout = Layout(len(values), len(order))
    shape = (layout.n_blocks, int(n_rows.sum()), LANES)
    totals = counts.feature_totals()
    rows = _filled(
        counts.feature,
        totals,
        totals,
        counts.n_categories,
        n_rows,
        np.array(values),
        settings.epsilon,
        scale,
        order,
        layout.width,
        shape,
    )
    if exceptional and conservative:
        _fill_missing(rows, scale, offsets, counts.n_categories)
    if relative:
        start = _made_relative(rows, offsets, n_rows)
    else:
        nothing = aligned_zeros((layout.n_blocks, LANES))
        start = FixedTable(nothing, _none_like(nothing))
    return FeatureTable(start, rows, offsets, relative)


def _filled(
    counts: NDArray[Any],
    totals: NDArray[Any],
    denominators: NDArray[Any],
    n_categories: IntArray,
    n_rows: IntArray,
    values: FloatArray,
    epsilon: float,
    scale: Scale,
    order: IntArray,
    width: int,
    shape: tuple[int, int, int],
) -> FixedTable:
    """Log-odds of observations, laid out as ``log_odds_table`` says."""
    table = aligned(shape)
    last = len(values) * width % shape[2]
    if last or width > 2 * len(order):
        table[:] = 0  # lanes that nothing will write
    _kernels.log_odds_table(
        counts,
        totals,
        denominators,
        n_categories,
        n_rows,
        values,
        epsilon,
        scale.unit,
        order,
        width,
        table,
    )
    if epsilon > 0:
        return FixedTable(table, _none_like(table))
    zeros = aligned_zeros(shape)
    found = _kernels.zero_factors(counts, totals, n_categories, n_rows, values, order, width, zeros)
    return FixedTable(table, zeros if found else _none_like(table))


def _fill_missing(
    rows: FixedTable, scale: Scale, offsets: IntArray, n_categories: IntArray
) -> None:
    """The last row of each feature: the worst over its categories, for each bound."""
    for first, k in zip(offsets.tolist(), n_categories.tolist(), strict=True):
        options = FixedTable(
            rows.values[:, first : first + k],
            rows.zeros[:, first : first + k] if rows.has_zeros else rows.zeros,
        )
        log_odds = np.moveaxis(options.log_odds(scale), 1, 0)
        worst = np.empty(log_odds.shape[1:])
        worst[:, 0::2] = least_log_odds(log_odds[:, :, 0::2])
        worst[:, 1::2] = greatest_log_odds(log_odds[:, :, 1::2])
        made = FixedTable.from_log_odds(worst, scale)
        rows.values[:, first + k + 1] = made.values
        if made.has_zeros:
            rows.zeros[:, first + k + 1] = made.zeros


def _made_relative(rows: FixedTable, offsets: IntArray, n_rows: IntArray) -> FixedTable:
    """Change ``rows`` into differences from code 0; what all codes 0 add up to."""
    starts = []
    for part in (rows.values, rows.zeros):
        start = aligned_zeros((part.shape[0], part.shape[2]))
        if part.size:
            _kernels.relative_to_zero(offsets, n_rows, part, start)
        starts.append(start)
    return FixedTable(*starts)


def pair_table(
    counts: ChainCounts,
    settings: NaiveSettings,
    scale: Scale,
    strategies: tuple[Strategy, ...],
    *,
    values: tuple[float, ...],
    order: IntArray,
) -> FixedTable:
    """(strategies, values of s, m, 3, width): the columns 0, 1 and * of every label."""
    m, width = counts.n_labels, Layout(len(values), counts.n_labels).width
    pair = np.ascontiguousarray(counts.pair[order])
    two = np.full(m, 2, dtype=np.int64)
    observed = _filled(
        pair.reshape(2 * m, m, 2),
        pair.sum(axis=1),
        np.ascontiguousarray(DENOMINATORS[settings.denominator](counts)[order]),
        two,
        two,
        np.array(values),
        settings.epsilon,
        scale,
        order,
        width,
        (len(values), 2 * m, width),
    )
    never = counts.label[order].sum(axis=1) == 0  # says nothing
    for part in (observed.values, observed.zeros):
        if part.size and never.any():
            part.reshape(len(values), m, 2, width)[:, never] = 0
    return _with_stars(observed, scale, strategies, (len(values), m, 2, width))


def _with_stars(
    observed: FixedTable,
    scale: Scale,
    strategies: tuple[Strategy, ...],
    shape: tuple[int, int, int, int],
) -> FixedTable:
    """Columns 0 and 1 as they are, and each strategy's column for a star."""
    n_values, m, _, width = shape
    log_odds = observed.log_odds(scale).reshape(shape)[..., : 2 * m]
    by_value = [np.moveaxis(log_odds[..., bound::2], 2, 0) for bound in (0, 1)]
    columns = aligned((len(strategies), n_values, m, 3, width))
    columns[:, :, :, :2] = observed.values.reshape(shape)
    columns[:, :, :, 2, 2 * m :] = 0
    zeros = np.zeros(columns.shape, dtype=np.int64) if observed.has_zeros else None
    if zeros is not None:
        zeros[:, :, :, :2] = observed.zeros.reshape(shape)
    for which, strategy in enumerate(strategies):
        assert strategy.star is not None
        star = strategy.star(by_value[0].copy(), by_value[1].copy())
        for bound, part in enumerate(_checked_star(star, strategy, (n_values, m, m))):
            made = FixedTable.from_log_odds(part, scale)
            columns[which, :, :, 2, bound : 2 * m : 2] = made.values
            if made.has_zeros:
                zeros = np.zeros(columns.shape, dtype=np.int64) if zeros is None else zeros
                zeros[which, :, :, 2, bound : 2 * m : 2] = made.zeros
    return FixedTable(columns, _none_like(columns) if zeros is None else zeros)


def no_pairs(layout: Layout, n_strategies: int) -> FixedTable:
    """The table of labels that do not speak to each other."""
    nothing = np.zeros((n_strategies, layout.n_values, 0, 3, layout.width), dtype=np.int64)
    return FixedTable(nothing, nothing)


def _checked_star(
    star: Any, strategy: Strategy, shape: tuple[int, int, int]
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
