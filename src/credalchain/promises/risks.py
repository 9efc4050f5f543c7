"""Risks that can be promised, as losses of single rows along a path of caution."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.array_types import FloatArray, Labels
from credalchain._utils.text import plural
from credalchain._utils.validation import check_choice
from credalchain.labels import ABSTAIN, MISSING

LossFunction = Callable[[Labels, Labels], tuple[Any, Any]]


@dataclass(frozen=True)
class Risk:
    """Risk of whole rows, and of single labels.

    Attributes
    ----------
    description, label_description : str
        Descriptions for reports, such as "rows with a wrong answer".
    row_losses : callable
        Gets labels (n, m) and answers (..., n, m) and gives ``bad`` and ``every``, (..., n) each
        and in [0, 1], ``bad`` at most ``every``: the risk is E[bad] / E[every]. Without ``every``
        (None) it is E[bad].
    label_losses : callable or None
        The same for every label by itself: True or False, (..., n, m). The risk of a label is the
        share of ``bad`` among ``every``.
    is_ratio : bool
        True if ``every`` depends on the answers, so that the risk may rise with caution. Such a
        risk of rows is judged by all labels that are known, also in rows where others are missing.
    row_loss_is_binary : bool
        True if ``bad`` of a row is 0 or 1.
    needs_positive : bool
        True if only rows with a positive label count.
    is_monotone : bool
        True if answering less can only lower the loss of a row.
    side : {0, 1} or None
        The answers that it depends on: only no, only yes, or both.
    """

    name: str
    description: str
    label_description: str
    row_losses: LossFunction
    label_losses: LossFunction | None = None
    is_ratio: bool = False
    row_loss_is_binary: bool = False
    needs_positive: bool = False
    is_monotone: bool = False
    side: int | None = None

    def counted(self, answers: Labels) -> NDArray[np.int64]:
        """Return how many answers of each row it depends on, (..., n)."""
        on = answers != ABSTAIN if self.side is None else answers == self.side
        return np.asarray(on.sum(axis=-1))


def mean_loss(bad: Any, every: Any) -> FloatArray:
    """Compute the risk in rows with these losses, (...,); 0 where nothing counts."""
    total = np.sum(np.ones_like(bad) if every is None else every, axis=-1)
    return np.asarray(np.sum(bad, axis=-1) / np.where(total > 0, total, 1.0))


def shifted(bad: Any, every: Any, level: float) -> FloatArray:
    """Shift losses into [0, 1]: the risk bad / every is above ``level`` where their mean is."""
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


def _wrong_of_observed(truth: Labels, answers: Labels) -> tuple[Any, Any]:
    observed = np.broadcast_to(truth != MISSING, answers.shape)
    return (answers != ABSTAIN) & observed & (answers != truth), observed


def _wrong_of_answered(truth: Labels, answers: Labels) -> tuple[Any, Any]:
    answered = (answers != ABSTAIN) & (truth != MISSING)
    return answered & (answers != truth), answered


def _wrong_of_yes(truth: Labels, answers: Labels) -> tuple[Any, Any]:
    yes = (answers == 1) & (truth != MISSING)
    return yes & (truth == 0), yes


def _missed_of_positives(truth: Labels, answers: Labels) -> tuple[Any, Any]:
    return (truth == 1) & (answers == 0), np.broadcast_to(truth == 1, answers.shape)


def _any_wrong(truth: Labels, answers: Labels) -> tuple[Any, None]:
    return _wrong_of_observed(truth, answers)[0].any(axis=-1), None


def _share_missed(truth: Labels, answers: Labels) -> tuple[Any, None]:
    missed, positives = _missed_of_positives(truth, answers)
    return missed.sum(axis=-1) / np.maximum(positives.sum(axis=-1), 1), None


def _ratio(name: str, description: str, losses: LossFunction, side: int | None = None) -> Risk:
    """Return a share of what is answered, of rows as of labels."""

    def row_losses(truth: Labels, answers: Labels) -> tuple[Any, Any]:
        bad, every = losses(truth, answers)
        return bad.mean(axis=-1), every.mean(axis=-1)

    return Risk(name, description, description, row_losses, losses, is_ratio=True, side=side)


RISKS = {
    risk.name: risk
    for risk in (
        Risk(
            "row_error",
            "rows with a wrong answer",
            "rows where the answer is wrong",
            _any_wrong,
            _wrong_of_observed,
            row_loss_is_binary=True,
            is_monotone=True,
        ),
        _ratio("selective_error", "wrong answers among the answers", _wrong_of_answered),
        _ratio("positive_error", "wrong answers among the answers yes", _wrong_of_yes, 1),
        Risk(
            "missed_positives",
            "a row's positive labels that are answered no, on average over rows that have such",
            "rows with the label that are answered no",
            _share_missed,
            _missed_of_positives,
            needs_positive=True,
            is_monotone=True,
            side=0,
        ),
    )
}
"""By name."""


def own_risk(function: Callable[[Labels, Labels], Any]) -> Risk:
    """Wrap a function of (truth, answers), both (n, m), that gives each row a loss in [0, 1]."""
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
        losses = np.array([checked_losses(truth, at_value) for at_value in stack])
        return losses.reshape(answers.shape[:-1]), None

    return Risk(name, name, name, row_losses)


@dataclass(frozen=True)
class Promise:
    """Promise that a risk of whole rows, or of one label (its column), is at most ``level``.

    ``confidence`` is None for a promise on average. ``side`` says which answers have a caution of
    their own that keeps it: no (0), yes (1), or None where both have the same. ``asymptotic``: it
    is tested by the normal approximation if losses are not only 0 and 1. ``conservative``: missing
    labels count as whatever makes the answers wrong. ``pooled`` are the labels that it is about if
    they are not all; ``is_chosen``: a pilot chose which.
    """

    risk: Risk
    level: float
    confidence: float | None = None
    label: int | None = None
    side: int | None = None
    asymptotic: bool = False
    conservative: bool = False
    pooled: tuple[int, ...] | None = None
    is_chosen: bool = False

    @property
    def key(self) -> tuple[Any, int | None]:
        """Key of its caution: a label, labels or None for all of them, and a side."""
        return self.pooled if self.label is None else self.label, self.side

    @property
    def columns(self) -> Any:
        """Labels that it is about."""
        if self.pooled is not None:
            return list(self.pooled)
        return slice(None) if self.label is None else slice(self.label, self.label + 1)

    @property
    def has_cells(self) -> bool:
        """True if it is a share of single answers, of all labels."""
        return self.label is None and self.risk.is_ratio

    @property
    def has_limit(self) -> bool:
        """True if it needs a limit to how many answers of a row it depends on."""
        return self.has_cells and self.needs_bets and not self.asymptotic

    def losses(
        self, truth: Labels, answers: Labels, limit: Any = None
    ) -> tuple[NDArray[np.int64], Any, Any]:
        """Return the rows that may count, and their ``bad`` and ``every``, (..., rows) each.

        With a ``limit`` (...,), answers of rows that have more of them are left open, and both are
        in units of it.
        """
        rows, truth = np.arange(len(truth)), truth[:, self.columns]
        if self.label is None and not self.conservative:
            rows = evaluable_rows(self.risk, truth)
        answers, truth = answers[..., self.columns][..., rows, :], truth[rows]
        if self.conservative:
            contrary = np.where(answers == ABSTAIN, np.int8(0), 1 - answers)
            truth = np.where(truth == MISSING, contrary, truth)
        if self.label is not None:
            assert self.risk.label_losses is not None
            bad, every = self.risk.label_losses(truth, answers)
            return rows, bad[..., 0], every[..., 0]
        bad, every = self.risk.row_losses(truth, answers)
        if limit is not None and self.risk.is_ratio:
            limit = np.asarray(limit)[..., None]
            scale = truth.shape[-1] / limit * (self.risk.counted(answers) <= limit)
            bad, every = bad * scale, every * scale
        return rows, bad, every

    @property
    def is_binomial(self) -> bool:
        """True if every row that counts is right or wrong, so that their number is binomial."""
        return self.label is not None or self.risk.row_loss_is_binary

    @property
    def needs_bets(self) -> bool:
        """True if p-values come from losses that are not only 0 and 1."""
        return self.confidence is not None and not self.is_binomial

    @property
    def needs_pilot(self) -> bool:
        """True if a few rows have to plan how the others are tested."""
        is_planned = self.needs_bets or (self.confidence is not None and self.risk.is_ratio)
        return is_planned or self.is_chosen


def read_promises(
    promise: Any,
    confidence: Any,
    names: list[str],
    guarantee: str = "exact",
    missing: str = "ignorable",
) -> list[Promise]:
    """Return the promises, about rows or columns of labels; confidence is split over cautions."""
    levels = {"row_error": 0.1} if promise is None else promise
    if not isinstance(levels, Mapping) or not levels:
        raise ValueError(
            "promise must be a dict with risks and their levels, like {'row_error': 0.1}, "
            f"got {levels!r}."
        )
    if confidence is not None and not is_share(confidence):
        raise ValueError(f"confidence must be between 0 and 1, or None, got {confidence!r}.")
    check_choice("guarantee", guarantee, ("exact", "asymptotic"))
    check_choice("missing", missing, ("ignorable", "conservative"))
    entries: list[tuple[Risk, Any, int | None]] = []
    for name, level in levels.items():
        risk = own_risk(name) if callable(name) else RISKS[check_choice("promise", name, [*RISKS])]
        if not isinstance(level, Mapping):
            entries.append((risk, level, None))
            continue
        if risk.label_losses is None or not level:
            raise ValueError(
                f"promise: levels for single labels are for {', '.join(RISKS)}, got {level!r} "
                f"for {risk.name}."
            )
        for label, value in level.items():  # None: all rows, beside single labels
            column = None if label is None else _label_index(label, names)
            entries.append((risk, value, column))
    labels = {label for _, _, label in entries}
    for risk, level, label in entries:
        if missing == "conservative" and (risk.needs_positive or risk.name not in RISKS):
            raise ValueError(
                "missing='conservative' is for row_error, selective_error and positive_error, got "
                f"a promise of {risk.name}: nothing bounds it if any label may be missing."
            )
        if not is_share(level):
            raise ValueError(
                f"the level of a promise must be more than 0 and less than 1, got {level!r}."
            )
        if sum(r is risk and j == label for r, _, j in entries) > 1:
            raise ValueError(f"promise: {risk.name} of {names[label or 0]!r} is promised twice.")
        if label is None and len(labels) > 1 and not risk.is_monotone:
            raise ValueError(
                f"promise: {risk.name} of all rows does not go with promises about single labels, "
                "whose caution would change it; row_error and missed_positives do."
            )
    sides = {label: {risk.side for risk, _, j in entries if j == label} for label in labels}
    two_sided = {label for label in labels if sides[label] == {0, 1}}
    n_cautions = len(labels) + len(two_sided)
    confidence_each = None if confidence is None else 1 - (1 - confidence) / n_cautions
    return [
        Promise(
            risk,
            float(level),
            confidence_each,
            label,
            risk.side if label in two_sided else None,
            guarantee == "asymptotic",
            missing == "conservative",
        )
        for risk, level, label in entries
    ]


def _label_index(label: Any, names: list[str]) -> int:
    """Return the column of a label, which is given by its name or its number."""
    if not isinstance(label, bool):
        if str(label) in names:
            return names.index(str(label))
        if isinstance(label, (int, np.integer)) and label in range(len(names)):
            return int(label)
    raise ValueError(f"promise: {label!r} is not one of the labels {', '.join(names)}.")


def is_share(value: Any) -> bool:
    """Return whether a value is a number between 0 and 1."""
    is_number = isinstance(value, Real) and not isinstance(value, (bool, Integral))
    return is_number and bool(0 < value < 1)
