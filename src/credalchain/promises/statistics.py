"""Statistics behind promises: p-values and bounds for the mean of losses in [0, 1].

A loss is one number for each row, because labels of one row depend on each other. Rows are taken to
be exchangeable with those to come. Values of caution run from least to most cautious; each promise
is judged by its :class:`LossSums`, which can be added up chunk by chunk.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv, logsumexp, ndtr, ndtri, softmax

from credalchain._utils.array_types import FloatArray, Labels
from credalchain.promises.risks import Promise, shifted

STAKES = np.array([0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
"""Stakes of the bets, as shares of the largest possible loss."""

_MANY_ROWS = 10**8
_NEARLY_ALWAYS = 0.95  # a risk that cannot be noticeably larger
_PRICE_OF_CHOICE = 3.0  # among gamblers and where they begin, as a logarithm
_ROWS_BETWEEN = 50  # two rows at which gamblers begin
_MAX_GROWTH = 600.0  # of a logarithm, below what overflows


def conformal_bound(mean_loss: FloatArray, n: Any) -> FloatArray:
    """Bound the expected loss of a new row, for losses that caution can only lower.

    At the least cautious value for which this is at most a level, the expected loss is at most that
    level.

    References
    ----------
    A. N. Angelopoulos, S. Bates, A. Fisch, L. Lei and T. Schuster, Conformal risk control,
    ICLR 2024.
    """
    return np.asarray((n * mean_loss + 1.0) / (n + 1))


def binomial_p_value(n_wrong: Any, n: Any, level: float) -> FloatArray:
    """Compute the p-value of "the risk is above the level" for losses 0 and 1: exact.

    P(at most ``n_wrong`` of ``n``), both whole, by the incomplete beta function.
    """
    n_right = np.asarray(n - n_wrong, dtype=np.float64)
    return np.where(n_right > 0, betainc(np.maximum(n_right, 1.0), n_wrong + 1.0, 1 - level), 1.0)


def normal_p_value(sums: "LossSums", level: float) -> FloatArray:
    """Compute the p-value of "the risk is above the level", if the rows' mean loss were normal.

    Approximate. It is at least what as many single answers that are all right could show, since
    the normal distribution knows nothing of errors that have not been seen.
    """
    n = np.maximum(sums.n, 1.0)
    mean = sums.loss / n
    variance = np.maximum(sums.square / n - mean**2, 1e-300) * n / np.maximum(n - 1, 1.0)
    p = ndtr((mean - level) / np.sqrt(variance / n))
    return np.where(sums.every > 0, np.maximum(p, (1 - level) ** sums.seen), 1.0)


def hoeffding_bentkus_p_value(mean_loss: FloatArray, n: Any, level: float) -> FloatArray:
    """Compute the p-value of "the risk is above the level" for losses in [0, 1].

    References
    ----------
    S. Bates, A. Angelopoulos, L. Lei, J. Malik and M. Jordan, Distribution-free, risk-controlling
    prediction sets, Journal of the ACM 68, 2021.
    """
    below = np.minimum(mean_loss, level)
    hoeffding = np.exp(-n * _relative_entropy(below, level))
    bentkus = np.e * binomial_p_value(np.ceil(n * mean_loss - 1e-9), n, level)
    return np.asarray(np.minimum(np.minimum(hoeffding, bentkus), 1.0))


def bets_below(losses: FloatArray, level: float) -> FloatArray:
    """Compute the log wealth of bets that losses (..., n) are below the level, (stakes, ...).

    Each bet stakes a fixed share of the largest possible loss, and the log wealth adds up over
    rows. If the risk is above the level, it ends above log(1 / a) with probability at most a, at
    each stake.

    References
    ----------
    I. Waudby-Smith and A. Ramdas, Estimating means of bounded random variables by betting,
    Journal of the Royal Statistical Society B 86, 2024.
    """
    stakes = STAKES / (1 - level)
    return np.array([np.log1p(stake * (level - losses)).sum(axis=-1) for stake in stakes])


def _relative_entropy(p: FloatArray, q: float) -> FloatArray:
    """Compute the Kullback-Leibler divergence of two coins with probabilities p and q of heads."""
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(p > 0, p * np.log(p / q), 0.0)
        second = np.where(p < 1, (1 - p) * np.log((1 - p) / (1 - q)), 0.0)
    return first + second


def fewest_rows(level: float, confidence: float | None) -> int:
    """Compute how many rows a promise needs, even if no row is wrong."""
    if confidence is None:
        return int(np.ceil(1 / level - 1e-9)) - 1
    return int(np.ceil(np.log1p(-confidence) / np.log1p(-level) - 1e-9))


def rows_to_show(
    level: float, confidence: float | None, risk: float, growth: float | None = None
) -> int | None:
    """Estimate the rows that would show a promise if errors go on at this rate; None: no number.

    ``growth`` is what the best bet won per row, as a logarithm, if losses are not only 0 and 1;
    else rows are right or wrong.
    """
    if risk >= level or (growth is not None and growth <= 0):
        return None
    if confidence is None:
        return int(np.ceil((1 - level) / (level - risk) - 1e-9))
    if growth is not None:
        return int(np.ceil(-np.log1p(-confidence) / growth))
    n = fewest_rows(level, confidence)
    while n < _MANY_ROWS and binomial_p_value(np.ceil(risk * n), n, level) > 1 - confidence:
        n = int(np.ceil(1.05 * n)) + 1
    return n if n < _MANY_ROWS else None


def interval_of_share(n_bad: float, n: float, alpha: float = 0.05) -> tuple[float, float]:
    """Compute the confidence interval of a proportion (Clopper and Pearson)."""
    if n == 0:
        return 0.0, 1.0
    bad, good = round(n_bad), round(n) - round(n_bad)
    low = 0.0 if bad == 0 else float(betaincinv(bad, good + 1, alpha / 2))
    high = 1.0 if good == 0 else float(betaincinv(bad + 1, good, 1 - alpha / 2))
    return low, high


def interval_of_mean(mean: float, n: int, alpha: float = 0.05) -> tuple[float, float]:
    """Compute the confidence interval for the mean of losses in [0, 1] (Hoeffding)."""
    width = float(np.sqrt(np.log(2 / alpha) / (2 * max(n, 1))))
    return max(0.0, mean - width), min(1.0, mean + width)


def interval_of_ratio(sums: "LossSums", at: int, alpha: float = 0.05) -> tuple[float, float]:
    """Compute an approximate confidence interval for E[bad] / E[every] at a value of caution.

    By the normal distribution, with the variance over rows of bad - level * every.
    """
    n, every = float(sums.n[at]), float(sums.every[at])
    if every == 0 or n < 2:
        return 0.0, 1.0
    variance = float(sums.square[at] / n - (sums.loss[at] / n) ** 2) * n / (n - 1)
    width = -float(ndtri(alpha / 2)) * np.sqrt(max(variance, 0.0) * n) / every
    ratio = float(sums.risk[at])
    return max(0.0, ratio - width), min(1.0, ratio + width)


def evidence_against(losses: FloatArray, level: float) -> FloatArray:
    """Compute the wealth of bets that losses are above the level, from 1, after every row, (n,).

    The mean wealth of bets with several fixed stakes that begin at several rows: late beginners are
    not held back by earlier rows without errors. If every loss has a mean of at most the level
    given the rows before it, the wealth is a test supermartingale, which ever exceeds 1 / a with
    probability at most a.

    References
    ----------
    I. Waudby-Smith and A. Ramdas, Estimating means of bounded random variables by betting,
    Journal of the Royal Statistical Society B 86, 2024.
    """
    stakes = STAKES / level
    won = np.log1p(stakes[:, None] * (np.asarray(losses) - level))
    n = won.shape[1]
    evidence, not_begun = np.zeros(n), np.ones(n)
    for number, first in enumerate(range(0, n, _ROWS_BETWEEN), start=1):
        share = 1 / (number * (number + 1))  # adds up to 1 over all that ever begin
        growth = np.cumsum(won[:, first:], axis=1)
        evidence[first:] += share * np.exp(np.minimum(growth, _MAX_GROWTH)).mean(axis=0)
        not_begun[first:] -= share
    return evidence + not_begun


def rows_to_notice(level: float, confidence: float) -> int:
    """Estimate the rows it takes to notice a risk of twice the level (or halfway to 1)."""
    if level > _NEARLY_ALWAYS:
        return _MANY_ROWS
    risk = min(2 * level, (1 + level) / 2)
    growth = float(_relative_entropy(np.array(risk), level))
    return int(np.ceil((_PRICE_OF_CHOICE - np.log1p(-confidence)) / growth))


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
    square : ndarray
        Of the squares of losses.
    most : ndarray
        The most answers of a row that it depends on; not a sum.
    seen : ndarray
        Single answers, or rows, that say something.
    growth : ndarray of shape (stakes, V) or None
        Of bets; None where they are not needed.
    """

    n: FloatArray
    loss: FloatArray
    bad: FloatArray
    every: FloatArray
    square: FloatArray
    most: FloatArray
    seen: FloatArray
    growth: FloatArray | None

    def __add__(self, other: "LossSums") -> "LossSums":
        sums: dict[str, Any] = {
            name: None if mine is None else mine + theirs
            for (name, mine), theirs in zip(vars(self).items(), vars(other).values(), strict=True)
        }
        return LossSums(**{**sums, "most": np.maximum(self.most, other.most)})

    @property
    def risk(self) -> FloatArray:
        """Of these rows; 0 where nothing counts."""
        return np.asarray(self.bad / np.where(self.every > 0, self.every, 1.0))


def sum_losses(
    promise: Promise, truth: Labels, path: Labels, nested: bool, limit: FloatArray | None = None
) -> LossSums:
    """Sum over rows with the labels ``truth`` (n, m) and the answers ``path`` (V, n, m).

    For a promise on average, a loss that may rise with caution is replaced by the largest of all
    more cautious values. ``limit`` (V,) as in :meth:`Promise.losses`.
    """
    rows, bad, every = promise.losses(truth, path, limit)
    n = np.full(len(path), float(len(rows)))
    total = n if every is None else np.asarray(np.sum(every, axis=-1), np.float64)
    losses = bad
    if promise.label is None:
        losses = shifted(bad, every, promise.level)
    else:
        n = total
    if promise.confidence is None and not (nested and promise.risk.is_monotone):
        losses = np.maximum.accumulate(losses[::-1])[::-1]
    most = np.zeros(len(path))
    if promise.has_limit:
        counted = promise.risk.counted(path[..., promise.columns])
        most = counted.max(axis=-1, initial=0).astype(np.float64)
    return LossSums(
        n,
        np.asarray(np.sum(losses, axis=-1), np.float64),
        np.asarray(np.sum(bad, axis=-1), np.float64),
        total,
        np.asarray(np.sum(np.square(losses, dtype=np.float64), axis=-1)),
        most,
        total * (truth[:, promise.columns].shape[1] if promise.has_cells else 1),
        bets_below(losses, promise.level) if promise.needs_bets else None,
    )


class Plan(NamedTuple):
    """Plan of how losses are tested; not chosen by the rows that are tested.

    Attributes
    ----------
    weights : ndarray of shape (stakes, V)
        Share of the total wealth that is bet at each stake.
    bets : ndarray of shape (V,)
        True if the test is by betting, False if by the bound of Hoeffding and Bentkus.
    """

    weights: FloatArray
    bets: NDArray[np.bool_]


class EvaluatedPromise(NamedTuple):
    """Promise, with the losses of rows held out and how they are tested."""

    promise: Promise
    sums: LossSums
    plan: Plan


def plan_test(promise: Promise, pilot: LossSums, n_rows: int) -> Plan:
    """Return the test of ``n_rows`` rows that promises most, by what a few other rows say.

    Stakes are weighted by their wealth after these rows, from equal shares. The best stake alone
    would be fragile: the largest stakes win as long as no large loss has been seen.
    """
    n_values = len(pilot.n)
    if pilot.growth is None or pilot.n[0] == 0:
        equal = np.full((len(STAKES), n_values), 1 / len(STAKES))
        return Plan(equal, np.ones(n_values, dtype=bool))
    ahead = pilot.growth.max(axis=0) * n_rows / pilot.n[0]
    bound = hoeffding_bentkus_p_value(pilot.loss / pilot.n, n_rows, promise.level)
    return Plan(softmax(pilot.growth, axis=0), np.exp(-ahead) <= bound)


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
    """Return at which values all promises are kept, (V,).

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
    """Return at which values one promise passes by itself, (V,)."""
    if promise.confidence is None:
        n = np.maximum(sums.n, 1.0)
        kept = conformal_bound(sums.loss / n, n) <= promise.level + _ROUNDING
        return np.asarray(kept & (sums.n > 0))
    return p_values(promise, sums, plan) <= 1 - promise.confidence


def p_values(promise: Promise, sums: LossSums, plan: Plan) -> FloatArray:
    """Compute p-values of the null hypothesis "the risk is above the level", (V,)."""
    if promise.needs_bets and promise.asymptotic:
        return normal_p_value(sums, promise.level)
    if sums.growth is None:
        return binomial_p_value(np.rint(sums.bad), sums.n, promise.level)
    n = np.maximum(sums.n, 1.0)
    bound = hoeffding_bentkus_p_value(sums.loss / n, n, promise.level)
    growth = logsumexp(sums.growth, b=plan.weights, axis=0)
    return np.where(plan.bets, np.exp(-np.maximum(growth, 0.0)), bound)
