"""Where words go: results to stdout, notes and progress to stderr."""

import sys

from rich.console import Console

from credalchain.text import visible

_state = {"quiet": False}


def set_quiet(quiet: bool) -> None:
    """Whether notes and progress are left out."""
    _state["quiet"] = quiet


def is_quiet() -> bool:
    """Whether --quiet was given."""
    return _state["quiet"]


def stdout() -> Console:
    """For results, without markup: plain and wide where stdout is not a terminal."""
    width = None if sys.stdout.isatty() else 110
    return Console(soft_wrap=False, width=width, highlight=False, emoji=False, markup=False)


def note(message: str) -> None:
    """One line on stderr, unless --quiet."""
    if not _state["quiet"] and sys.stderr is not None:
        print(visible(message), file=sys.stderr)
