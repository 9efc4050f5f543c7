"""Random small problems, for the package and for the literal twin at once."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

import oracle
from credalchain import CredalChainClassifier, NaiveCredal
from credalchain.chains.naive.counts import as_codes, count
from credalchain.chains.naive.formulas import DENOMINATORS, PRIORS
from credalchain.chunks.sampling import row_hashes
from credalchain.prediction import CredalPrediction

ALMOST_ONE = float(np.nextafter(1.0, 2.0))  # a tie at s = 1 is a near-tie here
S_VALUES = (0.0, 0.1, 0.5, 1.0, 1.0, ALMOST_ONE, 2.0, 1 / 3, 5.5, 1e-9, 40.0)
EPSILONS = (0.0, 0.0, 0.001, 0.1, 0.25)
THRESHOLDS = (0.5, 0.5, 0.25, 0.3, 2 / 3)


@dataclass
class Case:
    """Codes with -1 for missing, labels with -1 for missing, new rows, settings."""

    codes: np.ndarray
    Y: np.ndarray
    K: np.ndarray
    rows: np.ndarray
    s: float
    base: dict
    strategy: str
    thresholds: list
    order: list | None
    known: np.ndarray

    def counts(self):
        return count(as_codes(self.codes, self.K), self.Y, self.K)

    def estimator(self, **changes):
        params = {
            "base": NaiveCredal(discretizer=None, **self.base),
            "s": self.s,
            "strategy": self.strategy,
            "threshold": self.thresholds,
            "order": "dynamic" if self.order is None else self.order,
        }
        return CredalChainClassifier.from_counts(self.counts(), **{**params, **changes})

    def problem(self, **changes):
        fields = {
            "X": [[None if v == -1 else int(v) for v in row] for row in self.codes],
            "Y": [[None if v == -1 else int(v) for v in row] for row in self.Y],
            "K": self.K.tolist(),
            "s": Fraction(self.s),
            "epsilon": Fraction(self.base["epsilon"]),
            "prior": self.base["prior"],
            "denominator": self.base["denominator"],
            "missing_features": self.base["missing_features"],
            "strategy": self.strategy,
            "thresholds": [Fraction(t) for t in self.thresholds],
        }
        return oracle.Problem(**{**fields, **changes})

    def oracle_rows(self):
        return [[None if v == -1 else int(v) for v in row] for row in self.rows]

    def expected(self, **changes):
        """Labels with -1 for a star, and exact intervals, by the literal twin."""
        problem = self.problem(**changes)
        labels, intervals = [], []
        for x, known in zip(self.oracle_rows(), self.known, strict=True):
            told = {j: int(v) for j, v in enumerate(known) if v != -1}
            row_labels, row_bounds = oracle.predict_row(problem, x, self.order, told)
            labels.append([-1 if y == oracle.STAR else y for y in row_labels])
            intervals.append(row_bounds)
        return np.array(labels), np.array(intervals, dtype=float)


def random_case(rng, *, n_rows=None, with_known=True, dynamic=True):
    """A case full of small counts, so that exact ties are common."""
    p, m = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    n = int(rng.integers(1, 9))
    K = rng.integers(1, 4, size=p)
    codes = np.column_stack([rng.integers(0, k, size=n) for k in K])
    codes[rng.random(codes.shape) < rng.choice([0, 0.2])] = -1
    Y = rng.integers(0, 2, size=(n, m)).astype(np.int8)
    Y[rng.random(Y.shape) < rng.choice([0, 0.3])] = -1
    new = n_rows or int(rng.integers(1, 4))
    rows = np.column_stack([rng.integers(-1, k + 1, size=new) for k in K])
    rows = np.where(rng.random(rows.shape) < 0.6, codes[rng.integers(0, n, size=new)], rows)
    known = np.full((new, m), -1, dtype=np.int8)
    if with_known and rng.random() < 0.3:
        known = rng.integers(-1, 2, size=(new, m)).astype(np.int8)
    thresholds = [0.5] * m
    if rng.random() < 0.3:
        thresholds = rng.choice(THRESHOLDS, size=m).tolist()
    order = rng.permutation(m).tolist()
    return Case(
        codes,
        Y,
        K.astype(np.int64),
        rows,
        float(rng.choice(S_VALUES)),
        {
            "epsilon": float(rng.choice(EPSILONS)),
            "prior": str(rng.choice(list(PRIORS))),
            "denominator": str(rng.choice(list(DENOMINATORS))),
            "missing_features": str(rng.choice(["ignore", "conservative"])),
        },
        str(rng.choice(["branching", "marginalization"])),
        thresholds,
        None if dynamic and rng.random() < 0.25 else order,
        known,
    )


def cases(**options):
    """A hypothesis strategy of cases; the seed is what shrinks."""
    return st.integers(0, 2**32 - 1).map(
        lambda seed: random_case(np.random.default_rng(seed), **options)
    )


def sampled_rows(first, n, limit):
    """Which of the rows first, ..., first + n - 1 are in a sample, counted from ``first``."""
    return np.flatnonzero(row_hashes(first, n) <= limit)


def infer_all(classifier, X, *, strategy, **options):
    """A prediction by each of several strategies, from one pass over the features."""
    encoded = classifier.encode(X)
    answer = classifier.model_.infer(
        encoded, classifier.request(encoded, strategy=strategy, **options)
    )
    names = classifier.label_names_.tolist()
    return [CredalPrediction.from_answer(answer, i, names, X) for i in range(len(strategy))]


def paths_of_all(classifier, X, values, *, strategy):
    """Partial predictions (strategies, values, n, m), from one pass over the features."""
    encoded = classifier.encode(X)
    request = classifier.request(encoded, s=tuple(values), strategy=strategy, wants_bounds=False)
    return classifier.model_.infer(encoded, request).labels
