"""One task: fit and score every fold, level, strategy and s of a repetition."""

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils.validation import has_fit_parameter

from credalchain._utils.array_types import Labels
from credalchain._utils.validation import seeded
from credalchain.chains.classifier import CredalBinaryRelevanceClassifier, CredalChainClassifier
from credalchain.chains.naive.codes import Codes, as_codes
from credalchain.chains.naive.counts import ChainCounts, count
from credalchain.chains.naive.estimator import NaiveCredal
from credalchain.chains.naive.model import NaiveChainModel
from credalchain.datasets import MultilabelDataset, load
from credalchain.datasets.corruption import CORRUPTIONS
from credalchain.datasets.describe import describe_features
from credalchain.datasets.registry import DataSource
from credalchain.exceptions import data_warnings_ignored
from credalchain.experiments.grid import TARGET, TARGETS, chosen_values
from credalchain.experiments.splits import iterative_folds, shuffled_folds
from credalchain.experiments.study import SETTINGS, Study, build_estimator
from credalchain.experiments.tasks import Task, seed_of
from credalchain.labels import MISSING
from credalchain.metrics import MEASURES
from credalchain.model_selection import (
    PathPrediction,
    caution_in_use,
    partial_labels,
    predict_along,
    row_groups,
    rows_of_groups,
    score_path,
    training_targets,
)
from credalchain.preprocessing import Discretizer, ZeroAndBins

Rows = NDArray[np.int64]
Record = dict[str, Any]

NO_STRATEGY = "none"  # for methods without a chain


@lru_cache(maxsize=8)
def load_dataset(source: DataSource) -> MultilabelDataset:
    """A data set of a study; the newest stay in memory.

    Of a user's own file, without names, free text and row numbers, as ``credalchain evaluate``.
    """
    with warnings.catch_warnings():  # about a file's dialect, given when the study was read
        warnings.simplefilter("ignore", UserWarning)
        data = load(source)
    if isinstance(source, str) or not hasattr(data.X, "columns"):
        return data
    used = [feature.name for feature in describe_features(data.X) if feature.is_used]
    if not used:
        raise ValueError(f"{data.name}: every column looks like names, free text or row numbers.")
    return replace(data, X=data.X[used], feature_names=used)


def left_out_columns(source: DataSource) -> list[str]:
    """Columns of a user's own file that a study does not learn from."""
    if isinstance(source, str):
        return []
    used = load_dataset(source).feature_names
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return [name for name in load(source).feature_names if name not in used]


def run_task(task: Task) -> list[Record]:
    """One record per fold, level, strategy and s."""
    data = load_dataset(task.data)
    method = _EstimatorMethod if task.method.kind == "estimator" else _NaiveMethod
    records: list[Record] = []
    with data_warnings_ignored():  # of rows that are held out
        for trial in method(task, data).trials():
            records += _records(task, data, trial)
    return records


def folds_of(study: Study, name: str, Y: Labels, repetition: int, groups: Any = None) -> list[Rows]:
    """The folds of a repetition: the same for every method. Groups are kept together."""
    rng = np.random.default_rng(seed_of(study.seed, "folds", name, repetition))
    group_of = np.arange(len(Y)) if groups is None else row_groups(Y, Y, groups)
    labels = np.full((int(group_of.max()) + 1, Y.shape[1]), MISSING, dtype=np.int8)
    np.maximum.at(labels, group_of, Y)  # a group has the labels of all its rows
    if len(labels) < study.folds:
        raise ValueError(f"{name} has {len(labels)} groups, but folds is {study.folds}.")
    if study.split == "iterative":
        folds = iterative_folds(labels, study.folds, rng)
    else:
        folds = shuffled_folds(len(labels), study.folds, rng)
    return [rows_of_groups(group_of, fold) for fold in folds]


def damaged_labels(study: Study, name: str, Y: Labels, repetition: int) -> list[Labels]:
    """The labels at every level: nested, the same for every method."""
    damage = CORRUPTIONS[study.corruption]
    seed = seed_of(study.seed, "corruption", name, repetition)
    return [damage(Y, level, seed) for level in study.levels]


def order_of(study: Study, name: str, repetition: int, fold: int, m: int) -> NDArray[np.int64]:
    """The label order of a fold: the same for every method, level, strategy and s."""
    rng = np.random.default_rng(seed_of(study.seed, "order", name, repetition, fold))
    return rng.permutation(m)


@dataclass(frozen=True)
class Trial:
    """The predictions of one fit, by strategy, along ``caution_parameter`` ("" if none).

    ``targets`` are the shares that values of caution were chosen to answer; none if they are named.
    """

    fold: int
    level: float
    rows: Rows
    predictions: list[tuple[str, PathPrediction]]
    fit_seconds: float
    predict_seconds: float
    caution_parameter: str = "s"
    larger_is_more_cautious: bool = True
    targets: tuple[float, ...] = ()


def _records(task: Task, data: MultilabelDataset, trial: Trial) -> Iterator[Record]:
    truth = data.labels[trial.rows]
    for strategy, path in trial.predictions:
        columns = score_path(task.study.measures, truth, path)
        along: Record = {
            "caution_parameter": trial.caution_parameter,
            "larger_is_more_cautious": trial.larger_is_more_cautious,
        }
        if trial.targets:  # the values differ from fold to fold
            along |= {"caution_parameter": TARGET, "larger_is_more_cautious": False}
        points = trial.targets or path.values
        for s, value, *scores in zip(points, path.values, *columns, strict=True):
            if trial.targets:
                along |= {"chosen_parameter": trial.caution_parameter, "chosen_value": value}
            yield {
                "dataset": task.dataset,
                "method": task.method.name,
                "strategy": strategy,
                "s": s,  # the value of the caution parameter, whatever its name
                "missing": trial.level,
                "repetition": task.repetition,
                "fold": trial.fold,
                **dict(zip(task.study.measures, scores, strict=True)),
                "fit_seconds": trial.fit_seconds,
                "predict_seconds": trial.predict_seconds,
                **along,
            }


def _training_rows(folds: list[Rows], fold: int) -> Rows:
    return np.sort(np.concatenate([rows for i, rows in enumerate(folds) if i != fold]))


def _values_for(task: Task, estimator: Any, X: Any, labels: Labels, fold: int) -> Any:
    """Choose values of caution on training rows; every method has the same rows held out."""
    seed = seed_of(task.study.seed, "grid", task.dataset, task.repetition, fold)
    return chosen_values(estimator, X, training_targets(labels), np.random.default_rng(seed))


# -- our own methods: everything from counts -------------------------------------------------


class _NaiveMethod:
    """Naive credal chains, with counts shared by folds where the codes allow."""

    def __init__(self, task: Task, data: MultilabelDataset) -> None:
        self._task, self._data = task, data
        self._study, self._method = task.study, task.method
        settings = self._settings = SETTINGS[task.study.settings]
        self._base = NaiveCredal(
            epsilon=settings.epsilon,
            prior=settings.prior,
            denominator=settings.denominator,
            discretizer=None,
        )
        self._naive = replace(self._base.settings(), epsilon_at_zero=settings.epsilon_at_zero)
        self._folds = folds_of(self._study, task.dataset, data.labels, task.repetition, data.groups)
        self._levels = damaged_labels(self._study, task.dataset, data.labels, task.repetition)

    def trials(self) -> Iterator[Trial]:
        bins, codes = _encode_dataset(self._task.data, self._method.n_bins)
        if self._settings.bins == "train" and _bins_depend_on_rows(bins, self._data.X):
            yield from self._trials_fold_by_fold()
        else:
            yield from self._trials_by_subtraction(bins.n_categories_, codes)

    def _trials_by_subtraction(self, k: Rows, input_codes: Any) -> Iterator[Trial]:
        """Codes are the same in all folds: count all rows and each fold, and subtract."""
        parts = [take_rows(input_codes, rows) for rows in self._folds]
        codes = [as_codes(part, k) for part in parts]
        for level, labels in zip(self._study.levels, self._levels, strict=True):
            started = time.perf_counter()
            counts = [count(c, labels[rows], k) for c, rows in zip(codes, self._folds, strict=True)]
            total = sum(counts[1:], start=counts[0])
            seconds = (time.perf_counter() - started) / len(parts)  # each fold's share
            for fold, part in enumerate(parts):
                training = total - counts[fold]
                yield self._trial(fold, level, part, codes[fold], training, seconds)

    def _trials_fold_by_fold(self) -> Iterator[Trial]:
        """Bins are learned on the training rows of each fold; levels share the codes."""
        for fold, rows in enumerate(self._folds):
            training = _training_rows(self._folds, fold)
            bins = Discretizer(self._method.n_bins).fit(take_rows(self._data.X, training))
            input_codes = bins.encode(self._data.X)
            codes = as_codes(take_rows(input_codes, training), bins.n_categories_)
            X_test = take_rows(input_codes, rows)
            encoded = as_codes(X_test, bins.n_categories_)
            for level, labels in zip(self._study.levels, self._levels, strict=True):
                started = time.perf_counter()
                counts = count(codes, labels[training], bins.n_categories_)
                seconds = time.perf_counter() - started
                yield self._trial(fold, level, X_test, encoded, counts, seconds)

    def _trial(
        self,
        fold: int,
        level: float,
        codes: Any,
        encoded: Codes,
        counts: ChainCounts,
        seconds: float,
    ) -> Trial:
        together: Any = self._method.strategies if self._method.kind == "chain" else None
        grids, targets = [(together, self._method.s)], ()
        if self._method.s is None:
            each = [None] if together is None else [(strategy,) for strategy in together]
            grids = [(part, self._choose_values(fold, level, part)) for part in each]
            targets = TARGETS
        started = time.perf_counter()
        classifier = self._classifier(fold, counts)
        predictions = [
            prediction
            for strategies, values in grids
            for prediction in self._predict(classifier, codes, encoded, strategies, values)
        ]
        spent = time.perf_counter() - started
        rows = self._folds[fold]
        return Trial(fold, level, rows, predictions, seconds, spent, targets=targets)

    def _choose_values(self, fold: int, level: float, strategies: Any) -> Any:
        training = _training_rows(self._folds, fold)
        labels = self._levels[self._study.levels.index(level)][training]
        base = clone(self._base).set_params(discretizer=Discretizer(self._method.n_bins))
        estimator: Any = CredalBinaryRelevanceClassifier(base)
        if strategies is not None:
            order = self._order(fold, labels.shape[1])
            estimator = CredalChainClassifier(base, strategy=strategies[0], order=order)
        X = take_rows(self._data.X, training)
        return _values_for(self._task, estimator, X, labels, fold)

    def _predict(
        self, classifier: Any, codes: Any, encoded: Codes, strategies: Any, values: Any
    ) -> list[tuple[str, PathPrediction]]:
        """Labels for the whole grid; bounds and the precise chain only if a measure needs them.

        ``encoded`` are the codes as the model takes them: the same at every level.
        """
        needs = {MEASURES[name].needs for name in self._study.measures}
        request = classifier.request(encoded, s=values, strategy=strategies, wants_bounds=False)
        paths = classifier.model_.infer(encoded, request).labels
        precise = classifier.predict(codes) if "precise" in needs else None
        names = strategies or (None,)
        bounds: list[Any] = [()] * len(names)
        if "bounds" in needs:
            bounds = [
                tuple(classifier.infer(codes, s=s, strategy=name) for s in values) for name in names
            ]
        return [
            (name or NO_STRATEGY, PathPrediction(values, path, bound, precise))
            for name, path, bound in zip(names, paths, bounds, strict=True)
        ]

    def _classifier(self, fold: int, counts: ChainCounts) -> Any:
        model = NaiveChainModel(counts, self._naive, None)
        about: dict[str, Any] = {"n_features": counts.n_features, "base": self._base}
        if self._method.kind == "relevance":
            return CredalBinaryRelevanceClassifier.from_model(model, **about)
        order = self._order(fold, counts.n_labels)
        return CredalChainClassifier.from_model(model, order=order, **about)

    def _order(self, fold: int, n_labels: int) -> Any:
        if self._method.order != "random":
            return self._method.order
        return order_of(self._study, self._task.dataset, self._task.repetition, fold, n_labels)


@lru_cache(maxsize=8)
def _encode_dataset(source: DataSource, n_bins: int) -> tuple[Discretizer, Any]:
    """Bins learned on all rows of a data set, and all its codes: the same in every repetition."""
    X = load_dataset(source).X
    bins = Discretizer(n_bins).fit(X)
    return bins, bins.encode(X)


def _bins_depend_on_rows(discretizer: Discretizer, X: Any) -> bool:
    """Whether other rows could give other bins: not if sparse 0/1, or declared categories."""
    if sparse.issparse(X):
        binnings = discretizer.binnings_
        return not all(isinstance(b, ZeroAndBins) and len(b.cuts) == 0 for b in binnings)
    dtypes = getattr(X, "dtypes", (None,))
    return any(getattr(dtype, "categories", None) is None for dtype in dtypes)


# -- any other estimator -----------------------------------------------------------------------


class _EstimatorMethod:
    """An estimator with the interface of scikit-learn, fitted as it comes."""

    def __init__(self, task: Task, data: MultilabelDataset) -> None:
        self._task, self._data = task, data
        self._folds = folds_of(task.study, task.dataset, data.labels, task.repetition, data.groups)
        self._levels = damaged_labels(task.study, task.dataset, data.labels, task.repetition)

    def trials(self) -> Iterator[Trial]:
        for fold, rows in enumerate(self._folds):
            training = _training_rows(self._folds, fold)
            X, X_test = (take_rows(self._data.X, part) for part in (training, rows))
            for level, labels in zip(self._task.study.levels, self._levels, strict=True):
                values, targets = self._task.method.s, ()
                if values is None:
                    estimator = self._estimator(fold)
                    values = _values_for(self._task, estimator, X, labels[training], fold)
                    targets = TARGETS
                started = time.perf_counter()
                estimator = self._estimator(fold)
                about: dict[str, Any] = {}
                if self._data.groups is not None and has_fit_parameter(estimator, "groups"):
                    about = {"groups": np.asarray(self._data.groups)[training]}
                estimator = estimator.fit(X, training_targets(labels[training]), **about)
                fitted = time.perf_counter()
                predictions = [(NO_STRATEGY, self._predict(estimator, X_test, values))]
                done = time.perf_counter()
                seconds = fitted - started, done - fitted
                caution = _caution_of(estimator)
                yield Trial(fold, level, rows, predictions, *seconds, *caution, targets)

    def _predict(self, estimator: Any, X: Any, values: tuple[float, ...]) -> PathPrediction:
        """Along the caution parameter, if there is one; at its value if the study names none."""
        measures = self._task.study.measures
        if hasattr(estimator, "predict_path"):
            return predict_along(estimator, X, values or (caution_in_use(estimator),), measures)
        needs_precise = any(MEASURES[name].needs == "precise" for name in measures)
        precise = estimator.predict(X) if needs_precise else None
        labels = np.asarray(partial_labels(estimator, X))[None]
        return PathPrediction((0.0,), labels, (None,), precise)

    def _estimator(self, fold: int) -> Any:
        task = self._task
        method, study = task.method, task.study
        estimator = build_estimator(method.class_path, method.params, study.allow, study.folder)
        seed = seed_of(task.study.seed, "estimator", task.dataset, task.repetition, fold)
        number = int(seed.generate_state(1)[0])
        return seeded(estimator, number)


def _caution_of(estimator: Any) -> tuple[str, bool]:
    """The caution parameter by which predictions differ, and its direction; "" if there is none."""
    if not hasattr(estimator, "predict_path"):
        return "", True
    return str(estimator.caution_parameter), bool(
        getattr(estimator, "larger_is_more_cautious", True)
    )
