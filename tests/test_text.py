"""Names from files are text wherever they go, whatever they are made of."""

import csv
import io
import json
import os
import re
import sys
from html.parser import HTMLParser
from itertools import product
from xml.etree import ElementTree

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import ExtraTreesRegressor

from credalchain import CredalChainClassifier, CredalJointForest, explain, save_model
from credalchain._utils.text import for_figure, for_spreadsheet, from_spreadsheet, to_csv, visible
from credalchain.cli.tables import load_table, write_table
from credalchain.metrics.report import partial_report
from credalchain.plotting import CompletenessCurveDisplay, plot_explanation, plot_predictions
from credalchain.studies.results import Store
from credalchain.studies.study_file import Method, Study
from credalchain.studies.study_page import write_report
from credalchain.studies.tasks import expand
from shell import credalchain

NAMES = [
    "<script>alert(1)</script>",
    "[red]x[/red]",
    "[/]",
    "\x1b[31mred",
    "=cmd()",
    "+1",
    "-1+1",
    "@x",
    "\tx",
    "../../x",
    "a/b",
    "a\nb",
    "a\rb",
    "$x^2$",
    r"\$ $\frac$",
    "_hidden",
    '"quoted"',
    "'",
    "'=cmd()",
    "&amp;",
    "long " * 60,
    "right\u202eleft",
    "\x9b31m c1",
]
UNSAFE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")  # \n ends lines
FORMULA = ("=", "+", "-", "@", "\t", "\r")
N = 60


@pytest.fixture(scope="module")
def table():
    """A table in which labels, features, categories and row names are called anything."""
    rng = np.random.default_rng(0)
    columns = {f"feature {name}": rng.normal(size=N).round(2) for name in NAMES}
    columns["=category"] = [NAMES[row % len(NAMES)] for row in range(N)]
    labels = {name: rng.integers(0, 2, N) for name in NAMES}
    return pd.DataFrame({**columns, **labels})


@pytest.fixture(scope="module")
def fitted(table):
    X, Y = table.drop(columns=NAMES), table[NAMES]
    return CredalChainClassifier(s=1.0, random_state=0).fit(X, Y), X, Y


@pytest.fixture(scope="module")
def place(tmp_path_factory, table, fitted):
    folder = tmp_path_factory.mktemp("names")
    save_model(fitted[0], folder / "m")
    table.to_parquet(folder / "table.parquet", index=False)
    return folder


# -- terminal ------------------------------------------------------------------------------


def test_what_is_visible_stays_as_it_is():
    for name in ("rock", "häufig, 日本 [x] $", "C:\\new", "\u0632\u200c\u0647", "a\u00a0b"):
        assert visible(name) == name
    assert visible("\x1b\n\x9b\u202e\ud800") == r"\x1b\n\x9b\u202e\ud800"


def test_names_in_texts_of_the_library(fitted):
    chain, X, Y = fitted
    prediction = chain.infer(X)
    report = partial_report(Y, prediction)
    why = str(explain(chain, X.iloc[[3]]))
    few = CredalChainClassifier(random_state=0).fit(X, Y[NAMES[:12]]).infer(X)
    for text in (report, why, repr(few)):
        assert not UNSAFE.search(text)
    assert len(report.splitlines()) == len(NAMES) + 3
    assert len(repr(few).splitlines()) == 1 + 1 + 10 + 1
    assert all(visible(name) in report for name in NAMES)
    assert all(visible(name) in why for name in NAMES)
    assert set(partial_report(Y, prediction, output_dict=True)) == {*NAMES, "all labels"}


def test_names_in_the_shell(place):
    said = credalchain("info", "m", cwd=place).stdout
    assert all(visible(name) in said for name in NAMES)
    explained = credalchain("explain", "m", "table.parquet", "--row", "3", cwd=place).stdout
    assert "[red]x[/red]" in explained
    assert r"\x1b[31mred" in explained
    machine = credalchain("info", "m", "--json", cwd=place).stdout
    assert json.loads(machine)["labels"] == NAMES
    options = ["--labels", f"last:{len(NAMES)}", "--folds", "2", "--s", "1"]
    evaluated = credalchain("evaluate", "table.parquet", *options, cwd=place)
    assert "[red]x[/red]" in evaluated.stdout
    for text in (said, explained, machine, evaluated.stdout, evaluated.stderr):
        assert not UNSAFE.search(text)


def test_names_in_errors_and_notes(place, table):
    options = ["--labels", "nothing", "--out", "n"]
    done = credalchain("fit", "table.parquet", *options, cwd=place, status=1)
    assert "feature [red]x[/red]" in done.stderr
    assert r"feature \x1b[31mred" in done.stderr
    table.assign(**{"a\nb": None, "\x1b[31mred": None}).to_parquet(place / "never.parquet")
    labels = ["--labels", f"last:{len(NAMES)}", "--out", "n"]
    note = credalchain("fit", "never.parquet", *labels, cwd=place)
    assert r"never observed in training, so left open in every prediction: \x1b[31mred, a\nb" in (
        note.stderr
    )
    for text in (done.stderr, note.stderr):
        assert not UNSAFE.search(text)
    assert len(done.stderr.splitlines()) == 1


def test_answers_on_a_terminal(monkeypatch, capsys):
    answers = pd.DataFrame({"\x1b[31mred": ["1", "*"], "id": ["\x1b]0;title\x07", "a\rb"]})
    write_table(answers, "-")
    assert "\x1b[31mred" in capsys.readouterr().out  # bytes for another program
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    write_table(answers, "-")
    shown = capsys.readouterr().out
    assert shown == "\\x1b[31mred,id\n1,\\x1b]0;title\\x07\n*,a\\rb\n"


# -- spreadsheets --------------------------------------------------------------------------


def cells_of(text):
    return list(csv.reader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("name", [*NAMES, "''=x", "'-", "\uff1dx", "plain", ""])
def test_formulas_become_text_and_back(name):
    written = for_spreadsheet(name)
    assert not written.startswith((*FORMULA, "\uff1d"))
    assert from_spreadsheet(written) == name
    assert (written != name) == name.lstrip("'").startswith((*FORMULA, "\uff1d"))


def test_all_names_stay_different_in_spreadsheets():
    names = [*NAMES, *(f"'{name}" for name in NAMES), *(f"''{name}" for name in NAMES)]
    assert len(set(map(for_spreadsheet, names))) == len(set(names))


def test_numbers_stay_numbers():
    frame = pd.DataFrame(
        {
            "-depth": [-1.5, np.nan],
            "n": pd.array([-1, pd.NA], dtype="Int8"),
            "mixed": pd.Series([-2, "-2"], dtype=object),
            "kind": pd.Categorical(["=x", None]),
            "list": [[-1], []],
        }
    )
    assert to_csv(frame) == "'-depth,n,mixed,kind,list\n-1.5,-1,-2,'=x,[-1]\n,,'-2,,[]\n"


def test_predictions_in_a_spreadsheet_and_back(place, table):
    """Nothing in the answers is a formula, and our own reading gives every name back."""
    options = ["--keep", "=category", "--intervals", "--out", "answers.csv"]
    credalchain("-q", "predict", "m", "table.parquet", *options, cwd=place)
    rows = cells_of((place / "answers.csv").read_bytes().decode())
    assert len(rows) == N + 1
    assert not any(cell.startswith(FORMULA) for row in rows for cell in row)
    assert rows[0][1::3] == [for_spreadsheet(name) for name in NAMES]
    answers, _ = load_table(str(place / "answers.csv"))
    assert answers.columns[0] == "=category"
    assert answers.columns[1::3].tolist() == NAMES
    assert answers["=category"].tolist() == table["=category"].tolist()
    write_table(answers, str(place / "again.tsv"))
    pd.testing.assert_frame_equal(load_table(str(place / "again.tsv"))[0], answers)
    write_table(answers, str(place / "again.parquet"))
    pd.testing.assert_frame_equal(pd.read_parquet(place / "again.parquet"), answers)


def test_answers_with_odd_names_can_be_given_back(place, table):
    """What was answered is known in the next call, although a CSV file names it otherwise."""
    (place / "told.csv").write_bytes(to_csv(table).encode())
    options = ["--known", "all", "--out", "same.csv"]
    credalchain("-q", "predict", "m", "told.csv", *options, cwd=place)
    rows = cells_of((place / "same.csv").read_bytes().decode())
    assert rows[1:] == table[NAMES].astype(str).to_numpy().tolist()


def test_two_columns_that_are_one_name(tmp_path):
    (tmp_path / "two.csv").write_text("=x,'=x\n1,2\n")
    with pytest.raises(ValueError, match="two columns called '=x'"):
        load_table(str(tmp_path / "two.csv"))


# -- files, tables, figures and the page of a study ----------------------------------------


def study(data, *methods, levels=(0.0,)):
    data = (data,) if isinstance(data, str) else tuple(data)
    made = tuple(Method(name) for name in methods)
    measures = ("set_accuracy", "completeness")
    return Study(NAMES[0], 0, "default", data, made, "uniform", levels, 2, 1, measures)


def finished(plan, folder):
    """A folder of results without the work."""
    store = Store(folder)
    store.open(plan)
    sizes = dict.fromkeys(("features", "labels", "rows", "cardinality", "density"), 1)
    store.save_facts([{"dataset": name, "domain": name, **sizes} for name in plan.data])
    for task in expand(plan):
        about = {"dataset": task.dataset, "method": task.method.name, "strategy": "branching"}
        times = {"fit_seconds": 1.0, "predict_seconds": 1.0}
        times |= {"caution_parameter": "s", "larger_is_more_cautious": True}
        points = product(plan.levels, (0.0, 2.0))
        records = [
            {**about, "s": s, "missing": level, "repetition": 0, "fold": 0, **times}
            | {"set_accuracy": 0.5 + s / 10, "completeness": 0.8 - s / 10}
            for level, s in points
        ]
        store.save(task, records)
    return store


WIDE = "日本語" * 100


def test_every_task_has_a_file_of_its_own_in_the_folder(tmp_path):
    plan = study([*NAMES, ".hidden", WIDE, "a_b"], *NAMES, WIDE, "a_b", "A_B", "nul\0", "..")
    store = Store(tmp_path / "r")
    store.open(plan)
    paths = [store._result_file(task) for task in expand(plan)]
    assert len({path.name.casefold() for path in paths}) == len(paths)
    for path in paths:
        assert path.parent == tmp_path / "r" / "results"
        assert not path.name.startswith(".")
        assert len(path.name.encode()) + 10 <= 255  # with what a temporary file adds
        assert not set(path.name) & set('<>:"/\\|?*\0\n')


def test_results_under_odd_names_are_found_again(tmp_path):
    plan = study([".hidden", "../../x", WIDE], "\x1b[31mred", WIDE, "nul\0")
    store = finished(plan, tmp_path / "r")
    assert {path.name for path in tmp_path.iterdir()} == {"r"}
    for file in (tmp_path / "r" / "results").iterdir():
        os.utime(file, (0, 0))
    store.open(plan)  # sweeps old hidden files
    assert store.n_open(plan) == 0
    assert set(store.results(plan)["dataset"]) == set(plan.data)


def test_files_of_ordinary_names_are_called_as_ever():
    (task,) = expand(study("embedded:yeast", "forest chain, s = 0.5"))
    assert re.fullmatch(r"embedded_yeast-forest_chain__s___0\.5-0-[0-9a-f]{12}", task.identity)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    plan = study(["../../x", "$x$ \x1b[31m"], *NAMES)
    write_report(plan, finished(plan, folder / "r"), folder / "r" / "report")
    return folder / "r" / "report"


ATTRIBUTES = {
    *("lang", "charset", "name", "content", "http-equiv", "class", "id", "scope", "tabindex"),
    *("role", "aria-label", "aria-hidden", "href", "download", "data-v"),
    *("viewbox", "d", "x", "y", "transform", "text-anchor", "color", "fill", "stroke"),
    *("stroke-width", "stroke-dasharray", "stroke-dashoffset", "stroke-linecap", "stroke-linejoin"),
    *("font-size", "font-family", "font-weight", "opacity", "fill-opacity", "stroke-opacity"),
}


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.labels = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if ("role", "img") in attrs:
            self.labels.append(dict(attrs)["aria-label"])
        assert {key for key, _ in attrs} <= ATTRIBUTES

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.slow
def test_names_on_the_page(report):
    text = (report / "report.html").read_bytes().decode()
    page = Page(text)
    assert not UNSAFE.search(text)
    assert not {"red", "b"} & set(page.tags)
    assert page.tags.count("script") == 1  # our own
    assert "Study: <script>alert(1)</script>" in page.text
    assert {visible(name).strip() for name in NAMES} <= {words.strip() for words in page.text}


def test_names_in_tables_of_a_report(report):
    for file in report.glob("*.csv"):
        rows = cells_of(file.read_bytes().decode())
        assert not any(cell.startswith(FORMULA) for row in rows for cell in row)
    methods = [row[1] for row in cells_of((report / "summary.csv").read_bytes().decode())[1:]]
    assert {from_spreadsheet(name) for name in methods} == set(NAMES)


def test_pictures_of_one_title_are_all_there(tmp_path):
    plan = study(["a", "a, 0 % removed"], "b: c", "c", levels=(0.0, 0.5))
    files = write_report(plan, finished(plan, tmp_path / "r"), tmp_path / "report")
    assert {path.name for path in tmp_path.iterdir()} == {"r", "report"}
    labels = Page(files[-1].read_text()).labels
    assert (
        len([label for label in labels if label.startswith("Set-accuracy against")]) == 6
    )  # and the mean


# -- figures -------------------------------------------------------------------------------


def texts_of(figure):
    """What is drawn, in words; fails if a name was read as mathematics or is not XML."""
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg")
    root = ElementTree.fromstring(buffer.getvalue())
    assert not [node for node in root.iter() if node.tag.endswith("script")]
    drawn = [node for node in root.iter() if node.tag.endswith("}text")]
    assert not any(len(node) for node in drawn)  # mathematics is drawn in pieces
    return {(node.text or "").replace("\u200b", "") for node in drawn}


def as_drawn(names, most):
    shown = [visible(name) for name in names]
    return {words if len(words) <= most else words[: most - 1] + "…" for words in shown}


@pytest.mark.slow
def test_names_in_pictures_of_predictions(fitted):
    chain, X, _ = fitted
    shown = X.iloc[: len(NAMES)].set_axis(NAMES, axis=0)
    drawn = texts_of(
        plot_predictions(chain.infer(shown), rows=range(len(NAMES)), max_labels=None).figure
    )
    assert as_drawn(NAMES, 24) <= drawn
    assert as_drawn(NAMES, 60) <= drawn
    plt.close("all")


@pytest.mark.slow
def test_names_in_pictures_of_explanations(fitted):
    chain, X, _ = fitted
    for row in range(3):
        everything = explain(chain, X.iloc[[row]], max_labels=None)
        drawn = texts_of(plot_explanation(everything, top=2, max_labels=None))
        assert as_drawn(NAMES, 24) <= drawn
    plt.close("all")


def test_names_in_legends():
    _, ax = plt.subplots()
    for name in NAMES:
        CompletenessCurveDisplay.from_predictions([[1, 0]], [[[1, 0]]], name=name, ax=ax)
    assert as_drawn(NAMES, 60) <= texts_of(ax.figure)
    plt.close("all")


@pytest.mark.slow
def test_names_in_charts_of_a_report(report):
    root = ElementTree.parse(report / "trade_off.svg").getroot()
    assert not [node for node in root.iter() if node.tag.endswith("script")]
    drawn = {node.text for node in root.iter() if node.tag.endswith("}text")}
    curves = as_drawn([f"{name}, branching" for name in NAMES], 60)
    others = {text for text in drawn if "branching" in text} - curves
    assert len(curves & drawn) == min(len(curves), 7)  # of the methods that come first
    assert not others
    assert as_drawn(["../../x", "$x$ \x1b[31m"], 60) <= drawn


def test_figures_show_long_names_in_part():
    assert for_figure("x" * 300, 24) == "x" * 23 + "…"
    assert for_figure("rock [x]") == "rock [x]"


def test_views_for_notebooks_are_escaped_and_short():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    names = ["<script>x</script>", *(f"label {j}" for j in range(29))]
    Y = pd.DataFrame((rng.random((60, 30)) < 0.4).astype(int), columns=names)
    chain = CredalChainClassifier(s=3.0, random_state=0).fit(X, Y)
    for view in (chain.infer(X)._repr_html_(), explain(chain, X[0])._repr_html_()):
        assert "<script>" not in view
        assert view.startswith('<div class="credalchain">')
        assert "and 10 more" in view
        assert "currentColor" in view  # light on a dark page
    assert "and 50 more" in chain.infer(X)._repr_html_()
    forest = CredalJointForest(ExtraTreesRegressor(5, bootstrap=True), random_state=0).fit(X, Y)
    assert "training row" in explain(forest, X[0])._repr_html_()
