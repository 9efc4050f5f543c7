"""How things are timed, and what a comparison is."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any


def fastest(work: Callable[[], Any], *, seconds: float = 0.7) -> float:
    """Seconds of the fastest run after a warm-up: at least 3 runs, more while there is time.

    The fastest, because whatever else the machine does can only make a run slower.
    """
    work()
    best, spent, runs = float("inf"), 0.0, 0
    while runs < 3 or (spent < seconds and runs < 300):
        started = time.perf_counter()
        work()
        took = time.perf_counter() - started
        best, spent, runs = min(best, took), spent + took, runs + 1
    return best


@dataclass(frozen=True)
class Comparison:
    """The same work done by us and by somebody else, in seconds.

    ``net`` is our time without the checks of the input. ``at_least`` and ``aim`` are the ratios
    we want.
    """

    work: str
    data: str
    ours: float
    net: float
    theirs: float
    at_least: float
    aim: float

    @property
    def ratio(self) -> float:
        return self.theirs / self.ours

    def as_record(self) -> dict[str, Any]:
        return {**asdict(self), "ratio": self.ratio, "net_ratio": self.theirs / self.net}
