"""``credalchain predict`` and ``credalchain explain``: answers for new rows."""

from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from credalchain._utils.array_types import FloatArray
from credalchain._utils.text import plural
from credalchain.chunks.sources import naming_chunk_in_errors
from credalchain.cli import console, tables
from credalchain.cli import options as o
from credalchain.datasets.files import read_label_words
from credalchain.explanation.explainer import explain as explain_row
from credalchain.model_files import read_about
from credalchain.model_selection import unwrap
from credalchain.prediction import NEARLY_NOTHING
from credalchain.promises.classifier import PromisedClassifier

_PRECISE_WIDTH = 1e-9  # width of an interval that is due to rounding
_ENOUGH_ROWS, _CLEARLY_OTHER = 50, 0.15  # to notice that rows are of another kind
_MAX_LABELS = 20  # that are explained, if --labels does not say which


@o.with_options
def predict(
    model: str,
    data: str,
    *,
    out: str,
    intervals: bool = False,
    known: str = "",
    keep: str = "",
    s: float | None = None,
    reward: float | None = None,
    strategy: str | None = None,
    threshold: str | None = None,
    jobs: int = 1,
) -> None:
    """Predict the labels of new rows: 1, 0, or * for a label left open.

    Example: `credalchain predict songs.model new.csv --out answers.csv --intervals`

    Parameters
    ----------
    out
        File to write the answers to: .csv, .tsv, .parquet, or - (CSV on stdout).
    intervals
        Add lower and upper probabilities.
    known
        Label columns of DATA that are answered already, or all.
    keep
        Columns of DATA to copy, such as row names.
    threshold
        Override the model's threshold.
    """
    tables.check_output_path(out, model, data)
    fitted = console.read_model(model)
    classifier, _ = unwrap(fitted)
    chosen = _infer_overrides(
        classifier, s=s, strategy=strategy, reward=reward, threshold=threshold
    )
    for inner in tables.inner_classifiers(classifier):
        inner.set_params(n_jobs=jobs)
        if threshold is not None:
            inner.set_params(threshold=o.parse_numbers(threshold, "--threshold"))
    labels = classifier.label_names_.tolist()
    words_of_fit = read_about(model)["label_words"]
    n_rows, n_yes, all_precise = 0, 0, True
    answered = np.zeros(len(labels), dtype=np.int64)  # rows, for each label
    with tables.table_writer(out) as append:
        for name, frame in tables.read_rows(data, tables.text_columns(fitted)):
            if len(frame) == 0:
                continue
            with naming_chunk_in_errors(name):
                features = tables.features_for(fitted, frame, name or data)
                known_columns = [name for name in labels if name in frame.columns]
                if known != "all":
                    known_columns = tables.pick_names(known_columns, known, "--known", "label")
                kept = tables.pick_columns(frame, keep, "--keep")
                extra = [c for c in frame.columns if c not in {*features.columns, *labels, *kept}]
                if extra and n_rows == 0:
                    some = ", ".join(map(repr, extra[:8]))
                    console.note(f"note: columns that the model does not know are ignored: {some}")
                cells, known_labels = frame[known_columns], None
                if known_columns:
                    known_labels = read_label_words(cells.mask(cells == "*"), words_of_fit)
                _, read = unwrap(fitted, features)
                prediction = classifier.infer(read, known=known_labels, **chosen)
                table = prediction.to_frame(intervals=intervals).reset_index(drop=True).round(6)
                table[labels] = prediction.to_strings().astype(object)
                clash = sorted(set(table.columns) & set(kept))
                if clash:
                    raise ValueError(f"--keep: {clash[0]!r} is a column of the answers.")
                append(pd.concat([frame[kept].reset_index(drop=True), table], axis=1))
            n_rows += len(frame)
            answered += (~prediction.abstained).sum(axis=0)
            n_yes += int((prediction.labels == 1).sum())
            widths = np.ptp(prediction.interval, axis=-1)
            all_precise &= bool(widths.max(initial=0.0) < _PRECISE_WIDTH)
    shares, n_answered = answered / n_rows, int(answered.sum())
    _advise(shares, n_rows, classifier)
    if intervals and all_precise:
        console.note(
            "note: lower and upper are the same: this model gives single probabilities (with "
            "intervals: fit --method chain, or JointDecision(bounds='credal') in Python)"
        )
    answers = f"{shares.mean():.1%} of {plural(len(labels), 'label')} answered"
    console.note(
        f"{plural(n_rows, 'row')}, {answers} ({n_yes} yes, {n_answered - n_yes} no) -> {out}"
    )


def _advise(shares: FloatArray, n_rows: int, classifier: Any) -> None:
    """Note what to do if nearly nothing, or everything, is answered."""
    share = shares.mean()
    if isinstance(classifier, PromisedClassifier):
        seen = classifier.report_.completeness
        share = shares[~np.isin(classifier.label_names_, classifier.report_.constant)].mean()
        if n_rows >= _ENOUGH_ROWS and abs(share - seen) > _CLEARLY_OTHER:
            console.note(
                f"note: {share:.0%} of the labels are answered, {seen:.0%} were in calibration. A "
                "promise holds for rows like those in calibration; check says whether it does here."
            )
        return
    words = ("smaller", "larger") if classifier.larger_is_more_cautious else ("larger", "smaller")
    bolder, more_cautious = (f"{word} --{classifier.caution_parameter}" for word in words)
    if share < NEARLY_NOTHING:
        console.note(
            f"note: nearly nothing is answered. Try a {bolder}, or fit with --answered 0.8, which "
            "finds it; credalchain tune shows what each caution answers."
        )
    elif share == 1:
        console.note(
            "note: everything is answered. To leave open what is doubtful, take a "
            f"{more_cautious}, or fit with --answered 0.8 or --promise."
        )


def _infer_overrides(classifier: Any, **options: Any) -> dict[str, Any]:
    """Return the arguments of ``infer`` that override the model's parameters."""
    known: tuple[str, ...] = ("s", "strategy", "threshold")
    why = "decides label by label; use --s"
    if isinstance(classifier, PromisedClassifier):
        known, why = (), "keeps a promise, which chose its caution"
    elif classifier.caution_parameter == "reward":
        known, why = ("reward",), "decides jointly; use --reward"
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name not in known:
            raise ValueError(f"--{name}: this model {why}.")
    return {name: value for name, value in given.items() if name != "threshold"}


@o.with_options
def explain(
    model: str,
    data: str,
    *,
    row: int = 0,
    top: Annotated[int, typer.Option(min=0)] = 3,
    labels: str = "",
    picture: str = "",
    json: bool = False,
    s: float | None = None,
    reward: float | None = None,
    strategy: str | None = None,
) -> None:
    """Explain the answers of one row, and what each open answer would settle.

    Example: `credalchain explain songs.model new.csv --row 3 --picture why.png`

    Parameters
    ----------
    row
        Number of the row in DATA, from 0.
    top
        Number of reasons, or of training rows, to show.
    labels
        Labels to explain: names separated by commas, or all. By default the open ones and the most
        certain of the others, 20 in all.
    """
    if picture:
        console.check_picture(picture)
    fitted = console.read_model(model)
    classifier, _ = unwrap(fitted)
    frame, features = tables.read_for_model(fitted, data)
    if not 0 <= row < len(frame):
        raise ValueError(f"--row must be between 0 and {len(frame) - 1}, got {row}.")
    features = features.iloc[[row]]
    chosen = _infer_overrides(classifier, s=s, strategy=strategy, reward=reward)
    names = classifier.label_names_.tolist()
    selection: dict[str, Any] = {"max_labels": None if labels == "all" else _MAX_LABELS}
    if labels not in ("", "all"):
        selection = {"labels": tables.pick_names(names, labels, "--labels", "label")}
    explanation = explain_row(fitted, features, **chosen, **selection)
    if json:
        console.print_json(explanation.to_dict())
    else:
        console.stdout().print(explanation.to_text(top), soft_wrap=True)
    if explanation.n_left_out and not labels:
        console.note("--labels all explains the others, too")
    if picture:
        from credalchain.plotting import plot_explanation

        console.save_picture(plot_explanation(explanation, top=top), picture)
