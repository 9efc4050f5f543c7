"""From counts of observations to what they say about labels, for any values of s."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalchain import _kernels
from credalchain._kernels.fixed_point import ZERO_ABOVE, ZERO_BELOW
from credalchain._kernels.idm import idm_bounds
from credalchain._kernels.states import LANES, NEVER_SEEN, SAYS_NOTHING
from credalchain.bases.naive.codes import rows_of
from credalchain.bases.naive.grid import FloatArray, IntArray, Scale
from credalchain.bases.threads import for_each_chunk

_PIECES_AT_ONCE = 2**18  # of evidence, at the most
_PIECES_WORTH_A_THREAD = 2**16
_LITTLE_ROOM = 2**9
_MOST_SLOTS = 2**16  # counts that are looked up directly; larger ones share a slot
_UNIT = LANES // 2  # labels: the tiles of every layout have so many, or a divisor of it


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
    """Values of s, each with its epsilon; the first ``n_bare`` go without one."""

    values: FloatArray
    epsilons: FloatArray

    @cached_property
    def n_bare(self) -> int:
        return int((self.epsilons == 0).sum())

    def bare(self) -> "At":
        return At(self.values[: self.n_bare], self.epsilons[: self.n_bare])


def _logarithms(bounds: FloatArray, scale: Scale) -> IntArray:
    """On the grid. What ``bounds`` held is lost."""
    np.log(bounds, out=bounds)
    bounds *= scale.unit
    return np.rint(bounds, out=bounds).astype(np.int64)


def _zero_factors(lower: NDArray[np.bool_], upper: NDArray[np.bool_]) -> IntArray:
    """(..., 2), from where the bounds of the two classes (..., 2) are 0."""
    ends = (lower[..., 1], upper[..., 0]), (upper[..., 1], lower[..., 0])
    return np.stack([above * ZERO_ABOVE + below * ZERO_BELOW for above, below in ends], axis=-1)


class Weights(NamedTuple):
    """What a piece of evidence says, (pieces, 2 * values of s): for class 1, and against class 0.

    Tables hold differences: ``yes`` of the evidence for class 1 less ``no`` of that for class 0.
    """

    yes: IntArray
    no: IntArray


class Terms(NamedTuple):
    """What observations add to log-odds, (observations, labels, 2 * values of s).

    ``zeros`` are zero factors, None if there is none.
    """

    values: IntArray
    zeros: IntArray | None


@dataclass(frozen=True)
class Found:
    """Evidence about the labels from ``first`` on.

    ``numbers`` (labels, 2, observations) are pieces of evidence, ``pieces`` what they stand for:
    see ``find_evidence``.
    """

    first: int
    numbers: NDArray[np.int32]
    pieces: IntArray

    def logarithms(self, at: At, scale: Scale) -> Weights:
        """Of the bounds, on the grid; 0 for a bound of 0, which is a zero factor."""
        bounds = self._bounds(at)
        bare = bounds[:, : at.n_bare]
        bare[bare == 0] = 1.0
        logs = _logarithms(bounds, scale).reshape(len(self.pieces), -1)
        logs[0] = 0  # what says nothing
        return Weights(logs, logs)

    def zero_factors(self, at: At) -> Weights | None:
        """Bounds of 0, which only values without epsilon have; None if there is none."""
        zeros = self._bounds(at.bare()).reshape(len(self.pieces), -1) == 0
        zeros[0] = False
        return Weights(zeros * ZERO_ABOVE, zeros * -ZERO_BELOW) if zeros.any() else None

    def _bounds(self, at: At) -> FloatArray:
        bounds = np.empty((len(self.pieces), len(at.values), 2))
        _kernels.bound_evidence(self.pieces, at.values, at.epsilons, bounds)
        return bounds


class Evidence:
    """What observations say about every label.

    ``zero`` are observations that most others are like and are told apart from: they come first
    among ``variables`` and the numbers. ``limits`` are for each label the number of (first)
    observations that concern it, None for all. With ``reuse`` the pieces of evidence that were
    found stay in memory.
    """

    def __init__(
        self,
        counted: Counted,
        about: Observations,
        order: IntArray,
        *,
        zero: Observations | None = None,
        limits: IntArray | None = None,
        reuse: bool = False,
        n_jobs: int = 1,
    ) -> None:
        self._counted, self._order = counted, order
        self.n_rows, self.n_zeros = len(about), 0 if zero is None else len(zero)
        self._all = about if zero is None else zero.followed_by(about)
        self._limits = np.full(len(order), len(self._all)) if limits is None else limits
        self._reuse, self._n_jobs = reuse, n_jobs
        self._found: dict[tuple[int, int], Found] = {}

    @property
    def variables(self) -> IntArray:
        return self._all.variables

    @property
    def n_pieces(self) -> int:
        """With repetitions."""
        return len(self._order) * self._pieces_a_label()

    def terms(self, first: int, stop: int, at: At, scale: Scale) -> Terms:
        """What all observations say about labels first.. of the order, one by one.

        For a small table that is fast enough, and there is nothing to compile.
        """
        n, denominator, k, no_data = self._cells(self._order[first:stop])
        values = np.empty((*n.shape[:2], len(at.values), 2), dtype=np.int64)
        zeros = np.zeros((*n.shape[:2], at.n_bare, 2), dtype=np.int64)
        for q, (s, epsilon) in enumerate(zip(at.values, at.epsilons, strict=True)):
            with np.errstate(divide="ignore", invalid="ignore"):  # 0/0, replaced at once
                lower, upper = idm_bounds(n, denominator, k, s, epsilon)
            if s == 0:
                lower, upper = (np.where(no_data, 1.0 / k, bound) for bound in (lower, upper))
            if epsilon == 0:
                none = lower == 0, upper == 0
                zeros[:, :, q] = _zero_factors(*none)
                lower[none[0]] = upper[none[1]] = 1.0
            low, high = _logarithms(lower, scale), _logarithms(upper, scale)
            np.subtract(low[..., 1], high[..., 0], out=values[:, :, q, 0])
            np.subtract(high[..., 1], low[..., 0], out=values[:, :, q, 1])
        for terms in (values, zeros):
            terms[self._all.sources == SAYS_NOTHING] = 0
        flat = (*n.shape[:2], -1)
        return Terms(values.reshape(flat), zeros.reshape(flat) if zeros.any() else None)

    def _cells(
        self, labels: IntArray
    ) -> tuple[FloatArray, FloatArray, IntArray, NDArray[np.bool_]]:
        """n(v, a), D, K and whether there is no data: (observations, labels, classes) each."""
        counted, variables = self._counted, self._all.variables[:, None]
        sources = self._all.sources
        n = counted.counts[np.maximum(sources, 0)[:, None], labels].astype(np.float64)
        n[sources < 0] = 0.0
        denominator = counted.denominators[variables, labels].astype(np.float64)
        no_data = counted.totals[variables, labels] == 0
        return n, denominator, counted.n_categories[variables][..., None], no_data

    def groups(self) -> Iterator[Found]:
        """All labels, some at a time, in whole tiles of any layout."""
        size = _UNIT * self._units_at_once()
        for first in range(0, len(self._order), size):
            yield self.find(first, first + size)

    def for_each_group(self, run: Callable[[int, int], None]) -> None:
        """Call ``run`` with the first and last of some labels, on threads if that is worth it."""
        n_units = -(-len(self._order) // _UNIT)
        worth_threads = self.n_pieces >= _PIECES_WORTH_A_THREAD

        def run_group(first: int, stop: int) -> None:
            run(first * _UNIT, min(stop * _UNIT, len(self._order)))

        n_jobs = self._n_jobs if worth_threads else 1
        for_each_chunk(n_units, self._units_at_once(), n_jobs, run_group)

    def _pieces_a_label(self) -> int:
        return 2 * max(1, len(self._all))

    def _units_at_once(self) -> int:
        return max(1, _PIECES_AT_ONCE // (_UNIT * self._pieces_a_label()))

    def find(self, first: int, stop: int) -> Found:
        """Evidence about some labels."""
        labels, n_found = self._order[first:stop], -1
        kept = self._found.get((first, len(labels)))
        if kept is not None:
            return kept
        numbers = np.empty((len(labels), 2, len(self._all)), dtype=np.int32)
        room = max(_LITTLE_ROOM, numbers.size // 16)
        while n_found < 0:
            room *= 4
            pieces = np.empty((room, 3), dtype=np.int64)
            pieces[0] = 1  # it says nothing: any numbers will do
            n_found = self._find_in(pieces, labels, self._limits[first:stop], numbers)
        found = Found(first, numbers, pieces[:n_found])
        if self._reuse:
            self._found[first, len(labels)] = found
        return found

    def _find_in(
        self, pieces: IntArray, labels: IntArray, limits: IntArray, numbers: NDArray[np.int32]
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
            np.full((2, min(_MOST_SLOTS, 2 ** (largest + 1).bit_length())), -1, dtype=np.int32),
            np.full(2 ** (2 * len(pieces)).bit_length(), -1, dtype=np.int32),
        )
