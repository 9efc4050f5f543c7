"""Forests with the imprecise Dirichlet model in their leaves."""

from credalchain.bases.forest.estimator import CredalForest
from credalchain.bases.forest.model import ForestChainModel

__all__ = ["CredalForest", "ForestChainModel"]
