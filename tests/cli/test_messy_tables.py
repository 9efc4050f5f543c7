"""Tables as people have them."""

import json
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from credalchain import (
    CredalChainClassifier,
    CredalJointForest,
    JointDecision,
    choose_caution,
    load_model,
)
from credalchain.columns import describe_features, describe_labels
from credalchain.datasets.files import read_frame
from credalchain.metrics import completeness, set_accuracy
from shell import credalchain

CHAIN = ("--s", "2")
N = 40


@pytest.fixture
def songs():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"tempo": rng.normal(size=N).round(3), "city": ["Köln", "Öslo"] * (N // 2)}
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
    credalchain("fit", "whole.csv", "--labels", "last:2", *CHAIN, "--out", "a", cwd=tmp_path)
    done = credalchain("fit", "songs.csv", "--labels", "last:2", *CHAIN, "--out", "b", cwd=tmp_path)
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
        credalchain(
            "fit", f"{name}.csv", "--labels", "rock,pop", *CHAIN, "--out", name, cwd=tmp_path
        )
    one, other = (load_model(tmp_path / name).model_.counts for name in ("whole", "songs"))
    assert one == other
    songs.loc[3, "rock"] = "?"
    songs.to_csv(tmp_path / "songs.csv", index=False)
    credalchain("fit", "songs.csv", "--labels", "rock,pop", *CHAIN, "--out", "gap", cwd=tmp_path)
    assert load_model(tmp_path / "gap").model_.counts.label[0].sum() == N - 1
    songs.loc[3, "rock"] = "perhaps"
    songs.to_csv(tmp_path / "songs.csv", index=False)
    done = credalchain(
        "fit", "songs.csv", "--labels", "rock,pop", "--out", "x", cwd=tmp_path, status=1
    )
    assert "label column 'rock': cells must be 0 or 1" in done.stderr
    assert "got 'perhaps' in row 3" in done.stderr


def test_one_row_of_one_column_with_one_label(tmp_path):
    (tmp_path / "songs.csv").write_text("x,rock\n" + "1,0\n2,1\n" * 12)
    (tmp_path / "new.csv").write_text("x\n1\n")
    given = ["songs.csv", "--labels", "rock", *CHAIN]
    done = credalchain("fit", *given, "--out", "m", cwd=tmp_path)
    assert "24 rows, 1 feature, 1 label -> m" in done.stderr
    done = credalchain("predict", "m", "new.csv", "--out", "a.csv", cwd=tmp_path)
    assert re.search("1 row, .* of 1 label answered", done.stderr)
    prediction = load_model(tmp_path / "m").infer(pd.DataFrame({"x": [1]}))
    assert "1 row, 1 label: " in repr(prediction)


def test_a_column_of_tags(tmp_path):
    frame = pd.DataFrame(
        {"x": range(6), "tags": ["rock; pop", "pop", "", None, "rock;rock", "jazz"]}
    )
    frame.to_csv(tmp_path / "songs.csv", index=False)
    given = ["songs.csv", "--labels", "tags", "--tag-separator", ";"]
    credalchain("fit", *given, *CHAIN, "--out", "m", cwd=tmp_path)
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
    assert "Köln" in done.stdout
    found = json.loads(credalchain("describe", *given, "--json", cwd=tmp_path).stdout)
    notes = {one["name"]: one["note"] for one in found["labels"]}
    notes |= {one["name"]: one["left_out"] for one in found["features"]}
    assert "like names" in notes["title"]
    assert "like identifiers" in notes["id"]
    assert "no values" in notes["empty"]
    assert "same in all rows" in notes["same"]
    assert notes["tempo"] == notes["rock"] == ""
    assert "always no" in notes["never"]
    done = credalchain("fit", *given, "--out", "m", cwd=tmp_path)
    for words in ("'title': hardly any words", "'id': 40 different whole", "'never': always no"):
        assert words in done.stderr
    assert "labels that are the same" not in done.stderr  # the note is enough


def test_descriptions_of_arrays_and_gaps():
    (feature,) = describe_features(np.array([[1.0], [np.nan], [3.0]]))
    assert (feature.kind, feature.n_distinct, round(feature.missing, 2)) == ("numbers", 2, 0.33)
    gone, rare = describe_labels([[None, 1], [None, 0], [None, 0]])
    assert "never observed" in gone.note
    assert rare.note == "only 1 row is yes"


def test_values_that_were_never_seen_are_told(songs, tmp_path):
    songs.to_csv(tmp_path / "songs.csv", index=False)
    songs.loc[:2, "city"] = "Bern"
    songs.to_csv(tmp_path / "new.csv", index=False)
    for base in ("naive", "forest"):
        options = ["--labels", "last:2", "--base", base, "--out", "m"]
        credalchain("fit", "songs.csv", *options, cwd=tmp_path)
        done = credalchain("predict", "m", "new.csv", "--out", "o.csv", cwd=tmp_path)
        assert "column 'city' of X holds values that were never seen in fit, such as 'Bern'" in (
            done.stderr
        )
        assert done.stderr.count("never seen") == 1  # not the warning besides
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
        done = credalchain("fit", source, "--labels", "last:2", *CHAIN, "--out", out, cwd=tmp_path)
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


def test_describe_without_labels_folders_and_compressed_files(songs, tmp_path):
    songs.to_csv(tmp_path / "songs.csv", index=False)
    shown = credalchain("describe", "songs.csv", cwd=tmp_path).stdout
    assert "4 features, 0 labels" in shown
    songs.to_csv(tmp_path / "songs.csv.gz", index=False)
    assert credalchain("describe", "songs.csv.gz", cwd=tmp_path).stdout == shown
    (tmp_path / "parts").mkdir()
    done = credalchain("describe", "parts", cwd=tmp_path, status=1)
    assert "parts has no .csv, .tsv or .parquet files" in done.stderr
    for at in (0, len(songs) // 2):
        songs[at : at + len(songs) // 2].to_csv(tmp_path / "parts" / f"{at}.csv", index=False)
    assert credalchain("describe", "parts", cwd=tmp_path).stdout == shown


def test_what_is_read_is_not_replaced(songs, tmp_path):
    """Nor is a file of answers put where it would be read the next time."""
    songs.to_csv(tmp_path / "songs.csv", index=False)
    (tmp_path / "parts").mkdir()
    songs.to_csv(tmp_path / "parts" / "a.csv", index=False)
    before = (tmp_path / "songs.csv").read_bytes()
    chain = ("--labels", "rock", "--s", "1")
    done = credalchain("fit", "songs.csv", *chain, "--out", "songs.csv", cwd=tmp_path, status=1)
    assert "--out songs.csv: a model file cannot end like a table" in done.stderr
    credalchain("fit", "songs.csv", *chain, "--out", "m", cwd=tmp_path)
    for data, out, words in (
        ("songs.csv", "songs.csv", "is a file that is read"),
        ("songs.csv", "./parts/../songs.csv", "is a file that is read"),
        ("songs.csv", "m", "is a file that is read"),
        ("parts", "parts/answers.csv", "is in the folder that is read"),
        ("parts/*.csv", "parts/a.csv", "is a file that is read"),
    ):
        done = credalchain("predict", "m", data, "--out", out, cwd=tmp_path, status=1)
        assert words in done.stderr
    assert (tmp_path / "songs.csv").read_bytes() == before
    assert [file.name for file in (tmp_path / "parts").iterdir()] == ["a.csv"]


def test_dates_of_parquet_are_those_of_csv(songs, tmp_path):
    dated = songs.assign(day=pd.date_range("2024-01-01", periods=len(songs)))
    dated.to_parquet(tmp_path / "songs.parquet")
    dated.to_csv(tmp_path / "songs.csv", index=False)
    shown = [
        credalchain("describe", f"songs.{one}", cwd=tmp_path).stdout for one in ("csv", "parquet")
    ]
    assert shown[0] == shown[1]
    assert "2024-01-01 → year 2024" in shown[0]
    (tmp_path / "chunks").mkdir()
    dated.to_parquet(tmp_path / "chunks" / "0.parquet")
    given = ["--labels", "rock", "--method", "chain", "--out", "m"]
    assert "is read as a date" in credalchain("fit", "chunks", *given, cwd=tmp_path).stderr


def test_a_wrong_separator_of_tags_is_told(tmp_path):
    rng = np.random.default_rng(0)
    tags = ["; ".join(rng.choice(list("abcdefgh"), 3, replace=False)) for _ in range(60)]
    pd.DataFrame({"x": rng.normal(size=60), "tags": tags}).to_csv(tmp_path / "t.csv", index=False)
    given = ("t.csv", "--labels", "tags", "--s", "1", "--out", "m")
    done = credalchain("fit", *given, "--tag-separator", ",", cwd=tmp_path)
    assert "tags occur once: does ',' stand between tags?" in done.stderr
    done = credalchain("fit", *given, cwd=tmp_path, status=1)
    assert "For a column of tags: --tag-separator." in done.stderr
    assert (
        "occur once" not in credalchain("fit", *given, "--tag-separator", ";", cwd=tmp_path).stderr
    )


def test_names_and_row_numbers_are_left_out_unless_they_are_asked_for(songs, tmp_path):
    songs.insert(0, "row", range(N))
    songs.insert(1, "title", [f"song {i}" for i in range(N)])
    songs.to_csv(tmp_path / "songs.csv", index=False)
    given = ["songs.csv", "--labels", "last:2", *CHAIN, "--out", "m"]

    def columns():
        return load_model(tmp_path / "m").feature_names_in_.tolist()

    done = credalchain("fit", *given, cwd=tmp_path)
    others = [name for name in songs.columns[:-2] if name not in ("row", "title")]
    assert columns() == others
    assert "column 'title': hardly any words, and nearly all rows differ, like names" in done.stderr
    assert "it is left out (--keep 'title' takes it)" in done.stderr
    done = credalchain("predict", "m", "songs.csv", "--out", "a.csv", cwd=tmp_path)
    assert len(pd.read_csv(tmp_path / "a.csv")) == N
    done = credalchain("fit", *given, "--keep", "row,title", cwd=tmp_path)
    assert columns() == ["row", "title", *others]
    assert "left out" not in done.stderr
    credalchain("fit", *given, "--text", "title", "--drop", "tempo", cwd=tmp_path)
    assert columns() == ["title", "city"]
    (tmp_path / "parts").mkdir()
    songs.to_csv(tmp_path / "parts" / "1.csv", index=False)
    done = credalchain("fit", "parts", *given[1:], cwd=tmp_path)
    assert columns() == others
    songs[["title", "rock"]].to_csv(tmp_path / "songs.csv", index=False)
    done = credalchain("fit", "songs.csv", "--labels", "rock", "--out", "x", cwd=tmp_path, status=1)
    assert "every column holds identifiers" in done.stderr


def test_a_dialect_can_be_given(songs, tmp_path):
    """Where it would not be found out."""
    songs.to_csv(tmp_path / "whole.csv", index=False)
    songs.to_csv(tmp_path / "odd.csv", index=False, sep="#", decimal=",", encoding="cp1250")
    options = ["--sep", "#", "--decimal", ",", "--encoding", "cp1250"]
    credalchain("fit", "whole.csv", "--labels", "last:2", *CHAIN, "--out", "a", cwd=tmp_path)
    given = ["odd.csv", "--labels", "last:2", *CHAIN, "--out", "b", *options]
    assert "note: odd.csv" not in credalchain("fit", *given, cwd=tmp_path).stderr
    assert load_model(tmp_path / "b").model_.counts == load_model(tmp_path / "a").model_.counts
    (tmp_path / "parts").mkdir()
    (tmp_path / "odd.csv").rename(tmp_path / "parts" / "1.csv")
    credalchain("predict", "b", "parts", "--out", "o.csv", *options, cwd=tmp_path)
    credalchain("predict", "a", "whole.csv", "--out", "p.csv", cwd=tmp_path)
    assert (tmp_path / "o.csv").read_text() == (tmp_path / "p.csv").read_text()
    for words, message in (
        (["--sep", "ab"], "--sep must be one character, or tab, got 'ab'"),
        (["--decimal", "x"], "--decimal must be . or a comma, got 'x'"),
        (["--sep", ",", "--decimal", ","], "--sep and --decimal must differ, got ','"),
        (["--encoding", "klingon"], "there is no encoding 'klingon'"),
    ):
        done = credalchain("describe", "whole.csv", *words, cwd=tmp_path, status=1)
        assert message in done.stderr


def test_zstandard(songs, tmp_path):
    songs.to_csv(tmp_path / "songs.csv", index=False)
    content = (tmp_path / "songs.csv").read_bytes()
    with pa.output_stream(str(tmp_path / "songs.csv.zst"), compression="zstd") as file:
        file.write(content)
    for source, out in (("songs.csv", "a"), ("songs.csv.zst", "b")):
        given = [source, "--labels", "last:2", *CHAIN, "--out", out]
        credalchain("fit", *given, cwd=tmp_path)
    assert load_model(tmp_path / "b").model_.counts == load_model(tmp_path / "a").model_.counts


@pytest.mark.slow
def test_the_strong_model_and_a_caution_that_answers_most_are_the_default(songs, tmp_path):
    songs.to_csv(tmp_path / "songs.csv", index=False)
    done = credalchain("fit", "songs.csv", "--labels", "last:2", "--out", "m", cwd=tmp_path)
    model = load_model(tmp_path / "m")
    assert isinstance(model, JointDecision)
    assert re.search(r"reward = \S+ answers \d+% of the labels of 10 rows held out", done.stderr)
    chosen = choose_caution(
        JointDecision(CredalJointForest(random_state=0), random_state=0),
        songs.drop(columns=["rock", "pop"]), songs[["rock", "pop"]], random_state=0,
    )  # fmt: skip
    assert model.reward == chosen.value
    given = ["songs.csv", "--labels", "last:2", "--out", "m"]
    for options in (["--s", "1"], ["--strategy", "marginalization"], ["--base", "wrapper"]):
        credalchain("fit", *given, *options, cwd=tmp_path)
        assert isinstance(load_model(tmp_path / "m"), CredalChainClassifier)


def test_evaluate_takes_values_that_answer_more_and_less(songs, tmp_path):
    songs.to_csv(tmp_path / "songs.csv", index=False)
    given = ["songs.csv", "--labels", "last:2", "--folds", "2", "--json"]
    for options, parameter in (([], "reward"), (["--method", "chain"], "s")):
        done = credalchain("evaluate", *given, *options, cwd=tmp_path)
        found = json.loads(done.stdout)
        answered = [one["measures"]["completeness"]["mean"] for one in found]
        assert len(found) >= 3
        assert max(answered) > 0.9
        assert min(answered) < 0.7
        assert all(parameter in one for one in found)
    done = credalchain("evaluate", *given, "--s", "1e9", cwd=tmp_path)
    assert "note: s = 1e+09 answers 0.0% of the labels." in done.stderr


def test_evaluate_flags_intervals_that_are_too_sure(tmp_path):
    """The same feature ten times: what the naive model counts as ten pieces of evidence."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    frame = pd.DataFrame({f"x{i}": x for i in range(10)})
    frame["rock"] = (x + 1.5 * rng.normal(size=400) > 0).astype(int)
    frame.to_csv(tmp_path / "songs.csv", index=False)
    given = ["songs.csv", "--labels", "rock", "--folds", "3", "--method", "chain", "--s", "1"]
    done = credalchain("evaluate", *given, cwd=tmp_path)
    assert "note: at s = 1 intervals are too sure" in done.stderr


def test_tags_that_nobody_knows_and_capitals(tmp_path):
    tags = ["rock; pop", "?", "", "ROCK", "pop"] * 6
    tags[2], tags[7] = "rock;ROCK", "rock"
    frame = pd.DataFrame({"x": np.random.default_rng(0).normal(size=30), "tags": tags})
    frame.to_csv(tmp_path / "songs.csv", index=False)
    given = ["songs.csv", "--labels", "tags", "--tag-separator", ";"]
    done = credalchain("describe", *given, "--json", cwd=tmp_path)
    labels = {one["name"]: one for one in json.loads(done.stdout)["labels"]}
    assert set(labels) == {"rock", "pop"}
    assert labels["pop"]["n_missing"] == 6
    assert (labels["rock"]["n_yes"], labels["rock"]["n_no"]) == (14, 10)
    assert "are one label: ROCK as rock (--case-sensitive keeps them apart)" in done.stderr
    done = credalchain("describe", *given, "--case-sensitive", "--json", cwd=tmp_path)
    assert {"rock", "pop", "ROCK"} == {one["name"] for one in json.loads(done.stdout)["labels"]}
    idle = ["fit", "songs.csv", "--labels", "x", "--case-sensitive", "--out", "m"]
    assert "is for --tag-separator" in credalchain(*idle, cwd=tmp_path, status=1).stderr
    credalchain("fit", *given, "--reward", "1", "--out", "m", cwd=tmp_path)
    done = credalchain("check", "m", "songs.csv", "--tags", "tags", cwd=tmp_path)
    assert "of the labels answered in 30 rows" in done.stdout
    assert "does not know" not in done.stderr
    frame.replace("rock; pop", "Rock").to_csv(tmp_path / "new.csv", index=False)
    done = credalchain("check", "m", "new.csv", "--tags", "tags", cwd=tmp_path)
    assert "are one label: ROCK as rock, Rock as rock" in done.stderr  # as the model spells it
    frame.replace("ROCK", "punk").to_csv(tmp_path / "new.csv", index=False)
    done = credalchain("check", "m", "new.csv", "--tags", "tags", cwd=tmp_path)
    assert "tags that the model does not know in 6 of 20 rows with tags" in done.stderr
    given = ["check", "m", "songs.csv", "--tags", "tags", "--tag-separator", "o"]
    done = credalchain(*given, cwd=tmp_path, status=1)
    assert "does 'o' stand between tags (--tag-separator)?" in done.stderr


def test_check_scores_a_model_without_a_promise(songs, tmp_path):
    songs.to_csv(tmp_path / "songs.csv", index=False)
    credalchain("fit", "songs.csv", "--labels", "last:2", *CHAIN, "--out", "m", cwd=tmp_path)
    done = credalchain("check", "m", "songs.csv", "--json", cwd=tmp_path)
    model = load_model(tmp_path / "m")
    prediction = model.infer(songs[["tempo", "city"]])
    found = json.loads(done.stdout)
    assert found["completeness"] == completeness(songs[["rock", "pop"]], prediction)
    assert found["set_accuracy"] == set_accuracy(songs[["rock", "pop"]], prediction)


def test_a_misspelt_label_and_a_folder_that_is_not_there(songs, tmp_path):
    songs.to_csv(tmp_path / "songs.csv", index=False)
    done = credalchain("fit", "songs.csv", "--labels", "Rok", "--out", "m", cwd=tmp_path, status=1)
    assert "there is no column 'Rok' (did you mean 'rock'?)" in done.stderr
    given = ["songs.csv", "--labels", "rock", "--out", "nowhere/m"]
    done = credalchain("fit", *given, cwd=tmp_path, status=1)
    assert done.stderr == "credalchain: the folder nowhere does not exist.\n"  # at once


def test_explanations_of_a_promise_name_rows_of_the_file(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 3)).round(3), columns=list("abc"))
    frame["rock"] = (frame.a + 0.3 * rng.normal(size=200) > 0).astype(int)
    frame.to_csv(tmp_path / "songs.csv", index=False)
    given = ["songs.csv", "--labels", "rock", "--promise", "row-error=0.3", "--out", "m"]
    credalchain("fit", *given, cwd=tmp_path)
    done = credalchain("explain", "m", "songs.csv", "--row", "5", "--json", cwd=tmp_path)
    numbers = [one["row"] for one in json.loads(done.stdout)["similar"]]
    nearest = np.abs(frame[list("abc")] - frame.loc[5, list("abc")]).sum(axis=1)
    assert max(numbers) > 140  # the fitted rows alone are 140
    assert nearest[numbers].mean() < nearest.mean()


def test_two_columns_of_a_name_are_told_apart_in_pieces_too(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "1.csv").write_text("a,a,rock\n" + "1,2,0\n3,4,1\n" * 20)
    done = credalchain("fit", "parts", "--labels", "rock", *CHAIN, "--out", "m", cwd=tmp_path)
    assert "1.csv: two columns are called 'a'; the second is 'a.1'" in done.stderr
    assert load_model(tmp_path / "m").feature_names_in_.tolist() == ["a", "a.1"]


def test_intervals_of_single_probabilities_are_noted(songs, tmp_path):
    songs.to_csv(tmp_path / "songs.csv", index=False)
    for method, noted in ((CHAIN, False), (["--reward", "1", "--trees", "5"], True)):
        credalchain("fit", "songs.csv", "--labels", "last:2", *method, "--out", "m", cwd=tmp_path)
        given = ["predict", "m", "songs.csv", "--out", "-", "--intervals"]
        done = credalchain(*given, cwd=tmp_path)
        assert ("lower and upper are the same" in done.stderr) == noted
