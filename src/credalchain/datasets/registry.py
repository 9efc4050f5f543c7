"""Data sets by name, and user files, for studies and commands.

Those of the MULAN collection come from a folder, the user's cache, or the network: the public
repository tsoumakas/mulan at a fixed commit (:mod:`credalchain.datasets.downloads`).
"""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from credalchain._utils.validation import import_extra
from credalchain.datasets.downloads import download, fetch_by_git
from credalchain.datasets.files import MultilabelDataset, read_file, read_mulan

COMMIT = "43f6389095ad71984264db4387a8074b22bc7d4a"
FOLDER = "data/multi-label"
SOURCE = f"https://raw.githubusercontent.com/tsoumakas/mulan/{COMMIT}/{FOLDER}/"
REPOSITORY = "https://github.com/tsoumakas/mulan"
FOLDER_VARIABLE = "CREDALCHAIN_DATA"


@dataclass(frozen=True)
class MulanSource:
    """Where a data set is found, and what to cite."""

    domain: str
    arff_sha256: str = ""  # without checksums it is fetched by Git
    xml_sha256: str = ""
    citation: str = ""
    folder: str = ""  # the name in the repository, if it differs


_ABOUT = resources.files("credalchain.datasets").joinpath("mulan.json").read_text("utf-8")
MULAN = {name: MulanSource(**about) for name, about in json.loads(_ABOUT).items()}


class DataUnavailableError(OSError):
    """Error for a data set that is not on this machine and cannot be downloaded.

    Examples
    --------
    >>> from credalchain.datasets import DataUnavailableError, load_mulan
    >>> try:
    ...     data = load_mulan("flags")
    ... except DataUnavailableError as error:
    ...     print("work offline with the embedded data")  # doctest: +SKIP
    """


def load_mulan(name: str) -> MultilabelDataset:
    """Load a data set of the MULAN collection: those of the paper, and more.

    The files are searched for in the folder that the environment variable ``CREDALCHAIN_DATA``
    names (as ``<name>/<name>.arff`` and ``.xml``), then in the user's cache, then downloaded; those
    from birds on by Git, which must be installed.

    Parameters
    ----------
    name : {"emotions", "scene", "yeast", "CAL500", "medical", "enron", "flags", "birds", \
            "genbase", "bibtex", "delicious", "tmc2007-500", "foodtruck", "Corel5k"}
        Name of the data set.

    Returns
    -------
    MultilabelDataset
        Features and labels, with the citation.

    Raises
    ------
    DataUnavailableError
        If it can neither be found nor downloaded.

    See Also
    --------
    load : Load any data set by its name.

    Examples
    --------
    >>> from credalchain.datasets import load_mulan
    >>> load_mulan("emotions")  # doctest: +SKIP
    MultilabelDataset('emotions': 593 rows, 72 features, 6 labels)
    """
    data, name = read_mulan(*mulan_files(name)), _known_name(name)
    description = f"{MULAN[name].domain} data of the MULAN collection"
    citation = MULAN[name].citation
    return replace(data, name=name, description=description, source=SOURCE, citation=citation)


def mulan_files(name: str) -> tuple[Path, Path]:
    """Return the ARFF and XML files of a data set, downloaded if they are not here yet."""
    name = _known_name(name)
    if here := _files_in_folder(name):
        return here
    try:
        return fetch(name, _cache(), SOURCE, REPOSITORY, COMMIT)
    except (OSError, ValueError) as error:
        raise DataUnavailableError(
            f"{name} could not be downloaded: {error}. To go on without a network, put its files, "
            f"of {REPOSITORY}/tree/{COMMIT}/{FOLDER}/{MULAN[name].folder or name}, into a folder "
            f"as {name}/{name}.arff (training and test rows together) and {name}/{name}.xml, and "
            f"set the environment variable {FOLDER_VARIABLE} to that folder."
        ) from None


def local_files(name: str) -> tuple[Path, Path] | None:
    """Return the ARFF and XML files of a data set, if they are on this machine."""
    if here := _files_in_folder(name):
        return here
    cached = _cached_files(name, _cache(), COMMIT)
    return cached if all(file.is_file() for file in cached) else None


def _files_in_folder(name: str) -> tuple[Path, Path] | None:
    folder = os.environ.get(FOLDER_VARIABLE)
    arff, xml = (Path(folder or ".", name, f"{name}.{kind}") for kind in ("arff", "xml"))
    return (arff, xml) if folder and arff.is_file() and xml.is_file() else None


def _cache() -> Path:
    pooch = import_extra("pooch", 'Fetching data needs pooch: pip install "credalchain[data]"')
    return Path(pooch.os_cache("credalchain"), "mulan")


def _cached_files(name: str, cache: Path, commit: str) -> tuple[Path, Path]:
    about = MULAN[name]
    if about.arff_sha256:
        remote = about.folder or name
        return cache / remote / f"{remote}.arff", cache / remote / f"{remote}.xml"
    return cache / commit / f"{name}.arff", cache / commit / f"{name}.xml"


def fetch(name: str, cache: Path, source: str, repository: str, commit: str) -> tuple[Path, Path]:
    """Download the ARFF and XML files of a data set into the cache, and return them.

    Raises
    ------
    OSError
        If there is no network, or no such file.
    ValueError
        If a file is not what it should be.
    """
    about = MULAN[name]
    arff, xml = files = _cached_files(name, cache, commit)
    if about.arff_sha256:
        for file, digest in zip(files, (about.arff_sha256, about.xml_sha256), strict=True):
            download(source, file.relative_to(cache).as_posix(), digest, cache)
        return files
    remote = about.folder or name
    train_and_test = [f"{name}-train.arff", f"{name}-test.arff"]
    choices = {
        arff: [[f"{name}-sparse.arff"], [f"{name}.arff"], train_and_test],
        xml: [[f"{name}.xml"], [f"{remote}.xml"]],
    }
    fetch_by_git(repository, commit, f"{FOLDER}/{remote}", choices)
    return files


def _known_name(name: str) -> str:
    for known in MULAN:
        if name.lower() == known.lower():
            return str(known)
    raise ValueError(f"name must be one of {', '.join(MULAN)}, got {name!r}.")


MULAN_PREFIX = "mulan:"
EMBEDDED = "embedded:yeast"  # what commands and studies call it


class EmbeddedData(NamedTuple):
    """Data set as arrays, with its names.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Features.
    Y : ndarray of int8, shape (n_samples, n_labels)
        Labels.
    feature_names : list of str
        Names of the features.
    label_names : list of str
        Names of the labels.

    See Also
    --------
    load_embedded_yeast : The data set of this kind.

    Examples
    --------
    >>> from credalchain.datasets import load_embedded_yeast
    >>> data = load_embedded_yeast()
    >>> data.X.shape, data.label_names[:2]
    ((2417, 103), ['Class1', 'Class2'])
    """

    X: NDArray[np.float64]
    Y: NDArray[np.int8]
    feature_names: list[str]
    label_names: list[str]


def load_embedded_yeast() -> EmbeddedData:
    """Load the yeast data of the paper: 2417 genes, 103 features, 14 labels.

    The package river ships it, so nothing is downloaded.

    Returns
    -------
    EmbeddedData
        Features and labels as arrays, with their names.

    See Also
    --------
    load_mulan : Load other data sets of the MULAN collection.

    References
    ----------
    A. Elisseeff and J. Weston, A kernel method for multi-labelled classification,
    NIPS 2001.

    Examples
    --------
    >>> from credalchain.datasets import load_embedded_yeast
    >>> X, Y, feature_names, label_names = load_embedded_yeast()
    >>> X.shape, Y.shape
    ((2417, 103), (2417, 14))
    """
    message = "The embedded yeast data comes with the package river: pip install "
    message += '"credalchain[demo]", or pip install "river>=0.26.1".'
    rows = list(import_extra("river.datasets", message).Yeast())
    return EmbeddedData(
        np.array([list(x.values()) for x, _ in rows], dtype=np.float64),
        np.array([list(y.values()) for _, y in rows]).astype(np.int8),
        list(rows[0][0]),
        list(rows[0][1]),
    )


@dataclass(frozen=True)
class NamedDataset:
    """Data set that studies and commands know by name, and how it is loaded."""

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
    """File with labels, identified by its content.

    Parameters
    ----------
    name : str
        Name in results.
    file : str
        Path of the file, from ``folder``.
    labels : tuple of str
        Columns that are labels.
    sha256 : str
        Digest of its content.
    folder : str, default=""
        Folder in which ``file`` is looked for on this machine.
    groups : str, default=""
        Column that says which rows belong together; empty if there is none.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from credalchain.datasets import DataFile
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "songs.csv").write_text('''tempo,pop,loud
    ... 90,1,0
    ... 140,1,1
    ... ''')
    ...     source = DataFile.describe("songs.csv", ["pop", "loud"], Path(folder))
    ...     source.load()
    MultilabelDataset('songs': 2 rows, 1 feature, 2 labels)
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
        """Read a file once, and return what identifies it.

        Parameters
        ----------
        file : str
            Path of the file, from ``folder``.
        labels : str or sequence of str
            As in :func:`read_file`.
        folder : Path
            Folder of the file.
        name : str, default=""
            Name in results; that of the file if empty.
        groups : str, default=""
            Column that says which rows belong together.

        Returns
        -------
        DataFile
            Names, and the digest of the content.
        """
        digest = _sha256(folder / file)
        data = read_file(folder / file, labels)
        if groups:
            _take_groups(data, groups)
        name = name or data.name
        return cls(name, file, tuple(data.label_names), digest, str(folder), groups)

    def load(self) -> MultilabelDataset:
        """Read the file, if its content is still the same.

        Returns
        -------
        MultilabelDataset
            Features and labels.

        Raises
        ------
        ValueError
            If the file has changed.
        """
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
    """Return the name of a data set in results."""
    return source if isinstance(source, str) else source.name


def load(source: DataSource) -> MultilabelDataset:
    """Load a data set by its name, or from a file.

    Parameters
    ----------
    source : str or DataFile
        A name in ``DATASETS``: "embedded:yeast", or one of the MULAN collection ("emotions" or
        "mulan:emotions"). Or a file.

    Returns
    -------
    MultilabelDataset
        Features and labels.

    Raises
    ------
    DataUnavailableError
        If the data set can neither be found nor downloaded.

    Examples
    --------
    >>> from credalchain.datasets import load
    >>> load("embedded:yeast")
    MultilabelDataset('embedded:yeast': 2417 rows, 103 features, 14 labels)
    """
    if isinstance(source, DataFile):
        return source.load()
    if source in DATASETS:
        return DATASETS[source].load()
    return load_mulan(source.removeprefix(MULAN_PREFIX))


def is_dataset_name(source: str) -> bool:
    """Return whether commands read a name as that of a data set, not of a file."""
    return source.startswith(MULAN_PREFIX) or (":" in source and source in DATASETS)


def _sha256(path: Path) -> str:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
