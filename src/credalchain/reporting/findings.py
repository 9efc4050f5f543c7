"""What came out of a study: which method is best where, and whether that could be chance.

Plain values; ``sentences`` says them in words, ``page`` shows them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from credalchain.experiments.study import Study
from credalchain.experiments.summary import folds_at_completeness, groups, spread_unit
from credalchain.reporting.significance import (
    LEVEL,
    average_ranks,
    corrected_t_test,
    datasets_needed,
    friedman_test,
    holm,
    signed_rank_test,
)

COMPARED_COMPLETENESS = (1.0, 0.95, 0.9, 0.8, 0.6)  # of labels answered, where methods are compared
WIDEST_GAP = 0.25  # between points of a curve, over which a value on the line counts as measured


@dataclass(frozen=True)
class Standing:
    """How a method did at a share, over the data sets compared.

    Attributes
    ----------
    curve : str
        The method and its strategy.
    accuracy : float
        Mean set-accuracy over data sets.
    spread : float
        What the mean would vary by, from the spread in each data set; NaN if that is not known.
    rank : float
        Average rank over data sets; 1 is best.
    n_first : int
        Data sets on which no other method has a higher set-accuracy.
    """

    curve: str
    accuracy: float
    spread: float
    rank: float
    n_first: int


@dataclass(frozen=True)
class Comparison:
    """A test of two methods, over data sets or over the folds of one.

    Attributes
    ----------
    first, second : str
        Curves.
    dataset : str or None
        The data set whose folds are compared; None: one difference per data set.
    n : int
        Differences: data sets, or results of folds.
    difference : float
        Mean set-accuracy of the first minus that of the second.
    p, corrected : float
        P-value, and the same by Holm's method over all comparisons at this share; NaN: no test.
    """

    first: str
    second: str
    dataset: str | None
    n: int
    difference: float
    p: float
    corrected: float

    @property
    def is_shown(self) -> bool:
        """Whether the test shows a difference."""
        return self.corrected <= LEVEL

    def shows(self, curve: str) -> bool:
        """Whether the test shows that a method is the better one."""
        better = self.first if self.difference > 0 else self.second
        return self.is_shown and curve == better


@dataclass(frozen=True)
class Verdict:
    """What the tests say of the best method against another.

    ``n_better`` and ``n_worse`` of ``n`` tests show that it is better, or worse: one test over data
    sets, or one in each data set. ``p`` is the corrected p-value if there is one test.
    """

    n: int
    n_better: int
    n_worse: int
    p: float


@dataclass(frozen=True)
class ShareFindings:
    """The methods at one share of labels answered, and one level of damage.

    Attributes
    ----------
    level : float
        The share of training labels damaged.
    share : float
    datasets : tuple of str
        Those where all methods compared reach the share.
    standings : tuple of Standing
        Best first.
    left_out : dict
        Methods that reach the share on too few data sets to be compared, and on how many.
    not_measured : dict
        Methods that do not reach the share on all data sets, and those on which they do not.
    friedman : float
        P-value for all methods being equal; NaN with fewer than three methods or data sets.
    comparisons : tuple of Comparison
        All pairs, or all pairs in every data set.
    """

    level: float
    share: float
    datasets: tuple[str, ...]
    standings: tuple[Standing, ...]
    left_out: dict[str, int]
    not_measured: dict[str, tuple[str, ...]]
    friedman: float
    comparisons: tuple[Comparison, ...]

    @property
    def best(self) -> Standing:
        return self.standings[0]

    @property
    def is_over_datasets(self) -> bool:
        """Whether tests have one difference per data set; otherwise one per fold."""
        return all(comparison.dataset is None for comparison in self.comparisons)

    @property
    def is_tested(self) -> bool:
        return any(not np.isnan(comparison.p) for comparison in self.comparisons)

    @property
    def tied_with_best(self) -> tuple[str, ...]:
        """Methods that have the same rank and set-accuracy as the best."""
        best = self.best
        same = [s for s in self.standings if (s.rank, s.accuracy) == (best.rank, best.accuracy)]
        return tuple(standing.curve for standing in same if standing is not best)

    def verdict(self, other: str) -> Verdict:
        """The tests of the best method against another one."""
        best = self.best.curve
        pairs = [c for c in self.comparisons if {c.first, c.second} == {best, other}]
        tested = [pair for pair in pairs if not np.isnan(pair.p)]
        return Verdict(
            len(tested),
            sum(pair.shows(best) for pair in tested),
            sum(pair.shows(other) for pair in tested),
            tested[0].corrected if len(tested) == 1 else float("nan"),
        )


@dataclass(frozen=True)
class Findings:
    """Everything that is found by comparing methods at equal completeness.

    Attributes
    ----------
    curves : tuple of str
        All methods of the study, with their strategies.
    datasets : tuple of str
        All data sets that have results.
    is_comparable : bool
        Whether the study measures what comparing takes: set-accuracy and completeness.
    shares : tuple of ShareFindings
        By level of damage, then by share; none if no method reaches any.
    spread_over : str
        "repetitions", or "folds" if there is one repetition.
    n_folds, n_repetitions : int
        Of the results.
    """

    curves: tuple[str, ...]
    datasets: tuple[str, ...]
    is_comparable: bool
    shares: tuple[ShareFindings, ...]
    spread_over: str
    n_folds: int
    n_repetitions: int

    @property
    def n_datasets(self) -> int:
        return len(self.datasets)

    @property
    def levels(self) -> list[float]:
        """Levels of damage, least first."""
        return sorted({share_findings.level for share_findings in self.shares})

    def at_level(self, level: float) -> list[ShareFindings]:
        return [share_findings for share_findings in self.shares if share_findings.level == level]


def curve_name(method: str, strategy: str) -> str:
    """A method and its strategy, if it has one, in words."""
    return method if strategy == "none" else f"{method}, {strategy}"


def compare_methods(study: Study, results: pd.DataFrame) -> Findings:
    """Compare the methods of a study where they answer the same share of labels."""
    results = _with_curves(results)
    over = spread_unit(results)
    is_comparable = {"set_accuracy", "completeness"} <= set(study.measures)
    return Findings(
        curves=tuple(dict.fromkeys(results["curve"])),
        datasets=tuple(dict.fromkeys(results["dataset"])),
        is_comparable=is_comparable,
        shares=tuple(_shares(study, results, over)) if is_comparable else (),
        spread_over=over,
        n_folds=int(results["fold"].nunique()),
        n_repetitions=int(results["repetition"].nunique()),
    )


def _shares(study: Study, results: pd.DataFrame, over: str) -> Iterator[ShareFindings]:
    folds = _with_curves(
        folds_at_completeness(_paired(results), COMPARED_COMPLETENESS, widest_gap=WIDEST_GAP)
    )
    units = ["dataset", "repetition", "fold"]
    curves = list(dict.fromkeys(results["curve"]))
    for (level,), part in groups(folds.sort_values("missing", kind="stable"), ["missing"]):
        for share in COMPARED_COMPLETENESS:
            table = part.pivot(index=units, columns="curve", values=share)
            table = table.reindex(list(dict.fromkeys(results["dataset"])), level="dataset")
            table = table.reindex(columns=curves)
            if table.notna().any(axis=None):
                yield _share(float(level), share, table, over, study.folds)


def _with_curves(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(curve=list(map(curve_name, frame["method"], frame["strategy"])))


def _paired(results: pd.DataFrame) -> pd.DataFrame:
    """Results of those repetitions of a data set that all its methods have."""
    n_curves = results.groupby("dataset")["curve"].transform("nunique")
    n_present = results.groupby(["dataset", "repetition"])["curve"].transform("nunique")
    return results[n_present == n_curves]


def _share(
    level: float, share: float, table: pd.DataFrame, over: str, n_folds: int
) -> ShareFindings:
    """``table`` has a row per fold of every data set, and a column per curve."""
    means = table.groupby(level="dataset", sort=False).mean()
    curves, left_out = _compared(means)
    common = means[curves].dropna()
    table = table.loc[common.index, curves]
    comparisons = _comparisons(table, common, n_folds)
    return ShareFindings(
        level=level,
        share=share,
        datasets=tuple(common.index),
        standings=tuple(_standings(table, common, over)),
        left_out=left_out,
        not_measured={
            str(curve): tuple(means.index[missing])
            for curve, missing in means.isna().items()
            if missing.any()
        },
        friedman=friedman_test(common.to_numpy()),
        comparisons=tuple(comparisons),
    )


def _compared(means: pd.DataFrame) -> tuple[list[str], dict[str, int]]:
    """The methods that can be compared on some data sets, and the others.

    A method that reaches the share on less than half of the data sets would take the others away
    from all of the rest.
    """
    reached = {str(curve): int(n) for curve, n in means.notna().sum().items()}
    n = int(means.notna().any(axis=1).sum())
    curves = [curve for curve in reached if 2 * reached[curve] >= n]
    curves = curves or [max(reached, key=lambda curve: reached[curve])]
    while means[curves].dropna().empty:
        curves.remove(min(reversed(curves), key=lambda curve: reached[curve]))
    return curves, {curve: n for curve, n in reached.items() if curve not in curves}


def _standings(table: pd.DataFrame, means: pd.DataFrame, over: str) -> list[Standing]:
    units = ["dataset", "repetition"] if over == "repetitions" else table.index.names
    spreads = table.groupby(level=units).mean().groupby(level="dataset").std()
    spread = np.sqrt((spreads**2).sum(skipna=False)).to_numpy() / len(spreads)
    ranks = average_ranks(means.to_numpy())
    first = means.eq(means.max(axis=1), axis=0).sum()
    columns = zip(means, means.mean(), spread, ranks, first, strict=True)
    standings = [
        Standing(str(curve), float(mean), float(varies), float(rank), int(wins))
        for curve, mean, varies, rank, wins in columns
    ]
    return sorted(standings, key=lambda standing: (standing.rank, -standing.accuracy))


def _comparisons(table: pd.DataFrame, means: pd.DataFrame, n_folds: int) -> list[Comparison]:
    """Over data sets where that could show a difference, otherwise over the folds of each."""
    pairs = list(combinations(means.columns, 2))
    tests: list[tuple[str, str, str | None, int, float, float]] = []
    if len(means) >= datasets_needed(len(pairs)):
        for a, b in pairs:
            differences = means[a] - means[b]
            p = signed_rank_test(differences)
            tests.append((a, b, None, len(means), float(differences.mean()), p))
    else:
        for dataset, folds in table.groupby(level="dataset", sort=False):
            for a, b in pairs:
                differences = folds[a] - folds[b]
                p = corrected_t_test(differences, n_folds)
                tests.append((a, b, str(dataset), len(folds), float(differences.mean()), p))
    corrected = holm([p for *_, p in tests])
    return [Comparison(*test, float(value)) for test, value in zip(tests, corrected, strict=True)]
