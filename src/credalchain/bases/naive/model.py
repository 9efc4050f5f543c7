"""The fitted naive credal chain: counts, settings and how they are asked."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain.bases.local import LocalWalk
from credalchain.bases.naive.codes import (
    Codes,
    SparseCodes,
    bare_codes,
    categories_of_codes,
    inner_codes,
)
from credalchain.bases.naive.contributions import naive_contributions
from credalchain.bases.naive.counts import ChainCounts, count
from credalchain.bases.naive.fixed_order import FixedOrderPass
from credalchain.bases.naive.grid import Scale
from credalchain.bases.naive.local import NaiveLocal
from credalchain.bases.naive.settings import NaiveSettings
from credalchain.bases.naive.settler import Settler, exactness_of
from credalchain.bases.naive.tables import ChainTables, TableMaker, Wanted
from credalchain.bases.naive.walk import NaiveWalk
from credalchain.bases.protocol import (
    Answer,
    ChainModel,
    Contribution,
    ExactBounds,
    Labels,
    Request,
    Walk,
    join_answers,
    uniform_exactness,
)
from credalchain.bases.threads import for_each_chunk
from credalchain.preprocessing import Discretizer
from credalchain.strategies import Strategy, branching

_KEPT_TABLES = 4
_VALUES_AT_ONCE = 16  # of s, on a path, that share a pass over the features
_PAIRS_AT_ONCE = 2**21  # of labels, over these values: a hundred megabytes of tables
_ROWS_AT_ONCE = 2**12  # of the plain walk


def outer_codes(X: Any, discretizer: Any) -> Any:
    """Category codes of checked input, -1 for missing, by a fitted discretizer or none."""
    if discretizer is None:
        return bare_codes(X)
    if isinstance(discretizer, Discretizer):
        return discretizer.encode(X)  # X was checked at the classifier's door
    return discretizer.transform(X)


class NaiveChainModel(ChainModel):
    """Naive credal models of all labels, in every order at once.

    Parameters
    ----------
    counts : ChainCounts
    settings : NaiveSettings
    discretizer : fitted transformer or None
        Turns input into codes; None if the input is codes already.
    """

    serves_any_order = True

    def __init__(self, counts: ChainCounts, settings: NaiveSettings, discretizer: Any) -> None:
        self.counts = counts
        self.settings = settings
        self.discretizer = discretizer
        self.n_labels = counts.n_labels
        self._forget_tables()

    def _forget_tables(self) -> None:
        self._tables: OrderedDict[tuple[Any, ...], ChainTables] = OrderedDict()
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name[0] != "_"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._forget_tables()

    def encode(self, X: Any) -> Codes:
        return inner_codes(outer_codes(X, self.discretizer), self.counts.n_categories)

    def never_observed(self) -> NDArray[np.bool_]:
        return np.asarray(self.counts.label.sum(axis=1) == 0)

    @property
    def nested(self) -> bool:
        """False only where the uniform guess of s = 0 is outside the bounds of s > 0.

        With the class denominator, a pair of labels never observed together has counts 0
        over a denominator that is not.
        """
        if self.settings.epsilon_at_zero not in (None, self.settings.epsilon):
            return False
        never_together = self.counts.pair.sum(axis=1) == 0
        return self.settings.denominator == "pairwise" or not bool(
            (never_together & (self.counts.label > 0)).any()
        )

    def update(self, X: Any, Y: Labels) -> "NaiveChainModel":
        """A model that has also seen these rows. Bins stay; bare codes may bring categories."""
        codes = outer_codes(X, self.discretizer)
        old = self.counts
        if self.discretizer is None:
            old = old.widened(categories_of_codes(codes))
        new = count(inner_codes(codes, old.n_categories), Y, old.n_categories)
        return NaiveChainModel(old + new, self.settings, self.discretizer)

    def begin(self, encoded: Codes, *, s: float, strategy: Strategy, precise: bool) -> Walk:
        request = Request(s, np.arange(self.n_labels), np.empty(0), precise=precise)
        if strategy.star is None:
            local = NaiveLocal(
                *self._tables_for(encoded, (branching,), request, forward=False),
                self._settler(encoded, branching, request).bounds,
            )
            rows = np.arange(encoded.n_rows)[:, None]
            return LocalWalk(local, rows, self.n_labels, s, strategy)
        codes, tables = self._tables_for(encoded, (strategy,), request, forward=False)
        return NaiveWalk(codes, tables, self._settler(encoded, strategy, request))

    def infer(
        self, encoded: Codes, strategies: tuple[Strategy, ...], request: Request
    ) -> list[Answer]:
        compiled = _compiled(strategies, request)
        plain = tuple(one for one in strategies if one not in compiled)
        answers = dict(zip(compiled, self._infer_compiled(encoded, compiled, request), strict=True))
        answers.update(zip(plain, self._infer_plainly(encoded, plain, request), strict=True))
        return [answers[strategy] for strategy in strategies]

    def infer_path(
        self,
        encoded: Codes,
        strategies: tuple[Strategy, ...],
        values: tuple[float, ...],
        request: Request,
    ) -> list[Labels]:
        if len(values) == 1 or _compiled(strategies, request) != strategies:
            return super().infer_path(encoded, strategies, values, request)
        codes, maker = self._table_maker(encoded, strategies, request)
        shape = (len(strategies), len(values), encoded.n_rows, self.n_labels)
        labels = np.empty(shape, dtype=np.int8)
        size = max(1, min(_VALUES_AT_ONCE, _PAIRS_AT_ONCE // self.n_labels**2))
        for places in maker.groups(values, size):
            group = tuple(values[at] for at in places)
            made = self._pass(codes, maker.tables(group), strategies, group, request)
            labels[:, places] = made.labels.swapaxes(0, 1)
        return list(labels)

    def exact_bounds(
        self, encoded: Codes, strategy: Strategy, request: Request
    ) -> ExactBounds | None:
        settler = self._settler(encoded, strategy, request)
        return settler.bounds if settler.exact else None

    @property
    def log_odds_error(self) -> float:
        return Scale.for_terms(self.counts.n_features, self.n_labels).error

    def contributions(
        self, encoded: Codes, j: int, history: Labels, *, s: float, strategy: Strategy
    ) -> list[Contribution] | None:
        if strategy.star is None:
            return None
        request = Request(s, np.arange(self.n_labels), np.empty(0))
        codes = encoded.densified(self.counts.n_categories)
        _, tables = self._tables_for(codes, (strategy,), request, forward=False)
        return naive_contributions(
            codes, tables, j, history, self.counts.n_categories, self.discretizer
        )

    def _infer_compiled(
        self, encoded: Codes, strategies: tuple[Strategy, ...], request: Request
    ) -> list[Answer]:
        if not strategies:
            return []
        codes, tables = self._tables_for(encoded, strategies, request, forward=True)
        made = self._pass(codes, tables, strategies, (request.s,), request)
        return [
            Answer(
                made.labels[0, which],
                made.log_odds[which] if request.wants_log_odds else None,
                uniform_exactness(exactness_of(strategy), made.labels.shape[2:]),
            )
            for which, strategy in enumerate(strategies)
        ]

    def _infer_plainly(
        self, encoded: Codes, strategies: tuple[Strategy, ...], request: Request
    ) -> list[Answer]:
        """The plain driver, chunk by chunk."""
        parts: dict[int, list[Answer]] = {}

        def run(start: int, stop: int) -> None:
            known = None if request.known is None else request.known[start:stop]
            part = replace(request, known=known)
            parts[start] = super(NaiveChainModel, self).infer(
                encoded.part(start, stop), strategies, part
            )

        if not strategies:
            return []
        for_each_chunk(encoded.n_rows, _ROWS_AT_ONCE, request.n_jobs, run)
        columns = zip(*(parts[start] for start in sorted(parts)), strict=True)
        return [join_answers(column) for column in columns]

    def _conservative(self, request: Request) -> bool:
        """The precise chain has one probability, so it can only ignore what is missing."""
        return self.settings.missing_features == "conservative" and not request.precise

    def _settler(self, codes: Codes, strategy: Strategy, request: Request) -> Settler:
        conservative = self._conservative(request)
        return Settler(self, codes, s=request.s, strategy=strategy, conservative=conservative)

    def _pass(
        self,
        codes: Codes,
        tables: ChainTables,
        strategies: tuple[Strategy, ...],
        values: tuple[float, ...],
        request: Request,
    ) -> FixedOrderPass:
        def settler(which: int, q: int) -> Settler:
            return self._settler(codes, strategies[which], replace(request, s=values[q]))

        return FixedOrderPass(self, codes, tables, strategies, settler, request)

    def _tables_for(
        self,
        codes: Codes,
        strategies: tuple[Strategy, ...],
        request: Request,
        *,
        forward: bool,
    ) -> tuple[Codes, ChainTables]:
        """Tables for one s, and codes that fit them.

        They stay a while, so that predicting row by row builds them once.
        """
        wanted, s = self._wanted(codes, strategies, request, forward=forward), request.s
        rows = None
        if isinstance(codes, SparseCodes):
            codes, rows = codes.compacted(self.counts.n_categories, all_rows=True)

        def make() -> ChainTables:
            maker = TableMaker(
                self.counts, self.settings, wanted, rows, kept=True, n_jobs=request.n_jobs
            )
            return maker.tables((s,))

        return codes, self._kept((s, wanted, rows is None), make)

    def _table_maker(
        self, codes: Codes, strategies: tuple[Strategy, ...], request: Request
    ) -> tuple[Codes, TableMaker]:
        """For many values of s: tables that are used once, with only the rows these codes need."""
        wanted, rows = self._wanted(codes, strategies, request, forward=True), None
        if isinstance(codes, SparseCodes):
            codes, rows = codes.compacted(self.counts.n_categories, all_rows=False)
        maker = TableMaker(
            self.counts, self.settings, wanted, rows, kept=False, n_jobs=request.n_jobs
        )
        return codes, maker

    def _wanted(
        self, codes: Codes, strategies: tuple[Strategy, ...], request: Request, *, forward: bool
    ) -> Wanted:
        assert request.order is not None
        return Wanted(
            strategies,
            tuple(request.order.tolist()),
            chained=request.chained,
            forward=forward,
            exceptional=codes.exceptional,
            conservative=self._conservative(request),
        )

    def _kept(self, key: Any, make: Callable[[], ChainTables]) -> ChainTables:
        with self._lock:
            if key in self._tables:
                self._tables.move_to_end(key)
                return self._tables[key]
        made = make()  # outside the lock: two threads may build the same, none waits
        with self._lock:
            self._tables[key] = made
            while len(self._tables) > _KEPT_TABLES:
                self._tables.popitem(last=False)
        return made


def _compiled(strategies: tuple[Strategy, ...], request: Request) -> tuple[Strategy, ...]:
    """Those that the compiled walk can do: a fixed order, and a column for the star."""
    return tuple(one for one in strategies if request.order is not None and one.star is not None)
