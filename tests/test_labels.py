"""as_labels, the one reader of missing codes."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone

from credalchain import CredalChainClassifier, PromisedClassifier, as_labels, choose_caution

EXPECTED = [[1, 0], [-1, 1], [0, -1]]
FLOATS = [[1, 0], [np.nan, 1], [0, np.nan]]

SAME = {
    "floats with NaN": np.array(FLOATS),
    "minus one": np.array(EXPECTED),
    "nested lists with None": [[1, 0], [None, 1], [0, None]],
    "masked": np.ma.masked_array([[1, 0], [9, 1], [0, 9]], mask=[[0, 0], [1, 0], [0, 1]]),
    "masked booleans": np.ma.masked_array(
        [[True, False], [True, True], [False, True]], mask=[[0, 0], [1, 0], [0, 1]]
    ),
    "frame of floats": pd.DataFrame(FLOATS),
    "nullable integers": pd.DataFrame({"a": [1, pd.NA, 0], "b": [0, 1, pd.NA]}, dtype="Int64"),
    "nullable booleans": pd.DataFrame(
        {"a": [True, pd.NA, False], "b": [False, True, pd.NA]}, dtype="boolean"
    ),
    "mixed frame": pd.DataFrame({"a": [1.0, np.nan, 0.0], "b": pd.array([0, 1, pd.NA], "Int8")}),
    "objects": np.array([[True, 0], [pd.NA, 1.0], [0, None]], dtype=object),
    "polars": pl.DataFrame({"a": [1, None, 0], "b": [0, 1, None]}),
    "sparse": sparse.csr_array(np.array(EXPECTED)),
    "sparse matrix with NaN": sparse.csr_matrix(np.array(FLOATS)),
    "coo": sparse.coo_array(np.array(EXPECTED)),
    "float32": np.array(FLOATS, dtype=np.float32),
}


@pytest.mark.parametrize("Y", SAME.values(), ids=SAME.keys())
def test_every_way_to_write_missing(Y):
    labels = as_labels(Y)
    assert labels.dtype == np.int8
    assert labels.flags.c_contiguous
    assert labels.tolist() == EXPECTED


@pytest.mark.parametrize("Y", SAME.values(), ids=SAME.keys())
def test_every_way_to_write_missing_fits_the_same_model(Y):
    X = [[0.0], [1.0], [2.0]]
    chain = CredalChainClassifier(order="given").fit(X, Y)
    reference = CredalChainClassifier(order="given").fit(X, EXPECTED)
    assert chain.model_.counts == reference.model_.counts


@pytest.mark.parametrize("Y", [np.array([[1, 0]], dtype=d) for d in ("u1", "i8", "f2", "?")])
def test_plain_types(Y):
    assert as_labels(Y).tolist() == [[1, 0]]


def test_a_vector_becomes_a_column():
    assert as_labels([1, 0, -1]).shape == (3, 1)


ILLEGAL = {
    "two": ([[0, 2]], r"got 2.* row 0, column 1"),
    "half": ([[0.5, 1]], r"got 0.5.* row 0, column 0"),
    "word": ([["yes", "no"]], r"Y must hold 0, 1 or missing.*got 'yes' in row 0, column 0"),
    "text beside numbers": (
        pd.DataFrame({"a": ["0", "1", "yes"]}),
        r"got 'yes' in row 2, column a",
    ),
    "word among objects": (np.array([[1, "yes"]], dtype=object), r"Y must hold.*got 'yes'"),
    "infinite": ([[np.inf, 1]], r"got inf"),
    "minus two": ([[-2, 1]], r"got -2"),
    "named column": (pd.DataFrame({"rock": [0, 1], "pop": [1, 3]}), r"got 3.*row 1, column pop"),
    "complex": ([[1j, 0]], r"Y must hold"),
    "three dimensions": (np.zeros((1, 1, 1)), r"two dimensions"),
    "scalar": (1, r"two dimensions"),
}


@pytest.mark.parametrize(("Y", "message"), ILLEGAL.values(), ids=ILLEGAL.keys())
def test_illegal_labels_are_named(Y, message):
    with pytest.raises(ValueError, match=message):
        as_labels(Y)


def test_minus_one_for_no_is_refused_with_a_hint():
    with pytest.raises(ValueError, match=r"-1 means 'missing', not 'no'.*\(Y > 0\)"):
        as_labels([[1, -1], [-1, 1]])
    assert as_labels([[1, -1]], require_zero=False).tolist() == [[1, -1]]
    assert as_labels([[1, np.nan]]).tolist() == [[1, -1]]
    assert as_labels([[-1, -1]]).tolist() == [[-1, -1]]


def test_error_names_the_argument():
    with pytest.raises(ValueError, match="known must hold"):
        as_labels([[5]], name="known")


SETS = [["rock", "pop"], [], {"rock"}, ("jazz", "pop"), ["jazz"], ["rock", "jazz"]]


def test_rows_of_label_names():
    X = np.arange(6.0)[:, None]
    matrix = pd.DataFrame(
        {name: [int(name in row) for row in SETS] for name in ("jazz", "pop", "rock")}
    )
    chain = CredalChainClassifier(order="given", s=0.5)
    expected = chain.fit(X, matrix).infer(X)
    for sets in (SETS, pd.Series(SETS), np.array(SETS, dtype=object)):
        found = chain.fit(X, sets).infer(X)
        assert found.label_names == ("jazz", "pop", "rock")
        np.testing.assert_array_equal(found.log_odds, expected.log_odds)
        assert chain.score(X, sets) == chain.score(X, matrix)
    with pytest.raises(ValueError, match="names a label 'punk' that was not there in fit"):
        chain.score(X[:2], [["rock"], ["punk"]])


def test_lists_of_label_names_in_promises_and_in_the_choice_of_caution():
    X = np.random.default_rng(0).normal(size=(200, 2))
    Y = [[name for name, x in zip(("pop", "rock"), row, strict=True) if x > 0] for row in X]
    frame = pd.DataFrame({name: [int(name in row) for row in Y] for name in ("pop", "rock")})
    chain = CredalChainClassifier(order="given")
    promised = PromisedClassifier(chain, {"row_error": 0.2}, random_state=0)
    found, expected = (clone(promised).fit(X, given) for given in (Y, frame))
    assert found.label_names_.tolist() == ["pop", "rock"]
    assert str(found.report_) == str(expected.report_)
    only_rock = [["rock"]] * len(X)
    table = frame.assign(pop=0, rock=1)
    assert str(found.check(X, only_rock)) == str(expected.check(X, table))
    with pytest.raises(ValueError, match="names a label 'jazz' that was not there"):
        found.check(X[:1], [["jazz"]])
    chosen = [choose_caution(chain, X, given, random_state=0) for given in (Y, frame)]
    assert chosen[0] == chosen[1]


def test_a_row_of_which_nobody_knows_the_labels():
    with pytest.raises(ValueError, match=r"got None in row 1. A row without labels is \[\]"):
        CredalChainClassifier().fit([[0], [1], [2]], [["rock"], None, ["pop"]])


def test_label_names_where_a_matrix_is_needed():
    X = np.arange(40.0)[:, None]
    with pytest.raises(ValueError, match="equally many labels in every row. Names of labels are"):
        as_labels(SETS)
    for cells in ([["0", "1"], ["1", "1"]], [["rock", 1], ["pop", 0]], [["yes"], ["No"]]):
        with pytest.raises(ValueError, match="must hold 0, 1 or missing"):
            CredalChainClassifier().fit(X[:2], cells)
