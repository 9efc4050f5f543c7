"""Dask collections of answers: computed partition by partition, when they are asked for."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from copy import copy
from pathlib import Path
from typing import Any, NamedTuple

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.delayed import delayed

from credalchain.chunks.dask_chunks import delayed_partitions, errors_name_partition, is_dask_array
from credalchain.chunks.sources import errors_name_chunk

_FILES_OF_PARQUET = {"_metadata", "_common_metadata"}


class PerPartition(NamedTuple):
    """``function(classifier, partition, options)``, for every partition of X."""

    classifier: Any
    function: Callable[[Any, Any, Any], Any]
    X: Any
    options: dict[str, Any]

    def delayed_per_partition(self) -> list[Any]:
        """Delayed answers, one for each partition of X; errors say which it was."""
        answer, model = delayed(_answer, pure=False), delayed(self.classifier, traverse=False)
        return [
            answer(partition, model, self.function, self.options, f"partition {number}")
            for number, partition in enumerate(delayed_partitions(self.X, "X"))
        ]

    def errors_name_partition(self, scheduler: Any = None) -> AbstractContextManager[None]:
        """Answers are computed inside; errors say which partition of X they are about."""
        return errors_name_partition(self.delayed_per_partition, scheduler)


class AnswerFrame(dd.DataFrame):
    """A data frame of Dask with answers, as if each partition of X were asked by itself.

    Errors name the partition of X that cannot be read or does not fit. They do so in what is
    computed here; collections made of this one are Dask's own.
    """

    def __init__(self, answers: dd.DataFrame, work: PerPartition) -> None:
        super().__init__(answers.expr)
        object.__setattr__(self, "_work", work)

    def compute(self, **options: Any) -> Any:
        with self._work.errors_name_partition(options.get("scheduler")):
            return super().compute(**options)

    def persist(self, fuse: bool = True, **options: Any) -> "AnswerFrame":
        with self._work.errors_name_partition(options.get("scheduler")):
            return AnswerFrame(super().persist(fuse, **options), self._work)

    def head(self, n: int = 5, npartitions: int = 1, compute: bool = True) -> Any:
        lazy = AnswerFrame(super().head(n, npartitions, compute=False), self._work)
        return lazy.compute() if compute else lazy

    def tail(self, n: int = 5, compute: bool = True) -> Any:
        lazy = AnswerFrame(super().tail(n, compute=False), self._work)
        return lazy.compute() if compute else lazy

    def __len__(self) -> int:
        with self._work.errors_name_partition():
            return int(super().__len__())

    def to_csv(self, filename: Any, **options: Any) -> Any:
        with self._work.errors_name_partition(
            (options.get("compute_kwargs") or {}).get("scheduler")
        ):
            return super().to_csv(filename, **options)

    def to_parquet(self, path: str | Path, **options: Any) -> Any:
        """Write a new folder, whole or not at all.

        What was written before an error stays in ``<path>.unfinished``. An address such as
        ``s3://...`` is written to at once, and so is a folder with ``append=True``,
        ``overwrite=True`` or ``compute=False``, by ``to_parquet`` of Dask.
        """
        compute, how = options.pop("compute", True), options.pop("compute_kwargs", None) or {}
        elsewhere = "://" in str(path) or options.keys() & {"filesystem", "storage_options"}
        if elsewhere or not compute or options.get("append") or options.get("overwrite"):
            lazy = super().to_parquet(path, compute=False, **options)
            return self._write(lazy, how) if compute else lazy
        folder = Path(path).expanduser()
        if folder.is_symlink() or (folder.exists() and not _is_empty(folder)):
            raise FileExistsError(f"{path} exists; its folder must be new, or overwrite=True.")
        unfinished = folder.with_name(f"{folder.name}.unfinished")
        _check_safe_to_overwrite(unfinished)
        options["overwrite"] = True
        self._write(super().to_parquet(unfinished, compute=False, **options), how)
        if folder.exists():
            folder.rmdir()
        unfinished.rename(folder)
        return None

    def _write(self, lazy: Any, options: dict[str, Any]) -> Any:
        with self._work.errors_name_partition(options.get("scheduler")):
            return lazy.compute(**options)


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())


def _check_safe_to_overwrite(folder: Path) -> None:
    """Refuse a folder that holds more than Parquet files, which an interrupted try leaves there."""
    files = [folder] if folder.is_file() else folder.rglob("*")
    for file in files:
        ours = file.suffix == ".parquet" or file.name in _FILES_OF_PARQUET
        if not file.is_dir() and not ours:
            raise FileExistsError(f"{file} is in the way: answers are written to {folder} first.")


class AnswerArray(da.Array):
    """An array of Dask with answers; see :class:`AnswerFrame`."""

    _work: PerPartition

    def __new__(cls, answers: da.Array, work: PerPartition) -> "AnswerArray":
        self: AnswerArray = super().__new__(
            cls, answers.dask, answers.name, answers.chunks, meta=answers._meta
        )
        self._work = work
        return self

    def compute(self, **options: Any) -> Any:
        with self._work.errors_name_partition(options.get("scheduler")):
            return super().compute(**options)

    def persist(self, **options: Any) -> "AnswerArray":
        with self._work.errors_name_partition(options.get("scheduler")):
            return AnswerArray(super().persist(**options), self._work)

    def compute_chunk_sizes(self) -> Any:
        with self._work.errors_name_partition():
            return super().compute_chunk_sizes()


def map_partitions(
    classifier: Any,
    function: Callable[[Any, Any, Any], Any],
    X: Any,
    columns: list[str],
    dtype: Any,
    options: dict[str, Any],
) -> AnswerFrame | AnswerArray:
    """``function(classifier, X, options)`` of every partition, lazily.

    Of a data frame: a data frame with the same index and divisions. Of an array: an array. The
    classifier is sent once to a worker.
    """
    work = PerPartition(classifier, function, copy(X), options)
    if is_dask_array(X):
        return AnswerArray(_array(work, dtype, len(columns)), work)
    index = X._meta.index[:0]
    meta = pd.DataFrame(np.empty((0, len(columns)), dtype), columns=columns, index=index)
    model = delayed(classifier, traverse=False)
    answers = X.map_partitions(_frame_of, model, function, columns, dtype, options, meta=meta)
    return AnswerFrame(answers, work)


def _array(work: PerPartition, dtype: Any, m: int) -> da.Array:
    compute_block, model = delayed(_array_of, pure=False), delayed(work.classifier, traverse=False)
    partitions, lengths = delayed_partitions(work.X, "X"), work.X.chunks[0]
    blocks = [
        da.from_delayed(
            compute_block(
                partition, model, work.function, work.options, f"partition {number}", dtype, m
            ),
            (n, m),
            dtype,
        )
        for number, (partition, n) in enumerate(zip(partitions, lengths, strict=True))
    ]
    whole: da.Array = da.concatenate(blocks, allow_unknown_chunksizes=True)
    return whole


def map_frame_partitions(
    classifier: Any,
    function: Callable[[Any, Any, Any], Any],
    X: Any,
    options: dict[str, Any],
    meta: Any,
) -> AnswerFrame:
    """``function(classifier, X, options)``, a data frame like ``meta``, of every partition."""
    model = delayed(classifier, traverse=False)
    empty = meta.iloc[:0].set_axis(X._meta.index[:0])
    answers = X.map_partitions(_table_of, model, function, options, empty, meta=empty)
    return AnswerFrame(answers, PerPartition(classifier, function, copy(X), options))


def _table_of(X: Any, classifier: Any, function: Any, options: Any, empty: Any) -> Any:
    answers = _answer(X, classifier, function, options, _rows(X))
    return empty.set_axis(X.index) if answers is None else answers


def _frame_of(
    X: Any, classifier: Any, function: Any, columns: list[str], dtype: Any, options: Any
) -> Any:
    answers = _array_of(X, classifier, function, options, _rows(X), dtype, len(columns))
    return pd.DataFrame(answers, columns=columns, index=X.index)


def _array_of(
    X: Any, classifier: Any, function: Any, options: Any, name: str, dtype: Any, m: int
) -> Any:
    answers = _answer(X, classifier, function, options, name)
    if answers is None:
        return np.empty((0, m), dtype=dtype)
    return np.asarray(answers, dtype=dtype).reshape(X.shape[0], m)


def _rows(X: Any) -> str:
    """A name for rows of a data frame, since Dask may have put several partitions together."""
    if not hasattr(X, "columns"):
        raise TypeError(f"partitions must be data frames, got {type(X).__name__}.")
    return f"rows {X.index[0]} to {X.index[-1]}" if len(X) else "no rows"


def _answer(X: Any, classifier: Any, function: Any, options: Any, name: str) -> Any:
    """What the classifier says, None of no rows; an error begins with the name."""
    with errors_name_chunk(name):
        if not hasattr(X, "shape"):
            raise TypeError(f"must be a table, got {type(X).__name__}.")
        return function(classifier, X, options) if X.shape[0] else None
