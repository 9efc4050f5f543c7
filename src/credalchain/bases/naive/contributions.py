"""What the log-odds of a label are made of, in words."""

from typing import Any

import numpy as np

from credalchain.bases.naive.codes import DenseCodes, IntArray
from credalchain.bases.naive.engine.layout import FixedTable, Scale, resolve_zero_factors
from credalchain.bases.naive.engine.tables import ChainTables
from credalchain.bases.protocol import Contribution, Labels
from credalchain.labels import ABSTAIN, UNDECIDED


def naive_contributions(
    codes: DenseCodes,
    tables: ChainTables,
    j: int,
    history: Labels,
    n_categories: IntArray,
    discretizer: Any,
) -> list[Contribution]:
    """Prior, features and earlier labels, in this order; they add up to the log-odds of label j."""
    lanes = slice(2 * j, 2 * j + 2)
    tile, first = divmod(2 * j, tables.layout.tile_lanes)
    in_tile = slice(first, first + 2)
    parts = [Contribution("prior", -1, "", *_entry(tables.prior, (tile, in_tile), tables.scale))]
    row_codes = codes.row(0)
    rows = (codes.offsets + row_codes).tolist()
    for i, (row, code) in enumerate(zip(rows, row_codes.tolist(), strict=True)):
        words = _in_words(i, code, int(n_categories[i]), discretizer)
        bounds = _entry(tables.features.rows, (tile, row, in_tile), tables.scale)
        parts.append(Contribution("feature", i, words, *bounds))
    for k in np.flatnonzero(history != UNDECIDED).tolist():
        y = int(history[k])
        bounds = _entry(tables.pairs, (0, k, 2 if y == ABSTAIN else y, lanes), tables.scale)
        parts.append(Contribution("label", k, {0: "no", 1: "yes"}.get(y, "*"), *bounds))
    return parts


def _entry(table: FixedTable, place: tuple[Any, ...], scale: Scale) -> tuple[float, float]:
    zeros = None if table.zeros is None else table.zeros[place]
    values = resolve_zero_factors(table.values[place] / scale.unit, zeros, -np.inf, np.inf)
    lower, upper = values.tolist()
    return lower, upper


def _in_words(i: int, code: int, n_categories: int, discretizer: Any) -> str:
    if code > n_categories:
        return "missing"
    if code == n_categories:
        return "never seen"
    fitted = getattr(discretizer, "estimator", discretizer)  # inside a FrozenEstimator
    binnings = getattr(fitted, "binnings_", None)
    return f"code {code}" if binnings is None else str(binnings[i].describe(code))
