"""Calibration by cross-validation: fold models, and what they say together."""

import operator
from functools import reduce
from itertools import repeat
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing as take_rows

from credalchain.array_types import Labels
from credalchain.estimators.folds import fitted_folds
from credalchain.model_selection import Rows, group_folds, one_of_each_group, row_groups
from credalchain.promises.agreement import AgreeingClassifiers
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
from credalchain.text import plural

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
