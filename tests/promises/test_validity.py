"""Promises are kept in many random calibrations, on yeast and where the truth is known.

In 200, or in 1,000 with the environment variable CREDALCHAIN_FULL=1.
"""

import numpy as np
import pytest

from credalchain.promises.calibration import CalibrationRows, evaluate_promises
from credalchain.promises.risks import RISKS, Promise
from promise_simulation import (
    CONFIDENCE,
    N_PILOT,
    POOLS,
    SPLITS,
    choose,
    delays,
    end_to_end,
    models,
    promises,
    simulate,
    streams,
    tuned_on_training_rows,
    yeast_pool,
)

pytestmark = pytest.mark.slow

WHERE = [(name, model) for name in POOLS for model in models()]


@pytest.mark.parametrize(("name", "model"), WHERE)
def test_promises_are_kept(name, model):
    pool = POOLS[name](model)
    for promise in promises(pool.truth.shape[1]):
        outcome = simulate(pool, promise)
        if promise.confidence is None:
            assert outcome.mean_risk <= promise.level + 2 * outcome.simulation_error, outcome
            assert outcome.mean_risk >= 0.75 * promise.level, outcome  # not for nothing
            assert outcome.completeness >= outcome.best - 0.03, outcome
        else:
            assert outcome.broken <= 1 - CONFIDENCE + 2 * outcome.simulation_error, outcome


@pytest.mark.parametrize(("name", "model"), WHERE)
def test_promises_on_rows_are_not_for_nothing_with_confidence_either(name, model):
    """As near to the best as the exact binomial test allows."""
    pool = POOLS[name](model)
    for level in (0.1, 0.2):
        outcome = simulate(pool, Promise(RISKS["row_error"], level, CONFIDENCE))
        assert outcome.mean_risk >= 0.6 * level, outcome


def test_the_simulation_chooses_as_the_library_does():
    pool, tested = yeast_pool("joint decision"), list(promises(14))
    chosen = [choose(pool, promise) for promise in tested]
    for split in range(2):
        rows = pool.drawn[split]
        is_pilot = np.arange(len(rows)) < N_PILOT
        held = CalibrationRows(
            pool.estimator, pool.X[rows], pool.truth[rows], pool.values, is_pilot
        )
        for at, kept in evaluate_promises([held], tested, together=False).kept.items():
            expected = np.flatnonzero(kept)[0] if kept.any() else -1
            assert chosen[at][split] == expected, tested[at]


@pytest.mark.nightly
def test_tuning_on_training_rows_breaks_the_promise():
    tuned, promised = tuned_on_training_rows(0.1)
    assert tuned > 0.3
    assert promised <= 0.1 + 2 * np.sqrt(0.1 * 0.9 / 1000)


def test_streams_without_drift_rarely_raise_an_alarm():
    pool, promise = yeast_pool("joint decision"), Promise(RISKS["row_error"], 0.1)
    place = int(np.flatnonzero(pool.true_risk(promise) <= 0.1)[0])  # as near as can be
    alarms = (streams(pool, promise, place, SPLITS, 1000) >= 1 / 0.05).any(axis=1).mean()
    assert alarms <= 0.05


def test_a_drift_is_found_soon():
    pool, promise = yeast_pool("joint decision"), Promise(RISKS["row_error"], 0.1)
    place = int(np.flatnonzero(pool.true_risk(promise) <= 0.1)[0])
    found = delays(pool, promise, place, 0.05, 100)
    assert ((found > 0) & (found <= 400)).mean() >= 0.9
    assert np.median(found) <= 150


def test_promises_on_average_are_rarely_called_broken_without_a_change():
    """Though the risk of one model may be above the level: what calibration left open counts."""
    turns = SPLITS // 4
    assert end_to_end(100, 3000, turns) <= 0.1
    assert end_to_end(300, 3000, turns, confidence=0.9) <= 0.15
