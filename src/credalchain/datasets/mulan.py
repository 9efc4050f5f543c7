"""The data sets of the paper, from a folder, the user's cache, or the network.

Files are those of the public repository tsoumakas/mulan at a fixed commit, and are checked
against their SHA-256 before they are used.
"""

import json
import os
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from credalchain.datasets.dataset import MultilabelDataset
from credalchain.datasets.files import import_extra, read_mulan

COMMIT = "43f6389095ad71984264db4387a8074b22bc7d4a"
SOURCE = f"https://raw.githubusercontent.com/tsoumakas/mulan/{COMMIT}/data/multi-label/"
FOLDER_VARIABLE = "CREDALCHAIN_DATA"
_RETRIES = 3  # one second after a failure, then two, then three


@dataclass(frozen=True)
class MulanSource:
    """Where a data set is found, and what to cite."""

    domain: str
    arff_sha256: str
    xml_sha256: str
    citation: str
    folder: str = ""  # the name in the repository, if it differs


_ABOUT = resources.files("credalchain.datasets").joinpath("mulan.json").read_text("utf-8")
MULAN = {name: MulanSource(**about) for name, about in json.loads(_ABOUT).items()}


class DataUnavailableError(OSError):
    """A data set is neither on this machine nor to be had from the network now."""


def load_mulan(name: str) -> MultilabelDataset:
    """Load one of the data sets of the paper, or flags.

    Looked for in the folder that the environment variable ``CREDALCHAIN_DATA`` names (as
    ``<name>/<name>.arff`` and ``.xml``), then in the user's cache, then downloaded.

    Parameters
    ----------
    name : {"emotions", "scene", "yeast", "CAL500", "medical", "enron", "flags"}
    """
    data, name = read_mulan(*mulan_files(name)), _known_name(name)
    description = f"{MULAN[name].domain} data of the MULAN collection"
    citation = MULAN[name].citation
    return replace(data, name=name, description=description, source=SOURCE, citation=citation)


def mulan_files(name: str) -> tuple[Path, Path]:
    """Return the ARFF and XML files of a data set, fetched if they are not here yet."""
    name = _known_name(name)
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder:
        arff, xml = (Path(folder) / name / f"{name}{suffix}" for suffix in (".arff", ".xml"))
        if arff.is_file() and xml.is_file():
            return arff, xml
    return fetch(name, SOURCE, Path(_pooch().os_cache("credalchain")))


def fetch(name: str, source: str, cache: Path) -> tuple[Path, Path]:
    """Return the two files of a data set from the cache, or from ``source`` into it, checked."""
    pooch = _pooch()
    pooch.get_logger().setLevel("WARNING")  # it would write on stderr, which is ours
    about = MULAN[name]
    remote = about.folder or name
    registry = {
        f"{remote}/{remote}.arff": f"sha256:{about.arff_sha256}",
        f"{remote}/{remote}.xml": f"sha256:{about.xml_sha256}",
    }
    shelf = pooch.create(cache / "mulan", source, registry=registry, retry_if_failed=_RETRIES)
    downloader = pooch.HTTPDownloader(timeout=30)
    try:
        arff, xml = (Path(shelf.fetch(file, downloader=downloader)) for file in registry)
    except ValueError as error:  # pooch: the checksum does not fit; it keeps nothing
        raise DataUnavailableError(
            f"{name}: what {source} gave is not the file we know ({error})"
        ) from error
    except OSError as error:
        raise DataUnavailableError(
            f"{name} could not be downloaded ({error}). To go on without a network, put "
            f"{source}{remote}/{remote}.arff and {remote}.xml into a folder as {name}/{name}.arff "
            f"and {name}/{name}.xml, and set the environment variable {FOLDER_VARIABLE} to that "
            "folder."
        ) from error
    return arff, xml


def _known_name(name: str) -> str:
    for known in MULAN:
        if name.lower() == known.lower():
            return str(known)
    raise ValueError(f"name must be one of {', '.join(MULAN)}, got {name!r}.")


def _pooch() -> Any:
    return import_extra("pooch", "Fetching data needs pooch")
