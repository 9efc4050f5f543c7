"""Rows of a table as reviewers see them, with what the model and people say about them."""

import hashlib
import json
import math
import sqlite3
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from credalchain._utils.array_types import BoolArray, IntArray, Labels
from credalchain.explanation.questions import distance_from_half
from credalchain.labels import ABSTAIN, MISSING, is_missing
from credalchain.model_selection import unwrap
from credalchain.promises.classifier import PromisedClassifier
from credalchain.review.store import (
    AnswerStore,
    ReviewError,
    ReviewEvent,
    RowKey,
    StoredReviewEvent,
    current_answers,
    standing,
)

IMAGES = {f".{kind}": f"image/{kind}" for kind in ("png", "jpeg", "gif", "webp", "avif", "bmp")}
IMAGES[".jpg"] = "image/jpeg"
_ROWS_AT_ONCE = 2000  # that are inferred before progress is reported


def row_keys(frame: pd.DataFrame) -> list[RowKey]:
    """Compute a key for every row, by its content.

    It stays the same if rows or columns are moved, rows added, or integers become floats.
    """
    names = sorted(map(str, frame.columns))
    named = {str(name): frame[name].tolist() for name in frame.columns}
    head, seen, keys = "".join(map(_typed, names)), Counter[str](), []
    for cells in zip(*(named[name] for name in names), strict=True):
        content = head + "".join(map(_typed, cells))
        digest = hashlib.blake2b(content.encode("utf-8", "surrogatepass"), digest_size=16)
        text = digest.hexdigest()
        keys.append(RowKey(text, seen[text]))
        seen[text] += 1
    return keys


def _typed(value: Any) -> str:
    """Write a cell so that no other reads the same: its type, its length and its text."""
    kind, text = "text", str(value)
    if is_missing(value):
        kind, text = "missing", ""
    elif isinstance(value, (bool, np.bool_)):
        kind = "boolean"
    elif isinstance(value, (Number, np.number)):
        number: Any = value
        kind, text = "number", str(int(number)) if number % 1 == 0 else repr(float(number))
    return f"{kind}{len(text)}:{text}"


def content_of(frame: pd.DataFrame, row: int) -> dict[str, Any]:
    """Return the cells of a row by name, as JSON can hold them."""
    return {str(name): _plain(frame[name].iloc[row]) for name in frame.columns}


def from_json(contents: list[str]) -> pd.DataFrame:
    """Return a table of rows, each the JSON of :func:`content_of`."""
    cells = pd.DataFrame([json.loads(content) for content in contents], dtype=object)
    return whole_numbers(cells).infer_objects()


def whole_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with integers where missing cells have made, or would make, floats."""
    present = {name: frame[name].dropna().tolist() for name in frame.columns}
    some = {name: cells for name, cells in present.items() if 0 < len(cells) < len(frame)}
    whole = [name for name, cells in some.items() if all(map(_is_whole, cells))]
    return frame.astype(dict.fromkeys(whole, "Int64"))


def _is_whole(value: Any) -> bool:
    if isinstance(value, float):
        return value.is_integer() and abs(value) < 2**53
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


def _plain(value: Any) -> Any:
    if is_missing(value):
        return None
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, (bool, int, float, str)) else str(value)


def shown_cells(
    frame: pd.DataFrame, row: int, columns: list[str], folder: Path | None
) -> list[dict[str, Any]]:
    """Return what a person sees of a row: name, text (None: missing) and kind of each cell."""
    cells = []
    for name in columns:
        value = _plain(frame[name].iloc[row])
        kind = "nothing" if value is None else "number"
        if isinstance(value, str):
            kind = "text"
            if value.startswith(("https://", "http://")) and _is_image(value.partition("?")[0]):
                kind = "address"
            elif image_file(value, folder) is not None:
                kind = "image"
        elif isinstance(value, float):
            value = str(int(value)) if value.is_integer() else f"{value:.10g}"
        cells.append({"name": name, "value": None if value is None else str(value), "kind": kind})
    return cells


def _is_image(name: str) -> bool:
    return Path(name).suffix.lower() in IMAGES


def image_file(value: Any, folder: Path | None) -> Path | None:
    """Return the image that a cell names, if it lies in the folder of the data; else None."""
    if folder is None or not isinstance(value, str) or not _is_image(value):
        return None
    try:
        file = (folder / value).resolve()
        inside = file.is_relative_to(folder.resolve()) and file.is_file()
    except (OSError, ValueError):
        return None
    return file if inside and _is_image(file.name) else None


class ReviewedRows:
    """Rows with the model's labels and people's answers.

    Hold ``lock`` to write, or to read several attributes.

    Parameters
    ----------
    classifier : fitted classifier of this package, or a pipeline that ends in one
    features : data frame of shape (n, p)
        Features that the classifier reads.
    table : data frame of shape (n, any number of columns)
        Columns that people see, for the same rows.
    store : AnswerStore
        Others may write to it meanwhile.
    model : tuple of (str, str)
        The digest and the name of the model's file.
    blind : float
        Share of the answered labels that are asked without a suggestion.
    on_progress : callable, optional
        Called with rows done and all rows while the model answers.

    Attributes
    ----------
    classifier, features : the classifier that decides, and the table as it reaches it
    explained, cells : what was given
    labels, human_labels, first_labels : arrays of shape (n, m)
        Current labels; the last answers of people; the labels of the model before any answer.
    interval : array of shape (n, m, 2)
    blind : bool array of shape (n, m)
        Answered labels that are asked without a suggestion.
    n_open, n_unsettled, n_answered : arrays of shape (n,)
        Labels that people are asked for, that are open, and that people have answered.
    history, answers : dict
        The events of every row and label, and each person's last answer, by person.
    least_distance : array of shape (n,)
        Of the middles of intervals of labels that people are asked for, from one half.
    """

    def __init__(
        self,
        classifier: Any,
        features: pd.DataFrame,
        table: pd.DataFrame,
        store: AnswerStore,
        *,
        model: tuple[str, str],
        blind: float = 0.0,
        on_progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        self.explained, self.cells, self.store = classifier, features, store
        classifier, self.features = unwrap(classifier, features)
        self.classifier = classifier
        self.table = whole_numbers(table)
        self.label_names: list[str] = classifier.label_names_.tolist()
        self._label_of = {name: j for j, name in enumerate(self.label_names)}
        self.model_digest, self.model_file = model
        self._model = store.add_model(*model)
        self.keys = row_keys(table)
        self._row_of = {key: i for i, key in enumerate(self.keys)}
        self.lock = threading.RLock()
        self.history: defaultdict[tuple[RowKey, str], list[StoredReviewEvent]] = defaultdict(list)
        self.answers: dict[tuple[RowKey, str], dict[str, StoredReviewEvent]] = {}
        self.last_event = 0
        n, m = len(features), len(self.label_names)
        self.labels = np.empty((n, m), np.int8)
        self.interval = np.empty((n, m, 2), np.float32)
        self.human_labels = np.full((n, m), MISSING, np.int8)
        self.blind = np.zeros((n, m), bool)
        self.n_open, self.n_unsettled, self.n_answered = np.zeros((3, n), np.int64)
        self.least_distance = np.empty(n)
        for first in range(0, n, _ROWS_AT_ONCE):
            rows = np.arange(first, min(first + _ROWS_AT_ONCE, n))
            self._infer(rows)
            on_progress(int(rows[-1]) + 1, n)
        self.first_labels = self.labels.copy()
        self.completeness_before = float((self.labels != ABSTAIN).mean())
        self.blind_share = blind
        if blind > 0:  # chosen by the rows' hashes: whole rows, or labels one by one
            by_row = isinstance(classifier, PromisedClassifier)  # who promises something about rows
            names = [""] * m if by_row else self.label_names
            for i, key in enumerate(self.keys):
                for j, name in enumerate(names):  # a number from 0 to 1 for each row and label
                    text = f"{key.hash}\x1f{key.occurrence}\x1f{name}".encode()
                    digest = hashlib.blake2b(text, digest_size=7).digest()
                    self.blind[i, j] = int.from_bytes(digest) / 2**56 < blind
        self.sampled_rows: BoolArray = np.asarray(self.blind.all(axis=1))
        self.blind &= (self.labels != ABSTAIN) | self.sampled_rows[:, None]
        self._count(np.arange(n))
        self.sync()

    def _infer(self, rows: IntArray) -> None:
        """Return what the model says about rows, given what people have answered."""
        known = self.human_labels[rows]
        prediction = self.classifier.infer(self.features.iloc[rows], known=known)
        self.labels[rows] = np.where(known != MISSING, known, prediction.labels)
        self.interval[rows] = prediction.interval

    def _count(self, rows: IntArray) -> None:
        is_open = self.open_cells(rows)
        self.n_open[rows] = is_open.sum(axis=1)
        self.n_unsettled[rows] = (self.labels[rows] == ABSTAIN).sum(axis=1)
        self.n_answered[rows] = (self.human_labels[rows] != MISSING).sum(axis=1)
        distance = distance_from_half(self.interval[rows].astype(float))
        self.least_distance[rows] = np.where(is_open, distance, np.inf).min(axis=1)

    def open_cells(self, rows: IntArray) -> BoolArray:
        """Return labels that a person is asked for: left open, or blind; not answered yet."""
        unanswered = self.human_labels[rows] == MISSING
        return np.asarray(unanswered & ((self.labels[rows] == ABSTAIN) | self.blind[rows]))

    def place(self, key: RowKey, name: str) -> tuple[int, int] | None:
        """Return row and label by number; None if they are not in this review."""
        row, label = self._row_of.get(key), self._label_of.get(name)
        return None if row is None or label is None else (row, label)

    @property
    def n_orphans(self) -> int:
        """Answers that belong to rows or labels which are not in this review."""
        with self.lock:
            return sum(bool(self.answers[cell]) and not self.place(*cell) for cell in self.answers)

    def check(self, row: int, label: int = 0) -> None:
        """Raise a ReviewError unless there is such a row, with such a label."""
        if not 0 <= row < len(self.keys):
            raise ReviewError(f"row must be between 0 and {len(self.keys) - 1}, got {row}.")
        if not 0 <= label < len(self.label_names):
            raise ReviewError(
                f"label must be between 0 and {len(self.label_names) - 1}, got {label}."
            )

    def sync(self) -> None:
        """Read the new events of the file of answers."""
        cells, rows = set(), set()
        for event in self.store.events(self.last_event):
            self.last_event = event.id
            self.history[event.row, event.label].append(event)
            cells.add((event.row, event.label))
        for cell in cells:
            people = current_answers(self.history[cell]).get(cell, {})
            self.answers[cell] = people
            place = self.place(*cell)
            if place is not None:
                values = [event.value for event in people.values() if event.value is not None]
                self.human_labels[place] = values[-1] if values else MISSING
                rows.add(place[0])
        if rows:
            changed = np.array(sorted(rows))
            self._infer(changed)
            self._count(changed)

    def answer(
        self, row: int, label: int, value: int | None, who: str, request: str
    ) -> tuple[bool, Labels]:
        """Store an answer (0 or 1) or a skip (None), and infer the row again.

        Return whether it is new, and the labels of the row before.
        """
        with self.lock:
            self.check(row, label)
            self.sync()
            before = self.labels[row].copy()
            return self._append(self._event(row, label, value, who, request), row), before

    def _event(
        self, row: int, label: int, value: int | None, who: str, request: str
    ) -> ReviewEvent:
        """Return an event, with the model's view of the label if nobody has answered it."""
        key, name = self.keys[row], self.label_names[label]
        suggested, (lower, upper) = int(self.labels[row, label]), self.interval[row, label].tolist()
        is_answered = self.human_labels[row, label] != MISSING
        if is_answered:
            known = self.human_labels[[row]]
            known[0, label] = MISSING
            prediction = self.classifier.infer(self.features.iloc[[row]], known=known)
            suggested = int(prediction.labels[0, label])
            lower, upper = prediction.interval[0, label].tolist()
        has_seen = any(event.who == who for event in self.history.get((key, name), ()))
        is_blind = bool(self.blind[row, label]) and not is_answered and not has_seen
        if is_blind:  # what people have said meanwhile is left out
            suggested = int(self.first_labels[row, label])
        return ReviewEvent(
            request, who, "skip" if value is None else "answer", key, name, value,
            None if suggested == ABSTAIN else suggested, lower, upper,
            blind=is_blind and value is not None,
        )  # fmt: skip

    def _append(self, event: ReviewEvent, row: int) -> bool:
        """Store an event; return whether it is new."""
        content = json.dumps(content_of(self.table, row), ensure_ascii=False)
        try:
            is_new = self.store.append(event, model=self._model, row_number=row, content=content)
        except sqlite3.IntegrityError as error:
            raise ReviewError("this answer was already undone.") from error
        self.sync()
        return is_new

    def undo(self, who: str, request: str) -> tuple[int, int, Labels]:
        """Undo the last action of a person; may be repeated without limit.

        Return the row, the label, and the labels of the row before.
        """
        with self.lock:
            self.sync()
            here = [events for cell, events in self.history.items() if self.place(*cell)]
            own = [event for events in here for event in events if event.who == who]
            again = [event for event in own if (event.kind, event.request) == ("undo", request)]
            last = max(again or standing(own), key=lambda event: event.id, default=None)
            if last is None:
                raise ReviewError("there is nothing to undo.")
            row, label = self._row_of[last.row], self._label_of[last.label]
            before = self.labels[row].copy()
            if not again:
                undo = ReviewEvent(request, who, "undo", last.row, last.label, undoes=last.id)
                self._append(undo, row)
            return row, label, before
