"""Tests of differences against their definitions, term by term."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from credalchain.studies.findings import (
    LEVEL,
    MIN_FOLDS,
    corrected_t_test,
    datasets_needed,
    friedman_test,
    holm,
    signed_rank_test,
)

p_values = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def test_the_corrected_t_test_is_the_formula_of_nadeau_and_bengio():
    rng = np.random.default_rng(0)
    for folds, repeats in ((10, 1), (5, 3), (2, 6)):
        d = rng.normal(0.1, 1, folds * repeats)
        n, mean = len(d), sum(d) / len(d)
        variance = sum((one - mean) ** 2 for one in d) / (n - 1)
        test_rows, training_rows = 1 / folds, (folds - 1) / folds
        t = mean / ((1 / n + test_rows / training_rows) * variance) ** 0.5
        expected = 2 * (1 - stats.t.cdf(abs(t), n - 1))
        assert corrected_t_test(d, folds) == pytest.approx(expected)


@given(st.integers(0, 10**6), st.floats(0.001, 1000), st.integers(2, 10))
def test_laws_of_the_corrected_t_test(seed, scale, folds):
    d = np.random.default_rng(seed).normal(0.5, 1, 20)
    p = corrected_t_test(d, folds)
    assert 0 <= p <= 1
    assert corrected_t_test(-d, folds) == pytest.approx(p)
    assert corrected_t_test(scale * d, folds) == pytest.approx(p)
    assert p >= stats.ttest_1samp(d, 0).pvalue  # what folds share makes it less certain


def test_the_corrected_t_test_does_without_what_it_cannot_know():
    assert np.isnan(corrected_t_test(np.arange(MIN_FOLDS - 1), 3))
    assert np.isnan(corrected_t_test(np.full(20, 0.3), 10))
    assert corrected_t_test(np.zeros(20), 10) == 1


def test_the_signed_rank_test_counts_all_signs():
    """Without ties: the share of all signs whose sum of ranks is as far from the middle."""
    rng = np.random.default_rng(1)
    for n in (3, 6, 8):
        d = rng.normal(0.5, 1, n)
        ranks = np.abs(d).argsort().argsort() + 1
        far = abs(ranks[d > 0].sum() - ranks.sum() / 2)
        sums = [sum(r for r, up in zip(ranks, signs, strict=True) if up)
                for signs in product((0, 1), repeat=n)]  # fmt: skip
        expected = np.mean([abs(total - ranks.sum() / 2) >= far for total in sums])
        assert signed_rank_test(d) == pytest.approx(expected)
    assert signed_rank_test(np.zeros(7)) == 1
    assert 0 < signed_rank_test([0, 0.1, 0.1, -0.1, 0.2, 0.3, 0.4]) <= 1  # ties and a zero


@pytest.mark.parametrize("n_pairs", [1, 3, 6, 10, 45])
def test_enough_data_sets_are_just_enough(n_pairs):
    n = datasets_needed(n_pairs)
    best = [signed_rank_test(np.arange(1, size + 1)) for size in (n, n - 1)]
    assert n_pairs * best[0] <= LEVEL < n_pairs * best[1]


def test_friedman_is_its_formula():
    table = np.random.default_rng(2).normal(size=(7, 4))
    n, k = table.shape
    ranks = [sorted(row, reverse=True).index(value) + 1 for row in table for value in row]
    means = np.reshape(ranks, (n, k)).mean(axis=0)
    q = 12 * n / (k * (k + 1)) * (sum(means**2) - k * (k + 1) ** 2 / 4)
    assert friedman_test(table) == pytest.approx(stats.chi2.sf(q, k - 1))
    assert np.isnan(friedman_test(table[:2]))
    assert np.isnan(friedman_test(table[:, :2]))
    assert friedman_test(np.ones((4, 3))) == 1


def slow_holm(p):
    """Holm's method as it is told: from the least, stop at the first that is not rejected."""
    order = sorted(range(len(p)), key=lambda at: p[at])
    result, largest = [0.0] * len(p), 0.0
    for place, at in enumerate(order):
        largest = max(largest, min(1.0, (len(p) - place) * p[at]))
        result[at] = largest
    return result


@given(p_values)
def test_holm(p):
    corrected = holm(p)
    np.testing.assert_allclose(corrected, slow_holm(p))
    assert (corrected >= np.array(p) - 1e-12).all()
    assert (corrected <= np.minimum(1, len(p) * np.array(p)) + 1e-12).all()


@given(p_values, st.integers(0, 12))
def test_holm_leaves_out_what_was_not_tested(p, place):
    at = min(place, len(p))
    with_gap = holm([*p[:at], np.nan, *p[at:]])
    assert np.isnan(with_gap[at])
    np.testing.assert_allclose(np.delete(with_gap, at), holm(p))
    assert len(holm([])) == 0
