"""Arrays that start at a cache line."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LINE = 64  # bytes


def aligned(shape: tuple[int, ...], dtype: Any = np.int64) -> NDArray[Any]:
    """Uninitialised memory. A table row that straddles lines costs one load in three."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    buffer = np.empty(size + _LINE, dtype=np.uint8)
    start = -buffer.ctypes.data % _LINE
    array: NDArray[Any] = buffer[start : start + size].view(dtype).reshape(shape)
    return array


def aligned_zeros(shape: tuple[int, ...], dtype: Any = np.int64) -> NDArray[Any]:
    """The same, all 0."""
    array = aligned(shape, dtype)
    array.fill(0)
    return array
