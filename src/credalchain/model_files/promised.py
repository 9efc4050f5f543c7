"""Classifiers with a promise in files: what was promised and found, around the classifiers."""

from collections.abc import Mapping
from dataclasses import asdict
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from credalchain._version import __version__
from credalchain.model_files import classifiers
from credalchain.persistence.archive import FORMAT, SCHEMA
from credalchain.persistence.checks import (
    Arrays,
    Description,
    ModelFileError,
    arrays_with_prefix,
    as_json,
    checked_int,
    refuse_other_arrays,
)
from credalchain.promises.agreement import AgreeingClassifiers
from credalchain.promises.classifier import PromisedClassifier
from credalchain.promises.reading import label_index, read_promises
from credalchain.promises.report import GUARANTEES, PromiseReport, PromiseResult
from credalchain.promises.risks import RISKS
from credalchain.validation import check_s

_MAX_MODELS = 1000


def describe(classifier: Any) -> tuple[Description, dict[str, NDArray[Any]]]:
    """Everything that :func:`restore` needs."""
    if not isinstance(classifier, PromisedClassifier):
        return classifiers.describe(classifier)
    if not hasattr(classifier, "report_"):
        raise ValueError(f"only a fitted PromisedClassifier can be saved, got {classifier!r}.")
    promise = {
        "parameters": _parameters(classifier),
        "values": [float(value) if np.isfinite(value) else None for value in classifier.values_],
        "report": as_plain(asdict(classifier.report_)),
    }
    inner = classifier.estimator_
    if not isinstance(inner, AgreeingClassifiers):
        description, arrays = classifiers.describe(inner)
        return {**description, "schema": SCHEMA, "promise": promise}, arrays
    described, arrays = [], {}
    for index, estimator in enumerate(inner.estimators):
        description, model_arrays = classifiers.describe(estimator)
        described.append(description)
        arrays.update({f"{index}.{name}": values for name, values in model_arrays.items()})
    return {
        "format": FORMAT,
        "schema": SCHEMA,
        "package": __version__,
        "promise": promise,
        "estimators": described,
    }, arrays


def _parameters(classifier: PromisedClassifier) -> Description:
    promise = {"row_error": 0.1} if classifier.promise is None else classifier.promise
    if any(callable(risk) for risk in promise):
        raise ValueError(
            "a promise about a function of your own cannot be saved, because it is code."
        )
    names = classifier.label_names_.tolist()
    by_name = {
        risk: {names[label_index(label, names)]: as_json(value) for label, value in level.items()}
        if isinstance(level, Mapping)
        else as_json(level)
        for risk, level in promise.items()
    }
    calibration, seed = classifier.calibration, classifier.random_state
    if hasattr(calibration, "get_n_splits"):
        calibration = calibration.get_n_splits(np.zeros((classifier.report_.n_rows, 1)))
    return {
        "promise": by_name,
        "confidence": as_json(classifier.confidence),
        "method": classifier.method,
        "calibration": as_json(calibration),
        "values": None if classifier.values is None else as_json(np.asarray(classifier.values)),
        "random_state": int(seed) if isinstance(seed, Integral) else None,
    }


def as_plain(value: Any) -> Any:
    """Nested tuples, dicts and numbers as JSON has them."""
    if isinstance(value, dict):
        return {key: as_plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [as_plain(item) for item in value]
    return as_json(value)


def restore(description: Description, arrays: Arrays) -> Any:
    """The classifier that :func:`describe` described."""
    if "promise" not in description:
        return classifiers.restore(description, arrays)
    promise = description["promise"]
    rest = {key: value for key, value in description.items() if key != "promise"}
    if "estimators" in rest:
        estimator: Any = AgreeingClassifiers(_restore_all(rest["estimators"], arrays))
        shapes = {
            (tuple(member.label_names_), member.n_features_in_, type(member))
            for member in estimator.estimators
        }
        if len(shapes) != 1:
            raise ModelFileError("the models that must agree have different labels or columns")
    else:
        estimator = classifiers.restore(rest, arrays)
    are_several = isinstance(estimator, AgreeingClassifiers)
    unfitted = clone(estimator.estimators[0]) if are_several else estimator
    classifier = PromisedClassifier(unfitted, **promise["parameters"])
    names = estimator.label_names_.tolist()
    promises = read_promises(classifier.promise, classifier.confidence, names)
    values = promise["values"]
    if len(values) != len(names) or not all(value is None or _is_number(value) for value in values):
        raise ModelFileError(f"values must be a number or null for each label, got {values!r}")
    classifier.estimator_ = estimator
    classifier.values_ = np.array(
        [np.nan if value is None else value for value in values], dtype=float
    )
    classifier.report_ = _restore_report(promise["report"], names)
    about = [(result.risk, result.level, result.label) for result in classifier.report_.promises]
    promised = [
        (p.risk.name, p.level, None if p.label is None else names[p.label]) for p in promises
    ]
    if about != promised:
        raise ModelFileError("the report is not about what is promised")
    if classifier.report_.parameter != estimator.caution_parameter:
        raise ModelFileError("the report is not about this estimator")
    if estimator.caution_parameter == "s":
        for value in values:
            check_s(0.0 if value is None else value)
    return classifier


def _restore_all(descriptions: Any, arrays: Arrays) -> list[Any]:
    if not isinstance(descriptions, list) or not 1 <= len(descriptions) <= _MAX_MODELS:
        raise ModelFileError("estimators must be several models")
    indices = {str(index) for index in range(len(descriptions))}
    refuse_other_arrays(arrays, [name for name in arrays if name.partition(".")[0] in indices])
    return [
        classifiers.restore(description, arrays_with_prefix(arrays, f"{index}."))
        for index, description in enumerate(descriptions)
    ]


def _restore_report(report: Any, names: list[str]) -> PromiseReport:
    results = []
    for promise in report["promises"]:
        numbers = [promise[key] for key in ("level", "estimate", "completeness")]
        numbers += [*promise["interval"], promise["upper_bound"]]
        optional = [promise["confidence"], promise["value"]]
        is_valid = all(map(_is_number, numbers)) and len(promise["interval"]) == 2
        is_valid &= all(value is None or _is_number(value) for value in optional)
        is_valid &= promise["risk"] in RISKS and (
            promise["label"] is None or promise["label"] in names
        )
        if not is_valid or not isinstance(promise["reason"], str):
            raise ModelFileError(f"a promise is not valid: {promise!r}")
        checked_int(promise["n_rows"], "n_rows")
        results.append(PromiseResult(**{**promise, "interval": tuple(promise["interval"])}))
    is_valid = report["method"] in GUARANTEES and isinstance(report["parameter"], str)
    is_valid &= report["confidence"] is None or _is_number(report["confidence"])
    is_valid &= _is_number(report["completeness"]) and _is_number(report["yes"])
    if not is_valid or not all(name in names for name in report["not_promised"]):
        raise ModelFileError("the report of a promise is not valid")
    for name in ("n_rows", "n_incomplete"):
        checked_int(report[name], name)
    lists = {"promises": tuple(results), "not_promised": tuple(report["not_promised"])}
    return PromiseReport(**{**report, **lists})


def _is_number(value: Any) -> bool:
    is_real = isinstance(value, Real) and not isinstance(value, bool)
    return is_real and bool(0 <= value < np.inf)
