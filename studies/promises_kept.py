"""Calibrate promises many times, on rows whose truth is known, and count those that are broken.

A model answers a large pool of rows at every value of its caution, once. Every split draws its
calibration rows from the pool with replacement, so that the pool is the population and the risk of
its rows the truth. Everything else is PromisedClassifier as users call it:

    python studies/promises_kept.py promises-kept.csv

takes about two hours with 1,000 splits; ``--splits 100`` is quick. ``--only`` takes one part:
"power", "tags", "frozen", "mapie"
(which needs mapie) or "normal".
"""

import argparse
import sys
import time

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from credalchain import JointDecision, PromisedClassifier
from credalchain.datasets import load
from credalchain.exceptions import data_warnings_ignored

N_VALUES = 80
TAGS = {"positive_error": 0.1, "missed_positives": 0.1}


class Recorded(BaseEstimator):
    """Answers that were recorded: X is the number of a row."""

    caution_parameter = "value"
    larger_is_more_cautious = True
    nested_ = True

    def __init__(self, path=None, truth=None, value=0.0):
        self.path = path
        self.truth = truth
        self.value = value

    def __sklearn_is_fitted__(self):
        return True

    def fit(self, X, Y):
        """Raise: there is nothing to fit."""
        raise AssertionError("recorded answers are not fitted")

    @property
    def label_names_(self):
        """Names of the labels."""
        return np.array([f"label{j}" for j in range(self.truth.shape[1])])

    def predict_path(self, X, values):
        """Return what was recorded."""
        rows = np.asarray(X)[:, 0].astype(int)
        return self.path[np.asarray(values, int)][:, rows]

    def read_labels(self, Y):
        """Return the labels as they are."""
        return np.asarray(Y, np.int8)


def record(model, X, Y, look):
    """Return the answers of a fitted model to X, at values that space answers and yes evenly."""
    values = np.asarray(model.caution_grid)
    path = model.predict_path(look, values)
    chosen = []
    for share in (path != -1).mean(axis=(1, 2)), (path == 1).mean(axis=(1, 2)):
        wanted = np.linspace(share.max(), share.min(), N_VALUES)
        chosen.extend(np.abs(share - at).argmin() for at in wanted)
    return Recorded(model.predict_path(X, values[np.unique(chosen)]), np.asarray(Y, np.int8))


def calibrate(pool, promise, n_rows, n_splits, **params):
    """Return means over splits of what a promise answers and risks on all rows of the pool."""
    truth, found = pool.truth, []
    numbers, values = np.arange(len(truth))[:, None], np.arange(len(pool.path))
    for split in range(n_splits):
        rows = np.random.default_rng(split).integers(0, len(truth), n_rows)
        promised = PromisedClassifier(
            pool, promise, calibration="prefit", values=values, random_state=split, **params
        )
        # every row drawn counts, also where it repeats another
        with data_warnings_ignored():
            promised.fit(numbers[rows], truth[rows], groups=np.arange(n_rows))
            answers = promised.predict_partial(numbers)
        yes, no, positive = answers == 1, answers == 0, truth == 1
        wrong = (yes & ~positive) | (no & positive)
        has_positive = positive.any(axis=1)
        missed = (no & positive).sum(axis=1)[has_positive] / positive.sum(axis=1)[has_positive]
        seen = {
            "row_error": wrong.any(axis=1).mean(),
            "selective_error": wrong.sum() / max((yes | no).sum(), 1),
            "positive_error": (yes & ~positive).sum() / max(yes.sum(), 1),
            "missed_positives": missed.mean(),
        }
        one = {
            "broken": any(seen[name] > level + 1e-12 for name, level in promise.items()),
            "anything": (yes | no).any() if "positive_error" not in promise else yes.any(),
            "answered": (yes | no).mean(),
            "found": (yes & positive).sum() / positive.sum(),
            "ruled out a row": no.sum(axis=1).mean(),
            "questions a row": (answers == -1).sum(axis=1).mean(),
            "tags set a row": yes.sum(axis=1).mean(),
        }
        found.append({**one, **{name: seen[name] for name in promise}})
    return pd.DataFrame(found).mean().to_dict()


def make_text(n_rows, n_labels, tags_per_row, rng):
    """Make rows of word counts, sparse, and rare labels that come in themes.

    A label has ten words of its own, which appear in nine of ten texts that carry it, and sometimes
    in others.
    """
    n_themes = max(4, n_labels // 5)
    frequency = 1 / np.arange(1, n_labels + 1) ** 0.7
    own_theme = rng.integers(0, n_themes, n_labels)
    theme = rng.integers(0, n_themes, n_rows)
    weight = frequency * np.where(own_theme == theme[:, None], 12.0, 1.0)
    weight *= tags_per_row / (frequency * (12 / n_themes + 1)).sum()
    Y = (rng.random((n_rows, n_labels)) < 1 - np.exp(-weight)).astype(np.int8)
    words = rng.poisson(3.0 / np.arange(10, 2010) ** 0.8, (n_rows, 2000))
    shown = np.repeat(Y & (rng.random(Y.shape) < 0.9), 10, axis=1)
    own = rng.poisson(np.where(shown, 0.5, 0.005))
    return sp.csr_array(np.hstack([words, own]), dtype=np.float64), Y.astype(np.int64)


def yeast_pool():
    """Record a joint decision that learned 800 rows of yeast; the other rows are the pool."""
    data = load("yeast")
    X, Y = np.asarray(data.X, float), np.asarray(data.Y).astype(int)
    rows = np.random.default_rng(0).permutation(len(X))
    train, rest = rows[:800], rows[800:]
    pools = {}
    for loss in ("row", "cell"):
        model = JointDecision(loss=loss, random_state=0).fit(X[train], Y[train])
        pools[loss] = record(model, X[rest], Y[rest], X[rest])
    return pools


def text_pool(n_labels, tags_per_row, n_pool):
    """Record a layer over a frozen logistic regression on text."""
    X, Y = make_text(3300 + n_pool, n_labels, tags_per_row, np.random.default_rng(n_labels))
    model = OneVsRestClassifier(LogisticRegression(solver="liblinear", C=3.0))
    model.fit(X[:2000], Y[:2000])
    layer = JointDecision(FrozenEstimator(model), loss="bands", random_state=0)
    layer.fit(X[2000:3000], Y[2000:3000])
    # 300 rows, as a pilot of 2,000 rows has, say what a wrong no and a wrong yes cost
    promised = PromisedClassifier(layer, TAGS, confidence=0.9, calibration="prefit", random_state=0)
    layer = promised.fit(X[3000:3300], Y[3000:3300]).estimator_
    return record(layer, X[3300:], Y[3300:], X[3000:3300])


def frozen_parts():
    """Fit logistic regression to 800 rows of yeast; return it, 300 rows for a layer, and others."""
    data = load("yeast")
    X, Y = np.asarray(data.X, float), np.asarray(data.Y).astype(int)
    rows = np.random.default_rng(0).permutation(len(X))
    train, layer_rows, rest = np.split(rows, [800, 1100])
    model = make_pipeline(
        StandardScaler(), OneVsRestClassifier(LogisticRegression(solver="liblinear"))
    ).fit(X[train], Y[train])
    return model, (X[layer_rows], Y[layer_rows]), (X[rest], Y[rest])


def power(n_splits):
    """Yield promises with confidence 0.9 on yeast, at 500, 2,000 and 5,000 rows."""
    pools = yeast_pool()
    for name, loss in (
        ("row_error", "row"),
        ("missed_positives", "cell"),
        ("selective_error", "cell"),
        ("positive_error", "cell"),
    ):
        for level in (0.05, 0.1, 0.2):
            for n_rows in (500, 2000, 5000):
                promise = {name: level}
                found = calibrate(pools[loss], promise, n_rows, n_splits, confidence=0.9)
                yield {"data": "yeast", "promise": str(promise), "rows": n_rows, **found}


def tags(n_splits):
    """Yield the promise about both sides, on made-up text with 20 and with 150 labels."""
    for n_labels, tags_per_row, n_pool in ((20, 1.5, 6000), (150, 7, 3000)):
        pool = text_pool(n_labels, tags_per_row, n_pool)
        for n_rows in (500, 2000):
            found = calibrate(pool, TAGS, n_rows, n_splits, confidence=0.9)
            yield {
                "data": f"text, {n_labels} labels, {pool.truth.sum(axis=1).mean():.1f} tags a row",
                "promise": str(TAGS),
                "rows": n_rows,
                **found,
            }


def frozen(n_splits):
    """Yield promises over a frozen model, on average and with confidence."""
    model, (X_layer, Y_layer), (X, Y) = frozen_parts()
    layer = JointDecision(FrozenEstimator(model), random_state=0).fit(X_layer, Y_layer)
    pool = record(layer, X, Y, X_layer)
    for confidence in (None, 0.9):
        for promise in ({"row_error": 0.3}, {"missed_positives": 0.1}):
            found = calibrate(pool, promise, 300, n_splits, confidence=confidence)
            how = "on average" if confidence is None else "with confidence 0.9"
            yield {"data": f"yeast, frozen, {how}", "promise": str(promise), "rows": 300, **found}


def mapie(n_splits):
    """Yield MAPIE's control of recall beside ours, with one threshold for a frozen model."""
    from mapie.risk_control import MultiLabelClassificationController

    model, _, (X, Y) = frozen_parts()
    positive = Y.any(axis=1)
    p, truth = model.predict_proba(X)[positive], Y[positive]
    thresholds = np.arange(0, 1, 0.01)
    path = (p > thresholds[::-1, None, None]).astype(np.int8)
    missed = (((path == 0) & (truth == 1)).sum(axis=2) / truth.sum(axis=1)).mean(axis=1)[::-1]
    pool, found = Recorded(path, truth.astype(np.int8)), []
    for split in range(n_splits):
        rows = np.random.default_rng(split).integers(0, len(truth), 300)
        theirs = MultiLabelClassificationController(
            lambda X: X, risk="recall", method="crc", target_level=0.9, predict_params=thresholds
        ).calibrate(p[rows], truth[rows])
        their_index = int(np.rint(100 * np.ravel(theirs.best_predict_param)[0]))
        ours = PromisedClassifier(
            pool, {"missed_positives": 0.1}, calibration="prefit", values=np.arange(100)
        ).fit(rows[:, None], truth[rows], groups=np.arange(300))
        our_index = 99 - int(ours.values_[0])
        found.append((our_index == their_index, missed[our_index], missed[their_index]))
    same, our_risk, their_risk = np.mean(found, axis=0)
    about = {"data": "yeast, frozen, one threshold", "promise": "{'missed_positives': 0.1}"}
    yield {**about, "rows": 300, "same": same, "ours": our_risk, "MAPIE": their_risk}


def normal(n_splits):
    """Yield the exact test and that by the normal distribution, on made-up text."""
    for n_labels, tags_per_row in ((20, 1.5), (150, 7)):
        pool = text_pool(n_labels, tags_per_row, 3000)
        for promise, sizes in (
            ({"positive_error": 0.1}, (100, 300, 500, 1000, 2000)),
            ({"selective_error": 0.02}, (300, 500, 1000, 2000)),  # 100 could not show it
        ):
            for n_rows in sizes:
                for guarantee in ("exact", "asymptotic"):
                    how = {"confidence": 0.9, "guarantee": guarantee}
                    found = calibrate(pool, promise, n_rows, n_splits // (n_labels // 20), **how)
                    about = {"data": f"text, {n_labels} labels", "guarantee": guarantee}
                    yield {**about, "promise": str(promise), "rows": n_rows, **found}


PARTS = {"power": power, "tags": tags, "frozen": frozen, "mapie": mapie, "normal": normal}


def main():
    """Write the table of all parts, row by row."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", help="a CSV file")
    parser.add_argument("--splits", type=int, default=1000, help="calibrations (1000)")
    parser.add_argument("--only", choices=[*PARTS], help="one part")
    chosen = parser.parse_args()
    rows = []
    for name in [chosen.only] if chosen.only else PARTS:
        start = time.time()
        for row in PARTS[name](chosen.splits):
            rows.append({"part": name, **row})
            pd.DataFrame(rows).to_csv(chosen.out, index=False, float_format="%.4f")
            print(f"{time.time() - start:6.0f} s ", rows[-1], file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
