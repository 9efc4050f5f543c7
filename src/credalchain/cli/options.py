"""Options that several commands share, and the classifier they describe."""

from typing import Annotated, Any

import typer

from credalchain.bases.naive import NaiveCredal
from credalchain.binary_relevance import CredalBinaryRelevanceClassifier
from credalchain.chain import CredalChainClassifier
from credalchain.preprocessing import Discretizer

_DATA_HELP = (
    "A table: .csv, .tsv, .parquet or .arff; - for CSV from stdin; embedded:yeast; mulan:NAME."
)
Data = Annotated[str, typer.Argument(help=_DATA_HELP)]
ModelFile = Annotated[str, typer.Argument(metavar="MODEL", help="A file that fit wrote.")]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        help="The label columns: names with commas between, first:N or last:N; for ARFF also xml "
        "(MULAN's file beside it) or meka (-C in its header). Cells are 0, 1, or empty for "
        "missing. May be repeated."
    ),
]
Ignore = Annotated[str, typer.Option(help="Columns to leave out, such as row numbers.")]
Method = Annotated[
    str, typer.Option(help="chain, or relevance for labels that do not speak to each other.")
]
S = Annotated[float, typer.Option("--s", help="Caution: 0 answers everything.")]
StrategyName = Annotated[
    str, typer.Option(help="branching, marginalization or tree-marginalization (few stars only).")
]
Order = Annotated[
    str, typer.Option(help="random, given, dynamic, or label names with commas between.")
]
Threshold = Annotated[str, typer.Option(help="A number, or one per label with commas between.")]
Seed = Annotated[int, typer.Option(help="Seeds the random order (and folds).")]
Jobs = Annotated[int, typer.Option(help="Threads; -1 for all cores.")]
Epsilon = Annotated[float, typer.Option(help="Smoothing of the bounds, from 0 to below 1.")]
Prior = Annotated[str, typer.Option(help="laplace, paper or credal.")]
Denominator = Annotated[str, typer.Option(help="pairwise or class.")]
Bins = Annotated[
    int, typer.Option(help="Equal-frequency bins per numeric column; 0: columns hold codes.")
]
MissingFeatures = Annotated[str, typer.Option(help="ignore or conservative.")]


def numbers(text: str, option: str) -> Any:
    """A number, or a list of them where there are commas."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{option} must be numbers with commas between, got {text!r}.") from None
    return values if "," in text else values[0]


def build_classifier(
    *,
    method: str,
    s: float,
    strategy: str,
    order: str,
    threshold: str,
    seed: int,
    jobs: int,
    epsilon: float,
    prior: str,
    denominator: str,
    bins: int,
    missing_features: str,
) -> Any:
    """The classifier that the options describe, unfitted."""
    base = NaiveCredal(
        epsilon=epsilon,
        prior=prior,
        denominator=denominator,
        discretizer=None if bins == 0 else Discretizer(n_bins=bins),
        missing_features=missing_features,
    )
    common: dict[str, Any] = {
        "s": s,
        "threshold": numbers(threshold, "--threshold"),
        "n_jobs": jobs,
        "random_state": seed,
    }
    if method == "relevance":
        return CredalBinaryRelevanceClassifier(base, **common)
    if method != "chain":
        raise ValueError(f"--method must be chain or relevance, got {method!r}.")
    names: Any = [name.strip() for name in order.split(",")] if "," in order else order
    return CredalChainClassifier(base, strategy=strategy, order=names, **common)
