"""Deciding what to answer: all labels of a row together."""

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import KFold
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from credalchain.bases.ensemble import EnsembleModel
from credalchain.bases.forest import CredalForest
from credalchain.bases.protocol import Labels
from credalchain.calibration import best_exponent, sharpened
from credalchain.ensemble import CredalChainEnsemble
from credalchain.labels import ABSTAIN, MISSING
from credalchain.metrics import utility_65
from credalchain.odds import probabilities
from credalchain.validation import check_choice, check_whole

FloatArray = NDArray[np.float64]


class JointDecision(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Answer, in every row, the set of labels that is worth most.

    A set Q of answered labels is worth P(all answers in Q are right) + reward * |Q| / m. With
    labels treated as independent, the best set is a prefix of the labels sorted by how sure
    each is; with ``joint="sampled"`` the probability that a prefix is right is estimated from label
    vectors drawn from the chains themselves. The answer to a label is the likelier one, whatever
    the estimator's threshold; a label that was never observed in training stays open.

    Parameters
    ----------
    estimator : classifier of this package, default=None
        None means ``CredalChainEnsemble(CredalForest())``, which we recommend.
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
        precise chains, and needs ``bounds="precise"``.
    n_samples : int, default=200
        Label vectors drawn for each row; the standard error of a probability is at most
        ``0.5 / sqrt(n_samples)``.
    random_state : int, RandomState or None, default=None
        Seeds the draws.

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

    knob = "reward"

    def __init__(
        self,
        estimator: Any = None,
        reward: float = 0.5,
        *,
        calibration_folds: int | None = 3,
        bounds: str = "precise",
        joint: str = "independent",
        n_samples: int = 200,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.reward = reward
        self.calibration_folds = calibration_folds
        self.bounds = bounds
        self.joint = joint
        self.n_samples = n_samples
        self.random_state = random_state

    def fit(self, X: Any, Y: Any) -> "JointDecision":
        """Fit the estimator inside, and learn how far its probabilities can be believed."""
        self._check()
        self._take(self._unfitted().fit(X, Y))
        if self.calibration_folds is not None:
            self.exponent_ = self._learn_exponent(X, self.estimator_.read_labels(Y))
        return self

    @classmethod
    def from_fitted(cls, estimator: Any, **params: Any) -> "JointDecision":
        """A fitted decision over a classifier that is fitted already; ``exponent_`` is 1."""
        self = cls(estimator, **params)
        self._check()
        self._take(estimator)
        return self

    def _learn_exponent(self, X: Any, labels: Labels) -> float:
        """From predictions for rows that were not trained on."""
        n = len(labels)
        if n < 2:
            return 1.0
        targets = (
            np.where(labels == MISSING, np.nan, labels) if (labels == MISSING).any() else labels
        )
        p, usable = np.empty(labels.shape), labels.copy()
        folds = KFold(min(n, self.calibration_folds or 0), shuffle=True, random_state=0)
        for train, test in folds.split(targets):
            with warnings.catch_warnings():  # of labels that no row of this fold has
                warnings.filterwarnings("ignore", "never observed", UserWarning)
                fitted = self._unfitted().fit(take_rows(X, train), targets[train])
            p[test] = _probability(fitted, take_rows(X, test))
            usable[np.ix_(test, fitted.model_.never_observed())] = MISSING
        return best_exponent(p, usable)

    def _unfitted(self) -> Any:
        if self.estimator is None:
            return CredalChainEnsemble(CredalForest())
        return clone(self.estimator)

    def _take(self, fitted: Any) -> None:
        self.estimator_, self.exponent_ = fitted, 1.0
        for name in ("classes_", "n_features_in_", "feature_names_in_", "label_names_"):
            if hasattr(fitted, name):
                setattr(self, name, getattr(fitted, name))

    def predict(self, X: Any) -> NDArray[Any]:
        """The estimator's own ``predict``: every label answered."""
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.predict(X))

    def predict_proba(self, X: Any) -> FloatArray:
        """The estimator's own."""
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.predict_proba(X))

    def predict_partial(self, X: Any, *, known: Any = None) -> Labels:
        """Labels 1, 0, or -1 where answering is not worth its risk: int8, (n, m).

        ``known`` (n, m) holds labels that were answered already, -1 elsewhere.
        """
        return np.asarray(self.predict_path(X, [self.reward], known=known)[0])

    def predict_path(self, X: Any, values: Iterable[float], *, known: Any = None) -> Labels:
        """Partial predictions for many rewards: int8, (n_values, n, m)."""
        check_is_fitted(self, "estimator_")
        self._check()
        rewards = [_check_reward(value) for value in values]
        answers, certainty, all_right = self._worths(X, known)
        order = np.argsort(-certainty, axis=1, kind="stable")
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
        return np.asarray(self.estimator_.read_labels(Y))

    def _worths(self, X: Any, known: Any = None) -> tuple[Labels, FloatArray, FloatArray]:
        """Answers, how sure each is, and P(the k surest are all right) for k = 0..m."""
        yes, no = self._certainties(X, known)
        answers, certainty = (yes >= no).astype(np.int8), np.maximum(yes, no)
        never = self.estimator_.model_.never_observed()
        answers[:, never], certainty[:, never] = ABSTAIN, 0.0  # nobody could know
        order = np.argsort(-certainty, axis=1, kind="stable")
        if self.joint == "independent":
            steps = np.cumprod(np.take_along_axis(certainty, order, axis=1), axis=1)
        else:
            drawn = sample_labels(
                self.estimator_, X, self.n_samples, self.random_state, known=known
            )
            right = np.take_along_axis(drawn == answers, order[None], axis=2)
            steps = np.logical_and.accumulate(right, axis=2).mean(axis=0)
        return answers, certainty, np.hstack([np.ones((len(steps), 1)), steps])

    def _certainties(self, X: Any, known: Any) -> tuple[FloatArray, FloatArray]:
        """How sure it is that each label is 1, and that it is 0."""
        if self.bounds == "credal":
            interval = sharpened(self.estimator_.infer(X, known=known).interval, self.exponent_)
            yes, no = interval[..., 0], 1 - interval[..., 1]
        else:
            yes = sharpened(_probability(self.estimator_, X, known), self.exponent_)
            no = 1 - yes
        if known is None:
            return yes, no
        told = self.estimator_._read_known(known, len(yes))
        yes, no = (np.where(told == y, 1.0, side) for y, side in ((1, yes), (0, no)))
        return np.where(told == 0, 0.0, yes), np.where(told == 1, 0.0, no)

    def _check(self) -> None:
        check_choice("bounds", self.bounds, ("precise", "credal"))
        check_choice("joint", self.joint, ("independent", "sampled"))
        _check_reward(self.reward)
        if self.calibration_folds is not None:
            check_whole("calibration_folds", self.calibration_folds, at_least=2)
        if self.joint == "sampled" and self.bounds == "credal":
            raise ValueError("joint='sampled' draws from precise chains: use bounds='precise'.")
        check_whole("n_samples", self.n_samples)


def _probability(fitted: Any, X: Any, known: Any = None) -> FloatArray:
    """P(Y_j = 1) of the precise model, (n, m), also where the labels came as a vector."""
    if known is not None:
        answer = fitted._precise(X, wants_log_odds=True, known=known)
        return probabilities(answer.log_odds[..., 0])
    p = np.asarray(fitted.predict_proba(X))
    if fitted.classes_.ndim == 2:
        return p
    return p[:, 1:] if p.shape[1] == 2 else np.zeros((len(p), 1))  # one class: coded 0


def _check_reward(value: Any) -> float:
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not number or not 0 <= value < np.inf:
        raise ValueError(f"reward must be a number, 0 or positive and finite, got {value!r}.")
    return float(value)


def sample_labels(
    classifier: Any, X: Any, n_samples: int, random_state: Any = None, *, known: Any = None
) -> Labels:
    """Label vectors drawn from the precise chains: int8, (n_samples, n, m).

    Each label is drawn from its probability given the labels drawn before it; the chains of an
    ensemble take turns.

    Parameters
    ----------
    classifier : fitted classifier of this package
    X : array-like, data frame or scipy sparse of shape (n, n_features)
    n_samples : int
    random_state : int, RandomState or None
    known : array-like of shape (n, m), optional
        Labels that were answered already, -1 elsewhere. They are told as they are.
    """
    rng = check_random_state(random_state)
    encoded, n_rows = classifier._encode(X)
    model = classifier.model_
    if isinstance(model, EnsembleModel):
        members = zip(model.models, model.orders, strict=True)
        chains = [(one, encoded[id(one)], order) for one, order in members]
    else:
        order = classifier.order_
        if order is None:
            raise ValueError("labels can be drawn along a fixed order only, not a dynamic one.")
        chains = [(model, encoded, order)]
    never = model.never_observed()
    told = classifier._read_known(known, n_rows)
    samples = np.zeros((n_samples, n_rows, classifier.n_labels_), dtype=np.int8)
    rows = np.arange(n_rows)
    for at in range(n_samples):
        one, codes, order = chains[at % len(chains)]
        walk = one.begin(codes, s=0.0, strategy=classifier._strategy(), precise=True)
        for j in order.tolist():
            if not never[j]:
                lower, _ = walk.log_odds(j, rows)
                samples[at, :, j] = rng.random_sample(n_rows) < probabilities(lower)
            if told is not None:
                given = told[:, j] != MISSING
                samples[at, given, j] = told[given, j]
            if classifier._chained():
                walk.tell(j, samples[at, :, j], rows)
    return samples
