"""CredalForest: a forest for every label, with the imprecise Dirichlet model in its leaves."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from credalchain._utils.array_types import Labels
from credalchain._utils.validation import check_array, check_instance, check_int
from credalchain.chains.local import LocalWalk, earlier_labels, fit_each_label
from credalchain.chains.protocol import ChainModel, ExactBounds, ProbabilityWalk, Rows, Signs, Walk
from credalchain.chains.strategies import Strategy, merge_dropped, merge_widest
from credalchain.chains.tree import Bounds
from credalchain.labels import ABSTAIN, MISSING
from credalchain.prediction import RANKS, Exactness, Order, Ranks
from credalchain.preprocessing import Categories, TableEncoder, check_encoder

LEAF = 2**31 - 1  # value of ``feature`` in a leaf
_MAX_ROWS = 2**53  # larger integers are not exact as floats


class Trees(NamedTuple):
    """Nodes of all trees, one after the other; a node's branches come after it."""

    feature: NDArray[np.int32]
    threshold: NDArray[np.float32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    missing_left: NDArray[np.bool_]
    roots: NDArray[np.int32]

    @classmethod
    def of(cls, trees: Sequence[NDArray[Any]]) -> "Trees":
        """Pack the nodes of scikit-learn's trees, as ``nodes_of`` returns them."""
        sizes = np.array([len(nodes) for nodes in trees])
        roots = np.cumsum(sizes) - sizes
        nodes, shift = np.concatenate(trees), np.repeat(roots, sizes)
        is_leaf = nodes["left"] < 0
        return cls(
            np.where(is_leaf, np.int32(LEAF), nodes["feature"]),
            np.where(is_leaf, np.float32(0), nodes["threshold"]),
            np.where(is_leaf, 0, nodes["left"] + shift).astype(np.int32),
            np.where(is_leaf, 0, nodes["right"] + shift).astype(np.int32),
            nodes["missing_left"] & ~is_leaf,
            roots.astype(np.int32),
        )

    def check_state(self, n_features: int, first_feature: int = 0) -> None:
        """Validate stored trees: no cycles, and splits on columns that exist."""
        n = len(self.feature)
        dtypes: tuple[Any, ...] = (np.int32, np.float32, np.int32, np.int32, np.bool_)
        for name, dtype in zip(self._fields, dtypes, strict=False):
            check_array(name, getattr(self, name), dtype, (n,))
        check_array("roots", self.roots, np.int32, (None,), 0, n - 1)
        from credalchain.chains.forest_kernels import find_fault  # imports numba

        fault = find_fault(self, first_feature, n_features, np.zeros(n, dtype=np.bool_))
        if len(self.roots) == 0 or fault:
            raise ValueError(_FAULTS[fault])


_FAULTS = (
    "a forest must have trees.",
    "the branches of a node must come after it.",
    "a node must have one parent.",
    "the trees split on a column that does not exist.",
    "a split needs a number.",
)
_NODE = np.dtype(
    [
        ("feature", np.int32),
        ("threshold", np.float32),
        ("left", np.int32),
        ("right", np.int32),
        ("missing_left", np.bool_),
    ]
)


def nodes_of(trees: Iterable[Any]) -> list[NDArray[Any]]:
    """Return the nodes of each of scikit-learn's trees, one record each.

    Thresholds are rounded down to 32 bits. Features have 32 bits, so no row goes another way.
    """
    return [_compact(tree.__getstate__()["nodes"]) for tree in trees]


def _compact(nodes: NDArray[Any]) -> NDArray[Any]:
    compact = np.empty(len(nodes), dtype=_NODE)
    compact["feature"], compact["missing_left"] = nodes["feature"], nodes["missing_go_to_left"]
    compact["left"], compact["right"] = nodes["left_child"], nodes["right_child"]
    threshold = nodes["threshold"].astype(np.float32)
    is_above = threshold > nodes["threshold"]
    threshold[is_above] = np.nextafter(threshold[is_above], np.float32(-np.inf))
    compact["threshold"] = threshold
    return compact


@dataclass(frozen=True, eq=False)
class PackedForest:
    """Trees that may split on label k as feature -1 - k, and the rows in their nodes (nodes, 2)."""

    trees: Trees
    counts: NDArray[np.float64]

    @classmethod
    def of(cls, forest: Any, n_features: int, earlier: NDArray[np.int64]) -> "PackedForest":
        """Pack scikit-learn's forest over the features and then the labels ``earlier``."""
        fitted = [tree.tree_ for tree in forest.estimators_]
        trees = Trees.of(nodes_of(fitted))
        column = trees.feature
        label = np.append(earlier, 0)[np.clip(column - n_features, 0, len(earlier))]
        feature = np.where((column < n_features) | (column == LEAF), column, -1 - label)
        # training rows of each class in every node, as the bootstrap weighs them
        shares = np.concatenate([tree.value[:, 0, :] for tree in fitted])
        weights = np.concatenate([tree.weighted_n_node_samples for tree in fitted])
        rows = shares * weights[:, None]
        if (np.abs(rows - np.rint(rows)) < 1e-6).all():  # whole rows, which shares have rounded
            rows = np.rint(rows)
        counts = np.zeros((len(weights), 2))
        counts[:, np.asarray(forest.classes_, dtype=np.int64)] = rows
        return cls(trees._replace(feature=feature.astype(np.int32)), counts)

    @classmethod
    def single_leaf(cls) -> "PackedForest":
        """Return a single empty leaf, for a label observed only in unsampled rows."""
        zero = np.zeros(1, np.int32)
        trees = Trees(
            zero + np.int32(LEAF), np.zeros(1, np.float32), zero, zero, np.zeros(1, bool), zero
        )
        return cls(trees, np.zeros((1, 2)))

    def check_state(self, n_features: int, n_labels: int) -> None:
        """Validate stored trees over these features and labels."""
        check_instance("trees", self.trees, Trees)
        self.trees.check_state(n_features, -n_labels)
        shape = (len(self.trees.feature), 2)
        check_array("counts", self.counts, np.float64, shape, 0, _MAX_ROWS)
        if not self.counts.any(axis=1).all():
            raise ValueError("a node must hold training rows.")

    def exact_bounds(
        self, x: NDArray[np.float32], history: list[int], s: Fraction, weighted: bool
    ) -> tuple[Fraction, Fraction]:
        """Compute ``forest_bounds`` for one row in its literal form."""
        lower = upper = Fraction(0)
        for root in self.trees.roots.tolist():
            lows, highs = [], []
            for leaf, weight in self._leaves(root, x, history, Fraction(1)):
                n0, n1 = (Fraction(float(count)) for count in self.counts[leaf])
                share = weight / (n0 + n1 + s) if weighted else 1 / (n0 + n1 + s)
                lows.append(n1 * share)
                highs.append((n1 + s) * share)
            lower += sum(lows) if weighted else min(lows)
            upper += sum(highs) if weighted else max(highs)
        return lower / len(self.trees.roots), upper / len(self.trees.roots)

    def _leaves(
        self, node: int, x: NDArray[np.float32], history: list[int], weight: Fraction
    ) -> Iterator[tuple[int, Fraction]]:
        """Yield the leaves that a row can reach, each with its share of ``weight``.

        Branches share by their training rows. An open label has one value on the whole path.
        """
        trees = self.trees
        while trees.feature[node] != LEAF:
            column, threshold = int(trees.feature[node]), trees.threshold[node]
            if column < 0 and history[-1 - column] < 0 and 0 <= threshold < 1:
                children = int(trees.left[node]), int(trees.right[node])
                sizes = [Fraction(float(self.counts[child].sum())) for child in children]
                for value, child in enumerate(children):
                    fixed_history = list(history)
                    fixed_history[-1 - column] = value
                    share = weight * sizes[value] / sum(sizes)
                    yield from self._leaves(child, x, fixed_history, share)
                return
            value = x[column] if column >= 0 else max(history[-1 - column], 0)
            to_left = trees.missing_left[node] if np.isnan(value) else value <= threshold
            node = int(trees.left[node] if to_left else trees.right[node])
        yield node, weight


_ROUNDING = 2.0**-40  # sums over leaves and trees are closer to the truth than this
# whether branches are weighted
_COMPILED: dict[Any, bool] = {merge_widest: False, merge_dropped: True}


class ForestChainModel(ChainModel):
    """Model with a forest for each label; None for a label without training data."""

    shares_encoding = True
    can_leave_out = True
    unexplained_because = "a forest is not a sum of what each feature adds"
    rows_at_once = 512

    def __init__(self, forests: Sequence[PackedForest | None], encoder: TableEncoder) -> None:
        self.forests, self.encoder = list(forests), encoder
        self.n_labels = len(self.forests)

    def check_state(self, n_features: int) -> None:
        """Validate a stored model for rows with ``n_features`` columns."""
        check_instance("forests", self.forests, list)
        check_encoder(self.encoder, n_features)
        check_int("n_labels", self.n_labels, len(self.forests), len(self.forests))
        for forest in self.forests:
            if forest is not None:
                check_instance("a forest", forest, PackedForest)
                forest.check_state(n_features, self.n_labels)

    def encode(self, X: Any) -> NDArray[np.float32]:
        return self.encoder.encode(X, np.float32)

    def text_categories(self) -> Mapping[int, Categories]:
        return self.encoder.words

    @property
    def log_odds_error(self) -> float:
        return _ROUNDING

    def never_observed(self) -> NDArray[np.bool_]:
        return np.array([forest is None for forest in self.forests])

    def count_rows(self, encoded: NDArray[np.float32], labels: Labels) -> list[NDArray[np.float64]]:
        """Count rows of each class in every node (nodes, 2), for every label, of rows that have it.

        No tree was grown on these rows.
        """
        from credalchain.chains import forest_kernels as kernels  # imports numba

        all_counts = []
        for j, forest in enumerate(self.forests):
            counted = PackedForest.single_leaf() if forest is None else forest
            counts, rows = np.zeros_like(counted.counts), np.flatnonzero(labels[:, j] != MISSING)
            kernels.count_rows(encoded, rows, labels, j, counted.trees, counts)
            all_counts.append(counts)
        return all_counts

    def with_counts(self, counts: Sequence[NDArray[np.float64]]) -> "ForestChainModel":
        """Return the same trees, with these counts added to those of the nodes."""
        forests = []
        for forest, label_counts in zip(self.forests, counts, strict=True):
            if forest is None and label_counts.any():
                forest = PackedForest.single_leaf()
            if forest is not None:
                forest = replace(forest, counts=forest.counts + label_counts)
            forests.append(forest)
        return ForestChainModel(forests, self.encoder)

    def exact_bounds(
        self, encoded: NDArray[np.float32], *, s: float, strategy: Strategy, precise: bool
    ) -> ExactBounds | None:
        if strategy.merge not in _COMPILED:
            return None
        return self.exact_bounds_of_rows(encoded, s, _COMPILED[strategy.merge])

    def exact_bounds_of_rows(self, X: NDArray[np.float32], s: float, weighted: bool) -> ExactBounds:
        """Compute bounds as fractions, which take milliseconds: once for rows that are equal."""

        @cache
        def bounds(j: int, x: bytes, history: bytes) -> tuple[Fraction, Fraction]:
            forest, labels = self.forests[j], np.frombuffer(history, np.int8).tolist()
            if forest is None:
                return Fraction(0), Fraction(1)
            return forest.exact_bounds(np.frombuffer(x, np.float32), labels, Fraction(s), weighted)

        return lambda row, j, history: bounds(j, X[row].tobytes(), history.tobytes())

    def begin(
        self, encoded: NDArray[np.float32], *, s: float, strategy: Strategy, precise: bool
    ) -> Walk:
        if strategy.merge in _COMPILED:
            return ForestWalk(self, encoded, s, weighted=_COMPILED[strategy.merge])
        return LocalWalk(self, encoded, self.n_labels, s, strategy)

    def bounds_of_rows(
        self, X: NDArray[np.float32], j: int, rows: Rows, history: Labels, s: float, weighted: bool
    ) -> NDArray[np.float64]:
        """Compute the lower and upper probability of label j, (rows, 2)."""
        from credalchain.chains import forest_kernels as kernels  # imports numba

        bounds, forest = np.tile([0.0, 1.0], (len(rows), 1)), self.forests[j]
        if forest is not None:
            arguments = X, rows, history, forest.trees, forest.counts, s, weighted
            kernels.forest_bounds(*arguments, bounds)
        return bounds

    def bounds(self, X: NDArray[np.float32], j: int, history: Labels, *, s: float) -> Bounds:
        """Compute bounds given complete histories; labels left out are averaged over."""
        rows, contiguous = np.arange(len(X)), np.ascontiguousarray(X)
        bounds = self.bounds_of_rows(contiguous, j, rows, history, s, weighted=True)
        return bounds[:, 0], bounds[:, 1]

    def bounds_as_fractions(self, X: Any, j: int, history: Labels, *, s: float) -> Bounds:
        """Compute the same bounds as fractions, to settle ties."""
        exact = self.exact_bounds_of_rows(X, s, weighted=True)
        bounds = [exact(row, j, history[row]) for row in range(len(X))]
        lower, upper = np.array(bounds, dtype=object).reshape(-1, 2).T
        return lower, upper


class ForestWalk(ProbabilityWalk):
    """Batch of rows on its way along a chain of forests; ties are settled in fractions."""

    def __init__(
        self, model: ForestChainModel, X: NDArray[np.float32], s: float, *, weighted: bool
    ) -> None:
        super().__init__(len(X), model.n_labels)
        self._model, self._X, self._s, self._weighted = model, X, s, weighted
        self._exact = model.exact_bounds_of_rows(X, s, weighted)

    def exactness(self, j: int, rows: Rows) -> Ranks:
        """Rank the bounds: where a label before j is open, they are exact only in a single tree."""
        forest = self._model.forests[j]
        is_single_tree = forest is not None and len(forest.trees.roots) == 1
        worst = Exactness.EXACT if is_single_tree else Exactness.OUTER
        if self._weighted:
            worst = Exactness.APPROXIMATE
        any_open = (self._history[rows] == ABSTAIN).any(axis=1)
        return np.where(any_open, RANKS[worst], RANKS[Exactness.EXACT]).astype(np.int8)

    def compare(self, j: int, threshold: float, rows: Rows) -> tuple[Signs, Signs]:
        lower, upper = super().compare(j, threshold, rows)
        forest = self._model.forests[j]
        if forest is None:
            return lower, upper
        rounding = max(_ROUNDING, 4 * len(forest.trees.roots) * np.finfo(float).eps)
        distance = np.abs(np.stack(self.probabilities(j, rows)) - threshold)
        near = (distance <= rounding).any(axis=0)
        t = Fraction(threshold)
        for i in np.flatnonzero(near).tolist():
            bounds = self._exact(int(rows[i]), j, self._history[rows[i]])
            lower[i], upper[i] = ((bound > t) - (bound < t) for bound in bounds)
        return lower, upper

    def find_bounds(self, j: int, rows: Rows) -> NDArray[np.float64]:
        arguments = self._X, j, rows, self._history, self._s, self._weighted
        return self._model.bounds_of_rows(*arguments)


class CredalForest(BaseEstimator):
    """Base with a forest for every label, and the imprecise Dirichlet model in its leaves.

    Parameters
    ----------
    forest : ExtraTreesClassifier or RandomForestClassifier, default=None
        Unfitted forest. None means ``ExtraTreesClassifier(n_estimators=100, min_samples_leaf=2)``.
        Its ``random_state`` is set for each label from that of the chain.

    See Also
    --------
    CredalJointForest : One forest for all labels.

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
        self, X: Any, Y: Labels, order: Order | None, *, chained: bool, rng: np.random.RandomState
    ) -> ForestChainModel:
        """Fit one forest per label, on the features and the labels before it.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Validated training rows.
        Y : ndarray of int8, shape (n_samples, n_labels)
            Labels 0 and 1, and -1 for missing.
        order : ndarray of int, shape (n_labels,), or None
            Order of the labels. None if the model must serve any order.
        chained : bool
            If True, condition each label on the labels before it.
        rng : RandomState
            Random state from which the forests are seeded.

        Returns
        -------
        ForestChainModel
            Fitted model.
        """
        encoder = TableEncoder.learn(X)
        encoded = encoder.encode(X, np.float32)
        labels = np.where(Y == MISSING, np.nan, Y).astype(np.float32)
        before = earlier_labels(order, Y.shape[1], chained=chained, base_name="CredalForest")
        unfitted = self.check_parameters()

        def fit(rows: Rows, y: Labels, earlier: NDArray[np.int64]) -> PackedForest:
            learner = clone(unfitted).set_params(random_state=rng.randint(2**31 - 1))
            learner.fit(np.hstack([encoded[rows], labels[rows][:, earlier]]), y)
            return PackedForest.of(learner, encoded.shape[1], earlier)

        return ForestChainModel(fit_each_label(Y, before, fit), encoder)

    def check_parameters(self) -> BaseEstimator:
        """Validate the parameters, and return an unfitted forest.

        Returns
        -------
        ExtraTreesClassifier or RandomForestClassifier
            Unfitted forest.
        """
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
    """Return the default forest."""
    from sklearn.ensemble import ExtraTreesClassifier  # slow to import

    return ExtraTreesClassifier(n_estimators=n_estimators, min_samples_leaf=2)
