"""Large data, each size in a process of its own so that its peak memory can be seen."""

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from credalchain import CredalChainClassifier, NaiveCredal


def make_dense(n: int, p: int = 100, m: int = 20) -> tuple[Any, Any]:
    """Codes 0..5 that depend on the labels, so that the chain has something to say."""
    rng = np.random.default_rng(0)
    Y = (rng.random((n, m)) < rng.uniform(0.1, 0.5, m)).astype(np.int8)
    X = rng.integers(0, 6, (n, p), dtype=np.uint8)
    for i in range(p):
        X[Y[:, i % m] == 1, i] //= 2
    return X, Y


def make_sparse(n: int, p: int, m: int, per_row: int = 100) -> tuple[Any, Any]:
    """0/1 features, ``per_row`` of them 1 in every row; labels with a few per cent of ones."""
    rng = np.random.default_rng(0)
    columns = (p * rng.random((n, per_row)) ** 2).astype(np.int32)  # some words are common
    X = sparse.csr_array(
        (np.ones(n * per_row, np.uint8), columns.ravel(), np.arange(0, n * per_row + 1, per_row)),
        shape=(n, p),
    )
    X.sum_duplicates()
    X.data[:] = 1
    Y = (rng.random((n, m), dtype=np.float32) < 0.03).astype(np.int8)
    for j in range(m):
        Y[columns[:, j % per_row] == j % p, j] = 1
    return X, Y


def _reset_peak() -> None:
    """Linux counts the peak from here on; otherwise a process starts with its parent's."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _memory(what: str) -> int:
    """VmRSS, memory now, or VmHWM, its peak, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no {what} in /proc/self/status: this benchmark needs Linux")


def _run(kind: str, n: int, p: int, m: int) -> dict[str, float]:
    X, Y = make_dense(n, p, m) if kind == "dense" else make_sparse(n, p, m)
    chain = CredalChainClassifier(base=NaiveCredal(discretizer=None), n_jobs=2, random_state=0)
    few = slice(0, 1000)
    chain.fit(X[few], Y[few]).predict_partial(X[few])  # compiled
    _reset_peak()
    before, started = _memory("VmRSS"), time.perf_counter()
    chain.fit(X, Y)
    fitted = time.perf_counter()
    labels = chain.predict_partial(X)
    done = time.perf_counter()
    codes = X.nbytes if kind == "dense" else X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    return {
        "fit": fitted - started,
        "predict": done - fitted,
        "peak_increase": _memory("VmHWM") - before,
        "peak": _memory("VmHWM"),
        "codes_and_outputs": codes + labels.nbytes,
    }


def measure(kind: str, n: int, p: int, m: int) -> dict[str, Any]:
    """Fit and predict all rows at this size; seconds and bytes."""
    done = subprocess.run(
        [sys.executable, __file__, kind, str(n), str(p), str(m)],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=True,
    )
    return {"kind": kind, "rows": n, "features": p, "labels": m, **json.loads(done.stdout)}


def theirs(n: int) -> float:
    """scikit-learn's seconds for the dense work, from a tenth of the rows."""
    from sklearn.multioutput import ClassifierChain
    from sklearn.naive_bayes import CategoricalNB

    X, Y = make_dense(n // 10)
    chain = ClassifierChain(CategoricalNB(min_categories=6), order="random", random_state=0)
    started = time.perf_counter()
    chain.fit(X, Y.astype(np.int64))
    chain.predict(X)
    return 10 * (time.perf_counter() - started)


SPARSE_SIZES = (
    *((n, 10_000, 100) for n in (10_000, 30_000, 100_000)),
    *((10_000, 10_000, m) for m in (300, 1000)),
    (100_000, 10_000, 1000),
)

if __name__ == "__main__":
    print(json.dumps(_run(sys.argv[1], *map(int, sys.argv[2:]))))
