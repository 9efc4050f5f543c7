"""The fitted naive credal chain: counts, settings and inference."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin

from credalchain._utils.array_types import Labels
from credalchain._utils.validation import check_instance, check_int
from credalchain.chains.local import LocalWalk
from credalchain.chains.naive.codes import (
    Codes,
    SparseCodes,
    as_codes,
    encode_input,
    infer_n_categories,
)
from credalchain.chains.naive.contributions import naive_contributions
from credalchain.chains.naive.counts import ChainCounts, as_counts, count
from credalchain.chains.naive.engine.fixed_order import FixedOrderPass
from credalchain.chains.naive.engine.layout import FixedPoint
from credalchain.chains.naive.engine.tables import ChainTables, TableSource, TableSpec
from credalchain.chains.naive.engine.walk import NaiveWalk
from credalchain.chains.naive.exact import ExactComparator
from credalchain.chains.naive.formulas import NaiveSettings
from credalchain.chains.naive.local import NaiveLocal
from credalchain.chains.protocol import (
    ChainModel,
    Contribution,
    ExactBounds,
    Request,
    Walk,
    combine_answers,
)
from credalchain.chains.strategies import Strategy, branching
from credalchain.prediction import RANKS, Answer, Exactness
from credalchain.preprocessing import Categories, Discretizer

_EXACTNESS = np.array(  # by whether ties can be settled
    [RANKS[Exactness.APPROXIMATE], RANKS[Exactness.EXACT]], dtype=np.int8
)
_MAX_CACHED_TABLES = 4
_VALUES_AT_ONCE = 16  # values of s on a path that share a pass over the features
_PAIRS_AT_ONCE = 2**21  # pairs of labels, times values of s: a hundred megabytes of tables


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
    why_no_reasons = "with this strategy bounds are not a sum of what features and labels add"

    def __init__(self, counts: ChainCounts, settings: NaiveSettings, discretizer: Any) -> None:
        self.counts = counts
        self.settings = settings
        self.discretizer = discretizer
        self.n_labels = len(counts.label)
        self._reset_tables()

    def _reset_tables(self) -> None:
        self._tables: OrderedDict[tuple[Any, ...], ChainTables] = OrderedDict()
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name[0] != "_"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._reset_tables()

    def check_state(self, n_features: int) -> None:
        """Validate a stored model for rows with ``n_features`` columns."""
        counts = as_counts(self.counts)
        check_int("n_labels", self.n_labels, counts.n_labels, counts.n_labels)
        check_int("the number of features counted", counts.n_features, n_features, n_features)
        check_instance("settings", self.settings, NaiveSettings)
        self.settings.check_state()
        inner = getattr(self.discretizer, "estimator", self.discretizer)  # in FrozenEstimator
        check_instance("discretizer", inner, (TransformerMixin, type(None)))
        if isinstance(inner, Discretizer) and not np.array_equal(
            inner.n_categories_, counts.n_categories
        ):
            raise ValueError("the discretizer and the counts have different categories.")

    def encode(self, X: Any) -> Codes:
        return as_codes(encode_input(X, self.discretizer), self.counts.n_categories)

    def text_categories(self) -> dict[int, Categories]:
        binnings = getattr(self.discretizer, "binnings_", [])
        return {
            i: binning
            for i, binning in enumerate(binnings)
            if isinstance(binning, Categories) and binning.keys.dtype.kind == "U"
        }

    def never_observed(self) -> NDArray[np.bool_]:
        return np.asarray(self.counts.label.sum(axis=1) == 0)

    @property
    def nested(self) -> bool:
        """False only where the uniform guess of s = 0 is outside the bounds of s > 0.

        A pair of labels never observed together may have counts 0 over a denominator that is not.
        """
        if self.settings.epsilon_at_zero not in (None, self.settings.epsilon):
            return False
        never_together = self.counts.pair.sum(axis=1) == 0
        return not bool(
            (never_together & (self.settings.denominator.totals(self.counts) > 0)).any()
        )

    def update(self, X: Any, Y: Labels) -> "NaiveChainModel":
        """A model that has also seen these rows. Bins stay; raw codes may bring categories."""
        codes = encode_input(X, self.discretizer)
        old = self.counts
        if self.discretizer is None:
            old = old.widened(infer_n_categories(codes))
        new = count(as_codes(codes, old.n_categories), Y, old.n_categories)
        return NaiveChainModel(old + new, self.settings, self.discretizer)

    @property
    def log_odds_error(self) -> float:
        return FixedPoint.for_terms(len(self.counts.n_categories), self.n_labels).error

    def exact_bounds(
        self, encoded: Codes, *, s: float, strategy: Strategy, precise: bool
    ) -> ExactBounds | None:
        comparator = self._comparator(encoded, s, strategy, precise=precise)
        return comparator.bounds if comparator.is_available else None

    def begin(self, encoded: Codes, *, s: float, strategy: Strategy, precise: bool) -> Walk:
        spec = self._spec(encoded, (strategy if strategy.merge else branching,), precise=precise)
        codes, tables = self._cached_tables(encoded, s, spec, n_jobs=1)
        if strategy.merge is None:
            exact = self._comparator(encoded, s, branching, precise=precise).bounds
            rows = np.arange(encoded.shape[0])[:, None]
            return LocalWalk(
                NaiveLocal(codes, tables, exact, self.never_observed()),
                rows,
                self.n_labels,
                s,
                strategy,
            )
        return NaiveWalk(codes, tables, self._comparator(encoded, s, strategy, precise=precise))

    def contributions(
        self, encoded: Codes, places: Sequence[tuple[int, Labels]], *, s: float, strategy: Strategy
    ) -> list[list[Contribution]] | None:
        if strategy.merge is None:
            return None
        codes = encoded.single_row_dense(self.counts.n_categories)
        _, tables = self._cached_tables(codes, s, self._spec(codes, (strategy,)), n_jobs=1)
        return naive_contributions(
            codes, tables, places, self.counts.n_categories, self.discretizer
        )

    def infer(self, encoded: Codes, request: Request) -> Answer:
        """Compiled where the order is fixed and open labels can be merged; else label by label."""
        if request.order is None or not all(strategy.merge for strategy in request.strategies):
            return self._infer_each_strategy(encoded, request)
        spec = self._spec(
            encoded, request.strategies, request.order, request.chained, request.precise
        )
        if len(request.s_values) > 1 and not request.wants_bounds:
            return self._infer_path(encoded, request, spec)
        if len(request.s_values) > 1:
            each = [self.infer(encoded, replace(request, s_values=(s,))) for s in request.s_values]
            return combine_answers(each, lambda arrays: np.concatenate(arrays, axis=1))
        codes, tables = self._cached_tables(encoded, request.s_values[0], spec, request.n_jobs)
        make_comparator = partial(self._comparator, precise=request.precise)
        fixed_pass = FixedOrderPass(codes, tables, request, make_comparator)
        fixed_pass.run()
        log_odds = fixed_pass.log_odds[:, None] if request.wants_bounds else None
        ranks = _EXACTNESS[
            [int(strategy.merge_exact is not None) for strategy in request.strategies]
        ]
        return Answer(
            fixed_pass.labels,
            log_odds,
            np.broadcast_to(ranks[:, None, None, None], fixed_pass.labels.shape),
        )

    def _infer_each_strategy(self, encoded: Codes, request: Request) -> Answer:
        """Each strategy separately, since a tree does not merge; compiled where possible."""
        if len(request.strategies) == 1:
            return super().infer(encoded, request)
        each = [
            self.infer(encoded, replace(request, strategies=(strategy,)))
            for strategy in request.strategies
        ]
        return combine_answers(each, np.concatenate)

    def _infer_path(self, encoded: Codes, request: Request, spec: TableSpec) -> Answer:
        """Many values of s, some at a time: tables are used once and hold only the rows needed."""
        rows = None
        if isinstance(encoded, SparseCodes):
            encoded, rows = encoded.compacted(self.counts.n_categories, all_rows=False)
        source = TableSource(
            self.counts, self.settings, spec, rows, cached=False, n_jobs=request.n_jobs
        )
        shape = (len(spec.strategies), len(request.s_values), encoded.shape[0], self.n_labels)
        labels = np.empty(shape, dtype=np.int8)
        size = max(1, min(_VALUES_AT_ONCE, _PAIRS_AT_ONCE // self.n_labels**2))
        make_comparator = partial(self._comparator, precise=request.precise)
        for indices in source.groups(request.s_values, size):
            values = tuple(request.s_values[i] for i in indices)
            part = replace(request, s_values=values)
            fixed_pass = FixedOrderPass(encoded, source.tables(values), part, make_comparator)
            fixed_pass.run()
            labels[:, indices] = fixed_pass.labels
        ranks = _EXACTNESS[
            [int(strategy.merge_exact is not None) for strategy in request.strategies]
        ]
        return Answer(labels, None, np.broadcast_to(ranks[:, None, None, None], shape))

    def _comparator(
        self, codes: Codes, s: float, strategy: Strategy, *, precise: bool
    ) -> ExactComparator:
        return ExactComparator(
            self.counts, self.settings, codes, s=s, strategy=strategy, precise=precise
        )

    def _spec(
        self,
        codes: Codes,
        strategies: tuple[Strategy, ...],
        order: NDArray[np.int64] | None = None,
        chained: bool = True,
        precise: bool = False,
    ) -> TableSpec:
        """Without an order, tables for walks in any order."""
        return TableSpec(
            strategies,
            tuple(range(self.n_labels)) if order is None else tuple(order.tolist()),
            chained=chained,
            forward=order is not None,
            has_unseen=codes.has_unseen,
            conservative=self.settings.is_conservative(precise=precise),
        )

    def _cached_tables(
        self, codes: Codes, s: float, spec: TableSpec, n_jobs: int
    ) -> tuple[Codes, ChainTables]:
        """Tables for one s, and codes that fit them.

        The most recent ones are cached, so that predicting row by row builds them once.
        """
        rows = None
        if isinstance(codes, SparseCodes):
            codes, rows = codes.compacted(self.counts.n_categories, all_rows=True)
        key = (s, spec, rows is None)
        with self._lock:
            if key in self._tables:
                self._tables.move_to_end(key)
                return codes, self._tables[key]
        # outside the lock: two threads may build the same tables, but none waits
        source = TableSource(self.counts, self.settings, spec, rows, cached=True, n_jobs=n_jobs)
        tables = source.tables((s,))
        with self._lock:
            self._tables[key] = tables
            while len(self._tables) > _MAX_CACHED_TABLES:
                self._tables.popitem(last=False)
        return codes, tables
