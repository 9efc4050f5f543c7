"""Curves along the caution parameter, and of intervals against what was observed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from credalchain._utils.text import for_figure, plural
from credalchain.metrics import IntervalReliability, completeness_curve, interval_reliability
from credalchain.model_selection import unwrap
from credalchain.plotting.predictions import NO_COLOUR, OPEN_COLOUR, YES_COLOUR, new_axes
from credalchain.promises.calibration import answers_along, caution_values
from credalchain.promises.caution import PromiseCurve
from credalchain.promises.report import promise_words
from credalchain.typing import LabelsLike, MatrixLike, Prediction, PredictionLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PALE = "73"  # opacity, in hexadecimal


@dataclass(kw_only=True, eq=False, repr=False)
class CompletenessCurveDisplay:
    """Curve of set-accuracy against completeness, along the caution parameter of a classifier.

    Use :meth:`from_estimator` or :meth:`from_predictions`, as with scikit-learn's displays.

    Parameters
    ----------
    completeness, set_accuracy : ndarray of shape (n_values,)
        Shares of labels answered, and of rows without a wrong answer.
    values : sequence of float, default=None
        Values of the caution parameter, shown at both ends of the curve.
    parameter : str, default="s"
        Name of the caution parameter.
    name : str, default=None
        Name of the curve in the legend, shown literally; for mathematics, pass ``label`` to
        ``plot``.

    Attributes
    ----------
    line_ : matplotlib line
        The curve, after ``plot``.
    ax_ : matplotlib axes
        Axes with the curve.
    figure_ : matplotlib figure
        Figure with the axes.

    See Also
    --------
    credalchain.metrics.completeness_curve : The numbers of the curve.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier
    >>> from credalchain.datasets import load_embedded_yeast
    >>> from credalchain.plotting import CompletenessCurveDisplay
    >>> X, Y, *_ = load_embedded_yeast()
    >>> chain = CredalChainClassifier(order="given").fit(X[:200], Y[:200])
    >>> display = CompletenessCurveDisplay.from_estimator(chain, X[200:300], Y[200:300])
    >>> display.set_accuracy.shape == display.completeness.shape
    True
    """

    completeness: NDArray[np.float64]
    set_accuracy: NDArray[np.float64]
    values: Sequence[float] | None = None
    parameter: str = "s"
    name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: MatrixLike,
        Y: LabelsLike,
        *,
        values: Iterable[float] | None = None,
        name: str | None = None,
        ax: "Axes | None" = None,
        **line_options: Any,
    ) -> Self:
        """Predict ``X`` for many values of the estimator's caution parameter, and plot.

        Parameters
        ----------
        estimator : fitted classifier with ``predict_path``
            Or a pipeline that ends in one.
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows that the estimator was not fitted on.
        Y : array-like of shape (n_samples, n_labels)
            True labels.
        values : iterable of float, default=None
            Values of the caution parameter. None takes a grid, from least to most cautious, that is
            fine enough to show the whole curve.
        name : str, default=None
            Shown in the legend.
        ax : matplotlib axes, default=None
            Axes to draw on. None makes new ones.
        **line_options
            Passed on to ``ax.plot``.

        Returns
        -------
        CompletenessCurveDisplay
            The display, drawn.
        """
        final, _ = unwrap(estimator)
        if values is None:
            values = caution_values(estimator, None)
            line_options = {"marker": "", **line_options}
        values = list(values)
        return cls.from_predictions(
            Y,
            answers_along(estimator, X, values),
            values=values,
            parameter=final.caution_parameter,
            name=name or type(final).__name__,
            ax=ax,
            **line_options,
        )

    @classmethod
    def from_predictions(
        cls,
        Y_true: LabelsLike,
        path: Iterable[PredictionLike],
        *,
        values: Iterable[float] | None = None,
        parameter: str = "s",
        name: str | None = None,
        ax: "Axes | None" = None,
        **line_options: Any,
    ) -> Self:
        """Plot a path of partial predictions.

        Parameters
        ----------
        Y_true : array-like of shape (n_samples, n_labels)
            True labels.
        path : array-like of shape (n_values, n_samples, n_labels)
            Partial predictions from least to most cautious.
        values : iterable of float, default=None
            Values of the caution parameter.
        parameter : str, default="s"
            Name of the caution parameter.
        name : str, default=None
            Shown in the legend.
        ax : matplotlib axes, default=None
            Axes to draw on. None makes new ones.
        **line_options
            Passed on to ``ax.plot``.

        Returns
        -------
        CompletenessCurveDisplay
            The display, drawn.
        """
        completeness, set_accuracy = completeness_curve(Y_true, path)
        display = cls(
            completeness=completeness,
            set_accuracy=set_accuracy,
            values=None if values is None else list(values),
            parameter=parameter,
            name=name,
        )
        return display.plot(ax=ax, **line_options)

    def plot(self, ax: "Axes | None" = None, **line_options: Any) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Axes to draw on. None makes new ones.
        **line_options
            Passed on to ``ax.plot``.

        Returns
        -------
        CompletenessCurveDisplay
            The display itself.
        """
        self.ax_: Any = new_axes(6.0, 4.5) if ax is None else ax
        self.figure_ = self.ax_.figure
        label = None if self.name is None else for_figure(self.name)
        options = {"marker": "o", "label": label, **line_options}
        (self.line_,) = self.ax_.plot(self.completeness, self.set_accuracy, **options)
        if self.values is not None and len(self.values):
            self._annotate_end(int(np.argmin(self.completeness)), "right")
            self._annotate_end(int(np.argmax(self.completeness)), "left")
            self.ax_.margins(x=0.15)
        self.ax_.set_xlabel("completeness (share of labels answered)")
        self.ax_.set_ylabel("set-accuracy (rows with no wrong answer)")
        if self.name is not None:
            self.ax_.legend(frameon=False)
        return self

    def _annotate_end(self, index: int, align: str) -> None:
        """Write the caution parameter's value beside an end of the curve, away from the curve."""
        assert self.values is not None
        text = f"{self.parameter} = {self.values[index]:.3g}"
        point = (self.completeness[index], self.set_accuracy[index])
        beside = {"xytext": (9 if align == "left" else -9, 0), "textcoords": "offset points"}
        look = {"color": self.line_.get_color(), "fontsize": "small"}
        self.ax_.annotate(text, point, ha=align, va="center", **beside, **look)


def plot_promise_curve(
    curve: PromiseCurve, *, level: float | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Plot the shares of labels answered and of positives found against the risk, with a promise.

    Parameters
    ----------
    curve : PromiseCurve
        From :func:`credalchain.promise_curve`.
    level : float, default=None
        Level of the promise to mark, one of ``curve.levels``. None takes the one nearest to 0.1
        that can be kept.
    ax : matplotlib axes, default=None
        Axes to draw on. None makes new ones.

    Returns
    -------
    matplotlib axes
        Axes with the curves.

    See Also
    --------
    credalchain.promise_curve : Compute the curve.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier, promise_curve
    >>> from credalchain.datasets import load_embedded_yeast
    >>> from credalchain.plotting import plot_promise_curve
    >>> X, Y, *_ = load_embedded_yeast()
    >>> chain = CredalChainClassifier(order="given")
    >>> curve = promise_curve(chain, X[:400], Y[:400], risk="selective_error", confidence=0.9)
    >>> ax = plot_promise_curve(curve)
    """
    ax = new_axes(7.0, 4.5) if ax is None else ax
    order = np.argsort(curve.risks, kind="stable")
    for values, colour, word in (
        (curve.completeness, NO_COLOUR, "labels answered"),
        (curve.found, YES_COLOUR, "true labels answered yes"),
    ):
        ax.plot(curve.risks[order], values[order], color=colour, linewidth=2, label=word)
    ax.set(ylim=(-0.02, 1.02), ylabel="share")
    ax.set_xlim(left=0.0)
    ax.set_xlabel(for_figure(f"{promise_words(curve.risk, None)}, in rows held out", 80))
    pairs = zip(curve.levels, curve.value_indices, strict=True)
    kept = [(kept_level, index) for kept_level, index in pairs if index is not None]
    if level is not None:
        is_number = isinstance(level, (int, float))
        if not is_number or not np.isclose(curve.levels, level).any():
            raise ValueError(f"level must be one of the curve's {curve.levels}, got {level!r}.")
        kept = [pair for pair in kept if np.isclose(pair[0], level)]
    if kept:
        level, index = min(kept, key=lambda pair: abs(pair[0] - 0.1))
        risk, answered, found = curve.risks[index], curve.completeness[index], curve.found[index]
        ax.plot([risk], [answered], "o", color=NO_COLOUR)
        ax.plot([risk], [found], "o", color=YES_COLOUR)
        how = "on average" if curve.confidence is None else f"with confidence {curve.confidence:g}"
        bought = f"{answered:.0%} answered, {found:.0%} found"
        ax.set_title(f"promised: at most {level:g} {how} -> {bought}", fontsize=10)
    elif level is not None:
        rows = plural(curve.n_rows, "row")
        ax.set_title(f"at most {level:g} cannot be promised with {rows}", fontsize=10)
    if level is not None:
        ax.axvline(level, color=OPEN_COLOUR, linestyle="--", linewidth=1)
        ax.annotate("promised", (level, 0), (3, 4), textcoords="offset points", fontsize=9)
    ax.legend(frameon=False, loc="best")
    return ax


@dataclass(kw_only=True, eq=False, repr=False)
class IntervalCalibrationDisplay:
    """Reliability diagram: the observed share of 1 against its predicted bounds.

    Cells are put into bins by their lower bound, and once more by their upper bound. Each bin is a
    bar from its mean lower to its mean upper bound, at the height of its observed share, with a
    mark at the bound that the bin is for and the share's 95 % interval. Where intervals are
    reliable, the bar meets the diagonal; one that misses it significantly is drawn in a stronger
    colour.

    Use :meth:`from_estimator` or :meth:`from_predictions`, as with scikit-learn's displays.

    Parameters
    ----------
    reliability : IntervalReliability
        From :func:`credalchain.metrics.interval_reliability`.
    name : str, default=None
        Title, shown literally.

    Attributes
    ----------
    bars_ : tuple of matplotlib line collections
        Bars by lower and by upper bound, after ``plot``.
    ax_ : matplotlib axes
        Axes with the diagram.
    figure_ : matplotlib figure
        Figure with the axes.

    See Also
    --------
    credalchain.metrics.interval_calibration_error : The mean distance from the diagonal.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier
    >>> from credalchain.datasets import load_embedded_yeast
    >>> from credalchain.plotting import IntervalCalibrationDisplay
    >>> X, Y, *_ = load_embedded_yeast()
    >>> chain = CredalChainClassifier(order="given").fit(X[:200], Y[:200])
    >>> display = IntervalCalibrationDisplay.from_estimator(chain, X[200:300], Y[200:300])
    >>> len(display.bars_)
    2
    """

    reliability: IntervalReliability
    name: str | None = None

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
        """Predict ``X``, compare the intervals with ``Y`` and plot.

        Parameters
        ----------
        estimator : fitted classifier of this package, or a pipeline that ends in one
            Gives the intervals.
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows that the estimator was not fitted on.
        Y : array-like of shape (n_samples, n_labels)
            True labels.
        n_bins : int, default=10
            Number of equally wide bins of the bounds, from 0 to 1.
        name : str, default=None
            Shown above.
        ax : matplotlib axes, default=None
            Axes to draw on. None makes new ones.

        Returns
        -------
        IntervalCalibrationDisplay
            The display, drawn.
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
        Y_true : array-like of shape (n_samples, n_labels)
            True labels; missing ones are left out.
        prediction : CredalPrediction
            Intervals.
        n_bins : int, default=10
            Number of equally wide bins of the bounds, from 0 to 1.
        name : str, default=None
            Shown above.
        ax : matplotlib axes, default=None
            Axes to draw on. None makes new ones.

        Returns
        -------
        IntervalCalibrationDisplay
            The display, drawn.
        """
        counted = interval_reliability(Y_true, prediction, n_bins=n_bins)
        return cls(reliability=counted, name=name).plot(ax=ax)

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Draw the diagram.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Axes to draw on. None makes new ones.

        Returns
        -------
        IntervalCalibrationDisplay
            The display itself.
        """
        self.ax_: Any = new_axes(5.6, 6.3) if ax is None else ax
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
        below: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.11)}
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
