"""Promises evaluated on rows held out, at every value of caution."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from credalchain._utils.array_types import FloatArray, Labels
from credalchain._utils.validation import check_s_values
from credalchain.exceptions import data_warnings_ignored
from credalchain.joint.model import JointModel
from credalchain.labels import ABSTAIN
from credalchain.model_selection import one_of_each_group, row_groups, rows_of_groups, unwrap
from credalchain.promises.reading import PILOT_SHARE, check_rows
from credalchain.promises.selection import (
    EvaluatedPromise,
    LossSums,
    Promise,
    empty_loss_sums,
    first_tested_value,
    kept_values,
    plan_test,
    sum_losses,
)

_S = np.append(0.0, np.geomspace(1e-3, 1e6, 361))
_REWARDS = np.concatenate(  # most labels are withdrawn around 1
    [
        np.geomspace(100.0, 3.0, 50),
        np.geomspace(2.99, 0.3, 1400),
        np.geomspace(0.299, 0.01, 150),
        [0],
    ]
)
_MAX_CELLS = 2**24  # of a path of predictions
PREFIT = "assumed: neither these rows nor copies of them were used to fit the model"


class CalibrationRows(NamedTuple):
    """A fitted estimator, rows that it was not fitted on, and values of its caution.

    ``is_pilot`` (n,) marks the rows from which the tests of the other rows are planned; ``notes``
    are what a report says about the choice of rows.
    """

    estimator: Any
    X: Any
    truth: Labels
    values: FloatArray
    is_pilot: NDArray[np.bool_]
    notes: tuple[str, ...] = ()


def _number_training_rows(estimator: Any, rows: NDArray[np.int64]) -> None:
    """Give explanations the numbers that the training rows have among all rows."""
    final, _ = unwrap(estimator)
    model = getattr(getattr(final, "estimator_", final), "model_", None)
    if isinstance(model, JointModel):
        model.row_numbers = rows


class CalibrationResult(NamedTuple):
    """Evaluation of promises on rows held out.

    ``kept`` says for each label (None: whole rows) at which values its promises are kept, (V,);
    ``answered`` (V, m) is the share of rows in which each label is answered, ``yes`` (V, m) in
    which it is answered yes.
    """

    evaluated: list[EvaluatedPromise]
    kept: dict[int | None, NDArray[np.bool_]]
    answered: FloatArray
    yes: FloatArray


def hold_out(
    estimator: Any,
    X: Any,
    Y: Any,
    labels: Labels,
    promises: list[Promise],
    *,
    calibration: Any,
    values: Any,
    random_state: Any,
    groups: Any = None,
) -> CalibrationRows:
    """Fit to some of the rows and hold out others: a share of the groups, chosen at random.

    One row of each group held out counts. ``calibration`` may be "prefit": all rows are held out,
    and the estimator is fitted already.
    """
    rng = check_random_state(random_state)
    group_of = row_groups(X, labels, groups)
    train = np.empty(0, dtype=np.int64)
    held_out = np.arange(len(labels))
    prefit = isinstance(calibration, str)
    if not prefit:
        shuffled = rng.permutation(int(group_of.max(initial=-1)) + 1)
        n_held_out = int(np.ceil(calibration * len(shuffled)))
        train = rows_of_groups(group_of, shuffled[n_held_out:])
        held_out = rows_of_groups(group_of, shuffled[:n_held_out])
    rows = one_of_each_group(group_of, held_out, rng)
    note = note_of_groups(len(held_out), len(rows), groups)
    if not prefit and len(train) == 0:
        raise ValueError(
            f"X must have rows left to learn from, got n_samples={len(labels)}, of which "
            f"{len(held_out)} are kept apart for calibration.{note and ' '}{note}"
        )
    check_rows(labels[rows], promises, note)
    if prefit:
        check_is_fitted(estimator)
    else:
        estimator = estimator.fit(take_rows(X, train), take_rows(Y, train))
        _number_training_rows(estimator, train)
    truth = np.asarray(unwrap(estimator)[0].read_labels(take_rows(Y, rows)))
    is_pilot = np.zeros(len(truth), dtype=bool)
    is_pilot[rng.permutation(len(truth))[: int(PILOT_SHARE * len(truth))]] = True
    chosen = caution_values(estimator, values)
    notes = tuple(filter(None, [PREFIT if prefit else "", note]))
    return CalibrationRows(estimator, take_rows(X, rows), truth, chosen, is_pilot, notes)


def note_of_groups(n_rows: int, n_groups: int, groups: Any) -> str:
    """Say that one row of each group counts; nothing where every row is a group."""
    if n_groups == n_rows:
        return ""
    note = f"{n_rows} calibration rows are {n_groups} groups of "
    note += "equal rows" if groups is None else "rows that belong together"
    note += (
        ": groups are kept together, one row of each, drawn at random, counts, and the guarantee "
        "is for rows of new groups."
    )
    if groups is None:
        note += (
            " If rows are equal only because columns have few values, let each count: "
            "groups=np.arange(n), at the command line --groups none."
        )
    return note


def evaluate_promises(
    held: CalibrationRows, promises: list[Promise], *, together: bool = True
) -> CalibrationResult:
    """Which values keep the promises: those about one label (or about rows) together.

    Or each by itself; then ``kept`` has their indices as keys.
    """
    pilot_sums, pilot_answers = loss_sums_along(held, np.flatnonzero(held.is_pilot), promises)
    test_sums, test_answers = loss_sums_along(held, np.flatnonzero(~held.is_pilot), promises)
    n_test = int((~held.is_pilot).sum())
    plans = [plan_test(*pair, n_test) for pair in zip(promises, pilot_sums, strict=True)]
    groups = by_label(promises) if together else {i: [i] for i in range(len(promises))}
    evaluated: dict[int, EvaluatedPromise] = {}
    kept: dict[int | None, NDArray[np.bool_]] = {}
    for key, indices in groups.items():
        pilot_promises = [EvaluatedPromise(promises[i], pilot_sums[i], plans[i]) for i in indices]
        columns = columns_of(promises[indices[0]].label)
        start = first_tested_value(pilot_promises, pilot_answers[0][:, columns].sum(axis=1))
        has_pilot = any(promises[i].needs_pilot for i in indices)
        for i in indices:
            sums = test_sums[i] if has_pilot else pilot_sums[i] + test_sums[i]
            evaluated[i] = EvaluatedPromise(promises[i], sums, plans[i])
        kept[key] = kept_values([evaluated[i] for i in indices], start)
    shares = (pilot_answers + test_answers) / max(len(held.truth), 1)
    return CalibrationResult([evaluated[i] for i in range(len(promises))], kept, *shares)


def by_label(promises: list[Promise]) -> dict[int | None, list[int]]:
    """Indices of the promises about each label; None: about whole rows."""
    indices: dict[int | None, list[int]] = {}
    for i, promise in enumerate(promises):
        indices.setdefault(promise.label, []).append(i)
    return indices


def columns_of(label: int | None) -> slice:
    """The labels that a promise is about."""
    return slice(None) if label is None else slice(label, label + 1)


def check_estimator(estimator: Any) -> None:
    """Refuse what has no degrees of caution, fitted or not."""
    final, _ = unwrap(estimator)
    for name in ("predict_path", "fit", "caution_parameter", "larger_is_more_cautious"):
        if not hasattr(final, name):
            raise TypeError(f"estimator must have {name}, like JointDecision(), got {estimator!r}.")


def caution_values(estimator: Any, requested: Any) -> FloatArray:
    """Values of the caution parameter, from bold to cautious."""
    final, _ = unwrap(estimator)
    rising = getattr(final, "larger_is_more_cautious", True)
    if requested is None:
        return _S if rising else _REWARDS
    try:
        values = np.asarray(requested, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 1 or len(values) == 0 or not np.isfinite(values).all():
        raise ValueError(f"values must be a list of numbers, got {requested!r}.")
    if final.caution_parameter == "s":
        check_s_values(values.tolist(), "values")
    values = np.unique(values)
    return values if rising else values[::-1]


def answers_along(estimator: Any, X: Any, values: Any) -> Labels:
    """Partial predictions (V, n, m), also of pipelines."""
    final, Z = unwrap(estimator, X)
    return np.asarray(final.predict_path(Z, values))


def loss_sums_along(
    held: CalibrationRows, chosen: NDArray[np.int64], promises: list[Promise]
) -> tuple[list[LossSums], FloatArray]:
    """Losses of chosen rows at every value; how many answer each label, and yes: (2, V, m)."""
    n_values, m = len(held.values), held.truth.shape[1]
    nested = bool(unwrap(held.estimator)[0].nested_)
    sums = [empty_loss_sums(promise, n_values) for promise in promises]
    answers = np.zeros((2, n_values, m))
    at_once = max(1, _MAX_CELLS // (n_values * m))
    for first in range(0, len(chosen), at_once):
        rows = chosen[first : first + at_once]
        with data_warnings_ignored():
            path = answers_along(held.estimator, take_rows(held.X, rows), held.values)
        for i, promise in enumerate(promises):
            sums[i] += sum_losses(promise, held.truth[rows], path, nested)
        answers += [(path != ABSTAIN).sum(axis=1), (path == 1).sum(axis=1)]
    return sums, answers
