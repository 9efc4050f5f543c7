"""Labels as people write them in tables: yes and no, true and false, ? for missing."""

from typing import Any

import numpy as np

from credalchain.labels import LABEL_WORDS


def read_label_words(labels: Any) -> Any:
    """Columns of a data frame that hold nothing but yes, no and the like, as 1 and 0.

    ``?``, -1 and empty cells are missing. Columns of numbers must hold 0, 1 and missing cells.
    """
    result = labels.copy()
    for name in labels.columns:
        column = labels[name]
        if column.dtype.kind in "biuf":
            invalid = np.flatnonzero(column.notna() & ~column.isin([0, 1, -1]))
        else:
            words = column.map(lambda cell: str(cell).strip().lower(), na_action="ignore")
            invalid = np.flatnonzero(words.notna() & ~words.isin(LABEL_WORDS))
        if len(invalid):
            cell = column.iloc[invalid[0]]
            shown = repr(cell) if isinstance(cell, str) else str(cell)
            raise ValueError(
                f"label column {name!r}: cells must be 0 or 1 (or yes, no, true, false), and empty "
                f"or ? where they are missing; got {shown} in row {invalid[0]}, counted from 0."
            )
        if column.dtype.kind not in "biuf":
            result[name] = words.map(LABEL_WORDS).astype("Float64")
    return result
