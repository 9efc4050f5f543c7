"""Fitting and predicting, against scikit-learn's precise chain on the same codes and split.

Theirs is ``ClassifierChain`` over ``CategoricalNB``, or over ``BernoulliNB`` on CSR for text: one
precise prediction. Ours gives lower and upper bounds for both strategies. They turn counts into
logarithms in ``fit``; ours does when an s is first asked for, and keeps the tables. So there are
two lines: for an s that was asked for before, and for a new s at every call.
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
from credalchain.chains.protocol import Request
from credalchain.prediction import probabilities

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
        fastest(ours.fit),
        fastest(ours.fit_net),
        fastest(theirs.fit),
        fit_least,
        100 if split.is_text else 200,
    )
    for rows, codes in (("batch", split.batch), ("fold", split.test)):
        single = fastest(theirs.predictor(codes))
        note = "" if rows == "batch" else ", plain test fold"
        for new in (False, True):
            which = f"{note}, a new s" if new else note
            yield Comparison(
                f"infer with intervals, {kind}{which}",
                split.name,
                fastest(ours.infer(codes, new)),
                fastest(ours.infer_net(codes, new)),
                single,
                25 if split.is_text else 30,
                60,
            )
            if split.is_text:
                yield Comparison(
                    f"labels only, {kind}{which}",
                    split.name,
                    fastest(ours.labels(codes, new)),
                    fastest(ours.labels_net(codes, new)),
                    single,
                    60,
                    150,
                )
        yield Comparison(
            f"predict_path, 12 s x 2{note}",
            split.name,
            fastest(ours.path(codes)),
            fastest(ours.path_net(codes)),
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
        self._new = itertools.cycle([1 + i / 100 for i in range(1, 11)])  # more than are kept

    def fit(self) -> Any:
        return self._chain.fit(self._split.training, self._split.labels)

    def fit_net(self) -> Any:
        return self._base.fit_chain(self._split.training, self._split.labels)

    def infer(self, codes: Any, new: bool) -> Callable[[], Any]:
        def run() -> list[Any]:
            s = self._s(new)
            both = [self._chain.infer(codes, s=s, strategy=one) for one in BOTH]
            return [prediction.interval for prediction in both]

        return run

    def infer_net(self, codes: Any, new: bool) -> Callable[[], Any]:
        model = self._chain.model_
        encoded = model.encode(codes)

        def run() -> list[Any]:
            answer = model.infer(encoded, self._request(encoded, self._s(new), True))
            return [probabilities(log_odds[0]) for log_odds in answer.log_odds]

        return run

    def labels(self, codes: Any, new: bool) -> Callable[[], Any]:
        def run() -> list[Any]:
            s = [self._s(new)]
            return [self._chain.predict_path(codes, s, strategy=one) for one in BOTH]

        return run

    def labels_net(self, codes: Any, new: bool) -> Callable[[], Any]:
        model = self._chain.model_
        encoded = model.encode(codes)
        return lambda: model.infer(encoded, self._request(encoded, self._s(new), False))

    def path(self, codes: Any) -> Callable[[], Any]:
        return lambda: [self._chain.predict_path(codes, PATH, strategy=one) for one in BOTH]

    def path_net(self, codes: Any) -> Callable[[], Any]:
        model = self._chain.model_
        encoded = model.encode(codes)
        request = self._request(encoded, PATH, False)
        return lambda: model.infer(encoded, request)

    def _s(self, new: bool) -> float:
        return next(self._new) if new else 1.0

    def _request(self, encoded: Any, s: Any, wants_bounds: bool) -> Request:
        return self._chain.request(encoded, s=s, strategy=BOTH, wants_bounds=wants_bounds)
