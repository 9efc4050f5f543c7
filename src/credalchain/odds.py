"""Between probabilities and log-odds."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_AT_ONCE = 2**15  # numbers: they stay in a cache from one step to the next


def probabilities(log_odds: FloatArray) -> FloatArray:
    """1 / (1 + exp(-x)), with numpy's vectorised exponential."""
    result = np.empty(log_odds.shape)  # in C order, so that reshape below gives a view of it
    given, made = log_odds.reshape(-1), result.reshape(-1)
    with np.errstate(over="ignore"):  # exp of much is infinite, and its inverse 0, as it should
        for start in range(0, len(given), _AT_ONCE):
            part = made[start : start + _AT_ONCE]
            np.negative(given[start : start + _AT_ONCE], out=part)
            np.exp(part, out=part)
            part += 1.0
            np.reciprocal(part, out=part)
    return result


def log_odds(probability: FloatArray) -> FloatArray:
    """log(p / (1 - p)); -inf for 0 and inf for 1."""
    with np.errstate(divide="ignore"):
        return np.log(probability) - np.log1p(-probability)
