"""How kernels are compiled.

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
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core.compiler_lock import global_compiler_lock

types: Any = numba.types
P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile ``function`` at its first call, for the types of that call."""
    return cast(Callable[P, R], _compiled_once(_dispatcher(function)))


def lane_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """The same, with loop bodies vectorised rather than loops."""
    dispatcher = _dispatcher(function)
    if dispatcher is function:  # NUMBA_DISABLE_JIT
        return cast(Callable[P, R], function)
    compile_loops = dispatcher.compile

    def compile_lanes(signature: Any) -> Any:
        with _lanes_vectorised():
            return compile_loops(signature)

    dispatcher.compile = compile_lanes
    return cast(Callable[P, R], _compiled_once(dispatcher))


def kernel_helper(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that only kernels call."""
    return cast(Callable[P, R], _dispatcher(function, no_cpython_wrapper=True))


def _dispatcher(function: Callable[..., Any], **options: Any) -> Any:
    njit: Any = numba.njit
    dispatcher = njit(
        nogil=True, cache=True, error_model="numpy", no_cfunc_wrapper=True, **options
    )(function)
    if dispatcher is function:  # NUMBA_DISABLE_JIT
        return function
    compile_or_load = dispatcher.compile

    def compile_anew_if_stale(signature: Any) -> Any:
        try:
            return compile_or_load(signature)
        except (AttributeError, ImportError):
            dispatcher._cache.flush()
            return compile_or_load(signature)

    dispatcher.compile = compile_anew_if_stale
    return dispatcher


def _compiled_once(dispatcher: Any) -> Any:
    """Use the machine code for arrays that may be written to for those that may not, as well."""
    if not hasattr(dispatcher, "compile"):  # NUMBA_DISABLE_JIT
        return dispatcher
    compile_or_load = dispatcher.compile

    def compile_writable(signature: Any) -> Any:
        writable = tuple(map(_writable, signature))
        entry_point = compile_or_load(writable)
        if writable != signature:
            dispatcher._insert([kind._code for kind in signature], entry_point, False)
        return entry_point

    dispatcher.compile = compile_writable
    return dispatcher


def _writable(kind: Any) -> Any:
    """The type of the same array if it might be written to; of the same tuple of such."""
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
