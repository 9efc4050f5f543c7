"""Classifiers over a base: what is learned, label by label, is the base's."""

from collections.abc import Iterable
from typing import Any

from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length

from credalchain.bases.naive import NaiveCredal
from credalchain.bases.protocol import Labels
from credalchain.chunks.counting import SAMPLE_SIZE, count_parts
from credalchain.chunks.dask_parts import DaskParts
from credalchain.chunks.parts import ChunkParts
from credalchain.estimators.base import CredalClassifier
from credalchain.estimators.targets import Targets
from credalchain.preprocessing import read_table
from credalchain.validation import check_whole


def _supports_partial_fit(classifier: Any) -> bool:
    """A base may say that it does not."""
    return bool(getattr(classifier.base, "supports_partial_fit", True))


class ChainedClassifier(CredalClassifier):
    """Fitting of a base; subclasses say in which order labels are chained."""

    base: Any

    @available_if(_supports_partial_fit)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, Y: Any, classes: Any = None) -> Any:
        """Add rows to what was learned; the first call also learns the bins.

        Equals ``fit`` on all rows together where the bins would be the same (always with
        codes or a frozen discretizer). A label may be observed only in later calls.

        Parameters
        ----------
        X, Y : as in ``fit``
        classes : array-like of two values, optional
            Only for a vector ``Y``, at the first call: all its values, if that call may not
            show both.
        """
        if not hasattr(self, "model_"):
            self._fit_first(X, Y, classes)
            return self
        X = read_table(self, X, reset=False)
        labels = self.targets_.encode(Y)
        check_consistent_length(X, labels)
        if not hasattr(self.model_, "update"):
            raise AttributeError(f"the base {self.base!r} cannot learn from more rows.")
        self.model_ = self.model_.update(X, labels)
        return self

    def _fit_dask(self, X: Any, Y: Any) -> Any:
        return self._fit_parts(DaskParts(X, Y), SAMPLE_SIZE)

    def fit_chunks(self, chunks: Any, *, sample_size: int = SAMPLE_SIZE) -> Any:
        """Learn from data that does not fit into memory, one chunk after the other.

        The model is the same, bit for bit, as that of ``fit`` on all rows with the same bins.

        Parameters
        ----------
        chunks : iterable of (X, Y), or callable that gives one
            Gone through twice if bins are learned, so an iterator has to come from a callable.
        sample_size : int, default=100000
            Rows from which bins of numeric columns are learned, chosen by a hash of their
            numbers: the same however rows are cut into chunks, and all rows if there are not
            more. Categories are those of all rows. ``bins_source_`` says what was done.
        """
        check_whole("sample_size", sample_size)
        return self._fit_parts(ChunkParts(chunks), sample_size)

    def _fit_parts(self, parts: Any, sample_size: int) -> Any:
        base = self.unfitted_base()
        if not hasattr(base, "unfitted_discretizer"):
            raise TypeError(f"base {base!r} does not learn from counts, so not from parts of data.")
        found = count_parts(parts, base.unfitted_discretizer(), sample_size)
        labels = None if found.label_names is None else list(found.label_names)
        self.targets_ = Targets.of_labels(found.counts.n_labels, labels)
        self.n_features_in_ = found.counts.n_features
        names = getattr(found.discretizer, "feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_
        self.check_parameters()
        self._take_counted(base.from_counts(found.counts, found.discretizer))
        self.bins_source_ = found.bins
        self._warn_of_never_observed()
        return self

    def _take_counted(self, model: Any) -> None:
        """A model from counts, which serves every order; several chains override this."""
        self.order_ = self._choose_order(self.n_labels_, check_random_state(self.random_state))
        self.model_ = model

    def _learn(self, X: Any, labels: Labels) -> Any:
        """A fitted model; subclasses with more than one chain override this."""
        rng = check_random_state(self.random_state)
        self.order_ = self._choose_order(labels.shape[1], rng)
        return self.unfitted_base().fit_chain(X, labels, self.order_, chained=self.chained, rng=rng)

    @classmethod
    def from_counts(
        cls,
        counts: Any,
        *,
        discretizer: Any = None,
        label_names: Iterable[str] | None = None,
        **params: Any,
    ) -> Any:
        """A fitted classifier from counts made elsewhere.

        Parameters
        ----------
        counts : ChainCounts
            For instance the counts of all rows minus those of a fold.
        discretizer : fitted Discretizer, optional
            Turns input into the codes that were counted; None if the input is codes.
        label_names : iterable of str, optional
        **params
            Parameters of the classifier.
        """
        base = cls(**params).unfitted_base()
        if not hasattr(base, "from_counts"):
            raise TypeError(f"base {base!r} does not learn from counts.")
        model = base.from_counts(counts, discretizer)
        self = cls.from_model(
            model, n_features=model.counts.n_features, label_names=label_names, **params
        )
        if hasattr(discretizer, "feature_names_in_"):
            self.feature_names_in_ = discretizer.feature_names_in_
        return self

    def unfitted_base(self) -> Any:
        """A copy of the base, the default one if there is none."""
        if self.base is None:
            return NaiveCredal()
        if not hasattr(self.base, "fit_chain"):
            raise TypeError(
                f"base must be None or have fit_chain, like NaiveCredal(), got {self.base!r}."
            )
        return clone(self.base)
