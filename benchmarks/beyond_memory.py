"""Fit and predict on Parquet with Dask workers, against the same work in one memory.

    python benchmarks/beyond_memory.py [ROWS] [FOLDER]

Rows have 50 features and 20 labels, made up part by part. Both sides read the files and write the
answers; ratios are per core. 10^7 rows take 3 GB of disk, and 10 GB of memory in one process.
"""

import json
import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from credalchain import CredalChainClassifier

FEATURES, LABELS, ROWS_OF_A_PART = 50, 20, 250_000
X_NAMES, Y_NAMES = [f"f{i}" for i in range(FEATURES)], [f"y{j}" for j in range(LABELS)]


def write_part(folder: Path, number: int, n: int) -> None:
    rng = np.random.default_rng(number)
    X = rng.normal(size=(n, FEATURES)).astype(np.float32)
    Y = (X[:, :LABELS] + rng.normal(size=(n, LABELS)) > 0).astype(np.int8)
    table = pd.concat([pd.DataFrame(X, columns=X_NAMES), pd.DataFrame(Y, columns=Y_NAMES)], axis=1)
    table.to_parquet(folder / f"{number:05}.parquet", index=False)


def in_memory(folder: Path) -> dict[str, float]:
    """Seconds to read and fit, and to read, predict and write."""
    started = time.perf_counter()
    table = pd.read_parquet(folder)
    chain = CredalChainClassifier(random_state=0).fit(table[X_NAMES], table[Y_NAMES])
    fitted = time.perf_counter()
    rows = pd.read_parquet(folder, columns=X_NAMES)
    answers = pd.DataFrame(chain.predict_partial(rows), columns=Y_NAMES)
    answers.to_parquet(folder.parent / "answers.parquet", index=False)
    return {"fit": fitted - started, "predict": time.perf_counter() - fitted}


def with_workers(folder: Path, n_workers: int, out: Path) -> dict[str, float]:
    """The same with Dask; answers go to Parquet. Also the largest memory of a worker."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with (
        LocalCluster(n_workers=n_workers, memory_limit=0, **options) as cluster,
        Client(cluster) as client,
    ):
        for core, worker in enumerate(client.scheduler_info()["workers"]):
            client.run(keep_to_core, core, workers=[worker])
        client.run(warm_up)
        frame = dd.read_parquet(folder)
        started = time.perf_counter()
        chain = CredalChainClassifier(random_state=0).fit(frame[X_NAMES], frame[Y_NAMES])
        fitted = time.perf_counter()
        chain.predict_partial(frame[X_NAMES]).to_parquet(out)
        done = time.perf_counter()
        peak = max(client.run(peak_memory).values())
    return {"fit": fitted - started, "predict": done - fitted, "peak": peak}


def warm_up() -> None:
    """Compile, or load what was compiled."""
    X = np.random.default_rng(0).normal(size=(100, 3))
    CredalChainClassifier(random_state=0).fit(X, (X > 0).astype(int)).predict_partial(X)


def keep_to_core(number: int) -> None:
    """Reading Parquet would use all cores, whoever does it."""
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[number]})


def on_one_core(folder: Path) -> dict[str, float]:
    """:func:`in_memory` in a process of its own, so that workers do not inherit its peak."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        pool.submit(keep_to_core, 0).result()
        pool.submit(warm_up).result()
        return pool.submit(in_memory, folder).result()


def peak_memory() -> int:
    """Of this process, in bytes, as Linux tells it."""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return 1024 * int(line.split()[1])


def measure(n: int, place: str | None = None) -> dict[str, Any]:
    """``n`` rows in one memory, and with 1 and 2 workers."""
    found: dict[str, Any] = {"rows": n}
    with tempfile.TemporaryDirectory(dir=place) as own:
        folder = Path(own) / "rows"
        folder.mkdir()
        for number, first in enumerate(range(0, n, ROWS_OF_A_PART)):
            write_part(folder, number, min(ROWS_OF_A_PART, n - first))
        found["bytes"] = sum(file.stat().st_size for file in folder.iterdir())
        found["in memory"] = on_one_core(folder)
        for n_workers in (1, 2):
            found[f"{n_workers} workers"] = with_workers(
                folder, n_workers, Path(own) / f"out{n_workers}"
            )
    found["ratio"] = {
        work: found["in memory"][work] / found["1 workers"][work] for work in ("fit", "predict")
    }
    return found


def main() -> None:
    n = int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000
    print(json.dumps(measure(n, sys.argv[2] if len(sys.argv) > 2 else None), indent=2))


if __name__ == "__main__":
    main()
