"""Inputs of bases that learn one model per label: encoded tables and earlier labels."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from credalchain.array_types import Labels
from credalchain.bases.protocol import Rows
from credalchain.labels import MISSING
from credalchain.preprocessing import (
    Categories,
    declared_categories,
    encode_categories,
    learn_categories,
    named_columns,
    values_and_missing,
)
from credalchain.progress import track
from credalchain.validation import check_instance, check_int

Model = TypeVar("Model")

_MAX_INDICATORS = 100
_MAX_COLUMNS = 2**26  # so that a single row stays small


@dataclass(frozen=True, eq=False)
class TableEncoder:
    """How a table becomes numeric; NaN is missing.

    ``words`` are the categories of the columns that hold text. Such a column becomes the code
    of its category, NaN for one that was never seen; or, ``one_hot``, a column of 0 and 1 for
    each category.
    """

    n_columns: int
    words: Mapping[int, Categories]
    one_hot: bool
    empty: tuple[int, ...] = ()  # columns without a value in training

    @classmethod
    def learn(cls, X: Any, *, one_hot: bool) -> "TableEncoder":
        """From checked training rows."""
        if isinstance(X, EncodedRows):
            return X.encoder
        words, empty = {}, set()
        if not _is_plain(X):
            for i, (name, column) in enumerate(named_columns(X)):
                categories = _learn_text_categories(name, column)
                if categories is not None:
                    words[i] = categories
                elif values_and_missing(np.asarray(column), name)[1].all():
                    empty.add(i)
        return cls(int(X.shape[1]), words, one_hot, tuple(sorted(empty)))

    def encode(self, X: Any, dtype: Any = np.float64) -> NDArray[Any]:
        """Checked rows as a dense array."""
        if isinstance(X, EncodedRows):
            return np.ascontiguousarray(X.encoded, dtype=dtype)
        self._check_sparse(X)
        if sparse.issparse(X):
            encoded = np.asarray(X.toarray(), dtype=np.float64)
        elif _is_plain(X) and not self.words and not self.empty:
            encoded = X
        else:
            columns = [self._column(i, *named) for i, named in enumerate(named_columns(X))]
            encoded = np.column_stack([part for column in columns for part in column])
        with np.errstate(over="ignore"):
            cast = np.ascontiguousarray(encoded, dtype=dtype)
        if np.isinf(cast).any():
            raise ValueError(f"X holds infinity, or a value too large for {np.dtype(dtype).name}.")
        return cast

    def encode_table(self, X: Any) -> Any:
        """The same, but sparse rows stay sparse."""
        self._check_sparse(X)
        return X.tocsr() if sparse.issparse(X) else self.encode(X)

    def indicators(self, encoded: NDArray[Any]) -> NDArray[Any]:
        """Encoded rows with a column of 0 and 1 for each category, for linear learners.

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

    def check_state(self, *, one_hot: bool) -> int:
        """Validate a stored encoder, and return the number of encoded columns."""
        check_int("n_columns", self.n_columns, at_most=_MAX_COLUMNS)
        check_instance("words", self.words, dict)
        check_instance("empty", self.empty, tuple)
        for i, categories in self.words.items():
            check_int("a column of text", i, 0, self.n_columns - 1)
            check_instance("categories", categories, Categories)
            categories.check_state(kinds="U")
        for i in self.empty:
            check_int("an empty column", i, 0, self.n_columns - 1)
        if self.one_hot is not one_hot or set(self.words) & set(self.empty):
            raise ValueError("the columns of the encoder contradict each other.")
        added = sum(categories.n_categories - 1 for categories in self.words.values())
        return self.n_columns + (added if one_hot else 0)

    def _check_sparse(self, X: Any) -> None:
        if sparse.issparse(X) and self.words:
            raise ValueError("X held text in fit and is a sparse matrix now.")

    def _column(self, i: int, name: str, column: Any) -> list[NDArray[np.float64]]:
        if i in self.empty:
            return [np.full(len(column), np.nan)]
        keys, missing = values_and_missing(np.asarray(column), name)
        is_text = keys.dtype.kind != "f" and not missing.all()
        if is_text != (i in self.words) and not missing.all():
            was, now = ("numbers", "text") if is_text else ("text", "numbers")
            raise ValueError(f"column {name!r} of X held {was} in fit and holds {now} now.")
        if i not in self.words:
            return [np.where(missing, np.nan, keys if keys.dtype.kind == "f" else 0.0)]
        categories = self.words[i]
        codes = encode_categories(name, categories, keys.astype(str), missing)
        if self.one_hot:
            return [(codes == v).astype(np.float64) for v in range(categories.n_categories)]
        seen = (codes >= 0) & (codes < categories.n_categories)
        return [np.where(seen, codes, np.nan)]


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Rows that an encoder has encoded already, instead of a table."""

    encoder: TableEncoder
    encoded: NDArray[np.float32]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.encoded.shape


def _is_plain(X: Any) -> bool:
    return sparse.issparse(X) or (isinstance(X, np.ndarray) and X.dtype.kind in "biuf")


def _learn_text_categories(name: str, column: Any) -> Categories | None:
    """The categories of a column of text; None for a numeric one."""
    declared = declared_categories(column, name)
    if declared is not None:
        is_text = len(declared) > 0 and declared.dtype.kind != "f"
        return Categories(declared) if is_text else None
    keys, missing = values_and_missing(np.asarray(column), name)
    if keys.dtype.kind == "f" or missing.all():
        return None
    return learn_categories(keys[~missing], name)


def side_by_side(X: Any, columns: NDArray[np.float64]) -> Any:
    """A table with columns appended."""
    return (
        sparse.hstack([X, columns], format="csr") if sparse.issparse(X) else np.hstack([X, columns])
    )


def indicators(labels: Labels) -> NDArray[np.float64]:
    """Two columns for each label, "is 0" and "is 1"; both 0 where it is neither."""
    both = np.stack([labels == 0, labels == 1], axis=-1).astype(np.float64)
    return both.reshape(len(labels), -1)


def earlier_labels(
    order: NDArray[np.int64] | None, n_labels: int, *, chained: bool, base_name: str
) -> list[NDArray[np.int64]]:
    """For each label, those before it in the chain: the inputs of its model."""
    nothing = np.empty(0, dtype=np.int64)
    if not chained:
        return [nothing] * n_labels
    if order is None:
        raise ValueError(
            f"{base_name} learns for one order of the labels; order='dynamic' has none."
        )
    before = [nothing] * n_labels
    for position, j in enumerate(order.tolist()):
        before[j] = order[:position]
    return before


def fit_each_label(
    Y: Labels,
    before: Sequence[NDArray[np.int64]],
    fit: Callable[[Rows, Labels, NDArray[np.int64]], Model],
) -> list[Model | None]:
    """``fit(rows, y, earlier)`` for each label, on rows where it is observed; None without any."""
    models: list[Model | None] = []
    for j, earlier in enumerate(track(before, "labels", len(before))):
        rows = np.flatnonzero(Y[:, j] != MISSING)
        models.append(fit(rows, Y[rows, j], earlier) if len(rows) else None)
    return models


def with_nan(labels: Labels) -> NDArray[np.float32]:
    """Labels as floats, NaN where they were not observed."""
    return np.where(labels == MISSING, np.nan, labels).astype(np.float32)
