"""From the results of a study to findings, tables, figures and one page that shows them all."""

from credalchain.reporting.findings import compare_methods
from credalchain.reporting.report import findings_in_words, write_report

__all__ = ["compare_methods", "findings_in_words", "write_report"]
