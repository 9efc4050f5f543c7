"""The fitted chain of wrapped classifiers and the walk along it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain.array_types import FloatArray, Labels
from credalchain.bases.inputs import TableEncoder, indicators, side_by_side
from credalchain.bases.local import LocalWalk
from credalchain.bases.model import ChainModel
from credalchain.bases.probability_walk import ProbabilityWalk
from credalchain.bases.protocol import RANKS, Exactness, Ranks, Rows, Walk
from credalchain.bases.wrapper.search import is_enumerable, widest_bounds
from credalchain.bases.wrapper.sets import (
    Bagged,
    Contaminated,
    LabelModel,
    VennAbersCalibrated,
)
from credalchain.labels import ABSTAIN
from credalchain.preprocessing import Categories
from credalchain.strategies import Strategy, merge_dropped, merge_widest
from credalchain.tree import Bounds
from credalchain.validation import check_array, check_instance, check_int

_LABEL_MODELS = (Bagged, Contaminated, VennAbersCalibrated)
_SEARCHED = {merge_widest: True, merge_dropped: False}  # whether open labels are filled in


class WrappedChainModel(ChainModel):
    """A classifier for each label; None for a label without training data.

    ``before[j]`` are the labels whose columns follow the features in the input of label j.
    """

    shares_encoding = True
    why_no_reasons = "a wrapped classifier does not say what each feature adds"

    def __init__(
        self,
        models: Sequence[LabelModel | None],
        before: Sequence[NDArray[np.int64]],
        encoder: TableEncoder,
        budget: int,
    ) -> None:
        self.models, self.before = list(models), list(before)
        self.encoder, self.budget = encoder, budget
        self.n_labels = len(self.models)

    def check_state(self, n_features: int) -> None:
        """Validate a stored model: it must have bounds for a row of zeros."""
        check_instance("encoder", self.encoder, TableEncoder)
        self.encoder.check_state(one_hot=True)
        check_int("n_columns", self.encoder.n_columns, n_features, n_features)
        check_int("budget", self.budget, at_least=2)
        m = check_int("n_labels", self.n_labels, len(self.models), len(self.models))
        check_int("the number of histories", len(self.before), m, m)
        row = np.zeros((1, n_features), dtype=object if self.encoder.words else float)
        row[0, list(self.encoder.words)] = None
        rows = np.repeat(self.encoder.encode_table(row), 3, axis=0)
        for j, (model, earlier) in enumerate(zip(self.models, self.before, strict=True)):
            check_array("before", earlier, np.int64, (None,), 0, m - 1)
            check_instance("a label's model", model, (*_LABEL_MODELS, type(None)))
            history = np.repeat(np.array([[ABSTAIN], [0], [1]], np.int8), len(earlier), axis=1)
            lower, upper = self.bounds(j, rows, history, s=1.0)
            if not ((lower >= 0) & (lower <= upper) & (upper <= 1)).all():
                raise ValueError(f"label {j} has no valid probability.")

    @property
    def nested(self) -> bool:
        """Whether bounds never narrow with s: beam search may give narrower ones at a larger s."""
        n_earlier = np.array([len(earlier) for earlier in self.before])
        return bool(is_enumerable(n_earlier, self.budget).all())

    def encode(self, X: Any) -> Any:
        return self.encoder.encode_table(X)

    def text_categories(self) -> Mapping[int, Categories]:
        return self.encoder.words

    def never_observed(self) -> NDArray[np.bool_]:
        return np.array([model is None for model in self.models])

    def begin(self, encoded: Any, *, s: float, strategy: Strategy, precise: bool) -> Walk:
        if strategy.merge in _SEARCHED:
            return WrappedWalk(self, encoded, s, searches=_SEARCHED[strategy.merge])
        return LocalWalk(WrapperLocalModel(self), encoded, self.n_labels, s, strategy)

    def bounds(self, j: int, X: Any, history: Labels, s: float) -> Bounds:
        """Label j of each row, given earlier labels (rows, earlier); open ones are left out."""
        model = self.models[j]
        if model is None:
            return np.zeros(len(history)), np.ones(len(history))
        interval = model.full_interval(side_by_side(X, indicators(history)))
        return interval.bounds(model.width(s))


class WrappedWalk(ProbabilityWalk):
    """A batch on its way along a chain of classifiers."""

    def __init__(self, model: WrappedChainModel, X: Any, s: float, *, searches: bool) -> None:
        super().__init__(int(X.shape[0]), model.n_labels)
        self._model, self._X, self._s, self._searches = model, X, s, searches

    def exactness(self, j: int, rows: Rows) -> Ranks:
        n_open = (self._history[rows][:, self._model.before[j]] == ABSTAIN).sum(axis=1)
        if self._searches:
            rank, inexact = RANKS[Exactness.INNER], ~is_enumerable(n_open, self._model.budget)
        else:
            rank, inexact = RANKS[Exactness.APPROXIMATE], n_open > 0
        return np.where(inexact, rank, RANKS[Exactness.EXACT]).astype(np.int8)

    def find_bounds(self, j: int, rows: Rows) -> FloatArray:
        history = self._history[rows][:, self._model.before[j]]
        X = self._X[rows]

        def evaluate(positions: Rows, earlier: Labels) -> Bounds:
            return self._model.bounds(j, X[positions], earlier, self._s)

        if not self._searches or not (history == ABSTAIN).any():
            return np.column_stack(evaluate(np.arange(len(rows)), history))
        return np.column_stack(widest_bounds(evaluate, history, self._model.budget))


class WrapperLocalModel:
    """The classifiers given complete histories; a label left out is encoded as neither 0 nor 1."""

    can_leave_out = True

    def __init__(self, model: WrappedChainModel) -> None:
        self._model = model

    def bounds(self, X: Any, j: int, history: Labels, *, s: float) -> Bounds:
        return self._model.bounds(j, X, history[:, self._model.before[j]], s)
