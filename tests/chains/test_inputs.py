"""Tables of all kinds as numbers."""

import numpy as np
import pytest
from scipy import sparse

from credalchain import CredalChainClassifier, CredalForest, CredalWrapper
from credalchain.preprocessing import TableEncoder

pd = pytest.importorskip("pandas")

FRAME = pd.DataFrame(
    {
        "age": [20, 35, None, 50],
        "town": ["Oslo", "Rome", "Oslo", None],
        "size": pd.Categorical(["S", "L", "S", "L"], categories=["S", "M", "L"]),
        "member": [True, False, True, True],
    }
)
NEW = pd.DataFrame(
    {"age": [1.5], "town": ["Bonn"], "size": pd.Categorical(["M"], ["S", "M"]), "member": [False]}
)


def test_words_become_the_number_of_their_category():
    encoder = TableEncoder.learn(FRAME)
    expected = [[20, 0, 0, 1], [35, 1, 2, 0], [np.nan, 0, 0, 1], [50, np.nan, 2, 1]]
    np.testing.assert_array_equal(encoder.encode(FRAME), expected)
    np.testing.assert_array_equal(encoder.encode(NEW), [[1.5, np.nan, 1, 0]])


def test_or_a_column_for_each_category():
    encoder = TableEncoder.learn(FRAME)
    expected = [
        [0, 20, 1, 0, 1, 0, 0, 1],
        [0, 35, 0, 1, 0, 0, 1, 0],
        [0, np.nan, 1, 0, 1, 0, 0, 1],
        [0, 50, 0, 0, 0, 0, 1, 1],
    ]
    np.testing.assert_array_equal(encoder.encode_table(FRAME), expected)
    np.testing.assert_array_equal(encoder.encode_table(NEW), [[0, 1.5, 0, 0, 0, 1, 0, 0]])


def test_plain_numbers_are_left_alone():
    X = np.arange(6.0).reshape(3, 2)
    encoder = TableEncoder.learn(X)
    assert encoder.encode(X) is X
    assert encoder.encode(X, np.float32).dtype == np.float32
    thin = sparse.csr_array(X)
    np.testing.assert_array_equal(encoder.encode(thin), X)
    assert sparse.issparse(encoder.encode_table(thin))


def test_columns_that_change_their_kind():
    encoder = TableEncoder.learn(FRAME)
    with pytest.raises(ValueError, match="column 'town' of X held text in fit and holds numbers"):
        encoder.encode(FRAME.assign(town=3))
    with pytest.raises(ValueError, match="column 'age' of X held numbers in fit and holds text"):
        encoder.encode(FRAME.assign(age="old"))
    nothing = encoder.encode(FRAME.assign(age=None, town=None))
    assert np.isnan(nothing[:, :2]).all()


def test_a_column_without_any_value_in_training():
    encoder = TableEncoder.learn(FRAME.assign(town=None))
    assert np.isnan(encoder.encode(FRAME)[:, 1]).all()


def test_sparse_rows_have_no_words():
    encoder = TableEncoder.learn(FRAME)
    for turn in (encoder.encode, encoder.encode_table):
        with pytest.raises(ValueError, match="held text in fit and is a sparse matrix now"):
            turn(sparse.csr_array((2, 4)))


def test_lists_of_mixed_rows_keep_their_numbers():
    rows = [["Oslo", 0.31], ["Rome", -1.2], ["Oslo", 2.0], ["Rome", 0.4]] * 5
    chain = CredalChainClassifier(CredalForest(), random_state=0).fit(rows, [[0, 1], [1, 0]] * 10)
    assert list(chain.model_.encoder.words) == [0]
    assert chain.predict([["Oslo", 1.0]]).shape == (1, 2)


@pytest.mark.parametrize("base", [CredalForest(), CredalWrapper()])
def test_every_base_takes_words(base):
    rng = np.random.default_rng(0)
    town = rng.choice(["Oslo", "Rome", "Bonn"], 90)
    X = pd.DataFrame({"town": town, "age": rng.normal(size=90)})
    Y = np.stack([town == "Oslo", (town == "Rome") | (X["age"] > 1)], axis=1).astype(int)
    chain = CredalChainClassifier(base, s=0.1, random_state=0).fit(X, Y)
    assert (chain.predict(X) == Y).mean() > 0.9
    assert chain.predict_partial(X.assign(town="Lima")).shape == Y.shape  # never seen


def test_a_column_that_declares_no_categories_stays_missing():
    nothing = pd.DataFrame({"a": [1.0, 2.0], "b": pd.Categorical([None, None])})
    encoder = TableEncoder.learn(nothing)
    np.testing.assert_array_equal(
        encoder.encode(nothing.assign(b=["x", "y"])), [[1, np.nan], [2, np.nan]]
    )
