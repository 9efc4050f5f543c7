"""Other models that put weights on the label vectors of training rows."""

from collections.abc import Callable
from numbers import Real
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.optimize import minimize_scalar
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags

from credalchain.bases.protocol import Labels
from credalchain.seeds import seeded
from credalchain.validation import check_whole

FloatArray = NDArray[np.float64]
Matrix = NDArray[np.float32]

_FLOOR = 0.02  # share of all vectors alike, so that no row's score is zero
_WIDTHS = (0.5, 1.0, 2.0)  # times the median of the squared distances
_RIDGES = (3.0, 1.0)  # the first with all widths, the other with the best
_LEAST_SEEN = 0.1  # of the rows must have a vector that another row has
_LEAST_WEIGHT = 2e-3  # smaller weights of a row are given to the others


class FittedMember(Protocol):
    """Weights on label vectors for new rows.

    ``name`` is for people. A member whose weights are estimates by chance may say so with
    ``is_exact = False``.
    """

    name: str

    def weights(self, X: Matrix) -> Any:
        """Sparse (n, K); rows add up to 1."""
        ...


class VectorMember(Protocol):
    """An unfitted member."""

    def fit_vectors(
        self, X: Matrix, vector_of: NDArray[np.int32], vectors: Labels, rng: np.random.RandomState
    ) -> tuple[FittedMember, Any] | None:
        """Learn which of the label ``vectors`` (K, m) a row has; None if there is nothing to learn.

        Rows are complete; further vectors may hold -1 for a label that is missing. Also weights
        for the training rows, sparse (n, K), each by a model that was not fitted on the row.
        """
        ...


def checked_weights(weights: Any, n: int, n_vectors: int, who: Any) -> Any:
    """Weights of a member as a sparse matrix; what are no probabilities is refused."""
    try:
        found = sparse.csr_array(weights)
    except (TypeError, ValueError):
        found = sparse.csr_array((0, 0))
    sums = np.asarray(found.sum(axis=1)).reshape(-1) if found.ndim == 2 else np.empty(0)
    sound = found.shape == (n, n_vectors) and np.isfinite(found.data).all()
    if not sound or (found.data < 0).any() or (np.abs(sums - 1) > 1e-6).any():
        raise ValueError(
            f"a member must give weights of shape {(n, n_vectors)} that are not negative and add "
            f"up to 1 in every row, a row of X and a label vector each; {type(who).__name__} gave "
            f"an array of shape {found.shape}, with rows that add up to "
            f"{sums.min(initial=np.inf):.3g} at least and {sums.max(initial=-np.inf):.3g} at most."
        )
    return found


def on_vectors(p: FloatArray, classes: NDArray[np.int64], n_vectors: int) -> Any:
    """Probabilities of some vectors (n, C) as sparse weights on all, (n, K).

    Small ones are left out, which spares most of the work that follows.
    """
    p = np.where(p < np.minimum(_LEAST_WEIGHT, p.max(axis=1, keepdims=True)), 0.0, p)
    p /= p.sum(axis=1, keepdims=True)
    row, at = np.nonzero(p)
    return sparse.csr_array((p[row, at], (row, classes[at])), shape=(len(p), n_vectors))


class KernelPowerset(BaseEstimator):
    """Label vectors as classes, learned by kernel least squares.

    A ridge regression predicts for every vector whether a row has it. The positive part of that,
    raised to a power and normalised, is its probability (least-squares probabilistic
    classification). Rows left out have a closed form, by which the width of the Gaussian kernel,
    the ridge and the power are chosen. Columns are standardised; a missing value is its column's
    mean.

    Parameters
    ----------
    max_centres : int, default=2000
        Rows that kernels stand on, drawn at random where there are more. Fitting takes time in
        proportion to rows * max_centres ** 2, and a few arrays of rows * max_centres numbers.
    max_vectors : int, default=300
        The most frequent label vectors that are learned. Vectors that occur once never are.
    ridge : float, default=None
        How much coefficients are held back. None chooses between 1 and 3.

    References
    ----------
    M. Sugiyama, Superfast-trainable multi-class probabilistic classifier by least-squares
    posterior fitting, IEICE Transactions on Information and Systems E93-D, 2010.
    """

    def __init__(
        self, *, max_centres: int = 2000, max_vectors: int = 300, ridge: float | None = None
    ) -> None:
        self.max_centres = max_centres
        self.max_vectors = max_vectors
        self.ridge = ridge

    def check_parameters(self) -> None:
        """Refuse values that cannot be used, before anything is fitted."""
        check_whole("max_centres", self.max_centres, at_least=2)
        check_whole("max_vectors", self.max_vectors, at_least=2)
        is_number = isinstance(self.ridge, Real) and not isinstance(self.ridge, bool)
        if self.ridge is not None and not (is_number and 0 < self.ridge < np.inf):
            raise ValueError(f"ridge must be None or a positive number, got {self.ridge!r}.")

    def fit_vectors(
        self, X: Matrix, vector_of: NDArray[np.int32], vectors: Labels, rng: np.random.RandomState
    ) -> tuple["FittedKernel", Any] | None:
        """None where hardly any label vector occurs twice."""
        n_vectors = len(vectors)
        classes, place = frequent_vectors(vector_of, n_vectors, self.max_vectors)
        learned = place >= 0
        if len(classes) < 2 or learned.mean() < _LEAST_SEEN:
            return None
        standardizer = Standardizer.learn(X)
        Z = standardizer.apply(X)
        # a row that comes again would be a centre twice, and the kernel matrix singular
        chosen = np.sort(np.unique(Z, axis=0, return_index=True)[1])
        if len(chosen) > self.max_centres:
            chosen = chosen[np.sort(rng.choice(len(chosen), self.max_centres, replace=False))]
        centres = Z[chosen]
        targets = np.zeros((len(Z), len(classes)), dtype=np.float32)
        targets[np.flatnonzero(learned), place[learned]] = 1.0
        distances = _squared_distances(Z, centres)
        middle = float(np.median(distances[:: max(1, len(Z) // 500)])) or 1.0
        prior = targets.mean(axis=0) / targets.mean(axis=0).sum()
        ridges = _RIDGES if self.ridge is None else (self.ridge,)
        best = min(
            (_try(distances, centres, targets, place, w / middle, ridges[0]) for w in _WIDTHS),
            key=attrgetter("loss"),
        )
        for ridge in ridges[1:]:
            other = _try(distances, centres, targets, place, best.gamma, ridge)
            best = min(best, other, key=attrgetter("loss"))
        fitted = FittedKernel(
            standardizer,
            centres,
            best.gamma,
            best.coefficients,
            best.power,
            prior,
            classes,
            n_vectors,
        )
        held_out = fitted.normalised(best.left_out)
        return fitted, on_vectors(held_out, classes, n_vectors)


def frequent_vectors(
    vector_of: NDArray[np.int32], n_vectors: int, at_most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The most frequent vectors that occur at least twice, and each row's place among them.

    -1 for a row whose vector is not among them.
    """
    times = np.bincount(vector_of, minlength=n_vectors)
    classes = np.sort(np.argsort(-times, kind="stable")[:at_most])
    classes = classes[times[classes] > 1]
    place = np.full(n_vectors, -1)
    place[classes] = np.arange(len(classes))
    return classes, place[vector_of]


class Standardizer:
    """Columns with mean 0 and variance 1; or as they are, and missing values become the mean."""

    def __init__(self, mean: Matrix, deviation: Matrix, centred: bool = True) -> None:
        self.mean, self.deviation, self.centred = mean, deviation, centred

    @classmethod
    def learn(cls, X: Matrix) -> "Standardizer":
        missing = np.isnan(X)
        n = np.maximum((~missing).sum(axis=0), 1)
        mean = np.where(missing, 0.0, X).sum(axis=0, dtype=np.float64) / n
        square = np.where(missing, 0.0, (X - mean) ** 2).sum(axis=0) / n
        deviation = np.sqrt(np.where(square > 0, square, 1.0))
        return cls(mean.astype(np.float32), deviation.astype(np.float32))

    def apply(self, X: Matrix) -> Matrix:
        if not self.centred:
            return np.where(np.isnan(X), self.mean, X).astype(np.float32)
        Z = (X - self.mean) / self.deviation
        return np.where(np.isnan(Z), np.float32(0), Z).astype(np.float32)


def _squared_distances(
    A: Matrix, B: Matrix, product: Callable[[Matrix, Matrix], Matrix] = np.matmul
) -> Matrix:
    lengths = np.square(A).sum(axis=1)[:, None] + np.square(B).sum(axis=1)
    return np.asarray(np.maximum(lengths - 2 * product(A, B.T), 0), dtype=np.float32)


def _ridge(
    kernel: Matrix, centres: Matrix, gamma: float, targets: Matrix, ridge: float
) -> tuple[Matrix, Matrix]:
    """Coefficients (centres, classes), and what each row would get if it were left out."""
    if len(centres) == len(kernel):
        kernel[np.diag_indices_from(kernel)] += np.float32(ridge)
        inverse = _inverse(kernel)
        coefficients = inverse @ targets
        return coefficients, targets - coefficients / np.diag(inverse)[:, None]
    among = np.exp(-np.float32(gamma) * _squared_distances(centres, centres))
    normal = kernel.T @ kernel + np.float32(ridge) * among
    normal[np.diag_indices_from(normal)] += np.float32(1e-4 * np.trace(normal) / len(normal))
    smoother = kernel @ _inverse(normal)
    coefficients = smoother.T @ targets
    own = np.minimum(np.einsum("ij,ij->i", smoother, kernel), 0.99)[:, None]
    left_out = (kernel @ coefficients - own * targets) / (1 - own)
    return np.asarray(coefficients, np.float32), np.asarray(left_out, np.float32)


class _Tried(NamedTuple):
    """A kernel machine with one width and ridge, and how well it does on rows left out."""

    loss: float
    gamma: float
    power: float
    coefficients: Matrix
    left_out: Matrix


def _try(
    distances: Matrix,
    centres: Matrix,
    targets: Matrix,
    place: NDArray[np.int64],
    gamma: float,
    ridge: float,
) -> _Tried:
    kernel = np.exp(-np.float32(gamma) * distances)
    coefficients, left_out = _ridge(kernel, centres, gamma, targets, ridge)
    loss, power = _best_power(left_out, place)
    return _Tried(loss, gamma, power, coefficients, left_out)


def _inverse(matrix: Matrix) -> Matrix:
    """Of a symmetric positive definite matrix."""
    factor, not_definite = linalg.lapack.spotrf(matrix, lower=1)
    inverse, failed = linalg.lapack.spotri(factor, lower=1)
    if not_definite or failed:  # by rounding
        return np.asarray(linalg.pinvh(matrix.astype(np.float64)), dtype=np.float32)
    lower = np.tril(inverse)
    return np.asarray(lower + np.tril(inverse, -1).T, dtype=np.float32)


def _best_power(scores: Matrix, place: NDArray[np.int64]) -> tuple[float, float]:
    """Least log-loss of rows left out, and the power with which positive scores reach it."""
    rows = np.flatnonzero(place >= 0)
    with np.errstate(divide="ignore"):
        logs = np.log(np.maximum(scores[rows], 0)).astype(np.float64)
    at = np.arange(len(rows)), place[rows]

    def loss(power: float) -> float:
        raised = np.exp(power * logs)
        total = np.maximum(raised.sum(axis=1), np.finfo(float).tiny)
        p = (1 - _FLOOR) * raised[at] / total + _FLOOR / scores.shape[1]
        return float(-np.log(p).mean())

    found = minimize_scalar(loss, bounds=(0.5, 5.0), method="bounded", options={"xatol": 0.02})
    return float(found.fun), float(found.x)


class FittedKernel:
    """Kernels on centres, with coefficients for every label vector that was learned."""

    name = "kernel"

    def __init__(
        self,
        standardizer: Standardizer,
        centres: Matrix,
        gamma: float,
        coefficients: Matrix,
        power: float,
        prior: Matrix,
        classes: NDArray[np.int64],
        n_vectors: int,
    ) -> None:
        self.standardizer, self.centres, self.gamma = standardizer, centres, gamma
        self.coefficients, self.power, self.prior = coefficients, power, prior
        self.classes, self.n_vectors = classes, n_vectors

    def weights(self, X: Matrix) -> Any:
        from credalchain.bases.products import product_by_rows  # imports numba

        Z = self.standardizer.apply(X)
        kernel = _squared_distances(Z, self.centres, product_by_rows)
        np.exp(np.multiply(kernel, -np.float32(self.gamma), out=kernel), out=kernel)
        scores = product_by_rows(kernel, self.coefficients)
        return on_vectors(self.normalised(scores), self.classes, self.n_vectors)

    def normalised(self, scores: Matrix) -> FloatArray:
        """Probabilities from scores; those of training where no score is positive."""
        p = np.maximum(scores, 0).astype(np.float64) ** self.power
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0, p / np.where(total > 0, total, 1.0), self.prior)


class LabelPowerset(BaseEstimator):
    """Label vectors as the classes of any scikit-learn classifier with ``predict_proba``.

    Parameters
    ----------
    estimator : classifier, default=None
        None is logistic regression on standardised columns. Missing values become the mean of their
        column, unless the classifier takes them.
    n_folds : int, default=3
        For its share: how well it does on rows that it was not fitted on.
    max_vectors : int, default=300
        The most frequent label vectors that are learned. Vectors that occur once never are.

    References
    ----------
    M. R. Boutell, J. Luo, X. Shen and C. M. Brown, Learning multi-label scene classification,
    Pattern Recognition 37, 2004.
    """

    def __init__(
        self, estimator: BaseEstimator | None = None, *, n_folds: int = 3, max_vectors: int = 300
    ) -> None:
        self.estimator = estimator
        self.n_folds = n_folds
        self.max_vectors = max_vectors

    def check_parameters(self) -> None:
        """Refuse values that cannot be used, before anything is fitted."""
        check_whole("n_folds", self.n_folds, at_least=2)
        check_whole("max_vectors", self.max_vectors, at_least=2)
        if self.estimator is not None and not hasattr(self.estimator, "predict_proba"):
            raise TypeError(
                "estimator of LabelPowerset must be None or a classifier with predict_proba, got "
                f"{self.estimator!r}."
            )

    def fit_vectors(
        self, X: Matrix, vector_of: NDArray[np.int32], vectors: Labels, rng: np.random.RandomState
    ) -> tuple["FittedPowerset", Any] | None:
        """None where hardly any label vector occurs twice."""
        from sklearn.model_selection import KFold  # slow to import

        n_vectors = len(vectors)
        classes, place = frequent_vectors(vector_of, n_vectors, self.max_vectors)
        rows = np.flatnonzero(place >= 0)
        if len(classes) < 2 or len(rows) < _LEAST_SEEN * len(X) or len(rows) < self.n_folds:
            return None
        seed = rng.randint(2**31 - 1)
        standardizer: Standardizer | None = Standardizer.learn(X)
        if self.estimator is not None:  # it gets the columns as they are, without gaps if need be
            takes_gaps = get_tags(self.estimator).input_tags.allow_nan
            mean = Standardizer.learn(X).mean
            standardizer = None if takes_gaps else Standardizer(mean, np.ones_like(mean), False)
        X = X if standardizer is None else standardizer.apply(X)
        held_out = np.full((len(X), len(classes)), 1 / len(classes))
        for train, test in KFold(self.n_folds, shuffle=True, random_state=seed).split(rows):
            if len(np.unique(place[rows[train]])) < 2:
                continue
            fold = self._fit(X[rows[train]], place[rows[train]], seed)
            held_out[rows[test]] = 0.0
            held_out[np.ix_(rows[test], fold.classes_)] = fold.predict_proba(X[rows[test]])
        classifier = self._fit(X[rows], place[rows], seed)
        fitted = FittedPowerset(classifier, classes, n_vectors, standardizer)
        return fitted, on_vectors(held_out, classes, n_vectors)

    def _fit(self, X: Matrix, y: NDArray[np.int64], seed: int) -> Any:
        if self.estimator is not None:
            return seeded(clone(self.estimator), seed).fit(X, y)
        from sklearn.linear_model import LogisticRegression  # slow to import

        return seeded(LogisticRegression(max_iter=200), seed).fit(X, y)


class FittedPowerset:
    """A classifier whose classes are label vectors."""

    name = "powerset"

    def __init__(
        self,
        classifier: BaseEstimator,
        classes: NDArray[np.int64],
        n_vectors: int,
        standardizer: Standardizer | None = None,
    ) -> None:
        self.classifier, self.classes, self.n_vectors = classifier, classes, n_vectors
        self.standardizer = standardizer

    def weights(self, X: Matrix) -> Any:
        X = X if self.standardizer is None else self.standardizer.apply(X)
        p = np.asarray(self.classifier.predict_proba(X), dtype=np.float64)
        return on_vectors(p, self.classes[self.classifier.classes_], self.n_vectors)
