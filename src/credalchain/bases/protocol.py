"""The interface between a classifier and its model: a request and an answer.

A base learns one binary model per label, which may use other labels as inputs besides the
features. A classifier asks the fitted model for all rows of a batch at once; the model answers
with labels and bounds. Models that are asked label by label supply a :class:`Walk`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from credalchain.array_types import Labels
from credalchain.labels import ABSTAIN, MISSING, UNDECIDED
from credalchain.strategies import Strategy

LogOdds = NDArray[np.float64]
Rows = NDArray[np.intp]
Signs = NDArray[np.int8]
Ranks = NDArray[np.int8]  # of Exactness
Order = NDArray[np.int64]
ExactBounds = Callable[[int, int, Labels], tuple[Fraction, Fraction]]
"""``f(row, j, history)``: lower and upper probability of label j, given a history (m,)."""


Found = TypeVar("Found")


class Exactness(StrEnum):
    """How the returned bounds relate to the defined bounds, from the best to the worst.

    Outer bounds contain the defined ones, inner bounds lie inside them.
    """

    EXACT = "exact"
    OUTER = "outer"
    INNER = "inner"
    APPROXIMATE = "approximate"


RANKS = {exactness: rank for rank, exactness in enumerate(Exactness)}
"""0 for the best: arrays hold these numbers."""


@dataclass(frozen=True)
class Request:
    """What a classifier asks of a model for one batch of rows.

    ``s_values`` are values of s. ``order`` is the order of the labels, None for the dynamic one.
    ``never_observed`` (m,) are labels that no training row had a value for, ``known`` (n, m) labels
    that were answered already (-1 elsewhere). If ``chained`` is False, each label is
    predicted without conditioning on the others. If ``precise``, labels are never left open and a
    tie at the threshold is answered 1. If ``wants_bounds`` is False, the model may omit
    ``log_odds``. ``n_jobs`` is a number of threads.
    """

    s_values: tuple[float, ...]
    strategies: tuple[Strategy, ...]
    order: Order | None
    thresholds: NDArray[np.float64]
    never_observed: NDArray[np.bool_]
    known: Labels | None = None
    chained: bool = True
    precise: bool = False
    wants_bounds: bool = True
    n_jobs: int = 1

    def for_rows(self, first: int, stop: int) -> "Request":
        """The same for some of the rows."""
        if self.known is None:
            return self
        return replace(self, known=self.known[first:stop])

    def forced_labels(self, rows: slice = slice(None)) -> Labels:
        """(1 or rows, m): labels that do not depend on bounds, UNDECIDED where bounds decide.

        A label that was never observed is left open, or 0 in the precise chain; a known label has
        its known value.
        """
        forced = np.full((1, len(self.thresholds)), UNDECIDED, dtype=np.int8)
        forced[:, self.never_observed] = 0 if self.precise else ABSTAIN
        if self.known is not None:
            known = self.known[rows]
            forced = np.where(known == MISSING, forced, known)
        return forced

    def make_vacuous(self, log_odds: LogOdds | None, interval: NDArray[Any] | None = None) -> None:
        """Set the bounds of never-observed labels to the vacuous interval, in place."""
        if log_odds is not None:
            log_odds[..., self.never_observed, :] = (-np.inf, np.inf)
        if interval is not None:
            interval[..., self.never_observed, :] = (0.0, 1.0)


@dataclass(frozen=True)
class Answer:
    """What a model says about n rows and m labels, for all strategies and values of s.

    ``labels`` (strategies, values, n, m) in {0, 1, -1}; ``log_odds`` (strategies, values, n, m, 2),
    lower and upper, if bounds were asked for; ``exactness`` as ranks, like ``labels``;
    ``interval``, like ``log_odds``, where the model gave probabilities: going to log-odds and back
    would round them. ``visited``, like ``labels``, are the labels in the order of visits, where
    every row has its own order.
    """

    labels: Labels
    log_odds: LogOdds | None
    exactness: Ranks
    interval: NDArray[np.float64] | None = None
    visited: Order | None = None


class Walk(ABC):
    """One batch of rows on its way along the chain.

    ``set_label`` changes the bounds of the other labels; everything else is without side
    effects. ``rows`` are indices into the batch.
    """

    n_rows: int
    n_labels: int
    _last: tuple[int, Rows, Any] | None = None

    @abstractmethod
    def log_odds(self, j: int, rows: Rows) -> tuple[LogOdds, LogOdds]:
        """Lower and upper log-odds of label ``j``, given the labels set so far."""

    @abstractmethod
    def set_label(self, j: int, y: Labels, rows: Rows) -> None:
        """Label ``j`` of these rows is ``y``: 0, 1 or -1 if it was left open."""

    def probabilities(self, j: int, rows: Rows) -> tuple[Any, Any] | None:
        """The same bounds as probabilities, or None if the model gives log-odds."""
        return None

    def exactness(self, j: int, rows: Rows) -> Ranks:
        """How good the bounds of label ``j`` are, given the labels set so far: ranks."""
        return np.zeros(len(rows), dtype=np.int8)

    def _cached(self, j: int, rows: Rows, find: Callable[[int, Rows], Found]) -> Found:
        """``find(j, rows)``, kept until ``set_label`` sets ``_last`` to None: it is asked twice."""
        if self._last is None or self._last[0] != j or not np.array_equal(self._last[1], rows):
            self._last = j, rows, find(j, rows)
        found: Found = self._last[2]
        return found

    def compare(self, j: int, threshold: float, rows: Rows) -> tuple[Signs, Signs]:
        """Signs of (lower - threshold) and (upper - threshold): -1, 0 or 1."""
        cut = np.log(threshold) - np.log1p(-threshold)
        lower, upper = self.log_odds(j, rows)
        return np.sign(lower - cut).astype(np.int8), np.sign(upper - cut).astype(np.int8)

    def most_certain(self, candidates: NDArray[np.bool_]) -> NDArray[np.int64]:
        """For each row, the candidate label with the largest certainty; ties to the first."""
        certainty = self.certainty(candidates)
        best = certainty.max(axis=1, keepdims=True)
        return np.asarray(np.argmax(candidates & (certainty == best), axis=1))

    def certainty(self, candidates: NDArray[np.bool_]) -> LogOdds:
        """max(L, -U) of the lower and upper log-odds, (n, m); -inf for labels not asked about."""
        rows = np.arange(self.n_rows)
        certainty = np.full(candidates.shape, -np.inf)
        for j in range(self.n_labels):
            lower, upper = self.log_odds(j, rows)
            certainty[:, j] = np.maximum(lower, -upper)
        certainty[~candidates] = -np.inf
        return certainty


class Contribution(NamedTuple):
    """What one observation adds to the lower and to the upper log-odds of a label.

    ``source`` is "prior", "feature" or "label", ``number`` the feature's or label's number and
    ``value`` what was observed, as text.
    """

    source: str
    number: int
    value: str
    lower: float
    upper: float


class CredalBase(Protocol):
    """An unfitted base: a scikit-learn estimator that can learn a chain.

    Further abilities, all optional:

    - A fitted model that can learn from more rows has ``update(X, Y) -> ChainModel``; a base whose
      models never can says so with ``supports_partial_fit = False``.
    - ``serves_any_order = True``: a model serves every order of the labels.
    - ``learns_from_counts = True``: for data in chunks, ``unfitted_discretizer()`` gives what turns
      rows into codes, ``from_counts(counts, discretizer)`` a model.
    - ``can_count_rows = True``: for data in chunks, models are fitted to a sample and have
      ``count_rows(X, Y)`` and ``with_counts(counts)`` for the other rows.
    - ``no_sample_weight``: why rows cannot be weighted, "" or absent if they can.
    """

    def fit_chain(
        self,
        X: Any,
        Y: Labels,
        order: Order | None,
        *,
        chained: bool,
        rng: np.random.RandomState,
    ) -> Any:
        """A ChainModel of checked ``X`` and ``Y`` (int8, -1 = missing). Order None: any order."""
        ...


def labels_from_signs(lower_sign: Signs, upper_sign: Signs, *, precise: bool) -> Labels:
    """Labels from the signs of bound - threshold: the decision rule.

    1 if lower > t, 0 if upper < t, otherwise left open. The precise chain, whose bounds coincide,
    answers 1 at t itself.
    """
    if precise:
        return (lower_sign >= 0).astype(np.int8)
    y = np.full(lower_sign.shape, ABSTAIN, dtype=np.int8)
    y[upper_sign < 0] = 0
    y[lower_sign > 0] = 1
    return y


def uniform_exactness(exactness: Exactness, shape: tuple[int, ...]) -> Ranks:
    """The same rank in all cells, as a view that takes no memory."""
    return np.broadcast_to(np.int8(RANKS[exactness]), shape)
