"""Deciding what to answer: all labels of a row together."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import KFold
from sklearn.utils.validation import check_is_fitted

from credalchain.bases.forest import CredalForest
from credalchain.bases.protocol import Answer, Exactness, Labels, Ranks, uniform_exactness
from credalchain.estimators.base import CautiousTagsMixin, CredalClassifier
from credalchain.estimators.calibration import best_exponent, sharpened
from credalchain.estimators.ensemble import CredalChainEnsemble
from credalchain.estimators.folds import fitted_folds
from credalchain.estimators.prediction import CredalPrediction
from credalchain.estimators.sampling import sample_labels
from credalchain.labels import ABSTAIN, MISSING
from credalchain.metrics import utility_65
from credalchain.odds import log_odds, probabilities
from credalchain.preprocessing import as_plain_table
from credalchain.validation import check_choice, check_whole

FloatArray = NDArray[np.float64]

_MOST_SAMPLES = 100_000


class JointDecision(CautiousTagsMixin, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Answer, in every row, the set of labels that is worth most.

    A set Q of answered labels is worth P(all answers in Q are right) + reward * |Q| / m. With
    labels treated as independent, the best of all sets is a prefix of the labels sorted by how
    sure each is, and the answer to a label is the likelier one, whatever the estimator's
    threshold. With ``joint="sampled"`` the answers are those of the likeliest label vector among
    vectors drawn from the chains, and the set is the best prefix of the labels sorted by how many
    draws agree with the answer; P is the share of draws that agree with all of them. A label that
    was never observed in training, or whose bounds are [0, 1], stays open.

    Parameters
    ----------
    estimator : classifier of this package, default=None
        None is what we recommend: ``CredalChainEnsemble(CredalForest(ExtraTreesClassifier(
        n_estimators=20, max_features=0.3)), n_chains=20)``. Many orders of the labels with few
        trees each do better than the same trees in few orders.
    reward : float, default=0.5
        What answering every label is worth, in certainty that all is right. 0 answers only what
        costs nothing; a large reward answers everything. Read when predicting.
    calibration_folds : int or None, default=3
        The probability that many answers are all right is right only if that of each is: averages
        of models are too modest, others too sure. So all odds are raised to one power, learned by
        cross-validation with so many folds within the training rows. None trusts the estimator.
    bounds : {"precise", "credal"}, default="precise"
        Whether a label's certainty is max(p, 1 - p) of the precise probability, or the lower
        probability of its likelier answer, max(lower, 1 - upper), at the estimator's s.
    joint : {"independent", "sampled"}, default="independent"
        How the probability that several answers are right is found. "sampled" draws from the
        precise, calibrated chains, and needs ``bounds="precise"``.
    n_samples : int, default=200
        Label vectors drawn for each row; the standard error of a probability is at most
        ``0.5 / sqrt(n_samples)``. At most 100000; they take n_samples * rows * labels bytes.
    n_jobs : int, default=None
        Workers of the default estimator, as in joblib; one that is given has its own.
    random_state : int, RandomState or None, default=None
        Seeds the draws, and the default estimator.

    Attributes
    ----------
    estimator_ : the fitted estimator
    exponent_ : float
        The power of the odds; above 1 if the estimator was too modest.

    Examples
    --------
    >>> from credalchain import CredalChainEnsemble, JointDecision
    >>> X = [["sun"], ["sun"], ["sun"], ["rain"], ["rain"], ["fog"]] * 5
    >>> Y = [[1, 0], [1, 0], [1, None], [0, 1], [0, 1], [None, 1]] * 5
    >>> ensemble = CredalChainEnsemble(n_chains=4, random_state=0)
    >>> JointDecision(ensemble).fit(X, Y).predict_partial([["sun"], ["rain"]])
    array([[1, 0],
           [0, 1]], dtype=int8)
    """

    caution_parameter = "reward"

    def __init__(
        self,
        estimator: Any = None,
        reward: float = 0.5,
        *,
        calibration_folds: int | None = 3,
        bounds: str = "precise",
        joint: str = "independent",
        n_samples: int = 200,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.reward = reward
        self.calibration_folds = calibration_folds
        self.bounds = bounds
        self.joint = joint
        self.n_samples = n_samples
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, Y: Any) -> "JointDecision":
        """Fit the estimator inside, and learn how far its probabilities can be believed."""
        self._check()
        if sparse.issparse(X):
            X = X.tocsr()  # rows are taken out of it
        elif not hasattr(X, "columns"):
            X = np.asarray(as_plain_table(X))
        self._take(self._unfitted().fit(X, Y))
        if self.calibration_folds is not None:
            labels = self.estimator_.read_labels(Y)
            self.exponent_ = self._learn_exponent(X, labels, self.calibration_folds)
        return self

    @classmethod
    def from_fitted(cls, estimator: Any, **params: Any) -> "JointDecision":
        """A fitted decision over a classifier that is fitted already; ``exponent_`` is 1."""
        self = cls(estimator, **params)
        self._check()
        self._take(estimator)
        return self

    def _learn_exponent(self, X: Any, labels: Labels, n_folds: int) -> float:
        """From predictions for rows that were not trained on."""
        n = len(labels)
        if n < 2:
            return 1.0
        missing = labels == MISSING
        targets = np.where(missing, np.nan, labels) if missing.any() else labels
        p, usable = np.empty(labels.shape), labels.copy()
        folds = KFold(min(n, n_folds), shuffle=True, random_state=0)
        with warnings.catch_warnings():  # of labels that no row of a fold has
            warnings.filterwarnings("ignore", "never observed", UserWarning)
            splits = folds.split(targets)
            for test, new, fitted in fitted_folds(repeat(self._unfitted()), X, targets, splits):
                p[test] = fitted.label_proba(new)
                usable[np.ix_(test, fitted.model_.never_observed())] = MISSING
        return best_exponent(p, usable)

    def _unfitted(self) -> Any:
        if self.estimator is None:
            trees = ExtraTreesClassifier(n_estimators=20, max_features=0.3)
            return CredalChainEnsemble(
                CredalForest(trees),
                n_chains=20,
                n_jobs=self.n_jobs,
                random_state=self.random_state,
            )
        if not isinstance(self.estimator, CredalClassifier):
            raise TypeError(
                "estimator must be None or a classifier of this package, such as "
                f"CredalChainEnsemble(), got {self.estimator!r}."
            )
        return clone(self.estimator)

    def _take(self, fitted: Any) -> None:
        self.estimator_, self.exponent_ = fitted, 1.0
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(fitted, name):
                setattr(self, name, getattr(fitted, name))

    @property
    def classes_(self) -> NDArray[Any]:
        """The estimator's own."""
        return np.asarray(self.estimator_.classes_)

    @property
    def label_names_(self) -> NDArray[np.str_]:
        return np.asarray(self.estimator_.label_names_)

    def predict(self, X: Any) -> NDArray[Any]:
        """The estimator's own ``predict``: every label answered."""
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.predict(X))

    def predict_proba(self, X: Any) -> FloatArray:
        """The estimator's own."""
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.predict_proba(X))

    def infer(self, X: Any, *, reward: float | None = None, known: Any = None) -> CredalPrediction:
        """Labels decided jointly, with the (calibrated) probabilities they were decided from.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n, n_features)
        reward : float, optional
            In place of the parameter ``reward``.
        known : array-like of shape (n, m), optional
            Labels that were answered already, -1 elsewhere.
        """
        beliefs = self._beliefs(X, known)
        labels = self._decide(beliefs, [self.reward if reward is None else reward])
        interval = beliefs.interval[None, None]
        answer = Answer(labels[None], log_odds(interval), beliefs.exactness[None, None], interval)
        return CredalPrediction.from_answer(answer, 0, self.label_names_.tolist(), X)

    def predict_partial(self, X: Any, *, known: Any = None) -> Labels:
        """Labels 1, 0, or -1 where answering is not worth its risk: int8, (n, m).

        ``known`` (n, m) holds labels that were answered already, -1 elsewhere.
        """
        return np.asarray(self.predict_path(X, [self.reward], known=known)[0])

    def predict_path(self, X: Any, values: Iterable[float], *, known: Any = None) -> Labels:
        """Partial predictions for many rewards: int8, (n_values, n, m)."""
        return self._decide(self._beliefs(X, known), values)

    def _decide(self, beliefs: "_Beliefs", values: Iterable[float]) -> Labels:
        if not np.iterable(values):
            raise ValueError(f"values must be several rewards, got {values!r}.")
        rewards = [_check_reward(value) for value in values]
        answers, order, all_right = _prefixes(beliefs)
        m = answers.shape[1]
        place = np.argsort(order, axis=1)
        path = np.empty((len(rewards), *answers.shape), dtype=np.int8)
        for at, reward in enumerate(rewards):
            worth = all_right + reward * np.arange(m + 1) / m
            best = m - np.argmax(worth[:, ::-1], axis=1)  # of equals the one that answers most
            path[at] = np.where(place < best[:, None], answers, ABSTAIN)
        return path

    def score(self, X: Any, y: Any) -> float:
        """Mean u65 of ``predict_partial``: right 1, wrong 0, left open 0.65, per label."""
        check_is_fitted(self, "estimator_")
        return utility_65(self.estimator_.read_labels(y), self.predict_partial(X))

    def read_labels(self, Y: Any) -> Labels:
        """True labels of new rows, in the form of ``predict_partial``."""
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.read_labels(Y))

    def _beliefs(self, X: Any, known: Any) -> "_Beliefs":
        check_is_fitted(self, "estimator_")
        self._check()
        bounds, exactness, draws = self._bounds(X, known)
        bounds[:, self.estimator_.model_.never_observed()] = (0.0, 1.0, 0.0)  # nobody could know
        given = self.estimator_.targets_.encode_known(known, len(bounds))
        if given is None:
            given = np.full(bounds.shape[:2], MISSING, dtype=np.int8)
        is_known = given != MISSING
        bounds = np.where(is_known[..., None], np.stack([given, given, 1 - given], axis=-1), bounds)
        return _Beliefs(bounds[..., :2], bounds[..., ::2], is_known, exactness, draws)

    def _bounds(self, X: Any, known: Any) -> tuple[FloatArray, Ranks, Labels | None]:
        """Lower P(1), upper P(1) and lower P(0) (n, m, 3), calibrated; exactness; draws if any.

        Near 1, an upper bound does not tell how far its complement is from 0.
        """
        if self.bounds == "credal":
            prediction = self.estimator_.infer(X, known=known)
            interval = sharpened(prediction.interval, self.exponent_)
            zero = probabilities(-self.exponent_ * prediction.log_odds[..., 1])
            return np.dstack([interval, zero]), prediction.given_ranks, None
        if self.joint == "sampled":
            draws = sample_labels(
                self.estimator_,
                X,
                self.n_samples,
                self.random_state,
                known=known,
                exponent=self.exponent_,
            )
            p, exactness = draws.mean(axis=0), Exactness.APPROXIMATE
        else:
            draws = None
            p = sharpened(self.estimator_.label_proba(X, known=known), self.exponent_)
            exactness = Exactness.EXACT
        return np.stack([p, p, 1 - p], axis=-1), uniform_exactness(exactness, p.shape), draws

    def _check(self) -> None:
        check_choice("bounds", self.bounds, ("precise", "credal"))
        check_choice("joint", self.joint, ("independent", "sampled"))
        _check_reward(self.reward)
        if self.calibration_folds is not None:
            check_whole("calibration_folds", self.calibration_folds, at_least=2)
        if self.joint == "sampled" and self.bounds == "credal":
            raise ValueError("joint='sampled' draws from precise chains: use bounds='precise'.")
        check_whole("n_samples", self.n_samples, at_most=_MOST_SAMPLES)


@dataclass(frozen=True)
class _Beliefs:
    """Lower and upper P(1), lower P(1) and lower P(0) (n, m, 2), whether known (n, m).

    ``draws`` (n_samples, n, m) are label vectors, None where labels are treated as independent.
    """

    interval: FloatArray
    lower: FloatArray
    known: NDArray[np.bool_]
    exactness: Ranks
    draws: Labels | None


def _prefixes(beliefs: _Beliefs) -> tuple[Labels, NDArray[np.int64], FloatArray]:
    """Answers, the order in which they are taken, and P(the first k are all right), k = 0..m.

    Labels that cannot be answered come last, and -inf keeps them out.
    """
    one, zero = np.moveaxis(beliefs.lower, -1, 0)
    answers = (one >= zero).astype(np.int8) if beliefs.draws is None else _likeliest(beliefs.draws)
    certainty = np.where(answers == 1, one, zero)
    unanswerable = np.maximum(one, zero) == 0
    order = np.lexsort((-certainty, unanswerable, ~beliefs.known))
    if beliefs.draws is None:
        steps = np.cumprod(np.take_along_axis(certainty, order, axis=1), axis=1)
    else:
        right = np.take_along_axis(beliefs.draws == answers, order[None], axis=2)
        steps = np.logical_and.accumulate(right, axis=2).mean(axis=0)
    steps[np.take_along_axis(unanswerable, order, axis=1)] = -np.inf
    return answers, order, np.hstack([np.ones((len(steps), 1)), steps])


def _likeliest(draws: Labels) -> Labels:
    """The vector drawn most often in each row, (n, m).

    Of several that were drawn equally often, the one whose single labels were drawn most often.
    """
    n, m = draws.shape[1:]
    likeliest = np.empty((n, m), dtype=np.int8)
    ones = draws.mean(axis=0)
    for row in range(n):
        vectors, times = np.unique(draws[:, row], axis=0, return_counts=True)
        with np.errstate(divide="ignore"):
            logs = np.log(np.where(vectors == 1, ones[row], 1 - ones[row])).sum(axis=1)
        likeliest[row] = vectors[np.lexsort((-logs, -times))[0]]
    return likeliest


def _check_reward(value: Any) -> float:
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not number or not 0 <= value < np.inf:
        raise ValueError(f"reward must be a number, 0 or positive and finite, got {value!r}.")
    return float(value)
