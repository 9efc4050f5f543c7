"""``credalchain evaluate``."""

import json
from dataclasses import replace
from itertools import repeat
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from rich.table import Table
from sklearn.model_selection import KFold

from credalchain.cli import options as o
from credalchain.cli.console import note, progress, stdout
from credalchain.cli.tables import read_labelled
from credalchain.estimators.folds import fitted_folds
from credalchain.labels import as_labels
from credalchain.metrics import MEASURES
from credalchain.model_selection import predict_along, score_path
from credalchain.report import partial_report

_VALUES, _REWARDS = "0,1,2,4", "0.3,0.6,1,2"


@o.with_classifier_options
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
    *,
    options: o.ClassifierOptions,
) -> None:
    """Cross-validate on a table: every measure for every s, and a report per label.

    Example: `credalchain evaluate songs.csv --labels last:6 --s 0.5,1,2 --folds 5`
    """
    for name, given, usual in (("--s", s, _VALUES), ("--reward", reward, _REWARDS)):
        if given != usual and options.is_joint != (name == "--reward"):
            raise ValueError(f"{name} is not for --method {options.method}.")
    parameter, text = ("reward", reward) if options.is_joint else ("s", s)
    values = list(dict.fromkeys(np.atleast_1d(o.numbers(text, f"--{parameter}")).tolist()))
    classifier = o.build_classifier(replace(options, **{parameter: values[0]}))
    X, Y = read_labelled(data, labels or [], ignore)
    if len(X) < folds:
        raise ValueError(f"--folds must be at most the number of rows, {len(X)}.")
    scores, predicted = _cross_validate(classifier, X, Y, values, folds, options.seed)
    if as_json:
        _print_json(parameter, scores, predicted, Y)
    else:
        _print_tables(parameter, scores, predicted, Y, folds)


def _cross_validate(
    classifier: Any, X: pd.DataFrame, Y: pd.DataFrame, values: list[float], folds: int, seed: int
) -> tuple[pd.DataFrame, dict[float, Any]]:
    """Every measure in every fold, and out-of-fold labels, by value of the caution parameter."""
    rows = []
    labels = np.empty((len(values), *Y.shape), dtype=np.int8)
    splits = KFold(folds, shuffle=True, random_state=seed).split(X)
    note(
        f"{folds}-fold cross-validation: {len(X)} rows, {X.shape[1]} features, {Y.shape[1]} labels"
    )
    for fold in progress(fitted_folds(repeat(classifier), X, Y, splits), "folds", folds):
        path = predict_along(fold.estimator, fold.X, values, MEASURES)
        labels[:, fold.rows] = path.labels
        truth = as_labels(Y.iloc[fold.rows], require_zero=False)
        for name, column in zip(MEASURES, score_path(MEASURES, truth, path), strict=True):
            rows += [(name, *pair) for pair in zip(values, column, strict=True)]
    scores = pd.DataFrame(rows, columns=["measure", "value", "score"])
    return scores, dict(zip(values, labels, strict=True))


def _summary(scores: pd.DataFrame) -> dict[tuple[str, float], dict[str, float]]:
    """Mean and spread over folds, by measure and value of the caution parameter."""
    groups = scores.groupby(["measure", "value"], sort=False)["score"]
    return groups.agg(["mean", "std"]).to_dict("index")  # type: ignore[return-value]


def _print_tables(
    parameter: str, scores: pd.DataFrame, predicted: dict[float, Any], Y: pd.DataFrame, folds: int
) -> None:
    console = stdout()
    summary = _summary(scores)
    table = Table("measure", *(f"{parameter} = {value:g}" for value in predicted))
    for column in table.columns[1:]:
        column.justify = "right"
    for name in MEASURES:
        cells = [summary[name, value] for value in predicted]
        table.add_row(name, *(f"{cell['mean']:.3f} ± {cell['std']:.3f}" for cell in cells))
    console.print(table)
    console.print(f"mean ± standard deviation over {folds} folds")
    for value, labels in predicted.items():
        console.print(f"\n{parameter} = {value:g}")
        console.print(partial_report(Y, labels))


def _print_json(
    parameter: str, scores: pd.DataFrame, predicted: dict[float, Any], Y: pd.DataFrame
) -> None:
    summary = _summary(scores)
    result = [
        {
            parameter: value,
            "measures": {
                name: {key: _finite(summary[name, value][key]) for key in ("mean", "std")}
                for name in MEASURES
            },
            "labels": {
                label: {key: _finite(number) for key, number in row.items()}
                for label, row in partial_report(Y, labels, output_dict=True).items()
            },
        }
        for value, labels in predicted.items()
    ]
    print(json.dumps(result, indent=2))


def _finite(value: Any) -> Any:
    """JSON has no NaN."""
    return None if value != value else (int(value) if isinstance(value, int) else float(value))
