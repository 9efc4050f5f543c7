"""CredalLogistic, the base of a chain that users configure."""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from credalchain.array_types import FloatArray, Labels
from credalchain.bases.inputs import TableEncoder, earlier_labels, fit_each_label, indicators
from credalchain.bases.logistic.model import CoefficientSet, LogisticChainModel, without_missing
from credalchain.bases.protocol import Rows
from credalchain.odds import probabilities
from credalchain.validation import check_choice, check_int


class CredalLogistic(BaseEstimator):
    """A logistic regression for every label, with a set of coefficient vectors.

    The set holds the fit to all rows and, for each of ``n_members`` members, the point s times as
    far from it: s = 0 is the fit alone, s = 1 reaches the members, and a larger s can only
    widen the bounds. Log-odds add up over the labels given, so the worst case over the labels left
    open is computed label by label, exactly and in linear time.

    Parameters
    ----------
    source : {"bag", "posterior"}, default="bag"
        Where the members come from: fits to bootstrap samples of the rows, or draws from the
        normal approximation of the posterior of the coefficients.
    n_members : int, default=20
    C : float, default=1.0
        Inverse strength of the L2 penalty, as in scikit-learn's ``LogisticRegression``.

    Notes
    -----
    A column of text becomes a column of 0 and 1 for each category. Features should be of similar
    scale: put a ``StandardScaler`` before the chain. An earlier label has one coefficient for 0 and
    one for 1, so where it is missing in training it contributes 0, rather than being filled in;
    "marginalization" treats a label left open in the same way.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier, CredalLogistic
    >>> X = [[-2.0], [-1.0], [-0.5], [0.5], [1.0], [2.0]] * 4
    >>> Y = [[0, 0], [0, 0], [0, 1], [1, 1], [1, 1], [1, 0]] * 4
    >>> chain = CredalChainClassifier(CredalLogistic(), s=1.0, order="given", random_state=0)
    >>> chain.fit(X, Y).predict_partial([[-2.0], [0.0], [2.0]])[:, 0].tolist()
    [0, -1, 1]
    """

    supports_partial_fit = False

    def __init__(self, source: str = "bag", *, n_members: int = 20, C: float = 1.0) -> None:
        self.source = source
        self.n_members = n_members
        self.C = C

    def fit_chain(
        self,
        X: Any,
        Y: Labels,
        order: NDArray[np.int64] | None,
        *,
        chained: bool,
        rng: np.random.RandomState,
    ) -> LogisticChainModel:
        """Fit every label on the features and the labels before it."""
        self.check_parameters()
        encoder = TableEncoder.learn(X, one_hot=True)
        encoded = without_missing(encoder.encode(X))
        before = earlier_labels(order, Y.shape[1], chained=chained, base_name="CredalLogistic")

        def fit(rows: Rows, y: Labels, earlier: NDArray[np.int64]) -> CoefficientSet:
            inputs = np.hstack([encoded[rows], indicators(Y[rows][:, earlier])])
            vectors = self._vectors(inputs, y, rng)
            return _unpacked(vectors, encoded.shape[1], earlier, Y.shape[1])

        return LogisticChainModel(fit_each_label(Y, before, fit), encoder)

    def _vectors(self, inputs: FloatArray, y: Labels, rng: np.random.RandomState) -> FloatArray:
        """Coefficients and intercept of the fit and of every member, (members, inputs + 1)."""
        fit = self._fit(inputs, y)
        if len(np.unique(y)) == 1:  # bootstrap samples are equal: shift by half a row
            n1, n0, width = np.sum(y == 1) + 1.0, np.sum(y == 0) + 1.0, inputs.shape[1]
            ends = [np.log((n1 - shift) / (n0 + shift)) for shift in (0.5, -0.5)]
            return np.vstack([fit, *(np.append(np.zeros(width), end) for end in ends)])
        if self.source == "posterior":
            return np.vstack([fit, _posterior(inputs, fit, self.C, self.n_members, rng)])
        draws = rng.randint(len(y), size=(self.n_members, len(y)))
        return np.vstack([fit, *(self._fit(inputs[rows], y[rows]) for rows in draws)])

    def _fit(self, inputs: FloatArray, y: Labels) -> FloatArray:
        from sklearn.linear_model import LogisticRegression  # slow to import

        classes = np.unique(y)
        if len(classes) == 1:  # as if there were one more row of each class
            odds = (np.sum(y == 1) + 1) / (np.sum(y == 0) + 1)
            return np.append(np.zeros(inputs.shape[1]), np.log(odds))
        fitted = LogisticRegression(C=self.C, max_iter=1000).fit(inputs, y)
        return np.append(fitted.coef_[0], fitted.intercept_[0])

    def check_parameters(self) -> None:
        """Refuse parameters that fit or predictions would refuse."""
        check_choice("source", self.source, ("bag", "posterior"))
        check_int("n_members", self.n_members)
        if not (isinstance(self.C, Real) and 0 < self.C < np.inf):
            raise ValueError(f"C must be a positive number, got {self.C!r}.")


def _unpacked(
    vectors: FloatArray, n_features: int, earlier: NDArray[np.int64], n_labels: int
) -> CoefficientSet:
    labels = np.zeros((len(vectors), n_labels, 2))
    labels[:, earlier] = vectors[:, n_features:-1].reshape(len(vectors), -1, 2)
    return CoefficientSet(vectors[:, :n_features].copy(), vectors[:, -1].copy(), labels)


def _posterior(
    inputs: FloatArray, fit: FloatArray, C: float, n: int, rng: np.random.RandomState
) -> FloatArray:
    """Draws from the normal distribution around the fit with the curvature of its posterior."""
    design = np.hstack([inputs, np.ones((len(inputs), 1))])
    p = probabilities(design @ fit)
    precision = (design * (p * (1 - p))[:, None]).T @ design
    precision[np.diag_indices_from(precision)] += np.append(np.full(len(fit) - 1, 1 / C), 1e-6)
    try:
        root = np.linalg.cholesky(precision)
    except np.linalg.LinAlgError:
        raise ValueError(
            "the posterior of the coefficients is too flat to draw from: columns of X depend on "
            f"each other and C={C!r} hardly holds them; use a smaller C, or source='bag'."
        ) from None
    drawn = np.linalg.solve(root.T, rng.standard_normal((len(fit), n)))
    return fit + drawn.T
