"""How cautious, by how much is to be answered."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing as take_rows

from credalchain.exceptions import data_warnings_ignored
from credalchain.labels import ABSTAIN, Targets, as_indexable_labels, both_answers_seen
from credalchain.metrics import selective_error, set_accuracy
from credalchain.model_selection import row_groups, rows_of_groups, unwrap
from credalchain.preprocessing import as_indexable
from credalchain.promises.calibration import answers_along, caution_values, check_estimator
from credalchain.typing import LabelsLike, MatrixLike, RandomStateLike, VectorLike

_MAX_HELD_OUT = 2000
MIN_ROWS = 20


@dataclass(frozen=True)
class CautionChoice:
    """A value of the caution parameter for all rows, and what it did on rows held out.

    Attributes
    ----------
    parameter : str
        "s" or "reward".
    value : float
    completeness, set_accuracy, selective_error : float
        The share of labels answered (without those that are constant in training), of rows without
        a wrong answer, of answers that were wrong.
    n_rows : int
        How many were held out.
    """

    parameter: str
    value: float
    completeness: float
    set_accuracy: float
    selective_error: float
    n_rows: int

    def __str__(self) -> str:
        return (
            f"{self.parameter} = {self.value:.4g} answers {self.completeness:.0%} of the labels of "
            f"{self.n_rows} rows held out: {self.selective_error:.1%} of the answers wrong, "
            f"{self.set_accuracy:.0%} of the rows without a wrong one"
        )


@overload
def choose_caution(
    estimator: BaseEstimator,
    X: MatrixLike,
    Y: LabelsLike,
    *,
    completeness: float = ...,
    n_rows: int | None = ...,
    random_state: RandomStateLike = ...,
    groups: VectorLike | None = ...,
) -> CautionChoice: ...
@overload
def choose_caution(
    estimator: BaseEstimator,
    X: MatrixLike,
    Y: LabelsLike,
    *,
    completeness: Sequence[float],
    n_rows: int | None = ...,
    random_state: RandomStateLike = ...,
    groups: VectorLike | None = ...,
) -> list[CautionChoice]: ...
def choose_caution(
    estimator: BaseEstimator,
    X: MatrixLike,
    Y: LabelsLike,
    *,
    completeness: float | Sequence[float] = 0.8,
    n_rows: int | None = None,
    random_state: RandomStateLike = None,
    groups: VectorLike | None = None,
) -> CautionChoice | list[CautionChoice]:
    """The boldest value of caution that answers no more than a share of the labels.

    What s or a reward means depends on the data; what share is answered can be understood. A
    quarter of the rows (at most 2000) is held out to find the value. s is weighed against counts
    of rows, so the value found is multiplied by how many more rows there are in all: it is meant
    for a fit on all of X. Labels that are always yes or always no do not count. There is no
    guarantee: for that, see :class:`PromisedClassifier`.

    Parameters
    ----------
    estimator : unfitted classifier of this package, or a pipeline that ends in one
    X, Y : as in ``fit``
    completeness : float or sequence of float, default=0.8
        The share of labels that is to be answered, or several.
    n_rows : int, default=None
        How many rows the classifier will be fitted to, if X is a sample of them.
    random_state : int, RandomState or None, default=None
        Says which rows are held out.
    groups : array-like of shape (n,), default=None
        Such as the patient of each row: rows of a group are held out together. None: equal rows
        are, as in :meth:`PromisedClassifier.fit`.

    Returns
    -------
    CautionChoice, or a list of them

    Examples
    --------
    >>> import numpy as np
    >>> from credalchain import CredalChainClassifier, choose_caution
    >>> X = np.random.default_rng(0).normal(size=(400, 3))
    >>> Y = (X[:, :2] + np.random.default_rng(1).normal(size=(400, 2)) > 0).astype(int)
    >>> chosen = choose_caution(CredalChainClassifier(order="given"), X, Y, random_state=0)
    >>> 0.6 < chosen.completeness <= 0.8
    True
    """
    from sklearn.model_selection import train_test_split  # slow to import

    check_estimator(estimator)
    shares = completeness if isinstance(completeness, Sequence) else [completeness]
    shares = [_check_share(share) for share in shares]
    table, labels = as_indexable(X), as_indexable_labels(Y)
    n = table.shape[0]
    if n < MIN_ROWS:
        raise ValueError(f"X must have at least {MIN_ROWS} rows to hold some out, got {n}.")
    group_of = row_groups(table, Targets.learn(labels)[1], groups)
    n_groups = int(group_of.max(initial=-1)) + 1
    n_held_out = min(n_groups // 4, _MAX_HELD_OUT)
    if n_held_out == 0:
        raise ValueError(f"groups must be at least 4 to hold some out, got {n_groups}.")
    train, test = (
        rows_of_groups(group_of, part)
        for part in train_test_split(
            np.arange(n_groups), test_size=n_held_out, random_state=random_state
        )
    )
    with data_warnings_ignored():
        fitted = clone(estimator).fit(take_rows(table, train), take_rows(labels, train))
        final, _ = unwrap(fitted)
        truth, values = final.read_labels(take_rows(labels, test)), caution_values(fitted, None)
        path = answers_along(fitted, take_rows(table, test), values)
    learned = both_answers_seen(final.read_labels(take_rows(labels, train)))
    answered = (path[:, :, learned] != ABSTAIN).mean(axis=(1, 2))
    scale = (n_rows or n) / len(train) if final.caution_parameter == "s" else 1.0
    chosen = []
    for share in shares:
        fitting = np.flatnonzero(answered <= share + 1e-9)
        value_index = int(fitting[0]) if len(fitting) else int(answered.argmin())
        choice = CautionChoice(
            final.caution_parameter,
            float(values[value_index]) * scale,
            float(answered[value_index]),
            set_accuracy(truth, path[value_index]),
            selective_error(truth, path[value_index]),
            len(test),
        )
        chosen.append(choice)
    return chosen if isinstance(completeness, Sequence) else chosen[0]


def _check_share(share: Any) -> float:
    if not (isinstance(share, (int, float)) and 0 < share <= 1):
        raise ValueError(f"completeness must be between 0 and 1, got {share!r}.")
    return float(share)
