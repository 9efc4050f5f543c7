"""Constraints on the labels of a row, such as "rock -> music", written as text."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.array_types import Labels
from credalchain.labels import MISSING

_COUNT = re.compile(r"(at least|at most|exactly) one of (.+)", re.IGNORECASE | re.DOTALL)
_FORMS = "'a -> b', 'at most one of a, b', 'exactly one of a, b' or 'at least one of a, b'"


class Constraint(NamedTuple):
    """Bounds on how many of some labels (their ``columns``) have their ``values``."""

    text: str
    columns: NDArray[np.int64]
    values: NDArray[np.int8]
    least: int
    most: int

    def check_vectors(self, vectors: Labels) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which label vectors (n, m) may, and which surely, meet the constraint.

        Labels that are -1 may be 0 or 1.
        """
        part = vectors[:, self.columns]
        n_true = (part == self.values).sum(axis=1)
        n_possible = n_true + (part == MISSING).sum(axis=1)
        may = (n_true <= self.most) & (n_possible >= self.least)
        return may, (n_possible <= self.most) & (n_true >= self.least)


def infer_known(constraints: Sequence[Constraint], known: Labels) -> Labels:
    """Return known labels (m,), -1 elsewhere, with those that follow from them one by one.

    Nothing follows from labels that contradict a constraint.
    """
    inferred = _infer(constraints, known)
    return known if inferred is None else inferred


def _infer(constraints: Sequence[Constraint], known: Labels) -> Labels | None:
    """Do the same; return None if labels contradict a constraint."""
    known, before = known.copy(), None
    while before is None or (known != before).any():
        before = known.copy()
        for _, columns, values, least, most in constraints:
            n_true = (known[columns] == values).sum()
            unknown = known[columns] == MISSING
            if n_true > most or n_true + unknown.sum() < least:
                return None
            if n_true == most:
                known[columns[unknown]] = 1 - values[unknown]
            elif n_true + unknown.sum() == least:
                known[columns[unknown]] = values[unknown]
    return known


def complete_labels(
    constraints: Sequence[Constraint], known: Labels, preferred: Labels
) -> Labels | None:
    """Return labels (m,) that meet all constraints and have the known values; None if none do.

    Unknown labels, -1, have the ``preferred`` values as far as constraints allow.
    """
    inferred = _infer(constraints, known)
    if inferred is None:
        return None
    found = np.where(inferred == MISSING, preferred, inferred)
    if all(constraint.check_vectors(found[None])[1][0] for constraint in constraints):
        return np.asarray(found)
    j = next(j for c in constraints for j in c.columns if inferred[j] == MISSING)
    for value in (preferred[j], 1 - preferred[j]):
        inferred[j] = value
        completed = complete_labels(constraints, inferred, preferred)
        if completed is not None:
            return completed
    return None


def check_constraints(constraints: Any) -> list[str]:
    """Validate that constraints are several texts."""
    if constraints is None:
        return []
    if not isinstance(constraints, (list, tuple)):
        raise ValueError(f"constraints must be a list of strings, got {constraints!r}.")
    for text in constraints:
        if not isinstance(text, str):
            raise ValueError(f"constraints must be strings such as {_FORMS}, got {text!r}.")
    return [*constraints]


def read_constraints(constraints: Any, names: list[str]) -> list[Constraint]:
    """Read constraints on labels with these names."""
    read = [_read(text, names) for text in check_constraints(constraints)]
    unknown = np.full(len(names), MISSING, dtype=np.int8)
    if complete_labels(read, unknown, np.zeros_like(unknown)) is None:
        raise ValueError(f"constraints must not contradict each other, got {constraints!r}.")
    return read


def _read(text: str, names: list[str]) -> Constraint:
    count = _COUNT.fullmatch(text.strip())
    if count:
        pairs = [_pair(part, text, names) for part in count[2].split(",")]
        least = 0 if count[1].lower() == "at most" else 1
        most = len(pairs) if count[1].lower() == "at least" else 1
    else:  # a -> b is "at least one of not a, b"
        sides = text.split("->")
        if len(sides) != 2:
            raise ValueError(f"constraints must be strings such as {_FORMS}, got {text!r}.")
        (column, value), then = (_pair(side, text, names) for side in sides)
        pairs, least, most = [(column, 1 - value), then], 1, 2
    columns, values = zip(*pairs, strict=True)
    if len(set(columns)) < len(pairs) or len(pairs) < 2:
        raise ValueError(f"a constraint must name two or more different labels, got {text!r}.")
    return Constraint(text, np.array(columns), np.array(values, dtype=np.int8), least, most)


def _pair(part: str, text: str, names: list[str]) -> tuple[int, int]:
    """Return a label's column, and 0 for "not label", else 1."""
    name, value = part.strip(), 1
    if name not in names and name.lower().startswith("not "):
        name, value = name[4:].strip(), 0
    if name not in names:
        raise ValueError(
            f"constraints: {name!r} in {text!r} is not one of the labels {', '.join(names)}."
        )
    return names.index(name), value
