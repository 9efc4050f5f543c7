"""What a loader may trust."""

TRUSTED_TYPES = [
    "credalchain.bases.naive.counts.ChainCounts",
    "credalchain.bases.naive.estimator.NaiveCredal",
    "credalchain.bases.naive.model.NaiveChainModel",
    "credalchain.bases.naive.settings.NaiveSettings",
    "credalchain.binary_relevance.CredalBinaryRelevanceClassifier",
    "credalchain.chain.CredalChainClassifier",
    "credalchain.preprocessing.Categories",
    "credalchain.preprocessing.Discretizer",
    "credalchain.preprocessing.NumericBins",
    "credalchain.preprocessing.ZeroAndBins",
    "credalchain.strategies.Strategy",
    "credalchain.strategies._branch",
    "credalchain.strategies._branch_exact",
    "credalchain.strategies._drop",
    "credalchain.strategies._drop_exact",
    "credalchain.tree.branching_ends",
    "credalchain.tree.tree_marginal_ends",
]
"""The types of this package in a fitted model, for ``skops.io.load(file, trusted=...)``."""
