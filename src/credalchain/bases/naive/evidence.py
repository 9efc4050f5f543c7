"""From counts of observations to what they say about labels, for any values of s."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain import _kernels
from credalchain._kernels.fixed_point import ZERO_ABOVE, ZERO_BELOW
from credalchain._kernels.states import NEVER_SEEN, SAYS_NOTHING
from credalchain.bases.naive.codes import rows_of
from credalchain.bases.naive.grid import FloatArray, IntArray, Scale
from credalchain.bases.threads import for_each_chunk

_Numbers = NDArray[np.int32]

_PIECES_AT_ONCE = 2**18  # of evidence, at the most
_PIECES_WORTH_A_THREAD = 2**16
_LITTLE_ROOM = 2**9


@dataclass(frozen=True)
class Observations:
    """What the rows of a table are about: see ``find_evidence``."""

    variables: IntArray
    sources: IntArray

    @classmethod
    def of_features(cls, n_categories: IntArray, exceptional: bool) -> "Observations":
        """Every category of every feature, and with ``exceptional`` never seen and missing."""
        n_rows, offsets = rows_of(n_categories, exceptional)
        variables = np.repeat(np.arange(len(n_categories)), n_rows)
        k = n_categories[variables]
        code = np.arange(len(variables)) - offsets[variables]
        first = np.cumsum(n_categories) - n_categories
        sources = np.where(code < k, first[variables] + code, NEVER_SEEN)
        sources[(k < 2) | (code > k)] = SAYS_NOTHING
        return cls(variables, sources)

    @classmethod
    def of_zero_codes(cls, n_categories: IntArray) -> "Observations":
        """Code 0 of every feature."""
        first = np.cumsum(n_categories) - n_categories
        sources = np.where(n_categories < 2, SAYS_NOTHING, first)
        return cls(np.arange(len(n_categories)), sources)

    @classmethod
    def of_labels(cls, never_observed: NDArray[np.bool_]) -> "Observations":
        """Every label as 0 and as 1; one that nobody ever observed says nothing."""
        variables = np.repeat(np.arange(len(never_observed)), 2)
        sources = np.where(never_observed[variables], SAYS_NOTHING, np.arange(len(variables)))
        return cls(variables, sources)

    def some(self, rows: IntArray) -> "Observations":
        return Observations(self.variables[rows], self.sources[rows])

    def followed_by(self, others: "Observations") -> "Observations":
        return Observations(
            np.concatenate([self.variables, others.variables]),
            np.concatenate([self.sources, others.sources]),
        )

    def __len__(self) -> int:
        return len(self.sources)


@dataclass(frozen=True)
class Counted:
    """How often each observation was made: see ``find_evidence``."""

    counts: NDArray[Any]
    totals: NDArray[Any]
    denominators: NDArray[Any]
    n_categories: IntArray


@dataclass(frozen=True)
class At:
    """Values of s, and the epsilon that goes with them."""

    values: FloatArray
    epsilon: float


@dataclass(frozen=True)
class Weighed:
    """What observations say about the labels from ``first`` on, at some values of s.

    ``numbers`` (labels, 2, observations) are pieces of evidence; ``logs`` (pieces, 2 * values) the
    logarithms of their bounds on the grid, with 0 for a bound of 0, and ``zeros`` 1 there (None
    without epsilon's leave: with it there are no bounds of 0).
    """

    first: int
    numbers: _Numbers
    logs: IntArray
    zeros: IntArray | None

    @property
    def has_zeros(self) -> bool:
        return self.zeros is not None and bool(self.zeros.any())

    def zero_factors(self) -> tuple[IntArray, IntArray]:
        """What to fill a table with in place of logarithms: for class 1, and to be subtracted."""
        assert self.zeros is not None
        return self.zeros * ZERO_ABOVE, self.zeros * -ZERO_BELOW


class Evidence:
    """What observations say about every label.

    ``zero`` are observations that most others are like and are told apart from: they come first
    among ``variables`` and ``numbers``. ``limits`` are for each label the number of (first)
    observations that concern it, None for all. With ``reuse`` the pieces of evidence that were
    found stay in memory.
    """

    def __init__(
        self,
        counted: Counted,
        about: Observations,
        order: IntArray,
        *,
        scale: Scale,
        zero: Observations | None = None,
        limits: IntArray | None = None,
        reuse: bool = False,
        n_jobs: int = 1,
    ) -> None:
        self._counted, self._order, self._scale = counted, order, scale
        self.n_rows, self.n_zeros = len(about), 0 if zero is None else len(zero)
        self._all = about if zero is None else zero.followed_by(about)
        self._limits = np.full(len(order), len(self._all)) if limits is None else limits
        self._reuse, self._n_jobs = reuse, n_jobs
        self._found: dict[int, tuple[_Numbers, IntArray]] = {}

    @property
    def variables(self) -> IntArray:
        return self._all.variables

    def groups(self, at: At, unit: int) -> Iterator[Weighed]:
        """All labels, some at a time, in multiples of ``unit``."""
        size = self._group_size(unit)
        for first in range(0, len(self._order), size):
            yield self._weigh(first, first + size, at)

    def for_each_group(self, at: At, unit: int, run: Callable[[Weighed], None]) -> None:
        """Call ``run`` with them, on threads if that is worth it."""
        size = self._group_size(unit)
        n_units = -(-len(self._order) // unit)
        worth_threads = len(self._order) * self._pieces_a_label() >= _PIECES_WORTH_A_THREAD

        def run_group(first: int, stop: int) -> None:
            run(self._weigh(first * unit, stop * unit, at))

        for_each_chunk(n_units, size // unit, self._n_jobs if worth_threads else 1, run_group)

    def _pieces_a_label(self) -> int:
        return 2 * max(1, len(self._all))

    def _group_size(self, unit: int) -> int:
        return unit * max(1, _PIECES_AT_ONCE // (unit * self._pieces_a_label()))

    def _weigh(self, first: int, stop: int, at: At) -> Weighed:
        numbers, pieces = self._found.get(first) or self._find(first, stop)
        if self._reuse:
            self._found[first] = numbers, pieces
        bounds = np.empty((len(pieces), 2 * len(at.values)))
        _kernels.bound_evidence(pieces, at.values, at.epsilon, bounds)
        zeros = None
        if at.epsilon == 0:
            zeros = (bounds == 0).astype(np.int64)
            bounds += zeros  # log 1 is 0: these are kept apart
        np.log(bounds, out=bounds)
        bounds *= self._scale.unit
        return Weighed(first, numbers, np.rint(bounds, out=bounds).astype(np.int64), zeros)

    def _find(self, first: int, stop: int) -> tuple[_Numbers, IntArray]:
        """Numbers of what the observations say about some labels, and what they stand for."""
        labels, n_found = self._order[first:stop], -1
        numbers = np.empty((len(labels), 2, len(self._all)), dtype=np.int32)
        room = max(_LITTLE_ROOM, numbers.size // 16)
        while n_found < 0:
            room *= 4
            pieces = np.empty((room, 3), dtype=np.int64)
            n_found = self._find_in(pieces, labels, self._limits[first:stop], numbers)
        return numbers, pieces[:n_found]

    def _find_in(
        self, pieces: IntArray, labels: IntArray, limits: IntArray, numbers: _Numbers
    ) -> int:
        counted, about = self._counted, self._all
        largest = int(counted.totals.max(initial=0))
        return _kernels.find_evidence(
            counted.counts,
            counted.totals,
            counted.denominators,
            counted.n_categories,
            about.variables,
            about.sources,
            labels,
            limits,
            numbers,
            pieces,
            np.full((2, largest + 2), -1, dtype=np.int32),
            np.full(2 ** (2 * len(pieces)).bit_length(), -1, dtype=np.int32),
        )
