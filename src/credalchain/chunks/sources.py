"""Sources of rows in chunks, and sums over all chunks."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from credalchain.chunks.sampling import MAX_HASH
from credalchain.labels import column_names
from credalchain.preprocessing import as_indexable
from credalchain.typing import Total, Work, unchanged


@contextlib.contextmanager
def naming_chunk_in_errors(chunk: str) -> Iterator[None]:
    """Name, in errors about data that are raised inside, the chunk that they are about.

    Parameters
    ----------
    chunk : str
        Name of the chunk.

    Yields
    ------
    None
        To the body of the ``with`` statement.

    Raises
    ------
    ValueError or TypeError
        The error raised inside, with the name in front of its message.

    Examples
    --------
    >>> from credalchain.chunks.sources import naming_chunk_in_errors
    >>> with naming_chunk_in_errors("march.csv"):
    ...     raise ValueError("there is no row.")
    Traceback (most recent call last):
        ...
    ValueError: march.csv: there is no row.
    """
    try:
        yield
    except (ValueError, TypeError, OverflowError) as error:
        if chunk in str(error):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{chunk}: {error}") from error


class IterableChunks:
    """Chunks (X, Y) that are read one after the other.

    Parameters
    ----------
    chunks : iterable of (X, Y), or callable that returns one
        Iterated over once, and twice if bins are learned; an iterator works only once.

    Examples
    --------
    >>> from credalchain.chunks.sources import IterableChunks
    >>> chunks = IterableChunks([([[0.1], [0.2]], [[0], [1]]), ([[0.8]], [[1]])])
    >>> chunks.reduce(lambda name, X, Y, first: len(Y))
    3
    """

    def __init__(self, chunks: Any) -> None:
        if not callable(chunks) and not isinstance(chunks, Iterable):
            raise TypeError(
                "chunks must be an iterable of pairs (X, Y), or a function that returns one, "
                f"got {chunks!r}."
            )
        self.chunks = chunks
        self.used = False

    def reduce(
        self,
        work: Work[Total],
        *shared: Any,
        trim: Callable[[Total], Total] = unchanged,
        numbered: bool = True,
    ) -> Total:
        """Compute the sum (``+``) over all chunks of what ``work`` makes of them.

        One chunk is in memory at a time.

        Parameters
        ----------
        work : callable
            As in :class:`credalchain.typing.Chunks`.
        *shared
            Further arguments of ``work``, the same for all chunks.
        trim : callable, default=unchanged
            Takes a sum and returns a smaller one, to keep memory small.
        numbered : bool, default=True
            Not used: chunks come in order, so rows are always numbered.

        Returns
        -------
        object
            The sum.
        """
        total: Any = None
        first = 0
        for name, X, Y in self._read():
            with naming_chunk_in_errors(name):
                part = work(name, X, Y, first, *shared)
                total = trim(part if total is None else total + part)
            first += X.shape[0]
        if total is None:
            raise ValueError("chunks must be at least one pair (X, Y), got none.")
        result: Total = total
        return result

    def hash_limit(self, size: int) -> Any:
        """Return the largest possible hash, as the number of rows is not known.

        ``trim`` keeps the smallest hashes.

        Parameters
        ----------
        size : int
            Not used.

        Returns
        -------
        uint64
            Greatest possible hash.
        """
        return MAX_HASH

    def _read(self) -> Iterator[tuple[str, Any, Any]]:
        source = self.chunks() if callable(self.chunks) else self.chunks
        if self.used and iter(source) is source:
            raise ValueError(
                "chunks must be re-iterable, because bins are learned in a first pass, got "
                f"{type(source).__name__}; pass a list, a function that returns an iterator, or a "
                "fitted discretizer."
            )
        self.used = not callable(self.chunks)
        for number, chunk in enumerate(source):
            size = len(chunk) if isinstance(chunk, tuple) else 0
            if size != 2 and not (size == 3 and isinstance(chunk[2], str)):
                raise TypeError(f"chunks must be pairs (X, Y), got {chunk!r}.")
            name = f"chunk {number}" if size == 2 else chunk[2]  # readers of files name theirs
            with naming_chunk_in_errors(name):
                table = as_indexable(chunk[0])
                if not hasattr(table, "shape"):
                    raise TypeError(f"X must be a table in memory, got {type(table).__name__}.")
                if len(table.shape) != 2:
                    raise ValueError(f"X must have two dimensions, got shape {table.shape}.")
            yield name, table, chunk[1]


def label_names(Y: Any) -> tuple[str, ...] | None:
    """Return the names of label columns, if there are any."""
    names = column_names(Y)
    if names is None and getattr(Y, "name", None) is not None:
        return (str(Y.name),)  # one column
    return None if names is None else tuple(names)


def check_same_labels(first: Any, other: Any) -> None:
    """Raise if two chunks have different labels; both have names, n_labels and chunk."""
    if first.names != other.names or first.n_labels != other.n_labels:
        raise ValueError(
            "all chunks of Y must have the same labels in the same order: "
            f"{first.names or first.n_labels} in {first.chunk} and "
            f"{other.names or other.n_labels} in {other.chunk}."
        )
