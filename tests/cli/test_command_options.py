"""The options of a classifier, which several commands share."""

import inspect

import pytest

from credalchain.cli.evaluate import evaluate
from credalchain.cli.fit import fit
from credalchain.cli.options import ClassifierOptions, build_classifier


def test_both_commands_have_every_option_with_its_default():
    for command, own in ((fit, set()), (evaluate, {"s", "reward"})):
        parameters = inspect.signature(command).parameters
        assert "options" not in parameters
        for name, default in vars(ClassifierOptions()).items():
            assert name in own or parameters[name].default.default == default


def test_an_option_without_effect_is_refused():
    with pytest.raises(
        ValueError, match="--missing-features is for --base naive, not for --base f"
    ):
        build_classifier(ClassifierOptions(base="forest", missing_features="conservative"))
