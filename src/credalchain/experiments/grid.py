"""Values of caution from training rows, for methods of which a study names none."""

from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing as take_rows

from credalchain._utils.array_types import FloatArray
from credalchain.labels import ABSTAIN
from credalchain.promises.calibration import caution_values

TARGET = "target_completeness"  # what the caution parameter is called where values are chosen
TARGETS = tuple((np.arange(20, 0, -1) / 20).tolist())  # shares of labels that are to be answered

_MAX_ROWS = 500
_MAX_CELLS = 2**24  # of a path of predictions
_EVERY = 9  # of the values that calibration tries: the search is coarse, then fine
_BOLDEST = 1e6  # where larger is bolder: answers whatever can be answered
_WIDEST_STEP = 0.05
_ROUNDS = 3


def chosen_values(estimator: Any, X: Any, Y: Any, rng: np.random.Generator) -> tuple[float, ...]:
    """Return a value of caution for each of ``TARGETS``, found on a quarter of the rows.

    The estimator is fitted to the other rows. Where two neighbouring values answer shares that are
    far apart, values between them are tried. Several targets share a value if there is none for
    each. As in ``choose_caution``, s grows with the number of rows.
    """
    n, m = Y.shape
    parameter, values = estimator.caution_parameter, caution_values(estimator, None)[::_EVERY]
    is_rising = values[0] < values[-1]
    values = values if is_rising else np.append(_BOLDEST, values)
    n_held_out = max(1, min(n // 4, _MAX_ROWS, _MAX_CELLS // (len(values) * m)))
    rows = rng.permutation(n)
    held_out, training = take_rows(X, np.sort(rows[:n_held_out])), np.sort(rows[n_held_out:])
    estimator.fit(take_rows(X, training), Y[training])

    def answered(some: FloatArray) -> FloatArray:
        try:
            path = np.asarray(estimator.predict_path(held_out, some))
        except Exception as error:
            raise ValueError(
                f"no values of {parameter} could be chosen, because predict_path fails between "
                f"{some.min():g} and {some.max():g} ({error}): name them in the study, as "
                f"{parameter} = [...]."
            ) from error
        return np.asarray((path != ABSTAIN).mean(axis=(1, 2)))

    shares = answered(values)
    for _ in range(_ROUNDS):
        wide = np.flatnonzero(np.abs(np.diff(shares)) > _WIDEST_STEP)
        if not len(wide):
            break
        between = np.linspace(values[wide], values[wide + 1], 8)[1:-1].ravel()
        values, shares = np.append(values, between), np.append(shares, answered(between))
        order = np.argsort(values if is_rising else -values, kind="stable")  # boldest first
        values, shares = values[order], shares[order]
    chosen = values[np.abs(shares[:, None] - TARGETS).argmin(axis=0)]
    return tuple((chosen * (n / len(training) if parameter == "s" else 1.0)).tolist())
