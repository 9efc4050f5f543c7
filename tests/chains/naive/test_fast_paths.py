"""Short cuts taken for speed: each against the long way.

Sizes at which the engine changes its way are replaced here, so that small data takes every way.
"""

import os
import subprocess
import sys
import threading
import warnings
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from credalchain import ChainCounts, CredalChainClassifier, NaiveCredal
from credalchain._utils.parallel import for_each_range
from credalchain.chains.naive import model as model_module
from credalchain.chains.naive import tables, walk
from credalchain.chains.naive.counts import as_codes, count
from credalchain.chains.protocol import ChainModel
from credalchain.chains.strategies import Strategy
from problems import infer_all, paths_of_all
from profiles import examples

BOTH = ("branching", "marginalization")


def data(n, p, m, *, k=3, seed=0, thin=False, missing=0.1):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, k, (n, p))
    if thin:
        X[rng.random(X.shape) < 0.8] = 0
    Y = (rng.random((n, m)) < rng.uniform(0.05, 0.6, m)).astype(np.int8)
    Y[rng.random(Y.shape) < missing] = -1
    return X, Y


def counted_literally(X, Y, K):
    """n(v, a) for features and for pairs of labels, one cell at a time."""
    classes = np.stack([Y == 0, Y == 1], axis=-1)
    feature = [classes[X[:, i] == v].sum(axis=0) for i, k in enumerate(K) for v in range(k)]
    m = Y.shape[1]
    pair = [[classes[Y[:, k] == b].sum(axis=0) for b in (0, 1)] for k in range(m)]
    return np.array(feature), np.array(pair)


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize(
    ("n", "m", "thin"),
    [(1, 1, False), (255, 3, False), (256, 17, False), (1000, 40, False), (700, 9, True)],
)
def test_packed_counters(n, m, thin, missing):
    X, Y = data(n, 7, m, thin=thin, missing=missing)
    K = np.full(7, 3)
    codes = as_codes(sparse.csr_array(X) if thin else X, K)
    counts = count(codes, Y, K)
    feature, pair = counted_literally(X, Y, K)
    np.testing.assert_array_equal(counts.feature, feature)
    np.testing.assert_array_equal(counts.pair, pair)
    np.testing.assert_array_equal(counts.feature_totals, feature.reshape(7, 3, m, 2).sum(axis=1))


def test_packed_counters_do_not_run_over():
    """More equal rows than a counter can hold, of 8 bits (dense) and of 16 (sparse)."""
    n = 70_000
    X, Y, K = np.ones((n, 1), dtype=np.uint8), np.ones((n, 3), dtype=np.int8), np.array([2])
    for codes in (X, sparse.csr_array(X)):
        counts = count(as_codes(codes, K), Y, K)
        assert counts.feature[1, :, 1].tolist() == [n] * 3
        assert counts.feature.sum() == 3 * n


def test_counts_beyond_32_bits():
    half = np.array([[2**30, 2**30 - 1]])
    counts = ChainCounts(
        2**31 - 1,
        np.array([1]),
        half,
        half[None],
        np.array([[[[2**30, 0]], [[0, 2**30 - 1]]]]),
    )
    assert counts.feature.dtype == np.int32
    total = counts + counts
    assert total.feature.dtype == np.int64
    assert total.feature.tolist() == [[[2**31, 2**31 - 2]]]
    assert (total - counts) == counts


@pytest.mark.parametrize("epsilon", [0.0, 0.001])
@pytest.mark.parametrize("thin", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize(("n", "m"), [(40, 3), (300, 24), (60, 90)])
def test_a_path_is_many_calls(n, m, thin, epsilon):
    """Also with values that repeat, in no order, and so many that they go in several groups."""
    X, Y = data(n, 12, m, thin=thin)
    X[0, 0] = -1
    X = sparse.csr_array(X) if thin else X
    base = NaiveCredal(discretizer=None, epsilon=epsilon)
    chain = CredalChainClassifier(base, random_state=1).fit(X, Y)
    values = [2.0, 0.0, 0.5, 2.0, 7.5, 1e-3, *np.linspace(0, 3, 20)]
    paths = paths_of_all(chain, X, values, strategy=BOTH)
    for at, s in enumerate(values):
        for path, one in zip(paths, infer_all(chain, X, s=s, strategy=BOTH), strict=True):
            np.testing.assert_array_equal(path[at], one.labels)


@pytest.mark.parametrize("missing_features", ["ignore", "conservative"])
@pytest.mark.parametrize("prior", ["laplace", "credal"])
@pytest.mark.parametrize("thin", [False, True], ids=["dense", "sparse"])
def test_a_path_with_and_without_epsilon(thin, prior, missing_features):
    """An epsilon of its own for s = 0, wherever that stands, and strategies of any kind."""
    X, Y = data(50, 9, 11, thin=thin)
    X[::7, 0] = -1
    X = sparse.csr_array(X) if thin else X
    base = NaiveCredal(discretizer=None, prior=prior, missing_features=missing_features)
    chain = CredalChainClassifier(base, random_state=2).fit(X, Y)
    chain.model_.settings = replace(chain.model_.settings, epsilon_at_zero=0.0)
    own = Strategy("own", nested=False, merge=lambda zero, one, untold: (zero[0], one[1]))
    values = [2.0, 0.0, 0.5, 0.0, 1.0]
    for strategies in (BOTH, (*BOTH, own), (own, "marginalization", "branching", "branching")):
        with mock.patch.object(walk, "_PROBED", 3):
            paths = paths_of_all(chain, X, values, strategy=strategies)
        for at, s in enumerate(values):
            for path, one in zip(paths, infer_all(chain, X, s=s, strategy=strategies), strict=True):
                np.testing.assert_array_equal(path[at], one.labels)


@pytest.mark.parametrize("epsilon", [0.0, 0.001])
@pytest.mark.parametrize("thin", [False, True], ids=["dense", "sparse"])
def test_sizes_do_not_show(thin, epsilon):
    """A row at a time, a single slot for triples, nothing kept, and guesses from three rows."""
    X, Y = data(80, 12, 19, thin=thin)
    X = sparse.csr_array(X) if thin else X
    base = NaiveCredal(discretizer=None, epsilon=epsilon)
    chain = CredalChainClassifier(base, random_state=3).fit(X, Y)
    values = [0.0, 0.3, 1.0, 2.5, 4.0]
    before = (
        paths_of_all(chain, X, values, strategy=BOTH),
        infer_all(chain, X, s=0.7, strategy=BOTH),
    )
    chain.model_._reset_tables()
    with (
        mock.patch.object(tables, "_MAX_SLOTS", 1),
        mock.patch.object(model_module, "_MAX_KEPT", 0),
        mock.patch.object(walk, "_SUMS_PER_CHUNK", 1),
        mock.patch.object(walk, "_PROBED", 3),
    ):
        path, one = (
            paths_of_all(chain, X, values, strategy=BOTH),
            infer_all(chain, X, s=0.7, strategy=BOTH),
        )
    np.testing.assert_array_equal(path, before[0])
    for small, large in zip(one, before[1], strict=True):
        np.testing.assert_array_equal(small.log_odds, large.log_odds)


def test_pairs_by_products():
    _, Y = data(200, 1, 13, missing=0.3)
    codes = as_codes(np.zeros((200, 1), dtype=np.int64), np.array([1]))
    counts = count(codes, Y, np.array([1]))
    np.testing.assert_array_equal(counts.pair, counted_literally(np.zeros((200, 1)), Y, [1])[1])


def test_rows_of_a_large_batch_are_answered_as_on_their_own():
    X, Y = data(600, 15, 40)
    chain = CredalChainClassifier(NaiveCredal(discretizer=None), s=0.5, random_state=0).fit(X, Y)
    for whole, strategy in zip(infer_all(chain, X, strategy=BOTH), BOTH, strict=True):
        for row in range(0, 600, 37):
            alone = chain.infer(X[row : row + 1], strategy=strategy)
            np.testing.assert_array_equal(alone.labels[0], whole.labels[row])
            np.testing.assert_array_equal(alone.log_odds[0], whole.log_odds[row])


@examples(60)
@given(
    seed=st.integers(0, 10**6),
    m=st.integers(8, 21),
    n=st.sampled_from([16, 17, 33, 40]),
    s=st.sampled_from([0.0, 0.3, 1.0, 4.0]),
    epsilon=st.sampled_from([0.0, 0.001]),
    threshold=st.sampled_from([0.5, 0.25, 0.7]),
    share_known=st.sampled_from([0.0, 0.3]),
)
def test_surprises_against_the_plain_walk(seed, m, n, s, epsilon, threshold, share_known):
    """Labels decided otherwise than guessed, known or never observed; a last chunk of one row."""
    rng = np.random.default_rng(seed)
    X, Y = data(60, 5, m, seed=seed)
    Y[:, rng.random(m) < 0.1] = -1
    known = np.where(rng.random((n, m)) < share_known, rng.integers(0, 2, (n, m)), -1)
    base = NaiveCredal(discretizer=None, epsilon=epsilon)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        chain = CredalChainClassifier(base, threshold=threshold, random_state=seed).fit(X, Y)
    rows = rng.integers(0, 3, (n, 5))
    given_labels = known.astype(np.int8) if share_known else None
    with (
        mock.patch.object(walk, "_SUMS_PER_CHUNK", 1),  # chunks of 16 rows
        mock.patch.object(walk, "_PROBED", 1),
    ):
        both = infer_all(chain, rows, s=s, strategy=BOTH, known=given_labels)
    encoded = chain.encode(rows)
    request = chain.request(encoded, s=s, strategy=BOTH, known=given_labels)
    slow = ChainModel.infer(chain.model_, encoded, request)
    for place, fast in enumerate(both):
        np.testing.assert_array_equal(fast.labels, slow.labels[place, 0])
        np.testing.assert_array_equal(fast.log_odds, slow.log_odds[place, 0])


def test_probe_rows_that_get_stuck():
    """Exact ties stop the first rows; labels that nobody ever observed must stay open."""
    Y = np.full((40, 8), -1)
    Y[:, 0] = np.tile([0, 1], 20)
    x = np.array(["a", "a", "b", "c"] * 10)[:, None]  # "a" ties at one half
    with pytest.warns(UserWarning, match="never observed"):
        chain = CredalChainClassifier(s=0.0, order="given").fit(x, Y)
    for n in (8, 80, 400):
        rows = np.repeat(["a", "b"], n)[:, None]
        labels = chain.predict_partial(rows)
        assert (labels[:, 1:] == -1).all()
        assert (labels[:n, 0] == -1).all()
        assert (labels[n:, 0] == 0).all()


def test_a_logarithm_does_not_depend_on_its_place():
    """numpy's vectorised logarithm must not treat the end of an array differently."""
    values = np.random.default_rng(0).random(1003)
    whole = np.log(values)
    for start in (0, 1, 5, 990, 1002):
        np.testing.assert_array_equal(np.log(values[start:]), whole[start:])
        assert np.log(values[start : start + 1])[0] == whole[start]


def test_an_error_in_a_thread_is_raised():
    def run(start, stop):
        if start == 30:
            raise ZeroDivisionError("row 30")

    with pytest.raises(ZeroDivisionError, match="row 30"):
        for_each_range(100, 10, 3, run)
    assert threading.active_count() < 20


COMPILED = """
import numpy as np
from credalchain import CredalChainClassifier, NaiveCredal
import sys
{before}
rng = np.random.default_rng(0)
X, Y = rng.integers(0, 3, (60, 5)), rng.integers(0, 2, (60, 4))
CredalChainClassifier(NaiveCredal(discretizer=None), s=1.0).fit(X, Y).infer(X)
{after}
"""


def run(folder, before, after, **environment):
    script = folder / "script.py"  # a file, because what is typed in cannot be cached
    script.write_text(COMPILED.format(before=before, after=after))
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.slow
def test_only_what_is_used_is_compiled(tmp_path):
    used = run(
        tmp_path,
        "assert 'numba' not in sys.modules",
        """
for module in [module for name, module in sys.modules.items() if "kernels" in name]:
    if not module.__name__.startswith("credalchain"):
        continue
    for name, thing in vars(module).items():
        if getattr(thing, "signatures", None):
            print(name)
            assert name.startswith("_") or len(thing.signatures) == 1, (name, thing.signatures)
""",
    )
    parts = {"load", "plus", "store"}  # of kernels
    kernels = {name for name in used if name[0] != "_"} - parts
    assert kernels == {"number_triples", "fill_table", "add_rows", "walk_chain"}


@pytest.mark.nightly
@pytest.mark.slow
def test_what_users_compile_is_compiled_as_before(tmp_path):
    """Our kernels switch settings of numba while they compile, and nobody else sees it.

    Slow because nothing comes from numba's cache here.
    """
    lines = run(
        tmp_path,
        """
import numba
from numba.core import config
def settings():
    return (config.SLP_VECTORIZE, config.LOOP_VECTORIZE)
before = settings()
""",
        """
assert settings() == before, settings()
from credalchain._utils.compiler import lane_kernel
seen = []
from numba.core import codegen
original = codegen.CPUCodegen._module_pass_manager
def spy(self, **options):
    seen.append(settings())
    return original(self, **options)
codegen.CPUCodegen._module_pass_manager = spy
@numba.njit
def theirs(x):
    return x + 1
theirs(1)
assert set(seen) == {before}, seen
seen.clear()
@lane_kernel
def ours(x):
    return x + 2
ours(1)
assert set(seen) == {(1, 0)}, seen
@lane_kernel
def wrong(x):
    return x.no_such_thing
try:
    wrong(1)
except numba.TypingError:
    pass
assert settings() == before
print("fine")
""",
        NUMBA_CACHE_DIR=str(tmp_path),
    )
    assert lines[-1] == "fine"


KERNEL_OF_A_PAIR = """
from typing import NamedTuple
from credalchain._utils.compiler import {decorator}

class {name}(NamedTuple):
    left: int
    right: int

@{decorator}
def total(pair):
    return pair.left + pair.right

print(total({name}(1, 2)), sum(total.stats.cache_hits.values()))
"""


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("decorator", ["kernel", "lane_kernel"])
def test_machine_code_of_an_older_version_is_no_obstacle(tmp_path, decorator):
    """As after an upgrade that renamed a class: what is in the cache cannot be read any more."""
    file = tmp_path / "sums.py"

    def printed(name):
        file.write_text(KERNEL_OF_A_PAIR.format(name=name, decorator=decorator))
        command = [sys.executable, "-c", "import sums"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    assert printed("Pair") == ["3", "0"]
    assert printed("Couple") == ["3", "0"]


def test_counts_that_were_changed_are_checked_again():
    X, Y = data(100, 4, 3, missing=0.0)
    base = NaiveCredal(discretizer=None)
    counts = CredalChainClassifier(base).fit(X, Y).model_.counts
    counts.feature[0, 0, 0] = 100
    with pytest.raises(ValueError, match="more values than its label has rows"):
        CredalChainClassifier.from_counts(counts, base=base)


def test_nothing_but_zeros():
    X, Y = sparse.csr_array((30, 2), dtype=np.int64), data(30, 2, 17)[1]
    chain = CredalChainClassifier(NaiveCredal(discretizer=None), order="given").fit(X, Y)
    dense = infer_all(chain, X.toarray(), strategy=BOTH)
    for one, two in zip(infer_all(chain, X, strategy=BOTH), dense, strict=True):
        np.testing.assert_array_equal(one.log_odds, two.log_odds)
    np.testing.assert_array_equal(
        chain.predict_path(X, [1.0, 2.0])[0], chain.infer(X, s=1.0).labels
    )


def test_s_0_twice_without_data():
    """Conditionals without data, uniform at s = 0, for more than one value."""
    X, Y = [[0, 2], [1, 0], [1, 1]], [[0, 1], [0, 0], [0, 1]]
    chain = CredalChainClassifier(NaiveCredal(discretizer=None), order="given").fit(X, Y)
    once, twice = chain.predict_path(X, [0, 1]), chain.predict_path(X, [0, 1, 0])
    np.testing.assert_array_equal(twice, once[[0, 1, 0]])


@pytest.mark.parametrize("factor", [10**6, 10**12])
def test_memory_does_not_grow_with_the_counts(factor):
    """Also where counts too large to be looked up directly share slots of the memory."""
    X, Y = data(300, 12, 9)
    K = np.full(12, 3)
    small = count(as_codes(X, K), Y, K)
    arrays = (getattr(small, name).astype(np.int64) for name in ("label", "feature", "pair"))
    counts = ChainCounts(300 * factor, K, *(factor * array for array in arrays))
    base = NaiveCredal(discretizer=None, prior="credal")  # scales with the counts
    chain = CredalChainClassifier.from_counts(counts, base=base, random_state=0)
    values = [0.5 * factor, factor, 2.0 * factor]
    path = chain.predict_path(X, values)
    for labels, s in zip(path, values, strict=True):
        np.testing.assert_array_equal(labels, chain.infer(X, s=s).labels)
    expected = CredalChainClassifier.from_counts(small, base=base, random_state=0)
    np.testing.assert_array_equal(path, expected.predict_path(X, [0.5, 1.0, 2.0]))


def test_padding_is_not_computed_with(monkeypatch):
    """Fresh memory may hold anything, and what looks like a number too large is a warning."""
    fresh = tables.aligned

    def dirty(shape):
        array = fresh(shape)
        array.fill(np.iinfo(np.int64).max)
        return array

    X, Y = data(60, 5, 3)
    X[::4, 1] = -1
    base = NaiveCredal(discretizer=None, missing_features="conservative")
    chain = CredalChainClassifier(base, random_state=0).fit(X, Y)
    values = [0.5, 1.0, 2.0]
    expected = chain.predict_path(X, values)
    monkeypatch.setattr(tables, "aligned", dirty)
    np.testing.assert_array_equal(chain.predict_path(X, values), expected)
