"""How far long work has come, on stderr: a bar in a terminal, a line now and then elsewhere."""

import sys
import time

_WIDTH = 30
_SECONDS_BETWEEN_LINES = 10.0


class Progress:
    """A callable ``progress(done, total)``."""

    def __init__(self, what: str, *, shown: bool) -> None:
        self._what, self._shown = what, shown
        self._next_line = time.monotonic() + _SECONDS_BETWEEN_LINES

    def __call__(self, done: int, total: int) -> None:
        if not self._shown:
            return
        is_last = done >= total
        words = f"{self._what}: {done} of {total}"
        if sys.stderr.isatty():
            filled = _WIDTH * done // max(total, 1)
            bar = "━" * filled + "·" * (_WIDTH - filled)
            sys.stderr.write(f"\r{words} {bar}" + ("\n" if is_last else ""))
        elif is_last or time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + _SECONDS_BETWEEN_LINES
            sys.stderr.write(f"{words}\n")
        sys.stderr.flush()
