"""Calibration by cross-validation: fold models, and answers on which all of them agree."""

import operator
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from itertools import repeat
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing as take_rows

from credalchain._utils.array_types import Labels
from credalchain._utils.text import plural
from credalchain._utils.validation import check_instance
from credalchain.chains.base import fitted_folds
from credalchain.labels import ABSTAIN
from credalchain.model_selection import Rows, group_folds, one_of_each_group, row_groups, unwrap
from credalchain.promises.calibration import (
    CalibrationResult,
    CalibrationRows,
    by_label,
    caution_values,
    columns_of,
    loss_sums_along,
    note_of_groups,
)
from credalchain.promises.reading import check_rows, warn_of_incomplete_rows
from credalchain.promises.risks import evaluable_rows
from credalchain.promises.selection import (
    EvaluatedPromise,
    Promise,
    first_tested_value,
    kept_by_agreement,
    kept_values,
    plan_test,
)
from credalchain.promises.statistics import fewest_rows


class AgreeingClassifiers:
    """The models of a cross-validation: a label is answered where all of them answer it alike.

    Parameters
    ----------
    estimators : sequence of fitted classifiers or pipelines
        With the same labels and columns.
    """

    def __init__(self, estimators: Sequence[Any]) -> None:
        self.estimators = estimators
        first, _ = unwrap(estimators[0])
        self.caution_parameter = first.caution_parameter
        self.larger_is_more_cautious = first.larger_is_more_cautious
        self.classes_, self.label_names_ = first.classes_, first.label_names_
        self.targets_ = first.targets_
        for name in ("n_features_in_", "feature_names_in_"):  # of what comes into a pipeline
            if hasattr(estimators[0], name):
                setattr(self, name, getattr(estimators[0], name))

    def check_state(self) -> None:
        """Validate the fitted attributes, as those of a model that was stored."""
        check_instance("estimators", self.estimators, list)
        shapes = {
            (type(final), tuple(final.label_names_), final.n_features_in_)
            for final in (unwrap(estimator)[0] for estimator in self.estimators)
        }
        if len(shapes) != 1:
            raise ValueError("the models that must agree have different labels or columns.")

    @property
    def nested_(self) -> bool:
        """Whether they all are: what all answer alike is then nested, too."""
        return all(unwrap(estimator)[0].nested_ for estimator in self.estimators)

    def read_labels(self, Y: Any) -> Labels:
        """True labels of new rows, in the form of ``predict_partial``."""
        return np.asarray(unwrap(self.estimators[0])[0].read_labels(Y))

    def predict_path(self, X: Any, values: Any) -> Labels:
        """Labels on which all agree, for many values of caution: int8, (n_values, n, m)."""
        agreed: Any = None
        for estimator in self.estimators:
            final, Z = unwrap(estimator, X)
            path = np.asarray(final.predict_path(Z, values))
            agreed = path if agreed is None else np.where(agreed == path, agreed, ABSTAIN)
        return np.asarray(agreed, dtype=np.int8)

    def infer(self, X: Any, **options: Any) -> Any:
        """Labels on which all agree, and bounds that hold all of theirs."""
        pairs = [unwrap(estimator, X) for estimator in self.estimators]
        predictions = [final.infer(Z, **options) for final, Z in pairs]
        labels = predictions[0].labels
        for other in predictions[1:]:
            labels = np.where(labels == other.labels, labels, ABSTAIN)
        return replace(
            predictions[0],
            labels=labels,
            log_odds=_envelope([prediction.log_odds for prediction in predictions]),
            model_interval=_envelope([prediction.interval for prediction in predictions]),
        )

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The mean of theirs."""
        probabilities = [estimator.predict_proba(X) for estimator in self.estimators]
        return np.asarray(np.mean(probabilities, axis=0))

    def predict(self, X: Any) -> NDArray[Any]:
        """Every label answered, by most of them; a tie is 0."""
        predictions = [np.asarray(estimator.predict(X)) for estimator in self.estimators]
        classes = self.classes_
        if classes.ndim > 1:
            return np.asarray(2 * np.sum(predictions, axis=0) > len(predictions), dtype=np.int64)
        n_last = np.sum([labels == classes[-1] for labels in predictions], axis=0)
        return np.asarray(np.where(2 * n_last > len(predictions), classes[-1], classes[0]))


def _envelope(bounds: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Lower and upper bounds (n, m, 2) that hold all of these."""
    lower = np.min([bound[..., 0] for bound in bounds], axis=0)
    upper = np.max([bound[..., 1] for bound in bounds], axis=0)
    return np.stack([lower, upper], axis=-1)


Splits = list[tuple[Any, Any]]


def evaluate_promises_by_folds(
    unfitted: Any,
    X: Any,
    Y: Any,
    labels: Labels,
    promises: list[Promise],
    *,
    method: str,
    calibration: Any,
    values: Any,
    rng: np.random.RandomState,
    groups: Any = None,
) -> tuple[Any, CalibrationResult, Labels, tuple[str, ...]]:
    """The estimator that answers, what the rows say of it, their labels, and notes.

    Folds keep groups together, and one row of each counts. For agreement of fold models, all other
    rows are left out, those with missing labels, and as many as it takes for folds of the same
    size.
    """
    rows, group_of = np.arange(len(labels)), row_groups(X, labels, groups)
    agree = method == "cross_conformal"
    if agree:
        warn_of_incomplete_rows(labels, promises)
        rows = evaluable_rows(promises[0].risk, labels)
    counted = one_of_each_group(group_of, rows, rng)
    note = note_of_groups(len(rows), len(counted), groups)
    if agree:
        rows = counted
        n_folds = _n_folds(calibration, len(rows), promises)
        rows = counted = np.sort(rng.permutation(rows)[: len(rows) - len(rows) % n_folds])
    check_rows(labels[counted], promises, note)
    X, Y, truth = take_rows(X, rows), take_rows(Y, rows), labels[rows]
    splits = _splits(calibration, truth, group_of[rows], rng, same_size=agree)
    is_counted = np.isin(rows, counted)
    fitted, by_fold, answers = [], [], []
    for fold in fitted_folds(repeat(unfitted), X, Y, splits):
        fold_rows = np.flatnonzero(is_counted[fold.rows])
        chosen = caution_values(fold.estimator, values)
        held = CalibrationRows(
            fold.estimator, fold.X, truth[fold.rows], chosen, np.zeros(len(fold.rows), dtype=bool)
        )
        sums, fold_answers = loss_sums_along(held, fold_rows, promises)
        fitted.append(fold.estimator)
        by_fold.append(sums)
        answers.append(fold_answers)
    answered, yes = np.sum(answers, axis=0) / len(counted)
    evaluated = []
    for i, promise in enumerate(promises):
        total = reduce(operator.add, [sums[i] for sums in by_fold])
        evaluated.append(EvaluatedPromise(promise, total, plan_test(promise, total, len(counted))))
    kept = {}
    for label, indices in by_label(promises).items():
        if agree:
            passed = [kept_by_agreement(promises[i], [s[i] for s in by_fold]) for i in indices]
            kept[label] = np.logical_and.reduce(passed)
            continue
        label_promises = [evaluated[i] for i in indices]
        start = first_tested_value(label_promises, answered[:, columns_of(label)].sum(axis=1))
        kept[label] = kept_values(label_promises, start)
    estimator = AgreeingClassifiers(fitted) if agree else unfitted.fit(X, Y)
    result = CalibrationResult(evaluated, kept, answered, yes)
    return estimator, result, labels[counted], (note,) if note else ()


def _n_folds(calibration: Any, n: int, promises: list[Promise]) -> int:
    n_folds = int(calibration) if isinstance(calibration, Integral) else _count(calibration, n)
    level = min(promise.level for promise in promises)
    needed = fewest_rows(level, None)
    if n_folds < needed or n < n_folds:
        raise ValueError(
            f"calibration: answers by agreement of fold models need at least {needed} folds for a "
            f"level of {level:g}, and as many rows without missing labels, got "
            f"{plural(n_folds, 'fold')} and {plural(n, 'row')}."
        )
    return n_folds


def _count(splitter: Any, n: int) -> int:
    return int(splitter.get_n_splits(np.zeros((n, 1))))


def _splits(
    calibration: Any, truth: Labels, groups: Rows, rng: np.random.RandomState, *, same_size: bool
) -> Splits:
    """Folds that hold every row once."""
    from sklearn.model_selection import KFold  # slow to import

    splitter = calibration
    if isinstance(calibration, Integral):
        seed = rng.randint(2**31 - 1)
        splitter = KFold(int(calibration), shuffle=True, random_state=seed)
    try:
        splits = list(group_folds(groups, splitter, truth))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"calibration: {calibration!r} cannot split {plural(len(truth), 'row')}: {error}"
        ) from error
    tested = np.concatenate([np.asarray(test) for _, test in splits])
    once = len(tested) == len(truth) and len(np.unique(tested)) == len(truth)
    if not once or (same_size and len({len(test) for _, test in splits}) > 1):
        raise ValueError(
            "calibration: folds must hold every row once"
            + (", and be of the same size" if same_size else "")
            + f", as those of KFold, got {calibration!r}."
        )
    return splits
