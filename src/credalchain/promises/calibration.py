"""Promises evaluated on rows held out, at every value of caution."""

import copy
import operator
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import repeat
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.base import clone
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted, has_fit_parameter

from credalchain import model_selection as selection
from credalchain._utils.array_types import FloatArray, Labels
from credalchain._utils.text import plural
from credalchain._utils.validation import check_choice, check_s_values
from credalchain.chains.interface import fitted_folds
from credalchain.exceptions import data_warnings_ignored, warn_about_data
from credalchain.joint.decision import JointDecision
from credalchain.joint.model import JointModel
from credalchain.joint.rules import ROW_REWARDS
from credalchain.labels import ABSTAIN, MISSING, Targets, as_indexable_labels, both_answers_seen
from credalchain.preprocessing import as_indexable
from credalchain.promises import statistics
from credalchain.promises.risks import (
    RISKS,
    Promise,
    Risk,
    evaluable_rows,
    is_share,
    read_promises,
)

PILOT_SHARE = 0.15  # of the calibration rows, to plan tests
_S = np.append(0.0, np.geomspace(1e-3, 1e6, 361))
_MAX_CELLS = 2**24  # of a path of predictions


class CalibrationRows(NamedTuple):
    """Fitted estimator, rows that it was not fitted on, and values of its caution.

    ``is_pilot`` (n,) marks the rows from which the tests of the other rows are planned; None: all
    rows plan, and all are tested, which proves nothing.
    """

    estimator: Any
    X: Any
    truth: Labels
    values: FloatArray
    is_pilot: NDArray[np.bool_] | None


class Calibration(NamedTuple):
    """Evaluation of promises on rows held out.

    ``kept`` says for each label (None: whole rows) and side at which of the ``values`` its promises
    are kept, (V,); ``limits`` are those of each promise, (V,), or None. ``answered`` (V, m) is the
    share of rows in which each label is answered, ``yes`` in which it is answered yes, ``found`` in
    which that is right, and ``missed`` in which it is answered no and true; ``positives`` (m,) in
    which it is true. ``n_incomplete`` of the rows have missing labels.
    """

    evaluated: list[statistics.EvaluatedPromise]
    kept: dict[Any, NDArray[np.bool_]]
    limits: list[FloatArray | None]
    values: FloatArray
    answered: FloatArray
    yes: FloatArray
    found: FloatArray
    missed: FloatArray
    positives: FloatArray
    n_rows: int
    n_incomplete: int


# -- reading parameters --------------------------------------------------------------------------


def read_method(method: Any, calibration: Any, confidence: Any, promises: list[Promise]) -> str:
    """Return how promises are kept; raise for folds, unless their lack of a guarantee is known."""
    check_choice("method", method, ("auto", "cross_fit"))
    whole = isinstance(calibration, Integral) and not isinstance(calibration, bool)
    is_splitter = hasattr(calibration, "get_n_splits") and not isinstance(calibration, type)
    in_folds = (whole and calibration >= 2) or is_splitter
    prefit = isinstance(calibration, str) and calibration == "prefit"
    if not (in_folds or prefit or is_share(calibration)):
        raise ValueError(
            "calibration must be a share of the rows between 0 and 1, 'prefit', a number of "
            f"folds or a splitter such as KFold(20), got {calibration!r}."
        )
    if (method == "cross_fit") != in_folds:
        raise ValueError(
            f"method {method!r} does not go with calibration={calibration!r}: 'cross_fit', which "
            "guarantees nothing, takes a number of folds or a splitter, 'auto' a share of the rows "
            "or 'prefit'."
        )
    for promise in promises:
        if confidence is None and promise.risk.is_ratio:
            raise ValueError(
                f"{promise.risk.name} may rise with caution, so nothing is known of it on "
                "average: give a confidence, such as 0.9 (--confidence 0.9)."
            )
    return method if in_folds else "conformal" if confidence is None else "learn_then_test"


def best_loss(risks: Collection[Risk] | None) -> str:
    """Return the loss of a joint decision that suits these risks; None: nothing is promised."""
    if risks is None or any(not risk.is_ratio and risk.side is None for risk in risks):
        return "row"
    sides = {risk.side for risk in risks}
    return "bands" if 1 in sides and None not in sides else "cell"


def _suitable_loss(promises: list[Promise]) -> str:
    of_rows = [p.risk for p in promises if p.label is None or p.risk.side is not None]
    return best_loss(of_rows)


def _learns_costs(estimator: Any, promises: list[Promise], prefit: bool) -> bool:
    """Return whether the costs of a joint decision are free, and what is promised tells them."""
    final, _ = selection.unwrap(estimator)
    is_free = getattr(final, "loss", "") == "bands" and final.costs is None
    is_ours = final is estimator or not prefit
    return is_free and is_ours and all(promise.risk.side is not None for promise in promises)


def learn_costs(model: Any, X: Any, truth: Labels, promises: list[Promise]) -> tuple[float, float]:
    """Learn the costs of a wrong no and a wrong yes with which answers keep both promises best.

    Answers yes keep theirs above a probability, answers no theirs below one. Wherever between them
    the probability lies at which both cost the same, no answer is lost.
    """
    p = model.predict_interval(X).mean(axis=-1)
    log_odds = []
    for promise in promises:
        scores, is_true = p[:, promise.columns], truth[:, promise.columns] == 1
        if promise.risk.side == 1:  # the lowest above which few answers yes are wrong
            known = truth[:, promise.columns] != MISSING
            falling = np.argsort(-scores[known], kind="stable")
            right = np.cumsum(is_true[known][falling])
            kept = np.flatnonzero(right >= (1 - promise.level) * np.arange(1, len(right) + 1))
            threshold = scores[known][falling[kept[-1]]] if len(kept) else 0.5
        else:  # the highest below which few true labels lie
            weights = is_true / np.maximum(is_true.sum(axis=1, keepdims=True), 1)
            rising = np.argsort(scores, axis=None, kind="stable")
            missed = np.cumsum(weights.ravel()[rising]) / max(is_true.any(axis=1).sum(), 1)
            above = np.flatnonzero(missed > promise.level)
            threshold = scores.ravel()[rising[above[0]]] if len(above) else 0.5
        log_odds.append(logit(np.clip(threshold, 0.01, 0.99)))
    return float(np.exp(-np.mean(log_odds))), 1.0


def check_estimator(estimator: Any) -> None:
    """Raise if an estimator, fitted or not, has no degrees of caution."""
    final, _ = selection.unwrap(estimator)
    for name in ("predict_path", "fit", "caution_parameter", "larger_is_more_cautious"):
        if not hasattr(final, name):
            raise TypeError(f"estimator must have {name}, like JointDecision(), got {estimator!r}.")


def caution_values(estimator: Any, requested: Any) -> FloatArray:
    """Return values of the caution parameter, from least to most cautious."""
    final, _ = selection.unwrap(estimator)
    rising = getattr(final, "larger_is_more_cautious", True)
    if requested is None:
        return _S if rising else np.asarray(getattr(final, "caution_grid", ROW_REWARDS))
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


def check_rows(truth: Labels, promises: list[Promise], note: str = "") -> None:
    """Raise if rows are too few, and warn of those that cannot be judged, before fitting.

    ``note`` says why some rows do not count at all.
    """
    if promises[0].conservative:
        truth = np.maximum(truth, 0)  # all rows can be judged
    complete = int((truth != MISSING).all(axis=1).sum())
    of_rows = [p.risk.name for p in promises if p.label is None and not p.risk.is_ratio]
    if of_rows and complete < len(truth):
        warn_about_data(
            f"{complete} of {len(truth)} calibration rows can be judged for {of_rows[0]}: the "
            "others have missing labels. selective_error and promises about single labels, such "
            "as {'row_error': {label: level}}, use every label that is known."
        )
    with_pilot = {promise.key for promise in promises if promise.needs_pilot}
    for promise in promises:
        risk = promise.risk
        n = len(evaluable_rows(risk, truth[:, promise.columns]))
        n -= int(PILOT_SHARE * n) if promise.key in with_pilot else 0
        needed = statistics.fewest_rows(promise.level, promise.confidence)
        if n >= needed:
            continue
        how = "" if promise.confidence is None else f" with confidence {promise.confidence:g}"
        that_count = " that count" if n < len(truth) else ""
        hint = ""
        if len(truth) < needed:
            hint = " Give more rows, or promise a larger level."
        elif promise.label is None and not risk.is_ratio and complete < len(truth):
            hint = (
                " A row counts if all its labels are known; for selective_error and promises "
                "about single labels, each label that is known counts."
            )
        raise ValueError(
            f"the promise {risk.name} at most {promise.level:g}{how} needs at least {needed} "
            f"rows for calibration{that_count}, got {n}: even if all were right, fewer could "
            f"not show it.{hint}{note and ' '}{note}"
        )


# -- holding rows out ----------------------------------------------------------------------------


class HeldOut(NamedTuple):
    """Fitted estimator with rows held out from it, or models of folds with theirs.

    ``counted`` (m,) are the labels that count in shares answered; ``notes`` are what a report says
    about the choice of rows.
    """

    estimator: Any
    parts: Iterable[CalibrationRows]
    promises: list[Promise]
    method: str
    counted: NDArray[np.bool_]
    notes: tuple[str, ...]


def hold_out(
    promised: Any, X: Any, Y: Any, groups: Any = None, original_labels: Any = None
) -> HeldOut:
    """Fit to some of the rows and hold out others, as the parameters of a PromisedClassifier say.

    A share of the groups, chosen at random, is held out, and one row of each counts. With
    ``calibration="prefit"`` that are all rows. With folds, each is held out from a model of the
    others, and the estimator is fitted to all rows.
    """
    if Y is None:
        raise ValueError("PromisedClassifier requires y to be passed, but the target y is None.")
    X, Y = as_indexable(X), as_indexable_labels(Y)
    targets, labels = Targets.learn(Y)
    check_consistent_length(X, labels)
    Y_judged, judged = Y, labels
    if original_labels is not None:
        Y_judged = as_indexable_labels(original_labels)
        judged = targets.encode(Y_judged)
        if not is_share(promised.calibration) or len(judged) > len(labels):
            raise ValueError(
                "original_labels must be those of the first rows of X, for a calibration that is a "
                f"share of them, got {plural(len(judged), 'row')} of {len(labels)} and "
                f"calibration={promised.calibration!r}."
            )
    estimator, calibration = promised.estimator, promised.calibration
    prefit, names = isinstance(calibration, str), targets.names
    if estimator is not None or prefit:
        check_estimator(estimator)
    if prefit:
        names = getattr(selection.unwrap(estimator)[0], "label_names_", names)
    promises = read_promises(
        promised.promise,
        promised.confidence,
        [*map(str, names)],
        promised.guarantee,
        promised.missing,
    )
    method = read_method(promised.method, calibration, promised.confidence, promises)
    is_of_all = all(p.label is None and p.risk.label_losses for p in promises)
    if promised.per_label and (method == "cross_fit" or not is_of_all):
        raise ValueError(
            f"per_label=True is for {', '.join(RISKS)} of all labels and method='auto', got "
            f"promise={promised.promise!r} and method={promised.method!r}."
        )
    rng = check_random_state(promised.random_state)
    if estimator is None:
        is_seed = isinstance(promised.random_state, Integral)
        seed = promised.random_state if is_seed else rng.randint(2**31 - 1)
        estimator = JointDecision(loss=_suitable_loss(promises), random_state=seed)
    elif not prefit:
        estimator = clone(estimator)
    group_of = selection.row_groups(X, labels, groups)
    train, held_out = np.empty(0, dtype=np.int64), np.arange(len(labels))
    if is_share(calibration):
        shuffled = rng.permutation(np.unique(group_of[: len(judged)]))
        n_held_out = int(np.ceil(calibration * len(shuffled)))
        held_out = selection.rows_of_groups(group_of, shuffled[:n_held_out])
        train = np.setdiff1d(np.arange(len(labels)), held_out)
        held_out = held_out[held_out < len(judged)]
    rows = selection.one_of_each_group(group_of, held_out, rng)
    note = ""
    if len(rows) < len(held_out):
        kind, hint = "rows that belong together", ""
        if groups is None:
            kind = "equal rows"
            hint = " If rows are equal only because columns have few values, let each count: "
            hint += "groups=np.arange(n), at the command line --groups none."
        note = (
            f"{len(held_out)} calibration rows are {len(rows)} groups of {kind}: groups are kept "
            "together, one row of each, drawn at random, counts, and the guarantee is for rows of "
            f"new groups.{hint}"
        )
    if is_share(calibration) and len(train) == 0:
        raise ValueError(
            f"X must have rows left to learn from, got n_samples={len(labels)}, of which "
            f"{len(held_out)} are held out for calibration.{note and ' '}{note}"
        )
    check_rows(judged[rows], promises, note)

    def hold_out_folds(splits: list[tuple[Any, Any]]) -> Iterator[CalibrationRows]:
        for fold in fitted_folds(repeat(estimator), X, Y, splits):
            chosen = np.isin(fold.rows, rows)
            fold_rows = take_rows(fold.X, np.flatnonzero(chosen))
            values = caution_values(estimator, promised.values)
            truth = labels[fold.rows[chosen]]
            yield CalibrationRows(fold.estimator, fold_rows, truth, values, None)
        estimator.fit(X, Y, **_groups_for(estimator, group_of))

    if method == "cross_fit":
        splits = _splits(calibration, labels, group_of, rng)
        parts: Iterable[CalibrationRows] = hold_out_folds(splits)
    else:
        if not prefit:
            grouped = _groups_for(estimator, group_of[train])
            estimator.fit(take_rows(X, train), take_rows(Y, train), **grouped)
            final, _ = selection.unwrap(estimator)
            model = getattr(getattr(final, "estimator_", final), "model_", None)
            if isinstance(model, JointModel):  # explanations number rows as they were given
                used = slice(None) if model.row_numbers is None else model.row_numbers
                model.row_numbers = train[used]
        check_is_fitted(estimator)
        truth = np.asarray(selection.unwrap(estimator)[0].read_labels(take_rows(Y_judged, rows)))
        is_pilot = np.zeros(len(truth), dtype=bool)
        is_pilot[rng.permutation(len(truth))[: int(PILOT_SHARE * len(truth))]] = True
        X_held = take_rows(X, rows)
        if _learns_costs(estimator, promises, prefit) and is_pilot.any():
            final, Z = selection.unwrap(estimator, take_rows(X_held, np.flatnonzero(is_pilot)))
            if prefit:  # an estimator of the user, which stays as it is
                estimator = final = copy.copy(final)
            final.set_params(costs=learn_costs(final, Z, truth[is_pilot], promises))
            promises = [replace(promise, is_chosen=True) for promise in promises]
        values = caution_values(estimator, promised.values)
        parts = [CalibrationRows(estimator, X_held, truth, values, is_pilot)]
    counted = np.ones(labels.shape[1], dtype=bool) if prefit else both_answers_seen(labels)
    assumed = "assumed: neither these rows nor copies of them were used to fit the model"
    if not prefit:
        assumed = getattr(selection.unwrap(estimator)[0], "learned_from_", "")
    if original_labels is not None:
        note = (
            f"{plural(len(labels) - len(judged), 'row')} and labels that people answered are "
            f"learned from; calibration rows are drawn from the other {len(judged)} rows, whose "
            f"labels do not depend on the model{note and '. '}{note}"
        )
    conservative = "missing labels: the promise holds whatever they are"
    of_missing = conservative if promises[0].conservative else ""
    lines = assumed, note, of_missing, _note_of_loss(estimator, promises)
    notes = tuple(filter(None, lines))
    if promised.per_label:
        promises = _promises_by_label(promises, truth[is_pilot], int((~is_pilot).sum()))
    return HeldOut(estimator, parts, promises, method, counted, notes)


def _note_of_loss(estimator: Any, promises: list[Promise]) -> str:
    """Say how answers are decided, if the loss is not what suits the promises, or was learned."""
    final, _ = selection.unwrap(estimator)
    loss, suits = getattr(final, "loss", ""), _suitable_loss(promises)
    if loss == "bands" and final.costs is not None:
        return f"a wrong no costs {final.costs[0]:.3g}, a wrong yes {final.costs[1]:.3g}"
    if loss in ("row", "cell") and loss != suits:
        return f"loss={loss!r}: with loss={suits!r} more may be answered"
    return ""


def _promises_by_label(promises: list[Promise], truth: Labels, n_rows: int) -> list[Promise]:
    """Return promises about each label that ``n_rows`` rows can show, and the others pooled.

    Parameters
    ----------
    promises : list of Promise
        About all labels.
    truth : ndarray of shape (n_pilot, m)
        Labels of rows that do not count in tests. Where a risk is about positives, a label needs
        as many of them as would show the promise with twice the rows that no error needs.
    n_rows : int
        Rows that are tested.

    Returns
    -------
    list of Promise
        The confidence is split over their cautions.
    """
    about_positives = any(promise.risk.side is not None for promise in promises)
    counts = (truth == 1 if about_positives else truth != MISSING).sum(axis=0)
    expected = counts * (n_rows / max(len(truth), 1))
    by_count, m = np.argsort(-expected, kind="stable"), truth.shape[1]
    together = promises[0].confidence  # of one caution

    def confidence_each(n_own: int) -> float | None:
        return None if together is None else 1 - (1 - together) / (n_own + (n_own < m))

    def can_show(n_own: int) -> bool:
        needed = max(statistics.fewest_rows(p.level, confidence_each(n_own)) for p in promises)
        return bool(expected[by_count[n_own - 1]] >= 2 * needed)

    n_own = max((n for n in range(1, m + 1) if can_show(n)), default=0)
    own, rest = sorted(by_count[:n_own].tolist()), tuple(sorted(by_count[n_own:].tolist()))
    about: list[dict[str, Any]] = [{"label": j} for j in own]
    if rest:
        alone = len(rest) == 1 and own  # its binomial tail is exact
        about.append({"label": rest[0]} if alone else {"pooled": rest if own else None})
    share = confidence_each(n_own)
    return [replace(p, confidence=share, is_chosen=True, **one) for one in about for p in promises]


def _splits(
    calibration: Any, labels: Labels, groups: NDArray[np.int64], rng: np.random.RandomState
) -> list[tuple[Any, Any]]:
    """Split into folds that hold every row once."""
    from sklearn.model_selection import KFold  # slow to import

    splitter = calibration
    if isinstance(calibration, Integral):
        splitter = KFold(int(calibration), shuffle=True, random_state=rng.randint(2**31 - 1))
    try:
        splits = list(selection.group_folds(groups, splitter, labels))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"calibration: {calibration!r} cannot split {plural(len(labels), 'row')}: {error}"
        ) from error
    tested = np.concatenate([np.asarray(test) for _, test in splits])
    if not np.array_equal(np.sort(tested), np.arange(len(labels))):
        raise ValueError(
            f"calibration: folds must hold every row once, as those of KFold, got {calibration!r}."
        )
    return splits


def _groups_for(estimator: Any, groups: NDArray[np.int64]) -> dict[str, Any]:
    """Return the groups as an argument of fit, where it keeps rows of a group together."""
    return {"groups": groups} if has_fit_parameter(estimator, "groups") else {}


# -- evaluation ----------------------------------------------------------------------------------


def evaluate_promises(
    held: Iterable[CalibrationRows], promises: list[Promise], *, together: bool = True
) -> Calibration:
    """Return which values keep the promises: those that share a caution together.

    Or each by itself; then ``kept`` has their indices as keys.
    """
    pilot: list[Any] = []
    tested: list[Any] = []
    n_rows = n_tested = n_incomplete = 0
    n_positive: Any = 0
    limits: list[Any] = [None] * len(promises)
    for part in held:
        in_folds, n = part.is_pilot is None, len(part.truth)
        is_pilot = np.zeros(n, bool) if part.is_pilot is None else part.is_pilot
        if not any(promise.needs_pilot for promise in promises):
            is_pilot = np.zeros(n, bool)
        if any(promise.has_limit for promise in promises) and not in_folds:
            first_look: list[Any] = []
            _add_sums(first_look, part, np.flatnonzero(is_pilot), promises, limits)
            limits = [
                np.maximum(sums.most, 1.0) if promise.has_limit else None
                for promise, sums in zip(promises, first_look, strict=False)
            ]
        if not in_folds:
            _add_sums(pilot, part, np.flatnonzero(is_pilot), promises, limits)
        _add_sums(tested, part, np.flatnonzero(~is_pilot), promises, limits)
        n_positive += (part.truth == 1).sum(axis=0)
        n_rows += n
        n_tested += int((~is_pilot).sum())
        if not promises[0].conservative:
            n_incomplete += int((part.truth == MISSING).any(axis=1).sum())
    *test_sums, answers = tested
    *pilot_sums, pilot_answers = tested if in_folds else pilot
    pilots = [
        statistics.EvaluatedPromise(promise, sums, statistics.plan_test(promise, sums, n_tested))
        for promise, sums in zip(promises, pilot_sums, strict=True)
    ]
    keys: list[Any] = [promise.key if together else i for i, promise in enumerate(promises)]
    with_pilot = {keys[i] for i, promise in enumerate(promises) if promise.needs_pilot}
    evaluated = [
        one._replace(sums=sums if in_folds or key in with_pilot else one.sums + sums)
        for key, one, sums in zip(keys, pilots, test_sums, strict=True)
    ]
    kept = {}
    for key in dict.fromkeys(keys):
        chosen = [i for i in range(len(keys)) if keys[i] == key]
        answered = pilot_answers[0][:, promises[chosen[0]].columns].sum(axis=1)
        start = statistics.first_tested_value([pilots[i] for i in chosen], answered)
        kept[key] = statistics.kept_values([evaluated[i] for i in chosen], start)
    answered, yes, found, missed = (answers if in_folds else pilot_answers + answers) / n_rows
    return Calibration(
        evaluated,
        kept,
        limits,
        part.values,
        answered,
        yes,
        found,
        missed,
        n_positive / n_rows,
        n_rows,
        n_incomplete,
    )


def _add_sums(
    total: list[Any],
    part: CalibrationRows,
    rows: NDArray[np.int64],
    promises: list[Promise],
    limits: list[Any],
) -> None:
    """Add to ``total`` the sums of losses for each promise, and last what :class:`Calibration` has.

    Answers of rows beyond a limit stay open.
    """
    at_once = max(1, _MAX_CELLS // (len(part.values) * part.truth.shape[1]))
    nested = bool(selection.unwrap(part.estimator)[0].nested_)
    for first in range(0, max(len(rows), 1), at_once):
        some = rows[first : first + at_once]
        truth = part.truth[some]
        path = np.empty((len(part.values), *truth.shape), dtype=np.int8)
        if len(some):
            with data_warnings_ignored():
                path = answers_along(part.estimator, take_rows(part.X, some), part.values)
        found: list[Any] = [
            statistics.sum_losses(promise, truth, path, nested, limit)
            for promise, limit in zip(promises, limits, strict=True)
        ]
        for promise, limit in zip(promises, limits, strict=True):
            if limit is not None:
                path = within_limit(path, promise, limit)
        yes, is_true = path == 1, truth == 1
        cells = (path != ABSTAIN, yes, yes & is_true, (path == 0) & is_true)
        found.append(np.stack([cell.sum(axis=1) for cell in cells]))
        total[:] = map(operator.add, total, found) if total else found


def within_limit(answers: Labels, promise: Promise, limit: Any) -> Labels:
    """Return the answers (..., n, m), those that a promise depends on open beyond a limit."""
    risk, about = promise.risk, np.zeros(answers.shape[-1], dtype=bool)
    about[promise.columns] = True
    beyond = risk.counted(answers[..., about]) > np.asarray(limit)[..., None]
    depends = answers != ABSTAIN if risk.side is None else answers == risk.side
    return np.where(beyond[..., None] & depends & about, np.int8(ABSTAIN), answers)


def answers_along(estimator: Any, X: Any, values: Any) -> Labels:
    """Predict partially (V, n, m) along the values, also with pipelines."""
    final, Z = selection.unwrap(estimator, X)
    return np.asarray(final.predict_path(Z, values))
