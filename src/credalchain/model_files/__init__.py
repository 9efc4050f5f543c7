"""Models in files: arrays, names and parameters, and nothing that could run.

A file is a zip archive (numpy's npz) with one JSON text and plain arrays. This was preferred
to skops for our own files because every value has a place we know: it can be checked, and a
file can only ever become counts, trees, coefficients and parameters. Reading never unpickles,
and whatever is wrong with a file ends in a :class:`ModelFileError`. Only classifiers of others,
inside a CredalWrapper, are left to skops, which loads no type but those it trusts.
"""

import os
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from credalchain.bases.ensemble import EnsembleModel
from credalchain.bases.joint.codec import PARTS as JOINT_PARTS
from credalchain.bases.naive.formulas import DENOMINATORS, PRIORS
from credalchain.bases.registry import BASES, SHARED_PARTS
from credalchain.estimators.decision import JointDecision
from credalchain.estimators.targets import Targets
from credalchain.model_files.classifiers import CLASSIFIERS
from credalchain.model_files.promised import describe, restore
from credalchain.persistence.archive import content_digest, read_archive, write_archive
from credalchain.persistence.checks import ModelFileError
from credalchain.promises.agreement import AgreeingClassifiers
from credalchain.promises.classifier import PromisedClassifier
from credalchain.promises.report import PromiseReport, PromiseResult
from credalchain.strategies import STRATEGIES, Strategy

_LONGEST_REASON = 300
_FUNCTIONS = [
    *(
        getattr(strategy, name)
        for strategy in STRATEGIES.values()
        for name in ("merge", "merge_exact", "from_tree")
    ),
    *(prior.odds for prior in PRIORS.values()),
    *(denominator.totals for denominator in DENOMINATORS.values()),
]

TRUSTED_TYPES = sorted(
    f"{kind.__module__}.{kind.__qualname__}"
    for kind in {
        *CLASSIFIERS.values(),
        EnsembleModel,
        AgreeingClassifiers,
        JointDecision,
        PromiseReport,
        PromiseResult,
        PromisedClassifier,
        Strategy,
        Targets,
        *JOINT_PARTS,
        *SHARED_PARTS,
        *(part for base in BASES.values() for part in (base.estimator, base.model, *base.parts)),
        *filter(None, _FUNCTIONS),
    }
)
"""The types of this package in a fitted model, for ``skops.io.load(file, trusted=...)``."""


def save_model(classifier: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier to a file, whole or not at all.

    Parameters
    ----------
    classifier : fitted classifier of this package, a JointDecision or PromisedClassifier over one
        With a base of this package and a strategy that has a name.
    path : path
    """
    description, arrays = describe(classifier)
    try:
        restore(description, arrays)  # what could not be read again is not written
    except ImportError:
        raise
    except Exception as error:
        raise ValueError(f"this model cannot be saved: {_reason(error)}") from error
    write_archive(Path(path), description, arrays)


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read a classifier that :func:`save_model` wrote. Nothing from the file is executed.

    Raises
    ------
    ModelFileError
        If the file is anything else, damaged, of a newer schema, or holds what could not predict.
    """
    description, arrays = read_archive(Path(path))
    try:
        return restore(description, arrays)
    except ImportError:
        raise
    except Exception as error:  # whatever a damaged file leads to, it is the file's fault
        raise ModelFileError(f"{path} is not a valid model file: {_reason(error)}") from error


def read_description(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a model file says about itself: versions, names, parameters."""
    return read_archive(Path(path))[0]


def _reason(error: Exception) -> str:
    """One sentence; errors other than ValueError speak of our code rather than of the file."""
    first = (str(error).splitlines() or [""])[0][:_LONGEST_REASON].rstrip(".")
    if isinstance(error, ValueError):
        return f"{first}."
    return f"a part is missing or not of the kind expected ({type(error).__name__}: {first})."


__all__ = [
    "TRUSTED_TYPES",
    "ModelFileError",
    "content_digest",
    "load_model",
    "read_description",
    "save_model",
]
