"""Types of the arrays that modules hand to each other."""

import numpy as np
from numpy.typing import NDArray

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Labels = NDArray[np.int8]
"""0 and 1; -1 for missing in training, for left open in a prediction."""
