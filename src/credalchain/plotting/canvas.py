"""Colours and new axes for all pictures. matplotlib is imported when something is drawn."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

from credalchain.labels import ABSTAIN

# Okabe and Ito's palette, told apart by people with any kind of colour vision.
YES_COLOUR, NO_COLOUR, OPEN_COLOUR = "#0072B2", "#D55E00", "#6E6E6E"
LOOKS = {1: ("yes", YES_COLOUR), 0: ("no", NO_COLOUR), ABSTAIN: ("*", OPEN_COLOUR)}
MAX_CHARACTERS = 24  # of a label's name
MAX_INCHES = 50.0  # of a figure that holds all that was asked for; beyond that things get smaller


def new_axes(width: float, height: float) -> "Axes":
    """A figure with one pair of axes, of a size in inches."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:  # pragma: no cover - matplotlib is there in our tests
        raise ImportError('Pictures need matplotlib: pip install "credalchain[plot]"') from error
    return plt.figure(figsize=(width, height), layout="constrained").add_subplot()
