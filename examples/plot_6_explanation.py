"""
Why a row got its answers, and which question to ask
====================================================

The naive credal chain is made of counts, so every answer can be taken apart. And where somebody
can answer what is open, one question often settles several labels.
"""

# %%
# A chain on the yeast data, and a row of it with several open labels.

import numpy as np
import pandas as pd

from credalchain import CredalChainClassifier, explain
from credalchain.datasets import load_embedded_yeast

X, Y, feature_names, label_names = load_embedded_yeast()
X, Y = pd.DataFrame(X, columns=feature_names), pd.DataFrame(Y, columns=label_names)
chain = CredalChainClassifier(s=1.5, random_state=0).fit(X[:2000], Y[:2000])
row = X[2001:2002]
why = explain(chain, row)

# %%
# From left to right: the chain, which forks where a label was left open; the interval of each
# label; and what moved its bounds most. Bars are log-odds: to the right they speak for the label,
# to the left against it. The pale part is what is not certain about them.

from credalchain.plotting import plot_explanation

figure = plot_explanation(why, top=2)

# %%
# In a notebook an explanation shows itself, what is open first. Below the table stand the
# questions: what an answer to an open label would settle.

why

# %%
# The same for all rows, without looking at each: ``next_questions`` says which open label is best
# asked about next. Its answer is expected to settle between so many labels and so many, itself
# included.

from credalchain import next_questions

new = X[2000:2200].reset_index(drop=True)
for question in next_questions(chain, new, budget=4):
    lower, upper = question.settles
    print(f"row {question.row}: {question.label}, settles {lower:.1f} to {upper:.1f} labels")

# %%
# Let somebody who knows the truth answer, one question in each row and round, and look how much is
# settled. After every answer the other open labels of the row are decided again, with the answer
# as a known label.

import matplotlib.pyplot as plt

truth = Y[2000:2200].to_numpy()
column = {name: at for at, name in enumerate(label_names)}
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for order in ("settles most", "least sure", "random"):
    known = np.full(truth.shape, -1)
    asked, settled = [0], [float((chain.infer(new).labels != -1).mean())]
    for _ in range(6):
        questions = next_questions(
            chain, new, budget=len(new), known=known, order=order, random_state=0
        )
        for question in questions:
            at = question.row, column[question.label]
            known[at] = truth[at]
        asked.append(asked[-1] + len(questions))
        settled.append(float((chain.infer(new, known=known).labels != -1).mean()))
    ax.plot(asked, settled, marker="o", label=order)
ax.set(xlabel="questions answered by a person", ylabel="labels settled")
_ = ax.legend(title="asked first", frameon=False)

# %%
# An order that settles more leaves more to the model, which errs more often than the person: at
# the same share of wrong rows the orders need about the same number of answers. :doc:`/review`
# says how that was measured, and shows the page on which people answer: ``credalchain review``.
