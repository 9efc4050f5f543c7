"""Encode and decode labels: matrices of 0 and 1, or a vector of any two values."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets

from credalchain.array_types import Labels
from credalchain.labels import (
    MISSING,
    are_label_sets,
    as_labels,
    check_names,
    column_names,
    is_missing,
    labels_of_sets,
)
from credalchain.text import plural
from credalchain.validation import check_instance


@dataclass(frozen=True, eq=False)
class Targets:
    """Classes and names of the labels.

    ``classes`` is (m, 2), or the values of the vector if the labels came as one; ``names`` (m,).
    """

    classes: NDArray[Any]
    names: NDArray[np.str_]

    @classmethod
    def of_labels(cls, n_labels: int, names: list[str] | None = None) -> "Targets":
        """Labels 0 and 1, with names or without."""
        if names is not None and len(set(names)) < len(names):
            duplicate = next(name for name in names if names.count(name) > 1)
            raise ValueError(
                f"label names must be different from each other, got {duplicate!r} twice."
            )
        numbered = [f"label{j}" for j in range(n_labels)]
        return cls(np.tile([0, 1], (n_labels, 1)), np.array(numbered if names is None else names))

    @classmethod
    def learn(cls, Y: Any, classes: Any = None) -> tuple["Targets", Labels]:
        """From the labels of the first rows, and these labels as int8 (n, m)."""
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
        if classes is not None or not _is_label_vector(Y):
            self = cls(_two_classes(Y if classes is None else classes), names)
            return self, self._encode_vector(Y)
        return cls(np.array([0, 1]), names), as_labels(Y)

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
        """Whether the labels came as a vector, so that predictions are vectors too."""
        return self.classes.ndim == 1

    def encode(self, Y: Any) -> Labels:
        """Labels of further rows: int8 (n, m), -1 for missing."""
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
        """Labels that were answered already; a data frame may hold some of them, in any order."""
        if known is None:
            return None
        columns = column_names(known)
        if columns is not None:
            return self._encode_known_columns(known, columns, n_rows)
        labels = as_labels(known, name="known", require_zero=False)
        if labels.shape != (n_rows, self.n_labels):
            raise ValueError(
                f"known must have shape {(n_rows, self.n_labels)}, one row per row of X and one "
                f"column per label, got {labels.shape}."
            )
        return labels

    def decode(self, labels: Labels) -> NDArray[Any]:
        """Labels 0 and 1 (n, m) as the user gave them."""
        integers = labels.astype(np.int64)
        if not self.is_vector:
            return integers
        return np.take(
            self.classes, integers[:, 0], mode="clip"
        )  # a single class is always predicted

    def decode_proba(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(Y_j = 1) (n, m), or (n, n_classes) for a vector, as scikit-learn has it."""
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

    def _encode_known_columns(self, known: Any, columns: list[str], n_rows: int) -> Labels:
        label_index = {name: j for j, name in enumerate(self.names.tolist())}
        unknown = [name for name in columns if name not in label_index]
        if unknown or len(known) != n_rows:
            raise ValueError(
                f"known must have one row per row of X ({n_rows}) and labels as columns "
                f"({', '.join(label_index)}), got {plural(len(known), 'row')} and "
                f"columns {columns}."
            )
        labels = np.full((n_rows, self.n_labels), MISSING, dtype=np.int8)
        known_labels = as_labels(known, name="known", require_zero=False)
        labels[:, [label_index[name] for name in columns]] = known_labels
        return labels


def _is_vector(Y: Any) -> bool:
    """One-dimensional: a single label."""
    if sparse.issparse(Y):
        return False
    try:
        return np.asarray(Y).ndim == 1
    except ValueError:  # ragged, for which as_labels raises
        return False


def _is_label_vector(y: Any) -> bool:
    """0, 1 and missing only: read as labels. -1 and +1 without 0 are two classes."""
    if np.asarray(y).dtype == bool and not np.ma.isMaskedArray(y):
        return False  # two classes, False and True
    try:
        as_labels(y)
    except ValueError:
        return False
    return True


def _has_missing(y: Any) -> bool:
    """Whether a vector has missing values; checked before numpy converts it to text."""
    cells = list(y) if isinstance(y, (list, tuple)) else np.asarray(y, dtype=object).tolist()
    return any(is_missing(cell) for cell in cells)


def _two_classes(y: Any) -> NDArray[Any]:
    """The values of a vector, sorted; at most two."""
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
