"""How things are timed, and what a comparison is."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any


def fastest(work: Callable[[], Any], *, repeat: int = 9, budget: float = 20.0) -> float:
    """Seconds of the fastest run after a warm-up; fewer runs once the budget is spent.

    The fastest, because whatever else the machine does can only make a run slower.
    """
    work()
    best, spent = float("inf"), 0.0
    for _ in range(repeat):
        started = time.perf_counter()
        work()
        seconds = time.perf_counter() - started
        best, spent = min(best, seconds), spent + seconds
        if spent > budget:
            break
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
