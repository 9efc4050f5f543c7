"""Settles what lies inside the rounding band, in exact arithmetic if the strategy can."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from credalchain._kernels.fixed_point import ABOVE_MASK
from credalchain.bases.naive.codes import Codes, IntArray
from credalchain.bases.naive.exact import ExactChain, OddsProduct, threshold_odds
from credalchain.bases.protocol import Exactness, Signs
from credalchain.strategies import Strategy

if TYPE_CHECKING:
    from credalchain.bases.naive.model import NaiveChainModel


class Settler:
    """Exact odds of the rows of one batch, for one s and strategy."""

    def __init__(
        self,
        model: "NaiveChainModel",
        codes: Codes,
        *,
        s: float,
        strategy: Strategy,
        conservative: bool,
    ) -> None:
        self.exact = strategy.star_exact is not None
        self._codes = codes
        self._make: Callable[[], ExactChain] = partial(
            ExactChain, model.counts, model.settings, strategy, s=s, conservative=conservative
        )
        self._chain: ExactChain | None = None
        self._odds: dict[tuple[int, bytes, bytes], tuple[OddsProduct, OddsProduct]] = {}

    def odds(self, row: int, j: int, history: NDArray[np.int8]) -> tuple[OddsProduct, OddsProduct]:
        """Lower and upper odds of label j; equal rows are computed once."""
        codes = self._codes.row(row)
        key = (j, codes.tobytes(), history.tobytes())
        if key not in self._odds:
            if self._chain is None:
                self._chain = self._make()
            self._odds[key] = self._chain.odds(j, codes, history)
        return self._odds[key]

    def sides(
        self, row: int, j: int, history: NDArray[np.int8], threshold: float
    ) -> tuple[int, int]:
        """Signs of lower - threshold and upper - threshold."""
        cut = threshold_odds(threshold)
        lower, upper = self.odds(row, j, history)
        return lower.compared_with(cut), upper.compared_with(cut)

    def bounds(self, row: int, j: int, history: NDArray[np.int8]) -> tuple[Fraction, Fraction]:
        """Lower and upper probability."""
        lower, upper = self.odds(row, j, history)
        return lower.probability(), upper.probability()

    def certainty(self, row: int, j: int, history: NDArray[np.int8]) -> OddsProduct:
        """exp(max(L, -U)): what the dynamic order goes by."""
        lower, upper = self.odds(row, j, history)
        inverse = upper.inverted()
        return lower if lower.compared_with(inverse) >= 0 else inverse


def exactness_of(strategy: Strategy) -> Exactness:
    """Exact where ties can be settled exactly."""
    return Exactness.APPROXIMATE if strategy.star_exact is None else Exactness.EXACT


def rounded_sides(values: IntArray, zeros: IntArray | None, cut: int, band: int) -> Signs:
    """1 above the cut, -1 below, 0 within ``band`` of it; what ``walk_chain`` does, for arrays."""
    distance = values - cut
    signs = np.where(np.abs(distance) <= band, 0, np.sign(distance)).astype(np.int8)
    if zeros is not None:
        signs = np.where(zeros & ABOVE_MASK, -1, np.where(zeros, 1, signs)).astype(np.int8)
    return signs
