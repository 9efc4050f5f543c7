"""Answers in a file: an SQLite database to which events are appended, and nothing is changed."""

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Literal

Kind = Literal["answer", "skip", "undo"]

_VERSION = 2  # of the file

_SCHEMA = resources.files("credalchain.review").joinpath("schema.sql").read_text("utf-8")
_APPLICATION = 0x63726564  # in the file, so that others are told from ours
_PATIENCE_SECONDS = 5.0  # while another program locks the file
_NO_SPACE = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_CANTOPEN")


class AnswersFileError(ValueError):
    """Error for a file of answers that cannot be used."""


class ReviewError(ValueError):
    """Error for a request that cannot be served; its message is shown on the page."""

    status = 400  # over HTTP


class ChangedRowError(ReviewError):
    """Error for an answer to a row or labels that have been replaced."""

    status = 409


@dataclass(frozen=True)
class RowKey:
    """Key of a row: its content, and its number among those with the same content, from 0."""

    hash: str
    occurrence: int


@dataclass(frozen=True)
class ReviewEvent:
    """Event: an answer, a skip or an undo of one person for one label of one row.

    Attributes
    ----------
    request : str
        Identifier chosen by the page, so that a request sent twice is one event.
    who : str
    kind : {"answer", "skip", "undo"}
    row : RowKey
    label : str
    value : 0, 1 or None
        Of an answer.
    suggested : 0, 1 or None
        Answer of the model at that time; None if it had left the label open.
    lower, upper : float or None
        The model's bounds at that time.
    blind : bool
        True if the suggestion was hidden.
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


@dataclass(frozen=True, kw_only=True)
class StoredReviewEvent(ReviewEvent):
    """Event with its number, its time (UTC, ISO 8601) and the model by its digest.

    ``row_number`` is where the row stood in the data.
    """

    id: int
    at: str
    model: str
    row_number: int


class AnswerStore(AbstractContextManager["AnswerStore"]):
    """File of answers.

    Every event is committed before ``append`` returns, so a process that is killed loses nothing
    that was confirmed. Several threads may use it.

    Parameters
    ----------
    path : str or Path
    create : bool, default=True
        If True, create the file if it does not exist.
    """

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        self.path = Path(path)
        if not create and not self.path.is_file():
            raise FileNotFoundError(f"there is no file {self.path}.")
        self._lock = threading.Lock()
        if self.path.is_dir() or not self.path.parent.is_dir():
            raise FileNotFoundError(f"{self.path} cannot be created: its folder must exist.")
        self._is_new = not self.path.exists()
        try:
            self._connection = sqlite3.connect(
                self.path, check_same_thread=False, isolation_level=None, timeout=_PATIENCE_SECONDS
            )
            self._connection.row_factory = sqlite3.Row
            with self._use():
                self._connection.execute("PRAGMA foreign_keys = ON")
                self._check_version()
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = FULL")
        except sqlite3.DatabaseError as error:
            raise AnswersFileError(f"{self.path} is not a file of answers: {error}.") from error

    @contextmanager
    def _use(self) -> Iterator[None]:
        """Keep other threads out; errors name the file, and leave none without answers behind."""
        with self._lock:
            try:
                yield
            except sqlite3.OperationalError as error:
                if self._is_new and error.sqlite_errorname.startswith(_NO_SPACE):
                    self._connection.close()
                    for ending in ("", "-journal", "-wal", "-shm"):
                        Path(f"{self.path}{ending}").unlink(missing_ok=True)
                raise AnswersFileError(f"{self.path} cannot be used now: {error}.") from error

    def _check_version(self) -> None:
        """Create the tables of a new file; raise an error for a file that is not one of answers."""
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        (owner,) = self._connection.execute("PRAGMA application_id").fetchone()
        tables = self._connection.execute("SELECT name FROM sqlite_master").fetchall()
        if tables and owner != _APPLICATION:
            raise AnswersFileError(
                f"{self.path} must be a file of answers, got a database of another application."
            )
        if version not in (0, _VERSION):
            raise AnswersFileError(
                f"{self.path} was written by another credalchain (version {version} of the file, "
                f"this one knows {_VERSION})."
            )
        if version == 0:
            self._connection.executescript(
                f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {_VERSION}; "
                f"PRAGMA application_id = {_APPLICATION}; COMMIT;"
            )

    def close(self) -> None:
        """Put everything into the one file, so that it can be copied."""
        with self._use():
            try:
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                self._connection.close()

    def add_model(self, digest: str, file: str) -> int:
        """Return the model's id, inserted if new."""
        with self._use():
            self._connection.execute(
                "INSERT OR IGNORE INTO models (digest, file, first_used) VALUES (?, ?, ?)",
                (digest, file, _now()),
            )
            query = "SELECT id FROM models WHERE digest = ?"
            (number,) = self._connection.execute(query, (digest,)).fetchone()
            self._is_new = False
        return int(number)

    def append(self, event: ReviewEvent, *, model: int, row_number: int, content: str) -> bool:
        """Append an event; return whether it is new: the same request twice is one event.

        Parameters
        ----------
        event : ReviewEvent
        model : int
        row_number : int
            Where the row stands in the data.
        content : str
            The row as JSON, so that answers can be learned from without the data.
        """
        row = {"row_hash": event.row.hash, "occurrence": event.row.occurrence}
        values = vars(event) | row | {"at": _now(), "model": model, "row_number": row_number}
        del values["row"]
        same = ("who", "kind", "row_hash", "occurrence", "label", "value")
        with self._use(), self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            query = f"SELECT {', '.join(same)} FROM events WHERE request = ?"
            before = self._connection.execute(query, (event.request,)).fetchone()
            if before is not None:
                if tuple(before) != tuple(values[name] for name in same):
                    raise ReviewError(
                        f"request {event.request!r} was already used for another event."
                    )
                return False
            self._connection.execute(
                "INSERT OR IGNORE INTO rows VALUES (?, ?, ?)", (*row.values(), content)
            )
            marks = ", ".join(f":{name}" for name in values)
            self._connection.execute(
                f"INSERT INTO events ({', '.join(values)}) VALUES ({marks})", values
            )
        return True

    def events(self, after: int = 0) -> list[StoredReviewEvent]:
        """Return events with greater numbers, the oldest first."""
        query = (
            "SELECT events.*, digest FROM events JOIN models ON models.id = events.model "
            "WHERE events.id > ? ORDER BY events.id"
        )
        with self._use():
            records = list(map(dict, self._connection.execute(query, (after,))))
        for record in records:
            record["row"] = RowKey(record.pop("row_hash"), record.pop("occurrence"))
            record |= {"model": record.pop("digest"), "blind": bool(record["blind"])}
        return [StoredReviewEvent(**record) for record in records]

    def rows(self) -> dict[RowKey, str]:
        """Return the content of every row that has events."""
        with self._use():
            records = self._connection.execute("SELECT * FROM rows").fetchall()
        return {RowKey(*key): content for *key, content in records}

    def __exit__(self, *_: object) -> None:
        self.close()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def standing(events: Sequence[StoredReviewEvent]) -> Iterator[StoredReviewEvent]:
    """Return answers and skips that were not taken back, the oldest first."""
    undone = {event.undoes for event in events}
    return (event for event in events if event.kind != "undo" and event.id not in undone)


def current_answers(
    events: Sequence[StoredReviewEvent],
) -> dict[tuple[RowKey, str], dict[str, StoredReviewEvent]]:
    """Return each person's last answer for every row and label, in the order of answering."""
    answers: dict[tuple[RowKey, str], dict[str, StoredReviewEvent]] = {}
    for event in standing(events):
        if event.kind == "answer":
            people = answers.setdefault((event.row, event.label), {})
            people.pop(event.who, None)
            people[event.who] = event
    return answers
