"""The walk along a chain of fixed order: decide a label, tell it to the labels after it.

Memory layout: labels stand in chain order and lanes are (label, bound), so what label t tells
to all later labels is one contiguous run of ``pairs[t, column]``. Most labels of most rows are
decided alike: ``guess`` says how, ``told`` holds what those decisions say together, and only
a label that is decided otherwise has anything to add. Sums are whole numbers, so the shortcut
changes no bit.
"""

import math

import numpy as np
from numpy.typing import NDArray

from credalchain._kernels.compiler import kernel, lane_kernel
from credalchain._kernels.fixed_point import ABOVE_MASK
from credalchain._kernels.states import FREE, STAR, STEP


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
def _begin(scratch: NDArray[np.int64], row: NDArray[np.int64], told: NDArray[np.int64]) -> None:
    """Scratch = row + told."""
    for at in range(0, scratch.shape[0], STEP):
        a, b = row[at] + told[at], row[at + 1] + told[at + 1]
        c, d = row[at + 2] + told[at + 2], row[at + 3] + told[at + 3]
        scratch[at], scratch[at + 1], scratch[at + 2], scratch[at + 3] = a, b, c, d


@kernel
def _correct(
    scratch: NDArray[np.int64], first: int, is_: NDArray[np.int64], was: NDArray[np.int64]
) -> None:
    """Scratch += is_ - was, from lane ``first`` on (or a few before it, which are used up)."""
    for at in range(first - first % STEP, scratch.shape[0], STEP):
        a = scratch[at] + is_[at] - was[at]
        b = scratch[at + 1] + is_[at + 1] - was[at + 1]
        c = scratch[at + 2] + is_[at + 2] - was[at + 2]
        d = scratch[at + 3] + is_[at + 3] - was[at + 3]
        scratch[at], scratch[at + 1], scratch[at + 2], scratch[at + 3] = a, b, c, d


@lane_kernel
def walk_chain(
    sums: NDArray[np.int64],
    zeros: NDArray[np.int64],
    pairs: NDArray[np.int64],
    pair_zeros: NDArray[np.int64],
    guess: NDArray[np.int8],
    told: NDArray[np.int64],
    told_zeros: NDArray[np.int64],
    cuts: NDArray[np.int64],
    bands: NDArray[np.int64],
    forced: NDArray[np.int8],
    precise: bool,
    unit: float,
    order: NDArray[np.int64],
    first: int,
    labels: NDArray[np.int8],
    log_odds: NDArray[np.float64],
    stuck: NDArray[np.int32],
) -> bool:
    """Walk rows first.. for every strategy and s; whether any got stuck.

    ``sums`` (rows, lanes) holds prior and features, with one run of ``width`` lanes for each
    value of s. ``pairs`` is (strategies, values of s, m, 3, width) with the columns 0, 1, * of
    each label, and m = 0 there where labels do not speak to each other. ``guess`` (strategies,
    values, m) and ``told`` (strategies, values, width): see above. ``zeros``, ``pair_zeros``,
    ``told_zeros`` and ``log_odds`` may be empty. ``forced`` is (m,) for all rows or (rows, m).
    ``labels`` is (strategies, values, n, m), ``log_odds`` (strategies, n, m, 2). ``stuck``
    (strategies, values, rows) is m on return, or the position at which exact arithmetic must
    decide: put its answer into ``forced`` and walk that row again.
    """
    n_strategies, n_values, width = told.shape
    n_labels = order.shape[0]
    has_zeros = zeros.shape[0] > 0
    has_pairs = pairs.shape[2] > 0
    has_pair_zeros = pair_zeros.shape[2] > 0
    wants_log_odds = log_odds.shape[1] > 0
    scratch = np.empty(width, np.int64)
    scratch_zeros = np.empty(width if has_zeros else 0, np.int64)
    zero_lower, zero_upper = 0, 0
    any_stuck = False
    for q in range(n_values):
        for which in range(n_strategies):
            mine, mine_told, mine_guess = pairs[which, q], told[which, q], guess[which, q]
            band = bands[which]
            for row in range(sums.shape[0]):
                _begin(scratch, sums[row, q * width : (q + 1) * width], mine_told)
                if has_zeros:
                    here = zeros[row, q * width : (q + 1) * width]
                    _begin(scratch_zeros, here, told_zeros[which, q])
                rules = forced[row % forced.shape[0]]
                answers = labels[which, q, first + row]
                stop = n_labels
                for position in range(n_labels):
                    lower, upper = scratch[2 * position], scratch[2 * position + 1]
                    if has_zeros:
                        zero_lower = scratch_zeros[2 * position]
                        zero_upper = scratch_zeros[2 * position + 1]
                    y = rules[position]
                    if y == FREE:
                        low = _side(lower, zero_lower, cuts[position], band)
                        if low == 1:
                            y = 1
                        elif precise and low == -1:
                            y = 0
                        else:
                            high = _side(upper, zero_upper, cuts[position], band)
                            if high == -1 and not precise:
                                y = 0
                            elif low == -1 and high == 1:
                                y = STAR
                            else:
                                stop = position
                                break
                    column = order[position]
                    answers[column] = y
                    if wants_log_odds:
                        bounds = log_odds[which, first + row, column]
                        bounds[0] = _as_float(lower, zero_lower, unit)
                        bounds[1] = _as_float(upper, zero_upper, unit)
                    said = 2 if y == STAR else y
                    expected = mine_guess[position]
                    if has_pairs and said != expected:
                        options = mine[position]
                        _correct(scratch, 2 * position + 2, options[said], options[expected])
                        if has_pair_zeros:
                            noughts = pair_zeros[which, q, position]
                            _correct(
                                scratch_zeros, 2 * position + 2, noughts[said], noughts[expected]
                            )
                stuck[which, q, row] = stop
                any_stuck = any_stuck or stop < n_labels
    return any_stuck


@kernel
def tell_guesses(
    pairs: NDArray[np.int64], guess: NDArray[np.int8], told: NDArray[np.int64]
) -> None:
    """told[strategy, value] += what every label, decided as guessed, tells the later ones."""
    n_strategies, n_values, n_labels = guess.shape
    for which in range(n_strategies):
        for q in range(n_values):
            for position in range(n_labels):
                said = pairs[which, q, position, guess[which, q, position]]
                for lane in range(2 * position + 2, told.shape[2]):
                    told[which, q, lane] += said[lane]
