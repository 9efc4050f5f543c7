"""``credalchain evaluate``."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import repeat
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold

from credalchain import metrics
from credalchain._utils.progress import track
from credalchain._utils.text import plural, table_size, with_spread
from credalchain.chains.interface import fitted_folds
from credalchain.chunks.sampling import row_hashes
from credalchain.cli import options as o
from credalchain.cli import tables
from credalchain.cli.console import note, print_json, print_table, stdout
from credalchain.labels import as_labels, both_answers_seen
from credalchain.metrics.report import report_of_counts
from credalchain.model_selection import group_folds, predict_along, row_groups, unwrap
from credalchain.prediction import NEARLY_NOTHING
from credalchain.promises.caution import MIN_ROWS, choose_cautions

_COMPLETENESS_SHOWN = (1.0, 0.9, 0.8, 0.6, 0.4)  # where nobody says how cautious
_CLEARLY_MORE = 0.01

Parts = Iterable[tuple[pd.DataFrame, pd.DataFrame]]
"""The rows on which a fold is tested, as features and labels."""


@o.with_options
def evaluate(
    data: str,
    *,
    folds: Annotated[int, typer.Option(min=2)] = 10,
    s: str = "",
    reward: str = "",
    summary: bool = False,
    json: bool = False,
    table: tables.LearningOptions,
    options: o.ClassifierOptions,
) -> None:
    """Cross-validate on a table: measures at several values of caution.

    Example: `credalchain evaluate songs.csv --labels last:6 --folds 5`

    Parameters
    ----------
    folds
        Folds of the cross-validation.
    s
        Chains: values of s, separated by commas; if not given, those that answer 100, 90, 80, 60
        and 40 % of the labels of some rows.
    reward
        Joint decisions: values of the reward, as for s.
    summary
        Print only the table of measures, no report per label.
    """
    parameter, text = ("reward", reward) if options.is_joint else ("s", s)
    values = np.atleast_1d(o.parse_numbers(text, f"--{parameter}")).tolist() if text else []
    classifier, given = o.build_classifier(options, over_scores=bool(table.scores)), None
    folded: Iterable[tuple[Any, Parts]]
    if tables.is_read_in_chunks(data, classifier, table.whole):
        chunks = tables.LabelledChunks(data, table)
        X, Y, features = chunks.sample(o.sample_size(options))
        n_rows = chunks.n_rows
        model = o.build_model(classifier, features, options)
        folded = _fold_chunks(model, chunks, X, Y, folds, options.seed)
        X, Y = X[tables.evenly_spaced_rows(len(X))], Y[tables.evenly_spaced_rows(len(Y))]
    else:
        X, Y = table.read(data)
        n_rows = len(X)
        X, features, given = table.features(X, Y)
        model = o.build_model(classifier, features, options)
        if len(X) < folds:
            raise ValueError(f"--folds must be at most the number of rows, {len(X)}.")
        group_of = row_groups(X, as_labels(Y, require_zero=False), given)
        n_groups = int(group_of.max()) + 1
        kind = "different rows (--groups none: each by itself)" if given is None else "groups"
        if n_groups < folds:
            raise ValueError(f"--folds must be at most {n_groups}: there are {n_groups} {kind}.")
        if n_groups < len(X):
            note(f"note: {len(X)} rows are {n_groups} {kind}, which folds keep together")
        splits = group_folds(group_of, KFold(folds, shuffle=True, random_state=options.seed))
        fitted = fitted_folds(repeat(model), X, Y, splits)
        folded = ((fold.estimator, [(fold.X, Y.iloc[fold.rows])]) for fold in fitted)
    if not values and len(X) < MIN_ROWS:
        values = [o.default_caution(classifier, Y.shape[1])]
    elif not values:
        chosen = choose_cautions(
            model, X, Y, _COMPLETENESS_SHOWN,
            n_rows=n_rows * (folds - 1) // folds, random_state=options.seed, groups=given,
        )  # fmt: skip
        values = [float(f"{choice.value:.3g}") for choice in chosen]
    note(f"{folds}-fold cross-validation: {table_size(n_rows, X.shape[1], Y.shape[1])}")
    counted = both_answers_seen(as_labels(Y, require_zero=False))
    scores, cells, reliability = _cross_validate(folded, counted, list(dict.fromkeys(values)))
    labels = list(Y.columns)
    if json:
        report = partial(report_of_counts, names=labels, output_dict=True)
        about = [(value, scores[value], report(counts)) for value, counts in cells.items()]
        keys = parameter, "measures", "labels"
        print_json([dict(zip(keys, one, strict=True)) for one in about])
    else:
        columns = ["measure", *(f"{parameter} = {value:g}" for value in cells)]
        rows = [
            (name, *(with_spread(**scores[value][name]) for value in cells))
            for name in metrics.DEFAULT_MEASURES
        ]
        print_table(columns, rows)
        stdout().print(f"mean ± standard deviation over {folds} folds")
        if not counted.all():
            n_counted = plural(int(counted.sum()), "label")
            stdout().print(f"completeness: of {n_counted}, without those that are constant")
        for value, counts in cells.items() if not summary else ():
            stdout().print(f"\n{parameter} = {value:g}")
            stdout().print(report_of_counts(counts, labels))
    _note_useless_caution(parameter, scores, reliability)


def _fold_chunks(
    model: Any, chunks: tables.LabelledChunks, X: Any, Y: Any, folds: int, seed: int
) -> Iterator[tuple[Any, Parts]]:
    """Yield a fitted model for each fold, and the rows on which it is tested.

    In constant memory: a row's fold is a hash of its number. What stands before the classifier is
    learned from the sampled rows (X, Y) that are not in the fold.
    """

    def fold_of_rows(first: int, n: int) -> NDArray[np.uint64]:
        offset = seed % 2**20 * 2**40  # other numbers for another seed
        return row_hashes(offset + first, n) % np.uint64(folds)

    def rows(fold: int, *, tested: bool) -> Iterator[Any]:
        first = 0
        for X, Y, name in chunks():
            chosen = (fold_of_rows(first, len(X)) == fold) == tested
            first += len(X)
            if chosen.any():
                yield X[chosen], Y[chosen], name

    n = chunks.n_rows
    if n < 100 * folds and len(np.unique(fold_of_rows(0, n))) < folds:
        raise ValueError(f"--folds {folds}: a fold would have no rows; the data has {n}.")
    fold_of_sample = np.array([fold_of_rows(number, 1)[0] for number in X.index])
    for fold in track(range(folds), "folds", folds):
        others, train = fold_of_sample != fold, partial(rows, fold, tested=False)
        fitted = tables.fit_chunks(clone(model), train, X[others], Y[others])
        yield fitted, ((X, Y) for X, Y, _ in rows(fold, tested=True))


Scores = dict[float, dict[str, Any]]
"""Mean and standard deviation over folds, by value of caution and measure."""


def _cross_validate(
    folded: Iterable[tuple[Any, Parts]], counted: NDArray[np.bool_], values: list[float]
) -> tuple[Scores, dict[float, Any], dict[float, metrics.IntervalReliability]]:
    """Evaluate folds; ``counted`` are the labels that count in completeness.

    Return scores, the counts of each label, and how intervals agree with the truth, for each
    value of caution.
    """
    scores: list[tuple[str, float, float]] = []
    cells: dict[float, Any] = {}
    reliability: dict[float, metrics.IntervalReliability] = {}
    every = slice(None)
    for fitted, parts in folded:
        tallies = defaultdict[tuple[str, float], list[metrics.Tally]](list)
        for X, labels in parts:
            final, Z = unwrap(fitted, X)
            path = predict_along(final, Z, values, metrics.DEFAULT_MEASURES)
            truth = as_labels(labels, require_zero=False)
            for value, answers, bounds in zip(values, path.labels, path.bounds, strict=True):
                found = metrics.interval_reliability(truth, bounds)
                reliability[value] = reliability[value] + found if value in reliability else found
                for kind, predicted, columns in (
                    ("partial", answers, every),
                    ("precise", path.precise, every),
                    ("bounds", metrics.resolved_labels(bounds), every),
                    ("completeness", answers, counted),
                ):
                    of_part = metrics.tally(truth[:, columns], np.asarray(predicted)[:, columns])
                    tallies[kind, value].append(of_part)
        pooled = {key: metrics.pooled(found) for key, found in tallies.items()}
        for value in values:
            counts = pooled["partial", value].by_label
            cells[value] = cells[value] + counts if value in cells else counts
        for name, measure in metrics.DEFAULT_MEASURES.items():
            assert measure.of_tally is not None  # as a test holds for all that are shown
            kind = name if name == "completeness" else measure.needs
            scores += [(name, v, float(measure.of_tally(pooled[kind, v]))) for v in values]
    frame = pd.DataFrame(scores, columns=["measure", "value", "score"])
    by_value: Any = {
        value: part.groupby("measure", sort=False)["score"].agg(["mean", "std"])
        for value, part in frame.groupby("value", sort=False)
    }
    summary = {value: table.to_dict("index") for value, table in by_value.items()}
    return summary, cells, reliability


def _note_useless_caution(
    parameter: str, scores: Scores, reliability: dict[float, metrics.IntervalReliability]
) -> None:
    """Print notes about caution that buys nothing."""
    answered = {value: of["completeness"]["mean"] for value, of in scores.items()}
    wrong = {value: of["selective_error"]["mean"] for value, of in scores.items()}
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
    for value, found in reliability.items():
        too_sure = found.overconfidence_note()
        if too_sure is not None:
            note(f"note: at {parameter} = {value:g} {too_sure}")
            break
