"""Probabilities from log-odds, in whatever order an array lies in memory."""

import numpy as np
import pytest
from scipy.special import expit

from credalchain.prediction import log_odds, probabilities


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray, np.flip])
def test_any_layout_in_memory(layout):
    given = layout(np.random.default_rng(0).normal(0, 9, (7, 5, 2)))
    np.testing.assert_allclose(probabilities(given), expit(given), rtol=1e-13)


def test_ends():
    assert probabilities(np.array([-np.inf, 0.0, np.inf])).tolist() == [0, 0.5, 1]
    assert log_odds(np.array([0, 0.5, 1])).tolist() == [-np.inf, 0, np.inf]
