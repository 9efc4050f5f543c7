"""Tables in files: CSV and Parquet, in and out."""

import difflib
import io
import sys
from collections import Counter
from collections.abc import Sequence
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from credalchain._utils.files import replacing
from credalchain._utils.text import (
    for_spreadsheet,
    from_spreadsheet,
    in_table,
    plural,
    to_csv,
    visible,
)
from credalchain.cli.console import note
from credalchain.datasets import load, read_file, read_mulan
from credalchain.datasets.describe import RARE, describe_features, describe_labels
from credalchain.datasets.files import attribute_names, check_frame, read_csv, read_frame
from credalchain.datasets.label_words import read_label_words
from credalchain.datasets.registry import is_dataset_name

_PARQUET = (".parquet", ".pq")
_MAX_NOTES = 5
_MANY_TAGS = 20
_ARFF_LABELS = (["xml"], ["meka"])  # labels that the file, or the file beside it, names


def load_table(
    source: str, labels: Sequence[str] = (), text_columns: Sequence[str] = ()
) -> tuple[pd.DataFrame, list[str]]:
    """A table from a file, stdin (``-``), embedded:yeast or mulan:NAME.

    Also the names of its labels where the source knows them: the data sets do, and so does an
    ARFF file with ``--labels xml``.
    """
    if is_dataset_name(source):
        data = load(source)
        return data.to_frame(), data.label_names
    from credalchain.cli.stream import is_chunked, read_whole

    if is_chunked(source):
        return read_whole(source, text_columns), []
    if source.lower().endswith(".arff"):
        return _read_arff(Path(source), labels)
    if Path(source).suffix.lower() in _PARQUET:
        return dates_as_text(read_frame(source)), []
    as_written = [*text_columns, *map(for_spreadsheet, text_columns)]
    frame = _read_stdin(as_written) if source == "-" else read_frame(source, as_written)
    plain = in_table(frame, from_spreadsheet)
    return check_frame(plain, "stdin" if source == "-" else source), []


def refuse_to_replace(out: str, *read: str) -> None:
    """Nothing that a command reads is replaced by what it writes, nor read the next time."""
    path = Path(out)
    for source in read:
        folder = Path(source)
        if folder.is_dir() and path.resolve().parent == folder.resolve():
            raise ValueError(f"--out {out} is in the folder that is read: give another place.")
        if path.exists() and any(
            path.samefile(file)
            for file in ([folder] if folder.exists() else map(Path, glob(source)))
        ):
            raise ValueError(f"--out {out} is a file that is read: give another name.")


def dates_as_text(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns of dates as CSV has them: the same whatever the file."""
    dates = [name for name in frame.columns if frame[name].dtype.kind in "mM"]
    return frame.assign(
        **{name: frame[name].astype(str).where(frame[name].notna()) for name in dates}
    )


def read_labelled(
    source: str,
    labels: Sequence[str],
    ignore: str = "",
    tag_separator: str = "",
    *,
    case_sensitive: bool = False,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The columns and the labels of a table, from ``--labels`` and ``--ignore``.

    With a ``tag_separator``, the one column of labels holds the names of those that are yes;
    spellings that differ in capitals only are one label unless ``case_sensitive``.
    """
    frame, known = load_table(source, labels)
    names = pick_labels(frame, labels, known)
    ignored = pick_columns(frame, ignore, "--ignore")
    X = frame.drop(columns=[*names, *ignored])
    if tag_separator:
        if len(names) != 1:
            raise ValueError(
                f"--tag-separator is for one column of tags, got {shorten_names(names)}."
            )
        return X, split_tags(frame[names[0]], tag_separator, case_sensitive=case_sensitive)
    if case_sensitive:
        raise ValueError("--case-sensitive is for --tag-separator.")
    try:
        return X, read_label_words(frame[names])
    except ValueError as error:
        if len(names) == 1 and _look_like_tags(frame[names[0]]):
            raise ValueError(f"{error} For a column of tags: --tag-separator.") from None
        raise


def take_groups(X: pd.DataFrame, column: str) -> tuple[pd.DataFrame, Any]:
    """Return the other columns, and the one that ``--groups`` names; None if it is not given."""
    if not column:
        return X, None
    if column == "none" and column not in X.columns:
        return X, np.arange(len(X))
    names = pick_columns(X, column, "--groups")
    if len(names) != 1:
        raise ValueError(f"--groups must name one column, got {column!r}.")
    return X.drop(columns=names), X[names[0]]


def _look_like_tags(column: pd.Series) -> bool:
    return bool(column.dropna().astype(str).str.contains(r"[;|,]").any())


def usable_features(X: pd.DataFrame, Y: pd.DataFrame, use: str) -> pd.DataFrame:
    """The columns to learn from, with notes about those to think about.

    Names, free text and row numbers are left out, except those that ``--use`` names.
    """
    wanted = list(X.columns) if use == "all" else pick_columns(X, use, "--use") if use else []
    features = describe_features(X)
    left_out = [
        feature.name for feature in features if not feature.is_used and feature.name not in wanted
    ]
    if len(left_out) == X.shape[1]:
        raise ValueError(
            "every column looks like names, free text or row numbers, so there is nothing to learn "
            f"from ({shorten_names(left_out)}); --use NAME takes one all the same."
        )
    noted = [feature for feature in features if feature.note and feature.name not in wanted]
    for feature in noted[:_MAX_NOTES]:
        done = f"; it is left out (--use {feature.name!r} takes it)" if not feature.is_used else ""
        note(f"note: column {feature.name!r}: {feature.note}{done}")
    labels = describe_labels(Y)
    constant = [label for label in labels if (label.n_yes == 0) != (label.n_no == 0)]
    for label in constant[:_MAX_NOTES]:
        note(f"note: label {label.name!r}: {label.note}")
    rare = [label.name for label in labels if label.is_rare]
    if rare and len(Y) >= 10 * RARE:
        note(
            f"note: fewer than {RARE} rows are yes, or no, from which little can be learned: "
            f"{shorten_names(rare)}"
        )
    left = max(len(noted) - _MAX_NOTES, 0) + max(len(constant) - _MAX_NOTES, 0)
    if left:
        note(f"note: and {left} more; see credalchain describe")
    return X.drop(columns=left_out)


def split_tags(
    column: pd.Series, separator: str, known: Sequence[str] = (), *, case_sensitive: bool = False
) -> pd.DataFrame:
    """A column of 0 and 1 for each tag in a column of tags.

    An empty cell has none of them; of a cell that is ``?`` nobody knows. Spellings that differ in
    capitals only are one label, called as in ``known`` or else as most rows have it.
    """
    cells = column.fillna("").astype(str).str.strip()
    unknown = (cells == "?").to_numpy()
    cells = cells.mask(unknown, "")
    tags = [list(filter(None, map(str.strip, cell.split(separator)))) for cell in cells]
    counts = Counter(tag for row_tags in tags for tag in row_tags)
    if not counts:
        raise ValueError(f"--tag-separator: column {column.name!r} has no tags.")
    label_of = {tag: tag for tag in counts} if case_sensitive else _merge_spellings(counts, known)
    merged = [f"{tag} as {label}" for tag, label in label_of.items() if tag != label]
    if merged:
        hint = "" if known else " (--case-sensitive keeps them apart)"
        note(
            f"note: tags that differ in capitals only are one label: {shorten_names(merged)}{hint}"
        )
    names = sorted(set(label_of.values()))
    label_index = {name: j for j, name in enumerate(names)}
    indicators = np.zeros((len(cells), len(names)), dtype=np.int8)
    for row, row_tags in enumerate(tags):
        indicators[row, [label_index[label_of[tag]] for tag in row_tags]] = 1
    if len(names) > _MANY_TAGS and np.median(indicators.sum(axis=0)) <= 1:
        note(f"note: most of {len(names)} tags occur once: does {separator!r} stand between tags?")
    labels = pd.DataFrame(indicators, columns=names, index=column.index)
    nobody_knows = np.broadcast_to(unknown[:, None], labels.shape)
    return labels.astype("Int8").mask(nobody_knows) if unknown.any() else labels


def _merge_spellings(counts: Counter[str], known: Sequence[str]) -> dict[str, str]:
    """The label of each tag, whatever its capitals: a known one, or else the most frequent."""
    spelled = {name.casefold(): name for name in known}
    by_frequency = sorted(counts, key=lambda tag: (-counts[tag], tag))
    return {
        tag: tag if tag in known else spelled.setdefault(tag.casefold(), tag)
        for tag in by_frequency
    }


def _read_stdin(text_columns: Sequence[str]) -> pd.DataFrame:
    if sys.stdin is None:
        raise ValueError("stdin is closed.")
    try:
        frame: pd.DataFrame = read_csv(sys.stdin.buffer.read(), ",", text_columns, source="stdin")
    except pd.errors.EmptyDataError:
        raise ValueError("stdin is empty.") from None
    except (UnicodeDecodeError, pd.errors.ParserError, ValueError) as error:
        raise ValueError(f"stdin cannot be read as a table: {error}") from error
    return pd.DataFrame(check_frame(frame, "stdin"))


def _read_arff(path: Path, labels: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """Without ``--labels`` (new rows to predict) no attribute is taken for a label."""
    columns = attribute_names(path)
    wanted: str | Sequence[str] = labels
    if list(labels) in _ARFF_LABELS:
        wanted = labels[0]
    elif len(labels) == 1 and labels[0].lower().endswith(".xml"):
        data = read_mulan(path, _beside(path, labels[0]))
        return data.to_frame()[columns], data.label_names
    elif labels:
        wanted = pick_labels(pd.DataFrame(columns=pd.Index(columns)), labels, [])
    data = read_file(path, wanted)
    return data.to_frame()[columns], data.label_names  # columns where the file has them


def _beside(path: Path, name: str) -> Path:
    """A file by its name as it is, or beside another."""
    return Path(name) if Path(name).is_file() else path.with_name(Path(name).name)


def pick_labels(frame: pd.DataFrame, wanted: Sequence[str], known: Sequence[str]) -> list[str]:
    """Label columns from ``--labels``: names, ``first:N`` or ``last:N``."""
    is_xml = len(wanted) == 1 and wanted[0].lower().endswith(".xml")
    if known and (not wanted or list(wanted) in _ARFF_LABELS or is_xml):
        return list(known)
    if not any(wanted):
        raise ValueError("say which columns are labels: --labels a,b,c or --labels last:6.")
    names: list[str] = []
    for spec in wanted:
        names += _spec_to_names(frame, spec)
    if len(set(names)) < len(names):
        raise ValueError(f"--labels names a column twice: {shorten_names(names)}.")
    if len(names) == len(frame.columns):
        raise ValueError("--labels takes all columns, so there is nothing to predict from.")
    return names


def _spec_to_names(frame: pd.DataFrame, spec: str) -> list[str]:
    columns = list(frame.columns)
    if spec in columns:
        return [spec]
    side, _, number = spec.partition(":")
    if side in ("first", "last") and number:
        if not number.isdigit() or not 0 < int(number) <= len(columns):
            raise ValueError(
                f"--labels {spec}: the number must be between 1 and {len(columns)}, the columns "
                "there are."
            )
        return columns[: int(number)] if side == "first" else columns[-int(number) :]
    return pick_columns(frame, spec, "--labels")


def pick_columns(frame: pd.DataFrame, spec: str, option: str) -> list[str]:
    """Columns from names with commas between them."""
    if spec in frame.columns:  # a name may hold commas
        return [spec]
    names = split_names(spec, option)
    missing = [name for name in names if name not in frame.columns]
    if missing:
        columns = list(frame.columns)
        raise ValueError(
            f"{option}: there is no column {missing[0]!r}{_did_you_mean(missing[0], columns)}; the "
            f"columns are {shorten_names(columns)}."
        )
    return names


def split_names(spec: str, option: str) -> list[str]:
    """Names with commas between them; none only where the option is not given."""
    names = [name.strip() for name in spec.split(",") if name.strip()]
    if spec and not names:
        raise ValueError(f"{option} must be names with commas between, got {spec!r}.")
    return names


def _did_you_mean(name: str, columns: Sequence[str]) -> str:
    lower = {column.lower(): column for column in columns}
    near = difflib.get_close_matches(name.lower(), list(lower), n=1)
    return f" (did you mean {lower[near[0]]!r}?)" if near else ""


def shorten_names(names: Sequence[str], most: int = 12) -> str:
    """The first names in words, for a message."""
    shown = ", ".join(map(visible, names[:most]))
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} in all)"


def pick_features(frame: pd.DataFrame, names: Sequence[str], source: str) -> pd.DataFrame:
    """The columns a model was fitted on, in its order."""
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise ValueError(
            f"{source} lacks {len(missing)} of the model's {plural(len(names), 'column')}: "
            f"{shorten_names(missing)}{_did_you_mean(missing[0], list(frame.columns))}."
        )
    return frame[list(names)]


def read_known(frame: pd.DataFrame, labels: Sequence[str]) -> pd.DataFrame:
    """Label columns that were answered already; empty cells and ``*`` are open."""
    cells = frame[list(labels)]
    return pd.DataFrame(read_label_words(cells.mask(cells == "*")))


def write_table(frame: pd.DataFrame, out: str) -> None:
    """To a file, whole or not at all, or to stdout (``-``) as CSV.

    In CSV and TSV an apostrophe stands before text that a spreadsheet would run as a formula;
    ``load_table`` takes it away.
    """
    if out == "-":
        if sys.stdout is None:
            raise ValueError("stdout is closed.")
        shown = in_table(frame, visible) if sys.stdout.isatty() else frame
        sys.stdout.write(to_csv(shown))
        sys.stdout.flush()
        return
    path = Path(out)
    buffer = io.BytesIO()
    if path.suffix.lower() in _PARQUET:
        frame.to_parquet(buffer, index=False)
    elif path.suffix.lower() in (".csv", ".tsv"):
        separator = "\t" if path.suffix.lower() == ".tsv" else ","
        buffer.write(to_csv(frame, separator).encode())
    else:
        raise ValueError(f"--out {out}: the name must end in .csv, .tsv or .parquet, or be -.")
    with replacing(path) as file:
        file.write(buffer.getvalue())
