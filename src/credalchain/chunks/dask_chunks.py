"""Dask collections to learn from: their partitions, and sums over them."""

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from credalchain.chunks.columns import ColumnConflictError
from credalchain.chunks.sampling import hash_limit
from credalchain.chunks.sources import IterableChunks, errors_name_chunk
from credalchain.preprocessing import is_dask
from credalchain.typing import Chunks, Total, Work, unchanged

_NAMES_PARTITION = re.compile(r"partition \d+")  # how errors about a known partition begin
_SUMS_PER_TASK = 8  # sums that are added together in one task


def is_dask_array(X: Any) -> bool:
    """Whether X is a dask array (data frames have divisions)."""
    return is_dask(X) and not hasattr(X, "divisions")


def as_chunks(chunks: Any) -> Chunks:
    """Chunks that are read one after the other, or the partitions of a pair of collections.

    Anything that can add up over its chunks itself, as :class:`Chunks` has it, is taken as it is.
    """
    if hasattr(chunks, "reduce") and hasattr(chunks, "hash_limit"):
        source: Chunks = chunks
        return source
    if isinstance(chunks, tuple) and len(chunks) == 2 and is_dask(chunks[0]):
        return DaskChunks(*chunks)
    return IterableChunks(chunks)


class DaskChunks:
    """The partitions of dask arrays or data frames ``X`` and ``Y``.

    Work goes to the client that is connected, or to Dask's own threads without one.
    """

    def __init__(self, X: Any, Y: Any) -> None:
        if not is_dask(Y):
            raise TypeError(
                "Y must be a dask collection with the same partitions as X, got "
                f"{type(Y).__name__}."
            )
        if getattr(X, "ndim", 2) != 2:
            raise ValueError(f"X must have two dimensions, got {X.ndim}: a table of one column?")
        self.X, self.Y = delayed_partitions(X, "X"), delayed_partitions(_rechunk_like(X, Y), "Y")
        if len(self.X) != len(self.Y):
            raise ValueError(
                f"X and Y must have the same partitions, got {len(self.X)} and {len(self.Y)}."
            )
        self._table = X

    @cached_property
    def lengths(self) -> list[int]:
        """Rows of each partition."""
        return partition_lengths(self._table)

    def reduce(
        self,
        work: Work[Total],
        *shared: Any,
        trim: Callable[[Total], Total] = unchanged,
        numbered: bool = True,
    ) -> Total:
        """A tree of sums: only sums travel, and what is shared is sent once to a worker."""
        from dask.delayed import delayed

        shared_delayed = [delayed(value, traverse=False) for value in shared]
        first = [0] * len(self.X)
        if numbered:
            first = np.cumsum([0, *self.lengths[:-1]]).tolist()
        apply, add = delayed(_apply, pure=False), delayed(_sum, pure=False)
        sums = [
            apply(work, f"partition {number}", x, y, first[number], *shared_delayed)
            for number, (x, y) in enumerate(zip(self.X, self.Y, strict=True))
        ]
        while len(sums) > 1:
            sums = [
                add(sums[i : i + _SUMS_PER_TASK], trim) for i in range(0, len(sums), _SUMS_PER_TASK)
            ]
        (total,) = sums
        read = delayed(_no_op, pure=False)
        with errors_name_partition(lambda: [*map(read, self.X, self.Y)]):
            result: Total = total.compute()
        return result

    def hash_limit(self, size: int) -> Any:
        """Partitions send no row that is not in the sample."""
        return hash_limit(sum(self.lengths), size)


def _apply(work: Work[Total], name: str, X: Any, Y: Any, *arguments: Any) -> Total:
    with errors_name_chunk(name):
        _check_same_rows(X, Y)
        return work(name, X, Y, *arguments)


def _check_same_rows(X: Any, Y: Any) -> None:
    """Refuse rows of the same names in different orders, as shuffles of X and Y leave them."""
    if not hasattr(X, "columns") or not hasattr(Y, "index") or len(X) != len(Y):
        return
    left, right = X.index, Y.index
    if not left.equals(right) and Counter(left) == Counter(right):
        raise ValueError(
            "X and Y have the same index in different orders, so their rows do not belong "
            "together. Shuffles order rows by chance: write the table down (to_parquet) before "
            "its columns are divided."
        )


def _sum(sums: list[Any], trim: Callable[[Any], Any]) -> Any:
    total = sums[0]
    for part in sums[1:]:
        total = trim(total + part)
    return total


def _rechunk_like(X: Any, Y: Any) -> Any:
    """Y cut into the same rows as X, where that is known."""
    if is_dask_array(X) and is_dask_array(Y) and X.chunks[0] != Y.chunks[0]:
        known = not (np.isnan(X.chunks[0]).any() or np.isnan(Y.chunks[0]).any())
        return Y.rechunk({0: X.chunks[0]}) if known else Y
    return Y


def delayed_partitions(X: Any, name: str) -> list[Any]:
    """One delayed table for each partition."""
    if hasattr(X, "to_delayed") and is_dask_array(X):
        if X.ndim == 2 and X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        if X.ndim not in (1, 2):
            raise ValueError(f"{name} must have two dimensions, got {X.ndim}.")
        return list(X.to_delayed().ravel())
    if hasattr(X, "to_delayed"):
        # optimized as a whole, small files might come together in one of X and Y and not in the
        # other; simplified, only the columns that are needed are read
        return list(X.simplify().to_delayed(optimize_graph=False))
    raise TypeError(
        f"{name} must be a dask array or data frame, got {type(X).__module__}.{type(X).__name__}."
    )


def partition_lengths(X: Any) -> list[int]:
    """Rows of each partition of X, counted where Dask does not know them.

    One column is enough for that, so no other is read from Parquet files.
    """
    if is_dask_array(X) and not np.isnan(X.chunks[0]).any():
        return list(X.chunks[0])
    from dask.delayed import delayed

    count = delayed(_n_rows, pure=False)
    partitions = delayed_partitions(X[list(X.columns[:1])] if hasattr(X, "columns") else X, "X")
    with errors_name_partition(lambda: partitions):
        return list(delayed([count(partition) for partition in partitions]).compute())


@contextmanager
def errors_name_partition(
    delayed_per_partition: Callable[[], Sequence[Any]], scheduler: Any = None
) -> Iterator[None]:
    """Errors of what is computed inside are raised with the number of the partition.

    Dask reads in tasks of its own, before any of ours, and may fuse the reads of several partitions
    into one task. So after an error the delayed work of each partition is computed alone, up to
    the first that fails.
    """
    try:
        with warnings.catch_warnings():  # what is shared is large, and there once
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            yield
    except Exception as error:
        if _is_cluster_failure(error):
            raise ConnectionError(
                f"the scheduler was lost, or gave the work up: {error}"
            ) from error
        if _NAMES_PARTITION.match(str(error)) or isinstance(error, ColumnConflictError):
            raise
        if type(error).__name__ == "KilledWorker":  # reading once more would end more of them
            raise ValueError(f"a partition ends the workers that read it: {error}") from error
        again = delayed_per_partition()
        if _share_work(again):
            error.add_note(
                "Which partition it was is not known, since each is made of many others, as by a "
                "shuffle. Write the table down first (to_parquet)."
            )
            raise
        _raise_first_error(again, scheduler)
        raise


def _is_cluster_failure(error: Exception) -> bool:
    """Whether the scheduler or the connection failed, not a task."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"CancelledError", "FutureCancelledError", "CommClosedError"})


def _share_work(partitions: Sequence[Any]) -> bool:
    """Whether most of what a partition is made from is needed for another one, too."""
    from dask.optimization import cull

    if len(partitions) < 2:
        return False
    first, second = (
        set(cull(dict(partition.dask), [partition.key])[0]) for partition in partitions[:2]
    )
    return len(first & second) > len(first) // 2


def _raise_first_error(partitions: Sequence[Any], scheduler: Any) -> None:
    """Compute partitions one at a time and raise the first error, with the partition's number.

    An error without a number was raised by Dask while it loaded the data.
    """
    for number, partition in enumerate(partitions):
        try:
            partition.compute(scheduler=scheduler)
        except Exception as error:
            if _NAMES_PARTITION.match(str(error)):
                raise
            message = str(error) or type(error).__name__
            raise ValueError(f"partition {number} cannot be read: {message}") from error


def _no_op(*partitions: Any) -> None:
    """Does nothing; computing it shows whether the partitions can be read."""


def _n_rows(X: Any) -> int:
    return int(X.shape[0])
