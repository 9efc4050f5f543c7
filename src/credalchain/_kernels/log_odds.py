"""From counts to what each observation adds to the log-odds: the formulas of the IDM.

A bound of P(v | a) depends on the count n(v, a), on D and on K alone. So the work goes in three
steps: ``find_evidence`` gives equal pieces of evidence one number, numpy takes the logarithms of
their bounds for all values of s, and ``fill_table`` looks up and subtracts. Tables have more cells
than there are different counts, and a logarithm costs as much as ten look-ups.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain._kernels.compiler import kernel, part
from credalchain._kernels.fixed_point import ZERO_ABOVE, ZERO_BELOW
from credalchain._kernels.states import NEVER_SEEN, SAYS_NOTHING


@kernel
def find_evidence(
    counts: NDArray[np.integer],
    totals: NDArray[np.integer],
    denominators: NDArray[np.integer],
    n_categories: NDArray[np.int64],
    variables: NDArray[np.int64],
    sources: NDArray[np.int64],
    labels: NDArray[np.int64],
    limits: NDArray[np.int64],
    numbers: NDArray[np.int32],
    evidence: NDArray[np.int64],
    number_of: NDArray[np.int32],
    buckets: NDArray[np.int32],
) -> int:
    """Number the different pieces of evidence; how many there are.

    Observation r is of variable ``variables[r]`` and was counted in row ``sources[r]`` of
    ``counts`` (rows, m, 2), if that is not NEVER_SEEN or SAYS_NOTHING. ``numbers`` (labels, 2,
    observations) gets the number of what it says about a label and class, ``evidence`` (enough
    room, 4) the n, sum of counts, D and K of each number. Only the first ``limits[g]``
    observations concern label number g.

    Two memories, -1 on entry: ``number_of`` a count, right if ``evidence`` agrees, which it does
    while variables share D and K; and ``buckets``, a hash table of all, whose size is a power of
    two and more than there is evidence.
    """
    mask = np.uint64(buckets.shape[0] - 1)
    found = 0
    for g in range(labels.shape[0]):
        j = labels[g]
        for a in range(2):
            for r in range(limits[g]):
                if sources[r] == SAYS_NOTHING:
                    numbers[g, a, r] = 0
                    continue
                i = variables[r]
                k, total = n_categories[i], np.int64(totals[i, j, a])
                denominator = np.int64(denominators[i, j, a])
                n = np.int64(0)
                if sources[r] != NEVER_SEEN:
                    n = np.int64(counts[sources[r], j, a])
                number = number_of[n]
                if number < 0 or not _is(evidence, number, n, total, denominator, k):
                    bucket = _hash(n, total, denominator, k) & mask
                    number = buckets[bucket]
                    while number >= 0 and not _is(evidence, number, n, total, denominator, k):
                        bucket = (bucket + np.uint64(1)) & mask
                        number = buckets[bucket]
                    if number < 0:
                        number = np.int32(found)
                        buckets[bucket] = number
                        evidence[number, 0], evidence[number, 1] = n, total
                        evidence[number, 2], evidence[number, 3] = denominator, k
                        found += 1
                    number_of[n] = number
                numbers[g, a, r] = number
    return found


@part
def _is(evidence: Any, number: Any, n: Any, total: Any, denominator: Any, k: Any) -> Any:
    return (
        evidence[number, 0] == n
        and evidence[number, 1] == total
        and evidence[number, 2] == denominator
        and evidence[number, 3] == k
    )


@part
def _hash(n: Any, total: Any, denominator: Any, k: Any) -> Any:
    mixed = np.uint64(n) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ np.uint64(denominator)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ np.uint64(total + 31 * k)) * np.uint64(0x94D049BB133111EB)
    return mixed >> np.uint64(24)


@kernel
def fill_table(
    numbers: NDArray[np.int32],
    logs: NDArray[np.int64],
    n_values: int,
    variables: NDArray[np.int64],
    sources: NDArray[np.int64],
    n_zeros: int,
    limits: NDArray[np.int64],
    targets: NDArray[np.int64],
    first_label: int,
    width: int,
    lanes: int,
    n_rows: int,
    table: NDArray[np.int64],
) -> None:
    """Fill flat ``table`` (blocks, n_rows, lanes) with w_lower and w_upper of every observation.

    ``logs`` are flat (evidence, values, 2) on the grid, ``targets`` the row of each observation. If
    there are ``n_zeros``, the first so many observations are code 0 of every variable: they get
    no row, and the rows of the others hold the difference from them.

    Lanes run through blocks: value number q of s, label number t, bound b is lane
    ``q * width + 2 * t + b``. Lanes that stand for nothing are left as they are. ``limits`` (see
    ``find_evidence``) do not fall.
    """
    n_labels = numbers.shape[0]
    run = np.uint64(2 * n_values)
    one = np.uint64(1)
    place = np.empty((n_labels, n_values), np.uint64)
    for g in range(n_labels):
        for q in range(n_values):
            lane = q * width + 2 * (first_label + g)
            place[g, q] = (lane // lanes) * n_rows * lanes + lane % lanes
    for group in range(0, n_labels, 8):  # 16 lanes: what is written lies side by side
        stop = min(group + 8, n_labels)
        for row in range(limits[stop - 1] - n_zeros):
            r = n_zeros + row
            at = np.uint64(targets[row] * lanes)
            zero = variables[r] if n_zeros > 0 else 0
            differs = n_zeros > 0 and sources[zero] != SAYS_NOTHING
            for g in range(group, stop):
                if r >= limits[g]:
                    continue
                no, yes = np.uint64(numbers[g, 0, r]) * run, np.uint64(numbers[g, 1, r]) * run
                for q in range(n_values):
                    low, here = np.uint64(2 * q), place[g, q] + at
                    lower, upper = np.int64(0), np.int64(0)
                    if sources[r] != SAYS_NOTHING:
                        lower = logs[yes + low] - logs[no + low + one]
                        upper = logs[yes + low + one] - logs[no + low]
                    table[here], table[here + one] = lower, upper
                if not differs:
                    continue
                no = np.uint64(numbers[g, 0, zero]) * run
                yes = np.uint64(numbers[g, 1, zero]) * run
                for q in range(n_values):
                    low, here = np.uint64(2 * q), place[g, q] + at
                    table[here] -= logs[yes + low] - logs[no + low + one]
                    table[here + one] -= logs[yes + low + one] - logs[no + low]


@kernel
def add_zero_codes(
    numbers: NDArray[np.int32],
    logs: NDArray[np.int64],
    sources: NDArray[np.int64],
    n_zeros: int,
    first_label: int,
    width: int,
    start: NDArray[np.int64],
) -> None:
    """Add to flat ``start`` what the first ``n_zeros`` observations say together.

    A sum of differences of logarithms: each class apart, and equal evidence together.
    """
    n_values = logs.shape[1]
    hits = np.zeros(logs.shape[0], np.int64)
    for g in range(numbers.shape[0]):
        for a in range(2):
            for r in range(n_zeros):
                if sources[r] != SAYS_NOTHING:
                    hits[numbers[g, a, r]] += 1
            for r in range(n_zeros):
                if sources[r] == SAYS_NOTHING:
                    continue
                number = numbers[g, a, r]
                times = hits[number]
                if times == 0:
                    continue
                hits[number] = 0
                for q in range(n_values):
                    lane = q * width + 2 * (first_label + g)
                    lower, upper = logs[number, q, 0], logs[number, q, 1]
                    if a == 1:
                        start[lane] += times * lower
                        start[lane + 1] += times * upper
                    else:
                        start[lane] -= times * upper
                        start[lane + 1] -= times * lower


@kernel
def zero_factors(
    counts: NDArray[np.integer],
    totals: NDArray[np.integer],
    variables: NDArray[np.int64],
    sources: NDArray[np.int64],
    values: NDArray[np.float64],
    order: NDArray[np.int64],
    width: int,
    sign: int,
    targets: NDArray[np.int64],
    zeros: NDArray[np.int64],
) -> bool:
    """Count, times ``sign``, the bounds of 0 that there are without epsilon; whether any is."""
    found = False
    lanes = zeros.shape[2]
    for r in range(targets.shape[0]):
        i, source, row = variables[r], sources[r], targets[r]
        for t in range(0 if source == SAYS_NOTHING else order.shape[0]):
            j = order[t]
            for a in range(2):
                if source != NEVER_SEEN and counts[source, j, a] > 0:
                    continue
                for q in range(values.shape[0]):
                    if values[q] == 0.0 and totals[i, j, a] == 0:
                        continue  # uniform, so not 0
                    found = True
                    lane = q * width + 2 * t
                    block, lane = lane // lanes, lane % lanes
                    # the lower bound of a is in one ratio, the upper one in the other
                    kind = ZERO_ABOVE if a else ZERO_BELOW
                    zeros[block, row, lane + 1 - a] += sign * kind
                    if values[q] == 0.0:
                        zeros[block, row, lane + a] += sign * kind
    return found
