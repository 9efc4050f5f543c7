"""Warnings of this package."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_OUR_OWN = ("credalchain", "sklearn", "joblib", "contextlib")


class DataWarning(UserWarning):
    """Warning about data that limits what can be learned or answered.

    For instance about a label that is constant or missing in all training rows, a column of names,
    or a category in new rows that was never seen in training. Silence it by
    ``warnings.simplefilter("ignore", DataWarning)``.
    """


def warn_about_data(message: str) -> None:
    """Issue a warning that points to the line of the user's own code."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _OUR_OWN:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, DataWarning, stacklevel=level)


@contextmanager
def data_warnings_ignored() -> Iterator[None]:
    """Ignore data warnings, for fits to some of the rows only and rows held out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        yield
