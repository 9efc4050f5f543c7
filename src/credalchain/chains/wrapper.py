"""CredalWrapper: any scikit-learn classifier in a chain.

Every kind of credal set gives three probabilities for a row: the centre, which is that of the
classifier, and the lower and upper end of the set at full width. The degree of caution s determines
how much of that width is used: nothing at 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_classifier

from credalchain._utils.array_types import FloatArray, Labels
from credalchain._utils.validation import (
    check_array,
    check_choice,
    check_instance,
    check_int,
    check_not_frozen,
)
from credalchain.chains.local import LocalWalk, earlier_labels, fit_each_label, with_labels
from credalchain.chains.protocol import ChainModel, ProbabilityWalk, Rows, Walk
from credalchain.chains.strategies import Strategy, merge_dropped, merge_widest
from credalchain.chains.tree import Bounds
from credalchain.labels import ABSTAIN
from credalchain.prediction import RANKS, Exactness, Order, Ranks
from credalchain.preprocessing import Categories, TableEncoder, check_encoder


def _bounds(centre: FloatArray, lower: Any, upper: Any, width: float) -> Bounds:
    """Return ``width`` times the set around the classifier's probability, which is its centre."""
    least, greatest = centre - width * (centre - lower), centre + width * (upper - centre)
    return np.clip(least, 0.0, 1.0), np.clip(greatest, 0.0, 1.0)


@dataclass
class Contaminated:
    """Epsilon-contamination: with weight epsilon = s / (1 + s) anything may be true."""

    fitted: Any

    def bounds(self, inputs: Any, s: float) -> Bounds:
        return _bounds(probability_of_one(self.fitted, inputs), 0.0, 1.0, s / (1 + s))


class Bagged:
    """Fit to all rows, and quantiles of fits to bootstrap samples of them."""

    def __init__(self, fitted: Any, members: Sequence[Any], quantiles: tuple[float, float]) -> None:
        self.fitted, self.members, self.quantiles = fitted, list(members), quantiles

    def bounds(self, inputs: Any, s: float) -> Bounds:
        centre = probability_of_one(self.fitted, inputs)
        if isinstance(self.fitted, Constant):  # bootstrap samples of a single class are equal
            half = self.fitted.half_width
            return _bounds(centre, centre - half, centre + half, s)
        p = np.array([probability_of_one(member, inputs) for member in self.members])
        lower, upper = np.quantile(p, self.quantiles, axis=0)
        return _bounds(centre, np.minimum(lower, centre), np.maximum(upper, centre), s)


LabelModel = Contaminated | Bagged


@dataclass
class Constant:
    """For a single class in training: as if there were one more row of each class.

    ``half_width`` is how far the probability moves if both of these had the same class.
    """

    p: float
    half_width: float


def probability_of_one(fitted: Any, inputs: Any) -> FloatArray:
    """Predict P(Y = 1) of each row."""
    if isinstance(fitted, Constant):
        return np.full(inputs.shape[0], fitted.p)
    both = np.asarray(fitted.predict_proba(inputs), dtype=np.float64)
    p = both[:, fitted.classes_.tolist().index(1)]
    invalid = p[~((p >= 0) & (p <= 1))]
    if len(invalid):
        raise ValueError(f"{fitted!r} gave {invalid[0]} as a probability.")
    return p


def fit_classifier(estimator: Any, inputs: Any, y: NDArray[Any], seed: int) -> Any:
    """Return a fitted clone, seeded if possible; a constant if there is a single class."""
    if len(np.unique(y)) < 2:
        return Constant(float((np.sum(y) + 1) / (len(y) + 2)), 1 / (len(y) + 2))
    copy = clone(estimator)
    seeds = {name: seed for name in copy.get_params() if name.split("__")[-1] == "random_state"}
    return copy.set_params(**seeds).fit(inputs, y)


_SEARCHED = {merge_widest: True, merge_dropped: False}  # whether open labels are filled in


class WrappedChainModel(ChainModel):
    """Model with a classifier for each label; None for a label without training data.

    ``before[j]`` are the labels whose columns follow the features in the input of label j.
    """

    shares_encoding = True
    can_leave_out = True  # a label left out is encoded as neither 0 nor 1
    unexplained_because = "a wrapped classifier does not say what each feature adds"

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
        check_encoder(self.encoder, n_features)
        check_int("budget", self.budget, at_least=2)
        m = check_int("n_labels", self.n_labels, len(self.models), len(self.models))
        check_int("the number of histories", len(self.before), m, m)
        row = np.zeros((1, n_features), dtype=object if self.encoder.words else float)
        row[0, list(self.encoder.words)] = None
        rows = np.repeat(self.encoder.encode_table(row), 3, axis=0)
        history = np.repeat(np.array([[ABSTAIN], [0], [1]], np.int8), m, axis=1)
        for j, (model, earlier) in enumerate(zip(self.models, self.before, strict=True)):
            check_array("before", earlier, np.int64, (None,), 0, m - 1)
            check_instance("a label's model", model, (Bagged, Contaminated, type(None)))
            lower, upper = self.bounds(rows, j, history, s=1.0)
            if not ((lower >= 0) & (lower <= upper) & (upper <= 1)).all():
                raise ValueError(f"label {j} has no valid probability.")

    @property
    def nested(self) -> bool:
        """True if bounds never narrow with s, as they may where open labels are left out."""
        return max(map(len, self.before)) <= self.max_filled

    @property
    def max_filled(self) -> int:
        """Greatest number of open labels that can be filled in within the budget."""
        return self.budget.bit_length() - 1

    def encode(self, X: Any) -> Any:
        return self.encoder.encode_table(X)

    def text_categories(self) -> Mapping[int, Categories]:
        return self.encoder.words

    def never_observed(self) -> NDArray[np.bool_]:
        return np.array([model is None for model in self.models])

    def begin(self, encoded: Any, *, s: float, strategy: Strategy, precise: bool) -> Walk:
        if strategy.merge in _SEARCHED:
            return WrappedWalk(self, encoded, s, searches=_SEARCHED[strategy.merge])
        return LocalWalk(self, encoded, self.n_labels, s, strategy)

    def bounds(self, X: Any, j: int, history: Labels, *, s: float) -> Bounds:
        """Compute the bounds of label j, given earlier labels (rows, m); open ones are left out."""
        model = self.models[j]
        if model is None:
            return np.zeros(len(history)), np.ones(len(history))
        return model.bounds(with_labels(X, history[:, self.before[j]]), s)


class WrappedWalk(ProbabilityWalk):
    """Batch of rows on its way along a chain of classifiers."""

    def __init__(self, model: WrappedChainModel, X: Any, s: float, *, searches: bool) -> None:
        super().__init__(int(X.shape[0]), model.n_labels)
        self._model, self._X, self._s = model, X, s
        self._max_filled = model.max_filled if searches else 0

    def exactness(self, j: int, rows: Rows) -> Ranks:
        n_open = (self._history[rows][:, self._model.before[j]] == ABSTAIN).sum(axis=1)
        left_out = n_open > self._max_filled
        ranks = RANKS[Exactness.APPROXIMATE], RANKS[Exactness.EXACT]
        return np.where(left_out, *ranks).astype(np.int8)

    def find_bounds(self, j: int, rows: Rows) -> FloatArray:
        """Compute bounds over all ways to fill in the open labels, as many as the budget allows."""
        history, before = self._history[rows], self._model.before[j]
        bounds = np.tile([np.inf, -np.inf], (len(rows), 1))
        n_filled = np.minimum((history == ABSTAIN).sum(axis=1), self._max_filled)
        for n in np.unique(n_filled).tolist():
            group = np.flatnonzero(n_filled == n)
            X, filled = self._X[rows[group]], history[group]
            first_open = np.argsort(filled[:, before] != ABSTAIN, axis=1, kind="stable")[:, :n]
            for values in product((0, 1), repeat=n):
                np.put_along_axis(filled, before[first_open], np.array([values], np.int8), axis=1)
                lower, upper = self._model.bounds(X, j, filled, s=self._s)
                bounds[group, 0] = np.minimum(bounds[group, 0], lower)
                bounds[group, 1] = np.maximum(bounds[group, 1], upper)
        return bounds


class CredalWrapper(BaseEstimator):
    """Base around any scikit-learn classifier with ``predict_proba``, one for every label.

    At s = 0 a label has the classifier's probability; a larger s uses more of the set around it,
    which comes from ``source``:

    - "bag": the classifier is also fitted to ``n_members`` bootstrap samples. s = 1 reaches from
      the lower to the upper of the ``quantiles`` of their probabilities. A label with one class in
      training has the probability (n1 + 1) / (n + 2), and 1 / (n + 2) to either side.
    - "contamination": with weight epsilon = s / (1 + s) any distribution is possible, so the bounds
      are (1 - epsilon) p and (1 - epsilon) p + epsilon. Needs no further fits.

    The classifier is a black box, so "branching" evaluates all completions of the open labels, at
    most ``budget`` of them; further open labels are encoded as missing, as in training.
    "marginalization" encodes every open label as missing. Bounds of both are reported as
    approximate.

    Parameters
    ----------
    estimator : classifier with predict_proba, default=None
        Clones of it are fitted, so it cannot be a ``FrozenEstimator``. None means
        ``LogisticRegression(max_iter=1000)``. Its ``random_state`` is set for each label from
        that of the chain.
    source : {"bag", "contamination"}, default="bag"
        Source of the set of probabilities, see above.
    n_members : int, default=10
        Number of bootstrap samples, for "bag".
    quantiles : pair of float, default=(0.0, 1.0)
        Lower and upper quantile of the members, for "bag"; 0 and 1 are the least and the greatest.
    budget : int, default=256
        Maximum number of completions of the open labels to evaluate for each row and label.

    See Also
    --------
    JointDecision : Take a classifier as it is, without bounds.
    LocalBase : Base class of custom bases.

    Notes
    -----
    The classifier sees the features, as numbers (text as a column of 0 and 1 for each category),
    and two columns for each earlier label, "is 0" and "is 1", both 0 where the label is missing in
    training. Sparse features stay sparse.

    Model files can store what skops trusts, such as linear models, naive Bayes and support vector
    machines, but no trees, neighbours or neural networks (for forests, use :class:`CredalForest`).

    References
    ----------
    P. Walley, Statistical Reasoning with Imprecise Probabilities, 1991 (contamination, as the
    linear-vacuous mixture).

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
        budget: int = 256,
    ) -> None:
        self.estimator = estimator
        self.source = source
        self.n_members = n_members
        self.quantiles = quantiles
        self.budget = budget

    def fit_chain(
        self, X: Any, Y: Labels, order: Order | None, *, chained: bool, rng: np.random.RandomState
    ) -> WrappedChainModel:
        """Fit every label on the features and the labels before it.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Validated training rows.
        Y : ndarray of int8, shape (n_samples, n_labels)
            Labels 0 and 1, and -1 for missing.
        order : ndarray of int, shape (n_labels,), or None
            Order of the labels. None if the model must serve any order.
        chained : bool
            If True, condition each label on the labels before it.
        rng : RandomState
            Random state from which the classifiers and the bootstrap samples are seeded.

        Returns
        -------
        WrappedChainModel
            Fitted model.
        """
        self.check_parameters()
        encoder = TableEncoder.learn(X)
        table = encoder.encode_table(X)
        before = earlier_labels(order, Y.shape[1], chained=chained, base_name="CredalWrapper")

        def fit(rows: Rows, y: Labels, earlier: NDArray[np.int64]) -> LabelModel:
            inputs = with_labels(table[rows], Y[rows][:, earlier])
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
        draws = rng.randint(len(y), size=(self.n_members, len(y)))
        low, high = self.quantiles
        return Bagged(fit(all_rows), [fit(rows) for rows in draws], (float(low), float(high)))

    def check_parameters(self) -> None:
        """Validate the parameters."""
        check_choice("source", self.source, ("bag", "contamination"))
        check_int("n_members", self.n_members)
        check_int("budget", self.budget, at_least=2)
        pair = np.asarray(self.quantiles, dtype=float) if np.size(self.quantiles) == 2 else None
        if pair is None or not 0 <= pair[0] <= pair[1] <= 1:
            raise ValueError(
                f"quantiles must be two numbers, 0 <= low <= high <= 1, got {self.quantiles!r}."
            )
        estimator = self.estimator
        check_not_frozen("estimator", estimator)
        if estimator is not None and not (
            hasattr(estimator, "predict_proba") and is_classifier(estimator)
        ):
            raise ValueError(
                f"estimator must be a classifier with predict_proba, got {estimator!r}; "
                "scikit-learn's CalibratedClassifierCV gives one to classifiers that have none."
            )
