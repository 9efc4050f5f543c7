"""Options that several commands share, and the classifier they describe."""

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import wraps
from typing import Annotated, Any

import typer
from sklearn.base import BaseEstimator
from sklearn.ensemble import ExtraTreesClassifier

from credalchain.bases.joint.growing import default_forest
from credalchain.bases.registry import BASES
from credalchain.estimators.binary_relevance import CredalBinaryRelevanceClassifier
from credalchain.estimators.chain import CredalChainClassifier
from credalchain.estimators.decision import JointDecision
from credalchain.estimators.ensemble import CredalChainEnsemble
from credalchain.estimators.joint_forest import CredalJointForest
from credalchain.experiments.study import import_class
from credalchain.preprocessing import Discretizer

_DATA_HELP = (
    "A table: .csv, .tsv, .parquet or .arff; - for CSV from stdin; embedded:yeast; mulan:NAME. "
    "fit, predict and evaluate read a folder, a glob, a compressed or very large file in pieces."
)
Data = Annotated[str, typer.Argument(help=_DATA_HELP)]
ModelFile = Annotated[str, typer.Argument(metavar="MODEL", help="A file that fit wrote.")]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        help="The label columns: names with commas between, first:N or last:N; for ARFF also xml "
        "(MULAN's file beside it), the name of such a file, or meka (-C in its header). Cells are "
        "0, 1, yes, no, true, false, and empty or ? for missing. May be repeated."
    ),
]
TagSeparator = Annotated[
    str,
    typer.Option(
        help="--labels is one column of tags with this between them, such as ';': a label for each."
    ),
]
Ignore = Annotated[str, typer.Option(help="Columns to leave out, such as row numbers.")]
_JOBS_HELP = "Threads; -1 for all cores."
Jobs = Annotated[int, typer.Option(help=_JOBS_HELP)]


def _option(default: Any, words: str, used_with: str = "", **settings: Any) -> Any:
    """A field that is an option: its help, and with which values of another it has an effect."""
    option = typer.Option(default, help=words, **settings)
    return field(default=default, metadata={"option": option, "used with": used_with})


@dataclass(frozen=True)
class ClassifierOptions:
    """The options that describe a classifier, with their defaults, for all commands."""

    method: str = _option(
        "chain",
        "chain; relevance: labels do not speak to each other; ensemble: several chains, averaged; "
        "joint: an ensemble that decides about all labels of a row together; recommended: one "
        "forest for all labels, which decides about them together: the strongest.",
    )
    base: str = _option(
        "naive",
        f"{', '.join(BASES)}; wrapper goes with --estimator.",
        "method chain or relevance or ensemble or joint",
    )
    estimator: str = _option(
        "",
        "A classifier for --base wrapper, such as sklearn.naive_bayes.GaussianNB.",
        "base wrapper",
    )
    trees: int = _option(100, "Trees of each forest (recommended: 300).", "base forest", min=1)
    chains: int = _option(10, "Chains of an ensemble.", "method ensemble or joint", min=1)
    reward: float = _option(
        0.5, "What answering every label is worth.", "method joint or recommended"
    )
    s: float = _option(
        2.0, "Caution: 0 answers everything.", "method chain or relevance or ensemble"
    )
    strategy: str = _option(
        "branching",
        "branching, marginalization or tree-marginalization (few open labels only).",
        "method chain or ensemble",
    )
    order: str = _option(
        "random", "random, given, dynamic, or label names with commas between.", "method chain"
    )
    threshold: str = _option(
        "0.5",
        "A number, or one per label with commas between.",
        "method chain or relevance or ensemble",
    )
    seed: int = _option(0, "Seeds the random order (and folds).")
    jobs: int = _option(1, _JOBS_HELP)
    epsilon: float = _option(0.001, "Smoothing of the bounds, from 0 to below 1.", "base naive")
    prior: str = _option("laplace", "laplace, paper or credal.", "base naive")
    denominator: str = _option("pairwise", "pairwise or class.", "base naive")
    bins: int = _option(
        6, "Equal-frequency bins per numeric column; 0: columns hold codes.", "base naive"
    )
    missing_features: str = _option("ignore", "ignore or conservative.", "base naive")

    @property
    def is_joint(self) -> bool:
        """Whether the classifier decides about all labels of a row together."""
        return self.method in ("joint", "recommended")

    def check(self) -> None:
        """Options that were set and would change nothing are a misunderstanding."""
        for option in fields(self):
            other, _, values = option.metadata["used with"].partition(" ")
            if not other or getattr(self, option.name) == option.default:
                continue
            if option.name == "trees" and self.method == "recommended":
                continue
            chosen = getattr(self, other)
            if chosen not in values.split(" or "):
                name = option.name.replace("_", "-")
                raise ValueError(f"--{name} is for --{other} {values}, not for --{other} {chosen}.")


def with_classifier_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command with an option for each field of its argument ``options: ClassifierOptions``.

    An option that the command declares itself is left out, and keeps its default in ``options``.
    """
    declared = dict(inspect.signature(command).parameters)
    del declared["options"]
    added = [option for option in fields(ClassifierOptions) if option.name not in declared]

    @wraps(command)
    def run(**arguments: Any) -> None:
        options = {option.name: arguments.pop(option.name) for option in added}
        command(**arguments, options=ClassifierOptions(**options))

    parameters = [
        inspect.Parameter(
            option.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=option.metadata["option"],
            annotation=option.type,
        )
        for option in added
    ]
    signature = inspect.Signature([*declared.values(), *parameters])
    run.__signature__ = signature  # type: ignore[attr-defined]
    return run


def numbers(text: str, option: str) -> Any:
    """A number, or a list of them where there are commas."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{option} must be numbers with commas between, got {text!r}.") from None
    return values if "," in text else values[0]


def build_classifier(options: ClassifierOptions) -> Any:
    """The classifier that the options describe, unfitted."""
    options.check()
    if options.method == "recommended":
        return _build_recommended(options)
    base = _build_base(options)
    common: dict[str, Any] = {
        "s": options.s,
        "threshold": numbers(options.threshold, "--threshold"),
        "n_jobs": options.jobs,
        "random_state": options.seed,
    }
    if options.method == "relevance":
        return CredalBinaryRelevanceClassifier(base, **common)
    if options.method in ("ensemble", "joint"):
        ensemble = CredalChainEnsemble(
            base, n_chains=options.chains, strategy=options.strategy, **common
        )
        return JointDecision(ensemble, options.reward) if options.is_joint else ensemble
    if options.method != "chain":
        raise ValueError(
            "--method must be chain, relevance, ensemble, joint or recommended, "
            f"got {options.method!r}."
        )
    order: Any = options.order
    if "," in order:
        order = [name.strip() for name in order.split(",")]
    return CredalChainClassifier(base, strategy=options.strategy, order=order, **common)


def _build_recommended(options: ClassifierOptions) -> Any:
    forest = None
    if options.trees != ClassifierOptions.trees:
        forest = default_forest().set_params(n_estimators=options.trees)
    estimator = CredalJointForest(
        forest,
        n_jobs=options.jobs,
        verbose=int(sys.stderr.isatty()),  # a bar
        random_state=options.seed,
    )
    return JointDecision(estimator, reward=options.reward, random_state=options.seed)


def _build_base(options: ClassifierOptions) -> Any:
    if options.base not in BASES:
        raise ValueError(f"--base must be {', '.join(BASES)}, got {options.base!r}.")
    parameters = _BASE_PARAMETERS[options.base](options) if options.base in _BASE_PARAMETERS else {}
    return BASES[options.base].estimator(**parameters)


def _naive_parameters(options: ClassifierOptions) -> dict[str, Any]:
    return {
        "epsilon": options.epsilon,
        "prior": options.prior,
        "denominator": options.denominator,
        "discretizer": None if options.bins == 0 else Discretizer(n_bins=options.bins),
        "missing_features": options.missing_features,
    }


def _forest_parameters(options: ClassifierOptions) -> dict[str, Any]:
    if options.trees == ClassifierOptions.trees:
        return {}
    return {"forest": ExtraTreesClassifier(n_estimators=options.trees, min_samples_leaf=2)}


def _wrapper_parameters(options: ClassifierOptions) -> dict[str, Any]:
    return {"estimator": wrapped_estimator(options.estimator)}


# of the bases that have options here; the others are built as they come
_BASE_PARAMETERS: dict[str, Callable[[ClassifierOptions], dict[str, Any]]] = {
    "naive": _naive_parameters,
    "forest": _forest_parameters,
    "wrapper": _wrapper_parameters,
}


def wrapped_estimator(path: str) -> Any:
    """A classifier by the name of its class; None for the default."""
    if not path:
        return None
    found = import_class(path)
    if not (isinstance(found, type) and issubclass(found, BaseEstimator)):
        raise ValueError(f"--estimator: there is no class {path!r} of scikit-learn's kind.")
    return found()
