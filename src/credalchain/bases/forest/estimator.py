"""CredalForest, the base of a chain that users configure."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from credalchain.array_types import Labels
from credalchain.bases.forest.model import ForestChainModel
from credalchain.bases.forest.packed import PackedForest
from credalchain.bases.inputs import TableEncoder, earlier_labels, fit_each_label, with_nan
from credalchain.bases.protocol import Rows


class CredalForest(BaseEstimator):
    """A forest for every label, with the imprecise Dirichlet model in its leaves.

    A leaf with n0 and n1 training rows gives [n1 / (n + s), (n1 + s) / (n + s)], a forest the mean
    over its trees; at s = 0 that is scikit-learn's ``predict_proba``. Where a tree splits on an
    earlier label that was left open, both branches are followed: "branching" takes the least
    lower and the greatest upper bound of each tree, which contains what enumerating the open
    labels would give; "marginalization" weighs the branches by their training rows, which is
    an approximation and reported as one.

    Missing features and earlier labels that are missing in training go through the trees as
    scikit-learn's missing values do; rows that miss the label itself are left out for it. A column
    of text is the number of its category to a tree, in alphabetical or declared order.

    Parameters
    ----------
    forest : ExtraTreesClassifier or RandomForestClassifier, default=None
        Unfitted. None means ``ExtraTreesClassifier(n_estimators=100, min_samples_leaf=2)``. Its
        ``random_state`` is set for each label from that of the chain.

    References
    ----------
    J. Abellan and S. Moral, Building classification trees using the total uncertainty
    criterion, International Journal of Intelligent Systems 18, 2003 (the imprecise Dirichlet
    model in the leaves of trees).

    Examples
    --------
    >>> from credalchain import CredalChainClassifier, CredalForest
    >>> X = [[0.1], [0.2], [0.3], [0.7], [0.8], [0.9]] * 3
    >>> Y = [[0, 0], [0, 0], [0, 1], [1, 1], [1, 1], [1, 0]] * 3
    >>> chain = CredalChainClassifier(CredalForest(), s=1.0, order="given", random_state=0)
    >>> chain.fit(X, Y).predict_partial([[0.15], [0.8]]).tolist()
    [[0, 0], [1, 1]]
    """

    supports_partial_fit = False
    can_count_rows = True  # its models have count_rows and with_counts

    def __init__(self, forest: BaseEstimator | None = None) -> None:
        self.forest = forest

    def fit_chain(
        self,
        X: Any,
        Y: Labels,
        order: NDArray[np.int64] | None,
        *,
        chained: bool,
        rng: np.random.RandomState,
    ) -> ForestChainModel:
        """Fit one forest per label, on the features and the labels before it."""
        encoder = TableEncoder.learn(X, one_hot=False)
        encoded = encoder.encode(X, np.float32)
        labels = with_nan(Y)
        before = earlier_labels(order, Y.shape[1], chained=chained, base_name="CredalForest")
        unfitted = self._checked_forest()

        def fit(rows: Rows, y: Labels, earlier: NDArray[np.int64]) -> PackedForest:
            learner = clone(unfitted).set_params(random_state=rng.randint(2**31 - 1))
            learner.fit(np.hstack([encoded[rows], labels[rows][:, earlier]]), y)
            return PackedForest.of(learner, encoded.shape[1], earlier)

        return ForestChainModel(fit_each_label(Y, before, fit), encoder)

    def check_parameters(self) -> None:
        """Raise for values that ``fit_chain`` would reject."""
        self._checked_forest()

    def _checked_forest(self) -> Any:
        if self.forest is None:
            return default_forest_classifier()
        from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier  # slow to import

        if not isinstance(self.forest, (ExtraTreesClassifier, RandomForestClassifier)):
            raise ValueError(
                "forest must be None, an ExtraTreesClassifier or a RandomForestClassifier, got "
                f"{self.forest!r}."
            )
        return self.forest


def default_forest_classifier(n_estimators: int = 100) -> Any:
    """The forest that ``forest=None`` means."""
    from sklearn.ensemble import ExtraTreesClassifier  # slow to import

    return ExtraTreesClassifier(n_estimators=n_estimators, min_samples_leaf=2)
