"""The options of a classifier, which several commands share."""

import inspect

import pytest

from credalchain import CredalChainClassifier, load_model
from credalchain.cli.evaluate import evaluate
from credalchain.cli.fit import fit
from credalchain.cli.options import ClassifierOptions, build_classifier
from shell import N_TREES, credalchain


def test_both_commands_have_every_option_with_its_default():
    for command, own in ((fit, set()), (evaluate, {"s", "reward"})):
        parameters = inspect.signature(command).parameters
        assert "options" not in parameters
        for name, default in vars(ClassifierOptions()).items():
            if name not in own:
                option = parameters[name].default
                assert option.default is None  # so that it can be told whether it is given
                assert default in (None, "") or option.show_default == str(default)


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
