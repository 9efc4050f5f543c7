"""What came out of a study: which method is best where, and whether that could be chance."""

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from credalchain._utils.array_types import FloatArray
from credalchain.studies.study_file import Study
from credalchain.studies.summary import folds_at_completeness, groups

COMPARED_COMPLETENESS = (1.0, 0.95, 0.9, 0.8, 0.6)  # of labels answered, where methods are compared
WIDEST_GAP = 0.25  # between points of a curve, over which a value on the line counts as measured
LEVEL = 0.05  # a difference is shown if its p-value, corrected, is at most this
MIN_FOLDS = 10  # results of folds, below which their variance is hardly known


class Standing(NamedTuple):
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


class Comparison(NamedTuple):
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
        """Return whether the test shows that a method is the better one."""
        return self.is_shown and curve == (self.first if self.difference > 0 else self.second)


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
    not_measured : dict
        Methods that do not reach the share on all data sets, and those on which they do not.
    left_out : dict
        Those that reach it on too few data sets to be compared, and on how many.
    friedman : float
        P-value for all methods being equal; NaN with fewer than three methods or data sets.
    comparisons : tuple of Comparison
        All pairs, or all pairs in every data set.
    """

    level: float
    share: float
    datasets: tuple[str, ...]
    standings: tuple[Standing, ...]
    not_measured: dict[str, tuple[str, ...]]
    left_out: dict[str, int]
    friedman: float
    comparisons: tuple[Comparison, ...]

    @property
    def best(self) -> Standing:
        """The first of the standings."""
        return self.standings[0]

    @property
    def tied_with_best(self) -> tuple[str, ...]:
        """Methods that have the same rank and set-accuracy as the best."""
        same = (self.best.rank, self.best.accuracy)
        return tuple(s.curve for s in self.standings[1:] if (s.rank, s.accuracy) == same)

    def verdict(self, other: str) -> tuple[int, int, int]:
        """Return how many tests there are of the best method against another one.

        And how many of them show that it is better, and that it is worse: of one test over data
        sets, or of one in each data set.
        """
        best = self.best.curve
        pairs = [c for c in self.comparisons if {c.first, c.second} == {best, other}]
        tested = [pair for pair in pairs if not np.isnan(pair.p)]
        better, worse = (sum(pair.shows(curve) for pair in tested) for curve in (best, other))
        return len(tested), better, worse


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
    def levels(self) -> list[float]:
        """Levels of damage, least first."""
        return sorted({at.level for at in self.shares})

    def at_level(self, level: float) -> list[ShareFindings]:
        """Return what was found at one level of damage."""
        return [at for at in self.shares if at.level == level]


def curve_name(method: str, strategy: str) -> str:
    """Return a method and its strategy, if it has one, in words."""
    return method if strategy == "none" else f"{method}, {strategy}"


def compare_methods(study: Study, results: pd.DataFrame) -> Findings:
    """Compare the methods of a study where they answer the same share of labels."""
    results = _with_curves(results)
    n_repetitions = int(results["repetition"].nunique())
    over = "repetitions" if n_repetitions > 1 else "folds"
    is_comparable = {"set_accuracy", "completeness"} <= set(study.measures)
    return Findings(
        curves=tuple(dict.fromkeys(results["curve"])),
        datasets=tuple(dict.fromkeys(results["dataset"])),
        is_comparable=is_comparable,
        shares=tuple(_shares(study, results, over)) if is_comparable else (),
        spread_over=over,
        n_folds=int(results["fold"].nunique()),
        n_repetitions=n_repetitions,
    )


def _with_curves(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(curve=list(map(curve_name, frame["method"], frame["strategy"])))


def _shares(study: Study, results: pd.DataFrame, over: str) -> Iterator[ShareFindings]:
    by_dataset = results.groupby("dataset")["curve"].transform("nunique")
    by_repetition = results.groupby(["dataset", "repetition"])["curve"].transform("nunique")
    paired = results[by_repetition == by_dataset]  # repetitions that all methods have
    folds = folds_at_completeness(paired, COMPARED_COMPLETENESS, widest_gap=WIDEST_GAP)
    units = ["dataset", "repetition", "fold"]
    curves = list(dict.fromkeys(results["curve"]))
    by_level = _with_curves(folds).sort_values("missing", kind="stable")
    for (level,), part in groups(by_level, ["missing"]):
        for share in COMPARED_COMPLETENESS:
            table = part.pivot(index=units, columns="curve", values=share)
            table = table.reindex(list(dict.fromkeys(results["dataset"])), level="dataset")
            table = table.reindex(columns=curves)
            if table.notna().any(axis=None):
                yield _share(float(level), share, table, over, study.folds)


def _share(
    level: float, share: float, table: pd.DataFrame, over: str, n_folds: int
) -> ShareFindings:
    """``table`` has a row per fold of every data set, and a column per curve."""
    means = table.groupby(level="dataset", sort=False).mean()
    reached = {str(curve): int(n) for curve, n in means.notna().sum().items()}
    curves = _compared(means, reached)
    common = means[curves].dropna()
    table = table.loc[common.index, curves]
    return ShareFindings(
        level=level,
        share=share,
        datasets=tuple(common.index),
        standings=tuple(_standings(table, common, over)),
        not_measured={
            str(curve): tuple(means.index[missing])
            for curve, missing in means.isna().items()
            if missing.any()
        },
        left_out={curve: n for curve, n in reached.items() if curve not in curves},
        friedman=friedman_test(common.to_numpy()),
        comparisons=tuple(_comparisons(table, common, n_folds)),
    )


def _compared(means: pd.DataFrame, reached: dict[str, int]) -> list[str]:
    """Return the methods that can be compared on some data sets.

    A method that reaches the share on less than half of the data sets would take the others away
    from all of the rest.
    """
    n = int(means.notna().any(axis=1).sum())
    curves = [curve for curve in reached if 2 * reached[curve] >= n]
    curves = curves or [max(reached, key=lambda curve: reached[curve])]
    while means[curves].dropna().empty:
        curves.remove(min(reversed(curves), key=lambda curve: reached[curve]))
    return curves


def _standings(table: pd.DataFrame, means: pd.DataFrame, over: str) -> list[Standing]:
    units = ["dataset", "repetition"] if over == "repetitions" else table.index.names
    spreads = table.groupby(level=units).mean().groupby(level="dataset").std()
    spread = np.sqrt((spreads**2).sum(skipna=False)) / len(spreads)
    first = means.eq(means.max(axis=1), axis=0).sum()
    ranks = means.rank(axis=1, ascending=False).mean()  # 1 is best, ties share theirs
    columns = pd.DataFrame([means.mean(), spread, ranks]).T.assign(first=first)
    standings = [Standing(*row) for row in columns.itertuples()]
    return sorted(standings, key=lambda standing: (standing.rank, -standing.accuracy))


def _comparisons(table: pd.DataFrame, means: pd.DataFrame, n_folds: int) -> list[Comparison]:
    """Test over data sets where that could show a difference, else over the folds of each."""
    pairs = list(combinations(means.columns, 2))
    over_datasets = len(means) >= datasets_needed(len(pairs))
    by_dataset: Any = table.groupby(level="dataset", sort=False)
    tests: list[tuple[str, str, str | None, int, float, float]] = []
    for dataset, values in [(None, means)] if over_datasets else by_dataset:
        for a, b in pairs:
            differences = values[a] - values[b]
            if over_datasets:
                p = signed_rank_test(differences)
            else:
                p = corrected_t_test(differences, n_folds)
            tests.append((a, b, dataset, len(values), float(differences.mean()), p))
    corrected = holm([p for *_, p in tests])
    return [Comparison(*test, float(value)) for test, value in zip(tests, corrected, strict=True)]


# -- statistical tests -------------------------------------------------------------------------


def signed_rank_test(differences: ArrayLike) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test: one difference per data set.

    Examples
    --------
    >>> signed_rank_test([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])  # the least there is for six
    0.03125
    """
    values = np.asarray(differences, dtype=float)
    values = values[values != 0]
    if not len(values):
        return 1.0
    with warnings.catch_warnings():  # older versions warn of few values where there are ties
        warnings.simplefilter("ignore")
        return float(stats.wilcoxon(values).pvalue)


def datasets_needed(n_pairs: int) -> int:
    """Return how many data sets let the signed-rank test of one of so many pairs reach the level.

    Its p-value is at least 2 / 2^n, and Holm's correction multiplies the least one by the number
    of pairs.

    Examples
    --------
    >>> datasets_needed(1), datasets_needed(10)
    (6, 9)
    """
    return 1 + math.ceil(math.log2(max(n_pairs, 1) / LEVEL))


def corrected_t_test(differences: ArrayLike, n_folds: int) -> float:
    """Return the two-sided p-value of the corrected resampled t-test: one difference per fold.

    Training sets of different folds share rows, so folds vary less than independent samples
    would; the correction adds the ratio of test to training rows, 1 / (n_folds - 1), to 1 / n. NaN
    with fewer than ten differences, and if all are equal but not 0.

    References
    ----------
    C. Nadeau and Y. Bengio, Inference for the Generalization Error, Machine Learning 52, 2003.
    """
    values = np.asarray(differences, dtype=float)
    n = len(values)
    if n < MIN_FOLDS:
        return float("nan")
    variance = float(values.var(ddof=1))
    if variance <= np.finfo(float).eps ** 2:  # equal but for rounding
        return 1.0 if np.allclose(values, 0) else float("nan")
    t = values.mean() / np.sqrt((1 / n + 1 / (n_folds - 1)) * variance)
    return float(2 * stats.t.sf(abs(t), n - 1))


def friedman_test(values: ArrayLike) -> float:
    """Return the p-value of Friedman's test: a row per data set, a column per method.

    NaN with fewer than three of either, and 1 where all methods are equal everywhere.
    """
    table = np.asarray(values, dtype=float)
    if min(table.shape) < 3:
        return float("nan")
    if (table == table[:, :1]).all():
        return 1.0
    return float(stats.friedmanchisquare(*table.T).pvalue)


def holm(p_values: ArrayLike) -> FloatArray:
    """Return p-values corrected by Holm's method; NaN stays NaN and counts for nothing.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")  # NaN comes last
    n = int((~np.isnan(p)).sum())
    factors = np.maximum(n - np.arange(len(p)), 1)
    result = np.full(len(p), np.nan)
    result[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0)
    return result
