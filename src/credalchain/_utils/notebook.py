"""Small pieces of HTML for notebooks: everything escaped, in the colours of the notebook's theme.

Colours are mixed with that of the text around, so they are dark on a light page and light on a
dark one, in JupyterLab, VS Code, Colab and a browser alike; browsers that cannot mix colours take
the plain ones.
"""

from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources

from credalchain._utils.text import visible

_STYLE = resources.files("credalchain._utils").joinpath("notebook.css").read_text("utf-8")
_MAX_CHARACTERS = 24  # of a name; all of it stands in the title
_KINDS = {1: "yes", 0: "no", -1: "open"}
_WORDS = {1: "yes", 0: "no", -1: "*"}


def page(*parts: str) -> str:
    """Return pieces together, with their style."""
    return f'<div class="credalchain"><style>{_STYLE}</style>{"".join(parts)}</div>'


def words(text: str, kind: str = "quiet") -> str:
    """Return a paragraph."""
    return f'<p class="{kind}">{escape(text)}</p>'


def answer(value: int) -> str:
    """Return yes, no or * in its colour."""
    return f'<span class="{_KINDS[value]}">{_WORDS[value]}</span>'


def interval(value: int, lower: float, upper: float) -> str:
    """Draw a bar from the lower to the upper probability, against one half."""
    x, width = 100 * lower, max(2.0, 100 * (upper - lower))
    title = escape(f"{lower:.3f} to {upper:.3f}")
    return (
        f'<svg viewBox="0 0 100 12" preserveAspectRatio="none" role="img"><title>{title}</title>'
        '<line x1="0" x2="100" y1="6" y2="6"/><line class="half" x1="50" x2="50" y1="0" y2="12"/>'
        f'<rect class="bar-{_KINDS[value]}" x="{min(x, 100 - width):.1f}" y="3" '
        f'width="{width:.1f}" height="6"/></svg>'
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; cells of ``rows`` are HTML already, ``head`` is text."""
    names = "".join(f"<th>{name_of(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>"


def text(value: object) -> str:
    """Return text, escaped."""
    return escape(str(value))


def name_of(words: object) -> str:
    """Return a name of a label or row; of a long one the beginning, all of it on hovering."""
    shown = visible(str(words))
    if len(shown) <= _MAX_CHARACTERS:
        return escape(shown)
    return f'<span title="{escape(shown)}">{escape(shown[: _MAX_CHARACTERS - 1])}…</span>'
