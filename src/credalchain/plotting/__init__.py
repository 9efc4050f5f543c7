"""Figures of partial predictions. Needs matplotlib (the extra ``plot``)."""

from credalchain.plotting.curves import (
    CompletenessCurveDisplay,
    IntervalCalibrationDisplay,
    plot_promise_curve,
)
from credalchain.plotting.predictions import plot_explanation, plot_predictions
from credalchain.plotting.trees import plot_chain_tree

__all__ = [
    "CompletenessCurveDisplay",
    "IntervalCalibrationDisplay",
    "plot_chain_tree",
    "plot_explanation",
    "plot_predictions",
    "plot_promise_curve",
]
