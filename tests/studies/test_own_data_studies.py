"""Studies on files of one's own."""

import json
import shutil
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from credalchain import PromisedClassifier
from credalchain.datasets import load
from credalchain.studies.results import Store
from credalchain.studies.running import run_study
from credalchain.studies.study_file import StudyError, load_study
from credalchain.studies.study_page import write_report
from credalchain.studies.tasks import expand, folds_of
from shell import credalchain

STUDY = """
seed = 3
measures = ["set_accuracy", "completeness"]
data = [{entry}]

[cross_validation]
folds = 3

[[method]]
s = [0.0, 2.0]
"""
SONGS = '{ file = "songs.csv", labels = ["rock", "pop"] }'
ARFF = """@relation '{relation}'
@attribute tempo numeric
@attribute rock {{0,1}}
@attribute pop {{0,1}}
@data
{rows}
"""


def songs(seed=0, n=60):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {"tempo": rng.normal(120, 20, n).round(1), "key": rng.choice(list("CDE"), n)}
    )
    table["rock"] = (table.tempo > 120).astype(int)
    table["pop"] = (table.key == "C").astype(int)
    return table


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "here"
    place.mkdir()
    songs().to_csv(place / "songs.csv", index=False)
    return place


def write(folder, entry=SONGS):
    path = folder / "study.toml"
    path.write_text(STUDY.format(entry=entry))
    return path


def run(study, folder, n_jobs=1):
    store = Store(folder)
    assert run_study(study, store, n_jobs=n_jobs) == 0, store.errors(study)
    return store


def values(store, study):
    return store.results(study).drop(columns=["fit_seconds", "predict_seconds"])


def test_a_study_on_a_csv_beside_it(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)  # the file is looked for beside the study
    study = load_study("here/study.toml") if write(folder) else None
    store = run(study, folder / "r")
    assert set(store.results(study)["dataset"]) == {"songs"}
    (fact,) = store.facts()
    assert (fact["rows"], fact["features"], fact["labels"], fact["domain"]) == (60, 2, 2, "")
    again = store.study()
    assert store.n_open(again) == 0
    assert write_report(again, store, folder / "report")[-1].is_file()


def test_from_the_shell_and_resumed_in_worker_processes(folder):
    write(folder, f'{SONGS}, "embedded:yeast"')
    command = ("run", "here/study.toml", "--out", "r", "--jobs", "2")
    assert "2 of 2 tasks done" in credalchain(*command, cwd=folder.parent).stderr
    results = folder.parent / "r" / "results"
    (lost,) = results.glob("songs-*.parquet")
    kept = {file.name: file.read_bytes() for file in results.iterdir() if file != lost}
    before = pd.read_parquet(lost)
    lost.unlink()
    credalchain(*command, cwd=folder.parent)
    times = ["fit_seconds", "predict_seconds"]
    pd.testing.assert_frame_equal(
        pd.read_parquet(lost).drop(columns=times), before.drop(columns=times)
    )
    assert all((results / name).read_bytes() == content for name, content in kept.items())
    credalchain("report", "r", cwd=folder.parent)
    assert "songs" in (folder.parent / "r" / "report" / "report.html").read_text()


def test_the_results_do_not_depend_on_where_the_files_are(folder, tmp_path):
    study = load_study(write(folder))
    store = run(study, tmp_path / "r")
    moved = tmp_path / "elsewhere"
    shutil.copytree(folder, moved)
    again = load_study(moved / "study.toml")
    assert [task.identity for task in expand(again)] == [task.identity for task in expand(study)]
    assert store.n_open(again) == 0
    about = (tmp_path / "r" / "study.json").read_text()
    assert str(tmp_path) not in about
    assert json.loads(about)["data"][0]["file"] == "songs.csv"


def test_seeds_come_from_the_name_and_other_content_is_other_work(folder):
    study = load_study(write(folder))
    renamed = load_study(write(folder, SONGS.replace("{", '{ name = "tunes",')))
    one_label = load_study(write(folder, SONGS.replace(', "pop"', "")))
    names = [next(expand(one)).identity for one in (study, renamed, one_label)]
    assert len(set(names)) == 3
    assert names[0].startswith("songs-")
    assert names[1].startswith("tunes-")


def test_a_file_that_has_changed_is_noticed(folder):
    path = write(folder)
    study = load_study(path)
    store = run(study, folder / "r")
    before = values(store, study)
    songs(seed=1).to_csv(folder / "songs.csv", index=False)
    with pytest.raises(ValueError, match=r"songs.csv has changed: its SHA-256"):
        load(study.data[0])
    changed = load_study(path)
    with pytest.warns(
        UserWarning, match=r"songs.csv has changed since the last run in .*run again"
    ):
        run(changed, folder / "r")
    assert not values(store, changed).equals(before)
    pd.testing.assert_frame_equal(values(store, study), before)  # nothing was overwritten


@pytest.mark.parametrize(
    ("labels", "relation"),
    [('"xml"', "songs"), ('"meka"', "songs: -C -2"), ('["rock", "pop"]', "x")],
)
def test_arff_files(folder, labels, relation):
    table = songs()[["tempo", "rock", "pop"]]
    rows = table.to_csv(index=False, header=False)
    (folder / "songs.arff").write_text(ARFF.format(relation=relation, rows=rows))
    (folder / "songs.xml").write_text('<labels><label name="pop"/><label name="rock"/></labels>')
    study = load_study(write(folder, f'{{ file = "songs.arff", labels = {labels} }}'))
    assert study.data[0].labels == ("rock", "pop")
    np.testing.assert_array_equal(load(study.data[0]).Y, table[["rock", "pop"]])


MISTAKES = {
    "label": ('labels = ["jazz"]', r"labels: .*songs.csv has no attribute 'jazz'"),
    "all columns": ('labels = ["tempo", "key", "rock", "pop"]', "labels: .*some of the attributes"),
    "not labels": ('labels = ["tempo"]', "labels: label column 'tempo': cells must be 0 or 1"),
    "no labels": ("labels = []", r"labels must be a list of one or more names.*got \[\]"),
    "numbers": ("labels = [1]", r"labels: .*songs.csv has no attribute 1,"),
    "xml": ('labels = "xml"', "labels: .*'meka' for an ARFF file, got 'xml'"),
    "key": ('label = ["rock"]', r"there is no key 'label' \(did you mean 'labels'"),
    "groups": ('labels = ["rock"], groups = "band"', "groups: there is no column 'band' besides"),
    "name": ('labels = ["rock"], name = "flags"', "name: 'flags' is the name of another data set"),
}


@pytest.mark.parametrize(("rest", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_are_named_with_line_and_key(folder, rest, message):
    with pytest.raises(StudyError, match=rf"study.toml, line 4: \[data\] {message}"):
        load_study(write(folder, f'{{ file = "songs.csv", {rest} }}'))


def test_files_that_are_not_there_and_names_given_twice(folder):
    with pytest.raises(StudyError, match=r"line 4: \[data\] file: there is no file .*gone.csv"):
        load_study(write(folder, '{ file = "gone.csv", labels = ["rock"] }'))
    with pytest.raises(StudyError, match=r"line 4: \[data\] file must be of type str, got None"):
        load_study(write(folder, '{ labels = ["rock"] }'))
    with pytest.raises(StudyError, match=r"line 4: data holds 'songs' twice"):
        load_study(write(folder, f"{SONGS}, {SONGS}"))
    tables = '\n[[data]]\nfile = "songs.csv"\nlabels = ["rock"]\n[[data]]\nfile = "gone.csv"\n'
    path = folder / "study.toml"
    path.write_text(STUDY.replace("data = [{entry}]\n", "") + tables + 'labels = ["rock"]\n')
    with pytest.raises(StudyError, match=r"line 15: \[data\] file: there is no file"):
        load_study(path)


def test_rows_of_a_group_are_tested_together(folder):
    table = songs().assign(band=np.repeat([f"band {i}" for i in range(20)], 3))
    table.to_csv(folder / "songs.csv", index=False)
    entry = SONGS.replace(" }", ', groups = "band" }')
    path = write(folder, entry)
    promised = """
[[method]]
name = "promised"
kind = "estimator"
class = "credalchain.PromisedClassifier"
[method.params]
promise = { row_error = 0.4 }
estimator = { class = "credalchain.CredalChainClassifier" }
"""
    path.write_text(path.read_text() + promised)
    study = load_study(path)
    data = load(study.data[0])
    assert data.feature_names == ["tempo", "key"]
    folds = folds_of(study, "songs", data.labels, 0, data.groups)
    np.testing.assert_array_equal(np.sort(np.concatenate(folds)), np.arange(60))
    assert sum(data.groups[rows].nunique() for rows in folds) == 20
    store = Store(folder / "results")
    fits = []
    fit = PromisedClassifier.fit

    def watched(self, X, Y, groups=None):
        fits.append(groups)
        return fit(self, X, Y, groups)

    with mock.patch.object(PromisedClassifier, "fit", watched):
        assert run_study(study, store, n_jobs=1) == 0
    assert [len(set(groups)) for groups in fits] == [
        20 - data.groups[rows].nunique() for rows in folds
    ]
    assert store.study().data[0].groups == "band"
    (plain, *_), (grouped, *_) = expand(load_study(write(folder))), expand(study)
    assert plain.identity != grouped.identity
    table.loc[5, "band"] = None
    table.to_csv(folder / "songs.csv", index=False)
    with pytest.raises(StudyError, match="groups: column 'band' is empty in row 5"):
        load_study(write(folder, entry))


def test_names_and_row_numbers_are_left_out_as_evaluate_does(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"row": range(40), "title": [f"song {i}" for i in range(40)]})
    table["tempo"] = rng.normal(size=40)
    table["rock"] = (table.tempo > 0).astype(int)
    table.to_csv(tmp_path / "songs.csv", index=False)
    (tmp_path / "study.toml").write_text(
        'data = [{ file = "songs.csv", labels = ["rock"] }]\n'
        "[cross_validation]\nfolds = 2\n[[method]]\ns = [0.0]\n"
    )
    done = credalchain("run", "study.toml", "--out", "r", "--jobs", "1", cwd=tmp_path)
    assert "left out as names, texts or numbers of rows: ['row', 'title']" in done.stderr
    (fact,) = Store(tmp_path / "r").facts()
    assert fact["features"] == 1
