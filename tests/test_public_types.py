"""What public signatures tell their readers."""

import inspect
import pydoc
import re
from typing import Any

import numpy as np
import pytest

import credalchain
import credalchain.typing
from credalchain import (
    CredalChainClassifier,
    datasets,
    metrics,
    plotting,
)

NAMED = "credalchain.typing.{}"
# What stays Any in public signatures, by the function or by the name of the parameter, and why.
UNTYPED = {
    # rows as a model has encoded them: each in a form of its own
    "encoded",
    "encode",
    "fit_encode",
    "transform",
    # rows as scikit-learn has checked them, for bases of any kind
    "fit_chain",
    "fit_local",
    "bounds",
    # classifiers of which one cannot say beforehand which
    "load_model",
    "unfitted_base",
    "unfitted_forest",
    "unfitted_discretizer",
    # told apart by what they can do: a vector, a table or a function; one value of s or several
    "event",
    "s",
    # an index of pandas or of another library of data frames
    "index",
    # an attribute besides: an array, a data frame or a sparse matrix, as it was read
    "MultilabelDataset.__init__",
}


def functions_of(owner):
    """Public functions and methods, also those inside properties and class methods."""
    for name, value in vars(owner).items():
        function = getattr(value, "__func__", None) or getattr(value, "fget", None) or value
        function = getattr(function, "fn", function)  # scikit-learn's available_if
        if inspect.isfunction(function) and (name == "__init__" or not name.startswith("_")):
            yield function


def public_functions():
    """All that can be called of the public names, and of metrics, plotting and datasets."""
    things = [getattr(credalchain, name) for name in credalchain.__all__]
    for module in (metrics, plotting, datasets):
        own = [value for name, value in vars(module).items() if not name.startswith("_")]
        things += [v for v in own if getattr(v, "__module__", "").startswith(module.__name__)]
    for thing in things:
        if inspect.isfunction(thing):
            yield thing
        elif inspect.isclass(thing):
            for owner in thing.__mro__:
                if owner.__module__.startswith("credalchain"):
                    yield from functions_of(owner)


def untyped(function):
    """Names of the parameters that are Any, and "return"; not of ``**options``."""
    signature = inspect.signature(function)
    found = {
        name
        for name, parameter in signature.parameters.items()
        if parameter.annotation in (Any, "Any") and parameter.kind != parameter.VAR_KEYWORD
    }
    return found | ({"return"} if signature.return_annotation in (Any, "Any") else set())


FUNCTIONS = sorted(set(public_functions()), key=lambda one: (one.__module__, one.__qualname__))


def test_functions_are_found():
    names = {function.__qualname__ for function in FUNCTIONS}
    assert {"CredalClassifier.fit", "CredalMetaClassifier.partial_fit", "explain"} <= names
    assert {"set_accuracy", "plot_predictions", "CredalPrediction.to_frame"} <= names


def test_public_signatures_are_typed_but_for_a_few():
    left = {
        f"{function.__module__}.{function.__qualname__}: {name}"
        for function in FUNCTIONS
        if not {function.__name__, function.__qualname__} & UNTYPED
        for name in untyped(function) - UNTYPED
    }
    assert left == set()


def test_the_exceptions_are_needed():
    used = {name for one in FUNCTIONS for name in untyped(one)}
    for one in filter(untyped, FUNCTIONS):
        used |= {one.__name__, one.__qualname__}
    assert used >= UNTYPED


def test_help_names_what_goes_in():
    text = pydoc.render_doc(CredalChainClassifier.fit, renderer=pydoc.plaintext)
    assert f"X: {NAMED.format('MatrixLike')}, Y: {NAMED.format('LabelsLike')}" in text
    assert re.search(r"sample_weight: \S*VectorLike", text)
    assert "Self" in text.splitlines()[2]


ALIASES = [name for name in vars(credalchain.typing) if name.endswith(("Like", "Loss"))]


@pytest.mark.parametrize("name", sorted({*ALIASES} - {"ArrayLike"}))  # which is numpy's
def test_every_alias_is_explained(name):
    assert f"\n{name}\n    " in credalchain.typing.__doc__


def test_aliases_can_be_combined():
    """What stands for an alias when code runs has to work in unions, as signatures use them."""
    assert NAMED.format("MatrixLike") in str(credalchain.typing.MatrixLike | None)
    assert np.random.RandomState in credalchain.typing.RandomStateLike.__args__
