"""``credalchain review``: the page, and answers in and out."""

import hashlib
import signal
import socket
import sys
import threading
import webbrowser
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import numpy as np
import pandas as pd
import typer
import typer.core

from credalchain._utils.files import atomic_write
from credalchain._utils.progress import Progress
from credalchain._utils.text import plural
from credalchain._utils.validation import check_choice
from credalchain.cli import options as o
from credalchain.cli.console import note, read_model
from credalchain.cli.tables import inner_classifiers, pick_columns, read_for_model, write_table
from credalchain.model_selection import unwrap
from credalchain.review import exchange
from credalchain.review.rows import ReviewedRows
from credalchain.review.session import ReviewSession
from credalchain.review.store import AnswerStore

_PORT, _MAX_PORTS = 8350, 20
_SHOWN = 8  # columns, if none are named
_LOCAL = ("127.0.0.1", "localhost", "::1")
_EVERYWHERE = ("0.0.0.0", "::")
_MIN_TOKEN = 16  # characters, where others can reach the server


class _OpenByDefault(typer.core.TyperGroup):
    """``review MODEL DATA`` is ``review open MODEL DATA``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["open", *args]
        return super().parse_args(ctx, args)


review = typer.Typer(
    cls=_OpenByDefault,
    no_args_is_help=True,
    add_completion=False,
    help="Open a page where people answer the labels left open: review MODEL DATA (its options: "
    "review open --help); review export and review import exchange the answers.",
)


@review.command("open", no_args_is_help=True)
@o.with_options
def open_page(
    model: str,
    data: str,
    *,
    show: str = "",
    out: str = "answers.sqlite",
    blind: Annotated[float, typer.Option(min=0.0, max=1.0)] = 0.0,
    port: Annotated[int, typer.Option(min=0, max=65535)] = _PORT,
    host: str = _LOCAL[0],
    token: str = "",
    browser: bool = True,
    jobs: int = 1,
) -> None:
    """Open the page.

    Example: `credalchain review songs.model new.csv --show title,lyrics`

    Parameters
    ----------
    show
        Columns of DATA that people see: text, numbers, images.
    out
        File of answers; created, or continued if it exists.
    blind
        Share of the answered labels to ask without a suggestion.
    port
        Port to listen on; 0 for any free one.
    host
        Address to listen on; others than the default need --token.
    token
        A secret that clients must send; at least 16 characters with --host.
    browser
        Open the page.
    """
    host = host.lower()
    if host not in _LOCAL and len(token) < _MIN_TOKEN:
        raise ValueError(
            f"--host {host} can be reached by others: give a --token of at least {_MIN_TOKEN} "
            f"characters, got {len(token)}."
        )
    try:
        import uvicorn

        from credalchain.review.server import make_app  # needs fastapi
    except ImportError as error:
        raise ImportError(
            f'the review page needs more packages ({error}): pip install "credalchain[review]"'
        ) from error
    session = read_session(model, data, out, show=show, blind=blind, jobs=jobs)
    listening = _listen(host, port)
    number = listening.getsockname()[1]
    hosts = None  # whoever knows the token may call the server what they like
    if host in _LOCAL:
        hosts = {f"{_in_address(name)}:{number}" for name in _LOCAL}
    app = make_app(session, hosts=hosts, token=token or None, title=Path(data).name)
    reachable = socket.gethostname() if host in _EVERYWHERE else host
    address = f"http://{_in_address(reachable)}:{number}/"
    if token:
        address += f"?token={quote(token, safe='')}"
    left, n_blind = session.progress(), int(session.rows.blind.sum())
    to_answer = f"{plural(left['labels_left'], 'label')} of {plural(left['rows_left'], 'row')}"
    also = f" ({n_blind} to check the model)" if n_blind else ""
    note(f"to be answered: {to_answer}{also}; answers are kept in {out}")
    _report_orphans(session.rows, out, data)
    print(f"{address}  (Ctrl-C ends)", flush=True)
    if browser:
        threading.Timer(0.5, webbrowser.open, [address]).start()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # uvicorn ends, and hands it on
    settings = uvicorn.Config(app, log_level="warning", lifespan="off", server_header=False)
    with session.rows.store:  # when it is closed, the one file has everything
        uvicorn.Server(settings).run(sockets=[listening])


def read_session(
    model: str, data: str, out: str, *, show: str = "", blind: float = 0.0, jobs: int = 1
) -> ReviewSession:
    """Return the model, the data and the answers, ready to be reviewed."""
    classifier = read_model(model)
    for inner in inner_classifiers(classifier):
        inner.set_params(n_jobs=jobs)
    frame, features = read_for_model(classifier, data)
    labels = set(unwrap(classifier)[0].label_names_.tolist())
    table = frame.drop(columns=[name for name in frame.columns if name in labels])
    shown = pick_columns(table, show, "--show") if show else list(table.columns[:_SHOWN])
    digest = hashlib.sha256(Path(model).read_bytes()).hexdigest()
    with Progress("rows") as progress:
        rows = ReviewedRows(
            classifier, features, table, AnswerStore(out),
            model=(digest, Path(model).name), blind=blind, on_progress=progress,
        )  # fmt: skip
    return ReviewSession(
        rows, show=shown, folder=Path(data).parent if Path(data).is_file() else None
    )


def _in_address(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _listen(host: str, port: int) -> socket.socket:
    """Return the port, or one after it if nobody asked for it by name."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in range(port, min(port + _MAX_PORTS, 65536)) if port == _PORT else [port]:
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


@review.command("export", no_args_is_help=True)
@o.with_options
def export(
    answers: str, *, out: str, model: str = "", data: str = "", what: str = "people"
) -> None:
    """Export the answers of people.

    Example: `credalchain review export answers.sqlite --what final --model songs.model --data
    new.csv --out final.csv`

    Parameters
    ----------
    answers
        A file of answers, written by the page.
    out
        .csv, .tsv, .parquet; .json for Label Studio.
    model
        The model file, for final labels.
    data
        The data, for final labels.
    what
        people: every answer; final: the model's answers and people's; training: rows that people
        answered, with their labels; label-studio: for that tool.
    """
    needs = {"people": 0, "training": 1, "final": 2, "label-studio": 2}
    check_choice("--what", what, tuple(needs))
    if not all((model, data)[: needs[what]]):
        raise ValueError(
            f"--what {what} needs {' and '.join(['--model', '--data'][: needs[what]])}."
        )
    AnswerStore(answers, create=False).close()
    if what == "label-studio" and Path(out).suffix.lower() != ".json":
        raise ValueError(f"--out {out}: the name must end in .json.")
    if needs[what] < 2:
        with AnswerStore(answers) as store:
            if what == "people":
                table = exchange.people_answers(store)
            else:
                table = exchange.training_rows(
                    store, unwrap(read_model(model))[0].label_names_.tolist()
                )
        write_table(table, out)
        note(f"{plural(len(table), 'answer' if what == 'people' else 'row')} -> {out}")
        return
    rows = read_session(model, data, answers).rows
    with rows.store:
        if what == "label-studio":
            with atomic_write(Path(out)) as file:
                file.write(exchange.to_label_studio(rows).encode())
        else:
            texts = np.array(["0", "1", "*"], dtype=object)[rows.labels]  # as predict writes them
            final = pd.DataFrame(texts, columns=rows.label_names)
            write_table(pd.concat([rows.table, final], axis=1), out)
        _report_orphans(rows, answers, data)
    note(f"{plural(len(rows.labels), 'row')} -> {out}")


def _report_orphans(rows: ReviewedRows, answers: str, data: str) -> None:
    if rows.n_orphans:
        note(
            f"note: {plural(rows.n_orphans, 'answer')} of {answers} to rows or labels that are "
            f"not in {data}, or whose columns have changed."
        )


@review.command("import", no_args_is_help=True)
@o.with_options
def import_answers(file: str, *, model: str, data: str, out: str = "answers.sqlite") -> None:
    """Import annotations from Label Studio.

    Tasks are matched to rows of DATA by the key that `review export` wrote, or by content.

    Parameters
    ----------
    file
        A .json file of Label Studio.
    model
        The model file.
    data
        The data that was exported.
    out
        File of answers; created, or continued if it exists.
    """
    text = Path(file).read_text(encoding="utf-8")
    rows = read_session(model, data, out).rows
    with rows.store:
        annotations = list(exchange.read_label_studio(text, rows))
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        n_new = 0
        for i, (row, values, who) in enumerate(annotations):
            for name, value in values.items():
                j = rows.label_names.index(name)
                n_new += rows.answer(row, j, value, who, f"{digest}-{i}-{j}")[0]  # twice is once
    note(f"{plural(n_new, 'new answer')} of {plural(len(annotations), 'annotation')} -> {out}")
