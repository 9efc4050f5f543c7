"""A review: what the model says about every row, what people have answered, and what comes next."""

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from credalchain.bases.protocol import Labels
from credalchain.explanation import explain
from credalchain.labels import ABSTAIN, MISSING
from credalchain.promises.classifier import PromisedClassifier
from credalchain.promises.statistics import interval_of_share
from credalchain.questions import expected_to_settle
from credalchain.review.rows import as_json, row_keys, shown_cells
from credalchain.review.store import (
    AnswerStore,
    Event,
    RowKey,
    StoredEvent,
    standing,
    standing_answers,
)

ORDERS = ("settles most", "least sure", "in order")
LEASE_SECONDS = 300.0
_ROWS_AT_ONCE = 2000  # that are inferred before progress is told
_SECONDS_OF_LOOKING_AHEAD = 0.02  # before a row is given out
_MOST_ROWS_OF_A_LOOK = 16
_RECENT = 3600.0  # seconds that the pace is measured over


class ReviewError(ValueError):
    """A request that cannot be done; it is told to the person."""


@dataclass
class _Person:
    """What one person has passed over, in this run of the server."""

    passed: set[int] = field(default_factory=set)
    skipped: set[tuple[int, int]] = field(default_factory=set)


class ReviewSession:
    """All that the page asks for; the server only carries it.

    Parameters
    ----------
    classifier : fitted classifier of this package
    features : data frame of shape (n, p)
        What the classifier reads.
    table : data frame of shape (n, any number of columns)
        What people see, by the same rows.
    store : AnswerStore
    model : tuple of (str, str)
        The digest and the name of the model's file.
    show : sequence of str
        Columns of ``table`` that people see.
    blind : float
        Share of the answered labels that are asked without a suggestion.
    folder : Path, optional
        Where images lie that cells name.
    on_progress : callable, optional
        Called with rows done and all rows while the model answers.
    """

    def __init__(
        self,
        classifier: Any,
        features: pd.DataFrame,
        table: pd.DataFrame,
        store: AnswerStore,
        *,
        model: tuple[str, str],
        show: Sequence[str],
        blind: float = 0.0,
        folder: Path | None = None,
        on_progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        self.classifier, self.features, self.table, self.store = classifier, features, table, store
        self.show, self.folder = list(show), folder
        self.label_names: list[str] = classifier.label_names_.tolist()
        self.model_digest, self.model_file = model
        self.model_number = store.add_model(*model)
        self.keys = row_keys(table)
        self._row_of = {key: i for i, key in enumerate(self.keys)}
        self._lock = threading.RLock()
        self._people: dict[str, _Person] = {}
        self._leases: dict[int, tuple[str, float]] = {}
        self._events: list[StoredEvent] = []
        self._answers: dict[tuple[RowKey, str], dict[str, StoredEvent]] = {}
        self._times: list[float] = []
        n, m = len(features), len(self.label_names)
        self.labels = np.empty((n, m), np.int8)
        self.interval = np.empty((n, m, 2), np.float32)
        self.person = np.full((n, m), MISSING, np.int8)
        for first in range(0, n, _ROWS_AT_ONCE):
            rows = np.arange(first, min(first + _ROWS_AT_ONCE, n))
            self._infer(rows)
            on_progress(int(rows[-1]) + 1, n)
        self.answered_before = int((self.labels != ABSTAIN).sum())
        self.blind = self._choose_blind(blind)
        self._replay()
        self._open = self._open_cells(np.arange(n)).sum(axis=1)
        self._given = (self.person != MISSING).sum(axis=1)
        self._n_waiting = 0
        self._gain = np.full(n, -np.inf)
        self._to_look_at = np.argsort(-self._open, kind="stable")
        self._looked_at = 0
        self._certainty: NDArray[np.float32] | None = None
        self._check: tuple[int, str] | None = None

    # -- the state -------------------------------------------------------------------------

    def _infer(self, rows: NDArray[np.int64]) -> None:
        """What the model says about rows, given what people have answered."""
        known = self.person[rows]
        found = self.classifier.infer(self.features.iloc[rows], known=known)
        self.labels[rows] = np.where(known != MISSING, known, found.labels)
        self.interval[rows] = found.interval

    def _choose_blind(self, share: float) -> NDArray[np.bool_]:
        """Answered labels to be asked without a suggestion, chosen by the rows' hashes.

        Whole rows where the model has promised something about rows, else labels one by one.
        """
        chosen = np.zeros(self.labels.shape, bool)
        if share > 0:
            by_row = isinstance(self.classifier, PromisedClassifier)
            for i, key in enumerate(self.keys):
                names = [""] * len(self.label_names) if by_row else self.label_names
                chosen[i] = [_uniform(key, name) < share for name in names]
        return np.asarray(chosen & (self.labels != ABSTAIN))

    def _replay(self) -> None:
        """Take up what was answered before."""
        self._events = self.store.events()
        self._answers = standing_answers(self._events)
        self.n_orphans = 0
        places = {name: j for j, name in enumerate(self.label_names)}
        touched = set()
        for (key, label), people in self._answers.items():
            if key not in self._row_of or label not in places:
                self.n_orphans += 1
                continue
            *_, last = people.values()
            assert last.event.value is not None
            self.person[self._row_of[key], places[label]] = last.event.value
            touched.add(self._row_of[key])
        for one in standing(self._events):
            if one.event.kind == "skip" and one.event.row in self._row_of:
                cell = self._row_of[one.event.row], places.get(one.event.label, -1)
                self._person(one.event.who).skipped.add(cell)
        if touched:
            self._infer(np.array(sorted(touched)))

    def _open_cells(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Labels that a person is asked for: left open, or blind; not answered by anybody."""
        unanswered = self.person[rows] == MISSING
        return np.asarray(unanswered & ((self.labels[rows] == ABSTAIN) | self.blind[rows]))

    def _person(self, who: str) -> _Person:
        return self._people.setdefault(who, _Person())

    # -- rows to be reviewed ------------------------------------------------------------------

    def next_row(self, who: str, order: str, *, after: int | None = None) -> dict[str, Any]:
        """Lease the best row to a person; ``after`` is the row that the person leaves."""
        if order not in ORDERS:
            raise ReviewError(f"order must be one of {', '.join(ORDERS)}, got {order!r}.")
        self._n_waiting += 1
        with self._lock:
            self._n_waiting -= 1
            person = self._person(who)
            if after is not None:
                self._leases.pop(after, None)
                person.passed.add(after)
            row = self._best_row(who, order)
            if row is None and person.passed:
                person.passed.clear()  # once more from the beginning
                row = self._best_row(who, order)
            if row is None:
                return {"row": None, "progress": self.progress()}
            self._lease(row, who)
            return self.view(row, who)

    def _best_row(self, who: str, order: str) -> int | None:
        free = self._open > 0
        free[list(self._person(who).passed)] = False
        now = time.monotonic()
        for row, (holder, until) in list(self._leases.items()):
            if until < now:
                del self._leases[row]
            elif holder != who:
                free[row] = False
        if not free.any():
            return None
        if order == "in order":
            return int(np.argmax(free))
        if order == "least sure":
            if self._certainty is None:
                self._certainty = np.abs(self.interval.mean(axis=-1) - 0.5)
            cells = np.where(self._open_cells(np.arange(len(free))), self._certainty, np.inf)
            return int(np.argmin(np.where(free, cells.min(axis=1), np.inf)))
        self._look_ahead()
        gains = np.where(free, self._gain, -np.inf)
        best = int(np.argmax(gains))
        if gains[best] == -np.inf:  # none of them was looked at: those with most open labels
            best = int(np.argmax(np.where(free, self._open, -1)))
        return best

    def _look_ahead(self) -> None:
        """Find out what questions would settle in a few more rows, as long as time allows."""
        began, n_rows = time.monotonic(), 1
        while self._looked_at < len(self._to_look_at) and n_rows >= 1:
            part = self._to_look_at[self._looked_at : self._looked_at + n_rows]
            self._looked_at += len(part)
            part = part[self._open[part] > 0]
            if len(part):
                started = time.monotonic()
                self._gain[part] = self._settles(part).max(axis=1)
                a_row = (time.monotonic() - started) / len(part)
                left = _SECONDS_OF_LOOKING_AHEAD - (time.monotonic() - began)
                n_rows = min(int(left / a_row), _MOST_ROWS_OF_A_LOOK)
            if self._n_waiting > 1:  # others want their rows
                return

    def _settles(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """The lower expectation of what an answer to each label settles, (rows, m)."""
        is_open = self.labels[rows] == ABSTAIN
        found = expected_to_settle(
            self.classifier,
            self.features.iloc[rows],
            self.person[rows],
            is_open,
            self.interval[rows].astype(np.float64),
            np.arange(len(rows)),
        )
        return np.asarray(found[..., 0])

    def _lease(self, row: int, who: str) -> None:
        self._leases[row] = who, time.monotonic() + LEASE_SECONDS

    def view(self, row: int, who: str, before: Labels | None = None) -> dict[str, Any]:
        """A row as the page shows it; ``before`` are its labels before the last answer."""
        with self._lock:
            self._check_row(row)
            cells = self._open_cells(np.array([row]))[0]
            return {
                "row": row,
                "content": shown_cells(self.table.iloc[row], self.show, self.folder),
                "labels": [self._label(row, j, bool(cells[j]), before) for j in range(len(cells))],
                "asked": self._questions(row, who, cells),
                "progress": self.progress(),
            }

    def _label(self, row: int, j: int, is_open: bool, before: Labels | None) -> dict[str, Any]:
        name = self.label_names[j]
        people = self._answers.get((self.keys[row], name), {})
        given = {one.event.who: one.event.value for one in people.values()}
        answer = int(self.labels[row, j])
        hidden = is_open and bool(self.blind[row, j])
        lower, upper = self.interval[row, j].tolist()
        source = "model"
        if self.person[row, j] != MISSING:
            source = "person"
        elif is_open:
            source = "blind" if hidden else "open"
        return {
            "name": name,
            "answer": None if is_open else answer,
            "source": source,
            "lower": None if hidden else round(lower, 4),
            "upper": None if hidden else round(upper, 4),
            "changed": before is not None
            and source != "person"
            and not hidden
            and int(before[j]) != answer,
            "people": given if len(set(given.values())) > 1 else {},
        }

    def _questions(self, row: int, who: str, cells: NDArray[np.bool_]) -> list[int]:
        """Open labels of a row, the best to be asked first; skipped ones last."""
        places = np.flatnonzero(cells)
        if len(places) == 0:
            return []
        gains = self._settles(np.array([row]))[0]
        self._gain[row] = gains.max()
        skipped = self._person(who).skipped
        later = np.array([(row, j) in skipped for j in places.tolist()])
        return [int(j) for j in places[np.lexsort((places, -gains[places], later))]]

    def _check_row(self, row: int) -> None:
        if not 0 <= row < len(self.keys):
            raise ReviewError(f"row must be between 0 and {len(self.keys) - 1}, got {row}.")

    def _check_label(self, label: int) -> None:
        if not 0 <= label < len(self.label_names):
            raise ReviewError(f"there is no label {label}.")

    # -- what people do -------------------------------------------------------------------------

    def answer(
        self, row: int, label: int, value: int | None, who: str, request: str
    ) -> dict[str, Any]:
        """Take an answer (0 or 1) or a skip (None), and think the row over again."""
        with self._lock:
            self._check_row(row)
            self._check_label(label)
            before = self.labels[row].copy()
            event = self._event(row, label, value, who, request)
            if self._append(event, row):
                self._lease(row, who)
                if value is None:
                    self._person(who).skipped.add((row, label))
                else:
                    self.person[row, label] = value
                    self._times.append(time.time())
                    self._think_over(row)
            return self.view(row, who, before)

    def _event(self, row: int, label: int, value: int | None, who: str, request: str) -> Event:
        said = int(self.labels[row, label])
        lower, upper = self.interval[row, label].tolist()
        is_blind = bool(self.blind[row, label]) and self.person[row, label] == MISSING
        return Event(
            request,
            who,
            "skip" if value is None else "answer",
            self.keys[row],
            self.label_names[label],
            value,
            None if said == ABSTAIN or self.person[row, label] != MISSING else said,
            lower,
            upper,
            is_blind,
        )

    def _append(self, event: Event, row: int) -> bool:
        """Whether it is new."""
        content = as_json(self.table.iloc[row])
        number, is_new = self.store.append(
            event, model=self.model_number, row_number=row, content=content
        )
        if is_new:
            self._events.append(StoredEvent(number, "", self.model_digest, event))
            cell = (event.row, event.label)
            if event.kind == "answer":
                people = self._answers.setdefault(cell, {})
                people.pop(event.who, None)
                people[event.who] = self._events[-1]
        return is_new

    def _think_over(self, row: int) -> None:
        rows = np.array([row])
        self._infer(rows)
        if self._certainty is not None:
            self._certainty[row] = np.abs(self.interval[row].mean(axis=-1) - 0.5)
        self._open[row] = self._open_cells(rows).sum()
        self._given[row] = (self.person[row] != MISSING).sum()
        if self._open[row] == 0:
            self._gain[row] = -np.inf

    def undo(self, who: str, request: str) -> dict[str, Any]:
        """Take back what a person did last; as often as one likes."""
        with self._lock:
            mine = [
                one
                for one in standing(self._events)
                if one.event.who == who and one.event.row in self._row_of
            ]
            repeated = any(one.event.request == request for one in self._events)
            if not mine and not repeated:
                raise ReviewError("there is nothing to take back.")
            if repeated:
                last = next(one for one in self._events if one.event.request == request)
                return self.view(self._row_of[last.event.row], who)
            last = mine[-1]
            row = self._row_of[last.event.row]
            before = self.labels[row].copy()
            undo = Event(request, who, "undo", last.event.row, last.event.label, undoes=last.id)
            self._append(undo, row)
            j = self.label_names.index(last.event.label)
            self._person(who).skipped.discard((row, j))
            self._person(who).passed.discard(row)
            self._stand_again(row, j)
            self._lease(row, who)
            return self.view(row, who, before)

    def _stand_again(self, row: int, j: int) -> None:
        """What stands of a label after an event was taken back."""
        key, name = self.keys[row], self.label_names[j]
        of_cell = [one for one in self._events if one.event.row == key and one.event.label == name]
        people = standing_answers(of_cell).get((key, name), {})
        self._answers[key, name] = people
        value = MISSING
        if people:
            *_, last = people.values()
            assert last.event.value is not None
            value = last.event.value
        self.person[row, j] = value
        self._think_over(row)

    # -- what people want to know ------------------------------------------------------------

    def why(self, row: int, label: int) -> dict[str, Any]:
        """Reasons, or training rows that are alike, and what an answer would settle."""
        with self._lock:
            self._check_row(row)
            self._check_label(label)
            if self.blind[row, label] and self.person[row, label] == MISSING:
                raise ReviewError("this label is asked without a suggestion, so without reasons.")
            name = self.label_names[label]
            known = self.person[row][None]
            found = explain(self.classifier, self.features.iloc[[row]], known=known)
        (step,) = [one for one in found.steps if one.label == name]
        return {
            "setting": found.setting,
            "reasons": [
                {"name": " ".join(filter(None, (one.name, one.value))), "lower": one.lower,
                 "upper": one.upper}
                for one in step.reasons[:6]
            ],
            "similar": [
                {"row": one.row, "weight": one.weight, "labels": one.labels_in_words,
                 "in_common": list(one.in_common[:3])}
                for one in found.similar[:5]
            ],
            "settles": [
                {"answer": one.answer, "labels": [list(pair) for pair in one.settles]}
                for one in found.questions
                if one.label == name
            ],
        }  # fmt: skip

    def progress(self) -> dict[str, Any]:
        """How far the review has come."""
        now = time.time()
        recent = [at for at in self._times if at > now - _RECENT]
        pace = 0.0
        if len(recent) > 1:
            pace = 3600.0 * (len(recent) - 1) / max(now - recent[0], 1.0)
        open_cells, n_cells = int(self._open.sum()), max(self.labels.size, 1)
        return {
            "rows": len(self.labels),
            "rows_left": int((self._open > 0).sum()),
            "labels_left": open_cells,
            "answers": int(self._given.sum()),
            "answers_an_hour": round(pace),
            "completeness_before": self.answered_before / n_cells,
            "completeness": 1 - open_cells / n_cells,
        }

    def blind_result(self) -> dict[str, Any]:
        """How often people and the model disagree where people did not see its answer."""
        asked = [
            one.event
            for people in self._answers.values()
            for one in people.values()
            if one.event.blind
        ]
        n_other = sum(event.value != event.suggested for event in asked)
        low, high = interval_of_share(n_other, len(asked))
        return {"asked": len(asked), "disagree": n_other, "low": low, "high": high,
                "check": self._promise_check()}  # fmt: skip

    def _promise_check(self) -> str | None:
        """Whether the model's promise holds, by rows that were asked without suggestions."""
        if not isinstance(self.classifier, PromisedClassifier):
            return None
        complete = self.blind.any(axis=1) & (self.person != MISSING).all(axis=1)
        rows = np.flatnonzero(complete)
        if len(rows) == 0:
            return "no row is checked yet"
        if self._check is None or self._check[0] != len(rows):
            found = self.classifier.check(self.features.iloc[rows], self.person[rows])
            self._check = len(rows), str(found)
        return self._check[1]

    def disagreements(self) -> list[dict[str, Any]]:
        """Where people contradict the model, or each other; the newest first."""
        found = []
        with self._lock:
            for (key, name), people in self._answers.items():
                if key not in self._row_of or name not in self.label_names or not people:
                    continue
                given = {one.event.who: one.event.value for one in people.values()}
                *_, last = people.values()
                said = last.event.suggested
                against_model = said is not None and said != last.event.value
                if against_model or len(set(given.values())) > 1:
                    found.append(
                        {"row": self._row_of[key], "label": name, "people": given,
                         "model": said, "id": last.id}
                    )  # fmt: skip
        return sorted(found, key=lambda one: -one["id"])

    def queue(self, who: str, order: str, at_most: int = 20) -> list[dict[str, Any]]:
        """Rows that come next, with the labels that are open."""
        with self._lock:
            score = self._gain if order == "settles most" else -np.arange(len(self._open))
            score = np.where(self._open > 0, score, -np.inf)
            if order == "settles most":
                score = np.where((self._open > 0) & ~np.isfinite(score), -1.0, score)
            rows = np.argsort(-score, kind="stable")[:at_most]
            rows = rows[self._open[rows] > 0]
            cells = self._open_cells(rows)
            return [
                {"row": int(row), "open": [self.label_names[j] for j in np.flatnonzero(one)]}
                for row, one in zip(rows.tolist(), cells, strict=True)
            ]


def _uniform(key: RowKey, name: str) -> float:
    """A number from 0 to 1 that belongs to a row and a label."""
    text = f"{key.hash}\x1f{key.occurrence}\x1f{name}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=7).digest()) / 2**56
