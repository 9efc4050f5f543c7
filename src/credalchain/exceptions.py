"""Warnings of this package."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


class DataWarning(UserWarning):
    """Something about the data because of which less can be learned or answered.

    Such as a label that is the same in all training rows, or a category in new rows that was
    never seen in training. To silence them: ``warnings.simplefilter("ignore", DataWarning)``.
    """


@contextmanager
def data_warnings_ignored() -> Iterator[None]:
    """For models that are fitted to some of the rows only, and rows that are held out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        yield
