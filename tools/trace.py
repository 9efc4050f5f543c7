"""How far a row of data travels: functions, modules, switches between modules and depth.

Counts the package's own Python functions (compiled kernels are one step for their caller) while
small classifiers are fitted and asked, and while commands and the review page do their work. Run it
with ``python tools/trace.py``.
"""

import sys
import tempfile
from collections.abc import Callable
from itertools import count
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd

from credalchain import CredalChainClassifier, JointDecision, PromisedClassifier
from credalchain.cli.app import app
from credalchain.cli.review import read_session
from credalchain.datasets.registry import EMBEDDED
from credalchain.studies.study_file import Method, Study
from credalchain.studies.tasks import expand
from credalchain.studies.trials import run_task

# what newer Pythons inline, and what dataclasses generate
_INLINE = ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")


class Journey:
    """Collects what is called while it is the profiler."""

    def __init__(self) -> None:
        self.functions: set[tuple[str, str, int]] = set()
        self.modules: set[str] = set()
        self.switches, self.depth = 0, 0
        self._stack: list[str] = []

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """Return called by the interpreter."""
        module = str(frame.f_globals.get("__name__", ""))
        code = frame.f_code
        inline = code.co_name in _INLINE or code.co_qualname.startswith("__create_fn__")
        if not module.startswith("credalchain") or event not in ("call", "return") or inline:
            return
        if event == "return":
            if self._stack:
                self._stack.pop()
            return
        self.functions.add((module, code.co_qualname, code.co_firstlineno))
        self.modules.add(module)
        self.switches += bool(self._stack) and self._stack[-1] != module
        self._stack.append(module)
        self.depth = max(self.depth, len(self._stack))


def travelled(step: Callable[[], Any]) -> Journey:
    """Return the journey of one call."""
    journey = Journey()
    sys.setprofile(journey)
    try:
        step()
    finally:
        sys.setprofile(None)
    return journey


def step_of_study() -> Callable[[], Any]:
    """Return a task of a study: a chain on the embedded data, in the least number of folds, two."""
    method = Method("chain", s=(0.5, 1.0, 2.0))
    about = {"corruption": "uniform", "levels": (0.0,), "folds": 2}
    measures = ("set_accuracy", "completeness", "incorrectness")
    study = Study("tiny", 0, "paper", (EMBEDDED,), (method,), repeats=1, measures=measures, **about)
    (task,) = expand(study)
    run_task(task)  # reads the data
    return lambda: run_task(task)


def steps_of_commands(X: Any, Y: Any, folder: str) -> dict[str, Callable[[], Any]]:
    """``fit`` and ``predict`` as commands, and an answer on the review page."""
    model, data = f"{folder}/songs.model", f"{folder}/songs.csv"
    table = pd.DataFrame(X).add_prefix("x").join(pd.DataFrame(Y).add_prefix("y"))
    table.assign(key=np.where(X[:, 0] > 0, "C", "D")).to_csv(data, index=False)
    fit = ["-q", "fit", data, "--labels", "y0,y1,y2", "--out", model]
    predict = ["-q", "predict", model, data, "--out", f"{folder}/answers.csv"]
    app(fit, standalone_mode=False)  # imports, compiles
    app(predict, standalone_mode=False)
    session, request = read_session(model, data, f"{folder}/answers.sqlite"), count()
    session.next_row("me", "in order")
    return {
        "credalchain fit": lambda: app(fit, standalone_mode=False),
        "credalchain predict": lambda: app(predict, standalone_mode=False),
        "answer on the page": lambda: session.answer(0, 0, 1, "me", f"request {next(request)}"),
    }


def main() -> None:
    """Print the table."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 5)), rng.integers(0, 2, (60, 3))
    chain = CredalChainClassifier(random_state=0)
    chain.fit(X, Y).predict_path(X, [0.1, 0.2])  # compiles, imports
    chain.infer(X, s=0.3)
    decision = JointDecision(random_state=0).fit(X, Y)
    promised = PromisedClassifier(chain, {"row_error": 0.4}, random_state=0).fit(X, Y)
    for classifier in (decision, promised):
        classifier.predict_partial(X)
    steps: dict[str, Callable[[], Any]] = {
        "fit": lambda: chain.fit(X, Y),
        "infer, new s": lambda: chain.infer(X[:1], s=1.0),
        "infer, kept tables": lambda: chain.infer(X[:1], s=1.0),
        "predict_path": lambda: chain.predict_path(X[:1], [0.5, 1.0, 2.0]),
        "JointDecision: fit": lambda: decision.fit(X, Y),
        "JointDecision: predict_partial": lambda: decision.predict_partial(X[:1]),
        "PromisedClassifier: fit": lambda: promised.fit(X, Y),
        "PromisedClassifier: predict_partial": lambda: promised.predict_partial(X[:1]),
        **steps_of_commands(X, Y, tempfile.mkdtemp()),
        "a study's task, two folds": step_of_study(),
    }
    print("| one row's way | functions | modules | switches between modules | depth |")
    print("|---|---:|---:|---:|---:|")
    for name, step in steps.items():
        found = travelled(step)
        sizes = len(found.functions), len(found.modules), found.switches, found.depth
        print(f"| {name} | {' | '.join(map(str, sizes))} |")


if __name__ == "__main__":
    main()
