"""Joint forests in files: nodes, the rows of their leaves, label vectors, and members."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain.bases.forest.codec import check_nodes, describe_forest, restore_forest
from credalchain.bases.forest.packed import LEAF
from credalchain.bases.inputs import TableEncoder
from credalchain.bases.joint.arrays import Leaves, Trees
from credalchain.bases.joint.members import (
    FittedKernel,
    FittedPowerset,
    KernelPowerset,
    LabelPowerset,
    Standardizer,
)
from credalchain.bases.joint.model import JointModel
from credalchain.persistence.checks import (
    Arrays,
    Description,
    ModelFileError,
    arrays_with_prefix,
    as_json,
    checked_array,
    refuse_other_arrays,
)
from credalchain.persistence.skops_bytes import from_bytes, to_bytes

PARTS = (
    JointModel,
    Trees,
    Leaves,
    Standardizer,
    FittedKernel,
    FittedPowerset,
    KernelPowerset,
    LabelPowerset,
)
_FORESTS = ("ExtraTreesRegressor", "RandomForestRegressor")
_TREES = {
    "feature": ("i", np.int32),
    "threshold": ("f", np.float64),
    "left": ("i", np.int32),
    "right": ("i", np.int32),
    "missing_left": ("b", np.bool_),
    "roots": ("i", np.int32),
}
_LEAVES = {
    "indptr": ("iu", np.int64),
    "row": ("i", np.int32),
    "times": ("u", (np.uint16, np.uint32)),
    "vector_of": ("i", np.int32),
}
_KERNEL = ("mean", "deviation", "centres", "coefficients", "prior", "classes")


def describe(
    forest: Any, members: Sequence[Any] | None, model: JointModel
) -> tuple[Description, dict[str, NDArray[Any]]]:
    """Describe the unfitted forest and members, and the fitted model."""
    arrays: dict[str, Any] = {name: getattr(model.trees, name) for name in _TREES}
    arrays |= {name: getattr(model.leaves, name) for name in _LEAVES}
    arrays["label_mass"] = model.leaves.label_mass
    arrays["gaps"] = model.missing_features
    if model.row_numbers is not None:
        arrays["row_numbers"] = model.row_numbers
    fitted = []
    for index, member in enumerate(model.members):
        content, member_arrays = _describe_member(member)
        fitted.append({**content, "share": model.shares[index]})
        arrays |= {f"{index}.{name}": values for name, values in member_arrays.items()}
    description = {
        "forest": describe_forest(forest, _FORESTS),
        "members": None if members is None else [_describe_unfitted(member) for member in members],
        "fitted_members": fitted,
        "joint": model.leaves.joint,
        "product": model.leaves.product,
        "numbers": model.encoder.describe(),
    }
    return description, arrays


def _describe_unfitted(member: Any) -> Description:
    if type(member) is KernelPowerset:
        params = {name: as_json(value) for name, value in member.get_params().items()}
        return {"kind": "kernel", "parameters": params}
    if type(member) is LabelPowerset:
        params = member.get_params(deep=False)
        blob = to_bytes(params.pop("estimator"))
        params = {name: as_json(value) for name, value in params.items()}
        return {"kind": "powerset", "parameters": params, "estimator": blob.tobytes().hex()}
    raise ValueError(_cannot_be_saved(member))


def _cannot_be_saved(member: Any) -> str:
    return (
        "a joint forest can be saved with the members KernelPowerset and LabelPowerset only, not "
        f"with {type(member).__name__}."
    )


def _describe_member(member: Any) -> tuple[Description, dict[str, NDArray[Any]]]:
    if isinstance(member, FittedKernel):
        arrays: dict[str, NDArray[Any]] = {
            "mean": member.standardizer.mean,
            "deviation": member.standardizer.deviation,
            "centres": member.centres,
            "coefficients": member.coefficients,
            "prior": member.prior,
            "classes": member.classes,
        }
        return {"kind": "kernel", "gamma": member.gamma, "power": member.power}, arrays
    if isinstance(member, FittedPowerset):
        parts: dict[str, NDArray[Any]] = {"classes": member.classes}
        if member.standardizer is not None:
            parts |= {"mean": member.standardizer.mean, "deviation": member.standardizer.deviation}
        centred = member.standardizer is not None and member.standardizer.centred
        description = {"kind": "powerset", "centred": centred}
        return description, {**parts, "skops": to_bytes(member.classifier)}
    raise ValueError(_cannot_be_saved(member))


def restore(description: Description, arrays: Arrays) -> tuple[Any, Any, JointModel, int]:
    """The unfitted forest and members, the model, and the number of features."""
    forest = restore_forest(description["forest"], _FORESTS)
    unfitted = description["members"]
    members = None if unfitted is None else [_restore_unfitted(member) for member in unfitted]
    encoder, _ = TableEncoder.restore(description["numbers"], one_hot=False)
    trees = Trees(**{name: _typed(arrays, name, *kind) for name, kind in _TREES.items()})
    joint, product = (_share(description[name], name) for name in ("joint", "product"))
    label_mass = np.ascontiguousarray(
        checked_array(arrays, "label_mass", "f", ndim=3), dtype=np.float64
    )
    leaf_arrays = {name: _typed(arrays, name, *kind) for name, kind in _LEAVES.items()}
    leaves = Leaves(**leaf_arrays, label_mass=label_mass, joint=joint, product=product)
    if any(len(getattr(trees, name)) != len(trees.feature) for name in list(_TREES)[:5]):
        raise ModelFileError("the nodes of the trees must be as many in every array")
    check_nodes(trees, encoder.n_columns)
    _check_leaves(trees, leaves)
    n_columns = encoder.indicators(np.zeros((1, encoder.n_columns), np.float32)).shape[1]
    fitted, shares, used = [], [], {*_TREES, *_LEAVES, "label_mass", "gaps", "row_numbers"}
    for index, member in enumerate(description["fitted_members"]):
        prefix = f"{index}."
        member_arrays = arrays_with_prefix(arrays, prefix)
        used |= {prefix + name for name in member_arrays}
        fitted.append(_restore_member(member, member_arrays, n_columns, label_mass.shape[1]))
        shares.append(_share(member["share"], "share"))
    if abs(joint + product + sum(shares) - 1) > 1e-9:
        raise ModelFileError("the shares of the members must add up to 1")
    refuse_other_arrays(arrays, used)
    row_numbers = _restore_row_numbers(arrays, len(leaves.vector_of))
    n_kept = len(leaves.vector_of) if row_numbers is None else len(row_numbers)
    missing_features = _restore_missing_features(arrays, (n_kept, encoder.n_columns))
    model = JointModel(trees, leaves, encoder, fitted, shares, missing_features, row_numbers)
    return forest, members, model, encoder.n_columns


def _restore_row_numbers(arrays: Arrays, n_rows: int) -> NDArray[np.int64] | None:
    if "row_numbers" not in arrays:
        return None
    row_numbers = checked_array(arrays, "row_numbers", "i", ndim=1).astype(np.int64)
    if not 0 < len(row_numbers) <= n_rows or (np.diff(row_numbers, prepend=-1) <= 0).any():
        raise ModelFileError("the numbers of training rows must increase")
    return row_numbers


def _restore_missing_features(arrays: Arrays, shape: tuple[int, int]) -> NDArray[np.int64]:
    missing_features = checked_array(arrays, "gaps", "i", ndim=2).astype(np.int64)
    if len(missing_features) != 2 or not all(
        ((indices >= 0) & (indices < n)).all()
        for indices, n in zip(missing_features, shape, strict=True)
    ):
        raise ModelFileError("features can be missing in training rows and columns only")
    if (np.diff(missing_features[0]) < 0).any():
        raise ModelFileError("missing features must be sorted by row")
    return missing_features


def _typed(arrays: Arrays, name: str, kind: str, dtypes: Any) -> NDArray[Any]:
    array = checked_array(arrays, name, kind, ndim=1)
    if array.dtype not in (dtypes if isinstance(dtypes, tuple) else (dtypes,)):
        raise ModelFileError(f"the array {name} has a dtype that is not used here, {array.dtype}")
    return np.ascontiguousarray(array)


def _share(value: Any, name: str) -> float:
    if not (isinstance(value, float) and 0 <= value <= 1):
        raise ModelFileError(f"{name} must be a number from 0 to 1, got {value!r}")
    return value


def _check_leaves(trees: Trees, leaves: Leaves) -> None:
    """Check that every leaf holds training rows with label vectors."""
    n_nodes = len(trees.feature)
    n_entries, (n_values, n_vectors, n_labels) = len(leaves.row), leaves.label_mass.shape
    inside = ((leaves.indptr >= 0) & (leaves.indptr <= n_entries)).all()
    if len(leaves.indptr) != n_nodes + 1 or not inside or leaves.indptr[-1] != n_entries:
        raise ModelFileError("the leaves must hold all rows that are there")
    sizes = np.diff(leaves.indptr)
    if (sizes < 0).any() or (sizes[trees.feature == LEAF] == 0).any():
        raise ModelFileError("a leaf must hold training rows")
    if len(leaves.times) != n_entries or not (leaves.times > 0).all():
        raise ModelFileError("a training row must be in its leaf at least once")
    if not ((leaves.row >= 0) & (leaves.row < len(leaves.vector_of))).all():
        raise ModelFileError("the rows of a leaf must be training rows")
    if not ((leaves.vector_of >= 0) & (leaves.vector_of < n_vectors)).all():
        raise ModelFileError("a training row must have a label vector")
    inside = ((leaves.label_mass >= 0) & (leaves.label_mass <= 1)).all()
    if (
        n_values != 2
        or n_labels == 0
        or not inside
        or (leaves.label_mass.sum(axis=0) > 1 + 1e-9).any()
    ):
        raise ModelFileError("what label vectors say must be probabilities")


def _restore_unfitted(description: Any) -> Any:
    if description["kind"] == "kernel":
        member: Any = KernelPowerset(**description["parameters"])
    elif description["kind"] == "powerset":
        blob = np.frombuffer(bytes.fromhex(description["estimator"]), np.uint8)
        member = LabelPowerset(from_bytes(blob), **description["parameters"])
    else:
        raise ModelFileError(f"unknown kind of member {description['kind']!r}")
    member.check_parameters()
    return member


def _restore_member(description: Any, arrays: Arrays, n_columns: int, n_vectors: int) -> Any:
    classes = checked_array(arrays, "classes", "i", ndim=1).astype(np.int64)
    if not ((classes >= 0) & (classes < n_vectors)).all():
        raise ModelFileError("the classes of a member must be label vectors")
    if len(classes) < 2 or (np.diff(classes) <= 0).any():
        raise ModelFileError("the classes of a member must increase")
    if description["kind"] == "kernel":
        return _restore_kernel(description, arrays, classes, n_columns, n_vectors)
    if description["kind"] != "powerset":
        raise ModelFileError(f"unknown kind of member {description['kind']!r}")
    refuse_other_arrays(arrays, ("classes", "skops", "mean", "deviation"))
    standardizer = None
    if "mean" in arrays or "deviation" in arrays:
        mean, deviation = (
            np.ascontiguousarray(checked_array(arrays, name, "f"), dtype=np.float32)
            for name in ("mean", "deviation")
        )
        standardizer = _restore_standardizer(mean, deviation, n_columns)
        standardizer.centred = description["centred"] is True
    classifier = from_bytes(checked_array(arrays, "skops", "u", ndim=1))
    fitted = FittedPowerset(classifier, classes, n_vectors, standardizer)
    weights = fitted.weights(np.zeros((1, n_columns), dtype=np.float32))
    if weights.shape != (1, n_vectors) or abs(weights.sum() - 1) > 1e-6:
        raise ModelFileError("a member must have probabilities of label vectors")
    return fitted


def _restore_kernel(
    description: Any, arrays: Arrays, classes: Any, n_columns: int, n_vectors: int
) -> FittedKernel:
    refuse_other_arrays(arrays, _KERNEL)
    parts = {
        name: np.ascontiguousarray(checked_array(arrays, name, "f"), dtype=np.float32)
        for name in _KERNEL
        if name != "classes"
    }
    gamma, power = description["gamma"], description["power"]
    for name, value in (("gamma", gamma), ("power", power)):
        if not (isinstance(value, float) and 0 < value < 1e30):
            raise ModelFileError(f"{name} must be a positive number, got {value!r}")
    n_centres, n_classes = len(parts["centres"]), len(classes)
    standardizer = _restore_standardizer(parts["mean"], parts["deviation"], n_columns)
    shapes = {
        "centres": (n_centres, n_columns),
        "coefficients": (n_centres, n_classes),
        "prior": (n_classes,),
    }
    for name, shape in shapes.items():
        values = parts[name]
        if values.shape != shape or not (np.abs(values) < 1e15).all():
            raise ModelFileError(f"{name} must be numbers of shape {shape}, got {values.shape}")
    prior = parts["prior"]
    if not (prior > 0).all() or abs(float(prior.sum()) - 1) > 1e-3:
        raise ModelFileError("the prior of a member must be probabilities")
    return FittedKernel(
        standardizer,
        parts["centres"],
        gamma,
        parts["coefficients"],
        power,
        prior,
        classes,
        n_vectors,
    )


def _restore_standardizer(mean: Any, deviation: Any, n_columns: int) -> Standardizer:
    for name, values in (("mean", mean), ("deviation", deviation)):
        if values.shape != (n_columns,) or not (np.abs(values) < 1e15).all():
            raise ModelFileError(f"{name} must be {n_columns} numbers, got {values.shape}")
    if not (deviation > 1e-30).all():
        raise ModelFileError("the deviation of a column must be positive")
    return Standardizer(mean, deviation)
