"""Files that are read in chunks: the same model and the same answers as from memory."""

import gzip
import json
import lzma
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from credalchain import CredalChainClassifier, load_model
from credalchain.chunks.sampling import row_hashes
from credalchain.cli import tables
from credalchain.labels import as_labels
from credalchain.metrics import DEFAULT_MEASURES
from credalchain.model_selection import predict_along, score_path
from shell import credalchain

CHAIN = ("--s", "2")
N = 400


@pytest.fixture(scope="module")
def songs():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "tempo": rng.normal(size=N).round(4),
            "key": rng.choice(["C", "D", "=E"], N),
            "code": [f"{i % 7}" if i < 300 else f"x{i % 3}" for i in range(N)],
        }
    )
    for j, name in enumerate(("rock", "calm")):
        frame[name] = (frame.tempo * (1 - 2 * j) + rng.normal(size=N) > 0).astype(float)
        frame.loc[rng.random(N) < 0.1, name] = np.nan
    return frame


@pytest.fixture(scope="module")
def prepared(songs, tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("prepared")
    songs.to_csv(tmp_path / "songs.csv", index=False)
    (tmp_path / "parts").mkdir()
    for at in range(0, N, 100):
        songs[at : at + 100].to_csv(tmp_path / "parts" / f"{at:04}.csv", index=False)
    with gzip.open(tmp_path / "songs.csv.gz", "wt") as file:
        file.write((tmp_path / "songs.csv").read_text())
    (tmp_path / "parquet").mkdir()
    songs.to_parquet(tmp_path / "parquet" / "songs.parquet", index=False)
    credalchain("fit", "songs.csv", "--labels", "last:2", *CHAIN, "--out", "whole", cwd=tmp_path)
    return tmp_path


@pytest.fixture
def folder(prepared, tmp_path, monkeypatch):
    """One file, the same in parts, compressed, and as Parquet; and a model of it."""
    monkeypatch.setattr(tables, "ROWS_AT_ONCE", 70)
    return Path(shutil.copytree(prepared, tmp_path, dirs_exist_ok=True))


@pytest.mark.parametrize("source", ["parts", "parts/*.csv", "songs.csv.gz", "parquet"])
def test_fit_and_predict_in_chunks(folder, source):
    done = credalchain("fit", source, "--labels", "rock,calm", *CHAIN, "--out", "m", cwd=folder)
    assert "bins learned from all 400 rows" in done.stderr
    assert f"{N} rows, 3 features, 2 labels -> m" in done.stderr
    assert ("text in others, so text" in done.stderr) == (source != "parquet")
    whole, found = load_model(folder / "whole"), load_model(folder / "m")
    assert found.model_.counts == whole.model_.counts
    credalchain("predict", "whole", "songs.csv", "--out", "a.csv", "--intervals", cwd=folder)
    credalchain("predict", "m", source, "--out", "b.csv", "--intervals", cwd=folder)
    assert (folder / "b.csv").read_text() == (folder / "a.csv").read_text()
    credalchain("predict", "m", source, "--out", "b.parquet", "--keep", "key", cwd=folder)
    answers = pd.read_parquet(folder / "b.parquet")
    assert list(answers.columns) == ["key", "rock", "calm"]
    assert len(answers) == N
    assert "=E" in set(answers.key)


def test_a_piece_that_does_not_fit_is_named_and_nothing_is_written(folder, songs):
    other = songs[:50].drop(columns="tempo")
    other.to_csv(folder / "parts" / "0250.csv", index=False)
    done = credalchain("fit", "parts", "--labels", "last:2", "--out", "x", cwd=folder, status=1)
    assert "0250.csv, rows 0 to 49" in done.stderr
    done = credalchain("predict", "whole", "parts", "--out", "x.csv", cwd=folder, status=1)
    assert "0250.csv, rows 0 to 49 lacks 1 of the model's 3 columns: tempo" in done.stderr
    songs[:50].assign(rock=7).to_csv(folder / "parts" / "0250.csv", index=False)
    done = credalchain("fit", "parts", "--labels", "last:2", "--out", "x", cwd=folder, status=1)
    assert "0250.csv, rows 0 to 49: label column 'rock': cells must be 0 or 1" in done.stderr
    assert not list(folder.glob("x*"))
    assert not list(folder.glob(".x*"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing/*.csv"], "there is no file nothing/*.csv"),
        (["empty"], "empty has no .csv, .tsv or .parquet files"),
        (["broken"], "cannot be read as a table"),
        (["parts", "--method", "joint"], "calibration_folds must be None for data in chunks"),
        (["parts", "--base", "wrapper"], "needs all rows in memory"),
        (["parts", "--promise", "10%"], "--promise must be RISK=LEVEL"),
        (["parts", "--promise", "row-error=0.1"], "--promise is for data that is read whole"),
        (["parts", "--sample", "0"], "Invalid value for '--sample'"),
    ],
)
def test_what_cannot_be_read_in_chunks(folder, arguments, words, monkeypatch):
    monkeypatch.setattr(tables, "_LARGE_BYTES", 1000)
    (folder / "empty").mkdir()
    (folder / "broken").mkdir()
    (folder / "broken" / "a.parquet").write_bytes(b"PAR1 nothing PAR1")
    status = 2 if "--sample" in arguments else 1
    done = credalchain(
        "fit", *arguments, "--labels", "last:2", "--out", "x", cwd=folder, status=status
    )
    assert words in " ".join(done.stderr.split())


def test_large_files_are_read_in_chunks_where_that_is_possible(folder, monkeypatch):
    monkeypatch.setattr(tables, "_LARGE_BYTES", 1000)
    given = ["songs.csv", "--labels", "last:2", "--method", "chain", "--out", "m"]
    assert "bins learned from" in credalchain("fit", *given, cwd=folder).stderr
    done = credalchain("fit", *given, "--promise", "row-error=0.5", cwd=folder)
    assert "promised: rows with a wrong answer" in done.stderr
    assert "bins learned from" not in done.stderr  # as a whole
    credalchain("predict", "whole", "songs.csv", "--out", "a.csv", cwd=folder)
    shown = credalchain("predict", "whole", "songs.csv", "--out", "-", cwd=folder).stdout
    assert shown == (folder / "a.csv").read_text()
    assert credalchain("check", "m", "songs.csv", cwd=folder).stdout
    done = credalchain("check", "m", "parts", cwd=folder, status=1)
    assert "parts is large" in done.stderr


def test_small_folders_are_read_whole_where_all_rows_are_needed(folder):
    options = ("--labels", "last:2")
    chain = ("--method", "chain")
    for more in ([*chain, "--promise", "row-error=50%"], ["--base", "wrapper", "--s", "1"]):
        credalchain("fit", "parts", *options, *more, "--seed", "1", "--out", "a", cwd=folder)
        credalchain("fit", "songs.csv", *options, *more, "--seed", "1", "--out", "b", cwd=folder)
        for name in ("a", "b"):
            credalchain("predict", name, "parts", "--out", f"{name}.csv", cwd=folder)
        assert (folder / "a.csv").read_text() == (folder / "b.csv").read_text()


@pytest.mark.slow
def test_ensembles_in_chunks(folder):
    given = ["--labels", "last:2", "--method", "ensemble", "--chains", "3", "--out"]
    credalchain("fit", "songs.csv", *given, "a", cwd=folder)
    credalchain("fit", "parts", *given, "b", cwd=folder)
    for name in ("a", "b"):
        arguments = [name, "songs.csv", "--out", f"{name}.csv", "--intervals"]
        credalchain("predict", *arguments, cwd=folder)
    assert (folder / "a.csv").read_text() == (folder / "b.csv").read_text()


def test_a_sample_of_rows_for_bins(folder):
    given = ["parts", "--labels", "last:2", "--sample", "50", *CHAIN]
    done = credalchain("fit", *given, "--out", "m", cwd=folder)
    assert "bins learned from 50 of 400 rows" in done.stderr


MEMORY_IN_USE = """
import sys
from unittest import mock
from credalchain.__main__ import main
from credalchain.cli import tables
tables.ROWS_AT_ONCE = 8000
with mock.patch.object(sys, "argv", ["credalchain", *sys.argv[1:]]):
    try:
        main()
    except SystemExit as stop:
        assert not stop.code
for line in open("/proc/self/status"):
    if line.startswith("VmPeak"):
        print(line.split()[1])
"""


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_a_file_ten_times_as_large_as_the_memory_it_may_take(tmp_path, monkeypatch):
    """Beyond what the libraries themselves need, which is measured first.

    Allocators that reserve as much as they can are told not to.
    """
    rng, n = np.random.default_rng(0), 8000
    columns = [f"f{i}" for i in range(20)]
    block = pd.DataFrame(rng.normal(size=(n, 20)), columns=columns)
    block["a"], block["b"] = (rng.random((2, n)) < 0.5).astype(int)
    header, _, body = block.to_csv(index=False).partition("\n")
    start = gzip.compress(f"{header}\n".encode())
    again = gzip.compress(body.encode(), compresslevel=1)
    blocks = 30  # 3 MB of text each
    (tmp_path / "small.csv.gz").write_bytes(start + again)  # one chunk
    (tmp_path / "large.csv.gz").write_bytes(start + blocks * again)  # members of one file
    monkeypatch.setenv("MALLOC_ARENA_MAX", "1")
    monkeypatch.setenv("ARROW_DEFAULT_MEMORY_POOL", "system")

    def fit(source, **limits):
        given = ["fit", source, "--labels", "a,b", "--sample", "4000", *CHAIN, "--out", "m"]
        command = [sys.executable, "-c", MEMORY_IN_USE, *given]
        return subprocess.run(
            command, cwd=tmp_path, check=True, capture_output=True, text=True, **limits
        )

    limit = 1024 * int(fit("small.csv.gz").stdout.split()[-1]) + blocks * len(body) // 10
    limits = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))}
    done = fit("large.csv.gz", **limits)
    assert f"{blocks * n} rows, 20 features, 2 labels" in done.stderr


@pytest.mark.slow
def test_evaluate_in_chunks(folder):
    """The same whatever the pieces, and about what cross-validation in memory finds."""
    options = ("--labels", "rock,calm", "--folds", "4", "--s", "0,2", "--json")
    found = {}
    for source in ("songs.csv", "parts", "songs.csv.gz", "parquet"):
        done = credalchain("evaluate", source, *options, cwd=folder)
        found[source] = json.loads(done.stdout)
    assert found["parts"] == found["songs.csv.gz"] == found["parquet"]
    for whole, pieces in zip(found["songs.csv"], found["parts"], strict=True):
        assert whole["labels"]["rock"]["support"] == pieces["labels"]["rock"]["support"]
        for name, score in whole["measures"].items():
            assert abs(score["mean"] - pieces["measures"][name]["mean"]) < 0.08


def test_evaluate_in_chunks_is_what_memory_finds_on_the_same_folds(folder, songs):
    X = songs.drop(columns=["rock", "calm"]).assign(code=songs.code.astype(str))
    Y = songs[["rock", "calm"]]
    tested = row_hashes(0, N) % np.uint64(3)
    scores = []
    for fold in range(3):
        train, test = tested != fold, tested == fold
        chain = CredalChainClassifier(random_state=0).fit(X[train], Y[train])
        path = predict_along(chain, X[test], [0.0, 2.0], DEFAULT_MEASURES)
        scores.append(score_path(DEFAULT_MEASURES, as_labels(Y[test]), path))
    expected = np.mean(scores, axis=0)
    options = ("--labels", "rock,calm", "--folds", "3", "--s", "0,2", "--json")
    done = json.loads(credalchain("evaluate", "parts", *options, cwd=folder).stdout)
    for at, value in enumerate(done):
        for row, name in zip(expected, DEFAULT_MEASURES, strict=True):
            assert value["measures"][name]["mean"] == pytest.approx(row[at], abs=1e-12)


@pytest.mark.slow
def test_the_recommended_method_in_chunks(folder):
    options = ("--labels", "rock,calm", "--method", "recommended", "--trees", "5")
    done = credalchain("fit", "parts", *options, "--sample", "90", "--out", "m", cwd=folder)
    assert "trees grown on 90 of 400 rows" in done.stderr
    assert f"{N} rows, 3 features, 2 labels -> m" in done.stderr
    credalchain("predict", "m", "parts", "--out", "b.csv", cwd=folder)
    assert len(pd.read_csv(folder / "b.csv")) == N
    done = credalchain("evaluate", "parts", *options, "--folds", "2", cwd=folder)
    assert "reward = " in done.stdout
    done = credalchain("evaluate", "parts", *options, "--folds", "300", cwd=folder, status=1)
    assert "--folds 300" in done.stderr


@pytest.mark.slow
def test_seeds_of_any_size(folder):
    options = ("--labels", "rock,calm", "--folds", "2", "--s", "1", "--json")
    for seed in ("20240101", "0"):
        credalchain("evaluate", "parts", *options, "--seed", seed, cwd=folder)


def test_files_are_read_in_the_order_of_their_numbers(tmp_path):
    for number in (2, 10, 1):
        (tmp_path / f"part.{number}.csv").write_text("a\n1\n")
    names = [file.name for file in tables.table_files(str(tmp_path))]
    assert names == ["part.1.csv", "part.2.csv", "part.10.csv"]


@pytest.mark.slow
def test_nothing_but_one_sentence_when_parquet_cannot_be_written(folder, songs):
    (folder / "mixed").mkdir()
    songs[:50].assign(id=1).to_csv(folder / "mixed" / "0.csv", index=False)
    songs[50:99].assign(id="A").to_csv(folder / "mixed" / "1.csv", index=False)
    given = ("whole", "mixed", "--keep", "id")
    done = credalchain("predict", *given, "--out", "x.parquet", cwd=folder, status=1)
    assert "1.csv" in done.stderr
    assert "--keep" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    (folder / "empty").mkdir()
    songs[:0].to_csv(folder / "empty" / "0.csv", index=False)
    done = credalchain("predict", "whole", "empty", "--out", "x.csv", cwd=folder, status=1)
    assert "empty has no rows" in done.stderr
    assert not list(folder.glob("x*"))


def test_a_file_without_a_label_is_named(folder, songs):
    songs[:50].drop(columns="rock").to_csv(folder / "parts" / "0250.csv", index=False)
    done = credalchain("fit", "parts", "--labels", "rock,calm", "--out", "x", cwd=folder, status=1)
    assert "0250.csv" in done.stderr
    assert "there is no column 'rock'" in done.stderr


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress], ids=["gz", "xz"])
def test_a_compressed_file_that_is_damaged_is_named(folder, pack):
    content = bytearray(pack((folder / "songs.csv").read_bytes()))
    at = 12 if pack is gzip.compress else len(content) // 2
    for place in range(at, at + 28):
        content[place] ^= 0x5A
    (folder / "hurt").mkdir()
    name = f"a.csv.{'gz' if pack is gzip.compress else 'xz'}"
    (folder / "hurt" / name).write_bytes(content)
    given = ("--labels", "last:2", *CHAIN, "--out", "x")
    done = credalchain("fit", "hurt", *given, cwd=folder, status=1)
    assert f"{name} cannot be read as a table" in done.stderr
    assert not (folder / "x").exists()


def test_what_does_not_fit_is_named_with_its_file(folder, songs):
    given = ("--labels", "last:2", *CHAIN, "--out", "x")
    (folder / "inf").mkdir()
    songs[:50].to_csv(folder / "inf" / "a.csv", index=False)
    songs[50:].assign(tempo=np.inf).to_csv(folder / "inf" / "b.csv", index=False)
    done = credalchain("fit", "inf", *given, cwd=folder, status=1)
    assert "b.csv, rows 0 to" in done.stderr
    assert "infinity in column 'tempo'" in done.stderr
    (folder / "types").mkdir()
    songs[:50].to_parquet(folder / "types" / "a.parquet")
    songs[50:].assign(tempo="slow").to_parquet(folder / "types" / "b.parquet")
    done = credalchain("fit", "types", *given, cwd=folder, status=1)
    assert "b.parquet, rows 0 to" in done.stderr
    assert "column 'tempo' has another type than before" in done.stderr
    (folder / "types" / "more").mkdir()
    songs.to_parquet(folder / "types" / "more" / "c.parquet")
    done = credalchain("fit", "types", *given, cwd=folder, status=1)
    assert "types has tables in folders inside it (more)" in done.stderr
