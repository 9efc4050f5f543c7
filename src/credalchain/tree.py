"""The imprecise probability tree of a chain, for any model that gives bounds (small and exact).

A node of the tree is a label with a complete 0/1 history; its model says only that
P(Y_k = 1 | x, history) lies between a lower and an upper bound. Two questions are answered
here about a label j after labels some of which were left open:

- branching: the least lower and the greatest upper bound over all completions of the stars;
- tree marginalization (the paper's MAR*): the bounds of P(Y_j = 1 | x, labels not starred) over
  all joint distributions that the tree allows.

Both are exponential in the number of stars. All rows of a batch that star the same labels are
computed together. Numbers may be floats or, in arrays of dtype object, exact fractions: nothing
here rounds beyond what + - * / do.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[Any]
Bounds = tuple[Values, Values]
History = Mapping[int, Any]  # label -> 0 or 1, one number for all rows or one per row

MOST_STARS = 12


@dataclass(frozen=True)
class StarredTree:
    """The tree as one group of rows sees it: what was told, in order, and the local bounds.

    ``told`` maps each label before j to its values (one per row), None where it was starred.
    ``bounds(k, history)`` gives the bounds of label k under a complete history.
    """

    told: Mapping[int, Values | None]
    bounds: Callable[[int, History], Bounds]

    @property
    def stars(self) -> list[int]:
        return [k for k, values in self.told.items() if values is None]

    def completions(self) -> Iterator[dict[int, Any]]:
        """Complete histories: what was answered, and every way to fill in the stars."""
        stars = self.stars
        if len(stars) > MOST_STARS:
            raise ValueError(
                f"{len(stars)} labels were left open before this one; all their completions "
                f"can be looked at for at most {MOST_STARS}."
            )
        answered = {k: values for k, values in self.told.items() if values is not None}
        for filled in product((0, 1), repeat=len(stars)):
            yield {**answered, **dict(zip(stars, filled, strict=True))}


def branching_bounds(tree: StarredTree, j: int) -> Bounds:
    """The least lower and the greatest upper bound of label j over all completions."""
    ends = [tree.bounds(j, history) for history in tree.completions()]
    lower = np.minimum.reduce([low for low, _ in ends])
    upper = np.maximum.reduce([high for _, high in ends])
    return lower, upper


def tree_marginal_bounds(tree: StarredTree, j: int) -> Bounds:
    """Bounds of P(Y_j = 1 | labels not starred) over all distributions of the tree (MAR*).

    The lower bound is the largest mu for which the lower expectation of
    1[history] (1[Y_j = 1] - mu) is not negative (regular extension); the upper bound is one
    minus the same for Y_j = 0. A history of upper probability 0 says nothing: [0, 1].
    """
    nodes = _Nodes(tree, j)
    lower = nodes.least_conditional(1)
    upper = 1 - nodes.least_conditional(0)
    impossible = nodes.upper_history() == 0
    return np.where(impossible, 0, lower), np.where(impossible, 1, upper)


class _Nodes:
    """Backward recursion over the nodes between the root and label j.

    A distribution is told by two numbers, a = P(history, Y_j = y) and b = P(history); each
    node takes the end of its own interval that makes a - mu b smallest.
    """

    def __init__(self, tree: StarredTree, j: int) -> None:
        list(tree.completions())  # refuses too many stars before anything is computed
        self._j = j
        self._path = list(tree.told.items())
        self._tree = tree
        self._bounds: dict[tuple[int, ...], Bounds] = {}

    def _local(self, k: int, filled: tuple[int, ...]) -> Bounds:
        """Bounds of label k where the stars before it are ``filled``."""
        key = (k, *filled)
        if key not in self._bounds:
            history: dict[int, Any] = {}
            stars = iter(filled)
            for label, values in self._path:
                if label == k:
                    break
                history[label] = next(stars) if values is None else values
            self._bounds[key] = self._tree.bounds(k, history)
        return self._bounds[key]

    def least_conditional(self, y: int) -> Values:
        """The least P(Y_j = y | history): a Newton iteration from above, finite and exact.

        At mu the worst distribution has a - mu b < 0, so b > 0 and a / b is a smaller mu;
        where no distribution does worse than 0, mu is the answer.
        """
        mu = self._ones()
        while True:
            a, b = self._worst(y, mu, 0, ())
            worse = a - mu * b < 0
            with np.errstate(divide="ignore", invalid="ignore"):
                better = np.where(worse, a / np.where(worse, b, 1), mu)
            if not np.any(better < mu):
                return mu
            mu = np.minimum(mu, better)

    def upper_history(self) -> Values:
        """The greatest P(history)."""
        a, _ = self._worst(None, self._ones(), 0, ())
        return -a

    def _ones(self) -> Values:
        lower, _ = self._local(self._j, (0,) * len(self._tree.stars))
        return np.ones_like(np.asarray(lower))

    def _worst(self, y: int | None, mu: Values, depth: int, filled: tuple[int, ...]) -> Bounds:
        """(a, b) that make a - mu b smallest; y None asks for the least -P(history) instead."""
        if depth == len(self._path):
            return self._worst_leaf(y, filled)
        k, told = self._path[depth]
        lower, upper = self._local(k, filled)
        if told is None:
            zero = self._worst(y, mu, depth + 1, (*filled, 0))
            one = self._worst(y, mu, depth + 1, (*filled, 1))
            rises = one[0] - mu * one[1] >= zero[0] - mu * zero[1]
            p = np.where(rises, lower, upper)
            return p * one[0] + (1 - p) * zero[0], p * one[1] + (1 - p) * zero[1]
        a, b = self._worst(y, mu, depth + 1, filled)
        low, high = np.where(told == 1, lower, 1 - upper), np.where(told == 1, upper, 1 - lower)
        p = np.where(a - mu * b >= 0, low, high)
        return p * a, p * b

    def _worst_leaf(self, y: int | None, filled: tuple[int, ...]) -> Bounds:
        if y is None:
            ones = self._ones()
            return -ones, ones - ones
        lower, upper = self._local(self._j, filled)
        least = lower if y == 1 else 1 - upper
        return least, np.ones_like(np.asarray(least))
