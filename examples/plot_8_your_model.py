"""
On top of your model: TF-IDF and logistic regression
====================================================

A classifier of texts says how likely each tag is. It does not say which tags go together, and it
answers all of them. Two lines add both.
"""

# %%
# Support tickets with six tags, made up here. Some tags imply others: a refund is about billing,
# and a login problem on a phone is about the app.

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

TAGS = {
    "billing": "invoice charge card payment",
    "refund": "refund money back return",
    "app": "app phone screen update",
    "login": "password login account locked",
    "delivery": "parcel courier late address",
    "praise": "thanks great helpful love",
}
FILLER = [
    "please",
    "hello",
    "today",
    "again",
    "still",
    "since",
    "my",
    "the",
    "your",
    "with",
    "order",
]
rng = np.random.default_rng(0)


def write_ticket():
    """Return a ticket and its tags."""
    tags = rng.random(len(TAGS)) < [0.3, 0.2, 0.3, 0.2, 0.3, 0.15]
    tags[0] |= tags[1]
    tags[2] |= tags[3] and rng.random() < 0.8
    words = [w for on, text in zip(tags, TAGS.values(), strict=True) if on for w in text.split()]
    some = rng.choice(words, 4).tolist() if words else []
    return " ".join(rng.permutation(some + rng.choice(FILLER, 6).tolist())), tags.astype(int)


texts, Y = map(list, zip(*(write_ticket() for _ in range(1500)), strict=True))
Y = np.array(Y)

# %%
# The model as it is, and with a joint decision on top. Cross-validation inside ``fit`` gives scores
# of rows that the model has not seen; from these the joint layer learns which tags go together.

from credalchain import JointDecision
from credalchain.metrics import set_accuracy

model = make_pipeline(TfidfVectorizer(), OneVsRestClassifier(LogisticRegression()))
alone = model.fit(texts[:1000], Y[:1000]).predict(texts[1000:])
decision = JointDecision(model, n_jobs=2, random_state=0).fit(texts[:1000], Y[:1000])
together = decision.predict(texts[1000:])
print(f"rows with every tag right, the model alone: {set_accuracy(Y[1000:], alone):.0%}")
print(f"rows with every tag right, decided together: {set_accuracy(Y[1000:], together):.0%}")
decision.estimator_.shares_

# %%
# Now with tags left open. How many of the rows have no wrong answer, if 90 % or 80 % of the tags
# are answered?

import matplotlib.pyplot as plt

from credalchain.metrics import completeness

rewards = np.geomspace(0.05, 50, 60)
path = decision.predict_path(texts[1000:], rewards)
answered = [completeness(Y[1000:], labels) for labels in path]
right = [set_accuracy(Y[1000:], labels) for labels in path]
p = model.predict_proba(texts[1000:])
doubt = np.minimum(p, 1 - p)
thresholds = np.quantile(doubt, np.linspace(0.2, 1, 25))
rejected = [np.where(doubt <= t, p > 0.5, -1) for t in thresholds]

fig, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.plot(answered, right, label="decided together")
ax.plot(
    [completeness(Y[1000:], labels) for labels in rejected],
    [set_accuracy(Y[1000:], labels) for labels in rejected],
    "--",
    label="the model, doubtful tags rejected",
)
ax.set(xlabel="share of tags answered", ylabel="rows without a wrong answer", xlim=(0.2, 1))
_ = ax.legend()

# %%
# An answer to one tag changes what is said about the others, whatever the model underneath.

row = np.flatnonzero((decision.predict_partial(texts[1000:]) == -1).sum(axis=1) > 1)[:1]
text = [texts[1000 + row[0]]]
known = np.full((1, len(TAGS)), -1)
known[0, list(TAGS).index("refund")] = 1
print(text[0])
print("before:            ", decision.predict_proba(text)[0].round(2))
print('"refund" is a yes: ', decision.infer(text, known=known).interval[0, :, 0].round(2))
