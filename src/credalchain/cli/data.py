"""``credalchain data``: the paper's data sets."""

from typing import Annotated

import typer
from rich.table import Table

from credalchain._utils.text import visible
from credalchain.cli.console import note, stdout
from credalchain.datasets import MULAN, load_mulan
from credalchain.datasets.mulan import DataUnavailableError, mulan_files
from credalchain.studies.results import dataset_facts

data = typer.Typer(
    no_args_is_help=True,
    help="The data sets of the paper, from CREDALCHAIN_DATA, the cache or the network.",
)
Name = Annotated[str, typer.Argument(metavar="NAME", help=", ".join(MULAN))]


@data.command("list")
def list_all() -> None:
    """List all data sets with the numbers of the paper's Table 2, computed from the files.

    Example: `credalchain data list`
    """
    table = Table("data set", "domain", "features", "labels", "rows", "cardinality", "density")
    for column in table.columns[2:]:
        column.justify = "right"
    unavailable: list[str] = []
    for name, about in MULAN.items():
        try:
            facts = dataset_facts(load_mulan(name))
        except DataUnavailableError as error:
            if not unavailable:  # the messages of the others would be the same
                note(str(error))
            unavailable.append(name)
            table.add_row(name, about.domain, *["?"] * 5)
            continue
        table.add_row(
            name,
            about.domain,
            *(str(facts[key]) for key in ("features", "labels", "rows")),
            f"{facts['cardinality']:.2f}",
            f"{facts['density']:.2f}",
        )
    if len(unavailable) > 1:
        note(f"not available either: {', '.join(unavailable[1:])}")
    stdout().print(table)


@data.command()
def get(name: Name) -> None:
    """Fetch a data set, if it is not here yet, and say where its files are.

    Example: `credalchain data get emotions`
    """
    for file in mulan_files(name):
        print(file)


@data.command()
def describe(name: Name) -> None:
    """Say what is in a data set and whom to cite.

    Example: `credalchain data describe emotions`
    """
    dataset = load_mulan(name)
    facts = dataset_facts(dataset)
    counts = (dataset.labels == 1).sum(axis=0)
    console = stdout()
    lines = {
        "name": dataset.name,
        "description": dataset.description,
        "rows": facts["rows"],
        "features": facts["features"],
        "labels": facts["labels"],
        "cardinality": f"{dataset.cardinality:.3f}",
        "density": f"{dataset.density:.3f}",
        "source": dataset.source,
        "citation": dataset.citation,
    }
    for key, value in lines.items():
        console.print(visible(f"{key:>12}  {value}"), soft_wrap=True)
    for label, n in zip(dataset.label_names, counts.tolist(), strict=True):
        console.print(visible(f"{n:>12}  {label}"), soft_wrap=True)
