"""``credalchain tune`` and ``credalchain check``: promises about errors."""

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from rich.table import Table

from credalchain._utils.files import check_folder, replacing
from credalchain._utils.text import plural
from credalchain._utils.validation import check_choice
from credalchain.cli import options as o
from credalchain.cli.console import note, read_model, stdout
from credalchain.cli.predict import features_for, text_columns
from credalchain.cli.tables import (
    load_table,
    pick_columns,
    read_labelled,
    shorten_names,
    split_tags,
    take_groups,
    usable_features,
)
from credalchain.datasets.label_words import read_label_words
from credalchain.labels import as_labels
from credalchain.metrics import completeness, selective_error, set_accuracy
from credalchain.promises.caution import LEVELS, PromiseCurve, promise_curve
from credalchain.promises.classifier import PromisedClassifier
from credalchain.promises.report import PromiseCheck, promise_words
from credalchain.promises.risks import RISKS

_RISKS = ", ".join(name.replace("_", "-") for name in RISKS)
_LEVELS = ",".join(map(str, LEVELS))


def read_promise(texts: list[str]) -> dict[str, Any]:
    """``row-error=0.1``, or ``row-error:toxic=0.01`` for one label, as a dict."""
    promise: dict[str, Any] = {}
    for text in texts:
        about, equals, level = text.rpartition("=")
        risk, colon, label = about.partition(":")
        name = risk.strip().replace("-", "_")
        if not equals or name not in RISKS:
            raise ValueError(
                f"--promise must be RISK=LEVEL or RISK:LABEL=LEVEL, with a risk out of {_RISKS}, "
                f"such as row-error=0.1, got {text!r}."
            )
        percent = level.strip().endswith("%")
        try:
            value = float(level.strip().rstrip("%")) / (100 if percent else 1)
        except ValueError:
            raise ValueError(f"--promise: the level must be a number, got {text!r}.") from None
        if not colon:
            if name in promise:
                raise ValueError(f"--promise: {risk} is promised twice.")
            promise[name] = value
            continue
        if not isinstance(promise.setdefault(name, {}), dict):
            raise ValueError(f"--promise: {risk} is promised for rows and for {label!r}.")
        if label in promise[name]:
            raise ValueError(f"--promise: {risk}:{label} is promised twice.")
        promise[name][label] = value
    return promise


def check_calibration(share: float) -> None:
    """The share of the rows that is kept apart."""
    if not 0 < share < 1:
        raise ValueError(f"--calibration must be a share between 0 and 1, got {share:g}.")


@o.with_table_options
@o.with_classifier_options
def tune(
    data: o.Data,
    labels: o.LabelsOption = None,
    ignore: o.Ignore = "",
    use: o.Use = "",
    tag_separator: o.TagSeparator = "",
    groups: o.Groups = "",
    case_sensitive: o.CaseSensitive = False,
    risk: Annotated[str, typer.Option(help=f"What is promised: {_RISKS}.")] = "row-error",
    levels: Annotated[
        str, typer.Option(help="What it may be at most, with commas between.")
    ] = _LEVELS,
    confidence: Annotated[
        float | None, typer.Option(help="That it is kept; without, it is kept on average.")
    ] = None,
    calibration: Annotated[
        float, typer.Option(help="Share of the rows that is kept apart to see errors.")
    ] = 0.3,
    picture: Annotated[str, typer.Option(help="Also draw it: a .png, .svg or .pdf file.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="JSON in place of a table.")] = False,
    *,
    options: o.ClassifierOptions,
) -> None:
    """Show what every promise would buy: how many labels are answered at each level of risk.

    Example: `credalchain tune songs.csv --labels last:6 --picture tune.png`
    """
    name = check_choice("--risk", risk.replace("-", "_"), tuple(RISKS))
    wanted = np.atleast_1d(o.parse_numbers(levels, "--levels")).tolist()
    if picture:
        check_picture(picture)
    check_calibration(calibration)
    classifier = o.build_classifier(options)
    X, Y = read_labelled(data, labels or [], ignore, tag_separator)
    X, group_of = take_groups(X, groups)
    X, Y = read_labelled(data, labels or [], ignore, tag_separator, case_sensitive=case_sensitive)
    X = usable_features(X, Y, use)
    note(f"fitting {options.method} to {1 - calibration:.0%} of {plural(len(X), 'row')}")
    curve = promise_curve(
        classifier,
        X,
        Y,
        name,
        wanted,
        confidence=confidence,
        calibration=calibration,
        random_state=options.seed,
        groups=group_of,
    )
    for line in curve.notes:
        note(f"note: {line}")
    if as_json:
        frame = curve.to_frame().astype(object)
        print(json.dumps(frame.where(frame.notna(), None).to_dict("records"), indent=2))
    else:
        _print_levels(curve)
    if picture:
        from credalchain.plotting import plot_promise_curve

        save_picture(plot_promise_curve(curve).figure, picture)


def _print_levels(curve: PromiseCurve) -> None:
    console = stdout()
    table = Table("promised at most", "answered", "seen", curve.parameter, "rows needed")
    for column in table.columns:
        column.justify = "right"
    for row in curve.to_frame().itertuples(index=False):
        level, value, completeness, risk, needed = row
        seen = ["nothing", "", ""]
        if np.isfinite(value):
            seen = [f"{completeness:.1%}", f"{risk:.3f}", f"{value:.4g}"]
        table.add_row(f"{level:g}", *seen, f"{needed}")
    how = "on average" if curve.confidence is None else f"with confidence {curve.confidence:g}"
    console.print(f"{promise_words(curve.risk, None)}, {how}")
    console.print(table)
    console.print(
        f"answered and seen: in {plural(curve.n_rows, 'row')} kept apart; rows needed: at least, "
        "without an error"
    )
    console.print("to keep one of them: credalchain fit ... --promise RISK=LEVEL")


def check_picture(picture: str) -> Path:
    """Where a picture goes; refuses what cannot be drawn before the work is done."""
    path = Path(picture)
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ValueError(f"--picture {picture}: the name must end in .png, .svg or .pdf.")
    check_folder(path)
    return path


def save_picture(figure: Any, picture: str) -> None:
    """Write a figure, whole or not at all."""
    path = check_picture(picture)
    with replacing(path) as file:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=130)
    note(f"picture -> {picture}")


@o.with_table_options
def check(
    model: o.ModelFile,
    data: o.Data,
    confidence: Annotated[
        float, typer.Option(help="That a promise that holds is not called broken.")
    ] = 0.95,
    tags: Annotated[
        str, typer.Option(help="The column of tags, if labels stand in one; see --tag-separator.")
    ] = "",
    tag_separator: Annotated[str, typer.Option(help="What stands between tags.")] = ";",
    as_json: Annotated[bool, typer.Option("--json", help="JSON in place of words.")] = False,
) -> None:
    """Say whether a model's promise still holds, on rows labelled since, the oldest first.

    It may be asked again whenever rows are added to the file: pass all of them every time. Of a
    model without a promise, how much it answers and how much of that is right. Exit status 0: no
    promise is broken; 3: one is.

    Example: `credalchain check songs.model answered.csv`
    """
    classifier = read_model(model)
    frame, _ = load_table(data, text_columns=text_columns(classifier))
    names = classifier.label_names_.tolist()
    if tags:
        column = frame[pick_columns(frame, tags, "--tags")[0]]
        found_tags = split_tags(column, tag_separator, names)
        _tell_of_other_tags(found_tags, names, tag_separator)
        frame = frame.drop(columns=tags).join(found_tags.reindex(columns=names, fill_value=0))
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise ValueError(
            f"{data} lacks the labels {shorten_names(absent)}, without which nothing is known (if "
            "they stand in a column of tags: --tags COLUMN)."
        )
    X = features_for(classifier, frame.drop(columns=names), data)
    Y = read_label_words(frame[names])
    if not isinstance(classifier, PromisedClassifier):
        _print_scores(as_labels(Y, require_zero=False), classifier.infer(X), as_json=as_json)
        return
    result = classifier.check(X, Y, confidence=confidence)
    if as_json:
        print(json.dumps(_as_dict(result), indent=2))
    else:
        stdout().print(str(result), soft_wrap=True)
    if result.verdict == "broken":
        raise typer.Exit(3)


def _tell_of_other_tags(tags: pd.DataFrame, names: list[str], separator: str) -> None:
    """Tags that the model does not know count as nothing; if most are such, something is wrong."""
    unknown = [tag for tag in tags.columns if tag not in names]
    if not unknown:
        return
    n_other, n_rows = (int((tags[some] == 1).any(axis=1).sum()) for some in (unknown, tags.columns))
    rows = f"{n_other} of {plural(n_rows, 'row')} with tags"
    message = f"tags that the model does not know in {rows}"
    if 2 * n_other > n_rows:
        raise ValueError(
            f"--tags: {message}, such as {unknown[0]!r}: does {separator!r} stand between tags "
            "(--tag-separator)?"
        )
    note(f"note: {message}, which count as nothing: {shorten_names(unknown)}")


def _print_scores(truth: Any, prediction: Any, *, as_json: bool) -> None:
    """How much is answered, and how much of that is right."""
    measures = (completeness, set_accuracy, selective_error)
    scores = {measure.__name__: float(measure(truth, prediction)) for measure in measures}
    if as_json:
        print(json.dumps({**scores, "rows": len(truth)}, indent=2))
        return
    stdout().print(
        f"{scores['completeness']:.1%} of the labels answered in {plural(len(truth), 'row')}, "
        f"{scores['selective_error']:.1%} of the answers wrong, {scores['set_accuracy']:.1%} of "
        "the rows without a wrong one; nothing was promised (fit --promise)",
        soft_wrap=True,
    )


def _as_dict(result: PromiseCheck) -> dict[str, Any]:
    return {
        "verdict": result.verdict,
        "confidence": result.confidence,
        "promises": [
            {
                "risk": test.promise.risk,
                "label": test.promise.label,
                "level": test.promise.level,
                "tested_against": test.promise.level_to_check,
                "verdict": test.verdict,
                "estimate": test.estimate,
                "rows": test.n_rows,
                "broken_at": test.broken_at,
                "evidence": float(test.evidence[-1]) if test.n_rows else 1.0,
            }
            for test in result.tests
        ],
    }
