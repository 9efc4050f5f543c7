"""Atomic writing of files."""

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def check_folder(path: Path) -> None:
    """Raise an error if a place cannot be written to, before the work for it is done."""
    folder = path.resolve().parent if path.is_symlink() else path.parent
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is not a folder.")
    if not folder.is_dir():
        raise FileNotFoundError(f"the folder {folder} does not exist.")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"the folder {folder} is not writable.")


@contextlib.contextmanager
def atomic_write(path: Path) -> Iterator[Any]:
    """Open a temporary file beside ``path``, which replaces it if all goes well."""
    path = path.resolve() if path.is_symlink() else path
    check_folder(path)
    if path.exists() and not path.is_file():
        raise OSError(f"{path} exists and is not a file.")
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise type(error)(f"{path} cannot be written: {error.strerror}.") from error
    temporary, file = Path(name), os.fdopen(handle, "w+b")
    try:
        yield file
        file.flush()
        os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        # the permissions of the file that is replaced, or those of any new file
        temporary.chmod(stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666 & ~mask)
        file.close()
        temporary.replace(path)
    finally:
        with contextlib.suppress(OSError):  # what could not be written before cannot now
            file.close()
        temporary.unlink(missing_ok=True)
