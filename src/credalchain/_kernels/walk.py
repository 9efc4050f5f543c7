"""The walk along a chain of fixed order: decide a label, tell it to the labels after it.

Memory layout: labels stand in chain order and lanes are (label, bound), so what label t tells
to all later labels is one contiguous run of ``pairs[t, column]``. Most labels of most rows are
decided alike: ``guess`` says how, ``told`` holds what those decisions say together, and only
a label that is decided otherwise is a surprise and has anything to add. Surprises are looked for
a few lanes at a time. Sums are whole numbers, so the shortcut changes no bit. Arrays are indexed
in full rather than sliced: a slice counts references.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain._kernels.compiler import kernel, lane_kernel, part
from credalchain._kernels.fixed_point import ABOVE_MASK
from credalchain._kernels.states import FREE, INFINITE, STAR, STEP

_ONE, _TWO, _THREE = np.uint64(1), np.uint64(2), np.uint64(3)


@part
def _begin(
    scratch: NDArray[np.int64],
    sums: NDArray[np.int64],
    row: int,
    told: NDArray[np.int64],
    which: int,
    q: int,
) -> None:
    """The sums of a row for one s, with what the guesses tell."""
    for step in range(told.shape[2] // STEP):
        at = np.uint64(step * STEP)  # unsigned: an index that may be negative is not vectorised
        a = sums[q, row, at] + told[q, which, at]
        b = sums[q, row, at + _ONE] + told[q, which, at + _ONE]
        c = sums[q, row, at + _TWO] + told[q, which, at + _TWO]
        d = sums[q, row, at + _THREE] + told[q, which, at + _THREE]
        scratch[at], scratch[at + _ONE], scratch[at + _TWO], scratch[at + _THREE] = a, b, c, d


@part
def _correct(
    scratch: NDArray[np.int64],
    pairs: NDArray[np.int64],
    q: int,
    t: int,
    said: Any,
    guessed: Any,
) -> None:
    """Tell what label t said rather than what was guessed, to the labels after it."""
    own = np.uint64(2 * t)
    lower, upper = scratch[own], scratch[own + _ONE]  # a step may begin with these two
    # columns below 0 tell nothing
    is_, adds, was, takes = np.uint64(0), np.int64(0), np.uint64(0), np.int64(0)
    if said >= 0:
        is_, adds = np.uint64(said), np.int64(-1)
    if guessed >= 0:
        was, takes = np.uint64(guessed), np.int64(-1)
    for step in range((2 * t + 2) // STEP, pairs.shape[3] // STEP):
        at = np.uint64(step * STEP)
        a = (pairs[q, t, is_, at] & adds) - (pairs[q, t, was, at] & takes)
        b = (pairs[q, t, is_, at + _ONE] & adds) - (pairs[q, t, was, at + _ONE] & takes)
        c = (pairs[q, t, is_, at + _TWO] & adds) - (pairs[q, t, was, at + _TWO] & takes)
        d = (pairs[q, t, is_, at + _THREE] & adds) - (pairs[q, t, was, at + _THREE] & takes)
        a, b = scratch[at] + a, scratch[at + _ONE] + b
        c, d = scratch[at + _TWO] + c, scratch[at + _THREE] + d
        scratch[at], scratch[at + _ONE], scratch[at + _TWO], scratch[at + _THREE] = a, b, c, d
    scratch[own], scratch[own + _ONE] = lower, upper


@part
def _next_surprise(
    scratch: NDArray[np.int64],
    flip: NDArray[np.int64],
    least: NDArray[np.int64],
    which: int,
    q: int,
    t: Any,
    n_labels: int,
) -> Any:
    """The first label from t on for which (sum ^ flip) >= least fails in one of its lanes.

    Two labels at a time; after the last one there is room for another, see ``walk_chain``.
    """
    while t < n_labels:
        at = np.uint64(2 * t)
        a = (scratch[at] ^ flip[q, which, at]) - least[q, which, at]
        b = (scratch[at + _ONE] ^ flip[q, which, at + _ONE]) - least[q, which, at + _ONE]
        c = (scratch[at + _TWO] ^ flip[q, which, at + _TWO]) - least[q, which, at + _TWO]
        d = (scratch[at + _THREE] ^ flip[q, which, at + _THREE]) - least[q, which, at + _THREE]
        if (a | b | c | d) < 0:
            return t + ((a | b) >= 0)
        t += 2
    return t


@part
def _with_zeros(value: int, zeros: int) -> int:
    """A sum whose zero factors are counted apart: a zero above wins."""
    if zeros & ABOVE_MASK:
        return -INFINITE
    return INFINITE if zeros else value


@part
def _as_float(value: int, grain: float) -> float:
    if value == INFINITE:
        return math.inf
    return -math.inf if value == -INFINITE else value * grain


@part
def _write(
    log_odds: NDArray[np.float64],
    which: int,
    row: int,
    order: NDArray[np.int64],
    scratch: NDArray[np.int64],
    zeros: Any,
    scratch_zeros: NDArray[np.int64],
    grain: float,
) -> None:
    """What the sums of a row were when its labels were decided, as floats."""
    for t in range(order.shape[0]):
        j, lower, upper = order[t], scratch[2 * t], scratch[2 * t + 1]
        if zeros is None:
            log_odds[which, row, j, 0] = lower * grain
            log_odds[which, row, j, 1] = upper * grain
        else:
            lower = _with_zeros(lower, scratch_zeros[2 * t])
            upper = _with_zeros(upper, scratch_zeros[2 * t + 1])
            log_odds[which, row, j, 0] = _as_float(lower, grain)
            log_odds[which, row, j, 1] = _as_float(upper, grain)


@lane_kernel
def walk_chain(
    sums: NDArray[np.int64],
    zeros: NDArray[np.int64] | None,
    pairs: NDArray[np.int64],
    pair_zeros: NDArray[np.int64] | None,
    guess: NDArray[np.int8],
    told: NDArray[np.int64],
    told_zeros: Any,
    cuts: NDArray[np.int64],
    bands: NDArray[np.int64],
    star_columns: NDArray[np.int64],
    forced: NDArray[np.int8],
    flip: NDArray[np.int64],
    least: NDArray[np.int64],
    grain: float,
    order: NDArray[np.int64],
    first: int,
    scratch: NDArray[np.int64],
    scratch_zeros: Any,
    starless: NDArray[np.bool_],
    labels: NDArray[np.int8],
    log_odds: NDArray[np.float64],
    stuck: NDArray[np.int32],
) -> bool:
    """Walk rows first.. for every strategy and s; whether any got stuck.

    ``sums`` (values of s, rows or more, ``width`` lanes or more) holds prior and features.
    ``pairs`` is (values of s, m, columns, width): what a label says as 0, as 1 and left open; m is
    0 there where labels do not speak to each other. ``star_columns`` says which column an open
    label has in each strategy, -1 if it says nothing. ``guess`` (values, strategies, m) are columns
    too, -1 also for no guess, ``told`` is (values, strategies, width). Labels are decided as
    guessed where (sum ^ ``flip``) >= ``least`` in both their lanes; without that knowledge both are
    (0, 0, 0), else as wide as ``scratch``. ``zeros``, ``pair_zeros``, ``told_zeros`` and
    ``scratch_zeros`` may be None, ``log_odds`` may be empty.
    ``forced`` is (1, m) for all rows or (rows, m). ``labels`` is (values, strategies, n, m),
    ``log_odds`` (strategies, n, m, 2).
    ``stuck`` (values, strategies, rows) is m on return, or the position at which exact arithmetic
    must decide: put its answer into ``forced`` and walk that row again. ``scratch`` (width and
    STEP more) and ``starless`` (rows,) are room to work in: allocated here, they would take longer
    to compile than the walk.
    """
    n_values, n_strategies, _ = told.shape
    n_labels = order.shape[0]
    has_pairs = pairs.shape[1] > 0
    wants_log_odds = log_odds.shape[1] > 0
    any_stuck = False
    seeks = flip.shape[0] > 0
    for q in range(n_values):
        for which in range(n_strategies):
            band, star_column = bands[which], star_columns[which]
            guessed_stars = 0
            for place in range(n_labels):
                guessed_stars += guess[q, which, place] == star_column
            for row in range(stuck.shape[2]):
                here = first + row
                if which > 0 and starless[row] and band <= bands[0]:
                    for j in range(n_labels):
                        labels[q, which, here, j] = labels[q, 0, here, j]
                        if wants_log_odds:
                            log_odds[which, here, j, 0] = log_odds[0, here, j, 0]
                            log_odds[which, here, j, 1] = log_odds[0, here, j, 1]
                    stuck[q, which, row] = n_labels
                    continue
                _begin(scratch, sums, row, told, which, q)
                if zeros is not None:
                    _begin(scratch_zeros, zeros, row, told_zeros, which, q)
                rule = row % forced.shape[0]
                stop, stars = n_labels, guessed_stars
                t: Any = np.int64(0)  # a bare 0 would compile what it is given to twice
                if seeks:
                    for place in range(n_labels):
                        guessed = guess[q, which, place]
                        labels[q, which, here, order[place]] = guessed if guessed < 2 else STAR
                while True:
                    if seeks:
                        t = _next_surprise(scratch, flip, least, which, q, t, n_labels)
                    if t >= n_labels:
                        break
                    lower, upper = scratch[2 * t], scratch[2 * t + 1]
                    if zeros is not None:
                        lower = _with_zeros(lower, scratch_zeros[2 * t])
                        upper = _with_zeros(upper, scratch_zeros[2 * t + 1])
                    # no branches where answers are hard to foresee: 1, 0, or STAR, which is -1
                    above, below = cuts[t] + band, cuts[t] - band
                    one, zero = lower > above, upper < below
                    star = (lower < below) & (upper > above)
                    y = np.int8(one) - np.int8(star)
                    if forced[rule, t] != FREE:
                        y = forced[rule, t]
                    elif not (one | zero | star):
                        stop = t
                        break
                    labels[q, which, here, order[t]] = y
                    said = star_column if y == STAR else np.int64(y)
                    guessed = guess[q, which, t]
                    if said != guessed:
                        stars += (said == star_column) - (guessed == star_column)
                        if has_pairs:
                            _correct(scratch, pairs, q, t, said, guessed)
                            if pair_zeros is not None:
                                _correct(scratch_zeros, pair_zeros, q, t, said, guessed)
                    t += 1
                if wants_log_odds:
                    _write(log_odds, which, here, order, scratch, zeros, scratch_zeros, grain)
                stuck[q, which, row] = stop
                if which == 0:  # the other strategies differ from this one in what stars tell
                    starless[row] = stars == 0 and stop == n_labels
                any_stuck = any_stuck or stop < n_labels
    return any_stuck


@lane_kernel
def tell_guesses(
    pairs: NDArray[np.int64], guess: NDArray[np.int8], told: NDArray[np.int64]
) -> None:
    """told[value, strategy] += what every label, decided as guessed, tells the later ones."""
    n_values, n_strategies, n_labels = guess.shape
    for q in range(n_values):
        for which in range(n_strategies):
            mine = told[q, which]
            for t in range(n_labels):
                _correct(mine, pairs, q, t, np.int64(guess[q, which, t]), np.int8(-1))


@part
def _undefined(zeros: int) -> bool:
    """0/0: zero factors above and below."""
    return (zeros & ABOVE_MASK) > 0 and zeros > ABOVE_MASK


@kernel
def widest_stars_with_zeros(
    pairs: NDArray[np.int64], zeros: NDArray[np.int64], column: int
) -> None:
    """What ``fill_pairs`` puts there, with zero factors: undefined lower ends win, upper lose."""
    for q in range(pairs.shape[0]):
        for t in range(pairs.shape[1]):
            for lane in range(2 * t + 2, 2 * pairs.shape[1]):
                zero, one = pairs[q, t, 0, lane], pairs[q, t, 1, lane]
                zeros_0, zeros_1 = zeros[q, t, 0, lane], zeros[q, t, 1, lane]
                is_upper = lane % 2 == 1
                if _undefined(zeros_0) or _undefined(zeros_1):
                    take_one = _undefined(zeros_1) != is_upper
                else:
                    first, second = _with_zeros(zero, zeros_0), _with_zeros(one, zeros_1)
                    take_one = second > first if is_upper else second < first
                pairs[q, t, column, lane] = one if take_one else zero
                zeros[q, t, column, lane] = zeros_1 if take_one else zeros_0
