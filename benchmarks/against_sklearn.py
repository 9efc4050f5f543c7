"""Fitting and predicting, against scikit-learn's precise chain on the same codes and split.

Theirs is ``ClassifierChain`` over ``CategoricalNB``, or over ``BernoulliNB`` on CSR for text: one
precise prediction. Ours gives lower and upper bounds for both strategies. Every call of ours asks
for another s, so that tables kept from an earlier call do not help.
"""

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.multioutput import ClassifierChain
from sklearn.naive_bayes import BernoulliNB, CategoricalNB
from splits import Split
from timing import Comparison, fastest

from credalchain import CredalChainClassifier, NaiveCredal
from credalchain.bases.protocol import Request
from credalchain.prediction import probabilities
from credalchain.strategies import get_strategy

BOTH = ("branching", "marginalization")
PATH = tuple(i / 2 for i in range(12))
N_JOBS = 2


def compare(split: Split) -> Iterator[Comparison]:
    """All comparisons on one data set."""
    theirs = _Theirs(split)
    ours = _Ours(split)
    kind = "text" if split.is_text else "dense"
    fit_least = 40 if split.is_text or split.name == "emotions" else 80
    yield Comparison(
        f"fit, {kind}",
        split.name,
        fastest(ours.fit, repeat=30),
        fastest(ours.fit_net, repeat=30),
        fastest(theirs.fit, repeat=3),
        fit_least,
        100 if split.is_text else 200,
    )
    for rows, codes in (("batch", split.batch), ("fold", split.test)):
        single = fastest(theirs.predictor(codes), repeat=5)
        note = "" if rows == "batch" else ", plain test fold"
        yield Comparison(
            f"infer with intervals, {kind}{note}",
            split.name,
            fastest(ours.infer(codes)),
            fastest(ours.infer_net(codes)),
            single,
            25 if split.is_text else 30,
            60,
        )
        if split.is_text:
            yield Comparison(
                f"labels only, {kind}{note}",
                split.name,
                fastest(ours.labels(codes)),
                fastest(ours.path_net(codes, 1)),
                single,
                60,
                150,
            )
        yield Comparison(
            f"predict_path, 12 s x 2{note}",
            split.name,
            fastest(ours.path(codes)),
            fastest(ours.path_net(codes, 12)),
            single,
            5,
            15,
        )


class _Theirs:
    def __init__(self, split: Split) -> None:
        base = BernoulliNB() if split.is_text else CategoricalNB(min_categories=split.n_categories)
        self._chain = ClassifierChain(base, order=split.order)
        self._X = self._as_they_like_it(split.training)
        self._Y = split.labels.astype(np.int64)

    @staticmethod
    def _as_they_like_it(codes: Any) -> Any:
        """CSR of floats: with small integers BernoulliNB's sums overflow."""
        return codes.astype(np.float64) if hasattr(codes, "indptr") else codes

    def fit(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # labels with one class in training
            self._chain.fit(self._X, self._Y)

    def predictor(self, codes: Any) -> Callable[[], Any]:
        given = self._as_they_like_it(codes)
        return lambda: self._chain.predict(given)


class _Ours:
    def __init__(self, split: Split) -> None:
        self._split = split
        self._base = NaiveCredal(discretizer=None)
        self._chain = CredalChainClassifier(base=self._base, order=split.order, n_jobs=N_JOBS)
        self._s = itertools.cycle([1 + i / 100 for i in range(10)])
        self._strategies = tuple(get_strategy(name) for name in BOTH)

    def fit(self) -> Any:
        return self._chain.fit(self._split.training, self._split.labels)

    def fit_net(self) -> Any:
        return self._base.fit_chain(self._split.training, self._split.labels)

    def infer(self, codes: Any) -> Callable[[], Any]:
        def run() -> list[Any]:
            both = self._chain.infer(codes, s=next(self._s), strategy=BOTH)
            return [prediction.interval for prediction in both]

        return run

    def infer_net(self, codes: Any) -> Callable[[], Any]:
        model = self._chain.model_
        encoded = model.encode(codes)

        def run() -> list[Any]:
            answers = model.infer(encoded, self._strategies, self._request(True))
            return [probabilities(answer.log_odds) for answer in answers]

        return run

    def labels(self, codes: Any) -> Callable[[], Any]:
        return lambda: self._chain.predict_path(codes, [next(self._s)], strategy=BOTH)

    def path(self, codes: Any) -> Callable[[], Any]:
        return lambda: self._chain.predict_path(codes, PATH, strategy=BOTH)

    def path_net(self, codes: Any, n_values: int) -> Callable[[], Any]:
        model = self._chain.model_
        encoded = model.encode(codes)

        def run() -> Any:
            values = PATH if n_values > 1 else (next(self._s),)
            return model.infer_path(encoded, self._strategies, values, self._request(False))

        return run

    def _request(self, wants_log_odds: bool) -> Request:
        m = self._chain.n_labels_
        return Request(
            next(self._s),
            self._chain.order_,
            np.full(m, 0.5),
            wants_log_odds=wants_log_odds,
            n_jobs=N_JOBS,
        )
