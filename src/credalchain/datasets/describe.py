"""What columns of a table hold, in words, and what to think about before learning from them."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from credalchain import preprocessing
from credalchain.labels import LABEL_WORDS, MISSING, as_labels, column_names

_MANY_CATEGORIES = 100
# digits with marks around and between them; dates are not
_NUMBER = re.compile(r"[^\w\d]{0,2}\d{1,3}([.,' ]?\d{3})*([.,]\d+)?\s*([%‰°€$£]|[A-Za-z]{2,3})?")
_MOSTLY = 0.9
RARE = 10  # rows with an answer, below which little can be learned


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
    is_used : bool
        False for names, free text, row numbers and columns without values: the command line
        leaves them out unless told otherwise.
    """

    name: str
    kind: str
    missing: float
    n_distinct: int
    note: str
    is_used: bool = True


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
    return [_feature(str(name), column) for name, column in preprocessing.named_columns(X)]


def _feature(name: str, column: Any) -> Feature:
    values = np.asarray(column)
    keys, missing = preprocessing.values_and_missing(values, name)
    present = keys[~missing]
    n, share = len(values), float(np.mean(missing)) if len(values) else 0.0
    if len(present) == 0:
        return Feature(name, "nothing", share, 0, "no values", is_used=False)
    distinct = np.unique(present)
    n_distinct = len(distinct)
    note = "the same in all rows: it says nothing" if n_distinct == 1 else ""
    if keys.dtype.kind == "f":
        all_differ = n >= preprocessing.FEW_ROWS and n_distinct == len(present) == n
        counts_rows = all_differ and np.ptp(np.diff(present)) == 0
        if counts_rows:
            note = "counts the rows, like an index"
        elif all_differ and (present == np.floor(present)).all():
            note = "whole numbers that all differ, like those of customers or orders"
        return Feature(name, "numbers", share, n_distinct, note, is_used=not counts_rows)
    like_names = preprocessing.looks_like_identifiers(n_distinct, len(present))
    some = list(map(str, distinct[:1000]))
    words = {str(text).strip().lower() for text in distinct}
    if sum(_NUMBER.fullmatch(text) is not None for text in some) > _MOSTLY * len(some):
        note = "numbers with %, units or thousands separators, perhaps: they are taken as texts"
    elif like_names:
        note = "more than half as many different texts as rows, like names, dates or free text"
    elif words <= {*LABEL_WORDS} and {LABEL_WORDS[word] for word in words} >= {0, 1}:
        note = "yes and no: a label, perhaps, that --labels does not name"
    elif n_distinct > _MANY_CATEGORIES:
        note = f"{n_distinct} categories, most of them rare"
    return Feature(name, "categories", share, n_distinct, note, is_used=not like_names)


def describe_labels(Y: Any) -> list[Label]:
    """Of each column of labels."""
    labels = as_labels(Y, require_zero=False)
    names = column_names(Y) or [f"label{j}" for j in range(labels.shape[1])]
    counts = np.stack([(labels == value).sum(axis=0) for value in (1, 0, MISSING)], axis=1)
    described = []
    for name, (n_yes, n_no, n_missing) in zip(names, counts.tolist(), strict=True):
        rare, note = min(n_yes, n_no), ""
        if n_yes + n_no == 0:
            note = "never observed: it will be left open in every row"
        elif rare == 0:
            note = (
                f"always {'no' if n_yes == 0 else 'yes'}: the other answer cannot be learned (a "
                "chain leaves it open), and it does not count in shares of labels answered"
            )
        elif rare < RARE:
            rows = "1 row is" if rare == 1 else f"{rare} rows are"
            note = f"only {rows} {'yes' if n_yes < n_no else 'no'}"
        described.append(Label(name, n_yes, n_no, n_missing, note))
    return described
