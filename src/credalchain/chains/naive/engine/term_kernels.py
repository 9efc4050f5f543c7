"""Kernels that build tables: from counts to what each observation adds to the log-odds.

``number_triples`` gives equal triples (n, D, K) one number, ``bound_triples`` finds their bounds
for all values of s, numpy takes the logarithms, and ``fill_table`` and ``fill_pairs`` look up and
subtract.

Memory layout: the bounds of a triple are one run of lanes, lower and upper for each value of s. The
log-odds of a label are the difference of two such runs (the lower bound of one class over the upper
bound of the other, so neighbours are swapped), and what a row of a table adds to one label is such
a run again. So tables are filled without gathers.
"""

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.compiler import kernel, kernel_helper, lane_kernel
from credalchain.chains.naive.engine.layout import NEVER_SEEN, NUMERATOR_MASK, SAYS_NOTHING
from credalchain.chains.naive.engine.zero_factors import resolve_zeros
from credalchain.chains.naive.formulas import idm_bounds

_NO_DATA = -1  # in place of a count of 0, where the counts of all categories are 0

_ONE = np.uint64(1)
_MIX_1, _MIX_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)  # large odd numbers
_MIX_3, _HIGH = np.uint64(0x94D049BB133111EB), np.uint64(24)


@kernel
def number_triples(
    counts: NDArray[np.integer],
    totals: NDArray[np.integer],
    denominators: NDArray[np.integer],
    n_categories: NDArray[np.int64],
    variables: NDArray[np.int64],
    sources: NDArray[np.int64],
    labels: NDArray[np.int64],
    limits: NDArray[np.int64],
    numbers: NDArray[np.int32],
    triples: NDArray[np.int64],
    number_of: NDArray[np.int32],
    buckets: NDArray[np.int32],
) -> int:
    """Number distinct triples from 1.

    How many numbers were used (0 included), or -1 if ``triples`` is too small.

    Observation r is of variable ``variables[r]`` and was counted in row ``sources[r]`` of
    ``counts`` (rows, m, 2), if that is not NEVER_SEEN or SAYS_NOTHING. ``numbers`` (labels, 2,
    observations) gets the number of what it says about a label and class: 0 if it says nothing.
    ``triples`` (capacity, 3) gets n (_NO_DATA if the counts of a variable are all 0), D and K of
    each number. Only the first ``limits[g]`` observations concern label number g.

    Two caches, -1 on entry, whose sizes are powers of two: ``number_of`` (2, slots), the last
    number of a class and of counts that share a slot, valid if ``triples`` agrees, which it does
    while variables share D and K; and ``buckets``, a hash table of all, larger than ``triples``.
    """
    mask, slot_mask = np.uint64(buckets.shape[0] - 1), number_of.shape[1] - 1
    n_triples = 1
    for g in range(labels.shape[0]):
        j = labels[g]
        for r in range(limits[g]):
            source, i = sources[r], variables[r]
            if source == SAYS_NOTHING:
                numbers[g, 0, r] = numbers[g, 1, r] = 0
                continue
            for a in range(2):
                n = np.int64(0)
                if source != NEVER_SEEN:
                    n = np.int64(counts[source, j, a])
                if n == 0 and totals[i, j, a] == 0:
                    n = np.int64(_NO_DATA)
                denominator, k = np.int64(denominators[i, j, a]), n_categories[i]
                slot = (n - _NO_DATA) & slot_mask
                number = number_of[a, slot]
                if (
                    number < 0
                    or triples[number, 0] != n
                    or triples[number, 1] != denominator
                    or triples[number, 2] != k
                ):
                    mixed = np.uint64(n) * _MIX_1 ^ np.uint64(denominator)
                    bucket = ((mixed * _MIX_2 ^ np.uint64(k)) * _MIX_3 >> _HIGH) & mask
                    number = buckets[bucket]
                    while number >= 0 and (
                        triples[number, 0] != n
                        or triples[number, 1] != denominator
                        or triples[number, 2] != k
                    ):
                        bucket = (bucket + _ONE) & mask
                        number = buckets[bucket]
                    if number < 0 and n_triples == triples.shape[0]:
                        return -1
                    if number < 0:
                        number = np.int32(n_triples)
                        buckets[bucket] = number
                        triples[number, 0], triples[number, 1], triples[number, 2] = (
                            n,
                            denominator,
                            k,
                        )
                        n_triples += 1
                    number_of[a, slot] = number
                numbers[g, a, r] = number
    return n_triples


_bounds = kernel_helper(idm_bounds)


@kernel
def bound_triples(
    triples: NDArray[np.int64],
    values: NDArray[np.float64],
    epsilons: NDArray[np.float64],
    bounds: NDArray[np.float64],
) -> None:
    """Lower and upper P(v | a) of every triple for all values of s: (triples, values, 2)."""
    for number in range(triples.shape[0]):
        n, denominator, k = triples[number, 0], float(triples[number, 1]), float(triples[number, 2])
        count = 0.0 if n == _NO_DATA else float(n)
        for v in range(values.shape[0]):
            lower, upper = _bounds(count, denominator, k, values[v], epsilons[v])
            if n == _NO_DATA and values[v] == 0.0:  # a conditional without data: uniform
                lower, upper = 1.0 / k, 1.0 / k
            bounds[number, v, 0], bounds[number, v, 1] = lower, upper


@lane_kernel
def fill_table(
    numbers: NDArray[np.int32],
    first: int,
    one: NDArray[np.int64],
    zero: NDArray[np.int64],
    variables: NDArray[np.int64],
    n_zero_codes: int,
    table: NDArray[np.int64],
) -> None:
    """Fill ``table`` (tiles, rows, labels of a tile, lanes of a label) for labels first..

    ``one`` and ``zero`` (triples, lanes of a label) hold the logarithms, or whatever else is to be
    subtracted, of a triple for class 1 and for class 0. The first ``n_zero_codes`` observations, if
    any, are code 0 of every variable: they get no row, and the rows of other codes hold the
    difference from them. Lanes of padding stay as they are.
    """
    n_tiles, n_rows, tile_labels, label_lanes = table.shape
    for tile in range(n_tiles):
        for row in range(n_rows):
            r = n_zero_codes + row
            for tile_label in range(tile_labels):
                g = first + tile * tile_labels + tile_label
                if g >= numbers.shape[0]:
                    break
                triple_1, triple_0 = np.uint64(numbers[g, 1, r]), np.uint64(numbers[g, 0, r])
                base_1, base_0 = np.uint64(0), np.uint64(0)  # the triple that says nothing
                if n_zero_codes > 0:
                    code_0 = variables[r]
                    base_1 = np.uint64(numbers[g, 1, code_0])
                    base_0 = np.uint64(numbers[g, 0, code_0])
                for v in range(label_lanes // 2):
                    i = np.uint64(2 * v)  # an index that may be negative is not vectorised
                    lower = (one[triple_1, i] - one[base_1, i]) - (
                        zero[triple_0, i + _ONE] - zero[base_0, i + _ONE]
                    )
                    upper = (one[triple_1, i + _ONE] - one[base_1, i + _ONE]) - (
                        zero[triple_0, i] - zero[base_0, i]
                    )
                    table[tile, row, tile_label, i] = lower
                    table[tile, row, tile_label, i + _ONE] = upper


@lane_kernel
def fill_pairs(
    numbers: NDArray[np.int32],
    first: int,
    one: NDArray[np.int64],
    zero: NDArray[np.int64],
    widest: int,
    pairs: NDArray[np.int64],
) -> None:
    """Fill ``pairs`` (values of s, m, columns, width) for labels first.. of the chain.

    Observations are every label as 0 and as 1: they fill columns 0 and 1. Column ``widest``, if not
    negative, gets the least of their lower and the greatest of their upper ends, which is what an
    open label adds in imprecise branching. Only what labels add to those after them.
    """
    n_values, n_labels = pairs.shape[0], pairs.shape[1]
    for k in range(n_labels):
        for g in range(max(0, k + 1 - first), numbers.shape[0]):
            lane = np.uint64(2 * (first + g))
            # triples of classes 1 and 0, for label k as 0 ("no") and as 1 ("yes")
            no_1, no_0 = np.uint64(numbers[g, 1, 2 * k]), np.uint64(numbers[g, 0, 2 * k])
            yes_1, yes_0 = np.uint64(numbers[g, 1, 2 * k + 1]), np.uint64(numbers[g, 0, 2 * k + 1])
            for v in range(n_values):
                i = np.uint64(2 * v)
                lower0, upper0 = (
                    one[no_1, i] - zero[no_0, i + _ONE],
                    one[no_1, i + _ONE] - zero[no_0, i],
                )
                lower1, upper1 = (
                    one[yes_1, i] - zero[yes_0, i + _ONE],
                    one[yes_1, i + _ONE] - zero[yes_0, i],
                )
                pairs[v, k, 0, lane], pairs[v, k, 0, lane + _ONE] = lower0, upper0
                pairs[v, k, 1, lane], pairs[v, k, 1, lane + _ONE] = lower1, upper1
                if widest >= 0:
                    pairs[v, k, widest, lane] = min(lower0, lower1)
                    pairs[v, k, widest, lane + _ONE] = max(upper0, upper1)


@kernel
def add_zero_codes(
    numbers: NDArray[np.int32],
    first: int,
    one: NDArray[np.int64],
    zero: NDArray[np.int64],
    n_zero_codes: int,
    hits: NDArray[np.int64],
    start: NDArray[np.int64],
) -> None:
    """Add to ``start`` (labels, lanes of a label) what the first ``n_zero_codes`` observations say.

    A sum of differences of logarithms: each class apart, and equal triples together. ``hits``
    (triples,) are 0 on entry and on return.
    """
    for g in range(numbers.shape[0]):
        for a in range(2):
            for r in range(n_zero_codes):
                hits[numbers[g, a, r]] += 1
            for r in range(n_zero_codes):
                number = numbers[g, a, r]
                times = hits[number]
                if times == 0:
                    continue
                hits[number] = 0
                for lane in range(0, start.shape[1], 2):
                    if a == 1:
                        start[first + g, lane] += times * one[number, lane]
                        start[first + g, lane + 1] += times * one[number, lane + 1]
                    else:
                        start[first + g, lane] -= times * zero[number, lane + 1]
                        start[first + g, lane + 1] -= times * zero[number, lane]


@kernel_helper
def _undefined(zeros: int) -> bool:
    """0/0: zero factors above and below."""
    return (zeros & NUMERATOR_MASK) > 0 and zeros > NUMERATOR_MASK


@kernel
def widest_with_zeros(pairs: NDArray[np.int64], zeros: NDArray[np.int64], column: int) -> None:
    """What ``fill_pairs`` puts there, with zero factors: undefined lower ends win, upper lose."""
    for v in range(pairs.shape[0]):
        for t in range(pairs.shape[1]):
            for lane in range(2 * t + 2, 2 * pairs.shape[1]):
                zero, one = pairs[v, t, 0, lane], pairs[v, t, 1, lane]
                zeros_0, zeros_1 = zeros[v, t, 0, lane], zeros[v, t, 1, lane]
                is_upper = lane % 2 == 1
                if _undefined(zeros_0) or _undefined(zeros_1):
                    take_one = _undefined(zeros_1) != is_upper
                else:
                    first, second = resolve_zeros(zero, zeros_0), resolve_zeros(one, zeros_1)
                    take_one = second > first if is_upper else second < first
                pairs[v, t, column, lane] = one if take_one else zero
                zeros[v, t, column, lane] = zeros_1 if take_one else zeros_0
