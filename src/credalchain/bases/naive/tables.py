"""Fixed-point tables: what every observation adds to the log-odds of every label."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain import _kernels
from credalchain._kernels.fixed_point import fraction_bits
from credalchain.bases.naive.counts import ChainCounts
from credalchain.bases.naive.settings import DENOMINATORS, PRIORS, NaiveSettings
from credalchain.strategies import Strategy, greatest_log_odds, least_log_odds

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

_LARGEST = 2.0**8  # see fixed_point: no term may be larger


@dataclass(frozen=True)
class Scale:
    """The grid of the fixed-point numbers, and how far a sum on it can be off."""

    unit: float
    band: int

    @classmethod
    def for_terms(cls, n_features: int, n_labels: int) -> "Scale":
        """Prior, threshold, every feature and every other label: one term each."""
        terms = n_features + n_labels + 2
        return cls(unit=float(2 ** fraction_bits(terms)), band=terms)


@dataclass(frozen=True)
class FixedTable:
    """Fixed-point log-odds, and zero factors where there are any (else an empty array)."""

    values: IntArray
    zeros: IntArray

    @classmethod
    def from_log_odds(cls, log_odds: FloatArray, scale: Scale) -> "FixedTable":
        """Takes over the memory of ``log_odds``."""
        values = log_odds.view(np.int64)
        finite = bool(np.isfinite(log_odds).all())
        zeros = np.zeros(0 if finite else log_odds.shape, dtype=np.int64)
        _kernels.to_fixed_point(log_odds.ravel(), scale.unit, values.ravel(), zeros.ravel())
        if zeros.size == 0:
            zeros = np.zeros((0, *log_odds.shape[1:]), dtype=np.int64)
        return cls(values, zeros)

    @classmethod
    def empty(cls, shape: tuple[int, ...]) -> "FixedTable":
        """A table without rows."""
        nothing = np.zeros((0, *shape), dtype=np.int64)
        return cls(nothing, nothing)

    @property
    def has_zeros(self) -> bool:
        return len(self.zeros) > 0


@dataclass(frozen=True)
class ChainTables:
    """All tables for one s and one order of the labels.

    ``features`` has ``feature_rows[i]`` rows for feature i, one per category and, if the
    batch needs them, one for "never seen" and one for "missing". ``pairs`` is empty where
    labels do not speak to each other.
    """

    order: IntArray
    scale: Scale
    prior: FixedTable
    features: FixedTable
    feature_rows: IntArray
    pairs: FixedTable

    @property
    def offsets(self) -> IntArray:
        """The first row of each feature."""
        return np.cumsum(self.feature_rows) - self.feature_rows

    @property
    def has_zeros(self) -> bool:
        return any(part.has_zeros for part in (self.prior, self.features, self.pairs))


def prior_log_odds(counts: ChainCounts, settings: NaiveSettings, s: float) -> FloatArray:
    """(m, 2): where the lower and the upper log-odds of each label start."""
    prior = PRIORS[settings.prior]
    return np.array(
        [
            [_log_ratio(*lower), _log_ratio(*upper)]
            for lower, upper in (prior(n0, n1, s) for n0, n1 in counts.label.tolist())
        ]
    )


def _log_ratio(above: float, below: float) -> float:
    if above > 0 and below > 0:
        return math.log(above / below)
    return -math.inf if below > 0 else math.inf if above > 0 else math.nan


def feature_table(
    counts: ChainCounts,
    settings: NaiveSettings,
    scale: Scale,
    *,
    s: float,
    order: IntArray,
    exceptional: bool,
    conservative: bool,
) -> FixedTable:
    """The table of all features, labels in ``order``.

    With ``exceptional``, each feature has two rows more: never seen, and missing.
    """
    n_rows = counts.n_categories + (2 if exceptional else 0)
    log_odds = np.empty((int(n_rows.sum()), len(order), 2))
    totals = counts.feature_totals()
    _kernels.log_odds_rows(
        counts.feature,
        totals,
        totals,
        counts.n_categories,
        n_rows,
        s,
        settings.epsilon,
        order,
        log_odds,
    )
    if exceptional and conservative:
        starts = np.cumsum(n_rows) - n_rows
        for start, k in zip(starts.tolist(), counts.n_categories.tolist(), strict=True):
            seen = log_odds[start : start + k]
            log_odds[start + k + 1, :, 0] = least_log_odds(seen[:, :, 0])
            log_odds[start + k + 1, :, 1] = greatest_log_odds(seen[:, :, 1])
    return FixedTable.from_log_odds(log_odds, scale)


def pair_log_odds(
    counts: ChainCounts, settings: NaiveSettings, *, s: float, order: IntArray
) -> FloatArray:
    """(m, 2, m, 2): [k, b, j, bound], what label k adds to label j if it is b; in ``order``."""
    m = counts.n_labels
    pair = np.ascontiguousarray(counts.pair[order])
    denominators = DENOMINATORS[settings.denominator](counts)[order]
    two = np.full(m, 2, dtype=np.int64)
    log_odds = np.empty((2 * m, m, 2))
    _kernels.log_odds_rows(
        pair.reshape(2 * m, m, 2),
        pair.sum(axis=1),
        np.ascontiguousarray(denominators),
        two,
        two,
        s,
        settings.epsilon,
        order,
        log_odds,
    )
    by_value = log_odds.reshape(m, 2, m, 2)
    by_value[counts.label[order].sum(axis=1) == 0] = 0.0  # never observed: says nothing
    return by_value


def pair_table(pair: FloatArray, strategy: Strategy, scale: Scale) -> FixedTable:
    """(m, 3, m, 2): the columns 0, 1 and * of every label."""
    m = len(pair)
    columns = np.empty((m, 3, m, 2))
    columns[:, :2] = pair
    by_value = pair.transpose(1, 0, 2, 3)  # value first, as Strategy.star takes it
    assert strategy.star is not None
    star = strategy.star(by_value[..., 0].copy(), by_value[..., 1].copy())
    columns[:, 2, :, 0], columns[:, 2, :, 1] = _checked_star(star, strategy, m)
    return FixedTable.from_log_odds(columns, scale)


def _checked_star(star: Any, strategy: Strategy, m: int) -> tuple[FloatArray, FloatArray]:
    try:
        lower, upper = (np.broadcast_to(np.asarray(part, float), (m, m)) for part in star)
    except (TypeError, ValueError):
        raise ValueError(
            f"star of strategy {strategy.name!r} must give (lower, upper), two arrays of the "
            f"shape of w_lower[0]; got {star!r}."
        ) from None
    for bound in (lower, upper):
        finite = bound[np.isfinite(bound)]
        if finite.size and np.abs(finite).max() >= _LARGEST:
            raise ValueError(
                f"star of strategy {strategy.name!r} must give log-odds below {_LARGEST:g} in "
                f"size (or infinite), got {finite[np.abs(finite).argmax()]}."
            )
    return lower, upper
