"""The figures on the page: which curves each chart shows, and their legends."""

import math
from collections.abc import Iterator, Sequence

import pandas as pd

from credalchain.experiments.summary import groups
from credalchain.reporting.caution import CautionParameter, Cautions
from credalchain.reporting.charts import Curve, Look, Point, chart, key, method_look, ramp_look
from credalchain.reporting.findings import curve_name
from credalchain.reporting.markup import text
from credalchain.reporting.sentences import level_words

_WIDE = {1: (1100, 430), 2: (720, 400)}  # panels in a row, and the size of each on a wide screen
_MEASURES = {"set_accuracy": "Set-accuracy", "completeness": "Completeness"}

Panel = tuple[str, str, list[Curve]]  # a caption, what is shown in words, and the curves


def trade_off_panels(
    summary: pd.DataFrame, caution_parameters: Cautions, damage: str
) -> Iterator[str]:
    """Set-accuracy against completeness: a legend, then a chart per data set and level."""
    pairs = list(dict.fromkeys(zip(summary["method"], summary["strategy"], strict=True)))
    looks = {pair: method_look(index) for index, pair in enumerate(pairs)}
    yield _legend([(curve_name(*pair), look) for pair, look in looks.items()])
    figures: dict[str, list[Panel]] = {}
    for (dataset, level), part in groups(summary, ["dataset", "missing"]):
        curves = [
            Curve(
                looks[pair],
                _trade_off_points(curve_name(*pair), curve, caution_parameters[pair[0]]),
            )
            for pair, curve in groups(part, ["method", "strategy"])
        ]
        title = level_words(level, damage) if damage else dataset
        label = f"Set-accuracy against completeness: {dataset}" + (f", {title}" if damage else "")
        figures.setdefault(dataset, []).append((title, label, curves))
    axes = ("completeness (%)", "set-accuracy (%)")
    if not damage:
        yield _grid([panel for panels in figures.values() for panel in panels], *axes)
        return
    for dataset, panels in figures.items():
        yield f"<h3>{text(dataset)}</h3>"
        yield _grid(panels, *axes)


def level_panels(summary: pd.DataFrame, caution_parameters: Cautions, damage: str) -> Iterator[str]:
    """Measures against the share of labels damaged, a curve per value of caution."""
    for (dataset, method, strategy), part in groups(summary, ["dataset", "method", "strategy"]):
        title = f"{dataset}: {curve_name(method, strategy)}"
        yield f"<h3>{text(title)}</h3>"
        values = sorted(part["s"].unique())
        looks = {value: ramp_look(index, len(values)) for index, value in enumerate(values)}
        caution = caution_parameters[method]
        if caution is not None:
            names = [(_value(caution, value), look) for value, look in looks.items()]
            yield _legend(names)
        figures = []
        for measure, words in _MEASURES.items():
            curves = [
                Curve(looks[value], _level_points(curve, measure, caution, damage))
                for value, curve in part.groupby("s")
            ]
            figures.append((words, f"{words} by the share of labels {damage}: {title}", curves))
        yield _grid(figures, f"training labels {damage} (%)", "percent")


def _trade_off_points(
    name: str, curve: pd.DataFrame, caution: CautionParameter | None
) -> list[Point]:
    along = curve.sort_values("s")
    columns = ("s", "completeness", "set_accuracy", "set_accuracy_spread")
    return [
        Point(
            100 * answered,
            100 * right,
            100 * spread,
            f"{name}{_at(caution, s)}: {100 * answered:.1f} % answered, "
            f"{_with_spread(right, spread)} % without a wrong answer",
        )
        for s, answered, right, spread in zip(*(along[name] for name in columns), strict=True)
    ]


def _level_points(
    curve: pd.DataFrame, measure: str, caution: CautionParameter | None, damage: str
) -> list[Point]:
    along = curve.sort_values("missing")
    rows = zip(
        along["s"], along["missing"], along[measure], along[f"{measure}_spread"], strict=True
    )
    return [
        Point(
            100 * level,
            100 * value,
            100 * spread,
            f"{level_words(level, damage)}{_at(caution, s)}: {_with_spread(value, spread)} %",
        )
        for s, level, value, spread in rows
    ]


def _with_spread(value: float, spread: float) -> str:
    return f"{100 * value:.1f}" + ("" if math.isnan(spread) else f" ± {100 * spread:.1f}")


def _at(caution: CautionParameter | None, value: float) -> str:
    return "" if caution is None else f", {_value(caution, value)}"


def _value(caution: CautionParameter, value: float) -> str:
    return f"{caution.name} = {value:.6g}"


def _legend(entries: Sequence[tuple[str, Look]]) -> str:
    items = [f"<li>{key(look)}<span>{text(name)}</span></li>" for name, look in entries]
    return f'<ul class="legend">{"".join(items)}</ul>'


def _grid(panels: Sequence[Panel], x_words: str, y_words: str) -> str:
    """Charts side by side.

    One or two are drawn a second time for wide screens, where they have room; the style shows one
    of both. More are in rows of three or four, whichever leaves fewer places empty.
    """
    n = len(panels)
    wide = _WIDE.get(n)
    rows = "few" if wide else "by3" if -n % 3 < -n % 4 or n == 3 else "by4"
    parts = [f'<div class="panels {rows}">']
    for title, label, curves in panels:
        charts = chart(curves, label, x_words, y_words)
        if wide:
            charts += chart(curves, label, x_words, y_words, wide, "chart wide")
        parts.append(f"<figure><figcaption>{text(title)}</figcaption>{charts}</figure>")
    return "".join([*parts, "</div>"])
