"""Which label is best asked next: against thinking both answers through by hand."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from credalchain import (
    CredalBinaryRelevanceClassifier,
    CredalChainClassifier,
    JointDecision,
    next_questions,
)


def problem(seed, n=80):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Y = (X @ rng.normal(size=(3, 4)) + rng.normal(size=(n, 4)) > 0).astype(int)
    return X[:60], Y[:60], X[60:]


def by_hand(model, X, known):
    """For each row the best label and its bounds, by inferring one row at a time."""
    found = {}
    for row in range(len(X)):
        now = model.infer(X[[row]], known=known[[row]])
        is_open = now.labels[0] == -1
        best = None
        for j in np.flatnonzero(is_open).tolist():
            settled = []
            for value in (0, 1):
                told = known[[row]].copy()
                told[0, j] = value
                after = model.infer(X[[row]], known=told).labels[0]
                settled.append(int((is_open & (after != -1)).sum()))
            ends = [p * settled[1] + (1 - p) * settled[0] for p in now.interval[0, j]]
            if best is None or min(ends) > best[1] + 1e-12:
                best = j, min(ends), max(ends)
        if best is not None:
            found[row] = best
    return found


@pytest.mark.slow
@given(seed=st.integers(0, 10**6), joint=st.booleans())
def test_against_thinking_both_answers_through(seed, joint):
    X, Y, new = problem(seed)
    model = CredalChainClassifier(s=4.0, random_state=0)
    if joint:
        model = JointDecision(CredalChainClassifier(random_state=0), 0.3, calibration_folds=None)
    model.fit(X, Y)
    known = np.full((len(new), 4), -1, np.int8)
    known[::3, 0] = 1
    expected = by_hand(model, new, known)
    found = next_questions(model, new, 100, known=known)
    assert {question.row for question in found} == set(expected)
    names = model.label_names_.tolist()
    for question in found:
        label, lower, upper = expected[question.row]
        assert question.settles == pytest.approx((lower, upper), abs=1e-9)
        assert 1 <= question.settles[0] <= question.settles[1] <= 4
        assert names[label] == question.label
    lower = [question.settles[0] for question in found]
    assert lower == sorted(lower, reverse=True)
    assert next_questions(model, new, 2, known=known) == found[:2]


@pytest.mark.parametrize("order", ["least sure", "in order", "random"])
def test_other_orders(order):
    X, Y, new = problem(0)
    model = CredalChainClassifier(s=4.0, random_state=0).fit(X, Y)
    found = next_questions(model, new, 100, order=order, random_state=0)
    prediction = model.infer(new)
    rows = np.flatnonzero(prediction.abstained.any(axis=1)).tolist()
    assert sorted(question.row for question in found) == rows
    places = [model.label_names_.tolist().index(question.label) for question in found]
    assert all(
        prediction.abstained[question.row, j] for question, j in zip(found, places, strict=True)
    )
    if order == "in order":
        assert [question.row for question in found] == rows
    if order == "least sure":
        middle = prediction.interval.mean(axis=-1)
        away = [abs(middle[q.row, j] - 0.5) for q, j in zip(found, places, strict=True)]
        assert away == sorted(away)


def test_without_chaining_an_answer_settles_itself_alone():
    X, Y, new = problem(1)
    model = CredalBinaryRelevanceClassifier(s=4.0).fit(X, Y)
    for question in next_questions(model, new, 100):
        assert question.settles == (1.0, 1.0)


def test_tables_of_all_kinds_and_pipelines():
    X, Y, new = problem(2)
    names = ["a", "b", "c"]
    model = CredalChainClassifier(s=4.0, random_state=0).fit(pd.DataFrame(X, columns=names), Y)
    table = pd.DataFrame(new, columns=names, index=range(100, 100 + len(new)))
    found = next_questions(model, table)
    assert found == next_questions(model, table, known=pd.DataFrame({"label0": [None] * len(new)}))
    assert max(question.row for question in found) < len(new)
    pipeline = make_pipeline(StandardScaler(), CredalChainClassifier(s=4.0, random_state=0))
    assert next_questions(pipeline.fit(X, Y), new)
    rows = sparse.csr_array(np.where(X > 0, 1.0, 0.0))
    model = CredalChainClassifier(s=4.0, random_state=0).fit(rows, Y)
    assert next_questions(model, rows[:20])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"budget": 0}, "budget"),
        ({"order": "backwards"}, "order must be"),
        ({"known": [[1, 0]]}, "known must have shape"),
    ],
)
def test_what_is_refused(options, words):
    X, Y, new = problem(0)
    model = CredalChainClassifier(s=4.0, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match=words):
        next_questions(model, new, **options)


def test_nothing_is_open():
    X, Y, new = problem(0)
    assert next_questions(CredalChainClassifier(s=0.0, random_state=0).fit(X, Y), new) == []
