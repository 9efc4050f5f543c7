"""Model files changed at random: valid as archives, with a digest that fits, and wrong inside."""

import copy
import json

import numpy as np
from sklearn.base import BaseEstimator

from credalchain.model_files import content_digest


def rewrite(source, target, change, *, signed=True):
    """Copy a model file with its description and arrays changed."""
    description, arrays = contents(source)
    change(description, arrays)
    return write(target, description, arrays, signed=signed)


def contents(source):
    """The description and the arrays of a model file."""
    with np.load(source) as archive:
        arrays = {name: archive[name] for name in archive.files}
    return json.loads(arrays.pop("json").tobytes()), arrays


def write(target, description, arrays, *, signed=True):
    """A model file of any content; its path."""
    if signed:
        description["sha256"] = content_digest(description, arrays)
    text = json.dumps(description).encode()
    np.savez(target, json=np.frombuffer(text, np.uint8), **arrays)
    return str(target) + ("" if str(target).endswith(".npz") else ".npz")


_STRANGE = [None, True, -1, 0, 1, 2, 7, 2**31, 20_000_000_000, 2**70, -0.5, 0.5, 1.5, 1e308]
_STRANGE += [float("nan"), float("inf"), "", "x", "0", "\0", [], [[]], [0], [1, 2], {}, {"x": 1}]
_NUMBERS = [-1, 0, 1, 2, 7, 2**31, 2**40, -(2**62), 0.5, -0.5, 1.5, 1e-300, 1e38, 1e308]
_NUMBERS += [-1e308, np.nan, np.inf, -np.inf]
_DTYPES = ["f8", "f4", "f2", "i8", "i4", "i1", "u8", "u1", "U8", "?", "c16", "M8[s]", ">f8", ">i4"]


def mutate(tree, random):
    """Change something in nested dicts, lists, estimators and arrays, in place."""
    places = list(_places(tree))
    holder, key = places[random.integers(len(places))]
    found = holder[key]
    if isinstance(found, np.ndarray) and random.random() < 0.8:
        ways = [_element, _element, _element, _swap_elements, _reshape, _reshape, _cast]
        holder[key] = ways[random.integers(len(ways))](found, random)
        return
    other_holder, other_key = places[random.integers(len(places))]
    strange = copy.deepcopy(_STRANGE[random.integers(len(_STRANGE))])
    way = random.integers(6)
    if way == 0:
        holder[key], other_holder[other_key] = other_holder[other_key], found
    elif way == 1:
        del holder[key]
    elif way == 2 and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(found))
    elif way == 3 and isinstance(holder, dict):
        holder[str(random.choice(["x", "0", "7", str(other_key)]))] = strange
    elif way == 4 and isinstance(found, (int, float)):
        holder[key] = found + [-1, 1, 0.5, -found, 1e10][random.integers(5)]
    else:
        holder[key] = strange


def _places(tree):
    """Everything that can be replaced, as what holds it and its key."""
    if isinstance(tree, BaseEstimator):
        tree = vars(tree)
    if isinstance(tree, (dict, list)):
        for key in list(tree) if isinstance(tree, dict) else range(len(tree)):
            yield tree, key
            yield from _places(tree[key])


def _element(array, random):
    changed = array.copy()
    if changed.size and changed.dtype.kind in "biuf":
        number = np.float64(_NUMBERS[random.integers(len(_NUMBERS))])
        at = np.unravel_index(random.integers(changed.size), changed.shape)
        at = ... if random.random() < 0.1 else at
        changed[at] = number.astype(changed.dtype)
    return changed


def _swap_elements(array, random):
    changed = array.copy()
    if len(array.shape) and len(array) > 1:
        a, b = random.integers(len(array), size=2)
        changed[[a, b]] = changed[[b, a]]
    return changed


def _reshape(array, random):
    at = int(random.integers(max(1, len(array)))) if array.ndim else 0
    if array.ndim == 0:
        return array[None]
    ways = [
        lambda: np.delete(array, slice(at, at + 1), axis=0),
        lambda: np.insert(array, at, array[at : at + 1], axis=0),
        lambda: array[:0],
        lambda: np.delete(array, slice(-1, None), axis=-1),
        lambda: np.repeat(array, 2, axis=-1),
        lambda: array.ravel(),
        lambda: array[None],
        lambda: array.T,
        lambda: array.ravel()[:1].reshape(()) if array.size else array,
    ]
    return ways[random.integers(len(ways))]()


def _cast(array, random):
    try:
        return array.astype(_DTYPES[random.integers(len(_DTYPES))])
    except (ValueError, TypeError):
        return array
