"""Whether intervals hold what they say, as a picture."""

from typing import TYPE_CHECKING, Any, Self

from sklearn.base import BaseEstimator

from credalchain._utils.text import for_figure
from credalchain.metrics import IntervalReliability, interval_reliability
from credalchain.model_selection import unwrap
from credalchain.plotting.canvas import NO_COLOUR, OPEN_COLOUR, YES_COLOUR, new_axes
from credalchain.typing import LabelsLike, MatrixLike, Prediction

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PALE = "73"  # opacity, in hexadecimal


class IntervalCalibrationDisplay:
    """The observed share of 1 against the bounds that were given for it.

    Cells are put into bins by their lower bound, and once more by their upper bound. Each bin is a
    bar from its mean lower to its mean upper bound, at the height of its observed share, with a
    mark at the bound that the bin is for and the share's 95 % interval. Where intervals are
    reliable, the bar meets the diagonal; one that misses it by more than chance is drawn strong.

    Use :meth:`from_estimator` or :meth:`from_predictions`, as with scikit-learn's displays.

    Parameters
    ----------
    reliability : IntervalReliability
        From :func:`credalchain.metrics.interval_reliability`.
    name : str, optional
        Shown above, as it is.

    Attributes
    ----------
    bars_ : tuple of matplotlib line collections, by lower and by upper bound, after ``plot``
    ax_, figure_ : matplotlib objects, after ``plot``
    """

    bars_: Any
    ax_: Any
    figure_: Any

    def __init__(self, *, reliability: IntervalReliability, name: str | None = None) -> None:
        self.reliability = reliability
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: MatrixLike,
        Y: LabelsLike,
        *,
        n_bins: int = 10,
        name: str | None = None,
        ax: "Axes | None" = None,
    ) -> Self:
        """Predict ``X``, compare with ``Y`` and plot.

        Parameters
        ----------
        estimator : fitted classifier of this package, or a pipeline that ends in one
        X, Y : input and true labels, of rows that were not learned from
        n_bins : int, default=10
            Equally wide bins of the bounds, from 0 to 1.
        name : str, optional
        ax : matplotlib axes, optional
        """
        final, Z = unwrap(estimator, X)
        truth = final.read_labels(Y) if hasattr(final, "read_labels") else Y
        name = type(final).__name__ if name is None else name
        return cls.from_predictions(truth, final.infer(Z), n_bins=n_bins, name=name, ax=ax)

    @classmethod
    def from_predictions(
        cls,
        Y_true: LabelsLike,
        prediction: Prediction,
        *,
        n_bins: int = 10,
        name: str | None = None,
        ax: "Axes | None" = None,
    ) -> Self:
        """Plot the intervals of a prediction.

        Parameters
        ----------
        Y_true : array-like of shape (n, m)
            Cells whose truth is missing are left out.
        prediction : CredalPrediction
        n_bins, name, ax : as in :meth:`from_estimator`
        """
        counted = interval_reliability(Y_true, prediction, n_bins=n_bins)
        return cls(reliability=counted, name=name).plot(ax=ax)

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Draw it, on new axes if none are given."""
        self.ax_ = new_axes(5.6, 6.3) if ax is None else ax
        self.figure_ = self.ax_.figure
        label = "reliable: the bar meets this line"
        self.ax_.plot([0, 1], [0, 1], color=OPEN_COLOUR, linestyle="--", linewidth=1, label=label)
        self.bars_ = (
            self._draw(0, YES_COLOUR, "o", "bins of the lower bound"),
            self._draw(1, NO_COLOUR, "s", "bins of the upper bound"),
        )
        self.ax_.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        self.ax_.set_xlabel("mean lower to mean upper probability of the bin")
        self.ax_.set_ylabel("observed share of yes in the bin")
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.11)}
        self.ax_.legend(frameon=False, fontsize="small", handletextpad=0.4, **below)
        if self.name is not None:
            error = self.reliability.calibration_error
            self.ax_.set_title(
                f"{for_figure(self.name)}: calibration error {error:.3f}", fontsize="medium"
            )
        return self

    def _draw(self, by: int, colour: str, marker: str, label: str) -> Any:
        counted = self.reliability
        there = counted.cells[by] > 0
        lower, upper, share = (
            values[by, there] for values in (counted.lower, counted.upper, counted.share)
        )
        low, high = counted.share_interval[:, by, there]
        missed = (high < lower) | (low > upper)
        looks = [colour if is_missed else colour + _PALE for is_missed in missed] or [colour]
        bars = self.ax_.hlines(share, lower, upper, colors=looks, linewidth=2.5)
        ends = upper if by else lower
        self.ax_.vlines(ends, low, high, colors=looks, linewidth=1)
        self.ax_.scatter(ends, share, color=looks, marker=marker, s=28)
        self.ax_.scatter([], [], color=colour, marker=marker, s=28, label=label)  # for the legend
        return bars
