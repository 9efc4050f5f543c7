"""What bases that learn one model per label give their learners: numbers, and earlier labels."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from credalchain.bases.protocol import Labels
from credalchain.labels import MISSING
from credalchain.preprocessing import keys_of, named_columns


def as_numbers(X: Any, dtype: Any, who: str) -> NDArray[Any]:
    """Checked input as a dense array of floats; NaN is missing."""
    if sparse.issparse(X):
        numbers = np.asarray(X.toarray(), dtype=np.float64)
    elif isinstance(X, np.ndarray) and X.dtype.kind in "biuf":
        numbers = X
    else:
        columns = [_as_number_column(name, column, who) for name, column in named_columns(X)]
        numbers = np.column_stack(columns)
    with np.errstate(over="ignore"):
        cast = np.ascontiguousarray(numbers, dtype=dtype)
    if np.isinf(cast).any():
        raise ValueError(f"X holds infinity, or a value too large for {np.dtype(dtype).name}.")
    return cast


def _as_number_column(name: str, column: Any, who: str) -> NDArray[np.float64]:
    keys, missing = keys_of(np.asarray(column), name)
    if keys.dtype.kind != "f" and not missing.all():
        raise ValueError(
            f"{who} needs columns of numbers, but column {name!r} holds text; encode it first, for "
            "instance with scikit-learn's OrdinalEncoder in a pipeline."
        )
    return np.where(missing, np.nan, keys if keys.dtype.kind == "f" else 0.0)


def as_table(X: Any, who: str) -> Any:
    """Checked input as numbers: sparse rows stay sparse."""
    return X.tocsr() if sparse.issparse(X) else as_numbers(X, np.float64, who)


def side_by_side(X: Any, more: NDArray[np.float64]) -> Any:
    """A table with more columns."""
    return sparse.hstack([X, more], format="csr") if sparse.issparse(X) else np.hstack([X, more])


def indicators(labels: Labels) -> NDArray[np.float64]:
    """Two columns for each label, "is 0" and "is 1"; both 0 where it is neither."""
    both = np.stack([labels == 0, labels == 1], axis=-1).astype(np.float64)
    return both.reshape(len(labels), -1)


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
