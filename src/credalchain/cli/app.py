"""The application: its commands, and the conversion of errors into messages."""

import os
import sys
import warnings
from functools import partial
from importlib import import_module
from typing import Annotated, Any

import typer
import typer.core

from credalchain._utils.progress import show_progress
from credalchain._utils.text import visible
from credalchain._version import __version__
from credalchain.cli import console
from credalchain.exceptions import DataWarning

_COMMANDS = {
    "describe": (
        "describe",
        "Show how each column of a table is read, and how fit uses it.",
    ),
    "fit": ("fit", "Fit a model to a labelled table and write it to a file."),
    "predict": ("predict", "Predict the labels of new rows: 1, 0, or * for a label left open."),
    "review": ("review", "Open a page where people answer the labels left open."),
    "evaluate": ("evaluate", "Cross-validate on a table: measures at several values of caution."),
    "tune": ("promise", "Show how many labels are answered at each level of a promised risk."),
    "check": ("promise", "Test whether a model's promise holds on rows labelled since the fit."),
    "explain": (
        "predict",
        "Explain the answers of one row, and what each open answer would settle.",
    ),
    "info": ("describe", "Show the contents of a model file."),
    "run": ("study", "Run a study, or resume an interrupted one."),
    "report": ("study", "Print the findings of a study; write tables, charts and an HTML report."),
    "data": ("describe", "List or fetch the data sets of the paper."),
}
"""Module and summary of each command."""


class _Commands(typer.core.TyperGroup):
    """Commands whose modules are imported at first use, so that help is fast."""

    _is_listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _COMMANDS:
            return None
        module, summary = _COMMANDS[cmd_name]
        if self._is_listing:
            return typer.core.TyperCommand(cmd_name, help=summary)
        target = getattr(import_module(f"credalchain.cli.{module}"), cmd_name)
        if not isinstance(target, typer.Typer):
            only = typer.Typer(**_SETTINGS)
            only.command(cmd_name, no_args_is_help=True)(target)
            target = only
        command = typer.main.get_command(target)
        command.name = cmd_name
        return command

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._is_listing = True
        super().format_help(ctx, formatter)


_SETTINGS: dict[str, Any] = {
    "add_completion": False,
    "rich_markup_mode": "markdown",
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}
app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    **_SETTINGS,
    help=(
        "Cautious multi-label classification: yes, no, or * where the evidence does not "
        "settle a label.\n\n"
        "Exit status: 0 success; 1 an error in the data, a file or a model (one sentence on "
        "stderr describes it); 2 invalid usage; 3 a promise is broken; 130 interrupted."
    ),
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"credalchain {__version__}")
        raise typer.Exit


@app.callback()
def common(
    context: typer.Context,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print no progress and no notes on stderr.")
    ] = False,
    trust: Annotated[
        list[str] | None,
        typer.Option(
            help="A further type to trust in a model file, besides those of credalchain and those "
            "that skops trusts. May be repeated."
        ),
    ] = None,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Read the options of all commands."""
    console.configure(quiet=quiet, trusted=trust or ())
    context.with_resource(show_progress(not quiet, line_seconds=60.0))


def run() -> None:
    """Run the application; print user errors in one sentence, without a traceback."""
    warnings.showwarning = partial(_as_note, set())
    warnings.filterwarnings("ignore", "labels that are the same", DataWarning)  # a note says so
    warnings.filterwarnings("ignore", "The matrix shape is")  # texts of few words have few numbers
    try:
        app()
        sys.stdout.flush()  # a full disk behind a pipe shows only now
    except (BrokenPipeError, SystemExit) as stop:
        if BrokenPipeError not in (type(stop), type(stop.__context__)):  # click wraps it
            raise
        _discard_output()  # whoever reads it has seen enough: that is not an error
        sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(130)
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
        message = " ".join(str(error).split()) or type(error).__name__
        print(f"credalchain: {visible(message)}", file=sys.stderr)
        if isinstance(error, OSError):  # what is still buffered cannot be written either
            _discard_output()
        sys.exit(1)


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _as_note(shown: set[str], message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning of the library once, in one line without the place in the source."""
    words = " ".join(str(message).split())
    if words not in shown:
        console.note(f"note: {words}")
    shown.add(words)
