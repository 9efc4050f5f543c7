"""Readers of ARFF (as of MULAN and MEKA), of CSV in its variants, and of Parquet.

ARFF is parsed by liac-arff, XML by the standard library (which reads no external entities).
Both come with the extra ``data``.
"""

import bz2
import codecs
import contextlib
import csv
import gzip
import io
import lzma
import os
import re
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from credalchain._utils.text import plural, table_size
from credalchain._utils.validation import import_extra
from credalchain.labels import LABEL_WORDS, MISSING, as_labels

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class MultilabelDataset:
    """Data set with features, labels and their names.

    Parameters
    ----------
    name : str
        Name of the data set.
    X : pandas data frame, or scipy CSR array
        Features. Nominal attributes are categorical columns; sparse data of numbers and 0/1 is
        CSR.
    labels : ndarray of int8, shape (n_samples, n_labels)
        Labels 0, 1, or -1 for missing; columns in the order of the file.
    feature_names, label_names : list of str
        Names of the columns.
    description, source, citation : str, default=""
        Source of the data, and what to cite.
    groups : pandas series, default=None
        Group of each row, if rows depend on each other.

    Attributes
    ----------
    Y : pandas data frame
        Labels with their names, for ``fit``.
    cardinality : float
        Mean number of labels of a row.
    density : float
        Mean share of the labels that a row has.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from credalchain.datasets import MultilabelDataset
    >>> X, labels = pd.DataFrame({"tempo": [90.0, 140.0]}), np.array([[1, 0], [1, 1]], np.int8)
    >>> data = MultilabelDataset("songs", X, labels, ["tempo"], ["pop", "loud"])
    >>> data.to_frame()
       tempo  pop  loud
    0   90.0    1     0
    1  140.0    1     1
    >>> data.cardinality
    1.5
    """

    name: str
    X: Any
    labels: NDArray[np.int8]
    feature_names: list[str]
    label_names: list[str]
    description: str = ""
    source: str = ""
    citation: str = ""
    groups: Any = None

    @property
    def Y(self) -> "pd.DataFrame":
        """Labels with their names, as a pandas data frame."""
        import pandas as pd

        return pd.DataFrame(self.labels, columns=self.label_names)

    @property
    def cardinality(self) -> float:
        """Mean number of labels of a row."""
        return float((self.labels == 1).sum(axis=1).mean())

    @property
    def density(self) -> float:
        """Mean share of the labels that a row has."""
        return self.cardinality / len(self.label_names)

    def to_frame(self) -> "pd.DataFrame":
        """Return features and labels in one pandas data frame.

        Sparse columns become dense ones: boolean where they hold 0 and 1 only.

        Returns
        -------
        DataFrame
            Features, then labels; missing labels are ``pd.NA``.
        """
        import pandas as pd

        X = self.X
        if sparse.issparse(X):
            X = pd.DataFrame(X.toarray(), columns=self.feature_names)
            X = X.astype(dict.fromkeys(X.columns[X.isin([0, 1]).all()], bool))
        elif not hasattr(X, "columns"):
            X = pd.DataFrame(X, columns=self.feature_names)
        Y = self.Y.astype("Int8")
        both = [X.reset_index(drop=True), Y.mask(self.labels == MISSING)]
        frame: pd.DataFrame = pd.concat(both, axis=1)
        return frame

    def __repr__(self) -> str:
        (n, p), m = self.X.shape, self.labels.shape[1]
        return f"MultilabelDataset({self.name!r}: {table_size(n, p, m)})"


PathLike = str | os.PathLike[str]
TEXT, PARQUET = (".csv", ".tsv"), (".parquet", ".pq")
COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_HEAD_BYTES = 2**18  # that tell the dialect of a text that is read in chunks
_SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
_UNREADABLE = (ValueError, NotImplementedError, EOFError, OSError, lzma.LZMAError, zlib.error)
_LINES, _TITLES = 50, 5  # that tell the dialect, and that may stand above the data
_MARKS = ((b"\xff\xfe\x00\x00", "utf-32"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_NUMERIC = "+-0123456789"  # how numbers begin
_DECIMAL = re.compile(r"[-+]?\d+([.,])\d+")

_DATA = re.compile(r" *@data", re.IGNORECASE)  # as liac-arff recognizes it
_ATTRIBUTE = re.compile(r"\s*@attribute", re.IGNORECASE)
_DECLARATION = re.compile(
    r"""\s*@attribute[ \t]+
    (?: (?P<quote>["'])(?P<quoted>(?:\\.|(?!(?P=quote))[^\\])*)(?P=quote)
      | (?!["'])(?P<bare>(?:\\["'\\%]|[^\x00-\x20{},%])++)
    )
    [ \t]+(?P<type>.+)""",
    re.IGNORECASE | re.VERBOSE,
)
_ESCAPE = re.compile(r"""\\(["'\\%tnr])""")
_NUMBERS = ("NUMERIC", "REAL", "INTEGER")
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r"}  # any other character stands for itself


def read_mulan(arff: PathLike, xml: PathLike) -> MultilabelDataset:
    r"""Read a data set in the format of MULAN: an ARFF file, and an XML file naming its labels.

    The XML only says which attributes are labels; their names and order are those of the ARFF
    file. In the XML a label is named plainly or with the escapes of ARFF, as in ``m\'usica``.

    Parameters
    ----------
    arff : str or Path
        Features and labels.
    xml : str or Path
        Names of the labels.

    Returns
    -------
    MultilabelDataset
        Features and labels.

    Raises
    ------
    ValueError
        If a file is not in this format.
    FileNotFoundError
        If there is no such file.

    See Also
    --------
    read_file : Read a file of any of these formats.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from credalchain.datasets import read_mulan
    >>> with TemporaryDirectory() as folder:
    ...     arff, xml = Path(folder, "songs.arff"), Path(folder, "songs.xml")
    ...     _ = arff.write_text('''
    ... @relation songs
    ... @attribute tempo numeric
    ... @attribute pop {0, 1}
    ... @data
    ... 90, 1
    ... 140, 0
    ... ''')
    ...     _ = xml.write_text('<labels><label name="pop"></label></labels>')
    ...     read_mulan(arff, xml)
    MultilabelDataset('songs': 2 rows, 1 feature, 1 label)
    """
    content = _parse(Path(arff))
    names = {name for name, _ in content["attributes"]}
    path, labels = _existing(xml), []
    try:
        nodes = list(ElementTree.parse(path).getroot().iter())
    except ElementTree.ParseError as error:
        raise ValueError(f"{path} is not an XML file of labels: {error}.") from None
    named = [node.get("name") for node in nodes if node.tag.split("}")[-1] == "label"]
    if not named or None in named:
        raise ValueError(f"{path} must name the labels, as <label name=...>, got none.")
    for label in map(str, named):  # literally, or with escapes resolved
        spellings = (label, _unescape_bare(label), _unescape(label))
        labels.append(next((name for name in spellings if name in names), spellings[-1]))
    return _as_dataset(Path(arff), content, labels)


def read_meka(arff: PathLike) -> MultilabelDataset:
    """Read a data set in the format of MEKA, whose relation name holds ``-C n``.

    The first n attributes are labels, or the last -n if n is negative.

    Parameters
    ----------
    arff : str or Path
        The file.

    Returns
    -------
    MultilabelDataset
        Features and labels.

    Raises
    ------
    ValueError
        If a file is not in this format.
    FileNotFoundError
        If there is no such file.

    See Also
    --------
    read_file : Read a file of any of these formats.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from credalchain.datasets import read_meka
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "songs.arff")
    ...     _ = file.write_text('''
    ... @relation 'songs: -C 1'
    ... @attribute pop {0, 1}
    ... @attribute tempo numeric
    ... @data
    ... 1, 90
    ... 0, 140
    ... ''')
    ...     read_meka(file).label_names
    ['pop']
    """
    content = _parse(Path(arff))
    relation = content["relation"]
    options = relation.partition(":")[2] or relation  # "name: -C 3", and the name may be anything
    match = re.search(r"(?:^|\s)-[Cc]\s*(-?\d+)", options)
    if match is None:
        raise ValueError(
            f"{arff} is not in MEKA's format: there is no -C in its relation, "
            f"{content['relation']!r}."
        )
    n = int(match[1])
    names = [name for name, _ in content["attributes"]]
    if not 0 < abs(n) < len(names):
        raise ValueError(f"{arff} has -C {n}, but {len(names)} attributes.")
    return _as_dataset(Path(arff), content, names[:n] if n > 0 else names[n:])


def read_arff(arff: PathLike, labels: Sequence[str]) -> MultilabelDataset:
    """Read an ARFF file, dense or sparse.

    Parameters
    ----------
    arff : str or Path
        The file.
    labels : sequence of str
        Names of the attributes that are labels.

    Returns
    -------
    MultilabelDataset
        Features and labels.

    Raises
    ------
    ValueError
        If the file is not valid ARFF, or if one of ``labels`` is not an attribute or not binary.

    See Also
    --------
    read_file : Read a file of any of these formats.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from credalchain.datasets import read_arff
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "songs.arff")
    ...     _ = file.write_text('''
    ... @relation songs
    ... @attribute tempo numeric
    ... @attribute pop {0, 1}
    ... @data
    ... 90, 1
    ... 140, 0
    ... ''')
    ...     read_arff(file, labels=["pop"])
    MultilabelDataset('songs': 2 rows, 1 feature, 1 label)
    """
    return _as_dataset(Path(arff), _parse(Path(arff)), labels)


def read_table(path: PathLike, labels: Sequence[str]) -> MultilabelDataset:
    """Read a CSV, TSV or Parquet file.

    Parameters
    ----------
    path : str or Path
        The file.
    labels : sequence of str
        Names of the columns that are labels.

    Returns
    -------
    MultilabelDataset
        Features and labels.

    See Also
    --------
    read_file : Read a file of any of these formats.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from credalchain.datasets import read_table
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "songs.csv")
    ...     _ = file.write_text('''tempo,pop,loud
    ... 90,1,
    ... 140,1,1
    ... ''')
    ...     read_table(file, labels=["pop", "loud"]).labels
    array([[ 1, -1],
           [ 1,  1]], dtype=int8)
    """
    frame = read_frame(path)
    _check_labels(labels, list(frame.columns), path)
    features = [name for name in frame.columns if name not in set(labels)]
    return MultilabelDataset(
        Path(path).stem,
        frame[features],
        as_labels(read_label_words(frame[list(labels)])),
        features,
        list(labels),
        source=str(path),
    )


def read_file(path: PathLike, labels: str | Sequence[str]) -> MultilabelDataset:
    """Read a file of any of the formats here, by the ending of its name.

    Parameters
    ----------
    path : str or Path
        A CSV, TSV, Parquet or ARFF file.
    labels : sequence of str, "xml" or "meka"
        Names of the columns that are labels. For ARFF also "xml" (MULAN's file beside it) or "meka"
        (the relation name says which).

    Returns
    -------
    MultilabelDataset
        Features and labels.

    Raises
    ------
    ValueError
        If the ending of the name is unknown, or the labels cannot be read.

    See Also
    --------
    load : Load a data set by its name.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from credalchain.datasets import read_file
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "songs.csv")
    ...     _ = file.write_text('''tempo,pop,loud
    ... 90,1,0
    ... 140,1,1
    ... ''')
    ...     read_file(file, labels=["pop", "loud"])
    MultilabelDataset('songs': 2 rows, 1 feature, 2 labels)
    """
    path = Path(path)
    is_arff = path.suffix.lower() == ".arff"
    if is_arff and labels == "xml":
        return read_mulan(path, path.with_suffix(".xml"))
    if is_arff and labels == "meka":
        return read_meka(path)
    if isinstance(labels, str):
        raise ValueError(
            f"labels must be a list of names, or 'xml' or 'meka' for an ARFF file, got {labels!r}."
        )
    return read_arff(path, labels) if is_arff else read_table(path, labels)


# -- text and Parquet ----------------------------------------------------------------------


def read_frame(path: PathLike) -> Any:
    """Read a CSV, TSV or Parquet file as a data frame with different column names."""
    return check_frame(next(iter_frames(path)), path)


def check_frame(frame: Any, source: Any) -> Any:
    """Raise a ValueError if a table has no rows, or two columns of a name."""
    if frame.columns.duplicated().any():
        twice = frame.columns[frame.columns.duplicated()][0]
        raise ValueError(f"{source} has two columns called {twice!r}; rename one.")
    if len(frame) == 0 or len(frame.columns) == 0:
        raise ValueError(f"{source} has no rows.")
    return frame


def iter_frames(
    source: PathLike | BinaryIO, text_columns: Sequence[str] = (), rows: int | None = None
) -> Iterator[Any]:
    """Yield the rows of a file, at most ``rows`` of them at a time; all at once if it is None.

    Parameters
    ----------
    source : path of a CSV, TSV or Parquet file (text may be compressed), or a stream of CSV
    text_columns : sequence of str
        Columns of a text file that hold texts, even if they look like numbers.
    rows : int, default=None
    """
    pd = _pandas()
    is_path = isinstance(source, (str, os.PathLike))
    shown = str(source) if is_path else "stdin"
    ending = table_ending(_existing(shown)) if is_path else ".csv"
    if ending not in (*TEXT, ".txt", *PARQUET):
        raise ValueError(f"{shown}: the name must end in .csv, .tsv, .parquet or .arff.")
    try:
        if ending in PARQUET and rows is None:
            frames = iter([pd.read_parquet(shown)])
        elif ending in PARQUET:
            batches = import_module("pyarrow.parquet").ParquetFile(shown).iter_batches(rows)
            frames = (batch.to_pandas() for batch in batches)
        else:
            usual = "\t" if ending == ".tsv" else ","
            frames = _text_frames(source, shown, usual, text_columns, rows)
        for frame in frames:
            yield frame.set_axis([str(name) for name in frame.columns], axis=1)
    except pd.errors.EmptyDataError:
        raise ValueError(f"{shown} is empty.") from None
    except ImportError:
        raise
    except _UNREADABLE as error:
        first_line = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(f"{shown} cannot be read as a table: {first_line}") from error


def table_ending(path: Path) -> str:
    """Return the ending of a name, without that of a compression."""
    plain = path.with_suffix("") if path.suffix.lower() in COMPRESSED else path
    return plain.suffix.lower()


def _text_frames(
    source: Any, shown: str, usual: str, text_columns: Sequence[str], rows: int | None
) -> Iterator[Any]:
    """Yield data frames in which no column has become row names."""
    pd = _pandas()
    with _open(source) as file:
        head = file.read(-1 if rows is None else _HEAD_BYTES)
    is_all = rows is None or len(head) < _HEAD_BYTES
    lines = head if is_all else head[: head.rfind(b"\n") + 1] or head
    encoding = _encoding_of(lines, shown)
    text = lines.decode(encoding, errors="ignore")
    separator, decimal, header = _find_dialect(text, usual, shown)
    with warnings.catch_warnings(), io.BytesIO(head) if rows is None else _open(source) as file:
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            with pd.read_csv(
                file,
                header=header,
                sep=separator,
                decimal=decimal,
                encoding=encoding,
                index_col=False,
                low_memory=False,  # one type per column
                dtype=dict.fromkeys(text_columns, str),
                chunksize=rows,
                iterator=True,
            ) as frames:
                yield from (_without_empty_rows(frame, shown) for frame in frames)
        except pd.errors.ParserWarning:
            raise ValueError("its rows have more cells than its header") from None


def _without_empty_rows(frame: Any, source: str) -> Any:
    """Return the rows that have a cell, and whole numbers as such, which empty rows make floats."""
    is_empty = frame.isna().all(axis=1)
    if not is_empty.any():
        return frame
    empty = plural(int(is_empty.sum()), "row")
    warnings.warn(f"{source}: {empty} without any cell left out.", UserWarning, stacklevel=2)
    frame = frame[~is_empty].reset_index(drop=True)
    numbers = frame.select_dtypes(np.floating)
    frame[numbers.columns] = numbers.apply(_pandas().to_numeric, downcast="integer")
    return frame


def _open(source: Any) -> Any:
    """Open a file, which may be compressed; a stream is one already."""
    if not isinstance(source, (str, os.PathLike)):
        return contextlib.nullcontext(source)
    suffix = Path(source).suffix.lower()
    if suffix == ".zst":
        import pyarrow as pa

        return io.BufferedReader(pa.input_stream(str(source), compression="zstd"))
    opener: Any = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}.get(suffix, open)
    return opener(source, "rb")


@dataclass(frozen=True)
class Reading:
    """Options for reading tables; "" means to detect the value.

    Attributes
    ----------
    sep
        Separator of a text file; tab for a tab.
    decimal
        Decimal mark of numbers, . or a comma.
    thousands
        Thousands separator, such as a comma, a point or a space.
    encoding
        Encoding of a text file, such as latin-1.
    yes
        A word for yes in cells of labels, such as ja. May be repeated.
    no
        A word for no in cells of labels, such as nein. May be repeated.
    na
        A word for a missing cell, such as k.A. May be repeated.
    """

    sep: str = ""
    decimal: str = ""
    thousands: str = ""
    encoding: str = ""
    yes: list[str] = field(default_factory=list)
    no: list[str] = field(default_factory=list)
    na: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if len(self.separator) > 1 or self.separator in ("\n", "\r", '"'):
            raise ValueError(f"--sep must be one character, or tab, got {self.sep!r}.")
        if self.decimal not in ("", ".", ","):
            raise ValueError(f"--decimal must be . or a comma, got {self.decimal!r}.")
        if len(self.thousands) > 1 or self.thousands.isdigit():
            raise ValueError(f"--thousands must be one mark, got {self.thousands!r}.")
        for option, other in (("--sep", self.separator), ("--thousands", self.thousands)):
            if self.decimal and self.decimal == other:
                raise ValueError(f"{option} and --decimal must differ, got {other!r} for both.")
        try:
            codecs.lookup(self.encoding or "utf-8")
        except LookupError:
            raise ValueError(f"--encoding: there is no encoding {self.encoding!r}.") from None
        for word in {*_plain(self.yes)} & {*_plain(self.no)}:
            raise ValueError(f"--yes and --no: {word!r} cannot mean both.")

    @property
    def separator(self) -> str:
        """Return the separator as it stands in the file."""
        return {"tab": "\t", "\\t": "\t"}.get(self.sep, self.sep)

    @property
    def words(self) -> dict[str, int | None]:
        """Further words for yes, no and missing in cells of labels, in lower case."""
        meanings = ((self.na, None), (self.no, 0), (self.yes, 1))
        return {word: value for words, value in meanings for word in _plain(words)}


def _plain(words: Sequence[str]) -> list[str]:
    return [word.strip().lower() for word in words]


READING: ContextVar[Reading] = ContextVar("READING", default=Reading())  # noqa: B039, it is frozen


@contextlib.contextmanager
def reading_as(reading: Reading) -> Iterator[None]:
    """Read text files inside as the user says."""
    token = READING.set(reading)
    try:
        yield
    finally:
        READING.reset(token)


def _encoding_of(content: bytes, source: str) -> str:
    """Return the encoding: given, by the first bytes, UTF-8, or else Windows' western code."""
    given = READING.get().encoding
    if given:
        return "utf-8-sig" if codecs.lookup(given).name == "utf-8" else given
    for mark, name in _MARKS:
        if content.startswith(mark):
            return name
    try:
        content.decode("utf-8-sig")
    except UnicodeDecodeError:
        if b"\0" in content:
            raise
        content.decode("cp1252")
        warnings.warn(f"{source} is not UTF-8; it is read as cp1252.", UserWarning, stacklevel=2)
        return "cp1252"
    return "utf-8-sig"


def _find_dialect(text: str, usual: str, source: str) -> tuple[str, str, int]:
    """Return the separator, the decimal mark, and which line of a text names the columns.

    As given; else the usual separator, unless only another one makes a table of the first lines.
    """
    if "\0" in text:
        raise ValueError("it is not text")
    given, given_decimal = READING.get().separator, READING.get().decimal
    head = text.splitlines(keepends=True)[:_LINES]  # names may hold the end of a line
    marks = [given] if given else [usual, *_SEPARATORS]
    rows = {mark: list(filter(None, csv.reader(head, delimiter=mark))) for mark in marks}
    header = {mark: _header_line(rows[mark]) for mark in marks}
    rows = {mark: rows[mark][header[mark] :] for mark in marks}
    widths = {mark: {len(row) for row in rows[mark]} for mark in marks}
    whole = [mark for mark in marks if len(widths[mark]) == 1 and widths[mark] != {1}]
    separator = marks[0]
    if whole and separator not in whole:
        separator = max(whole, key=lambda mark: len(rows[mark][0]))
    decimal = given_decimal or "."
    if not given_decimal and separator != ",":
        numbers = [_DECIMAL.fullmatch(cell.strip()) for row in rows[separator] for cell in row]
        found = {match[1] for match in numbers if match is not None}
        decimal = "," if found == {","} else "."
    if separator != marks[0] or decimal != (given_decimal or "."):
        also = ", and numbers have a decimal comma" if decimal == "," else ""
        name = _SEPARATORS.get(separator, repr(separator))
        warnings.warn(f"{source}: cells are separated by {name}{also}.", UserWarning, stacklevel=2)
    names = rows[separator][0] if rows[separator] else []
    if header[separator]:
        also = f"{source}: what stands above the columns' names, {names[0]!r} ..., is left out."
        warnings.warn(also, UserWarning, stacklevel=2)
    twice = [name for name in names if name and names.count(name) > 1]
    if twice:
        also = f"{source}: two columns are called {twice[0]!r}; the second is {twice[0] + '.1'!r}."
        warnings.warn(also, UserWarning, stacklevel=2)
    return separator, decimal, header[separator]


def _header_line(rows: list[list[str]]) -> int:
    """Return the line of the columns' names: the first, or the first full one after titles.

    After titles and merged cells it is known by holding no number above a column of numbers.
    """
    width = max(map(len, rows), default=0)
    for i, names in enumerate(rows[:_TITLES]):
        if len(names) == width and all(names):
            columns = [column for column in zip(*rows[i + 1 :], strict=False) if any(column)]
            are_numbers = [all(cell[:1] in _NUMERIC for cell in column) for column in columns]
            if i == 0 or (any(are_numbers) and not any(name[0] in _NUMERIC for name in names)):
                return i
    return 0


def read_label_words(labels: Any, known: Mapping[str, int | None] | None = None) -> Any:
    """Return columns of a data frame that hold yes, no and the like as 1 and 0.

    ``?``, -1 and empty cells are missing. Columns of numbers must hold 0, 1 and missing cells.
    ``known`` are the words of a model file; those that the user gives come first.
    """
    given = {**(known or {}), **READING.get().words}
    meanings = {**LABEL_WORDS, **given}
    result = labels.copy()
    for name in labels.columns:
        column = labels[name]
        if column.dtype.kind in "biuf":
            invalid = np.flatnonzero(column.notna() & ~column.isin([0, 1, -1]))
        else:
            words = column.map(lambda cell: str(cell).strip().lower(), na_action="ignore")
            invalid = np.flatnonzero(words.notna() & ~words.isin(meanings))
            result[name] = words.map(meanings).astype("Float64")
        if len(invalid):
            cell = column.iloc[invalid[0]]
            shown = repr(cell) if isinstance(cell, str) else str(cell)
            hint = (
                "" if given or not isinstance(cell, str) else " (--yes and --no name other words)"
            )
            raise ValueError(
                f"label column {name!r}: cells must be 0 or 1 (or yes, no, true, false), and empty "
                f"or ? where they are missing; got {shown} in row {invalid[0]}, counted from 0"
                f"{hint}."
            )
    return result


def _pandas() -> Any:
    return import_extra("pandas", 'Reading tables needs pandas: pip install "credalchain[data]"')


def _existing(file: PathLike) -> Path:
    if not Path(file).is_file():
        raise FileNotFoundError(f"there is no file {file}.")
    return Path(file)


# -- ARFF ----------------------------------------------------------------------------------


def _parse(path: Path) -> dict[str, Any]:
    """Return relation, attributes and data; sparse data as one dict per row."""
    arff = import_extra("arff", 'Reading ARFF needs liac-arff: pip install "credalchain[data]"')
    try:
        text, names = _take_names(_existing(path).read_bytes())
        match = re.search(r"^\s*@data\s*$(?:\s*%.*$)*\s*(\{?)", text, re.IGNORECASE | re.MULTILINE)
        kind = arff.LOD if match and match[1] else arff.DENSE
        content: dict[str, Any] = arff.loads(text, return_type=kind)
    except (arff.ArffException, ValueError) as error:
        raise ValueError(f"{path} cannot be read as ARFF: {error}") from error
    kinds = [kind for _, kind in content["attributes"]]
    content["attributes"] = list(zip(names, kinds, strict=True))
    if not content["attributes"] or not content["data"]:
        raise ValueError(f"{path} is not an ARFF file with data.")
    content["sparse"] = kind == arff.LOD
    return content


def _take_names(content: bytes) -> tuple[str, list[str]]:
    """Return ARFF with numbers in place of its attributes' names, and the names.

    It is in UTF-8 or else Latin-1. liac-arff would leave the escapes in a name and drop quotes at
    its ends.
    """
    names: list[str] = []
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError:
        lines = content.decode("latin-1").split("\n")
    for i, line in enumerate(lines):
        if _DATA.match(line):
            break
        if not _ATTRIBUTE.match(line):
            continue
        match = _DECLARATION.fullmatch(line.rstrip())
        if match is None:
            raise ValueError(
                f"line {i + 1} must declare an attribute with a name (in quotes if it holds "
                f"spaces, commas, braces or %) and a type, got {line.strip()!r}."
            )
        lines[i] = f"@attribute {len(names)} {match['type']}"
        bare = match["bare"]
        names.append(_unescape(match["quoted"]) if bare is None else _unescape_bare(bare))
    return "\n".join(lines), names


def _unescape(name: str) -> str:
    """Return a name with ARFF's escapes resolved; a backslash before anything else is kept."""
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), name)


def _unescape_bare(name: str) -> str:
    r"""Return the same without quotes, where ``\\t`` is a backslash and a t."""
    return re.sub(r"""\\(["'\\%])""", r"\1", name)


def _check_labels(labels: Sequence[str], names: list[str], path: Any) -> None:
    missing = [label for label in labels if label not in names]
    if missing:
        raise ValueError(f"{path} has no attribute {missing[0]!r}, which should be a label.")
    if len(set(labels)) != len(labels) or len(labels) == len(names):
        raise ValueError(f"{path}: labels must be some of the attributes, each named once.")


def _as_dataset(path: Path, content: dict[str, Any], labels: Sequence[str]) -> MultilabelDataset:
    pd = _pandas()
    names, kinds = zip(*content["attributes"], strict=True)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{path} has two attributes called {twice!r}.")
    _check_labels(labels, list(names), path)
    features = [i for i, name in enumerate(names) if name not in labels]
    targets = [i for i, name in enumerate(names) if name in labels]
    is_sparse = content["sparse"]
    number_like = [str(kind).upper() in _NUMBERS or kind == ["0", "1"] for kind in kinds]
    if is_sparse and all(number_like[i] for i in features):
        X = _as_csr(content["data"], features)
    else:
        columns = _columns_of(content, features)
        X = pd.DataFrame({names[i]: _as_column(columns[i], kinds[i], is_sparse) for i in features})
    words = pd.DataFrame({names[i]: cells for i, cells in _columns_of(content, targets).items()})
    try:
        Y = as_labels(read_label_words(words), require_zero=False)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return MultilabelDataset(
        path.stem,
        X,
        Y,
        [names[i] for i in features],
        [names[i] for i in targets],
        description=str(content.get("description", "")).strip(),
        source=str(path),
    )


def _columns_of(content: dict[str, Any], indices: Sequence[int]) -> dict[int, list[Any]]:
    """Return values by attribute. What sparse data leaves out is 0, or the first nominal value."""
    if not content["sparse"]:
        return {i: [row[i] for row in content["data"]] for i in indices}
    kinds = [kind for _, kind in content["attributes"]]
    default = {i: kinds[i][0] if isinstance(kinds[i], list) else 0.0 for i in indices}
    return {i: [row.get(i, default[i]) for row in content["data"]] for i in indices}


def _as_csr(rows: list[dict[int, Any]], features: list[int]) -> Any:
    column_of = {i: column for column, i in enumerate(features)}
    stored = [
        (np.nan if cell is None else float(cell), row, column_of[i])
        for row, cells in enumerate(rows)
        for i, cell in cells.items()
        if i in column_of
    ]
    values, row, column = np.array(stored, dtype=np.float64).reshape(-1, 3).T
    places = row.astype(np.int32), column.astype(np.int32)  # liblinear takes no wider indices
    matrix = sparse.csr_array((values, places), shape=(len(rows), len(features)))
    matrix.eliminate_zeros()
    return matrix


def _as_column(values: list[Any], kind: Any, is_sparse: bool) -> Any:
    if is_sparse and kind == ["0", "1"]:  # as it would be from CSR
        return np.array([None if value is None else value == "1" for value in values])
    if isinstance(kind, list):
        return _pandas().Categorical(values, categories=kind)
    return np.array(values, dtype=object if str(kind).upper() == "STRING" else np.float64)
