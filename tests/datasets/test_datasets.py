"""Readers, the MULAN files, and downloads against a server on this machine."""

import contextlib
import hashlib
import http.server
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse

from credalchain import CredalChainClassifier
from credalchain.datasets import (
    MULAN,
    DataUnavailableError,
    downloads,
    load_embedded_yeast,
    load_mulan,
    read_arff,
    read_meka,
    read_mulan,
    read_table,
    registry,
)
from profiles import examples

needs_data = pytest.mark.skipif(
    "CREDALCHAIN_DATA" not in os.environ,
    reason="CREDALCHAIN_DATA does not name a folder with the MULAN files",
)

DENSE = """% a comment
@RELATION 'odd names'

@attribute 'size, in cm' NUMERIC
@ATTRIBUTE rock {0,1}
@attribute "colour {x}" {red, 'dark green', blue}
@attribute 'it''s' string
@attribute pop {0, 1}
@data
1.5, 1, red, hello, 0
?, 0, 'dark green', 'a, b', 1
-2e3, ?, blue, ?, 1
"""

XML = """<?xml version="1.0" encoding="utf-8"?>
<labels xmlns="http://mulan.sourceforge.net/labels">
<label name="pop"></label><label name="rock"><label name="NESTED"/></label>
</labels>
"""


def write(folder, name, text):
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_dense_arff_with_odd_names_and_labels_in_the_middle(tmp_path):
    arff = write(tmp_path, "d.arff", DENSE.replace("'it''s'", "its"))
    data = read_arff(arff, ["pop", "rock"])
    assert data.label_names == ["rock", "pop"]  # the order of the file
    assert data.labels.tolist() == [[1, 0], [0, 1], [-1, 1]]
    assert data.feature_names == ["size, in cm", "colour {x}", "its"]
    assert data.X["size, in cm"].tolist()[::2] == [1.5, -2000.0]
    assert np.isnan(data.X["size, in cm"][1])
    assert list(data.X["colour {x}"].cat.categories) == ["red", "dark green", "blue"]
    assert data.X["its"].tolist()[:2] == ["hello", "a, b"]
    assert data.X["its"].isna().tolist() == [False, False, True]
    frame = data.to_frame()
    assert frame["rock"].isna().tolist() == [False, False, True]


def test_mulan_xml_names_the_labels(tmp_path):
    arff = write(tmp_path, "d.arff", DENSE.replace("'it''s'", "its"))
    xml = write(tmp_path, "d.xml", XML.replace('<label name="NESTED"/>', ""))
    assert read_mulan(arff, xml).label_names == ["rock", "pop"]
    hierarchy = write(tmp_path, "h.xml", XML)
    with pytest.raises(ValueError, match="no attribute 'NESTED'"):
        read_mulan(arff, hierarchy)
    for content in ("<labels>", "<labels/>", "no xml"):
        with pytest.raises(ValueError, match="labels"):
            read_mulan(arff, write(tmp_path, "bad.xml", content))
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_mulan(arff, tmp_path / "none.xml")


SPARSE = """@relation {relation}
@attribute a numeric
@attribute b {{0,1}}
@attribute y {{0,1}}
@attribute z {{0,1}}
@data
{{0 2.5,3 1}}
% comment
{{}}
{{1 1, 2 1}}
"""


def test_sparse_arff_becomes_csr(tmp_path):
    data = read_arff(write(tmp_path, "s.arff", SPARSE.format(relation="s")), ["y", "z"])
    assert sparse.issparse(data.X)
    assert data.X.indices.dtype == data.X.indptr.dtype == np.int32  # all that liblinear takes
    assert data.X.toarray().tolist() == [[2.5, 0], [0, 0], [0, 1]]
    assert data.labels.tolist() == [[0, 1], [0, 0], [1, 0]]
    frame = data.to_frame()
    assert frame["b"].dtype == bool
    assert frame["a"].tolist() == [2.5, 0, 0]


def test_sparse_arff_with_nominal_values_becomes_a_frame(tmp_path):
    text = SPARSE.format(relation="s").replace("@attribute a numeric", "@attribute a {low,high}")
    text = text.replace("0 2.5", "0 high")
    data = read_arff(write(tmp_path, "s.arff", text), ["y", "z"])
    assert data.X["a"].tolist() == ["high", "low", "low"]  # what is left out is the first value


@pytest.mark.parametrize(
    ("header", "labels"), [("'s: -C 2'", ["a", "b"]), ("'s: -C -2'", ["y", "z"])]
)
def test_meka_labels_first_or_last(tmp_path, header, labels):
    text = SPARSE.format(relation=header).replace("@attribute a numeric", "@attribute a {0,1}")
    data = read_meka(write(tmp_path, "m.arff", text.replace("0 2.5", "0 1")))
    assert data.label_names == labels


def test_bad_arff_files(tmp_path):
    with pytest.raises(ValueError, match="not in MEKA's format"):
        read_meka(write(tmp_path, "m.arff", SPARSE.format(relation="plain")))
    with pytest.raises(ValueError, match="-C 9, but 4 attributes"):
        read_meka(write(tmp_path, "m.arff", SPARSE.format(relation="'x: -C 9'")))
    with pytest.raises(ValueError, match="cannot be read as ARFF"):
        read_arff(write(tmp_path, "m.arff", "@relation x\n@attribute a\n@data\n1\n"), ["a"])
    with pytest.raises(ValueError, match="ARFF"):
        read_arff(write(tmp_path, "m.arff", "hello"), ["a"])
    numeric = "@relation x\n@attribute a numeric\n@attribute y numeric\n@data\n1,0\n1,2\n"
    two = write(tmp_path, "two.arff", numeric)
    with pytest.raises(ValueError, match="'y': cells must be 0 or 1.* got 2.0 in row 1"):
        read_arff(two, ["y"])
    with pytest.raises(ValueError, match="each named once"):
        read_arff(write(tmp_path, "m.arff", SPARSE.format(relation="x")), ["a", "b", "y", "z"])


def test_tables(tmp_path):
    frame = pd.DataFrame({"x": [1.0, 2.0], "y": [1, 0], "z": [None, 1]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        data = read_table(tmp_path / name, labels=["y", "z"])
        assert data.labels.tolist() == [[1, -1], [0, 1]]
        assert data.feature_names == ["x"]
    with pytest.raises(ValueError, match="no attribute 'q'"):
        read_table(tmp_path / "t.csv", labels=["q"])


# -- the real files ------------------------------------------------------------------------

TABLE_2 = {  # rows, features, labels; cardinality and density as the paper rounds them
    "emotions": (593, 72, 6, 1.87, 0.31),
    "scene": (2407, 294, 6, 1.07, 0.18),
    "yeast": (2417, 103, 14, 4.24, 0.30),
    "CAL500": (502, 68, 174, 26.04, 0.15),
    "medical": (978, 1449, 45, 1.25, 0.03),
    "enron": (1702, 1001, 53, 3.38, 0.06),
    "flags": (194, 19, 7, 3.39, 0.48),
}


@pytest.mark.slow
@needs_data
@pytest.mark.parametrize("name", TABLE_2)
def test_the_papers_table_2(name):
    data = load_mulan(name)
    n, p, m, cardinality, density = TABLE_2[name]
    assert data.X.shape == (n, p)
    assert data.labels.shape == (n, m)
    assert round(data.cardinality, 2) == cardinality
    assert round(data.density, 2) == density
    assert data.citation
    assert len(data.feature_names) == p
    assert sparse.issparse(data.X) == (name in ("medical", "enron"))


@needs_data
@pytest.mark.parametrize("name", TABLE_2)
def test_our_checksums_are_those_of_the_files(name):
    for file, expected in zip(
        registry.mulan_files(name), (MULAN[name].arff_sha256, MULAN[name].xml_sha256), strict=True
    ):
        assert hashlib.sha256(file.read_bytes()).hexdigest() == expected


@needs_data
def test_yeast_of_river_is_yeast_of_mulan():
    ours, theirs = load_mulan("yeast"), load_embedded_yeast()
    np.testing.assert_allclose(ours.X.to_numpy(), theirs.X)
    assert ours.label_names == theirs.label_names
    np.testing.assert_array_equal(ours.labels, theirs.Y)


@needs_data
def test_nominal_features_are_categories():
    data = load_mulan("flags")
    assert data.X["religion"].cat.categories.tolist() == list("01234567")
    chain = CredalChainClassifier(random_state=0).fit(data.X, data.Y)
    assert chain.model_.counts.n_categories[data.feature_names.index("religion")] == 8
    assert chain.label_names_.tolist() == data.label_names == list(data.Y.columns)


def test_unknown_name():
    with pytest.raises(ValueError, match="name must be one of emotions, .*'emotion'"):
        load_mulan("emotion")


# -- downloads -----------------------------------------------------------------------------


class Server:
    """A web server on this machine that behaves as told, request by request."""

    def __init__(self):
        self.requests = []
        self.answers = {}
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.requests.append(self.path)
                queue = outer.answers.get(self.path, ["404"])
                answer = queue.pop(0) if len(queue) > 1 else queue[0]
                if answer in ("404", "503"):
                    self.send_error(int(answer))
                    return
                content = b"x" * 100 if answer == "cut" else answer
                length = 10_000 if answer == "cut" else len(content)
                self.send_response(200)
                self.send_header("Content-Length", str(length))
                self.end_headers()
                self.wfile.write(content)  # a cut connection ends before its length

            def log_message(self, *arguments):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


GOOD = {"/toy/toy.arff": DENSE.encode(), "/toy/toy.xml": XML.encode()}


@pytest.fixture
def server(monkeypatch, tmp_path):
    server = Server()
    source = registry.MulanSource(
        "music", *(hashlib.sha256(content).hexdigest() for content in GOOD.values()), "us"
    )
    monkeypatch.setitem(MULAN, "toy", source)
    server.answers = {path: [content] for path, content in GOOD.items()}
    yield server
    server.close()


def fetch(server, cache):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pooch.core.time.sleep", lambda seconds: None)
        return registry.fetch("toy", cache, server.address, "no repository", "0" * 40)


def kept(cache):
    return sorted(file.name for file in cache.rglob("*") if file.is_file())


def test_a_good_file_is_downloaded_once(server, tmp_path):
    for _ in range(2):
        arff, xml = fetch(server, tmp_path)
        assert arff.read_bytes() == GOOD["/toy/toy.arff"]
        assert xml.read_bytes() == GOOD["/toy/toy.xml"]
    assert sorted(server.requests) == sorted(GOOD)


def test_a_wrong_checksum_is_refused_and_nothing_kept(server, tmp_path):
    server.answers["/toy/toy.arff"] = [b"something else"]
    with pytest.raises(ValueError, match="hash"):
        fetch(server, tmp_path)
    assert kept(tmp_path) == []


@pytest.mark.parametrize("trouble", ["cut", "503"])
def test_a_cut_connection_is_tried_again(server, tmp_path, trouble):
    server.answers["/toy/toy.arff"] = [trouble, trouble, GOOD["/toy/toy.arff"]]
    fetch(server, tmp_path)
    assert server.requests.count("/toy/toy.arff") == 3
    assert kept(tmp_path) == ["toy.arff", "toy.xml"]


def test_trouble_without_end_is_reported_with_a_way_out(server, tmp_path):
    server.answers["/toy/toy.arff"] = ["cut"]
    with pytest.raises(OSError, match="100 bytes read|IncompleteRead"):
        fetch(server, tmp_path)
    assert server.requests.count("/toy/toy.arff") == 4
    assert kept(tmp_path) == []


def test_a_file_that_is_not_there_is_reported(server, tmp_path):
    server.answers["/toy/toy.arff"] = ["404"]
    with pytest.raises(OSError, match="404"):
        fetch(server, tmp_path)
    assert set(server.requests) == {"/toy/toy.arff"}


def test_offline(server, tmp_path):
    server.close()
    with pytest.raises(OSError, match="refused|closed|connect"):
        fetch(server, tmp_path)


def test_the_folder_comes_before_the_network(monkeypatch, server, tmp_path):
    (tmp_path / "toy").mkdir()
    for path, content in GOOD.items():
        (tmp_path / path[1:]).write_bytes(content)
    monkeypatch.setenv("CREDALCHAIN_DATA", str(tmp_path))
    assert registry.mulan_files("toy")[0] == tmp_path / "toy" / "toy.arff"
    assert server.requests == []


def test_files_in_the_folder_need_no_downloads(monkeypatch, tmp_path):
    (tmp_path / "flags").mkdir()
    write(tmp_path / "flags", "flags.arff", SPARSE.format(relation="'flags'"))
    write(tmp_path / "flags", "flags.xml", labels_xml(["y", "z"]))
    monkeypatch.setenv("CREDALCHAIN_DATA", str(tmp_path))
    monkeypatch.setitem(sys.modules, "pooch", None)
    assert load_mulan("flags").label_names == ["y", "z"]


def test_a_damaged_file_of_the_cache_is_downloaded_again(server, tmp_path):
    arff, _ = fetch(server, tmp_path)
    arff.write_text("damaged")
    assert fetch(server, tmp_path)[0].read_bytes() == GOOD["/toy/toy.arff"]


def test_an_offline_machine_gets_a_way_out(monkeypatch, server, tmp_path):
    server.close()
    monkeypatch.setattr(downloads, "_RETRIES", 0)
    monkeypatch.setattr("pooch.os_cache", lambda name: tmp_path)
    monkeypatch.setattr(registry, "SOURCE", server.address)
    monkeypatch.setattr(registry, "REPOSITORY", server.address)
    monkeypatch.delenv("CREDALCHAIN_DATA", raising=False)
    for name in ("toy", "birds"):  # by its checksum, and by Git
        with pytest.raises(DataUnavailableError, match=rf"without a network, put.*{name}/{name}"):
            load_mulan(name)


# -- by Git ------------------------------------------------------------------------------------

SPARSE_FILE = SPARSE.format(relation="'a set'")
IN_REPOSITORY = {  # as the files of MULAN are named
    "birds": {"birds-train.arff": DENSE, "birds-test.arff": DENSE, "birds.xml": XML},
    "foodtruck": {"foodtruck.arff": DENSE, "foodtruck.xml": XML},
    "corel5k": {"Corel5k.arff": DENSE, "Corel5k-sparse.arff": SPARSE_FILE, "Corel5k.xml": XML},
    "tmc2007": {"tmc2007-500.arff": DENSE, "tmc2007.arff": SPARSE_FILE, "tmc2007.xml": XML},
    "delicious": {"delicious-train.arff": DENSE, "delicious.xml": XML},
}


def git(folder, *command):
    setting = [
        "-c",
        "user.name=us",
        "-c",
        "user.email=us@example.org",
        "-c",
        "commit.gpgsign=false",
    ]
    done = subprocess.run(
        ["git", *setting, *command], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A repository served on this machine: its folder, its address, and a commit of it."""
    if shutil.which("git") is None:
        pytest.skip("Git is not installed")
    root = tmp_path_factory.mktemp("git")
    folder = root / "mulan"
    for name, files in IN_REPOSITORY.items():
        place = folder / registry.FOLDER / name
        place.mkdir(parents=True)
        for file, content in files.items():
            (place / file).write_text(content)
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "data")
    commit = git(folder, "rev-parse", "HEAD")
    (folder / registry.FOLDER / "birds" / "birds.xml").write_text("<labels></labels>")
    git(folder, "commit", "--quiet", "--all", "--message", "another")  # the older one is wanted
    for key in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"):
        git(folder, "config", key, "true")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [f"--base-path={root}", "--listen=127.0.0.1", f"--port={port}", "--export-all"]
    daemon = subprocess.Popen(["git", "daemon", *options], start_new_session=True)
    for _ in range(100):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            break
        time.sleep(0.1)
    yield folder, f"git://127.0.0.1:{port}/mulan", commit
    os.killpg(daemon.pid, signal.SIGTERM)
    daemon.wait()


@pytest.mark.parametrize("name", ["foodtruck", "tmc2007-500", "Corel5k", "birds"])
def test_files_without_a_checksum_come_from_the_commit(repository, tmp_path, name):
    _, address, commit = repository
    arff, xml = registry.fetch(name, tmp_path, "", address, commit)
    assert xml.read_text() == XML
    rows = DENSE.rstrip().partition("@data")[2]
    expected = {"Corel5k": SPARSE_FILE, "birds": f"{DENSE.rstrip()}{rows}"}.get(name, DENSE)
    assert arff.read_text().split() == expected.split()
    assert kept(tmp_path) == [f"{name}.arff", f"{name}.xml"]
    again = registry.fetch(name, tmp_path, "", "git://127.0.0.1:1/none", commit)
    assert again == (arff, xml)  # from the cache


def test_a_missing_file_is_named(repository, tmp_path):
    _, address, commit = repository
    with pytest.raises(OSError, match="no delicious-sparse.arff or .*only delicious-train.arff"):
        registry.fetch("delicious", tmp_path, "", address, commit)
    with pytest.raises(OSError, match="git ls-tree"):
        registry.fetch("genbase", tmp_path, "", address, commit)
    assert kept(tmp_path) == []


def test_a_changed_file_of_the_commit_is_not_taken(repository, tmp_path, monkeypatch):
    folder, _, commit = repository
    monkeypatch.setattr(downloads, "_RETRIES", 0)
    changed = tmp_path / "changed"
    shutil.copytree(folder, changed)
    digest = git(changed, "rev-parse", f"{commit}:{registry.FOLDER}/birds/birds.xml")
    blob = changed / ".git" / "objects" / digest[:2] / digest[2:]
    content = XML.replace("pop", "rap").encode()
    blob.chmod(0o644)
    blob.write_bytes(zlib.compress(b"blob %d\0" % len(content) + content))
    with pytest.raises(OSError, match="git cat-file"):
        registry.fetch("birds", tmp_path, "", changed.as_uri(), commit)
    assert not (tmp_path / commit / "birds.xml").exists()


def test_parts_must_have_the_same_attributes():
    first, other = DENSE.encode(), DENSE.replace("pop", "rap").encode()
    for wrong in (other, b"no data"):
        with pytest.raises(ValueError, match="the same attributes"):
            downloads._joined(first, wrong)


def test_without_git_it_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OSError, match="Git is not installed"):
        registry.fetch("birds", tmp_path, "", "git://127.0.0.1:1/none", "0" * 40)


def test_labels_first_in_an_arff_file_from_the_shell(tmp_path):
    """Columns stay where the file has them, so that first:2 means the file's first two."""
    from credalchain.cli.tables import load_table as read_for_shell
    from credalchain.cli.tables import pick_labels

    text = "@relation k\n" + "".join(f"@attribute {n} {{0,1}}\n" for n in ("y1", "y2", "f", "g"))
    path = write(tmp_path, "k.arff", text + "@data\n0,1,1,0\n1,0,0,1\n")
    frame, known = read_for_shell(str(path), ["first:2"])
    assert pick_labels(frame, ["first:2"], known) == ["y1", "y2"]
    assert list(frame.columns) == ["y1", "y2", "f", "g"]


def test_meka_options_are_looked_for_behind_the_name(tmp_path):
    text = SPARSE.format(relation="'a-c 1: -C -2'")
    assert read_meka(write(tmp_path, "m.arff", text)).label_names == ["y", "z"]


def test_sparse_files_read_alike_with_and_without_labels(tmp_path):
    text = SPARSE.format(relation="s").replace("@attribute z {0,1}", "@attribute z {1,0}")
    path = write(tmp_path, "s.arff", text.replace("3 1", "3 0"))
    fitted, new = read_arff(path, ["y", "z"]).to_frame(), read_arff(path, []).to_frame()
    for name in ("a", "b"):
        assert fitted[name].dtype == new[name].dtype


def test_tabs_latin_1_and_escaped_quotes(tmp_path):
    text = "@relation t\n@attribute\t'it\\'s'\tnumeric\n@attribute\tdéjà\t{0,1}\n@data\n1.5,1\n"
    (tmp_path / "t.arff").write_bytes(text.encode("latin-1"))
    data = read_arff(tmp_path / "t.arff", ["déjà"])
    assert data.feature_names == ["it's"]
    assert data.labels.tolist() == [[1]]
    (tmp_path / "b.arff").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert read_arff(tmp_path / "b.arff", ["déjà"]).label_names == ["déjà"]


DELICIOUS = r"""@relation delicious
@attribute word {0,1}
@attribute TAG_musica {0,1}
@attribute QUOTETAG_m\'usicaQUOTE {0,1}
@attribute TAG_dise\~no {0,1}
@data
{0 1,2 1}
{1 1,3 1}
"""


@pytest.mark.parametrize("quote", ["", "'", '"'])
@pytest.mark.parametrize("spelled", [r"TAG_m\'usica", "TAG_m'usica"])
def test_delicious_escapes_a_quote_in_both_files(tmp_path, quote, spelled):
    arff = write(tmp_path, "delicious.arff", DELICIOUS.replace("QUOTE", quote))
    names = ("TAG_musica", spelled, r"TAG_dise\~no")
    data = read_mulan(arff, write(tmp_path, "delicious.xml", labels_xml(names)))
    assert data.label_names == ["TAG_musica", "TAG_m'usica", r"TAG_dise\~no"]
    assert data.labels.tolist() == [[0, 1, 0], [1, 0, 1]]


def test_a_label_is_looked_for_as_it_is_spelled_first(tmp_path):
    header = r"""@relation r
@attribute "it's" {0,1}
@attribute 'it\\\'s' {0,1}
@data
0,1
"""
    arff = write(tmp_path, "r.arff", header)
    for spelled in (r"it\'s", r"it\\\'s"):
        data = read_mulan(arff, write(tmp_path, "r.xml", labels_xml([spelled])))
        assert data.feature_names == ["it's"]
        assert data.label_names == [r"it\'s"]
    write(tmp_path, "r.arff", header.replace(r"it\\\'s", r"it\'s"))
    with pytest.raises(ValueError, match='two attributes called "it\'s"'):
        read_mulan(arff, tmp_path / "r.xml")


@pytest.mark.parametrize(
    "declared", ["'it''s' numeric", "'open numeric", "a,b numeric", "100% real"]
)
def test_a_name_that_is_not_properly_quoted(tmp_path, declared):
    text = f"@relation r\n@attribute y {{0,1}}\n@attribute {declared}\n@data\n0,1\n"
    with pytest.raises(ValueError, match=rf"line 3 must declare .*got .@attribute {declared}"):
        read_arff(write(tmp_path, "r.arff", text), ["y"])


def labels_xml(names):
    return "<labels>" + "".join(f"<label name={quoteattr(name)}/>" for name in names) + "</labels>"


LETTERS = st.sampled_from("ab'\"\\%,{} \t\nné") | st.characters(
    categories=["L", "N", "P", "S", "Zs"]
)


def escaped(name, special="\\\\'\"%\t\n"):
    letters = {"\t": "t", "\n": "n"}
    return re.sub(f"[{special}]", lambda c: "\\" + letters.get(c[0], c[0]), name)


@st.composite
def declared_names(draw):
    """A name and a way to write it in ARFF."""
    name = draw(st.text(LETTERS, min_size=1, max_size=6))
    quote = draw(st.sampled_from("'\""))
    ways = [quote + escaped(name) + quote, quote + escaped(name, rf"\\\n{quote}") + quote]
    if not re.search(r"[\x00-\x20{},]", name):
        ways.append(escaped(name))
    return name, draw(st.sampled_from(ways))


@examples(300)
@given(
    st.lists(declared_names(), min_size=2, max_size=7, unique_by=lambda pair: pair[0]),
    st.data(),
    st.booleans(),
)
def test_any_name_is_read_as_it_was_written(declared, draw, is_sparse):
    """Each attribute holds the bits of its place, so no column can be taken for another."""
    names = [name for name, _ in declared]
    places = range(len(names))
    targets = draw.draw(st.sets(st.sampled_from(places), min_size=1, max_size=len(names) - 1))
    spelled = [draw.draw(st.sampled_from([names[i], escaped(names[i])])) for i in targets]
    assume(all(s == names[i] or s not in names for s, i in zip(spelled, targets, strict=True)))
    kinds = ["{0,1}" if i in targets else "numeric" for i in places]
    header = [f"@attribute {way} {kind}" for (_, way), kind in zip(declared, kinds, strict=True)]
    bits = [[i >> row & 1 for i in places] for row in range(3)]
    if is_sparse:
        rows = ["{" + ",".join(f"{i} 1" for i in places if row[i]) + "}" for row in bits]
    else:
        rows = [",".join(map(str, row)) for row in bits]
    with tempfile.TemporaryDirectory() as folder:
        lines = ["@relation r", *header, "@data", *rows]
        arff = write(Path(folder), "r.arff", "\n".join(lines))
        data = read_mulan(arff, write(Path(folder), "r.xml", labels_xml(spelled)))
    assert data.label_names == [names[i] for i in places if i in targets]
    assert data.feature_names == [names[i] for i in places if i not in targets]
    assert data.labels.tolist() == [[row[i] for i in places if i in targets] for row in bits]
    X = data.X.toarray() if is_sparse else data.X.to_numpy()
    assert X.tolist() == [[row[i] for i in places if i not in targets] for row in bits]


def test_nominal_values_with_escapes_and_tabs(tmp_path):
    values = ["it's", "a\\", "5 %, or {6}", 'say "a"', "a\tb", "c'"]
    written = ["'" + escaped(value, r"\\'") + "'" for value in values]
    header = (
        f"@relation r\n@attribute\t'v\\''\t{{{', '.join(written)}}}\n@attribute y {{0,1}}\n@data\n"
    )
    arff = write(tmp_path, "r.arff", header + "".join(f"{value},1\n" for value in written))
    data = read_arff(arff, ["y"])
    assert data.X["v'"].tolist() == values
    assert data.X["v'"].cat.categories.tolist() == values


def test_words_as_labels_in_a_sparse_file(tmp_path):
    file = tmp_path / "words.arff"
    file.write_text(
        "@relation r\n@attribute f1 numeric\n@attribute f2 numeric\n"
        "@attribute L {no,yes}\n@attribute M {no,yes}\n@data\n{0 1, 2 yes}\n{1 2, 3 yes}\n"
    )
    data = read_arff(file, ["L", "M"])
    assert data.labels.tolist() == [[1, 0], [0, 1]]
    assert data.X.toarray().tolist() == [[1, 0], [0, 2]]


def test_without_quotes_a_backslash_before_a_letter_is_kept(tmp_path):
    r"""Names such as \\tau; in quotes, \\t is a tab."""
    text = "@relation x\n@attribute \\tau {0,1}\n@attribute '\\tau' numeric\n@data\n1,2\n0,3\n"
    (tmp_path / "x.arff").write_text(text)
    data = read_arff(tmp_path / "x.arff", ["\\tau"])
    assert data.label_names == ["\\tau"]
    assert data.feature_names == ["\tau"]
