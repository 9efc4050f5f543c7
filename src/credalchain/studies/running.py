"""Running the open tasks of a study in parallel, with one result file per task."""

import contextlib
import multiprocessing
import os
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import cache, partial
from typing import Any, TypeVar

from joblib import Parallel, delayed, effective_n_jobs
from joblib.externals.loky import BrokenProcessPool

from credalchain._utils.progress import track
from credalchain._utils.text import plural
from credalchain.studies.results import Store, dataset_facts
from credalchain.studies.study_file import Study, StudyError
from credalchain.studies.tasks import expand
from credalchain.studies.trials import frequent_labels, load_dataset, run_task

Item = TypeVar("Item")
Result = TypeVar("Result")

_FEW_TASKS = 4  # for each worker: processes take seconds to start
_WORKER_DIED = (
    "The worker process of this task died, and so did another that tried it again: killed from "
    "outside (out of memory, usually) or by a crash. Run the study again to go on, with fewer "
    "workers (--jobs) if memory is short."
)


def run_study(study: Study, store: Store, *, n_jobs: int | None = None) -> int:
    """Run all tasks of a study that have no result yet.

    Every finished task is written immediately, so a run can be interrupted at any time; when
    started again, it resumes with the missing tasks. Results do not depend on the number of
    workers. A task whose worker process dies is tried once more, with a warning; after that it
    counts as failed.

    Parameters
    ----------
    study : Study
        The study to run.
    store : Store
        Folder to which results are written.
    n_jobs : int, default=None
        Number of workers, as in joblib, whose backends are used: inside
        ``joblib.parallel_config("dask")`` tasks run on a cluster. Data sets are read where tasks
        run.

    Returns
    -------
    int
        Number of tasks that failed; ``store.errors(study)`` says why.

    See Also
    --------
    load_study : Read a study from a file.
    write_report : Write the report of its results.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from credalchain.studies import Store, load_study, run_study
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "study.toml")
    ...     _ = file.write_text('''
    ... data = ["embedded:yeast"]
    ... cross_validation = { folds = 2 }
    ... method = [{ name = "chain", s = [0.0, 2.0] }]
    ... ''')
    ...     study, store = load_study(file), Store(folder)
    ...     n_failed = run_study(study, store)
    ...     results = store.results(study)
    >>> n_failed, len(results)
    (0, 4)
    """
    tasks = [task for task in expand(study) if not store.is_done(task)]
    n_workers = max(1, min(effective_n_jobs(n_jobs), len(tasks)))
    is_ours = all(task.method.kind != "estimator" for task in tasks)  # kernels release the GIL
    few = is_ours and len(tasks) < _FEW_TASKS * n_workers
    each = partial(_each, n_workers=n_workers, prefer="threads" if few else None)
    loaded = each(
        lambda source: dataset_facts(frequent_labels(load_dataset(source), study.max_labels)),
        study.data,
    )
    fact_of, reasons = {}, {}
    for source, fact, error in loaded:
        if fact is None:
            reasons[source] = error
        else:
            fact_of[source] = fact
    facts = [fact_of[source] for source in study.data if source in fact_of]
    for fact in facts:
        if fact["rows"] < study.folds:
            raise StudyError(
                f"{fact['dataset']} has {plural(fact['rows'], 'row')}, but folds is {study.folds}."
            )
    store.open(study)
    store.save_facts(facts)
    failed = 0
    for task in tasks:
        if task.data in reasons:  # reading the data once more would fail once more
            failed += 1
            store.save_error(task, reasons[task.data])
    tasks = [task for task in tasks if task.data not in reasons]
    with contextlib.closing(each(run_task, tasks)) as done:
        for task, records, error in track(done, "tasks", len(tasks)):
            if records is None:
                failed += 1
                store.save_error(task, error)
            else:
                store.save(task, records)
    return failed


def _each(
    function: Callable[[Item], Result], items: Iterable[Item], n_workers: int, prefer: str | None
) -> Generator[tuple[Item, Result | None, str], None, None]:
    """Yield items with their results as they come; None and the reason for those that fail.

    joblib ends all work when a worker process dies. What was under way is then tried once more,
    one by one, so that an item that ends its process is known, and the others go on.
    """
    waiting = enumerate(items)
    under_way: dict[int, Item] = {}

    def calls() -> Iterator[Any]:
        for key, item in waiting:
            under_way[key] = item
            yield delayed(_attempt)(function, key, item)

    while True:
        workers = Parallel(n_workers, batch_size=1, return_as="generator_unordered", prefer=prefer)
        try:
            for key, result, error in workers(calls()):
                yield under_way.pop(key), result, error
            return
        except BrokenProcessPool:
            warnings.warn(
                "A worker process died: it was killed from outside (out of memory, for example) "
                "or crashed. What was under way is tried once more.",
                RuntimeWarning,
                stacklevel=2,
            )
        for key, item in list(under_way.items()):
            try:
                [(_, result, error)] = Parallel(2)([delayed(_attempt)(function, key, item)])
            except BrokenProcessPool:
                result, error = None, _WORKER_DIED
            yield under_way.pop(key), result, error


def _attempt(
    function: Callable[[Item], Result], key: int, item: Item
) -> tuple[int, Result | None, str]:
    """Return the result of a call, or why there is none, so that the others go on."""
    _prepare_worker()
    try:
        return key, function(item), ""
    except Exception:
        return key, None, traceback.format_exc()


@cache
def _prepare_worker() -> None:
    """Prepare a process of joblib: leave interrupts to the parent, and end when it is gone."""
    parent = multiprocessing.parent_process()
    if parent is None or threading.current_thread() is not threading.main_thread():
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if os.name == "posix":  # elsewhere a process keeps the number of a parent that is gone
        threading.Thread(target=_end_with_parent, args=(parent.pid,), daemon=True).start()


def _end_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
