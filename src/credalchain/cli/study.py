"""``credalchain run`` and ``credalchain report``."""

import time
from pathlib import Path
from typing import Annotated

import typer

from credalchain._utils.text import plural, visible
from credalchain.cli.console import note, stdout
from credalchain.datasets.registry import name_of
from credalchain.studies.results import Store
from credalchain.studies.running import run_study
from credalchain.studies.study_file import load_study
from credalchain.studies.study_page import findings_in_words, write_report
from credalchain.studies.trials import left_out_columns

StudyFile = Annotated[str, typer.Argument(metavar="STUDY", help="A study file (TOML).")]


def run(
    study: StudyFile,
    out: Annotated[Path, typer.Option(help="Folder of the results; run again to resume.")],
    jobs: Annotated[int, typer.Option(help="Processes; -1 for one per core.")] = -1,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODULE",
            help="A module you trust whose estimators the study may use, besides those of "
            "credalchain and scikit-learn; may be given several times.",
        ),
    ] = None,
) -> None:
    """Run a study, or resume an interrupted one.

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
    started, n_tasks = time.perf_counter(), store.n_open(plan)
    try:
        failed = run_study(plan, store, n_jobs=jobs)
    except KeyboardInterrupt:
        note(f"interrupted; what is done is in {out}: the same command goes on from there")
        raise
    seconds = time.perf_counter() - started
    note(
        f"{n_tasks - failed} of {plural(n_tasks, 'task')} done in {seconds:.1f} s -> {out}; next: "
        f"credalchain report {out}"
    )
    if failed:
        first = store.errors(plan)[0]
        others = "" if failed == n_tasks else ", the others are done"
        message = str(first["error"]).strip().splitlines()[-1]
        raise ValueError(
            f"{plural(failed, 'task')} failed{others}; the first: {first['dataset']}, "
            f"{first['method']}: {message} (all in {out / 'errors'})"
        )


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a run.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder of the report; DIR/report if not given.")
    ] = None,
) -> None:
    """Print the findings of a study; write tables, charts and an HTML report.

    Example: `credalchain report results/quick`
    """
    store = Store(folder)
    study = store.study()
    files = write_report(study, store, out or folder / "report")
    for line in findings_in_words(study, store):
        stdout().print(visible(line), soft_wrap=True)
    note(f"{plural(len(files), 'file')}; open {files[-1]}")
