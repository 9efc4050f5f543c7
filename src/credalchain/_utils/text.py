"""Names from files as plain text, for each place where they are shown or written.

Labels, columns, categories, methods and data sets may have any name. Names are unchanged inside the
package; on output, one of these functions escapes whatever would not be read as text there. HTML
has ``html.escape``.
"""

import csv
import re
from collections.abc import Callable, Collection
from typing import Any

# C0 and C1 controls, separators of lines, overrides of direction, halves of surrogate pairs
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
# what spreadsheets take for the start of a formula, wide forms included
_FORMULA = re.compile(r"'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_ESCAPED_FORMULA = re.compile("'" + _FORMULA.pattern)
_MAX_BYTES = 220  # of 255, which leaves room for a digest, a suffix and a temporary file's name


def visible(words: str) -> str:
    r"""Return text in one line: control characters and overrides of direction are escaped.

    Examples
    --------
    >>> print(visible("\x1b[31mred\nblue"))
    \x1b[31mred\nblue
    """
    return _CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode(), words)


def plural(n: int, noun: str, form: str = "") -> str:
    """Return a number, formatted by ``form``, and what it counts.

    Examples
    --------
    >>> plural(1, "row"), plural(2000, "new row", ",")
    ('1 row', '2,000 new rows')
    """
    return f"{n:{form}} {noun}{'s' * (n != 1)}"


def with_spread(mean: float, std: float, form: str = ".3f") -> str:
    """Return "mean ± standard deviation"; without what is NaN.

    Examples
    --------
    >>> with_spread(12.34, 0.56, ".1f"), with_spread(12.34, float("nan"), ".1f")
    ('12.3 ± 0.6', '12.3')
    """
    parts = [f"{part:{form}}" for part in (mean, std) if part == part]
    return " ± ".join(parts) if mean == mean else ""


def table_size(n_rows: int, n_features: int, n_labels: int) -> str:
    """Describe the size of a table in words."""
    counts = ((n_rows, "row"), (n_features, "feature"), (n_labels, "label"))
    return ", ".join(plural(*count) for count in counts)


def for_figure(words: str, most: int = 60) -> str:
    r"""Return text that matplotlib draws as it is, at most ``most`` characters of it.

    Matplotlib reads what stands between two ``$`` as mathematics, and leaves names that start
    with an underscore out of legends.

    Examples
    --------
    >>> print(for_figure("us$ to eu$"))
    us\$ to eu\$
    """
    shown = visible(words)
    shown = shown if len(shown) <= most else shown[: most - 1] + "…"
    shown = shown.replace("$", r"\$")
    return f"\u200b{shown}" if shown.startswith("_") else shown


def for_file_name(words: str) -> str:
    """Return text for a file name, cut to 100 characters; different texts may become equal.

    Examples
    --------
    >>> for_file_name("../a b")
    '_._a_b'
    """
    kept = "".join(c if c.isalnum() or c in "-_." else "_" for c in words)
    if kept.startswith("."):  # a hidden file, or a parent folder
        kept = "_" + kept[1:]
    return kept[:100].encode()[:_MAX_BYTES].decode(errors="ignore")


def for_spreadsheet(words: str) -> str:
    """Return text that spreadsheets do not run: an apostrophe before what would be a formula.

    Different texts stay different, and ``from_spreadsheet`` gives them back.

    Examples
    --------
    >>> for_spreadsheet("=1+1"), for_spreadsheet("rock")
    ("'=1+1", 'rock')
    """
    return f"'{words}" if _FORMULA.match(words) else words


def from_spreadsheet(words: str) -> str:
    """Return what ``for_spreadsheet`` was given."""
    return words[1:] if _ESCAPED_FORMULA.match(words) else words


def in_table(frame: Any, change: Callable[[str], str], but: Collection[str] = ()) -> Any:
    """Apply ``change`` to names of columns, and to cells of text ``but`` in some columns."""
    result = frame.copy(deep=False)
    for name in frame.columns[[dtype.kind in "OU" for dtype in frame.dtypes]]:
        if name in but:
            continue
        column = frame[name]
        cells = column if column.dtype == object else column.unique()  # objects may have no hash
        texts = {cell for cell in cells if isinstance(cell, str)}
        changed = {text: change(text) for text in texts if change(text) != text}
        if changed:
            result[name] = column.map(
                lambda cell, new=changed: new.get(cell, cell) if isinstance(cell, str) else cell
            )
    return result.set_axis([change(str(name)) for name in frame.columns], axis=1)


def to_csv(frame: Any, separator: str = ",", numbers: Collection[str] = ()) -> str:
    """Return a data frame as CSV in which no text is a formula, and none ends its row.

    Columns ``numbers`` hold no formulas, and stay as they are.
    The writer does not quote a carriage return by itself, though readers end a row there.
    """
    safe = in_table(frame, for_spreadsheet, numbers)
    how: dict[str, Any] = {"index": False, "sep": separator, "lineterminator": "\n"}
    text: str = safe.to_csv(**how)
    return safe.to_csv(**how, quoting=csv.QUOTE_NONNUMERIC) if "\r" in text else text
