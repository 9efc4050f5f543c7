"""At home in scikit-learn: its own checks, and the tools people put around an estimator."""

import io
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
import skops.io
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version
from sklearn.utils.validation import has_fit_parameter

from credalchain import (
    TRUSTED_TYPES,
    CredalBinaryRelevanceClassifier,
    CredalChainClassifier,
    CredalChainEnsemble,
    Discretizer,
    JointDecision,
    NaiveCredal,
    PromisedClassifier,
    cross_val_partial,
    partial_labels,
    partial_scorer,
    unwrap,
)
from credalchain.metrics import MEASURES, utility_65

NEW_CHECKS = parse_version(sklearn.__version__) >= parse_version("1.9")  # seen to be right

ESTIMATORS = [CredalChainClassifier(), CredalBinaryRelevanceClassifier()]
OF_ESTIMATORS = [
    CredalChainEnsemble(n_chains=2),
    JointDecision(CredalChainClassifier(order="given"), calibration_folds=2),
    PromisedClassifier(CredalChainClassifier(order="given"), {"row_error": 0.5}, random_state=0),
]


def expected_failures(estimator):
    if isinstance(estimator, Discretizer):
        return {}
    failures = {
        "check_supervised_y_no_nan": "a missing label is legal, and NaN is how people write it"
    }
    if has_fit_parameter(estimator, "sample_weight"):
        for kind in ("dense", "sparse") if NEW_CHECKS else ("dense",):
            check = f"check_sample_weight_equivalence_on_{kind}_data"
            failures[check] = "passes y by name; fit(X, Y) is called as ClassifierChain's is"
    return failures


class TakesLowerCase(CredalChainClassifier):
    """``y`` by name, as scikit-learn's checks of weights pass it."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y, sample_weight)


@pytest.mark.skipif(not NEW_CHECKS, reason="makes other classes of rows in another order")
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_scikit_learn_checks_of_weights(kind):
    check = getattr(estimator_checks, f"check_sample_weight_equivalence_on_{kind}_data")
    check("CredalChainClassifier", TakesLowerCase())


@pytest.mark.filterwarnings("ignore:never observed")
@parametrize_with_checks(
    [CredalChainClassifier(), Discretizer()], expected_failed_checks=expected_failures
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:never observed")
@parametrize_with_checks(
    [CredalBinaryRelevanceClassifier(), *OF_ESTIMATORS], expected_failed_checks=expected_failures
)
def test_scikit_learn_checks_of_the_others(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 5))
    Y = (X[:, :3] + rng.normal(size=(120, 3)) > 0).astype(int)
    return X, Y


@pytest.fixture(scope="module")
def fitted(data):
    return CredalChainClassifier(random_state=0).fit(*data)


def same_answers(left, right, X):
    a, b = left.infer(X), right.infer(X)
    np.testing.assert_array_equal(a.labels, b.labels)
    np.testing.assert_array_equal(a.log_odds, b.log_odds)
    assert a.label_names == b.label_names


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_clone_keeps_parameters_and_forgets_the_fit(estimator, data):
    estimator = clone(estimator).set_params(s=1.5, base=NaiveCredal(epsilon=0.01)).fit(*data)
    copy = clone(estimator)
    assert copy.s == 1.5
    assert copy.get_params()["base__epsilon"] == 0.01
    assert not hasattr(copy, "model_")


def test_nested_parameters_reach_the_base():
    chain = CredalChainClassifier(NaiveCredal(discretizer=Discretizer()))
    chain.set_params(base__discretizer__n_bins=3, base__epsilon=0.5)
    assert chain.base.discretizer.n_bins == 3
    assert chain.base.epsilon == 0.5


def test_pickle_round_trip(fitted, data):
    fitted.infer(data[0])  # tables exist now, and must not be in the file
    same_answers(fitted, pickle.loads(pickle.dumps(fitted)), data[0])
    assert b"OrderedDict" not in pickle.dumps(fitted)


def test_joblib_round_trip(fitted, data, tmp_path):
    joblib.dump(fitted, tmp_path / "chain.joblib")
    same_answers(fitted, joblib.load(tmp_path / "chain.joblib"), data[0])


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_skops_round_trip_with_the_published_types(estimator, data):
    X, Y = data
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["colour"] = np.where(X[:, 0] > 0, "red", "blue")
    frame["flag"] = X[:, 1] > 0
    frame["size"] = pd.Categorical(np.where(X[:, 2] > 0, "L", "S"), categories=["S", "M", "L"])
    fitted = clone(estimator).set_params(base=NaiveCredal(), random_state=0)
    fitted.fit(frame, pd.DataFrame(Y, columns=["x", "y", "z"]))
    blob = skops.io.dumps(fitted)
    assert set(skops.io.get_untrusted_types(data=blob)) <= set(TRUSTED_TYPES)
    same_answers(fitted, skops.io.loads(blob, trusted=TRUSTED_TYPES), frame)


def test_skops_round_trip_of_a_discretizer_and_of_sparse_input(data):
    from scipy import sparse

    X = sparse.csr_array(np.maximum(data[0], 0))
    fitted = CredalChainClassifier(random_state=0).fit(X, data[1])
    same_answers(fitted, skops.io.loads(skops.io.dumps(fitted), trusted=TRUSTED_TYPES), X)


def test_every_trusted_type_exists():
    from importlib import import_module

    for path in TRUSTED_TYPES:
        module, name = path.rsplit(".", 1)
        assert callable(getattr(import_module(module), name))


def test_partial_labels_sees_through_pipelines_and_searches(data):
    X, Y = data
    chain = CredalChainClassifier(order="given")
    pipeline = make_pipeline(SimpleImputer(), StandardScaler(), chain)
    search = GridSearchCV(pipeline, {"credalchainclassifier__s": [0.5, 4.0]}, cv=3)
    search.fit(X, Y)
    inner = search.best_estimator_
    direct = inner[-1].predict_partial(inner[:-1].transform(X))
    for estimator in (search, inner, FrozenEstimator(inner), make_pipeline(inner)):
        np.testing.assert_array_equal(partial_labels(estimator, X), direct)


def test_partial_labels_of_an_ordinary_classifier_are_its_predictions(data):
    X, Y = data
    tree = DecisionTreeClassifier(random_state=0).fit(X, Y)
    np.testing.assert_array_equal(partial_labels(tree, X), tree.predict(X))


def test_grid_search_over_s_is_not_a_no_op(data):
    """predict does not depend on s, so the default score must."""
    X, Y = data
    search = GridSearchCV(CredalChainClassifier(order="given"), {"s": [0, 2, 50]}, cv=3).fit(X, Y)
    assert len(set(search.cv_results_["mean_test_score"])) > 1
    assert search.score(X, Y) == utility_65(Y, search.best_estimator_.predict_partial(X))


@pytest.mark.parametrize("name", MEASURES)
def test_every_measure_is_a_scorer(name, data):
    X, Y = data
    pipeline = make_pipeline(StandardScaler(), CredalChainClassifier(order="given"))
    options = {"level": 0.6} if name == "sure_error" else {}  # nothing is surer here
    scores = cross_val_score(pipeline, X, Y, cv=3, scoring=partial_scorer(name, **options))
    assert np.isfinite(scores).all()
    assert (scores <= 0).all() or MEASURES[name].greater_is_better
    assert pickle.loads(pickle.dumps(partial_scorer(name))) == partial_scorer(name)


def test_scorers_take_options_and_work_together(data):
    X, Y = data
    cheap, dear = (partial_scorer("abstention_loss", cost=cost) for cost in (0.0, 1.0))
    result = cross_validate(
        CredalChainClassifier(order="given", s=20.0), X, Y, scoring={"a": cheap, "b": dear}, cv=3
    )
    assert (result["test_a"] > result["test_b"]).all()
    with pytest.raises(ValueError, match=r"measure must be one of set_accuracy.*'nonsense'"):
        partial_scorer("nonsense")


@pytest.mark.parametrize("missing", [np.nan, -1])
def test_cross_val_partial_takes_missing_labels(data, missing):
    X, Y = data
    holes = np.where(np.random.default_rng(0).random(Y.shape) < 0.3, missing, Y)
    chain = CredalChainClassifier(order="given")
    out = cross_val_partial(chain, X, holes, cv=KFold(4, shuffle=True, random_state=0))
    train, test = next(iter(KFold(4, shuffle=True, random_state=0).split(X)))
    np.testing.assert_array_equal(
        out[test], clone(chain).fit(X[train], holes[train]).predict_partial(X[test])
    )


@pytest.mark.slow
def test_cross_val_partial_with_frames_sparse_and_workers(data):
    from scipy import sparse

    X, Y = data
    chain = CredalChainClassifier(order="given")
    plain = cross_val_partial(chain, X, Y, cv=3)
    frame = cross_val_partial(chain, pd.DataFrame(X), Y.tolist(), cv=3, n_jobs=2)
    np.testing.assert_array_equal(plain, frame)
    assert cross_val_partial(chain, sparse.csr_array(X), Y, cv=3).shape == Y.shape
    with pytest.raises(ValueError, match="every row in exactly one test fold"):
        cross_val_partial(chain, X, Y, cv=[([0, 1], [2, 3])])
    with pytest.raises(ValueError, match="Expected `cv` as"):
        cross_val_partial(chain, X, Y, cv=object())


def test_minus_one_in_y_works_in_scikit_learns_own_cross_validation(data):
    X, Y = data
    holes = np.where(np.random.default_rng(0).random(Y.shape) < 0.3, -1, Y)
    scores = cross_val_score(CredalChainClassifier(order="given"), X, holes, cv=5)
    assert np.isfinite(scores).all()


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
def test_scikit_learn_cannot_carry_nan_in_y(data):
    """Documented: use -1, or a splitter object, or cross_val_partial."""
    X, Y = data
    holes = np.where(np.random.default_rng(0).random(Y.shape) < 0.3, np.nan, Y)
    with pytest.raises(ValueError, match="NaN"):
        cross_val_score(CredalChainClassifier(), X, holes, cv=5, error_score="raise")
    scores = cross_val_score(CredalChainClassifier(order="given"), X, holes, cv=KFold(5))
    assert np.isfinite(scores).all()


def test_feature_names_are_kept_and_checked(data):
    X, Y = data
    frame = pd.DataFrame(X, columns=list("abcde"))
    chain = CredalChainClassifier().fit(frame, Y)
    assert chain.feature_names_in_.tolist() == list("abcde")
    with pytest.raises(ValueError, match="feature names"):
        chain.predict_partial(frame[list("edcba")])
    with pytest.raises(ValueError, match="5 features"):
        CredalChainClassifier().fit(X, Y).predict_partial(X[:, :3])


def test_discretizer_set_output(data):
    frame = Discretizer().set_output(transform="pandas").fit_transform(data[0])
    assert isinstance(frame, pd.DataFrame)
    assert frame.shape == data[0].shape


def test_set_params_needs_no_refit(data):
    X, Y = data
    chain = CredalChainClassifier(order="given").fit(X, Y)
    for s, strategy, threshold in [(0.5, "marginalization", 0.5), (9.0, "branching", 0.3)]:
        chain.set_params(s=s, strategy=strategy, threshold=threshold)
        fresh = clone(chain).fit(X, Y)
        np.testing.assert_array_equal(chain.predict_partial(X), fresh.predict_partial(X))


def test_model_file_is_small(fitted, data):
    fitted.infer(data[0])
    blob = io.BytesIO()
    joblib.dump(fitted, blob)
    assert len(blob.getvalue()) < 40_000


def test_skops_round_trip_of_a_strategy_given_as_a_value(data):
    from credalchain import branching, marginalization, tree_marginalization

    for strategy in (branching, marginalization, tree_marginalization):
        fitted = CredalChainClassifier(strategy=strategy, s=0.1, random_state=0).fit(*data)
        again = skops.io.loads(skops.io.dumps(fitted), trusted=TRUSTED_TYPES)
        same_answers(fitted, again, data[0][:5])


def test_unwrap_reaches_what_scikit_learn_does_not_forward(data):
    X, Y = data
    pipeline = make_pipeline(StandardScaler(), CredalChainClassifier(order="given")).fit(X, Y)
    final, Z = unwrap(pipeline, X)
    assert final is pipeline[-1]
    np.testing.assert_allclose(Z, StandardScaler().fit_transform(X))
    assert final.infer(Z).labels.shape == Y.shape


def test_cross_val_partial_keeps_groups_together_and_takes_masks(data):
    X, Y = data
    chain = CredalChainClassifier(order="given")
    groups = np.arange(len(X)) // 10
    assert cross_val_partial(chain, X, Y, groups=groups, cv=GroupKFold(3)).shape == Y.shape
    masks = [(np.arange(120) % 2 == k, np.arange(120) % 2 != k) for k in (0, 1)]
    plain = [(np.flatnonzero(a), np.flatnonzero(b)) for a, b in masks]
    np.testing.assert_array_equal(
        cross_val_partial(chain, X, Y, cv=masks), cross_val_partial(chain, X, Y, cv=plain)
    )


def test_cross_val_partial_with_positive_labels_only(data):
    X, Y = data
    positive = np.where(Y == 1, 1.0, np.nan)
    out = cross_val_partial(CredalChainClassifier(order="given"), X, positive, cv=3)
    assert set(np.unique(out)) <= {-1, 1}


def test_cross_val_partial_does_not_teach_minus_one_as_a_class(data):
    X, Y = data
    with pytest.raises(ValueError, match="because DecisionTreeClassifier does not accept them"):
        cross_val_partial(make_pipeline(DecisionTreeClassifier()), X, np.where(Y == 1, 1, np.nan))
    complete = cross_val_partial(DecisionTreeClassifier(random_state=0), X, Y)
    assert set(np.unique(complete)) == {0, 1}


def test_folds_without_a_zero_can_be_scored(data):
    X, Y = data
    chain = CredalChainClassifier(order="given").fit(X, Y)
    assert 0 <= chain.score(X[:1], [[1, np.nan, 1]]) <= 1
    assert 0 <= chain.score(X[:1], [[1, -1, 1]]) <= 1


def test_scorers_with_a_vector_of_class_names(data):
    X, Y = data
    y = np.where(Y[:, 0] == 1, "yes", "no")
    for name in MEASURES:
        scorer = partial_scorer(name, **({"level": 0.6} if name == "sure_error" else {}))
        scores = cross_val_score(CredalChainClassifier(), X, y, cv=3, scoring=scorer)
        assert np.isfinite(scores).all()


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_global_output_setting_does_not_reach_inside(data, output):
    import sklearn
    from scipy import sparse

    X = sparse.csr_array(np.maximum(data[0], 0))
    with sklearn.config_context(transform_output=output):
        chain = CredalChainClassifier(order="given").fit(X, data[1])
        inside = chain.predict_partial(X)
    np.testing.assert_array_equal(inside, chain.predict_partial(X))


def test_numpy_after_a_frame_warns_once(data):
    X, Y = data
    chain = CredalChainClassifier().fit(pd.DataFrame(X, columns=list("abcde")), Y)
    with pytest.warns(UserWarning, match="valid feature names") as caught:
        chain.predict_partial(X)
    assert len(caught) == 1


def test_a_prediction_says_how_much_is_answered():
    """And what to do where that is nearly nothing, or everything."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 3)), rng.integers(0, 2, (60, 2))
    chain = CredalChainClassifier(order="given").fit(X, Y)
    for s, words in ((1000.0, "(0% answered); choose_caution"), (0.0, "(100% answered); choose_")):
        prediction = chain.infer(X, s=s)
        assert words in repr(prediction).splitlines()[0]
        assert words in prediction._repr_html_()
    assert "answered)" not in repr(chain.infer(X[:5]))  # a share of ten cells says little
