"""Log-odds as 64-bit integers: their scale, zero factors, and the tables they stand in.

Integer sums are associative: the same bits come out for any order of the features, any number
of threads, dense or sparse input. And the error of a sum is bounded by the number of its terms, so
a comparison outside that band is certain. Three facts carry the bound:

- every term is the logarithm of a ratio between 1e-111 and 1e111, so it is below 2**8 in size (the
  estimators refuse parameters that could break this);
- a sum has at most ``terms`` of them, so ``2**8 * terms * 2**bits < 2**62``;
- a term is the difference of two logarithms of probabilities, each computed with less than 16
  roundings, its logarithm to 4 units in the last place (below 0.2 units of 2**-40) and rounded to
  the grid (0.5 more): every term is within 1.4 units. What an open label adds is made from such
  terms; 4 units leave room for a strategy that triples them.

Infinite terms are kept apart, as numbers of zero factors, because ``inf - inf`` would lose them:
the low half of a 64-bit lane counts zeros of the numerator, the high half zeros of the denominator.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.array_types import FloatArray, IntArray

LARGEST_TERM = 2.0**8
INFINITE = 2**62  # larger than any sum
ZERO_IN_NUMERATOR = 1  # a factor 0: log-odds of -inf
ZERO_IN_DENOMINATOR = 1 << 32  # a factor 0: log-odds of +inf
NUMERATOR_MASK = ZERO_IN_DENOMINATOR - 1

LANES = 16  # 64-bit lanes that are added at a time: two cache lines
STEP = 4  # lanes that a walk reads at a time

NEVER_SEEN, SAYS_NOTHING = -1, -2  # in place of the row in which an observation was counted

_UNITS_PER_TERM = 4


class FixedPoint(NamedTuple):
    """``unit`` is the integer for log-odds of 1, ``band`` how far a sum can be off."""

    unit: float
    band: int

    @classmethod
    def for_terms(cls, n_features: int, n_labels: int) -> "FixedPoint":
        """Prior, threshold, every feature and every other label: one term each."""
        terms = n_features + n_labels + 2
        bits = min(40, 54 - terms.bit_length())
        return cls(unit=float(2**bits), band=_UNITS_PER_TERM * terms)

    @property
    def error(self) -> float:
        """The band as log-odds."""
        return self.band / self.unit

    def fixed(self, log_odds: FloatArray) -> IntArray:
        """Finite log-odds as integers."""
        return np.rint(log_odds * self.unit).astype(np.int64)


def resolve_zero_factors(values: Any, zeros: Any, least: Any, greatest: Any) -> Any:
    """``least`` where a numerator is 0 (0/0 too), ``greatest`` where only a denominator is.

    ``zeros`` None: there are none.
    """
    if zeros is None:
        return values
    return np.where(zeros & NUMERATOR_MASK, least, np.where(zeros, greatest, values))


class Layout(NamedTuple):
    """The meaning of each lane, in two orders.

    Sums over features go label by label, (label, value of s, bound): what one observation adds to a
    label takes ``label_lanes`` lanes. Labels come in tiles, the fewest that fill whole blocks of
    lanes. A walk goes along the labels for one value of s: (value of s, label, bound), each value
    with ``width`` lanes, padded so that a few can be read at a time. For a single value the two
    are the same. Lanes of padding hold arbitrary numbers.
    """

    n_values: int
    n_labels: int
    width: int
    label_lanes: int
    tile_labels: int
    n_tiles: int
    tile_lanes: int

    @classmethod
    def of(cls, n_values: int, n_labels: int) -> "Layout":
        label_lanes = 2 * n_values
        tile_labels = LANES // math.gcd(LANES, label_lanes)
        width = -(-2 * n_labels // STEP) * STEP
        n_tiles = -(-n_labels // tile_labels)
        return cls(
            n_values, n_labels, width, label_lanes, tile_labels, n_tiles, tile_labels * label_lanes
        )

    def for_walk(self, lanes: IntArray) -> IntArray:
        """(rows, tiles, lanes of a tile) as (values of s, rows, at least ``width``)."""
        n_rows = len(lanes)
        if self.n_values == 1:
            return lanes.reshape(1, n_rows, -1)
        walked = np.empty((self.n_values, n_rows, self.width), dtype=np.int64)
        # both bounds are moved together, as complex numbers of 16 bytes
        target, source = walked.view(np.complex128), lanes.reshape(n_rows, -1).view(np.complex128)
        by_label = source.reshape(n_rows, -1, self.n_values)[:, : self.n_labels]
        target[:, :, : self.n_labels] = by_label.transpose(2, 0, 1)
        return walked


def by_label(lanes: IntArray, n_labels: int) -> IntArray:
    """(..., label, bound) of lanes (..., width) for a single s."""
    return lanes[..., : 2 * n_labels].reshape(*lanes.shape[:-1], n_labels, 2)


class FixedTable(NamedTuple):
    """Log-odds as integers, and zero factors of the same shape, None if there are none."""

    values: IntArray
    zeros: IntArray | None = None

    @classmethod
    def from_log_odds(cls, log_odds: FloatArray, scale: FixedPoint) -> "FixedTable":
        """Infinite and undefined log-odds become zero factors."""
        finite = np.isfinite(log_odds)
        if finite.all():
            return cls(scale.fixed(log_odds))
        undefined = np.isnan(log_odds)  # 0/0: a zero in the numerator makes it 0
        in_numerator = np.where(undefined | (log_odds == -np.inf), ZERO_IN_NUMERATOR, 0)
        in_denominator = np.where(undefined | (log_odds == np.inf), ZERO_IN_DENOMINATOR, 0)
        return cls(scale.fixed(np.where(finite, log_odds, 0.0)), in_numerator + in_denominator)

    def log_odds(self, scale: FixedPoint, index: Any) -> FloatArray:
        """The inverse, in some cells: a single term is a float without rounding."""
        log_odds: FloatArray = self.values[index] / scale.unit
        if self.zeros is None:
            return log_odds
        zeros = self.zeros[index]
        in_numerator, in_denominator = (zeros & NUMERATOR_MASK) > 0, zeros > NUMERATOR_MASK
        log_odds[in_numerator & ~in_denominator] = -np.inf
        log_odds[in_denominator & ~in_numerator] = np.inf
        log_odds[in_numerator & in_denominator] = np.nan
        return log_odds


class Observations(NamedTuple):
    """What the rows of a table stand for, and how often each was counted.

    Row r of a table is about variable ``variables[r]`` and was counted in row ``sources[r]`` of
    ``counts`` (sources, m, 2), unless that is NEVER_SEEN or SAYS_NOTHING. ``totals`` and
    ``denominators`` are (variables, m, 2), ``n_categories`` (variables,). The first
    ``n_zero_codes`` observations are code 0 of every feature: they get no row, and the rows of
    the other codes hold differences from them. Only the first ``limits[t]`` observations
    concern the label at position t of ``order``.
    """

    variables: IntArray
    sources: IntArray
    counts: NDArray[Any]
    totals: NDArray[Any]
    denominators: NDArray[Any]
    n_categories: IntArray
    order: IntArray
    limits: IntArray
    n_zero_codes: int = 0


class SValues(NamedTuple):
    """Values of s, each with its epsilon; the first ``n_without_epsilon`` have epsilon 0."""

    values: FloatArray
    epsilons: FloatArray
    n_without_epsilon: int


class TableSlice(NamedTuple):
    """What features add: initial sums, and a row for every (feature, category).

    ``start`` is (all tiles, lanes), ``rows`` (tiles from ``first_tile`` on, rows, lanes).
    """

    start: IntArray
    rows: IntArray
    first_tile: int


class WholeTable(NamedTuple):
    """All tiles in one part, for a single s or a few."""

    start: FixedTable
    rows: FixedTable
    has_zeros: bool

    def parts(self, *, zeros: bool) -> Iterator[TableSlice]:
        """Log-odds, or zero factors."""
        if not zeros:
            yield TableSlice(self.start.values, self.rows.values, 0)
        elif self.start.zeros is not None and self.rows.zeros is not None:
            yield TableSlice(self.start.zeros, self.rows.zeros, 0)
