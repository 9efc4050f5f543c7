"""The naive credal classifier: naive Bayes with the imprecise Dirichlet model."""

from credalchain.chains.naive.counts import ChainCounts
from credalchain.chains.naive.estimator import NaiveCredal
from credalchain.chains.naive.model import NaiveChainModel

__all__ = ["ChainCounts", "NaiveChainModel", "NaiveCredal"]
