"""Tasks of a study on a Dask cluster: on one that is running, or on one of its own."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Lost = TypeVar("Lost")

_SECONDS_TO_CONNECT = 10
_TRIES = 2


class Cluster:
    """Workers of a Dask cluster, as a context manager.

    Parameters
    ----------
    address : str, optional
        Of a scheduler that is running, such as ``tcp://10.0.0.5:8786``.
    n_workers : int, optional
        Else processes on this machine, which end with the study.
    """

    def __init__(self, address: str | None = None, n_workers: int | None = None) -> None:
        if (address is None) == (n_workers is None):
            raise ValueError("a cluster needs the address of a scheduler or a number of workers.")
        self.address, self.n_workers = address, n_workers

    def __enter__(self) -> "Cluster":
        try:
            from distributed import Client
        except ImportError as error:
            raise ImportError(
                'Running on a cluster needs Dask: pip install "credalchain[dask]"'
            ) from error
        with ExitStack() as stack:
            target: Any = self.address
            if target is None:
                target = stack.enter_context(_local_cluster(self.n_workers))
            try:
                self._client: Any = stack.enter_context(Client(target, timeout=_SECONDS_TO_CONNECT))
            except (OSError, ValueError, TimeoutError) as error:
                raise ConnectionError(
                    f"no scheduler of Dask answers at {self.address!r} within "
                    f"{_SECONDS_TO_CONNECT} s."
                ) from error
            self._opened = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def each(
        self, function: Callable[[Item], Result], items: Iterable[Item], *, lost: Lost
    ) -> Iterator[tuple[Item, Result | Lost]]:
        """Items and their results as they come; ``lost`` where workers died with an item."""
        from concurrent.futures import CancelledError

        from distributed import as_completed
        from distributed.comm.core import CommClosedError
        from distributed.scheduler import KilledWorker

        waiting = {
            self._client.submit(function, item, pure=False, retries=_TRIES): item for item in items
        }
        try:
            for future in as_completed(list(waiting)):
                item = waiting.pop(future)
                try:
                    yield item, future.result()
                except KilledWorker:
                    yield item, lost
                except (CancelledError, CommClosedError) as error:
                    raise ConnectionError(
                        "the scheduler of Dask was lost; results that came are kept, and the same "
                        "command goes on."
                    ) from error
        finally:
            self._client.cancel(list(waiting))


def _local_cluster(n_workers: int | None) -> Any:
    """Processes on this machine; one that dies is started again, however long that takes.

    Dask gives up a worker that is not back when it looks, by default after 15 s. With the last one
    the study would wait forever.
    """
    import dask
    from distributed import LocalCluster

    class PatientCluster(LocalCluster):
        def _update_worker_status(self, op: str, msg: Any) -> None:
            with dask.config.set({"distributed.deploy.lost-worker-timeout": "1 day"}):
                super()._update_worker_status(op, msg)  # type: ignore[no-untyped-call]

    return PatientCluster(  # type: ignore[no-untyped-call]
        n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=None
    )
