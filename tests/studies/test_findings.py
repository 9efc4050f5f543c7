"""What is found in results whose differences are known, and what is said of it."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalchain.studies.findings import (
    at_completeness,
    compare_methods,
    folds_at_completeness,
    in_words,
    signed_rank_test,
    summarize,
)
from credalchain.studies.results import Store
from credalchain.studies.tasks import expand
from profiles import examples, scaled
from study_results import a_study, results_of

SHARES = (1.0, 0.95, 0.9, 0.8, 0.6)


def better(method, dataset):
    return {"a": 0.1, "b": 0.0, "c": 0.0}[method]


def equal(method, dataset):
    return 0.0


def found(tmp_path, study, skill=better, **options):
    store = results_of(study, tmp_path / "r", skill, **options)
    return compare_methods(study, store.results(study))


# -- set-accuracy at equal completeness, fold by fold ------------------------------------------


@examples(40)
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
        if gap < 1:  # folds that answer other shares would not reach these
            of_s = results.groupby("s")["completeness"]
            results["completeness"] = of_s.transform("mean")
        folds = folds_at_completeness(results, shares, widest_gap=gap)
        means = folds[list(shares)].mean().to_numpy()
        curve = summarize(results).sort_values("completeness")
        answered, right = curve["completeness"].to_numpy(), curve["set_accuracy"].to_numpy()
        expected = np.interp(shares, answered, right, left=np.nan, right=np.nan)
        for i, share in enumerate(shares):
            around = [*answered[answered <= share][-1:], *answered[answered >= share][:1]]
            expected[i] = np.nan if np.ptp(around) > gap else expected[i]
        np.testing.assert_allclose(means, expected)
        np.testing.assert_allclose(
            at_completeness(results, shares, widest_gap=gap)[list(shares)].iloc[0].astype(float),
            expected,
        )
    by_repetition = (
        folds_at_completeness(results, shares).groupby("repetition")[list(shares)].mean()
    )
    columns = [f"{share}_spread" for share in shares]
    spread = at_completeness(results, shares)[columns].iloc[0]
    np.testing.assert_allclose(spread.astype(float), by_repetition.std())


def test_a_wide_gap_is_not_bridged():
    points = [(0.0, 1.0, 0.2), (1.0, 0.9, 0.3), (2.0, 0.4, 0.9)]
    summary = pd.DataFrame(points, columns=["s", "completeness", "set_accuracy"])
    summary = summary.assign(dataset="d", method="m", strategy="none", missing=0.0)
    summary = summary.assign(repetition=0, fold=0)
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
        assert all(c.dataset for c in one.comparisons)
        assert len(one.comparisons) == 9
        assert one.friedman < 0.2
        for other in ("b", "c"):
            assert one.verdict(other) == (3, 3, 0)
        pairs = [c for c in one.comparisons if {c.first, c.second} == {"b", "c"}]
        assert not any(pair.is_shown for pair in pairs)
    lead, *_ = in_words(findings)
    assert lead == (
        "Best where the same share of labels is answered: “a” at 100, 95, 90, 80 and 60 %. "
        "30 of 30 tests show that the best is better."
    )


def test_no_difference_is_a_finding(tmp_path):
    study = a_study(["x", "y"], ["a", "b"], folds=10)
    findings = found(tmp_path, study, equal, noise=0.05)
    assert not any(c.is_shown for one in findings.shares for c in one.comparisons)
    lines = in_words(findings)
    assert lines[0].endswith(". 0 of 10 tests show that the best is better.")
    assert "no difference shown" in lines[1]
    assert "better" not in " ".join(lines[1:])


@pytest.mark.slow
def test_chance_is_seldom_taken_for_a_difference(tmp_path):
    """Of many studies of equal methods, a test at 0.05 may err in few."""
    wrong, turns = 0, scaled(100)
    study = a_study(["x"], ["a", "b"], folds=10, repeats=1)
    flat = results_of(study, tmp_path / "r", equal, noise=0.0).results(study)
    for seed in range(turns):
        results = flat.copy()
        rng = np.random.default_rng(seed)
        for _, rows in results.groupby(["method", "fold"]).groups.items():
            results.loc[rows, "set_accuracy"] += rng.normal(scale=0.05)
        (first, *_) = compare_methods(study, results).shares
        wrong += first.comparisons[0].is_shown
    assert wrong <= turns / 10


def test_enough_data_sets_are_tested_over_data_sets(tmp_path):
    names = [f"d{i}" for i in range(7)]
    study = a_study(names, ["a", "b"], repeats=1)

    def skill(method, dataset):
        return 0.02 * (method == "a") * (1 + int(dataset[1]))

    findings = found(tmp_path, study, skill, noise=0.001)
    for one in findings.shares:
        (comparison,) = one.comparisons
        assert comparison.dataset is None
        assert comparison.n == 7
        assert comparison.p == comparison.corrected == signed_rank_test(np.arange(1, 8))
        assert one.verdict("b") == (1, 1, 0)
        assert np.isnan(one.friedman)
    assert re.search(r"“b” [\d.]+ ± [\d.]+ % \(rank 2.00, worse\)", in_words(findings)[1])
    assert "Wilcoxon's signed-rank test over data sets" in in_words(findings)[-1]


@pytest.mark.slow
def test_seven_data_sets_are_too_few_for_ten_pairs(tmp_path):
    """The signed-rank test could show nothing after Holm's correction: folds may."""
    study = a_study([f"d{i}" for i in range(7)], list("abcde"))
    findings = found(tmp_path, study, lambda m, d: 0.1 * (m == "a"))
    assert all(c.dataset for one in findings.shares for c in one.comparisons)
    assert findings.shares[0].verdict("b") == (7, 7, 0)
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
        "Best where the same share of labels is answered: “a” at 100, 95 and 90 %; “b” at 80 and "
        "60 %"
    )


def test_methods_that_are_the_same_are_tied(tmp_path):
    study = a_study(["x", "y"], ["a", "b"], repeats=1)
    findings = found(tmp_path, study, equal, noise=0.0)
    assert findings.shares[0].tied_with_best == ("b",)
    assert "“a” and “b” at 100, 95, 90, 80 and 60 %" in in_words(findings)[0]
    assert "(best, tied)" in in_words(findings)[1] or "best, tied)" in in_words(findings)[1]


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
    assert in_words(findings)[2].endswith("(alone).")


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
    lead, *lines = in_words(compare_methods(study, results[~has_gap]))
    assert "“a” at 100 %; " in lead
    assert lead.endswith(" Not measured: “a” on “y” and “z” at 95, 90, 80 and 60 %.")
    assert "“a”" not in lines[1]
    has_gap &= results["dataset"] == "y"
    lead, *lines = in_words(compare_methods(study, results[~has_gap]))
    assert lead.endswith(" Not measured: “a” on “y” at 95, 90, 80 and 60 %.")
    assert lines[1].startswith("95 % answered, 2 of 3 data sets: “a”")
    only_c = results[(results["method"] == "c") | (results["s"] < 1)]
    lead = in_words(compare_methods(study, only_c))[0]
    assert "“c” at 95, 90, 80 and 60 %" in lead
    assert "Not measured: “a” at 95, 90, 80 and 60 %; “b” at 95" in lead


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
    assert line.startswith("“a” is the only method. ")
    assert "30.0 ± 0.0 % at 100 %" in line


def test_too_few_folds_for_a_test(tmp_path):
    lines = in_words(found(tmp_path, a_study(["x"], ["a", "b"], folds=3, repeats=1)))
    assert lines[0].endswith(" (not tested).")
    assert lines[-1] == (
        "No test was possible with 3 results of folds for each data set: tests need 10 results "
        "that differ, from more repetitions for instance."
    )


def test_differences_that_are_the_same_everywhere_are_not_tested(tmp_path):
    findings = found(tmp_path, a_study(["x"], ["a", "b"]), noise=0.0)
    assert np.isnan(findings.shares[0].comparisons[0].p)
    assert "tests need 10 results that differ" in in_words(findings)[-1]


def test_measures_that_cannot_be_compared(tmp_path):
    study = a_study(["x"], ["a"], measures=("incorrectness",))
    store = results_of(study, tmp_path / "r", equal)
    findings = compare_methods(study, store.results(study))
    assert not findings.is_comparable
    assert in_words(findings) == [
        "The study does not measure both set-accuracy and completeness, so methods cannot be "
        "compared where they answer the same share of labels."
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
    assert lines[0].startswith("0, 20 and 40 % of the training labels removed: Best where")
    assert lines[1].startswith("100 % answered, 0 % removed, 1 of 1 data set: “a”")
    best = [findings.at_level(level)[0].best.accuracy for level in findings.levels]
    assert best[0] > best[1] > best[2]
