"""The formulas of the naive credal model, as values: bounds, priors and denominators.

They work on arrays and on exact fractions alike (the bounds also in compiled code), so that each
is defined once. A new prior or denominator is another value below, or one that a user passes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.validation import check_choice, check_epsilon, check_instance
from credalchain.chains.naive.counts import ChainCounts

OddsPair = tuple[tuple[Any, Any], tuple[Any, Any]]
"""(numerator, denominator) of the lower odds, then of the upper odds."""


def idm_bounds(n: Any, denominator: Any, n_categories: Any, s: Any, epsilon: Any) -> Any:
    """Lower and upper P(v | a) of the imprecise Dirichlet model, from n(v, a), D and K.

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
    """What counts of a pair of labels are divided by: ``totals(counts)``, (m, m, 2).

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
    """The parameters of :class:`NaiveCredal` that are used at prediction time, checked."""

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
        """The epsilon that goes with a value of s, or with each of several."""
        at_zero = self.epsilon if self.epsilon_at_zero is None else self.epsilon_at_zero
        return np.where(np.asarray(s) > 0, self.epsilon, at_zero)

    def is_conservative(self, *, precise: bool) -> bool:
        """Whether a missing feature widens bounds; the precise chain can only ignore it."""
        return self.missing_features == "conservative" and not precise
