"""``credalchain evaluate``."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from rich.table import Table
from sklearn.base import clone
from sklearn.model_selection import KFold

from credalchain.chunks.sampling import row_hashes
from credalchain.cli import options as o
from credalchain.cli.console import note, progress, stdout
from credalchain.cli.stream import LabelledPieces, is_in_pieces, is_large
from credalchain.cli.tables import read_labelled
from credalchain.estimators.folds import fitted_folds
from credalchain.labels import as_labels
from credalchain.metrics import MEASURES, Tally, pooled, resolved_labels, tally
from credalchain.model_selection import predict_along, score_path
from credalchain.report import count_cells, report_of_counts

_VALUES, _REWARDS = "0,1,2,4", "0.3,0.6,1,2"


@o.with_classifier_options
def evaluate(
    data: o.Data,
    labels: o.Labels = None,
    ignore: o.Ignore = "",
    tag_separator: o.TagSeparator = "",
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
    if tag_separator and is_in_pieces(data):
        raise ValueError("--tag-separator is for data that is read whole.")
    in_pieces = is_large(data) and not tag_separator and hasattr(classifier, "fit_chunks")
    if is_in_pieces(data) or in_pieces:
        pieces = LabelledPieces(data, labels or [], ignore)
        found = _cross_validate_pieces(classifier, pieces, values, folds, options.seed)
    else:
        X, Y = read_labelled(data, labels or [], ignore, tag_separator)
        if len(X) < folds:
            raise ValueError(f"--folds must be at most the number of rows, {len(X)}.")
        found = _cross_validate(classifier, X, Y, values, folds, options.seed)
    if as_json:
        _print_json(parameter, found)
    else:
        _print_tables(parameter, found, folds)


@dataclass(frozen=True)
class _Evaluation:
    """Measures of every fold, and what reports of single labels are made of.

    ``scores`` has the columns measure, value (of the caution parameter) and score; ``cells`` for
    each value what :func:`count_cells` gives.
    """

    scores: pd.DataFrame
    cells: dict[float, Any]
    label_names: list[str]


def _cross_validate(
    classifier: Any, X: pd.DataFrame, Y: pd.DataFrame, values: list[float], folds: int, seed: int
) -> _Evaluation:
    scores: list[tuple[str, float, float]] = []
    cells = dict.fromkeys(values, np.zeros((Y.shape[1], 5), dtype=np.int64))
    splits = KFold(folds, shuffle=True, random_state=seed).split(X)
    note(
        f"{folds}-fold cross-validation: {len(X)} rows, {X.shape[1]} features, {Y.shape[1]} labels"
    )
    for fold in progress(fitted_folds(repeat(classifier), X, Y, splits), "folds", folds):
        path = predict_along(fold.estimator, fold.X, values, MEASURES)
        truth = as_labels(Y.iloc[fold.rows], require_zero=False)
        for value, labels in zip(values, path.labels, strict=True):
            cells[value] = cells[value] + count_cells(truth, labels)
        for name, column in zip(MEASURES, score_path(MEASURES, truth, path), strict=True):
            scores += [(name, *pair) for pair in zip(values, column, strict=True)]
    return _Evaluation(_table(scores), cells, list(Y.columns))


def _table(scores: list[tuple[str, float, float]]) -> pd.DataFrame:
    return pd.DataFrame(scores, columns=["measure", "value", "score"])


def _cross_validate_pieces(
    classifier: Any, pieces: LabelledPieces, values: list[float], folds: int, seed: int
) -> _Evaluation:
    """The same in constant memory; a row's fold is a hash of its number."""
    scores: list[tuple[str, float, float]] = []
    cells: dict[float, Any] = {}
    names: list[str] = []
    note(f"{folds}-fold cross-validation, in pieces: every fold reads the data several times")
    for fold in progress(range(folds), "folds", folds):

        def rows(*, tested: bool, fold: int = fold) -> Any:
            return _rows_of_fold(pieces, fold, folds, seed, tested=tested)

        fitted = pieces.fit(clone(classifier), partial(rows, tested=False))
        tallies: dict[tuple[str, float], Tally] = {}
        for X, Y, _ in rows(tested=True):
            path = predict_along(fitted, X, values, MEASURES)
            truth, names = as_labels(Y, require_zero=False), list(Y.columns)
            for at, value in enumerate(values):
                count = count_cells(truth, path.labels[at])
                cells[value] = count + cells.get(value, 0)
                for kind, labels in (
                    ("partial", path.labels[at]),
                    ("precise", path.precise),
                    ("bounds", resolved_labels(path.bounds[at])),
                ):
                    before = [tallies[kind, value]] if (kind, value) in tallies else []
                    tallies[kind, value] = pooled([*before, tally(truth, np.asarray(labels))])
        if not tallies:
            raise ValueError(f"--folds {folds}: fold {fold} has no rows; the data has too few.")
        for name, measure in MEASURES.items():
            of_tally = measure.of_tally or MEASURES["set_accuracy"].of_tally
            assert of_tally is not None
            scores += [(name, v, float(of_tally(tallies[measure.needs, v]))) for v in values]
    note(f"{pieces.n_rows} rows, {len(names)} labels")
    return _Evaluation(_table(scores), cells, names)


def _rows_of_fold(
    pieces: LabelledPieces, fold: int, folds: int, seed: int, *, tested: bool
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame, str]]:
    """The rows of each piece that are tested in a fold, or all others."""
    first = seed % 2**20 * 2**40  # other numbers for another seed
    for X, Y, name in pieces():
        is_tested = row_hashes(first, len(X)) % np.uint64(folds) == fold
        first += len(X)
        rows = is_tested if tested else ~is_tested
        if rows.any():
            yield X[rows], Y[rows], name


def _summary(scores: pd.DataFrame) -> dict[tuple[str, float], dict[str, float]]:
    """Mean and spread over folds, by measure and value of the caution parameter."""
    groups = scores.groupby(["measure", "value"], sort=False)["score"]
    return groups.agg(["mean", "std"]).to_dict("index")  # type: ignore[return-value]


def _print_tables(parameter: str, found: _Evaluation, folds: int) -> None:
    console = stdout()
    summary = _summary(found.scores)
    table = Table("measure", *(f"{parameter} = {value:g}" for value in found.cells))
    for column in table.columns[1:]:
        column.justify = "right"
    for name in MEASURES:
        cells = [summary[name, value] for value in found.cells]
        table.add_row(name, *(f"{cell['mean']:.3f} ± {cell['std']:.3f}" for cell in cells))
    console.print(table)
    console.print(f"mean ± standard deviation over {folds} folds")
    for value, counts in found.cells.items():
        console.print(f"\n{parameter} = {value:g}")
        console.print(report_of_counts(counts, found.label_names))


def _print_json(parameter: str, found: _Evaluation) -> None:
    summary = _summary(found.scores)
    result = [
        {
            parameter: value,
            "measures": {
                name: {key: _finite(summary[name, value][key]) for key in ("mean", "std")}
                for name in MEASURES
            },
            "labels": {
                label: {key: _finite(number) for key, number in row.items()}
                for label, row in report_of_counts(
                    counts, found.label_names, output_dict=True
                ).items()
            },
        }
        for value, counts in found.cells.items()
    ]
    print(json.dumps(result, indent=2))


def _finite(value: Any) -> Any:
    """JSON has no NaN."""
    return None if value != value else (int(value) if isinstance(value, int) else float(value))
