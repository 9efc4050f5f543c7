"""The documentation's terminal sessions are what the commands really print.

With CREDALCHAIN_UPDATE_DOCS=1 in the environment the sessions are written anew.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SESSION = re.compile(r"```console\n(.*?)```\n", re.DOTALL)


def run(command, folder):
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "LC_ALL": "C.UTF-8",
        "PYTHONIOENCODING": "utf-8",
    }
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    return done.stdout


def replay(text, folder):
    def session(match):
        lines = []
        for line in match[1].splitlines():
            if line.startswith("$ "):
                printed = run(line[2:], folder)
                lines += [line, *(row.rstrip() for row in printed.splitlines())]
        return "```console\n" + "\n".join(lines) + "\n```\n"

    return SESSION.sub(session, text)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["command-line.md"])
def test_terminal_sessions(name, tmp_path):
    page = DOCS / name
    written = page.read_text(encoding="utf-8")
    real = replay(written, tmp_path)
    if os.environ.get("CREDALCHAIN_UPDATE_DOCS") and real != written:
        page.write_text(real, encoding="utf-8")
    assert real == written
