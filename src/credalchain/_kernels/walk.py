"""The walk along a chain of fixed order: decide a label, tell it to the labels after it.

Memory layout: labels stand in chain order, lanes are (label, bound), so what label t
tells to all later labels is one contiguous run of ``pairs[t, column]``.
"""

import math

import numpy as np
from numpy.typing import NDArray

from credalchain._kernels.compiler import kernel
from credalchain._kernels.fixed_point import ABOVE_MASK
from credalchain._kernels.states import FREE, STAR


@kernel
def _side(value: int, zeros: int, threshold: int, band: int) -> int:
    """1 if a bound is above the threshold, -1 if below, 0 if too close to say."""
    if zeros & ABOVE_MASK:
        return -1
    if zeros:
        return 1
    if value > threshold + band:
        return 1
    if value < threshold - band:
        return -1
    return 0


@kernel
def _as_float(value: int, zeros: int, unit: float) -> float:
    if zeros & ABOVE_MASK:
        return -math.inf
    if zeros:
        return math.inf
    return value / unit


@kernel
def walk_chain(
    start: NDArray[np.int64],
    sums: NDArray[np.int64],
    zeros: NDArray[np.int64],
    pairs: NDArray[np.int64],
    pair_zeros: NDArray[np.int64],
    thresholds: NDArray[np.int64],
    band: int,
    forced: NDArray[np.int8],
    precise: bool,
    unit: float,
    order: NDArray[np.int64],
    labels: NDArray[np.int8],
    log_odds: NDArray[np.float64],
) -> None:
    """Walk every row from position ``start[r]`` until its end or a label too close to call.

    ``sums`` (n, m, 2) holds prior and features on entry and is updated in place; ``pairs``
    is (m, 3, m, 2) with the columns 0, 1, * of each label, or empty where labels do not
    speak to each other. ``zeros``, ``pair_zeros`` and ``log_odds`` may be empty. On
    return ``start[r]`` is m, or the position at which exact arithmetic must decide: put
    its answer into ``forced[r, position]`` and call again.
    """
    n_rows, n_labels = sums.shape[0], sums.shape[1]
    has_zeros = zeros.shape[0] > 0
    has_pairs = pairs.shape[0] > 0
    has_pair_zeros = pair_zeros.shape[0] > 0
    wants_log_odds = log_odds.shape[0] > 0
    zero_lower, zero_upper = 0, 0
    for row in range(n_rows):
        position = start[row]
        while position < n_labels:
            lower, upper = sums[row, position, 0], sums[row, position, 1]
            if has_zeros:
                zero_lower, zero_upper = zeros[row, position, 0], zeros[row, position, 1]
            y = forced[row, position]
            if y == FREE:
                threshold = thresholds[position]
                low = _side(lower, zero_lower, threshold, band)
                high = _side(upper, zero_upper, threshold, band)
                if low == 1:
                    y = 1
                elif precise and low == -1:
                    y = 0
                elif precise:
                    break
                elif high == -1:
                    y = 0
                elif low == -1 and high == 1:
                    y = STAR
                else:
                    break
            column = order[position]
            labels[row, column] = y
            if wants_log_odds:
                log_odds[row, column, 0] = _as_float(lower, zero_lower, unit)
                log_odds[row, column, 1] = _as_float(upper, zero_upper, unit)
            if has_pairs:
                told = 2 if y == STAR else y
                for later in range(position + 1, n_labels):
                    sums[row, later, 0] += pairs[position, told, later, 0]
                    sums[row, later, 1] += pairs[position, told, later, 1]
                if has_pair_zeros:
                    for later in range(position + 1, n_labels):
                        zeros[row, later, 0] += pair_zeros[position, told, later, 0]
                        zeros[row, later, 1] += pair_zeros[position, told, later, 1]
            position += 1
        start[row] = position
