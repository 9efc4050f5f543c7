"""Rows of a table as reviewers see them, and as files of answers know them."""

import hashlib
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from credalchain.review.store import RowKey

IMAGES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".avif": "image/avif",
    ".bmp": "image/bmp",
}


def row_keys(frame: pd.DataFrame) -> list[RowKey]:
    """A key for every row, by its content: it stays the same if rows are added or moved."""
    columns = [_texts(frame[name]) for name in frame.columns]
    head = "\x1e".join(map(str, frame.columns)).encode()
    seen: Counter[str] = Counter()
    keys = []
    for cells in zip(*columns, strict=True) if columns else ():
        digest = hashlib.blake2b(head, digest_size=16)
        digest.update("\x1f".join(cells).encode("utf-8", "surrogatepass"))
        text = digest.hexdigest()
        keys.append(RowKey(text, seen[text]))
        seen[text] += 1
    return keys


def _texts(column: pd.Series) -> list[str]:
    """Values as text: a number is the same text whether it is whole or a float."""
    return [_text(value) for value in column.tolist()]


def _text(value: Any) -> str:
    if _is_missing(value):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _is_missing(value: Any) -> bool:
    if value is None or value is pd.NA or value is pd.NaT:
        return True
    return isinstance(value, (float, np.floating)) and math.isnan(value)


def as_json(row: pd.Series) -> str:
    """The content of a row, from which :func:`from_json` makes a table again."""
    return json.dumps({str(name): _plain(value) for name, value in row.items()}, ensure_ascii=False)


def from_json(contents: list[str]) -> pd.DataFrame:
    """A table of rows."""
    return pd.DataFrame.from_records([json.loads(content) for content in contents])


def _plain(value: Any) -> Any:
    if _is_missing(value):
        return None
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (bool, int, float, str)) else str(value)


def shown_cells(row: pd.Series, columns: list[str], folder: Path | None) -> list[dict[str, Any]]:
    """What a person sees of a row: name, value and kind of each cell."""
    cells = []
    for name in columns:
        value = _plain(row[name])
        kind = "nothing" if value is None else "number"
        if isinstance(value, str):
            kind = "text"
            if value.startswith(("https://", "http://")) and _ending(value) in IMAGES:
                kind = "address"
            elif image_file(value, folder) is not None:
                kind = "image"
        elif isinstance(value, float):
            value = float(f"{value:.6g}")
        cells.append({"name": name, "value": value, "kind": kind})
    return cells


def _ending(name: str) -> str:
    return Path(name.partition("?")[0]).suffix.lower()


def image_file(value: Any, folder: Path | None) -> Path | None:
    """The image that a cell names, if it lies in the folder of the data; else None."""
    if folder is None or not isinstance(value, str) or _ending(value) not in IMAGES:
        return None
    try:
        file = (folder / value).resolve()
        inside = file.is_relative_to(folder.resolve()) and file.is_file()
    except (OSError, ValueError):
        return None
    return file if inside else None
