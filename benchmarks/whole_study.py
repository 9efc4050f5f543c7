"""The study of the paper, from ARFF files to results on disk, ours and in NumPy."""

import resource
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy_study
import pandas as pd
from joblib.externals.loky import get_reusable_executor

from credalchain.studies.results import Store
from credalchain.studies.running import run_study
from credalchain.studies.study_file import load_study
from credalchain.studies.trials import load_dataset

STUDY = Path(__file__).parent.parent / "studies" / "paper.toml"
MEASURES = ("set_accuracy", "completeness", "incorrectness")
N_JOBS = 2


def ours(settings: str, repeats: int) -> dict[str, Any]:
    """Seconds of our way, with compiled kernels on disk and nothing else kept from before."""
    study = replace(load_study(STUDY), settings=settings, repeats=repeats)
    with tempfile.TemporaryDirectory() as folder:
        warm = replace(study, repeats=1, data=("emotions", "medical"), folds=2)
        run_study(warm, Store(Path(folder) / "warm"), n_jobs=N_JOBS)
        load_dataset.cache_clear()
        _end_workers()
        busy, started = _cpu(), time.perf_counter()
        store = Store(Path(folder) / "study")
        failed = run_study(study, store, n_jobs=N_JOBS)
        seconds = time.perf_counter() - started
        _end_workers()
        return {
            "seconds": seconds,
            "cpu": _cpu() - busy,
            "failed": failed,
            "results": store.results(study),
        }


def ours_again(settings: str, repeats: int) -> float:
    """Seconds of our way where it was run before in the same session: workers are there."""
    study = replace(load_study(STUDY), settings=settings, repeats=repeats)
    with tempfile.TemporaryDirectory() as folder:
        run_study(replace(study, seed=1, repeats=2), Store(Path(folder) / "warm"), n_jobs=N_JOBS)
        started = time.perf_counter()
        run_study(study, Store(Path(folder) / "study"), n_jobs=N_JOBS)
        return time.perf_counter() - started


def yardstick(repeats: int) -> dict[str, Any]:
    """The same in NumPy, `published` settings."""
    study = replace(load_study(STUDY), repeats=repeats)
    load_dataset.cache_clear()
    _end_workers()
    started = time.perf_counter()
    records = numpy_study.run(study, N_JOBS)
    seconds = time.perf_counter() - started
    keys = ["dataset", "repetition", "fold", "missing", "strategy", "s"]
    return {"seconds": seconds, "results": pd.DataFrame(records, columns=[*keys, *MEASURES])}


def largest_difference(left: pd.DataFrame, right: pd.DataFrame) -> float:
    """Between the two ways, over all measures of all folds: they should do the same study."""
    keys = ["dataset", "repetition", "fold", "missing", "strategy", "s"]
    columns = list(MEASURES)
    a, b = (frame.set_index(keys)[columns].sort_index() for frame in (left, right))
    b = b.loc[a.index]
    return float((a - b).abs().to_numpy().max())


def _end_workers() -> None:
    """End joblib's, so that both ways start theirs, and what they used is known."""
    get_reusable_executor().shutdown(wait=True)


def _cpu() -> float:
    """Of this process and of workers that have ended."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)
