"""Why a row got its answers: bounds, contributions, and what would settle what is open."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from credalchain import html
from credalchain.bases.ensemble import EnsembleModel
from credalchain.bases.joint.model import JointModel
from credalchain.bases.joint.similar import Condition, similar_rows
from credalchain.bases.protocol import Answer, Request
from credalchain.estimators.decision import JointDecision
from credalchain.estimators.targets import Targets
from credalchain.labels import ABSTAIN, MISSING, UNDECIDED, as_labels
from credalchain.model_selection import unwrap
from credalchain.promises.classifier import PromisedClassifier
from credalchain.text import visible

_MOST_SIMILAR = 10
_MOST_STEPS = 20  # in a notebook
_WORDS = {1: "yes", 0: "no", ABSTAIN: "*"}


@dataclass(frozen=True)
class Reason:
    """What one observation adds to the lower and upper log-odds of a label."""

    source: str
    name: str
    value: str
    lower: float
    upper: float

    @property
    def size(self) -> float:
        """How far it moves the bounds, at most."""
        return max(abs(self.lower), abs(self.upper))


@dataclass(frozen=True)
class Step:
    """One label on its way along the chain.

    ``reasons`` add up to the log-odds. What spoke for the answer comes first, then what spoke
    against it, each with the largest first; of an open label, the largest. Empty if the model is
    not a sum, or if the label was never observed in training.
    """

    label: str
    answer: int
    known: bool
    threshold: float
    lower_log_odds: float
    upper_log_odds: float
    reasons: tuple[Reason, ...]

    @property
    def lower(self) -> float:
        return float(expit(self.lower_log_odds))

    @property
    def upper(self) -> float:
        return float(expit(self.upper_log_odds))

    @property
    def word(self) -> str:
        """The answer as people read it: yes, no or ``*``."""
        return _WORDS[self.answer]


@dataclass(frozen=True)
class Question:
    """What answering an open label would settle: other open labels and their new answers."""

    label: str
    answer: int
    settles: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class SimilarRow:
    """A training row that weighs in the answers of a joint forest.

    Attributes
    ----------
    row : int
        Its number in the training data, from 0.
    weight : float
        Its share of all weight; other members of the forest have theirs besides.
    labels : tuple of (str, int)
        Its labels that were observed: name and 0 or 1.
    in_common : tuple of str
        What the trees that put both rows into one leaf asked of them, the most asked first.
    unknown : tuple of str
        Its labels that were missing.
    """

    row: int
    weight: float
    labels: tuple[tuple[str, int], ...]
    in_common: tuple[str, ...]
    unknown: tuple[str, ...] = ()

    @property
    def labels_in_words(self) -> str:
        """The labels that are yes, and those that nobody knows."""
        yes = [visible(name) for name, y in self.labels if y == 1]
        return ", ".join([*yes, *(f"{visible(name)} unknown" for name in self.unknown)]) or "none"

    def __str__(self) -> str:
        words = f"training row {self.row}, weight {self.weight:.3f}: {self.labels_in_words}"
        shared = ", ".join(map(visible, self.in_common[:3]))
        return f"{words} (both: {shared})" if shared else words


@dataclass(frozen=True)
class Explanation:
    """Why a row got its answers.

    Attributes
    ----------
    steps : tuple of Step, in the order of the chain
    questions : tuple of Question
        For every open label and both answers, the other labels that this answer would settle.
    setting : str
        How cautiously it was decided, such as "s = 2, branching".
    similar : tuple of SimilarRow
        For a joint forest, the training rows that weigh most.
    """

    steps: tuple[Step, ...]
    questions: tuple[Question, ...]
    setting: str
    similar: tuple[SimilarRow, ...] = ()

    def to_frame(self) -> Any:
        """A pandas data frame with one row per reason (and per label: the row "all")."""
        import pandas as pd

        rows = []
        for place, step in enumerate(self.steps):
            total = Reason("all", "", step.word, step.lower_log_odds, step.upper_log_odds)
            for reason in (total, *step.reasons):
                rows.append((place, step.label, *vars(reason).values()))
        columns = ["step", "label", "source", "name", "value", "lower", "upper"]
        return pd.DataFrame(rows, columns=columns)

    def __str__(self) -> str:
        lines = [self.setting]
        for step in self.steps:
            given = " (known)" if step.known else ""
            bounds = f"[{step.lower:.3f}, {step.upper:.3f}]"
            lines.append(f"{visible(step.label)}: {step.word}{given} {bounds}")
            for reason in step.reasons[:3]:
                words = " ".join(filter(None, (reason.name, reason.value)))
                lines.append(f"    {reason.lower:+.2f} to {reason.upper:+.2f}  {visible(words)}")
        return "\n".join([*lines, *map(str, self.similar[:5]), *self.questions_in_words()])

    def _repr_html_(self) -> str:
        """As the pictures show it, for notebooks: what is open first, then the chain's order."""
        steps = sorted(self.steps, key=lambda step: step.answer != ABSTAIN)[:_MOST_STEPS]
        rows = [
            [
                html.text(visible(step.label)),
                html.answer(step.answer) + (" (known)" if step.known else ""),
                html.interval(step.answer, step.lower, step.upper),
                "<br>".join(
                    html.text(
                        f"{reason.lower:+.2f} to {reason.upper:+.2f} {reason.name} {reason.value}"
                    )
                    for reason in step.reasons[:3]
                ),
            ]
            for step in steps
        ]
        parts = [html.words(self.setting)]
        parts.append(html.table(["label", "answer", "0 to 1", "reasons, in log-odds"], rows))
        if len(self.steps) > len(steps):
            parts.append(html.words(f"and {len(self.steps) - len(steps)} more"))
        others = [*map(str, self.similar[:5]), *self.questions_in_words()[:10]]
        return html.page(*parts, *(html.words(line) for line in others))

    def questions_in_words(self) -> list[str]:
        """One line for each answer that would settle something."""
        return [
            f"if {visible(question.label)} is {_WORDS[question.answer]}: "
            + ", ".join(f"{visible(name)} is {_WORDS[y]}" for name, y in question.settles)
            for question in self.questions
            if question.settles
        ]


def explain(
    classifier: Any,
    x: Any,
    *,
    s: float | None = None,
    strategy: Any = None,
    reward: float | None = None,
    known: Any = None,
) -> Explanation:
    """Why one row gets its answers.

    Parameters
    ----------
    classifier : fitted classifier of this package, or a pipeline that ends in one
        Reasons are there for models that are sums of log-odds, similar training rows for joint
        forests; bounds and answers for all.
    x : one row: a vector, a table or data frame with a single row
    s, strategy, reward : optional
        In place of the classifier's parameters.
    known : array-like of shape (n_labels,) or (1, n_labels), optional
        Labels that were answered already; -1 for the others.

    Returns
    -------
    Explanation

    Examples
    --------
    >>> from credalchain import CredalChainClassifier, explain
    >>> X = [["sun"], ["sun"], ["sun"], ["rain"], ["rain"], ["fog"]]
    >>> Y = [[1, 0], [1, 0], [1, None], [0, 1], [0, 1], [None, 1]]
    >>> chain = CredalChainClassifier(s=0.5, order="given").fit(X, Y)
    >>> print(explain(chain, ["fog"]))
    s = 0.5, branching
    label0: * [0.002, 0.998]
        -6.40 to +6.06  feature0 fog
        +0.29 to +0.29  prior
    label1: * [0.001, 1.000]
        -7.60 to +7.60  label0 *
        +0.36 to +7.16  feature0 fog
        +0.29 to +0.29  prior
    if label0 is no: label1 is yes
    """
    check_is_fitted(classifier)
    classifier, table = unwrap(classifier, _one_row(x))
    if isinstance(classifier, PromisedClassifier):
        if s is not None or strategy is not None or reward is not None:
            raise ValueError("s, strategy and reward are chosen by what was promised.")
        return _explain_promised(classifier, table, known)
    if isinstance(classifier, JointDecision):
        if s is not None or strategy is not None:
            raise ValueError("a joint decision has a reward in place of s and strategy.")
        return _explain_decision(classifier, table, reward, known)
    if reward is not None:
        raise ValueError("reward is for a JointDecision; this classifier has s.")
    given = _one_known(known, classifier.targets_)
    encoded = classifier.encode(table)
    request = classifier.request(encoded, s=s, strategy=strategy, known=given)
    answer = classifier.model_.infer(encoded, request)
    steps = _steps(classifier, encoded, request, answer)
    (value,), (chosen,) = request.values, request.strategies

    def after(rows: Any, known: Any) -> Any:
        return classifier.infer(rows, s=value, strategy=strategy, known=known).labels

    questions = []
    if request.chained:  # else no answer says anything about another label
        names = classifier.label_names_
        questions = _questions(names, table, given, answer.labels[0, 0, 0], after)
    setting = f"s = {value:g}"
    if request.order is not None or answer.visited is not None:
        setting += f", {chosen.name}"
    similar = _similar(classifier, encoded, given)
    return Explanation(tuple(steps), tuple(questions), setting, similar)


def _explain_decision(
    decision: JointDecision, table: Any, reward: float | None, known: Any
) -> Explanation:
    """Labels in the order in which they are taken into the answer: the surest answer first."""
    names, value = decision.label_names_, decision.reward if reward is None else reward
    given = _one_known(known, decision.targets_)
    prediction = decision.infer(table, reward=value, known=given)
    lower, upper = prediction.log_odds[0].T
    decided = decision.decide(table, known=given)
    surest = np.argsort(-decided.certainty[0], kind="stable")
    steps = [
        Step(
            str(names[j]),
            int(prediction.labels[0, j]),
            bool(given[0, j] != MISSING),
            0.5,
            float(lower[j]),
            float(upper[j]),
            (),
        )
        for j in surest.tolist()
    ]

    def after(rows: Any, known: Any) -> Any:
        return decision.infer(rows, reward=value, known=known).labels

    questions = _questions(names, table, given, prediction.labels[0], after)
    setting = f"decided jointly, reward = {value:g}"
    inner = decision.estimator_
    similar = _similar(inner, inner.encode(table), given)
    return Explanation(tuple(steps), tuple(questions), setting, similar)


def _explain_promised(promised: PromisedClassifier, table: Any, known: Any) -> Explanation:
    """As the estimator inside is explained at the chosen caution, with the promised answers."""
    inner = promised.estimator_
    several = getattr(inner, "estimators", [inner])
    names = promised.label_names_.tolist()
    values = dict(zip(names, promised.values_.tolist(), strict=True))
    chosen = promised.values_in_use().tolist()
    parameter = promised.report_.parameter
    by_value = {
        value: explain(several[0], table, known=known, **{parameter: value}) for value in chosen
    }
    given = _one_known(known, unwrap(several[0])[0].targets_)
    prediction = promised.infer(table, known=given)
    steps = []
    for step in by_value[chosen[0]].steps:
        j, value = names.index(step.label), values[step.label]
        own = {one.label: one for one in by_value[value if value == value else chosen[0]].steps}
        lower, upper = prediction.log_odds[0, j].tolist()
        steps.append(
            replace(
                own[step.label],
                answer=int(prediction.labels[0, j]),
                lower_log_odds=lower,
                upper_log_odds=upper,
            )
        )

    def after(rows: Any, known: Any) -> Any:
        return promised.infer(rows, known=known).labels

    questions = _questions(names, table, given, prediction.labels[0], after)
    setting = f"promised, {parameter} = {', '.join(f'{value:.4g}' for value in chosen)}"
    if not np.isfinite(promised.values_).any():
        setting = f"nothing keeps the promise; shown at {parameter} = {chosen[0]:.4g}"
    if len(several) > 1:
        setting += f"; where {len(several)} models agree, reasons are those of the first"
    similar = by_value[chosen[0]].similar
    return Explanation(tuple(steps), tuple(questions), setting, similar)


def _similar(classifier: Any, encoded: Any, known: Any) -> tuple[SimilarRow, ...]:
    """The training rows that weigh most, where there are such."""
    model = classifier.model_
    if not isinstance(model, JointModel):
        return ()
    labels = classifier.label_names_.tolist()
    return tuple(
        SimilarRow(
            found.number,
            found.weight,
            tuple((name, int(y)) for name, y in zip(labels, found.labels, strict=True) if y >= 0),
            tuple(_condition_in_words(classifier, one) for one in found.in_common),
            tuple(name for name, y in zip(labels, found.labels, strict=True) if y < 0),
        )
        for found in similar_rows(model, encoded, known=known[0], at_most=_MOST_SIMILAR)
    )


def _condition_in_words(classifier: Any, condition: Condition) -> str:
    name = _feature_name(classifier, condition.feature)
    words = classifier.model_.encoder.words.get(condition.feature)
    if condition.is_missing:
        return f"{name} is missing"
    if words is not None:
        keys = words.keys.tolist()
        fitting = [
            key for code, key in enumerate(keys) if condition.lower < code <= condition.upper
        ]
        return f"{name} is {' or '.join(map(str, fitting))}"
    low = "" if condition.lower == -np.inf else f"{condition.lower:.4g} < "
    high = "" if condition.upper == np.inf else f" <= {condition.upper:.4g}"
    return f"{low}{name}{high}"


def _one_row(x: Any) -> Any:
    if hasattr(x, "columns") or getattr(x, "ndim", 0) == 2:
        table = x
    else:
        mixed = isinstance(x, (list, tuple))
        table = np.asarray(x, dtype=object) if mixed else np.asarray(x)
        table = table[None, :] if table.ndim == 1 else table
    if table.shape[0] != 1:
        raise ValueError(f"x must be one row, got {table.shape[0]}.")
    return table


def _one_known(known: Any, targets: Targets) -> Any:
    n_labels = targets.n_labels
    if known is None:
        return np.full((1, n_labels), MISSING, dtype=np.int8)
    if hasattr(known, "columns"):  # by name
        return targets.encode_known(known, 1)
    given = as_labels(known, name="known", require_zero=False).reshape(1, -1)
    if given.shape != (1, n_labels):
        raise ValueError(f"known must be {n_labels} values 0, 1 or -1, got {known!r}.")
    return given


def _steps(classifier: Any, encoded: Any, request: Request, answer: Answer) -> list[Step]:
    assert answer.log_odds is not None
    labels, log_odds, known = answer.labels[0, 0, 0], answer.log_odds[0, 0, 0], request.known
    history = np.full(classifier.n_labels_, UNDECIDED, dtype=np.int8)
    steps = []
    for j in _visited(classifier.model_, request, answer):
        parts = classifier.model_.contributions(
            encoded, j, history, s=request.values[0], strategy=request.strategies[0]
        )
        if request.never_observed[j]:  # left open by rule, not by a sum
            parts = None
        reasons = [_reason(classifier, part) for part in parts or []]
        steps.append(
            Step(
                str(classifier.label_names_[j]),
                int(labels[j]),
                bool(known is not None and known[0, j] != MISSING),
                float(request.thresholds[j]),
                float(log_odds[j, 0]),
                float(log_odds[j, 1]),
                tuple(sorted(reasons, key=partial(_rank, int(labels[j])))),
            )
        )
        if request.chained:
            history[j] = labels[j]
    return steps


def _rank(answer: int, reason: Reason) -> tuple[bool, float]:
    """What spoke for the answer first, the largest first."""
    middle = reason.lower + reason.upper
    against = (answer == 1 and middle < 0) or (answer == 0 and middle > 0)
    return against, -reason.size


def _visited(model: Any, request: Request, answer: Answer) -> list[int]:
    """The labels in the order of the chain; of the columns where there are several chains."""
    if answer.visited is not None:
        return list(answer.visited[0, 0, 0].tolist())
    if isinstance(model, EnsembleModel) or request.order is None:
        return list(range(model.n_labels))
    return list(request.order.tolist())


def _feature_name(classifier: Any, number: int) -> str:
    names = getattr(classifier, "feature_names_in_", None)
    return f"feature{number}" if names is None else str(names[number])


def _reason(classifier: Any, part: Any) -> Reason:
    if part.source == "feature":
        name = _feature_name(classifier, part.number)
    elif part.source == "label":
        name = str(classifier.label_names_[part.number])
    else:
        name = "prior"
    return Reason(part.source, name, part.value, part.lower, part.upper)


def _questions(
    names: Any, table: Any, given: Any, labels: Any, after: Callable[[Any, Any], Any]
) -> list[Question]:
    """Ask about every open label, both ways, in one batch; ``after`` answers with labels known."""
    asked = [(j, y) for j in np.flatnonzero(labels == ABSTAIN).tolist() for y in (0, 1)]
    if not asked:
        return []
    known = np.repeat(given, len(asked), axis=0)
    for row, (j, y) in enumerate(asked):
        known[row, j] = y
    rows = table.iloc[[0] * len(asked)] if hasattr(table, "iloc") else _repeat(table, len(asked))
    questions = []
    for (j, y), new in zip(asked, after(rows, known), strict=True):
        settled = np.flatnonzero((labels == ABSTAIN) & (new != ABSTAIN))
        others = tuple((str(names[k]), int(new[k])) for k in settled.tolist() if k != j)
        questions.append(Question(str(names[j]), y, others))
    return questions


def _repeat(table: Any, times: int) -> Any:
    return table[[0] * times]


__all__ = ["Explanation", "Question", "Reason", "SimilarRow", "Step", "explain"]
