"""Logistic regressions whose coefficients are known only up to a set."""

from credalchain.bases.logistic.estimator import CredalLogistic
from credalchain.bases.logistic.model import CoefficientSet, LogisticChainModel

__all__ = ["CoefficientSet", "CredalLogistic", "LogisticChainModel"]
