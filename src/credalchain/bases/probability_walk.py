"""Walks of models that give probabilities rather than sums of log-odds."""

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain.array_types import Labels
from credalchain.bases.protocol import LogOdds, Rows, Signs, Walk
from credalchain.labels import UNDECIDED
from credalchain.odds import log_odds


class ProbabilityWalk(Walk):
    """Keeps the labels set, and caches the last bounds: a chain asks several times."""

    def __init__(self, n_rows: int, n_labels: int) -> None:
        self.n_rows, self.n_labels = n_rows, n_labels
        self._history = np.full((n_rows, n_labels), UNDECIDED, dtype=np.int8)

    @abstractmethod
    def find_bounds(self, j: int, rows: Rows) -> NDArray[np.float64]:
        """Lower and upper probability of label ``j``, given the labels set so far: (rows, 2)."""

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
