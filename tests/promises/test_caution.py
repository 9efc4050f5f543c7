"""Caution chosen by how much is to be answered."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from credalchain import (
    CredalChainClassifier,
    CredalChainEnsemble,
    JointDecision,
    PromisedClassifier,
    choose_caution,
    load_model,
    promise_curve,
    save_model,
)
from shell import credalchain


def problem(n=600):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    return X, (X[:, :3] + rng.normal(size=(n, 3)) > 0).astype(int)


@pytest.mark.parametrize(
    "estimator",
    [
        CredalChainClassifier(random_state=0),
        JointDecision(CredalChainEnsemble(n_chains=3, random_state=0), calibration_folds=None),
        make_pipeline(StandardScaler(), CredalChainClassifier(random_state=0)),
    ],
    ids=["chain", "decision", "pipeline"],
)
@pytest.mark.parametrize("share", [0.3, 0.8])
def test_about_the_share_that_was_asked_for(estimator, share):
    X, Y = problem()
    chosen = choose_caution(estimator, X, Y, completeness=share, random_state=0)
    assert share - 0.15 < chosen.completeness <= share
    assert chosen.n_rows == 150
    assert 0 <= chosen.selective_error < 0.5
    assert f"answers {chosen.completeness:.0%} of the labels" in str(chosen)
    final = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    assert chosen.parameter == final.caution_parameter
    assert chosen == choose_caution(estimator, X, Y, completeness=share, random_state=0)


def test_a_fit_on_all_rows_answers_about_as_much():
    """Counts are larger then, so s has to be."""
    answered = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, W = rng.normal(size=(2400, 6)), rng.normal(size=(6, 4))
        Y = (X @ W + 2 * rng.normal(size=(2400, 4)) > 0).astype(int)
        chain = CredalChainClassifier(random_state=0)
        chosen = choose_caution(chain, X[:400], Y[:400], random_state=seed)
        chain.set_params(s=chosen.value).fit(X[:400], Y[:400])
        answered.append((chain.predict_partial(X[400:]) != -1).mean())
    assert abs(np.mean(answered) - 0.8) < 0.03


def test_what_is_refused():
    X, Y = problem()
    for share in (0, 1.5, "much"):
        with pytest.raises(ValueError, match="completeness must be"):
            choose_caution(CredalChainClassifier(), X, Y, completeness=share)
    with pytest.raises(ValueError, match="at least 20 rows"):
        choose_caution(CredalChainClassifier(), X[:10], Y[:10])
    with pytest.raises(TypeError, match="estimator must have"):
        choose_caution(StandardScaler(), X, Y)


def test_on_the_command_line(tmp_path):
    X, Y = problem()
    rows = np.hstack([X, Y])
    header = "a,b,c,d,x,y,z"
    np.savetxt(tmp_path / "data.csv", rows, delimiter=",", header=header, comments="", fmt="%.4f")
    given = ["data.csv", "--labels", "last:3", "--method", "chain", "--out", "m"]
    done = credalchain("fit", *given, "--answered", "0.6", cwd=tmp_path)
    assert "of 150 rows held out" in done.stderr
    assert load_model(tmp_path / "m").s > 0
    for options, words in (
        (["--answered", "2"], "--answered must be between 0 and 1"),
        (["--answered", "0.5", "--s", "1"], "--s is chosen by --answered"),
        (["--answered", "0.5", "--promise", "row-error=0.1"], "both choose caution"),
    ):
        assert words in credalchain("fit", *given, *options, cwd=tmp_path, status=1).stderr
    credalchain("fit", *given, "--s", "1e6", cwd=tmp_path)
    done = credalchain("predict", "m", "data.csv", "--out", "o.csv", cwd=tmp_path)
    assert "nearly nothing is answered. Try a smaller --s" in done.stderr
    credalchain("fit", *given, "--s", "0", cwd=tmp_path)
    done = credalchain("predict", "m", "data.csv", "--out", "o.csv", cwd=tmp_path)
    assert "everything is answered" in done.stderr


def test_labels_that_are_always_no_do_not_count():
    """A chain leaves them open: the others would be answered in their place."""
    X, Y = problem()
    always_no = np.hstack([Y, np.zeros((len(Y), 2), dtype=int)])
    chain = CredalChainClassifier(order="given")
    alone = choose_caution(chain, X, Y, completeness=0.7, random_state=0)
    beside = choose_caution(chain, X, always_no, completeness=0.7, random_state=0)
    assert 0.5 < beside.completeness <= 0.7  # of the three others
    assert beside.value > alone.value / 3


def test_labels_that_are_always_no_do_not_count_in_reports(tmp_path):
    X, Y = problem()
    beside = np.hstack([Y, np.zeros((len(Y), 3), dtype=int)])
    chain = CredalChainClassifier(order="given", strategy="marginalization")
    promised = PromisedClassifier(chain, {"row_error": 0.4}, random_state=0).fit(X, beside)
    report = promised.report_
    held_out = np.sort(np.random.RandomState(0).permutation(len(X))[:180])
    share = (promised.predict_partial(X[held_out])[:, :3] != -1).mean()
    assert report.completeness == report.promises[0].completeness == pytest.approx(share)
    assert report.constant == ("label3", "label4", "label5")
    assert str(report).endswith("not counted, because constant: label3, label4, label5")
    alone = promise_curve(chain, X, Y, random_state=0)
    np.testing.assert_array_equal(
        promise_curve(chain, X, beside, random_state=0).completeness, alone.completeness
    )
    save_model(promised, tmp_path / "model")
    assert load_model(tmp_path / "model").report_ == report


def test_labels_that_are_always_no_do_not_count_on_the_command_line(tmp_path):
    X, Y = problem()
    names = [f"label{j}" for j in range(6)]
    beside = pd.DataFrame(np.hstack([Y, np.zeros((len(Y), 3), dtype=int)]), columns=names)
    frame = pd.DataFrame(X, columns=list("abcd")).join(beside)
    frame.to_csv(tmp_path / "songs.csv", index=False)
    frame.to_csv(tmp_path / "songs.csv.gz", index=False)
    frame.drop(columns=names[3:]).to_csv(tmp_path / "alone.csv", index=False)
    chain = ["--method", "chain", "--order", "given", "--strategy", "marginalization"]
    found = []
    for source, labels in (("alone.csv", "last:3"), ("songs.csv", "last:6")):
        given = ["evaluate", source, "--labels", labels, *chain, "--s", "2", "--folds", "3"]
        measures = json.loads(credalchain(*given, "--json", cwd=tmp_path).stdout)[0]["measures"]
        found.append(measures["completeness"])
    assert found[0] == found[1]
    for source in ("songs.csv", "songs.csv.gz"):
        given[1] = source
        done = credalchain(*given, "--summary", cwd=tmp_path)
        assert "completeness: of 3 labels, without those that are constant" in done.stdout
        share = re.search(r"completeness\W+(0\.\d+)", done.stdout)[1]
        assert float(share) == pytest.approx(found[0]["mean"], abs=0.05)  # other folds
    given = ["fit", "songs.csv", "--labels", "last:6", *chain, "--promise", "row-error=0.4"]
    done = credalchain(*given, "--out", "m", cwd=tmp_path)
    assert "not counted, because constant: label3, label4, label5" in done.stderr
    done = credalchain("predict", "m", "songs.csv", "--out", "a.csv", cwd=tmp_path)
    assert "were in calibration" not in done.stderr
