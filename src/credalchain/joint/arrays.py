"""The arrays of a fitted joint model, as its kernels take them.

``label_mass[y, u, j]`` is the mass that label vector u certainly gives to Y_j = y. An observed
label has 1 for its value and 0 for the other, a missing one its probability and the complement, or
0 and 0 where it may be either. The lower probability of a set of answers is then a sum over vectors
of products, whatever is missing.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Leaves(NamedTuple):
    """The training rows in the leaves, and the shares of the forest.

    The training rows of node k are at ``indptr[k]:indptr[k + 1]``; the bootstrap has drawn each
    ``times`` times. ``vector_of`` is the label vector of a training row; ``label_mass`` is
    (2, K, m). ``joint`` is the share of the vectors, ``product`` that of the products of each
    leaf's single labels. Members are as imprecise as the leaves, unless ``precise_members``.
    """

    indptr: NDArray[np.int64]
    row: NDArray[np.int32]
    times: NDArray[np.uint32]
    vector_of: NDArray[np.int32]
    label_mass: NDArray[np.float64]
    joint: float
    product: float
    precise_members: bool = False


class MemberWeights(NamedTuple):
    """Weights of the members on label vectors: in CSR form, rows by vectors.

    They are multiplied by the shares of the members.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: NDArray[np.float64]
