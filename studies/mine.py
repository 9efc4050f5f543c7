"""A method of one's own: the share of neighbours that have a label, left open near one half."""

import numpy as np
from bases import Numbers
from sklearn.base import BaseEstimator
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


class Neighbours(BaseEstimator):
    """Answer a label if the share of neighbours that have it is alpha / 2 or more from one half."""

    caution_parameter = "alpha"
    larger_is_more_cautious = True

    def __init__(self, alpha=0.2, k=15):
        self.alpha, self.k = alpha, k

    def fit(self, X, Y):
        """Remember the rows; a missing label counts as half a neighbour."""
        model = make_pipeline(Numbers(), StandardScaler(), KNeighborsRegressor(self.k))
        self.model_ = model.fit(X, np.nan_to_num(np.asarray(Y, dtype=float), nan=0.5))
        return self

    def predict_path(self, X, values):
        """Return labels at each alpha, -1 where they are left open: (values, n, m)."""
        share = self.model_.predict(X)
        return np.stack([np.where(abs(share - 0.5) < a / 2, -1, share > 0.5) for a in values])
