"""From columns of any kind to category codes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from credalchain._utils.array_types import FloatArray, IntArray
from credalchain._utils.text import visible
from credalchain._utils.validation import check_array, check_instance, check_int
from credalchain.exceptions import warn_about_data
from credalchain.labels import missing_cells
from credalchain.typing import LabelsLike, MatrixLike

MISSING_CODE = -1
FEW_ROWS = 20  # with fewer rows, there is no warning about shares of them
_MANY = 0.5  # share of rows with distinct texts from which they are names or free text


@dataclass(frozen=True)
class NumericBins:
    """Intervals of a numeric column: a value's code is the number of cuts strictly below it.

    Parameters
    ----------
    cuts : ndarray of float64
        Increasing numbers.

    Examples
    --------
    >>> from credalchain import Discretizer
    >>> bins = Discretizer(n_bins=2).fit([[1.0], [2.0], [3.0], [4.0]]).binnings_[0]
    >>> bins.n_categories, bins.describe(0), bins.describe(1)
    (2, 'at most 2', 'above 2')
    """

    cuts: FloatArray

    @property
    def n_categories(self) -> int:
        """Number of intervals."""
        return len(self.cuts) + 1

    def describe(self, code: int) -> str:
        """Return the interval of a code, in the column's own units.

        Parameters
        ----------
        code : int
            The code.

        Returns
        -------
        str
            The interval, in words.
        """
        if len(self.cuts) == 0:
            return "any value"
        if code == 0:
            return f"at most {self.cuts[0]:.4g}"
        if code == len(self.cuts):
            return f"above {self.cuts[-1]:.4g}"
        return f"{self.cuts[code - 1]:.4g} to {self.cuts[code]:.4g}"

    def encode(self, values: FloatArray) -> IntArray:
        """Encode numbers as the codes of their intervals.

        Parameters
        ----------
        values : ndarray of float64, shape (n_samples,)
            Values of the column; NaN is missing.

        Returns
        -------
        ndarray of int64, shape (n_samples,)
            Codes; -1 for a missing value.
        """
        codes = np.searchsorted(self.cuts, values, side="left").astype(np.int64)
        codes[np.isnan(values)] = MISSING_CODE
        return codes


class ZeroAndBins(NumericBins):
    """Intervals of a sparse column: code 0 for zero, then intervals for everything else.

    Parameters
    ----------
    cuts : ndarray of float64
        Increasing numbers.

    Examples
    --------
    >>> from scipy import sparse
    >>> from credalchain import Discretizer
    >>> X = sparse.csr_array([[0.0], [0.0], [2.0], [5.0]])
    >>> bins = Discretizer(n_bins=2).fit(X).binnings_[0]
    >>> bins.n_categories, bins.describe(0)
    (3, '0')
    """

    @property
    def n_categories(self) -> int:
        """Number of intervals, and one for zero."""
        return len(self.cuts) + 2

    def describe(self, code: int) -> str:
        """Return zero, or the interval of a code in the column's own units.

        Parameters
        ----------
        code : int
            The code.

        Returns
        -------
        str
            The interval, in words.
        """
        if code == 0:
            return "0"
        return super().describe(code - 1) if len(self.cuts) else "not 0"

    def encode(self, values: FloatArray) -> IntArray:
        """Encode numbers as the codes of their intervals.

        Parameters
        ----------
        values : ndarray of float64, shape (n_samples,)
            Values of the column; NaN is missing.

        Returns
        -------
        ndarray of int64, shape (n_samples,)
            Codes; -1 for a missing value.
        """
        codes = super().encode(values)
        return np.where(codes == MISSING_CODE, codes, np.where(values == 0, 0, codes + 1))


@dataclass(frozen=True)
class Categories:
    """Categories of a column, without an order.

    Parameters
    ----------
    keys : ndarray
        Numbers or strings, in the order of their codes.

    Examples
    --------
    >>> import pandas as pd
    >>> from credalchain import Discretizer
    >>> categories = Discretizer().fit(pd.DataFrame({"sky": ["sun", "fog", "sun"]})).binnings_[0]
    >>> categories.n_categories, categories.describe(0)
    (2, 'fog')
    """

    keys: NDArray[Any]

    @property
    def n_categories(self) -> int:
        """Number of categories."""
        return max(1, len(self.keys))

    def describe(self, code: int) -> str:
        """Return the category of a code.

        Parameters
        ----------
        code : int
            The code.

        Returns
        -------
        str
            The category, as text.
        """
        if len(self.keys) == 0:
            return "any value"
        key = self.keys[code]
        return f"{key:g}" if self.keys.dtype.kind == "f" else str(key)

    def check_state(self, kinds: str = "Uf") -> None:
        """Validate stored keys: different strings or finite numbers.

        Parameters
        ----------
        kinds : str, default="Uf"
            Kinds of dtype that are allowed.
        """
        keys = self.keys
        check_instance("categories", keys, np.ndarray)
        is_valid = keys.ndim == 1 and keys.dtype.kind in kinds
        if not is_valid or len(np.unique(keys)) < len(keys):
            raise ValueError("the categories of a column must be different from each other.")
        if keys.dtype.kind == "f" and not np.isfinite(keys).all():
            raise ValueError("the categories of a column must be finite numbers.")

    def encode(self, keys: NDArray[Any], missing: NDArray[np.bool_]) -> IntArray:
        """Encode values as the codes of their categories.

        Parameters
        ----------
        keys : ndarray of shape (n_samples,)
            Values of the column.
        missing : ndarray of bool, shape (n_samples,)
            True where a value is missing.

        Returns
        -------
        ndarray of int64, shape (n_samples,)
            Codes; -1 for a missing value, ``n_categories`` for one that is not among the keys.
        """
        codes = np.full(len(keys), self.n_categories, dtype=np.int64)
        if len(self.keys):
            sorter = np.argsort(self.keys)
            index = np.searchsorted(self.keys, keys, sorter=sorter)
            candidate = sorter[np.minimum(index, len(self.keys) - 1)]
            matches = self.keys[candidate] == keys
            codes[matches] = candidate[matches]
        codes[missing] = MISSING_CODE
        return codes


Binning = NumericBins | ZeroAndBins | Categories
_BINNINGS = (NumericBins, ZeroAndBins, Categories)
_WORDS = _BINNINGS.index(Categories)


class Discretizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Transformer of columns of any kind into category codes.

    Numeric columns get equal-frequency bins: the cut points are the order statistics of
    rank floor(i n / n_bins), i = 1..n_bins - 1, equal ones merged, and a value's code is
    the number of cut points strictly below it. So values beyond the range seen fall into
    the end bins, and a constant column has a single category. Boolean, string and pandas
    categorical columns keep their categories. In scipy sparse input zero is a category of
    its own and the other values are binned. Missing values (NaN, None, ``pd.NA``) get
    code -1, values of a category that was never seen the code ``n_categories_[i]``.

    Parameters
    ----------
    n_bins : int, default=6
        Greatest number of intervals per numeric column.

    Attributes
    ----------
    n_categories_ : ndarray of int64, shape (n_features,)
        Number of categories of each column, whether or not rows fell into all of them.
    binnings_ : list
        For each column ``NumericBins``, ``ZeroAndBins`` or ``Categories``.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of str
        Names of the features seen during ``fit``, if X has column names that are all strings.

    See Also
    --------
    NaiveCredal : Discretizes its input by default.

    Examples
    --------
    >>> from credalchain import Discretizer
    >>> Discretizer(n_bins=2).fit_transform([[1.5], [2.5], [3.5], [float("nan")]])
    array([[ 0],
           [ 1],
           [ 1],
           [-1]], dtype=int8)
    """

    def __init__(self, n_bins: int = 6) -> None:
        self.n_bins = n_bins

    def fit(self, X: MatrixLike, y: LabelsLike | None = None) -> Self:
        """Learn cut points and categories.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Training rows.
        y : None
            Ignored.

        Returns
        -------
        self : object
            Fitted transformer.
        """
        self.set_binnings(self._learned(_columns_of(validate_table(self, X, reset=True))))
        return self

    def transform(self, X: MatrixLike) -> Any:
        """Encode the columns of ``X`` as codes.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of int, or CSR array, shape (n_samples, n_features)
            Codes; for sparse input CSR, where what is not stored has code 0.
        """
        check_is_fitted(self)
        return self.encode(validate_table(self, X, reset=False))

    def fit_encode(self, X: Any) -> Any:
        """Learn from validated rows, and encode them, in one pass.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Validated training rows.

        Returns
        -------
        ndarray of int, or CSR array, shape (n_samples, n_features)
            Codes.
        """
        validate_data(self, X, reset=True, skip_check_array=True)
        columns = _columns_of(X)
        self.set_binnings(self._learned(columns))
        return self.encode(X, columns)

    def encode(self, X: Any, columns: Any = None) -> Any:
        """Encode validated rows: ``transform`` without its checks of X.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Validated rows.
        columns : list, default=None
            X by columns, if it is at hand.

        Returns
        -------
        ndarray of int, or CSR array, shape (n_samples, n_features)
            Codes.
        """
        if columns is None:
            only_sparse = all(isinstance(binning, ZeroAndBins) for binning in self.binnings_)
            X = X.toarray() if sparse.issparse(X) and not only_sparse else X
            columns = _columns_of(X)
        dtype = np.min_scalar_type(-int(self.n_categories_.max(initial=1)) - 1)
        if sparse.issparse(columns):
            stored = np.ones(len(columns.data), dtype=dtype)
            stored[np.isnan(columns.data)] = MISSING_CODE
            for i, binning in enumerate(self.binnings_):
                if isinstance(binning, ZeroAndBins) and len(binning.cuts):
                    of_column = slice(columns.indptr[i], columns.indptr[i + 1])
                    stored[of_column] = binning.encode(columns.data[of_column])
            columns.data = stored
            return columns.tocsr()
        codes = np.empty(X.shape, dtype=dtype)
        for i, (column, binning) in enumerate(zip(columns, self.binnings_, strict=True)):
            if isinstance(columns, np.ndarray) and isinstance(binning, NumericBins):
                codes[:, i] = binning.encode(column)
            else:
                name, values = (str(i), column) if isinstance(columns, np.ndarray) else column
                codes[:, i] = _encode_column(name, values, binning)
        return codes

    def _learned(self, columns: Any) -> list[Binning]:
        n_bins = check_int("n_bins", self.n_bins, at_least=2)
        if sparse.issparse(columns):
            return bin_sparse(columns, n_bins)
        if isinstance(columns, np.ndarray):
            return [NumericBins(cut_points(column, n_bins)) for column in columns]
        return [_learn_column(name, column, n_bins) for name, column in columns]

    def set_binnings(self, binnings: Sequence[Binning]) -> None:
        """Set the fitted attributes.

        Parameters
        ----------
        binnings : sequence of NumericBins, ZeroAndBins or Categories
            Bins or categories of each column.
        """
        self.binnings_ = list(binnings)
        self.n_categories_ = np.array([b.n_categories for b in self.binnings_], dtype=np.int64)

    def __getstate__(self) -> dict[str, Any]:
        """Hold the bins of all columns in three arrays: files of many columns stay small."""
        state = dict(super().__getstate__())
        binnings = state.pop("binnings_", None)
        if binnings is not None:
            words = {str(i): one for i, one in enumerate(binnings) if isinstance(one, Categories)}
            cuts = [getattr(binning, "cuts", np.empty(0)) for binning in binnings]
            kinds = [_BINNINGS.index(type(binning)) for binning in binnings]
            state["bins"] = {
                "kinds": np.array(kinds, dtype=np.uint8),
                "sizes": np.array([len(part) for part in cuts], dtype=np.int64),
                "cuts": np.concatenate([np.empty(0), *cuts]),
                "words": words,
            }
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        bins = state.pop("bins", None)
        if bins is not None:
            parts = np.split(bins["cuts"], np.cumsum(bins["sizes"])[:-1])
            state["binnings_"] = [
                bins["words"][str(i)] if kind == _WORDS else _BINNINGS[kind](part)
                for i, (kind, part) in enumerate(zip(bins["kinds"], parts, strict=True))
            ]
        super().__setstate__(state)

    def check_state(self) -> None:
        """Validate a discretizer that was loaded from a file."""
        if not hasattr(self, "binnings_"):
            return
        check_int("n_features_in_", self.n_features_in_, len(self.binnings_), len(self.binnings_))
        for binning in self.binnings_:
            check_instance("bins", binning, (NumericBins, Categories))
            if isinstance(binning, Categories):
                binning.check_state()
                continue
            check_array("cuts", binning.cuts, np.float64, (None,), -np.inf, np.inf)
            if (np.diff(binning.cuts) <= 0).any() or np.isinf(binning.cuts).any():
                raise ValueError("the cut points of a column must increase and be finite.")
        n_categories = [binning.n_categories for binning in self.binnings_]
        check_array("n_categories_", self.n_categories_, np.int64, (len(n_categories),))
        if self.n_categories_.tolist() != n_categories:
            raise ValueError("n_categories_ must be the number of categories of each column.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def is_dask(X: Any) -> bool:
    """Return whether a value is a dask array, data frame or series."""
    return hasattr(X, "__dask_graph__") and hasattr(X, "dask")


def validate_table(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Return checked input: CSR, a data frame, or an array of numbers or of anything else."""
    if type(X) is not np.ndarray:
        X = normalize_table(X)
    if hasattr(X, "columns"):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        if 0 in X.shape:
            raise ValueError(f"X must have at least one row and one column, got shape {X.shape}.")
        return X
    kind = X.dtype.kind if hasattr(X, "dtype") else np.asarray(X).dtype.kind
    numeric = sparse.issparse(X) or kind in "iuf"
    return validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr",
        dtype=None,
        ensure_all_finite="allow-nan" if numeric else False,
    )


def as_indexable(X: Any) -> Any:
    """Return a table out of which rows can be taken."""
    X = normalize_table(X.tocsr() if sparse.issparse(X) else X)
    if sparse.issparse(X):
        return _with_small_indices(X)
    return X if hasattr(X, "columns") else np.asarray(X)


def _with_small_indices(X: Any) -> Any:
    """Return a CSR matrix with indices of 32 bits, if they fit: others are refused by liblinear."""
    dtype = sparse.get_index_dtype(maxval=max(X.nnz, *X.shape))
    if X.indices.dtype == dtype:
        return X
    return type(X)((X.data, X.indices.astype(dtype), X.indptr.astype(dtype)), X.shape)


def normalize_table(X: Any) -> Any:
    """Return masked cells as NaN, sparse duplicates as their sum, lists with text as objects.

    Otherwise numpy would turn the numbers beside a text into texts.
    """
    if is_dask(X):  # never loaded into memory without being asked
        raise TypeError(
            "X is a dask collection, and all of its rows are needed in memory here: pass "
            "X.compute(), if they fit."
        )
    has_rows = isinstance(X, (list, tuple)) and all(isinstance(row, (list, tuple)) for row in X)
    if has_rows and any(isinstance(value, str) for row in X for value in row):
        return np.array(X, dtype=object)
    if isinstance(X, (list, tuple)) and any(isinstance(row, str) for row in X):  # texts
        return np.array(X, dtype=object)
    if isinstance(X, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(X), np.nan, X.data)
    if sparse.issparse(X) and not getattr(X, "has_canonical_format", True):
        X = X.copy()
        X.sum_duplicates()
    return X


def _columns_of(X: Any) -> Any:
    """Return the columns: CSC without stored zeros, numbers (p, n), or (name, values) of each."""
    if sparse.issparse(X):
        columns = X.astype(np.float64).tocsc(copy=True)
        columns.eliminate_zeros()
        return columns
    if isinstance(X, np.ndarray) and X.dtype.kind in "iuf":
        return np.ascontiguousarray(X.T, dtype=np.float64)
    return named_columns(X)


def named_columns(X: Any) -> list[tuple[str, Any]]:
    """Return the columns of an array or data frame, with names for messages."""
    if isinstance(X, np.ndarray):
        return [(str(i), X[:, i]) for i in range(X.shape[1])]
    if hasattr(X, "iloc"):  # names may repeat
        return [(str(name), X.iloc[:, i]) for i, name in enumerate(X.columns)]
    return [(str(name), X[name]) for name in X.columns]


def cut_points(values: FloatArray, n_bins: int) -> FloatArray:
    """Order statistics of rank floor(i n / n_bins), counted from 1; none if all are equal."""
    values = np.sort(values[~np.isnan(values)])
    n = len(values)
    if n == 0 or values[0] == values[-1]:
        return np.empty(0)
    ranks = np.arange(1, n_bins) * n // n_bins
    return np.unique(values[ranks[ranks > 0] - 1])


def column_kind(name: str, column: Any) -> tuple[str, NDArray[Any]]:
    """Return what a column holds, and its categories: sorted, or in the order that it declares.

    "numbers", "booleans", "texts", "categories"; "nothing" if all values are missing, "objects" if
    these are Python objects, so that the type of other values is unknown.
    """
    declared = np.asarray(getattr(getattr(column, "dtype", None), "categories", None))
    if declared.ndim == 1:
        return "categories", values_and_missing(declared, name)[0]
    values, none = np.asarray(column), np.empty(0)
    if values.dtype == bool:
        return "booleans", none
    keys, missing = values_and_missing(values, name)
    if missing.all():
        return "objects" if values.dtype == object else "nothing", none
    if keys.dtype.kind != "f":
        return "texts", np.unique(keys[~missing])
    if values.dtype == object and all(isinstance(v, (bool, np.bool_)) for v in values[~missing]):
        return "booleans", none
    return "numbers", none


def binning_of(kind: str, keys: NDArray[Any], values: FloatArray, n_bins: int) -> Binning:
    """Return the codes of a column of this kind; ``values`` are its numbers."""
    if kind in ("texts", "categories", "objects"):
        return Categories(keys)
    if kind == "booleans":
        return Categories(np.array([0.0, 1.0]))
    return NumericBins(cut_points(values, n_bins))


def _learn_kind(name: str, column: Any) -> tuple[str, NDArray[Any]]:
    """Return what a column of training rows holds, with a warning of names."""
    kind, keys = column_kind(name, column)
    if kind == "texts":
        n = len(column) - int(values_and_missing(np.asarray(column), name)[1].sum())
        if looks_like_identifiers(len(keys), n):
            warn_about_data(
                f"column {name!r} of X: more than half as many different texts as rows, like names "
                "or dates, from which nothing can be learned. Leave it out."
            )
    return kind, keys


def _learn_column(name: str, column: Any, n_bins: int) -> Binning:
    kind, keys = _learn_kind(name, column)
    return binning_of(kind, keys, values_and_missing(np.asarray(column), name)[0], n_bins)


def looks_like_identifiers(n_distinct: int, n: int) -> bool:
    """Return whether more than half as many texts differ as there are rows."""
    return n >= FEW_ROWS and n_distinct > _MANY * n


def _encode_column(name: str, column: Any, binning: Binning) -> IntArray:
    if not isinstance(binning, Categories):
        return binning.encode(_read_as_in_fit(name, column, is_text=False)[0])
    is_text = binning.keys.dtype.kind != "f" if len(binning.keys) else None
    return encode_categories(name, binning, *_read_as_in_fit(name, column, is_text=is_text))


def _read_as_in_fit(
    name: str, column: Any, *, is_text: bool | None
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return values as texts, or numbers with NaN, and which are missing; None: as they come."""
    keys, missing = values_and_missing(np.asarray(column), name)
    if is_text is None:
        return keys, missing
    if is_text != (keys.dtype.kind != "f") and not missing.all():
        was, now = ("text", "numbers") if is_text else ("numbers", "text")
        raise ValueError(f"column {name!r} of X held {was} in fit and holds {now} now.")
    if is_text:
        return keys.astype(str), missing
    return (np.full(len(keys), np.nan) if missing.all() else keys), missing


def encode_categories(
    name: str, categories: Categories, keys: NDArray[Any], missing: NDArray[np.bool_]
) -> IntArray:
    """Return codes of a column of categories, with a warning about values never seen."""
    codes = categories.encode(keys, missing)
    unseen = codes == categories.n_categories
    if unseen.any():
        warn_about_data(
            f"column {visible(name)!r} of X holds values that were never seen in fit, such as "
            f"{visible(str(keys[unseen][0]))!r}: the model knows nothing about them, and may leave "
            "more open."
        )
    return codes


def values_and_missing(values: NDArray[Any], name: str) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return values as floats, with NaN, or strings, and which of them are missing."""
    if values.dtype.kind in "US":
        return values.astype(str), np.zeros(len(values), dtype=bool)
    if values.dtype.kind not in "biufO":
        raise ValueError(
            f"column {name!r} of X has dtype {values.dtype}; convert it to numbers or strings."
        )
    missing = missing_cells(values) if values.dtype == object else np.isnan(values)
    present: Any = values[~missing] if values.dtype == object else ()
    if all(isinstance(value, (bool, int, float, np.number, np.bool_)) for value in present):
        keys = np.asarray(np.where(missing, np.nan, values), dtype=np.float64)
        if np.isinf(keys).any():
            raise ValueError(f"Input X contains infinity in column {name!r}.")
        return keys, missing
    for value in present:
        if not (isinstance(value, (str, bytes)) or type(value).__name__ == "Interval"):
            raise TypeError(
                "argument must be a string or a number, and a column all of one kind: column "
                f"{name!r} of X holds {value!r} beside others."
            )
    return np.where(missing, "", values).astype(str), missing


def bin_sparse(columns: Any, n_bins: int) -> list[Binning]:
    """Learn from columns in CSC form, without stored zeros."""
    return [
        ZeroAndBins(cut_points(columns.data[start:stop], n_bins))
        for start, stop in zip(columns.indptr[:-1], columns.indptr[1:], strict=True)
    ]


_MAX_INDICATORS = 100
_MAX_COLUMNS = 2**26  # so that a single row stays small


@dataclass(frozen=True, eq=False)
class TableEncoder:
    """Encoder of a table as numbers; NaN is missing.

    ``words`` are the categories of the columns that hold text. Such a column becomes the code
    of its category, NaN for one that was never seen.
    """

    n_columns: int
    words: Mapping[int, Categories]
    empty: tuple[int, ...] = ()  # columns without a value in training

    @classmethod
    def learn(cls, X: Any) -> "TableEncoder":
        """Learn from validated training rows."""
        if isinstance(X, EncodedRows):
            return X.encoder
        is_array = isinstance(X, np.ndarray) and X.dtype.kind in "biuf"
        is_plain = sparse.issparse(X) or is_array
        kinds = [] if is_plain else [_learn_kind(*named) for named in named_columns(X)]
        return cls.of_kinds(int(X.shape[1]), kinds)

    @classmethod
    def of_kinds(cls, n_columns: int, kinds: Sequence[tuple[str, NDArray[Any]]]) -> "TableEncoder":
        """Return an encoder for columns of these kinds, which does nothing if all are numbers."""
        words: dict[int, Categories] = {}
        empty = []
        for i, (kind, keys) in enumerate(kinds):
            if kind in ("nothing", "objects") or (kind == "categories" and not len(keys)):
                empty.append(i)
            elif kind in ("texts", "categories") and keys.dtype.kind != "f":
                words[i] = Categories(keys)
        return cls(n_columns, words, tuple(empty))

    def encode(self, X: Any, dtype: Any = np.float64) -> NDArray[Any]:
        """Return checked rows as a dense array."""
        if isinstance(X, EncodedRows):
            return np.ascontiguousarray(X.encoded, dtype=dtype)
        if sparse.issparse(X):
            if self.words:
                raise ValueError("X held text in fit and is a sparse matrix now.")
            encoded = np.asarray(X.toarray(), dtype=np.float64)
        elif getattr(X, "dtype", np.dtype(object)).kind in "biuf" and not (
            self.words or self.empty
        ):
            encoded = X
        else:
            columns = [self._column(i, *named) for i, named in enumerate(named_columns(X))]
            encoded = np.column_stack(columns)
        with np.errstate(over="ignore"):
            cast = np.ascontiguousarray(encoded, dtype=dtype)
        if np.isinf(cast).any():
            raise ValueError(f"X holds infinity, or a value too large for {np.dtype(dtype).name}.")
        return cast

    def encode_table(self, X: Any) -> Any:
        """Return the same with indicators of categories; sparse rows stay sparse."""
        is_sparse = sparse.issparse(X) and not self.words
        return X.tocsr() if is_sparse else self.indicators(self.encode(X))

    def indicators(self, encoded: NDArray[Any]) -> NDArray[Any]:
        """Return encoded rows with a column of 0 and 1 for each category, for linear learners.

        A column with very many categories, such as names of rows, is left out.
        """
        if not self.words:
            return encoded
        columns = [np.zeros((len(encoded), 1), encoded.dtype)]  # so that there is at least one
        for i in range(self.n_columns):
            if i not in self.words:
                columns.append(encoded[:, [i]])
            elif self.words[i].n_categories <= _MAX_INDICATORS:
                codes = np.arange(self.words[i].n_categories)
                columns.append((encoded[:, [i]] == codes).astype(encoded.dtype))
        return np.ascontiguousarray(np.hstack(columns))

    def _column(self, i: int, name: str, column: Any) -> NDArray[np.float64]:
        if i in self.empty:
            return np.full(len(column), np.nan)
        keys, missing = _read_as_in_fit(name, column, is_text=i in self.words)
        if i not in self.words:
            return keys
        codes = encode_categories(name, self.words[i], keys, missing)
        return np.where((codes >= 0) & (codes < self.words[i].n_categories), codes, np.nan)


def check_encoder(encoder: Any, n_columns: int | None = None) -> None:
    """Validate a stored encoder, and that it is one of so many columns."""
    check_instance("encoder", encoder, TableEncoder)
    p = check_int("n_columns", encoder.n_columns, n_columns or 1, n_columns or _MAX_COLUMNS)
    check_instance("words", encoder.words, dict)
    check_instance("empty", encoder.empty, tuple)
    for i in (*encoder.words, *encoder.empty):
        check_int("a column of text, or an empty one", i, 0, p - 1)
    for categories in encoder.words.values():
        check_instance("categories", categories, Categories)
        categories.check_state(kinds="U")
    if set(encoder.words) & set(encoder.empty):
        raise ValueError("the columns of the encoder contradict each other.")


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Rows that an encoder has encoded already, instead of a table."""

    encoder: TableEncoder
    encoded: NDArray[np.float32]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.encoded.shape
