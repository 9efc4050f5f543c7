"""Explanations of single rows: bounds, contributions, and questions about open labels."""

from credalchain.explanation.explainer import explain
from credalchain.explanation.result import Explanation, Question, Reason, SimilarRow, Step

__all__ = ["Explanation", "Question", "Reason", "SimilarRow", "Step", "explain"]
