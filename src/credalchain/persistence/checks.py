"""What values in a file must be like."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Description = dict[str, Any]
Arrays = Mapping[str, NDArray[Any]]


class ModelFileError(ValueError):
    """A file is not a model, or not one that this version can read."""


def checked_array(arrays: Arrays, name: str, kinds: str, ndim: int | None = None) -> NDArray[Any]:
    """An array of one of the kinds of numbers, with ``ndim`` dimensions if that is given."""
    if name not in arrays:
        raise ModelFileError(f"the array {name} is missing")
    array = arrays[name]
    if array.dtype.kind not in kinds or (ndim is not None and array.ndim != ndim):
        raise ModelFileError(f"the array {name} has dtype {array.dtype} and shape {array.shape}")
    return array


def checked_int(value: Any, name: str, at_least: int = 0) -> int:
    """A whole number, by default not negative."""
    if not isinstance(value, int) or isinstance(value, bool) or value < at_least:
        raise ModelFileError(f"{name} must be a whole number, at least {at_least}, got {value!r}")
    return value


def checked_names(value: Any, n: int, what: str) -> list[str]:
    """A list of n texts."""
    is_valid = isinstance(value, list) and all(isinstance(name, str) for name in value)
    if not is_valid or len(value) != n:
        raise ModelFileError(f"{what} must be {n} texts")
    for name in value:
        if "\0" in name or name.encode("utf-8", "replace").decode() != name:
            raise ModelFileError(f"{what} holds {name!r}, which is not text")
    return list(value)


def checked_permutation(order: NDArray[Any], n_labels: int) -> NDArray[np.int64]:
    """Every label once."""
    if order.ndim != 1 or sorted(order.tolist()) != list(range(n_labels)):
        raise ModelFileError(f"the order must be a permutation of {n_labels} labels")
    return order.astype(np.int64)


def checked_slices(sizes: NDArray[Any], total: int, what: str) -> list[slice]:
    """Where each of several runs of these sizes stands in an array of that length."""
    if sizes.ndim != 1 or (sizes < 0).any() or sum(sizes.tolist()) != total:
        raise ModelFileError(f"the sizes of {what} do not add up to {total}")
    stops = np.cumsum(sizes).tolist()
    return [slice(stop - size, stop) for stop, size in zip(stops, sizes.tolist(), strict=True)]


def arrays_with_prefix(arrays: Arrays, prefix: str) -> Arrays:
    """The arrays of one of several models, under their own names."""
    return {
        name.removeprefix(prefix): values
        for name, values in arrays.items()
        if name.startswith(prefix)
    }


def refuse_other_arrays(arrays: Arrays, known: Iterable[str]) -> None:
    """A file holds nothing that nobody would read."""
    others = sorted(set(arrays) - set(known))
    if others:
        raise ModelFileError(f"it holds other things: {', '.join(others)}")


def as_json(value: Any) -> Any:
    """A parameter as JSON has it; what cannot be is refused."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, (tuple, list)):
        return [as_json(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ValueError(f"a parameter that is not a number or a text cannot be saved: {value!r}.")
