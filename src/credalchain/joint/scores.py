"""Scores of any classifier as log-odds: held out for training rows, and of new rows."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils import get_tags
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples

from credalchain._utils.array_types import FloatArray, Labels
from credalchain._utils.progress import track
from credalchain._utils.validation import check_array, check_instance, check_int
from credalchain.labels import MISSING

PRECOMPUTED = "precomputed"
_MIN_PROBABILITY = 1e-4
_MAX_LOG_ODDS = 50.0  # of scores that are log-odds


class PrecomputedScores:
    """Scores that are given in place of features, (n, m): probabilities, or log-odds."""

    def __init__(self, scores: Any, n_labels: int) -> None:
        values = _as_matrix(scores, n_labels)
        self.n_labels = n_labels
        self.are_probabilities = bool(values.min() >= 0 and values.max() <= 1)

    def check_state(self, n_labels: int) -> None:
        """Validate what was stored."""
        check_int("n_labels", self.n_labels, n_labels, n_labels)
        check_instance("are_probabilities", self.are_probabilities, bool)

    def log_odds(self, X: Any) -> FloatArray:
        """Return the scores as log-odds, (n, m)."""
        scores = _as_matrix(X, self.n_labels)
        if not self.are_probabilities:
            return np.clip(scores, -_MAX_LOG_ODDS, _MAX_LOG_ODDS)
        if scores.min(initial=0) < 0 or scores.max(initial=0) > 1:
            raise ValueError(
                "X must hold probabilities, as it did in fit, got scores from "
                f"{scores.min():.4g} to {scores.max():.4g}."
            )
        return _logits(scores)


class NamedModel(ClassifierMixin, BaseEstimator):
    """What stands in a model file for a frozen model that is not stored."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict_proba(self, X: Any) -> Any:
        """Raise an error that says what to do."""
        raise NotFittedError(
            f"the model file names its frozen model but does not hold it: {self.name}. Load it "
            "with load_model(path, frozen=model)."
        )


class ClassifierScores:
    """A fitted classifier of all labels, or one of each label.

    ``models`` has one item, or one for each label: None where the label has only one value in
    training, whose log-odds are ``constant`` (m,).
    """

    def __init__(self, models: list[Any], constant: FloatArray) -> None:
        self.models, self.constant = models, constant

    def check_state(self, n_labels: int) -> None:
        """Validate what was stored; what the models hold is theirs."""
        check_array("constant", self.constant, np.float64, (n_labels,))
        check_instance("models", self.models, list)
        if len(self.models) not in (1, n_labels):
            raise ValueError(f"models must hold 1 or {n_labels} models, got {len(self.models)}.")

    def log_odds(self, X: Any) -> FloatArray:
        """Return the scores of rows as log-odds, (n, m)."""
        n_labels = len(self.constant)
        if len(self.models) == 1 and n_labels > 1:
            return _as_log_odds(_raw_scores(self.models[0], X, n_labels), n_labels, self.models[0])
        fitted = [j for j, model in enumerate(self.models) if model is not None]
        log_odds = np.tile(self.constant, (_num_samples(X), 1))
        if fitted:
            columns = [_raw_scores(self.models[j], X, 1) for j in fitted]
            model = self.models[fitted[0]]
            log_odds[:, fitted] = _as_log_odds(np.hstack(columns), len(fitted), model)
        return log_odds


def fit_scores(estimator: Any, X: Any, labels: Labels, n_jobs: int) -> ClassifierScores:
    """Fit a clone of a classifier to all labels; or one to each label.

    The latter if it is a binary classifier, or if labels are missing: to the rows where the label
    is observed.
    """
    missing = (labels == MISSING).any()
    n_labels = labels.shape[1]
    if n_labels > 1 and not missing and is_multilabel(estimator):
        return ClassifierScores([clone(estimator).fit(X, labels)], np.zeros(n_labels))
    binary = _binary(estimator)
    ones, zeros = (labels == 1).sum(axis=0), (labels == 0).sum(axis=0)

    def fit_label(j: int) -> Any:
        if not ones[j] or not zeros[j]:
            return None
        rows = np.flatnonzero(labels[:, j] != MISSING)
        X_observed = X if len(rows) == len(labels) else take_rows(X, rows)
        return clone(binary).fit(X_observed, labels[rows, j].astype(np.int64))

    tasks = (delayed(fit_label)(j) for j in range(n_labels))
    models = list(Parallel(n_jobs=n_jobs, prefer="threads")(tasks))
    return ClassifierScores(models, np.log(ones + 0.5) - np.log(zeros + 0.5))


def held_out_scores(
    estimator: Any,
    X: Any,
    labels: Labels,
    splits: Iterable[Any],
    *,
    n_jobs: int,
    max_rows: int,
) -> FloatArray:
    """Log-odds (n, m) of rows by a classifier that was not fitted on them.

    Splits are left out once ``max_rows`` rows have scores; NaN for the others.
    """
    held_out = np.full(labels.shape, np.nan)
    splits = list(splits)
    for train, test in track(splits, "folds", len(splits)):
        if np.isfinite(held_out[:, 0]).sum() >= max_rows:
            break
        fitted = fit_scores(estimator, take_rows(X, train), labels[train], n_jobs)
        held_out[test] = fitted.log_odds(take_rows(X, test))
    return held_out


def is_multilabel(estimator: Any) -> bool:
    """Whether a classifier can be fitted to a matrix of labels."""
    tags = get_tags(estimator)
    classifier_tags = tags.classifier_tags
    if tags.target_tags.multi_output or (classifier_tags and classifier_tags.multi_label):
        return True
    inner = getattr(estimator, "estimator", None)  # searches do not hand on these tags
    return hasattr(estimator, "refit") and isinstance(inner, BaseEstimator) and is_multilabel(inner)


def _binary(estimator: Any) -> Any:
    """Return what a multi-label classifier fits to each label; other classifiers as they are."""
    from sklearn.multiclass import OneVsRestClassifier  # slow to import
    from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
    from sklearn.pipeline import Pipeline

    if isinstance(estimator, (OneVsRestClassifier, MultiOutputClassifier, ClassifierChain)):
        return estimator.estimator
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        return clone(estimator).set_params(**{name: clone(_binary(last))})
    return estimator


def _raw_scores(model: Any, X: Any, n_labels: int) -> NDArray[Any]:
    """Return probabilities of 1, or the decision function, of a fitted model: (n, m)."""
    if hasattr(model, "predict_proba"):
        p = model.predict_proba(X)
        if isinstance(p, list):  # of each label
            classes = getattr(model, "classes_", [np.arange(2)] * len(p))
            return np.stack([_of_yes(q, c) for q, c in zip(p, classes, strict=True)], axis=1)
        if n_labels == 1 and np.ndim(p) == 2 and np.shape(p)[1] <= 2:
            return _of_yes(p, getattr(model, "classes_", np.arange(2)))[:, None]
        return np.asarray(p)
    if hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(X))
        return scores[:, None] if scores.ndim == 1 else scores
    raise TypeError(f"estimator must have predict_proba or decision_function, got {model!r}.")


def _as_log_odds(scores: Any, n_labels: int, model: Any) -> FloatArray:
    """Return validated scores of a model as log-odds."""
    matrix = _as_matrix(scores, n_labels, model)
    if hasattr(model, "predict_proba"):
        return _logits(matrix)
    return np.clip(matrix, -_MAX_LOG_ODDS, _MAX_LOG_ODDS)


def _of_yes(p: Any, classes: Any) -> FloatArray:
    """The column of class 1 in the probabilities of one label; 0 if the class was never seen."""
    p, yes = np.asarray(p), np.flatnonzero(np.asarray(classes) == 1)
    return np.asarray(p[:, yes[0]] if len(yes) else np.zeros(len(p)))


def _as_matrix(scores: Any, n_labels: int, model: Any = None) -> FloatArray:
    """Validate scores (n, m)."""
    matrix = np.asarray(scores, dtype=np.float64)
    source = "X" if model is None else f"the scores of {type(model).__name__}"
    if matrix.ndim != 2 or matrix.shape[1] != n_labels:
        raise ValueError(
            f"{source} must hold one score for each of {n_labels} labels, got an array of shape "
            f"{matrix.shape}."
        )
    finite = np.isfinite(matrix)
    if not finite.all():
        row, column = np.argwhere(~finite)[0].tolist()
        raise ValueError(
            f"{source} must be finite numbers, got {matrix[row, column]} in row {row}, label "
            f"{column}."
        )
    return matrix


def _logits(p: FloatArray) -> FloatArray:
    return np.asarray(logit(np.clip(p, _MIN_PROBABILITY, 1 - _MIN_PROBABILITY)))
