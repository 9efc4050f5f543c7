"""Vectors in place of label matrices: a single label whose two values may be anything."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets

from credalchain.labels import as_labels, is_missing


def is_vector(Y: Any) -> bool:
    """One-dimensional: a single label."""
    if sparse.issparse(Y):
        return False
    try:
        return np.asarray(Y).ndim == 1
    except ValueError:  # ragged, which as_labels will say
        return False


def is_label_vector(y: Any) -> bool:
    """0, 1 and missing only: read as labels. -1 and +1 without 0 are two classes."""
    if np.asarray(y).dtype == bool and not np.ma.isMaskedArray(y):
        return False  # two classes, False and True
    try:
        as_labels(y)
    except ValueError:
        return False
    return True


def _has_missing(y: Any) -> bool:
    """Whether a vector of anything has missing values; looked for before numpy makes it text."""
    cells = list(y) if isinstance(y, (list, tuple)) else np.asarray(y, dtype=object).tolist()
    return any(is_missing(cell) for cell in cells)


def two_classes(y: Any) -> NDArray[Any]:
    """The values of a vector, sorted; there may be two at the most."""
    values = np.asarray(y)
    if np.ma.is_masked(y) or _has_missing(y):
        raise ValueError(
            "a vector Y with missing values must hold 0 and 1 beside them; "
            f"got values like {values[0]!r}."
        )
    check_classification_targets(values)
    classes = np.unique(values)
    if len(classes) > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: "
            f"a vector Y must have two distinct values, got {len(classes)}. "
            "For several labels, pass one column for each."
        )
    return classes
