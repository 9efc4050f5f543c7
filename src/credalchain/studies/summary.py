"""From records to the numbers that tables and charts show."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from credalchain._utils.array_types import FloatArray

KEYS = ["dataset", "method", "strategy", "s", "missing"]
CURVES = [key for key in KEYS if key != "s"]
CAUTION = ("caution_parameter", "larger_is_more_cautious")  # what the column s stands for
_TIMES = ("fit_seconds", "predict_seconds")
_NOT_MEASURES = {*KEYS, *CAUTION, *_TIMES, "chosen_parameter", "repetition", "fold", "seed"}
_UNITS = {"repetitions": ["repetition"], "folds": ["repetition", "fold"]}


def groups(frame: pd.DataFrame, by: list[str]) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Yield rows that are equal in some columns, in the order in which they first appear."""
    grouped: Any = frame.groupby(by, sort=False)
    yield from grouped


def summarize(results: pd.DataFrame, *, over: str = "repetitions") -> pd.DataFrame:
    """Return the mean of every measure, and its spread over repetitions: columns m and m_spread.

    Folds are averaged within a repetition first; the spread is the standard deviation of the
    repetitions' means (NaN if there is only one). With ``over="folds"`` it is that of all folds.
    """
    versions = {name for name in results.columns if name.startswith("version_")}
    measures = [name for name in results.columns if name not in _NOT_MEASURES | versions]
    by_unit = results.groupby([*KEYS, *_UNITS[over]], sort=False)[measures].mean()
    groups = by_unit.groupby(KEYS, sort=False)
    summary = groups.mean().join(groups.std().add_suffix("_spread"))
    return summary.reset_index()


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
    """Return set-accuracy of each method where it answers the same share of labels, in each fold.

    In every fold a method has the caution with which it answers that share on average over all
    folds, as somebody would have who chooses it once: on the straight line between neighbouring
    values of caution. NaN where a curve does not reach, or where these neighbours answer shares
    more than ``widest_gap`` apart: the line says little there. One row per data set, method,
    strategy, level, repetition and fold, one column per share.
    """
    tables = []
    for key, curve in groups(results, CURVES):
        units = {"index": ["repetition", "fold"], "columns": "s"}
        answered = curve.pivot(values="completeness", **units).mean().to_numpy()
        order = np.argsort(answered, kind="stable")
        right = curve.pivot(values="set_accuracy", **units).iloc[:, order]
        values = right.to_numpy() @ _weights(answered[order], shares, widest_gap)
        table = pd.DataFrame(values, index=right.index, columns=list(shares)).reset_index()
        tables.append(table.assign(**dict(zip(CURVES, key, strict=True))))
    return pd.concat(tables, ignore_index=True)[[*CURVES, "repetition", "fold", *shares]]


def at_completeness(
    results: pd.DataFrame,
    shares: Sequence[float] = (0.6, 0.7, 0.8, 0.9, 1.0),
    *,
    widest_gap: float = np.inf,
    over: str = "repetitions",
) -> pd.DataFrame:
    """Return mean and spread of :func:`folds_at_completeness`: columns c and c_spread for share c.

    The spread is the standard deviation of the repetitions' means, or that of all folds with
    ``over="folds"``; NaN if there is one value.
    """
    folds = folds_at_completeness(results, shares, widest_gap=widest_gap)
    by_unit = folds.groupby([*CURVES, *_UNITS[over]], sort=False)[list(shares)].mean()
    curves = by_unit.groupby(CURVES, sort=False)
    return curves.mean().join(curves.std().add_suffix("_spread")).reset_index()
