"""Answers in and out: tables, and the formats of Label Studio and Argilla."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from credalchain.bases.protocol import Labels
from credalchain.labels import ABSTAIN, MISSING
from credalchain.review.rows import from_json, row_keys
from credalchain.review.store import AnswerStore, RowKey, StoredEvent, standing_answers

_QUESTION = "labels"  # as both formats name the choice of labels


def people_answers(store: AnswerStore) -> pd.DataFrame:
    """Every answer that stands: row, label, value, who, when, what the model had said."""
    rows = store.rows()
    records = []
    for (key, label), people in standing_answers(store.events()).items():
        values = {one.event.value for one in people.values()}
        for one in people.values():
            records.append(
                {
                    "row": rows[key][0],
                    "row_hash": key.hash,
                    "label": label,
                    "value": one.event.value,
                    "who": one.event.who,
                    "at": one.at,
                    "suggested": one.event.suggested,
                    "lower": one.event.lower,
                    "upper": one.event.upper,
                    "blind": one.event.blind,
                    "disagreement": len(values) > 1,
                    "model": one.model,
                }
            )
    columns = [
        "row", "row_hash", "label", "value", "who", "at", "suggested", "lower", "upper", "blind",
        "disagreement", "model",
    ]  # fmt: skip
    table = pd.DataFrame(records, columns=columns)
    return table.astype({"value": "Int64", "suggested": "Int64"}).sort_values(
        ["row", "label", "at"], ignore_index=True
    )


def last_answers(
    answers: Mapping[tuple[RowKey, str], Mapping[str, StoredEvent]],
    keys: Sequence[RowKey],
    label_names: Sequence[str],
) -> Labels:
    """What people have answered last, (n, m), -1 where nobody has."""
    found = np.full((len(keys), len(label_names)), MISSING, np.int8)
    row_of = {key: i for i, key in enumerate(keys)}
    place = {name: j for j, name in enumerate(label_names)}
    for (key, label), people in answers.items():
        if key in row_of and label in place and people:
            *_, last = people.values()
            assert last.event.value is not None
            found[row_of[key], place[label]] = last.event.value
    return found


def training_rows(store: AnswerStore, label_names: Sequence[str]) -> pd.DataFrame:
    """The rows that people have answered, with their labels; empty where nobody has."""
    rows = store.rows()
    answers = standing_answers(store.events())
    keys = list(dict.fromkeys(key for key, _ in answers))
    table = from_json([rows[key][1] for key in keys])
    labels = last_answers(answers, keys, label_names)
    for j, name in enumerate(label_names):
        column = pd.Series(labels[:, j], index=table.index, dtype="Int64")
        table[name] = column.mask(column == MISSING)
    return table


def add_answers(
    X: pd.DataFrame, Y: pd.DataFrame, store: AnswerStore
) -> tuple[pd.DataFrame, pd.DataFrame, int, int]:
    """Training data with people's answers: filled in where a row is there, else added.

    Returns
    -------
    X, Y : the data with the answers
    n_filled, n_added : int
        Labels that were set in rows of the data, and rows that were added to it.
    """
    names = list(Y.columns)
    new = training_rows(store, names)
    missing = [name for name in X.columns if len(new) and name not in new.columns]
    if missing:
        raise ValueError(
            f"{store.path}: its rows lack {len(missing)} columns of the data, such as "
            f"{missing[0]!r}."
        )
    if len(new) == 0:
        return X, Y, 0, 0
    here = {key: i for i, key in enumerate(row_keys(X))}
    Y = Y.astype("Float64").copy()
    n_filled, added = 0, []
    for at, key in enumerate(row_keys(new[list(X.columns)])):
        given = new.iloc[at][names]
        if key not in here:
            added.append(at)
            continue
        for name in given.index[given.notna()]:
            Y.iloc[here[key], names.index(name)] = float(given[name])
            n_filled += 1
    more = new.iloc[added]
    X = pd.concat([X, more[list(X.columns)].astype(_dtypes(X, more))], ignore_index=True)
    Y = pd.concat([Y, more[names].astype("Float64")], ignore_index=True)
    return X, Y, n_filled, len(added)


def _dtypes(X: pd.DataFrame, more: pd.DataFrame) -> dict[str, Any]:
    """The types of columns that can hold what is added."""
    return {
        name: X[name].dtype
        for name in X.columns
        if X[name].dtype.kind == "f" or (X[name].dtype.kind in "iub" and more[name].notna().all())
    }


# -- Label Studio ---------------------------------------------------------------------------------


def to_label_studio(
    contents: Sequence[Mapping[str, Any]],
    labels: Labels,
    person: Labels,
    names: Sequence[str],
    model: str,
) -> str:
    """Tasks with the model's answers as predictions, and people's as annotations."""
    tasks = []
    for i, content in enumerate(contents):
        task: dict[str, Any] = {
            "id": i,
            "data": dict(content),
            "predictions": [{"model_version": model, "result": _choices(labels[i], names)}],
        }
        if (person[i] != MISSING).any():
            task["annotations"] = [{"result": _choices(person[i], names)}]
            task["meta"] = {"answered": _answered(person[i], names)}
        tasks.append(task)
    return json.dumps(tasks, indent=1, ensure_ascii=False)


def _answered(person: Labels, names: Sequence[str]) -> list[str]:
    return [name for name, y in zip(names, person, strict=True) if y != MISSING]


def _choices(labels: Labels, names: Sequence[str]) -> list[dict[str, Any]]:
    chosen = [name for name, y in zip(names, labels, strict=True) if y == 1]
    return [
        {"from_name": _QUESTION, "to_name": "row", "type": "choices", "value": {"choices": chosen}}
    ]


def read_label_studio(text: str, names: Sequence[str]) -> list[tuple[int, dict[str, int], str]]:
    """Answers of each task: its number, labels and who.

    An annotation says of every label whether it was chosen, unless ``meta.answered`` names those
    that were asked.
    """
    found = []
    for place, task in enumerate(_list(text, "Label Studio")):
        asked = set(task.get("meta", {}).get("answered", names))
        for annotation in task.get("annotations", []):
            if annotation.get("was_cancelled"):
                continue
            chosen: set[str] = set()
            for result in annotation.get("result", []):
                chosen |= set(result.get("value", {}).get("choices", []))
            _check_names(chosen, names)
            values = {name: int(name in chosen) for name in names if name in asked}
            who = annotation.get("completed_by", "label studio")
            who = who.get("email", "label studio") if isinstance(who, dict) else who
            found.append((int(task.get("id", place)), values, str(who)))
    return found


# -- Argilla ------------------------------------------------------------------------------------


def to_argilla(
    contents: Sequence[Mapping[str, Any]],
    labels: Labels,
    person: Labels,
    names: Sequence[str],
    model: str,
) -> str:
    """Records with the model's answers as suggestions, and people's as responses."""
    records = []
    for i, content in enumerate(contents):
        yes = [name for name, y in zip(names, labels[i], strict=True) if y == 1]
        is_open = [name for name, y in zip(names, labels[i], strict=True) if y == ABSTAIN]
        record: dict[str, Any] = {
            "id": str(i),
            "fields": {key: "" if value is None else str(value) for key, value in content.items()},
            "metadata": {"left_open": is_open},
            "suggestions": {_QUESTION: {"value": yes, "agent": model}},
            "responses": {},
        }
        if (person[i] != MISSING).any():
            chosen = [name for name, y in zip(names, person[i], strict=True) if y == 1]
            record["metadata"]["answered"] = _answered(person[i], names)
            record["responses"] = {_QUESTION: [{"value": chosen, "user_id": "credalchain"}]}
        records.append(record)
    return json.dumps(records, indent=1, ensure_ascii=False)


def read_argilla(text: str, names: Sequence[str]) -> list[tuple[int, dict[str, int], str]]:
    """Answers of each record: its number, labels and who."""
    found = []
    for place, record in enumerate(_list(text, "Argilla")):
        asked = set((record.get("metadata") or {}).get("answered", names))
        for response in (record.get("responses") or {}).get(_QUESTION, []):
            chosen = set(response.get("value") or [])
            _check_names(chosen, names)
            values = {name: int(name in chosen) for name in names if name in asked}
            number = str(record.get("id", place))
            found.append(
                (int(number) if number.isdigit() else place, values, str(response.get("user_id")))
            )
    return found


def _list(text: str, what: str) -> list[Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"this is not JSON, as {what} writes it: {error}") from error
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise ValueError(f"a file of {what} must be a list of objects.")
    return found


def _check_names(chosen: set[str], names: Sequence[str]) -> None:
    strange = sorted(chosen - set(names))
    if strange:
        raise ValueError(f"{strange[0]!r} is not one of the labels {', '.join(names[:12])}.")
