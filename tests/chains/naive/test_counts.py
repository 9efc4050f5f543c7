"""Counts: public, addable, subtractable, checked."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from scipy import sparse

from credalchain import ChainCounts, CredalChainClassifier, Discretizer, NaiveCredal
from problems import cases


@given(cases())
def test_counts_equal_their_definition(case):
    counts = case.counts()
    Y, X = case.Y, case.codes
    for j in range(Y.shape[1]):
        for a in (0, 1):
            rows = Y[:, j] == a
            assert counts.label[j, a] == rows.sum()
            for i, (start, k) in enumerate(zip(counts.offsets(), case.K, strict=True)):
                for v in range(k):
                    assert counts.feature[start + v, j, a] == (rows & (X[:, i] == v)).sum()
            for k in range(Y.shape[1]):
                for b in (0, 1):
                    assert counts.pair[k, b, j, a] == (rows & (Y[:, k] == b)).sum()


def chain(**params):
    return CredalChainClassifier(NaiveCredal(discretizer=None), order="given", **params)


@given(cases())
def test_partial_fit_equals_fit_on_the_stacked_rows(case):
    """Bare codes: later rows may bring categories that the first did not have."""
    stacked = (
        chain().fit(case.codes, np.where(case.Y == -1, np.nan, case.Y))
        if ((case.Y != -1).any(axis=0).all())
        else None
    )
    if stacked is None:
        return
    parts = chain()
    for row in range(len(case.codes)):
        y = np.where(case.Y[row : row + 1] == -1, np.nan, case.Y[row : row + 1])
        parts.partial_fit(case.codes[row : row + 1], y)
    assert parts.model_.counts == stacked.model_.counts
    np.testing.assert_array_equal(
        parts.infer(case.codes).log_odds, stacked.infer(case.codes).log_odds
    )


def test_partial_fit_keeps_the_bins_of_its_first_call():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 3)), rng.integers(0, 2, size=(60, 2))
    parts = CredalChainClassifier(random_state=3)
    parts.partial_fit(X[:30], Y[:30]).partial_fit(X[30:], Y[30:])
    frozen = Discretizer().fit(X[:30])
    np.testing.assert_array_equal(parts.model_.discretizer.n_categories_, frozen.n_categories_)
    assert parts.model_.counts.n_rows == 60
    assert parts.order_.tolist() == CredalChainClassifier(random_state=3).fit(X, Y).order_.tolist()
    one_more = parts.partial_fit(X[:1], [[1, -1]])  # no zero in sight, and that is fine
    assert one_more.model_.counts.n_rows == 61
    with pytest.raises(ValueError, match="Y must have 2 labels"):
        parts.partial_fit(X[:1], [[1, 0, 1]])


def test_fit_starts_anew_after_partial_fit():
    X, Y = np.array([[0], [1]]), np.array([[0], [1]])
    model = chain().partial_fit(X, Y).partial_fit(X, Y)
    assert model.fit(X, Y).model_.counts.n_rows == 2


def test_from_counts_equals_fit():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 3)), rng.integers(0, 2, size=(60, 2))
    model = CredalChainClassifier(random_state=1).fit(X, Y)
    again = CredalChainClassifier.from_counts(
        model.model_.counts,
        discretizer=model.model_.discretizer,
        label_names=["rock", "pop"],
        random_state=1,
    )
    np.testing.assert_array_equal(model.infer(X).log_odds, again.infer(X).log_odds)
    assert again.label_names_.tolist() == ["rock", "pop"]
    with pytest.raises(ValueError, match="label_names must have 2 names, got 1"):
        CredalChainClassifier.from_counts(model.model_.counts, label_names=["rock"])
    with pytest.raises(TypeError, match="counts must be ChainCounts, got dict"):
        CredalChainClassifier.from_counts({})
    with pytest.raises(ValueError, match="discretizer gives"):
        CredalChainClassifier.from_counts(
            model.model_.counts, discretizer=Discretizer(n_bins=2).fit(X)
        )


def test_counts_of_different_shape_do_not_add():
    a = chain().fit([[0], [1]], [[0], [1]]).model_.counts
    b = chain().fit([[0], [2]], [[0], [1]]).model_.counts
    with pytest.raises(ValueError, match=r"n_categories \[3\].*n_categories \[2\].*widened"):
        a + b
    assert (a.widened(b.n_categories) + b).n_rows == 4
    two = chain().fit([[0], [1]], [[0, 1], [1, 0]]).model_.counts
    with pytest.raises(ValueError, match="counts of 2 labels cannot be subtracted from"):
        a - two
    with pytest.raises(ValueError, match=r"n_rows must be a whole number, at least 0 and .*got -2"):
        a - (a + a)
    with pytest.raises(TypeError):
        a + 1
    assert a != 1
    assert sum([a, a]) == a + a
    assert a != b


def good():
    return {
        "n_rows": 3,
        "n_categories": np.array([2]),
        "label": np.array([[1, 2], [2, 1]]),
        "feature": np.array([[[1, 1], [1, 1]], [[0, 1], [1, 0]]]),
        "pair": np.array(
            [[[[1, 0], [1, 0]], [[0, 1], [1, 0]]], [[[1, 1], [2, 0]], [[0, 0], [0, 1]]]]
        ),
    }


def consistent():
    codes = np.array([[0], [1], [0]])
    return chain().fit(codes, [[0, 0], [1, 0], [1, 1]]).model_.counts


def broken(name, change):
    counts = consistent()
    array = getattr(counts, name).copy()
    change(array)
    return {**{f.name: getattr(counts, f.name) for f in dataclasses.fields(counts)}, name: array}


CORRUPTED = {
    "negative": (lambda: broken("label", lambda a: a.__setitem__((0, 0), -1)), "negative count -1"),
    "more than rows": (lambda: broken("feature", lambda a: a.__setitem__((0, 0, 0), 9)), "holds 9"),
    "too many of a label": (
        lambda: broken("label", lambda a: a.__setitem__((0, slice(None)), 3)),
        "more values than rows",
    ),
    "features beyond labels": (
        lambda: broken("feature", lambda a: a.__setitem__((slice(None), 0, 0), 1)),
        "more values than its label",
    ),
    "asymmetric": (lambda: broken("pair", lambda a: a.__setitem__((0, 0, 1, 0), 0)), "symmetric"),
    "pair beyond label": (
        lambda: broken(
            "pair",
            lambda a: (
                [a.__setitem__((0, b, 1, 1), 2) for b in (0, 1)]
                + [a.__setitem__((1, 1, 0, b), 2) for b in (0, 1)]
            ),
        ),
        "more values than its label",
    ),
    "diagonal": (lambda: broken("pair", lambda a: a.__setitem__((0, 0, 0, 0), 0)), "diagonal"),
    "float": (lambda: {**good(), "label": np.ones((2, 2))}, "integer array, got float64"),
    "list": (lambda: {**good(), "label": [[1, 2]]}, "integer array, got list"),
    "shape of label": (lambda: {**good(), "label": np.ones((2, 3), int)}, r"\(m, 2\)"),
    "shape of feature": (
        lambda: {**good(), "feature": np.ones((1, 2, 2), int)},
        "feature must have",
    ),
    "shape of pair": (lambda: {**good(), "pair": np.ones((2, 2, 2), int)}, "pair must have shape"),
    "no category": (lambda: {**good(), "n_categories": np.array([0])}, "at least 1"),
    "rows": (lambda: {**good(), "n_rows": 2.5}, "n_rows must be a whole number, .* got 2.5"),
    "negative rows": (
        lambda: {**good(), "n_rows": -1},
        "n_rows must be a whole number, at least 0 and",
    ),
}


@pytest.mark.parametrize(("make", "message"), CORRUPTED.values(), ids=CORRUPTED.keys())
def test_corrupted_counts_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        ChainCounts(**make())


def test_counts_changed_behind_our_back_are_refused():
    counts = consistent()
    counts.label[0, 0] = 10**6
    with pytest.raises(ValueError, match=r"counts\.label holds 1000000"):
        CredalChainClassifier.from_counts(counts)


@pytest.mark.parametrize("thin", [False, True], ids=["dense", "sparse"])
def test_counting_parts_and_adding_them_up(thin):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (90, 4)).astype(float)
    X = sparse.csr_array(X) if thin else X
    Y = rng.integers(-1, 2, (90, 3))
    bins = Discretizer(n_bins=3).fit(X)
    whole = CredalChainClassifier(NaiveCredal(discretizer=Discretizer(n_bins=3))).fit(X, Y)
    parts = [ChainCounts.from_rows(X[i : i + 30], Y[i : i + 30], bins) for i in (0, 30, 60)]
    assert sum(parts) == whole.model_.counts == ChainCounts.from_rows(X, Y, bins)


def test_rows_that_do_not_fit_each_other_are_refused():
    X, Y = np.zeros((5, 2), int), np.zeros((4, 3), int)
    with pytest.raises(ValueError, match=r"the same rows, got shapes \(5, 2\) and \(4, 3\)"):
        ChainCounts.from_rows(X, Y)
    with pytest.raises(ValueError, match="Y must hold 0, 1 or missing"):
        ChainCounts.from_rows(X, np.full((5, 3), 5))
