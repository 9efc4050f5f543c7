"""The command as a real process."""

import os
import subprocess
import sys


def credalchain(*arguments, cwd, status=0, **options):
    done = subprocess.run(
        [sys.executable, "-m", "credalchain", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
        **options,
    )
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done
