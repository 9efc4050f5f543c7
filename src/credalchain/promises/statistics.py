"""Statistics behind promises: p-values and bounds for the mean of losses in [0, 1].

A loss is one number for each row, because labels of one row depend on each other. Rows are taken
to be exchangeable with those to come.
"""

from typing import Any

import numpy as np
from scipy.special import betainc, betaincinv

from credalchain._utils.array_types import FloatArray

STAKES = np.array([0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
"""Stakes of the gamblers, as shares of what they can lose at most."""

_MANY_ROWS = 10**8
_NEARLY_ALWAYS = 0.95  # a risk that cannot be noticeably larger
_PRICE_OF_CHOICE = 3.0  # among gamblers and where they begin, as a logarithm
_ROWS_BETWEEN = 50  # two rows at which gamblers begin
_MAX_GROWTH = 600.0  # of a logarithm, below what overflows


def conformal_bound(mean_loss: FloatArray, n: Any) -> FloatArray:
    """What the expected loss of a new row is at most, for losses that caution can only lower.

    If the boldest value is taken for which this is at most a level, the expected loss is at most
    that level.

    References
    ----------
    A. N. Angelopoulos, S. Bates, A. Fisch, L. Lei and T. Schuster, Conformal risk control,
    ICLR 2024.
    """
    return np.asarray((n * mean_loss + 1.0) / (n + 1))


def binomial_p_value(n_wrong: Any, n: Any, level: float) -> FloatArray:
    """P-value of "the risk is above the level" for losses 0 and 1: exact.

    P(at most ``n_wrong`` of ``n``), both whole, by the incomplete beta function.
    """
    n_right = np.asarray(n - n_wrong, dtype=np.float64)
    return np.where(n_right > 0, betainc(np.maximum(n_right, 1.0), n_wrong + 1.0, 1 - level), 1.0)


def hoeffding_bentkus_p_value(mean_loss: FloatArray, n: Any, level: float) -> FloatArray:
    """P-value of "the risk is above the level" for losses in [0, 1].

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
    """Logarithm of what bets on losses (..., n) below the level make of 1, (stakes, ...).

    Each gambler stakes a fixed share of what can be lost at most. It adds up over rows. If the
    risk is above the level, it ends above log(1 / a) with probability a at most, for each of them.

    References
    ----------
    I. Waudby-Smith and A. Ramdas, Estimating means of bounded random variables by betting,
    Journal of the Royal Statistical Society B 86, 2024.
    """
    stakes = STAKES / (1 - level)
    return np.array([np.log1p(stake * (level - losses)).sum(axis=-1) for stake in stakes])


def _relative_entropy(p: FloatArray, q: float) -> FloatArray:
    """Kullback-Leibler divergence of two coins that fall on heads with probability p and q."""
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(p > 0, p * np.log(p / q), 0.0)
        second = np.where(p < 1, (1 - p) * np.log((1 - p) / (1 - q)), 0.0)
    return first + second


def fewest_rows(level: float, confidence: float | None) -> int:
    """How many rows a promise needs, even if no row is wrong."""
    if confidence is None:
        return int(np.ceil(1 / level - 1e-9)) - 1
    return int(np.ceil(np.log1p(-confidence) / np.log1p(-level) - 1e-9))


def rows_to_show(
    level: float, confidence: float | None, risk: float, growth: float | None = None
) -> int | None:
    """About how many rows would show a promise if errors go on at this rate; None: no number.

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
    """Confidence interval for a proportion (Clopper and Pearson)."""
    if n == 0:
        return 0.0, 1.0
    bad, good = round(n_bad), round(n) - round(n_bad)
    low = 0.0 if bad == 0 else float(betaincinv(bad, good + 1, alpha / 2))
    high = 1.0 if good == 0 else float(betaincinv(bad + 1, good, 1 - alpha / 2))
    return low, high


def interval_of_ratio(bad: float, every: float, n: int, alpha: float = 0.05) -> tuple[float, float]:
    """Confidence interval for E[bad] / E[every], from sums over ``n`` rows.

    Hoeffding's inequality for bad - ratio * every, whose range has length 1.
    """
    if every == 0:
        return 0.0, 1.0
    width = n * float(np.sqrt(np.log(2 / alpha) / (2 * n)))
    return max(0.0, (bad - width) / every), min(1.0, (bad + width) / every)


def evidence_against(losses: FloatArray, level: float) -> FloatArray:
    """What bets on losses above the level would have made of 1, after every row, (n,).

    The mean of several gamblers who each bet a fixed share, and who begin at several rows: what
    begins late is not weighed down by a good past. If every loss has a mean of at most the level,
    given the rows before it, this ever exceeds 1 / a with probability a at most.

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
    """About how many rows it takes to notice a risk of twice the level (or halfway to 1)."""
    if level > _NEARLY_ALWAYS:
        return _MANY_ROWS
    risk = min(2 * level, (1 + level) / 2)
    growth = float(_relative_entropy(np.array(risk), level))
    return int(np.ceil((_PRICE_OF_CHOICE - np.log1p(-confidence)) / growth))
