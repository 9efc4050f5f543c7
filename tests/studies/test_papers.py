"""What a report has for papers: areas, best rivals, LaTeX tables, PDF and pgfplots."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from credalchain.studies.charts import COLUMN_WIDTH, Plot, positives_plot
from credalchain.studies.findings import (
    area_measures,
    areas_of_folds,
    compare_areas,
    compare_methods,
    folds_at_completeness,
    in_order,
    in_words,
    mean_curves,
    rival_lines,
    seconds_of_fold,
)
from credalchain.studies.latex import booktabs, latex_text, pgfplots
from credalchain.studies.study_file import Method
from credalchain.studies.study_page import findings_in_words, write_report
from profiles import examples
from study_results import a_study, results_of

ODD = [r"50 % of a_b & c {x}", r"$y$ #1 ~^\ <2>", "plain"]
ALL = ("set_accuracy", "completeness", "selective_error", "recall_micro")


def skill(method, dataset):
    return {ODD[0]: 0.1, ODD[1]: 0.05, ODD[2]: 0.0}[method]


def braces_are_balanced(text):
    """Return whether every brace that LaTeX sees is closed, and none before it was opened."""
    depth = 0
    for sign in re.findall(r"\\.|[{}]", text, re.DOTALL):
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if depth < 0:
            return False
    return depth == 0


def environments(text):
    return re.findall(r"\\begin\{(.+?)\}", text), re.findall(r"\\end\{(.+?)\}", text)[::-1]


def cells_of(text):
    """Return the cells of a table as they are set, line by line."""
    words = (("textless{}", "<"), ("textgreater{}", ">"), ("textbackslash{}", "\\"))
    words += (("textasciitilde{}", "~"), ("textasciicircum{}", "^"))
    lines = [line.removesuffix(r" \\") for line in text.splitlines() if line.endswith(r" \\")]
    rows = []
    for line in lines:
        cells = line.split(" & ")  # in text it is " \\& "
        for word, sign in words:
            cells = [cell.replace("\\" + word, sign) for cell in cells]
        cells = [cell.replace(r"$\pm$", "±").replace("$-$", "-") for cell in cells]
        rows.append([re.sub(r"\\([{}$&#_%])", r"\1", cell).strip() for cell in cells])
    return rows


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report of two data sets and three methods with odd names, two levels of damage."""
    folder = tmp_path_factory.mktemp("report")
    study = a_study(["x", "y_1"], ODD, levels=(0.0, 0.5), measures=ALL)
    files = write_report(study, results_of(study, folder / "r", skill), folder / "report")
    return study, {str(file.relative_to(folder / "report")): file for file in files}


# -- LaTeX -------------------------------------------------------------------------------------


@examples(100)
@example("{}$&#_%\\~^<>±|…")
@given(st.text())
def test_text_is_set_as_it_is(words):
    text = latex_text(words)
    assert braces_are_balanced(text)
    plain = re.sub(r"\\[a-z]+\{\}|\\[{}$&#_%]|\$\\pm\$", "", text)
    assert not set(plain) & set("{}$&#%\\~^\n") - ({"\\"} if "\\x" in text else set())


def test_tables_have_the_numbers_of_the_page(report):
    """The same rows, columns and cells as the CSV, whose links on the page are tested elsewhere."""
    _, files = report
    tables = [name for name in files if name.endswith(".tex")]
    assert {"latex/areas.tex", "latex/rivals.tex", "latex/findings.tex"} <= set(tables)
    for name in tables:
        text = files[name].read_text()
        assert braces_are_balanced(text)
        opened, closed = environments(text)
        assert opened == closed == ["tabular"]
        rules = [text.index(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")]
        assert rules == sorted(rules)
        head, *rows = cells_of(text)
        (columns,) = re.findall(r"\\begin\{tabular\}\{([lr]+)\}", text)
        assert {len(row) for row in (head, *rows)} == {len(columns)}
        frame = pd.read_csv(files[name.split("/")[1].replace(".tex", ".csv")], dtype=str)
        frame = frame.fillna("").loc[:, lambda f: ((f != "") & (f != "none")).any()]
        assert head == [column.replace("_", " ") for column in frame]
        assert len(rows) == len(frame)
        for column, kind in enumerate(columns):
            texts, expected = [row[column] for row in rows], frame.iloc[:, column].tolist()
            if kind == "l":
                assert texts == expected
            else:
                numbers = [[float(x) for x in re.findall(r"-?\d+\.?\d*", t)] for t in texts]
                wanted = [[float(x) for x in re.findall(r"-?\d+\.?\d*", t)] for t in expected]
                for one, other in zip(numbers, wanted, strict=True):
                    assert one == pytest.approx(other, rel=1e-5)


def test_columns_of_numbers_stand_right():
    frame = pd.DataFrame(
        {"a": ["x", "y"], "b": ["1.0 ± 0.2", "-2"], "c": ["-1.0 ± 2.0 (1 of 6)", ""], "e": ""}
    )
    text = booktabs(frame.assign(p=["< 0.001", "0.5"], share=["5 %", "10 %"], strategy="none"))
    assert r"\begin{tabular}{lrrrr}" in text
    assert r"$-$1.0 $\pm$ 2.0 (1 of 6)" in text
    assert "strategy" not in text


# -- figures -----------------------------------------------------------------------------------


def coordinates(text):
    return [(float(x), float(y)) for x, y in re.findall(r"\(([^,() ]+),([^() ]+)\)", text)]


def test_a_figure_of_pgfplots_has_the_points_and_the_gaps():
    x = np.array([20.0, 40, 60, 80, 100])
    y = np.array([90.0, 80, np.nan, 60, 50.125])
    line = pd.DataFrame({"x": x, "y": y, "low": y - 2, "high": y + 1})
    text = pgfplots(Plot("open (%)", "y_1", {0: line, 1: line.assign(low=np.nan)}), ODD[:2])
    assert braces_are_balanced(text)
    opened, closed = environments(text)
    assert opened == closed == ["tikzpicture", "axis"]
    assert f"width={COLUMN_WIDTH}in" in text
    assert "unbounded coords=jump" in text
    bands = [one for one in text.splitlines() if one.endswith("-- cycle;")]
    lines = [one for one in text.splitlines() if "addplot" in one and one not in bands]
    assert [coordinates(band.split("coordinates")[1]) for band in bands] == [
        [(20, 91), (40, 81), (40, 78), (20, 88)],
        [(80, 61), (100, 51.125), (100, 48.125), (80, 58)],
    ]
    for one in lines:
        np.testing.assert_allclose(coordinates(one.split("coordinates")[1]), np.c_[x, y])
    legend = [one for one in text.splitlines() if "legendentry" in one]
    assert legend == [rf"\addlegendentry{{{latex_text(name)}}}" for name in ODD[:2]]
    assert len(set(re.findall(r"\\definecolor\{method\d\}\{HTML\}\{([0-9A-F]{6})\}", text))) == 2


def test_a_report_has_figures_as_wide_as_a_column(report):
    _, files = report
    figures = {name for name in files if name.endswith((".pdf", ".pgf"))}
    assert figures == {
        f"latex/{what}-{dataset}-{level}-removed.{kind}"
        for what in ("trade_off", "selective_errors", "positives_found")
        for dataset in ("x", "y_1", "mean-of-2-data-sets")
        for level in (0, 50)
        for kind in ("pdf", "pgf")
    }
    for name in figures:
        content = files[name].read_bytes()
        if name.endswith(".pgf"):
            assert braces_are_balanced(content.decode())
            assert content.count(b"legendentry") == len(ODD)
        else:
            (box,) = re.findall(rb"/MediaBox \[([^\]]+)\]", content)
            assert float(box.split()[2]) == pytest.approx(72 * COLUMN_WIDTH)
            assert b"/FontFile2" in content  # fonts are embedded, as TrueType


def test_figures_of_a_column_have_the_best_seven_methods(tmp_path):
    names = [f"method {i}" for i in range(9)]
    study = a_study(["x"], names, repeats=1)
    store = results_of(study, tmp_path / "r", lambda m, d: int(m[-1]) / 20, noise=0.001)
    files = {file.name: file for file in write_report(study, store, tmp_path / "report")}
    assert "positives_found-x.pgf" not in files  # it is not measured
    text = files["trade_off-x.pgf"].read_text()
    assert re.findall(r"legendentry\{method (\d)\}", text) == list("2345678")


# -- positives found, areas, rivals ------------------------------------------------------------


def test_positives_are_drawn_against_open_labels_per_row():
    points = {"completeness": [1.0, 0.5, 0.75], "recall_micro": [0.8, 0.3, 0.6]}
    summary = pd.DataFrame({**points, "recall_micro_spread": 0.25, "set_accuracy": 0.5})
    plot = positives_plot(summary.assign(method="a", strategy="none"), [("a", "none")], 8)
    line = plot.lines[0]
    assert line["x"].tolist() == [4.0, 2.0, 0.0]
    assert line["y"].tolist() == pytest.approx([30, 60, 80])
    assert line["low"].tolist() == pytest.approx([5, 35, 55])
    assert line["high"].tolist() == pytest.approx([55, 85, 100])


@examples(20)
@given(st.integers(0, 1000))
def test_areas_are_those_of_the_curves(seed):
    """Against an integral of each fold's curve in small steps, on a grid with the same ends."""
    rng = np.random.default_rng(seed)
    answered = np.array([0.45, 0.5, 0.6, 0.7, 0.85, 1.0])
    folds, n = 3, len(answered)
    results = pd.DataFrame(
        {
            "dataset": "d", "method": "m", "strategy": "none", "missing": 0.0, "repetition": 0,
            "s": np.tile(np.arange(n), folds), "fold": np.repeat(np.arange(folds), n),
            "completeness": np.tile(answered, folds), "set_accuracy": rng.random(folds * n),
            "selective_error": rng.random(folds * n),
        }
    )  # fmt: skip
    areas = areas_of_folds(results, ["set_accuracy", "selective_error"])
    fine = np.linspace(0.5, 1, 5001)  # corners of the curves are points of the report's grid
    for fold, part in results.groupby("fold"):
        for measure in ("set_accuracy", "selective_error"):
            heights = np.interp(fine, answered, part[measure])
            expected = (heights[:-1] + heights[1:]).mean() / 2
            assert areas.loc[areas["fold"] == fold, measure].item() == pytest.approx(expected)
    short = areas_of_folds(results[results["s"] > 1], ["set_accuracy"])
    assert short["set_accuracy"].isna().all()  # from 60 % on only


def test_a_measure_without_a_value_at_a_point_that_does_not_count():
    """The selective error of no answers is undefined, and is no part of the area."""
    results = pd.DataFrame(
        {
            "dataset": "d", "method": "m", "strategy": "none", "missing": 0.0, "repetition": 0,
            "fold": 0, "s": range(5), "completeness": [0.0, 0.25, 0.5, 0.75, 1.0],
            "selective_error": [np.nan, np.nan, 0.1, 0.2, 0.3],
        }
    )  # fmt: skip
    assert areas_of_folds(results, ["selective_error"])["selective_error"].item() == 0.2
    results.loc[3, "selective_error"] = np.nan
    assert areas_of_folds(results, ["selective_error"])["selective_error"].isna().all()


def test_areas_are_ranked_and_the_lower_error_is_the_better(tmp_path):
    datasets = list("stuvwx")
    study = a_study(datasets, ["a", "b", "c"], measures=ALL)
    store = results_of(study, tmp_path / "r", lambda m, d: {"a": 0.1, "b": 0.05, "c": 0.0}[m])
    results = store.results(study)
    results["selective_error"] = 1 - results["set_accuracy"]
    assert area_measures(study) == ["set_accuracy", "selective_error", "recall_micro"]
    folds = areas_of_folds(results, area_measures(study))
    compared = dict(compare_areas(study, folds, "repetitions"))
    right, wrong, found = (compared[name] for name in area_measures(study))
    for at in (right, wrong):
        assert [s.curve for s in at.standings] == ["a", "b", "c"]
        assert [s.rank for s in at.standings] == [1, 2, 3]
        assert at.friedman < 0.01
    assert right.best.accuracy == pytest.approx(0.8 - 0.5 * 0.75 + 0.1, abs=0.005)
    assert wrong.best.accuracy == pytest.approx(right.best.accuracy - 1)
    assert [s.rank for s in found.standings] == [2, 2, 2]  # all have found one half
    assert found.friedman == 1


def literal_rivalry(results, curve, rivals, share, unit):
    """One fold after the other: the rival that is best on other units, and the difference."""
    folds = folds_at_completeness(results, [share]).set_index("method")
    differences = {}
    for dataset in dict.fromkeys(folds["dataset"]):
        here = folds[folds["dataset"] == dataset]
        for _, row in here.loc[[curve]].iterrows():
            elsewhere = here[here[unit] != row[unit]].groupby(level=0)[share].mean()
            best = max(rivals, key=lambda rival: elsewhere.get(rival, -1))
            same = (here["repetition"] == row["repetition"]) & (here["fold"] == row["fold"])
            key = dataset, row["repetition"], row["fold"]
            differences[key] = row[share] - here[same].loc[best, share]
    return differences


@pytest.mark.parametrize("repeats", [1, 3])
def test_a_method_is_compared_with_the_rival_that_is_best_elsewhere(repeats, tmp_path):
    """With noise as large as the differences, the best of the same rows would be ahead."""
    methods = [Method(name, kind="estimator", class_path=name[0]) for name in ("a", "a2", "b", "c")]
    study = replace(a_study(["x", "y"], methods, folds=4, repeats=repeats), reference="a")
    skill = {"a": 0.02, "a2": 0.3, "b": 0.01, "c": 0.0}
    store = results_of(study, tmp_path / "r", lambda m, d: skill[m], noise=0.05)
    results = store.results(study)
    (at,) = compare_methods(study, results).rivalries
    assert (at.level, at.curve) == (0.0, "a")
    unit = "repetition" if repeats > 1 else "fold"
    for share in at.differences:
        expected = literal_rivalry(results, "a", ["b", "c"], share, unit)
        assert at.differences[share].to_dict() == pytest.approx(expected)
    assert len(at.cells) == 2 * 5

    files = {file.name: file for file in write_report(study, store, tmp_path / "report")}
    shown = pd.read_csv(files["rivals.csv"])
    of_x = 100 * at.differences[0.8]["x"]
    n = f"({(of_x > 0).sum()} of {len(of_x)})"
    assert shown["80 % answered"][0] == f"{of_x.mean():.1f} ± {of_x.std():.1f} {n}"
    n_equal = (at.cells > -0.01).sum()
    words = f"in {n_equal} of 10 cells"
    assert words in findings_in_words(study, store)[0]
    assert words in files["report.html"].read_text()


def test_others_are_tested_against_the_reference_only(tmp_path):
    methods = [Method(name, kind="estimator", class_path=name) for name in "abc"]
    study = replace(a_study(["x", "y"], methods), reference="b")
    skill = {"a": 0.1, "b": 0.0, "c": -0.1}
    store = results_of(study, tmp_path / "r", lambda m, d: skill[m])
    findings = compare_methods(study, store.results(study))
    every = compare_methods(replace(study, reference=""), store.results(study))
    for at, all_pairs in zip(findings.shares, every.shares, strict=True):
        assert {(test.first, test.second) for test in at.comparisons} == {("b", "a"), ("b", "c")}
        assert [s.curve for s in at.standings] == ["a", "b", "c"]
        assert (at.verdict("a"), at.verdict("c")) == ((2, 0, 2), (2, 2, 0))
        pairs = {frozenset((c.first, c.second, c.dataset)): c for c in all_pairs.comparisons}
        for test in at.comparisons:
            same = pairs[frozenset((test.first, test.second, test.dataset))]
            assert test.p == pytest.approx(same.p)
            assert test.corrected <= same.corrected
    words = " ".join(in_words(findings))
    assert "10 of 20 tests show that “b” is better, and 10 that it is worse." in words
    assert re.search(r"“b” [\d.]+ ± [\d.]+ % \(rank 2.00, reference\)", words)


def test_differences_to_the_best_rival_are_on_the_first_screen(tmp_path):
    methods = [Method(name, kind="estimator", class_path=name) for name in "ab"]
    study = replace(a_study(["x", "y"], methods, levels=(0.0, 0.5)), reference="a")
    skill = {("a", "x"): 0.1, ("b", "x"): 0.0, ("a", "y"): 0.0, ("b", "y"): 0.02}
    store = results_of(study, tmp_path / "r", lambda m, d: skill[m, d], noise=0.0)
    files = {file.name: file for file in write_report(study, store, tmp_path / "report")}
    text = files["report.html"].read_text()
    table = text[text.index('<table class="differences">') : text.index("Rows without a wrong")]
    for name, cell in (("x", 'ahead strong">+10.0'), ("y", 'behind">-2.0')):
        (row,) = re.findall(rf'<tr><th scope="row">{name}</th>(.*?)</tr>', table)
        assert row == f'<td class="number {cell}</td>' * 10
    assert table.count("+4.0") == 10
    assert text.index('class="lead"') < text.index('<table class="differences">')
    assert ",-2.0 ± 0.0 (0 of 10)," in files["rivals.csv"].read_text()  # with no apostrophe


def test_times_are_those_of_folds(tmp_path):
    study = a_study(["x", "y"], ["a", "b"])
    results = results_of(study, tmp_path / "r", lambda m, d: 0.0).results(study)
    results["fit_seconds"] = np.where(results["dataset"] == "x", 1.0, 3.0) + results["repetition"]
    results["predict_seconds"] = np.where(results["method"] == "a", 0.0, 0.5)
    assert seconds_of_fold(results) == pytest.approx({(0.0, "a"): 2.5, (0.0, "b"): 3.0})


@pytest.mark.parametrize("over", ["repetitions", "folds"])
def test_mean_curves_are_means_over_data_sets(over, tmp_path):
    study = a_study(["x", "y"], ["a", "b"])
    skill = {("a", "x"): 0.1, ("b", "x"): 0.0, ("a", "y"): 0.3, ("b", "y"): 0.2}
    store = results_of(study, tmp_path / "r", lambda m, d: skill[m, d], noise=0.05)
    results = store.results(study)
    is_short = (results["dataset"] == "x") & (results["method"] == "b")
    is_short &= results["completeness"] < 0.65
    means = mean_curves(results[~is_short], ["set_accuracy"], over=over)
    assert set(means["dataset"]) == {"mean of 2 data sets"}
    reached = means.groupby("method")["completeness"].min()
    assert reached.to_dict() == pytest.approx({"a": 0.05, "b": 0.7}, abs=0.051)
    folds = folds_at_completeness(results, [0.8]).query("method == 'a'")
    unit = ["repetition"] if over == "repetitions" else ["repetition", "fold"]
    of_units = folds.groupby([*unit, "dataset"])[0.8].mean().groupby(unit).mean()
    (row,) = means.query("method == 'a' and completeness == 0.8").to_dict("records")
    assert row["set_accuracy"] == pytest.approx(of_units.mean())
    assert row["set_accuracy_spread"] == pytest.approx(of_units.std())


def test_a_share_that_a_fold_is_far_from_is_not_reached(tmp_path):
    """The mean over folds is 0.8, but one of them answers all labels, and another one half."""
    study = a_study(["x"], ["a", "b"], folds=4, repeats=1)
    results = results_of(study, tmp_path / "r", lambda m, d: 0.0).results(study)
    jumps = (results["method"] == "a") & results["s"].between(1, 4)
    moved = results["fold"].map({0: 0.3, 1: -0.3, 2: 0.0, 3: 0.0})
    results.loc[jumps, "completeness"] = (results["completeness"] + moved)[jumps]
    folds = folds_at_completeness(results, [1.0, 0.8], widest_gap=0.25).set_index("method")
    assert folds.loc["a", 0.8].isna().all()
    assert folds.loc["b"].notna().all(axis=None)
    assert folds.loc["a", 1.0].notna().all()
    assert folds_at_completeness(results, [0.8])[0.8].notna().all()


def test_without_a_reference_the_best_method_is_compared_with_all_others(tmp_path):
    study = a_study(["x", "y"], ["b", "a", "c"], folds=4, repeats=3)
    skill = {"a": 0.2, "b": 0.1, "c": 0.0}
    store = results_of(study, tmp_path / "r", lambda m, d: skill[m], noise=0.001)
    findings = compare_methods(study, store.results(study))
    assert in_order(findings, 0.0) == ["a", "b", "c"]
    (at,) = findings.rivalries
    assert at.curve == "a"
    assert at.cells == pytest.approx(0.1, abs=0.005)


def test_a_rival_that_does_not_reach_a_share_is_not_chosen(tmp_path):
    methods = [Method(name, kind="estimator", class_path=name) for name in "abc"]
    study = replace(a_study(["x", "y"], methods), reference="a")
    skill = {"a": 0.1, "b": 0.2, "c": 0.0}
    store = results_of(study, tmp_path / "r", lambda m, d: skill[m], noise=0.0)
    results = store.results(study)
    is_short = (results["dataset"] == "x") & (results["method"] == "b") & (results["s"] > 0)
    (at,) = compare_methods(study, results[~is_short]).rivalries
    assert at.cells == pytest.approx([0.1] * 5 + [-0.1] * 5)
    assert "in 5 of 10 cells" in "".join(rival_lines(compare_methods(study, results[~is_short])))
