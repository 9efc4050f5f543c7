"""How far long work has come is shown where somebody asked for it, on stderr."""

import io
import itertools
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from credalchain import (
    CredalBinaryRelevanceClassifier,
    CredalChainClassifier,
    CredalChainEnsemble,
    CredalForest,
    CredalJointForest,
    CredalWrapper,
    JointDecision,
)
from credalchain._utils import progress
from credalchain._utils.progress import Phases, Progress, show_progress, track
from shell import N_TREES


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def every_line(monkeypatch):
    clock = itertools.count(step=100.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))


def data(n=60):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, (X + rng.normal(size=(n, 3)) > 0).astype(int)


def test_nothing_is_shown_unless_asked(every_line, capsys):
    assert list(track("abc", "letters", 3)) == list("abc")
    assert capsys.readouterr() == ("", "")


def test_lines_where_there_is_no_terminal(every_line, capsys):
    with show_progress():
        assert list(track("ab", "letters", 2)) == list("ab")
    assert capsys.readouterr().err == ("letters: 1 of 2, 2 min left\nletters: 2 of 2, 0 s left\n")


def test_nested_work_stands_on_one_line_that_is_removed(every_line, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with show_progress():
        for _ in track("ab", "folds", 2):
            with Progress("trees") as trees:
                trees(20, 50)
    shown = sys.stderr.getvalue()
    assert "folds: 0 of 2, trees: 20 of 50" in shown
    assert "folds: 2 of 2, 0 s left\033[K" in shown
    assert shown.endswith("\r\033[K")
    assert "\n" not in shown


def test_phases_count_by_their_weights_and_the_estimate_does_not_grow(monkeypatch, capsys):
    """A tenth of the work takes 10 s; the phase that was thought short takes as long."""
    now = 0.0
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now))
    with show_progress(line_seconds=0.0), Phases("fit", {"trees": 9.0, "shares": 1.0}) as phases:
        with Progress("trees", 9) as trees:
            for done in range(1, 10):
                now += 10
                trees(done)
        phases.start("shares")
        for _ in track(range(2), "parts", 2):
            now += 30
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "fit: trees, trees: 1 of 9, 90 s left"
    assert lines[8] == "fit: trees, trees: 9 of 9, 10 s left"
    left = [float(line.split()[-3]) for line in lines]
    assert left == sorted(left, reverse=True)


def test_the_bar_does_not_go_back(monkeypatch):
    """Two passes inside one step, each of which fills it; the share that is shown stays."""
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_BARS", 0.0)
    with show_progress(), Progress("steps", 2):
        for _ in range(2):
            for _ in track("abcd", "rows read", 4):
                pass
    shown = [line.count("━") for line in sys.stderr.getvalue().split("\r") if "rows" in line]
    assert shown == [2, 5, 7, 10, 10, 10, 10, 10]


def test_what_is_shown_stays_shown_inside_and_ends_outside(every_line, capsys):
    with show_progress():
        with show_progress(0):
            list(track("a", "inner", 1))
        list(track("a", "outer", 1))
    list(track("a", "after", 1))
    assert capsys.readouterr().err == "inner: 1 of 1, 0 s left\nouter: 1 of 1, 0 s left\n"


def test_interrupted_work_leaves_nothing_behind(every_line, capsys):
    def interrupted():
        for _ in track("ab", "letters", 2):
            raise KeyboardInterrupt

    with show_progress(), pytest.raises(KeyboardInterrupt):
        interrupted()
    assert progress._running == []


@pytest.mark.parametrize(
    ("classifier", "words"),
    [
        (CredalChainClassifier(CredalForest()), "labels: 3 of 3"),
        (CredalBinaryRelevanceClassifier(CredalWrapper(GaussianNB())), "labels: 3 of 3"),
        (CredalChainEnsemble(CredalWrapper(GaussianNB()), n_chains=2), "chains: 2 of 2"),
        (CredalJointForest(), f"trees: {N_TREES} of {N_TREES}"),
        (JointDecision(), f"trees: {N_TREES} of {N_TREES}"),
    ],
)
def test_classifiers_show_their_progress(every_line, classifier, words, capsys):
    classifier.set_params(verbose=1, random_state=0).fit(*data())
    shown = capsys.readouterr()
    assert words in shown.err
    assert shown.out == ""
    classifier.set_params(verbose=-1)
    with pytest.raises(ValueError, match="verbose"):
        classifier.fit(*data())
