"""From counts of observations to tables of what they say."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalchain import _kernels
from credalchain._kernels.states import LANES, NEVER_SEEN, SAYS_NOTHING
from credalchain.bases.naive.codes import rows_of
from credalchain.bases.naive.grid import FixedTable, FloatArray, IntArray, Layout, Scale, no_zeros
from credalchain.bases.naive.memory import aligned, aligned_zeros
from credalchain.bases.threads import for_each_chunk

_Numbers = NDArray[np.int32]

_PIECES_AT_ONCE = 2**18  # of evidence, at the most
_PIECES_WORTH_A_THREAD = 2**16


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
    def of_labels(cls, n_labels: int) -> "Observations":
        """Every label as 0 and as 1."""
        return cls(np.repeat(np.arange(n_labels), 2), np.arange(2 * n_labels))

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

    def bounds(self, evidence: IntArray) -> FloatArray:
        """Lower and upper P(v | a) of pieces of evidence, (pieces, values of s, 2).

        A piece is n(v, a), the sum of the counts, D and K.
        """
        n, total, denominator, k = evidence.T[:, :, None]
        bounds = np.empty((len(evidence), len(self.values), 2))
        with np.errstate(divide="ignore", invalid="ignore"):  # 0/0, replaced below
            share = (1.0 - self.epsilon) / (denominator + self.values)
            np.multiply(n, share, out=bounds[..., 0])
            np.multiply(n + self.values, share, out=bounds[..., 1])
        bounds += (self.epsilon / k)[..., None]
        if (self.values == 0).any():  # a conditional without data: uniform
            no_data = (total == 0) & (self.values == 0)
            bounds[no_data] = np.broadcast_to(1.0 / k, no_data.shape)[no_data][:, None]
        return bounds


class Evidence:
    """What observations say about every label, for any values of s.

    ``zero`` are observations that most others are like: their sum is given apart, and the rows
    of the others relative to that of the same variable. ``limits`` are for each label the number
    of (first) observations that concern it, None for all. With ``reuse`` the pieces of evidence
    that were found stay in memory.
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
        self._counted, self._about, self._order, self._zero = counted, about, order, zero
        self._scale = scale
        self._all = about if zero is None else zero.followed_by(about)
        self._limits = np.full(len(order), len(self._all)) if limits is None else limits
        self._reuse, self._n_jobs = reuse, n_jobs
        self._found: dict[int, tuple[_Numbers, IntArray]] = {}

    def fill(self, at: At, layout: Layout, targets: IntArray, table: IntArray) -> IntArray:
        """Write each observation into its row of ``table`` (blocks, rows, lanes).

        Returns the zero factors in the same form, or an empty array.
        """

        def run(first: int, numbers: _Numbers, logs: IntArray) -> None:
            self._fill(numbers, logs, 0, targets, first, layout, table)

        self._for_each_group(at, run)
        return self._zeros(((self._about, 1),), at, layout, targets, table.shape)

    def relative_table(self, at: At, layout: Layout) -> tuple[FixedTable, FixedTable]:
        """What all ``zero`` say together, (blocks, 16), and rows relative to them."""
        assert self._zero is not None
        zero, about, n = self._zero, self._about, len(self._zero)
        start = aligned_zeros((layout.n_blocks, LANES))
        rows = aligned((layout.n_blocks, len(about), LANES))
        targets = np.arange(len(about))

        def run(first: int, numbers: _Numbers, logs: IntArray) -> None:
            _kernels.add_zero_codes(
                numbers, logs, self._all.sources, n, first, layout.width, start.reshape(-1)
            )
            self._fill(numbers, logs, n, targets, first, layout, rows)

        self._for_each_group(at, run)
        parts = ((about, 1), (zero.some(about.variables), -1))
        start_zeros = self._zeros(
            ((zero, 1),), at, layout, np.arange(n), (layout.n_blocks, n, LANES)
        )
        return (
            FixedTable(start, start_zeros.sum(axis=1)),
            FixedTable(rows, self._zeros(parts, at, layout, targets, rows.shape)),
        )

    def _fill(
        self,
        numbers: _Numbers,
        logs: IntArray,
        n_zeros: int,
        targets: IntArray,
        first: int,
        layout: Layout,
        table: IntArray,
    ) -> None:
        _kernels.fill_table(
            numbers,
            logs.reshape(-1),
            logs.shape[1],
            self._all.variables,
            self._all.sources,
            n_zeros,
            self._limits[first : first + len(numbers)],
            targets,
            first,
            layout.width,
            table.shape[2],
            table.shape[1],
            table.reshape(-1),
        )

    def _for_each_group(self, at: At, run: Callable[[int, _Numbers, IntArray], None]) -> None:
        """Call ``run`` with some labels at a time: the first, numbers, and logarithms."""

        def run_group(first: int, stop: int) -> None:
            numbers, evidence = self._found.get(first) or self._find(first, stop)
            if self._reuse:
                self._found[first] = numbers, evidence
            run(first, numbers, self._logs(evidence, at))

        pieces = 2 * max(1, len(self._all))  # for each label
        size = min(len(self._order), max(4, _PIECES_AT_ONCE // pieces))
        worth_threads = len(self._order) * pieces >= _PIECES_WORTH_A_THREAD
        n_jobs = self._n_jobs if worth_threads else 1
        for_each_chunk(len(self._order), size, n_jobs, run_group)

    def _find(self, first: int, stop: int) -> tuple[_Numbers, IntArray]:
        """Numbers of what the observations say about some labels, and what they stand for."""
        counted, about = self._counted, self._all
        labels = self._order[first:stop]
        numbers = np.empty((len(labels), 2, len(about)), dtype=np.int32)
        evidence = np.empty((numbers.size, 4), dtype=np.int64)
        n_found = _kernels.find_evidence(
            counted.counts,
            counted.totals,
            counted.denominators,
            counted.n_categories,
            about.variables,
            about.sources,
            labels,
            self._limits[first:stop],
            numbers,
            evidence,
            np.full(int(counted.totals.max(initial=0)) + 1, -1, dtype=np.int32),
            np.full(2 ** (2 * numbers.size).bit_length(), -1, dtype=np.int32),
        )
        return numbers, evidence[:n_found]

    def _logs(self, evidence: IntArray, at: At) -> IntArray:
        """Logarithms of the bounds, on the grid; 0 for a bound of 0, which is kept apart."""
        logs = at.bounds(evidence)
        with np.errstate(divide="ignore"):
            np.log(logs, out=logs)
        if at.epsilon == 0:
            logs[np.isneginf(logs)] = 0.0
        logs *= self._scale.unit
        return np.rint(logs, out=logs).astype(np.int64)

    def _zeros(
        self,
        parts: tuple[tuple[Observations, int], ...],
        at: At,
        layout: Layout,
        targets: IntArray,
        shape: tuple[int, ...],
    ) -> IntArray:
        """Zero factors, with a sign for each part; an empty array if there is none."""
        if at.epsilon > 0:
            return no_zeros(len(shape))
        zeros = aligned_zeros(shape)
        found = [
            _kernels.zero_factors(
                self._counted.counts,
                self._counted.totals,
                about.variables,
                about.sources,
                at.values,
                self._order,
                layout.width,
                sign,
                targets,
                zeros,
            )
            for about, sign in parts
        ]
        return zeros if any(found) else no_zeros(len(shape))
