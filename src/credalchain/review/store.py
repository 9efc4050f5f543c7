"""Answers in a file: an SQLite database to which events are appended, and nothing is changed."""

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

Kind = Literal["answer", "skip", "undo"]

_MIGRATIONS = (
    """
    CREATE TABLE models (
        id INTEGER PRIMARY KEY,
        digest TEXT NOT NULL UNIQUE,
        file TEXT NOT NULL,
        first_used TEXT NOT NULL
    );
    CREATE TABLE rows (
        hash TEXT NOT NULL,
        occurrence INTEGER NOT NULL,
        number INTEGER NOT NULL,
        content TEXT NOT NULL,
        PRIMARY KEY (hash, occurrence)
    );
    CREATE TABLE events (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        request TEXT NOT NULL UNIQUE,
        at TEXT NOT NULL,
        who TEXT NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('answer', 'skip', 'undo')),
        row_hash TEXT NOT NULL,
        occurrence INTEGER NOT NULL,
        label TEXT NOT NULL,
        value INTEGER CHECK (value IN (0, 1)),
        suggested INTEGER CHECK (suggested IN (0, 1)),
        lower REAL,
        upper REAL,
        blind INTEGER NOT NULL DEFAULT 0,
        undoes INTEGER UNIQUE REFERENCES events (id),
        model INTEGER NOT NULL REFERENCES models (id),
        FOREIGN KEY (row_hash, occurrence) REFERENCES rows (hash, occurrence)
    );
    """,
)
"""What takes a file from each version to the next."""


class AnswersFileError(ValueError):
    """A file of answers that cannot be used."""


@dataclass(frozen=True)
class RowKey:
    """A row by its content, and which one of those with the same content it is, from 0."""

    hash: str
    occurrence: int


@dataclass(frozen=True)
class Event:
    """What somebody did about one label of one row.

    Attributes
    ----------
    request : str
        The page's own name for it, so that the same request sent twice is one event.
    who : str
    kind : {"answer", "skip", "undo"}
    row : RowKey
    label : str
    value : 0, 1 or None
        Of an answer.
    suggested : 0, 1 or None
        What the model had answered; None if it had left the label open.
    lower, upper : float or None
        The model's bounds at that time.
    blind : bool
        Whether the suggestion was not shown.
    undoes : int or None
        The event that is taken back.
    """

    request: str
    who: str
    kind: Kind
    row: RowKey
    label: str
    value: int | None = None
    suggested: int | None = None
    lower: float | None = None
    upper: float | None = None
    blind: bool = False
    undoes: int | None = None


@dataclass(frozen=True)
class StoredEvent:
    """An event with its number, its time (UTC, ISO 8601) and the model by its digest."""

    id: int
    at: str
    model: str
    event: Event


_COLUMNS = (
    "request", "who", "kind", "row_hash", "occurrence", "label", "value", "suggested", "lower",
    "upper", "blind", "undoes",
)  # fmt: skip


class AnswerStore:
    """A file of answers.

    Every event is committed before ``append`` returns, so a process that is killed loses nothing
    that was confirmed. Several threads may use it.

    Parameters
    ----------
    path : str or Path
    create : bool, default=True
        Whether a file that is not there is made.
    """

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        self.path = Path(path)
        if not create and not self.path.is_file():
            raise FileNotFoundError(f"there is no file {self.path}.")
        self._lock = threading.Lock()
        try:
            self._connection = sqlite3.connect(
                self.path, check_same_thread=False, isolation_level=None, timeout=30
            )
            self._connection.execute("PRAGMA foreign_keys = ON")
            self._migrate()
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
        except sqlite3.DatabaseError as error:
            raise AnswersFileError(f"{self.path} is not a file of answers: {error}.") from error

    def _migrate(self) -> None:
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        tables = self._connection.execute("SELECT name FROM sqlite_master").fetchall()
        if version == 0 and tables:
            raise AnswersFileError(f"{self.path} is a database of something else.")
        if version > len(_MIGRATIONS):
            raise AnswersFileError(
                f"{self.path} was written by a newer credalchain (version {version} of the file, "
                f"this one knows {len(_MIGRATIONS)})."
            )
        for number, script in enumerate(_MIGRATIONS[version:], start=version + 1):
            self._connection.executescript(
                f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {number}; COMMIT;"
            )

    def close(self) -> None:
        self._connection.close()

    def add_model(self, digest: str, file: str) -> int:
        """Its number; a model that was used before keeps its own."""
        with self._lock:
            self._connection.execute(
                "INSERT OR IGNORE INTO models (digest, file, first_used) VALUES (?, ?, ?)",
                (digest, file, _now()),
            )
            query = "SELECT id FROM models WHERE digest = ?"
            (number,) = self._connection.execute(query, (digest,)).fetchone()
        return int(number)

    def append(
        self, event: Event, *, model: int, row_number: int, content: str
    ) -> tuple[int, bool]:
        """The event's number, and whether it is new: the same request twice is one event.

        Parameters
        ----------
        event : Event
        model : int
        row_number : int
            Where the row stands in the data.
        content : str
            The row as JSON, so that answers can be learned from without the data.
        """
        row = (event.row.hash, event.row.occurrence)
        values = _flat(event)
        marks = ", ".join("?" * (len(values) + 2))
        with self._lock, self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            query = "SELECT id FROM events WHERE request = ?"
            before = self._connection.execute(query, (event.request,)).fetchone()
            if before is not None:
                return int(before[0]), False
            self._connection.execute(
                "INSERT OR IGNORE INTO rows VALUES (?, ?, ?, ?)", (*row, row_number, content)
            )
            added = self._connection.execute(
                f"INSERT INTO events (at, model, {', '.join(_COLUMNS)}) VALUES ({marks})",
                (_now(), model, *values),
            )
        assert added.lastrowid is not None
        return added.lastrowid, True

    def events(self) -> list[StoredEvent]:
        """All of them, the oldest first."""
        query = (
            f"SELECT events.id, at, digest, {', '.join(_COLUMNS)} FROM events "
            "JOIN models ON models.id = events.model ORDER BY events.id"
        )
        with self._lock:
            found = self._connection.execute(query).fetchall()
        return [
            StoredEvent(number, at, digest, _event(rest)) for number, at, digest, *rest in found
        ]

    def rows(self) -> dict[RowKey, tuple[int, str]]:
        """The number and the content of every row that has events."""
        with self._lock:
            found = self._connection.execute("SELECT * FROM rows").fetchall()
        return {RowKey(digest, nth): (number, content) for digest, nth, number, content in found}

    def __enter__(self) -> "AnswerStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _flat(event: Event) -> tuple[Any, ...]:
    row = (event.row.hash, event.row.occurrence)
    values = (event.value, event.suggested, event.lower, event.upper, int(event.blind))
    return (event.request, event.who, event.kind, *row, event.label, *values, event.undoes)


def _event(values: Sequence[Any]) -> Event:
    request, who, kind, digest, nth, label, value, suggested, lower, upper, blind, undoes = values
    row = RowKey(digest, nth)
    return Event(
        request, who, kind, row, label, value, suggested, lower, upper, bool(blind), undoes
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def standing(events: Sequence[StoredEvent]) -> Iterator[StoredEvent]:
    """Answers and skips that were not taken back, the oldest first."""
    undone = {one.event.undoes for one in events if one.event.kind == "undo"}
    for one in events:
        if one.event.kind != "undo" and one.id not in undone:
            yield one


def standing_answers(
    events: Sequence[StoredEvent],
) -> dict[tuple[RowKey, str], dict[str, StoredEvent]]:
    """For every row and label, each person's last answer, in the order in which they were given."""
    found: dict[tuple[RowKey, str], dict[str, StoredEvent]] = {}
    for one in standing(events):
        if one.event.kind == "answer":
            people = found.setdefault((one.event.row, one.event.label), {})
            people.pop(one.event.who, None)
            people[one.event.who] = one
    return found
