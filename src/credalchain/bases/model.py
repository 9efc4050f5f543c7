"""A fitted base, and inference label by label: in chunks of rows, along the chain."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain.array_types import Labels
from credalchain.bases.protocol import (
    Answer,
    Contribution,
    ExactBounds,
    Request,
    Rows,
    Walk,
    labels_from_signs,
)
from credalchain.bases.threads import for_each_range
from credalchain.labels import UNDECIDED
from credalchain.preprocessing import Categories
from credalchain.strategies import Strategy


class ChainModel(ABC):
    """A fitted base: everything it can infer about new rows.

    Encoded rows are anything with ``shape[0]`` rows that can be sliced.
    """

    n_labels: int
    serves_any_order = False  # whether ``Request.order`` may differ from the order of fit
    shares_encoding = False  # whether all such models encode alike: an ensemble then encodes once
    rows_at_once = 4096
    # what explain shows where contributions() gives None
    why_no_reasons = "this model does not say what each feature adds"

    @property
    def nested(self) -> bool:
        """Whether bounds for a fixed history can only widen as s grows, from s = 0 on."""
        return True

    def check_state(self, n_features: int) -> None:  # noqa: B027 - models of users need none
        """Validate a stored model for rows with ``n_features`` columns."""

    @abstractmethod
    def encode(self, X: Any) -> Any:
        """Bring checked input into the form that ``begin`` takes, once per batch."""

    @abstractmethod
    def begin(self, encoded: Any, *, s: float, strategy: Strategy, precise: bool) -> Walk:
        """Start a walk over the rows of ``encoded``."""

    @abstractmethod
    def never_observed(self) -> NDArray[np.bool_]:
        """Labels that no training row had a value for: boolean, (m,)."""

    def text_categories(self) -> Mapping[int, Categories]:
        """Columns of X that held text in fit, with their categories."""
        return {}

    def contributions(
        self, encoded: Any, places: Sequence[tuple[int, Labels]], *, s: float, strategy: Strategy
    ) -> list[list[Contribution]] | None:
        """What bounds of a single row are made of; None if they are not a sum.

        ``places`` are labels j, each with its history (m,): 0, 1 or -1 (left open) for labels
        before j, UNDECIDED for all other labels.
        """
        return None

    def exact_bounds(
        self, encoded: Any, *, s: float, strategy: Strategy, precise: bool
    ) -> ExactBounds | None:
        """Bounds as fractions, to settle ties; None if the model computes in floating point."""
        return None

    @property
    def log_odds_error(self) -> float:
        """How far log-odds of this model can be from ``exact_bounds``."""
        return 0.0

    def infer(self, encoded: Any, request: Request) -> Answer:
        """Labels and bounds of all rows, a chunk of rows at a time, on ``request.n_jobs`` threads.

        A base may override this with something faster.
        """
        parts: dict[int, Answer] = {}

        def run(first: int, stop: int) -> None:
            parts[first] = self._walk_rows(
                _take_rows(encoded, first, stop), request.for_rows(first, stop)
            )

        for_each_range(encoded.shape[0], self.rows_at_once, request.n_jobs, run)
        return _concatenate_answers([parts[first] for first in sorted(parts)])

    def _walk_rows(self, encoded: Any, request: Request) -> Answer:
        """One walk for every strategy and value of s."""
        answers = [
            [
                walk_along(
                    self.begin(encoded, s=s, strategy=strategy, precise=request.precise), request
                )
                for s in request.s_values
            ]
            for strategy in request.strategies
        ]
        return combine_answers(answers, lambda arrays: np.stack([np.stack(row) for row in arrays]))


def walk_along(walk: Walk, request: Request) -> Answer:
    """Along the chain, label by label: ask for bounds, decide, set the label.

    Arrays of the answer are (n, m): for one strategy and s.
    """
    shape = (walk.n_rows, walk.n_labels)
    labels = np.empty(shape, dtype=np.int8)
    exactness = np.zeros(shape, dtype=np.int8)
    log_odds = np.empty((*shape, 2)) if request.wants_bounds else None
    interval = np.empty((*shape, 2)) if request.wants_bounds else None
    forced = np.broadcast_to(request.forced_labels(), shape)

    def visit(j: int, rows: Rows) -> None:
        nonlocal interval
        signs = walk.compare(j, float(request.thresholds[j]), rows)
        y = labels_from_signs(*signs, precise=request.precise)
        y = np.where(forced[rows, j] == UNDECIDED, y, forced[rows, j])
        labels[rows, j] = y
        exactness[rows, j] = walk.exactness(j, rows)
        if log_odds is not None:
            log_odds[rows, j, 0], log_odds[rows, j, 1] = walk.log_odds(j, rows)
            bounds = walk.probabilities(j, rows)
            if bounds is None:
                interval = None
            elif interval is not None:
                interval[rows, j, 0], interval[rows, j, 1] = bounds
        if request.chained:
            walk.set_label(j, y, rows)

    visited = None
    if request.order is None:
        visited = _visit_dynamically(walk, request.known, visit)
    else:
        for j in request.order.tolist():
            visit(j, np.arange(walk.n_rows))
    exactness[:, request.never_observed] = 0
    request.make_vacuous(log_odds, interval)
    return Answer(labels, log_odds, exactness, interval, visited)


def _visit_dynamically(
    walk: Walk, known: Labels | None, visit: Callable[[int, Rows], None]
) -> NDArray[np.int64]:
    """Visit known labels first, then each row's most certain remaining label.

    The labels in the order of visits, (n, m).
    """
    unvisited = np.ones((walk.n_rows, walk.n_labels), dtype=bool)
    visited = np.empty(unvisited.shape, dtype=np.int64)

    def go_to(j: int, rows: Rows) -> None:
        visit(j, rows)
        visited[rows, walk.n_labels - unvisited[rows].sum(axis=1)] = j
        unvisited[rows, j] = False

    if known is not None:
        for j in range(walk.n_labels):
            rows = np.flatnonzero(known[:, j] >= 0)
            if len(rows):
                go_to(j, rows)
    while unvisited.any():
        chosen = walk.most_certain(unvisited)
        has_unvisited = unvisited.any(axis=1)
        for j in np.unique(chosen[has_unvisited]).tolist():
            go_to(j, np.flatnonzero(has_unvisited & (chosen == j)))
    return visited


def _take_rows(encoded: Any, first: int, stop: int) -> Any:
    return encoded if first == 0 and stop == encoded.shape[0] else encoded[first:stop]


def _concatenate_answers(parts: list[Answer]) -> Answer:
    """Answers for chunks of rows as one."""
    if len(parts) == 1:
        return parts[0]
    return combine_answers(parts, lambda arrays: np.concatenate(arrays, axis=2))


def combine_answers(parts: Any, combine: Callable[[Any], NDArray[Any]]) -> Answer:
    """Answers, in lists that may be nested, as one: ``combine`` gets the arrays of each field."""

    def values(part: Any, name: str) -> Any:
        if isinstance(part, list):
            return [values(item, name) for item in part]
        return getattr(part, name)

    def first(value: Any) -> Any:
        return first(value[0]) if isinstance(value, list) else value

    fields = {name: values(parts, name) for name in Answer.__dataclass_fields__}
    arrays: dict[str, Any] = {
        name: None if first(field) is None else combine(field) for name, field in fields.items()
    }
    return Answer(**arrays)
