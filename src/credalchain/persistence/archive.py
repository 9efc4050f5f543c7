"""The file itself: a zip archive of one JSON text and arrays, with a digest over both."""

import hashlib
import json
import re
import reprlib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain.files import replacing
from credalchain.persistence.checks import Arrays, Description, ModelFileError

FORMAT = "credalchain model"
SCHEMA = 2
_MAX_BYTES = 8 * 2**30
_MEMBER = re.compile(r"(\d{1,4}\.){0,2}[a-z][a-z_]{0,63}\.npy")  # the JSON text, and arrays


def write_archive(path: Path, description: Description, arrays: dict[str, NDArray[Any]]) -> None:
    """Whole or not at all."""
    signed = {**description, "sha256": content_digest(description, arrays)}
    text = json.dumps(signed, ensure_ascii=False, allow_nan=False)
    members: dict[str, Any] = {**arrays, "json": np.frombuffer(text.encode(), np.uint8)}
    with replacing(path) as file:
        np.savez_compressed(file, **members)


def content_digest(description: Mapping[str, Any], arrays: Arrays) -> str:
    """SHA-256 of everything in a model file, so that an edit does not go unnoticed."""
    digest = hashlib.sha256()
    rest = {key: value for key, value in description.items() if key != "sha256"}
    digest.update(json.dumps(rest, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def read_archive(path: Path) -> tuple[Description, dict[str, NDArray[Any]]]:
    """Description and arrays of a file that is what it was when written."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    _refuse_other_formats(path)
    try:
        with zipfile.ZipFile(path) as archive:
            names = [item.filename for item in archive.infolist()]
            if len(set(names)) < len(names) or not all(_MEMBER.fullmatch(name) for name in names):
                raise ModelFileError(f"{path} is not a credalchain model: it holds other things.")
            check_size(archive)
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        description = json.loads(arrays.pop("json").tobytes().decode())
        _check_description(path, description, arrays)
    except ModelFileError:
        raise
    except (Exception, MemoryError) as error:
        raise ModelFileError(f"{path} is not a credalchain model, or it is damaged.") from error
    return description, arrays


def check_size(archive: zipfile.ZipFile) -> None:
    """Refuse what would not fit into memory, before it is unpacked."""
    if sum(item.file_size for item in archive.infolist()) > _MAX_BYTES:
        raise ModelFileError(f"it unpacks to more than {_MAX_BYTES} bytes.")


def _check_description(path: Path, description: Any, arrays: Arrays) -> None:
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise ModelFileError(f"{path} is not a credalchain model.")
    schema = description.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise ModelFileError(f"{path} has no valid schema number, got {reprlib.repr(schema)}.")
    if schema > SCHEMA:
        raise ModelFileError(
            f"{path} has schema {schema}, written by credalchain {description.get('package')}; "
            f"this version reads up to {SCHEMA}. Please update credalchain."
        )
    if description.get("sha256") != content_digest(description, arrays):
        raise ModelFileError(f"{path} was changed after it was written, or is damaged.")


def _refuse_other_formats(path: Path) -> None:
    with path.open("rb") as file:
        head = file.read(4)
    if head[:1] == b"\x80":
        raise ModelFileError(
            f"{path} looks like a pickle. Pickles can run code when they are loaded, so they are "
            "refused; save the model with save_model or 'credalchain fit'."
        )
    if head != b"PK\x03\x04":
        raise ModelFileError(f"{path} is not a credalchain model.")
