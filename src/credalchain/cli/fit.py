"""``credalchain fit``."""

from typing import Annotated

import typer

from credalchain.bases.wrapper.codec import check_can_be_saved
from credalchain.cli import options as o
from credalchain.cli.console import note
from credalchain.cli.tables import pick_columns, pick_labels, read_table
from credalchain.model_files import save_model


def fit(
    data: o.Data,
    out: Annotated[str, typer.Option(help="Where the model goes.")],
    labels: o.Labels = None,
    ignore: o.Ignore = "",
    method: o.Method = "chain",
    base: o.Base = "naive",
    estimator: o.Estimator = "",
    trees: o.Trees = 100,
    chains: o.Chains = 10,
    reward: o.Reward = 0.5,
    s: o.S = 2.0,
    strategy: o.StrategyName = "branching",
    order: o.Order = "random",
    threshold: o.Threshold = "0.5",
    seed: o.Seed = 0,
    jobs: o.Jobs = 1,
    epsilon: o.Epsilon = 0.001,
    prior: o.Prior = "laplace",
    denominator: o.Denominator = "pairwise",
    bins: o.Bins = 6,
    missing_features: o.MissingFeatures = "ignore",
) -> None:
    """Learn from a table with labels and write a model file.

    Example: `credalchain fit songs.csv --labels rock,pop,folk --out songs.model`, or, slower and
    better, the same with `--method recommended`
    """
    classifier = o.build_classifier(
        method=method,
        base=base,
        estimator=estimator,
        trees=trees,
        chains=chains,
        reward=reward,
        s=s,
        strategy=strategy,
        order=order,
        threshold=threshold,
        seed=seed,
        jobs=jobs,
        epsilon=epsilon,
        prior=prior,
        denominator=denominator,
        bins=bins,
        missing_features=missing_features,
    )
    frame, known = read_table(data, labels or [])
    names = pick_labels(frame, labels or [], known)
    features = frame.drop(columns=[*names, *pick_columns(frame, ignore, "--ignore")])
    if out == "-":
        raise ValueError("--out -: a model goes to a file, not to stdout.")
    if base == "wrapper":
        check_can_be_saved(o.wrapped_estimator(estimator))
    if method in ("joint", "recommended"):
        note(f"fitting {len(names)} labels several times over; this takes a while")
    classifier.fit(features, frame[names])
    save_model(classifier, out)
    note(f"{len(frame)} rows, {features.shape[1]} features, {len(names)} labels -> {out}")
