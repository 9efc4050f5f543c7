"""Measures for partial predictions: functions of the truth and a prediction in {0, 1, *}.

Missing true labels (see ``as_labels``) are left out: a measure uses the observed cells of a
row, and a row without any leaves the mean. Completeness and set size do not look at the
truth at all.
"""

from credalchain.metrics.measures import (
    CELL_MEASURES,
    ROW_MEASURES,
    abstention_loss,
    completeness,
    completeness_curve,
    discounted_utility,
    f1_macro,
    f1_micro,
    hamming_loss,
    incorrectness,
    maximin_accuracy,
    mean_set_size,
    precise_accuracy,
    precision_macro,
    precision_micro,
    ranking_loss,
    recall_macro,
    recall_micro,
    resolved_labels,
    selective_error,
    selective_f1_macro,
    selective_f1_micro,
    selective_recall_macro,
    selective_recall_micro,
    set_accuracy,
    utility_65,
    utility_80,
)
from credalchain.metrics.reliability import (
    IntervalReliability,
    interval_calibration_error,
    interval_reliability,
    overconfidence_note,
    sure_error,
)
from credalchain.metrics.tally import LabelCounts, Measure, Tally, pooled, tally

DEFAULT_MEASURES = {
    **ROW_MEASURES,
    **{name: CELL_MEASURES[name] for name in ("f1_micro", "f1_macro")},
}
"""The measures that ``credalchain evaluate`` shows."""

MEASURES = {
    **DEFAULT_MEASURES,
    **CELL_MEASURES,
    "ranking_loss": Measure(ranking_loss, False, "bounds"),
    "sure_error": Measure(sure_error, False, "bounds"),
    "interval_calibration_error": Measure(interval_calibration_error, False, "bounds"),
}
"""All measures by name, for scorers and studies."""

__all__ = [
    "DEFAULT_MEASURES",
    "MEASURES",
    "IntervalReliability",
    "LabelCounts",
    "Measure",
    "Tally",
    "abstention_loss",
    "completeness",
    "completeness_curve",
    "discounted_utility",
    "f1_macro",
    "f1_micro",
    "hamming_loss",
    "incorrectness",
    "interval_calibration_error",
    "interval_reliability",
    "maximin_accuracy",
    "mean_set_size",
    "overconfidence_note",
    "pooled",
    "precise_accuracy",
    "precision_macro",
    "precision_micro",
    "ranking_loss",
    "recall_macro",
    "recall_micro",
    "resolved_labels",
    "selective_error",
    "selective_f1_macro",
    "selective_f1_micro",
    "selective_recall_macro",
    "selective_recall_micro",
    "set_accuracy",
    "sure_error",
    "tally",
    "utility_65",
    "utility_80",
]
