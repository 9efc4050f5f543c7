"""The compiled walk along a chain of fixed order; equals the plain walk bit for bit."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from credalchain import _kernels
from credalchain._kernels.states import FREE, STAR
from credalchain.bases.naive.codes import Codes, IntArray
from credalchain.bases.naive.settler import Settler, rounded_sides
from credalchain.bases.naive.tables import ChainTables
from credalchain.bases.naive.walk import fixed_thresholds, start_sums
from credalchain.bases.protocol import Answer, Labels, Request, decide
from credalchain.labels import MISSING

if TYPE_CHECKING:
    from credalchain.bases.naive.model import NaiveChainModel

_SUMS_PER_CHUNK = 2**16  # 64-bit sums of one chunk of rows: half a megabyte


def for_each_chunk(
    n_rows: int, n_labels: int, n_jobs: int, run: Callable[[int, int], None]
) -> None:
    """Call ``run(start, stop)`` over all rows, in chunks that fit a cache, on threads."""
    size = max(16, min(_SUMS_PER_CHUNK // (2 * n_labels), -(-n_rows // n_jobs)))
    chunks: Iterator[tuple[int, int]] = (
        (start, min(start + size, n_rows)) for start in range(0, n_rows, size)
    )
    if n_jobs == 1 or n_rows <= size:
        for start, stop in chunks:
            run(start, stop)
    else:
        with ThreadPoolExecutor(n_jobs) as pool:
            for done in [pool.submit(run, *chunk) for chunk in chunks]:
                done.result()


class FixedOrderRun:
    """One strategy's walk over a batch."""

    def __init__(
        self,
        model: "NaiveChainModel",
        codes: Codes,
        tables: ChainTables,
        settler: Settler,
        request: Request,
    ) -> None:
        n_rows, m = codes.n_rows, model.n_labels
        self.tables = tables
        self._settler = settler
        self._band = tables.scale.band if settler.exact else 0
        self._request = request
        self._order = tables.order
        self._never = model.never_observed()
        self._cuts = fixed_thresholds(request.thresholds, tables.scale)[tables.order]
        self._labels = np.empty((n_rows, m), dtype=np.int8)
        self._log_odds = np.empty((n_rows if request.wants_log_odds else 0, m, 2))

    def walk(self, start: int, stop: int, sums: IntArray, zeros: IntArray) -> None:
        """Fill rows start..stop; ``sums`` and ``zeros`` are used up."""
        forced = self._forced(start, stop)
        position = np.zeros(stop - start, dtype=np.int64)
        while True:
            _kernels.walk_chain(
                position,
                sums,
                zeros,
                self.tables.pairs.values,
                self.tables.pairs.zeros,
                self._cuts,
                self._band,
                forced,
                self._request.precise,
                self.tables.scale.unit,
                self._order,
                self._labels[start:stop],
                self._log_odds[start:stop],
            )
            stuck = np.flatnonzero(position < len(self._order)).tolist()
            if not stuck:
                return
            for row in stuck:
                at = int(position[row])
                sides = (
                    self._exact_sides(start + row, at)
                    if self._settler.exact
                    else self._rounded_sides(sums[row, at], zeros[row : row + 1, at], at)
                )
                low, high = (np.array([side], dtype=np.int8) for side in sides)
                forced[row, at] = decide(low, high, precise=self._request.precise)[0]

    def answer(self) -> Answer:
        log_odds = self._log_odds if self._request.wants_log_odds else None
        if log_odds is not None:
            log_odds[:, self._never] = (-np.inf, np.inf)
        return Answer(self._labels, log_odds, (self._settler.exactness,) * len(self._order))

    def _forced(self, start: int, stop: int) -> Labels:
        """In chain order: labels that are known, and labels nobody has ever observed."""
        forced = np.full((stop - start, len(self._order)), FREE, dtype=np.int8)
        forced[:, self._never] = 0 if self._request.precise else STAR
        if self._request.known is not None:
            known = self._request.known[start:stop]
            forced = np.where(known == MISSING, forced, known)
        return np.ascontiguousarray(forced[:, self._order])

    def _exact_sides(self, row: int, at: int) -> tuple[int, int]:
        j = int(self._order[at])
        history = np.full(len(self._order), FREE, dtype=np.int8)
        if self._request.chained:
            told = self._order[:at]
            history[told] = self._labels[row, told]
        return self._settler.sides(row, j, history, float(self._request.thresholds[j]))

    def _rounded_sides(self, sums: IntArray, zeros: IntArray, at: int) -> tuple[int, int]:
        """Where the strategy has no exact odds, the rounded sums are all there is."""
        found = zeros[0] if len(zeros) else None
        low, high = rounded_sides(sums, found, int(self._cuts[at]), 0).tolist()
        return low, high


def infer_in_fixed_order(codes: Codes, runs: list[FixedOrderRun], request: Request) -> list[Answer]:
    """One pass over the features, then each run's walk."""
    tables = runs[0].tables
    with_zeros = any(run.tables.has_zeros for run in runs)

    def walk_all(start: int, stop: int) -> None:
        sums, zeros = start_sums(codes.part(start, stop), tables, with_zeros=with_zeros)
        for run in runs[:-1]:
            run.walk(start, stop, sums.copy(), zeros.copy())
        runs[-1].walk(start, stop, sums, zeros)

    for_each_chunk(codes.n_rows, len(tables.order), request.n_jobs, walk_all)
    return [run.answer() for run in runs]
