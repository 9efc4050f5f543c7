"""The naive credal classifier: naive Bayes with the imprecise Dirichlet model."""

from credalchain.bases.naive.counts import ChainCounts
from credalchain.bases.naive.estimator import NaiveCredal
from credalchain.bases.naive.model import NaiveChainModel

__all__ = ["ChainCounts", "NaiveChainModel", "NaiveCredal"]
