"""The fitted chain of forests and the walk along it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain.bases.forest.packed import PackedForest
from credalchain.bases.inputs import Numbers
from credalchain.bases.local import LocalWalk
from credalchain.bases.probability_walk import ProbabilityWalk
from credalchain.bases.protocol import (
    Answer,
    ChainModel,
    Exactness,
    Labels,
    Ranks,
    Request,
    Rows,
    Walk,
    join_answers,
)
from credalchain.bases.threads import for_each_chunk
from credalchain.labels import ABSTAIN
from credalchain.strategies import Strategy
from credalchain.tree import Bounds

_ROWS_AT_ONCE = 512


class ForestChainModel(ChainModel):
    """A forest for each label; None for a label without training data."""

    encodes_alike = True

    def __init__(self, forests: Sequence[PackedForest | None], numbers: Numbers) -> None:
        self.forests, self.numbers = list(forests), numbers
        self.n_labels = len(self.forests)

    def encode(self, X: Any) -> NDArray[np.float32]:
        return self.numbers.of(X, np.float32)

    def never_observed(self) -> NDArray[np.bool_]:
        return np.array([forest is None for forest in self.forests])

    def begin(
        self, encoded: NDArray[np.float32], *, s: float, strategy: Strategy, precise: bool
    ) -> Walk:
        if strategy.shortcut is None:
            return LocalWalk(_Local(self.forests), encoded, self.n_labels, s, strategy)
        return ForestWalk(self.forests, encoded, s, weighted=strategy.shortcut == "nothing")

    def infer(
        self, encoded: NDArray[np.float32], strategies: tuple[Strategy, ...], request: Request
    ) -> list[Answer]:
        parts: dict[int, list[Answer]] = {}

        def run(start: int, stop: int) -> None:
            known = None if request.known is None else request.known[start:stop]
            parts[start] = super(ForestChainModel, self).infer(
                encoded[start:stop], strategies, replace(request, known=known)
            )

        for_each_chunk(len(encoded), _ROWS_AT_ONCE, request.n_jobs, run)
        columns = zip(*(parts[start] for start in sorted(parts)), strict=True)
        return [join_answers(column) for column in columns]


class ForestWalk(ProbabilityWalk):
    """A batch on its way along a chain of forests."""

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
        one_tree = forest is not None and len(forest.roots) == 1
        worst = Exactness.EXACT if one_tree else Exactness.OUTER
        if self._weighted:
            worst = Exactness.APPROXIMATE
        any_open = (self._history[rows] == ABSTAIN).any(axis=1)
        return np.where(any_open, worst.rank, Exactness.EXACT.rank).astype(np.int8)

    def find_bounds(self, j: int, rows: Rows) -> NDArray[np.float64]:
        forest = self._forests[j]
        if forest is None:
            return np.tile([0.0, 1.0], (len(rows), 1))
        return forest.bounds(self._X, rows, self._history, s=self._s, weighted=self._weighted)


class _Local:
    """The forests under complete histories, for the tree."""

    def __init__(self, forests: Sequence[PackedForest | None]) -> None:
        self._forests = forests

    def bounds(self, X: NDArray[np.float32], j: int, history: Labels, *, s: float) -> Bounds:
        forest = self._forests[j]
        if forest is None:
            return np.zeros(len(X)), np.ones(len(X))
        bounds = forest.bounds(
            np.ascontiguousarray(X), np.arange(len(X)), history, s=s, weighted=False
        )
        return bounds[:, 0], bounds[:, 1]
