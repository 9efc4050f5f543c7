"""Are promises kept? Many random calibrations, on rows whose truth is known.

The choice of values is the library's own (``plan_test`` and ``kept_values``); only the sums over
rows are made for all calibrations at once, by a product of matrices. Used by
``tests/promises/test_validity.py``; the table and the figure of docs/promises.md come from

    CREDALCHAIN_FULL=1 python tests/promise_simulation.py docs/images/promises.png
"""

import hashlib
import os
import sys
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from credalchain import CredalChainClassifier, CredalJointForest, JointDecision, PromisedClassifier
from credalchain.datasets import load
from credalchain.joint.growing import default_forest_regressor
from credalchain.promises.calibration import caution_values
from credalchain.promises.risks import RISKS, Promise, evaluable_rows, mean_loss, own_risk, shifted
from credalchain.promises.statistics import (
    STAKES,
    EvaluatedPromise,
    LossSums,
    evidence_against,
    first_tested_value,
    kept_values,
    plan_test,
    sum_losses,
)

# Tests allow two standard errors of SPLITS calibrations, so that with 200 as with 1,000 a procedure
# that breaks just 10 % of its promises fails with probability 0.027 for each promise (the seed is
# fixed). One that breaks 20 % is found with probability 0.982 by 200 calibrations and > 0.9999 by
# 1,000, one that breaks 15 % with 0.609 and 0.998, by each of 27 promises.
SPLITS = 1000 if os.environ.get("CREDALCHAIN_FULL") == "1" else 200
N_CALIBRATION, N_PILOT = 500, 75
LEVELS = (0.05, 0.1, 0.2)
CONFIDENCE = 0.9
N_VALUES = 100


def estimate(name, truth, answers):
    """The risk of whole rows in those that count."""
    return mean_loss(*Promise(RISKS[name], 0.5).losses(truth, answers)[1:])


def row_losses(promise, truth, answers, level):
    """Of every row, in [0, 1], with a mean of at most ``level`` if and only if the risk is."""
    return shifted(*promise.risk.row_losses(truth, answers), level)


def two_wrong(truth, answers):
    """A risk of one's own: two or more wrong answers in a row."""
    return ((answers != -1) & (answers != truth)).sum(axis=1) >= 2


@dataclass(frozen=True, eq=False)
class Pool:
    """Rows that a model was not fitted on, its answers at every value, and who is drawn.

    ``drawn`` (SPLITS, N_CALIBRATION) are the rows of each calibration, drawn with replacement, so
    that the pool is the population and its risk the truth; the first ones are the pilot.
    """

    name: str
    estimator: object
    X: np.ndarray
    values: np.ndarray
    path: np.ndarray
    truth: np.ndarray
    drawn: np.ndarray

    @cached_property
    def completeness(self):
        return (self.path != -1).mean(axis=(1, 2))

    @cached_property
    def members(self):
        """How often rows are drawn, (SPLITS, rows): as pilot rows, and as the others."""
        found = []
        for part in (self.drawn[:, :N_PILOT], self.drawn[:, N_PILOT:]):
            one = np.zeros((SPLITS, len(self.truth)), np.float32)
            np.add.at(one, (np.arange(SPLITS)[:, None], part), 1.0)
            found.append(one)
        return found

    def sums_over_splits(self, columns):
        """Of (..., rows) over the rows of each split, pilot and others; those known are kept."""
        found = []
        for place, members in enumerate(self.members):
            found.append(
                [None if one is None else self._sum(one, place, members) for one in columns]
            )
        return found

    def _sum(self, column, place, members):
        key = place, column.shape, hashlib.sha1(np.ascontiguousarray(column)).hexdigest()
        if key not in self.known_sums:
            self.known_sums[key] = column @ members.T
        return self.known_sums[key]

    @cached_property
    def known_sums(self):
        return {}

    def true_risk(self, promise):
        """At every value, (V,)."""
        bad, every = counts(promise, self.truth, self.path)
        total = every.sum(axis=1)
        return bad.sum(axis=1) / np.where(total > 0, total, 1.0)


def counts(promise, truth, path):
    """Bad and all, (V, n) each, of the rows that count."""
    if promise.label is not None:
        at = slice(promise.label, promise.label + 1)
        bad, every = promise.risk.label_losses(truth[:, at], path[:, :, at])
        return bad[..., 0].astype(np.float32), every[..., 0].astype(np.float32)
    bad, every = promise.risk.row_losses(truth, path)
    bad = np.asarray(bad, np.float32)
    every = np.ones_like(bad) if every is None else np.asarray(every, np.float32)
    others = np.delete(np.arange(len(truth)), evaluable_rows(promise.risk, truth))
    bad[:, others] = every[:, others] = 0.0
    return bad, every


@lru_cache
def choose_within_limits(pool, promise):
    """As ``choose``, and the risk of new rows, where rows beyond a limit by the pilot stay open."""
    chosen, risks = np.full(SPLITS, -1), np.zeros(SPLITS)
    for split, rows in enumerate(pool.drawn):
        truth, path = pool.truth[rows], pool.path[:, rows]
        parts = [(truth[some], path[:, some]) for some in (slice(N_PILOT), slice(N_PILOT, None))]
        limit = np.maximum(sum_losses(promise, *parts[0], True).most, 1.0)
        pilot, rest = (sum_losses(promise, *part, True, limit) for part in parts)
        plan = plan_test(promise, pilot, N_CALIBRATION - N_PILOT)
        answered = (path[:, :N_PILOT] != -1).any(axis=2).sum(axis=1)
        start = first_tested_value([EvaluatedPromise(promise, pilot, plan)], answered)
        kept = np.flatnonzero(kept_values([EvaluatedPromise(promise, rest, plan)], start))
        if len(kept):
            at = chosen[split] = kept[0]
            losses = promise.losses(pool.truth, pool.path[at : at + 1], limit[at : at + 1])
            risks[split] = mean_loss(*losses[1:])[0]
    return chosen, risks


def choose(pool, promise):
    """The place of the value that each calibration chooses; -1 for none, (SPLITS,)."""
    if promise.has_limit:
        return choose_within_limits(pool, promise)[0]
    bad, every = counts(promise, pool.truth, pool.path)
    is_label = promise.label is not None
    counting = every if is_label else np.zeros_like(every)
    if not is_label:
        counting[:, evaluable_rows(promise.risk, pool.truth)] = 1.0
    losses = bad
    if not is_label and promise.risk.is_ratio:
        losses = bad - promise.level * (every - 1)
    if promise.confidence is None and not promise.risk.is_monotone:
        losses = np.maximum.accumulate(losses[::-1])[::-1]
    answered = (pool.path != -1).mean(axis=2).astype(np.float32)
    if is_label:
        answered = (pool.path[:, :, promise.label] != -1).astype(np.float32)
    growth = None
    if promise.confidence is not None and not promise.is_binomial:
        stakes = STAKES[:, None, None] / (1 - promise.level)
        growth = (np.log1p(stakes * (promise.level - losses)) * counting).astype(np.float32)
    columns = [counting, losses, bad, every, growth, answered]
    sums = pool.sums_over_splits(columns)
    chosen = np.full(SPLITS, -1)
    for split in range(SPLITS):
        pilot, rest = (_tally(part, split) for part in sums)
        plan = plan_test(promise, pilot, N_CALIBRATION - N_PILOT)
        start = first_tested_value([EvaluatedPromise(promise, pilot, plan)], sums[0][-1][:, split])
        found = rest if promise.needs_pilot else pilot + rest
        kept = np.flatnonzero(kept_values([EvaluatedPromise(promise, found, plan)], start))
        chosen[split] = kept[0] if len(kept) else -1
    return chosen


def _tally(sums, split):
    *parts, growth, _ = sums
    parts = [part[:, split].astype(np.float64) for part in parts]
    unused = np.zeros_like(parts[0])
    growth = None if growth is None else growth[:, :, split].astype(np.float64)
    return LossSums(*parts, unused, unused, unused, growth)


@dataclass(frozen=True)
class Outcome:
    """What came of one promise in all calibrations."""

    pool: str
    promise: Promise
    mean_risk: float  # of new rows
    simulation_error: float  # of the mean, or of the share of broken promises
    broken: float  # share of calibrations whose value has a risk above the level
    completeness: float
    best: float  # completeness of the boldest value that keeps the promise, known in hindsight


def simulate(pool, promise):
    """One promise, calibrated SPLITS times."""
    chosen = choose(pool, promise)
    risk = np.append(pool.true_risk(promise), 0.0)  # nothing answered has none
    completeness = np.append(pool.completeness, 0.0)
    if promise.label is not None:
        completeness = np.append((pool.path[:, :, promise.label] != -1).mean(axis=1), 0.0)
    new = choose_within_limits(pool, promise)[1] if promise.has_limit else risk[chosen]
    kept = np.flatnonzero((risk[:-1] <= promise.level) & (completeness[:-1] > 0))
    broken = float((new > promise.level + 1e-9).mean())
    error = np.sqrt(CONFIDENCE * (1 - CONFIDENCE) / SPLITS)
    if promise.confidence is None:
        error = float(new.std() / np.sqrt(SPLITS))
    best = float(completeness[kept].max()) if len(kept) else 0.0
    return Outcome(
        pool.name,
        promise,
        float(new.mean()),
        float(error),
        broken,
        float(completeness[chosen].mean()),
        best,
    )


def promises(n_labels):
    """All that are tried: on average where that is known, and with confidence."""
    named = [*RISKS.values(), own_risk(two_wrong)]
    on_average = [Promise(one, a) for one in named if not one.is_ratio for a in LEVELS]
    surely = [Promise(one, a, CONFIDENCE) for one in named for a in LEVELS]
    label = min(1, n_labels - 1)
    labels = [Promise(one, a, CONFIDENCE, label) for one in RISKS.values() for a in LEVELS]
    return on_average + surely + labels


def models():
    return {
        "branching": CredalChainClassifier(random_state=0),
        "joint decision": JointDecision(
            CredalJointForest(default_forest_regressor(300), random_state=0)
        ),
    }


def _thin(estimator, X):
    """Values at which different shares of labels are answered, found on other rows."""
    values = caution_values(estimator, None)
    answered = (estimator.predict_path(X, values) != -1).mean(axis=(1, 2))
    wanted = np.linspace(answered.max(), answered.min(), N_VALUES)
    return values[np.unique([np.abs(answered - share).argmin() for share in wanted])]


@lru_cache
def yeast_pool(model):
    """800 rows for training, 200 to find values, the others to calibrate and test."""
    data = load("embedded:yeast")
    X, Y = np.asarray(data.X, float), np.asarray(data.Y).astype(np.int8)
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(X))
    train, look, rest = np.split(rows, [800, 1000])
    estimator = models()[model].fit(X[train], Y[train])
    values = _thin(estimator, X[look])
    path = estimator.predict_path(X[rest], values)
    drawn = rng.integers(0, len(rest), (SPLITS, N_CALIBRATION))
    return Pool("yeast", estimator, X[rest], values, path, Y[rest], drawn)


def draw(rng, n):
    """Synthetic rows: four labels that depend on six columns and on each other."""
    X = rng.normal(size=(n, 6))
    score = X[:, :4] + 0.5 * X[:, [4]] + 0.7 * rng.normal(size=(n, 1))
    return X, (score + 0.7 * rng.normal(size=(n, 4)) > 0.4).astype(np.int8)


@lru_cache
def synthetic_pool(model):
    """So many rows that they are the truth."""
    rng = np.random.default_rng(1)
    estimator = models()[model].fit(*draw(rng, 1000))
    values = _thin(estimator, draw(rng, 200)[0])
    X, truth = draw(rng, 6000)
    path = estimator.predict_path(X, values)
    drawn = rng.integers(0, len(X), (SPLITS, N_CALIBRATION))
    return Pool("synthetic", estimator, X, values, path, truth, drawn)


POOLS = {"yeast": yeast_pool, "synthetic": synthetic_pool}


def streams(pool, promise, place, n_streams, n_rows, seed=0):
    """Evidence against a promise after every row, of rows drawn from the pool, (streams, rows)."""
    rng = np.random.default_rng(seed)
    losses = row_losses(promise, pool.truth, pool.path[place], promise.level)
    drawn = rng.integers(0, len(losses), (n_streams, n_rows))
    return np.array([evidence_against(losses[rows], promise.level) for rows in drawn])


def drifted_losses(pool, promise, place, share, seed=0):
    """Losses of the same rows after a drift: a share of the labels is now given otherwise."""
    rng = np.random.default_rng(seed)
    flipped = rng.random(pool.truth.shape) < share
    truth = np.where(flipped, 1 - pool.truth, pool.truth)
    return row_losses(promise, truth, pool.path[place], promise.level)


def delays(pool, promise, place, share, n_streams, before=400, after=400, seed=1):
    """Rows from the drift until the promise counts as broken; ``after`` + 1 if it never does.

    Negative where it was called broken before.
    """
    rng = np.random.default_rng(seed)
    calm = row_losses(promise, pool.truth, pool.path[place], promise.level)
    drifted = drifted_losses(pool, promise, place, share)
    found = []
    for _ in range(n_streams):
        rows, new_rows = rng.integers(0, len(calm), before), rng.integers(0, len(calm), after)
        losses = np.concatenate([calm[rows], drifted[new_rows]])
        over = np.flatnonzero(evidence_against(losses, promise.level) >= 20)
        found.append(over[0] + 1 - before if len(over) else after + 1)
    return np.array(found)


def end_to_end(n_calibration, n_rows, turns, confidence=None, level=0.1):
    """The share of promises that are called broken although nothing has changed."""
    pool, broken = synthetic_pool("branching"), 0
    for seed in range(turns):
        rng = np.random.default_rng(seed)
        rows, new = (
            rng.integers(0, len(pool.X), n_calibration),
            rng.integers(0, len(pool.X), n_rows),
        )
        promised = PromisedClassifier(
            pool.estimator,
            {"row_error": level},
            confidence=confidence,
            calibration="prefit",
            values=pool.values,
        ).fit(pool.X[rows], pool.truth[rows])
        broken += promised.check(pool.X[new], pool.truth[new]).verdict == "broken"
    return broken / turns


def tuned_on_training_rows(level):
    """The row error on new rows if caution is tuned where the model was fitted, and if promised."""
    data = load("embedded:yeast")
    X, Y = np.asarray(data.X, float), np.asarray(data.Y).astype(np.int8)
    rows = np.random.default_rng(0).permutation(len(X))
    train, new = rows[:1400], rows[1400:]
    estimator = models()["joint decision"]
    promised = PromisedClassifier(estimator, {"row_error": level}, random_state=0)
    promised.fit(X[train], Y[train])
    fitted = models()["joint decision"].fit(X[train], Y[train])
    values = caution_values(fitted, None)
    risks = estimate("row_error", Y[train], fitted.predict_path(X[train], values))
    boldest = values[np.flatnonzero(risks <= level)[0]]
    tuned = fitted.predict_path(X[new], [boldest])[0]
    return (
        float(estimate("row_error", Y[new], tuned)),
        float(estimate("row_error", Y[new], promised.predict_partial(X[new]))),
    )


def main(picture):
    import matplotlib

    matplotlib.use("Agg")
    found = []
    for name, pool_of in POOLS.items():
        for model in models():
            pool = pool_of(model)
            for promise in promises(pool.truth.shape[1]):
                outcome = simulate(pool, promise)
                found.append((model, outcome))
                about = promise.risk.name + ("" if promise.label is None else " of a label")
                print(
                    f"{name:9} {model:14} {about:28} {promise.level:4} "
                    f"{promise.confidence or 'on average':10} risk {outcome.mean_risk:.4f} "
                    f"broken {outcome.broken:.3f} answered {outcome.completeness:.3f} "
                    f"best {outcome.best:.3f}",
                    flush=True,
                )
    print("tuned on training rows, promised:", tuned_on_training_rows(0.1))
    pool, promise = yeast_pool("joint decision"), Promise(RISKS["row_error"], 0.1)
    place = int(np.flatnonzero(pool.true_risk(promise) <= 0.1)[0])
    alarms = (streams(pool, promise, place, SPLITS, 1000) >= 20).any(axis=1).mean()
    late = delays(pool, promise, place, 0.05, 200)
    print("called broken without a change:", end_to_end(100, 5000, 200), end_to_end(500, 5000, 200))
    print(f"false alarms {alarms:.3f}; delay {np.percentile(late, [10, 50, 90])} rows")
    _draw(found, picture)


def _draw(found, picture):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 8), layout="constrained")
    (top_left, top_right), (low_left, low_right) = figure.subplots(2, 2)
    colours = {"branching": "#D55E00", "joint decision": "#0072B2"}
    marks = {"yeast": "o", "synthetic": "s"}
    names = list(dict.fromkeys(one.promise.risk.name for _, one in found))
    for model, one in found:
        look = {"color": colours[model], "marker": marks[one.pool], "linestyle": "", "alpha": 0.7}
        aside = 0.9 + 0.05 * names.index(one.promise.risk.name)  # so that they can be told apart
        if one.promise.confidence is None:
            top_left.plot(one.promise.level * aside, one.mean_risk, **look)
        else:
            top_right.plot(one.promise.level * aside, one.broken, **look)
        if one.promise.confidence is None:
            low_left.plot(100 * one.best, 100 * one.completeness, **look)
    for level in LEVELS:
        top_left.plot([0.88 * level, 1.12 * level], [level, level], color="#6E6E6E")
    top_left.set(
        xlabel="promised on average",
        ylabel="mean risk of new rows",
        title="on average: never above what was promised (bars)",
    )
    top_right.axhline(1 - CONFIDENCE, color="#6E6E6E", linestyle="--")
    top_right.set(
        xlabel="promised with confidence 0.9",
        ylabel="share of calibrations that break it",
        ylim=(-0.005, 0.15),
        title="with confidence 0.9: broken at most one time in ten",
    )
    low_left.plot([0, 100], [0, 100], color="#6E6E6E", linestyle="--")
    low_left.set(
        xlabel="answered by the best caution, known in hindsight (%)",
        ylabel="answered (%)",
        title="what 500 calibration rows buy, on average",
    )
    _draw_drift(low_right)
    for model, colour in colours.items():
        for pool, mark in marks.items():
            top_left.plot([], [], color=colour, marker=mark, linestyle="", label=f"{model}, {pool}")
    top_left.legend(frameon=False)
    figure.savefig(picture, dpi=110)


def _draw_drift(ax):
    pool = yeast_pool("joint decision")
    promise = Promise(RISKS["row_error"], 0.1)
    place = int(np.flatnonzero(pool.true_risk(promise) <= 0.09)[0])
    for evidence in streams(pool, promise, place, 40, 800):
        ax.plot(np.arange(1, 801), evidence, color="#0072B2", alpha=0.25, linewidth=0.8)
    calm = row_losses(promise, pool.truth, pool.path[place], promise.level)
    drifted = drifted_losses(pool, promise, place, 0.05)
    rng = np.random.default_rng(1)
    for _ in range(20):
        before, after = rng.integers(0, len(calm), (2, 400))
        losses = np.concatenate([calm[before], drifted[after]])
        evidence = evidence_against(losses, promise.level)
        ax.plot(np.arange(1, 801), evidence, color="#D55E00", alpha=0.6, linewidth=0.8)
    ax.axhline(20, color="#6E6E6E", linestyle="--")
    ax.axvline(400, color="#6E6E6E", linestyle=":")
    ax.set(
        yscale="log",
        ylim=(1e-3, 1e6),
        xlabel="newly labelled rows",
        ylabel="evidence that the promise is broken",
        title="check: broken above 20\n(orange: one label in 20 flips after row 400)",
    )


if __name__ == "__main__":
    main(sys.argv[1])
