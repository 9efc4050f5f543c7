"""Rows held out, and what they say of every value of caution."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from credalchain.labels import ABSTAIN
from credalchain.model_selection import unwrap
from credalchain.promises.reading import PILOT, check_rows
from credalchain.promises.risks import Labels
from credalchain.promises.selection import (
    Plan,
    Promise,
    Tally,
    kept_values,
    no_rows,
    plan_test,
    tally,
)

FloatArray = NDArray[np.float64]

_S = np.append(0.0, np.geomspace(1e-3, 1e6, 361))
_REWARDS = np.concatenate(  # most labels are withdrawn around 1
    [
        np.geomspace(100.0, 3.0, 50),
        np.geomspace(2.99, 0.3, 1400),
        np.geomspace(0.299, 0.01, 150),
        [0],
    ]
)
_MOST_LOOKED_AT = 500  # training rows, to see where tests may begin
_MOST_CELLS = 2**24  # of a path of predictions


class HeldOut(NamedTuple):
    """A fitted estimator, rows that it was not fitted on, and values of its caution.

    ``is_pilot`` (n,) marks the rows that say how the others are tested.
    """

    estimator: Any
    X: Any
    truth: Labels
    values: FloatArray
    is_pilot: NDArray[np.bool_]


class Judged(NamedTuple):
    """What rows held out say: tallies, how they were tested, and values that keep promises.

    ``answered`` (V, m) is the share of each label that is answered.
    """

    tallies: list[Tally]
    plans: list[Plan]
    kept: list[NDArray[np.bool_]]
    answered: FloatArray


def hold_out(
    unfitted: Any,
    X: Any,
    Y: Any,
    labels: Labels,
    promises: list[Promise],
    *,
    share: float,
    values: Any,
    random_state: Any,
) -> HeldOut:
    """Fit to some of the rows, and hold out a share of them, chosen at random."""
    rng = check_random_state(random_state)
    shuffled = rng.permutation(len(labels))
    n_held_out = int(np.ceil(share * len(labels)))
    train, rows = np.sort(shuffled[n_held_out:]), np.sort(shuffled[:n_held_out])
    if len(train) == 0:
        raise ValueError(
            f"X must have rows left to learn from, got n_samples={len(labels)}, of which "
            f"{n_held_out} are kept apart for calibration."
        )
    check_rows(labels[rows], promises)
    estimator = unfitted.fit(take_rows(X, train), take_rows(Y, train))
    return _held(estimator, take_rows(X, rows), take_rows(Y, rows), values, rng)


def all_held_out(
    fitted: Any,
    X: Any,
    Y: Any,
    labels: Labels,
    promises: list[Promise],
    *,
    values: Any,
    random_state: Any,
) -> HeldOut:
    """All rows, for an estimator that was fitted to others."""
    check_rows(labels, promises)
    check_is_fitted(fitted)
    return _held(fitted, X, Y, values, check_random_state(random_state))


def _held(estimator: Any, X: Any, Y: Any, given: Any, rng: np.random.RandomState) -> HeldOut:
    values = caution_values(estimator, given)
    truth = np.asarray(unwrap(estimator)[0].read_labels(Y))
    is_pilot = np.zeros(len(truth), dtype=bool)
    is_pilot[rng.permutation(len(truth))[: int(PILOT * len(truth))]] = True
    return HeldOut(estimator, X, truth, values, is_pilot)


def judge(held: HeldOut, promises: list[Promise]) -> Judged:
    """Which values keep the promises. Where a test has to be planned, the pilot rows do that."""
    pilot, pilot_answered = tallies_along(held, np.flatnonzero(held.is_pilot), promises)
    rest, rest_answered = tallies_along(held, np.flatnonzero(~held.is_pilot), promises)
    tallies, plans, kept = [], [], []
    for promise, before, after in zip(promises, pilot, rest, strict=True):
        answered = pilot_answered[:, columns_of(promise.label)].sum(axis=1)
        plans.append(plan_test(promise, before, answered, int((~held.is_pilot).sum())))
        tallies.append(after if promise.needs_pilot else before + after)
        kept.append(kept_values(promise, tallies[-1], plans[-1]))
    share = (pilot_answered + rest_answered) / max(len(held.truth), 1)
    return Judged(tallies, plans, kept, share)


def columns_of(label: int | None) -> slice:
    """The labels that a promise is about."""
    return slice(None) if label is None else slice(label, label + 1)


def caution_values(estimator: Any, given: Any) -> FloatArray:
    """Values of the caution parameter, from bold to cautious."""
    final, _ = unwrap(estimator)
    for name in ("predict_path", "caution_parameter", "larger_is_more_cautious", "nested_"):
        if not hasattr(final, name):
            raise TypeError(f"estimator must have {name}, like JointDecision(), got {estimator!r}.")
    rising = final.larger_is_more_cautious
    if given is None:
        return _S if rising else _REWARDS
    values = np.unique(np.asarray(given, dtype=np.float64))
    if values.ndim != 1 or len(values) == 0 or not np.isfinite(values).all():
        raise ValueError(f"values must be several numbers, got {given!r}.")
    return values if rising else values[::-1]


def answers_along(estimator: Any, X: Any, values: Any) -> Labels:
    """Partial predictions (V, n, m), also of pipelines."""
    final, Z = unwrap(estimator, X)
    return np.asarray(final.predict_path(Z, values))


def tallies_along(
    held: HeldOut, chosen: NDArray[np.int64], promises: list[Promise]
) -> tuple[list[Tally], FloatArray]:
    """Losses of chosen rows at every value, and how many answer each label, (V, m)."""
    n_values, m = len(held.values), held.truth.shape[1]
    nested = bool(unwrap(held.estimator)[0].nested_)
    found = [no_rows(promise, n_values) for promise in promises]
    answered = np.zeros((n_values, m))
    at_once = max(1, _MOST_CELLS // (n_values * m))
    for first in range(0, len(chosen), at_once):
        rows = chosen[first : first + at_once]
        path = answers_along(held.estimator, take_rows(held.X, rows), held.values)
        for at, promise in enumerate(promises):
            found[at] += tally(promise, held.truth[rows], path, nested)
        answered += (path != ABSTAIN).sum(axis=1)
    return found, answered
