"""Running a study: what is not done yet, in parallel, one file per task."""

import contextlib
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from joblib import Parallel, delayed, effective_n_jobs

from credalchain._utils.text import plural
from credalchain.datasets.registry import DataSource
from credalchain.experiments.cluster import Cluster
from credalchain.experiments.store import Store, dataset_facts
from credalchain.experiments.study import Study, StudyError
from credalchain.experiments.tasks import Task, expand
from credalchain.experiments.work import load_dataset, run_task
from credalchain.experiments.workers import workers

Item = TypeVar("Item")
Result = TypeVar("Result")
Lost = TypeVar("Lost")

_MANY_TASKS = 4  # for each worker
_WORKER_DIED = (
    "The worker process of this task died, and so did another that tried it again: killed from "
    "outside (out of memory, usually) or by a crash. Run the study again to go on, with fewer "
    "workers (--jobs) if memory is short."
)


@dataclass(frozen=True)
class RunProgress:
    """How far a run is, after each task."""

    done: int
    total: int
    failed: int
    task: Task


def run_study(
    study: Study,
    store: Store,
    *,
    n_jobs: int | None = None,
    cluster: Cluster | None = None,
    on_task: Callable[[RunProgress], None] = lambda progress: None,
) -> int:
    """Run all tasks of a study that have no result yet; the number of tasks that failed.

    Every finished task is written at once, so a run can be killed at any moment and started
    again: it goes on with what is missing. Results do not depend on the number of workers. A task
    whose worker process dies is tried once more, with a warning; after that it counts as failed.

    On a ``cluster`` (which was entered) tasks run there, and results are written here; data sets
    are read where tasks run.
    """
    tasks = [task for task in expand(study) if not store.is_done(task)]
    processes = _worth_processes(tasks, n_jobs)
    facts = _facts(study, n_jobs if processes else 1)
    for fact in facts:
        if fact["rows"] < study.folds:
            raise StudyError(
                f"{fact['dataset']} has {plural(fact['rows'], 'row')}, but folds is {study.folds}."
            )
    store.open(study)
    store.save_facts(facts)
    total = sum(1 for _ in expand(study))
    done, failed = total - len(tasks), 0
    generator = (
        _outcomes(tasks, store, n_jobs, processes)
        if cluster is None
        else _cluster_outcomes(tasks, store, cluster)
    )
    with contextlib.closing(generator) as outcomes:
        for task, error in outcomes:
            if error is not None:
                failed += 1
                store.save_error(task, error)
            done += 1
            on_task(RunProgress(done, total, failed, task))
    return failed


def _worth_processes(tasks: list[Task], n_jobs: int | None) -> bool:
    """Processes take seconds to start, and then work side by side as threads never do."""
    return len(tasks) >= _MANY_TASKS * int(effective_n_jobs(n_jobs))


def _facts(study: Study, n_jobs: int | None) -> list[dict[str, Any]]:
    """Facts about the data sets that can be loaded; failing ones are reported by their tasks."""
    fact_of = dict(_each(_fact, study.data, n_jobs, processes=True, lost=None))
    return [fact for data in study.data if (fact := fact_of[data]) is not None]


def _fact(data: DataSource) -> dict[str, Any] | None:
    with contextlib.suppress(OSError, ValueError, ImportError):
        return dataset_facts(load_dataset(data))
    return None


def _outcomes(
    tasks: list[Task], store: Store, n_jobs: int | None, processes: bool
) -> Generator[tuple[Task, str | None], None, None]:
    """Tasks as they finish, in any order, and what went wrong, if anything.

    Our own methods spend most of their time in kernels that run side by side, so for a few tasks
    threads will do, and start at once; anybody else's estimator gets processes.
    """
    ours = [task for task in tasks if task.method.kind != "estimator"]
    foreign = [task for task in tasks if task.method.kind == "estimator"]
    attempt = partial(_attempt, store=store)
    yield from _each(attempt, ours, n_jobs, processes=processes, lost=_WORKER_DIED)
    yield from _each(attempt, foreign, n_jobs, processes=True, lost=_WORKER_DIED)


def _cluster_outcomes(
    tasks: list[Task], store: Store, cluster: Cluster
) -> Generator[tuple[Task, str | None], None, None]:
    """The same on a cluster: results come back, and are saved here."""
    lost: tuple[Any, str | None] = (None, _WORKER_DIED)
    for task, (result, error) in cluster.each(_run_elsewhere, tasks, lost=lost):
        if error is None:
            store.save(task, result)
        yield task, error


def _run_elsewhere(task: Task) -> tuple[Any, str | None]:
    try:
        return run_task(task), None
    except Exception:  # one task's failure is recorded, and the others go on
        return None, traceback.format_exc()


def _each(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    n_jobs: int | None,
    *,
    processes: bool,
    lost: Lost,
) -> Iterator[tuple[Item, Result | Lost]]:
    """Items and their results in any order; ``lost`` where a worker process died twice."""
    n_workers = int(effective_n_jobs(n_jobs))
    if processes and n_workers > 1:
        return workers(n_workers).each(function, items, lost=lost)
    threads = Parallel(n_workers, backend="threading", return_as="generator_unordered")
    pairs: Iterator[tuple[Item, Result]] = threads(
        delayed(_paired)(function, item) for item in items
    )
    return pairs


def _paired(function: Callable[[Item], Result], item: Item) -> tuple[Item, Result]:
    return item, function(item)


def _attempt(task: Task, store: Store) -> str | None:
    """Run a task and save its result, where it runs; what went wrong, if anything."""
    try:
        store.save(task, run_task(task))
    except Exception:  # one task's failure is recorded, and the others go on
        return traceback.format_exc()
    return None
