"""What explanations are made of: steps with their reasons, questions, similar training rows."""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from credalchain._utils.text import plural
from credalchain.chains.ensemble import EnsembleModel
from credalchain.chains.protocol import Request
from credalchain.explanation.result import Question, Reason, SimilarRow, Step
from credalchain.joint.model import JointModel
from credalchain.joint.similar import Condition, similar_rows
from credalchain.labels import ABSTAIN, MISSING, UNDECIDED, Targets, as_labels
from credalchain.prediction import Answer

_MAX_SIMILAR = 10


def as_single_row(x: Any, classifier: Any) -> Any:
    """A table with one row, from a vector or a table; one text where texts are classified."""
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
        raise ValueError(f"x must be one row, got {table.shape[0]}.")
    return table


def feature_names_inside(estimator: Any, names: Any = None) -> Any:
    """Names of the features as they reach the classifier inside pipelines; None without any."""
    if hasattr(estimator, "steps"):
        if len(estimator.steps) > 1:
            names = _names_after(estimator[:-1], names)
        return feature_names_inside(estimator.steps[-1][1], names)
    inner = getattr(estimator, "best_estimator_", getattr(estimator, "estimator_", None))
    if inner is None and hasattr(estimator, "estimators"):  # those that agree
        inner = estimator.estimators[0]
    if inner is not None:
        return feature_names_inside(inner, names)
    return getattr(estimator, "feature_names_in_", names)


def _names_after(transformer: Any, names: Any) -> Any:
    if names is None and not hasattr(transformer, "feature_names_in_"):
        names = [f"feature{j}" for j in range(getattr(transformer, "n_features_in_", 0))]
    try:
        return transformer.get_feature_names_out(names)
    except (AttributeError, ValueError):  # a step that gives no names
        return None


def known_for_single_row(known: Any, targets: Targets) -> Any:
    """Known labels of one row, (1, m)."""
    n_labels = targets.n_labels
    if known is None:
        return np.full((1, n_labels), MISSING, dtype=np.int8)
    if hasattr(known, "columns"):  # by name
        return targets.encode_known(known, 1)
    labels = as_labels(known, name="known", require_zero=False).reshape(1, -1)
    if labels.shape != (1, n_labels):
        raise ValueError(f"known must be {plural(n_labels, 'value')} 0, 1 or -1, got {known!r}.")
    return labels


def steps_of(
    classifier: Any,
    encoded: Any,
    request: Request,
    answer: Answer,
    chosen: Collection[int],
    feature_names: Any,
) -> list[Step]:
    """Steps of the chosen labels, in the order of the chain."""
    assert answer.log_odds is not None
    labels, bounds, known = answer.labels[0, 0, 0], answer.log_odds[0, 0, 0], request.known
    history = np.full(classifier.n_labels_, UNDECIDED, dtype=np.int8)
    histories = []
    for j in _visited(classifier.model_, request, answer):
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
        reasons = [_reason(classifier, part, feature_names) for part in parts]
        steps.append(
            Step(
                str(classifier.label_names_[j]),
                int(labels[j]),
                bool(known is not None and known[0, j] != MISSING),
                float(request.thresholds[j]),
                float(bounds[j, 0]),
                float(bounds[j, 1]),
                ranked(reasons, int(labels[j])),
            )
        )
    return steps


def ranked(reasons: Iterable[Reason], answer: int) -> tuple[Reason, ...]:
    """What spoke for the answer first, then what spoke against it, each with the largest first."""
    return tuple(sorted(reasons, key=partial(_rank, answer)))


def _rank(answer: int, reason: Reason) -> tuple[bool, float]:
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


def _feature_name(names: Any, number: int) -> str:
    return f"feature{number}" if names is None else str(names[number])


def _reason(classifier: Any, part: Any, feature_names: Any) -> Reason:
    if part.source == "feature":
        name = _feature_name(feature_names, part.number)
    elif part.source == "label":
        name = str(classifier.label_names_[part.number])
    else:
        name = "prior"
    return Reason(part.source, name, part.value, part.lower, part.upper)


def questions_about(
    names: Any,
    table: Any,
    known_labels: Any,
    labels: Any,
    infer_labels: Callable[[Any, Any], Any],
    chosen: Collection[int],
) -> tuple[Question, ...]:
    """Ask about every chosen label that is open, both ways; ``infer_labels`` takes known labels.

    All in one batch.
    """
    opened = np.flatnonzero(labels == ABSTAIN).tolist()
    asked = [(j, y) for j in opened if j in chosen for y in (0, 1)]
    if not asked:
        return ()
    known = np.repeat(known_labels, len(asked), axis=0)
    for row, (j, y) in enumerate(asked):
        known[row, j] = y
    rows = table.iloc[[0] * len(asked)] if hasattr(table, "iloc") else _repeat(table, len(asked))
    questions = []
    for (j, y), answers in zip(asked, infer_labels(rows, known), strict=True):
        settled = np.flatnonzero((labels == ABSTAIN) & (answers != ABSTAIN))
        others = tuple((str(names[k]), int(answers[k])) for k in settled.tolist() if k != j)
        questions.append(Question(str(names[j]), y, others))
    return tuple(questions)


def _repeat(table: Any, n_rows: int) -> Any:
    return table[[0] * n_rows]


def similar_training_rows(
    classifier: Any, encoded: Any, known: Any, chosen: Sequence[int], feature_names: Any
) -> tuple[SimilarRow, ...]:
    """The training rows that weigh most and have one of the chosen labels, where there are such."""
    model = classifier.model_
    if not isinstance(model, JointModel):
        return ()
    labels = classifier.label_names_.tolist()
    return tuple(
        SimilarRow(
            similar_row.number,
            similar_row.weight,
            tuple(
                (name, int(y)) for name, y in zip(labels, similar_row.labels, strict=True) if y >= 0
            ),
            tuple(
                _condition_as_text(classifier, condition, encoded[0], feature_names)
                for condition in similar_row.in_common
            ),
            tuple(name for name, y in zip(labels, similar_row.labels, strict=True) if y < 0),
        )
        for similar_row in similar_rows(
            model, encoded, known=known[0], labels=chosen, at_most=_MAX_SIMILAR
        )
    )


def _condition_as_text(classifier: Any, condition: Condition, x: Any, feature_names: Any) -> str:
    name = _feature_name(feature_names, condition.feature)
    categories = classifier.model_.encoder.words.get(condition.feature)
    if condition.is_missing:
        return f"{name} is missing{'' if categories is None else ', or new'}"
    if categories is not None:
        keys = categories.keys.tolist()
        fitting = [
            key for code, key in enumerate(keys) if condition.lower < code <= condition.upper
        ]
        return f"{name} is {' or '.join(map(str, fitting))}"
    value = float(x[condition.feature])
    low = "" if condition.lower == -np.inf else f"{_rounded(condition.lower, value)} < "
    high = "" if condition.upper == np.inf else f" <= {_rounded(condition.upper, value)}"
    return f"{low}{name}{high}"


def _rounded(bound: float, value: float) -> str:
    """A bound with so many digits that the value is on the same side of it."""
    for digits in range(5, 17):
        text = f"{bound:.{digits}g}"
        if (value <= float(text)) == (value <= bound):
            return text
    return repr(bound)
