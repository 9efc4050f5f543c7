"""One task: fit and score every fold, level, strategy and value of caution of a repetition."""

import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils.validation import has_fit_parameter

from credalchain import model_selection as selection
from credalchain._utils.array_types import FloatArray, Labels
from credalchain._utils.validation import seeded
from credalchain.chains.classifier import CredalBinaryRelevanceClassifier, CredalChainClassifier
from credalchain.chains.naive.counts import ChainCounts, as_codes, count
from credalchain.chains.naive.estimator import NaiveCredal
from credalchain.chains.naive.model import NaiveChainModel
from credalchain.columns import describe_features
from credalchain.datasets import MultilabelDataset, load
from credalchain.datasets.registry import DataSource
from credalchain.exceptions import data_warnings_ignored
from credalchain.labels import ABSTAIN
from credalchain.metrics import MEASURES
from credalchain.preprocessing import Discretizer, ZeroAndBins
from credalchain.promises.calibration import caution_values
from credalchain.studies.study_file import SETTINGS, build_estimator
from credalchain.studies.tasks import Task, damaged_labels, folds_of, order_of, seed_of

NO_STRATEGY = "none"  # for methods without a chain
TARGET = "target_completeness"  # what the caution parameter is called where values are chosen
TARGETS = tuple((np.arange(20, 0, -1) / 20).tolist())  # shares of labels that are to be answered

_EVERY = 9  # of the values that calibration tries: the search is coarse, then fine
_BOLDEST = 1e6  # where larger is bolder: answers whatever can be answered
_WIDEST_STEP = 0.05
_ROUNDS = 3


@lru_cache(maxsize=8)
def load_dataset(source: DataSource) -> MultilabelDataset:
    """Return a data set of a study; the newest stay in memory.

    Of a user's own file, without identifiers, texts, dates and numbers in texts.
    """
    data, left_out = _read(source), left_out_columns(source)
    if not left_out:
        return data
    used = [name for name in data.feature_names if name not in left_out]
    if not used:
        raise ValueError(f"{data.name}: every column holds identifiers, texts or dates.")
    return replace(data, X=data.X[used], feature_names=used)


def left_out_columns(source: DataSource) -> list[str]:
    """Return the columns of a user's own file that a study does not learn from."""
    X = None if isinstance(source, str) else _read(source).X
    if not hasattr(X, "columns"):
        return []
    return [feature.name for feature in describe_features(X) if not feature.is_plain]


@lru_cache(maxsize=1)
def _read(source: DataSource) -> MultilabelDataset:
    with warnings.catch_warnings():  # about a file's dialect, given when the study was read
        warnings.simplefilter("ignore", UserWarning)
        return load(source)


def frequent_labels(data: MultilabelDataset, limit: int) -> MultilabelDataset:
    """Return a data set with its most frequent labels, at most ``limit`` of them; 0: all."""
    if not 0 < limit < len(data.label_names):
        return data
    kept = np.sort(np.argsort(-(data.labels == 1).sum(axis=0), kind="stable")[:limit])
    names = [data.label_names[j] for j in kept]
    return replace(data, labels=data.labels[:, kept], label_names=names)


def run_task(task: Task) -> pd.DataFrame:
    """Return one record per fold, level, strategy and value of caution."""
    method = _EstimatorMethod if task.method.kind == "estimator" else _NaiveMethod
    with data_warnings_ignored():  # of rows that are held out
        data = frequent_labels(load_dataset(task.data), task.study.max_labels)
        trials = method(task, data).trials()
        return pd.concat(trials, ignore_index=True)


class _MethodOfTask:
    """Folds, and labels at every level, which all methods of a data set and repetition share."""

    def __init__(self, task: Task, data: MultilabelDataset) -> None:
        self.task, self.data = task, data
        about = task.study, task.dataset, data.labels, task.repetition
        self.folds = folds_of(*about, data.groups)
        self.training = [
            np.sort(np.concatenate([rows for i, rows in enumerate(self.folds) if i != fold]))
            for fold in range(len(self.folds))
        ]
        if limit := task.study.max_training_rows:
            for fold, rows in enumerate(self.training):
                drawn = np.random.default_rng(self.seed("rows", fold)).permutation(rows)
                self.training[fold] = np.sort(drawn[:limit])
        self.levels = list(zip(task.study.levels, damaged_labels(*about), strict=True))
        self.needs = {MEASURES[name].needs for name in task.study.measures}

    def records(
        self,
        fold: int,
        level: float,
        path: selection.PathPrediction,
        strategies: list[str],
        seconds: tuple[float, float],
        caution: tuple[str, bool] = ("s", True),
    ) -> pd.DataFrame:
        """Return the predictions of one fit as records: one for each value of ``path``.

        ``strategies`` has an entry for each of them; ``seconds`` are those of fitting and
        predicting, ``caution`` the caution parameter ("" if there is none) and whether larger is
        more cautious. If the study names no values, records have the shares of labels that values
        were chosen to answer in their place.
        """
        task, (parameter, larger) = self.task, caution
        measures, truth = task.study.measures, self.data.labels[self.folds[fold]]
        records = pd.DataFrame(
            {
                "dataset": task.dataset,
                "method": task.method.name,
                "strategy": strategies,
                "s": path.values,  # of the caution parameter, whatever its name
                "missing": level,
                "repetition": task.repetition,
                "fold": fold,
                **dict(zip(measures, selection.score_path(measures, truth, path), strict=True)),
                "fit_seconds": seconds[0],
                "predict_seconds": seconds[1],
                "caution_parameter": parameter,
                "larger_is_more_cautious": larger,
            }
        )
        if task.method.s is None:
            records["s"] = TARGETS * (len(records) // len(TARGETS))
            records["caution_parameter"], records["larger_is_more_cautious"] = TARGET, False
            records["chosen_parameter"], records["chosen_value"] = parameter, path.values
        return records

    def seed(self, purpose: str, fold: int) -> np.random.SeedSequence:
        task = self.task
        return seed_of(task.study.seed, purpose, task.dataset, task.repetition, fold)

    def choose_values(self, fitted: Any, X: Any) -> tuple[float, ...]:
        """Return a value of caution for each of ``TARGETS``: shares of the labels of ``X``.

        Labels play no part. Where two neighbouring values answer shares that are far apart, values
        between them are tried. Several targets share a value if there is none for each.
        """
        parameter, grid = fitted.caution_parameter, caution_values(fitted, None)
        values = np.append(grid[::_EVERY], grid[-1:])
        is_rising = values[0] < values[-1]
        values = values if is_rising else np.append(_BOLDEST, values)

        def answered(some: FloatArray) -> FloatArray:
            try:
                path = np.asarray(fitted.predict_path(X, some))
            except Exception as error:
                raise ValueError(
                    f"no values of {parameter} could be chosen, because predict_path fails between "
                    f"{some.min():g} and {some.max():g} ({error}): name them in the study, as "
                    f"{parameter} = [...]."
                ) from error
            return np.asarray((path != ABSTAIN).mean(axis=(1, 2)))

        shares = answered(values)
        for _ in range(_ROUNDS):
            wide = np.flatnonzero(np.abs(np.diff(shares)) > _WIDEST_STEP)
            if not len(wide):
                break
            between = np.linspace(values[wide], values[wide + 1], 8)[1:-1].ravel()
            values, shares = np.append(values, between), np.append(shares, answered(between))
            order = np.argsort(values if is_rising else -values, kind="stable")  # boldest first
            values, shares = values[order], shares[order]
        return tuple(values[np.abs(shares[:, None] - TARGETS).argmin(axis=0)].tolist())


class _NaiveMethod(_MethodOfTask):
    """Naive credal chains, with counts shared by folds where the codes allow."""

    def __init__(self, task: Task, data: MultilabelDataset) -> None:
        super().__init__(task, data)
        settings = SETTINGS[task.study.settings]
        about = {name: getattr(settings, name) for name in ("epsilon", "prior", "denominator")}
        self._base = NaiveCredal(**about, discretizer=None)
        self._naive = replace(self._base.settings(), epsilon_at_zero=settings.epsilon_at_zero)
        bins, codes = _encode_dataset(task.data, task.method.n_bins)
        self._encoded = [(bins.n_categories_, codes)] * len(self.folds)
        has_bins_per_fold = settings.bins == "train" and _bins_depend_on_rows(bins, data.X)
        self._is_per_fold = has_bins_per_fold or task.study.max_training_rows > 0
        if has_bins_per_fold:
            fitted = [clone(bins).fit(take_rows(data.X, rows)) for rows in self.training]
            self._encoded = [(bins.n_categories_, bins.encode(data.X)) for bins in fitted]

    def trials(self) -> Iterator[pd.DataFrame]:
        """Yield a trial per level and fold."""
        tested = []
        for rows, (k, codes) in zip(self.folds, self._encoded, strict=True):
            X = take_rows(codes, rows)
            tested.append((X, as_codes(X, k)))  # as a model takes them: the same at every level
        for level, labels in self.levels:
            for fold, (counts, seconds) in enumerate(self._count_folds(labels, tested)):
                yield self._trial(fold, level, tested[fold], counts, seconds)

    def _count_folds(self, labels: Labels, tested: Any) -> Iterator[tuple[ChainCounts, float]]:
        """Yield the counts of the training rows of each fold, and the seconds that it took.

        Where all folds have the same codes and all training rows are used, each is counted and
        subtracted from all rows.
        """
        if self._is_per_fold:
            for rows, (k, codes) in zip(self.training, self._encoded, strict=True):
                encoded = as_codes(take_rows(codes, rows), k)
                started = time.perf_counter()
                counts = count(encoded, labels[rows], k)
                yield counts, time.perf_counter() - started
            return
        started, (k, _) = time.perf_counter(), self._encoded[0]
        parts = zip(self.folds, tested, strict=True)
        of_folds = [count(encoded, labels[rows], k) for rows, (_, encoded) in parts]
        total = sum(of_folds[1:], start=of_folds[0])
        seconds = (time.perf_counter() - started) / len(of_folds)  # each fold's share
        yield from ((total - one, seconds) for one in of_folds)

    def _trial(
        self, fold: int, level: float, rows: Any, counts: Any, fitting: float
    ) -> pd.DataFrame:
        method = self.task.method
        together: Any = method.strategies if method.kind == "chain" else None
        classifier = self._classifier(fold, counts)
        grids: list[Any] = [(together, method.s)]
        if method.s is None:
            each = [None] if together is None else [(strategy,) for strategy in together]
            grids = [(part, self._chosen(classifier, rows[0], part)) for part in each]
        started = time.perf_counter()
        paths = [self._predict(classifier, rows, *grid) for grid in grids]
        precise = classifier.predict(rows[0]) if "precise" in self.needs else None
        values, answers, bounds = zip(*paths, strict=True)
        path = selection.PathPrediction(
            sum(values, ()), np.concatenate(answers), sum(bounds, ()), precise
        )
        seconds = fitting, time.perf_counter() - started
        strategies = np.repeat(names := together or (NO_STRATEGY,), len(path.values) // len(names))
        return self.records(fold, level, path, strategies.tolist(), seconds)

    def _predict(self, classifier: Any, rows: Any, strategies: Any, values: Any) -> Any:
        """Return values, labels and bounds, strategy by strategy; bounds only if needed."""
        X, encoded = rows
        request = classifier.request(encoded, s=values, strategy=strategies, wants_bounds=False)
        labels = classifier.model_.infer(encoded, request).labels
        names = strategies or (None,) if "bounds" in self.needs else ()
        bounds = tuple(classifier.infer(X, s=s, strategy=name) for name in names for s in values)
        return values * len(labels), labels.reshape(-1, *labels.shape[2:]), bounds

    def _chosen(self, classifier: Any, X: Any, strategies: Any) -> tuple[float, ...]:
        if strategies is not None:
            classifier.set_params(strategy=strategies[0])
        return self.choose_values(classifier, X)

    def _classifier(self, fold: int, counts: ChainCounts) -> Any:
        """Return the classifier of a fold, with a model of these counts."""
        model = NaiveChainModel(counts, self._naive, None)
        about: dict[str, Any] = {"n_features": counts.n_features, "base": self._base}
        if self.task.method.kind != "chain":
            return CredalBinaryRelevanceClassifier.from_model(model, **about)
        return CredalChainClassifier.from_model(model, order=self._order(fold), **about)

    def _order(self, fold: int) -> Any:
        task = self.task
        if task.method.order != "random":
            return task.method.order
        m = self.data.labels.shape[1]
        return order_of(task.study, task.dataset, task.repetition, fold, m)


@lru_cache(maxsize=8)
def _encode_dataset(source: DataSource, n_bins: int) -> tuple[Discretizer, Any]:
    """Return bins learned on all rows of a data set, and all its codes, for every repetition."""
    X = load_dataset(source).X
    bins = Discretizer(n_bins).fit(X)
    return bins, bins.encode(X)


def _bins_depend_on_rows(discretizer: Discretizer, X: Any) -> bool:
    """Return whether other rows could give other bins: not if sparse 0/1, or categories."""
    if sparse.issparse(X):
        binnings = discretizer.binnings_
        return not all(isinstance(b, ZeroAndBins) and len(b.cuts) == 0 for b in binnings)
    dtypes = getattr(X, "dtypes", (None,))
    return any(getattr(dtype, "categories", None) is None for dtype in dtypes)


class _EstimatorMethod(_MethodOfTask):
    """An estimator with the interface of scikit-learn, fitted as it comes."""

    def trials(self) -> Iterator[pd.DataFrame]:
        """Yield a trial per fold and level."""
        for fold, rows in enumerate(self.folds):
            training = self.training[fold]
            X, X_test = (take_rows(self.data.X, part) for part in (training, rows))
            for level, labels in self.levels:
                started = time.perf_counter()
                estimator = self._estimator(fold)
                about: dict[str, Any] = {}
                if self.data.groups is not None and has_fit_parameter(estimator, "groups"):
                    about = {"groups": np.asarray(self.data.groups)[training]}
                estimator = estimator.fit(X, selection.training_targets(labels[training]), **about)
                fitting, values = time.perf_counter() - started, self.task.method.s
                if values is None:
                    values = self.choose_values(estimator, X_test)
                started = time.perf_counter()
                path = self._predict(estimator, X_test, values)
                seconds = fitting, time.perf_counter() - started
                caution = "", True
                if hasattr(estimator, "predict_path"):
                    larger = bool(getattr(estimator, "larger_is_more_cautious", True))
                    caution = str(estimator.caution_parameter), larger
                strategies = [NO_STRATEGY] * len(path.values)
                yield self.records(fold, level, path, strategies, seconds, caution)

    def _predict(
        self, estimator: Any, X: Any, values: tuple[float, ...]
    ) -> selection.PathPrediction:
        """Predict along the caution parameter, if any; at its value if the study names none."""
        if hasattr(estimator, "predict_path"):
            along = values or (selection.caution_in_use(estimator),)
            return selection.predict_along(estimator, X, along, self.task.study.measures)
        precise = estimator.predict(X) if "precise" in self.needs else None
        labels = np.asarray(selection.partial_labels(estimator, X))[None]
        return selection.PathPrediction((0.0,), labels, (None,), precise)

    def _estimator(self, fold: int) -> Any:
        method, study = self.task.method, self.task.study
        estimator = build_estimator(method.class_path, method.params, study.allow, study.folder)
        return seeded(estimator, int(self.seed("estimator", fold).generate_state(1)[0]))
