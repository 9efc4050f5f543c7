"""From records to the numbers that tables and figures show."""

from typing import Any

import numpy as np
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


def at_completeness(
    summary: pd.DataFrame, shares: tuple[float, ...] = (0.6, 0.7, 0.8, 0.9, 1.0)
) -> pd.DataFrame:
    """Mean set-accuracy of each method where it answers the same share of labels.

    On the straight line between the neighbouring values of s; NaN where a curve does not reach.
    One row per data set, method, strategy and level, one column per share.
    """
    curves = [key for key in KEYS if key != "s"]
    rows = []
    for key, curve in summary.groupby(curves, sort=False):
        along = curve.sort_values("completeness")
        answered, right = along["completeness"], along["set_accuracy"]
        found = np.interp(shares, answered, right, left=np.nan, right=np.nan)
        rows.append((*key, *found))
    return pd.DataFrame(rows, columns=[*curves, *shares])


def spread_at_completeness(results: pd.DataFrame, **options: Any) -> pd.DataFrame:
    """Standard deviation of :func:`at_completeness` over the repetitions; NaN if there is one."""
    tables = [
        at_completeness(summarize(part), **options) for _, part in results.groupby("repetition")
    ]
    curves = [key for key in KEYS if key != "s"]
    return pd.concat(tables).groupby(curves, sort=False).std().reset_index()
