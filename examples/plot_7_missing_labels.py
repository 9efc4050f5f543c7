"""
Labels that are missing in training
===================================

Often nobody has looked at every label of every training row. A missing label is ``NaN``; the chain
leaves it out of its counts, fewer counts make wider intervals, and more stays open.
"""

# %%
# The yeast data, with a share of its training labels removed at random. What is removed at one
# share is also removed at every larger one.

import matplotlib.pyplot as plt

from credalchain import CredalChainClassifier
from credalchain.datasets import load_embedded_yeast
from credalchain.datasets.corruption import remove_uniformly
from credalchain.metrics import completeness, selective_error, set_accuracy

X, Y, _, _ = load_embedded_yeast()
shares = [0, 0.2, 0.4, 0.6, 0.8]
measures = {
    "labels answered": completeness,
    "rows without a wrong answer": set_accuracy,
    "answers that are wrong": selective_error,
}
found = {name: [] for name in measures}
for share in shares:
    damaged = remove_uniformly(Y[:2000], share, seed=0)
    chain = CredalChainClassifier(s=1.5, random_state=0).fit(X[:2000], damaged)
    answers = chain.predict_partial(X[2000:])
    for name, measure in measures.items():
        found[name].append(measure(Y[2000:], answers))

# %%
# The chain knows that it knows less: it answers less, and more rows are without a wrong answer.
# The share of wrong answers among those that it gives need not fall.

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, values in found.items():
    ax.plot(shares, values, marker="o", label=name)
ax.set(xlabel="training labels removed", ylabel="share, in new rows", ylim=(0, 1))
_ = ax.legend(frameon=False)

# %%
# Labels that are missing for a reason are another matter. Here positives are removed three times
# as often as negatives, and a joint forest reads the holes in two ways: ``"ignorable"`` believes
# that they say nothing, and ``"conservative"`` allows either value.

import numpy as np

from credalchain import CredalJointForest

rng = np.random.default_rng(0)
X = rng.normal(size=(600, 4))
Y = (X[:, :3] + 0.7 * rng.normal(size=(600, 3)) > 0.3).astype(float)
removed = rng.random(Y.shape) < np.where(Y == 1, 0.6, 0.2)
damaged = np.where(removed, np.nan, Y)

figure, ax = plt.subplots(figsize=(7, 2.2), layout="constrained")
for at, missing in enumerate(("ignorable", "conservative")):
    forest = CredalJointForest(missing=missing, s=0.0, n_jobs=2, random_state=0)
    lower, upper = forest.fit(X[:400], damaged[:400]).predict_interval(X[400:]).mean(axis=(0, 1))
    ax.barh(at, max(upper - lower, 0.005), left=lower, height=0.5)
ax.axvline(Y[400:].mean(), color="black", linestyle="--", label="positives in new rows")
ax.set_yticks([0, 1], ["ignorable", "conservative"])
ax.set(xlabel="lower to upper probability, mean over rows and labels", xlim=(0, 1))
_ = ax.legend(frameon=False, loc="lower right")

# %%
# The conservative reading leaves room for the truth. Where labels are missing at random, its
# caution costs answers without need.
