"""LightGBM, made cautious: pip install lightgbm, then python examples/lightgbm_model.py."""

from lightgbm import LGBMClassifier

from credalchain import JointDecision, PromisedClassifier
from credalchain.datasets import load_embedded_yeast
from credalchain.metrics import completeness, set_accuracy

X, Y, _, _ = load_embedded_yeast()
model = LGBMClassifier(n_estimators=50, verbosity=-1)  # binary: every label gets a clone
decision = JointDecision(model, cv=3, random_state=0).fit(X[:1600], Y[:1600])
print(
    f"every label answered: {set_accuracy(Y[1600:], decision.predict(X[1600:])):.0%} of rows right"
)

promised = PromisedClassifier(decision, {"row_error": 0.3}, random_state=0).fit(X[:1600], Y[:1600])
answers = promised.predict_partial(X[1600:])
print(
    f"promised at most 30 % wrong rows: {completeness(Y[1600:], answers):.0%} of the labels "
    f"answered, {set_accuracy(Y[1600:], answers):.0%} of the rows without a wrong answer"
)
