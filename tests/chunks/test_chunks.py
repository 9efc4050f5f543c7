"""Data in chunks: the same bins, counts, tables and predictions as in memory."""

import functools
import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from credalchain import (
    CredalBinaryRelevanceClassifier,
    CredalChainClassifier,
    CredalChainEnsemble,
    CredalJointForest,
    Discretizer,
    NaiveCredal,
    PromisedClassifier,
)
from credalchain.chunks.columns import learn_bins, summarize
from credalchain.chunks.sampling import MAX_HASH, hash_limit, row_hashes
from credalchain.chunks.sources import naming_chunk_in_errors
from problems import sampled_rows
from profiles import examples


@pytest.fixture(autouse=True, scope="module")
def _dask():
    """Import it only where tests of this file run: every worker reads all files."""
    global dd, da
    dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    da = pytest.importorskip("dask.array")


def frame(seed, n):
    """Columns of every kind, gaps everywhere, a category that only the last row has."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "count": rng.integers(0, 9, n),
            "city": rng.choice(["Oslo", "Rome", "Bern"], n).astype(object),
            "old": rng.random(n) < 0.5,
            "empty": np.nan,
        }
    )
    X.loc[rng.random(n) < 0.2, "size"] = np.nan
    X.loc[rng.random(n) < 0.2, "city"] = None
    X.loc[n - 1, "city"] = "Zürich"
    Y = pd.DataFrame(rng.integers(0, 2, (n, 3)).astype(float), columns=["x", "y", "z"])
    return X, Y.mask(rng.random((n, 3)) < 0.2)


class OnThreads:
    """Another engine: what ``credalchain.typing.Chunks`` asks for, and no more."""

    def __init__(self, chunks):
        self._chunks = chunks

    def reduce(self, work, *shared, trim=lambda total: total, numbered=True):
        starts = np.cumsum([0, *(len(X) for X, _ in self._chunks)])

        def do(number):
            X, Y = self._chunks[number]
            with naming_chunk_in_errors(f"block {number}"):
                return work(f"block {number}", X, Y, int(starts[number]), *shared)

        with ThreadPoolExecutor(2) as pool:
            parts = list(pool.map(do, range(len(self._chunks))))
        return functools.reduce(lambda total, part: trim(total + part), parts)

    def hash_limit(self, size):
        return MAX_HASH


def same(one, other, X):
    """The same bits."""
    assert one.model_.counts == other.model_.counts
    for left, right in zip(
        one.model_.discretizer.binnings_, other.model_.discretizer.binnings_, strict=True
    ):
        assert type(left) is type(right)
        for name in vars(left):
            np.testing.assert_array_equal(getattr(left, name), getattr(right, name))
    left, right = one.infer(X), other.infer(X)
    np.testing.assert_array_equal(left.labels, right.labels)
    np.testing.assert_array_equal(left.log_odds, right.log_odds)
    assert left.label_names == right.label_names


cuts = st.lists(st.integers(0, 40), max_size=6).map(sorted)


@given(seed=st.integers(0, 10**6), cuts=cuts)
def test_chunks_of_a_frame(seed, cuts):
    """Also empty ones, and ones with a single row."""
    X, Y = frame(seed, 40)
    whole = CredalChainClassifier(random_state=0).fit(X, Y)
    ends = [0, *cuts, 40]
    chunks = [(X[a:b], Y[a:b]) for a, b in itertools.pairwise(ends)]
    same(CredalChainClassifier(random_state=0).fit_chunks(chunks), whole, X)


@pytest.mark.parametrize("sample_size", [None, 15])
def test_an_engine_of_another_kind(sample_size):
    """It needs nothing of Dask, and bins come from the same sample."""
    X, Y = frame(0, 40)
    chunks = [(X[a:b], Y[a:b]) for a, b in ((0, 7), (7, 8), (8, 40))]
    fit = functools.partial(CredalChainClassifier.fit_chunks, sample_size=sample_size)
    found, expected = (
        fit(CredalChainClassifier(random_state=0), given) for given in (OnThreads(chunks), chunks)
    )
    same(found, expected, X)
    bad = [*chunks[:2], (X[8:], Y[8:].replace(1.0, 7.0))]
    with pytest.raises(ValueError, match=r"block 2: Y must hold 0, 1 or missing"):
        fit(CredalChainClassifier(), OnThreads(bad))


@given(seed=st.integers(0, 10**6), cuts=cuts)
def test_chunks_of_sparse_rows(seed, cuts):
    rng = np.random.default_rng(seed)
    X = sparse.random_array((40, 6), density=0.3, random_state=rng, format="csr")
    Y = rng.integers(0, 2, (40, 2))
    ends = [0, *cuts, 40]
    chunks = [(X[a:b], Y[a:b]) for a, b in itertools.pairwise(ends)]
    chain = CredalChainClassifier(random_state=0)
    found = CredalChainClassifier(random_state=0).fit_chunks(chunks)
    same(found, chain.fit(X, Y), X)


@examples(40)
@given(seed=st.integers(0, 10**6), cuts=st.lists(st.integers(1, 39), max_size=5, unique=True))
def test_dask_frames(seed, cuts):
    """Unsorted and repeated index, categories only in the last partition."""
    X, Y = frame(seed, 40)
    index = np.random.default_rng(seed).integers(0, 20, 40)
    X.index = Y.index = index
    whole = CredalBinaryRelevanceClassifier().fit(X, Y)
    ends = [0, *sorted(cuts), 40]
    pieces = list(itertools.pairwise(ends))
    lazy_X = dd.concat([dd.from_pandas(X[a:b], npartitions=1, sort=False) for a, b in pieces])
    lazy_Y = dd.concat([dd.from_pandas(Y[a:b], npartitions=1, sort=False) for a, b in pieces])
    found = CredalBinaryRelevanceClassifier().fit(lazy_X, lazy_Y)
    same(found, whole, X)
    table = found.infer(lazy_X).compute()
    pd.testing.assert_frame_equal(table, whole.infer(X).to_frame(intervals=True))


@examples(40)
@given(seed=st.integers(0, 10**6), rows=st.integers(1, 40), columns=st.integers(1, 3))
def test_dask_arrays(seed, rows, columns):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(40, 3)), rng.integers(0, 2, (40, 2))
    whole = CredalChainClassifier(random_state=0).fit(X, Y)
    lazy_X = da.from_array(X, chunks=(rows, columns))
    found = CredalChainClassifier(random_state=0).fit(lazy_X, da.from_array(Y, chunks=(7, 1)))
    same(found, whole, X)
    for method in ("predict", "predict_partial", "predict_proba"):
        lazy = getattr(found, method)(lazy_X)
        assert lazy.chunks[0] == lazy_X.chunks[0]
        np.testing.assert_array_equal(lazy.compute(), getattr(whole, method)(X))


def test_dask_arrays_of_sparse_blocks_and_of_unknown_length():
    X = sparse.random_array((60, 5), density=0.3, random_state=0, format="csr")
    Y = np.random.default_rng(0).integers(0, 2, (60, 2))
    blocks = [
        da.from_delayed(_delayed(X[a : a + 20]), (np.nan, 5), dtype=float) for a in (0, 20, 40)
    ]
    lazy_X = da.concatenate(blocks, allow_unknown_chunksizes=True)
    parts = [da.from_delayed(_delayed(Y[a : a + 20]), (np.nan, 2), dtype=int) for a in (0, 20, 40)]
    lazy_Y = da.concatenate(parts, allow_unknown_chunksizes=True)
    whole = CredalChainClassifier(random_state=0).fit(X, Y)
    found = CredalChainClassifier(random_state=0).fit(lazy_X, lazy_Y)
    same(found, whole, X)
    np.testing.assert_array_equal(found.predict(lazy_X).compute(), whole.predict(X))


def _delayed(table):
    from dask.delayed import delayed

    return delayed(table)


# -- samples ---------------------------------------------------------------------------------------


@given(first=st.integers(0, 10**12), cut=st.integers(0, 100))
def test_hashes_depend_on_the_row_alone(first, cut):
    whole = row_hashes(first, 100)
    parts = [row_hashes(first, cut), row_hashes(first + cut, 100 - cut)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))
    assert len(np.unique(whole)) == 100


@given(n=st.integers(1, 5000), size=st.integers(1, 6000))
def test_the_limit_leaves_just_as_many_rows_as_asked(n, size):
    limit = hash_limit(n, size)
    assert len(sampled_rows(0, n, limit)) == min(n, size)


def test_a_sample_looks_like_the_rows():
    chosen = sampled_rows(0, 100_000, hash_limit(100_000, 10_000))
    counts = np.histogram(chosen, bins=10, range=(0, 100_000))[0]
    assert (np.abs(counts - 1000) < 150).all()
    assert np.abs((chosen % 2).mean() - 0.5) < 0.03


@pytest.mark.parametrize("size", [1, 7, 39, 40, 41])
def test_the_same_sample_whatever_the_parts(size):
    X, Y = frame(0, 40)
    found = []
    for ends in ([0, 40], [0, 1, 39, 40], list(range(0, 41, 5))):
        pairs = list(itertools.pairwise(ends))
        chunks = [(X[a:b], Y[a:b]) for a, b in pairs]
        chain = CredalChainClassifier(random_state=0).fit_chunks(chunks, sample_size=size)
        assert chain.learned_from_ == (
            "bins learned from all 40 rows"
            if size >= 40
            else f"bins learned from {size} of 40 rows"
        )
        found.append(chain)
    for other in found[1:]:
        same(found[0], other, X)
    chosen = sampled_rows(0, 40, hash_limit(40, size))
    expected = Discretizer().fit(X.iloc[chosen])
    for one, other in zip(
        found[0].model_.discretizer.binnings_[:2], expected.binnings_[:2], strict=True
    ):
        np.testing.assert_array_equal(one.cuts, other.cuts)


def test_bins_that_are_given_and_codes():
    X, Y = frame(1, 40)
    bins = Discretizer(n_bins=3).fit(X[:20])
    base = NaiveCredal(discretizer=FrozenEstimator(bins))
    whole = CredalChainClassifier(base, random_state=0).fit(X, Y)
    chunks = ((X[a : a + 10], Y[a : a + 10]) for a in range(0, 40, 10))  # an iterator will do
    found = CredalChainClassifier(base, random_state=0).fit_chunks(chunks)
    assert found.model_.counts == whole.model_.counts
    assert found.learned_from_ == "bins were given"
    codes = np.random.default_rng(0).integers(0, 4, (40, 3))
    base = NaiveCredal(discretizer=None)
    whole = CredalChainClassifier(base, random_state=0).fit(codes, Y)
    parts = [(codes[a : a + 10], Y[a : a + 10]) for a in range(0, 40, 10)]
    found = CredalChainClassifier(base, random_state=0).fit_chunks(parts)
    assert found.model_.counts == whole.model_.counts


# -- what cannot be -----------------------------------------------------------------------------


def chunks_with(change):
    X, Y = frame(0, 40)
    chunks = [(X[a : a + 10].copy(), Y[a : a + 10].copy()) for a in range(0, 40, 10)]
    chunks[2] = change(*chunks[2])
    return chunks


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, Y: (X.drop(columns="old"), Y), "'old' is not in all of them, chunk 2 lacks it"),
        (
            lambda X, Y: (X[X.columns[::-1]], Y),
            "column 0 is 'size' in chunk 0 and 'empty' in chunk 2",
        ),
        (
            lambda X, Y: (X.assign(size="large"), Y),
            "column 'size' of X holds numbers in chunk 0 and texts in chunk 2",
        ),
        (lambda X, Y: (X.assign(size=np.inf), Y), "chunk 2: Input X contains infinity"),
        (lambda X, Y: (X, Y.assign(x=7)), "chunk 2: Y must hold 0, 1 or missing"),
        (
            lambda X, Y: (X, Y.drop(columns="z")),
            "all chunks of Y must have the same labels .* in chunk 2",
        ),
        (lambda X, Y: (X[:5], Y), "chunk 2: X and Y must have the same rows"),
        (
            lambda X, Y: (X.to_numpy(), Y),
            "those of chunk 0 have names, and those of chunk 2 have none",
        ),
    ],
)
def test_a_part_that_does_not_fit_is_named(change, message):
    with pytest.raises((ValueError, TypeError), match=message):
        CredalChainClassifier(random_state=0).fit_chunks(chunks_with(change))


@pytest.mark.parametrize(
    ("chunks", "message"),
    [
        (7, "chunks must be an iterable of pairs"),
        ([], "chunks must be at least one pair"),
        ([np.zeros((3, 2))], "chunks must be pairs"),
        (iter([([[1.0]], [[1]])]), "chunks must be re-iterable"),
    ],
)
def test_chunks_that_are_none(chunks, message):
    with pytest.raises((ValueError, TypeError), match=message):
        CredalChainClassifier().fit_chunks(chunks)


def test_what_is_not_lazy_says_so():
    X, Y = frame(0, 40)
    with pytest.raises(TypeError, match="Y must be a dask data frame"):
        CredalChainClassifier().fit(dd.from_pandas(X, npartitions=2), Y)
    chain, lazy = CredalChainClassifier(random_state=0), dd.from_pandas(X, npartitions=2)
    with pytest.raises(NotFittedError):
        chain.predict(lazy)
    chain.fit(X, Y)
    with pytest.raises(ValueError, match="known must be None"):
        chain.infer(lazy, known=Y)
    with pytest.raises(ValueError, match="strategy must be a single one"):
        chain.infer(lazy, strategy=("branching", "marginalization"))
    with pytest.raises(TypeError, match="infer does not take this dask collection"):
        chain.infer(da.from_array(X.to_numpy(), chunks=20))
    for no_table in (lazy["size"], _delayed(X)):
        with pytest.raises(TypeError, match="X must be a dask data frame"):
            chain.predict_partial(no_table)


def test_ensembles_of_chains_are_those_of_memory():
    X, Y = frame(0, 40)
    ensemble = CredalChainEnsemble(n_chains=3, random_state=0)
    found = clone(ensemble).fit_chunks([(X[:15], Y[:15]), (X[15:], Y[15:])])
    whole = ensemble.fit(X, Y)
    np.testing.assert_array_equal(found.orders_, whole.orders_)
    np.testing.assert_array_equal(found.infer(X).log_odds, whole.infer(X).log_odds)


def test_minus_one_for_no_is_refused_as_in_memory():
    X, Y = frame(0, 40)
    signed = Y.fillna(0).astype(int).mul(2).sub(1)
    chunks = [(X[:20], signed[:20]), (X[20:], signed[20:])]
    with pytest.raises(ValueError, match=r"holds -1 and \+1 but no 0"):
        CredalChainClassifier().fit_chunks(chunks)
    chunks[1] = X[20:], Y[20:]  # a missing label may be -1, where others are 0
    assert CredalChainClassifier(random_state=0).fit_chunks(chunks).n_labels_ == 3


def test_names_of_an_earlier_fit_are_forgotten():
    X, Y = frame(0, 40)
    chain = CredalChainClassifier(random_state=0).fit(X, Y)
    chain.fit_chunks([(X[["size", "count"]].to_numpy(), Y.to_numpy())])
    assert not hasattr(chain, "feature_names_in_")


def test_lazy_data_is_not_pulled_into_memory_unasked():
    X, Y = np.random.default_rng(0).normal(size=(60, 3)), np.eye(3, dtype=int)[np.arange(60) % 3]
    lazy = da.from_array(X, chunks=20)
    with pytest.raises(TypeError, match="in memory"):
        PromisedClassifier(CredalChainClassifier()).fit(lazy, da.from_array(Y, chunks=20))
    chain = CredalChainClassifier(random_state=0).fit(X, Y)
    for method, arguments in (("predict_path", ([1.0],)), ("predict_interval", ())):
        with pytest.raises(TypeError, match="dask collection"):
            getattr(chain, method)(lazy, *arguments)


def test_bins_of_nothing():
    summary = summarize("part", np.empty((0, 2)), 0, MAX_HASH)
    with pytest.raises(ValueError, match="at least one row"):
        learn_bins(summary, 6)


# -- what reviewers stumbled over ---------------------------------------------------------------


def test_sparse_entries_stored_twice_are_their_sum():
    entries = ([1.0, 1.0, 2.0, 5.0], ([0, 0, 1, 2], [0, 0, 1, 0]))
    X = sparse.csr_matrix((4, 2))
    X = sparse.coo_matrix(entries, (4, 2)).tocsr(copy=False)
    doubled = sparse.csr_matrix(
        (np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), X.shape
    )
    Y = [[0, 1], [1, 0], [1, 1], [0, 0]]
    whole = CredalChainClassifier(random_state=0).fit(doubled, Y)
    same(CredalChainClassifier(random_state=0).fit_chunks([(doubled, Y)]), whole, X)


def lazy_of(parts, meta):
    return dd.from_delayed([_delayed(part) for part in parts], meta=meta, verify_meta=False)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X: X.drop(columns="old"), "'old' is not in all of them, partition 1 lacks it"),
        (lambda X: X[X.columns[::-1]], "'size' in partition 0 and 'empty' in partition 1"),
        (lambda X: X.assign(size=np.inf), "partition 1: Input X contains infinity"),
    ],
)
def test_dask_names_partitions_that_do_not_fit(change, words):
    X, Y = frame(0, 40)
    lazy_X = lazy_of([X[:20], change(X[20:])], X[:0])
    lazy_Y = lazy_of([Y[:20], Y[20:]], Y[:0])
    with pytest.raises(ValueError, match=words):
        CredalChainClassifier(random_state=0).fit(lazy_X, lazy_Y)


def read(number, bad):
    """A quarter of a table, if its disk is there."""
    if number in bad:
        raise bad[number]
    return frame(0, 40)[0][number * 10 : number * 10 + 10]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({3: OSError("disk 3 is gone")}, r"partition 3 cannot be read: OSError\('disk 3"),
        ({1: OSError("disk 1"), 3: OSError("disk 3")}, "partition 1 cannot be read: .*disk 1"),
        ({0: KeyError()}, "partition 0 cannot be read: KeyError"),
    ],
)
@pytest.mark.parametrize("as_array", [False, True])
def test_fit_names_the_partition_that_cannot_be_read(bad, words, as_array):
    X, Y = frame(0, 40)
    lazy_X, lazy_Y = dd.from_map(read, range(4), bad=bad, meta=X[:0]), dd.from_pandas(Y, 4)
    if as_array:
        blocks = [da.from_delayed(_delayed(read)(at, bad), (10, 5), object) for at in range(4)]
        lazy_X, lazy_Y = da.concatenate(blocks), da.from_array(Y.to_numpy(), chunks=10)
    with pytest.raises(ValueError, match=words) as raised:
        CredalChainClassifier(random_state=0).fit(lazy_X, lazy_Y)
    assert raised.value.__cause__ in bad.values()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of dask
def test_predictions_are_collections_of_dask_with_their_index_and_divisions(tmp_path):
    X, Y = frame(0, 40)
    lazy, chain = dd.from_pandas(X, 4), CredalChainClassifier(random_state=0).fit(X, Y)
    for method in ("predict", "predict_partial", "predict_proba"):
        answers, expected = (getattr(chain, method)(rows) for rows in (lazy, X))
        assert type(answers) is dd.DataFrame
        assert answers.divisions == lazy.divisions
        expected = pd.DataFrame(expected, X.index, ["x", "y", "z"])
        pd.testing.assert_frame_equal(answers.compute(), expected)
        assert answers.dtypes.tolist() == expected.dtypes.tolist()
    answers, expected = chain.infer(lazy, s=20.0), chain.infer(X, s=20.0).to_frame(intervals=True)
    assert answers.divisions == lazy.divisions
    assert answers.dtypes.tolist() == expected.dtypes.tolist()
    answers.to_parquet(tmp_path / "answers")
    written = dd.read_parquet(tmp_path / "answers").compute()
    pd.testing.assert_frame_equal(written, expected, check_dtype=False)


def test_partitions_without_rows_have_no_answers():
    X, Y = frame(0, 40)
    X["count"] = range(40)
    chain, lazy = CredalChainClassifier(random_state=0).fit(X, Y), dd.from_pandas(X, 4)
    some = lazy[lazy["count"] > 20]
    assert some.map_partitions(len).compute().tolist() == [0, 0, 9, 10]
    expected = chain.infer(X[21:]).to_frame(intervals=True)
    pd.testing.assert_frame_equal(chain.infer(some).compute(), expected)
    np.testing.assert_array_equal(chain.predict(some).compute(), chain.predict(X[21:]))


def test_promises_are_kept_lazily():
    """Also over a pipeline, whose steps know nothing of Dask."""
    X, Y = frame(0, 200)
    X, Y = X[["size", "count"]].fillna(0.0), Y.fillna(0.0)
    pipeline = make_pipeline(StandardScaler(), CredalChainClassifier(random_state=0))
    promised = PromisedClassifier(pipeline, {"row_error": 0.4}, random_state=0).fit(X, Y)
    lazy = dd.from_pandas(X, 3)
    for method in ("predict", "predict_partial", "predict_proba"):
        answers = getattr(promised, method)(lazy)
        assert type(answers) is dd.DataFrame
        np.testing.assert_array_equal(answers.compute(), getattr(promised, method)(X))
    expected = promised.infer(X).to_frame(intervals=True)
    pd.testing.assert_frame_equal(promised.infer(lazy).compute(), expected, check_names=False)


def test_answers_are_for_the_table_as_it_was():
    """Dask changes tables in place."""
    X, Y = frame(0, 40)
    chain, lazy = CredalChainClassifier(random_state=0).fit(X, Y), dd.from_pandas(X, 4)
    answers = chain.predict_partial(lazy)
    lazy["size"] = -lazy["size"]
    lazy["x"] = answers["x"]
    expected = chain.predict_partial(X)
    np.testing.assert_array_equal(answers.compute(), expected)
    np.testing.assert_array_equal(lazy["x"].compute(), expected[:, 0])


def test_a_feature_may_be_called_chunks():
    X, Y = frame(0, 40)
    X = X.rename(columns={"size": "chunks"})
    lazy = lazy_of([X[:20], X[20:]], X[:0]), lazy_of([Y[:20], Y[20:]], Y[:0])
    chain = CredalChainClassifier(random_state=0).fit(*lazy)
    np.testing.assert_array_equal(chain.predict_partial(lazy[0]), chain.predict_partial(X))


def test_answers_belong_to_the_rows_of_their_table():
    """Though neither divisions nor the index say which these are."""
    X, Y = frame(0, 40)
    chain = CredalChainClassifier(random_state=0).fit(X, Y)
    lazy = dd.from_map(lambda at: X[at : at + 20].reset_index(drop=True), [0, 20], meta=X[:0])
    together = lazy.assign(answer=chain.predict_partial(lazy)["x"]).compute()
    assert together["answer"].tolist() == chain.predict_partial(X)[:, 0].tolist()
    assert chain.predict_partial(lazy).to_dask_array().compute().shape == (40, 3)


def test_rows_that_a_shuffle_has_left_in_different_orders_are_refused():
    X, Y = frame(0, 40)
    lazy_X = lazy_of([X[:20], X[20:]], X[:0])
    lazy_Y = lazy_of([Y[:20], Y[20:][::-1]], Y[:0])
    with pytest.raises(ValueError, match="partition 1: X and Y have the same index in different"):
        CredalChainClassifier(random_state=0).fit(lazy_X, lazy_Y)
    renamed = lazy_of([Y[:20], Y[20:].set_axis(range(20))], Y[:0])
    CredalChainClassifier(random_state=0).fit(lazy_X, renamed)


def test_other_sizes_of_a_sample_for_dask():
    X, Y = frame(0, 40)
    lazy = dd.from_pandas(X, npartitions=3), dd.from_pandas(Y, npartitions=3)
    found = CredalChainClassifier(random_state=0).fit_chunks(lazy, sample_size=7)
    assert found.learned_from_ == "bins learned from 7 of 40 rows"
    whole = CredalChainClassifier(random_state=0).fit_chunks([(X, Y)], sample_size=7)
    same(found, whole, X)


def test_known_and_unknown_chunks_together():
    X, Y = frame(0, 40)
    numbers = X[["size", "count"]].to_numpy()
    lazy_Y = dd.from_pandas(Y.fillna(0), npartitions=2).to_dask_array()
    lazy_X = da.from_array(numbers, chunks=(20, 2))
    found = CredalChainClassifier(random_state=0).fit(lazy_X, lazy_Y)
    expected = CredalChainClassifier(random_state=0).fit(numbers, Y.fillna(0).to_numpy())
    assert found.model_.counts == expected.model_.counts


def test_codes_with_an_empty_chunk():
    codes = np.random.default_rng(0).integers(0, 3, (10, 2))
    Y = np.eye(2, dtype=int)[np.arange(10) % 2]
    chain = CredalChainClassifier(NaiveCredal(discretizer=None), random_state=0)
    found = clone(chain).fit_chunks([(codes[:0], Y[:0]), (codes, Y)])
    assert found.model_.counts == chain.fit(codes, Y).model_.counts


def test_lazy_frames_of_objects_that_are_numbers():
    dask = pytest.importorskip("dask")
    X = pd.DataFrame({"flag": [True, False, None] * 10}, dtype=object)
    Y = pd.DataFrame({"x": [1, 0, 1] * 10})
    chain = CredalChainClassifier(random_state=0).fit(X, Y)
    with dask.config.set({"dataframe.convert-string": False}):
        table = chain.infer(dd.from_pandas(X, npartitions=2)).compute()
    pd.testing.assert_frame_equal(table, chain.infer(X).to_frame(intervals=True))


@pytest.mark.parametrize(
    ("chunks", "words"),
    [
        ([(np.zeros(3), [[1], [0], [1]])], "chunk 0: X must have two dimensions"),
        ([([[1.0]], [[1]], [0.5])], "chunks must be pairs"),
    ],
)
def test_chunks_that_are_something_else(chunks, words):
    with pytest.raises((ValueError, TypeError), match=words):
        CredalChainClassifier().fit_chunks(chunks)


def test_no_rows_at_all_with_bins_that_are_given():
    X, Y = frame(0, 40)
    base = NaiveCredal(discretizer=FrozenEstimator(Discretizer().fit(X)))
    with pytest.raises(ValueError, match="at least one row"):
        CredalChainClassifier(base).fit_chunks([(X[:0], Y[:0])])


def test_the_kind_of_an_empty_column_does_not_depend_on_the_order_of_parts():
    Y = [[0], [1]]
    parts = [np.array([[np.nan], [np.nan]]), np.array([[None], [None]], dtype=object)]
    kinds = [
        type(
            CredalChainClassifier()
            .fit_chunks([(pd.DataFrame(part), Y) for part in order])
            .model_.discretizer.binnings_[0]
        )
        for order in (parts, parts[::-1])
    ]
    assert kinds[0] is kinds[1]


def test_a_vector_is_not_predicted_lazily():
    X = np.arange(12.0)[:, None]
    chain = CredalChainClassifier().fit(X, ["no", "yes"] * 6)
    with pytest.raises(TypeError, match="fitted on a vector"):
        chain.predict(da.from_array(X, chunks=4))
    with pytest.raises(TypeError, match="X must be a dask collection if Y is one"):
        CredalChainClassifier().fit(X, da.from_array(np.arange(12) % 2, chunks=4))


def test_small_parquet_files_that_dask_would_read_together(tmp_path):
    X, Y = frame(0, 40)
    table = pd.concat([X[["size", "count"]], Y], axis=1)
    for at in range(0, 40, 10):
        table[at : at + 10].to_parquet(tmp_path / f"{at}.parquet")
    lazy = dd.read_parquet(tmp_path)
    found = CredalChainClassifier(random_state=0).fit(
        lazy[["size", "count"]], (lazy[["x", "y"]] > 0.5).astype(int)
    )
    whole = CredalChainClassifier(random_state=0).fit(
        table[["size", "count"]], (table[["x", "y"]] > 0.5).astype(int)
    )
    assert found.model_.counts == whole.model_.counts


@pytest.mark.parametrize("classifier", [CredalChainClassifier(), CredalJointForest(random_state=0)])
@pytest.mark.parametrize("cut", [25, 50])
def test_labels_of_minus_one_and_one_are_refused_however_they_are_cut(classifier, cut):
    """Also where no chunk has both."""
    X = np.array([[1.0, 2.0]] * 50 + [[3.0, 1.0]] * 50)
    Y = np.array([[1]] * 50 + [[-1]] * 50)
    chunks = [(X[:cut], Y[:cut]), (X[cut:], Y[cut:])]
    with pytest.raises(ValueError, match=r"holds -1 and \+1 but no 0"):
        clone(classifier).fit_chunks(chunks)


def test_a_lazy_prediction_keeps_the_parameters_it_was_asked_with():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    chain = CredalChainClassifier(s=0.5, order="given").fit(X, (X > 0).astype(int))
    lazy, partial = (ask(dd.from_pandas(X, 3)) for ask in (chain.infer, chain.predict_partial))
    expected, labels = chain.infer(X).to_frame(intervals=True), chain.predict_partial(X)
    chain.set_params(s=500.0)
    pd.testing.assert_frame_equal(lazy.compute(), expected, check_names=False)
    np.testing.assert_array_equal(partial.compute(), labels)


def test_chunks_without_rows_have_columns_of_any_type():
    X = pd.DataFrame({"a": [0.5, 1.5, 2.5, 0.1], "c": ["x", "y", "x", "y"]})
    Y = np.array([[0], [1], [1], [0]])
    empty = X[:0].astype({"c": "category", "a": bool})
    found = CredalChainClassifier(order="given").fit_chunks(
        [(X[:2], Y[:2]), (empty, Y[:0]), (X[2:], Y[2:])]
    )
    assert found.model_.counts == CredalChainClassifier(order="given").fit(X, Y).model_.counts


@pytest.mark.parametrize(
    ("chunks", "kind", "words"),
    [
        ([()], TypeError, "chunks must be pairs"),
        ([([[10**400, 1]], [[1]])], ValueError, "chunk 0: int too large"),
    ],
)
def test_chunks_that_make_no_sense(chunks, kind, words):
    with pytest.raises(kind, match=words):
        CredalChainClassifier().fit_chunks(chunks)


def test_one_column_of_labels_keeps_its_name():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    y = (X.a > 0).astype(int).rename("loud")
    found = CredalChainClassifier().fit(dd.from_pandas(X, 2), dd.from_pandas(y, 2))
    assert found.label_names_.tolist() == ["loud"]
    with pytest.raises(TypeError, match="X must be a dask data frame"):
        CredalChainClassifier().fit(dd.from_pandas(X.a, 2), dd.from_pandas(y, 2))
