"""The bounds of the imprecise Dirichlet model, for numbers, arrays and compiled code alike."""

from typing import Any


def idm_bounds(n: Any, denominator: Any, k: Any, s: Any, epsilon: Any) -> Any:
    """Lower and upper P(v | a) from n(v, a), D and K.

    An epsilon is mixed in as the uniform distribution, so that no bound is 0.
    """
    share = (1.0 - epsilon) / (denominator + s)
    floor = epsilon / k
    return n * share + floor, (n + s) * share + floor
