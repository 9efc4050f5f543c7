"""The page of a study, as a file."""

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from credalchain.datasets import DataFile
from credalchain.studies.charts import method_look, with_gaps
from credalchain.studies.results import Store
from credalchain.studies.running import run_study
from credalchain.studies.study_file import load_study
from credalchain.studies.study_page import write_report
from shell import credalchain, small_forests
from study_results import a_study, results_of

DAMAGE = re.compile(r"missing|removed|damage|changed|\blevels?\b", re.IGNORECASE)


class Page(HTMLParser):
    """Texts, tables and links of a page, as a reader sees them without its script."""

    def __init__(self, text):
        super().__init__()
        self.stack, self.texts, self.tables, self.links, self.ids = [], [], [], {}, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        about = dict(attrs)
        if tag not in ("meta", "br"):
            self.stack.append(tag)
        self.ids += [about["id"]] if tag == "section" else []
        if "download" in about:
            self.links[about["download"]] = about["href"]
        if "aria-label" in about:
            self.texts.append(about["aria-label"])
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag):
        while self.stack and self.stack.pop() != tag:
            pass

    def handle_data(self, data):
        if {"style", "script"} & set(self.stack):
            return
        self.texts.append(data)
        if {"td", "th"} & set(self.stack):
            self.tables[-1][-1][-1] += data

    @property
    def words(self):
        return " ".join(self.texts)


def written(study, store, folder):
    files = {file.name: file for file in write_report(study, store, folder / "report")}
    text = files["report.html"].read_text(encoding="utf-8")
    return Page(text), files, text


def skill(method, dataset):
    return 0.1 * (method == "a")


def two_parameters(method):
    name = {"a": "reward", "b": "s", "c": ""}[method]
    return {"caution_parameter": name, "larger_is_more_cautious": method != "a"}


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Without damage, with two kinds of caution and a method that has none."""
    folder = tmp_path_factory.mktemp("plain")
    study = a_study(["x", "y", "z"], ["a", "b", "c"])
    store = results_of(study, folder / "r", skill, caution=two_parameters)
    return written(study, store, folder)


@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("damaged")
    study = a_study(["x", "y"], ["a", "b"], levels=(0.0, 0.25, 0.5))
    return written(study, results_of(study, folder / "r", skill), folder)


def test_findings_come_first(plain):
    page, _, text = plain
    assert page.ids == ["findings", "curves", "tables", "about"]
    lead = text.index("“a” at 100, 95, 90, 80 and 60 %")
    assert lead < text.index("<table") < text.index('id="curves"') < text.index('id="tables"')
    head, *rows = page.tables[0]
    assert head[1:3] == ["100 % answered3 of 3 data sets", "95 % answered3 of 3 data sets"]
    assert rows[0][0] == "a"
    assert re.fullmatch(r"40\.\d ± 0\.\drank 1\.00, best", rows[0][1])
    assert re.fullmatch(r"[23]\d\.\d ± 0\.\drank \d\.\d\d, worse on 3 of 3", rows[1][1])


def test_tables_are_whole_without_a_script_and_the_same_as_the_files(plain):
    page, files, _ = plain
    names = {name for name in files if name.endswith(".csv")}
    assert set(page.links) == names
    for name, address in page.links.items():
        kind, _, data = address.partition(",")
        assert kind == "data:text/csv;charset=utf-8;base64"
        assert base64.b64decode(data) == files[name].read_bytes()
    shown = [table for table in page.tables if table[0][-2:] == ["set_accuracy", "completeness"]]
    assert len(shown[0]) == 1 + len(pd.read_csv(files["measures.csv"]))


def test_numbers_in_tables_are_numbers(plain):
    """Negative ones too, which as text would get an apostrophe against formulas."""
    _, files, _ = plain
    tests = pd.read_csv(files["tests.csv"])
    assert tests["difference"].min() < 0 < tests["difference"].max()
    findings = pd.read_csv(files["findings.csv"])
    for column in ("set_accuracy", "spread", "average_rank"):
        assert findings[column].dtype == float
    assert "'" not in files["tests.csv"].read_text()


def test_caution_parameters_have_their_names(plain):
    page, files, _ = plain
    assert "reward (smaller is more cautious), of “a”" in page.words
    assert "s (larger is more cautious), of “b”" in page.words
    assert "none, of “c”" in page.words
    for name in ("summary.csv", "measures.csv"):
        table = pd.read_csv(files[name], keep_default_na=False)
        assert "s" not in table
        assert table.groupby("method")["parameter"].unique().map(list).to_dict() == {
            "a": ["reward"],
            "b": ["s"],
            "c": [""],
        }
        assert set(table.loc[table["method"] == "c", "value"]) == {""}


@pytest.mark.parametrize("name", ["reward", pytest.param("s", marks=pytest.mark.slow), "method"])
def test_one_caution_parameter_is_a_column(tmp_path, name):
    study = a_study(["x"], ["a", "b"], levels=(0.0, 0.5))
    about = {"caution_parameter": name, "larger_is_more_cautious": name != "reward"}
    store = results_of(study, tmp_path / "r", skill, caution=lambda method: about)
    page, files, _ = written(study, store, tmp_path)
    table = pd.read_csv(files["measures.csv"])
    if name == "method":  # the name of another column
        assert list(table.columns)[3:5] == ["parameter", "value"]
    else:
        assert list(table.columns)[3] == name
        assert table[name].drop_duplicates().tolist()[:3] == [0.0, 1.0, 2.0]
    direction = "smaller" if name == "reward" else "larger"
    assert f"{name} ({direction} is more cautious)" in page.words


def test_nothing_about_damage_where_there_is_none(plain, damaged):
    page, files, _ = plain
    assert not DAMAGE.search(page.words)
    for name, file in files.items():
        assert not DAMAGE.search(name)
        if name.endswith(".csv"):
            assert not DAMAGE.search(file.read_text())
    assert ">x</text>" in files["trade_off.svg"].read_text()
    page, files, _ = damaged
    assert "Training labels" not in page.words
    assert "0, 25 and 50 % of the training labels removed" in page.words
    assert "removed" in pd.read_csv(files["summary.csv"])
    assert pd.read_csv(files["measures.csv"])["removed"].unique().tolist() == [0, 0.25, 0.5]
    assert ">x, 25 % removed</text>" in files["trade_off.svg"].read_text()


def test_a_chart_by_level_for_each_data_set_and_method(plain, damaged):
    assert "by_level.svg" not in plain[1]
    page, files, _ = damaged
    text = files["by_level.svg"].read_text()
    results = pd.read_csv(files["summary.csv"])
    curves = results[["dataset", "method", "strategy"]].drop_duplicates()
    assert text.count("training labels removed (%)") == len(curves)
    assert "Measures by the share of labels removed" in page.words


def test_labels_that_are_changed_are_not_called_removed(tmp_path):
    study = replace(a_study(["x"], ["a"], levels=(0.1, 0.2)), corruption="flip")
    page, files, _ = written(study, results_of(study, tmp_path / "r", skill), tmp_path)
    assert "removed" not in page.words
    assert "missing" not in page.words
    assert re.search(r"(10|10 and 20) % of the training labels changed: “a” is the", page.words)
    assert "changed" in pd.read_csv(files["summary.csv"])


def test_the_page_needs_nothing_else(plain, damaged):
    for _, _, text in (plain, damaged):
        assert not re.search(r"https?:|\bsrc=|@import|url\(", text)
        (policy,) = re.findall(r'Security-Policy" content="([^"]+)"', text)
        assert policy.startswith("default-src 'none'; ")
        for tag in ("style", "script"):
            (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
            digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
            assert f"{tag}-src 'sha256-{digest}'" in policy
        assert " style=" not in text  # the policy would not have it
        assert not re.search(r"\son\w+=", text)


@pytest.mark.slow
def test_many_methods_stay_on_the_first_screen(tmp_path):
    names = [f"method {i:02}" for i in range(20)]
    study = a_study(["x"], names, repeats=1)
    store = results_of(study, tmp_path / "r", lambda m, d: int(m[-2:]) / 100, noise=0.001)
    page, _, _ = written(study, store, tmp_path)
    rows = page.tables[0][1:]
    assert [row[0] for row in rows] == [f"method {i:02}" for i in range(19, 7, -1)]
    assert "8 more methods in the tables" in page.words


def test_tasks_that_are_not_done_are_told(tmp_path):
    study = a_study(["x"], ["a", "b"])
    store = results_of(study, tmp_path / "r", skill)
    next((tmp_path / "r" / "results").glob("x-b-1*")).unlink()
    page, _, _ = written(study, store, tmp_path)
    assert "1 task of this study without a result, of which 0 failed." in page.words


def test_a_study_that_cannot_be_compared_has_its_tables(tmp_path):
    study = a_study(["x"], ["a"], measures=("incorrectness",))
    page, files, _ = written(study, results_of(study, tmp_path / "r", skill), tmp_path)
    assert page.ids == ["findings", "tables", "about"]
    assert "does not measure both set-accuracy and completeness" in page.words
    assert "incorrectness" in pd.read_csv(files["measures.csv"])
    assert not [name for name in files if name.endswith(".svg")]


def test_gaps_are_drawn_as_gaps():
    """A line ends where the next point is more than 25 points of completeness away."""
    points = {"completeness": [0.2, 0.84, 0.9, 1.0], "set_accuracy": [0.9, 0.5, 0.4, 0.3]}
    summary = pd.DataFrame({**points, "s": [4.0, 3.0, 2.0, 1.0], "set_accuracy_spread": 0.1})
    summary = summary.assign(dataset="x", method="a", strategy="none", missing=0.0)
    curve = with_gaps(summary)
    assert curve.dropna()["completeness"].tolist() == [0.2, 0.84, 0.9, 1.0]
    assert np.flatnonzero(curve["set_accuracy"].isna()).tolist() == [1]


def test_looks_of_methods_differ():
    looks = [method_look(turn) for turn in range(28)]
    assert len({tuple(look.values()) for look in looks}) == len(looks)
    assert len({look["color"] for look in looks[:7]}) == 7


JOINT = """
seed = 1
data = [{ file = "songs.csv", labels = ["rock", "pop"] }]
measures = ["set_accuracy", "completeness"]

[cross_validation]
folds = 5
repeats = 2

[[method]]
name = "chain"
s = [0.0, 1.0, 2.0, 4.0, 8.0]

[[method]]
name = "joint"
kind = "estimator"
class = "credalchain.JointDecision"
params = { estimator = { class = "credalchain.CredalJointForest", members = [] } }
s = [0.3, 0.7, 1.0, 1.5, 1000.0]

[[method]]
name = "tree"
kind = "estimator"
class = "sklearn.tree.DecisionTreeClassifier"
"""


@pytest.mark.slow
def test_a_study_for_real(tmp_path):
    """A file of one's own, a chain, a joint decision and a method without caution."""
    table = "tempo,year,rock,pop\n" + "".join(
        f"{i * 37 % 101},{i * 53 % 89},{int(i * 37 % 101 > 50)},{int(i * 53 % 89 > i * 37 % 101)}\n"
        for i in range(120)
    )
    (tmp_path / "songs.csv").write_text(table)
    (tmp_path / "joint.toml").write_text(JOINT)
    study, store = load_study(tmp_path / "joint.toml"), Store(tmp_path / "r")
    assert isinstance(study.data[0], DataFile)
    with small_forests():
        assert run_study(study, store, n_jobs=1) == 0, store.errors(study)
    done = credalchain("report", "r", cwd=tmp_path)
    page = Page((tmp_path / "r" / "report" / "report.html").read_text())
    assert done.stdout.splitlines()[0] in page.words
    assert "s (larger is more cautious), of “chain”" in page.words
    assert "reward (smaller is more cautious), of “joint”" in page.words
    assert "none, of “tree”" in page.words
    assert not DAMAGE.search(page.words)
    summary = pd.read_csv(tmp_path / "r" / "report" / "summary.csv")
    named = summary.dropna(subset="parameter").groupby("method")["parameter"].unique()
    assert named.map(list).to_dict() == {"chain": ["s"], "joint": ["reward"]}


def test_long_tables_are_files_beside_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr("credalchain.studies.study_page._MAX_ROWS_ON_PAGE", 20)
    study = a_study(["x", "y"], ["a", "b"])
    page, files, text = written(study, results_of(study, tmp_path / "r", skill), tmp_path)
    assert len(pd.read_csv(files["measures.csv"])) > 20
    assert '<a href="measures.csv">measures.csv</a>' in text
    assert not [table for table in page.tables if len(table) > 21]
    assert {"findings.csv", "areas.csv"} <= set(page.links)
