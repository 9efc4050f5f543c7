"""How a classifier's probability becomes a set of them.

Every way gives three probabilities for a row: the centre, what the classifier says, and how far
the set reaches down and up at full width. The degree of caution s says how much of that
reach is used: nothing at 0.
"""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

FloatArray = NDArray[np.float64]


class Reach(NamedTuple):
    """P(Y = 1) of each row and how far it might lie below and above: least <= centre <= most."""

    centre: FloatArray
    least: FloatArray
    most: FloatArray

    def bounds(self, width: float) -> tuple[FloatArray, FloatArray]:
        """Lower and upper probability where ``width`` times the reach is used."""
        lower = self.centre - width * (self.centre - self.least)
        upper = self.centre + width * (self.most - self.centre)
        return np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)


class LabelModel(Protocol):
    """What was learned for one label."""

    def reach(self, inputs: Any) -> Reach: ...

    def width(self, s: float) -> float:
        """How much of the reach is used; 0 at 0, and never less for a larger s."""
        ...


class Contaminated:
    """Epsilon-contamination: with weight epsilon = s / (1 + s) anything may be true."""

    def __init__(self, fitted: Any) -> None:
        self.fitted = fitted

    def reach(self, inputs: Any) -> Reach:
        p = probability_of_one(self.fitted, inputs)
        return Reach(p, np.zeros_like(p), np.ones_like(p))

    def width(self, s: float) -> float:
        return s / (1 + s)


class Bagged:
    """The fit to all rows, and quantiles of fits to bootstrap samples of them."""

    def __init__(self, fitted: Any, members: Sequence[Any], quantiles: tuple[float, float]) -> None:
        self.fitted, self.members, self.quantiles = fitted, list(members), quantiles

    def reach(self, inputs: Any) -> Reach:
        centre = probability_of_one(self.fitted, inputs)
        if isinstance(self.fitted, Constant):  # bootstrap samples of one class are all alike
            return Reach(centre, centre - self.fitted.doubt, centre + self.fitted.doubt)
        others = np.array([probability_of_one(one, inputs) for one in self.members])
        least, most = np.quantile(others, self.quantiles, axis=0)
        return Reach(centre, np.minimum(least, centre), np.maximum(most, centre))

    def width(self, s: float) -> float:
        return s


class VennAbersCalibrated:
    """The two probabilities of a Venn-Abers predictor, and their one-number summary between."""

    def __init__(self, fitted: Any, calibrator: Any) -> None:
        self.fitted, self.calibrator = fitted, calibrator

    @classmethod
    def fit(cls, fitted: Any, inputs: Any, y: NDArray[Any]) -> "VennAbersCalibrated":
        """Calibrate a fitted classifier on rows that it has not seen."""
        p = probability_of_one(fitted, inputs)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # its 0/0 at the end is meant
            calibrator = venn_abers().fit(np.column_stack([1 - p, p]), y)
        return cls(fitted, calibrator)

    def reach(self, inputs: Any) -> Reach:
        p = probability_of_one(self.fitted, inputs)
        summary, both = self.calibrator.predict_proba(np.column_stack([1 - p, p]))
        least, most = both.min(axis=1), both.max(axis=1)
        return Reach(np.clip(summary[:, 1], least, most), least, most)

    def width(self, s: float) -> float:
        return s


def venn_abers() -> Any:
    """An unfitted predictor of the optional package."""
    try:
        from venn_abers import VennAbers
    except ImportError as error:
        raise ImportError("source='venn-abers' needs a package: pip install venn-abers") from error
    return VennAbers()


class Constant:
    """Where training shows one class only: as if one more row of each class were there.

    ``doubt`` is how far the probability moves if both of these had the same class.
    """

    def __init__(self, p: float, doubt: float) -> None:
        self.p, self.doubt = p, doubt

    @classmethod
    def of(cls, y: NDArray[Any]) -> "Constant":
        return cls(float((np.sum(y) + 1) / (len(y) + 2)), 1 / (len(y) + 2))


def probability_of_one(fitted: Any, inputs: Any) -> FloatArray:
    """P(Y = 1) of each row."""
    if isinstance(fitted, Constant):
        return np.full(inputs.shape[0], fitted.p)
    both = np.asarray(fitted.predict_proba(inputs), dtype=np.float64)
    p = both[:, fitted.classes_.tolist().index(1)]
    if not ((p >= 0) & (p <= 1)).all():
        wrong = p[~((p >= 0) & (p <= 1))][0]
        raise ValueError(f"{fitted!r} gave {wrong} as a probability.")
    return p


def fit_one(estimator: Any, inputs: Any, y: NDArray[Any], seed: int) -> Any:
    """A fitted copy, seeded where it can be; a constant where there is nothing to tell apart."""
    if len(np.unique(y)) < 2:
        return Constant.of(y)
    copy = clone(estimator)
    seeds = {name: seed for name in copy.get_params() if name.split("__")[-1] == "random_state"}
    return copy.set_params(**seeds).fit(inputs, y)
