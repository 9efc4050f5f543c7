"""Studies: a plan in a TOML file, tasks with seeds of their own, results that survive a kill."""

from credalchain.experiments.run import run_study
from credalchain.experiments.store import Store
from credalchain.experiments.study import Study, StudyError, load_study
from credalchain.experiments.summary import (
    at_completeness,
    folds_at_completeness,
    spread_at_completeness,
    summarize,
)

__all__ = [
    "Store",
    "Study",
    "StudyError",
    "at_completeness",
    "folds_at_completeness",
    "load_study",
    "run_study",
    "spread_at_completeness",
    "summarize",
]
