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
    """A risk: E[bad] / E[all], or E[bad] where ``counts`` gives no second array.

    ``counts(truth, answers)`` gets labels (n, m) and answers (..., n, m) and gives ``bad`` and
    ``all``, (..., n) each and in [0, 1], ``bad`` at most ``all``. ``falls`` is true if more caution
    can only lower it, for predictions that are nested.
    """

    name: str
    words: str
    counts: Counts
    falls: bool
    is_yes_or_no: bool = False

    def losses(self, truth: Labels, answers: Labels, level: float) -> FloatArray:
        """(..., n) in [0, 1], with a mean of at most ``level`` if and only if the risk is."""
        bad, every = self.counts(truth, answers)
        if every is None:
            return np.asarray(bad, dtype=np.float64)
        return np.asarray(bad - level * every + level, dtype=np.float64)

    def estimate(self, truth: Labels, answers: Labels) -> FloatArray:
        """The risk in these rows, (...,); 0 where nothing counts."""
        bad, every = self.counts(truth, answers)
        if every is None:
            return np.asarray(np.mean(bad, axis=-1))
        total = np.sum(every, axis=-1)
        return np.asarray(np.sum(bad, axis=-1) / np.where(total > 0, total, 1.0))


def _wrong(truth: Labels, answers: Labels) -> NDArray[np.bool_]:
    return np.asarray((answers != ABSTAIN) & (truth != MISSING) & (answers != truth))


def _row_error(truth: Labels, answers: Labels) -> tuple[Any, None]:
    return _wrong(truth, answers).any(axis=-1), None


def _selective_error(truth: Labels, answers: Labels) -> tuple[Any, Any]:
    answered = (answers != ABSTAIN) & (truth != MISSING)
    return _wrong(truth, answers).mean(axis=-1), answered.mean(axis=-1)


def _positive_error(truth: Labels, answers: Labels) -> tuple[Any, Any]:
    positive = (answers == 1) & (truth != MISSING)
    return (positive & (truth == 0)).mean(axis=-1), positive.mean(axis=-1)


def _missed_positives(truth: Labels, answers: Labels) -> tuple[Any, None]:
    positives = (truth == 1).sum(axis=-1)
    missed = ((truth == 1) & (answers == 0)).sum(axis=-1)
    return missed / np.maximum(positives, 1), None


RISKS = {
    risk.name: risk
    for risk in (
        Risk("row_error", "rows with a wrong answer", _row_error, True, True),
        Risk("selective_error", "wrong answers among the answers", _selective_error, False),
        Risk("positive_error", "wrong answers among the answers yes", _positive_error, False),
        Risk("missed_positives", "share of a row's labels answered no", _missed_positives, True),
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
    return Risk(name, name, counts, False)
