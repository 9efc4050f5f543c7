"""The data sets of the paper, from a folder, the user's cache, or the network.

Files are those of the public repository tsoumakas/mulan at a fixed commit, and are checked
against their SHA-256 before they are used.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from credalchain.datasets.dataset import MultilabelDataset
from credalchain.datasets.files import read_mulan

COMMIT = "43f6389095ad71984264db4387a8074b22bc7d4a"
SOURCE = f"https://raw.githubusercontent.com/tsoumakas/mulan/{COMMIT}/data/multi-label/"
FOLDER_VARIABLE = "CREDALCHAIN_DATA"
_TRIES, _PAUSE = 4, 0.5  # seconds, doubled after every try


@dataclass(frozen=True)
class MulanSource:
    """Where a data set is found, and what to cite."""

    domain: str
    arff_sha256: str
    xml_sha256: str
    citation: str
    folder: str = ""  # the name in the repository, if it differs


MULAN = {
    "emotions": MulanSource(
        "music",
        "6f2f790047073d1293ac0872c0d55f2dc98b6177802fc96c6b66b309dfee1e4b",
        "dbce8e6ccbbb2fcbfd9e9edbb230d7ed12692c6e13f59fdbc0161fa9b6cf2dc0",
        "K. Trohidis, G. Tsoumakas, G. Kalliris and I. Vlahavas, Multilabel Classification of "
        "Music into Emotions, ISMIR 2008.",
    ),
    "scene": MulanSource(
        "image",
        "5905548975b69b639ab31a295f7bf1ab7379a3f016450012722d28f660f4b143",
        "55d8b247b949ad5c52e5a73d8c6775ec6e5469ce9682465b45b333b68ee4bcc5",
        "M. R. Boutell, J. Luo, X. Shen and C. M. Brown, Learning multi-label scene "
        "classification, Pattern Recognition 37(9), 2004.",
    ),
    "yeast": MulanSource(
        "biology",
        "55c07a3b6ff885ae338fb6987a1d57f55572b29809922c2822c4885c61230dd7",
        "c3056cc26444b5158b1588d1b73bec9c45429e10f0957ad085903423cb81f247",
        "A. Elisseeff and J. Weston, A kernel method for multi-labelled classification, NIPS 2001.",
    ),
    "CAL500": MulanSource(
        "music",
        "cfe6097ba5fd6e8584e54911ab9783dcab34e898446b7c9370c71d477eae56d3",
        "877e128531268d7661faa3e44f7bb43cbcda829c0895e49879168775b192728c",
        "D. Turnbull, L. Barrington, D. Torres and G. Lanckriet, Semantic Annotation and Retrieval "
        "of Music and Sound Effects, IEEE TASLP 16(2), 2008.",
        folder="cal500",
    ),
    "medical": MulanSource(
        "text",
        "ad0630a9a409ed0023c3bb56a0be7610b635c1ca185c6035e3b198b01167aac4",
        "51fa9d5c09e48caff3f0a0c75db1c9aa85944f8e35451f3ad8bd56fc422286ce",
        "J. P. Pestian et al., A shared task involving multi-label classification of clinical free "
        "text, BioNLP 2007.",
    ),
    "enron": MulanSource(
        "text",
        "d0889ef0576d4e7b5ec0df3b3e4760e476ac11a6e7d7ddeee4c4a34470dedf97",
        "ed40c92d7f613eed51714912cab10dddc4ce456262137d8fef230d44c7f4457b",
        "B. Klimt and Y. Yang, The Enron Corpus: A New Dataset for Email Classification Research, "
        "ECML 2004.",
    ),
    "flags": MulanSource(
        "image",
        "d3ed8b5683f1b27e68069aad2c29388bb57d4caa5041b559e646cc3854a0cd1e",
        "7c9ed21a91b716b91f811323e20ee5a260ea2da62a5edcfeb1b91ec855a48f17",
        "E. Corrêa Gonçalves, A. Plastino and A. A. Freitas, A Genetic Algorithm for Optimizing "
        "the Label Ordering in Multi-label Classifier Chains, ICTAI 2013.",
    ),
}


class DataUnavailableError(OSError):
    """A data set is neither on this machine nor to be had from the network now."""


def load_mulan(name: str) -> MultilabelDataset:
    """One of the data sets of the paper, or flags.

    Looked for in the folder that the environment variable ``CREDALCHAIN_DATA`` names (as
    ``<name>/<name>.arff`` and ``.xml``), then in the user's cache, then downloaded.

    Parameters
    ----------
    name : {"emotions", "scene", "yeast", "CAL500", "medical", "enron", "flags"}
    """
    arff, xml = mulan_files(name)
    data = read_mulan(arff, xml)
    about = MULAN[_known_name(name)]
    return replace(
        data,
        name=_known_name(name),
        description=f"{about.domain} data of the MULAN collection",
        source=SOURCE,
        citation=about.citation,
    )


def mulan_files(name: str) -> tuple[Path, Path]:
    """The ARFF and XML files of a data set, fetched if they are not here yet."""
    name = _known_name(name)
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder:
        local = tuple(Path(folder) / name / f"{name}{suffix}" for suffix in (".arff", ".xml"))
        if all(file.is_file() for file in local):
            return local[0], local[1]
    return fetch(name, SOURCE, cache_folder())


def cache_folder() -> Path:
    """Where downloaded files are kept."""
    return Path(_pooch().os_cache("credalchain"))


def fetch(name: str, source: str, cache: Path, pause: float = _PAUSE) -> tuple[Path, Path]:
    """The two files of a data set from the cache, or from ``source`` into it, checked."""
    pooch = _pooch()
    pooch.get_logger().setLevel("WARNING")  # it would write on stderr, which is ours
    about = MULAN[name]
    remote = about.folder or name
    registry = {
        f"{remote}/{remote}.arff": f"sha256:{about.arff_sha256}",
        f"{remote}/{remote}.xml": f"sha256:{about.xml_sha256}",
    }
    shelf = pooch.create(path=cache / "mulan", base_url=source, registry=registry)
    try:
        files = [
            Path(shelf.fetch(file, downloader=_patient(pooch, pause), progressbar=False))
            for file in registry
        ]
    except ValueError as error:  # pooch: the checksum does not fit; it keeps nothing
        raise DataUnavailableError(
            f"{name}: what {source} gave is not the file we know ({error})"
        ) from error
    except OSError as error:
        raise DataUnavailableError(_offline_message(name, source, error)) from error
    return files[0], files[1]


def _patient(pooch: Any, pause: float) -> Callable[[str, str, Any], None]:
    """A downloader that tries again where that can help: not if the file is not there."""
    import requests

    download = pooch.HTTPDownloader(progressbar=False, timeout=30)

    def download_with_retries(url: str, output: str, shelf: Any) -> None:
        for attempt in range(_TRIES):
            try:
                download(url, output, shelf)
                return
            except requests.RequestException as error:
                answer = getattr(error, "response", None)
                final = answer is not None and answer.status_code < 500
                if final or attempt == _TRIES - 1:
                    raise
                time.sleep(pause * 2**attempt)

    return download_with_retries


def _offline_message(name: str, source: str, error: Exception) -> str:
    remote = MULAN[name].folder or name
    return (
        f"{name} could not be downloaded ({error}). To go on without a network, put "
        f"{source}{remote}/{remote}.arff and {remote}.xml into a folder as {name}/{name}.arff and "
        f"{name}/{name}.xml, and set the environment variable {FOLDER_VARIABLE} to that folder."
    )


def _known_name(name: str) -> str:
    for known in MULAN:
        if name.lower() == known.lower():
            return known
    raise ValueError(f"name must be one of {', '.join(MULAN)}, got {name!r}.")


def _pooch() -> Any:
    try:
        import pooch
    except ImportError as error:
        raise ImportError('Fetching data needs pooch: pip install "credalchain[data]"') from error
    return pooch
