"""The fitted chain of logistic regressions and the walk along it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from credalchain.bases.inputs import TableEncoder
from credalchain.bases.local import LocalWalk
from credalchain.bases.model import ChainModel
from credalchain.bases.protocol import Labels, LogOdds, Rows, Walk
from credalchain.labels import ABSTAIN, UNDECIDED
from credalchain.odds import probabilities
from credalchain.preprocessing import Categories
from credalchain.strategies import Strategy, marginalization
from credalchain.tree import Bounds

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CoefficientSet:
    """One label's coefficient vectors; number 0 is the fit to all rows.

    ``features`` is (members, p), ``intercept`` (members,), ``labels`` (members, m, 2): what label k
    adds if it is 0 or 1. A label that is not given adds nothing.
    """

    features: FloatArray
    intercept: FloatArray
    labels: FloatArray

    def scaled(self, s: float) -> "CoefficientSet":
        """Each member with its deviation from the fit multiplied by s; for s = 0 the fit alone."""
        parts = (self.features, self.intercept, self.labels)
        if s == 0:
            return CoefficientSet(*(part[:1] for part in parts))
        return CoefficientSet(*((part[:1] + s * (part - part[:1])) for part in parts))


class LogisticChainModel(ChainModel):
    """Coefficient vectors of each label; None for a label without training data."""

    shares_encoding = True
    why_no_reasons = "bounds come from several regressions, each with reasons of its own"

    def __init__(self, members: Sequence[CoefficientSet | None], encoder: TableEncoder) -> None:
        self.members, self.encoder = list(members), encoder
        self.n_labels = len(self.members)

    def encode(self, X: Any) -> Any:
        return without_missing(self.encoder.encode_table(X))

    def text_categories(self) -> Mapping[int, Categories]:
        return self.encoder.words

    def never_observed(self) -> NDArray[np.bool_]:
        return np.array([one is None for one in self.members])

    def begin(self, encoded: Any, *, s: float, strategy: Strategy, precise: bool) -> Walk:
        if strategy.merge is None:
            return LocalWalk(_Local(self.members), encoded, self.n_labels, s, strategy)
        return LogisticWalk(self.members, encoded, s, strategy)


class LogisticWalk(Walk):
    """A batch on its way along a chain of logistic regressions."""

    def __init__(
        self, members: Sequence[CoefficientSet | None], X: Any, s: float, strategy: Strategy
    ) -> None:
        self.n_rows, self.n_labels = int(X.shape[0]), len(members)
        self._members = [None if one is None else one.scaled(s) for one in members]
        self._X, self._merge = X, strategy.merge
        self._history = np.full((self.n_rows, self.n_labels), UNDECIDED, dtype=np.int8)

    def set_label(self, j: int, y: Labels, rows: Rows) -> None:
        self._history[rows, j] = y
        self._last = None

    def log_odds(self, j: int, rows: Rows) -> tuple[LogOdds, LogOdds]:
        return self._cached(j, rows, self._find_log_odds)

    def _find_log_odds(self, j: int, rows: Rows) -> tuple[LogOdds, LogOdds]:
        members = self._members[j]
        if members is None:
            return np.full(len(rows), -np.inf), np.full(len(rows), np.inf)
        history = self._history[rows]
        if_zero, if_one = members.labels[:, :, 0], members.labels[:, :, 1]
        sums = _products(self._X[rows], members.features) + members.intercept
        sums += _products(history == 0, if_zero) + _products(history == 1, if_one)
        is_open = (history == ABSTAIN).astype(np.float64)
        if not is_open.any() or self._merge is None:
            return sums.min(axis=1), sums.max(axis=1)
        nothing = np.zeros_like(if_zero)
        lower, upper = self._merge((if_zero, if_zero), (if_one, if_one), (nothing, nothing))
        lower, upper = (
            sums + _products(is_open, np.asarray(bound, dtype=np.float64))
            for bound in (lower, upper)
        )
        return lower.min(axis=1), upper.max(axis=1)


def _products(rows: Any, coefficients: FloatArray) -> FloatArray:
    """``rows @ coefficients.T``, each row by itself: the bits do not depend on the others."""
    if sparse.issparse(rows):
        return np.asarray(rows @ coefficients.T)
    from credalchain.bases.products import product_by_rows  # imports numba

    return product_by_rows(rows, coefficients.T)


class _Local:
    """The regressions under complete histories; a label left out adds nothing."""

    can_leave_out = True

    def __init__(self, members: Sequence[CoefficientSet | None]) -> None:
        self._members = members

    def bounds(self, X: Any, j: int, history: Labels, *, s: float) -> Bounds:
        walk = LogisticWalk(self._members, X, s, marginalization)
        rows = np.arange(len(history))
        for k in range(walk.n_labels):
            walk.set_label(k, history[:, k], rows)
        lower, upper = (probabilities(bound) for bound in walk.log_odds(j, rows))
        return lower, upper


def without_missing(numbers: Any) -> Any:
    """Refuse missing values, which a regression has no place for."""
    if np.isnan(numbers.data if sparse.issparse(numbers) else numbers).any():
        raise ValueError(
            "CredalLogistic needs every value; fill in missing ones first, for instance with "
            "scikit-learn's SimpleImputer in a pipeline."
        )
    return numbers
