"""What the log-odds of a label are made of, in words."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from credalchain.bases.naive.codes import DenseCodes, IntArray
from credalchain.bases.naive.engine.layout import FixedPoint, FixedTable, resolve_zero_factors
from credalchain.bases.naive.engine.tables import ChainTables
from credalchain.bases.protocol import Contribution, Labels
from credalchain.labels import ABSTAIN, UNDECIDED


def naive_contributions(
    codes: DenseCodes,
    tables: ChainTables,
    places: Sequence[tuple[int, Labels]],
    n_categories: IntArray,
    discretizer: Any,
) -> list[list[Contribution]]:
    """For labels j with their histories: prior, features and earlier labels, in this order.

    They add up to the log-odds of label j.
    """
    row_codes = codes.row(0)
    rows = codes.offsets + row_codes
    words = [
        _in_words(i, code, int(n_categories[i]), discretizer)
        for i, code in enumerate(row_codes.tolist())
    ]
    return [_of_label(tables, rows, words, j, history) for j, history in places]


def _of_label(
    tables: ChainTables, rows: IntArray, words: list[str], j: int, history: Labels
) -> list[Contribution]:
    tile, first = divmod(2 * j, tables.layout.tile_lanes)
    lanes = slice(first, first + 2)
    parts = [Contribution("prior", -1, "", *_entries(tables.prior, (tile, lanes), tables.scale))]
    bounds = _entries(tables.features.rows, (tile, rows, lanes), tables.scale)
    parts += [
        Contribution("feature", i, word, lower, upper)
        for i, (word, (lower, upper)) in enumerate(zip(words, bounds, strict=True))
    ]
    earlier = np.flatnonzero(history != UNDECIDED)
    y = np.where(history[earlier] == ABSTAIN, 2, history[earlier])
    bounds = _entries(tables.pairs, (0, earlier, y, slice(2 * j, 2 * j + 2)), tables.scale)
    parts += [
        Contribution("label", k, ("no", "yes", "*")[told], lower, upper)
        for k, told, (lower, upper) in zip(earlier.tolist(), y.tolist(), bounds, strict=True)
    ]
    return parts


def _entries(table: FixedTable, place: tuple[Any, ...], scale: FixedPoint) -> list[Any]:
    """Lower and upper log-odds at a place of a table, or at several places."""
    zeros = None if table.zeros is None else table.zeros[place]
    values = resolve_zero_factors(table.values[place] / scale.unit, zeros, -np.inf, np.inf)
    return list(values.tolist())


def _in_words(i: int, code: int, n_categories: int, discretizer: Any) -> str:
    if code > n_categories:
        return "missing"
    if code == n_categories:
        return "never seen"
    fitted = getattr(discretizer, "estimator", discretizer)  # inside a FrozenEstimator
    binnings = getattr(fitted, "binnings_", None)
    return f"code {code}" if binnings is None else str(binnings[i].describe(code))
