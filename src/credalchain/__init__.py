"""Cautious multi-label classification: labels are answered yes or no, or left open.

Names are imported when they are first used, so that ``import credalchain`` is quick.

Classifiers
    JointDecision: the labels of a row to answer, decided together; the recommended one
    CredalChainClassifier: a chain of labels over any base; the paper's model as it comes
    CredalBinaryRelevanceClassifier: the same, every label on its own
    CredalChainEnsemble: chains in random orders of the labels, averaged
    CredalJointForest: one forest for all labels, with bounds for any event
    PromisedClassifier: as many answers as a promise about errors allows

What they answer
    CredalPrediction: labels and intervals of a batch of rows, given by ``infer``
    ABSTAIN: -1, the code of a label that was left open
    Exactness: how the bounds that are given relate to those that are defined
    explain: why a row got its answers
    Explanation: what ``explain`` gives
    next_questions: the open labels that are best asked about next
    OpenQuestion: one of them

How cautious to be
    choose_caution: the value of s or the reward that answers a given share of the labels
    CautionChoice: what ``choose_caution`` gives
    promise_curve: what a promise would buy at every level
    PromiseCurve: what ``promise_curve`` gives
    PromiseReport: what was promised, what was found, and what holds
    PromiseCheck: whether promises hold on new rows

Bases: where the bounds of a chain come from
    NaiveCredal: naive Bayes with the imprecise Dirichlet model; the default
    CredalForest: a forest for every label
    CredalWrapper: any scikit-learn classifier that gives probabilities
    ChainCounts: all that NaiveCredal learns: counts that add and subtract

Members of a joint forest, beside its trees
    KernelPowerset: label vectors as classes, by kernel least squares

How a label left open affects the labels after it
    branching: it may be either
    marginalization: it is left out
    tree_marginalization: it may have any joint distribution with the others; exact and slow
    Strategy: the class of these three, for one of your own

Measuring and selecting
    partial_report: for each label, how often it is answered and how well
    cross_val_partial: partial predictions of rows that were not seen in training
    partial_scorer: a measure as a scorer for scikit-learn
    partial_labels: partial predictions of pipelines and searches
    unwrap: the classifier inside pipelines and searches

Tables, labels, files
    Discretizer: columns of any kind as category codes
    as_labels: label matrices of any kind as 0, 1 and -1 for a missing label
    save_model: a fitted classifier into a file
    load_model: and back; nothing in the file is executed
    ModelFileError: a file that is not a model, or not one that this version can read
    TRUSTED_TYPES: what to give to skops as ``trusted``

For a base of your own
    CredalBase: what an unfitted base has to offer
    ChainModel: what a fitted one has to offer
    Walk: a batch of rows on its way along the chain
    LocalModel: the simplest way: bounds of a label, given the labels before it
    LocalBase: a base whose model is a LocalModel
    LocalChainModel: the chain over a LocalModel

Modules
    metrics: measures for partial predictions
    plotting: predictions, curves and explanations as pictures
    datasets: readers, data sets by name, damage to labels
    chunks: data that does not fit into memory, or on a cluster
    experiments: studies, run from a file
    tree: imprecise probability trees, exact and small
    exceptions: DataWarning, about data from which less can be learned
    typing: names for what functions take: MatrixLike, LabelsLike and others
    explanation, labels, model_files, model_selection, preprocessing, promises, questions,
    report, strategies: where names above come from, and some more of their kind
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from credalchain._version import __version__

if TYPE_CHECKING:
    from credalchain.bases.forest import CredalForest as CredalForest
    from credalchain.bases.joint.members import KernelPowerset as KernelPowerset
    from credalchain.bases.local import LocalBase as LocalBase
    from credalchain.bases.local import LocalChainModel as LocalChainModel
    from credalchain.bases.local import LocalModel as LocalModel
    from credalchain.bases.model import ChainModel as ChainModel
    from credalchain.bases.naive import ChainCounts as ChainCounts
    from credalchain.bases.naive import NaiveCredal as NaiveCredal
    from credalchain.bases.protocol import CredalBase as CredalBase
    from credalchain.bases.protocol import Exactness as Exactness
    from credalchain.bases.protocol import Walk as Walk
    from credalchain.bases.wrapper import CredalWrapper as CredalWrapper
    from credalchain.estimators.binary_relevance import (
        CredalBinaryRelevanceClassifier as CredalBinaryRelevanceClassifier,
    )
    from credalchain.estimators.chain import CredalChainClassifier as CredalChainClassifier
    from credalchain.estimators.decision import JointDecision as JointDecision
    from credalchain.estimators.ensemble import CredalChainEnsemble as CredalChainEnsemble
    from credalchain.estimators.joint_forest import CredalJointForest as CredalJointForest
    from credalchain.estimators.prediction import CredalPrediction as CredalPrediction
    from credalchain.explanation import Explanation as Explanation
    from credalchain.explanation import explain as explain
    from credalchain.labels import ABSTAIN as ABSTAIN
    from credalchain.labels import as_labels as as_labels
    from credalchain.model_files import TRUSTED_TYPES as TRUSTED_TYPES
    from credalchain.model_files import ModelFileError as ModelFileError
    from credalchain.model_files import load_model as load_model
    from credalchain.model_files import save_model as save_model
    from credalchain.model_selection import cross_val_partial as cross_val_partial
    from credalchain.model_selection import partial_labels as partial_labels
    from credalchain.model_selection import partial_scorer as partial_scorer
    from credalchain.model_selection import unwrap as unwrap
    from credalchain.preprocessing import Discretizer as Discretizer
    from credalchain.promises.caution import CautionChoice as CautionChoice
    from credalchain.promises.caution import choose_caution as choose_caution
    from credalchain.promises.classifier import PromisedClassifier as PromisedClassifier
    from credalchain.promises.curve import PromiseCurve as PromiseCurve
    from credalchain.promises.curve import promise_curve as promise_curve
    from credalchain.promises.report import PromiseCheck as PromiseCheck
    from credalchain.promises.report import PromiseReport as PromiseReport
    from credalchain.questions import OpenQuestion as OpenQuestion
    from credalchain.questions import next_questions as next_questions
    from credalchain.report import partial_report as partial_report
    from credalchain.strategies import Strategy as Strategy
    from credalchain.strategies import branching as branching
    from credalchain.strategies import marginalization as marginalization
    from credalchain.strategies import tree_marginalization as tree_marginalization

_MODULE_OF = {
    "ABSTAIN": "credalchain.labels",
    "CautionChoice": "credalchain.promises.caution",
    "ChainCounts": "credalchain.bases.naive",
    "ChainModel": "credalchain.bases.model",
    "CredalBase": "credalchain.bases.protocol",
    "CredalBinaryRelevanceClassifier": "credalchain.estimators.binary_relevance",
    "CredalChainClassifier": "credalchain.estimators.chain",
    "CredalChainEnsemble": "credalchain.estimators.ensemble",
    "CredalForest": "credalchain.bases.forest",
    "CredalJointForest": "credalchain.estimators.joint_forest",
    "CredalPrediction": "credalchain.estimators.prediction",
    "CredalWrapper": "credalchain.bases.wrapper",
    "Discretizer": "credalchain.preprocessing",
    "Exactness": "credalchain.bases.protocol",
    "Explanation": "credalchain.explanation",
    "JointDecision": "credalchain.estimators.decision",
    "KernelPowerset": "credalchain.bases.joint.members",
    "LocalBase": "credalchain.bases.local",
    "LocalChainModel": "credalchain.bases.local",
    "LocalModel": "credalchain.bases.local",
    "ModelFileError": "credalchain.model_files",
    "NaiveCredal": "credalchain.bases.naive",
    "OpenQuestion": "credalchain.questions",
    "PromiseCheck": "credalchain.promises.report",
    "PromiseCurve": "credalchain.promises.curve",
    "PromiseReport": "credalchain.promises.report",
    "PromisedClassifier": "credalchain.promises.classifier",
    "Strategy": "credalchain.strategies",
    "TRUSTED_TYPES": "credalchain.model_files",
    "Walk": "credalchain.bases.protocol",
    "as_labels": "credalchain.labels",
    "branching": "credalchain.strategies",
    "choose_caution": "credalchain.promises.caution",
    "cross_val_partial": "credalchain.model_selection",
    "explain": "credalchain.explanation",
    "load_model": "credalchain.model_files",
    "marginalization": "credalchain.strategies",
    "next_questions": "credalchain.questions",
    "partial_labels": "credalchain.model_selection",
    "partial_report": "credalchain.report",
    "partial_scorer": "credalchain.model_selection",
    "promise_curve": "credalchain.promises.curve",
    "save_model": "credalchain.model_files",
    "tree_marginalization": "credalchain.strategies",
    "unwrap": "credalchain.model_selection",
}
_MODULES = (
    "chunks",
    "datasets",
    "exceptions",
    "experiments",
    "explanation",
    "labels",
    "metrics",
    "model_files",
    "model_selection",
    "plotting",
    "preprocessing",
    "promises",
    "questions",
    "report",
    "strategies",
    "tree",
    "typing",
)

__all__ = [
    "ABSTAIN",
    "TRUSTED_TYPES",
    "CautionChoice",
    "ChainCounts",
    "ChainModel",
    "CredalBase",
    "CredalBinaryRelevanceClassifier",
    "CredalChainClassifier",
    "CredalChainEnsemble",
    "CredalForest",
    "CredalJointForest",
    "CredalPrediction",
    "CredalWrapper",
    "Discretizer",
    "Exactness",
    "Explanation",
    "JointDecision",
    "KernelPowerset",
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
    "Strategy",
    "Walk",
    "__version__",
    "as_labels",
    "branching",
    "choose_caution",
    "cross_val_partial",
    "explain",
    "load_model",
    "marginalization",
    "next_questions",
    "partial_labels",
    "partial_report",
    "partial_scorer",
    "promise_curve",
    "save_model",
    "tree_marginalization",
    "unwrap",
]


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        value = getattr(import_module(_MODULE_OF[name]), name)
    elif name in _MODULES:
        value = import_module(f"credalchain.{name}")
    else:
        raise AttributeError(f"module 'credalchain' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF, *_MODULES})
