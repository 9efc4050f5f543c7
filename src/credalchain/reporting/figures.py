"""The figures of a study, from its summary."""

import math
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from credalchain.reporting.findings import WIDEST_GAP, curve_name
from credalchain.text import for_figure

_PANELS = (("set_accuracy", "set-accuracy (%)"), ("completeness", "completeness (%)"))
_MAX_TITLE = 38  # characters above a panel
_MAX_PARAMETER = 30  # characters of a parameter's name
# Okabe and Ito's colours with different markers and lines, for methods
_LOOKS = [
    ("#0072B2", "o", "-"),
    ("#D55E00", "s", "--"),
    ("#009E73", "^", "-."),
    ("#CC79A7", "D", ":"),
    ("#E69F00", "v", "-"),
    ("#56B4E9", "P", "--"),
    ("#000000", "X", "-."),
]


def missing_figure(
    summary: pd.DataFrame, title: str, damage: str = "removed", parameter: str = "s"
) -> Figure:
    """Set-accuracy above, completeness below, against the share of labels damaged.

    One curve for each value of the caution parameter, from dark (small) to light (large).
    """
    figure = Figure(figsize=(6.2, 6.8), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    values = sorted(summary["s"].unique())
    colours = matplotlib.colormaps["viridis"](np.linspace(0, 0.9, len(values)))
    for s, colour in zip(values, colours, strict=True):
        curve = summary[summary["s"] == s].sort_values("missing")
        for ax, (measure, _) in zip((upper, lower), _PANELS, strict=True):
            x, y = 100 * curve["missing"], 100 * curve[measure]
            ax.plot(x, y, marker="o", markersize=4, color=colour, label=f"{s:g}")
    for ax, (_, words) in zip((upper, lower), _PANELS, strict=True):
        ax.set(ylabel=words, ylim=(-3, 103))
        ax.grid(alpha=0.25)
    lower.set_xlabel(f"training labels {damage} (%)")
    figure.suptitle(for_figure(title))
    if parameter:
        entries = upper.get_legend_handles_labels()
        legend = figure.legend(*entries, loc="outside right center", frameon=False)
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
    curves = list(dict.fromkeys(zip(summary["method"], summary["strategy"], strict=True)))
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
    for ax in axes[-1]:
        ax.set_xlabel("completeness (%)")
    for ax in axes[:, 0]:
        ax.set_ylabel("set-accuracy (%)")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, frameon=False)
    return figure


def _draw_trade_off(ax: Any, part: pd.DataFrame, curves: list[tuple[str, str]]) -> None:
    for (method, strategy), look in zip(curves, _LOOKS * len(curves), strict=False):
        curve = _with_gaps(part[(part["method"] == method) & (part["strategy"] == strategy)])
        colour, marker, line = look
        ax.plot(
            100 * curve["completeness"],
            100 * curve["set_accuracy"],
            color=colour,
            marker=marker,
            linestyle=line,
            markersize=4,
            label=for_figure(curve_name(method, strategy)),
        )
        low, high = (
            curve["set_accuracy"] + side * curve["set_accuracy_spread"] for side in (-1, 1)
        )
        ax.fill_between(
            100 * curve["completeness"], 100 * low, 100 * high, color=colour, alpha=0.15
        )
    ax.set(xlim=(-3, 103), ylim=(-3, 103))
    ax.grid(alpha=0.25)


def _with_gaps(curve: pd.DataFrame) -> pd.DataFrame:
    """Return the points by completeness, and none between two too far apart for a line."""
    along = curve.sort_values("completeness", kind="stable")
    holes = along[along["completeness"].diff() > WIDEST_GAP].assign(set_accuracy=np.nan)
    return pd.concat([holes, along]).sort_values("completeness", kind="stable")
