"""The yardstick: the study of the paper in vectorised NumPy and SciPy, as one would write it.

Counts are products of one-hot matrices, folds are subtracted, all values of s share one product
over the features, and the chain goes label by label for all values of s, both strategies and all
rows at once. Data, bins, folds, label orders and missing labels come from the package, so that
both ways do the same study; nothing else does. It is not used for anything but comparison.
"""

from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse

from credalchain.preprocessing import Discretizer
from credalchain.studies.study_file import Study
from credalchain.studies.tasks import damaged_labels, folds_of, order_of
from credalchain.studies.trials import load_dataset

EPSILON = 1e-3  # the "published" settings: 0 at s = 0
Counts = tuple[np.ndarray, np.ndarray, np.ndarray]


def run(study: Study, n_jobs: int) -> list[tuple[Any, ...]]:
    """(data, repetition, fold, level, strategy, s, set-accuracy, completeness, incorrectness)."""
    tasks = [(name, rep) for rep in range(study.repeats) for name in study.data]
    parts = Parallel(n_jobs=n_jobs)(delayed(_repetition)(study, *task) for task in tasks)
    return [record for part in parts for record in part]


def _repetition(study: Study, name: str, repetition: int) -> list[tuple[Any, ...]]:
    data = load_dataset(name)
    bins = Discretizer(study.methods[0].n_bins).fit(data.X)
    space = _Space(bins.n_categories_, skips_zero=sparse.issparse(data.X))
    one_hot = space.one_hot(bins.transform(data.X))
    folds = folds_of(study, name, data.labels, repetition)
    values = np.array(study.methods[0].s)
    records = []
    for level, Y in zip(
        study.levels, damaged_labels(study, name, data.labels, repetition), strict=True
    ):
        parts = [_count(one_hot[rows], Y[rows]) for rows in folds]
        whole = [sum(arrays) for arrays in zip(*parts, strict=True)]
        for fold, rows in enumerate(folds):
            counts = tuple(a - b for a, b in zip(whole, parts[fold], strict=True))
            order = order_of(study, name, repetition, fold, Y.shape[1])
            labels = _infer(one_hot[rows], space, counts, order, values)
            for (strategy, s), measures in _measures(labels, data.labels[rows], study).items():
                records.append((name, repetition, fold, level, strategy, s, *measures))
    return records


class _Space:
    """The columns of one-hot codes. Text skips code 0, which nearly every cell has."""

    def __init__(self, n_categories: np.ndarray, skips_zero: bool) -> None:
        self.k = n_categories
        self.skips_zero = skips_zero
        self.per_feature = n_categories - skips_zero
        self.first = np.cumsum(self.per_feature) - self.per_feature
        self.feature = np.repeat(np.arange(len(n_categories)), self.per_feature)

    def one_hot(self, codes: Any) -> Any:
        n, p = codes.shape
        if not self.skips_zero:
            columns = (self.first + codes).ravel()
            return sparse.csr_array((np.ones(n * p), columns, np.arange(0, n * p + 1, p)))
        codes = codes.tocsr()
        columns = self.first[codes.indices] + codes.data - 1
        shape = (n, len(self.feature))
        return sparse.csr_array((np.ones(len(columns)), columns, codes.indptr), shape=shape)


def _count(one_hot: Any, Y: np.ndarray) -> Counts:
    lanes = np.stack([Y == 0, Y == 1], axis=-1).astype(np.float64)  # n, m, 2
    n, m, _ = lanes.shape
    flat = lanes.reshape(n, 2 * m)
    feature = (one_hot.T @ flat).reshape(-1, m, 2)
    return lanes.sum(axis=0), feature, (flat.T @ flat).reshape(m, 2, m, 2)


def _weights(n: np.ndarray, d: np.ndarray, k: Any, s: np.ndarray) -> np.ndarray:
    """w_lower and w_upper, (..., values of s, 2), from n(v, a) and D, (..., 2)."""
    n, d, k = n[..., None], d[..., None], np.asarray(k)[..., None, None]
    epsilon = np.where(s == 0, 0.0, EPSILON)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = (1 - epsilon) / (d + s)
        lower = n * scale + epsilon / k  # ..., class, values of s
        upper = lower + s * scale
        no_data = (d == 0) & (s == 0)
        if no_data.any():
            lower, upper = (np.where(no_data, 1 / k, bound) for bound in (lower, upper))
        low = np.log(lower[..., 1, :] / upper[..., 0, :])
        high = np.log(upper[..., 1, :] / lower[..., 0, :])
    return np.stack([low, high], axis=-1)


def _feature_sums(test: Any, space: _Space, counts: Counts, s: np.ndarray) -> np.ndarray:
    """(n, m, values of s, 2): log-odds from the features, -inf winning over +inf."""
    label, feature, _ = counts
    m, q = len(label), len(s)
    d = np.broadcast_to(label, feature.shape)  # no feature value is missing in these data sets
    w = _weights(feature, d, space.k[space.feature, None], s).reshape(len(feature), -1)
    base = np.zeros((1, w.shape[1]))
    if space.skips_zero:
        zero = label - np.add.reduceat(feature, space.first, axis=0)
        base = _weights(zero, np.broadcast_to(label, zero.shape), space.k[:, None], s)
        base = base.reshape(len(zero), -1)

    def total(part: Any) -> np.ndarray:
        """A sum over the features of something finite."""
        if not space.skips_zero:
            return test @ part(w)
        at_zero = part(base)
        return at_zero.sum(axis=0) + test @ (part(w) - at_zero[space.feature])

    sums = total(lambda x: np.where(np.isfinite(x), x, 0.0))
    if (s == 0).any():
        below = total(lambda x: ((x == np.inf) | np.isnan(x)).astype(np.float64))
        above = total(lambda x: ((x == -np.inf) | np.isnan(x)).astype(np.float64))
        sums[below > 0] = np.inf
        sums[above > 0] = -np.inf
    return sums.reshape(test.shape[0], m, q, 2)


def _infer(
    test: Any, space: _Space, counts: Counts, order: np.ndarray, s: np.ndarray
) -> np.ndarray:
    """(strategies, values of s, n, m) in {0, 1, -1}."""
    label, _, pair = counts
    n, m, q = test.shape[0], len(label), len(s)
    sums = _feature_sums(test, space, counts, s)
    prior = np.log((label[:, 1] + 1) / (label[:, 0] + 1))
    sums = np.moveaxis(sums + prior[:, None, None], 2, 0)  # values of s, n, m, 2
    told = _weights(pair, pair.sum(axis=1)[:, None], 2, s)  # k, b, j, values of s, bound
    told[label.sum(axis=1) == 0] = 0.0
    table = np.moveaxis(told, 3, 0)[None].repeat(2, axis=0)  # strategies, values, k, b, j, bound
    star = np.empty((2, q, m, 1, m, 2))
    star[0, :, :, 0, :, 0] = table[0, ..., 0].min(axis=2)
    star[0, :, :, 0, :, 1] = np.fmax.reduce(table[0, ..., 1], axis=2)
    star[1] = 0.0
    table = np.concatenate([table, star], axis=3)[:, :, order][:, :, :, :, order]
    state = np.broadcast_to(sums[None], (2, *sums.shape))[:, :, :, order].copy()
    labels = np.empty((2, q, n, m), dtype=np.int8)
    which, value = np.ogrid[:2, :q]
    with np.errstate(invalid="ignore"):
        for t in range(m):
            y = np.where(state[:, :, :, t, 0] > 0, 1, np.where(state[:, :, :, t, 1] < 0, 0, -1))
            if label[order[t]].sum() == 0:
                y[:] = -1
            labels[:, :, :, order[t]] = y
            column = np.where(y == -1, 2, y)
            state[:, :, :, t + 1 :] += table[which[..., None], value[..., None], t, column, t + 1 :]
            undefined = np.isnan(state[:, s == 0, :, t + 1 :])  # inf - inf, at s = 0 only
            if undefined.any():
                state[:, s == 0, :, t + 1 :] = np.where(
                    undefined, -np.inf, state[:, s == 0, :, t + 1 :]
                )
    return labels


def _measures(labels: np.ndarray, truth: np.ndarray, study: Study) -> dict[Any, tuple[float, ...]]:
    answered = labels != -1
    wrong = (answered & (labels != truth)).sum(axis=-1)
    given = answered.sum(axis=-1)
    rows = {
        (strategy, s): (
            float((wrong[i, j] == 0).mean()),
            float((given[i, j] / truth.shape[1]).mean()),
            float((wrong[i, j] / np.maximum(given[i, j], 1)).mean()),
        )
        for i, strategy in enumerate(study.methods[0].strategies)
        for j, s in enumerate(study.methods[0].s)
    }
    return rows
