"""Definition of studies, read from TOML and validated before anything runs."""

import difflib
import json
import math
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from sklearn.base import BaseEstimator

from credalchain._utils.validation import check_int, check_s
from credalchain.chains.strategies import STRATEGIES
from credalchain.datasets.corruption import CORRUPTIONS
from credalchain.datasets.registry import DATASETS, DataFile, DataSource
from credalchain.metrics import MEASURES

KINDS = ("chain", "relevance", "estimator")
PACKAGES = ("credalchain", "sklearn")  # whose estimators every study may use


class StudyError(ValueError):
    """Error in a study file; the message says where and why.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from credalchain.studies import StudyError, load_study
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "study.toml")
    ...     _ = file.write_text('date = ["flags"]')
    ...     try:
    ...         load_study(file)
    ...     except StudyError as error:
    ...         print(str(error).removeprefix(folder))
    /study.toml, line 1: there is no key 'date' (did you mean 'data'?).
    """


@dataclass(frozen=True)
class Settings:
    """Conventions that belong together. ``bins``: learned on "train" rows or on "all" rows."""

    epsilon: float
    epsilon_at_zero: float  # for s = 0
    prior: str
    denominator: str
    bins: str
    removal: str


SETTINGS = {
    "paper": Settings(0.0, 0.0, "paper", "class", "train", "uniform"),
    "published": Settings(0.001, 0.0, "laplace", "pairwise", "all", "per-label"),
    "default": Settings(0.001, 0.001, "laplace", "pairwise", "train", "uniform"),
}


@dataclass(frozen=True)
class Method:
    """A classifier with the grid of its parameters that are read when predicting.

    ``s`` are the values of its caution parameter, also if that is called otherwise. None: they are
    chosen from training rows. Empty: the estimator's own parameters hold its only value, if any.
    """

    name: str
    kind: str = "chain"
    strategies: tuple[str, ...] = ("branching",)
    s: tuple[float, ...] | None = (2.0,)
    order: str = "random"
    n_bins: int = 6
    class_path: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Study:
    """Study: data sets, methods, corruption of labels, cross-validation, measures and a seed.

    Parameters
    ----------
    name : str
        Name of the study.
    seed : int
        Seed of folds, corruption and models.
    settings : {"default", "paper", "published"}
        Conventions that belong together.
    data : tuple of str or DataFile
        Data sets, by name or as files.
    methods : tuple of Method
        Classifiers, each with the values of its caution parameter.
    corruption : str
        Kind of corruption of the training labels.
    levels : tuple of float
        Shares of training labels that are corrupted.
    folds, repeats : int
        Number of folds, and of repetitions, of the cross-validation.
    measures : tuple of str
        Names of measures.
    allow : tuple of str, default=()
        Modules, besides this package and scikit-learn, whose classes may be imported. Set by the
        person who runs the study, never by the study file.
    folder : str, default=""
        Folder of the study file, in which these modules are searched, too.
    reference : str, default=""
        The method that the report compares with its rivals, the methods of other classes. Empty:
        the best method, and all others are its rivals.
    max_labels, max_training_rows : int, default=0
        Maximum number of labels, the most frequent ones, and of training rows in each fold, a
        random sample. 0 means no limit.

    See Also
    --------
    load_study : Read a study from a TOML file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from credalchain.studies import load_study
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "first.toml")
    ...     _ = file.write_text('''
    ... data = ["emotions", "flags"]
    ... method = [{ name = "chain", s = [0.0, 2.0] }]
    ... ''')
    ...     study = load_study(file)
    >>> study.name, study.data, study.folds, study.measures
    ('first', ('emotions', 'flags'), 10, ('set_accuracy', 'completeness', 'incorrectness'))
    """

    name: str
    seed: int
    settings: str
    data: tuple[DataSource, ...]
    methods: tuple[Method, ...]
    corruption: str
    levels: tuple[float, ...]
    folds: int
    repeats: int
    measures: tuple[str, ...]
    allow: tuple[str, ...] = ()
    folder: str = ""
    reference: str = ""
    max_labels: int = 0
    max_training_rows: int = 0


def load_study(path: str | Path, allow: Sequence[str] = ()) -> Study:
    """Read and validate a study file.

    Parameters
    ----------
    path : str or Path
        A TOML file.
    allow : sequence of str, default=()
        Trusted modules whose estimators the study may use, besides those of this package and of
        scikit-learn. No other module is imported. The folder of the file is searched, too.

    Returns
    -------
    Study
        The study, for :func:`run_study`.

    Raises
    ------
    StudyError
        If the file is not valid; with the line, the key and the nearest valid name.
    FileNotFoundError
        If there is no such file.

    See Also
    --------
    run_study : Run the study.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from credalchain.studies import load_study
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "first.toml")
    ...     _ = file.write_text('''
    ... data = ["emotions", "flags"]
    ... method = [{ name = "chain", s = [0.0, 2.0] }]
    ... ''')
    ...     study = load_study(file)
    >>> study.methods[0].strategies, study.methods[0].s
    (('branching',), (0.0, 2.0))
    """
    parts = [part for name in allow for part in str(name or "").split(".")]
    if isinstance(allow, str) or not all(map(str.isidentifier, parts)):
        raise ValueError(f"allow must be a list of module names, got {allow!r}.")
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    try:
        text = path.read_text(encoding="utf-8")
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StudyError(f"{path} is not TOML: {error}.") from None
    return _study(_Table(path, text.splitlines(), content), tuple(allow))


@dataclass(frozen=True)
class _Table:
    """A table of a parsed file, which reads values and knows the line of each.

    ``occurrence`` counts the tables of the same ``section``; at the top that is empty.
    """

    path: Path
    lines: list[str]
    content: dict[str, Any]
    section: str = ""
    occurrence: int = 0

    @property
    def folder(self) -> str:
        return str(self.path.parent.resolve())

    def inside(self, content: Any, section: str, occurrence: int = 0) -> "_Table":
        if not isinstance(content, dict):
            self.fail(section, f"{section} must be a table, got {content!r}")
        return replace(self, content=content, section=section, occurrence=occurrence)

    def table(self, name: str, *known: str) -> "_Table":
        return self.inside(self.content.get(name, {}), name).check_keys(*known)

    def check_keys(self, *known: str) -> "_Table":
        for key in self.content:
            if key not in known:
                self.fail(key, f"there is no key {key!r}" + _nearest(key, known))
        return self

    def typed(self, key: str, kind: type, default: Any) -> Any:
        value = self.content.get(key, default)
        if not isinstance(value, kind):
            self.fail(key, f"{key} must be of type {kind.__name__}, got {value!r}")
        return value

    def integer(self, key: str, default: int, at_least: int) -> int:
        try:
            return check_int(key, self.content.get(key, default), at_least)
        except ValueError as error:
            self.fail(key, error)

    def choice(self, key: str, choices: Any, default: str) -> str:
        return self._known(key, [self.content.get(key, default)], choices)[0]

    def choices(self, key: str, choices: Any, default: Sequence[str] = ()) -> tuple[str, ...]:
        return self._known(key, self._list(key, default, "names"), choices)

    def _known(self, key: str, names: list[Any], choices: Any) -> tuple[str, ...]:
        for name in names:
            if name not in list(choices):
                self.fail(key, f"{key}: {name!r} is not known" + _nearest(name, choices))
        return tuple(names)

    def numbers(
        self, key: str, low: float, high: float, expected: str, default: Sequence[float] = ()
    ) -> tuple[float, ...]:
        values = self._list(key, default, "numbers")
        for value in values:
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not is_number or not low <= value <= high:
                self.fail(key, f"{key}: a number must be {expected}, got {value!r}")
        return tuple(map(float, values))

    def _list(self, key: str, default: Sequence[Any], what: str) -> list[Any]:
        values = self.content.get(key, list(default))
        if not isinstance(values, list) or not values:
            self.fail(key, f"{key} must be a list of one or more {what}, got {values!r}")
        for turn, value in enumerate(values):
            if value in values[:turn]:
                self.fail(key, f"{key} holds {value!r} twice")
        return values

    def fail(self, key: str, message: object) -> NoReturn:
        inside = f" [{self.section}]" if self.section else ""
        message = str(message).removesuffix(".")
        raise StudyError(f"{self.path}{self._place_of(key)}:{inside} {message}.") from None

    def _place_of(self, key: str) -> str:
        """Return the line of a key of the table, or that of the table, in words."""
        heads = {0: ""} | {
            i: match[1]
            for i, line in enumerate(self.lines)
            if (match := re.match(r"\s*\[+\s*([\w.-]+)\s*\]+", line))
        }
        starts = [i for i, name in heads.items() if name == self.section]
        start, default = 0, None
        if self.section and self.occurrence < len(starts):
            start = default = starts[self.occurrence]
        elif self.section:  # a value of a key
            key = self.section
        end = min((i for i in heads if i > start), default=len(self.lines))
        is_key = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=").match
        found = next((i for i in range(start, end) if is_key(self.lines[i])), default)
        return "" if found is None else f", line {found + 1}"


def _nearest(name: Any, choices: Any) -> str:
    near = difflib.get_close_matches(str(name), list(choices), n=1, cutoff=0.5)
    return f" (did you mean {near[0]!r}?)" if near else f"; expected one of {', '.join(choices)}"


def _study(top: _Table, allow: tuple[str, ...]) -> Study:
    top.check_keys(
        *("name", "seed", "settings", "data", "measures", "cross_validation", "corruption"),
        *("limits", "models", "method", "reference"),
    )
    limits = top.table("limits", "labels", "training_rows")
    validation = top.table("cross_validation", "folds", "repeats")
    damage = top.table("corruption", "kind", "levels")
    settings = top.choice("settings", SETTINGS, "default")
    corruption = damage.choice("kind", {**CORRUPTIONS, "missing": None}, "missing")
    below_one = math.nextafter(1, 0)
    methods = _methods(top, allow)
    names = ["", *(method.name for method in methods)]
    return Study(
        name=top.typed("name", str, top.path.stem),
        seed=top.integer("seed", 0, at_least=0),
        settings=settings,
        data=_data(top),
        methods=methods,
        corruption=SETTINGS[settings].removal if corruption == "missing" else corruption,
        levels=damage.numbers("levels", 0, below_one, "0 or more, below 1", (0.0,)),
        folds=validation.integer("folds", 10, at_least=2),
        repeats=validation.integer("repeats", 1, at_least=1),
        measures=top.choices(
            "measures", MEASURES, ("set_accuracy", "completeness", "incorrectness")
        ),
        allow=allow,
        folder=top.folder,
        reference=top.choice("reference", names, ""),
        max_labels=limits.integer("labels", 0, at_least=0),
        max_training_rows=limits.integer("training_rows", 0, at_least=0),
    )


def _data(top: _Table) -> tuple[DataSource, ...]:
    entries = top.content.get("data")
    sources = [
        _data_file(top.inside(entry, "data", i)) if isinstance(entry, dict) else entry
        for i, entry in enumerate(entries if isinstance(entries, list) else ())
    ]
    files = {source.name: source for source in sources if isinstance(source, DataFile)}
    names = {"data": [getattr(source, "name", source) for source in sources]}
    chosen = replace(top, content=names).choices("data", (*DATASETS, *files))
    return tuple(files.get(name, name) for name in chosen)


def _data_file(table: _Table) -> DataFile:
    table.check_keys("file", "labels", "name", "groups")
    file = table.typed("file", str, None)
    name, groups = (table.typed(key, str, "") for key in ("name", "groups"))
    labels = table.content.get("labels")
    if not labels or not isinstance(labels, (list, str)):
        message = "labels must be a list of one or more names, or 'xml' or 'meka' for ARFF"
        table.fail("labels", f"{message}, got {labels!r}")
    try:
        data = DataFile.describe(file, labels, Path(table.folder), name, groups)
    except (OSError, ValueError) as error:
        key = "file" if isinstance(error, OSError) else "labels"
        table.fail(key, f"{key}: {error}")
    except LookupError as error:
        table.fail("groups", f"groups: {error.args[0]}")
    if data.name in DATASETS:
        table.fail("name", f"name: {data.name!r} is the name of another data set")
    return data


def _methods(top: _Table, allow: tuple[str, ...]) -> tuple[Method, ...]:
    contents = top.content.get("method")
    if not isinstance(contents, list) or not contents:
        top.fail("method", "a study needs at least one table [[method]]")
    models = top.inside(top.content.get("models", {}), "models").content
    tables = [
        table
        for i, content in enumerate(contents)
        for table in _over_models(top.inside(content, "method", i), models)
    ]
    methods = tuple(_method(table, allow) for table in tables)
    for i, method in enumerate(methods):
        if method.name in [other.name for other in methods[:i]]:
            tables[i].fail("name", f"two methods are called {method.name!r}")
    return methods


def _over_models(table: _Table, models: dict[str, Any]) -> Iterator[_Table]:
    """Yield a method; one for each of the models that it is over, as its ``estimator``."""
    if "over" not in table.content:
        yield table
        return
    content = {key: value for key, value in table.content.items() if key != "over"}
    params, name = table.typed("params", dict, {}), table.typed("name", str, "method")
    for model in table.choices("over", models):
        of_model = {"name": f"{model}: {name}", "params": {**params, "estimator": models[model]}}
        yield replace(table, content={**content, **of_model})


def _method(table: _Table, allow: tuple[str, ...]) -> Method:
    kind = table.choice("kind", KINDS, "estimator" if "class" in table.content else "chain")
    name, class_path = table.typed("name", str, kind), table.typed("class", str, "")
    if (kind == "estimator") != bool(class_path):
        table.fail("kind", 'kind = "estimator" goes with class = "module.Class"')
    params = table.typed("params", dict, {})
    try:
        json.dumps(params)
    except (TypeError, RecursionError):
        table.fail("params", "params must be numbers, texts, lists and tables")
    estimator, caution = None, "s"
    if class_path:  # as tasks build it, so that they find nothing wrong with it later
        key, about = "class", ""
        try:
            estimator_class(class_path, allow, table.folder)
            key, about = "params", f"params of method {name!r}: "
            estimator = build_estimator(class_path, params, allow, table.folder)
        except Exception as error:  # whatever a class does with its parameters
            table.fail(key, f"{about}{error}")
        has_path = hasattr(estimator, "predict_path")
        caution = getattr(estimator, "caution_parameter", "") if has_path else ""
    known = ("name", "kind", "strategies", "s", "reward", "order", "n_bins", "class", "params")
    table.check_keys(*known, caution)
    return Method(
        name=name,
        kind=kind,
        strategies=table.choices("strategies", STRATEGIES, ("branching",)),
        s=_caution_values(table, name, estimator, caution),
        order=table.choice("order", ("random", "given", "dynamic"), "random"),
        n_bins=table.integer("n_bins", 6, at_least=2),
        class_path=class_path,
        params=params,
    )


def _caution_values(
    table: _Table, name: str, estimator: Any, caution: str
) -> tuple[float, ...] | None:
    """Return values of caution, given as s or by the name that they have in the class."""
    keys = [key for key in dict.fromkeys(("s", "reward", caution)) if key in table.content]
    if not keys:
        is_set = not caution or caution in table.content.get("params", ())
        return () if estimator is not None and is_set else None
    key = keys[-1]
    if not caution:
        table.fail(
            key,
            f"{key} = {table.content[key]!r} of method {name!r}: {table.content['class']} cannot "
            "take values of caution: it needs predict_path(X, values) and caution_parameter",
        )
    if key not in ("s", caution):
        table.fail(key, f"{key}: the caution parameter of this method is {caution}")
    if len(keys) > 1:
        table.fail("s", f"{' and '.join(keys)} are the same for this method: give one")
    values = table.numbers(key, -sys.float_info.max, sys.float_info.max, "finite")
    for value in values:
        try:
            if estimator is None:
                check_s(value)
            elif caution in estimator.get_params():
                check_parameters(estimator.set_params(**{caution: value}))
        except Exception as error:  # whatever a class does with its parameters
            table.fail(key, f"{key} = {value!r} of method {name!r}: {error}")
    return values


def build_estimator(
    class_path: str, params: Mapping[str, Any], allow: Sequence[str] = (), folder: str = ""
) -> Any:
    """Return an estimator whose parameters were validated, as far as that needs no data.

    Parameters that are tables with a ``class`` are estimators themselves, and "none" is None.
    """

    def build(name: str, value: Any) -> Any:
        if name.split("__")[-1] == "memory":
            raise ValueError(
                f"{name} cannot be set in a study: it names a folder whose files are pickles, and "
                "pickles run code when they are read"
            )
        if isinstance(value, (list, tuple)):
            return [build(name, item) for item in value]
        if isinstance(value, Mapping) and "class" in value:
            inner = {key: item for key, item in value.items() if key != "class"}
            return build_estimator(value["class"], inner, allow, folder)
        if isinstance(value, Mapping):
            return {key: build(key, item) for key, item in value.items()}
        return None if value == "none" else value

    cls = estimator_class(class_path, allow, folder)
    return check_parameters(cls(**{name: build(name, value) for name, value in params.items()}))


def check_parameters(estimator: Any) -> Any:
    """Return the estimator; raise what it says of its parameters without seeing data."""
    if hasattr(estimator, "_parameter_constraints"):  # of scikit-learn
        estimator._validate_params()
    if hasattr(estimator, "check_parameters"):
        estimator.check_parameters()
    return estimator


def estimator_class(path: Any, allow: Sequence[str] = (), folder: str = "") -> Any:
    """Return the estimator class that ``module.Class`` names.

    A study file is data that people exchange, so it must not run code of its choice: a module is
    imported only if it belongs to this package, to scikit-learn or to what ``allow`` names, and
    only an estimator class is returned. What ``allow`` names is searched in ``folder``, too.

    Raises
    ------
    ValueError
        If the module is not allowed, cannot be imported or holds no such estimator class.
    """
    module, _, name = path.rpartition(".") if isinstance(path, str) else ("", "", "")
    if module and not _is_inside(module, (*PACKAGES, *allow)):
        top = module.partition(".")[0]
        raise ValueError(
            f"class {path!r} cannot be imported: a study may use estimators of credalchain and "
            f"scikit-learn; if you trust the module {top!r}, allow it with --allow {top} or "
            f"load_study(..., allow=[{top!r}])"
        )
    is_allowed = _is_inside(module, allow)
    if is_allowed and folder:
        sys.path.append(folder)
    try:
        cls = getattr(import_module(module), name)
    except Exception as error:  # whatever a module does when it is imported
        reason = f"{type(error).__name__}: {error}".removesuffix(".")
        raise ValueError(f"class {path!r} cannot be imported: {reason}") from None
    finally:
        if is_allowed and folder:
            sys.path.remove(folder)
    is_ours = is_allowed or _is_inside(getattr(cls, "__module__", ""), PACKAGES)
    is_estimator = is_allowed and all(hasattr(cls, method) for method in ("fit", "get_params"))
    is_class = is_ours and isinstance(cls, type)
    if not is_class or not (is_estimator or issubclass(cls, BaseEstimator)):
        raise ValueError(f"class {path!r} is not an estimator class of scikit-learn's kind")
    return cls


def _is_inside(module: str, packages: Sequence[str]) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in packages)
