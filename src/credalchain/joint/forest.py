"""CredalJointForest: one forest for all labels, whose leaves keep whole label vectors."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils import check_random_state

from credalchain._utils.array_types import Labels
from credalchain._utils.progress import Phases
from credalchain._utils.validation import check_choice, check_int, check_s
from credalchain.chains.interface import CredalClassifier
from credalchain.chains.protocol import Request
from credalchain.chains.strategies import Strategy
from credalchain.joint.arrays import Leaves
from credalchain.joint.growing import (
    ROWS_OF_A_TREE,
    default_forest_regressor,
    fill_missing,
    grow_or_recall,
    learn_mixture_shares,
    merged_by_vector,
    out_of_bag_scores,
    score_weights,
    with_vacuous_missing,
)
from credalchain.joint.members import (
    FittedMember,
    KernelPowerset,
    ScoreProduct,
    calibrate_product,
    checked_weights,
)
from credalchain.joint.model import JointModel
from credalchain.labels import MISSING, as_labels
from credalchain.preprocessing import TableEncoder
from credalchain.typing import LabelsLike, MatrixLike, RandomStateLike, VectorLike

_MISSING_LABEL_CHOICES = ("ignorable", "conservative")
_PRODUCT_ROWS = 10.0  # added to the rows that the product of scores explains best
SAMPLE_SIZE = 100_000  # rows in memory, of those in chunks
MAX_KEPT_ROWS = 20_000  # that explanations show; of others, leaves keep the labels alone
_MAX_LABELS = 2**25  # labels times rows, of which model files and predictions take 16 bytes each
_MAX_KERNEL_ROWS = 10_000  # with more, forests measured better without the default member
_MAX_SCORED_ROWS = 5000  # that members and shares are learned from, drawn at random
_MIN_COMPLETE = 0.5  # share of complete rows that members need


def _phases(labels: Labels, any_members: bool) -> dict[str, float]:
    """Return the parts of a fit, with what they take of its time; as measured on 5000 rows."""
    return {
        "missing labels": 9.0 if (labels == MISSING).any() else 0.0,
        "trees": 8.0,
        "shares": 1.0,
        "members": 6.0 if any_members else 0.0,
    }


class CredalJointForest(CredalClassifier):
    """Forest with lower and upper probabilities of any event about the labels of a row.

    Parameters
    ----------
    forest : ExtraTreesRegressor or RandomForestRegressor, default=None
        Unfitted, with ``bootstrap=True``. None means ``ExtraTreesRegressor(n_estimators=300,
        min_samples_leaf=2, max_features=0.5, bootstrap=True)``, with fewer trees where Y has more
        than 160000 cells, down to 150 for twice as many (fewer than 8 labels count as 8, more than
        64 as 64). (On labels 0 and 1 the squared error is the Gini impurity, so this is a
        classifier's forest.) Its ``random_state``, ``n_jobs`` and ``warm_start`` are overridden.
        Unless it has ``max_samples``, a tree is grown on at most 50000 rows, drawn from all rows
        for each tree.
    members : sequence of members, default=None
        Other models of label vectors, such as ``KernelPowerset()``. None means
        ``[KernelPowerset()]`` up to 10000 rows, and ``()``, the forest alone, above. Their shares
        add up to at most one half. They learn from at most 5000 rows without missing labels, and
        are not used if less than half of the rows are complete.
    missing : {"ignorable", "conservative"}, default="ignorable"
        Treatment of missing labels of training rows. "ignorable": a missing label counts with its
        probability in similar rows. "conservative": it may be either, which is valid even if labels
        are not missing at random.
    s : float, default=0.5
        Imprecision: 0 is precise; larger values are more cautious. Used at prediction time only.
    threshold : float or array-like of shape (n_labels,), default=0.5
        Answer 1 if lower > threshold, 0 if upper < threshold. Used at prediction time only.
    n_jobs : int, default=None
        Number of threads, as in joblib.
    verbose : int, default=0
        If 1, show the progress of fitting on stderr.
    random_state : int, RandomState or None, default=None
        Seed of the trees and of all random draws.

    Attributes
    ----------
    shares_ : dict
        Mixture weights of the leaves' vectors ("joint"), of their products ("product") and of each
        member.
    model_, classes_, label_names_, n_labels_, n_features_in_, feature_names_in_, nested_
        As in :class:`CredalChainClassifier`.

    See Also
    --------
    JointDecision : Decide the labels of a row together, over this forest.
    KernelPowerset : The default member besides the trees.

    Notes
    -----
    There is no ``sample_weight``: shares are learned out of bag, and a repeated row would be in and
    out of the bag at once.

    References
    ----------
    P. Walley, Inferences from multinomial data: learning about a bag of marbles, Journal of the
    Royal Statistical Society B 58, 1996 (the imprecise Dirichlet model).

    D. Kocev, C. Vens, J. Struyf and S. Dzeroski, Ensembles of multi-objective decision trees,
    ECML 2007 (trees on all labels at once).

    Examples
    --------
    >>> from credalchain import CredalJointForest
    >>> X = [[0.1], [0.2], [0.3], [0.7], [0.8], [0.9]] * 5
    >>> Y = [[0, 0], [0, 0], [0, 1], [1, 1], [1, 1], [1, 0]] * 5
    >>> forest = CredalJointForest(s=0.1, random_state=0).fit(X, Y)
    >>> forest.predict_partial([[0.15], [0.8]])
    array([[0, 0],
           [1, 1]], dtype=int8)
    """

    chained = True  # known labels change the bounds of the others

    def __init__(
        self,
        forest: BaseEstimator | None = None,
        *,
        members: Sequence[BaseEstimator] | None = None,
        missing: str = "ignorable",
        s: float = 0.5,
        threshold: float | VectorLike = 0.5,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: RandomStateLike = None,
    ) -> None:
        self.forest = forest
        self.members = members
        self.missing = missing
        self.s = s
        self.threshold = threshold
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @property
    def nested_(self) -> bool:
        """True: a larger s only widens the bounds."""
        return True

    @property
    def shares_(self) -> dict[str, float]:
        """Share of the leaves' vectors, of their products and of each member in the mixture."""
        model = self.model_
        shares = {"joint": model.leaves.joint, "product": model.leaves.product}
        if model.score_product is not None:
            shares["scores"] = model.score_product.share
        for member, share in zip(model.members, model.shares, strict=True):
            shares[member.name] = shares.get(member.name, 0.0) + share
        return shares

    _model_types = (JointModel,)

    def check_parameters(self) -> None:
        super().check_parameters()
        check_choice("missing", self.missing, _MISSING_LABEL_CHOICES)
        if self.forest is not None:
            self.unfitted_forest()
        self._unfitted_members()

    def unfitted_forest(self, shape: tuple[int, int] = (1, 1)) -> Any:
        """Return the unfitted forest for labels of this shape.

        Parameters
        ----------
        shape : tuple of int, default=(1, 1)
            Number of rows and labels. The default forest has fewer trees for many cells.

        Returns
        -------
        ExtraTreesRegressor or RandomForestRegressor
            Unfitted forest.

        Raises
        ------
        ValueError
            If the parameter ``forest`` is of another type, or has ``bootstrap=False``.
        """
        from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor  # slow to import

        if self.forest is None:
            return default_forest_regressor(shape=shape)
        forest = self.forest
        if not isinstance(forest, (ExtraTreesRegressor, RandomForestRegressor)):
            raise ValueError(
                "forest must be None, an ExtraTreesRegressor or a RandomForestRegressor (labels 0 "
                f"and 1 are numbers to it), got {forest!r}."
            )
        check_int("n_estimators of forest", forest.n_estimators)
        if not forest.bootstrap:
            raise ValueError(
                "forest must have bootstrap=True, because shares are learned from the rows that "
                f"a tree has not seen; got {forest!r}."
            )
        return forest

    def _unfitted_members(self) -> list[Any]:
        members = [KernelPowerset()] if self.members is None else self.members
        if not isinstance(members, (list, tuple)):
            raise TypeError(f"members must be None, a list or a tuple, got {members!r}.")
        for member in members:
            if not hasattr(member, "fit_vectors") or isinstance(member, type):
                raise TypeError(
                    f"members must have fit_vectors, like KernelPowerset(), got {member!r}."
                )
            if hasattr(member, "check_parameters"):
                member.check_parameters()
        return list(members)

    def _choose_order(self, n_labels: int, rng: np.random.RandomState) -> None:
        return None

    def _fit_model_from_chunks(self, chunks: Any, sample_size: int | None) -> None:
        with Phases("fit", {"passes over the data": 1.0, "model": 1.0}) as phases:
            sampled = self._draw_training_sample(chunks, sample_size or SAMPLE_SIZE)
            phases.start("model")
            self.model_ = self._fit_model(sampled.X, sampled.labels)
        self._describe_sample(
            None if sampled.is_everything else sampled.row_numbers, sampled.n_rows
        )

    def _fit_in_memory(self, X: Any, Y: Any, **options: Any) -> Labels:
        labels = super()._fit_in_memory(X, Y, **options)
        self._describe_sample(None, len(labels))
        return labels

    def _describe_sample(self, rows: NDArray[np.int64] | None, n_rows: int) -> None:
        """Set ``learned_from_``, and the numbers of the stored rows among all ``n_rows``.

        ``rows`` are those that ``_fit_model`` was given, None for all.
        """
        model, used = self.model_, n_rows if rows is None else len(rows)
        used = min(used, _MAX_LABELS // model.n_labels)
        if rows is not None:
            model.row_numbers = rows if model.row_numbers is None else rows[model.row_numbers]
        said = [f"trees grown on {used} of {n_rows} rows"] if used < n_rows else []
        if used > ROWS_OF_A_TREE and self.unfitted_forest().max_samples is None:
            said.append(f"each tree grown on {ROWS_OF_A_TREE} rows, drawn from {used}")
        if used > MAX_KEPT_ROWS:
            said.append(f"{MAX_KEPT_ROWS} rows kept for explanations")
        if said:
            before = [self.learned_from_] if rows is None and hasattr(self, "learned_from_") else []
            self.learned_from_ = "; ".join(before + said)

    def _fit_model(self, X: Any, labels: Labels, encoder: TableEncoder | None = None) -> JointModel:
        """Fit; with an ``encoder``, X is encoded, and its last columns are a model's scores."""
        over_scores = encoder is not None
        encoder = TableEncoder.learn(X) if encoder is None else encoder
        self.order_ = None
        rng = check_random_state(self.random_state)
        seed = rng.randint(2**31 - 1)
        row_numbers = None
        if labels.size > _MAX_LABELS:
            row_numbers = np.sort(rng.choice(len(labels), _MAX_LABELS // labels.shape[1], False))
            X, labels = take_rows(X, row_numbers), labels[row_numbers]
        encoded = X if over_scores else encoder.encode(X, np.float32)
        n_jobs = effective_n_jobs(self.n_jobs)
        forest = self.unfitted_forest(labels.shape)
        members, rows = self._choose_scored_rows(labels, rng, over_scores)
        with Phases("fit", _phases(labels, bool(members))) as phases:
            targets = fill_missing(forest, encoded, labels, n_jobs=n_jobs, seed=seed)
            phases.start("trees")
            grown = grow_or_recall()(forest, encoded, labels, targets, n_jobs=n_jobs, seed=seed)
            phases.start("shares")
            components = [out_of_bag_scores(grown, encoded, labels, rows, n_jobs)]
            if over_scores:
                scale, likelihood = calibrate_product(encoded[:, -labels.shape[1] :], labels)
                components.append(likelihood[rows, None])
            phases.start("members")
            fitted = self._fit_members(
                members, encoder.indicators(encoded[rows]), grown.leaves, labels, rows, rng
            )
        components += [held_out for _, held_out in fitted]
        scores = np.hstack(components)
        if over_scores:
            prior = np.where(np.arange(scores.shape[1]) == 2, _PRODUCT_ROWS, 0.0)
            shares = learn_mixture_shares(
                scores, labels[rows], n_forest=2, max_member_share=1.0, prior=prior
            )
            product = ScoreProduct(scale, float(shares[2]))
            shares = np.delete(shares, 2)
        else:
            shares, product = learn_mixture_shares(scores, labels[rows], n_forest=2), None
        leaves = grown.leaves._replace(
            joint=float(shares[0]), product=float(shares[1]), precise_members=over_scores
        )
        if self.missing == "conservative":
            leaves = with_vacuous_missing(leaves, labels)
        if len(labels) > MAX_KEPT_ROWS:
            kept = np.sort(rng.choice(len(labels), MAX_KEPT_ROWS, replace=False))
            leaves, encoded = merged_by_vector(leaves, kept), encoded[kept]
            row_numbers = kept if row_numbers is None else row_numbers[kept]
        useful = [
            (member, share)
            for (member, _), share in zip(fitted, shares[2:].tolist(), strict=True)
            if share > 0
        ]
        return JointModel(
            grown.trees,
            leaves,
            encoder,
            [member for member, _ in useful],
            [share for _, share in useful],
            np.stack(np.nonzero(np.isnan(encoded))),
            row_numbers,
            score_product=product,
        )

    def _choose_scored_rows(
        self, labels: Labels, rng: np.random.RandomState, over_scores: bool
    ) -> tuple[list[Any], NDArray[np.intp]]:
        """Return members to be fitted, and the rows they and all shares are learned from."""
        complete, members = (labels != MISSING).all(axis=1), self._unfitted_members()
        is_large = self.members is None and len(labels) > _MAX_KERNEL_ROWS and not over_scores
        if is_large or complete.mean() < _MIN_COMPLETE:
            members = []
        rows = np.flatnonzero(complete) if members else np.arange(len(labels))
        if len(rows) > _MAX_SCORED_ROWS:
            rows = np.sort(rng.choice(rows, _MAX_SCORED_ROWS, replace=False))
        return members, rows

    def _fit_members(
        self,
        members: list[Any],
        X: NDArray[np.float32],
        leaves: Leaves,
        labels: Labels,
        rows: NDArray[np.intp],
        rng: Any,
    ) -> list[tuple[FittedMember, NDArray[np.float64]]]:
        """Fit members; return them with held-out probabilities of the rows' labels, (rows, 1)."""
        is_observed = leaves.label_mass.max(axis=0) == 1
        vectors = np.where(is_observed, leaves.label_mass[1] == 1, MISSING).astype(np.int8)
        vector_of = leaves.vector_of[rows]
        fitted = []
        for member in members:
            fit_result = member.fit_vectors(X, vector_of, vectors, rng)
            if fit_result is None:  # nothing to learn
                continue
            if not isinstance(fit_result, tuple) or len(fit_result) != 2:
                raise TypeError(
                    f"fit_vectors of {type(member).__name__} must return a fitted member and "
                    f"weights for the training rows, got {fit_result!r}."
                )
            held_out = checked_weights(fit_result[1], len(rows), len(vectors), member)
            scores = score_weights(held_out, leaves.label_mass, labels[rows])
            fitted.append((fit_result[0], scores))
        return fitted

    def request(
        self,
        encoded: Any,
        *,
        strategy: str | Strategy | tuple[str | Strategy, ...] | None = None,
        **options: Any,
    ) -> Request:
        """Return the request for ``model_.infer``; a joint model has no strategy.

        Parameters
        ----------
        encoded : ndarray
            Rows, as :meth:`encode` returns them.
        strategy : None
            Not used; for compatibility with chains.
        **options
            As in :meth:`CredalChainClassifier.request`.

        Returns
        -------
        Request
            Validated parameters of the prediction.
        """
        if strategy is not None:
            raise ValueError(
                f"strategy must be None for CredalJointForest (it has no chain), got {strategy!r}."
            )
        return super().request(encoded, **options)

    def event_interval(
        self,
        X: MatrixLike,
        event: Any,
        *,
        s: float | None = None,
        known: LabelsLike | None = None,
    ) -> NDArray[np.float64]:
        """Compute the lower and upper probability of an event about the labels.

        Parameters
        ----------
        X : array-like, data frame or scipy sparse of shape (n_samples, n_features)
            Rows to predict.
        event : array-like of shape (n_labels,) or (n_samples, n_labels)
            Values 0 or 1 of the labels in the event; -1 for the other labels.
        s : float, default=None
            Overrides the parameter ``s``.
        known : array-like of shape (n_samples, n_labels), default=None
            Labels that are known already, 0 or 1; -1 elsewhere.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper probability.

        Examples
        --------
        >>> from sklearn.ensemble import ExtraTreesRegressor
        >>> from credalchain import CredalJointForest
        >>> X = [[0.1], [0.2], [0.3], [0.7], [0.8], [0.9]] * 5
        >>> Y = [[0, 0], [0, 0], [0, 1], [1, 1], [1, 1], [1, 0]] * 5
        >>> trees = ExtraTreesRegressor(20, min_samples_leaf=2, bootstrap=True)
        >>> forest = CredalJointForest(trees, members=(), random_state=0).fit(X, Y)
        >>> both = forest.event_interval([[0.15], [0.8]], event=[1, 1])
        >>> both.shape, (both[0] < both[1]).all()
        ((2, 2), np.True_)
        """
        encoded = self.encode(X)
        value = check_s(self.s if s is None else s)
        n, m = encoded.shape[0], self.n_labels_
        known_labels = self.targets_.encode_known(known, n)
        if hasattr(event, "columns"):  # by name, as known labels are
            asked: Any = self.targets_.encode_known(event, len(event))
        else:
            asked = as_labels(np.atleast_2d(event), name="event", require_zero=False)
        if asked.shape not in ((1, m), (n, m)):
            raise ValueError(
                f"event must have shape {(m,)} or {(n, m)}: one value per label, got {asked.shape}."
            )
        events = np.ascontiguousarray(np.broadcast_to(asked, (n, m)))
        n_jobs = effective_n_jobs(self.n_jobs)
        return np.asarray(
            self.model_.bound_events(encoded, events, s=value, known=known_labels, n_jobs=n_jobs)
        )
