"""Real data that comes inside another package, so that nothing has to be downloaded."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
