"""The laws of the method, each under its conditions, and what fails without them."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.multioutput import ClassifierChain
from sklearn.naive_bayes import CategoricalNB

from credalchain import ABSTAIN, CredalChainClassifier, NaiveCredal
from credalchain.chains.naive.counts import as_codes, count
from credalchain.chains.strategies import branching, marginalization
from credalchain.metrics import completeness, set_accuracy
from problems import cases, infer_all, random_case
from profiles import examples

S_GRID = [0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 16.0]


def grid(case):
    """All s, but not 0 where "no data" is uniform there and not contained in what s > 0 gives.

    That happens with the class denominator if a pair of labels was never observed together.
    """
    return S_GRID[0 if case.estimator().model_.nested else 1 :]


fixed_order = {"dynamic": False, "with_known": False}


def contains(cautious, bold):
    """All the stars of ``bold``, and agreement elsewhere."""
    return bool(np.all((cautious == ABSTAIN) | (cautious == bold)))


def fixed_history_interval(case, s):
    """Intervals of every label given the same complete history: all other labels known."""
    rng = np.random.default_rng(case.codes.sum() + 10)
    history = rng.integers(0, 2, size=case.known.shape).astype(np.int8)
    return case.estimator(s=s).infer(case.rows, known=history).log_odds


# -- law 1 ---------------------------------------------------------------------------------


@given(cases())
def test_lower_is_at_most_upper(case):
    log_odds = case.estimator().infer(case.rows, known=case.known).log_odds
    assert np.all(log_odds[..., 0] <= log_odds[..., 1])


@examples(200)
@given(cases(dynamic=False))
def test_bounds_meet_at_s_zero_for_a_fixed_history(case):
    case.base["missing_features"] = "ignore"
    log_odds = fixed_history_interval(case, 0.0)
    observed = (case.Y != -1).any(axis=0)
    np.testing.assert_array_equal(log_odds[:, observed, 0], log_odds[:, observed, 1])


@examples(200)
@given(cases(dynamic=False))
def test_intervals_never_get_narrower_as_s_grows_for_a_fixed_history(case):
    wide = [fixed_history_interval(case, s) for s in grid(case)]
    for narrow, wider in pairwise(wide):
        assert np.all(wider[..., 0] <= narrow[..., 0])
        assert np.all(wider[..., 1] >= narrow[..., 1])


@examples(200)
@given(cases(**fixed_order))
def test_branching_never_gets_narrower_as_s_grows_along_the_chain(case):
    chain = case.estimator(strategy="branching")
    path = [chain.infer(case.rows, s=s).log_odds for s in grid(case)]
    for narrow, wider in pairwise(path):
        assert np.all(wider[..., 0] <= narrow[..., 0])
        assert np.all(wider[..., 1] >= narrow[..., 1])


# -- law 2 ---------------------------------------------------------------------------------


@examples(400)
@given(cases(**fixed_order))
def test_branching_contains_marginalization(case):
    case.base["denominator"] = "pairwise"
    both = infer_all(case.estimator(), case.rows, strategy=("branching", "marginalization"))
    assert contains(both[0].labels, both[1].labels)


@examples(200)
@given(cases(**fixed_order))
def test_branching_contains_marginalization_with_class_denominator_and_no_missing(case):
    case.base["denominator"] = "class"
    case.Y = np.abs(case.Y)
    both = infer_all(case.estimator(), case.rows, strategy=("branching", "marginalization"))
    assert contains(both[0].labels, both[1].labels)


@pytest.mark.parametrize("prior", ["laplace", "paper", "credal"])
def test_class_denominator_with_missing_labels_can_answer_oppositely(prior):
    Y = [[0, 1]] * 5 + [[1, 1]] * 5 + [[np.nan, 0]] * 20
    X = np.zeros((30, 1), dtype=int)
    base = NaiveCredal(epsilon=0, denominator="class", discretizer=None, prior=prior)
    chain = CredalChainClassifier(base, s=1.0, order="given").fit(X, Y)
    ib, mar = infer_all(chain, X[:1], strategy=("branching", "marginalization"))
    assert ib.labels.tolist() == [[-1, 1]]
    assert mar.labels.tolist() == [[-1, 0]]


# -- law 3 ---------------------------------------------------------------------------------


@examples(300)
@given(cases(**fixed_order))
def test_branching_is_nested_in_s(case):
    chain = case.estimator(strategy="branching")
    assert chain.nested_ == chain.model_.nested
    path = chain.predict_path(case.rows, grid(case))
    for bold, cautious in pairwise(path):
        assert contains(cautious, bold)


def first_unnested(make):
    """Search for a case in which a larger s answers what a smaller one did not."""
    rng = np.random.default_rng(5)
    for _ in range(3000):
        case = random_case(rng, n_rows=4, with_known=False, dynamic=False)
        case.base["epsilon"] = 0.001
        chain = make(case)
        path = chain.predict_path(case.rows, S_GRID)
        if not all(contains(c, b) for b, c in pairwise(path)):
            return chain
    return None


def test_marginalization_is_not_nested():
    chain = first_unnested(lambda case: case.estimator(strategy="marginalization"))
    assert chain is not None
    assert not chain.nested_


def test_dynamic_order_is_not_nested():
    chain = first_unnested(lambda case: case.estimator(strategy="branching", order="dynamic"))
    assert chain is not None
    assert not chain.nested_


def test_class_denominator_is_not_nested_from_s_zero_where_a_pair_was_never_observed():
    rng = np.random.default_rng(1)
    for _ in range(3000):
        case = random_case(rng, n_rows=4, with_known=False, dynamic=False)
        case.base.update(denominator="class", epsilon=0.001)
        chain = case.estimator(strategy="branching")
        bold, cautious = chain.predict_path(case.rows, [0.0, 0.25])
        if not contains(cautious, bold):
            assert not chain.nested_
            case.base["denominator"] = "pairwise"
            assert case.estimator(strategy="branching").nested_
            return
    pytest.fail("no counterexample found")


def test_baseline_without_epsilon_is_not_nested_with_the_rest():
    """The published setting: epsilon 0 at s = 0 and 0.001 above."""
    rng = np.random.default_rng(11)
    for _ in range(3000):
        case = random_case(rng, n_rows=4, with_known=False, dynamic=False)
        case.base["epsilon"] = 0.0
        bold = case.estimator(strategy="branching", s=0.0).predict_partial(case.rows)
        case.base["epsilon"] = 0.001
        cautious = case.estimator(strategy="branching", s=0.25).predict_partial(case.rows)
        if not contains(cautious, bold):
            return
    pytest.fail("no counterexample found")


# -- law 4 is the literal twin (test_against_oracle) --------------------------------------
# -- law 5 ---------------------------------------------------------------------------------


def same_bits(left, right):
    np.testing.assert_array_equal(left.labels, right.labels)
    np.testing.assert_array_equal(left.log_odds, right.log_odds)


@examples(200)
@given(cases(dynamic=False), st.randoms(use_true_random=False))
def test_row_feature_and_category_order_never_matter(case, random):
    before = case.estimator().infer(case.rows, known=case.known)
    rows = random.sample(range(len(case.codes)), len(case.codes))
    features = random.sample(range(len(case.K)), len(case.K))
    renumber = [np.array(random.sample(range(k), k)) for k in case.K.tolist()]

    def renumbered(codes):
        out = codes.copy()
        for i, k in enumerate(case.K):
            inside = (codes[:, i] >= 0) & (codes[:, i] < k)
            out[inside, i] = renumber[i][codes[inside, i]]
        return out[:, features]

    shuffled = dataclasses.replace(
        case,
        codes=renumbered(case.codes)[rows],
        Y=case.Y[rows],
        K=case.K[features],
        rows=renumbered(case.rows),
    )
    same_bits(before, shuffled.estimator().infer(shuffled.rows, known=case.known))


@examples(200)
@given(cases(dynamic=False), st.randoms(use_true_random=False))
def test_permuting_labels_and_order_permutes_the_answer(case, random):
    columns = random.sample(range(case.Y.shape[1]), case.Y.shape[1])
    position = {label: at for at, label in enumerate(columns)}
    moved = dataclasses.replace(
        case,
        Y=case.Y[:, columns],
        order=[position[j] for j in case.order],
        thresholds=[case.thresholds[j] for j in columns],
        known=case.known[:, columns],
    )
    before = case.estimator().infer(case.rows, known=case.known)
    after = moved.estimator().infer(moved.rows, known=moved.known)
    np.testing.assert_array_equal(before.labels[:, columns], after.labels)
    np.testing.assert_array_equal(before.log_odds[:, columns], after.log_odds)


# -- law 6 ---------------------------------------------------------------------------------


@given(cases(), st.integers(0, 8))
def test_counts_add_and_subtract(case, cut):
    def counts(rows):
        codes = as_codes(case.codes[rows], case.K)
        return count(codes, case.Y[rows], case.K)

    head, tail, everything = counts(slice(cut)), counts(slice(cut, None)), case.counts()
    assert head + tail == everything
    assert everything - head == tail


# -- law 7 ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_precise_chain_is_the_classifier_chain_over_naive_bayes(seed):
    rng = np.random.default_rng(seed)
    n, p, m = 60, 4, 3
    X = rng.integers(0, 3, size=(n, p))
    Y = (rng.random((n, m)) < 0.3 + 0.4 * (X[:, :m] == 1)).astype(int)
    alpha = 1e-10  # scikit-learn's smoothing, as good as none
    chain = ClassifierChain(CategoricalNB(alpha=alpha, min_categories=3), order=[2, 0, 1])
    expected = chain.fit(X, Y)
    base = NaiveCredal(epsilon=0, prior="paper", discretizer=None)
    ours = CredalChainClassifier(base, s=0, order=[2, 0, 1]).fit(X, Y)
    proba = ours.predict_proba(X)
    np.testing.assert_allclose(proba, expected.predict_proba(X), atol=1e-6)
    no_ties = np.abs(proba - 0.5).min(axis=1) > 1e-6
    np.testing.assert_array_equal(ours.predict(X)[no_ties], expected.predict(X)[no_ties])


# -- law 8 ---------------------------------------------------------------------------------


@given(cases(**fixed_order), st.randoms(use_true_random=False))
def test_starring_an_answer_never_lowers_set_accuracy_nor_incompleteness(case, random):
    prediction = case.estimator().predict_partial(case.rows)
    truth = np.array([[random.randint(0, 1) for _ in row] for row in prediction])
    starred = prediction.copy()
    starred[random.randrange(len(starred)), random.randrange(starred.shape[1])] = ABSTAIN
    assert set_accuracy(truth, starred) >= set_accuracy(truth, prediction)
    assert completeness(truth, starred) <= completeness(truth, prediction)


@given(cases(**fixed_order), st.randoms(use_true_random=False))
def test_branching_trades_completeness_for_set_accuracy_along_s(case, random):
    path = case.estimator(strategy="branching").predict_path(case.rows, grid(case))
    truth = np.array([[random.randint(0, 1) for _ in row] for row in path[0]])
    assert np.all(np.diff([set_accuracy(truth, y) for y in path]) >= 0)
    assert np.all(np.diff([completeness(truth, y) for y in path]) <= 0)


def test_marginalization_can_lose_set_accuracy_along_s():
    """Without nesting, a larger s can answer what a smaller one left open, and be wrong."""
    rng = np.random.default_rng(5)
    for _ in range(3000):
        case = random_case(rng, n_rows=4, with_known=False, dynamic=False)
        case.base["epsilon"] = 0.001
        path = case.estimator(strategy="marginalization").predict_path(case.rows, S_GRID)
        truth = 1 - np.abs(path[-1])
        if np.any(np.diff([set_accuracy(truth, y) for y in path]) < 0):
            return
    pytest.fail("no counterexample found")


def test_the_built_in_strategies_say_what_the_laws_say():
    assert branching.nested
    assert not marginalization.nested
