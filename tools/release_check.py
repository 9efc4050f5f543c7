"""Is this tree ready to be released? Builds it, looks into the archives, installs and tries them.

    python tools/release_check.py                    everything
    python tools/release_check.py --skip-lowest      without the tests with the lowest versions
    python tools/release_check.py --tag v1.2.0 --out dist    before publishing

Needs the extras ``dev`` and ``release``. Everything is made in a temporary folder, which is
removed; only ``make test-lowest`` keeps its environment (.venv-lowest) where it always has it.
"""

import argparse
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import release_contents as contents

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / contents.PACKAGE
SMOKE = ROOT / "tools" / "release_smoke.py"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
LOWEST = "3.11"
_LAST_LINES = 15


class ReleaseError(Exception):
    """A step that did not pass, and why, in a sentence."""


def main() -> None:
    """Run all steps; the first that fails ends it."""
    arguments = _arguments()
    try:
        with tempfile.TemporaryDirectory(prefix="release-check-") as folder:
            check(arguments, Path(folder))
    except ReleaseError as failure:
        sys.exit(f"release-check: {failure}")
    print("ready for release")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--skip-lowest", action="store_true", help="leave out make test-lowest")
    parser.add_argument(
        "--python",
        action="append",
        choices=PYTHONS,
        help="install for this Python, which has to be found; may be given several times "
        "(default: all that are found)",
    )
    parser.add_argument("--tag", help="the tag that is released: v and the version")
    parser.add_argument("--out", type=Path, help="keep wheel and sdist in this folder")
    return parser.parse_args()


def check(arguments: argparse.Namespace, folder: Path) -> None:
    """All steps, in the order in which they are quick."""
    version = str(runpy.run_path(str(SOURCE / "_version.py"))["__version__"])
    check_texts(version, arguments.tag)
    sdist, wheel = build(folder)
    check_archives(sdist, wheel, version, folder)
    check_tests_of_sdist(sdist, folder)
    install_everywhere(wheel, arguments.python, folder)
    if not arguments.skip_lowest:
        run_lowest()
    if arguments.out is not None:
        arguments.out.mkdir(parents=True, exist_ok=True)
        for file in (sdist, wheel):
            shutil.copy2(file, arguments.out)


def check_texts(version: str, tag: str | None) -> None:
    """Return the version in the files that repeat it, and in the tag."""
    with step(f"version {version} is the same everywhere"):
        citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
        cited = re.search(r"^version: (\S+)$", citation, re.MULTILINE)
        found = {"CITATION.cff": cited[1] if cited else ""}
        problems: list[str] = []
        if tag is not None:
            found[f"the tag {tag}"] = tag.removeprefix("v")
            changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
            problems = contents.check_changelog(changelog, version)
        _refuse([*contents.check_versions(version, found), *problems])


def build(folder: Path) -> tuple[Path, Path]:
    """Return the sdist, and the wheel made from it: what would be uploaded."""
    with step("sdist and wheel are built") as said:
        run([sys.executable, "-m", "build", "--outdir", folder / "dist", ROOT], cwd=folder)
        (sdist,) = (folder / "dist").glob("*.tar.gz")
        (wheel,) = (folder / "dist").glob("*.whl")
        said += [f"{file.name} {file.stat().st_size / 1000:.0f} kB" for file in (sdist, wheel)]
    with step("twine finds nothing wrong"):
        run([sys.executable, "-m", "twine", "check", "--strict", sdist, wheel], cwd=folder)
    return sdist, wheel


def check_archives(sdist: Path, wheel: Path, version: str, folder: Path) -> None:
    """Return what the archives hold, and that the source tree gives the same wheel as the sdist."""
    source = contents.source_files(SOURCE)
    found = contents.wheel_files(wheel)
    with step(f"the wheel has {len(found)} files, those of the package"):
        problems = contents.check_wheel(found, source)
        versions = contents.check_versions(version, {"the wheel": contents.wheel_version(wheel)})
        _refuse([*(f"the wheel {words}" for words in problems), *versions])
    packed = contents.sdist_files(sdist)
    with step(f"the sdist has {len(packed)} files, tests and documentation among them"):
        _refuse([f"the sdist {words}" for words in contents.check_sdist(packed, source)])
    with step("the source tree gives the same wheel"):
        command = [sys.executable, "-m", "build", "--wheel", "--outdir", folder / "direct", ROOT]
        run(command, cwd=folder)  # a folder "build" here would hide the module of that name
        (direct,) = (folder / "direct").glob("*.whl")
        problems = contents.check_same(found, contents.wheel_files(direct))
        _refuse([f"the wheel of the sdist {words}" for words in problems])


def check_tests_of_sdist(sdist: Path, folder: Path) -> None:
    """Return an sdist from which tests cannot be run is of no use to those who package it."""
    with step("the tests of the sdist can be collected"):
        with tarfile.open(sdist) as archive:
            archive.extractall(folder / "sdist", filter="data")
        (tree,) = (folder / "sdist").iterdir()
        quiet = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
        run(quiet, cwd=tree, PYTHONPATH=str(tree / "src"))


def install_everywhere(wheel: Path, wanted: list[str] | None, folder: Path) -> None:
    """Install the wheel in clean environments: without extras, for the command line, with all."""
    found = {}
    for version in wanted or PYTHONS:
        python = find_python(version)
        if python is not None:
            found[version] = python
        elif wanted:
            raise ReleaseError(f"there is no Python {version} here, on the path or in pyenv.")
        else:
            print(f"Python {version}: not found, not tried")
    if not found:
        raise ReleaseError(f"none of Python {', '.join(PYTHONS)} was found.")
    for version, python in found.items():
        install(wheel, version, python, folder / version, with_all=version == list(found)[-1])


def install(wheel: Path, version: str, python: str, folder: Path, *, with_all: bool) -> None:
    """One clean environment, which grows from no extra to all of them."""
    environment, empty = folder / "environment", folder / "empty"
    empty.mkdir(parents=True)
    run([python, "-m", "venv", "--without-pip", environment])
    inside = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    pip: list[str | Path] = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--python",
        inside,
    ]
    if version == PYTHONS[-1] and not has_numba(pip):
        print(f"Python {version}: numba has no wheel for it, not tried")
        return
    for extra in ("", "cli", "all") if with_all else ("", "cli"):
        named = f"[{extra}]" if extra else ""
        with step(f"Python {version}: credalchain{named} is installed and works"):
            run([*pip, "install", "--quiet", f"{contents.PACKAGE}{named} @ {wheel.as_uri()}"])
            run([*pip, "check"])
            run([inside, "-I", SMOKE, extra or "core"], cwd=empty)
    shutil.rmtree(folder)  # each takes hundreds of megabytes


def has_numba(pip: Sequence[str | Path]) -> bool:
    """Return new Pythons come before numba's wheels for them, and nobody builds those by hand."""
    wheels_only = ["install", "--dry-run", "--quiet", "--only-binary", ":all:", "numba"]
    return subprocess.run([*pip, *wheels_only], capture_output=True, check=False).returncode == 0


def find_python(version: str) -> str | None:
    """Return the interpreter that runs this, one on the path, or the newest of pyenv."""
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        return sys.executable
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    kept = sorted(home.glob(f"{version}.*"), key=_numbers, reverse=True)
    for python in (f"python{version}", *(str(one / "bin" / "python") for one in kept)):
        # pyenv puts commands on the path that only say that a version is not switched on
        try:
            ask = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
            said = subprocess.run(ask, capture_output=True, text=True, check=False).stdout
        except OSError:
            continue
        if said.strip() == version:
            return python
    return None


def _numbers(folder: Path) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", folder.name)]


def run_lowest() -> None:
    """Return the tests with the lowest versions that pyproject.toml allows; the longest step."""
    with step("the tests pass with the lowest versions"):
        if sys.version_info[:2] != tuple(map(int, LOWEST.split("."))):
            raise ReleaseError(
                f"the lowest versions need Python {LOWEST}: make release-check "
                f"PYTHON=python{LOWEST}, or leave them out with --skip-lowest."
            )
        run(["make", "test-lowest"], cwd=ROOT)


@contextmanager
def step(name: str) -> Iterator[list[str]]:
    """One line when a step has passed, with its time and what it adds to the list."""
    began, said = time.monotonic(), list[str]()
    yield said
    details = ", ".join([*said, f"{time.monotonic() - began:.0f} s"])
    print(f"{name} ({details})", flush=True)


def run(command: Sequence[str | Path], *, cwd: Path | None = None, **variables: str) -> None:
    """Return a command that has to end well; if it does not, its last lines say why."""
    words = [str(word) for word in command]
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        words,
        cwd=cwd,
        env={**clean, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        last = "\n".join(done.stdout.strip().splitlines()[-_LAST_LINES:])
        raise ReleaseError(f"{' '.join(words)} ended with status {done.returncode}:\n{last}")


def _refuse(problems: list[str]) -> None:
    if problems:
        raise ReleaseError("\n".join(problems))


if __name__ == "__main__":
    main()
