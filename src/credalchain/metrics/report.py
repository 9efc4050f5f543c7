"""A report per label for partial predictions, in the manner of classification_report."""

from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np

from credalchain._utils.text import visible
from credalchain.labels import column_names
from credalchain.metrics.measures import LabelCounts, count_by_label, is_prediction, read_pair
from credalchain.typing import LabelsLike, PredictionLike


@overload
def partial_report(
    Y_true: LabelsLike,
    prediction: PredictionLike,
    *,
    label_names: Sequence[str] | None = ...,
    output_dict: Literal[False] = ...,
    digits: int = ...,
) -> str: ...
@overload
def partial_report(
    Y_true: LabelsLike,
    prediction: PredictionLike,
    *,
    label_names: Sequence[str] | None = ...,
    output_dict: Literal[True],
    digits: int = ...,
) -> dict[str, dict[str, float]]: ...
def partial_report(
    Y_true: LabelsLike,
    prediction: PredictionLike,
    *,
    label_names: Sequence[str] | None = None,
    output_dict: bool = False,
    digits: int = 2,
) -> str | dict[str, dict[str, float]]:
    """Build a text report of how often, and how well, each label is answered.

    Parameters
    ----------
    Y_true : array-like of shape (n_samples, n_labels)
        True labels; missing ones are left out.
    prediction : array-like of shape (n_samples, n_labels), or CredalPrediction
        Partial predictions: 0, 1, and -1 for an open label.
    label_names : sequence of str, default=None
        Names of the labels. None takes those of the prediction or of the columns of ``Y_true``.
    output_dict : bool, default=False
        If True, return ``{label: {"support": ..., ...}}`` instead of text.
    digits : int, default=2
        Number of digits after the decimal point.

    Returns
    -------
    str or dict
        Per label: ``support``, the rows where its truth is observed; ``answered`` and
        ``abstained``, how many of these were answered and left open; ``precision`` and
        ``selective_recall`` among the answered (NaN where undefined). ``all labels`` pools the
        cells.

    Raises
    ------
    ValueError
        If the shapes differ, or ``label_names`` are not one distinct name per label.

    Examples
    --------
    >>> from credalchain import partial_report
    >>> print(partial_report([[1, 0], [0, 1], [1, 1]], [[1, -1], [1, 1], [-1, 1]]))
                support  answered  abstained  precision  selective_recall
        label0        3         2          1       0.50              1.00
        label1        3         2          1       1.00              1.00
    <BLANKLINE>
    all labels        6         4          2       0.75              1.00
    """
    truth, labels = read_pair(Y_true, prediction)
    default = prediction.label_names if is_prediction(prediction) else column_names(Y_true)
    given, m = default if label_names is None else label_names, truth.shape[1]
    names = [f"label{j}" for j in range(m)] if given is None else [*map(str, given)]
    if len(names) != m or len(set(names)) < m:
        raise ValueError(f"label_names must have {m} names, all different, got {names}.")
    report: str | dict[str, dict[str, float]] = report_of_counts(
        count_by_label(truth, labels), names, output_dict=output_dict, digits=digits
    )
    return report


def report_of_counts(
    counts: LabelCounts, names: Sequence[str], *, output_dict: bool = False, digits: int = 2
) -> Any:
    """Return the report of counts, which add up over rows."""
    cells = np.stack(list(vars(counts).values()))
    report = {name: _row(*row) for name, row in zip(names, cells.T.tolist(), strict=True)}
    report["all labels"] = _row(*cells.sum(axis=1).tolist())
    if output_dict:
        return report
    width = max(len(visible(name)) for name in report)
    lines = [" ".join([" " * width, *(f" {column}" for column in report["all labels"])])]
    for name, row in report.items():
        if name == "all labels":
            lines.append("")
        texts = {
            column: f"{cell:.{digits}f}" if isinstance(cell, float) else str(cell)
            for column, cell in row.items()
        }
        shown = [cell.replace("nan", "-").rjust(len(column) + 1) for column, cell in texts.items()]
        lines.append(" ".join([visible(name).rjust(width), *shown]))
    return "\n".join(lines)


def _row(
    observed: int, answered: int, _: int, said_yes: int, is_yes: int, right: int
) -> dict[str, float]:
    return {
        "support": observed,
        "answered": answered,
        "abstained": observed - answered,
        "precision": right / said_yes if said_yes else float("nan"),
        "selective_recall": right / is_yes if is_yes else float("nan"),
    }
