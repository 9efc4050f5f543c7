"""The fitted naive credal chain: counts, settings and how they are asked."""

import threading
from collections import OrderedDict
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain.bases.local import LocalWalk
from credalchain.bases.naive.codes import Codes, bare_codes, categories_of_codes, inner_codes
from credalchain.bases.naive.contributions import naive_contributions
from credalchain.bases.naive.counts import ChainCounts, count
from credalchain.bases.naive.fixed_order import FixedOrderPass
from credalchain.bases.naive.local import NaiveLocal
from credalchain.bases.naive.settings import NaiveSettings
from credalchain.bases.naive.settler import Settler, exactness_of
from credalchain.bases.naive.tables import (
    ChainTables,
    Layout,
    Scale,
    feature_table,
    no_pairs,
    pair_table,
    prior_table,
)
from credalchain.bases.naive.threads import for_each_chunk
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
_LANES_AT_ONCE = 512  # of a path: so many values of s share a pass over the features
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
            local = NaiveLocal(encoded, self._tables_for(encoded, (branching,), (s,), request))
            rows = np.arange(encoded.n_rows)[:, None]
            return LocalWalk(local, rows, self.n_labels, s, strategy)
        tables = self._tables_for(encoded, (strategy,), (s,), request)
        return NaiveWalk(encoded, tables, self._settler(encoded, strategy, request))

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
        if _compiled(strategies, request) != strategies or len(set(values)) < len(values):
            return super().infer_path(encoded, strategies, values, request)
        n_together = max(1, _LANES_AT_ONCE // Layout(1, self.n_labels).width)
        shape = (len(strategies), len(values), encoded.n_rows, self.n_labels)
        paths = np.empty(shape, dtype=np.int8)
        for first in range(0, len(values), n_together):
            together = values[first : first + n_together]
            made = self._pass(encoded, strategies, together, request)
            paths[:, first : first + n_together] = made.labels
        return list(paths)

    def contributions(
        self, encoded: Codes, j: int, history: Labels, *, s: float, strategy: Strategy
    ) -> list[Contribution] | None:
        if strategy.star is None:
            return None
        request = Request(s, np.arange(self.n_labels), np.empty(0))
        tables = self._tables_for(encoded, (strategy,), (s,), request, relative=False)
        return naive_contributions(
            encoded.row(0), tables, j, history, self.counts.n_categories, self.discretizer
        )

    def _infer_compiled(
        self, encoded: Codes, strategies: tuple[Strategy, ...], request: Request
    ) -> list[Answer]:
        if not strategies:
            return []
        made = self._pass(encoded, strategies, (request.s,), request)
        return [
            Answer(
                made.labels[which, 0],
                made.log_odds[which] if request.wants_log_odds else None,
                (exactness_of(strategy),) * self.n_labels,
            )
            for which, strategy in enumerate(strategies)
        ]

    def _pass(
        self,
        encoded: Codes,
        strategies: tuple[Strategy, ...],
        values: tuple[float, ...],
        request: Request,
    ) -> FixedOrderPass:
        tables = self._tables_for(encoded, strategies, values, request)
        settlers = [
            [self._settler(encoded, strategy, replace(request, s=s)) for s in values]
            for strategy in strategies
        ]
        return FixedOrderPass(self, encoded, tables, settlers, request)

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
        return [_joined(column) for column in columns]

    def _conservative(self, request: Request) -> bool:
        """The precise chain has one probability, so it can only ignore what is missing."""
        return self.settings.missing_features == "conservative" and not request.precise

    def _settler(self, codes: Codes, strategy: Strategy, request: Request) -> Settler:
        conservative = self._conservative(request)
        return Settler(self, codes, s=request.s, strategy=strategy, conservative=conservative)

    def _tables_for(
        self,
        codes: Codes,
        strategies: tuple[Strategy, ...],
        values: tuple[float, ...],
        request: Request,
        *,
        relative: bool | None = None,
    ) -> ChainTables:
        """Tables for values of s; the newest stay, so that predicting row by row builds them once.

        ``relative``, to code 0, by default for sparse codes.
        """
        assert request.order is not None
        relative = codes.sparse if relative is None else relative
        conservative = self._conservative(request)
        order = request.order.tobytes()
        key = (
            values,
            order,
            strategies,
            request.chained,
            codes.exceptional,
            conservative,
            relative,
        )
        with self._lock:
            if key in self._tables:
                self._tables.move_to_end(key)
                return self._tables[key]
        made = self._make_tables(
            strategies, values, request, codes.exceptional, conservative, relative
        )  # outside the lock: two threads may build the same, none waits
        if len(values) == 1:
            with self._lock:
                self._tables[key] = made
                while len(self._tables) > _KEPT_TABLES:
                    self._tables.popitem(last=False)
        return made

    def _make_tables(
        self,
        strategies: tuple[Strategy, ...],
        values: tuple[float, ...],
        request: Request,
        exceptional: bool,
        conservative: bool,
        relative: bool,
    ) -> ChainTables:
        assert request.order is not None
        order, layout = request.order, Layout(len(values), self.n_labels)
        scale = Scale.for_terms(self.counts.n_features, self.n_labels)
        about = (self.counts, self.settings, scale)
        return ChainTables(
            order=order,
            scale=scale,
            layout=layout,
            prior=prior_table(*about, values=values, order=order),
            features=feature_table(
                *about,
                values=values,
                order=order,
                exceptional=exceptional,
                conservative=conservative,
                relative=relative,
            ),
            pairs=pair_table(*about, strategies, values=values, order=order)
            if request.chained
            else no_pairs(layout, len(strategies)),
        )


def _compiled(strategies: tuple[Strategy, ...], request: Request) -> tuple[Strategy, ...]:
    """Those that the compiled walk can do: a fixed order, and a column for the star."""
    return tuple(one for one in strategies if request.order is not None and one.star is not None)


def _joined(parts: tuple[Answer, ...]) -> Answer:
    log_odds = [part.log_odds for part in parts if part.log_odds is not None]
    return Answer(
        np.concatenate([part.labels for part in parts]),
        np.concatenate(log_odds) if log_odds else None,
        parts[0].exactness,
    )
