"""The formulas of the naive credal model, as values: bounds, priors and denominators.

They work on arrays and on exact fractions alike (the bounds also in compiled code), so that each
is defined once. A new prior or denominator is another value below, or one that a user passes.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.array_types import FloatArray, IntArray
from credalchain._utils.validation import check_choice, check_epsilon, check_instance
from credalchain.chains.naive.counts import ChainCounts

OddsPair = tuple[tuple[Any, Any], tuple[Any, Any]]
"""(numerator, denominator) of the lower odds, then of the upper odds."""


def idm_bounds(n: Any, denominator: Any, n_categories: Any, s: Any, epsilon: Any) -> Any:
    """Compute the lower and upper P(v | a) of the imprecise Dirichlet model, from n(v, a), D and K.

    An epsilon is mixed in as the uniform distribution, so that no bound is 0.
    """
    share = (1 - epsilon) / (denominator + s)
    floor = epsilon / n_categories
    return n * share + floor, (n + s) * share + floor


@dataclass(frozen=True)
class Prior:
    """Where the odds of a label start: ``odds(n0, n1, s)`` from the numbers of rows per class.

    It must work on arrays and on fractions, with odds between 1e-111 and 1e111 (or 0, or infinite).
    """

    name: str
    odds: Callable[[Any, Any, Any], OddsPair]


@dataclass(frozen=True)
class Denominator:
    """Divisor of the counts of a pair of labels: ``totals(counts)``, (m, m, 2).

    Entry [k, j, a] is for the rows in which label j is a and label k was counted.
    """

    name: str
    totals: Callable[[ChainCounts], NDArray[np.int64]]


def _laplace(n0: Any, n1: Any, s: Any) -> OddsPair:
    odds = (n1 + 1, n0 + 1)
    return odds, odds


def _paper(n0: Any, n1: Any, s: Any) -> OddsPair:
    never_seen = (n0 == 0) | (n1 == 0)  # of a class; then one more row of each (Laplace)
    odds = (n1 + never_seen, n0 + never_seen)
    return odds, odds


def _credal(n0: Any, n1: Any, s: Any) -> OddsPair:
    return (n1, n0 + s), (n1 + s, n0)


PRIORS = {
    prior.name: prior
    for prior in (Prior("laplace", _laplace), Prior("paper", _paper), Prior("credal", _credal))
}


def _pairwise(counts: ChainCounts) -> NDArray[np.int64]:
    return np.asarray(counts.pair.sum(axis=1))


def _class(counts: ChainCounts) -> NDArray[np.int64]:
    m = counts.n_labels
    return np.ascontiguousarray(np.broadcast_to(counts.label, (m, m, 2)))


DENOMINATORS = {
    denominator.name: denominator
    for denominator in (Denominator("pairwise", _pairwise), Denominator("class", _class))
}

MISSING_FEATURES = ("ignore", "conservative")


@dataclass(frozen=True)
class NaiveSettings:
    """Validated parameters of :class:`NaiveCredal` that are used at prediction time."""

    epsilon: float
    prior: Prior
    denominator: Denominator
    missing_features: Literal["ignore", "conservative"]
    epsilon_at_zero: float | None = None  # another epsilon for s = 0, as the authors' code has it

    def check_state(self) -> None:
        """Validate stored settings."""
        check_epsilon(self.epsilon)
        if self.epsilon_at_zero is not None:
            check_epsilon(self.epsilon_at_zero)
        check_choice("missing_features", self.missing_features, MISSING_FEATURES)
        for value, kind, known in (
            (self.prior, Prior, PRIORS),
            (self.denominator, Denominator, DENOMINATORS),
        ):
            check_instance("prior or denominator", value, kind)
            if known.get(value.name, value) != value:
                raise ValueError(f"{value.name!r} is not the {kind.__name__} of that name.")

    def epsilon_for(self, s: Any) -> NDArray[np.float64]:
        """Return the epsilon that goes with a value of s, or with each of several."""
        at_zero = self.epsilon if self.epsilon_at_zero is None else self.epsilon_at_zero
        return np.where(np.asarray(s) > 0, self.epsilon, at_zero)

    def is_conservative(self, *, precise: bool) -> bool:
        """Return whether a missing feature widens bounds; the precise chain can only ignore it."""
        return self.missing_features == "conservative" and not precise


# Log-odds as 64-bit integers: their scale, their error, and zero factors.
#
# Integer sums are associative: the same bits come out for any order of the features, any number of
# threads, dense or sparse input. And the error of a sum is bounded by the number of its terms, so a
# comparison outside that band is certain. Three facts carry the bound:
#
# - every term is the logarithm of a ratio between 1e-111 and 1e111, so it is below 2**8 in size
#   (the estimators refuse parameters that could break this);
# - a sum has at most ``terms`` of them, so ``2**8 * terms * 2**bits < 2**62``;
# - a term is the difference of two logarithms of probabilities, each computed with less than 16
#   roundings, its logarithm to 4 units in the last place (below 0.2 units of 2**-40) and rounded to
#   the grid (0.5 more): every term is within 1.4 units. What an open label adds is made from such
#   terms; 4 units leave room for a strategy that triples them.
#
# Infinite terms are kept apart, as numbers of zero factors, because ``inf - inf`` would lose them:
# the low half of a 64-bit lane counts zeros of the numerator, the high half zeros of the
# denominator.

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
        """Return the scale for prior, threshold, each feature, each other label: a term each."""
        terms = n_features + n_labels + 2
        bits = min(40, 54 - terms.bit_length())
        return cls(unit=float(2**bits), band=_UNITS_PER_TERM * terms)

    @property
    def error(self) -> float:
        """Band as log-odds."""
        return self.band / self.unit

    def fixed(self, log_odds: FloatArray) -> IntArray:
        """Return finite log-odds as integers."""
        return np.rint(log_odds * self.unit).astype(np.int64)


def resolve_zero_factors(values: Any, zeros: Any, least: Any, greatest: Any) -> Any:
    """Put ``least`` where a numerator is 0 (0/0 too), ``greatest`` where only a denominator is.

    ``zeros`` None: there are none.
    """
    if zeros is None:
        return values
    return np.where(zeros & NUMERATOR_MASK, least, np.where(zeros, greatest, values))


class FixedTable(tuple[IntArray, ...]):
    """Log-odds as integers; if there are any, also zero factors, of the same shape."""

    values = property(itemgetter(0))

    @property
    def zeros(self) -> IntArray | None:
        return self[1] if len(self) > 1 else None

    @classmethod
    def from_log_odds(cls, log_odds: FloatArray, scale: FixedPoint) -> "FixedTable":
        """Return log-odds as integers; infinite and undefined ones become zero factors."""
        finite = np.isfinite(log_odds)
        values = scale.fixed(np.where(finite, log_odds, 0.0))
        if finite.all():
            return cls([values])
        undefined = np.isnan(log_odds)  # 0/0: a zero in the numerator makes it 0
        in_numerator = np.where(undefined | (log_odds == -np.inf), ZERO_IN_NUMERATOR, 0)
        in_denominator = np.where(undefined | (log_odds == np.inf), ZERO_IN_DENOMINATOR, 0)
        return cls([values, in_numerator + in_denominator])

    def log_odds(self, scale: FixedPoint) -> FloatArray:
        """Invert ``from_log_odds``: a single term is a float without rounding."""
        log_odds: FloatArray = self.values / scale.unit
        for zeros in self[1:]:
            in_numerator, in_denominator = zeros & NUMERATOR_MASK, zeros > NUMERATOR_MASK
            infinite = np.where(in_denominator, np.where(in_numerator, np.nan, np.inf), -np.inf)
            log_odds = np.where(zeros, infinite, log_odds)
        return log_odds

    def take(self, index: Any) -> "FixedTable":
        """Return a part of both."""
        return FixedTable(map(itemgetter(index), self))

    def map(self, function: Callable[[Any], Any]) -> "FixedTable":
        """Apply the same rearrangement, or sum, to both."""
        return FixedTable(map(function, self))

    def resolved(self, scale: FixedPoint) -> Any:
        """Return the log-odds of sums, in which a zero in the numerator wins."""
        return resolve_zero_factors(self.values / scale.unit, self.zeros, -np.inf, np.inf)


def alike(tables: Iterable[FixedTable]) -> list[FixedTable]:
    """Give all tables zero factors if any has some."""
    tables = list(tables)
    if max(map(len, tables)) == 1:
        return tables
    return [FixedTable([*table, np.zeros_like(table.values)][:2]) for table in tables]


def total(tables: Iterable[FixedTable]) -> FixedTable:
    """Return the sum of several tables."""
    return FixedTable(np.sum(parts, axis=0) for parts in zip(*alike(tables), strict=True))
