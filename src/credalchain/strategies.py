"""What a starred label tells the labels after it.

An earlier label adds ``w(0)`` to the log-odds if it was predicted 0 and ``w(1)`` if 1.
A strategy says what it adds when it was left open. It is a value, so a new one needs
no change anywhere else.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalchain.tree import Ends, StarredTree, branching_ends, tree_marginal_ends

FloatArray = NDArray[np.float64]


class Odds(NamedTuple):
    """Exact odds: ``above / below``, both non-negative. 0/0 is undefined."""

    above: Fraction
    below: Fraction

    @property
    def undefined(self) -> bool:
        return self.above == 0 == self.below

    def less_than(self, other: "Odds") -> bool:
        """Compare two defined odds; x/0 is infinite."""
        return self.above * other.below < other.above * self.below


EVEN = Odds(Fraction(1), Fraction(1))


@dataclass(frozen=True)
class Strategy:
    """How a chain goes on after a label it left open.

    Parameters
    ----------
    name : str
    nested : bool
        Whether a label answered at a larger s was answered, with the same value, at
        every smaller one (for a fixed order).
    star : callable, optional
        For models that are sums of log-odds:
        ``star(w_lower, w_upper) -> (lower, upper)``. ``w_lower[b]`` and ``w_upper[b]``
        are float arrays of what the label adds to the lower and upper log-odds of the
        other labels if it is b; the result is what a star adds. Values may be infinite,
        and NaN for 0/0.
    star_exact : callable, optional
        The same in exact odds, ``star_exact((lower0, lower1), (upper0, upper1)) ->
        (lower, upper)`` with :class:`Odds`. With it, ties are settled exactly; without
        it a prediction reports its exactness as approximate.
    shortcut : {"widest", "nothing"}, optional
        Says that ``star`` gives the least of the lower and the greatest of the upper, or 0:
        what compiled code can do in its place.
    from_tree : callable, optional
        For models of any kind: ``from_tree(tree, j) -> (lower, upper)``, each a pair of P(Y = 1)
        and P(Y = 0), from the bounds under complete histories, see
        :class:`credalchain.tree.StarredTree`. A model that is a sum uses it where there is no
        ``star``.
    """

    name: str
    nested: bool
    star: Callable[[NDArray[Any], NDArray[Any]], tuple[Any, Any]] | None = None
    star_exact: Callable[[tuple[Odds, Odds], tuple[Odds, Odds]], tuple[Odds, Odds]] | None = None
    shortcut: Literal["widest", "nothing"] | None = None
    from_tree: Callable[[StarredTree, int], Ends] | None = None


def least_log_odds(w: NDArray[Any]) -> NDArray[Any]:
    """The least over the first axis; any undefined value makes it undefined."""
    return np.asarray(np.minimum.reduce(w, axis=0))


def greatest_log_odds(w: NDArray[Any]) -> NDArray[Any]:
    """The greatest over the first axis; undefined only where all are."""
    return np.asarray(np.fmax.reduce(w, axis=0))


def least_odds(odds: tuple[Odds, ...]) -> Odds:
    """The exact twin of :func:`least_log_odds`."""
    least = odds[0]
    for candidate in odds[1:]:
        if not least.undefined and (candidate.undefined or candidate.less_than(least)):
            least = candidate
    return least


def greatest_odds(odds: tuple[Odds, ...]) -> Odds:
    """The exact twin of :func:`greatest_log_odds`."""
    greatest = odds[0]
    for candidate in odds[1:]:
        if greatest.undefined or (not candidate.undefined and greatest.less_than(candidate)):
            greatest = candidate
    return greatest


def _branch(w_lower: NDArray[Any], w_upper: NDArray[Any]) -> tuple[Any, Any]:
    return least_log_odds(w_lower), greatest_log_odds(w_upper)


def _branch_exact(lower: tuple[Odds, Odds], upper: tuple[Odds, Odds]) -> tuple[Odds, Odds]:
    return least_odds(lower), greatest_odds(upper)


def _drop(w_lower: FloatArray, w_upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    return np.zeros_like(w_lower[0]), np.zeros_like(w_upper[0])


def _drop_exact(lower: tuple[Odds, Odds], upper: tuple[Odds, Odds]) -> tuple[Odds, Odds]:
    return EVEN, EVEN


branching = Strategy(
    "branching",
    nested=True,
    star=_branch,
    star_exact=_branch_exact,
    shortcut="widest",
    from_tree=branching_ends,
)
"""Imprecise branching: every completion of the stars is possible (the paper's IB)."""

marginalization = Strategy(
    "marginalization", nested=False, star=_drop, star_exact=_drop_exact, shortcut="nothing"
)
"""Marginalization: a starred label is dropped from the product (the paper's MAR for NCC)."""

tree_marginalization = Strategy("tree-marginalization", nested=False, from_tree=tree_marginal_ends)
"""Marginalization over all joint distributions of the tree (MAR*): exact, exponential in stars."""

STRATEGIES = {
    strategy.name: strategy for strategy in (branching, marginalization, tree_marginalization)
}


def get_strategy(strategy: "str | Strategy") -> Strategy:
    """A strategy by its name, or itself."""
    if isinstance(strategy, Strategy):
        return strategy
    if isinstance(strategy, str) and strategy in STRATEGIES:
        return STRATEGIES[strategy]
    names = ", ".join(repr(name) for name in STRATEGIES)
    raise ValueError(f"strategy must be {names} or a Strategy, got {strategy!r}.")
