"""Does an installed credalchain work? Run by release_check.py in a fresh environment.

    python -I release_smoke.py core     without any extra
    python -I release_smoke.py cli      with the extra of the command line
    python -I release_smoke.py all      with all of them

Works in the current folder, which should be an empty one far from the source tree.
"""

import csv
import importlib.metadata
import random
import shutil
import subprocess
import sys
import sysconfig
import urllib.request
from pathlib import Path

MINUTES = 10 * 60  # no step takes as long, on any machine
LABELS = ("rock", "pop", "folk")


def core() -> None:
    """Return the library with its own dependencies: fit, ask, save, load."""
    import credalchain

    installed = Path(sysconfig.get_paths()["purelib"])
    assert installed in Path(credalchain.__file__).parents, f"imported {credalchain.__file__}"
    assert not {"sklearn", "numpy"} & set(sys.modules), "import credalchain imports scikit-learn"
    assert credalchain.__version__ == importlib.metadata.version("credalchain")

    import numpy as np

    from credalchain import CredalChainClassifier, JointDecision, load_model, save_model

    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    Y = (X[:, :3] + rng.normal(scale=0.5, size=(120, 3)) > 0).astype(int)
    for classifier in (CredalChainClassifier(random_state=0), JointDecision(random_state=0)):
        classifier.fit(X, Y)
        assert set(np.unique(classifier.predict(X))) <= {0, 1}
        answers = classifier.infer(X)
        assert answers.labels.shape == Y.shape
        assert ((answers.labels == Y) | (answers.labels == credalchain.ABSTAIN)).mean() > 0.8
        save_model(classifier, "model")
        again = load_model("model").infer(X)
        assert np.array_equal(again.labels, answers.labels), "a model changes when it is saved"
        Path("model").unlink()
    no_command_line()


def no_command_line() -> None:
    """Without its extra, the command line says in one sentence what to install."""
    done = run([sys.executable, "-I", "-m", "credalchain", "--help"], check=False)
    said = done.stderr.splitlines()
    assert done.returncode == 1, done.stderr
    assert len(said) == 1, done.stderr
    assert "pip install 'credalchain[cli]'" in said[0], done.stderr


def cli() -> None:
    """Return a table through the console script."""
    write_songs(Path("songs.csv"), n_rows=80)
    described = credalchain("describe", "songs.csv", "--labels", ",".join(LABELS))
    assert all(name in described for name in LABELS), described
    credalchain("fit", "songs.csv", "--labels", ",".join(LABELS), "--out", "songs.model")
    credalchain("predict", "songs.model", "songs.csv", "--out", "answers.csv")
    with open("answers.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 80
    assert {row[name] for row in rows for name in LABELS} <= {"0", "1", "*"}


def everything() -> None:
    """Return the demo can be asked for, and the review page answers one request."""
    command = [script(), "review", "songs.model", "songs.csv", "--no-browser", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        address = server.stdout.readline().partition(" ")[0]
        assert address.startswith("http://127.0.0.1:"), address
        with urllib.request.urlopen(address, timeout=60) as answer:
            assert answer.status == 200
            assert b"<html" in answer.read().lower()
    finally:
        server.terminate()
        server.wait(timeout=60)
        server.stdout.close()


def write_songs(path: Path, n_rows: int) -> None:
    """Return a made-up table: the labels follow from the first three features, nearly."""
    draw = random.Random(0)
    with open(path, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["tempo", "loudness", "length", *LABELS])
        for _ in range(n_rows):
            features = [round(draw.gauss(0, 1), 3) for _ in range(3)]
            table.writerow([*features, *(int(x + draw.gauss(0, 0.5) > 0) for x in features)])


def script() -> str:
    """Return the command of this environment, whatever else is on the path."""
    found = shutil.which("credalchain", path=sysconfig.get_path("scripts"))
    assert found is not None, "the console script was not installed"
    return found


def credalchain(*arguments: str) -> str:
    """Return what a command prints."""
    return run([script(), *arguments]).stdout


def run(command: list[str], check: bool = True) -> "subprocess.CompletedProcess[str]":
    """Return a command that has to end well."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=MINUTES, check=False)
    assert not check or done.returncode == 0, f"{command} says {done.stderr.strip()!r}"
    return done


if __name__ == "__main__":
    {"core": core, "cli": cli, "all": everything}[sys.argv[1]]()
