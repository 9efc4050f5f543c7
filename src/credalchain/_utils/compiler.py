"""Compilation of kernels by numba.

``nogil`` lets threads run kernels side by side; ``cache`` keeps the machine code on disk;
``error_model`` spares a test before every division. numba's own parallel mode is not used: it
aborts or deadlocks under the threads and forks that joblib and Dask bring.

``lane_kernel`` is for loops whose body treats a fixed number of neighbours alike ("lanes").
LLVM's SLP pass turns such a body into vector instructions; its loop pass, left on, would
rather vectorise the loop around it and gather. numba has both as settings of the whole
process, so they are changed only while a lane kernel compiles, under numba's own lock: what
users compile is untouched.

numba would compile a kernel anew for every mix of arrays that may be written to and arrays that may
not. joblib maps large arrays of a model from a file, for its workers and with ``mmap_mode="r"``:
the first prediction there would take half a minute. So all mixes use the same machine code. Kernels
write only to arrays that their callers have just made.

Machine code that an older version of this package left on disk may name classes that are gone, on
which numba's loader fails before it sees that the code is old. Then the cache is emptied.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core.compiler_lock import global_compiler_lock

types: Any = numba.types
P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile ``function`` at its first call, for the types of that call."""
    return cast(Callable[P, R], _compiled(function, nullcontext))


def lane_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile like ``kernel``, with loop bodies vectorised rather than loops."""
    return cast(Callable[P, R], _compiled(function, _lanes_vectorised))


def kernel_helper(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that only kernels call."""
    return cast(Callable[P, R], _compiled(function, nullcontext, no_cpython_wrapper=True))


def reordering_kernel_helper(function: Callable[P, R]) -> Callable[P, R]:
    """Compile like ``kernel_helper``, with sums in any order, which vectorises them."""
    return cast(
        Callable[P, R],
        _compiled(function, nullcontext, no_cpython_wrapper=True, fastmath={"reassoc"}),
    )


def _compiled(function: Any, settings: Callable[[], Any], **options: Any) -> Any:
    """Return a dispatcher for arrays that may be written to, with ``settings`` changed."""
    njit: Any = numba.njit
    dispatcher = njit(
        nogil=True, cache=True, error_model="numpy", no_cfunc_wrapper=True, **options
    )(function)
    if dispatcher is function:  # NUMBA_DISABLE_JIT
        return function
    compile_or_load = dispatcher.compile

    def compile_writable(signature: Any) -> Any:
        writable = signature if options else tuple(map(_writable, signature))
        with settings():
            try:
                entry_point = compile_or_load(writable)
            except (AttributeError, ImportError):  # stale
                dispatcher._cache.flush()
                entry_point = compile_or_load(writable)
        if writable != signature:
            dispatcher._insert([kind._code for kind in signature], entry_point, False)
        return entry_point

    dispatcher.compile = compile_writable
    return dispatcher


def _writable(kind: Any) -> Any:
    """Return the type of the same array if it might be written to; of the same tuple of such."""
    if isinstance(kind, types.Array):
        return kind.copy(readonly=False)
    if isinstance(kind, types.BaseNamedTuple):
        return types.BaseTuple.from_types([_writable(item) for item in kind], kind.instance_class)
    return kind


@contextmanager
def _lanes_vectorised() -> Iterator[None]:
    config: Any = numba.core.config
    with global_compiler_lock:
        before = config.SLP_VECTORIZE, config.LOOP_VECTORIZE
        config.SLP_VECTORIZE, config.LOOP_VECTORIZE = 1, 0
        try:
            yield
        finally:
            config.SLP_VECTORIZE, config.LOOP_VECTORIZE = before


# -- blocks of sixteen numbers side by side ("lanes"), which kernels keep in vector registers
#
# A row of a table is made of such blocks. One of 64-bit numbers is two cache lines and four vector
# registers, wide enough to hide the look-up of the next row, and a table of a thousand such rows
# stays in the second-level cache. The bodies are spelled out because the compiler vectorises only
# what it sees.

BLOCK = 16

# fmt: off


@kernel_helper
def repeat(value: Any) -> Any:
    """Return the same number 16 times, as a tuple."""
    return (
        value, value, value, value, value, value, value, value,
        value, value, value, value, value, value, value, value,
    )


@kernel_helper
def load(row: Any) -> Any:
    """Return a block as a tuple."""
    return (
        row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7],
        row[8], row[9], row[10], row[11], row[12], row[13], row[14], row[15],
    )


@kernel_helper
def plus(a: Any, row: Any) -> Any:
    """Return the sum of a tuple and a block."""
    return (
        a[0] + row[0], a[1] + row[1], a[2] + row[2], a[3] + row[3],
        a[4] + row[4], a[5] + row[5], a[6] + row[6], a[7] + row[7],
        a[8] + row[8], a[9] + row[9], a[10] + row[10], a[11] + row[11],
        a[12] + row[12], a[13] + row[13], a[14] + row[14], a[15] + row[15],
    )


@kernel_helper
def plus_product(a: Any, factor: Any, row: Any) -> Any:
    """Return the sum of a tuple and a multiple of a block."""
    return (
        a[0] + factor * row[0], a[1] + factor * row[1],
        a[2] + factor * row[2], a[3] + factor * row[3],
        a[4] + factor * row[4], a[5] + factor * row[5],
        a[6] + factor * row[6], a[7] + factor * row[7],
        a[8] + factor * row[8], a[9] + factor * row[9],
        a[10] + factor * row[10], a[11] + factor * row[11],
        a[12] + factor * row[12], a[13] + factor * row[13],
        a[14] + factor * row[14], a[15] + factor * row[15],
    )


@kernel_helper
def store(a: Any, row: Any) -> None:
    """Write a tuple into a block."""
    row[0], row[1], row[2], row[3] = a[0], a[1], a[2], a[3]
    row[4], row[5], row[6], row[7] = a[4], a[5], a[6], a[7]
    row[8], row[9], row[10], row[11] = a[8], a[9], a[10], a[11]
    row[12], row[13], row[14], row[15] = a[12], a[13], a[14], a[15]
