"""Reports on promises, and on tests of whether they still hold."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from credalchain._utils.array_types import FloatArray, IntArray
from credalchain._utils.text import plural
from credalchain._utils.validation import check_choice
from credalchain.labels import and_more
from credalchain.model_selection import caution_in_use, unwrap
from credalchain.promises import statistics
from credalchain.promises.calibration import PILOT_SHARE, Calibration, HeldOut
from credalchain.promises.risks import RISKS, Promise

GUARANTEES = {
    "conformal": "on average over calibration rows, not for each model (conformal risk control)",
    "learn_then_test": "with confidence {confidence:.4g} (learn then test)",
    "cross_fit": "no guarantee: chosen by cross-validation, then fitted again to all rows",
}
"""Guarantees, by method."""

_MAX_POOLED = 6  # names of labels that are shown
_BY_ANSWERS = {name for name, risk in RISKS.items() if risk.is_ratio}


@dataclass(frozen=True)
class PromiseResult:
    """Result for one promise: its level, the chosen value and the estimated risk.

    Parameters
    ----------
    risk : str
        Name of the risk.
    level : float
        Greatest risk promised.
    label : str or None
        Label that the promise is about; None for whole rows.
    confidence : float or None
        None if the promise holds in expectation. The error probability is split over several
        labels, so this may be larger than the confidence requested.
    value : float, default=None
        Value of the caution parameter; None if nothing is answered.
    n_rows : int, default=0
        Calibration rows that count: those without missing labels (selective_error and
        positive_error: with a known one); for a label, those where it was observed, answered,
        answered yes or true, as the risk says.
    estimate : float, default=0.0
        Risk in these rows, at this value.
    interval : tuple of float, default=(0.0, 1.0)
        Interval in which the risk lies with 95 % confidence (Clopper and Pearson, or Hoeffding); of
        ratios over all labels approximate, by the normal distribution.
    completeness : float, default=0.0
        Share of labels (or of this label's rows) answered in the calibration rows, as in
        :class:`PromiseReport`.
    upper_bound : float, default=1.0
        Upper confidence bound of the risk of this model, at 95 % for all promises together.
    reason : str, default=""
        Reason why nothing is answered; empty if something is.
    limit : int, default=None
        Rows with more answers than this (answers yes, for positive_error) are left open: the test
        needs a bound on their number, which is the maximum over the pilot rows.
    exact : bool, default=True
        False if the test uses the normal approximation.
    pooled : tuple of str, default=()
        Labels that the promise is about, pooled over rows, if others have promises of their own.

    Examples
    --------
    >>> import numpy as np
    >>> from credalchain import CredalChainClassifier, PromisedClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 3))
    >>> Y = (X + 0.5 * rng.normal(size=X.shape) > 0).astype(int)
    >>> chain = CredalChainClassifier(random_state=0)
    >>> promised = PromisedClassifier(chain, {"row_error": 0.2}, random_state=0).fit(X, Y)
    >>> (result,) = promised.report_.promises
    >>> result.risk, result.level, result.estimate <= result.level
    ('row_error', 0.2, True)
    """

    risk: str
    level: float
    label: str | None
    confidence: float | None
    value: float | None = None
    n_rows: int = 0
    estimate: float = 0.0
    interval: tuple[float, float] = (0.0, 1.0)
    completeness: float = 0.0
    upper_bound: float = 1.0
    reason: str = ""
    limit: int | None = None
    exact: bool = True
    pooled: tuple[str, ...] = ()

    @property
    def level_to_check(self) -> float:
        """Level at which new rows are tested.

        For a promise with confidence, its level. For one on average, the upper confidence bound,
        since the risk of a single model may be above the level.
        """
        return self.level if self.confidence is not None else max(self.level, self.upper_bound)

    @property
    def words(self) -> str:
        """What the risk is the share of, and for which labels."""
        words = promise_words(self.risk, self.label)
        if self.pooled:
            shown = self.pooled[:_MAX_POOLED]
            names = ", ".join(filter(None, [*shown, and_more(len(shown), len(self.pooled))]))
            words += f", {plural(len(self.pooled), 'label')} together ({names})"
        return words

    def lines(self, parameter: str) -> list[str]:
        """Describe the promise in words.

        Parameters
        ----------
        parameter : str
            Name of the caution parameter.

        Returns
        -------
        list of str
            Lines of text.
        """
        lines = [f"promised: {self.words}: at most {self.level:.4g}"]
        if self.value is None:
            return [*lines, f"  nothing is answered: {self.reason}"]
        low, high = self.interval
        about = "about " if self.label is None and self.risk in _BY_ANSWERS else ""
        return [
            *lines,
            f"  chosen: {parameter} = {self.value:.4g}, which answers {self.completeness:.1%}"
            + ("" if self.limit is None else f" (at most {self.limit} answers in a row)"),
            f"  in {plural(self.n_rows, 'calibration row')}: {self.estimate:.3f} "
            f"(between {low:.3f} and {high:.3f} with {about}95 % confidence)",
        ]


def promise_words(risk: str, label: str | None) -> str:
    """Describe the risk, for a label or all of them."""
    if risk not in RISKS:
        return risk
    known = RISKS[risk]
    return known.description if label is None else f"{known.label_description}, for {label}"


@dataclass(frozen=True)
class PromiseReport:
    """Report on promises: their levels, the chosen caution and the guarantee.

    Parameters
    ----------
    method : {"conformal", "learn_then_test", "cross_fit"}
        Method by which the caution was chosen.
    confidence : float or None
        Probability that all promises are kept; None if each is kept in expectation.
    parameter : str
        Name of the caution parameter.
    n_rows : int
        Number of calibration rows; one of each group.
    n_incomplete : int
        Number of those with missing labels. Promises about whole rows leave them out; others, and
        selective_error and positive_error, use the labels that are known.
    completeness : float
        Share of labels answered in the calibration rows; those in ``constant`` do not count.
    yes : float
        Share of these answers that are yes.
    promises : tuple of PromiseResult
        One for each promise.
    not_promised : tuple of str, default=()
        Labels about which nothing is promised, where promises are about single labels. They are
        answered at the estimator's own caution.
    notes : tuple of str, default=()
        Notes on the choice of calibration rows: groups, and what is assumed of a fitted estimator.
    constant : tuple of str, default=()
        Labels that are always yes or always no in the rows given to ``fit``.
    found, missed : float, default=0.0
        Shares of the true labels that are answered yes, and no; the others are left open.
    questions : float, default=0.0
        Mean number of labels left open in a row.

    See Also
    --------
    PromisedClassifier : Has the report as ``report_``.

    Examples
    --------
    >>> import numpy as np
    >>> from credalchain import CredalChainClassifier, PromisedClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 3))
    >>> Y = (X + 0.5 * rng.normal(size=X.shape) > 0).astype(int)
    >>> chain = CredalChainClassifier(random_state=0)
    >>> report = PromisedClassifier(chain, {"row_error": 0.2}, random_state=0).fit(X, Y).report_
    >>> print(str(report).splitlines()[0])
    promised: rows with a wrong answer: at most 0.2
    >>> report.method, report.parameter, report.n_rows
    ('conformal', 's', 180)
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
    found: float = 0.0
    missed: float = 0.0
    questions: float = 0.0

    def check_state(self, promised: list[tuple[str, float, str | None]]) -> None:
        """Validate a report that was loaded from a file.

        Parameters
        ----------
        promised : list of (str, float, str or None)
            Risk, level and label of each promise of the classifier.
        """
        check_choice("method", self.method, tuple(GUARANTEES))
        if [(result.risk, result.level, result.label) for result in self.promises] != promised:
            raise ValueError("report_ is not about what is promised.")
        str(self)  # raises where a number is missing

    @property
    def guarantee(self) -> str:
        """Guarantee in words, with what it rests on."""
        text = GUARANTEES[self.method].format(confidence=self.confidence)
        shares = {result.confidence for result in self.promises}
        if self.confidence is not None and shares != {self.confidence}:
            n_cautions = round((1 - self.confidence) / (1 - min(filter(None, shares))))
            text += f", split evenly over {n_cautions} cautions"
        if not all(result.exact for result in self.promises):
            text += ", approximate: by the normal distribution (asymptotic)"
        if self.method != "cross_fit":
            text += ", if new rows are like these (exchangeable)"
        if self.n_incomplete:
            by_answers = any(r.label is None and r.risk in _BY_ANSWERS for r in self.promises)
            rates = ", equally often for every label" if by_answers else ""
            text += (
                f" and labels are missing completely at random{rates}: "
                f"{plural(self.n_incomplete, 'row')} with missing labels left out where they say "
                "nothing"
            )
        return text

    def __str__(self) -> str:
        lines = [line for result in self.promises for line in result.lines(self.parameter)]
        lines += [f"guarantee: {self.guarantee}", *self.notes]
        if self.not_promised:
            lines.append(f"nothing is promised about: {', '.join(self.not_promised)}")
        lines.append(
            f"together: {self.completeness:.1%} of the labels answered in "
            f"{plural(self.n_rows, 'calibration row')}; {self.yes:.1%} of these answers are yes"
        )
        lines.append(
            f"of the true labels {self.found:.1%} answered yes, {self.missed:.1%} answered no, "
            f"{max(1 - self.found - self.missed, 0):.1%} left open; {abs(self.questions):.2f} "
            "questions a row"
        )
        if self.constant:
            lines.append(f"not counted, because constant: {', '.join(self.constant)}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class PromiseTest:
    """Test of whether one promise still holds.

    Parameters
    ----------
    promise : PromiseResult
        The promise.
    confidence : float
        Probability that it is not called broken if it holds.
    estimate : float
        Risk in the rows tested.
    evidence : ndarray of shape (n_rows,)
        Evidence (e-process) against the promise after every row that counts: the wealth of gamblers
        who start with 1 and bet on errors. If the promise holds, it ever reaches 1 / a with
        probability at most a.
    rows : ndarray of shape (n_rows,)
        Numbers of these rows among all rows tested, from 0.

    References
    ----------
    I. Waudby-Smith and A. Ramdas, Estimating means of bounded random variables by betting, Journal
    of the Royal Statistical Society B 86, 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from credalchain import CredalChainClassifier, PromisedClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 3))
    >>> Y = (X + 0.5 * rng.normal(size=X.shape) > 0).astype(int)
    >>> chain = CredalChainClassifier(random_state=0)
    >>> promised = PromisedClassifier(chain, {"row_error": 0.2}, random_state=0)
    >>> promised = promised.fit(X[:400], Y[:400])
    >>> (test,) = promised.check(X[400:], Y[400:]).tests
    >>> test.n_rows, test.broken_at is None
    (200, True)
    """

    promise: PromiseResult
    confidence: float
    estimate: float
    evidence: FloatArray
    rows: IntArray

    @property
    def n_rows(self) -> int:
        """Number of rows that count."""
        return len(self.evidence)

    @property
    def broken_at(self) -> int | None:
        """Row after which the promise was called broken, from 1; None if it was not."""
        over = np.flatnonzero(self.evidence >= 1 / (1 - self.confidence))
        return int(self.rows[over[0]]) + 1 if len(over) else None

    @property
    def verdict(self) -> str:
        """Verdict: "broken", "holds so far", "too few rows to say" or "nothing is answered".

        There are too few rows if the test would probably miss a risk of twice the level.
        """
        if self.promise.value is None:
            return "nothing is answered"
        if self.broken_at is not None:
            return "broken"
        enough = statistics.rows_to_notice(self.promise.level_to_check, self.confidence)
        return "holds so far" if self.n_rows >= enough else "too few rows to say"

    def __str__(self) -> str:
        after = "" if self.broken_at is None else f" (seen after row {self.broken_at})"
        if self.verdict == "holds so far" and self.estimate > self.promise.level:
            after = ", though above the level in these rows"
        description = self.promise.words
        level, tested = self.promise.level, self.promise.level_to_check
        line = f"{self.verdict}{after}: {description}: {self.estimate:.3f} in "
        line += f"{plural(self.n_rows, 'row')}, at most {level:.4g} promised"
        if self.promise.value is not None and tested > level:
            line += f" on average, which leaves up to {tested:.3f} open for this model"
        elif self.broken_at is None and self.estimate > level:
            line += ", which may be chance"
        return line


@dataclass(frozen=True, eq=False)
class PromiseCheck:
    """Result of checking promises on new rows.

    Parameters
    ----------
    confidence : float
        Probability that none of them is called broken if all hold.
    tests : tuple of PromiseTest
        One for each promise.

    See Also
    --------
    PromisedClassifier.check : Test whether the promise still holds.

    Examples
    --------
    >>> import numpy as np
    >>> from credalchain import CredalChainClassifier, PromisedClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 3))
    >>> Y = (X + 0.5 * rng.normal(size=X.shape) > 0).astype(int)
    >>> chain = CredalChainClassifier(random_state=0)
    >>> promised = PromisedClassifier(chain, {"row_error": 0.2}, random_state=0)
    >>> promised = promised.fit(X[:400], Y[:400])
    >>> check = promised.check(X[400:], 1 - Y[400:])  # as if all answers were wrong
    >>> check.verdict
    'broken'
    """

    confidence: float
    tests: tuple[PromiseTest, ...]

    @property
    def verdict(self) -> str:
        """Worst verdict of all tests."""
        verdicts = {test.verdict for test in self.tests}
        order = ("broken", "too few rows to say", "holds so far", "nothing is answered")
        return next(verdict for verdict in order if verdict in verdicts)

    @property
    def broken_at(self) -> int | None:
        """First row after which a promise was called broken, from 1; None if none was."""
        rows = [test.broken_at for test in self.tests if test.broken_at is not None]
        return min(rows, default=None)

    def __str__(self) -> str:
        lines = [str(test) for test in self.tests]
        return "\n".join([*lines, f"judged with confidence {self.confidence:g}"])


def choose(
    held: HeldOut, calibration: Calibration, confidence: float | None
) -> tuple[FloatArray, PromiseReport]:
    """Return the values for answers no and yes (2, m), and the report.

    NaN if such answers are never given.
    """
    final, counted = unwrap(held.estimator)[0], held.counted
    grid, names = calibration.values, final.label_names_.tolist()
    current_value = caution_in_use(final)
    distances = np.nan_to_num(np.abs(grid - current_value), nan=0.0)
    indices = np.full((2, len(names)), distances.argmin())
    chosen = np.full((2, len(names)), current_value)  # where nothing is promised
    given = np.stack([calibration.answered - calibration.yes, calibration.yes])
    any_rows = any(label is None for label, _ in calibration.kept)
    allowed: dict[Any, IntArray] = {}
    of_keys = {evaluated.promise.key: evaluated.promise for evaluated in calibration.evaluated}
    for promise in sorted(of_keys.values(), key=lambda promise: promise.label is not None):
        (label, side), columns = promise.key, promise.columns  # rows first
        kept = calibration.kept[label, side]
        sides = slice(None) if side is None else slice(side, side + 1)
        usable = kept & given[sides, :, columns].any(axis=(0, 2))
        if label is not None and any_rows:  # at least as cautious as all labels are
            least = indices[sides, columns].max()
            usable &= (np.arange(len(grid)) >= least) & (indices[sides, columns].min() >= 0)
        allowed[label, side] = np.flatnonzero(usable)
        at = int(allowed[label, side][0]) if usable.any() else -1
        indices[sides, columns] = at
        chosen[sides, columns] = grid[at] if at >= 0 else np.nan
    results = [
        _result(held, calibration, evaluated, allowed[evaluated.promise.key], limit)
        for evaluated, limit in zip(calibration.evaluated, calibration.limits, strict=True)
    ]
    about = {result.label for result in results}
    not_promised = () if None in about else tuple(name for name in names if name not in about)
    no, yes, found, missed = (
        np.where(at < 0, 0.0, shares[at, np.arange(len(names))])[counted]
        for shares, at in (
            (given[0], indices[0]),
            (given[1], indices[1]),
            (calibration.found, indices[1]),
            (calibration.missed, indices[0]),
        )
    )
    answered, positives = (no + yes).mean(), calibration.positives[counted].sum()
    return chosen, PromiseReport(
        held.method,
        confidence,
        final.caution_parameter,
        calibration.n_rows,
        calibration.n_incomplete,
        float(answered),
        float(yes.mean() / answered) if answered else 0.0,
        tuple(results),
        not_promised,
        held.notes,
        tuple(name for name, is_counted in zip(names, counted, strict=True) if not is_counted),
        float(found.sum() / positives) if positives else 0.0,
        float(missed.sum() / positives) if positives else 0.0,
        float((1 - no - yes).sum()),
    )


def _result(
    held: HeldOut,
    calibration: Calibration,
    evaluated: statistics.EvaluatedPromise,
    kept: IntArray,
    limit: FloatArray | None,
) -> PromiseResult:
    """Return the result at the least cautious value that keeps a promise, or why none does."""
    (promise, sums, plan), (final, _) = evaluated, unwrap(held.estimator)
    grid, parameter, label = calibration.values, final.caution_parameter, promise.label
    counted = held.counted if promise.key[0] is None else promise.columns
    completeness = calibration.answered[:, counted].mean(axis=1)
    if promise.side is not None:
        yes = calibration.yes[:, counted].mean(axis=1)
        completeness = yes if promise.side else completeness - yes
    name = None if label is None else str(final.label_names_[label])
    about = (promise.risk.name, promise.level, name, promise.confidence)
    pooled = tuple(str(final.label_names_[j]) for j in promise.pooled or ())
    if len(kept):
        at = int(kept[0])
        return PromiseResult(
            *about,
            float(grid[at]),
            int(sums.n[at]),
            float(sums.risk[at]),
            _interval(promise, sums, at),
            float(completeness[at]),
            _interval(promise, sums, at, 0.05 / len(calibration.evaluated))[1],
            limit=None if limit is None else int(limit[at]),
            exact=not (promise.asymptotic and promise.needs_bets),
            pooled=pooled,
        )
    answering = np.flatnonzero((completeness > 0) & (sums.n > 0))
    if len(answering) == 0:
        reason = f"no {parameter} answers anything in the calibration rows"
        if completeness.any():
            reason = "no calibration row says anything about it"
        return PromiseResult(*about, reason=reason, pooled=pooled)
    nearest = int(answering[-1])  # on average the most cautious, else that of most evidence
    if promise.confidence is not None:
        nearest = int(answering[statistics.p_values(*evaluated)[answering].argmin()])
    n, risk = int(sums.n[nearest]), float(sums.risk[nearest])
    reason = (
        f"the nearest is {parameter} = {grid[nearest]:.4g}, which answers "
        f"{completeness[nearest]:.1%} with a risk of {risk:.3f} in "
        f"{plural(n, 'calibration row')}; "
    )
    growth = None if sums.growth is None else float(sums.growth[:, nearest].max()) / max(n, 1)
    n_needed = statistics.rows_to_show(promise.level, promise.confidence, risk, growth)
    if (statistics.passes(promise, sums, plan) & (completeness > 0)).any():
        reason += "it is kept by itself, but not together with the others or from there on"
    elif n_needed is None:
        reason += "more rows would not help, a better model might"
    else:
        tested_share = 1 - PILOT_SHARE if promise.needs_pilot else 1.0  # of the calibration rows
        n_needed = int(np.ceil(max(n_needed, n + 1) / tested_share))
        reason += f"if that is the rate, about {n_needed} such rows would show it"
    return PromiseResult(*about, n_rows=n, reason=reason, pooled=pooled)


def _interval(
    promise: Promise, sums: statistics.LossSums, value_index: int, alpha: float = 0.05
) -> tuple[float, float]:
    """Compute the confidence interval of the risk at a value, as if it were fixed in advance."""
    if promise.is_binomial:
        bad, every = float(sums.bad[value_index]), float(sums.every[value_index])
        return statistics.interval_of_share(bad, every, alpha)
    if promise.risk.is_ratio:
        return statistics.interval_of_ratio(sums, value_index, alpha)
    risk, n = float(sums.risk[value_index]), int(sums.n[value_index])
    return statistics.interval_of_mean(risk, n, alpha)
