"""The service of the how-to page answers as the model does."""

import asyncio
import re
import runpy
import sys
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pandas as pd
import pytest

from credalchain import load_model
from shell import credalchain

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_the_service_answers_as_the_model_does(tmp_path, monkeypatch):
    runpy.run_path(str(ROOT / "examples" / "tickets.py"))["write"](tmp_path)
    credalchain(
        "fit", "tickets.csv", "--labels", "tags", "--tag-separator", ",", "--drop", "received",
        "--promise", "row-error=0.1", "--out", "tickets.model", cwd=tmp_path,
    )  # fmt: skip
    page = (ROOT / "docs" / "how-to" / "serve.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    service = types.ModuleType("serve")
    monkeypatch.setitem(sys.modules, "serve", service)
    exec(code, service.__dict__)
    tickets = pd.read_csv("new.csv", sep=";")[["channel", "spent", "amount", "message"]][:50]
    sent = [{k: v for k, v in row.items() if v == v} for row in tickets.to_dict("records")]

    async def post():
        transport = httpx.ASGITransport(service.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            return await client.post("/answers", json=sent)

    with ThreadPoolExecutor(1) as thread:  # tests in a browser leave a loop running in this one
        given = thread.submit(asyncio.run, post()).result()
    assert given.status_code == 200
    labels = load_model("tickets.model").predict_partial(tickets)
    found = pd.DataFrame(given.json()).astype("Int64").fillna(-1).to_numpy()
    assert (found == labels).all()
    assert {-1, 0, 1} <= set(found.ravel().tolist())
