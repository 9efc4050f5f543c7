"""Small pieces of HTML for notebooks: light and dark, everything escaped."""

from collections.abc import Iterable, Sequence
from html import escape

_STYLE = (
    "<style>.credalchain{font:13px/1.4 system-ui,sans-serif;--yes:#1f5f8b;--no:#a8500f;"
    "--quiet:#5a646c;--line:#cfcac2}"
    "@media(prefers-color-scheme:dark){.credalchain{--yes:#7cc0ee;--no:#f0a566;--quiet:#a5adb5;"
    "--line:#4a545c}}"
    ".credalchain table{border-collapse:collapse}"
    ".credalchain th{font-weight:500;color:var(--quiet);text-align:left}"
    ".credalchain td,.credalchain th{padding:2px 8px 2px 0;text-align:left;vertical-align:middle;"
    "border-bottom:1px solid var(--line)}"
    ".credalchain .yes{color:var(--yes);font-weight:700}.credalchain .no{color:var(--no);"
    "font-weight:700}.credalchain .open,.credalchain .quiet{color:var(--quiet)}"
    ".credalchain svg{width:72px;height:12px;display:block}"
    ".credalchain .bar-yes{fill:var(--yes)}.credalchain .bar-no{fill:var(--no)}"
    ".credalchain .bar-open{fill:var(--quiet)}.credalchain line{stroke:var(--line)}</style>"
)
_KINDS = {1: "yes", 0: "no", -1: "open"}
_WORDS = {1: "yes", 0: "no", -1: "*"}


def page(*parts: str) -> str:
    """Pieces together, with their style."""
    return f'<div class="credalchain">{_STYLE}{"".join(parts)}</div>'


def words(text: str, kind: str = "quiet") -> str:
    """A paragraph."""
    return f'<p class="{kind}">{escape(text)}</p>'


def answer(value: int) -> str:
    """yes, no or * in its colour."""
    return f'<span class="{_KINDS[value]}">{_WORDS[value]}</span>'


def interval(value: int, lower: float, upper: float) -> str:
    """A bar from the lower to the upper probability, against one half."""
    x, width = 100 * lower, max(2.0, 100 * (upper - lower))
    title = escape(f"{lower:.3f} to {upper:.3f}")
    return (
        f'<svg viewBox="0 0 100 12" preserveAspectRatio="none" role="img"><title>{title}</title>'
        '<line x1="0" x2="100" y1="6" y2="6"/><line x1="50" x2="50" y1="0" y2="12"/>'
        f'<rect class="bar-{_KINDS[value]}" x="{min(x, 100 - width):.1f}" y="3" '
        f'width="{width:.1f}" height="6"/></svg>'
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells of ``rows`` are HTML already, ``head`` is text."""
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>"


def text(value: object) -> str:
    """Text, escaped."""
    return escape(str(value))
