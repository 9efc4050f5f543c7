"""Several chains as one model: the mean of their lower and of their upper probabilities."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain.bases.protocol import (
    Answer,
    ChainModel,
    Labels,
    Request,
    Walk,
    decide,
    least_exact,
)
from credalchain.labels import ABSTAIN, MISSING
from credalchain.odds import log_odds, probabilities
from credalchain.strategies import Strategy

IntArray = NDArray[np.int64]


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
        return [self._together(answers, request) for answers in zip(*each, strict=True)]

    def _together(self, answers: tuple[Answer, ...], request: Request) -> Answer:
        bounds = np.zeros((*answers[0].labels.shape, 2))
        for answer in answers:
            assert answer.log_odds is not None
            bounds += probabilities(answer.log_odds)
        bounds /= len(answers)
        signs = np.sign(bounds - request.thresholds[:, None]).astype(np.int8)
        labels = decide(signs[..., 0], signs[..., 1], precise=request.precise)
        never = self.never_observed()
        labels[:, never] = 0 if request.precise else ABSTAIN
        if request.known is not None:
            labels = np.where(request.known == MISSING, labels, request.known)
        exactness = least_exact([answer.exactness for answer in answers])
        return Answer(labels, log_odds(bounds) if request.wants_log_odds else None, exactness)
