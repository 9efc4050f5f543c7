"""What a user waits for: a fresh process, and one row at a time."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from splits import Split
from timing import fastest

from credalchain import CredalChainClassifier, NaiveCredal
from credalchain.preprocessing import validate_table

_FIRST_CALLS = """
import json, time
import sklearn.multioutput, sklearn.naive_bayes, numpy as np
started = time.perf_counter()
from credalchain import CredalChainClassifier
rng = np.random.default_rng(0)
X, Y = rng.normal(size=(200, 10)), rng.integers(0, 2, (200, 4))
imported = time.perf_counter()
CredalChainClassifier(s=1.0).fit(X, Y).infer(X).interval
done = time.perf_counter()
print(json.dumps({"import": imported - started, "calls": done - imported}))
"""


def first_calls() -> dict[str, Any]:
    """Import, fit and infer in a fresh process, beyond importing scikit-learn, in seconds.

    Cold: every kernel must be compiled. Then with the compilation cache that the cold run left.
    """
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        runs = [
            json.loads(
                subprocess.run(
                    [sys.executable, "-c", _FIRST_CALLS],
                    env=environment,
                    cwd=Path(__file__).parent,
                    capture_output=True,
                    text=True,
                    check=True,
                ).stdout
            )
            for _ in range(4)
        ]
    cold, warm = runs[0], min(runs[1:], key=lambda run: run["import"] + run["calls"])
    return {
        "cold": cold["import"] + cold["calls"],
        "cached": warm["import"] + warm["calls"],
    }


def one_row(split: Split) -> dict[str, float]:
    """Seconds of ``infer`` for a single row, and of the checks of the input in it."""
    chain = CredalChainClassifier(base=NaiveCredal(discretizer=None), order=split.order)
    chain.fit(split.training, split.labels)
    row = split.test[:1]
    return {
        "call": fastest(lambda: chain.infer(row)),
        "checks": fastest(lambda: validate_table(chain, row, reset=False)),
    }
