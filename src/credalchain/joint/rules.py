"""Decision rules: what each answer to a label costs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from credalchain._utils.array_types import FloatArray, Labels

Costs = tuple[float, float]
EQUAL_COSTS = (1.0, 1.0)
Measure = tuple[float, float]


@dataclass(frozen=True)
class Rule:
    """How the answers of a row are chosen, given the reward of an answer.

    Attributes
    ----------
    name : str
    default_reward : callable
        The reward for m labels if none is given.
    grid : callable
        Rewards to choose from, falling to 0, for the costs of a wrong no and a wrong yes.
    expected_costs : callable or None
        Expected costs (n, m, 2) of the answers 0 and 1, from lower probabilities (n, m, 2) that
        they are right, and the costs of a wrong no and a wrong yes. The cheaper answer is given if
        the reward reaches its cost. None: the labels of a row are decided together.
    measure : tuple of (float, float) or None
        What answers are worth if the labels of a row are decided together. With (a, b), that is
        a * t / (y + n - b * t) for y answers yes, of which t are right, and n of the answered
        labels that are 1; and 1 where y = n = 0. None: 1 if all answers are right, else 0.
    """

    name: str
    default_reward: Callable[[int], float]
    grid: Callable[[Costs], FloatArray]
    expected_costs: Callable[[FloatArray, Costs], FloatArray] | None = None
    measure: Measure | None = None


_DEFAULT_REWARD_FACTOR = 0.9  # times the reward at which labels with P = 0.5 are answered


def default_row_reward(n_labels: int) -> float:
    """Return less than the reward at which labels with P = 0.5 would be answered."""
    return _DEFAULT_REWARD_FACTOR * (1 - 0.5**n_labels)


_RANGES = ((100.0, 3.0, 50), (2.99, 0.3, 1400), (0.299, 0.01, 150))  # most matter around 1
ROW_REWARDS = np.concatenate([*(np.geomspace(*part) for part in _RANGES), [0]])
_CELL_REWARDS = np.concatenate([np.linspace(0.5, 0.02, 241), np.geomspace(0.019, 1e-4, 160), [0]])


def _cost_of_wrong_cells(lower: FloatArray, costs: Costs) -> FloatArray:
    return 1 - lower


def _cost_of_wrong_bands(lower: FloatArray, costs: Costs) -> FloatArray:
    return np.asarray((1 - lower) * np.array(costs))


RULES = {
    rule.name: rule
    for rule in (
        Rule("row", default_row_reward, lambda _: ROW_REWARDS),
        Rule("cell", lambda _: 0.2, lambda _: _CELL_REWARDS, _cost_of_wrong_cells),
        Rule(
            "bands", lambda _: 0.2, lambda costs: max(costs) * _CELL_REWARDS, _cost_of_wrong_bands
        ),
        Rule("f1", lambda _: 0.4, lambda _: ROW_REWARDS, measure=(2.0, 0.0)),
        Rule("jaccard", lambda _: 0.4, lambda _: ROW_REWARDS, measure=(1.0, 1.0)),
    )
}
"""By name."""


def price_cells(rule: Rule, lower: FloatArray, costs: Costs) -> tuple[Labels, FloatArray]:
    """Return the cheaper answer to each label (n, m), and its price; ties are answered yes.

    The price is infinite if nothing is known of a label.
    """
    assert rule.expected_costs is not None
    expected = rule.expected_costs(lower, costs)
    answers = (expected[..., 1] <= expected[..., 0]).astype(np.int8)
    prices: Any = np.minimum(expected[..., 0], expected[..., 1])
    return answers, np.where(lower.max(axis=-1) > 0, prices, np.inf)


def check_costs(costs: Any) -> None:
    """Validate the costs of a wrong no and a wrong yes."""
    try:
        values = np.asarray(costs, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (2,) or not ((values > 0) & (values < np.inf)).all():
        raise ValueError(
            f"costs must be two positive numbers, of a wrong no and a wrong yes, got {costs!r}."
        )
