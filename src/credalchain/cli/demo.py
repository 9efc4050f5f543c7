"""``credalchain demo``."""

from pathlib import Path
from typing import Annotated

import typer

from credalchain.cli.console import stdout
from credalchain.demo import run


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the figures.")] = Path("demo"),
) -> None:
    """Cross-validate on the embedded yeast data, print a table and draw two figures.

    Example: `credalchain demo --out figures`
    """
    run(out, stdout())
