"""How far a row of data travels: functions, modules, switches between modules and depth.

Counts the package's own Python functions (compiled kernels are one step for their caller) while
small classifiers are fitted and asked. Run it with ``python tools/trace.py``.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

from credalchain import CredalChainClassifier, JointDecision, PromisedClassifier

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
        """Called by the interpreter."""
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
    """The journey of one call."""
    journey = Journey()
    sys.setprofile(journey)
    try:
        step()
    finally:
        sys.setprofile(None)
    return journey


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
    }
    print("| one row's way | functions | modules | switches between modules | depth |")
    print("|---|---:|---:|---:|---:|")
    for name, step in steps.items():
        found = travelled(step)
        sizes = len(found.functions), len(found.modules), found.switches, found.depth
        print(f"| {name} | {' | '.join(map(str, sizes))} |")


if __name__ == "__main__":
    main()
