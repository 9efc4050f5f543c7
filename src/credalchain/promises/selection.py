"""Which values of caution keep a promise, judged by rows held out.

Values run from bold to cautious. Every promise is judged by a :class:`Tally`, sums over rows that
can be added up chunk by chunk.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalchain.labels import MISSING
from credalchain.promises.risks import Labels, Risk, shifted
from credalchain.promises.statistics import (
    STAKES,
    bets_below,
    binomial_p_value,
    conformal_bound,
    hoeffding_bentkus_p_value,
    interval_of_ratio,
    interval_of_share,
)

FloatArray = NDArray[np.float64]

_ROUNDING = 1e-12
_NEARLY = 0.7  # of the most evidence, in logarithms


@dataclass(frozen=True)
class Promise:
    """A risk of whole rows, or of one label (its column), that is to be at most ``level``.

    ``confidence`` is None for a promise on average.
    """

    risk: Risk
    level: float
    confidence: float | None = None
    label: int | None = None

    @property
    def is_ratio(self) -> bool:
        """Whether the risk is a share of what is answered, and may rise with caution."""
        return self.risk.is_ratio if self.label is None else self.risk.label_is_ratio

    @property
    def needs_pilot(self) -> bool:
        """Whether a few rows have to say how the others are tested."""
        return self.confidence is not None and (self.is_ratio or not self.counts_rows)

    @property
    def counts_rows(self) -> bool:
        """Whether every row that counts is right or wrong, so that their number is binomial."""
        return self.label is not None or self.risk.row_is_wrong_or_not


@dataclass(frozen=True)
class Tally:
    """Sums over rows, at every value of caution, (V,) each.

    Attributes
    ----------
    n : ndarray
        Rows that count.
    loss : ndarray
        Their losses, which have a mean of at most the level if the promise is kept.
    bad, every : ndarray
        Their quotient is the risk.
    growth : ndarray of shape (stakes, V) or None
        Of bets; None where they are not needed.
    """

    n: FloatArray
    loss: FloatArray
    bad: FloatArray
    every: FloatArray
    growth: FloatArray | None

    def __add__(self, other: "Tally") -> "Tally":
        both = self.growth is not None and other.growth is not None
        growth = np.add(self.growth, other.growth) if both else None  # type: ignore[arg-type]
        return Tally(
            self.n + other.n,
            self.loss + other.loss,
            self.bad + other.bad,
            self.every + other.every,
            growth,
        )

    @property
    def risk(self) -> FloatArray:
        """Of these rows; 0 where nothing counts."""
        return np.asarray(self.bad / np.where(self.every > 0, self.every, 1.0))


def tally(promise: Promise, truth: Labels, path: Labels, nested: bool) -> Tally:
    """Sums over rows with the labels ``truth`` (n, m) and the answers ``path`` (V, n, m).

    For a promise on average, a loss that may rise with caution is replaced by the largest of all
    more cautious values.
    """
    n_values = len(path)
    if promise.label is not None:
        assert promise.risk.count_labels is not None
        column = slice(promise.label, promise.label + 1)
        bad, every = promise.risk.count_labels(truth[:, column], path[:, :, column])
        bad, every = bad[..., 0], every[..., 0]
        if promise.confidence is None and not nested:
            bad = np.maximum.accumulate(bad[::-1])[::-1]
        n_bad, n_every = (np.asarray(np.sum(one, axis=-1), np.float64) for one in (bad, every))
        return Tally(n_every, n_bad, n_bad, n_every, None)
    complete = (truth != MISSING).all(axis=1)
    bad, every = promise.risk.count_rows(truth[complete], path[:, complete])
    losses = shifted(bad, every, promise.level)
    if promise.confidence is None and not (nested and promise.risk.falls):
        losses = np.maximum.accumulate(losses[::-1])[::-1]
    n = np.full(n_values, float(complete.sum()))
    return Tally(
        n,
        losses.sum(axis=-1),
        np.asarray(np.sum(bad, axis=-1), np.float64),
        n if every is None else np.asarray(np.sum(every, axis=-1), np.float64),
        bets_below(losses, promise.level) if needs_bets(promise) else None,
    )


def no_rows(promise: Promise, n_values: int) -> Tally:
    """The tally of no rows, to begin with."""
    zero = np.zeros(n_values)
    bets = needs_bets(promise)
    growth = bets_below(np.empty((n_values, 0)), promise.level) if bets else None
    return Tally(zero, zero, zero, zero, growth)


def needs_bets(promise: Promise) -> bool:
    """Whether p-values come from losses that are not only 0 and 1."""
    return promise.confidence is not None and not promise.counts_rows


class Plan(NamedTuple):
    """How the values are tested; not chosen by the rows that are tested.

    Attributes
    ----------
    start : int
        The first value, from which tests go towards the bold end.
    stake : ndarray of shape (V,)
        The gambler who bets, by number.
    bets : ndarray of shape (V,)
        Whether the bet is the test, or the bound of Hoeffding and Bentkus.
    """

    start: int
    stake: NDArray[np.int64]
    bets: NDArray[np.bool_]


def plan_test(promise: Promise, pilot: Tally, answered: FloatArray, n_rows: int) -> Plan:
    """The test of ``n_rows`` rows that promises most, by what a few other rows say.

    For a ratio there is no evidence where nothing is answered, so its tests begin where there is
    nearly most. Other tests begin at the most cautious value.
    """
    n_values = len(pilot.n)
    start, stake = n_values - 1, np.full(n_values, len(STAKES) // 2)
    bets = np.ones(n_values, dtype=bool)
    if pilot.growth is not None and pilot.n[0] > 0:
        stake = pilot.growth.argmax(axis=0)
        ahead = pilot.growth.max(axis=0) * n_rows / pilot.n[0]
        bound = hoeffding_bentkus_p_value(pilot.loss / pilot.n, n_rows, promise.level)
        bets = np.exp(-ahead) <= bound
    if promise.is_ratio:
        p = p_values(promise, pilot, Plan(start, stake, bets))
        evidence = np.where((answered > 0) & (pilot.n > 0), -np.log(np.maximum(p, 1e-300)), -1.0)
        if evidence.max() >= 0:
            start = int(np.flatnonzero(evidence >= _NEARLY * evidence.max())[-1])
    return Plan(start, stake, bets)


def kept_values(promise: Promise, found: Tally, plan: Plan | None = None) -> NDArray[np.bool_]:
    """At which values the promise is kept, (V,).

    On average: conformal risk control. With confidence: learn then test; values are tested one
    after the other towards the bold end, until one fails (fixed sequence testing).
    """
    if promise.confidence is None:
        n = np.maximum(found.n, 1.0)
        kept = conformal_bound(found.loss / n, n) <= promise.level + _ROUNDING
        return np.asarray(kept & (found.n > 0))
    p = p_values(promise, found, plan)
    start = len(p) - 1 if plan is None else plan.start
    kept = np.zeros(len(p), dtype=bool)
    kept[start::-1] = np.logical_and.accumulate(p[start::-1] <= 1 - promise.confidence)
    return kept


def p_values(promise: Promise, found: Tally, plan: Plan | None = None) -> FloatArray:
    """Of "the risk is above the level" at every value, (V,)."""
    if promise.counts_rows:
        return binomial_p_value(np.rint(found.bad).astype(np.int64), found.n, promise.level)
    assert found.growth is not None
    assert plan is not None
    n = np.maximum(found.n, 1.0)
    bound = hoeffding_bentkus_p_value(found.loss / n, n, promise.level)
    growth = found.growth[plan.stake, np.arange(len(bound))]
    return np.where(plan.bets, np.exp(-np.maximum(growth, 0.0)), bound)


def nearest_to_kept(
    promise: Promise, found: Tally, completeness: FloatArray, plan: Plan | None
) -> int | None:
    """The place that answers something and has most evidence for the promise; None: there is none.

    With confidence, that of the smallest p-value; on average, the most cautious one.
    """
    answering = np.flatnonzero((completeness > 0) & (found.n > 0))
    if len(answering) == 0:
        return None
    if promise.confidence is None:
        return int(answering[-1])
    return int(answering[p_values(promise, found, plan)[answering].argmin()])


def kept_by_agreement(promise: Promise, folds: list[Tally]) -> NDArray[np.bool_]:
    """At which values the promise is kept on average by answers that all fold models share.

    ``folds`` holds the losses of each fold's rows by the model that was not fitted on them.

    References
    ----------
    K. M. Cohen, S. Park, O. Simeone and S. Shamai, Cross-validation conformal risk control,
    IEEE International Symposium on Information Theory, 2024.
    """
    mean = np.mean([one.loss / np.maximum(one.n, 1.0) for one in folds], axis=0)
    return np.asarray(conformal_bound(mean, len(folds)) <= promise.level + _ROUNDING)


def interval(promise: Promise, found: Tally, at: int) -> tuple[float, float]:
    """95 % confidence for the risk at one value, without the choice of it taken into account."""
    bad, every = float(found.bad[at]), float(found.every[at])
    if promise.counts_rows:
        return interval_of_share(bad, every)
    return interval_of_ratio(bad, every, int(found.n[at]))
