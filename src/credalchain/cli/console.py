"""Where words go: results to stdout, notes and progress to stderr."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from credalchain._utils.files import check_folder, replacing
from credalchain._utils.text import visible

_state: dict[str, Any] = {"quiet": False, "trusted": ()}


def set_quiet(quiet: bool) -> None:
    """Whether notes and progress are left out."""
    _state["quiet"] = quiet


def set_trusted(names: Sequence[str]) -> None:
    """Set the further types that model files may hold."""
    _state["trusted"] = names


def read_model(path: str) -> Any:
    """Load a model file, with the types that --trust names."""
    from credalchain.model_files import load_model  # slow to import

    return load_model(path, trusted=_state["trusted"])


def is_quiet() -> bool:
    """Whether --quiet was given."""
    return bool(_state["quiet"])


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
    with replacing(path) as file:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=130)
    note(f"picture -> {picture}")


def stdout() -> Console:
    """For results, without markup: plain and wide where stdout is not a terminal."""
    width = None if sys.stdout.isatty() else 110
    return Console(soft_wrap=False, width=width, highlight=False, emoji=False, markup=False)


def note(message: str) -> None:
    """One line on stderr, unless --quiet."""
    if not _state["quiet"] and sys.stderr is not None:
        print(visible(message), file=sys.stderr)
