"""Any scikit-learn classifier as a credal base."""

from credalchain.bases.wrapper.estimator import CredalWrapper
from credalchain.bases.wrapper.model import WrappedChainModel

__all__ = ["CredalWrapper", "WrappedChainModel"]
