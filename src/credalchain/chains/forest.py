"""CredalForest: a forest for every label, with the imprecise Dirichlet model in its leaves."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from credalchain._utils.array_types import Labels
from credalchain._utils.validation import check_array, check_instance, check_int
from credalchain.chains.inputs import earlier_labels, fit_each_label, with_nan
from credalchain.chains.local import LocalWalk
from credalchain.chains.protocol import ChainModel, ExactBounds, ProbabilityWalk, Rows, Signs, Walk
from credalchain.chains.strategies import Strategy, merge_dropped, merge_widest
from credalchain.chains.tree import Bounds
from credalchain.labels import ABSTAIN, MISSING
from credalchain.prediction import RANKS, Exactness, Ranks
from credalchain.preprocessing import Categories, TableEncoder

LEAF = 2**31 - 1  # value of ``feature`` in a leaf
_MAX_ROWS = 2**53  # larger integers are not exact as floats
_NODES: dict[str, Any] = {
    "feature": np.int32,
    "threshold": np.float64,
    "left": np.int32,
    "right": np.int32,
    "missing_left": np.bool_,
}


def check_nodes(nodes: Any, n_features: int, first_feature: int = 0) -> None:
    """Validate stored trees: no cycles, and splits on columns that exist."""
    n = len(nodes.feature)
    for name, dtype in _NODES.items():
        check_array(name, getattr(nodes, name), dtype, (n,))
    check_array("roots", nodes.roots, np.int32, (None,), 0, n - 1)
    splits = nodes.feature != LEAF
    children = np.stack([nodes.left, nodes.right])[:, splits]
    if len(nodes.roots) == 0 or not ((children > np.flatnonzero(splits)) & (children < n)).all():
        raise ValueError("the branches of a node must come after it.")
    if len(np.unique(np.append(children, nodes.roots))) < children.size + len(nodes.roots):
        raise ValueError("a node must have one parent.")
    columns = nodes.feature[splits]
    if not ((columns >= first_feature) & (columns < n_features)).all():
        raise ValueError("the trees split on a column that does not exist.")
    if np.isnan(nodes.threshold[splits]).any():
        raise ValueError("a split needs a number.")


@dataclass(frozen=True, eq=False)
class PackedForest:
    """All nodes of all trees, one after the other; see ``forest_bounds``."""

    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    missing_left: NDArray[np.bool_]
    counts: NDArray[np.float64]
    roots: NDArray[np.int32]

    @classmethod
    def of(cls, forest: Any, n_features: int, earlier: NDArray[np.int64]) -> "PackedForest":
        """From scikit-learn's forest over the features and then the labels ``earlier``."""
        trees = [tree.tree_ for tree in forest.estimators_]
        column, threshold, left, right, missing_left, roots = packed_nodes(nodes_of(trees))
        label = np.append(earlier, 0)[np.clip(column - n_features, 0, len(earlier))]
        feature = np.where((column < n_features) | (column == LEAF), column, -1 - label)
        counts = _counts(trees, forest.classes_)
        return cls(feature.astype(np.int32), threshold, left, right, missing_left, counts, roots)

    def check_state(self, n_features: int, n_labels: int) -> None:
        """Validate stored trees over these features and labels."""
        check_nodes(self, n_features, -n_labels)
        check_array("counts", self.counts, np.float64, (len(self.feature), 2), 0, _MAX_ROWS)
        if not self.counts.any(axis=1).all():
            raise ValueError("a node must hold training rows.")

    def bounds(
        self, X: NDArray[np.float32], rows: Rows, history: Labels, *, s: float, weighted: bool
    ) -> NDArray[np.float64]:
        """Lower and upper probability, (rows, 2)."""
        from credalchain.chains import forest_kernels as kernels  # imports numba

        bounds = np.empty((len(rows), 2))
        kernels.forest_bounds(
            X,
            rows,
            history,
            self.feature,
            self.threshold,
            self.left,
            self.right,
            self.missing_left,
            self.counts,
            self.roots,
            s,
            weighted,
            bounds,
        )
        return bounds

    @classmethod
    def single_leaf(cls) -> "PackedForest":
        """A single empty leaf, for a label observed only in unsampled rows."""
        return cls(
            np.array([LEAF], np.int32),
            np.full(1, -2.0),
            np.zeros(1, np.int32),
            np.zeros(1, np.int32),
            np.zeros(1, bool),
            np.zeros((1, 2)),
            np.zeros(1, np.int32),
        )

    def count(self, X: NDArray[np.float32], labels: Labels, j: int) -> NDArray[np.float64]:
        """Rows of each class of label j in every node (nodes, 2), of rows that have the label."""
        from credalchain.chains import forest_kernels as kernels  # imports numba

        counts = np.zeros_like(self.counts)
        kernels.count_rows(
            X,
            np.flatnonzero(labels[:, j] != MISSING),
            labels,
            j,
            self.feature,
            self.threshold,
            self.left,
            self.right,
            self.missing_left,
            self.roots,
            counts,
        )
        return counts

    def exact_bounds(
        self, x: NDArray[np.float32], history: Labels, *, s: float, weighted: bool
    ) -> tuple[Fraction, Fraction]:
        """The bounds of one row as fractions: the literal form of ``forest_bounds``."""
        totals = [Fraction(0), Fraction(0)]
        for root in self.roots.tolist():
            weight = Fraction(1) if weighted else None
            leaves = list(self._leaves(root, x, history.tolist(), weight))
            bounds = [self._exact_leaf(leaf, Fraction(s)) for leaf, _ in leaves]
            if weighted:
                tree = [
                    sum(w * b[i] for (_, w), b in zip(leaves, bounds, strict=True)) for i in (0, 1)
                ]
            else:
                tree = [min(low for low, _ in bounds), max(high for _, high in bounds)]
            totals = [total + bound for total, bound in zip(totals, tree, strict=True)]
        return totals[0] / len(self.roots), totals[1] / len(self.roots)

    def _exact_leaf(self, leaf: int, s: Fraction) -> tuple[Fraction, Fraction]:
        n0, n1 = (Fraction(float(count)) for count in self.counts[leaf])
        return n1 / (n0 + n1 + s), (n1 + s) / (n0 + n1 + s)

    def _leaves(
        self, node: int, x: NDArray[np.float32], history: list[int], weight: Fraction | None
    ) -> Iterator[tuple[int, Any]]:
        """The leaves that a row can reach, each with its share of ``weight`` unless that is None.

        Branches share by their training rows. An open label has one value on the whole path.
        """
        while self.feature[node] != LEAF:
            column, threshold = int(self.feature[node]), self.threshold[node]
            if column < 0 and history[-1 - column] < 0 and 0 <= threshold < 1:
                children = int(self.left[node]), int(self.right[node])
                weights: list[Fraction | None] = [None, None]
                if weight is not None:
                    sizes = [Fraction(float(self.counts[child].sum())) for child in children]
                    weights = [weight * size / sum(sizes) for size in sizes]
                for value, child in enumerate(children):
                    fixed_history = list(history)
                    fixed_history[-1 - column] = value
                    yield from self._leaves(child, x, fixed_history, weights[value])
                return
            value = x[column] if column >= 0 else max(history[-1 - column], 0)
            to_left = self.missing_left[node] if np.isnan(value) else value <= threshold
            node = int(self.left[node] if to_left else self.right[node])
        yield node, weight


def nodes_of(trees: Iterable[Any]) -> list[NDArray[Any]]:
    """Return the nodes of each of scikit-learn's trees, one record each."""
    return [np.array(tree.__getstate__()["nodes"]) for tree in trees]


def packed_nodes(trees: list[NDArray[Any]]) -> tuple[Any, Any, Any, Any, Any, Any]:
    """Nodes of several trees one after the other.

    Column (or LEAF), threshold, left, right and missing-left of every node; the trees' roots.
    """
    sizes = np.array([len(nodes) for nodes in trees])
    roots = np.cumsum(sizes) - sizes
    nodes = np.concatenate(trees)
    shift = np.repeat(roots, sizes)
    is_leaf = nodes["left_child"] < 0
    return (
        np.where(is_leaf, LEAF, nodes["feature"]).astype(np.int32),
        nodes["threshold"].copy(),
        np.where(is_leaf, 0, nodes["left_child"] + shift).astype(np.int32),
        np.where(is_leaf, 0, nodes["right_child"] + shift).astype(np.int32),
        nodes["missing_go_to_left"].astype(bool),
        roots.astype(np.int32),
    )


def _counts(trees: list[Any], classes: NDArray[Any]) -> NDArray[np.float64]:
    """Training rows of each class in every node, (nodes, 2), as the bootstrap weighs them."""
    shares = np.concatenate([tree.value[:, 0, :] for tree in trees])
    weights = np.concatenate([tree.weighted_n_node_samples for tree in trees])
    rows = shares * weights[:, None]
    if (np.abs(rows - np.rint(rows)) < 1e-6).all():  # whole rows, which shares have rounded
        rows = np.rint(rows)
    counts = np.zeros((len(weights), 2))
    counts[:, np.asarray(classes, dtype=np.int64)] = rows
    return counts


_ROUNDING = 2.0**-40  # sums over leaves and trees are closer to the truth than this
_COMPILED: dict[Any, bool] = {
    merge_widest: False,
    merge_dropped: True,
}  # whether branches are weighted


class ForestChainModel(ChainModel):
    """A forest for each label; None for a label without training data."""

    shares_encoding = True
    why_no_reasons = "a forest is not a sum of what each feature adds"
    rows_at_once = 512

    def __init__(self, forests: Sequence[PackedForest | None], encoder: TableEncoder) -> None:
        self.forests, self.encoder = list(forests), encoder
        self.n_labels = len(self.forests)

    def check_state(self, n_features: int) -> None:
        """Validate a stored model for rows with ``n_features`` columns."""
        check_instance("forests", self.forests, list)
        check_instance("encoder", self.encoder, TableEncoder)
        self.encoder.check_state(one_hot=False)
        check_int("n_columns", self.encoder.n_columns, n_features, n_features)
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
        """Number of rows in each node, for every label; no tree was grown on these rows."""
        forests = [
            PackedForest.single_leaf() if forest is None else forest for forest in self.forests
        ]
        return [forest.count(encoded, labels, j) for j, forest in enumerate(forests)]

    def with_counts(self, counts: Sequence[NDArray[np.float64]]) -> "ForestChainModel":
        """The same trees, with these counts added to those of the nodes."""
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
        weighted = _COMPILED[strategy.merge]

        def bounds(row: int, j: int, history: Labels) -> tuple[Fraction, Fraction]:
            forest = self.forests[j]
            assert forest is not None  # bounds of labels never observed are not requested
            return forest.exact_bounds(encoded[row], history, s=s, weighted=weighted)

        return bounds

    def begin(
        self, encoded: NDArray[np.float32], *, s: float, strategy: Strategy, precise: bool
    ) -> Walk:
        if strategy.merge in _COMPILED:
            return ForestWalk(self.forests, encoded, s, weighted=_COMPILED[strategy.merge])
        return LocalWalk(ForestLocalModel(self.forests), encoded, self.n_labels, s, strategy)


class ForestWalk(ProbabilityWalk):
    """A batch on its way along a chain of forests; ties are settled in fractions."""

    def __init__(
        self,
        forests: Sequence[PackedForest | None],
        X: NDArray[np.float32],
        s: float,
        *,
        weighted: bool,
    ) -> None:
        super().__init__(len(X), len(forests))
        self._forests, self._X, self._s, self._weighted = forests, X, s, weighted

    def exactness(self, j: int, rows: Rows) -> Ranks:
        """Rows with an open label before j: exact only in a single tree."""
        forest = self._forests[j]
        is_single_tree = forest is not None and len(forest.roots) == 1
        worst = Exactness.EXACT if is_single_tree else Exactness.OUTER
        if self._weighted:
            worst = Exactness.APPROXIMATE
        any_open = (self._history[rows] == ABSTAIN).any(axis=1)
        return np.where(any_open, RANKS[worst], RANKS[Exactness.EXACT]).astype(np.int8)

    def compare(self, j: int, threshold: float, rows: Rows) -> tuple[Signs, Signs]:
        lower, upper = super().compare(j, threshold, rows)
        forest = self._forests[j]
        if forest is None:
            return lower, upper
        rounding = max(_ROUNDING, 4 * len(forest.roots) * np.finfo(float).eps)
        distance = np.abs(np.stack(self.probabilities(j, rows)) - threshold)
        near = (distance <= rounding).any(axis=0)
        t = Fraction(threshold)
        exact = _exact_bounds_of_rows(
            forest, self._X[rows[near]], self._history[rows[near]], self._s, weighted=self._weighted
        )
        for i, bounds in zip(np.flatnonzero(near).tolist(), exact, strict=True):
            lower[i], upper[i] = ((bound > t) - (bound < t) for bound in bounds)
        return lower, upper

    def find_bounds(self, j: int, rows: Rows) -> NDArray[np.float64]:
        forest = self._forests[j]
        if forest is None:
            return np.tile([0.0, 1.0], (len(rows), 1))
        return forest.bounds(self._X, rows, self._history, s=self._s, weighted=self._weighted)


class ForestLocalModel:
    """The forests given complete histories; labels left out are averaged over."""

    can_leave_out = True
    log_odds_error = _ROUNDING

    def __init__(self, forests: Sequence[PackedForest | None]) -> None:
        self._forests = forests

    def bounds(self, X: NDArray[np.float32], j: int, history: Labels, *, s: float) -> Bounds:
        forest = self._forests[j]
        if forest is None:
            return np.zeros(len(X)), np.ones(len(X))
        rows = np.arange(len(X))
        bounds = forest.bounds(np.ascontiguousarray(X), rows, history, s=s, weighted=True)
        return bounds[:, 0], bounds[:, 1]

    def exact_bounds(self, X: NDArray[np.float32], j: int, history: Labels, *, s: float) -> Bounds:
        """The same as fractions, to settle ties."""
        bounds = np.full((len(X), 2), (Fraction(0), Fraction(1)), dtype=object)
        forest = self._forests[j]
        if forest is not None:
            exact = _exact_bounds_of_rows(forest, X, history, s, weighted=True)
            bounds = np.array(exact, dtype=object).reshape(-1, 2)
        return bounds[:, 0], bounds[:, 1]


def _exact_bounds_of_rows(
    forest: PackedForest, X: NDArray[np.float32], history: Labels, s: float, *, weighted: bool
) -> list[tuple[Fraction, Fraction]]:
    """Bounds as fractions, which take milliseconds: once for rows that are equal, as ties are."""
    bounds: dict[bytes, tuple[Fraction, Fraction]] = {}
    keys = [x.tobytes() + labels.tobytes() for x, labels in zip(X, history, strict=True)]
    for i, key in enumerate(keys):
        if key not in bounds:
            bounds[key] = forest.exact_bounds(X[i], history[i], s=s, weighted=weighted)
    return [bounds[key] for key in keys]


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
