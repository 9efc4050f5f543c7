"""``credalchain describe``, ``info`` and ``data``: what a table, a model and a data set hold."""

from collections.abc import Mapping
from dataclasses import asdict, astuple
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import skrub
import typer

from credalchain._utils.files import atomic_write
from credalchain._utils.text import plural, table_size, visible
from credalchain.cli import options as o
from credalchain.cli import tables
from credalchain.cli.console import note, print_json, print_table, read_model, stdout
from credalchain.columns import Feature, TablePreparer, describe_labels
from credalchain.datasets import MULAN, load_mulan
from credalchain.datasets.registry import is_dataset_name, local_files, mulan_files
from credalchain.joint.forest import CredalJointForest
from credalchain.model_files import read_about
from credalchain.model_selection import unwrap
from credalchain.studies.results import dataset_facts

_MAX_PARTS, _MAX_SHOWN = 3, 24  # numbers, and characters of a cell, in an example


@o.with_options
def describe(data: str, *, json: bool = False, page: str = "", table: tables.LabelOptions) -> None:
    """Show how each column of a table is read, and how fit uses it.

    Example: `credalchain describe songs.csv --labels rock,pop,folk`

    Parameters
    ----------
    page
        Also write a report on all columns and labels to this .html file.
    """
    if page and Path(page).suffix.lower() != ".html":
        raise ValueError(f"--page {page}: the name must end in .html.")
    if table.labels or is_dataset_name(data):
        X, Y = table.read(data)
    else:
        X, _ = tables.load_table(data)
        X, Y = X.drop(columns=tables.pick_columns(X, table.drop, "--drop")), X[[]]
    if page:
        tables.check_output_path(page, data)
        _write_page(pd.concat([Y, X], axis=1), page, title=data)
    features = table.describe(X)
    examples = _examples(X, features)
    labels = describe_labels(Y) if Y.shape[1] else []
    if json:
        pairs = zip(features, examples, strict=True)
        of_features = [{**asdict(feature), "example": example} for feature, example in pairs]
        columns = {"features": of_features, "labels": list(map(asdict, labels))}
        print_json({"rows": len(X), **columns})
        return
    stdout().print(table_size(len(X), len(features), len(labels)))
    shown = [
        (f.name, f.kind, f"{f.missing:.0%}", str(f.n_distinct), example, f.left_out or f.note)
        for f, example in zip(features, examples, strict=True)
    ]
    heads = ["column", "kind", "missing", "distinct", "what fit makes of it", "note"]
    print_table(heads, shown, n_words=len(heads))
    if labels:
        heads = ["label", "yes", "no", "missing", "note"]
        print_table(heads, [list(map(str, astuple(label))) for label in labels], n_words=len(heads))
        o.note_long_fit(len(X), len(features), len(labels))


def _examples(X: pd.DataFrame, features: list[Feature]) -> list[str]:
    """Return what becomes of a cell of each column, such as "3.1.24 → year 2024, month 1, ..."."""
    used = [feature for feature in features if not feature.left_out]
    table = X[[feature.name for feature in used]].iloc[tables.evenly_spaced_rows(len(X))]
    made = TablePreparer(used).fit_transform(table)
    return ["left out" if f.left_out else _example(f, table[f.name], made) for f in features]


def _example(feature: Feature, cells: pd.Series, made: pd.DataFrame) -> str:
    name = feature.name
    row = int((cells.notna() & ~cells.isin(feature.absent)).to_numpy().argmax())
    before = _short(cells.iloc[row])
    if name in made.columns:
        after = _short(made[name].iloc[row])
        return before if before == after else f"{before} → {after}"
    parts = [column for column in made.columns if column.startswith(f"{name}: ")]
    if feature.kind == "many categories":
        return f"{before} → {len(parts)} numbers from its letters"
    shown = [part for part in parts if feature.kind != "text" or made[part].iloc[row]]
    some = [f"{part.removeprefix(f'{name}: ')} {_short(made[part].iloc[row])}" for part in shown]
    more = [f"... ({len(parts)} numbers)"] * (len(parts) > _MAX_PARTS)
    return f"{before} → {', '.join(some[:_MAX_PARTS] + more)}"


def _short(cell: Any) -> str:
    text = f"{cell:.6g}" if isinstance(cell, (float, np.floating)) else str(cell)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


def _write_page(table: pd.DataFrame, page: str, title: str) -> None:
    """Write skrub's report about a table."""
    report = skrub.TableReport(table, title=title, verbose=0)
    with atomic_write(Path(page)) as file:
        file.write(report.html().encode())
    note(f"page -> {page}")


@o.with_options
def info(model: str, *, json: bool = False) -> None:
    """Show the contents of a model file.

    Example: `credalchain info songs.model`
    """
    fitted = read_model(model)
    classifier, _ = unwrap(fitted)
    report = str(getattr(classifier, "report_", ""))
    names = getattr(fitted, "feature_names_in_", np.arange(fitted.n_features_in_))
    about = {
        "classifier": " ".join(repr(classifier).split()),
        "features": names.tolist(),
        "labels": classifier.label_names_.tolist(),
        **_learned(tables.inner_classifiers(classifier)),
        "written by": f"credalchain {read_about(model)['version']}",
    }
    if json:
        print_json({**about, "promise": report})
        return
    _print_pairs({**about, **{key: _few(about[key]) for key in ("features", "labels")}})
    for line in report.splitlines():
        stdout().print(visible(line), soft_wrap=True)


def _learned(classifiers: list[Any]) -> dict[str, Any]:
    """Collect what people ask of a model, by name; of several that must agree, of the first."""
    classifier = classifiers[0]
    about: dict[str, Any] = {"models": len(classifiers)} if len(classifiers) > 1 else {}
    if isinstance(classifier, CredalJointForest):
        about |= {
            "training rows kept": classifier.model_.n_training_rows,
            "trees": len(classifier.model_.trees.roots),
            **{f"share: {name}": f"{share:.3f}" for name, share in classifier.shares_.items()},
        }
    elif hasattr(classifier, "orders_"):
        about["label order"] = plural(len(classifier.orders_), "random order")
    elif classifier.order_ is None:
        about["label order"] = "dynamic"
    else:
        about["label order"] = " > ".join(classifier.label_names_[classifier.order_])
    counts = getattr(classifier.model_, "counts", None)
    return about if counts is None else {"training rows": counts.n_rows, **about}


def _few(names: list[Any], most: int = 8) -> str:
    if names and not isinstance(names[0], str):
        return f"{len(names)}"
    return f"{len(names)}: {', '.join(names[:most])}" + (", ..." if len(names) > most else "")


def _print_pairs(pairs: Mapping[str, Any]) -> None:
    width = max(map(len, pairs))
    for name, value in pairs.items():
        stdout().print(visible(f"{name:>{width}}  {value}"), soft_wrap=True)


data = typer.Typer(
    no_args_is_help=True,
    help="List or fetch the data sets of the paper.",
)
Name = Annotated[str, typer.Argument(metavar="NAME", help=", ".join(MULAN))]


@data.command("list")
def list_all() -> None:
    """List all data sets with the numbers of the paper's Table 2, computed from the files.

    Example: `credalchain data list`
    """
    columns = "data set", "domain", "features", "labels", "rows", "cardinality", "density"
    rows: list[tuple[str, ...]] = []
    elsewhere = [name for name in MULAN if local_files(name) is None]
    for name, about in MULAN.items():
        numbers = ["?"] * 5
        if name not in elsewhere:
            facts = dataset_facts(load_mulan(name))
            numbers = [str(facts[key]) for key in columns[2:5]]
            numbers += [f"{facts[key]:.2f}" for key in columns[5:]]
        rows.append((name, about.domain, *numbers))
    print_table(columns, rows, n_words=2)
    if elsewhere:
        note(
            f"not on this machine yet: {', '.join(elsewhere)} (credalchain data get {elsewhere[0]})"
        )


@data.command()
def get(name: Name) -> None:
    """Download a data set, if necessary, and print its files and its citation.

    Example: `credalchain data get emotions`
    """
    for file in mulan_files(name):
        print(file)
    note(f"cite: {load_mulan(name).citation}")
