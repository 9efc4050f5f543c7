"""Progress of long computations, on stderr, if requested.

A bar in a terminal, a line now and then elsewhere. Work inside other work (the trees of a fold) is
shown on the same line, and moves the same bar: the trees of the second of three folds are a third.
"""

import contextlib
import math
import sys
import time
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import Self, TypeVar

Item = TypeVar("Item")

_WIDTH = 20
_SECONDS_BETWEEN_BARS = 0.1
_SECONDS_BEFORE_ESTIMATE = 3.0

_line_seconds: ContextVar[float | None] = ContextVar("line_seconds", default=None)
_running: list["Progress"] = []  # the outermost first


@contextlib.contextmanager
def show_progress(wanted: bool | int = True, *, line_seconds: float = 3.0) -> Iterator[None]:
    """Show the progress of what runs inside; once shown, it stays so for what is nested.

    Where there is no terminal, a line every ``line_seconds``.
    """
    already = _line_seconds.get()
    token = _line_seconds.set(line_seconds if wanted and already is None else already)
    try:
        yield
    finally:
        _line_seconds.reset(token)


def track(items: Iterable[Item], what: str, total: int | None = None) -> Iterator[Item]:
    """Yield the same items; their number is shown as they are done with."""
    with Progress(what, total) as progress:
        for done, item in enumerate(items, start=1):
            yield item
            progress(done)


class Progress:
    """Call it with how much is done (and how much there is) inside a ``with`` block."""

    def __init__(self, what: str, total: int | None = None) -> None:
        self._what, self._done, self._total = what, 0, total
        self._least, self._most = math.inf, 0.0  # seconds left and share done, as shown before

    def __enter__(self) -> Self:
        self._line_seconds = _line_seconds.get()
        self._shown = self._line_seconds is not None and sys.stderr is not None
        self._started = self._last = time.monotonic()
        if self._shown:
            _running.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        if not self._shown:
            return
        _running.remove(self)
        if not _running and sys.stderr.isatty():
            sys.stderr.write("\r\033[K")  # what comes next stands in its place
            sys.stderr.flush()

    def __call__(self, done: int, total: int | None = None) -> None:
        self._done, self._total = done, self._total if total is None else total
        if self._shown and _running:
            _running[0]._show()

    def _show(self) -> None:
        now, in_terminal = time.monotonic(), sys.stderr.isatty()
        pause = _SECONDS_BETWEEN_BARS if in_terminal else self._line_seconds
        if pause is None or now - self._last < pause:
            return
        self._last = now
        message, elapsed = ", ".join(map(str, _running)), now - self._started
        share = self._most = max(self._most, self._share(_running.index(self)))
        if share > 0 and elapsed >= _SECONDS_BEFORE_ESTIMATE:
            left = self._least = min(self._least, elapsed * (1 - share) / share)
            message += f", {left:.0f} s left" if left < 100 else f", {left / 60:.0f} min left"
        filled = min(_WIDTH, int(_WIDTH * share))
        bar = "━" * filled + "·" * (_WIDTH - filled) + " " if self._total else ""
        line = f"\r{bar}{message}\033[K" if in_terminal else f"{message}\n"
        sys.stderr.write(line)
        sys.stderr.flush()

    def _share(self, position: int) -> float:
        """Return how much is done, from 0 to 1, with what runs inside."""
        if not self._total:
            return 0.0
        inside = _running[position + 1 :]
        done, step = self._amount()
        return min((done + step * (inside[0]._share(position + 1) if inside else 0.0)), 1.0)

    def _amount(self) -> tuple[float, float]:
        """Return the shares of what is done, and of what is being done."""
        total = self._total or 1
        return self._done / total, 1 / total

    def __str__(self) -> str:
        of = "" if self._total is None else f" of {self._total}"
        return f"{self._what}: {self._done}{of}"


class Phases(Progress):
    """Different kinds of work, one after the other; call it with the name of the next.

    Parameters
    ----------
    what : str
    weights : dict
        The time that each is expected to take, in any unit, in their order.
    """

    def __init__(self, what: str, weights: dict[str, float]) -> None:
        super().__init__(what, len(weights))
        self._names, self._weights = list(weights), list(weights.values())

    def start(self, name: str) -> None:
        """Say that a phase begins."""
        self(self._names.index(name))

    def _amount(self) -> tuple[float, float]:
        weights = [weight / sum(self._weights) for weight in self._weights]
        return sum(weights[: self._done]), weights[self._done]

    def __str__(self) -> str:
        return f"{self._what}: {self._names[self._done]}"
