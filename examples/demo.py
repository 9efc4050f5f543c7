"""The main job on real data, start to end: ``python examples/demo.py FOLDER``, or ``make demo``."""

import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.text import visible
from credalchain.chains.classifier import CredalChainClassifier
from credalchain.cli.console import print_table, stdout
from credalchain.datasets import load_embedded_yeast
from credalchain.joint.decision import JointDecision
from credalchain.metrics import completeness_curve
from credalchain.model_files import save_model
from credalchain.plotting import plot_predictions
from credalchain.promises.classifier import PromisedClassifier

N_TRAINING = 2000
SHOWN_ROWS = slice(N_TRAINING, 2400, 50)
SHOWN_COMPLETENESS = (1.0, 0.9, 0.8, 0.6)
RECOMMENDED, CHAIN = "JointDecision(), recommended", "CredalChainClassifier(), the paper's"
Curves = dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]
"""Completeness and set-accuracy of each model, from bold to cautious."""


def compare(X: Any, Y: Any) -> tuple[Curves, JointDecision]:
    """Fit the recommended model and the paper's chain to the first rows, and try the others.

    The recommended model is returned with a reward that answers about three labels in five.
    """
    recommended = JointDecision(n_jobs=-1, random_state=0)
    models: dict[str, tuple[Any, Any]] = {
        RECOMMENDED: (recommended, np.geomspace(0.2, 5, 500)),
        CHAIN: (CredalChainClassifier(random_state=0), np.linspace(0, 12, 200)),
    }
    curves: Curves = {}
    for name, (model, values) in models.items():
        model.fit(X[:N_TRAINING], Y[:N_TRAINING])
        curves[name] = completeness_curve(
            Y[N_TRAINING:], model.predict_path(X[N_TRAINING:], values)
        )
    value_index = int(np.argmin(np.abs(curves[RECOMMENDED][0] - SHOWN_COMPLETENESS[-1])))
    recommended.set_params(reward=float(models[RECOMMENDED][1][value_index]))
    return curves, recommended


def draw(curves: Curves, recommended: Any, X: Any, Y: Any, folder: Path) -> list[Path]:
    """Draw the figures, as PNG and SVG."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "credalchain"  # the same file for the same picture
    ax: Any = plt.subplots(figsize=(6.4, 4.6), layout="constrained")[1]
    for (name, curve), color in zip(curves.items(), ("#009E73", "#0072B2"), strict=True):
        ax.plot(*curve, label=name, color=color, linewidth=2)
    ax.set(xlabel="completeness: labels answered", ylabel="set-accuracy: rows without an error")
    ax.set_title(f"yeast: {len(Y) - N_TRAINING} new rows, from bold (right) to cautious (left)")
    ax.grid(alpha=0.25)
    ax.legend()
    picture: Any = plot_predictions(recommended.infer(X[SHOWN_ROWS]), Y_true=Y[SHOWN_ROWS])
    picture.set_title("yes, no or * (left open), and the probability of yes; x = wrong", pad=10)
    files = []
    for name, figure in (("recommended_and_chain", ax.figure), ("predictions", picture.figure)):
        for suffix, metadata in (("png", None), ("svg", {"Date": None})):
            files.append(folder / f"{name}.{suffix}")
            figure.savefig(files[-1], dpi=150, metadata=metadata)
        plt.close(figure)
    return files


def run(folder: Path, console: Any) -> None:
    """Compare both models, make a promise, draw figures, and name a page to try."""
    import pandas as pd

    folder.mkdir(parents=True, exist_ok=True)
    data = load_embedded_yeast()
    X = pd.DataFrame(data.X, columns=data.feature_names)
    Y = pd.DataFrame(data.Y, columns=data.label_names)
    console.print(f"yeast: {len(X)} rows, {X.shape[1]} features, {Y.shape[1]} labels")
    curves, recommended = compare(X, Y)
    console.print(f"\nFitted to {N_TRAINING} rows. Rows without a wrong answer among the others:")
    rows = []
    for name, (answered, right) in curves.items():
        nearest = [np.argmin(np.abs(answered - share)) for share in SHOWN_COMPLETENESS]
        rows.append((name, *(f"{share:.0%}" for share in right[nearest])))
    print_table(("labels answered", *(f"{share:.0%}" for share in SHOWN_COMPLETENESS)), rows)
    console.print("\nOr promise that at most one row in five has a wrong answer:")
    estimator = JointDecision(n_jobs=-1, random_state=0)
    promised = PromisedClassifier(estimator, {"row_error": 0.2}, random_state=0)
    promised.fit(X[:N_TRAINING], Y[:N_TRAINING])
    check = promised.check(X[N_TRAINING:], Y[N_TRAINING:])
    for line in f"{promised.report_}\n{check}".splitlines():
        console.print(f"  {line}", soft_wrap=True)
    files = draw(curves, recommended, X, data.Y, folder)
    files += [folder / "yeast.model", folder / "yeast-new.csv"]
    save_model(recommended, files[-2])
    X[N_TRAINING:].to_csv(files[-1], index=False)
    console.print()
    for file in files:
        console.print(visible(f"wrote {file}"), soft_wrap=True)
    python = Path(sys.executable)
    if python.is_relative_to(Path.cwd()):
        python = python.relative_to(Path.cwd())
    console.print("\nAnswer what was left open, on a page in your browser:")
    command = [str(python), "-m", "credalchain", "review", *map(str, files[-2:])]
    console.print(visible("  " + shlex.join(command)), soft_wrap=True)


if __name__ == "__main__":
    run(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"), stdout())
