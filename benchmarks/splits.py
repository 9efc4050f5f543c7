"""The data sets as category codes, cut into training rows and a test fold."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from credalchain import Discretizer
from credalchain.datasets import load_mulan

DENSE = ("emotions", "scene", "yeast", "CAL500")
TEXT = ("medical", "enron")
LARGE = 5000  # rows of a batch, at the least


@dataclass(frozen=True)
class Split:
    """Codes (uint8, or CSR for text) and labels of one split; ``batch`` repeats the test rows."""

    name: str
    training: Any
    labels: np.ndarray
    test: Any
    batch: Any
    n_categories: int
    order: np.ndarray

    @property
    def is_text(self) -> bool:
        return bool(sparse.issparse(self.training))


def load_split(name: str) -> Split:
    data = load_mulan(name)
    bins = Discretizer(6).fit(data.X)
    codes = bins.transform(data.X)
    codes = codes.tocsr() if sparse.issparse(codes) else codes.astype(np.uint8)
    rng = np.random.default_rng(0)
    shuffled = rng.permutation(len(data.labels))
    test, training = np.split(shuffled, [len(shuffled) // 10])
    copies = -(-LARGE // len(test))
    few = codes[np.sort(test)]
    is_text = sparse.issparse(few)
    batch = sparse.vstack([few] * copies).tocsr() if is_text else np.tile(few, (copies, 1))
    return Split(
        name,
        codes[np.sort(training)],
        data.labels[np.sort(training)],
        few,
        batch,
        int(bins.n_categories_.max()),
        rng.permutation(data.labels.shape[1]),
    )
