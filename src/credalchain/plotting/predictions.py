"""Rows of a prediction and an explanation as pictures; colours and new axes for all pictures."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.text import for_figure
from credalchain._utils.validation import import_extra
from credalchain.explanation.result import Explanation, SimilarRow, Step
from credalchain.labels import ABSTAIN, MISSING, and_more, as_labels, select_labels
from credalchain.prediction import CredalPrediction
from credalchain.typing import LabelsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, told apart by people with any kind of colour vision.
YES_COLOUR, NO_COLOUR, OPEN_COLOUR = "#0072B2", "#D55E00", "#6E6E6E"
LOOKS = {1: ("yes", YES_COLOUR), 0: ("no", NO_COLOUR), ABSTAIN: ("*", OPEN_COLOUR)}
MAX_CHARACTERS = 24  # of a label's name
MAX_INCHES = 50.0  # of a figure that holds all that was asked for; beyond that things get smaller
_FITS = 9  # characters of a name that stand above a cell as they are


def new_axes(width: float, height: float) -> "Axes":
    """Return a figure with one pair of axes, of a size in inches."""
    message = 'Pictures need matplotlib: pip install "credalchain[plot]"'
    plt = import_extra("matplotlib.pyplot", message)
    axes: Axes = plt.figure(figsize=(width, height), layout="constrained").add_subplot()
    return axes


def plot_predictions(
    prediction: CredalPrediction,
    *,
    rows: Sequence[int] | None = None,
    Y_true: LabelsLike | None = None,
    max_labels: int | None = 20,
    max_rows: int | None = 8,
    ax: "Axes | None" = None,
) -> "Axes":
    """Plot some rows of a prediction: yes, no or * in each cell, over its interval.

    Each cell has a scale from 0 to 1 with a tick at one half; the bar is the interval from
    the lower to the upper probability.

    Parameters
    ----------
    prediction : CredalPrediction
        Labels and bounds.
    rows : sequence of int, default=None
        Rows to draw. None means the first ``max_rows``.
    Y_true : array-like of shape (n_samples, n_labels), default=None
        True labels. If given, wrong answers get a cross.
    max_labels : int or None, default=20
        Maximum number of labels; None for all. If there are more, those are drawn that are open in
        most of the rows, then the most certain of the others.
    max_rows : int or None, default=8
        Maximum number of rows if ``rows`` is not given; None for all.
    ax : matplotlib axes, default=None
        Axes to draw on. None makes new ones.

    Returns
    -------
    matplotlib axes
        Axes with the picture.

    See Also
    --------
    plot_explanation : Plot the explanation of one row.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier
    >>> from credalchain.plotting import plot_predictions
    >>> X = [["sun"], ["sun"], ["sun"], ["rain"], ["rain"], ["fog"]]
    >>> Y = [[1, 0], [1, 0], [1, None], [0, 1], [0, 1], [None, 1]]
    >>> chain = CredalChainClassifier(s=0.5, order="given").fit(X, Y)
    >>> ax = plot_predictions(chain.infer([["sun"], ["fog"]]))
    """
    n_rows = len(prediction)
    chosen = list(range(n_rows if max_rows is None else min(max_rows, n_rows)))
    if rows is not None:
        chosen, n_rows = list(rows), len(rows)
    truth = None if Y_true is None else as_labels(Y_true, name="Y_true", require_zero=False)
    labels = select_labels(prediction.labels[chosen], prediction.interval[chosen], max_labels)
    names = [for_figure(prediction.label_names[j], MAX_CHARACTERS) for j in labels.tolist()]
    index = chosen if prediction.index is None else [prediction.index[row] for row in chosen]
    row_names = [for_figure(name if isinstance(name, str) else f"row {name}") for name in index]
    scale = 1.0
    if ax is None:
        width = 0.9 + 0.085 * max(map(len, row_names), default=0) + 0.85 * len(names)
        height, longest = 1.0 + 0.62 * len(row_names), max(map(len, names), default=0)
        if longest > _FITS:  # they are turned
            width, height = width + 0.04 * longest, height + 0.05 * longest
        scale = min(1.0, MAX_INCHES / width, MAX_INCHES / height)
        ax = new_axes(width * scale, height * scale)
    for i, row in enumerate(chosen):
        for column, j in enumerate(labels.tolist()):
            y = int(prediction.labels[row, j])
            _draw_cell(ax, column, i, y, prediction.interval[row, j], scale)
            if truth is not None and y != ABSTAIN and truth[row, j] not in (y, MISSING):
                ax.plot(column + 0.87, i + 0.18, "x", color="black", markersize=6 * scale, mew=1.6)
    axes: Any = ax
    axes.set_xticks(np.arange(len(names)) + 0.5, names)
    axes.set_yticks(np.arange(len(row_names)) + 0.5, row_names)
    axes.set(xlim=(0, len(names)), ylim=(len(row_names), 0))
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelsize=10 * scale)
    axes.spines[:].set_visible(False)
    if max(map(len, names), default=0) > _FITS:
        for word in axes.get_xticklabels():
            word.set(rotation=40, ha="left", rotation_mode="anchor")
    hidden = (
        and_more(len(labels), len(prediction.label_names), "label"),
        and_more(len(chosen), n_rows, "row"),
    )
    ax.set_xlabel(", ".join(filter(None, hidden)))
    return ax


def _draw_cell(
    ax: Any, j: int, i: int, y: int, interval: NDArray[np.float64], scale: float
) -> None:
    word, colour = LOOKS[y]
    look = {"facecolor": colour + "26", "edgecolor": "none"}  # a pale shade of the same colour
    if y == ABSTAIN:
        look = {"facecolor": "white", "edgecolor": "#00000018", "hatch": "////"}
    ax.fill_between([j + 0.03, j + 0.97], i + 0.04, i + 0.96, linewidth=0, **look)
    font = {"color": colour, "fontweight": "bold", "fontsize": scale * (15 if y == ABSTAIN else 11)}
    ax.text(j + 0.5, i + 0.36, word, ha="center", va="center", **font)
    left, width, line = j + 0.12, 0.76, i + 0.74
    ax.plot([left, left + width], [line, line], color="#00000040", lw=1)
    ax.plot([left + width / 2] * 2, [line - 0.11, line + 0.11], color="#000000", lw=0.8)
    lower, upper = interval
    shown = max(upper - lower, 0.03)  # a precise probability is still a visible dot
    start = min(max((lower + upper - shown) / 2, 0.0), 1.0 - shown)
    ends = [left + width * start, left + width * (start + shown)]
    ax.plot(ends, [line, line], color=colour, lw=4.5 * scale, solid_capstyle="butt")


def plot_explanation(
    explanation: Explanation, *, top: int = 3, max_labels: int | None = 20
) -> "Figure":
    """Plot an explanation: the answers, the intervals, and the contributions or training rows.

    From left to right: the answers, linked to a chain if the model is one, which forks where a
    label was left open (dotted where labels between were left out); each label's interval against
    its threshold; and, for models that are sums, what moved its bounds most, as signed bars: full
    colour as far as both bounds move, pale from the one to the other. For a joint forest, the
    training rows that weigh most and their labels.

    Parameters
    ----------
    explanation : Explanation
        From :func:`credalchain.explain`.
    top : int, default=3
        Number of contributions shown per label.
    max_labels : int or None, default=20
        Maximum number of labels; None for all that the explanation has. If there are more, the open
        ones and the most certain of the others are drawn.

    Returns
    -------
    matplotlib figure
        The picture.

    See Also
    --------
    credalchain.explain : Compute the explanation.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier, explain
    >>> from credalchain.plotting import plot_explanation
    >>> X = [["sun"], ["sun"], ["sun"], ["rain"], ["rain"], ["fog"]]
    >>> Y = [[1, 0], [1, 0], [1, None], [0, 1], [0, 1], [None, 1]]
    >>> chain = CredalChainClassifier(s=0.5, order="given").fit(X, Y)
    >>> figure = plot_explanation(explain(chain, ["fog"]))
    """
    answers = np.array([[step.answer for step in explanation.steps]])
    bounds = np.array([[(step.lower, step.upper) for step in explanation.steps]])
    bounds = bounds.reshape(1, len(explanation.steps), 2)
    shown = sorted(select_labels(answers, bounds, max_labels).tolist())  # as the chain has them
    steps = [explanation.steps[index] for index in shown]
    height = max(1, min(top, max((len(step.reasons) for step in steps), default=0)))
    has_reasons = top > 0 and any(step.reasons for step in steps)
    tall = 1.6 + len(steps) * (0.34 + 0.2 * height)
    scale = min(1.0, MAX_INCHES / tall)
    has_rows = bool(explanation.similar) and not has_reasons
    first = new_axes(11.0 if has_reasons or has_rows else 6.5, tall * scale)
    figure = cast("Figure", first.figure)
    first.remove()
    widths = [0.5, 1.0, 1.5] if has_reasons or has_rows else [0.5, 1.0]
    chain, bars, *panels = figure.subplots(1, len(widths), sharey=has_reasons, width_ratios=widths)
    reasons = panels if has_reasons else []
    if has_rows:
        _draw_rows(panels[0], explanation.similar[:_MAX_ROWS], len(steps), scale)
    for i, step in enumerate(steps):
        _draw_node(chain, i, step, scale)
        if explanation.is_chain and i + 1 < len(steps):
            is_next = shown[i + 1] == shown[i] + 1 and not explanation.n_left_out
            line = {"color": "#00000060", "linestyle": "-" if is_next else ":", "linewidth": 1.2}
            for end in (-0.35, 0.35) if step.answer == ABSTAIN else (0.0,):  # both are possible
                chain.plot([0, end, 0], [i, i + 0.5, i + 1], zorder=1, **line)
        width = max(step.upper - step.lower, 0.012)
        left = min(max((step.lower + step.upper - width) / 2, 0.0), 1 - width)
        bars.barh(i, width, left=left, height=0.34, color=LOOKS[step.answer][1])
        bars.plot([step.threshold] * 2, [i - 0.38, i + 0.38], color="black", lw=1)
        for panel in reasons:
            _draw_reasons(panel, i, step, top, height, scale)
    _style_explanation(chain, bars, reasons, len(steps))
    n_labels = len(explanation.steps) + explanation.n_left_out
    wide = 110 if figure.get_figwidth() > 10 else 62
    setting = textwrap.wrap(explanation.setting, wide) or [""]
    figure.suptitle("\n".join(for_figure(line, wide) for line in setting), x=0.01, ha="left")
    notes = list(filter(None, [and_more(len(steps), n_labels, "label")]))
    if explanation.no_reasons:
        notes += textwrap.wrap(f"no reasons: {explanation.no_reasons}", wide)
    if notes:
        figure.supxlabel("\n".join(notes), x=0.01, ha="left", fontsize="medium")
    return figure


def _draw_node(ax: Any, y: int, step: Step, scale: float) -> None:
    word, colour = LOOKS[step.answer]
    face = "white" if step.answer == ABSTAIN else colour
    ink = colour if step.answer == ABSTAIN else "white"
    size = 620 * scale**2
    ax.scatter([0], [y], s=size, facecolor=face, edgecolor=colour, linewidth=2, zorder=2)
    look = {"va": "center", "fontsize": 9 * scale}
    ax.text(0, y, word, ha="center", color=ink, fontweight="bold", **look)
    name = for_figure(step.label, MAX_CHARACTERS) + (" (known)" if step.known else "")
    ax.text(-0.55, y, name, ha="right", va="center", fontsize=10 * scale)


def _draw_reasons(ax: Any, row_y: int, step: Step, top: int, height: int, scale: float) -> None:
    """Draw bars from 0: full colour as far as both bounds agree, pale from one to the other."""
    for i, reason in enumerate(step.reasons[:top]):
        y = row_y + (i - (height - 1) / 2) * 0.8 / height
        ends = np.clip([reason.lower, reason.upper], -_CAP, _CAP)
        sure = 0.0 if ends[0] < 0 < ends[1] else ends[np.abs(ends).argmin()]
        for side, colour in ((-1, NO_COLOUR), (1, YES_COLOUR)):
            far = max(0.0, (side * ends).max())
            ax.barh(y, side * far, height=0.55 / height, color=colour + "55")
            ax.barh(y, side * max(0.0, side * sure), height=0.55 / height, color=colour)
        text = " ".join(filter(None, (reason.name, reason.value)))
        look = {"transform": ax.get_yaxis_transform(), "va": "center", "fontsize": 8 * scale}
        ax.text(1.02, y, for_figure(text, 40), **look)


_CAP = 12.0  # log-odds beyond which a bar is cut; odds of more than 160,000 to 1
_MAX_ROWS = 5


def _draw_rows(ax: Any, rows: Sequence[SimilarRow], n_steps: int, scale: float) -> None:
    """Draw training rows as bars of their weights, with their labels, beside ``n_steps`` labels."""
    for i, row in enumerate(rows):
        ax.barh(i, row.weight, height=0.4, color="#6E6E6E")
        text = for_figure(f"row {row.row}: {row.labels_as_text}", 66)
        ax.text(0, i - 0.28, text, va="bottom", fontsize=8 * scale)
    room = max(len(rows), n_steps)  # bars are no thicker beside many labels than beside few
    ax.set(ylim=(room - 0.4, -0.9), yticks=[], title="training rows that weigh most\n(weight)")
    ax.spines["bottom"].set_position(("data", len(rows) - 0.4))
    ax.locator_params(axis="x", nbins=4, prune="lower")
    ax.spines[["top", "right", "left"]].set_visible(False)


def _style_explanation(chain: Any, bars: Any, reasons: list[Any], n: int) -> None:
    chain.set(xlim=(-2.2, 0.8), ylim=(n - 0.4, -0.6))
    chain.axis("off")
    bars.set(xlim=(0, 1), ylim=(n - 0.4, -0.6), title="lower to upper\nprobability", yticks=[])
    for panel in reasons:
        panel.axvline(0, color="black", lw=0.8)
        panel.set_title("what moved the bounds most\n(log-odds)")
        widest = max(abs(end) for end in panel.get_xlim())
        panel.set_xlim(-widest, widest)
    for ax in (bars, *reasons):
        ax.tick_params(top=n > 20, labeltop=n > 20)
        for i in range(n - 1):
            ax.axhline(i + 0.5, color="#00000018", lw=0.8)
        ax.spines[["top", "right", "left"]].set_visible(False)
