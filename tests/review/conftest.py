"""A small review: songs, some labels of which are left open, and one with a hostile name."""

import base64
import os
import signal

import numpy as np
import pandas as pd
import pytest

from credalchain import CredalChainClassifier, load_model, save_model
from credalchain.review.rows import ReviewedRows
from credalchain.review.session import ReviewSession
from credalchain.review.store import AnswerStore
from shell import start_process

HOSTILE = "<script>document.title='owned'</script>"
LABELS = ["rock", "pop", "calm", HOSTILE]
N = 60
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def make_songs(n=N, seed=0):
    rng = np.random.default_rng(seed)
    mood = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "title": [f"song {i} <b>bold</b>" for i in range(n)],
            "tempo": (mood + 0.7 * rng.normal(size=n)).round(3),
            "year": rng.integers(1960, 2020, n),
            "cover": ["cover.png" if i % 2 else "../secret.png" for i in range(n)],
        }
    )
    labels = np.stack([mood > 0, mood + rng.normal(size=n) > 0, mood < 0, rng.random(n) < 0.3], 1)
    for name, column in zip(LABELS, labels.T, strict=True):
        frame[name] = column.astype(int)
    return frame


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("review") / "data"
    place.mkdir()
    train, new = make_songs(300, 1), make_songs()
    chain = CredalChainClassifier(s=12.0, order="given")
    chain.fit(train[["tempo", "year"]], train[LABELS])
    save_model(chain, place / "songs.model")
    train.to_csv(place / "train.csv", index=False)
    new.drop(columns=LABELS).to_csv(place / "new.csv", index=False)
    (place / "cover.png").write_bytes(PIXEL)
    (place.parent / "secret.png").write_bytes(PIXEL)
    return place


@pytest.fixture
def session(folder, tmp_path):
    """Without a server."""
    return make_session(folder, tmp_path / "answers.sqlite")


def make_session(folder, path, table=None, **options):
    table = pd.read_csv(folder / "new.csv") if table is None else table
    classifier = options.pop("classifier", None) or load_model(folder / "songs.model")
    features = table[["tempo", "year"]]
    rows = ReviewedRows(
        classifier, features, table, AnswerStore(path), model=("d" * 64, "songs.model"), **options
    )
    return ReviewSession(rows, show=["title", "tempo", "cover"], folder=folder)


class Server:
    """``credalchain review`` in a process of its own."""

    def __init__(self, folder, out, *options):
        arguments = ["review", "songs.model", "new.csv", "--show", "title,tempo,cover"]
        arguments += ["--out", str(out), "--port", "0", "--no-browser", *options]
        self.process, first_line = start_process(*arguments, cwd=folder)
        self.address = first_line.split()[0]
        self.url = self.address.partition("?")[0].rstrip("/")

    def kill(self):
        """Gone at once."""
        self.process.kill()
        self.process.join(timeout=30)

    def stop(self):
        """As Ctrl-C does."""
        if self.process.is_alive():
            os.kill(self.process.pid, signal.SIGINT)
            self.process.join(timeout=10)
        if self.process.is_alive():
            self.kill()


@pytest.fixture
def serve(folder, tmp_path):
    """Start servers; they are stopped in the end."""
    servers = []

    def start(*options, place=folder):
        servers.append(Server(place, tmp_path / "answers.sqlite", *options))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()
