"""The figures of a study, from its summary: as files, and inside the page in its colours."""

import io
import math
import re
from html import escape
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from credalchain._utils.text import for_figure, visible
from credalchain.reporting.findings import WIDEST_GAP, curve_name

_PANELS = (("set_accuracy", "set-accuracy (%)"), ("completeness", "completeness (%)"))
_MAX_TITLE = 38  # characters above a panel
_MAX_PARAMETER = 30  # characters of a parameter's name
_COLOURS = ("#0072b2", "#c24e00", "#00805a", "#a8508a", "#8a6a00", "#2b8fc4", "#33393f")
_MARKERS, _LINES = "os^Dv|_", ("-", "--", ":", "-.")
_RAMP = LinearSegmentedColormap.from_list(  # seen on light and dark
    "caution", ["#3b7dd8", "#9a5fd0", "#d0508f", "#c8641a"]
)
_GRID = "#d9d6d0"
# what style.css has other values for in the dark
_VARIABLES = {colour: f"var(--k{i})" for i, colour in enumerate(_COLOURS)} | {
    _GRID: "var(--line)",
    "#000000": "var(--quiet)",
}


class Look(NamedTuple):
    """How a method is drawn."""

    color: str
    marker: str
    linestyle: str


def method_look(index: int) -> Look:
    """Return the look of a method: colours repeat after seven, with other lines and markers."""
    n = len(_COLOURS)
    other = index + index // n
    return Look(_COLOURS[index % n], _MARKERS[other % n], _LINES[other % len(_LINES)])


def key_figure(index: int) -> Figure:
    """Return a piece of a method's curve, for a legend."""
    figure = Figure(figsize=(0.5, 0.2))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set_axis_off()
    ax.plot([0, 1, 2], [0, 0, 0], markevery=[1], markersize=5, **method_look(index)._asdict())
    return figure


def missing_figure(
    summary: pd.DataFrame, title: str, damage: str = "removed", parameter: str = "s"
) -> Figure:
    """Set-accuracy above, completeness below, against the share of labels damaged.

    One curve for each value of the caution parameter, from blue (small) to orange (large).
    """
    values = sorted(summary["s"].unique())
    columns = 5
    height = 5.0 + (0.5 + 0.22 * math.ceil(len(values) / columns)) * bool(parameter)
    figure = Figure(figsize=(4.2, height), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    colours = _RAMP(np.linspace(0, 1, len(values)))
    for s, colour in zip(values, colours, strict=True):
        curve = summary[summary["s"] == s].sort_values("missing")
        for ax, (measure, _) in zip((upper, lower), _PANELS, strict=True):
            x, y = 100 * curve["missing"], 100 * curve[measure]
            ax.plot(x, y, marker="o", markersize=4, color=colour, label=f"{s:g}")
    for ax, (_, words) in zip((upper, lower), _PANELS, strict=True):
        ax.set(ylabel=words, ylim=(-3, 103))
        ax.grid(color=_GRID)
    lower.set_xlabel(f"training labels {damage} (%)")
    figure.suptitle(for_figure(title), fontsize=11)
    if parameter:
        entries = upper.get_legend_handles_labels()
        legend = figure.legend(
            *entries, loc="outside lower center", frameon=False, ncols=columns, fontsize=9
        )
        legend.set_title(for_figure(parameter, _MAX_PARAMETER))
    return figure


def trade_off_figure(summary: pd.DataFrame, damage: str = "removed") -> Figure:
    """Set-accuracy against completeness, all methods; a row per data set, a column per level.

    Bands are one standard deviation wide on either side. A line has a gap where neighbouring points
    are too far apart to be compared.
    """
    datasets = list(dict.fromkeys(summary["dataset"]))
    levels = sorted(summary["missing"].unique())
    shown = [levels[i] for i in sorted({0, len(levels) // 2, len(levels) - 1})]
    curves = curves_of(summary)
    columns = 2 if len(shown) > 1 else 1  # names may be longer than a single panel is wide
    legend_height = 0.25 * math.ceil(len(curves) / columns)
    size = (1.2 + 3.0 * len(shown), 0.9 + legend_height + 2.5 * len(datasets))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(datasets), len(shown), sharex=True, sharey=True, squeeze=False)
    for row, dataset in enumerate(datasets):
        for column, level in enumerate(shown):
            part = summary[(summary["dataset"] == dataset) & (summary["missing"] == level)]
            _draw_trade_off(axes[row, column], part, curves)
            share = f", {100 * level:.3g} % {damage}" if levels != [0] else ""
            title = for_figure(dataset, _MAX_TITLE - len(share)) + share
            axes[row, column].set_title(title, fontsize=10)
            axes[row, column].set(xlim=(-3, 103), ylim=(-3, 103))
            axes[row, column].label_outer()
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, frameon=False)
    return figure


def trade_off_panel(part: pd.DataFrame, curves: list[tuple[str, str]]) -> Figure:
    """Return the same for one data set and level, on its own scale."""
    figure = Figure(figsize=(4.2, 3.1))
    ax = figure.add_axes((0.13, 0.15, 0.85, 0.82))
    _draw_trade_off(ax, part, curves)
    return figure


def curves_of(summary: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the methods with their strategies, in the order of their looks."""
    return list(dict.fromkeys(zip(summary["method"], summary["strategy"], strict=True)))


def _draw_trade_off(ax: Any, part: pd.DataFrame, curves: list[tuple[str, str]]) -> None:
    for index, (method, strategy) in enumerate(curves):
        curve = _with_gaps(part[(part["method"] == method) & (part["strategy"] == strategy)])
        look, name = method_look(index), for_figure(curve_name(method, strategy))
        answered, right = 100 * curve["completeness"], 100 * curve["set_accuracy"]
        spread = 100 * curve["set_accuracy_spread"]
        low, high = (right - spread).clip(lower=0), (right + spread).clip(upper=100)
        ax.plot(answered, right, markersize=4, label=name, **look._asdict())
        ax.fill_between(answered, low, high, color=look.color, alpha=0.15, linewidth=0)
    ax.set(xlabel="completeness (%)", ylabel="set-accuracy (%)")
    ax.grid(color=_GRID)
    ax.set_axisbelow(True)


def _with_gaps(curve: pd.DataFrame) -> pd.DataFrame:
    """Return the points by completeness, and none between two too far apart for a line."""
    along = curve.sort_values("completeness", kind="stable")
    holes = along[along["completeness"].diff() > WIDEST_GAP].assign(set_accuracy=np.nan)
    return pd.concat([holes, along]).sort_values("completeness", kind="stable")


def rendered(figure: Figure, kind: str) -> bytes:
    """Return a figure as PNG or SVG: the same bytes for the same picture, text as text."""
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "credalchain", "svg.fonttype": "none"}):
        metadata = {"Date": None} if kind == "svg" else {"Software": None}
        figure.savefig(buffer, format=kind, dpi=140, metadata=metadata)
    return buffer.getvalue()


def inline_svg(figure: Figure, label: str) -> str:
    """Return a figure for the page: in its colours and font, without a style of its own.

    ``label`` says what it shows to those who cannot see it; empty: nothing worth saying.
    """
    for patch in (figure.patch, *(ax.patch for ax in figure.axes)):
        patch.set_visible(False)
    svg = rendered(figure, "svg").decode()
    (size,) = re.findall(r'viewBox="[^"]+"', svg)
    drawing = svg[svg.index("<g id=") : svg.rindex("</svg>")]
    drawing = re.sub(r"<defs>\s*<clipPath.*?</defs>", "", drawing, flags=re.DOTALL)
    drawing = re.sub(r'(?<=<g) id="[^"]*"| clip-path="[^"]*"', "", drawing)
    drawing = re.sub(r' style="([^"]*)"', _as_attributes, drawing).replace("xlink:href", "href")
    about = f'role="img" aria-label="{escape(visible(label))}"' if label else 'aria-hidden="true"'
    return f'<svg class="{"chart" if label else "key"}" {size} {about}>{drawing}</svg>'


def _as_attributes(style: "re.Match[str]") -> str:
    """Return attributes for a style, which the page's policy forbids; the font is the page's."""
    attributes = []
    for entry in style[1].split("; "):
        name, _, value = entry.partition(": ")
        if name in ("font", "font-size"):
            name, value = "font-size", value[: value.index("px")].rpartition(" ")[2]
        if name != "font-family":
            attributes.append(f' {name}="{_VARIABLES.get(value, value)}"')
    return "".join(attributes)
