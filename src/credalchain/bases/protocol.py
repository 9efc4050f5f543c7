"""The seam between a chain and the models it walks along.

A base learns one binary model per label, each of which may look at other labels
besides the features. A chain asks for bounds, decides, and tells the decision. All a
base has to supply is what :class:`Walk` asks for; the rest is derived from it here.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from credalchain.labels import ABSTAIN, MISSING
from credalchain.strategies import Strategy

Labels = NDArray[np.int8]
LogOdds = NDArray[np.float64]
Rows = NDArray[np.intp]
Signs = NDArray[np.int8]
Ranks = NDArray[np.int8]  # of Exactness
ExactBounds = Callable[[int, int, Labels], tuple[Fraction, Fraction]]
"""Lower and upper probability of a row's label, given a history (-2 where nothing was told)."""


class Exactness(StrEnum):
    """How the bounds given relate to the bounds defined, from the best to the worst."""

    EXACT = "exact"
    OUTER = "outer"
    INNER = "inner"
    APPROXIMATE = "approximate"

    @property
    def rank(self) -> int:
        """0 for the best: arrays hold this number."""
        return list(Exactness).index(self)


@dataclass(frozen=True)
class Request:
    """What a chain asks of a model for one batch of rows.

    ``order`` is the order of the labels, None for the dynamic one. ``known`` holds
    labels that were answered already (-1 elsewhere). With ``chained`` false no label is
    told to the others. ``precise`` never abstains and answers 1 at the threshold itself.
    """

    s: float
    order: NDArray[np.int64] | None
    thresholds: NDArray[np.float64]
    known: Labels | None = None
    chained: bool = True
    precise: bool = False
    wants_log_odds: bool = True
    n_jobs: int = 1


@dataclass(frozen=True)
class Answer:
    """Labels (n, m) in {0, 1, -1}, log-odds (n, m, 2) if asked for, exactness as ranks (n, m).

    ``interval`` (n, m, 2) are the bounds as probabilities where the model gave such: going to
    log-odds and back would round them.
    """

    labels: Labels
    log_odds: LogOdds | None
    exactness: Ranks
    interval: NDArray[np.float64] | None = None

    def lower_probability(self) -> NDArray[np.float64]:
        """Lower bounds as probabilities, (n, m)."""
        if self.interval is not None:
            return self.interval[..., 0]
        assert self.log_odds is not None
        return np.asarray(expit(self.log_odds[..., 0]))


class Walk(ABC):
    """One batch of rows on its way along the chain.

    ``tell`` changes what ``log_odds`` of the other labels will answer; everything else
    is without side effects. ``rows`` are indices into the batch.
    """

    n_rows: int
    n_labels: int

    @abstractmethod
    def log_odds(self, j: int, rows: Rows) -> tuple[LogOdds, LogOdds]:
        """Lower and upper log-odds of label ``j``, given what was told so far."""

    @abstractmethod
    def tell(self, j: int, y: Labels, rows: Rows) -> None:
        """Label ``j`` of these rows is ``y``: 0, 1 or -1 for a star."""

    def probabilities(self, j: int, rows: Rows) -> tuple[Any, Any] | None:
        """The same bounds as probabilities, if the model gives such; None if it gives log-odds."""
        return None

    def exactness(self, j: int, rows: Rows) -> Ranks:
        """How good the bounds of label ``j`` are, given what was told so far: ranks."""
        return np.zeros(len(rows), dtype=np.int8)

    def sides(self, j: int, threshold: float, rows: Rows) -> tuple[Signs, Signs]:
        """Signs of (lower - threshold) and (upper - threshold): -1, 0 or 1."""
        cut = np.log(threshold) - np.log1p(-threshold)
        lower, upper = self.log_odds(j, rows)
        return np.sign(lower - cut).astype(np.int8), np.sign(upper - cut).astype(np.int8)

    def surest(self, open_labels: NDArray[np.bool_]) -> NDArray[np.int64]:
        """For each row, the open label with the largest max(L, -U); ties to the first."""
        rows = np.arange(self.n_rows)
        certainty = np.full(open_labels.shape, -np.inf)
        for j in range(self.n_labels):
            lower, upper = self.log_odds(j, rows)
            certainty[:, j] = np.maximum(lower, -upper)
        certainty[~open_labels] = -np.inf
        best = certainty.max(axis=1, keepdims=True)
        return np.asarray(np.argmax(open_labels & (certainty == best), axis=1))


class Contribution(NamedTuple):
    """What one observation adds to the lower and to the upper log-odds of a label.

    ``source`` is "prior", "feature" or "label", ``which`` the feature's or label's number and
    ``value`` what was observed, in words.
    """

    source: str
    which: int
    value: str
    lower: float
    upper: float


class ChainModel(ABC):
    """A fitted base: everything that can be asked about new rows."""

    n_labels: int
    serves_any_order = False  # whether ``Request.order`` may be any, whatever it was fitted for
    encodes_alike = False  # whether all models of the class encode the same input alike

    @property
    def nested(self) -> bool:
        """Whether bounds for a fixed history can only widen as s grows, from s = 0 on."""
        return True

    @abstractmethod
    def encode(self, X: Any) -> Any:
        """Bring checked input into the form that ``begin`` takes, once per batch."""

    @abstractmethod
    def begin(self, encoded: Any, *, s: float, strategy: Strategy, precise: bool) -> Walk:
        """Start a walk over the rows of ``encoded``."""

    @abstractmethod
    def never_observed(self) -> NDArray[np.bool_]:
        """Which labels no training row had a value for: they are starred at every s."""

    def contributions(
        self, encoded: Any, j: int, history: Labels, *, s: float, strategy: Strategy
    ) -> list[Contribution] | None:
        """What the bounds of label j of a single row are made of; None if they are not a sum.

        ``history`` (m,) holds 0, 1 or -1 (a star) for the labels told, -2 for the others.
        """
        return None

    def exact_bounds(
        self, encoded: Any, strategy: Strategy, request: Request
    ) -> ExactBounds | None:
        """Bounds as fractions, to settle ties; None if the model computes in floating point."""
        return None

    @property
    def log_odds_error(self) -> float:
        """How far log-odds of this model can be from ``exact_bounds``."""
        return 0.0

    def infer_traced(
        self, encoded: Any, strategy: Strategy, request: Request
    ) -> tuple[Answer, list[int]]:
        """The answer for a single row, and its labels in the order in which they were decided."""
        trace: list[int] = []
        walk = self.begin(encoded, s=request.s, strategy=strategy, precise=request.precise)
        return drive(walk, request, self.never_observed(), trace), trace

    def infer_path(
        self,
        encoded: Any,
        strategies: tuple[Strategy, ...],
        values: tuple[float, ...],
        request: Request,
    ) -> list[Labels]:
        """Labels for many values of s, per strategy (values, n, m); ``request.s`` is not used."""
        answers = [self.infer(encoded, strategies, replace(request, s=s)) for s in values]
        return [
            np.stack([answer[which].labels for answer in answers])
            for which in range(len(strategies))
        ]

    def infer(
        self, encoded: Any, strategies: tuple[Strategy, ...], request: Request
    ) -> list[Answer]:
        """Walk the chain once per strategy. A base may override this with something faster."""
        never = self.never_observed()
        return [
            drive(
                self.begin(encoded, s=request.s, strategy=strategy, precise=request.precise),
                request,
                never,
            )
            for strategy in strategies
        ]


class CredalBase(Protocol):
    """An unfitted base: a scikit-learn estimator that can learn a chain.

    A fitted model that can also learn from more rows has ``update(X, Y) -> ChainModel``; a base
    that never can says so with ``learns_more = False``. A base whose models serve every order of
    the labels may say so with ``serves_any_order = True``.
    """

    def fit_chain(
        self,
        X: Any,
        Y: Labels,
        order: NDArray[np.int64] | None,
        *,
        chained: bool,
        rng: np.random.RandomState,
    ) -> ChainModel:
        """Learn from checked ``X`` and ``Y`` (int8, -1 = missing). Order None: any order."""
        ...


def drive(
    walk: Walk, request: Request, never: NDArray[np.bool_], trace: list[int] | None = None
) -> Answer:
    """Along the chain, label by label: ask, decide, tell. ``trace`` collects the labels visited."""
    shape = (walk.n_rows, walk.n_labels)
    labels = np.full(shape, ABSTAIN, dtype=np.int8)
    log_odds = np.empty((*shape, 2)) if request.wants_log_odds else None
    interval = np.tile([0.0, 1.0], (*shape, 1)) if request.wants_log_odds else None
    exactness = np.zeros(shape, dtype=np.int8)
    known = np.full(shape, MISSING, dtype=np.int8) if request.known is None else request.known

    def visit(j: int, rows: Rows) -> None:
        nonlocal interval
        if trace is not None:
            trace.append(j)
        if never[j]:
            y = np.full(len(rows), 0 if request.precise else ABSTAIN, dtype=np.int8)
        else:
            low, high = walk.sides(j, float(request.thresholds[j]), rows)
            y = decide(low, high, precise=request.precise)
        y = np.where(known[rows, j] != MISSING, known[rows, j], y)
        labels[rows, j] = y
        if log_odds is not None:
            log_odds[rows, j, 0], log_odds[rows, j, 1] = walk.log_odds(j, rows)
            bounds = walk.probabilities(j, rows)
            if bounds is None:
                interval = None
            elif interval is not None:
                interval[rows, j, 0], interval[rows, j, 1] = bounds
        exactness[rows, j] = walk.exactness(j, rows)
        if request.chained:
            walk.tell(j, y, rows)

    if request.order is None:
        _visit_dynamically(walk, known, visit)
    else:
        for j in request.order.tolist():
            visit(j, np.arange(walk.n_rows))
    if log_odds is not None:
        log_odds[:, never] = (-np.inf, np.inf)
    if interval is not None:
        interval[:, never] = (0.0, 1.0)
    exactness[:, never] = Exactness.EXACT.rank
    return Answer(labels, log_odds, exactness, interval)


def join_answers(parts: tuple[Answer, ...]) -> Answer:
    """Answers for chunks of rows as one."""

    def joined(name: str) -> Any:
        arrays = [getattr(part, name) for part in parts]
        return None if arrays[0] is None else np.concatenate(arrays)

    return Answer(*map(joined, ("labels", "log_odds", "exactness", "interval")))


def uniform_exactness(exactness: Exactness, shape: tuple[int, ...]) -> Ranks:
    """The same for all rows and labels, without taking memory."""
    return np.broadcast_to(np.int8(exactness.rank), shape)


def _visit_dynamically(walk: Walk, known: Labels, visit: Any) -> None:
    """Known labels first, then each row's surest open label, until none is open."""
    open_labels = np.ones(known.shape, dtype=bool)
    for j in range(walk.n_labels):
        rows = np.flatnonzero(known[:, j] != MISSING)
        if len(rows):
            visit(j, rows)
            open_labels[rows, j] = False
    while open_labels.any():
        chosen = walk.surest(open_labels)
        going = open_labels.any(axis=1)
        for j in np.unique(chosen[going]).tolist():
            rows = np.flatnonzero(going & (chosen == j))
            visit(j, rows)
            open_labels[rows, j] = False


def decide(low: Signs, high: Signs, *, precise: bool) -> Labels:
    """Labels from the sides of the two bounds: the decision rule, in one place.

    1 if lower > t, 0 if upper < t, otherwise a star. The precise chain, whose bounds are
    one, answers 1 at t itself.
    """
    if precise:
        return (low >= 0).astype(np.int8)
    y = np.full(low.shape, ABSTAIN, dtype=np.int8)
    y[high < 0] = 0
    y[low > 0] = 1
    return y
