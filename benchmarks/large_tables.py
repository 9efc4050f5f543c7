"""The recommended model on large tables, each in a process of its own for its peak memory."""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scale import make_sparse
from scipy import sparse
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from credalchain import JointDecision, save_model
from credalchain.joint.growing import forecast_fit

DENSE = ((20_000, 20, 8), (100_000, 20, 8), (1_000_000, 20, 8))
SPARSE = ((5000, 499, 374), (7400, 1800, 159))
CORES = 2


def make_dense(n: int, p: int, m: int, seed: int = 0) -> tuple[Any, Any]:
    """Labels that depend on sums of columns, on waves, and on each other."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)).astype(np.float32)
    weights = np.random.default_rng(1).normal(size=(p, m)) / np.sqrt(p)
    noise = 0.6 * rng.normal(size=(n, 1)) + 0.4 * rng.normal(size=(n, m))
    scores = X @ weights + 0.5 * np.sin(2 * X[:, np.arange(m) % p]) + noise
    return X, (scores > np.linspace(-0.5, 1, m)).astype(np.int8)


def _make_words(n: int, p: int, m: int) -> tuple[Any, Any]:
    """As ``make_sparse``, in the types that liblinear takes; labels that are never 1 left out."""
    X, Y = make_sparse(n, p, m, 30)
    X = sparse.csr_array(
        (X.data.astype(np.float64), X.indices.astype(np.int32), X.indptr.astype(np.int32)), X.shape
    )
    return X, Y[:, Y.any(axis=0)]


def _run(whose: str, kind: str, n: int, p: int, m: int) -> dict[str, float]:
    X, Y = make_dense(n, p, m) if kind == "dense" else _make_words(n, p, m)
    if whose == "ours":
        warm = make_dense(200, 4, 3)
        JointDecision(n_jobs=CORES).fit(*warm).predict_partial(warm[0])  # compiles
        model: Any = JointDecision(n_jobs=CORES, random_state=0)
        predict = model.predict_partial
    elif kind == "dense":
        model = ExtraTreesClassifier(
            300, min_samples_leaf=2, max_features=0.5, bootstrap=True, n_jobs=CORES, random_state=0
        )
        predict = model.predict_proba
    else:
        model = OneVsRestClassifier(LogisticRegression(solver="liblinear"))
        predict = model.predict_proba
    started = time.perf_counter()
    model.fit(X, Y)
    fitted = time.perf_counter()
    new = make_dense(20_000, p, m, seed=5)[0] if kind == "dense" else X[:1000]
    predict(new)
    predicted = time.perf_counter()
    for row in range(20):
        predict(new[row : row + 1])
    found = {
        "fit": fitted - started,
        "predict": predicted - fitted,
        "one row": (time.perf_counter() - predicted) / 20,
        "peak": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "forecast": forecast_fit(n, p, m, CORES).seconds,
    }
    if whose == "ours":
        with tempfile.TemporaryDirectory() as folder:
            save_model(model, Path(folder) / "model")
            found["file"] = (Path(folder) / "model").stat().st_size
    return found


def measure(quick: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield both on the same rows, one after the other; ours alone where theirs takes hours."""
    sizes = [("dense", size) for size in (DENSE[:1] if quick else DENSE)]
    sizes += [("sparse", size) for size in (SPARSE[1:] if quick else SPARSE)]
    for kind, size in sizes:
        yield (
            f"{kind} {' x '.join(map(str, size))}",
            {
                whose: _in_process(whose, kind, *size)
                for whose in ("ours", "theirs")
                if whose == "ours" or size[0] < 1_000_000
            },
        )


def _in_process(*arguments: Any) -> dict[str, float]:
    command = [sys.executable, __file__, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    print(json.dumps(_run(*sys.argv[1:3], *map(int, sys.argv[3:]))))
