"""Dask collections of answers: computed partition by partition, when they are asked for."""

from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.delayed import delayed

from credalchain.chunks.dask_chunks import delayed_partitions, naming_unreadable
from credalchain.chunks.sources import naming

_write: Callable[..., Any] = dd.DataFrame.to_parquet


def _naming(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method of a collection of Dask; a partition that cannot be read is named."""

    @wraps(method)
    def named(self: Any, *arguments: Any, **options: Any) -> Any:
        with naming_unreadable(partial(delayed_partitions, self._table, "X")):
            return method(self, *arguments, **options)

    return named


class AnswerFrame(dd.DataFrame):
    """A data frame of Dask with the answers for the rows of ``table``.

    If a partition of the table cannot be read, the error names it; so it does for whatever is
    computed here, not for collections made of this one, which are Dask's own.
    """

    def __init__(self, answers: dd.DataFrame, table: Any) -> None:
        super().__init__(answers.expr)  # type: ignore[no-untyped-call]
        object.__setattr__(self, "_table", table)

    compute = _naming(dd.DataFrame.compute)
    persist = _naming(dd.DataFrame.persist)
    head = _naming(dd.DataFrame.head)
    tail = _naming(dd.DataFrame.tail)
    to_csv = _naming(dd.DataFrame.to_csv)
    __len__ = _naming(dd.DataFrame.__len__)

    @_naming
    def to_parquet(self, path: str | Path, **options: Any) -> Any:
        """Write a new folder, whole or not at all.

        What was written before an error stays in ``<path>.unfinished``. An address such as
        ``s3://...`` is written to at once, and so is a folder with ``append=True``,
        ``overwrite=True`` or ``compute=False``, by ``to_parquet`` of Dask.
        """
        if "://" in str(path) or options.keys() & {"append", "overwrite", "compute"}:
            return _write(self, path, **options)
        folder = Path(path)
        if folder.exists():
            raise FileExistsError(f"{path} exists; its folder must be new, or overwrite=True.")
        unfinished = folder.with_name(f"{folder.name}.unfinished")
        _write(self, unfinished, overwrite=True, **options)
        unfinished.rename(folder)


class AnswerArray(da.Array):
    """An array of Dask with the answers for the rows of ``table``; see :class:`AnswerFrame`."""

    _table: Any

    def __new__(cls, answers: da.Array, table: Any) -> "AnswerArray":
        self: AnswerArray = super().__new__(  # type: ignore[no-untyped-call]
            cls, answers.dask, answers.name, answers.chunks, meta=answers._meta
        )
        self._table = table
        return self

    compute = _naming(da.Array.compute)
    persist = _naming(da.Array.persist)
    compute_chunk_sizes = _naming(da.Array.compute_chunk_sizes)


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
    model = delayed(classifier, traverse=False)
    if not hasattr(X, "chunks"):
        index = X._meta.index[:0]
        meta = pd.DataFrame(np.empty((0, len(columns)), dtype), columns=columns, index=index)
        found = X.map_partitions(_frame_of, model, function, columns, dtype, options, meta=meta)
        return AnswerFrame(found, X)
    partitions, one = delayed_partitions(X, "X"), delayed(_array_of, pure=False)
    blocks = [
        da.from_delayed(  # type: ignore[no-untyped-call]
            one(partition, model, function, dtype, len(columns), options, number),
            (n, len(columns)),
            dtype,
        )
        for number, (partition, n) in enumerate(zip(partitions, X.chunks[0], strict=True))
    ]
    whole = da.concatenate(blocks, allow_unknown_chunksizes=True)  # type: ignore[no-untyped-call]
    return AnswerArray(whole, X)


def map_frame_partitions(
    classifier: Any,
    function: Callable[[Any, Any, Any], Any],
    X: Any,
    options: dict[str, Any],
    meta: Any,
) -> AnswerFrame:
    """``function(classifier, X, options)``, a data frame like ``meta``, of every partition."""
    model = delayed(classifier, traverse=False)
    nothing = meta.iloc[:0].set_axis(X._meta.index[:0])
    found = X.map_partitions(_table_of, model, function, options, nothing, meta=nothing)
    return AnswerFrame(found, X)


def _table_of(
    X: Any, classifier: Any, function: Any, options: Any, nothing: Any, partition_info: Any = None
) -> Any:
    if len(X) == 0:
        return nothing.set_axis(X.index)
    return _asked(function, classifier, X, options, _number(partition_info))


def _array_of(
    X: Any, classifier: Any, function: Any, dtype: Any, m: int, options: Any, number: Any = None
) -> Any:
    if X.shape[0] == 0:
        return np.empty((0, m), dtype=dtype)
    found = _asked(function, classifier, X, options, number)
    return np.asarray(found, dtype=dtype).reshape(X.shape[0], m)


def _frame_of(
    X: Any,
    classifier: Any,
    function: Any,
    columns: list[str],
    dtype: Any,
    options: Any,
    partition_info: Any = None,
) -> Any:
    number = _number(partition_info)
    found = _array_of(X, classifier, function, dtype, len(columns), options, number)
    return pd.DataFrame(found, columns=columns, index=X.index)


def _number(partition_info: Any) -> Any:
    return None if not partition_info else partition_info.get("number")


def _asked(function: Any, classifier: Any, X: Any, options: Any, number: Any) -> Any:
    """What the classifier says; an error names the partition, where its number is known."""
    if number is None:
        return function(classifier, X, options)
    with naming(f"partition {number}"):
        return function(classifier, X, options)
