"""Kernels that walk along a chain of fixed order: decide a label, add it to the labels after it.

Memory layout: labels stand in chain order and lanes are (label, bound), so what label t adds
to all later labels is one contiguous run of ``pairs[t, column]``. Most labels of most rows are
decided alike: all that these guesses add is added at once, and only a label that does not match
its guess is corrected. Mismatches are searched for a few lanes at a time. Sums are integers, so
the shortcut changes no bit. Arrays are indexed in full rather than sliced: a slice counts
references.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.compiler import kernel_helper, lane_kernel
from credalchain.chains.naive.engine.layout import INFINITE, STEP
from credalchain.chains.naive.engine.zero_factors import resolve_zeros
from credalchain.labels import ABSTAIN, UNDECIDED

_ONE, _TWO, _THREE = np.uint64(1), np.uint64(2), np.uint64(3)


@kernel_helper
def _begin(
    scratch: NDArray[np.int64],
    sums: NDArray[np.int64],
    row: int,
    added: NDArray[np.int64],
    strategy: int,
    v: int,
) -> None:
    """The sums of a row for one s, with what the guesses add."""
    for step in range(added.shape[2] // STEP):
        i = np.uint64(step * STEP)  # unsigned: an index that may be negative is not vectorised
        a = sums[v, row, i] + added[v, strategy, i]
        b = sums[v, row, i + _ONE] + added[v, strategy, i + _ONE]
        c = sums[v, row, i + _TWO] + added[v, strategy, i + _TWO]
        d = sums[v, row, i + _THREE] + added[v, strategy, i + _THREE]
        scratch[i], scratch[i + _ONE], scratch[i + _TWO], scratch[i + _THREE] = a, b, c, d


@kernel_helper
def _correct(
    scratch: NDArray[np.int64],
    pairs: NDArray[np.int64],
    v: int,
    t: int,
    column: Any,
    guessed: Any,
) -> None:
    """Correct the sums of later labels where label t differs from its guess."""
    lane = np.uint64(2 * t)
    lower, upper = scratch[lane], scratch[lane + _ONE]  # a step may begin with these two
    # columns below 0 add nothing
    new_column, new_mask = np.uint64(0), np.int64(0)
    old_column, old_mask = np.uint64(0), np.int64(0)
    if column >= 0:
        new_column, new_mask = np.uint64(column), np.int64(-1)
    if guessed >= 0:
        old_column, old_mask = np.uint64(guessed), np.int64(-1)
    for step in range((2 * t + 2) // STEP, pairs.shape[3] // STEP):
        i = np.uint64(step * STEP)
        a = (pairs[v, t, new_column, i] & new_mask) - (pairs[v, t, old_column, i] & old_mask)
        b = (pairs[v, t, new_column, i + _ONE] & new_mask) - (
            pairs[v, t, old_column, i + _ONE] & old_mask
        )
        c = (pairs[v, t, new_column, i + _TWO] & new_mask) - (
            pairs[v, t, old_column, i + _TWO] & old_mask
        )
        d = (pairs[v, t, new_column, i + _THREE] & new_mask) - (
            pairs[v, t, old_column, i + _THREE] & old_mask
        )
        a, b = scratch[i] + a, scratch[i + _ONE] + b
        c, d = scratch[i + _TWO] + c, scratch[i + _THREE] + d
        scratch[i], scratch[i + _ONE], scratch[i + _TWO], scratch[i + _THREE] = a, b, c, d
    scratch[lane], scratch[lane + _ONE] = lower, upper


@kernel_helper
def _next_mismatch(
    scratch: NDArray[np.int64],
    flip: NDArray[np.int64],
    least: NDArray[np.int64],
    strategy: int,
    v: int,
    t: Any,
    n_labels: int,
) -> Any:
    """The first label from t on for which (sum ^ flip) >= least fails in one of its lanes.

    Two labels at a time; after the last one there is workspace for another, see ``walk_chain``.
    """
    while t < n_labels:
        i = np.uint64(2 * t)
        a = (scratch[i] ^ flip[v, strategy, i]) - least[v, strategy, i]
        b = (scratch[i + _ONE] ^ flip[v, strategy, i + _ONE]) - least[v, strategy, i + _ONE]
        c = (scratch[i + _TWO] ^ flip[v, strategy, i + _TWO]) - least[v, strategy, i + _TWO]
        d = (scratch[i + _THREE] ^ flip[v, strategy, i + _THREE]) - least[v, strategy, i + _THREE]
        if (a | b | c | d) < 0:
            return t + ((a | b) >= 0)
        t += 2
    return t


@kernel_helper
def _as_float(value: int, grain: float) -> float:
    if value == INFINITE:
        return math.inf
    return -math.inf if value == -INFINITE else value * grain


@kernel_helper
def _write(
    log_odds: NDArray[np.float64],
    strategy: int,
    row: int,
    order: NDArray[np.int64],
    scratch: NDArray[np.int64],
    zeros: Any,
    grain: float,
) -> None:
    """Write the sums of a row when its labels were decided, as floats."""
    for t in range(order.shape[0]):
        j, lower, upper = order[t], scratch[2 * t], scratch[2 * t + 1]
        if zeros is None:
            log_odds[strategy, row, j, 0] = lower * grain
            log_odds[strategy, row, j, 1] = upper * grain
        else:
            lower = resolve_zeros(lower, zeros.workspace[2 * t])
            upper = resolve_zeros(upper, zeros.workspace[2 * t + 1])
            log_odds[strategy, row, j, 0] = _as_float(lower, grain)
            log_odds[strategy, row, j, 1] = _as_float(upper, grain)


class Sums(NamedTuple):
    """Prior and features of a chunk of rows, (values of s, rows or more, width or more lanes).

    ``first`` is the first of these rows in the batch.
    """

    values: NDArray[np.int64]
    first: int


class PairTables(NamedTuple):
    """What a label adds as 0, as 1 and left open: (values of s, m, columns, width).

    m is 0 where labels are not conditioned on each other. ``open_columns`` (strategies,) are
    the columns of an open label, -1 if it adds nothing.
    """

    values: NDArray[np.int64]
    open_columns: NDArray[np.int64]


class Guess(NamedTuple):
    """How most rows are decided: ``columns`` (values, strategies, m), -1 also for no guess.

    ``added`` (values, strategies, width) is what these decisions add together. A label is decided
    as guessed where (sum ^ ``flip``) >= ``least`` in both its lanes; without such limits both have
    shape (0, 0, 0), else they are as wide as the workspace.
    """

    columns: NDArray[np.int8]
    added: NDArray[np.int64]
    flip: NDArray[np.int64]
    least: NDArray[np.int64]


class Rule(NamedTuple):
    """How labels are decided: thresholds and bands of doubt, in the order of the chain.

    ``forced`` is (1, m) for all rows or (rows, m): labels that bounds do not decide.
    """

    order: NDArray[np.int64]
    cuts: NDArray[np.int64]
    bands: NDArray[np.int64]
    forced: NDArray[np.int8]


class Workspace(NamedTuple):
    """Scratch memory: allocating it in the kernel would take longer to compile than the walk."""

    sums: NDArray[np.int64]  # (width and STEP more,)
    none_open: NDArray[np.bool_]  # (rows,)


class Zeros(NamedTuple):
    """Zero factors of sums, pairs and guesses, and a workspace for a row; pairs may be empty."""

    sums: NDArray[np.int64]
    pairs: NDArray[np.int64]
    added: NDArray[np.int64]
    workspace: NDArray[np.int64]


class Output(NamedTuple):
    """``labels`` (strategies, values, n, m), ``log_odds`` (strategies, n, m, 2), may be empty.

    ``stuck`` (values, strategies, rows) is m on return, or the position at which exact arithmetic
    must decide: put its answer into ``forced`` and walk that row again. Log-odds are sums times
    ``grain``.
    """

    labels: NDArray[np.int8]
    log_odds: NDArray[np.float64]
    stuck: NDArray[np.int32]
    grain: float


@lane_kernel
def walk_chain(
    sums: Sums,
    tables: PairTables,
    zeros: Zeros | None,
    guess: Guess,
    rule: Rule,
    workspace: Workspace,
    out: Output,
) -> bool:
    """Walk a chunk of rows for every strategy and s; whether any got stuck."""
    n_values, n_strategies, _ = guess.added.shape
    n_labels = rule.order.shape[0]
    scratch, pairs = workspace.sums, tables.values
    order, cuts, forced, none_open = rule.order, rule.cuts, rule.forced, workspace.none_open
    labels, log_odds, stuck = out.labels, out.log_odds, out.stuck
    columns, flip, least = guess.columns, guess.flip, guess.least
    has_pairs = pairs.shape[1] > 0
    wants_log_odds = log_odds.shape[1] > 0
    any_stuck = False
    has_guess_limits = flip.shape[0] > 0
    for v in range(n_values):
        for strategy in range(n_strategies):
            band, open_column = rule.bands[strategy], tables.open_columns[strategy]
            guessed_open = 0
            for position in range(n_labels):
                guessed_open += columns[v, strategy, position] == open_column
            for row in range(stuck.shape[2]):
                batch_row = sums.first + row
                if strategy > 0 and none_open[row] and band <= rule.bands[0]:
                    for j in range(n_labels):
                        labels[strategy, v, batch_row, j] = labels[0, v, batch_row, j]
                        if wants_log_odds:
                            log_odds[strategy, batch_row, j, 0] = log_odds[0, batch_row, j, 0]
                            log_odds[strategy, batch_row, j, 1] = log_odds[0, batch_row, j, 1]
                    stuck[v, strategy, row] = n_labels
                    continue
                _begin(scratch, sums.values, row, guess.added, strategy, v)
                if zeros is not None:
                    _begin(zeros.workspace, zeros.sums, row, zeros.added, strategy, v)
                rule_row = row % forced.shape[0]
                stop, n_open = n_labels, guessed_open
                t: Any = np.int64(0)  # a bare 0 would compile _next_mismatch twice
                if has_guess_limits:
                    for position in range(n_labels):
                        guessed = columns[v, strategy, position]
                        labels[strategy, v, batch_row, order[position]] = (
                            guessed if guessed < 2 else ABSTAIN
                        )
                while True:
                    if has_guess_limits:
                        t = _next_mismatch(scratch, flip, least, strategy, v, t, n_labels)
                    if t >= n_labels:
                        break
                    lower, upper = scratch[2 * t], scratch[2 * t + 1]
                    if zeros is not None:
                        lower = resolve_zeros(lower, zeros.workspace[2 * t])
                        upper = resolve_zeros(upper, zeros.workspace[2 * t + 1])
                    # no branches where answers are hard to predict: 1, 0, or ABSTAIN, which is -1
                    upper_cut, lower_cut = cuts[t] + band, cuts[t] - band
                    one, zero = lower > upper_cut, upper < lower_cut
                    is_open = (lower < lower_cut) & (upper > upper_cut)
                    y = np.int8(one) - np.int8(is_open)
                    if forced[rule_row, t] != UNDECIDED:
                        y = forced[rule_row, t]
                    elif not (one | zero | is_open):
                        stop = t
                        break
                    labels[strategy, v, batch_row, order[t]] = y
                    column = open_column if y == ABSTAIN else np.int64(y)
                    guessed = columns[v, strategy, t]
                    if column != guessed:
                        n_open += (column == open_column) - (guessed == open_column)
                        if has_pairs:
                            _correct(scratch, pairs, v, t, column, guessed)
                            if zeros is not None:  # noqa: SIM102 - numba looks at this alone
                                if zeros.pairs.shape[0] > 0:
                                    _correct(zeros.workspace, zeros.pairs, v, t, column, guessed)
                    t += 1
                if wants_log_odds:
                    _write(log_odds, strategy, batch_row, order, scratch, zeros, out.grain)
                stuck[v, strategy, row] = stop
                if strategy == 0:  # other strategies differ from it in what open labels add
                    none_open[row] = n_open == 0 and stop == n_labels
                any_stuck = any_stuck or stop < n_labels
    return any_stuck


@lane_kernel
def add_guesses(
    pairs: NDArray[np.int64], columns: NDArray[np.int8], added: NDArray[np.int64]
) -> None:
    """added[value, strategy] += what every label, decided as guessed, adds to the later ones."""
    n_values, n_strategies, n_labels = columns.shape
    for v in range(n_values):
        for strategy in range(n_strategies):
            sums = added[v, strategy]
            for t in range(n_labels):
                _correct(sums, pairs, v, t, np.int64(columns[v, strategy, t]), np.int8(-1))
