"""Between probabilities and log-odds."""

import numpy as np

from credalchain._utils.array_types import FloatArray

_CHUNK_SIZE = 2**15  # numbers: they stay in a cache from one operation to the next


def probabilities(log_odds: FloatArray) -> FloatArray:
    """1 / (1 + exp(-x)), with numpy's vectorised exponential."""
    result = np.empty(log_odds.shape)  # in C order, so that reshape below gives a view of it
    flat_input, flat_output = log_odds.reshape(-1), result.reshape(-1)
    with np.errstate(over="ignore"):  # exp of a large number is infinite, and its inverse 0
        for start in range(0, len(flat_input), _CHUNK_SIZE):
            part = flat_output[start : start + _CHUNK_SIZE]
            np.negative(flat_input[start : start + _CHUNK_SIZE], out=part)
            np.exp(part, out=part)
            part += 1.0
            np.reciprocal(part, out=part)
    return result


def log_odds(probability: FloatArray) -> FloatArray:
    """log(p / (1 - p)); -inf for 0 and inf for 1."""
    with np.errstate(divide="ignore"):
        return np.log(probability) - np.log1p(-probability)
