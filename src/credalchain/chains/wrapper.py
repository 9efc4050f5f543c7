"""CredalWrapper: any scikit-learn classifier in a chain.

A classifier is a black box, so the widest bounds over all ways to fill in the labels left open are
searched: all completions are evaluated if they are few. Otherwise beam search fills in one label
after the other and keeps the best completions; it can miss the worst case but never exceed it, so
its bounds lie inside the true ones.
"""

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier

from credalchain._utils.array_types import FloatArray, Labels
from credalchain._utils.validation import (
    check_array,
    check_can_be_fitted,
    check_choice,
    check_instance,
    check_int,
)
from credalchain.chains.credal_sets import (
    Bagged,
    Contaminated,
    LabelModel,
    VennAbersCalibrated,
    fit_classifier,
)
from credalchain.chains.inputs import earlier_labels, fit_each_label, indicators, side_by_side
from credalchain.chains.local import LocalWalk
from credalchain.chains.protocol import ChainModel, ProbabilityWalk, Rows, Walk
from credalchain.chains.strategies import Strategy, merge_dropped, merge_widest
from credalchain.chains.tree import Bounds
from credalchain.labels import ABSTAIN
from credalchain.prediction import RANKS, Exactness, Ranks
from credalchain.preprocessing import Categories, TableEncoder

Evaluate = Callable[[Rows, Labels], tuple[FloatArray, FloatArray]]
"""Lower and upper probability of some rows for these histories; open labels are left out."""


def widest_bounds(
    evaluate: Evaluate, history: Labels, budget: int
) -> tuple[FloatArray, FloatArray]:
    """The least lower and greatest upper bound of each row.

    Parameters
    ----------
    evaluate : callable
    history : int8, (n, earlier labels)
        0, 1, or -1 for a label left open.
    budget : int
        Most completions evaluated for each row and bound (but at least two per open label).
    """
    lower, upper = np.empty((2, len(history)))
    n_open = (history == ABSTAIN).sum(axis=1)
    enumerable = is_enumerable(n_open, budget)
    for count in np.unique(n_open).tolist():
        rows = np.flatnonzero(n_open == count)
        open_labels = np.argsort(history[rows] != ABSTAIN, axis=1, kind="stable")[:, :count]
        if enumerable[rows[0]]:
            lower[rows], upper[rows] = _enumerate(evaluate, rows, history[rows], open_labels)
        else:
            width = max(1, budget // (2 * count))
            beam_args = rows, history[rows], open_labels, width
            lower[rows] = _beam(lambda *args: evaluate(*args)[0], *beam_args)
            upper[rows] = -_beam(lambda *args: -evaluate(*args)[1], *beam_args)
    return lower, upper


def is_enumerable(n_open: NDArray[np.int64], budget: int) -> NDArray[np.bool_]:
    """Whether all completions of so many open labels are within the budget."""
    return np.asarray(n_open <= budget.bit_length() - 1)  # 2 ** n_open <= budget


def _enumerate(
    evaluate: Evaluate, rows: Rows, history: Labels, open_labels: NDArray[np.int64]
) -> tuple[FloatArray, FloatArray]:
    lower, upper = np.full(len(rows), np.inf), np.full(len(rows), -np.inf)
    bits = np.arange(open_labels.shape[1])
    for completion in range(2 ** open_labels.shape[1]):
        filled = history.copy()
        np.put_along_axis(
            filled, open_labels, (completion >> bits & 1).astype(np.int8)[None], axis=1
        )
        low, high = evaluate(rows, filled)
        lower, upper = np.minimum(lower, low), np.maximum(upper, high)
    return lower, upper


def _beam(
    objective: Callable[[Rows, Labels], FloatArray],
    rows: Rows,
    history: Labels,
    open_labels: NDArray[np.int64],
    width: int,
) -> FloatArray:
    """The least value found by beam search of this width, for each row."""
    beam = history[:, None, :]  # (rows, kept, earlier labels)
    objective_values = np.empty((len(rows), 1))
    for position in range(open_labels.shape[1]):
        grown = np.repeat(beam, 2, axis=1)
        columns = np.broadcast_to(open_labels[:, None, position, None], (*grown.shape[:2], 1))
        values = np.tile(np.array([0, 1], dtype=np.int8), beam.shape[1])
        np.put_along_axis(grown, columns, values[None, :, None], axis=2)
        flat = objective(np.repeat(rows, grown.shape[1]), grown.reshape(-1, grown.shape[2]))
        objective_values = flat.reshape(len(rows), -1)
        best = np.argsort(objective_values, axis=1, kind="stable")[:, :width]
        beam = np.take_along_axis(grown, best[:, :, None], axis=1)
    return np.asarray(objective_values.min(axis=1))


__all__ = ["is_enumerable", "widest_bounds"]


_LABEL_MODELS = (Bagged, Contaminated, VennAbersCalibrated)
_SEARCHED = {merge_widest: True, merge_dropped: False}  # whether open labels are filled in


class WrappedChainModel(ChainModel):
    """A classifier for each label; None for a label without training data.

    ``before[j]`` are the labels whose columns follow the features in the input of label j.
    """

    shares_encoding = True
    why_no_reasons = "a wrapped classifier does not say what each feature adds"

    def __init__(
        self,
        models: Sequence[LabelModel | None],
        before: Sequence[NDArray[np.int64]],
        encoder: TableEncoder,
        budget: int,
    ) -> None:
        self.models, self.before = list(models), list(before)
        self.encoder, self.budget = encoder, budget
        self.n_labels = len(self.models)

    def check_state(self, n_features: int) -> None:
        """Validate a stored model: it must have bounds for a row of zeros."""
        check_instance("encoder", self.encoder, TableEncoder)
        self.encoder.check_state(one_hot=True)
        check_int("n_columns", self.encoder.n_columns, n_features, n_features)
        check_int("budget", self.budget, at_least=2)
        m = check_int("n_labels", self.n_labels, len(self.models), len(self.models))
        check_int("the number of histories", len(self.before), m, m)
        row = np.zeros((1, n_features), dtype=object if self.encoder.words else float)
        row[0, list(self.encoder.words)] = None
        rows = np.repeat(self.encoder.encode_table(row), 3, axis=0)
        for j, (model, earlier) in enumerate(zip(self.models, self.before, strict=True)):
            check_array("before", earlier, np.int64, (None,), 0, m - 1)
            check_instance("a label's model", model, (*_LABEL_MODELS, type(None)))
            history = np.repeat(np.array([[ABSTAIN], [0], [1]], np.int8), len(earlier), axis=1)
            lower, upper = self.bounds(j, rows, history, s=1.0)
            if not ((lower >= 0) & (lower <= upper) & (upper <= 1)).all():
                raise ValueError(f"label {j} has no valid probability.")

    @property
    def nested(self) -> bool:
        """Whether bounds never narrow with s: beam search may give narrower ones at a larger s."""
        n_earlier = np.array([len(earlier) for earlier in self.before])
        return bool(is_enumerable(n_earlier, self.budget).all())

    def encode(self, X: Any) -> Any:
        return self.encoder.encode_table(X)

    def text_categories(self) -> Mapping[int, Categories]:
        return self.encoder.words

    def never_observed(self) -> NDArray[np.bool_]:
        return np.array([model is None for model in self.models])

    def begin(self, encoded: Any, *, s: float, strategy: Strategy, precise: bool) -> Walk:
        if strategy.merge in _SEARCHED:
            return WrappedWalk(self, encoded, s, searches=_SEARCHED[strategy.merge])
        return LocalWalk(WrapperLocalModel(self), encoded, self.n_labels, s, strategy)

    def bounds(self, j: int, X: Any, history: Labels, s: float) -> Bounds:
        """Label j of each row, given earlier labels (rows, earlier); open ones are left out."""
        model = self.models[j]
        if model is None:
            return np.zeros(len(history)), np.ones(len(history))
        interval = model.full_interval(side_by_side(X, indicators(history)))
        return interval.bounds(model.width(s))


class WrappedWalk(ProbabilityWalk):
    """A batch on its way along a chain of classifiers."""

    def __init__(self, model: WrappedChainModel, X: Any, s: float, *, searches: bool) -> None:
        super().__init__(int(X.shape[0]), model.n_labels)
        self._model, self._X, self._s, self._searches = model, X, s, searches

    def exactness(self, j: int, rows: Rows) -> Ranks:
        n_open = (self._history[rows][:, self._model.before[j]] == ABSTAIN).sum(axis=1)
        if self._searches:
            rank, inexact = RANKS[Exactness.INNER], ~is_enumerable(n_open, self._model.budget)
        else:
            rank, inexact = RANKS[Exactness.APPROXIMATE], n_open > 0
        return np.where(inexact, rank, RANKS[Exactness.EXACT]).astype(np.int8)

    def find_bounds(self, j: int, rows: Rows) -> FloatArray:
        history = self._history[rows][:, self._model.before[j]]
        X = self._X[rows]

        def evaluate(positions: Rows, earlier: Labels) -> Bounds:
            return self._model.bounds(j, X[positions], earlier, self._s)

        if not self._searches or not (history == ABSTAIN).any():
            return np.column_stack(evaluate(np.arange(len(rows)), history))
        return np.column_stack(widest_bounds(evaluate, history, self._model.budget))


class WrapperLocalModel:
    """The classifiers given complete histories; a label left out is encoded as neither 0 nor 1."""

    can_leave_out = True

    def __init__(self, model: WrappedChainModel) -> None:
        self._model = model

    def bounds(self, X: Any, j: int, history: Labels, *, s: float) -> Bounds:
        return self._model.bounds(j, X, history[:, self._model.before[j]], s)


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
