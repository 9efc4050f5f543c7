"""Rows of a prediction as a picture; colours and new axes for all pictures."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.text import for_figure
from credalchain.labels import ABSTAIN, MISSING, and_more, as_labels, select_labels
from credalchain.prediction import CredalPrediction
from credalchain.typing import LabelsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's palette, told apart by people with any kind of colour vision.
YES_COLOUR, NO_COLOUR, OPEN_COLOUR = "#0072B2", "#D55E00", "#6E6E6E"
LOOKS = {1: ("yes", YES_COLOUR), 0: ("no", NO_COLOUR), ABSTAIN: ("*", OPEN_COLOUR)}
MAX_CHARACTERS = 24  # of a label's name
MAX_INCHES = 50.0  # of a figure that holds all that was asked for; beyond that things get smaller
_FITS = 9  # characters of a name that stand above a cell as they are


def new_axes(width: float, height: float) -> "Axes":
    """A figure with one pair of axes, of a size in inches."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:  # pragma: no cover - matplotlib is there in our tests
        raise ImportError('Pictures need matplotlib: pip install "credalchain[plot]"') from error
    return plt.figure(figsize=(width, height), layout="constrained").add_subplot()


def plot_predictions(
    prediction: CredalPrediction,
    *,
    rows: Sequence[int] | None = None,
    Y_true: LabelsLike | None = None,
    max_labels: int | None = 20,
    max_rows: int | None = 8,
    ax: "Axes | None" = None,
) -> "Axes":
    """Some rows of a prediction: yes, no or * in each cell, over its interval.

    Each cell has a scale from 0 to 1 with a tick at one half; the bar is the interval from
    the lower to the upper probability.

    Parameters
    ----------
    prediction : CredalPrediction
    rows : sequence of int, optional
        Which rows; the first ``max_rows`` if not given.
    Y_true : array-like of shape (n, m), optional
        If given, wrong answers get a cross.
    max_labels : int or None, default=20
        Of more labels those are drawn that are open in most of the rows, then the most certain of
        the others; None for all.
    max_rows : int or None, default=8
        How many rows are drawn if ``rows`` is not given; None for all.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    n_rows = len(prediction)
    chosen = list(range(n_rows if max_rows is None else min(max_rows, n_rows)))
    if rows is not None:
        chosen, n_rows = list(rows), len(rows)
    truth = None if Y_true is None else as_labels(Y_true, name="Y_true", require_zero=False)
    labels = select_labels(prediction.labels[chosen], prediction.interval[chosen], max_labels)
    names = [for_figure(prediction.label_names[j], MAX_CHARACTERS) for j in labels.tolist()]
    index = chosen if prediction.index is None else [prediction.index[row] for row in chosen]
    row_names = [for_figure(f"row {name}") for name in index]
    scale = 1.0
    if ax is None:
        width, height = _inches(names, row_names)
        scale = min(1.0, MAX_INCHES / width, MAX_INCHES / height)
        ax = new_axes(width * scale, height * scale)
    for i, row in enumerate(chosen):
        for column, j in enumerate(labels.tolist()):
            y = int(prediction.labels[row, j])
            _draw_cell(ax, column, i, y, prediction.interval[row, j], scale)
            if truth is not None and y != ABSTAIN and truth[row, j] not in (y, MISSING):
                ax.plot(column + 0.87, i + 0.18, "x", color="black", markersize=6 * scale, mew=1.6)
    _name_cells(ax, names, row_names, scale)
    hidden = (
        and_more(len(labels), len(prediction.label_names), "label"),
        and_more(len(chosen), n_rows, "row"),
    )
    ax.set_xlabel(", ".join(filter(None, hidden)))
    return ax


def _inches(names: Sequence[str], rows: Sequence[str]) -> tuple[float, float]:
    """Width and height of a figure, with room for the names around the cells."""
    width = 0.9 + 0.085 * max(map(len, rows), default=0) + 0.85 * len(names)
    height = 1.0 + 0.62 * len(rows)
    longest = max(map(len, names), default=0)
    if longest > _FITS:  # they are turned
        width, height = width + 0.04 * longest, height + 0.05 * longest
    return width, height


def _name_cells(ax: Any, names: Sequence[str], rows: Sequence[str], scale: float) -> None:
    ax.set_xticks(np.arange(len(names)) + 0.5, names)
    ax.set_yticks(np.arange(len(rows)) + 0.5, rows)
    ax.set(xlim=(0, len(names)), ylim=(len(rows), 0))
    ax.xaxis.tick_top()
    ax.tick_params(length=0, labelsize=10 * scale)
    for side in ax.spines.values():
        side.set_visible(False)
    if max(map(len, names), default=0) > _FITS:
        for word in ax.get_xticklabels():
            word.set(rotation=40, ha="left", rotation_mode="anchor")


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
