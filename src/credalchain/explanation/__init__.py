"""Why a row got its answers: bounds, contributions, and what would settle what is open."""

from credalchain.explanation.explainer import explain
from credalchain.explanation.result import Explanation, Question, Reason, SimilarRow, Step

__all__ = ["Explanation", "Question", "Reason", "SimilarRow", "Step", "explain"]
