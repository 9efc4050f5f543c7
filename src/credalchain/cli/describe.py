"""``credalchain describe``: what was understood of a table."""

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table

from credalchain._utils.text import table_size, visible
from credalchain.cli import options as o
from credalchain.cli.console import stdout
from credalchain.cli.tables import load_table, pick_columns, read_labelled
from credalchain.datasets.describe import describe_features, describe_labels


@o.with_table_options
def describe(
    data: o.Data,
    labels: o.LabelsOption = None,
    ignore: o.Ignore = "",
    tag_separator: o.TagSeparator = "",
    case_sensitive: o.CaseSensitive = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON in place of tables.")] = False,
) -> None:
    """Show what is understood of each column of a table, before anything is learned from it.

    Example: `credalchain describe songs.csv --labels rock,pop,folk`
    """
    if labels:
        X, Y = read_labelled(data, labels, ignore, tag_separator, case_sensitive=case_sensitive)
        targets = describe_labels(Y)
    else:
        X, known = load_table(data)
        X = X.drop(columns=pick_columns(X, ignore, "--ignore") if ignore else [])
        targets = describe_labels(X[known]) if known else []
        X = X.drop(columns=known)
    features = describe_features(X)
    if as_json:
        description = {
            "rows": len(X),
            "features": [asdict(feature) for feature in features],
            "labels": [asdict(label) for label in targets],
        }
        print(json.dumps(description, indent=2, ensure_ascii=False))
        return
    console = stdout()
    console.print(table_size(len(X), len(features), len(targets)))
    table = Table("column", "kind", "missing", "distinct", "what fit does", "note")
    for feature in features:
        table.add_row(
            visible(feature.name),
            feature.kind,
            f"{feature.missing:.0%}",
            str(feature.n_distinct),
            "learns from it" if feature.is_used else "leaves it out",
            feature.note,
        )
    console.print(table)
    if not targets:
        return
    table = Table("label", "yes", "no", "missing", "note")
    for label in targets:
        counts = (str(number) for number in (label.n_yes, label.n_no, label.n_missing))
        table.add_row(visible(label.name), *counts, label.note)
    console.print(table)
