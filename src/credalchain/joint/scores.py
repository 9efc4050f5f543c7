"""Scores of any classifier as log-odds: held out for training rows, and of new rows."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import logit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils import check_array, get_tags
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples

from credalchain._utils.array_types import FloatArray, Labels
from credalchain._utils.progress import track
from credalchain._utils.text import plural
from credalchain._utils.validation import check_array as check_stored_array
from credalchain._utils.validation import check_instance, check_int
from credalchain.exceptions import warn_about_data
from credalchain.labels import MISSING

PRECOMPUTED = "precomputed"
MIN_PROBABILITY = 1e-4  # of what a joint model learns from
_MAX_LOG_ODDS = 50.0  # of scores that are log-odds
_MIN_CHANCE = 1e-6  # that all log-odds of some rows are from 0 to 1, where they should be
_TOLERANCE = 1e-6  # by which rounding may take probabilities beyond 0 and 1


class PrecomputedScores:
    """Scores passed instead of features, (n, m): probabilities or log-odds."""

    def __init__(self, scores: Any, n_labels: int) -> None:
        values = _as_matrix(scores, n_labels)
        self.n_labels = n_labels
        self.least, self.greatest = float(values.min()), float(values.max())
        self.share_within = float(_is_probability(values).mean())
        if not self.are_probabilities and self.least >= 0:
            raise ValueError(
                "X must hold probabilities from 0 to 1, or log-odds, which have both signs; got "
                f"scores from {self.least:.4g} to {self.greatest:.4g}. Divide percentages by 100."
            )

    def check_state(self, n_labels: int) -> None:
        """Validate what was stored."""
        check_int("n_labels", self.n_labels, n_labels, n_labels)
        limits = np.array([self.least, self.greatest])
        check_stored_array("the range of scores", limits, np.float64, (2,))
        check_stored_array("share_within", np.array([self.share_within]), np.float64, (1,), 0, 1)

    @property
    def are_probabilities(self) -> bool:
        """True if all scores of the training rows were in [0, 1]."""
        return self.share_within == 1

    def log_odds(self, X: Any, at_least: float = MIN_PROBABILITY) -> FloatArray:
        """Return the scores as log-odds, (n, m); warn if those in fit were, and these are not.

        Probabilities are clipped to ``at_least`` and its complement.
        """
        scores = _as_matrix(X, self.n_labels)
        all_within = bool(_is_probability(scores).all())
        if self.are_probabilities and all_within:
            return _logits(scores, at_least)
        found = f"scores from {scores.min(initial=0):.4g} to {scores.max(initial=0):.4g}"
        if self.are_probabilities:
            raise ValueError(f"X must hold probabilities, as it did in fit, got {found}.")
        if all_within and self.share_within**scores.size < _MIN_CHANCE:
            warn_about_data(
                "X must hold log-odds, as it did in fit, where they were from "
                f"{self.least:.4g} to {self.greatest:.4g}, and these look like probabilities: "
                f"{found}."
            )
        return _clipped(scores)


class NamedModel(ClassifierMixin, BaseEstimator):
    """Placeholder, in a model file, for a frozen model that is not stored."""

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
    training, whose log-odds are ``constant`` (m,). ``yes`` (m,) are the classes that mean 1.
    """

    def __init__(self, models: list[Any], constant: FloatArray, yes: Sequence[Any]) -> None:
        self.models, self.constant, self.yes = models, constant, list(yes)

    def check_state(self, n_labels: int) -> None:
        """Validate what was stored; what the models hold is theirs."""
        check_stored_array("constant", self.constant, np.float64, (n_labels,))
        check_instance("models", self.models, list)
        if len(self.models) not in (1, n_labels) or len(self.yes) != n_labels:
            raise ValueError(f"models must hold 1 or {n_labels} models, got {len(self.models)}.")

    @cached_property
    def _linear(self) -> tuple[list[int], FloatArray, FloatArray] | None:
        """Coefficients of all labels' logistic regressions, so that one product does for m.

        Labels that are fitted, coefficients (p, labels), intercepts; None for other models.
        """
        from sklearn.linear_model import LogisticRegression  # slow to import

        fitted = [j for j, model in enumerate(self.models) if model is not None]
        models = [self.models[j] for j in fitted]
        if not models or not all(
            type(model) is LogisticRegression
            and getattr(model, "multi_class", None) != "multinomial"  # gives others probabilities
            for model in models
        ):
            return None
        coefficients = np.stack([model.coef_[0] for model in models], axis=1)
        intercepts = np.concatenate([np.ravel(model.intercept_) for model in models])  # or 0.0
        return fitted, coefficients, intercepts

    def __getstate__(self) -> dict[str, Any]:
        state = vars(self).copy()  # at once: another thread may be filling it
        state.pop("_linear", None)
        return state

    def log_odds(self, X: Any, at_least: float = MIN_PROBABILITY) -> FloatArray:
        """Return the scores of rows as log-odds, (n, m); see :class:`PrecomputedScores`."""
        n_labels = len(self.constant)
        if len(self.models) == 1 and n_labels > 1:
            model = self.models[0]
            scores = _as_matrix(_raw_scores(model, X, self.yes), n_labels, model)
            is_proba = hasattr(model, "predict_proba")
            return _logits(scores, at_least) if is_proba else _clipped(scores)
        log_odds = np.tile(self.constant, (_num_samples(X), 1))
        if self._linear is not None:
            fitted, coefficients, intercepts = self._linear
            model = self.models[fitted[0]]
            X = check_array(X, accept_sparse="csr", estimator=model, input_name="X")
            limit = _logits(np.array(1.0), at_least)
            log_odds[:, fitted] = np.clip(X @ coefficients + intercepts, -limit, limit)
            return log_odds
        for gives_p in (True, False):  # searches may have chosen models of both kinds
            fitted = [
                j
                for j, model in enumerate(self.models)
                if model is not None and hasattr(model, "predict_proba") == gives_p
            ]
            if fitted:
                columns = [_raw_scores(self.models[j], X, self.yes[j : j + 1]) for j in fitted]
                scores = _as_matrix(np.hstack(columns), len(fitted), self.models[fitted[0]])
                log_odds[:, fitted] = _logits(scores, at_least) if gives_p else _clipped(scores)
        return log_odds


def frozen_scores(estimator: Any, X: Any, n_labels: int, classes: NDArray[Any]) -> ClassifierScores:
    """Return the scores of a frozen classifier of all labels, which is not fitted again."""
    check_multilabel_scores(estimator, X, n_labels)
    yes = np.broadcast_to(classes, (n_labels, 2))[:, 1].tolist()
    return ClassifierScores([estimator], np.zeros(n_labels), yes)


def fit_scores(estimator: Any, X: Any, labels: Labels, n_jobs: int) -> ClassifierScores:
    """Fit a clone of a classifier to all labels; or one to each label.

    The latter if it is a binary classifier, or if labels are missing: to the rows where the label
    is observed. Also if a label has one value only, and it consists of a classifier for each.
    """
    missing = (labels == MISSING).any()
    n_labels = labels.shape[1]
    binary, yes = _binary(estimator), [1] * n_labels
    is_search = binary is estimator and _is_search(estimator) and is_multilabel(estimator)
    ones, zeros = (labels == 1).sum(axis=0), (labels == 0).sum(axis=0)
    cannot = binary is not estimator and not (ones * zeros).all()  # clones may need both values
    if n_labels > 1 and not missing and not cannot and is_multilabel(estimator):
        Y = labels.astype(np.int64)  # scikit-learn 1.9 mixes up more than 127 labels of 8 bits
        return ClassifierScores([clone(estimator).fit(X, Y)], np.zeros(n_labels), yes)

    def fit_label(j: int) -> Any:
        if not ones[j] or not zeros[j]:
            return None
        rows = np.flatnonzero(labels[:, j] != MISSING)
        X_observed = X if len(rows) == len(labels) else take_rows(X, rows)
        y = labels[rows, j].astype(np.int64)
        return clone(binary).fit(X_observed, y[:, None] if is_search else y)

    tasks = (delayed(fit_label)(j) for j in range(n_labels))
    models = list(Parallel(n_jobs=n_jobs, prefer="threads")(tasks))
    return ClassifierScores(models, np.log(ones + 0.5) - np.log(zeros + 0.5), yes)


def held_out_scores(
    estimator: Any,
    X: Any,
    labels: Labels,
    splits: Iterable[Any],
    *,
    n_jobs: int,
    max_rows: int,
) -> FloatArray:
    """Compute the log-odds (n, m) of rows by a classifier that was not fitted on them.

    Splits are left out once ``max_rows`` rows have scores; NaN for the others.
    """
    held_out = np.full(labels.shape, np.nan)
    splits = list(splits)
    for train, test in track(splits, "folds", len(splits)):
        if np.isfinite(held_out[:, 0]).sum() >= max_rows:
            break
        if np.isin(np.arange(len(labels))[test], np.arange(len(labels))[train]).any():
            raise ValueError("cv must yield disjoint training and test rows, got a row in both.")
        fitted = fit_scores(estimator, take_rows(X, train), labels[train], n_jobs)
        held_out[test] = fitted.log_odds(take_rows(X, test))
    if not np.isfinite(held_out).any():
        raise ValueError("cv must hold out at least one row.")
    return held_out


def is_multilabel(estimator: Any) -> bool:
    """Return whether a classifier can be fitted to a matrix of labels."""
    try:
        tags = get_tags(estimator)
    except AttributeError:  # a class without scikit-learn's tags
        return False
    classifier_tags = tags.classifier_tags
    if tags.target_tags.multi_output or (classifier_tags and classifier_tags.multi_label):
        return True
    return _is_search(estimator) and is_multilabel(estimator.estimator)  # these tags stop there


def _is_search(estimator: Any) -> bool:
    """Return whether an estimator is a search, such as ``GridSearchCV``."""
    return hasattr(estimator, "refit") and isinstance(
        getattr(estimator, "estimator", None), BaseEstimator
    )


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


def _raw_scores(model: Any, X: Any, yes: Sequence[Any]) -> NDArray[Any]:
    """Return probabilities of the classes ``yes``, or the decision function: (n, m)."""
    if hasattr(model, "predict_proba"):
        p = model.predict_proba(X)
        if isinstance(p, list) and np.ndim(p[0]) == 2:  # of each label
            classes = getattr(model, "classes_", [None] * len(p))
            each = zip(p, classes, yes, strict=True)
            return np.stack([_of_yes(*one, model) for one in each], axis=1)
        p = np.asarray(p)
        if len(yes) == 1:
            return _of_yes(p, getattr(model, "classes_", None), yes[0], model)[:, None]
        return p
    if hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(X))
        return scores[:, None] if scores.ndim == 1 else scores
    raise TypeError(f"estimator must have predict_proba or decision_function, got {model!r}.")


def _of_yes(p: Any, classes: Any, yes: Any, model: Any) -> FloatArray:
    """Return the probabilities of a class of one label; 0 if only the other was ever seen."""
    p = np.asarray(p)
    known = [0, 1] if classes is None else np.ravel(classes).tolist()
    if p.ndim == 1 or (p.shape[1] == 1 and len(known) > 1):
        return np.asarray(p.reshape(-1))
    found = [k for k, name in enumerate(known) if name == yes or str(name) == str(yes)]
    if not found and len(known) > 1:
        raise ValueError(
            f"the classes of {_name(model)} must be those of the labels, one of which is {yes!r}, "
            f"got {known}."
        )
    return np.asarray(p[:, found[0]] if found else np.zeros(len(p)))


def check_multilabel_scores(model: Any, X: Any, n_labels: int) -> None:
    """Raise a ValueError if a fitted classifier has one label, of several classes."""
    classes = getattr(model, "classes_", None)
    if n_labels == 1 or classes is None or isinstance(classes, list) or np.ndim(classes) != 1:
        return
    p = np.asarray(model.predict_proba(X)) if hasattr(model, "predict_proba") else np.empty(0)
    if p.ndim == 2 and len(p) > 1 and np.allclose(p.sum(axis=1), 1, atol=1e-6):
        raise ValueError(
            f"estimator must give a score to each of {n_labels} labels, and {_name(model)} has one "
            f"label with the classes {np.asarray(classes).tolist()}."
        )


def _name(model: Any) -> str:
    """Return the name of a model, or of that inside a frozen estimator."""
    from sklearn.frozen import FrozenEstimator

    return type(model.estimator if isinstance(model, FrozenEstimator) else model).__name__


def _as_matrix(scores: Any, n_labels: int, model: Any = None) -> FloatArray:
    """Validate scores (n, m)."""
    scores = scores.toarray() if sparse.issparse(scores) else np.ma.filled(scores, np.nan)
    source = "X" if model is None else f"the scores of {_name(model)}"
    try:
        matrix = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{source} must hold numbers: {error}.") from None
    matrix = matrix[:, None] if matrix.ndim == n_labels == 1 else matrix
    if matrix.ndim != 2 or matrix.shape[1] != n_labels:
        raise ValueError(
            f"{source} must hold one score for each of {plural(n_labels, 'label')}, got an array "
            f"of shape {matrix.shape}."
        )
    finite = np.isfinite(matrix)
    if not finite.all():
        row, column = np.argwhere(~finite)[0].tolist()
        raise ValueError(
            f"{source} must be finite numbers, got {matrix[row, column]} in row {row}, label "
            f"{column}."
        )
    return matrix


def _is_probability(scores: FloatArray) -> NDArray[np.bool_]:
    return (scores >= -_TOLERANCE) & (scores <= 1 + _TOLERANCE)


def _clipped(log_odds: FloatArray) -> FloatArray:
    return np.clip(log_odds, -_MAX_LOG_ODDS, _MAX_LOG_ODDS)


def _logits(p: FloatArray, at_least: float) -> FloatArray:
    return np.asarray(logit(np.clip(p, at_least, 1 - at_least)))
