"""What release_check.py refuses, on made-up archives."""

import importlib.util
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def load_tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


contents = load_tool("release_contents")
INFO = "credalchain-1.2.0.dist-info"
SOURCE = {name for name in contents.NEEDED_IN_WHEEL if "*" not in name} | {"credalchain/chain.py"}
WHEEL = {
    *SOURCE,
    f"{INFO}/METADATA",
    f"{INFO}/RECORD",
    f"{INFO}/WHEEL",
    f"{INFO}/entry_points.txt",
    f"{INFO}/licenses/LICENSE",
}
SDIST = {name.replace("*", "one") for name in contents.NEEDED_IN_SDIST} | {
    f"src/{name}" for name in SOURCE
}


def write_wheel(path, files, version="1.2.0"):
    with zipfile.ZipFile(path, "w") as archive:
        for name in files:
            is_metadata = name.endswith("METADATA")
            archive.writestr(
                name, f"Name: credalchain\nVersion: {version}\n" if is_metadata else ""
            )
    return path


def write_sdist(path, files):
    with tarfile.open(path, "w:gz") as archive:
        for name in files:
            archive.addfile(tarfile.TarInfo(f"credalchain-1.2.0/{name}"), io.BytesIO())
    return path


def wheel_problems(tmp_path, files):
    found = contents.wheel_files(write_wheel(tmp_path / "made_up.whl", files))
    return contents.check_wheel(found, SOURCE)


def sdist_problems(tmp_path, files):
    found = contents.sdist_files(write_sdist(tmp_path / "made_up.tar.gz", files))
    return contents.check_sdist(found, SOURCE)


def test_whole_archives_are_accepted(tmp_path):
    assert wheel_problems(tmp_path, WHEEL) == []
    assert sdist_problems(tmp_path, SDIST) == []


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ("credalchain/tests/test_chain.py", "has tests"),
        ("credalchain/review/conftest.py", "has tests"),
        ("credalchain/__pycache__/chain.cpython-311.pyc", "has leftovers"),
        ("credalchain/engine.walk-12.py311.nbi", "has leftovers"),
        ("credalchain/.DS_Store", "has leftovers"),
        ("credalchain/notes.txt", "not in the source tree"),
        ("tests/test_chain.py", "outside the package"),
        ("studies/paper.toml", "outside the package"),
    ],
)
def test_a_wheel_with_too_much_is_refused(tmp_path, extra, words):
    problems = wheel_problems(tmp_path, WHEEL | {extra})
    assert any(words in problem and extra in problem for problem in problems)


@pytest.mark.parametrize(
    "absent",
    [
        "credalchain/py.typed",
        "credalchain/chain.py",
        "credalchain/_utils/notebook.css",
        "credalchain/datasets/mulan.json",
        "credalchain/review/schema.sql",
        "credalchain/review/page/index.html",
        "credalchain/review/page/page.css",
        "credalchain/review/page/page.js",
        f"{INFO}/licenses/LICENSE",
        f"{INFO}/entry_points.txt",
    ],
)
def test_a_wheel_with_too_little_is_refused(tmp_path, absent):
    problems = wheel_problems(tmp_path, WHEEL - {absent})
    assert problems
    assert all(problem.startswith("misses") for problem in problems)
    assert Path(absent).name in problems[0]


@pytest.mark.parametrize("needed", contents.NEEDED_IN_SDIST)
def test_an_sdist_with_too_little_is_refused(tmp_path, needed):
    problems = sdist_problems(tmp_path, SDIST - {needed.replace("*", "one")})
    assert any(needed in problem for problem in problems)


def test_an_sdist_with_leftovers_or_without_code_is_refused(tmp_path):
    cache = ".hypothesis/examples/1"
    assert sdist_problems(tmp_path, SDIST | {cache}) == [f"has leftovers: {cache}."]
    without = SDIST - {"src/credalchain/chain.py"}
    assert sdist_problems(tmp_path, without) == [
        "misses files of the package: src/credalchain/chain.py."
    ]


def test_wheels_are_compared_by_names_and_contents():
    one = {"credalchain/a.py": 1, f"{INFO}/RECORD": 2}
    assert contents.check_same(one, one | {f"{INFO}/RECORD": 3}) == []
    assert "differs" in contents.check_same(one, one | {"credalchain/a.py": 4})[0]
    assert "misses" in contents.check_same(one, one | {"credalchain/b.py": 4})[0]
    assert "has what" in contents.check_same(one | {"credalchain/b.py": 4}, one)[0]


def test_every_version_has_to_agree(tmp_path):
    wheel = write_wheel(tmp_path / "made_up.whl", WHEEL, version="1.3.0")
    assert contents.wheel_version(wheel) == "1.3.0"
    found = {"the wheel": contents.wheel_version(wheel), "CITATION.cff": "1.2.0", "the tag": ""}
    assert contents.check_versions("1.2.0", found) == [
        "the wheel says version 1.3.0, the package 1.2.0.",
        "the tag says version nothing, the package 1.2.0.",
    ]
    bare = write_wheel(tmp_path / "bare.whl", {"credalchain/py.typed"})
    assert contents.wheel_version(bare) == ""


def test_a_released_version_has_a_date_in_the_changelog():
    assert contents.check_changelog("## 1.2.0 (2030-01-31)\n", "1.2.0") == []
    assert "(year-month-day)" in contents.check_changelog("## 1.2.0 (not released)\n", "1.2.0")[0]
    assert "no heading" in contents.check_changelog("## 1.1.0 (2030-01-31)\n", "1.2.0")[0]


def test_many_names_are_cut_short(tmp_path):
    many = {f"credalchain/more{at}.txt" for at in range(9)}
    assert any("and 6 more." in problem for problem in wheel_problems(tmp_path, WHEEL | many))


def test_the_source_tree_has_what_a_wheel_needs():
    source = contents.source_files(ROOT / "src" / "credalchain")
    assert contents.check_wheel(source | (WHEEL - SOURCE), source) == []
