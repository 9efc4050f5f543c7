"""Reading what is promised, and how it is to be kept, before anything is fitted."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from credalchain._utils.array_types import Labels
from credalchain._utils.validation import check_choice
from credalchain.exceptions import warn_of_data
from credalchain.labels import MISSING
from credalchain.promises.risks import RISKS, Risk, evaluable_rows, own_risk
from credalchain.promises.selection import Promise
from credalchain.promises.statistics import fewest_rows

PILOT_SHARE = 0.15  # of the calibration rows, to plan tests
METHODS = ("auto", "conformal", "learn_then_test", "cross_conformal", "cross_fit")


def read_promises(promise: Any, confidence: Any, names: list[str]) -> list[Promise]:
    """The promises, about rows or about columns of labels; confidence is split over labels."""
    levels = {"row_error": 0.1} if promise is None else promise
    if not isinstance(levels, Mapping) or not levels:
        raise ValueError(
            "promise must be a dict with risks and their levels, like {'row_error': 0.1}, "
            f"got {levels!r}."
        )
    if confidence is not None and not is_share(confidence):
        raise ValueError(f"confidence must be None or between 0 and 1, got {confidence!r}.")
    entries: list[tuple[Risk, Any, int | None]] = []
    for name, level in levels.items():
        if not callable(name):
            check_choice("promise", name, tuple(RISKS))
        risk = own_risk(name) if callable(name) else RISKS[name]
        if not isinstance(level, Mapping):
            entries.append((risk, level, None))
            continue
        if risk.label_losses is None or not level:
            raise ValueError(
                f"promise: levels for single labels are for {', '.join(RISKS)}, got {level!r} "
                f"for {risk.name}."
            )
        entries += [(risk, value, label_index(label, names)) for label, value in level.items()]
    if len({label is None for _, _, label in entries}) > 1:
        raise ValueError(
            f"promise: levels must be all for whole rows or all for single labels, got {levels!r}."
        )
    for risk, level, label in entries:
        if not is_share(level):
            raise ValueError(
                f"the level of a promise must be more than 0 and less than 1, got {level!r}."
            )
        if sum(r is risk and j == label for r, _, j in entries) > 1:
            raise ValueError(f"promise: {risk.name} of {names[label or 0]!r} is promised twice.")
    n_labels = len({label for _, _, label in entries})
    confidence_each = None if confidence is None else 1 - (1 - confidence) / n_labels
    return [Promise(risk, float(level), confidence_each, label) for risk, level, label in entries]


def read_method(method: Any, calibration: Any, confidence: Any, promises: list[Promise]) -> str:
    """How the promises are to be kept; refuses what has no guarantee and did not ask for none."""
    check_choice("method", method, METHODS)
    whole = isinstance(calibration, Integral) and not isinstance(calibration, bool)
    is_splitter = hasattr(calibration, "get_n_splits") and not isinstance(calibration, type)
    in_folds = (whole and calibration >= 2) or is_splitter
    prefit = isinstance(calibration, str) and calibration == "prefit"
    if not (in_folds or prefit or is_share(calibration)):
        raise ValueError(
            "calibration must be a share of the rows between 0 and 1, 'prefit', a number of "
            f"folds or a splitter such as KFold(20), got {calibration!r}."
        )
    default = "conformal" if confidence is None else "learn_then_test"
    if in_folds:
        default = "cross_conformal" if confidence is None else "cross_fit"
    chosen = default if method == "auto" else method
    if chosen.startswith("cross") != in_folds:
        raise ValueError(
            f"method {chosen!r} does not go with calibration={calibration!r}: methods "
            "that begin with cross take a number of folds or a splitter, the others a share "
            "of the rows or 'prefit'."
        )
    if in_folds and confidence is not None and method == "auto":
        raise ValueError(
            "confidence: no guarantee with confidence is known for cross-validation; keep "
            "rows apart (calibration=0.3), or take method='cross_fit' without guarantee."
        )
    if chosen in ("conformal", "cross_conformal") and confidence is not None:
        raise ValueError(
            f"confidence must be None for method {chosen!r}, which keeps promises on average."
        )
    if chosen == "learn_then_test" and confidence is None:
        raise ValueError("method 'learn_then_test' needs a confidence, such as 0.9.")
    for promise in promises:
        if confidence is None and promise.is_ratio:
            raise ValueError(
                f"{promise.risk.name} may rise with caution, so nothing is known of it on "
                "average: give a confidence, such as 0.9 (--confidence 0.9)."
            )
        if chosen == "cross_conformal" and (promise.label, promise.risk.name) != (
            None,
            "row_error",
        ):
            raise ValueError(
                "method 'cross_conformal' is for row_error of whole rows, got "
                f"{promise.risk.name}{'' if promise.label is None else ' of a label'}."
            )
    return chosen


def check_rows(truth: Labels, promises: list[Promise], note: str = "") -> None:
    """Raise if rows are too few, and warn of those that cannot be judged, before fitting.

    ``note`` says why some rows do not count at all.
    """
    warn_of_incomplete_rows(truth, promises)
    with_pilot = {promise.label for promise in promises if promise.needs_pilot}
    for promise in promises:
        risk = promise.risk
        if promise.label is None:
            n = len(evaluable_rows(risk, truth))
        else:
            column = truth[:, promise.label]
            n = int(((column == 1) if risk.needs_positive else (column != MISSING)).sum())
        n -= int(PILOT_SHARE * n) if promise.label in with_pilot else 0
        needed = fewest_rows(promise.level, promise.confidence)
        if n < needed:
            how = ""
            if promise.confidence is not None:
                how = f" with confidence {promise.confidence:g}"
            that_count = " that count" if n < len(truth) else ""
            hint = ""
            if len(truth) < needed:
                hint = " Give more rows, or promise a larger level."
            elif promise.label is None and not risk.is_ratio and (truth == MISSING).any():
                hint = (
                    " A row counts if all its labels are known; for selective_error and promises "
                    "about single labels, each label that is known counts."
                )
            raise ValueError(
                f"the promise {risk.name} at most {promise.level:g}{how} needs at least {needed} "
                f"rows for calibration{that_count}, got {n}: even if all were right, fewer could "
                f"not show it.{hint}{note and ' '}{note}"
            )


def warn_of_incomplete_rows(truth: Labels, promises: list[Promise]) -> None:
    """Warn of what missing labels cost promises about whole rows."""
    complete = int((truth != MISSING).all(axis=1).sum())
    risks = [p.risk.name for p in promises if p.label is None and not p.risk.is_ratio]
    if risks and complete < len(truth):
        warn_of_data(
            f"{complete} of {len(truth)} calibration rows can be judged for {risks[0]}: the others "
            "have missing labels. selective_error and promises about single labels, such as "
            f"{{'row_error': {{label: level}}}}, use every label that is known."
        )


def label_index(label: Any, names: list[str]) -> int:
    """The column of a label, which is given by its name or its number."""
    if not isinstance(label, bool):
        if str(label) in names:
            return names.index(str(label))
        if isinstance(label, (int, np.integer)) and label in range(len(names)):
            return int(label)
    raise ValueError(f"promise: {label!r} is not one of the labels {', '.join(names)}.")


def is_share(value: Any) -> bool:
    """A number between 0 and 1."""
    is_number = isinstance(value, Real) and not isinstance(value, (bool, Integral))
    return is_number and bool(0 < value < 1)
