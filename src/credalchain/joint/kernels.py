"""Bounds for the labels of a row from its leaves, and the best set of answers.

For every row, ``_gather`` adds up the contents of its leaves; all other functions use these sums.
Products over labels stop where they are 0, which for most vectors is soon.
"""

import math
from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalchain._utils.compiler import kernel, kernel_helper, reordering_kernel_helper
from credalchain.chains.forest import LEAF, Trees
from credalchain.joint.arrays import Leaves, MemberWeights

_ROUNDING = 2.0**-40  # probabilities closer to 1 than this are set to 1
_MAX_NODES = 2**12  # prefixes of answers that are extended in a search for the likeliest vector


_Arrays = namedtuple(
    "_Arrays",
    "leaf_weight member_weight touched leaf_first leaf_stop leaf_rows leaf_counts "
    "tree_lower low_known high_known tree_low_known tree_high_known tree_product "
    "tree_high both only_known vector_weight is_distinct spread spread_bound tree_bound "
    "tree_ratio candidates n_compatible label_bound branches child_bound n_tried "
    "proposed certainty order merged right corners",
)


class Workspace(_Arrays):
    """Arrays for intermediate results of one row, reused for the next.

    Allocating them in a kernel would take seconds to compile.

    ``leaf_weight`` (K,): weights of the leaves on vectors; ``member_weight`` (K,): of the members;
    ``touched``: the vectors that have any. ``leaf_first``, ``leaf_stop``, ``leaf_rows`` (trees,):
    the entries of each leaf, and how many rows they are. ``tree_lower`` (2, m, trees): lower
    probabilities of single labels being 0 or 1 in each tree; trees come last, so that products
    vectorize over them.
    ``low_known``, ``high_known``: bounds of the probability of the known labels, for each touched
    vector; ``tree_low_known``, ``tree_high_known``: in each tree. ``leaf_counts`` (2, m): rows in a
    leaf by label. ``tree_product``, ``tree_high`` (trees,): products along a prefix of answers.
    ``both``, ``only_known`` (m + 1,): lower P(prefix and known), upper P(known but not the prefix).
    ``vector_weight``: the weight of each touched vector, times the probability of the known labels.
    ``is_distinct`` (K,): no other vector has the same labels, and none of them is missing.
    ``spread``: the other touched vectors, ``spread_bound`` (K,) what each adds at most to the
    probability of a vector; ``tree_bound`` (m + 1, trees): the same for each tree, given a prefix;
    ``tree_ratio`` (2, m, trees): what is left of that if a label is 0 or 1; ``candidates``:
    positions of distinct vectors, of which the first ``n_compatible`` (m,) have the same prefix;
    ``label_bound`` (m, 2): their sum if one label is 0 or 1. ``branches`` (m,): labels as a search
    decides them, ``child_bound`` (m, 2): that sum for the next label, ``n_tried`` (m,): how many of
    its values were tried. The others are those of ``decide_rows``: the likeliest vector, and its
    prefixes.
    """

    __slots__ = ()

    @classmethod
    def allocate(cls, nodes: NDArray[np.int32], leaves: Leaves) -> "Workspace":
        """Allocate for rows with leaves ``nodes`` (n, trees); decisions set ``is_distinct``."""
        n_trees, (_, n_vectors, n_labels) = nodes.shape[1], leaves.label_mass.shape
        return cls(
            leaf_weight=np.zeros(n_vectors),
            member_weight=np.zeros(n_vectors),
            touched=np.empty(n_vectors, np.int32),
            leaf_first=np.empty(n_trees, np.int64),
            leaf_stop=np.empty(n_trees, np.int64),
            leaf_rows=np.empty(n_trees),
            leaf_counts=np.empty((2, n_labels)),
            tree_lower=np.empty((2, n_labels, n_trees)),
            low_known=np.empty(n_vectors),
            high_known=np.empty(n_vectors),
            tree_low_known=np.empty(n_trees),
            tree_high_known=np.empty(n_trees),
            tree_product=np.empty(n_trees),
            tree_high=np.empty(n_trees),
            both=np.empty(n_labels + 1),
            only_known=np.empty(n_labels + 1),
            vector_weight=np.empty(n_vectors),
            is_distinct=np.empty(0, np.bool_),
            spread=np.empty(n_vectors, np.int64),
            spread_bound=np.empty(n_vectors),
            tree_bound=np.empty((n_labels + 1, n_trees)),
            tree_ratio=np.empty((2, n_labels, n_trees)),
            candidates=np.empty(n_vectors, np.int64),
            n_compatible=np.empty(n_labels, np.int64),
            label_bound=np.empty((n_labels, 2)),
            branches=np.empty(n_labels, np.int64),
            child_bound=np.empty((n_labels, 2)),
            n_tried=np.empty(n_labels, np.int64),
            proposed=np.empty(n_labels, np.int8),
            certainty=np.empty(n_labels),
            order=np.empty(n_labels, np.int64),
            merged=np.empty(n_labels, np.int64),
            right=np.empty(n_labels + 1),
            corners=np.empty(n_labels + 1, np.int64),
        )


class GatheredRow(NamedTuple):
    """How much of the workspace one row uses; ``n_trees`` is 0 where products are not used.

    ``possible``: the known labels are possible according to the vectors.
    """

    n_touched: int
    n_trees: int
    rest: float
    any_known: bool
    possible: bool


@kernel_helper
def _go_down(
    X: NDArray[np.float32],
    rows: NDArray[np.int32],
    root: int,
    packed: NDArray[np.int32],
    thresholds: NDArray[np.float32],
    waiting: NDArray[np.uint32],
    found: NDArray[np.uint32],
) -> None:
    """Set ``found`` (k,): the leaves of some rows in a tree, whose nodes are ``packed``.

    All rows go down one level at a time, without branches that a processor would have to guess, so
    that it works on many of them at once. ``waiting`` (k,) are those that are not yet in a leaf.
    Unsigned indices are never counted from the end, which saves half of the instructions.
    """
    n = np.uint32(rows.shape[0])
    for k in range(n):
        waiting[k], found[k] = k, root
    # packed[node] is (2 * feature + whether missing goes left, bits of the threshold, left, right);
    # a leaf is its own child, so a row that has arrived moves no further and leaves ``waiting``
    while n > 0:
        n_left = np.uint32(0)
        for position in range(n):
            k = waiting[position]
            node = found[k]
            split = packed[node, 0]
            value = X[np.uint32(rows[k]), np.uint32(split >> 1)]
            to_left = (value <= thresholds[node, 1]) | (math.isnan(value) & ((split & 1) == 1))
            branch = np.uint32(packed[node, np.uint32(3) - np.uint32(to_left)])
            found[k], waiting[n_left] = branch, k
            n_left += np.uint32(branch != node)
        n = n_left


@kernel
def find_leaves(
    X: NDArray[np.float32],
    rows: NDArray[np.int32],
    roots: NDArray[np.int32],
    packed: NDArray[np.int32],
    thresholds: NDArray[np.float32],
    waiting: NDArray[np.uint32],
    found: NDArray[np.uint32],
    nodes: NDArray[np.int32],
) -> None:
    """Fill ``nodes`` (k, trees): the leaf of each of the ``rows`` (k,) of X in each tree."""
    for tree in range(roots.shape[0]):
        _go_down(X, rows, roots[tree], packed, thresholds, waiting, found)
        for k in range(rows.shape[0]):
            nodes[k, tree] = found[k]


@kernel
def fill_leaves(
    nodes: NDArray[np.int32],
    rows: NDArray[np.int32],
    times: NDArray[np.uint32],
    first: NDArray[np.int64],
    leaf_rows: NDArray[np.int32],
    leaf_times: NDArray[np.uint32],
) -> None:
    """Sort ``rows`` and ``times`` by their ``nodes``, all three (entries,).

    ``first`` (nodes,) holds where each leaf begins, and is changed to where it ends.
    """
    # a counting sort: first[node] is the next free place of the node
    for entry in range(nodes.shape[0]):
        at = first[nodes[entry]]
        leaf_rows[at], leaf_times[at] = rows[entry], times[entry]
        first[nodes[entry]] = at + 1


@kernel
def unpack_nodes(
    nodes: NDArray[np.int32],
    threshold: NDArray[np.float32],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    missing_left: NDArray[np.bool_],
    sizes: NDArray[np.int32],
    trees: Trees,
    indptr: NDArray[np.int64],
) -> None:
    """Fill ``trees`` and ``indptr``, both zero: arrays of all nodes from those of a kind."""
    # inner nodes and leaves are stored apart, each in the order of the nodes: one counter for each
    split, leaf = 0, 0
    for node in range(nodes.shape[0]):
        indptr[node + 1] = indptr[node]
        if nodes[node] == 0:
            trees.feature[node] = LEAF
            indptr[node + 1] += sizes[leaf]
            leaf += 1
        else:
            trees.feature[node] = nodes[node] - 1
            trees.threshold[node] = threshold[split]
            trees.left[node] = node + left[split]
            trees.right[node] = node + right[split]
            trees.missing_left[node] = missing_left[split]
            split += 1


@kernel
def merge_leaves(
    leaves: Leaves,
    new_row_of: NDArray[np.int32],
    last: NDArray[np.int64],
    indptr: NDArray[np.int64],
    row: NDArray[np.int32],
    times: NDArray[np.uint32],
) -> None:
    """Add up the rows of each leaf that become the same row.

    ``last`` (new rows,) holds -1, then the entry of each row in the latest leaf that has it.
    """
    n = 0
    indptr[0] = 0
    for node in range(indptr.shape[0] - 1):
        for entry in range(leaves.indptr[node], leaves.indptr[node + 1]):
            new_row = new_row_of[leaves.row[entry]]
            if last[new_row] < indptr[node]:  # not yet in this leaf
                row[n], times[n], last[new_row] = new_row, 0, n
                n += 1
            times[last[new_row]] += leaves.times[entry]
        indptr[node + 1] = n


# -- what numpy would do: its slices and sums take long to compile ---------------------------------


@kernel_helper
def _fill(values: NDArray[np.float64], value: float) -> None:
    for k in range(values.shape[0]):
        values[k] = value


@kernel_helper
def _sum(values: NDArray[np.float64], n: int) -> float:
    total = 0.0
    for k in range(n):
        total += values[k]
    return total


@reordering_kernel_helper
def _dot(a: NDArray[np.float64], b: NDArray[np.float64], n: int) -> float:
    total = 0.0
    for k in range(n):
        total += a[k] * b[k]
    return total


@kernel_helper
def _has_known(known: NDArray[np.int8]) -> bool:
    any_known = False
    for j in range(known.shape[0]):
        any_known |= known[j] >= 0
    return any_known


# -- one row: the contents of its leaves -----------------------------------------------------------


@kernel_helper
def _gather(
    i: int,
    nodes: NDArray[np.int32],
    known: NDArray[np.int8],
    member_weights: MemberWeights,
    leaves: Leaves,
    s: float,
    products: bool,
    workspace: Workspace,
) -> GatheredRow:
    """Add up the leaves of row i. A node of -1 is a tree that is left out."""
    n_asked, n_touched, rest = 0, 0, 0.0
    first, stop, leaf_rows = workspace.leaf_first, workspace.leaf_stop, workspace.leaf_rows
    # leaves are all over the memory: short loops, so that many of them are fetched at once
    for node in nodes:
        if node >= 0:
            first[n_asked], stop[n_asked] = leaves.indptr[node], leaves.indptr[node + 1]
            n_asked += 1
    for tree in range(n_asked):
        n_rows = 0.0
        for entry in range(first[tree], stop[tree]):
            n_rows += leaves.times[entry] if leaves.row[entry] >= 0 else 0
        leaf_rows[tree] = n_rows
    # every tree counts the same, and every row of its leaf: 1 / (rows + s), so that s / (rows + s)
    # stays as the rest; leaf_weight is 0 between rows, so a vector is listed at its first entry
    for tree in range(n_asked):
        total = leaf_rows[tree] + s
        weight, inverse = 1.0 / (total * n_asked), 1.0 / total
        if products:
            _fill(workspace.leaf_counts[0], 0.0)
            _fill(workspace.leaf_counts[1], 0.0)
        for entry in range(first[tree], stop[tree]):
            u = leaves.vector_of[leaves.row[entry]]
            if workspace.leaf_weight[u] == 0.0:
                workspace.touched[n_touched] = u
                n_touched += 1
            workspace.leaf_weight[u] += leaves.times[entry] * weight
            if products:
                for value in range(2):
                    for j in range(known.shape[0]):
                        workspace.leaf_counts[value, j] += (
                            leaves.times[entry] * leaves.label_mass[value, u, j]
                        )
        if products:  # counts are integers until here, so that certainty is exactly 1
            for value in range(2):
                for j in range(known.shape[0]):
                    count = workspace.leaf_counts[value, j]
                    workspace.tree_lower[value, j, tree] = (
                        1.0 if count == total else count * inverse
                    )
        rest += s * weight
    # members give sparse rows of weights on the same vectors
    for entry in range(member_weights.indptr[i], member_weights.indptr[i + 1]):
        u = member_weights.indices[entry]
        if workspace.leaf_weight[u] == 0.0 and workspace.member_weight[u] == 0.0:
            workspace.touched[n_touched] = u
            n_touched += 1
        certain = 1.0 if leaves.precise_members else 1.0 - rest
        workspace.member_weight[u] += member_weights.data[entry] * certain
    rest *= leaves.joint if leaves.precise_members else 1.0 - leaves.product
    possible = rest > 0.0
    any_known = _has_known(known)
    if any_known:
        for k in range(n_touched):
            u = workspace.touched[k]
            workspace.low_known[k], workspace.high_known[k] = _bounds_in_vector(known, u, leaves)
            possible |= (
                leaves.joint * workspace.leaf_weight[u] + workspace.member_weight[u]
            ) * workspace.high_known[k] > 0.0
    gathered = GatheredRow(n_touched, n_asked if products else 0, rest, any_known, possible)
    if any_known:
        _bounds_in_trees(
            known, gathered, workspace, workspace.tree_low_known, workspace.tree_high_known
        )
    return gathered


@kernel_helper
def _bounds_in_vector(event: NDArray[np.int8], u: int, leaves: Leaves) -> tuple[float, float]:
    """Return the lower and upper probability that labels have these values, -1 for any."""
    low, high = 1.0, 1.0
    for j in range(event.shape[0]):
        if event[j] >= 0:
            low *= leaves.label_mass[event[j], u, j]
            high *= 1.0 - leaves.label_mass[1 - event[j], u, j]
    return low, high


@kernel_helper
def _bounds_in_trees(
    event: NDArray[np.int8],
    gathered: GatheredRow,
    workspace: Workspace,
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> None:
    """Fill the lower and upper probability for each tree, labels independent."""
    _fill(low, 1.0)
    _fill(high, 1.0)
    for j in range(event.shape[0]):
        if event[j] >= 0:
            for t in range(gathered.n_trees):
                low[t] *= workspace.tree_lower[event[j], j, t]
                high[t] *= 1.0 - workspace.tree_lower[1 - event[j], j, t]


@kernel_helper
def _clear(gathered: GatheredRow, workspace: Workspace) -> None:
    # only what the row touched: there may be many more vectors
    for k in range(gathered.n_touched):
        workspace.leaf_weight[workspace.touched[k]] = 0.0
        workspace.member_weight[workspace.touched[k]] = 0.0


@kernel_helper
def _least_ratio(
    both: float, only_known: float, share: float, gathered: GatheredRow, workspace: Workspace
) -> float:
    """Return the least P(A | known) that is possible.

    ``both`` is the lower probability, in the vectors, of A and the known labels, ``only_known`` the
    upper one of the known labels without A: one distribution attains both. In a tree P(A), which
    is ``tree_product``, and P(known) vary independently: P(known) is as large as possible where
    P(A) is below the ratio, elsewhere as small (Dinkelbach's method). Where that makes P(known)
    zero, the ratio before is the least. Where P(known) is zero from the start and yet possible, it
    is possible only together with A.
    """
    least = np.inf
    while True:
        top, bottom = both, both + only_known
        for t in range(gathered.n_trees):
            is_below = workspace.tree_product[t] < least
            p_known = workspace.tree_high_known[t] if is_below else workspace.tree_low_known[t]
            top += share * workspace.tree_product[t] * p_known
            bottom += share * p_known
        if bottom <= 0.0:
            return min(least, 1.0) if gathered.possible or least < np.inf else 0.0
        if top / bottom >= least:
            return least
        least = top / bottom


# -- bounds of single labels and events ---------------------------------------------------------


@kernel_helper
def _bound_labels(
    known: NDArray[np.int8],
    gathered: GatheredRow,
    leaves: Leaves,
    workspace: Workspace,
    lower: NDArray[np.float64],
) -> None:
    """Fill ``lower`` (m, 2): the lower probability of each label being 0, and of its being 1."""
    n_labels = known.shape[0]
    for j in range(n_labels):
        lower[j, 0] = lower[j, 1] = 0.0
    if not gathered.any_known:  # products have the same single labels as the vectors
        forest_share = leaves.joint + leaves.product
        for k in range(gathered.n_touched):
            u = workspace.touched[k]
            weight = forest_share * workspace.leaf_weight[u] + workspace.member_weight[u]
            for j in range(n_labels):
                lower[j, 0] += weight * leaves.label_mass[0, u, j]
                lower[j, 1] += weight * leaves.label_mass[1, u, j]
        return
    share = leaves.product / max(gathered.n_trees, 1)
    for j in range(n_labels):
        if known[j] >= 0:
            lower[j, known[j]] = 1.0
            continue
        for value in range(2):
            both, only_known = 0.0, gathered.rest
            for k in range(gathered.n_touched):
                u = workspace.touched[k]
                weight = leaves.joint * workspace.leaf_weight[u] + workspace.member_weight[u]
                p = leaves.label_mass[value, u, j]
                both += weight * workspace.low_known[k] * p
                only_known += weight * workspace.high_known[k] * (1.0 - p)
            for t in range(gathered.n_trees):
                workspace.tree_product[t] = workspace.tree_lower[value, j, t]
            lower[j, value] = _least_ratio(both, only_known, share, gathered, workspace)


@kernel
def bound_labels(
    nodes: NDArray[np.int32],
    known: NDArray[np.int8],
    member_weights: MemberWeights,
    leaves: Leaves,
    s: float,
    workspace: Workspace,
    lower: NDArray[np.float64],
) -> None:
    """Fill ``lower`` (n, m, 2) of rows with leaves ``nodes`` (n, trees) and ``known`` (n, m)."""
    for i in range(nodes.shape[0]):
        products = leaves.product > 0.0 and _has_known(known[i])
        gathered = _gather(i, nodes[i], known[i], member_weights, leaves, s, products, workspace)
        _bound_labels(known[i], gathered, leaves, workspace, lower[i])
        _clear(gathered, workspace)


@kernel
def bound_events(
    nodes: NDArray[np.int32],
    known: NDArray[np.int8],
    events: NDArray[np.int8],
    member_weights: MemberWeights,
    leaves: Leaves,
    s: float,
    workspace: Workspace,
    bounds: NDArray[np.float64],
) -> None:
    """Fill ``bounds`` (n, 2): lower probability of each row's event, and of its contrary.

    An event (m,) has -1 for labels that may be anything, known labels among them.
    """
    for i in range(nodes.shape[0]):
        gathered = _gather(
            i, nodes[i], known[i], member_weights, leaves, s, leaves.product > 0.0, workspace
        )
        share = leaves.product / max(gathered.n_trees, 1)
        for contrary in range(2):
            both, only_known = 0.0, gathered.rest
            for k in range(gathered.n_touched):
                u = workspace.touched[k]
                low, high = _bounds_in_vector(events[i], u, leaves)
                p = 1.0 - high if contrary else low
                weight = leaves.joint * workspace.leaf_weight[u] + workspace.member_weight[u]
                low_known = workspace.low_known[k] if gathered.any_known else 1.0
                high_known = workspace.high_known[k] if gathered.any_known else 1.0
                both += weight * low_known * p
                only_known += weight * high_known * (1.0 - p)
            _bounds_in_trees(
                events[i], gathered, workspace, workspace.tree_product, workspace.tree_high
            )
            if contrary:
                for t in range(gathered.n_trees):
                    workspace.tree_product[t] = 1.0 - workspace.tree_high[t]
            if gathered.any_known:
                bounds[i, contrary] = _least_ratio(both, only_known, share, gathered, workspace)
            else:
                bounds[i, contrary] = both + share * _sum(workspace.tree_product, gathered.n_trees)
        _clear(gathered, workspace)


@kernel
def score_vectors(
    nodes: NDArray[np.int32],
    truth: NDArray[np.int8],
    member_weights: MemberWeights,
    leaves: Leaves,
    workspace: Workspace,
    scores: NDArray[np.float64],
) -> None:
    """Fill ``scores`` (n, 2): probability of the true labels by the vectors, by their products.

    At s = 0; labels that are missing (-1) in ``truth`` do not count.
    """
    nothing = np.full(truth.shape[1], -1, np.int8)
    products: Any = np.bool_(True)  # a bare True would compile _gather twice
    for i in range(nodes.shape[0]):
        gathered = _gather(i, nodes[i], nothing, member_weights, leaves, 0.0, products, workspace)
        scores[i, 0] = scores[i, 1] = 0.0
        for k in range(gathered.n_touched):
            u = workspace.touched[k]
            scores[i, 0] += workspace.leaf_weight[u] * _bounds_in_vector(truth[i], u, leaves)[0]
        _bounds_in_trees(truth[i], gathered, workspace, workspace.tree_product, workspace.tree_high)
        for t in range(gathered.n_trees):
            scores[i, 1] += workspace.tree_product[t] / gathered.n_trees
        _clear(gathered, workspace)


# -- the decision: the likeliest vector, then labels withdrawn one by one ------------------------


@kernel_helper
def _bound_prefixes(
    answers: NDArray[np.int8],
    order: NDArray[np.int64],
    first: int,
    stop: int,
    gathered: GatheredRow,
    leaves: Leaves,
    workspace: Workspace,
    right: NDArray[np.float64],
) -> None:
    """Fill ``right[k]``: lower probability that the answers to the first k labels are all right.

    Labels are in ``order``: up to ``first`` they are known, from ``stop`` on not answerable.
    """
    share = leaves.product / max(gathered.n_trees, 1)
    for k in range(first + 1):
        right[k] = 1.0
    _fill(workspace.both, 0.0)
    _fill(workspace.only_known, gathered.rest)
    # vectors outside, labels inside: one product serves all prefixes, and stops where it is 0
    for k in range(gathered.n_touched):
        u, product = workspace.touched[k], 1.0
        weight = leaves.joint * workspace.leaf_weight[u] + workspace.member_weight[u]
        for position in range(first, stop):
            product *= leaves.label_mass[answers[order[position]], u, order[position]]
            if gathered.any_known:
                workspace.both[position + 1] += weight * workspace.low_known[k] * product
                workspace.only_known[position + 1] += (
                    weight * workspace.high_known[k] * (1.0 - product)
                )
            elif product == 0.0:
                break
            else:
                workspace.both[position + 1] += weight * product
    # trees the other way round: a product for each, longer by one label at a time
    _fill(workspace.tree_product, 1.0)
    for position in range(first, stop):
        j, y = order[position], answers[order[position]]
        for t in range(gathered.n_trees):
            workspace.tree_product[t] *= workspace.tree_lower[y, j, t]
        both, only_known = workspace.both[position + 1], workspace.only_known[position + 1]
        if gathered.any_known:
            right[position + 1] = _least_ratio(both, only_known, share, gathered, workspace)
        else:
            right[position + 1] = both + share * _sum(workspace.tree_product, gathered.n_trees)


@kernel_helper
def _bound_answers(
    answers: NDArray[np.int8],
    order: NDArray[np.int64],
    first: int,
    stop: int,
    gathered: GatheredRow,
    leaves: Leaves,
    workspace: Workspace,
) -> float:
    """Return the lower probability of all answers and the known labels, the least certain first."""
    total = 0.0
    for k in range(gathered.n_touched):
        u = workspace.touched[k]
        product = workspace.vector_weight[k]
        # from the least certain label, where a product is the likeliest to become 0
        for position in range(stop - 1, first - 1, -1):
            if product == 0.0:
                break
            product *= leaves.label_mass[answers[order[position]], u, order[position]]
        total += product
    if gathered.n_trees == 0:
        return total
    _fill(workspace.tree_product, leaves.product / gathered.n_trees)
    if gathered.any_known:
        for t in range(gathered.n_trees):
            workspace.tree_product[t] *= workspace.tree_low_known[t]
    for position in range(first, stop):
        j, y = order[position], answers[order[position]]
        for t in range(gathered.n_trees):
            workspace.tree_product[t] *= workspace.tree_lower[y, j, t]
    return total + _sum(workspace.tree_product, gathered.n_trees)


@kernel_helper
def _sort_by(
    values: NDArray[np.float64], order: NDArray[np.int64], merged: NDArray[np.int64]
) -> None:
    """Fill ``order``: indices of the values, the largest first, equal ones as they were.

    A merge sort; ``np.argsort`` takes seconds to compile. ``merged`` is memory for it.
    """
    n = values.shape[0]
    for k in range(n):
        order[k] = k
    width = 1
    while width < n:
        for first in range(0, n, 2 * width):
            middle, stop = min(first + width, n), min(first + 2 * width, n)
            a, b = first, middle
            for k in range(first, stop):
                if a < middle and (b >= stop or values[order[a]] >= values[order[b]]):
                    merged[k] = order[a]
                    a += 1
                else:
                    merged[k] = order[b]
                    b += 1
        for k in range(n):
            order[k] = merged[k]
        width *= 2


@kernel_helper
def _ratio(lower: float, contrary: float) -> float:
    """Return what an answer leaves of a product that has the likelier one."""
    return lower / contrary if lower < contrary else 1.0


@kernel_helper
def _bound_vectors(
    order: NDArray[np.int64],
    first: int,
    stop: int,
    gathered: GatheredRow,
    leaves: Leaves,
    workspace: Workspace,
) -> tuple[int, float]:
    """Bound what trees, and vectors that are not distinct, add to the probability of any vector.

    Each adds at most the product of the likelier of both answers. Return how many such vectors
    there are, and the sum of all bounds.
    """
    n_spread, total = 0, 0.0
    for k in range(gathered.n_touched):
        u = workspace.touched[k]
        if workspace.is_distinct[u]:
            continue
        product = workspace.vector_weight[k]
        for position in range(first, stop):
            if product == 0.0:
                break
            j = order[position]
            product *= max(leaves.label_mass[0, u, j], leaves.label_mass[1, u, j])
        if product > 0.0:
            workspace.spread[n_spread], workspace.spread_bound[n_spread] = u, product
            n_spread += 1
            total += product
    bound = workspace.tree_bound[0]
    for t in range(gathered.n_trees):
        bound[t] = leaves.product / gathered.n_trees
        if gathered.any_known:
            bound[t] *= workspace.tree_low_known[t]
    for position in range(first, stop):
        j = order[position]
        for t in range(gathered.n_trees):
            bound[t] *= max(workspace.tree_lower[0, j, t], workspace.tree_lower[1, j, t])
    return n_spread, total + _sum(bound, gathered.n_trees)


@kernel_helper
def _bound_children(
    depth: int,
    j: int,
    n_spread: int,
    gathered: GatheredRow,
    leaves: Leaves,
    workspace: Workspace,
    row: int,
    bounds: NDArray[np.float64],
) -> None:
    """Fill a ``row`` of ``bounds``: as above, for the first answers proposed and j as 0 or 1."""
    zero, one = 0.0, 0.0
    for k in range(n_spread):
        u, product = workspace.spread[k], workspace.spread_bound[k]
        for d in range(depth):
            if product == 0.0:
                break
            i = workspace.branches[d]
            y = workspace.proposed[i]
            product *= _ratio(leaves.label_mass[y, u, i], leaves.label_mass[1 - y, u, i])
        zero += product * _ratio(leaves.label_mass[0, u, j], leaves.label_mass[1, u, j])
        one += product * _ratio(leaves.label_mass[1, u, j], leaves.label_mass[0, u, j])
    tree_bound, tree_ratio = workspace.tree_bound[depth], workspace.tree_ratio
    bounds[row, 0] = zero + _dot(tree_bound, tree_ratio[0, j], gathered.n_trees)
    bounds[row, 1] = one + _dot(tree_bound, tree_ratio[1, j], gathered.n_trees)


@kernel_helper
def _keep_compatible(j: int, y: int, n: int, leaves: Leaves, workspace: Workspace) -> int:
    """Put the first n candidates whose label j is y before the others; return how many."""
    candidates, n_kept = workspace.candidates, 0
    for position in range(n):
        k = candidates[position]
        if leaves.label_mass[y, workspace.touched[k], j] == 1.0:
            candidates[position], candidates[n_kept] = candidates[n_kept], k
            n_kept += 1
    return n_kept


@kernel_helper
def _search(
    best: float,
    n_open: int,
    n_spread: int,
    gathered: GatheredRow,
    leaves: Leaves,
    workspace: Workspace,
    answers: NDArray[np.int8],
) -> bool:
    """Search for a vector likelier than ``best`` (branch and bound); return whether it completed.

    A vector is at most as likely as what trees and vectors that are not distinct add, and the
    heaviest distinct vector with the same first answers. Labels on which the former disagree most
    come first.
    """
    branches, child_bound, n_tried = workspace.branches, workspace.child_bound, workspace.n_tried
    proposed, tree_bound = workspace.proposed, workspace.tree_bound
    n_compatible = workspace.n_compatible
    depth: Any = np.int64(0)
    n_nodes = 0
    n_tried[0] = -1
    # depth first, without recursion: branches[depth] is the label that is decided at this depth,
    # n_tried[depth] is -1 for a new node, then how many of its two values were tried
    while depth >= 0:
        j = branches[depth]
        if n_tried[depth] < 0:
            n_nodes += 1
            if n_nodes > _MAX_NODES:
                return False
            _bound_children(depth, j, n_spread, gathered, leaves, workspace, depth, child_bound)
            heaviest_zero, heaviest_one = 0.0, 0.0
            for position in range(n_compatible[depth]):
                k = workspace.candidates[position]
                weight = workspace.vector_weight[k]
                if leaves.label_mass[1, workspace.touched[k], j] == 1.0:
                    heaviest_one = max(heaviest_one, weight)
                else:
                    heaviest_zero = max(heaviest_zero, weight)
            child_bound[depth, 0] += heaviest_zero
            child_bound[depth, 1] += heaviest_one
            n_tried[depth] = 0
        if n_tried[depth] == 2:
            depth -= 1
            continue
        # the value with the greater bound first: what it finds cuts off more of the other
        y = int((child_bound[depth, 1] >= child_bound[depth, 0]) == (n_tried[depth] == 0))
        n_tried[depth] += 1
        if child_bound[depth, y] <= best * (1.0 + _ROUNDING):
            continue
        proposed[j] = y
        if depth + 1 == n_open:  # all labels are decided, so the bound is the probability
            best = child_bound[depth, y]
            for i in range(answers.shape[0]):
                answers[i] = proposed[i]
            continue
        for t in range(gathered.n_trees):
            tree_bound[depth + 1, t] = tree_bound[depth, t] * workspace.tree_ratio[y, j, t]
        n_compatible[depth + 1] = _keep_compatible(j, y, n_compatible[depth], leaves, workspace)
        depth += 1
        n_tried[depth] = -1
    return True


@kernel_helper
def _compare(
    n: int,
    best: float,
    order: NDArray[np.int64],
    first: int,
    stop: int,
    gathered: GatheredRow,
    leaves: Leaves,
    workspace: Workspace,
    answers: NDArray[np.int8],
) -> float:
    """Put the likeliest of the first n candidates into ``answers``, if likelier than ``best``."""
    proposed = workspace.proposed
    for position in range(n):
        u = workspace.touched[workspace.candidates[position]]
        for k in range(first, stop):
            proposed[order[k]] = leaves.label_mass[1, u, order[k]] == 1.0
        p = _bound_answers(proposed, order, first, stop, gathered, leaves, workspace)
        if p > best * (1.0 + _ROUNDING):
            best = p
            for k in range(first, stop):
                answers[order[k]] = proposed[order[k]]
    return best


@kernel_helper
def _choose_answers(
    known: NDArray[np.int8],
    lower: NDArray[np.float64],
    order: NDArray[np.int64],
    first: int,
    stop: int,
    gathered: GatheredRow,
    leaves: Leaves,
    workspace: Workspace,
    answers: NDArray[np.int8],
) -> bool:
    """Fill ``answers`` (m,) with the likeliest vector; return whether that is certain.

    The probability of a vector is the weight of the distinct vector that it is, if any, and what
    trees and other vectors add, which is bounded. Of equally likely ones (up to rounding) the first
    is taken: the likelier single answers, then the heaviest distinct vector, then the others.
    """
    proposed, label_bound = workspace.proposed, workspace.label_bound
    for j in range(known.shape[0]):
        answers[j] = known[j] if known[j] >= 0 else lower[j, 1] >= lower[j, 0]
        proposed[j] = answers[j]
        workspace.certainty[j] = -np.inf
    n_candidates, most = 0, 0.0  # the heaviest candidate comes first
    for k in range(gathered.n_touched):
        u = workspace.touched[k]
        weight = leaves.joint * workspace.leaf_weight[u] + workspace.member_weight[u]
        if gathered.any_known:
            weight *= workspace.low_known[k]
        workspace.vector_weight[k] = weight
        if workspace.is_distinct[u] and weight > 0.0:
            workspace.candidates[n_candidates] = k
            n_candidates += 1
            if weight > most:
                most = weight
                workspace.candidates[n_candidates - 1] = workspace.candidates[0]
                workspace.candidates[0] = k
    best = _bound_answers(answers, order, first, stop, gathered, leaves, workspace)
    n_spread, bound = _bound_vectors(order, first, stop, gathered, leaves, workspace)
    if most + bound <= best * (1.0 + _ROUNDING):
        return True
    best = _compare(
        min(n_candidates, 1), best, order, first, stop, gathered, leaves, workspace, answers
    )
    if most + bound <= best * (1.0 + _ROUNDING):
        return True
    for position in range(first, stop):
        j = order[position]
        for t in range(gathered.n_trees):
            zero, one = workspace.tree_lower[0, j, t], workspace.tree_lower[1, j, t]
            workspace.tree_ratio[0, j, t] = _ratio(zero, one)
            workspace.tree_ratio[1, j, t] = _ratio(one, zero)
    root: Any = np.int64(0)  # a bare 0 would compile _bound_children twice
    for position in range(first, stop):
        j = order[position]
        _bound_children(root, j, n_spread, gathered, leaves, workspace, j, label_bound)
        workspace.certainty[j] = -max(label_bound[j, 0], label_bound[j, 1])
    _sort_by(workspace.certainty, workspace.branches, workspace.merged)
    workspace.n_compatible[0] = n_candidates
    if _search(best, stop - first, n_spread, gathered, leaves, workspace, answers):
        return True
    best = _bound_answers(answers, order, first, stop, gathered, leaves, workspace)
    _compare(n_candidates, best, order, first, stop, gathered, leaves, workspace, answers)
    return False


@kernel_helper
def _round_certain(right: NDArray[np.float64], stop: int) -> None:
    """Make probabilities of longer and longer prefixes fall, and 1 where rounding hides it."""
    for k in range(1, stop + 1):
        is_certain = right[k] > right[0] * (1.0 - _ROUNDING)
        right[k] = right[0] if is_certain else min(right[k], right[k - 1])


@kernel_helper
def _hull_corners(worth: NDArray[np.float64], stop: int, corners: NDArray[np.int64]) -> int:
    """Find corners of the least concave function above worth[k], k = 0..stop; return how many."""
    n = 1
    corners[0] = 0
    for k in range(1, stop + 1):
        while n > 1:  # drop corner b if it is not above the line from a to k
            a, b = corners[n - 2], corners[n - 1]
            if (worth[b] - worth[k]) * (b - a) > (worth[a] - worth[b]) * (k - b):
                break
            n -= 1
        corners[n] = k
        n += 1
    return n


@kernel_helper
def _put_prices(
    worth: NDArray[np.float64],
    order: NDArray[np.int64],
    stop: int,
    corners: NDArray[np.int64],
    prices: NDArray[np.float64],
) -> None:
    """Fill ``prices`` (m,): the least reward for which each label is answered.

    Answering k labels is worth worth[k] / worth[0] + reward * k / m. As the reward grows, the best
    k goes from corner to corner.
    """
    n_labels = prices.shape[0]
    _fill(prices, np.inf)
    least = 0.0
    # from corner a to b, the slope of the hull is what the reward must make up for
    for corner in range(1, _hull_corners(worth, stop, corners)):
        a, b = corners[corner - 1], corners[corner]
        least = max(least, n_labels * (worth[a] - worth[b]) / ((b - a) * worth[0]))
        for position in range(a, b):
            prices[order[position]] = least


@kernel
def price_prefixes(
    worth: NDArray[np.float64],
    order: NDArray[np.int64],
    stop: NDArray[np.int64],
    are_probabilities: bool,
    prices: NDArray[np.float64],
) -> None:
    """Fill ``prices`` (n, m) from what the first k answers are ``worth`` (n, m + 1).

    Labels are in ``order`` (n, m); only the first ``stop`` can be answered. Probabilities that all
    of the first k are right fall with k.
    """
    corners = np.empty(order.shape[1] + 1, np.int64)
    for i in range(order.shape[0]):
        if are_probabilities:
            _round_certain(worth[i], stop[i])
        _put_prices(worth[i], order[i], stop[i], corners, prices[i])


@kernel
def weigh_vectors(
    nodes: NDArray[np.int32],
    member_weights: MemberWeights,
    leaves: Leaves,
    s: float,
    workspace: Workspace,
    weights: NDArray[np.float64],
    tree_lower: NDArray[np.float64],
    rest: NDArray[np.float64],
) -> None:
    """Fill ``weights`` (n, K) of the label vectors, and the ``rest`` (n,) that none of them has.

    ``tree_lower`` (n, 2, m, trees): lower P(0) and P(1) of each label in each tree, whose products
    have the weight ``leaves.product``; without such a weight it has no trees.
    """
    nothing = np.full(leaves.label_mass.shape[2], -1, np.int8)
    for i in range(nodes.shape[0]):
        gathered = _gather(
            i, nodes[i], nothing, member_weights, leaves, s, leaves.product > 0.0, workspace
        )
        for k in range(gathered.n_touched):
            u = workspace.touched[k]
            weights[i, u] = leaves.joint * workspace.leaf_weight[u] + workspace.member_weight[u]
        for t in range(gathered.n_trees):
            tree_lower[i, :, :, t] = workspace.tree_lower[:, :, t]
        rest[i] = gathered.rest
        _clear(gathered, workspace)


@kernel
def decide_rows(
    nodes: NDArray[np.int32],
    known: NDArray[np.int8],
    member_weights: MemberWeights,
    leaves: Leaves,
    s: float,
    workspace: Workspace,
    lower: NDArray[np.float64],
    answers: NDArray[np.int8],
    prices: NDArray[np.float64],
    certain: NDArray[np.bool_],
) -> None:
    """Compute bounds, the answer to each label (n, m), and the least reward for giving it (n, m).

    The answers are those of the likeliest vector, if that is ``certain`` (n,); labels are withdrawn
    by the (lower) probability of their answer, the least first.
    """
    n_labels, certainty, order = known.shape[1], workspace.certainty, workspace.order
    for i in range(nodes.shape[0]):
        gathered = _gather(
            i, nodes[i], known[i], member_weights, leaves, s, leaves.product > 0.0, workspace
        )
        _bound_labels(known[i], gathered, leaves, workspace, lower[i])
        first: Any = np.int64(0)  # a bare 0 would compile all that follows twice
        stop: Any = np.int64(0)
        for j in range(n_labels):
            is_known, answerable = known[i, j] >= 0, max(lower[i, j, 0], lower[i, j, 1]) > 0.0
            first += is_known
            stop += answerable
            certainty[j] = 2.0 if is_known else max(lower[i, j, 0], lower[i, j, 1])
        _sort_by(certainty, order, workspace.merged)
        certain[i] = _choose_answers(
            known[i], lower[i], order, first, stop, gathered, leaves, workspace, answers[i]
        )
        for j in range(n_labels):
            certainty[j] = 2.0 if known[i, j] >= 0 else lower[i, j, answers[i, j]]
            if max(lower[i, j, 0], lower[i, j, 1]) == 0.0:
                certainty[j] = -1.0  # labels that cannot be answered stay last
        _sort_by(certainty, order, workspace.merged)
        _bound_prefixes(
            answers[i], order, first, stop, gathered, leaves, workspace, workspace.right
        )
        _round_certain(workspace.right, stop)
        _put_prices(workspace.right, order, stop, workspace.corners, prices[i])
        _clear(gathered, workspace)


# -- measures of a row, over listed label vectors --------------------------------------------------


class MeasureArrays(NamedTuple):
    """Arrays for intermediate results about S listed label vectors of k labels.

    ``true_yes``, ``positives`` (S,): of each vector, how many answers yes are right, and how many
    labels are, or may be, 1. ``first`` (S + 1,), ``label``, ``is_one``: these labels one by one.
    ``gain`` (k,): what it is worth to change the answer to a label. ``mass`` (k + 1, k): the weight
    of vectors with so many positives in which a label is 1. ``order``, ``merged`` (k,): to sort.
    ``some`` (S,): vectors that have changed.
    """

    true_yes: NDArray[np.float64]
    positives: NDArray[np.float64]
    first: NDArray[np.int64]
    label: NDArray[np.int64]
    is_one: NDArray[np.bool_]
    gain: NDArray[np.float64]
    mass: NDArray[np.float64]
    order: NDArray[np.int64]
    merged: NDArray[np.int64]
    some: NDArray[np.int64]

    @classmethod
    def of_vectors(cls, vectors: NDArray[np.int8]) -> "MeasureArrays":
        """Allocate them, and list what is not 0."""
        n, k = vectors.shape
        row, label = np.divmod(np.flatnonzero(vectors != 0), k)  # np.nonzero is slower
        positives = np.bincount(row, minlength=n)
        first = np.append(0, positives.cumsum())
        is_one = vectors[row, label] == 1
        floats = np.zeros(n), positives.astype(np.float64)
        integers = np.empty(k, np.int64), np.empty(k, np.int64), np.empty(n, np.int64)
        return cls(*floats, first, label, is_one, np.zeros(k), np.zeros((k + 1, k)), *integers)


@kernel_helper
def _measure(true_yes: float, n_yes: float, positives: float, shape: tuple[float, float]) -> float:
    """Return what answers are worth, see :class:`Rule`."""
    divisor = n_yes + positives - shape[1] * true_yes
    return shape[0] * true_yes / divisor if divisor > 0.0 else 1.0


@kernel_helper
def _count_true_yes(answers: NDArray[np.int8], arrays: MeasureArrays) -> float:
    """Fill ``true_yes``; return how many answers are yes."""
    for i in range(arrays.true_yes.shape[0]):
        arrays.true_yes[i] = 0.0
        for entry in range(arrays.first[i], arrays.first[i + 1]):
            arrays.true_yes[i] += arrays.is_one[entry] and answers[arrays.label[entry]] == 1
    n_yes = 0.0
    for j in range(answers.shape[0]):
        n_yes += answers[j] == 1
    return n_yes


@kernel_helper
def _try_all(
    p: NDArray[np.float64],
    shape: tuple[float, float],
    arrays: MeasureArrays,
    proposed: NDArray[np.int8],
    answers: NDArray[np.int8],
) -> None:
    """Fill ``answers`` with the best of all, of equal ones that with the first labels no."""
    k, best = answers.shape[0], -1.0
    for number in range(2**k):
        for j in range(k):
            proposed[j] = (number >> (k - 1 - j)) & 1
        n_yes, value = _count_true_yes(proposed, arrays), 0.0
        for i in range(p.shape[0]):
            value += p[i] * _measure(arrays.true_yes[i], n_yes, arrays.positives[i], shape)
        if value > best * (1.0 + _ROUNDING):
            best = value
            for j in range(k):
                answers[j] = proposed[j]


@kernel_helper
def _choose_by_f1(p: NDArray[np.float64], arrays: MeasureArrays, answers: NDArray[np.int8]) -> None:
    """Fill ``answers`` with those of the greatest expected F1.

    It is a sum over the labels answered yes, given how many they are.
    """
    n_most: Any = 0
    k, best = answers.shape[0], 0.0
    gain, mass = arrays.gain, arrays.mass
    for i in range(p.shape[0]):
        positives = int(arrays.positives[i])
        n_most = max(n_most, positives)
        if positives == 0:
            best += p[i]
        for entry in range(arrays.first[i], arrays.first[i + 1]):
            if arrays.is_one[entry]:
                mass[positives, arrays.label[entry]] += p[i]
    for n_yes in range(1, k + 1):
        _fill(gain, 0.0)
        for positives in range(1, n_most + 1):
            worth = 2.0 / (n_yes + positives)
            for j in range(k):
                gain[j] += worth * mass[positives, j]
        _sort_by(gain, arrays.order, arrays.merged)
        value = 0.0
        for position in range(n_yes):
            value += gain[arrays.order[position]]
        if value > best * (1.0 + _ROUNDING):
            best = value
            for position in range(k):
                answers[arrays.order[position]] = position < n_yes
        if 2.0 * n_most / (n_yes + 1.0 + n_most) < best or gain[arrays.order[n_yes - 1]] == 0.0:
            break  # more answers yes are worth less


@kernel_helper
def _choose_by_probability(
    p: NDArray[np.float64],
    shape: tuple[float, float],
    arrays: MeasureArrays,
    answers: NDArray[np.int8],
) -> None:
    """Fill ``answers`` (k,), all 0: the likeliest labels are yes, as many as are best."""
    gain, order = arrays.gain, arrays.order
    _fill(gain, 0.0)
    for i in range(p.shape[0]):
        for entry in range(arrays.first[i], arrays.first[i + 1]):
            gain[arrays.label[entry]] += p[i] * arrays.is_one[entry]
    _sort_by(gain, order, arrays.merged)
    for position in range(order.shape[0]):
        arrays.merged[order[position]] = position
    best, n_best, n_most = 0.0, 0, 0.0
    for i in range(p.shape[0]):
        best += p[i] * (arrays.positives[i] == 0.0)
        n_most = max(n_most, arrays.positives[i])
    for n_yes in range(1, order.shape[0] + 1):
        if n_most / n_yes < best:
            break
        value = 0.0
        for i in range(p.shape[0]):
            true_yes = 0.0
            for entry in range(arrays.first[i], arrays.first[i + 1]):
                is_yes = arrays.merged[arrays.label[entry]] < n_yes
                true_yes += arrays.is_one[entry] and is_yes
            value += p[i] * _measure(true_yes, n_yes, arrays.positives[i], shape)
        if value > best * (1.0 + _ROUNDING):
            best, n_best = value, n_yes
    for position in range(n_best):
        answers[order[position]] = 1


@kernel_helper
def _change_answers(
    p: NDArray[np.float64],
    shape: tuple[float, float],
    arrays: MeasureArrays,
    answers: NDArray[np.int8],
) -> float:
    """Change one of the ``answers`` at a time, for as long as the expected measure grows.

    Return the expected measure.
    """
    n_yes, gain, true_yes = _count_true_yes(answers, arrays), arrays.gain, arrays.true_yes
    while True:
        now, more, fewer = 0.0, 0.0, 0.0
        _fill(gain, 0.0)
        for i in range(p.shape[0]):
            positives = arrays.positives[i]
            now += p[i] * _measure(true_yes[i], n_yes, positives, shape)
            with_wrong = p[i] * _measure(true_yes[i], n_yes + 1.0, positives, shape)
            without_wrong = p[i] * _measure(true_yes[i], n_yes - 1.0, positives, shape)
            with_right = p[i] * _measure(true_yes[i] + 1.0, n_yes + 1.0, positives, shape)
            without_right = p[i] * _measure(true_yes[i] - 1.0, n_yes - 1.0, positives, shape)
            more += with_wrong
            fewer += without_wrong
            for entry in range(arrays.first[i], arrays.first[i + 1]):
                if arrays.is_one[entry]:
                    is_yes = answers[arrays.label[entry]] == 1
                    change = without_right - without_wrong if is_yes else with_right - with_wrong
                    gain[arrays.label[entry]] += change
        best, chosen = now, -1
        for j in range(answers.shape[0]):
            value = gain[j] + (fewer if answers[j] == 1 else more)
            if value > best * (1.0 + _ROUNDING):
                best, chosen = value, j
        if chosen < 0:
            return now
        answers[chosen] = 1 - answers[chosen]
        n_yes = _count_true_yes(answers, arrays)


@kernel
def choose_by_measure(
    p: NDArray[np.float64],
    shape: tuple[float, float],
    enumerates: bool,
    arrays: MeasureArrays,
    proposed: NDArray[np.int8],
    answers: NDArray[np.int8],
) -> None:
    """Fill ``answers`` (k,), all 0, with those whose expected measure is greatest.

    For other measures than F1, unless all are tried, the best for F1 and the likeliest labels are
    changed one at a time, which is nearly as good. ``proposed`` (k,) are all 0, too.
    """
    if shape[1] == 0.0:
        _choose_by_f1(p, arrays, answers)
    elif enumerates:
        _try_all(p, shape, arrays, proposed, answers)
    else:
        _choose_by_f1(p, arrays, answers)
        _choose_by_probability(p, shape, arrays, proposed)
        value = _change_answers(p, shape, arrays, answers)
        if _change_answers(p, shape, arrays, proposed) > value * (1.0 + _ROUNDING):
            for j in range(answers.shape[0]):
                answers[j] = proposed[j]


@kernel_helper
def _add_gains(
    n: int,
    sign: float,
    n_yes: float,
    p: NDArray[np.float64],
    shape: tuple[float, float],
    answers: NDArray[np.int8],
    arrays: MeasureArrays,
    sums: NDArray[np.float64],
) -> None:
    """Add what the first n vectors of ``some`` say to ``gain`` and ``sums``, or take it away.

    ``sums``: of the measure as it is, and without an answer yes that is wrong. ``gain``: what
    differs from them without the answer to a label.
    """
    gain = arrays.gain
    for position in range(n):
        i = arrays.some[position]
        weight, true_yes, positives = sign * p[i], arrays.true_yes[i], arrays.positives[i]
        now = weight * _measure(true_yes, n_yes, positives, shape)
        without_wrong = weight * _measure(true_yes, n_yes - 1.0, positives, shape)
        sums[0] += now
        sums[1] += without_wrong
        if arrays.first[i] == arrays.first[i + 1]:
            continue
        no = weight * _measure(true_yes, n_yes, positives - 1.0, shape) - now
        right = weight * _measure(true_yes - 1.0, n_yes - 1.0, positives - 1.0, shape)
        either = weight * _measure(true_yes, n_yes - 1.0, positives - 1.0, shape)
        right, either = right - without_wrong, either - without_wrong
        for entry in range(arrays.first[i], arrays.first[i + 1]):
            j = arrays.label[entry]
            gain[j] += no if answers[j] != 1 else right if arrays.is_one[entry] else either


@kernel
def withdraw_answers(
    vectors: NDArray[np.int8],
    p: NDArray[np.float64],
    shape: tuple[float, float],
    answers: NDArray[np.int8],
    arrays: MeasureArrays,
    left: NDArray[np.bool_],
    sums: NDArray[np.float64],
    order: NDArray[np.int64],
    worth: NDArray[np.float64],
) -> None:
    """Withdraw answers (k,) one by one, each time that without which the measure is greatest.

    Fill ``order`` (k,), the last to be withdrawn first, and the expected measure ``worth`` (k + 1,)
    of the first of them; where nothing is answered it is 1. ``left`` (k,) are all True.
    """
    k, n_vectors = answers.shape[0], vectors.shape[0]
    n_yes, n_changed = _count_true_yes(answers, arrays), n_vectors
    for i in range(n_vectors):
        arrays.some[i] = i
    _fill(sums, 0.0)
    _fill(arrays.gain, 0.0)
    for n_left in range(k, 0, -1):
        _add_gains(n_changed, 1.0, n_yes, p, shape, answers, arrays, sums)
        worth[n_left] = sums[0]
        best, chosen = -1.0, -1
        for j in range(k - 1, -1, -1):  # of equal ones the least certain
            if left[j]:
                value = arrays.gain[j] + (sums[1] if answers[j] == 1 else sums[0])
                if chosen < 0 or value > best + _ROUNDING:
                    best, chosen = value, j
        order[n_left - 1], left[chosen] = chosen, False
        # without a no, only vectors in which the label is not 0 say something else
        was_yes, n_changed = answers[chosen] == 1, 0
        for i in range(n_vectors):
            if was_yes or vectors[i, chosen] != 0:
                arrays.some[n_changed] = i
                n_changed += 1
        if was_yes:
            _fill(sums, 0.0)
            _fill(arrays.gain, 0.0)
        else:
            _add_gains(n_changed, -1.0, n_yes, p, shape, answers, arrays, sums)
        for i in range(n_vectors):
            if vectors[i, chosen] != 0:
                arrays.positives[i] -= 1.0
                if was_yes and vectors[i, chosen] == 1:
                    arrays.true_yes[i] -= 1.0
        n_yes -= 1.0 if was_yes else 0.0
    worth[0] = 1.0
    for n_left in range(1, k + 1):  # what rounding tells apart is equal
        if abs(worth[n_left] - worth[n_left - 1]) <= _ROUNDING:
            worth[n_left] = worth[n_left - 1]
