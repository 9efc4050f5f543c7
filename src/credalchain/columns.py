"""What columns of a table hold, in words, and what to think about before learning from them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from credalchain.labels import MISSING, as_labels, column_names
from credalchain.preprocessing import keys_of, named_columns

_MANY = 0.5  # of the rows have a value of their own: names or free text
_FEW_ROWS = 20  # below this nothing is said about such shares
_MANY_CATEGORIES = 100
_RARE = 5  # rows with a label, below which little can be learned


@dataclass(frozen=True)
class Feature:
    """A column of features.

    Attributes
    ----------
    name : str
    kind : {"numbers", "categories", "nothing"}
    missing : float
        Share of the rows.
    n_distinct : int
    note : str
        What to think about, "" if nothing.
    """

    name: str
    kind: str
    missing: float
    n_distinct: int
    note: str


@dataclass(frozen=True)
class Label:
    """A column of labels: how often yes, no and missing, and what to think about."""

    name: str
    n_yes: int
    n_no: int
    n_missing: int
    note: str


def describe_features(X: Any) -> list[Feature]:
    """Of each column of a data frame or array."""
    return [_feature(str(name), column) for name, column in named_columns(X)]


def _feature(name: str, column: Any) -> Feature:
    values = np.asarray(column)
    keys, missing = keys_of(values, name)
    present = keys[~missing]
    n, share = len(values), float(np.mean(missing)) if len(values) else 0.0
    if len(present) == 0:
        return Feature(name, "nothing", share, 0, "no values: it is not used")
    n_distinct = len(np.unique(present))
    is_text = keys.dtype.kind != "f"
    kind = "categories" if is_text else "numbers"
    return Feature(name, kind, share, n_distinct, _feature_note(present, n_distinct, n, is_text))


def _feature_note(present: Any, n_distinct: int, n: int, is_text: bool) -> str:
    if n_distinct == 1:
        return "the same in all rows: it says nothing"
    if is_text and n >= _FEW_ROWS and n_distinct > _MANY * len(present):
        return "nearly every row has its own value, like a name, a date or free text: --ignore it"
    if is_text and n_distinct > _MANY_CATEGORIES:
        return f"{n_distinct} categories, most of them rare"
    if not is_text and n >= _FEW_ROWS and n_distinct == len(present) == n:
        steps = np.diff(present.astype(float))
        if (steps == steps[0]).all():
            return "counts the rows, like an index: --ignore it"
    return ""


def describe_labels(Y: Any) -> list[Label]:
    """Of each column of labels."""
    labels = as_labels(Y, require_zero=False)
    names = column_names(Y) or [f"label{j}" for j in range(labels.shape[1])]
    return [_label(name, labels[:, j]) for j, name in enumerate(names)]


def _label(name: str, values: Any) -> Label:
    n_yes, n_no = int((values == 1).sum()), int((values == 0).sum())
    n_missing = int((values == MISSING).sum())
    note = ""
    if n_yes + n_no == 0:
        note = "never observed: it will be left open in every row"
    elif n_yes == 0 or n_no == 0:
        word = "no" if n_yes == 0 else "yes"
        note = f"always {word}: nothing can be learned about the other answer"
    elif min(n_yes, n_no) < _RARE:
        note = f"only {min(n_yes, n_no)} rows are {'yes' if n_yes < n_no else 'no'}"
    return Label(name, n_yes, n_no, n_missing, note)
