"""What has to be in a wheel and in an sdist, and what must not be.

Every check takes what an archive holds and gives sentences about what is wrong with it, none
if all is well.
"""

import re
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from email.parser import HeaderParser
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

PACKAGE = "credalchain"
NEEDED_IN_WHEEL = (
    f"{PACKAGE}/__init__.py",
    f"{PACKAGE}/py.typed",
    f"{PACKAGE}/_utils/notebook.css",
    f"{PACKAGE}/datasets/mulan.json",
    f"{PACKAGE}/review/page/index.html",
    f"{PACKAGE}/review/page/page.css",
    f"{PACKAGE}/review/page/page.js",
    f"{PACKAGE}/review/schema.sql",
    f"{PACKAGE}-*.dist-info/entry_points.txt",
    f"{PACKAGE}-*.dist-info/licenses/LICENSE",
)
NEEDED_IN_SDIST = (
    "PKG-INFO",
    "pyproject.toml",
    "Makefile",
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "LICENSE",
    f"src/{PACKAGE}/py.typed",
    "tests/conftest.py",
    "tests/oracle.py",
    "docs/*.md",
    "docs/images/*",
    "examples/*.py",
    "studies/*.toml",
    "tools/*.py",
)
_TOP_OF_WHEEL = re.compile(rf"{PACKAGE}|{PACKAGE}-[^/]+\.dist-info")
_LEFTOVER_FOLDERS = {
    *(".git", ".venv", ".venv-lowest", ".hypothesis", ".import_linter_cache", ".ipynb_checkpoints"),
    *(".mypy_cache", ".pytest_cache", ".ruff_cache", "__pycache__", "build", "dist"),
}
_LEFTOVER_ENDINGS = {".pyc", ".pyo", ".nbc", ".nbi", ".swp", ".orig", ".rej", ".DS_Store"}


def wheel_files(path: Path) -> dict[str, int]:
    """Return the files of a wheel, each with the checksum of its content."""
    with zipfile.ZipFile(path) as archive:
        return {one.filename: one.CRC for one in archive.infolist() if not one.is_dir()}


def sdist_files(path: Path) -> set[str]:
    """Return the files of an sdist, without the folder that holds all of them."""
    with tarfile.open(path) as archive:
        names = [one.name for one in archive if not one.isdir()]
    return {name.partition("/")[2] for name in names}


def source_files(package: Path) -> set[str]:
    """Return the files of the package in the source tree, as a wheel names them."""
    files = (file.relative_to(package.parent).as_posix() for file in package.rglob("*"))
    return {name for name in files if (package.parent / name).is_file() and not _leftovers([name])}


def wheel_version(path: Path) -> str:
    """Return the version in a wheel's metadata, empty if there is none."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if fnmatch(name, f"{PACKAGE}-*.dist-info/METADATA"):
                text = archive.read(name).decode("utf-8")
                return str(HeaderParser().parsestr(text).get("Version", ""))
    return ""


def check_wheel(files: Iterable[str], source: Iterable[str]) -> list[str]:
    """Return the package as it is in the source tree, the licence, and nothing else."""
    files, source = set(files), set(source)
    packaged = {name for name in files if name.startswith(f"{PACKAGE}/")}
    others = {name for name in files if not _TOP_OF_WHEEL.fullmatch(name.partition("/")[0])}
    tests = {name for name in packaged if _is_test(name)}
    return [
        *_missing(files, NEEDED_IN_WHEEL),
        *_named("misses files of the source tree", source - files),
        *_named("has files that are not in the source tree", packaged - source),
        *_named("has tests", tests),
        *_named("has leftovers", _leftovers(files)),
        *_named("has files outside the package", others),
    ]


def check_sdist(files: Iterable[str], source: Iterable[str]) -> list[str]:
    """All that is needed to build the package and to run its tests, and no leftovers."""
    files = set(files)
    return [
        *_missing(files, NEEDED_IN_SDIST),
        *_named("misses files of the package", {f"src/{name}" for name in source} - files),
        *_named("has leftovers", _leftovers(files)),
    ]


def check_same(first: Mapping[str, int], second: Mapping[str, int]) -> list[str]:
    """Two wheels with the same files; RECORD alone lists the others and may differ."""
    both = {name for name in first.keys() & second.keys() if not name.endswith("/RECORD")}
    changed = {name for name in both if first[name] != second[name]}
    return [
        *_named("misses what the wheel of the source tree has", second.keys() - first.keys()),
        *_named("has what the wheel of the source tree has not", first.keys() - second.keys()),
        *_named("differs from the wheel of the source tree in", changed),
    ]


def check_versions(version: str, found: Mapping[str, str]) -> list[str]:
    """One version everywhere it is written; ``found`` says where."""
    return [
        f"{where} says version {other or 'nothing'}, the package {version}."
        for where, other in found.items()
        if other != version
    ]


def check_changelog(text: str, version: str) -> list[str]:
    """Return the version's heading, with a date: what is checked when a version is tagged."""
    headings = [line for line in text.splitlines() if line.startswith(f"## {version}")]
    if not headings:
        return [f"CHANGELOG.md has no heading for version {version}."]
    if not re.fullmatch(rf"## {re.escape(version)} \(\d{{4}}-\d{{2}}-\d{{2}}\)", headings[0]):
        return [f'CHANGELOG.md: the heading must be "## {version} (year-month-day)".']
    return []


def _missing(files: set[str], needed: Iterable[str]) -> list[str]:
    absent = {one for one in needed if not any(fnmatch(name, one) for name in files)}
    return _named("misses", absent)


def _leftovers(names: Iterable[str]) -> set[str]:
    return {name for name in names if _is_leftover(PurePosixPath(name))}


def _is_leftover(path: PurePosixPath) -> bool:
    in_cache = not _LEFTOVER_FOLDERS.isdisjoint(path.parts[:-1])
    return in_cache or (path.suffix or path.name) in _LEFTOVER_ENDINGS


def _is_test(name: str) -> bool:
    path = PurePosixPath(name)
    file = path.name
    return "tests" in path.parts[:-1] or file == "conftest.py" or fnmatch(file, "test_*.py")


def _named(what: str, names: Iterable[str]) -> list[str]:
    """One sentence that names a few of them."""
    names = sorted(names)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return [f"{what}: {', '.join(names[:3])}{more}."] if names else []
