"""Where rows come from part by part, and sums over all parts."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

from credalchain.chunks.columns import ColumnConflictError
from credalchain.chunks.sampling import EVERYTHING
from credalchain.labels import as_labels, column_names
from credalchain.preprocessing import as_rows

Total = TypeVar("Total")
Work = Callable[..., Total]
"""Gets the name of a part, X, Y, the number of its first row, and what is shared by all."""


def as_it_is(total: Total) -> Total:
    """For sums that need no trimming."""
    return total


class Parts(Protocol):
    """Rows in parts."""

    def reduce(
        self,
        work: Work[Total],
        *shared: Any,
        trim: Callable[[Total], Total] = as_it_is,
        numbered: bool = True,
    ) -> Total:
        """The sum over all parts of what ``work`` makes of them; ``trim`` keeps sums small.

        ``numbered``: whether the work needs to know the number of its first row.
        """
        ...

    def hash_limit(self, size: int) -> Any:
        """The largest hash of a sample of rows, if the number of rows is known; else of all."""
        ...


def named_work(work: Work[Total], part: str, *arguments: Any) -> Total:
    """``work`` of one part, whose errors say which."""
    try:
        return work(part, *arguments)
    except (ValueError, TypeError) as error:
        if part in str(error) or isinstance(error, ColumnConflictError):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{part}: {error}") from error


class ChunkParts:
    """Chunks (X, Y) that are read one after the other.

    Parameters
    ----------
    chunks : iterable of (X, Y), or callable that gives one
        It is gone through once, and twice if bins are learned; an iterator can be gone through
        only once.
    """

    def __init__(self, chunks: Any) -> None:
        if not callable(chunks) and not isinstance(chunks, Iterable):
            raise TypeError(
                "chunks must be an iterable of pairs (X, Y), or a function that gives one, "
                f"got {chunks!r}."
            )
        self.chunks = chunks
        self.used = False

    def reduce(
        self,
        work: Work[Total],
        *shared: Any,
        trim: Callable[[Total], Total] = as_it_is,
        numbered: bool = True,
    ) -> Total:
        """One chunk in memory at a time."""
        total: Total | None = None
        first = 0
        for part, X, Y in self._read():
            one = named_work(work, part, X, Y, first, *shared)
            total = trim(one if total is None else named_work(_added, part, total, one))
            first += X.shape[0]
        if total is None:
            raise ValueError("chunks must be at least one pair (X, Y), got none.")
        return total

    def hash_limit(self, size: int) -> Any:
        """The number of rows is not known: all, and ``trim`` keeps the smallest."""
        return EVERYTHING

    def _read(self) -> Iterator[tuple[str, Any, Any]]:
        source = self.chunks() if callable(self.chunks) else self.chunks
        if self.used and iter(source) is source:
            raise ValueError(
                "chunks must be something that can be gone through twice, as bins are learned "
                "first: a list, a function that gives chunks, or give a fitted discretizer."
            )
        self.used = not callable(self.chunks)
        for number, chunk in enumerate(source):
            is_pair = isinstance(chunk, tuple) and len(chunk) == 2
            if not is_pair and not (isinstance(chunk, tuple) and isinstance(chunk[-1], str)):
                raise TypeError(f"chunks must be pairs (X, Y), got {chunk!r}.")
            name = f"chunk {number}" if is_pair else chunk[2]  # readers of files name their parts
            yield name, named_work(_as_table, name, chunk[0]), chunk[1]


def _as_table(part: str, X: Any) -> Any:
    rows = as_rows(X)
    if getattr(rows, "ndim", None) is None and not hasattr(rows, "shape"):
        raise TypeError(f"X must be a table in memory, got {type(X).__name__}.")
    if len(rows.shape) != 2:
        raise ValueError(f"X must have two dimensions, got shape {rows.shape}.")
    return rows


def _added(part: str, total: Any, one: Any) -> Any:
    return total + one


def label_names(Y: Any) -> tuple[str, ...] | None:
    """Names of label columns, if they have such."""
    names = column_names(Y)
    return None if names is None else tuple(names)


def why_refused(Y: Any) -> str:
    """Why these labels would be refused by themselves, though each is legal; "" if not."""
    try:
        as_labels(Y)
    except ValueError as error:
        return str(error)
    return ""
