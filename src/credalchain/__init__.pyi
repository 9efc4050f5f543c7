from . import chains as chains
from . import chunks as chunks
from . import datasets as datasets
from . import exceptions as exceptions
from . import explanation as explanation
from . import joint as joint
from . import labels as labels
from . import metrics as metrics
from . import model_files as model_files
from . import model_selection as model_selection
from . import plotting as plotting
from . import prediction as prediction
from . import preprocessing as preprocessing
from . import promises as promises
from . import rivals as rivals
from . import studies as studies
from . import typing as typing
from ._version import __version__ as __version__
from .chains.classifier import CredalBinaryRelevanceClassifier as CredalBinaryRelevanceClassifier
from .chains.classifier import CredalChainClassifier as CredalChainClassifier
from .chains.ensemble import CredalChainEnsemble as CredalChainEnsemble
from .chains.forest import CredalForest as CredalForest
from .chains.local import LocalBase as LocalBase
from .chains.local import LocalChainModel as LocalChainModel
from .chains.local import LocalModel as LocalModel
from .chains.naive import ChainCounts as ChainCounts
from .chains.naive import NaiveCredal as NaiveCredal
from .chains.protocol import ChainModel as ChainModel
from .chains.protocol import CredalBase as CredalBase
from .chains.protocol import Walk as Walk
from .chains.search import ChainSearch as ChainSearch
from .chains.search import search_chain as search_chain
from .chains.strategies import Strategy as Strategy
from .chains.strategies import branching as branching
from .chains.strategies import marginalization as marginalization
from .chains.strategies import tree_marginalization as tree_marginalization
from .chains.wrapper import CredalWrapper as CredalWrapper
from .explanation import Explanation as Explanation
from .explanation import explain as explain
from .explanation.questions import OpenQuestion as OpenQuestion
from .explanation.questions import next_questions as next_questions
from .joint.decision import JointDecision as JointDecision
from .joint.forest import CredalJointForest as CredalJointForest
from .joint.members import KernelPowerset as KernelPowerset
from .labels import ABSTAIN as ABSTAIN
from .labels import as_labels as as_labels
from .metrics.report import partial_report as partial_report
from .model_files import TRUSTED_TYPES as TRUSTED_TYPES
from .model_files import ModelFileError as ModelFileError
from .model_files import load_model as load_model
from .model_files import save_model as save_model
from .model_selection import cross_val_partial as cross_val_partial
from .model_selection import partial_labels as partial_labels
from .model_selection import partial_scorer as partial_scorer
from .model_selection import unwrap as unwrap
from .prediction import CredalPrediction as CredalPrediction
from .prediction import Exactness as Exactness
from .preprocessing import Discretizer as Discretizer
from .promises.caution import CautionChoice as CautionChoice
from .promises.caution import PromiseCurve as PromiseCurve
from .promises.caution import choose_caution as choose_caution
from .promises.caution import promise_curve as promise_curve
from .promises.classifier import PromisedClassifier as PromisedClassifier
from .promises.report import PromiseCheck as PromiseCheck
from .promises.report import PromiseReport as PromiseReport

__all__ = [
    "ABSTAIN",
    "TRUSTED_TYPES",
    "CautionChoice",
    "ChainCounts",
    "ChainModel",
    "ChainSearch",
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
    "search_chain",
    "tree_marginalization",
    "unwrap",
]
