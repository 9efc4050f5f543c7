"""Lazy predictions for dask collections, computed partition by partition."""

from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from credalchain.bases.protocol import Exactness
from credalchain.chunks.dask_chunks import is_dask_array
from credalchain.estimators.prediction import CredalPrediction


@dataclass(frozen=True, eq=False)
class LazyPrediction:
    """What ``infer`` gives for a dask array or data frame.

    Nothing is computed before ``compute()`` or ``to_parquet()`` is called, here or on what
    ``labels`` and ``to_frame`` give, with the parameters that the classifier has now. Data frames
    keep the index and the divisions of X. A partition that cannot be read, or that does not fit,
    is named in the error by its number.
    """

    classifier: Any
    X: Any
    options: dict[str, Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "classifier", copy(self.classifier))
        object.__setattr__(self, "X", copy(self.X))  # X["new"] = ... changes it in place

    @property
    def label_names(self) -> tuple[str, ...]:
        return tuple(self.classifier.label_names_.tolist())

    @property
    def labels(self) -> Any:
        """1, 0, or -1 for what is left open: a data frame, or an int8 array (n, m)."""
        from credalchain.chunks.dask_answers import map_partitions

        names = list(self.label_names)
        return map_partitions(self.classifier, infer_labels, self.X, names, np.int8, self.options)

    def to_frame(self, *, intervals: bool = False) -> Any:
        """A dask data frame like that of :meth:`credalchain.CredalPrediction.to_frame`."""
        if is_dask_array(self.X):
            raise TypeError("to_frame is for data frames; for an array ask for labels.")
        from credalchain.chunks.dask_answers import map_frame_partitions

        m = len(self.label_names)
        empty = CredalPrediction(
            np.zeros((0, m), np.int8),
            np.zeros((0, m, 2)),
            (Exactness.EXACT,) * m,
            self.label_names,
        )
        function = partial(infer_frame, intervals=intervals)
        like = empty.to_frame(intervals=intervals)
        return map_frame_partitions(self.classifier, function, self.X, self.options, like)

    def compute(self, *, intervals: bool = False) -> Any:
        """All answers in memory: a pandas data frame, or an array of labels if X is one."""
        lazy = self.labels if is_dask_array(self.X) else self.to_frame(intervals=intervals)
        return lazy.compute()

    def to_parquet(self, folder: str | Path, *, intervals: bool = False, **options: Any) -> Any:
        """Write what :meth:`to_frame` gives into a new folder, whole or not at all.

        What was written before an error stays in ``<folder>.unfinished``. An address such as
        ``s3://...`` is written to at once, and so is a folder with ``append=True``,
        ``overwrite=True`` or ``compute=False``.

        Parameters
        ----------
        folder : str or Path
            New or empty, if it is on this machine and none of these options is given.
        intervals : bool, default=False
        **options
            For ``to_parquet`` of dask.
        """
        return self.to_frame(intervals=intervals).to_parquet(folder, **options)


def infer_labels(classifier: Any, X: Any, options: dict[str, Any]) -> Any:
    """Labels of one partition, (n, m)."""
    return classifier.infer(X, **options).labels


def infer_frame(classifier: Any, X: Any, options: dict[str, Any], *, intervals: bool) -> Any:
    """A table of one partition."""
    return classifier.infer(X, **options).to_frame(intervals=intervals)


def call_method(classifier: Any, X: Any, options: dict[str, Any], *, method: str) -> Any:
    """Call a method by name, for one partition."""
    return getattr(classifier, method)(X, **options)


def predict_lazily(classifier: Any, method: str, X: Any, dtype: Any) -> Any:
    """Call a method that gives one column for each label, for a dask collection."""
    if np.ndim(classifier.classes_) != 2:
        raise TypeError(
            f"{method} of a dask collection is for labels that came as a table; this classifier "
            "was fitted on a vector."
        )
    from credalchain.chunks.dask_answers import map_partitions

    columns = classifier.label_names_.tolist()
    function = partial(call_method, method=method)
    return map_partitions(copy(classifier), function, X, columns, dtype, {})
