"""Logistic regressions in files: the coefficient vectors of all labels, one after the other."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain.bases.logistic import CredalLogistic, LogisticChainModel, Members
from credalchain.model_files.checks import (
    Arrays,
    Description,
    ModelFileError,
    array,
    describe_numbers,
    parts_of,
    plain,
    restore_numbers,
)


def describe(
    base: CredalLogistic, model: LogisticChainModel
) -> tuple[Description, dict[str, NDArray[Any]]]:
    """The base's parameters and the coefficients."""
    fitted = [one for one in model.members if one is not None]
    m, p = model.n_labels, max((one.features.shape[1] for one in fitted), default=0)
    empty = Members(np.empty((0, p)), np.empty(0), np.empty((0, m, 2)))
    arrays: dict[str, NDArray[Any]] = {
        f"logistic_{name}": np.concatenate([getattr(one, name) for one in (empty, *fitted)])
        for name in vars(empty)
    }
    sizes = [0 if one is None else len(one.intercept) for one in model.members]
    arrays["logistic_sizes"] = np.array(sizes, dtype=np.int64)
    params = {name: plain(value) for name, value in base.get_params().items()}
    return {
        "base": {"kind": "logistic", **params},
        "numbers": describe_numbers(model.numbers),
    }, arrays


def restore(
    description: Description, arrays: Arrays
) -> tuple[CredalLogistic, LogisticChainModel, int]:
    """The base, its model and the number of features."""
    options = {key: value for key, value in description["base"].items() if key != "kind"}
    sizes = array(arrays, "logistic_sizes", "iu", ndim=1)
    features = array(arrays, "logistic_features", "f", ndim=2)
    intercept = array(arrays, "logistic_intercept", "f", ndim=1)
    told = array(arrays, "logistic_told", "f", ndim=3)
    numbers, p = restore_numbers(description["numbers"], one_hot=True)
    total, m = len(intercept), len(sizes)
    if features.shape != (total, p if total else 0) or told.shape != (total, m, 2):
        raise ModelFileError("the coefficients must be as many in every array")
    if not all(np.isfinite(part).all() for part in (features, intercept, told)):
        raise ModelFileError("coefficients must be finite numbers")
    members = [
        None if here.start == here.stop else Members(features[here], intercept[here], told[here])
        for here in parts_of(sizes, total, "coefficients")
    ]
    return CredalLogistic(**options), LogisticChainModel(members, numbers), numbers.n_columns
