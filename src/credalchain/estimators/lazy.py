"""Predictions for dask collections: computed partition by partition, when they are asked for."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from credalchain.chunks.dask_parts import map_frames, map_parts


@dataclass(frozen=True, eq=False)
class LazyPrediction:
    """What ``infer`` gives for a dask array or data frame.

    Nothing is computed before ``compute()``, ``to_parquet()`` or the like is called on what these
    give. Data frames keep the index and the divisions of X.
    """

    classifier: Any
    X: Any
    options: dict[str, Any]

    @property
    def label_names(self) -> tuple[str, ...]:
        return tuple(self.classifier.label_names_.tolist())

    @property
    def labels(self) -> Any:
        """1, 0, or -1 for what is left open: a data frame, or an int8 array (n, m)."""
        names = list(self.label_names)
        return map_parts(self.classifier, infer_labels, self.X, names, np.int8, self.options)

    def to_frame(self, *, intervals: bool = False) -> Any:
        """A dask data frame like that of :meth:`CredalPrediction.to_frame`."""
        if hasattr(self.X, "chunks"):
            raise TypeError("to_frame is for data frames; for an array ask for labels.")
        return map_frames(self.classifier, infer_frame, self.X, {**self.options, "_": intervals})


def infer_labels(classifier: Any, X: Any, options: dict[str, Any]) -> Any:
    """Labels of one partition, (n, m)."""
    return classifier.infer(X, **options).labels


def infer_frame(classifier: Any, X: Any, options: dict[str, Any]) -> Any:
    """A table of one partition; ``options["_"]`` says whether intervals are in it."""
    rest = {name: value for name, value in options.items() if name != "_"}
    return classifier.infer(X, **rest).to_frame(intervals=options["_"])


def call_method(classifier: Any, X: Any, options: dict[str, Any]) -> Any:
    """A method by its name, of one partition."""
    return getattr(classifier, options["method"])(X)


def predict_lazily(classifier: Any, method: str, X: Any, dtype: Any) -> Any:
    """A method that gives one column for each label, of a dask collection."""
    columns = classifier.label_names_.tolist()
    return map_parts(classifier, call_method, X, columns, dtype, {"method": method})
