"""The recommended model against scikit-learn's own multi-output forest of the same size."""

from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.utils import _safe_indexing as take_rows
from timing import fastest

from credalchain import JointDecision
from credalchain.datasets import load_mulan
from credalchain.joint.growing import default_forest_regressor

REWARDS = np.geomspace(0.02, 20, 40)
MOST = {"fit": 3.0, "one reward": 3.0, "40 rewards": 6.0}  # times as long as theirs


def compare(name: str) -> dict[str, Any]:
    """Seconds on one core: fit to nine tenths; answers for all rows, one reward and forty.

    Fitting has everything in it: labels, shares and members. scikit-learn gets the numbers of the
    table as a dense array of float32, which it would otherwise make itself.
    """
    data = load_mulan(name)
    shuffled = np.random.default_rng(0).permutation(len(data.labels))
    training = np.sort(shuffled[len(shuffled) // 10 :])
    X, Y = take_rows(data.X, training), data.labels[training]
    options = default_forest_regressor().get_params()
    del options["criterion"], options["monotonic_cst"]
    theirs = ExtraTreesClassifier(**{**options, "random_state": 0})
    ours = JointDecision(random_state=0).fit(X, Y)
    numbers = ours.estimator_.encode(X)
    everything = ours.estimator_.encode(data.X)
    found = {
        "labels": data.labels.shape[1],
        "shares": ours.estimator_.shares_,
        "fit": {
            "ours": fastest(lambda: JointDecision(random_state=0).fit(X, Y)),
            "theirs": fastest(lambda: theirs.fit(numbers, Y)),
        },
    }
    predict_proba = fastest(lambda: theirs.predict_proba(everything))
    for work, values in (("one reward", [0.5]), ("40 rewards", REWARDS)):
        seconds = fastest(lambda values=values: ours.predict_path(data.X, values))
        found[work] = {"ours": seconds, "theirs": predict_proba}
    return found
