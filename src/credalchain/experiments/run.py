"""Running a study: what is not done yet, in parallel, one file per task."""

import contextlib
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs

from credalchain.experiments.store import Store, dataset_facts
from credalchain.experiments.study import Study, StudyError
from credalchain.experiments.tasks import Task, expand
from credalchain.experiments.work import load_dataset, run_task

_MANY_TASKS = 4  # for each worker


@dataclass(frozen=True)
class Progress:
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
    on_task: Callable[[Progress], None] = lambda progress: None,
) -> int:
    """Run all tasks of a study that have no result yet; the number of tasks that failed.

    Every finished task is written at once, so a run can be killed at any moment and started
    again: it goes on with what is missing. Results do not depend on the number of workers.
    """
    tasks = [task for task in expand(study) if not store.is_done(task)]
    processes = _worth_processes(tasks, n_jobs)
    facts = _facts(study, n_jobs if processes else 1)
    for fact in facts:
        if fact["rows"] < study.folds:
            raise StudyError(
                f"{fact['dataset']} has {fact['rows']} rows, but folds is {study.folds}."
            )
    store.open(study)
    store.save_facts(facts)
    total = sum(1 for _ in expand(study))
    done, failed = total - len(tasks), 0
    for task, error in _outcomes(tasks, store, n_jobs, processes):
        if error is not None:
            failed += 1
            store.save_error(task, error)
        done += 1
        on_task(Progress(done, total, failed, task))
    return failed


def _worth_processes(tasks: list[Task], n_jobs: int | None) -> bool:
    """Processes take seconds to start, and then work side by side as threads never do."""
    return len(tasks) >= _MANY_TASKS * int(effective_n_jobs(n_jobs))


def _facts(study: Study, n_jobs: int | None) -> list[dict[str, Any]]:
    """Of the data sets that can be had; for the others their tasks will say what is wrong."""
    found = Parallel(n_jobs=n_jobs)(delayed(_fact)(name) for name in study.data)
    return [fact for fact in found if fact is not None]


def _fact(name: str) -> dict[str, Any] | None:
    with contextlib.suppress(OSError, ValueError, ImportError):
        return dataset_facts(load_dataset(name))
    return None


def _outcomes(
    tasks: list[Task], store: Store, n_jobs: int | None, processes: bool
) -> Iterator[tuple[Task, str | None]]:
    """Tasks as they finish, in any order, and what went wrong, if anything.

    Our own methods spend most of their time in kernels that run side by side, so for a few tasks
    threads will do, and start at once; anybody else's estimator gets processes.
    """
    ours = [task for task in tasks if task.method.kind != "estimator"]
    others = [task for task in tasks if task.method.kind == "estimator"]
    for some, backend in ((ours, "loky" if processes else "threading"), (others, "loky")):
        workers = Parallel(
            n_jobs=n_jobs,
            backend=backend,
            return_as="generator_unordered",
            pre_dispatch="2*n_jobs",
        )
        yield from workers(delayed(_attempt)(task, store) for task in some)


def _attempt(task: Task, store: Store) -> tuple[Task, str | None]:
    """Run a task and save its result, where it runs."""
    try:
        store.save(task, run_task(task))
    except Exception:  # one task's failure is recorded, and the others go on
        return task, traceback.format_exc()
    return task, None
