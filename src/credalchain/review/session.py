"""A review: what the model says about every row, what people have answered, and what comes next."""

import hashlib
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from credalchain._utils.array_types import Labels
from credalchain.explanation.explainer import explain
from credalchain.explanation.questions import expected_to_settle
from credalchain.labels import ABSTAIN, MISSING
from credalchain.promises.classifier import PromisedClassifier
from credalchain.promises.statistics import interval_of_share
from credalchain.review.rows import as_json, row_keys, shown_cells, whole_numbers
from credalchain.review.store import (
    AnswersFileError,
    AnswerStore,
    ReviewEvent,
    RowKey,
    StoredReviewEvent,
    current_answers,
    standing,
)

ORDERS = ("settles most", "least sure", "in order")
LEASE_SECONDS = 300.0
_ROWS_AT_ONCE = 2000  # that are inferred before progress is told
_SECONDS_OF_LOOKING_AHEAD = 0.02  # before a row is given out
_MAX_ROWS_PER_LOOK_AHEAD = 16
_PACE_WINDOW_SECONDS = 3600.0  # over which the pace is measured
_MIN_PACE_SECONDS = 180.0  # before it is shown


class ReviewError(ValueError):
    """A request that cannot be done; it is told to the person."""


@dataclass
class _ReviewerState:
    """What one person has passed over, in this run of the server, and the order of their choice."""

    passed: set[int] = field(default_factory=set)
    skipped: set[tuple[int, int]] = field(default_factory=set)
    touched: set[tuple[int, int]] = field(default_factory=set)  # what the model says was shown
    order: str = ORDERS[0]
    n_served: int = 0


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
        Others may write to it meanwhile.
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
        self.classifier, self.features, self.store = classifier, features, store
        self.table = whole_numbers(table)
        self.show, self.folder = list(show), folder
        self.label_names: list[str] = classifier.label_names_.tolist()
        self._label_of = {name: j for j, name in enumerate(self.label_names)}
        self.model_digest, self.model_file = model
        self.model_number = store.add_model(*model)
        self.keys = row_keys(table, store.version)
        self._row_of = {key: i for i, key in enumerate(self.keys)}
        self._lock = threading.RLock()
        self._reviewers: dict[str, _ReviewerState] = {}
        self._leases: dict[int, tuple[str, float]] = {}
        self._events: list[StoredReviewEvent] = []
        self._answers: dict[tuple[RowKey, str], dict[str, StoredReviewEvent]] = {}
        self._answer_times: list[float] = []
        n, m = len(features), len(self.label_names)
        self.labels = np.empty((n, m), np.int8)
        self.interval = np.empty((n, m, 2), np.float32)
        self.human_labels = np.full((n, m), MISSING, np.int8)
        for first in range(0, n, _ROWS_AT_ONCE):
            rows = np.arange(first, min(first + _ROWS_AT_ONCE, n))
            self._infer(rows)
            on_progress(int(rows[-1]) + 1, n)
        self.first_labels = self.labels.copy()  # before anybody was asked
        self._completeness_before = float((self.labels != ABSTAIN).mean())
        self.blind_share = blind
        self.blind = self._choose_blind(blind)
        self._n_open = np.zeros(n, np.int64)
        self._n_unsettled = np.zeros(n, np.int64)
        self._n_answered = np.zeros(n, np.int64)
        self._gain = np.full(n, -np.inf)
        self._certainty: NDArray[np.float32] | None = None
        self._n_waiting = 0
        self._check: tuple[int, str] | None = None
        self._count_cells(np.arange(n))
        self._sync_from_store()
        self._look_ahead_rows = np.argsort(-self._n_open, kind="stable")
        self._n_looked_at = 0

    # -- the state -------------------------------------------------------------------------

    def _infer(self, rows: NDArray[np.int64]) -> None:
        """What the model says about rows, given what people have answered."""
        known = self.human_labels[rows]
        prediction = self.classifier.infer(self.features.iloc[rows], known=known)
        self.labels[rows] = np.where(known != MISSING, known, prediction.labels)
        self.interval[rows] = prediction.interval

    def _choose_blind(self, share: float) -> NDArray[np.bool_]:
        """Answered labels to be asked without a suggestion, chosen by the rows' hashes.

        Whole rows where the model has promised something about rows, else labels one by one.
        """
        chosen = np.zeros(self.labels.shape, bool)
        if share > 0:
            by_row = isinstance(self.classifier, PromisedClassifier)
            names = [""] * len(self.label_names) if by_row else self.label_names
            for i, key in enumerate(self.keys):
                chosen[i] = [_uniform(key, name) < share for name in names]
        self.sampled_rows = chosen.all(axis=1)
        return np.asarray(chosen & (self.labels != ABSTAIN))

    def _sync_from_store(self) -> None:
        """Take up what was answered before, and what others have written to the file."""
        last = self._events[-1].id if self._events else 0
        new_events = self.store.events(last)
        if not new_events:
            return
        self._events += new_events
        cells = {(stored.event.row, stored.event.label) for stored in new_events}
        for stored in new_events:
            self._remember(stored.event)
        self._apply_answers(cells)

    def _remember(self, event: ReviewEvent) -> None:
        """What a person has passed over, and seen."""
        cell = self._cell(event)
        if cell is None:
            return
        person = self._reviewer(event.who)
        person.touched.add(cell)
        if event.kind == "skip":
            person.skipped.add(cell)
        if event.kind == "undo":
            person.skipped.discard(cell)

    def _cell(self, event: ReviewEvent) -> tuple[int, int] | None:
        """Row and label of an event; None if they are not in this review."""
        row, label = self._row_of.get(event.row), self._label_of.get(event.label)
        return None if row is None or label is None else (row, label)

    def _apply_answers(self, cells: set[tuple[RowKey, str]]) -> None:
        """What stands of some cells after their last events, and what follows for their rows."""
        answers = current_answers(
            [stored for stored in self._events if (stored.event.row, stored.event.label) in cells]
        )
        rows = set()
        for key, name in cells:
            people = answers.get((key, name), {})
            self._answers[key, name] = people
            row, label = self._row_of.get(key), self._label_of.get(name)
            if row is None or label is None:
                continue
            value = MISSING
            if people:
                *_, last = people.values()
                assert last.event.value is not None
                value = last.event.value
            self.human_labels[row, label] = value
            rows.add(row)
        if rows:
            self._refresh_rows(np.array(sorted(rows)))

    def _refresh_rows(self, rows: NDArray[np.int64]) -> None:
        self._infer(rows)
        if self._certainty is not None:
            self._certainty[rows] = np.abs(self.interval[rows].mean(axis=-1) - 0.5)
        self._count_cells(rows)

    def _count_cells(self, rows: NDArray[np.int64]) -> None:
        self._n_open[rows] = self._open_cells(rows).sum(axis=1)
        self._n_unsettled[rows] = (self.labels[rows] == ABSTAIN).sum(axis=1)
        self._n_answered[rows] = (self.human_labels[rows] != MISSING).sum(axis=1)
        self._gain[rows[self._n_open[rows] == 0]] = -np.inf

    def _open_cells(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Labels that a person is asked for: left open, or blind; not answered by anybody."""
        unanswered = self.human_labels[rows] == MISSING
        return np.asarray(unanswered & ((self.labels[rows] == ABSTAIN) | self.blind[rows]))

    def _reviewer(self, who: str) -> _ReviewerState:
        return self._reviewers.setdefault(who, _ReviewerState())

    @property
    def n_orphans(self) -> int:
        """Answers that belong to rows or labels which are not in this review."""
        return sum(
            bool(people) and (key not in self._row_of or name not in self._label_of)
            for (key, name), people in self._answers.items()
        )

    # -- rows to be reviewed ------------------------------------------------------------------

    def next_row(self, who: str, order: str, *, after: int | None = None) -> dict[str, Any]:
        """Lease the best row to a person; ``after`` is the row that the person leaves."""
        if order not in ORDERS:
            raise ReviewError(f"order must be one of {', '.join(ORDERS)}, got {order!r}.")
        self._n_waiting += 1
        with self._lock:
            self._n_waiting -= 1
            self._sync_from_store()
            person = self._reviewer(who)
            person.order = order
            if after is not None:
                self._check_row(after)
                if self._holder(after) == who:
                    del self._leases[after]
                person.passed.add(after)
            row = self._best_row(who, order)
            if row is None and person.passed:
                person.passed.clear()  # once more from the beginning
                row = self._best_row(who, order)
            if row is None:
                return {"row": None, "progress": self.progress()}
            person.n_served += 1
            self._lease(row, who)
            return self.view(row, who)

    def open_row(self, row: int, who: str) -> dict[str, Any]:
        """Lease a row that a person wants to see."""
        with self._lock:
            self._check_row(row)
            self._sync_from_store()
            if self._holder(row) not in (None, who):
                raise ReviewError(f"row {row} is with {self._holder(row)} now.")
            self._lease(row, who)
            return self.view(row, who)

    def _free_rows(self, who: str) -> NDArray[np.bool_]:
        """Rows with open labels that nobody else has and the person has not passed."""
        free = self._n_open > 0
        free[list(self._reviewer(who).passed)] = False
        for row in list(self._leases):
            if self._holder(row) not in (None, who):
                free[row] = False
        return np.asarray(free)

    def _best_row(self, who: str, order: str) -> int | None:
        free = self._free_rows(who)
        if not free.any():
            return None
        own_leases = [row for row in self._leases if self._holder(row) == who and free[row]]
        if own_leases:
            return own_leases[-1]
        blind = free & self.blind.any(axis=1) if self.blind_share > 0 else free
        if self.blind_share > 0 and blind.any():
            every = max(2, round(1 / self.blind_share))
            if self._reviewer(who).n_served % every == 0:  # so that they come at their share
                return int(np.argmax(blind))
        score = self._scores(order)
        return int(np.argmax(np.where(free, score, -np.inf)))

    def _scores(self, order: str) -> NDArray[np.float64]:
        """Rows with open labels by how soon they come, (n,)."""
        n = len(self._n_open)
        if order == "in order":
            return -np.arange(n, dtype=float)
        if order == "least sure":
            if self._certainty is None:
                self._certainty = np.abs(self.interval.mean(axis=-1) - 0.5)
            cells = np.where(self._open_cells(np.arange(n)), self._certainty, np.inf)
            return np.asarray(-cells.min(axis=1), dtype=float)
        self._look_ahead()
        # rows that were not looked at yet come after all others, those with most open labels first
        return np.where(np.isfinite(self._gain), self._gain, self._n_open / (2.0 * n + 1) - 1)

    def _look_ahead(self) -> None:
        """Find out what questions would settle in a few more rows, as long as time allows."""
        began, n_rows = time.monotonic(), 1
        while self._n_looked_at < len(self._look_ahead_rows) and n_rows >= 1:
            part = self._look_ahead_rows[self._n_looked_at : self._n_looked_at + n_rows]
            self._n_looked_at += len(part)
            part = part[self._n_open[part] > 0]
            if len(part):
                started = time.monotonic()
                self._gain[part] = self._settles(part).max(axis=1)
                seconds_per_row = (time.monotonic() - started) / len(part)
                left = _SECONDS_OF_LOOKING_AHEAD - (time.monotonic() - began)
                n_rows = min(int(left / seconds_per_row), _MAX_ROWS_PER_LOOK_AHEAD)
            if self._n_waiting > 0:  # others want their rows
                return

    def _settles(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """The lower expectation of what an answer to each label settles, (rows, m)."""
        is_open = self.labels[rows] == ABSTAIN
        expected = expected_to_settle(
            self.classifier,
            self.features.iloc[rows],
            self.human_labels[rows],
            is_open,
            self.interval[rows].astype(np.float64),
            np.arange(len(rows)),
        )
        return np.asarray(expected[..., 0])

    def _lease(self, row: int, who: str) -> None:
        self._leases.pop(row, None)
        self._leases[row] = who, time.monotonic() + LEASE_SECONDS

    def _holder(self, row: int) -> str | None:
        """Who has a row."""
        who, until = self._leases.get(row, ("", 0.0))
        if until < time.monotonic():
            self._leases.pop(row, None)
            return None
        return who

    def view(self, row: int, who: str, before: Labels | None = None) -> dict[str, Any]:
        """A row as the page shows it; ``before`` are its labels before the last answer."""
        with self._lock:
            self._check_row(row)
            cells = self._open_cells(np.array([row]))[0]
            return {
                "row": row,
                "content": shown_cells(self.table, row, self.show, self.folder),
                "labels": [self._label(row, j, bool(cells[j]), before) for j in range(len(cells))],
                "asked": self._questions(row, who, cells),
                "progress": self.progress(),
            }

    def _label(self, row: int, j: int, is_open: bool, before: Labels | None) -> dict[str, Any]:
        name = self.label_names[j]
        people = self._answers.get((self.keys[row], name), {})
        answer_of = {stored.event.who: stored.event.value for stored in people.values()}
        answer = int(self.labels[row, j])
        hidden = is_open and bool(self.blind[row, j])
        lower, upper = self.interval[row, j].tolist()
        source = "model"
        if self.human_labels[row, j] != MISSING:
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
            "people": answer_of if len(set(answer_of.values())) > 1 else {},
        }

    def _questions(self, row: int, who: str, cells: NDArray[np.bool_]) -> list[int]:
        """Open labels of a row, the best to be asked first.

        Those asked without a suggestion come before, so that nothing has been seen; skipped ones
        come last.
        """
        indices = np.flatnonzero(cells)
        if len(indices) == 0:
            return []
        person = self._reviewer(who)
        if person.order == "settles most":
            gains = self._settles(np.array([row]))[0]
            self._gain[row] = gains.max()
            rank = -gains[indices]
        elif person.order == "least sure":
            rank = np.abs(self.interval[row, indices].mean(axis=-1) - 0.5)
        else:
            rank = indices.astype(float)
        later = np.array([(row, j) in person.skipped for j in indices.tolist()])
        shown = ~self.blind[row, indices]
        return [int(j) for j in indices[np.lexsort((indices, rank, shown, later))]]

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
        """Take an answer (0 or 1) or a skip (None), and infer the row again."""
        with self._lock:
            self._check_row(row)
            self._check_label(label)
            self._sync_from_store()
            before = self.labels[row].copy()
            event = self._event(row, label, value, who, request)
            if self._append(event, row):
                self._lease(row, who)
                if value is not None:
                    self._answer_times.append(time.monotonic())
            return self.view(row, who, before)

    def _event(
        self, row: int, label: int, value: int | None, who: str, request: str
    ) -> ReviewEvent:
        """With what the model says of the label if nobody has answered it."""
        suggested, (lower, upper) = int(self.labels[row, label]), self.interval[row, label].tolist()
        if self.human_labels[row, label] != MISSING:
            known = self.human_labels[[row]].copy()
            known[0, label] = MISSING
            prediction = self.classifier.infer(self.features.iloc[[row]], known=known)
            suggested, (lower, upper) = (
                int(prediction.labels[0, label]),
                prediction.interval[0, label].tolist(),
            )
        is_blind = (
            bool(self.blind[row, label])
            and self.human_labels[row, label] == MISSING
            and (row, label) not in self._reviewer(who).touched
        )
        if is_blind:  # what people have said meanwhile is left out
            suggested = int(self.first_labels[row, label])
        return ReviewEvent(
            request,
            who,
            "skip" if value is None else "answer",
            self.keys[row],
            self.label_names[label],
            value,
            None if suggested == ABSTAIN else suggested,
            lower,
            upper,
            is_blind and value is not None,
        )

    def _append(self, event: ReviewEvent, row: int) -> bool:
        """Whether it is new."""
        try:
            _, is_new = self.store.append(
                event,
                model=self.model_number,
                row_number=row,
                content=as_json(self.table, row),
            )
        except sqlite3.IntegrityError as error:
            raise ReviewError("this was taken back already.") from error
        except AnswersFileError:
            raise
        except ValueError as error:
            raise ReviewError(str(error)) from error
        self._sync_from_store()
        return is_new

    def undo(self, who: str, request: str) -> dict[str, Any]:
        """Take back what a person did last; as often as one likes."""
        with self._lock:
            self._sync_from_store()
            for stored in self._events:
                given = stored.event
                if (given.request, given.who, given.kind) == (request, who, "undo"):  # again
                    cell = self._cell(given)
                    assert cell is not None
                    return self.view(cell[0], who)
            own_events = [
                stored
                for stored in standing(self._events)
                if stored.event.who == who and self._cell(stored.event) is not None
            ]
            if not own_events:
                raise ReviewError("there is nothing to take back.")
            last = own_events[-1]
            row = self._row_of[last.event.row]
            before = self.labels[row].copy()
            self._reviewer(who).passed.discard(row)
            undo = ReviewEvent(
                request, who, "undo", last.event.row, last.event.label, undoes=last.id
            )
            self._append(undo, row)
            self._lease(row, who)
            label = self._label_of[last.event.label]
            return {**self.view(row, who, before), "label": label}

    # -- what people want to know ------------------------------------------------------------

    def why(self, row: int, label: int) -> dict[str, Any]:
        """Reasons, or training rows that are alike, and what an answer would settle."""
        with self._lock:
            self._check_row(row)
            self._check_label(label)
            hidden = self.blind[row] & (self.human_labels[row] == MISSING)
            if hidden[label]:
                raise ReviewError("this label is asked without a suggestion, so without reasons.")
            name = self.label_names[label]
            known = self.human_labels[row][None]
            features = self.features.iloc[[row]]
            explanation = explain(self.classifier, features, known=known, labels=[label])
        secret = {self.label_names[j] for j in np.flatnonzero(hidden)}
        (step,) = [s for s in explanation.steps if s.label == name]
        reasons = [
            reason
            for reason in step.reasons
            if reason.source != "label" or reason.name not in secret
        ]
        return {
            "setting": explanation.setting,
            "reasons": [
                {"name": " ".join(filter(None, (reason.name, reason.value))),
                 "lower": _finite(reason.lower), "upper": _finite(reason.upper)}
                for reason in reasons[:6]
            ],
            "similar": [
                {"row": similar.row, "weight": similar.weight, "labels": similar.labels_as_text,
                 "in_common": list(similar.in_common[:3])}
                for similar in explanation.similar[:5]
            ],
            "settles": [
                {"answer": question.answer,
                 "labels": [list(pair) for pair in question.settles if pair[0] not in secret]}
                for question in explanation.questions
                if question.label == name
            ],
        }  # fmt: skip

    def progress(self) -> dict[str, Any]:
        """How far the review has come."""
        now = time.monotonic()
        recent = [
            answered_at
            for answered_at in self._answer_times
            if answered_at > now - _PACE_WINDOW_SECONDS
        ]
        pace = None
        if recent and now - recent[0] >= _MIN_PACE_SECONDS:
            pace = round(3600.0 * len(recent) / (now - recent[0]))
        n_cells = max(self.labels.size, 1)
        return {
            "rows": len(self.labels),
            "rows_left": int((self._n_open > 0).sum()),
            "labels_left": int(self._n_open.sum()),
            "answers": int(self._n_answered.sum()),
            "answers_an_hour": pace,
            "completeness_before": self._completeness_before,
            "completeness": 1 - int(self._n_unsettled.sum()) / n_cells,
        }

    def _blind_answers(self) -> dict[tuple[int, int, str], ReviewEvent]:
        """Each person's answers to labels of this model whose suggestion they had not seen."""
        answers: dict[tuple[int, int, str], ReviewEvent] = {}
        for stored in standing(self._events):
            cell = self._cell(stored.event)
            if stored.event.blind and stored.model == self.model_digest and cell is not None:
                answers.setdefault((*cell, stored.event.who), stored.event)
        return answers

    def blind_result(self) -> dict[str, Any]:
        """How often people and the model disagree where people did not see its answer."""
        with self._lock:
            asked = self._blind_answers()
            n_other = sum(event.value != event.suggested for event in asked.values())
            low, high = interval_of_share(n_other, len(asked))
            check = self._promise_check(asked)
        return {"asked": len(asked), "disagree": n_other, "low": low, "high": high, "check": check}

    def _promise_check(self, asked: dict[tuple[int, int, str], ReviewEvent]) -> str | None:
        """Whether the model's promise holds, by rows that were asked without suggestions."""
        if not isinstance(self.classifier, PromisedClassifier) or not self.sampled_rows.any():
            return None
        was_asked = np.zeros(self.blind.shape, bool)
        for row, label, _ in asked:
            was_asked[row, label] = True
        complete = self.sampled_rows & (self.human_labels != MISSING).all(axis=1)
        rows = np.flatnonzero(complete & (was_asked | ~self.blind).all(axis=1))
        if len(rows) == 0:
            return "no row is checked yet"
        last = self._events[-1].id
        if self._check is None or self._check[0] != last:
            check = self.classifier.check(self.features.iloc[rows], self.human_labels[rows])
            self._check = last, str(check)
        return self._check[1]

    def disagreements(self) -> list[dict[str, Any]]:
        """Where people contradict the model, or each other; the newest first."""
        records = []
        with self._lock:
            for (key, name), people in self._answers.items():
                if key not in self._row_of or name not in self._label_of or not people:
                    continue
                answer_of = {stored.event.who: stored.event.value for stored in people.values()}
                *_, last = people.values()
                suggested = last.event.suggested
                against_model = suggested is not None and suggested != last.event.value
                if against_model or len(set(answer_of.values())) > 1:
                    records.append(
                        {"row": self._row_of[key], "label": name, "people": answer_of,
                         "model": suggested, "id": last.id}
                    )  # fmt: skip
        return sorted(records, key=lambda record: -record["id"])

    def queue(self, who: str, order: str, at_most: int = 20) -> list[dict[str, Any]]:
        """Rows that come next for a person, with the labels that are open."""
        if order not in ORDERS:
            raise ReviewError(f"order must be one of {', '.join(ORDERS)}, got {order!r}.")
        with self._lock:
            free = self._free_rows(who)
            score = np.where(free, self._scores(order), -np.inf)
            rows = np.argsort(-score, kind="stable")[:at_most]
            rows = rows[free[rows]]
            cells = self._open_cells(rows)
            return [
                {"row": int(row), "open": [self.label_names[j] for j in np.flatnonzero(is_open)]}
                for row, is_open in zip(rows.tolist(), cells, strict=True)
            ]


def _finite(value: float) -> float:
    """JSON has no infinity."""
    return float(np.clip(value, -1e9, 1e9))


def _uniform(key: RowKey, name: str) -> float:
    """A number from 0 to 1 that belongs to a row and a label."""
    text = f"{key.hash}\x1f{key.occurrence}\x1f{name}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=7).digest()) / 2**56
