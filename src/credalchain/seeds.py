"""Random states of estimators inside estimators."""

from typing import Any


def seeded(estimator: Any, seed: int) -> Any:
    """The estimator itself, with every random state that is None set to ``seed``."""
    unseeded = [
        name
        for name, value in estimator.get_params().items()
        if name.split("__")[-1] == "random_state" and value is None
    ]
    return estimator.set_params(**dict.fromkeys(unseeded, seed))
