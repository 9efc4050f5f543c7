"""StackedJointForest: a joint forest over the scores of any classifier."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, is_classifier
from sklearn.model_selection import GroupKFold, KFold, check_cv
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from credalchain._utils.array_types import Labels
from credalchain._utils.progress import Phases, show_progress
from credalchain._utils.text import plural
from credalchain._utils.validation import check_choice, check_instance
from credalchain.joint.forest import CredalJointForest
from credalchain.joint.members import KernelPowerset, ScoreTilt
from credalchain.joint.scores import (
    PRECOMPUTED,
    ClassifierScores,
    PrecomputedScores,
    fit_scores,
    frozen_scores,
    held_out_scores,
)
from credalchain.labels import Targets, column_names
from credalchain.preprocessing import TableEncoder, as_indexable, check_encoder, validate_table
from credalchain.typing import LabelsLike, MatrixLike, RandomStateLike, VectorLike

_MAX_COLUMNS = 500  # that trees see beside the scores, with features="auto"
_WIDE = 5000  # columns of a table that trees do not see
_MAX_CENTRES = 500  # of a kernel over scores: 2000 measured no better
_MANY_LABELS = 500_000  # cells, above which three folds are enough
_MAX_SCORES = 64  # that trees try at each split
_MAX_ROWS = 5000  # once the joint model has so many, no further folds are held out


def check_scored_estimator(estimator: Any, or_none: bool = True) -> None:
    """Validate that an estimator is None, "precomputed", or a classifier that gives scores."""
    if (estimator is None and or_none) or (isinstance(estimator, str) and estimator == PRECOMPUTED):
        return
    methods = ("predict_proba", "decision_function")
    gives_scores = any(hasattr(estimator, name) for name in methods) or (
        hasattr(estimator, "__sklearn_tags__") and is_classifier(estimator)
    )
    if isinstance(estimator, type) or not hasattr(estimator, "fit") or not gives_scores:
        raise TypeError(
            f"estimator must be {'None, ' if or_none else ''}an instance of a classifier with "
            f'predict_proba or decision_function, or "precomputed", got {estimator!r}.'
        )


def is_wide(X: Any) -> bool:
    """Return whether a table is sparse, or has more columns than trees can use."""
    return sparse.issparse(X) or (hasattr(X, "shape") and X.ndim == 2 and X.shape[1] > _WIDE)


def _is_small_table(X: Any) -> bool:
    """Return whether all columns of a table are numbers or categories, and not too many."""
    if sparse.issparse(X) or np.ndim(X) != 2 or X.shape[1] > _MAX_COLUMNS:
        return False
    kinds = [dtype.kind for dtype in getattr(X, "dtypes", [np.asarray(X).dtype])]
    return all(kind in "biuf" for kind in kinds)


def linear_classifier() -> Any:
    """Return what is fitted to each label of wide data."""
    from sklearn.linear_model import LogisticRegression  # slow to import

    return LogisticRegression(solver="liblinear")


class StackedJointForest(CredalJointForest):
    """A joint forest over the scores of any classifier."""

    def __init__(
        self,
        estimator: Any,
        forest: BaseEstimator | None = None,
        *,
        features: str = "auto",
        cv: int | object | None = None,
        members: Sequence[BaseEstimator] | None = None,
        missing: str = "ignorable",
        s: float = 0.5,
        threshold: float | VectorLike = 0.5,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: RandomStateLike = None,
    ) -> None:
        super().__init__(
            forest,
            members=members,
            missing=missing,
            s=s,
            threshold=threshold,
            n_jobs=n_jobs,
            verbose=verbose,
            random_state=random_state,
        )
        self.estimator = estimator
        self.features = features
        self.cv = cv

    def check_parameters(self) -> None:
        super().check_parameters()
        check_choice("features", self.features, ("auto", "scores", "both"))

    def _unfitted_members(self) -> list[Any]:
        """Return the tilt, and by default a kernel member; few centres if it sees scores alone."""
        if self.members is None and getattr(self, "table_", None) is None:
            return [ScoreTilt(), KernelPowerset(max_centres=_MAX_CENTRES)]
        return [ScoreTilt(), *super()._unfitted_members()]

    def unfitted_forest(self, shape: tuple[int, int] = (1, 1)) -> Any:
        """Return the forest to be fitted, whose trees try fewer of many scores at each split."""
        forest = super().unfitted_forest(shape)
        if self.forest is None and getattr(self, "table_", None) is None:
            forest.set_params(max_features=min(0.5, _MAX_SCORES / shape[1]))
        return forest

    can_fit_chunks = False  # scores of all rows are needed

    def _fit_model_from_chunks(self, chunks: Any, sample_size: int | None) -> None:
        raise TypeError("a joint model over the scores of another needs all rows in memory.")

    def fit(self, X: MatrixLike, Y: LabelsLike, *, groups: Any = None) -> Self:
        """Fit the estimator, and a joint forest to its scores; of a group, to one row."""
        self.targets_, labels = Targets.learn(Y)
        self.check_parameters()
        X = as_indexable(X)
        check_consistent_length(X, labels, groups)
        validate_data(self, X, reset=True, skip_check_array=True)
        rng = check_random_state(self.random_state)
        phases = Phases("fit", {"scores": 1.0, "joint model": 1.0})
        with show_progress(self.verbose), phases:
            log_odds = self._fit_scores(X, labels, groups, rng.randint(2**31 - 1))
            self.table_ = self._learn_table(X)
            rows = np.flatnonzero(np.isfinite(log_odds).all(axis=1))
            if groups is not None:  # or its rows would vouch for each other
                rows = rng.permutation(rows)
                rows = np.sort(rows[np.unique(np.asarray(groups)[rows], return_index=True)[1]])
            encoded = self._with_table(X, log_odds)[rows]
            words = {} if self.table_ is None else self.table_.words
            encoder = TableEncoder(encoded.shape[1], words)
            phases.start("joint model")
            self.model_ = self._fit_model(encoded, labels[rows], encoder=encoder)
            numbers = self.model_.row_numbers
            if len(rows) < len(labels):
                self.model_.row_numbers = rows if numbers is None else rows[numbers]
        self._warn_about_labels(labels)
        return self

    def _fit_scores(self, X: Any, labels: Labels, groups: Any, seed: int) -> NDArray[np.float64]:
        """Set ``scores_``, and return log-odds of the training rows, not fitted on them."""
        from sklearn.frozen import FrozenEstimator

        n_labels, n_jobs = labels.shape[1], effective_n_jobs(self.n_jobs)
        self.learned_from_ = "assumed: the model behind the scores was not fitted on these rows"
        if isinstance(self.estimator, str):
            self._check_order(X)
            self.scores_: Any = PrecomputedScores(X, n_labels)
            return np.asarray(self.scores_.log_odds(X))
        if isinstance(self.estimator, FrozenEstimator):
            self.learned_from_ = "assumed: the frozen model was not fitted on these rows"
            self.scores_ = frozen_scores(self.estimator, X, n_labels, self.targets_.classes)
            return np.asarray(self.scores_.log_odds(X))
        cv = self.cv
        if cv is None:
            cv = 3 if labels.size > _MANY_LABELS else 5
        if isinstance(cv, Integral):
            n_apart = len(labels) if groups is None else len(np.unique(groups))
            if n_apart < 2:
                what = plural(n_apart, "row" if groups is None else "group")
                raise ValueError(f"{what} cannot be split to hold out scores: X must have two.")
            folds = KFold if groups is None else GroupKFold
            cv = folds(max(2, min(cv, n_apart)), shuffle=True, random_state=seed)
        splits = check_cv(cv).split(X, labels, groups)
        held_out = held_out_scores(
            self.estimator, X, labels, splits, n_jobs=n_jobs, max_rows=_MAX_ROWS
        )
        self.scores_ = fit_scores(self.estimator, X, labels, n_jobs)
        n_held_out = int(np.isfinite(held_out).all(axis=1).sum())
        each = " of each label" if len(self.scores_.models) > 1 else ""
        self.learned_from_ = (
            f"joint model over the scores of {type(self.estimator).__name__}{each}, held out "
            f"for {plural(n_held_out, 'row')}"
        )
        return held_out

    def _check_order(self, X: Any) -> None:
        """Raise a ValueError if columns of scores are the labels in another order."""
        columns, names = column_names(X), self.targets_.names.tolist()
        if columns is not None and columns != names and sorted(columns) == sorted(names):
            raise ValueError(
                f"the columns of X must be in the order of the labels, {names}, got {columns}."
            )

    def _learn_table(self, X: Any) -> TableEncoder | None:
        """Learn the encoder of the columns that trees see beside the scores."""
        if self.features == "scores" or isinstance(self.estimator, str):
            return None
        if self.features == "auto" and not _is_small_table(X):
            return None
        return TableEncoder.learn(validate_table(self, X, reset=True))

    def _with_table(self, X: Any, log_odds: NDArray[np.float64]) -> NDArray[np.float32]:
        if self.table_ is None:
            return np.ascontiguousarray(log_odds, dtype=np.float32)
        table = self.table_.encode(validate_table(self, X, reset=False), np.float32)
        return np.hstack([table, log_odds.astype(np.float32)])

    def check_state(self) -> None:
        check_instance("scores_", self.scores_, (ClassifierScores, PrecomputedScores))
        self.scores_.check_state(self.model_.n_labels)
        if self.table_ is not None:
            check_encoder(self.table_)
        super().check_state()

    def _n_encoded_columns(self) -> int:
        return int(self.model_.n_labels) + (0 if self.table_ is None else self.table_.n_columns)

    def encode(self, X: MatrixLike) -> NDArray[np.float32]:
        check_is_fitted(self, "model_")
        validate_data(self, X, reset=False, skip_check_array=True)
        return self._with_table(X, self.scores_.log_odds(X))
