"""``explain``: for chains and joint forests, joint decisions, and promised answers."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from credalchain._utils.text import visible
from credalchain.chains.strategies import Strategy
from credalchain.explanation.parts import (
    as_single_row,
    feature_names_inside,
    known_for_single_row,
    questions_about,
    ranked,
    similar_training_rows,
    steps_of,
)
from credalchain.explanation.result import Explanation, Question, Step
from credalchain.joint.decision import JointDecision
from credalchain.joint.model import JointModel
from credalchain.labels import MISSING, select_labels
from credalchain.model_selection import unwrap
from credalchain.prediction import probabilities
from credalchain.promises.classifier import PromisedClassifier
from credalchain.typing import LabelsLike, MatrixLike

_NO_REASONS = {  # by where the probability that several answers are right comes from
    "auto": "the labels of a row are decided together, by training rows that are like it",
    "independent": "labels are taken as independent, and each has its likelier answer",
}


def explain(
    classifier: BaseEstimator,
    x: MatrixLike,
    *,
    s: float | None = None,
    strategy: str | Strategy | None = None,
    reward: float | None = None,
    known: LabelsLike | None = None,
    labels: Iterable[str | int] | None = None,
    max_labels: int | None = 20,
) -> Explanation:
    """Why one row gets its answers.

    Parameters
    ----------
    classifier : fitted classifier of this package, or a pipeline that ends in one
        Reasons are there for models that are sums of log-odds, similar training rows for joint
        forests; bounds and answers for all. Where there are no reasons, the explanation says why.
    x : one row: a vector, a table or data frame with a single row
        Or one text, for a pipeline that starts with texts.
    s, strategy, reward : optional
        In place of the classifier's parameters.
    known : array-like of shape (n_labels,) or (1, n_labels), optional
        Labels that were answered already; -1 for the others.
    labels : sequence of str or int, optional
        Which labels to explain, by name or number. By default what is open and the most certain
        of the others.
    max_labels : int or None, default=20
        How many labels are explained if ``labels`` is not given; None for all.

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
    selection = _Selection(labels, max_labels, feature_names=feature_names_inside(classifier))
    classifier, table = unwrap(classifier, as_single_row(x, classifier))
    if isinstance(classifier, PromisedClassifier):
        if s is not None or strategy is not None or reward is not None:
            raise ValueError("s, strategy and reward are chosen by what was promised.")
        return _explain_promised(classifier, table, known, selection)
    if isinstance(classifier, JointDecision):
        if s is not None or strategy is not None:
            raise ValueError("a joint decision has a reward in place of s and strategy.")
        return _explain_decision(classifier, table, known, selection, reward)
    if reward is not None:
        raise ValueError("reward is for a JointDecision; this classifier has s.")
    return _explain_bounds(classifier, table, known, selection, s, strategy)


@dataclass(frozen=True)
class _Selection:
    """Which labels are explained, whether questions about them are added, names of features."""

    labels: Any = None
    max_labels: int | None = None
    with_questions: bool = True
    feature_names: Any = None

    def indices(self, names: Any, labels: Any, log_odds: Any) -> list[int]:
        """Of the labels to explain, from the answers (m,) of a row and its bounds (m, 2)."""
        if self.labels is None:
            return [
                int(j)
                for j in select_labels(labels[None], probabilities(log_odds)[None], self.max_labels)
            ]
        is_list = np.iterable(self.labels) and not isinstance(self.labels, str)
        labels = self.labels if is_list else [self.labels]
        return list(dict.fromkeys(_label_index(label, names) for label in labels))


def _label_index(label: Any, names: Any) -> int:
    texts = [str(name) for name in names]
    if isinstance(label, str) and label in texts:
        return texts.index(label)
    is_number = isinstance(label, (int, np.integer)) and not isinstance(label, bool)
    if is_number and 0 <= label < len(texts):
        return int(label)
    known = ", ".join(map(visible, texts[:8])) + (", ..." if len(texts) > 8 else "")
    raise ValueError(
        f"labels must be names of labels ({known}) or numbers below {len(texts)}, got {label!r}."
    )


def _explain_bounds(
    classifier: Any, table: Any, known: Any, selection: _Selection, s: Any, strategy: Any
) -> Explanation:
    """Labels in the order of the chain."""
    known_labels = known_for_single_row(known, classifier.targets_)
    encoded = classifier.encode(table)
    request = classifier.request(encoded, s=s, strategy=strategy, known=known_labels)
    answer = classifier.model_.infer(encoded, request)
    assert answer.log_odds is not None
    names, labels = classifier.label_names_, answer.labels[0, 0, 0]
    chosen = selection.indices(names, labels, answer.log_odds[0, 0, 0])
    steps = steps_of(classifier, encoded, request, answer, set(chosen), selection.feature_names)
    (value,), (used,) = request.s_values, request.strategies

    def infer_labels(rows: Any, known: Any) -> Any:
        return classifier.infer(rows, s=value, strategy=strategy, known=known).labels

    questions: tuple[Question, ...] = ()
    if selection.with_questions and request.chained:  # else labels do not depend on each other
        questions = questions_about(names, table, known_labels, labels, infer_labels, chosen)
    has_order = request.order is not None or answer.visited is not None
    setting = f"s = {value:.4g}" + (f", {used.name}" if has_order else "")
    return Explanation(
        tuple(steps),
        questions,
        setting,
        similar_training_rows(classifier, encoded, known_labels, chosen, selection.feature_names),
        "" if any(step.reasons for step in steps) else classifier.model_.why_no_reasons,
        len(names) - len(chosen),
        is_chain=has_order and request.chained,
    )


def _explain_decision(
    decision: JointDecision, table: Any, known: Any, selection: _Selection, reward: float | None
) -> Explanation:
    """Labels in the order in which they are taken into the answer: the surest answer first."""
    names, value = decision.label_names_, decision.caution_ if reward is None else reward
    known_labels = known_for_single_row(known, decision.targets_)
    prediction = decision.infer(table, reward=value, known=known_labels)
    labels = prediction.labels[0]
    lower, upper = prediction.log_odds[0].T
    surest = np.argsort(-decision.decide(table, known=known_labels).certainty[0], kind="stable")
    chosen = selection.indices(names, labels, prediction.log_odds[0])
    steps = [
        Step(
            str(names[j]),
            int(labels[j]),
            bool(known_labels[0, j] != MISSING),
            0.5,
            float(lower[j]),
            float(upper[j]),
            (),
        )
        for j in surest[np.isin(surest, chosen)].tolist()
    ]

    def infer_labels(rows: Any, known: Any) -> Any:
        return decision.infer(rows, reward=value, known=known).labels

    questions: tuple[Question, ...] = ()
    if selection.with_questions:
        questions = questions_about(names, table, known_labels, labels, infer_labels, chosen)
    inner = decision.estimator_
    similar = similar_training_rows(
        inner, inner.encode(table), known_labels, chosen, selection.feature_names
    )
    is_single = decision.joint == "auto" and not isinstance(inner.model_, JointModel)
    return Explanation(
        tuple(steps),
        questions,
        f"decided jointly, reward = {value:.4g}",
        similar,
        _NO_REASONS["independent" if is_single else decision.joint],
        len(names) - len(chosen),
        is_chain=False,
    )


def _explain_promised(
    promised: PromisedClassifier, table: Any, known: Any, selection: _Selection
) -> Explanation:
    """As the estimator inside is explained at the chosen caution, with the promised answers."""
    inner = promised.estimator_
    estimators = getattr(inner, "estimators", [inner])
    first, rows = unwrap(estimators[0], table)
    names = promised.label_names_.tolist()
    known_labels = known_for_single_row(known, first.targets_)
    prediction = promised.infer(table, known=known_labels)
    labels, bounds = prediction.labels[0], prediction.log_odds[0]
    chosen = selection.indices(names, labels, bounds)
    in_use, parameter = promised.values_in_use().tolist(), promised.report_.parameter
    inner_selection = replace(selection, labels=chosen, with_questions=False)
    explain_first = _first_explainer(first, rows, known_labels, inner_selection)
    explanation_at = {value: explain_first(value) for value in in_use}
    steps_at = {
        value: {step.label: step for step in explanation_at[value].steps} for value in in_use
    }
    steps = []
    for step in explanation_at[in_use[0]].steps:
        j = names.index(step.label)
        value = float(promised.values_[j])
        own_step = steps_at[in_use[0] if np.isnan(value) else value][step.label]
        lower, upper = bounds[j].tolist()
        steps.append(
            replace(
                own_step,
                answer=int(labels[j]),
                lower_log_odds=lower,
                upper_log_odds=upper,
                reasons=ranked(own_step.reasons, int(labels[j])),
            )
        )

    def infer_labels(rows: Any, known: Any) -> Any:
        return promised.infer(rows, known=known).labels

    questions = questions_about(names, table, known_labels, labels, infer_labels, chosen)
    setting = f"promised, {parameter} = {', '.join(f'{value:.4g}' for value in in_use)}"
    if not np.isfinite(promised.values_).any():
        setting = f"nothing keeps the promise; shown at {parameter} = {in_use[0]:.4g}"
    if len(estimators) > 1:
        setting += f"; where {len(estimators)} models agree, reasons are those of the first"
    return replace(
        explanation_at[in_use[0]], steps=tuple(steps), questions=questions, setting=setting
    )


def _first_explainer(
    first: Any, rows: Any, known_labels: Any, selection: _Selection
) -> Callable[[float], Explanation]:
    """Explains some labels by the estimator inside a promise, at a value of its caution."""
    if isinstance(first, JointDecision):
        return lambda reward: _explain_decision(first, rows, known_labels, selection, reward)
    return lambda s: _explain_bounds(first, rows, known_labels, selection, s, None)
