"""Answers are kept, undone and shared as they should be; nobody else gets in."""

import json
import os
import socket
import sqlite3
import sys
import threading
import time

import httpx
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from conftest import HOSTILE, LABELS, N, make_session, make_songs
from credalchain import JointDecision, PromisedClassifier, load_model
from credalchain.cli.review import read_session
from credalchain.review import session as queue_module
from credalchain.review.exchange import add_answers
from credalchain.review.rows import ReviewedRows, image_file, row_keys
from credalchain.review.session import ReviewSession
from credalchain.review.store import (
    AnswersFileError,
    AnswerStore,
    ReviewError,
    ReviewEvent,
    RowKey,
)
from shell import credalchain


@pytest.fixture(autouse=True, scope="module")
def _fastapi():
    pytest.importorskip("fastapi", reason="fastapi is not installed")


def first_open(session, who="ann", order="in order"):
    view = session.next_row(who, order)
    return view["row"], view["asked"][0], view


# -- the session ---------------------------------------------------------------------------------


def test_every_answer_is_what_infer_says_with_known_labels(session):
    rng = np.random.default_rng(0)
    for number in range(40):
        row, label, _ = first_open(session)
        session.answer(row, label, int(rng.integers(2)), "ann", f"request-{number}")
    found = session.rows.classifier.infer(session.rows.features, known=session.rows.human_labels)
    expected = np.where(session.rows.human_labels != -1, session.rows.human_labels, found.labels)
    np.testing.assert_array_equal(session.rows.labels, expected)
    np.testing.assert_allclose(session.rows.interval, found.interval, atol=1e-6)
    is_open = (session.rows.labels == -1).sum(axis=1)
    np.testing.assert_array_equal(session.rows.n_open, is_open)
    progress = session.progress()
    assert progress["labels_left"] == is_open.sum()
    assert progress["answers"] == 40
    assert progress["completeness"] == pytest.approx((session.rows.labels != -1).mean())


def test_undo_takes_back_one_thing_after_the_other(session):
    before = session.rows.labels.copy()
    for number in range(12):
        row, label, _ = first_open(session)
        session.answer(row, label, number % 2 if number % 3 else None, "ann", f"request-{number}")
    for number in range(12):
        session.undo("ann", f"undo-{number:04}")
    np.testing.assert_array_equal(session.rows.labels, before)
    assert (session.rows.human_labels == -1).all()
    with pytest.raises(ReviewError, match="nothing to undo"):
        session.undo("ann", "undo-once-more")
    kinds = [one.kind for one in session.rows.store.events()]
    assert kinds.count("undo") == 12  # appended, nothing removed
    assert len(kinds) == 24


def test_undo_brings_the_answer_before_back(session):
    row, label, _ = first_open(session)
    session.answer(row, label, 1, "ann", "request-1")
    session.answer(row, label, 0, "ann", "request-2")
    assert session.rows.human_labels[row, label] == 0
    session.undo("ann", "request-3")
    assert session.rows.human_labels[row, label] == 1
    with pytest.raises(ReviewError):
        session.undo("bob", "request-5")  # only what is one's own


def test_starting_again_goes_on_where_it_was(session, folder, tmp_path):
    for number in range(15):
        row, label, _ = first_open(session)
        session.answer(row, label, number % 2, "ann", f"request-{number}")
    session.undo("ann", "undo-0001")
    again = make_session(folder, tmp_path / "answers.sqlite")
    np.testing.assert_array_equal(again.rows.labels, session.rows.labels)
    np.testing.assert_array_equal(again.rows.human_labels, session.rows.human_labels)
    np.testing.assert_array_equal(again.rows.n_open, session.rows.n_open)
    assert again.undo("ann", "undo-0002")["row"] is not None


def test_rows_are_known_by_their_content(session, folder, tmp_path):
    """Also if rows are added before them, moved, or there twice."""
    row, label, _ = first_open(session)
    session.answer(row, label, 1, "ann", "request-1")
    table = pd.read_csv(folder / "new.csv")
    mixed = pd.concat([table[10:11], table[::-1]], ignore_index=True)
    keys = row_keys(mixed)
    assert keys[0].hash == row_keys(table)[10].hash
    assert len(set(keys)) == len(keys)
    assert keys.index(row_keys(table)[row]) == len(mixed) - 1 - row
    assert row_keys(table.astype({"year": float})) == row_keys(table)


def test_the_same_request_twice_is_one_answer(session):
    row, label, _ = first_open(session)
    for _ in range(3):
        session.answer(row, label, 1, "ann", "request-1")
    assert len(session.rows.store.events()) == 1
    session.undo("ann", "undo-0001")
    session.undo("ann", "undo-0001")
    assert len(session.rows.store.events()) == 2


def test_two_people_get_different_rows_until_leases_expire(session, monkeypatch):
    rows = {who: session.next_row(who, "in order")["row"] for who in ("ann", "bob", "eve")}
    assert len(set(rows.values())) == 3
    assert session.next_row("ann", "in order")["row"] == rows["ann"]  # still hers
    monkeypatch.setattr(queue_module, "LEASE_SECONDS", -1.0)
    session.queue.lease(rows["ann"], "ann")
    assert session.next_row("zoe", "in order")["row"] == rows["ann"]


def test_a_second_answer_to_a_cell_is_kept_and_shown(session):
    row, label, _ = first_open(session)
    session.answer(row, label, 1, "ann", "request-1")
    view = session.answer(row, label, 0, "bob", "request-2")
    assert view["labels"][label]["people"] == {"ann": 1, "bob": 0}
    (found,) = session.disagreements()
    assert found["people"] == {"ann": 1, "bob": 0}
    assert len(session.rows.store.events()) == 2


def test_contradicting_the_model_is_listed(session):
    row = int(np.flatnonzero((session.rows.labels != -1).any(axis=1))[0])
    label = int(np.flatnonzero(session.rows.labels[row] != -1)[0])
    said = int(session.rows.labels[row, label])
    session.answer(row, label, 1 - said, "ann", "request-1")
    (found,) = session.disagreements()
    assert (found["row"], found["model"]) == (row, said)


@pytest.mark.slow
@pytest.mark.parametrize("order", queue_module.ORDERS)
def test_a_whole_review_in_every_order(session, order):
    truth = make_songs()[LABELS].to_numpy()
    n_answers = 0
    while (view := session.next_row("ann", order))["row"] is not None:
        while view["asked"]:
            label = view["asked"][0]
            n_answers += 1
            view = session.answer(
                view["row"], label, int(truth[view["row"], label]), "ann", f"request-{n_answers}"
            )
    assert (session.rows.labels != -1).all()
    assert session.progress()["labels_left"] == 0


def test_skipped_labels_come_last_and_passed_rows_later(session):
    view = next(view for row in range(N) if len((view := session.view(row, "ann"))["asked"]) > 1)
    first = view["asked"][0]
    view = session.answer(view["row"], first, None, "ann", "request-1")
    assert view["asked"][-1] == first
    assert session.view(view["row"], "bob")["asked"][0] == first
    later = session.next_row("ann", "in order", after=view["row"])
    assert later["row"] != view["row"]


def test_blind_labels_hide_what_the_model_says(folder, tmp_path):
    session = make_session(folder, tmp_path / "answers.sqlite", blind=0.3)
    share = session.rows.blind.sum() / (session.rows.labels != -1).sum()
    assert 0.15 < share < 0.45
    row, label = map(int, np.argwhere(session.rows.blind)[0])
    shown = session.view(row, "ann")["labels"][label]
    assert shown["source"] == "blind"
    assert shown["answer"] is shown["lower"] is shown["upper"] is None
    assert label in session.view(row, "ann")["asked"]
    with pytest.raises(ReviewError, match="without a suggestion"):
        session.why(row, label)
    said = int(session.rows.labels[row, label])
    session.answer(row, label, 1 - said, "ann", "request-1")
    found = session.blind_result()
    assert (found["asked"], found["disagree"]) == (1, 1)
    (event,) = session.rows.store.events()
    assert event.blind
    assert event.suggested == said
    again = make_session(folder, tmp_path / "answers.sqlite", blind=0.3)
    np.testing.assert_array_equal(again.rows.blind, session.rows.blind)


def test_blind_rows_feed_the_promise(folder, tmp_path):
    train = make_songs(400, 3)
    chain = load_model(folder / "songs.model")
    promised = PromisedClassifier(chain, {"row_error": 0.4}, random_state=0)
    promised.fit(train[["tempo", "year"]], train[LABELS])
    path = tmp_path / "answers.sqlite"
    session = make_session(folder, path, classifier=promised, blind=0.5)
    by_row = session.rows.blind.any(axis=1)
    assert session.rows.blind[by_row].all()
    assert session.blind_result()["check"] == "no row is checked yet"
    truth = make_songs()[LABELS].to_numpy()
    for row in np.flatnonzero(by_row)[:5].tolist():
        for label in range(len(LABELS)):
            value = int(truth[row, label])
            session.answer(row, label, value, "ann", f"request-{row}-{label}")
    assert "promised" in session.blind_result()["check"]
    n_open = int((session.rows.first_labels[np.flatnonzero(by_row)[:5]] == -1).sum())
    assert session.blind_result()["asked"] == 5 * len(LABELS) - n_open


def test_rows_answered_without_suggestions_join_the_calibration_rows(folder, tmp_path):
    """Those of the table get their labels; others stand before rows that were only reviewed."""
    train = make_songs(400, 3)
    chain = load_model(folder / "songs.model")
    promised = PromisedClassifier(chain, {"row_error": 0.4}, random_state=0)
    promised.fit(train[["tempo", "year"]], train[LABELS])
    path = tmp_path / "a.sqlite"
    session = make_session(folder, path, classifier=promised, blind=0.5)
    table, truth = session.rows.table, make_songs()[LABELS]
    sampled = np.flatnonzero(session.rows.sampled_rows)[:4].tolist()
    others = np.flatnonzero(~session.rows.sampled_rows)[:3].tolist()
    for row in sampled + others:
        for label, name in enumerate(LABELS):
            value = int(truth[name][row])
            session.answer(row, label, value, "ann", f"request-{row}-{label}")
    session.answer(sampled[3], 0, 1 - int(truth[LABELS[0]][sampled[3]]), "ann", "request-again")
    here = table.iloc[sampled[:1] + others[:1]]  # the others are not in the data
    keys = row_keys(here)
    missing = truth.loc[here.index].astype("Float64")
    missing.iloc[:, 1] = pd.NA
    reviewed = add_answers(here, missing, keys, session.rows.store)
    assert (reviewed.n_filled, reviewed.n_added, reviewed.n_blind) == (2, 5, 4)
    assert reviewed.Y.notna().all(axis=None)
    original = reviewed.original.to_numpy(dtype=float, na_value=np.nan)
    expected = truth.to_numpy(dtype=float)
    np.testing.assert_array_equal(original[0], expected[sampled[0]])
    np.testing.assert_array_equal(np.isnan(original[1]), [False, True, False, False])
    assert len(original) == 2 + 3
    added = [int(np.flatnonzero(table["title"] == title)[0]) for title in reviewed.X["title"][2:5]]
    assert sorted(added) == sorted(sampled[1:])
    np.testing.assert_array_equal(original[2:], expected[added])  # the first answer, given blind


def test_why(session):
    row, label, _ = first_open(session)
    found = session.why(row, label)
    assert found["reasons"]
    assert {one["answer"] for one in found["settles"]} == {0, 1}


# -- the file -----------------------------------------------------------------------------------


def test_files_that_are_something_else(tmp_path):
    (tmp_path / "text").write_text("no database, and long enough to be told from an empty one" * 20)
    with pytest.raises(AnswersFileError, match="is not a file of answers"):
        AnswerStore(tmp_path / "text")
    other = sqlite3.connect(tmp_path / "other")
    other.execute("CREATE TABLE things (x)")
    other.commit()
    with pytest.raises(AnswersFileError, match="a database of another application"):
        AnswerStore(tmp_path / "other")
    AnswerStore(tmp_path / "mine").close()
    changed = sqlite3.connect(tmp_path / "mine")
    changed.execute("PRAGMA user_version = 99")
    with pytest.raises(AnswersFileError, match="another credalchain"):
        AnswerStore(tmp_path / "mine")
    with pytest.raises(FileNotFoundError):
        AnswerStore(tmp_path / "nothing", create=False)


def test_the_file_refuses_what_cannot_be(tmp_path):
    store = AnswerStore(tmp_path / "answers.sqlite")
    model = store.add_model("abc", "m")
    assert store.add_model("abc", "m") == model
    settings = {"model": model, "row_number": 0, "content": "{}"}
    event = ReviewEvent("request-1", "ann", "answer", RowKey("h", 0), "rock", 1)
    assert store.append(event, **settings)
    assert not store.append(event, **settings)
    for wrong in (
        ReviewEvent("request-2", "ann", "answer", RowKey("h", 0), "rock", 7),
        ReviewEvent("request-3", "ann", "undo", RowKey("h", 0), "rock", undoes=99),
    ):
        with pytest.raises(sqlite3.IntegrityError):
            store.append(wrong, **settings)
    assert len(store.events()) == 1
    (mode,) = sqlite3.connect(tmp_path / "answers.sqlite").execute("PRAGMA journal_mode").fetchone()
    assert mode == "wal"


def test_threads_lose_nothing(tmp_path):
    store = AnswerStore(tmp_path / "answers.sqlite")
    model = store.add_model("abc", "m")

    def work(who):
        for number in range(25):
            event = ReviewEvent(f"{who}-{number:04}", who, "answer", RowKey(who, number), "rock", 1)
            store.append(event, model=model, row_number=number, content="{}")

    threads = [threading.Thread(target=work, args=(f"person{k}",)) for k in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(store.events()) == 200


# -- the server ---------------------------------------------------------------------------------


@pytest.fixture
def client_of():
    """A client of a server that runs on a thread."""
    import uvicorn

    from credalchain.review.server import make_app

    running = []

    def start(session, **options):
        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{listening.getsockname()[1]}"
        app = make_app(session, hosts={host}, title="songs", **options)
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        client = httpx.Client(base_url=f"http://{host}", timeout=30)
        running.append((server, thread, client, listening))
        while not server.started:
            time.sleep(0.01)
        return client

    yield start
    for server, thread, client, listening in running:
        client.close()
        server.should_exit = True
        thread.join()
        listening.close()


def test_requests_from_elsewhere_are_refused(client_of, session):
    client = client_of(session)
    assert client.get("/api/session").status_code == 200
    assert client.get("/api/session", headers={"host": "evil.example:8350"}).status_code == 421
    body = {"who": "ann", "order": "in order"}
    assert client.post("/api/next", json=body).status_code == 200
    for origin in ("http://evil.example", "null", "http://127.0.0.1:9999"):
        refused = client.post("/api/next", json=body, headers={"origin": origin})
        assert refused.status_code == 403
    as_form = client.post("/api/next", content="x=1", headers={"content-type": "text/plain"})
    assert as_form.status_code == 415
    assert client.put("/api/next", json=body).status_code == 405
    long = {"who": "a" * 70_000, "order": "in order"}
    assert client.post("/api/next", json=long).status_code == 413


def test_get_changes_nothing(client_of, session):
    client = client_of(session)
    for path in ("/api/next", "/api/undo", "/api/rows/0/answers"):
        assert client.get(path).status_code in (404, 405)
    for path in (
        "/",
        "/api/session",
        "/api/rows/0/why/0",
        "/api/queue?who=a",
        "/api/disagreements",
    ):
        assert client.get(path).status_code == 200
    assert session.rows.store.events() == []


def test_headers_and_escaping(client_of, session):
    client = client_of(session)
    for path in ("/", "/page.js", "/page.css", "/api/session"):
        answer = client.get(path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert HOSTILE not in client.get("/").text
    assert client.get("/api/session").headers["content-type"] == "application/json"
    assert client.get("/docs").status_code == 404
    assert client.get("/openapi.json").status_code == 404


def test_a_token_is_asked_for(client_of, session):
    client = client_of(session, token="secret-token")
    assert client.get("/").status_code == 401
    assert client.get("/?token=wrong").status_code == 401
    first = client.get("/?token=secret-token", follow_redirects=False)
    assert first.status_code == 303
    assert "HttpOnly" in first.headers["set-cookie"]
    assert "samesite=strict" in first.headers["set-cookie"].lower()
    assert client.get("/api/session").status_code == 200  # by the cookie
    fresh = client_of(session, token="secret-token")
    told = {"authorization": "Bearer secret-token"}
    assert fresh.get("/api/session", headers=told).status_code == 200


def test_files_outside_the_folder_are_not_served(client_of, session, folder):
    client = client_of(session)
    assert client.get("/images/1/2").headers["content-type"] == "image/png"
    assert client.get("/images/0/2").status_code == 404  # ../secret.png
    assert client.get("/images/1/0").status_code == 404  # no image
    assert client.get("/images/99999/0").status_code == 404
    for name in ("../secret.png", "/etc/passwd", str(folder.parent / "secret.png"), "a\0b.png"):
        assert image_file(name, folder) is None
    (folder / "link.png").symlink_to(folder.parent / "secret.png")
    assert image_file("link.png", folder) is None


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/api/next", {"who": "ann", "order": "backwards"}, "order must be one of"),
        ("/api/rows/9999/answers", {"label": 0, "value": 1}, "row must be between 0 and"),
        ("/api/rows/0/answers", {"label": 99, "value": 1}, "label must be between 0 and"),
        ("/api/undo", {}, "nothing to undo"),
    ],
)
def test_errors_in_words(client_of, session, path, body, words):
    body = {"who": "ann", "request": "request-0001", **body}
    answer = client_of(session).post(path, json=body)
    assert answer.status_code == 400
    assert words in answer.json()["detail"]


def test_an_answer_to_another_row_is_refused(client_of, session, folder, tmp_path):
    """As after the server was started again with reordered data, or with other labels."""
    row, label, view = first_open(session)
    table = pd.read_csv(folder / "new.csv")[::-1].reset_index(drop=True)
    again = make_session(folder, tmp_path / "answers.sqlite", table=table)
    client = client_of(again)
    body = {"who": "ann", "request": "request-0001", "label": label, "value": 1}
    path = f"/api/rows/{row}/answers"
    refused = client.post(path, json={**body, "key": view["key"]})
    assert refused.status_code == 409
    assert f"row {row} is no longer the row that was answered" in refused.json()["detail"]
    assert again.rows.store.events() == []
    moved = f"/api/rows/{N - 1 - row}/answers"
    assert client.post(moved, json={**body, "key": view["key"]}).status_code == 200
    again.rows.label_names = LABELS[::-1]
    body["request"] = "request-0002"
    assert client.post(moved, json={**body, "key": view["key"]}).status_code == 409


def test_values_that_are_none(client_of, session):
    client = client_of(session)
    for body in (
        {"who": "", "request": "request-0001", "label": 0, "value": 1},
        {"who": "ann", "request": "x", "label": 0, "value": 1},
        {"who": "ann", "request": "request-0001", "label": 0, "value": 2},
        {"who": "ann", "request": "request-0001", "label": "rock", "value": 1},
    ):
        assert client.post("/api/rows/0/answers", json=body).status_code == 422
    assert session.rows.store.events() == []


# -- out and in ---------------------------------------------------------------------------------


@pytest.fixture
def answered(folder, tmp_path):
    """A file of answers: ten labels, one undone, one contradicted."""
    path = tmp_path / "answers.sqlite"
    session = make_session(folder, path)
    for number in range(10):
        row, label, _ = first_open(session)
        session.answer(row, label, number % 2, "ann", f"request-{number}")
    session.undo("ann", "undo-0001")
    row, label = map(int, np.argwhere(session.rows.human_labels != -1)[0])
    session.answer(row, label, 1 - int(session.rows.human_labels[row, label]), "bob", "request-bob")
    session.rows.store.close()
    return path, session


def test_export(answered, folder, tmp_path):
    path, session = answered
    credalchain("review", "export", str(path), "--out", str(tmp_path / "people.csv"), cwd=folder)
    people = pd.read_csv(tmp_path / "people.csv")
    assert len(people) == 10
    assert people.disagreement.sum() == 2
    given = ["--model", "songs.model", "--data", "new.csv"]
    out = str(tmp_path / "final.parquet")
    credalchain("review", "export", str(path), "--what", "final", *given, "--out", out, cwd=folder)
    final = pd.read_parquet(out)
    expected = pd.DataFrame(session.rows.labels, columns=LABELS).astype(str).replace("-1", "*")
    pd.testing.assert_frame_equal(final[LABELS].astype(str), expected, check_dtype=False)
    assert list(final.columns[:4]) == ["title", "tempo", "year", "cover"]
    out = str(tmp_path / "train.csv")
    credalchain(
        "review", "export", str(path), "--what", "training", *given[:2], "--out", out, cwd=folder
    )
    training = pd.read_csv(out)
    assert training[LABELS].notna().to_numpy().sum() == (session.rows.human_labels != -1).sum()
    assert len(training) == (session.rows.human_labels != -1).any(axis=1).sum()


def test_label_studio(answered, folder, tmp_path):
    path, session = answered
    given = ["--model", "songs.model", "--data", "new.csv"]
    out = tmp_path / "tasks.json"
    export = ["export", str(path), *given, "--what", "label-studio", "--out", str(out)]
    credalchain("review", *export, cwd=folder)
    tasks = json.loads(out.read_text())
    assert len(tasks) == N
    new = tmp_path / "new.sqlite"
    for _ in range(2):  # twice is once
        credalchain("review", "import", str(out), *given, "--out", str(new), cwd=folder)
    again = make_session(folder, new)
    np.testing.assert_array_equal(again.rows.human_labels, session.rows.human_labels)
    assert len(again.rows.store.events()) == (session.rows.human_labels != -1).sum()
    text = out.read_text().replace('"rock"', '"jazz"')
    out.write_text(text)
    done = credalchain(
        "review", "import", str(out), *given, "--out", str(new), cwd=folder, status=1
    )
    assert "'jazz' is not one of the labels" in done.stderr


def test_label_studio_annotations(folder, tmp_path):
    """A task says of every label whether it was chosen; it is known by its notes, not its id."""
    (key,) = row_keys(pd.read_csv(folder / "new.csv").iloc[[3]])
    cells = pd.read_csv(folder / "new.csv").iloc[3].to_dict()
    cells = {name: str(value) for name, value in cells.items()}
    notes = {"row": f"{key.hash}-{key.occurrence}"}
    result = [{"from_name": "l", "to_name": "t", "type": "choices", "value": {"choices": ["pop"]}}]
    tasks = [
        {
            "id": 9,
            "data": {**cells, "credalchain": notes},
            "meta": None,
            "annotations": [{"result": result, "completed_by": 7}],
        },
        {"id": 4, "data": {}, "annotations": [{"result": [], "was_cancelled": True}]},
        {"id": 5, "data": {}, "annotations": [{"result": [{"value": {"text": ["x"]}}]}]},
    ]
    file = tmp_path / "tasks.json"
    file.write_text(json.dumps(tasks))
    given = ["--model", "songs.model", "--data", "new.csv", "--out", str(tmp_path / "a.sqlite")]
    credalchain("review", "import", str(file), *given, cwd=folder)
    session = make_session(folder, tmp_path / "a.sqlite")
    assert session.rows.human_labels[3].tolist() == [0, 1, 0, 0]
    assert (session.rows.human_labels != -1).any(axis=1).sum() == 1
    for other in (cells, {"credalchain": {"row": "0-0"}}):
        tasks[0]["data"] = other
        file.write_text(json.dumps(tasks))
        done = credalchain("review", "import", str(file), *given, cwd=folder, status=1)
        assert "task 0 is none" in done.stderr


def test_learning_from_answers(answered, folder, tmp_path):
    path, session = answered
    given = ["train.csv", "--labels", ",".join(LABELS[:3]), "--labels", HOSTILE]
    given += ["--drop", "title,cover", "--method", "chain"]
    credalchain("fit", *given, "--out", str(tmp_path / "before"), cwd=folder)
    done = credalchain(
        "fit", *given, "--answers", str(path), "--out", str(tmp_path / "after"), cwd=folder
    )
    n_rows = int((session.rows.human_labels != -1).any(axis=1).sum())
    assert f"0 others replaced, {n_rows} rows added" in done.stderr
    before, after = load_model(tmp_path / "before"), load_model(tmp_path / "after")
    observed = after.model_.counts.label.sum() - before.model_.counts.label.sum()
    assert observed == (session.rows.human_labels != -1).sum()
    given += ["--promise", "row-error=0.5", "--out", str(tmp_path / "promised")]
    done = credalchain("fit", *given, "--answers", str(path), cwd=folder)
    assert f"{n_rows} rows and labels that people answered are learned from" in done.stderr
    n_given = len(pd.read_csv(folder / "train.csv"))
    assert f"calibration rows are drawn from the other {n_given} rows" in done.stderr


def test_learning_from_answers_about_rows_that_are_there(folder, tmp_path):
    """Their labels are filled in, not counted twice."""
    table = make_songs()
    missing = table.assign(rock=np.nan).drop(columns=["title", "cover"])
    missing.to_csv(tmp_path / "gaps.csv", index=False)
    path = tmp_path / "a.sqlite"
    classifier = load_model(folder / "songs.model")
    features = missing[["tempo", "year"]]
    rows = ReviewedRows(classifier, features, features, AnswerStore(path), model=("d" * 64, "m"))
    for row in range(20):
        rows.answer(row, 0, int(table.rock[row]), "ann", f"request-{row:04}")
    given = ["gaps.csv", "--labels", ",".join(LABELS[:3]), "--labels", HOSTILE, "--out", "m"]
    given += ["--method", "chain"]
    done = credalchain("fit", *given, "--answers", "a.sqlite", cwd=tmp_path)
    assert "20 missing labels of rows in gaps.csv filled" in done.stderr
    assert "0 others replaced, 0 rows added" in done.stderr
    counts = load_model(tmp_path / "m").model_.counts
    assert counts.n_rows == N
    assert counts.label[0].sum() == 20


# -- what a reviewer found ----------------------------------------------------------------------


def test_answers_added_in_another_tool_are_taken(answered, folder, tmp_path):
    """Also in tasks that had answers before; and rows are known if the tool numbers them anew."""
    path, session = answered
    given = ["--model", "songs.model", "--data", "new.csv"]
    out = tmp_path / "tasks.json"
    export = ["review", "export", str(path), *given, "--what", "label-studio", "--out", str(out)]
    credalchain(*export, cwd=folder)
    tasks = json.loads(out.read_text())
    row = next(row for row, task in enumerate(tasks) if "annotations" in task)
    tasks[row]["annotations"][0]["result"][0]["value"]["choices"] = LABELS
    for number, task in enumerate(tasks):
        task["id"] = number + 100
    out.write_text(json.dumps(tasks[::-1]))
    new = tmp_path / "new.sqlite"
    credalchain("review", "import", str(out), *given, "--out", str(new), cwd=folder)
    again = make_session(folder, new)
    assert again.rows.human_labels[row].tolist() == [1, 1, 1, 1]
    others = np.arange(N) != row
    np.testing.assert_array_equal(
        again.rows.human_labels[others], session.rows.human_labels[others]
    )


def test_two_servers_on_one_file_see_each_other(session, folder, tmp_path):
    other = make_session(folder, tmp_path / "answers.sqlite")
    row, label, _ = first_open(session)
    session.answer(row, label, 1, "ann", "request-1")
    view = other.answer(row, label, 0, "bob", "request-2")
    assert view["labels"][label]["people"] == {"ann": 1, "bob": 0}
    session.undo("ann", "undo-0001")
    with pytest.raises(ReviewError, match="nothing to undo"):
        other.undo("ann", "undo-0002")


def test_the_file_alone_has_everything_when_it_is_closed(session, tmp_path):
    for number in range(30):
        session.answer(number % N, 0, 1, "ann", f"request-{number:03}")
    session.rows.store.close()
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes((tmp_path / "answers.sqlite").read_bytes())
    assert len(AnswerStore(copy).events()) == 30


def test_leases_of_others_are_left_alone(session):
    row = session.next_row("ann", "in order")["row"]
    session.next_row("bob", "in order", after=row)
    assert session.next_row("eve", "in order")["row"] != row
    with pytest.raises(ReviewError, match="being answered by ann"):
        session.open_row(row, "bob")
    for wrong in (10**30, -1, N):
        with pytest.raises(ReviewError, match="row must be between"):
            session.next_row("bob", "in order", after=wrong)
    assert row not in [one["row"] for one in session.next_rows("bob", "in order")]


def test_ones_own_row_comes_back(session):
    row = session.next_row("ann", "settles most")["row"]
    assert session.next_row("ann", "least sure")["row"] == row


@pytest.mark.parametrize("order", queue_module.ORDERS)
def test_labels_and_the_queue_follow_the_order(session, order):
    view = session.next_row("ann", order)
    middles = np.abs(session.rows.interval[view["row"]].mean(axis=-1) - 0.5)
    if order == "in order":
        assert view["asked"] == sorted(view["asked"])
    if order == "least sure":
        assert view["asked"] == sorted(view["asked"], key=lambda j: middles[j])
    assert session.next_rows("ann", order)[0]["row"] == view["row"]


def test_answering_twice_keeps_the_contradiction(session):
    row, label = map(int, np.argwhere(session.rows.labels != -1)[0])
    said = int(session.rows.labels[row, label])
    for number in range(2):
        session.answer(row, label, 1 - said, "ann", f"request-{number}")
    session.answer(row, label, 1 - said, "bob", "request-bob")
    (found,) = session.disagreements()
    assert found["model"] == said


def test_blind_statistics(folder, tmp_path):
    path = tmp_path / "answers.sqlite"
    session = make_session(folder, path, blind=0.5)
    row, label = map(int, np.argwhere(session.rows.blind)[0])
    said = int(session.rows.first_labels[row, label])
    assert session.progress()["completeness"] == session.progress()["completeness_before"]
    session.answer(row, label, said, "ann", "request-1")
    session.answer(row, label, said, "ann", "request-2")  # seen by now
    assert session.blind_result()["asked"] == 1
    session.undo("ann", "request-3")
    session.undo("ann", "request-4")
    session.answer(row, label, 1 - said, "ann", "request-5")
    assert session.blind_result()["asked"] == 0
    for j in range(len(LABELS)):  # other labels first: the model is asked as it was
        if j != label:
            session.answer(row, j, 1, "bob", f"request-bob-{j}")
    events = [one for one in session.rows.store.events() if one.blind]
    assert all(
        event.suggested == session.rows.first_labels[row, LABELS.index(event.label)]
        for event in events
    )
    elsewhere = make_session(folder, path, blind=0.5)
    elsewhere.rows.model_digest = "another"
    assert elsewhere.blind_result()["asked"] == 0


def test_blind_labels_come_at_their_share_and_do_not_leak(folder, tmp_path):
    session = make_session(folder, tmp_path / "answers.sqlite", blind=0.5)
    view = session.next_row("ann", "settles most")
    assert session.rows.blind[view["row"]].any()
    assert session.rows.blind[view["row"], view["asked"][0]]
    for row in range(N):
        hidden = {LABELS[j] for j in np.flatnonzero(session.rows.blind[row])}
        for j in np.flatnonzero(~session.rows.blind[row]).tolist():
            found = session.why(row, j)
            assert not {reason["name"].rpartition(" ")[0] for reason in found["reasons"]} & hidden
            assert not {name for one in found["settles"] for name, _ in one["labels"]} & hidden


def test_numbers_are_shown_as_they_are(folder, tmp_path):
    table = pd.DataFrame(
        {"tempo": [0.1, 0.2, 0.3], "year": [1234567890123456789, 2, 3], "id": [1234567, None, 1.5]}
    )
    rows = ReviewedRows(
        load_model(folder / "songs.model"), table[["tempo", "year"]], table,
        AnswerStore(tmp_path / "a.sqlite"), model=("d" * 64, "m"),
    )  # fmt: skip
    session = ReviewSession(rows, show=["year", "id"])
    cells = [[cell["value"] for cell in session.view(row, "a")["content"]] for row in range(3)]
    assert cells == [["1234567890123456789", "1234567"], ["2", None], ["3", "1.5"]]
    session.answer(0, 0, 1, "ann", "request-1")
    assert json.loads(next(iter(session.rows.store.rows().values())))["year"] == 1234567890123456789


def test_an_answer_changes_other_labels_over_a_model_of_texts(tmp_path):
    """Whatever model is underneath: here a refund is always about billing."""
    rng = np.random.default_rng(0)
    refund = rng.random(200) < 0.3
    billing = refund | (rng.random(200) < 0.2)
    words = np.where(rng.random(200) < 0.5, "thanks", np.where(billing, "invoice", "hello"))
    table = pd.DataFrame({"text": words + np.where(refund & (rng.random(200) < 0.5), " back", "")})
    Y = pd.DataFrame({"billing": billing, "refund": refund}).astype(int)
    encoder = make_column_transformer((CountVectorizer(), "text"))
    model = JointDecision(make_pipeline(encoder, LogisticRegression()), random_state=0)
    rows = ReviewedRows(
        model.fit(table, Y), table, table, AnswerStore(tmp_path / "a.sqlite"), model=("d" * 64, "m")
    )
    session = ReviewSession(rows, show=["text"])
    row = int(np.flatnonzero(table["text"] == "thanks")[0])
    before = session.view(row, "ann")["labels"][0]
    session.answer(row, 1, 1, "ann", "request-1")
    after = session.view(row, "ann")["labels"][0]
    assert after["upper"] > before["upper"] + 0.2


def test_keys_do_not_depend_on_the_order_of_columns_or_on_integers_becoming_floats():
    one = pd.DataFrame({"a": [1.5, 2.0, 2.0**60], "b": ["x", "y", "z"]})
    other = pd.DataFrame({"b": ["x", "y", "z"], "a": [1.5, 2, 2**60]}, dtype=object)
    assert row_keys(one) == row_keys(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["007"], ["7"]),
        (["7"], ["7.0"]),
        (["1e1"], ["10"]),
        (["2.0"], [2]),
        (["True"], [True]),
        ([True], [1]),
        ([None], [""]),
        (["nan"], [np.nan]),
        (["p\x1fq", "r"], ["p", "q\x1fr"]),
        (["a1:b", "c"], ["a", "1:bc"]),
    ],
)
def test_different_cells_have_different_keys(one, other):
    cells = pd.DataFrame([one, other], dtype=object)
    keys = row_keys(cells)
    assert keys[0].hash != keys[1].hash
    assert row_keys(cells[::-1]) == keys[::-1]


def test_column_names_do_not_run_into_each_other():
    one, other = pd.DataFrame([[1]], columns=["a\x1eb"]), pd.DataFrame([[1, 1]], columns=["a", "b"])
    assert row_keys(one)[0] != row_keys(other)[0]
    assert row_keys(pd.DataFrame({"ab": ["c"]})) != row_keys(pd.DataFrame({"a": ["bc"]}))


def test_answers_stay_with_their_rows_when_rows_are_swapped(folder, tmp_path):
    lines = ["tempo,year,id", "0.1,1990,007", "0.1,1990,7", "0.1,1990,x"]
    given = ["--what", "final", "--model", str(folder / "songs.model"), "--data", "new.csv"]
    (tmp_path / "new.csv").write_text("\n".join(lines))
    session = read_session(
        *map(str, (folder / "songs.model", tmp_path / "new.csv", tmp_path / "a.sqlite"))
    )
    session.answer(0, 0, 1, "ann", "request-1")
    session.answer(1, 0, 0, "ann", "request-2")
    session.rows.store.close()
    (tmp_path / "new.csv").write_text("\n".join([lines[0], *lines[:0:-1]]))
    credalchain("review", "export", "a.sqlite", *given, "--out", "final.csv", cwd=tmp_path)
    final = pd.read_csv(tmp_path / "final.csv", dtype=str).set_index("id")
    assert final.rock[["007", "7"]].tolist() == ["1", "0"]


def test_export_tells_of_answers_that_fell_away(answered, folder, tmp_path):
    path, _ = answered
    pd.read_csv(folder / "new.csv").assign(more=1).to_csv(tmp_path / "new.csv", index=False)
    done = credalchain(
        "review", "export", str(path), "--what", "final", "--model", folder / "songs.model",
        "--data", "new.csv", "--out", "final.csv", cwd=tmp_path,
    )  # fmt: skip
    assert "to rows or labels that are not in new.csv" in done.stderr


def test_a_request_of_the_same_name_with_other_content_is_refused(session):
    session.answer(0, 0, 1, "ann", "request-1")
    for row, label, value in [(0, 1, 1), (0, 0, 0), (1, 0, 1)]:
        with pytest.raises(ReviewError, match="already used for another event"):
            session.answer(row, label, value, "ann", "request-1")
    with pytest.raises(ReviewError, match="already used for another event"):
        session.undo("ann", "request-1")
    assert len(session.rows.store.events()) == 1


def test_failures_are_told_with_all_headers(client_of, session):
    client = client_of(session)
    session.next_row = None  # something that cannot be
    answer = client.post("/api/next", json={"who": "ann", "order": "in order"})
    assert answer.status_code == 500
    assert "the server failed" in answer.json()["detail"]
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    strange = client.post(
        "/api/undo",
        content='{"who": "ann", "request": NaN}',
        headers={"content-type": "application/json"},
    )
    assert strange.status_code == 422
    chunked = client.post(
        "/api/undo", content=iter([b"{}"]), headers={"content-type": "application/json"}
    )
    assert chunked.status_code == 411


def test_a_stale_cookie_does_not_keep_out_who_knows_the_token(client_of, session):
    client = client_of(session, token="right")
    client.cookies.set(f"credalchain_{client.base_url.port}", "stale")
    assert client.get("/", follow_redirects=False).status_code == 401
    assert client.get("/?token=right", follow_redirects=False).status_code == 303
    told = {"authorization": "Bearer right"}
    assert client.get("/api/session", headers=told).status_code == 200


@pytest.mark.parametrize("token", ["schlüssel-für-alle", "ключ-для-всех-нас"])
def test_tokens_beyond_ascii(client_of, session, token):
    client = client_of(session, token=token)
    for given in (token.encode(), token.encode()[:-1], b"\xff\xfe", b"wrong"):
        told = {"authorization": b"Bearer " + given}
        expected = 200 if given == token.encode() else 401
        assert client.get("/api/session", headers=told).status_code == expected
    assert client.get("/", params={"token": token}, follow_redirects=False).status_code == 303
    assert client.get("/api/session").status_code == 200  # by the cookie


def test_a_locked_file_is_told_and_the_answer_taken_later(
    client_of, session, tmp_path, monkeypatch, caplog
):
    session.rows.store._connection.execute("PRAGMA busy_timeout = 50")
    client = client_of(session)
    other = sqlite3.connect(tmp_path / "answers.sqlite", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    body = {"who": "ann", "request": "request-0001", "label": 0, "value": 1}
    refused = client.post("/api/rows/0/answers", json=body)
    assert refused.status_code == 503
    assert "answers.sqlite cannot be used now: database is locked" in refused.json()["detail"]
    assert [(record.exc_info, "database is locked" in record.message) for record in caplog.records
            if record.name.startswith("credalchain")] == [(None, True)]  # fmt: skip
    other.execute("ROLLBACK")
    assert client.post("/api/rows/0/answers", json=body).status_code == 200
    assert session.rows.human_labels[0, 0] == 1


def test_a_full_disk_is_told_and_the_answer_taken_later(client_of, session):
    client = client_of(session)
    connection = session.rows.store._connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    statuses = []
    for number in range(100):
        body = {"who": "ann", "request": f"request-{number:04}", "label": 0, "value": 1}
        statuses.append(client.post(f"/api/rows/{number % N}/answers", json=body).status_code)
        if statuses[-1] != 200:
            break
    assert statuses[-1] == 503
    connection.execute("PRAGMA max_page_count = 100000")
    assert client.post(f"/api/rows/{number % N}/answers", json=body).status_code == 200
    assert len(session.rows.store.events()) == len(statuses)


@pytest.mark.parametrize("n_pages", [1, 4, 10])
def test_a_start_on_a_full_disk_leaves_no_file(tmp_path, monkeypatch, n_pages):
    connect = sqlite3.connect

    def connect_to_a_small_disk(*arguments, **options):
        connection = connect(*arguments, **options)
        connection.execute(f"PRAGMA max_page_count = {n_pages}")
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect_to_a_small_disk)
    with pytest.raises(AnswersFileError, match="disk is full"):
        AnswerStore(tmp_path / "a.sqlite").add_model("a" * 50_000, "m")
    assert list(tmp_path.iterdir()) == []


def test_a_locked_file_is_told_in_the_terminal(answered, folder, tmp_path, monkeypatch):
    monkeypatch.setattr("credalchain.review.store._PATIENCE_SECONDS", 0.05)
    other = sqlite3.connect(answered[0], isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    given = ["review", "songs.model", "new.csv", "--no-browser", "--out", answered[0]]
    done = credalchain(*given, cwd=folder, status=1)
    assert "answers.sqlite cannot be used now: database is locked" in done.stderr
    assert answered[0].is_file()


def test_the_pace_is_shown_after_some_minutes_by_a_clock_that_does_not_jump(session, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "time", lambda: 1e9 * (-1) ** len(session.rows.store.events()))
    for number in range(12):
        session.answer(number, 0, 1, "ann", f"request-{number:03}")
        assert session.progress()["answers_an_hour"] is None
        now[0] += 14.0
    now[0] += 12.0  # three minutes in all
    assert session.progress()["answers_an_hour"] == 240
    now[0] += 7200.0
    assert session.progress()["answers_an_hour"] is None


def test_whole_numbers_stay_whole_in_exports(folder, tmp_path):
    """With missing cells, too; numbers that were written with a point keep it."""
    given = ["--what", "final", "--model", str(folder / "songs.model"), "--data", "new.csv"]
    lines = ["tempo,year,plays,price", "0.1,1990,3,2.0", "0.2,1991,,3.0", "0.3,,5,4.0"]
    (tmp_path / "new.csv").write_text("\n".join(lines))
    session = read_session(
        *map(str, (folder / "songs.model", tmp_path / "new.csv", tmp_path / "a.sqlite"))
    )
    for row in range(3):
        session.answer(row, 0, 1, "ann", f"request-{row}")
    session.rows.store.close()
    for what in ("final", "training"):
        given[1], end = what, 6 if what == "final" else 4
        credalchain("review", "export", "a.sqlite", *given[:end], "--out", "o.csv", cwd=tmp_path)
        cells = [line.split(",")[:4] for line in (tmp_path / "o.csv").read_text().splitlines()]
        assert [",".join(row) for row in cells] == lines
    given[1] = "label-studio"
    credalchain("review", "export", "a.sqlite", *given, "--out", "o.json", cwd=tmp_path)
    tasks = [record["data"] for record in json.loads((tmp_path / "o.json").read_text())]
    assert [cells["plays"] for cells in tasks] == [3, None, 5]
    with_gaps = "\n".join([lines[0] + ",rock", "0.1,1990,3,2.0,", "0.2,1991,4,3.0,0"])
    (tmp_path / "train.csv").write_text(with_gaps)
    fit = ["fit", "train.csv", "--labels", "rock", "--answers", "a.sqlite", "--out", "m"]
    done = credalchain(*fit, "--method", "chain", cwd=tmp_path)
    assert "1 missing label of rows in train.csv filled, 0 others replaced, 2 rows added" in (
        done.stderr
    )


def test_learning_fills_the_very_row(folder, tmp_path):
    """Of rows that are alike, the one that was answered; others in the data are left alone."""
    table = pd.DataFrame({"tempo": [0.5] * 4, "year": [1990] * 4, "rock": [0, 1, 0, None]})
    table.to_csv(tmp_path / "data.csv", index=False)
    features = table[["tempo", "year"]]
    rows = ReviewedRows(
        load_model(folder / "songs.model"), features, features,
        AnswerStore(tmp_path / "a.sqlite"), model=("d" * 64, "m"),
    )  # fmt: skip
    rows.answer(3, 0, 1, "ann", "request-1")
    given = ["fit", "data.csv", "--labels", "rock", "--answers", "a.sqlite", "--out", "m"]
    given += ["--method", "chain"]
    done = credalchain(*given, cwd=tmp_path)
    assert "1 missing label of rows in data.csv filled, 0 others replaced" in done.stderr
    assert load_model(tmp_path / "m").model_.counts.label.tolist() == [[2, 2]]
    done = credalchain("fit", "-", *given[2:], cwd=tmp_path, status=1)
    assert "not from stdin" in done.stderr
    (tmp_path / "parts").mkdir()
    for at in (0, 2):
        table[at : at + 2].to_csv(tmp_path / "parts" / f"{at}.csv", index=False)
    done = credalchain("fit", "parts", *given[2:], cwd=tmp_path)
    assert "1 missing label of rows in parts filled, 0 others replaced" in done.stderr


# -- in a process of its own -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--host", "0.0.0.0"], "give a --token of at least 16 characters, got 0."),
        (["--host", "0.0.0.0", "--token", "s3cret"], "at least 16 characters, got 6."),
        (["--show", "nothing"], "--show: there is no column 'nothing'"),
        (["--blind", "2"], "Invalid value for '--blind'"),
    ],
)
def test_options_that_are_refused(folder, tmp_path, options, words):
    status = 2 if "--blind" in options else 1
    done = credalchain(
        "review", "songs.model", "new.csv", "--out", str(tmp_path / "a.sqlite"), *options,
        cwd=folder, status=status,
    )  # fmt: skip
    assert words in " ".join(done.stderr.split())


def test_without_the_packages_it_says_which(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "credalchain.review.server", None)
    given = ["review", "songs.model", "new.csv", "--out", tmp_path / "a.sqlite"]
    done = credalchain(*given, cwd=folder, status=1)
    assert 'pip install "credalchain[review]"' in done.stderr


N_KILLS, N_ANSWERS = (20, 200) if os.environ.get("CREDALCHAIN_FULL") == "1" else (3, 40)


@pytest.mark.slow
def test_killing_the_server_between_answers_loses_none(serve, tmp_path):
    rng = np.random.default_rng(0)
    server, confirmed, requests = serve(), set(), []
    client = httpx.Client(timeout=10)
    kills = iter(sorted(rng.choice(np.arange(2, N_ANSWERS - 2), N_KILLS, replace=False).tolist()))
    next_kill = next(kills)
    number = 0
    while number < N_ANSWERS:
        body = {"request": f"request-{number:04}", "who": "ann", "value": int(rng.integers(2))}
        row, label = int(rng.integers(N)), int(rng.integers(len(LABELS)))
        url = f"{server.url}/api/rows/{row}/answers"
        if number == next_kill:
            killer = threading.Timer(float(rng.random()) * 0.004, server.kill)
            killer.start()
            next_kill = next(kills, None)
        else:
            killer = None
        try:
            answer = client.post(url, json={**body, "label": label})
            assert answer.status_code == 200, answer.text
            confirmed.add(body["request"])
            requests.append(body["request"])
            number += 1
        except httpx.HTTPError:
            assert killer is not None
        if killer is not None:
            killer.join()
            server.process.join(timeout=30)
            server = serve()
            url = f"{server.url}/api/rows/{row}/answers"
            again = client.post(url, json={**body, "label": label})  # the same request
            assert again.status_code == 200
            if body["request"] not in confirmed:
                confirmed.add(body["request"])
                requests.append(body["request"])
                number += 1
    client.close()
    server.stop()
    stored = [one.request for one in AnswerStore(tmp_path / "answers.sqlite").events()]
    assert sorted(stored) == sorted(confirmed)
    assert len(stored) == len(set(stored)) == N_ANSWERS


@pytest.mark.slow
def test_many_people_at_once(serve, tmp_path):
    server, confirmed, problems = serve(), [], []

    def work(who):
        with httpx.Client(base_url=server.url, timeout=30) as client:
            for number in range(10):
                view = client.post("/api/next", json={"who": who, "order": "settles most"}).json()
                if view["row"] is None:
                    return
                body = {"request": f"{who}-{number:04}", "who": who, "value": 1}
                body["label"] = view["asked"][0] if view["asked"] else 0
                answer = client.post(f"/api/rows/{view['row']}/answers", json=body)
                (confirmed if answer.status_code == 200 else problems).append(body["request"])

    threads = [threading.Thread(target=work, args=(f"person{k:02}",)) for k in range(20)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    server.stop()
    assert not problems
    stored = [one.request for one in AnswerStore(tmp_path / "answers.sqlite").events()]
    assert sorted(stored) == sorted(confirmed)
