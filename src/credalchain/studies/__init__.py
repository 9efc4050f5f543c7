"""Studies: experiments defined in a TOML file, run in resumable tasks, and their reports."""

from credalchain.studies.findings import (
    at_completeness,
    compare_methods,
    folds_at_completeness,
    summarize,
)
from credalchain.studies.results import Store
from credalchain.studies.running import run_study
from credalchain.studies.study_file import Study, StudyError, load_study
from credalchain.studies.study_page import findings_in_words, write_report

__all__ = [
    "Store",
    "Study",
    "StudyError",
    "at_completeness",
    "compare_methods",
    "findings_in_words",
    "folds_at_completeness",
    "load_study",
    "run_study",
    "summarize",
    "write_report",
]
