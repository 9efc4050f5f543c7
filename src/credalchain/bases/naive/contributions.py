"""What the log-odds of a label are made of, in words."""

import math
from typing import Any

import numpy as np

from credalchain._kernels.fixed_point import ABOVE_MASK
from credalchain._kernels.states import FREE, STAR
from credalchain.bases.naive.codes import DenseCodes, IntArray
from credalchain.bases.naive.feature_tables import FeatureTable
from credalchain.bases.naive.grid import FixedTable, Scale
from credalchain.bases.naive.tables import ChainTables
from credalchain.bases.protocol import Contribution, Labels


def naive_contributions(
    codes: DenseCodes,
    tables: ChainTables,
    j: int,
    history: Labels,
    n_categories: IntArray,
    discretizer: Any,
) -> list[Contribution]:
    """Prior, features and labels told, in this order; they add up to the log-odds of label j."""
    lanes = slice(2 * j, 2 * j + 2)
    tile, first = divmod(2 * j, tables.layout.tile_lanes)
    own = slice(first, first + 2)
    parts = [Contribution("prior", -1, "", *_entry(tables.prior, (tile, own), tables.scale))]
    assert isinstance(tables.features, FeatureTable)  # tables for one s are kept
    mine = codes.row(0)
    rows = (codes.offsets + mine).tolist()
    for i, (row, code) in enumerate(zip(rows, mine.tolist(), strict=True)):
        words = _in_words(i, code, int(n_categories[i]), discretizer)
        bounds = _entry(tables.features.rows, (tile, row, own), tables.scale)
        parts.append(Contribution("feature", i, words, *bounds))
    for k in np.flatnonzero(history != FREE).tolist():
        y = int(history[k])
        bounds = _entry(tables.pairs, (0, k, 2 if y == STAR else y, lanes), tables.scale)
        parts.append(Contribution("label", k, {0: "no", 1: "yes"}.get(y, "*"), *bounds))
    return parts


def _entry(table: FixedTable, place: tuple[Any, ...], scale: Scale) -> tuple[float, float]:
    lower, upper = (table.values[place] / scale.unit).tolist()
    if table.has_zeros:
        zeros = table.zeros[place].tolist()
        lower, upper = (_infinite(z, v) for z, v in zip(zeros, (lower, upper), strict=True))
    return lower, upper


def _infinite(zeros: int, value: float) -> float:
    if zeros & ABOVE_MASK:
        return -math.inf
    return math.inf if zeros else value


def _in_words(i: int, code: int, n_categories: int, discretizer: Any) -> str:
    if code > n_categories:
        return "missing"
    if code == n_categories:
        return "never seen"
    fitted = getattr(discretizer, "estimator", discretizer)  # inside a FrozenEstimator
    binnings = getattr(fitted, "binnings_", None)
    return f"code {code}" if binnings is None else str(binnings[i].describe(code))
