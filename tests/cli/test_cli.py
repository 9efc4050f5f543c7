"""The command line as a user meets it: files, pipes, sentences and exit statuses."""

import importlib
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import ExtraTreesRegressor

import credalchain as credalchain_package
from credalchain import CredalChainClassifier, load_model, save_model
from credalchain.cli import app
from shell import credalchain

rng = np.random.default_rng(0)
N = 80
SONGS = pd.DataFrame(
    {
        "id": [f"song{i}" for i in range(N)],
        "tempo": rng.normal(120, 20, N).round(1),
        "key": rng.choice(["C", "D", "E"], N),
        "live": rng.random(N) < 0.3,
    }
)
SONGS["rock"] = (SONGS.tempo > 120).astype(int)
SONGS["pop"] = (SONGS.key == "C").astype(int)
SONGS["folk"] = pd.array(np.where(rng.random(N) < 0.3, np.nan, SONGS.live), "Float64").astype(
    "Int64"
)


def sentence(done):
    """The one sentence on stderr."""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("credalchain: ")
    return lines[0]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("a place with spaces")
    SONGS.to_csv(folder / "songs.csv", index=False)
    SONGS.to_parquet(folder / "songs.parquet", index=False)
    SONGS.drop(columns=["rock", "pop", "folk"]).to_csv(folder / "new.csv", index=False)
    credalchain(
        "fit",
        "songs.csv",
        "--labels",
        "last:3",
        "--drop",
        "id",
        "--s",
        "1",
        "--out",
        "m",
        cwd=folder,
    )
    return folder


def test_fit_equals_the_library(place):
    model = load_model(place / "m")
    X = SONGS[["tempo", "key", "live"]]
    ours = CredalChainClassifier(s=1.0, random_state=0).fit(X, SONGS[["rock", "pop", "folk"]])
    np.testing.assert_array_equal(model.infer(X).log_odds, ours.infer(X).log_odds)
    assert model.label_names_.tolist() == ["rock", "pop", "folk"]


BASES = {
    "forest": ["--base", "forest", "--trees", "12", "--s", "1"],
    "wrapper": ["--base", "wrapper", "--estimator", "sklearn.naive_bayes.GaussianNB", "--s", "1"],
    "ensemble": ["--method", "ensemble", "--chains", "3", "--s", "1"],
    "joint": [
        *[
            "--base",
            "forest",
            "--trees",
            "12",
            "--method",
            "joint",
            "--chains",
            "2",
            "--reward",
            "1",
        ]
    ],
    "recommended": ["--method", "recommended", "--reward", "1"],
}


@pytest.mark.parametrize("name", BASES)
def test_every_base_from_fit_to_explain(place, name):
    labels = ["--labels", "last:3", "--drop", "id"]
    credalchain("-q", "fit", "songs.csv", *labels, *BASES[name], "--out", name, cwd=place)
    joint = name in ("joint", "recommended")
    caution = ["--reward", "1"] if joint else ["--s", "0.5"]
    known = ["--known", "folk", *caution]
    out = credalchain("-q", "predict", name, "songs.csv", "--out", "-", *known, cwd=place).stdout
    answers = pd.read_csv(pd.io.common.StringIO(out), dtype=str)
    said = SONGS.folk.notna()
    assert (answers.folk[said] == SONGS.folk[said].astype(int).astype(str)).all()
    model = load_model(place / name)
    table = SONGS[["tempo", "key", "live"]]
    chosen = {caution[0].removeprefix("--"): float(caution[1])}
    told = SONGS[["folk"]].astype("float64")
    words = model.infer(table, known=told, **chosen).to_strings()
    np.testing.assert_array_equal(answers.to_numpy(), words)
    shown = credalchain("explain", name, "new.csv", "--row", "2", *caution, cwd=place).stdout
    assert "no reasons: " in shown
    assert ("similar training rows" in re.sub(r"\s+", " ", shown)) == (name == "recommended")
    assert "rock" in shown
    about = credalchain("info", name, cwd=place).stdout
    assert ("share: joint" if name == "recommended" else "label order") in about


def test_evaluate_along_the_reward(place):
    options = ["--labels", "last:3", "--drop", "id", "--folds", "2", "--reward", "0.1,5"]
    shown = credalchain("evaluate", "songs.csv", *BASES["joint"], *options, cwd=place).stdout
    assert "reward = 0.1" in shown
    completeness = re.search(r"completeness\s+│ (\S+) ± \S+ │ (\S+)", shown)
    assert float(completeness[1]) < float(completeness[2]) == 1
    wrong = credalchain(
        "predict", "m", "new.csv", "--out", "-", "--reward", "1", cwd=place, status=1
    )
    assert "label by label; use --s" in sentence(wrong)


@pytest.mark.parametrize(
    "labels", [["rock,pop,folk"], ["rock", "--labels", "pop,folk"], ["last:3"]]
)
@pytest.mark.parametrize("data", ["songs.csv", "songs.parquet"])
def test_ways_to_name_labels_and_data(place, tmp_path, labels, data):
    credalchain(
        "-q",
        "fit",
        data,
        "--labels",
        *labels,
        "--drop",
        "id",
        "--s",
        "1",
        "--out",
        tmp_path / "m2",
        cwd=place,
    )
    assert load_model(tmp_path / "m2").model_.counts == load_model(place / "m").model_.counts


def test_predict_writes_stars_and_intervals(place, tmp_path):
    done = credalchain(
        "predict",
        "m",
        "new.csv",
        "--out",
        tmp_path / "a.csv",
        "--intervals",
        "--s",
        "30",
        "--keep",
        "id",
        cwd=place,
    )
    assert done.stdout == ""
    answers = pd.read_csv(tmp_path / "a.csv", dtype=str)
    prediction = load_model(place / "m").infer(SONGS[["tempo", "key", "live"]], s=30)
    assert answers["id"].tolist() == SONGS["id"].tolist()
    np.testing.assert_array_equal(
        answers[["rock", "pop", "folk"]].to_numpy(), prediction.to_strings()
    )
    np.testing.assert_allclose(
        answers["rock_lower"].astype(float), prediction.lower[:, 0], atol=1e-6
    )
    assert "*" in set(answers["folk"])
    credalchain("predict", "m", "new.csv", "--out", tmp_path / "a.parquet", cwd=place)
    assert pd.read_parquet(tmp_path / "a.parquet")["rock"].isin(["0", "1", "*"]).all()


def test_stdout_is_clean_for_piping(place):
    text = (place / "new.csv").read_text()
    done = credalchain("predict", "m", "-", "--out", "-", cwd=place, stdin=text)
    table = pd.read_csv(pd.io.common.StringIO(done.stdout), dtype=str)
    assert table.shape == (N, 3)
    assert "answered" in done.stderr
    assert (
        credalchain("-q", "predict", "m", "new.csv", "--out", "-", cwd=place).stderr != done.stderr
    )


def test_extra_columns_are_ignored_with_a_note(place):
    done = credalchain("predict", "m", "new.csv", "--out", "-", cwd=place)
    assert "columns that the model does not know are ignored: 'id'" in done.stderr
    quiet = credalchain("--quiet", "predict", "m", "new.csv", "--out", "-", cwd=place)
    assert quiet.stderr == ""
    assert quiet.stdout == done.stdout


def test_known_labels(place, tmp_path):
    frame = SONGS.assign(rock=["*", "1", "0", ""] * 20)
    frame.to_csv(tmp_path / "half.csv", index=False)
    done = credalchain(
        "predict", place / "m", "half.csv", "--known", "rock", "--out", "-", cwd=tmp_path
    )
    rock = pd.read_csv(pd.io.common.StringIO(done.stdout), dtype=str)["rock"]
    assert set(rock[1::4]) == {"1"}
    assert set(rock[2::4]) == {"0"}
    everything = credalchain(
        "predict", place / "m", "half.csv", "--known", "all", "--out", "-", cwd=tmp_path
    )
    folk = pd.read_csv(pd.io.common.StringIO(everything.stdout), dtype=str)["folk"]
    told = SONGS["folk"].notna()
    assert (folk[told] == SONGS["folk"][told].astype(str)).all()


def test_options_at_prediction_time(place):
    bold = credalchain("predict", "m", "new.csv", "--s", "0", "--out", "-", cwd=place).stdout
    careful = credalchain("predict", "m", "new.csv", "--s", "50", "--out", "-", cwd=place).stdout
    assert bold.count("*") < careful.count("*")
    credalchain(
        "predict",
        "m",
        "new.csv",
        "--strategy",
        "marginalization",
        "--threshold",
        "0.4,0.5,0.6",
        "--jobs",
        "2",
        "--out",
        "-",
        cwd=place,
    )


def test_every_parameter_of_the_estimator(place, tmp_path):
    credalchain(
        "fit",
        "songs.csv",
        "--labels",
        "rock,pop,folk",
        "--drop",
        "id",
        "--out",
        tmp_path / "m",
        "--s",
        "0.5",
        "--strategy",
        "marginalization",
        "--order",
        "folk,rock,pop",
        "--threshold",
        "0.3,0.5,0.6",
        "--seed",
        "7",
        "--jobs",
        "2",
        "--epsilon",
        "0.01",
        "--prior",
        "credal",
        "--denominator",
        "class",
        "--bins",
        "4",
        "--missing-features",
        "conservative",
        cwd=place,
    )
    model = load_model(tmp_path / "m")
    assert model.order_.tolist() == [2, 0, 1]
    assert model.threshold == [0.3, 0.5, 0.6]
    params = model.get_params()
    assert params["base__epsilon"] == 0.01
    assert params["base__discretizer__n_bins"] == 4
    assert params["base__missing_features"] == "conservative"
    assert (params["base__prior"], params["base__denominator"]) == ("credal", "class")
    credalchain(
        "fit",
        "songs.csv",
        "--labels",
        "rock,pop",
        "--drop",
        "id,folk",
        "--method",
        "relevance",
        "--out",
        tmp_path / "r",
        cwd=place,
    )
    assert type(load_model(tmp_path / "r")).__name__ == "CredalBinaryRelevanceClassifier"
    codes = SONGS[["live", "rock", "pop"]].astype(int)
    codes.to_csv(tmp_path / "codes.csv", index=False)
    credalchain("fit", "codes.csv", "--labels", "last:2", "--bins", "0", "--out", "c", cwd=tmp_path)
    assert load_model(tmp_path / "c").model_.discretizer is None


def test_evaluate(place):
    arguments = ["evaluate", "songs.csv", "--labels", "last:3", "--drop", "id", "--folds", "4"]
    text = credalchain(*arguments, "--s", "0,2", cwd=place)
    assert "set_accuracy" in text.stdout
    assert "all labels" in text.stdout
    result = json.loads(credalchain(*arguments, "--s", "0,2", "--json", cwd=place).stdout)
    assert [entry["s"] for entry in result] == [0, 2]
    assert result[0]["measures"]["completeness"]["mean"] >= 0.9
    assert result[1]["measures"]["completeness"]["mean"] < 1
    assert set(result[0]["labels"]) == {"rock", "pop", "folk", "all labels"}


def test_explain_in_words_and_as_a_picture(place, tmp_path):
    done = credalchain(
        "explain", "m", "new.csv", "--row", "3", "--picture", tmp_path / "why.png", cwd=place
    )
    for word in ("rock", "pop", "folk", "tempo", "prior"):
        assert word in done.stdout
    assert (tmp_path / "why.png").read_bytes()[:4] == b"\x89PNG"


@pytest.fixture(scope="module")
def tags(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tags")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"])
    chance = rng.normal(size=(60, 30))
    Y = pd.DataFrame((X.to_numpy() @ rng.normal(size=(3, 30)) + chance > 0.5).astype(int))
    table = pd.concat([X, Y.add_prefix("tag, ")], axis=1)
    table.to_csv(folder / "tags.csv", index=False)
    credalchain("fit", "tags.csv", "--labels", "last:30", "--s", "1", "--out", "m", cwd=folder)
    return folder


def test_explain_of_many_labels_shows_the_open_ones_and_some_more(tags):
    done = credalchain("explain", "m", "tags.csv", "--top", "1", cwd=tags)
    shown = done.stdout
    answers = re.findall(r"(?m)^tag, \d+: (\S+)", shown)
    assert len(answers) == 20
    assert answers == sorted(answers, key=lambda word: word != "*")
    assert "and 10 more" in shown
    assert "--labels all explains the others, too" in done.stderr
    done = credalchain("explain", "m", "tags.csv", "--labels", "all", cwd=tags)
    assert len(re.findall(r"(?m)^tag, \d+: ", done.stdout)) == 30
    assert "others" not in done.stderr
    done = credalchain("explain", "m", "tags.csv", "--labels", "tag, 7", cwd=tags)
    assert re.findall(r"(?m)^(tag, \d+): ", done.stdout) == ["tag, 7"]
    assert "others" not in done.stderr


def test_explain_as_json(tags, place):
    done = credalchain("explain", "m", "tags.csv", "--json", cwd=tags)
    found = json.loads(done.stdout)
    assert (len(found["labels"]), found["labels_left_out"]) == (20, 10)
    done = credalchain("explain", "m", "tags.csv", "--json", "--labels", "all", cwd=tags)
    assert len(json.loads(done.stdout)["labels"]) == 30
    options = ["--labels", "rock, folk", "--json", "--row", "3"]
    found = json.loads(credalchain("explain", "m", "new.csv", *options, cwd=place).stdout)
    assert {one["label"] for one in found["labels"]} == {"rock", "folk"}
    assert {"prior", "tempo"} <= {one["name"] for one in found["labels"][0]["reasons"]}
    wrong = credalchain("explain", "m", "new.csv", "--labels", "jazz", cwd=place, status=1)
    assert "--labels: there is no label 'jazz'; the labels are rock, pop, folk." in sentence(wrong)


def test_info(place):
    text = credalchain("info", "m", cwd=place).stdout
    assert "rock, pop, folk" in text
    about = json.loads(credalchain("info", "m", "--json", cwd=place).stdout)
    assert about["features"] == ["tempo", "key", "live"]
    assert about["written by"].startswith("credalchain ")


def test_types_are_trusted_by_name(place, tmp_path):
    options = ["--base", "wrapper", "--estimator", "sklearn.tree.DecisionTreeClassifier"]
    labels = ["--labels", "rock,pop,folk", "--s", "1"]
    model = str(tmp_path / "m")
    done = credalchain("fit", "songs.csv", *labels, *options, "--out", model, cwd=place)
    assert "credalchain --trust sklearn.tree._tree.Tree" in done.stderr
    predict = ["predict", model, "new.csv", "--out", "-"]
    wrong = credalchain(*predict, cwd=place, status=1)
    assert "not trusted: sklearn.tree._tree.Tree" in sentence(wrong)
    trust = ["--trust", "sklearn.tree._tree.Tree"]
    assert credalchain(*trust, *predict, cwd=place).stdout


@pytest.mark.parametrize("command", ["fit", "predict", "evaluate", "explain", "info"])
def test_help_shows_an_example(command, tmp_path):
    done = credalchain(command, "--help", cwd=tmp_path)
    assert f"credalchain {command}" in done.stdout.split("Example")[1]


def test_usage_errors_have_status_2(tmp_path):
    for arguments in (["fit"], ["nonsense"], ["fit", "x.csv"], ["explain", "m", "d", "--row", "x"]):
        credalchain(*arguments, cwd=tmp_path, status=2)


def test_version(tmp_path):
    assert credalchain("--version", cwd=tmp_path).stdout.startswith("credalchain 0.")


# -- bad input: one sentence, status 1, nothing written ------------------------------------

FIT = ["fit", "bad.csv", "--labels", "y", "--out", "model"]
BAD_DATA = {
    "a two": ("x,y\n1,0\n2,2\n", FIT, "label column 'y': cells must be 0 or 1.* got 2 in row 1"),
    "a perhaps": ("x,y\n1,0\n2,perhaps\n", FIT, "cells must be 0 or 1.*'perhaps' in row 1"),
    "plus minus": ("x,y\n1,-1\n2,1\n", FIT, "-1 means 'missing'"),
    "nothing": ("", FIT, "bad.csv is empty"),
    "header only": ("x,y\n", FIT, "bad.csv has no rows"),
    "two columns of a name": ("x,x.1,x\n1,0,2\n", FIT, "no column 'y'|two columns"),
    "no such label": ("x,z\n1,0\n", FIT, "--labels: there is no column 'y'; the columns are x, z"),
    "labels only": ("y\n1\n0\n", FIT, "takes all columns"),
    "ragged": ('x,y\n1,0\n"2,1\n', FIT, "cannot be read as a table|no rows|Y must hold"),
    "no labels named": ("x,y\n1,0\n", ["fit", "bad.csv", "--out", "m"], "say which columns"),
    "labels of nothing": (
        "x,y\n1,0\n",
        ["fit", "bad.csv", "--labels", "", "--out", "m"],
        "say which columns are labels: --labels",
    ),
    "labels of commas": (
        "x,y\n1,0\n",
        ["fit", "bad.csv", "--labels", " ,", "--out", "m"],
        "--labels must be names separated by commas, got ' ,'",
    ),
    "drop": ("x,y\n1,0\n", [*FIT, "--drop", ","], "--drop must be names separated by commas"),
    "out": ("x,y\n1,0\n", [*FIT[:-1], ""], "--out must name a file to write the model to"),
    "bad count": (
        "x,y\n1,0\n",
        ["fit", "bad.csv", "--labels", "last:9", "--out", "m"],
        "between 1 and 2",
    ),
    "dates": ("x,y\n1,0\n", [*FIT, "--s", "-1"], "s must be a number"),
    "epsilon": ("x,y\n1,0\n", [*FIT, "--epsilon", "1"], "epsilon must be"),
    "order": ("x,y\n1,0\n", [*FIT, "--order", "y,z"], "order must be"),
    "strategy": ("x,y\n1,0\n", [*FIT, "--strategy", "guess"], "strategy must be"),
    "method": (
        "x,y\n1,0\n",
        [*FIT, "--method", "magic"],
        "--method must be one of 'chain', 'relevance', 'ensemble'",
    ),
    "base": (
        "x,y\n1,0\n",
        [*FIT, "--base", "magic"],
        "--base must be one of 'naive', 'forest'",
    ),
    "idle": (
        "x,y\n1,0\n",
        [*FIT, "--trees", "9", "--s", "1"],
        "--trees is for --base f",
    ),
    "no such class": (
        "x,y\n1,0\n",
        [*FIT, "--base", "wrapper", "--estimator", "sklearn.Magic"],
        "--estimator: there is no class 'sklearn.Magic'",
    ),
    "no class at all": (
        "x,y\n1,0\n",
        [*FIT, "--base", "wrapper", "--estimator", "os.getcwd"],
        "--estimator: there is no class 'os.getcwd'",
    ),
    "idle s": ("x,y\n1,0\n", [*FIT, "--method", "joint", "--s", "9"], "--s is for --method chain"),
    "idle values": (
        "x,y\n1,0\n",
        ["evaluate", "bad.csv", "--labels", "y", "--reward", "9", "--method", "chain"],
        "--reward is for --method joint or recommended, not for",
    ),
    "threshold": ("x,y\n1,0\n", [*FIT, "--threshold", "high"], "--threshold must be numbers"),
    "folder": (
        "x,y\n1,0\n",
        ["fit", "bad.csv", "--labels", "y", "--out", "no/where"],
        "folder no does not exist",
    ),
    "a file as a folder": (
        "x,y\n1,0\n",
        ["fit", "bad.csv", "--labels", "y", "--out", "bad.csv/model"],
        "bad.csv is not a folder",
    ),
    "folds": ("x,y\n1,0\n", ["evaluate", "bad.csv", "--labels", "y"], "--folds must be at most"),
}


@pytest.mark.parametrize("where", ["folder", "file"])
def test_what_may_not_be_written_is_named(place, tmp_path, monkeypatch, where):
    """Root may write everywhere, so the system's refusal is made up."""
    if where == "folder":
        monkeypatch.setattr(os, "access", lambda *_: False)
    else:
        refusal = mock.Mock(side_effect=PermissionError(13, "Permission denied", ".a.csv.x8d"))
        monkeypatch.setattr(tempfile, "mkstemp", refusal)
    command = ["-q", "predict", place / "m", place / "new.csv", "--out", "a.csv"]
    done = credalchain(*command, cwd=tmp_path, status=1)
    assert (
        sentence(done)
        == {
            "folder": "credalchain: the folder . is not writable.",
            "file": "credalchain: a.csv cannot be written: Permission denied.",
        }[where]
    )


@pytest.mark.parametrize(
    ("content", "arguments", "message"), BAD_DATA.values(), ids=BAD_DATA.keys()
)
def test_bad_data(content, arguments, message, tmp_path):
    (tmp_path / "bad.csv").write_text(content)
    done = credalchain("-q", *arguments, cwd=tmp_path, status=1)
    assert re.search(message, sentence(done)), done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["bad.csv"]
    assert done.stdout == ""


def test_files_that_are_not_tables(tmp_path):
    (tmp_path / "picture.csv").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4)
    (tmp_path / "text.parquet").write_text("hello")
    (tmp_path / "table.xlsx").write_text("hello")
    for name in ("picture.csv", "text.parquet"):
        done = credalchain("fit", name, "--labels", "y", "--out", "m", cwd=tmp_path, status=1)
        assert f"{name} cannot be read as a table" in sentence(done)
    done = credalchain("fit", "table.xlsx", "--labels", "y", "--out", "m", cwd=tmp_path, status=1)
    assert "must end in .csv" in sentence(done)
    done = credalchain("fit", "gone.csv", "--labels", "y", "--out", "m", cwd=tmp_path, status=1)
    assert "there is no file gone.csv" in sentence(done)


def test_bad_input_at_prediction_time(place, tmp_path):
    SONGS[["id", "key"]].to_csv(tmp_path / "few.csv", index=False)
    done = credalchain(
        "-q", "predict", place / "m", "few.csv", "--out", "a.csv", cwd=tmp_path, status=1
    )
    assert "few.csv lacks 2 of the model's 3 columns: tempo, live" in sentence(done)
    SONGS.assign(tempo="fast").to_csv(tmp_path / "odd.csv", index=False)
    done = credalchain(
        "-q", "predict", place / "m", "odd.csv", "--out", "a.csv", cwd=tmp_path, status=1
    )
    assert "'tempo' of X held numbers in fit and holds text now" in sentence(done)
    done = credalchain(
        "-q",
        "predict",
        place / "m",
        place / "songs.csv",
        "--known",
        "tempo",
        "--out",
        "a.csv",
        cwd=tmp_path,
        status=1,
    )
    assert "there is no label 'tempo'" in sentence(done)
    done = credalchain(
        "-q", "predict", place / "m", place / "new.csv", "--out", "a.docx", cwd=tmp_path, status=1
    )
    assert "must end in .csv" in sentence(done)
    done = credalchain(
        "-q", "predict", place / "m", place / "new.csv", "--out", "no/a.csv", cwd=tmp_path, status=1
    )
    assert "folder no does not exist" in sentence(done)
    explain = ["-q", "explain", place / "m", place / "new.csv", "--row", "1", "--picture"]
    done = credalchain(*explain, "no/why.png", cwd=tmp_path, status=1)
    assert "folder no does not exist" in sentence(done)
    assert done.stdout == ""  # at once
    done = credalchain(
        "explain", place / "m", place / "new.csv", "--row", "99", cwd=tmp_path, status=1
    )
    assert "--row must be between 0 and 79" in sentence(done)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["few.csv", "odd.csv"]


def test_model_files_that_are_none(place, tmp_path):
    import pickle

    (tmp_path / "p").write_bytes(pickle.dumps({"a": 1}))
    (tmp_path / "t").write_text("hello")
    data = place / "new.csv"
    for name, words in (
        ("p", "pickle"),
        ("t", "not a credalchain model"),
        ("g", "there is no file"),
    ):
        for command in (
            ["predict", name, data, "--out", "-"],
            ["info", name],
            ["explain", name, data],
        ):
            assert words in sentence(credalchain(*command, cwd=tmp_path, status=1))


def test_a_full_disk(place, tmp_path):
    (tmp_path / "a.csv").write_text("precious")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))  # Python ignores SIGXFSZ
    try:
        command = ("-q", "predict", place / "m", place / "new.csv", "--out", "a.csv")
        done = credalchain(*command, cwd=tmp_path, status=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "File too large" in sentence(done)
    assert (tmp_path / "a.csv").read_text() == "precious"
    assert [file.name for file in tmp_path.iterdir()] == ["a.csv"]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_behind_stdout(place):
    command = [sys.executable, "-m", "credalchain", "-q", "predict", "m", "new.csv", "--out", "-"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command, cwd=place, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert "No space left on device" in sentence(done)


def test_a_model_without_feature_names_takes_columns_by_position(place, tmp_path):
    numbers = rng.normal(size=(30, 2))
    save_model(CredalChainClassifier().fit(numbers, (numbers > 0).astype(int)), tmp_path / "m")
    pd.DataFrame(numbers, columns=["a", "b"]).to_csv(tmp_path / "n.csv", index=False)
    done = credalchain("-q", "predict", "m", "n.csv", "--out", "-", cwd=tmp_path)
    assert done.stdout.startswith("label0,label1")


@pytest.mark.slow
def test_without_the_extra_it_says_what_to_install(tmp_path):
    code = "import sys; sys.modules['typer'] = None; import credalchain.__main__ as m; m.main()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 1
    assert "pip install 'credalchain[cli]'" in done.stderr


# -- odd tables ------------------------------------------------------------------------------


def fit_odd(folder, text, *options, status=0, labels="y"):
    (folder / "odd.csv").write_text(text, encoding="utf-8")
    arguments = ["fit", "odd.csv", "--labels", labels, "--out", "m", *options]
    return credalchain(*arguments, cwd=folder, status=status)


ROWS = "".join(f"{i % 3},{i % 2},{i % 2}\n" for i in range(12))


def test_two_columns_of_a_name_are_told_apart(tmp_path):
    done = fit_odd(tmp_path, "a,y,y\n" + ROWS)
    assert "two columns are called 'y'; the second is 'y.1'" in done.stderr
    assert load_model(tmp_path / "m").feature_names_in_.tolist() == ["a", "y.1"]


def test_rows_longer_than_the_header_are_refused(tmp_path):
    done = fit_odd(tmp_path, "a,y\n" + ROWS, status=1)
    assert "more cells than its header" in sentence(done)


def test_words_that_look_like_numbers_in_new_rows(tmp_path):
    rows = "".join(f"{'123A'[i % 4]},{i % 2}\n" for i in range(16))
    fit_odd(tmp_path, "grade,y\n" + rows)
    (tmp_path / "new.csv").write_text("grade\n1\n2\n")
    done = credalchain("-q", "predict", "m", "new.csv", "--out", "-", cwd=tmp_path)
    assert len(done.stdout.splitlines()) == 3


def test_names_with_markup_commas_and_dollars(tmp_path):
    header = '"temp [c]","us$ to eu$","r[/x],$y$"\n'
    fit_odd(tmp_path, header + ROWS, labels="r[/x],$y$")
    done = credalchain("explain", "m", "odd.csv", "--picture", "why.png", cwd=tmp_path)
    assert "temp [c]" in done.stdout
    assert "r[/x],$y$" in done.stdout
    done = credalchain(
        "-q", "predict", "m", "odd.csv", "--known", "r[/x],$y$", "--out", "-", cwd=tmp_path
    )
    assert done.stdout.splitlines()[1] == "0"


def test_labels_whose_columns_would_clash(tmp_path):
    fit_odd(tmp_path, "x,a,a_lower\n" + ROWS, labels="a,a_lower")
    done = credalchain(
        "-q", "predict", "m", "odd.csv", "--intervals", "--out", "-", cwd=tmp_path, status=1
    )
    assert "different column names" in sentence(done)
    assert credalchain("-q", "predict", "m", "odd.csv", "--out", "-", cwd=tmp_path).stdout


def test_jobs_and_output_that_make_no_sense(tmp_path):
    assert "n_jobs must be" in sentence(
        fit_odd(tmp_path, "a,b,y\n" + ROWS, "--jobs", "0", status=1)
    )
    (tmp_path / "odd.csv").write_text("a,b,y\n" + ROWS)
    done = credalchain("fit", "odd.csv", "--labels", "y", "--out", "-", cwd=tmp_path, status=1)
    assert "--out must name a file" in sentence(done)
    assert [file.name for file in tmp_path.iterdir()] == ["odd.csv"]


def test_warnings_are_notes(tmp_path):
    done = fit_odd(tmp_path, "x,y,z\n1,0,\n2,1,\n", labels="y,z")
    assert done.stderr.startswith("note: never observed in training")
    assert ".py" not in done.stderr
    quiet = credalchain("-q", "fit", "odd.csv", "--labels", "y,z", "--out", "m", cwd=tmp_path)
    assert quiet.stderr == ""


@pytest.mark.slow
def test_a_reader_that_leaves_early_is_no_error(tmp_path):
    fit_odd(tmp_path, "a,b,y\n" + ROWS * 3000, "--s", "1")
    program = f"'{sys.executable}' -m credalchain"
    command = f"set -o pipefail; {program} -q predict m odd.csv --out - | head -n 1"
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


@pytest.mark.slow
def test_closed_streams(place):
    done = credalchain("predict", "m", "-", "--out", "-", cwd=place, stdin=None, status=1)
    assert "stdin is closed" in sentence(done)
    command = f"'{sys.executable}' -m credalchain predict m new.csv --out - 2>&-"
    done = subprocess.run(
        ["bash", "-c", command], cwd=place, capture_output=True, text=True, check=True
    )
    assert "answered" not in done.stdout


def test_known_cells_of_every_kind(place, tmp_path):
    SONGS.assign(rock=["*", "1.0", "0.0", "True"] * 20).to_csv(tmp_path / "k.csv", index=False)
    done = credalchain(
        "-q", "predict", place / "m", "k.csv", "--known", "rock", "--out", "-", cwd=tmp_path
    )
    rock = [line.split(",")[0] for line in done.stdout.splitlines()[1:]]
    assert rock[1:4] == ["1", "0", "1"]


SLOW_WRAPPER = pytest.param("wrapper", marks=pytest.mark.slow)


@pytest.mark.parametrize("base", ["naive", "forest", SLOW_WRAPPER])
def test_text_that_looks_like_numbers_is_text(tmp_path, base):
    """A column of words in fit; the new file has only words that are digits."""
    train = pd.DataFrame({"zip": ["1", "2", "3", "x"] * 10, "a": [0, 1] * 20, "b": [1, 0] * 20})
    train.to_csv(tmp_path / "train.csv", index=False)
    train[train.zip != "x"][["zip"]].to_csv(tmp_path / "new.csv", index=False)
    options = ("--labels", "a,b", "--base", base, "--out", "m")
    credalchain("fit", "train.csv", *options, cwd=tmp_path)
    done = credalchain("predict", "m", "new.csv", "--out", "-", cwd=tmp_path)
    assert len(done.stdout.splitlines()) == 31


# -- promises ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many_songs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("songs")
    random = np.random.default_rng(1)
    tempo, loud = random.normal(size=(2, 400)).round(3)
    frame = pd.DataFrame({"tempo": tempo, "loud": loud})
    frame["rock"] = (tempo + 0.5 * random.normal(size=400) > 0).astype(int)
    frame["calm"] = (loud + 0.5 * random.normal(size=400) < 0).astype(int)
    frame[:300].to_csv(folder / "songs.csv", index=False)
    frame[300:].to_csv(folder / "later.csv", index=False)
    frame[300:].assign(rock=1 - frame.rock).to_csv(folder / "changed.csv", index=False)
    done = credalchain(
        *["fit", "songs.csv", "--labels", "last:2", "--out", "m", "--promise", "row-error=0.2"],
        cwd=folder,
    )
    assert "promised: rows with a wrong answer: at most 0.2" in done.stderr
    assert "guarantee: on average" in done.stderr
    return folder


def test_a_promise_is_kept_in_the_model_file_and_shown(many_songs):
    done = credalchain("info", "m", cwd=many_songs)
    assert "promised: rows with a wrong answer: at most 0.2" in done.stdout
    assert load_model(many_songs / "m").report_.promises[0].level == 0.2
    done = credalchain("predict", "m", "later.csv", "--out", "-", "--intervals", cwd=many_songs)
    assert done.stdout.startswith("rock,rock_lower,rock_upper,calm")
    done = credalchain("explain", "m", "later.csv", cwd=many_songs)
    assert "promised, reward = " in done.stdout


def test_promises_that_hold_and_promises_that_are_broken(many_songs):
    done = credalchain("check", "m", "later.csv", cwd=many_songs)
    assert done.returncode == 0
    assert done.stdout.startswith("holds so far, though above the level in these rows: rows with")
    done = credalchain("check", "m", "changed.csv", "--json", cwd=many_songs, status=3)
    assert done.returncode == 3
    found = json.loads(done.stdout)
    assert found["verdict"] == "broken"
    assert found["promises"][0]["broken_at"] < 30


def test_tune_shows_what_every_level_buys(many_songs):
    done = credalchain(
        *["tune", "songs.csv", "--labels", "last:2", "--levels", "0.05,0.2,0.4", "--json"],
        *["--picture", "t.png"],
        cwd=many_songs,
    )
    found = json.loads(done.stdout)
    answered = [row["completeness"] for row in found]
    assert [row["level"] for row in found] == [0.05, 0.2, 0.4]
    assert answered == sorted(answered)
    assert (many_songs / "t.png").read_bytes().startswith(b"\x89PNG")
    done = credalchain("tune", "songs.csv", "--labels", "last:2", cwd=many_songs)
    assert "promised at most" in done.stdout
    assert "rows with a wrong answer, on average" in done.stdout


def test_tune_does_not_learn_from_the_groups(many_songs):
    frame = pd.read_csv(many_songs / "songs.csv")
    frame.insert(0, "singer", [f"singer {i // 2}" for i in range(len(frame))])
    frame.to_csv(many_songs / "sung.csv", index=False)
    given = ["sung.csv", "--labels", "last:2", "--method", "chain", "--levels", "0.4"]
    done = credalchain("tune", *given, "--groups", "singer", cwd=many_songs)
    assert "'singer'" not in done.stderr


def test_fit_after_tune_grows_no_forest_again(many_songs, monkeypatch, tmp_path):
    grown, grow_part = [], ExtraTreesRegressor.fit

    def fit(self, *arguments):
        grown.append(self.n_estimators)
        return grow_part(self, *arguments)

    monkeypatch.setattr(ExtraTreesRegressor, "fit", fit)
    monkeypatch.setenv("CREDALCHAIN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("credalchain.cli.options._CACHE_BYTES", 10**9)
    given = ["songs.csv", "--labels", "last:2", "--seed", "5"]
    credalchain("tune", *given, cwd=many_songs)
    n_grown = len(grown)
    promised = ["fit", *given, "--promise", "row-error=0.2"]
    credalchain(*promised, "--out", "kept", cwd=many_songs)
    assert len(grown) == n_grown > 0
    monkeypatch.setattr("credalchain.cli.options._CACHE_BYTES", 1)
    credalchain(*promised, "--out", "again", cwd=many_songs)
    assert len(grown) > n_grown  # removed, as too large
    new = ["later.csv", "--out", "-"]
    kept, again = (credalchain("predict", m, *new, cwd=many_songs) for m in ("kept", "again"))
    assert kept.stdout == again.stdout
    (tmp_path / "file").touch()
    monkeypatch.setenv("CREDALCHAIN_CACHE", str(tmp_path / "file"))  # no folder can be made
    credalchain(*promised, "--out", "without", cwd=many_songs)


def test_the_promise_for_tags_of_each_label(many_songs):
    done = credalchain(
        *["fit", "songs.csv", "--labels", "last:2", "--out", "tags", "--confidence", "0.9"],
        *["--promise", "positive-error=0.4", "--promise", "missed-positives=0.4", "--per-label"],
        cwd=many_songs,
    )
    for label in ("rock", "calm"):
        assert f"wrong answers among the answers yes, for {label}: at most 0.4" in done.stderr
    assert "split evenly over 4 cautions" in done.stderr
    assert "a wrong no costs" in done.stderr  # with the rule that suits the promise
    assert credalchain("info", "tags", cwd=many_songs).stdout.count("promised: ") == 4


def test_promises_for_labels_at_the_command_line(many_songs):
    done = credalchain(
        *["fit", "songs.csv", "--labels", "last:2", "--out", "by-label", "--confidence", "0.9"],
        *["--promise", "selective-error:rock=0.3", "--promise", "missed-positives:calm=0.4"],
        cwd=many_songs,
    )
    assert "wrong answers among the answers, for rock: at most 0.3" in done.stderr
    assert "split evenly over 2 cautions" in done.stderr
    assert credalchain("info", "by-label", cwd=many_songs).stdout.count("promised: ") == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "--promise", "row=0.1", "--out", "x"], "--promise must be RISK=LEVEL"),
        (["fit", "--promise", "row-error", "--out", "x"], "--promise must be RISK=LEVEL"),
        (["fit", "--promise", "row-error=few", "--out", "x"], "the level must be a number"),
        (["fit", "--promise", "row-error=2", "--out", "x"], "more than 0 and less than 1, got 2"),
        (["fit", "--promise", "row-error:jazz=0.1", "--out", "x"], "'jazz' is not one of"),
        (["fit", "--promise", "row-error=0.001", "--out", "x"], "needs at least 999 rows"),
        (["fit", "--promise", "selective-error=0.1", "--out", "x"], "give a confidence"),
        (["fit", "--confidence", "0.9", "--out", "x"], "--confidence is for --promise"),
        (["fit", "--calibration", "0.5", "--out", "x"], "--calibration is for --promise"),
        (["fit", "--per-label", "--out", "x"], "--per-label is for --promise"),
        (["fit", "--s", "7", "--promise", "row-error=0.1", "--out", "x"], "--s is chosen by"),
        (["tune", "--calibration", "5"], "calibration must be a share of the rows between 0 and 1"),
        (["tune", "--risk", "errors"], "--risk must be one of"),
        (["tune", "--levels", "0,1"], "more than 0 and less than 1"),
        (["tune", "--picture", "t.txt"], "must end in .png"),
    ],
)
def test_promises_that_cannot_be_read(many_songs, arguments, words):
    command, *options = arguments
    given = ["songs.csv", "--labels", "last:2", *options]
    done = credalchain(command, *given, cwd=many_songs, status=1)
    assert words in done.stderr
    assert not (many_songs / "x").exists()


def test_options_that_a_promise_has_chosen_are_refused(many_songs):
    given = ["later.csv", "--out", "-", "--s", "1"]
    done = credalchain("predict", "m", *given, cwd=many_songs, status=1)
    assert sentence(done).endswith("--s: this model keeps a promise, which chose its caution.")


def test_the_list_of_commands_says_what_they_say_themselves():
    for name, (module, words) in app._COMMANDS.items():
        found = getattr(importlib.import_module(f"credalchain.cli.{module}"), name)
        if callable(getattr(found, "__wrapped__", found)) and not hasattr(
            found, "registered_commands"
        ):
            assert " ".join(found.__doc__.split("\n\n")[0].split()) == words
        else:
            assert found.info.help.startswith(words.rstrip("."))


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["--version"], ["--help"]])
def test_version_and_help_do_not_import_what_they_do_not_need(arguments):
    code = (
        "import sys; sys.argv = ['credalchain', *sys.argv[1:]]\n"
        "from credalchain.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'sklearn', 'pandas', 'scipy', 'numba', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True)


@pytest.mark.slow
def test_importing_the_package_is_quick_and_complete():
    code = (
        "import sys, credalchain\n"
        "assert not {'sklearn', 'numpy'} & set(sys.modules)\n"
        "assert set(credalchain.__all__) <= set(dir(credalchain))\n"
        "for name in credalchain.__all__: getattr(credalchain, name)\n"
        "credalchain.metrics.set_accuracy\n"
        "from credalchain import *\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="attribute '?nothing"):
        _ = credalchain_package.nothing
