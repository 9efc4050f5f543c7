"""Types of arguments, named for readable signatures.

MatrixLike
    A table with a row for each sample: an array, a data frame, a scipy sparse matrix or a list of
    rows; a dask array or data frame where the documentation says so.
LabelsLike
    Labels of rows, 0 or 1, or missing as NaN, None, ``pd.NA``, -1 or masked: a table with a
    column for each label, or a vector for a single one. Or a list of the names of each row's
    labels, where the documentation says so.
PredictionLike
    A prediction of a classifier: a ``CredalPrediction``, or labels 0, 1 and -1 for "left open".
VectorLike
    A list or an array with one value for each label, row or value of s, as the parameter says.
ChunksLike
    Data in chunks: pairs of a table and its labels, a function that returns an iterator of such
    pairs, or one pair of dask collections. Or ``Chunks``: an object of another engine that computes
    sums over its own chunks.
PromiseLike
    Risks and their maximum levels, like ``{"row_error": 0.1}``. A function may replace a name, and
    a dict of levels for single labels a number.
RowLoss
    A function of true labels and answers that gives each row a loss from 0 to 1.
RandomStateLike
    A seed, a ``RandomState``, or None for different random numbers each time.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NewType, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray


class SparseMatrix(Protocol):
    """Protocol of matrices and arrays of ``scipy.sparse``."""

    shape: Any

    def tocsr(self, copy: bool = ...) -> Any:
        """Return the same by rows."""


class DaskCollection(Protocol):
    """Protocol of dask arrays and data frames."""

    def __dask_graph__(self) -> Any: ...


Total = TypeVar("Total")
Work = Callable[..., Total]
"""Gets the name of a chunk, X, Y, the number of its first row, and what is shared by all."""


def unchanged(total: Total) -> Total:
    """Return the sum as it is, where it needs no trimming."""
    return total


class Chunks(Protocol):
    """Protocol of data in chunks.

    See Also
    --------
    credalchain.chunks.sources.IterableChunks : Chunks in this process.
    credalchain.chunks.dask_collections.DaskChunks : Chunks on dask.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier
    >>> from credalchain.chunks.sources import IterableChunks
    >>> X, Y = [[0.1], [0.2], [0.8], [0.9]], [[0, 0], [0, 1], [1, 1], [1, 1]]
    >>> chunks = IterableChunks(lambda: [(X[:2], Y[:2]), (X[2:], Y[2:])])
    >>> CredalChainClassifier().fit_chunks(chunks).learned_from_
    'bins learned from all 4 rows'
    """

    def reduce(
        self,
        work: Work[Total],
        *shared: Any,
        trim: Callable[[Total], Total] = unchanged,
        numbered: bool = True,
    ) -> Total:
        """Return the sum (``+``) over all chunks of what ``work`` makes of them.

        Parameters
        ----------
        work : callable
            ``work(name, X, Y, first_row, *shared)``, called inside ``naming_chunk_in_errors`` of
            ``credalchain.chunks.sources``.
        *shared
            Further arguments of ``work``, the same for all chunks.
        trim : callable, default=unchanged
            Takes a sum and returns a smaller one, to keep memory small.
        numbered : bool, default=True
            If True, pass ``work`` the number of its first row among all rows, by which samples are
            drawn.

        Returns
        -------
        object
            The sum.
        """
        ...

    def hash_limit(self, size: int) -> Any:
        """Return the largest hash of a sample of rows if their number is known, else of all rows.

        Parameters
        ----------
        size : int
            Number of rows in the sample.

        Returns
        -------
        uint64
            Rows whose hash is not above it are drawn.
        """
        ...


class Prediction(Protocol):
    """Protocol of predictions that measures take, such as ``CredalPrediction``."""

    @property
    def log_odds(self) -> NDArray[np.float64]:
        """Log-odds of the lower and the upper bound: (n_samples, n_labels, 2)."""

    @property
    def interval(self) -> NDArray[np.float64]:
        """Lower and upper probability: (n_samples, n_labels, 2)."""

    @property
    def labels(self) -> NDArray[np.int8]:
        """Labels 0, 1, and -1 for "left open": (n_samples, n_labels)."""

    @property
    def label_names(self) -> tuple[str, ...]:
        """Names of the labels."""


RandomStateLike: TypeAlias = int | np.random.RandomState | None

if TYPE_CHECKING:
    MatrixLike: TypeAlias = ArrayLike | SparseMatrix | Sequence[Sequence[object]] | DaskCollection
    LabelsLike: TypeAlias = MatrixLike | Sequence[object]
    PredictionLike: TypeAlias = LabelsLike | Prediction
    VectorLike: TypeAlias = ArrayLike
    ChunksLike: TypeAlias = (
        Iterable[tuple[MatrixLike, LabelsLike]]
        | Callable[[], Iterable[tuple[MatrixLike, LabelsLike]]]
        | tuple[DaskCollection, DaskCollection]
        | Chunks
    )
    RowLoss: TypeAlias = Callable[[NDArray[np.int8], NDArray[np.int8]], ArrayLike]
    PromiseLike: TypeAlias = Mapping[Any, float] | Mapping[Any, Mapping[str, float]]
else:  # help() would print the unions, which are a page long, instead of their names
    MatrixLike = NewType("MatrixLike", object)
    LabelsLike = NewType("LabelsLike", object)
    PredictionLike = NewType("PredictionLike", object)
    VectorLike = NewType("VectorLike", object)
    ChunksLike = NewType("ChunksLike", object)
    RowLoss = NewType("RowLoss", object)
    PromiseLike = NewType("PromiseLike", object)
