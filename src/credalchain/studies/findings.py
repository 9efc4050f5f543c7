"""Findings of a study, as numbers and as sentences that claim no more than tests show.

Records become means and spreads; methods are compared where they answer the same share of labels.
"""

import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import integrate, stats

from credalchain._utils.array_types import FloatArray
from credalchain._utils.text import plural, with_spread
from credalchain.metrics import MEASURES
from credalchain.studies.study_file import Study

KEYS = ["dataset", "method", "strategy", "s", "missing"]
CURVES = [key for key in KEYS if key != "s"]
_OTHERS = "fit_seconds predict_seconds chosen_parameter repetition fold seed"
_NOT_MEASURES = {*KEYS, "caution_parameter", "larger_is_more_cautious", *_OTHERS.split()}
_UNITS = {"repetitions": ["repetition"], "folds": ["repetition", "fold"]}


def groups(frame: pd.DataFrame, by: list[str]) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Yield rows that are equal in some columns, in the order in which they first appear."""
    grouped: Any = frame.groupby(by, sort=False)
    yield from grouped


def summarize(results: pd.DataFrame, *, over: str = "repetitions") -> pd.DataFrame:
    """Compute the mean of every measure, and its standard deviation over repetitions.

    Folds are averaged within a repetition first; the spread is the standard deviation of the
    repetitions' means, NaN if there is only one.

    Parameters
    ----------
    results : DataFrame
        Records of a study, as :meth:`Store.results` returns them.
    over : {"repetitions", "folds"}, default="repetitions"
        Unit over which the spread is computed. "folds": all folds of all repetitions.

    Returns
    -------
    DataFrame
        A row for each data set, method, strategy, value of caution and level of corruption; for
        each measure ``m`` the columns ``m`` and ``m_spread``.

    See Also
    --------
    at_completeness : Compare methods at equal shares of labels answered.

    Examples
    --------
    >>> import pandas as pd
    >>> from credalchain.studies import summarize
    >>> results = pd.DataFrame(
    ...     {
    ...         "dataset": "songs",
    ...         "method": "chain",
    ...         "strategy": "branching",
    ...         "s": 2.0,
    ...         "missing": 0.0,
    ...         "repetition": [0, 0, 1, 1],
    ...         "fold": [0, 1, 0, 1],
    ...         "set_accuracy": [0.5, 0.7, 0.6, 0.8],
    ...     }
    ... )
    >>> summarize(results)[["method", "set_accuracy", "set_accuracy_spread"]].round(3)
      method  set_accuracy  set_accuracy_spread
    0  chain          0.65                0.071
    """
    versions = {name for name in results.columns if name.startswith("version_")}
    measures = [name for name in results.columns if name not in _NOT_MEASURES | versions]
    return _mean_and_spread(results, KEYS, over, measures)


def _mean_and_spread(
    frame: pd.DataFrame, keys: list[str], over: str, columns: list[Any]
) -> pd.DataFrame:
    """Return the mean of columns, and the standard deviation of the means of units."""
    by_unit = frame.groupby([*keys, *_UNITS[over]], sort=False)[columns].mean()
    by_key = by_unit.groupby(keys, sort=False)
    return by_key.mean().join(by_key.std().add_suffix("_spread")).reset_index()


def _weights(answered: FloatArray, shares: Sequence[float], widest_gap: float) -> FloatArray:
    """Return what each point of a curve counts at each share; NaN where there is no value."""
    at_shares = partial(np.interp, shares, answered, left=np.nan, right=np.nan)
    weights = np.array([at_shares(unit) for unit in np.eye(len(answered))])
    for column, share in enumerate(shares):
        below, above = answered[answered <= share], answered[answered >= share]
        if len(below) and len(above) and above.min() - below.max() > widest_gap:
            weights[:, column] = np.nan
    return weights


def folds_at_completeness(
    results: pd.DataFrame,
    shares: Sequence[float] = (0.6, 0.7, 0.8, 0.9, 1.0),
    *,
    widest_gap: float = np.inf,
) -> pd.DataFrame:
    """Interpolate each method's set-accuracy at given shares of labels answered, fold by fold.

    In every fold a method has the caution with which it answers that share on average over all
    folds, as if chosen once. Values are interpolated linearly between neighbouring values of
    caution.

    Parameters
    ----------
    results : DataFrame
        Records of a study, as :meth:`Store.results` returns them.
    shares : sequence of float, default=(0.6, 0.7, 0.8, 0.9, 1.0)
        Shares of labels answered.
    widest_gap : float, default=inf
        Maximum distance between the shares that two neighbouring values of caution answer, for
        which to interpolate. The result is NaN where the gap is wider, or where a fold is
        farther away from the share.

    Returns
    -------
    DataFrame
        A row for each data set, method, strategy, level of corruption, repetition and fold; a
        column for each share, NaN where a curve does not reach it.

    See Also
    --------
    at_completeness : Mean and spread over folds or repetitions.

    Examples
    --------
    >>> import pandas as pd
    >>> from credalchain.studies import folds_at_completeness
    >>> results = pd.DataFrame(
    ...     {
    ...         "dataset": "songs",
    ...         "method": "chain",
    ...         "strategy": "branching",
    ...         "s": [0.0, 2.0],
    ...         "missing": 0.0,
    ...         "repetition": 0,
    ...         "fold": 0,
    ...         "completeness": [1.0, 0.8],
    ...         "set_accuracy": [0.5, 0.7],
    ...     }
    ... )
    >>> folds_at_completeness(results, shares=(0.8, 0.9))[["method", 0.8, 0.9]].round(3)
      method  0.8  0.9
    0  chain  0.7  0.6
    """

    def at_shares(curve: pd.DataFrame) -> pd.DataFrame:
        (table,) = _along(curve, ["set_accuracy"], shares, widest_gap)
        return table

    return _each_curve(results, at_shares)


def _each_curve(
    results: pd.DataFrame, function: Callable[[pd.DataFrame], pd.DataFrame]
) -> pd.DataFrame:
    """Return what ``function`` gives for the folds of each curve, in one table."""
    tables = [
        function(curve).reset_index().assign(**dict(zip(CURVES, key, strict=True)))
        for key, curve in groups(results, CURVES)
    ]
    table = pd.concat(tables, ignore_index=True)
    return table[[*CURVES, *(name for name in table if name not in CURVES)]]


def _along(
    curve: pd.DataFrame, measures: Sequence[str], shares: Sequence[float], widest_gap: float
) -> list[pd.DataFrame]:
    """Return measures at shares of labels answered: a row for each fold, a column a share.

    A caution that answers the share on average may answer far more or less in a fold. If that is
    more than ``widest_gap`` away, the curve does not reach the share.
    """
    values = ["completeness", *measures]
    wide: Any = curve.pivot(index=["repetition", "fold"], columns="s", values=values)
    answered = wide["completeness"].mean().to_numpy()
    order = np.argsort(answered, kind="stable")
    weights = _weights(answered[order], shares, widest_gap)
    of_folds = wide["completeness"].iloc[:, order].fillna(0.0).to_numpy() @ weights
    weights[:, (np.abs(of_folds - np.asarray(shares)) > widest_gap).any(axis=0)] = np.nan
    tables = []
    for measure in measures:
        points = wide[measure].iloc[:, order]
        heights = points.fillna(0.0).to_numpy() @ weights  # what counts 0 may be undefined
        heights[points.isna().to_numpy() @ (weights != 0)] = np.nan
        tables.append(pd.DataFrame(heights, index=points.index, columns=list(shares)))
    return tables


def at_completeness(
    results: pd.DataFrame,
    shares: Sequence[float] = (0.6, 0.7, 0.8, 0.9, 1.0),
    *,
    widest_gap: float = np.inf,
    over: str = "repetitions",
) -> pd.DataFrame:
    """Compute the set-accuracy of each method where it answers a given share of labels.

    Parameters
    ----------
    results : DataFrame
        Records of a study, as :meth:`Store.results` returns them.
    shares : sequence of float, default=(0.6, 0.7, 0.8, 0.9, 1.0)
        Shares of labels answered.
    widest_gap : float, default=inf
        As in :func:`folds_at_completeness`.
    over : {"repetitions", "folds"}, default="repetitions"
        Unit over which the spread is computed: the means of repetitions, or all folds. NaN if there
        is only one value.

    Returns
    -------
    DataFrame
        A row for each data set, method, strategy and level of corruption; for each share ``c`` the
        columns ``c`` and ``c_spread``.

    See Also
    --------
    folds_at_completeness : The values of all folds.

    Examples
    --------
    >>> import pandas as pd
    >>> from credalchain.studies import at_completeness
    >>> results = pd.DataFrame(
    ...     {
    ...         "dataset": "songs",
    ...         "method": "chain",
    ...         "strategy": "branching",
    ...         "s": [0.0, 2.0, 0.0, 2.0],
    ...         "missing": 0.0,
    ...         "repetition": 0,
    ...         "fold": [0, 0, 1, 1],
    ...         "completeness": [1.0, 0.8, 1.0, 0.8],
    ...         "set_accuracy": [0.5, 0.7, 0.6, 0.9],
    ...     }
    ... )
    >>> table = at_completeness(results, shares=(0.8, 0.9), over="folds")
    >>> table[["method", 0.8, "0.8_spread", 0.9, "0.9_spread"]].round(2)
      method  0.8  0.8_spread   0.9  0.9_spread
    0  chain  0.8        0.14  0.68        0.11
    """
    folds = folds_at_completeness(results, shares, widest_gap=widest_gap)
    return _mean_and_spread(folds, CURVES, over, list(shares))


def mean_curves(results: pd.DataFrame, measures: Sequence[str], *, over: str) -> pd.DataFrame:
    """Return the mean curve of each method over all data sets, as a summary of one data set.

    Its points are shares of labels answered, where the curve reaches them on every data set.
    """
    shares = np.linspace(0.05, 1, 20).round(2).tolist()

    def points(curve: pd.DataFrame) -> pd.DataFrame:
        tables = _along(curve, measures, shares, WIDEST_GAP)
        stacked: Any = pd.concat(
            {m: t.stack() for m, t in zip(measures, tables, strict=True)}, axis=1
        )
        named: pd.DataFrame = stacked.rename_axis(["repetition", "fold", "completeness"])
        return named

    folds = _each_curve(results, points)
    keys = ["method", "strategy", "missing", "completeness"]
    units = [*keys, *_UNITS[over]]
    of_units = folds.groupby(["dataset", *units], sort=False)[list(measures)].mean()
    n = int(results["dataset"].nunique())
    by_unit: Any = of_units.groupby(units, sort=False)
    by_key = by_unit.mean().where(by_unit.count() == n).dropna(how="all").groupby(keys, sort=False)
    curves: pd.DataFrame = by_key.mean().join(by_key.std().add_suffix("_spread")).reset_index()
    return curves.assign(dataset=f"mean of {plural(n, 'data set')}")


AREA_MEASURES = ("set_accuracy", "selective_error", "recall_micro")
AREA_SHARES = (0.5, 1.0)  # of labels answered, between which the area under a curve is taken


def areas_of_folds(results: pd.DataFrame, measures: Sequence[str]) -> pd.DataFrame:
    """Return the area under each measure's curve, fold by fold: its mean over ``AREA_SHARES``.

    NaN where a curve does not reach both ends, or has too wide a gap.
    """
    shares = np.linspace(*AREA_SHARES, 11).tolist()

    def areas(curve: pd.DataFrame) -> pd.DataFrame:
        tables = _along(curve, measures, shares, WIDEST_GAP)
        heights = [integrate.trapezoid(table, dx=1 / 10) for table in tables]
        return pd.DataFrame(dict(zip(measures, heights, strict=True)), index=tables[0].index)

    return _each_curve(results, areas)


def areas(folds: pd.DataFrame, measures: Sequence[str], *, over: str) -> pd.DataFrame:
    """Return the mean and spread of areas of folds; a row for each data set, method and level."""
    return _mean_and_spread(folds, CURVES, over, list(measures))


COMPARED_COMPLETENESS = (1.0, 0.95, 0.9, 0.8, 0.6)  # of labels answered, where methods are compared
WIDEST_GAP = 0.25  # between points of a curve, over which a value on the line counts as measured
LEVEL = 0.05  # a difference is shown if its p-value, corrected, is at most this
MIN_FOLDS = 10  # results of folds, below which their variance is hardly known


class Standing(NamedTuple):
    """Results of a method at a share, over the data sets compared.

    Attributes
    ----------
    curve : str
        The method and its strategy.
    accuracy : float
        Mean set-accuracy over data sets.
    spread : float
        Standard deviation of the mean, from the spread in each data set; NaN if that is not known.
    rank : float
        Average rank over data sets; 1 is best.
    n_first : int
        Number of data sets on which no other method has a higher set-accuracy.
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
        The data set whose folds are compared; None if there is one difference per data set.
    n : int
        Number of differences: of data sets, or of results of folds.
    difference : float
        Mean set-accuracy of the first minus that of the second.
    p, corrected : float
        P-value, and p-value corrected by Holm's method over all comparisons at this share; NaN
        without a test.
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
        """True if the test shows a difference."""
        return self.corrected <= LEVEL

    def shows(self, curve: str) -> bool:
        """Return whether the test shows that a method is the better one."""
        return self.is_shown and curve == (self.first if self.difference > 0 else self.second)


@dataclass(frozen=True)
class ShareFindings:
    """The methods at one share of labels answered, and one level of corruption.

    Attributes
    ----------
    level : float
        Share of the training labels that are corrupted.
    share : float
        Share of labels answered; NaN where areas under curves are compared.
    datasets : tuple of str
        Data sets on which all compared methods reach the share.
    standings : tuple of Standing
        Best first.
    not_measured : dict
        Methods that do not reach the share on all data sets, and those on which they do not.
    left_out : dict
        Those that reach it on too few data sets to be compared, and on how many.
    friedman : float
        P-value for all methods being equal; NaN with fewer than three methods or data sets.
    comparisons : tuple of Comparison
        All pairs, or all pairs in every data set; with a reference, its pairs only.
    reference : str
        The method that others are tested against; empty: all are tested against each other.
    """

    level: float
    share: float
    datasets: tuple[str, ...]
    standings: tuple[Standing, ...]
    not_measured: dict[str, tuple[str, ...]]
    left_out: dict[str, int]
    friedman: float
    comparisons: tuple[Comparison, ...]
    reference: str = ""

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
        """Return how many tests there are of the reference, or the best, against another method.

        And how many of them show that it is better, and that it is worse: of one test over data
        sets, or of one in each data set.
        """
        own = self.reference or self.best.curve
        pairs = [c for c in self.comparisons if {c.first, c.second} == {own, other}]
        tested = [pair for pair in pairs if not np.isnan(pair.p)]
        better, worse = (sum(pair.shows(curve) for pair in tested) for curve in (own, other))
        return len(tested), better, worse


@dataclass(frozen=True, eq=False)
class Rivalry:
    """A method compared with the best of its rivals, at one level of corruption.

    At each share of labels answered and on each data set, the rival of a repetition is the one that
    is best on the *other* repetitions (of a fold, on the other folds, if there is one repetition):
    the best of many on the same rows would be ahead by luck.

    Attributes
    ----------
    level : float
        Share of the training labels that are corrupted.
    curve : str
        The reference of the study, whose rivals are the methods of other classes; without a
        reference the best method, whose rivals are all others.
    differences : DataFrame
        Set-accuracy of the method minus that of the rival: a row for each fold of every data set, a
        column for each share.
    """

    level: float
    curve: str
    differences: pd.DataFrame

    @property
    def cells(self) -> FloatArray:
        """Mean differences: one for each data set and share."""
        means = self.differences.groupby(level="dataset", sort=False).mean().to_numpy()
        return np.asarray(means[np.isfinite(means)])


@dataclass(frozen=True)
class Findings:
    """Findings of a comparison of methods at equal completeness.

    Attributes
    ----------
    curves : tuple of str
        All methods of the study, with their strategies.
    datasets : tuple of str
        All data sets that have results.
    is_comparable : bool
        True if the study measures both set-accuracy and completeness, which a comparison needs.
    shares : tuple of ShareFindings
        By level of corruption, then by share; none if no method reaches any.
    spread_over : str
        "repetitions", or "folds" if there is one repetition.
    n_folds, n_repetitions : int
        Of the results.
    rivalries : tuple of Rivalry
        The reference of the study, or the best method, against its rivals, by level.
    reference : str
        The curve of the study's reference; empty if it has none, or several.
    """

    curves: tuple[str, ...]
    datasets: tuple[str, ...]
    is_comparable: bool
    shares: tuple[ShareFindings, ...]
    spread_over: str
    n_folds: int
    n_repetitions: int
    rivalries: tuple[Rivalry, ...] = ()
    reference: str = ""

    @property
    def levels(self) -> list[float]:
        """Levels of corruption, in increasing order."""
        return sorted({at.level for at in self.shares})

    def at_level(self, level: float) -> list[ShareFindings]:
        """Return the findings at one level of corruption."""
        return [at for at in self.shares if at.level == level]


def curve_name(method: str, strategy: str) -> str:
    """Return a method and its strategy, if it has one, in words."""
    return method if strategy == "none" else f"{method}, {strategy}"


def compare_methods(study: Study, results: pd.DataFrame) -> Findings:
    """Compare the methods of a study where they answer the same share of labels.

    Parameters
    ----------
    study : Study
        The study that was run.
    results : DataFrame
        Its records, as :meth:`Store.results` returns them.

    Returns
    -------
    Findings
        Ranks, tests and their corrected p-values, for each level of corruption and share answered.

    See Also
    --------
    findings_in_words : The same as sentences.

    References
    ----------
    J. Demsar, Statistical comparisons of classifiers over multiple data sets, Journal of Machine
    Learning Research 7, 2006 (tests over data sets).

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from credalchain.studies import Store, compare_methods, load_study, run_study
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "study.toml")
    ...     _ = file.write_text('''
    ... data = ["embedded:yeast"]
    ... cross_validation = { folds = 2 }
    ... method = [{ name = "chain", s = [0.0] }, { name = "alone", kind = "relevance", s = [0.0] }]
    ... ''')
    ...     study, store = load_study(file), Store(folder)
    ...     n_failed = run_study(study, store)
    ...     findings = compare_methods(study, store.results(study))
    >>> findings.datasets, [len(at.standings) for at in findings.shares]
    (('embedded:yeast',), [2])
    """
    results = _with_curves(results)
    n_repetitions = int(results["repetition"].nunique())
    over = "repetitions" if n_repetitions > 1 else "folds"
    is_comparable = {"set_accuracy", "completeness"} <= set(study.measures)
    findings = Findings(
        curves=tuple(dict.fromkeys(results["curve"])),
        datasets=tuple(dict.fromkeys(results["dataset"])),
        is_comparable=is_comparable,
        shares=tuple(_shares(study, results, over)) if is_comparable else (),
        spread_over=over,
        n_folds=int(results["fold"].nunique()),
        n_repetitions=n_repetitions,
        reference=_reference_curve(study, results),
    )
    if not is_comparable:
        return findings
    return replace(findings, rivalries=tuple(_against_rivals(study, results, findings)))


def _with_curves(frame: pd.DataFrame) -> pd.DataFrame:
    of_keys = frame.groupby(["method", "strategy"], sort=False).ngroup().to_numpy()
    keys = frame[["method", "strategy"]].iloc[np.unique(of_keys, return_index=True)[1]]
    names = np.array([curve_name(*key) for key in keys.to_numpy()], dtype=object)
    return frame.assign(curve=names[of_keys])


def _shares(study: Study, results: pd.DataFrame, over: str) -> Iterator[ShareFindings]:
    folds = folds_at_completeness(_paired(results), COMPARED_COMPLETENESS, widest_gap=WIDEST_GAP)
    for level, share, table in _tables(results, folds, COMPARED_COMPLETENESS):
        yield _share(study, level, share, table, over, _reference_curve(study, results))


def compare_areas(
    study: Study, folds: pd.DataFrame, over: str
) -> Iterator[tuple[str, ShareFindings]]:
    """Yield each measure, and the ranks and tests of the areas of folds under its curve.

    Areas of an error are negative: more is better for all.
    """
    folds = _with_curves(folds)
    paired = _paired(folds)
    for measure in area_measures(study):
        sign = 1 if MEASURES[measure].greater_is_better else -1
        signed = paired.assign(**{measure: sign * paired[measure]})
        for level, _, table in _tables(folds, signed, [measure]):
            yield measure, _share(study, level, np.nan, table, over, _reference_curve(study, folds))


def _reference_curve(study: Study, results: pd.DataFrame) -> str:
    """Return the curve of the reference of a study; empty if it has none, or several."""
    own = results.loc[results["method"] == study.reference, ["method", "strategy"]]
    curves = own.drop_duplicates().to_numpy()
    return curve_name(*curves[0]) if len(curves) == 1 else ""


def seconds_of_fold(results: pd.DataFrame) -> dict[tuple[float, str], float]:
    """Return the time to fit and to predict in a fold, by level and curve: a mean over data sets.

    Values of caution of a curve are predicted together.
    """
    frame = _with_curves(results)
    frame = frame.assign(seconds=frame["fit_seconds"] + frame["predict_seconds"])
    keys = ["missing", "curve", "dataset"]
    of_folds = frame.groupby([*keys, "repetition", "fold"])["seconds"].first()
    means: Any = of_folds.groupby(keys).mean().groupby(keys[:2]).mean()
    return dict(means.items())


def area_measures(study: Study) -> list[str]:
    """Return the measures of a study under whose curves areas are taken."""
    return [measure for measure in AREA_MEASURES if measure in study.measures]


def _paired(results: pd.DataFrame) -> pd.DataFrame:
    """Return the results of repetitions that all methods of a data set have."""
    by_dataset = results.groupby("dataset")["curve"].transform("nunique")
    by_repetition = results.groupby(["dataset", "repetition"])["curve"].transform("nunique")
    return results[by_repetition == by_dataset]


def _tables(
    results: pd.DataFrame, folds: pd.DataFrame, columns: Sequence[Any]
) -> Iterator[tuple[float, Any, pd.DataFrame]]:
    """Yield each level, each of ``columns``, and its values: a row a fold, a column a curve."""
    units = ["dataset", "repetition", "fold"]
    by_level = _with_curves(folds).sort_values("missing", kind="stable")
    for (level,), part in groups(by_level, ["missing"]):
        for column in columns:
            table = part.pivot(index=units, columns="curve", values=column)
            table = table.reindex(list(dict.fromkeys(results["dataset"])), level="dataset")
            table = table.reindex(columns=list(dict.fromkeys(results["curve"])))
            if table.notna().any(axis=None):
                yield float(level), column, table


def in_order(findings: "Findings", level: float) -> list[str]:
    """Return the methods at a level, best first: by their mean rank over the shares.

    Those that are compared at more shares come first.
    """
    ranks_at = [{s.curve: s.rank for s in at.standings} for at in findings.at_level(level)]
    ranks = pd.DataFrame(ranks_at, columns=list(findings.curves))
    counts, means = ranks.count(), ranks.mean()
    return sorted(findings.curves, key=lambda curve: (-counts[curve], means[curve]))


NOT_TESTED = "not tested"
_MAX_IN_WORDS = 5  # methods, and remarks on methods, in a sentence
RIVAL_SHARES = (0.9, 0.8, 0.7, 0.6, 0.5)  # of labels answered, where rivals are compared
MARGIN = 0.01  # of set-accuracy, by which a method that is behind still counts as equal


def _against_rivals(study: Study, results: pd.DataFrame, findings: Findings) -> Iterator[Rivalry]:
    """Yield, for each level, the difference of a method to the best of its rivals."""
    folds = folds_at_completeness(_paired(results), RIVAL_SHARES, widest_gap=WIDEST_GAP)
    by_level: dict[tuple[float, str], dict[float, Any]] = defaultdict(dict)
    for level, share, table in _tables(results, folds, RIVAL_SHARES):
        if findings.at_level(level):
            curve, rivals = _rivals(study, results, in_order(findings, level))
            if rivals:
                best = _best_elsewhere(table[rivals], findings.spread_over)
                by_level[level, curve][share] = table[curve] - best
    for (level, curve), columns in by_level.items():
        yield Rivalry(level, curve, pd.DataFrame(columns).reindex(columns=list(RIVAL_SHARES)))


def _rivals(study: Study, results: pd.DataFrame, best_first: list[str]) -> tuple[str, list[str]]:
    """Return a curve of the reference and those of other classes; or the best and all others."""
    method_of = dict(zip(results["curve"], results["method"], strict=True))
    curves = [curve for curve in best_first if method_of[curve] == study.reference]
    if not curves:
        return best_first[0], best_first[1:]
    class_of = {method.name: method.class_path for method in study.methods}
    is_variant = {c: class_of[m] == class_of[study.reference] for c, m in method_of.items()}
    return curves[0], [curve for curve in best_first if not is_variant[curve]]


def _best_elsewhere(table: pd.DataFrame, over: str) -> "pd.Series[float]":
    """Return, for each fold, the curve with the best mean in other repetitions of its data set.

    In other folds, if there is one repetition. NaN where nothing else was measured.
    """
    unit = [*_UNITS[over]][-1]
    measured = table.where(table.notna().groupby(level="dataset").transform("all"))
    totals = [
        measured.groupby(level=by).transform("sum", min_count=1)
        for by in (["dataset"], ["dataset", unit])
    ]
    units = table.index.to_frame().groupby(level="dataset")[unit].transform("nunique")
    elsewhere = (totals[0] - totals[1]).where(units > 1, axis=0).fillna(-np.inf).to_numpy()
    best = measured.to_numpy()[np.arange(len(table)), elsewhere.argmax(axis=1)]
    return pd.Series(np.where(np.isfinite(elsewhere).any(axis=1), best, np.nan), table.index)


def _share(
    study: Study, level: float, share: float, table: pd.DataFrame, over: str, reference: str
) -> ShareFindings:
    """Return shares; ``table`` has a row per fold of every data set, and a column per curve."""
    means = table.groupby(level="dataset", sort=False).mean()
    reached = {str(curve): int(n) for curve, n in means.notna().sum().items()}
    curves = _compared(means, reached)
    common = means[curves].dropna()
    table = table.loc[common.index, curves]
    reference = reference if reference in curves else ""
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
        comparisons=tuple(_comparisons(table, common, study.folds, reference)),
        reference=reference,
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


def _comparisons(
    table: pd.DataFrame, means: pd.DataFrame, n_folds: int, reference: str
) -> list[Comparison]:
    """Test over data sets where that could show a difference, else over the folds of each.

    With a reference, only its pairs, so that the correction is smaller.
    """
    pairs = list(combinations(means.columns, 2))
    if reference:
        pairs = [(reference, curve) for curve in means.columns if curve != reference]
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


_TESTS = {
    True: "Wilcoxon's signed-rank test over data sets",
    False: "Nadeau and Bengio's corrected resampled t-test over folds",
}


def in_words(findings: Findings, damage: str = "") -> list[str]:
    """Return the main findings, one a line; the most important first.

    ``damage`` describes the corruption of training labels, such as "removed"; empty if there is
    none.
    """
    lines, rivals = leads(findings, damage), rival_lines(findings, damage)
    if findings.shares and len(findings.curves) > 1:
        least = findings.at_level(findings.levels[0])
        lines[1:1] = [_share_line(findings, at, damage) for at in least]
    parts = (rivals, lines) if findings.reference else (lines, rivals)
    return [*parts[0], *parts[1], *remarks(findings)]


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
    verdicts = [at.verdict(other.curve) for at in shares for other in at.standings]
    n_tests, n_better, n_worse = (sum(verdict[i] for verdict in verdicts) for i in range(3))
    reference = next((at.reference for at in shares if at.reference), "")
    shown = f". {n_better} of {plural(n_tests, 'test')} show that the best is better."
    if reference:
        shown = f". {n_better} of {plural(n_tests, 'test')} show that {quoted(reference)} is better"
        shown += f", and {n_worse} that it is worse."
    words += shown if n_tests else " (not tested)."
    parts = [f"{curve} at {_numbers(where)}" for curve, where in missing.items()]
    if len(parts) > _MAX_IN_WORDS:
        return f"{words} {len(parts)} methods are not measured everywhere (findings.csv)."
    return f"{words} Not measured: {'; '.join(parts)}." if parts else words


def _share_line(findings: Findings, at: ShareFindings, damage: str) -> str:
    """Return the methods at one share, best first, with their ranks and what tests say."""
    level = f", {percent(at.level)} {damage}" if damage else ""
    on = f"{len(at.datasets)} of {plural(len(findings.datasets), 'data set')}"
    methods = [
        f"{quoted(standing.curve)} {accuracy(standing)} % ({', '.join(notes(at, standing))})"
        for place, standing in enumerate(at.standings)
        if place < _MAX_IN_WORDS or standing.curve == at.reference
    ]
    n_more = len(at.standings) - len(methods)
    more = f", and {n_more} more (findings.csv)" if n_more else ""
    return f"{percent(at.share)} answered{level}, {on}: {', '.join(methods)}{more}."


def notes(at: ShareFindings, standing: Standing) -> list[str]:
    """Return the rank of a method, and what tests say of it against the best."""
    rank = [f"rank {standing.rank:.2f}"] if len(at.datasets) > 1 else []
    if standing.curve in (at.best.curve, *at.tied_with_best):
        is_alone = len(at.standings) == 1
        return [*rank, "alone" if is_alone else "best, tied" if at.tied_with_best else "best"]
    if standing.curve == at.reference:
        return [*rank, "reference"]
    n, n_better, n_worse = at.verdict(standing.curve)
    found = [("worse", n_better), ("better", n_worse)]
    words = [word + f" on {k} of {n}" * (n > 1) for word, k in found if k]
    return [*rank, " and ".join(words) or ("no difference shown" if n else NOT_TESTED)]


def rival_lines(findings: Findings, damage: str = "") -> list[str]:
    """Return how the reference of a study compares with its best rivals: a line a level."""
    lines: list[str] = []
    for at in findings.rivalries:
        cells = at.cells
        if len(cells):
            level = f"{percent(at.level)} of the training labels {damage}: " if damage else ""
            n_equal = int((cells > -MARGIN).sum())
            about = f" (data sets and shares from {_numbers(RIVAL_SHARES[:1])} to "
            about += f"{_numbers(RIVAL_SHARES[-1:])} answered)"
            lines.append(
                f"{level}{quoted(at.curve)} is ahead of the best rival, or less than "
                f"{100 * MARGIN:g} point behind, in {n_equal} of "
                f"{plural(len(cells), 'cell')}{'' if lines else about}: "
                f"{100 * cells.mean():+.1f} points on average, {100 * cells.min():+.1f} at worst."
            )
    if lines:
        units = "repetitions" if findings.spread_over == "repetitions" else "folds"
        lines[-1] += f" The best rival is chosen on other {units}."
    return lines


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
