"""Dask collections: learning from their partitions, and lazy predictions for them."""

import re
import warnings
from collections import Counter
from collections.abc import Callable
from copy import copy
from functools import cached_property, partial, reduce
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from credalchain.chunks.sampling import hash_limit
from credalchain.chunks.sources import IterableChunks, naming_chunk_in_errors
from credalchain.preprocessing import is_dask
from credalchain.typing import Chunks, Total, Work, unchanged

_SUMS_PER_TASK = 8  # sums that are added together in one task
_COLUMNS: dict[str, dict[str, Any]] = {  # of each label: endings of their names, and types
    "predict": {"": np.int64},
    "predict_partial": {"": np.int8},
    "predict_proba": {"": np.float64},
    "infer": {"": "Int8", "_lower": np.float64, "_upper": np.float64},
}


def as_chunks(chunks: Any) -> Chunks:
    """Return chunks that are read one after the other, or the partitions of a pair of collections.

    Anything that can add up over its chunks itself, as :class:`Chunks` has it, is taken as it is.
    """
    if hasattr(chunks, "reduce") and hasattr(chunks, "hash_limit"):
        source: Chunks = chunks
        return source
    if isinstance(chunks, tuple) and len(chunks) == 2 and is_dask(chunks[0]):
        return DaskChunks(*chunks)
    return IterableChunks(chunks)


# -- learning --------------------------------------------------------------------------------------


class DaskChunks:
    """Chunks that are the partitions of two dask arrays or data frames.

    Work goes to the client that is connected, or to Dask's own threads without one.

    Parameters
    ----------
    X : dask array or data frame
        Rows.
    Y : dask array or data frame
        Their labels, in the same partitions.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from credalchain.chunks.dask_collections import DaskChunks
    >>> X = da.from_array(np.zeros((6, 2)), chunks=(3, 2))
    >>> Y = da.from_array(np.zeros((6, 1), dtype=int), chunks=(3, 1))
    >>> chunks = DaskChunks(X, Y)
    >>> chunks.reduce(lambda name, x, y, first: len(x)), chunks.lengths
    (6, [3, 3])
    """

    def __init__(self, X: Any, Y: Any) -> None:
        _check_table("X", X, 2)
        _check_table("Y", Y, 1, 2)
        if not (_is_frame(X) or _is_frame(Y) or np.isnan([*X.chunks[0], *Y.chunks[0]]).any()):
            Y = Y.rechunk({0: X.chunks[0]})
        self.table, self.X, self.Y = X, _partitions(X), _partitions(Y)
        if len(self.X) != len(self.Y):
            raise ValueError(
                f"X and Y must have the same partitions, got {len(self.X)} and {len(self.Y)}."
            )

    @cached_property
    def lengths(self) -> list[int]:
        """Rows of each partition, counted in one column where Dask does not know them."""
        from dask.delayed import delayed

        X = self.table
        if _is_frame(X):
            X = X[list(X.columns[:1])]
        elif not np.isnan(X.chunks[0]).any():
            return list(X.chunks[0])
        shapes = self._compute([delayed(np.shape)(partition) for partition in _partitions(X)])
        return [shape[0] for shape in shapes]

    def reduce(
        self,
        work: Work[Total],
        *shared: Any,
        trim: Callable[[Total], Total] = unchanged,
        numbered: bool = True,
    ) -> Total:
        """Compute the sum (``+``) over all partitions of what ``work`` makes of them.

        Sums form a tree: only sums travel, and what is shared is sent once to a worker.

        Parameters
        ----------
        work : callable
            As in :class:`credalchain.typing.Chunks`.
        *shared
            Further arguments of ``work``, the same for all partitions.
        trim : callable, default=unchanged
            Takes a sum and returns a smaller one, to keep memory small.
        numbered : bool, default=True
            If True, pass ``work`` the number of its first row among all rows.

        Returns
        -------
        object
            The sum.
        """
        from dask.delayed import delayed

        shared_delayed = [delayed(value, traverse=False) for value in shared]
        first = np.cumsum([0, *self.lengths]).tolist() if numbered else [0] * len(self.X)
        apply, add = delayed(_apply), delayed(_sum)
        sums = [
            apply(work, f"partition {number}", x, y, first[number], *shared_delayed)
            for number, (x, y) in enumerate(zip(self.X, self.Y, strict=True))
        ]
        while len(sums) > 1:
            sums = [
                add(sums[i : i + _SUMS_PER_TASK], trim) for i in range(0, len(sums), _SUMS_PER_TASK)
            ]
        total: Total = self._compute(sums[0])
        return total

    def hash_limit(self, size: int) -> Any:
        """Return the largest hash of a sample of rows: partitions send no row outside the sample.

        Parameters
        ----------
        size : int
            Number of rows in the sample.

        Returns
        -------
        uint64
            Rows whose hash is not above it are drawn.
        """
        return hash_limit(sum(self.lengths), size)

    def _compute(self, wanted: Any) -> Any:
        """Compute delayed work; after an error of a reader, find the partition it came from.

        Dask reads in tasks of its own, so partitions are read again one by one.
        """
        from dask.delayed import delayed

        try:
            with warnings.catch_warnings():  # what is shared is large, and there once
                warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
                return delayed(wanted).compute()
        except Exception as error:
            of_cluster = type(error).__module__.startswith("distributed")
            if of_cluster or re.search(r"\bpartition \d", str(error)):
                raise
            for number, tables in enumerate(zip(self.X, self.Y, strict=True)):
                try:
                    delayed(lambda *_: None)(*tables).compute()
                except Exception as cause:
                    raise ValueError(f"partition {number} cannot be read: {cause!r}") from cause
            raise


def _check_table(name: str, X: Any, *ndims: int) -> None:
    if not is_dask(X) or not hasattr(X, "_meta") or X.ndim not in ndims:
        raise TypeError(
            f"{name} must be a dask data frame or a dask array with two dimensions, got "
            f"{type(X).__module__}.{type(X).__name__}."
        )


def _is_frame(X: Any) -> bool:
    return hasattr(X, "divisions")


def _partitions(X: Any) -> list[Any]:
    """Return one delayed table for each partition.

    Optimized as a whole, small files might come together in one of X and Y and not in the other;
    simplified, only the columns that are needed are read.
    """
    if _is_frame(X):
        return list(X.simplify().to_delayed(optimize_graph=False))
    return list((X.rechunk({1: -1}) if X.ndim == 2 else X).to_delayed().ravel())


def _apply(work: Work[Total], name: str, X: Any, Y: Any, *arguments: Any) -> Total:
    with naming_chunk_in_errors(name):
        left, right = (getattr(table, "index", None) for table in (X, Y))
        in_order = left is None or right is None or left.equals(right)
        if not in_order and Counter(left) == Counter(right):
            raise ValueError(
                "X and Y have the same index in different orders, so their rows do not belong "
                "together. Shuffles order rows at random: write the table to a file (to_parquet) "
                "before its columns are split."
            )
        return work(name, X, Y, *arguments)


def _sum(sums: list[Any], trim: Callable[[Any], Any]) -> Any:
    return reduce(lambda total, part: trim(total + part), sums)


# -- predicting ------------------------------------------------------------------------------------


def predict_lazily(classifier: Any, method: str, X: Any, options: dict[str, Any]) -> Any:
    """Call a method lazily on every partition, with the current parameters of the classifier."""
    import pandas as pd
    from dask.delayed import delayed

    check_is_fitted(classifier)
    _check_table("X", X, 2)
    if np.ndim(classifier.classes_) != 2:
        raise TypeError(
            f"{method} of a dask collection needs a classifier fitted on a table of labels, got "
            "one fitted on a vector."
        )
    if method not in _COLUMNS or (method == "infer" and not _is_frame(X)):
        raise TypeError(
            f"{method} does not take this dask collection: infer gives bounds for a data frame, "
            "predict_partial labels for an array, too."
        )
    if options.get("known") is not None:
        given = type(options["known"]).__name__
        raise ValueError(f"known must be None for a dask collection, got {given}.")
    if isinstance(options.get("strategy"), (tuple, list)):
        raise ValueError(
            f"strategy must be a single one for a dask collection, got {options['strategy']!r}."
        )
    names = classifier.label_names_.tolist()
    dtypes = {name + end: kind for name in names for end, kind in _COLUMNS[method].items()}
    model = delayed(copy(classifier), traverse=False)  # sent once to a worker
    if _is_frame(X):
        like = pd.DataFrame(columns=list(dtypes), index=X._meta.index[:0]).astype(dtypes)
        answer = partial(_answer, method=method, options=options, like=like)
        return X.map_partitions(answer, model, meta=like)
    empty = np.empty((0, len(names)), dtypes[names[0]])
    answer = partial(_answer, method=method, options=options, like=empty)
    X, chunks = X.rechunk({1: -1}), (X.chunks[0], (len(names),))
    return X.map_blocks(answer, model, dtype=empty.dtype, meta=empty, chunks=chunks)


def _answer(X: Any, classifier: Any, *, method: str, options: dict[str, Any], like: Any) -> Any:
    """Predict one partition; of no rows, the result is like ``like``."""
    if X.shape[0] == 0:
        return like
    answers = getattr(classifier, method)(X, **options)
    if method == "infer":
        return answers.to_frame(intervals=True).set_axis(X.index)  # a pipeline may have lost it
    if not hasattr(like, "columns"):
        return answers.astype(like.dtype)
    return type(like)(answers, X.index, like.columns, like.dtypes.iloc[0])
