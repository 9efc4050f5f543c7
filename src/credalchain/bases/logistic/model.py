"""The fitted chain of logistic regressions and the walk along it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from credalchain.array_types import FloatArray, Labels
from credalchain.bases.inputs import TableEncoder
from credalchain.bases.local import LocalWalk
from credalchain.bases.model import ChainModel
from credalchain.bases.protocol import LogOdds, Rows, Walk
from credalchain.labels import ABSTAIN, UNDECIDED
from credalchain.odds import probabilities
from credalchain.preprocessing import Categories
from credalchain.strategies import Strategy, marginalization
from credalchain.tree import Bounds


@dataclass(frozen=True, eq=False)
class CoefficientSet:
    """One label's coefficient vectors; number 0 is the fit to all rows.

    ``features`` is (members, p), ``intercept`` (members,), ``labels`` (members, m, 2): what label k
    adds if it is 0 or 1. A label without a value adds nothing.
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

    def __init__(
        self, coefficient_sets: Sequence[CoefficientSet | None], encoder: TableEncoder
    ) -> None:
        self.coefficient_sets, self.encoder = list(coefficient_sets), encoder
        self.n_labels = len(self.coefficient_sets)

    def encode(self, X: Any) -> Any:
        return without_missing(self.encoder.encode_table(X))

    def text_categories(self) -> Mapping[int, Categories]:
        return self.encoder.words

    def never_observed(self) -> NDArray[np.bool_]:
        return np.array([coefficients is None for coefficients in self.coefficient_sets])

    def begin(self, encoded: Any, *, s: float, strategy: Strategy, precise: bool) -> Walk:
        if strategy.merge is None:
            return LocalWalk(
                LogisticLocalModel(self.coefficient_sets), encoded, self.n_labels, s, strategy
            )
        return LogisticWalk(self.coefficient_sets, encoded, s, strategy)


class LogisticWalk(Walk):
    """A batch on its way along a chain of logistic regressions."""

    def __init__(
        self,
        coefficient_sets: Sequence[CoefficientSet | None],
        X: Any,
        s: float,
        strategy: Strategy,
    ) -> None:
        self.n_rows, self.n_labels = int(X.shape[0]), len(coefficient_sets)
        self._coefficient_sets = [
            None if coefficients is None else coefficients.scaled(s)
            for coefficients in coefficient_sets
        ]
        self._X, self._merge = X, strategy.merge
        self._history = np.full((self.n_rows, self.n_labels), UNDECIDED, dtype=np.int8)

    def set_label(self, j: int, y: Labels, rows: Rows) -> None:
        self._history[rows, j] = y
        self._last = None

    def log_odds(self, j: int, rows: Rows) -> tuple[LogOdds, LogOdds]:
        return self._cached(j, rows, self._find_log_odds)

    def _find_log_odds(self, j: int, rows: Rows) -> tuple[LogOdds, LogOdds]:
        coefficients = self._coefficient_sets[j]
        if coefficients is None:
            return np.full(len(rows), -np.inf), np.full(len(rows), np.inf)
        history = self._history[rows]
        if_zero, if_one = coefficients.labels[:, :, 0], coefficients.labels[:, :, 1]
        sums = _products(self._X[rows], coefficients.features) + coefficients.intercept
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


class LogisticLocalModel:
    """The regressions given complete histories; a label left out adds nothing."""

    can_leave_out = True

    def __init__(self, coefficient_sets: Sequence[CoefficientSet | None]) -> None:
        self._coefficient_sets = coefficient_sets

    def bounds(self, X: Any, j: int, history: Labels, *, s: float) -> Bounds:
        walk = LogisticWalk(self._coefficient_sets, X, s, marginalization)
        rows = np.arange(len(history))
        for k in range(walk.n_labels):
            walk.set_label(k, history[:, k], rows)
        lower, upper = (probabilities(bound) for bound in walk.log_odds(j, rows))
        return lower, upper


def without_missing(encoded: Any) -> Any:
    """Refuse missing values, which a regression cannot use."""
    if np.isnan(encoded.data if sparse.issparse(encoded) else encoded).any():
        raise ValueError(
            "CredalLogistic needs every value; fill in missing ones first, for instance with "
            "scikit-learn's SimpleImputer in a pipeline."
        )
    return encoded
