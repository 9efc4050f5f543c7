"""A joint model over the scores of any classifier."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from credalchain import JointDecision, PromisedClassifier, explain, load_model, save_model
from credalchain.exceptions import DataWarning
from credalchain.joint.members import FittedTilt, ScoreTilt, calibrate_product
from credalchain.joint.scores import fit_scores, is_multilabel
from credalchain.rivals import RejectOption

N, M = 240, 4


@pytest.fixture(scope="module")
def data():
    """Labels that go together: the last is the exclusive or of two others."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 6))
    Y = (X[:, :M] + 0.6 * rng.normal(size=(N, M)) > 0.3).astype(np.int8)
    Y[:, 3] = Y[:, 0] ^ Y[:, 1]
    return X, Y


def decision(estimator=None, **params):
    return JointDecision(estimator, random_state=0, **params)


LOGISTIC = LogisticRegression()
MODELS = {
    "binary": LOGISTIC,
    "pipeline": make_pipeline(StandardScaler(), LOGISTIC),
    "one versus rest": OneVsRestClassifier(LOGISTIC),
    "multi-output": MultiOutputClassifier(LOGISTIC),
    "chain": ClassifierChain(LOGISTIC),
    "pipeline of one versus rest": make_pipeline(StandardScaler(), OneVsRestClassifier(LOGISTIC)),
    "forest": RandomForestClassifier(5, random_state=0),
    "neighbours": KNeighborsClassifier(9),
    "decision function": OneVsRestClassifier(LinearSVC()),
    "binary decision function": LinearSVC(),
    "ridge": RidgeClassifier(),
    "search": GridSearchCV(OneVsRestClassifier(LOGISTIC), {"estimator__C": [1.0, 2.0]}, cv=2),
    "boosting": HistGradientBoostingClassifier(max_iter=3),
}


@pytest.mark.parametrize("name", MODELS)
def test_any_classifier_has_scores_for_every_label(data, name):
    X, Y = data
    log_odds = fit_scores(MODELS[name], X, Y, n_jobs=1).log_odds(X)
    assert log_odds.shape == (N, M)
    right = (log_odds > 0) == Y
    assert right[:, :3].mean() > 0.8
    assert np.abs(log_odds).max() <= 50


@pytest.mark.parametrize("name", ["binary", "one versus rest", "multi-output"])
def test_scores_are_those_of_a_classifier_for_each_label(data, name):
    X, Y = data
    log_odds = fit_scores(MODELS[name], X, Y, n_jobs=2).log_odds(X)
    expected = [clone(LOGISTIC).fit(X, y).predict_proba(X)[:, 1] for y in Y.T]
    np.testing.assert_allclose(expit(log_odds), np.transpose(expected), atol=1e-4)


@pytest.mark.parametrize(
    "model", [LOGISTIC, LogisticRegression(solver="liblinear", fit_intercept=False)]
)
def test_logistic_regressions_are_asked_together(data, model):
    """One product for all labels gives what each model gives, of sparse rows as well."""
    X, Y = data
    Y = Y.copy()
    Y[:, 1] = 0
    Y[::3, 2] = -1
    fitted = fit_scores(model, X, Y, n_jobs=1)
    assert fitted._linear is not None
    expected = np.stack(
        [
            np.full(N, expit(fitted.constant[1])) if model is None else model.predict_proba(X)[:, 1]
            for model in fitted.models
        ],
        axis=1,
    )
    for rows in (X, sparse.csr_array(X), X.astype(np.float32)):
        np.testing.assert_allclose(expit(fitted.log_odds(rows)), expected, atol=1e-4)
    assert expit(fitted.log_odds(1000 * X)[:, 0]).max() == pytest.approx(1 - 1e-4, abs=1e-12)
    with pytest.raises(ValueError, match="LogisticRegression does not accept missing values"):
        fitted.log_odds(np.full_like(X, np.nan))
    assert fit_scores(RidgeClassifier(), X, Y, n_jobs=1)._linear is None


@pytest.mark.parametrize("model", [OneVsRestClassifier, MultiOutputClassifier, ClassifierChain])
def test_searches_around_multilabel_models_with_missing_labels(data, model):
    X, Y = data
    Y = Y.astype(float)
    Y[::5, 0] = np.nan
    search = GridSearchCV(model(LOGISTIC), {"estimator__C": [0.1, 1.0]}, cv=2)
    right = decision(search).fit(X, Y).predict(X) == Y
    assert right[1::5, :3].mean() > 0.8


def test_more_labels_than_8_bits_can_number():
    """scikit-learn 1.9 numbers the labels of a matrix in its own type."""
    rng = np.random.default_rng(0)
    Y = (rng.random((60, 150)) < 0.4).astype(np.int8)
    Y[:2] = [[0], [1]]
    X = Y + 0.1 * rng.normal(size=Y.shape)
    reject = RejectOption(OneVsRestClassifier(LogisticRegression())).fit(X, Y)
    scores = fit_scores(OneVsRestClassifier(LogisticRegression()), X, Y, 1)
    for odds in (scores.log_odds(X), logit(reject.predict_proba(X))):
        np.testing.assert_array_equal(odds > 0, Y)


def test_which_classifiers_take_a_matrix_of_labels():
    multilabel = {"one versus rest", "multi-output", "chain", "forest", "neighbours", "ridge"}
    multilabel |= {"pipeline of one versus rest", "decision function", "search"}
    assert {name for name, model in MODELS.items() if is_multilabel(model)} == multilabel


@pytest.mark.parametrize("name", ["binary", "pipeline of one versus rest", "chain", "forest"])
def test_missing_labels_are_left_out_label_by_label(data, name):
    X, Y = data
    Y = Y.copy()
    Y[::3, 0] = Y[1::4, 2] = -1
    log_odds = fit_scores(MODELS[name], X, Y, n_jobs=1).log_odds(X)
    observed = np.flatnonzero(Y[:, 0] >= 0)
    if name == "binary":
        alone = clone(LOGISTIC).fit(X[observed], Y[observed, 0]).predict_proba(X)[:, 1]
        np.testing.assert_allclose(expit(log_odds[:, 0]), alone, atol=1e-4)
    answers = decision(MODELS[name]).fit(X, np.where(Y < 0, np.nan, Y)).predict(X)
    assert (answers[observed, 0] == Y[observed, 0]).mean() > 0.8


def test_labels_with_one_value_or_none_observed(data):
    X, Y = data
    Y = Y.astype(float)
    Y[:, 1], Y[:, 2] = 1, np.nan
    with pytest.warns(UserWarning, match="never observed"):
        fitted = decision(LOGISTIC).fit(X, Y)
    labels = fitted.predict_partial(X)
    assert (labels[:, 1] == 1).all()
    assert (labels[:, 2] == -1).all()


def test_the_layer_learns_how_labels_go_together(data):
    """No linear model of the features can learn an exclusive or; the labels tell it."""
    X, Y = data
    train, test = np.arange(N) < 160, np.arange(N) >= 160
    fitted = decision(LOGISTIC, features="scores").fit(X[train], Y[train])
    alone = fit_scores(LOGISTIC, X[train], Y[train], n_jobs=1).log_odds(X[test]) > 0
    exact = (fitted.predict(X[test]) == Y[test]).all(axis=1).mean()
    assert exact > (alone == Y[test]).all(axis=1).mean() + 0.1
    known = np.full((test.sum(), M), -1)
    known[:, :2] = Y[test, :2]
    told = fitted.infer(X[test], known=known)
    assert (np.abs(told.interval[:, 3, 0] - Y[test, 3]) < 0.5).mean() > 0.95


def test_held_out_scores_come_from_folds_that_have_not_seen_the_row(data):
    """With one neighbour, scores of training rows would be their labels."""
    X, _ = data
    noise = np.random.default_rng(1).integers(0, 2, (N, 2))
    fitted = decision(KNeighborsClassifier(1), features="scores").fit(X, noise)
    assert fitted.estimator_.model_.score_product.scale < 0.2  # such scores say nothing


def test_splitters_and_groups(data):
    X, Y = data
    cv = KFold(3, shuffle=True, random_state=1)
    same = [
        decision(LOGISTIC, cv=one).fit(X, Y).decide(X).prices for one in (cv, list(cv.split(X)))
    ]
    np.testing.assert_array_equal(*same)
    twice, labels = np.vstack([X, X]), np.vstack([Y, Y])
    groups = np.tile(np.arange(N), 2)
    apart = decision(KNeighborsClassifier(1), cv=GroupKFold(3), features="scores")
    apart.fit(twice, labels, groups=groups)
    leaked = decision(KNeighborsClassifier(1), cv=3, features="scores").fit(twice, labels)
    by_number = decision(KNeighborsClassifier(1), cv=3, features="scores")
    by_number.fit(twice, labels, groups=groups)
    promised = PromisedClassifier(leaked, {"row_error": 0.5}, random_state=0).fit(twice, labels)
    scales = [
        one.estimator_.model_.score_product.scale
        for one in (apart, by_number, promised.estimator_, leaked)
    ]
    assert max(scales[:3]) < scales[3]


def test_a_frozen_model_and_its_scores_give_the_same_answers(data):
    X, Y = data
    model = OneVsRestClassifier(LOGISTIC).fit(X[:120], Y[:120])
    frozen = decision(FrozenEstimator(model), features="scores").fit(X[120:], Y[120:])
    scores = model.predict_proba(X)
    given = decision("precomputed").fit(scores[120:], Y[120:])
    np.testing.assert_array_equal(frozen.decide(X).prices, given.decide(scores).prices)
    as_log_odds = decision("precomputed").fit(logit(scores[120:]), Y[120:])
    np.testing.assert_allclose(
        as_log_odds.decide(logit(scores)).prices, given.decide(scores).prices, atol=1e-6
    )


def test_rows_answer_alike_alone_and_together(data):
    X, Y = data
    fitted = decision(LOGISTIC).fit(X, Y)
    together = fitted.decide(X[:9]).prices
    alone = np.vstack([fitted.decide(X[i : i + 1]).prices for i in range(9)])
    np.testing.assert_array_equal(together, alone)


def test_wide_data_stays_sparse(data, monkeypatch):
    _, Y = data
    rng = np.random.default_rng(0)
    X = sparse.random_array((N, 6000), density=0.01, random_state=rng, format="csr")
    X = sparse.csr_array(sparse.hstack([sparse.csr_array(Y * rng.random(Y.shape)), X]))
    for kind in (sparse.csr_array, sparse.csc_array):
        monkeypatch.setattr(kind, "toarray", lambda *_: pytest.fail("made dense"))
    fitted = decision().fit(X, Y)
    assert "LogisticRegression" in repr(fitted.estimator_)
    assert (fitted.predict(X) == Y).mean() > 0.9
    assert (decision().fit(X.tocsc(), Y).predict(X) == fitted.predict(X)).all()


def test_texts_promises_and_explanations():
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, (300, 3))
    words = np.array(["rain", "goal", "bank"])
    texts = [" ".join(["the", *words[y == 1], *words[rng.random(3) < 0.1]]) for y in Y]
    model = make_pipeline(CountVectorizer(), OneVsRestClassifier(LOGISTIC))
    promised = PromisedClassifier(decision(model), {"row_error": 0.3}, random_state=0)
    promised.fit(texts, Y)
    assert (promised.predict_partial(texts) == Y).mean() > 0.7
    text = str(explain(promised, "the rain"))
    assert "label0" in text


def test_rows_are_similar_only_if_trees_have_weight(data):
    X, Y = data
    fitted = decision(LOGISTIC, features="scores").fit(X, Y)
    assert "score of label" in str(explain(fitted, X[0]))
    model = fitted.estimator_.model_
    model.leaves = model.leaves._replace(joint=0.0, product=0.0)
    without = explain(fitted, X[0])
    assert without.similar == ()
    assert "by the scores of the model" in without.about_reasons


def test_model_files(data, tmp_path):
    X, Y = data
    for k, fitted in enumerate(
        [
            decision(make_pipeline(StandardScaler(), LOGISTIC)).fit(X, Y),
            decision("precomputed").fit(expit(X[:, :M]), Y),
        ]
    ):
        save_model(fitted, tmp_path / f"{k}.credal")
        again = load_model(tmp_path / f"{k}.credal")
        scores = X if k == 0 else expit(X[:, :M])
        np.testing.assert_array_equal(again.decide(scores).prices, fitted.decide(scores).prices)


def test_a_frozen_model_may_be_named_and_not_stored(data, tmp_path):
    X, Y = data
    model = OneVsRestClassifier(LOGISTIC).fit(X[:120], Y[:120])
    frozen = decision(FrozenEstimator(model)).fit(X[120:], Y[120:])
    save_model(frozen, tmp_path / "whole")
    save_model(frozen, tmp_path / "named", store_frozen=False)
    for again in (
        load_model(tmp_path / "whole"),
        load_model(tmp_path / "named", frozen=model),
    ):
        np.testing.assert_array_equal(again.decide(X).prices, frozen.decide(X).prices)
    assert frozen.estimator_.scores_.models[0].estimator is model
    named = load_model(tmp_path / "named")
    with pytest.raises(
        NotFittedError, match=r"OneVsRestClassifier.*load_model\(path, frozen=model"
    ):
        named.predict(X)
    for wrong, message in [
        (OneVsRestClassifier(LOGISTIC), "not fitted"),
        (MultiOutputClassifier(LOGISTIC).fit(X, Y), "names, OneVsRestClassifier.*got MultiOutput"),
        (OneVsRestClassifier(LOGISTIC).fit(X[:, :2], Y), "of 6 columns.*got one of 2"),
    ]:
        with pytest.raises(ValueError, match=message):
            load_model(tmp_path / "named", frozen=wrong)
    with pytest.raises(ValueError, match="the file contains all its models"):
        load_model(tmp_path / "whole", frozen=model)


def test_what_is_assumed_and_chosen_is_said(data):
    X, Y = data
    scores = expit(X[:, :M])
    promised = PromisedClassifier(decision("precomputed"), {"row_error": 0.5}).fit(scores, Y)
    assert "the model behind the scores was not fitted on these rows" in str(promised.report_)
    frozen = FrozenEstimator(OneVsRestClassifier(LOGISTIC).fit(X[:120], Y[:120]))
    fitted = decision(frozen).fit(X[120:], Y[120:])
    assert fitted.learned_from_ == "assumed: the frozen model was not fitted on these rows"
    wide = decision().fit(sparse.csr_array(X), Y)
    assert repr(wide).endswith("over LogisticRegression(solver='liblinear') of each label")
    held_out = "the scores of LogisticRegression of each label, held out for 240 rows"
    assert held_out in wide.learned_from_


@pytest.mark.parametrize(
    ("estimator", "error", "message"),
    [
        ("scores", TypeError, "\"precomputed\", got 'scores'"),
        (LogisticRegression, TypeError, "an instance of a classifier"),
        (StandardScaler(), TypeError, "an instance of a classifier"),
    ],
)
def test_what_is_no_classifier(data, estimator, error, message):
    with pytest.raises(error, match=message):
        decision(estimator).fit(*data)


def test_wrong_scores(data):
    X, Y = data
    with pytest.raises(ValueError, match="one score for each of 4 labels.*shape"):
        decision("precomputed").fit(X, Y)
    scores = expit(X[:, :M])
    holed = scores.copy()
    holed[7, 2] = np.nan
    with pytest.raises(ValueError, match="got nan in row 7, label 2"):
        decision("precomputed").fit(holed, Y)
    with pytest.raises(ValueError, match="X must hold numbers: could not convert string"):
        decision("precomputed").fit(np.char.add(scores.astype(str), " %"), Y)
    with pytest.raises(ValueError, match="1 row cannot be split to hold out scores"):
        decision(LogisticRegression()).fit(X[:1], Y[:1])
    fitted = decision("precomputed").fit(scores, Y)
    with pytest.raises(ValueError, match="must hold probabilities, as it did in fit"):
        fitted.predict(X[:, :M])
    over_log_odds = decision("precomputed").fit(X[:, :M], Y)
    with pytest.warns(
        DataWarning, match=r"in fit, .* from -3.* look like probabilities: .* to 0\."
    ):
        over_log_odds.predict(scores[:9])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        over_log_odds.predict(X[:, :M])
        over_log_odds.predict(np.full((1, M), 0.4))  # a single row may be so by chance
    with pytest.raises(ValueError, match="features must be one of"):
        decision(LOGISTIC, features="x").fit(X, Y)


# -- members ----------------------------------------------------------------------------------


def test_a_tilt_is_its_formula():
    rng = np.random.default_rng(0)
    vectors = np.array([[0, 0], [0, 1], [1, 1]], np.int8)
    tilt = FittedTilt(vectors, np.array([5, 1, 3]), np.arange(3), 4, a=0.7, b=1.3)
    log_odds = rng.normal(size=(6, 2)).astype(np.float32)
    p = expit(log_odds.astype(float))
    weights = tilt.weights(np.hstack([np.ones((6, 1), np.float32), log_odds])).toarray()
    expected = np.stack(
        [
            n**0.7 * np.where(v, p, 1 - p).prod(axis=1) ** 1.3
            for v, n in zip(vectors, [5, 1, 3], strict=True)
        ],
        axis=1,
    )
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(weights[:, :3], expected, atol=2e-3)
    assert (weights[:, 3] == 0).all()


def test_held_out_weights_of_a_tilt_count_the_row_once_less():
    rng = np.random.default_rng(0)
    vector_of = np.array([0, 0, 1, 1, 1, 2] * 10, np.int32)
    vector_of[0] = 3  # a vector that no other row has
    vectors = np.array([[0, 0], [0, 1], [1, 1], [1, 0]], np.int8)
    X = rng.normal(size=(60, 2)).astype(np.float32)
    fitted, held_out = ScoreTilt().fit_vectors(X, vector_of, vectors, np.random.RandomState(0))
    assert held_out.toarray()[0, 3] == 0
    less = FittedTilt(
        vectors, fitted.times - (np.arange(4) == 1), fitted.classes, 4, fitted.a, fitted.b
    )
    np.testing.assert_allclose(held_out.toarray()[2], less.weights(X[2:3]).toarray()[0], atol=1e-12)


def test_the_scale_of_a_product_is_learned():
    rng = np.random.default_rng(0)
    log_odds = rng.normal(size=(20000, 3))
    labels = (rng.random(log_odds.shape) < expit(2.5 * log_odds)).astype(np.int8)
    labels[::7] = -1
    scale, likelihood = calibrate_product(log_odds, labels)
    assert scale == pytest.approx(2.5, rel=0.05)
    assert (likelihood[::7] == 1).all()
    p = expit(scale * log_odds[1])
    assert likelihood[1] == pytest.approx(np.where(labels[1] == 1, p, 1 - p).prod())


def test_rows_of_a_group_do_not_vouch_for_each_other(data):
    """Ten near copies of each row, with labels that say nothing: few rows, so the scores decide."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 10)
    X = rng.normal(size=(40, 5))[groups] + 0.01 * rng.normal(size=(400, 5))
    Y = rng.integers(0, 2, (40, 3))[groups]
    fitted = decision(LOGISTIC).fit(X, Y, groups=groups)
    assert fitted.estimator_.model_.n_training_rows == 40
    assert fitted.estimator_.shares_["scores"] > 0.05
    p = fitted.predict_proba(rng.normal(size=(400, 5)))
    assert np.abs(p - 0.5).max() < 0.45
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        decision(FrozenEstimator(LOGISTIC)).fit(X, Y, groups=groups[:-1])


def test_classes_of_frozen_models(data):
    X, Y = data
    for no, yes in (("no", "yes"), (1, 2), (False, True), ("0", "1")):
        y = np.where(Y[:, 0] == 1, yes, no)
        model = LogisticRegression().fit(X[:120], y[:120])
        fitted = decision(FrozenEstimator(model), features="scores").fit(X[120:], y[120:])
        assert (fitted.predict(X) == y).mean() > 0.7
        assert (fitted.predict(X) == model.predict(X)).mean() > 0.9
    other = LogisticRegression().fit(X, np.where(Y[:, 0] == 1, "a", "b"))
    with pytest.raises(ValueError, match=r"one of which is 1, got \['a', 'b'\]"):
        decision(FrozenEstimator(other)).fit(X, Y[:, 0])
    binary = LogisticRegression().fit(X, Y[:, 0])
    with pytest.raises(
        ValueError, match=r"LogisticRegression has one label with the classes \[0, 1"
    ):
        decision(FrozenEstimator(binary)).fit(X, Y[:, :2])


class Bare:
    """A classifier without scikit-learn's classes; ``shape`` is that of its probabilities."""

    def __init__(self, shape=(-1,)):
        self.shape = shape

    def get_params(self, deep=True):
        return {"shape": self.shape}

    def fit(self, X, y):
        self.p = np.mean(y)
        return self

    def predict_proba(self, X):
        return np.reshape(np.clip(self.p + 0.2 * X[:, 0], 0, 1), self.shape)


def test_classifiers_of_other_libraries(data):
    X, Y = data
    shaped = [decision(Bare(shape)).fit(X, Y).decide(X).prices for shape in ((-1,), (-1, 1))]
    np.testing.assert_array_equal(*shaped)
    rare = Y.copy()
    rare[:, 1] = 0
    rare[5, 1] = 1
    for estimator in (MultiOutputClassifier(LOGISTIC), ClassifierChain(LOGISTIC)):
        assert decision(estimator).fit(X, rare).predict(X).shape == Y.shape
    both = GridSearchCV(make_pipeline(LOGISTIC), {"logisticregression": [LOGISTIC, LinearSVC()]})
    assert (decision(both).fit(X, Y).predict(X) == Y).mean() > 0.8
    decision(LOGISTIC).fit(X.tolist(), Y.tolist()).predict(X.tolist())


def test_folds(data):
    X, Y = data
    by_type = [
        decision(LOGISTIC, cv=cv).fit(X, Y).decide(X).prices for cv in (5, np.int64(5), None)
    ]
    for other in by_type[1:]:
        np.testing.assert_array_equal(by_type[0], other)
    everything = np.arange(N)
    with pytest.raises(ValueError, match="cv must yield disjoint training and test rows"):
        decision(LOGISTIC, cv=[(everything, everything)]).fit(X, Y)
    with pytest.raises(ValueError, match="cv must hold out at least one row"):
        decision(LOGISTIC, cv=[]).fit(X, Y)


def test_chunks_are_not_for_scores(data):
    X, Y = data
    with pytest.raises(TypeError, match="needs all rows in memory"):
        decision(LOGISTIC).fit_chunks([(X, Y)])
    assert not decision(LOGISTIC).can_fit_chunks
    with pytest.raises(TypeError, match="FrozenEstimator"):
        JointDecision.from_fitted(LogisticRegression().fit(X, Y[:, 0]))


def test_scores_that_are_probabilities_or_not(data):
    pd = pytest.importorskip("pandas")
    X, Y = data
    scores = expit(X[:, :M])
    fitted = decision("precomputed").fit(scores + 1e-9 * (scores == scores.max()), Y)
    assert fitted.estimator_.scores_.are_probabilities
    with pytest.raises(ValueError, match="Divide percentages by 100"):
        decision("precomputed").fit(100 * scores, Y)
    holed = np.ma.array(scores, mask=False)
    holed[3, 1] = np.ma.masked
    with pytest.raises(ValueError, match="got nan in row 3, label 1"):
        decision("precomputed").fit(holed, Y)
    names = list("abcd")
    with pytest.raises(ValueError, match="in the order of the labels"):
        decision("precomputed").fit(
            pd.DataFrame(scores, columns=names)[names[::-1]], pd.DataFrame(Y, columns=names)
        )
    np.testing.assert_array_equal(
        decision("precomputed").fit(sparse.csr_array(scores), Y).decide(scores).prices,
        decision("precomputed").fit(scores, Y).decide(scores).prices,
    )


def test_columns_that_trees_cannot_use_are_left_to_the_model(data):
    pd = pytest.importorskip("pandas")
    X, Y = data
    frame = pd.DataFrame(X[:, :5], columns=list("abcde"))
    frame["date"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(N), "D")
    numbers = ColumnTransformer([("numbers", "passthrough", list("abcde"))])
    fitted = decision(make_pipeline(numbers, LOGISTIC)).fit(frame, Y)
    assert fitted.estimator_.table_ is None
    assert (fitted.predict(frame) == Y).mean() > 0.7


def test_sparse_rows_with_indices_of_64_bits():
    """As scipy makes them of lists; liblinear takes 32 bits."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((80, 30), density=0.2, random_state=0, format="csr")
    Y = (X.toarray()[:, :3] + 0.2 * rng.random((80, 3)) > 0.15).astype(int)
    wide = sparse.csr_array(
        (X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), X.shape
    )
    expected = JointDecision(random_state=0).fit(X, Y)
    found = JointDecision(random_state=0).fit(wide, Y)
    np.testing.assert_array_equal(found.predict_proba(wide), expected.predict_proba(X))
