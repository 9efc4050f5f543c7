"""Tables in files: CSV and Parquet, in and out."""

import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from credalchain.datasets import load_embedded_yeast
from credalchain.files import replacing

EMBEDDED = "embedded:yeast"


def read_table(source: str) -> tuple[pd.DataFrame, list[str]]:
    """A table from a file, stdin (``-``) or the embedded data; and its labels if it knows them."""
    if source == EMBEDDED:
        X, Y, features, labels = load_embedded_yeast()
        frame = pd.concat(
            [pd.DataFrame(X, columns=features), pd.DataFrame(Y, columns=labels)], axis=1
        )
        return frame, labels
    frame = _read_file(source)
    if frame.columns.duplicated().any():
        twice = frame.columns[frame.columns.duplicated()][0]
        raise ValueError(f"{source} has two columns called {twice!r}.")
    if len(frame) == 0 or len(frame.columns) == 0:
        raise ValueError(f"{source} has no rows.")
    return frame.set_axis([str(name) for name in frame.columns], axis=1), []


def _read_file(source: str) -> pd.DataFrame:
    path = Path(source)
    if source != "-" and not path.is_file():
        raise FileNotFoundError(f"there is no file {source}.")
    try:
        if source == "-":
            return _read_csv(sys.stdin.buffer, ",")
        if path.suffix.lower() in (".parquet", ".pq"):
            return pd.read_parquet(path)
        if path.suffix.lower() in (".csv", ".tsv", ".txt"):
            return _read_csv(path, "\t" if path.suffix.lower() == ".tsv" else ",")
    except pd.errors.EmptyDataError:
        raise ValueError(f"{source} is empty.") from None
    except ImportError:
        raise
    except (UnicodeDecodeError, pd.errors.ParserError, OSError, ValueError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"{source} cannot be read as a table: {first}") from error
    raise ValueError(f"{source}: the name must end in .csv, .tsv or .parquet.")


def _read_csv(source: Any, separator: str) -> pd.DataFrame:
    """Without pandas' guess that a header shorter than the rows means row names."""
    frame = pd.read_csv(source, sep=separator, encoding="utf-8-sig", index_col=False)
    if any("\x00" in str(name) for name in frame.columns):
        raise ValueError("it is not text")
    return frame


def pick_labels(frame: pd.DataFrame, wanted: Sequence[str], known: Sequence[str]) -> list[str]:
    """Label columns from ``--labels``: names, ``first:N`` or ``last:N``."""
    if not wanted:
        if known:
            return list(known)
        raise ValueError("say which columns are labels: --labels a,b,c or --labels last:6.")
    names: list[str] = []
    for spec in wanted:
        names += _spec_to_names(frame, spec)
    if len(set(names)) < len(names):
        raise ValueError(f"--labels names a column twice: {', '.join(names)}.")
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
    names = [name.strip() for name in spec.split(",") if name.strip()]
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise ValueError(
            f"{option}: there is no column {missing[0]!r}; the columns are "
            f"{_few(list(frame.columns))}."
        )
    return names


def _few(names: Sequence[str], most: int = 12) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} in all)"


def pick_features(frame: pd.DataFrame, names: Sequence[str], source: str) -> pd.DataFrame:
    """The columns a model was fitted on, in its order."""
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise ValueError(
            f"{source} lacks {len(missing)} of the model's {len(names)} columns: {_few(missing)}."
        )
    return frame[list(names)]


def read_known(frame: pd.DataFrame, labels: Sequence[str]) -> pd.DataFrame:
    """Label columns that were answered already; empty cells and ``*`` are open."""
    return frame[list(labels)].replace({"*": None, "0": 0, "1": 1})


def write_table(frame: pd.DataFrame, out: str) -> None:
    """To a file, whole or not at all, or to stdout (``-``) as CSV."""
    if out == "-":
        frame.to_csv(sys.stdout, index=False)
        return
    path = Path(out)
    buffer = io.BytesIO()
    if path.suffix.lower() in (".parquet", ".pq"):
        frame.to_parquet(buffer, index=False)
    elif path.suffix.lower() in (".csv", ".tsv"):
        separator = "\t" if path.suffix.lower() == ".tsv" else ","
        buffer.write(frame.to_csv(index=False, sep=separator).encode())
    else:
        raise ValueError(f"--out {out}: the name must end in .csv, .tsv or .parquet, or be -.")
    with replacing(path) as file:
        file.write(buffer.getvalue())
