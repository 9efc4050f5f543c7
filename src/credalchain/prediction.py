"""Predictions of classifiers: labels, bounds, and the exactness of the bounds."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from credalchain._utils import notebook
from credalchain._utils.array_types import FloatArray, Labels
from credalchain._utils.text import plural, visible
from credalchain._utils.validation import import_extra
from credalchain.labels import ABSTAIN, and_more, select_labels
from credalchain.typing import MatrixLike

_CHUNK_SIZE = 2**15  # numbers: they stay in a cache from one operation to the next


def probabilities(log_odds: FloatArray) -> FloatArray:
    """Compute 1 / (1 + exp(-x)) with numpy's vectorised exponential."""
    result = np.empty(log_odds.shape)  # in C order, so that reshape below gives a view of it
    flat_input, flat_output = log_odds.reshape(-1), result.reshape(-1)
    with np.errstate(over="ignore"):  # exp of a large number is infinite, and its inverse 0
        for start in range(0, len(flat_input), _CHUNK_SIZE):
            part = flat_output[start : start + _CHUNK_SIZE]
            np.negative(flat_input[start : start + _CHUNK_SIZE], out=part)
            np.exp(part, out=part)
            part += 1.0
            np.reciprocal(part, out=part)
    return result


def log_odds(probability: FloatArray) -> FloatArray:
    """Compute log(p / (1 - p)); -inf for 0 and inf for 1."""
    with np.errstate(divide="ignore"):
        return np.log(probability) - np.log1p(-probability)


LogOdds = NDArray[np.float64]


Ranks = NDArray[np.int8]  # of Exactness


Order = NDArray[np.int64]


class Exactness(StrEnum):
    """Relation of the returned bounds to the defined ones, from best to worst.

    Outer bounds contain the defined ones, inner bounds lie inside them.

    See Also
    --------
    CredalPrediction : Has the exactness of its bounds.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier, Exactness
    >>> X, Y = [["a"], ["a"], ["b"], ["b"]], [[1, 0], [1, 1], [0, 0], [0, 0]]
    >>> prediction = CredalChainClassifier(s=0.5, order="given").fit(X, Y).infer([["a"]])
    >>> prediction.exactness[0] is Exactness.EXACT
    True
    >>> [str(exactness) for exactness in Exactness]
    ['exact', 'outer', 'inner', 'approximate']
    """

    EXACT = "exact"
    OUTER = "outer"
    INNER = "inner"
    APPROXIMATE = "approximate"


RANKS = {exactness: rank for rank, exactness in enumerate(Exactness)}
"""0 for the best: arrays hold these numbers."""


@dataclass(frozen=True)
class Answer:
    """Answer of a model about n rows and m labels, for all strategies and values of s.

    ``labels`` (strategies, values, n, m) in {0, 1, -1}; ``log_odds`` (strategies, values, n, m, 2),
    lower and upper, if bounds were asked for; ``exactness`` as ranks, like ``labels``;
    ``interval``, like ``log_odds``, where the model gave probabilities: going to log-odds and back
    would round them. ``visited``, like ``labels``, are the labels in the order of visits, where
    every row has its own order.
    """

    labels: Labels
    log_odds: LogOdds | None
    exactness: Ranks
    interval: NDArray[np.float64] | None = None
    visited: Order | None = None


def uniform_exactness(exactness: Exactness, shape: tuple[int, ...]) -> Ranks:
    """Return the same rank in all cells, as a view that takes no memory."""
    return np.broadcast_to(np.int8(RANKS[exactness]), shape)


if TYPE_CHECKING:
    import pandas as pd

ABSTAIN_TEXT = "*"
_EXACTNESS = list(Exactness)
_MAX_ROWS, _MAX_LABELS = 10, 20  # in a notebook
NEARLY_NOTHING = 0.05  # share of labels answered below which there is a hint
_FEW_CELLS = 50  # too few for a meaningful share


@dataclass(frozen=True, eq=False, repr=False)
class CredalPrediction:
    """Partial predictions for a batch of rows, with the bounds behind them.

    Parameters
    ----------
    labels : ndarray of int8, shape (n_samples, n_labels)
        Labels 1, 0, or -1 (``ABSTAIN``) for "I don't know".
    log_odds : ndarray of float64, shape (n_samples, n_labels, 2)
        Lower and upper log-odds of each label being 1, given the row and the labels
        before it in the chain. The labels are decided from these exactly, never from
        ``interval``, in which small differences can vanish.
    exactness : tuple of Exactness
        Exactness of the least exact row of each label; see ``exactness_by_row`` for all rows.
    label_names : tuple of str
        Names of the labels.
    index : index, default=None
        Row names of the input, if it was a data frame.
    model_interval : ndarray of float64, shape (n_samples, n_labels, 2), default=None
        Bounds as probabilities, if the model gave these; else they follow from ``log_odds``.
    exactness_ranks : ndarray of int8, shape (n_samples, n_labels), default=None
        Exactness of every row and label, as positions in ``list(Exactness)``.

    Attributes
    ----------
    interval : ndarray of float64, shape (n_samples, n_labels, 2)
        Lower and upper probability of each label.
    lower, upper : ndarray of float64, shape (n_samples, n_labels)
        Lower and upper probability of each label, as separate arrays.
    abstained : ndarray of bool, shape (n_samples, n_labels)
        True for labels that were left open.
    exactness_by_row : ndarray of Exactness, shape (n_samples, n_labels)
        Exactness of every single pair of bounds.

    See Also
    --------
    Exactness : Relation of the bounds to the defined ones.
    credalchain.plotting.plot_predictions : Plot some rows of a prediction.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier
    >>> X = [["sun"], ["sun"], ["sun"], ["rain"], ["rain"], ["fog"]]
    >>> Y = [[1, 0], [1, 0], [1, None], [0, 1], [0, 1], [None, 1]]
    >>> chain = CredalChainClassifier(s=0.5, order="given").fit(X, Y)
    >>> prediction = chain.infer([["sun"], ["fog"]])
    >>> prediction
    CredalPrediction: 2 rows, 2 labels: 1 yes, 1 no, 2 left open
    label0 label1
         1      0
         *      *
    >>> prediction.interval.shape
    (2, 2, 2)
    """

    labels: NDArray[np.int8]
    log_odds: NDArray[np.float64]
    exactness: tuple[Exactness, ...]
    label_names: tuple[str, ...]
    index: Any = field(default=None)
    model_interval: NDArray[np.float64] | None = field(default=None)
    exactness_ranks: Ranks | None = field(default=None)

    @classmethod
    def from_answer(
        cls, answer: Answer, strategy: int, label_names: Iterable[str], X: MatrixLike
    ) -> "CredalPrediction":
        """Return the prediction of one strategy from a model's answer, for the first s.

        Parameters
        ----------
        answer : Answer
            Answer of ``model_.infer``.
        strategy : int
            Number of the strategy in the request.
        label_names : iterable of str
            Names of the labels.
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows, for their names.

        Returns
        -------
        CredalPrediction
            Labels and bounds.
        """
        assert answer.log_odds is not None
        exactness = answer.exactness[strategy, 0]
        rows = exactness[:1] if exactness.strides[0] == 0 else exactness  # all alike, or not
        index = getattr(X, "index", None)
        return cls(
            answer.labels[strategy, 0],
            answer.log_odds[strategy, 0],
            tuple(_EXACTNESS[rank] for rank in rows.max(axis=0, initial=0)),
            tuple(label_names),
            None if callable(index) else index,
            None if answer.interval is None else answer.interval[strategy, 0],
            exactness,
        )

    @cached_property
    def interval(self) -> NDArray[np.float64]:
        """Lower and upper probability of each label, (n, m, 2)."""
        if self.model_interval is not None:
            return self.model_interval
        return probabilities(self.log_odds)

    @cached_property
    def exactness_by_row(self) -> NDArray[Any]:
        """Exactness of every single pair of bounds, (n, m)."""
        if self.exactness_ranks is None:
            return np.broadcast_to(np.array(self.exactness, dtype=object), self.labels.shape)
        return np.array(_EXACTNESS, dtype=object)[self.exactness_ranks]

    @property
    def lower(self) -> NDArray[np.float64]:
        """Lower probability of each label, (n, m)."""
        return self.interval[..., 0]

    @property
    def upper(self) -> NDArray[np.float64]:
        """Upper probability of each label, (n, m)."""
        return self.interval[..., 1]

    @property
    def abstained(self) -> NDArray[np.bool_]:
        """True for labels that were left open, (n, m)."""
        return np.asarray(self.labels == ABSTAIN)

    def to_frame(self, *, intervals: bool = False) -> "pd.DataFrame":
        """Return a pandas data frame with ``pd.NA`` for a label left open.

        Parameters
        ----------
        intervals : bool, default=False
            If True, add the columns ``<label>_lower`` and ``<label>_upper``.

        Returns
        -------
        DataFrame
            A column for each label.
        """
        pandas = import_extra("pandas", "to_frame needs pandas: pip install pandas")
        endings = ("", "_lower", "_upper") if intervals else ("",)
        names = [name + ending for name in self.label_names for ending in endings]
        if len(set(names)) < len(names):
            raise ValueError(f"label names must give different column names, got {names}.")
        open_labels = self.abstained
        columns: dict[str, Any] = {}
        for j, name in enumerate(self.label_names):
            columns[name] = pandas.arrays.IntegerArray(self.labels[:, j].copy(), open_labels[:, j])
            if intervals:
                columns |= {f"{name}_lower": self.lower[:, j], f"{name}_upper": self.upper[:, j]}
        frame: pd.DataFrame = pandas.DataFrame(columns, index=self.index)
        return frame

    def to_strings(self) -> NDArray[np.str_]:
        """Return labels as "1", "0" and "*", for display.

        Returns
        -------
        ndarray of str, shape (n_samples, n_labels)
            The labels.
        """
        return np.array(["0", "1", ABSTAIN_TEXT])[self.labels]

    def _repr_html_(self) -> str:
        """Return a table for notebooks; of many labels, open ones first."""
        n, m = self.labels.shape
        rows = range(min(n, _MAX_ROWS))
        shown = select_labels(self.labels[rows], self.interval[rows], _MAX_LABELS).tolist()
        head = self._in_short()
        for n_shown, n_all, noun in ((len(shown), m, "label"), (len(rows), n, "row")):
            if n_all > n_shown:
                head += f"; {plural(n_shown, noun)} shown, {and_more(n_shown, n_all)}"
        cells = []
        for i in rows:
            given = zip(
                self.labels[i, shown].tolist(), self.interval[i, shown].tolist(), strict=True
            )
            answers = [notebook.answer(y) + notebook.interval(y, *bounds) for y, bounds in given]
            cells.append([notebook.name_of(i if self.index is None else self.index[i]), *answers])
        names = ["", *(self.label_names[j] for j in shown)]
        return notebook.page(notebook.words(head), notebook.table(names, cells))

    def _in_short(self) -> str:
        """Say how much is answered, with a hint if that is nearly nothing, or everything."""
        n, m = self.labels.shape
        n_open = int(self.abstained.sum())
        n_yes = int((self.labels == 1).sum())
        head = f"{plural(n, 'row')}, {plural(m, 'label')}: "
        head += f"{n_yes} yes, {n * m - n_yes - n_open} no, {n_open} left open"
        if n * m < _FEW_CELLS:
            return head
        answered = 1 - n_open / (n * m)
        head += f" ({answered:.0%} answered)"
        if answered < NEARLY_NOTHING:
            return head + "; choose_caution finds how cautious to be to answer more"
        if n_open == 0:
            return head + "; choose_caution finds how cautious to be to leave doubtful labels open"
        return head

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        lines = [f"CredalPrediction: {self._in_short()}"]
        names = [visible(name) for name in self.label_names]
        if len(names) > 20:
            return lines[0]
        for row in (names, *self.to_strings()[:10]):
            pairs = zip(row, names, strict=True)
            lines.append(" ".join(cell.rjust(len(name)) for cell, name in pairs))
        return "\n".join([*lines, "..."] if len(self) > 10 else lines)
