"""Figures and tables as source for LaTeX documents: pgfplots and booktabs."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from credalchain._utils.text import visible
from credalchain.studies.charts import COLUMN_WIDTH, Plot, legend_columns, method_look

_SPECIAL = {
    **{c: rf"\{c}" for c in "{}$&#_%"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
}
_SPECIAL |= {"^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "±": r"$\pm$"}
_SPECIAL |= {"|": r"\textbar{}", "…": r"\ldots{}"}
NUMBER = re.compile(  # "12.3 ± 0.4", "< 0.001", "-1.2 ± 0.3 (2 of 6)", "50 %"
    r"(< )?-?[\d.]+(e[+-]\d+)?( ± [\d.]+)?( %)?( \(\d+ of \d+\))?"
)
_MARKS = dict(
    zip("os^Dv|_", ("*", "square*", "triangle*", "diamond*", "triangle*", "|", "-"), strict=True)
)
_LINES = {"-": "solid", "--": "dashed", ":": "dotted", "-.": "dashdotted"}


def latex_text(words: str) -> str:
    r"""Return text that LaTeX sets as it is.

    Examples
    --------
    >>> print(latex_text("50 % of a_b"))
    50 \% of a\_b
    """
    return "".join(_SPECIAL.get(c, c) for c in visible(words))


def booktabs(frame: pd.DataFrame) -> str:
    """Return a data frame as a LaTeX table that needs the package booktabs.

    Columns of numbers stand right; a minus is one. What is empty in all rows is left out, and so is
    the strategy where no method has one.
    """
    cells = frame.map(lambda cell: f"{cell:.6g}" if isinstance(cell, float) else str(cell))
    cells = cells.replace("nan", "")
    is_told = {name: set(cells[name]) - {""} and set(cells[name]) != {"none"} for name in cells}
    cells = cells[[name for name, told in is_told.items() if told]]
    is_number = {name: all(NUMBER.fullmatch(c) for c in cells[name] if c) for name in cells}
    rows = [
        [_number(cell) if is_number[name] else latex_text(cell) for name, cell in row.items()]
        for row in cells.to_dict("records")
    ]
    heads = [latex_text(str(name).replace("_", " ")) for name in cells]
    lines = [" & ".join(row) + r" \\" for row in (heads, *rows)]
    return "\n".join([
        r"% needs \usepackage{booktabs}",
        rf"\begin{{tabular}}{{{''.join('r' if n else 'l' for n in is_number.values())}}}",
        r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule", r"\end{tabular}", "",
    ])  # fmt: skip


def _number(cell: str) -> str:
    return latex_text(cell).replace("-", "$-$", 1) if cell.startswith("-") else latex_text(cell)


def pgfplots(plot: Plot, names: Sequence[str]) -> str:
    """Return curves as a picture of pgfplots, as wide as a column, with a legend below."""
    indices = range(len(names))
    colours = [method_look(i)["color"].removeprefix("#").upper() for i in indices]
    return "\n".join([
        r"% needs \usepackage{pgfplots} and \pgfplotsset{compat=1.16}; made for \input",
        r"\begin{tikzpicture}",
        *(rf"\definecolor{{method{i}}}{{HTML}}{{{c}}}" for i, c in enumerate(colours)),
        r"\begin{axis}[",
        rf"  width={COLUMN_WIDTH}in, height=2.5in, font=\footnotesize, grid=major,",
        r"  grid style={gray!30}, unbounded coords=jump, mark size=1.2pt, line width=0.4pt,",
        rf"  xlabel={{{latex_text(plot.xlabel)}}}, ylabel={{{latex_text(plot.ylabel)}}},",
        rf"  legend columns={legend_columns(names)}, legend cell align=left,",
        r"  legend style={at={(0.5,-0.22)}, anchor=north, draw=none, font=\footnotesize,",
        r"    /tikz/every even column/.append style={column sep=0.5em}},",
        "]",
        *(text for place in plot.lines for text in _curve(plot.lines[place], place, names[place])),
        r"\end{axis}",
        r"\end{tikzpicture}",
        "",
    ])  # fmt: skip


def _curve(line: pd.DataFrame, place: int, name: str) -> Iterator[str]:
    """Yield a band for each piece of a curve without a gap, and the curve."""
    look, colour = method_look(place), f"method{place}"
    for _, piece in line.groupby(line["y"].isna().cumsum()):
        known = piece.dropna()
        if len(known) > 1:
            xs = [*known["x"], *known["x"][::-1]]
            ends = _coordinates(xs, [*known["high"], *known["low"][::-1]])
            fill = f"draw=none, fill={colour}, fill opacity=0.15, mark=none, forget plot"
            yield rf"\addplot[{fill}] coordinates {{{ends}}} -- cycle;"
    turned = ", rotate=180" if look["marker"] == "v" else ""
    style = (
        f"{colour}, line width=0.8pt, {_LINES[look['linestyle']]}, mark={_MARKS[look['marker']]}"
    )
    points = _coordinates(line["x"], line["y"])
    yield rf"\addplot[{style}, mark options={{solid{turned}}}] coordinates {{{points}}};"
    yield rf"\addlegendentry{{{latex_text(name)}}}"


def _coordinates(xs: Any, ys: Any) -> str:
    return " ".join(f"({x:.6g},{y:.6g})" for x, y in zip(xs, ys, strict=True))
