"""From the results of a study to tables, figures and one page that shows them all."""

from credalchain.reporting.report import write_report

__all__ = ["write_report"]
