"""Tests of whether a difference between methods could be chance, from scipy where it has them."""

import warnings

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from credalchain._utils.array_types import FloatArray

LEVEL = 0.05  # a difference is shown if its p-value, corrected, is at most this
MIN_FOLDS = 10  # results of folds, below which their variance is hardly known


def signed_rank_test(differences: ArrayLike) -> float:
    """Two-sided p-value of Wilcoxon's signed-rank test: one difference per data set.

    Examples
    --------
    >>> signed_rank_test([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])  # the least there is for six
    0.03125
    """
    values = np.asarray(differences, dtype=float)
    values = values[values != 0]
    if not len(values):
        return 1.0
    with warnings.catch_warnings():  # older versions warn of few values where there are ties
        warnings.simplefilter("ignore")
        return float(stats.wilcoxon(values).pvalue)


def datasets_needed(n_pairs: int) -> int:
    """Data sets with which the signed-rank test of one of so many pairs can reach the level at all.

    Its p-value is at least 2 / 2^n, and Holm's correction multiplies the least one by the number
    of pairs.

    Examples
    --------
    >>> datasets_needed(1), datasets_needed(10)
    (6, 9)
    """
    n = 1
    while n_pairs * 2.0 ** (1 - n) > LEVEL:
        n += 1
    return n


def corrected_t_test(differences: ArrayLike, n_folds: int) -> float:
    """Two-sided p-value of the corrected resampled t-test: one difference per fold.

    Training sets of different folds share rows, so folds vary less than independent samples
    would; the correction adds the ratio of test to training rows, 1 / (n_folds - 1), to 1 / n. NaN
    with fewer than ten differences, and if all are equal but not 0.

    References
    ----------
    C. Nadeau and Y. Bengio, Inference for the Generalization Error, Machine Learning 52, 2003.
    """
    values = np.asarray(differences, dtype=float)
    n = len(values)
    if n < MIN_FOLDS:
        return float("nan")
    variance = float(values.var(ddof=1))
    if variance <= np.finfo(float).eps ** 2:  # equal but for rounding
        return 1.0 if np.allclose(values, 0) else float("nan")
    t = values.mean() / np.sqrt((1 / n + 1 / (n_folds - 1)) * variance)
    return float(2 * stats.t.sf(abs(t), n - 1))


def friedman_test(values: ArrayLike) -> float:
    """P-value of Friedman's test: a row per data set, a column per method.

    NaN with fewer than three of either, and 1 where all methods are equal everywhere.
    """
    table = np.asarray(values, dtype=float)
    if min(table.shape) < 3:
        return float("nan")
    if (table == table[:, :1]).all():
        return 1.0
    return float(stats.friedmanchisquare(*table.T).pvalue)


def average_ranks(values: ArrayLike) -> FloatArray:
    """The mean rank of each column over the rows; 1 is the largest value, ties share theirs."""
    table = np.asarray(values, dtype=float)
    ranks: FloatArray = stats.rankdata(-table, axis=1).mean(axis=0)
    return ranks


def holm(p_values: ArrayLike) -> FloatArray:
    """P-values corrected by Holm's method, so that any of them is wrong with the level at most.

    NaN stays NaN and counts for nothing.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")  # NaN comes last
    n = int((~np.isnan(p)).sum())
    factors = np.maximum(n - np.arange(len(p)), 1)
    result = np.full(len(p), np.nan)
    result[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0)
    return result
