"""Answers in and out: tables, and the format of Label Studio."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from credalchain._utils.text import plural
from credalchain.labels import MISSING
from credalchain.review.rows import ReviewedRows, content_of, from_json
from credalchain.review.store import AnswerStore, RowKey, current_answers, standing

_QUESTION = "labels"  # as Label Studio names the choice of labels
_NOTES = "credalchain"


def people_answers(store: AnswerStore) -> pd.DataFrame:
    """Return every answer that stands: row, label, value, who, when, what the model had said."""
    records = []
    for (key, _), people in current_answers(store.events()).items():
        disagreement = len({event.value for event in people.values()}) > 1
        more = {"row_hash": key.hash, "occurrence": key.occurrence, "disagreement": disagreement}
        records += [vars(event) | more | {"row": event.row_number} for event in people.values()]
    columns = [
        "row", "row_hash", "occurrence", "label", "value", "who", "at", "suggested", "lower",
        "upper", "blind", "disagreement", "model",
    ]  # fmt: skip
    table = pd.DataFrame(records, columns=columns)
    return table.astype({"value": "Int64", "suggested": "Int64"}).sort_values(
        ["row", "label", "at"], ignore_index=True
    )


def training_rows(store: AnswerStore, label_names: Sequence[str]) -> pd.DataFrame:
    """Return the rows that people have answered, with their labels; empty where nobody has.

    Rows without any of these labels are left out. The index holds the rows' keys.
    """
    contents = store.rows()
    labels: dict[RowKey, dict[str, int | None]] = {}
    for (key, name), people in current_answers(store.events()).items():
        if name in label_names:
            *_, last = people.values()
            labels.setdefault(key, {})[name] = last.value
    table = from_json([contents[key] for key in labels])
    names = list(label_names)
    table[names] = pd.DataFrame(list(labels.values()), columns=names, dtype="Int64")
    return table.set_axis(pd.Index(list(labels), dtype=object), axis=0)


def blind_rows(store: AnswerStore, label_names: Sequence[str]) -> pd.DataFrame:
    """Return the labels of rows answered as a whole without suggestions; keys are the index.

    ``review --blind`` draws such rows at random, so they are as good for calibration as any.
    """
    labels: dict[RowKey, dict[str, int | None]] = {}
    for event in standing(store.events()):
        if event.kind == "answer" and event.blind:
            labels.setdefault(event.row, {}).setdefault(event.label, event.value)
    names = list(label_names)
    index = pd.Index(list(labels), dtype=object)
    rows = pd.DataFrame(list(labels.values()), index, names, dtype="Float64")
    return rows.dropna()


class AnsweredData(NamedTuple):
    """Training data with people's answers.

    ``original`` are the labels of the first rows without answers of people, except those that were
    given without suggestions; the rows after them were only reviewed. The others count: labels that
    were missing in rows of the data, labels that said otherwise, rows added, rows answered without
    suggestions.
    """

    X: pd.DataFrame
    Y: pd.DataFrame
    original: pd.DataFrame
    n_filled: int
    n_replaced: int
    n_added: int
    n_blind: int


def add_answers(
    X: pd.DataFrame, Y: pd.DataFrame, keys: Sequence[RowKey], store: AnswerStore
) -> AnsweredData:
    """Add people's answers to training data.

    ``keys`` are those of the rows of the data, with all its columns but the labels.
    """
    names = list(Y.columns)
    answered, blind = training_rows(store, names), blind_rows(store, names)
    missing = [name for name in X.columns if len(answered) and name not in answered.columns]
    if missing:
        raise ValueError(
            f"{store.path}: its rows lack {plural(len(missing), 'column')} of the data, such as "
            f"{missing[0]!r}."
        )
    Y = Y.astype("Float64")
    index = pd.Index(list(keys), dtype=object)
    original = Y.fillna(blind.reindex(index).set_axis(Y.index, axis=0))
    is_here = answered.index.isin(list(keys))
    given = answered[names].reindex(index).astype("Float64")
    given = given.set_axis(Y.index, axis=0)
    n_filled = int((given.notna() & Y.isna()).to_numpy().sum())
    n_replaced = int((given != Y).fillna(False).to_numpy().sum())
    Y = given.fillna(Y)
    new_rows = answered[~is_here]
    is_blind = new_rows.index.isin(blind.index)
    if len(new_rows):
        new_rows = pd.concat([new_rows[is_blind], new_rows[~is_blind]])
        new_blind = blind.reindex(new_rows.index[: is_blind.sum()])
        original = pd.concat([original, new_blind], ignore_index=True)
        types = {  # of columns that can hold what is added
            name: X[name].dtype
            for name in X.columns
            if X[name].dtype.kind in ("f" if new_rows[name].isna().any() else "fiub")
        }
        X = pd.concat([X, new_rows[list(X.columns)].astype(types)], ignore_index=True)
        Y = pd.concat([Y, new_rows[names].astype("Float64")], ignore_index=True)
    return AnsweredData(X, Y, original, n_filled, n_replaced, len(new_rows), len(blind))


# -- other tools --------------------------------------------------------------------------------

Annotation = tuple[int, dict[str, int], str]
"""Content of an annotation: the row, the labels and the annotator."""


def _row_of(notes: Any, rows: ReviewedRows) -> int | None:
    """Return the row that a task is about, by the exported notes in it."""
    given = notes.get("row") if isinstance(notes, dict) else None
    digest, _, nth = str(given).rpartition("-")
    place = rows.place(RowKey(digest, int(nth) if nth.isdigit() else -1), rows.label_names[0])
    return None if place is None else place[0]


def _annotated_labels(chosen: set[str], notes: Any, names: Sequence[str]) -> dict[str, int]:
    """Return what an annotation says of each label.

    An unchanged annotation counts only for the labels that had been answered at export.
    """
    unknown = sorted(chosen - set(names))
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not one of the labels {', '.join(names[:12])}.")
    asked = set(names)
    if isinstance(notes, dict) and chosen == set(notes.get("chosen") or ()):
        asked = set(notes.get("answered") or names)
    return {name: int(name in chosen) for name in names if name in asked}


def to_label_studio(rows: ReviewedRows) -> str:
    """Return tasks with the model's answers as predictions, and people's as annotations."""
    tasks, names = [], np.array(rows.label_names, dtype=object)
    for row, key in enumerate(rows.keys):
        person = rows.human_labels[row]
        notes = {  # read on import: the row, and what people had answered
            "row": f"{key.hash}-{key.occurrence}",
            "answered": names[person != MISSING].tolist(),
            "chosen": names[person == 1].tolist(),
        }
        suggested = _choices(names[rows.labels[row] == 1].tolist())
        task: dict[str, Any] = {
            "data": {**content_of(rows.table, row), _NOTES: notes},
            "predictions": [{"model_version": rows.model_digest[:12], "result": suggested}],
        }
        if notes["answered"]:
            task["annotations"] = [{"result": _choices(notes["chosen"])}]
        tasks.append(task)
    return json.dumps(tasks, indent=1, ensure_ascii=False)


def _choices(chosen: list[str]) -> list[dict[str, Any]]:
    value = {"choices": chosen}
    return [{"from_name": _QUESTION, "to_name": "row", "type": "choices", "value": value}]


def read_label_studio(text: str, rows: ReviewedRows) -> Iterator[Annotation]:
    """Yield what annotations of tasks say."""
    try:
        tasks = json.loads(text)
    except ValueError as error:
        raise ValueError(f"the file must be JSON, as Label Studio exports it: {error}") from error
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise ValueError("a file of Label Studio must be a list of objects.")
    for number, task in enumerate(tasks):
        notes = (task.get("data") or {}).get(_NOTES)
        for annotation in task.get("annotations") or []:
            results = [result for result in annotation.get("result") or [] if "value" in result]
            found = [result["value"].get("choices") for result in results]
            choices = [names for names in found if names is not None]
            if choices and not annotation.get("was_cancelled"):
                who = annotation.get("completed_by") or "label studio"
                who = who.get("email", "label studio") if isinstance(who, dict) else who
                chosen = {name for names in choices for name in names}
                row = _row_of(notes, rows)
                if row is None:
                    raise ValueError(
                        f"task {number} is none of the rows of the data: tasks must be those that "
                        "review export has written."
                    )
                yield row, _annotated_labels(chosen, notes, rows.label_names), str(who)
