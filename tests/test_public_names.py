"""The map of the package that ``help(credalchain)`` prints."""

import re

import credalchain


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
