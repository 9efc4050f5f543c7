"""Pictures of partial predictions. Needs matplotlib (the extra ``plot``)."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from credalchain.estimators.prediction import CredalPrediction
from credalchain.explanation import Explanation, Step
from credalchain.labels import ABSTAIN, MISSING, as_labels
from credalchain.metrics import completeness_curve
from credalchain.promises.curve import PromiseCurve
from credalchain.promises.report import promise_words
from credalchain.text import for_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's palette, told apart by people with any kind of colour vision.
YES_COLOUR, NO_COLOUR, OPEN_COLOUR = "#0072B2", "#D55E00", "#6E6E6E"
_MOST = 24  # characters of a label's name
_LOOKS = {1: ("yes", YES_COLOUR), 0: ("no", NO_COLOUR), ABSTAIN: ("*", OPEN_COLOUR)}


def _new_axes(width: float, height: float) -> "Axes":
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:  # pragma: no cover - matplotlib is there in our tests
        raise ImportError('Pictures need matplotlib: pip install "credalchain[plot]"') from error
    return plt.figure(figsize=(width, height), layout="constrained").add_subplot()


class CompletenessCurveDisplay:
    """Set-accuracy against completeness, along the caution parameter of a classifier.

    Use :meth:`from_estimator` or :meth:`from_predictions`, as with scikit-learn's displays.

    Parameters
    ----------
    completeness, set_accuracy : ndarrays of shape (n_values,)
    values : sequence of float, optional
        The caution parameter's values, shown at both ends of the curve.
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
        name: str | None = None,
    ) -> None:
        self.completeness = completeness
        self.set_accuracy = set_accuracy
        self.values = values
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        Y: Any,
        *,
        values: Iterable[float],
        name: str | None = None,
        ax: Any = None,
        **line_options: Any,
    ) -> "CompletenessCurveDisplay":
        """Predict ``X`` for all ``values`` of the estimator's caution parameter and plot.

        Parameters
        ----------
        estimator : fitted classifier with ``predict_path``
        X, Y : input and true labels
        values : iterable of float
        name : str, optional
        ax : matplotlib axes, optional
        **line_options : passed on to ``ax.plot``
        """
        values = list(values)
        path = estimator.predict_path(X, values)
        return cls.from_predictions(
            Y, path, values=values, name=name or type(estimator).__name__, ax=ax, **line_options
        )

    @classmethod
    def from_predictions(
        cls,
        Y_true: Any,
        path: Any,
        *,
        values: Iterable[float] | None = None,
        name: str | None = None,
        ax: Any = None,
        **line_options: Any,
    ) -> "CompletenessCurveDisplay":
        """Plot a path of partial predictions.

        Parameters
        ----------
        Y_true : array-like of shape (n, m)
        path : array-like of shape (n_values, n, m)
        values, name, ax, **line_options : as in :meth:`from_estimator`
        """
        completeness, set_accuracy = completeness_curve(Y_true, path)
        display = cls(
            completeness=completeness,
            set_accuracy=set_accuracy,
            values=None if values is None else list(values),
            name=name,
        )
        return display.plot(ax=ax, **line_options)

    def plot(self, ax: Any = None, **line_options: Any) -> "CompletenessCurveDisplay":
        """Draw the curve, on new axes if none are given."""
        self.ax_ = _new_axes(6.0, 4.5) if ax is None else ax
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

    def _name_end(self, at: int, align: str) -> None:
        """Write the caution parameter's value beside an end of the curve, away from the curve."""
        assert self.values is not None
        self.ax_.annotate(
            f"s = {self.values[at]:g}",
            (self.completeness[at], self.set_accuracy[at]),
            xytext=(9 if align == "left" else -9, 0),
            textcoords="offset points",
            ha=align,
            va="center",
            color=self.line_.get_color(),
            fontsize="small",
        )


def plot_predictions(
    prediction: CredalPrediction,
    *,
    rows: Sequence[int] | None = None,
    Y_true: Any = None,
    ax: Any = None,
) -> Any:
    """Some rows of a prediction: yes, no or * in each cell, over its interval.

    Each cell has a scale from 0 to 1 with a tick at one half; the bar is the interval from
    the lower to the upper probability.

    Parameters
    ----------
    prediction : CredalPrediction
    rows : sequence of int, optional
        Which rows; the first eight if not given.
    Y_true : array-like of shape (n, m), optional
        If given, wrong answers get a cross.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    chosen = list(range(min(8, len(prediction)))) if rows is None else list(rows)
    truth = None if Y_true is None else as_labels(Y_true, name="Y_true")
    m = len(prediction.label_names)
    if ax is None:
        ax = _new_axes(1.6 + 0.85 * m, 1.3 + 0.62 * len(chosen))
    for at, row in enumerate(chosen):
        for j in range(m):
            y = int(prediction.labels[row, j])
            _draw_cell(ax, j, at, y, prediction.interval[row, j])
            if truth is not None and y != ABSTAIN and truth[row, j] not in (y, MISSING):
                ax.plot(j + 0.87, at + 0.18, "x", color="black", markersize=6, mew=1.6)
    names = chosen if prediction.index is None else [prediction.index[row] for row in chosen]
    ax.set_xticks(np.arange(m) + 0.5, [for_figure(n, _MOST) for n in prediction.label_names])
    ax.set_yticks(np.arange(len(chosen)) + 0.5, [for_figure(f"row {name}") for name in names])
    ax.set(xlim=(0, m), ylim=(len(chosen), 0))
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    if m and max(map(len, prediction.label_names)) > 8:
        ax.tick_params(axis="x", labelrotation=45)
    return ax


def _draw_cell(ax: Any, j: int, at: int, y: int, interval: NDArray[np.float64]) -> None:
    word, colour = _LOOKS[y]
    left, width, line = j + 0.12, 0.76, at + 0.74
    face = colour + "26"  # a pale shade of the same colour
    hatch = "////" if y == ABSTAIN else None
    ax.fill_between(
        [j + 0.03, j + 0.97],
        at + 0.04,
        at + 0.96,
        facecolor="white" if hatch else face,
        hatch=hatch,
        edgecolor="#00000018" if hatch else "none",
        linewidth=0,
    )
    ax.text(
        j + 0.5,
        at + 0.36,
        word,
        ha="center",
        va="center",
        color=colour,
        fontsize=15 if y == ABSTAIN else 11,
        fontweight="bold",
    )
    ax.plot([left, left + width], [line, line], color="#00000040", lw=1)
    ax.plot([left + width / 2] * 2, [line - 0.11, line + 0.11], color="#000000", lw=0.8)
    lower, upper = interval
    shown = max(upper - lower, 0.03)  # a precise probability is still a visible dot
    start = min(max((lower + upper - shown) / 2, 0.0), 1.0 - shown)
    ax.plot(
        [left + width * start, left + width * (start + shown)],
        [line, line],
        color=colour,
        lw=4.5,
        solid_capstyle="butt",
    )


def plot_explanation(explanation: Explanation, *, top: int = 3) -> Any:
    """An explanation as a picture: the chain, the intervals, and the largest contributions.

    From left to right: the chain with its answers, forking where a label was left open; each
    label's interval against its threshold; and, for models that are sums, what moved its bounds
    most, as signed bars: full colour as far as both bounds move, pale from the one to the other.

    Parameters
    ----------
    explanation : Explanation
    top : int, default=3
        Contributions shown per label.

    Returns
    -------
    matplotlib figure
    """
    steps = explanation.steps
    height = max(1, min(top, max((len(step.reasons) for step in steps), default=0)))
    has_reasons = any(step.reasons for step in steps)
    first = _new_axes(11.0 if has_reasons else 6.5, 1.4 + len(steps) * (0.34 + 0.2 * height))
    figure = first.figure
    first.remove()
    widths = [0.5, 1.0, 1.5] if has_reasons else [0.5, 1.0]
    chain, bars, *reasons = figure.subplots(1, len(widths), sharey=True, width_ratios=widths)
    for at, step in enumerate(steps):
        _draw_node(chain, at, step, fork=at + 1 < len(steps))
        _draw_interval(bars, at, step)
        for panel in reasons:
            _draw_reasons(panel, at, step, top, height)
    _dress_explanation(chain, bars, reasons, explanation)
    return figure


def _draw_node(ax: Any, at: int, step: Step, *, fork: bool) -> None:
    word, colour = _LOOKS[step.answer]
    if fork:
        ends = (-0.35, 0.35) if step.answer == ABSTAIN else (0.0,)
        for end in ends:  # an open label leaves both branches possible
            ax.plot([0, end, 0], [at, at + 0.5, at + 1], color="#00000060", lw=1.2, zorder=1)
    face = "white" if step.answer == ABSTAIN else colour
    ink = colour if step.answer == ABSTAIN else "white"
    ax.scatter([0], [at], s=620, facecolor=face, edgecolor=colour, linewidth=2, zorder=2)
    ax.text(0, at, word, ha="center", va="center", color=ink, fontweight="bold", fontsize=9)
    name = for_figure(step.label, _MOST) + (" (known)" if step.known else "")
    ax.text(-0.55, at, name, ha="right", va="center")


def _draw_interval(ax: Any, at: int, step: Step) -> None:
    colour = _LOOKS[step.answer][1]
    width = max(step.upper - step.lower, 0.012)
    left = min(max((step.lower + step.upper - width) / 2, 0.0), 1 - width)
    ax.barh(at, width, left=left, height=0.34, color=colour)
    ax.plot([step.threshold] * 2, [at - 0.38, at + 0.38], color="black", lw=1)


def _draw_reasons(ax: Any, at: int, step: Step, top: int, height: int) -> None:
    """Bars from 0: full colour as far as both bounds agree, pale from one bound to the other."""
    for place, reason in enumerate(step.reasons[:top]):
        y = at + (place - (height - 1) / 2) * 0.8 / height
        ends = np.clip([reason.lower, reason.upper], -_CAP, _CAP)
        sure = 0.0 if ends[0] < 0 < ends[1] else ends[np.abs(ends).argmin()]
        for side, colour in ((-1, NO_COLOUR), (1, YES_COLOUR)):
            far = max(0.0, (side * ends).max())
            ax.barh(y, side * far, height=0.55 / height, color=colour + "55")
            ax.barh(y, side * max(0.0, side * sure), height=0.55 / height, color=colour)
        words = " ".join(filter(None, (reason.name, reason.value)))
        ax.text(
            1.02,
            y,
            for_figure(words, 40),
            transform=ax.get_yaxis_transform(),
            va="center",
            fontsize=8,
        )


_CAP = 12.0  # log-odds beyond which a bar is cut; odds of more than 160,000 to 1


def _dress_explanation(chain: Any, bars: Any, reasons: list[Any], explanation: Explanation) -> None:
    n = len(explanation.steps)
    chain.set(xlim=(-2.2, 0.8), ylim=(n - 0.4, -0.6))
    chain.axis("off")
    bars.set(xlim=(0, 1), title="lower to upper\nprobability", yticks=[])
    for panel in reasons:
        panel.axvline(0, color="black", lw=0.8)
        panel.set_title("what moved the bounds most\n(log-odds)")
        widest = max(abs(end) for end in panel.get_xlim())
        panel.set_xlim(-widest, widest)
    chain.figure.suptitle(explanation.setting, x=0.01, ha="left")
    for ax in (bars, *reasons):
        ax.tick_params(top=n > 20, labeltop=n > 20)
        for at in range(n - 1):
            ax.axhline(at + 0.5, color="#00000018", lw=0.8)
        for side in ("top", "right", "left"):
            ax.spines[side].set_visible(False)


def plot_promise_curve(curve: PromiseCurve, *, level: float | None = None, ax: Any = None) -> Any:
    """Draw risk and completeness along the caution parameter, with what can be promised.

    Parameters
    ----------
    curve : PromiseCurve
        From :func:`promise_curve`.
    level : float, optional
        The promise to draw in, one of the curve's levels. By default the one nearest to 0.1 that
        can be kept.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    ax = _new_axes(7.0, 4.5) if ax is None else ax
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
    pairs = zip(curve.levels, curve.bought, strict=True)
    kept = [(one, place) for one, place in pairs if place is not None]
    if level is not None:
        is_number = isinstance(level, (int, float))
        if not is_number or not np.isclose(curve.levels, level).any():
            raise ValueError(f"level must be one of the curve's {curve.levels}, got {level!r}.")
        kept = [pair for pair in kept if np.isclose(pair[0], level)]
    if kept:
        _draw_promise(ax, curve, x, *min(kept, key=lambda pair: abs(pair[0] - 0.1)))
    elif level is not None:
        ax.axhline(level, color=OPEN_COLOUR, linestyle="--", linewidth=1)
        ax.set_title(f"at most {level:g} cannot be promised with {curve.n_rows} rows", fontsize=10)
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
    place: int,
) -> None:
    at = float(x[place])
    ax.axhline(level, color=OPEN_COLOUR, linestyle="--", linewidth=1)
    ax.axvline(at, color=OPEN_COLOUR, linestyle=":", linewidth=1)
    answered = float(curve.completeness[place])
    ax.plot([at], [answered], "o", color=YES_COLOUR)
    ax.plot([at], [float(curve.risks[place])], "o", color=NO_COLOUR)
    how = "on average" if curve.confidence is None else f"with confidence {curve.confidence:g}"
    ax.set_title(
        f"promised: at most {level:g} {how} -> {curve.parameter} = {curve.values[place]:.3g}, "
        f"{answered:.0%} answered",
        fontsize=10,
    )
