"""Output: results to stdout, notes and progress to stderr."""

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from credalchain._utils.files import atomic_write, check_folder
from credalchain._utils.text import visible

_state: dict[str, Any] = {"quiet": False, "trusted": ()}


def configure(*, quiet: bool = False, trusted: Sequence[str] = ()) -> None:
    """Set whether notes and progress are left out, and the further types of model files."""
    _state.update(quiet=quiet, trusted=trusted)


def read_model(path: str) -> Any:
    """Load a model file, with the types that --trust names."""
    from credalchain.model_files import load_model  # slow to import

    return load_model(path, trusted=_state["trusted"])


def check_picture(picture: str) -> Path:
    """Return where a picture goes; raise an error before the work if it cannot be drawn there."""
    path = Path(picture)
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ValueError(f"--picture {picture}: the name must end in .png, .svg or .pdf.")
    check_folder(path)
    return path


def save_picture(figure: Any, picture: str) -> None:
    """Write a figure, whole or not at all."""
    path = check_picture(picture)
    with atomic_write(path) as file:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=130)
    note(f"picture -> {picture}")


def stdout() -> Console:
    """For results, without markup: plain and wide where stdout is not a terminal."""
    width = None if sys.stdout.isatty() else 110
    return Console(soft_wrap=False, width=width, highlight=False, emoji=False, markup=False)


def print_table(columns: Sequence[Any], rows: Iterable[Sequence[Any]], n_words: int = 1) -> None:
    """Print a table; the columns after the first ``n_words`` hold numbers."""
    table = Table(*columns)
    for column in table.columns[n_words:]:
        column.justify = "right"
    for row in rows:
        table.add_row(*(visible(cell) if isinstance(cell, str) else cell for cell in row))
    stdout().print(table)


def print_json(content: Any) -> None:
    """Print JSON, with null for what is not a finite number."""
    text = json.dumps(content, default=str)
    print(json.dumps(json.loads(text, parse_constant=lambda _: None), indent=2))


def note(message: str) -> None:
    """One line on stderr, unless --quiet."""
    if not _state["quiet"] and sys.stderr is not None:
        print(visible(message), file=sys.stderr)
