"""Data: readers, the paper's data sets, and damage to labels."""

from credalchain.datasets.dataset import MultilabelDataset
from credalchain.datasets.files import read_arff, read_file, read_meka, read_mulan, read_table
from credalchain.datasets.mulan import MULAN, DataUnavailableError, load_mulan
from credalchain.datasets.registry import DataFile, EmbeddedData, load, load_embedded_yeast

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
