"""Temperature scaling: one number to sharpen or soften all probabilities."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from credalchain.array_types import FloatArray
from credalchain.labels import MISSING
from credalchain.odds import log_odds, probabilities

_MIN_PROBABILITY = 1e-6  # probabilities are clipped to [1e-6, 1 - 1e-6]
_RANGE = 3.0  # of the logarithm of the exponent


def scale_log_odds(p: FloatArray, exponent: float) -> FloatArray:
    """Probabilities with their odds raised to a power."""
    return p if exponent == 1 else probabilities(exponent * log_odds(p))


def fit_exponent(p: FloatArray, labels: NDArray[Any]) -> float:
    """The power of the odds with the least mean log-loss; 1 where there is nothing to learn from.

    This is temperature scaling, and the exponent is the inverse temperature: above 1 for
    underconfident models, such as averages, below 1 for overconfident ones.

    Parameters
    ----------
    p : P(Y = 1), any shape, of rows that the model has not seen
    labels : 0, 1, or -1 for missing, the same shape

    References
    ----------
    C. Guo, G. Pleiss, Y. Sun and K. Q. Weinberger, On calibration of modern neural networks,
    ICML 2017.
    """
    observed = labels != MISSING
    if not observed.any():
        return 1.0
    p = np.clip(p[observed], _MIN_PROBABILITY, 1 - _MIN_PROBABILITY)
    towards_truth = np.where(labels[observed] == 1, 1.0, -1.0) * log_odds(p)

    def loss(log_exponent: float) -> float:
        return float(np.logaddexp(0.0, -np.exp(log_exponent) * towards_truth).mean())

    result = minimize_scalar(loss, bounds=(-_RANGE, _RANGE), method="bounded")
    return float(np.exp(result.x))
