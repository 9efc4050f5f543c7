"""Forests in files: the nodes of all trees of all labels, one after the other."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain.bases.forest import CredalForest, ForestChainModel
from credalchain.bases.forest.packed import LEAF, PackedForest
from credalchain.bases.inputs import TableEncoder
from credalchain.persistence.checks import (
    Arrays,
    Description,
    ModelFileError,
    as_json,
    checked_array,
    checked_slices,
)

_FORESTS = ("ExtraTreesClassifier", "RandomForestClassifier")
_NODES: dict[str, tuple[str, Any]] = {  # name: kind and dtype
    "feature": ("i", np.int32),
    "threshold": ("f", np.float64),
    "left": ("i", np.int32),
    "right": ("i", np.int32),
    "missing_left": ("b", np.bool_),
    "counts": ("f", np.float64),
}

ARRAYS = tuple(f"forest_{name}" for name in (*_NODES, "roots", "n_nodes", "n_trees"))
_MAX_ROWS = 2**53  # larger integers are not exact as floats


def describe(
    base: CredalForest, model: ForestChainModel
) -> tuple[Description, dict[str, NDArray[Any]]]:
    """The base's parameters and the nodes."""
    learner = describe_forest(base.forest, _FORESTS)
    empty = [np.empty((0, 2) if name == "counts" else 0, t) for name, (_, t) in _NODES.items()]
    grown = [forest for forest in model.forests if forest is not None]
    arrays = {
        f"forest_{name}": np.concatenate([no_nodes, *(getattr(forest, name) for forest in grown)])
        for name, no_nodes in zip(_NODES, empty, strict=True)
    }
    arrays["forest_roots"] = np.concatenate(
        [np.empty(0, np.int32), *(forest.roots for forest in grown)]
    )
    for name, array_name in (("n_nodes", "feature"), ("n_trees", "roots")):
        sizes = [
            0 if forest is None else len(getattr(forest, array_name)) for forest in model.forests
        ]
        arrays[f"forest_{name}"] = np.array(sizes, dtype=np.int64)
    description = {
        "base": {"kind": "forest", "forest": learner},
        "numbers": model.encoder.describe(),
    }
    return description, arrays


def restore(description: Description, arrays: Arrays) -> tuple[CredalForest, ForestChainModel, int]:
    """The base, its model and the number of features."""
    learner = restore_forest(description["base"]["forest"], _FORESTS)
    encoder, n_features = TableEncoder.restore(description["numbers"], one_hot=False)
    nodes = {
        name: np.ascontiguousarray(checked_array(arrays, f"forest_{name}", kind), dtype=dtype)
        for name, (kind, dtype) in _NODES.items()
    }
    n_nodes, n_trees = (
        checked_array(arrays, f"forest_{name}", "iu", ndim=1) for name in ("n_nodes", "n_trees")
    )
    n_labels = len(n_nodes)
    n = len(nodes["feature"])
    if any(array.shape != ((n, 2) if name == "counts" else (n,)) for name, array in nodes.items()):
        raise ModelFileError("the nodes of the trees must be as many in every array")
    roots = np.asarray(checked_array(arrays, "forest_roots", "i", ndim=1), dtype=np.int32)
    forests: list[PackedForest | None] = []
    slices = zip(
        checked_slices(n_nodes, len(nodes["feature"]), "forests"),
        checked_slices(n_trees, len(roots), "forests"),
        strict=True,
    )
    for node_slice, tree_slice in slices:
        if node_slice.start == node_slice.stop:
            forests.append(None)
            continue
        label_nodes = {name: array[node_slice] for name, array in nodes.items()}
        forest = PackedForest(**label_nodes, roots=roots[tree_slice])
        _check(forest, n_features, n_labels)
        forests.append(forest)
    return CredalForest(learner), ForestChainModel(forests, encoder), encoder.n_columns


def describe_forest(forest: Any, known: Sequence[str]) -> Description | None:
    """An unfitted forest of scikit-learn, one of ``known`` classes, by name and parameters."""
    from sklearn import ensemble  # slow to import

    if forest is None:
        return None
    if type(forest) not in [getattr(ensemble, name) for name in known]:
        raise ValueError(f"a forest of a class of your own cannot be saved: {forest!r}.")
    params = forest.get_params()
    if not isinstance(params["random_state"], (Integral, type(None))):
        params["random_state"] = None
    params = {name: as_json(value) for name, value in params.items()}
    return {"class": type(forest).__name__, "parameters": params}


def restore_forest(description: Any, known: Sequence[str]) -> Any:
    """The forest that :func:`describe_forest` described."""
    if description is None:
        return None
    from sklearn import ensemble  # slow to import

    if description["class"] not in known:
        raise ModelFileError(f"unknown class of forests {description['class']!r}")
    forest: Any = getattr(ensemble, description["class"])(**description["parameters"])
    forest._validate_params()  # as scikit-learn does in fit
    return forest


def check_nodes(nodes: Any, n_features: int, first_feature: int = 0) -> None:
    """Check that the trees have no cycles and split on existing columns."""
    n = len(nodes.feature)
    node = np.arange(n)
    splits = nodes.feature != LEAF
    children = np.stack([nodes.left, nodes.right])[:, splits]
    if len(nodes.roots) == 0 or not ((nodes.roots >= 0) & (nodes.roots < n)).all():
        raise ModelFileError("the roots of the trees must be nodes")
    if not ((children > node[splits]) & (children < n)).all():
        raise ModelFileError("a node's branches must come after it")
    if len(np.unique(np.append(children, nodes.roots))) < children.size + len(nodes.roots):
        raise ModelFileError("a node must have one way that leads to it")
    columns = nodes.feature[splits]
    if not ((columns >= first_feature) & (columns < n_features)).all():
        raise ModelFileError("the trees split on a column that is not there")
    if np.isnan(nodes.threshold[splits]).any():
        raise ModelFileError("a split needs a number")


def _check(forest: PackedForest, n_features: int, n_labels: int) -> None:
    """Check the nodes, and that each of them holds training rows."""
    check_nodes(forest, n_features, -n_labels)
    counts = forest.counts
    if not (((counts >= 0) & (counts <= _MAX_ROWS)).all() and counts.any(axis=1).all()):
        raise ModelFileError(f"a node must hold more than 0 rows and at most {_MAX_ROWS}")
