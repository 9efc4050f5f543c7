"""Every kind of model file, changed at random: it is refused, or what it holds answers soundly."""

import copy
import os
import resource
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from scipy import sparse
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.naive_bayes import GaussianNB

from credalchain import (
    CredalBinaryRelevanceClassifier,
    CredalChainClassifier,
    CredalChainEnsemble,
    CredalForest,
    CredalJointForest,
    CredalLogistic,
    CredalWrapper,
    Discretizer,
    JointDecision,
    KernelPowerset,
    LabelPowerset,
    NaiveCredal,
    PromisedClassifier,
    explain,
    load_model,
    save_model,
)
from credalchain.bases.ensemble import EnsembleModel
from credalchain.cli.predict import inner_classifier
from credalchain.model_files import ModelFileError
from credalchain.preprocessing import Categories, ZeroAndBins
from model_edits import contents, mutate, write

TURNS = int(os.environ.get("CREDALCHAIN_FUZZ", "50"))  # mutations of each kind of model
MEMORY = 2 * 2**30  # bytes that loading and asking a model may add

rng = np.random.default_rng(0)
N = 30
NUMBERS = rng.normal(size=(N, 3))
CODES = rng.integers(0, 3, (N, 3))
FRAME = pd.DataFrame(
    {
        "size": rng.normal(size=N),
        "city": rng.choice(["Paris", "Oslo"], N),
        "old": rng.random(N) < 0.5,
    }
)
Y = rng.integers(0, 2, (N, 3)).astype(float)
GAPS = np.where(rng.random(Y.shape) < 0.2, np.nan, Y)
SPARSE = sparse.csr_array(np.maximum(NUMBERS, 0))
TREES = ExtraTreesClassifier(n_estimators=3, max_depth=3)
GROVE = ExtraTreesRegressor(n_estimators=3, max_depth=3, bootstrap=True)

KINDS = {
    "naive, words and bins": (CredalChainClassifier(), FRAME, GAPS),
    "naive, bins": (CredalChainClassifier(strategy="marginalization", s=0.5), NUMBERS, GAPS),
    "naive, codes": (
        CredalChainClassifier(NaiveCredal(discretizer=None, epsilon=0), order=[2, 0, 1]),
        CODES,
        Y,
    ),
    "naive, sparse": (
        CredalChainClassifier(NaiveCredal(discretizer=Discretizer(n_bins=3))),
        SPARSE,
        Y,
    ),
    "dynamic": (CredalChainClassifier(order="dynamic"), NUMBERS, GAPS),
    "classes": (CredalChainClassifier(), NUMBERS, np.where(CODES[:, 0], "yes", "no")),
    "relevance": (CredalBinaryRelevanceClassifier(threshold=[0.4, 0.5, 0.6]), NUMBERS, GAPS),
    "forest": (CredalChainClassifier(CredalForest(TREES), s=0.5), FRAME, GAPS),
    "logistic, bag": (CredalChainClassifier(CredalLogistic(n_members=2)), FRAME, GAPS),
    "logistic, posterior": (
        CredalBinaryRelevanceClassifier(CredalLogistic("posterior", n_members=2)),
        NUMBERS,
        GAPS,
    ),
    "wrapper, contamination": (
        CredalChainClassifier(CredalWrapper(source="contamination")),
        FRAME,
        np.column_stack([GAPS, np.ones(N)]),
    ),
    "wrapper, bag": (
        CredalChainClassifier(CredalWrapper(GaussianNB(), n_members=2)),
        NUMBERS,
        GAPS,
    ),
    "wrapper, venn-abers": (
        CredalChainClassifier(CredalWrapper(source="venn-abers")),
        NUMBERS,
        GAPS,
    ),
    "ensemble, naive": (CredalChainEnsemble(n_chains=3), FRAME, GAPS),
    "ensemble, forest": (CredalChainEnsemble(CredalForest(TREES), n_chains=2), FRAME, GAPS),
    "joint, independent": (JointDecision(CredalChainClassifier()), NUMBERS, GAPS),
    "joint, credal": (
        JointDecision(CredalChainEnsemble(n_chains=2), bounds="credal"),
        NUMBERS,
        GAPS,
    ),
    "joint forest": (CredalJointForest(GROVE, missing="conservative"), FRAME, GAPS),
    "joint forest, members": (
        JointDecision(
            CredalJointForest(GROVE, members=[KernelPowerset(), LabelPowerset(GaussianNB())])
        ),
        NUMBERS,
        Y,
    ),
    "joint forest, kernel": (JointDecision(CredalJointForest(GROVE)), FRAME, Y),
    "promised, labels": (
        PromisedClassifier(
            CredalChainClassifier(),
            {"selective_error": {0: 0.7, "label2": 0.8}},
            confidence=0.5,
            calibration=0.5,
        ),
        NUMBERS,
        GAPS,
    ),
    "promised, agreeing": (
        PromisedClassifier(
            JointDecision(CredalJointForest(GROVE)), {"row_error": 0.5}, calibration=2
        ),
        FRAME,
        Y,
    ),
    "joint, sampled": (
        JointDecision(CredalChainClassifier(CredalForest(TREES)), joint="sampled", n_samples=5),
        NUMBERS,
        GAPS,
    ),
}


@pytest.fixture
def little_memory():
    """A parameter that asks for terabytes shows as a MemoryError."""
    statm = Path("/proc/self/statm")
    if not statm.exists():  # elsewhere than on Linux nobody says how much is in use
        yield
        return
    used = int(statm.read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def rows_for(classifier):
    """A few rows of the kind that a model was fitted to."""
    fitted = inner_classifier(classifier)
    model = fitted.model_
    model = model.models[0] if isinstance(model, EnsembleModel) else model
    p, random = fitted.n_features_in_, np.random.default_rng(1)
    columns = [random.normal(size=3) for _ in range(p)]
    encoder, discretizer = getattr(model, "encoder", None), getattr(model, "discretizer", None)
    binnings = getattr(discretizer, "binnings_", [])
    if encoder is None and discretizer is None:
        return np.column_stack([random.integers(k, size=3) for k in model.counts.n_categories])
    if binnings and all(isinstance(one, ZeroAndBins) for one in binnings):
        return sparse.csr_array(np.maximum(np.column_stack(columns), 0))
    categories = dict(encoder.words) if encoder is not None else dict(enumerate(binnings))
    for i, one in categories.items():
        if isinstance(one, Categories) and len(one.keys):
            columns[i] = random.choice(one.keys, size=3)
    names = getattr(fitted, "feature_names_in_", None)
    frame = pd.DataFrame(dict(enumerate(columns)))
    if names is None or len(set(names)) < len(names):  # scikit-learn wants different ones
        return frame.to_numpy()
    return frame.set_axis(names, axis=1)


def ask(classifier):
    """Every method answers, and the answers make sense."""
    X = rows_for(classifier)
    n, m = X.shape[0], len(classifier.label_names_)
    prediction = classifier.infer(X)
    assert prediction.log_odds.shape == (n, m, 2)
    assert not np.isnan(prediction.log_odds).any(), "bounds are not numbers"
    lower, upper = np.moveaxis(prediction.interval, -1, 0)
    assert (lower <= upper + 1e-12).all(), "lower bounds above upper ones"
    labels = [prediction.labels, classifier.predict_partial(X)]
    path = getattr(classifier, "predict_path", None) or classifier.estimator_.predict_path
    labels += list(path(X, [0.0, 0.5, 3.0]))
    assert all(one.shape == (n, m) and np.isin(one, [-1, 0, 1]).all() for one in labels)
    assert np.isin(classifier.predict(X), classifier.classes_).all()
    p = classifier.predict_proba(X)
    assert ((p >= 0) & (p <= 1)).all(), "not a probability"
    explain(classifier, X[:1])


def mutated(description, arrays, random):
    """A copy with something changed, in the arrays, the JSON text or what skops holds."""
    description, arrays = copy.deepcopy(description), dict(arrays)
    for _ in range(random.integers(1, 3)):
        if "skops" in arrays and random.random() < 0.6:
            content = skops.io.loads(arrays["skops"].tobytes(), trusted=[])
            mutate(content, random)
            arrays["skops"] = np.frombuffer(skops.io.dumps(content), np.uint8)
        else:
            mutate(arrays if random.random() < 0.4 else description, random)
    return description, arrays


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of numbers that are changed into something else
@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("kind", KINDS)
def test_files_are_refused_or_answer_soundly(kind, tmp_path):
    classifier, X, Y = KINDS[kind]
    classifier.set_params(random_state=0).fit(X, Y)
    save_model(classifier, tmp_path / "m")
    ask(load_model(tmp_path / "m"))
    valid = contents(tmp_path / "m")
    random = np.random.default_rng(7)
    refused = 0
    for turn in range(TURNS):
        try:
            changed = mutated(*valid, random)
            path = write(tmp_path / "e.npz", *changed)
        except Exception:  # a classifier in a state that skops cannot write
            continue
        try:
            loaded = load_model(path)
        except ModelFileError as error:
            refused += 1
            assert 10 < len(str(error)) < 1000
            assert "\n" not in str(error)
            continue
        try:
            ask(loaded)
        except Exception as error:
            raise AssertionError(f"turn {turn} loaded and failed: {error!r}") from error
    assert refused > TURNS / 4
