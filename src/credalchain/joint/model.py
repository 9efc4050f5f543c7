"""The fitted joint model and its predictions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from credalchain._utils.array_types import FloatArray, Labels
from credalchain._utils.parallel import for_each_range
from credalchain._utils.validation import check_array, check_instance, check_int, check_number
from credalchain.chains.forest import LEAF, Trees
from credalchain.chains.protocol import Request, labels_from_signs
from credalchain.joint.arrays import Leaves, MemberWeights
from credalchain.joint.exact import exact_lower
from credalchain.joint.growing import (
    distinct_vectors,
    find_leaves,
    merged_by_vector,
    no_member_weights,
    pack_nodes,
)
from credalchain.joint.members import FittedMember, ScoreProduct, checked_weights
from credalchain.labels import ABSTAIN, MISSING, UNDECIDED
from credalchain.prediction import RANKS, Answer, Exactness, Ranks, log_odds, uniform_exactness
from credalchain.preprocessing import Categories, TableEncoder, check_encoder

_ROWS_AT_ONCE = 2048  # that go through a tree while it is in the cache
_MEMBER_ROWS_AT_ONCE = 256
_ROUNDING = 2.0**-40  # bound on the rounding error of sums of weights


@dataclass(frozen=True)
class PricedAnswers:
    """Answers for all rewards: the answer to each label, and its price.

    An answer is given for every reward of at least its price.

    Attributes
    ----------
    interval : ndarray of shape (n, m, 2)
        Lower and upper P(1).
    lower : ndarray of shape (n, m, 2)
        Lower P(0) and lower P(1).
    answers : ndarray of int8, shape (n, m)
        Those of the likeliest label vector.
    prices : ndarray of shape (n, m)
        The least reward for which each answer is given; infinite if there is no information.
    exactness : ndarray of int8, shape (n, m)
        Positions in ``list(Exactness)``; approximate in rows where the search for the likeliest
        vector was cut short, or label vectors were drawn at random.
    """

    interval: FloatArray
    lower: FloatArray
    answers: Labels
    prices: FloatArray
    exactness: Ranks

    @classmethod
    def of_rows(
        cls,
        lower: FloatArray,
        answers: Labels,
        prices: FloatArray,
        is_exact: NDArray[np.bool_],
        known: Labels | None,
    ) -> Self:
        """Return decided rows, of which some are exact (n,), with known labels put in."""
        _put_known(np.clip(lower, 0.0, 1.0, out=lower), known)
        if known is not None:
            answers[known != MISSING], prices[known != MISSING] = known[known != MISSING], 0.0
        exactness = uniform_exactness(Exactness.EXACT, answers.shape)
        if not is_exact.all():
            exactness = exactness.copy()
            exactness[~is_exact] = RANKS[Exactness.APPROXIMATE]
        return cls(_interval(lower), lower, answers, prices, exactness)

    @property
    def certainty(self) -> FloatArray:
        """The lower probability of each answer, (n, m)."""
        return np.take_along_axis(self.lower, self.answers[..., None], axis=-1)[..., 0]

    def labels(self, rewards: Iterable[float]) -> Labels:
        """Return labels (rewards, n, m), with ABSTAIN where the reward is below the price."""
        thresholds = np.array([check_reward(reward) for reward in rewards])
        is_given = self.prices <= thresholds.reshape(-1, 1, 1)
        return np.where(is_given, self.answers, np.int8(ABSTAIN))


def check_reward(value: Any) -> float:
    """Validate a reward: 0, or a positive and finite number."""
    most = np.finfo(float).max
    return check_number("reward", value, 0, most, "a number, 0 or positive and finite")


class _Prepared(NamedTuple):
    """Leaves, the same with rows of equal labels merged, and the nodes of ``pack_nodes``.

    ``is_distinct`` (K,): which label vectors are complete and like no other.
    """

    leaves: Leaves
    merged: Leaves
    is_distinct: NDArray[np.bool_]
    nodes: NDArray[np.int32]


class JointModel:
    """Trees whose leaves hold training rows, mixed with other models of label vectors.

    ``members`` have ``shares``; those of the forest are in ``leaves``. ``missing_features`` (2, any
    number) are the training rows and columns where features were missing, by row. If only some of
    the training rows are stored, ``row_numbers`` are theirs; the rows of ``leaves`` after them
    stand for all other rows that have the same labels.
    """

    nested = True
    serves_any_order = True
    unexplained_because = "a joint forest is not a sum of what each feature adds"
    rows_at_once = 256
    _never: tuple[Leaves, NDArray[np.bool_]] | None = None  # labels never observed in these leaves

    def __init__(
        self,
        trees: Trees,
        leaves: Leaves,
        encoder: TableEncoder,
        members: Sequence[FittedMember] = (),
        shares: Sequence[float] = (),
        missing_features: NDArray[np.int64] | None = None,
        row_numbers: NDArray[np.int64] | None = None,
        score_product: ScoreProduct | None = None,
    ) -> None:
        self.trees, self.leaves, self.encoder = trees, leaves, encoder
        self._prepared: _Prepared | None = None
        self.missing_features = (
            np.empty((2, 0), dtype=np.int64) if missing_features is None else missing_features
        )
        self.row_numbers = row_numbers
        self.members, self.shares = list(members), [float(share) for share in shares]
        self.score_product = score_product

    def __getstate__(self) -> dict[str, Any]:
        state = {**vars(self), "_prepared": None, "packed": _pack(self.trees, self.leaves)}
        nothing: Any = None
        state["leaves"] = self.leaves._replace(indptr=nothing, row=nothing, times=nothing)
        del state["trees"]
        state.pop("_never", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        packed = state.pop("packed")
        vars(self).update(state)
        check_instance("leaves", self.leaves, Leaves)
        self.trees, arrays = _unpack(packed)
        self.leaves = self.leaves._replace(**arrays)

    def check_state(self, n_features: int) -> None:
        """Validate a stored model for rows with ``n_features`` columns."""
        check_instance("trees", self.trees, Trees)
        check_instance("leaves", self.leaves, Leaves)
        check_encoder(self.encoder, n_features)
        self.trees.check_state(n_features)
        _check_leaves(self.trees, self.leaves)
        n_columns = self.encoder.indicators(np.zeros((1, n_features), np.float32)).shape[1]
        check_instance("members", self.members, list)
        for member in self.members:
            if not hasattr(member, "weights"):
                raise ValueError("a member must give weights.")
            if hasattr(member, "check_state"):
                member.check_state(n_columns, self.leaves.label_mass.shape[1])
        shares = [self.leaves.joint, self.leaves.product, *self.shares]
        check_array("shares", np.array(shares), np.float64, (2 + len(self.members),), 0, 1)
        check_instance("precise_members", self.leaves.precise_members, bool)
        if self.score_product is not None:
            check_instance("score_product", self.score_product, ScoreProduct)
            numbers = np.array([self.score_product.scale, self.score_product.share])
            check_array("score_product", numbers, np.float64, (2,), 0, 1e3)
        n_rows = len(self.leaves.vector_of)
        if self.row_numbers is not None:
            check_array("row_numbers", self.row_numbers, np.int64, (None,))
            n_rows = check_int("the number of row_numbers", len(self.row_numbers), 1, n_rows)
            if (np.diff(self.row_numbers, prepend=-1) <= 0).any():
                raise ValueError("the numbers of training rows must increase.")
        check_array("missing_features", self.missing_features, np.int64, (2, None), 0)
        row, column = self.missing_features
        if not ((row < n_rows) & (column < n_features)).all() or (np.diff(row) < 0).any():
            raise ValueError("missing_features must be rows and columns, sorted by row.")
        self._prepared = None

    @property
    def n_labels(self) -> int:
        return int(self.leaves.label_mass.shape[2])

    @property
    def n_training_rows(self) -> int:
        """Training rows stored one by one, not merged by label vector."""
        stored = self.leaves.vector_of if self.row_numbers is None else self.row_numbers
        return len(stored)

    def encode(self, X: Any) -> NDArray[np.float32]:
        return self.encoder.encode(X, np.float32)

    def text_categories(self) -> Mapping[int, Categories]:
        return self.encoder.words

    def never_observed(self) -> NDArray[np.bool_]:
        never = self._never
        if never is None or never[0] is not self.leaves:
            never = self.leaves, np.asarray(~self.leaves.label_mass.any(axis=(0, 1)))
            self._never = never
        return never[1]

    def contributions(self, *_: Any, **__: Any) -> None:
        """Return None: bounds are not a sum over observations; training rows explain them."""

    def infer(self, encoded: NDArray[np.float32], request: Request) -> Answer:
        """Infer labels and bounds. There is no chain: strategy and order make no difference."""
        from credalchain.joint import kernels  # imports numba

        n, m = encoded.shape[0], self.n_labels
        known = self.usable_labels(request.known, n)
        merged = self.prepared.merged
        lower = np.empty((len(request.s_values), n, m, 2))

        def run(rows: slice, nodes: Any, leaves: Leaves, weights: Any, workspace: Any) -> None:
            for v, s in enumerate(request.s_values):
                kernels.bound_labels(
                    nodes, known[rows], weights, leaves, s, workspace, lower[v, rows]
                )

        self.for_chunks(encoded, merged, request.n_jobs, run)
        np.clip(lower, 0.0, 1.0, out=lower)
        if request.precise:
            lower = precise_probabilities(lower)
        _put_known(lower, request.known)
        labels = self._decide(encoded, lower, known, request)
        bounds = interval = None
        if request.wants_bounds:
            bounds = np.stack([log_odds(lower[..., 1]), -log_odds(lower[..., 0])], axis=-1)
            bounds, interval = bounds[None], _interval(lower)[None]
        exactness = uniform_exactness(Exactness.EXACT, (1, *labels.shape))
        return Answer(labels[None], bounds, exactness, interval)

    def decide(
        self, encoded: NDArray[np.float32], *, s: float, known: Labels | None, n_jobs: int = 1
    ) -> PricedAnswers:
        """Decide which labels to answer, for all rewards at once."""
        from credalchain.joint import kernels  # imports numba

        n, m = encoded.shape[0], self.n_labels
        usable = self.usable_labels(known, n)
        merged, is_distinct = self.prepared.merged, self.prepared.is_distinct
        lower, prices = np.empty((n, m, 2)), np.empty((n, m))
        answers, certain = np.empty((n, m), dtype=np.int8), np.empty(n, dtype=bool)

        def run(rows: slice, nodes: Any, leaves: Leaves, weights: Any, workspace: Any) -> None:
            extra = leaves.label_mass.shape[1] - len(is_distinct)
            workspace = workspace._replace(is_distinct=np.pad(is_distinct, (0, extra)))
            outputs = lower[rows], answers[rows], prices[rows], certain[rows]
            kernels.decide_rows(nodes, usable[rows], weights, leaves, s, workspace, *outputs)

        self.for_chunks(encoded, merged, n_jobs, run)
        return PricedAnswers.of_rows(lower, answers, prices, certain, known)

    def bound_events(
        self,
        encoded: NDArray[np.float32],
        events: Labels,
        *,
        s: float,
        known: Labels | None,
        n_jobs: int = 1,
    ) -> FloatArray:
        """Return bounds (n, 2) of P(labels have the values in ``events``), which is (n, m)."""
        from credalchain.joint import kernels  # imports numba

        n = encoded.shape[0]
        usable = self.usable_labels(known, n)
        merged = self.prepared.merged
        known_labels = usable if known is None else known
        impossible = (
            (known_labels != MISSING) & (events != MISSING) & (known_labels != events)
        ).any(axis=1)
        asked = np.where(known_labels == MISSING, events, np.int8(MISSING))
        bounds = np.empty((n, 2))

        def run(rows: slice, nodes: Any, leaves: Leaves, weights: Any, workspace: Any) -> None:
            kernels.bound_events(
                nodes, usable[rows], asked[rows], weights, leaves, s, workspace, bounds[rows]
            )

        self.for_chunks(encoded, merged, n_jobs, run)
        bounds[(asked == MISSING).all(axis=1)] = (1.0, 0.0)
        bounds[impossible] = (0.0, 1.0)
        np.clip(bounds, 0.0, 1.0, out=bounds)
        return np.stack([bounds[:, 0], np.maximum(1.0 - bounds[:, 1], bounds[:, 0])], axis=1)

    def for_chunks(
        self,
        encoded: NDArray[np.float32],
        merged: Leaves,
        n_jobs: int,
        run: Callable[[slice, Any, Leaves, MemberWeights, Any], None],
    ) -> None:
        """Call ``run(rows, nodes, leaves, member_weights, workspace)`` for some rows at a time."""
        from credalchain.joint.kernels import Workspace  # imports numba

        def run_chunk(first: int, stop: int) -> None:
            nodes = self.leaves_of(encoded[first:stop])  # one tree after the other

            def run_part(start: int, end: int) -> None:
                rows = slice(first + start, first + end)
                leaves, weights = self._all_vectors(encoded[rows], merged)
                workspace = Workspace.allocate(nodes, leaves)
                run(rows, nodes[start:end], leaves, weights, workspace)

            for_each_range(len(nodes), _MEMBER_ROWS_AT_ONCE, 1, run_part)

        for_each_range(len(encoded), _ROWS_AT_ONCE, n_jobs, run_chunk)

    def row_weights(self, encoded: NDArray[np.float32], *, s: float) -> tuple[Any, FloatArray]:
        """Return the weights of the leaves on their rows, sparse (n, rows), and the rest (n,)."""
        nodes, leaves = self.leaves_of(encoded), self.leaves
        n, n_trees = nodes.shape
        first, stop = leaves.indptr[nodes].ravel(), leaves.indptr[nodes + 1].ravel()
        sizes = stop - first
        starts = np.repeat(first - (np.cumsum(sizes) - sizes), sizes)
        entries = starts + np.arange(sizes.sum())
        leaf = np.repeat(np.arange(n * n_trees), sizes)
        times = leaves.times[entries].astype(np.float64)
        n_rows = np.bincount(leaf, times, minlength=n * n_trees) + s
        weights = times / n_rows[leaf] / n_trees
        shape = (n, len(leaves.vector_of))
        rest = (s / n_rows / n_trees).reshape(n, n_trees).sum(axis=1)
        return sparse.csr_array((weights, (leaf // n_trees, leaves.row[entries])), shape), rest

    @property
    def prepared(self) -> _Prepared:
        """The model in the form in which predictions are fast."""
        prepared = self._prepared
        if prepared is None or prepared.leaves is not self.leaves:
            leaves = self.leaves
            prepared = _Prepared(
                leaves, merged_by_vector(leaves), distinct_vectors(leaves), pack_nodes(self.trees)
            )
            self._prepared = prepared
        return prepared

    def usable_labels(self, known: Labels | None, n: int) -> Labels:
        """Return known labels (n, m), without labels never observed, from which nothing follows."""
        usable = np.full((n, self.n_labels), MISSING, dtype=np.int8)
        if known is not None:
            usable[:] = np.where(self.never_observed(), np.int8(MISSING), known)
        return usable

    def leaves_of(self, encoded: NDArray[np.float32]) -> NDArray[np.int32]:
        """Find the leaf of each row in each tree, (n, trees)."""
        return find_leaves(encoded, self.trees, packed=self.prepared.nodes)

    def member_weights(self, encoded: NDArray[np.float32]) -> MemberWeights:
        """Return the weights of the members on label vectors, for these rows."""
        n = len(encoded)
        if not self.members:
            return no_member_weights(n)
        first = np.flatnonzero(np.append(True, (encoded[1:] != encoded[:-1]).any(axis=1)))
        indicators = self.encoder.indicators(encoded[first])  # without repeated rows
        n_vectors = self.leaves.label_mass.shape[1]
        parts = [
            share * checked_weights(member.weights(indicators), len(first), n_vectors, member)
            for share, member in zip(self.shares, self.members, strict=True)
        ]
        total = sparse.csr_array(sum(parts[1:], start=parts[0]))
        if len(first) < n:
            total = total[np.repeat(np.arange(len(first)), np.diff(np.append(first, n)))]
        return MemberWeights(
            total.indptr.astype(np.int64), total.indices.astype(np.int32), total.data
        )

    def _all_vectors(
        self, encoded: NDArray[np.float32], leaves: Leaves
    ) -> tuple[Leaves, MemberWeights]:
        """Return leaves and members' weights; each row's product of scores is a vector of its own.

        Its label mass is the probability of each label, so that kernels need not know of it.
        """
        weights = self.member_weights(encoded)
        if self.score_product is None:
            return leaves, weights
        p = self.score_product.probabilities(encoded, self.n_labels)
        mass = np.stack([1 - p, p]) * ~self.never_observed()
        own = leaves.label_mass.shape[1] + np.arange(len(p))
        ends = weights.indptr[1:]
        return leaves._replace(
            label_mass=np.concatenate([leaves.label_mass, mass], axis=1)
        ), MemberWeights(
            weights.indptr + np.arange(len(p) + 1),
            np.insert(weights.indices, ends, own.astype(np.int32)),
            np.insert(weights.data, ends, self.score_product.share),
        )

    def _decide(
        self,
        encoded: NDArray[np.float32],
        lower: FloatArray,
        known: Labels,
        request: Request,
    ) -> Labels:
        """Decide labels (values, n, m) from lower probabilities; ties are settled in fractions."""
        t = request.thresholds
        lower_gap, upper_gap = lower[..., 1] - t, (1.0 - lower[..., 0]) - t
        signs = [np.sign(gap).astype(np.int8) for gap in (lower_gap, upper_gap)]
        undecided = request.forced_labels() == UNDECIDED
        near = np.minimum(np.abs(lower_gap), np.abs(upper_gap)) <= _ROUNDING
        for v, i, j in np.argwhere(near & undecided).tolist():
            exact = self._exact_bounds(encoded[i : i + 1], j, known[i], request, v)
            for sign, bound in zip(signs, exact, strict=True):
                sign[v, i, j] = (bound > t[j]) - (bound < t[j])
        labels = labels_from_signs(*signs, precise=request.precise)
        return np.where(undecided, labels, request.forced_labels()).astype(np.int8)

    def _exact_bounds(
        self, row: NDArray[np.float32], j: int, known: Labels, request: Request, v: int
    ) -> tuple[Any, Any]:
        nodes = self.leaves_of(row)[0]
        leaves, member_weights = self._all_vectors(row, self.leaves)
        weights = dict(
            zip(member_weights.indices.tolist(), member_weights.data.tolist(), strict=True)
        )
        zero, one = (
            exact_lower(
                nodes, weights, leaves, s=request.s_values[v], event={j: value}, known=known
            )
            for value in (0, 1)
        )
        if request.precise:
            one = one / (zero + one) if zero + one > 0 else Fraction(1, 2)
            zero = 1 - one
        return one, 1 - zero


def _smallest(array: NDArray[Any]) -> NDArray[Any]:
    """Return the same numbers, 0 or more, in the smallest type."""
    return array.astype(np.min_scalar_type(int(array.max(initial=0))))


def _pack(trees: Trees, leaves: Leaves) -> dict[str, NDArray[Any]]:
    """Pack small arrays for trees and the rows in their leaves: the bulk of a model file.

    A node is 0, or the column that it splits on plus 1. Branches are relative to their node.
    """
    splits = np.flatnonzero(trees.feature != LEAF)
    is_leaf = trees.feature == LEAF
    return {
        "nodes": _smallest(np.where(is_leaf, 0, trees.feature.astype(np.int64) + 1)),
        "threshold": trees.threshold[splits],
        "left": _smallest(trees.left[splits] - splits),
        "right": _smallest(trees.right[splits] - splits),
        "missing_left": trees.missing_left[splits],
        "roots": trees.roots,
        "sizes": _smallest(np.diff(leaves.indptr)[is_leaf]),
        "row": _smallest(leaves.row),
        "times": _smallest(leaves.times),
    }


def _unpack(packed: dict[str, NDArray[Any]]) -> tuple[Trees, dict[str, Any]]:
    """Unpack trees, and the arrays of leaves, as ``_pack`` got them."""
    from credalchain.joint import kernels  # imports numba

    types: dict[str, Any] = dict.fromkeys(packed, np.int32)
    types |= {"threshold": np.float32, "missing_left": np.bool_, "times": np.uint32}
    arrays = {name: packed[name].astype(types[name]).reshape(-1) for name in packed}
    n, n_splits = len(arrays["nodes"]), np.count_nonzero(arrays["nodes"])
    lengths = [len(arrays[name]) for name in ("threshold", "left", "right", "missing_left")]
    if {*lengths} != {n_splits} or len(arrays["sizes"]) != n - n_splits:
        raise ValueError("every node must be a split or a leaf.")
    feature, left, right = np.zeros((3, n), dtype=np.int32)
    is_left, thresholds = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.float32)
    trees = Trees(feature, thresholds, left, right, is_left, arrays["roots"])
    indptr = np.zeros(n + 1, dtype=np.int64)
    unpack: Any = kernels.unpack_nodes
    unpack(*(arrays[name] for name in _OF_NODES), trees, indptr)
    return trees, {"indptr": indptr, "row": arrays["row"], "times": arrays["times"]}


_OF_NODES = ("nodes", "threshold", "left", "right", "missing_left", "sizes")


def _check_leaves(trees: Trees, leaves: Leaves) -> None:
    """Validate that every leaf holds training rows, and every row a label vector."""
    n, n_rows = len(leaves.row), len(leaves.vector_of)
    check_array("label_mass", leaves.label_mass, np.float64, (2, None, None), 0, 1)
    n_vectors, n_labels = leaves.label_mass.shape[1:]
    check_array("indptr", leaves.indptr, np.int64, (len(trees.feature) + 1,), 0, n)
    check_array("row", leaves.row, np.int32, (n,), 0, n_rows - 1)
    check_array("times", leaves.times, (np.uint32, np.uint16), (n,), 1)
    check_array("vector_of", leaves.vector_of, np.int32, (n_rows,), 0, n_vectors - 1)
    sizes = np.diff(leaves.indptr)
    if leaves.indptr[-1] != n or (sizes < 0).any() or (sizes[trees.feature == LEAF] == 0).any():
        raise ValueError("a leaf must hold training rows.")
    if n_labels == 0 or (leaves.label_mass.sum(axis=0) > 1 + 1e-9).any():
        raise ValueError("label_mass must hold probabilities.")


def _put_known(lower: FloatArray, known: Labels | None) -> None:
    """Set the lower probabilities (..., n, m, 2) of labels that are known."""
    if known is not None:
        for value in (0, 1):
            lower[..., known == 1 - value, value] = 0.0
            lower[..., known == value, value] = 1.0


def _interval(lower: FloatArray) -> FloatArray:
    return np.stack([lower[..., 1], np.maximum(1.0 - lower[..., 0], lower[..., 1])], axis=-1)


def precise_probabilities(lower: FloatArray) -> FloatArray:
    """Return lower probabilities that add up to 1: labels that may be either count for neither."""
    total = lower.sum(axis=-1, keepdims=True)
    return np.where(total > 0, lower / np.where(total > 0, total, 1.0), 0.5)


assert ABSTAIN == MISSING  # both are -1, which the kernels rely on
