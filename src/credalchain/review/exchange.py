"""Answers in and out: tables, and the formats of Label Studio and Argilla."""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from credalchain._utils.array_types import Labels
from credalchain._utils.text import plural
from credalchain.labels import ABSTAIN, MISSING
from credalchain.review.rows import content_of, from_json, row_keys
from credalchain.review.session import ReviewSession
from credalchain.review.store import (
    VERSION,
    AnswerStore,
    RowKey,
    StoredReviewEvent,
    current_answers,
)

_QUESTION = "labels"  # as both formats name the choice of labels
_NOTES = "credalchain"


def people_answers(store: AnswerStore) -> pd.DataFrame:
    """Every answer that stands: row, label, value, who, when, what the model had said."""
    records = []
    for (key, label), people in current_answers(store.events()).items():
        values = {stored.event.value for stored in people.values()}
        for stored in people.values():
            records.append(
                {
                    "row": stored.row_number,
                    "row_hash": key.hash,
                    "occurrence": key.occurrence,
                    "label": label,
                    "value": stored.event.value,
                    "who": stored.event.who,
                    "at": stored.at,
                    "suggested": stored.event.suggested,
                    "lower": stored.event.lower,
                    "upper": stored.event.upper,
                    "blind": stored.event.blind,
                    "disagreement": len(values) > 1,
                    "model": stored.model,
                }
            )
    columns = [
        "row", "row_hash", "occurrence", "label", "value", "who", "at", "suggested", "lower",
        "upper", "blind", "disagreement", "model",
    ]  # fmt: skip
    table = pd.DataFrame(records, columns=columns)
    return table.astype({"value": "Int64", "suggested": "Int64"}).sort_values(
        ["row", "label", "at"], ignore_index=True
    )


def last_answers(
    answers: Mapping[tuple[RowKey, str], Mapping[str, StoredReviewEvent]],
    keys: Sequence[RowKey],
    label_names: Sequence[str],
) -> Labels:
    """What people have answered last, (n, m), -1 where nobody has."""
    labels = np.full((len(keys), len(label_names)), MISSING, np.int8)
    row_of = {key: i for i, key in enumerate(keys)}
    label_index = {name: j for j, name in enumerate(label_names)}
    for (key, label), people in answers.items():
        if key in row_of and label in label_index and people:
            *_, last = people.values()
            assert last.event.value is not None
            labels[row_of[key], label_index[label]] = last.event.value
    return labels


def training_rows(store: AnswerStore, label_names: Sequence[str]) -> pd.DataFrame:
    """The rows that people have answered, with their labels; empty where nobody has.

    Rows without any of these labels are left out. The index holds the rows' keys.
    """
    rows = store.rows()
    answers = current_answers(store.events())
    keys = list(
        dict.fromkeys(
            key for (key, name), people in answers.items() if people and name in label_names
        )
    )
    table = from_json([rows[key] for key in keys])
    labels = last_answers(answers, keys, label_names)
    for j, name in enumerate(label_names):
        column = pd.Series(labels[:, j], index=table.index, dtype="Int64")
        table[name] = column.mask(column == MISSING)
    return table.set_axis(pd.Index(keys, dtype=object), axis=0)


class AugmentedData(NamedTuple):
    """Training data with people's answers, and how many of what.

    Labels that were missing in rows of the data, labels that said otherwise, rows added.
    """

    X: pd.DataFrame
    Y: pd.DataFrame
    n_filled: int
    n_replaced: int
    n_rows: int


def add_answers(
    X: pd.DataFrame, Y: pd.DataFrame, keys: Sequence[RowKey], store: AnswerStore
) -> AugmentedData:
    """Training data with people's answers: filled in where the very row is there, else added.

    ``keys`` are those of the rows of the data, with all its columns but the labels.
    """
    names = list(Y.columns)
    answered = training_rows(store, names)
    missing = [name for name in X.columns if len(answered) and name not in answered.columns]
    if missing:
        raise ValueError(
            f"{store.path}: its rows lack {plural(len(missing), 'column')} of the data, such as "
            f"{missing[0]!r}."
        )
    row_of_key = {key: i for i, key in enumerate(keys)}
    Y = Y.astype("Float64")
    n_filled = n_replaced = 0
    for key in answered.index:
        if key not in row_of_key:
            continue
        for j, name in enumerate(names):
            value: Any = answered.at[key, name]
            before: Any = Y.iat[row_of_key[key], j]
            if pd.isna(value) or (not pd.isna(before) and before == value):
                continue
            n_filled, n_replaced = n_filled + pd.isna(before), n_replaced + (not pd.isna(before))
            Y.iat[row_of_key[key], j] = float(value)
    new_rows = answered[[key not in row_of_key for key in answered.index]]
    if len(new_rows) == 0:
        return AugmentedData(X, Y, int(n_filled), int(n_replaced), 0)
    types = _dtypes(X, new_rows)
    X = pd.concat([X, new_rows[list(X.columns)].astype(types)], ignore_index=True)
    Y = pd.concat([Y, new_rows[names].astype("Float64")], ignore_index=True)
    return AugmentedData(X, Y, int(n_filled), int(n_replaced), len(new_rows))


def _dtypes(X: pd.DataFrame, new_rows: pd.DataFrame) -> dict[str, Any]:
    """The types of columns that can hold what is added."""
    return {
        name: X[name].dtype
        for name in X.columns
        if X[name].dtype.kind == "f"
        or (X[name].dtype.kind in "iub" and new_rows[name].notna().all())
    }


# -- other tools --------------------------------------------------------------------------------

Annotation = tuple[int, dict[str, int], str]
"""What an annotation says: the row, the labels, and who."""


def _notes(session: ReviewSession, row: int) -> dict[str, Any]:
    """Notes in an exported task, read on import: the row, and what people had answered."""
    key, person = session.keys[row], session.human_labels[row]
    answered = [name for name, y in zip(session.label_names, person, strict=True) if y != MISSING]
    return {
        "row": f"{key.hash}-{key.occurrence}",
        "answered": answered,
        "chosen": _positive_names(person, session.label_names),
    }


def _positive_names(labels: Labels, names: Sequence[str]) -> list[str]:
    """The labels that are yes."""
    return [name for name, y in zip(names, labels, strict=True) if y == 1]


@lru_cache(maxsize=1)
def _rows_by_key(session: ReviewSession) -> dict[RowKey, int]:
    """Number the rows by their keys of any version: tasks may come from another file."""
    versions = [row_keys(session.table, version) for version in (1, VERSION)]
    return {key: row for keys in versions for row, key in enumerate(keys)}


def _row_of(notes: Any, content: Any, session: ReviewSession, task: int) -> int:
    """The row that a task is about: by the exported notes in it, or by its content."""
    row = None
    if isinstance(notes, dict) and "row" in notes:
        digest, _, nth = str(notes["row"]).rpartition("-")
        row = _rows_by_key(session).get(RowKey(digest, int(nth) if nth.isdigit() else -1))
    elif isinstance(content, dict) and content:
        columns = [name for name in session.table.columns if name in content]
        if columns:
            cells = pd.DataFrame([{name: content[name] for name in columns}])
            (asked,) = row_keys(cells, 1)  # other tools make text of numbers
            keys = row_keys(session.table[columns], 1)
            same = [i for i, key in enumerate(keys) if key.hash == asked.hash]
            row = same[0] if len(same) == 1 else None
    if row is None:
        raise ValueError(
            f"task {task} is none, or not a single one, of the rows of the data: tasks must be "
            "those that review export has written, or have the same cells."
        )
    return row


def _annotated_labels(chosen: set[str], notes: Any, names: Sequence[str]) -> dict[str, int]:
    """What an annotation says of each label.

    An unchanged annotation counts only for the labels that had been answered at export.
    """
    unknown = sorted(chosen - set(names))
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not one of the labels {', '.join(names[:12])}.")
    asked = set(names)
    if isinstance(notes, dict) and chosen == set(notes.get("chosen") or ()):
        asked = set(notes.get("answered") or names)
    return {name: int(name in chosen) for name in names if name in asked}


def to_label_studio(session: ReviewSession) -> str:
    """Tasks with the model's answers as predictions, and people's as annotations."""
    names, tasks = session.label_names, []
    for row in range(len(session.keys)):
        content = content_of(session.table, row)
        suggested = _choices(_positive_names(session.labels[row], names))
        task: dict[str, Any] = {
            "data": {**content, _NOTES: _notes(session, row)},
            "predictions": [{"model_version": session.model_digest[:12], "result": suggested}],
        }
        if (session.human_labels[row] != MISSING).any():
            task["annotations"] = [
                {"result": _choices(_positive_names(session.human_labels[row], names))}
            ]
        tasks.append(task)
    return json.dumps(tasks, indent=1, ensure_ascii=False)


def _choices(chosen: list[str]) -> list[dict[str, Any]]:
    value = {"choices": chosen}
    return [{"from_name": _QUESTION, "to_name": "row", "type": "choices", "value": value}]


def read_label_studio(text: str, session: ReviewSession) -> list[Annotation]:
    """What annotations of tasks say."""
    annotations: list[Annotation] = []
    for task_number, task in enumerate(_parse_records(text, "Label Studio")):
        content = task.get("data") or {}
        notes = content.get(_NOTES)
        for annotation in task.get("annotations") or []:
            results = [result for result in annotation.get("result") or [] if "value" in result]
            chosen = [result["value"].get("choices") for result in results]
            if annotation.get("was_cancelled") or not any(
                choices is not None for choices in chosen
            ):
                continue
            names = {name for choices in chosen if choices is not None for name in choices}
            who = annotation.get("completed_by") or "label studio"
            who = who.get("email", "label studio") if isinstance(who, dict) else who
            row = _row_of(notes, content, session, task_number)
            annotations.append(
                (row, _annotated_labels(names, notes, session.label_names), str(who))
            )
    return annotations


def to_argilla(session: ReviewSession) -> str:
    """Records with the model's answers as suggestions, and people's as responses."""
    names, records = session.label_names, []
    for row in range(len(session.keys)):
        content, labels = content_of(session.table, row), session.labels[row]
        is_open = [name for name, y in zip(names, labels, strict=True) if y == ABSTAIN]
        suggestion = {"value": _positive_names(labels, names), "agent": session.model_digest[:12]}
        record: dict[str, Any] = {
            "id": str(row),
            "fields": {key: "" if value is None else str(value) for key, value in content.items()},
            "metadata": {"left_open": is_open, _NOTES: json.dumps(_notes(session, row))},
            "suggestions": {_QUESTION: suggestion},
            "responses": {},
        }
        if (session.human_labels[row] != MISSING).any():
            chosen = _positive_names(session.human_labels[row], names)
            record["responses"] = {_QUESTION: [{"value": chosen, "user_id": "credalchain"}]}
        records.append(record)
    return json.dumps(records, indent=1, ensure_ascii=False)


def read_argilla(text: str, session: ReviewSession) -> list[Annotation]:
    """What responses to records say; those that were not submitted say nothing."""
    annotations: list[Annotation] = []
    for record_number, record in enumerate(_parse_records(text, "Argilla")):
        notes = (record.get("metadata") or {}).get(_NOTES)
        notes = json.loads(notes) if isinstance(notes, str) else notes
        for response in (record.get("responses") or {}).get(_QUESTION) or []:
            value = response.get("value")
            if value is None or response.get("status", "submitted") != "submitted":
                continue
            row = _row_of(notes, record.get("fields"), session, record_number)
            who = str(response.get("user_id") or "argilla")
            annotations.append(
                (row, _annotated_labels(set(value), notes, session.label_names), who)
            )
    return annotations


def _parse_records(text: str, what: str) -> list[Any]:
    try:
        records = json.loads(text)
    except ValueError as error:
        raise ValueError(f"this is not JSON, as {what} writes it: {error}") from error
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise ValueError(f"a file of {what} must be a list of objects.")
    return records
