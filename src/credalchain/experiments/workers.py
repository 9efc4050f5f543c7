"""Processes for the tasks of a study: one that dies is replaced, and none outlives its parent."""

import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import lru_cache
from typing import Any, TypeVar

from joblib import cpu_count, parallel_config
from joblib.externals.loky import ProcessPoolExecutor
from joblib.parallel import ParallelBackendBase

Item = TypeVar("Item")
Result = TypeVar("Result")
Lost = TypeVar("Lost")

_TRIES = 2
_IDLE = 300.0  # seconds after which a worker without work ends
_PARENT_CHECK = 1.0  # seconds


class Workers:
    """A number of processes that stay for the next call.

    Each is an executor of its own: a dead worker breaks its executor only, so that exactly one
    item is known to have lost its worker, and all others go on.
    """

    def __init__(self, n_workers: int) -> None:
        self._n_workers = n_workers
        self._idle: list[ProcessPoolExecutor] = []

    def each(
        self, function: Callable[[Item], Result], items: Iterable[Item], *, lost: Lost
    ) -> Iterator[tuple[Item, Result | Lost]]:
        """Items and their results as they come, in any order.

        An item whose worker died is tried once more; if that worker dies too, the result is
        ``lost``. Workers that are busy when the iterator is closed are killed.
        """
        waiting = deque((item, _TRIES) for item in items)
        busy: dict[Future[Result], tuple[ProcessPoolExecutor, Item, int]] = {}
        try:
            while waiting or busy:
                while waiting and len(busy) < self._n_workers:
                    item, tries = waiting.popleft()
                    worker, future = self._submit(function, item)
                    busy[future] = worker, item, tries - 1
                for future in wait(busy, return_when=FIRST_COMPLETED).done:
                    worker, item, tries = busy.pop(future)
                    if not isinstance(future.exception(), BrokenProcessPool):
                        self._idle.append(worker)
                        yield item, future.result()
                    elif tries > 0:
                        _warn_of_retry()
                        waiting.appendleft((item, tries))
                    else:
                        yield item, lost
        finally:
            for worker, *_ in busy.values():
                worker.shutdown(kill_workers=True)

    def close(self) -> None:
        """End the workers that have nothing to do, and wait until they have ended."""
        while self._idle:
            self._idle.pop().shutdown()

    def _submit(
        self, function: Callable[[Item], Result], item: Item
    ) -> tuple[ProcessPoolExecutor, Future[Result]]:
        while self._idle:
            worker = self._idle.pop()
            with suppress(BrokenProcessPool):  # it died while it had nothing to do
                return worker, worker.submit(function, item)
        worker = ProcessPoolExecutor(
            1, timeout=_IDLE, initializer=_start, env=_thread_limits(self._n_workers)
        )
        return worker, worker.submit(function, item)


@lru_cache(maxsize=1)
def workers(n_workers: int) -> Workers:
    """The workers of this session: those that were started before are used again."""
    return Workers(n_workers)


def _warn_of_retry() -> None:
    warnings.warn(
        "A worker process died: it was killed from outside (out of memory, for example) or "
        "crashed. What it was working on is tried once more.",
        RuntimeWarning,
        stacklevel=3,
    )


def _thread_limits(n_workers: int) -> dict[str, Any]:
    """Environment variables that give each worker its share of the cores, as in joblib."""
    n_threads = str(max(cpu_count() // n_workers, 1))
    return {
        name: os.environ.get(name, n_threads) for name in ParallelBackendBase.MAX_NUM_THREADS_VARS
    }


# -- inside a worker -------------------------------------------------------------------------


def _start() -> None:
    """Leave interrupts to the parent, give ``n_jobs`` of estimators threads, watch the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parallel_config(backend="threading")
    if os.name == "posix":  # elsewhere a process keeps the number of a parent that is gone
        threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    """A parent that is killed cannot end its workers, and they would wait for work."""
    parent = multiprocessing.parent_process()
    while parent is not None and os.getppid() == parent.pid:
        time.sleep(_PARENT_CHECK)
    os._exit(1)
