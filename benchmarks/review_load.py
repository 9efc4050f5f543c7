"""How long people wait for the review page: large tables, and many people at once.

    python benchmarks/review_load.py [SECONDS]

A real server in a process of its own; times are those of whole requests, as the page makes them.
"""

import json
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd

from credalchain import CredalChainClassifier, JointDecision, save_model
from credalchain.review.store import AnswerStore

FEATURES, LABELS = 10, 20


def make_review(folder: Path, n: int, model: Any) -> None:
    """A model, and rows of which it leaves much open."""
    rng = np.random.default_rng(0)
    W = rng.normal(size=(FEATURES, LABELS))
    X = rng.normal(size=(n + 2000, FEATURES)).round(3)
    Y = (X @ W + 2 * rng.normal(size=(len(X), LABELS)) > 0).astype(int)
    names = [f"f{i}" for i in range(FEATURES)]
    table = pd.DataFrame(X, columns=names)
    model.fit(table[:2000], pd.DataFrame(Y[:2000], columns=[f"y{j}" for j in range(LABELS)]))
    save_model(model, folder / "model")
    table[2000:].to_csv(folder / "new.csv", index=False)


def review(n: int, model: Any, n_people: int, seconds: float) -> dict[str, Any]:
    """Percentiles in milliseconds of "next row" and "answer", while people work."""
    times: dict[str, list[float]] = {"next": [], "answer": []}
    confirmed: list[str] = []
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make_review(folder, n, model)
        command = [sys.executable, "-m", "credalchain", "review", "model", "new.csv", "--port", "0"]
        server = subprocess.Popen(
            [*command, "--no-browser"], cwd=folder, stdout=subprocess.PIPE, text=True
        )
        assert server.stdout is not None
        started = time.perf_counter()
        url = server.stdout.readline().split()[0]
        ready = time.perf_counter() - started
        stop = time.monotonic() + seconds

        def work(who: str) -> None:
            rng = np.random.default_rng(abs(hash(who)) % 2**32)
            with httpx.Client(base_url=url, timeout=30) as client:
                row = None
                while time.monotonic() < stop:
                    view = ask(client, "next", "/api/next", {"who": who, "after": row})
                    if view is None or view["row"] is None:
                        return
                    row = view["row"]
                    for _ in range(3):
                        if not view["asked"]:
                            break
                        body = {"request": uuid.uuid4().hex, "who": who, "label": view["asked"][0]}
                        body["value"] = int(rng.integers(2))
                        view = ask(client, "answer", f"/api/rows/{row}/answers", body)
                        if view is None:
                            return
                        confirmed.append(body["request"])

        def ask(client: Any, kind: str, path: str, body: Any) -> Any:
            began = time.perf_counter()
            answer = client.post(path, json=body)
            times[kind].append(1e3 * (time.perf_counter() - began))
            if answer.status_code != 200:
                problems.append(answer.text)
                return None
            return answer.json()

        people = [threading.Thread(target=work, args=(f"p{k}",)) for k in range(n_people)]
        for person in people:
            person.start()
        for person in people:
            person.join()
        server.terminate()
        server.wait()
        stored = {one.request for one in AnswerStore(folder / "answers.sqlite").events()}
    percentiles = {
        kind: {str(q): round(float(np.percentile(found, q)), 1) for q in (50, 95, 99, 100)}
        for kind, found in times.items()
    }
    return {
        "rows": n, "people": n_people, "ready": round(ready, 1), "answers": len(confirmed),
        "lost": len(set(confirmed) - stored), "errors": len(problems), **percentiles,
    }  # fmt: skip


def measure(seconds: float) -> dict[str, Any]:
    chain = CredalChainClassifier(s=20.0, random_state=0)
    joint = JointDecision(reward=0.3, random_state=0)
    return {
        "one person, naive chain": review(100_000, chain, 1, seconds / 4),
        "one person, recommended": review(10_000, joint, 1, seconds / 4),
        "20 people, naive chain": review(100_000, chain, 20, seconds),
        "20 people, recommended": review(10_000, joint, 20, seconds),
    }


def main() -> None:
    found = measure(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
