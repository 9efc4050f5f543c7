"""Results on disk: one Parquet file per finished task, so that a kill loses nothing done."""

import json
import platform
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from credalchain.experiments.study import Study
from credalchain.experiments.tasks import Task, expand
from credalchain.files import replacing

PACKAGES = ("credalchain", "numpy", "scipy", "scikit-learn", "numba", "pandas")


class Store:
    """A folder of results.

    ``results/`` holds a file for every finished task, ``errors/`` one for every task that failed
    (tried again by the next run), ``study.json`` what was run last.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._results = self.folder / "results"
        self._errors = self.folder / "errors"

    def open(self, study: Study) -> None:
        """Make the folders and write down the study. Leftovers of a kill are swept away."""
        for folder in (self._results, self._errors):
            folder.mkdir(parents=True, exist_ok=True)
            for litter in folder.glob(".*"):
                litter.unlink(missing_ok=True)
        self._write(self.folder / "study.json", json.dumps(asdict(study), indent=2).encode())

    def is_done(self, task: Task) -> bool:
        return self._result_file(task).is_file()

    def save(self, task: Task, records: list[dict[str, Any]]) -> None:
        """The records of a finished task, whole or not at all."""
        frame = pd.DataFrame(records).assign(seed=task.study.seed, **software())
        with replacing(self._result_file(task)) as file:
            frame.to_parquet(file, index=False)
        self._error_file(task).unlink(missing_ok=True)

    def save_error(self, task: Task, error: str) -> None:
        about = {"dataset": task.dataset, "method": task.method.name, "error": error}
        text = json.dumps({**about, "repetition": task.repetition}, indent=2)
        self._write(self._error_file(task), text.encode())

    def errors(self, study: Study) -> list[dict[str, Any]]:
        """What went wrong in the tasks of a study that are not done."""
        files = (self._error_file(task) for task in expand(study))
        return [json.loads(file.read_text(encoding="utf-8")) for file in files if file.is_file()]

    def results(self, study: Study) -> pd.DataFrame:
        """All records of a study that there are, in an order that does not depend on the run."""
        files = [self._result_file(task) for task in expand(study)]
        frames = [pd.read_parquet(file) for file in files if file.is_file()]
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


def software() -> dict[str, str]:
    """Versions of what computed a result."""
    versions = {f"version_{name.replace('-', '_')}": version(name) for name in PACKAGES}
    return {"version_python": platform.python_version(), **versions}
