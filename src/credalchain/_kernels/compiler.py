"""How a kernel is compiled, in one place.

``nogil`` lets a thread pool run kernels side by side; ``cache`` keeps the machine
code on disk. numba's own parallel mode is not used: it aborts or deadlocks under
the threads and forks that joblib and Dask bring.
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile ``function`` at its first call, for the types of that call."""
    return cast(Callable[P, R], numba.njit(nogil=True, cache=True)(function))
