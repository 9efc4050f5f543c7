"""Cautious multi-label classification: chains that may answer "I don't know"."""

from credalchain._version import __version__
from credalchain.bases.forest import CredalForest
from credalchain.bases.joint.members import KernelPowerset, LabelPowerset
from credalchain.bases.local import LocalBase, LocalChainModel, LocalModel
from credalchain.bases.logistic import CredalLogistic
from credalchain.bases.model import ChainModel
from credalchain.bases.naive import ChainCounts, NaiveCredal
from credalchain.bases.protocol import CredalBase, Exactness, Walk
from credalchain.bases.wrapper import CredalWrapper
from credalchain.estimators.binary_relevance import CredalBinaryRelevanceClassifier
from credalchain.estimators.chain import CredalChainClassifier
from credalchain.estimators.decision import JointDecision
from credalchain.estimators.ensemble import CredalChainEnsemble
from credalchain.estimators.joint_forest import CredalJointForest
from credalchain.estimators.members import SampledChains
from credalchain.estimators.prediction import CredalPrediction
from credalchain.estimators.sampling import sample_labels
from credalchain.explanation import Explanation, explain
from credalchain.labels import ABSTAIN, as_labels
from credalchain.model_files import TRUSTED_TYPES, ModelFileError, load_model, save_model
from credalchain.model_selection import cross_val_partial, partial_labels, partial_scorer, unwrap
from credalchain.preprocessing import Discretizer
from credalchain.promises.classifier import PromisedClassifier
from credalchain.promises.curve import PromiseCurve, promise_curve
from credalchain.promises.report import PromiseCheck, PromiseReport
from credalchain.questions import OpenQuestion, next_questions
from credalchain.report import partial_report
from credalchain.strategies import Strategy, branching, marginalization, tree_marginalization

__all__ = [
    "ABSTAIN",
    "TRUSTED_TYPES",
    "ChainCounts",
    "ChainModel",
    "CredalBase",
    "CredalBinaryRelevanceClassifier",
    "CredalChainClassifier",
    "CredalChainEnsemble",
    "CredalForest",
    "CredalJointForest",
    "CredalLogistic",
    "CredalPrediction",
    "CredalWrapper",
    "Discretizer",
    "Exactness",
    "Explanation",
    "JointDecision",
    "KernelPowerset",
    "LabelPowerset",
    "LocalBase",
    "LocalChainModel",
    "LocalModel",
    "ModelFileError",
    "NaiveCredal",
    "OpenQuestion",
    "PromiseCheck",
    "PromiseCurve",
    "PromiseReport",
    "PromisedClassifier",
    "SampledChains",
    "Strategy",
    "Walk",
    "__version__",
    "as_labels",
    "branching",
    "cross_val_partial",
    "explain",
    "load_model",
    "marginalization",
    "next_questions",
    "partial_labels",
    "partial_report",
    "partial_scorer",
    "promise_curve",
    "sample_labels",
    "save_model",
    "tree_marginalization",
    "unwrap",
]
