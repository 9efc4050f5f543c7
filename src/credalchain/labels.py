"""Label matrices: the one reader of missing codes."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

MISSING = -1
ABSTAIN = -1

_EXPECTED = "0, 1 or missing (-1, NaN, None, pd.NA or masked)"


def as_labels(Y: Any, *, name: str = "Y", require_zero: bool = True) -> NDArray[np.int8]:
    """Read a label matrix of any kind into int8 with -1 for a missing label.

    Parameters
    ----------
    Y : array-like, data frame, masked array or scipy sparse of shape (n, m) or (n,)
        Labels 0 or 1 (or booleans); NaN, None, ``pd.NA``, -1 or a masked cell is a
        label nobody has observed. What a sparse matrix does not store is 0.
    name : str
        What error messages call the argument.
    require_zero : bool
        Refuse a matrix with -1 and +1 but no 0, in which -1 most likely means "no".

    Returns
    -------
    ndarray of int8, shape (n, m), values in {-1, 0, 1}

    Examples
    --------
    >>> as_labels([[1, None], [0, 1]])
    array([[ 1, -1],
           [ 0,  1]], dtype=int8)
    """
    given_minus_one, labels = _read(Y, name)
    if labels.ndim == 1:
        labels = labels[:, None]
    if labels.ndim != 2:
        raise ValueError(f"{name} must have two dimensions (rows, labels), got {labels.ndim}.")
    if require_zero and given_minus_one and (labels == 1).any() and not (labels == 0).any():
        raise ValueError(
            f"{name} holds -1 and +1 but no 0. Here -1 means 'missing', not 'no': "
            f"pass ({name} > 0).astype(int) if -1 stands for 'no', "
            "or NaN in place of -1 if those labels really are missing."
        )
    return np.ascontiguousarray(labels)


def column_names(Y: Any) -> list[str] | None:
    """The names of the columns of a data frame, None for anything else."""
    columns = getattr(Y, "columns", None)
    return None if columns is None else [str(column) for column in columns]


def check_names(given: Any, names: Sequence[str], what: str) -> None:
    """Refuse a data frame whose columns are other labels, or the same in another order."""
    columns = column_names(given)
    if columns is not None and columns != list(names):
        raise ValueError(
            f"the columns of {what} must be the labels in their order, {list(names)}, "
            f"got {columns}."
        )


def _read(Y: Any, name: str) -> tuple[bool, NDArray[np.int8]]:
    """Labels as int8, and whether any missing one was written as -1."""
    if sparse.issparse(Y):
        Y = Y.toarray()
    if isinstance(Y, np.ma.MaskedArray):
        given, labels = _read(Y.filled(0), name)
        return given, np.where(np.ma.getmaskarray(Y), np.int8(MISSING), labels)
    try:
        values = np.asarray(Y)
    except ValueError:  # ragged
        raise ValueError(f"{name} must have equally many labels in every row.") from None
    if values.dtype == bool:
        return False, values.astype(np.int8)
    if values.dtype.kind not in "iuf":
        values = _object_to_float(values, name)
    missing = np.isnan(values)
    minus_one = values == MISSING
    legal = (values == 0) | (values == 1) | minus_one | missing
    if not legal.all():
        _refuse(values, legal, name, column_names(Y))
    labels = np.where(missing, MISSING, values).astype(np.int8)
    return bool(minus_one.any()), labels


def _object_to_float(values: NDArray[Any], name: str) -> NDArray[np.float64]:
    if values.dtype.kind == "O":
        flat: Iterable[Any] = values.ravel().tolist()
    else:  # strings, dates, complex numbers: none of them is a label
        raise ValueError(f"{name} must hold {_EXPECTED}; got values of dtype {values.dtype}.")
    return np.array([_cell_to_float(cell, name) for cell in flat]).reshape(values.shape)


def _cell_to_float(cell: Any, name: str) -> float:
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return np.nan
    if isinstance(cell, (bool, int, float, np.bool_, np.integer, np.floating)):
        return float(cell)
    raise ValueError(f"{name} must hold {_EXPECTED}; got {cell!r}.")


def _refuse(
    values: NDArray[Any], legal: NDArray[np.bool_], name: str, columns: list[str] | None
) -> None:
    place = tuple(int(index) for index in np.argwhere(~legal)[0])
    where = f"row {place[0]}"
    if len(place) > 1:
        where += f", column {columns[place[1]] if columns else place[1]}"
    raise ValueError(f"{name} must hold {_EXPECTED}; got {values[place]} in {where}.")
