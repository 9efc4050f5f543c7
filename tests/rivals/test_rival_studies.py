"""The studies of rivals: their files are right, and their bases and methods run."""

import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from credalchain.datasets.registry import DATASETS
from credalchain.rivals import PartialAbstention, RejectOption
from credalchain.studies import Store, load_study, run_study, write_report

STUDIES = Path(__file__).parents[2] / "studies"
NAMES = ["rivals", "rivals-quick", "rivals-few-labels"]


@pytest.fixture
def folder(tmp_path):
    """Copies of the studies without what needs other packages, and their modules."""
    for name in ("bases.py", "mine.py"):
        shutil.copy(STUDIES / name, tmp_path)
    others = "LightGBM|XGBoost|CatBoost|BOOMER"
    for name in NAMES:
        text = (STUDIES / f"{name}.toml").read_text()
        text = re.sub(rf"(?m)^({others}) = .*$", "", text)
        (tmp_path / f"{name}.toml").write_text(re.sub(rf', "({others})"', "", text))
    yield tmp_path
    for name in ("bases", "mine"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", NAMES)
def test_the_files_are_right(name, folder):
    study = load_study(folder / f"{name}.toml", allow=["bases", "mine"])
    assert set(study.data) <= set(DATASETS)
    assert "credalchain.JointDecision" in [method.class_path for method in study.methods] or (
        name == "rivals-few-labels"
    )


@pytest.mark.slow
def test_ones_own_method_is_in_the_report_beside_rivals(folder, tmp_path):
    study = load_study(folder / "rivals-quick.toml", allow=["bases", "mine"])
    wanted = ("neighbours", "ML-kNN: subset", "naive credal")
    methods = tuple(method for method in study.methods if method.name.startswith(wanted))
    assert len(methods) == 3
    study = replace(study, methods=methods, data=("embedded:yeast",), folds=2)
    store = Store(tmp_path / "results")
    assert run_study(study, store, n_jobs=1) == 0, store.errors(study)
    write_report(study, store, tmp_path / "report")
    summary = pd.read_csv(tmp_path / "report" / "summary.csv")
    assert set(summary["method"]) == {method.name for method in methods}
    for _, curve in summary.groupby("method"):
        assert curve["completeness"].max() > 0.8
        assert curve["completeness"].min() < 0.4


def test_the_method_in_the_documentation_is_the_one_that_runs():
    text = (STUDIES.parent / "docs" / "comparison.md").read_text()
    (code,) = re.findall(r"```python\n(class .*?)```", text, re.S)
    lines = [line for line in code.splitlines() if line]
    assert len(lines) <= 20
    assert set(lines) <= set((STUDIES / "mine.py").read_text().splitlines())
    (table,) = re.findall(r"```toml\n(.*?)```", text, re.S)
    assert table in (STUDIES / "rivals-quick.toml").read_text()


@pytest.mark.parametrize(("m", "n_sets"), [(1, 1), (2, 1), (3, 1), (4, 4), (5, 10), (14, 28)])
def test_random_labelsets_are_different_and_hold_every_label(m, n_sets, folder, monkeypatch):
    monkeypatch.syspath_prepend(folder)
    import bases

    Y = np.random.default_rng(0).integers(0, 2, (20, m))
    fitted = bases.RandomLabelsets(n_trees=1, random_state=0).fit(np.zeros((20, 1)), Y)
    assert len(fitted.sets_) == len({frozenset(labels) for labels in fitted.sets_}) == n_sets
    assert {len(labels) for labels in fitted.sets_} == {min(3, m)}
    assert set().union(*fitted.sets_) == set(range(m))


@pytest.mark.parametrize("name", ["EnsembleOfChains", "LabelPowerset", "RandomLabelsets", "MLkNN"])
def test_bases_learn_labels_that_go_together(name, folder, monkeypatch):
    monkeypatch.syspath_prepend(folder)
    import bases

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    Y = (X[:, [0, 0, 1]] > 0).astype(int)
    base = getattr(bases, name)(random_state=0)
    p = base.fit(X[:200], Y[:200]).predict_proba(X[200:])
    assert p.shape == (100, 3)
    assert ((p >= 0) & (p <= 1)).all()
    assert ((p > 0.5) == Y[200:]).mean() > 0.85
    fitted = PartialAbstention(base, loss="subset").fit(X[:200], Y[:200])
    np.testing.assert_allclose(fitted.label_proba(X[200:]), p, atol=1e-9)
    missing = np.where(rng.uniform(size=Y.shape) < 0.4, np.nan, Y)
    partial = RejectOption(base).fit(X[:200], missing[:200]).label_proba(X[200:])
    assert ((partial > 0.5) == Y[200:]).mean() > 0.8
