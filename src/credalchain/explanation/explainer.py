"""``explain``: for chains and joint forests, joint decisions, and promised answers."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from credalchain._utils.array_types import Labels
from credalchain._utils.text import visible
from credalchain.chains.ensemble import EnsembleModel
from credalchain.chains.protocol import Request
from credalchain.chains.strategies import Strategy
from credalchain.columns import readable_names
from credalchain.explanation.questions import read_known
from credalchain.explanation.result import Explanation, Question, Reason, SimilarRow, Step
from credalchain.joint.decision import JointDecision
from credalchain.joint.model import JointModel
from credalchain.joint.similar import Condition, similar_rows
from credalchain.labels import ABSTAIN, MISSING, UNDECIDED, select_labels
from credalchain.model_selection import unwrap
from credalchain.prediction import Answer, CredalPrediction, probabilities
from credalchain.promises.classifier import PromisedClassifier
from credalchain.typing import LabelsLike, MatrixLike

_MAX_SIMILAR = 10
_NO_REASONS = {  # by where the probability that several answers are right comes from
    "auto": "the labels of a row are decided together, by training rows that are like it",
    "scores": "the labels of a row are decided together, by the scores of the model and by which "
    "labels go together",
    "independent": "labels are treated as independent, and each has its likelier answer",
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
    """Explain the answers of one row.

    Parameters
    ----------
    classifier : fitted classifier of this package, or a pipeline that ends in one
        Bounds and answers are explained for all models; reasons are given for models that are sums
        of log-odds, similar training rows for joint forests. If there are no reasons, the
        explanation says why.
    x : one row: a vector, a table or data frame with a single row
        Or one text, for a pipeline that starts with texts.
    s, strategy, reward : default=None
        Override the parameters of the classifier.
    known : array-like of shape (n_labels,) or (1, n_labels), default=None
        Labels that are known already, 0 or 1; -1 elsewhere.
    labels : sequence of str or int, default=None
        Labels to explain, by name or number. None explains the open ones and the most certain of
        the others.
    max_labels : int or None, default=20
        Maximum number of labels to explain if ``labels`` is not given; None for all.

    Returns
    -------
    Explanation
        Bounds and answers; reasons or similar rows; and the labels that answers to open ones would
        settle.

    Raises
    ------
    ValueError
        If x is not a single row, a label is unknown, or ``s``, ``strategy`` or ``reward`` is not a
        parameter of the classifier.

    See Also
    --------
    next_questions : Which open labels to ask about next.
    credalchain.plotting.plot_explanation : Plot an explanation.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier, explain
    >>> X = [["sun"], ["sun"], ["sun"], ["rain"], ["rain"], ["fog"]]
    >>> Y = [[1, 0], [1, 0], [1, None], [0, 1], [0, 1], [None, 1]]
    >>> chain = CredalChainClassifier(s=0.5, order="given").fit(X, Y)
    >>> print(explain(chain, ["fog"]))
    s = 0.5, branching; reasons in log-odds
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
    feature_names = _feature_names_inside(classifier)
    classifier, table = unwrap(classifier, as_single_row(x, classifier))
    options: dict[str, Any] = {}
    if isinstance(classifier, PromisedClassifier):
        if s is not None or strategy is not None or reward is not None:
            raise ValueError(
                "s, strategy and reward must be None for a PromisedClassifier, which chooses its "
                f"caution, got s={s!r}, strategy={strategy!r} and reward={reward!r}."
            )
    elif isinstance(classifier, JointDecision):
        if s is not None or strategy is not None:
            raise ValueError(
                "s and strategy must be None for a JointDecision, which has a reward, got "
                f"s={s!r} and strategy={strategy!r}."
            )
        options = {"reward": classifier.caution_ if reward is None else reward}
    elif reward is not None:
        raise ValueError(
            f"reward must be None for {type(classifier).__name__}, whose caution parameter is s, "
            f"got {reward!r}."
        )
    else:
        options = {"s": classifier.s if s is None else s, "strategy": strategy}
    names = classifier.label_names_.tolist()
    known_labels = read_known(classifier, known, 1)
    prediction = classifier.infer(table, known=known_labels, **options)
    chosen = _chosen(labels, max_labels, names, prediction)
    row = (table, known_labels, chosen, feature_names)
    if isinstance(classifier, PromisedClassifier):
        explanation = _explain_promised(classifier, *row, prediction)
    else:
        explanation = _explain(classifier, *row, *options.values())
    questions: tuple[Question, ...] = ()
    if getattr(classifier, "chained", True):  # else labels do not depend on each other
        infer = partial(classifier.infer, **options)
        questions = _questions_about(table, known_labels, prediction, infer, chosen)
    return replace(explanation, questions=questions, n_left_out=len(names) - len(chosen))


def _chosen(
    labels: Any, max_labels: int | None, names: list[str], prediction: CredalPrediction
) -> list[int]:
    """Return the numbers of the labels to explain."""
    if labels is None:
        interval = probabilities(prediction.log_odds)
        return [int(j) for j in select_labels(prediction.labels, interval, max_labels)]
    if not np.iterable(labels) or isinstance(labels, str):
        labels = [labels]
    return list(dict.fromkeys(_label_index(label, names) for label in labels))


def _label_index(label: Any, names: list[str]) -> int:
    if isinstance(label, str) and label in names:
        return names.index(label)
    is_number = isinstance(label, (int, np.integer)) and not isinstance(label, bool)
    if is_number and 0 <= label < len(names):
        return int(label)
    known = ", ".join(map(visible, names[:8])) + (", ..." if len(names) > 8 else "")
    raise ValueError(
        f"labels must be names of labels ({known}) or numbers below {len(names)}, got {label!r}."
    )


def _explain(
    classifier: Any,
    table: Any,
    known: Labels,
    chosen: Sequence[int],
    feature_names: Any,
    value: float,
    strategy: Any = None,
) -> Explanation:
    """Explain chosen labels at a value of caution, in the order in which they are decided."""
    if isinstance(classifier, JointDecision):
        prediction = classifier.infer(table, reward=value, known=known)
        surest = np.argsort(-classifier.decide(table, known=known).certainty[0], kind="stable")
        inner = classifier.estimator_
        is_single = classifier.joint == "auto" and not isinstance(inner.model_, JointModel)
        labels, bounds = prediction.labels[0], prediction.log_odds[0]
        names = prediction.label_names
        steps = [
            Step(names[j], int(labels[j]), bool(known[0, j] != MISSING), 0.5, *bounds[j].tolist())
            for j in surest[np.isin(surest, chosen)].tolist()
        ]
        similar = _similar(inner, inner.encode(table), known, chosen, feature_names)
        is_by_scores = not similar and getattr(inner.model_, "score_product", None) is not None
        basis = "independent" if is_single else classifier.joint
        return Explanation(
            tuple(steps),
            setting=f"decided jointly, reward = {value:.4g}",
            similar=similar,
            no_reasons=_NO_REASONS["scores" if basis == "auto" and is_by_scores else basis],
            is_chain=False,
        )
    encoded = classifier.encode(table)
    request = classifier.request(encoded, s=value, strategy=strategy, known=known)
    answer = classifier.model_.infer(encoded, request)
    steps = _steps_of(classifier, encoded, request, answer, known, chosen, feature_names)
    has_order = request.order is not None or answer.visited is not None
    (value,), (used,) = request.s_values, request.strategies
    return Explanation(
        tuple(steps),
        setting=f"s = {value:.4g}" + (f", {used.name}" if has_order else ""),
        similar=_similar(classifier, encoded, known, chosen, feature_names),
        no_reasons=""
        if any(step.reasons for step in steps)
        else classifier.model_.unexplained_because,
        is_chain=has_order and request.chained,
    )


def _explain_promised(
    promised: PromisedClassifier,
    table: Any,
    known: Labels,
    chosen: Sequence[int],
    feature_names: Any,
    prediction: CredalPrediction,
) -> Explanation:
    """Explain the estimator inside at the values chosen, with the promised answers."""
    names, in_use = promised.label_names_.tolist(), promised.values_in_use().tolist()
    inner, rows = unwrap(promised.estimator_, table)
    explained = {
        value: _explain(inner, rows, known, chosen, feature_names, value) for value in in_use
    }
    steps = []
    for step in explained[in_use[0]].steps:
        j = names.index(step.label)
        value = in_use[0] if np.isnan(promised.values_[j]) else float(promised.values_[j])
        (own,) = (one for one in explained[value].steps if one.label == step.label)
        answer, (lower, upper) = int(prediction.labels[0, j]), prediction.log_odds[0, j].tolist()
        own = replace(own, answer=answer, lower_log_odds=lower, upper_log_odds=upper)
        steps.append(replace(own, reasons=_ranked(own.reasons, answer)))
    parameter = promised.report_.parameter
    setting = f"promised, {parameter} = {', '.join(f'{value:.4g}' for value in in_use)}"
    if not np.isfinite(promised.values_).any():
        setting = f"nothing keeps the promise; shown at {parameter} = {in_use[0]:.4g}"
    return replace(explained[in_use[0]], steps=tuple(steps), setting=setting)


# -- what explanations are made of ----------------------------------------------------------------


def as_single_row(x: Any, classifier: Any) -> Any:
    """Return a table with one row, from a vector or a table; one text where texts are taken."""
    if not hasattr(classifier, "n_features_in_"):  # only what starts with texts has none
        table = np.asarray([x] if isinstance(x, str) else x, dtype=object).reshape(-1)
    elif hasattr(x, "columns") or getattr(x, "ndim", 0) == 2:
        table = x
    elif hasattr(x, "to_frame") and hasattr(x, "index"):  # a row of a pandas data frame
        table = x.to_frame().T.infer_objects()
    elif sparse.issparse(x):
        table = x.reshape(1, -1).tocsr()
    else:
        mixed = isinstance(x, (list, tuple))
        table = np.asarray(x, dtype=object) if mixed else np.asarray(x)
        table = table[None, :] if table.ndim == 1 else table
    if not table.shape:
        raise ValueError(f"x must be one row of features, got {x!r}.")
    if table.shape[0] != 1:
        raise ValueError(f"x must be one row, got {table.shape[0]} rows.")
    return table


def _feature_names_inside(estimator: Any, names: Any = None) -> Any:
    """Return names of the features as they reach the classifier inside pipelines, or None.

    Those of encoded texts are told by their words.
    """
    if hasattr(estimator, "steps"):
        readable = readable_names([step for _, step in estimator.steps[:-1]])
        if len(estimator.steps) > 1:
            before = estimator[:-1]
            if names is None and not hasattr(before, "feature_names_in_"):
                names = [f"feature{j}" for j in range(getattr(before, "n_features_in_", 0))]
            try:
                names = before.get_feature_names_out(names)
            except (AttributeError, ValueError):  # a step that gives no names
                names = None
        inside = _feature_names_inside(estimator.steps[-1][1], names)
        return inside if inside is None else [readable.get(name, name) for name in inside]
    inner = getattr(estimator, "best_estimator_", getattr(estimator, "estimator_", None))
    if inner is not None:
        return _feature_names_inside(inner, names)
    return getattr(estimator, "feature_names_in_", names)


def _steps_of(
    classifier: Any,
    encoded: Any,
    request: Request,
    answer: Answer,
    known: Labels,
    chosen: Collection[int],
    feature_names: Any,
) -> list[Step]:
    """Return the steps of the chosen labels, in the order of the chain."""
    assert answer.log_odds is not None
    labels, bounds = answer.labels[0, 0, 0], answer.log_odds[0, 0, 0]
    visited = range(classifier.n_labels_)  # as the columns, where there are several chains
    if answer.visited is not None:
        visited = answer.visited[0, 0, 0].tolist()
    elif not isinstance(classifier.model_, EnsembleModel) and request.order is not None:
        visited = request.order.tolist()
    history = np.full(classifier.n_labels_, UNDECIDED, dtype=np.int8)
    histories = []
    for j in visited:
        if j in chosen:
            histories.append((j, history.copy()))
        if request.chained:
            history[j] = labels[j]
    sums = classifier.model_.contributions(
        encoded, histories, s=request.s_values[0], strategy=request.strategies[0]
    )
    steps = []
    for i, (j, _) in enumerate(histories):
        parts = [] if sums is None or request.never_observed[j] else sums[i]
        answer_j = int(labels[j])
        reasons = _ranked((_reason(classifier, part, feature_names) for part in parts), answer_j)
        name, threshold = str(classifier.label_names_[j]), float(request.thresholds[j])
        is_known = bool(known[0, j] != MISSING)
        lower, upper = bounds[j].tolist()
        steps.append(Step(name, answer_j, is_known, threshold, lower, upper, reasons))
    return steps


def _ranked(reasons: Iterable[Reason], answer: int) -> tuple[Reason, ...]:
    """Sort what spoke for the answer before what spoke against it, the largest first."""

    def rank(reason: Reason) -> tuple[bool, float]:
        middle = reason.lower + reason.upper
        against = (answer == 1 and middle < 0) or (answer == 0 and middle > 0)
        return against, -reason.size

    return tuple(sorted(reasons, key=rank))


def _reason(classifier: Any, part: Any, feature_names: Any) -> Reason:
    name = "prior"
    if part.source == "feature":
        name = _feature_name(feature_names, part.number)
    elif part.source == "label":
        name = str(classifier.label_names_[part.number])
    return Reason(part.source, name, *part[2:])


def _feature_name(names: Any, number: int) -> str:
    return f"feature{number}" if names is None else str(names[number])


def _questions_about(
    table: Any,
    known_labels: Labels,
    prediction: CredalPrediction,
    infer: Callable[..., CredalPrediction],
    chosen: Collection[int],
) -> tuple[Question, ...]:
    """Ask about every chosen label that is open, both ways, in one batch."""
    names, is_open = prediction.label_names, prediction.abstained[0]
    asked = [(j, y) for j in np.flatnonzero(is_open).tolist() if j in chosen for y in (0, 1)]
    if not asked:
        return ()
    known = np.repeat(known_labels, len(asked), axis=0)
    known[np.arange(len(asked)), [j for j, _ in asked]] = [y for _, y in asked]
    rows = _safe_indexing(table, np.zeros(len(asked), dtype=np.int64))
    questions = []
    for (j, y), answers in zip(asked, infer(rows, known=known).labels, strict=True):
        settled = np.flatnonzero(is_open & (answers != ABSTAIN))
        others = tuple((names[k], int(answers[k])) for k in settled.tolist() if k != j)
        questions.append(Question(names[j], y, others))
    return tuple(questions)


def _similar(
    classifier: Any, encoded: Any, known: Any, chosen: Sequence[int], feature_names: Any
) -> tuple[SimilarRow, ...]:
    """Return the training rows that weigh most and have one of the chosen labels, if any."""
    model = classifier.model_
    if not isinstance(model, JointModel):
        return ()
    names = classifier.label_names_.tolist()
    if model.score_product is not None:  # the last columns are scores
        columns = range(model.encoder.n_columns - len(names))
        feature_names = [_feature_name(feature_names, j) for j in columns]
        feature_names += [f"score of {name}" for name in names]
    found = []
    for row in similar_rows(model, encoded, known=known[0], labels=chosen, at_most=_MAX_SIMILAR):
        labels = list(zip(names, row.labels.tolist(), strict=True))
        observed = tuple((name, y) for name, y in labels if y >= 0)
        unknown = tuple(name for name, y in labels if y < 0)
        as_text = partial(_condition_as_text, classifier, encoded[0], feature_names)
        in_common = tuple(map(as_text, row.in_common))
        found.append(SimilarRow(row.number, row.weight, observed, in_common, unknown))
    return tuple(found)


def _condition_as_text(classifier: Any, x: Any, feature_names: Any, condition: Condition) -> str:
    name = _feature_name(feature_names, condition.feature)
    categories = classifier.model_.encoder.words.get(condition.feature)
    if condition.is_missing:
        return f"{name} is missing{'' if categories is None else ', or new'}"
    if categories is not None:
        codes = np.arange(len(categories.keys))
        fitting = categories.keys[(codes > condition.lower) & (codes <= condition.upper)]
        return f"{name} is {' or '.join(map(str, fitting.tolist()))}"
    value = float(x[condition.feature])
    low = "" if condition.lower == -np.inf else f"{_rounded(condition.lower, value)} < "
    high = "" if condition.upper == np.inf else f" <= {_rounded(condition.upper, value)}"
    return f"{low}{name}{high}"


def _rounded(bound: float, value: float) -> str:
    """Return a bound with so many digits that the value is on the same side of it."""
    for digits in range(5, 17):
        text = f"{bound:.{digits}g}"
        if (value <= float(text)) == (value <= bound):
            return text
    return repr(bound)
