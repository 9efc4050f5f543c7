"""Products of matrices, row by row, against sums made term by term."""

import numpy as np
import pytest

from credalchain.joint.products import product_by_rows, tiled


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 40, 5), (7, 30, 256), (5, 20, 600), (0, 3, 2)])
def test_sums_are_made_in_the_order_of_their_terms(shape, dtype):
    n, p, m = shape
    rng = np.random.default_rng(0)
    A, B = (rng.normal(size=size).astype(dtype) for size in ((n, p), (p, m)))
    literal = np.zeros((n, m), dtype=dtype)
    for k in range(p):
        literal += A[:, k, None] * B[k]
    for right in (B, np.asfortranarray(B)):
        found = product_by_rows(A, tiled(right), m)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, literal)


def test_any_layout_and_rows_of_booleans():
    rng = np.random.default_rng(0)
    A, B = rng.random((6, 8)) < 0.5, rng.normal(size=(5, 6)).T
    np.testing.assert_allclose(product_by_rows(A.T, tiled(B), B.shape[1]), A.T.astype(float) @ B)
