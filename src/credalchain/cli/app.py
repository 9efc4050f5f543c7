"""The application: its commands, and the one place where errors become sentences."""

import os
import sys
import warnings
from typing import Annotated

import typer

from credalchain._version import __version__
from credalchain.cli import console
from credalchain.cli.data import data
from credalchain.cli.demo import demo
from credalchain.cli.evaluate import evaluate
from credalchain.cli.explain import explain
from credalchain.cli.fit import fit
from credalchain.cli.info import info
from credalchain.cli.predict import predict
from credalchain.cli.promise import check, tune
from credalchain.cli.review import review
from credalchain.cli.study import report
from credalchain.cli.study import run as run_command
from credalchain.text import visible

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=(
        "Cautious multi-label classification: yes, no, or * where the evidence does not "
        "settle a label.\n\n"
        "Exit status: 0 all went well; 1 something about the data, a file or a model (one "
        "sentence on stderr says what); 2 the command itself was not understood; 3 a promise is "
        "broken; 130 interrupted."
    ),
)
for command in (
    fit,
    predict,
    evaluate,
    tune,
    check,
    explain,
    info,
    run_command,
    report,
    demo,
):
    app.command(no_args_is_help=command is not demo)(command)
app.add_typer(review, name="review")
app.add_typer(data, name="data")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"credalchain {__version__}")
        raise typer.Exit


@app.callback()
def common(
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress and no notes on stderr.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """What holds for every command."""
    console.set_quiet(quiet)


def run() -> None:
    """Run the application; errors of the user's making become one sentence, not a traceback."""
    warnings.showwarning = _as_note
    try:
        app()
        sys.stdout.flush()  # a full disk behind a pipe shows only now
    except BrokenPipeError:
        _reader_has_left()
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # click makes this an error
            _reader_has_left()
        raise
    except KeyboardInterrupt:
        sys.exit(130)
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
        _fail(error)


def _reader_has_left() -> None:
    """Whoever reads our output has seen enough: that is not an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(0)


def _as_note(message: Warning | str, *_: object, **__: object) -> None:
    """A warning of the library as one line, without the place in the source."""
    console.note(f"note: {_one_line(message)}")


def _one_line(words: object) -> str:
    """Messages of other packages may have several lines."""
    return " ".join(str(words).split())


def _fail(error: BaseException) -> None:
    words = _one_line(error) or type(error).__name__
    print(f"credalchain: {visible(words)}", file=sys.stderr)
    if isinstance(error, OSError):  # what is still buffered cannot be written either
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(1)
