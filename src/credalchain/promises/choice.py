"""The boldest value that keeps all promises, and a report of it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain.labels import MISSING
from credalchain.model_selection import caution_in_use, unwrap
from credalchain.promises.calibration import CalibrationResult, caution_values, columns_of
from credalchain.promises.reading import PILOT
from credalchain.promises.report import PromiseReport, PromiseResult
from credalchain.promises.risks import Labels
from credalchain.promises.selection import EvaluatedPromise, interval, nearest_to_kept, passes
from credalchain.promises.statistics import rows_to_show

FloatArray = NDArray[np.float64]


def choose(
    estimator: Any,
    judged: CalibrationResult,
    truth: Labels,
    *,
    values: Any,
    method: str,
    confidence: float | None,
) -> tuple[FloatArray, PromiseReport]:
    """The value for each label (NaN: it is never answered), and the report."""
    final, _ = unwrap(estimator)
    grid, names = caution_values(estimator, values), final.label_names_.tolist()
    own = caution_in_use(final)
    places = np.full(len(names), np.nan_to_num(np.abs(grid - own), nan=0.0).argmin())
    chosen = np.full(len(names), own)  # where nothing is promised
    for label, kept in judged.kept.items():
        answers = judged.answered[:, columns_of(label)].any(axis=1)
        bold = np.flatnonzero(kept & answers)
        places[columns_of(label)] = bold[0] if len(bold) else -1
        chosen[columns_of(label)] = grid[bold[0]] if len(bold) else np.nan
    results = []
    for evaluated in judged.tested:
        columns = columns_of(evaluated.promise.label)
        completeness = judged.answered[:, columns].mean(axis=1)
        at = int(places[columns][0])
        name = None if evaluated.promise.label is None else names[evaluated.promise.label]
        if at >= 0:
            alpha = 0.05 / len(judged.tested)
            results.append(_kept(evaluated, name, grid, completeness, at, alpha))
            continue
        results.append(
            _broken(evaluated, name, grid, completeness, final.caution_parameter, method)
        )
    about = {result.label for result in results}
    answered, yes = (
        np.where(places < 0, 0.0, shares[places, np.arange(len(names))]).mean()
        for shares in (judged.answered, judged.yes)
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
    )


def _kept(
    evaluated: EvaluatedPromise,
    name: str | None,
    grid: FloatArray,
    completeness: FloatArray,
    at: int,
    alpha: float,
) -> PromiseResult:
    promise, found, _ = evaluated
    return PromiseResult(
        promise.risk.name,
        promise.level,
        name,
        promise.confidence,
        float(grid[at]),
        int(found.n[at]),
        float(found.risk[at]),
        interval(promise, found, at),
        float(completeness[at]),
        interval(promise, found, at, alpha)[1],
    )


def _broken(
    evaluated: EvaluatedPromise,
    name: str | None,
    grid: FloatArray,
    completeness: FloatArray,
    parameter: str,
    method: str,
) -> PromiseResult:
    """With a reason."""
    promise, found, plan = evaluated
    about = (promise.risk.name, promise.level, name, promise.confidence)
    nearest = nearest_to_kept(evaluated, completeness)
    if nearest is None:
        reason = f"no {parameter} answers anything in the calibration rows"
        if completeness.any():
            reason = "no calibration row says anything about it"
        return PromiseResult(*about, None, 0, 0.0, (0.0, 1.0), 0.0, 1.0, reason)
    n, risk = int(found.n[nearest]), float(found.risk[nearest])
    reason = (
        f"the nearest is {parameter} = {grid[nearest]:.4g}, which answers "
        f"{completeness[nearest]:.1%} with a risk of {risk:.3f} in {n} calibration rows; "
    )
    growth = None
    if found.growth is not None and not promise.is_binomial:
        growth = float(found.growth[:, nearest].max()) / max(n, 1)
    more = rows_to_show(promise.level, promise.confidence, risk, growth)
    agree = method == "cross_conformal"
    if not agree and (passes(promise, found, plan) & (completeness > 0)).any():
        reason += "it is kept by itself, but not together with the others or from there on"
    elif more is None:
        reason += "more rows would not help, a better model might"
    elif agree:
        reason += f"if that is the rate, about {more} folds would show it"
    else:
        share = 1 - PILOT if promise.needs_pilot else 1.0  # of the calibration rows, is tested
        more = int(np.ceil(max(more, n + 1) / share))
        reason += f"if that is the rate, about {more} such rows would show it"
    return PromiseResult(*about, None, n, 0.0, (0.0, 1.0), 0.0, 1.0, reason)
