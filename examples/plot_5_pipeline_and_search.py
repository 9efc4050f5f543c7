"""
In a scikit-learn pipeline, with a search
=========================================

The classifiers are estimators of scikit-learn. They stand at the end of pipelines, are
cross-validated, and their parameters are searched; what needs care is that answers may be open.
"""

# %%
# Made-up reports of machines: sensors with holes, the site where the machine stands, and three
# labels.

import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
n = 800
state = rng.normal(size=(n, 2))
X = pd.DataFrame(
    {
        "heat": 60 + 8 * state[:, 0] + 2 * rng.normal(size=n),
        "noise": 70 + 5 * state[:, 1] + 2 * rng.normal(size=n),
        "hours": rng.gamma(2.0, 900, size=n),
        "site": rng.choice(["north", "south", "harbour"], size=n, p=[0.5, 0.4, 0.1]),
    }
)
Y = pd.DataFrame(
    {
        "bearing": state[:, 1] + 0.3 * rng.normal(size=n) > 0.6,
        "cooling": state[:, 0] + 0.4 * (X["site"] == "harbour") + 0.3 * rng.normal(size=n) > 0.5,
        "belt": state.sum(axis=1) + (X["hours"] - 1800) / 1500 + 0.3 * rng.normal(size=n) > 0.8,
    }
).astype(int)
X.loc[rng.random(n) < 0.1, "noise"] = np.nan
X.head()

# %%
# The chain would read this table as it is. A pipeline is for steps of your own, such as these:

from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from credalchain import CredalChainClassifier, CredalWrapper

numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
columns = make_column_transformer(
    (numbers, ["heat", "noise", "hours"]), (OneHotEncoder(handle_unknown="ignore"), ["site"])
)
base = CredalWrapper(LogisticRegression(solver="newton-cholesky"), source="contamination")
model = make_pipeline(columns, CredalChainClassifier(base, s=0.3, order="given"))
model.fit(X[:600], Y[:600])

# %%
# A pipeline forwards only methods that scikit-learn knows, and ``predict_partial`` is not among
# them. ``partial_labels`` looks inside, and ``unwrap`` gives the classifier and the rows as they
# arrive there.

from credalchain import partial_labels, unwrap
from credalchain.plotting import plot_predictions

print(partial_labels(model, X[600:603]))
chain, Z = unwrap(model, X[600:])
ax = plot_predictions(chain.infer(Z), Y_true=Y[600:], max_rows=3)

# %%
# A search needs a score that knows open labels: ``partial_scorer`` makes one of any measure. Here
# an open label is worth 0.8 of a right one.

from sklearn.model_selection import GridSearchCV

from credalchain import partial_scorer

search = GridSearchCV(
    model,
    {"credalchainclassifier__s": [0.0, 0.1, 0.2, 0.4, 0.8, 1.6]},
    scoring={
        "utility_80": partial_scorer("utility_80"),
        "completeness": partial_scorer("completeness"),
        "set_accuracy": partial_scorer("set_accuracy"),
    },
    refit="utility_80",
    cv=3,
).fit(X[:600], Y[:600])
print(search.best_params_)

# %%
# What was found for every value of ``s``:

import matplotlib.pyplot as plt

found = pd.DataFrame(search.cv_results_)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for score in ("completeness", "utility_80", "set_accuracy"):
    ax.errorbar(
        found["param_credalchainclassifier__s"].astype(float),
        found[f"mean_test_{score}"],
        yerr=found[f"std_test_{score}"],
        marker="o",
        capsize=3,
        label=score,
    )
ax.set(xlabel="s, from bold to cautious", ylabel="mean over three folds", ylim=(0, 1.05))
_ = ax.legend(frameon=False)

# %%
# ``cross_val_partial`` answers every row by a model that has not seen it, and ``partial_report``
# says for each label how often it was answered, and how well.

from credalchain import cross_val_partial, partial_report

answers = cross_val_partial(search.best_estimator_, X, Y, cv=3)
print(partial_report(Y, answers))
