"""Which values of caution keep a promise, judged by rows held out.

Values run from bold to cautious. Every promise is judged by its :class:`LossSums`, which can be
added up chunk by chunk.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.array_types import FloatArray, Labels
from credalchain.promises.risks import Promise, shifted
from credalchain.promises.statistics import (
    STAKES,
    bets_below,
    binomial_p_value,
    conformal_bound,
    hoeffding_bentkus_p_value,
)

_ROUNDING = 1e-12
_START_EVIDENCE_SHARE = 0.7  # of the largest evidence, in logarithms


@dataclass(frozen=True)
class LossSums:
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

    def __add__(self, other: "LossSums") -> "LossSums":
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        sums: list[Any] = [None if mine is None else mine + theirs for mine, theirs in pairs]
        return LossSums(*sums)

    @property
    def risk(self) -> FloatArray:
        """Of these rows; 0 where nothing counts."""
        return np.asarray(self.bad / np.where(self.every > 0, self.every, 1.0))


def sum_losses(promise: Promise, truth: Labels, path: Labels, nested: bool) -> LossSums:
    """Sums over rows with the labels ``truth`` (n, m) and the answers ``path`` (V, n, m).

    For a promise on average, a loss that may rise with caution is replaced by the largest of all
    more cautious values.
    """
    rows, bad, every = promise.losses(truth, path)
    n = np.full(len(path), float(len(rows)))
    total = n if every is None else np.asarray(np.sum(every, axis=-1), np.float64)
    losses = bad
    if promise.label is None:
        losses = shifted(bad, every, promise.level)
    else:
        n = total
    if promise.confidence is None and not (nested and promise.risk.is_monotone):
        losses = np.maximum.accumulate(losses[::-1])[::-1]
    return LossSums(
        n,
        np.asarray(np.sum(losses, axis=-1), np.float64),
        np.asarray(np.sum(bad, axis=-1), np.float64),
        total,
        bets_below(losses, promise.level) if promise.needs_bets else None,
    )


class Plan(NamedTuple):
    """How losses are tested; not chosen by the rows that are tested.

    Attributes
    ----------
    stake : ndarray of shape (V,)
        The gambler who bets, by number.
    bets : ndarray of shape (V,)
        Whether the bet is the test, or the bound of Hoeffding and Bentkus.
    """

    stake: NDArray[np.int64]
    bets: NDArray[np.bool_]


class EvaluatedPromise(NamedTuple):
    """A promise, what rows held out say of it, and how they are tested."""

    promise: Promise
    sums: LossSums
    plan: Plan


def plan_test(promise: Promise, pilot: LossSums, n_rows: int) -> Plan:
    """Return the test of ``n_rows`` rows that promises most, by what a few other rows say."""
    n_values = len(pilot.n)
    if pilot.growth is None or pilot.n[0] == 0:
        return Plan(np.full(n_values, len(STAKES) // 2), np.ones(n_values, dtype=bool))
    ahead = pilot.growth.max(axis=0) * n_rows / pilot.n[0]
    bound = hoeffding_bentkus_p_value(pilot.loss / pilot.n, n_rows, promise.level)
    return Plan(pilot.growth.argmax(axis=0), np.exp(-ahead) <= bound)


def first_tested_value(pilots: list[EvaluatedPromise], answered: FloatArray) -> int:
    """Return the index of the value at which tests of these promises begin.

    Where nothing is answered there is no evidence about a ratio, so its tests begin where a
    few other rows have nearly most evidence. Others begin at the most cautious value.
    """
    last = len(answered) - 1
    if not any(evaluated.promise.risk.is_ratio for evaluated in pilots):
        return last
    p = np.max([p_values(*evaluated) for evaluated in pilots], axis=0)
    seen = np.logical_and.reduce([answered > 0, *(evaluated.sums.n > 0 for evaluated in pilots)])
    evidence = np.where(seen, -np.log(np.maximum(p, 1e-300)), -1.0)
    if evidence.max() < 0:
        return last
    return int(np.flatnonzero(evidence >= _START_EVIDENCE_SHARE * evidence.max())[-1])


def kept_values(evaluated: list[EvaluatedPromise], start: int | None = None) -> NDArray[np.bool_]:
    """At which values all promises are kept, (V,).

    On average: conformal risk control. With confidence: learn then test; from ``start`` (by
    default the most cautious value), values are tested one after the other towards the bold end,
    until one fails (fixed sequence testing). A value passes if every promise does, each by itself:
    that all are kept is wrong only if one of them is broken, so nothing is shared out.
    """
    passed = np.asarray(np.logical_and.reduce([passes(*promise) for promise in evaluated]))
    if evaluated[0].promise.confidence is None:
        return passed
    first = len(passed) - 1 if start is None else start
    kept = np.zeros(len(passed), dtype=bool)
    kept[first::-1] = np.logical_and.accumulate(passed[first::-1])
    return kept


def passes(promise: Promise, sums: LossSums, plan: Plan) -> NDArray[np.bool_]:
    """At which values one promise passes by itself, (V,)."""
    if promise.confidence is None:
        n = np.maximum(sums.n, 1.0)
        kept = conformal_bound(sums.loss / n, n) <= promise.level + _ROUNDING
        return np.asarray(kept & (sums.n > 0))
    return p_values(promise, sums, plan) <= 1 - promise.confidence


def p_values(promise: Promise, sums: LossSums, plan: Plan) -> FloatArray:
    """P-values of the null hypothesis "the risk is above the level", (V,)."""
    if sums.growth is None:
        return binomial_p_value(np.rint(sums.bad), sums.n, promise.level)
    n = np.maximum(sums.n, 1.0)
    bound = hoeffding_bentkus_p_value(sums.loss / n, n, promise.level)
    growth = sums.growth[plan.stake, np.arange(len(bound))]
    return np.where(plan.bets, np.exp(-np.maximum(growth, 0.0)), bound)
