"""Log-odds as 64-bit integers: their scale, their error, and zero factors.

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

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from credalchain._utils.array_types import FloatArray, IntArray

LARGEST_TERM = 2.0**8
INFINITE = 2**62  # larger than any sum
ZERO_IN_NUMERATOR = 1  # a factor 0: log-odds of -inf
ZERO_IN_DENOMINATOR = 1 << 32  # a factor 0: log-odds of +inf
NUMERATOR_MASK = ZERO_IN_DENOMINATOR - 1

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

    def log_odds(self, scale: FixedPoint) -> FloatArray:
        """The inverse: a single term is a float without rounding."""
        log_odds: FloatArray = self.values / scale.unit
        if self.zeros is not None:
            in_numerator, in_denominator = self.zeros & NUMERATOR_MASK, self.zeros > NUMERATOR_MASK
            infinite = np.where(in_denominator, np.where(in_numerator, np.nan, np.inf), -np.inf)
            log_odds = np.where(self.zeros, infinite, log_odds)
        return log_odds

    def map(self, function: Callable[[Any], Any]) -> "FixedTable":
        """The same rearrangement, or sum, of both."""
        return FixedTable(
            function(self.values), None if self.zeros is None else function(self.zeros)
        )


def alike(tables: Iterable[FixedTable]) -> list[FixedTable]:
    """Give all tables zero factors if any has some."""
    tables = list(tables)
    if all(table.zeros is None for table in tables):
        return tables
    return [
        FixedTable(values, np.zeros_like(values) if zeros is None else zeros)
        for values, zeros in tables
    ]


def combined(function: Callable[[Any], Any], tables: Iterable[FixedTable]) -> FixedTable:
    """A sum or concatenation of several tables."""
    values, zeros = zip(*alike(tables), strict=True)
    return FixedTable(function(values), None if zeros[0] is None else function(zeros))
