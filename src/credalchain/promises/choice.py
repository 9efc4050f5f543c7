"""The boldest value that keeps all promises, and a report of it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain.array_types import FloatArray, Labels
from credalchain.labels import MISSING
from credalchain.model_selection import caution_in_use, unwrap
from credalchain.promises.calibration import CalibrationResult, caution_values, columns_of
from credalchain.promises.reading import PILOT_SHARE
from credalchain.promises.report import PromiseReport, PromiseResult
from credalchain.promises.selection import EvaluatedPromise, interval, nearest_to_kept, passes
from credalchain.promises.statistics import rows_to_show
from credalchain.text import plural


def choose(
    estimator: Any,
    calibration: CalibrationResult,
    truth: Labels,
    *,
    values: Any,
    method: str,
    confidence: float | None,
    notes: tuple[str, ...],
    counted: NDArray[np.bool_] | None,
) -> tuple[FloatArray, PromiseReport]:
    """The value for each label (NaN: it is never answered), and the report.

    ``counted`` (m,) are the labels that count in shares answered; None: all.
    """
    final, _ = unwrap(estimator)
    grid, names = caution_values(estimator, values), final.label_names_.tolist()
    current_value = caution_in_use(final)
    distances = np.nan_to_num(np.abs(grid - current_value), nan=0.0)
    value_indices = np.full(len(names), distances.argmin())
    chosen = np.full(len(names), current_value)  # where nothing is promised
    for label, kept in calibration.kept.items():
        answers = calibration.answered[:, columns_of(label)].any(axis=1)
        kept_indices = np.flatnonzero(kept & answers)
        value_indices[columns_of(label)] = kept_indices[0] if len(kept_indices) else -1
        chosen[columns_of(label)] = grid[kept_indices[0]] if len(kept_indices) else np.nan
    counted = np.ones(len(names), dtype=bool) if counted is None else counted
    results = []
    for evaluated in calibration.evaluated:
        columns = columns_of(evaluated.promise.label)
        shown = counted if evaluated.promise.label is None else columns
        completeness = calibration.answered[:, shown].mean(axis=1)
        value_index = int(value_indices[columns][0])
        name = None if evaluated.promise.label is None else names[evaluated.promise.label]
        if value_index >= 0:
            alpha = 0.05 / len(calibration.evaluated)
            results.append(_kept(evaluated, name, grid, completeness, value_index, alpha))
            continue
        results.append(
            _broken(evaluated, name, grid, completeness, final.caution_parameter, method)
        )
    about = {result.label for result in results}
    answered, yes = (
        np.where(value_indices < 0, 0.0, shares[value_indices, np.arange(len(names))])[
            counted
        ].mean()
        for shares in (calibration.answered, calibration.yes)
    )
    return chosen, PromiseReport(
        method,
        confidence,
        final.caution_parameter,
        len(truth),
        int((truth == MISSING).any(axis=1).sum()),
        float(answered),
        float(yes / answered) if answered else 0.0,
        tuple(results),
        () if None in about else tuple(name for name in names if name not in about),
        notes,
        tuple(name for name, is_counted in zip(names, counted, strict=True) if not is_counted),
    )


def _kept(
    evaluated: EvaluatedPromise,
    name: str | None,
    grid: FloatArray,
    completeness: FloatArray,
    value_index: int,
    alpha: float,
) -> PromiseResult:
    promise, sums, _ = evaluated
    return PromiseResult(
        promise.risk.name,
        promise.level,
        name,
        promise.confidence,
        float(grid[value_index]),
        int(sums.n[value_index]),
        float(sums.risk[value_index]),
        interval(promise, sums, value_index),
        float(completeness[value_index]),
        interval(promise, sums, value_index, alpha)[1],
    )


def _broken(
    evaluated: EvaluatedPromise,
    name: str | None,
    grid: FloatArray,
    completeness: FloatArray,
    parameter: str,
    method: str,
) -> PromiseResult:
    """Result for a promise that no value keeps, with the reason."""
    promise, sums, plan = evaluated
    about = (promise.risk.name, promise.level, name, promise.confidence)
    nearest = nearest_to_kept(evaluated, completeness)
    if nearest is None:
        reason = f"no {parameter} answers anything in the calibration rows"
        if completeness.any():
            reason = "no calibration row says anything about it"
        return PromiseResult(*about, None, 0, 0.0, (0.0, 1.0), 0.0, 1.0, reason)
    n, risk = int(sums.n[nearest]), float(sums.risk[nearest])
    reason = (
        f"the nearest is {parameter} = {grid[nearest]:.4g}, which answers "
        f"{completeness[nearest]:.1%} with a risk of {risk:.3f} in "
        f"{plural(n, 'calibration row')}; "
    )
    growth = None
    if sums.growth is not None and not promise.is_binomial:
        growth = float(sums.growth[:, nearest].max()) / max(n, 1)
    n_needed = rows_to_show(promise.level, promise.confidence, risk, growth)
    agree = method == "cross_conformal"
    if not agree and (passes(promise, sums, plan) & (completeness > 0)).any():
        reason += "it is kept by itself, but not together with the others or from there on"
    elif n_needed is None:
        reason += "more rows would not help, a better model might"
    elif agree:
        reason += f"if that is the rate, about {plural(n_needed, 'fold')} would show it"
    else:
        tested_share = 1 - PILOT_SHARE if promise.needs_pilot else 1.0  # of the calibration rows
        n_needed = int(np.ceil(max(n_needed, n + 1) / tested_share))
        reason += f"if that is the rate, about {n_needed} such rows would show it"
    return PromiseResult(*about, None, n, 0.0, (0.0, 1.0), 0.0, 1.0, reason)
