"""From the results of a study to findings, tables, figures and one page that shows them all."""

from credalchain.reporting.findings import find
from credalchain.reporting.report import findings_in_words, write_report

__all__ = ["find", "findings_in_words", "write_report"]
