"""The general form: worked examples exactly, and everything against enumeration."""

from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
from credalchain import (
    CredalChainClassifier,
    Exactness,
    LocalBase,
    LocalChainModel,
    NaiveCredal,
    branching,
    tree_marginalization,
)
from credalchain.chains.local import LocalWalk
from credalchain.chains.tree import OpenTree, branching_bounds, tree_marginal_bounds
from problems import cases, infer_all
from profiles import examples

F = Fraction
TREE = "tree-marginalization"


class Table:
    """Local bounds from a function of (row, label, history), as exact fractions."""

    def __init__(self, function):
        self.function = function

    def bounds(self, X, j, history, *, s):
        pairs = [
            self.function(x, j, tuple(h)) for x, h in zip(X.tolist(), history.tolist(), strict=True)
        ]
        lower, upper = (
            np.array([F(str(end)) for end in ends], dtype=object)
            for ends in zip(*pairs, strict=True)
        )
        return lower, upper


def chain_over(function, m, **params):
    model = LocalChainModel(Table(function), m)
    return CredalChainClassifier.from_model(model, n_features=1, order="given", **params)


def exact_bounds(function, m, history, j, strategy):
    """Bounds of label j after the given history (None = star), as fractions."""
    walk = LocalWalk(Table(function), np.zeros((1, 1)), m, 1.0, strategy)
    for k, y in enumerate(history):
        walk.set_label(k, np.array([-1 if y is None else y], dtype=np.int8), np.array([0]))
    lower, upper = walk.probabilities(j, np.array([0]))
    return lower[0], upper[0]


# -- worked examples -----------------------------------------------------------------------


def test_example_1_answers_where_the_joint_bounds_do():
    def local(x, j, history):
        if j == 0:
            return (0, 0) if x == [0] else (1, 1)
        return ("0.3", "0.6") if x == [0] else ("0.2", "0.4")

    answers = chain_over(local, 2).predict_partial([[0], [1]])
    assert answers.tolist() == [[0, -1], [1, 0]]


def test_example_2_the_order_decides_in_a_precise_chain():
    def forwards(x, j, history):
        p = "0.6" if j == 0 else {1: "0.6", 0: "0.1"}[history[0]]
        return p, p

    def backwards(x, j, history):
        p = "0.4" if j == 1 else {1: "0.9", 0: "0.4"}[history[1]]
        return p, p

    assert chain_over(forwards, 2).predict([[0]]).tolist() == [[1, 1]]
    model = LocalChainModel(Table(backwards), 2)
    other = CredalChainClassifier.from_model(model, n_features=1, order=[1, 0])
    assert other.predict([[0]]).tolist() == [[0, 0]]


def example_3(x, j, history):
    if j == 0:
        return "0.45", "0.70"
    p = {1: "0.6", 0: "0.1"}[history[0]]
    return p, p


def test_example_3_branching_and_tree_marginalization():
    ib, mar = infer_all(chain_over(example_3, 2), [[0]], strategy=("branching", TREE))
    assert ib.labels.tolist() == [[-1, -1]]
    assert mar.labels.tolist() == [[-1, 0]]
    assert exact_bounds(example_3, 2, [None], 1, branching) == (F("0.1"), F("0.6"))
    assert exact_bounds(example_3, 2, [None], 1, tree_marginalization) == (F("0.325"), F("0.45"))
    assert set(mar.exactness) == {Exactness.EXACT}


def example_4(x, j, history):
    if j == 0:
        return "0.4", "0.6"
    if j == 1:
        return ("0.7", "0.9") if history[0] == 0 else ("0.6", "0.8")
    if j == 2:
        return "0.3", "0.6"
    return [("0.2", "0.4"), ("0.5", "0.7"), ("0.8", "0.9")][history[0] + history[2]]


def test_example_4_a_history_with_two_stars():
    history = [None, 1, None]
    assert exact_bounds(example_4, 4, history, 3, branching) == (F(1, 5), F(9, 10))
    expected = (F(497, 1300), F(139, 190))
    assert exact_bounds(example_4, 4, history, 3, tree_marginalization) == expected


# -- against enumeration -------------------------------------------------------------------


def random_tree(rng, m, *, zeros):
    """Local bounds for every node of the tree over m labels, with many 0 and 1."""
    grid = [F(n, 8) for n in range(9)]
    bounds = {}
    for k in range(m):
        for history in product((0, 1), repeat=k):
            ends = sorted(rng.choice(len(grid), size=2))
            if zeros and rng.random() < 0.3:
                ends = [0, int(rng.choice([0, 8, 3]))]
            bounds[history] = (grid[ends[0]], grid[ends[1]])
    return bounds


def as_function(bounds):
    return lambda x, j, history: bounds[tuple(history[:j])]


def joint(vertex, values):
    p = F(1)
    for k, y in enumerate(values):
        one = vertex[tuple(values[:k])]
        p *= one if y == 1 else 1 - one
    return p


def all_vertices(bounds):
    nodes = list(bounds)
    for ends in product((0, 1), repeat=len(nodes)):
        yield {node: bounds[node][end] for node, end in zip(nodes, ends, strict=True)}


def enumerated(bounds, history, j):
    """Bounds of P(Y_j = 1 | history) over all vertices under which the history is possible."""
    ratios = []
    for vertex in all_vertices(bounds):
        mass = {0: F(0), 1: F(0)}
        for values in product((0, 1), repeat=j + 1):
            if all(h in (None, v) for h, v in zip(history, values, strict=False)):
                mass[values[j]] += joint(vertex, values)
        if mass[0] + mass[1] > 0:
            ratios.append(mass[1] / (mass[0] + mass[1]))
    return (min(ratios), max(ratios)) if ratios else (F(0), F(1))


@examples(100)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.data())
def test_tree_marginalization_equals_the_enumeration_of_all_vertices(seed, zeros, data):
    m = data.draw(st.integers(2, 3))
    bounds = random_tree(np.random.default_rng(seed), m, zeros=zeros)
    history = data.draw(st.lists(st.sampled_from([None, 0, 1]), min_size=m - 1, max_size=m - 1))
    got = exact_bounds(as_function(bounds), m, history, m - 1, tree_marginalization)
    assert got == enumerated(bounds, history, m - 1)


@examples(150)
@given(st.integers(0, 2**32 - 1), st.data())
def test_branching_equals_the_enumeration_of_all_completions(seed, data):
    bounds = random_tree(np.random.default_rng(seed), 4, zeros=True)
    history = data.draw(st.lists(st.sampled_from([None, 0, 1]), min_size=3, max_size=3))
    ends = [
        bounds[values]
        for values in product((0, 1), repeat=3)
        if all(h in (None, v) for h, v in zip(history, values, strict=True))
    ]
    got = exact_bounds(as_function(bounds), 4, history, 3, branching)
    assert got == (min(low for low, _ in ends), max(high for _, high in ends))


@examples(100)
@given(st.integers(0, 2**32 - 1), st.data())
def test_branching_contains_tree_marginalization(seed, data):
    bounds = random_tree(np.random.default_rng(seed), 4, zeros=False)
    history = data.draw(st.lists(st.sampled_from([None, 0, 1]), min_size=3, max_size=3))
    ib = exact_bounds(as_function(bounds), 4, history, 3, branching)
    mar = exact_bounds(as_function(bounds), 4, history, 3, tree_marginalization)
    if mar != (0, 1):  # an impossible history says nothing
        assert ib[0] <= mar[0] <= mar[1] <= ib[1]


def test_floats_and_fractions_agree():
    rng = np.random.default_rng(0)
    for _ in range(50):
        bounds = random_tree(rng, 4, zeros=False)
        told = {0: None, 1: np.array([1]), 2: None}
        results = []
        for number in (lambda f: np.array([f], dtype=object), lambda f: np.array([float(f)])):
            tree = OpenTree(
                told,
                lambda k, h, number=number, bounds=bounds: tuple(
                    number(end) for end in bounds[tuple(int(np.ravel(h[i])[0]) for i in range(k))]
                ),
            )
            results.append([*tree_marginal_bounds(tree, 3), *branching_bounds(tree, 3)])
        np.testing.assert_allclose(*np.array(results, dtype=float), atol=1e-12)


# -- inside a chain ------------------------------------------------------------------------


@examples(150)
@given(cases())
def test_the_naive_tree_agrees_with_the_naive_chain_on_branching(case):
    """Branching by enumeration over the naive model's own intervals is its linear-time form."""
    by_tree = type(branching)("by tree", nested=True, from_tree=branching.from_tree)
    chain = case.estimator(strategy="branching")
    fast, slow = infer_all(chain, case.rows, known=case.known, strategy=(branching, by_tree))
    if case.order is not None:
        np.testing.assert_array_equal(fast.labels, slow.labels)
        np.testing.assert_allclose(fast.interval, slow.interval, atol=1e-9)


def expected_of_the_naive_tree(case):
    """Tree-marginalization over the literal twin's intervals, in fractions throughout."""
    problem, labels = case.problem(strategy="branching"), []
    for x, known in zip(case.oracle_rows(), case.known.tolist(), strict=True):

        def bounds(k, history, x=x):
            told = {label: int(np.ravel(y)[0]) for label, y in history.items()}
            ends = oracle.interval(problem, k, x, told)
            return tuple(np.array([end], dtype=object) for end in ends)

        told, row = {}, {}
        for j in case.order:
            lower, upper = tree_marginal_bounds(OpenTree(told, bounds), j)
            answer = oracle.decide(problem, j, lower[0], upper[0])
            row[j] = known[j] if known[j] != -1 else -1 if answer == oracle.STAR else answer
            told[j] = None if row[j] == -1 else np.array([row[j]])
        labels.append([row[j] for j in range(problem.m)])
    return np.array(labels)


@examples(150)
@given(cases(dynamic=False))
def test_the_naive_tree_settles_ties_exactly(case):
    prediction = case.estimator().infer(case.rows, known=case.known, strategy=TREE)
    np.testing.assert_array_equal(prediction.labels, expected_of_the_naive_tree(case))
    assert set(prediction.exactness) == {Exactness.EXACT}


def test_the_dynamic_order_of_a_tree_settles_ties():
    """Two labels are equally certain, and the first column comes first, whatever rounding says."""
    nan = np.nan
    X = [[2], [1], [1], [1], [2]]
    Y = [[0, 1, 1, nan], [nan, 0, nan, nan], [1, 0, nan, nan], [0, 0, 0, 1], [0, 1, nan, 1]]
    chain = CredalChainClassifier(
        NaiveCredal(discretizer=None, epsilon=0),
        s=1,
        order="dynamic",
        strategy=TREE,
        threshold=[1 / 3, 0.5, 0.4, 0.5],
    ).fit(X, Y)
    assert chain.infer([[2]]).labels.tolist() == [[-1, -1, -1, -1]]


def test_a_known_label_that_nobody_observed_says_nothing():
    X, Y = np.zeros((3, 1), int), [[np.nan, 0, 0], [np.nan, 1, 1], [np.nan, 1, 1]]
    base = NaiveCredal(discretizer=None, prior="credal")
    chain = CredalChainClassifier(base, s=0, strategy=TREE, order="given")
    with pytest.warns(UserWarning, match="never observed"):
        chain.fit(X, Y)
    known, free = chain.infer(X[:1], known=[[1, -1, -1]]), chain.infer(X[:1])
    np.testing.assert_array_equal(known.interval, free.interval)


class Floats:
    """A local model that gives floats."""

    def __init__(self, bounds_of):
        self.bounds_of = bounds_of

    def bounds(self, X, j, history, *, s):
        pairs = [self.bounds_of[tuple(h[:j])] for h in history.tolist()]
        lower, upper = np.array(pairs, dtype=float).T
        return lower, upper


@examples(150)
@given(st.integers(0, 2**32 - 1))
def test_ties_of_floats_are_settled_by_their_exact_values(seed):
    """Thresholds at exact bounds, so that the last rounding would decide."""
    rng = np.random.default_rng(seed)
    nodes = [history for k in range(3) for history in product((0, 1), repeat=k)]
    ends = {node: sorted(rng.integers(0, 11, size=2) / 10) for node in nodes}
    exact = {node: tuple(map(F, map(float, pair))) for node, pair in ends.items()}
    tree = OpenTree(
        {0: None, 1: None},
        lambda k, h: tuple(np.array([end]) for end in exact[tuple(int(h[i]) for i in range(k))]),
    )
    lower, upper = (end[0] for end in tree_marginal_bounds(tree, 2))
    for bound in (lower, upper):
        threshold = float(bound)
        if not 0 < threshold < 1:
            continue
        chain = CredalChainClassifier.from_model(
            LocalChainModel(Floats(ends), 3),
            n_features=1,
            order="given",
            strategy=TREE,
            threshold=[0.5, 0.5, threshold],
        )
        walk = chain.model_.begin(
            np.zeros((1, 1)), s=1.0, strategy=tree_marginalization, precise=False
        )
        for k in (0, 1):
            walk.set_label(k, np.array([-1], dtype=np.int8), np.array([0]))
        low, high = walk.compare(2, threshold, np.array([0]))
        t = F(threshold)
        assert (low[0], high[0]) == ((lower > t) - (lower < t), (upper > t) - (upper < t))


def test_intervals_are_what_the_model_gave():
    """Not what is left of them after log-odds: 3/10 is 0.3."""
    bounds = {(): (0.3, 0.3), (0,): (0.1, 0.7), (1,): (0.2, 0.6)}
    chain = CredalChainClassifier.from_model(
        LocalChainModel(Floats(bounds), 2), n_features=1, order="given"
    )
    assert chain.predict_interval([[0]])[0].tolist() == [[0.3, 0.3], [0.1, 0.7]]
    assert chain.predict_proba([[0]])[0].tolist() == [0.3, 0.1]


def test_naive_marginalization_is_not_tree_marginalization():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(60, 2))
    Y = (rng.random((60, 3)) < 0.3 + 0.3 * X[:, :1]).astype(int)
    chain = CredalChainClassifier(NaiveCredal(discretizer=None), s=4.0, order="given").fit(X, Y)
    naive, tree = infer_all(chain, X, strategy=("marginalization", TREE))
    assert (naive.labels[:, 0] == -1).any()
    assert np.abs(naive.interval - tree.interval).max() > 0.01
    np.testing.assert_allclose(naive.interval[:, 0], tree.interval[:, 0])


def test_dynamic_order_with_a_local_model():
    def local(x, j, history):
        p = [F(1, 2), F(9, 10), F(1, 10)][j]
        return p - F(1, 20), p + F(1, 20)

    model = LocalChainModel(Table(local), 3)
    dynamic = CredalChainClassifier.from_model(model, n_features=1, order="dynamic")
    for strategy in ("branching", TREE):
        assert dynamic.infer([[0]], strategy=strategy).labels.tolist() == [[-1, 1, 0]]


class Frequencies(LocalBase):
    """A user's own base: the IDM on the labels alone, whatever the features."""

    def fit_local(self, X, Y, order, *, rng):
        counts = [((Y[:, j] == 1).sum(), (Y[:, j] != -1).sum()) for j in range(Y.shape[1])]

        class Local:
            def bounds(self, X, j, history, *, s):
                ones, n = counts[j]
                lower, upper = ones / (n + s), (ones + s) / (n + s)
                return np.full(len(X), lower), np.full(len(X), upper)

        return Local()


class FollowsFirstColumn(LocalBase):
    """A user's own base, written for arrays: every label is a threshold on the first column."""

    def fit_local(self, X, Y, order, *, rng):
        low, high = X[:, 0].min(), X[:, 0].max()

        class Local:
            def bounds(self, X, j, history, *, s):
                share = (X[:, 0] - low) / (high - low)
                return share / (1 + s), (share + s) / (1 + s)

        return Local()


def test_a_base_of_ones_own_gets_arrays_from_data_frames():
    X = np.array([[0.0, 1.0], [4.0, 1.0], [8.0, 0.0]])
    Y = np.array([[0, 0], [0, 1], [1, 1]])
    frame = pd.DataFrame(X, columns=["a", "b"])
    chain = CredalChainClassifier(FollowsFirstColumn(), s=0.2, order="given")
    from_array, from_frame = (chain.fit(Z, Y).predict_interval(Z) for Z in (X, frame))
    np.testing.assert_array_equal(from_array, from_frame)
    mixed = frame.assign(b=["x", "y", "x"])
    np.testing.assert_array_equal(chain.fit(mixed, Y).predict_partial(mixed)[:, 0], [0, -1, 1])


def test_a_base_of_ones_own():
    X = np.zeros((10, 1))
    Y = np.column_stack([np.r_[np.ones(9), 0], np.r_[np.ones(5), np.zeros(5)], np.zeros(10)])
    chain = CredalChainClassifier(Frequencies(), s=1.0, order="given").fit(X, Y)
    assert chain.predict_partial(X[:1]).tolist() == [[1, -1, 0]]
    assert chain.predict(X[:1]).tolist() == [[1, 1, 0]]
    with pytest.raises(AttributeError, match="base must support partial_fit"):
        chain.partial_fit(X, Y)
    with pytest.raises(
        ValueError, match="'marginalization' needs a model that can leave labels out"
    ):
        chain.infer(X, strategy="marginalization")
    with pytest.raises(TypeError, match="base must have from_counts"):
        CredalChainClassifier.from_counts(None, base=Frequencies())


def test_bad_bounds_are_named():
    chain = chain_over(lambda x, j, h: ("0.6", "0.4"), 2)
    with pytest.raises(ValueError, match=r"bounds of label 0 must satisfy .*\[3/5, 2/5\]"):
        chain.predict_partial([[0]])


def test_too_many_stars_are_refused_not_waited_for():
    tree = OpenTree(dict.fromkeys(range(13)), lambda k, history: pytest.fail("computed"))
    for solve in (branching_bounds, tree_marginal_bounds):
        with pytest.raises(ValueError, match=r"13 labels were left open .* at most 12"):
            solve(tree, 13)


def test_log_odds_of_hundreds_do_not_saturate():
    """Without stars both strategies are the chain itself, however sure it is."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = np.where(rng.random((200, 60)) < 0.03, 1 - y[:, None], y[:, None])
    Y = np.column_stack([y, y ^ (rng.random(200) < 0.1), y ^ (rng.random(200) < 0.2)])
    chain = CredalChainClassifier(NaiveCredal(discretizer=None), s=1.0, order="given").fit(X, Y)
    for known in (None, [[0, -1, -1]], [[1, 0, -1]]):
        for x in (np.ones((1, 60), int), np.zeros((1, 60), int)):
            ib, tree = infer_all(chain, x, known=known, strategy=("branching", TREE))
            assert (ib.labels != -1).all()
            np.testing.assert_array_equal(ib.labels, tree.labels)
            np.testing.assert_allclose(ib.log_odds, tree.log_odds, rtol=1e-9)


@examples(100)
@given(cases())
def test_bounds_of_the_naive_tree_never_cross(case):
    log_odds = case.estimator().infer(case.rows, known=case.known, strategy=TREE).log_odds
    assert np.all(log_odds[..., 0] <= log_odds[..., 1])
