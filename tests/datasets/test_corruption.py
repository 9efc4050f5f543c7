"""Damage to labels: amounts, nesting, seeds."""

from itertools import pairwise

import numpy as np
import pytest

from credalchain.datasets.corruption import CORRUPTIONS

rng = np.random.default_rng(0)
Y = rng.integers(0, 2, size=(200, 7)).astype(np.int8)
LEVELS = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
REMOVALS = ["uniform", "per-label"]


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_pure_seeded_and_nothing_at_zero(name):
    damage = CORRUPTIONS[name]
    before = Y.copy()
    np.testing.assert_array_equal(damage(Y, 0.5, 3), damage(Y, 0.5, 3))
    assert (damage(Y, 0.5, 3) != damage(Y, 0.5, 4)).any()
    np.testing.assert_array_equal(damage(Y, 0.0, 3), Y)
    np.testing.assert_array_equal(Y, before)
    assert damage(Y, 0.5, 3).dtype == np.int8


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_levels_are_nested(name):
    damaged = [CORRUPTIONS[name](Y, level, 5) != Y for level in LEVELS]
    for less, more in pairwise(damaged):
        assert (more | ~less).all()


@pytest.mark.parametrize("level", LEVELS)
def test_exact_amounts(level):
    assert (CORRUPTIONS["uniform"](Y, level, 1) == -1).sum() == int(level * Y.size)
    assert ((CORRUPTIONS["per-label"](Y, level, 1) == -1).sum(axis=0) == int(level * 200)).all()
    assert (CORRUPTIONS["flip"](Y, level, 1) != Y).sum() == int(level * Y.size)


@pytest.mark.parametrize("name", [n for n in CORRUPTIONS if n not in REMOVALS])
def test_noise_leaves_missing_labels_alone(name):
    holes = np.where(rng.random(Y.shape) < 0.3, -1, Y)
    noisy = CORRUPTIONS[name](holes, 0.9, 2)
    np.testing.assert_array_equal(noisy == -1, holes == -1)


@pytest.mark.parametrize("bad", [-0.1, 1.1, "half", None, True])
def test_bad_fractions(bad):
    for damage in CORRUPTIONS.values():
        with pytest.raises(ValueError, match="fraction must be a number between 0 and 1"):
            damage(Y, bad, 0)
