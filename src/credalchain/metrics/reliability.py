"""Reliability of intervals: bounds compared with the observed share of 1."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.array_types import FloatArray
from credalchain._utils.validation import check_int, check_number
from credalchain.labels import MISSING
from credalchain.metrics.measures import Counts, read_pair, require_bounds
from credalchain.typing import LabelsLike, Prediction

_SURE = 0.99
_BINS = 10
_BEYOND_DOUBT = 3.0  # standard errors; more than usual, since cells of a row are dependent
_NOTEWORTHY = 0.05  # distance from the intervals above which there is a note


@dataclass(frozen=True)
class IntervalReliability:
    """Agreement of intervals with the truth; counts add up: ``first + second``.

    Cells whose truth is observed are put into equally wide bins twice: by their lower bound, then
    by their upper one. Arrays are (2, n_bins) in this order.

    Parameters
    ----------
    cells, positive : ndarray of int64, shape (2, n_bins)
        Number of cells in each bin, and of those whose truth is 1.
    lower_sum, upper_sum : ndarray of float64, shape (2, n_bins)
        Sums of the bounds of these cells.
    level : float
        Intervals entirely above ``level`` or below ``1 - level`` are called sure.
    sure, sure_wrong : int
        Number of cells with a sure interval, and of those whose truth is on the other side.

    See Also
    --------
    interval_reliability : Count how intervals agree with the truth.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier
    >>> from credalchain.metrics import interval_reliability
    >>> X, Y = [["a"], ["a"], ["b"], ["b"]], [[1, 0], [1, 1], [0, 0], [0, 0]]
    >>> prediction = CredalChainClassifier(s=0.5, order="given").fit(X, Y).infer(X)
    >>> reliability = interval_reliability(Y, prediction, n_bins=2)
    >>> reliability.cells.sum(axis=1)  # by the lower bound, and by the upper one
    array([8, 8])
    """

    cells: Counts
    positive: Counts
    lower_sum: FloatArray
    upper_sum: FloatArray
    level: float
    sure: int
    sure_wrong: int

    def __add__(self, other: "IntervalReliability") -> "IntervalReliability":
        if self.level != other.level or self.cells.shape != other.cells.shape:
            raise ValueError(
                "counts to add must have the same level and number of bins, got "
                f"{self.level:g} and {other.level:g}, {self.cells.shape[1]} and "
                f"{other.cells.shape[1]} bins."
            )
        sums = {name: value + getattr(other, name) for name, value in vars(self).items()}
        return IntervalReliability(**{**sums, "level": self.level})

    @property
    def share(self) -> FloatArray:
        """Observed share of 1 in each bin; NaN in an empty one."""
        return self._per_cell(self.positive)

    @property
    def lower(self) -> FloatArray:
        """Mean lower bound of each bin; NaN in an empty one."""
        return self._per_cell(self.lower_sum)

    @property
    def upper(self) -> FloatArray:
        """Mean upper bound of each bin; NaN in an empty one."""
        return self._per_cell(self.upper_sum)

    @property
    def share_interval(self) -> FloatArray:
        """95 % confidence interval of the share, (2, 2, n_bins): low, high."""
        return wilson_interval(self.positive, self.cells, 1.96)

    @property
    def distance(self) -> FloatArray:
        """Distance of the share from [mean lower, mean upper]; 0 inside and where empty."""
        outside = np.fmax(self.lower - self.share, self.share - self.upper)
        return np.fmax(outside, 0.0)

    @property
    def calibration_error(self) -> float:
        """Mean distance over cells and both ways to put them into bins; NaN without cells."""
        n = int(self.cells.sum())
        return float((self.cells * self.distance).sum() / n) if n else float("nan")

    @property
    def sure_error(self) -> float:
        """Share of sure intervals that are wrong; NaN if none is sure."""
        return self.sure_wrong / self.sure if self.sure else float("nan")

    def overconfidence_note(self) -> str | None:
        """Return one sentence if intervals are significantly overconfident.

        They are if the error rate of sure intervals exceeds twice its bound; or if intervals on one
        side of one half are, on average, noticeably farther from it than the observed share.

        Returns
        -------
        str or None
            None if overconfidence cannot be shown.
        """
        max_error = 1 - self.level
        if wilson_interval(self.sure_wrong, self.sure, _BEYOND_DOUBT)[0] > 2 * max_error:
            return (
                f"intervals are too sure: of {self.sure} that lie wholly above {self.level:g} or "
                f"below {max_error:.4g}, {self.sure_error:.1%} are wrong, which should be at most "
                f"{100 * max_error:.4g}%."
            )
        distance = self._distance_beyond_doubt()
        if distance > _NOTEWORTHY:
            return (
                "intervals are too sure: where they lie on one side of 1/2, the observed share of "
                f"yes is {distance:.2f} nearer to the other side than they say."
            )
        return None

    def _distance_beyond_doubt(self) -> float:
        """Average the distance of bins on one side of 1/2 from the share's confidence interval."""
        low, high = wilson_interval(self.positive, self.cells, _BEYOND_DOUBT)
        yes, no = self.lower > 0.5, self.upper < 0.5
        cells = np.concatenate([self.cells[yes], self.cells[no]])
        distance = np.concatenate([(self.lower - high)[yes], (low - self.upper)[no]])
        n_cells = int(cells.sum())
        return float((cells * np.maximum(distance, 0.0)).sum()) / n_cells if n_cells else 0.0

    def _per_cell(self, sums: NDArray[Any]) -> FloatArray:
        with np.errstate(invalid="ignore"):  # 0/0: an empty bin
            return np.asarray(sums / self.cells, dtype=np.float64)


def interval_reliability(
    Y_true: LabelsLike, prediction: Prediction, *, n_bins: int = _BINS, level: float = _SURE
) -> IntervalReliability:
    """Count how intervals agree with the truth.

    Parameters
    ----------
    Y_true : array-like of shape (n_samples, n_labels)
        True labels; missing ones are left out.
    prediction : CredalPrediction
        Partial predictions with their bounds.
    n_bins : int, default=10
        Number of equally wide bins of the bounds, from 0 to 1.
    level : float, default=0.99
        Intervals entirely above ``level`` or below ``1 - level`` are called sure.

    Returns
    -------
    IntervalReliability
        Counts and shares of each bin.

    See Also
    --------
    interval_calibration_error : Summarize the bins in one number.
    credalchain.plotting.IntervalCalibrationDisplay : Plot the bins.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier
    >>> from credalchain.metrics import interval_reliability
    >>> X, Y = [["a"], ["a"], ["b"], ["b"]], [[1, 0], [1, 1], [0, 0], [0, 0]]
    >>> prediction = CredalChainClassifier(s=0.5, order="given").fit(X, Y).infer(X)
    >>> reliability = interval_reliability(Y, prediction, n_bins=2)
    >>> reliability.share.round(2)
    array([[0.  , 0.75],
           [0.  , 0.75]])
    """
    require_bounds(prediction, "whose bounds are compared with the truth")
    check_int("n_bins", n_bins)
    check_number("level", level, 0.5, np.nextafter(1, 0), "a number from 0.5 to below 1")
    truth, _ = read_pair(Y_true, prediction)
    observed = truth != MISSING
    is_yes = truth[observed] == 1
    bounds = np.asarray(prediction.interval, dtype=np.float64)[observed]
    sure_yes, sure_no = bounds[:, 0] > level, bounds[:, 1] < 1 - level

    def in_bins(weights: NDArray[Any]) -> FloatArray:
        return np.stack([np.bincount(bins, weights, n_bins) for bins in bin_index])

    bin_index = np.minimum((bounds.T * n_bins).astype(np.int64), n_bins - 1)
    return IntervalReliability(
        in_bins(np.ones(len(is_yes))).astype(np.int64),
        in_bins(is_yes).astype(np.int64),
        in_bins(bounds[:, 0]),
        in_bins(bounds[:, 1]),
        float(level),
        int((sure_yes | sure_no).sum()),
        int(((sure_yes & ~is_yes) | (sure_no & is_yes)).sum()),
    )


def interval_calibration_error(
    Y_true: LabelsLike, prediction: Prediction, *, n_bins: int = _BINS
) -> float:
    """Compute the calibration error: the mean distance of observed shares from the intervals.

    Cells are put into ``n_bins`` equally wide bins by their lower bound, and once more by their
    upper bound. The distance of a bin is that of its observed share of 1 from the interval [mean
    lower bound, mean upper bound]; the result is the mean over cells and both ways. For precise
    probabilities it is the expected calibration error (ECE). Wide intervals have a small error, so
    report completeness as well.

    Parameters
    ----------
    Y_true : array-like of shape (n_samples, n_labels)
        True labels; missing ones are left out.
    prediction : CredalPrediction
        Partial predictions with their bounds.
    n_bins : int, default=10
        Number of equally wide bins of the bounds, from 0 to 1.

    Returns
    -------
    float
        Mean distance; NaN if no truth is observed.

    See Also
    --------
    credalchain.plotting.IntervalCalibrationDisplay : Plot the bins.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier
    >>> from credalchain.metrics import interval_calibration_error
    >>> X, Y = [["a"], ["a"], ["b"], ["b"]], [[1, 0], [1, 1], [0, 0], [0, 0]]
    >>> prediction = CredalChainClassifier(s=0.5, order="given").fit(X, Y).infer(X)
    >>> round(interval_calibration_error(Y, prediction), 2)
    0.01
    """
    return interval_reliability(Y_true, prediction, n_bins=n_bins).calibration_error


def sure_error(Y_true: LabelsLike, prediction: Prediction, *, level: float = _SURE) -> float:
    """Compute the share of wrong cells among those wholly above ``level`` or below 1 - level.

    Parameters
    ----------
    Y_true : array-like of shape (n_samples, n_labels)
        True labels; missing ones are left out.
    prediction : CredalPrediction
        Partial predictions with their bounds.
    level : float, default=0.99
        Intervals entirely above ``level`` or below ``1 - level`` are called sure.

    Returns
    -------
    float
        At most 1 - level if the intervals are valid; NaN if there is no such cell.

    See Also
    --------
    interval_reliability : Counts of all intervals, by bins.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier
    >>> from credalchain.metrics import sure_error
    >>> X, Y = [["a"], ["a"], ["b"], ["b"]], [[1, 0], [1, 1], [0, 0], [0, 0]]
    >>> prediction = CredalChainClassifier(s=0.1, order="given").fit(X, Y).infer(X)
    >>> sure_error(Y, prediction, level=0.8)
    0.0
    """
    return interval_reliability(Y_true, prediction, level=level).sure_error


def overconfidence_note(Y_true: LabelsLike, prediction: Prediction) -> str | None:
    """Return one sentence if the intervals of a prediction are significantly overconfident.

    Parameters
    ----------
    Y_true : array-like of shape (n_samples, n_labels)
        True labels; missing ones are left out.
    prediction : CredalPrediction
        Partial predictions with their bounds.

    Returns
    -------
    str or None
        None if overconfidence cannot be shown.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier
    >>> from credalchain.metrics import overconfidence_note
    >>> X, Y = [["a"], ["a"], ["b"], ["b"]], [[1, 0], [1, 1], [0, 0], [0, 0]]
    >>> prediction = CredalChainClassifier(s=0.5, order="given").fit(X, Y).infer(X)
    >>> overconfidence_note(Y, prediction) is None
    True
    """
    return interval_reliability(Y_true, prediction).overconfidence_note()


def wilson_interval(n_positive: Any, n: Any, z: float) -> FloatArray:
    """Compute the Wilson score interval of a proportion, within z standard errors: (2, ...).

    From 0 to 1 if there was no trial.

    References
    ----------
    E. B. Wilson, Probable inference, the law of succession, and statistical inference, Journal of
    the American Statistical Association 22, 1927.
    """
    n = np.asarray(n, dtype=np.float64)
    share = np.asarray(n_positive) / np.maximum(n, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        slack = z**2 / n
        centre = (share + slack / 2) / (1 + slack)
        half_width = np.sqrt(slack * (share * (1 - share) + slack / 4)) / (1 + slack)
    bounds = np.stack([centre - half_width, centre + half_width])
    return np.where(
        n > 0, np.clip(bounds, 0.0, 1.0), np.array([0.0, 1.0]).reshape(2, *[1] * n.ndim)
    )
