"""Several chains as one model: the mean of their lower and of their upper probabilities."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain.array_types import FloatArray, Labels
from credalchain.bases.model import ChainModel, combine_answers
from credalchain.bases.protocol import (
    RANKS,
    Answer,
    ExactBounds,
    Exactness,
    Order,
    Request,
    Walk,
    labels_from_signs,
)
from credalchain.labels import UNDECIDED
from credalchain.odds import log_odds, probabilities
from credalchain.preprocessing import Categories
from credalchain.strategies import Strategy
from credalchain.validation import check_array, check_instance, check_int


@dataclass(frozen=True)
class EnsembleRows:
    """Rows as each of the models encodes them, by the model's ``id``."""

    by_model: dict[int, Any]

    @property
    def shape(self) -> Any:
        return next(iter(self.by_model.values())).shape


class EnsembleModel(ChainModel):
    """Fitted chains over the same labels, each with an order of its own.

    A model that serves every order may occur in ``models`` several times: it encodes its input
    once.
    """

    why_no_reasons = "the mean of several chains is not a sum of what each feature adds"

    def __init__(self, models: Sequence[ChainModel], orders: Order) -> None:
        """``orders`` is (models, labels)."""
        self.models, self.orders = list(models), orders
        self.n_labels = self.models[0].n_labels

    def check_state(self, n_features: int) -> None:
        """Validate a stored model for rows with ``n_features`` columns."""
        check_instance("models", self.models, list)
        shape = (len(self.models), self.n_labels)
        check_array("orders", self.orders, np.int64, shape)
        if not (np.sort(self.orders, axis=1) == np.arange(self.n_labels)).all():
            raise ValueError("the orders must be permutations of the labels.")
        for model in {id(model): model for model in self.models}.values():
            check_instance("a chain", model, ChainModel)
            check_int("n_labels", model.n_labels, self.n_labels, self.n_labels)
            model.check_state(n_features)

    @property
    def nested(self) -> bool:
        """The mean of nested bounds is nested."""
        return all(model.nested for model in self.models)

    def encode(self, X: Any) -> EnsembleRows:
        distinct = {id(model): model for model in self.models}
        if self.models[0].shares_encoding:
            return EnsembleRows(dict.fromkeys(distinct, self.models[0].encode(X)))
        return EnsembleRows({key: model.encode(X) for key, model in distinct.items()})

    def text_categories(self) -> Mapping[int, Categories]:
        return self.models[0].text_categories()

    def never_observed(self) -> NDArray[np.bool_]:
        return self.models[0].never_observed()

    def begin(self, encoded: Any, *, s: float, strategy: Strategy, precise: bool) -> Walk:
        raise TypeError("an ensemble has no single chain to walk along; ask one of its models.")

    def chains(self, encoded: EnsembleRows) -> list[tuple[ChainModel, Any, Order]]:
        """Every chain with its rows and its order."""
        return [
            (model, encoded.by_model[id(model)], order)
            for model, order in zip(self.models, self.orders, strict=True)
        ]

    def update(self, X: Any, Y: Labels) -> "EnsembleModel":
        """An ensemble that has also seen these rows, if its models can learn more."""
        if not all(hasattr(model, "update") for model in self.models):
            raise AttributeError("the base of this ensemble cannot learn from more rows.")
        updated = {id(model): model for model in self.models}
        updated = {key: model.update(X, Y) for key, model in updated.items()}  # type: ignore[attr-defined]
        return EnsembleModel([updated[id(model)] for model in self.models], self.orders)

    def count_rows(self, encoded: Any, labels: Labels) -> list[Any]:
        """The counts of all chains, in their order; see :class:`ForestChainModel`."""
        return [counts for model in self.models for counts in model.count_rows(encoded, labels)]  # type: ignore[attr-defined]

    def with_counts(self, counts: Sequence[Any]) -> "EnsembleModel":
        """The same chains, with these counts added."""
        m = self.n_labels
        parts = [counts[first : first + m] for first in range(0, len(counts), m)]
        models = [
            model.with_counts(part)  # type: ignore[attr-defined]
            for model, part in zip(self.models, parts, strict=True)
        ]
        return EnsembleModel(models, self.orders)

    def infer(self, encoded: EnsembleRows, request: Request) -> Answer:
        """Infer each chain in sequence, on the threads that the request allows.

        One value of s at a time: the bounds of all chains are in memory together.
        """
        each = [
            self._infer_single_s(encoded, replace(request, s_values=(s,))) for s in request.s_values
        ]
        return combine_answers(each, lambda arrays: np.concatenate(arrays, axis=1))

    def _infer_single_s(self, encoded: EnsembleRows, request: Request) -> Answer:
        answers = [
            model.infer(rows, replace(request, order=order, wants_bounds=True))
            for model, rows, order in self.chains(encoded)
        ]
        interval = _mean_interval(answers)
        signs = np.sign(interval - request.thresholds[:, None]).astype(np.int8)
        exactness = np.maximum.reduce([answer.exactness for answer in answers])
        self._settle(encoded, request, answers, interval, signs, exactness)
        labels = labels_from_signs(signs[..., 0], signs[..., 1], precise=request.precise)
        forced = request.forced_labels()
        labels = np.where(forced == UNDECIDED, labels, forced)
        if not request.wants_bounds:
            return Answer(labels, None, exactness)
        return Answer(labels, log_odds(interval), exactness, interval)

    def _settle(
        self,
        encoded: EnsembleRows,
        request: Request,
        answers: list[Answer],
        interval: FloatArray,
        signs: NDArray[np.int8],
        exactness: NDArray[np.int8],
    ) -> None:
        """Correct ``signs`` of bounds that rounding could decide, or lower their ``exactness``."""
        rounding = 8 * len(self.models) * np.finfo(float).eps
        error = max(model.log_odds_error for model in self.models) + rounding
        distance = np.abs(interval - request.thresholds[:, None])
        near = (distance <= error).any(axis=-1) & ~request.never_observed
        for strategy_index, v in np.argwhere(near.any(axis=(2, 3))).tolist():
            index = strategy_index, v
            exact = self._exact_bounds(encoded, request, strategy_index, v)
            if exact is None:
                exactness[index][near[index]] = RANKS[Exactness.APPROXIMATE]
                continue
            for row, j in np.argwhere(near[index]).tolist():
                t = len(answers) * Fraction(float(request.thresholds[j]))
                totals = [Fraction(0), Fraction(0)]
                for bounds, order, answer in zip(exact, self.orders, answers, strict=True):
                    labels = answer.labels[index][row]
                    history = _history_before(j, labels, order, chained=request.chained)
                    for side, bound in enumerate(bounds(row, j, history)):
                        totals[side] += bound
                signs[index][row, j] = [(total > t) - (total < t) for total in totals]

    def _exact_bounds(
        self, encoded: EnsembleRows, request: Request, strategy_index: int, v: int
    ) -> list[ExactBounds] | None:
        """Of every chain; None if one of them computes in floating point."""
        all_bounds = []
        for model, rows, _ in self.chains(encoded):
            bounds = model.exact_bounds(
                rows,
                s=request.s_values[v],
                strategy=request.strategies[strategy_index],
                precise=request.precise,
            )
            if bounds is None:
                return None
            all_bounds.append(bounds)
        return all_bounds


def _mean_interval(answers: list[Answer]) -> FloatArray:
    """The mean of the chains' lower and of their upper probabilities."""
    total = np.zeros((*answers[0].labels.shape, 2))
    for answer in answers:
        assert answer.log_odds is not None
        interval = answer.interval
        total += probabilities(answer.log_odds) if interval is None else interval
    total /= len(answers)
    return total


def _history_before(j: int, labels: Labels, order: Order, *, chained: bool) -> Labels:
    """The labels of a row before label j in its chain; UNDECIDED elsewhere."""
    history = np.full(len(order), UNDECIDED, dtype=np.int8)
    if chained:
        earlier = order[: order.tolist().index(j)]
        history[earlier] = labels[earlier]
    return history
