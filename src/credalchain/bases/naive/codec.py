"""Naive credal models in files: counts, bins and settings."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain.bases.naive import ChainCounts, NaiveChainModel, NaiveCredal
from credalchain.bases.naive.engine.layout import FixedPoint
from credalchain.bases.naive.formulas import (
    DENOMINATORS,
    PRIORS,
    Denominator,
    NaiveSettings,
    Prior,
)
from credalchain.persistence.checks import (
    Arrays,
    Description,
    ModelFileError,
    checked_array,
    checked_int,
)
from credalchain.preprocessing import Binning, Categories, Discretizer, NumericBins, ZeroAndBins

PARTS = (
    Categories,
    ChainCounts,
    Denominator,
    Discretizer,
    NaiveSettings,
    NumericBins,
    Prior,
    FixedPoint,
    ZeroAndBins,
)
_COUNTS = ("n_categories", "label", "feature", "pair")
ARRAYS = ("cuts", *(f"counts_{name}" for name in _COUNTS))


def describe(base: Any, model: NaiveChainModel) -> tuple[Description, dict[str, NDArray[Any]]]:
    """The base's parameters, bins and counts."""
    bins, arrays = _describe_discretizer(model.discretizer)
    for name in _COUNTS:
        arrays[f"counts_{name}"] = getattr(model.counts, name).astype(np.int64)
    description = {
        "base": {"kind": "naive", **_describe_settings(model.settings)},
        "discretizer": bins,
        "n_rows": model.counts.n_rows,
    }
    return description, arrays


def restore(description: Description, arrays: Arrays) -> tuple[NaiveCredal, NaiveChainModel, int]:
    """The base, its model and the number of features."""
    discretizer, bins = _restore_discretizer(description["discretizer"], arrays)
    options = {key: value for key, value in description["base"].items() if key != "kind"}
    base = NaiveCredal(**options, discretizer=bins)
    counts = ChainCounts(
        checked_int(description["n_rows"], "n_rows"),
        *(checked_array(arrays, f"counts_{name}", "iu") for name in _COUNTS),
    )
    return base, base.from_counts(counts, discretizer), counts.n_features


def _describe_settings(settings: NaiveSettings) -> Description:
    """Parameters by name; a custom prior or denominator has no name that could be loaded."""
    for name, value, known in (
        ("prior", settings.prior, PRIORS),
        ("denominator", settings.denominator, DENOMINATORS),
    ):
        if known.get(value.name) is not value:
            raise ValueError(f"a {name} of one's own cannot be saved: {value.name!r}.")
    return {
        "epsilon": settings.epsilon,
        "prior": settings.prior.name,
        "denominator": settings.denominator.name,
        "missing_features": settings.missing_features,
    }


def _describe_discretizer(discretizer: Any) -> tuple[Any, dict[str, NDArray[Any]]]:
    fitted = getattr(discretizer, "estimator", discretizer)  # inside a FrozenEstimator
    if fitted is None:
        return None, {}
    if type(fitted) is not Discretizer:
        raise ValueError(f"only models with a Discretizer can be saved, got {discretizer!r}.")
    columns, cuts = [], []
    for binning in fitted.binnings_:
        if isinstance(binning, Categories):
            is_text = binning.keys.dtype.kind != "f"
            columns.append(
                {"kind": "words" if is_text else "values", "keys": binning.keys.tolist()}
            )
        else:
            kind = "numeric" if isinstance(binning, NumericBins) else "zero"
            columns.append({"kind": kind, "cuts": len(binning.cuts)})
            cuts.append(binning.cuts)
    arrays = {"cuts": np.concatenate([np.empty(0), *cuts])}
    return {"n_bins": int(fitted.n_bins), "columns": columns}, arrays


def _restore_discretizer(description: Any, arrays: Arrays) -> tuple[Discretizer | None, Any]:
    """The fitted discretizer, and the unfitted one as the base's parameter."""
    if description is None:
        return None, None
    cuts = checked_array(arrays, "cuts", "f")
    if cuts.ndim != 1 or not np.isfinite(cuts).all():
        raise ModelFileError("cut points must be finite numbers")
    unfitted = Discretizer(n_bins=checked_int(description["n_bins"], "n_bins", at_least=2))
    fitted = Discretizer(n_bins=unfitted.n_bins)
    fitted.binnings_, used = [], 0
    for column in description["columns"]:
        binning, used = _restore_binning(column, cuts, used)
        fitted.binnings_.append(binning)
    if used != len(cuts):
        raise ModelFileError(f"{len(cuts)} cut points are stored and {used} were declared")
    fitted.n_categories_ = np.array([b.n_categories for b in fitted.binnings_], dtype=np.int64)
    fitted.n_features_in_ = len(fitted.binnings_)
    return fitted, unfitted


def _restore_binning(column: Description, cuts: NDArray[Any], used: int) -> tuple[Binning, int]:
    kind = column["kind"]
    if kind in ("numeric", "zero"):
        stop = used + checked_int(column["cuts"], "cuts")
        part = np.asarray(cuts[used:stop], dtype=np.float64)
        if stop > len(cuts) or (np.diff(part) <= 0).any():
            raise ModelFileError("the cut points of a column must be there and increase")
        return (NumericBins(part) if kind == "numeric" else ZeroAndBins(part)), stop
    keys = column["keys"]
    wanted = {"words": str, "values": float}[kind]
    if not all(type(key) is wanted for key in keys) or len(set(keys)) != len(keys):
        raise ModelFileError(f"the categories of a column must be different {kind}")
    if wanted is float and not np.isfinite(keys).all():
        raise ModelFileError("the values of a column must be finite numbers")
    return Categories(np.array(keys, dtype=None if keys and wanted is str else np.float64)), used
