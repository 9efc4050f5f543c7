"""The method written down literally: rows, exact fractions, all completions of the stars.

Slow on purpose, and independent of the package: no counts, no logarithms, no columns for a
star. Everything fast is compared with this.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import wraps
from itertools import product
from math import prod

STAR = "*"


@dataclass(frozen=True)
class Problem:
    """Training rows with None for missing, and every convention that has to be chosen."""

    X: list
    Y: list
    K: list
    s: Fraction
    epsilon: Fraction = Fraction(0)
    prior: str = "laplace"
    denominator: str = "pairwise"
    missing_features: str = "ignore"
    strategy: str = "branching"
    thresholds: list = field(default_factory=list)
    chained: bool = True
    found: dict = field(default_factory=dict, repr=False)  # by `once`

    @property
    def m(self):
        return len(self.Y[0])

    def observed(self, j):
        return any(row[j] is not None for row in self.Y)


def once(function):
    """Worked out once for each problem, which never changes, and the same arguments."""

    @wraps(function)
    def looked_up(problem, *arguments):
        key = function.__name__, *arguments
        if key not in problem.found:
            problem.found[key] = function(problem, *arguments)
        return problem.found[key]

    return looked_up


def idm(problem, n, total, denominator, k):
    """Lower and upper probability of a category with n of its class's rows."""
    if problem.s == 0 and total == 0:
        return Fraction(1, k), Fraction(1, k)
    lower = Fraction(n) / (denominator + problem.s)
    upper = (n + problem.s) / (denominator + problem.s)
    e = problem.epsilon
    return (1 - e) * lower + e / k, (1 - e) * upper + e / k


@once
def feature_bounds(problem, i, v, j, a):
    rows = [x[i] for x, y in zip(problem.X, problem.Y, strict=True) if y[j] == a]
    seen = [code for code in rows if code is not None]
    return idm(problem, seen.count(v), len(seen), len(seen), problem.K[i])


@once
def label_bounds(problem, k, b, j, a):
    rows = [y[k] for y in problem.Y if y[j] == a]
    seen = [value for value in rows if value is not None]
    denominators = {"pairwise": len(seen), "class": len(rows)}
    return idm(problem, seen.count(b), len(seen), denominators[problem.denominator], 2)


@once
def prior_bounds(problem, j):
    """Odds factors: class 1 at least, class 0 at most, class 1 at most, class 0 at least."""
    n1 = sum(y[j] == 1 for y in problem.Y)
    n0 = sum(y[j] == 0 for y in problem.Y)
    if problem.prior == "credal":
        total = n0 + n1 + problem.s
        if total == 0:
            return 0, 0, 0, 0
        return n1 / total, (n0 + problem.s) / total, (n1 + problem.s) / total, n0 / total
    assert problem.prior in ("paper", "laplace"), problem.prior
    if problem.prior == "paper" and n0 and n1:
        one = Fraction(n1, n0 + n1)
    else:
        one = Fraction(n1 + 1, n0 + n1 + 2)
    return one, 1 - one, one, 1 - one


def quotient(above, below):
    """P = A / (A + B), where A and B are the products of these fractions; 0/0 counts as 0.

    Multiplied out as integers: a fraction is reduced once, not after every factor.
    """
    a = prod(p.numerator for p in above) * prod(p.denominator for p in below)
    b = prod(p.numerator for p in below) * prod(p.denominator for p in above)
    return Fraction(0) if a == 0 else Fraction(a, a + b)


@once
def interval_given(problem, j, x, history):
    """Bounds of P(Y_j = 1) for a row without missing features and a history without stars.

    ``x`` and ``history`` are pairs (feature, code) and (label, value).
    """
    zeros = [feature_bounds(problem, i, v, j, 0) for i, v in x if problem.K[i] > 1]
    ones = [feature_bounds(problem, i, v, j, 1) for i, v in x if problem.K[i] > 1]
    zeros += [label_bounds(problem, k, b, j, 0) for k, b in history if problem.observed(k)]
    ones += [label_bounds(problem, k, b, j, 1) for k, b in history if problem.observed(k)]
    low1, up0, up1, low0 = prior_bounds(problem, j)
    return (
        quotient([low1, *(lower for lower, _ in ones)], [up0, *(upper for _, upper in zeros)]),
        quotient([up1, *(upper for _, upper in ones)], [low0, *(lower for lower, _ in zeros)]),
    )


def interval(problem, j, x, history):
    """Bounds over all completions of the stars and of the missing features."""
    if not problem.observed(j):
        return Fraction(0), Fraction(1)
    known_x = [(i, v) for i, v in enumerate(x) if v is not None]
    open_x = [i for i, v in enumerate(x) if v is None]
    if problem.missing_features == "ignore":
        open_x = []
    answered = [(k, b) for k, b in history.items() if b != STAR]
    stars = [k for k, b in history.items() if b == STAR]
    if problem.strategy == "marginalization":
        stars = []
    ends = [
        interval_given(
            problem,
            j,
            (*known_x, *zip(open_x, codes, strict=True)),
            (*answered, *zip(stars, values, strict=True)),
        )
        for codes in product(*(range(problem.K[i]) for i in open_x))
        for values in product((0, 1), repeat=len(stars))
    ]
    return min(lower for lower, _ in ends), max(upper for _, upper in ends)


def decide(problem, j, lower, upper):
    t = problem.thresholds[j]
    if not problem.observed(j):
        return STAR
    if lower > t:
        return 1
    if upper < t:
        return 0
    return STAR


def odds(p):
    return float("inf") if p == 1 else p / (1 - p)


def sureness(bounds):
    """max(L, -U), as odds: a monotone function of it."""
    lower, upper = bounds
    return max(odds(lower), odds(1 - upper))


def predict_row(problem, x, order, known=None):
    """One row along the chain. ``order`` None is the dynamic order; known: {label: 0 or 1}."""
    known = known or {}
    history, bounds = {}, {}

    def visit(j):
        bounds[j] = interval(problem, j, x, history if problem.chained else {})
        history[j] = known.get(j, decide(problem, j, *bounds[j]))

    if order is None:
        for j in sorted(known):
            visit(j)
        while len(history) < problem.m:
            still_open = [j for j in range(problem.m) if j not in history]
            current = {j: interval(problem, j, x, history) for j in still_open}
            visit(max(still_open, key=lambda j: (sureness(current[j]), -j)))
    else:
        for j in order:
            visit(j)
    labels = [history[j] for j in range(problem.m)]
    return labels, [bounds[j] for j in range(problem.m)]


def predict_precise(problem, x, order):
    """The precise chain: s = 0, missing features ignored, 1 at the threshold itself."""
    problem = Problem(
        **{**vars(problem), "s": Fraction(0), "missing_features": "ignore", "found": {}},
    )
    history = {}
    for j in order:
        lower, _ = interval(problem, j, x, history if problem.chained else {})
        history[j] = int(problem.observed(j) and lower >= problem.thresholds[j])
    return [history[j] for j in range(problem.m)]
