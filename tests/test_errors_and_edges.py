"""Illegal parameters and input, one clear message each; and what is legal though small."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from credalchain import (
    CredalBinaryRelevanceClassifier,
    CredalChainClassifier,
    Discretizer,
    NaiveCredal,
    partial_report,
)
from credalchain.metrics import completeness, maximin_accuracy, set_accuracy

X = np.array([[0.1, 1.0], [0.4, 2.0], [0.8, 2.0], [0.9, 0.5]])
Y = np.array([[0, 1, 0], [1, 1, 0], [1, 0, 1], [0, 0, 1]])

BAD_PARAMETERS = {
    "negative s": ({"s": -1}, r"s must be a number, 0 or positive .*got -1"),
    "infinite s": ({"s": np.inf}, r"s must be .*got inf"),
    "NaN s": ({"s": np.nan}, r"s must be .*got nan"),
    "tiny s": ({"s": 1e-300}, r"s must be .*got 1e-300"),
    "word s": ({"s": "two"}, r"s must be .*got 'two'"),
    "bool s": ({"s": True}, r"s must be .*got True"),
    "list s": ({"s": [1.0]}, r"s must be .*got \[1.0\]"),
    "strategy": ({"strategy": "guess"}, r"strategy must be 'branching', .*got 'guess'"),
    "strategy type": ({"strategy": 3}, r"strategy must be .*got 3"),
    "threshold 0": ({"threshold": 0}, r"threshold must be strictly between 0 and 1 .*got 0"),
    "threshold 1": ({"threshold": 1.0}, r"threshold must be strictly .*got 1.0"),
    "threshold word": ({"threshold": "half"}, r"threshold must be .*got 'half'"),
    "threshold count": ({"threshold": [0.5, 0.5]}, r"one per label \(3\), got .*\(2,\)"),
    "threshold one bad": ({"threshold": [0.5, 2, 0.5]}, r"strictly between 0 and 1 .*got .*2.0"),
    "order word": ({"order": "alphabetical"}, r"order must be 'random'.*got 'alphabetical'"),
    "order short": ({"order": [0, 1]}, r"permutation of 0..2 .*got \[0, 1\]"),
    "order twice": ({"order": [0, 1, 1]}, r"permutation of 0..2"),
    "order beyond": ({"order": [1, 2, 3]}, r"permutation of 0..2"),
    "order floats": ({"order": [0.0, 1.0, 2.0]}, r"permutation of 0..2"),
    "order none": ({"order": None}, r"order must be .*got None"),
    "epsilon 1": ({"base": NaiveCredal(epsilon=1)}, r"epsilon must be .*\[0, 1\).*got 1"),
    "epsilon negative": ({"base": NaiveCredal(epsilon=-0.1)}, r"epsilon must be .*got -0.1"),
    "prior": ({"base": NaiveCredal(prior="flat")}, r"prior must be one of 'laplace'.*'flat'"),
    "denominator": ({"base": NaiveCredal(denominator=2)}, r"denominator must be one of .*got 2"),
    "missing_features": (
        {"base": NaiveCredal(missing_features="drop")},
        r"missing_features must be one of 'ignore', 'conservative', got 'drop'",
    ),
    "discretizer": ({"base": NaiveCredal(discretizer="bins")}, r"discretizer must be .*'bins'"),
    "n_bins": ({"base": NaiveCredal(discretizer=Discretizer(n_bins=1))}, r"n_bins must be .*got 1"),
}


@pytest.mark.parametrize(("params", "message"), BAD_PARAMETERS.values(), ids=BAD_PARAMETERS.keys())
def test_bad_parameters_at_fit(params, message):
    with pytest.raises(ValueError, match=message):
        CredalChainClassifier(**params).fit(X, Y)


@pytest.mark.parametrize("name", [n for n in BAD_PARAMETERS if n[:2] in ("ne", "NaN", "st", "th")])
def test_bad_parameters_set_after_fit(name):
    params, message = BAD_PARAMETERS[name]
    chain = CredalChainClassifier().fit(X, Y).set_params(**params)
    with pytest.raises(ValueError, match=message):
        chain.predict_partial(X)


def test_bad_base():
    with pytest.raises(TypeError, match=r"base must be None or have fit_chain.*got 'naive'"):
        CredalChainClassifier("naive").fit(X, Y)


BAD_DATA = {
    "two": (X, [[0, 2], [1, 0], [0, 1], [1, 1]], r"Y must hold .*got 2 in row 0, column 1"),
    "yes": (X, [["yes", "no"]] * 4, r"Y must hold"),
    "plus minus": (X, np.where(Y == 0, -1, 1), r"-1 means 'missing'"),
    "lengths": (X, Y[:3], r"inconsistent numbers of samples"),
    "no labels": (X, np.empty((4, 0)), r"Y must have at least one row and one label"),
    "no Y": (X, None, r"requires y to be passed"),
    "no rows": (X[:0], Y[:0], r"0 sample"),
    "vector X": (X[:, 0], Y, r"Expected 2D array"),
    "infinite X": (np.where(X == 2, np.inf, X), Y, r"infinity"),
    "empty frame": (pd.DataFrame({"a": []}), Y[:0], r"at least one row"),
    "many classes": (X, [0, 1, 2, 3], r"Only binary classification is supported"),
}


@pytest.mark.parametrize(("X", "Y", "message"), BAD_DATA.values(), ids=BAD_DATA.keys())
def test_bad_data(X, Y, message):
    with pytest.raises(ValueError, match=message):
        CredalChainClassifier().fit(X, Y)


def test_bare_codes_must_be_whole_and_not_huge():
    base = NaiveCredal(discretizer=None)
    with pytest.raises(ValueError, match=r"whole category codes.*got 0.1"):
        CredalChainClassifier(base).fit(X, Y)
    with pytest.raises(ValueError, match=r"whole category codes.*dtype"):
        CredalChainClassifier(base).fit([["a"], ["b"], ["c"], ["d"]], Y)
    with pytest.raises(ValueError, match=r"code 4000000 in column 1"):
        CredalChainClassifier(base).fit([[0, 0], [0, 1], [1, 0], [0, 4_000_000]], Y)


def test_bad_input_to_infer():
    chain = CredalChainClassifier().fit(X, Y)
    with pytest.raises(ValueError, match=r"known must have shape \(4, 3\).*got \(4, 2\)"):
        chain.infer(X, known=Y[:, :2])
    with pytest.raises(ValueError, match=r"known must hold .*got 7"):
        chain.infer(X, known=np.full((4, 3), 7))
    with pytest.raises(ValueError, match=r"strategy must be .* got \('branching',\)"):
        chain.infer(X, strategy=("branching",))
    with pytest.raises(ValueError, match=r"s must be"):
        chain.predict_path(X, [1, -2])
    with pytest.raises(ValueError, match=r"expecting 2 features"):
        chain.infer(X[:, :1])


@pytest.mark.parametrize(
    "method", ["predict", "predict_partial", "predict_interval", "predict_proba", "infer"]
)
def test_unfitted(method):
    with pytest.raises(NotFittedError):
        getattr(CredalChainClassifier(), method)(X)


def test_never_observed_label_is_always_open_and_named():
    frame = pd.DataFrame(Y, columns=["a", "b", "c"]).assign(ghost=np.nan, phantom=None)
    with pytest.warns(UserWarning, match="never observed.*ghost, phantom"):
        chain = CredalChainClassifier(order=[3, 0, 4, 1, 2]).fit(X, frame)
    without = CredalChainClassifier(order=[0, 1, 2]).fit(X, Y)
    for s in (0, 0.5, 10):
        for strategy in ("branching", "marginalization"):
            prediction = chain.infer(X, s=s, strategy=strategy)
            assert (prediction.labels[:, 3:] == -1).all()
            assert (prediction.interval[:, 3:] == [0, 1]).all()
            np.testing.assert_array_equal(
                prediction.labels[:, :3], without.infer(X, s=s, strategy=strategy).labels
            )
    assert (chain.predict(X)[:, 3:] == 0).all()
    assert (chain.predict_proba(X)[:, 3:] == 0).all()
    known = np.full((4, 5), -1)
    known[:, 3] = 1
    told = chain.infer(X, known=known)
    assert (told.labels[:, 3] == 1).all()
    np.testing.assert_array_equal(told.labels[:, :3], chain.infer(X).labels[:, :3])
    later = chain.partial_fit(X, Y[:, [0, 1, 2, 0, 1]])
    assert (later.infer(X, s=0).interval[:, 3:] != [0, 1]).any()


LEGAL = {
    "constant label": (X, np.column_stack([np.zeros(4), Y])),
    "always one": (X, np.column_stack([np.ones(4), Y])),
    "row without labels": (X, np.vstack([[-1, -1, -1], Y[1:]])),
    "one row": (X[:1], Y[:1]),
    "one feature": (X[:, :1], Y),
    "one label": (X, Y[:, :1]),
    "one of each": (X[:1, :1], Y[:1, :1]),
    "constant features": (np.ones((4, 2)), Y),
    "all missing feature": (np.column_stack([X, np.full(4, np.nan)]), Y),
    "sparse": (sparse.csr_array(X), sparse.csr_array(Y)),
    "strings": (np.array([["a", "x"], ["b", "x"], ["a", "y"], ["c", "y"]]), Y),
}


@pytest.mark.parametrize(("X", "Y"), LEGAL.values(), ids=LEGAL.keys())
@pytest.mark.parametrize("order", ["random", "dynamic"])
@pytest.mark.parametrize("epsilon", [0, 0.001])
def test_legal_though_small(X, Y, order, epsilon):
    chain = CredalChainClassifier(NaiveCredal(epsilon=epsilon), order=order).fit(X, Y)
    n, m = X.shape[0], Y.shape[1]
    for s in (0, 0.5, 5):
        prediction = chain.infer(X, s=s)
        assert prediction.labels.shape == (n, m)
        assert (prediction.lower <= prediction.upper).all()
    assert set(np.unique(chain.predict(X))) <= {0, 1}
    assert chain.predict(X).dtype == np.int64
    assert chain.predict_partial(X).dtype == np.int8


def test_labels_in_a_vector():
    y = np.array(["no", "yes", "yes", "no"])
    chain = CredalChainClassifier(s=0.1).fit(X, y)
    assert chain.classes_.tolist() == ["no", "yes"]
    assert set(chain.predict(X)) <= {"no", "yes"}
    assert chain.predict_proba(X).shape == (4, 2)
    assert chain.predict_partial(X).shape == (4, 1)
    assert 0 <= chain.score(X, y) <= 1
    with pytest.raises(ValueError, match=r"\['no', 'yes'\].*got .*'maybe'"):
        chain.partial_fit(X[:1], ["maybe"])
    holes = CredalChainClassifier().fit(X, [0, 1, np.nan, 1])
    assert holes.model_.counts.label.tolist() == [[1, 2]]
    named = CredalChainClassifier().fit(X, pd.Series([0, 1, 0, 1], name="rock"))
    assert named.label_names_.tolist() == ["rock"]


def test_known_labels_are_used_as_given():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    Y = np.repeat((X[:, :1] > 0).astype(int), 3, axis=1)
    chain = CredalChainClassifier(s=1.0, order=[1, 0, 2]).fit(X, Y)
    known = np.full((200, 3), -1)
    known[:, 0] = 1 - Y[:, 0]
    told, untold = chain.infer(X, known=known), chain.infer(X)
    np.testing.assert_array_equal(told.labels[:, 0], known[:, 0])
    np.testing.assert_array_equal(
        told.log_odds[:, :2], untold.log_odds[:, :2]
    )  # before, and itself
    assert (told.log_odds[:, 2] != untold.log_odds[:, 2]).any()
    dynamic = CredalChainClassifier(s=1.0, order="dynamic").fit(X, Y)
    first = dynamic.infer(X, known=known)
    assert (first.log_odds[:, 1] != dynamic.infer(X).log_odds[:, 1]).any()


def test_binary_relevance_is_the_chain_without_telling():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(100, 3)), rng.integers(0, 2, size=(100, 3))
    alone = CredalBinaryRelevanceClassifier().fit(X, Y).infer(X)
    for j in range(3):
        single = CredalChainClassifier().fit(X, Y[:, j : j + 1]).infer(X)
        np.testing.assert_array_equal(alone.labels[:, j], single.labels[:, 0])
        np.testing.assert_allclose(alone.log_odds[:, j], single.log_odds[:, 0], atol=1e-9)
    assert CredalBinaryRelevanceClassifier().fit(X, Y).nested_


def test_threshold_per_label():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(100, 3)), rng.integers(0, 2, size=(100, 2))
    chain = CredalBinaryRelevanceClassifier(s=0.1, threshold=[0.01, 0.99]).fit(X, Y)
    labels = chain.predict_partial(X)
    assert (labels[:, 0] == 1).mean() > 0.9
    assert (labels[:, 1] == 0).mean() > 0.9


def test_prediction_for_people():
    frame = pd.DataFrame(X, index=list("abcd"), columns=["x", "y"])
    labels = pd.DataFrame(Y, columns=["rock", "pop", "folk"])
    prediction = CredalChainClassifier(s=3, order="given").fit(frame, labels).infer(frame)
    table = prediction.to_frame(intervals=True)
    assert list(table.index) == list("abcd")
    assert list(table.columns[:3]) == ["rock", "rock_lower", "rock_upper"]
    assert (table["rock"].isna() == prediction.abstained[:, 0]).all()
    assert "rock pop folk" in repr(prediction)
    assert "*" in repr(prediction)
    assert set(prediction.to_strings().ravel()) <= {"0", "1", "*"}
    assert len(prediction) == 4


def test_import_compiles_nothing_and_does_not_bring_numba():
    import subprocess
    import sys

    code = "import sys, credalchain; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# -- labels by name ------------------------------------------------------------------------


@pytest.fixture
def named():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    Y = pd.DataFrame((X[:, [0, 1, 0]] > 0).astype(int), columns=["rock", "pop", "folk"])
    return CredalChainClassifier(s=0.5, order=["folk", "rock", "pop"]).fit(X, Y), X, Y


def test_order_by_names(named):
    chain, _, _ = named
    assert chain.order_.tolist() == [2, 0, 1]


def test_known_labels_by_name(named):
    chain, X, _ = named
    whole = np.full((60, 3), -1)
    whole[:, 2], whole[:, 0] = 1, 0
    frame = pd.DataFrame({"folk": np.ones(60), "rock": np.zeros(60)})
    np.testing.assert_array_equal(
        chain.infer(X, known=frame).labels, chain.infer(X, known=whole).labels
    )
    with pytest.raises(ValueError, match=r"known must have .*rock, pop, folk.*'jazz'"):
        chain.infer(X, known=frame.rename(columns={"folk": "jazz"}))
    with pytest.raises(ValueError, match=r"known must have one row per row of X \(60\)"):
        chain.infer(X, known=frame[:5])


def test_labels_in_another_order_are_refused(named):
    chain, X, Y = named
    other = Y[["pop", "rock", "folk"]]
    for act in (
        lambda: chain.partial_fit(X, other),
        lambda: chain.score(X, other),
        lambda: set_accuracy(other, chain.infer(X)),
        lambda: partial_report(other, chain.infer(X)),
    ):
        with pytest.raises(ValueError, match=r"must be the labels in their order.*rock.*pop"):
            act()


def test_label_names_must_differ(named):
    _, X, Y = named
    with pytest.raises(ValueError, match=r"label names must be different.*'rock' twice"):
        CredalChainClassifier().fit(X, Y.set_axis(["rock", "rock", "folk"], axis=1))
    clash = Y.set_axis(["a", "a_lower", "b"], axis=1)
    prediction = CredalChainClassifier().fit(X, clash).infer(X)
    with pytest.raises(ValueError, match="different column names"):
        prediction.to_frame(intervals=True)
    assert prediction.to_frame().shape == (60, 3)


def test_prediction_in_place_of_the_truth(named):
    chain, X, Y = named
    with pytest.raises(TypeError, match="the truth comes first"):
        set_accuracy(chain.infer(X), Y)


# -- vectors -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "y",
    [
        ["yes", "yes", np.nan, "no"],
        ["yes", None, "no", "no"],
        pd.Series(["yes", np.nan, "no", "no"]),
        np.ma.masked_array(["a", "b", "a", "b"], mask=[0, 0, 0, 1]),
    ],
)
def test_missing_values_among_class_names_are_refused(y):
    with pytest.raises(ValueError, match="a vector Y with missing values must hold 0 and 1"):
        CredalChainClassifier().fit(X, y)


def test_boolean_vector_keeps_its_classes():
    chain = CredalChainClassifier().fit(X, np.array([True, False, True, False]))
    assert chain.classes_.tolist() == [False, True]
    assert chain.predict(X).dtype == bool


def test_partial_fit_with_classes_of_labels_takes_missing():
    chain = CredalChainClassifier().partial_fit(X, [0, 1, -1, 1], classes=[0, 1])
    assert chain.model_.counts.label.tolist() == [[1, 2]]
    named = CredalChainClassifier().partial_fit(X[:1], ["no"], classes=["no", "yes"])
    assert named.partial_fit(X[1:2], ["yes"]).predict(X).shape == (4,)


# -- features ------------------------------------------------------------------------------


def test_sparse_entries_stored_twice_are_summed():
    values = np.repeat([0.0, 10.0, 20.0, 30.0], 10)
    y = (np.arange(40) >= 20).astype(int)[:, None]
    chain = CredalChainClassifier(s=0.5).fit(sparse.csr_matrix(values[:, None]), y)
    twice = sparse.csr_matrix((np.array([5.0, 5.0]), np.array([0, 0]), np.array([0, 2])), (1, 1))
    once = sparse.csr_matrix([[10.0]])
    np.testing.assert_array_equal(chain.infer(twice).log_odds, chain.infer(once).log_odds)
    halves = sparse.csr_matrix(
        (np.array([1.0, 1, 3, 5]), np.array([0, 0, 0, 0]), np.array([0, 2, 3, 4])), (3, 1)
    )
    assert Discretizer().fit(halves).binnings_[0].cuts.tolist() == [2, 3]


def test_masked_features_are_missing():
    masked = np.ma.masked_array([[0.0], [1.0], [999.0]], mask=[[0], [0], [1]])
    assert Discretizer().fit_transform(masked)[:, 0].tolist() == [0, 1, -1]
    base = NaiveCredal(discretizer=None)
    codes = np.ma.masked_array([[0], [1], [7]], mask=[[0], [0], [1]])
    chain = CredalChainClassifier(base).fit(codes, [[0], [1], [1]])
    assert chain.model_.counts.n_categories.tolist() == [2]


def test_dates_are_refused_in_arrays_too():
    with pytest.raises(ValueError, match="timedelta64"):
        Discretizer().fit(np.array([1, 2, "NaT", 3], dtype="m8[D]")[:, None])


def test_a_text_column_without_any_text_in_training():
    frame = pd.DataFrame({"note": [None] * 4, "x": X[:, 0]})
    chain = CredalChainClassifier(order="given").fit(frame, Y)
    with_note = frame.assign(note="late")
    np.testing.assert_array_equal(chain.infer(with_note).log_odds, chain.infer(frame).log_odds)


def test_polars_categories():
    frame = pl.DataFrame({"c": pl.Series(["a", "b", "a", None], dtype=pl.Categorical)})
    assert Discretizer().fit_transform(frame)[:, 0].tolist() == [0, 1, 0, -1]
    enum = pl.DataFrame({"c": pl.Series(["a", "b"], dtype=pl.Enum(["z", "a", "b"]))})
    assert Discretizer().fit(enum).n_categories_.tolist() == [3]


def test_bare_codes_in_mixed_frames():
    base = NaiveCredal(discretizer=None)
    frame = pd.DataFrame({"a": [0, 1, 2, 0], "b": [True, False, True, True]})
    objects = np.array([[0, 1], [1, 0], [2, None], [0, 1]], dtype=object)
    for table in (frame, objects):
        chain = CredalChainClassifier(base).fit(table, Y)
        assert chain.model_.counts.n_categories.tolist() == [3, 2]
    for bad in (np.inf, 1e300):
        with pytest.raises(ValueError, match=r"whole category codes.*got"):
            CredalChainClassifier(base).fit(pd.DataFrame({"a": [0, 1, 2, bad]}), Y)


def test_a_discretizer_that_cannot_say_how_many_categories():
    from sklearn.preprocessing import KBinsDiscretizer

    base = NaiveCredal(discretizer=KBinsDiscretizer(2, encode="ordinal", strategy="uniform"))
    with pytest.raises(ValueError, match="discretizer must be fitted and have n_categories_"):
        CredalChainClassifier(base).fit(X, Y)


def test_more_messages():
    chain = CredalChainClassifier().fit(X, Y)
    with pytest.raises(ValueError, match="values must be several values of s, got 2"):
        chain.predict_path(X, 2)
    with pytest.raises(ValueError, match=r"n_jobs must be None or a whole number.*'2'"):
        chain.set_params(n_jobs="2").predict_partial(X)
    with pytest.raises(ValueError, match="Y must have equally many labels"):
        CredalChainClassifier().fit(X, [[0, 1], [1], [0, 1], [1, 1]])
    with pytest.raises(ValueError, match="order must be"):
        CredalChainClassifier(order=[[0], [1, 2]]).fit(X, Y)
    with pytest.raises(ValueError, match=r"threshold must be.*'0.5'"):
        CredalChainClassifier(threshold="0.5").fit(X, Y)


def test_a_frame_with_a_column_called_labels_is_not_a_prediction():
    frame = pd.DataFrame({"labels": [1, 0], "log_odds": [-1, -1]})
    assert completeness(None, frame) == 0.5


def test_maximin_resolves_exact_ties_to_no():
    codes, labels = [[2], [2], [0], [0], [1], [1]], [[1], [1], [1], [0], [1], [0]]
    base = NaiveCredal(epsilon=0, discretizer=None)
    chain = CredalChainClassifier(base, s=1).fit(np.array(codes), labels)
    prediction = chain.infer([[0]])  # odds between 1/2 and 2
    assert prediction.labels.tolist() == [[-1]]
    assert maximin_accuracy([[0]], prediction) == 1


def test_a_single_class_is_always_the_answer():
    """Also where the threshold is below its probability of being another."""
    chain = CredalChainClassifier(threshold=1e-9).fit([[0.0], [1.0]], ["a", "a"])
    assert chain.predict([[0.5]]).tolist() == ["a"]


def test_workers_have_a_limit():
    chain = CredalChainClassifier(n_jobs=1000).fit([[0.0], [1.0]], [[0], [1]])
    chain.predict_partial([[0.5], [0.1]])
    with pytest.raises(ValueError, match="n_jobs must be .* at most 1000, got 20000000000"):
        chain.set_params(n_jobs=20_000_000_000).predict_partial([[0.5], [0.1]])


def test_a_fit_that_failed_leaves_nothing_fitted():
    chain = CredalChainClassifier()
    with pytest.raises(ValueError, match="two distinct values"):
        chain.fit(np.zeros((3, 1)), ["a", "b", "c"])
    with pytest.raises(NotFittedError):
        chain.predict([[0.0]])
