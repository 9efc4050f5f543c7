"""``credalchain run`` and ``credalchain report``."""

import contextlib
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from credalchain._utils.text import plural, visible
from credalchain.cli.console import is_quiet, note, stdout
from credalchain.datasets.registry import name_of
from credalchain.experiments.cluster import Cluster
from credalchain.experiments.run import RunProgress, run_study
from credalchain.experiments.store import Store
from credalchain.experiments.study import load_study
from credalchain.experiments.work import left_out_columns
from credalchain.reporting.report import findings_in_words, write_report

StudyFile = Annotated[str, typer.Argument(metavar="STUDY", help="A study file (TOML).")]


def run(
    study: StudyFile,
    out: Annotated[Path, typer.Option(help="Folder for the results; run again to go on.")],
    jobs: Annotated[int, typer.Option(help="Processes; -1 for one per core.")] = -1,
    scheduler: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Run on the Dask cluster of this scheduler.")
    ] = "",
    workers: Annotated[
        int, typer.Option(help="Run on a Dask cluster of so many processes here.", min=0)
    ] = 0,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODULE",
            help="A module you trust whose estimators the study may use, besides those of "
            "credalchain and scikit-learn; may be given several times.",
        ),
    ] = None,
) -> None:
    """Run a study, or go on with one that was interrupted.

    Example: `credalchain run studies/quick.toml --out results/quick`
    """
    plan = load_study(study, allow or ())
    for source in plan.data:
        left_out = left_out_columns(source)
        if left_out:
            note(
                f"note: {name_of(source)}: left out as names, texts or numbers of rows: {left_out}"
            )
    store = Store(out)
    started = time.perf_counter()
    if scheduler and workers:
        raise ValueError("--scheduler is a cluster that runs, --workers a new one: give one.")
    on: Any = contextlib.nullcontext()
    if scheduler or workers:
        on = Cluster(scheduler or None, workers or None)
    try:
        with on as cluster, _ProgressDisplay() as show:
            failed = run_study(plan, store, n_jobs=jobs, cluster=cluster, on_task=show)
    except KeyboardInterrupt:
        note(f"interrupted; what is done is in {out}: the same command goes on from there")
        raise
    note(f"done in {time.perf_counter() - started:.1f} s -> {out}; next: credalchain report {out}")
    if failed:
        first = store.errors(plan)[0]
        message = str(first["error"]).strip().splitlines()[-1]
        raise ValueError(
            f"{plural(failed, 'task')} failed, the others are done; the first: {first['dataset']}, "
            f"{first['method']}: {message} (all in {out / 'errors'})"
        )


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a run.")],
    out: Annotated[
        Path | None, typer.Option(help="Where the report goes; DIR/report if not given.")
    ] = None,
) -> None:
    """What a study found: the main findings here; tables, figures and one page in a folder.

    Example: `credalchain report results/quick`
    """
    store = Store(folder)
    study = store.study()
    files = write_report(study, store, out or folder / "report")
    for line in findings_in_words(study, store):
        stdout().print(visible(line), soft_wrap=True)
    note(f"{plural(len(files), 'file')}; open {files[-1]}")


class _ProgressDisplay:
    """A bar with rate and time left on a terminal, a line now and then elsewhere."""

    def __enter__(self) -> Any:
        self._bar: Bar | None = None
        self._last, self._started = 0.0, time.perf_counter()
        self._first: int | None = None
        if sys.stderr.isatty() and not is_quiet():
            name = TextColumn("{task.description}", markup=False)
            columns = (name, BarColumn(), MofNCompleteColumn())
            rate = TextColumn("{task.fields[rate]}")
            self._bar = Bar(*columns, rate, TimeRemainingColumn(), console=Console(stderr=True))
            self._bar.start()
            self._line = self._bar.add_task("tasks", total=None, rate="")
        return self._show

    def __exit__(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _show(self, progress: RunProgress) -> None:
        self._first = progress.done - 1 if self._first is None else self._first
        seconds = max(time.perf_counter() - self._started, 1e-9)
        per_minute = 60 * (progress.done - self._first) / seconds
        if self._bar is not None:
            self._bar.update(
                self._line,
                completed=progress.done,
                total=progress.total,
                rate=f"{per_minute:.1f} a minute",
                description=visible(f"{progress.task.dataset} {progress.task.repetition}"),
            )
        elif seconds - self._last > 5 or progress.done == progress.total:
            self._last = seconds
            left = (progress.total - progress.done) / per_minute
            note(
                f"{progress.done} of {plural(progress.total, 'task')}, {progress.failed} failed, "
                f"{per_minute:.1f} a minute, {left:.1f} minutes left"
            )
