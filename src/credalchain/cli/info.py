"""``credalchain info``."""

import json
from typing import Annotated

import typer

from credalchain.cli import options as o
from credalchain.cli.console import stdout
from credalchain.model_files import load_model, read_description


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
        print(json.dumps(about, indent=2, ensure_ascii=False))
        return
    order = classifier.order_
    names = classifier.label_names_
    lines = [
        ("classifier", about["classifier"]),
        ("written by", f"credalchain {about['package']}, schema {about['schema']}"),
        ("training rows", about["n_rows"]),
        ("features", _few(about["feature_names"], about["n_features"])),
        ("labels", _few(about["label_names"], len(names))),
        ("label order", "dynamic" if order is None else " > ".join(names[order])),
        *about["parameters"].items(),
        *((f"base: {name}", value) for name, value in about["base"].items()),
    ]
    console = stdout()
    for name, value in lines:
        console.print(f"{name:>22}  {value}", markup=False, soft_wrap=True)


def _few(names: list[str] | None, n: int, most: int = 8) -> str:
    if names is None:
        return f"{n}"
    shown = ", ".join(names[:most])
    return f"{n}: {shown}" + (", ..." if n > most else "")
