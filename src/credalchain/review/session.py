"""A review as the page shows it: who gets which row, reasons, progress and disagreements."""

import hashlib
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from credalchain._utils.array_types import FloatArray, IntArray, Labels
from credalchain.explanation.explainer import explain
from credalchain.explanation.questions import rank_questions
from credalchain.labels import ABSTAIN, MISSING
from credalchain.promises.classifier import PromisedClassifier
from credalchain.promises.statistics import interval_of_share
from credalchain.review.rows import ReviewedRows, shown_cells
from credalchain.review.store import ChangedRowError, ReviewError, StoredReviewEvent, standing

ORDERS = ("settles most", "least sure", "in order")
LEASE_SECONDS = 300.0
_SECONDS_OF_LOOKING_AHEAD = 0.02  # before a row is given out
_MAX_ROWS_PER_LOOK_AHEAD = 16
_MAX_SHOWN = 20  # rows that come next


@dataclass
class _Reviewer:
    """Rows that one person has passed over in this run, and the order of their choice."""

    passed: set[int] = field(default_factory=set)
    order: str = ORDERS[0]
    n_served: int = 0


class ReviewQueue:
    """Queue of rows: those leased to people, and those that come next.

    Parameters
    ----------
    rows : ReviewedRows
    """

    def __init__(self, rows: ReviewedRows) -> None:
        self.rows = rows
        self._reviewers: defaultdict[str, _Reviewer] = defaultdict(_Reviewer)
        self._leases: dict[int, tuple[str, float]] = {}
        self._n_waiting = 0
        self._gain = np.full(len(rows.keys), np.nan)
        self._rows_ahead = np.argsort(-rows.n_open, kind="stable")

    def take(self, who: str, order: str, after: int | None = None) -> int | None:
        """Lease the best row to a person; ``after`` is the row that the person leaves."""
        self._n_waiting += 1
        with self.rows.lock:
            self._n_waiting -= 1
            self.rows.sync()
            person = self._reviewers[who]
            if after is not None:
                self.rows.check(after)
                if self.holders().get(after) == who:
                    del self._leases[after]
                person.passed.add(after)
            row = self._best_row(who, order)
            if row is None and person.passed:
                person.passed.clear()  # once more from the beginning
                row = self._best_row(who, order)
            if row is not None:
                person.n_served += 1
                self.lease(row, who)
            person.order = order
            return row

    def lease(self, row: int, who: str) -> None:
        """Give a row to a person, for some minutes."""
        self._reviewers[who].passed.discard(row)
        self._leases.pop(row, None)
        self._leases[row] = who, time.monotonic() + LEASE_SECONDS

    def holders(self) -> dict[int, str]:
        """Return who has which row."""
        now = time.monotonic()
        self._leases = {row: lease for row, lease in self._leases.items() if lease[1] >= now}
        return {row: who for row, (who, _) in self._leases.items()}

    def _best_row(self, who: str, order: str) -> int | None:
        score = self.scores(who, order)
        free = np.isfinite(score)
        own = [row for row, holder in self.holders().items() if holder == who and free[row]]
        if own:
            return own[-1]
        share = self.rows.blind_share
        if share > 0 and self._reviewers[who].n_served % max(2, round(1 / share)) == 0:
            blind = free & self.rows.blind.any(axis=1)
            if blind.any():  # they come at their share
                return int(np.argmax(blind))
        return int(np.argmax(score)) if free.any() else None

    def scores(self, who: str, order: str) -> FloatArray:
        """Compute the priority of rows, (n,); -inf if none is open, or if leased or passed over."""
        if order not in ORDERS:
            raise ReviewError(f"order must be one of {', '.join(ORDERS)}, got {order!r}.")
        n_open = self.rows.n_open
        if order == "in order":
            score = -np.arange(len(n_open), dtype=float)
        elif order == "least sure":
            score = -self.rows.least_distance
        else:
            self._look_ahead()
            # rows not yet looked at come after all others, those with most open labels first
            later = n_open / (2.0 * len(n_open) + 1) - 1
            score = np.where(np.isnan(self._gain), later, self._gain)
        taken = [row for row, holder in self.holders().items() if holder != who]
        score[[*taken, *self._reviewers[who].passed]] = -np.inf
        return np.where(n_open > 0, score, -np.inf)

    def _look_ahead(self) -> None:
        """Compute what questions would settle in a few more rows, as long as time allows."""
        began, n_done, n_rows = time.monotonic(), 0, 1
        while len(self._rows_ahead) and n_rows >= 1 and self._n_waiting == 0:
            part, self._rows_ahead = self._rows_ahead[:n_rows], self._rows_ahead[n_rows:]
            self._gain[part] = -self._ranks(part, ORDERS[0]).min(axis=1)
            n_done += len(part)
            spent = max(time.monotonic() - began, 1e-6)
            left = n_done * (_SECONDS_OF_LOOKING_AHEAD / spent - 1)
            n_rows = min(int(left), _MAX_ROWS_PER_LOOK_AHEAD)

    def _ranks(self, rows: IntArray, order: str) -> FloatArray:
        """Rank the labels of rows, (rows, m), the least is asked first."""
        of, is_open = self.rows, self.rows.labels[rows] == ABSTAIN
        X, known = of.features.iloc[rows], of.human_labels[rows]
        interval = of.interval[rows].astype(float)
        return rank_questions(order, of.classifier, X, known, is_open, interval)[0]

    def questions(self, row: int, who: str) -> list[int]:
        """Open labels of a row, the best to be asked first.

        Those asked without a suggestion come before, so that nothing has been seen; skipped ones
        come last.
        """
        rows, order = np.array([row]), self._reviewers[who].order
        indices = np.flatnonzero(self.rows.open_cells(rows)[0])
        if len(indices) == 0:
            return []
        (ranks,) = self._ranks(rows, order)
        if order == "settles most":
            self._gain[row] = -ranks.min()
        key, names = self.rows.keys[row], self.rows.label_names
        history = [standing(self.rows.history.get((key, names[j]), ())) for j in indices]
        skips = [any((e.kind, e.who) == ("skip", who) for e in events) for events in history]
        shown = ~self.rows.blind[row, indices]
        order_of = np.lexsort((indices, ranks[indices], shown, np.array(skips)))
        return [int(j) for j in indices[order_of]]


_PACE_WINDOW_SECONDS = 3600.0  # over which the pace is measured
_FINITE = (-1e9, 1e9)  # JSON has no infinity
_MIN_PACE_SECONDS = 180.0  # before it is shown


class ReviewSession:
    """Session behind the page; the server only transports its results.

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
        with self.rows.lock:
            self.rows.check(row)
            self.rows.sync()
            holder = self.queue.holders().get(row, who)
            if holder != who:
                raise ReviewError(f"row {row} is being answered by {holder}.")
            self.queue.lease(row, who)
            return self.view(row, who)

    def answer(
        self, row: int, label: int, value: int | None, who: str, request: str, key: str = ""
    ) -> dict[str, Any]:
        """Store an answer (0 or 1) or a skip (None), and infer the row again.

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
        """Undo the last action of a person; may be repeated without limit."""
        with self.rows.lock:
            row, label, before = self.rows.undo(who, request)
            self.queue.lease(row, who)
            return {**self.view(row, who, before), "label": label}

    def view(self, row: int, who: str, before: Labels | None = None) -> dict[str, Any]:
        """Return a row as the page shows it; ``before`` are its labels before the last answer."""
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
        """Return reasons, or training rows that are alike, and what an answer would settle."""
        rows = self.rows
        with rows.lock:
            rows.check(row, label)
            hidden = rows.blind[row] & (rows.human_labels[row] == MISSING)
            if hidden[label]:
                raise ReviewError("this label is asked without a suggestion, so without reasons.")
            name = rows.label_names[label]
            known = rows.human_labels[row][None]
            cells = rows.cells.iloc[[row]]
            explanation = explain(rows.explained, cells, known=known, labels=[label])
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
        """Return how far the review has come."""
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
        """Count how often people and the model disagree where people did not see its answer."""
        rows = self.rows
        asked: dict[tuple[int, int, str], StoredReviewEvent] = {}  # each person's first answers
        with rows.lock:
            for cell, events in rows.history.items():
                place = rows.place(*cell)
                for event in standing(events):
                    if event.blind and event.model == rows.model_digest and place is not None:
                        asked.setdefault((*place, event.who), event)
            judged = [event for event in asked.values() if event.suggested is not None]
            n_other = sum(event.value != event.suggested for event in judged)
            low, high = interval_of_share(n_other, len(judged))
            check = self._promise_check([(row, label) for row, label, _ in asked])
        return {"asked": len(judged), "disagree": n_other, "low": low, "high": high, "check": check}

    def _promise_check(self, asked: list[tuple[int, int]]) -> str | None:
        """Test whether the model's promise holds, on rows asked without suggestions."""
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
        """Return where people contradict the model, or each other; the newest first."""
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
        """Return rows that come next for a person, with the labels that are open."""
        with self.rows.lock:
            score = self.queue.scores(who, order)
            rows = np.argsort(-score, kind="stable")[:_MAX_SHOWN]
            rows = rows[np.isfinite(score[rows])]
            names = np.array(self.rows.label_names, dtype=object)
            pairs = zip(rows.tolist(), self.rows.open_cells(rows), strict=True)
        return [{"row": row, "open": names[is_open].tolist()} for row, is_open in pairs]
