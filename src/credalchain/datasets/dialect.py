"""CSV as people have it: separators, decimal commas, encodings."""

import contextlib
import csv
import io
import re
import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass

_SEPARATORS = (",", ";", "\t", "|")
_LINES = 50  # that are looked at
_MARKS = ((b"\xff\xfe\x00\x00", "utf-32"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")
_DECIMAL_POINT = re.compile(r"[-+]?\d+\.\d+")
_NAMES = {"\t": "a tab", ";": "a semicolon", "|": "a bar", ",": "a comma"}


@dataclass(frozen=True)
class DialectOptions:
    """What the user said about a file, "" where it is to be found out."""

    separator: str = ""
    decimal: str = ""
    encoding: str = ""


_NOTHING = DialectOptions()
_dialect_options: ContextVar[DialectOptions] = ContextVar("dialect_options", default=_NOTHING)


@contextlib.contextmanager
def reading_as(options: DialectOptions) -> Iterator[None]:
    """Text files that are read inside are taken as the user says."""
    token = _dialect_options.set(options)
    try:
        yield
    finally:
        _dialect_options.reset(token)


@dataclass(frozen=True)
class Dialect:
    """How a text holds a table."""

    separator: str
    decimal: str = "."


def decode(content: bytes, source: str) -> str:
    """Text in UTF-8, UTF-16 or UTF-32 if it says so, else in Windows' western code, with a note."""
    return content.decode(encoding_of(content, source))


def encoding_of(content: bytes, source: str) -> str:
    """The name of the encoding: given, by the first bytes, or by whether it is UTF-8."""
    if _dialect_options.get().encoding:
        return _dialect_options.get().encoding
    for mark, name in _MARKS:
        if content.startswith(mark):
            return name
    try:
        content.decode("utf-8-sig")
    except UnicodeDecodeError:
        if b"\0" in content:
            raise
        content.decode("cp1252")
        warnings.warn(f"{source} is not UTF-8; it is read as cp1252.", UserWarning, stacklevel=3)
        return "cp1252"
    return "utf-8-sig"


def find_dialect(text: str, default: str, source: str) -> Dialect:
    """As given; else the usual separator, unless only another one makes a table of it.

    What cannot be a table with named columns is refused.
    """
    if "\0" in text:
        raise ValueError("it is not text")
    options = _dialect_options.get()
    lines = text.splitlines()[:_LINES]
    head = "\n".join(lines)
    widths = {mark: _widths(head, mark) for mark in (default, *_SEPARATORS)}
    whole = [mark for mark, counts in widths.items() if len(set(counts)) == 1 and counts[0] > 1]
    separator = options.separator or default
    if not options.separator and default not in whole:
        separator = max(whole, key=lambda mark: widths[mark][0], default=default)
    decimal = options.decimal or "."
    if not options.decimal and separator != ",":
        cells = [cell for row in csv.reader(io.StringIO(head), delimiter=separator) for cell in row]
        commas = sum(_DECIMAL_COMMA.fullmatch(cell.strip()) is not None for cell in cells)
        points = sum(_DECIMAL_POINT.fullmatch(cell.strip()) is not None for cell in cells)
        decimal = "," if commas > 0 and points == 0 else "."
    found_out = separator != (options.separator or default) or decimal != (options.decimal or ".")
    if found_out:
        also = ", and numbers have a decimal comma" if decimal == "," else ""
        warnings.warn(
            f"{source}: cells are separated by {_NAMES.get(separator, repr(separator))}{also}.",
            UserWarning,
            stacklevel=2,
        )
    header = next(csv.reader(io.StringIO(text), delimiter=separator), [])
    twice = [name for name in header if header.count(name) > 1]
    if twice:
        raise ValueError(f"there are two columns called {twice[0]!r}; rename one")
    return Dialect(separator, decimal)


def _widths(text: str, separator: str) -> list[int]:
    """Cells of each line."""
    rows = csv.reader(io.StringIO(text), delimiter=separator)
    return [len(row) for row in rows if row] or [0]
