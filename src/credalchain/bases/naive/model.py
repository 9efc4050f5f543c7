"""The fitted naive credal chain: counts, settings and how they are asked."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain.bases.local import LocalWalk
from credalchain.bases.naive.codes import Codes, bare_codes, categories_of_codes, inner_codes
from credalchain.bases.naive.contributions import naive_contributions
from credalchain.bases.naive.counts import ChainCounts, count
from credalchain.bases.naive.fixed_order import (
    FixedOrderRun,
    for_each_chunk,
    infer_in_fixed_order,
)
from credalchain.bases.naive.local import NaiveLocal
from credalchain.bases.naive.settings import NaiveSettings
from credalchain.bases.naive.settler import Settler
from credalchain.bases.naive.tables import (
    ChainTables,
    FixedTable,
    Scale,
    feature_table,
    pair_log_odds,
    pair_table,
    prior_log_odds,
)
from credalchain.bases.naive.walk import NaiveWalk
from credalchain.bases.protocol import (
    Answer,
    ChainModel,
    Contribution,
    Labels,
    Request,
    Walk,
)
from credalchain.preprocessing import Discretizer
from credalchain.strategies import Strategy, branching

_KEPT_TABLES = 4


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

    def __init__(self, counts: ChainCounts, settings: NaiveSettings, discretizer: Any) -> None:
        self.counts = counts
        self.settings = settings
        self.discretizer = discretizer
        self.n_labels = counts.n_labels
        self._forget_tables()

    def _forget_tables(self) -> None:
        self._tables: OrderedDict[tuple[Any, ...], FixedTable] = OrderedDict()
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
            local = NaiveLocal(encoded, self._tables_for(encoded, branching, request))
            rows = np.arange(encoded.n_rows)[:, None]
            return LocalWalk(local, rows, self.n_labels, s, strategy)
        tables = self._tables_for(encoded, strategy, request)
        return NaiveWalk(encoded, tables, self._settler(encoded, strategy, request))

    def infer(
        self, encoded: Codes, strategies: tuple[Strategy, ...], request: Request
    ) -> list[Answer]:
        fixed_order = request.order is not None
        compiled = tuple(one for one in strategies if fixed_order and one.star is not None)
        plain = tuple(one for one in strategies if one not in compiled)
        answers = dict(zip(compiled, self._infer_compiled(encoded, compiled, request), strict=True))
        answers.update(zip(plain, self._infer_plainly(encoded, plain, request), strict=True))
        return [answers[strategy] for strategy in strategies]

    def contributions(
        self, encoded: Codes, j: int, history: Labels, *, s: float, strategy: Strategy
    ) -> list[Contribution] | None:
        if strategy.star is None:
            return None
        request = Request(s, np.arange(self.n_labels), np.empty(0))
        tables = self._tables_for(encoded, strategy, request)
        return naive_contributions(
            encoded.row(0), tables, j, history, self.counts.n_categories, self.discretizer
        )

    def _infer_compiled(
        self, encoded: Codes, strategies: tuple[Strategy, ...], request: Request
    ) -> list[Answer]:
        runs = [
            FixedOrderRun(
                self,
                encoded,
                self._tables_for(encoded, strategy, request),
                self._settler(encoded, strategy, request),
                request,
            )
            for strategy in strategies
        ]
        return infer_in_fixed_order(encoded, runs, request) if runs else []

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
        for_each_chunk(encoded.n_rows, self.n_labels, request.n_jobs, run)
        columns = zip(*(parts[start] for start in sorted(parts)), strict=True)
        return [_joined(column) for column in columns]

    def _conservative(self, request: Request) -> bool:
        """The precise chain has one probability, so it can only ignore what is missing."""
        return self.settings.missing_features == "conservative" and not request.precise

    def _settler(self, codes: Codes, strategy: Strategy, request: Request) -> Settler:
        conservative = self._conservative(request)
        return Settler(self, codes, s=request.s, strategy=strategy, conservative=conservative)

    def _tables_for(self, codes: Codes, strategy: Strategy, request: Request) -> ChainTables:
        """Tables for one s and order; those of the features are shared by strategies."""
        assert request.order is not None
        s, order, m = request.s, request.order, self.n_labels
        scale = Scale.for_terms(self.counts.n_features, m)
        conservative = self._conservative(request)

        def make_features() -> FixedTable:
            return feature_table(
                self.counts,
                self.settings,
                scale,
                s=s,
                order=order,
                exceptional=codes.exceptional,
                conservative=conservative,
            )

        def make_pairs() -> FixedTable:
            pair = pair_log_odds(self.counts, self.settings, s=s, order=order)
            return pair_table(pair, strategy, scale)

        def make_prior() -> FixedTable:
            prior = prior_log_odds(self.counts, self.settings, s)[order]
            return FixedTable.from_log_odds(prior, scale)

        key = (s, order.tobytes())
        return ChainTables(
            order=order,
            scale=scale,
            prior=make_prior(),
            features=self._kept((*key, codes.exceptional, conservative), make_features),
            feature_rows=self.counts.n_categories + (2 if codes.exceptional else 0),
            pairs=self._kept((*key, strategy), make_pairs)
            if request.chained
            else FixedTable.empty((3, m, 2)),
        )

    def _kept(self, key: tuple[Any, ...], make: Callable[[], FixedTable]) -> FixedTable:
        """The newest tables stay, so that predicting row by row builds them once."""
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


def _joined(parts: tuple[Answer, ...]) -> Answer:
    log_odds = [part.log_odds for part in parts if part.log_odds is not None]
    return Answer(
        np.concatenate([part.labels for part in parts]),
        np.concatenate(log_odds) if log_odds else None,
        parts[0].exactness,
    )
