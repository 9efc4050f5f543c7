"""Rows of a table as reviewers see them, and as files of answers know them."""

import hashlib
import json
import math
from collections import Counter
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from credalchain.labels import is_missing
from credalchain.review.store import VERSION, RowKey

IMAGES = {f".{kind}": f"image/{kind}" for kind in ("png", "jpeg", "gif", "webp", "avif", "bmp")}
IMAGES[".jpg"] = "image/jpeg"


def row_keys(frame: pd.DataFrame, version: int = VERSION) -> list[RowKey]:
    """Compute a key for every row, by its content.

    It stays the same if rows or columns are moved, rows added, or integers become floats.
    ``version`` is that of the file of answers; in version 1, the text "2.0" was the number 2.
    """
    names = sorted(map(str, frame.columns))
    named = {str(name): frame[name].tolist() for name in frame.columns}
    head, separator, as_text = "".join(map(_typed, names)), "", _typed
    if version == 1:
        head, separator, as_text = "\x1e".join(names), "\x1f", _untyped
    seen: Counter[str] = Counter()
    keys = []
    for cells in zip(*(named[name] for name in names), strict=True) if names else ():
        content = head + separator.join(map(as_text, cells))
        digest = hashlib.blake2b(content.encode("utf-8", "surrogatepass"), digest_size=16)
        text = digest.hexdigest()
        keys.append(RowKey(text, seen[text]))
        seen[text] += 1
    return keys


def _typed(value: Any) -> str:
    """Write a cell so that no other reads the same: its type, its length and its text."""
    kind, text = "text", str(value)
    if is_missing(value):
        kind, text = "missing", ""
    elif isinstance(value, (bool, np.bool_)):
        kind = "boolean"
    elif isinstance(value, (Number, np.number)):
        number: Any = value
        kind, text = "number", str(int(number)) if number % 1 == 0 else repr(float(number))
    return f"{kind}{len(text)}:{text}"


def _untyped(value: Any) -> str:
    """Write a cell so that 2, 2.0 and "2.0" read the same."""
    if is_missing(value):
        return ""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return str(value)
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    if not math.isfinite(number) or isinstance(value, bool):
        return str(value)
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)


def content_of(frame: pd.DataFrame, row: int) -> dict[str, Any]:
    """The cells of a row by name, as JSON can hold them."""
    return {str(name): _plain(frame[name].iloc[row]) for name in frame.columns}


def from_json(contents: list[str]) -> pd.DataFrame:
    """A table of rows, each the JSON of :func:`content_of`."""
    cells = pd.DataFrame([json.loads(content) for content in contents], dtype=object)
    return whole_numbers(cells).infer_objects()


def whole_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with integers where missing cells have made, or would make, floats."""
    present = {name: frame[name].dropna().tolist() for name in frame.columns}
    return frame.astype(
        {
            name: "Int64"
            for name, cells in present.items()
            if 0 < len(cells) < len(frame) and all(map(_is_whole, cells))
        }
    )


def _is_whole(value: Any) -> bool:
    if isinstance(value, float):
        return value.is_integer() and abs(value) < 2**53
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


def _plain(value: Any) -> Any:
    if is_missing(value):
        return None
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, (bool, int, float, str)) else str(value)


def shown_cells(
    frame: pd.DataFrame, row: int, columns: list[str], folder: Path | None
) -> list[dict[str, Any]]:
    """What a person sees of a row: name, value as text (None: missing) and kind of each cell."""
    cells = []
    for name in columns:
        value = _plain(frame[name].iloc[row])
        kind = "nothing" if value is None else "number"
        if isinstance(value, str):
            kind = "text"
            if value.startswith(("https://", "http://")) and _is_image(value.partition("?")[0]):
                kind = "address"
            elif image_file(value, folder) is not None:
                kind = "image"
        elif isinstance(value, float):
            value = str(int(value)) if value.is_integer() else f"{value:.10g}"
        cells.append({"name": name, "value": None if value is None else str(value), "kind": kind})
    return cells


def _is_image(name: str) -> bool:
    return Path(name).suffix.lower() in IMAGES


def image_file(value: Any, folder: Path | None) -> Path | None:
    """The image that a cell names, if it lies in the folder of the data; else None."""
    if folder is None or not isinstance(value, str) or not _is_image(value):
        return None
    try:
        file = (folder / value).resolve()
        inside = file.is_relative_to(folder.resolve()) and file.is_file()
    except (OSError, ValueError):
        return None
    return file if inside and _is_image(file.name) else None
