"""Partial predictions through scikit-learn's meta-estimators, scorers, and groups of rows."""

import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import indexable

from credalchain._utils.array_types import Labels
from credalchain.chains.interface import fitted_folds
from credalchain.chunks.sampling import Hashes, mixed, row_hashes
from credalchain.exceptions import data_warnings_ignored
from credalchain.labels import MISSING, as_labels, is_missing
from credalchain.metrics import MEASURES, Measure, tally
from credalchain.preprocessing import named_columns
from credalchain.typing import LabelsLike, MatrixLike, VectorLike

if TYPE_CHECKING:
    from sklearn.model_selection import BaseCrossValidator  # slow to import

Rows = NDArray[np.int64]
_FEW_ROWS = 20  # that differ: others are equal to them by chance


def unwrap(estimator: BaseEstimator, X: MatrixLike | None = None) -> tuple[Any, Any]:
    """Return the estimator inside pipelines, searches and frozen estimators, and its input.

    For methods that scikit-learn's meta-estimators do not forward: ``final, Z = unwrap(search,
    X)``, then ``final.infer(Z)``, ``final.predict_interval(Z)`` and so on.

    Parameters
    ----------
    estimator : fitted estimator, Pipeline or search object
        The outermost estimator.
    X : array-like, data frame or scipy sparse, default=None
        Its input.

    Returns
    -------
    final : estimator
        The outermost estimator that has ``predict_partial``, or else the innermost one.
    Z : array-like, data frame or scipy sparse, or None
        X as it arrives there.

    See Also
    --------
    partial_labels : Partial predictions of pipelines and searches.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from credalchain import CredalChainClassifier, unwrap
    >>> X, Y = [[0.0], [1.0], [2.0], [3.0]], [[0, 1], [0, 1], [1, 0], [1, 0]]
    >>> model = make_pipeline(StandardScaler(), CredalChainClassifier(s=0.1)).fit(X, Y)
    >>> final, Z = unwrap(model, [[0.0]])
    >>> type(final).__name__, Z.round(2)
    ('CredalChainClassifier', array([[-1.34]]))
    """
    while not hasattr(estimator, "predict_partial"):
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif hasattr(estimator, "steps"):
            if X is not None and len(estimator.steps) > 1:
                X = estimator[:-1].transform(X)
            estimator = estimator.steps[-1][1]
        elif type(estimator).__name__ == "FrozenEstimator":
            estimator = estimator.estimator
        else:
            break
    return estimator, X


def partial_labels(estimator: BaseEstimator, X: MatrixLike) -> Labels:
    """Return partial predictions of an estimator, unwrapping pipelines and searches.

    scikit-learn's meta-estimators, such as Pipeline and GridSearchCV, do not forward
    ``predict_partial``; this function unwraps them. An estimator that only has ``predict`` answers
    every label.

    Parameters
    ----------
    estimator : fitted estimator, Pipeline or search object
        Holds the cautious classifier.
    X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
        Input of the estimator.

    Returns
    -------
    ndarray of int8, shape (n_samples, n_labels)
        Partial predictions: 0, 1, and -1 for an open label.

    See Also
    --------
    unwrap : Return the estimator inside, for its other methods.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from credalchain import CredalChainClassifier, partial_labels
    >>> X, Y = [[0.0], [1.0], [2.0], [3.0]], [[0, 1], [0, 1], [1, 0], [1, 0]]
    >>> model = make_pipeline(StandardScaler(), CredalChainClassifier(s=0.1)).fit(X, Y)
    >>> partial_labels(model, [[0.0]])
    array([[0, 1]], dtype=int8)
    """
    final, X = unwrap(estimator, X)
    predict = getattr(final, "predict_partial", None) or final.predict
    return as_labels(predict(X), name="prediction", require_zero=False)


def cross_val_partial(
    estimator: BaseEstimator,
    X: MatrixLike,
    Y: LabelsLike,
    *,
    groups: VectorLike | None = None,
    cv: "int | BaseCrossValidator | Iterable[tuple[VectorLike, VectorLike]]" = 5,
    n_jobs: int | None = None,
) -> Labels:
    """Compute out-of-fold partial predictions: of every row by a model not fitted on it.

    Unlike scikit-learn's ``cross_val_predict`` it gives partial predictions and takes
    missing labels of any kind in ``Y``.

    Parameters
    ----------
    estimator : unfitted estimator, Pipeline or search object
        A clone is fitted for each fold.
    X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
        Rows.
    Y : array-like of shape (n_samples, n_labels)
        Labels, some of which may be missing.
    groups : array-like of shape (n_samples,), default=None
        For splitters that keep groups of rows together.
    cv : int, splitter or iterable of (train, test), default=5
        An int is a number of folds of consecutive rows.
    n_jobs : int, default=None
        Number of folds fitted in parallel, as in joblib.

    Returns
    -------
    ndarray of int8, shape (n_samples, n_labels)
        Partial predictions: 0, 1, and -1 for an open label.

    Raises
    ------
    ValueError
        If ``cv`` does not yield every row in exactly one test fold, or if Y has missing labels that
        the estimator does not accept.

    See Also
    --------
    partial_labels : Partial predictions of a fitted pipeline or search.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier, cross_val_partial
    >>> X, Y = [["a"], ["a"], ["b"], ["b"]] * 5, [[1, 0], [1, 1], [0, 0], [0, 0]] * 5
    >>> answers = cross_val_partial(CredalChainClassifier(s=0.5, order="given"), X, Y)
    >>> answers.shape, answers[:3, 0]
    ((20, 2), array([1, 1, 0], dtype=int8))
    """
    from sklearn.model_selection import check_cv  # slow to import

    labels = as_labels(Y)
    X, labels = indexable(X, labels)
    inner: Any = estimator
    while (labels == MISSING).any() and not hasattr(inner, "predict_partial"):
        steps = getattr(inner, "steps", None)
        below = steps[-1][1] if steps else getattr(inner, "estimator", None)
        if below is None:
            raise ValueError(
                "Y must not contain missing labels, because "
                f"{type(inner).__name__} does not accept them."
            )
        inner = below
    targets = training_targets(labels)
    folds = [
        (_as_indices(train), _as_indices(test))
        for train, test in check_cv(cv).split(X, labels, groups)
    ]
    tested = np.concatenate([test for _, test in folds])
    if sorted(tested.tolist()) != list(range(len(labels))):
        raise ValueError("cv must yield every row in exactly one test fold.")
    parts = Parallel(n_jobs=n_jobs)(
        delayed(_fit_and_predict)(estimator, X, targets, split) for split in folds
    )
    prediction: Labels = np.empty(labels.shape, dtype=np.int8)
    prediction[tested] = np.concatenate(parts)
    return prediction


def row_groups(X: Any, labels: Labels, groups: VectorLike | None = None) -> Rows:
    """Return the group of each row, numbered in the order in which groups appear.

    Parameters
    ----------
    X : array, data frame or CSR of shape (n, p)
    labels : ndarray of int8, shape (n, m)
    groups : array-like of shape (n,), default=None
        Such as the patient, song or document of each row. None: copies form a group, rows that are
        equal in all columns (by a 64-bit hash; missing values are equal) and have the same labels.
        Equal rows are no copies if their labels differ, or if fewer than 20 rows are different:
        columns then have so few values that new rows repeat old ones.

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    n = X.shape[0]
    if groups is None:
        keys = _hashes_of_content(X)
    else:
        cells = np.asarray(groups, dtype=object)
        if cells.shape != (n,):
            raise ValueError(
                f"groups must be an array with a value for each of {n} rows, got one of shape "
                f"{cells.shape}."
            )
        missing = [row for row, cell in enumerate(cells) if is_missing(cell)]
        if missing:
            raise ValueError(
                f"groups must not be missing, got {cells[missing[0]]!r} in row {missing[0]}."
            )
        keys = _codes_of_cells(cells.tolist())
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    if groups is None:
        label_keys = _hashes_of_content(labels)
        differs = label_keys != label_keys[first[inverse]]
        no_copy = np.isin(inverse, inverse[differs]) | (len(first) < _FEW_ROWS)
        keys[no_copy] = row_hashes(0, n)[no_copy]
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return np.asarray(first.argsort().argsort()[inverse], dtype=np.int64)


def rows_of_groups(groups: Rows, chosen: Any) -> Rows:
    """Return the rows of the ``chosen`` groups, in their order."""
    return np.flatnonzero(np.isin(groups, chosen))


def one_of_each_group(groups: Rows, rows: Rows, rng: np.random.RandomState) -> Rows:
    """Return one of the ``rows`` of each group, drawn at random."""
    if len(np.unique(groups[rows])) == len(rows):  # the same random numbers follow as ever
        return rows
    shuffled = rng.permutation(rows)
    _, first = np.unique(groups[shuffled], return_index=True)
    return np.sort(shuffled[first])


def group_folds(groups: Rows, cv: Any, labels: Labels | None = None) -> Iterator[tuple[Rows, Rows]]:
    """Split groups by a splitter, and rows with them; if all differ, as the splitter does."""
    _, first, groups = np.unique(groups, return_index=True, return_inverse=True)
    y = None if labels is None else labels[first]
    with warnings.catch_warnings():  # of splitters that ignore groups, which stay together here
        warnings.filterwarnings("ignore", "The groups parameter is ignored", UserWarning)
        splits = list(cv.split(np.zeros((len(first), 1)), y, np.arange(len(first))))
    for train, test in splits:
        yield rows_of_groups(groups, train), rows_of_groups(groups, test)


def _hashes_of_content(X: Any) -> Hashes:
    if sparse.issparse(X):
        salts = row_hashes(0, X.shape[1])
        cells = mixed(_codes_of_column(X.data) + salts[X.indices])
        cells[X.data == 0] = 0
        sums = np.append(np.uint64(0), np.cumsum(cells, dtype=np.uint64))
        return np.asarray(sums[X.indptr[1:]] - sums[X.indptr[:-1]])
    hashes = np.zeros(X.shape[0], dtype=np.uint64)
    if getattr(X, "ndim", 2) != 2:  # an error of ``fit``
        return row_hashes(0, len(hashes))
    columns = named_columns(X)
    for (_, column), salt in zip(columns, row_hashes(0, len(columns)), strict=True):
        hashes += mixed(_codes_of_column(np.asarray(column)) + salt)
    return hashes


def _codes_of_column(values: NDArray[Any]) -> Hashes:
    """Return numbers that are equal where values are; those of missing values are, too."""
    if values.dtype.kind not in "biuf":
        return _codes_of_cells(values.tolist())
    numbers = values.astype(np.float64) + 0.0  # -0.0 is 0.0
    numbers[np.isnan(numbers)] = np.nan
    return numbers.view(np.uint64)


def _codes_of_cells(cells: list[Any]) -> Hashes:
    try:
        distinct = dict.fromkeys(cells)
    except TypeError:  # lists and the like
        cells = list(map(repr, cells))
        distinct = dict.fromkeys(cells)
    codes = dict(zip(distinct, range(1, len(distinct) + 1), strict=True))
    others = (cell for cell in distinct if not isinstance(cell, str))
    codes.update({cell: 0 for cell in others if is_missing(cell)})
    return np.fromiter(map(codes.__getitem__, cells), np.uint64, len(cells))


def _as_indices(rows: Any) -> Any:
    rows = np.asarray(rows)
    return np.flatnonzero(rows) if rows.dtype == bool else rows


def _fit_and_predict(estimator: Any, X: Any, targets: Any, split: tuple[Rows, Rows]) -> Labels:
    (fold,) = fitted_folds([estimator], X, targets, [split])
    with data_warnings_ignored():
        return partial_labels(fold.estimator, fold.X)


def training_targets(labels: Labels) -> Any:
    """Return labels as scikit-learn takes them, with NaN where something is missing.

    Not -1, which without any 0 in a fold could as well mean "no"; and not of 8 bits, in which
    scikit-learn 1.9 mixes up more than 127 labels.
    """
    missing = labels == MISSING
    return np.where(missing, np.nan, labels) if missing.any() else labels.astype(np.int64)


@dataclass(frozen=True)
class PathPrediction:
    """Predictions at each value of an estimator's caution parameter.

    ``labels`` is (values, n, m). ``bounds`` (a CredalPrediction for each value) and ``precise``
    (n, m) are there only if a measure needs them.
    """

    values: tuple[float, ...]
    labels: Labels
    bounds: tuple[Any, ...] = ()
    precise: Labels | None = None


def caution_in_use(estimator: Any) -> float:
    """Return the value of caution with which a fitted estimator answers; NaN: none."""
    name = "caution_" if hasattr(estimator, "caution_") else estimator.caution_parameter
    return float(getattr(estimator, name, np.nan))


def predict_along(
    estimator: Any, X: Any, values: Sequence[float], measures: Collection[str]
) -> PathPrediction:
    """Predict what ``measures`` need of a fitted estimator, at each value of its caution."""
    needs = {MEASURES[name].needs for name in measures}
    precise = estimator.predict(X) if "precise" in needs else None
    if "bounds" not in needs:
        path = np.asarray(estimator.predict_path(X, values))
        return PathPrediction(tuple(values), path, precise=precise)
    parameter = estimator.caution_parameter
    bounds = tuple(estimator.infer(X, **{parameter: value}) for value in values)
    path = np.stack([prediction.labels for prediction in bounds])
    return PathPrediction(tuple(values), path, bounds, precise)


def score_path(
    measures: Collection[str], Y_true: Labels, path: PathPrediction
) -> list[list[float]]:
    """Return a list for each measure: its value at each value of the caution parameter."""
    tallied = tally(Y_true, path.labels)
    columns: list[list[float]] = []
    for measure in map(MEASURES.__getitem__, measures):
        if measure.of_tally is not None and measure.needs == "partial":
            columns.append(np.asarray(measure.of_tally(tallied), dtype=float).tolist())
        elif measure.needs == "precise":
            columns.append([float(measure.function(Y_true, path.precise))] * len(path.values))
        else:
            predictions = path.labels if measure.needs == "partial" else path.bounds
            columns.append(
                [float(measure.function(Y_true, prediction)) for prediction in predictions]
            )
    return columns


@dataclass(frozen=True)
class PartialScorer:
    """Scorer for scikit-learn's searches and ``cross_validate``; greater is better.

    Losses are negated, as scikit-learn does.

    Parameters
    ----------
    measure : Measure
        The measure.
    options : dict, default={}
        Passed on to the measure.

    See Also
    --------
    credalchain.partial_scorer : Return a scorer from a measure, or its name.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier, partial_scorer
    >>> X, Y = [["a"], ["a"], ["b"], ["b"]], [[1, 0], [1, 1], [0, 0], [0, 0]]
    >>> chain = CredalChainClassifier(s=0.5, order="given").fit(X, Y)
    >>> scorer = partial_scorer("selective_error")
    >>> scorer(chain, X, Y) <= 0
    True
    """

    measure: Measure
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(self, estimator: Any, X: Any, Y: Any) -> float:
        final, Z = unwrap(estimator, X)
        if self.measure.needs == "partial":
            prediction: Any = partial_labels(final, Z)
        elif self.measure.needs == "precise":
            prediction = final.predict(Z)
            if hasattr(final, "read_labels"):
                prediction = final.read_labels(prediction)
        else:
            prediction = final.infer(Z)
        if hasattr(final, "read_labels"):  # class names become labels
            Y = final.read_labels(Y)
        value = self.measure.function(Y, prediction, **self.options)
        return value if self.measure.greater_is_better else -value


def partial_scorer(measure: str | Measure, **options: Any) -> PartialScorer:
    """Return a scorer from a measure, for ``scoring=`` in scikit-learn.

    Parameters
    ----------
    measure : str or Measure
        One of ``credalchain.metrics.MEASURES``, or a custom measure. Losses are negated.
    **options
        Passed on to the measure, for instance ``cost=0.1``.

    Returns
    -------
    PartialScorer
        A callable ``scorer(estimator, X, Y)``.

    Raises
    ------
    ValueError
        If ``measure`` is neither a name in ``MEASURES`` nor a measure.

    See Also
    --------
    credalchain.metrics.Measure : A custom measure.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from credalchain import CredalChainClassifier, partial_scorer
    >>> search = GridSearchCV(
    ...     CredalChainClassifier(), {"s": [0.5, 1, 2]}, scoring=partial_scorer("utility_80")
    ... )
    """
    if isinstance(measure, Measure):
        return PartialScorer(measure, options)
    if measure not in MEASURES:
        names = ", ".join(MEASURES)
        raise ValueError(f"measure must be one of {names}, got {measure!r}.")
    return PartialScorer(MEASURES[measure], options)


__all__ = ["PartialScorer", "cross_val_partial", "partial_labels", "partial_scorer", "unwrap"]
