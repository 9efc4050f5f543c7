"""Compare the width of intervals with precise probabilities, for choosing what to leave open.

The same fitted model leaves labels open in two ways: where its interval holds one half (s grows),
and where its precise probability (s = 0) is near one half (Chow's rule). Training data is damaged
in one way at a time, or test rows have categories that no training row has. With CREDALCHAIN_DATA
set, or a network:

    python studies/when_intervals_help.py when-intervals-help.csv when-intervals-help.svg
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.preprocessing import OneHotEncoder

from credalchain import CredalChainClassifier, CredalJointForest
from credalchain.datasets import load
from credalchain.exceptions import data_warnings_ignored
from credalchain.rivals import RejectOption

N_TRAIN, N_TEST, N_SPLITS = 390, 200, 5
S = np.append(0.0, np.geomspace(1e-3, 300, 60))
COSTS = np.linspace(0, 0.5, 101)
NEW = "4"  # a category that no training row has
SHARES = np.arange(0.3, 1.001, 0.05)  # of labels answered
MODELS = {
    "chain": CredalChainClassifier(random_state=0),
    "forest": CredalJointForest(members=[], random_state=0),
    "forest, conservative": CredalJointForest(members=[], missing="conservative", random_state=0),
}


def keep_all(X, Y, X_test, rng):
    """Return the training rows as they are."""
    return X, Y, X_test


def few_rows(X, Y, X_test, rng):
    """Keep 60 rows."""
    return X[:60], Y[:60], X_test


def missing(X, Y, X_test, rng):
    """Lose 60 % of the labels, at random."""
    return X, np.where(rng.uniform(size=Y.shape) < 0.6, -1, Y), X_test


def vanished(X, Y, X_test, rng):
    """Lose 70 % of the ones, and no zeros."""
    return X, np.where((rng.uniform(size=Y.shape) < 0.7) & (Y == 1), -1, Y), X_test


def noise(X, Y, X_test, rng):
    """Flip 20 % of the labels."""
    return X, np.where(rng.uniform(size=Y.shape) < 0.2, 1 - Y, Y), X_test


def shift(X, Y, X_test, rng):
    """Learn from the half of the rows with small values along a random direction."""
    Z = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9) @ rng.normal(size=X.shape[1])
    rows = np.median(Z) >= Z
    return X[rows], Y[rows], X_test


def unseen(X, Y, X_test, rng):
    """Make features categories, four each; half of the test rows have new ones in 30 % of them."""
    cuts = np.quantile(X, [0.25, 0.5, 0.75], axis=0)
    train, test = ((Z[:, None] > cuts).sum(axis=1).astype(str) for Z in (X, X_test))
    rows = rng.uniform(size=(len(test), 1)) < 0.5
    test[rows & (rng.uniform(size=test.shape) < 0.3)] = NEW
    return pd.DataFrame(train), Y, pd.DataFrame(test)


SCENARIOS = {
    "as it is": keep_all,
    "60 rows": few_rows,
    "60 % missing": missing,
    "70 % of ones lost": vanished,
    "20 % flipped": noise,
    "training half shifted": shift,
    "unseen categories": unseen,
}


def set_accuracy_along(path, Y):
    """Return the share of rows without a wrong answer, at each share of labels answered."""
    answered = (path != -1).mean(axis=(1, 2))
    right = ((path == -1) | (path == Y)).all(axis=2).mean(axis=1)
    order = np.argsort(answered, kind="stable")
    low, high = answered.min() - 1e-9, answered.max() + 1e-9
    reached = (low <= SHARES) & (high >= SHARES)
    return np.where(reached, np.interp(SHARES, answered[order], right[order]), np.nan)


def measure(data, seed):
    """Yield a record for each scenario, model and way to choose, from one split."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(data.labels))
    X, Y = np.asarray(data.X, dtype=float), data.labels
    train, test = rows[:N_TRAIN], rows[-N_TEST:]
    for scenario, damage in SCENARIOS.items():
        rng = np.random.default_rng([seed, 1])
        X_train, Y_train, X_test = damage(X[train], Y[train], X[test], rng)
        for name, model in MODELS.items():
            if isinstance(X_train, pd.DataFrame) and name != "chain":  # forests want numbers
                one_hot = OneHotEncoder(sparse_output=False, handle_unknown="ignore").fit(X_train)
                X_train, X_test = one_hot.transform(X_train), one_hot.transform(X_test)
            if name == "forest, conservative" and (Y_train != -1).all():
                continue  # the same as the forest
            with data_warnings_ignored():
                reject = RejectOption(model).fit(X_train, Y_train)
                ways = {
                    "width": reject.scores_.predict_path(X_test, S),
                    "distance": reject.predict_path(X_test, COSTS),
                }
            if scenario == "unseen categories" and name == "chain":  # what needs no intervals
                path = ways["distance"].copy()
                path[:, (X_test == NEW).any(axis=1)] = -1
                ways["distance, new rows open"] = path
            for way, path in ways.items():
                about = {"data": data.name, "scenario": scenario, "model": name, "way": way}
                curve = zip(SHARES.round(2), set_accuracy_along(path, Y[test]), strict=True)
                yield from ({**about, "seed": seed, "answered": a, "right": r} for a, r in curve)


def draw(frame, file):
    """Draw set-accuracy against the share answered, a panel for each data set and scenario."""
    frame = frame[frame["way"].isin(["width", "distance"])]
    names = frame["data"].unique()
    figure, axes = plt.subplots(
        len(names), len(SCENARIOS), figsize=(17, 5.4), sharey="row", layout="constrained"
    )
    colours = dict(zip(MODELS, ("#D55E00", "#0072B2", "#009E73"), strict=True))
    for row, data in zip(axes, names, strict=True):
        for ax, scenario in zip(row, SCENARIOS, strict=True):
            part = frame[(frame["data"] == data) & (frame["scenario"] == scenario)]
            for (model, way), curve in part.groupby(["model", "way"]):
                mean = curve.groupby("answered")["right"].mean()
                look = {"color": colours[model], "ls": "-" if way == "width" else "--"}
                ax.plot(100 * mean.index, 100 * mean, label=f"{model}, by {way}", **look)
            ax.set_title(f"{data}: {scenario}", fontsize=9)
    for ax in axes[-1]:
        ax.set_xlabel("labels answered (%)")
    for ax in axes[:, 0]:
        ax.set_ylabel("rows without a wrong answer (%)")
    handles, labels = axes[0, 3].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False)
    figure.savefig(file)


def main(table, picture):
    """Measure, write the table and draw the picture."""
    data_sets = [load("emotions"), load("yeast")]
    records = [r for data in data_sets for seed in range(N_SPLITS) for r in measure(data, seed)]
    frame = pd.DataFrame(records)
    frame.to_csv(table, index=False)
    draw(frame, picture)
    at = frame[np.isclose(frame["answered"], 0.8)]
    means = at.pivot_table("right", ["data", "scenario", "model"], "way", sort=False, dropna=False)
    print((100 * means).round(1).to_string())


if __name__ == "__main__":
    main(*sys.argv[1:])
