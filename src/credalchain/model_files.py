"""Models in files: arrays, names and parameters, and nothing that could run.

A file is a zip archive (numpy's npz) with one JSON text and plain arrays. This was preferred
to skops for our own files because every value has a place we know: it can be checked, and a
file can only ever become counts, bins and parameters. Reading never unpickles, and whatever
is wrong with a file ends in a :class:`ModelFileError`.
"""

import hashlib
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain._version import __version__
from credalchain.bases.naive import ChainCounts, NaiveChainModel, NaiveCredal
from credalchain.binary_relevance import CredalBinaryRelevanceClassifier
from credalchain.chain import CredalChainClassifier
from credalchain.files import replacing
from credalchain.preprocessing import Binning, Categories, Discretizer, NumericBins, ZeroAndBins
from credalchain.strategies import STRATEGIES, Strategy

FORMAT = "credalchain model"
SCHEMA = 1
_MOST_BYTES = 8 * 2**30

_CLASSIFIERS = {
    cls.__name__: cls for cls in (CredalChainClassifier, CredalBinaryRelevanceClassifier)
}
_COUNTS = ("n_categories", "label", "feature", "pair")
_SETTINGS = ("epsilon", "prior", "denominator", "missing_features")
_MEMBERS = {"json.npy", "order.npy", "cuts.npy", *(f"counts_{name}.npy" for name in _COUNTS)}

Arrays = Mapping[str, NDArray[Any]]


class ModelFileError(ValueError):
    """A file is not a model, or not one that this version can read."""


def save_model(classifier: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier to a file, whole or not at all.

    Parameters
    ----------
    classifier : fitted CredalChainClassifier or CredalBinaryRelevanceClassifier
        With a naive credal base, and a strategy that has a name.
    path : path
    """
    description, arrays = _describe(classifier)
    description["sha256"] = content_digest(description, arrays)
    text = json.dumps(description, ensure_ascii=False, allow_nan=False)
    members: dict[str, Any] = {**arrays, "json": np.frombuffer(text.encode(), np.uint8)}
    with replacing(Path(path)) as file:
        np.savez_compressed(file, **members)


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read a classifier that :func:`save_model` wrote. Nothing from the file is executed.

    Raises
    ------
    ModelFileError
        If the file is anything else, damaged, or of a newer schema.
    """
    description, arrays = _read(Path(path))
    try:
        return _restore(description, arrays)
    except ModelFileError:
        raise
    except Exception as error:  # whatever a damaged file leads to, it is the file's fault
        raise ModelFileError(f"{path} is not a sound model file: {error}") from error


def read_description(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a model file says about itself: versions, names, parameters."""
    return _read(Path(path))[0]


def content_digest(description: Mapping[str, Any], arrays: Arrays) -> str:
    """SHA-256 of everything in a model file, so that an edit does not go unnoticed."""
    digest = hashlib.sha256()
    rest = {key: value for key, value in description.items() if key != "sha256"}
    digest.update(json.dumps(rest, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


# -- writing -------------------------------------------------------------------------------


def _describe(classifier: Any) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    kind = type(classifier).__name__
    model = getattr(classifier, "model_", None)
    if kind not in _CLASSIFIERS or not isinstance(model, NaiveChainModel):
        raise ValueError(
            f"only fitted {' and '.join(_CLASSIFIERS)} over NaiveCredal can be saved, "
            f"got {classifier!r}."
        )
    classifier._request(classifier.s)  # parameters that could not be loaded are not saved
    classifier._strategy()
    bins, arrays = _describe_discretizer(model.discretizer)
    arrays.update(
        {f"counts_{name}": getattr(model.counts, name).astype(np.int64) for name in _COUNTS}
    )
    if classifier.order_ is not None:
        arrays["order"] = classifier.order_
    names = getattr(classifier, "feature_names_in_", None)
    description = {
        "format": FORMAT,
        "schema": SCHEMA,
        "package": __version__,
        "classifier": kind,
        "parameters": _plain_parameters(classifier),
        "base": {"kind": "naive", **{name: getattr(model.settings, name) for name in _SETTINGS}},
        "discretizer": bins,
        "n_rows": model.counts.n_rows,
        "n_features": int(classifier.n_features_in_),
        "feature_names": None if names is None else names.tolist(),
        "label_names": classifier.label_names_.tolist(),
        "classes": classifier.classes_.tolist() if classifier.classes_.ndim == 1 else None,
    }
    return description, arrays


def _plain_parameters(classifier: Any) -> dict[str, Any]:
    """Parameters as JSON has them. A seed is kept, a generator is not."""
    parameters = classifier.get_params(deep=False)
    del parameters["base"]
    strategy = parameters.get("strategy")
    if isinstance(strategy, Strategy):
        if STRATEGIES.get(strategy.name) != strategy:
            raise ValueError(
                f"a strategy of your own cannot be saved, because it is code: {strategy.name!r}. "
                "Set a named one first, and yours again after loading."
            )
        parameters["strategy"] = strategy.name
    if not isinstance(parameters["random_state"], (int, type(None))):
        parameters["random_state"] = None
    return {name: _as_json(value) for name, value in parameters.items()}


def _as_json(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value


def _describe_discretizer(discretizer: Any) -> tuple[Any, dict[str, NDArray[Any]]]:
    fitted = getattr(discretizer, "estimator", discretizer)  # inside a FrozenEstimator
    if fitted is None:
        return None, {}
    if type(fitted) is not Discretizer:
        raise ValueError(f"only models with a Discretizer can be saved, got {discretizer!r}.")
    columns, cuts = [], []
    for binning in fitted.binnings_:
        if isinstance(binning, Categories):
            words = binning.keys.dtype.kind != "f"
            columns.append({"kind": "words" if words else "values", "keys": binning.keys.tolist()})
        else:
            kind = "numeric" if isinstance(binning, NumericBins) else "zero"
            columns.append({"kind": kind, "cuts": len(binning.cuts)})
            cuts.append(binning.cuts)
    arrays = {"cuts": np.concatenate([np.empty(0), *cuts])}
    return {"n_bins": int(fitted.n_bins), "columns": columns}, arrays


# -- reading -------------------------------------------------------------------------------


def _read(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    _refuse_other_formats(path)
    try:
        with zipfile.ZipFile(path) as archive:
            members = {item.filename: item.file_size for item in archive.infolist()}
            if not set(members) <= _MEMBERS or sum(members.values()) > _MOST_BYTES:
                raise ModelFileError(f"{path} is not a credalchain model: it holds other things.")
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        description = json.loads(arrays.pop("json").tobytes().decode())
    except ModelFileError:
        raise
    except (Exception, MemoryError) as error:
        raise ModelFileError(f"{path} is not a credalchain model, or it is damaged.") from error
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise ModelFileError(f"{path} is not a credalchain model.")
    schema = description.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise ModelFileError(f"{path} has no sound schema number, got {schema!r}.")
    if schema > SCHEMA:
        raise ModelFileError(
            f"{path} has schema {schema}, written by credalchain {description.get('package')}; "
            f"this version reads up to {SCHEMA}. Please update credalchain."
        )
    if description.get("sha256") != content_digest(description, arrays):
        raise ModelFileError(f"{path} was changed after it was written, or is damaged.")
    return description, arrays


def _refuse_other_formats(path: Path) -> None:
    with path.open("rb") as file:
        head = file.read(4)
    if head[:1] == b"\x80":
        raise ModelFileError(
            f"{path} looks like a pickle. Pickles can run code when they are loaded, so they are "
            "refused; save the model with save_model or 'credalchain fit'."
        )
    if head != b"PK\x03\x04":
        raise ModelFileError(f"{path} is not a credalchain model.")


def _restore(description: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Any:
    if not isinstance(description["package"], str):
        raise ModelFileError(f"package must be a text, got {description['package']!r}")
    discretizer, bins = _restore_discretizer(description["discretizer"], arrays)
    base_options = dict(description["base"])
    if base_options.pop("kind") != "naive":
        raise ModelFileError(f"unknown base {description['base']!r}")
    base = NaiveCredal(**base_options, discretizer=bins)
    counts = ChainCounts(
        _whole(description["n_rows"], "n_rows"),
        *(_array(arrays, f"counts_{name}", "iu") for name in _COUNTS),
    )
    model = base.from_counts(counts, discretizer)
    return _restore_classifier(description, arrays, base, model)


def _restore_classifier(
    description: dict[str, Any], arrays: Arrays, base: NaiveCredal, model: NaiveChainModel
) -> Any:
    cls = _CLASSIFIERS[description["classifier"]]
    n_features = _whole(description["n_features"], "n_features")
    if n_features != model.counts.n_features:
        raise ModelFileError(
            f"{n_features} features are declared and {model.counts.n_features} were counted"
        )
    label_names = _names(description["label_names"], model.n_labels, "label_names")
    parameters = dict(description["parameters"])
    classifier = cls.from_model(
        model, n_features=n_features, label_names=label_names, **{**parameters, "base": base}
    )
    if classifier.order_ is not None:
        classifier.order_ = _permutation(_array(arrays, "order", "iu"), model.n_labels)
    if description["feature_names"] is not None:
        names = _names(description["feature_names"], n_features, "feature_names")
        classifier.feature_names_in_ = np.array(names, dtype=object)
        if model.discretizer is not None:
            model.discretizer.feature_names_in_ = classifier.feature_names_in_
    if description["classes"] is not None:
        _set_classes(classifier, description["classes"])
    classifier._request(classifier.s)  # checks s, threshold and n_jobs
    classifier._strategy()
    return classifier


def _set_classes(classifier: Any, classes: Any) -> None:
    same_kind = isinstance(classes, list) and len({type(value) for value in classes}) == 1
    plain = same_kind and isinstance(classes[0], (str, int, float, bool))
    if not plain or len(set(classes)) != len(classes) or len(classes) > 2:
        raise ModelFileError(f"classes must be one or two different values, got {classes!r}")
    if classifier.n_labels_ != 1:
        raise ModelFileError("classes are for a single label")
    classifier.classes_ = np.array(classes)


def _restore_discretizer(description: Any, arrays: Arrays) -> tuple[Discretizer | None, Any]:
    """The fitted discretizer, and the unfitted one as the base's parameter."""
    if description is None:
        return None, None
    cuts = _array(arrays, "cuts", "f")
    if cuts.ndim != 1 or not np.isfinite(cuts).all():
        raise ModelFileError("cut points must be finite numbers")
    unfitted = Discretizer(n_bins=_whole(description["n_bins"], "n_bins"))
    fitted = Discretizer(n_bins=unfitted.n_bins)
    fitted.binnings_, used = [], 0
    for column in description["columns"]:
        binning, used = _restore_binning(column, cuts, used)
        fitted.binnings_.append(binning)
    if used != len(cuts):
        raise ModelFileError(f"{len(cuts)} cut points are stored and {used} were declared")
    fitted.n_categories_ = np.array([b.n_categories for b in fitted.binnings_], dtype=np.int64)
    fitted.n_features_in_ = len(fitted.binnings_)
    return fitted, unfitted


def _restore_binning(column: dict[str, Any], cuts: NDArray[Any], used: int) -> tuple[Binning, int]:
    kind = column["kind"]
    if kind in ("numeric", "zero"):
        stop = used + _whole(column["cuts"], "cuts")
        part = np.asarray(cuts[used:stop], dtype=np.float64)
        if stop > len(cuts) or (np.diff(part) <= 0).any():
            raise ModelFileError("the cut points of a column must be there and increase")
        return (NumericBins(part) if kind == "numeric" else ZeroAndBins(part)), stop
    keys = column["keys"]
    wanted = {"words": str, "values": float}[kind]
    if not all(type(key) is wanted for key in keys) or len(set(keys)) != len(keys):
        raise ModelFileError(f"the categories of a column must be different {kind}")
    return Categories(np.array(keys, dtype=None if keys and wanted is str else np.float64)), used


def _array(arrays: Arrays, name: str, kinds: str) -> NDArray[Any]:
    if name not in arrays:
        raise ModelFileError(f"the array {name} is missing")
    array = arrays[name]
    if array.dtype.kind not in kinds:
        raise ModelFileError(f"the array {name} has dtype {array.dtype}")
    return array


def _whole(value: Any, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ModelFileError(f"{name} must be a whole number, got {value!r}")
    return value


def _names(value: Any, n: int, what: str) -> list[str]:
    sound = isinstance(value, list) and all(isinstance(name, str) for name in value)
    if not sound or len(value) != n:
        raise ModelFileError(f"{what} must be {n} texts")
    for name in value:
        if "\0" in name or name.encode("utf-8", "replace").decode() != name:
            raise ModelFileError(f"{what} holds {name!r}, which is not text")
    return list(value)


def _permutation(order: NDArray[Any], n_labels: int) -> NDArray[np.int64]:
    if order.ndim != 1 or sorted(order.tolist()) != list(range(n_labels)):
        raise ModelFileError(f"the order must be a permutation of {n_labels} labels")
    return order.astype(np.int64)


__all__ = [
    "ModelFileError",
    "load_model",
    "read_description",
    "save_model",
]
