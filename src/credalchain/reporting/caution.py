"""What caution parameters and damage to labels are called."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from credalchain.experiments.study import Method, Study


@dataclass(frozen=True)
class CautionParameter:
    """A caution parameter; ``larger`` says whether larger is more cautious, None if not known."""

    name: str
    larger: bool | None

    @property
    def in_words(self) -> str:
        """Its name, and which way is more cautious."""
        if self.larger is None:
            return self.name
        return f"{self.name} ({'larger' if self.larger else 'smaller'} is more cautious)"


Cautions = Mapping[str, CautionParameter | None]

_S = CautionParameter("s", True)


def caution_parameters(study: Study, results: pd.DataFrame) -> Cautions:
    """The caution parameter of every method; None if it has none.

    Results say it; for those of older versions the study does, as far as it can.
    """
    recorded = {}
    if "caution_parameter" in results:
        known = results.dropna(subset=["caution_parameter"]).drop_duplicates("method")
        columns = ("method", "caution_parameter", "larger_is_more_cautious")
        for method, name, larger in zip(*(known[column] for column in columns), strict=True):
            recorded[method] = CautionParameter(str(name), bool(larger)) if name else None
    return {
        method.name: recorded[method.name] if method.name in recorded else _guess(method, results)
        for method in study.methods
    }


def _guess(method: Method, results: pd.DataFrame) -> CautionParameter | None:
    package, _, kind = method.class_path.partition(".")
    kind = kind.rpartition(".")[2]
    if not method.class_path:
        return _S
    if package == "credalchain" and kind != "PromisedClassifier":
        return CautionParameter("reward", False) if kind == "JointDecision" else _S
    values = results.loc[results["method"] == method.name, "s"]
    return CautionParameter("caution", None) if (values != 0).any() else None


def damage_word(study: Study) -> str:
    """What was done to labels: "removed" or "changed"; empty if nothing was."""
    if not any(study.levels):
        return ""
    return "removed" if study.corruption in ("uniform", "per-label") else "changed"
