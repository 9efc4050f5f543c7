"""Cautious multi-label classification: answer each label yes or no, or leave it open.

Names are imported at first use, which keeps ``import credalchain`` fast.

Classifiers
    JointDecision: decide the labels of a row together; recommended
    CredalChainClassifier: a chain of labels over any base; by default the paper's model
    CredalBinaryRelevanceClassifier: one independent classifier per label
    CredalChainEnsemble: average over chains in random label orders
    CredalJointForest: one forest for all labels, with bounds on any event
    PromisedClassifier: risk control, as many answers as a promise about errors allows

Predictions and explanations
    CredalPrediction: labels and intervals of a batch of rows, returned by ``infer``
    ABSTAIN: -1, the code of a label that was left open
    Exactness: relation of the computed bounds to the defined ones
    explain: explain the answers of one row
    Explanation: the result of ``explain``
    next_questions: the open labels to ask a person about next
    OpenQuestion: one such label

Choosing the caution
    choose_caution: the value of s or the reward that answers a given share of the labels
    CautionChoice: the result of ``choose_caution``
    promise_curve: the share of labels answered at each level of a promised risk
    PromiseCurve: the result of ``promise_curve``
    PromiseReport: the promises, the estimates and the guarantee
    PromiseCheck: a test of the promises on new rows

Bases: where the bounds of a chain come from
    NaiveCredal: naive Bayes with the imprecise Dirichlet model; the default
    CredalForest: a forest for every label
    CredalWrapper: any scikit-learn classifier that gives probabilities
    ChainCounts: the counts that NaiveCredal learns; they add and subtract

Members of a joint forest, besides its trees
    KernelPowerset: label vectors as classes, by kernel least squares

How a label left open affects the labels after it
    branching: both values are possible
    marginalization: it is left out
    tree_marginalization: it may have any joint distribution with the others; exact and slow
    Strategy: the class of these three, for custom strategies

Search on the tree of a chain
    search_chain: the likeliest label vector, or all vectors that may be the likeliest
    ChainSearch: the result of ``search_chain``

Evaluation and model selection
    partial_report: a report per label, like classification_report
    cross_val_partial: partial predictions of rows that were not seen in training
    partial_scorer: a measure as a scorer for scikit-learn
    partial_labels: partial predictions of pipelines and searches
    unwrap: the classifier inside pipelines and searches

Tables, labels, files
    Discretizer: columns of any kind as category codes
    as_labels: label matrices of any kind as 0, 1 and -1 for a missing label
    save_model: write a fitted classifier to a file
    load_model: load it again, without executing code from the file
    ModelFileError: a file that is not a model, or not one that this version can read
    TRUSTED_TYPES: type names to pass to skops as ``trusted``

Custom bases
    CredalBase: protocol of unfitted bases
    ChainModel: abstract class of fitted bases
    Walk: a batch of rows on its way along the chain
    LocalModel: the simplest custom model: bounds of a label, given the labels before it
    LocalBase: a base whose model is a LocalModel
    LocalChainModel: the chain over a LocalModel

Modules
    metrics: measures for partial predictions
    rivals: reject option, partial abstention, skeptical and conformal inference, as baselines
    plotting: figures of predictions, curves, explanations and trees
    datasets: readers, data sets by name, corruption of labels
    chunks: data that does not fit into memory or is on a cluster
    studies: experiments defined in a file, and their reports
    exceptions: DataWarning, about data that limits what can be learned
    typing: types of arguments: MatrixLike, LabelsLike and others
    chains, joint, prediction, explanation, labels, model_files, model_selection, preprocessing,
    promises: modules of the names above, with further ones
"""

import lazy_loader

from credalchain._version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
