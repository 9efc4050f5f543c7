"""Tables of a study: the data sets, every measure with its spread, and what was found."""

import pandas as pd

from credalchain.experiments.summary import CURVES, KEYS, at_completeness, spread_at_completeness
from credalchain.reporting.caution import Cautions
from credalchain.reporting.findings import WIDEST_GAP, Findings
from credalchain.reporting.sentences import p_value, percent, with_spread

_TABLE_COMPLETENESS = (0.6, 0.7, 0.8, 0.9, 0.95, 1.0)


def dataset_table(facts: list[dict[str, object]]) -> pd.DataFrame:
    """The paper's Table 2, computed from the files."""
    columns = ["dataset", "domain", "features", "labels", "rows", "cardinality", "density"]
    return pd.DataFrame(facts)[columns]


def measure_table(
    summary: pd.DataFrame, measure: str, caution_parameters: Cautions, damage: str
) -> pd.DataFrame:
    """One measure in percent, "mean ± spread": a row per method and value of caution.

    A column per level of damage; if there was none, one with the measure's name.
    """
    table = summary[KEYS].assign(
        words=list(map(with_spread, summary[measure], summary[f"{measure}_spread"]))
    )
    if not damage:
        return with_display_columns(
            table.rename(columns={"words": measure}), caution_parameters, damage
        )
    table["missing"] = table["missing"].map(lambda level: f"{percent(level)} {damage}")
    rows = [key for key in KEYS if key != "missing"]
    levels = list(dict.fromkeys(table["missing"]))
    order = pd.MultiIndex.from_frame(table[rows].drop_duplicates())  # pivot would sort by names
    wide = table.pivot(index=rows, columns="missing", values="words")[levels].reindex(order)
    wide.columns.name = None
    return with_display_columns(wide.reset_index(), caution_parameters, damage)


def equal_completeness_table(
    summary: pd.DataFrame, results: pd.DataFrame, over: str, damage: str
) -> pd.DataFrame:
    """Set-accuracy in percent, "mean ± spread", where methods answer the same share of labels."""
    table = at_completeness(summary, _TABLE_COMPLETENESS, widest_gap=WIDEST_GAP)
    spread = spread_at_completeness(results, _TABLE_COMPLETENESS, widest_gap=WIDEST_GAP, over=over)
    spread = table[CURVES].merge(spread, how="left", on=CURVES)
    words = {
        f"{percent(share)} answered": list(map(with_spread, table[share], spread[share]))
        for share in _TABLE_COMPLETENESS
    }
    missing = table["missing"].map(percent)
    return with_display_columns(table[CURVES].assign(missing=missing, **words), {}, damage)


def standing_table(findings: Findings, damage: str) -> pd.DataFrame:
    """Every method at every share of labels answered, in percent, best first."""
    rows = [
        {
            "missing": percent(share_findings.level),
            "answered": percent(share_findings.share),
            "method": standing.curve,
            "set_accuracy": round(100 * standing.accuracy, 1),
            "spread": round(100 * standing.spread, 1),
            "average_rank": round(standing.rank, 2),
            "first_on": standing.n_first,
            "datasets": len(share_findings.datasets),
            "friedman_p": _p(share_findings.friedman),
        }
        for share_findings in findings.shares
        for standing in share_findings.standings
    ]
    return with_display_columns(pd.DataFrame(rows), {}, damage)


def comparison_table(findings: Findings, damage: str) -> pd.DataFrame:
    """Every test of two methods; differences of set-accuracy in points of percent."""
    rows = [
        {
            "missing": percent(share_findings.level),
            "answered": percent(share_findings.share),
            "first": comparison.first,
            "second": comparison.second,
            "dataset": comparison.dataset or f"all {comparison.n}",
            "difference": round(100 * comparison.difference, 2),
            "p": _p(comparison.p),
            "p_holm": _p(comparison.corrected),
            "shown": "" if pd.isna(comparison.p) else "yes" if comparison.is_shown else "no",
        }
        for share_findings in findings.shares
        for comparison in share_findings.comparisons
    ]
    return with_display_columns(pd.DataFrame(rows), {}, damage)


def _p(p: float) -> str:
    """Empty for NaN."""
    return "" if pd.isna(p) else p_value(p).removeprefix("= ")


def with_display_columns(
    table: pd.DataFrame, caution_parameters: Cautions, damage: str
) -> pd.DataFrame:
    """A table whose columns are called what they are.

    The column ``s`` holds the values of the caution parameter. If all methods have the same, the
    column gets its name; if not, there are two, ``parameter`` and ``value``; methods without a
    caution parameter have empty cells. The column ``missing`` becomes what was done to labels, or
    goes if nothing was.
    """
    if "missing" in table and not damage:
        table = table.drop(columns="missing")
    elif "missing" in table:
        table = table.rename(columns={"missing": damage})
    if "s" not in table:
        return table
    position = list(table.columns).index("s")
    names = table["method"].map(lambda method: getattr(caution_parameters[method], "name", ""))
    values = table["s"].where(names != "")
    table = table.drop(columns="s")
    different = [name for name in dict.fromkeys(names) if name]
    if len(different) == 1 and different[0] not in table:
        table.insert(position, different[0], values)
    elif different:
        table.insert(position, "parameter", names)
        table.insert(position + 1, "value", values)
    return table
