"""A study on a Dask cluster: the same results, also if a worker dies, and resumable."""

import os
import signal
import threading
import time

import pandas as pd
import pytest

from credalchain.experiments.cluster import Cluster
from credalchain.experiments.run import run_study
from credalchain.experiments.store import Store
from credalchain.experiments.study import load_study

pytest.importorskip("distributed", reason="distributed is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

STUDY = """
name = "small"
seed = 1
settings = "published"
data = ["embedded:yeast"]
measures = ["set_accuracy", "completeness"]

[cross_validation]
folds = 3
repeats = 2

[[method]]
name = "chain"
kind = "chain"
strategies = ["branching"]
s = [0.0, 1.0]
n_bins = 6

[[method]]
name = "forest"
kind = "estimator"
class = "credalchain.CredalJointForest"
s = [0.0, 1.0]

[method.params]
members = []
forest = { class = "sklearn.ensemble.ExtraTreesRegressor", n_estimators = 10, bootstrap = true }
"""


@pytest.fixture
def study(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY)
    return load_study(tmp_path / "study.toml")


def results(folder):
    """Without what depends on the clock."""
    files = sorted((folder / "results").iterdir())
    found = pd.concat([pd.read_parquet(file) for file in files], ignore_index=True)
    return found[[name for name in found if "seconds" not in name]]


def test_the_same_results_though_a_worker_dies(study, tmp_path):
    assert run_study(study, Store(tmp_path / "here"), n_jobs=1) == 0
    seen = []

    def kill(client):
        while len(seen) < 2:
            time.sleep(0.05)
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

    with Cluster(n_workers=2) as cluster:
        killing = threading.Thread(target=kill, args=(cluster._client,), daemon=True)
        killing.start()
        failed = run_study(
            study, Store(tmp_path / "there"), cluster=cluster, on_task=lambda p: seen.append(p)
        )
        killing.join()
        assert failed == 0
        next((tmp_path / "there" / "results").iterdir()).unlink()
        assert run_study(study, Store(tmp_path / "there"), cluster=cluster) == 0
    pd.testing.assert_frame_equal(results(tmp_path / "there"), results(tmp_path / "here"))


def test_a_worker_that_is_slow_to_start_again_is_not_given_up():
    import dask

    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 ms"}),
        Cluster(n_workers=1) as cluster,
    ):
        client = cluster._client
        (pid,) = client.run(os.getpid).values()
        os.kill(pid, signal.SIGKILL)
        while client.submit(os.getpid, pure=False).result(timeout=60) == pid:
            time.sleep(0.1)
        assert len(client.cluster.workers) == 1  # Dask takes it out when it gives it up


def test_a_scheduler_that_is_not_there(monkeypatch):
    monkeypatch.setattr("credalchain.experiments.cluster._SECONDS_TO_CONNECT", 1)
    with pytest.raises(ConnectionError, match="no scheduler of Dask answers at 'tcp://127"):
        Cluster("tcp://127.0.0.1:1").__enter__()
    with pytest.raises(ValueError, match="address of a scheduler or a number of workers"):
        Cluster()
