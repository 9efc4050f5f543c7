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

_MAX_COEFFICIENT = 1e100  # products with s and features stay finite

ARRAYS = tuple(f"logistic_{name}" for name in ("features", "intercept", "labels", "sizes"))


def describe(
    base: CredalLogistic, model: LogisticChainModel
) -> tuple[Description, dict[str, NDArray[Any]]]:
    """The base's parameters and the coefficients."""
    fitted = [coefficients for coefficients in model.coefficient_sets if coefficients is not None]
    m = model.n_labels
    p = max((coefficients.features.shape[1] for coefficients in fitted), default=0)
    empty = CoefficientSet(np.empty((0, p)), np.empty(0), np.empty((0, m, 2)))
    arrays: dict[str, NDArray[Any]] = {
        f"logistic_{name}": np.concatenate(
            [getattr(coefficients, name) for coefficients in (empty, *fitted)]
        )
        for name in vars(empty)
    }
    sizes = [
        0 if coefficients is None else len(coefficients.intercept)
        for coefficients in model.coefficient_sets
    ]
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
    if not all(
        (np.abs(array) <= _MAX_COEFFICIENT).all() for array in (features, intercept, labels)
    ):
        raise ModelFileError(
            f"coefficients must be numbers from {-_MAX_COEFFICIENT:g} to {_MAX_COEFFICIENT:g}"
        )
    coefficient_sets = [
        None
        if rows.start == rows.stop
        else CoefficientSet(features[rows], intercept[rows], labels[rows])
        for rows in checked_slices(sizes, total, "coefficients")
    ]
    return base, LogisticChainModel(coefficient_sets, encoder), encoder.n_columns
