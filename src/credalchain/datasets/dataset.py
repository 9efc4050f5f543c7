"""A multi-label data set with its names and where it comes from."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from credalchain._utils.text import table_size
from credalchain.labels import MISSING

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class MultilabelDataset:
    """Features and labels of a data set.

    Attributes
    ----------
    name : str
    X : pandas data frame, or scipy CSR array
        Nominal attributes are categorical columns; sparse data of numbers and 0/1 is CSR.
    labels : ndarray of int8, shape (n, m)
        0, 1, or -1 for missing; columns in the order of the file.
    Y : pandas data frame
        The same with names, for ``fit``.
    feature_names, label_names : list of str
    description, source, citation : str
    groups : pandas series or None
        What each row belongs to, if rows depend on each other.
    """

    name: str
    X: Any
    labels: NDArray[np.int8]
    feature_names: list[str]
    label_names: list[str]
    description: str = ""
    source: str = ""
    citation: str = ""
    groups: Any = None

    @property
    def Y(self) -> "pd.DataFrame":
        """Labels with their names, as a pandas data frame."""
        import pandas as pd

        return pd.DataFrame(self.labels, columns=self.label_names)

    @property
    def cardinality(self) -> float:
        """Labels that a row has, on average."""
        return float((self.labels == 1).sum(axis=1).mean())

    @property
    def density(self) -> float:
        """The share of labels that a row has, on average."""
        return self.cardinality / len(self.label_names)

    def to_frame(self) -> "pd.DataFrame":
        """Features and labels in one pandas data frame; missing labels are ``pd.NA``.

        Sparse columns become dense ones: boolean where they hold 0 and 1 only.
        """
        import pandas as pd

        X = self.X
        if sparse.issparse(X):
            X = pd.DataFrame(X.toarray(), columns=self.feature_names)
            X = X.astype(dict.fromkeys(X.columns[X.isin([0, 1]).all()], bool))
        elif not hasattr(X, "columns"):
            X = pd.DataFrame(X, columns=self.feature_names)
        Y = self.Y.astype("Int8")
        both = [X.reset_index(drop=True), Y.mask(self.labels == MISSING)]
        frame: pd.DataFrame = pd.concat(both, axis=1)
        return frame

    def __repr__(self) -> str:
        (n, p), m = self.X.shape, self.labels.shape[1]
        return f"MultilabelDataset({self.name!r}: {table_size(n, p, m)})"
