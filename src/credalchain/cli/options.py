"""Options that several commands share, and the classifier they describe."""

import codecs
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from typing import Annotated, Any

import typer

from credalchain.chains.classifier import CredalBinaryRelevanceClassifier, CredalChainClassifier
from credalchain.chains.ensemble import CredalChainEnsemble
from credalchain.chains.forest import CredalForest, default_forest_classifier
from credalchain.chains.naive.estimator import NaiveCredal
from credalchain.chains.naive.formulas import DENOMINATORS, MISSING_FEATURES, PRIORS
from credalchain.chains.strategies import STRATEGIES, branching, tree_marginalization
from credalchain.chains.wrapper import CredalWrapper
from credalchain.datasets.dialect import DialectOptions, reading_as
from credalchain.joint.decision import JointDecision
from credalchain.joint.forest import CredalJointForest
from credalchain.joint.growing import default_forest_regressor
from credalchain.preprocessing import Discretizer

_BASES = "naive, forest or wrapper"
_DATA_HELP = (
    "A table: .csv, .tsv, .parquet or .arff; - for CSV from stdin; embedded:yeast; mulan:NAME. "
    "fit, predict and evaluate read a folder, a glob, a compressed or very large file in chunks."
)
Data = Annotated[str, typer.Argument(help=_DATA_HELP)]
ModelFile = Annotated[str, typer.Argument(metavar="MODEL", help="A file that fit wrote.")]
LabelsOption = Annotated[
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
CaseSensitive = Annotated[
    bool,
    typer.Option("--case-sensitive", help="Keep tags apart that differ in capitals only."),
]
Ignore = Annotated[str, typer.Option(help="Columns to leave out, such as row numbers.")]
Use = Annotated[
    str,
    typer.Option(
        help="Columns to learn from though they look like names, free text or row numbers, which "
        "are left out; all for all of them."
    ),
]
Groups = Annotated[
    str,
    typer.Option(
        help="The column that says which rows belong together (a patient, a song, a document): "
        "they are learned from or tested, never both. It is no feature. If not given, equal "
        "rows with the same labels belong together; none: no rows do."
    ),
]
_JOBS_HELP = "Threads; -1 for all cores."
Jobs = Annotated[int, typer.Option(help=_JOBS_HELP)]


def _option(
    default: Any,
    description: str,
    used_with: Mapping[str, tuple[str, ...]] | None = None,
    **settings: Any,
) -> Any:
    """A field that is an option: its help, and with which values of others it has an effect.

    As an option it is None unless it is given, so that it can be told whether it is.
    """
    shown: dict[str, Any] = {"show_default": str(default)} if default not in (None, "") else {}
    option = typer.Option(None, help=description, **shown, **settings)
    return field(default=default, metadata={"option": option, "used with": used_with or {}})


_CHAINS = ("chain", "relevance", "ensemble")  # methods that have s
_NAIVE: dict[str, tuple[str, ...]] = {"base": ("naive",)}
_JOINT = ("joint", "recommended")  # methods that have a reward


@dataclass(frozen=True)
class ClassifierOptions:
    """The options that describe a classifier, with their defaults, for fit, evaluate and tune."""

    method: str = _option(
        "",
        "recommended: one forest for all labels, which decides about those of a row together, the "
        "strongest; chain: the paper's, made of counts; relevance: labels do not speak to each "
        "other; ensemble: several chains, averaged; joint: an ensemble that decides about all "
        "labels of a row together. If not given: recommended, or chain if an option of chains is.",
    )
    base: str = _option(
        "naive",
        f"{_BASES}; wrapper goes with --estimator.",
        {"method": (*_CHAINS, "joint")},
    )
    estimator: str = _option(
        "",
        "A classifier for --base wrapper, such as sklearn.naive_bayes.GaussianNB.",
        {"base": ("wrapper",)},
    )
    trees: int | None = _option(
        None,
        "Trees of each forest; if not given, 100, and 300 for the recommended method.",
        {"base": ("forest",), "method": ("recommended",)},
        min=1,
    )
    chains: int = _option(10, "Chains of an ensemble.", {"method": ("ensemble", "joint")}, min=1)
    reward: float | None = _option(
        None,
        "What answering every label is worth: the larger, the more is answered.",
        {"method": _JOINT},
    )
    s: float | None = _option(
        None,
        "Caution: 0 answers everything, the larger, the more is left open.",
        {"method": _CHAINS},
    )
    strategy: str = _option(
        branching.name,
        f"{', '.join(STRATEGIES)} ({tree_marginalization.name} for few open labels only).",
        {"method": ("chain", "ensemble")},
    )
    order: str = _option(
        "random",
        "random, given, dynamic, or label names with commas between.",
        {"method": ("chain",)},
    )
    threshold: str = _option(
        "0.5", "A number, or one per label with commas between.", {"method": _CHAINS}
    )
    seed: int = _option(0, "Seeds the random order (and folds).")
    jobs: int = _option(1, _JOBS_HELP)
    epsilon: float = _option(0.001, "Smoothing of the bounds, from 0 to below 1.", _NAIVE)
    prior: str = _option("laplace", f"{', '.join(PRIORS)}.", _NAIVE)
    denominator: str = _option("pairwise", f"{', '.join(DENOMINATORS)}.", _NAIVE)
    bins: int = _option(
        6, "Equal-frequency bins per numeric column; 0: columns hold codes.", _NAIVE
    )
    missing_features: str = _option("ignore", f"{' or '.join(MISSING_FEATURES)}.", _NAIVE)

    def resolved(self, given: Collection[str]) -> "ClassifierOptions":
        """The same with a method, if none is named: the one that has the options ``given``.

        An option that is given and would change nothing is a misunderstanding.
        """
        used_with = {
            option.name: option.metadata["used with"]
            for option in fields(self)
            if option.name in given and option.metadata["used with"]
        }
        options = self
        if not self.method:
            methods = [conditions.get("method", ()) for conditions in used_with.values()]
            of_chains = any("recommended" not in names for names in methods)
            options = replace(self, method="chain" if of_chains else "recommended")
        for name, conditions in used_with.items():
            if not any(getattr(options, other) in values for other, values in conditions.items()):
                shown = f"--{name.replace('_', '-')}"
                where = " or ".join(
                    f"--{other} {' or '.join(values)}" for other, values in conditions.items()
                )
                chosen = " ".join(f"--{other} {getattr(options, other)}" for other in conditions)
                raise ValueError(f"{shown} is for {where}, not for {chosen}.")
        return options

    @property
    def is_joint(self) -> bool:
        """Whether the classifier decides about all labels of a row together."""
        return self.method in _JOINT

    @property
    def caution(self) -> dict[str, Any]:
        """The caution parameter if it was given, by name."""
        values = {"s": self.s, "reward": self.reward}
        return {name: value for name, value in values.items() if value is not None}


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
        options = {name: value for name, value in options.items() if value is not None}
        given = {*options, *(name for name, value in arguments.items() if value)}
        command(**arguments, options=ClassifierOptions(**options).resolved(given))

    parameters = [
        inspect.Parameter(
            option.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=option.metadata["option"],
            annotation=option.type | None,  # type: ignore[operator]
        )
        for option in added
    ]
    signature = inspect.Signature([*declared.values(), *parameters])
    run.__signature__ = signature  # type: ignore[attr-defined]
    return run


def with_table_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command that reads tables, with options for how text files are to be read."""
    signature = inspect.signature(command)
    added = {
        "sep": typer.Option("", help="What separates cells of a text file; tab for a tab."),
        "decimal": typer.Option("", help="The decimal mark of a text file, . or a comma."),
        "encoding": typer.Option("", help="Of a text file, such as latin-1."),
    }

    @wraps(command)
    def run(**arguments: Any) -> None:
        dialect = _given_dialect(**{name: arguments.pop(name) for name in added})
        with reading_as(dialect):
            command(**arguments)

    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option, annotation=str)
        for name, option in added.items()
    ]
    run.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), *parameters]
    )
    return run


def _given_dialect(sep: str, decimal: str, encoding: str) -> DialectOptions:
    separator = {"tab": "\t", "\\t": "\t"}.get(sep, sep)
    if len(separator) > 1 or separator in ("\n", "\r", '"'):
        raise ValueError(f"--sep must be one character, or tab, got {sep!r}.")
    if decimal not in ("", ".", ","):
        raise ValueError(f"--decimal must be . or a comma, got {decimal!r}.")
    if decimal and decimal == separator:
        raise ValueError(f"--sep and --decimal must differ, got {decimal!r} for both.")
    try:
        name = codecs.lookup(encoding).name if encoding else ""
    except LookupError:
        raise ValueError(f"--encoding: there is no encoding {encoding!r}.") from None
    return DialectOptions(separator, decimal, "utf-8-sig" if name == "utf-8" else name)


def parse_numbers(text: str, option: str) -> Any:
    """A number, or a list of them where there are commas."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{option} must be numbers with commas between, got {text!r}.") from None
    return values if "," in text else values[0]


def build_classifier(options: ClassifierOptions) -> Any:
    """The classifier that the options describe, unfitted."""
    if options.method == "recommended":
        return _build_recommended(options)
    base = _build_base(options)
    common: dict[str, Any] = {
        "threshold": parse_numbers(options.threshold, "--threshold"),
        "n_jobs": options.jobs,
        "random_state": options.seed,
    }
    if not options.is_joint:
        common |= options.caution
    if options.method == "relevance":
        return CredalBinaryRelevanceClassifier(base, **common)
    if options.method in ("ensemble", "joint"):
        ensemble = CredalChainEnsemble(
            base, n_chains=options.chains, strategy=options.strategy, **common
        )
        return JointDecision(ensemble, **options.caution) if options.is_joint else ensemble
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
    forest = None if options.trees is None else default_forest_regressor(options.trees)
    estimator = CredalJointForest(forest, n_jobs=options.jobs, random_state=options.seed)
    return JointDecision(estimator, **options.caution, random_state=options.seed)


def _build_base(options: ClassifierOptions) -> Any:
    if options.base == "naive":
        return NaiveCredal(
            epsilon=options.epsilon,
            prior=options.prior,
            denominator=options.denominator,
            discretizer=None if options.bins == 0 else Discretizer(n_bins=options.bins),
            missing_features=options.missing_features,
        )
    if options.base == "forest":
        trees = options.trees
        return CredalForest(None if trees is None else default_forest_classifier(trees))
    if options.base == "wrapper":
        return CredalWrapper(wrapped_estimator(options.estimator))
    raise ValueError(f"--base must be {_BASES}, got {options.base!r}.")


def wrapped_estimator(path: str) -> Any:
    """A classifier by the name of its class; None for the default."""
    if not path:
        return None
    from credalchain.studies.study_file import estimator_class

    try:
        return estimator_class(path, [path.rpartition(".")[0]])()
    except ValueError:
        raise ValueError(
            f"--estimator: there is no class {path!r} of scikit-learn's kind."
        ) from None
