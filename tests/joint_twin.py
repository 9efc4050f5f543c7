"""A joint model written down literally: exact fractions, all extreme points of its credal set.

Slow on purpose, and independent of the package's formulas. Every tree of a case is a single leaf,
so that rows to be predicted do not matter.
"""

import itertools
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod

import numpy as np
from scipy import sparse

from credalchain import CredalJointForest
from credalchain.chains.forest import LEAF, Trees
from credalchain.joint.arrays import Leaves
from credalchain.joint.growing import label_vectors, with_vacuous_missing
from credalchain.joint.members import ScoreProduct
from credalchain.joint.model import JointModel
from credalchain.preprocessing import TableEncoder


@dataclass(frozen=True)
class Case:
    """Training rows with None for missing, and how often each is in the leaf of each tree.

    ``fill`` has the probability of 1 of every missing cell (row, label). ``others`` are the weights
    of another member on the vectors of complete rows; ``joint``, ``product`` and their sum add up
    to 1, with the share of ``scores``, the probabilities of independent labels by another model:
    where there are any, members are precise.
    """

    Y: list
    trees: list
    s: float
    joint: float = 1.0
    product: float = 0.0
    others: dict = field(default_factory=dict)
    fill: dict = field(default_factory=dict)
    conservative: bool = False
    scores: tuple = ()
    score_share: float = 0.0

    @property
    def m(self):
        return len(self.Y[0])

    def vectors(self):
        return list(itertools.product((0, 1), repeat=self.m))

    def never(self, j):
        return all(y[j] is None for y in self.Y)

    # -- for the package ---------------------------------------------------------------

    def model(self):
        labels = np.array([[-1 if v is None else v for v in y] for y in self.Y], dtype=np.int8)
        targets = np.maximum(labels, 0).astype(float)
        for (i, j), p in self.fill.items():
            targets[i, j] = p
        vector_of, label_mass = label_vectors(labels, targets)
        n_trees = len(self.trees)
        entries = [(row, n) for tree in self.trees for row, n in sorted(tree.items())]
        first = np.cumsum([0, *map(len, self.trees)])
        leaves = Leaves(
            first.astype(np.int64),
            np.array([row for row, _ in entries], np.int32),
            np.array([n for _, n in entries], np.uint16),
            vector_of,
            label_mass,
            self.joint,
            self.product,
            bool(self.scores),
        )
        if self.conservative:
            leaves = with_vacuous_missing(leaves, labels)
        zeros = np.zeros(n_trees, np.int32)
        trees = Trees(
            np.full(n_trees, LEAF, np.int32),
            np.zeros(n_trees),
            zeros,
            zeros,
            np.zeros(n_trees, bool),
            np.arange(n_trees, dtype=np.int32),
        )
        members, shares = [], []
        if self.others:
            share = sum(self.others.values())
            weights = np.zeros(label_mass.shape[1])
            for row, weight in self.others.items():
                weights[vector_of[row]] += weight
            members, shares = [MadeUp(weights / weights.sum())], [weights.sum()]
            assert self.joint + self.product + share + self.score_share == 1
        product = GivenScores(self.scores, self.score_share) if self.scores else None
        encoder = TableEncoder(1, {})
        return JointModel(trees, leaves, encoder, members, shares, score_product=product)

    def forest(self, **params):
        model = self.model()
        return CredalJointForest.from_model(model, n_features=1, **{"s": self.s, **params})

    # -- literally ---------------------------------------------------------------------

    def rest(self):
        """What nobody knows where to put: the mean of s / (N + s)."""
        s = Fraction(self.s)
        return sum(s / (sum(tree.values()) + s) for tree in self.trees) / len(self.trees)

    def row_weight(self, i):
        """The mean of c / (N + s), times the share, and what the other member adds."""
        s = Fraction(self.s)
        mean = sum(Fraction(tree.get(i, 0)) / (sum(tree.values()) + s) for tree in self.trees)
        weight = Fraction(self.joint) * mean / len(self.trees)
        certain = 1 if self.scores else 1 - self.rest()
        return weight + Fraction(self.others.get(i, 0)) * certain

    def may_be(self, i, j):
        """All distributions that label j of row i can have, as probabilities of 1."""
        y = self.Y[i][j]
        if y is not None:
            return [Fraction(y)]
        if self.conservative or self.never(j):
            return [Fraction(0), Fraction(1)]
        return [Fraction(self.fill[i, j])]

    def single(self, tree, j):
        """Both ends of the probability of 1 of label j in the leaf of one tree."""
        s = Fraction(self.s)
        n = sum(tree.values()) + s
        low = sum(times * min(self.may_be(i, j)) for i, times in tree.items()) / n
        high = (sum(times * max(self.may_be(i, j)) for i, times in tree.items()) + s) / n
        return {low, high}

    def parts(self):
        """Independent parts of the credal set: each a weight and the distributions it may have."""
        m = self.m
        for i in range(len(self.Y)):
            options = [self.may_be(i, j) for j in range(m)]
            sure = self.independent([p[0] if len(p) == 1 else Fraction(1) for p in options])
            for v, probability in sure.items():  # a subcube: labels that may be either are free
                ways = itertools.product(
                    *([y] if len(p) == 1 else p for y, p in zip(v, options, strict=True))
                )
                weight = self.row_weight(i) * probability
                if weight:
                    yield weight, [self.independent(way) for way in ways]
        rest = self.rest() * (Fraction(self.joint) if self.scores else 1 - Fraction(self.product))
        if rest:
            yield rest, [self.independent(v) for v in self.vectors()]
        for tree in self.trees if self.product else ():
            ends = itertools.product(*(self.single(tree, j) for j in range(m)))
            share = Fraction(self.product) / len(self.trees)
            yield share, [self.independent(end) for end in ends]
        if self.scores:
            ends = itertools.product(*(self.score_may_be(j) for j in range(m)))
            yield Fraction(self.score_share), [self.independent(end) for end in ends]

    def score_may_be(self, j):
        """As ``may_be``, by the scores."""
        return [Fraction(0), Fraction(1)] if self.never(j) else [Fraction(self.scores[j])]

    def independent(self, ones):
        """The distribution of independent labels with these probabilities of 1."""
        distribution = {}
        for v in self.vectors():
            p = Fraction(1)
            for one, y in zip(ones, v, strict=True):
                p *= one if y else 1 - one
            if p:
                distribution[v] = p
        return distribution

    def bounds(self, event, known=lambda v: True):
        """Least and greatest P(event | known), over extreme points with P(known) > 0."""
        sums = {(Fraction(0), Fraction(0))}
        for weight, distributions in self.parts():
            ends = {
                (
                    weight * sum(p for v, p in one.items() if known(v) and event(v)),
                    weight * sum(p for v, p in one.items() if known(v)),
                )
                for one in distributions
            }
            sums = {(a + c, b + d) for a, b in sums for c, d in ends}
        ratios = [both / of for both, of in sums if of > 0]
        return (min(ratios), max(ratios)) if ratios else (Fraction(0), Fraction(1))

    def lower_of(self, vectors, labels):
        """The lower probability that some labels are as in each vector: a sum of products."""
        parts = [
            (self.row_weight(i), [self.may_be(i, j) for j in labels]) for i in range(len(self.Y))
        ]
        share = Fraction(self.product) / len(self.trees)
        parts += [(share, [self.single(tree, j) for j in labels]) for tree in self.trees]
        if self.scores:
            parts.append((Fraction(self.score_share), [self.score_may_be(j) for j in labels]))
        ends = [(w, [(1 - max(p), min(p)) for p in ones]) for w, ones in parts if w]
        return [
            sum(
                w * prod(pair[v[j]] for j, pair in zip(labels, pairs, strict=True))
                for w, pairs in ends
            )
            for v in vectors
        ]

    def given(self, values, known=None):
        """Bounds of P(labels have these values | known labels), both (m,) with -1 for any."""
        return self.bounds(matches(values), matches([-1] * self.m if known is None else known))


class MadeUp:
    """A member that says the same about every row."""

    name = "made up"

    def __init__(self, weights):
        self.given = weights

    def weights(self, X):
        return sparse.csr_array(np.tile(self.given, (len(X), 1)))


class GivenScores(ScoreProduct):
    """Scores that are the same for every row."""

    def __init__(self, scores, share):
        super().__init__(1.0, share)
        self.given = scores

    def probabilities(self, encoded, n_labels):
        return np.tile(np.array(self.given, float), (len(encoded), 1))


def matches(values):
    """The event that labels have these values, -1 for any."""
    told = [(j, int(y)) for j, y in enumerate(values) if y != -1]
    return lambda v: all(v[j] == y for j, y in told)


SHARES = [  # of vectors, products, and another member
    (1.0, 0.0, 0.0),
    (0.0, 1.0, 0.0),
    (0.5, 0.5, 0.0),
    (0.75, 0.25, 0.0),
    (0.5, 0.0, 0.5),
    (0.0, 0.5, 0.5),
    (0.25, 0.5, 0.25),
]
S_VALUES = (0.0, 0.5, 1.0, 2.0, 3.0, 0.1)


WITH_SCORES = [  # of vectors, products, scores, and another member
    (0.5, 0.0, 0.5, 0.0),
    (0.0, 0.0, 1.0, 0.0),
    (0.25, 0.25, 0.5, 0.0),
    (0.25, 0.25, 0.25, 0.25),
    (0.0, 0.0, 0.5, 0.5),
]


def random_case(rng, *, missing=True, m=None, scores=True):
    """Small counts, and shares and probabilities that are exact, so that ties are common."""
    m = int(rng.integers(1, 4)) if m is None else m
    n_trees = int(rng.integers(1, 4 if m < 3 else 3))
    n = int(rng.integers(1, 6))
    Y = rng.integers(0, 2, size=(n, m)).tolist()
    fill = {}
    if missing and rng.random() < 0.6:
        for _ in range(int(rng.integers(1, 4))):
            i, j = int(rng.integers(n)), int(rng.integers(m))
            Y[i][j] = None
            fill[i, j] = float(rng.choice([0.0, 0.25, 0.5, 0.75, 1.0]))
    trees = []
    for _ in range(n_trees):
        rows = rng.choice(n, size=int(rng.integers(1, n + 1)), replace=False)
        trees.append({int(i): int(rng.integers(1, 4)) for i in rows})
    complete = [i for i in range(n) if None not in Y[i]]
    joint, product, other = SHARES[rng.integers(len(SHARES) if complete else 4)]
    score_share, probabilities = 0.0, ()
    if scores and rng.random() < 0.4:
        joint, product, score_share, other = WITH_SCORES[rng.integers(5 if complete else 3)]
        probabilities = tuple(rng.choice([0.125, 0.25, 0.5, 0.625, 0.9375], m).tolist())
    others = {}
    if other:
        one, two = rng.choice(complete, size=2).tolist()
        others = {one: other} if one == two else {one: other / 4, two: other * 3 / 4}
    return Case(
        Y,
        trees,
        float(rng.choice(S_VALUES)),
        joint,
        product,
        others,
        fill,
        bool(missing and rng.random() < 0.5),
        probabilities,
        score_share,
    )
