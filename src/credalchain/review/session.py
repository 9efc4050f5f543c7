"""A review as the page shows it: rows, reasons, progress and disagreements."""

import hashlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from credalchain._utils.array_types import Labels
from credalchain.explanation.explainer import explain
from credalchain.labels import MISSING
from credalchain.promises.classifier import PromisedClassifier
from credalchain.promises.statistics import interval_of_share
from credalchain.review.queue import ORDERS, ReviewQueue
from credalchain.review.rows import ReviewedRows, shown_cells
from credalchain.review.store import ChangedRowError, ReviewError, StoredReviewEvent, standing

_PACE_WINDOW_SECONDS = 3600.0  # over which the pace is measured
_FINITE = (-1e9, 1e9)  # JSON has no infinity
_MIN_PACE_SECONDS = 180.0  # before it is shown


class ReviewSession:
    """All that the page asks for; the server only carries it.

    Parameters
    ----------
    rows : ReviewedRows
    show : sequence of str
        Columns of the table that people see.
    folder : Path, optional
        Where images lie that cells name.
    """

    def __init__(
        self, rows: ReviewedRows, *, show: Sequence[str], folder: Path | None = None
    ) -> None:
        self.rows, self.show, self.folder = rows, list(show), folder
        self.queue = ReviewQueue(rows)
        self._answer_times: list[float] = []
        self._check: tuple[int, str] = 0, ""

    def next_row(self, who: str, order: str, *, after: int | None = None) -> dict[str, Any]:
        """Lease the best row to a person; ``after`` is the row that the person leaves."""
        row = self.queue.take(who, order, after)
        return {"row": None, "progress": self.progress()} if row is None else self.view(row, who)

    def open_row(self, row: int, who: str) -> dict[str, Any]:
        """Lease a row that a person wants to see."""
        self.queue.open(row, who)
        return self.view(row, who)

    def answer(
        self, row: int, label: int, value: int | None, who: str, request: str, key: str = ""
    ) -> dict[str, Any]:
        """Take an answer (0 or 1) or a skip (None), and infer the row again.

        ``key`` is that of the view on which the answer was given; empty, it is not compared.
        """
        with self.rows.lock:
            self.rows.check(row, label)
            if key not in ("", self._key(row)):
                raise ChangedRowError(
                    f"row {row} is no longer the row that was answered: the server was started "
                    "with other data. The answer was not taken; the page is loaded again."
                )
            is_new, before = self.rows.answer(row, label, value, who, request)
            if is_new:
                self.queue.lease(row, who)
                if value is not None:
                    self._answer_times.append(time.monotonic())
            return self.view(row, who, before)

    def undo(self, who: str, request: str) -> dict[str, Any]:
        """Take back what a person did last; as often as one likes."""
        with self.rows.lock:
            row, label, before = self.rows.undo(who, request)
            self.queue.lease(row, who)
            return {**self.view(row, who, before), "label": label}

    def view(self, row: int, who: str, before: Labels | None = None) -> dict[str, Any]:
        """A row as the page shows it; ``before`` are its labels before the last answer."""
        with self.rows.lock:
            self.rows.check(row)
            (cells,) = self.rows.open_cells(np.array([row]))
            return {
                "row": row,
                "key": self._key(row),
                "content": shown_cells(self.rows.table, row, self.show, self.folder),
                "labels": [self._label(row, j, bool(cells[j]), before) for j in range(len(cells))],
                "asked": self.queue.questions(row, who),
                "progress": self.progress(),
            }

    def _key(self, row: int) -> str:
        """Identify a row by its content, and what its labels are called."""
        text = repr((self.rows.keys[row], self.rows.label_names))
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def _label(self, row: int, j: int, is_open: bool, before: Labels | None) -> dict[str, Any]:
        rows = self.rows
        name, answer = rows.label_names[j], int(rows.labels[row, j])
        people = rows.answers.get((rows.keys[row], name), {})
        answer_of = {who: event.value for who, event in people.items()}
        hidden = is_open and bool(rows.blind[row, j])
        lower, upper = (None if hidden else round(end, 4) for end in rows.interval[row, j].tolist())
        source = "person" if people else "blind" if hidden else "open" if is_open else "model"
        has_changed = before is not None and int(before[j]) != answer
        return {
            "name": name,
            "answer": None if is_open else answer,
            "source": source,
            "lower": lower,
            "upper": upper,
            "changed": has_changed and source not in ("person", "blind"),
            "people": answer_of if len(set(answer_of.values())) > 1 else {},
        }

    def why(self, row: int, label: int) -> dict[str, Any]:
        """Reasons, or training rows that are alike, and what an answer would settle."""
        rows = self.rows
        with rows.lock:
            rows.check(row, label)
            hidden = rows.blind[row] & (rows.human_labels[row] == MISSING)
            if hidden[label]:
                raise ReviewError("this label is asked without a suggestion, so without reasons.")
            name = rows.label_names[label]
            known = rows.human_labels[row][None]
            features = rows.features.iloc[[row]]
            explanation = explain(rows.classifier, features, known=known, labels=[label])
        secret = {rows.label_names[j] for j in np.flatnonzero(hidden)}
        (step,) = [step for step in explanation.steps if step.label == name]
        reasons = [r for r in step.reasons if r.source != "label" or r.name not in secret]
        return {
            "setting": explanation.setting,
            "reasons": [
                {"name": " ".join(filter(None, (reason.name, reason.value))),
                 "lower": float(np.clip(reason.lower, *_FINITE)),
                 "upper": float(np.clip(reason.upper, *_FINITE))}
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
        rows, now = self.rows, time.monotonic()
        recent = [at for at in self._answer_times if at > now - _PACE_WINDOW_SECONDS]
        pace = None
        if recent and now - recent[0] >= _MIN_PACE_SECONDS:
            pace = round(3600.0 * len(recent) / (now - recent[0]))
        return {
            "rows": len(rows.labels),
            "rows_left": int((rows.n_open > 0).sum()),
            "labels_left": int(rows.n_open.sum()),
            "answers": int(rows.n_answered.sum()),
            "answers_an_hour": pace,
            "completeness_before": rows.completeness_before,
            "completeness": 1 - int(rows.n_unsettled.sum()) / max(rows.labels.size, 1),
        }

    def blind_result(self) -> dict[str, Any]:
        """How often people and the model disagree where people did not see its answer."""
        rows = self.rows
        asked: dict[tuple[int, int, str], StoredReviewEvent] = {}  # each person's first answers
        with rows.lock:
            for cell, events in rows.history.items():
                place = rows.place(*cell)
                for event in standing(events):
                    if event.blind and event.model == rows.model_digest and place is not None:
                        asked.setdefault((*place, event.who), event)
            n_other = sum(event.value != event.suggested for event in asked.values())
            low, high = interval_of_share(n_other, len(asked))
            check = self._promise_check([(row, label) for row, label, _ in asked])
        return {"asked": len(asked), "disagree": n_other, "low": low, "high": high, "check": check}

    def _promise_check(self, asked: list[tuple[int, int]]) -> str | None:
        """Whether the model's promise holds, by rows that were asked without suggestions."""
        rows = self.rows
        if not isinstance(rows.classifier, PromisedClassifier) or not rows.sampled_rows.any():
            return None
        unseen = ~rows.blind
        for cell in asked:
            unseen[cell] = True
        complete = rows.sampled_rows & (rows.human_labels != MISSING).all(axis=1)
        checked = np.flatnonzero(complete & unseen.all(axis=1))
        if len(checked) == 0:
            return "no row is checked yet"
        if self._check[0] != rows.last_event:
            check = rows.classifier.check(rows.features.iloc[checked], rows.human_labels[checked])
            self._check = rows.last_event, str(check)
        return self._check[1]

    def disagreements(self) -> list[dict[str, Any]]:
        """Where people contradict the model, or each other; the newest first."""
        records = []
        with self.rows.lock:
            for cell, people in self.rows.answers.items():
                place = self.rows.place(*cell)
                if place is None or not people:
                    continue
                answer_of = {who: event.value for who, event in people.items()}
                *_, last = people.values()
                if last.suggested not in (None, last.value) or len(set(answer_of.values())) > 1:
                    records.append(
                        {"row": place[0], "label": last.label, "people": answer_of,
                         "model": last.suggested, "id": last.id}
                    )  # fmt: skip
        return sorted(records, key=lambda record: -record["id"])

    def next_rows(self, who: str, order: str = ORDERS[0]) -> list[dict[str, Any]]:
        """Rows that come next for a person, with the labels that are open."""
        with self.rows.lock:
            rows = self.queue.next_rows(who, order)
            names = np.array(self.rows.label_names, dtype=object)
            cells = self.rows.open_cells(np.array(rows, dtype=int))
        pairs = zip(rows, cells, strict=True)
        return [{"row": row, "open": names[is_open].tolist()} for row, is_open in pairs]
