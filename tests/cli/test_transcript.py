"""The documentation's terminal sessions are what the commands really print.

With CREDALCHAIN_UPDATE_DOCS=1 in the environment the sessions are written anew.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from credalchain.joint.growing import default_forest_regressor
from shell import credalchain

DOCS = Path(__file__).parents[2] / "docs"
SESSION = re.compile(r"```console\n(.*?)```\n", re.DOTALL)
COMMAND = re.compile(
    r"credalchain (?P<arguments>[^|;]*?)(?P<quiet> 2>/dev/null)?"
    r"( \| head -n (?P<head>\d+))?(?P<status>; echo \"status \$\?\")?"
)


def run(command, folder):
    """Run ``credalchain`` in this process, everything else by the shell."""
    ours = COMMAND.fullmatch(command)
    if ours is None:
        done = subprocess.run(
            command, shell=True, cwd=folder, stdout=subprocess.PIPE, encoding="utf-8", check=False
        )
        return done.stdout
    with mock.patch.object(default_forest_regressor, "__defaults__", (300,)):
        done = credalchain(
            *shlex.split(ours["arguments"]), cwd=folder, status=None, merged=not ours["quiet"]
        )
    n_shown = int(ours["head"]) if ours["head"] else None
    lines = done.stdout.splitlines(keepends=True)[:n_shown]
    return "".join(lines) + (f"status {done.returncode}\n" if ours["status"] else "")


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
@pytest.mark.parametrize("name", ["command-line.md", "tutorial.md"])
def test_terminal_sessions(name, tmp_path, monkeypatch):
    page = DOCS / name
    (tmp_path / "examples").symlink_to(DOCS.parent / "examples")
    python = os.path.dirname(sys.executable)
    monkeypatch.setenv("PATH", os.pathsep.join([python, os.environ["PATH"]]))
    written = page.read_text(encoding="utf-8")
    real = replay(written, tmp_path)
    if os.environ.get("CREDALCHAIN_UPDATE_DOCS") and real != written:
        page.write_text(real, encoding="utf-8")
    assert real == written
