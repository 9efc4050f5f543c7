"""What was promised, what was found, and whether it still holds: for people."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from credalchain.array_types import FloatArray
from credalchain.promises.risks import RISKS
from credalchain.promises.statistics import fewest_rows, rows_to_notice
from credalchain.text import plural
from credalchain.validation import check_choice

GUARANTEES = {
    "conformal": "on average over calibration rows, not for each model (conformal risk control)",
    "learn_then_test": "with confidence {confidence:.4g} (learn then test)",
    "cross_conformal": "on average over training rows, because all fold models must agree "
    "(cross-validation conformal risk control)",
    "cross_fit": "no guarantee: chosen by cross-validation, then fitted again to all rows",
}
"""What is known of the answers, by method."""

_BY_ANSWERS = {name for name, risk in RISKS.items() if risk.is_ratio}


@dataclass(frozen=True)
class PromiseResult:
    """One promise, and what the calibration rows say of it.

    Attributes
    ----------
    risk : str
    level : float
        The risk promised at most.
    label : str or None
        The label it is about; None: whole rows.
    confidence : float or None
        None: it holds on average. Promises about several labels share what may go wrong, so this
        may be more than was asked for.
    value : float or None
        Of the caution parameter; None: nothing is answered.
    n_rows : int
        Calibration rows that count: those without missing labels (selective_error and
        positive_error: with a known one); for a label, those where it was observed, answered,
        answered yes or true, as the risk says.
    estimate : float
        The risk in these rows, at this value.
    interval : tuple of float
        In which the risk lies with 95 % confidence (Clopper and Pearson, or Hoeffding).
    completeness : float
        Share of labels (or of this label's rows) answered in the calibration rows, as in
        :class:`PromiseReport`.
    upper_bound : float
        The most that the risk of this model may be by the calibration rows, with 95 % confidence
        for all promises together.
    reason : str
        Why nothing is answered; empty if something is.
    """

    risk: str
    level: float
    label: str | None
    confidence: float | None
    value: float | None
    n_rows: int
    estimate: float
    interval: tuple[float, float]
    completeness: float
    upper_bound: float = 1.0
    reason: str = ""

    @property
    def level_to_check(self) -> float:
        """What new rows are tested against.

        A promise with confidence: its level. On average: the most that the calibration rows leave
        open, since the risk of one model may be above the level.
        """
        return self.level if self.confidence is not None else max(self.level, self.upper_bound)

    def rows_needed(self, level: float) -> int:
        """Calibration rows without which ``level`` cannot be promised, even if none is wrong."""
        return fewest_rows(level, self.confidence)

    def lines(self, parameter: str, unit: str = "calibration rows") -> list[str]:
        """In words. ``unit`` is what a promise needs more of to be tighter."""
        lines = [f"promised: {promise_words(self.risk, self.label)}: at most {self.level:.4g}"]
        if self.value is None:
            return [*lines, f"  nothing is answered: {self.reason}"]
        low, high = self.interval
        return [
            *lines,
            f"  chosen: {parameter} = {self.value:.4g}, which answers {self.completeness:.1%}",
            f"  in {plural(self.n_rows, 'calibration row')}: {self.estimate:.3f} "
            f"(between {low:.3f} and {high:.3f} with 95 % confidence)",
            f"  half the level needs at least {self.rows_needed(self.level / 2)} {unit}, more if "
            "there are errors",
        ]


def promise_words(risk: str, label: str | None) -> str:
    """What the risk is the share of."""
    if risk not in RISKS:
        return risk
    known = RISKS[risk]
    return known.description if label is None else f"{known.label_description}, for {label}"


@dataclass(frozen=True)
class PromiseReport:
    """What was promised, what was found, and what holds.

    Attributes
    ----------
    method : {"conformal", "learn_then_test", "cross_conformal", "cross_fit"}
    confidence : float or None
        That all promises are kept; None: each is kept on average.
    parameter : str
        The name of the caution parameter.
    n_rows : int
        Calibration rows; one of each group.
    n_incomplete : int
        Those of them with missing labels. Promises about whole rows leave them out; others, and
        selective_error and positive_error, use the labels that are known.
    completeness : float
        Share of labels answered in the calibration rows; those in ``constant`` do not count.
    yes : float
        Share of these answers that are yes.
    promises : tuple of PromiseResult
    not_promised : tuple of str
        Labels about which nothing is promised, where promises are about single labels. They are
        answered as the estimator does by itself.
    notes : tuple of str
        About the choice of calibration rows: groups, and what is assumed of a fitted estimator.
    constant : tuple of str
        Labels that are always yes or always no in the rows given to ``fit``.
    """

    method: str
    confidence: float | None
    parameter: str
    n_rows: int
    n_incomplete: int
    completeness: float
    yes: float
    promises: tuple[PromiseResult, ...]
    not_promised: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    constant: tuple[str, ...] = ()

    def check_state(self, promised: list[tuple[str, float, str | None]]) -> None:
        """Validate a stored report about these risks, levels and labels."""
        check_choice("method", self.method, tuple(GUARANTEES))
        if [(result.risk, result.level, result.label) for result in self.promises] != promised:
            raise ValueError("report_ is not about what is promised.")
        str(self)  # raises where a number is missing

    @property
    def guarantee(self) -> str:
        """What holds, and what it rests on."""
        text = GUARANTEES[self.method].format(confidence=self.confidence)
        labels = {result.label for result in self.promises}
        if len(labels) > 1 and self.confidence is not None:
            text += f", split evenly over {len(labels)} labels"
        if self.method != "cross_fit":
            text += ", if new rows are like these (exchangeable)"
        if self.n_incomplete:
            by_answers = [
                result.label is None and result.risk in _BY_ANSWERS for result in self.promises
            ]
            rates = ", equally often for every label" if any(by_answers) else ""
            text += (
                f" and labels are missing completely at random{rates}: "
                f"{plural(self.n_incomplete, 'row')} with missing labels left out where they say "
                "nothing"
            )
        return text

    def __str__(self) -> str:
        agree = self.method == "cross_conformal"
        unit = "folds" if agree else "calibration rows"
        lines = [line for result in self.promises for line in result.lines(self.parameter, unit)]
        lines += [f"guarantee: {self.guarantee}", *self.notes]
        if self.not_promised:
            lines.append(f"nothing is promised about: {', '.join(self.not_promised)}")
        whose = " by one fold model, and fewer where all must agree" if agree else ""
        lines.append(
            f"together: {self.completeness:.1%} of the labels answered in "
            f"{plural(self.n_rows, 'calibration row')}{whose}; "
            f"{self.yes:.1%} of these answers are yes"
        )
        if self.constant:
            lines.append(f"not counted, because constant: {', '.join(self.constant)}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class PromiseTest:
    """Whether one promise still holds.

    Attributes
    ----------
    promise : PromiseResult
    confidence : float
        That it is not called broken if it holds.
    estimate : float
        The risk in the rows looked at.
    evidence : ndarray of shape (n_rows,)
        Against the promise, after every row that counts: what gamblers who bet on errors would
        have made of 1. If the promise holds, it ever reaches 1 / a with probability a at most.
    rows : ndarray of shape (n_rows,)
        Which of the rows looked at these are, counted from 0.
    """

    promise: PromiseResult
    confidence: float
    estimate: float
    evidence: FloatArray
    rows: NDArray[np.int64]

    @property
    def n_rows(self) -> int:
        """Rows that count."""
        return len(self.evidence)

    @property
    def broken_at(self) -> int | None:
        """The row after which the promise counts as broken, from 1; None if it does not."""
        over = np.flatnonzero(self.evidence >= 1 / (1 - self.confidence))
        return int(self.rows[over[0]]) + 1 if len(over) else None

    @property
    def verdict(self) -> str:
        """One of "broken", "holds so far", "too few rows to say", "nothing is answered".

        Rows are too few if twice the level could easily go unnoticed.
        """
        if self.promise.value is None:
            return "nothing is answered"
        if self.broken_at is not None:
            return "broken"
        enough = rows_to_notice(self.promise.level_to_check, self.confidence)
        return "holds so far" if self.n_rows >= enough else "too few rows to say"

    def __str__(self) -> str:
        after = "" if self.broken_at is None else f" (seen after row {self.broken_at})"
        if self.verdict == "holds so far" and self.estimate > self.promise.level:
            after = ", though above the level in these rows"
        description = promise_words(self.promise.risk, self.promise.label)
        level, tested = self.promise.level, self.promise.level_to_check
        line = (
            f"{self.verdict}{after}: {description}: {self.estimate:.3f} in "
            f"{plural(self.n_rows, 'row')}, "
            f"at most {level:.4g} promised"
        )
        if self.promise.value is not None and tested > level:
            line += f" on average, which leaves up to {tested:.3f} open for this model"
        elif self.broken_at is None and self.estimate > level:
            line += ", which may be chance"
        return line


@dataclass(frozen=True, eq=False)
class PromiseCheck:
    """Whether promises still hold.

    Attributes
    ----------
    confidence : float
        That none of them is called broken if all hold.
    tests : tuple of PromiseTest
        One for each promise.
    """

    confidence: float
    tests: tuple[PromiseTest, ...]

    @property
    def verdict(self) -> str:
        """The worst of all tests' verdicts."""
        verdicts = {test.verdict for test in self.tests}
        order = ("broken", "too few rows to say", "holds so far", "nothing is answered")
        return next(verdict for verdict in order if verdict in verdicts)

    @property
    def broken_at(self) -> int | None:
        """The first row after which one of them counts as broken, from 1; None if none does."""
        rows = [test.broken_at for test in self.tests if test.broken_at is not None]
        return min(rows, default=None)

    def __str__(self) -> str:
        lines = [str(test) for test in self.tests]
        return "\n".join([*lines, f"judged with confidence {self.confidence:g}"])
