"""Tables as people have them."""

import json

import numpy as np
import pandas as pd
import pytest

from credalchain import load_model
from credalchain.columns import describe_features, describe_labels
from credalchain.datasets.files import read_frame
from shell import credalchain

N = 40


@pytest.fixture
def songs():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"tempo": rng.normal(size=N).round(2), "city": ["Köln", "Öslo"] * (N // 2)}
    )
    frame["rock"] = (frame.tempo > 0).astype(int)
    frame["pop"] = rng.integers(0, 2, N)
    return frame


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sep": ";"}, "separated by a semicolon"),
        ({"sep": "|"}, "separated by a bar"),
        ({"sep": "\t"}, "separated by a tab"),
        ({"sep": ";", "decimal": ","}, "decimal comma"),
        ({"encoding": "cp1252"}, "read as cp1252"),
        ({"encoding": "utf-16"}, ""),
        ({"encoding": "utf-8-sig"}, ""),
        ({"sep": ";", "decimal": ",", "encoding": "cp1252"}, "decimal comma"),
    ],
)
def test_dialects(songs, tmp_path, options, words):
    songs.to_csv(tmp_path / "whole.csv", index=False)
    songs.to_csv(tmp_path / "songs.csv", index=False, **options)
    credalchain("fit", "whole.csv", "--labels", "last:2", "--out", "a", cwd=tmp_path)
    done = credalchain("fit", "songs.csv", "--labels", "last:2", "--out", "b", cwd=tmp_path)
    assert words in done.stderr
    assert load_model(tmp_path / "b").model_.counts == load_model(tmp_path / "a").model_.counts


def test_one_column_of_texts_is_no_other_dialect(tmp_path):
    (tmp_path / "a.csv").write_text("words\na; b\nc\nd; e; f\n")
    assert read_frame(tmp_path / "a.csv").words.tolist() == ["a; b", "c", "d; e; f"]
    (tmp_path / "b.csv").write_text('x,y\n"1;2",3\n')
    assert list(read_frame(tmp_path / "b.csv").columns) == ["x", "y"]


@pytest.mark.parametrize("words", [("yes", "no"), ("TRUE", "False"), ("Y", "n"), (" Yes", "NO ")])
def test_labels_in_words(songs, tmp_path, words):
    songs.to_csv(tmp_path / "whole.csv", index=False)
    for name in ("rock", "pop"):
        songs[name] = np.where(songs[name] == 1, *words)
    songs.to_csv(tmp_path / "songs.csv", index=False)
    for name in ("whole", "songs"):
        credalchain("fit", f"{name}.csv", "--labels", "rock,pop", "--out", name, cwd=tmp_path)
    one, other = (load_model(tmp_path / name).model_.counts for name in ("whole", "songs"))
    assert one == other
    songs.loc[3, "rock"] = "?"
    songs.to_csv(tmp_path / "songs.csv", index=False)
    credalchain("fit", "songs.csv", "--labels", "rock,pop", "--out", "gap", cwd=tmp_path)
    assert load_model(tmp_path / "gap").model_.counts.label[0].sum() == N - 1
    songs.loc[3, "rock"] = "perhaps"
    songs.to_csv(tmp_path / "songs.csv", index=False)
    done = credalchain(
        "fit", "songs.csv", "--labels", "rock,pop", "--out", "x", cwd=tmp_path, status=1
    )
    assert "label column 'rock': cells must be 0 or 1" in done.stderr
    assert "got 'perhaps' in row 3" in done.stderr


def test_a_column_of_tags(tmp_path):
    frame = pd.DataFrame(
        {"x": range(6), "tags": ["rock; pop", "pop", "", None, "rock;rock", "jazz"]}
    )
    frame.to_csv(tmp_path / "songs.csv", index=False)
    given = ["songs.csv", "--labels", "tags", "--tag-separator", ";"]
    credalchain("fit", *given, "--out", "m", cwd=tmp_path)
    model = load_model(tmp_path / "m")
    assert model.label_names_.tolist() == ["jazz", "pop", "rock"]
    assert model.model_.counts.label.tolist() == [[5, 1], [4, 2], [4, 2]]
    done = credalchain(
        "fit", "songs.csv", "--labels", "x,tags", "--tag-separator", ";", "--out", "m",
        cwd=tmp_path, status=1,
    )  # fmt: skip
    assert "for one column of tags" in done.stderr or "takes all columns" in done.stderr


def test_mulan_labels_by_the_name_of_the_file(tmp_path):
    (tmp_path / "birds-train.arff").write_text(
        "@relation birds\n@attribute x numeric\n@attribute owl {0,1}\n@data\n"
        + "\n".join(f"{i},{i % 2}" for i in range(10))
    )
    (tmp_path / "birds.xml").write_text('<labels><label name="owl"></label></labels>')
    given = ["birds-train.arff", "--labels", "birds.xml", "--out", "m"]
    credalchain("fit", *given, cwd=tmp_path)
    assert load_model(tmp_path / "m").label_names_.tolist() == ["owl"]


def test_describe(songs, tmp_path):
    songs.insert(0, "id", range(N))
    songs["title"] = [f"song {i}" for i in range(N)]
    songs["empty"] = np.nan
    songs["same"] = "x"
    songs["never"] = 0
    songs.to_csv(tmp_path / "songs.csv", index=False)
    given = ["songs.csv", "--labels", "rock,pop,never"]
    done = credalchain("describe", *given, cwd=tmp_path)
    assert "like an index" in done.stdout
    found = json.loads(credalchain("describe", *given, "--json", cwd=tmp_path).stdout)
    notes = {one["name"]: one["note"] for one in (*found["features"], *found["labels"])}
    assert "its own value" in notes["title"]
    assert "no values" in notes["empty"]
    assert "same in all rows" in notes["same"]
    assert notes["tempo"] == notes["rock"] == ""
    assert "always no" in notes["never"]
    done = credalchain("fit", *given, "--out", "m", cwd=tmp_path)
    for words in ("'title': nearly every row", "'id': counts the rows", "'never': always no"):
        assert words in done.stderr


def test_descriptions_of_arrays_and_gaps():
    (feature,) = describe_features(np.array([[1.0], [np.nan], [3.0]]))
    assert (feature.kind, feature.n_distinct, round(feature.missing, 2)) == ("numbers", 2, 0.33)
    gone, rare = describe_labels([[None, 1], [None, 0], [None, 0]])
    assert "never observed" in gone.note
    assert rare.note == "only 1 rows are yes"


def test_values_that_were_never_seen_are_told(songs, tmp_path):
    songs.to_csv(tmp_path / "songs.csv", index=False)
    songs.loc[:2, "city"] = "Bern"
    songs.to_csv(tmp_path / "new.csv", index=False)
    for base in ("naive", "forest"):
        options = ["--labels", "last:2", "--base", base, "--out", "m"]
        credalchain("fit", "songs.csv", *options, cwd=tmp_path)
        done = credalchain("predict", "m", "new.csv", "--out", "o.csv", cwd=tmp_path)
        assert "column 'city': 3 rows hold values never seen in fit, such as 'Bern'" in done.stderr
        done = credalchain("predict", "m", "songs.csv", "--out", "o.csv", cwd=tmp_path)
        assert "never seen" not in done.stderr


@pytest.mark.parametrize("compressed", [False, True])
def test_dialects_of_files_in_a_folder(songs, tmp_path, compressed):
    songs.to_csv(tmp_path / "whole.csv", index=False)
    (tmp_path / "parts").mkdir()
    for at in (0, 20):
        name = f"{at:02}.csv" + (".gz" if compressed else "")
        options = {"sep": ";", "decimal": ",", "encoding": "cp1252", "index": False}
        songs[at : at + 20].to_csv(tmp_path / "parts" / name, **options)
    for source, out in (("whole.csv", "a"), ("parts", "b")):
        done = credalchain("fit", source, "--labels", "last:2", "--out", out, cwd=tmp_path)
    assert "decimal comma" in done.stderr
    assert load_model(tmp_path / "b").model_.counts == load_model(tmp_path / "a").model_.counts


def test_labels_in_words_everywhere(songs, tmp_path):
    for name in ("rock", "pop"):
        songs[name] = np.where(songs[name] == 1, "yes", "no")
    songs.to_csv(tmp_path / "songs.csv", index=False)
    given = ["--labels", "rock,pop", "--promise", "row-error=0.5", "--out", "m"]
    credalchain("fit", "songs.csv", *given, cwd=tmp_path)
    assert credalchain("check", "m", "songs.csv", cwd=tmp_path).stdout
    credalchain("predict", "m", "songs.csv", "--known", "rock", "--out", "o.csv", cwd=tmp_path)
    answers = pd.read_csv(tmp_path / "o.csv")
    assert answers.rock.tolist() == (songs.rock == "yes").astype(int).tolist()


def test_describe_without_labels_and_folders_where_they_are_not_read(songs, tmp_path):
    songs.to_csv(tmp_path / "songs.csv", index=False)
    assert "4 features, 0 labels" in credalchain("describe", "songs.csv", cwd=tmp_path).stdout
    (tmp_path / "parts").mkdir()
    done = credalchain("describe", "parts", cwd=tmp_path, status=1)
    assert "parts is a folder" in done.stderr
