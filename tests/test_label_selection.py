"""Which labels people see first."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalchain.labels import and_more, select_labels


def one_row(answers):
    middle = {1: 0.9, 0: 0.1, -1: 0.5}
    bounds = np.array(
        [[(middle[y] - 0.05 + j / 1e3, middle[y] + 0.05) for j, y in enumerate(answers)]]
    )
    return np.array([answers]), bounds


def test_open_labels_then_yes_then_no():
    answers = [0, 0, 1, -1, 1, 0, -1, 0]
    assert select_labels(*one_row(answers), 8).tolist() == list(range(8))
    assert select_labels(*one_row(answers), None).tolist() == list(range(8))
    assert select_labels(*one_row(answers), 5).tolist() == [6, 3, 4, 2, 0]


def test_a_quarter_is_kept_for_what_is_answered():
    chosen = select_labels(*one_row([-1] * 30 + [1] * 9), 8).tolist()
    assert [j >= 30 for j in chosen] == [False] * 6 + [True] * 2
    assert select_labels(*one_row([-1] * 30), 8).tolist() == list(range(29, 21, -1))


@given(
    seed=st.integers(0, 10**6), n=st.integers(0, 4), m=st.integers(1, 30), most=st.integers(1, 30)
)
def test_laws(seed, n, m, most):
    rng = np.random.default_rng(seed)
    labels = rng.integers(-1, 2, (n, m))
    chosen = select_labels(labels, np.sort(rng.uniform(size=(n, m, 2)), axis=-1), most)
    assert len(set(chosen.tolist())) == len(chosen) == min(m, most)
    if m > most:
        n_open = (labels[:, chosen] == -1).sum(axis=0)
        assert (np.diff(n_open) <= 0).all()


@pytest.mark.parametrize("bad", [0, -1, 2.5, "all"])
def test_what_is_refused(bad):
    with pytest.raises(ValueError, match="max_labels must be a whole number, at least 1"):
        select_labels([[1]], [[[0.6, 0.7]]], bad)


def test_words():
    assert and_more(20, 169) == "and 149 more"
    assert and_more(20, 20) == ""
