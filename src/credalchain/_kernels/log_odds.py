"""From counts to what each observation adds to the log-odds: the formulas of the IDM."""

import math

import numpy as np
from numpy.typing import NDArray

from credalchain._kernels.compiler import kernel
from credalchain._kernels.fixed_point import ZERO_ABOVE, ZERO_BELOW


@kernel
def _bounds(
    count: int, total: int, denominator: int, n_categories: int, s: float, epsilon: float
) -> tuple[float, float]:
    """Lower and upper P(v | a) from n(v, a), the sum of counts, D_a and K."""
    if s == 0.0 and total == 0:  # a conditional without data: uniform
        return 1.0 / n_categories, 1.0 / n_categories
    lower = count / (denominator + s)
    upper = (count + s) / (denominator + s)
    mix = epsilon / n_categories
    return (1.0 - epsilon) * lower + mix, (1.0 - epsilon) * upper + mix


@kernel
def _log_ratio(above: float, below: float) -> float:
    if above > 0.0 and below > 0.0:
        return math.log(above / below)
    if below > 0.0:
        return -np.inf
    if above > 0.0:
        return np.inf
    return np.nan


@kernel
def log_odds_rows(
    counts: NDArray[np.int64],
    totals: NDArray[np.int64],
    denominators: NDArray[np.int64],
    n_categories: NDArray[np.int64],
    n_rows: NDArray[np.int64],
    s: float,
    epsilon: float,
    order: NDArray[np.int64],
    out: NDArray[np.float64],
) -> None:
    """Fill ``out`` (rows, m, 2) with w_lower and w_upper of every observation.

    ``counts`` (rows of counts, m, 2) has ``n_categories[i]`` rows for variable i, one
    after the other; ``totals`` and ``denominators`` are (variables, m, 2). ``out`` has
    ``n_rows[i]`` rows for variable i: its categories, then, where there is room, a
    category that was never seen. Labels are written in the given ``order``. A variable
    with a single category says nothing: its rows are 0.
    """
    read = 0
    write = 0
    for variable in range(n_categories.shape[0]):
        k = n_categories[variable]
        for v in range(n_rows[variable]):
            for position in range(order.shape[0]):
                j = order[position]
                if k < 2 or v > k:
                    out[write + v, position, 0] = 0.0
                    out[write + v, position, 1] = 0.0
                    continue
                n0 = counts[read + v, j, 0] if v < k else 0
                n1 = counts[read + v, j, 1] if v < k else 0
                lower0, upper0 = _bounds(
                    n0, totals[variable, j, 0], denominators[variable, j, 0], k, s, epsilon
                )
                lower1, upper1 = _bounds(
                    n1, totals[variable, j, 1], denominators[variable, j, 1], k, s, epsilon
                )
                out[write + v, position, 0] = _log_ratio(lower1, upper0)
                out[write + v, position, 1] = _log_ratio(upper1, lower0)
        read += k
        write += n_rows[variable]


@kernel
def to_fixed_point(
    log_odds: NDArray[np.float64],
    unit: float,
    fixed: NDArray[np.int64],
    zeros: NDArray[np.int64],
) -> None:
    """Round flat ``log_odds`` to multiples of ``1 / unit``; infinite ones become zero factors.

    ``fixed`` may be the memory of ``log_odds`` itself. ``zeros`` may be empty if every
    value is finite.
    """
    for index in range(log_odds.shape[0]):
        value = log_odds[index]
        if math.isfinite(value):
            fixed[index] = np.int64(np.rint(value * unit))
            continue
        fixed[index] = 0
        if value > 0:
            zeros[index] = ZERO_BELOW
        elif value < 0:
            zeros[index] = ZERO_ABOVE
        else:  # 0/0: a zero above makes the probability 0, whatever is below
            zeros[index] = ZERO_ABOVE + ZERO_BELOW
