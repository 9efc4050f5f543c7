"""Decisions over listed label vectors: constraints, and measures of a row."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import ExtraTreesRegressor

from credalchain import (
    CredalChainClassifier,
    CredalJointForest,
    JointDecision,
    load_model,
    save_model,
)
from credalchain.exceptions import DataWarning
from credalchain.joint import listed
from credalchain.joint.constraints import read_constraints
from credalchain.joint.rules import RULES
from credalchain.prediction import RANKS, Exactness
from joint_twin import matches, random_case
from profiles import examples

SEEDS = st.integers(0, 2**32 - 1)
WORDS = {"at least": range(1, 99), "at most": range(2), "exactly": [1]}


def random_constraint(rng, names):
    """A text, and the same as a function of a label vector."""
    columns = rng.permutation(len(names))[: rng.integers(2, len(names) + 1)]
    values = rng.integers(0, 2, len(columns))
    pairs = list(zip(columns.tolist(), values.tolist(), strict=True))
    terms = [names[j] if value else f"not {names[j]}" for j, value in pairs]
    if rng.random() < 0.3:
        (a, x), (b, y) = pairs[:2]
        return f"{terms[0]} -> {terms[1]}", lambda v: v[a] != x or v[b] == y
    word = rng.choice(list(WORDS))
    allowed = WORDS[word]
    text = f"{word} one of {', '.join(terms)}"
    return text, lambda v: sum(v[j] == value for j, value in pairs) in allowed


def constrained(case, seed, **params):
    """A decision over a case of three labels with a constraint, which is also returned."""
    forest = case.forest()
    text, holds = random_constraint(np.random.default_rng(seed), forest.label_names_.tolist())
    params = {"bounds": "credal", **params}
    return JointDecision.from_fitted(forest, constraints=[text], **params), holds


@examples(200)
@given(SEEDS)
def test_bounds_given_a_constraint_are_those_of_the_extreme_points(seed):
    rng = np.random.default_rng(seed)
    case = random_case(rng, m=3)
    if not all(case.trees) or any(case.never(j) for j in range(3)):
        return
    decision, holds = constrained(case, seed)
    known = np.where(rng.random(3) < 0.2, rng.integers(0, 2, 3), -1).astype(np.int8)
    as_known = matches(known)
    decided = decision.decide([[0.0]], known=known[None])
    lower = decided.lower[0]
    tolerance = 1e-9 if (decided.exactness == RANKS[Exactness.EXACT]).all() else 0.1  # 256 draws
    # sets of values of one component make the bounds wider than they need to be
    has_sets = (case.product and case.s) or (case.conservative and case.fill)
    possible = [v for v in case.vectors() if as_known(v) and holds(v)]
    for j, y in itertools.product(range(3), range(2)):
        if known[j] != -1:
            assert lower[j, y] == (known[j] == y)
            continue
        event = lambda v, j=j, y=y: v[j] == y  # noqa: E731
        exact = float(case.bounds(event, lambda v: as_known(v) and holds(v))[0])
        if possible and all(map(event, possible)):  # follows from the constraint
            assert lower[j, y] == 1 or lower[j, y] <= exact + tolerance
        elif has_sets or not possible:
            assert lower[j, y] <= exact + tolerance
        else:
            assert lower[j, y] == pytest.approx(exact, abs=tolerance)


def probabilities(case, holds=lambda v: True):
    """P(v) at s = 0 given the constraint, for every vector that has any."""
    precise = replace(case, s=0.0)
    p = {v: float(precise.bounds(lambda u, v=v: u == v, holds)[0]) for v in case.vectors()}
    return {v: value for v, value in p.items() if holds(v) and value > 0}


@examples(200)
@given(SEEDS)
def test_the_likeliest_vector_meets_the_constraint(seed):
    case = random_case(np.random.default_rng(seed), m=3, missing=False)
    decision, holds = constrained(case, seed, bounds="precise", reward=100)
    p = probabilities(case, holds)
    answers = decision.predict_partial([[0.0]])[0]
    if not p:
        assert (answers == -1).all()
        return
    vector = tuple(answers.tolist())
    assert p[vector] == pytest.approx(max(p.values()))
    np.testing.assert_array_equal(decision.predict([[0.0]])[0], answers)


@pytest.mark.parametrize("loss", RULES)
@examples(60)
@given(SEEDS)
def test_answers_never_contradict_a_constraint(loss, seed):
    rng = np.random.default_rng(seed)
    case = random_case(rng, m=3)
    costs = tuple(rng.uniform(0.2, 5, 2))
    bounds = str(rng.choice(["precise", "credal"]))
    decision, holds = constrained(case, seed, loss=loss, costs=costs, bounds=bounds)
    path = decision.predict_path([[0.0]], decision.caution_grid)[:, 0]
    for answers in np.unique(path, axis=0):
        assert any(holds(v) for v in case.vectors() if matches(answers)(v))
    for bold, cautious in itertools.pairwise(path):
        assert (cautious == np.where(cautious != -1, bold, -1)).all()


@examples(100)
@given(SEEDS)
def test_all_labels_answered_meet_constraints_that_no_training_row_meets(seed):
    """Also with labels that are known, or never observed, and several constraints."""
    rng = np.random.default_rng(seed)
    case = random_case(rng, m=int(rng.integers(2, 5)))
    if rng.random() < 0.3 and not case.others:
        j = int(rng.integers(case.m))
        never = [[None if k == j else y for k, y in enumerate(row)] for row in case.Y]
        case = replace(case, Y=never, fill={**case.fill, **dict.fromkeys(cells(case, j), 0.5)})
    forest = case.forest()
    names = forest.label_names_.tolist()
    pairs = [random_constraint(rng, names) for _ in range(rng.integers(1, 4))]
    possible = [v for v in case.vectors() if all(holds(v) for _, holds in pairs)]
    decision = JointDecision.from_fitted(
        forest, constraints=[text for text, _ in pairs], loss=str(rng.choice(list(RULES)))
    )
    if not possible:
        with pytest.raises(ValueError, match="constraints must not contradict each other"):
            decision.predict([[0.0]])
        return
    assert tuple(decision.predict([[0.0]])[0].tolist()) in possible
    known = np.where(rng.random(case.m) < 0.5, possible[rng.integers(len(possible))], -1)
    for answers in decision.predict_path([[0.0]], [100.0, 0.5, 0.1, 0.0], known=known[None])[:, 0]:
        assert (answers[known != -1] == known[known != -1]).all()
        assert any(map(matches(answers), possible))


def cells(case, j):
    return [(i, j) for i in range(len(case.Y))]


# -- measures of a row -----------------------------------------------------------------------------


def f1(answers, vector):
    both = sum(a == y == 1 for a, y in zip(answers, vector, strict=True))
    total = sum(a == 1 for a in answers) + sum(
        y for a, y in zip(answers, vector, strict=True) if a != -1
    )
    return 2 * both / total if total else 1.0


def jaccard(answers, vector):
    value = f1(answers, vector)
    return value / (2 - value)


MEASURES = {"f1": f1, "jaccard": jaccard}


@pytest.mark.parametrize("loss", MEASURES)
@examples(150)
@given(SEEDS, st.floats(0, 1.5))
def test_the_expected_measure_is_the_greatest(loss, seed, reward):
    """All labels answered: of all vectors. Else at least of nothing and everything answered."""
    case = random_case(np.random.default_rng(seed), m=3, missing=False)
    p = probabilities(case)
    decision = JointDecision.from_fitted(case.forest(), loss=loss)

    def value(answers):
        return sum(q * MEASURES[loss](answers, v) for v, q in p.items())

    full = decision.predict([[0.0]])[0].tolist()
    assert value(full) == pytest.approx(max(map(value, case.vectors())))

    def worth(answers):
        return value(answers) + reward * sum(a != -1 for a in answers) / 3

    (partial,) = decision.set_params(reward=reward).predict_partial([[0.0]]).tolist()
    assert worth(partial) >= max(worth(full), worth([-1, -1, -1])) - 1e-9


@pytest.mark.parametrize("loss", ["row", *MEASURES])
def test_answers_are_nearly_the_best_of_all_partial_answers(loss):
    """Nested answers cannot be the best at every reward; they rarely are not."""
    losses = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        case = random_case(rng, m=int(rng.integers(1, 5)), missing=False)
        p = probabilities(case)

        def measure(answers, vector):
            if loss == "row":
                return float(matches(answers)(vector))
            return MEASURES[loss](answers, vector)

        values = {
            answers: sum(q * measure(answers, v) for v, q in p.items())
            for answers in itertools.product([-1, 0, 1], repeat=case.m)
        }
        rewards = [*rng.uniform(0, 1.3, 4), 0.0]
        path = JointDecision.from_fitted(case.forest(), loss=loss).predict_path([[0.0]], rewards)
        for reward, found in zip(rewards, path[:, 0].tolist(), strict=True):
            worth = {a: v + reward * sum(y != -1 for y in a) / case.m for a, v in values.items()}
            losses.append(max(worth.values()) - worth[tuple(found)])
    assert np.mean(losses) < 0.001
    assert np.mean(np.array(losses) > 1e-9) < 0.02


def wide_data(m=10, n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (X @ rng.normal(size=(4, m)) + rng.normal(size=(n, m)) > 0.8).astype(int)


@pytest.fixture(scope="module")
def wide():
    X, Y = wide_data()
    trees = ExtraTreesRegressor(30, min_samples_leaf=5, bootstrap=True, random_state=0)
    return CredalJointForest(trees, members=[], random_state=0).fit(X, Y), X, Y


@pytest.mark.parametrize("loss", MEASURES)
def test_many_labels_are_searched_and_few_enumerated(wide, loss, monkeypatch):
    """The search that serves many labels finds nearly what enumeration finds."""
    forest, X, _ = wide
    decision = JointDecision.from_fitted(forest, loss=loss, reward=0.6)
    exactness = decision.infer(X[:20]).exactness_by_row
    assert (exactness == Exactness.APPROXIMATE).all()
    searched = decision.decide(X[:20])
    monkeypatch.setattr(listed, "_MAX_ENUMERATED", 10)
    enumerated = decision.decide(X[:20])
    assert (decision.infer(X[:20]).exactness_by_row == Exactness.EXACT).all()
    assert (searched.answers == enumerated.answers).mean() > 0.95
    np.testing.assert_allclose(searched.lower, enumerated.lower, atol=0.05)  # 256 draws


def test_listed_rows_are_decided_like_others(wide, monkeypatch):
    """A constraint that all vectors meet changes nothing."""
    forest, X, _ = wide
    name_a, name_b = forest.label_names_[:2]
    decision = JointDecision.from_fitted(forest)
    usual = decision.decide(X[:40])
    monkeypatch.setattr(listed, "_MAX_ENUMERATED", 10)
    monkeypatch.setattr(
        "credalchain.joint.constraints.Constraint.check_vectors",
        lambda self, vectors: (np.ones(len(vectors), bool),) * 2,
    )
    listed_too = decision.set_params(constraints=[f"{name_a} -> {name_b}"]).decide(X[:40])
    np.testing.assert_array_equal(listed_too.answers, usual.answers)
    np.testing.assert_allclose(listed_too.lower, usual.lower, atol=1e-9)
    np.testing.assert_allclose(listed_too.prices, usual.prices, atol=1e-6)


# -- for users -------------------------------------------------------------------------------------


def test_constraints_are_counted_stored_and_used(tmp_path):
    X, Y = wide_data(m=3)
    constraints = ["label0 -> label1", "at most one of label1, label2"]
    with pytest.warns(DataWarning, match=r"the constraint label0 -> label1 is contradicted by \d+"):
        decision = JointDecision(constraints=constraints, random_state=0).fit(X, Y)
    expected = [((Y[:, 0] == 1) & (Y[:, 1] == 0)).sum(), (Y[:, 1:].sum(axis=1) > 1).sum()]
    np.testing.assert_array_equal(decision.contradictions_, expected)
    p = decision.predict_proba(X)
    assert (p[:, 1] >= p[:, 0] - 1e-9).all()
    assert (p[:, 1] + p[:, 2] <= 1 + 1e-9).all()
    save_model(decision, tmp_path / "model")
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_partial(X), decision.predict_partial(X))
    known = np.full(Y.shape, -1)
    known[:, 0] = 1
    follows = decision.infer(X, known=known)
    assert (follows.labels == [1, 1, 0]).all()


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ("label0 -> label1", "constraints must be a list of strings, got 'label0 -> label1'"),
        ({"label0 -> label1": 1}, "constraints must be a list of strings, got"),
        (iter(["label0 -> label1"]), "constraints must be a list of strings, got"),
        ([1], "constraints must be strings such as 'a -> b'"),
        (
            ["exactly one of label0, label1", "label0 -> label1", "label1 -> label0"],
            "constraints must not contradict each other, got",
        ),
        (["label0"], "constraints must be strings such as 'a -> b'.*got 'label0'"),
        (["label0 -> rock"], "'rock' in 'label0 -> rock' is not one of the labels label0, label1"),
        (["label0 -> label0"], "must name two or more different labels"),
        (["exactly one of label0"], "must name two or more different labels"),
    ],
)
def test_wrong_constraints(constraints, message):
    with pytest.raises(ValueError, match=message):
        JointDecision(constraints=constraints).fit(*wide_data(m=2, n=30))


def test_names_that_begin_with_not():
    (constraint,) = read_constraints(["not rock -> not sure"], ["rock", "not sure"])
    vectors = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [-1, 0]], dtype=np.int8)
    may, surely = constraint.check_vectors(vectors)
    assert may.tolist() == [False, True, True, True, True]
    assert surely.tolist() == [False, True, True, True, False]


@pytest.mark.parametrize("params", [{"loss": "f1"}, {"constraints": ["label0 -> label1"]}])
def test_chains_have_no_label_vectors(params):
    X, Y = wide_data(m=2, n=60)
    chain = CredalChainClassifier(random_state=0)
    message = "needs? a joint model: estimator must be None"
    with pytest.raises(ValueError, match=message):
        JointDecision(chain, **params).fit(X, Y)
    decision = JointDecision(chain, calibration_folds=None).fit(X, Y).set_params(**params)
    with pytest.raises(ValueError, match=message):
        decision.predict_partial(X)


def test_constraints_are_read_before_anything_is_fitted():
    class Unfitted(CredalJointForest):
        def fit(self, X, Y):
            raise AssertionError

    with pytest.raises(ValueError, match="'rock' in 'rock -> label0' is not one of the labels"):
        JointDecision(Unfitted(), constraints=["rock -> label0"]).fit(*wide_data(m=2, n=30))
