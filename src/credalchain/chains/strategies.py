"""How a label left open affects the labels after it.

A strategy is a value, so a new one needs no other change. With ``merge`` it runs on every
base; with ``from_tree`` alone, where few labels are open: trees are exponential in their number.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalchain.chains.tree import Ends, OpenTree, branching_ends, tree_marginal_ends

Bounds = tuple[Any, Any]  # lower, upper


class Odds(NamedTuple):
    """Exact odds: ``numerator / denominator``, both non-negative. 0/0 is undefined."""

    numerator: Fraction
    denominator: Fraction

    @property
    def undefined(self) -> bool:
        return self.numerator == 0 == self.denominator

    @property
    def probability(self) -> Fraction:
        """Probability, by which defined odds are ordered; x/0 is infinite."""
        return self.numerator / (self.numerator + self.denominator)


EVEN = Odds(Fraction(1), Fraction(1))
OddsBounds = tuple[Odds, Odds]  # lower, upper


@dataclass(frozen=True, eq=False)
class Strategy:
    """Strategy for open labels: how a chain continues after a label that it left open.

    Parameters
    ----------
    name : str
        Name of the strategy.
    nested : bool
        True if a label answered at a larger s is answered, with the same value, at every smaller
        one (for a fixed order).
    merge : callable, default=None
        ``merge(if_zero, if_one, if_dropped) -> (lower, upper)``. Each argument is a pair of arrays,
        lower and upper: what a later label gets if the open label is 0, if it is 1, and if it is
        left out. Models that are sums of log-odds merge what the label adds to them (nothing if
        it is left out; values may be infinite, and NaN for 0/0); decision trees and black boxes
        merge probabilities, and ``if_dropped`` is None for those that cannot leave a label out.
    merge_exact : callable, default=None
        The same in exact odds, pairs of ``Odds``. If given, the naive model breaks ties exactly;
        otherwise predictions are reported as approximate.
    from_tree : callable, default=None
        For strategies that need the whole probability tree: ``from_tree(tree, j) -> (lower,
        upper)``, each a pair of P(Y = 1) and P(Y = 0), from the bounds under complete histories,
        see :class:`credalchain.chains.tree.OpenTree`. Used where a model cannot merge.

    See Also
    --------
    branching : The default.

    Examples
    --------
    A custom strategy, which treats an open label as 0:

    >>> from credalchain import CredalChainClassifier, Strategy
    >>> def take_zero(if_zero, if_one, if_dropped):
    ...     return if_zero
    >>> as_no = Strategy("as no", nested=False, merge=take_zero)
    >>> X, Y = [["a"], ["a"], ["b"], ["b"]], [[1, 0], [1, 1], [0, 0], [0, 1]]
    >>> chain = CredalChainClassifier(strategy=as_no, order="given").fit(X, Y)
    >>> chain.predict_partial([["a"]]).shape
    (1, 2)
    """

    name: str
    nested: bool
    merge: Callable[[Bounds, Bounds, Bounds | None], Bounds] | None = None
    merge_exact: Callable[[OddsBounds, OddsBounds, OddsBounds], OddsBounds] | None = None
    from_tree: Callable[[OpenTree, int], Ends] | None = None


def least_log_odds(terms: NDArray[Any]) -> NDArray[Any]:
    """Return the least over the first axis; any undefined value makes it undefined."""
    return np.asarray(np.minimum.reduce(terms, axis=0))


def greatest_log_odds(terms: NDArray[Any]) -> NDArray[Any]:
    """Return the greatest over the first axis; undefined only where all are."""
    return np.asarray(np.fmax.reduce(terms, axis=0))


def least_odds(odds: tuple[Odds, ...]) -> Odds:
    """Return the least odds, as the exact twin of :func:`least_log_odds`."""
    undefined = (candidate for candidate in odds if candidate.undefined)
    return next(undefined, None) or min(odds, key=lambda candidate: candidate.probability)


def greatest_odds(odds: tuple[Odds, ...]) -> Odds:
    """Return the greatest odds, as the exact twin of :func:`greatest_log_odds`."""
    defined = (candidate for candidate in odds if not candidate.undefined)
    return max(defined, key=lambda candidate: candidate.probability, default=odds[0])


def merge_widest(if_zero: Bounds, if_one: Bounds, if_dropped: Bounds | None) -> Bounds:
    """Return the least lower and the greatest upper bound of both branches."""
    return np.minimum(if_zero[0], if_one[0]), np.fmax(if_zero[1], if_one[1])


def merge_widest_exact(
    if_zero: OddsBounds, if_one: OddsBounds, if_dropped: OddsBounds
) -> OddsBounds:
    """Merge odds, as the exact twin of :func:`merge_widest`."""
    return least_odds((if_zero[0], if_one[0])), greatest_odds((if_zero[1], if_one[1]))


def merge_dropped(if_zero: Bounds, if_one: Bounds, if_dropped: Bounds | None) -> Bounds:
    """Merge as if the label were not there."""
    if if_dropped is None:
        raise ValueError(
            "strategy 'marginalization' needs a model that can leave labels out; for others use "
            "'branching' or 'tree-marginalization'."
        )
    return if_dropped


def merge_dropped_exact(
    if_zero: OddsBounds, if_one: OddsBounds, if_dropped: OddsBounds
) -> OddsBounds:
    """Merge odds, as the exact twin of :func:`merge_dropped`."""
    return if_dropped


branching = Strategy(
    "branching",
    nested=True,
    merge=merge_widest,
    merge_exact=merge_widest_exact,
    from_tree=branching_ends,
)
"""Imprecise branching: every completion of the open labels is possible (the paper's IB)."""

marginalization = Strategy(
    "marginalization", nested=False, merge=merge_dropped, merge_exact=merge_dropped_exact
)
"""Marginalization: an open label is dropped from the product (the paper's MAR for NCC)."""

tree_marginalization = Strategy("tree-marginalization", nested=False, from_tree=tree_marginal_ends)
"""Marginalization over all joint distributions of the tree (MAR*): exact, exponential in the
number of open labels."""

STRATEGIES = {
    strategy.name: strategy for strategy in (branching, marginalization, tree_marginalization)
}


def get_strategy(strategy: "str | Strategy") -> Strategy:
    """Return a strategy by its name, or itself."""
    if isinstance(strategy, Strategy):
        return strategy
    if isinstance(strategy, str) and strategy in STRATEGIES:
        return STRATEGIES[strategy]
    names = ", ".join(repr(name) for name in STRATEGIES)
    raise ValueError(f"strategy must be {names} or a Strategy, got {strategy!r}.")
