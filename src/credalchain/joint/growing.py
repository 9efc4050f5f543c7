"""Trees on all labels at once, and leaves that keep their training rows."""

from collections.abc import Callable
from contextvars import ContextVar
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from joblib import Memory
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone

from credalchain._utils.array_types import FloatArray, Labels
from credalchain._utils.parallel import for_each_range
from credalchain._utils.progress import Progress, track
from credalchain.chains.forest import LEAF, Trees, nodes_of
from credalchain.joint.arrays import Leaves, MemberWeights
from credalchain.labels import MISSING

ROWS_OF_A_TREE = 50_000  # drawn for each tree, where there are more
_N_TREES, _MIN_TREES = 300, 150  # of the default forest
_MAX_CELLS = 48_000_000  # labels in all its trees, above which there are fewer of them
_FEW_OUTPUTS = 8  # which cost a tree as much as fewer
_TREES_AT_ONCE = 20  # per fit, after which progress is reported
_MAX_OUTPUTS = 64
_MAX_BYTES = 2**28  # of scikit-learn's trees that are grown together
_ROWS_AT_ONCE = 2048
_LABELS_AT_ONCE = 32
MIN_PROBABILITY = 1e-3
_ROUNDS = 3  # of filling missing labels

grown_forests: ContextVar[Memory | None] = ContextVar("grown_forests", default=None)
"""Where forests are kept for the next fit to the same rows."""


class GrownForest(NamedTuple):
    """Trees, and their leaves with the rows that each tree was grown on."""

    trees: Trees
    leaves: Leaves


def default_forest_regressor(
    n_estimators: int | None = None, *, shape: tuple[int, int] = (1, 1)
) -> Any:
    """Return the default forest for labels of this shape.

    It was tuned on data sets that the studies do not use.
    """
    from sklearn.ensemble import ExtraTreesRegressor  # slow to import

    if n_estimators is None:
        cells = shape[0] * min(max(shape[1], _FEW_OUTPUTS), _MAX_OUTPUTS)
        n_estimators = int(np.clip(_MAX_CELLS // max(cells, 1), _MIN_TREES, _N_TREES))
    return ExtraTreesRegressor(
        n_estimators=n_estimators, min_samples_leaf=2, max_features=0.5, bootstrap=True
    )


class Forecast(NamedTuple):
    """What fitting the default forest takes: seconds, and bytes of memory and of a model file."""

    seconds: float
    memory: float
    file: float


_ENTRY_SECONDS = 16e-9  # for a row and a column at a level of a tree, as measured on one core
_ENTRY_BYTES, _FILE_BYTES = 90, 5  # for a row that a tree has drawn


def forecast_fit(n_rows: int, n_columns: int, n_labels: int, n_jobs: int = 1) -> Forecast:
    """Forecast what fitting the default forest to a table takes, to within a factor of about 2."""
    forest = default_forest_regressor(shape=(n_rows, n_labels))
    drawn = forest.n_estimators * min(n_rows, ROWS_OF_A_TREE)
    columns = max(1.0, forest.max_features * n_columns)
    seconds = _ENTRY_SECONDS * drawn * np.log2(n_rows + 2) * columns / n_jobs
    memory = 3e8 + _ENTRY_BYTES * drawn + 16.0 * n_rows * (n_columns + n_labels)
    return Forecast(float(seconds), float(memory), float(_FILE_BYTES * drawn))


def grow_or_recall() -> Callable[..., GrownForest]:
    """Return :func:`grow`, which returns what is kept for the same arguments, if there is."""
    memory = grown_forests.get()
    return grow if memory is None else memory.cache(grow, ignore=["n_jobs"], verbose=0)


def grow(
    forest: Any,
    X: NDArray[np.float32],
    labels: Labels,
    targets: FloatArray,
    *,
    n_jobs: int,
    seed: int,
) -> GrownForest:
    """Grow scikit-learn's forest on ``targets`` (n, m) in [0, 1], and sort the rows into leaves.

    The squared error of labels 0 and 1 is half their Gini impurity, so the trees are those of a
    classifier; and labels may be probabilities, where they were missing. Many labels are summed
    up at random for growing.

    References
    ----------
    A. Joly, P. Geurts and L. Wehenkel, Random forests with random projections of the output
    space for high dimensional multi-label classification, ECML PKDD 2014.
    """
    rng = np.random.RandomState(seed)  # used by all parts: the trees are those of a single fit
    sums = np.random.RandomState(seed)
    n_trees = forest.n_estimators
    if forest.max_samples is None and len(X) > ROWS_OF_A_TREE:
        forest = clone(forest).set_params(max_samples=ROWS_OF_A_TREE)
    rows_of_a_tree = min(len(X), ROWS_OF_A_TREE)
    bytes_of_a_tree = 16 * rows_of_a_tree * min(targets.shape[1], _MAX_OUTPUTS)  # its values
    at_once = int(np.clip(_MAX_BYTES // bytes_of_a_tree, 1, _TREES_AT_ONCE))
    tree_nodes, drawn_rows = [], []
    with Progress("trees", n_trees) as progress:
        for grown in range(0, n_trees, at_once):
            part = clone(forest).set_params(
                n_estimators=min(at_once, n_trees - grown),
                random_state=rng,
                n_jobs=n_jobs,
                warm_start=False,
            )
            part.fit(X, _outputs(targets, sums))
            drawn_rows += [_count_draws(drawn) for drawn in part.estimators_samples_]
            tree_nodes += nodes_of(tree.tree_ for tree in part.estimators_)
            progress(grown + part.n_estimators)
    trees = Trees.of(tree_nodes)
    leaves = _sort_into_leaves(X, trees, drawn_rows, n_jobs, *label_vectors(labels, targets))
    return GrownForest(trees, leaves)


def _count_draws(drawn: NDArray[np.intp]) -> tuple[NDArray[np.int32], NDArray[np.uint32]]:
    """Return the different rows that a tree has drawn, and how often each."""
    rows, times = np.unique(drawn, return_counts=True)
    return rows.astype(np.int32), times.astype(np.uint32)


def _outputs(targets: FloatArray, rng: np.random.RandomState) -> FloatArray:
    """Return the targets of the trees: the labels, or random sums of them if there are many.

    Distances between rows, and so variances in nodes, stay about the same.
    """
    n_labels = targets.shape[1]
    if n_labels > _MAX_OUTPUTS:
        return np.asarray(targets @ rng.normal(size=(n_labels, _MAX_OUTPUTS)))
    return targets[:, 0] if n_labels == 1 else targets


def pack_nodes(trees: Trees) -> NDArray[np.int32]:
    """Return all that a row needs of a node in 16 bytes: (nodes, 4).

    Twice the column, plus 1 if a missing value goes left; the bits of the threshold; and both
    branches. A leaf leads to itself.
    """
    is_leaf, itself = trees.feature == LEAF, np.arange(len(trees.feature))
    packed = np.empty((len(trees.feature), 4), dtype=np.int32)
    packed[:, 0] = np.where(is_leaf, 0, 2 * trees.feature.astype(np.int64) + trees.missing_left)
    packed[:, 1] = trees.threshold.astype(np.float32).view(np.int32)
    packed[:, 2] = np.where(is_leaf, itself, trees.left)
    packed[:, 3] = np.where(is_leaf, itself, trees.right)
    return packed


def find_leaves(
    X: NDArray[np.float32],
    trees: Trees,
    n_jobs: int = 1,
    *,
    packed: NDArray[np.int32] | None = None,
) -> NDArray[np.int32]:
    """Find the leaf of each row in each tree, (n, trees)."""
    packed = pack_nodes(trees) if packed is None else packed
    nodes = np.empty((len(X), len(trees.roots)), dtype=np.int32)

    def run(first: int, stop: int) -> None:
        _go_down(X, np.arange(first, stop, dtype=np.int32), trees.roots, packed, nodes[first:stop])

    for_each_range(len(X), _ROWS_AT_ONCE, n_jobs, run)
    return nodes


def _go_down(
    X: NDArray[np.float32],
    rows: NDArray[np.int32],
    roots: NDArray[np.int32],
    packed: NDArray[np.int32],
    nodes: NDArray[np.int32],
) -> None:
    from credalchain.joint import kernels  # imports numba

    waiting, found = np.empty((2, len(rows)), dtype=np.uint32)
    kernels.find_leaves(X, rows, roots, packed, packed.view(np.float32), waiting, found, nodes)


def _sort_into_leaves(
    X: NDArray[np.float32],
    trees: Trees,
    drawn_rows: list[tuple[NDArray[np.int32], NDArray[np.uint32]]],
    n_jobs: int,
    vector_of: NDArray[np.int32],
    label_mass: FloatArray,
) -> Leaves:
    """Return leaves with the rows that each tree was grown on, and how often it drew each."""
    from credalchain.joint import kernels  # imports numba

    packed = pack_nodes(trees)
    drawn = np.concatenate([rows for rows, _ in drawn_rows])
    drawn_times = np.concatenate([times for _, times in drawn_rows])
    first = np.cumsum([0, *(len(rows) for rows, _ in drawn_rows)])
    nodes = np.empty(len(drawn), dtype=np.int32)

    def run(tree: int, _: int) -> None:
        rows, root = slice(first[tree], first[tree + 1]), trees.roots[tree : tree + 1]
        _go_down(X, drawn[rows], root, packed, nodes[rows, None])

    for_each_range(len(drawn_rows), 1, n_jobs, run)
    sizes = np.bincount(nodes, minlength=len(trees.feature))
    indptr = np.append(0, np.cumsum(sizes))
    row, times = np.empty(len(drawn), np.int32), np.empty(len(drawn), np.uint32)
    kernels.fill_leaves(nodes, drawn, drawn_times, indptr[:-1].copy(), row, times)
    return Leaves(indptr, row, times, vector_of, label_mass, 1.0, 0.0)


def find_out_of_bag_leaves(
    X: NDArray[np.float32], grown: GrownForest, rows: NDArray[np.intp], n_jobs: int
) -> NDArray[np.int32]:
    """Find the leaf of training rows in each tree, (rows, trees); -1 where it was grown on them."""
    trees, leaves = grown
    nodes = find_leaves(X[rows], trees, n_jobs)
    position = np.full(len(X), -1)
    position[rows] = np.arange(len(rows))
    at = position[leaves.row]
    in_bag = np.flatnonzero(at >= 0)
    node = np.searchsorted(leaves.indptr, in_bag, side="right") - 1
    nodes[at[in_bag], np.searchsorted(trees.roots, node, side="right") - 1] = -1
    return nodes


def label_vectors(labels: Labels, targets: FloatArray) -> tuple[NDArray[np.int32], FloatArray]:
    """Return the vector of every row, and the label mass of the vectors, (2, K, m).

    Complete vectors come first. A row with a missing label has its own vector. A label that was
    never observed may be either.
    """
    missing = labels == MISSING
    has_missing = missing.any(axis=1)
    distinct, vector_index = np.unique(labels[~has_missing], axis=0, return_inverse=True)
    vector_of = np.empty(len(labels), dtype=np.int32)
    vector_of[~has_missing] = vector_index.reshape(-1)
    vector_of[has_missing] = len(distinct) + np.arange(has_missing.sum())
    one = np.vstack([distinct, targets[has_missing]]).astype(np.float64)
    label_mass = np.stack([1.0 - one, one])
    label_mass[:, :, np.flatnonzero(missing.all(axis=0))] = 0.0
    return vector_of, label_mass


def merged_by_vector(leaves: Leaves, kept: NDArray[np.intp] | None = None) -> Leaves:
    """Return leaves that hold label vectors in place of rows, each with its number of rows.

    Rows that are ``kept`` stay as they are, and come first.
    """
    from credalchain.joint import kernels  # imports numba

    kept = np.empty(0, dtype=np.intp) if kept is None else kept
    n_vectors = leaves.label_mass.shape[1]
    new_row_of = leaves.vector_of + np.int32(len(kept))
    new_row_of[kept] = np.arange(len(kept))
    row, times = np.empty(len(leaves.row), np.int32), np.empty(len(leaves.row), np.uint32)
    indptr, last = np.empty_like(leaves.indptr), np.full(len(kept) + n_vectors, -1)
    kernels.merge_leaves(leaves, new_row_of, last, indptr, row, times)
    return leaves._replace(
        indptr=indptr,
        row=row[: indptr[-1]].copy(),
        times=times[: indptr[-1]].copy(),
        vector_of=np.append(leaves.vector_of[kept], np.arange(n_vectors, dtype=np.int32)),
    )


def distinct_vectors(leaves: Leaves) -> NDArray[np.bool_]:
    """Return whether a vector (K,) has all labels ever observed, and no other has the same."""
    observed = leaves.label_mass[:, :, leaves.label_mass.any(axis=(0, 1))]
    complete = np.flatnonzero((observed.max(axis=0, initial=0.0) == 1.0).all(axis=1))
    packed = np.packbits(observed[1, complete] == 1.0, axis=1)
    _, group, size = np.unique(packed, axis=0, return_inverse=True, return_counts=True)
    is_distinct = np.zeros(leaves.label_mass.shape[1], dtype=np.bool_)
    is_distinct[complete] = size[group.reshape(-1)] == 1
    return is_distinct


def with_vacuous_missing(leaves: Leaves, labels: Labels) -> Leaves:
    """Return the same leaves, where a missing label gives no mass to either value."""
    rows, columns = np.nonzero(labels == MISSING)
    label_mass = leaves.label_mass.copy()
    label_mass[:, leaves.vector_of[rows], columns] = 0.0
    return leaves._replace(label_mass=label_mass)


def no_member_weights(n_rows: int) -> MemberWeights:
    """Return the weights of members if there are none."""
    return MemberWeights(np.zeros(n_rows + 1, np.int64), np.empty(0, np.int32), np.empty(0))


def fill_missing(
    forest: Any, X: NDArray[np.float32], labels: Labels, *, n_jobs: int, seed: int
) -> FloatArray:
    """Return labels as numbers, with a probability where they are missing.

    It is estimated out of bag by smaller forests, each grown on the labels filled in before; the
    first on the labels' means. All but the last estimate by observed labels alone: labels that were
    filled in would hide them where few are observed. The last counts both, and estimates given the
    observed labels of the row.
    """
    missing = labels == MISSING
    observed = np.maximum((~missing).sum(axis=0), 1)
    means = np.where(missing, 0, labels).sum(axis=0) / observed
    means = np.clip(means, MIN_PROBABILITY, 1 - MIN_PROBABILITY)
    targets: FloatArray = np.where(missing, means, labels).astype(np.float64)
    if not missing.any():
        return targets
    smaller = clone(forest).set_params(n_estimators=max(1, min(forest.n_estimators, 50)))
    for round_number in track(range(_ROUNDS), "rounds of filling missing labels", _ROUNDS):
        next_seed = (seed + round_number + 1) % 2**31
        grown = grow_or_recall()(smaller, X, labels, targets, n_jobs=n_jobs, seed=next_seed)
        rows = np.flatnonzero(missing.any(axis=1))
        if round_number < _ROUNDS - 1:
            p = out_of_bag_means(grown, X, labels, rows, means, n_jobs)
        else:
            p = out_of_bag_labels(grown, X, labels, rows, n_jobs)
        p = np.clip(p, MIN_PROBABILITY, 1 - MIN_PROBABILITY)  # only observed labels are certain
        targets[rows] = np.where(missing[rows] & np.isfinite(p), p, targets[rows])
    return targets


def out_of_bag_means(
    grown: GrownForest,
    X: NDArray[np.float32],
    labels: Labels,
    rows: NDArray[np.intp],
    means: FloatArray,
    n_jobs: int,
) -> FloatArray:
    """Compute the mean of the observed labels in the leaves of some training rows, (rows, m).

    Of all trees that were not grown on a row, and of one more observation: the label's mean.
    """
    indptr, row, times = grown.leaves.indptr, grown.leaves.row, grown.leaves.times
    roots = np.append(grown.trees.roots, len(indptr) - 1)
    drawn = sparse.csr_array((times.astype(np.float64), row, indptr), (len(indptr) - 1, len(X)))
    nodes = find_out_of_bag_leaves(X, grown, rows, n_jobs)
    n_positive, n_observed = np.tile(means, (len(rows), 1)), np.ones((len(rows), len(means)))
    for first in range(0, len(means), _LABELS_AT_ONCE):
        block = slice(first, first + _LABELS_AT_ONCE)
        positive = (labels[:, block] == 1).astype(np.float64)
        observed = (labels[:, block] != MISSING).astype(np.float64)
        for tree, (root, stop) in enumerate(pairwise(roots)):
            outside = np.flatnonzero(nodes[:, tree] >= 0)
            leaf = nodes[outside, tree] - root
            n_positive[outside, block] += (drawn[root:stop] @ positive)[leaf]
            n_observed[outside, block] += (drawn[root:stop] @ observed)[leaf]
    return n_positive / n_observed


def out_of_bag_labels(
    grown: GrownForest,
    X: NDArray[np.float32],
    labels: Labels,
    rows: NDArray[np.intp],
    n_jobs: int,
) -> FloatArray:
    """Compute P(Y_j = 1) of some training rows given their observed labels, (rows, m).

    From the trees that were not grown on them; NaN where there is no estimate.
    """
    from credalchain.joint import kernels  # imports numba

    lower, leaves = np.empty((len(rows), labels.shape[1], 2)), merged_by_vector(grown.leaves)
    nodes, known = find_out_of_bag_leaves(X, grown, rows, n_jobs), labels[rows]

    def run(first: int, stop: int) -> None:
        part, weights = slice(first, stop), no_member_weights(stop - first)
        workspace = kernels.Workspace.allocate(nodes, leaves)
        kernels.bound_labels(nodes[part], known[part], weights, leaves, 0.0, workspace, lower[part])

    for_each_range(len(rows), _ROWS_AT_ONCE, n_jobs, run)
    total = lower.sum(axis=-1)
    return np.where(total > 0, lower[..., 1] / np.where(total > 0, total, 1.0), np.nan)


def out_of_bag_scores(
    grown: GrownForest,
    X: NDArray[np.float32],
    labels: Labels,
    rows: NDArray[np.intp],
    n_jobs: int,
) -> FloatArray:
    """Compute the probability of training rows' labels by vectors, and by products, (rows, 2).

    NaN for a row that all trees were grown on.
    """
    from credalchain.joint import kernels  # imports numba

    scores, leaves = np.empty((len(rows), 2)), merged_by_vector(grown.leaves)
    nodes, truth = find_out_of_bag_leaves(X, grown, rows, n_jobs), labels[rows]

    def run(first: int, stop: int) -> None:
        part, weights = slice(first, stop), no_member_weights(stop - first)
        workspace = kernels.Workspace.allocate(nodes, leaves)
        kernels.score_vectors(nodes[part], truth[part], weights, leaves, workspace, scores[part])

    for_each_range(len(rows), _ROWS_AT_ONCE, n_jobs, run)
    scores[(nodes < 0).all(axis=1)] = np.nan
    return scores


_BACKGROUND = 0.02  # share of independent labels, so that no row's score is zero
_ENTRIES_AT_ONCE = 2**16
_MIN_SHARE = 1e-3  # smaller shares are set to 0


def independent_likelihood(labels: Labels) -> FloatArray:
    """Compute the probability of each row's observed labels by the marginal frequencies, (n,)."""
    observed = labels != MISSING
    ones = (labels == 1).sum(axis=0)
    p = (ones + 1) / (observed.sum(axis=0) + 2)
    factors = np.where(labels == 1, p, 1 - p)
    return np.asarray(np.where(observed, factors, 1.0).prod(axis=1))


def score_weights(weights: Any, label_mass: FloatArray, labels: Labels) -> FloatArray:
    """Compute P(observed labels) of each row (n, 1) by sparse weights on vectors, (n, K)."""
    weights = weights.tocoo()
    row, vector = weights.row, weights.col
    scores = np.zeros((len(labels), 1))
    for first in range(0, len(row), _ENTRIES_AT_ONCE):
        part = slice(first, first + _ENTRIES_AT_ONCE)
        truth = labels[row[part]]
        p = np.where(truth == 1, label_mass[1, vector[part]], label_mass[0, vector[part]])
        p = np.where(truth == MISSING, 1.0, p).prod(axis=1) * weights.data[part]
        np.add.at(scores[:, 0], row[part], p)
    return scores


def learn_mixture_shares(
    scores: FloatArray,
    labels: Labels,
    n_forest: int,
    *,
    max_member_share: float = 0.5,
    prior: FloatArray | None = None,
) -> FloatArray:
    """Learn the shares (C,) with the greatest mean logarithm of the mixed probability.

    Parameters
    ----------
    scores : ndarray of shape (n, C)
        Held-out probability of the labels of each row by each of C mixture components; rows with
        NaN are left out.
    labels : ndarray of shape (n, m)
    n_forest : int
        The first components are those of the forest; together they keep at least one half, since
        only a third of its trees are out of bag for a row, so its score is too pessimistic.
    max_member_share : float
        Maximum sum of the shares of the other components.
    prior : ndarray of shape (C,), optional
        How many rows that each component alone explains are added to those given.
    """
    usable = np.isfinite(scores).all(axis=1)
    shares = np.where(np.arange(scores.shape[1]) < n_forest, 1 / n_forest, 0.0)
    if not usable.any():
        return shares
    floor = _BACKGROUND * independent_likelihood(labels[usable])[:, None]
    mixed = (1 - _BACKGROUND) * scores[usable] + np.maximum(floor, np.finfo(float).tiny)
    mixed /= mixed.max(axis=1, keepdims=True)

    weights = np.ones(len(mixed))
    if prior is not None:
        shares = np.full(len(shares), 1 / len(shares))
        mixed = np.vstack([mixed, np.eye(len(prior))])
        weights = np.append(weights, prior)
    weights /= weights.sum()

    def loss(shares: FloatArray) -> tuple[float, FloatArray]:
        total = np.maximum(mixed @ shares, np.finfo(float).tiny)
        return -float(np.log(total) @ weights), -(weights / total) @ mixed

    result = minimize(  # convex, with few variables
        loss,
        shares,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(shares),
        constraints=[
            {"type": "eq", "fun": lambda shares: shares.sum() - 1.0},
            {"type": "ineq", "fun": lambda shares: max_member_share - shares[n_forest:].sum()},
        ],
        options={"ftol": 1e-9, "maxiter": 200},
    )
    shares = np.asarray(result.x)
    shares = np.where(shares < _MIN_SHARE, 0.0, shares)
    return np.asarray(shares / shares.sum())
