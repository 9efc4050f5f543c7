"""Files are written whole or not at all."""

import contextlib
import os
import stat
import tempfile
from pathlib import Path
from typing import Any


def check_folder(path: Path) -> None:
    """Refuse a place that cannot be written to, before the work for it is done."""
    folder = path.resolve().parent if path.is_symlink() else path.parent
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is not a folder.")
    if not folder.is_dir():
        raise FileNotFoundError(f"the folder {folder} does not exist.")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"files in the folder {folder} may not be written.")


class replacing:  # noqa: N801 - reads as a verb: with replacing(path) as file
    """Write to a temporary file beside ``path``, which takes its place if all went well."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> Any:
        if self._path.is_symlink():
            self._path = self._path.resolve()
        check_folder(self._path)
        folder = self._path.parent
        if self._path.exists() and not self._path.is_file():
            raise OSError(f"{self._path} exists and is not a file.")
        try:
            handle, name = tempfile.mkstemp(dir=folder, prefix=f".{self._path.name}.")
        except OSError as error:
            raise type(error)(f"{self._path} cannot be written: {error.strerror}.") from error
        self._temporary = Path(name)
        self._file = os.fdopen(handle, "w+b")
        return self._file

    def __exit__(self, kind: Any, *_: Any) -> None:
        try:
            if kind is None:
                self._file.flush()
                os.fsync(self._file.fileno())
                self._temporary.chmod(self._mode())
                self._file.close()
                self._temporary.replace(self._path)
        finally:
            with contextlib.suppress(OSError):  # what could not be written before cannot now
                self._file.close()
            self._temporary.unlink(missing_ok=True)

    def _mode(self) -> int:
        """The permissions of the file that is replaced, or those of any new file."""
        if self._path.exists():
            return stat.S_IMODE(self._path.stat().st_mode)
        return 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
