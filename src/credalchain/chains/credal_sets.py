"""How a classifier's probability becomes a set of them.

Every kind of set gives three probabilities for a row: the centre, which is the classifier's, and
the lower and upper end of the set at full width. The degree of caution s determines how much of
that width is used: nothing at 0.
"""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from credalchain._utils.array_types import FloatArray


class FullInterval(NamedTuple):
    """P(Y = 1) of each row and the set at full width: lower <= centre <= upper."""

    centre: FloatArray
    lower: FloatArray
    upper: FloatArray

    def bounds(self, width: float) -> tuple[FloatArray, FloatArray]:
        """Lower and upper probability with ``width`` times the full interval."""
        lower = self.centre - width * (self.centre - self.lower)
        upper = self.centre + width * (self.upper - self.centre)
        return np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)


class LabelModel(Protocol):
    """What was learned for one label."""

    def full_interval(self, inputs: Any) -> FullInterval: ...

    def width(self, s: float) -> float:
        """How much of the full interval is used; 0 at 0, and never less for a larger s."""
        ...


class Contaminated:
    """Epsilon-contamination: with weight epsilon = s / (1 + s) anything may be true."""

    def __init__(self, fitted: Any) -> None:
        self.fitted = fitted

    def full_interval(self, inputs: Any) -> FullInterval:
        p = probability_of_one(self.fitted, inputs)
        return FullInterval(p, np.zeros_like(p), np.ones_like(p))

    def width(self, s: float) -> float:
        return s / (1 + s)


class Bagged:
    """The fit to all rows, and quantiles of fits to bootstrap samples of them."""

    def __init__(self, fitted: Any, members: Sequence[Any], quantiles: tuple[float, float]) -> None:
        self.fitted, self.members, self.quantiles = fitted, list(members), quantiles

    def full_interval(self, inputs: Any) -> FullInterval:
        centre = probability_of_one(self.fitted, inputs)
        if isinstance(self.fitted, Constant):  # bootstrap samples of a single class are equal
            return FullInterval(
                centre, centre - self.fitted.half_width, centre + self.fitted.half_width
            )
        probabilities = np.array([probability_of_one(member, inputs) for member in self.members])
        lower, upper = np.quantile(probabilities, self.quantiles, axis=0)
        return FullInterval(centre, np.minimum(lower, centre), np.maximum(upper, centre))

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
            warnings.simplefilter("ignore", RuntimeWarning)  # 0/0 at the ends is expected
            calibrator = venn_abers().fit(np.column_stack([1 - p, p]), y)
        return cls(fitted, calibrator)

    def full_interval(self, inputs: Any) -> FullInterval:
        p = probability_of_one(self.fitted, inputs)
        summary, both = self.calibrator.predict_proba(np.column_stack([1 - p, p]))
        lower, upper = both.min(axis=1), both.max(axis=1)
        return FullInterval(np.clip(summary[:, 1], lower, upper), lower, upper)

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
    """For a single class in training: as if there were one more row of each class.

    ``half_width`` is how far the probability moves if both of these had the same class.
    """

    def __init__(self, p: float, half_width: float) -> None:
        self.p, self.half_width = p, half_width

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
        invalid = p[~((p >= 0) & (p <= 1))][0]
        raise ValueError(f"{fitted!r} gave {invalid} as a probability.")
    return p


def fit_classifier(estimator: Any, inputs: Any, y: NDArray[Any], seed: int) -> Any:
    """A fitted clone, seeded if possible; a constant if there is a single class."""
    if len(np.unique(y)) < 2:
        return Constant.of(y)
    copy = clone(estimator)
    seeds = {name: seed for name in copy.get_params() if name.split("__")[-1] == "random_state"}
    return copy.set_params(**seeds).fit(inputs, y)
