"""An explanation as a picture."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from credalchain._utils.text import for_figure
from credalchain.explanation.result import Explanation, SimilarRow, Step
from credalchain.labels import ABSTAIN, and_more, select_labels
from credalchain.plotting.predictions import (
    LOOKS,
    MAX_CHARACTERS,
    MAX_INCHES,
    NO_COLOUR,
    YES_COLOUR,
    new_axes,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_explanation(
    explanation: Explanation, *, top: int = 3, max_labels: int | None = 20
) -> "Figure":
    """An explanation as a picture: the answers, the intervals, and what they rest on.

    From left to right: the answers, linked to a chain if the model is one, which forks where a
    label was left open (dotted where labels between were left out); each label's interval against
    its threshold; and, for models that are sums, what moved its bounds most, as signed bars: full
    colour as far as both bounds move, pale from the one to the other. For a joint forest, the
    training rows that weigh most and their labels.

    Parameters
    ----------
    explanation : Explanation
    top : int, default=3
        Contributions shown per label.
    max_labels : int or None, default=20
        Of more labels those are drawn that are open, and the most certain of the others; None for
        all that the explanation has.

    Returns
    -------
    matplotlib figure
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
            _draw_link(chain, i, step, "-" if is_next else ":")
        _draw_interval(bars, i, step)
        for panel in reasons:
            _draw_reasons(panel, i, step, top, height, scale)
    _dress_explanation(chain, bars, reasons, len(steps))
    n_labels = len(explanation.steps) + explanation.n_left_out
    _write_around(figure, explanation, and_more(len(steps), n_labels, "label"))
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


def _draw_link(ax: Any, y: int, step: Step, style: str) -> None:
    """To the next label; an open label leaves both branches possible."""
    for end in (-0.35, 0.35) if step.answer == ABSTAIN else (0.0,):
        line = {"color": "#00000060", "linestyle": style, "linewidth": 1.2, "zorder": 1}
        ax.plot([0, end, 0], [y, y + 0.5, y + 1], **line)


def _draw_interval(ax: Any, y: int, step: Step) -> None:
    colour = LOOKS[step.answer][1]
    width = max(step.upper - step.lower, 0.012)
    left = min(max((step.lower + step.upper - width) / 2, 0.0), 1 - width)
    ax.barh(y, width, left=left, height=0.34, color=colour)
    ax.plot([step.threshold] * 2, [y - 0.38, y + 0.38], color="black", lw=1)


def _draw_reasons(ax: Any, row_y: int, step: Step, top: int, height: int, scale: float) -> None:
    """Bars from 0: full colour as far as both bounds agree, pale from one bound to the other."""
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
    """Training rows as bars of their weights, with their labels, beside ``n_steps`` labels."""
    for i, row in enumerate(rows):
        ax.barh(i, row.weight, height=0.4, color="#6E6E6E")
        text = for_figure(f"row {row.row}: {row.labels_as_text}", 66)
        ax.text(0, i - 0.28, text, va="bottom", fontsize=8 * scale)
    room = max(len(rows), n_steps)  # bars are no thicker beside many labels than beside few
    ax.set(ylim=(room - 0.4, -0.9), yticks=[], title="training rows that weigh most\n(weight)")
    ax.spines["bottom"].set_position(("data", len(rows) - 0.4))
    ax.locator_params(axis="x", nbins=4, prune="lower")
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)


def _dress_explanation(chain: Any, bars: Any, reasons: list[Any], n: int) -> None:
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
        for side in ("top", "right", "left"):
            ax.spines[side].set_visible(False)


def _write_around(figure: Any, explanation: Explanation, not_shown: str) -> None:
    """How it was decided, above; why there are no reasons, and how much is not shown, below."""
    wide = 110 if figure.get_figwidth() > 10 else 62
    setting = textwrap.wrap(explanation.setting, wide) or [""]
    figure.suptitle("\n".join(for_figure(line, wide) for line in setting), x=0.01, ha="left")
    notes = [not_shown] if not_shown else []
    if explanation.no_reasons:
        notes += textwrap.wrap(f"no reasons: {explanation.no_reasons}", wide)
    if notes:
        figure.supxlabel("\n".join(notes), x=0.01, ha="left", fontsize="medium")
