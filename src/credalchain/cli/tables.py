"""Tables that commands read and write: whole, or in chunks where they are large."""

import contextlib
import difflib
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from glob import escape, glob, has_magic
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from credalchain._utils import text
from credalchain._utils.files import atomic_write
from credalchain._utils.progress import Progress
from credalchain.chunks.sampling import row_hashes, smallest
from credalchain.chunks.sources import naming_chunk_in_errors
from credalchain.cli.console import note
from credalchain.columns import (
    RARE,
    Feature,
    describe_features,
    describe_labels,
    vectorized_columns,
)
from credalchain.datasets import files as readers
from credalchain.datasets import load, read_file, read_mulan
from credalchain.datasets.files import COMPRESSED, PARQUET, READING, TEXT, table_ending
from credalchain.datasets.registry import is_dataset_name
from credalchain.model_selection import unwrap
from credalchain.promises.classifier import PromisedClassifier

ROWS_AT_ONCE = 50_000
_CAUTION_ROWS = 8000  # sampled rows by which caution is chosen
_LARGE_BYTES = 512 * 2**20  # of a source that is read in chunks without being asked
_MAX_UNPACKED_FACTOR = 8  # how many times as large a compressed file may become
_MAX_NOTES = 5
_MANY_TAGS = 20


# -- reading -----------------------------------------------------------------------------------


def load_table(
    source: str, labels: Sequence[str] = (), text_columns: Sequence[str] = ()
) -> tuple[pd.DataFrame, list[str]]:
    """Read a table from a file, a folder, a glob, stdin (``-``), embedded:yeast or mulan:NAME.

    Also the names of its labels where the source knows them: the data sets do, and so does an
    ARFF file with ``--labels xml``.
    """
    if is_dataset_name(source):
        data = load(source)
        return data.to_frame(), data.label_names
    if source.lower().endswith(".arff"):
        return _read_arff(Path(source), labels)
    if is_chunked(source) and is_large(source):
        raise ValueError(
            f"{source} is large: fit, predict and evaluate read it in chunks; this needs all rows."
        )
    frames = [frame for _, frame in read_chunks(source, text_columns, rows=None)]
    table = pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0]
    mixed = _mixed_columns(map(_kinds_of, frames)) if len(frames) > 1 else []
    if not set(mixed) <= set(text_columns):
        return load_table(source, text_columns=[*text_columns, *mixed])
    return readers.check_frame(table, "stdin" if source == "-" else source), []


def read_chunks(
    source: str, text_columns: Sequence[str], rows: int | None
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield tables of at most ``rows`` rows, each with a name for messages."""
    as_written = [*text_columns, *map(text.for_spreadsheet, text_columns)]
    if source == "-" and sys.stdin is None:
        raise ValueError("stdin is closed.")
    for path in [sys.stdin.buffer] if source == "-" else table_files(source):
        first = 0
        for frame in readers.iter_frames(path, as_written, rows):
            if not isinstance(path, Path) or table_ending(path) not in PARQUET:
                frame = text.in_table(frame, text.from_spreadsheet)
            for name, column in frame.select_dtypes(
                ["datetime", "datetimetz", "timedelta"]
            ).items():
                frame[name] = column.astype(str).where(column.notna())  # as CSV has them
            yield f"{path}, rows {first} to {first + len(frame) - 1}", frame
            first += len(frame)


def read_rows(
    source: str, text_columns: Sequence[str], what: str = "rows read", total: int | None = None
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the rows of a source, as one table or in chunks that have names."""
    if not (is_chunked(source) or is_large(source)):
        yield "", load_table(source, text_columns=text_columns)[0]
        return
    n_rows = 0
    with Progress(what, total) as progress:
        for name, frame in read_chunks(source, text_columns, ROWS_AT_ONCE):
            yield name, frame
            n_rows += len(frame)
            progress(n_rows)
    if n_rows == 0:
        raise ValueError(f"{source} has no rows.")


def is_chunked(source: str) -> bool:
    """Return whether a source is several files or a compressed one: a folder, a glob, .csv.gz."""
    path = Path(source)
    if path.is_dir() or (not path.exists() and has_magic(source)):
        return True
    return path.is_file() and path.suffix.lower() in COMPRESSED and table_ending(path) in TEXT


def is_large(source: str) -> bool:
    """Return whether a table should be read in chunks."""
    path = Path(source)
    if not is_chunked(source) and not (path.is_file() and table_ending(path) in (*TEXT, *PARQUET)):
        return False
    files = table_files(source)
    is_packed = any(file.suffix.lower() in COMPRESSED for file in files)
    n_bytes = sum(file.stat().st_size for file in files)
    return n_bytes * (_MAX_UNPACKED_FACTOR if is_packed else 1) > _LARGE_BYTES


def is_read_in_chunks(source: str, classifier: Any, whole: str) -> bool:
    """Return whether a source must, or should, be read in chunks to fit a classifier.

    ``whole`` is the option that needs all rows, "" if there is none.
    """
    must, large = is_chunked(source), is_large(source)
    if must and large and whole:
        raise ValueError(f"{whole} is for data that is read whole, and {source} is large.")
    can = getattr(classifier, "can_fit_chunks", False) and not whole
    return (must and (large or can)) or (large and can)


def table_files(source: str) -> list[Path]:
    """Return the files of a folder or glob in the order of their names, or the file itself."""
    path = Path(source)
    if path.is_file():
        return [path]
    if not path.is_dir():
        files = sorted(map(Path, glob(source)), key=_natural_sort_key)
        if not files:
            raise FileNotFoundError(f"there is no file {source}.")
        return files
    inside = map(Path, glob(f"{escape(source)}/**", recursive=True))  # without hidden files
    files = [file for file in inside if file.is_file() and table_ending(file) in (*TEXT, *PARQUET)]
    files = sorted(files, key=_natural_sort_key)
    folders = sorted({file.parent for file in files} - {path})
    if folders:
        raise ValueError(
            f"{source} has tables in folders inside it ({folders[0].name}): say which, as in "
            f"'{path}/*{files[-1].suffix}' or '{path}/*/*{files[-1].suffix}'."
        )
    if not files:
        raise ValueError(f"{source} has no .csv, .tsv or .parquet files.")
    return files


def _natural_sort_key(path: Path) -> list[tuple[int, int, str]]:
    """Sort part.2 before part.10, as Dask names its files."""
    parts = re.split(r"(\d+)", str(path))
    return [(1, int(part), "") if part.isdecimal() else (0, 0, part) for part in parts]


def _read_arff(path: Path, labels: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """Read an ARFF file, and the names of its labels if a file says which they are."""
    if not _has_label_file(labels):
        return read_file(path, []).to_frame(), []
    if labels[0].lower().endswith(".xml"):
        here = Path(labels[0])
        data = read_mulan(path, here if here.is_file() else path.with_name(here.name))
    else:
        data = read_file(path, labels[0])
    return data.to_frame(), data.label_names


def _has_label_file(labels: Sequence[str]) -> bool:
    """Return whether the ARFF file, or an XML file beside it, names the labels."""
    return len(labels) == 1 and (labels[0] in ("xml", "meka") or labels[0].lower().endswith(".xml"))


# -- labels and features ----------------------------------------------------------------------


@dataclass(frozen=True)
class LabelOptions:
    """The options that say which columns of a table are labels, and what the others hold.

    Attributes
    ----------
    labels
        The label columns: names separated by commas, first:N or last:N; for ARFF also xml, the
        name of such a file, or meka. Cells are 0, 1, yes, no, true, false, and empty or ? for
        missing. May be repeated.
    drop
        Columns to leave out.
    keep
        Columns to learn from although they hold identifiers or are constant.
    text
        Columns of free text, to learn from their words.
    tag_separator
        Separator of tags, such as ';', if --labels is one column of tags; each tag becomes a label.
    case_sensitive
        Distinguish tags that differ only in case.
    """

    labels: list[str] = field(default_factory=list)
    drop: str = ""
    keep: str = ""
    text: str = ""
    tag_separator: str = ""
    case_sensitive: bool = False

    def split(
        self, frame: pd.DataFrame, known: Sequence[str] = ()
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the columns to learn from, and those of labels, as they are in the table."""
        names = pick_labels(frame, self.labels, known)
        dropped = pick_columns(frame, self.drop, "--drop")
        return frame.drop(columns=[*names, *dropped]), frame[names]

    def read(self, source: str) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Read the columns and the labels of a table."""
        X, labels = self.split(*load_table(source, self.labels))
        if self.tag_separator:
            if labels.shape[1] != 1:
                shown = shorten_names(list(labels.columns))
                raise ValueError(f"--tag-separator is for one column of tags, got {shown}.")
            tags = labels.iloc[:, 0]
            return X, split_tags(tags, self.tag_separator, case_sensitive=self.case_sensitive)
        if self.case_sensitive:
            raise ValueError("--case-sensitive is for --tag-separator.")
        try:
            return X, readers.read_label_words(labels)
        except ValueError as error:
            if labels.shape[1] == 1 and labels.iloc[:, 0].astype(str).str.contains("[;|,]").any():
                raise ValueError(f"{error} For a column of tags: --tag-separator.") from None
            raise

    def describe(self, X: pd.DataFrame) -> list[Feature]:
        """Describe columns, with what ``--keep`` and ``--text`` say of them."""
        kept, texts = pick_columns(X, self.keep, "--keep"), pick_columns(X, self.text, "--text")
        numbers = [name for name in texts if X[name].dtype.kind in "biuf"]
        if numbers:
            raise ValueError(f"--text: column {numbers[0]!r} holds numbers, not texts.")
        reading = READING.get()
        marks = {"decimal": reading.decimal, "thousands": reading.thousands}
        features = describe_features(X, na=reading.na, **marks)
        features = [replace(f, left_out="") if f.name in {*kept, *texts} else f for f in features]
        plain: dict[str, Any] = {"kind": "text", "note": "", "number_format": None, "absent": ()}
        return [replace(f, **plain) if f.name in texts else f for f in features]


@dataclass(frozen=True)
class LearningOptions(LabelOptions):
    """The same, and what else rows are used for.

    Attributes
    ----------
    scores
        Columns that hold the scores of a model, probabilities or log-odds, for rows it was not
        fitted on: 'p_*' if they are named by label, or names in the order of the labels. No other
        columns are learned from.
    groups
        The column of groups, such as patients, whose rows are kept together; it is not a feature.
        If not given, equal rows with the same labels form a group; none: every row is a group.
    """

    scores: str = ""
    groups: str = ""

    @property
    def whole(self) -> str:
        """Option that needs all rows in memory, "" if there is none."""
        options = {
            "--tag-separator": self.tag_separator,
            "--groups": self.groups,
            "--scores": self.scores,
        }
        return next((name for name, value in options.items() if value), "")

    def features(self, X: pd.DataFrame, Y: pd.DataFrame) -> tuple[pd.DataFrame, list[Feature], Any]:
        """Return the columns to learn from, what they hold, and the groups of rows, if given.

        Identifiers, constant and empty columns are left out, except those that ``--keep`` names.
        Notes about the columns are printed.
        """
        groups: Any = None
        if self.groups == "none" and "none" not in X.columns:
            groups = np.arange(len(X))
        elif self.groups:
            names = pick_columns(X, self.groups, "--groups")
            if len(names) != 1:
                raise ValueError(f"--groups must name one column, got {self.groups!r}.")
            X, groups = X.drop(columns=names), X[names[0]]
        if self.scores:
            return self._pick_scores(X, list(Y.columns)), [], groups
        features = self.describe(X)
        used = [feature for feature in features if not feature.left_out]
        if not used:
            raise ValueError(
                "every column holds identifiers, or the same in all rows, so there is nothing to "
                f"learn from ({shorten_names(list(X.columns))}); --keep NAME takes one all the "
                "same."
            )
        _note_columns_and_labels(features, Y)
        return X[[feature.name for feature in used]], used, groups

    def _pick_scores(self, X: pd.DataFrame, labels: Sequence[str]) -> pd.DataFrame:
        """Return the columns of scores in the order of the labels."""
        for name in ("keep", "text"):
            if getattr(self, name):
                raise ValueError(f"--{name} and --scores both say what to learn from: give one.")
        by_label = "*" in self.scores
        specs = [self.scores.replace("*", label) for label in labels] if by_label else [self.scores]
        names = [name for spec in specs for name in pick_columns(X, spec, "--scores")]
        if len(names) != len(labels) or len(set(names)) < len(names):
            raise ValueError(
                f"--scores {self.scores}: {text.plural(len(labels), 'label')} need as many "
                f"different columns, got {shorten_names(names)}."
            )
        wrong = [name for name in names if X[name].dtype.kind not in "iuf" or X[name].isna().any()]
        if wrong:
            raise ValueError(f"--scores: column {wrong[0]!r} must hold a number in every row.")
        if not by_label:
            pairs = [f"{name} of {label}" for name, label in zip(names, labels, strict=True)]
            note(f"note: scores by position: {shorten_names(pairs)}")
        if X.shape[1] > len(names):
            others = text.plural(X.shape[1] - len(names), "column")
            note(f"note: {others} beside the scores not used")
        return X[names]


def _note_columns_and_labels(features: Sequence[Feature], Y: pd.DataFrame) -> None:
    """Print notes about columns and labels."""
    noted = []
    for feature in features:
        about = feature.note
        if feature.left_out:
            about = f"{feature.left_out}; it is left out (--keep {feature.name!r} takes it)"
        noted += [f"column {feature.name!r}: {about}"] * bool(about)
    labels = describe_labels(Y)
    constant = [label for label in labels if (label.n_yes == 0) != (label.n_no == 0)]
    noted += [f"label {label.name!r}: {label.note}" for label in constant]
    for words in noted[:_MAX_NOTES]:
        note(f"note: {words}")
    rare = [label.name for label in labels if 0 < min(label.n_yes, label.n_no) < RARE]
    if rare and len(Y) >= 10 * RARE:
        note(
            f"note: fewer than {RARE} rows are yes, or no, from which little can be learned: "
            f"{shorten_names(rare)}"
        )
    if len(noted) > _MAX_NOTES:
        note(f"note: and {len(noted) - _MAX_NOTES} more; see credalchain describe")


def split_tags(
    column: pd.Series, separator: str, known: Sequence[str] = (), *, case_sensitive: bool = False
) -> pd.DataFrame:
    """Return a column of 0 and 1 for each tag in a column of tags.

    An empty cell has none of them; the tags of a cell ``?`` are missing. Spellings that differ in
    capitals only are one label, called as in ``known`` or else as most rows have it, unless
    ``case_sensitive``.
    """
    cells = column.fillna("").astype(str).str.strip()
    unknown = cells == "?"
    tags = cells.mask(unknown, "").str.split(separator, regex=False).explode().str.strip()
    tags = tags[tags != ""]
    if tags.empty:
        raise ValueError(f"--tag-separator: column {column.name!r} has no tags.")
    counts = Counter(tags)
    spelled = {name.casefold(): name for name in known}
    label_of = {
        tag: tag if case_sensitive or tag in known else spelled.setdefault(tag.casefold(), tag)
        for tag in sorted(counts, key=lambda tag: (-counts[tag], tag))
    }
    merged = [f"{tag} as {label}" for tag, label in label_of.items() if tag != label]
    if merged:
        hint = "" if known else " (--case-sensitive keeps them apart)"
        note(
            f"note: tags that differ in capitals only are one label: {shorten_names(merged)}{hint}"
        )
    labels = pd.get_dummies(tags.map(label_of), dtype=np.int8).groupby(level=0).max()
    if labels.shape[1] > _MANY_TAGS and labels.sum().median() <= 1:
        n = labels.shape[1]
        note(f"note: most of {n} tags occur once: does {separator!r} stand between tags?")
    labels = labels.reindex(column.index, fill_value=0).astype("Int8")
    labels.loc[unknown] = pd.NA
    return labels


def pick_labels(frame: pd.DataFrame, wanted: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return label columns from ``--labels``: names, ``first:N`` or ``last:N``."""
    if known and (not wanted or _has_label_file(wanted)):
        return list(known)
    if not any(wanted):
        raise ValueError("say which columns are labels: --labels a,b,c or --labels last:6.")
    columns, names = list(frame.columns), []
    for spec in wanted:
        side, _, number = spec.partition(":")
        if spec in columns or side not in ("first", "last") or not number:
            names += pick_columns(frame, spec, "--labels")
            continue
        if not number.isdigit() or not 0 < int(number) <= len(columns):
            raise ValueError(
                f"--labels {spec}: the number must be between 1 and {len(columns)}, the columns "
                "there are."
            )
        names += columns[: int(number)] if side == "first" else columns[-int(number) :]
    if len(set(names)) < len(names):
        raise ValueError(f"--labels names a column twice: {shorten_names(names)}.")
    if len(names) == len(columns):
        raise ValueError("--labels takes all columns, so there is nothing to predict from.")
    return names


def pick_columns(frame: pd.DataFrame, spec: str, option: str) -> list[str]:
    """Return columns from names separated by commas."""
    return pick_names(list(frame.columns), spec, option)


def pick_names(known: Sequence[str], spec: str, option: str, noun: str = "column") -> list[str]:
    """Return some of the known names, from names separated by commas; none of an empty text."""
    if spec in known:  # a name may hold commas
        return [spec]
    names = [name.strip() for name in spec.split(",") if name.strip()]
    if spec and not names:
        raise ValueError(f"{option} must be names separated by commas, got {spec!r}.")
    missing = [name for name in names if name not in known]
    if missing:
        raise ValueError(
            f"{option}: there is no {noun} {missing[0]!r}{_did_you_mean(missing[0], known)}; the "
            f"{noun}s are {shorten_names(known)}."
        )
    return names


def _did_you_mean(name: str, columns: Sequence[str]) -> str:
    lower = {column.lower(): column for column in columns}
    near = difflib.get_close_matches(name.lower(), list(lower), n=1)
    return f" (did you mean {lower[near[0]]!r}?)" if near else ""


def shorten_names(names: Sequence[str], most: int = 12) -> str:
    """Return the first names in words, for a message."""
    shown = ", ".join(map(text.visible, names[:most]))
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} in all)"


class LabelledChunks:
    """Features and labels of a source, in chunks; re-iterable.

    Columns that hold numbers in one chunk and texts in another are texts (``text_columns``).
    """

    def __init__(self, source: str, table: LearningOptions) -> None:
        self.source, self.table = source, table
        self.text_columns: list[str] = []
        self.left_out: list[str] = []
        self.n_rows = self.n_passes = 0
        self.in_parquet = any(table_ending(file) in PARQUET for file in table_files(source))

    def sample(self, size: int) -> tuple[pd.DataFrame, pd.DataFrame, list[Feature]]:
        """Return some rows, chosen by a hash of their numbers, and what their columns hold.

        All rows are counted, as ``n_rows``. Columns from which these rows show nothing can be
        learned are left out from now on.
        """
        X, Y, mixed = self._sample(size)
        if mixed:  # texts that look like numbers in some chunks
            note(
                f"note: {shorten_names(mixed)}: numbers in some chunks and text in others, so text"
            )
            self.text_columns += mixed
            X, Y, _ = self._sample(size)
        usable, features, _ = self.table.features(X, Y)
        self.left_out = [name for name in X.columns if name not in usable.columns]
        return usable, Y, features

    def _sample(self, size: int) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
        """Return sampled rows, and columns that do not hold the same in all chunks."""
        kept: Any = None
        kinds: list[dict[str, str]] = []
        for columns, labels, name in self():
            hashes = row_hashes(self.n_rows - len(labels), len(labels))
            kinds.append(_kinds_of(columns))
            if self.in_parquet and _mixed_columns(kinds):
                column = _mixed_columns(kinds)[0]
                raise ValueError(f"{name}: column {column!r} has another type than before.")
            if kept is None:
                X, Y, kept = columns, labels, hashes
            elif list(columns.columns) != list(X.columns):
                seen, before = (shorten_names(list(some.columns)) for some in (columns, X))
                raise ValueError(
                    f"{name}: it has the columns {seen}, and those before have {before}."
                )
            else:
                X, Y = pd.concat([X, columns]), pd.concat([Y, labels])
                kept = np.concatenate([kept, hashes])
            rows = smallest(kept, size)
            X, Y, kept = X.iloc[rows], Y.iloc[rows], kept[rows]
        return X, Y, _mixed_columns(kinds)

    def __call__(self) -> Iterator[tuple[pd.DataFrame, pd.DataFrame, str]]:
        self.n_passes += 1
        what, total = f"pass {self.n_passes}, rows read", self.n_rows or None
        self.n_rows = 0
        for name, frame in read_rows(self.source, self.text_columns, what, total):
            frame.index = np.arange(self.n_rows, self.n_rows + len(frame))
            self.n_rows += len(frame)
            with naming_chunk_in_errors(name):
                X, labels = self.table.split(frame)
                Y = readers.read_label_words(labels)
                for column in X.select_dtypes(np.floating):
                    if np.isinf(X[column]).any():
                        raise ValueError(f"Input X contains infinity in column {column!r}.")
            yield X.drop(columns=self.left_out), Y, name


def evenly_spaced_rows(n_rows: int) -> slice:
    """Return the sampled rows by which caution is chosen."""
    return slice(None, None, -(-n_rows // _CAUTION_ROWS) or 1)


def fit_chunks(
    model: Any, chunks: Callable[[], Iterator[Any]], X: Any, Y: Any, size: int | None = None
) -> Any:
    """Fit a model to chunks, and what stands before its classifier to some of their rows."""
    if not hasattr(model, "steps"):
        return model.fit_chunks(chunks, sample_size=size)
    before = model[:-1].fit(X, Y)

    def prepared() -> Iterator[tuple[Any, Any, str]]:
        for features, labels, name in chunks():
            with naming_chunk_in_errors(name):
                table = before.transform(features)
            yield table, labels, name

    model.steps[-1][1].fit_chunks(prepared, sample_size=size)
    return model


def _kinds_of(frame: pd.DataFrame) -> dict[str, str]:
    """Return "string", "boolean" or "numbers" for each column that has values."""
    found = {name: pd.api.types.infer_dtype(frame[name].dropna()) for name in frame.columns}
    return {
        name: kind if kind in ("string", "boolean") else "numbers"
        for name, kind in found.items()
        if kind != "empty"
    }


def _mixed_columns(kinds: Iterable[dict[str, str]]) -> list[str]:
    """Return the columns that do not hold the same in all chunks."""
    seen: dict[str, set[str]] = {}
    for name, kind in (item for one in kinds for item in one.items()):
        seen.setdefault(name, set()).add(kind)
    return [name for name, found in seen.items() if len(found) > 1]


# -- new rows for a model ----------------------------------------------------------------------


def inner_classifiers(classifier: Any) -> list[Any]:
    """Return the classifiers that were fitted, below promises, joint decisions and pipelines."""
    classifier, _ = unwrap(classifier)
    if hasattr(classifier, "model_"):
        return [classifier]
    below = getattr(classifier, "estimators", None) or [classifier.estimator_]
    return [inner for estimator in below for inner in inner_classifiers(estimator)]


def read_for_model(model: Any, source: str) -> tuple[pd.DataFrame, Any]:
    """Read a table, and choose what a model reads of it."""
    frame, _ = load_table(source, text_columns=text_columns(model))
    return frame, features_for(model, frame, source)


def features_for(model: Any, frame: pd.DataFrame, source: str) -> Any:
    """Return the columns that a model was fitted on; by position if it knows no names."""
    if not hasattr(model, "feature_names_in_"):
        return frame.set_axis(range(frame.shape[1]), axis=1)
    names = model.feature_names_in_.tolist()
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise ValueError(
            f"{source} lacks {len(missing)} of the model's {text.plural(len(names), 'column')}: "
            f"{shorten_names(missing)}{_did_you_mean(missing[0], list(frame.columns))}."
        )
    return frame[names]


def text_columns(model: Any) -> list[str]:
    """Columns that held words in fit: read as text, even if this file has only numbers there."""
    if not hasattr(model, "feature_names_in_"):
        return []
    pipeline = model.estimator_ if isinstance(model, PromisedClassifier) else model
    inner = inner_classifiers(model)[0]
    names = getattr(inner, "feature_names_in_", range(inner.n_features_in_))
    steps = [step for _, step in getattr(pipeline, "steps", [])[:-1]]
    return [*vectorized_columns(steps), *(str(names[i]) for i in inner.model_.text_categories())]


# -- writing -----------------------------------------------------------------------------------


def check_output_path(out: str, *read: str) -> None:
    """Raise a ValueError if a command would overwrite its input, or read its output next time."""
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


def write_table(frame: pd.DataFrame, out: str) -> None:
    """Write to a file, whole or not at all, or to stdout (``-``) as CSV.

    In CSV and TSV an apostrophe stands before text that a spreadsheet would run as a formula;
    ``load_table`` takes it away.
    """
    with table_writer(out) as append:
        append(frame)


@contextlib.contextmanager
def table_writer(out: str) -> Iterator[Any]:
    """Return a function that appends data frames to what ``write_table`` writes."""
    ending = ".csv" if out == "-" else Path(out).suffix.lower()
    if out == "-" and sys.stdout is None:
        raise ValueError("stdout is closed.")
    if ending not in (".csv", ".tsv", *PARQUET):
        raise ValueError(f"--out {out}: the name must end in .csv, .tsv or .parquet, or be -.")
    separator, header, writer = "\t" if ending == ".tsv" else ",", 0, None

    def append_text(frame: pd.DataFrame) -> None:
        nonlocal header
        shown = text.in_table(frame, text.visible) if out == "-" and file.isatty() else frame
        content = text.to_csv(shown, separator)[header:]
        file.write(content if out == "-" else content.encode())
        header = len(text.to_csv(shown[:0], separator))  # characters that others do not repeat

    def append_parquet(frame: pd.DataFrame) -> None:
        nonlocal writer
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = None if writer is None else writer.schema
        try:
            table = pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
        except ValueError as error:  # a column of numbers that holds texts in this chunk
            raise ValueError(f"--keep: a column has another type here ({error}).") from error
        writer = writer or stack.enter_context(pq.ParquetWriter(file, table.schema))
        writer.write_table(table)

    with contextlib.ExitStack() as stack:
        file: Any = sys.stdout if out == "-" else stack.enter_context(atomic_write(Path(out)))
        yield append_parquet if ending in PARQUET else append_text
        if out == "-":
            file.flush()
