"""What was found, in sentences that claim no more than the tests show."""

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from credalchain._utils.text import plural, with_spread
from credalchain.studies.findings import (
    COMPARED_COMPLETENESS,
    LEVEL,
    MIN_FOLDS,
    WIDEST_GAP,
    Findings,
    ShareFindings,
    Standing,
)

_TESTS = {
    True: "Wilcoxon's signed-rank test over data sets",
    False: "Nadeau and Bengio's corrected resampled t-test over folds",
}


def in_words(findings: Findings, damage: str = "") -> list[str]:
    """Return the main findings, one a line; the first says what came out.

    ``damage`` is what was done to training labels, "removed" for instance; empty if nothing.
    """
    lines = leads(findings, damage)
    if findings.shares and len(findings.curves) > 1:
        least = findings.at_level(findings.levels[0])
        lines[1:1] = [_share_line(findings, at, damage) for at in least]
    return lines + remarks(findings)


def leads(findings: Findings, damage: str = "") -> list[str]:
    """Return which method comes first at which share: a sentence for levels that are alike."""
    levels_of: dict[str, list[float]] = defaultdict(list)
    for level in findings.levels:
        levels_of[_lead(findings, findings.at_level(level))].append(level)
    if not damage:
        return list(levels_of)
    return [
        f"{_numbers(levels)} of the training labels {damage}: {words}"
        for words, levels in levels_of.items()
    ]


def _lead(findings: Findings, shares: list[ShareFindings]) -> str:
    """Return the best method at each share, whether tests show it, and what is not compared."""
    if len(findings.curves) == 1:
        results = [f"{accuracy(at.best)} % at {percent(at.share)}" for at in shares]
        return (
            f"{quoted(findings.curves[0])} is the only method. Rows without a wrong answer, by the "
            f"share of labels answered: {join_with_and(results)}."
        )
    winners: dict[str, list[float]] = defaultdict(list)
    missing: dict[str, list[float]] = defaultdict(list)
    for at in shares:
        winners[quoted(at.best.curve, *at.tied_with_best)].append(at.share)
        for curve, datasets in at.not_measured.items():
            is_nowhere = len(datasets) == len(findings.datasets)
            on = "" if is_nowhere else f" on {quoted(*datasets)}"
            missing[quoted(curve) + on].append(at.share)
    parts = [f"{curves} at {_numbers(won)}" for curves, won in winners.items()]
    words = f"Best where the same share of labels is answered: {'; '.join(parts)}"
    verdicts = [at.verdict(other.curve) for at in shares for other in at.standings[1:]]
    n_tests, n_better = (sum(verdict[i] for verdict in verdicts) for i in (0, 1))
    shown = f". {n_better} of {plural(n_tests, 'test')} show that the best is better."
    words += shown if n_tests else " (not tested)."
    parts = [f"{curve} at {_numbers(where)}" for curve, where in missing.items()]
    return f"{words} Not measured: {'; '.join(parts)}." if parts else words


def _share_line(findings: Findings, at: ShareFindings, damage: str) -> str:
    """Return the methods at one share, best first, with their ranks and what tests say."""
    level = f", {percent(at.level)} {damage}" if damage else ""
    on = f"{len(at.datasets)} of {plural(len(findings.datasets), 'data set')}"
    methods = [
        f"{quoted(standing.curve)} {accuracy(standing)} % ({', '.join(notes(at, standing))})"
        for standing in at.standings
    ]
    return f"{percent(at.share)} answered{level}, {on}: {', '.join(methods)}."


def notes(at: ShareFindings, standing: Standing) -> list[str]:
    """Return the rank of a method, and what tests say of it against the best."""
    rank = [f"rank {standing.rank:.2f}"] if len(at.datasets) > 1 else []
    if standing.curve in (at.best.curve, *at.tied_with_best):
        is_alone = len(at.standings) == 1
        return [*rank, "alone" if is_alone else "best, tied" if at.tied_with_best else "best"]
    n, n_better, n_worse = at.verdict(standing.curve)
    found = [("worse", n_better), ("better", n_worse)]
    words = [word + f" on {k} of {n}" * (n > 1) for word, k in found if k]
    return [*rank, " and ".join(words) or ("no difference shown" if n else "not tested")]


def remarks(findings: Findings) -> list[str]:
    """Return which shares no curve reaches, and which tests were done, or why none was."""
    if not findings.is_comparable:
        return [
            "The study does not measure both set-accuracy and completeness, so methods cannot be "
            "compared where they answer the same share of labels."
        ]
    least = findings.at_level(findings.levels[0]) if findings.shares else []
    away = [share for share in COMPARED_COMPLETENESS if share not in {at.share for at in least}]
    lines = []
    if away:
        lines.append(
            f"Methods are not compared at {_numbers(away)}: no curve reaches these shares of "
            "labels answered between two values of its caution parameter that are at most "
            f"{100 * WIDEST_GAP:.0f} points apart."
        )
    pairs = [at for at in findings.shares if at.comparisons]
    tested = [test for at in pairs for test in at.comparisons if not np.isnan(test.p)]
    used = {test.dataset is None for test in tested}
    if used:
        tests = [words for over_datasets, words in _TESTS.items() if over_datasets in used]
        lines.append(
            f"Tests of two methods: {' or '.join(tests)}, corrected by Holm's method (at "
            f"{LEVEL:g}) for all tests at a share."
        )
    elif pairs:
        n = findings.n_folds * findings.n_repetitions
        lines.append(
            f"No test was possible with {plural(n, 'result')} of folds for each data set: tests "
            f"need {MIN_FOLDS} results that differ, from more repetitions for instance."
        )
    return lines


def spread_words(findings: Findings) -> str:
    """Return what stands after ±."""
    if findings.spread_over == "repetitions":
        return f"one standard deviation over {findings.n_repetitions} repetitions"
    return f"one standard deviation over the {findings.n_folds} folds (there is one repetition)"


def accuracy(standing: Standing) -> str:
    """Return mean and spread of the set-accuracy in percent."""
    return in_percent(standing.accuracy, standing.spread)


def in_percent(mean: float, spread: float) -> str:
    """Return mean and spread in percent."""
    return with_spread(100 * mean, 100 * spread, ".1f")


def percent(share: float) -> str:
    """Return a share in percent, as short as it is exact."""
    return f"{100 * share:.10g} %"


def quoted(*names: str) -> str:
    """Return names for a sentence: they may hold commas."""
    return join_with_and(f"“{name}”" for name in names)


def join_with_and(words: Iterable[str]) -> str:
    """Return "one, two and three"."""
    *before, last = words
    return f"{', '.join(before)} and {last}" if before else last


def _numbers(shares: Iterable[float]) -> str:
    return join_with_and(f"{100 * share:.10g}" for share in shares) + " %"
