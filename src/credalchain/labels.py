"""Label matrices of any kind, and how people write labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from credalchain.typing import LabelsLike

MISSING = -1  # in a label matrix: not observed
ABSTAIN = -1  # in a prediction: left open
UNDECIDED = -2  # in a history: the chain has not reached this label yet

LABEL_WORDS = {
    **dict.fromkeys(("1", "1.0", "yes", "y", "true", "t"), 1),
    **dict.fromkeys(("0", "0.0", "no", "n", "false", "f"), 0),
    **dict.fromkeys(("?", "", "na", "nan", "-1"), None),
}
"""What people write in a cell of a label, in lower case."""

_EXPECTED = "0, 1 or missing (-1, NaN, None, pd.NA or masked)"


def is_missing(cell: Any) -> bool:
    """Whether a single value stands for "nobody knows": None, NaN, ``pd.NA`` or ``NaT``."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(cell, (float, np.floating)) and bool(np.isnan(cell))


def as_labels(Y: LabelsLike, *, name: str = "Y", require_zero: bool = True) -> NDArray[np.int8]:
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
    has_minus_one, labels = _read(Y, name)
    if labels.ndim == 1:
        labels = labels[:, None]
    if labels.ndim != 2:
        raise ValueError(f"{name} must have two dimensions (rows, labels), got {labels.ndim}.")
    if require_zero and has_minus_one and (labels == 1).any() and not (labels == 0).any():
        raise ValueError(minus_one_message(name))
    return np.ascontiguousarray(labels)


def holds_minus_one(Y: LabelsLike) -> bool:
    """Whether missing labels are written as -1, which may mean "no" where there is no 0."""
    return _read(Y, "Y")[0]


def minus_one_message(name: str = "Y") -> str:
    """Why a matrix with -1 and +1 but no 0 is refused."""
    return (
        f"{name} holds -1 and +1 but no 0. Here -1 means 'missing', not 'no': "
        f"pass ({name} > 0).astype(int) if -1 stands for 'no', "
        "or NaN in place of -1 if those labels really are missing."
    )


_SETS = (list, tuple, set, frozenset)


def are_label_sets(Y: Any) -> bool:
    """Whether rows are lists (or sets) of the names of their labels, such as ["rock", "pop"]."""
    if sparse.issparse(Y) or hasattr(Y, "columns") or isinstance(Y, (str, bytes)):
        return False
    if isinstance(Y, np.ndarray) and (Y.dtype != object or Y.ndim != 1):
        return False
    rows = list(Y) if hasattr(Y, "__iter__") else []
    sets = [row for row in rows if isinstance(row, _SETS)]
    names = [name for row in sets for name in row]
    if not all(isinstance(name, str) for name in names):
        return False
    if not any(name.strip().lower() not in LABEL_WORDS for name in names):
        return False
    if len(sets) < len(rows):
        invalid = next(i for i, row in enumerate(rows) if not isinstance(row, _SETS))
        raise ValueError(
            f"Y must hold a list of label names in every row, got {rows[invalid]!r} in row "
            f"{invalid}. A row without labels is []; labels that are not known are NaN in a data "
            "frame with a column for each label."
        )
    return True


def labels_of_sets(Y: Any, names: Sequence[str]) -> NDArray[np.int8]:
    """Rows of names as a matrix of 0 and 1, with a column for each of ``names``."""
    index_of = {name: j for j, name in enumerate(names)}
    labels = np.zeros((len(Y), len(names)), dtype=np.int8)
    for i, row in enumerate(Y):
        for name in row:
            if name not in index_of:
                raise ValueError(
                    f"Y names a label {name!r} in row {i} that was not there in fit, where they "
                    f"were {', '.join(names)}."
                )
            labels[i, index_of[name]] = 1
    return labels


def as_indexable_labels(Y: Any, names: Sequence[str] | None = None) -> Any:
    """Labels out of which rows can be taken, all with the same columns.

    ``names`` of the labels are those that occur, unless they are known.
    """
    if are_label_sets(Y):
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "lists of label names need pandas where rows are kept apart for testing: pip "
                "install pandas, or give a matrix of 0 and 1."
            ) from error
        columns = sorted({name for row in Y for name in row}) if names is None else list(names)
        return pd.DataFrame(labels_of_sets(Y, columns), columns=columns)
    if sparse.issparse(Y):
        return Y.tocsr()
    return Y if hasattr(Y, "__getitem__") else np.asarray(Y)


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
        has_minus_one, labels = _read(Y.filled(0), name)
        return has_minus_one, np.where(np.ma.getmaskarray(Y), np.int8(MISSING), labels)
    try:
        values = np.asarray(Y)
    except ValueError:  # ragged
        hint = ""
        if are_label_sets(Y):
            hint = " Names of labels are for fit and score; here give columns of 0 and 1, as "
            hint += "scikit-learn's MultiLabelBinarizer makes them."
        raise ValueError(f"{name} must have equally many labels in every row.{hint}") from None
    if values.dtype == bool:
        return False, values.astype(np.int8)
    if values.dtype.kind in "iu" and values.size and values.max() <= 1:
        least = values.min()
        if least >= MISSING:  # nothing to look for, so no need to look at every cell again
            return bool(least == MISSING), values.astype(np.int8)
    if values.dtype.kind not in "iuf":
        values = _object_to_float(values, name, column_names(Y))
    missing = np.isnan(values)
    minus_one = values == MISSING
    is_valid = (values == 0) | (values == 1) | minus_one | missing
    if not is_valid.all():
        _refuse(values, is_valid, name, column_names(Y))
    labels = np.where(missing, MISSING, values).astype(np.int8)
    return bool(minus_one.any()), labels


def _object_to_float(
    values: NDArray[Any], name: str, columns: list[str] | None
) -> NDArray[np.float64]:
    if values.dtype.kind not in "OUST":  # dates, complex numbers: none of them is a label
        raise ValueError(f"{name} must hold {_EXPECTED}; got values of dtype {values.dtype}.")
    cells = values.ravel().tolist()
    invalid = [i for i, cell in enumerate(cells) if not _is_cell(cell)]
    if invalid:
        # in a column of text even "0" is text: name the cell that made it so
        causes = [i for i in invalid if cells[i] not in ("0", "1", "")] or invalid
        position = tuple(int(index) for index in np.unravel_index(causes[0], values.shape))
        where = _describe_position(position, columns)
        raise ValueError(f"{name} must hold {_EXPECTED}; got {cells[causes[0]]!r} in {where}.")
    floats = [np.nan if is_missing(cell) else float(cell) for cell in cells]
    return np.array(floats, dtype=np.float64).reshape(values.shape)


def both_answers_seen(labels: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Labels (m,) that count in shares answered: not constant; all, if all are constant.

    A chain leaves a label that is always no open, and others would be answered instead of it.
    """
    seen = (labels == 0).any(axis=0) & (labels == 1).any(axis=0)
    return seen if seen.any() else np.ones(labels.shape[1], dtype=bool)


def _is_cell(cell: Any) -> bool:
    return is_missing(cell) or isinstance(
        cell, (bool, int, float, np.bool_, np.integer, np.floating)
    )


def _describe_position(position: tuple[int, ...], columns: list[str] | None) -> str:
    where = f"row {position[0]}" if position else "a single value"
    if len(position) > 1:
        where += f", column {columns[position[1]] if columns else position[1]}"
    return where


def _refuse(
    values: NDArray[Any], is_valid: NDArray[np.bool_], name: str, columns: list[str] | None
) -> None:
    position = tuple(int(index) for index in np.argwhere(~is_valid)[0])
    where = _describe_position(position, columns)
    raise ValueError(f"{name} must hold {_EXPECTED}; got {values[position]} in {where}.")
