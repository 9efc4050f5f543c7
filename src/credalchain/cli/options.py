"""Options that several commands share, and the classifier they describe."""

import inspect
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer
from joblib import effective_n_jobs
from sklearn.pipeline import make_pipeline

from credalchain._utils.text import plural
from credalchain._utils.validation import check_choice, check_n_jobs
from credalchain._version import __version__
from credalchain.chains.classifier import CredalBinaryRelevanceClassifier, CredalChainClassifier
from credalchain.chains.ensemble import CredalChainEnsemble
from credalchain.chains.forest import CredalForest, default_forest_classifier
from credalchain.chains.naive import counts as counting
from credalchain.chains.naive.estimator import NaiveCredal
from credalchain.chains.strategies import branching
from credalchain.chains.wrapper import CredalWrapper
from credalchain.chunks import trees
from credalchain.cli.console import note
from credalchain.columns import Feature, TablePreparer
from credalchain.datasets.files import Reading, reading_as
from credalchain.joint.decision import JointDecision
from credalchain.joint.forest import CredalJointForest
from credalchain.joint.growing import default_forest_regressor, forecast_fit, grown_forests
from credalchain.joint.rules import RULES
from credalchain.joint.stacked import StackedJointForest
from credalchain.preprocessing import Discretizer
from credalchain.promises.calibration import best_loss
from credalchain.promises.risks import RISKS

_CACHE_BYTES = 2**30  # of forests that are kept, when a command starts
CALIBRATION = 0.3
_COMMON = {
    "data": "A table: .csv, .tsv, .parquet or .arff; - for CSV from stdin; embedded:yeast; "
    "mulan:NAME. fit, predict and evaluate read a folder, a glob, a compressed or very large file "
    "in chunks.",
    "model": "A model file, written by fit.",
    "json": "Print JSON instead of tables.",
    "picture": "Also save a figure to this .png, .svg or .pdf file.",
    "confidence": "Probability that the fitted model keeps the promise; if not given, it "
    "is kept on average over models.",
    "calibration": "Share of the rows to hold out for calibrating the promise.",
    "s": "Override the model's s.",
    "reward": "Override a joint model's reward.",
    "strategy": "Override the model's strategy.",
    "jobs": "Threads; -1 for all cores.",
}
"""Help of parameters that several commands share, unless their docstrings override it."""

_CHAINS = ("chain", "relevance", "ensemble")  # methods that have s
_JOINT = ("joint", "recommended")  # methods that have a reward


def _used_with(default: Any, **conditions: tuple[str, ...]) -> Any:
    """Declare an option that has an effect only with these values of other options."""
    return field(default=default, metadata=conditions)


_of_naive = partial(_used_with, base=("naive",))


@dataclass(frozen=True)
class ClassifierOptions:
    """The options that describe a classifier, for fit, evaluate and tune.

    Attributes
    ----------
    method
        recommended: one forest for all labels, the strongest; chain: the paper's; relevance: a
        model for each label; ensemble: chains, averaged; joint: an ensemble that decides about
        labels together. If not given: recommended, or chain if an option of chains is.
    base
        naive, forest or wrapper; wrapper goes with --estimator.
    estimator
        A classifier for --base wrapper, such as sklearn.naive_bayes.GaussianNB.
    trees
        Trees of each forest; if not given, 100, or 300 for --method recommended.
    chains
        Chains of an ensemble.
    loss
        Loss of wrong answers. row: a row is right or wrong as a whole; cell: each wrong answer
        counts; f1, jaccard: this measure of the row; bands: wrong yes and wrong no cost
        differently. If not given, the loss that suits the promise, or row.
    constraint
        A constraint on the labels, such as 'rock -> music' or 'at most one of a, b'. May be
        repeated.
    reward
        Reward for answers: a larger one answers more labels.
    s
        Caution: 0 answers everything; a larger value leaves more labels open.
    strategy
        branching, marginalization, or tree-marginalization (for few open labels only).
    order
        random, given, dynamic, or label names separated by commas.
    threshold
        A number, or one per label, separated by commas.
    seed
        Seed of the random order (and of the folds).
    jobs
        Threads; -1 for all cores.
    epsilon
        Smoothing of the bounds, from 0 to below 1.
    prior
        laplace, paper or credal.
    denominator
        pairwise or class.
    bins
        Equal-frequency bins per numeric column; 0: columns hold codes.
    missing_features
        ignore or conservative.
    """

    method: str = ""
    base: str = _used_with("naive", method=(*_CHAINS, "joint"))
    estimator: str = _used_with("", base=("wrapper",))
    trees: int | None = _used_with(None, base=("forest",), method=("recommended",))
    chains: int = _used_with(10, method=("ensemble", "joint"))
    loss: str = _used_with("", method=_JOINT)
    constraint: list[str] | None = _used_with(None, method=("recommended",))  # noqa: RUF009
    reward: float | None = _used_with(None, method=_JOINT)
    s: float | None = _used_with(None, method=_CHAINS)
    strategy: str = _used_with(branching.name, method=("chain", "ensemble"))
    order: str = _used_with("random", method=("chain",))
    threshold: str = _used_with("0.5", method=_CHAINS)
    seed: int = 0
    jobs: int = 1
    epsilon: float = _of_naive(0.001)
    prior: str = _of_naive("laplace")
    denominator: str = _of_naive("pairwise")
    bins: int = _of_naive(6)
    missing_features: str = _of_naive("ignore")

    def resolved(self, given: Collection[str]) -> "ClassifierOptions":
        """Return the same with a method, if none is named: the one that has the options ``given``.

        An option that would have no effect raises a ValueError.
        """
        used_with = {
            option.name: option.metadata
            for option in fields(self)
            if option.name in given and option.metadata
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
        """True if the classifier decides all labels of a row together."""
        return self.method in _JOINT

    @property
    def caution(self) -> dict[str, Any]:
        """The caution parameter if it was given, by name."""
        values = {"s": self.s, "reward": self.reward}
        return {name: value for name, value in values.items() if value is not None}


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Make a command of a function that reads tables.

    Its positional parameters are arguments, the others options, and what its docstring says of
    them is their help. A parameter whose type is one of the classes above stands for an option for
    each of its fields; those that the function declares itself keep their default in the group.
    """
    text, words = _documentation(command)
    declared, groups = dict(inspect.signature(command).parameters), dict[str, Any]()
    for name in list(declared):
        if is_dataclass(declared[name].annotation):
            groups[name] = declared.pop(name).annotation
    parameters = [
        _parameter(p.name, p.annotation, p.default, words, is_argument=p.kind is not p.KEYWORD_ONLY)
        for p in declared.values()
    ]
    added: set[str] = set()
    for group in (*groups.values(), Reading):
        _, words = _documentation(*reversed(group.__mro__[:-1]))
        new = [option for option in fields(group) if option.name not in {*declared, *added}]
        added |= {option.name for option in new}
        parameters += [
            _parameter(option.name, option.type, None, words, shown=option.default)
            for option in new
        ]

    @wraps(command)
    def run(**arguments: Any) -> None:
        given = {name: value for name, value in arguments.items() if value not in (None, "", [])}

        def build(group: Any) -> Any:
            names = [option.name for option in fields(group) if option.name in {*given} & added]
            return group(**{name: given[name] for name in names})

        built = {name: build(group) for name, group in groups.items()}
        if "options" in built:
            built["options"] = built["options"].resolved(given)
        with reading_as(build(Reading)):
            command(**{name: arguments[name] for name in declared}, **built)

    run.__doc__ = text
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def _documentation(*documented: Any) -> tuple[str, dict[str, str]]:
    """Return what the last docstring says before its parameters, and what all say of these."""
    words = dict(_COMMON)
    text, names = "", [""]
    for one in documented:
        text, *sections = re.split(r"\n+(?:Parameters|Attributes)\n-+\n", inspect.getdoc(one) or "")
        for line in "\n".join(sections).splitlines():
            if line and not line[0].isspace():
                names = line.split(", ")
                words |= dict.fromkeys(names, "")
            else:
                words |= {name: f"{words[name]} {line.strip()}".strip() for name in names}
    return text, words


def _parameter(
    name: str,
    annotation: Any,
    default: Any,
    words: Mapping[str, str],
    *,
    is_argument: bool = False,
    shown: Any = None,
) -> inspect.Parameter:
    """Return a parameter as typer reads it; of a group, its ``shown`` default is not its default.

    So it can be told whether an option was given.
    """
    kind, *settings = get_args(annotation) if get_origin(annotation) is Annotated else [annotation]
    about = typer.Option(*[f"--{name.replace('_', '-')}"] * (kind is bool and not default))
    if is_argument:
        about = typer.Argument(metavar=name.upper())
    about = settings[0] if settings else about
    about.help = words[name]
    if isinstance(shown, (int, float, str)) and shown is not False and shown != "":
        about.show_default = str(shown)
    kind = kind if default is inspect.Parameter.empty or kind is bool else kind | None
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, about]
    )


def parse_numbers(text: str, option: str) -> Any:
    """Return a number, or a list of them where there are commas."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{option} must be numbers separated by commas, got {text!r}.") from None
    return values if "," in text else values[0]


def default_caution(classifier: Any, n_labels: int) -> float:
    """Return the value of the caution parameter, where there are too few rows to choose one."""
    value = classifier.get_params()[classifier.caution_parameter]
    return RULES[classifier.loss].default_reward(n_labels) if value is None else float(value)


@contextmanager
def forest_cache() -> Iterator[None]:
    """Keep grown forests in the user's cache: `fit` after `tune` needs the same one."""
    from joblib import Memory

    try:
        import pooch

        cache = os.environ.get("CREDALCHAIN_CACHE") or pooch.os_cache("credalchain")
        folder = Path(cache) / "forests" / __version__
        memory = Memory(folder, verbose=0)
        memory.reduce_size(bytes_limit=_CACHE_BYTES)
    except (ImportError, OSError):  # without a cache
        yield
        return
    token = grown_forests.set(memory)
    try:
        yield
    finally:
        grown_forests.reset(token)


def build_model(classifier: Any, features: Sequence[Feature], options: ClassifierOptions) -> Any:
    """Return the classifier with the preparation of columns that it needs before it, unfitted."""
    is_naive = options.method != "recommended" and options.base == "naive"
    before = TablePreparer(features, keep_categories=is_naive, random_state=options.seed)
    return make_pipeline(before, classifier) if before.is_needed else classifier


def sample_size(options: ClassifierOptions) -> int:
    """Return from how many rows bins or trees, and the preparation of columns, are learned."""
    return trees.SAMPLE_SIZE if options.base == "forest" else counting.SAMPLE_SIZE


def build_classifier(
    options: ClassifierOptions, *, over_scores: bool = False, risks: Collection[str] = ()
) -> Any:
    """Build the classifier that the options describe, unfitted; its loss suits promised risks."""
    loss = options.loss or best_loss([RISKS[name] for name in risks] if risks else None)
    common: dict[str, Any] = {"n_jobs": options.jobs, "random_state": options.seed}
    if over_scores and options.method != "recommended":
        raise ValueError(f"--scores is for --method recommended, not for {options.method}.")
    if options.method == "recommended":
        forest = None if options.trees is None else default_forest_regressor(options.trees)
        estimator = (
            StackedJointForest("precomputed", forest, **common)
            if over_scores
            else CredalJointForest(forest, **common)
        )
        return JointDecision(
            estimator,
            **options.caution,
            loss=loss,
            constraints=options.constraint,
            random_state=options.seed,
        )
    check_choice("--method", options.method, (*_CHAINS, *_JOINT))
    base = _build_base(options)
    common["threshold"] = parse_numbers(options.threshold, "--threshold")
    if not options.is_joint:
        common |= options.caution
    if options.method == "relevance":
        return CredalBinaryRelevanceClassifier(base, **common)
    common["strategy"] = options.strategy
    if options.method == "chain":
        names = [name.strip() for name in options.order.split(",")]
        order: Any = options.order if len(names) == 1 else names
        return CredalChainClassifier(base, order=order, **common)
    ensemble = CredalChainEnsemble(base, n_chains=options.chains, **common)
    return JointDecision(ensemble, **options.caution, loss=loss) if options.is_joint else ensemble


_LONG_SECONDS = 20.0


def note_long_fit(n_rows: int, n_columns: int, n_labels: int, jobs: int = 1) -> None:
    """Print the expected time of fitting the recommended model, if it is long, and alternatives."""
    n_jobs = effective_n_jobs(check_n_jobs(jobs))
    found = forecast_fit(n_rows, n_columns, n_labels, n_jobs)
    if found.seconds > _LONG_SECONDS:
        cores = plural(n_jobs, "core")
        note(
            f"fitting the recommended model takes about {found.seconds / 60:.1f} min on {cores}, "
            f"{found.memory / 1e9:.1f} GB of memory and a file of {found.file / 1e6:.0f} MB; "
            "--jobs -1 uses all cores, --trees 50 takes a fraction, --method chain seconds"
        )


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
    check_choice("--base", options.base, ("naive", "forest", "wrapper"))
    if not options.estimator:
        return CredalWrapper(None)
    from credalchain.studies.study_file import estimator_class

    path = options.estimator
    try:
        return CredalWrapper(estimator_class(path, [path.rpartition(".")[0]])())
    except ValueError:
        raise ValueError(
            f"--estimator: there is no class {path!r} of scikit-learn's kind."
        ) from None
