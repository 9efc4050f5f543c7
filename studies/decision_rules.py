"""Compare the decision rules of a joint model, at equal selective error and equal precision.

A JointDecision is fitted once a fold; every rule decides with the same probabilities. With
CREDALCHAIN_DATA set, or a network, in a quarter of an hour:

    python studies/decision_rules.py decision-rules.csv
"""

import sys

import numpy as np
import pandas as pd
from promises_kept import make_text
from sklearn.model_selection import KFold
from sklearn.utils import _safe_indexing as take_rows

from credalchain import JointDecision
from credalchain.datasets import load
from credalchain.exceptions import data_warnings_ignored

DATA = ("emotions", "yeast", "enron", "medical", "CAL500", "text with rare labels")
RULES = {
    "row": {"loss": "row"},
    "cell": {"loss": "cell"},
    "bands": {"loss": "bands", "costs": (4.0, 1.0)},
    "f1": {"loss": "f1"},
    "jaccard": {"loss": "jaccard"},
}
N_FOLDS = 5


def read(name):
    """Return rows and labels of a data set; the made-up text has 19 labels, like birds."""
    if name == "text with rare labels":
        X, Y = make_text(2000, 19, 1.0, np.random.default_rng(0))
        return X, Y
    data = load(name)
    return data.X, np.asarray(data.Y).astype(int)


def most(values, errors, limit):
    """Return the most of ``values`` along a path where an error is at most a limit."""
    kept = errors <= limit + 1e-12
    return 100 * values[kept].max() if kept.any() else 0.0


def measures(path, Y):
    """Return what a rule reaches at one fold, in %, from its answers (values, n, m)."""
    yes, no, positive = path == 1, path == 0, Y == 1
    n_yes, n_answered = yes.sum(axis=(1, 2)), (path != -1).sum(axis=(1, 2))
    true_yes = (yes & positive).sum(axis=(1, 2))
    wrong = (no & positive).sum(axis=(1, 2)) + n_yes - true_yes
    selective = wrong / np.maximum(n_answered, 1)
    precision = (n_yes - true_yes) / np.maximum(n_yes, 1)
    answered, found = n_answered / Y.size, true_yes / positive.sum()
    right = ((path == Y) | (path == -1)).all(axis=2).mean(axis=1)
    half = Y.size * 0.5  # fewer answers say little about an error
    selective = np.where(n_answered >= 0.02 * half, selective, 0.0)
    found = {
        f"found, {level:.0%} of yes wrong": most(found, precision, level) for level in (0.1, 0.2)
    }
    at = {
        f"answered, selective error {level:.0%}": most(answered, selective, level)
        for level in (0.02, 0.05, 0.1)
    }
    rows = {"rows right, 90 % answered": 100 * right[answered >= 0.9].max(initial=0.0)}
    return {**rows, **at, **found}


def main(out):
    """Write mean, and mean and standard error of the difference to the rule for rows."""
    rows = []
    for name in DATA:
        X, Y = read(name)
        folds = []
        splits = KFold(N_FOLDS, shuffle=True, random_state=0).split(np.zeros(len(Y)))
        for train, test in splits:
            with data_warnings_ignored():
                model = JointDecision(random_state=0).fit(take_rows(X, train), Y[train])
                found = {}
                for rule, params in RULES.items():
                    model.set_params(**{"costs": None, **params})
                    path = model.predict_path(take_rows(X, test), model.caution_grid[::8])
                    found[rule] = measures(path, Y[test])
            folds.append(pd.DataFrame(found).T)
        values = np.stack([fold.to_numpy() for fold in folds])
        difference = values - values[:, :1]
        error = difference.std(axis=0, ddof=1) / np.sqrt(N_FOLDS)
        for i, rule in enumerate(RULES):
            cells = {"data": name, "rule": rule}
            for j, measure in enumerate(folds[0].columns):
                cells[measure] = values[:, i, j].mean()
                cells[f"{measure}: more than row"] = difference[:, i, j].mean()
                cells[f"{measure}: standard error"] = error[i, j]
            rows.append(cells)
        print(pd.DataFrame(rows).query("data == @name").round(1).T, flush=True)
        pd.DataFrame(rows).to_csv(out, index=False, float_format="%.3f")


if __name__ == "__main__":
    main(sys.argv[1])
