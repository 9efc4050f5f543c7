"""What can be promised: risks, as losses of single rows along a path of caution."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain.labels import ABSTAIN, MISSING

FloatArray = NDArray[np.float64]
Labels = NDArray[np.int8]
Counts = Callable[[Labels, Labels], tuple[Any, Any]]


@dataclass(frozen=True)
class Risk:
    """A risk of whole rows, and of single labels.

    Attributes
    ----------
    words, label_words : str
        What it is the share of, for people.
    count_rows : callable
        Gets labels (n, m) and answers (..., n, m) and gives ``bad`` and ``every``, (..., n) each
        and in [0, 1], ``bad`` at most ``every``: the risk is E[bad] / E[every]. Without ``every``
        (None) it is E[bad].
    count_labels : callable or None
        The same for every label by itself: True or False, (..., n, m). The risk of a label is the
        share of ``bad`` among ``every``.
    is_ratio, label_is_ratio : bool
        Whether ``every`` depends on the answers, so that the risk may rise with caution.
    row_is_wrong_or_not : bool
        Whether ``bad`` of a row is 0 or 1.
    falls : bool
        Whether answering less can only lower the loss of a row.
    """

    name: str
    words: str
    label_words: str
    count_rows: Counts
    count_labels: Counts | None
    is_ratio: bool
    label_is_ratio: bool
    row_is_wrong_or_not: bool = False
    falls: bool = False

    def losses(self, truth: Labels, answers: Labels, level: float) -> FloatArray:
        """(..., n) in [0, 1], with a mean of at most ``level`` if and only if the risk is."""
        return shifted(*self.count_rows(truth, answers), level)

    def estimate(self, truth: Labels, answers: Labels) -> FloatArray:
        """The risk in these rows, (...,); 0 where nothing counts."""
        bad, every = self.count_rows(truth, answers)
        if every is None:
            return np.asarray(np.mean(bad, axis=-1))
        total = np.sum(every, axis=-1)
        return np.asarray(np.sum(bad, axis=-1) / np.where(total > 0, total, 1.0))


def shifted(bad: Any, every: Any, level: float) -> FloatArray:
    """Losses of rows in [0, 1]: the risk bad / every is above ``level`` where their mean is."""
    if every is None:
        return np.asarray(bad, dtype=np.float64)
    return np.asarray(bad - level * every + level, dtype=np.float64)


def _wrong(truth: Labels, answers: Labels) -> NDArray[np.bool_]:
    return np.asarray((answers != ABSTAIN) & (truth != MISSING) & (answers != truth))


def _answered(truth: Labels, answers: Labels) -> NDArray[np.bool_]:
    return np.asarray((answers != ABSTAIN) & (truth != MISSING))


def _observed(truth: Labels, answers: Labels) -> NDArray[np.bool_]:
    return np.broadcast_to(truth != MISSING, answers.shape)


def _row_error(truth: Labels, answers: Labels) -> tuple[Any, None]:
    return _wrong(truth, answers).any(axis=-1), None


def _label_error(truth: Labels, answers: Labels) -> tuple[Any, Any]:
    return _wrong(truth, answers), _observed(truth, answers)


def _selective_error(truth: Labels, answers: Labels) -> tuple[Any, Any]:
    return _wrong(truth, answers).mean(axis=-1), _answered(truth, answers).mean(axis=-1)


def _label_selective_error(truth: Labels, answers: Labels) -> tuple[Any, Any]:
    return _wrong(truth, answers), _answered(truth, answers)


def _positive_error(truth: Labels, answers: Labels) -> tuple[Any, Any]:
    bad, positive = _label_positive_error(truth, answers)
    return bad.mean(axis=-1), positive.mean(axis=-1)


def _label_positive_error(truth: Labels, answers: Labels) -> tuple[Any, Any]:
    positive = (answers == 1) & (truth != MISSING)
    return positive & (truth == 0), positive


def _missed_positives(truth: Labels, answers: Labels) -> tuple[Any, None]:
    missed, positives = _label_missed_positives(truth, answers)
    return missed.sum(axis=-1) / np.maximum(positives.sum(axis=-1), 1), None


def _label_missed_positives(truth: Labels, answers: Labels) -> tuple[Any, Any]:
    return (truth == 1) & (answers == 0), np.broadcast_to(truth == 1, answers.shape)


RISKS = {
    risk.name: risk
    for risk in (
        Risk(
            "row_error",
            "rows with a wrong answer",
            "rows where the answer is wrong",
            _row_error,
            _label_error,
            is_ratio=False,
            label_is_ratio=False,
            row_is_wrong_or_not=True,
            falls=True,
        ),
        Risk(
            "selective_error",
            "wrong answers among the answers",
            "wrong answers among the answers",
            _selective_error,
            _label_selective_error,
            is_ratio=True,
            label_is_ratio=True,
        ),
        Risk(
            "positive_error",
            "wrong answers among the answers yes",
            "wrong answers among the answers yes",
            _positive_error,
            _label_positive_error,
            is_ratio=True,
            label_is_ratio=True,
        ),
        Risk(
            "missed_positives",
            "a row's positive labels that are answered no",
            "rows with the label that are answered no",
            _missed_positives,
            _label_missed_positives,
            is_ratio=False,
            label_is_ratio=False,
            falls=True,
        ),
    )
}
"""By name."""


def own_risk(function: Callable[[Labels, Labels], Any]) -> Risk:
    """A function of (truth, answers), both (n, m), that gives a loss in [0, 1] for each row."""

    def counts(truth: Labels, answers: Labels) -> tuple[FloatArray, None]:
        stack = answers.reshape(-1, *answers.shape[-2:])
        found = np.array([np.asarray(function(truth, one), dtype=np.float64) for one in stack])
        if found.shape != (len(stack), len(truth)) or not ((found >= 0) & (found <= 1)).all():
            raise ValueError(
                f"{function!r} must give a number from 0 to 1 for each of {len(truth)} rows, got "
                f"an array of shape {found.shape[1:]}."
            )
        return found.reshape(answers.shape[:-1]), None

    name = getattr(function, "__name__", "own risk")
    return Risk(name, name, name, counts, None, is_ratio=False, label_is_ratio=False)
