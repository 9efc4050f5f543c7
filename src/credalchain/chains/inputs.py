"""Inputs of bases that learn one model per label: encoded tables and earlier labels."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from credalchain._utils.array_types import Labels
from credalchain._utils.progress import track
from credalchain.chains.protocol import Rows
from credalchain.labels import MISSING

Model = TypeVar("Model")


def side_by_side(X: Any, columns: NDArray[np.float64]) -> Any:
    """A table with columns appended."""
    return (
        sparse.hstack([X, columns], format="csr") if sparse.issparse(X) else np.hstack([X, columns])
    )


def indicators(labels: Labels) -> NDArray[np.float64]:
    """Two columns for each label, "is 0" and "is 1"; both 0 where it is neither."""
    both = np.stack([labels == 0, labels == 1], axis=-1).astype(np.float64)
    return both.reshape(len(labels), -1)


def earlier_labels(
    order: NDArray[np.int64] | None, n_labels: int, *, chained: bool, base_name: str
) -> list[NDArray[np.int64]]:
    """For each label, those before it in the chain: the inputs of its model."""
    nothing = np.empty(0, dtype=np.int64)
    if not chained:
        return [nothing] * n_labels
    if order is None:
        raise ValueError(
            f"{base_name} learns for one order of the labels; order='dynamic' has none."
        )
    before = [nothing] * n_labels
    for position, j in enumerate(order.tolist()):
        before[j] = order[:position]
    return before


def fit_each_label(
    Y: Labels,
    before: Sequence[NDArray[np.int64]],
    fit: Callable[[Rows, Labels, NDArray[np.int64]], Model],
) -> list[Model | None]:
    """``fit(rows, y, earlier)`` for each label, on rows where it is observed; None without any."""
    models: list[Model | None] = []
    for j, earlier in enumerate(track(before, "labels", len(before))):
        rows = np.flatnonzero(Y[:, j] != MISSING)
        models.append(fit(rows, Y[rows, j], earlier) if len(rows) else None)
    return models


def with_nan(labels: Labels) -> NDArray[np.float32]:
    """Labels as floats, NaN where they were not observed."""
    return np.where(labels == MISSING, np.nan, labels).astype(np.float32)
