"""The fitted naive credal chain: counts, settings and inference."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin

from credalchain._utils.array_types import IntArray, Labels
from credalchain._utils.validation import check_instance, check_int
from credalchain.chains.local import LocalWalk
from credalchain.chains.naive.counts import (
    ChainCounts,
    Codes,
    as_codes,
    as_counts,
    count,
    encode_input,
    infer_n_categories,
    rows_of_other_codes,
)
from credalchain.chains.naive.exact import ExactComparator
from credalchain.chains.naive.formulas import FixedPoint, FixedTable, NaiveSettings
from credalchain.chains.naive.tables import LANES, ChainTables, TableSource, TableSpec
from credalchain.chains.naive.walk import FixedOrderWalk, NaiveLocal, NaiveWalk
from credalchain.chains.protocol import (
    ChainModel,
    Contribution,
    ExactBounds,
    Request,
    Walk,
    combine_answers,
)
from credalchain.chains.strategies import Strategy, branching
from credalchain.labels import ABSTAIN, UNDECIDED
from credalchain.prediction import RANKS, Answer, Exactness
from credalchain.preprocessing import Categories, Discretizer

_MAX_CACHED = 8  # tables, and as many times what they are built from
_MAX_KEPT = 2**22  # counts of features, beyond which only tables are kept


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
    unexplained_because = "with this strategy bounds are not a sum of what features and labels add"

    def __init__(self, counts: ChainCounts, settings: NaiveSettings, discretizer: Any) -> None:
        self.counts = counts
        self.settings = settings
        self.discretizer = discretizer
        self.n_labels = len(counts.label)
        self._reset_tables()

    def _reset_tables(self) -> None:
        """Reset the recent tables, kept so that predicting row by row builds them once."""
        build = partial(TableSource, self.counts, self.settings, rows=None)
        self._comparator = partial(ExactComparator, self.counts, self.settings)
        self._dense_source = lru_cache(_MAX_CACHED)(build)
        self._tables = lru_cache(_MAX_CACHED)(self._build_tables)

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
        """Return a model that has also seen these rows. Bins stay; raw codes may add categories."""
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
        comparator = self._comparator(encoded, s=s, strategy=strategy, precise=precise)
        return comparator.bounds if comparator.is_available else None

    def begin(self, encoded: Codes, *, s: float, strategy: Strategy, precise: bool) -> Walk:
        merging = strategy if strategy.merge else branching
        spec = self._spec(encoded, (merging,), precise=precise)
        tables = self._tables(spec, encoded.is_sparse, s)
        comparator = self._comparator(encoded, s=s, strategy=merging, precise=precise)
        if strategy.merge:
            return NaiveWalk(encoded, tables, comparator)
        local = NaiveLocal(encoded, tables, comparator.bounds, self.never_observed())
        rows = np.arange(encoded.shape[0])[:, None]
        return LocalWalk(local, rows, self.n_labels, s, strategy)

    def contributions(
        self, encoded: Codes, places: Sequence[tuple[int, Labels]], *, s: float, strategy: Strategy
    ) -> list[list[Contribution]] | None:
        if strategy.merge is None:
            return None
        row = encoded.row(0)
        tables = self._tables(self._spec(encoded, (strategy,)), False, s)
        observed = [self._describe_code(i, code) for i, code in enumerate(row.tolist())]

        def bounds(table: FixedTable, *index: Any) -> list[Any]:
            return list(table.take(index).resolved(tables.scale).tolist())

        parts = []
        for j, history in places:
            block, lane = divmod(2 * j, LANES)
            lanes = slice(lane, lane + 2)
            earlier = np.flatnonzero(history != UNDECIDED)
            y = np.where(history[earlier] == ABSTAIN, 2, history[earlier])
            of_features = bounds(tables.features, block, encoded.offsets + row, lanes)
            of_pairs = bounds(tables.pairs, earlier, y, j)
            of_labels = zip(earlier.tolist(), y.tolist(), of_pairs, strict=True)
            part = [Contribution("prior", -1, "", *bounds(tables.start, block, lanes))]
            part += [Contribution("feature", i, observed[i], *b) for i, b in enumerate(of_features)]
            part += [Contribution("label", k, ["no", "yes", "*"][v], *b) for k, v, b in of_labels]
            parts.append(part)
        return parts

    def _describe_code(self, i: int, code: int) -> str:
        n_categories = int(self.counts.n_categories[i])
        if code >= n_categories:
            return "missing" if code > n_categories else "never seen"
        fitted = getattr(self.discretizer, "estimator", self.discretizer)  # in a FrozenEstimator
        binnings = getattr(fitted, "binnings_", None)
        return f"code {code}" if binnings is None else str(binnings[i].describe(code))

    def infer(self, encoded: Codes, request: Request) -> Answer:
        """Infer, compiled where the order is fixed and open labels merge; else label by label."""
        if request.order is None or not all(strategy.merge for strategy in request.strategies):
            if len(request.strategies) == 1:
                return super().infer(encoded, request)
            each = [  # each strategy separately, since a tree does not merge
                self.infer(encoded, replace(request, strategies=(strategy,)))
                for strategy in request.strategies
            ]
            return combine_answers(each, np.concatenate)
        spec = self._spec(
            encoded, request.strategies, request.order, request.chained, request.precise
        )
        if len(request.s_values) == 1:
            codes = encoded
            tables: Iterable[ChainTables] = [
                self._tables(spec, codes.is_sparse, request.s_values[0])
            ]
        else:  # tables are used once and hold only the rows needed
            codes, rows = encoded.compacted(self.counts.n_categories)
            tables = self._source(spec, rows).tables(request.s_values)
        make_comparator = partial(self._comparator, encoded, precise=request.precise)
        walk = FixedOrderWalk(codes, request, tables, make_comparator)
        walk.run()
        exactness = [
            RANKS[Exactness.EXACT if strategy.merge_exact else Exactness.APPROXIMATE]
            for strategy in spec.strategies
        ]
        ranks = np.broadcast_to(
            np.array(exactness, np.int8)[:, None, None, None], walk.labels.shape
        )
        return Answer(walk.labels, walk.log_odds if request.wants_bounds else None, ranks)

    def _spec(
        self,
        codes: Codes,
        strategies: tuple[Strategy, ...],
        order: NDArray[np.int64] | None = None,
        chained: bool = True,
        precise: bool = False,
    ) -> TableSpec:
        """Return what tables are built for; without an order, for walks in any order."""
        return TableSpec(
            strategies,
            tuple(range(self.n_labels)) if order is None else tuple(order.tolist()),
            chained=chained,
            forward=order is not None,
            has_unseen=codes.has_unseen,
            conservative=self.settings.is_conservative(precise=precise),
        )

    def _build_tables(self, spec: TableSpec, is_sparse: bool, s: float) -> ChainTables:
        """Build tables for one s, with all rows that sparse codes may refer to."""
        rows = rows_of_other_codes(self.counts.n_categories, spec.has_unseen) if is_sparse else None
        return next(self._source(spec, rows).tables((s,)))

    def _source(self, spec: TableSpec, rows: IntArray | None) -> TableSource:
        """Return what builds tables."""
        if rows is None and self.counts.feature.size <= _MAX_KEPT:
            return self._dense_source(spec)
        return TableSource(self.counts, self.settings, spec, rows)
