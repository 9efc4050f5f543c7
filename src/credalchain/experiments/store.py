"""Results on disk: one Parquet file per finished task, so that a kill loses nothing done."""

import json
import platform
import time
import warnings
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
from pyarrow import parquet

from credalchain._utils.files import replacing
from credalchain.datasets import DataFile, MultilabelDataset
from credalchain.datasets.registry import DATASETS
from credalchain.experiments.study import Method, Study
from credalchain.experiments.tasks import Task, expand

_STALE_SECONDS = 3600.0
PACKAGES = ("credalchain", "numpy", "scipy", "scikit-learn", "numba", "pandas")


class Store:
    """A folder of results.

    ``results/`` holds a file for every finished task, ``errors/`` one for every task that failed
    (tried again by the next run), ``study.json`` what was run last.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).absolute()  # workers may be in another directory
        self._results = self.folder / "results"
        self._errors = self.folder / "errors"

    def open(self, study: Study) -> None:
        """Make the folders and write down the study. Leftovers of a kill are swept away."""
        for folder in (self._results, self._errors):
            folder.mkdir(parents=True, exist_ok=True)
            for litter in folder.glob(".*"):  # of a kill long ago; newer may be another run's
                if litter.is_file() and time.time() - litter.stat().st_mtime > _STALE_SECONDS:
                    litter.unlink(missing_ok=True)
        self._warn_of_changed_files(study)
        content = asdict(study, dict_factory=_without_folder)
        self._write(self.folder / "study.json", json.dumps(content, indent=2).encode())

    def _warn_of_changed_files(self, study: Study) -> None:
        try:
            last = self.study().data
        except (OSError, ValueError, LookupError, TypeError):  # none, or not one of this version
            return
        digests = {data.name: data.sha256 for data in last if isinstance(data, DataFile)}
        for data in study.data:
            if isinstance(data, DataFile) and digests.get(data.name, data.sha256) != data.sha256:
                warnings.warn(
                    f"{data.file} has changed since the last run in {self.folder}: its tasks "
                    "run again, from the beginning.",
                    stacklevel=3,
                )

    def study(self) -> Study:
        """The study that was run last in this folder, without the modules that were allowed."""
        file = self.folder / "study.json"
        if not file.is_file():
            raise FileNotFoundError(f"{self.folder} is not the folder of a run: no study.json.")
        content = json.loads(file.read_text(encoding="utf-8"))
        content.pop("allow", None)  # a folder may come from anybody
        methods = tuple(Method(**_with_tuples(method)) for method in content.pop("methods"))
        data = tuple(
            source if isinstance(source, str) else DataFile(**_with_tuples(source))
            for source in content.pop("data")
        )
        return Study(methods=methods, data=data, **_with_tuples(content))

    def save_facts(self, facts: list[dict[str, Any]]) -> None:
        """Write what :meth:`facts` reads."""
        self._write(self.folder / "datasets.json", json.dumps(facts, indent=2).encode())

    def facts(self) -> list[dict[str, Any]]:
        """Size and density of the data sets, as they were when the study ran."""
        facts: list[dict[str, Any]] = json.loads((self.folder / "datasets.json").read_text())
        return facts

    def n_open(self, study: Study) -> int:
        """Tasks of a study that have no result."""
        return sum(not self.is_done(task) for task in expand(study))

    def is_done(self, task: Task) -> bool:
        """Whether there is a result, and one that can be read."""
        file = self._result_file(task)
        if not file.is_file():
            return False
        try:
            return int(parquet.read_metadata(file).num_rows) > 0
        except (OSError, ValueError):
            return False

    def save(self, task: Task, records: list[dict[str, Any]]) -> None:
        """The records of a finished task, whole or not at all."""
        frame = pd.DataFrame(records).assign(seed=task.study.seed, **software())
        with replacing(self._result_file(task)) as file:
            frame.to_parquet(file, index=False)
        about = _names(task)
        for error_file in self._errors.glob(
            f"{task.identity[:-12]}*.json"
        ):  # of other settings too
            if about.items() <= json.loads(error_file.read_text(encoding="utf-8")).items():
                error_file.unlink(missing_ok=True)

    def save_error(self, task: Task, error: str) -> None:
        """Write why a task failed."""
        text = json.dumps({**_names(task), "error": error}, indent=2)
        self._write(self._error_file(task), text.encode())

    def errors(self, study: Study) -> list[dict[str, Any]]:
        """What went wrong in the tasks of a study that are not done."""
        files = (self._error_file(task) for task in expand(study))
        return [json.loads(file.read_text(encoding="utf-8")) for file in files if file.is_file()]

    def results(self, study: Study) -> pd.DataFrame:
        """All records of a study that there are, in an order that does not depend on the run."""
        done = [self._result_file(task) for task in expand(study) if self.is_done(task)]
        frames = [pd.read_parquet(file) for file in done]
        if not frames:
            raise ValueError(f"{self.folder} holds no results of the study {study.name!r} yet.")
        return pd.concat(frames, ignore_index=True)

    def _result_file(self, task: Task) -> Path:
        return self._results / f"{task.identity}.parquet"

    def _error_file(self, task: Task) -> Path:
        return self._errors / f"{task.identity}.json"

    @staticmethod
    def _write(path: Path, content: bytes) -> None:
        with replacing(path) as file:
            file.write(content)


def _names(task: Task) -> dict[str, Any]:
    """What a task is for whoever reads results, whatever the settings of its method."""
    return {"dataset": task.dataset, "method": task.method.name, "repetition": task.repetition}


def _with_tuples(content: dict[str, Any]) -> dict[str, Any]:
    """JSON has lists where a study has tuples."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in content.items()}


def _without_folder(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """A folder of results says nothing about where files are on this machine."""
    return {name: value for name, value in fields if name != "folder"}


def dataset_facts(data: MultilabelDataset) -> dict[str, Any]:
    """What the paper's Table 2 says of a data set."""
    return {
        "dataset": data.name,
        "domain": DATASETS[data.name].domain if data.name in DATASETS else "",
        "features": data.X.shape[1],
        "labels": data.labels.shape[1],
        "rows": data.labels.shape[0],
        "cardinality": data.cardinality,
        "density": data.density,
    }


@cache
def software() -> dict[str, str]:
    """Versions of what computed a result."""
    versions = {f"version_{name.replace('-', '_')}": version(name) for name in PACKAGES}
    return {"version_python": platform.python_version(), **versions}
