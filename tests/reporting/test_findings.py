"""What is found in results whose differences are known, and what is said of it."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalchain.experiments.store import Store
from credalchain.experiments.study import Method
from credalchain.experiments.summary import (
    at_completeness,
    folds_at_completeness,
    spread_at_completeness,
    summarize,
)
from credalchain.experiments.tasks import expand
from credalchain.reporting.caution import CautionParameter, caution_parameters
from credalchain.reporting.findings import compare_methods
from credalchain.reporting.sentences import in_words
from credalchain.reporting.significance import signed_rank_test
from study_results import GRID, a_study, results_of

SHARES = (1.0, 0.95, 0.9, 0.8, 0.6)


def better(method, dataset):
    return {"a": 0.1, "b": 0.0, "c": 0.0}[method]


def equal(method, dataset):
    return 0.0


def found(tmp_path, study, skill=better, **options):
    store = results_of(study, tmp_path / "r", skill, **options)
    return compare_methods(study, store.results(study))


# -- set-accuracy at equal completeness, fold by fold ------------------------------------------


@pytest.mark.slow
@given(st.integers(0, 1000))
def test_folds_have_the_mean_that_the_curve_has(seed):
    rng = np.random.default_rng(seed)
    n = 4 * 3 * 6
    s, fold, repetition = np.meshgrid(range(6), range(4), range(3))
    results = pd.DataFrame(
        {
            "dataset": "d", "method": "m", "strategy": "none", "missing": 0.0, "s": s.ravel(),
            "fold": fold.ravel(), "repetition": repetition.ravel(),
            "completeness": rng.random(n), "set_accuracy": rng.random(n),
        }
    )  # fmt: skip
    shares = (0.45, 0.5, 0.55)
    for gap in (np.inf, 0.03):
        folds = folds_at_completeness(results, shares, widest_gap=gap)
        means = folds[list(shares)].mean().to_numpy()
        expected = at_completeness(summarize(results), shares, widest_gap=gap)
        np.testing.assert_allclose(means, expected[list(shares)].iloc[0].astype(float))
    by_repetition = (
        folds_at_completeness(results, shares).groupby("repetition")[list(shares)].mean()
    )
    spread = spread_at_completeness(results, shares)[list(shares)].iloc[0]
    np.testing.assert_allclose(spread.astype(float), by_repetition.std())


def test_a_wide_gap_is_not_bridged():
    points = [(0.0, 1.0, 0.2), (1.0, 0.9, 0.3), (2.0, 0.4, 0.9)]
    summary = pd.DataFrame(points, columns=["s", "completeness", "set_accuracy"])
    summary = summary.assign(dataset="d", method="m", strategy="none", missing=0.0)
    row = at_completeness(summary, (1.0, 0.95, 0.9, 0.6, 0.4), widest_gap=0.25).iloc[0]
    assert [row[c] for c in (1.0, 0.95, 0.9, 0.4)] == pytest.approx([0.2, 0.25, 0.3, 0.9])
    assert np.isnan(row[0.6])


# -- who is best, and whether that is shown ----------------------------------------------------


def test_a_difference_that_is_there_is_shown_on_every_data_set(tmp_path):
    study = a_study(["x", "y", "z"], ["b", "a", "c"])
    findings = found(tmp_path, study)
    assert [one.share for one in findings.shares] == list(SHARES)
    for one in findings.shares:
        assert one.best.curve == "a"
        assert one.best.rank == 1
        assert one.best.n_first == 3
        assert one.datasets == ("x", "y", "z")
        assert one.best.accuracy == pytest.approx(0.9 - 0.5 * one.share, abs=0.01)
        assert not one.is_over_datasets
        assert len(one.comparisons) == 9
        assert one.friedman < 0.2
        for other in ("b", "c"):
            verdict = one.verdict(other)
            assert (verdict.n, verdict.n_better, verdict.n_worse) == (3, 3, 0)
        pairs = [c for c in one.comparisons if {c.first, c.second} == {"b", "c"}]
        assert not any(pair.is_shown for pair in pairs)
    lead, *_ = in_words(findings)
    assert lead == (
        "“a” comes first where 100, 95, 90, 80 and 60 % of the labels are answered; tests show it "
        "for all others."
    )


def test_no_difference_is_a_finding(tmp_path):
    study = a_study(["x", "y"], ["a", "b"], folds=10)
    findings = found(tmp_path, study, equal, noise=0.05)
    assert not any(c.is_shown for one in findings.shares for c in one.comparisons)
    lines = in_words(findings)
    assert lines[0].startswith("No difference from the best method that a test could show; ")
    assert "Against “" in lines[1]
    assert "no difference shown" in lines[1]
    assert "better" not in " ".join(lines)


@pytest.mark.slow
def test_chance_is_seldom_taken_for_a_difference(tmp_path):
    """Of 40 studies of equal methods, a test at 0.05 may err in few."""
    wrong = 0
    study = a_study(["x"], ["a", "b"], folds=10, repeats=1)
    for seed in range(40):
        store = results_of(study, tmp_path / str(seed), equal, noise=0.05)
        results = store.results(study)
        rng = np.random.default_rng(seed)
        for _, rows in results.groupby(["method", "fold"]).groups.items():
            results.loc[rows, "set_accuracy"] += rng.normal(scale=0.05)
        (first, *_) = compare_methods(study, results).shares
        wrong += first.comparisons[0].is_shown
    assert wrong <= 4


def test_enough_data_sets_are_tested_over_data_sets(tmp_path):
    names = [f"d{i}" for i in range(7)]
    study = a_study(names, ["a", "b"], repeats=1)

    def skill(method, dataset):
        return 0.02 * (method == "a") * (1 + int(dataset[1]))

    findings = found(tmp_path, study, skill, noise=0.001)
    for one in findings.shares:
        (comparison,) = one.comparisons
        assert one.is_over_datasets
        assert comparison.n == 7
        assert comparison.p == comparison.corrected == signed_rank_test(np.arange(1, 8))
        assert one.verdict("b").n_better == 1
        assert np.isnan(one.friedman)
    assert "Against “b”: better (p = 0.016)" in in_words(findings)[1]
    assert "Wilcoxon's signed-rank test over data sets" in in_words(findings)[-1]


@pytest.mark.slow
def test_seven_data_sets_are_too_few_for_ten_pairs(tmp_path):
    """The signed-rank test could show nothing after Holm's correction: folds may."""
    study = a_study([f"d{i}" for i in range(7)], list("abcde"))
    findings = found(tmp_path, study, lambda m, d: 0.1 * (m == "a"))
    assert not any(one.is_over_datasets for one in findings.shares)
    assert findings.shares[0].verdict("b").n_better == 7
    assert findings.shares[0].friedman < 0.05


def test_the_order_of_methods_does_not_matter(tmp_path):
    one = found(tmp_path / "1", a_study(["x", "y"], ["a", "b"]))
    store = Store(tmp_path / "1" / "r")
    study = a_study(["x", "y"], ["b", "a"])
    two = compare_methods(study, store.results(study))
    for first, second in zip(one.shares, two.shares, strict=True):
        assert first.standings == second.standings
        p = [[c.p for c in found.comparisons] for found in (first, second)]
        np.testing.assert_allclose(*p)


def test_which_method_is_best_may_depend_on_the_share(tmp_path):
    study = a_study(["x"], ["a", "b"])
    store = results_of(study, tmp_path / "r", equal, noise=0.0)
    results = store.results(study)
    is_a = results["method"] == "a"
    results.loc[is_a, "set_accuracy"] += 0.2 * (results.loc[is_a, "completeness"] - 0.85)
    findings = compare_methods(study, results)
    assert [one.best.curve for one in findings.shares] == ["a", "a", "a", "b", "b"]
    assert in_words(findings)[0].startswith(
        "Which method comes first depends on the share of labels answered: “a” at 100, 95 and "
        "90 % and “b” at 80 and 60 %"
    )


def test_methods_that_are_the_same_are_tied(tmp_path):
    study = a_study(["x", "y"], ["a", "b"], repeats=1)
    findings = found(tmp_path, study, equal, noise=0.0)
    assert findings.shares[0].tied_with_best == ("b",)
    assert in_words(findings)[0] == (
        "The best methods are equal where 100, 95, 90, 80 and 60 % of the labels are answered."
    )


def test_shares_that_are_not_reached(tmp_path):
    """A method without caution answers all labels; it is compared there and nowhere else."""
    study = a_study(["x"], ["a", "b"])
    store = results_of(study, tmp_path / "r", better)
    results = store.results(study)
    results = results[(results["method"] == "a") | (results["s"] == 0)]
    findings = compare_methods(study, results)
    assert len(findings.shares[0].standings) == 2
    for one in findings.shares[1:]:
        assert [standing.curve for standing in one.standings] == ["a"]
        assert one.left_out == {"b": 0}
        assert one.comparisons == ()
    assert "“a” alone reaches it" in in_words(findings)[2]


def test_a_method_that_seldom_reaches_a_share_takes_no_data_sets_away(tmp_path):
    study = a_study(["x", "y", "z"], ["a", "b", "c"])
    results = results_of(study, tmp_path / "r", better).results(study)
    is_short = (results["method"] == "c") & (results["dataset"] != "x") & (results["s"] > 0)
    findings = compare_methods(study, results[~is_short])
    one = findings.shares[2]
    assert one.datasets == ("x", "y", "z")
    assert one.left_out == {"c": 1}
    is_short = (results["method"] == "c") & (results["dataset"] == "x") & (results["s"] > 0)
    one = compare_methods(study, results[~is_short]).shares[2]
    assert one.datasets == ("y", "z")
    assert one.left_out == {}


def test_the_first_line_says_which_methods_are_not_measured_where(tmp_path):
    """Ranks over other methods or data sets are another claim."""
    study = a_study(["x", "y", "z"], ["a", "b", "c"])
    results = results_of(study, tmp_path / "r", better).results(study)
    has_gap = (results["method"] == "a") & (results["dataset"] != "x") & results["s"].between(1, 5)
    lead = in_words(compare_methods(study, results[~has_gap]))[0]
    assert lead.startswith("“a” comes first where 100 % of the labels are answered; ")
    assert " Without “a” (not measured on “y” and “z”): " in lead
    assert "where 95, 90, 80 and 60 %" in lead.partition("Without")[2]
    has_gap &= results["dataset"] == "y"
    lead, *lines = in_words(compare_methods(study, results[~has_gap]))
    assert " On 2 of 3 data sets (“a” not measured on “y”): “a” comes first where 95, 90" in lead
    assert lines[1].startswith("95 % answered, on 2 of 3 data sets (“a” not measured on “y”): “a”")
    lead = in_words(
        compare_methods(study, results[(results["method"] == "c") | (results["s"] < 1)])
    )
    assert lead[0].endswith(
        "Only “c” is measured where 95, 90, 80 and 60 % of the labels are answered."
    )


def test_repetitions_that_are_not_there_yet_are_not_compared(tmp_path):
    study = a_study(["x"], ["a", "b"], repeats=3)
    store = results_of(study, tmp_path / "r", better)
    lost = [task for task in expand(study) if task.method.name == "b" and task.repetition == 2]
    store._result_file(lost[0]).unlink()
    one = compare_methods(study, store.results(study)).shares[0]
    assert one.comparisons[0].n == 10
    both = store.results(study).query("repetition < 2 and s == 0").groupby("method")
    assert one.best.accuracy == pytest.approx(both["set_accuracy"].mean()["a"])


def test_the_spread_is_over_repetitions_or_over_folds(tmp_path):
    for repeats, over in ((3, "repetitions"), (1, "folds")):
        study = a_study(["x", "y"], ["a", "b"], folds=10, repeats=repeats)
        store = results_of(study, tmp_path / over, better)
        findings = compare_methods(study, store.results(study))
        assert findings.spread_over == over
        rows = store.results(study).query("method == 'a' and s == 0")
        units = ["dataset", "repetition"] + ["fold"] * (over == "folds")
        by_unit = rows.groupby(units)["set_accuracy"].mean()
        spreads = by_unit.groupby("dataset").std()
        expected = np.sqrt((spreads**2).sum()) / 2
        assert findings.shares[0].best.spread == pytest.approx(expected)


# -- where no test is possible -----------------------------------------------------------------


def test_one_method_only(tmp_path):
    (line,) = in_words(found(tmp_path, a_study(["x"], ["a"]), equal, noise=0.0))
    assert line.startswith("“a” is the only method, so there is nothing to compare it with. ")
    assert "30.0 ± 0.0 % at 100 %" in line


def test_too_few_folds_for_a_test(tmp_path):
    lines = in_words(found(tmp_path, a_study(["x"], ["a", "b"], folds=3, repeats=1)))
    assert lines[0].endswith("; no test of it was possible.")
    assert lines[-1] == (
        "No test was possible: one data set and 3 folds once are too few; with 10 results of "
        "folds, from more repetitions for instance, there would be one."
    )


def test_differences_that_are_the_same_everywhere_are_not_tested(tmp_path):
    findings = found(tmp_path, a_study(["x"], ["a", "b"]), noise=0.0)
    assert not findings.shares[0].is_tested
    assert in_words(findings)[-1] == (
        "No test was possible: methods differ by the same in all folds."
    )


def test_measures_that_cannot_be_compared(tmp_path):
    study = a_study(["x"], ["a"], measures=("incorrectness",))
    store = results_of(study, tmp_path / "r", equal)
    findings = compare_methods(study, store.results(study))
    assert not findings.is_comparable
    assert in_words(findings) == [
        "The study does not measure both set-accuracy and completeness, so methods cannot be "
        "compared where they answer the same share of labels; what it measures is in the tables."
    ]


def test_curves_that_answer_too_little_to_be_compared(tmp_path):
    findings = found(tmp_path, a_study(["x"], ["a", "b"]), grid=(8.0, 9.0))
    assert findings.shares == ()
    assert in_words(findings) == [
        "Methods are not compared at 100, 95, 90, 80 and 60 %: no curve reaches these shares of "
        "labels answered between two values of its caution parameter that are at most 25 points "
        "apart."
    ]
    findings = found(tmp_path / "2", a_study(["x"], ["a", "b"]), grid=(0.0, 8.0))
    assert [one.share for one in findings.shares] == [1.0]
    assert "Methods are not compared at 95, 90, 80 and 60 %" in " ".join(in_words(findings))


# -- damage ------------------------------------------------------------------------------------


def test_levels_of_damage_are_apart_and_those_alike_together(tmp_path):
    study = a_study(["x"], ["a", "b"], levels=(0.0, 0.2, 0.4))
    findings = found(tmp_path, study)
    assert findings.levels == [0.0, 0.2, 0.4]
    assert len(findings.shares) == 3 * len(SHARES)
    lines = in_words(findings, "removed")
    assert lines[0].startswith("0, 20 and 40 % of the training labels removed: “a” comes first")
    assert lines[1].startswith("100 % answered, none removed, 1 data set: “a”")
    best = [findings.at_level(level)[0].best.accuracy for level in findings.levels]
    assert best[0] > best[1] > best[2]


# -- caution parameters ------------------------------------------------------------------------


def test_results_say_what_the_caution_parameter_is(tmp_path):
    study = a_study(["x"], ["a", "b", "c"])
    about = {
        "a": {"caution_parameter": "s", "larger_is_more_cautious": True},
        "b": {"caution_parameter": "reward", "larger_is_more_cautious": False},
        "c": {"caution_parameter": "", "larger_is_more_cautious": True},
    }
    store = results_of(study, tmp_path / "r", better, caution=about.__getitem__)
    assert caution_parameters(study, store.results(study)) == {
        "a": CautionParameter("s", True),
        "b": CautionParameter("reward", False),
        "c": None,
    }


@pytest.mark.parametrize(
    ("class_path", "grid", "expected"),
    [
        ("", GRID, CautionParameter("s", True)),
        ("credalchain.JointDecision", GRID, CautionParameter("reward", False)),
        ("credalchain.joint.decision.JointDecision", GRID, CautionParameter("reward", False)),
        ("credalchain.CredalJointForest", GRID, CautionParameter("s", True)),
        ("credalchain.PromisedClassifier", (0.0,), None),
        ("sklearn.ensemble.RandomForestClassifier", (0.0,), None),
        ("elsewhere.Classifier", GRID, CautionParameter("caution", None)),
    ],
)
def test_results_of_older_versions_leave_it_to_the_study(tmp_path, class_path, grid, expected):
    """No class is imported for it."""
    method = Method("m", kind="estimator" if class_path else "chain", class_path=class_path)
    study = a_study(["x"], [method])
    store = results_of(study, tmp_path / "r", equal, grid=grid)
    assert caution_parameters(study, store.results(study)) == {"m": expected}
