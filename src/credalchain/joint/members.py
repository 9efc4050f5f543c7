"""Other models that put weights on the label vectors of training rows."""

from dataclasses import dataclass
from functools import cached_property, partial
from numbers import Real
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, logsumexp
from sklearn.base import BaseEstimator

from credalchain._utils.array_types import FloatArray, Labels
from credalchain._utils.validation import check_array, check_instance, check_int
from credalchain.labels import MISSING

Float32Array = NDArray[np.float32]

_TINY, _MAX = 1e-30, 1e15  # of the numbers in a stored kernel
_FLOOR = 0.02  # share of a uniform distribution, so that no row's score is zero
_WIDTHS = (0.5, 1.0, 2.0)  # times the median of the squared distances
_RIDGES = (3.0, 1.0)  # the first is tried with every width, the second only with the best width
_MIN_SEEN = 0.1  # share of rows that must have a vector that another row has
_MIN_WEIGHT = 2e-3  # smaller weights of a row are set to 0, then normalised


class FittedMember(Protocol):
    """Weights on label vectors for new rows.

    ``name`` is shown to users.
    """

    name: str

    def weights(self, X: Float32Array) -> Any:
        """Return weights, sparse (n, K); rows add up to 1."""
        ...


class VectorMember(Protocol):
    """An unfitted member."""

    def fit_vectors(
        self,
        X: Float32Array,
        vector_of: NDArray[np.int32],
        vectors: Labels,
        rng: np.random.RandomState,
    ) -> tuple[FittedMember, Any] | None:
        """Learn which of the label ``vectors`` (K, m) a row has; None if there is nothing to learn.

        Rows are complete; further vectors may hold -1 for a label that is missing. Also weights
        for the training rows, sparse (n, K), each by a model that was not fitted on the row.
        """
        ...


def checked_weights(weights: Any, n: int, n_vectors: int, member: Any) -> Any:
    """Validate a member's weights; a CSR array."""
    try:
        matrix = sparse.csr_array(weights)
    except (TypeError, ValueError):
        matrix = sparse.csr_array((0, 0))
    sums = np.asarray(matrix.sum(axis=1)).reshape(-1) if matrix.ndim == 2 else np.empty(0)
    is_valid = matrix.shape == (n, n_vectors) and np.isfinite(matrix.data).all()
    if not is_valid or (matrix.data < 0).any() or (np.abs(sums - 1) > 1e-6).any():
        raise ValueError(
            f"a member must give weights of shape {(n, n_vectors)} that are not negative and add "
            f"up to 1 in every row, a row of X and a label vector each; {type(member).__name__} "
            f"gave an array of shape {matrix.shape}, with rows that add up to "
            f"{sums.min(initial=np.inf):.3g} at least and {sums.max(initial=-np.inf):.3g} at most."
        )
    return matrix


def on_vectors(p: FloatArray, classes: NDArray[np.int64], n_vectors: int) -> Any:
    """Return probabilities of some vectors (n, C) as sparse weights on all, (n, K).

    Small ones are left out, which saves most of the computation that follows.
    """
    p = np.where(p < np.minimum(_MIN_WEIGHT, p.max(axis=1, keepdims=True)), 0.0, p)
    p /= p.sum(axis=1, keepdims=True)
    row, class_index = np.nonzero(p)
    return sparse.csr_array(
        (p[row, class_index], (row, classes[class_index])), shape=(len(p), n_vectors)
    )


class KernelPowerset(BaseEstimator):
    """Model of label vectors as classes, by kernel least squares.

    A ridge regression predicts for every vector whether a row has it. The positive part of that,
    raised to a power and normalised, is its probability (least-squares probabilistic
    classification). Leave-one-out predictions have a closed form; they select kernel width, ridge
    and power. Columns are standardised; a missing value is its column's mean.

    Parameters
    ----------
    max_centres : int, default=2000
        Number of training rows used as kernel centres, drawn at random if there are more. Fitting
        takes O(rows * max_centres ** 2) time and O(rows * max_centres) memory.
    max_vectors : int, default=300
        Maximum number of label vectors to learn, the most frequent first. Vectors that occur once
        are never learned.
    ridge : float, default=None
        L2 regularization strength. None chooses between 1 and 3.

    See Also
    --------
    CredalJointForest : Take such models as ``members``.

    References
    ----------
    M. Sugiyama, Superfast-trainable multi-class probabilistic classifier by least-squares
    posterior fitting, IEICE Transactions on Information and Systems E93-D, 2010.

    Examples
    --------
    >>> from sklearn.ensemble import ExtraTreesRegressor
    >>> from credalchain import CredalJointForest, KernelPowerset
    >>> X = [[0.1], [0.2], [0.3], [0.7], [0.8], [0.9]] * 5
    >>> Y = [[0, 0], [0, 0], [0, 1], [1, 1], [1, 1], [1, 0]] * 5
    >>> trees = ExtraTreesRegressor(20, min_samples_leaf=2, bootstrap=True)
    >>> forest = CredalJointForest(trees, members=[KernelPowerset()], random_state=0).fit(X, Y)
    >>> forest.predict_partial([[0.15], [0.8]])
    array([[0, 0],
           [1, 1]], dtype=int8)
    >>> list(forest.shares_)
    ['joint', 'product', 'kernel']
    """

    def __init__(
        self, *, max_centres: int = 2000, max_vectors: int = 300, ridge: float | None = None
    ) -> None:
        self.max_centres = max_centres
        self.max_vectors = max_vectors
        self.ridge = ridge

    def check_parameters(self) -> None:
        """Validate the parameters."""
        check_int("max_centres", self.max_centres, at_least=2)
        check_int("max_vectors", self.max_vectors, at_least=2)
        is_number = isinstance(self.ridge, Real) and not isinstance(self.ridge, bool)
        if self.ridge is not None and not (is_number and 0 < self.ridge < np.inf):
            raise ValueError(f"ridge must be None or a positive number, got {self.ridge!r}.")

    def fit_vectors(
        self,
        X: Float32Array,
        vector_of: NDArray[np.int32],
        vectors: Labels,
        rng: np.random.RandomState,
    ) -> tuple["FittedKernel", Any] | None:
        """Learn which of the label vectors a row has.

        Parameters
        ----------
        X : ndarray of float32, shape (n_samples, n_columns)
            Training rows, encoded.
        vector_of : ndarray of int32, shape (n_samples,)
            Index of the label vector of each row.
        vectors : ndarray of int8, shape (n_vectors, n_labels)
            Distinct label vectors; -1 for a missing label, which no training row here has.
        rng : RandomState
            Draws the kernel centres.

        Returns
        -------
        tuple or None
            The fitted member, and its leave-one-out weights of the training rows, sparse of shape
            (n_samples, n_vectors). None if hardly any label vector occurs twice.
        """
        n_vectors = len(vectors)
        classes, class_index = frequent_vectors(vector_of, n_vectors, self.max_vectors)
        learned = class_index >= 0
        if len(classes) < 2 or learned.mean() < _MIN_SEEN:
            return None
        standardizer = Standardizer.learn(X)
        Z = standardizer.apply(X)
        # duplicate rows as centres would make the kernel matrix singular
        chosen = np.sort(np.unique(Z, axis=0, return_index=True)[1])
        if len(chosen) > self.max_centres:
            chosen = chosen[np.sort(rng.choice(len(chosen), self.max_centres, replace=False))]
        centres = Z[chosen]
        targets = np.zeros((len(Z), len(classes)), dtype=np.float32)
        targets[np.flatnonzero(learned), class_index[learned]] = 1.0
        distances = _squared_distances(Z, centres, Z @ centres.T)
        median_distance = float(np.median(distances[:: max(1, len(Z) // 500)])) or 1.0
        prior = targets.mean(axis=0) / targets.mean(axis=0).sum()
        ridges = _RIDGES if self.ridge is None else (self.ridge,)
        # where rows abound, half of the centres and as many rows show which width is best
        rows, some = slice(None), slice(None)
        if len(centres) < len(Z):
            rows, some = slice(0, len(centres)), slice(0, len(centres), 2)
        fit = partial(
            _fit_kernel, distances[rows, some], centres[some], targets[rows], class_index[rows]
        )
        fits = [fit(width / median_distance, ridges[0]) for width in _WIDTHS]
        best = min(fits, key=attrgetter("loss"))
        fits = [best, *(fit(best.gamma, ridge) for ridge in ridges[1:])]
        best = min(fits, key=attrgetter("loss"))
        if len(centres) < len(Z):
            best = _fit_kernel(distances, centres, targets, class_index, best.gamma, best.ridge)
        learned_values = best.gamma, best.coefficients, best.power, prior
        fitted = FittedKernel(standardizer, centres, *learned_values, classes, n_vectors)
        held_out = fitted.normalised(best.left_out)
        return fitted, on_vectors(held_out, classes, n_vectors)


def frequent_vectors(
    vector_of: NDArray[np.int32], n_vectors: int, at_most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find the most frequent vectors that occur at least twice, and the index of each row's vector.

    -1 for a row whose vector is not among them.
    """
    times = np.bincount(vector_of, minlength=n_vectors)
    classes = np.sort(np.argsort(-times, kind="stable")[:at_most])
    classes = classes[times[classes] > 1]
    class_index = np.full(n_vectors, -1)
    class_index[classes] = np.arange(len(classes))
    return classes, class_index[vector_of]


@dataclass(eq=False)
class Standardizer:
    """Scale columns to mean 0 and variance 1; a missing value becomes the mean."""

    mean: Float32Array
    deviation: Float32Array

    @classmethod
    def learn(cls, X: Float32Array) -> "Standardizer":
        missing = np.isnan(X)
        n = np.maximum((~missing).sum(axis=0), 1)
        mean = np.where(missing, 0.0, X).sum(axis=0, dtype=np.float64) / n
        square = np.where(missing, 0.0, (X - mean) ** 2).sum(axis=0) / n
        deviation = np.sqrt(np.where(square > 0, square, 1.0))
        return cls(mean.astype(np.float32), deviation.astype(np.float32))

    def apply(self, X: Float32Array) -> Float32Array:
        Z = (X - self.mean) / self.deviation
        return np.where(np.isnan(Z), np.float32(0), Z).astype(np.float32)


def _squared_distances(A: Float32Array, B: Float32Array, products: Float32Array) -> Float32Array:
    """Compute squared distances of the rows of two matrices, whose ``products`` are ``A @ B.T``."""
    lengths = np.square(A).sum(axis=1)[:, None] + np.square(B).sum(axis=1)
    return np.asarray(np.maximum(lengths - 2 * products, 0), dtype=np.float32)


def _ridge(
    kernel: Float32Array, centres: Float32Array, gamma: float, targets: Float32Array, ridge: float
) -> tuple[Float32Array, Float32Array]:
    """Fit coefficients (centres, classes), and leave-one-out predictions (rows, classes)."""
    if len(centres) == len(kernel):
        kernel[np.diag_indices_from(kernel)] += np.float32(ridge)
        inverse = _inverse(kernel)
        coefficients = inverse @ targets
        return coefficients, targets - coefficients / np.diag(inverse)[:, None]
    among_centres = _squared_distances(centres, centres, centres @ centres.T)
    centre_kernel = np.exp(-np.float32(gamma) * among_centres)
    normal = kernel.T @ kernel + np.float32(ridge) * centre_kernel
    normal[np.diag_indices_from(normal)] += np.float32(1e-4 * np.trace(normal) / len(normal))
    smoother = kernel @ _inverse(normal)
    coefficients = smoother.T @ targets
    leverage = np.minimum(np.einsum("ij,ij->i", smoother, kernel), 0.99)[:, None]
    left_out = (kernel @ coefficients - leverage * targets) / (1 - leverage)
    return np.asarray(coefficients, np.float32), np.asarray(left_out, np.float32)


class _KernelFit(NamedTuple):
    """A kernel model with one width and ridge, and its leave-one-out loss."""

    loss: float
    gamma: float
    ridge: float
    power: float
    coefficients: Float32Array
    left_out: Float32Array


def _fit_kernel(
    distances: Float32Array,
    centres: Float32Array,
    targets: Float32Array,
    class_index: NDArray[np.int64],
    gamma: float,
    ridge: float,
) -> _KernelFit:
    kernel = np.exp(-np.float32(gamma) * distances)
    coefficients, left_out = _ridge(kernel, centres, gamma, targets, ridge)
    loss, power = _best_power(left_out, class_index)
    return _KernelFit(loss, gamma, ridge, power, coefficients, left_out)


def _inverse(matrix: Float32Array) -> Float32Array:
    """Invert a symmetric positive definite matrix."""
    factor, not_definite = linalg.lapack.spotrf(matrix, lower=1)
    inverse, failed = linalg.lapack.spotri(factor, lower=1)
    if not_definite or failed:  # by rounding
        return np.asarray(linalg.pinvh(matrix.astype(np.float64)), dtype=np.float32)
    lower = np.tril(inverse)
    return np.asarray(lower + np.tril(inverse, -1).T, dtype=np.float32)


def _best_power(scores: Float32Array, class_index: NDArray[np.int64]) -> tuple[float, float]:
    """Find the least leave-one-out log-loss, and the power of positive scores that attains it."""
    rows = np.flatnonzero(class_index >= 0)
    with np.errstate(divide="ignore"):
        logs = np.log(np.maximum(scores[rows], 0)).astype(np.float64)
    true_class = np.arange(len(rows)), class_index[rows]

    def loss(power: float) -> float:
        raised = np.exp(power * logs)
        total = np.maximum(raised.sum(axis=1), np.finfo(float).tiny)
        p = (1 - _FLOOR) * raised[true_class] / total + _FLOOR / scores.shape[1]
        return float(-np.log(p).mean())

    result = minimize_scalar(loss, bounds=(0.5, 5.0), method="bounded", options={"xatol": 0.02})
    return float(result.fun), float(result.x)


class _TilesNotStored:
    """Mixin of members that keep a matrix as ``product_by_rows`` multiplies by it."""

    def __getstate__(self) -> dict[str, Any]:
        state = vars(self).copy()  # at once: another thread may be filling it
        state.pop("_tiled", None)
        return state


@dataclass(eq=False)
class FittedKernel(_TilesNotStored):
    """Kernels on centres, with coefficients for every label vector that was learned."""

    standardizer: Standardizer
    centres: Float32Array
    gamma: float
    coefficients: Float32Array
    power: float
    prior: Float32Array
    classes: NDArray[np.int64]
    n_vectors: int

    name: ClassVar = "kernel"

    def check_state(self, n_columns: int, n_vectors: int) -> None:
        """Validate a stored kernel over these columns and label vectors."""
        check_instance("standardizer", self.standardizer, Standardizer)
        check_int("n_vectors", self.n_vectors, n_vectors, n_vectors)
        check_array("classes", self.classes, np.int64, (None,), 0, n_vectors - 1)
        n_centres, n_classes = len(self.centres), len(self.classes)
        shapes: dict[str, Any] = {
            "mean": (self.standardizer.mean, (n_columns,), -_MAX),
            "deviation": (self.standardizer.deviation, (n_columns,), _TINY),
            "centres": (self.centres, (n_centres, n_columns), -_MAX),
            "coefficients": (self.coefficients, (n_centres, n_classes), -_MAX),
            "prior": (self.prior, (n_classes,), _TINY),
        }
        for name, (array, shape, low) in shapes.items():
            check_array(name, array, np.float32, shape, low, _MAX)
        numbers = np.array([self.gamma, self.power], dtype=np.float64)
        check_array("gamma and power", numbers, np.float64, (2,), _TINY, 1 / _TINY)
        if n_classes < 2 or (np.diff(self.classes) <= 0).any():
            raise ValueError("the classes of a member must increase.")

    def weights(self, X: Float32Array) -> Any:
        from credalchain.joint.products import product_by_rows  # imports numba

        centres, coefficients = self._tiled
        Z = self.standardizer.apply(X)
        kernel = _squared_distances(Z, self.centres, product_by_rows(Z, centres, len(self.centres)))
        np.exp(np.multiply(kernel, -np.float32(self.gamma), out=kernel), out=kernel)
        scores = product_by_rows(kernel, coefficients, len(self.classes))
        return on_vectors(self.normalised(scores), self.classes, self.n_vectors)

    @cached_property
    def _tiled(self) -> tuple[Any, Any]:
        """Centres and coefficients as ``product_by_rows`` multiplies by them."""
        from credalchain.joint.products import tiled  # imports numba

        return tiled(self.centres.T), tiled(self.coefficients)

    def normalised(self, scores: Float32Array) -> FloatArray:
        """Return probabilities from scores; the prior where no score is positive."""
        p = np.maximum(scores, 0).astype(np.float64) ** self.power
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0, p / np.where(total > 0, total, 1.0), self.prior)


class ScoreTilt(BaseEstimator):
    """Training label vectors, weighted by how often they occur and by the scores of a model.

    The weight of vector v is proportional to n(v)^a times the product of the probabilities that
    the model gives to its labels, to the power b. Both exponents maximise the likelihood of rows
    whose own vector is counted once less. The last columns of X are the scores, as log-odds.
    """

    def fit_vectors(
        self,
        X: Float32Array,
        vector_of: NDArray[np.int32],
        vectors: Labels,
        rng: np.random.RandomState,
    ) -> tuple["FittedTilt", Any] | None:
        """Fit to label vectors; return None where hardly any label vector occurs twice."""
        found, own, times = np.unique(vector_of, return_inverse=True, return_counts=True)
        classes, repeated = found.astype(np.int64), np.flatnonzero(times[own] > 1)
        if len(classes) < 2 or len(repeated) < _MIN_SEEN * len(vector_of):
            return None
        tilt = FittedTilt(vectors[classes], times, classes, len(vectors), 1.0, 1.0)
        rows = repeated
        if len(rows) * len(classes) > _MAX_TILT_ENTRIES:
            n_rows = max(_MAX_TILT_ENTRIES // len(classes), 50)
            rows = rng.choice(rows, min(n_rows, len(rows)), replace=False)
        scores = tilt.scores(X[rows])

        def loss(exponents: FloatArray) -> float:
            a, b = np.exp(exponents)
            logs = b * scores + tilt.log_counts(a)
            at = np.arange(len(rows)), own[rows]
            logs[at] = b * scores[at] + a * np.log(times[own[rows]] - 1)
            return float((logsumexp(logs, axis=1) - logs[at]).mean())

        best = minimize(
            loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 0.02, "fatol": 1e-4}
        )
        tilt.a, tilt.b = (float(value) for value in np.exp(np.clip(best.x, -3, 3)))
        held_out = [
            tilt.weights(X[first : first + _ROWS_AT_ONCE], own[first : first + _ROWS_AT_ONCE])
            for first in range(0, len(X), _ROWS_AT_ONCE)
        ]
        return tilt, sparse.vstack(held_out, format="csr")


_MAX_TILT_ENTRIES = 500_000  # rows times vectors that exponents are learned from
_ROWS_AT_ONCE = 512


class FittedTilt(_TilesNotStored):
    """Label vectors (C, m) of training rows, how many rows have each, and the exponents."""

    name = "tilt"

    def __init__(
        self,
        vectors: Labels,
        times: NDArray[np.int64],
        classes: NDArray[np.int64],
        n_vectors: int,
        a: float,
        b: float,
    ) -> None:
        self.vectors, self.times, self.classes = vectors, times, classes
        self.n_vectors, self.a, self.b = n_vectors, a, b

    def check_state(self, n_columns: int, n_vectors: int) -> None:
        """Validate a stored tilt over these columns and label vectors."""
        check_int("n_vectors", self.n_vectors, n_vectors, n_vectors)
        check_array("classes", self.classes, np.int64, (None,), 0, n_vectors - 1)
        check_array("times", self.times, np.int64, (len(self.classes),), 1)
        check_array("vectors", self.vectors, np.int8, (len(self.classes), None), 0, 1)
        check_int("labels of vectors", self.vectors.shape[1], 1, n_columns)
        check_array("exponents", np.array([self.a, self.b]), np.float64, (2,), 0, 1e3)

    def scores(self, X: Float32Array) -> FloatArray:
        """Compute logarithms of products of probabilities (n, C), up to a constant of each row."""
        from credalchain.joint.products import product_by_rows  # imports numba

        log_odds = X[:, -self.vectors.shape[1] :]
        return product_by_rows(log_odds, self._tiled, len(self.classes))

    @cached_property
    def _tiled(self) -> NDArray[Any]:
        """The vectors as ``product_by_rows`` multiplies by them."""
        from credalchain.joint.products import tiled  # imports numba

        return tiled(self.vectors.T.astype(np.float64))

    def log_counts(self, a: float) -> FloatArray:
        return np.asarray(a * np.log(self.times))

    def weights(self, X: Float32Array, own: NDArray[np.int64] | None = None) -> Any:
        """Return sparse weights (n, K), with the class ``own`` of each row counted once less."""
        logs = self.b * self.scores(X) + self.log_counts(self.a)
        if own is not None:
            at = np.arange(len(X)), own
            with np.errstate(divide="ignore"):
                less = self.a * (np.log(self.times[own] - 1) - np.log(self.times[own]))
            logs[at] += less
        p = np.exp(logs - logs.max(axis=1, keepdims=True))
        return on_vectors(p / p.sum(axis=1, keepdims=True), self.classes, self.n_vectors)


class ScoreProduct:
    """Independent labels by the scores of a model; ``scale`` multiplies their log-odds."""

    def __init__(self, scale: float, share: float) -> None:
        self.scale, self.share = scale, share

    def probabilities(self, encoded: Float32Array, n_labels: int) -> FloatArray:
        """Return P(Y_j = 1), (n, m), from the last columns."""
        return np.asarray(expit(self.scale * encoded[:, -n_labels:].astype(np.float64)))


def calibrate_product(log_odds: Float32Array, labels: Labels) -> tuple[float, FloatArray]:
    """Return the scale of log-odds (n, m) that fits the labels best.

    And the probability (n,) of the observed labels of each row, if they were independent.
    """
    towards_truth = np.where(labels == 1, log_odds, -log_odds).astype(np.float64)
    observed = labels != MISSING

    def loss(log_scale: float) -> float:
        return float(np.logaddexp(0, -np.exp(log_scale) * towards_truth)[observed].mean())

    found = minimize_scalar(loss, bounds=(-3.0, 3.0), method="bounded") if observed.any() else None
    scale = 1.0 if found is None else float(np.exp(found.x))
    right = np.where(observed, expit(scale * towards_truth), 1.0)
    return scale, np.asarray(right.prod(axis=1))
