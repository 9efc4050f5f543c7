"""Tables that are read and written in chunks: files larger than memory, folders, globs."""

import bz2
import contextlib
import glob
import gzip
import io
import lzma
import re
import sys
import warnings
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from credalchain._utils.files import replacing
from credalchain._utils.progress import Progress
from credalchain._utils.text import for_spreadsheet, from_spreadsheet, in_table, to_csv
from credalchain.chunks.columns import ColumnConflictError
from credalchain.chunks.sampling import row_hashes
from credalchain.chunks.sources import errors_name_chunk
from credalchain.cli.console import note
from credalchain.cli.tables import pick_columns, pick_labels, shorten_names, usable_features
from credalchain.datasets.dialect import Dialect, encoding_of, find_dialect
from credalchain.datasets.label_words import read_label_words

ROWS_AT_ONCE = 50_000
_ROWS_TO_LOOK_AT = 8000  # to choose columns and caution by
_TEXT = (".csv", ".tsv")
_PARQUET = (".parquet", ".pq")
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_HEAD_BYTES = 2**18  # bytes that tell the dialect of a file
_SHOWN_NOTES: set[str] = set()
_LARGE_BYTES = 512 * 2**20  # bytes of a file that is read in chunks without being asked
_UNREADABLE = (
    UnicodeDecodeError,
    pd.errors.ParserError,
    EOFError,
    OSError,
    lzma.LZMAError,
    zlib.error,
)
_MAX_UNPACKED_FACTOR = 8  # how many times as large a compressed file may become


def is_chunked(source: str) -> bool:
    """Whether a source can only be read in chunks: a folder, a glob, a compressed file."""
    path = Path(source)
    if path.is_dir() or (not path.exists() and glob.has_magic(source)):
        return True
    return path.is_file() and path.suffix.lower() in _COMPRESSED and _ending(path) in _TEXT


def fits_memory(source: str) -> bool:
    """Whether a folder, a glob or a compressed file is small enough to be read whole."""
    files = table_files(source)
    packed = (
        _MAX_UNPACKED_FACTOR if any(file.suffix.lower() in _COMPRESSED for file in files) else 1
    )
    return packed * sum(file.stat().st_size for file in files) <= _LARGE_BYTES


def read_whole(source: str, text_columns: Sequence[str] = ()) -> pd.DataFrame:
    """All chunks of a source as one table, if it is small."""
    if not fits_memory(source):
        raise ValueError(
            f"{source} is large: fit, predict and evaluate read it in chunks; this needs all rows."
        )
    frames = [frame for _, frame in read_chunks(source, text_columns)]
    table = pd.concat(frames, ignore_index=True)
    mixed = [name for name in table.columns if _is_mixed(table[name])]
    if mixed and not set(mixed) <= set(text_columns):
        return read_whole(source, [*text_columns, *mixed])
    return table


def is_large(source: str) -> bool:
    """Whether a table had better be read in chunks, though it could be read whole."""
    path = Path(source)
    known = path.is_file() and path.suffix.lower() in (*_TEXT, *_PARQUET)
    return known and path.stat().st_size > _LARGE_BYTES


def reads_chunked(source: str, classifier: Any, *, needs_all: bool) -> bool:
    """Whether a classifier is to learn from a source in chunks: if it must, or had better."""
    can = classifier.can_fit_chunks if hasattr(classifier, "can_fit_chunks") else False
    if is_chunked(source):
        return not (fits_memory(source) and (needs_all or not can))
    return is_large(source) and can and not needs_all


def table_files(source: str) -> list[Path]:
    """The files of a folder or glob in the order of their names, or the file itself."""
    path = Path(source)
    if path.is_dir():
        known = [file for file in path.rglob("*") if _ending(file) in (*_TEXT, *_PARQUET)]
        files = sorted((file for file in known if _is_shown(file, path)), key=_natural)
        inside = sorted({file.parent for file in files} - {path})
        if inside:
            raise ValueError(
                f"{source} has tables in folders inside it ({inside[0].name}): say which, as in "
                f"'{path}/*{files[-1].suffix}' or '{path}/*/*{files[-1].suffix}'."
            )
        if not files:
            raise ValueError(f"{source} has no .csv, .tsv or .parquet files.")
        return files
    if path.is_file():
        return [path]
    files = sorted(map(Path, glob.glob(source)), key=_natural)
    if not files:
        raise FileNotFoundError(f"there is no file {source}.")
    return files


def _is_shown(file: Path, folder: Path) -> bool:
    """A file that is not hidden, nor in a hidden folder."""
    names = file.relative_to(folder).parts
    return file.is_file() and not any(name.startswith(".") for name in names)


def _natural(path: Path) -> list[tuple[int, int, str]]:
    """part.2 before part.10, as Dask has its files."""
    parts = re.split(r"(\d+)", str(path))
    return [(1, int(part), "") if part.isdecimal() else (0, 0, part) for part in parts]


def _ending(path: Path) -> str:
    """The ending of a name, without that of a compression."""
    plain = path.with_suffix("") if path.suffix.lower() in _COMPRESSED else path
    return plain.suffix.lower()


def read_chunks(
    source: str, text_columns: Sequence[str] = ()
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Tables of at most ``ROWS_AT_ONCE`` rows, each with a name for messages."""
    for path in table_files(source):
        try:
            first = 0
            for frame in _chunks_of(path, text_columns):
                plain = frame.set_axis([str(name) for name in frame.columns], axis=1)
                yield f"{path}, rows {first} to {first + len(frame) - 1}", plain
                first += len(frame)
        except pd.errors.EmptyDataError:
            raise ValueError(f"{path} is empty.") from None
        except _UNREADABLE as error:
            first_line = (str(error).splitlines() or [type(error).__name__])[0]
            raise ValueError(f"{path} cannot be read as a table: {first_line}") from error


def _chunks_of(path: Path, text_columns: Sequence[str]) -> Iterator[pd.DataFrame]:
    ending = _ending(path)
    if ending in _PARQUET:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            file = pq.ParquetFile(path)
        except pa.ArrowException as error:
            raise ValueError(f"{path} cannot be read as a table: {error}") from error
        for batch in file.iter_batches(batch_size=ROWS_AT_ONCE):
            yield batch.to_pandas()
        return
    if ending not in _TEXT:
        raise ValueError(f"{path}: the name must end in .csv, .tsv or .parquet.")
    as_written = [*text_columns, *map(for_spreadsheet, text_columns)]
    encoding, dialect = _dialect_of(path, "\t" if ending == ".tsv" else ",")
    with warnings.catch_warnings(), _open(path) as file:
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            chunks = pd.read_csv(
                file,
                sep=dialect.separator,
                decimal=dialect.decimal,
                index_col=False,
                encoding=encoding,
                chunksize=ROWS_AT_ONCE,
                dtype=dict.fromkeys(as_written, str),
            )
            with chunks:
                for chunk in chunks:
                    yield in_table(chunk.reset_index(drop=True), from_spreadsheet)
        except pd.errors.ParserWarning:
            raise ValueError(f"{path}: its rows have more cells than its header") from None


def _open(path: Path) -> Any:
    """The bytes of a file, which may be compressed."""
    suffix = path.suffix.lower()
    if suffix == ".zst":
        import pyarrow as pa

        return io.BufferedReader(pa.input_stream(str(path), compression="zstd"))
    opener: Any = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}.get(suffix, open)
    return opener(path, "rb")


def _dialect_of(path: Path, usual: str) -> tuple[str, Dialect]:
    """How a text file is coded and what separates its cells, by its first lines; told once."""
    with warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always")
        with _open(path) as file:
            head = file.read(_HEAD_BYTES)
        lines = head if len(head) < _HEAD_BYTES else head[: head.rfind(b"\n") + 1] or head
        encoding = encoding_of(lines, str(path))
        text = lines.decode(encoding, errors="ignore")
        try:
            dialect = find_dialect(text, usual, str(path))
        except ValueError as error:
            raise ValueError(f"{path} cannot be read as a table: {error}.") from None
    for warning in caught_warnings:
        if str(warning.message) not in _SHOWN_NOTES:
            _SHOWN_NOTES.add(str(warning.message))
            note(f"note: {warning.message}")
    return encoding, dialect


class LabelledChunks:
    """Features and labels of a source, in chunks; it can be gone through several times.

    Columns that hold numbers in one chunk and texts in another are texts (``text_columns``).
    """

    def __init__(self, source: str, labels: Sequence[str], ignore: str) -> None:
        self.source, self.labels, self.ignore = source, labels, ignore
        self.text_columns: list[str] = []
        self.left_out: list[str] = []
        self.n_rows = 0

    def sample(self, use: str) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Some rows, chosen by a hash of their numbers; all are counted, as ``n_rows``.

        Columns that these rows show to be unusable are left out from now on.
        """
        X, Y = self._sample(_ROWS_TO_LOOK_AT)
        in_parquet = any(_ending(file) in _PARQUET for file in table_files(self.source))
        mixed = [] if in_parquet else [name for name in X.columns if _is_mixed(X[name])]
        if mixed:  # texts that look like numbers in some chunks
            note(
                f"note: {shorten_names(mixed)}: numbers in some chunks and text in others, so text"
            )
            self.text_columns += mixed
            X, Y = self._sample(_ROWS_TO_LOOK_AT)
        usable = usable_features(X, Y, use)
        self.left_out = [name for name in X.columns if name not in usable.columns]
        return usable, Y

    def _sample(self, size: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        X: list[Any] = []
        Y: list[Any] = []
        hashes: list[Any] = []
        limit, n_kept = np.uint64(2**64 - 1), 0
        in_parquet = any(_ending(file) in _PARQUET for file in table_files(self.source))
        for columns, labels, name in self():
            if X and list(columns.columns) != list(X[0].columns):
                seen, before = (shorten_names(list(frame.columns)) for frame in (columns, X[0]))
                raise ValueError(
                    f"{name}: it has the columns {seen}, and those before have {before}."
                )
            if X and in_parquet:
                for column in _other_types(columns, X[0]):
                    raise ValueError(f"{name}: column {column!r} has another type than before.")
            chunk_hashes = row_hashes(self.n_rows - len(labels), len(labels))
            chosen = np.flatnonzero(chunk_hashes <= limit)
            X.append(columns.iloc[chosen])
            Y.append(labels.iloc[chosen])
            hashes.append(chunk_hashes[chosen])
            n_kept += len(chosen)
            if n_kept > 2 * size:  # the limit comes down, so that memory stays as it is
                limit = np.uint64(np.partition(np.concatenate(hashes), size - 1)[size - 1])
                X, Y, hashes = (
                    [part[keep <= limit] for part, keep in zip(parts, hashes, strict=True)]
                    for parts in (X, Y, hashes)
                )
                n_kept = size
        if self.n_rows == 0:
            raise ValueError(f"{self.source} has no rows.")
        rows = np.sort(np.argsort(np.concatenate(hashes), kind="stable")[:size])
        return pd.concat(X).iloc[rows], pd.concat(Y).iloc[rows]

    def fit(self, classifier: Any, chunks: Any = None, sample_size: int | None = None) -> Any:
        """``fit_chunks`` on all rows, or on ``chunks`` made of these chunks."""
        while True:
            try:
                return classifier.fit_chunks(
                    self if chunks is None else chunks, sample_size=sample_size
                )
            except ColumnConflictError as conflict:  # texts that look like numbers in some chunks
                in_parquet = any(_ending(file) in _PARQUET for file in table_files(self.source))
                if in_parquet or conflict.column in self.text_columns:
                    raise
                note(f"note: {conflict} It is taken as text, and read again.")
                self.text_columns.append(conflict.column)

    def __call__(self) -> Iterator[tuple[pd.DataFrame, pd.DataFrame, str]]:
        self.n_rows = 0
        for name, frame in with_row_progress(read_chunks(self.source, self.text_columns)):
            with errors_name_chunk(name):
                names = pick_labels(frame, self.labels, [])
                ignored = pick_columns(frame, self.ignore, "--ignore")
                labels = pd.DataFrame(read_label_words(frame[names]))
                _refuse_infinity(frame)
            self.n_rows += len(frame)
            yield frame.drop(columns=[*names, *ignored, *self.left_out]), labels, name


def _other_types(frame: pd.DataFrame, before: pd.DataFrame) -> list[str]:
    """Columns that hold texts where others hold numbers; columns without values may be either."""
    return [
        name
        for name in frame.columns
        if frame[name].notna().any()
        and before[name].notna().any()
        and (frame[name].dtype.kind in "iufb") != (before[name].dtype.kind in "iufb")
    ]


def _refuse_infinity(frame: pd.DataFrame) -> None:
    for name in frame.columns:
        if frame[name].dtype.kind == "f" and np.isinf(frame[name]).any():
            raise ValueError(f"Input X contains infinity in column {name!r}.")


def _is_mixed(column: pd.Series) -> bool:
    """Whether it holds texts and something else besides."""
    if column.dtype != object:
        return False
    is_text = column.dropna().map(lambda value: isinstance(value, str))
    return bool(is_text.any() and not is_text.all())


def with_row_progress(
    chunks: Iterable[tuple[str, pd.DataFrame]],
) -> Iterator[tuple[str, pd.DataFrame]]:
    """The same chunks; how many rows they have is shown."""
    n_rows = 0
    with Progress("rows read") as progress:
        for name, frame in chunks:
            yield name, frame
            n_rows += len(frame)
            progress(n_rows)


@contextlib.contextmanager
def table_writer(out: str) -> Iterator[Any]:
    """A function that appends a data frame to a file; it is there whole, or not at all.

    ``-`` is stdout.
    """
    if out == "-":
        yield _CsvAppender(sys.stdout.buffer, ",")
        return
    path = Path(out)
    ending = path.suffix.lower()
    if ending not in (*_TEXT, *_PARQUET):
        raise ValueError(f"--out {out}: the name must end in .csv, .tsv or .parquet.")
    with replacing(path) as file:
        if ending in _TEXT:
            yield _CsvAppender(file, "\t" if ending == ".tsv" else ",")
            return
        appender = _ParquetAppender(file)
        try:
            yield appender
        except BaseException:
            with contextlib.suppress(Exception):  # what failed is told, not what follows from it
                appender.close()
            raise
        appender.close()


class _CsvAppender:
    def __init__(self, file: Any, separator: str) -> None:
        self.file, self.separator, self.has_header = file, separator, False

    def __call__(self, frame: pd.DataFrame) -> None:
        text = to_csv(frame, self.separator)
        if self.has_header:
            text = text[len(to_csv(frame[:0], self.separator)) :]
        self.file.write(text.encode())
        self.has_header = True


class _ParquetAppender:
    def __init__(self, file: Any) -> None:
        self.file = file
        self.writer: Any = None

    def __call__(self, frame: pd.DataFrame) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self.writer is None:
            table = pa.Table.from_pandas(frame, preserve_index=False)
            self.writer = pq.ParquetWriter(self.file, table.schema)
        else:
            table = pa.Table.from_pandas(frame, schema=self.writer.schema, preserve_index=False)
        self.writer.write_table(table)

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
