"""Threads over chunks of rows. Kernels release the GIL, so threads are enough."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def for_each_range(n_rows: int, size: int, n_jobs: int, run: Callable[[int, int], None]) -> None:
    """Call ``run(start, stop)`` over all rows, ``size`` at a time, on up to ``n_jobs`` threads.

    Chunks for several threads may be smaller.
    """
    if n_jobs > 1:
        size = min(size, -(-n_rows // n_jobs))
    chunks = [(start, min(start + size, n_rows)) for start in range(0, n_rows, size or 1)]
    if n_jobs == 1 or len(chunks) <= 1:
        for start, stop in chunks:
            run(start, stop)
        return
    with ThreadPoolExecutor(min(n_jobs, len(chunks))) as pool:
        for _ in pool.map(lambda chunk: run(*chunk), chunks):
            pass
