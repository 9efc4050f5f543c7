"""The command ``credalchain``: in this process, or as a real one where that is the point."""

import contextlib
import io
import multiprocessing
import os
import signal
import subprocess
import sys
import warnings
from unittest import mock

import matplotlib.pyplot as plt

from credalchain.__main__ import main
from credalchain.cli import console
from credalchain.joint.growing import default_forest_regressor

N_TREES = 30  # of forests of default size, in tests
ENVIRONMENT = {"COLUMNS": "100", "NO_COLOR": "1"}
NO_BYTECODE = {"PYTHONDONTWRITEBYTECODE": "1"}  # a limit on files would cut what others read


def credalchain(*arguments, cwd, status=0, stdin="", merged=False):
    """Run the command in this process, with the error handling of a real one.

    ``stdin`` is a text, or None where it is closed; if ``merged``, stderr goes to stdout.

    Not for studies with several ``--jobs``: joblib keeps worker processes for the next run, and
    they stay in the folder in which they were started.
    """
    command = ["credalchain", *map(str, arguments)]
    stdout, stderr = _stream(), _stream()
    streams = {
        "stdin": None if stdin is None else _stream(stdin),
        "stdout": stdout,
        "stderr": stdout if merged else stderr,
    }
    with (
        mock.patch.multiple(sys, argv=command, **streams),
        mock.patch.dict(os.environ, ENVIRONMENT),
        contextlib.chdir(cwd),
        warnings.catch_warnings(),
        _state_restored(),
    ):
        warnings.simplefilter("default", UserWarning)  # the command turns them into notes
        returned = _exit_status()
    done = subprocess.CompletedProcess(command, returned, _text(stdout), _text(stderr))
    return _checked(done, status)


def small_forests():
    """While it is entered, forests of default size have few trees."""
    return mock.patch.object(default_forest_regressor, "__defaults__", (N_TREES,))


def credalchain_process(*arguments, cwd, status=0, **options):
    """Run the command as a process of its own: for pipes, limits, signals and imports."""
    done = subprocess.run(
        [sys.executable, "-m", "credalchain", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **ENVIRONMENT, **NO_BYTECODE},
        **options,
    )
    return _checked(done, status)


def start_process(*arguments, cwd):
    """Start the command as a process of its own that goes on; it, and the first line it prints.

    It is forked from a process that has imported everything already, which saves seconds each.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["preloaded"])
    read, write = context.Pipe(duplex=False)
    process = context.Process(target=_run_here, args=(arguments, str(cwd), write), daemon=True)
    paths = os.pathsep.join([os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")])
    with mock.patch.dict(os.environ, PYTHONPATH=paths):  # Python 3.11 hands on no path
        process.start()
    write.close()
    with open(os.dup(read.fileno()), encoding="utf-8") as stdout:
        first_line = stdout.readline()
    read.close()
    assert first_line, f"credalchain {' '.join(arguments)} printed nothing"
    return process, first_line


def _run_here(arguments, cwd, stdout):
    """In the new process: the command, with its stdout going into a pipe."""
    os.setsid()  # a signal for it is for it alone
    os.dup2(stdout.fileno(), 1)
    stdout.close()
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a fork server ignores it
    os.chdir(cwd)
    os.environ.update(ENVIRONMENT)
    sys.argv = ["credalchain", *arguments]
    main()


def _checked(done, status):
    assert status in (None, done.returncode), done.stderr
    assert "Traceback" not in done.stderr
    return done


def _stream(text=""):
    return io.TextIOWrapper(
        io.BytesIO(text.encode()), encoding="utf-8", newline="\n", write_through=True
    )


def _text(stream):
    return stream.buffer.getvalue().decode("utf-8")


def _exit_status():
    try:
        main()
    except SystemExit as stop:
        return stop.code or 0
    return 0


@contextlib.contextmanager
def _state_restored():
    """Undo what a process leaves behind at its end: --quiet, figures and a redirected stdout."""
    kept = os.dup(1)  # after an OSError the command points it to nowhere
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        console.configure()
        plt.close("all")
