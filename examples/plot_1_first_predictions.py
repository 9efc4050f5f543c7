"""
First predictions, and what an open label is
============================================

A cautious classifier answers yes, no, or not at all. Here a chain learns the functions of genes,
and leaves open what its counts do not decide.
"""

# %%
# The yeast data has 2417 genes with 103 numbers each. A gene has some of 14 functions, the labels.
# The chain learns from the first 2000.

import pandas as pd

from credalchain import CredalChainClassifier
from credalchain.datasets import load_embedded_yeast

X, Y, feature_names, label_names = load_embedded_yeast()
Y = pd.DataFrame(Y, columns=label_names)  # with names, which answers and pictures then have, too
chain = CredalChainClassifier(s=1.5, random_state=0).fit(X[:2000], Y[:2000])
prediction = chain.infer(X[2000:])

# %%
# Every label of every row gets a lower and an upper probability. If both are on the same side of
# one half, the label is answered; otherwise it is left open, shown as ``*``. The bars are the
# intervals, and a cross marks an answer that is wrong.

from credalchain.plotting import plot_predictions

ax = plot_predictions(prediction, Y_true=Y[2000:], max_labels=6, max_rows=5)

# %%
# In arrays an open label is -1. ``predict`` answers everything, as any classifier of scikit-learn
# does, and ``to_frame`` gives a table.

print(chain.predict(X[2000:2002]))
print(chain.predict_partial(X[2000:2002]))
prediction.to_frame().head(3)

# %%
# What does it buy? Of the rows, more are without a wrong answer; the price is labels that nobody
# answered.

from credalchain.metrics import completeness, selective_error, set_accuracy

for name, answers in (("all answered", chain.predict(X[2000:])), ("cautious", prediction)):
    print(
        f"{name:>12}: {completeness(Y[2000:], answers):.0%} of the labels answered, "
        f"{selective_error(Y[2000:], answers):.0%} of the answers wrong, "
        f"{set_accuracy(Y[2000:], answers):.0%} of the rows without a wrong answer"
    )

# %%
# The parameter ``s`` says how cautious: 0 is the ordinary chain, and the larger it is, the more
# stays open. ``predict_path`` answers for many values at once.

from credalchain.plotting import CompletenessCurveDisplay

values = [0, 0.5, 1, 1.5, 2, 3, 4, 6, 8]
display = CompletenessCurveDisplay.from_estimator(
    chain, X[2000:], Y[2000:], values=values, name="the paper's chain"
)

# %%
# What a value of ``s`` means depends on the data. :func:`credalchain.choose_caution` finds the one
# that answers a share of the labels, and :class:`credalchain.PromisedClassifier` the one that
# keeps a promise.
