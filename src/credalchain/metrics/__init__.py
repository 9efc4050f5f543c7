"""Measures for partial predictions: functions of the truth and a prediction in {0, 1, *}.

Missing true labels (see ``as_labels``) are left out: a measure uses the observed cells of a
row, and a row without any is left out of the mean. Completeness and set size do not look at the
truth at all.
"""

from credalchain.metrics.measures import (
    CELL_MEASURES as CELL_MEASURES,
    ROW_MEASURES as ROW_MEASURES,
    abstention_loss as abstention_loss,
    completeness as completeness,
    completeness_curve as completeness_curve,
    discounted_utility as discounted_utility,
    f1_macro as f1_macro,
    f1_micro as f1_micro,
    hamming_loss as hamming_loss,
    incorrectness as incorrectness,
    maximin_accuracy as maximin_accuracy,
    mean_set_size as mean_set_size,
    missed_micro as missed_micro,
    precise_accuracy as precise_accuracy,
    precision_macro as precision_macro,
    precision_micro as precision_micro,
    ranking_loss as ranking_loss,
    recall_macro as recall_macro,
    recall_micro as recall_micro,
    resolved_labels as resolved_labels,
    selective_error as selective_error,
    selective_f1_macro as selective_f1_macro,
    selective_f1_micro as selective_f1_micro,
    selective_recall_macro as selective_recall_macro,
    selective_recall_micro as selective_recall_micro,
    set_accuracy as set_accuracy,
    utility_65 as utility_65,
    utility_80 as utility_80,
)
from credalchain.metrics.reliability import (
    IntervalReliability as IntervalReliability,
    interval_calibration_error as interval_calibration_error,
    interval_reliability as interval_reliability,
    overconfidence_note as overconfidence_note,
    sure_error as sure_error,
)
from credalchain.metrics.measures import (
    LabelCounts as LabelCounts,
    Measure as Measure,
    Tally as Tally,
    pooled as pooled,
    tally as tally,
)

_SHOWN = ("precision_micro", "recall_micro", "missed_micro", "f1_micro", "f1_macro")
DEFAULT_MEASURES = {
    **ROW_MEASURES,
    **{name: CELL_MEASURES[name] for name in _SHOWN},
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
