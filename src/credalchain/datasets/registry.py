"""Data sets by name, and files of one's own: what studies and commands load."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from credalchain.datasets.dataset import MultilabelDataset
from credalchain.datasets.files import read_file
from credalchain.datasets.mulan import MULAN, load_mulan

MULAN_PREFIX = "mulan:"
EMBEDDED = "embedded:yeast"  # what commands and studies call it


class EmbeddedData(NamedTuple):
    """A data set as arrays, with its names."""

    X: NDArray[np.float64]
    Y: NDArray[np.int8]
    feature_names: list[str]
    label_names: list[str]


def load_embedded_yeast() -> EmbeddedData:
    """The yeast data of the paper (2417 genes, 103 features, 14 labels), shipped by river.

    References
    ----------
    A. Elisseeff and J. Weston, A kernel method for multi-labelled classification,
    NIPS 2001.
    """
    try:
        from river.datasets import Yeast
    except ImportError as error:
        raise ImportError(
            "The embedded yeast data comes with the package river: "
            'pip install "credalchain[demo]", or pip install "river>=0.26.1".'
        ) from error
    rows = list(Yeast())
    return EmbeddedData(
        np.array([list(x.values()) for x, _ in rows], dtype=np.float64),
        np.array([list(y.values()) for _, y in rows]).astype(np.int8),
        list(rows[0][0]),
        list(rows[0][1]),
    )


@dataclass(frozen=True)
class NamedDataset:
    """A data set that studies and commands know by name: how it is loaded, what it is about."""

    load: Callable[[], MultilabelDataset]
    domain: str


DATASETS = {
    name: NamedDataset(partial(load_mulan, name), about.domain) for name, about in MULAN.items()
}
DATASETS[EMBEDDED] = NamedDataset(
    lambda: MultilabelDataset(EMBEDDED, *load_embedded_yeast()), "biology"
)
"""All of them. A name with a colon, such as "embedded:yeast", is no file for commands either."""


@dataclass(frozen=True)
class DataFile:
    """A file with labels.

    Attributes
    ----------
    name : str
        What results call it.
    file : str
        Its path, from ``folder``.
    labels : tuple of str
        The columns that are labels.
    sha256 : str
        The digest of its content.
    groups : str
        The column that says which rows belong together; empty if there is none.
    folder : str
        Where ``file`` is looked for on this machine.
    """

    name: str
    file: str
    labels: tuple[str, ...]
    sha256: str
    folder: str = ""
    groups: str = ""

    @classmethod
    def describe(
        cls, file: str, labels: str | Sequence[str], folder: Path, name: str = "", groups: str = ""
    ) -> "DataFile":
        """Read a file once; ``labels`` as in ``read_file``, ``name`` is the file's if empty."""
        digest = _sha256(folder / file)
        data = read_file(folder / file, labels)
        if groups:
            _take_groups(data, groups)
        name = name or data.name
        return cls(name, file, tuple(data.label_names), digest, str(folder), groups)

    def load(self) -> MultilabelDataset:
        """The content, if it is still the same."""
        path = Path(self.folder, self.file)
        if _sha256(path) != self.sha256:
            raise ValueError(
                f"{path} has changed: its SHA-256 is no longer {self.sha256[:12]}...; read the "
                "study again."
            )
        data = replace(read_file(path, self.labels), name=self.name)
        return _take_groups(data, self.groups) if self.groups else data


def _take_groups(data: MultilabelDataset, column: str) -> MultilabelDataset:
    """Return the data with a column as groups in place of a feature."""
    if column not in data.feature_names:
        columns = ", ".join(data.feature_names[:12])
        raise LookupError(f"there is no column {column!r} besides the labels; there are {columns}")
    groups = data.to_frame()[column]
    if groups.isna().any():
        raise LookupError(f"column {column!r} is empty in row {int(groups.isna().argmax())}")
    others = [name for name in data.feature_names if name != column]
    columns_left = [data.feature_names.index(name) for name in others]
    X = data.X[:, columns_left] if sparse.issparse(data.X) else data.X[others]
    return replace(data, X=X, feature_names=others, groups=groups)


DataSource = str | DataFile


def name_of(source: DataSource) -> str:
    """What results call a data set."""
    return source if isinstance(source, str) else source.name


def load(source: DataSource) -> MultilabelDataset:
    """Load a data set.

    Parameters
    ----------
    source : str or DataFile
        A name in ``DATASETS``: "embedded:yeast", or one of the MULAN collection ("emotions" or
        "mulan:emotions"). Or a file.
    """
    if isinstance(source, DataFile):
        return source.load()
    if source in DATASETS:
        return DATASETS[source].load()
    return load_mulan(source.removeprefix(MULAN_PREFIX))


def is_dataset_name(source: str) -> bool:
    """Whether commands take it for the name of a data set, and not for that of a file."""
    return source.startswith(MULAN_PREFIX) or (":" in source and source in DATASETS)


def _sha256(path: Path) -> str:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
