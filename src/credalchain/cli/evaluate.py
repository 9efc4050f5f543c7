"""``credalchain evaluate``."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray
from rich.table import Table
from sklearn.base import clone
from sklearn.model_selection import KFold

from credalchain._utils.progress import track
from credalchain._utils.text import plural, table_size
from credalchain.chains.base import fitted_folds
from credalchain.chunks.sampling import row_hashes
from credalchain.cli import options as o
from credalchain.cli.console import note, stdout
from credalchain.cli.stream import LabelledChunks, fits_memory, is_chunked, reads_chunked
from credalchain.cli.tables import read_labelled, take_groups, usable_features
from credalchain.joint.decision import default_reward
from credalchain.labels import as_labels, both_answers_seen
from credalchain.metrics import (
    DEFAULT_MEASURES,
    IntervalReliability,
    Tally,
    completeness,
    interval_reliability,
    pooled,
    resolved_labels,
    tally,
)
from credalchain.metrics.report import count_cells, report_of_counts
from credalchain.model_selection import (
    PathPrediction,
    group_folds,
    predict_along,
    row_groups,
    score_path,
)
from credalchain.prediction import NEARLY_NOTHING
from credalchain.promises.caution import MIN_ROWS, choose_cautions

_COMPLETENESS_SHOWN = (
    1.0,
    0.9,
    0.8,
    0.6,
    0.4,
)  # of the labels answered, where nobody says how cautious
_CLEARLY_MORE = 0.01


_CHOSEN = "if not given, those that answer 100, 90, 80, 60 and 40 % of the labels of some rows."


@o.with_table_options
@o.with_classifier_options
def evaluate(
    data: o.Data,
    labels: o.LabelsOption = None,
    ignore: o.Ignore = "",
    use: o.Use = "",
    tag_separator: o.TagSeparator = "",
    groups: o.Groups = "",
    case_sensitive: o.CaseSensitive = False,
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 10,
    s: Annotated[
        str, typer.Option("--s", help=f"Chains: values of s, with commas between; {_CHOSEN}")
    ] = "",
    reward: Annotated[
        str,
        typer.Option(help=f"Joint decisions: values of the reward, with commas between; {_CHOSEN}"),
    ] = "",
    summary: Annotated[
        bool, typer.Option("--summary", help="Only the table of measures, no report per label.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON in place of tables.")] = False,
    *,
    options: o.ClassifierOptions,
) -> None:
    """Cross-validate on a table: measures at degrees of caution, and a report per label.

    Example: `credalchain evaluate songs.csv --labels last:6 --folds 5`
    """
    parameter, text = ("reward", reward) if options.is_joint else ("s", s)
    values = np.atleast_1d(o.parse_numbers(text, f"--{parameter}")).tolist() if text else []
    classifier = o.build_classifier(options)
    needs_all = "--tag-separator" if tag_separator else "--groups" if groups else ""
    if needs_all and is_chunked(data) and not fits_memory(data):
        raise ValueError(f"{needs_all} is for data that is read whole, and {data} is large.")
    if reads_chunked(data, classifier, needs_all=bool(needs_all)):
        chunks = LabelledChunks(data, labels or [], ignore)
        X, Y = chunks.sample(use)
        _check_folds(folds, chunks.n_rows, options.seed)
        values = values or _values_from(classifier, X, Y, chunks.n_rows, folds, options.seed, None)
        counted = both_answers_seen(as_labels(Y, require_zero=False))
        evaluation = _cross_validate_chunks(
            classifier, chunks, list(dict.fromkeys(values)), folds, options.seed, counted
        )
    else:
        X, Y = read_labelled(
            data, labels or [], ignore, tag_separator, case_sensitive=case_sensitive
        )
        if len(X) < folds:
            raise ValueError(f"--folds must be at most the number of rows, {len(X)}.")
        X, given = take_groups(X, groups)
        X = usable_features(X, Y, use)
        group_of = row_groups(X, as_labels(Y, require_zero=False), given)
        n_groups = int(group_of.max()) + 1
        kind = "different rows (--groups none: each by itself)" if given is None else "groups"
        if n_groups < folds:
            raise ValueError(f"--folds must be at most {n_groups}: there are {n_groups} {kind}.")
        if n_groups < len(X):
            note(f"note: {len(X)} rows are {n_groups} {kind}, which folds keep together")
        values = values or _values_from(classifier, X, Y, len(X), folds, options.seed, given)
        splitter = KFold(folds, shuffle=True, random_state=options.seed)
        splits = group_folds(group_of, splitter)
        evaluation = _cross_validate(classifier, X, Y, list(dict.fromkeys(values)), folds, splits)
    if as_json:
        _print_json(parameter, evaluation)
    else:
        _print_measures(parameter, evaluation, folds)
        if not summary:
            _print_labels(parameter, evaluation)
    _note_what_is_odd(parameter, evaluation)


def _values_from(
    classifier: Any,
    X: pd.DataFrame,
    Y: pd.DataFrame,
    n_rows: int,
    folds: int,
    seed: int,
    groups: Any,
) -> list[float]:
    """Values of caution that answer certain shares of the labels of rows held out."""
    if len(X) < MIN_ROWS:
        value = classifier.get_params()[classifier.caution_parameter]
        return [default_reward(Y.shape[1]) if value is None else float(value)]
    chosen = choose_cautions(
        classifier,
        X,
        Y,
        _COMPLETENESS_SHOWN,
        n_rows=n_rows * (folds - 1) // folds,
        random_state=seed,
        groups=groups,
    )
    return [float(f"{choice.value:.3g}") for choice in chosen]


def _note_what_is_odd(parameter: str, evaluation: "_Evaluation") -> None:
    """Notes about caution that buys nothing."""
    summary = _summary(evaluation.scores)
    answered = {value: summary["completeness", value]["mean"] for value in evaluation.cells}
    wrong = {value: summary["selective_error", value]["mean"] for value in evaluation.cells}
    boldest = max(answered, key=lambda value: answered[value])
    for value, share in answered.items():
        if share < NEARLY_NOTHING:
            note(f"note: {parameter} = {value:g} answers {share:.1%} of the labels.")
        elif wrong[value] > wrong[boldest] + _CLEARLY_MORE:
            note(
                f"note: at {parameter} = {value:g} {wrong[value]:.1%} of the answers are wrong, at "
                f"{parameter} = {boldest:g} {wrong[boldest]:.1%}: here, caution gives up labels "
                "that would have been right. --method recommended, or a promise, may do better."
            )
    for value, reliability in evaluation.reliability.items():
        too_sure = reliability.overconfidence_note()
        if too_sure is not None:
            note(f"note: at {parameter} = {value:g} {too_sure}")
            break


@dataclass(frozen=True)
class _Evaluation:
    """Measures of every fold, and what reports of single labels are made of.

    ``scores`` has the columns measure, value (of the caution parameter) and score; ``cells`` for
    each value what :func:`count_cells` gives, ``reliability`` how intervals agree with the truth.
    ``n_counted`` labels are not constant, and count in completeness.
    """

    scores: pd.DataFrame
    cells: dict[float, Any]
    reliability: dict[float, IntervalReliability]
    label_names: list[str]
    n_counted: int


def _cross_validate(
    classifier: Any,
    X: pd.DataFrame,
    Y: pd.DataFrame,
    values: list[float],
    folds: int,
    splits: Iterable[Any],
) -> _Evaluation:
    scores: list[tuple[str, float, float]] = []
    cells = dict.fromkeys(values, np.zeros((Y.shape[1], 5), dtype=np.int64))
    reliability: dict[float, IntervalReliability] = {}
    note(f"{folds}-fold cross-validation: {table_size(len(X), X.shape[1], Y.shape[1])}")
    counted = both_answers_seen(as_labels(Y, require_zero=False))
    for fold in fitted_folds(repeat(classifier), X, Y, splits):
        path = predict_along(fold.estimator, fold.X, values, DEFAULT_MEASURES)
        truth = as_labels(Y.iloc[fold.rows], require_zero=False)
        for value, labels in zip(values, path.labels, strict=True):
            cells[value] = cells[value] + count_cells(truth, labels)
        _add_reliability(reliability, truth, path)
        columns = dict(
            zip(DEFAULT_MEASURES, score_path(DEFAULT_MEASURES, truth, path), strict=True)
        )
        columns["completeness"] = [completeness(None, labels[:, counted]) for labels in path.labels]
        for name, column in columns.items():
            scores += [(name, *pair) for pair in zip(values, column, strict=True)]
    return _Evaluation(_table(scores), cells, reliability, list(Y.columns), int(counted.sum()))


def _add_reliability(
    total: dict[float, IntervalReliability], truth: Any, path: PathPrediction
) -> None:
    for value, prediction in zip(path.values, path.bounds, strict=True):
        reliability = interval_reliability(truth, prediction)
        total[value] = total[value] + reliability if value in total else reliability


def _table(scores: list[tuple[str, float, float]]) -> pd.DataFrame:
    return pd.DataFrame(scores, columns=["measure", "value", "score"])


def _cross_validate_chunks(
    classifier: Any,
    chunks: LabelledChunks,
    values: list[float],
    folds: int,
    seed: int,
    counted: NDArray[np.bool_],
) -> _Evaluation:
    """The same in constant memory; a row's fold is a hash of its number."""
    scores: list[tuple[str, float, float]] = []
    cells: dict[float, Any] = {}
    reliability: dict[float, IntervalReliability] = {}
    names: list[str] = []
    note(f"{folds}-fold cross-validation, in chunks: every fold reads the data several times")
    for fold in track(range(folds), "folds", folds):

        def rows(*, tested: bool, fold: int = fold) -> Any:
            return _rows_of_fold(chunks, fold, folds, seed, tested=tested)

        fitted = chunks.fit(clone(classifier), partial(rows, tested=False))
        tallies: dict[tuple[str, float], Tally] = {}
        for X, Y, _ in rows(tested=True):
            path = predict_along(fitted, X, values, DEFAULT_MEASURES)
            truth, names = as_labels(Y, require_zero=False), list(Y.columns)
            _add_reliability(reliability, truth, path)
            for i, value in enumerate(values):
                count = count_cells(truth, path.labels[i])
                cells[value] = count + cells.get(value, 0)
                everything = slice(None)
                for kind, labels, columns in (
                    ("partial", path.labels[i], everything),
                    ("precise", path.precise, everything),
                    ("bounds", resolved_labels(path.bounds[i]), everything),
                    ("completeness", path.labels[i], counted),
                ):
                    before = [tallies[kind, value]] if (kind, value) in tallies else []
                    found = tally(truth[:, columns], np.asarray(labels)[:, columns])
                    tallies[kind, value] = pooled([*before, found])
        for name, measure in DEFAULT_MEASURES.items():
            assert measure.of_tally is not None  # as a test holds for all that are shown
            kind = name if name == "completeness" else measure.needs
            fold_scores = [float(measure.of_tally(tallies[kind, value])) for value in values]
            scores += [(name, *pair) for pair in zip(values, fold_scores, strict=True)]
    note(f"{plural(chunks.n_rows, 'row')}, {plural(len(names), 'label')}")
    return _Evaluation(_table(scores), cells, reliability, names, int(counted.sum()))


def _check_folds(folds: int, n_rows: int, seed: int) -> None:
    """Every fold must have rows; with many rows for each there is no doubt."""
    if n_rows < 100 * folds and len(np.unique(_fold_of_rows(0, n_rows, folds, seed))) < folds:
        raise ValueError(f"--folds {folds}: a fold would have no rows; the data has {n_rows}.")


def _fold_of_rows(first: int, n: int, folds: int, seed: int) -> Any:
    """The fold in which each of the rows first, first + 1, ... is tested."""
    offset = seed % 2**20 * 2**40  # other numbers for another seed
    return row_hashes(offset + first, n) % np.uint64(folds)


def _rows_of_fold(
    chunks: LabelledChunks, fold: int, folds: int, seed: int, *, tested: bool
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame, str]]:
    """The rows of each chunk that are tested in a fold, or all others."""
    first = 0
    for X, Y, name in chunks():
        is_tested = _fold_of_rows(first, len(X), folds, seed) == fold
        first += len(X)
        rows = is_tested if tested else ~is_tested
        if rows.any():
            yield X[rows], Y[rows], name


def _summary(scores: pd.DataFrame) -> dict[tuple[str, float], dict[str, float]]:
    """Mean and spread over folds, by measure and value of the caution parameter."""
    groups = scores.groupby(["measure", "value"], sort=False)["score"]
    return groups.agg(["mean", "std"]).to_dict("index")  # type: ignore[return-value]


def _print_measures(parameter: str, evaluation: _Evaluation, folds: int) -> None:
    console = stdout()
    summary = _summary(evaluation.scores)
    table = Table("measure", *(f"{parameter} = {value:g}" for value in evaluation.cells))
    for column in table.columns[1:]:
        column.justify = "right"
    for name in DEFAULT_MEASURES:
        cells = [summary[name, value] for value in evaluation.cells]
        table.add_row(name, *(f"{cell['mean']:.3f} ± {cell['std']:.3f}" for cell in cells))
    console.print(table)
    console.print(f"mean ± standard deviation over {folds} folds")
    if evaluation.n_counted < len(evaluation.label_names):
        counted = plural(evaluation.n_counted, "label")
        console.print(f"completeness: of {counted}, without those that are constant")


def _print_labels(parameter: str, evaluation: _Evaluation) -> None:
    console = stdout()
    for value, counts in evaluation.cells.items():
        console.print(f"\n{parameter} = {value:g}")
        console.print(report_of_counts(counts, evaluation.label_names))


def _print_json(parameter: str, evaluation: _Evaluation) -> None:
    summary = _summary(evaluation.scores)
    result = [
        {
            parameter: value,
            "measures": {
                name: {key: _finite(summary[name, value][key]) for key in ("mean", "std")}
                for name in DEFAULT_MEASURES
            },
            "labels": {
                label: {key: _finite(number) for key, number in row.items()}
                for label, row in report_of_counts(
                    counts, evaluation.label_names, output_dict=True
                ).items()
            },
        }
        for value, counts in evaluation.cells.items()
    ]
    print(json.dumps(result, indent=2))


def _finite(value: Any) -> Any:
    """JSON has no NaN."""
    return None if value != value else (int(value) if isinstance(value, int) else float(value))
