"""What a study is, read from TOML and checked before anything runs."""

import difflib
import json
import math
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from sklearn.base import BaseEstimator

from credalchain.datasets.corruption import CORRUPTIONS
from credalchain.datasets.registry import DATASETS, DataFile, DataSource
from credalchain.metrics import MEASURES
from credalchain.strategies import STRATEGIES
from credalchain.validation import check_s

SPLITS = ("shuffled", "iterative")
KINDS = ("chain", "relevance", "estimator")
PACKAGES = ("credalchain", "sklearn")  # whose estimators every study may use


class StudyError(ValueError):
    """A study file says something that cannot be done; the message says where."""


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
    """Data sets, methods, damage to the labels, cross-validation, measures and a seed.

    ``allow`` names the modules, besides this package and scikit-learn, whose classes may be
    imported. It is for whoever runs the study to say, never for the study file. They are searched
    in ``folder``, that of the study file, too.
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
    split: str
    measures: tuple[str, ...]
    allow: tuple[str, ...] = ()
    folder: str = ""


def load_study(path: str | Path, allow: Sequence[str] = ()) -> Study:
    """Read and check a study file.

    Parameters
    ----------
    path : path
    allow : sequence of str
        Modules you trust whose estimators the study may use, besides those of this package and
        of scikit-learn. No other module is imported. The folder of the file is searched, too.

    Raises
    ------
    StudyError
        With the line, the key and the nearest name that would have been right.
    """
    if isinstance(allow, str) or not all(_is_module_name(name) for name in allow):
        raise ValueError(f"allow must be a list of module names, got {allow!r}.")
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    try:
        text = path.read_text(encoding="utf-8")
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StudyError(f"{path} is not TOML: {error}.") from None
    return _Reader(path, text, tuple(allow)).study(content)


class _Reader:
    """Takes values out of a parsed file and knows where each stood."""

    def __init__(self, path: Path, text: str, allow: tuple[str, ...]) -> None:
        self._path = path
        self._lines = text.splitlines()
        self._allow = allow
        self._folder = str(path.parent.resolve())

    # -- the parts of a study --------------------------------------------------------------

    def study(self, content: dict[str, Any]) -> Study:
        known = ("name", "seed", "settings", "data", "measures", "cross_validation", "corruption")
        self._reject_unknown_keys(content, (*known, "method"), "")
        validation = self._table(content, "cross_validation", ("folds", "repeats", "split"))
        damage = self._table(content, "corruption", ("kind", "levels"))
        settings = self._choice(content, "settings", SETTINGS, "", "default")
        kinds = {**CORRUPTIONS, "missing": None}
        corruption = self._choice(damage, "kind", kinds, "corruption", "missing")
        if corruption == "missing":
            corruption = SETTINGS[settings].removal
        return Study(
            name=self._typed(content, "name", str, "", self._path.stem),
            seed=self._int(content, "seed", "", 0, at_least=0),
            settings=settings,
            data=self._data(content),
            methods=self._methods(content),
            corruption=corruption,
            levels=self._numbers(
                damage, "levels", "corruption", (0.0,), lambda f: 0 <= f < 1, "0 or more, below 1"
            ),
            folds=self._int(validation, "folds", "cross_validation", 10, at_least=2),
            repeats=self._int(validation, "repeats", "cross_validation", 1, at_least=1),
            split=self._choice(validation, "split", SPLITS, "cross_validation", "shuffled"),
            measures=self._choices(
                content, "measures", MEASURES, "", ("set_accuracy", "completeness", "incorrectness")
            ),
            allow=self._allow,
            folder=self._folder,
        )

    def _data(self, content: dict[str, Any]) -> tuple[DataSource, ...]:
        entries = content.get("data")
        sources = [
            self._data_file(entry, occurrence) if isinstance(entry, dict) else entry
            for occurrence, entry in enumerate(entries if isinstance(entries, list) else ())
        ]
        files = {source.name: source for source in sources if isinstance(source, DataFile)}
        names = {"data": [getattr(source, "name", source) for source in sources]}
        chosen = self._choices(names, "data", (*DATASETS, *files), "")
        return tuple(files.get(name, name) for name in chosen)

    def _data_file(self, table: dict[str, Any], occurrence: int) -> DataFile:
        self._reject_unknown_keys(table, ("file", "labels", "name", "groups"), "data", occurrence)
        file = self._typed(table, "file", str, "data", None, occurrence)
        name = self._typed(table, "name", str, "data", "", occurrence)
        groups = self._typed(table, "groups", str, "data", "", occurrence)
        labels = table.get("labels")
        is_list = isinstance(labels, list) and all(isinstance(label, str) for label in labels)
        if not labels or not (is_list or isinstance(labels, str)):
            message = "labels must be a list of one or more names, or 'xml' or 'meka' for ARFF"
            self._fail("data", "labels", f"{message}, got {labels!r}", occurrence)
        try:
            data = DataFile.describe(file, labels, self._path.parent.resolve(), name, groups)
        except (OSError, ValueError) as error:
            key = "file" if isinstance(error, OSError) else "labels"
            self._fail("data", key, f"{key}: {str(error).removesuffix('.')}", occurrence)
        except LookupError as error:
            self._fail("data", "groups", f"groups: {error.args[0]}", occurrence)
        if data.name in DATASETS:
            self._fail(
                "data", "name", f"name: {data.name!r} is the name of another data set", occurrence
            )
        return data

    def _methods(self, content: dict[str, Any]) -> tuple[Method, ...]:
        tables: Any = content.get("method")
        is_valid = isinstance(tables, list) and all(isinstance(table, dict) for table in tables)
        if not is_valid or not tables:
            self._fail("", "method", "a study needs at least one table [[method]]")
        methods = tuple(self._method(table, occurrence) for occurrence, table in enumerate(tables))
        names = [method.name for method in methods]
        for occurrence, name in enumerate(names):
            if name in names[:occurrence]:
                self._fail("method", "name", f"two methods are called {name!r}", occurrence)
        return methods

    def _method(self, table: dict[str, Any], occurrence: int) -> Method:
        kind = self._choice(table, "kind", KINDS, "method", "chain", occurrence)
        name = self._typed(table, "name", str, "method", kind, occurrence)
        class_path = self._typed(table, "class", str, "method", "", occurrence)
        if (kind == "estimator") != bool(class_path):
            self._fail(
                "method", "kind", 'kind = "estimator" goes with class = "module.Class"', occurrence
            )
        params = self._typed(table, "params", dict, "method", {}, occurrence)
        try:
            json.dumps(params)
        except (TypeError, RecursionError):
            self._fail(
                "method", "params", "params must be numbers, texts, lists and tables", occurrence
            )
        estimator = self._estimator(name, class_path, params, occurrence) if class_path else None
        caution = _caution_parameter(estimator)
        known = ("name", "kind", "strategies", "s", "reward", "order", "n_bins", "class", "params")
        self._reject_unknown_keys(table, (*known, caution or "s"), "method", occurrence)
        return Method(
            name=name,
            kind=kind,
            strategies=self._choices(
                table, "strategies", STRATEGIES, "method", ("branching",), occurrence
            ),
            s=self._caution_values(table, name, estimator, caution, occurrence),
            order=self._choice(
                table, "order", ("random", "given", "dynamic"), "method", "random", occurrence
            ),
            n_bins=self._int(table, "n_bins", "method", 6, occurrence, at_least=2),
            class_path=class_path,
            params=params,
        )

    def _estimator(
        self, name: str, class_path: str, params: dict[str, Any], occurrence: int
    ) -> Any:
        """The estimator as tasks build it, so that they find nothing wrong with it later."""
        for key, path in (("class", class_path), *(("params", p) for p in inner_classes(params))):
            try:
                estimator_class(path, self._allow, self._folder)
            except ValueError as error:
                self._fail("method", key, str(error), occurrence)
        try:
            return build_estimator(class_path, params, self._allow, self._folder)
        except Exception as error:  # whatever a class does with its parameters
            reason = str(error).removesuffix(".")
            self._fail("method", "params", f"params of method {name!r}: {reason}", occurrence)

    def _caution_values(
        self,
        table: Mapping[str, Any],
        name: str,
        estimator: Any,
        caution: str | None,
        occurrence: int,
    ) -> tuple[float, ...] | None:
        """Values of caution, as s or by the name that they have in the class."""
        keys = [key for key in dict.fromkeys(("s", "reward", caution)) if key in table]
        if not keys:
            is_set = caution is None or caution in table.get("params", ())
            return () if estimator is not None and is_set else None
        key = str(keys[-1])
        if caution is None:
            self._fail(
                "method",
                key,
                f"{key} = {table[key]!r} of method {name!r}: {table['class']} cannot take "
                "values of caution: it needs predict_path(X, values) and caution_parameter",
                occurrence,
            )
        if key not in ("s", caution):
            self._fail(
                "method",
                key,
                f"{key}: the caution parameter of this method is {caution}",
                occurrence,
            )
        if len(keys) > 1:
            self._fail(
                "method",
                "s",
                f"{' and '.join(map(str, keys))} are the same for this method: give one",
                occurrence,
            )
        is_ours = caution in ("s", "reward")
        is_allowed, expected = (_is_s, "0 or positive") if is_ours else (math.isfinite, "finite")
        values = self._numbers(table, key, "method", (), is_allowed, expected, occurrence)
        for value in values if estimator is not None and caution in estimator.get_params() else ():
            try:
                check_parameters(estimator.set_params(**{caution: value}))
            except Exception as error:  # whatever a class does with its parameters
                reason = str(error).removesuffix(".")
                message = f"{key} = {value!r} of method {name!r}: {reason}"
                self._fail("method", key, message, occurrence)
        return values

    # -- single values ---------------------------------------------------------------------

    def _reject_unknown_keys(
        self, table: Mapping[str, Any], known: Sequence[str], section: str, occurrence: int = 0
    ) -> None:
        for key in table:
            if key not in known:
                self._fail(
                    section, key, f"there is no key {key!r}" + _nearest(key, known), occurrence
                )

    def _table(self, content: dict[str, Any], name: str, known: Sequence[str]) -> dict[str, Any]:
        table = content.get(name, {})
        if not isinstance(table, dict):
            self._fail("", name, f"{name} must be a table, [{name}]")
        self._reject_unknown_keys(table, known, name)
        return dict(table)

    def _typed(
        self,
        table: Mapping[str, Any],
        key: str,
        kind: type,
        section: str,
        default: Any,
        occurrence: int = 0,
    ) -> Any:
        value = table.get(key, default)
        if not isinstance(value, kind):
            self._fail(
                section, key, f"{key} must be of type {kind.__name__}, got {value!r}", occurrence
            )
        return value

    def _choice(
        self,
        table: Mapping[str, Any],
        key: str,
        choices: Any,
        section: str,
        default: str,
        occurrence: int = 0,
    ) -> str:
        value = table.get(key, default)
        if value not in list(choices):
            message = f"{key} must be one of {', '.join(choices)}, got {value!r}"
            self._fail(section, key, message + _nearest(value, choices), occurrence)
        return str(value)

    def _choices(
        self,
        table: Mapping[str, Any],
        key: str,
        choices: Any,
        section: str,
        default: tuple[str, ...] | None = None,
        occurrence: int = 0,
    ) -> tuple[str, ...]:
        value = table.get(key, None if default is None else list(default))
        if not isinstance(value, list) or not value:
            self._fail(section, key, f"{key} must be a list of one or more names", occurrence)
        for name in value:
            if name not in list(choices):
                self._fail(
                    section,
                    key,
                    f"{key}: {name!r} is not known" + _nearest(name, choices),
                    occurrence,
                )
        if len(set(value)) < len(value):
            self._fail(section, key, f"{key} names something twice", occurrence)
        return tuple(value)

    def _int(
        self,
        table: Mapping[str, Any],
        key: str,
        section: str,
        default: int,
        occurrence: int = 0,
        *,
        at_least: int,
    ) -> int:
        value = table.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
            message = f"{key} must be a whole number, at least {at_least}, got {value!r}"
            self._fail(section, key, message, occurrence)
        return int(value)

    def _numbers(
        self,
        table: Mapping[str, Any],
        key: str,
        section: str,
        default: tuple[float, ...],
        is_allowed: Callable[[Any], bool],
        description: str,
        occurrence: int = 0,
    ) -> tuple[float, ...]:
        values = table.get(key, list(default))
        if not isinstance(values, list) or not values:
            self._fail(section, key, f"{key} must be a list of one or more numbers", occurrence)
        for value in values:
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not is_number or not is_allowed(value):
                self._fail(
                    section,
                    key,
                    f"{key}: a number must be {description}, got {value!r}",
                    occurrence,
                )
        if len(set(values)) < len(values):
            self._fail(section, key, f"{key} holds a number twice", occurrence)
        return tuple(float(value) for value in values)

    # -- where ---------------------------------------------------------------------------

    def _fail(self, section: str, key: str, message: str, occurrence: int = 0) -> NoReturn:
        line = self._line_of(section, key, occurrence)
        where = f", line {line}" if line else ""
        inside = f" [{section}]" if section else ""
        raise StudyError(f"{self._path}{where}:{inside} {message}.") from None

    def _line_of(self, section: str, key: str, occurrence: int) -> int | None:
        """The line of a key in one of the tables of a section; of the table if it is not there."""
        current, seen, header = "", -1, None
        for number, line in enumerate(self._lines, start=1):
            if current == "" and section and _is_key(section, line):  # tables in one value
                header = number
            match = re.match(r"\s*\[+\s*([\w.-]+)\s*\]+", line)
            if match:
                current = match[1]
                seen += current == section
                if current == section and seen == occurrence:
                    header = number
            inside = current == section and (section == "" or seen == occurrence)
            if inside and _is_key(key, line):
                return number
        return header


def _is_key(key: str, line: str) -> bool:
    return re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", line) is not None


def inner_classes(params: Mapping[str, Any]) -> Iterator[Any]:
    """The ``class`` of every table inside ``params`` that describes an estimator."""
    for _, value in _entries(params):
        if isinstance(value, Mapping) and "class" in value:
            yield value["class"]


def _cache_folders(params: Mapping[str, Any]) -> Iterator[str]:
    """Parameters with which scikit-learn's estimators keep what they computed in a folder."""
    for name, value in _entries(params):
        if name.split("__")[-1] == "memory" and value is not None:
            yield name


def _entries(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Everything inside tables and lists, with the name of its parameter."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key), item
            yield from _entries(item, str(key))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield name, item
            yield from _entries(item, name)


def build_estimator(
    class_path: str, params: Mapping[str, Any], allow: Sequence[str] = (), folder: str = ""
) -> Any:
    """Return an estimator whose parameters were checked, as far as it can without data.

    Parameters that are tables with a ``class`` are estimators themselves, and "none" is None.
    """
    for name in _cache_folders(params):
        raise ValueError(
            f"{name} cannot be set in a study: it names a folder whose files are pickles, and "
            "pickles run code when they are read"
        )

    def build(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [build(item) for item in value]
        if isinstance(value, Mapping) and "class" in value:
            inner = {key: item for key, item in value.items() if key != "class"}
            return build_estimator(value["class"], inner, allow, folder)
        return None if value == "none" else value

    built = {name: build(value) for name, value in params.items()}
    return check_parameters(estimator_class(class_path, allow, folder)(**built))


def check_parameters(estimator: Any) -> Any:
    """Return the estimator; raise what it says of its parameters without seeing data."""
    if hasattr(estimator, "_parameter_constraints"):  # of scikit-learn
        estimator._validate_params()
    if hasattr(estimator, "check_parameters"):
        estimator.check_parameters()
    return estimator


def _caution_parameter(estimator: Any) -> str | None:
    """The caution parameter of an estimator (None: a chain); None if it has none."""
    if estimator is None:
        return "s"
    has_path = hasattr(estimator, "predict_path")
    return getattr(estimator, "caution_parameter", None) if has_path else None


def estimator_class(path: Any, allow: Sequence[str] = (), folder: str = "") -> Any:
    """The estimator class that ``module.Class`` names.

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
    if not _is_estimator_class(cls, strict=not is_allowed):
        raise ValueError(f"class {path!r} is not an estimator class of scikit-learn's kind")
    return cls


def _is_estimator_class(cls: Any, strict: bool) -> bool:
    """Whether it is an estimator class; of this package or scikit-learn if ``strict``."""
    if not isinstance(cls, type):
        return False
    if strict:
        return issubclass(cls, BaseEstimator) and _is_inside(cls.__module__, PACKAGES)
    return issubclass(cls, BaseEstimator) or all(
        callable(getattr(cls, name, None)) for name in ("fit", "get_params")
    )


def _is_inside(module: str, packages: Sequence[str]) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in packages)


def _is_module_name(name: Any) -> bool:
    return isinstance(name, str) and all(part.isidentifier() for part in name.split("."))


def _is_s(value: Any) -> bool:
    try:
        check_s(value)
    except (ValueError, OverflowError):
        return False
    return True


def _nearest(name: Any, choices: Any) -> str:
    near = difflib.get_close_matches(str(name), list(choices), n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(choices)}"
