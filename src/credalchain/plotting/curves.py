"""Curves along the caution parameter: what is answered, and what is wrong."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from credalchain._utils.text import for_figure, plural
from credalchain.metrics import completeness_curve
from credalchain.model_selection import unwrap
from credalchain.plotting.canvas import NO_COLOUR, OPEN_COLOUR, YES_COLOUR, new_axes
from credalchain.promises.calibration import answers_along, caution_values
from credalchain.promises.caution import PromiseCurve
from credalchain.promises.report import promise_words
from credalchain.typing import LabelsLike, MatrixLike, PredictionLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class CompletenessCurveDisplay:
    """Set-accuracy against completeness, along the caution parameter of a classifier.

    Use :meth:`from_estimator` or :meth:`from_predictions`, as with scikit-learn's displays.

    Parameters
    ----------
    completeness, set_accuracy : ndarrays of shape (n_values,)
    values : sequence of float, optional
        The caution parameter's values, shown at both ends of the curve.
    parameter : str, default="s"
        What the caution parameter is called.
    name : str, optional
        Shown in the legend, as it is; for mathematics give ``label`` to ``plot``, too.

    Attributes
    ----------
    line_, ax_, figure_ : matplotlib objects, after ``plot``
    """

    line_: Any
    ax_: Any
    figure_: Any

    def __init__(
        self,
        *,
        completeness: NDArray[np.float64],
        set_accuracy: NDArray[np.float64],
        values: Sequence[float] | None = None,
        parameter: str = "s",
        name: str | None = None,
    ) -> None:
        self.completeness = completeness
        self.set_accuracy = set_accuracy
        self.values = values
        self.parameter = parameter
        self.name = name

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
        """Predict ``X`` for all ``values`` of the estimator's caution parameter and plot.

        Parameters
        ----------
        estimator : fitted classifier with ``predict_path``
        X, Y : input and true labels
        values : iterable of float, optional
            By default so many, from bold to cautious, that the curve shows all there is.
        name : str, optional
        ax : matplotlib axes, optional
        **line_options : passed on to ``ax.plot``
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
        Y_true : array-like of shape (n, m)
        path : array-like of shape (n_values, n, m)
        parameter : str, default="s"
            What the caution parameter is called.
        values, name, ax, **line_options : as in :meth:`from_estimator`
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
        """Draw the curve, on new axes if none are given."""
        self.ax_ = new_axes(6.0, 4.5) if ax is None else ax
        self.figure_ = self.ax_.figure
        label = None if self.name is None else for_figure(self.name)
        options = {"marker": "o", "label": label, **line_options}
        (self.line_,) = self.ax_.plot(self.completeness, self.set_accuracy, **options)
        if self.values is not None and len(self.values):
            self._name_end(int(np.argmin(self.completeness)), "right")
            self._name_end(int(np.argmax(self.completeness)), "left")
            self.ax_.margins(x=0.15)
        self.ax_.set_xlabel("completeness (share of labels answered)")
        self.ax_.set_ylabel("set-accuracy (rows with no wrong answer)")
        if self.name is not None:
            self.ax_.legend(frameon=False)
        return self

    def _name_end(self, index: int, align: str) -> None:
        """Write the caution parameter's value beside an end of the curve, away from the curve."""
        assert self.values is not None
        self.ax_.annotate(
            f"{self.parameter} = {self.values[index]:.3g}",
            (self.completeness[index], self.set_accuracy[index]),
            xytext=(9 if align == "left" else -9, 0),
            textcoords="offset points",
            ha=align,
            va="center",
            color=self.line_.get_color(),
            fontsize="small",
        )


def plot_promise_curve(
    curve: PromiseCurve, *, level: float | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw risk and completeness along the caution parameter, with what can be promised.

    Parameters
    ----------
    curve : PromiseCurve
        From :func:`credalchain.promise_curve`.
    level : float, optional
        The promise to draw in, one of the curve's levels. By default the one nearest to 0.1 that
        can be kept.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    ax = new_axes(7.0, 4.5) if ax is None else ax
    shown = _where_it_changes(curve.completeness)
    x = _on_a_log_scale(curve.values)
    for values, colour, word in (
        (curve.completeness[shown], YES_COLOUR, "answered"),
        (curve.risks[shown], NO_COLOUR, promise_words(curve.risk, None)),
    ):
        ax.plot(x[shown], values, color=colour, linewidth=2, label=for_figure(word, 60))
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter("")
    if x[shown][0] > x[shown][-1]:
        ax.invert_xaxis()
    ax.set_xlabel(f"{curve.parameter}, from bold to cautious")
    ax.set_ylabel("share")
    ax.set_ylim(-0.02, 1.02)
    pairs = zip(curve.levels, curve.value_indices, strict=True)
    kept = [(kept_level, index) for kept_level, index in pairs if index is not None]
    if level is not None:
        is_number = isinstance(level, (int, float))
        if not is_number or not np.isclose(curve.levels, level).any():
            raise ValueError(f"level must be one of the curve's {curve.levels}, got {level!r}.")
        kept = [pair for pair in kept if np.isclose(pair[0], level)]
    if kept:
        _draw_promise(ax, curve, x, *min(kept, key=lambda pair: abs(pair[0] - 0.1)))
    elif level is not None:
        ax.axhline(level, color=OPEN_COLOUR, linestyle="--", linewidth=1)
        rows = plural(curve.n_rows, "row")
        ax.set_title(f"at most {level:g} cannot be promised with {rows}", fontsize=10)
    ax.legend(frameon=False, loc="best")
    return ax


def _where_it_changes(completeness: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Values between the last that answers as much as possible and the first that answers least."""
    last = int(np.flatnonzero(completeness >= completeness.max() - 1e-9)[-1])
    first = int(np.flatnonzero(completeness <= completeness.min() + 1e-9)[0])
    shown = np.zeros(len(completeness), dtype=bool)
    shown[min(last, first) : max(last, first) + 1] = True
    return shown


def _on_a_log_scale(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """0 becomes the smallest positive value."""
    positive = values[values > 0]
    return np.maximum(values, positive.min()) if len(positive) else np.ones_like(values)


def _draw_promise(
    ax: Any,
    curve: PromiseCurve,
    x: NDArray[np.float64],
    level: float,
    index: int,
) -> None:
    x_value = float(x[index])
    ax.axhline(level, color=OPEN_COLOUR, linestyle="--", linewidth=1)
    ax.axvline(x_value, color=OPEN_COLOUR, linestyle=":", linewidth=1)
    answered = float(curve.completeness[index])
    ax.plot([x_value], [answered], "o", color=YES_COLOUR)
    ax.plot([x_value], [float(curve.risks[index])], "o", color=NO_COLOUR)
    how = "on average" if curve.confidence is None else f"with confidence {curve.confidence:g}"
    ax.set_title(
        f"promised: at most {level:g} {how} -> {curve.parameter} = {curve.values[index]:.3g}, "
        f"{answered:.0%} answered",
        fontsize=10,
    )
