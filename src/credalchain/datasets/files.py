"""Readers: ARFF in the ways of MULAN and MEKA, CSV and Parquet.

ARFF is parsed by liac-arff, XML by the standard library (which reads no external entities).
Both come with the extra ``data``.
"""

import io
import os
import re
import warnings
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from credalchain.datasets.dataset import MultilabelDataset
from credalchain.datasets.dialect import decode, find_dialect
from credalchain.datasets.label_words import read_label_words
from credalchain.labels import LABEL_WORDS, MISSING, as_labels

PathLike = str | os.PathLike[str]


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
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r"}  # any other character stands for itself


def read_mulan(arff: PathLike, xml: PathLike) -> MultilabelDataset:
    r"""Read a data set in the format of MULAN: an ARFF file, and an XML file naming its labels.

    The XML only says which attributes are labels; their names and order are those of the ARFF
    file. In the XML a label is named plainly or with the escapes of ARFF, as in ``m\'usica``.
    """
    content = _parse(Path(arff))
    names = {name for name, _ in content["attributes"]}
    labels = [_matching(label, names) for label in read_label_names(xml)]
    return _as_dataset(Path(arff), content, labels)


def _matching(label: str, names: Collection[str]) -> str:
    """A label of the XML file as the ARFF file spells it: literally, or with escapes resolved."""
    spellings = (label, _unescape_bare(label), _unescape(label))
    return next((spelling for spelling in spellings if spelling in names), spellings[-1])


def read_meka(arff: PathLike) -> MultilabelDataset:
    """Read a data set in the format of MEKA, whose relation name holds ``-C n``.

    The first n attributes are labels, or the last -n if n is negative.
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
    """Read an ARFF file, dense or sparse, with the attributes that are labels given by name."""
    return _as_dataset(Path(arff), _parse(Path(arff)), labels)


def read_table(path: PathLike, labels: Sequence[str]) -> MultilabelDataset:
    """Read a CSV, TSV or Parquet file with the columns that are labels given by name."""
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
    """Read a file of any of these formats, which the ending of its name tells.

    ``labels`` are names of columns; for ARFF also "xml" (MULAN's file beside it) or "meka".
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


def read_label_names(xml: PathLike) -> list[str]:
    """The names of the labels in an XML file of MULAN."""
    path = Path(xml)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        raise ValueError(f"{path} is not an XML file of labels: {error}.") from None
    names = [node.get("name") for node in root.iter() if node.tag.split("}")[-1] == "label"]
    if not names or None in names:
        raise ValueError(f"{path} names no labels.")
    return [str(name) for name in names]


def attribute_names(arff: PathLike) -> list[str]:
    """The names of all attributes of an ARFF file, in its order."""
    return [name for name, _ in _parse(Path(arff))["attributes"]]


def read_frame(path: PathLike, text_columns: Sequence[str] = ()) -> Any:
    """A CSV, TSV or Parquet file as a data frame with different column names."""
    pd = _pandas()
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".tsv", ".txt", ".parquet", ".pq"):
        raise ValueError(f"{path}: the name must end in .csv, .tsv, .parquet or .arff.")
    try:
        if suffix in (".parquet", ".pq"):
            frame = pd.read_parquet(path)
        else:
            separator = "\t" if suffix == ".tsv" else ","
            frame = read_csv(path.read_bytes(), separator, text_columns, source=str(path))
    except pd.errors.EmptyDataError:
        raise ValueError(f"{path} is empty.") from None
    except ImportError:
        raise
    except (UnicodeDecodeError, pd.errors.ParserError, OSError, ValueError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"{path} cannot be read as a table: {first}") from error
    return check_frame(frame, path)


def read_csv(
    content: bytes, separator: str, text_columns: Sequence[str] = (), source: str = "the table"
) -> Any:
    """CSV as people have it, see :mod:`dialect`; no column becomes row names."""
    pd = _pandas()
    text = decode(content, source)
    dialect = find_dialect(text, separator, source)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            return pd.read_csv(
                io.StringIO(text),
                sep=dialect.separator,
                decimal=dialect.decimal,
                index_col=False,
                low_memory=False,  # one type per column, not one per chunk
                dtype=dict.fromkeys(text_columns, str),
            )
        except pd.errors.ParserWarning:
            raise ValueError("its rows have more cells than its header") from None


def check_frame(frame: Any, source: Any) -> Any:
    """Refuse a table without rows or with two columns of a name; make names text."""
    if frame.columns.duplicated().any():
        twice = frame.columns[frame.columns.duplicated()][0]
        raise ValueError(f"{source} has two columns called {twice!r}; rename one.")
    if len(frame) == 0 or len(frame.columns) == 0:
        raise ValueError(f"{source} has no rows.")
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def _pandas() -> Any:
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError('Reading tables needs pandas: pip install "credalchain[data]"') from error
    return pd


# -- ARFF ----------------------------------------------------------------------------------


def _parse(path: Path) -> dict[str, Any]:
    """Relation, attributes and data; sparse data as one dict per row."""
    try:
        import arff
    except ImportError as error:
        raise ImportError(
            'Reading ARFF needs liac-arff: pip install "credalchain[data]"'
        ) from error
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    try:
        text, names = _take_names(_decode(path.read_bytes()))
        kind = arff.LOD if _is_sparse(text) else arff.DENSE
        content: dict[str, Any] = arff.loads(text, return_type=kind)
    except (arff.ArffException, ValueError) as error:
        raise ValueError(f"{path} cannot be read as ARFF: {error}") from error
    kinds = [kind for _, kind in content["attributes"]]
    content["attributes"] = list(zip(names, kinds, strict=True))
    if not content["attributes"] or not content["data"]:
        raise ValueError(f"{path} is not an ARFF file with data.")
    content["sparse"] = kind == arff.LOD
    return content


def _decode(content: bytes) -> str:
    """Text in UTF-8 or else Latin-1."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _take_names(text: str) -> tuple[str, list[str]]:
    """ARFF with numbers in place of its attributes' names, and the names.

    liac-arff would leave the escapes in a name and drop quotes at its ends.
    """
    names: list[str] = []
    lines = text.split("\n")
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
    """A name with ARFF's escapes resolved; a backslash before anything else is kept."""
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), name)


def _unescape_bare(name: str) -> str:
    r"""The same without quotes, where ``\\t`` is a backslash and a t."""
    return re.sub(r"""\\(["'\\%])""", r"\1", name)


def _is_sparse(text: str) -> bool:
    match = re.search(r"^\s*@data\s*$(?:\s*%.*$)*\s*(\{?)", text, re.IGNORECASE | re.MULTILINE)
    return bool(match and match[1])


def _check_labels(labels: Sequence[str], names: list[str], path: Any) -> None:
    missing = [label for label in labels if label not in names]
    if missing:
        raise ValueError(f"{path} has no attribute {missing[0]!r}, which should be a label.")
    if len(set(labels)) != len(labels) or len(labels) == len(names):
        raise ValueError(f"{path}: labels must be some of the attributes, each named once.")


def _as_dataset(path: Path, content: dict[str, Any], labels: Sequence[str]) -> MultilabelDataset:
    names = [name for name, _ in content["attributes"]]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"{path} has two attributes called {twice[0]!r}.")
    _check_labels(labels, names, path)
    wanted = set(labels)
    columns = _columns_of(content)
    features = [i for i, name in enumerate(names) if name not in wanted]
    targets = [i for i, name in enumerate(names) if name in wanted]
    kinds = [kind for _, kind in content["attributes"]]
    Y = np.empty((len(content["data"]), len(targets)), dtype=np.int8)
    for j, i in enumerate(targets):
        Y[:, j] = _as_label(columns[i], names[i], path)
    if content["sparse"] and all(_is_number_like(kinds[i]) for i in features):
        X = _as_csr(content["data"], features, len(names))
    else:
        is_sparse = content["sparse"]
        X = _pandas().DataFrame(
            {names[i]: _as_column(columns[i], kinds[i], is_sparse) for i in features}
        )
    return MultilabelDataset(
        path.stem,
        X,
        Y,
        [names[i] for i in features],
        [names[i] for i in targets],
        description=str(content.get("description", "")).strip(),
        source=str(path),
    )


def _columns_of(content: dict[str, Any]) -> list[list[Any]]:
    """Values by attribute. What sparse data leaves out is 0, or the first nominal value."""
    if not content["sparse"]:
        return [list(column) for column in zip(*content["data"], strict=True)]
    defaults = [kind[0] if isinstance(kind, list) else 0.0 for _, kind in content["attributes"]]
    columns = [[default] * len(content["data"]) for default in defaults]
    for row, cells in enumerate(content["data"]):
        for i, value in cells.items():
            columns[i][row] = value
    return columns


def _is_number_like(kind: Any) -> bool:
    if isinstance(kind, list):
        return kind == ["0", "1"]
    return str(kind).upper() in ("NUMERIC", "REAL", "INTEGER")


def _as_csr(rows: list[dict[int, Any]], features: list[int], n: int) -> Any:
    feature_index = np.full(n, -1, dtype=np.int32)  # liblinear and others take no wider indices
    feature_index[features] = np.arange(len(features))
    is_label = (feature_index < 0).tolist()
    stored = [(i, cell) for row in rows for i, cell in row.items() if not is_label[i]]
    numbers = {cell: np.nan if cell is None else float(cell) for _, cell in stored}
    value = np.array([numbers[cell] for _, cell in stored], dtype=np.float64)
    column = feature_index[np.array([i for i, _ in stored], dtype=np.int64)]
    per_row = [sum(not is_label[i] for i in row) for row in rows]
    row = np.repeat(np.arange(len(rows), dtype=np.int32), per_row)
    matrix = sparse.csr_array((value, (row, column)), shape=(len(rows), len(features)))
    matrix.eliminate_zeros()
    return matrix


def _as_column(values: list[Any], kind: Any, is_sparse: bool) -> Any:
    if is_sparse and kind == ["0", "1"]:  # as it would be from CSR
        return np.array([None if value is None else value == "1" for value in values])
    if isinstance(kind, list):
        return _pandas().Categorical(values, categories=kind)
    if str(kind).upper() == "STRING":
        return np.array(values, dtype=object)
    return np.array([np.nan if value is None else float(value) for value in values])


def _as_label(values: list[Any], name: str, path: Path) -> NDArray[np.int8]:
    meaning = {value: _meaning(value) for value in set(values)}
    invalid = [value for value, label in meaning.items() if label is None]
    if invalid:
        row, value = next((row, value) for row, value in enumerate(values) if value in invalid)
        raise ValueError(f"{path}: the label {name!r} must be 0 or 1, got {value!r} in row {row}.")
    return np.array([meaning[value] for value in values], dtype=np.int8)


def _meaning(value: Any) -> int | None:
    """0, 1, missing, or None for what cannot be a label."""
    word = "" if value is None else str(value).strip().lower()
    if word not in LABEL_WORDS:
        return None
    label = LABEL_WORDS[word]
    return MISSING if label is None else label
