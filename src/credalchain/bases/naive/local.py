"""The naive model as a local model: its bounds under complete histories, for the tree."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from credalchain._kernels.fixed_point import ABOVE_MASK
from credalchain.bases.naive.codes import Codes
from credalchain.bases.naive.tables import ChainTables
from credalchain.bases.naive.walk import start_sums
from credalchain.bases.protocol import Labels
from credalchain.labels import MISSING
from credalchain.tree import Bounds


class NaiveLocal:
    """Bounds for the rows of one batch, one s; "X" is the rows' numbers in the batch."""

    def __init__(self, codes: Codes, tables: ChainTables) -> None:
        self._tables = tables
        self._sums, self._zeros = start_sums(codes, tables, with_zeros=tables.has_zeros)

    def bounds(self, X: NDArray[Any], j: int, history: Labels, *, s: float) -> Bounds:
        rows = X[:, 0]
        pairs = self._tables.pairs
        sums = self._sums[rows, j]
        zeros = self._zeros[rows, j] if self._tables.has_zeros else np.zeros_like(sums)
        for k in np.flatnonzero((history != MISSING).any(axis=0)).tolist():
            sums = sums + pairs.values[k, history[:, k], j]
            if pairs.has_zeros:
                zeros = zeros + pairs.zeros[k, history[:, k], j]
        p = expit(sums / self._tables.scale.unit)
        p = np.where(zeros & ABOVE_MASK, 0.0, np.where(zeros, 1.0, p))
        return p[:, 0], p[:, 1]
