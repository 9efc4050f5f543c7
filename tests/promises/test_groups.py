"""Rows that depend on each other: copies, and groups such as the rows of one patient."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.spatial import KDTree
from sklearn.base import BaseEstimator
from sklearn.model_selection import GroupKFold, KFold, train_test_split
from test_promises import POPULATION, Score, draw

from credalchain import (
    CredalChainClassifier,
    PromisedClassifier,
    choose_caution,
    load_model,
    model_selection,
    promise_curve,
    save_model,
)
from credalchain.exceptions import DataWarning
from credalchain.labels import as_labels
from credalchain.model_selection import group_folds, row_groups
from credalchain.promises.calibration import hold_out
from credalchain.promises.risks import mean_loss, read_promises
from shell import credalchain

LEVEL = 0.1
SMALL = POPULATION[0][:20_000], POPULATION[1][:20_000]


class Memory(BaseEstimator):
    """Answers as the nearest training row, if that is near enough."""

    caution_parameter = "s"
    larger_is_more_cautious = True
    nested_ = True
    s = 0.0
    targets_, n_features_in_ = None, 4

    def fit(self, X, Y):
        self.X_, self.Y_, self.tree_ = X, np.asarray(Y, dtype=np.int8), KDTree(X)
        self.classes_ = np.tile([0, 1], (Y.shape[1], 1))
        self.label_names_ = np.array([f"label{j}" for j in range(Y.shape[1])])
        return self

    def predict_path(self, X, values):
        distance, nearest = self.tree_.query(X)
        near = 1 / np.maximum(distance, 1e-9)
        return np.array([np.where(near[:, None] > s, self.Y_[nearest], -1) for s in values])

    def read_labels(self, Y):
        return as_labels(Y, require_zero=False)


def wrong_rows(promised, X, Y):
    value = promised.values_[0]
    if np.isnan(value):
        return 0.0
    answers = promised.estimator_.predict_path(X, [value])[0]
    return float(((answers != -1) & (answers != Y)).any(axis=1).mean())


# -- copies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("calibration", [0.3, "prefit"])
def test_promises_hold_if_rows_are_repeated(calibration):
    X_new, Y_new = POPULATION[0][:2000], POPULATION[1][:2000]
    turns, found = 40, []
    for seed in range(turns):
        X, Y = draw(np.random.default_rng(seed), 100)
        estimator = Memory()
        if calibration == "prefit":
            estimator.fit(*draw(np.random.default_rng(1000 + seed), 100))
        promised = PromisedClassifier(
            estimator, {"row_error": LEVEL}, calibration=calibration, random_state=seed
        ).fit(np.repeat(X, 5, axis=0), np.repeat(Y, 5, axis=0))
        found.append(wrong_rows(promised, X_new, Y_new))
    assert np.mean(found) <= LEVEL + 2 * np.std(found) / np.sqrt(turns)
    report = promised.report_
    assert f"{report.n_rows * 5} calibration rows are {report.n_rows} groups of equal" in str(
        report
    )
    assert "--groups none" in str(report)
    assert ("copies of them were used to fit" in str(report)) == (calibration == "prefit")


def test_rows_that_each_count_break_the_promise_if_they_are_copies():
    """What groups are for: without them copies of training rows look like new rows."""
    X, Y = draw(np.random.default_rng(0), 100)
    promised = PromisedClassifier(Memory(), {"row_error": LEVEL}, random_state=0)
    promised.fit(np.repeat(X, 5, axis=0), np.repeat(Y, 5, axis=0), groups=np.arange(500))
    assert wrong_rows(promised, *POPULATION) > 3 * LEVEL
    assert promised.report_.notes == ()


@pytest.mark.slow
def test_rows_of_a_group_are_no_independent_evidence():
    """Groups of 20 rows that are right or wrong together, none equal to another."""
    turns, level, confidence = 200, 0.3, 0.8
    broken = {"groups": [], "rows": []}
    for seed in range(turns):
        rng = np.random.default_rng(seed)
        X, Y = draw(rng, 40)
        groups = np.repeat([f"patient {i}" for i in range(40)], 20)
        X = np.repeat(X, 20, axis=0) + 1e-7 * rng.random((800, 1))
        for name, given in (("groups", groups), ("rows", None)):
            promised = PromisedClassifier(
                Score(),
                {"row_error": level},
                confidence=confidence,
                calibration="prefit",
                random_state=seed,
                values=np.linspace(0, 5, 50),
            ).fit(X, np.repeat(Y, 20, axis=0), groups=given)
            broken[name].append(wrong_rows(promised, *SMALL) > level)
    assert promised.report_.n_rows == 800
    error = np.sqrt(confidence * (1 - confidence) / turns)
    assert np.mean(broken["groups"]) <= 1 - confidence + 2 * error
    assert np.mean(broken["rows"]) > 1 - confidence + 4 * error


def test_folds_keep_groups_together_and_count_one_row_of_each():
    X, Y = draw(np.random.default_rng(0), 120)
    groups = np.arange(120) // 4
    seen = []

    class Watching(Score):
        def fit(self, X, Y):
            seen.append({row.tobytes() for row in X})
            return self

    for calibration in (3, GroupKFold(3), KFold(3)):
        seen.clear()
        promised = PromisedClassifier(
            Watching(), {"row_error": 0.4}, method="cross_fit", calibration=calibration
        ).fit(X, Y, groups=groups)
        for trained in seen[:3]:
            is_trained = np.array([row.tobytes() in trained for row in X]).reshape(30, 4)
            assert (is_trained.all(axis=1) | ~is_trained.any(axis=1)).all()
        assert len(seen[3]) == 120
        assert promised.report_.n_rows == 30
        assert "120 calibration rows are 30 groups of rows that belong" in str(promised.report_)


def test_too_few_groups_are_explained_before_fitting():
    X, Y = draw(np.random.default_rng(0), 200)
    promised = PromisedClassifier(Score(), {"row_error": LEVEL}, random_state=0)
    with pytest.raises(ValueError, match=r"at least 9 .*got 3.*: groups are kept together"):
        promised.fit(X, Y, groups=np.arange(200) % 10)
    with pytest.raises(ValueError, match=r"X must have rows left .*1 groups of rows that belong"):
        promised.fit(X, Y, groups=np.zeros(200))
    copies = np.arange(200) % 20
    with pytest.raises(ValueError, match=r"at least 9 .*got 6.*let each count: groups=np"):
        promised.fit(X[copies], Y[copies])


def test_promises_hold_if_columns_have_few_values():
    """Half of the rows are equal, and chance decides about their labels."""
    turns, level, found = 10, 0.2, []

    def few_values(n, rng):
        X = rng.normal(size=(n, 4))
        Y = (X[:, :2] > 0).astype(int)
        common = rng.random(n) < 0.5
        X[common], Y[common] = 3.0, rng.integers(0, 2, (common.sum(), 2))
        return X, Y

    for seed in range(turns):
        rng = np.random.default_rng(seed)
        chain = CredalChainClassifier(order="given")
        promised = PromisedClassifier(chain, {"row_error": level}, random_state=seed)
        promised.fit(*few_values(400, rng))
        found.append(wrong_rows(promised, *few_values(1000, rng)))
    assert np.mean(found) <= level + 2 * np.std(found) / np.sqrt(turns)


# -- nothing changes without groups ---------------------------------------------------------------


def test_rows_that_all_differ_are_split_as_ever():
    X, Y = draw(np.random.default_rng(3), 101)
    rng = np.random.RandomState(7)
    shuffled = rng.permutation(101)
    rows, train = np.sort(shuffled[:31]), np.sort(shuffled[31:])
    is_pilot = np.isin(np.arange(31), rng.permutation(31)[:4])
    for groups in (None, np.arange(101), [str(i) for i in range(101)]):
        state = np.random.RandomState(7)
        promised = PromisedClassifier(
            Memory(), {"selective_error": 0.5}, confidence=0.5, random_state=state
        )
        estimator, (held,), _, _, _, notes = hold_out(promised, X, Y, groups)
        np.testing.assert_array_equal(held.X, X[rows])
        assert held.estimator is estimator
        np.testing.assert_array_equal(estimator.X_, X[train])
        np.testing.assert_array_equal(held.is_pilot, is_pilot)
        assert notes == ()
    splitter = KFold(7, shuffle=True, random_state=0)
    for found, expected in zip(
        group_folds(row_groups(X, Y), splitter), splitter.split(X), strict=True
    ):
        for part, same in zip(found, expected, strict=True):
            np.testing.assert_array_equal(part, same)


def test_caution_is_chosen_on_the_same_rows_as_ever_unless_rows_are_repeated():
    X, Y = draw(np.random.default_rng(3), 101)
    chain = CredalChainClassifier(order="given")
    train, test = train_test_split(np.arange(101), test_size=25, random_state=0)
    fitted = CredalChainClassifier(order="given").fit(X[np.sort(train)], Y[np.sort(train)])
    chosen = choose_caution(chain, X, Y, random_state=0)
    answered = fitted.predict_path(X[test], [chosen.value * len(train) / 101]) != -1
    assert chosen.completeness == pytest.approx(answered.mean())
    assert chosen.n_rows == 25
    repeated = np.repeat(X, 4, axis=0), np.repeat(Y, 4, axis=0)
    assert choose_caution(chain, *repeated, random_state=0).n_rows == 100
    one_group_each = choose_caution(chain, X, Y, groups=np.arange(101) // 10, random_state=0)
    assert one_group_each.n_rows in (11, 20)
    few_values = choose_caution(chain, X > 0, Y, random_state=0)  # 16 different rows
    assert few_values.n_rows == 25
    with pytest.raises(ValueError, match="at least 4 different values to hold some out, got 2"):
        choose_caution(chain, X, Y, groups=np.arange(101) % 2)


# -- finding groups -------------------------------------------------------------------------------

NUMBERS = np.array([[0.0, 1], [np.nan, 1], [-0.0, 1], [np.nan, 1], [1, 0]])
WORDS = [["a", 1.0], ["b", None], ["a", 1.0], ["b", None], ["b", 1.0]]
TABLES = {
    "array": NUMBERS,
    "float32": NUMBERS.astype(np.float32),
    "pandas": pd.DataFrame(NUMBERS, columns=["x", "x"]),
    "polars": pl.DataFrame(NUMBERS),
    "sparse": sparse.csr_array(NUMBERS),
    "words": np.array(WORDS, dtype=object),
    "pandas words": pd.DataFrame(WORDS).assign(more=pd.Categorical(list("xyxyx"))),
    "polars words": pl.DataFrame(WORDS, orient="row"),
    "dicts": np.array([[{i: 0}, 1] for i in (0, 1, 0, 1, 2)], dtype=object),
}


@pytest.fixture
def small_tables(monkeypatch):
    monkeypatch.setattr(model_selection, "_FEW_ROWS", 0)


@pytest.mark.usefixtures("small_tables")
@pytest.mark.parametrize("X", TABLES.values(), ids=TABLES.keys())
def test_equal_rows_of_tables_of_any_kind(X):
    np.testing.assert_array_equal(row_groups(X, np.zeros((5, 1))), [0, 1, 0, 1, 2])


@pytest.mark.usefixtures("small_tables")
def test_a_stored_zero_is_a_zero_and_columns_are_not_exchanged():
    stored = sparse.csr_array(([1.0, 0.0, 1.0, 1.0], ([0, 0, 1, 2], [0, 1, 0, 1])), shape=(3, 2))
    assert stored.nnz == 4
    np.testing.assert_array_equal(row_groups(stored, np.zeros((3, 1))), [0, 0, 1])
    np.testing.assert_array_equal(row_groups(np.array([[1, 2], [2, 1]]), np.zeros((2, 1))), [0, 1])


@pytest.mark.usefixtures("small_tables")
def test_equal_rows_with_other_labels_are_no_copies():
    X, Y = np.array([[1], [1], [2], [2], [3], [3]]), np.array([[0], [0], [0], [1], [-1], [0]])
    np.testing.assert_array_equal(row_groups(X, Y), [0, 0, 1, 2, 3, 4])


@pytest.mark.parametrize(("n_different", "n_groups"), [(19, 40), (20, 20)])
def test_few_rows_that_differ_are_no_copies(n_different, n_groups):
    X = np.arange(40)[:, None] % n_different
    assert len(np.unique(row_groups(X, X))) == n_groups


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([1, 2], r"groups must be an array with a value for each of 3 rows, got .*\(2,\)"),
        ("patient", r"groups must be an array .*got one of shape \(\)"),
        ([[1], [2], [3]], r"got one of shape \(3, 1\)"),
        ([1.0, np.nan, 2.0], "groups must not be missing, got nan in row 1"),
        (["a", None, "b"], "groups must not be missing, got None in row 1"),
        (pd.array([1, 2, None]), "groups must not be missing, got <NA> in row 2"),
    ],
)
def test_groups_that_are_none(groups, message):
    with pytest.raises(ValueError, match=message):
        row_groups(np.eye(3), np.eye(3), groups)


@pytest.mark.parametrize("groups", [["a", 1, "a"], pd.Series([7, 8, 7]), pl.Series([7, 8, 7])])
def test_groups_of_any_kind(groups):
    np.testing.assert_array_equal(row_groups(np.eye(3), np.eye(3), groups), [0, 1, 0])


# -- missing labels -------------------------------------------------------------------------------


def with_gaps(n=900, seed=0):
    rng = np.random.default_rng(seed)
    X, Y = draw(rng, n)
    return X, np.where(rng.random(Y.shape) < 0.15, np.nan, Y)


def test_missing_labels_cost_what_a_warning_says_before_fitting():
    X, Y = with_gaps()
    complete = int((~np.isnan(Y)).all(axis=1).sum())
    words = rf"{complete} of 900 calibration rows can be judged for row_error: .* selective_error"
    with pytest.warns(DataWarning, match=words):
        promised = PromisedClassifier(Score(), {"row_error": 0.3}, calibration="prefit").fit(X, Y)
    assert promised.report_.promises[0].n_rows == complete
    unfitted = PromisedClassifier(Score(), {"row_error": 0.1}, calibration=20, method="cross_fit")
    with pytest.warns(DataWarning, match=words), pytest.raises(AssertionError, match="to fit"):
        unfitted.fit(X, Y)


@pytest.mark.parametrize(
    "promise", [{"selective_error": 0.3}, {"positive_error": 0.3}, {"row_error": {0: 0.3}}]
)
def test_labels_that_are_known_count_in_rows_where_others_are_missing(promise, tmp_path):
    X, Y = with_gaps()
    Y[:3] = np.nan  # rows of which nothing is known say nothing
    promised = PromisedClassifier(
        Score(), promise, confidence=0.8, calibration="prefit", random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "nothing is promised about")
        promised.fit(X, Y)
    (result,) = promised.report_.promises
    tested = 900 - int(0.15 * 900) if result.label is None else 900
    known = 1.0 if result.label is None else 0.85
    assert result.n_rows == pytest.approx(known * tested, abs=30)
    assert ("equally often for every label" in str(promised.report_)) == (result.label is None)
    test = promised.check(X, Y).tests[0]
    assert test.n_rows == (897 if result.label is None else int((~np.isnan(Y[:, 0])).sum()))


def test_promises_about_answers_hold_with_missing_labels():
    turns, level, confidence = 100, 0.15, 0.8
    X, Y = SMALL
    broken = []
    for seed in range(turns):
        promised = PromisedClassifier(
            Score(), {"selective_error": level}, confidence=confidence, calibration="prefit",
            random_state=seed, values=np.linspace(0, 5, 50),
        ).fit(*with_gaps(400, seed))  # fmt: skip
        answers = promised.predict_partial(X)
        broken.append((answers != Y)[answers != -1].mean() > level if (answers != -1).any() else 0)
    assert np.mean(broken) <= 1 - confidence + 2 * np.sqrt(confidence * (1 - confidence) / turns)
    assert (answers != -1).any()


@pytest.mark.parametrize(
    ("risk", "level"), [("row_error", 0.25), ("selective_error", 0.1), ("positive_error", 0.1)]
)
def test_a_conservative_promise_holds_whatever_the_missing_labels_are(risk, level):
    """Labels vanish where answers are wrong: what is assumed to be random breaks the promise."""
    X, Y = draw(np.random.default_rng(1), 3000)
    options = {"confidence": 0.9, "calibration": "prefit", "random_state": 0}

    def promised(missing, labels):
        found = PromisedClassifier(Score(), {risk: level}, missing=missing, **options)
        return found.fit(X[:1500], labels[:1500])

    answers = promised("ignorable", Y).predict_partial(X)
    wrong = (answers != -1) & (answers != Y)
    hidden = np.where(wrong, np.nan, Y)
    careful, careless = promised("conservative", hidden), promised("ignorable", hidden)

    def risk_of(model):
        found = model.predict_partial(X[1500:])
        wrong = (found != -1) & (found != Y[1500:])
        if risk == "row_error":
            return wrong.any(axis=1).mean()
        of = found == 1 if risk == "positive_error" else found != -1
        return (wrong & of).sum() / max(of.sum(), 1)

    assert risk_of(careless) > level + 0.02
    assert risk_of(careful) <= level + 0.02
    assert (careful.predict_partial(X) != -1).any()
    assert "whatever they are" in str(careful.report_)
    assert "completely at random" not in str(careful.report_)
    assert careful.report_.n_incomplete == 0
    check = careful.check(X[:1500], hidden[:1500])  # the same rows, judged in the same way
    assert check.tests[0].estimate <= level
    unknown = np.where(np.random.default_rng(0).random(Y.shape) < 0.5, np.nan, Y)
    check = careful.check(X, unknown)  # missing labels break nothing
    assert check.verdict == "holds so far"
    assert check.tests[0].n_rows == (~np.isnan(unknown)).any(axis=1).sum()
    assert careful.check(X, np.where(np.isnan(unknown), unknown, 1 - Y)).verdict == "broken"
    twin = np.where(answers == -1, 0, 1 - answers)
    contrary = np.where(np.isnan(hidden), twin, Y)  # the worst completion for these answers
    (promise,) = read_promises(
        {risk: level}, 0.9, list("abcd")[: Y.shape[1]], "exact", "conservative"
    )
    truth = np.where(np.isnan(hidden), -1, Y).astype(np.int8)
    _, bad, every = promise.losses(truth, answers)
    _, bad_twin, every_twin = replace(promise, conservative=False).losses(contrary, answers)
    np.testing.assert_array_equal(bad, bad_twin)
    if every is not None:
        np.testing.assert_array_equal(every, every_twin)


@pytest.mark.slow
@pytest.mark.parametrize("guarantee", ["exact", "asymptotic"])
@pytest.mark.parametrize(
    ("risk", "level"), [("row_error", 0.35), ("selective_error", 0.15), ("positive_error", 0.15)]
)
def test_conservative_promises_are_kept_if_what_is_missing_contradicts_the_answers(
    risk, level, guarantee
):
    rng, n_splits, broken, n_answered = np.random.default_rng(0), 300, 0, 0

    def draw_missing(n):
        X, Y = draw(rng, n)
        missing = rng.random(X.shape) < 0.03
        truth = np.where(missing, X <= 0, Y)
        return X, truth, np.where(missing, np.nan, truth)

    new, truth, _ = draw_missing(200_000)
    for seed in range(n_splits):
        X, _, seen = draw_missing(400)
        promised = PromisedClassifier(
            *(Score(), {risk: level}),
            **{"confidence": 0.9, "guarantee": guarantee, "missing": "conservative"},
            **{"calibration": "prefit", "values": np.linspace(0, 4, 41), "random_state": seed},
        ).fit(X, seen)
        (promise,) = read_promises({risk: level}, 0.9, promised.label_names_.tolist())
        answers = promised.predict_partial(new)
        _, bad, every = promise.losses(truth.astype(np.int8), answers)
        broken += mean_loss(bad, every) > level
        n_answered += (answers != -1).any()
    assert broken <= n_splits * 0.1 + 2 * np.sqrt(n_splits * 0.1 * 0.9)
    assert n_answered > n_splits / 2


def test_what_cannot_be_promised_of_missing_labels():
    X, Y = SMALL
    for promise in (
        {"missed_positives": 0.1},
        {(lambda truth, answers: np.zeros(len(truth))): 0.1},
    ):
        promised = PromisedClassifier(
            Score(), promise, missing="conservative", calibration="prefit", confidence=0.9
        )
        with pytest.raises(ValueError, match="missing='conservative' is for row_error"):
            promised.fit(X, Y)


# -- files and the command line -------------------------------------------------------------------


@pytest.fixture
def patients(tmp_path):
    X, Y = draw(np.random.default_rng(0), 60)
    rows = np.repeat(np.arange(60), 4)
    table = pd.DataFrame(X[rows], columns=list("abcd")).assign(patient=[f"p{i}" for i in rows])
    table["a"] += 0.01 * np.arange(240)
    for j in range(2):
        table[f"label{j}"] = Y[rows, j]
    table.to_csv(tmp_path / "t.csv", index=False)
    table.drop(columns="patient").to_csv(tmp_path / "new.csv", index=False)
    table.drop(columns=["patient", "a"]).to_csv(tmp_path / "copies.csv", index=False)
    return tmp_path


CHAIN = ["--labels", "last:2", "--method", "chain"]


def test_groups_on_the_command_line(patients):
    promise = ["--promise", "row-error=0.4", "--out", "m"]
    done = credalchain("fit", "t.csv", *CHAIN, *promise, "--groups", "patient", cwd=patients)
    assert "72 calibration rows are 18 groups of rows that belong together" in done.stderr
    model = load_model(patients / "m")
    assert model.feature_names_in_.tolist() == list("abcd")
    assert model.report_.n_rows == 18
    assert "18 groups" in credalchain("info", "m", cwd=patients).stdout
    credalchain("predict", "m", "new.csv", "--out", "o.csv", cwd=patients)
    done = credalchain("fit", "copies.csv", *CHAIN, *promise, cwd=patients)
    assert "72 calibration rows are 18 groups of equal rows" in done.stderr
    done = credalchain("fit", "copies.csv", *CHAIN, *promise, "--groups", "none", cwd=patients)
    assert "in 72 calibration rows" in done.stderr
    assert "groups" not in done.stderr
    done = credalchain(
        *["fit", "t.csv", *CHAIN, "--answered", "0.6", "--groups", "patient", "--out", "m"],
        cwd=patients,
    )
    assert "of 60 rows held out" in done.stderr


def test_evaluate_and_tune_keep_groups_together(patients):
    done = credalchain("tune", "t.csv", *CHAIN, "--groups", "patient", cwd=patients)
    assert "in 18 held-out rows" in done.stdout
    assert "note: 72 calibration rows are 18 groups" in done.stderr
    some = ["--folds", "3", "--s", "1", "--summary"]
    done = credalchain("evaluate", "t.csv", *CHAIN, *some, "--groups", "patient", cwd=patients)
    assert "240 rows are 60 groups, which folds keep together" in done.stderr
    assert "240 rows, 4 features" in done.stderr
    together = credalchain("evaluate", "copies.csv", *CHAIN, *some, cwd=patients)
    assert "240 rows are 60 different rows (--groups none" in together.stderr
    apart = credalchain("evaluate", "copies.csv", *CHAIN, *some, "--groups", "none", cwd=patients)
    assert "different rows" not in apart.stderr
    assert apart.stdout != together.stdout
    few = ["evaluate", "t.csv", *CHAIN, "--folds", "61", "--groups", "patient"]
    done = credalchain(*few, cwd=patients, status=1)
    assert "--folds must be at most 60: there are 60 groups" in done.stderr
    done = credalchain("tune", "t.csv", *CHAIN, "--groups", "pateint", cwd=patients, status=1)
    assert "--groups: there is no column 'pateint' (did you mean 'patient'?)" in done.stderr
    done = credalchain("tune", "t.csv", *CHAIN, "--groups", "a,b", cwd=patients, status=1)
    assert "--groups must name one column, got 'a,b'" in done.stderr


def test_missing_labels_are_noted_on_the_command_line(patients):
    table = pd.read_csv(patients / "new.csv")
    table.loc[::2, "label0"] = np.nan
    table.to_csv(patients / "gaps.csv", index=False)
    promise = ["--promise", "row-error=0.4", "--out", "m", "--groups", "none"]
    done = credalchain("fit", "gaps.csv", *CHAIN, *promise, cwd=patients)
    assert "of 72 calibration rows can be judged for row_error" in done.stderr


def test_notes_are_kept_in_model_files(tmp_path):
    X, Y = draw(np.random.default_rng(0), 100)
    chain = CredalChainClassifier(order="given").fit(X, Y)
    promised = PromisedClassifier(chain, {"row_error": 0.4}, calibration="prefit")
    promised.fit(*draw(np.random.default_rng(1), 100))
    save_model(promised, tmp_path / "m")
    assert load_model(tmp_path / "m").report_ == promised.report_
    curve = promise_curve(chain, X, Y, calibration="prefit", groups=np.arange(100) // 2)
    assert [note[:9] for note in curve.notes] == ["assumed: ", "100 calib"]
    assert curve.n_rows == 50


def test_answers_of_people_are_learned_from_and_judge_nothing():
    """Calibration rows come from the first rows, and are judged by their original labels."""
    X, Y = draw(np.random.default_rng(0), 400)
    answered = Y.copy()
    answered[:300] = 1 - Y[:300]  # of everything that people say, nothing is right
    seen = {}

    class Recording(Score):
        def fit(self, X, Y):
            seen["rows"], seen["labels"] = X, Y
            return self

    plain = PromisedClassifier(Recording(), {"row_error": 0.3}, random_state=0)
    plain.fit(X[:300], Y[:300])
    found = PromisedClassifier(Recording(), {"row_error": 0.3}, random_state=0)
    found.fit(X, answered, original_labels=Y[:300])
    assert found.report_.n_rows == 90
    assert found.report_.promises[0].estimate == plain.report_.promises[0].estimate
    assert len(seen["rows"]) == 400 - 90
    assert "100 rows and labels that people answered are learned from" in str(found.report_)
    with pytest.raises(ValueError, match="original_labels must be those of the first rows of X"):
        found.fit(X[:200], answered[:200], original_labels=Y[:300])
