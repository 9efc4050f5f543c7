"""The study of the paper, from ARFF files to results on disk, ours and in NumPy."""

import resource
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy_study
import pandas as pd

from credalchain.experiments import Store, load_study, run_study
from credalchain.experiments.work import load_dataset

STUDY = Path(__file__).parent.parent / "studies" / "paper.toml"
MEASURES = ("set_accuracy", "completeness", "incorrectness")
N_JOBS = 2


def ours(settings: str, repeats: int) -> dict[str, Any]:
    """Seconds of our way, with compiled kernels and nothing else kept from before."""
    study = replace(load_study(STUDY), settings=settings, repeats=repeats)
    with tempfile.TemporaryDirectory() as folder:
        warm = replace(study, repeats=1, data=("emotions", "medical"), folds=2)
        run_study(warm, Store(Path(folder) / "warm"), n_jobs=N_JOBS)
        load_dataset.cache_clear()
        busy, started = _cpu(), time.perf_counter()
        store = Store(Path(folder) / "study")
        failed = run_study(study, store, n_jobs=N_JOBS)
        seconds = time.perf_counter() - started
        return {
            "seconds": seconds,
            "cpu": _cpu() - busy,
            "failed": failed,
            "results": store.results(study),
        }


def yardstick(repeats: int) -> dict[str, Any]:
    """The same in NumPy, `published` settings; its CPU time is that of its worker processes."""
    study = replace(load_study(STUDY), repeats=repeats)
    load_dataset.cache_clear()
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


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
