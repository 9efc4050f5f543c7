"""What values in a file must be like."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain.bases.inputs import Numbers
from credalchain.preprocessing import Categories

Description = dict[str, Any]
Arrays = Mapping[str, NDArray[Any]]

_MOST_COLUMNS = 2**26  # so that a single row of them is no burden


class ModelFileError(ValueError):
    """A file is not a model, or not one that this version can read."""


def array(arrays: Arrays, name: str, kinds: str, ndim: int | None = None) -> NDArray[Any]:
    """An array of one of the kinds of numbers, and of so many dimensions."""
    if name not in arrays:
        raise ModelFileError(f"the array {name} is missing")
    found = arrays[name]
    if found.dtype.kind not in kinds or (ndim is not None and found.ndim != ndim):
        raise ModelFileError(f"the array {name} has dtype {found.dtype} and shape {found.shape}")
    return found


def whole(value: Any, name: str, at_least: int = 0) -> int:
    """A whole number, by default not negative."""
    if not isinstance(value, int) or isinstance(value, bool) or value < at_least:
        raise ModelFileError(f"{name} must be a whole number, at least {at_least}, got {value!r}")
    return value


def names(value: Any, n: int, what: str) -> list[str]:
    """So many texts."""
    sound = isinstance(value, list) and all(isinstance(name, str) for name in value)
    if not sound or len(value) != n:
        raise ModelFileError(f"{what} must be {n} texts")
    for name in value:
        if "\0" in name or name.encode("utf-8", "replace").decode() != name:
            raise ModelFileError(f"{what} holds {name!r}, which is not text")
    return list(value)


def permutation(order: NDArray[Any], n_labels: int) -> NDArray[np.int64]:
    """Every label once."""
    if order.ndim != 1 or sorted(order.tolist()) != list(range(n_labels)):
        raise ModelFileError(f"the order must be a permutation of {n_labels} labels")
    return order.astype(np.int64)


def parts_of(sizes: NDArray[Any], total: int, what: str) -> list[slice]:
    """Where each of several runs of these sizes stands in an array of that length."""
    if sizes.ndim != 1 or (sizes < 0).any() or sum(sizes.tolist()) != total:
        raise ModelFileError(f"the sizes of {what} do not add up to {total}")
    stops = np.cumsum(sizes).tolist()
    return [slice(stop - size, stop) for stop, size in zip(stops, sizes.tolist(), strict=True)]


def describe_numbers(numbers: Numbers) -> Description:
    """How the table becomes numbers."""
    words = {str(i): categories.keys.tolist() for i, categories in numbers.words.items()}
    return {"n_columns": numbers.n_columns, "words": words, "empty": list(numbers.empty)}


def restore_numbers(description: Any, *, one_hot: bool) -> tuple[Numbers, int]:
    """The same from a file, and how many columns of numbers there will be."""
    n = whole(description["n_columns"], "n_columns", at_least=1)
    if n > _MOST_COLUMNS:
        raise ModelFileError(f"n_columns must be at most {_MOST_COLUMNS}, got {n}")
    words: dict[int, Categories] = {}
    for place, keys in description["words"].items():
        if not (place.isdecimal() and int(place) < n) or len(set(keys)) < len(keys) or not keys:
            raise ModelFileError("the categories of a column must be different, of a column")
        words[int(place)] = Categories(np.array(names(keys, len(keys), "categories")))
    empty = tuple(whole(i, "empty") for i in description["empty"])
    if len(set(empty)) < len(empty) or any(i >= n or i in words for i in empty):
        raise ModelFileError(f"empty must be different columns without categories, got {empty}")
    more = sum(len(one.keys) - 1 for one in words.values()) if one_hot else 0
    return Numbers(n, words, one_hot, empty), n + more


def plain(value: Any) -> Any:
    """A parameter as JSON has it; what cannot be is refused."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ValueError(f"a parameter that is not a number or a text cannot be saved: {value!r}.")
