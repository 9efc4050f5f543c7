"""Chains of forests: the compiled traversal against scikit-learn's, and what whole chains take."""

import time
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.utils import _safe_indexing as take_rows
from timing import fastest

from credalchain import CredalChainClassifier, CredalForest
from credalchain.chains.forest import ForestChainModel, PackedForest
from credalchain.datasets import load_mulan
from credalchain.labels import UNDECIDED
from credalchain.preprocessing import TableEncoder

VALUES = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0)


def traversal() -> dict[str, float]:
    """Seconds for all rows of yeast and 100 trees, nothing left open, on one core."""
    data = load_mulan("yeast")
    X = np.ascontiguousarray(data.X, dtype=np.float32)
    forest = ExtraTreesClassifier(n_estimators=100, min_samples_leaf=2, random_state=0)
    forest.fit(X, data.labels[:, 0])
    packed = PackedForest.of(forest, X.shape[1], np.empty(0, dtype=np.int64))
    model = ForestChainModel([packed], TableEncoder.learn(X, one_hot=False))
    rows = np.arange(len(X))
    history = np.full(data.labels.shape, UNDECIDED, dtype=np.int8)
    return {
        "ours": fastest(lambda: model.bounds_of_rows(X, 0, rows, history, 1.0, False)),
        "theirs": fastest(lambda: forest.predict_proba(X)),
    }


def one_fold(name: str) -> dict[str, Any]:
    """Seconds to fit a chain of forests to nine tenths of a data set and answer the rest."""
    data = load_mulan(name)
    shuffled = np.random.default_rng(0).permutation(len(data.labels))
    test, training = np.split(shuffled, [len(shuffled) // 10])
    chain = CredalChainClassifier(CredalForest(), n_jobs=2, random_state=0)
    started = time.perf_counter()
    chain.fit(take_rows(data.X, training), data.labels[training])
    fitted = time.perf_counter()
    chain.predict_path(take_rows(data.X, test), VALUES)
    return {
        "labels": data.labels.shape[1],
        "fit": fitted - started,
        "predict": time.perf_counter() - fitted,
    }
