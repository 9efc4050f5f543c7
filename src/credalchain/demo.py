"""The main job on real data, start to end: ``python -m credalchain.demo``."""

import argparse
import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from credalchain.datasets import EmbeddedData, load_embedded_yeast
from credalchain.estimators.chain import CredalChainClassifier
from credalchain.estimators.decision import JointDecision
from credalchain.estimators.folds import fitted_folds
from credalchain.estimators.prediction import CredalPrediction
from credalchain.metrics import completeness, completeness_curve, incorrectness, set_accuracy
from credalchain.model_files import save_model
from credalchain.plotting import CompletenessCurveDisplay, plot_predictions
from credalchain.text import visible

S_VALUES = (0, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5)
STRATEGIES = ("branching", "marginalization")
N_FOLDS = 10
SHOWN_ROWS = 8
SHOWN_S = 1.5
N_TRAINING, SHOWN_COMPLETENESS = 2000, 0.6


class CrossValidation(NamedTuple):
    """Out-of-fold labels (strategy, s, row, label), and bounds of some rows."""

    paths: NDArray[np.int8]
    folds: list[NDArray[np.int64]]
    shown: CredalPrediction


def cross_validate(data: EmbeddedData, on_fold: Any = lambda: None) -> CrossValidation:
    """Every row predicted by a chain that has not seen it, for all s and both strategies."""
    paths = np.empty((len(STRATEGIES), len(S_VALUES), *data.Y.shape), dtype=np.int8)
    folds, shown = [], None
    splits = KFold(N_FOLDS, shuffle=True, random_state=0).split(data.X)
    chains = (CredalChainClassifier(random_state=fold) for fold in range(N_FOLDS))
    for rows, X, chain in fitted_folds(chains, data.X, data.Y, splits):
        paths[:, :, rows] = chain.predict_path(X, S_VALUES, strategy=STRATEGIES)
        if shown is None:
            shown = chain.infer(X[:SHOWN_ROWS], s=SHOWN_S)
        folds.append(rows)
        on_fold()
    assert shown is not None
    named = replace(shown, label_names=tuple(data.label_names))
    return CrossValidation(paths, folds, named)


def measures(result: CrossValidation, Y: Any) -> list[tuple[str, float, float, float, float]]:
    """Rows of the table: strategy, s, and means over folds of the three measures."""
    table = []
    for strategy, path in zip(STRATEGIES, result.paths, strict=True):
        for s, labels in zip(S_VALUES, path, strict=True):
            sa, cp, wrong = (
                float(np.mean([measure(Y[test], labels[test]) for test in result.folds]))
                for measure in (set_accuracy, completeness, incorrectness)
            )
            table.append((strategy, s, sa, cp, wrong))
    return table


def draw(result: CrossValidation, Y: Any, folder: Path) -> list[Path]:
    """The two figures, as PNG and SVG."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "credalchain"  # the same file for the same picture
    figure, ax = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
    looks = ({"color": "#0072B2"}, {"color": "#D55E00", "marker": "s", "linestyle": "--"})
    for strategy, path, look in zip(STRATEGIES, result.paths, looks, strict=True):
        CompletenessCurveDisplay.from_predictions(
            Y, path, values=S_VALUES, name=strategy, ax=ax, **look
        )
    ax.set_title(f"yeast, {N_FOLDS}-fold cross-validation: one point for each s")
    ax.grid(alpha=0.25)
    picture = plot_predictions(result.shown, Y_true=Y[result.folds[0][:SHOWN_ROWS]])
    picture.set_title(
        f"yes, no or * (left open), bars from lower to upper probability; s = {SHOWN_S}; x = wrong",
        pad=10,
    )
    files = []
    for name, fig in (("set_accuracy_completeness", figure), ("predictions", picture.figure)):
        for suffix in ("png", "svg"):
            files.append(folder / f"{name}.{suffix}")
            metadata = {"Date": None} if suffix == "svg" else None
            fig.savefig(files[-1], dpi=150, metadata=metadata)
        plt.close(fig)
    return files


def run(folder: Path, console: Any) -> None:
    """Read, cross-validate, print the table and draw the figures."""
    from rich.progress import track
    from rich.table import Table

    folder.mkdir(parents=True, exist_ok=True)
    data = load_embedded_yeast()
    console.print(
        f"yeast: {data.X.shape[0]} rows, {data.X.shape[1]} features, {data.Y.shape[1]} labels; "
        f"{N_FOLDS}-fold cross-validation of CredalChainClassifier"
    )
    start = time.perf_counter()
    steps = iter(track(range(N_FOLDS), "folds", console=console))
    next(steps)
    result = cross_validate(data, on_fold=lambda: next(steps, None))
    seconds = time.perf_counter() - start
    table = Table("strategy", "s", "set-accuracy", "completeness", "incorrectness")
    for column in table.columns[1:]:
        column.justify = "right"
    for strategy, s, *values in measures(result, data.Y):
        table.add_row(
            strategy, f"{s:g}", *(f"{value:.3f}" for value in values), end_section=s == S_VALUES[-1]
        )
    console.print(table)
    n_answers = result.paths.size
    console.print(f"{n_answers:,} answers in {seconds:.1f} s, compilation included")
    for file in draw(result, data.Y, folder):
        console.print(visible(f"wrote {file}"), soft_wrap=True)
    recommend(data, folder, console)


def recommend(data: EmbeddedData, folder: Path, console: Any) -> None:
    """What we recommend beside the chain, on the same new rows; and the page for what is open."""
    import pandas as pd

    X = pd.DataFrame(data.X, columns=data.feature_names)
    Y = pd.DataFrame(data.Y, columns=data.label_names)
    console.print(f"\nBeside what we recommend, fitted on {N_TRAINING} rows, on the others:")
    models: dict[str, tuple[Any, Any]] = {
        "the chain above": (CredalChainClassifier(random_state=0), np.linspace(0, 6, 200)),
        "JointDecision()": (JointDecision(random_state=0), np.geomspace(0.5, 2, 500)),
    }
    for name, (model, values) in models.items():
        model.fit(X[:N_TRAINING], Y[:N_TRAINING])
        path = model.predict_path(X[N_TRAINING:], values)
        answered, right = completeness_curve(Y[N_TRAINING:], path)
        at = int(np.argmin(np.abs(answered - SHOWN_COMPLETENESS)))
        console.print(
            f"  {name}: {answered[at]:.0%} of the labels answered, no wrong answer in "
            f"{right[at]:.0%} of the rows",
            soft_wrap=True,
        )
    model.set_params(reward=float(values[at]))
    save_model(model, folder / "yeast.model")
    X[N_TRAINING:].to_csv(folder / "yeast-new.csv", index=False)
    for file in ("yeast.model", "yeast-new.csv"):
        console.print(visible(f"wrote {folder / file}"), soft_wrap=True)
    files = [shlex.quote(str(folder / file)) for file in ("yeast.model", "yeast-new.csv")]
    python = Path(sys.executable)
    if python.is_relative_to(Path.cwd()):
        python = python.relative_to(Path.cwd())
    console.print("\nAnswer what was left open, on a page in your browser:")
    command = f"  {shlex.quote(str(python))} -m credalchain review {' '.join(files)}"
    console.print(visible(command), soft_wrap=True)


def main(arguments: list[str] | None = None) -> int:
    """The command: 0 if all went well, 1 with one sentence if something is missing."""
    parser = argparse.ArgumentParser(prog="python -m credalchain.demo", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the figures")
    options = parser.parse_args(arguments)
    try:
        from rich.console import Console

        run(options.out, Console(markup=False))
    except (ImportError, OSError) as error:
        print(
            f"{visible(str(error))}\nEverything the demo needs: pip install 'credalchain[demo]'",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
