"""Classifiers as a description and arrays: parameters, names, and the models of their bases."""

import re
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from credalchain._version import __version__
from credalchain.bases.ensemble import EnsembleModel
from credalchain.bases.joint import codec as joint_codec
from credalchain.bases.joint.model import JointModel
from credalchain.bases.registry import BASES, base_of
from credalchain.estimators.base import CredalClassifier
from credalchain.estimators.binary_relevance import CredalBinaryRelevanceClassifier
from credalchain.estimators.chain import CredalChainClassifier
from credalchain.estimators.decision import JointDecision
from credalchain.estimators.ensemble import CredalChainEnsemble
from credalchain.estimators.joint_forest import CredalJointForest
from credalchain.estimators.targets import Targets
from credalchain.labels import is_missing
from credalchain.persistence.archive import FORMAT, SCHEMA
from credalchain.persistence.checks import (
    Arrays,
    Description,
    ModelFileError,
    arrays_with_prefix,
    as_json,
    checked_array,
    checked_int,
    checked_names,
    checked_permutation,
    refuse_other_arrays,
)
from credalchain.strategies import STRATEGIES, Strategy
from credalchain.validation import check_int, check_n_jobs

CLASSIFIERS = {
    cls.__name__: cls
    for cls in (
        CredalChainClassifier,
        CredalBinaryRelevanceClassifier,
        CredalChainEnsemble,
        CredalJointForest,
    )
}
_OLDEST_SCHEMA = {"naive": 1}  # what readers of that time understand


# -- writing -------------------------------------------------------------------------------


def describe(classifier: Any) -> tuple[Description, dict[str, NDArray[Any]]]:
    """Everything that :func:`restore` needs."""
    if isinstance(classifier, JointDecision):
        return _describe_decision(classifier)
    kind = type(classifier).__name__
    model = getattr(classifier, "model_", None)
    if kind not in CLASSIFIERS or model is None:
        raise ValueError(
            f"only fitted {', '.join(CLASSIFIERS)}, JointDecision and PromisedClassifier can be "
            f"saved, got {classifier!r}."
        )
    classifier.check_parameters()  # what could not be loaded is not saved
    if isinstance(model, JointModel):
        described = joint_codec.describe(classifier.forest, classifier.members, model)
        content, arrays, schema = {"joint_model": described[0]}, described[1], SCHEMA
    elif isinstance(model, EnsembleModel):
        content, arrays = _describe_ensemble(classifier.unfitted_base(), model)
        schema = SCHEMA
    else:
        content, arrays = _describe_model(classifier.unfitted_base(), model)
        schema = _OLDEST_SCHEMA.get(content["base"]["kind"], SCHEMA)
        if classifier.order_ is not None:
            arrays["order"] = classifier.order_
    columns = getattr(classifier, "feature_names_in_", None)
    description = {
        "format": FORMAT,
        "schema": schema,
        "package": __version__,
        "classifier": kind,
        "parameters": _plain_parameters(classifier),
        **content,
        "n_features": int(classifier.n_features_in_),
        "feature_names": None if columns is None else columns.tolist(),
        "label_names": classifier.label_names_.tolist(),
        "classes": as_json(classifier.classes_) if classifier.classes_.ndim == 1 else None,
        "classes_dtype": classifier.classes_.dtype.str,
    }
    return description, arrays


def _describe_decision(decision: JointDecision) -> tuple[Description, dict[str, NDArray[Any]]]:
    if not hasattr(decision, "estimator_"):
        raise ValueError(f"only a fitted JointDecision can be saved, got {decision!r}.")
    decision.check_parameters()
    description, arrays = describe(decision.estimator_)
    options = decision.get_params(deep=False)
    del options["estimator"]
    return {
        **description,
        "schema": SCHEMA,
        "decision": {name: as_json(value) for name, value in _seeded(options).items()},
        "exponent": decision.exponent_,
    }, arrays


def _describe_model(base: Any, model: Any) -> tuple[Description, dict[str, NDArray[Any]]]:
    registered = base_of(model)
    if registered is not None:
        if not isinstance(base, registered.estimator):
            raise ValueError(
                f"a model of {registered.estimator.__name__} cannot be saved with the base "
                f"{base!r}: it was changed after fitting."
            )
        description, arrays = registered.codec.describe(base, model)
        return description, arrays
    raise ValueError(
        "only models of this package's own bases can be saved, because others are code: "
        f"{type(model).__name__}."
    )


def _describe_ensemble(
    base: Any, model: EnsembleModel
) -> tuple[Description, dict[str, NDArray[Any]]]:
    """Every distinct model once, and which of them each chain asks."""
    distinct = list({id(chain_model): chain_model for chain_model in model.models}.values())
    index_of = {id(chain_model): index for index, chain_model in enumerate(distinct)}
    described, arrays = [], {"orders": model.orders}
    for index, chain_model in enumerate(distinct):
        content, model_arrays = _describe_model(base, chain_model)
        described.append(content)
        arrays.update({f"{index}.{name}": values for name, values in model_arrays.items()})
    return {
        "models": described,
        "chains": [index_of[id(chain_model)] for chain_model in model.models],
    }, arrays


def _plain_parameters(classifier: Any) -> Description:
    """Parameters as JSON has them."""
    parameters = classifier.get_params(deep=False)
    for name in ("base", "forest", "members"):  # described with the model
        parameters.pop(name, None)
    strategy = parameters.get("strategy")
    if isinstance(strategy, Strategy):
        if STRATEGIES.get(strategy.name) is not strategy:
            raise ValueError(
                f"a strategy of your own cannot be saved, because it is code: {strategy.name!r}. "
                "Set a named one first, and yours again after loading."
            )
        parameters["strategy"] = strategy.name
    return {name: as_json(value) for name, value in _seeded(parameters).items()}


def _seeded(parameters: Description) -> Description:
    """A seed is kept, a generator is not."""
    seed = parameters["random_state"]
    return {**parameters, "random_state": seed if isinstance(seed, Integral) else None}


# -- reading -------------------------------------------------------------------------------


def restore(description: Description, arrays: Arrays) -> Any:
    """The classifier that :func:`describe` described."""
    if not isinstance(description["package"], str):
        raise ModelFileError(f"package must be a text, got {description['package']!r}")
    if "decision" in description:
        return _restore_decision(description, arrays)
    if "models" in description:
        return _restore_ensemble(description, arrays)
    if "joint_model" in description:
        forest, members, model, n_features = joint_codec.restore(description["joint_model"], arrays)
        unfitted = {"forest": forest, "members": members}
        return _restore_classifier(description, unfitted, model, n_features)
    orders = {"order": arrays["order"]} if "order" in arrays else {}
    rest = {name: values for name, values in arrays.items() if name not in orders}
    base, model, n_features = _restore_model(description, rest)
    classifier = _restore_classifier(description, {"base": base}, model, n_features)
    if classifier.order_ is not None:
        classifier.order_ = checked_permutation(
            checked_array(orders, "order", "iu"), model.n_labels
        )
    return classifier


def _restore_decision(description: Description, arrays: Arrays) -> JointDecision:
    inner = {key: value for key, value in description.items() if key != "decision"}
    decision = JointDecision.from_fitted(restore(inner, arrays), **description["decision"])
    exponent = description["exponent"]
    if not (isinstance(exponent, float) and 0 < exponent < float("inf")):
        raise ModelFileError(f"exponent must be a positive number, got {exponent!r}")
    if decision.joint == "sampled" and decision.estimator_.order_ is None:
        raise ModelFileError("joint='sampled' draws along a fixed order of the labels only")
    if decision.joint == "sampled" and isinstance(decision.estimator_.model_, JointModel):
        raise ModelFileError("joint='sampled' draws from chains, and a joint forest has none")
    check_n_jobs(decision.n_jobs)
    check_random_state(decision.random_state)
    decision.exponent_ = exponent
    return decision


def _restore_model(description: Description, arrays: Arrays) -> tuple[Any, Any, int]:
    kind = description["base"]["kind"]
    if kind not in BASES:
        raise ModelFileError(f"unknown base {description['base']!r}")
    codec = BASES[kind].codec
    refuse_other_arrays(arrays, codec.ARRAYS)
    base, model, n_features = codec.restore(description, arrays)
    return base, model, n_features


def _restore_ensemble(description: Description, arrays: Arrays) -> Any:
    restored = [
        _restore_model(content, arrays_with_prefix(arrays, f"{index}."))
        for index, content in enumerate(description["models"])
    ]
    indices = [str(index) for index in range(len(restored))]
    model_arrays = [name for name in arrays if name.partition(".")[0] in indices]
    refuse_other_arrays(arrays, ("orders", *model_arrays))
    base, first, n_features = restored[0]
    shapes = {(model.n_labels, p) for _, model, p in restored}
    reads = [
        [content.get(part) for part in ("base", "numbers", "discretizer")]
        for content in description["models"]
    ]
    if len(shapes) > 1 or any(read != reads[0] for read in reads):
        raise ModelFileError("the chains of an ensemble must have the same labels and features")
    orders = checked_array(arrays, "orders", "iu", ndim=2)
    chains = description["chains"]
    if len(chains) != len(orders) or not all(
        checked_int(index, "chains") < len(restored) for index in chains
    ):
        raise ModelFileError("every chain of an ensemble needs an order and a model")
    checked = np.array([checked_permutation(order, first.n_labels) for order in orders])
    model = EnsembleModel([restored[index][1] for index in chains], checked)
    ensemble = _restore_classifier(description, {"base": base}, model, n_features)
    check_int("n_chains", ensemble.n_chains)
    return ensemble


def _restore_classifier(
    description: Description, unfitted: Description, model: Any, counted: int
) -> Any:
    """``unfitted`` are the parameters that were described with the model."""
    cls = _classifier_class(description["classifier"], model)
    n_features = checked_int(description["n_features"], "n_features", at_least=1)
    if n_features != counted:
        raise ModelFileError(f"{n_features} features are declared and {counted} were learned")
    n_labels = checked_int(model.n_labels, "the number of labels", at_least=1)
    label_names = checked_names(description["label_names"], n_labels, "label_names")
    parameters = {**description["parameters"], **unfitted}
    classifier = cls.from_model(model, n_features=n_features, label_names=label_names, **parameters)
    if description["feature_names"] is not None:
        columns = checked_names(description["feature_names"], n_features, "feature_names")
        classifier.feature_names_in_ = np.array(columns, dtype=object)
        _name_columns(model, classifier.feature_names_in_)
    if description["classes"] is not None:
        _set_classes(classifier, description["classes"], description.get("classes_dtype"))
    classifier.check_parameters()
    if classifier.order_ is None and not model.serves_any_order:
        raise ModelFileError("a dynamic order needs a base that serves every order of the labels")
    return classifier


def _classifier_class(kind: Any, model: Any) -> type[CredalClassifier]:
    if not isinstance(kind, str) or kind not in CLASSIFIERS:
        raise ModelFileError(f"classifier must be one of {', '.join(CLASSIFIERS)}, got {kind!r}")
    cls = CLASSIFIERS[kind]
    kinds = ((CredalChainEnsemble, EnsembleModel), (CredalJointForest, JointModel))
    if any(
        (cls is classifier) != isinstance(model, model_class) for classifier, model_class in kinds
    ):
        raise ModelFileError(f"{kind} cannot have a model of the kind {type(model).__name__}")
    return cls


def _name_columns(model: Any, columns: NDArray[Any]) -> None:
    """A discretizer checks the names of its columns itself."""
    for chain_model in model.models if isinstance(model, EnsembleModel) else [model]:
        discretizer = getattr(chain_model, "discretizer", None)
        if discretizer is not None:
            discretizer.feature_names_in_ = columns


def _set_classes(classifier: Any, classes: Any, dtype: Any) -> None:
    same_kind = isinstance(classes, list) and len({type(value) for value in classes}) == 1
    is_plain = same_kind and isinstance(classes[0], (str, int, float, bool))
    has_duplicates = is_plain and len(set(classes)) != len(classes)
    if not is_plain or has_duplicates or len(classes) > 2 or any(map(is_missing, classes)):
        raise ModelFileError(f"classes must be one or two different values, got {classes!r}")
    if classifier.n_labels_ != 1:
        raise ModelFileError("classes are for a single label")
    if dtype is not None and not re.fullmatch(r"[<>|=]?([biuf]\d|U\d{1,4}|O8?)", str(dtype)):
        raise ModelFileError(f"classes cannot be of type {dtype!r}")
    values = np.array(classes, dtype="O" if str(dtype)[1:2] == "O" else dtype)
    classifier.targets_ = Targets(values, classifier.label_names_)
    if values.tolist() != classes:
        raise ModelFileError(f"classes {classes!r} cannot be of type {dtype!r}")
    counts = getattr(classifier.model_, "counts", None)
    if len(classes) == 1 and counts is not None and counts.label[0, 1] > 0:
        raise ModelFileError(f"classes must be two, as both were counted, got {classes!r}")
