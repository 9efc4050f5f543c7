"""The Discretizer."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.frozen import FrozenEstimator

from credalchain import CredalChainClassifier, CredalForest, Discretizer, NaiveCredal
from credalchain.preprocessing import Categories, NumericBins, ZeroAndBins


def literal_cuts(values, z):
    """Order statistics of rank floor(i n / z), counted from 1, equal ones merged."""
    ordered = sorted(values)
    n = len(ordered)
    if len(set(ordered)) < 2:
        return []
    return sorted({ordered[i * n // z - 1] for i in range(1, z) if i * n // z > 0})


@given(
    st.lists(st.one_of(st.integers(-3, 3), st.floats(-2, 2)), min_size=1, max_size=40),
    st.integers(2, 8),
)
def test_bins_equal_their_definition(values, z):
    column = np.array(values, dtype=float)[:, None]
    discretizer = Discretizer(n_bins=z).fit(column)
    cuts = literal_cuts([float(v) for v in values], z)
    assert discretizer.binnings_[0].cuts.tolist() == cuts
    assert discretizer.n_categories_.tolist() == [len(cuts) + 1]
    expected = [sum(cut < v for cut in cuts) for v in column[:, 0]]
    assert discretizer.transform(column)[:, 0].tolist() == expected


def test_distinct_values_fill_bins_equally():
    codes = Discretizer(n_bins=6).fit_transform(np.random.default_rng(0).permutation(60)[:, None])
    assert np.bincount(codes[:, 0]).tolist() == [10] * 6


def test_values_beyond_the_range_fall_into_the_end_bins():
    discretizer = Discretizer(n_bins=3).fit(np.arange(9.0)[:, None])
    assert discretizer.transform([[-100.0], [100.0]])[:, 0].tolist() == [0, 2]


def test_ties_and_constants_without_warnings():
    X = np.column_stack([np.zeros(10), np.r_[np.zeros(9), 1], np.full(10, np.nan)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        discretizer = Discretizer().fit(X)
    assert discretizer.n_categories_.tolist() == [1, 2, 1]
    assert discretizer.transform(X)[:, 2].tolist() == [-1] * 10


def test_mixed_frame():
    frame = pd.DataFrame(
        {
            "number": [1.0, 2.0, np.nan, 4.0],
            "integer": pd.array([1, pd.NA, 3, 4], dtype="Int64"),
            "flag": [True, False, True, True],
            "maybe": pd.array([True, pd.NA, False, True], dtype="boolean"),
            "word": ["b", None, "a", "b"],
            "size": pd.Categorical(["S", "L", None, "S"], categories=["S", "M", "L"]),
        }
    )
    discretizer = Discretizer(n_bins=2).fit(frame)
    kinds = [type(binning) for binning in discretizer.binnings_]
    assert kinds == [NumericBins, NumericBins, Categories, Categories, Categories, Categories]
    assert discretizer.n_categories_.tolist() == [2, 2, 2, 2, 2, 3]
    codes = discretizer.transform(frame)
    assert codes[:, 1].tolist() == [0, -1, 1, 1]
    assert codes[:, 2].tolist() == [1, 0, 1, 1]
    assert codes[:, 3].tolist() == [1, -1, 0, 1]
    assert codes[:, 4].tolist() == [1, -1, 0, 1]
    assert codes[:, 5].tolist() == [0, 2, -1, 0]
    new = frame.iloc[:1].assign(word="never seen", size="XL")
    assert discretizer.transform(new)[0, 4:].tolist() == [2, 3]
    assert discretizer.get_feature_names_out().tolist() == list(frame.columns)


def test_categories_are_matched_by_value_not_by_position():
    fit = pd.DataFrame({"c": pd.Categorical(["x", "y"], categories=["x", "y"])})
    other = pd.DataFrame({"c": pd.Categorical(["x", "y"], categories=["y", "x"])})
    discretizer = Discretizer().fit(fit)
    np.testing.assert_array_equal(discretizer.transform(fit), discretizer.transform(other))


def test_polars_and_object_arrays():
    frame = pl.DataFrame({"word": ["b", "a", None], "number": [1, 2, None]})
    assert Discretizer(n_bins=2).fit_transform(frame)[:, 0].tolist() == [1, 0, -1]
    objects = np.array([["b", 1.0], ["a", 2.0], [None, None]], dtype=object)
    np.testing.assert_array_equal(
        Discretizer(n_bins=2).fit_transform(objects), Discretizer(n_bins=2).fit_transform(frame)
    )


def test_intervals_of_pandas_cut_are_categories():
    frame = pd.DataFrame({"age": pd.cut([1, 5, 9, 5], [0, 3, 6, 10])})
    assert Discretizer().fit_transform(frame)[:, 0].tolist() == [0, 1, 2, 1]


def test_sparse_columns_keep_zero_as_a_category():
    dense = np.array([[0, 1.0, 0, 5], [0, 0, 0, 6], [0, 1, 0, 7], [0, 0, np.nan, 8.0]])
    X = sparse.csr_array(dense)
    discretizer = Discretizer(n_bins=2).fit(X)
    assert all(isinstance(binning, ZeroAndBins) for binning in discretizer.binnings_)
    assert discretizer.n_categories_.tolist() == [2, 2, 2, 3]
    codes = discretizer.transform(X)
    assert sparse.issparse(codes)
    expected = [[0, 1, 0, 1], [0, 0, 0, 1], [0, 1, 0, 2], [0, 0, -1, 2]]
    assert codes.toarray().tolist() == expected
    assert discretizer.transform(dense).tolist() == expected


def test_explicit_zeros_are_zeros():
    X = sparse.csr_array(([0.0, 2.0], [0, 1], [0, 2]), shape=(1, 2))
    X.data[0] = 0.0
    assert Discretizer().fit(X).transform(X).toarray().tolist() == [[0, 1]]


def test_dense_bins_take_sparse_input():
    X = np.array([[1.0, 0], [2, 3], [0, 4]])
    discretizer = Discretizer(n_bins=2).fit(X)
    np.testing.assert_array_equal(
        discretizer.transform(sparse.csr_array(X)), discretizer.transform(X)
    )


def test_many_categories_get_a_wider_type():
    words = [[f"word{i % 1000}"] for i in range(2000)]
    codes = Discretizer().fit_transform(np.array(words))
    assert codes.dtype == np.int16
    assert len(set(codes[:, 0].tolist())) == 1000


@pytest.mark.parametrize("n_bins", [1, 0, -3, 2.5, "six", None, True])
def test_bad_n_bins(n_bins):
    with pytest.raises(ValueError, match="n_bins must be a whole number"):
        Discretizer(n_bins=n_bins).fit([[1.0]])


def test_bad_columns():
    with pytest.raises(ValueError, match=r"'when'.*datetime64"):
        Discretizer().fit(pd.DataFrame({"when": pd.to_datetime(["2020-01-01"])}))
    with pytest.raises(TypeError, match="a column all of one kind: column 'c'"):
        Discretizer().fit(pd.DataFrame({"c": ["a", 1]}))
    with pytest.raises(ValueError, match="infinity"):
        Discretizer().fit(pd.DataFrame({"c": [np.inf, 1]}))
    with pytest.raises(ValueError, match="at least one row"):
        Discretizer().fit(pd.DataFrame({"c": []}))
    numbers = Discretizer().fit(pd.DataFrame({"c": [1.0, 2.0]}))
    with pytest.raises(ValueError, match="'c' of X held numbers in fit and holds text now"):
        numbers.transform(pd.DataFrame({"c": ["a"]}))
    words = Discretizer().fit(pd.DataFrame({"c": ["a", "b"]}))
    with pytest.raises(ValueError, match="'c' of X held text in fit and holds numbers now"):
        words.transform(pd.DataFrame({"c": [1.0]}))


def test_a_frozen_discretizer_keeps_its_bins():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(50, 2)), rng.integers(0, 2, size=(50, 2))
    frozen = FrozenEstimator(Discretizer(n_bins=3).fit(X))
    chain = CredalChainClassifier(NaiveCredal(discretizer=frozen), order="given")
    chain.fit(X[:10], Y[:10])
    np.testing.assert_array_equal(
        chain.model_.encode(X).entries, frozen.transform(X).astype(np.uint8)
    )
    halves = CredalChainClassifier(NaiveCredal(discretizer=frozen), order="given")
    halves.partial_fit(X[:20], Y[:20]).partial_fit(X[20:], Y[20:])
    assert halves.model_.counts == chain.fit(X, Y).model_.counts


def test_missing_features_follow_the_setting():
    X = np.array([[0], [0], [1], [1], [1]])
    Y = np.array([[0], [0], [1], [1], [1]])
    for mode in ("ignore", "conservative"):
        base = NaiveCredal(discretizer=None, missing_features=mode)
        chain = CredalChainClassifier(base, s=0.5).fit(X, Y)
        lower, upper = chain.predict_interval([[-1.0]])[0, 0]
        assert (upper - lower < 1e-9) == (mode == "ignore")
        nan = chain.infer(np.array([[np.nan]]))
        assert nan.interval[0, 0].tolist() == [lower, upper]
        assert chain.predict([[-1]]).tolist() == [[1]]


@pytest.mark.parametrize("base", [NaiveCredal(), CredalForest()])
def test_texts_like_names_are_warned_about(base):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=40), "title": [f"song {i}" for i in range(40)]})
    Y = rng.integers(0, 2, (40, 2))
    with pytest.warns(UserWarning, match="column 'title' of X: more than half as many"):
        CredalChainClassifier(base).fit(X, Y)
    CredalChainClassifier(base).fit(X.assign(title=["a", "b"] * 20), Y)  # no warning
    CredalChainClassifier(base).fit(X[:10], Y[:10])  # too few rows to tell
