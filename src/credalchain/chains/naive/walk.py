"""Along the chain: sums over features, then labels, in a fixed order or in any.

:class:`FixedOrderWalk` is compiled and takes all strategies and values of s; :class:`NaiveWalk`
goes label by label, in any order. They agree bit for bit.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from credalchain._utils.array_types import BoolArray, IntArray, Labels
from credalchain._utils.parallel import for_each_range
from credalchain.chains.naive.counts import Codes
from credalchain.chains.naive.exact import ExactComparator
from credalchain.chains.naive.formulas import (
    INFINITE,
    FixedPoint,
    FixedTable,
    resolve_zero_factors,
    total,
)
from credalchain.chains.naive.tables import LANES, ChainTables
from credalchain.chains.protocol import ExactBounds, Request, Rows, Signs, Walk, labels_from_signs
from credalchain.chains.tree import Bounds, Ends
from credalchain.labels import ABSTAIN, MISSING, UNDECIDED
from credalchain.prediction import Exactness, LogOdds, Ranks, uniform_exactness

_SUMS_PER_CHUNK = 2**17  # 64-bit sums of one chunk of rows: a megabyte
_PROBED = 64  # first rows that tell the usual answers, for at least 16 times as many rows


def feature_sums(codes: Codes, tables: ChainTables, first: int, stop: int) -> FixedTable:
    """Add up ``tables.start`` and the features of some rows: (blocks, rows, 16)."""
    from credalchain.chains.naive import kernels  # imports numba

    parts = []
    for start, features in zip(tables.start, tables.features, strict=True):
        sums = np.empty((len(start), stop - first, LANES), dtype=np.int64)
        if codes.is_sparse:
            stored = codes.entries.indptr, codes.entries.data
            kernels.add_sparse_rows(*stored, first, start, features, sums)
        else:
            kernels.add_rows(codes.entries, codes.offsets, first, start, features, sums)
        parts.append(sums)
    return FixedTable(parts)


class FixedOrderWalk:
    """Walk over a batch for every strategy and value of s.

    ``tables`` are for one value of s after the other; ``make_comparator`` gives what settles ties,
    for a value of s and a strategy. ``labels`` is (strategies, values of s, n, m); ``log_odds``
    (..., 2), with no rows if bounds are not wanted.
    """

    def __init__(
        self,
        codes: Codes,
        request: Request,
        tables: Iterable[ChainTables],
        make_comparator: Callable[..., ExactComparator],
    ) -> None:
        self._codes, self._request = codes, request
        self._tables, self._comparator = tables, lru_cache(maxsize=None)(make_comparator)
        n, m = codes.shape[0], len(request.thresholds)
        scale = FixedPoint.for_terms(codes.shape[1], m)
        self._cuts = scale.fixed(logit(request.thresholds))[request.order]
        can_settle = [each.merge_exact is not None for each in request.strategies]
        self._bands = np.array([scale.band if exact else 0 for exact in can_settle])
        tie = 1 if request.precise else ABSTAIN
        self._ties = np.array([UNDECIDED if exact else tie for exact in can_settle], dtype=np.int8)
        shape = (len(request.strategies), len(request.s_values))
        self.labels = np.empty((*shape, n, m), dtype=np.int8)
        self.log_odds = np.empty((*shape, n if request.wants_bounds else 0, m, 2))

    def run(self) -> None:
        """Walk all rows for one s after the other, in chunks whose sums fit a cache."""
        request, n_rows = self._request, self._codes.shape[0]
        n_probed = _PROBED if n_rows >= 16 * _PROBED else 0
        for v, tables in enumerate(self._tables):
            size = max(16, _SUMS_PER_CHUNK // tables.start.values.size)
            if n_probed:
                self._walk_chunk(v, tables, 0, 0, n_probed)
                answers = self.labels[0, v, :n_probed, tables.order]  # (m, rows)
                n_answers = [(answers == y).sum(axis=1) for y in (0, 1, ABSTAIN)]
                tables = tables.relative_to(np.argmax(n_answers, axis=0))
            walk = partial(self._walk_chunk, v, tables, n_probed)
            for_each_range(n_rows - n_probed, size, request.n_jobs, walk)
        self.log_odds[..., request.never_observed, :] = (-np.inf, np.inf)

    def _walk_chunk(self, v: int, tables: ChainTables, skip: int, first: int, stop: int) -> None:
        """Walk rows; again, for one strategy, until no sum is too close to a threshold."""
        from credalchain.chains.naive import kernels  # imports numba

        order, first, stop = tables.order, first + skip, stop + skip
        n_rows, m = stop - first, len(order)
        sums = feature_sums(self._codes, tables, first, stop)
        none = sums.values[:, :0]
        inputs = [*(*sums, none)[:2], *(*tables.pairs, none)[:2]]
        inputs += [tables.told_rows, self._bands, self._ties, order, self._cuts]
        grain = 1.0 / tables.scale.unit  # a power of two, so exact
        workspace = np.empty((2, LANES), np.int64), np.empty((n_rows, m + 1), np.int32)
        outputs = v, first, grain, *workspace, self.labels, self.log_odds
        walk: Any = kernels.walk_chain
        forced = np.take(self._request.forced_labels(slice(first, stop)), order, axis=1)
        stuck = np.full((len(self._ties), n_rows), m, dtype=np.int32)
        if not walk(*inputs, forced, *outputs, stuck):
            return
        for strategy in np.flatnonzero((stuck < m).any(axis=1)).tolist():
            settled, place = np.tile(forced, (n_rows // len(forced), 1)), stuck[strategy]
            rows = np.flatnonzero(place < m)
            while len(rows):
                for row, t in zip(rows.tolist(), place[rows].tolist(), strict=True):
                    settled[row, t] = self._settle(strategy, v, first + row, order, t)
                only = np.full_like(stuck, -1)  # as if all other rows were stuck already
                only[strategy, rows] = m
                walk(*inputs, settled, *outputs, only)
                place = only[strategy]
                rows = np.flatnonzero((place >= 0) & (place < m))

    def _settle(self, strategy: int, v: int, row: int, order: IntArray, t: int) -> Any:
        """Return what exact arithmetic says about the label at position t."""
        request, j, earlier = self._request, int(order[t]), order[:t]
        asked = {"s": request.s_values[v], "strategy": request.strategies[strategy]}
        history = np.full(len(order), UNDECIDED, dtype=np.int8)
        if request.chained:
            history[earlier] = self.labels[strategy, v, row, earlier]
        signs = self._comparator(**asked).signs(row, j, history, float(request.thresholds[j]))
        lower, upper = np.array(signs, dtype=np.int8)
        return labels_from_signs(lower, upper, precise=request.precise)


def label_sums(codes: Codes, tables: ChainTables) -> FixedTable:
    """Return the sums of a batch (n, m, 2), with labels in the order of the columns."""
    n, m = codes.shape[0], len(tables.order)
    return feature_sums(codes, tables, 0, n).map(
        lambda lanes: lanes.swapaxes(0, 1).reshape(n, -1)[:, : 2 * m].reshape(n, m, 2)
    )


class NaiveWalk(Walk):
    """Batch of rows on its way along a naive credal chain."""

    def __init__(self, codes: Codes, tables: ChainTables, comparator: ExactComparator) -> None:
        self.n_rows, self.n_labels = codes.shape[0], len(tables.order)
        self._sums, self._pairs = label_sums(codes, tables), tables.pairs
        self._scale, self._comparator = tables.scale, comparator
        self._band = tables.scale.band if comparator.is_available else 0
        self._history = np.full((self.n_rows, self.n_labels), UNDECIDED, dtype=np.int8)

    def exactness(self, j: int, rows: Rows) -> Ranks:
        exactness = Exactness.EXACT if self._comparator.is_available else Exactness.APPROXIMATE
        return uniform_exactness(exactness, (len(rows),))

    def log_odds(self, j: int, rows: Rows) -> tuple[LogOdds, LogOdds]:
        bounds = self._sums.take((rows, j)).resolved(self._scale)
        return bounds[:, 0], bounds[:, 1]

    def set_label(self, j: int, y: Labels, rows: Rows) -> None:
        column = np.where(y == ABSTAIN, 2, y).astype(np.intp)
        self._history[rows, j] = y
        for sums, pairs in zip(self._sums, self._pairs, strict=True):
            sums[rows] += pairs[j, column]

    def compare(self, j: int, threshold: float, rows: Rows) -> tuple[Signs, Signs]:
        cut = self._scale.fixed(logit(np.array([threshold])))[0]
        sums = self._sums.take((rows, j))
        distance = sums.values - cut
        signs = np.where(np.abs(distance) <= self._band, 0, np.sign(distance))
        signs = resolve_zero_factors(signs, sums.zeros, -1, 1).astype(np.int8)
        if self._comparator.is_available:
            for i in np.flatnonzero((signs == 0).any(axis=1)).tolist():
                history = self._history[rows[i]]
                signs[i] = self._comparator.signs(int(rows[i]), j, history, threshold)
        return signs[:, 0], signs[:, 1]

    def most_certain(self, candidates: NDArray[np.bool_]) -> NDArray[np.int64]:
        bounds = resolve_zero_factors(self._sums.values, self._sums.zeros, -INFINITE, INFINITE)
        certainty = np.maximum(bounds[..., 0], -bounds[..., 1])
        certainty[~candidates] = -INFINITE
        best = certainty.max(axis=1, keepdims=True)
        slack = np.where(np.abs(best) == INFINITE, 0, 2 * self._band)
        near = candidates & (certainty >= best - slack)
        chosen: IntArray = np.argmax(near, axis=1)
        if self._comparator.is_available:
            contested = (near.sum(axis=1) > 1) & (np.abs(best[:, 0]) != INFINITE)
            for row in np.flatnonzero(contested).tolist():
                labels = np.flatnonzero(near[row]).tolist()
                chosen[row] = self._comparator.most_certain(row, labels, self._history[row])
        return chosen


class NaiveLocal:
    """Bounds for the rows of one batch, one s; "X" holds the indices of rows in the batch."""

    def __init__(
        self, codes: Codes, tables: ChainTables, exact: ExactBounds, never_observed: BoolArray
    ) -> None:
        self._sums, self._pairs = label_sums(codes, tables), tables.pairs
        self._scale, self._exact, self._never = tables.scale, exact, never_observed
        self.log_odds_error = tables.scale.error

    def bounds(self, X: NDArray[Any], j: int, history: Labels, *, s: float) -> Bounds:
        (lower, _), (upper, _) = self.ends(X, j, history, s=s)
        return lower, upper

    def bounds_as_fractions(self, X: NDArray[Any], j: int, history: Labels, *, s: float) -> Bounds:
        """Compute the same bounds as fractions."""
        if self._never[j]:
            return np.zeros(len(X), dtype=object), np.ones(len(X), dtype=object)
        decided = np.where(history == MISSING, UNDECIDED, history).astype(np.int8)
        rows = X[:, 0].tolist()
        bounds = [
            self._exact(row, j, row_history) for row, row_history in zip(rows, decided, strict=True)
        ]
        lower, upper = np.array(bounds, dtype=object).reshape(-1, 2).T
        return lower, upper

    def ends(self, X: NDArray[Any], j: int, history: Labels, *, s: float) -> Ends:
        """Return bounds with complements, in the widest floats: log-odds of hundreds are common."""
        if self._never[j]:  # anything is possible
            zeros, ones = np.zeros(len(X)), np.ones(len(X))
            return (zeros, ones), (ones, zeros)
        told = np.flatnonzero((history != MISSING).any(axis=0))
        sums = total(
            [
                self._sums.take((X[:, 0], j)),
                self._pairs.map(lambda lanes: lanes[told, history[:, told], j].sum(axis=1)),
            ]
        )
        log_odds = sums.values.astype(np.longdouble) / self._scale.unit
        log_odds = resolve_zero_factors(log_odds, sums.zeros, -np.inf, np.inf)
        with np.errstate(over="ignore"):
            one, zero = 1 / (1 + np.exp(-log_odds)), 1 / (1 + np.exp(log_odds))
        return (one[:, 0], zero[:, 0]), (one[:, 1], zero[:, 1])
