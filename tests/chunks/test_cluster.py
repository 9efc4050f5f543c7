"""On real processes: the same bits for any number of workers, also if one of them dies."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor

from credalchain import CredalChainClassifier, CredalJointForest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.xdist_group("cluster"),
]

N, PARTS = 6000, 24


@pytest.fixture(autouse=True, scope="module")
def _dask():
    """Import it only where tests of this file run: every worker reads all files."""
    global distributed, dask, dd
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    dask = pytest.importorskip("dask")
    dd = pytest.importorskip("dask.dataframe")


@pytest.fixture(scope="module")
def client(_dask):
    options = {
        "distributed.scheduler.allowed-failures": 10,
        # of one worker that dies twice, the cluster would ask 15 s after its first death whether it
        # is back, and give it up if it has just died again
        "distributed.deploy.lost-worker-timeout": "1 hour",
    }
    with (
        dask.config.set(options),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(N, 4)), columns=list("abcd"))
    X["city"] = rng.choice(["Oslo", "Rome", "Bern"], N)
    X.loc[N - 1, "city"] = "Turin"
    Y = pd.DataFrame(
        (X[["a", "b"]].to_numpy() + rng.normal(size=(N, 2)) > 0).astype(float), columns=["x", "y"]
    ).mask(rng.random((N, 2)) < 0.1)
    folder = tmp_path_factory.mktemp("parts")
    whole = pd.concat([X, Y], axis=1)
    for at in range(0, N, N // PARTS):
        whole[at : at + N // PARTS].to_parquet(folder / f"{at:05}.parquet")
    return X, Y, folder


def slowly(part, seen):
    """Leave a file for each partition that was read, so that a worker is killed in between."""
    (Path(seen) / uuid.uuid4().hex).touch()
    time.sleep(0.05)
    return part


class Killed:
    """A table of slow partitions; while it is read, a worker dies as if its machine had failed."""

    def __init__(self, client, frame, seen):
        seen.mkdir()
        self.client, self.seen = client, seen
        self.frame = frame.map_partitions(slowly, str(seen), meta=frame._meta)

    def __enter__(self):
        self.client.wait_for_workers(2, timeout=60)
        pid = next(iter(self.client.run(os.getpid).values()))
        self.thread = threading.Thread(target=self._kill, args=(pid,), daemon=True)
        self.thread.start()
        return self.frame

    def _kill(self, pid):
        while len(list(self.seen.iterdir())) < 4:
            time.sleep(0.01)
        os.kill(pid, signal.SIGKILL)

    def __exit__(self, *_):
        self.thread.join(timeout=60)
        assert not self.thread.is_alive()


@pytest.mark.parametrize("convert", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_parquet_on_two_workers(client, data, convert, tmp_path):
    X, Y, folder = data
    whole = CredalChainClassifier(random_state=0).fit(X, Y)
    with dask.config.set({"dataframe.convert-string": convert}):
        frame = dd.read_parquet(folder)
        found = CredalChainClassifier(random_state=0).fit(frame[list(X)], frame[list(Y)])
        assert found.model_.counts == whole.model_.counts
        found.infer(frame[list(X)]).to_parquet(tmp_path / "answers")
    answers = pd.read_parquet(tmp_path / "answers").sort_index()
    expected = whole.infer(X).to_frame(intervals=True)
    pd.testing.assert_frame_equal(answers, expected, check_dtype=False, check_names=False)


def test_a_partition_that_does_not_fit_is_named(client, data):
    X, Y, _ = data
    parts = [X[:100], X[100:200].assign(a="text"), X[200:300]]
    lazy_X = dd.from_delayed([dask.delayed(part) for part in parts], meta=X[:0], verify_meta=False)
    lazy_Y = dd.from_delayed(
        [dask.delayed(Y[a : a + 100]) for a in (0, 100, 200)], meta=Y[:0], verify_meta=False
    )
    with pytest.raises(ValueError, match="holds numbers in partition 0 and texts in partition 1"):
        CredalChainClassifier().fit(lazy_X, lazy_Y)
    strange = [Y[:100], Y[100:200], Y[200:300].assign(x=7)]
    lazy_X = dd.from_pandas(X[:300], npartitions=3)
    lazy_Y = dd.from_delayed(
        [dask.delayed(part) for part in strange], meta=Y[:0], verify_meta=False
    )
    with pytest.raises(ValueError, match="partition 2: Y must hold 0, 1 or missing"):
        CredalChainClassifier().fit(lazy_X, lazy_Y)


@pytest.mark.nightly
def test_a_forest_grows_and_answers_although_workers_die(client, data, tmp_path):
    X, Y, folder = data
    trees = ExtraTreesRegressor(n_estimators=5, min_samples_leaf=2, bootstrap=True)
    forest = CredalJointForest(trees, random_state=0)
    chunks = [(X[a : a + 1000], Y[a : a + 1000]) for a in range(0, N, 1000)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("credalchain.joint.forest.SAMPLE_SIZE", 500)
        whole = clone(forest).fit_chunks(chunks)
        frame = dd.read_parquet(folder)
        with Killed(client, frame, tmp_path / "fit") as slow:
            found = clone(forest).fit(slow[list(X)], slow[list(Y)])
    assert found.learned_from_ == whole.learned_from_
    for one, other in zip(found.model_.leaves, whole.model_.leaves, strict=True):
        np.testing.assert_array_equal(one, other)
    with Killed(client, frame, tmp_path / "infer") as slow:
        answers = found.infer(slow[list(X)]).compute()
    expected = whole.infer(X).to_frame(intervals=True)
    pd.testing.assert_frame_equal(
        answers.reset_index(drop=True), expected, check_dtype=False, check_names=False
    )


def test_a_partition_that_cannot_be_read_is_named(client, data, tmp_path):
    X, Y, folder = data
    for file in sorted(folder.iterdir())[:4]:
        shutil.copy(file, tmp_path)
    frame = dd.read_parquet(tmp_path)
    sorted(tmp_path.iterdir())[2].write_bytes(b"PAR1 no more than that PAR1")
    with pytest.raises(ValueError, match="partition 2 cannot be read"):
        CredalChainClassifier().fit(frame[list(X)], frame[list(Y)])


@pytest.mark.nightly
def test_the_example_runs(client):
    script = Path(__file__).parents[2] / "examples" / "data_of_any_size.py"
    done = subprocess.run(
        [sys.executable, str(script), client.scheduler.address],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "trees grown on all 24000 rows" in done.stdout
    assert done.stdout.count("of the labels answered") == 2
