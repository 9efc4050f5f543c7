"""``credalchain predict``."""

from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from credalchain._utils.array_types import FloatArray
from credalchain._utils.text import plural
from credalchain.chunks.sources import errors_name_chunk
from credalchain.cli import options as o
from credalchain.cli.console import note, read_model
from credalchain.cli.stream import (
    is_chunked,
    is_large,
    read_chunks,
    table_writer,
    with_row_progress,
)
from credalchain.cli.tables import (
    load_table,
    pick_columns,
    pick_features,
    read_known,
    refuse_to_replace,
    shorten_names,
    write_table,
)
from credalchain.prediction import NEARLY_NOTHING, CredalPrediction
from credalchain.promises.classifier import PromisedClassifier

_PRECISE_WIDTH = 1e-9  # width of an interval that is due to rounding
_ENOUGH_ROWS, _CLEARLY_OTHER = 50, 0.15  # to notice that rows are of another kind


@o.with_table_options
def predict(
    model: o.ModelFile,
    data: o.Data,
    out: Annotated[str, typer.Option(help="Where answers go: .csv, .tsv, .parquet, or - (CSV).")],
    intervals: Annotated[bool, typer.Option(help="Add lower and upper probabilities.")] = False,
    known: Annotated[
        str, typer.Option(help="Label columns of DATA that are answered already, or all.")
    ] = "",
    keep: Annotated[str, typer.Option(help="Columns of DATA to copy, such as row names.")] = "",
    s: Annotated[float | None, typer.Option("--s", help="In place of the model's s.")] = None,
    reward: Annotated[float | None, typer.Option(help="In place of a joint model's.")] = None,
    strategy: Annotated[str | None, typer.Option(help="In place of the model's.")] = None,
    threshold: Annotated[str | None, typer.Option(help="In place of the model's.")] = None,
    jobs: o.Jobs = 1,
) -> None:
    """Answer the labels of new rows: 1, 0, or * for what is left open.

    Example: `credalchain predict songs.model new.csv --out answers.csv --intervals`
    """
    refuse_to_replace(out, model, data)
    classifier = read_model(model)
    for inner in inner_classifiers(classifier):
        inner.set_params(n_jobs=jobs)
    chosen = infer_overrides(classifier, s=s, strategy=strategy, reward=reward, threshold=threshold)
    if threshold is not None:
        inner_classifier(classifier).set_params(threshold=o.parse_numbers(threshold, "--threshold"))
    text_names = text_columns(classifier)
    labels = classifier.label_names_.tolist()
    n_rows, n_yes, all_precise = 0, 0, True
    answered = np.zeros(len(labels), dtype=np.int64)  # rows, for each label
    unseen = UnseenValues(classifier)

    def answer(frame: pd.DataFrame, source: str) -> pd.DataFrame:
        nonlocal n_rows, answered, n_yes, all_precise
        features = features_for(classifier, frame, source)
        known_columns = _known_columns(frame, known, labels)
        kept = pick_columns(frame, keep, "--keep")
        extra = [c for c in frame.columns if c not in {*features.columns, *labels, *kept}]
        if extra and n_rows == 0:
            few_of_them = ", ".join(map(repr, extra[:8]))
            note(f"note: columns that the model does not know are ignored: {few_of_them}")
        unseen.count(features)
        known_labels = read_known(frame, known_columns) if known_columns else None
        prediction = classifier.infer(features, known=known_labels, **chosen)
        n_rows += len(frame)
        answered = answered + (~prediction.abstained).sum(axis=0)
        n_yes += int((prediction.labels == 1).sum())
        all_precise &= bool(np.ptp(prediction.interval, axis=-1).max(initial=0.0) < _PRECISE_WIDTH)
        return _as_table(prediction, frame[kept], intervals)

    if is_chunked(data) or is_large(data):
        with table_writer(out) as append:
            for source, chunk in with_row_progress(read_chunks(data, text_names)):
                if len(chunk):
                    with errors_name_chunk(source):
                        _append_chunk(append, answer(chunk, source))
            if n_rows == 0:
                raise ValueError(f"{data} has no rows.")
    else:
        frame, _ = load_table(data, text_columns=text_names)
        write_table(answer(frame, data), out)
    shares, n_answered = answered / max(n_rows, 1), int(answered.sum())
    unseen.report()
    _advise(shares, n_rows, classifier)
    if intervals and all_precise:
        note(
            "note: lower and upper are the same: this model gives single probabilities (with "
            "intervals: fit --method chain, or JointDecision(bounds='credal') in Python)"
        )
    answers = f"{shares.mean():.1%} of {plural(len(labels), 'label')} answered"
    note(f"{plural(n_rows, 'row')}, {answers} ({n_yes} yes, {n_answered - n_yes} no) -> {out}")


def _advise(shares: FloatArray, n_rows: int, classifier: Any) -> None:
    """What to do if nearly nothing, or everything, is answered."""
    share = shares.mean()
    if isinstance(classifier, PromisedClassifier):
        seen = classifier.report_.completeness
        share = shares[~np.isin(classifier.label_names_, classifier.report_.constant)].mean()
        if n_rows >= _ENOUGH_ROWS and abs(share - seen) > _CLEARLY_OTHER:
            note(
                f"note: {share:.0%} of the labels are answered, {seen:.0%} were in calibration. A "
                "promise holds for rows like those in calibration; check says whether it does here."
            )
        return
    bolder = "smaller" if classifier.larger_is_more_cautious else "larger"
    more_cautious = "larger" if bolder == "smaller" else "smaller"
    parameter = classifier.caution_parameter
    if share < NEARLY_NOTHING:
        note(
            f"note: nearly nothing is answered. Try a {bolder} --{parameter}, or fit with "
            "--answered 0.8, which finds it; credalchain tune shows what each caution would buy."
        )
    elif share == 1:
        note(
            f"note: everything is answered. To leave open what is doubtful, take a {more_cautious} "
            f"--{parameter}, or fit with --answered 0.8 or --promise."
        )


def _append_chunk(append: Any, table: pd.DataFrame) -> None:
    try:
        append(table)
    except ValueError as error:  # a column of numbers that holds texts in this chunk
        raise ValueError(
            f"its --keep columns do not fit to those of the chunks before in Parquet ({error}); "
            "write a .csv."
        ) from error


def inner_classifiers(classifier: Any) -> list[Any]:
    """The classifiers that were fitted, below promises and joint decisions."""
    if hasattr(classifier, "model_"):
        return [classifier]
    estimators = getattr(classifier, "estimators", None)
    below = [classifier.estimator_] if estimators is None else estimators
    return [inner for estimator in below for inner in inner_classifiers(estimator)]


def inner_classifier(classifier: Any) -> Any:
    """One of them: they read the same columns."""
    return inner_classifiers(classifier)[0]


def infer_overrides(
    classifier: Any,
    *,
    s: float | None,
    strategy: str | None,
    reward: float | None,
    threshold: str | None = None,
) -> dict[str, Any]:
    """What ``infer`` is to use in place of the model's own; refuses what it does not have."""
    options = {"--s": s, "--strategy": strategy, "--reward": reward, "--threshold": threshold}
    given = [name for name, value in options.items() if value is not None]
    if isinstance(classifier, PromisedClassifier):
        if given:
            raise ValueError(f"{given[0]}: this model keeps a promise, which chose its caution.")
        return {}
    if classifier.caution_parameter == "reward":
        for name in given:
            if name != "--reward":
                raise ValueError(f"{name}: this model decides jointly; use --reward.")
        return {"reward": reward}
    if reward is not None:
        raise ValueError("--reward: this model decides label by label; use --s.")
    return {"s": s, "strategy": strategy}


def features_for(classifier: Any, frame: pd.DataFrame, source: str) -> Any:
    """The columns the model was fitted on; by position if it knows no names."""
    names = getattr(classifier, "feature_names_in_", None)
    if names is not None:
        return pick_features(frame, names.tolist(), source)
    return frame.set_axis(range(frame.shape[1]), axis=1)


def text_columns(classifier: Any) -> list[str]:
    """Columns that held words in fit: read as text, even if this file has only numbers there."""
    names = getattr(classifier, "feature_names_in_", None)
    columns = list(inner_classifier(classifier).model_.text_categories())
    return [] if names is None else names[columns].tolist()


class UnseenValues:
    """Texts that were not there in fit, told once for each column in the end."""

    def __init__(self, classifier: Any) -> None:
        self.categories = inner_classifier(classifier).model_.text_categories()
        self.found: dict[str, tuple[int, str]] = {}

    def count(self, features: pd.DataFrame) -> None:
        """Count the rows of some more of the table."""
        for i, categories in self.categories.items():
            column = features.iloc[:, i].dropna().astype(str)
            unseen = column[~column.isin(categories.keys)]
            if len(unseen):
                name = str(features.columns[i])
                before, example = self.found.get(name, (0, unseen.iloc[0]))
                self.found[name] = before + len(unseen), example

    def report(self) -> None:
        """One note a column."""
        for name, (n, example) in self.found.items():
            rows = "1 row holds a value" if n == 1 else f"{n} rows hold values"
            note(
                f"note: column {name!r}: {rows} never seen in fit, such as {example!r}; about them "
                "the model knows nothing, and may leave more open."
            )


def _known_columns(frame: pd.DataFrame, known: str, labels: list[str]) -> list[str]:
    if known == "all":
        return [name for name in labels if name in frame.columns]
    names = pick_columns(frame, known, "--known") if known else []
    unknown = [name for name in names if name not in labels]
    if unknown:
        raise ValueError(
            f"--known: {unknown[0]!r} is not one of the labels {shorten_names(labels)}."
        )
    return names


def _as_table(prediction: CredalPrediction, kept: pd.DataFrame, intervals: bool) -> pd.DataFrame:
    answers = prediction.to_strings()
    prediction.to_frame(intervals=intervals)  # refuses labels whose columns would clash
    columns: dict[str, Any] = {}
    for j, name in enumerate(prediction.label_names):
        columns[name] = answers[:, j].astype(object)
        if intervals:
            columns[f"{name}_lower"] = np.round(prediction.lower[:, j], 6)
            columns[f"{name}_upper"] = np.round(prediction.upper[:, j], 6)
    clash = set(columns) & set(kept.columns)
    if clash:
        raise ValueError(f"--keep: {sorted(clash)[0]!r} is a column of the answers.")
    return pd.concat([kept.reset_index(drop=True), pd.DataFrame(columns)], axis=1)
