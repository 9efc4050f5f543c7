"""The naive credal model in exact fractions, for the comparisons that rounding cannot decide.

The model in its plainest form: prior, features and labels multiply odds. Odds are products
of fractions, so whether they exceed a threshold is a question about whole numbers. Factors are
collected with their multiplicities first: on exact ties most of them cancel, and a hundred thousand
features have few distinct factors.
"""

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property, cmp_to_key, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.array_types import IntArray
from credalchain.chains.naive.counts import ChainCounts, Codes
from credalchain.chains.naive.formulas import NaiveSettings, idm_bounds
from credalchain.chains.strategies import (
    EVEN,
    Odds,
    OddsBounds,
    Strategy,
    greatest_odds,
    least_odds,
)
from credalchain.labels import ABSTAIN, UNDECIDED

# what odds depend on: n(v, a), sum of the counts and D, for a = 0 and then a = 1; and K
CountsKey = tuple[int, int, int, int, int, int, int]


class OddsProduct:
    """Product of odds, unevaluated."""

    def __init__(self) -> None:
        self._powers: Counter[int] = Counter()
        self._infinite = 0  # -1 for odds of 0 (0/0 included), 1 for infinite odds

    def multiply(self, odds: Odds, times: int = 1) -> None:
        numerator, denominator = Fraction(odds.numerator), Fraction(odds.denominator)
        if not numerator:
            self._infinite = -1
        elif not denominator:
            self._infinite = self._infinite or 1
        else:
            self._powers[numerator.numerator] += times
            self._powers[numerator.denominator] -= times
            self._powers[denominator.numerator] -= times
            self._powers[denominator.denominator] += times

    def compared_with(self, other: "OddsProduct") -> int:
        """Return the sign of self - other."""
        if self._infinite or other._infinite:
            return (self._infinite > other._infinite) - (self._infinite < other._infinite)
        powers = Counter(self._powers)
        powers.subtract(other._powers)
        numerator, denominator = _evaluated(powers)
        return (numerator > denominator) - (numerator < denominator)

    def probability(self) -> Fraction:
        """Return P = odds / (1 + odds); 0 for odds of 0/0."""
        if self._infinite:
            return Fraction(max(self._infinite, 0))
        numerator, denominator = _evaluated(self._powers)
        return Fraction(numerator, numerator + denominator)

    def inverted(self) -> "OddsProduct":
        """Return 1 / self. Odds of 0/0 count as 0, so their inverse is infinite."""
        result = OddsProduct()
        result._powers.update({factor: -power for factor, power in self._powers.items()})
        result._infinite = -self._infinite
        return result


def _evaluated(powers: Counter[int]) -> tuple[int, int]:
    """Multiply out the factors with positive and those with negative powers."""
    numerator = math.prod(factor**power for factor, power in powers.items() if power > 0)
    denominator = math.prod(factor**-power for factor, power in powers.items() if power < 0)
    return numerator, denominator


class ExactComparator:
    """Exact odds of the rows of one batch, for one s and strategy. Equal rows are computed once.

    ``is_available``: whether the strategy merges exact odds.
    """

    def __init__(
        self,
        counts: ChainCounts,
        settings: NaiveSettings,
        codes: Codes,
        *,
        s: float,
        strategy: Strategy,
        precise: bool,
    ) -> None:
        self.is_available = strategy.merge_exact is not None
        self._counts, self._settings, self._codes = counts, settings, codes
        self._merge, self._s = strategy.merge_exact, Fraction(s)
        self._conservative = settings.is_conservative(precise=precise)
        self._epsilon = Fraction(float(settings.epsilon_for(s)))
        self._odds = lru_cache(maxsize=65536)(self._odds_of)
        self._products: dict[tuple[int, bytes, bytes], tuple[OddsProduct, OddsProduct]] = {}

    @cached_property
    def _pair_totals(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Sums and denominators of the counts of pairs, (m, m, 2) each."""
        return self._counts.pair.sum(axis=1), self._settings.denominator.totals(self._counts)

    def odds(self, row: int, j: int, history: NDArray[np.int8]) -> tuple[OddsProduct, OddsProduct]:
        """Compute the lower and upper odds of label ``j`` after ``history`` (m,)."""
        codes = self._codes.row(row)
        key = (j, codes.tobytes(), history.tobytes())
        if key not in self._products:
            self._products[key] = self._multiply(j, codes, history)
        return self._products[key]

    def bounds(self, row: int, j: int, history: NDArray[np.int8]) -> tuple[Fraction, Fraction]:
        """Compute the lower and upper probability."""
        lower, upper = self.odds(row, j, history)
        return lower.probability(), upper.probability()

    def signs(
        self, row: int, j: int, history: NDArray[np.int8], threshold: float
    ) -> tuple[int, int]:
        """Return the signs of lower - threshold and upper - threshold."""
        cut, t = OddsProduct(), Fraction(threshold)
        cut.multiply(Odds(t, 1 - t))
        lower, upper = self.odds(row, j, history)
        return lower.compared_with(cut), upper.compared_with(cut)

    def most_certain(self, row: int, labels: list[int], history: NDArray[np.int8]) -> int:
        """Return the label with the largest max(L, -U), of equals the first."""
        candidates = []
        for j in labels:
            lower, upper = self.odds(row, j, history)
            candidates += [(lower, j), (upper.inverted(), j)]
        key = cmp_to_key(OddsProduct.compared_with)
        return max(candidates, key=lambda candidate: key(candidate[0]))[1]

    def _multiply(
        self, j: int, codes: IntArray, history: NDArray[np.int8]
    ) -> tuple[OddsProduct, OddsProduct]:
        n0, n1 = self._counts.label[j].tolist()
        prior = self._settings.prior.odds(n0, n1, self._s)
        start, end = (Odds(*map(Fraction, odds)) for odds in prior)
        factors: list[tuple[Odds, Odds, int]] = [(start, end, 1)]
        factors += self._feature_odds(j, codes)
        observed = self._counts.label.sum(axis=1) > 0
        for k in np.flatnonzero((history != UNDECIDED) & observed).tolist():
            factors.append((*self._label_odds(k, int(history[k]), j), 1))
        lower, upper = OddsProduct(), OddsProduct()
        for low, high, times in factors:
            lower.multiply(low, times)
            upper.multiply(high, times)
        return lower, upper

    def _feature_odds(self, j: int, codes: IntArray) -> Iterable[tuple[Odds, Odds, int]]:
        """Return the odds of features, and how often each occurs.

        A missing feature adds nothing, or may have had any of its categories.
        """
        counts, n_categories = self._counts, self._counts.n_categories
        features = np.flatnonzero((n_categories > 1) & (codes <= n_categories))
        seen = codes[features] < n_categories[features]
        rows = counts.offsets()[features] + np.where(seen, codes[features], 0)
        n = np.where(seen[:, None], counts.feature[rows, j], 0)
        total = counts.feature_totals[features, j]
        columns = (n[:, 0], total[:, 0], total[:, 0], n[:, 1], total[:, 1], total[:, 1])
        lists = [column.tolist() for column in (*columns, n_categories[features])]
        for key, times in Counter(zip(*lists, strict=True)).items():
            yield *self._odds(key), times
        missing = (n_categories > 1) & (codes == n_categories + 1) & self._conservative
        for feature in np.flatnonzero(missing).tolist():
            start, k = counts.offsets()[feature], int(n_categories[feature])
            t0, t1 = counts.feature_totals[feature, j].tolist()
            of_categories = counts.feature[start : start + k, j].tolist()
            options = [self._odds((n0, t0, t0, n1, t1, t1, k)) for n0, n1 in of_categories]
            lower, upper = zip(*options, strict=True)
            yield least_odds(lower), greatest_odds(upper), 1

    def _label_odds(self, k: int, y: int, j: int) -> OddsBounds:
        """Return what label k says about label j, as y: 0, 1 or left open."""
        (t0, t1), (d0, d1) = (part[k, j].tolist() for part in self._pair_totals)
        options = [
            self._odds((n0, t0, d0, n1, t1, d1, 2))
            for n0, n1 in self._counts.pair[k, :, j].tolist()
        ]
        if y != ABSTAIN:
            return options[y]
        if self._merge is None:
            raise AssertionError("a strategy without exact odds cannot be settled exactly")
        if_zero, if_one = options
        return self._merge(if_zero, if_one, (EVEN, EVEN))

    def _odds_of(self, key: CountsKey) -> tuple[Odds, Odds]:
        *counted, n_categories = key
        uniform = Fraction(1, n_categories)
        (lower0, upper0), (lower1, upper1) = (
            (uniform, uniform)
            if self._s == 0 and total == 0
            else idm_bounds(n, denominator, n_categories, self._s, self._epsilon)
            for n, total, denominator in (counted[:3], counted[3:])
        )
        return Odds(lower1, upper0), Odds(upper1, lower0)
