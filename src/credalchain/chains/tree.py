"""The imprecise probability tree of a chain, for any model that gives bounds (small and exact).

A node of the tree is a label with a complete 0/1 history; its model says only that
P(Y_k = 1 | x, history) lies between a lower and an upper bound. Two questions are answered
here about a label j after labels some of which were left open:

- branching: the least lower and the greatest upper bound over all completions of the open labels;
- tree marginalization (the paper's MAR*): the bounds of P(Y_j = 1 | x, labels not left open) over
  all joint distributions that the tree allows.

Both are exponential in the number of open labels. All rows of a batch with the same labels left
open are computed together. Numbers may be floats or, in arrays of dtype object, exact fractions:
nothing here rounds beyond what + - * / do.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product, takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[Any]
Bounds = tuple[Values, Values]
Pair = tuple[Values, Values]  # P(Y = 1) and P(Y = 0): near 1, only the other tells how near
Ends = tuple[Pair, Pair]  # of the lower and of the upper distribution
History = Mapping[int, Any]  # label -> 0 or 1, one number for all rows or one per row

MAX_OPEN = 12


@dataclass(frozen=True)
class OpenTree:
    """Imprecise probability tree of one group of rows, from the first label to label j.

    Parameters
    ----------
    given : mapping of int to ndarray or None
        Each label before j, in order, with its values (one per row); None where it was left open.
    bounds : callable
        ``bounds(k, history)`` returns the bounds of label k under a complete history.
    ends : callable, default=None
        The same with their complements, if the model can compute them, so that nothing is lost
        near 1.
    can_leave_out : bool, default=False
        True if a history may lack labels.

    See Also
    --------
    branching_bounds : Bounds over all completions of the open labels.
    tree_marginal_bounds : Bounds of the marginal probability over the tree.

    Examples
    --------
    >>> import numpy as np
    >>> from credalchain.chains.tree import OpenTree
    >>> def bounds(k, history):
    ...     p = 0.9 if history.get(0) else 0.2
    ...     return np.array([p - 0.1]), np.array([p + 0.1])
    >>> tree = OpenTree({0: None}, bounds)
    >>> list(tree.completions())
    [{0: 0}, {0: 1}]
    """

    given: Mapping[int, Values | None]
    bounds: Callable[[int, History], Bounds]
    ends: Callable[[int, History], Ends] | None = None
    can_leave_out: bool = False

    def both_ends(self, k: int, history: History) -> Ends:
        """Return bounds with complements, by subtraction where the model gives none.

        Parameters
        ----------
        k : int
            Number of a label.
        history : mapping of int to int or ndarray
            Value of each label before k.

        Returns
        -------
        lower, upper : pair of ndarray
            P(Y_k = 1) and P(Y_k = 0) of the lower and of the upper distribution.
        """
        if self.ends is not None:
            return self.ends(k, history)
        lower, upper = self.bounds(k, history)
        return (lower, 1 - lower), (upper, 1 - upper)

    @property
    def open_labels(self) -> list[int]:
        """Labels that were left open."""
        return [k for k, values in self.given.items() if values is None]

    @property
    def answered(self) -> dict[int, Values]:
        """Labels that were answered, with their values."""
        return {k: values for k, values in self.given.items() if values is not None}

    def check_size(self, most: int = MAX_OPEN) -> None:
        """Raise a ValueError if too many labels are open, before anything is computed.

        Parameters
        ----------
        most : int, default=12
            Greatest number of open labels.
        """
        n_open = len(self.open_labels)
        if n_open > most:
            raise ValueError(
                f"{n_open} labels were left open before this one; all their completions "
                f"can be looked at for at most {most}."
            )

    def completions(self) -> Iterator[dict[int, Any]]:
        """Yield every way to fill in the open labels.

        Yields
        ------
        dict of int to int or ndarray
            A complete history.
        """
        self.check_size()
        open_labels, answered = self.open_labels, self.answered
        for filled in product((0, 1), repeat=len(open_labels)):
            yield {**answered, **dict(zip(open_labels, filled, strict=True))}


def merged_ends(tree: OpenTree, j: int, merge: Callable[[Bounds, Bounds, Any], Bounds]) -> Ends:
    """Compute the bounds of label j, merging both branches of every open label, the last first."""
    tree.check_size(MAX_OPEN if not tree.can_leave_out else MAX_OPEN // 2)

    def merged(history: dict[int, Any], open_labels: list[int]) -> Bounds:
        if not open_labels:
            return tree.bounds(j, history)
        k, remaining = open_labels[0], open_labels[1:]
        if_zero, if_one = (merged({**history, k: y}, remaining) for y in (0, 1))
        return merge(if_zero, if_one, merged(history, remaining) if tree.can_leave_out else None)

    lower, upper = merged(tree.answered, tree.open_labels)
    return (lower, 1 - lower), (upper, 1 - upper)


def branching_bounds(tree: OpenTree, j: int) -> Bounds:
    """Compute the least lower and the greatest upper bound of a label over all completions.

    Parameters
    ----------
    tree : OpenTree
        Labels before j, and the local bounds.
    j : int
        Number of the label.

    Returns
    -------
    lower, upper : ndarray
        Bounds of P(Y_j = 1), one per row.

    Examples
    --------
    >>> import numpy as np
    >>> from credalchain.chains.tree import OpenTree, branching_bounds
    >>> def bounds(k, history):
    ...     p = 0.9 if history.get(0) else 0.2
    ...     return np.array([p - 0.1]), np.array([p + 0.1])
    >>> lower, upper = branching_bounds(OpenTree({0: None}, bounds), 1)
    >>> lower.round(2), upper.round(2)
    (array([0.1]), array([1.]))
    """
    (lower, _), (upper, _) = branching_ends(tree, j)
    return lower, upper


def branching_ends(tree: OpenTree, j: int) -> Ends:
    """Compute what :func:`branching_bounds` does, with complements."""
    lower, upper = zip(*(tree.both_ends(j, history) for history in tree.completions()), strict=True)
    (low, not_low), (high, not_high) = zip(*lower, strict=True), zip(*upper, strict=True)
    least = np.minimum.reduce(low), np.maximum.reduce(not_low)
    return least, (np.maximum.reduce(high), np.minimum.reduce(not_high))


def tree_marginal_bounds(tree: OpenTree, j: int) -> Bounds:
    """Compute bounds of P(Y_j = 1 | labels not left open) over all distributions of the tree.

    The lower bound is the largest mu for which the lower expectation of
    1[history] (1[Y_j = 1] - mu) is not negative (regular extension); the upper bound is one
    minus the same for Y_j = 0. A history of upper probability 0 says nothing: [0, 1].

    Parameters
    ----------
    tree : OpenTree
        Labels before j, and the local bounds.
    j : int
        Number of the label.

    Returns
    -------
    lower, upper : ndarray
        Bounds of P(Y_j = 1), one per row.

    References
    ----------
    P. Walley, Statistical Reasoning with Imprecise Probabilities, 1991, appendix J (regular
    extension).

    Examples
    --------
    >>> import numpy as np
    >>> from credalchain.chains.tree import OpenTree, tree_marginal_bounds
    >>> def bounds(k, history):
    ...     p = 0.5 if k == 0 else 0.9 if history[0] else 0.2
    ...     return np.array([p - 0.1]), np.array([p + 0.1])
    >>> lower, upper = tree_marginal_bounds(OpenTree({0: None}, bounds), 1)
    >>> lower.round(2), upper.round(2)
    (array([0.38]), array([0.72]))
    """
    (lower, _), (upper, _) = tree_marginal_ends(tree, j)
    return lower, upper


def tree_marginal_ends(tree: OpenTree, j: int) -> Ends:
    """Compute what :func:`tree_marginal_bounds` does, with complements."""
    nodes = _Nodes(tree, j)
    one, not_one = nodes.least_conditional(1)
    zero, not_zero = nodes.least_conditional(0)
    crossed = one * zero > not_zero * not_one  # by rounding only, where the two coincide
    not_zero, zero = np.where(crossed, one, not_zero), np.where(crossed, not_one, zero)
    impossible = nodes.upper_history() == 0
    lower = (np.where(impossible, 0, one), np.where(impossible, 1, not_one))
    upper = (np.where(impossible, 1, not_zero), np.where(impossible, 0, zero))
    return lower, upper


class _Nodes:
    """Backward recursion over the nodes between the root and label j.

    A distribution gives two numbers, a = P(history, Y_j = y) and c = P(history, Y_j != y);
    with mu + nu = 1, each node takes the end of its own interval that makes a nu - c mu
    smallest. This is the only difference, and only its sign is used.
    """

    def __init__(self, tree: OpenTree, j: int) -> None:
        tree.check_size()
        self._j = j
        self._path = list(tree.given.items())
        self._tree = tree
        self._local = cache(self._find_ends)

    def _find_ends(self, k: int, filled: tuple[int, ...]) -> Ends:
        """Find the bounds of label k where the open labels before it are ``filled``."""
        values_of_open = iter(filled)
        before = takewhile(lambda item: item[0] != k, self._path)
        return self._tree.both_ends(
            k, {label: next(values_of_open) if y is None else y for label, y in before}
        )

    def least_conditional(self, y: int) -> Pair:
        """Find the least P(Y_j = y | history) and its complement: a Newton iteration from above.

        It is finite, and exact for fractions: at mu the worst distribution has a nu - c mu < 0,
        so c > 0 and a / (a + c) is a smaller mu; where none does worse than 0, mu is the answer.
        """
        mu = self._ones()
        nu = mu - mu
        while True:
            a, c = self._worst(y, (mu, nu), 0, ())
            worse = a * nu - c * mu < 0
            total = np.where(worse, a + c, 1)
            # near 1 only nu changes; both are monotone, so that rounding cannot cause a cycle
            smaller = np.where(worse, np.minimum(a / total, mu), mu)
            larger = np.where(worse, np.maximum(c / total, nu), nu)
            if not np.any((smaller < mu) | (larger > nu)):
                return mu, nu
            mu, nu = smaller, larger

    def upper_history(self) -> Values:
        """Return the greatest P(history)."""
        ones = self._ones()
        a, c = self._worst(None, (ones, ones), 0, ())
        return a + c

    def _ones(self) -> Values:
        (lower, _), _ = self._local(self._j, (0,) * len(self._tree.open_labels))
        return np.ones_like(np.asarray(lower))

    def _worst(self, y: int | None, mu_nu: Pair, depth: int, filled: tuple[int, ...]) -> Pair:
        """Find the worst (a, c) at (mu, nu); y None asks for the most probable history instead."""
        if depth == len(self._path):
            lower, upper = self._local(self._j, filled)
            return (upper[1], upper[0]) if y == 0 else lower
        k, values = self._path[depth]
        lower, upper = self._local(k, filled)
        if values is None:
            zero = self._worst(y, mu_nu, depth + 1, (*filled, 0))
            one = self._worst(y, mu_nu, depth + 1, (*filled, 1))
            to_lower = self._objective(y, one, mu_nu) <= self._objective(y, zero, mu_nu)
            p1, p0 = (np.where(to_lower, low, high) for low, high in zip(lower, upper, strict=True))
            return p1 * one[0] + p0 * zero[0], p1 * one[1] + p0 * zero[1]
        a, c = self._worst(y, mu_nu, depth + 1, filled)
        low = np.where(values == 1, lower[0], upper[1])
        high = np.where(values == 1, upper[0], lower[1])
        p = np.where(self._objective(y, (a, c), mu_nu) <= 0, low, high)
        return p * a, p * c

    @staticmethod
    def _objective(y: int | None, pair: Pair, mu_nu: Pair) -> Values:
        """Return what every node maximises: c mu - a nu, or P(history) if y is None."""
        a, c = pair
        return a + c if y is None else c * mu_nu[0] - a * mu_nu[1]
