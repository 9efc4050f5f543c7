"""Wrapped classifiers in files: scikit-learn estimators as skops, parameters as JSON."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from credalchain.bases.inputs import TableEncoder
from credalchain.bases.wrapper import CredalWrapper, WrappedChainModel
from credalchain.bases.wrapper.sets import (
    Bagged,
    Constant,
    Contaminated,
    LabelModel,
    VennAbersCalibrated,
    venn_abers,
)
from credalchain.labels import ABSTAIN
from credalchain.persistence.checks import (
    Arrays,
    Description,
    ModelFileError,
    as_json,
    checked_array,
)
from credalchain.persistence.skops_bytes import from_bytes, to_bytes

ARRAYS = ("skops",)
PARTS = (Bagged, Constant, Contaminated, VennAbersCalibrated)
_LABEL_VALUES = np.array([ABSTAIN, 0, 1], dtype=np.int8)  # possible values of an earlier label
_STEPS = ("p0_", "p1_", "c_")  # a Venn-Abers predictor's three arrays


def describe(
    base: CredalWrapper, model: WrappedChainModel
) -> tuple[Description, dict[str, NDArray[Any]]]:
    """The base's parameters, and skops' bytes."""
    options = base.get_params(deep=False)
    unfitted = options.pop("estimator")
    content = {
        "estimator": unfitted,
        "labels": [_as_list(label_model) for label_model in model.models],
        "before": [earlier.tolist() for earlier in model.before],
    }
    blob = to_bytes(content)
    description = {
        "base": {"kind": "wrapper", **{name: as_json(value) for name, value in options.items()}},
        "numbers": model.encoder.describe(),
    }
    return description, {"skops": blob}


def restore(
    description: Description, arrays: Arrays
) -> tuple[CredalWrapper, WrappedChainModel, int]:
    """The base, its model and the number of features."""
    options = {key: value for key, value in description["base"].items() if key != "kind"}
    options["quantiles"] = tuple(options["quantiles"])
    content = from_bytes(checked_array(arrays, "skops", "u", ndim=1))
    base = CredalWrapper(content["estimator"], **options)
    base.check_parameters()
    encoder, _ = TableEncoder.restore(description["numbers"], one_hot=True)
    models = [_from_list(label_model) for label_model in content["labels"]]
    before = [np.array(earlier, dtype=np.int64) for earlier in content["before"]]
    _check_before(before, len(models))
    model = WrappedChainModel(models, before, encoder, base.budget)
    _check_answers(model)
    return base, model, encoder.n_columns


def check_can_be_saved(estimator: Any) -> None:
    """Fit a clone to a few artificial rows, to see before a long fit whether skops can save it."""
    if estimator is not None:
        fitted = clone(estimator).fit(np.eye(20), np.arange(20) % 2)
        to_bytes(fitted)


def _check_before(before: list[NDArray[np.int64]], n_labels: int) -> None:
    is_valid = len(before) == n_labels and all(
        earlier.ndim == 1 and ((earlier >= 0) & (earlier < n_labels)).all() for earlier in before
    )
    if not is_valid:
        raise ModelFileError("every label needs a list of earlier labels")


def _check_answers(model: WrappedChainModel) -> None:
    """Check the bounds for a row of zeros, which shows whether the classifiers work."""
    row = np.zeros((1, model.encoder.n_columns))
    if model.encoder.words:
        row = row.astype(object)
        row[0, list(model.encoder.words)] = None
    rows = np.repeat(model.encoder.encode_table(row), len(_LABEL_VALUES), axis=0)
    for j, earlier in enumerate(model.before):
        history = np.repeat(_LABEL_VALUES[:, None], len(earlier), axis=1)
        lower, upper = model.bounds(j, rows, history, s=1.0)
        if not ((lower >= 0) & (lower <= upper) & (upper <= 1)).all():
            raise ModelFileError(f"label {j} has no valid probability")


def _as_list(model: LabelModel | None) -> list[Any] | None:
    """Kind and parts, as lists, numbers, arrays and scikit-learn estimators."""
    if isinstance(model, Contaminated):
        return ["contamination", _as_plain(model.fitted)]
    if isinstance(model, Bagged):
        members = [_as_plain(member) for member in model.members]
        return ["bag", _as_plain(model.fitted), members, list(model.quantiles)]
    if isinstance(model, VennAbersCalibrated):
        steps = [np.asarray(getattr(model.calibrator, name)) for name in _STEPS]
        return ["venn-abers", _as_plain(model.fitted), steps]
    return None


def _from_list(parts: Any) -> LabelModel | None:
    if parts is None:
        return None
    kind, fitted, *rest = parts
    if kind == "contamination":
        return Contaminated(_from_plain(fitted))
    if kind == "bag":
        members, (low, high) = rest
        if not 0 <= low <= high <= 1:
            raise ModelFileError(f"quantiles must lie between 0 and 1, got {low}, {high}")
        return Bagged(_from_plain(fitted), [_from_plain(member) for member in members], (low, high))
    if kind == "venn-abers":
        return VennAbersCalibrated(_from_plain(fitted), _calibrator(rest[0]))
    raise ModelFileError(f"unknown kind of credal set {kind!r}")


def _calibrator(steps: Any) -> Any:
    """A Venn-Abers predictor; it must give two probabilities for every score in [0, 1]."""
    p0, p1, scores = (np.asarray(step, dtype=np.float64) for step in steps)
    inside = scores.ndim == 1 and ((scores >= 0) & (scores <= 1)).all()
    if not inside or (np.diff(scores) <= 0).any():
        raise ModelFileError("the scores of a Venn-Abers predictor must lie in [0, 1] and increase")
    if not p0.shape == p1.shape == (len(scores) + 1, 2):
        raise ModelFileError("a Venn-Abers predictor must have one step more than scores")
    calibrator = venn_abers()
    for name, step in zip(_STEPS, (p0, p1, scores), strict=True):
        setattr(calibrator, name, step)
    ends = np.concatenate([[0.0], scores, [1.0]])
    grid = np.concatenate([ends, (ends[1:] + ends[:-1]) / 2])  # at each score and between them
    answers = np.hstack(calibrator.predict_proba(np.column_stack([1 - grid, grid])))
    if not ((answers >= 0) & (answers <= 1)).all():
        raise ModelFileError("the steps of a Venn-Abers predictor must be probabilities")
    return calibrator


def _as_plain(fitted: Any) -> Any:
    return [fitted.p, fitted.half_width] if isinstance(fitted, Constant) else fitted


def _from_plain(fitted: Any) -> Any:
    if not isinstance(fitted, list):
        return fitted
    p, half_width = fitted
    if not (0 <= p <= 1 and 0 <= half_width <= 1):
        raise ModelFileError(f"a probability must lie between 0 and 1, got {p} and {half_width}")
    return Constant(p, half_width)
