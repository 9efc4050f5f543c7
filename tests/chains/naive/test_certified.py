"""The same bits whatever the way, and exact decisions at the sizes of real data."""

import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from math import prod

import numpy as np
import pytest
from scipy import sparse

from credalchain import CredalChainClassifier, NaiveCredal, Strategy
from credalchain.chains.naive.counts import as_codes, count
from credalchain.chains.protocol import ChainModel
from credalchain.chains.strategies import merge_widest
from credalchain.prediction import Exactness

BOTH = ("branching", "marginalization")


def make(rng, n, p, m, k, *, missing=0.2):
    K = np.full(p, k)
    X = rng.integers(0, k, size=(n, p))
    Y = (rng.random((n, m)) < 0.4).astype(np.int8)
    Y[rng.random(Y.shape) < missing] = -1
    return X, Y, K


def chain(**params):
    base = NaiveCredal(discretizer=None, **params.pop("base", {}))
    return CredalChainClassifier(base, random_state=0, **params)


def same_bits(left, right):
    np.testing.assert_array_equal(left.labels, right.labels)
    np.testing.assert_array_equal(left.log_odds, right.log_odds)


@pytest.fixture(scope="module", params=[0.0, 0.001], ids=["epsilon 0", "epsilon 0.001"])
def fitted(request):
    X, Y, _ = make(np.random.default_rng(1), 300, 40, 12, 3)
    X[X == 2] = np.where(np.random.default_rng(2).random((X == 2).sum()) < 0.5, -1, 2)
    return chain(base={"epsilon": request.param}).fit(X, Y), X, Y


@pytest.mark.parametrize(("n_jobs", "order"), [(2, "random"), (3, "dynamic")])
def test_threads(fitted, n_jobs, order):
    model, X, Y = fitted
    X = np.tile(X, (20, 1))
    model = chain(base={"epsilon": model.base.epsilon}, order=order).fit(X, np.tile(Y, (20, 1)))
    one = model.infer(X)
    model.n_jobs = n_jobs
    same_bits(one, model.infer(X))


@pytest.mark.parametrize("size", [1, 7, 100])
def test_batch_size(fitted, size):
    model, X, _ = fitted
    whole = model.infer(X)
    for start in range(0, len(X), size):
        part = model.infer(X[start : start + size])
        np.testing.assert_array_equal(part.labels, whole.labels[start : start + size])
        np.testing.assert_array_equal(part.log_odds, whole.log_odds[start : start + size])


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, sparse.coo_array])
def test_dense_and_sparse_codes(fitted, kind):
    model, X, Y = fitted
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.7, 0, X)
    dense = chain(base={"epsilon": model.base.epsilon}).fit(X, Y)
    thin = chain(base={"epsilon": model.base.epsilon}).fit(kind(X), Y)
    assert dense.model_.counts == thin.model_.counts
    same_bits(dense.infer(X), thin.infer(kind(X)))
    same_bits(dense.infer(X), dense.infer(kind(X)))


@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "i4", "i8", "f4", "f8"])
def test_code_types(dtype):
    X, Y, _ = make(np.random.default_rng(3), 100, 5, 3, 3)
    reference = chain().fit(X, Y)
    other = chain().fit(X.astype(dtype), Y)
    assert other.model_.counts == reference.model_.counts
    same_bits(reference.infer(X), other.infer(X.astype(dtype)))


def test_memory_layout_of_the_input(fitted):
    model, X, _ = fitted
    same_bits(model.infer(X), model.infer(np.asfortranarray(X)))
    same_bits(model.infer(X), model.infer(np.repeat(X, 2, axis=0)[::2]))


@pytest.mark.parametrize("strategy", BOTH)
def test_one_s_or_a_path(fitted, strategy):
    model, X, _ = fitted
    values = [0, 0.5, 2.0, 5.5]
    path = model.predict_path(X, values, strategy=strategy)
    for s, labels in zip(values, path, strict=True):
        np.testing.assert_array_equal(labels, model.infer(X, s=s, strategy=strategy).labels)


def test_one_strategy_or_both_in_a_pass(fitted):
    model, X, _ = fitted
    encoded = model.encode(X)
    both = model.model_.infer(encoded, model.request(encoded, strategy=BOTH))
    for i, strategy in enumerate(BOTH):
        alone = model.infer(X, strategy=strategy)
        np.testing.assert_array_equal(both.labels[i, 0], alone.labels)
        np.testing.assert_array_equal(both.log_odds[i, 0], alone.log_odds)


def test_subtracted_or_recounted(fitted):
    model, X, Y = fitted
    K = model.model_.counts.n_categories
    fold = count(as_codes(X[:100], K), Y[:100], K)
    params = model.get_params(deep=False)
    subtracted = CredalChainClassifier.from_counts(model.model_.counts - fold, **params)
    recounted = CredalChainClassifier.from_counts(count(as_codes(X[100:], K), Y[100:], K), **params)
    same_bits(subtracted.infer(X), recounted.infer(X))


def test_many_threads_at_once_on_one_model(fitted):
    """Tables are built on demand; threads that ask for different s must not disturb each other."""
    model, X, _ = fitted
    expected = {s: model.infer(X, s=s) for s in (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)}
    barrier = threading.Barrier(6)

    def ask(s):
        barrier.wait()
        return s, [model.infer(X, s=s) for _ in range(5)]

    with ThreadPoolExecutor(6) as pool:
        for s, predictions in pool.map(ask, expected):
            for prediction in predictions:
                same_bits(expected[s], prediction)


def exactly_decided(X, Y, K, x, s, epsilon):
    """The answer for the only label of a row, by comparing two long products for each bound."""
    s, epsilon = Fraction(s), Fraction(epsilon)
    prior = Fraction(int((Y == 1).sum()) + 1, int((Y == 0).sum()) + 1)
    lower, upper = [prior], [prior]  # factors of the odds
    for i, v in enumerate(x):
        bounds = []
        for a in (0, 1):
            rows = X[Y[:, 0] == a, i]
            n, d = int((rows == v).sum()), int((rows != -1).sum())
            bounds.append(
                tuple((1 - epsilon) * (n + add) / (d + s) + epsilon / int(K[i]) for add in (0, s))
            )
        (lower0, upper0), (lower1, upper1) = bounds
        lower.append(lower1 / upper0)
        upper.append(upper1 / lower0)
    return 1 if is_above_one(lower) else 0 if is_above_one([1 / f for f in upper]) else -1


def is_above_one(factors):
    return prod(f.numerator for f in factors) > prod(f.denominator for f in factors)


@pytest.mark.parametrize("p", [1_449, 100_000])
@pytest.mark.parametrize("input_type", ["dense", "sparse"])
def test_thousands_of_features_that_cancel_exactly(p, input_type):
    """Every feature says yes as loudly as its twin says no: the exact odds are 1."""
    rng = np.random.default_rng(4)
    half = rng.integers(0, 2, size=(12, p // 2))
    Y = np.repeat([[0], [1]], 6, axis=0)
    X = np.hstack([half, np.roll(half, 6, axis=0)])  # the classes change places
    X = np.hstack([X, np.zeros((12, p - X.shape[1]), dtype=int)])
    x = np.hstack([half[:1], half[:1], np.zeros((1, p - 2 * (p // 2)), dtype=int)])
    wrap = sparse.csr_array if input_type == "sparse" else np.asarray
    model = chain(s=0.0).fit(wrap(X), Y)
    assert model.predict_partial(wrap(x)).tolist() == [[-1]]
    assert model.predict(wrap(x)).tolist() == [[1]]
    assert abs(model.infer(wrap(x)).log_odds[0, 0, 0]) < 1e-4
    nudged = x.copy()
    nudged[0, 0] = 1 - nudged[0, 0]
    decided = model.predict_partial(wrap(nudged))[0, 0]
    moved = model.predict(wrap(nudged))[0, 0]
    assert decided in (-1, moved)


def test_decisions_of_1449_features_equal_long_products():
    rng = np.random.default_rng(5)
    X, Y, K = make(rng, 60, 1449, 1, 2, missing=0)
    model = chain(s=0.01).fit(X, Y)
    labels = model.predict_partial(X[:2])[:, 0]
    for x, label in zip(X[:2], labels, strict=True):
        assert label == exactly_decided(X, Y, K, x, 0.01, 0.001)


def test_174_labels_in_a_chain_with_zero_counts():
    X, Y, _ = make(np.random.default_rng(6), 80, 10, 174, 3)
    model = chain(s=0.0, base={"epsilon": 0.0}).fit(X, Y)
    prediction = model.infer(X)
    assert np.isinf(prediction.log_odds).any()
    assert not np.isnan(prediction.log_odds).any()
    encoded = model.encode(X)
    plain = ChainModel.infer(model.model_, encoded, model.request(encoded))
    np.testing.assert_array_equal(plain.labels[0, 0], prediction.labels)
    np.testing.assert_array_equal(plain.log_odds[0, 0], prediction.log_odds)


def test_zero_over_zero_is_probability_zero():
    X, Y = [[0], [1]], [[0], [1]]
    model = chain(s=0.0, base={"epsilon": 0.0}).fit(np.array(X), Y)
    prediction = model.infer([[5]])  # never seen: 0/0
    assert prediction.interval.tolist() == [[[0.0, 0.0]]]
    assert prediction.labels.tolist() == [[0]]


def _half_way(if_zero, if_one, if_dropped):
    return np.minimum(if_zero[0], if_one[0]) / 2, np.maximum(if_zero[1], if_one[1]) / 2


def test_a_strategy_of_ones_own():
    X, Y, _ = make(np.random.default_rng(7), 100, 4, 5, 3)
    own = Strategy("half way", nested=False, merge=_half_way)
    model = chain(strategy=own, s=4.0, order="given").fit(X, Y)
    prediction = model.infer(X)
    assert set(prediction.exactness) == {Exactness.APPROXIMATE}
    assert set(model.infer(X, strategy="branching").exactness) == {Exactness.EXACT}
    stars = [(model.infer(X, strategy=which).labels == -1).sum() for which in (own, *BOTH)]
    assert stars[2] < stars[0] < stars[1]
    assert not model.nested_


def test_a_strategy_equal_to_branching_gives_its_bits():
    X, Y, _ = make(np.random.default_rng(8), 100, 4, 5, 3)
    twin = Strategy("twin", nested=True, merge=lambda *branches: merge_widest(*branches))
    for order in ("given", "dynamic"):
        model = chain(order=order).fit(X, Y)
        same_bits(model.infer(X), model.infer(X, strategy=twin))


@pytest.mark.parametrize(
    "merge", [lambda *_: (np.ones(9), 0), lambda zero, *_: (*zero, 0), lambda *_: 3]
)
def test_a_strategy_that_gives_nonsense_is_named(merge):
    X, Y, _ = make(np.random.default_rng(9), 20, 2, 3, 2)
    model = chain().fit(X, Y)
    with pytest.raises(ValueError, match="merge of strategy 'odd' must give"):
        model.infer(X, strategy=Strategy("odd", nested=False, merge=merge))
    huge = Strategy("odd", nested=False, merge=lambda zero, *_: (zero[0] * 0 - 1e9, zero[1]))
    with pytest.raises(ValueError, match="below 256"):
        model.infer(X, strategy=huge)
