"""Search on chains against all label vectors, and all consistent precise chains."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.naive_bayes import GaussianNB

from credalchain import (
    CredalChainClassifier,
    CredalChainEnsemble,
    CredalForest,
    CredalWrapper,
    LocalBase,
    NaiveCredal,
    search_chain,
)

M = 3
ROW = [[0.0]]
VECTORS = list(itertools.product((0, 1), repeat=M))


class Tree(LocalBase):
    """Intervals that are given for every history, in the order of the labels; s = 0: the middle."""

    def __init__(self, intervals=()):
        self.intervals = intervals

    def fit_local(self, X, Y, order, *, rng):
        return self

    def bounds(self, X, j, history, *, s):
        pairs = []
        for row in history:
            node = int("1" + "".join(str(int(y)) for y in row[:j]), 2) - 1  # breadth first
            lower, upper = self.intervals[node]
            pairs.append((lower, upper) if s > 0 else ((lower + upper) / 2,) * 2)
        lower, upper = np.array(pairs).T
        return lower, upper


def chain_of(intervals):
    chain = CredalChainClassifier(Tree(intervals), order="given", s=1.0)
    return chain.fit([[0.0], [1.0]], [[0] * M, [1] * M])


ends = st.floats(0.05, 0.95)
trees = st.lists(st.tuples(ends, ends).map(sorted), min_size=7, max_size=7)


def precise_chance(choice, y):
    chances = []
    for depth in range(M):
        p = choice[int("1" + "".join(map(str, y[:depth])), 2) - 1]
        chances.append(p if y[depth] else 1 - p)
    return np.prod(chances)


def extreme_chances(intervals):
    """The probabilities of all vectors, for each choice of an end at each node."""
    return np.array(
        [[precise_chance(choice, y) for y in VECTORS] for choice in itertools.product(*intervals)]
    )


def found_by(intervals, method, **options):
    result = search_chain(chain_of(intervals), ROW, method, **options)
    return result, [tuple(map(int, y)) for y in result.vectors[0]]


@given(intervals=trees, epsilon=st.floats(0.01, 0.5), width=st.integers(1, 8))
def test_precise_searches_find_what_they_certify(intervals, epsilon, width):
    middle = [(low + high) / 2 for low, high in intervals]
    chance = {y: precise_chance(middle, y) for y in VECTORS}
    best = max(chance.values())
    found = {}
    for method in ("greedy", "epsilon", "beam", "best_first", "exhaustive"):
        result, (vector,) = found_by(intervals, method, epsilon=epsilon, width=width)
        found[method] = chance[vector]
        assert result.probabilities[0][0] == pytest.approx([chance[vector]] * 2)
        np.testing.assert_array_equal(result.labels[0], vector)
    assert found["best_first"] == found["exhaustive"] == pytest.approx(best)
    assert found["epsilon"] > best - epsilon - 1e-12
    if best >= epsilon + 1e-12:
        assert found["epsilon"] == pytest.approx(best)
    (widest,) = found_by(intervals, "beam", width=8)[1]
    assert chance[widest] == pytest.approx(best)
    (narrowest,) = found_by(intervals, "beam", width=1)[1]
    assert chance[narrowest] == pytest.approx(found["greedy"])


def test_best_first_explores_less_than_everything():
    sure = [[0.9, 0.9]] * 7
    assert found_by(sure, "best_first")[0].n_explored.tolist() == [3]
    assert found_by(sure, "exhaustive")[0].n_explored.tolist() == [7]


def test_greedy_misses_the_likeliest_vector():
    intervals = [(0.6, 0.6), (0.1, 0.1), (0.55, 0.55), *[(0.9, 0.9)] * 4]
    greedy, best = (found_by(intervals, method)[0] for method in ("greedy", "best_first"))
    assert greedy.vectors[0].tolist() == [[1, 1, 1]]
    assert greedy.probabilities[0][0, 0] == pytest.approx(0.6 * 0.55 * 0.9)
    assert best.vectors[0].tolist() == [[0, 0, 1]]
    assert best.probabilities[0][0, 0] == pytest.approx(0.4 * 0.9 * 0.9)


@given(intervals=trees)
def test_consistent_greedy_paths_are_those_of_precise_chains(intervals):
    expected = set()
    for choice in itertools.product(*intervals):  # an end of each interval decides either way
        path = ()
        for _ in range(M):
            p = choice[int("1" + "".join(map(str, path)), 2) - 1]
            path = (*path, int(p >= 0.5))
        expected.add(path)
    assert set(found_by(intervals, "greedy", s=1.0)[1]) == expected


@given(intervals=trees)
def test_sets_hold_every_likeliest_vector(intervals):
    chances = extreme_chances(intervals)
    upper, lower = chances.max(axis=0), chances.min(axis=0)
    dominant = set(found_by(intervals, "best_first", s=1.0)[1])
    assert dominant == {y for y, p in zip(VECTORS, upper, strict=True) if p >= lower.max() - 1e-15}
    maximal = set(found_by(intervals, "exhaustive", s=1.0)[1])
    assert maximal == {
        y
        for k, y in enumerate(VECTORS)
        if not (chances > chances[:, [k]] + 1e-15).all(axis=0).any()
    }
    assert {VECTORS[k] for k in chances.argmax(axis=1)} <= maximal <= dominant


@given(intervals=trees)
def test_paths_answer_all_that_branching_answers(intervals):
    chain = chain_of(intervals)
    branching = chain.predict_partial(ROW)[0]
    paths = search_chain(chain, ROW, "greedy", s=1.0).labels[0]
    np.testing.assert_array_equal(paths[branching != -1], branching[branching != -1])


def test_paths_answer_what_branching_and_marginalization_leave_open():
    """Branching also looks below (0, 1), which no consistent greedy path reaches."""
    intervals = [(0.4, 0.6), (0.1, 0.2), (0.4, 0.6), (0.8, 0.9), (0.1, 0.2), (0.8, 0.9), (0.8, 0.9)]
    chain = chain_of(intervals)
    assert search_chain(chain, ROW, "greedy", s=1.0).labels.tolist() == [[-1, -1, 1]]
    assert chain.predict_partial(ROW).tolist() == [[-1, -1, -1]]


BASES = [NaiveCredal(), CredalForest(), CredalWrapper(GaussianNB(), source="contamination")]


@pytest.mark.parametrize("base", BASES, ids=lambda base: type(base).__name__)
def test_greedy_is_what_the_chain_predicts(base, yeast):
    X, Y = yeast[0], yeast[1][:, :5]
    chain = CredalChainClassifier(base, random_state=3).fit(X[:200], Y[:200])
    rows = X[200:210]
    np.testing.assert_array_equal(search_chain(chain, rows, "greedy").labels, chain.predict(rows))
    mode = search_chain(chain, rows)
    exhaustive = search_chain(chain, rows, "exhaustive")
    for one, other in zip(mode.probabilities, exhaustive.probabilities, strict=True):
        np.testing.assert_allclose(one, other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "depth"}, "method must be one of.*'depth'"),
        ({"method": "beam", "s": 1.0}, "method 'beam' needs precise probabilities.*s = 1"),
        ({"epsilon": 2}, "epsilon must be a number from 0 to 1, got 2"),
        ({"epsilon": "2"}, "epsilon must be a number from 0 to 1, got '2'"),
        ({"width": 0}, "width must be a whole number.*got 0"),
    ],
)
def test_parameters_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        search_chain(chain_of([[0.4, 0.6]] * 7), ROW, **options)


def test_too_many_labels_are_refused():
    chain = CredalChainClassifier().fit([[0], [1]], np.eye(16)[:2])
    with pytest.raises(ValueError, match="at most 15 labels with s = 0, got 16"):
        search_chain(chain, [[0]], "exhaustive")


def test_an_order_for_each_row_has_no_tree():
    chain = CredalChainClassifier(order="dynamic").fit([[0], [1]], [[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="one order of its labels"):
        search_chain(chain, [[0]])


@pytest.mark.parametrize("threshold", [0.2, 0.8, [0.2, 0.5, 0.8]])
def test_greedy_takes_the_thresholds_of_the_chain(threshold, yeast):
    X, Y = yeast[0][:200], yeast[1][:200, :3]
    chain = CredalChainClassifier(order=[2, 0, 1], threshold=threshold, s=1.0).fit(X, Y)
    np.testing.assert_array_equal(search_chain(chain, X, "greedy").labels, chain.predict(X))
    paths, answers = search_chain(chain, X, "greedy", s=1.0).labels, chain.predict_partial(X)
    is_answered = answers != -1
    assert 0 < is_answered.mean() < 1
    np.testing.assert_array_equal(paths[is_answered], answers[is_answered])


@pytest.mark.parametrize("method", ["best_first", "exhaustive", "epsilon", "beam", "greedy"])
def test_labels_that_were_never_observed_stay_open(method):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (200, 1)).astype(str)
    y = rng.random((200, 2)) < [0.6, 0.5]
    y[:, 1] |= ~y[:, 0]
    with pytest.warns(UserWarning, match="never"):
        chain = CredalChainClassifier(order="given").fit(X, np.c_[np.full(200, np.nan), y])
    alone = CredalChainClassifier(order="given").fit(X, y)
    found, expected = (search_chain(c, X[:3], method, epsilon=0.01) for c in (chain, alone))
    assert (found.labels[:, 0] == -1).all()
    np.testing.assert_array_equal(found.labels[:, 1:], expected.labels)
    np.testing.assert_allclose(found.probabilities, expected.probabilities)
    assert [len(vectors) for vectors in found.vectors] == [1, 1, 1]


def test_an_ensemble_has_no_tree():
    ensemble = CredalChainEnsemble(random_state=0).fit([["a"], ["b"]] * 5, [[0, 1], [1, 0]] * 5)
    with pytest.raises(ValueError, match="one order of its labels for all rows, got CredalChainE"):
        search_chain(ensemble, [["a"]])
