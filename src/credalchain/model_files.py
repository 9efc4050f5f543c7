"""Model files: fitted estimators stored by skops, validated before they predict.

skops restores objects by the names of their types and runs nothing else; types that neither it
nor this package trusts are loaded only if the caller names them. What it restores of this package
is then validated (``check_state``), because compiled code reads these arrays without bounds checks.
"""

import copy
import json
import os
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from credalchain._utils.files import atomic_write
from credalchain._version import __version__
from credalchain.chains.classifier import CredalBinaryRelevanceClassifier, CredalChainClassifier
from credalchain.chains.ensemble import CredalChainEnsemble, EnsembleModel
from credalchain.chains.forest import CredalForest, ForestChainModel, PackedForest, Trees
from credalchain.chains.interface import CredalClassifier
from credalchain.chains.naive.counts import ChainCounts
from credalchain.chains.naive.estimator import NaiveCredal
from credalchain.chains.naive.formulas import (
    DENOMINATORS,
    PRIORS,
    Denominator,
    NaiveSettings,
    Prior,
)
from credalchain.chains.naive.model import NaiveChainModel
from credalchain.chains.strategies import STRATEGIES, Strategy
from credalchain.chains.wrapper import (
    Bagged,
    Constant,
    Contaminated,
    CredalWrapper,
    WrappedChainModel,
)
from credalchain.columns import Feature, TablePreparer
from credalchain.joint.arrays import Leaves
from credalchain.joint.decision import JointDecision
from credalchain.joint.forest import CredalJointForest
from credalchain.joint.members import (
    FittedKernel,
    FittedTilt,
    KernelPowerset,
    ScoreProduct,
    Standardizer,
)
from credalchain.joint.model import JointModel
from credalchain.joint.scores import ClassifierScores, NamedModel, PrecomputedScores
from credalchain.joint.stacked import StackedJointForest
from credalchain.labels import Targets
from credalchain.preprocessing import (
    Categories,
    Discretizer,
    NumericBins,
    TableEncoder,
    ZeroAndBins,
)
from credalchain.promises.classifier import PromisedClassifier
from credalchain.promises.report import PromiseReport, PromiseResult

FORMAT = 4
_ABOUT = "credalchain.json"  # member of the archive, beside those of skops
_MAX_BYTES = 8 * 2**30
_MAX_REASON = 300
_CHECKED = (
    *(CredalClassifier, JointDecision, PromisedClassifier),
    *(Discretizer, TablePreparer),
)
_TYPES: set[Any] = {
    *(JointDecision, PromisedClassifier, PromiseReport, PromiseResult),
    *(CredalChainClassifier, CredalBinaryRelevanceClassifier, CredalChainEnsemble, Targets),
    *(CredalJointForest, JointModel, Trees, Leaves, KernelPowerset, FittedKernel, Standardizer),
    *(
        StackedJointForest,
        ClassifierScores,
        PrecomputedScores,
        NamedModel,
        FittedTilt,
        ScoreProduct,
    ),
    *(NaiveCredal, NaiveChainModel, NaiveSettings, ChainCounts, Prior, Denominator, Strategy),
    *(Discretizer, Categories, NumericBins, ZeroAndBins, TableEncoder, EnsembleModel),
    *(CredalForest, ForestChainModel, PackedForest, CredalWrapper, WrappedChainModel),
    *(Bagged, Constant, Contaminated, Feature, TablePreparer),
}
_FUNCTIONS = {
    *(prior.odds for prior in PRIORS.values()),
    *(denominator.totals for denominator in DENOMINATORS.values()),
    *(f for s in STRATEGIES.values() for f in (s.merge, s.merge_exact, s.from_tree) if f),
}

_OF_SKRUB = {  # they hold settings, words and weights, and call nothing that a file names
    "skrub._datetime_encoder.DatetimeEncoder",
    "skrub._string_encoder.StringEncoder",
    "skrub._to_str.ToStr",
}

TRUSTED_TYPES = sorted(
    {f"{kind.__module__}.{kind.__qualname__}" for kind in _TYPES | _FUNCTIONS} | _OF_SKRUB
)
"""Names of types in a fitted model, for ``skops.io.load(file, trusted=...)``."""


class ModelFileError(ValueError):
    """Error for a file that is not a model, or not one that can be loaded.

    See Also
    --------
    load_model : Raises this error.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from credalchain import ModelFileError, load_model
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "model.cchain")
    ...     _ = file.write_text("not a model")
    ...     try:
    ...         load_model(file)
    ...     except ModelFileError as error:
    ...         print(str(error).removeprefix(str(file)))
     is not a credalchain model, or it is damaged.
    """


def save_model(
    estimator: BaseEstimator,
    path: str | os.PathLike[str],
    *,
    store_frozen: bool = True,
    label_words: Mapping[str, int | None] | None = None,
) -> None:
    """Write a fitted estimator to a file, atomically.

    Parameters
    ----------
    estimator : fitted estimator
        A classifier of this package, or a pipeline or search that holds one. Functions of your
        own, such as a strategy, must be importable to be stored.
    path : str or Path
        The file to write.
    store_frozen : bool, default=True
        If True, also store models in a ``FrozenEstimator``. If False, store only their names;
        :func:`load_model` then needs the models.
    label_words : dict, default=None
        Meaning of words in cells of labels, 1, 0 or None for missing, such as {"ja": 1, "nein": 0},
        for commands that read labelled rows; ``read_about`` returns them.

    Raises
    ------
    ValueError
        If the estimator is not fitted, or holds an object that skops cannot store.

    See Also
    --------
    load_model : Load the estimator again.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from credalchain import CredalChainClassifier, save_model
    >>> X, Y = [["a"], ["a"], ["b"], ["b"]], [[1, 0], [1, 1], [0, 0], [0, 0]]
    >>> chain = CredalChainClassifier(s=0.5, order="given").fit(X, Y)
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "model.cchain")
    ...     save_model(chain, file)
    ...     file.stat().st_size > 0
    True
    """
    try:
        check_is_fitted(estimator)
    except (TypeError, ValueError) as error:
        raise ValueError(f"only a fitted estimator can be saved: {_reason(error)}") from error
    if not store_frozen:
        estimator = _with_frozen(estimator, lambda model: NamedModel(repr(model)))
    try:
        content = _skops().dumps(estimator, compression=zipfile.ZIP_DEFLATED, compresslevel=1)
        names = _skops().get_untrusted_types(data=content)
    except Exception as error:  # skops and the objects' own __reduce__ raise many kinds
        raise ValueError(f"this model cannot be saved: {_reason(error)}") from error
    local = [name for name in names if "<" in name]
    if local:
        raise ValueError(
            f"this model cannot be saved: {', '.join(local)} cannot be imported, so it could "
            "not be loaded. Define it in a module."
        )
    about = {"format": FORMAT, "version": __version__, "label_words": dict(label_words or {})}
    with atomic_write(Path(path)) as file:
        file.write(content)
        with zipfile.ZipFile(file, "a") as archive:
            archive.writestr(_ABOUT, json.dumps(about))


def load_model(
    path: str | os.PathLike[str], *, trusted: Sequence[str] = (), frozen: Any = None
) -> Any:
    """Load an estimator that :func:`save_model` wrote, without executing code from the file.

    Parameters
    ----------
    path : str or Path
        The file.
    trusted : sequence of str, default=()
        Names of further types that may be loaded, such as those of a model of another library.
        The error raised without them lists the names.
    frozen : fitted classifier, default=None
        The frozen model, where the file only names it (``store_frozen=False``).

    Returns
    -------
    estimator
        The fitted estimator.

    Raises
    ------
    ModelFileError
        If the file is not a model, is damaged, has the format of another version, holds types that
        are not trusted, or arrays that do not fit together.
    FileNotFoundError
        If there is no such file.

    See Also
    --------
    save_model : Write an estimator to a file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from credalchain import CredalChainClassifier, load_model, save_model
    >>> X, Y = [["a"], ["a"], ["b"], ["b"]], [[1, 0], [1, 1], [0, 0], [0, 0]]
    >>> chain = CredalChainClassifier(s=0.5, order="given").fit(X, Y)
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "model.cchain")
    ...     save_model(chain, file)
    ...     loaded = load_model(file)
    >>> loaded.predict_partial([["a"], ["b"]])
    array([[1, 1],
           [0, 0]], dtype=int8)
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    read_about(path)
    try:
        unknown = sorted(set(untrusted_types(path)) - set(trusted))
        if unknown:
            raise ModelFileError(
                f"{path} holds types that are not trusted: {', '.join(unknown)}. If you know where "
                "it comes from, name them: load_model(path, trusted=[...]) or credalchain --trust."
            )
        estimator = _skops().load(path, trusted=[*TRUSTED_TYPES, *trusted])
        check_state(estimator)
    except ModelFileError:
        raise
    except ImportError as error:
        raise ModelFileError(f"{path} needs a package to be loaded: {error}") from error
    except (Exception, RecursionError) as error:  # a damaged file can lead to any of them
        raise ModelFileError(f"{path} is not a valid model file: {_reason(error)}") from error
    if frozen is None:
        return estimator
    _check_frozen(estimator, frozen)
    return _with_frozen(estimator, lambda _: frozen)


def _check_frozen(estimator: Any, frozen: Any) -> None:
    """Validate that a model is fitted, of the class that the file names, and of its columns."""
    over = [part for part in _parts(estimator) if isinstance(part, StackedJointForest)]
    named = [
        (one, model.name) for one in over for model in _parts(one) if type(model) is NamedModel
    ]
    if not named:
        raise ValueError(
            f"frozen must be None, because the file contains all its models, got {frozen!r}."
        )
    check_is_fitted(frozen)
    for forest, name in named:
        numbers = [getattr(one, "n_features_in_", None) for one in (forest, frozen)]
        if name.partition("(")[0] != type(frozen).__name__:
            raise ValueError(f"frozen must be the model that the file names, {name}, got {frozen}.")
        if None not in numbers and numbers[0] != numbers[1]:
            raise ValueError(
                f"frozen must be a model of {numbers[0]} columns, as that in fit, got one of "
                f"{numbers[1]}."
            )


def _with_frozen(estimator: Any, replace: Callable[[Any], Any]) -> Any:
    """Return a copy of an estimator in which the models in its frozen estimators are replaced."""
    from sklearn.frozen import FrozenEstimator

    frozen = [part.estimator for part in _parts(estimator) if isinstance(part, FrozenEstimator)]
    return copy.deepcopy(estimator, {id(model): replace(model) for model in frozen})


def untrusted_types(path: str | os.PathLike[str]) -> list[str]:
    """Return the names of types in a model file that neither skops nor this package trusts.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    list of str
        Names for ``trusted`` of :func:`~credalchain.load_model`, if you know where the file comes
        from.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from credalchain import CredalChainClassifier, save_model
    >>> from credalchain.model_files import untrusted_types
    >>> X, Y = [["a"], ["a"], ["b"], ["b"]], [[1, 0], [1, 1], [0, 0], [0, 0]]
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "model.cchain")
    ...     save_model(CredalChainClassifier().fit(X, Y), file)
    ...     untrusted_types(file)
    []
    """
    return sorted(set(_skops().get_untrusted_types(file=path)) - set(TRUSTED_TYPES))


def read_about(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the format of a model file, the version that wrote it, and its words for labels.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    dict
        "format", a number, "version", that of credalchain, and "label_words", what
        ``save_model`` was given.

    Raises
    ------
    ModelFileError
        If the file is not a model, or has the format of another version.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from credalchain import CredalChainClassifier, __version__, save_model
    >>> from credalchain.model_files import read_about
    >>> X, Y = [["a"], ["a"], ["b"], ["b"]], [[1, 0], [1, 1], [0, 0], [0, 0]]
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "model.cchain")
    ...     save_model(CredalChainClassifier().fit(X, Y), file)
    ...     read_about(file)["version"] == __version__
    True
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(item.file_size for item in archive.infolist()) > _MAX_BYTES:
                raise ModelFileError(f"{path} unpacks to more than {_MAX_BYTES} bytes.")
            about = json.loads(archive.read(_ABOUT))
            is_other = int(about["format"]) != FORMAT
            words = {str(word): value for word, value in about.get("label_words", {}).items()}
            if not all(value in (0, 1, None) for value in words.values()):
                raise ModelFileError(f"{path}: label_words must mean 0, 1 or null, got {words}.")
    except ModelFileError:
        raise
    except Exception as error:
        raise ModelFileError(_not_a_model(Path(path))) from error
    if is_other:
        raise ModelFileError(
            f"{path} was written by credalchain {about.get('version')}, whose files have another "
            f"format than those of this one ({__version__})."
        )
    version = str(about.get("version"))
    return {"format": about["format"], "version": version, "label_words": words}


def check_state(estimator: Any) -> None:
    """Validate every fitted estimator of this package that an estimator consists of."""
    check_is_fitted(estimator)
    for part in _parts(estimator):
        is_fitted = any(name.endswith("_") for name in getattr(part, "__dict__", ()))
        if isinstance(part, _CHECKED) and is_fitted:
            part.check_state()


def _parts(root: Any) -> Iterable[Any]:
    """Yield an object and all objects it holds, inner ones first."""
    found, stack = {id(root): root}, [root]
    while stack:
        part = stack.pop()
        if isinstance(part, dict):
            children: Iterable[Any] = part.values()
        elif isinstance(part, (list, tuple, set)):
            children = part
        else:
            children = getattr(part, "__dict__", {}).values()
        for child in children:
            if id(child) not in found:
                found[id(child)] = child
                stack.append(child)
    return reversed(found.values())


def _not_a_model(path: Path) -> str:
    with path.open("rb") as file:
        if file.read(1) == b"\x80":
            return (
                f"{path} looks like a pickle. Pickles can run code when they are loaded, so they "
                "are not read; save the model with save_model or 'credalchain fit'."
            )
    return f"{path} is not a credalchain model, or it is damaged."


def _reason(error: BaseException) -> str:
    """Return one sentence; for an error other than ValueError with its type."""
    first = (str(error).splitlines() or [""])[0][:_MAX_REASON].rstrip(".")
    if isinstance(error, ValueError):
        return f"{first}."
    return f"a part is missing or not of the kind expected ({type(error).__name__}: {first})."


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError("model files need a package: pip install skops") from error
    return skops.io
