"""From records to the numbers that tables and figures show."""

import pandas as pd

KEYS = ["dataset", "method", "strategy", "s", "missing"]
_NOT_MEASURES = {*KEYS, "repetition", "fold", "fit_seconds", "predict_seconds", "seed"}


def measures_in(results: pd.DataFrame) -> list[str]:
    """The measures among the columns of a table of results."""
    return [
        name
        for name in results.columns
        if name not in _NOT_MEASURES and not name.startswith("version_")
    ]


def summarize(results: pd.DataFrame) -> pd.DataFrame:
    """Mean of every measure, and its spread over repetitions: columns m and m_spread.

    Folds are averaged within a repetition first; the spread is the standard deviation of the
    repetitions' means (NaN if there is only one).
    """
    measures = measures_in(results)
    by_repetition = results.groupby([*KEYS, "repetition"], sort=False)[measures].mean()
    groups = by_repetition.groupby(KEYS, sort=False)
    summary = groups.mean().join(groups.std().add_suffix("_spread"))
    return summary.reset_index()
