"""The demo, as `make demo` runs it."""

import runpy
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest

from credalchain.datasets import load_embedded_yeast

SCRIPT = Path(__file__).parents[1] / "examples" / "demo.py"


def test_the_embedded_data_is_the_papers_yeast():
    X, Y, features, labels = load_embedded_yeast()
    assert X.shape == (2417, 103)
    assert Y.shape == (2417, 14)
    assert labels == [f"Class{j}" for j in range(1, 15)]
    assert len(features) == 103
    assert round(float(Y.sum(axis=1).mean()), 2) == 4.24
    assert np.isfinite(X).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_demo_shows_both_models_a_promise_and_four_pictures(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "with a space"
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), str(folder)])
    with matplotlib.rc_context():
        runpy.run_path(str(SCRIPT), run_name="__main__")
    shown = capsys.readouterr().out
    assert shown.index("JointDecision()") < shown.index("CredalChainClassifier()")
    assert "at most one row in five has a wrong answer" in shown
    assert "new rows" in shown
    files = {file.name for file in folder.iterdir()}
    pictures = {
        f"{name}.{suffix}"
        for name in ("recommended_and_chain", "predictions")
        for suffix in ("png", "svg")
    }
    assert files == {*pictures, "yeast.model", "yeast-new.csv"}
    assert "-m credalchain review" in shown
    for name in files:
        assert name in shown.replace("\n", "")
