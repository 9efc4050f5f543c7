"""Every rival against brute force over all partial answers, label vectors or rankings."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier

from credalchain import (
    CredalBinaryRelevanceClassifier,
    CredalChainClassifier,
    JointDecision,
    LocalBase,
    PromisedClassifier,
    rivals,
)
from credalchain.rivals.rejection import reject_band

COSTS = [0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.0, 3.0]


def probabilities(m):
    """Away from ties and from the ends, where log-odds are clipped."""
    return st.lists(st.floats(0.01, 0.99), min_size=m, max_size=m)


def answers_of(rival, p, values):
    p = np.atleast_2d(p)
    return rival.fit(p, np.zeros(p.shape, int)).predict_path(p, values)[:, 0]


def vectors(m):
    return np.array(list(itertools.product((0, 1), repeat=m)))


def chance(p, y):
    return np.where(y == 1, p, 1 - np.asarray(p)).prod(axis=-1)


# -- reject option and partial abstention --------------------------------------------------------


def expected_loss(name, p, answers):
    """Of a partial answer, over all label vectors."""
    given_ = np.flatnonzero(answers != -1)
    total = 0.0
    for y in vectors(len(p)):
        truth, said = y[given_], answers[given_]
        if name == "hamming":
            loss = (truth != said).sum()
        elif name == "subset":
            loss = (truth != said).any()
        else:
            positives = truth.sum() + said.sum()
            loss = 1 - (2 * (truth * said).sum() / positives if positives else 1)
        total += chance(p, y) * loss
    return total


def expected_rank_loss(p, ranking):
    pairs = itertools.combinations(ranking, 2)
    return sum((1 - p[above]) * p[below] for above, below in pairs)


def cost_of_open(penalty, k, m):
    return k if penalty == "linear" else k * m / (m + k)


@pytest.mark.parametrize("penalty", ["linear", "concave"])
@pytest.mark.parametrize("loss", ["hamming", "subset", "f1"])
@given(p=probabilities(4))
def test_no_partial_answer_costs_less(loss, penalty, p):
    every = [np.array(answers) for answers in itertools.product((-1, 0, 1), repeat=4)]
    losses = {tuple(a): expected_loss(loss, p, a) for a in every}
    rival = rivals.PartialAbstention("precomputed", loss=loss, penalty=penalty)
    for cost, found in zip(COSTS, answers_of(rival, p, COSTS), strict=True):
        totals = {
            a: value + cost * cost_of_open(penalty, a.count(-1), 4) for a, value in losses.items()
        }
        assert totals[tuple(found.tolist())] == pytest.approx(min(totals.values()), abs=1e-9)


@pytest.mark.parametrize("penalty", ["linear", "concave"])
@given(p=probabilities(4))
def test_no_partial_ranking_costs_less(penalty, p):
    rankings = [r for k in range(5) for r in itertools.permutations(range(4), k)]
    rival = rivals.PartialAbstention("precomputed", loss="rank", penalty=penalty)
    for cost, found in zip(COSTS, answers_of(rival, p, COSTS), strict=True):
        ranked = sorted(np.flatnonzero(found != -1), key=lambda j: -p[j])
        total = {
            r: expected_rank_loss(p, r) + cost * cost_of_open(penalty, 4 - len(r), 4)
            for r in [*rankings, tuple(ranked)]
        }
        assert total[tuple(ranked)] == pytest.approx(min(total.values()), abs=1e-9)
        assert all(found[j] == (p[j] >= 0.5) for j in ranked)


@given(p=probabilities(5), cost=st.floats(0, 1))
def test_chow_is_partial_abstention_for_hamming_loss(p, cost):
    chow = answers_of(rivals.RejectOption("precomputed"), p, [cost])[0]
    if np.abs(np.minimum(p, 1 - np.array(p)) - cost).min() > 1e-9:
        hamming = answers_of(rivals.PartialAbstention("precomputed"), p, [cost])[0]
        np.testing.assert_array_equal(chow, hamming)
        np.testing.assert_array_equal(chow == -1, cost < np.minimum(p, 1 - np.array(p)))


def test_subset_loss_with_linear_costs_is_a_joint_decision_on_independent_labels():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(80, 3)), rng.integers(0, 2, (80, 4))
    relevance = CredalBinaryRelevanceClassifier()
    decision = JointDecision(relevance, calibration_folds=None, joint="independent").fit(X, Y)
    rival = rivals.PartialAbstention(relevance, loss="subset").fit(X, Y)
    rewards = np.array([0.11, 0.37, 0.83, 1.7])
    ours = decision.predict_path(X, rewards)
    np.testing.assert_array_equal(ours, rival.predict_path(X, rewards / 4))


@given(p=probabilities(3), cost=st.floats(0, 1))
def test_a_row_is_rejected_as_a_whole(p, cost):
    (found,) = answers_of(rivals.RejectOption("precomputed", unit="row"), p, [cost])
    likeliest = max(chance(p, y) for y in vectors(3))
    if abs(likeliest - (1 - cost)) > 1e-9:
        assert (found != -1).all() == (likeliest > 1 - cost)
    assert len(set(found == -1)) == 1


@given(
    cells=st.lists(st.tuples(st.floats(0.01, 0.99), st.integers(0, 1)), min_size=1, max_size=9),
    coverage=st.floats(0, 1.5),
)
def test_no_other_thresholds_have_a_greater_f1(cells, coverage):
    cells = sorted(dict(cells).items())  # no two probabilities are equal
    p, y = map(np.array, zip(*cells, strict=True))
    n_open = int((1 - min(coverage, 1)) * len(p) + 1e-9)

    def f1(is_yes, is_no):
        found, wrong = (
            (is_yes & (y == 1)).sum(),
            (is_yes & (y == 0)).sum() + (is_no & (y == 1)).sum(),
        )
        return 1.0 if found + wrong == 0 else 2 * found / (2 * found + wrong)

    position = np.arange(len(p))
    best = max(f1(position >= k + n_open, position < k) for k in range(len(p) - n_open + 1))
    lower, upper = reject_band(p, y, coverage)
    assert ((p >= lower) & (p < upper)).sum() == n_open
    assert f1(p >= upper, p < lower) == pytest.approx(best)


@given(
    cells=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 1)), min_size=1, max_size=12),
    coverage=st.floats(0, 1),
)
def test_thresholds_do_not_separate_equal_probabilities(cells, coverage):
    """All pairs of cuts that answer enough, and cannot be moved apart."""
    p, y = (np.array(column) for column in zip(*sorted(cells), strict=True))
    n, p = len(p), p / 10
    n_open = int((1 - coverage) * n + 1e-9)
    cuts = [0, *(i for i in range(1, n) if p[i] != p[i - 1]), n]

    def f1(a, b):
        found, wrong = y[b:].sum(), y[:a].sum() + (n - b - y[b:].sum())
        return 1.0 if found + wrong == 0 else 2 * found / (2 * found + wrong)

    fits = [(a, b) for a in cuts for b in cuts if 0 <= b - a <= n_open]
    widest = [
        (a, b)
        for a, b in fits
        if (a + n_open <= n and b == max(d for c, d in fits if c == a))
        or (b >= n_open and a == min(c for c, d in fits if d == b))
    ]
    best = max(f1(a, b) for a, b in widest)
    lower, upper = reject_band(p, y, coverage)
    a, b = int((p < lower).sum()), int((p < upper).sum())
    assert (a, b) in widest
    assert f1(a, b) == pytest.approx(best)
    assert b - a == max(d - c for c, d in widest if f1(c, d) >= best - 1e-12)


def test_common_thresholds_are_those_of_all_cells():
    rng = np.random.default_rng(1)
    p, Y = rng.uniform(0.01, 0.99, (30, 3)), rng.integers(0, 2, (30, 3))
    Y[3, 1] = -1
    common = rivals.RejectThresholds("precomputed", thresholds="common").fit(p, Y)
    seen = Y.ravel() != -1
    order = np.argsort(p.ravel()[seen])
    lower, upper = reject_band(p.ravel()[seen][order], Y.ravel()[seen][order], 0.8)
    found = common.predict_partial(p)
    np.testing.assert_array_equal(found, np.where(p >= upper, 1, np.where(p < lower, 0, -1)))
    one = rivals.RejectThresholds("precomputed").fit(p[:, :1], Y[:, :1])
    np.testing.assert_array_equal(
        rivals.RejectThresholds("precomputed").fit(p, Y).predict_partial(p)[:, :1],
        one.predict_partial(p[:, :1]),
    )


# -- conformal -----------------------------------------------------------------------------------

ALPHAS = np.array([0.03, 0.1, 0.25, 0.4, 0.7])


def conformal(kind, seed=0, n=40, m=3):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.01, 0.99, (n, m))
    Y = (rng.uniform(size=p.shape) < p).astype(int)
    new = rng.uniform(0.01, 0.99, (20, m))
    fitted = rivals.ConformalAbstention("precomputed", kind=kind).fit(p, Y)
    return p, Y, new, fitted.predict_path(new, ALPHAS)


def p_value(calibration, score):
    return (sum(a >= score - 1e-12 for a in calibration) + 1) / (len(calibration) + 1)


def test_labels_are_answered_where_their_set_is_a_single_value():
    p, Y, new, path = conformal("label")
    for alpha, answers in zip(ALPHAS, path, strict=True):
        for (i, j), answer in np.ndenumerate(answers):
            values = [
                p_value(
                    [abs(y - q) for q, y in zip(p[:, j], Y[:, j], strict=True) if y == v],
                    abs(v - new[i, j]),
                )
                for v in (0, 1)
            ]
            kept = [v for v in (0, 1) if values[v] > alpha]
            if len(kept) == 1:
                assert answer == kept[0]
            else:
                assert answer == (-1 if kept else int(values[1] > values[0]))


def test_inner_and_outer_sets_are_those_of_corrected_quantiles():
    p, Y, new, path = conformal("inner_outer", n=79)
    greatest_no = np.sort(np.where(Y == 0, p, 0).max(axis=1))
    least_yes = np.sort(np.where(Y == 1, p, 1).min(axis=1))
    for alpha, answers in zip(ALPHAS[1:2], path[1:2], strict=True):
        rank = int(np.ceil(80 * (1 - alpha / 2) - 1e-9))  # of n + 1: the finite-sample correction
        inner = new > greatest_no[rank - 1]
        outer = new >= least_yes[79 - rank]
        assert not (inner & ~outer).any()
        np.testing.assert_array_equal(answers, np.where(inner, 1, np.where(outer, -1, 0)))


def test_answers_are_what_all_likely_vectors_have_in_common():
    p, Y, new, path = conformal("powerset")
    distances = ((p - Y) ** 2).sum(axis=1)
    for alpha, answers in zip(ALPHAS, path, strict=True):
        for row, answer in zip(new, answers, strict=True):
            kept = [y for y in vectors(3) if p_value(distances, ((row - y) ** 2).sum()) > alpha]
            if kept:
                same = (np.array(kept) == kept[0]).all(axis=0)
                np.testing.assert_array_equal(answer, np.where(same, kept[0], -1))
            else:
                np.testing.assert_array_equal(answer, row >= 0.5)


@pytest.mark.parametrize("kind", ["label", "inner_outer", "powerset"])
def test_levels_hold(kind):
    """Averaged over calibration sets; a level that ignored n + 1 would fail with so few rows."""
    rng, alpha, errors = np.random.default_rng(5), 0.2, []
    for _ in range(400):
        p = rng.uniform(0.01, 0.99, (60, 2))
        Y = (rng.uniform(size=p.shape) < p).astype(int)
        fitted = rivals.ConformalAbstention("precomputed", alpha, kind=kind).fit(p[:12], Y[:12])
        answers = fitted.predict_partial(p[12:])
        wrong = (answers != -1) & (answers != Y[12:])
        errors.append((wrong if kind == "label" else wrong.any(axis=1)).mean())
    assert np.mean(errors) <= alpha + 3 * np.std(errors) / np.sqrt(len(errors))


@given(st.lists(st.tuples(*[st.tuples(st.integers(0, 10), st.booleans())] * 2), min_size=3))
def test_equal_distances_are_equal(rows):
    """With p in tenths many are; each price is the exact p-value of the nearest other vector."""
    cells = np.array(rows, dtype=int)
    p, Y = cells[:, :, 0] / 10, cells[:, :, 1]
    fitted = rivals.ConformalAbstention("precomputed", kind="powerset").fit(p, Y)
    _, prices = fitted._answers_and_prices(fitted.label_proba(p))

    def distance(tenths, y):
        return int(((tenths - 10 * np.asarray(y)) ** 2).sum())  # in hundredths, exactly

    seen = [distance(row, y) for row, y in zip(cells[:, :, 0], Y, strict=True)]
    for row, row_prices in zip(cells[:, :, 0], prices, strict=True):
        nearest = (row >= 5).astype(int)
        for j, price in enumerate(row_prices):
            other = [y for y in vectors(2) if y[j] != nearest[j]]
            score = min(distance(row, y) for y in other)
            assert price == (sum(d >= score for d in seen) + 1) / (len(seen) + 1)


def test_rows_with_missing_labels_count_only_per_label():
    p, Y = np.full((10, 2), 0.9), np.ones((10, 2))
    Y[:, 1] = np.nan
    Y[0, 0] = 0
    new = np.array([[0.99, 0.99]])
    by_label = rivals.ConformalAbstention("precomputed", 0.5).fit(p, Y)
    together = rivals.ConformalAbstention("precomputed", 0.5, kind="powerset").fit(p, Y)
    assert by_label.predict_partial(new).tolist() == [[1, -1]]
    assert together.predict_partial(new).tolist() == [[-1, -1]]


# -- skeptical inference -------------------------------------------------------------------------


class Drawn(LocalBase):
    """Random intervals at every node of the tree; s scales their width."""

    def __init__(self, seed=0):
        self.seed = seed

    def fit_local(self, X, Y, order, *, rng):
        return self

    def bounds(self, X, j, history, *, s):
        seeds = [[self.seed, j, *(1 + int(y) for y in row)] for row in history]
        drawn = [np.random.default_rng(seed).uniform(0, 1, 3) for seed in seeds]
        centre, low, high = np.array(drawn).T
        width = min(1.0, 0.5 * s)
        return centre - width * low * centre, centre + width * high * (1 - centre)


def drawn_chain(seed, m):
    Y = np.array([[0] * m, [1] * m])
    return CredalChainClassifier(Drawn(seed), order=list(range(m))[::-1]).fit([[0.0], [1.0]], Y)


def extreme_joints(chain, s):
    """All joint distributions of the tree that take an end of the interval at each node."""
    m, local = chain.n_labels_, chain.model_.local
    order = [*map(int, chain.order_)]
    nodes = [node for d in range(m) for node in itertools.product((0, 1), repeat=d)]

    def interval(node):
        history = np.full((1, m), -1)
        history[0, order[: len(node)]] = node
        return [float(b[0]) for b in local.bounds([[0.0]], order[len(node)], history, s=s)]

    ends = {node: interval(node) for node in nodes}
    for chosen in itertools.product((0, 1), repeat=len(nodes)):
        p = {node: ends[node][end] for node, end in zip(nodes, chosen, strict=True)}
        joint = []
        for y in vectors(m):
            path = [int(y[j]) for j in order]
            joint.append(
                np.prod(
                    [p[tuple(path[:d])] if path[d] else 1 - p[tuple(path[:d])] for d in range(m)]
                )
            )
        yield np.array(joint)


@pytest.mark.parametrize("seed", range(6))
def test_maximal_vectors_and_what_they_share(seed):
    s = 0.6
    skeptical = rivals.SkepticalInference(CredalChainClassifier(Drawn(seed), order=[2, 1, 0]), s)
    skeptical.fit([[0.0], [1.0]], [[0, 0, 0], [1, 1, 1]])
    joints = np.array(list(extreme_joints(skeptical.scores_, s)))
    y = vectors(3)
    losses = joints @ (y[:, None, :] != y[None, :, :]).sum(axis=2)  # (joints, vectors)
    is_maximal = [not (losses < losses[:, [k]] - 1e-12).all(axis=0).any() for k in range(len(y))]
    (found,) = skeptical.maximal_vectors([[0.0]])
    np.testing.assert_array_equal(found, y[is_maximal])
    same = (found == found[0]).all(axis=0)
    np.testing.assert_array_equal(
        skeptical.predict_partial([[0.0]])[0], np.where(same, found[0], -1)
    )
    marginals = joints @ y
    bounds = skeptical.marginal_bounds([[0.0]], s)[0]
    np.testing.assert_allclose(bounds[:, 0], marginals.min(axis=0), atol=1e-12)
    np.testing.assert_allclose(bounds[:, 1], marginals.max(axis=0), atol=1e-12)


def test_over_binary_relevance_it_is_binary_relevance(yeast):
    X, Y = yeast[0][:80], yeast[1][:80]
    relevance = CredalBinaryRelevanceClassifier().fit(X, Y)
    skeptical = rivals.SkepticalInference(CredalBinaryRelevanceClassifier()).fit(X, Y)
    values = [0.0, 0.5, 2.0]
    np.testing.assert_array_equal(
        skeptical.predict_path(X, values), relevance.predict_path(X, values)
    )


def test_exact_inference_is_for_few_labels():
    with pytest.raises(ValueError, match="at most 8 labels for a chain.*got 9"):
        rivals.SkepticalInference(CredalChainClassifier()).fit([[0], [1]], np.eye(9)[:2])


# -- what all have in common ---------------------------------------------------------------------

RIVALS = {
    "label": rivals.RejectOption(LogisticRegression()),
    "row": rivals.RejectOption(LogisticRegression(), unit="row"),
    "thresholds": rivals.RejectThresholds(LogisticRegression(), random_state=0),
    **{
        loss: rivals.PartialAbstention(LogisticRegression(), loss=loss)
        for loss in ("hamming", "rank", "subset", "f1")
    },
    **{
        f"conformal {kind}": rivals.ConformalAbstention(LogisticRegression(), 0.3, kind=kind)
        for kind in ("label", "inner_outer", "powerset")
    },
    "skeptical": rivals.SkepticalInference(CredalChainClassifier(random_state=0)),
    "relevance": rivals.SkepticalInference(CredalBinaryRelevanceClassifier()),
}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 3))
    Y = (X + 0.9 * rng.normal(size=X.shape) > 0).astype(float)
    Y[:20, 1] = np.nan
    return X, Y


@pytest.mark.parametrize("name", RIVALS)
def test_interface(name, rows):
    X, Y = rows
    rival = clone(RIVALS[name]).fit(X[:200], Y[:200])
    values = [0.0, 0.02, 0.1, 0.3, 0.5, 1.0, 2.0, 1e6]
    if rival.larger_is_more_cautious:
        values = values[::-1]
    path = rival.predict_path(X[200:], values)  # from cautious to bold
    assert path.shape == (8, 100, 3)
    assert path.dtype == np.int8
    shares = (path != -1).mean(axis=(1, 2))
    assert shares[-1] == 1
    assert shares[0] < 0.5
    np.testing.assert_allclose(np.sort(shares), shares, atol=0.01)
    own = getattr(rival, rival.caution_parameter)
    partial = rival.predict_partial(X[200:])
    np.testing.assert_array_equal(partial, rival.predict_path(X[200:], [own])[0])
    if rival.nested_:
        for fewer, more in itertools.pairwise(path):
            assert (more[fewer != -1] == fewer[fewer != -1]).all()
    full = rival.predict(X[200:])
    assert set(np.unique(full)) == {0, 1}
    assert (full == Y[200:]).mean() > 0.7
    assert 0 < rival.score(X[200:], Y[200:]) <= 1
    assert rival.predict_path(X[200:], []).shape == (0, 100, 3)


@pytest.mark.parametrize("name", ["label", "subset", "conformal powerset", "relevance"])
def test_rivals_can_promise(name, rows):
    X, Y = rows[0][20:], rows[1][20:]
    promised = PromisedClassifier(RIVALS[name], {"row_error": 0.3}, random_state=0).fit(X, Y)
    assert 0 < (promised.predict_partial(X) != -1).mean() < 1


def test_any_base_and_frozen_ones(rows):
    X, Y = rows[0][20:], rows[1][20:].astype(int)
    model = MultiOutputClassifier(LogisticRegression()).fit(X[:150], Y[:150])
    frozen = rivals.ConformalAbstention(FrozenEstimator(model)).fit(X[150:], Y[150:])
    p = np.stack([q[:, 1] for q in model.predict_proba(X[150:])], axis=1)
    told = rivals.ConformalAbstention("precomputed").fit(p, Y[150:])
    np.testing.assert_array_equal(frozen.predict_partial(X[150:]), told.predict_partial(p))
    single = rivals.RejectOption(LogisticRegression()).fit(X, np.where(Y[:, 0] == 1, "b", "a"))
    assert set(single.predict(X)) == {"a", "b"}
    np.testing.assert_allclose(single.predict_proba(X).sum(axis=1), 1)


@pytest.mark.parametrize("of_labels", [OneVsRestClassifier, MultiOutputClassifier])
def test_a_frozen_model_is_used_as_it_is_where_labels_are_missing(of_labels, rows):
    X, Y = rows[0][20:], rows[1][20:].astype(int)
    model = of_labels(LogisticRegression()).fit(X, Y)
    missing = Y.astype(float)
    missing[0, 0], missing[:, 2] = np.nan, np.nan
    for rival in (rivals.RejectOption, rivals.RejectThresholds, rivals.ConformalAbstention):
        fitted = rival(FrozenEstimator(model)).fit(X, missing)
        np.testing.assert_array_equal(fitted.predict(X), model.predict(X))
    single = FrozenEstimator(LogisticRegression().fit(X, Y[:, 0]))
    with pytest.raises(ValueError, match="a score to each of 3 labels, and LogisticRegression"):
        rivals.RejectOption(single).fit(X, Y)


def test_ties_answer():
    p = np.array([[0.9, 0.1]])
    for rival in (rivals.RejectOption, rivals.PartialAbstention):
        assert rival("precomputed", 0.1).fit(p, [[1, 0]]).predict_partial(p).tolist() == [[1, 0]]
        sure = rival("precomputed", 0.0).fit([[1.0, 0.0]], [[1, 0]])
        assert sure.predict_partial([[1.0, 0.0]]).tolist() == [[1, 0]]


def test_many_certain_labels_leave_a_row_certain():
    p = np.append(np.full(399, 1e-9), 0.9)[None]
    row = rivals.RejectOption("precomputed", 0.11, unit="row").fit(p, np.zeros(p.shape, int))
    assert (row.predict_partial(p) != -1).all()


def test_parameters_are_validated_again_where_they_are_used(rows):
    X, Y = rows
    fitted = rivals.PartialAbstention(LogisticRegression()).fit(X, Y).set_params(loss="x")
    with pytest.raises(ValueError, match="loss must be one of"):
        fitted.predict_partial(X)
    conformal = rivals.ConformalAbstention(LogisticRegression(), 0.3, random_state=0).fit(X, Y)
    before = conformal.predict_partial(X)
    conformal.set_params(kind="powerset")  # which takes another fit
    np.testing.assert_array_equal(conformal.predict_partial(X), before)
    for name in ("predict", "predict_proba", "predict_partial"):
        with pytest.raises(NotFittedError):
            getattr(rivals.RejectOption(LogisticRegression()), name)(X)


def test_vectors_are_listed_for_few_labels_only():
    skeptical = rivals.SkepticalInference(CredalBinaryRelevanceClassifier())
    with pytest.raises(NotFittedError):
        skeptical.maximal_vectors([["a"]])
    skeptical.fit([["a"], ["b"]], np.eye(9, dtype=int)[:2])
    with pytest.raises(ValueError, match="at most 8 labels for this, got 9"):
        skeptical.maximal_vectors([["a"]])


@pytest.mark.parametrize(
    ("rival", "message"),
    [
        (rivals.RejectOption("precomputed", -1), "cost must be a number, at least 0.*got -1"),
        (rivals.RejectOption("precomputed", unit="cell"), "unit must be one of.*'cell'"),
        (rivals.RejectOption(None), "estimator must be an instance.*got None"),
        (rivals.RejectThresholds("precomputed", thresholds="x"), "thresholds must be one of"),
        (rivals.PartialAbstention("precomputed", loss="x"), "loss must be one of.*'x'"),
        (rivals.PartialAbstention("precomputed", penalty="x"), "penalty must be one of.*'x'"),
        (rivals.ConformalAbstention("precomputed", kind="x"), "kind must be one of.*'x'"),
        (rivals.ConformalAbstention("precomputed", calibration=2), "calibration must be a share"),
        (rivals.ConformalAbstention(LogisticRegression(), calibration=0.999), "got 0.999 of 2"),
        (rivals.SkepticalInference(LogisticRegression()), "estimator must be a Credal"),
        (rivals.SkepticalInference(CredalChainClassifier(threshold=0.8)), "threshold.*got 0.8"),
        (
            rivals.SkepticalInference(CredalChainClassifier(order="dynamic")),
            "order of the estimator must be fixed",
        ),
    ],
)
def test_parameters_are_named(rival, message):
    with pytest.raises((ValueError, TypeError), match=message):
        rival.fit([[0.2], [0.8]], [[0], [1]])


def test_values_are_several():
    fitted = rivals.RejectOption("precomputed").fit([[0.2], [0.8]], [[0], [1]])
    with pytest.raises(ValueError, match="values must be several values of cost, got 0.1"):
        fitted.predict_path([[0.2]], 0.1)
