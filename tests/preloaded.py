"""What processes of ``shell.start_process`` are forked from: imports done, kernels loaded.

As a script, it compiles the kernels of a part of the package: ``python preloaded.py chain|joint``.
"""

import sys

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

from credalchain import CredalChainClassifier, CredalForest, CredalJointForest, JointDecision

X, Y = np.array([[0.0], [1.0], [2.0], [3.0]] * 5), np.array([[0, 1], [1, 0], [0, 0], [1, 1]] * 5)
KNOWN = np.array([[1, -1]] * 20)


def ask_chain() -> None:
    """Call every kernel of chains."""
    for base in (None, CredalForest()):
        chain = CredalChainClassifier(base, order="given").fit(X, Y)
        chain.infer(X, known=KNOWN)
        chain.predict_path(X, [0.0, 1.0])


def ask_joint() -> None:
    """Call every kernel of joint models."""
    trees = ExtraTreesRegressor(2, bootstrap=True)
    decision = JointDecision(CredalJointForest(trees, random_state=0)).fit(X, Y)
    decision.infer(X, known=KNOWN)
    decision.estimator_.infer(X, known=KNOWN)
    decision.estimator_.event_interval(X, [1, -1])


if __name__ == "__main__":
    {"chain": ask_chain, "joint": ask_joint}[sys.argv[1]]()
else:
    import credalchain.cli.review
    import credalchain.review.server  # noqa: F401

    CredalChainClassifier(order="given").fit(X, Y).infer(X)
