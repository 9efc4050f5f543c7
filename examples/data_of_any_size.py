"""From a laptop to a cluster: learn from Parquet that no memory holds, and answer it.

    python examples/data_of_any_size.py                        # processes on this machine
    python examples/data_of_any_size.py tcp://10.0.0.5:8786    # a cluster that is running

Only where the client comes from differs. On Slurm it is ``Client(SLURMCluster(...))`` of
dask-jobqueue, on Kubernetes ``Client(KubeCluster(...))`` of dask-kubernetes; workers must then be
able to read the folder.
"""

import sys
import tempfile
from pathlib import Path

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster
from sklearn.ensemble import ExtraTreesRegressor

from credalchain import CredalChainClassifier, CredalJointForest, JointDecision

FEATURES, LABELS = [f"sensor{i}" for i in range(8)], ["worn", "hot", "loose"]


def write_parts(folder: Path, n_parts: int = 4, n_rows: int = 6000) -> None:
    """One file after the other, as a machine with little memory would."""
    for number in range(n_parts):
        rng = np.random.default_rng(number)
        X = rng.normal(size=(n_rows, len(FEATURES)))
        score = X[:, :3] + 0.5 * X[:, 3:6] * X[:, [6]] + rng.normal(size=(n_rows, 3))
        table = pd.DataFrame(X, columns=FEATURES)
        table[LABELS] = (score > 0).astype(float)
        table.loc[rng.random(n_rows) < 0.1, "loose"] = np.nan  # not everybody looked
        table.to_parquet(folder / f"part{number:03}.parquet", index=False)


def learn_and_answer(client: Client, folder: Path) -> None:
    """Pass what Dask reads to the estimators' own fit and infer."""
    machines = dd.read_parquet(folder / "machines")
    workers = len(client.scheduler_info()["workers"])
    print(f"{workers} workers, {machines.npartitions} partitions")

    chain = CredalChainClassifier(s=200.0, random_state=0).fit(machines[FEATURES], machines[LABELS])
    print(f"chain: {chain.learned_from_}; {chain.model_.counts.n_rows} rows counted")

    forest = ExtraTreesRegressor(n_estimators=20, min_samples_leaf=2, bootstrap=True)
    decision = JointDecision(CredalJointForest(forest, members=[], random_state=0), reward=0.7)
    decision.fit(machines[FEATURES], machines[LABELS])
    print(f"forest: {decision.learned_from_}")

    for name, model in (("chain", chain), ("forest", decision)):
        answers = model.infer(machines[FEATURES])  # nothing computed yet
        answers.to_parquet(folder / f"{name}.unfinished")
        (folder / f"{name}.unfinished").rename(folder / name)  # whole, or not there
        answered = ~dd.read_parquet(folder / name)[LABELS].isna()
        print(f"{name}: {answered.to_dask_array().mean().compute():.0%} of the labels answered")


def main() -> None:
    """Make up data, and learn from it with the workers that there are."""
    address = sys.argv[1] if len(sys.argv) > 1 else None
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "machines").mkdir()
        write_parts(folder / "machines")
        if address is not None:
            with Client(address) as client:
                learn_and_answer(client, folder)
            return
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            learn_and_answer(client, folder)


if __name__ == "__main__":
    main()
