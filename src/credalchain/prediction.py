"""What a cautious classifier answers: labels in {0, 1, *} with their bounds."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain.bases.protocol import Exactness
from credalchain.labels import ABSTAIN
from credalchain.odds import probabilities

STAR = "*"


@dataclass(frozen=True, eq=False, repr=False)
class CredalPrediction:
    """Partial predictions for a batch of rows.

    Attributes
    ----------
    labels : ndarray of int8, shape (n, m)
        1, 0, or -1 (``ABSTAIN``) for "I don't know".
    log_odds : ndarray of float64, shape (n, m, 2)
        Lower and upper log-odds of each label being 1, given the row and the labels
        before it in the chain. The labels are decided from these exactly, never from
        ``interval``, in which small differences can vanish.
    exactness : tuple of Exactness, one per label
    label_names : tuple of str
    index : row names of the input if it was a data frame, else None
    """

    labels: NDArray[np.int8]
    log_odds: NDArray[np.float64]
    exactness: tuple[Exactness, ...]
    label_names: tuple[str, ...]
    index: Any = field(default=None)

    @cached_property
    def interval(self) -> NDArray[np.float64]:
        """Lower and upper probability of each label, (n, m, 2)."""
        return probabilities(self.log_odds)

    @property
    def lower(self) -> NDArray[np.float64]:
        return self.interval[..., 0]

    @property
    def upper(self) -> NDArray[np.float64]:
        return self.interval[..., 1]

    @property
    def abstained(self) -> NDArray[np.bool_]:
        """Which labels were left open, (n, m)."""
        return np.asarray(self.labels == ABSTAIN)

    def to_frame(self, *, intervals: bool = False) -> Any:
        """A pandas data frame with ``pd.NA`` for a label left open.

        Parameters
        ----------
        intervals : bool
            Add the columns ``<label>_lower`` and ``<label>_upper``.
        """
        try:
            import pandas as pd
        except ImportError as error:  # pragma: no cover - pandas is there in our tests
            raise ImportError("to_frame needs pandas: pip install pandas") from error
        endings = ("", "_lower", "_upper") if intervals else ("",)
        names = [name + ending for name in self.label_names for ending in endings]
        if len(set(names)) < len(names):
            raise ValueError(f"these labels do not give different column names: {names}.")
        columns: dict[str, Any] = {}
        for j, name in enumerate(self.label_names):
            answered = pd.array(self.labels[:, j], dtype="Int8")
            answered[self.abstained[:, j]] = pd.NA
            columns[name] = answered
            if intervals:
                columns[f"{name}_lower"] = self.lower[:, j]
                columns[f"{name}_upper"] = self.upper[:, j]
        return pd.DataFrame(columns, index=self.index)

    def to_strings(self) -> NDArray[np.str_]:
        """Labels as "1", "0" and "*", for people."""
        return np.array(["0", "1", STAR])[self.labels]

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        n, m = self.labels.shape
        head = f"CredalPrediction: {n} rows, {m} labels, {int(self.abstained.sum())} left open"
        shown = self.to_strings()[:10]
        widths = [max(len(name), 1) for name in self.label_names]
        if m > 20:
            return head
        lines = [" ".join(self.label_names)]
        lines += [
            " ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in shown
        ]
        if n > len(shown):
            lines.append("...")
        return "\n".join([head, *lines])
