"""Threads over chunks of rows. Kernels release the GIL, so threads are enough."""

from collections.abc import Callable, Iterator
from threading import Lock, Thread


def for_each_range(
    n_rows: int, size: int, n_jobs: int, run: Callable[[int, int], None], *, multiple_of: int = 1
) -> None:
    """Call ``run(start, stop)`` over all rows, ``size`` at a time, on up to ``n_jobs`` threads.

    The calling thread is one of them: most batches are too small to pay for a pool. Chunks for
    several threads may be smaller, but hold a multiple of ``multiple_of`` rows, as ``size`` does.
    """
    if n_jobs > 1:
        size = min(size, -(-n_rows // (n_jobs * multiple_of)) * multiple_of)
    chunks = ((start, min(start + size, n_rows)) for start in range(0, n_rows, size))
    if n_jobs == 1 or n_rows <= size:
        for start, stop in chunks:
            run(start, stop)
        return
    errors: list[BaseException] = []
    lock = Lock()

    def work() -> None:
        try:
            while (chunk := _next(chunks, lock)) is not None and not errors:
                run(*chunk)
        except BaseException as error:
            errors.append(error)

    n_chunks = -(-n_rows // size)
    helpers = [Thread(target=work, daemon=True) for _ in range(min(n_jobs, n_chunks) - 1)]
    for helper in helpers:
        helper.start()
    work()
    for helper in helpers:
        helper.join()
    if errors:
        raise errors[0]


def _next(chunks: Iterator[tuple[int, int]], lock: Lock) -> tuple[int, int] | None:
    with lock:
        return next(chunks, None)
