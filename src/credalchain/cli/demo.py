"""``credalchain demo``."""

from pathlib import Path
from typing import Annotated

import typer

from credalchain.cli.console import stdout
from credalchain.demo import run


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the figures.")] = Path("demo"),
) -> None:
    """Try both models on the embedded yeast data: tables, a promise, figures, a page.

    Example: `credalchain demo --out figures`
    """
    run(out, stdout())
