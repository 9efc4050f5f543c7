"""What was found, in sentences that claim no more than the tests show."""

from collections.abc import Iterable, Sequence

import numpy as np

from credalchain.reporting.findings import (
    COMPARED_COMPLETENESS,
    WIDEST_GAP,
    Findings,
    ShareFindings,
    Standing,
    Verdict,
)
from credalchain.reporting.significance import LEVEL, MIN_FOLDS

_NOT_MEASURED = (
    "The study does not measure both set-accuracy and completeness, so methods cannot be compared "
    "where they answer the same share of labels; what it measures is in the tables."
)
_NOT_REACHED = (
    "Methods are not compared at {shares}: no curve reaches these shares of labels answered "
    "between two values of its caution parameter that are at most {gap:.0f} points apart."
)


def in_words(findings: Findings, damage: str = "") -> list[str]:
    """The main findings, one a line; the first says what came out.

    ``damage`` is what was done to training labels, "removed" for instance; empty if nothing.
    """
    if not findings.shares:
        return [without_comparison(findings)]
    lines = leads(findings, damage)
    if len(findings.curves) > 1:
        first = findings.at_level(findings.levels[0])
        lines[1:1] = [share_sentence(findings, share_findings, damage) for share_findings in first]
    return [*lines, *unreached(findings), *tests_in_words(findings)]


def without_comparison(findings: Findings) -> str:
    """Why nothing was compared."""
    return unreached(findings)[0] if findings.is_comparable else _NOT_MEASURED


def unreached(findings: Findings) -> list[str]:
    """The shares that no curve reaches at the least level of damage, in a sentence, if any."""
    at_least_damage = findings.at_level(findings.levels[0]) if findings.shares else []
    compared = {share_findings.share for share_findings in at_least_damage}
    away = [f"{100 * share:.10g}" for share in COMPARED_COMPLETENESS if share not in compared]
    if not away:
        return []
    return [_NOT_REACHED.format(shares=f"{join_with_and(away)} %", gap=100 * WIDEST_GAP)]


def leads(findings: Findings, damage: str = "") -> list[str]:
    """Which method comes first at which share: a sentence for levels of damage that are alike."""
    levels_of: dict[str, list[float]] = {}
    for level in findings.levels:
        shares = findings.at_level(level)
        is_one = len(findings.curves) == 1
        words = _only_one(findings, shares) if is_one else _first_places(findings, shares)
        levels_of.setdefault(words, []).append(level)
    return [
        _where(levels, damage) + words if damage else words[0].upper() + words[1:]
        for words, levels in levels_of.items()
    ]


def _where(levels: list[float], damage: str) -> str:
    if levels == [0.0]:
        return f"No training labels {damage}: "
    numbers = join_with_and(f"{100 * level:.10g}" for level in levels)
    return f"{numbers} % of the training labels {damage}: "


def _only_one(findings: Findings, shares: list[ShareFindings]) -> str:
    results = [
        f"{accuracy(share_findings.best)} % at {percent(share_findings.share)}"
        for share_findings in shares
    ]
    return (
        f"{quoted(findings.curves[0])} is the only method, so there is nothing to compare it with. "
        f"Rows without a wrong answer, by the share of labels answered: {join_with_and(results)}."
    )


def _first_places(findings: Findings, shares: list[ShareFindings]) -> str:
    """A sentence for shares at which the same methods are compared on the same data sets.

    Those at which nothing is missing come first; the others begin with what is.
    """
    alike: dict[str, list[ShareFindings]] = {}
    for share_findings in sorted(shares, key=lambda one: bool(one.not_measured)):
        alike.setdefault(coverage(findings, share_findings), []).append(share_findings)
    first, *others = (
        f"{missing}: {_first_place(part)}" if missing and len(part[0].standings) > 1
        else _first_place(part)
        for missing, part in alike.items()
    )  # fmt: skip
    return " ".join([first, *(words[0].upper() + words[1:] for words in others)])


def coverage(findings: Findings, share_findings: ShareFindings) -> str:
    """Which methods or data sets are not compared at a share, and why; empty if all are."""

    def grouped(curves: Iterable[str]) -> list[tuple[str, str]]:
        words: dict[str, list[str]] = {}
        for curve in curves:
            on = share_findings.not_measured[curve]
            here = "" if len(on) == findings.n_datasets else f" on {quoted(*on)}"
            words.setdefault(f"not measured{here}", []).append(curve)
        return [(quoted(*same), reason) for reason, same in words.items()]

    parts, n = [], len(share_findings.datasets)
    if n < findings.n_datasets:
        taken = [
            name for name in share_findings.not_measured if name not in share_findings.left_out
        ]
        reasons = join_with_and(f"{names} {reason}" for names, reason in grouped(taken))
        parts.append(f"on {n} of {findings.n_datasets} data sets ({reasons})")
    if share_findings.left_out:
        left_out = [f"{names} ({reason})" for names, reason in grouped(share_findings.left_out)]
        parts.append(f"without {join_with_and(left_out)}")
    return ", ".join(parts)


def _first_place(shares: list[ShareFindings]) -> str:
    if len(shares[0].standings) == 1:
        only = quoted(shares[0].best.curve)
        return f"only {only} is measured where {_shares(shares)} of the labels are answered."
    decided = [share_findings for share_findings in shares if not share_findings.tied_with_best]
    if not decided:
        return f"the best methods are equal where {_shares(shares)} of the labels are answered."
    winners: dict[str, list[ShareFindings]] = {}
    for share_findings in decided:
        winners.setdefault(share_findings.best.curve, []).append(share_findings)
    if len(winners) == 1:
        words = (
            f"{quoted(*winners)} comes first where {_shares(decided)} of the labels are answered"
        )
    else:
        parts = [f"{quoted(curve)} at {_shares(won)}" for curve, won in winners.items()]
        words = "which method comes first depends on the share of labels answered: "
        words += join_with_and(parts)
    return _with_certainty(words, decided)


def _with_certainty(words: str, decided: list[ShareFindings]) -> str:
    """The order of methods, and how much of it tests show; that they show nothing comes first."""
    verdicts = [
        share_findings.verdict(other.curve)
        for share_findings in decided
        for other in share_findings.standings[1:]
    ]
    if not any(verdict.n for verdict in verdicts):
        return f"{words}; no test of it was possible."
    if not any(verdict.n_better or verdict.n_worse for verdict in verdicts):
        return f"no difference from the best method that a test could show; {words}."
    if all(verdict.n and verdict.n_better == verdict.n for verdict in verdicts):
        others = "" if len(verdicts) == len(decided) else " for all others"
        return f"{words}; tests show it{others}."
    if not any(verdict.n_better for verdict in verdicts):
        return f"{words}; tests do not show it."
    return f"{words}; tests show it only for some methods, data sets or shares."


def share_sentence(findings: Findings, share_findings: ShareFindings, damage: str = "") -> str:
    """The methods at one share: the best, where, and what tests say of the others."""
    n = len(share_findings.datasets)
    kept = f", {level_words(share_findings.level, damage)}" if damage else ""
    on = f"{n} of {findings.n_datasets} data sets" if findings.n_datasets > 1 else "1 data set"
    best = quoted(share_findings.best.curve, *share_findings.tied_with_best)
    on = coverage(findings, share_findings) or on
    head = f"{percent(share_findings.share)} answered{kept}, {on}: {best}"
    right = f"{accuracy(share_findings.best)} % of rows without a wrong answer"
    if len(share_findings.standings) == 1:
        return f"{head} alone reaches it, with {right}."
    rank = f", average rank {share_findings.best.rank:.2f}" if n > 1 else ""
    tied = " tied" if share_findings.tied_with_best else ""
    words = f"{head}{tied}, {right}{rank}."
    others = [
        s.curve
        for s in share_findings.standings[1:]
        if s.curve not in share_findings.tied_with_best
    ]
    return " ".join([words, *_friedman(share_findings), *_tests(share_findings, others)])


def _friedman(share_findings: ShareFindings) -> list[str]:
    if np.isnan(share_findings.friedman):
        return []
    n_methods, p = len(share_findings.standings), p_value(share_findings.friedman)
    return [f"All {n_methods} methods by Friedman's test: p {p}."]


def _tests(share_findings: ShareFindings, others: list[str]) -> list[str]:
    """Methods of which tests say the same, together."""
    curves_of: dict[str, list[str]] = {}
    for other in others:
        curves_of.setdefault(verdict_words(share_findings.verdict(other)), []).append(other)
    curves_of.pop("", None)
    return [f"Against {quoted(*curves)}: {words}." for words, curves in curves_of.items()]


def verdict_words(verdict: Verdict, *, of_other: bool = False) -> str:
    """What the tests say of the best method against another; empty if there is none.

    With ``of_other``: what they say of the other one, in few words.
    """
    if not verdict.n:
        return ""
    p = "" if np.isnan(verdict.p) else f" (p {p_value(verdict.p)})"
    if not verdict.n_better and not verdict.n_worse:
        return f"no difference shown{p}"
    words = ("worse", "better") if of_other else ("better", "worse")
    sides = list(zip((verdict.n_better, verdict.n_worse), words, strict=True))
    if p:
        return next(word for n, word in sides if n) + p
    parts = " and ".join(f"{word} on {n}" for n, word in sides if n)
    shown = parts if of_other else f"shown to be {parts}"
    return f"{shown} of {verdict.n}" + ("" if of_other else " data sets")


def tests_in_words(findings: Findings) -> list[str]:
    """Which tests were done, or why none was; nothing if there is nothing to test."""
    compared = [
        share_findings for share_findings in findings.shares if len(share_findings.standings) > 1
    ]
    if not compared:
        return []
    if not any(share_findings.is_tested for share_findings in compared):
        return [_why_untested(findings)]
    kinds = {
        share_findings.is_over_datasets for share_findings in compared if share_findings.is_tested
    }
    tests = ["Wilcoxon's signed-rank test over data sets"] if True in kinds else []
    if False in kinds:
        tests.append("Nadeau and Bengio's corrected resampled t-test over the folds of a data set")
    words = (
        f"Tests of two methods: {' or, where data sets are too few for that, '.join(tests)}, "
        f"corrected by Holm's method (at {LEVEL:g}) for all tests at a share; each share is "
        "tested by itself."
    )
    if findings.n_datasets == 1:
        words += " What holds on one data set need not hold on others."
    return [words]


def _why_untested(findings: Findings) -> str:
    if findings.n_folds * findings.n_repetitions >= MIN_FOLDS:
        return "No test was possible: methods differ by the same in all folds."
    times = "once" if findings.n_repetitions == 1 else f"{findings.n_repetitions} times"
    sets = "one data set" if findings.n_datasets == 1 else f"{findings.n_datasets} data sets"
    return (
        f"No test was possible: {sets} and {findings.n_folds} folds {times} are too few; with "
        f"{MIN_FOLDS} results of folds, from more repetitions for instance, there would be one."
    )


def spread_words(findings: Findings) -> str:
    """What stands after ±."""
    if findings.spread_over == "repetitions":
        return f"one standard deviation over {findings.n_repetitions} repetitions"
    return f"one standard deviation over the {findings.n_folds} folds (there is one repetition)"


def accuracy(standing: Standing) -> str:
    """Mean and spread in percent."""
    return with_spread(standing.accuracy, standing.spread)


def with_spread(mean: float, spread: float) -> str:
    """Return "mean ± spread" in percent; without what is NaN."""
    parts = [f"{100 * part:.1f}" for part in (mean, spread) if not np.isnan(part)]
    return "" if np.isnan(mean) else " ± ".join(parts)


def level_words(level: float, damage: str) -> str:
    """How much of the training labels was damaged."""
    return f"{percent(level)} {damage}" if level else f"none {damage}"


def p_value(p: float) -> str:
    """A p-value after the letter: "= 0.012" or "< 0.001"."""
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


def percent(share: float) -> str:
    """A share in percent, as short as it is exact."""
    return f"{100 * share:.10g} %"


def quoted(*names: str) -> str:
    """Names in a sentence: they may hold commas."""
    return join_with_and(f"“{name}”" for name in names)


def join_with_and(words: Iterable[str]) -> str:
    """One, two and three."""
    *before, last = words
    return f"{', '.join(before)} and {last}" if before else last


def _shares(shares: Sequence[ShareFindings]) -> str:
    return join_with_and(f"{100 * share_findings.share:.10g}" for share_findings in shares) + " %"
