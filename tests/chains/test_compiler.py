"""Machine code: compiled once, whether arrays may be written to or not."""

import pickle
import sys

import joblib
import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

from credalchain import (
    CredalChainClassifier,
    CredalForest,
    CredalJointForest,
    JointDecision,
    NaiveCredal,
)

JOINT = CredalJointForest(ExtraTreesRegressor(5, bootstrap=True), random_state=0)
CLASSIFIERS = {
    "naive": CredalChainClassifier(random_state=0),
    "codes": CredalChainClassifier(NaiveCredal(discretizer=None), random_state=0),
    "forest": CredalChainClassifier(CredalForest(ExtraTreesClassifier(5)), random_state=0),
    "joint": JOINT,
    "decision": JointDecision(JOINT),
}


def compiled():
    """Every kernel, with the types it was compiled for."""
    return {
        (name, dispatcher.py_func.__name__): list(dispatcher.overloads)
        for name, module in list(sys.modules.items())
        if name.startswith("credalchain")
        for dispatcher in vars(module).values()
        if hasattr(dispatcher, "overloads")
    }


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_read_only_arrays_compile_nothing_more(name, tmp_path):
    rng = np.random.default_rng(0)
    X, Y = rng.integers(0, 3, (60, 4)).astype(np.uint8), rng.integers(0, 2, (60, 3))
    classifier = CLASSIFIERS[name].fit(X, Y)
    expected = pickle.loads(pickle.dumps(classifier)).infer(X)  # compiles what unpacks trees
    before = compiled()
    assert before
    X.flags.writeable = False
    joblib.dump(classifier, tmp_path / "model")
    mapped = joblib.load(tmp_path / "model", mmap_mode="r").infer(X)
    CLASSIFIERS[name].fit(X, Y).infer(X)
    assert compiled() == before
    np.testing.assert_array_equal(mapped.interval, expected.interval)
