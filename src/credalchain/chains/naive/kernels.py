"""Kernels: from counts to tables, to sums over features, to labels.

Memory layout: a lane is one 64-bit integer, (label, bound); labels stand in chain order, and eight
of them are a block of 16 lanes that starts at a cache line. A table is (blocks, rows, 16): what an
observation adds to a block of labels is one run of lanes, so a row of data is a sum of such runs
and needs no gathers. Loops go over blocks outside and rows of data inside, for features and along
the chain alike: a block of a table stays in the second-level cache while all rows are added up, and
the sum of a row stays in registers until all that belongs to it is added.

Indices are unsigned where it matters: one that may be negative costs a test.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.compiler import kernel, kernel_helper, lane_kernel, load, plus, store
from credalchain.chains.naive.counts import NEVER_SEEN, NO_DATA, SAYS_NOTHING
from credalchain.chains.naive.formulas import INFINITE, NUMERATOR_MASK
from credalchain.labels import ABSTAIN, UNDECIDED

_MIX_1, _MIX_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)  # large odd numbers
_ONE, _HIGH = np.uint64(1), np.uint64(40)


# -- from counts to tables ----------------------------------------------------------------


@kernel
def number_triples(
    counts: NDArray[np.integer],
    totals: NDArray[np.integer],
    denominators: NDArray[np.integer],
    n_categories: NDArray[np.int64],
    variables: NDArray[np.int64],
    sources: NDArray[np.int64],
    starts: NDArray[np.int64],
    order: NDArray[np.int64],
    first: int,
    cache: NDArray[np.int32],
    n_triples: int,
    triples: NDArray[np.int64],
    numbers: NDArray[np.int32],
) -> int:
    """Assign numbers from ``n_triples`` on to the triples (n, D, K) of bounds; return the next one.

    Observation r is of variable ``variables[r]`` and was counted in row ``sources[r]`` of
    ``counts`` (rows, m, 2). It concerns the labels from position ``starts[r]`` of ``order`` on.
    ``numbers`` (m, observations, 2), in that order and 0 on entry, gets at ``first + r`` the number
    of what it says about each label and class; it stays 0 where it says nothing. ``triples``
    (capacity, 3) gets n (NO_DATA if the counts of a variable are all 0), D and K.

    ``cache`` (2, slots), 0 on entry, has the last number of each class and hash of its triple, in
    which consecutive n stand side by side. A triple that was displaced may get a second number:
    that costs a logarithm, nothing else. Labels are the outer loop because one has few triples.
    """
    mask = np.uint64(cache.shape[1] - 1)  # the number of slots is a power of 2
    for t, j in enumerate(order):
        for r in range(sources.shape[0]):
            source, i = sources[r], variables[r]
            if source == SAYS_NOTHING or starts[r] > t:
                continue
            k = n_categories[i]
            for a in range(2):
                n = np.int64(0)
                if source != NEVER_SEEN:
                    n = np.int64(counts[source, j, a])
                if n == 0 and totals[i, j, a] == 0:
                    n = np.int64(NO_DATA)
                denominator = np.int64(denominators[i, j, a])
                mixed = np.uint64(denominator) * _MIX_1 + np.uint64(k) * _MIX_2
                slot = (np.uint64(n - NO_DATA) + (mixed >> _HIGH)) & mask
                number = np.int64(cache[a, slot])
                if (
                    triples[number, 0] != n
                    or triples[number, 1] != denominator
                    or triples[number, 2] != k
                ):
                    number = np.int64(n_triples)
                    n_triples += 1
                    cache[a, slot] = number
                    triples[number, 0], triples[number, 1], triples[number, 2] = n, denominator, k
                numbers[t, first + r, a] = number
    return n_triples


@lane_kernel
def fill_table(
    numbers: NDArray[np.int32],
    starts: NDArray[np.int64],
    bases: NDArray[np.int64],
    logs: NDArray[np.int64],
    zero_logs: NDArray[np.int64],
    table: NDArray[np.int64],
) -> None:
    """Fill ``table`` (blocks, rows, 16), whose rows are the last observations.

    ``logs`` and ``zero_logs`` (triples, 2) hold the logarithms of the lower and the upper bound of
    a triple, for class 1 and for class 0, or whatever else is to be subtracted. A row holds the
    difference from observation ``bases[r]``, if that is not negative. Blocks in which all labels
    are before ``starts[r]`` stay as they are.
    """
    n_labels, first = numbers.shape[0], numbers.shape[1] - table.shape[1]
    nothing = np.uint64(0)  # the triple that adds nothing
    # a cell is log-odds as (log of class 1) - (log of class 0): the lower bound from the lower one
    # of class 1 and the upper one of class 0, and the other way round
    for block in range(table.shape[0]):
        rows = table[block]
        for row in range(rows.shape[0]):
            r = first + row
            base = bases[r]
            if starts[r] >= 8 * block + 8:
                continue
            for t in range(8 * block, 8 * block + 8):
                one, zero, base_one, base_zero = nothing, nothing, nothing, nothing
                if starts[r] <= t < n_labels:
                    one, zero = np.uint64(numbers[t, r, 1]), np.uint64(numbers[t, r, 0])
                    if base >= 0:
                        base_one = np.uint64(numbers[t, base, 1])
                        base_zero = np.uint64(numbers[t, base, 0])
                lower, upper = logs[one, 0] - zero_logs[zero, 1], logs[one, 1] - zero_logs[zero, 0]
                if base >= 0:
                    lower -= logs[base_one, 0] - zero_logs[base_zero, 1]
                    upper -= logs[base_one, 1] - zero_logs[base_zero, 0]
                lane = np.uint64(2 * (t - 8 * block))  # lower; the upper bound is the lane after it
                rows[row, lane], rows[row, lane + _ONE] = lower, upper


@lane_kernel
def add_rows(
    codes: NDArray[np.integer],
    offsets: NDArray[np.int64],
    first: int,
    start: NDArray[np.int64],
    table: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """Set out[:, r] to start + the sum over features i of table[:, offsets[i] + codes[first+r, i]].

    ``start`` is (blocks, 16), ``out`` (blocks, rows, 16), ``table`` (blocks, table rows, 16).
    """
    for block in range(table.shape[0]):
        rows = table[block]
        for row in range(out.shape[1]):
            lanes = load(start[block])  # 16 sums in registers until the row is stored
            for feature in range(codes.shape[1]):
                table_row = np.uint64(offsets[feature] + codes[first + row, feature])
                lanes = plus(lanes, rows[table_row])
            store(lanes, out[block, row])


@lane_kernel
def add_sparse_rows(
    indptr: NDArray[np.integer],
    entries: NDArray[np.integer],
    first: int,
    start: NDArray[np.int64],
    table: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """Add rows for CSR: ``entries`` are rows of ``table``, ``start`` is with all codes 0."""
    for block in range(table.shape[0]):
        rows = table[block]
        for row in range(out.shape[1]):
            lanes = load(start[block])
            for entry in range(indptr[first + row], indptr[first + row + 1]):
                lanes = plus(lanes, rows[np.uint64(entries[np.uint64(entry)])])
            store(lanes, out[block, row])


@kernel_helper
def _resolve(value: int, zeros: int) -> int:
    """Resolve a sum whose zero factors are counted apart: a zero in the numerator wins."""
    if zeros & NUMERATOR_MASK:
        return -INFINITE
    return INFINITE if zeros else value


@kernel_helper
def _as_float(value: int, grain: float, may_be_infinite: bool) -> float:
    if may_be_infinite and abs(value) == INFINITE:
        return math.inf if value > 0 else -math.inf
    return value * grain


@kernel_helper
def _begin(sums: Any, pairs: Any, told: Any, out: Any) -> None:
    """Sum a block and row before its first label: features, and answers other than 0."""
    lanes = load(sums)
    for i in range(told[0]):
        lanes = plus(lanes, pairs[np.uint64(told[np.uint64(1 + i)])])
    store(lanes, out)


@kernel_helper
def _add(row: Any, out: Any) -> None:
    store(plus(load(out), row), out)


@lane_kernel
def walk_chain(
    sums: NDArray[np.int64],
    zeros: NDArray[np.int64],
    pairs: NDArray[np.int64],
    pair_zeros: NDArray[np.int64],
    told_rows: NDArray[np.int64],
    bands: NDArray[np.int64],
    ties: NDArray[np.int8],
    order: NDArray[np.int64],
    cuts: NDArray[np.int64],
    forced: NDArray[np.int8],
    v: int,
    first: int,
    grain: float,
    scratch: NDArray[np.int64],
    told: NDArray[np.int32],
    labels: NDArray[np.int8],
    log_odds: NDArray[np.float64],
    stuck: NDArray[np.int32],
) -> bool:
    """Walk rows of a batch, from row ``first`` on, for every strategy; whether any got stuck.

    ``sums`` (blocks, rows, 16) are prior, features, and all labels as 0; row
    ``told_rows[strategy, answer, t]`` of ``pairs`` (blocks, rows, 16) is what another answer adds
    to that: 0, 1, or 2 for left open; nothing if it is negative. ``zeros`` and ``pair_zeros`` are
    their zero factors, of no rows if there are none.

    ``cuts`` (m,) are thresholds, ``bands`` (strategies,) the doubt about sums; a label within it is
    answered by ``ties`` (strategies,). If that is UNDECIDED, the row stops there and ``stuck``
    (strategies, rows), m on entry, gets the position: put what exact arithmetic says into
    ``forced`` (1 or rows, m) and walk the row again. ``labels`` is (strategies, values of s, n, m),
    of which number ``v`` is filled; ``log_odds``, (..., 2) or of no rows, are sums times ``grain``.

    Workspace: ``scratch`` (2, 16); ``told`` (rows, m + 1) has how many labels of a row have answers
    other than 0, then what these add: rows of ``pairs``.
    """
    n_labels, n_rows = order.shape[0], sums.shape[1]
    has_zeros, wants_log_odds = zeros.shape[1] > 0, log_odds.shape[2] > 0
    block_sums, block_zeros = scratch[0], scratch[1]
    any_stuck = False
    for begin in range(0, n_rows, 64):  # few rows: what they write stays in the cache
        for strategy in range(labels.shape[0]):
            band, tie = bands[strategy], ties[strategy]
            for block in range(sums.shape[0]):
                positions = range(8 * block, min(8 * block + 8, n_labels))
                for i in range(begin, min(begin + 64, n_rows)):
                    row, at = np.uint64(i), np.uint64(first + i)
                    if block == 0:
                        told[row, 0] = 0
                    if stuck[strategy, row] < n_labels:  # in an earlier block
                        continue
                    forced_row = row if forced.shape[0] > 1 else np.uint64(0)
                    _begin(sums[block, row], pairs[block], told[row], block_sums)
                    if has_zeros:
                        _begin(zeros[block, row], pair_zeros[block], told[row], block_zeros)
                    for position in positions:
                        t = np.uint64(position)
                        j, lane = np.uint64(order[t]), np.uint64(2 * (position - 8 * block))
                        lower, upper = block_sums[lane], block_sums[lane + _ONE]
                        if has_zeros:
                            lower = _resolve(lower, block_zeros[lane])
                            upper = _resolve(upper, block_zeros[lane + _ONE])
                        if wants_log_odds:
                            log_odds[strategy, v, at, j, 0] = _as_float(lower, grain, has_zeros)
                            log_odds[strategy, v, at, j, 1] = _as_float(upper, grain, has_zeros)
                        # no branches where answers are hard to predict: 1, 0, or ABSTAIN (-1)
                        upper_cut, lower_cut = cuts[t] + band, cuts[t] - band
                        one, zero = lower > upper_cut, upper < lower_cut
                        is_open = (lower < lower_cut) & (upper > upper_cut)
                        y = np.int8(one) - np.int8(is_open)
                        known = forced[forced_row, t]
                        if known != UNDECIDED:
                            y = known
                        elif not (one | zero | is_open):
                            y = tie
                            if y == UNDECIDED:
                                stuck[strategy, row] = position
                                any_stuck = True
                                break
                        labels[strategy, v, at, j] = y
                        answer = np.uint64(2) if y == ABSTAIN else np.uint64(y)
                        # noted for later blocks, and added at once to the rest of this one
                        added = told_rows[strategy, answer, t]
                        if added >= 0:
                            told[row, 0] += 1
                            told[row, np.uint64(told[row, 0])] = added
                            _add(pairs[block, np.uint64(added)], block_sums)
                            if has_zeros:
                                _add(pair_zeros[block, np.uint64(added)], block_zeros)
    return any_stuck
