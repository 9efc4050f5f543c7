"""Precision, recall, F1 and ranking loss: slow literal twins, and scikit-learn where it applies."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics

from credalchain import CredalPrediction, Exactness, metrics
from credalchain.metrics.measures import CELL_MEASURES, middle_log_odds
from credalchain.model_selection import PathPrediction, score_path


def cells_of(truth, labels, j):
    """(true, predicted) of the observed rows of a label, or of all labels (None)."""
    columns = range(truth.shape[1]) if j is None else [j]
    return [
        (truth[i, k], labels[i, k]) for k in columns for i in range(len(truth)) if truth[i, k] != -1
    ]


def literal(kind, cells):
    """The share as its docstring says it, by counting; None where it is 0/0."""
    if kind.startswith("selective"):
        cells = [(y, guess) for y, guess in cells if guess != -1]
        kind = kind.removeprefix("selective_")
    found = sum(y == 1 and guess == 1 for y, guess in cells)
    said = sum(guess == 1 for _, guess in cells)
    there = sum(y == 1 for y, _ in cells)
    share, of = {
        "precision": (found, said),
        "recall": (found, there),
        "missed": (sum(y == 1 and guess == 0 for y, guess in cells), there),
        "f1": (2 * found, said + there),
    }[kind]
    return share / of if of else None


def slow(name, truth, labels):
    kind, _, average = name.rpartition("_")
    if average == "micro":
        value = literal(kind, cells_of(truth, labels, None))
        return np.nan if value is None else value
    values = [literal(kind, cells_of(truth, labels, j)) for j in range(truth.shape[1])]
    defined = [value for value in values if value is not None]
    return sum(defined) / len(defined) if defined else np.nan


def matrices(seed, n, m, lowest=-1):
    rng = np.random.default_rng(seed)
    return [rng.integers(lowest, 2, (n, m)).astype(np.int8) for _ in range(2)]


SIZES = {"seed": st.integers(0, 10**6), "n": st.integers(1, 9), "m": st.integers(1, 5)}


@pytest.mark.parametrize("name", CELL_MEASURES)
class TestCellMeasures:
    @given(**SIZES)
    def test_by_the_literal_definition(self, name, seed, n, m):
        truth, labels = matrices(seed, n, m)
        found = CELL_MEASURES[name].function(truth, labels)
        assert found == pytest.approx(slow(name, truth, labels), nan_ok=True)

    @given(**SIZES)
    def test_as_scikit_learn_if_everything_is_answered(self, name, seed, n, m):
        truth, labels = matrices(seed, n, m, lowest=0)
        kind, _, average = name.removeprefix("selective_").partition("_")
        is_missed = kind == "missed"  # all that is not found, if everything is answered
        function = getattr(sklearn_metrics, f"{'recall' if is_missed else kind}_score")
        # one column is a vector there, whose classes would be averaged
        pad = np.zeros((n, 1), dtype=np.int8)
        expected = function(
            np.hstack([truth, pad]), np.hstack([labels, pad]), average=average, zero_division=np.nan
        )
        found = CELL_MEASURES[name].function(truth, labels)
        expected = 1 - expected if is_missed else expected
        assert found == pytest.approx(expected, nan_ok=True)

    @given(**SIZES)
    def test_along_a_path(self, name, seed, n, m):
        truth, labels = matrices(seed, n, m)
        path = np.stack([labels, np.abs(labels), np.full_like(labels, -1)])
        (column,) = score_path([name], truth, PathPrediction((0.0, 1.0, 2.0), path))
        single = [CELL_MEASURES[name].function(truth, one) for one in path]
        assert column == pytest.approx(single, nan_ok=True)


def test_an_open_positive_is_not_recalled_and_does_not_count_among_the_answered():
    truth, labels = [[1], [1], [1], [1]], [[1], [1], [0], [-1]]
    assert metrics.recall_micro(truth, labels) == 2 / 4
    assert metrics.selective_recall_micro(truth, labels) == 2 / 3
    assert metrics.recall_micro(truth, [[1], [1], [0], [0]]) == 2 / 4


def test_hamming_loss_counts_wrong_answers_among_all_labels():
    truth, labels = matrices(0, 50, 4, lowest=0)
    expected = sklearn_metrics.hamming_loss(truth, labels)
    assert metrics.hamming_loss(truth, labels) == pytest.approx(expected)
    assert metrics.hamming_loss([[1, 1, 0, -1]], [[1, 0, -1, 1]]) == pytest.approx(1 / 3)
    assert metrics.selective_error(truth, labels) == pytest.approx(expected)
    assert metrics.abstention_loss(truth, labels) == pytest.approx(expected)


# -- ranking loss ----------------------------------------------------------------------------


def with_log_odds(log_odds):
    n, m = log_odds.shape[:2]
    labels = np.full((n, m), -1, dtype=np.int8)
    names = tuple(f"label{j}" for j in range(m))
    return CredalPrediction(labels, log_odds, (Exactness.EXACT,) * m, names)


def slow_ranking_loss(truth, middle):
    rows = []
    for y, score in zip(truth, middle, strict=True):
        pairs = [
            (score[k], score[i]) for i in np.flatnonzero(y == 1) for k in np.flatnonzero(y == 0)
        ]
        if (y != -1).any():
            wrong = sum(negative >= positive for negative, positive in pairs)
            rows.append(wrong / len(pairs) if pairs else 0.0)
    return np.mean(rows) if rows else np.nan


def some_bounds(seed, n, m):
    """With ties, in steps of one; some bounds infinite."""
    rng = np.random.default_rng(seed)
    bounds = np.sort(rng.integers(-3, 4, (n, m, 2)).astype(float), axis=-1)
    return np.where(np.abs(bounds) == 3, np.copysign(np.inf, bounds), bounds)


@given(**SIZES)
def test_ranking_loss_by_its_definition(seed, n, m):
    truth, _ = matrices(seed, n, m)
    bounds = some_bounds(seed, n, m)
    middle = 1 / (1 + np.exp(-bounds)).astype(np.longdouble)
    expected = slow_ranking_loss(truth, middle_log_odds(bounds))
    assert metrics.ranking_loss(truth, with_log_odds(bounds)) == pytest.approx(
        expected, nan_ok=True
    )
    by_probability = slow_ranking_loss(truth, middle.sum(axis=-1).round(12))
    in_steps = slow_ranking_loss(truth, middle_log_odds(bounds).round(9))
    assert in_steps == pytest.approx(by_probability, nan_ok=True)


@given(seed=st.integers(0, 10**6), n=st.integers(1, 9), m=st.integers(2, 6))
def test_ranking_loss_as_scikit_learn_if_nothing_is_missing(seed, n, m):
    truth, _ = matrices(seed, n, m, lowest=0)
    bounds = np.random.default_rng(seed).integers(-9, 9, (n, m, 1)).astype(float)
    prediction = with_log_odds(np.repeat(bounds, 2, axis=-1))
    expected = sklearn_metrics.label_ranking_loss(truth, bounds[..., 0])
    assert metrics.ranking_loss(truth, prediction) == pytest.approx(expected)


def test_sure_labels_keep_their_order():
    """As probabilities all of these are 1, which would be ties."""
    bounds = np.array([[[50.0, 60.0], [70.0, 80.0], [90.0, 90.0]]])
    assert metrics.ranking_loss([[0, 1, 1]], with_log_odds(bounds)) == 0
    assert metrics.ranking_loss([[1, 0, 0]], with_log_odds(-bounds)) == 0
    assert metrics.ranking_loss([[1, 0, 0]], with_log_odds(bounds)) == 1


def test_ranking_loss_needs_bounds():
    with pytest.raises(TypeError, match="CredalPrediction"):
        metrics.ranking_loss([[1, 0]], [[1, 0]])
