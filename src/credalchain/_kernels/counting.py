"""From codes and labels to counts.

Memory layout: ``counts`` has one contiguous row for each (feature, category), with
lanes (label, class). A training row adds its lanes, two small integers per label,
to one such row per feature, so the inner loop is a vector add.
"""

import numpy as np
from numpy.typing import NDArray

from credalchain._kernels.compiler import kernel


@kernel
def count_codes(
    codes: NDArray[np.integer],
    n_categories: NDArray[np.int64],
    offsets: NDArray[np.int64],
    lanes: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None:
    """Add each row's ``lanes`` (n, 2m) to the counts of its features' categories.

    Codes beyond ``n_categories`` (unseen, missing) are in no category.
    """
    n_rows, n_features = codes.shape
    n_lanes = lanes.shape[1]
    for row in range(n_rows):
        for feature in range(n_features):
            code = codes[row, feature]
            if code < n_categories[feature]:
                target = offsets[feature] + code
                for lane in range(n_lanes):
                    counts[target, lane] += lanes[row, lane]


@kernel
def count_sparse_codes(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int64],
    codes: NDArray[np.integer],
    n_categories: NDArray[np.int64],
    offsets: NDArray[np.int64],
    lanes: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None:
    """The same for CSR codes, in which what is not stored has code 0.

    On entry, row 0 of every feature holds the totals over all rows: a stored
    entry moves its row's lanes from there to its own category.
    """
    n_lanes = lanes.shape[1]
    for row in range(indptr.shape[0] - 1):
        for entry in range(indptr[row], indptr[row + 1]):
            feature = indices[entry]
            code = codes[entry]
            zero = offsets[feature]
            for lane in range(n_lanes):
                counts[zero, lane] -= lanes[row, lane]
            if code < n_categories[feature]:
                target = zero + code
                for lane in range(n_lanes):
                    counts[target, lane] += lanes[row, lane]
