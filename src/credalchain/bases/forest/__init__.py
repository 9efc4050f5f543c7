"""Forests with the imprecise Dirichlet model in their leaves."""

from credalchain.bases.forest.estimator import CredalForest
from credalchain.bases.forest.model import ForestChainModel
from credalchain.bases.forest.packed import PackedForest

__all__ = ["CredalForest", "ForestChainModel", "PackedForest"]
