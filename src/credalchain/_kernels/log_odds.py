"""From counts to what each observation adds to the log-odds: the formulas of the IDM.

A bound of P(v | a) depends on the count n(v, a), on D and on K alone. So the work goes in steps:
``find_evidence`` gives equal pieces of evidence one number, ``bound_evidence`` finds their bounds
for all values of s, numpy takes the logarithms, and ``fill_table`` and ``fill_pairs`` look up and
subtract. Tables have ten times as many cells as there are different pieces.

Memory layout: what a piece says is one run of lanes, lower and upper bound for each value of s. The
log-odds of a label are the difference of two such runs (the lower bound of one class over the upper
bound of the other, so neighbours change places), and what a row of a table says about one label is
such a run again. So tables are filled without gathers.
"""

import numpy as np
from numpy.typing import NDArray

from credalchain._kernels.compiler import kernel, lane_kernel, part
from credalchain._kernels.idm import idm_bounds
from credalchain._kernels.states import NEVER_SEEN, NO_DATA, SAYS_NOTHING

_ONE = np.uint64(1)
_MIX_1, _MIX_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)  # large odd numbers
_MIX_3, _HIGH = np.uint64(0x94D049BB133111EB), np.uint64(24)


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
    pieces: NDArray[np.int64],
    number_of: NDArray[np.int32],
    buckets: NDArray[np.int32],
) -> int:
    """Number the different pieces of evidence, from 1 on; how many there are, with number 0, or -1.

    Observation r is of variable ``variables[r]`` and was counted in row ``sources[r]`` of
    ``counts`` (rows, m, 2), if that is not NEVER_SEEN or SAYS_NOTHING. ``numbers`` (labels, 2,
    observations) gets the number of what it says about a label and class: 0 if it says nothing.
    ``pieces`` (room, 3) gets n (NO_DATA if the counts of a variable are all 0), D and K of each
    number; if there is not enough room, -1 is returned. Only the first ``limits[g]`` observations
    concern label number g.

    Two memories, -1 on entry, whose sizes are powers of two: ``number_of`` (2, slots), the last
    number of a class and of counts that share a slot, right if ``pieces`` agrees, which it does
    while variables share D and K; and ``buckets``, a hash table of all, larger than the room.
    """
    mask, slot_mask = np.uint64(buckets.shape[0] - 1), number_of.shape[1] - 1
    found = 1
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
                    n = np.int64(NO_DATA)
                denominator, k = np.int64(denominators[i, j, a]), n_categories[i]
                slot = (n - NO_DATA) & slot_mask
                number = number_of[a, slot]
                if (
                    number < 0
                    or pieces[number, 0] != n
                    or pieces[number, 1] != denominator
                    or pieces[number, 2] != k
                ):
                    mixed = np.uint64(n) * _MIX_1 ^ np.uint64(denominator)
                    bucket = ((mixed * _MIX_2 ^ np.uint64(k)) * _MIX_3 >> _HIGH) & mask
                    number = buckets[bucket]
                    while number >= 0 and (
                        pieces[number, 0] != n
                        or pieces[number, 1] != denominator
                        or pieces[number, 2] != k
                    ):
                        bucket = (bucket + _ONE) & mask
                        number = buckets[bucket]
                    if number < 0 and found == pieces.shape[0]:
                        return -1
                    if number < 0:
                        number = np.int32(found)
                        buckets[bucket] = number
                        pieces[number, 0], pieces[number, 1], pieces[number, 2] = n, denominator, k
                        found += 1
                    number_of[a, slot] = number
                numbers[g, a, r] = number
    return found


_bounds = part(idm_bounds)


@kernel
def bound_evidence(
    pieces: NDArray[np.int64],
    values: NDArray[np.float64],
    epsilons: NDArray[np.float64],
    bounds: NDArray[np.float64],
) -> None:
    """Lower and upper P(v | a) of every piece for all values of s: (pieces, values, 2)."""
    for number in range(pieces.shape[0]):
        n, denominator, k = pieces[number, 0], float(pieces[number, 1]), float(pieces[number, 2])
        count = 0.0 if n == NO_DATA else float(n)
        for q in range(values.shape[0]):
            lower, upper = _bounds(count, denominator, k, values[q], epsilons[q])
            if n == NO_DATA and values[q] == 0.0:  # a conditional without data: uniform
                lower, upper = 1.0 / k, 1.0 / k
            bounds[number, q, 0], bounds[number, q, 1] = lower, upper


@lane_kernel
def fill_table(
    numbers: NDArray[np.int32],
    first: int,
    yes: NDArray[np.int64],
    no: NDArray[np.int64],
    variables: NDArray[np.int64],
    n_zeros: int,
    table: NDArray[np.int64],
) -> None:
    """Fill ``table`` (tiles, rows, labels of a tile, lanes of a label) for labels first..

    ``yes`` and ``no`` (pieces, lanes of a label) hold the logarithms, or whatever else is to be
    subtracted, of a piece of evidence for class 1 and for class 0. If there are ``n_zeros``, the
    first so many observations are code 0 of every variable: they get no row, and the rows of the
    others hold the difference from them. Lanes of labels that there are none of stay as they are.
    """
    n_tiles, n_rows, tile_labels, run = table.shape
    for tile in range(n_tiles):
        for row in range(n_rows):
            r = n_zeros + row
            for own in range(tile_labels):
                g = first + tile * tile_labels + own
                if g >= numbers.shape[0]:
                    break
                y, n = np.uint64(numbers[g, 1, r]), np.uint64(numbers[g, 0, r])
                y0, n0 = np.uint64(0), np.uint64(0)  # the piece that says nothing
                if n_zeros > 0:
                    zero = variables[r]
                    y0, n0 = np.uint64(numbers[g, 1, zero]), np.uint64(numbers[g, 0, zero])
                for value in range(run // 2):
                    i = np.uint64(2 * value)  # an index that may be negative is not vectorised
                    lower = (yes[y, i] - yes[y0, i]) - (no[n, i + _ONE] - no[n0, i + _ONE])
                    upper = (yes[y, i + _ONE] - yes[y0, i + _ONE]) - (no[n, i] - no[n0, i])
                    table[tile, row, own, i], table[tile, row, own, i + _ONE] = lower, upper


@lane_kernel
def fill_pairs(
    numbers: NDArray[np.int32],
    first: int,
    yes: NDArray[np.int64],
    no: NDArray[np.int64],
    widest: int,
    pairs: NDArray[np.int64],
) -> None:
    """Fill ``pairs`` (values of s, m, columns, width) for labels first.. of the chain.

    Observations are every label as 0 and as 1: columns 0 and 1 of what it says. Column ``widest``,
    if not negative, gets the least of their lower and the greatest of their upper ends, which is
    what an open label says in imprecise branching. Only what labels say to those after them.
    """
    n_values, n_labels = pairs.shape[0], pairs.shape[1]
    for k in range(n_labels):
        for g in range(max(0, k + 1 - first), numbers.shape[0]):
            lane = np.uint64(2 * (first + g))
            y0, n0 = np.uint64(numbers[g, 1, 2 * k]), np.uint64(numbers[g, 0, 2 * k])
            y1, n1 = np.uint64(numbers[g, 1, 2 * k + 1]), np.uint64(numbers[g, 0, 2 * k + 1])
            for q in range(n_values):
                i = np.uint64(2 * q)
                lower0, upper0 = yes[y0, i] - no[n0, i + _ONE], yes[y0, i + _ONE] - no[n0, i]
                lower1, upper1 = yes[y1, i] - no[n1, i + _ONE], yes[y1, i + _ONE] - no[n1, i]
                pairs[q, k, 0, lane], pairs[q, k, 0, lane + _ONE] = lower0, upper0
                pairs[q, k, 1, lane], pairs[q, k, 1, lane + _ONE] = lower1, upper1
                if widest >= 0:
                    pairs[q, k, widest, lane] = min(lower0, lower1)
                    pairs[q, k, widest, lane + _ONE] = max(upper0, upper1)


@kernel
def add_zero_codes(
    numbers: NDArray[np.int32],
    first: int,
    yes: NDArray[np.int64],
    no: NDArray[np.int64],
    n_zeros: int,
    hits: NDArray[np.int64],
    start: NDArray[np.int64],
) -> None:
    """Add to ``start`` (labels, lanes of a label) what the first ``n_zeros`` observations say.

    A sum of differences of logarithms: each class apart, and equal evidence together. ``hits``
    (pieces,) are 0 on entry and on return.
    """
    for g in range(numbers.shape[0]):
        for a in range(2):
            for r in range(n_zeros):
                hits[numbers[g, a, r]] += 1
            for r in range(n_zeros):
                number = numbers[g, a, r]
                times = hits[number]
                if times == 0:
                    continue
                hits[number] = 0
                for lane in range(0, start.shape[1], 2):
                    if a == 1:
                        start[first + g, lane] += times * yes[number, lane]
                        start[first + g, lane + 1] += times * yes[number, lane + 1]
                    else:
                        start[first + g, lane] -= times * no[number, lane + 1]
                        start[first + g, lane + 1] -= times * no[number, lane]
