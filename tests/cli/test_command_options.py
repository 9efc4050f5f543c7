"""The options of a classifier, which several commands share."""

import inspect

import numpy as np
import pandas as pd
import pytest

from credalchain import CredalChainClassifier, load_model
from credalchain.chains.naive import counts
from credalchain.chains.naive.formulas import DENOMINATORS, MISSING_FEATURES, PRIORS
from credalchain.chains.strategies import STRATEGIES
from credalchain.chunks import trees
from credalchain.cli.evaluate import evaluate
from credalchain.cli.fit import DEFAULT_COMPLETENESS, fit
from credalchain.cli.options import ClassifierOptions, build_classifier
from credalchain.cli.promise import tune
from credalchain.joint import forest
from credalchain.promises.risks import RISKS
from shell import N_TREES, credalchain, small_forests


def test_both_commands_have_every_option_with_its_default():
    for command, own in ((fit, set()), (evaluate, {"s", "reward"})):
        parameters = inspect.signature(command).parameters
        assert "options" not in parameters
        for name, default in vars(ClassifierOptions()).items():
            if name not in own:
                about = parameters[name].annotation.__metadata__[0]
                assert parameters[name].default is None  # so that what is given is known
                assert default in (None, "") or about.show_default == str(default)


@pytest.mark.parametrize(
    ("command", "name", "choices"),
    [
        (fit, "strategy", STRATEGIES),
        (fit, "prior", PRIORS),
        (fit, "denominator", DENOMINATORS),
        (fit, "missing_features", MISSING_FEATURES),
        (tune, "risk", [name.replace("_", "-") for name in RISKS]),
        (fit, "sample", [str(forest.SAMPLE_SIZE), str(counts.SAMPLE_SIZE), str(trees.SAMPLE_SIZE)]),
        (fit, "answered", [str(DEFAULT_COMPLETENESS)]),
    ],
)
def test_help_names_what_there_is(command, name, choices):
    words = inspect.signature(command).parameters[name].annotation.__metadata__[0].help
    assert all(choice in words for choice in choices)


def test_an_option_without_effect_is_refused():
    options = ClassifierOptions("chain", "forest")
    words = "--missing-features is for --base naive, not for --base forest"
    with pytest.raises(ValueError, match=words):
        options.resolved({"missing_features"})
    with pytest.raises(ValueError, match="--base is for --method chain or relevance or"):
        ClassifierOptions("recommended").resolved({"base"})
    words = "--trees is for --base forest or --method recommended, not for --base naive"
    with pytest.raises(ValueError, match=words):
        ClassifierOptions("chain").resolved({"trees"})


@pytest.mark.parametrize(
    ("given", "method"),
    [
        (set(), "recommended"),
        ({"trees"}, "recommended"),
        ({"reward", "seed", "jobs"}, "recommended"),
        ({"base"}, "chain"),  # even if it is the default
        ({"strategy"}, "chain"),
        ({"s"}, "chain"),
        ({"epsilon"}, "chain"),
    ],
)
def test_the_method_that_has_the_options_given(given, method):
    assert ClassifierOptions().resolved(given).method == method


def test_a_default_that_is_given_counts_as_given(tmp_path):
    (tmp_path / "songs.csv").write_text("x,y\n" + "1,0\n2,1\n" * 8)
    given = ["songs.csv", "--labels", "y", "--out", "m"]
    credalchain("fit", *given, "--base", "naive", cwd=tmp_path)
    assert isinstance(load_model(tmp_path / "m"), CredalChainClassifier)


@pytest.mark.parametrize("trees", [100, 300, 7])
def test_trees_that_are_given_are_grown(trees):
    """Also those that another method would have grown by itself."""
    recommended = build_classifier(ClassifierOptions("recommended", trees=trees))
    assert recommended.estimator.unfitted_forest().n_estimators == trees
    chain = build_classifier(ClassifierOptions("chain", base="forest", trees=trees))
    assert chain.base.forest.n_estimators == trees


def test_trees_that_are_not_given():
    recommended = build_classifier(ClassifierOptions("recommended"))
    assert recommended.estimator.unfitted_forest().n_estimators == N_TREES


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """Tables of a model's scores: named by label, and by number."""
    folder = tmp_path_factory.mktemp("scored")
    rng = np.random.default_rng(0)
    Y = rng.random((120, 3)) < 0.4
    p = np.where(Y, 0.8, 0.3) + rng.uniform(-0.2, 0.2, (120, 3))
    labels = pd.DataFrame(Y.astype(int), columns=["rock", "pop", "folk"])
    names = ["p_pop", "p_rock", "p_folk"]
    by_label = pd.DataFrame(p[:, [1, 0, 2]], columns=names).assign(title="a song")
    pd.concat([by_label, labels], axis=1).to_csv(folder / "named.csv", index=False)
    by_number = pd.DataFrame(p, columns=["score1", "score2", "score3"])
    pd.concat([by_number, labels], axis=1).to_csv(folder / "numbered.csv", index=False)
    return folder


def test_columns_of_scores(scored):
    common = "--labels", "last:3", "--reward", "0.9", "--trees", "20"
    answers = []
    for table, columns, said in (
        ("named", "p_*", "1 column beside the scores not used"),
        ("named", "p_rock,p_pop,p_folk", "1 column beside the scores not used"),
        (
            "numbered",
            "score1,score2,score3",
            "scores by position: score1 of rock, score2 of pop, score3 of",
        ),
    ):
        path = ("fit", f"{table}.csv", "--scores", columns, *common, "--out", "scored.model")
        done = credalchain(*path, cwd=scored)
        assert said in done.stderr
        assert "the model behind the scores was not fitted on these rows" in done.stderr
        out = ("--out", "answers.csv", "--intervals")
        credalchain("predict", "scored.model", f"{table}.csv", *out, cwd=scored)
        answers.append(pd.read_csv(scored / "answers.csv"))
    for other in answers[1:]:
        pd.testing.assert_frame_equal(answers[0], other)
    with small_forests():
        tuned = credalchain("tune", "named.csv", "--scores", "p_*", *common[:2], cwd=scored)
        done = credalchain(
            "evaluate", "named.csv", "--scores", "p_*", *common[:2], "--folds", "2", cwd=scored
        )
    assert "rows with a wrong answer" in tuned.stdout
    assert "set_accuracy" in done.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--scores", "q_*"), "--scores: there is no column 'q_rock'"),
        (("--scores", "p_pop"), "3 labels need as many different columns, got p_pop."),
        (("--scores", "title,p_pop,p_rock"), "column 'title' must hold a number in every row"),
        (
            ("--scores", "p_rock,p_rock,p_pop"),
            "need as many different columns, got p_rock, p_rock, p_pop",
        ),
        (("--scores", "p_*", "--keep", "title"), "--keep and --scores both say what to learn from"),
        (("--scores", "p_*", "--method", "chain"), "--scores is for --method recommended"),
    ],
)
def test_columns_that_are_no_scores(scored, options, message):
    done = credalchain(
        "fit", "named.csv", "--labels", "last:3", "--out", "x.model", *options, cwd=scored, status=1
    )
    assert message in done.stderr
