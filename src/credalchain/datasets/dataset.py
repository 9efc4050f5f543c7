"""A multi-label data set with its names and where it comes from."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class MultilabelDataset:
    """Features and labels of a data set.

    Attributes
    ----------
    name : str
    X : pandas data frame, or scipy CSR array
        Nominal attributes are categorical columns; sparse data of numbers and 0/1 is CSR.
    Y : ndarray of int8, shape (n, m)
        0, 1, or -1 for missing; columns in the order of the file.
    feature_names, label_names : list of str
    description, source, citation : str
    """

    name: str
    X: Any
    Y: NDArray[np.int8]
    feature_names: list[str]
    label_names: list[str]
    description: str = ""
    source: str = ""
    citation: str = ""

    @property
    def cardinality(self) -> float:
        """Labels that a row has, on average."""
        return float((self.Y == 1).sum(axis=1).mean())

    @property
    def density(self) -> float:
        """The share of labels that a row has, on average."""
        return self.cardinality / len(self.label_names)

    def __repr__(self) -> str:
        n, p = self.X.shape
        return f"MultilabelDataset({self.name!r}: {n} rows, {p} features, {self.Y.shape[1]} labels)"
