"""The work of a study in independent pieces, each with an identity and seeds of its own."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from credalchain._utils.text import for_file_name
from credalchain.datasets.registry import DataFile, DataSource, name_of
from credalchain.experiments.study import Method, Study

RESULTS_SCHEMA = 1  # part of every identity: a change of meaning starts anew


@dataclass(frozen=True)
class Task:
    """One repetition of the cross-validation of one method on one data set."""

    study: Study
    data: DataSource
    method: Method
    repetition: int

    @property
    def dataset(self) -> str:
        """The name of the data set, from which seeds and file names come."""
        return name_of(self.data)

    @property
    def identity(self) -> str:
        """A name for the task's file: the same for the same work, another for any other."""
        study = asdict(self.study)
        about = {
            "schema": RESULTS_SCHEMA,
            "dataset": self.dataset,
            "method": asdict(self.method),
            "repetition": self.repetition,
            **{key: study[key] for key in _WORK},
        }
        if isinstance(self.data, DataFile):
            about["content"] = [self.data.sha256, *self.data.labels]
            if self.data.groups:
                about["groups"] = self.data.groups
        text = json.dumps(about, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        name = f"{self.dataset}-{self.method.name}-{self.repetition}"
        return f"{for_file_name(name)}-{digest}"


_WORK = ("seed", "settings", "corruption", "levels", "folds", "split", "measures")


def expand(study: Study) -> Iterator[Task]:
    """All tasks of a study. Repetitions come first, so that early results cover everything."""
    for repetition in range(study.repeats):
        for data in study.data:
            for method in study.methods:
                yield Task(study, data, method, repetition)


def seed_of(*identity: Any) -> np.random.SeedSequence:
    """A seed from what it is for, so that adding work disturbs no other work."""
    text = json.dumps(identity)
    return np.random.SeedSequence(int.from_bytes(hashlib.sha256(text.encode()).digest()[:16]))
