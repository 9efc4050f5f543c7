"""What the log-odds of a label are made of, in plain text."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from credalchain._utils.array_types import IntArray, Labels
from credalchain.chains.naive.codes import DenseCodes
from credalchain.chains.naive.fixed_point import FixedPoint, FixedTable, resolve_zero_factors
from credalchain.chains.naive.tables import LANES, ChainTables
from credalchain.chains.protocol import Contribution
from credalchain.labels import ABSTAIN, UNDECIDED


def naive_contributions(
    codes: DenseCodes,
    tables: ChainTables,
    targets: Sequence[tuple[int, Labels]],
    n_categories: IntArray,
    discretizer: Any,
) -> list[list[Contribution]]:
    """For labels j with their histories: prior, features and earlier labels, in this order.

    They add up to the log-odds of label j.
    """
    row_codes = codes.row(0)
    rows = codes.offsets + row_codes
    descriptions = [
        _describe_code(i, code, int(n_categories[i]), discretizer)
        for i, code in enumerate(row_codes.tolist())
    ]
    return [_label_contributions(tables, rows, descriptions, j, history) for j, history in targets]


def _label_contributions(
    tables: ChainTables, rows: IntArray, descriptions: list[str], j: int, history: Labels
) -> list[Contribution]:
    block, first = divmod(2 * j, LANES)
    lanes = slice(first, first + 2)
    parts = [Contribution("prior", -1, "", *_bounds_at(tables.start, (block, lanes), tables.scale))]
    bounds = _bounds_at(tables.features, (block, rows, lanes), tables.scale)
    parts += [
        Contribution("feature", i, description, lower, upper)
        for i, (description, (lower, upper)) in enumerate(zip(descriptions, bounds, strict=True))
    ]
    earlier = np.flatnonzero(history != UNDECIDED)
    y = np.where(history[earlier] == ABSTAIN, 2, history[earlier])
    bounds = _bounds_at(tables.pairs, (earlier, y, j), tables.scale)
    parts += [
        Contribution("label", k, ("no", "yes", "*")[value], lower, upper)
        for k, value, (lower, upper) in zip(earlier.tolist(), y.tolist(), bounds, strict=True)
    ]
    return parts


def _bounds_at(table: FixedTable, index: tuple[Any, ...], scale: FixedPoint) -> list[Any]:
    """Lower and upper log-odds of one or more cells of a table."""
    zeros = None if table.zeros is None else table.zeros[index]
    values = resolve_zero_factors(table.values[index] / scale.unit, zeros, -np.inf, np.inf)
    return list(values.tolist())


def _describe_code(i: int, code: int, n_categories: int, discretizer: Any) -> str:
    if code > n_categories:
        return "missing"
    if code == n_categories:
        return "never seen"
    fitted = getattr(discretizer, "estimator", discretizer)  # inside a FrozenEstimator
    binnings = getattr(fitted, "binnings_", None)
    return f"code {code}" if binnings is None else str(binnings[i].describe(code))
