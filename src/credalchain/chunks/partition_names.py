"""Delayed partitions whose errors say which partition they come from, also while it is read."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

_SHARED = -1  # in place of a partition's number: several partitions need the task


def name_errors(partitions: list[Any]) -> list[Any]:
    """The same partitions of one collection; whatever fails on the way to one names it.

    Dask reads a partition in tasks of its own, before any of ours. Those that only one partition
    needs are wrapped here, under other keys.
    """
    from dask.delayed import Delayed
    from dask.highlevelgraph import HighLevelGraph

    try:
        from dask._task_spec import convert_legacy_graph
    except ImportError:  # tasks are not public: another Dask may have others, without names then
        return partitions
    if not partitions:
        return []
    graph = convert_legacy_graph(dict(partitions[0].__dask_graph__()))
    keys = [partition.key for partition in partitions]
    owners = {key: number for key, number in _owners(graph, keys).items() if number != _SHARED}
    names = {key: _key_of(number, key) for key, number in owners.items()}
    for key, number in owners.items():
        graph[names[key]] = _wrapped(graph[key].substitute(names, key=names[key]), number)
    layer = f"partitions of {keys[0]}"
    layers = HighLevelGraph({layer: graph}, {layer: set()})
    return [
        Delayed(names.get(key, key), layers, layer=layer)  # type: ignore[no-untyped-call]
        for key in keys
    ]


def _owners(graph: Mapping[Any, Any], keys: Iterable[Any]) -> dict[Any, int]:
    """The number of the partition that needs a task, or ``_SHARED``."""
    owners: dict[Any, int] = {}
    for number, last in enumerate(keys):
        waiting = [last]
        while waiting:
            key = waiting.pop()
            owner = owners.get(key)
            if owner in (number, _SHARED) or not hasattr(graph.get(key), "substitute"):
                continue
            owners[key] = number if owner is None else _SHARED
            waiting.extend(graph[key].dependencies)
    return owners


def _key_of(number: int, key: Any) -> tuple[Any, ...]:
    first, *others = key if isinstance(key, tuple) else (key,)
    return (f"partition-{first}", number, *others)


def _wrapped(task: Any, number: int) -> Any:
    """``task``, which is nobody else's, with a function that names the partition."""
    if type(task).__name__ == "Task" and not task.is_coro:
        task.func = partial(_call, number, task.func)
    return task


def _call(number: int, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
    try:
        return function(*arguments, **options)
    except Exception as error:
        if type(error).__module__.partition(".")[0] == "distributed":  # not about the data
            raise
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        raise ValueError(f"partition {number} cannot be read: {kind}{error}") from error
