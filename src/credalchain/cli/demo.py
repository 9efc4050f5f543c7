"""``credalchain demo``: the main job on real data, start to end."""

import shlex
import sys
import time
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from credalchain._utils.text import visible
from credalchain.chains.base import fitted_folds
from credalchain.chains.classifier import CredalChainClassifier
from credalchain.cli.console import stdout
from credalchain.datasets import EmbeddedData, load_embedded_yeast
from credalchain.joint.decision import JointDecision
from credalchain.metrics import completeness, completeness_curve, incorrectness, set_accuracy
from credalchain.model_files import save_model
from credalchain.plotting import CompletenessCurveDisplay, plot_predictions
from credalchain.promises.classifier import PromisedClassifier

S_VALUES = (0, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5)
STRATEGIES = ("branching", "marginalization")
N_FOLDS = 10
N_TRAINING = 2000
SHOWN_ROWS = slice(N_TRAINING, 2400, 50)
SHOWN_COMPLETENESS = (1.0, 0.9, 0.8, 0.6)
RECOMMENDED, CHAIN = "JointDecision(), recommended", "CredalChainClassifier(), the paper's"


class CrossValidation(NamedTuple):
    """Out-of-fold labels (strategy, s, row, label), and the rows of each fold."""

    paths: NDArray[np.int8]
    folds: list[NDArray[np.int64]]


def cross_validate(data: EmbeddedData) -> CrossValidation:
    """Every row predicted by a chain that has not seen it, for all s and both strategies."""
    paths = np.empty((len(STRATEGIES), len(S_VALUES), *data.Y.shape), dtype=np.int8)
    folds = []
    splits = KFold(N_FOLDS, shuffle=True, random_state=0).split(data.X)
    chains = (CredalChainClassifier(random_state=fold) for fold in range(N_FOLDS))
    for rows, X, chain in fitted_folds(chains, data.X, data.Y, splits):
        paths[:, :, rows] = chain.predict_path(X, S_VALUES, strategy=STRATEGIES)
        folds.append(rows)
    return CrossValidation(paths, folds)


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


class Comparison(NamedTuple):
    """What two models do with rows they have not seen, from bold to cautious.

    ``curves`` has (completeness, set-accuracy) for each model; ``recommended`` is fitted, and its
    reward answers about three labels in five.
    """

    curves: dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]
    recommended: JointDecision


def compare(X: Any, Y: Any) -> Comparison:
    """The recommended model and the paper's chain, fitted to the first rows, on the others."""
    recommended = JointDecision(n_jobs=-1, random_state=0)
    models: dict[str, tuple[Any, Any]] = {
        RECOMMENDED: (recommended, np.geomspace(0.2, 5, 500)),
        CHAIN: (CredalChainClassifier(random_state=0), np.linspace(0, 12, 200)),
    }
    curves = {}
    for name, (model, values) in models.items():
        model.fit(X[:N_TRAINING], Y[:N_TRAINING])
        path = model.predict_path(X[N_TRAINING:], values)
        curves[name] = completeness_curve(Y[N_TRAINING:], path)
    value_index = int(np.argmin(np.abs(curves[RECOMMENDED][0] - SHOWN_COMPLETENESS[-1])))
    recommended.set_params(reward=float(models[RECOMMENDED][1][value_index]))
    return Comparison(curves, recommended)


def accuracy_at(curve: tuple[NDArray[np.float64], NDArray[np.float64]], answered: float) -> float:
    """Set-accuracy where the curve is nearest to a completeness."""
    return float(curve[1][np.argmin(np.abs(curve[0] - answered))])


def draw(
    result: CrossValidation, comparison: Comparison, X: Any, Y: Any, folder: Path
) -> list[Path]:
    """The figures, as PNG and SVG."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "credalchain"  # the same file for the same picture
    models, ax = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
    for (name, (answered, right)), color in zip(
        comparison.curves.items(), ("#009E73", "#0072B2"), strict=True
    ):
        ax.plot(answered, right, label=name, color=color, linewidth=2)
    ax.set(xlabel="completeness: labels answered", ylabel="set-accuracy: rows without an error")
    ax.set_title(f"yeast: {len(Y) - N_TRAINING} new rows, from bold (right) to cautious (left)")
    ax.grid(alpha=0.25)
    ax.legend()
    figure, ax = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
    looks = ({"color": "#0072B2"}, {"color": "#D55E00", "marker": "s", "linestyle": "--"})
    for strategy, path, look in zip(STRATEGIES, result.paths, looks, strict=True):
        CompletenessCurveDisplay.from_predictions(
            Y, path, values=S_VALUES, name=strategy, ax=ax, **look
        )
    ax.set_title(f"yeast, {N_FOLDS}-fold cross-validation: one point for each s")
    ax.grid(alpha=0.25)
    shown = comparison.recommended.infer(X[SHOWN_ROWS])
    picture: Any = plot_predictions(shown, Y_true=Y[SHOWN_ROWS])
    picture.set_title("yes, no or * (left open), and the probability of yes; x = wrong", pad=10)
    files = []
    for name, fig in (
        ("recommended_and_chain", models),
        ("set_accuracy_completeness", figure),
        ("predictions", picture.figure),
    ):
        for suffix in ("png", "svg"):
            files.append(folder / f"{name}.{suffix}")
            metadata = {"Date": None} if suffix == "svg" else None
            fig.savefig(files[-1], dpi=150, metadata=metadata)
        plt.close(fig)
    return files


def run(folder: Path, console: Any) -> None:
    """The recommended model, a promise, the paper's chain, figures, and a page to try."""
    import pandas as pd

    folder.mkdir(parents=True, exist_ok=True)
    data = load_embedded_yeast()
    X = pd.DataFrame(data.X, columns=data.feature_names)
    Y = pd.DataFrame(data.Y, columns=data.label_names)
    console.print(f"yeast: {len(X)} rows, {X.shape[1]} features, {Y.shape[1]} labels")
    comparison = compare(X, Y)
    _print_comparison(comparison, console)
    _print_promise(X, Y, console)
    start = time.perf_counter()
    result = cross_validate(data)
    _print_chain(result, data.Y, time.perf_counter() - start, console)
    files = draw(result, comparison, X, data.Y, folder)
    files += [folder / "yeast.model", folder / "yeast-new.csv"]
    save_model(comparison.recommended, files[-2])
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


def _print_comparison(comparison: Comparison, console: Any) -> None:
    from rich.table import Table

    console.print(f"\nFitted to {N_TRAINING} rows. Rows without a wrong answer among the others:")
    table = Table("labels answered", *(f"{share:.0%}" for share in SHOWN_COMPLETENESS))
    for name, curve in comparison.curves.items():
        table.add_row(name, *(f"{accuracy_at(curve, share):.0%}" for share in SHOWN_COMPLETENESS))
    console.print(table)


def _print_promise(X: Any, Y: Any, console: Any) -> None:
    console.print("\nOr promise that at most one row in five has a wrong answer:")
    promised = PromisedClassifier(
        JointDecision(n_jobs=-1, random_state=0), {"row_error": 0.2}, random_state=0
    )
    promised.fit(X[:N_TRAINING], Y[:N_TRAINING])
    for report in (promised.report_, promised.check(X[N_TRAINING:], Y[N_TRAINING:])):
        for line in str(report).splitlines():
            console.print(f"  {line}", soft_wrap=True)


def _print_chain(result: CrossValidation, Y: Any, seconds: float, console: Any) -> None:
    from rich.table import Table

    console.print(
        f"\nThe paper's chain, exact and made of counts; {N_FOLDS}-fold cross-validation:"
    )
    table = Table("strategy", "s", "set-accuracy", "completeness", "incorrectness")
    for column in table.columns[1:]:
        column.justify = "right"
    for strategy, s, *values in measures(result, Y):
        table.add_row(
            strategy, f"{s:g}", *(f"{value:.3f}" for value in values), end_section=s == S_VALUES[-1]
        )
    console.print(table)
    console.print(f"{result.paths.size:,} answers in {seconds:.1f} s")


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the figures.")] = Path("demo"),
) -> None:
    """Try both models on the embedded yeast data: tables, a promise, figures, a page.

    Example: `credalchain demo --out figures`
    """
    try:
        run(out, stdout())
    except ImportError as error:
        raise ImportError(
            f"{error}. Everything the demo needs: pip install 'credalchain[demo]'"
        ) from error
