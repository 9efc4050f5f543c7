"""How cautious, by how much is to be answered."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing as take_rows

from credalchain.metrics import completeness_curve, selective_error
from credalchain.model_selection import unwrap
from credalchain.preprocessing import as_rows
from credalchain.promises.calibration import answers_along, caution_values, check_estimator

_MOST_HELD_OUT = 2000
_LEAST_ROWS = 20


@dataclass(frozen=True)
class CautionChoice:
    """A value of the caution parameter for all rows, and what it did on rows held out.

    Attributes
    ----------
    parameter : str
        "s" or "reward".
    value : float
    completeness, set_accuracy, selective_error : float
        The share of labels answered, of rows without a wrong answer, of answers that were wrong.
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


def choose_caution(
    estimator: Any, X: Any, Y: Any, *, completeness: float = 0.8, random_state: Any = None
) -> CautionChoice:
    """The boldest value of caution that answers no more than a share of the labels.

    What s or a reward means depends on the data; what share is answered can be understood. A
    quarter of the rows (at most 2000) is held out to find the value. s is weighed against counts
    of rows, so the value found is multiplied by how many more rows there are in all: it is meant
    for a fit on all of X. There is no guarantee: for that, see :class:`PromisedClassifier`.

    Parameters
    ----------
    estimator : unfitted classifier of this package, or a pipeline that ends in one
    X, Y : as in ``fit``
    completeness : float, default=0.8
        The share of labels that is to be answered.
    random_state : int, RandomState or None, default=None
        Says which rows are held out.

    Returns
    -------
    CautionChoice

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
    check_estimator(estimator)
    if not (isinstance(completeness, (int, float)) and 0 < completeness <= 1):
        raise ValueError(f"completeness must be between 0 and 1, got {completeness!r}.")
    X = as_rows(X)
    n = X.shape[0]
    if n < _LEAST_ROWS:
        raise ValueError(f"X must have at least {_LEAST_ROWS} rows to hold some out, got {n}.")
    n_held_out = min(n // 4, _MOST_HELD_OUT)
    train, test = train_test_split(np.arange(n), test_size=n_held_out, random_state=random_state)
    fitted = clone(estimator).fit(take_rows(X, np.sort(train)), take_rows(Y, np.sort(train)))
    final, _ = unwrap(fitted)
    truth, values = final.read_labels(take_rows(Y, test)), caution_values(fitted, None)
    answered, right = completeness_curve(truth, answers_along(fitted, take_rows(X, test), values))
    fitting = np.flatnonzero(answered <= completeness + 1e-9)
    at = int(fitting[0]) if len(fitting) else int(answered.argmin())
    labels = answers_along(fitted, take_rows(X, test), values[[at]])[0]
    scale = n / len(train) if final.caution_parameter == "s" else 1.0
    return CautionChoice(
        final.caution_parameter,
        float(values[at]) * scale,
        float(answered[at]),
        float(right[at]),
        selective_error(truth, labels),
        len(test),
    )
