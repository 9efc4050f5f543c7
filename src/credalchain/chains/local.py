"""Chains over any model that can give bounds under a complete history.

To use a custom model, write a class with a ``bounds`` method.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator

from credalchain._utils.array_types import Labels
from credalchain._utils.progress import track
from credalchain.chains.protocol import ChainModel, Rows, Signs, Walk
from credalchain.chains.strategies import Strategy
from credalchain.chains.tree import Bounds, Ends, History, OpenTree, merged_ends
from credalchain.labels import ABSTAIN, MISSING, UNDECIDED
from credalchain.prediction import LogOdds, Order

Model = TypeVar("Model")


class LocalModel(Protocol):
    """Protocol of models that bound each label, given a row and a complete history.

    A model that also accepts labels left out (-1 in the history although they come before j) sets
    ``can_leave_out = True``.

    See Also
    --------
    LocalChainModel : The chain over such a model.

    Examples
    --------
    >>> import numpy as np
    >>> from credalchain import CredalChainClassifier, LocalChainModel
    >>> class Copies:  # the second label is likely the first one
    ...     def bounds(self, X, j, history, *, s):
    ...         p = np.full(len(X), 0.8) if j == 0 else np.where(history[:, 0] == 1, 0.9, 0.1)
    ...         return p / (1 + s), (p + s) / (1 + s)
    >>> model = LocalChainModel(Copies(), n_labels=2)
    >>> chain = CredalChainClassifier.from_model(model, n_features=1, order="given", s=0.25)
    >>> chain.predict_interval([[0.0]]).round(2)
    array([[[0.64, 0.84],
            [0.72, 0.92]]])
    """

    def bounds(self, X: Any, j: int, history: Labels, *, s: float) -> Bounds:
        """Compute the lower and upper P(Y_j = 1 | row, history) of every row.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_samples, n_features)
            Rows, as in ``fit_local``.
        j : int
            Number of the label.
        history : ndarray of int8, shape (n_samples, n_labels)
            Values 0 or 1 of the labels before j, -1 for the others.
        s : float
            Degree of caution: bounds must coincide at 0 and must not narrow as s grows.

        Returns
        -------
        lower, upper : ndarray of shape (n_samples,)
            Floats, or exact fractions in arrays of dtype object.
        """
        ...


class LocalBase(BaseEstimator):
    """Base class of bases whose model is a :class:`LocalModel`; subclasses implement ``fit_local``.

    See Also
    --------
    CredalWrapper : Wrap a classifier of scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from credalchain import CredalBinaryRelevanceClassifier, LocalBase
    >>> class FrequencyModel:
    ...     def __init__(self, Y):
    ...         self.n_yes, self.n = (Y == 1).sum(axis=0), (Y >= 0).sum(axis=0)
    ...
    ...     def bounds(self, X, j, history, *, s):
    ...         n_yes, n = np.full(len(X), self.n_yes[j]), self.n[j]
    ...         return n_yes / (n + s), (n_yes + s) / (n + s)
    >>> class Frequencies(LocalBase):
    ...     def fit_local(self, X, Y, order, *, rng):
    ...         return FrequencyModel(Y)
    >>> X, Y = [[0], [1], [2], [3]], [[1, 0], [1, 1], [1, 0], [0, 1]]
    >>> relevance = CredalBinaryRelevanceClassifier(Frequencies(), s=1.0).fit(X, Y)
    >>> relevance.predict_interval([[0]])
    array([[[0.6, 0.8],
            [0.4, 0.6]]])
    """

    @abstractmethod
    def fit_local(
        self, X: Any, Y: Labels, order: Order | None, *, rng: np.random.RandomState
    ) -> LocalModel:
        """Learn the local model from validated rows.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_samples, n_features)
            Training rows; a data frame comes as ``np.asarray`` makes it an array.
        Y : ndarray of int8, shape (n_samples, n_labels)
            Labels 0 and 1, and -1 for missing.
        order : ndarray of int, shape (n_labels,), or None
            Order of the labels. None if the model must serve any order.
        rng : RandomState
            Source of random numbers.

        Returns
        -------
        LocalModel
            Fitted model.
        """

    def fit_chain(
        self, X: Any, Y: Labels, order: Order | None, *, chained: bool, rng: np.random.RandomState
    ) -> "LocalChainModel":
        """Fit the local model and put it into a chain.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Validated training rows.
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
        LocalChainModel
            Fitted model.
        """
        local = self.fit_local(_without_names(X), Y, order, rng=rng)
        return LocalChainModel(local, Y.shape[1], (Y == MISSING).all(axis=0))


class LocalChainModel(ChainModel):
    """Chain over a local model.

    Parameters
    ----------
    local : LocalModel
        Gives the bounds of each label.
    n_labels : int
        Number of labels.
    never_observed : bool array of shape (n_labels,), default=None
        Labels without training data, which are always left open.

    See Also
    --------
    LocalBase : A base that learns the local model from rows.

    Examples
    --------
    >>> import numpy as np
    >>> from credalchain import CredalChainClassifier, LocalChainModel
    >>> class Likely:
    ...     def bounds(self, X, j, history, *, s):
    ...         p = np.full(len(X), 0.9)
    ...         return p / (1 + s), (p + s) / (1 + s)
    >>> model = LocalChainModel(Likely(), n_labels=2)
    >>> chain = CredalChainClassifier.from_model(model, n_features=1, s=0.5)
    >>> chain.predict_partial([[0.0]])
    array([[1, 1]], dtype=int8)
    """

    def __init__(
        self, local: LocalModel, n_labels: int, never_observed: NDArray[np.bool_] | None = None
    ) -> None:
        self.local = local
        self.n_labels = n_labels
        self._never = np.zeros(n_labels, dtype=bool) if never_observed is None else never_observed

    def encode(self, X: Any) -> Any:
        return _without_names(X)

    def never_observed(self) -> NDArray[np.bool_]:
        return self._never

    def begin(self, encoded: Any, *, s: float, strategy: Strategy, precise: bool) -> Walk:
        return LocalWalk(self.local, encoded, self.n_labels, s, strategy)


class LocalWalk(Walk):
    """Batch of rows on its way along a chain over a local model."""

    def __init__(
        self, local: LocalModel, X: Any, n_labels: int, s: float, strategy: Strategy
    ) -> None:
        if strategy.merge is None and strategy.from_tree is None:
            raise ValueError(f"strategy must have merge or from_tree, got {strategy!r}.")
        self.n_rows, self.n_labels = int(X.shape[0]), n_labels
        self._local, self._X, self._s = local, X, s
        merge: Any = strategy.merge
        self._solve = strategy.from_tree or partial(merged_ends, merge=merge)
        self._error = getattr(local, "log_odds_error", 0.0)
        self._history = np.full((self.n_rows, n_labels), UNDECIDED, dtype=np.int8)
        self._position = np.full((self.n_rows, n_labels), -1)  # of each label in the row's order

    def set_label(self, j: int, y: Labels, rows: Rows) -> None:
        self._history[rows, j] = y
        self._position[rows, j] = self._position[rows].max(axis=1) + 1
        self._last = None

    def log_odds(self, j: int, rows: Rows) -> tuple[LogOdds, LogOdds]:
        lower, upper = self._cached(j, rows, self._solved)
        return _log_ratio(*lower), _log_ratio(*upper)

    def compare(self, j: int, threshold: float, rows: Rows) -> tuple[Signs, Signs]:
        bounds = self.probabilities(j, rows)
        lower, upper = (_signs(bound, threshold) for bound in bounds)
        if bounds[0].dtype == object:
            return lower, upper
        cut = np.log(threshold) - np.log1p(-threshold)
        distance = np.abs(np.stack(self.log_odds(j, rows)) - cut)
        near = np.flatnonzero((distance <= self._rounding()).any(axis=0))
        if len(near):  # so near that rounding could decide
            (exact_lower, _), (exact_upper, _) = self._solved(j, rows[near], exact=True)
            lower[near] = _signs(exact_lower, threshold)
            upper[near] = _signs(exact_upper, threshold)
        return lower, upper

    def probabilities(self, j: int, rows: Rows) -> Bounds:
        """Compute the lower and upper probability of label j, exact if the local model's are."""
        (lower, _), (upper, _) = self._cached(j, rows, self._solved)
        return lower, upper

    def most_certain(self, candidates: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Find the most certain label, by fractions where rounding could order certainties."""
        certainty = self.certainty(candidates)
        best = certainty.max(axis=1, keepdims=True)
        near = candidates & (certainty >= best - 2 * self._rounding())
        chosen: NDArray[np.int64] = np.argmax(near, axis=1)
        for row in np.flatnonzero(near.sum(axis=1) > 1).tolist():
            labels = np.flatnonzero(near[row]).tolist()
            certainties = []  # max(lower, 1 - upper), which orders as max(L, -U) does
            for j in labels:
                (lower, _), (upper, _) = self._solved(j, np.array([row]), exact=True)
                certainties.append(max(*_as_fractions(lower), *(1 - _as_fractions(upper))))
            chosen[row] = labels[certainties.index(max(certainties))]
        return chosen

    def _rounding(self) -> float:
        """Bound how far log-odds can be off.

        Bounds are ratios of sums of products of positive numbers, at most one for each label on
        either side, so relative errors of these numbers add up and nothing cancels.
        """
        return 2 * (self.n_labels + 1) * (float(self._error) + 16 * np.finfo(float).eps)

    def _solved(self, j: int, rows: Rows, *, exact: bool = False) -> Ends:
        """Solve for both bounds with complements, rows with the same labels open together."""
        ends = np.empty((4, len(rows)), dtype=object)
        state = np.minimum(self._history[rows], 0)  # answered 0, open -1, undecided -2
        kinds = np.hstack([state, self._position[rows]])  # labels set, and their order
        kind_of = np.unique(kinds, axis=0, return_inverse=True)[1].ravel()
        for kind in np.unique(kind_of).tolist():
            group = np.flatnonzero(kind_of == kind)
            part, position = rows[group], self._position[rows[group[0]]]
            given = {
                k: None if self._history[part[0], k] == ABSTAIN else self._history[part, k]
                for k in np.argsort(position).tolist()
                if position[k] >= 0 and k != j
            }
            lower, upper = self._solve(self._tree(given, part, exact=exact), j)
            for i, values in enumerate((*lower, *upper)):
                ends[i, group] = values
        if not all(isinstance(value, (Fraction, int)) for value in ends[0]):
            ends = ends.astype(np.longdouble)
        return (ends[0], ends[1]), (ends[2], ends[3])

    def _tree(self, given: Any, rows: Rows, *, exact: bool) -> OpenTree:
        """Return the tree of a group of rows over the local model, or its exact values."""
        X, local = self._X[rows], self._local

        def ask(method: str, k: int, history: History) -> Any:
            labels = np.full((len(rows), self.n_labels), MISSING, dtype=np.int8)
            for label, value in history.items():
                labels[:, label] = value
            return getattr(local, method)(X, k, labels, s=self._s)

        def bounds(k: int, history: History) -> Bounds:
            lower, upper = map(np.asarray, ask("bounds", k, history))
            _check_bounds(lower, upper, k, len(rows))
            return (_as_fractions(lower), _as_fractions(upper)) if exact else (lower, upper)

        can_leave_out = getattr(local, "can_leave_out", False)
        if exact and hasattr(local, "bounds_as_fractions"):
            return OpenTree(given, partial(ask, "bounds_as_fractions"), None, can_leave_out)
        ends = partial(ask, "ends") if hasattr(local, "ends") and not exact else None
        return OpenTree(given, bounds, ends, can_leave_out)


def _without_names(X: Any) -> Any:
    """Return checked rows as an array or CSR, without names of columns."""
    return np.asarray(X) if hasattr(X, "columns") else X


def _as_fractions(values: NDArray[Any]) -> NDArray[Any]:
    """Convert to fractions; fractions stay, and not all numbers of numpy are known to Fraction."""
    exact = [value if isinstance(value, Fraction) else Fraction(float(value)) for value in values]
    return np.array(exact, dtype=object)


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
        row = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"bounds of label {j} must satisfy 0 <= lower <= upper <= 1, got "
            f"[{lower[row]}, {upper[row]}]."
        )


def _log_ratio(p: NDArray[Any], complement: NDArray[Any]) -> LogOdds:
    """Compute log-odds from both probabilities, in the widest floats there are."""
    with np.errstate(divide="ignore"):
        return np.asarray(
            np.log(p.astype(np.longdouble)) - np.log(complement.astype(np.longdouble)),
            dtype=np.float64,
        )


# -- inputs of bases that learn one model per label ---------------------------------------


def with_labels(X: Any, labels: Labels) -> Any:
    """Append two columns for each label, "is 0" and "is 1"; both 0 where it is neither."""
    both = np.stack([labels == 0, labels == 1], axis=-1).astype(np.float64)
    tables = [X, both.reshape(len(labels), -1)]
    return sparse.hstack(tables, format="csr") if sparse.issparse(X) else np.hstack(tables)


def earlier_labels(
    order: NDArray[np.int64] | None, n_labels: int, *, chained: bool, base_name: str
) -> list[NDArray[np.int64]]:
    """Return for each label those before it in the chain: the inputs of its model."""
    if not chained:
        return [np.empty(0, dtype=np.int64)] * n_labels
    if order is None:
        raise ValueError(
            f"{base_name} learns for one order of the labels; order='dynamic' has none."
        )
    return [order[:position] for position in np.argsort(order)]


def fit_each_label(
    Y: Labels,
    before: Sequence[NDArray[np.int64]],
    fit: Callable[[Rows, Labels, NDArray[np.int64]], Model],
) -> list[Model | None]:
    """Call ``fit(rows, y, earlier)`` for each label, on rows that have it; None without any."""
    models: list[Model | None] = []
    for j, earlier in enumerate(track(before, "labels", len(before))):
        rows = np.flatnonzero(Y[:, j] != MISSING)
        models.append(fit(rows, Y[rows, j], earlier) if len(rows) else None)
    return models
