"""``credalchain fit``."""

from typing import Annotated

import typer

from credalchain.bases.wrapper.codec import check_can_be_saved
from credalchain.cli import options as o
from credalchain.cli.console import note
from credalchain.cli.tables import read_labelled
from credalchain.model_files import save_model


@o.with_classifier_options
def fit(
    data: o.Data,
    out: Annotated[str, typer.Option(help="Where the model goes.")],
    labels: o.Labels = None,
    ignore: o.Ignore = "",
    *,
    options: o.ClassifierOptions,
) -> None:
    """Learn from a table with labels and write a model file.

    Example: `credalchain fit songs.csv --labels rock,pop,folk --out songs.model`, or, better,
    the same with `--method recommended`
    """
    classifier = o.build_classifier(options)
    X, Y = read_labelled(data, labels or [], ignore)
    if out == "-":
        raise ValueError("--out -: a model goes to a file, not to stdout.")
    if options.base == "wrapper":
        check_can_be_saved(o.wrapped_estimator(options.estimator))
    if options.method == "joint":
        note(f"fitting {Y.shape[1]} labels several times over; this takes a while")
    classifier.fit(X, Y)
    save_model(classifier, out)
    note(f"{len(X)} rows, {X.shape[1]} features, {Y.shape[1]} labels -> {out}")
