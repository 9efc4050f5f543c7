"""Every decision and every interval against the literal twin."""

import numpy as np
import pytest
from hypothesis import given

import oracle
from credalchain.chains.protocol import ChainModel
from problems import cases, random_case
from profiles import examples, scaled


def disagreements(case):
    labels, intervals = case.expected()
    prediction = case.estimator().infer(case.rows, known=case.known)
    np.testing.assert_allclose(prediction.interval, intervals, atol=1e-9)
    return int((prediction.labels != labels).sum()), labels.size


@examples(1500)
@given(cases())
def test_infer_equals_the_literal_twin(case):
    wrong, _ = disagreements(case)
    assert wrong == 0


@examples(300)
@given(cases(with_known=False, dynamic=False))
def test_predict_equals_the_literal_precise_chain(case):
    expected = [oracle.predict_precise(case.problem(), x, case.order) for x in case.oracle_rows()]
    assert case.estimator().predict(case.rows).tolist() == expected


@examples(300)
@given(cases())
def test_compiled_walk_equals_the_plain_driver_bit_for_bit(case):
    chain = case.estimator()
    encoded = chain.encode(case.rows)
    request = chain.request(encoded, known=case.known)
    fast = chain.model_.infer(encoded, request)
    plain = ChainModel.infer(chain.model_, encoded, request)
    np.testing.assert_array_equal(fast.labels, plain.labels)
    np.testing.assert_array_equal(fast.log_odds, plain.log_odds)
    np.testing.assert_array_equal(fast.exactness, plain.exactness)


@pytest.mark.parametrize("part", range(4))
def test_no_disagreement_in_100_000_decisions_full_of_ties(part):
    rng = np.random.default_rng([2021, part])
    decisions = 0
    while decisions < scaled(25_000):
        case = random_case(rng, n_rows=6)
        wrong, n = disagreements(case)
        assert wrong == 0
        decisions += n


@pytest.mark.parametrize("part", range(2))
def test_thresholds_put_next_to_the_exact_bounds(part):
    """The nearest floats to a bound: differences of 1e-17 in probability decide."""
    rng = np.random.default_rng([7, part])
    decisions = 0
    while decisions < scaled(6_000):
        case = random_case(rng, n_rows=1)
        _, intervals = case.expected()
        nearest = intervals[0, np.arange(case.Y.shape[1]), rng.integers(0, 2, case.Y.shape[1])]
        towards = rng.choice([0.0, 1.0], size=nearest.shape)
        moved = np.where(rng.random(nearest.shape) < 0.5, nearest, np.nextafter(nearest, towards))
        inside = (moved > 1e-9) & (moved < 1)
        case.thresholds = np.where(inside, moved, 0.5).tolist()
        wrong, n = disagreements(case)
        assert wrong == 0
        decisions += n
