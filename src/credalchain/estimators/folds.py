"""Cross-validation."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from sklearn.base import clone
from sklearn.utils import _safe_indexing as take_rows

from credalchain.bases.protocol import Rows
from credalchain.exceptions import data_warnings_ignored
from credalchain.progress import track


class FittedFold(NamedTuple):
    """Rows that were held out, by number and by content, and an estimator fitted on the others."""

    rows: Rows
    X: Any
    estimator: Any


def fitted_folds(
    estimators: Iterable[Any], X: Any, Y: Any, splits: Iterable[tuple[Rows, Rows]]
) -> Iterator[FittedFold]:
    """Cross-validation, fold by fold: a clone of the next estimator for each (train, test)."""
    pairs = list(zip(splits, estimators, strict=False))
    for (train, test), estimator in track(pairs, "folds", len(pairs)):
        with data_warnings_ignored():
            fitted = clone(estimator).fit(take_rows(X, train), take_rows(Y, train))
        yield FittedFold(test, take_rows(X, test), fitted)
