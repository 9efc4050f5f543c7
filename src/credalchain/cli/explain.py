"""``credalchain explain``."""

import json
from collections.abc import Iterable
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from credalchain._utils.text import visible
from credalchain.cli import options as o
from credalchain.cli.console import read_model, stdout
from credalchain.cli.predict import UnseenValues, features_for, infer_overrides, text_columns
from credalchain.cli.promise import check_picture, save_picture
from credalchain.cli.tables import load_table, shorten_names, split_names
from credalchain.explanation.explainer import explain as explain_row
from credalchain.explanation.result import Explanation, Step
from credalchain.labels import ABSTAIN, and_more

_MAX_LABELS = 20  # labels, if --labels does not say which
_MAX_QUESTIONS = 10
_BAR = 21  # characters from probability 0 to 1
_COLOURS = {1: "bold blue", 0: "bold dark_orange3", -1: "bold"}


@o.with_table_options
def explain(
    model: o.ModelFile,
    data: o.Data,
    row: Annotated[int, typer.Option(help="Which row of DATA, counted from 0.")] = 0,
    top: Annotated[int, typer.Option(min=0, help="Reasons, or training rows, shown.")] = 3,
    labels: Annotated[
        str,
        typer.Option(
            help="Which labels: names with commas between, or all. By default what is open and the "
            f"most certain of the others, {_MAX_LABELS} in all."
        ),
    ] = "",
    picture: Annotated[str, typer.Option(help="Also draw it: a .png, .svg or .pdf file.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="JSON in place of tables.")] = False,
    s: Annotated[float | None, typer.Option("--s", help="In place of the model's s.")] = None,
    reward: Annotated[float | None, typer.Option(help="In place of a joint model's.")] = None,
    strategy: Annotated[str | None, typer.Option(help="In place of the model's.")] = None,
) -> None:
    """Show why one row got its answers, and which question would settle what is open.

    Example: `credalchain explain songs.model new.csv --row 3 --picture why.png`
    """
    if picture:
        check_picture(picture)
    classifier = read_model(model)
    frame, _ = load_table(data, text_columns=text_columns(classifier))
    if not 0 <= row < len(frame):
        raise ValueError(f"--row must be between 0 and {len(frame) - 1}, got {row}.")
    features = features_for(classifier, frame, data)
    unseen = UnseenValues(classifier)
    unseen.count(features.iloc[[row]])
    unseen.report()
    chosen = infer_overrides(classifier, s=s, strategy=strategy, reward=reward)
    selection = _label_selection(labels, classifier.label_names_.tolist())
    explanation = explain_row(classifier, features.iloc[[row]], **chosen, **selection)
    if as_json:
        print(json.dumps(explanation.to_dict(), indent=2))
    else:
        _print(explanation, top, is_chosen=bool(labels))
    if picture:
        from credalchain.plotting import plot_explanation

        save_picture(plot_explanation(explanation, top=top), picture)


def _label_selection(spec: str, names: list[str]) -> dict[str, Any]:
    """What ``explain`` takes for ``--labels``."""
    if not spec:
        return {"max_labels": _MAX_LABELS}
    if spec == "all":
        return {"max_labels": None}
    wanted = [spec] if spec in names else split_names(spec, "--labels")
    missing = [name for name in wanted if name not in names]
    if missing:
        raise ValueError(
            f"--labels: there is no label {missing[0]!r}; the labels are {shorten_names(names)}."
        )
    return {"labels": wanted}


def _print(explanation: Explanation, top: int, *, is_chosen: bool) -> None:
    console = stdout()
    table = Table("label", "answer", "lower", "upper")
    table.add_column(f"0{'½'.center(_BAR - 2)}1", no_wrap=True, min_width=_BAR)
    has_reasons = any(step.reasons for step in explanation.steps)
    if has_reasons:
        table.add_column("reasons")
    steps: Iterable[Step] = explanation.steps
    is_cut = explanation.n_left_out > 0 and not is_chosen
    if is_cut:  # of many labels the open ones first, else the chain's order
        steps = sorted(steps, key=lambda step: step.answer != ABSTAIN)
    for step in steps:
        reasons = "\n".join(
            visible(f"{reason.lower:+.2f} to {reason.upper:+.2f}  {reason.name} {reason.value}")
            for reason in step.reasons[:top]
        )
        known = " (known)" if step.known else ""
        table.add_row(
            visible(step.label),
            Text.assemble((step.word, _COLOURS[step.answer]), known),
            f"{step.lower:.3f}",
            f"{step.upper:.3f}",
            _bar(step),
            *([reasons] if has_reasons else []),
        )
    console.print(f"{explanation.setting}; {explanation.about_reasons}")
    console.print(table)
    if is_cut:
        console.print(f"and {explanation.n_left_out} more: --labels all")
    for remark in explanation.remarks():
        console.print(remark)
    if explanation.similar and top:
        console.print(_similar_rows(explanation, top))
    questions = explanation.questions_in_words()
    for question in questions[:_MAX_QUESTIONS]:
        console.print(question)
    if len(questions) > _MAX_QUESTIONS:
        console.print(
            f"{and_more(_MAX_QUESTIONS, len(questions), 'answer')} that would settle others"
        )


def _similar_rows(explanation: Explanation, top: int) -> Table:
    table = Table("training row", "weight", "its labels", "in common")
    for similar in explanation.similar[:top]:
        shared = [visible(condition) for condition in similar.in_common[:3]]
        table.add_row(
            str(similar.row), f"{similar.weight:.3f}", similar.labels_as_text, "\n".join(shared)
        )
    return table


def _bar(step: Step) -> str:
    first, last = (round(p * (_BAR - 1)) for p in (step.lower, step.upper))
    middle = round(step.threshold * (_BAR - 1))
    if step.lower > step.threshold:  # what is settled does not touch the threshold
        first = max(first, middle + 1)
        last = max(last, first)
    if step.upper < step.threshold:
        last = min(last, middle - 1)
        first = min(first, last)
    cells = ["━" if first <= i <= last else "·" for i in range(_BAR)]
    cells[middle] = "╋" if first <= middle <= last else "┃"
    return "".join(cells)
