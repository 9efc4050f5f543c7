"""Checks of parameters, with messages that name the argument, the value and what is expected.

The limits on ``s`` and ``epsilon`` keep every ratio of probabilities within the range for
which the rounding bound of the fixed-point sums is proved (see
``chains/naive/formulas.py``).
"""

from collections.abc import Iterable, Sequence
from importlib import import_module
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

_MIN, _MAX = 1e-60, 1e60
_MAX_JOBS = 1000


def check_s(value: Any, name: str = "s") -> float:
    """Validate s: 0, or a number between 1e-60 and 1e60."""
    return check_s_values((value,), name)[0]


def check_s_values(values: Iterable[Any], name: str = "s") -> tuple[float, ...]:
    """Validate several values, each 0 or a number between 1e-60 and 1e60."""
    values = tuple(values)
    for value in values:
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if not is_number or not (value == 0 or _MIN <= value <= _MAX):
            raise ValueError(
                f"{name} must be a number, 0 or positive (between {_MIN:g} and "
                f"{_MAX:g}), got {value!r}."
            )
    return tuple(map(float, values))


def check_epsilon(value: Any) -> float:
    """Validate an epsilon: 0, or a number from 1e-60 to below 1."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if is_number and (value == 0 or _MIN <= value < 1):
        return float(value)
    raise ValueError(f"epsilon must be a number in [0, 1) (0 or at least {_MIN:g}), got {value!r}.")


def check_number(name: str, value: Any, low: float, high: float, expected: str) -> float:
    """Validate a number from ``low`` to ``high``, in words ``expected``."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not low <= value <= high:
        raise ValueError(f"{name} must be {expected}, got {value!r}.")
    return float(value)


def check_choice(name: str, value: Any, choices: Sequence[str]) -> str:
    """Validate that a value is one of the choices."""
    if isinstance(value, str) and value in choices:
        return value
    raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}.")


def check_int(name: str, value: Any, at_least: int = 1, at_most: int | None = None) -> int:
    """Validate a whole number."""
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_whole or value < at_least or (at_most is not None and value > at_most):
        limits = f"at least {at_least}" + ("" if at_most is None else f" and at most {at_most}")
        raise ValueError(f"{name} must be a whole number, {limits}, got {value!r}.")
    return int(value)


def check_not_frozen(name: str, estimator: Any) -> None:
    """Raise a ValueError for a frozen estimator, where clones are fitted to other labels."""
    if isinstance(estimator, FrozenEstimator):
        raise ValueError(
            f"{name} must be unfitted, because clones of it are fitted to the labels, got "
            f"{estimator!r}; for bounds around a fitted classifier, write a LocalBase."
        )


def check_thresholds(value: Any, n_labels: int) -> NDArray[np.float64]:
    """Validate thresholds: one per label, strictly between 0 and 1."""
    try:
        thresholds = np.asarray(value)
    except ValueError:
        thresholds = np.array("ragged")
    if thresholds.dtype.kind not in "iuf":
        raise ValueError(f"threshold must be a number or one per label, got {value!r}.")
    thresholds = thresholds.astype(np.float64)
    if thresholds.ndim == 0:
        thresholds = np.full(n_labels, float(thresholds))
    if thresholds.shape != (n_labels,):
        raise ValueError(
            f"threshold must be a number or one per label ({n_labels}), "
            f"got an array of shape {thresholds.shape}."
        )
    is_valid = (thresholds >= _MIN) & (thresholds < 1)
    if not is_valid.all():
        invalid = value if np.ndim(value) == 0 else thresholds[~is_valid][0]
        raise ValueError(
            f"threshold must be strictly between 0 and 1 (at least {_MIN:g}), got {invalid!r}."
        )
    return thresholds


def check_n_jobs(value: Any) -> int | None:
    """Validate a number of workers: None or not 0, with a limit as every worker takes memory."""
    if value is None:
        return None
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_whole or value == 0 or value > _MAX_JOBS:
        raise ValueError(
            f"n_jobs must be None or a whole number other than 0, at most {_MAX_JOBS}, "
            f"got {value!r}."
        )
    return int(value)


def check_array(
    name: str,
    array: Any,
    dtype: Any,
    shape: Sequence[int | None],
    low: Any = None,
    high: Any = None,
) -> NDArray[Any]:
    """Validate an array of a stored model before compiled code reads it.

    Parameters
    ----------
    name : str
        For messages.
    array : object
    dtype : numpy type or tuple of them
    shape : sequence of int or None
        None allows any length.
    low, high : number, optional
        Smallest and largest value allowed; NaN is rejected.
    """
    if not isinstance(array, np.ndarray) or not array.flags.c_contiguous:
        raise ValueError(f"{name} must be a contiguous array, got {type(array).__name__}.")
    dtypes = dtype if isinstance(dtype, tuple) else (dtype,)
    fits = len(shape) == array.ndim and all(
        n in (None, size) for n, size in zip(shape, array.shape, strict=True)
    )
    if array.dtype not in dtypes or not fits:
        raise ValueError(
            f"{name} must have dtype {np.dtype(dtypes[0])} and shape {tuple(shape)}, got "
            f"{array.dtype} and {array.shape}."
        )
    inside = (low is None or (array >= low).all()) and (high is None or (array <= high).all())
    if not inside:
        raise ValueError(
            f"{name} must lie between {low} and {high}, got {array.min()} to {array.max()}."
        )
    return array


def import_extra(module: str, message: str) -> Any:
    """Import a module of a package that is not always installed; ``message`` says what needs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(message) from error


def check_instance(name: str, value: Any, kinds: type | tuple[type, ...]) -> None:
    """Validate the type of a part of a stored model."""
    if not isinstance(value, kinds):
        expected = kinds if isinstance(kinds, tuple) else (kinds,)
        names = " or ".join(kind.__name__ for kind in expected)
        raise ValueError(f"{name} must be of type {names}, got {type(value).__name__}.")


def check_order(order: Any, names: Sequence[str]) -> NDArray[np.int64]:
    """Validate a permutation of the labels, as numbers or names."""
    n_labels = len(names)
    try:
        permutation = np.asarray(order)
    except ValueError:  # ragged
        permutation = np.array(None)
    if permutation.ndim == 1 and sorted(map(str, permutation.tolist())) == sorted(names):
        index_of = {name: j for j, name in enumerate(names)}
        return np.array([index_of[str(name)] for name in permutation.tolist()], dtype=np.int64)
    if (
        permutation.dtype.kind not in "iu"
        or permutation.ndim != 1
        or sorted(permutation.tolist()) != list(range(n_labels))
    ):
        raise ValueError(
            "order must be 'random', 'given', 'dynamic' or a permutation of "
            f"0..{n_labels - 1} or of the labels' names, got {order!r}."
        )
    return np.ascontiguousarray(permutation, dtype=np.int64)


def seeded(estimator: Any, seed: int) -> Any:
    """Return the estimator itself, with every random state that is None set to ``seed``."""
    unseeded = [
        name
        for name, value in estimator.get_params().items()
        if name.split("__")[-1] == "random_state" and value is None
    ]
    return estimator.set_params(**dict.fromkeys(unseeded, seed))
