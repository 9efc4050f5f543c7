"""``credalchain review``: the page, and answers in and out."""

import hashlib
import json
import socket
import sys
import threading
import webbrowser
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
import typer.core

from credalchain.cli import options as o
from credalchain.cli.console import note
from credalchain.cli.predict import features_for, inner_classifiers, text_columns
from credalchain.cli.tables import pick_columns, read_table, write_table
from credalchain.files import replacing
from credalchain.model_files import load_model
from credalchain.progress import Progress
from credalchain.review.exchange import (
    people_answers,
    read_argilla,
    read_label_studio,
    to_argilla,
    to_label_studio,
    training_rows,
)
from credalchain.review.rows import as_json
from credalchain.review.session import ReviewSession
from credalchain.review.store import AnswerStore

_PORT, _MOST_PORTS = 8350, 20
_SHOWN = 8  # columns, if none are named
_LOCAL = ("127.0.0.1", "localhost", "::1")
Out = Annotated[str, typer.Option(help="Where answers go, and are taken up again.")]
Answers = Annotated[str, typer.Argument(help="A file that the page wrote.")]


class _OpenByDefault(typer.core.TyperGroup):
    """``review MODEL DATA`` is ``review open MODEL DATA``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["open", *args]
        return super().parse_args(ctx, args)


review = typer.Typer(
    cls=_OpenByDefault,
    no_args_is_help=True,
    help="Open a page where people answer what was left open: review MODEL DATA; and what comes "
    "of it: review export, review import.",
)


@review.command("open", no_args_is_help=True)
def open_page(
    model: o.ModelFile,
    data: o.Data,
    show: Annotated[
        str, typer.Option(help="Columns of DATA that people see: text, numbers, images.")
    ] = "",
    out: Out = "answers.sqlite",
    blind: Annotated[
        float,
        typer.Option(
            min=0.0, max=1.0, help="Share of the answered labels to ask without a suggestion."
        ),
    ] = 0.0,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = _PORT,
    host: Annotated[str, typer.Option(help="Where to listen; others need --token.")] = _LOCAL[0],
    token: Annotated[str, typer.Option(help="What a client has to know.")] = "",
    browser: Annotated[bool, typer.Option(help="Open the page.")] = True,
    jobs: o.Jobs = 1,
) -> None:
    """Open the page.

    Example: `credalchain review songs.model new.csv --show title,lyrics`
    """
    if host not in _LOCAL and not token:
        raise ValueError(f"--host {host} can be reached by others: give a --token of your own.")
    from credalchain.review.server import make_app  # needs fastapi

    session = read_session(model, data, out, show=show, blind=blind, jobs=jobs)
    listening = _listen(host, port)
    address = f"http://{_in_address(host)}:{listening.getsockname()[1]}/"
    names = {host, *_LOCAL, "[::1]"} if host in _LOCAL else {host, socket.gethostname().lower()}
    hosts = {f"{_in_address(name)}:{listening.getsockname()[1]}" for name in names}
    app = make_app(session, hosts=hosts, token=token or None, title=Path(data).name)
    if token:
        address += f"?token={token}"
    progress = session.progress()
    left, rows = progress["labels_left"], progress["rows_left"]
    note(f"{left} labels of {rows} rows are open; answers are kept in {out}")
    if session.n_orphans:
        note(f"note: {session.n_orphans} answers of {out} belong to rows or labels not in {data}")
    print(f"{address}  (Ctrl-C ends)", flush=True)
    if browser:
        threading.Timer(0.5, webbrowser.open, [address]).start()
    _serve(app, listening)
    session.store.close()


def read_session(
    model: str, data: str, out: str, *, show: str = "", blind: float = 0.0, jobs: int = 1
) -> ReviewSession:
    """The model, the data and the answers, ready to be reviewed."""
    classifier = load_model(model)
    for one in inner_classifiers(classifier):
        one.set_params(n_jobs=jobs)
    frame, _ = read_table(data, text_columns=text_columns(classifier))
    features = features_for(classifier, frame, data)
    labels = set(classifier.label_names_.tolist())
    table = frame.drop(columns=[name for name in frame.columns if name in labels])
    shown = pick_columns(table, show, "--show") if show else list(table.columns[:_SHOWN])
    if len(frame) == 0:
        raise ValueError(f"{data} has no rows.")
    digest = hashlib.sha256(Path(model).read_bytes()).hexdigest()
    bar = Progress("rows", shown=sys.stderr is not None and sys.stderr.isatty())
    return ReviewSession(
        classifier,
        features,
        table,
        AnswerStore(out),
        model=(digest, Path(model).name),
        show=shown,
        blind=blind,
        folder=Path(data).parent if Path(data).is_file() else None,
        on_progress=bar,
    )


def _in_address(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _listen(host: str, port: int) -> socket.socket:
    """The port, or one after it if nobody asked for it by name."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in range(port, min(port + _MOST_PORTS, 65536)) if port == _PORT else [port]:
        # named as TCP, asyncio sends what it has at once, and nobody waits for late confirmations
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, number))
            listening.listen(128)  # who is early waits
            return listening
        except OSError as error:
            listening.close()
            problem = error
    raise ValueError(f"--port {port}: {problem.strerror}; give another.")


def _serve(app: Any, listening: socket.socket) -> None:
    import uvicorn

    settings = uvicorn.Config(app, log_level="warning", lifespan="off", server_header=False)
    uvicorn.Server(settings).run(sockets=[listening])


@review.command("export", no_args_is_help=True)
def export(
    answers: Answers,
    out: Annotated[str, typer.Option(help=".csv, .tsv, .parquet; .json for other tools.")],
    model: Annotated[str, typer.Option(help="The model file, for final labels.")] = "",
    data: Annotated[str, typer.Option(help="The data, for final labels.")] = "",
    what: Annotated[
        str,
        typer.Option(
            help="people: every answer; final: the model's answers and people's; training: rows "
            "that people answered, with their labels; label-studio or argilla: for these tools."
        ),
    ] = "people",
) -> None:
    """Write what people answered.

    Example: `credalchain review export answers.sqlite --what final --model songs.model --data
    new.csv --out final.csv`
    """
    if what == "people":
        with AnswerStore(answers, create=False) as store:
            table = people_answers(store)
        write_table(table, out)
        note(f"{len(table)} answers -> {out}")
        return
    if what not in ("final", "training", "label-studio", "argilla"):
        raise ValueError(
            f"--what must be people, final, training, label-studio or argilla, got {what!r}."
        )
    if not model or (what != "training" and not data):
        raise ValueError(
            f"--what {what} needs --model{'' if what == 'training' else ' and --data'}."
        )
    if what == "training":
        names = load_model(model).label_names_.tolist()
        with AnswerStore(answers, create=False) as store:
            table = training_rows(store, names)
        write_table(table, out)
        note(f"{len(table)} rows -> {out}")
        return
    if not Path(answers).is_file():
        raise FileNotFoundError(f"there is no file {answers}.")
    session = read_session(model, data, answers)
    if what == "final":
        words = np.array(["0", "1", "*"])[session.labels]  # as predict writes them
        final = pd.DataFrame(words.astype(object), columns=session.label_names)
        write_table(pd.concat([session.table, final], axis=1), out)
    else:
        if Path(out).suffix.lower() != ".json":
            raise ValueError(f"--out {out}: the name must end in .json.")
        contents = [json.loads(as_json(row)) for _, row in session.table.iterrows()]
        to = to_label_studio if what == "label-studio" else to_argilla
        text = to(
            contents, session.labels, session.person, session.label_names, session.model_digest[:12]
        )
        with replacing(Path(out)) as file:
            file.write(text.encode())
    session.store.close()
    note(f"{len(session.labels)} rows -> {out}")


@review.command("import", no_args_is_help=True)
def import_answers(
    file: Annotated[str, typer.Argument(help="A .json file of Label Studio or Argilla.")],
    model: Annotated[str, typer.Option(help="The model file.")],
    data: Annotated[str, typer.Option(help="The data that was exported.")],
    out: Out = "answers.sqlite",
    what: Annotated[str, typer.Option(help="label-studio or argilla.")] = "label-studio",
) -> None:
    """Take answers that people gave in Label Studio or Argilla.

    Tasks are rows of DATA by their id, counted from 0.
    """
    readers = {"label-studio": read_label_studio, "argilla": read_argilla}
    if what not in readers:
        raise ValueError(f"--what must be label-studio or argilla, got {what!r}.")
    text = Path(file).read_text(encoding="utf-8")
    session = read_session(model, data, out)
    found = readers[what](text, session.label_names)
    wrong = [row for row, _, _ in found if not 0 <= row < len(session.keys)]
    if wrong:
        raise ValueError(f"{file}: {data} has no row {wrong[0]}.")
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    n = 0
    for row, values, who in found:
        for name, value in values.items():
            j = session.label_names.index(name)
            session.answer(row, j, value, who, f"{digest}-{row}-{j}-{who}")  # twice is once
            n += 1
    session.store.close()
    note(f"{n} answers of {len(found)} rows -> {out}")
