"""Several chains as one model: the mean of their lower and of their upper probabilities."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain._kernels.states import FREE
from credalchain.bases.protocol import (
    Answer,
    ChainModel,
    ExactBounds,
    Exactness,
    Labels,
    Ranks,
    Request,
    Signs,
    Walk,
    decide,
)
from credalchain.labels import ABSTAIN, MISSING
from credalchain.odds import log_odds, probabilities
from credalchain.strategies import Strategy

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


class EnsembleModel(ChainModel):
    """Fitted chains over the same labels, each with an order of its own.

    A model that serves every order may stand in ``models`` several times: it encodes its input
    once.
    """

    def __init__(self, models: Sequence[ChainModel], orders: IntArray) -> None:
        """``orders`` is (models, labels)."""
        self.models, self.orders = list(models), orders
        self.n_labels = self.models[0].n_labels

    @property
    def nested(self) -> bool:
        """A mean of bounds that widen widens."""
        return all(model.nested for model in self.models)

    def encode(self, X: Any) -> dict[int, Any]:
        """By model: what each of them reads."""
        distinct = {id(model): model for model in self.models}
        if self.models[0].encodes_alike:
            return dict.fromkeys(distinct, self.models[0].encode(X))
        return {key: model.encode(X) for key, model in distinct.items()}

    def never_observed(self) -> NDArray[np.bool_]:
        return self.models[0].never_observed()

    def begin(self, encoded: Any, *, s: float, strategy: Strategy, precise: bool) -> Walk:
        raise TypeError("an ensemble has no single chain to walk along; ask one of its models.")

    def update(self, X: Any, Y: Labels) -> "EnsembleModel":
        """An ensemble that has also seen these rows, if its models can learn more."""
        if not all(hasattr(model, "update") for model in self.models):
            raise AttributeError("the base of this ensemble cannot learn from more rows.")
        updated = {id(model): model for model in self.models}
        updated = {key: model.update(X, Y) for key, model in updated.items()}  # type: ignore[attr-defined]
        return EnsembleModel([updated[id(model)] for model in self.models], self.orders)

    def infer_traced(
        self, encoded: dict[int, Any], strategy: Strategy, request: Request
    ) -> tuple[Answer, list[int]]:
        """The chains have different orders, so labels stand in that of the columns."""
        return self.infer(encoded, (strategy,), request)[0], list(range(self.n_labels))

    def infer(
        self, encoded: dict[int, Any], strategies: tuple[Strategy, ...], request: Request
    ) -> list[Answer]:
        asked = replace(request, wants_log_odds=True)
        each = [
            model.infer(encoded[id(model)], strategies, replace(asked, order=order))
            for model, order in zip(self.models, self.orders, strict=True)
        ]
        return [
            self._together(answers, encoded, strategy, request)
            for strategy, answers in zip(strategies, zip(*each, strict=True), strict=True)
        ]

    def _together(
        self,
        answers: tuple[Answer, ...],
        encoded: dict[int, Any],
        strategy: Strategy,
        request: Request,
    ) -> Answer:
        bounds = self._mean(answers)
        signs = np.sign(bounds - request.thresholds[:, None]).astype(np.int8)
        exactness = np.maximum.reduce([answer.exactness for answer in answers])
        never = self.never_observed()
        near = self._near(bounds, request) & ~never
        if near.any():
            self._settle(near, answers, encoded, strategy, request, signs, exactness)
        labels = decide(signs[..., 0], signs[..., 1], precise=request.precise)
        labels[:, never] = 0 if request.precise else ABSTAIN
        if request.known is not None:
            labels = np.where(request.known == MISSING, labels, request.known)
        return Answer(
            labels, log_odds(bounds) if request.wants_log_odds else None, exactness, bounds
        )

    def _mean(self, answers: tuple[Answer, ...]) -> FloatArray:
        """Of the lower and of the upper probabilities, (n, m, 2)."""
        bounds = np.zeros((*answers[0].labels.shape, 2))
        for answer in answers:
            assert answer.log_odds is not None
            given = answer.interval
            bounds += probabilities(answer.log_odds) if given is None else given
        bounds /= len(answers)
        return bounds

    # -- what rounding cannot decide ---------------------------------------------------

    def _near(self, bounds: FloatArray, request: Request) -> NDArray[np.bool_]:
        """Cells with a bound so near the threshold that rounding could decide, (n, m)."""
        rounding = 8 * len(self.models) * np.finfo(float).eps
        error = max(model.log_odds_error for model in self.models) + rounding
        distance = np.abs(bounds - request.thresholds[:, None])
        return np.asarray((distance <= error).any(axis=-1))

    def _settle(
        self,
        near: NDArray[np.bool_],
        answers: tuple[Answer, ...],
        encoded: dict[int, Any],
        strategy: Strategy,
        request: Request,
        signs: Signs,
        exactness: Ranks,
    ) -> None:
        """Correct ``signs`` in the cells ``near`` by fractions, or lower their ``exactness``."""
        exact: dict[int, ExactBounds] = {}
        for model in self.models:
            own = model.exact_bounds(encoded[id(model)], strategy, request)
            if own is None:
                exactness[near] = Exactness.APPROXIMATE.rank
                return
            exact[id(model)] = own
        for row, j in np.argwhere(near).tolist():
            t = len(answers) * Fraction(float(request.thresholds[j]))
            totals = [Fraction(0), Fraction(0)]
            for model, order, answer in zip(self.models, self.orders, answers, strict=True):
                history = _history(answer.labels[row], order, j, chained=request.chained)
                for side, bound in enumerate(exact[id(model)](row, j, history)):
                    totals[side] += bound
            signs[row, j] = [(total > t) - (total < t) for total in totals]


def _history(labels: Labels, order: IntArray, j: int, *, chained: bool) -> Labels:
    """What a chain has told before label j."""
    history = np.full(len(order), FREE, dtype=np.int8)
    if chained:
        told = order[: order.tolist().index(j)]
        history[told] = labels[told]
    return history
