"""Tables with dates, texts, identifiers and numbers as people write them."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from credalchain import (
    JointDecision,
    PromisedClassifier,
    explain,
    load_model,
    save_model,
)
from credalchain.columns import Feature, TablePreparer, describe_features, read_numbers
from credalchain.metrics import set_accuracy
from credalchain.model_files import TRUSTED_TYPES, ModelFileError
from credalchain.model_selection import unwrap
from credalchain.review.rows import ReviewedRows
from credalchain.review.session import ReviewSession
from credalchain.review.store import AnswerStore
from shell import credalchain

skrub = pytest.importorskip("skrub")

N = 600
WORDS = [f"word{i}" for i in range(60)] + ["broken", "late"]
GERMAN = ("--yes", "ja", "--no", "nein")
SMALL = ("--trees", "20", "--reward", "1")


def orders(seed=0):
    """A table in which the weekday and words of a text decide two labels, and nothing else does."""
    rng = np.random.default_rng(seed)
    day = pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 700, N), "D")
    texts = [" ".join(rng.choice(WORDS, 8)) for _ in range(N)]
    complaint = ["broken" in text.split() or "late" in text.split() for text in texts]
    return pd.DataFrame(
        {
            "order_id": rng.integers(10**9, 10**10, N),
            "day": day.strftime("%d.%m.%Y"),
            "comment": texts,
            "price": [f"{german(v)} €" for v in rng.random(N) * 5000],
            "income": np.where(rng.random(N) < 0.1, "k.A.", rng.integers(0, 500, N).astype(str)),
            "city": rng.choice(["Köln", "Bonn"], N),
            "weekend": np.where(day.day_of_week >= 5, "ja", "nein"),
            "complaint": np.where(complaint, "ja", "nein"),
        }
    )


def survey(seed=0):
    """A table in which numbers as people write them decide; two columns have the same name."""
    rng = np.random.default_rng(seed)
    income, spent = rng.gamma(4, 400, N).round(2), rng.gamma(3, 10, N).round(2)
    size = rng.normal(1.7, 0.1, (N, 2)).round(2)
    frame = pd.DataFrame(
        {
            "Einkommen": np.where(rng.random(N) < 0.1, "k.A.", [german(v) for v in income]),
            "Ausgaben": [f"{v:.2f} €" for v in spent],
            "Größe": size[:, 0],
            "Größe2": size[:, 1],
            "wohlhabend": np.where(income > 1500, "ja", "nein"),
            "sparsam": np.where(spent < 22.78, "ja", "nein"),
        }
    )
    return frame.rename(columns={"Größe2": "Größe"})


def parcels(seed=0):
    """A table in which cities with typos and an hour decide."""
    rng = np.random.default_rng(seed)
    cities = [
        "Amsterdam",
        "Hamburg",
        "Barcelona",
        "Lissabon",
        "Stockholm",
        "Kopenhagen",
        "Budapest",
        "Warschau",
    ]
    city = rng.integers(0, len(cities), N)
    sent = pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 700 * 24, N), "h")
    frame = pd.DataFrame(
        {
            "parcel_no": rng.integers(10**9, 10**10, N),
            "sent": sent.strftime("%m/%d/%Y %H:%M"),
            "city": [misspelt(cities[i], rng) for i in city],
            "weight": [f"{v:,.1f} kg" for v in rng.gamma(2, 500, N)],
            "depot": "north",
            "remark": np.nan,
            "sea": np.where(np.isin(city, [0, 2, 4]), "yes", "no"),
            "night": np.where((sent.hour < 6) | (sent.hour > 20), "yes", "no"),
        }
    )
    return frame.mask(rng.random(frame.shape) < np.array([0] * 6 + [0, 0.05]))  # some are unknown


def german(value):
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))


def misspelt(word, rng):
    """Return a word with up to two letters left out, changed or put in."""
    letters = list(word)
    for _ in range(rng.integers(0, 3)):
        at = rng.integers(len(letters))
        letters[at] = "" if rng.random() < 0.3 else letters[at] + rng.choice(list("aeinrst"))
    return "".join(letters)


@dataclass(frozen=True)
class MessyFile:
    """A table, how it is written, and what the commands are to say of it.

    ``decided`` is a label, and what its explanation names: what decides it. ``above`` stands above
    the names of columns, and ``below`` the last row.
    """

    table: Callable[[int], pd.DataFrame]
    dialect: dict[str, str]
    words: tuple[str, ...]
    kinds: dict[str, str]
    notes: tuple[str, ...]
    decided: tuple[str, str]
    above: str = ""
    below: str = ""

    def write(self, seed, path):
        """Write the table as it is exported."""
        encoding = self.dialect.get("encoding", "utf-8")
        text = self.table(seed).to_csv(index=False, **self.dialect)
        path.write_text(self.above + text + self.below, encoding=encoding)


FILES = {
    "orders": MessyFile(
        orders,
        {"sep": ";"},
        GERMAN,
        {
            "order_id": "left out",
            "day": "dates",
            "comment": "text",
            "price": "numbers",
            "income": "numbers",
            "city": "categories",
        },
        (
            "cells are separated by a semicolon",
            "'order_id': 600 different whole numbers in 600 rows, like identifiers; it is left out",
            "is read as a date, %d.%m.%Y",
            "€' is read as",
            "'income': 'k.A.' (",
        ),
        ("complaint", "comment: word '"),
    ),
    "survey": MessyFile(
        survey,
        {"sep": ";", "decimal": ",", "encoding": "cp1252"},
        GERMAN,
        {
            "Einkommen": "numbers",
            "Ausgaben": "numbers",
            "Größe": "numbers",
            "Größe.1": "numbers",
        },
        (
            "it is read as cp1252",
            "what stands above the columns' names, 'Einkommen' ..., is left out",
            "1 row without any cell left out",
            "numbers have a decimal comma",
            "two columns are called 'Größe'; the second is 'Größe.1'",
            "column 'Einkommen': 'k.A.' (",
            "€' is read as",
        ),
        ("sparsam", "Ausgaben"),
        "Umfrage 2023;;;;;\n;Person;;;Urteil;\n\n",
        ";;;;;\n",
    ),
    "parcels": MessyFile(
        parcels,
        {},
        (),
        {
            "parcel_no": "left out",
            "sent": "dates",
            "city": "many categories",
            "weight": "numbers",
            "depot": "left out",
            "remark": "left out",
        },
        (
            "'parcel_no': 600 different whole numbers",
            "is read as a date, %m/%d/%Y %H:%M",
            "'depot': the same in all rows",
            "'remark': no values",
            "kg' is read as",
        ),
        ("sea", "city: letters '"),
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files to learn from and to test on, models with promises, and two others."""
    folder = tmp_path_factory.mktemp("tables")
    for name, file in FILES.items():
        file.write(0, folder / f"{name}.csv")
        file.write(1, folder / f"{name}_new.csv")
        given = ("fit", f"{name}.csv", "--labels", "last:2", *file.words, "--trees", "20")
        promise = ("--promise", "row-error=0.2", "--out", f"{name}.model")
        (folder / f"{name}.notes").write_text(credalchain(*given, *promise, cwd=folder).stderr)
    given = ("fit", "orders.csv", "--labels", "last:2", *GERMAN)
    for name, options in (("joint", SMALL), ("chain", ("--s", "1"))):
        credalchain(*given, *options, "--out", f"{name}.model", cwd=folder)
    return folder


@pytest.mark.parametrize("name", FILES)
def test_a_messy_file_from_describe_to_explain(folder, name):
    file, new = FILES[name], FILES[name].table(1)
    given = ("describe", f"{name}.csv", "--labels", "last:2", *file.words, "--json")
    described = json.loads(credalchain(*given, cwd=folder).stdout)["features"]
    kinds = {one["name"]: "left out" if one["left_out"] else one["kind"] for one in described}
    assert kinds == file.kinds
    notes = (folder / f"{name}.notes").read_text()
    assert [words for words in file.notes if words not in notes] == []
    given = (f"{name}.model", f"{name}_new.csv")
    credalchain("predict", *given, "--out", f"{name}_answers.csv", cwd=folder)
    answers = pd.read_csv(folder / f"{name}_answers.csv", dtype=str)
    is_yes = new[answers.columns].isin(["ja", "yes"])
    known = new[answers.columns].notna() & (answers != "*")
    assert known.to_numpy().mean() > 0.85
    assert ((answers == "1") == is_yes).to_numpy()[known.to_numpy()].mean() > 0.9
    done = credalchain("check", *given, "--json", *file.words, cwd=folder)
    assert json.loads(done.stdout)["promises"][0]["estimate"] < 0.25
    label, cause = file.decided
    row = int(np.flatnonzero(is_yes[label] & (answers[label] == "1"))[0])
    done = credalchain("explain", *given, "--row", row, "--labels", label, "--json", cwd=folder)
    similar = json.loads(done.stdout)["similar"]
    assert any(words.startswith(cause) for one in similar for words in one["in_common"])
    read = [name for name, kind in file.kinds.items() if kind != "left out"]
    assert columns_of(load_model(folder / f"{name}.model")) == read


@pytest.mark.parametrize("model", ["joint", "chain"])
def test_weekday_and_words_decide(folder, model):
    done = credalchain("check", f"{model}.model", "orders_new.csv", "--json", *GERMAN, cwd=folder)
    found = json.loads(done.stdout)
    assert found["set_accuracy"] > 0.95  # 0.58 if no label is ever yes
    assert found["completeness"] > 0.9


def columns_of(model):
    return model.feature_names_in_.tolist()


def test_describe_shows_what_becomes_of_a_cell(folder):
    given = ("describe", "orders.csv", "--labels", "last:2", *GERMAN, "--json")
    done = credalchain(*given, "--page", "page.html", cwd=folder)
    by_name = {one["name"]: one for one in json.loads(done.stdout)["features"]}
    first = orders(0).iloc[0]
    day, month, year = first.day.split(".")
    expected = f"{first.day} → year {int(year)}, month {int(month)}, day {int(day)}"
    assert by_name["day"]["example"].startswith(expected)
    number = float(first.price[:-2].replace(".", "").replace(",", "."))
    assert by_name["price"]["example"] == f"{first.price} → {number:g}"
    assert "word '" in by_name["comment"]["example"]
    assert by_name["income"]["absent"] == ["k.A."]
    assert by_name["city"]["example"] == first.city
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert "complaint" in page
    assert "income" in page
    done = credalchain(*given, "--page", "page.csv", cwd=folder, status=1)
    assert "--page page.csv: the name must end in .html" in done.stderr


@pytest.mark.parametrize("model", ["joint", "chain"])
def test_explanations_speak_of_the_columns_of_the_file(folder, model):
    new = orders(1)
    row = int(np.flatnonzero(new.complaint == "ja")[0])
    given = ("explain", f"{model}.model", "orders_new.csv", "--row", row, "--labels", "complaint")
    shown = json.loads(credalchain(*given, "--json", cwd=folder).stdout)
    reasons = [reason["name"] for step in shown["labels"] for reason in step["reasons"]]
    common = [words for one in shown["similar"] for words in one["in_common"]]
    assert any("comment: word 'broken'" in text for text in reasons + common)
    info = credalchain("info", f"{model}.model", cwd=folder).stdout
    assert "5: day, comment, price, income, city" in info


def test_answers_and_reviews_of_prepared_tables(folder, tmp_path):
    shutil.copy(folder / "orders.model", tmp_path)
    new = orders(1).drop(columns=["weekend", "complaint"])
    new.loc[0, "price"] = "12,50 $"
    new.loc[0, "day"] = "2024-02-03"
    new.loc[1, "city"] = "Ulm"
    new.to_csv(tmp_path / "new.csv", index=False)
    done = credalchain("predict", "orders.model", "new.csv", "--out", "a.csv", cwd=tmp_path)
    assert (
        "column 'price' of X: cells that hold no number as in fit, such as '12,50 $'" in done.stderr
    )
    assert "column 'day' of X: cells that hold no date as in fit, such as '2024-" in done.stderr
    assert (
        "column 'city' of X holds values that were never seen in fit, such as 'Ulm'" in done.stderr
    )
    answers = pd.read_csv(tmp_path / "a.csv")
    assert len(answers) == N
    model = load_model(tmp_path / "orders.model")
    cells = new[columns_of(model)]
    rows = ReviewedRows(
        model, cells, cells, AnswerStore(tmp_path / "a.sqlite"), model=("d" * 64, "m")
    )
    np.testing.assert_array_equal(
        rows.labels == 1, answers[["weekend", "complaint"]].isin(["1", 1]).to_numpy()
    )
    why = ReviewSession(rows, show=["comment"]).why(0, 1)
    assert any("comment: word" in text for one in why["similar"] for text in one["in_common"])


def test_tune_and_evaluate_prepare_each_part_by_itself(folder):
    given = ("orders.csv", "--labels", "last:2", *GERMAN, "--trees", "20")
    tuned = credalchain("tune", *given, "--levels", "0.1", "--json", cwd=folder)
    assert json.loads(tuned.stdout)[0]["completeness"] > 0.9
    shown = credalchain("evaluate", *given, "--folds", "2", "--reward", "1", "--json", cwd=folder)
    assert json.loads(shown.stdout)[0]["measures"]["set_accuracy"]["mean"] > 0.9


def test_data_in_parts_is_prepared_by_a_sample(folder, tmp_path):
    (tmp_path / "parts").mkdir()
    table = orders(0)
    for first in range(0, N, 200):
        table[first : first + 200].to_csv(tmp_path / "parts" / f"{first}.csv", index=False)
    given = ("--labels", "last:2", *GERMAN, *SMALL)
    credalchain("fit", "parts", *given, "--out", "m", cwd=tmp_path)
    orders(1).to_csv(tmp_path / "new.csv", index=False)
    one, other = (
        load_model(path).predict(orders(1)[columns_of(load_model(path))])
        for path in (tmp_path / "m", folder / "joint.model")
    )
    assert (one == other).mean() > 0.97  # the sample is everything here, in another order of trees
    credalchain("fit", "parts", *given, "--sample", "300", "--out", "some", cwd=tmp_path)
    found = credalchain("check", "some", "new.csv", "--json", cwd=tmp_path)
    assert json.loads(found.stdout)["set_accuracy"] > 0.9
    shown = credalchain(
        "evaluate", "parts", *given[:-2], "--folds", "2", "--reward", "1", "--json", cwd=tmp_path
    )
    assert json.loads(shown.stdout)[0]["measures"]["set_accuracy"]["mean"] > 0.9


def test_words_of_labels_and_of_missing_cells_are_given(tmp_path):
    rng = np.random.default_rng(0)
    rock = np.where(rng.random(60) < 0.5, "oui", "non").astype(object)
    rock[7] = "inconnu"
    frame = pd.DataFrame({"x": rng.normal(size=60), "kind": rng.choice(["a", "b", "-/-"], 60)})
    frame.assign(rock=rock).to_csv(tmp_path / "t.csv", index=False)
    given = ["fit", "t.csv", "--labels", "rock", "--s", "1", "--out", "m"]
    done = credalchain(*given, cwd=tmp_path, status=1)
    assert "got 'oui' in row" in done.stderr or "got 'non' in row" in done.stderr
    assert "(--yes and --no name other words)" in done.stderr
    words = ["--yes", "oui", "--no", "non"]
    done = credalchain(*given, *words, cwd=tmp_path, status=1)
    assert "got 'inconnu' in row 7" in done.stderr
    credalchain(*given, *words, "--na", "inconnu", "--na", "-/-", cwd=tmp_path)
    model = load_model(tmp_path / "m")
    assert {f.name: f.absent for f in model[0].features} == {"x": (), "kind": ("-/-",)}
    assert unwrap(model)[0].model_.counts.label[0].sum() == 59
    done = credalchain("predict", "m", "t.csv", "--out", "a.csv", cwd=tmp_path)
    assert "never seen" not in done.stderr
    known = credalchain("predict", "m", "t.csv", "--known", "rock", "--out", "-", cwd=tmp_path)
    answers = pd.Series(known.stdout.split()[1:])
    assert (answers == np.where(rock == "oui", "1", "0"))[rock != "inconnu"].all()
    kept = credalchain("check", "m", "t.csv", cwd=tmp_path)
    again = credalchain("check", "m", "t.csv", *words, "--na", "inconnu", cwd=tmp_path)
    assert kept.stdout == again.stdout
    swapped = credalchain("check", "m", "t.csv", "--yes", "non", "--no", "oui", cwd=tmp_path)
    assert swapped.stdout != kept.stdout  # what is given comes first
    done = credalchain(*given, "--yes", "oui", "--no", "oui", cwd=tmp_path, status=1)
    assert "--yes and --no: 'oui' cannot mean both" in done.stderr


@pytest.mark.parametrize(
    ("cells", "number_format", "numbers"),
    [
        (["1.145,25", "22,5"], (",", ".", ""), [1145.25, 22.5]),
        (["$1,234.50", "$7"], (".", ",", "$"), [1234.5, 7]),
        (["22.78 €", "3 €"], (".", "", "€"), [22.78, 3]),
        (["1 000 kg", "20 kg"], (".", " ", "kg"), [1000, 20]),
        (["−5,5 %", "1,25 %"], (",", "", "%"), [-5.5, 1.25]),  # noqa: RUF001
        (["-0,2 °C", "8 °C"], (",", "", "°C"), [-0.2, 8]),
        (["1'000", "1'000'000.5"], (".", "'", ""), [1000, 1000000.5]),
        (["USD 5", "USD 1e3"], (".", "", "USD"), [5, 1000]),
        (["5 kg", "300 g"], None, None),  # two units
        (["$5", "€5"], None, None),
        (["1", "2", "none"], None, None),  # one of few values
        (["030 12345", "040 99"], None, None),  # telephone numbers
        (["12A", "13-B"], None, None),
        (["1.2.3", "1.10.2"], None, None),
    ],
)
def test_numbers_as_people_write_them(cells, number_format, numbers):
    column = pd.Series(cells * 20)
    (feature,) = describe_features(column.to_frame("x"))
    assert feature.number_format == number_format
    if numbers is not None:
        assert read_numbers(pd.Series(cells), *number_format).tolist() == pytest.approx(numbers)


def test_marks_that_are_given_decide():
    column = pd.DataFrame({"x": ["1.145 €", "2.250 €"] * 20})
    (feature,) = describe_features(column)
    assert feature.number_format == (".", "", "€")
    (feature,) = describe_features(column, decimal=",")
    assert feature.number_format == (",", ".", "€")
    (feature,) = describe_features(column, thousands=".")
    assert feature.number_format == (",", ".", "€")


@pytest.mark.parametrize(
    ("name", "values", "is_left_out"),
    [
        ("region_id", range(5), False),
        ("customer_id", range(200), True),
        ("userID", range(200), True),
        ("paid", range(200), False),
        ("amount", np.linspace(0, 1, 1000), False),
        ("number", range(1000), True),
    ],
)
def test_identifiers(name, values, is_left_out):
    column = np.random.default_rng(0).permutation(np.resize(list(values), 1000))
    (feature,) = describe_features(pd.DataFrame({name: column}))
    assert bool(feature.left_out) == is_left_out


def test_kinds_of_texts():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "town": rng.choice([f"Town{chr(65 + i % 26)}{i}" for i in range(90)], 400),
            "serial": [f"x{i}" for i in range(400)],
            "canned": rng.choice([f"we are sorry for the delay {i}" for i in range(90)], 400),
            "mixed": rng.choice(["2024-01-02", "soon after"], 400),
        }
    )
    kinds = {one.name: (one.kind, bool(one.left_out)) for one in describe_features(frame)}
    assert kinds == {
        "town": ("many categories", False),
        "serial": ("many categories", True),
        "canned": ("text", False),
        "mixed": ("categories", False),
    }


def test_a_vectorizer_in_a_pipeline_of_ones_own(tmp_path):
    table, new = orders(0), orders(1)
    columns, labels = ["day", "comment", "city"], ["complaint"]
    Y = (table[labels] == "ja").astype(int)
    model = make_pipeline(skrub.TableVectorizer(), JointDecision(random_state=0))
    promised = PromisedClassifier(model, {"row_error": 0.3}, random_state=0)
    promised.fit(table[columns], Y)
    answers = promised.predict_partial(new[columns])
    assert set_accuracy((new[labels] == "ja").astype(int), answers) > 0.7
    explanation = explain(promised, new[columns].iloc[[0]])
    common = [text for one in explanation.similar for text in one.in_common]
    assert any("comment: letters '" in text or "day_weekday" in text for text in common)
    assert not any("comment_" in text for text in common)
    save_model(promised, tmp_path / "m")
    with pytest.raises(ModelFileError, match=r"skrub\._table_vectorizer\.TableVectorizer"):
        load_model(tmp_path / "m")
    import skops.io

    names = skops.io.get_untrusted_types(file=tmp_path / "m")
    assert all(name.startswith(("skrub.", "credalchain.", "numpy.")) for name in names)
    loaded = load_model(tmp_path / "m", trusted=[n for n in names if n not in TRUSTED_TYPES])
    np.testing.assert_array_equal(loaded.predict_partial(new[columns]), answers)
    rows = ReviewedRows(
        loaded, new[columns], new, AnswerStore(tmp_path / "a.sqlite"), model=("d" * 64, "m")
    )
    np.testing.assert_array_equal(rows.labels, answers)
    session = ReviewSession(rows, show=["comment"])
    assert session.progress()["labels_left"] == (answers == -1).sum()
    assert session.why(0, 0)["similar"][0]["in_common"]


def test_cells_that_hold_no_number_are_missing_and_told():
    numbers = Feature("x", "numbers", number_format=(",", ".", ""), absent=("none",))
    preparer = TablePreparer([numbers, Feature("y", "numbers")])
    table = pd.DataFrame({"x": ["1.000,5", "none", "?!"], "y": [1, 2, 3]})
    with pytest.warns(
        UserWarning, match="'x' of X: cells that hold no number as in fit, such as '\\?!'"
    ):
        read = preparer.fit_transform(table)
    np.testing.assert_array_equal(read.x, [1000.5, np.nan, np.nan])
    assert read.y.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("column", "attribute", "value"),
    [
        ("price", "number_format", (",", ".")),
        ("price", "number_format", (",", ".", 3)),
        ("day", "date_format", 3),
        ("income", "absent", (3,)),
        ("income", "name", 3),
    ],
)
def test_stored_preparations_are_validated(folder, tmp_path, column, attribute, value):
    model = load_model(folder / "joint.model")
    feature = next(one for one in model[0].features if one.name == column)
    object.__setattr__(feature, attribute, value)
    save_model(model, tmp_path / "m")
    with pytest.raises(ModelFileError, match="a column must be described by texts"):
        load_model(tmp_path / "m")


@pytest.mark.parametrize("value", [None, {"comment": "upper"}])
def test_stored_encoders_are_validated(folder, tmp_path, value):
    model = load_model(folder / "joint.model")
    model[0].encoders_ = value
    save_model(model, tmp_path / "m")
    with pytest.raises(ModelFileError, match="encoders"):
        load_model(tmp_path / "m")
