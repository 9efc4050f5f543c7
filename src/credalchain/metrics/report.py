"""A report per label for partial predictions, in the manner of classification_report."""

from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.text import visible
from credalchain.labels import ABSTAIN, MISSING, column_names
from credalchain.metrics.tally import is_prediction, read_pair
from credalchain.typing import LabelsLike, PredictionLike

_COLUMNS = ("support", "answered", "abstained", "precision", "selective_recall")


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
    """For each label: how often it is answered, and how well.

    Parameters
    ----------
    Y_true : array-like of shape (n, m)
        Missing true labels are left out.
    prediction : array-like of shape (n, m), or CredalPrediction
    label_names : sequence of str, optional
        Taken from the prediction or from the columns of ``Y_true`` if not given.
    output_dict : bool
        Give ``{label: {"support": ..., ...}}`` in place of text.
    digits : int
        Digits behind the point.

    Returns
    -------
    str or dict
        Per label: ``support``, the rows where its truth is observed; ``answered`` and
        ``abstained``, how many of these were answered and left open; ``precision`` and
        ``selective_recall`` among the answered (NaN where undefined). ``all labels`` pools the
        cells.

    Examples
    --------
    >>> print(partial_report([[1, 0], [0, 1], [1, 1]], [[1, -1], [1, 1], [-1, 1]]))
                support  answered  abstained  precision  selective_recall
        label0        3         2          1       0.50              1.00
        label1        3         2          1       1.00              1.00
    <BLANKLINE>
    all labels        6         4          2       0.75              1.00
    """
    truth, labels = read_pair(Y_true, prediction)
    default = prediction.label_names if is_prediction(prediction) else column_names(Y_true)
    names = _names(default if label_names is None else label_names, truth.shape[1])
    report: str | dict[str, dict[str, float]] = report_of_counts(
        count_cells(truth, labels), names, output_dict=output_dict, digits=digits
    )
    return report


def count_cells(truth: Any, labels: Any) -> NDArray[np.int64]:
    """What a report is made of, for each label, (m, 5): it adds up over rows.

    Cells whose truth is observed; of these the answered ones; of these said to be 1, being 1, both.
    """
    observed = truth != MISSING
    answered = observed & (labels != ABSTAIN)
    said_yes, is_yes = answered & (labels == 1), answered & (truth == 1)
    return np.stack(
        [cells.sum(axis=0) for cells in (observed, answered, said_yes, is_yes, said_yes & is_yes)],
        axis=1,
    )


def report_of_counts(
    counts: NDArray[np.int64], names: Sequence[str], *, output_dict: bool = False, digits: int = 2
) -> Any:
    """The report from what :func:`count_cells` gives."""
    report = {name: _row(*row) for name, row in zip(names, counts.tolist(), strict=True)}
    report["all labels"] = _row(*counts.sum(axis=0).tolist())
    return report if output_dict else _as_text(report, digits)


def _names(label_names: Sequence[str] | None, m: int) -> list[str]:
    if label_names is None:
        return [f"label{j}" for j in range(m)]
    names = [str(name) for name in label_names]
    if len(names) != m or len(set(names)) < m:
        raise ValueError(f"label_names must have {m} names, all different, got {names}.")
    return names


def _row(observed: int, answered: int, said_yes: int, is_yes: int, right: int) -> dict[str, float]:
    return {
        "support": observed,
        "answered": answered,
        "abstained": observed - answered,
        "precision": right / said_yes if said_yes else float("nan"),
        "selective_recall": right / is_yes if is_yes else float("nan"),
    }


def _as_text(report: dict[str, dict[str, float]], digits: int) -> str:
    width = max(len(visible(name)) for name in report)
    lines = [" ".join([" " * width, *(f" {column}" for column in _COLUMNS)])]
    for name, row in report.items():
        if name == "all labels":
            lines.append("")
        cells = [
            _cell(
                row[column], digits if column in ("precision", "selective_recall") else None
            ).rjust(len(column) + 1)
            for column in _COLUMNS
        ]
        lines.append(" ".join([visible(name).rjust(width), *cells]))
    return "\n".join(lines)


def _cell(value: float, digits: int | None) -> str:
    if digits is None:
        return str(value)
    return "-" if np.isnan(value) else f"{value:.{digits}f}"
