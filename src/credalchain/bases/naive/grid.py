"""Log-odds as whole numbers: their grid, their lanes, and tables of them."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain._kernels.fixed_point import ABOVE_MASK, ZERO_ABOVE, ZERO_BELOW, fraction_bits
from credalchain._kernels.states import LANES, STEP

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

_UNITS_PER_TERM = 4  # see fixed_point


@dataclass(frozen=True)
class Scale:
    """The grid of the fixed-point numbers, and how far a sum on it can be off."""

    unit: float
    band: int

    @classmethod
    def for_terms(cls, n_features: int, n_labels: int) -> "Scale":
        """Prior, threshold, every feature and every other label: one term each."""
        terms = n_features + n_labels + 2
        return cls(unit=float(2 ** fraction_bits(terms)), band=_UNITS_PER_TERM * terms)

    @property
    def error(self) -> float:
        """The band as log-odds."""
        return self.band / self.unit


@dataclass(frozen=True)
class Layout:
    """Which lane is what, in two orders.

    Sums over features go label by label, (label, value of s, bound): what one piece of evidence
    says about a label is one ``run``. Labels come in tiles, the fewest that fill whole blocks of
    lanes. A walk goes along the labels for one value of s: (value of s, label, bound), each value
    with ``width`` lanes, padded so that a few can be told at a time. For a single value the two
    are the same. What stands in lanes of padding means nothing and is never read.
    """

    n_values: int
    n_labels: int

    @property
    def width(self) -> int:
        return -(-2 * self.n_labels // STEP) * STEP

    @property
    def run(self) -> int:
        return 2 * self.n_values

    @property
    def tile_labels(self) -> int:
        return LANES // math.gcd(LANES, self.run)

    @property
    def n_tiles(self) -> int:
        return -(-self.n_labels // self.tile_labels)

    @property
    def tile_lanes(self) -> int:
        return self.tile_labels * self.run

    def tiled(self, per_label: IntArray) -> IntArray:
        """(label, value of s, bound) as (tiles, lanes of a tile), filled up with zeros."""
        lanes = np.zeros((self.n_tiles, self.tile_lanes), dtype=np.int64)
        lanes.reshape(-1)[: per_label.size] = per_label.ravel()
        return lanes

    def for_walk(self, lanes: IntArray) -> IntArray:
        """(rows, tiles, lanes of a tile) as (values of s, rows, at least ``width``)."""
        n_rows = len(lanes)
        if self.n_values == 1:
            return lanes.reshape(1, n_rows, -1)
        walked = np.empty((self.n_values, n_rows, self.width), dtype=np.int64)
        # both bounds move as one thing of 16 bytes, which complex numbers are
        there, here = walked.view(np.complex128), lanes.reshape(n_rows, -1).view(np.complex128)
        by_label = here.reshape(n_rows, -1, self.n_values)[:, : self.n_labels]
        there[:, :, : self.n_labels] = by_label.transpose(2, 0, 1)
        return walked


@dataclass(frozen=True)
class FixedTable:
    """Fixed-point log-odds, and zero factors where there are any (else an empty array)."""

    values: IntArray
    zeros: IntArray

    @classmethod
    def finite(cls, values: IntArray) -> "FixedTable":
        """A table without zero factors."""
        return cls(values, no_zeros(values.ndim))

    @classmethod
    def from_log_odds(cls, log_odds: FloatArray, scale: Scale) -> "FixedTable":
        """Infinite and undefined log-odds become zero factors."""
        finite = np.isfinite(log_odds)
        if finite.all():
            return cls.finite(np.rint(log_odds * scale.unit).astype(np.int64))
        values = np.rint(np.where(finite, log_odds, 0.0) * scale.unit).astype(np.int64)
        undefined = np.isnan(log_odds)  # 0/0: a zero above makes it 0, whatever is below
        above = np.where(undefined | (log_odds == -np.inf), ZERO_ABOVE, 0)
        below = np.where(undefined | (log_odds == np.inf), ZERO_BELOW, 0)
        return cls(values, above + below)

    def log_odds(self, scale: Scale) -> FloatArray:
        """The inverse: a single term has few enough bits to be a float without rounding."""
        log_odds = self.values / scale.unit
        if not self.has_zeros:
            return log_odds
        above, below = (self.zeros & ABOVE_MASK) > 0, self.zeros > ABOVE_MASK
        log_odds[above & ~below] = -np.inf
        log_odds[below & ~above] = np.inf
        log_odds[above & below] = np.nan
        return log_odds

    @property
    def has_zeros(self) -> bool:
        return self.zeros.size > 0

    def reshaped(self, shape: tuple[int, ...]) -> "FixedTable":
        zeros = self.zeros.reshape(shape) if self.has_zeros else no_zeros(len(shape))
        return FixedTable(self.values.reshape(shape), zeros)

    def __getitem__(self, place: Any) -> "FixedTable":
        return FixedTable(self.values[place], self.zeros[place] if self.has_zeros else self.zeros)


def no_zeros(n_dimensions: int) -> IntArray:
    """What stands for zero factors where there are none."""
    return np.zeros((0,) * n_dimensions, dtype=np.int64)
