"""What bases that learn one model per label give their learners: numbers, and earlier labels."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from credalchain.bases.protocol import Labels
from credalchain.labels import MISSING


def as_numbers(X: Any, dtype: Any, who: str) -> NDArray[Any]:
    """Checked input as a dense array of floats; NaN is missing."""
    if sparse.issparse(X):
        return np.ascontiguousarray(X.toarray(), dtype=dtype)
    try:
        return np.ascontiguousarray(np.asarray(X), dtype=dtype)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{who} needs columns of numbers; encode the others first, for instance with "
            f"scikit-learn's OrdinalEncoder in a pipeline ({error})."
        ) from None


def earlier_labels(
    order: NDArray[np.int64] | None, n_labels: int, *, chained: bool, who: str
) -> list[NDArray[np.int64]]:
    """For each label, those before it in the chain: what its model may look at."""
    nothing = np.empty(0, dtype=np.int64)
    if not chained:
        return [nothing] * n_labels
    if order is None:
        raise ValueError(f"{who} learns for one order of the labels; order='dynamic' has none.")
    before = [nothing] * n_labels
    for position, j in enumerate(order.tolist()):
        before[j] = order[:position]
    return before


def with_gaps(labels: Labels) -> NDArray[np.float32]:
    """Labels as numbers, NaN where nobody has observed them."""
    return np.where(labels == MISSING, np.nan, labels).astype(np.float32)
