"""What can be promised: risks, as losses of single rows along a path of caution."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.array_types import FloatArray, Labels
from credalchain._utils.text import plural
from credalchain.labels import ABSTAIN, MISSING

LossFunction = Callable[[Labels, Labels], tuple[Any, Any]]


@dataclass(frozen=True)
class Risk:
    """A risk of whole rows, and of single labels.

    Attributes
    ----------
    description, label_description : str
        What it is the share of, for people.
    row_losses : callable
        Gets labels (n, m) and answers (..., n, m) and gives ``bad`` and ``every``, (..., n) each
        and in [0, 1], ``bad`` at most ``every``: the risk is E[bad] / E[every]. Without ``every``
        (None) it is E[bad].
    label_losses : callable or None
        The same for every label by itself: True or False, (..., n, m). The risk of a label is the
        share of ``bad`` among ``every``.
    is_ratio, label_is_ratio : bool
        Whether ``every`` depends on the answers, so that the risk may rise with caution. Such a
        risk of rows is judged by all labels that are known, also in rows where others are missing.
    row_loss_is_binary : bool
        Whether ``bad`` of a row is 0 or 1.
    needs_positive : bool
        Whether only rows with a positive label count.
    is_monotone : bool
        Whether answering less can only lower the loss of a row.
    """

    name: str
    description: str
    label_description: str
    row_losses: LossFunction
    label_losses: LossFunction | None
    is_ratio: bool
    label_is_ratio: bool
    row_loss_is_binary: bool = False
    needs_positive: bool = False
    is_monotone: bool = False

    def losses(self, truth: Labels, answers: Labels, level: float) -> FloatArray:
        """(..., n) in [0, 1], with a mean of at most ``level`` if and only if the risk is."""
        return shifted(*self.row_losses(truth, answers), level)

    def estimate(self, truth: Labels, answers: Labels) -> FloatArray:
        """The risk in the rows that count, (...,); 0 where nothing does."""
        rows = evaluable_rows(self, truth)
        bad, every = self.row_losses(truth[rows], answers[..., rows, :])
        if every is None:
            return np.asarray(np.sum(bad, axis=-1) / max(len(rows), 1))
        total = np.sum(every, axis=-1)
        return np.asarray(np.sum(bad, axis=-1) / np.where(total > 0, total, 1.0))


def shifted(bad: Any, every: Any, level: float) -> FloatArray:
    """Losses of rows in [0, 1]: the risk bad / every is above ``level`` where their mean is."""
    if every is None:
        return np.asarray(bad, dtype=np.float64)
    return np.asarray(bad - level * every + level, dtype=np.float64)


def evaluable_rows(risk: Risk, truth: Labels) -> NDArray[np.int64]:
    """Return the rows that say something about a risk of whole rows.

    Those without missing labels, or with a label that is known if answers are what counts.
    """
    known = truth != MISSING
    is_evaluable = known.any(axis=1) if risk.is_ratio else known.all(axis=1)
    if risk.needs_positive:
        is_evaluable &= (truth == 1).any(axis=1)
    return np.flatnonzero(is_evaluable)


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
            row_loss_is_binary=True,
            is_monotone=True,
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
            "a row's positive labels that are answered no, on average over rows that have such",
            "rows with the label that are answered no",
            _missed_positives,
            _label_missed_positives,
            is_ratio=False,
            label_is_ratio=False,
            needs_positive=True,
            is_monotone=True,
        ),
    )
}
"""By name."""


def own_risk(function: Callable[[Labels, Labels], Any]) -> Risk:
    """A function of (truth, answers), both (n, m), that gives a loss in [0, 1] for each row."""
    name = getattr(function, "__name__", "own risk")

    def checked_losses(truth: Labels, answers: Labels) -> FloatArray:
        losses = np.asarray(function(truth, answers), dtype=np.float64)
        if losses.shape != (len(truth),):
            raise ValueError(
                f"{name} must give a number from 0 to 1 for each of "
                f"{plural(len(truth), 'row')}, got an array of shape {losses.shape}."
            )
        invalid = losses[~((losses >= 0) & (losses <= 1))]
        if len(invalid):
            raise ValueError(f"{name} must give numbers from 0 to 1, got {invalid[0]!r}.")
        return losses

    def row_losses(truth: Labels, answers: Labels) -> tuple[FloatArray, None]:
        if len(truth) == 0:
            return np.zeros(answers.shape[:-1]), None
        nothing = checked_losses(truth, np.full_like(truth, ABSTAIN))
        if nothing.any():
            raise ValueError(
                f"{name} must give 0 for a row where nothing is answered, got {nothing.max():g}: "
                "leaving labels open could not keep the promise."
            )
        stack = answers.reshape(-1, *answers.shape[-2:])
        return np.array(
            [checked_losses(truth, answers_at_value) for answers_at_value in stack]
        ).reshape(answers.shape[:-1]), None

    return Risk(name, name, name, row_losses, None, is_ratio=False, label_is_ratio=False)
