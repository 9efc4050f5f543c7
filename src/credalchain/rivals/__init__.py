"""Published ways to let a multi-label classifier abstain, as baselines.

All of them are cautious classifiers over any base that gives probabilities (for skeptical
inference, bounds), with one caution parameter and ``predict_path``, so that studies and promises
take them as they take :class:`~credalchain.JointDecision`.
"""

from credalchain.rivals.abstention import PartialAbstention
from credalchain.rivals.conformal import ConformalAbstention
from credalchain.rivals.rejection import RejectOption, RejectThresholds
from credalchain.rivals.skeptical import SkepticalInference

__all__ = [
    "ConformalAbstention",
    "PartialAbstention",
    "RejectOption",
    "RejectThresholds",
    "SkepticalInference",
]
