"""Charts of a study as SVG, for the page and for a file, and as PDF for papers."""

import io
import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from credalchain._utils.text import for_figure, visible
from credalchain.studies.findings import WIDEST_GAP

if TYPE_CHECKING:
    from matplotlib.figure import Figure  # slow to import

COLUMN_WIDTH = 3.4  # inches, of a paper with two columns
_IN_PAPERS: Any = {
    **dict.fromkeys(("font.size", "axes.labelsize", "legend.fontsize"), 8),
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize"), 8),
    **{"lines.linewidth": 1, "axes.linewidth": 0.6, "grid.linewidth": 0.4, "pdf.fonttype": 42},
}
_MAX_NAME_OF_TWO = 24  # characters, of names side by side
_MAX_NAME = 60  # characters
_COLOURS = ("#0072b2", "#c24e00", "#00805a", "#a8508a", "#8a6a00", "#2b8fc4", "#33393f")
_RAMP = ("#3b7dd8", "#9a5fd0", "#d0508f", "#c8641a")  # seen on light and dark
_MARKERS, _LINES = "os^Dv|_", ("-", "--", ":", "-.")
# what colours.css has other values for in the dark
_VARIABLES = {colour: f"var(--k{i})" for i, colour in enumerate(_COLOURS)}
_VARIABLES |= {"#d9d6d0": "var(--line)", "#000000": "var(--quiet)"}


class Chart(NamedTuple):
    """A drawing in the colours of colours.css, with its size."""

    width: float
    height: float
    content: str

    def svg(self, label: str = "", attributes: str = "") -> str:
        """Return an element; ``label`` says what it shows to those who cannot see it."""
        about = f'class="chart" role="img" aria-label="{escape(visible(label))}"'
        about = about if label else 'class="key" aria-hidden="true"'
        size = f'viewBox="0 0 {self.width:g} {self.height:g}"'
        return f"<svg {about} {size}{attributes}>{self.content}</svg>"

    def file(self, label: str) -> bytes:
        """Return the content of a file, for light and dark backgrounds."""
        size = f'width="{self.width:g}" height="{self.height:g}"'
        svg = self.svg(label, f' xmlns="http://www.w3.org/2000/svg" {size}')
        return svg.replace(">", f"><style>{asset('colours.css')}</style>", 1).encode()


def asset(name: str) -> str:
    """Return the text of a file of the page."""
    return resources.files("credalchain.studies").joinpath("assets", name).read_text("utf-8")


def method_look(index: int) -> dict[str, str]:
    """Return how a method is drawn: colours repeat after seven, with other lines and markers."""
    n = len(_COLOURS)
    other = index + index // n
    marker, line = _MARKERS[other % n], _LINES[other % len(_LINES)]
    return {"color": _COLOURS[index % n], "marker": marker, "linestyle": line}


def key_chart(index: int) -> Chart:
    """Return a piece of a method's curve, for a legend."""
    figure, ax = _axes((0.5, 0.2), (0, 0, 1, 1))
    ax.set_axis_off()
    ax.plot([0, 1, 2], [0, 0, 0], markevery=[1], markersize=5, **method_look(index))
    return _drawn(figure)


class Plot(NamedTuple):
    """Curves on one pair of axes, whatever draws them.

    ``lines`` has the curves by their place among the methods shown, which says how they look: a
    column each of x, y, and the lower and upper end of a band; NaN where a curve has a gap.
    """

    xlabel: str
    ylabel: str
    lines: dict[int, pd.DataFrame]

    def draw(self, ax: Any, markersize: float) -> None:
        """Draw the curves, with bands, on matplotlib's axes."""
        for place, line in self.lines.items():
            look = method_look(place)
            ax.plot(line["x"], line["y"], markersize=markersize, **look)
            band = {"color": look["color"], "alpha": 0.15, "linewidth": 0}
            ax.fill_between(line["x"], line["low"], line["high"], **band)
        ax.set(xlabel=self.xlabel, ylabel=self.ylabel)
        ax.grid(color="#d9d6d0")
        ax.set_axisbelow(True)

    def chart(self) -> Chart:
        """Return the curves for the page."""
        figure, ax = _axes((4.2, 3.1), (0.15, 0.15, 0.83, 0.82))
        self.draw(ax, 4)
        return _drawn(figure)

    def pdf(self, names: Sequence[str]) -> bytes:
        """Return the curves for a column of a paper, with a legend below."""
        import matplotlib
        from matplotlib.figure import Figure

        columns = legend_columns(names)
        height = 2.3 + 0.16 * -(-len(names) // columns)
        buffer = io.BytesIO()
        with matplotlib.rc_context(_IN_PAPERS):
            figure: Any = Figure(figsize=(COLUMN_WIDTH, height), layout="constrained")
            ax = figure.add_subplot()
            self.draw(ax, 3)
            shown = [for_figure(name) for name in names]
            how: dict[str, Any] = {"loc": "outside lower center", "frameon": False}
            figure.legend(
                ax.get_lines(), shown, ncols=columns, borderpad=0, labelspacing=0.2, **how
            )
            figure.savefig(buffer, format="pdf", metadata={"CreationDate": None})
        return buffer.getvalue()


def legend_columns(names: Sequence[str]) -> int:
    """Return how many names stand side by side in the legend of a column of a paper."""
    return 1 if max(map(len, names)) > _MAX_NAME_OF_TWO else 2


def trade_off_plot(part: pd.DataFrame, curves: Sequence[tuple[str, str]]) -> Plot:
    """Return set-accuracy against completeness of one data set and level.

    Bands are one standard deviation wide on either side. A line has a gap where neighbouring points
    are too far apart to be compared.
    """
    lines = _lines(part, curves, "set_accuracy", lambda answered: 100 * answered)
    return Plot("completeness (%)", "set-accuracy (%)", lines)


def errors_plot(part: pd.DataFrame, curves: Sequence[tuple[str, str]]) -> Plot:
    """Return the share of wrong answers against completeness."""
    lines = _lines(part, curves, "selective_error", lambda answered: 100 * answered)
    return Plot("completeness (%)", "wrong answers (%)", lines)


def positives_plot(part: pd.DataFrame, curves: Sequence[tuple[str, str]], n_labels: float) -> Plot:
    """Return the share of the true labels answered yes, against labels left open in a row."""
    lines = _lines(part, curves, "recall_micro", lambda answered: n_labels * (1 - answered))
    return Plot("open labels per row", "true labels answered yes (%)", lines)


def _lines(
    part: pd.DataFrame, curves: Sequence[tuple[str, str]], measure: str, x: Callable[[Any], Any]
) -> dict[int, pd.DataFrame]:
    lines = {}
    for place, (method, strategy) in enumerate(curves):
        own = part[(part["method"] == method) & (part["strategy"] == strategy)]
        curve = with_gaps(own, measure)
        y, spread = 100 * curve[measure], 100 * curve[f"{measure}_spread"]
        low, high = (y - spread).clip(lower=0), (y + spread).clip(upper=100)
        lines[place] = pd.DataFrame(
            {"x": x(curve["completeness"]), "y": y, "low": low, "high": high}
        )
    return lines


def level_chart(part: pd.DataFrame, parameter: str, damage: str) -> Chart:
    """Return set-accuracy, and below it completeness, against the share of corrupted labels.

    One curve for each value of the caution parameter, from blue (small) to orange (large).
    """
    from matplotlib.colors import LinearSegmentedColormap

    figure, upper = _axes((4.2, 4.8), (0.13, 0.6, 0.85, 0.38))
    axes = {"set_accuracy": upper, "completeness": figure.add_axes((0.13, 0.2, 0.85, 0.38))}
    values = sorted(part["s"].unique())
    ramp = LinearSegmentedColormap.from_list("caution", _RAMP)
    for value, colour in zip(values, ramp(np.linspace(0, 1, len(values))), strict=True):
        curve = part[part["s"] == value].sort_values("missing")
        for measure, ax in axes.items():
            points = 100 * curve["missing"], 100 * curve[measure]
            ax.plot(*points, "o-", markersize=3, color=colour, label=f"{value:g}")
    for measure, ax in axes.items():
        ax.set(ylabel=f"{measure.replace('_', '-')} (%)", ylim=(-3, 103))
        ax.grid(color="#d9d6d0")
    upper.tick_params(labelbottom=False)
    ax.set_xlabel(f"training labels {damage} (%)")
    if parameter:
        place: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.45, -0.2), "ncols": 6}
        look: dict[str, Any] = {"frameon": False, "fontsize": 8, "handlelength": 1}
        ax.legend(title=visible(parameter)[:_MAX_NAME], **place, **look)
    return _drawn(figure)


def with_gaps(curve: pd.DataFrame, measure: str = "set_accuracy") -> pd.DataFrame:
    """Return the points by completeness, and none between two too far apart for a line."""
    along = curve.sort_values("completeness", kind="stable")
    holes = along[along["completeness"].diff() > WIDEST_GAP].assign(**{measure: np.nan})
    return pd.concat([holes, along]).sort_values("completeness", kind="stable")


def sheet(panels: Mapping[str, Chart], legend: Mapping[str, Chart]) -> Chart:
    """Return charts by their titles, three in a row, below the keys of a legend."""
    pieces, top, columns = [], 18 * len(legend) + 8, min(3, len(panels))
    for row, (name, key) in enumerate(legend.items()):
        pieces += _placed(8, 18 * row, key, 44, name)
    width, height, _ = next(iter(panels.values()))
    for place, (title, chart) in enumerate(panels.items()):
        x, y = place % columns * (width + 8), top + place // columns * (height + 20)
        pieces += _placed(x, y, chart, 38, title)
    n_rows = -(-len(panels) // columns)
    return Chart(columns * (width + 8), top + n_rows * (height + 20), "".join(pieces))


def _placed(x: float, y: float, chart: Chart, indent: float, words: str) -> list[str]:
    """Return a chart and words beside a key, or above a panel."""
    shown = visible(words)
    shown = shown if len(shown) <= _MAX_NAME else f"{shown[: _MAX_NAME - 1]}…"
    down = y + (18 if chart.height > 18 else 2)
    return [
        f'<g transform="translate({x:g},{down:g})">{chart.content}</g>',
        f'<text x="{x + indent:g}" y="{y + 14:g}" font-size="11">{escape(shown)}</text>',
    ]


def _axes(size: tuple[float, float], place: tuple[float, ...]) -> tuple["Figure", Any]:
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=size)
    return figure, figure.add_axes(place)


def _drawn(figure: "Figure") -> Chart:
    """Return a figure without a background and style of its own; text stays text."""
    import matplotlib

    for patch in (figure.patch, *(ax.patch for ax in figure.axes)):
        patch.set_visible(False)
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "credalchain", "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    svg = buffer.getvalue().decode()
    content = svg[svg.index("<g id=") : svg.rindex("</svg>")]
    content = re.sub(r"<defs>\s*<clipPath.*?</defs>", "", content, flags=re.DOTALL)
    content = re.sub(r'(?<=<g) id="[^"]*"| clip-path="[^"]*"', "", content)
    content = re.sub(r' style="([^"]*)"', _as_attributes, content).replace("xlink:href", "href")
    width, height = (72 * figure.get_size_inches()).tolist()
    return Chart(width, height, content)


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
