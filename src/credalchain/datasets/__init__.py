"""Readers, the data sets of the paper, and corruption of labels."""

from credalchain.datasets.files import (
    MultilabelDataset,
    read_arff,
    read_file,
    read_meka,
    read_mulan,
    read_table,
)
from credalchain.datasets.registry import (
    MULAN,
    DataFile,
    DataUnavailableError,
    EmbeddedData,
    load,
    load_embedded_yeast,
    load_mulan,
)

__all__ = [
    "MULAN",
    "DataFile",
    "DataUnavailableError",
    "EmbeddedData",
    "MultilabelDataset",
    "load",
    "load_embedded_yeast",
    "load_mulan",
    "read_arff",
    "read_file",
    "read_meka",
    "read_mulan",
    "read_table",
]
