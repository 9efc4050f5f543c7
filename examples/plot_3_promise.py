"""
A promise, and whether it holds on new rows
===========================================

Nobody knows what a reward of 0.7 means for their data. "At most one row in five has a wrong
answer" is something that can be understood, and checked.
"""

# %%
# Three parts of the yeast data: rows to look at what promises would buy, rows for the model and
# its promise, and rows that come later. They are shuffled first, because a promise is about new
# rows that are like those it was calibrated on.

import numpy as np

from credalchain import JointDecision, PromisedClassifier, promise_curve
from credalchain.datasets import load_embedded_yeast

X, Y, _, label_names = load_embedded_yeast()
look, fit, later = np.split(np.random.default_rng(0).permutation(len(X)), [700, 1900])
decision = JointDecision(n_jobs=2, random_state=0)

# %%
# What would each level buy? Three in ten of the rows are kept apart to see how often the model
# errs at every reward. These rows are not used again: a level that was chosen by what it buys is
# no promise on the same rows.

from credalchain.plotting import plot_promise_curve

curve = promise_curve(decision, X[look], Y[look], random_state=0)
ax = plot_promise_curve(curve, level=0.2)
curve.to_frame().round(3)

# %%
# Now the promise itself, with confidence: nine times in ten the model that comes out keeps it. The
# report says what was chosen, what it answers, and what is guaranteed.

promised = PromisedClassifier(decision, {"row_error": 0.2}, confidence=0.9, random_state=0)
promised.fit(X[fit], Y[fit])
print(promised.report_)

# %%
# Later, rows come whose labels somebody has found out. Does the promise still hold? The test may
# be repeated whenever there are more of them.

print(promised.check(X[later], Y[later]))

# %%
# If the world changes, it says so. Here one label in ten of the new rows is not what it would have
# been.

from credalchain.datasets.corruption import flip

print(promised.check(X[later], flip(Y[later], 0.1, seed=0)))

# %%
# Without a promise the reward would have to be guessed. The share of rows with a wrong answer at a
# few rewards, and what was promised:

import matplotlib.pyplot as plt

from credalchain.metrics import completeness, set_accuracy

rewards = [0.5, 0.7, 0.9, 1.1, 1.5]
path = promised.estimator_.predict_path(X[later], rewards)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
shares = [(completeness(None, answers), 1 - set_accuracy(Y[later], answers)) for answers in path]
ax.plot(*zip(*shares, strict=True), "o-", color="grey", label="rewards that were guessed")
for reward, place in zip(rewards, shares, strict=True):
    ax.annotate(f"{reward:g}", place, xytext=(0, 7), textcoords="offset points", ha="center")
answers = promised.predict_partial(X[later])
ax.plot(
    completeness(None, answers),
    1 - set_accuracy(Y[later], answers),
    "D",
    markersize=9,
    label="promised: at most 0.2",
)
ax.axhline(0.2, color="black", linestyle="--", linewidth=1)
ax.set(xlabel="labels answered", ylabel="rows with a wrong answer", xlim=(0, 1.05), ylim=(0, 1))
_ = ax.legend(frameon=False)
