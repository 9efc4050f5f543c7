"""Label matrices of any kind, and the words for labels in text files."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import MultiLabelBinarizer
from sklearn.utils.multiclass import check_classification_targets

from credalchain._utils.array_types import Labels
from credalchain._utils.text import plural
from credalchain._utils.validation import check_instance, check_int, import_extra
from credalchain.typing import LabelsLike

MISSING = -1  # in a label matrix: not observed
ABSTAIN = -1  # in a prediction: left open
UNDECIDED = -2  # in a history: the chain has not reached this label yet

LABEL_WORDS = {
    **dict.fromkeys(("1", "1.0", "yes", "y", "true", "t"), 1),
    **dict.fromkeys(("0", "0.0", "no", "n", "false", "f"), 0),
    **dict.fromkeys(("?", "", "na", "nan", "-1"), None),
}
"""Words for yes and no in cells of labels, in lower case."""

_EXPECTED = "0, 1 or missing (-1, NaN, None, pd.NA or masked)"


def is_missing(cell: Any) -> bool:
    """Return whether a single value is missing: None, NaN, ``pd.NA`` or ``NaT``."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(cell, (float, np.floating)) and bool(np.isnan(cell))


def missing_cells(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which cells of a column are missing; texts are not."""
    return np.array([not isinstance(cell, str) and is_missing(cell) for cell in values], bool)


def as_labels(Y: LabelsLike, *, name: str = "Y", require_zero: bool = True) -> NDArray[np.int8]:
    """Read a label matrix of any kind into int8 with -1 for a missing label.

    Parameters
    ----------
    Y : array-like, data frame, masked array or scipy sparse of shape (n, m) or (n,)
        Labels 0 or 1 (or booleans); NaN, None, ``pd.NA``, -1 or a masked cell is a
        label that was not observed. Values that a sparse matrix does not store are 0.
    name : str, default="Y"
        Name of the argument in error messages.
    require_zero : bool, default=True
        If True, reject a matrix with -1 and +1 but no 0, in which -1 most likely means "no".

    Returns
    -------
    ndarray of int8, shape (n, m)
        Labels 0, 1, and -1 for missing.

    Raises
    ------
    ValueError
        If Y holds other values, or has more than two dimensions.

    Examples
    --------
    >>> from credalchain import as_labels
    >>> as_labels([[1, None], [0, 1]])
    array([[ 1, -1],
           [ 0,  1]], dtype=int8)
    """
    has_minus_one, labels = _read(Y, name)
    labels = labels[:, None] if labels.ndim == 1 else labels
    if labels.ndim != 2:
        raise ValueError(f"{name} must have two dimensions (rows, labels), got {labels.ndim}.")
    if require_zero and has_minus_one and (labels == 1).any() and not (labels == 0).any():
        raise ValueError(minus_one_message(name))
    return np.ascontiguousarray(labels)


def holds_minus_one(Y: LabelsLike) -> bool:
    """Return whether missing labels are written as -1, which may mean "no" if there is no 0."""
    return _read(Y, "Y")[0]


def minus_one_message(name: str = "Y") -> str:
    """Explain why a matrix with -1 and +1 but no 0 is not accepted."""
    return (
        f"{name} holds -1 and +1 but no 0. Here -1 means 'missing', not 'no': "
        f"pass ({name} > 0).astype(int) if -1 stands for 'no', "
        "or NaN in place of -1 if those labels really are missing."
    )


_SETS = (list, tuple, set, frozenset)


def are_label_sets(Y: Any) -> bool:
    """Return whether rows are lists (or sets) of label names, such as ["rock", "pop"]."""
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
    """Return rows of names as a matrix of 0 and 1, with a column for each of ``names``."""
    unknown = sorted({name for row in Y for name in row} - set(names))
    if unknown:
        raise ValueError(
            f"Y names a label {unknown[0]!r} that was not there in fit, where they were "
            f"{', '.join(names)}."
        )
    labels = MultiLabelBinarizer(classes=list(names)).fit_transform(Y)
    return np.asarray(labels, dtype=np.int8)


def as_indexable_labels(Y: Any, names: Sequence[str] | None = None) -> Any:
    """Return labels out of which rows can be taken, all with the same columns.

    ``names`` of the labels are those that occur, unless they are known.
    """
    if are_label_sets(Y):
        message = "lists of label names need pandas where rows are kept apart for testing: pip "
        pd = import_extra("pandas", message + "install pandas, or give a matrix of 0 and 1.")
        columns = sorted({name for row in Y for name in row}) if names is None else list(names)
        return pd.DataFrame(labels_of_sets(Y, columns), columns=columns)
    if sparse.issparse(Y):
        return Y.tocsr()
    return Y if hasattr(Y, "__getitem__") else np.asarray(Y)


def column_names(Y: Any) -> list[str] | None:
    """Return the names of the columns of a data frame, None for anything else."""
    columns = getattr(Y, "columns", None)
    return None if columns is None else [str(column) for column in columns]


def check_names(given: Any, names: Sequence[str], what: str) -> None:
    """Validate that a data frame has these labels as its columns, in this order."""
    columns = column_names(given)
    if columns is not None and columns != list(names):
        raise ValueError(
            f"the columns of {what} must be the labels in their order, {list(names)}, "
            f"got {columns}."
        )


def _read(Y: Any, name: str) -> tuple[bool, NDArray[np.int8]]:
    """Return labels as int8, and whether any missing one was written as -1."""
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
    if values.dtype.kind not in "iufOUST":  # dates, complex numbers: none of them is a label
        raise ValueError(f"{name} must hold {_EXPECTED}; got values of dtype {values.dtype}.")
    if values.dtype.kind not in "iuf":
        cells, number = values.ravel().tolist(), (bool, int, float, np.bool_, np.number)
        invalid = [i for i, c in enumerate(cells) if not (is_missing(c) or isinstance(c, number))]
        if invalid:  # in a column of text even "0" is text: name the cell that made it so
            causes = [i for i in invalid if cells[i] not in ("0", "1", "")] or invalid
            position = np.array(np.unravel_index(causes[0], values.shape))
            raise ValueError(_invalid(repr(cells[causes[0]]), position, name, column_names(Y)))
        floats = [np.nan if is_missing(cell) else float(cell) for cell in cells]
        values = np.array(floats, dtype=np.float64).reshape(values.shape)
    missing = np.isnan(values)
    minus_one = values == MISSING
    is_valid = (values == 0) | (values == 1) | minus_one | missing
    if not is_valid.all():
        position = np.argwhere(~is_valid)[0]
        raise ValueError(_invalid(values[tuple(position)], position, name, column_names(Y)))
    labels = np.where(missing, MISSING, values).astype(np.int8)
    return bool(minus_one.any()), labels


def both_answers_seen(labels: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Return the labels (m,) that count in shares answered: not constant; all if all are constant.

    A chain leaves a label that is always no open, and others would be answered instead of it.
    """
    seen = (labels == 0).any(axis=0) & (labels == 1).any(axis=0)
    return seen if seen.any() else np.ones(labels.shape[1], dtype=bool)


def _invalid(value: Any, position: NDArray[Any], name: str, columns: list[str] | None) -> str:
    where = f"row {position[0]}" if len(position) else "a single value"
    if len(position) > 1:
        where += f", column {columns[position[1]] if columns else position[1]}"
    return f"{name} must hold {_EXPECTED}; got {value} in {where}."


def select_labels(labels: Any, interval: Any, at_most: int | None) -> NDArray[np.int64]:
    """Select the labels worth looking at first, as numbers; all in their order if they fit.

    First those that are open in most rows, among equals the likeliest; then those that are yes in
    most rows, among equals the most certain; then what is no everywhere, the most certain first.
    A quarter of the places is kept for labels that are nowhere open.

    Parameters
    ----------
    labels : array-like of shape (n, m)
        Values 1, 0 and -1 (left open).
    interval : array-like of shape (n, m, 2)
        Lower and upper probability of each label.
    at_most : int, optional
        How many; None for all.
    """
    labels, interval = np.asarray(labels), np.asarray(interval)
    n_labels = labels.shape[1]
    if at_most is None or n_labels <= check_int("max_labels", at_most):
        return np.arange(n_labels)
    n_open, n_yes = (labels == ABSTAIN).sum(axis=0), (labels == 1).sum(axis=0)
    likely = interval.sum(axis=(0, 2))
    certain = np.maximum(interval[..., 0], 1 - interval[..., 1]).sum(axis=0)
    opened, others = np.flatnonzero(n_open > 0), np.flatnonzero(n_open == 0)
    opened = opened[np.lexsort((-likely[opened], -n_open[opened]))]
    others = others[np.lexsort((-certain[others], -n_yes[others]))]
    opened = opened[: at_most - min(len(others), at_most // 4)]
    return np.concatenate([opened, others[: at_most - len(opened)]])


def and_more(n_shown: int, n_all: int, noun: str = "") -> str:
    """Say in words, such as "and 149 more" or "and 1 more label"; nothing if all are shown."""
    n = n_all - n_shown
    return "" if n <= 0 else f"and {plural(n, f'more {noun}') if noun else f'{n} more'}"


@dataclass(frozen=True, eq=False)
class Targets:
    """Classes and names of the labels.

    ``classes`` is (m, 2), or the values of the vector if the labels came as one; ``names`` (m,).
    """

    classes: NDArray[Any]
    names: NDArray[np.str_]

    @classmethod
    def of_labels(cls, n_labels: int, names: list[str] | None = None) -> "Targets":
        """Return the targets of labels 0 and 1, with names or without."""
        if names is not None and len(set(names)) < len(names):
            duplicate = next(name for name in names if names.count(name) > 1)
            raise ValueError(
                f"label names must be different from each other, got {duplicate!r} twice."
            )
        numbered = [f"label{j}" for j in range(n_labels)]
        return cls(np.tile([0, 1], (n_labels, 1)), np.array(numbered if names is None else names))

    @classmethod
    def learn(cls, Y: Any, classes: Any = None) -> tuple["Targets", Labels]:
        """Learn from the labels of the first rows, and return these labels as int8 (n, m)."""
        if are_label_sets(Y):
            label_names = sorted({name for row in Y for name in row})
            return cls.of_labels(len(label_names), label_names), labels_of_sets(Y, label_names)
        if classes is not None and np.array_equal(np.unique(np.asarray(classes)), [0, 1]):
            classes = None
        if not _is_vector(Y):
            labels = as_labels(Y)
            if 0 in labels.shape:
                raise ValueError(f"Y must have at least one row and one label, got {labels.shape}.")
            return cls.of_labels(labels.shape[1], column_names(Y)), labels
        names = np.array([str(getattr(Y, "name", None) or "y")])
        is_boolean = np.asarray(Y).dtype == bool and not np.ma.isMaskedArray(Y)
        if classes is None and not is_boolean:  # those are two classes, False and True
            with suppress(ValueError):  # so are -1 and +1 without 0
                return cls(np.array([0, 1]), names), as_labels(Y)
        self = cls(_two_classes(Y if classes is None else classes), names)
        return self, self._encode_vector(Y)

    def check_state(self, n_labels: int) -> None:
        """Validate stored names and classes of so many labels."""
        check_instance("names", self.names, np.ndarray)
        check_instance("classes", self.classes, np.ndarray)
        is_text = self.names.dtype.kind == "U" and self.names.shape == (n_labels,)
        if not is_text or any("\0" in name for name in self.names.tolist()):
            raise ValueError(f"label names must be {n_labels} strings.")
        if self.classes.ndim == 2 and self.classes.tolist() == [[0, 1]] * n_labels:
            return
        values = self.classes.tolist()
        is_vector = self.classes.ndim == 1 and n_labels == 1 and 1 <= len(values) <= 2
        if not is_vector or len(set(values)) < len(values) or any(map(is_missing, values)):
            raise ValueError(f"classes must be one or two different values, got {values!r}.")

    @property
    def n_labels(self) -> int:
        return len(self.names)

    @property
    def is_vector(self) -> bool:
        """True if the labels came as a vector, so that predictions are vectors too."""
        return self.classes.ndim == 1

    def encode(self, Y: Any) -> Labels:
        """Encode the labels of further rows: int8 (n, m), -1 for missing."""
        if self.is_vector and _is_vector(Y) and self.classes.tolist() != [0, 1]:
            return self._encode_vector(Y)
        if are_label_sets(Y):
            return labels_of_sets(Y, self.names.tolist())
        check_names(Y, self.names.tolist(), "Y")
        labels = as_labels(Y, require_zero=False)
        if labels.shape[1] != self.n_labels:
            raise ValueError(
                f"Y must have {plural(self.n_labels, 'label')} as in the first call, got "
                f"{labels.shape[1]}."
            )
        return labels

    def encode_known(self, known: Any, n_rows: int) -> Labels | None:
        """Encode labels answered already; a data frame may hold some of them, in any order."""
        if known is None:
            return None
        labels = as_labels(known, name="known", require_zero=False)
        columns = column_names(known)
        if columns is None:
            if labels.shape != (n_rows, self.n_labels):
                raise ValueError(
                    f"known must have shape {(n_rows, self.n_labels)}, one row per row of X and "
                    f"one column per label, got {labels.shape}."
                )
            return labels
        index_of = {name: j for j, name in enumerate(self.names.tolist())}
        if len(known) != n_rows or not set(columns) <= set(index_of):
            raise ValueError(
                f"known must have one row per row of X ({n_rows}) and labels as columns "
                f"({', '.join(index_of)}), got {plural(len(known), 'row')} and columns {columns}."
            )
        all_labels = np.full((n_rows, self.n_labels), MISSING, dtype=np.int8)
        all_labels[:, [index_of[name] for name in columns]] = labels
        return all_labels

    def decode(self, labels: Labels) -> NDArray[Any]:
        """Decode labels 0 and 1 (n, m) as the user gave them."""
        integers = labels.astype(np.int64)
        if not self.is_vector:
            return integers
        return np.take(self.classes, integers[:, 0], mode="clip")  # a single one is predicted

    def decode_proba(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        """Decode P(Y_j = 1) (n, m), or (n, n_classes) for a vector, as scikit-learn has it."""
        if not self.is_vector:
            return p
        return np.ones((len(p), 1)) if len(self.classes) == 1 else np.hstack([1 - p, p])

    def _encode_vector(self, y: Any) -> Labels:
        values = np.asarray(y)
        unknown = ~np.isin(values, self.classes)
        if unknown.any():
            raise ValueError(
                f"Y must hold {self.classes.tolist()}, the classes seen first; "
                f"got {values[unknown][0]!r}."
            )
        is_one = (values == self.classes[-1]) & (len(self.classes) > 1)
        return np.asarray(is_one[:, None], dtype=np.int8)


def _is_vector(Y: Any) -> bool:
    """Return whether labels are one-dimensional: a single label."""
    if sparse.issparse(Y):
        return False
    try:
        return np.asarray(Y).ndim == 1
    except ValueError:  # ragged, for which as_labels raises
        return False


def _two_classes(y: Any) -> NDArray[Any]:
    """Return the values of a vector, sorted; at most two."""
    values = np.asarray(y)  # may turn missing values into text
    cells = list(y) if isinstance(y, (list, tuple)) else np.asarray(y, dtype=object).tolist()
    if np.ma.is_masked(y) or any(map(is_missing, cells)):
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
