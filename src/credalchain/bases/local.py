"""Chains over any model that can give bounds under a complete history.

This is where a model of one's own comes in: a class with a ``bounds`` method is all it takes.
"""

from abc import abstractmethod
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from credalchain._kernels.states import FREE
from credalchain.bases.protocol import ChainModel, Labels, LogOdds, Rows, Signs, Walk
from credalchain.labels import ABSTAIN, MISSING
from credalchain.strategies import Strategy
from credalchain.tree import Bounds, Ends, History, StarredTree


class LocalModel(Protocol):
    """Bounds of each label, given a row and a complete history.

    ``s`` is the chain's degree of caution: 0 must be precise, larger never narrower.
    """

    def bounds(self, X: Any, j: int, history: Labels, *, s: float) -> Bounds:
        """Lower and upper P(Y_j = 1 | row, history) of every row.

        Parameters
        ----------
        X : rows, (n, p)
        j : label
        history : int8, (n, m)
            0 or 1 for the labels told before j, -1 for the others.
        s : float

        Returns
        -------
        lower, upper : arrays (n,)
            Floats, or exact fractions in arrays of dtype object.
        """
        ...


class LocalBase(BaseEstimator):
    """A base whose model is a :class:`LocalModel`: subclass it and write ``fit_local``."""

    @abstractmethod
    def fit_local(
        self,
        X: Any,
        Y: Labels,
        order: NDArray[np.int64] | None,
        *,
        rng: np.random.RandomState,
    ) -> LocalModel:
        """Learn from checked ``X`` and ``Y`` (int8, -1 = missing)."""

    def fit_chain(
        self,
        X: Any,
        Y: Labels,
        order: NDArray[np.int64] | None,
        *,
        chained: bool,
        rng: np.random.RandomState,
    ) -> "LocalChainModel":
        """Fit the local model and put it into a chain."""
        local = self.fit_local(X, Y, order, rng=rng)
        return LocalChainModel(local, Y.shape[1], (Y == MISSING).all(axis=0))


class LocalChainModel(ChainModel):
    """A chain over a local model.

    Parameters
    ----------
    local : LocalModel
    n_labels : int
    never_observed : bool array (m,), optional
        Labels without training data, to be left open always.
    """

    def __init__(
        self, local: LocalModel, n_labels: int, never_observed: NDArray[np.bool_] | None = None
    ) -> None:
        self.local = local
        self.n_labels = n_labels
        self._never = np.zeros(n_labels, dtype=bool) if never_observed is None else never_observed

    def encode(self, X: Any) -> Any:
        return X

    def never_observed(self) -> NDArray[np.bool_]:
        return self._never

    def begin(self, encoded: Any, *, s: float, strategy: Strategy, precise: bool) -> Walk:
        return LocalWalk(self.local, encoded, self.n_labels, s, strategy)


class LocalWalk(Walk):
    """A batch on its way along a chain over a local model."""

    def __init__(
        self, local: LocalModel, X: Any, n_labels: int, s: float, strategy: Strategy
    ) -> None:
        if strategy.from_tree is None:
            raise ValueError(
                f"strategy {strategy.name!r} is for models that are sums of log-odds; for others "
                "use 'branching' or 'tree-marginalization'."
            )
        self.n_rows, self.n_labels = int(X.shape[0]), n_labels
        self._local, self._X, self._s = local, X, s
        self._solve = strategy.from_tree
        self._error = getattr(local, "log_odds_error", 0.0)
        self._history = np.full((self.n_rows, n_labels), FREE, dtype=np.int8)
        self._place = np.full((self.n_rows, n_labels), -1)  # each label's place in the row's order
        self._last: tuple[int, Rows, Ends] | None = None

    def tell(self, j: int, y: Labels, rows: Rows) -> None:
        self._history[rows, j] = y
        self._place[rows, j] = self._place[rows].max(axis=1) + 1
        self._last = None

    def log_odds(self, j: int, rows: Rows) -> tuple[LogOdds, LogOdds]:
        lower, upper = self._ends(j, rows)
        return _log_ratio(*lower), _log_ratio(*upper)

    def sides(self, j: int, threshold: float, rows: Rows) -> tuple[Signs, Signs]:
        bounds = self.probabilities(j, rows)
        low, high = (_signs(bound, threshold) for bound in bounds)
        if bounds[0].dtype == object:
            return low, high
        near = self._near(j, threshold, rows)
        if len(near):
            (lower, _), (upper, _) = self._solved(j, rows[near], exact=True)
            low[near], high[near] = _signs(lower, threshold), _signs(upper, threshold)
        return low, high

    def probabilities(self, j: int, rows: Rows) -> Bounds:
        """Lower and upper probability of label j, exact if the local model's are."""
        (lower, _), (upper, _) = self._ends(j, rows)
        return lower, upper

    def _near(self, j: int, threshold: float, rows: Rows) -> Rows:
        """Places in ``rows`` of bounds so near the threshold that rounding could decide.

        Bounds are ratios of sums of products of positive numbers, at most one for each label on
        either side, so relative errors of these numbers add up and nothing cancels.
        """
        cut = np.log(threshold) - np.log1p(-threshold)
        error = 2 * (self.n_labels + 1) * (self._error + 16 * np.finfo(float).eps)
        distance = np.abs(np.stack(self.log_odds(j, rows)) - cut)
        return np.flatnonzero((distance <= error).any(axis=0))

    def _ends(self, j: int, rows: Rows) -> Ends:
        """Both bounds with their complements; a chain asks several times for the same."""
        if self._last is None or self._last[0] != j or not np.array_equal(self._last[1], rows):
            self._last = j, rows, self._solved(j, rows)
        return self._last[2]

    def _solved(self, j: int, rows: Rows, *, exact: bool = False) -> Ends:
        """Both bounds with their complements, rows that have the same stars together."""
        found = np.empty((4, len(rows)), dtype=object)
        for group in self._groups(rows):
            part = rows[group]
            model = self._exact_model_of(part) if exact else self._model_of(part)
            lower, upper = self._solve(StarredTree(self._told_to(j, part), *model), j)
            for place, values in enumerate((*lower, *upper)):
                found[place, group] = values
        if not all(isinstance(value, (Fraction, int)) for value in found[0]):
            found = found.astype(np.longdouble)
        return (found[0], found[1]), (found[2], found[3])

    def _groups(self, rows: Rows) -> Iterator[Rows]:
        """Rows told the same labels in the same order, with the same stars: places in ``rows``."""
        state = np.minimum(self._history[rows], 0)  # answered 0, starred -1, not told -2
        kind = np.hstack([state, self._place[rows]])
        _, inverse = np.unique(kind, axis=0, return_inverse=True)
        inverse = inverse.ravel()
        for group in range(inverse.max(initial=-1) + 1):
            yield np.flatnonzero(inverse == group)

    def _told_to(self, j: int, rows: Rows) -> dict[int, NDArray[np.int8] | None]:
        """What a group of rows was told before label j, in the order of telling."""
        told: dict[int, NDArray[np.int8] | None] = {}
        place = self._place[rows[0]]
        for k in np.argsort(place).tolist():
            if place[k] >= 0 and k != j:
                values = self._history[rows, k]
                told[k] = None if values[0] == ABSTAIN else values
        return told

    def _model_of(self, rows: Rows) -> tuple[Any, Any]:
        """The local model's bounds (and ends, if it has them) as a tree asks for them."""
        X = self._rows_of_X(rows)

        def bounds(k: int, history: History) -> Bounds:
            lower, upper = self._local.bounds(X, k, self._complete(rows, history), s=self._s)
            lower, upper = np.asarray(lower), np.asarray(upper)
            _check_bounds(lower, upper, k, len(rows))
            return lower, upper

        own_ends = getattr(self._local, "ends", None)
        if own_ends is None:
            return bounds, None
        return bounds, lambda k, history: own_ends(X, k, self._complete(rows, history), s=self._s)

    def _exact_model_of(self, rows: Rows) -> tuple[Any, Any]:
        """The same in fractions: the model's own, or the exact values of its floats."""
        own = getattr(self._local, "exact_bounds", None)
        if own is None:
            bounds, _ = self._model_of(rows)
            return lambda k, history: tuple(map(_as_fractions, bounds(k, history))), None
        X = self._rows_of_X(rows)
        return lambda k, history: own(X, k, self._complete(rows, history), s=self._s), None

    def _rows_of_X(self, rows: Rows) -> Any:
        return self._X[rows] if not hasattr(self._X, "iloc") else self._X.iloc[rows]

    def _complete(self, rows: Rows, history: History) -> Labels:
        labels = np.full((len(rows), self.n_labels), MISSING, dtype=np.int8)
        for label, value in history.items():
            labels[:, label] = value
        return labels


def _as_fractions(values: NDArray[Any]) -> NDArray[Any]:
    return np.array([Fraction(float(value)) for value in values], dtype=object)


def _signs(bound: NDArray[Any], threshold: float) -> Signs:
    t: Any = Fraction(threshold) if bound.dtype == object else threshold
    return np.asarray(bound > t).astype(np.int8) - np.asarray(bound < t).astype(np.int8)


def _check_bounds(lower: Any, upper: Any, j: int, n_rows: int) -> None:
    if lower.shape != (n_rows,) or upper.shape != (n_rows,):
        raise ValueError(
            f"bounds of label {j} must be two arrays of shape ({n_rows},), got {lower.shape} "
            f"and {upper.shape}."
        )
    wrong = ~((lower >= 0) & (lower <= upper) & (upper <= 1)).astype(bool)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"bounds of label {j} must satisfy 0 <= lower <= upper <= 1, got "
            f"[{lower[at]}, {upper[at]}]."
        )


def _log_ratio(p: NDArray[Any], complement: NDArray[Any]) -> LogOdds:
    """Log-odds from both probabilities, in the widest floats there are."""
    with np.errstate(divide="ignore"):
        return np.asarray(
            np.log(p.astype(np.longdouble)) - np.log(complement.astype(np.longdouble)),
            dtype=np.float64,
        )
