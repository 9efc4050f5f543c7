"""Options that several commands share, and the classifier they describe."""

from collections.abc import Callable
from typing import Annotated, Any

import typer
from sklearn.base import BaseEstimator
from sklearn.ensemble import ExtraTreesClassifier

from credalchain.bases.forest import CredalForest
from credalchain.bases.logistic import CredalLogistic
from credalchain.bases.naive import NaiveCredal
from credalchain.bases.wrapper import CredalWrapper
from credalchain.estimators.binary_relevance import CredalBinaryRelevanceClassifier
from credalchain.estimators.chain import CredalChainClassifier
from credalchain.estimators.decision import JointDecision
from credalchain.estimators.ensemble import CredalChainEnsemble
from credalchain.experiments.study import import_class
from credalchain.preprocessing import Discretizer

_DATA_HELP = (
    "A table: .csv, .tsv, .parquet or .arff; - for CSV from stdin; embedded:yeast; mulan:NAME."
)
Data = Annotated[str, typer.Argument(help=_DATA_HELP)]
ModelFile = Annotated[str, typer.Argument(metavar="MODEL", help="A file that fit wrote.")]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        help="The label columns: names with commas between, first:N or last:N; for ARFF also xml "
        "(MULAN's file beside it) or meka (-C in its header). Cells are 0, 1, or empty for "
        "missing. May be repeated."
    ),
]
Ignore = Annotated[str, typer.Option(help="Columns to leave out, such as row numbers.")]
Method = Annotated[
    str,
    typer.Option(
        help="chain; relevance: labels do not speak to each other; ensemble: several chains, "
        "averaged; joint: an ensemble that decides about all labels of a row together; "
        "recommended: that, over forests, as measured in the documentation."
    ),
]
Base = Annotated[str, typer.Option(help="naive, forest, logistic, or wrapper (with --estimator).")]
Estimator = Annotated[
    str,
    typer.Option(help="A classifier for --base wrapper, such as sklearn.naive_bayes.GaussianNB."),
]
Trees = Annotated[int, typer.Option(min=1, help="Trees of each forest.")]
Chains = Annotated[int, typer.Option(min=1, help="Chains of an ensemble.")]
Reward = Annotated[float, typer.Option(help="joint: what answering every label is worth.")]
S = Annotated[float, typer.Option("--s", help="Caution: 0 answers everything.")]
StrategyName = Annotated[
    str, typer.Option(help="branching, marginalization or tree-marginalization (few stars only).")
]
Order = Annotated[
    str, typer.Option(help="random, given, dynamic, or label names with commas between.")
]
Threshold = Annotated[str, typer.Option(help="A number, or one per label with commas between.")]
Seed = Annotated[int, typer.Option(help="Seeds the random order (and folds).")]
Jobs = Annotated[int, typer.Option(help="Threads; -1 for all cores.")]
Epsilon = Annotated[float, typer.Option(help="Smoothing of the bounds, from 0 to below 1.")]
Prior = Annotated[str, typer.Option(help="laplace, paper or credal.")]
Denominator = Annotated[str, typer.Option(help="pairwise or class.")]
Bins = Annotated[
    int, typer.Option(help="Equal-frequency bins per numeric column; 0: columns hold codes.")
]
MissingFeatures = Annotated[str, typer.Option(help="ignore or conservative.")]


def numbers(text: str, option: str) -> Any:
    """A number, or a list of them where there are commas."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{option} must be numbers with commas between, got {text!r}.") from None
    return values if "," in text else values[0]


def build_classifier(
    *,
    method: str,
    base: str,
    estimator: str,
    trees: int,
    chains: int,
    reward: float,
    s: float,
    strategy: str,
    order: str,
    threshold: str,
    seed: int,
    jobs: int,
    epsilon: float,
    prior: str,
    denominator: str,
    bins: int,
    missing_features: str,
) -> Any:
    """The classifier that the options describe, unfitted."""
    _refuse_idle(
        ("--method", method, "chain or relevance or ensemble or joint", "--base", base, "naive"),
        ("--method", method, "chain", "--order", order, "random"),
        ("--method", method, "chain or ensemble", "--strategy", strategy, "branching"),
        ("--method", method, "chain or relevance or ensemble", "--s", s, 2.0),
        ("--method", method, "chain or relevance or ensemble", "--threshold", threshold, "0.5"),
        ("--method", method, "ensemble or joint", "--chains", chains, 10),
        ("--method", method, "joint or recommended", "--reward", reward, 0.5),
        ("--base", base, "naive", "--epsilon", epsilon, 0.001),
        ("--base", base, "naive", "--prior", prior, "laplace"),
        ("--base", base, "naive", "--denominator", denominator, "pairwise"),
        ("--base", base, "naive", "--bins", bins, 6),
        ("--base", base, "naive", "--missing-features", missing_features, "ignore"),
        ("--base", base, "forest", "--trees", trees, 100),
        ("--base", base, "wrapper", "--estimator", estimator, ""),
    )
    if method == "recommended":
        return JointDecision(reward=reward, n_jobs=jobs, random_state=seed)
    bases: dict[str, Callable[[], Any]] = {
        "naive": lambda: NaiveCredal(
            epsilon=epsilon,
            prior=prior,
            denominator=denominator,
            discretizer=None if bins == 0 else Discretizer(n_bins=bins),
            missing_features=missing_features,
        ),
        "forest": lambda: CredalForest(
            None if trees == 100 else ExtraTreesClassifier(n_estimators=trees, min_samples_leaf=2)
        ),
        "logistic": CredalLogistic,
        "wrapper": lambda: CredalWrapper(wrapped_estimator(estimator)),
    }
    if base not in bases:
        raise ValueError(f"--base must be {', '.join(bases)}, got {base!r}.")
    chosen = bases[base]()
    common: dict[str, Any] = {
        "s": s,
        "threshold": numbers(threshold, "--threshold"),
        "n_jobs": jobs,
        "random_state": seed,
    }
    if method == "relevance":
        return CredalBinaryRelevanceClassifier(chosen, **common)
    if method in ("ensemble", "joint"):
        ensemble = CredalChainEnsemble(chosen, n_chains=chains, strategy=strategy, **common)
        return JointDecision(ensemble, reward) if method == "joint" else ensemble
    if method != "chain":
        raise ValueError(
            f"--method must be chain, relevance, ensemble, joint or recommended, got {method!r}."
        )
    names: Any = [name.strip() for name in order.split(",")] if "," in order else order
    return CredalChainClassifier(chosen, strategy=strategy, order=names, **common)


def _refuse_idle(*rules: tuple[str, str, str, str, Any, Any]) -> None:
    """Options that were set and would change nothing are a misunderstanding."""
    for option, chosen, wanted, name, value, default in rules:
        if value != default and chosen not in wanted.split(" or "):
            raise ValueError(f"{name} is for {option} {wanted}, not for {option} {chosen}.")


def wrapped_estimator(path: str) -> Any:
    """A classifier by the name of its class; None for the default."""
    if not path:
        return None
    found = import_class(path)
    if not (isinstance(found, type) and issubclass(found, BaseEstimator)):
        raise ValueError(f"--estimator: there is no class {path!r} of scikit-learn's kind.")
    return found()
