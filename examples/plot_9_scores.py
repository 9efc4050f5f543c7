"""
On top of your model: a matrix of scores
========================================

Scores can come from anywhere: a network, an API, a file. A few hundred rows with known labels are
enough to decide the labels of a row together, and to leave doubtful ones open.
"""

# %%
# Here a small network plays the model that somebody else has fitted. All that we have is what it
# says about 900 rows that it has not seen, and the labels of these rows.

from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from credalchain.datasets import load_embedded_yeast

X, Y, _, _ = load_embedded_yeast()
network = make_pipeline(StandardScaler(), MLPClassifier((50,), tol=0.02, random_state=0))
network.fit(X[:1500], Y[:1500].astype(int))
scores, labels = network.predict_proba(X[1500:]), Y[1500:]
scores.shape

# %%
# ``"precomputed"`` means that X holds scores, one column for each label, just as
# ``metric="precomputed"`` means distances elsewhere in scikit-learn.

from credalchain import JointDecision
from credalchain.metrics import set_accuracy

decision = JointDecision("precomputed", n_jobs=2, random_state=0).fit(scores[:500], labels[:500])
print(f"all labels right, by the scores: {set_accuracy(labels[500:], scores[500:] > 0.5):.0%}")
print(f"decided together: {set_accuracy(labels[500:], decision.predict(scores[500:])):.0%}")

# %%
# The components of the mixture, and what each counts for. ``scores`` is the product of the scores
# themselves; it gets more weight where there are few rows to learn from.

{name: round(share, 2) for name, share in decision.estimator_.shares_.items()}

# %%
# A promise needs rows that neither the model nor the layer has seen. ``PromisedClassifier`` keeps
# three in ten of the given rows apart for it.

from credalchain import PromisedClassifier
from credalchain.plotting import plot_predictions

promised = PromisedClassifier(
    JointDecision("precomputed", n_jobs=2, random_state=0), {"row_error": 0.3}, random_state=0
)
promised.fit(scores[:700], labels[:700])
print(promised.report_)
_ = plot_predictions(promised.infer(scores[700:708]), max_labels=6, max_rows=5)
