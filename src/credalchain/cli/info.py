"""``credalchain info``."""

import json
from typing import Annotated, Any

import typer

from credalchain.cli import options as o
from credalchain.cli.console import stdout
from credalchain.cli.predict import inner_classifier
from credalchain.estimators.joint_forest import CredalJointForest
from credalchain.model_files import load_model, read_description
from credalchain.promises.classifier import PromisedClassifier
from credalchain.text import visible


def info(
    model: o.ModelFile,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, as JSON.")] = False,
) -> None:
    """Say what a model file holds.

    Example: `credalchain info songs.model`
    """
    classifier = load_model(model)  # checks the whole file
    about = read_description(model)
    if as_json:
        print(json.dumps(about, indent=2))
        return
    promised = str(classifier.report_) if isinstance(classifier, PromisedClassifier) else ""
    chosen = classifier.report_.parameter if promised else ""  # by the promise
    agreeing = len(about.get("estimators", ()))
    about = about["estimators"][0] if agreeing else about
    inner = inner_classifier(classifier)
    names = classifier.label_names_
    content = about["models"][0] if "models" in about else about
    decision = about.get("decision", {})
    # those of the classifier inside are shown
    hidden_parameters = {chosen, "n_jobs", "random_state", "verbose"}
    lines = [
        ("classifier", " over ".join([*_around(promised, decision), about["classifier"]])),
        *(
            (f"decision: {name}", value)
            for name, value in decision.items()
            if name not in hidden_parameters
        ),
        ("written by", f"credalchain {about['package']}, schema {about['schema']}"),
        *([("training rows", content["n_rows"])] if "n_rows" in content else []),
        ("features", _few(about["feature_names"], about["n_features"])),
        ("labels", _few(about["label_names"], len(names))),
        *_order(inner, names),
        *((name, value) for name, value in about["parameters"].items() if name != chosen),
        *_learned(inner, content),
        *([("models that must agree", agreeing)] if agreeing else []),
    ]
    console = stdout()
    width = max(len(name) for name, _ in lines)
    for name, value in lines:
        console.print(visible(f"{name:>{width}}  {value}"), soft_wrap=True)
    for line in promised.splitlines():
        console.print(visible(line), soft_wrap=True)


def _around(promised: str, decision: dict[str, Any]) -> list[str]:
    """The classes around the one that was fitted, the outermost first."""
    around = {"PromisedClassifier": bool(promised), "JointDecision": bool(decision)}
    return [name for name, is_there in around.items() if is_there]


def _learned(classifier: Any, content: dict[str, Any]) -> list[tuple[str, Any]]:
    if isinstance(classifier, CredalJointForest):
        model = classifier.model_
        return [
            ("training rows kept", model.n_training_rows),
            ("trees", len(model.trees.roots)),
            *((f"share: {name}", f"{share:.3f}") for name, share in classifier.shares_.items()),
        ]
    base = content["base"]
    if base["kind"] != "naive":
        return [("base", " ".join(repr(classifier.base).split()))]
    return [(f"base: {name}", value) for name, value in base.items()]


def _order(classifier: Any, names: Any) -> list[tuple[str, str]]:
    if isinstance(classifier, CredalJointForest):
        return []
    if hasattr(classifier, "orders_"):
        return [("label order", f"{len(classifier.orders_)} random ones")]
    order = classifier.order_
    return [("label order", "dynamic" if order is None else " > ".join(names[order]))]


def _few(names: list[str] | None, n: int, most: int = 8) -> str:
    if names is None:
        return f"{n}"
    shown = ", ".join(names[:most])
    return f"{n}: {shown}" + (", ..." if n > most else "")
