"""Independent tasks of a study, and their seeds.

Seeds are derived from the purpose they serve, so adding work changes no other result.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.array_types import Labels
from credalchain._utils.text import for_file_name
from credalchain.datasets.corruption import CORRUPTIONS
from credalchain.datasets.registry import DataFile, DataSource, name_of
from credalchain.model_selection import row_groups, rows_of_groups
from credalchain.studies.study_file import Method, Study

Rows = NDArray[np.int64]

RESULTS_SCHEMA = 2  # part of every identity: a change of meaning starts anew
_LIMITS = ("max_labels", "max_training_rows")
_WORK = ("seed", "settings", "corruption", "levels", "folds", "measures", *_LIMITS)


@dataclass(frozen=True)
class Task:
    """One repetition of the cross-validation of one method on one data set."""

    study: Study
    data: DataSource
    method: Method
    repetition: int

    @cached_property
    def dataset(self) -> str:
        """The name of the data set, from which seeds and file names come."""
        return name_of(self.data)

    @cached_property
    def identity(self) -> str:
        """A name for the task's file: the same for the same work, another for any other."""
        about = {
            "schema": RESULTS_SCHEMA,
            "dataset": self.dataset,
            "method": asdict(self.method),
            "repetition": self.repetition,
            **{key: getattr(self.study, key) for key in _WORK},
        }
        if isinstance(self.data, DataFile):
            about["content"] = [self.data.sha256, *self.data.labels]
            if self.data.groups:
                about["groups"] = self.data.groups
        text = json.dumps(about, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        name = f"{self.dataset}-{self.method.name}-{self.repetition}"
        return f"{for_file_name(name)}-{digest}"


def expand(study: Study) -> Iterator[Task]:
    """Yield all tasks of a study; repetitions come first, so that early results cover all."""
    for repetition in range(study.repeats):
        for data in study.data:
            for method in study.methods:
                yield Task(study, data, method, repetition)


def seed_of(*identity: Any) -> np.random.SeedSequence:
    """Derive a seed from its purpose."""
    text = json.dumps(identity)
    return np.random.SeedSequence(int.from_bytes(hashlib.sha256(text.encode()).digest()[:16]))


def folds_of(study: Study, name: str, Y: Labels, repetition: int, groups: Any = None) -> list[Rows]:
    """Return the folds of a repetition: the same for every method. Groups are kept together."""
    rng = np.random.default_rng(seed_of(study.seed, "folds", name, repetition))
    group_of = np.arange(len(Y)) if groups is None else row_groups(Y, Y, groups)
    n_groups = int(group_of.max()) + 1
    if n_groups < study.folds:
        raise ValueError(f"{name} has {n_groups} groups, but folds is {study.folds}.")
    folds = np.array_split(rng.permutation(n_groups), study.folds)
    return [rows_of_groups(group_of, fold) for fold in folds]


def damaged_labels(study: Study, name: str, Y: Labels, repetition: int) -> list[Labels]:
    """Return the labels at every level of corruption: nested, the same for every method."""
    seed = seed_of(study.seed, "corruption", name, repetition)
    return [CORRUPTIONS[study.corruption](Y, level, seed) for level in study.levels]


def order_of(study: Study, name: str, repetition: int, fold: int, m: int) -> Rows:
    """Return the label order of a fold: the same for every method, level, strategy and s."""
    seed = seed_of(study.seed, "order", name, repetition, fold)
    return np.random.default_rng(seed).permutation(m)
