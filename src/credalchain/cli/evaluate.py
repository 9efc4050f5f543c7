"""``credalchain evaluate``."""

import json
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from rich.table import Table
from sklearn.base import clone
from sklearn.model_selection import KFold

from credalchain.cli import options as o
from credalchain.cli.console import note, progress, stdout
from credalchain.cli.tables import pick_columns, pick_labels, read_table
from credalchain.labels import as_labels
from credalchain.metrics import MEASURES
from credalchain.report import partial_report

_VALUES, _REWARDS = "0,1,2,4", "0.3,0.6,1,2"


def evaluate(
    data: o.Data,
    labels: o.Labels = None,
    ignore: o.Ignore = "",
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 10,
    s: Annotated[str, typer.Option("--s", help="Values of s, with commas between.")] = _VALUES,
    reward: Annotated[
        str, typer.Option(help="joint: values of the reward, with commas between.")
    ] = _REWARDS,
    as_json: Annotated[bool, typer.Option("--json", help="JSON in place of tables.")] = False,
    method: o.Method = "chain",
    base: o.Base = "naive",
    estimator: o.Estimator = "",
    trees: o.Trees = 100,
    chains: o.Chains = 10,
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
    """Cross-validate on a table: every measure for every s, and a report per label.

    Example: `credalchain evaluate songs.csv --labels last:6 --s 0.5,1,2 --folds 5`
    """
    joint = method in ("joint", "recommended")
    for name, given, usual in (("--s", s, _VALUES), ("--reward", reward, _REWARDS)):
        if given != usual and joint != (name == "--reward"):
            raise ValueError(f"{name} is not for --method {method}.")
    values = np.atleast_1d(o.numbers(reward, "--reward") if joint else o.numbers(s, "--s")).tolist()
    classifier = o.build_classifier(
        method=method,
        base=base,
        estimator=estimator,
        trees=trees,
        chains=chains,
        reward=values[0] if joint else 0.5,
        s=2.0 if joint else values[0],
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
    X = frame.drop(columns=[*names, *pick_columns(frame, ignore, "--ignore")])
    if len(frame) < folds:
        raise ValueError(f"--folds must be at most the number of rows, {len(frame)}.")
    measures, answers = _cross_validate(classifier, X, frame[names], values, folds, seed)
    if as_json:
        _print_json(classifier.caution_parameter, measures, answers, frame[names])
    else:
        _print_tables(classifier.caution_parameter, measures, answers, frame[names], folds)


def _cross_validate(
    classifier: Any, X: pd.DataFrame, Y: pd.DataFrame, values: list[float], folds: int, seed: int
) -> tuple[pd.DataFrame, dict[float, Any]]:
    """Every measure by value of the knob and fold, and the out-of-fold answers of each value."""
    rows = []
    answers = {s: np.empty(Y.shape, dtype=np.int8) for s in values}
    splits = KFold(folds, shuffle=True, random_state=seed).split(X)
    note(
        f"{folds}-fold cross-validation: {len(X)} rows, {X.shape[1]} features, {Y.shape[1]} labels"
    )
    for fold, (train, test) in enumerate(progress(splits, "folds", folds)):
        fitted = clone(classifier).fit(X.iloc[train], Y.iloc[train])
        precise = fitted.predict(X.iloc[test])
        truth = as_labels(Y.iloc[test], require_zero=False)
        for s in values:
            prediction = fitted.infer(X.iloc[test], **{classifier.caution_parameter: s})
            answers[s][test] = prediction.labels
            inputs = {"partial": prediction.labels, "precise": precise, "bounds": prediction}
            for name, measure in MEASURES.items():
                value = measure.function(truth, inputs[measure.needs])
                rows.append((s, fold, name, value))
    return pd.DataFrame(rows, columns=["s", "fold", "measure", "value"]), answers


def _summary(measures: pd.DataFrame) -> dict[tuple[str, float], dict[str, float]]:
    """Mean and spread over folds, by measure and s."""
    groups = measures.groupby(["measure", "s"], sort=False)["value"]
    return groups.agg(["mean", "std"]).to_dict("index")  # type: ignore[return-value]


def _print_tables(
    knob: str, measures: pd.DataFrame, answers: dict[float, Any], Y: pd.DataFrame, folds: int
) -> None:
    console = stdout()
    summary = _summary(measures)
    table = Table("measure", *(f"{knob} = {value:g}" for value in answers))
    for column in table.columns[1:]:
        column.justify = "right"
    for name in MEASURES:
        cells = [summary[name, s] for s in answers]
        table.add_row(name, *(f"{cell['mean']:.3f} ± {cell['std']:.3f}" for cell in cells))
    console.print(table)
    console.print(f"mean ± standard deviation over {folds} folds")
    for value, labels in answers.items():
        console.print(f"\n{knob} = {value:g}")
        console.print(partial_report(Y, labels))


def _print_json(
    knob: str, measures: pd.DataFrame, answers: dict[float, Any], Y: pd.DataFrame
) -> None:
    summary = _summary(measures)
    result = [
        {
            knob: value,
            "measures": {
                name: {key: _finite(summary[name, value][key]) for key in ("mean", "std")}
                for name in MEASURES
            },
            "labels": {
                label: {key: _finite(number) for key, number in row.items()}
                for label, row in partial_report(Y, labels, output_dict=True).items()
            },
        }
        for value, labels in answers.items()
    ]
    print(json.dumps(result, indent=2))


def _finite(value: Any) -> Any:
    """JSON has no NaN."""
    return None if value != value else (int(value) if isinstance(value, int) else float(value))
