"""Logistic regressions in files: the coefficient vectors of all labels, one after the other."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain.bases.inputs import TableEncoder
from credalchain.bases.logistic import CoefficientSet, CredalLogistic, LogisticChainModel
from credalchain.persistence.checks import (
    Arrays,
    Description,
    ModelFileError,
    as_json,
    checked_array,
    checked_slices,
)

_LARGEST = 1e100  # a coefficient, which is multiplied by s and by a feature

ARRAYS = tuple(f"logistic_{name}" for name in ("features", "intercept", "labels", "sizes"))


def describe(
    base: CredalLogistic, model: LogisticChainModel
) -> tuple[Description, dict[str, NDArray[Any]]]:
    """The base's parameters and the coefficients."""
    fitted = [one for one in model.members if one is not None]
    m, p = model.n_labels, max((one.features.shape[1] for one in fitted), default=0)
    empty = CoefficientSet(np.empty((0, p)), np.empty(0), np.empty((0, m, 2)))
    arrays: dict[str, NDArray[Any]] = {
        f"logistic_{name}": np.concatenate([getattr(one, name) for one in (empty, *fitted)])
        for name in vars(empty)
    }
    sizes = [0 if one is None else len(one.intercept) for one in model.members]
    arrays["logistic_sizes"] = np.array(sizes, dtype=np.int64)
    params = {name: as_json(value) for name, value in base.get_params().items()}
    return {
        "base": {"kind": "logistic", **params},
        "numbers": model.encoder.describe(),
    }, arrays


def restore(
    description: Description, arrays: Arrays
) -> tuple[CredalLogistic, LogisticChainModel, int]:
    """The base, its model and the number of features."""
    options = {key: value for key, value in description["base"].items() if key != "kind"}
    base = CredalLogistic(**options)
    base.check_parameters()
    sizes = checked_array(arrays, "logistic_sizes", "iu", ndim=1)
    features, intercept, labels = (
        checked_array(arrays, f"logistic_{name}", "f", ndim=ndim).astype(np.float64)
        for name, ndim in (("features", 2), ("intercept", 1), ("labels", 3))
    )
    encoder, p = TableEncoder.restore(description["numbers"], one_hot=True)
    if encoder.empty:
        raise ModelFileError("a logistic regression cannot have columns without a value")
    total, m = len(intercept), len(sizes)
    if features.shape != (total, p if total else 0) or labels.shape != (total, m, 2):
        raise ModelFileError("the coefficients must be as many in every array")
    if not all((np.abs(part) <= _LARGEST).all() for part in (features, intercept, labels)):
        raise ModelFileError(f"coefficients must be numbers from {-_LARGEST:g} to {_LARGEST:g}")
    members = [
        None
        if here.start == here.stop
        else CoefficientSet(features[here], intercept[here], labels[here])
        for here in checked_slices(sizes, total, "coefficients")
    ]
    return base, LogisticChainModel(members, encoder), encoder.n_columns
