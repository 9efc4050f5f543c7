"""Data to try things on."""

from credalchain.datasets.embedded import EmbeddedData, load_embedded_yeast

__all__ = ["EmbeddedData", "load_embedded_yeast"]
