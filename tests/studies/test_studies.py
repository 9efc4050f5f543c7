"""Studies: what a file may say, seeds from identities, kills and resumptions."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator

from credalchain import CredalChainClassifier, Discretizer, NaiveCredal, load_model
from credalchain.cli import describe as data_command
from credalchain.datasets import MULAN, DataFile, load_embedded_yeast
from credalchain.metrics import MEASURES, completeness, set_accuracy
from credalchain.studies import running as run_module
from credalchain.studies.findings import at_completeness, summarize
from credalchain.studies.results import Store
from credalchain.studies.running import run_study
from credalchain.studies.study_file import Method, StudyError, build_estimator, load_study
from credalchain.studies.study_page import write_report
from credalchain.studies.tasks import (
    damaged_labels,
    expand,
    folds_of,
    order_of,
    seed_of,
)
from credalchain.studies.trials import run_task
from shell import credalchain, credalchain_process

STUDIES = Path(__file__).parents[2] / "studies"
SMALL = """
name = "small"
seed = 7
settings = "{settings}"
data = ["embedded:yeast"]
measures = ["set_accuracy", "completeness"]

[cross_validation]
folds = 3
repeats = {repeats}

[corruption]
levels = [0.0, 0.4]

[[method]]
name = "chain"
strategies = ["branching", "marginalization"]
s = [0.0, 2.0]
"""


def small(tmp_path, settings="published", repeats=1, extra=""):
    path = tmp_path / "small.toml"
    path.write_text(SMALL.format(settings=settings, repeats=repeats) + extra)
    return path


def run(study, folder, n_jobs=1):
    store = Store(folder)
    failed = run_study(study, store, n_jobs=n_jobs)
    return store, failed


def values(frame):
    """The measure values, without timings."""
    return frame.drop(columns=["fit_seconds", "predict_seconds"])


# -- files ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["paper", "quick", "embedded"])
def test_our_studies_are_sound(name):
    study = load_study(STUDIES / f"{name}.toml")
    assert study.name == name
    assert list(expand(study))


def test_the_papers_study_is_the_papers():
    study = load_study(STUDIES / "paper.toml")
    assert study.data == ("emotions", "scene", "yeast", "CAL500", "medical", "enron")
    assert study.methods[0].s == tuple(np.arange(12) / 2)
    assert study.methods[0].strategies == ("branching", "marginalization")
    assert (study.folds, study.repeats) == (10, 10)
    assert study.levels == (0.0, 0.2, 0.4, 0.6, 0.8)
    assert study.settings == "published"
    assert study.corruption == "per-label"


MISTAKES = {
    "unknown key": (
        "seed = 7",
        "sead = 7",
        r"line 3: there is no key 'sead' \(did you mean 'seed'",
    ),
    "unknown data": ('"embedded:yeast"', '"emotion"', r"line 5: data: 'emotion'.*'emotions'"),
    "unknown measure": (
        '"completeness"]',
        '"completness"]',
        r"line 6: .*did you mean 'completeness'",
    ),
    "reference": ("seed = 7", 'reference = "chian"', r"line 3: reference: .*mean 'chain'"),
    "settings": ('settings = "published"', 'settings = "papr"', r"line 4: .*did you mean 'paper'"),
    "folds": (
        "folds = 3",
        "folds = 1",
        r"line 9: \[cross_validation\] folds must be .*at least 2, got 1",
    ),
    "folds type": ("folds = 3", 'folds = "3"', r"line 9: .*whole number"),
    "level": ("[0.0, 0.4]", "[0.0, 1.4]", r"line 13: \[corruption\] levels: .*got 1.4"),
    "s": ("s = [0.0, 2.0]", "s = [0.0, -2.0]", r"line 18: \[method\] s = .*got -2.0"),
    "strategy": ('"marginalization"]', '"marginal"]', r"line 17: .*did you mean 'marginalization'"),
    "method key": ("s = [0.0, 2.0]", "S = [0.0, 2.0]", r"line 18: \[method\] there is no key 'S'"),
    "kind": ('name = "chain"', 'kind = "tree"', r"line 16: \[method\] kind: 'tree' is not known"),
    "import": ('name = "chain"', 'kind = "estimator"\nclass = "no.such"', r"line 17: .*imported"),
    "class": ('name = "chain"', 'kind = "estimator"', r"goes with class"),
    "toml": ("seed = 7", "seed =", r"is not TOML"),
    "twice": ("[0.0, 0.4]", "[0.0, 0.0]", r"line 13: .*twice"),
    "no method": ("[[method]]", "[[methods]]", r"no key 'methods' \(did you mean 'method'"),
    "huge": ("s = [0.0, 2.0]", f"s = [{10**400}]", r"line 18: "),
    "params": ("s = [0.0, 2.0]", "params = {d = 2020-01-01}", r"line 18: .*params must be"),
    "table": ("[[method]]", "method = [1]\n[x]", r"no key 'x'|at least one table"),
    "reward": ("s = [0.0, 2.0]", "reward = [0.5]", r"line 18: .*parameter of this method is s"),
    "s and reward": (
        'name = "chain"',
        'kind = "estimator"\nclass = "credalchain.JointDecision"\nreward = [0.5]',
        r"\[method\] s and reward are the same",
    ),
    "model": ("s = [0.0, 2.0]", 'over = ["tree"]\n[models.trees]', r"line 18: .*mean 'trees'"),
    "no models": ("s = [0.0, 2.0]", "over = []", r"line 18: .*one or more names"),
    "models": ("seed = 7", "models = 1", r"line 3: .*models must be a table, got 1"),
    "empty": ("s = [0.0, 2.0]", "s = []", r"line 18: .*one or more numbers"),
}


@pytest.mark.parametrize(("old", "new", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_are_named_with_their_place(old, new, message, tmp_path):
    path = small(tmp_path)
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(StudyError, match=message):
        load_study(path)


def test_values_of_caution_have_the_name_that_the_class_gives_them(tmp_path):
    method = TOP.format(path="credalchain.JointDecision", params="")
    by_name, by_s = (
        load_study(small(tmp_path, extra=f"{method}{name} = [0.5, 1.0]\n"))
        for name in ("reward", "s")
    )
    assert by_name == by_s
    assert by_name.methods[-1].s == (0.5, 1.0)


def test_a_method_over_models_is_one_method_for_each(tmp_path):
    logistic = {"class": "sklearn.linear_model.LogisticRegression", "C": 2}
    once = f"""
[[method]]
name = "layer"
class = "{JOINT}"
params = {{ cv = 3 }}
over = ["linear", "tree"]
[models]
linear = {{ class = "{logistic["class"]}", C = 2 }}
tree = {{ class = "sklearn.tree.DecisionTreeClassifier" }}
"""
    *_, linear, tree = load_study(small(tmp_path, extra=once)).methods
    assert (linear.name, tree.name) == ("linear: layer", "tree: layer")
    assert linear.kind == tree.kind == "estimator"
    assert linear.params == {"cv": 3, "estimator": logistic}
    assert build_estimator(JOINT, linear.params).estimator.C == 2
    with pytest.raises(StudyError, match=r"line 23: .*'linear: layer'.*Got -1"):
        load_study(small(tmp_path, extra=once.replace("C = 2", "C = -1")))


def test_the_second_method_is_found_on_its_own_line(tmp_path):
    path = small(tmp_path, extra='\n[[method]]\nname = "other"\nstrategies = ["branchin"]\n')
    with pytest.raises(StudyError, match=r"line 22: \[method\] .*did you mean 'branching'"):
        load_study(path)


# -- classes that a file may name ------------------------------------------------------------

TOP = """
[[method]]
name = "top"
kind = "estimator"
class = "{path}"
params = {{ {params} }}
"""
INSIDE = """
[[method]]
name = "inside"
kind = "estimator"
class = "sklearn.multioutput.MultiOutputClassifier"
params = {{ estimator = {{ class = "{path}", {params} }} }}
"""
both_places = pytest.mark.parametrize(
    ("place", "line"), [(TOP, 23), (INSIDE, 24)], ids=["top", "inside"]
)


@both_places
def test_a_study_file_runs_no_function(tmp_path, place, line):
    mark = tmp_path / "mark"
    path = small(tmp_path, extra=place.format(path="os.system", params=f'command = "touch {mark}"'))
    message = rf"small.toml, line {line}: \[method\] .*class 'os.system' .*--allow os "
    with pytest.raises(StudyError, match=message):
        load_study(path)
    with pytest.raises(StudyError, match="'os.system' is not an estimator class"):
        load_study(path, allow=["os"])
    assert not mark.exists()


def test_classes_are_checked_again_where_they_are_called(tmp_path):
    """For studies that no file was read for, such as those of a folder of results."""
    command = {"command": f"touch {tmp_path / 'mark'}"}
    nested = {"estimator": {"class": "os.system", **command}}
    outer = "sklearn.multioutput.MultiOutputClassifier"
    methods = (
        Method("top", "estimator", class_path="os.system", params=command),
        Method("inside", "estimator", class_path=outer, params=nested),
    )
    study = replace(load_study(small(tmp_path)), methods=methods)
    store, failed = run(study, tmp_path / "r")
    assert failed == 2
    assert all("--allow os" in error["error"] for error in store.errors(study))
    assert not (tmp_path / "mark").exists()


@both_places
def test_a_module_that_is_not_allowed_is_not_imported(tmp_path, monkeypatch, place, line):
    mark, module = tmp_path / "mark", f"side_effect_{line}"
    code = f"import pathlib\npathlib.Path({str(mark)!r}).touch()\nclass Classifier: pass\n"
    (tmp_path / f"{module}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    path = small(tmp_path, extra=place.format(path=f"{module}.Classifier", params="a = 1"))
    for allow in ((), ("side_effect",), (f"{module}.inner",)):
        with pytest.raises(StudyError, match=rf"line {line}: .*--allow {module} "):
            load_study(path, allow)
    assert not mark.exists()
    with pytest.raises(StudyError, match="is not an estimator class"):
        load_study(path, allow=[module])
    assert mark.exists()


@pytest.mark.parametrize(
    "path",
    [
        "sklearn.utils.os.system",
        "sklearn.datasets.load_iris",
        "sklearn.linear_model",
        "sklearn.base.Foreign",
        "credalchain.studies.Store",
        "credalchain",
        "",
        "sklearn_extra.cluster.KMedoids",
    ],
)
def test_only_estimators_are_classes_of_a_study(tmp_path, monkeypatch, path):
    foreign = type("Foreign", (BaseEstimator,), {"__module__": "elsewhere"})
    monkeypatch.setattr("sklearn.base.Foreign", foreign, raising=False)
    with pytest.raises(StudyError, match="cannot be imported|not an estimator class|goes with"):
        load_study(small(tmp_path, extra=TOP.format(path=path, params="")))


@pytest.mark.parametrize("allow", ["numpy", [""], ["a/b"], ["a..b"], [1]])
def test_allow_is_a_list_of_module_names(tmp_path, allow):
    with pytest.raises(ValueError, match="allow must be a list of module names, got "):
        load_study(small(tmp_path), allow)


OWN_CLASSES = """
import numpy as np
from sklearn.tree import DecisionTreeClassifier

class Tree(DecisionTreeClassifier):
    pass

class Constant:
    def get_params(self, deep=True):
        return {}
    def set_params(self):
        return self
    def fit(self, X, Y):
        self.m = Y.shape[1]
        return self
    def predict(self, X):
        return np.ones((len(X), self.m), dtype=int)
"""


@pytest.mark.slow
def test_allowed_modules_from_the_shell(tmp_path):
    """In worker processes and from another folder too; the report needs neither."""
    (tmp_path / "own_trees.py").write_text(OWN_CLASSES)
    (tmp_path / "own_constants.py").write_text(OWN_CLASSES)
    extra = INSIDE.format(path="own_trees.Tree", params="max_depth = 2")
    extra += TOP.format(path="own_constants.Constant", params="")
    path = small(tmp_path, extra=extra)
    path.write_text(path.read_text().replace("[0.0, 0.4]", "[0.0]"))
    command = ("run", path, "--out", tmp_path / "r", "--jobs", "2")
    refused = credalchain(*command, "--allow", "own_trees", cwd=tmp_path, status=1)
    assert "line 29: [method] class 'own_constants.Constant'" in refused.stderr
    assert not (tmp_path / "r").exists()
    both = ("--allow", "own_trees", "--allow", "own_constants")
    (tmp_path / "elsewhere").mkdir()
    done = credalchain_process(*command, *both, cwd=tmp_path / "elsewhere")
    assert "3 of 3 tasks done" in done.stderr
    for module in ("own_trees.py", "own_constants.py"):
        (tmp_path / module).unlink()
    credalchain("report", "r", cwd=tmp_path)
    assert "own_trees" in (tmp_path / "r" / "study.json").read_text()
    study = Store(tmp_path / "r").study()
    assert study.allow == ()
    assert Store(tmp_path / "r").n_open(study) == 0


# -- parameters and values of caution --------------------------------------------------------

METHOD = """
[[method]]
name = "own"
kind = "estimator"
class = "{path}"
{rest}
"""
WRONG_PARAMETERS = {
    "ours": (
        "credalchain.JointDecision",
        "params = { calibration_folds = 1 }",
        "calibration_folds",
    ),
    "forest": ("credalchain.CredalJointForest", 'params = { missing = "x" }', "missing must be"),
    "ensemble": ("credalchain.CredalChainEnsemble", "params = { n_chains = 0 }", "n_chains"),
    "inside": (
        "credalchain.CredalChainClassifier",
        'params = { base = { class = "credalchain.NaiveCredal", epsilon = -1 } }',
        "epsilon .*got -1",
    ),
    "scikit-learn": (
        "sklearn.ensemble.RandomForestClassifier",
        "params = { n_estimators = -5 }",
        "'n_estimators' parameter .* Got -5",
    ),
    "name": ("credalchain.JointDecision", "params = { folds = 3 }", "argument 'folds'"),
    "word": ("credalchain.JointDecision", 'params = { calibration_folds = "no" }', "got 'no'"),
}


@pytest.mark.parametrize(("path", "rest", "words"), WRONG_PARAMETERS.values(), ids=WRONG_PARAMETERS)
def test_wrong_parameters_are_found_before_anything_runs(tmp_path, path, rest, words):
    with pytest.raises(StudyError, match=rf"line 24: \[method\] params of method 'own': .*{words}"):
        load_study(small(tmp_path, extra=METHOD.format(path=path, rest=rest)))


def test_none_is_a_word(tmp_path):
    rest = 'params = { calibration_folds = "none" }'
    study = load_study(small(tmp_path, extra=METHOD.format(path=JOINT, rest=rest)))
    assert build_estimator(JOINT, study.methods[-1].params).calibration_folds is None


JOINT = "credalchain.JointDecision"
OWN_CAUTION = """
import numpy as np
from sklearn.base import BaseEstimator
from helper_of_mine import K

class Own(BaseEstimator):
    caution_parameter = "alpha"
    def __init__(self, alpha=0.1):
        self.alpha = alpha
    def check_parameters(self):
        if not 0 <= self.alpha <= 5:
            raise ValueError(f"alpha must be from 0 to 5, got {self.alpha!r}.")
    def fit(self, X, Y):
        self.p_ = np.nanmean(Y, axis=0)
        return self
    def predict_path(self, X, values):
        noise = np.random.default_rng(0).random((len(X), len(self.p_)))
        p = (self.p_ + noise) / 2
        return np.stack([np.where(abs(p - 0.5) < alpha / K, -1, p > 0.5) for alpha in values])
"""


@pytest.fixture
def own_module(tmp_path):
    """A module beside the study file, and one that it imports."""
    (tmp_path / "own_caution.py").write_text(OWN_CAUTION)
    (tmp_path / "helper_of_mine.py").write_text("K = 10")
    yield ["own_caution"]
    for name in ("own_caution", "helper_of_mine"):
        sys.modules.pop(name, None)
    assert str(tmp_path) not in sys.path


@pytest.mark.parametrize("key", ["alpha", "s"])
def test_an_own_method_has_a_curve_along_its_own_parameter(tmp_path, own_module, key):
    """By the name of the parameter or by the general key; in the report by its name."""
    extra = METHOD.format(path="own_caution.Own", rest=f"{key} = [0.0, 1.0, 2.0, 4.0]")
    study = load_study(small(tmp_path, extra=extra), own_module)
    study = replace(study, methods=study.methods[-1:], levels=(0.0,))
    store, failed = run(study, tmp_path / "r")
    assert failed == 0, store.errors(study)
    answered = store.results(study).groupby("s")["completeness"].mean()
    assert answered.index.tolist() == [0.0, 1.0, 2.0, 4.0]
    assert answered.is_monotonic_decreasing
    assert answered.nunique() == 4
    page = write_report(study, store, tmp_path / "report")[-1].read_text()
    assert "alpha (larger is more cautious)" in page


def test_the_method_in_the_documentation(tmp_path):
    """Its class and study are run as they stand there, and are in the report."""
    text = (STUDIES.parent / "docs" / "studies.md").read_text()
    section = text.partition("### A method of your own")[2]
    for kind, file in (("python", "mine.py"), ("toml", "mine.toml")):
        (content,) = re.findall(rf"```{kind}\n(.*?)```", section.partition("## Your own")[0], re.S)
        (tmp_path / file).write_text(content)
    study = load_study(tmp_path / "mine.toml", allow=["mine"])
    store, failed = run(replace(study, folds=2), tmp_path / "r")
    assert failed == 0, store.errors(study)
    write_report(replace(study, folds=2), store, tmp_path / "report")
    summary = pd.read_csv(tmp_path / "report" / "summary.csv")
    assert summary["alpha"].tolist() == [0.0, 0.2, 0.4, 0.6, 0.8]
    assert summary["completeness"].is_monotonic_decreasing
    assert "alpha (larger is more cautious)" in (tmp_path / "report" / "report.html").read_text()
    del sys.modules["mine"]


WRONG_VALUES = {
    "no path": (
        "sklearn.tree.DecisionTreeClassifier",
        "s = [0.0, 1.0]",
        r"s = \[0.0, 1.0\] of method 'own': sklearn.tree.DecisionTreeClassifier cannot take "
        r"values of caution: it needs predict_path\(X, values\)",
    ),
    "range": ("own_caution.Own", "alpha = [1, 7]", "alpha = 7.0 of method 'own': .* from 0 to 5"),
    "word": ("own_caution.Own", 'alpha = ["x"]', "alpha: a number must be finite, got 'x'"),
    "huge": ("own_caution.Own", f"alpha = [1{'0' * 400}]", "alpha: a number must be finite"),
    "other name": ("own_caution.Own", "reward = [1]", "the caution parameter .* is alpha"),
    "twice": ("own_caution.Own", "s = [1]\nalpha = [1]", "s and alpha are the same"),
}


@pytest.mark.parametrize(("path", "rest", "words"), WRONG_VALUES.values(), ids=WRONG_VALUES.keys())
def test_values_that_a_method_cannot_take(tmp_path, own_module, path, rest, words):
    with pytest.raises(StudyError, match=rf"line 24: \[method\] .*{words}"):
        load_study(small(tmp_path, extra=METHOD.format(path=path, rest=rest)), own_module)


def test_the_reason_of_an_import_that_fails(tmp_path):
    (tmp_path / "broken_module.py").write_text("import not_there_at_all")
    for path, reason in {
        "broken_module.Own": "ModuleNotFoundError: No module named 'not_there_at_all'",
        "absent_module.Own": "ModuleNotFoundError: No module named 'absent_module'",
        "sklearn.tree.Oak": "AttributeError: module 'sklearn.tree' has no attribute 'Oak'",
    }.items():
        extra = METHOD.format(path=path, rest="")
        with pytest.raises(StudyError, match=f"class '{path}' cannot be imported: {reason}"):
            load_study(small(tmp_path, extra=extra), ["broken_module", "absent_module"])


# -- grids from the data ----------------------------------------------------------------------

CHOSEN = """
seed = 3
data = ["embedded:yeast"]
measures = ["set_accuracy", "completeness"]
cross_validation = { folds = 2 }
corruption = { levels = [0.0, 0.4] }

[[method]]
name = "chain"
strategies = ["branching", "marginalization"]

[[method]]
name = "own"
kind = "estimator"
class = "own_caution.Own"

[[method]]
name = "joint"
kind = "estimator"
class = "credalchain.JointDecision"
params = { estimator = { class = "credalchain.CredalBinaryRelevanceClassifier" } }
"""


@pytest.mark.slow
def test_values_that_a_study_does_not_name_are_equal_steps_of_completeness(tmp_path, own_module):
    source = OWN_CAUTION.replace("<= 5", "").replace("/ K", "/ K**4")  # around 1,000
    (tmp_path / "own_caution.py").write_text(source)
    (tmp_path / "chosen.toml").write_text(CHOSEN)
    study = load_study(tmp_path / "chosen.toml", own_module)
    assert [method.s for method in study.methods] == [None] * 3
    store, failed = run(study, tmp_path / "r")
    assert failed == 0, store.errors(study)
    assert Store(tmp_path / "r").study().methods == study.methods
    results = store.results(study)
    assert set(results["caution_parameter"]) == {"target_completeness"}
    names = results.groupby("method")["chosen_parameter"].unique().map(list).to_dict()
    assert names == {"chain": ["s"], "own": ["alpha"], "joint": ["reward"]}
    for key, curve in summarize(results).groupby(["method", "strategy", "missing"]):
        assert len(curve) == 20
        assert curve["completeness"].diff().abs().max() < 0.09, key
        assert (curve["completeness"] - curve["s"]).abs().max() < 0.1, key
        assert curve["completeness"].iloc[0] == 1, key
    page = write_report(study, store, tmp_path / "report")[-1].read_text()
    assert "target_completeness (smaller is more cautious)" in page
    assert "labels play no part" in page


def test_chosen_values_reach_answers_that_are_nearly_certain(tmp_path):
    """Most errors of this model are less probable than its least positive cost to be tried."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1))
    table = pd.DataFrame({"tempo": X[:, 0], "rock": X[:, 0] > 0, "pop": X[:, 0] > 0.1})
    table.astype({"rock": int, "pop": int}).to_csv(tmp_path / "songs.csv", index=False)
    (tmp_path / "sure.toml").write_text("""
data = [{ file = "songs.csv", labels = ["rock", "pop"] }]
[[method]]
class = "credalchain.rivals.RejectOption"
over = ["logistic"]
[models]
logistic = { class = "sklearn.linear_model.LogisticRegression", C = 1000 }
""")
    study = replace(load_study(tmp_path / "sure.toml"), folds=2)
    results = run(study, tmp_path / "r")[0].results(study)
    assert results["completeness"].min() < 0.5
    chosen = results["chosen_value"]
    assert 0 < chosen[chosen > 0].min() < 1e-3


def test_chosen_values_do_not_depend_on_test_labels(tmp_path):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(90, 2)), rng.random((90, 2)) < 0.5
    study = replace(load_study(small(tmp_path)), folds=3, levels=(0.0,), measures=("completeness",))
    study = replace(study, methods=(Method("chain", s=None),), settings="default")
    folds = folds_of(study, "songs", Y, 0)
    chosen = []
    for change in (False, True):
        if change:
            Y[folds[0]] ^= True
        table = pd.DataFrame(
            np.hstack([X, Y.astype(int)]), columns=["tempo", "year", "rock", "pop"]
        )
        table.astype({"rock": int, "pop": int}).to_csv(tmp_path / "songs.csv", index=False)
        data = DataFile.describe("songs.csv", ["rock", "pop"], tmp_path, "")
        one = replace(study, data=(data,))
        results = run(one, tmp_path / str(change))[0].results(one)
        chosen.append(results.pivot(index="s", columns="fold", values="chosen_value"))
    assert chosen[0][0].equals(chosen[1][0])
    assert not chosen[0][1].equals(chosen[1][1])


def test_a_value_in_the_parameters_is_named(tmp_path):
    rest = "params = { reward = 0.5 }"
    (method,) = load_study(small(tmp_path, extra=METHOD.format(path=JOINT, rest=rest))).methods[1:]
    assert method.s == ()
    tree = METHOD.format(path="sklearn.tree.DecisionTreeClassifier", rest="")
    assert load_study(small(tmp_path, extra=tree)).methods[-1].s == ()


def test_a_method_that_cannot_be_probed_says_so(tmp_path, own_module):
    source = OWN_CAUTION.replace("noise =", "assert max(values) <= 5, 'too much'\n        noise =")
    (tmp_path / "own_caution.py").write_text(source)
    study = load_study(
        small(tmp_path, extra=METHOD.format(path="own_caution.Own", rest="")), own_module
    )
    store, failed = run(replace(study, methods=study.methods[-1:]), tmp_path / "r")
    assert failed == 1
    (error,) = store.errors(study)
    assert "(too much): name them in the study, as alpha = [...]" in error["error"]


# -- identities and seeds --------------------------------------------------------------------


def test_adding_work_changes_no_other_number(tmp_path):
    study = load_study(small(tmp_path))
    alone, _ = run(study, tmp_path / "a")
    extended = replace(
        study,
        methods=(
            replace(study.methods[0], s=(0.0, 1.0, 2.0)),
            Method("alone", kind="relevance", s=(2.0,)),
        ),
        levels=(0.0, 0.2, 0.4),
    )
    more, _ = run(extended, tmp_path / "b")
    keys = ["dataset", "method", "strategy", "s", "missing", "repetition", "fold"]
    left = alone.results(study).set_index(keys)[["set_accuracy", "completeness"]]
    right = more.results(extended).set_index(keys)[["set_accuracy", "completeness"]]
    assert len(right) > len(left)
    pd.testing.assert_frame_equal(left, right.loc[left.index])


def test_everything_is_paired(tmp_path):
    study = load_study(small(tmp_path))
    Y = load_embedded_yeast().Y
    assert [f.tolist() for f in folds_of(study, "d", Y, 0)] == [
        f.tolist() for f in folds_of(study, "d", Y, 0)
    ]
    low, high = damaged_labels(study, "d", Y, 0)
    assert ((high == -1) | (high == Y)).all()
    assert (low == Y).all()
    assert order_of(study, "d", 0, 1, 14).tolist() == order_of(study, "d", 0, 1, 14).tolist()
    assert order_of(study, "d", 0, 1, 14).tolist() != order_of(study, "d", 0, 2, 14).tolist()
    assert seed_of(1, "a").entropy != seed_of(1, "b").entropy


def test_folds_are_partitions():
    Y = np.zeros((300, 6), np.int8)
    folds = folds_of(replace(load_study(STUDIES / "embedded.toml"), folds=7), "d", Y, 0)
    assert sorted(np.concatenate(folds).tolist()) == list(range(300))
    assert max(map(len, folds)) - min(map(len, folds)) <= 1


# -- results ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("settings", "limit"), [("published", 0), ("paper", 0), ("paper", 100)])
def test_the_runner_equals_the_estimator_used_by_hand(tmp_path, settings, limit):
    study = replace(load_study(small(tmp_path, settings)), max_training_rows=limit)
    store, failed = run(study, tmp_path / "r")
    assert failed == 0
    results = store.results(study)
    data = load_embedded_yeast()
    folds = folds_of(study, "embedded:yeast", data.Y, 0)
    labels = damaged_labels(study, "embedded:yeast", data.Y, 0)[1]
    training = np.sort(np.concatenate(folds[1:]))
    if limit:
        rng = np.random.default_rng(seed_of(7, "rows", "embedded:yeast", 0, 0))
        training = rng.permutation(training)[:limit]
    bins = Discretizer(6).fit(data.X if settings == "published" else data.X[training])
    options = (
        {"epsilon": 0.001}
        if settings == "published"
        else {"epsilon": 0, "prior": "paper", "denominator": "class"}
    )
    codes = bins.transform(data.X)
    from credalchain.chains.naive.counts import as_codes, count

    k = bins.n_categories_
    chain = CredalChainClassifier.from_counts(
        count(as_codes(codes[training], k), labels[training], k),
        base=NaiveCredal(discretizer=None, **options),
        order=order_of(study, "embedded:yeast", 0, 0, 14),
    )
    for strategy in ("branching", "marginalization"):
        prediction = chain.infer(codes[folds[0]], s=2.0, strategy=strategy)
        row = results[
            (results.strategy == strategy)
            & (results.s == 2.0)
            & (results.missing == 0.4)
            & (results.fold == 0)
        ].iloc[0]
        assert row.set_accuracy == set_accuracy(data.Y[folds[0]], prediction)
        assert row.completeness == completeness(None, prediction)


SIZED = """
import numpy as np
from sklearn.base import BaseEstimator

class Sized(BaseEstimator):
    def fit(self, X, Y):
        if Y.shape != (50, 3) or len(X) != 50:
            raise ValueError(f"{X.shape} {Y.shape}")
        return self

    def predict(self, X):
        return np.ones((len(X), 3), dtype=int)
"""


def test_limits_of_rows_and_labels(tmp_path):
    (tmp_path / "sized.py").write_text(SIZED)
    limits = "[limits]\nlabels = 3\ntraining_rows = 50\n"
    path = small(tmp_path, extra=limits + METHOD.format(path="sized.Sized", rest=""))
    study = load_study(path, allow=["sized"])
    store, failed = run(study, tmp_path / "r")
    assert failed == 0, store.errors(study)
    (facts,) = store.facts()
    data = load_embedded_yeast()
    assert (facts["rows"], facts["labels"]) == (len(data.Y), 3)
    most = np.sort((data.Y == 1).mean(axis=0))[-3:].sum()
    assert facts["cardinality"] == pytest.approx(most)
    sys.modules.pop("sized")


def test_records_have_versions_seeds_and_timings(tmp_path):
    study = load_study(small(tmp_path))
    store, _ = run(study, tmp_path / "r")
    results = store.results(study)
    assert len(results) == 1 * 2 * 2 * 2 * 3
    for column in ("seed", "version_python", "version_credalchain", "predict_seconds"):
        assert results[column].notna().all()
    summary = summarize(results)
    assert len(summary) == 8


def test_every_measure_and_kind_of_method(tmp_path):
    study = replace(
        load_study(small(tmp_path)),
        measures=tuple(MEASURES),
        methods=(
            Method("chain", s=(0.0, 2.0), order="dynamic"),
            Method("alone", kind="relevance", s=(2.0,)),
        ),
        levels=(0.0,),
        folds=2,
    )
    store, failed = run(study, tmp_path / "r")
    assert failed == 0, store.errors(study)
    assert store.results(study)[list(MEASURES)].notna().all().all()


TREE = """
[[method]]
name = "tree"
kind = "estimator"
class = "sklearn.tree.DecisionTreeClassifier"
params = {max_depth = 3}
"""


def test_other_estimators_and_failures(tmp_path):
    """A decision tree cannot learn from missing labels: recorded, and the rest goes on."""
    study = load_study(small(tmp_path, extra=TREE))
    store, failed = run(study, tmp_path / "r")
    assert failed == 1
    assert "NaN" in store.errors(study)[0]["error"]
    assert store.n_open(study) == 1
    assert set(store.results(study)["method"]) == {"chain"}
    whole = replace(study, levels=(0.0,))
    store, failed = run(whole, tmp_path / "r")
    assert failed == 0
    assert not list((tmp_path / "r" / "errors").iterdir())  # also of other settings
    results = store.results(whole)
    assert (results[results.method == "tree"]["completeness"] == 1).all()
    assert results.groupby("method")["caution_parameter"].unique().map(list).to_dict() == {
        "chain": ["s"],
        "tree": [""],
    }


@pytest.mark.slow
def test_an_estimator_with_a_knob_of_its_own(tmp_path):
    own = """
[[method]]
name = "_a $x$ <b>"
kind = "estimator"
class = "credalchain.CredalChainClassifier"
params = {s = 5.0, strategy = "marginalization", order = "given"}
"""
    study = load_study(small(tmp_path, extra=own))
    study = replace(study, measures=tuple(MEASURES), methods=study.methods[1:])
    store, failed = run(study, tmp_path / "r")
    assert failed == 0, store.errors(study)
    results = store.results(study)
    assert set(results["s"]) == {5.0}
    assert (results["fit_seconds"] > 0).all()
    page = write_report(study, store, tmp_path / "report")[-1].read_text()
    assert "<b>" not in page
    assert "&lt;b&gt;" in page


def test_set_accuracy_at_equal_completeness():
    """On the line between two points, nothing beyond the ends, each curve by itself."""
    points = [
        ("a", 0.0, 1.0, 0.2),
        ("a", 1.0, 0.7, 0.5),
        ("a", 9.0, 0.1, 0.9),
        ("b", 0.0, 0.8, 0.4),
    ]
    summary = pd.DataFrame(points, columns=["method", "s", "completeness", "set_accuracy"])
    summary = summary.assign(dataset="d", strategy="none", missing=0.0, repetition=0, fold=0)
    found = at_completeness(summary, (0.05, 0.4, 0.7, 0.8, 1.0)).set_index("method")
    expected = [np.nan, 0.7, 0.5, 0.4, 0.2]
    np.testing.assert_allclose(found.loc["a", [0.05, 0.4, 0.7, 0.8, 1.0]].astype(float), expected)
    assert found.loc["b", 0.8] == 0.4
    assert np.isnan(found.loc["b", 0.7])


NESTED = """
[[method]]
name = "joint"
kind = "estimator"
class = "credalchain.JointDecision"
params = {{ estimator = {{ class = "{inner}", n_chains = 2 }} }}
s = [0.1, 1.0, 1000.0]
"""


def test_estimators_inside_estimators(tmp_path):
    """Along the reward, seeded inside and out: two runs give the same."""
    text = NESTED.format(inner="credalchain.CredalChainEnsemble")
    study = load_study(small(tmp_path, extra=text))
    measures = ("set_accuracy", "completeness", "maximin_accuracy")
    study = replace(study, measures=measures, methods=study.methods[1:], levels=(0.0,))
    found = []
    for folder in "ab":
        store, failed = run(study, tmp_path / folder)
        assert failed == 0, store.errors(study)
        found.append(values(store.results(study)))
    pd.testing.assert_frame_equal(*found)
    assert set(found[0]["caution_parameter"]) == {"reward"}
    assert not found[0]["larger_is_more_cautious"].any()
    answered = found[0].groupby("s")["completeness"].mean()
    assert answered[0.1] < answered[1.0] < answered[1000.0] == 1
    with pytest.raises(StudyError, match="class 'no.such' cannot be imported"):
        load_study(small(tmp_path, extra=NESTED.format(inner="no.such")))


def test_a_damaged_result_is_computed_again(tmp_path):
    study = load_study(small(tmp_path))
    store, _ = run(study, tmp_path / "r")
    (file,) = (tmp_path / "r" / "results").glob("*.parquet")
    whole = values(store.results(study))
    file.write_bytes(file.read_bytes()[:500])
    assert store.n_open(study) == 1
    run(study, tmp_path / "r")
    pd.testing.assert_frame_equal(values(store.results(study)), whole)
    assert (store.results(study)["fit_seconds"] > 0).all()


def test_more_folds_than_rows(tmp_path):
    study = replace(load_study(small(tmp_path)), folds=3000)
    with pytest.raises(StudyError, match="2417 rows, but folds is 3000"):
        run(study, tmp_path / "r")
    assert not (tmp_path / "r").exists()


@pytest.mark.slow
def test_long_names(tmp_path):
    study = load_study(small(tmp_path))
    study = replace(study, methods=(replace(study.methods[0], name="long " * 80),))
    store, failed = run(study, tmp_path / "r")
    assert failed == 0
    write_report(study, store, tmp_path / "report")


@pytest.mark.slow
def test_workers_do_not_change_numbers(tmp_path):
    study = load_study(small(tmp_path, repeats=3))
    one, _ = run(study, tmp_path / "one", n_jobs=1)
    for few_tasks, workers in ((100, "threads"), (1, "processes")):
        with mock.patch.object(run_module, "_FEW_TASKS", few_tasks):
            two, _ = run(study, tmp_path / workers, n_jobs=2)
        pd.testing.assert_frame_equal(values(one.results(study)), values(two.results(study)))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_does_not_change_numbers(tmp_path):
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    study = replace(load_study(small(tmp_path, repeats=2)), levels=(0.0,))
    one, _ = run(study, tmp_path / "one")
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(**options) as cluster,
        distributed.Client(cluster),
        parallel_config("dask"),
    ):
        two, failed = run(study, tmp_path / "two", n_jobs=-1)
    assert failed == 0
    pd.testing.assert_frame_equal(values(one.results(study)), values(two.results(study)))


def run_under_way(path):
    """A run in a process of its own, with two workers, that has its first results."""
    process = subprocess.Popen(
        [sys.executable, "-m", "credalchain", "run", path, "--out", "r", "--jobs", "2"],
        cwd=path.parent,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    results = path.parent / "r" / "results"
    deadline = time.monotonic() + 120
    while len(list(results.glob("*.parquet"))) < 3:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    return process


def living_workers(session):
    """Processes of workers that were started in a session, by their number."""
    listed = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,pgid=,stat=,args="],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line.split(None, 3) for line in listed.stdout.splitlines()]
    return [
        int(pid)
        for pid, group, state, arguments in lines
        if int(group) == session and state[0] != "Z" and "LokyProcess" in arguments
    ]


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_goes_on_where_it_was(tmp_path, how):
    """Killed for real, the parent alone: workers leave, and what was finished stays."""
    path = small(tmp_path, repeats=20)
    study = load_study(path)
    process = run_under_way(path)
    results = tmp_path / "r" / "results"
    assert len(living_workers(process.pid)) == 2
    process.send_signal(how)
    deadline = time.monotonic() + 10
    while left := living_workers(process.pid):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)
    _, said = process.communicate()
    assert process.returncode != 0
    assert ("the same command goes on" in said) == (how == signal.SIGINT)
    assert "Traceback" not in said
    before = {file.name: file.read_bytes() for file in results.glob("*.parquet")}
    assert 3 <= len(before) < 20
    for file in before:
        pd.read_parquet(results / file)
    store, _ = run(study, tmp_path / "r")
    assert all((results / name).read_bytes() == content for name, content in before.items())
    clean, _ = run(study, tmp_path / "clean")
    pd.testing.assert_frame_equal(values(store.results(study)), values(clean.results(study)))


@pytest.mark.nightly
@pytest.mark.slow
def test_a_killed_worker_does_not_stop_a_run(tmp_path):
    path = small(tmp_path, repeats=12)
    study = load_study(path)
    process = run_under_way(path)
    os.kill(living_workers(process.pid)[0], signal.SIGKILL)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert "Traceback" not in said
    clean, _ = run(study, tmp_path / "clean")
    pd.testing.assert_frame_equal(
        values(Store(tmp_path / "r").results(study)), values(clean.results(study))
    )


DEADLY = """
import os
import signal

from sklearn.base import BaseEstimator


class Deadly(BaseEstimator):
    def fit(self, X, Y):
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.nightly
@pytest.mark.slow
def test_a_task_that_always_loses_its_worker_fails_alone(tmp_path, monkeypatch):
    """It is tried twice, the tasks beside it are done, and the next run goes on."""
    (tmp_path / "deadly.py").write_text(DEADLY)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.syspath_prepend(tmp_path)
    deadly = '\n[[method]]\nname = "deadly"\nkind = "estimator"\nclass = "deadly.Deadly"\n'
    path = small(tmp_path, repeats=2, extra=deadly + TREE)
    path.write_text(path.read_text().replace("[0.0, 0.4]", "[0.0]"))
    options = ("--out", "r", "--jobs", "2", "--allow", "deadly")
    done = credalchain_process("run", path, *options, cwd=tmp_path, status=1)
    assert "What was under way is tried once more" in done.stderr
    assert "2 tasks failed, the others are done; the first: embedded:yeast, deadly" in done.stderr
    assert "Run the study again to go on, with fewer workers" in done.stderr
    study, store = load_study(path, allow=["deadly"]), Store(tmp_path / "r")
    assert [error["method"] for error in store.errors(study)] == ["deadly", "deadly"]
    assert store.results(study).groupby("method")["repetition"].nunique().to_dict() == {
        "chain": 2,
        "tree": 2,
    }


@pytest.mark.slow
def test_run_and_report_from_the_shell(tmp_path):
    path = small(tmp_path)
    done = credalchain("run", path, "--out", "r", cwd=tmp_path)
    assert "1 of 1 task done" in done.stderr
    again = credalchain("run", path, "--out", "r", cwd=tmp_path)
    assert "0 of 0 tasks done" in again.stderr
    done = credalchain("report", "r", cwd=tmp_path)
    assert done.stdout.startswith("0 and 40 % of the training labels removed: Best where the same")
    assert "No test was possible with 3 results of folds for each data set" in done.stdout
    assert len(done.stdout.splitlines()) < 12
    assert re.search(r"files; open \S+report.html", done.stderr)
    page = (tmp_path / "r" / "report" / "report.html").read_text()
    assert "<svg" in page
    assert "embedded:yeast" in page
    addresses = re.findall(r'(?:src|href)="([^"]{0,40})', page)
    assert all(address.startswith(("data:text/csv", "#")) for address in addresses)
    names = {file.name for file in (tmp_path / "r" / "report").iterdir()}
    assert {"summary.csv", "datasets.csv", "measures.csv", "trade_off.svg"} <= names


@pytest.mark.slow
def test_problems_are_told_by_the_exit_status(tmp_path):
    path = small(tmp_path, extra=TREE)
    done = credalchain("run", path, "--out", "r", cwd=tmp_path, status=1)
    assert "1 task failed, the others are done; the first: embedded:yeast, tree" in done.stderr
    done = credalchain("run", path, "--out", "r", cwd=tmp_path, status=1)
    assert "1 task failed; the first: embedded:yeast, tree" in done.stderr
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("sead = 1\n")
    done = credalchain("run", wrong, "--out", "w", cwd=tmp_path, status=1)
    assert "did you mean 'seed'" in done.stderr
    assert not (tmp_path / "w").exists()
    done = credalchain("report", tmp_path, cwd=tmp_path, status=1)
    assert "is not the folder of a run" in done.stderr


@pytest.mark.slow
def test_a_data_set_that_cannot_be_had_stops_only_its_own_tasks(tmp_path, monkeypatch):
    monkeypatch.setenv("CREDALCHAIN_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("credalchain.datasets.registry.SOURCE", "http://127.0.0.1:9/")
    monkeypatch.setattr("credalchain.datasets.downloads._RETRIES", 0)
    study = replace(load_study(small(tmp_path)), data=("flags", "embedded:yeast"))
    reads = []
    monkeypatch.setattr(
        "credalchain.studies.running.run_task", lambda task: reads.append(task) or run_task(task)
    )
    store, failed = run(study, tmp_path / "r")
    assert failed == 1
    assert [task.dataset for task in reads] == ["embedded:yeast"]
    assert "could not be downloaded" in store.errors(study)[0]["error"]
    files = write_report(study, store, tmp_path / "report")
    assert "1 task of this study without a result" in files[-1].read_text()


@pytest.mark.slow
def test_the_same_report_for_the_same_results(tmp_path):
    study = load_study(small(tmp_path))
    store, _ = run(study, tmp_path / "r")
    first = {f.name: f.read_bytes() for f in write_report(study, store, tmp_path / "a")}
    second = {f.name: f.read_bytes() for f in write_report(study, store, tmp_path / "b")}
    assert first == second
    assert json.loads((tmp_path / "r" / "datasets.json").read_text())[0]["rows"] == 2417


@pytest.mark.skipif(
    "CREDALCHAIN_DATA" not in os.environ,
    reason="CREDALCHAIN_DATA does not name a folder with the MULAN files",
)
def test_emotions_comes_out_as_it_should(tmp_path):
    """The reference figures, 10 x 10 folds, published settings: within 1.5 points, all of them."""
    study = load_study(STUDIES / "paper.toml")
    study = replace(study, data=("emotions",), levels=(0.0, 0.4, 0.8))
    store, _ = run(study, tmp_path / "r", n_jobs=2)
    summary = summarize(store.results(study)).set_index(["strategy", "missing", "s"])
    grid = (0.5, 1.5, 2.5, 3.5, 4.5, 5.5)
    branching = {
        0.0: "32.1/95.0 40.4/85.2 47.1/75.9 54.2/67.7 60.2/60.1 65.1/53.6",
        0.4: "33.6/92.1 47.8/76.1 59.1/62.4 67.2/51.1 73.9/41.5 79.0/32.9",
        0.8: "48.4/74.3 79.0/37.1 90.6/14.7 96.6/5.1 98.7/1.9 99.6/0.7",
    }
    reference = {
        ("branching", level, s): figures
        for level, row in branching.items()
        for s, figures in zip(grid, row.split(), strict=True)
    }
    for level, figures in ((0.0, "61.1/57.6"), (0.4, "75.0/37.4"), (0.8, "98.8/1.6")):
        reference["marginalization", level, 5.5] = figures
    assert len(reference) == 21
    for key, figures in reference.items():
        sa, cp = map(float, figures.split("/"))
        assert abs(100 * summary.loc[key, "set_accuracy"] - sa) < 1.5, key
        assert abs(100 * summary.loc[key, "completeness"] - cp) < 1.5, key


@pytest.mark.slow
@pytest.mark.skipif(
    "CREDALCHAIN_DATA" not in os.environ,
    reason="CREDALCHAIN_DATA does not name a folder with the MULAN files",
)
def test_data_commands(tmp_path):
    listed = credalchain("data", "list", cwd=tmp_path).stdout
    assert re.search(r"medical\W+text\W+1449\W+45\W+978\W+1.25\W+0.03", listed)
    assert "Turnbull" in credalchain("data", "get", "CAL500", cwd=tmp_path).stderr
    files = credalchain("data", "get", "flags", cwd=tmp_path).stdout.splitlines()
    assert files[0].endswith("flags.arff")
    credalchain("fit", files[0], "--labels", "xml", "--s", "1", "--out", "m", cwd=tmp_path)
    credalchain("predict", "m", files[0], "--out", "a.csv", cwd=tmp_path)
    assert pd.read_csv(tmp_path / "a.csv").shape == (194, 7)
    by_name = credalchain("fit", "mulan:flags", "--s", "1", "--out", "n", cwd=tmp_path)
    assert "7 labels" in by_name.stderr
    credalchain("fit", files[0], "--labels", "last:7", "--s", "1", "--out", "l", cwd=tmp_path)
    by_xml, by_place = (load_model(tmp_path / name) for name in ("m", "l"))
    assert by_xml.model_.counts == by_place.model_.counts
    wrong = credalchain("data", "get", "flag", cwd=tmp_path, status=1)
    assert "name must be one of" in wrong.stderr


def test_listing_downloads_nothing(monkeypatch, capsys, tmp_path):
    monkeypatch.delenv("CREDALCHAIN_DATA", raising=False)
    monkeypatch.setattr("pooch.os_cache", lambda name: tmp_path)
    data_command.list_all()
    shown = capsys.readouterr()
    assert f"not on this machine yet: {', '.join(MULAN)} " in shown.err
    assert shown.out.count("?") == len(MULAN) * 5


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ('{ memory = "cache" }', "memory cannot be set in a study"),
        ('{ base = { class = "sklearn.pipeline.Pipeline", memory = "c" } }', "memory cannot be"),
        ('{ steps = [["a", { class = "os.system" }]] }', "os.system' cannot be imported"),
        ("{ " + ".".join("a" * 3000) + " = 1 }", "params must be numbers"),
    ],
    ids=["cache", "cache inside", "class in a list", "very deep"],
)
def test_parameters_that_could_run_code_are_refused(tmp_path, params, words):
    method = f"""
[[method]]
name = "other"
kind = "estimator"
class = "sklearn.cluster.FeatureAgglomeration"
params = {params}
"""
    path = small(tmp_path, extra=method)
    with pytest.raises(StudyError, match=words):
        load_study(path)
