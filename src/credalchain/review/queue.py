"""A queue: who has which row, and which row and which of its labels come next."""

import time
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from credalchain._utils.array_types import FloatArray, IntArray
from credalchain.explanation.questions import rank_questions
from credalchain.labels import ABSTAIN
from credalchain.review.rows import ReviewedRows
from credalchain.review.store import ReviewError, standing

ORDERS = ("settles most", "least sure", "in order")
LEASE_SECONDS = 300.0
_SECONDS_OF_LOOKING_AHEAD = 0.02  # before a row is given out
_MAX_ROWS_PER_LOOK_AHEAD = 16


@dataclass
class _Reviewer:
    """What one person has passed over, in this run of the server, and the order of their choice."""

    passed: set[int] = field(default_factory=set)
    order: str = ORDERS[0]
    n_served: int = 0


class ReviewQueue:
    """Rows that people have, and those that come next.

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
                if self._holders().get(after) == who:
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

    def open(self, row: int, who: str) -> None:
        """Lease a row that a person wants to see."""
        with self.rows.lock:
            self.rows.check(row)
            self.rows.sync()
            holder = self._holders().get(row, who)
            if holder != who:
                raise ReviewError(f"row {row} is with {holder} now.")
            self.lease(row, who)

    def _holders(self) -> dict[int, str]:
        """Who has which row."""
        now = time.monotonic()
        self._leases = {row: lease for row, lease in self._leases.items() if lease[1] >= now}
        return {row: who for row, (who, _) in self._leases.items()}

    def _best_row(self, who: str, order: str) -> int | None:
        score = self._scores(who, order)
        free = np.isfinite(score)
        own = [row for row, holder in self._holders().items() if holder == who and free[row]]
        if own:
            return own[-1]
        share = self.rows.blind_share
        if share > 0 and self._reviewers[who].n_served % max(2, round(1 / share)) == 0:
            blind = free & self.rows.blind.any(axis=1)
            if blind.any():  # they come at their share
                return int(np.argmax(blind))
        return int(np.argmax(score)) if free.any() else None

    def _scores(self, who: str, order: str) -> FloatArray:
        """How soon rows come, (n,); -inf: none open, with somebody else, or passed."""
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
        taken = [row for row, holder in self._holders().items() if holder != who]
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
        """Ranks of the labels of rows, (rows, m), the least is asked first."""
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

    def next_rows(self, who: str, order: str, at_most: int = 20) -> list[int]:
        """Rows that come next for a person, the first first."""
        with self.rows.lock:
            score = self._scores(who, order)
            rows = np.argsort(-score, kind="stable")[:at_most]
            return [int(row) for row in rows if np.isfinite(score[row])]
