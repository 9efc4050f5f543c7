"""What naive credal models can be told: prior, denominator, epsilon, missing features."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from credalchain.bases.naive.counts import ChainCounts

# (above, below) of the lower odds, then of the upper odds. The functions work on arrays
# and on exact fractions alike, so that a formula stands in one place.
OddsPair = tuple[tuple[Any, Any], tuple[Any, Any]]


def _laplace(n0: Any, n1: Any, s: Any) -> OddsPair:
    odds = (n1 + 1, n0 + 1)
    return odds, odds


def _paper(n0: Any, n1: Any, s: Any) -> OddsPair:
    never_seen = (n0 == 0) | (n1 == 0)  # a class: Laplace's 1 there, 0 elsewhere
    odds = (n1 + never_seen, n0 + never_seen)
    return odds, odds


def _credal(n0: Any, n1: Any, s: Any) -> OddsPair:
    return (n1, n0 + s), (n1 + s, n0)


PRIORS: dict[str, Callable[[Any, Any, Any], OddsPair]] = {
    "laplace": _laplace,
    "paper": _paper,
    "credal": _credal,
}


def _pairwise(counts: ChainCounts) -> NDArray[np.int64]:
    return np.asarray(counts.pair.sum(axis=1))


def _class(counts: ChainCounts) -> NDArray[np.int64]:
    m = counts.n_labels
    return np.ascontiguousarray(np.broadcast_to(counts.label, (m, m, 2)))


# D for label pairs: (m, m, 2), [k, j, a]
DENOMINATORS: dict[str, Callable[[ChainCounts], NDArray[np.int64]]] = {
    "pairwise": _pairwise,
    "class": _class,
}

MISSING_FEATURES = ("ignore", "conservative")


@dataclass(frozen=True)
class NaiveSettings:
    """The parameters of :class:`NaiveCredal` that are used at prediction time, checked."""

    epsilon: float
    prior: str
    denominator: str
    missing_features: Literal["ignore", "conservative"]
    epsilon_at_zero: float | None = None  # another epsilon for s = 0, as the authors' code has it

    def epsilon_for(self, s: float) -> float:
        """The epsilon that goes with a value of s."""
        return self.epsilon if s > 0 or self.epsilon_at_zero is None else self.epsilon_at_zero
