"""Wrapped classifiers in files: skops holds what is scikit-learn's, JSON what is ours.

skops restores types by name from lists it trusts, and runs nothing else. What it does not trust
is refused when saving, and again when loading.
"""

import io
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from credalchain.bases.wrapper import CredalWrapper, WrappedChainModel
from credalchain.bases.wrapper.sets import (
    Bagged,
    Constant,
    Contaminated,
    LabelModel,
    VennAbersCalibrated,
    venn_abers,
)
from credalchain.model_files.archive import check_size
from credalchain.model_files.checks import (
    Arrays,
    Description,
    ModelFileError,
    array,
    describe_numbers,
    plain,
    restore_numbers,
)

_STEPS = ("p0_", "p1_", "c_")  # a Venn-Abers predictor's three arrays


def describe(
    base: CredalWrapper, model: WrappedChainModel
) -> tuple[Description, dict[str, NDArray[Any]]]:
    """The base's parameters, and skops' bytes."""
    options = base.get_params(deep=False)
    unfitted = options.pop("estimator")
    content = {
        "estimator": unfitted,
        "labels": [_as_list(one) for one in model.models],
        "before": [earlier.tolist() for earlier in model.before],
    }
    blob = _skops().dumps(content)
    _refuse_untrusted(blob)
    description = {
        "base": {"kind": "wrapper", **{name: plain(value) for name, value in options.items()}},
        "numbers": describe_numbers(model.numbers),
    }
    return description, {"skops": np.frombuffer(blob, np.uint8)}


def restore(
    description: Description, arrays: Arrays
) -> tuple[CredalWrapper, WrappedChainModel, int]:
    """The base, its model and the number of features."""
    options = {key: value for key, value in description["base"].items() if key != "kind"}
    options["quantiles"] = tuple(options["quantiles"])
    blob = array(arrays, "skops", "u", ndim=1).tobytes()
    check_size(zipfile.ZipFile(io.BytesIO(blob)))
    content = _skops().loads(blob, trusted=[])
    base = CredalWrapper(content["estimator"], **options)
    base._check()
    numbers, n_features = restore_numbers(description["numbers"], one_hot=True)
    models = [_from_list(one) for one in content["labels"]]
    before = [np.array(earlier, dtype=np.int64) for earlier in content["before"]]
    _check_before(before, len(models))
    model = WrappedChainModel(models, before, numbers, base.budget)
    for j, earlier in enumerate(before):  # whatever is wrong with a classifier shows here
        history = np.zeros((1, len(earlier)), dtype=np.int8)
        lower, upper = model.bounds(j, np.zeros((1, n_features)), history, s=1.0)
        if not (0 <= lower[0] <= upper[0] <= 1):
            raise ModelFileError(f"label {j} has no sound probability")
    return base, model, numbers.n_columns


def check_can_be_saved(estimator: Any) -> None:
    """Fit a copy to a few made-up rows, to see before a long fit whether skops takes the result."""
    if estimator is not None:
        fitted = clone(estimator).fit(np.eye(20), np.arange(20) % 2)
        _refuse_untrusted(_skops().dumps(fitted))


def _refuse_untrusted(blob: bytes) -> None:
    strange = _skops().get_untrusted_types(data=blob)
    if strange:
        raise ValueError(
            f"a classifier cannot be saved if it holds types that skops does not trust: {strange}."
        )


def _check_before(before: list[NDArray[np.int64]], n_labels: int) -> None:
    sound = len(before) == n_labels and all(
        earlier.ndim == 1 and ((earlier >= 0) & (earlier < n_labels)).all() for earlier in before
    )
    if not sound:
        raise ModelFileError("every label needs a list of earlier labels")


def _as_list(model: LabelModel | None) -> list[Any] | None:
    """Kind and parts, as lists, numbers, arrays and scikit-learn's own."""
    if isinstance(model, Contaminated):
        return ["contamination", _as_plain(model.fitted)]
    if isinstance(model, Bagged):
        members = [_as_plain(one) for one in model.members]
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
        return Bagged(_from_plain(fitted), [_from_plain(one) for one in members], (low, high))
    if kind == "venn-abers":
        calibrator = venn_abers()
        for name, step in zip(_STEPS, rest[0], strict=True):
            setattr(calibrator, name, step)
        return VennAbersCalibrated(_from_plain(fitted), calibrator)
    raise ModelFileError(f"unknown kind of credal set {kind!r}")


def _as_plain(fitted: Any) -> Any:
    return [fitted.p, fitted.doubt] if isinstance(fitted, Constant) else fitted


def _from_plain(fitted: Any) -> Any:
    if not isinstance(fitted, list):
        return fitted
    p, doubt = fitted
    if not (0 <= p <= 1 and 0 <= doubt <= 1):
        raise ModelFileError(f"a probability must lie between 0 and 1, got {p} and {doubt}")
    return Constant(p, doubt)


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError("a CredalWrapper in a file needs a package: pip install skops") from error
    return skops.io
