"""A measure with its properties."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from credalchain.array_types import FloatArray
from credalchain.metrics.tally import Tally


@dataclass(frozen=True)
class Measure:
    """A measure and what it needs: the partial labels, the precise ones, or the bounds.

    ``of_tally`` gives it from the tally of a whole stack of labels: the partial ones, the precise
    ones, or those that bounds are resolved to (``resolved_labels``), as ``needs`` says. A measure
    that ``credalchain evaluate`` shows must have it, for data in chunks.
    """

    function: Callable[..., float]
    greater_is_better: bool
    needs: Literal["partial", "precise", "bounds"] = "partial"
    of_tally: Callable[[Tally], FloatArray] | None = None
