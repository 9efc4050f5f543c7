"""Benchmarks and tools are run by hand; names that they take from the package must be there."""

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = [
    file for folder in ("benchmarks", "tools") for file in sorted((ROOT / folder).glob("*.py"))
]


def names_taken(text):
    """(module, name) of all imports from the package, wherever they stand."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("credalchain"):
            yield from ((node.module, alias.name) for alias in node.names)


def is_there(module, name):
    try:
        if hasattr(importlib.import_module(module), name):
            return True
        importlib.import_module(f"{module}.{name}")
    except ImportError:
        return False
    return True


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_names_are_there(file):
    missing = [taken for taken in names_taken(file.read_text()) if not is_there(*taken)]
    assert missing == []


def test_a_name_that_is_gone_is_noticed():
    taken = list(names_taken("def f():\n    from credalchain.labels import as_labels, gone"))
    assert [is_there(*one) for one in taken] == [True, False]
    assert not is_there("credalchain.gone", "anything")
