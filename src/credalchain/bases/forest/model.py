"""The fitted chain of forests and the walk along it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain.array_types import Labels
from credalchain.bases.forest.packed import PackedForest
from credalchain.bases.inputs import TableEncoder
from credalchain.bases.local import LocalWalk
from credalchain.bases.model import ChainModel
from credalchain.bases.probability_walk import ProbabilityWalk
from credalchain.bases.protocol import RANKS, ExactBounds, Exactness, Ranks, Rows, Signs, Walk
from credalchain.labels import ABSTAIN
from credalchain.preprocessing import Categories
from credalchain.strategies import Strategy, merge_dropped, merge_widest
from credalchain.tree import Bounds
from credalchain.validation import check_instance, check_int

_ROUNDING = 2.0**-40  # sums over leaves and trees are closer to the truth than this
_COMPILED: dict[Any, bool] = {
    merge_widest: False,
    merge_dropped: True,
}  # whether branches are weighted


class ForestChainModel(ChainModel):
    """A forest for each label; None for a label without training data."""

    shares_encoding = True
    why_no_reasons = "a forest is not a sum of what each feature adds"
    rows_at_once = 512

    def __init__(self, forests: Sequence[PackedForest | None], encoder: TableEncoder) -> None:
        self.forests, self.encoder = list(forests), encoder
        self.n_labels = len(self.forests)

    def check_state(self, n_features: int) -> None:
        """Validate a stored model for rows with ``n_features`` columns."""
        check_instance("forests", self.forests, list)
        check_instance("encoder", self.encoder, TableEncoder)
        self.encoder.check_state(one_hot=False)
        check_int("n_columns", self.encoder.n_columns, n_features, n_features)
        check_int("n_labels", self.n_labels, len(self.forests), len(self.forests))
        for forest in self.forests:
            if forest is not None:
                check_instance("a forest", forest, PackedForest)
                forest.check_state(n_features, self.n_labels)

    def encode(self, X: Any) -> NDArray[np.float32]:
        return self.encoder.encode(X, np.float32)

    def text_categories(self) -> Mapping[int, Categories]:
        return self.encoder.words

    @property
    def log_odds_error(self) -> float:
        return _ROUNDING

    def never_observed(self) -> NDArray[np.bool_]:
        return np.array([forest is None for forest in self.forests])

    def count_rows(self, encoded: NDArray[np.float32], labels: Labels) -> list[NDArray[np.float64]]:
        """Number of rows in each node, for every label; no tree was grown on these rows."""
        forests = [
            PackedForest.single_leaf() if forest is None else forest for forest in self.forests
        ]
        return [forest.count(encoded, labels, j) for j, forest in enumerate(forests)]

    def with_counts(self, counts: Sequence[NDArray[np.float64]]) -> "ForestChainModel":
        """The same trees, with these counts added to those of the nodes."""
        forests = []
        for forest, label_counts in zip(self.forests, counts, strict=True):
            if forest is None and label_counts.any():
                forest = PackedForest.single_leaf()
            if forest is not None:
                forest = replace(forest, counts=forest.counts + label_counts)
            forests.append(forest)
        return ForestChainModel(forests, self.encoder)

    def exact_bounds(
        self, encoded: NDArray[np.float32], *, s: float, strategy: Strategy, precise: bool
    ) -> ExactBounds | None:
        if strategy.merge not in _COMPILED:
            return None
        weighted = _COMPILED[strategy.merge]

        def bounds(row: int, j: int, history: Labels) -> tuple[Fraction, Fraction]:
            forest = self.forests[j]
            assert forest is not None  # bounds of labels never observed are not requested
            return forest.exact_bounds(encoded[row], history, s=s, weighted=weighted)

        return bounds

    def begin(
        self, encoded: NDArray[np.float32], *, s: float, strategy: Strategy, precise: bool
    ) -> Walk:
        if strategy.merge in _COMPILED:
            return ForestWalk(self.forests, encoded, s, weighted=_COMPILED[strategy.merge])
        return LocalWalk(ForestLocalModel(self.forests), encoded, self.n_labels, s, strategy)


class ForestWalk(ProbabilityWalk):
    """A batch on its way along a chain of forests; ties are settled in fractions."""

    def __init__(
        self,
        forests: Sequence[PackedForest | None],
        X: NDArray[np.float32],
        s: float,
        *,
        weighted: bool,
    ) -> None:
        super().__init__(len(X), len(forests))
        self._forests, self._X, self._s, self._weighted = forests, X, s, weighted

    def exactness(self, j: int, rows: Rows) -> Ranks:
        """Rows with an open label before j: exact only in a single tree."""
        forest = self._forests[j]
        is_single_tree = forest is not None and len(forest.roots) == 1
        worst = Exactness.EXACT if is_single_tree else Exactness.OUTER
        if self._weighted:
            worst = Exactness.APPROXIMATE
        any_open = (self._history[rows] == ABSTAIN).any(axis=1)
        return np.where(any_open, RANKS[worst], RANKS[Exactness.EXACT]).astype(np.int8)

    def compare(self, j: int, threshold: float, rows: Rows) -> tuple[Signs, Signs]:
        lower, upper = super().compare(j, threshold, rows)
        forest = self._forests[j]
        if forest is None:
            return lower, upper
        rounding = max(_ROUNDING, 4 * len(forest.roots) * np.finfo(float).eps)
        distance = np.abs(np.stack(self.probabilities(j, rows)) - threshold)
        near = (distance <= rounding).any(axis=0)
        t = Fraction(threshold)
        exact = _exact_bounds_of_rows(
            forest, self._X[rows[near]], self._history[rows[near]], self._s, weighted=self._weighted
        )
        for i, bounds in zip(np.flatnonzero(near).tolist(), exact, strict=True):
            lower[i], upper[i] = ((bound > t) - (bound < t) for bound in bounds)
        return lower, upper

    def find_bounds(self, j: int, rows: Rows) -> NDArray[np.float64]:
        forest = self._forests[j]
        if forest is None:
            return np.tile([0.0, 1.0], (len(rows), 1))
        return forest.bounds(self._X, rows, self._history, s=self._s, weighted=self._weighted)


class ForestLocalModel:
    """The forests given complete histories; labels left out are averaged over."""

    can_leave_out = True
    log_odds_error = _ROUNDING

    def __init__(self, forests: Sequence[PackedForest | None]) -> None:
        self._forests = forests

    def bounds(self, X: NDArray[np.float32], j: int, history: Labels, *, s: float) -> Bounds:
        forest = self._forests[j]
        if forest is None:
            return np.zeros(len(X)), np.ones(len(X))
        rows = np.arange(len(X))
        bounds = forest.bounds(np.ascontiguousarray(X), rows, history, s=s, weighted=True)
        return bounds[:, 0], bounds[:, 1]

    def exact_bounds(self, X: NDArray[np.float32], j: int, history: Labels, *, s: float) -> Bounds:
        """The same as fractions, to settle ties."""
        bounds = np.full((len(X), 2), (Fraction(0), Fraction(1)), dtype=object)
        forest = self._forests[j]
        if forest is not None:
            exact = _exact_bounds_of_rows(forest, X, history, s, weighted=True)
            bounds = np.array(exact, dtype=object).reshape(-1, 2)
        return bounds[:, 0], bounds[:, 1]


def _exact_bounds_of_rows(
    forest: PackedForest, X: NDArray[np.float32], history: Labels, s: float, *, weighted: bool
) -> list[tuple[Fraction, Fraction]]:
    """Bounds as fractions, which take milliseconds: once for rows that are equal, as ties are."""
    bounds: dict[bytes, tuple[Fraction, Fraction]] = {}
    keys = [x.tobytes() + labels.tobytes() for x, labels in zip(X, history, strict=True)]
    for i, key in enumerate(keys):
        if key not in bounds:
            bounds[key] = forest.exact_bounds(X[i], history[i], s=s, weighted=weighted)
    return [bounds[key] for key in keys]
