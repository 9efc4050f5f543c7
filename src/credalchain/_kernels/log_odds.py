"""From counts to what each observation adds to the log-odds: the formulas of the IDM.

A bound of P(v | a) depends on the count n(v, a) and on D and K alone, so its logarithm is
computed once for every count that occurs and looked up for all others: tables have far
more cells than different counts.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain._kernels.compiler import kernel
from credalchain._kernels.fixed_point import ZERO_ABOVE, ZERO_BELOW


@kernel
def _bounds(
    count: Any, total: int, denominator: int, n_categories: int, s: float, epsilon: float
) -> tuple[float, float]:
    """Lower and upper P(v | a) from n(v, a), the sum of counts, D_a and K."""
    if s == 0.0 and total == 0:  # a conditional without data: uniform
        return 1.0 / n_categories, 1.0 / n_categories
    lower = count / (denominator + s)
    upper = (count + s) / (denominator + s)
    mix = epsilon / n_categories
    return (1.0 - epsilon) * lower + mix, (1.0 - epsilon) * upper + mix


@kernel
def _fixed_log(value: float, unit: float) -> np.int64:
    """The logarithm on the grid; 0 for 0, which ``zero_factors`` keeps apart."""
    return np.int64(np.rint(math.log(value) * unit)) if value > 0.0 else np.int64(0)


@kernel
def log_odds_table(
    counts: NDArray[np.integer],
    totals: NDArray[np.integer],
    denominators: NDArray[np.integer],
    n_categories: NDArray[np.int64],
    n_rows: NDArray[np.int64],
    values: NDArray[np.float64],
    epsilon: float,
    unit: float,
    order: NDArray[np.int64],
    width: int,
    table: NDArray[np.int64],
) -> None:
    """Fill ``table`` (blocks, rows, lanes) with w_lower and w_upper of every observation.

    ``counts`` (rows of counts, m, 2) has ``n_categories[i]`` rows for variable i, one after the
    other; ``totals`` and ``denominators`` are (variables, m, 2). ``table`` has ``n_rows[i]``
    rows for variable i: its categories, then, where there is room, a category that was never
    seen. A variable with a single category says nothing: its rows are 0, like those beyond.

    Lanes run through blocks: value number q of s, label number t in the given ``order``, bound
    b is lane ``q * width + 2 * t + b``.
    """
    n_values, lanes = values.shape[0], table.shape[2]
    # Logarithms so far, for each class: [slot, value of s, bound]. slot_of[a, n] is the slot
    # of count n if slot_count[a, slot] says so too; neither needs to be cleared.
    logs = np.empty((2, counts.shape[0] + n_categories.shape[0], n_values, 2), np.int64)
    slot_count = np.empty((2, logs.shape[1]), np.int64)
    slot_of = np.zeros((2, totals.max() + 1 if totals.size else 1), np.int32)
    block_of = np.empty(n_values, np.int64)
    lane_of = np.empty(n_values, np.int64)
    slots = np.empty(2, np.int64)
    first_slot, next_slot = np.empty(2, np.int64), np.empty(2, np.int64)
    for position in range(order.shape[0]):
        j = order[position]
        for q in range(n_values):
            lane = q * width + 2 * position
            block_of[q], lane_of[q] = lane // lanes, lane % lanes
        first_slot[:], next_slot[:] = 0, 0
        read, write = 0, 0
        for variable in range(n_categories.shape[0]):
            k = n_categories[variable]
            for a in range(2):  # other D or K: other logarithms
                if (
                    variable == 0
                    or k != n_categories[variable - 1]
                    or totals[variable, j, a] != totals[variable - 1, j, a]
                    or denominators[variable, j, a] != denominators[variable - 1, j, a]
                ):
                    first_slot[a] = next_slot[a]
            for v in range(n_rows[variable]):
                if k < 2 or v > k:
                    for q in range(n_values):
                        table[block_of[q], write + v, lane_of[q]] = 0
                        table[block_of[q], write + v, lane_of[q] + 1] = 0
                    continue
                for a in range(2):
                    n = np.int64(counts[read + v, j, a]) if v < k else np.int64(0)
                    slot = np.int64(slot_of[a, n])
                    if not (first_slot[a] <= slot < next_slot[a] and slot_count[a, slot] == n):
                        slot = next_slot[a]
                        next_slot[a] += 1
                        slot_of[a, n], slot_count[a, slot] = slot, n
                        for q in range(n_values):
                            lower, upper = _bounds(
                                n,
                                totals[variable, j, a],
                                denominators[variable, j, a],
                                k,
                                values[q],
                                epsilon,
                            )
                            logs[a, slot, q, 0] = _fixed_log(lower, unit)
                            logs[a, slot, q, 1] = _fixed_log(upper, unit)
                    slots[a] = slot
                zero, one = logs[0, slots[0]], logs[1, slots[1]]
                for q in range(n_values):
                    table[block_of[q], write + v, lane_of[q]] = one[q, 0] - zero[q, 1]
                    table[block_of[q], write + v, lane_of[q] + 1] = one[q, 1] - zero[q, 0]
            read += k
            write += n_rows[variable]


@kernel
def zero_factors(
    counts: NDArray[np.integer],
    totals: NDArray[np.integer],
    n_categories: NDArray[np.int64],
    n_rows: NDArray[np.int64],
    values: NDArray[np.float64],
    order: NDArray[np.int64],
    width: int,
    zeros: NDArray[np.int64],
) -> bool:
    """Where ``log_odds_table`` met a bound of 0, without epsilon; whether it met any."""
    found = False
    lanes = zeros.shape[2]
    read, write = 0, 0
    for variable in range(n_categories.shape[0]):
        k = n_categories[variable]
        for v in range(n_rows[variable]):
            for position in range(order.shape[0] if k > 1 and v <= k else 0):
                j = order[position]
                for a in range(2):
                    if v < k and counts[read + v, j, a] > 0:
                        continue
                    for q in range(values.shape[0]):
                        if values[q] == 0.0 and totals[variable, j, a] == 0:
                            continue  # uniform, so not 0
                        lane = q * width + 2 * position
                        block, lane = lane // lanes, lane % lanes
                        found = True
                        # the lower bound of a is in one ratio, the upper one in the other
                        kind = ZERO_ABOVE if a else ZERO_BELOW
                        zeros[block, write + v, lane + 1 - a] += kind
                        if values[q] == 0.0:
                            zeros[block, write + v, lane + a] += kind
        read += k
        write += n_rows[variable]
    return found


@kernel
def relative_to_zero(
    offsets: NDArray[np.int64],
    n_rows: NDArray[np.int64],
    table: NDArray[np.int64],
    start: NDArray[np.int64],
) -> None:
    """Move each feature's code 0 into ``start`` (blocks, lanes); other codes keep the difference.

    So that a sparse row need only add what it stores.
    """
    for block in range(table.shape[0]):
        for feature in range(offsets.shape[0]):
            zero = table[block, offsets[feature]]
            for v in range(1, n_rows[feature]):
                row = table[block, offsets[feature] + v]
                for lane in range(zero.shape[0]):
                    row[lane] -= zero[lane]
            for lane in range(zero.shape[0]):
                start[block, lane] += zero[lane]
