"""``credalchain info``."""

import json
from typing import Annotated, Any

import typer

from credalchain._utils.text import plural, visible
from credalchain.cli import options as o
from credalchain.cli.console import read_model, stdout
from credalchain.cli.predict import inner_classifiers
from credalchain.joint.forest import CredalJointForest
from credalchain.model_files import read_about
from credalchain.promises.classifier import PromisedClassifier

_HIDDEN = {"n_jobs", "random_state", "verbose", "estimator", "promise", "values"}


def info(
    model: o.ModelFile,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, as JSON.")] = False,
) -> None:
    """Say what a model file holds.

    Example: `credalchain info songs.model`
    """
    classifier = read_model(model)
    report = getattr(classifier, "report_", None)
    about = _describe(classifier, hidden={getattr(report, "parameter", "")})
    about["written by"] = f"credalchain {read_about(model)['version']}"
    if as_json:
        print(json.dumps({**about, "promise": report and str(report)}, indent=2, default=str))
        return
    console = stdout()
    lines = {**about, "features": _few(about["features"]), "labels": _few(about["labels"])}
    width = max(map(len, lines))
    for name, value in lines.items():
        console.print(visible(f"{name:>{width}}  {value}"), soft_wrap=True)
    for line in str(report or "").splitlines():
        console.print(visible(line), soft_wrap=True)


def _describe(classifier: Any, hidden: set[str]) -> dict[str, Any]:
    """Collect what people ask of a model, by name; not the parameters that a promise has chosen."""
    inner = inner_classifiers(classifier)
    layers = [classifier, *_below(classifier)]
    names = getattr(classifier, "feature_names_in_", range(classifier.n_features_in_))
    about = {
        "classifier": " over ".join(type(layer).__name__ for layer in layers),
        "features": list(names),
        "labels": classifier.label_names_.tolist(),
    }
    for layer in layers:
        if not isinstance(layer, PromisedClassifier):
            parameters = layer.get_params(deep=False)
            about |= {k: v for k, v in parameters.items() if k not in _HIDDEN | hidden}
    about |= _learned(inner[0])
    return about | ({"models that must agree": len(inner)} if len(inner) > 1 else {})


def _below(classifier: Any) -> list[Any]:
    """Return the classifiers inside, from the outside in; of several the first."""
    inner = getattr(classifier, "estimator_", None)
    inner = getattr(inner, "estimators", [inner])[0]
    return [] if inner is None else [inner, *_below(inner)]


def _learned(classifier: Any) -> dict[str, Any]:
    model = classifier.model_
    if isinstance(classifier, CredalJointForest):
        return {
            "training rows kept": model.n_training_rows,
            "trees": len(model.trees.roots),
            **{f"share: {name}": f"{share:.3f}" for name, share in classifier.shares_.items()},
        }
    base = classifier.unfitted_base()
    about: dict[str, Any] = {"base": " ".join(repr(base).split())}
    counts = getattr(getattr(model, "models", [model])[0], "counts", None)
    if counts is not None:
        about |= {"training rows": counts.n_rows}
    if hasattr(classifier, "orders_"):
        return about | {"label order": plural(len(classifier.orders_), "random order")}
    order, names = classifier.order_, classifier.label_names_
    return about | {"label order": "dynamic" if order is None else " > ".join(names[order])}


def _few(names: list[Any], most: int = 8) -> str:
    if names and not isinstance(names[0], str):
        return f"{len(names)}"
    shown = ", ".join(names[:most])
    return f"{len(names)}: {shown}" + (", ..." if len(names) > most else "")
