"""``credalchain tune`` and ``credalchain check``: promises about errors."""

from typing import Any

import numpy as np
import pandas as pd
import typer

from credalchain._utils.text import plural
from credalchain._utils.validation import check_choice
from credalchain.cli import console, tables
from credalchain.cli import options as o
from credalchain.datasets.files import read_label_words
from credalchain.labels import as_labels
from credalchain.metrics import completeness, selective_error, set_accuracy
from credalchain.model_files import read_about
from credalchain.model_selection import unwrap
from credalchain.promises.caution import LEVELS, PromiseCurve, promise_curve
from credalchain.promises.classifier import PromisedClassifier
from credalchain.promises.report import promise_words
from credalchain.promises.risks import RISKS

_RISKS = ", ".join(name.replace("_", "-") for name in RISKS)


def read_promise(texts: list[str]) -> dict[str, Any]:
    """Read ``row-error=0.1``, or ``row-error:toxic=0.01`` for one label, as a dict."""
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
        try:
            value = float(level.strip().rstrip("%")) / (100 if level.strip().endswith("%") else 1)
        except ValueError:
            raise ValueError(f"--promise: the level must be a number, got {text!r}.") from None
        levels = promise.setdefault(name, {})
        key = label if colon else None
        if key in levels:
            raise ValueError(f"--promise: {about} is promised twice.")
        levels[key] = value
    return {
        name: levels[None] if [*levels] == [None] else levels for name, levels in promise.items()
    }


@o.with_options
def tune(
    data: str,
    *,
    risk: str = "row-error",
    levels: str = ",".join(map(str, LEVELS)),
    confidence: float | None = None,
    calibration: float = o.CALIBRATION,
    picture: str = "",
    json: bool = False,
    table: tables.LearningOptions,
    options: o.ClassifierOptions,
) -> None:
    """Show how many labels are answered at each level of a promised risk.

    Example: `credalchain tune songs.csv --labels last:6 --picture tune.png`

    Parameters
    ----------
    risk
        Risk to promise: row-error, selective-error, positive-error or missed-positives.
    levels
        Bounds on the risk, separated by commas.
    """
    name = check_choice("--risk", risk.replace("-", "_"), tuple(RISKS))
    wanted = np.atleast_1d(o.parse_numbers(levels, "--levels")).tolist()
    if picture:
        console.check_picture(picture)
    classifier = o.build_classifier(options, over_scores=bool(table.scores), risks=[name])
    X, Y = table.read(data)
    X, features, group_of = table.features(X, Y)
    console.note(f"fitting {options.method} to {1 - calibration:.0%} of {plural(len(X), 'row')}")
    with o.forest_cache():
        curve = promise_curve(
            o.build_model(classifier, features, options),
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
        console.note(f"note: {line}")
    if json:
        console.print_json(curve.to_frame().to_dict("records"))
    else:
        _print_levels(curve)
    if picture:
        from credalchain.plotting import plot_promise_curve

        console.save_picture(plot_promise_curve(curve).figure, picture)


def _print_levels(curve: PromiseCurve) -> None:
    rows = []
    for level, value, share, found, risk, needed in curve.to_frame().itertuples(index=False):
        seen = ["nothing", "", "", ""]
        if np.isfinite(value):
            seen = [f"{share:.1%}", f"{found:.1%}", f"{risk:.3f}", f"{value:.4g}"]
        rows.append((f"{level:g}", *seen, str(needed)))
    how = "on average" if curve.confidence is None else f"with confidence {curve.confidence:g}"
    console.stdout().print(f"{promise_words(curve.risk, None)}, {how}")
    columns = "promised at most", "answered", "found", "seen", curve.parameter, "rows needed"
    console.print_table(columns, rows, n_words=0)
    console.stdout().print(
        f"in {plural(curve.n_rows, 'held-out row')}; found: of the true labels, those answered "
        "yes; rows needed: at least, without an error"
    )
    console.stdout().print("to keep one of them: credalchain fit ... --promise RISK=LEVEL")


@o.with_options
def check(
    model: str,
    data: str,
    *,
    confidence: float = 0.95,
    tags: str = "",
    tag_separator: str = ";",
    json: bool = False,
) -> None:
    """Test whether a model's promise holds on rows labelled since the fit.

    The oldest row comes first. Repeat the check whenever rows are added to the file, and pass all
    of them every time. For a model without a promise, print the share of labels answered and of
    right answers. Exit status 0: no promise is broken; 3: one is.

    Example: `credalchain check songs.model answered.csv`

    Parameters
    ----------
    confidence
        Probability that a promise that holds is never called broken.
    tags
        The column of tags, if the labels are in one column; see --tag-separator.
    tag_separator
        Separator of tags.
    """
    fitted = console.read_model(model)
    frame, _ = tables.load_table(data, text_columns=tables.text_columns(fitted))
    classifier, _ = unwrap(fitted)
    names = classifier.label_names_.tolist()
    if tags:
        column = frame[tables.pick_columns(frame, tags, "--tags")[0]]
        found_tags = tables.split_tags(column, tag_separator, names)
        _note_other_tags(found_tags, names, tag_separator)
        frame = frame.drop(columns=tags).join(found_tags.reindex(columns=names, fill_value=0))
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise ValueError(
            f"{data} lacks the labels {tables.shorten_names(absent)}, without which nothing is "
            "known (if they stand in a column of tags: --tags COLUMN)."
        )
    X = unwrap(fitted, tables.features_for(fitted, frame.drop(columns=names), data))[1]
    words_of_fit = read_about(model)["label_words"]
    Y = as_labels(read_label_words(frame[names], words_of_fit), require_zero=False)
    if isinstance(classifier, PromisedClassifier):
        result = classifier.check(X, Y, confidence=confidence)
        words, is_broken = str(result), result.verdict == "broken"
        facts: dict[str, Any] = {"verdict": result.verdict, "confidence": result.confidence}
        facts["promises"] = [
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
        ]
    else:
        prediction, is_broken = classifier.infer(X), False
        measures = (completeness, set_accuracy, selective_error)
        scores = {measure.__name__: float(measure(Y, prediction)) for measure in measures}
        facts = {**scores, "rows": len(Y)}
        words = (
            f"{scores['completeness']:.1%} of the labels answered in {plural(len(Y), 'row')}, "
            f"{scores['selective_error']:.1%} of the answers wrong, {scores['set_accuracy']:.1%} "
            "of the rows without a wrong one; nothing was promised (fit --promise)"
        )
    if json:
        console.print_json(facts)
    else:
        console.stdout().print(words, soft_wrap=True)
    if is_broken:
        raise typer.Exit(3)


def _note_other_tags(tags: pd.DataFrame, names: list[str], separator: str) -> None:
    """Note tags that the model does not know; raise a ValueError if most are such."""
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
    console.note(f"note: {message}, which count as nothing: {tables.shorten_names(unknown)}")
