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

Search on the tree of a chain
    search_chain: the likeliest label vector, or all that may be it
    ChainSearch: what ``search_chain`` gives

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
    rivals: reject option, partial abstention, skeptical and conformal inference, as baselines
    plotting: predictions, curves, explanations and trees as pictures
    datasets: readers, data sets by name, damage to labels
    chunks: data that does not fit into memory, or on a cluster
    studies: studies run from a file, and their reports
    exceptions: DataWarning, about data from which less can be learned
    typing: names for what functions take: MatrixLike, LabelsLike and others
    chains, joint, prediction, explanation, labels, model_files, model_selection, preprocessing,
    promises: where names above come from, and some more of their kind
"""

import lazy_loader

from credalchain._version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
