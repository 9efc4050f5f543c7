"""CredalWrapper, the base that makes any scikit-learn classifier credal."""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier

from credalchain.array_types import Labels
from credalchain.bases.inputs import (
    TableEncoder,
    earlier_labels,
    fit_each_label,
    indicators,
    side_by_side,
)
from credalchain.bases.protocol import Rows
from credalchain.bases.wrapper.model import WrappedChainModel
from credalchain.bases.wrapper.sets import (
    Bagged,
    Contaminated,
    LabelModel,
    VennAbersCalibrated,
    fit_classifier,
)
from credalchain.validation import check_can_be_fitted, check_choice, check_int

_SOURCES = ("bag", "contamination", "venn-abers")


class CredalWrapper(BaseEstimator):
    """Any scikit-learn classifier with ``predict_proba``, one for every label, made credal.

    At s = 0 a label has the classifier's probability (with "venn-abers": the calibrated one);
    a larger s uses more of the set around it, which comes from ``source``:

    - "bag": the classifier is also fitted to ``n_members`` bootstrap samples. s = 1 reaches from
      the lower to the upper of the ``quantiles`` of their probabilities. A label with one class in
      training has the probability (n1 + 1) / (n + 2), and 1 / (n + 2) to either side.
    - "contamination": with weight epsilon = s / (1 + s) anything may be true, so the bounds are
      (1 - epsilon) p and (1 - epsilon) p + epsilon. Costs nothing.
    - "venn-abers": a share ``calibration`` of the rows is kept back to calibrate. s = 1 is the
      interval between the two probabilities of an inductive Venn-Abers predictor. Needs the
      package venn-abers.

    A classifier is a black box, so "branching" tries every way to fill in the labels left open,
    if these are at most ``budget``. Beyond that it uses beam search, which may miss the worst
    case: the exactness of such a prediction is "inner". With "marginalization" the classifier gets
    no information about an open label, just as where it is missing in training; this is
    reported as approximate.

    Parameters
    ----------
    estimator : classifier with predict_proba, default=None
        Copies of it are fitted, so it cannot be a ``FrozenEstimator``. None means
        ``LogisticRegression(max_iter=1000)``. Its ``random_state`` is set for each label from
        that of the chain.
    source : {"bag", "contamination", "venn-abers"}, default="bag"
    n_members : int, default=10
        Bootstrap samples, for "bag".
    quantiles : pair of float, default=(0.0, 1.0)
        Lower and upper quantile of the members, for "bag"; 0 and 1 are the least and the greatest.
    calibration : float, default=0.3
        Share of rows kept back, for "venn-abers".
    budget : int, default=256
        Ways to fill in open labels that are tried for each row and label.

    Notes
    -----
    The classifier sees the features, as numbers (text as a column of 0 and 1 for each category),
    and two columns for each earlier label, "is 0" and "is 1", both 0 where the label is missing in
    training. Sparse features stay sparse.
    Model files hold what skops trusts: linear models, naive Bayes, support vector machines and
    the like, but no trees, neighbours or networks (for forests there is :class:`CredalForest`).

    References
    ----------
    P. Walley, Statistical Reasoning with Imprecise Probabilities, 1991 (contamination, as the
    linear-vacuous mixture). V. Vovk, I. Petej and V. Fedorova, Large-scale probabilistic
    predictors with and without guarantees of validity, NIPS 2015 (Venn-Abers).

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from credalchain import CredalChainClassifier, CredalWrapper
    >>> X = [[-2.0], [-1.0], [-0.5], [0.5], [1.0], [2.0]] * 4
    >>> Y = [[0, 0], [0, 0], [0, 1], [1, 1], [1, 1], [1, 0]] * 4
    >>> base = CredalWrapper(GaussianNB(), source="contamination")
    >>> chain = CredalChainClassifier(base, s=0.5, order="given").fit(X, Y)
    >>> chain.predict_partial([[-2.0], [0.0], [2.0]])[:, 0].tolist()
    [0, -1, 1]
    """

    supports_partial_fit = False

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        source: str = "bag",
        *,
        n_members: int = 10,
        quantiles: tuple[float, float] = (0.0, 1.0),
        calibration: float = 0.3,
        budget: int = 256,
    ) -> None:
        self.estimator = estimator
        self.source = source
        self.n_members = n_members
        self.quantiles = quantiles
        self.calibration = calibration
        self.budget = budget

    @property
    def no_sample_weight(self) -> str:
        """Why rows cannot be weighted, "" if they can."""
        if self.source != "venn-abers":
            return ""
        return "Venn-Abers calibrates on rows kept apart, and a repeated row may be on both sides."

    def fit_chain(
        self,
        X: Any,
        Y: Labels,
        order: NDArray[np.int64] | None,
        *,
        chained: bool,
        rng: np.random.RandomState,
    ) -> WrappedChainModel:
        """Fit every label on the features and the labels before it."""
        self.check_parameters()
        encoder = TableEncoder.learn(X, one_hot=True)
        table = encoder.encode_table(X)
        before = earlier_labels(order, Y.shape[1], chained=chained, base_name="CredalWrapper")

        def fit(rows: Rows, y: Labels, earlier: NDArray[np.int64]) -> LabelModel:
            inputs = side_by_side(table[rows], indicators(Y[rows][:, earlier]))
            return self._fit_label(inputs, y, np.random.RandomState(rng.randint(2**31 - 1)))

        return WrappedChainModel(fit_each_label(Y, before, fit), before, encoder, int(self.budget))

    def _fit_label(self, inputs: Any, y: Labels, rng: np.random.RandomState) -> LabelModel:
        def fit(rows: NDArray[np.int64]) -> Any:
            return fit_classifier(unfitted, inputs[rows], y[rows], rng.randint(2**31 - 1))

        unfitted = self.estimator
        if unfitted is None:
            from sklearn.linear_model import LogisticRegression  # slow to import

            unfitted = LogisticRegression(max_iter=1000)
        all_rows = np.arange(len(y))
        if self.source == "contamination":
            return Contaminated(fit(all_rows))
        if self.source == "bag":
            draws = rng.randint(len(y), size=(self.n_members, len(y)))
            low, high = self.quantiles
            return Bagged(fit(all_rows), [fit(rows) for rows in draws], (float(low), float(high)))
        shuffled = rng.permutation(len(y))
        n_calibration = int(np.ceil(self.calibration * len(y)))
        calibration_rows, training_rows = shuffled[:n_calibration], shuffled[n_calibration:]
        if len(training_rows) == 0:
            raise ValueError(
                f"source='venn-abers' keeps rows back to calibrate, and a label has {len(y)} only."
            )
        fitted = fit(training_rows)
        return VennAbersCalibrated.fit(fitted, inputs[calibration_rows], y[calibration_rows])

    def check_parameters(self) -> None:
        """Refuse parameters that fit or predictions would refuse."""
        check_choice("source", self.source, _SOURCES)
        check_int("n_members", self.n_members)
        check_int("budget", self.budget, at_least=2)
        pair = np.asarray(self.quantiles, dtype=float) if np.size(self.quantiles) == 2 else None
        if pair is None or not 0 <= pair[0] <= pair[1] <= 1:
            raise ValueError(
                f"quantiles must be two numbers, 0 <= low <= high <= 1, got {self.quantiles!r}."
            )
        if not (isinstance(self.calibration, Real) and 0 < self.calibration < 1):
            raise ValueError(
                f"calibration must be a share between 0 and 1, got {self.calibration!r}."
            )
        estimator = self.estimator
        check_can_be_fitted("estimator", estimator)
        if estimator is not None and not (
            hasattr(estimator, "predict_proba") and is_classifier(estimator)
        ):
            raise ValueError(
                f"estimator must be a classifier with predict_proba, got {estimator!r}; "
                "scikit-learn's CalibratedClassifierCV gives one to classifiers that have none."
            )
