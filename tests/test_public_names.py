"""Public names: the map that ``help(credalchain)`` prints, and complete docstrings."""

import enum
import importlib
import inspect
import re
from functools import cached_property
from pathlib import Path

from numpydoc.validate import ERROR_MSGS, validate

import credalchain

API_PAGES = Path(__file__).parents[1] / "docs" / "api"
PACKAGES = ("datasets", "explanation", "metrics", "plotting", "rivals", "studies")
# No second paragraph, no "See Also" where there is none, `name : type` also for one return value.
CHECKS = ERROR_MSGS.keys() - {"ES01", "SA01", "RT02"}


def mapped_names():
    """Names in the indented lines of the docstring, each with what is said of it."""
    lines = re.findall(r"^    ([\w, \n]+): (.+)$", credalchain.__doc__, re.MULTILINE)
    return {name.strip(): words for names, words in lines for name in names.split(",")}


def test_every_public_name_is_on_the_map_once():
    named = sorted(set(credalchain.__all__) - {"__version__"})
    assert sorted(mapped_names()) == named
    for name in named:
        assert len(re.findall(rf"^    {name}: ", credalchain.__doc__, re.MULTILINE)) <= 1


def test_what_is_listed_is_what_can_be_imported():
    for name in mapped_names():
        assert hasattr(credalchain, name)


def public_objects():
    """Functions and classes of the reference and of what packages export."""
    found = [getattr(credalchain, name) for name in credalchain.__all__]
    for package in PACKAGES:
        module = importlib.import_module(f"credalchain.{package}")
        names = getattr(module, "__all__", None) or [n for n in vars(module) if n[0] != "_"]
        found += [getattr(module, name) for name in names]
    for page in API_PAGES.glob("*.rst"):
        _, *parts = page.read_text(encoding="utf-8").split(".. currentmodule:: ")
        for part in parts:
            module = importlib.import_module(part.split()[0])
            listed = re.findall(r"^   (\w+)$", part, re.MULTILINE)
            found += [getattr(module, name) for name in listed]
    return {one for one in found if inspect.isfunction(one) or inspect.isclass(one)}


def documented_methods(cls):
    """Own public methods and properties, each in the class that has its docstring."""
    own = [base for base in cls.__mro__ if base.__module__.startswith("credalchain")]
    for name in {name for base in own for name in vars(base) if name[0] != "_"}:
        method = getattr(cls, name)
        if callable(method) or isinstance(method, (property, cached_property)):
            documented = [base for base in own if getattr(vars(base).get(name), "__doc__", None)]
            yield (documented or own)[0], name
            if documented and callable(method):  # an inherited docstring must fit
                parameters = [
                    inspect.signature(getattr(c, name)).parameters for c in (cls, documented[0])
                ]
                assert [*parameters[0]] == [*parameters[1]], f"document {cls.__name__}.{name}"


def mistakes(name, ignored=frozenset()):
    """What numpydoc finds wrong with the docstring of a name."""
    found = validate(name)["errors"]
    return [f"{name}: {code} {words}" for code, words in found if code in CHECKS - ignored]


def test_public_docstrings_are_complete():
    wrong, methods = [], set()
    for one in public_objects():
        name = f"{one.__module__}.{one.__qualname__}"
        is_abstract = getattr(one, "_is_protocol", False)
        is_enum = inspect.isclass(one) and issubclass(one, enum.Enum)
        wrong += mistakes(name, {"PR01"} if is_abstract or is_enum else frozenset())
        if inspect.isclass(one):
            methods |= set(documented_methods(one))
    for cls, name in methods:
        wrong += mistakes(f"{cls.__module__}.{cls.__qualname__}.{name}", {"EX01"})
    assert not wrong, "\n".join(sorted(wrong))
