"""How fast this machine adds, and how near the feature kernel comes.

The probe adds up rows of 16 lanes in memory order, with the same instructions as the kernel but no
look-ups: from the first-level cache, where only the adds count, and from the second-level cache,
where a table lives. The kernel looks its rows up by the codes of a real data set.
"""

from typing import Any

import numpy as np
from splits import Split
from timing import fastest

from credalchain import CredalChainClassifier, NaiveCredal
from credalchain._utils.compiler import lane_kernel, load, plus, store
from credalchain.chains.naive import kernels
from credalchain.chains.naive.counts import aligned
from credalchain.chains.strategies import branching


@lane_kernel
def _add_in_order(rows: Any, times: int, out: Any) -> None:
    """Two sums at once, so that no addition has to wait for the one before it."""
    first, second = load(out), load(out)
    for _ in range(times):
        for at in range(rows.shape[0] // 2):
            first = plus(first, rows[np.uint64(2 * at)])
            second = plus(second, rows[np.uint64(2 * at + 1)])
    store(first, out)
    store(second, out)


def machine() -> dict[str, float]:
    """Additions of 64-bit numbers per nanosecond, on one core."""
    found = {}
    for place, kilobytes in (("first-level cache", 16), ("second-level cache", 1024)):
        rows = aligned((kilobytes * 8, 16))
        out = aligned((16,))
        times = max(1, 2**26 // rows.size)
        seconds = fastest(lambda: _add_in_order(rows, times, out))  # noqa: B023
        found[place] = times * rows.size / seconds / 1e9
    return found


def feature_kernel(split: Split) -> float:
    """The same of our kernel, for one s, on one core."""
    chain = CredalChainClassifier(base=NaiveCredal(discretizer=None), order=split.order)
    chain.fit(split.training, split.labels)
    model = chain.model_
    codes = model.encode(split.batch)
    spec = model._spec(codes, (branching,), chain.order_)
    tables = model._tables(spec, split.is_text, 1.0)
    start, table = tables.start.values, tables.features.values
    out = aligned((len(table), codes.shape[0], 16))
    if split.is_text:
        seconds = fastest(
            lambda: kernels.add_sparse_rows(
                codes.entries.indptr, codes.entries.data, 0, start, table, out
            )
        )
        additions = codes.entries.nnz * len(table) * 16
    else:
        seconds = fastest(
            lambda: kernels.add_rows(codes.entries, codes.offsets, 0, start, table, out)
        )
        additions = codes.entries.size * len(table) * 16
    return additions / seconds / 1e9
