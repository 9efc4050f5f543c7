"""A strategy, prior, denominator, measure or data set from outside: one value, nothing else."""

import itertools

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.tree import DecisionTreeClassifier

from credalchain import (
    CredalChainClassifier,
    CredalChainEnsemble,
    CredalForest,
    CredalWrapper,
    LocalBase,
    NaiveCredal,
    Strategy,
    partial_scorer,
)
from credalchain.chains.naive.formulas import DENOMINATORS, PRIORS, Denominator, Prior
from credalchain.datasets import MultilabelDataset
from credalchain.datasets.registry import DATASETS, NamedDataset
from credalchain.metrics import Measure
from credalchain.studies.results import Store
from credalchain.studies.running import run_study
from credalchain.studies.study_file import load_study
from shell import credalchain

BASES = {
    "naive": NaiveCredal(),
    "forest": CredalForest(ExtraTreesClassifier(n_estimators=5)),
    "wrapper": CredalWrapper(DecisionTreeClassifier(max_depth=3)),
}


class Frequencies(LocalBase):
    """How often a label is 1 among the rows whose earlier labels were the same."""

    def fit_local(self, X, Y, order, *, rng):
        class Local:
            def bounds(self, X, j, history, *, s):
                earlier = history[:, :j]
                same = (Y[None, :, :j] == earlier[:, None]).all(axis=2)
                ones, n = same @ (Y[:, j] == 1), same.sum(axis=1)
                return ones / (n + s), (ones + s) / (n + s)

        return Local()


def data(n=120, m=4):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    Y = (X[:, np.arange(m) % 3] + rng.normal(size=(n, m)) > 0).astype(np.int8)
    return X, Y


def _as_no(if_zero, if_one, if_dropped):
    return if_zero


as_no = Strategy("as no", nested=False, merge=_as_no)
"""A label left open counts as no."""


@pytest.mark.parametrize("base", [*BASES.values(), Frequencies()], ids=[*BASES, "local"])
def test_a_strategy_from_outside_runs_on_every_base(base):
    """What it says is checked: an open label told as 0 is what knowing that it is 0 gives."""
    X, Y = data()
    s = 30.0 if isinstance(base, Frequencies) else 4.0
    params = {"s": s, "order": "given", "random_state": 0}
    chain = CredalChainClassifier(base, strategy=as_no, **params).fit(X, Y)
    rows = X[:40]
    found = chain.infer(rows)
    assert found.abstained.any()
    known = np.where(found.abstained, 0, found.labels)
    expected = chain.infer(rows, known=known)
    np.testing.assert_allclose(found.log_odds, expected.log_odds, atol=1e-9)
    assert not chain.nested_
    assert chain.predict_path(rows, [1.0, s]).shape == (2, 40, 4)
    ensemble = CredalChainEnsemble(base, n_chains=2, strategy=as_no, random_state=0)
    if not isinstance(base, Frequencies):  # which reads the labels before j as columns
        assert ensemble.fit(X, Y).predict_partial(rows).shape == (40, 4)


def _even(n0, n1, s):
    return (1, 1 + s), (1 + s, 1)


@pytest.mark.parametrize("order", ["given", "dynamic"])
def test_a_prior_from_outside(order):
    """Odds of 1 to 1 + s and 1 + s to 1: without features it is all there is."""
    Y = data()[1]
    base = NaiveCredal(discretizer=None, prior=Prior("even", _even))
    chain = CredalChainClassifier(base, order=order, s=3.0).fit(np.zeros((120, 1), int), Y)
    first = 0
    assert chain.predict_interval([[0]])[0, first].tolist() == pytest.approx([0.2, 0.8])
    assert chain.predict_path([[0]], [0.0, 3.0])[:, 0, first].tolist() == [-1, -1]
    assert chain.predict([[0]])[0, first] == 1


def test_a_prior_beyond_the_rounding_bound_is_refused():
    base = NaiveCredal(prior=Prior("sure", lambda n0, n1, s: ((1e200, 1), (1e200, 1))))
    X, Y = data()
    with pytest.raises(ValueError, match="prior 'sure' must give log-odds below 256"):
        CredalChainClassifier(base).fit(X, Y).infer(X)


def _rows_counted(counts):
    return np.full((counts.n_labels, counts.n_labels, 2), counts.n_rows)


def test_a_denominator_from_outside():
    """All rows, whatever the class: the bounds of a pair of labels follow."""
    X, Y = np.zeros((120, 1), int), data()[1]
    every_row = Denominator("rows", _rows_counted)
    base = NaiveCredal(discretizer=None, denominator=every_row, epsilon=0.0)
    chain = CredalChainClassifier(base, order="given", s=1.0).fit(X, Y)
    known = [[1, -1, -1, -1]]
    found = chain.infer([[0]], known=known).log_odds[0, 1]
    n = [[np.sum((Y[:, 0] == b) & (Y[:, 1] == a)) for a in (0, 1)] for b in (0, 1)]
    prior = np.log(np.sum(Y[:, 1] == 1) + 1) - np.log(np.sum(Y[:, 1] == 0) + 1)
    expected = [np.log(n[1][1] / (n[1][0] + 1)), np.log((n[1][1] + 1) / n[1][0])]
    np.testing.assert_allclose(found, prior + expected, atol=1e-9)


@pytest.mark.parametrize(("prior", "denominator"), list(itertools.product(PRIORS, DENOMINATORS)))
def test_named_values_are_the_values(prior, denominator):
    X, Y = data()
    by_name, by_value = (
        CredalChainClassifier(NaiveCredal(prior=p, denominator=d), random_state=0).fit(X, Y)
        for p, d in ((prior, denominator), (PRIORS[prior], DENOMINATORS[denominator]))
    )
    np.testing.assert_array_equal(by_name.infer(X).log_odds, by_value.infer(X).log_odds)


def _answered_yes(Y_true, labels):
    return float(np.mean(labels == 1))


@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
def test_a_measure_from_outside(base):
    X, Y = data()
    scorer = partial_scorer(Measure(_answered_yes, greater_is_better=True))
    chain = CredalChainClassifier(base, random_state=0).fit(X, Y)
    assert scorer(chain, X, Y) == np.mean(chain.predict_partial(X) == 1)


STUDY = """
name = "elsewhere"
data = ["lab:songs"]
[cross_validation]
folds = 2
[[method]]
name = "chain"
kind = "chain"
s = [1.0]
"""


def test_a_data_set_from_outside(monkeypatch, tmp_path):
    """Commands and studies know it by its name."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    songs = MultilabelDataset("lab:songs", X, (X > 0).astype(np.int8), ["a", "b"], ["up", "loud"])
    monkeypatch.setitem(DATASETS, "lab:songs", NamedDataset(lambda: songs, "music"))
    done = credalchain("fit", "lab:songs", "--s", "1", "--out", "m", cwd=tmp_path)
    assert "40 rows, 2 features, 2 labels -> m" in done.stderr
    (tmp_path / "study.toml").write_text(STUDY)
    study, store = load_study(tmp_path / "study.toml"), Store(tmp_path / "results")
    assert run_study(study, store, n_jobs=1) == 0
    assert set(store.results(study)["dataset"]) == {"lab:songs"}
    assert [facts["domain"] for facts in store.facts()] == ["music"]
