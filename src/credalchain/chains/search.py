"""Search on the tree of a chain: label vectors, and how likely they are together.

A node of the tree is an assignment of the labels before a label, at which the chain gives the
probability of that label. The probability of a label vector is the product along its path. With
intervals, every choice of a number in each node's interval is a precise chain that is consistent
with them.
"""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from credalchain._utils.array_types import FloatArray, IntArray, Labels
from credalchain._utils.validation import check_choice, check_int, check_number, check_s
from credalchain.chains.interface import CredalClassifier
from credalchain.labels import ABSTAIN
from credalchain.typing import MatrixLike

Node = tuple[int, ...]  # values of the first labels in the chain's order

CERTIFICATES = {
    ("greedy", True): "nothing: the likelier value of each label, given those before it",
    ("epsilon", True): "less likely than the likeliest vector by less than epsilon, if at all",
    ("beam", True): "nothing: the likeliest of the paths that were kept",
    ("best_first", True): "the likeliest vector",
    ("exhaustive", True): "the likeliest vector",
    ("greedy", False): "the greedy answers of all consistent precise chains, and no others",
    ("best_first", False): "the likeliest vector of every consistent precise chain is among them",
    ("exhaustive", False): "all vectors that no other is likelier than in every consistent chain",
}
"""Guarantees of the methods, by name and whether probabilities are precise."""

METHODS = tuple(dict.fromkeys(name for name, _ in CERTIFICATES))
_MAX_EXHAUSTIVE = {True: 15, False: 10}  # labels
_MAX_NODES = 100_000  # of a row


class ChainTree:
    """Tree of one row: local bounds of each node, computed when they are first asked for."""

    def __init__(self, chain: CredalClassifier, row: Any, s: float) -> None:
        self._model, self._row, self._s = chain.model_, row, s
        (self._strategy,) = chain.request(row, s=s).strategies
        self._chained, self._never = chain.chained, chain.model_.never_observed()
        self.order: list[int] = [*map(int, chain.order_)]  # type: ignore[arg-type]
        m = len(self.order)
        self.thresholds = np.broadcast_to(np.asarray(chain.threshold, float), m)[self.order]
        self.explored: dict[Node, tuple[float, float]] = {}

    @property
    def n_labels(self) -> int:
        return len(self.order)

    def explore(self, nodes: Sequence[Node]) -> None:
        """Find the bounds of P(next label = 1) at nodes of equal depth, in one batch."""
        nodes = [node for node in nodes if node not in self.explored]
        if not nodes:
            return
        if len(self.explored) + len(nodes) > _MAX_NODES:
            raise ValueError(
                f"the search of a row needs more than {_MAX_NODES} nodes; use method='beam' or "
                "'greedy', fewer labels, or a smaller s."
            )
        n, depth = len(nodes), len(nodes[0])
        rows, repeated = np.arange(n), self._row[np.zeros(n, dtype=np.int64)]
        walk = self._model.begin(repeated, s=self._s, strategy=self._strategy, precise=False)
        for position in range(depth if self._chained else 0):
            y = np.array([node[position] for node in nodes], dtype=np.int8)
            walk.set_label(self.order[position], y, rows)
        j = self.order[depth]
        bounds = walk.probabilities(j, rows)
        lower, upper = (expit(b) for b in walk.log_odds(j, rows)) if bounds is None else bounds
        if self._never[j]:  # 0 in a precise chain, as in predict
            lower, upper = np.zeros(n), np.full(n, float(self._s > 0))
        pairs = zip(map(float, lower), map(float, upper), strict=True)
        self.explored.update(zip(nodes, pairs, strict=True))

    def bounds(self, node: Node, value: int) -> tuple[float, float]:
        """Lower and upper probability that the label after a node has a value."""
        self.explore([node])
        lower, upper = self.explored[node]
        return (lower, upper) if value else (1 - upper, 1 - lower)

    def path(self, node: Node) -> tuple[float, float]:
        """Lower and upper probability of all the labels of a node together."""
        pairs = [self.bounds(node[:depth], value) for depth, value in enumerate(node)]
        lower, upper = zip(*pairs, strict=True) if pairs else ((), ())
        return float(np.prod(lower)), float(np.prod(upper))


def _greedy(tree: ChainTree, **_: Any) -> list[Node]:
    """Take, at each node, the values that the threshold does not rule out; a precise tie is 1."""
    nodes: list[Node] = [()]
    for threshold in tree.thresholds:
        tree.explore(nodes)
        longer = []
        for node in nodes:
            lower, upper = tree.explored[node]
            if lower < threshold:
                longer.append((*node, 0))
            if upper >= threshold:
                longer.append((*node, 1))
        nodes = longer
    return nodes


def _beam(tree: ChainTree, width: int, **_: Any) -> list[Node]:
    nodes: list[tuple[float, Node]] = [(1.0, ())]
    for _depth in range(tree.n_labels):
        tree.explore([node for _, node in nodes])
        longer = [(p * tree.bounds(v, y)[0], (*v, y)) for p, v in nodes for y in (1, 0)]
        nodes = sorted(longer, key=lambda pair: -pair[0])[:width]
    return [nodes[0][1]]


def _epsilon(tree: ChainTree, epsilon: float, **_: Any) -> list[Node]:
    """Search best first among nodes of probability epsilon or more; if none is a leaf, greedily."""
    queue: list[tuple[float, Node]] = [(-1.0, ())]
    cut: list[Node] = []
    while queue:
        p, node = heapq.heappop(queue)
        if len(node) == tree.n_labels:
            return [node]
        longer = [(p * tree.bounds(node, y)[0], (*node, y)) for y in (1, 0)]
        kept = [pair for pair in longer if -pair[0] >= epsilon]
        cut += [] if kept else [node]
        for pair in kept:
            heapq.heappush(queue, pair)
    leaves = []
    for node in cut:
        while len(node) < tree.n_labels:
            node = (*node, int(tree.bounds(node, 1)[0] >= 0.5))
        leaves.append(node)
    return [max(leaves, key=lambda leaf: tree.path(leaf)[0])]


def _best_first(tree: ChainTree, **_: Any) -> list[Node]:
    """Find vectors whose upper probability reaches the greatest lower one (interval dominance).

    The order is that of upper probabilities, which bound those of all longer paths: A* with the
    heuristic 1.
    """
    queue: list[tuple[float, float, Node]] = [(-1.0, -1.0, ())]
    leaves: list[tuple[float, Node]] = []
    best = 0.0
    while queue and -queue[0][0] >= best:
        upper, lower, node = heapq.heappop(queue)
        if len(node) == tree.n_labels:
            best = max(best, -lower)
            leaves.append((-upper, node))
            if upper == lower:  # precise: the first is the likeliest
                return [node]
            continue
        for y in (1, 0):
            low, high = tree.bounds(node, y)
            heapq.heappush(queue, (upper * high, lower * low, (*node, y)))
    return [leaf for upper, leaf in leaves if upper >= best]


def _exhaustive(tree: ChainTree, **_: Any) -> list[Node]:
    """Find the vectors that no other dominates.

    From the node where they part on, z dominates y if the product of lower probabilities along z
    exceeds that of upper ones along y. Those below the node are free, and at the node itself both
    are attained together.
    """
    m = tree.n_labels
    for depth in range(m):
        tree.explore(list(product((0, 1), repeat=depth)))

    @cache
    def best_lower(node: Node) -> float:
        if len(node) == m:
            return 1.0
        return max(tree.bounds(node, y)[0] * best_lower((*node, y)) for y in (0, 1))

    def survivors(node: Node) -> list[tuple[float, Node]]:
        """Return vectors below a node that none below it dominates, with their upper products."""
        if len(node) == m:
            return [(1.0, node)]
        kept = []
        for y in (0, 1):
            rival = tree.bounds(node, 1 - y)[0] * best_lower((*node, 1 - y))
            high = tree.bounds(node, y)[1]
            each = [(high * upper, leaf) for upper, leaf in survivors((*node, y))]
            kept += [pair for pair in each if pair[0] >= rival]
        return kept

    found = [leaf for _, leaf in survivors(())]
    if all(lower == upper for lower, upper in tree.explored.values()):
        return [max(found, key=lambda leaf: tree.path(leaf)[0])]
    return found


_SEARCHES: dict[str, Callable[..., list[Node]]] = {
    "greedy": _greedy,
    "epsilon": _epsilon,
    "beam": _beam,
    "best_first": _best_first,
    "exhaustive": _exhaustive,
}


@dataclass(frozen=True, eq=False)
class ChainSearch:
    """Result of a search on a chain.

    Parameters
    ----------
    labels : ndarray of int8, shape (n_samples, n_labels)
        Values on which the vectors of each row agree; -1 where they differ.
    vectors : list of ndarray of int8, shape (k, n_labels)
        Vectors that remain for each row; a single one where probabilities are precise.
    probabilities : list of ndarray, shape (k, 2)
        Lower and upper probability of each vector.
    n_explored : ndarray of int, shape (n_samples,)
        Number of nodes of each row whose local probability was computed.
    certificate : str
        Guarantee that the method gives for the vectors.
    trees : list of ChainTree
        The explored tree of each row.

    Attributes
    ----------
    labels : ndarray of int8, shape (n, m)
        Values on which the vectors of each row agree; -1 where they differ, and for labels that
        were never observed in training.
    vectors : list of ndarray of int8, shape (k, m)
        Vectors that remain for each row; a single one where probabilities are precise.
    probabilities : list of ndarray, shape (k, 2)
        Lower and upper probability of each vector.
    n_explored : ndarray of int, shape (n,)
        Number of nodes of each row whose local probability was computed.
    certificate : str
        Guarantee that the method gives for the vectors.
    trees : list of ChainTree

    See Also
    --------
    search_chain : Search the tree of a fitted chain.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier, search_chain
    >>> X = [["sun"], ["sun"], ["sun"], ["rain"], ["rain"], ["fog"]] * 5
    >>> Y = [[1, 0], [1, 0], [1, 1], [0, 1], [0, 1], [1, 1]] * 5
    >>> chain = CredalChainClassifier(order="given").fit(X, Y)
    >>> found = search_chain(chain, [["fog"]], s=2.0)
    >>> found.vectors[0]
    array([[1, 1],
           [1, 0]], dtype=int8)
    >>> found.labels
    array([[ 1, -1]], dtype=int8)
    """

    labels: Labels
    vectors: list[Labels]
    probabilities: list[FloatArray]
    n_explored: IntArray
    certificate: str
    trees: list[ChainTree]


def check_is_chain(chain: Any) -> None:
    """Validate that something is a fitted chain with one order, not a joint decision."""
    if not isinstance(chain, CredalClassifier):
        raise TypeError(f"chain must be like a fitted CredalChainClassifier(), got {chain!r}.")
    check_is_fitted(chain, "model_")
    has_order = getattr(chain, "order_", None) is not None and not hasattr(chain, "orders_")
    if not has_order or not hasattr(chain.model_, "begin"):
        raise ValueError(f"chain must have one order of its labels for all rows, got {chain!r}.")


def search_chain(
    chain: CredalClassifier,
    X: MatrixLike,
    method: str = "best_first",
    *,
    s: float = 0.0,
    epsilon: float = 0.25,
    width: int = 4,
) -> ChainSearch:
    """Search the tree of a fitted chain for likely label vectors.

    A chain predicts greedily, label by label, which may miss the likeliest vector. With s = 0
    probabilities are precise, and every method gives one vector:

    - "greedy": the chain's own answers, by its thresholds; certifies nothing.
    - "epsilon" (Dembczynski et al. 2012): best first among nodes of probability ``epsilon`` or
      more; the likeliest vector if its probability is at least ``epsilon``, and in any case less
      likely than it by less than ``epsilon``.
    - "beam" (Kumar et al. 2013): the ``width`` likeliest paths of each length; certifies nothing.
    - "best_first" (Mena et al. 2016: A* with the heuristic 1): the likeliest vector.
    - "exhaustive": the same, from all vectors.

    With s > 0 there are intervals, and the answer is a set of vectors:

    - "greedy" (the paper's Remark 1): the greedy answers of all precise chains that are consistent
      with the local intervals. The values on which they agree include all answers of branching.
    - "best_first": vectors whose upper probability reaches the greatest lower one (interval
      dominance).
    - "exhaustive": vectors that no other vector dominates in all consistent chains (maximality); a
      subset of those of "best_first".

    "beam" and "epsilon" are not defined for intervals.

    Parameters
    ----------
    chain : fitted chain or binary relevance classifier
        In a fixed order of the labels, over any base.
    X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
        Rows to search for.
    method : {"greedy", "epsilon", "beam", "best_first", "exhaustive"}, default="best_first"
        Search method, see above.
    s : float, default=0
        Degree of caution, which overrides that of the chain.
    epsilon : float, default=0.25
        Threshold of "epsilon", from 0 (equivalent to "best_first") to 1.
    width : int, default=4
        Number of paths that "beam" keeps.

    Returns
    -------
    ChainSearch
        Vectors, their probabilities, and the values on which they agree.

    Raises
    ------
    ValueError
        If the chain has a dynamic order, if ``method`` is not defined for intervals (s > 0), or if
        the search would take too long.

    See Also
    --------
    ChainSearch : The result.
    credalchain.plotting.plot_chain_tree : Plot the tree of one row.

    References
    ----------
    K. Dembczynski, W. Waegeman and E. Huellermeier, An analysis of chaining in multi-label
    classification, ECAI 2012.

    A. Kumar, S. Vembu, A. K. Menon and C. Elkan, Beam search algorithms for multilabel learning,
    Machine Learning 92(1), 2013.

    D. Mena, E. Montanes, J. R. Quevedo and J. J. del Coz, An overview of inference methods in
    probabilistic classifier chains for multilabel classification, WIREs Data Mining and Knowledge
    Discovery 6(6), 2016.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier, search_chain
    >>> X = [["sun"], ["sun"], ["sun"], ["rain"], ["rain"], ["fog"]] * 5
    >>> Y = [[1, 0], [1, 0], [1, 1], [0, 1], [0, 1], [1, 1]] * 5
    >>> chain = CredalChainClassifier(order="given").fit(X, Y)
    >>> found = search_chain(chain, [["sun"], ["rain"]])
    >>> found.labels
    array([[1, 0],
           [0, 1]], dtype=int8)
    >>> found.certificate
    'the likeliest vector'
    """
    check_is_chain(chain)
    s, m = check_s(s), chain.n_labels_
    check_method(method, s, m)
    check_int("width", width)
    check_number("epsilon", epsilon, 0, 1, "a number from 0 to 1")
    encoded = chain.encode(X)
    n = encoded.shape[0]
    trees = [ChainTree(chain, encoded[i : i + 1], s) for i in range(n)]
    found = [_SEARCHES[method](tree, epsilon=epsilon, width=width) for tree in trees]
    probabilities = [
        np.array([tree.path(leaf) for leaf in leaves])
        for tree, leaves in zip(trees, found, strict=True)
    ]
    inverse = np.argsort(np.asarray(chain.order_))
    vectors = [np.array(leaves, dtype=np.int8)[:, inverse] for leaves in found]
    never = chain.model_.never_observed()
    common = [np.where((v == v[0]).all(axis=0) & ~never, v[0], ABSTAIN) for v in vectors]
    return ChainSearch(
        np.array(common, dtype=np.int8).reshape(n, m),
        vectors,
        probabilities,
        np.array([len(tree.explored) for tree in trees]),
        CERTIFICATES[method, s == 0],
        trees,
    )


def check_method(method: str, s: float, n_labels: int) -> None:
    """Raise a ValueError for a method that intervals do not define, or that takes too long."""
    check_choice("method", method, METHODS)
    if (method, s == 0) not in CERTIFICATES:
        raise ValueError(
            f"method {method!r} needs precise probabilities, s = 0, got s = {s:g}; 'greedy', "
            "'best_first' and 'exhaustive' are defined with intervals."
        )
    most = _MAX_EXHAUSTIVE[s == 0]
    if method == "exhaustive" and n_labels > most:
        raise ValueError(
            f"method 'exhaustive' is for at most {most} labels with s = {s:g}, got {n_labels}: "
            "take 'best_first'."
        )
