"""Downloads at fixed addresses, checked: a file by its SHA-256, or files of a Git commit.

The hash of a commit covers all its files, and Git checks everything that it fetches.
"""

import os
import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

_RETRIES = 3  # one second after a failure, then two, then three
_OF_THE_USER = ("GIT_SSL", "GIT_SSH", "GIT_PROXY", "GIT_ASKPASS")  # others name repositories
_PATIENCE = ("-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=30")  # bytes, seconds


def download(source: str, file: str, sha256: str, cache: Path) -> None:
    """Download a file from the address ``source`` into the cache, unless it is there."""
    import pooch

    pooch.get_logger().setLevel("WARNING")  # it would write on stderr, which is ours
    shelf = pooch.create(
        cache, source, registry={file: f"sha256:{sha256}"}, retry_if_failed=_RETRIES
    )
    shelf.fetch(file, downloader=pooch.HTTPDownloader(timeout=30))


def fetch_by_git(
    repository: str, commit: str, folder: str, choices: Mapping[Path, Sequence[Sequence[str]]]
) -> None:
    """Fetch files of a folder at a commit, unless they are here.

    Parameters
    ----------
    repository : str
        Address of the repository.
    commit : str
        Full hash of the commit.
    folder : str
        Folder in the repository; nothing else is fetched.
    choices : mapping from Path to sequence of sequences of str
        For each file to be written, names in the folder: the first choice of which all exist. If
        these are several, they are ARFF files with the same attributes, and become one file.

    Raises
    ------
    OSError
        If Git is not installed, or fails.
    ValueError
        If files that should become one do not have the same attributes.
    """
    if all(path.is_file() for path in choices):
        return
    with TemporaryDirectory(prefix="credalchain-", ignore_cleanup_errors=True) as place:
        git = _git_in(place)
        git("init", "--quiet", "--bare")
        git("remote", "add", "origin", repository)
        git("fetch", "--quiet", "--depth=1", "--filter=blob:none", "origin", commit)
        there = git("ls-tree", "--name-only", f"{commit}:{folder}").decode().splitlines()
        for path, several in choices.items():
            files = next((files for files in several if set(files) <= set(there)), None)
            if files is None:
                wanted = " or ".join(" and ".join(files) for files in several)
                raise FileNotFoundError(f"{folder} has no {wanted}, only {', '.join(there)}")
            parts = [git("cat-file", "blob", f"{commit}:{folder}/{file}") for file in files]
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(f".{os.getpid()}")
            part.write_bytes(_joined(*parts))
            part.replace(path)  # whole or not at all


def _git_in(folder: str) -> Callable[..., bytes]:
    """Return a function that runs Git in a folder; a failure is tried again, then an OSError."""
    kept = (key for key in os.environ if not key.startswith("GIT_") or key.startswith(_OF_THE_USER))
    env = {key: os.environ[key] for key in kept} | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}

    def git(*command: str) -> bytes:
        for wait in range(1, _RETRIES + 2):
            try:
                done = subprocess.run(
                    ["git", *_PATIENCE, *command],
                    cwd=folder,
                    env=env,
                    capture_output=True,
                    check=False,
                )
            except FileNotFoundError:
                raise OSError("Git is not installed") from None
            if done.returncode == 0:
                return done.stdout
            if command[0] not in ("fetch", "cat-file"):
                break  # nothing that a network could have caused
            if wait <= _RETRIES:
                time.sleep(wait)
        raise OSError(f"git {command[0]}: {done.stderr.decode(errors='replace').strip()}")

    return git


def _joined(first: bytes, *others: bytes) -> bytes:
    """Return an ARFF file with the rows of all."""
    if not others:
        return first
    parts = [re.split(rb"(?im)^\s*@data[^\n]*\n", part, maxsplit=1) for part in (first, *others)]
    attributes = [re.findall(rb"(?im)^\s*@attribute[^\n]*", part[0]) for part in parts]
    if any(len(part) < 2 for part in parts) or any(one != attributes[0] for one in attributes):
        raise ValueError("the files of training and test rows do not have the same attributes")
    return b"\n".join([first.rstrip(), *(rows for _, rows in parts[1:])])
