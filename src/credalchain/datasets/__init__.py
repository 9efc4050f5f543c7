"""Data to try things on."""

from credalchain.datasets.embedded import load_embedded_yeast

__all__ = ["load_embedded_yeast"]
