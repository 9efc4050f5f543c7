"""Pieces of HTML that the sections of the page share; everything is escaped here."""

import base64
import re
from html import escape

import pandas as pd

from credalchain._utils.text import to_csv, visible

_NAMES = {"dataset", "method", "strategy", "domain", "first", "second", "parameter", "package"}
_NUMBER = re.compile(r"(< )?-?[\d.]+(e[+-]\d+)?( ± [\d.]+)?( %)?")


def text(words: str) -> str:
    """Text for the page, inside quotes as well."""
    return escape(visible(words))


def scroll(label: str) -> str:
    """The start of a box in which a table scrolls by itself, by keyboard too."""
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{text(label)}">'


def table(frame: pd.DataFrame, label: str) -> str:
    """A table in a box of its own, without columns that are empty."""
    cells = frame.map(_cell)
    cells = cells.loc[:, (cells != "").any()]
    names = [str(name) for name in cells]
    kinds = [_kind(name, cells[name]) for name in names]
    columns = zip(names, kinds, strict=True)
    heads = [f'<th scope="col"{kind}>{text(name)}</th>' for name, kind in columns]
    rows = []
    for row in cells.to_numpy():
        columns = zip(row, kinds, strict=True)
        rows.append("".join(f"<td{kind}>{text(cell)}</td>" for cell, kind in columns))
    body = "".join(f"<tr>{row}</tr>\n" for row in rows)
    return (
        f'{scroll(label)}<table class="sortable"><thead><tr>{"".join(heads)}</tr></thead>\n'
        f"<tbody>{body}</tbody></table></div>"
    )


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "" if value != value else f"{value:.6g}"
    return str(value)


def _kind(name: str, cells: "pd.Series[str]") -> str:
    if name in _NAMES:
        return ' class="name"'
    is_number = all(_NUMBER.fullmatch(cell) for cell in cells if cell)
    return ' class="number"' if is_number else ""


def download(name: str, frame: pd.DataFrame, words: str) -> str:
    """A link to a table as CSV: the same bytes as in the file beside the page."""
    data = base64.b64encode(to_csv(frame).encode()).decode()
    href = f"data:text/csv;charset=utf-8;base64,{data}"
    return f'<a download="{text(name)}.csv" href="{href}">{text(words)}</a>'
