"""Tables of a study: the data sets, and every measure with its spread."""

import pandas as pd

from credalchain.experiments.summary import KEYS, at_completeness, spread_at_completeness


def dataset_table(facts: list[dict[str, object]]) -> pd.DataFrame:
    """The paper's Table 2, computed from the files."""
    columns = ["dataset", "domain", "features", "labels", "rows", "cardinality", "density"]
    return pd.DataFrame(facts)[columns]


def measure_table(summary: pd.DataFrame, measure: str) -> pd.DataFrame:
    """One measure in percent, "mean ± spread": a row per method and s, a column per level."""
    spread = summary[f"{measure}_spread"]
    words = (100 * summary[measure]).map("{:.1f}".format)
    words = words.where(spread.isna(), words + (100 * spread).map(" ± {:.1f}".format))
    table = summary[KEYS].assign(words=words)
    table["missing"] = (100 * table["missing"]).map("{:.10g} %".format)
    rows = [key for key in KEYS if key != "missing"]
    levels = list(dict.fromkeys(table["missing"]))
    wide = table.pivot(index=rows, columns="missing", values="words")[levels]
    wide.columns.name = None
    return wide.reset_index()


def equal_completeness_table(summary: pd.DataFrame, results: pd.DataFrame) -> pd.DataFrame:
    """Set-accuracy in percent, "mean ± spread", where methods answer the same share of labels."""
    table, spread = at_completeness(summary), spread_at_completeness(results)
    shares = [column for column in table.columns if not isinstance(column, str)]
    words = table[shares].map(lambda p: "" if pd.isna(p) else f"{100 * p:.1f}")
    words += spread[shares].map(lambda p: "" if pd.isna(p) else f" ± {100 * p:.1f}")
    words.columns = [f"{100 * share:.0f} % answered" for share in shares]
    missing = (100 * table["missing"]).map("{:.10g} %".format)
    return table.drop(columns=shares).assign(missing=missing).join(words)
