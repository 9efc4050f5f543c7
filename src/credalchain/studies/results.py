"""Results on disk: one Parquet file per finished task, so that an interrupted run loses none."""

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

from credalchain._utils.files import atomic_write
from credalchain.datasets import DataFile, MultilabelDataset
from credalchain.datasets.registry import DATASETS
from credalchain.studies.study_file import Method, Study
from credalchain.studies.tasks import Task, expand

_STALE_SECONDS = 3600.0
PACKAGES = ("credalchain", "numpy", "scipy", "scikit-learn", "numba", "pandas")


class Store:
    """Folder of results.

    ``results/`` holds a file for every finished task, ``errors/`` one for every failed task
    (retried by the next run), and ``study.json`` the study that was run last.

    Parameters
    ----------
    folder : str or Path
        The folder, which need not exist.

    Attributes
    ----------
    folder : Path
        The folder, as an absolute path.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from credalchain.studies import Store, load_study
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "study.toml")
    ...     _ = file.write_text('''
    ... data = ["flags"]
    ... method = [{ name = "chain" }]
    ... ''')
    ...     study, store = load_study(file), Store(folder)
    ...     store.open(study)
    ...     store.study().name, store.n_open(study)
    ('study', 1)
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).absolute()  # workers may be in another directory
        self._results = self.folder / "results"
        self._errors = self.folder / "errors"

    def open(self, study: Study) -> None:
        """Create the folders, save the study and remove files that an interrupted run left.

        Parameters
        ----------
        study : Study
            The study to run.
        """
        for folder in (self._results, self._errors):
            folder.mkdir(parents=True, exist_ok=True)
            for litter in folder.glob(".*"):  # of a kill long ago; newer may be another run's
                if litter.is_file() and time.time() - litter.stat().st_mtime > _STALE_SECONDS:
                    litter.unlink(missing_ok=True)
        self._warn_about_changed_files(study)
        content = asdict(study, dict_factory=_without_folder)
        self._write_json(self.folder / "study.json", content)

    def _warn_about_changed_files(self, study: Study) -> None:
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
        """Return the study that was run last here.

        Returns
        -------
        Study
            The study, without allowed modules, since the folder may come from an untrusted source.

        Raises
        ------
        FileNotFoundError
            If the folder holds no run.
        """
        file = self.folder / "study.json"
        if not file.is_file():
            raise FileNotFoundError(f"{self.folder} is not the folder of a run: no study.json.")
        content = json.loads(file.read_text(encoding="utf-8"), object_hook=_with_tuples)
        content.pop("allow", None)  # a folder may come from anybody
        methods = tuple(Method(**method) for method in content.pop("methods"))
        sources = content.pop("data")
        data = tuple(one if isinstance(one, str) else DataFile(**one) for one in sources)
        return Study(methods=methods, data=data, **content)

    def save_facts(self, facts: list[dict[str, Any]]) -> None:
        """Write the facts that :meth:`facts` returns.

        Parameters
        ----------
        facts : list of dict
            Facts of each data set.
        """
        self._write_json(self.folder / "datasets.json", facts)

    def facts(self) -> list[dict[str, Any]]:
        """Return size and density of the data sets, as they were when the study ran.

        Returns
        -------
        list of dict
            Facts of each data set.
        """
        facts: list[dict[str, Any]] = json.loads((self.folder / "datasets.json").read_text())
        return facts

    def n_open(self, study: Study) -> int:
        """Return the number of tasks of a study that have no result.

        Parameters
        ----------
        study : Study
            The study.

        Returns
        -------
        int
            Number of tasks.
        """
        return sum(not self.is_done(task) for task in expand(study))

    def is_done(self, task: Task) -> bool:
        """Return whether a task has a result that can be read.

        Parameters
        ----------
        task : Task
            One repetition of one method on one data set.

        Returns
        -------
        bool
            True if its file holds records.
        """
        try:
            return int(parquet.read_metadata(self._result_file(task)).num_rows) > 0
        except (OSError, ValueError):
            return False

    def save(self, task: Task, records: Any) -> None:
        """Write the records of a finished task, whole or not at all.

        Parameters
        ----------
        task : Task
            The finished task.
        records : list of dict
            A record for each fold and value of caution.
        """
        frame = pd.DataFrame(records).assign(seed=task.study.seed, **software())
        with atomic_write(self._result_file(task)) as file:
            frame.to_parquet(file, index=False)
        about = _names(task)
        for file in self._errors.glob(f"{task.identity[:-12]}*.json"):  # of other settings too
            if about.items() <= json.loads(file.read_text(encoding="utf-8")).items():
                file.unlink(missing_ok=True)

    def save_error(self, task: Task, error: str) -> None:
        """Write why a task failed.

        Parameters
        ----------
        task : Task
            The task that failed.
        error : str
            The error, with its traceback.
        """
        self._write_json(self._error_file(task), {**_names(task), "error": error})

    def errors(self, study: Study) -> list[dict[str, Any]]:
        """Return the errors of the tasks of a study that are not done.

        Parameters
        ----------
        study : Study
            The study.

        Returns
        -------
        list of dict
            Data set, method, repetition and error of each.
        """
        files = (self._error_file(task) for task in expand(study))
        return [json.loads(file.read_text(encoding="utf-8")) for file in files if file.is_file()]

    def results(self, study: Study) -> pd.DataFrame:
        """Return all records of a study, in an order that does not depend on the run.

        Parameters
        ----------
        study : Study
            The study.

        Returns
        -------
        DataFrame
            A row for each fold and value of caution of each task.

        Raises
        ------
        ValueError
            If no task has a result yet.
        """
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
    def _write_json(path: Path, content: Any) -> None:
        with atomic_write(path) as file:
            file.write(json.dumps(content, indent=2).encode())


def _names(task: Task) -> dict[str, Any]:
    """Return what a task is called in results, whatever the settings of its method."""
    return {"dataset": task.dataset, "method": task.method.name, "repetition": task.repetition}


def _with_tuples(content: dict[str, Any]) -> dict[str, Any]:
    """Return the content with tuples, which a study has where JSON has lists."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in content.items()}


def _without_folder(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """Leave out folders: results say nothing about where files are on this machine."""
    return {name: value for name, value in fields if name != "folder"}


def dataset_facts(data: MultilabelDataset) -> dict[str, Any]:
    """Return what the paper's Table 2 says of a data set."""
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
    """Return the versions of what computes a result."""
    versions = {f"version_{name.replace('-', '_')}": version(name) for name in PACKAGES}
    return {"version_python": platform.python_version(), **versions}
