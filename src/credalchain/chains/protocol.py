"""The interface between a classifier and its model: a request and an answer.

A base learns one binary model per label, which may use other labels as inputs besides the
features. A classifier asks the fitted model for all rows of a batch at once; the model answers
with labels and bounds. Models that are asked label by label supply a :class:`Walk`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.array_types import Labels
from credalchain._utils.parallel import for_each_range
from credalchain.chains.strategies import Strategy
from credalchain.labels import ABSTAIN, MISSING, UNDECIDED
from credalchain.prediction import Answer, LogOdds, Order, Ranks, log_odds
from credalchain.preprocessing import Categories

Rows = NDArray[np.intp]
Signs = NDArray[np.int8]
ExactBounds = Callable[[int, int, Labels], tuple[Fraction, Fraction]]
"""``f(row, j, history)``: lower and upper probability of label j, given a history (m,)."""


Found = TypeVar("Found")


@dataclass(frozen=True)
class Request:
    """Parameters of a prediction, as a classifier asks a model for it.

    ``s_values`` are values of s. ``order`` is the order of the labels, None for the dynamic one.
    ``never_observed`` (m,) are labels that were missing in all training rows, ``known`` (n, m)
    labels that were answered already (-1 elsewhere). If ``chained`` is False, each label is
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

    def forced_labels(self, rows: slice = slice(None)) -> Labels:
        """Return labels (1 or rows, m) that do not depend on bounds, UNDECIDED where bounds decide.

        A label that was never observed is left open, or 0 in the precise chain; a known label has
        its known value.
        """
        forced = np.full((1, len(self.thresholds)), UNDECIDED, dtype=np.int8)
        forced[:, self.never_observed] = 0 if self.precise else ABSTAIN
        if self.known is not None:
            known = self.known[rows]
            forced = np.where(known == MISSING, forced, known)
        return forced


class Walk(ABC):
    """Abstract batch of rows on its way along the chain.

    ``set_label`` changes the bounds of the other labels; everything else is without side
    effects. ``rows`` are indices into the batch.

    See Also
    --------
    ChainModel.begin : Start a walk.

    Examples
    --------
    >>> import numpy as np
    >>> from credalchain import CredalChainClassifier, branching
    >>> X, Y = [["a"], ["a"], ["b"], ["b"]], [[1, 0], [1, 1], [0, 0], [0, 1]]
    >>> chain = CredalChainClassifier(order="given").fit(X, Y)
    >>> encoded, rows = chain.encode([["a"]]), np.arange(1)
    >>> walk = chain.model_.begin(encoded, s=0.5, strategy=branching, precise=False)
    >>> before = walk.log_odds(1, rows)
    >>> walk.set_label(0, np.array([-1], dtype=np.int8), rows)
    >>> after = walk.log_odds(1, rows)
    >>> after[0] <= before[0], after[1] >= before[1]  # an open label widens the bounds
    (array([ True]), array([ True]))
    """

    n_rows: int
    n_labels: int
    _last: tuple[int, Rows, Any] | None = None

    @abstractmethod
    def log_odds(self, j: int, rows: Rows) -> tuple[LogOdds, LogOdds]:
        """Compute the lower and upper log-odds of a label, given the labels set so far.

        Parameters
        ----------
        j : int
            Number of the label.
        rows : ndarray of int
            Rows of the batch.

        Returns
        -------
        lower, upper : ndarray
            Log-odds of these rows.
        """

    @abstractmethod
    def set_label(self, j: int, y: Labels, rows: Rows) -> None:
        """Set a label of some rows.

        Parameters
        ----------
        j : int
            Number of the label.
        y : ndarray of int8
            Values 0, 1, or -1 where the label was left open.
        rows : ndarray of int
            Rows of the batch.
        """

    def probabilities(self, j: int, rows: Rows) -> tuple[Any, Any] | None:
        """Compute the same bounds as probabilities.

        Parameters
        ----------
        j : int
            Number of the label.
        rows : ndarray of int
            Rows of the batch.

        Returns
        -------
        tuple of ndarray, or None
            Lower and upper probability of these rows; None if the model gives log-odds.
        """
        return None

    def exactness(self, j: int, rows: Rows) -> Ranks:
        """Return how the bounds of a label relate to those that are defined, given the labels set.

        Parameters
        ----------
        j : int
            Number of the label.
        rows : ndarray of int
            Rows of the batch.

        Returns
        -------
        ndarray of int8
            Positions in ``list(Exactness)``.
        """
        return np.zeros(len(rows), dtype=np.int8)

    def _cached(self, j: int, rows: Rows, find: Callable[[int, Rows], Found]) -> Found:
        """Return ``find(j, rows)``, asked twice, and kept until ``set_label`` clears ``_last``."""
        if self._last is None or self._last[0] != j or not np.array_equal(self._last[1], rows):
            self._last = j, rows, find(j, rows)
        found: Found = self._last[2]
        return found

    def compare(self, j: int, threshold: float, rows: Rows) -> tuple[Signs, Signs]:
        """Compare the bounds of a label with a threshold.

        Parameters
        ----------
        j : int
            Number of the label.
        threshold : float
            A probability.
        rows : ndarray of int
            Rows of the batch.

        Returns
        -------
        lower_sign, upper_sign : ndarray of int8
            Signs of bound - threshold: -1, 0 or 1.
        """
        cut = np.log(threshold) - np.log1p(-threshold)
        lower, upper = self.log_odds(j, rows)
        return np.sign(lower - cut).astype(np.int8), np.sign(upper - cut).astype(np.int8)

    def most_certain(self, candidates: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Find for each row the candidate label with the largest certainty; ties go to the first.

        Parameters
        ----------
        candidates : ndarray of bool, shape (n_samples, n_labels)
            Labels to choose from.

        Returns
        -------
        ndarray of int, shape (n_samples,)
            Number of a label for each row.
        """
        certainty = self.certainty(candidates)
        best = certainty.max(axis=1, keepdims=True)
        return np.asarray(np.argmax(candidates & (certainty == best), axis=1))

    def certainty(self, candidates: NDArray[np.bool_]) -> LogOdds:
        """Compute max(lower, -upper) of the log-odds of each label.

        Parameters
        ----------
        candidates : ndarray of bool, shape (n_samples, n_labels)
            Labels to compute it for.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            Certainties; -inf for labels that are not candidates.
        """
        rows = np.arange(self.n_rows)
        certainty = np.full(candidates.shape, -np.inf)
        for j in range(self.n_labels):
            lower, upper = self.log_odds(j, rows)
            certainty[:, j] = np.maximum(lower, -upper)
        certainty[~candidates] = -np.inf
        return certainty


class Contribution(NamedTuple):
    """Contribution of one observation to the lower and to the upper log-odds of a label.

    ``source`` is "prior", "feature" or "label", ``number`` the feature's or label's number and
    ``value`` what was observed, as text.
    """

    source: str
    number: int
    value: str
    lower: float
    upper: float


class CredalBase(Protocol):
    """Protocol of unfitted bases: scikit-learn estimators that can learn a chain.

    Optional attributes and methods:

    - A fitted model that can learn from more rows has ``update(X, Y) -> ChainModel``; a base whose
      models never can says so with ``supports_partial_fit = False``.
    - ``serves_any_order = True``: a model serves every order of the labels.
    - ``learns_from_counts = True``: for data in chunks, ``unfitted_discretizer()`` gives what turns
      rows into codes, ``from_counts(counts, discretizer)`` a model.
    - ``can_count_rows = True``: for data in chunks, models are fitted to a sample and have
      ``count_rows(X, Y)`` and ``with_counts(counts)`` for the other rows.

    See Also
    --------
    LocalBase : Base class of simple custom bases.

    Examples
    --------
    >>> import numpy as np
    >>> from credalchain import CredalBase, NaiveCredal
    >>> base: CredalBase = NaiveCredal(discretizer=None)
    >>> X, Y = np.array([[0], [0], [1]]), np.array([[1], [1], [0]], dtype=np.int8)
    >>> model = base.fit_chain(X, Y, None, chained=True, rng=np.random.RandomState(0))
    >>> model.n_labels
    1
    """

    def fit_chain(
        self, X: Any, Y: Labels, order: Order | None, *, chained: bool, rng: np.random.RandomState
    ) -> Any:
        """Fit a model to validated rows.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Training rows.
        Y : ndarray of int8, shape (n_samples, n_labels)
            Labels 0 and 1, and -1 for missing.
        order : ndarray of int, shape (n_labels,), or None
            Order of the labels. None if the model must serve any order.
        chained : bool
            If True, condition each label on the labels before it.
        rng : RandomState
            Source of random numbers.

        Returns
        -------
        ChainModel
            Fitted model.
        """
        ...


def labels_from_signs(lower_sign: Signs, upper_sign: Signs, *, precise: bool) -> Labels:
    """Decide labels from the signs of bound - threshold: the decision rule.

    1 if lower > t, 0 if upper < t, otherwise left open. The precise chain, whose bounds coincide,
    answers 1 at t itself.
    """
    if precise:
        return (lower_sign >= 0).astype(np.int8)
    return np.where(lower_sign > 0, 1, np.where(upper_sign < 0, 0, ABSTAIN)).astype(np.int8)


class ChainModel(ABC):
    """Abstract class of fitted bases, which infer bounds for new rows.

    Encoded rows are anything with ``shape[0]`` rows that can be sliced.

    See Also
    --------
    LocalChainModel : Chain model from the bounds of each label.
    Walk : A batch of rows on its way along the chain.

    Examples
    --------
    >>> from credalchain import ChainModel, CredalChainClassifier
    >>> X, Y = [["a"], ["a"], ["b"], ["b"]], [[1, 0], [1, 1], [0, 0], [0, 1]]
    >>> model = CredalChainClassifier(order="given").fit(X, Y).model_
    >>> isinstance(model, ChainModel), model.n_labels, model.never_observed().any()
    (True, 2, np.False_)
    """

    n_labels: int
    serves_any_order = False  # whether ``Request.order`` may differ from the order of fit
    shares_encoding = False  # whether all such models encode alike: an ensemble then encodes once
    rows_at_once = 4096
    # what explain shows where contributions() gives None
    unexplained_because = "this model does not say what each feature adds"

    @property
    def nested(self) -> bool:
        """True if bounds for a fixed history only widen as s grows, from s = 0 on."""
        return True

    def check_state(self, n_features: int) -> None:  # noqa: B027 - models of users need none
        """Validate a model that was loaded from a file.

        Parameters
        ----------
        n_features : int
            Number of columns of the rows it is for.
        """

    @abstractmethod
    def encode(self, X: Any) -> Any:
        """Encode validated rows in the form that ``begin`` takes, once per batch.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        object
            Encoded rows.
        """

    @abstractmethod
    def begin(self, encoded: Any, *, s: float, strategy: Strategy, precise: bool) -> Walk:
        """Start a walk over the rows of ``encoded``.

        Parameters
        ----------
        encoded : object
            Rows, as :meth:`encode` returns them.
        s : float
            Degree of caution.
        strategy : Strategy
            How a label left open affects the labels after it.
        precise : bool
            True for the precise chain, at s = 0.

        Returns
        -------
        Walk
            The walk, before the first label.
        """

    @abstractmethod
    def never_observed(self) -> NDArray[np.bool_]:
        """Return which labels were never observed in training.

        Returns
        -------
        ndarray of bool, shape (n_labels,)
            True for labels that are always left open.
        """

    def text_categories(self) -> Mapping[int, Categories]:
        """Return the columns of X that held text in ``fit``, with their categories.

        Returns
        -------
        dict of int to Categories
            By the number of the column.
        """
        return {}

    def contributions(
        self, encoded: Any, places: Sequence[tuple[int, Labels]], *, s: float, strategy: Strategy
    ) -> list[list[Contribution]] | None:
        """Return the terms that the bounds of a single row are sums of.

        Parameters
        ----------
        encoded : object
            A single row, as :meth:`encode` returns it.
        places : sequence of (int, ndarray)
            Labels j, each with its history of shape (n_labels,): 0, 1 or -1 (left open) for labels
            before j, UNDECIDED for all other labels.
        s : float
            Degree of caution.
        strategy : Strategy
            How a label left open affects the labels after it.

        Returns
        -------
        list of list of Contribution, or None
            Contributions at each place; None if bounds are not a sum.
        """
        return None

    def exact_bounds(
        self, encoded: Any, *, s: float, strategy: Strategy, precise: bool
    ) -> ExactBounds | None:
        """Return a function that computes bounds as fractions, to settle ties.

        Parameters
        ----------
        encoded : object
            Rows, as :meth:`encode` returns them.
        s : float
            Degree of caution.
        strategy : Strategy
            How a label left open affects the labels after it.
        precise : bool
            True for the precise chain.

        Returns
        -------
        callable or None
            ``bounds(row, j, history)`` returns the lower and the upper probability as fractions.
            None if the model computes in floats.
        """
        return None

    @property
    def log_odds_error(self) -> float:
        """Greatest distance of this model's log-odds from ``exact_bounds``."""
        return 0.0

    def infer(self, encoded: Any, request: Request) -> Answer:
        """Infer labels and bounds, a chunk of rows at a time, on ``request.n_jobs`` threads.

        A base may override this with something faster.

        Parameters
        ----------
        encoded : object
            Rows, as :meth:`encode` returns them.
        request : Request
            Validated parameters of the prediction.

        Returns
        -------
        Answer
            Labels, bounds and their exactness.
        """
        parts: dict[int, Answer] = {}

        def run(first: int, stop: int) -> None:
            rows = encoded if stop - first == encoded.shape[0] else encoded[first:stop]
            known = None if request.known is None else request.known[first:stop]
            part = replace(request, known=known)
            each = []
            for strategy in request.strategies:
                begin = partial(self.begin, rows, strategy=strategy, precise=request.precise)
                walks = [walk_along(begin(s=s), part) for s in request.s_values]
                each.append(combine_answers(walks, np.stack))
            parts[first] = combine_answers(each, np.stack)

        for_each_range(encoded.shape[0], self.rows_at_once, request.n_jobs, run)
        ordered = [parts[first] for first in sorted(parts)]
        return combine_answers(ordered, partial(np.concatenate, axis=2))


def walk_along(walk: Walk, request: Request) -> Answer:
    """Walk along the chain, label by label: ask for bounds, decide, set the label.

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
    for j in [] if request.order is None else request.order.tolist():
        visit(j, np.arange(walk.n_rows))
    exactness[:, request.never_observed] = 0
    for bounds, vacuous in ((log_odds, (-np.inf, np.inf)), (interval, (0.0, 1.0))):
        if bounds is not None:
            bounds[:, request.never_observed] = vacuous
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


def combine_answers(parts: Sequence[Answer], combine: Callable[[Any], NDArray[Any]]) -> Answer:
    """Combine several answers as one: ``combine`` gets the arrays of each field."""
    columns: Any = zip(*(vars(part).values() for part in parts), strict=True)
    fields: Any = (None if arrays[0] is None else combine(arrays) for arrays in columns)
    return Answer(*fields)


class ProbabilityWalk(Walk):
    """Keeps the labels set, and caches the last bounds: a chain asks several times."""

    def __init__(self, n_rows: int, n_labels: int) -> None:
        self.n_rows, self.n_labels = n_rows, n_labels
        self._history = np.full((n_rows, n_labels), UNDECIDED, dtype=np.int8)

    @abstractmethod
    def find_bounds(self, j: int, rows: Rows) -> NDArray[np.float64]:
        """Compute the lower and upper probability of label ``j``, given those set: (rows, 2)."""

    def set_label(self, j: int, y: Labels, rows: Rows) -> None:
        self._history[rows, j] = y
        self._last = None

    def log_odds(self, j: int, rows: Rows) -> tuple[LogOdds, LogOdds]:
        bounds = log_odds(self._bounds(j, rows))
        return bounds[:, 0], bounds[:, 1]

    def probabilities(self, j: int, rows: Rows) -> tuple[Any, Any]:
        bounds = self._bounds(j, rows)
        return bounds[:, 0], bounds[:, 1]

    def compare(self, j: int, threshold: float, rows: Rows) -> tuple[Signs, Signs]:
        signs = np.sign(self._bounds(j, rows) - threshold).astype(np.int8)
        return signs[:, 0], signs[:, 1]

    def _bounds(self, j: int, rows: Rows) -> NDArray[np.float64]:
        return self._cached(j, rows, self.find_bounds)
